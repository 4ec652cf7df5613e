// page.js FOLDER ASKS.json: runs web/engine.js and web/worker.js of FOLDER
// under node, with stand-ins for a browser's functions. Sends the requests in
// order, and prints a list of {answer, out, seconds}. Fields of a request:
// stop, the seconds until it is stopped; with, a request to send while it runs;
// pad, the length to which its text is extended; bytes, a file in base64.
// {engine: {...}} makes a new engine with these options.
const fs = require("fs"), path = require("path"), vm = require("vm");
const threads = require("worker_threads");
const [folder, list] = process.argv.slice(2);
const BASE = "http://localhost/";

function file(url) { return path.resolve(folder, String(url).slice(BASE.length)); }

// Globals that a Worker's text expects.
const HEAD = `
const {parentPort, workerData} = require("worker_threads");
globalThis.self = globalThis;
Object.assign(globalThis, {require, __filename: "", __dirname: ""});
self.postMessage = message => parentPort.postMessage(message);
self.importScripts = url => {
  const name = workerData.folder + "/" + url.slice(workerData.base.length);
  require("vm").runInThisContext(require("fs").readFileSync(name, "utf8"));
};
importScripts(workerData.url);
parentPort.on("message", data => self.onmessage({data}));
`;

class Worker {
  constructor(url) {
    this.own = new threads.Worker(HEAD, {eval: true,
      workerData: {url, base: BASE, folder}});
    this.own.on("message", data => this.onmessage({data}));
    this.own.on("error", e => this.onerror(e));
  }
  postMessage(message) { this.own.postMessage(message); }
  terminate() { this.own.terminate(); }
}

Object.assign(globalThis, {window: globalThis, Worker,
  location: {href: BASE, protocol: "http:"},
  fetch: async url => {
    if (!fs.existsSync(file(url))) return {ok: false, status: 404};
    return new Response(fs.readFileSync(file(url)));
  }});
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine.js"), "utf8")
  + "\nglobalThis.Engine = Engine;");

async function one(engine, {ask, stop, bytes, pad, ...fields}) {
  const start = performance.now(), result = {out: "", during: null};
  if (pad) fields.text = fields.text.padEnd(pad, "x");
  if (bytes !== undefined) fields.bytes = Buffer.from(bytes, "base64");
  const other = fields.with;
  delete fields.with;
  const going = engine.ask(ask, fields, text => { result.out += text; });
  if (other) result.during = await engine.ask(other.ask, other);
  if (stop !== undefined) {
    await new Promise(done => setTimeout(done, stop * 1000));
    const from = performance.now();
    await engine.stop();
    result.stopped = (performance.now() - from) / 1000;
  }
  result.answer = await going;
  result.seconds = (performance.now() - start) / 1000;
  return result;
}

(async () => {
  const results = [];
  let engine = new Engine({});
  for (const ask of JSON.parse(fs.readFileSync(list))) {
    if (ask.engine) {
      engine = new Engine(ask.engine);
      results.push({answer: await engine.ready});
    } else {
      results.push(await one(engine, ask));
    }
  }
  process.stdout.write(JSON.stringify(results, (_, v) =>
    v instanceof Uint8Array ? Buffer.from(v).toString("base64") : v),
    () => process.exit(0));
})();
// SPDX-License-Identifier: MIT
