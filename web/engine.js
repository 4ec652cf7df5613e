// The page's side of the workshop's Worker: starts it, sends requests, stops
// it.
//
//   const engine = new Engine({seconds: 60, onstate: state => ...});
//   await engine.ready;       // {version, lua, threads, memory: bytes}
//   const answer = await engine.ask("run", {name, text, words: []},
//                                   (text, fd) => ...);
//   await engine.stop();      // the running request gets {stopped: true}; one
//                             // that takes too long also {late: true}
//
// lua/cutelua/workshop/init.lua describes the requests. A second Worker is in
// reserve. It replaces a Worker that was stopped, or whose memory has grown
// large when the next script begins. It also answers the requests syntax,
// complete and about while the first Worker is busy.
"use strict";

// Long requests, of which only one runs at a time.
const RUNS = new Set(["run", "prompt", "block", "exercise"]);
// Long requests that begin with fresh Lua globals.
const FRESH = new Set(["run", "block", "exercise"]);
// Requests that need no results of a run.
const LIGHT = new Set(["syntax", "complete", "about"]);

// The maximum number of simulator threads: each is a waiting Worker.
const MOST_THREADS = 8;

// Bytes that a Worker may keep: WebAssembly memory never shrinks.
const LARGE = 512 << 20;

// ---- loading the program ----

// A file:// page cannot fetch anything, but it may load a script.
function loadParts(base) {
  return new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = base + "parts.js";
    script.onload = () => done(window.workshopParts);
    script.onerror = () => fail(new Error("parts.js is not beside this page"));
    document.head.append(script);
  });
}

async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream()
    .pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return response.arrayBuffer();
}

// Returns {worker: URL of its text, start: its first message}.
async function load(options) {
  const base = new URL(options.base || "", location.href).href
    .replace(/[^/]*$/, "");
  let parts = options.parts || window.workshopParts;
  if (!parts && location.protocol === "file:") parts = await loadParts(base);
  if (parts) {
    const text = new Blob([parts.program, "\n", parts.worker],
                          {type: "text/javascript"});
    const module = await WebAssembly.compile(await unpacked(parts.wasm));
    return {worker: URL.createObjectURL(text),
            start: {program: null, module, base, threads: 1}};
  }
  let threads = window.crossOriginIsolated
    ? Math.min(navigator.hardwareConcurrency || 1, MOST_THREADS) : 1;
  let name = threads > 1 ? "cutelua-threads" : "cutelua";
  let bytes;
  try {
    bytes = await fetched(`${base}${name}.wasm`);
  } catch (e) {
    if (name === "cutelua") throw e;
    name = "cutelua";
    threads = 1;
    bytes = await fetched(`${base}${name}.wasm`);
  }
  return {worker: base + "worker.js", start: {program: `${base}${name}.js`,
    module: await WebAssembly.compile(bytes), base, threads}};
}

// ---- a Worker ----

// A Worker with its current job: {id, ask, fields, onOutput, resolve}.
class Hand {
  constructor(source, ondead) {
    this.job = null;
    this.queue = [];
    this.heap = 0;      // the program's memory in bytes after the last answer
    this.ondead = ondead;
    this.worker = new Worker(source.worker);
    this.ready = new Promise((done, fail) => {
      this.worker.onmessage = ({data}) => {
        if (data.ready) done(data);
        else if (data.failed) fail(new Error(data.failed));
        else this.hear(data);
      };
      this.worker.onerror = e => {
        fail(new Error(e.message || "the Worker could not be started"));
        this.die(e.message);
      };
    });
    this.ready.catch(() => {});
    this.worker.postMessage({start: source.start});
  }

  hear({id, out, fd, answer, dead, heap}) {
    const job = this.job;
    if (!job || job.id !== id) return;
    if (out !== undefined) {
      if (job.onOutput) job.onOutput(out, fd);
      return;
    }
    clearTimeout(job.timer);
    this.job = null;
    this.heap = heap;
    if (dead) this.ondead();
    job.resolve(answer);
    this.next();
  }

  die(message) {
    if (this.job) this.job.resolve({ok: false, error: {message}});
    this.job = null;
    this.ondead();
  }

  take(job) {
    this.queue.push(job);
    this.next();
  }

  async next() {
    if (this.job || !this.queue.length) return;
    const job = this.job = this.queue.shift();
    try {
      await this.ready;
    } catch (e) {
      this.job = null;
      job.resolve({ok: false, error: {message: e.message}});
      return;
    }
    if (this.job !== job) return;  // stopped meanwhile
    if (job.begin) job.begin();
    this.worker.postMessage({id: job.id, ask: job.ask, ...job.fields});
  }

  // Ends the Worker. Its current and waiting requests get `answer`.
  end(answer) {
    this.worker.terminate();
    const jobs = this.job ? [this.job, ...this.queue] : this.queue;
    this.job = null;
    this.queue = [];
    for (const job of jobs) {
      clearTimeout(job.timer);
      job.resolve(answer);
    }
  }
}

// ---- the engine ----

class Engine {
  // options.seconds: the time limit of a run; base: the URL of the folder with
  // the files; parts: {program, worker, wasm} if the page includes them;
  // onstate: called with "starting", "ready", "busy" or "failed" (then the
  // engine's `reason` has the cause).
  constructor(options = {}) {
    this.options = options;
    this.seconds = options.seconds || 60;
    // files that the page put into the Workers, by name
    this.files = new Map();
    this.count = 0;
    this.tell("starting");
    this.ready = load(options).then(source => {
      this.source = source;
      this.hand = this.start();
      return this.hand.ready;
    }).then(about => {
      this.spare = this.start();
      this.tell("ready");
      return about;
    });
    this.ready.catch(e => {
      this.reason = e.message;
      this.tell("failed");
    });
  }

  tell(state) {
    if (this.state === state) return;
    this.state = state;
    if (this.options.onstate) this.options.onstate(state);
  }

  // Starts a Worker and gives it all files.
  start() {
    const hand = new Hand(this.source, () => {
      if (this.hand === hand) this.replace({ok: false, error: {message:
        "the program ended and was started anew"}});
      else if (this.spare === hand) this.spare = null;
    });
    for (const [name, bytes] of this.files)
      hand.take(this.job("put", {name, bytes}));
    return hand;
  }

  job(ask, fields, onOutput) {
    const job = {id: ++this.count, ask, fields, onOutput};
    job.done = new Promise(resolve => { job.resolve = resolve; });
    return job;
  }

  // Ends the current Worker and makes the reserve the current one.
  replace(answer) {
    const old = this.hand;
    this.hand = this.spare || this.start();
    this.spare = null;
    old.end(answer);
    const hand = this.hand;
    hand.ready.then(() => {
      if (this.hand === hand && !this.spare) this.spare = this.start();
      this.settle();
    }, e => {
      this.reason = e.message;
      this.tell("failed");
    });
    return hand.ready;
  }

  // Replaces a Worker whose memory has grown large, so that the memory is
  // freed. The next request needs only the files.
  async renew() {
    const old = this.hand, job = this.job("files", {});
    this.renewing = true;
    old.take(job);
    const {files = []} = await job.done;
    if (this.hand === old) this.replace({ok: false, stopped: true});
    for (const file of files)
      this.hand.take(this.job("put", {...file, written: true}));
    this.renewing = false;
  }

  settle() {
    if (this.state !== "failed")
      this.tell(this.hand.job || this.hand.queue.length ? "busy" : "ready");
  }

  // Sends a request and returns the answer; on failure it has ok = false and
  // error. Output meanwhile goes to onOutput(text, fd). The time limit is
  // `seconds`, or the default of all requests.
  async ask(name, fields = {}, onOutput, seconds) {
    try {
      await this.ready;
    } catch (e) {
      return {ok: false, error: {message: e.message}};
    }
    if (name === "put") return this.put(fields.name, fields.bytes);
    if (name === "complete") return this.complete(fields);
    return this.send(name, fields, onOutput, seconds);
  }

  async send(name, fields, onOutput, seconds) {
    const busy = this.hand.job;
    if (RUNS.has(name) && (this.renewing || [busy, ...this.hand.queue].some(
        job => job && RUNS.has(job.ask))))
      return {ok: false, busy: true, error: {message:
        "something runs: wait for its end, or stop it"}};
    if (FRESH.has(name) && this.hand.heap > LARGE) await this.renew();
    const job = this.job(name, fields, onOutput);
    if (busy && this.spare && LIGHT.has(name)) {
      this.spare.take(job);
      return job.done;
    }
    job.begin = () => {
      const most = seconds || this.seconds;
      job.timer = setTimeout(() => this.late(job, most), most * 1000);
    };
    this.hand.take(job);
    this.settle();
    const answer = await job.done;
    this.settle();
    if (this.hand.heap > LARGE) answer.large = this.hand.heap;
    return answer;
  }

  late(job, seconds) {
    if (this.hand.job !== job) return;
    const message = `this took longer than ${seconds} s, the limit of `
      + "time, and was stopped";
    this.replace({ok: false, stopped: true, late: true, error: {message}});
  }

  // Returns candidates for the text up to character `at`: {from, list}.
  async complete({text = "", at = text.length}) {
    const answer = await this.send("complete", {text: text.slice(0, at)});
    answer.from = at - (answer.word || "").length;
    answer.list = answer.list || [];
    return answer;
  }

  // Gives all Workers a file: a Uint8Array, or text.
  async put(name, bytes) {
    await this.ready;
    if (typeof bytes === "string") bytes = new TextEncoder().encode(bytes);
    const answer = await this.send("put", {name, bytes});
    if (answer.ok) {
      this.files.set(name, bytes);
      if (this.spare) this.spare.take(this.job("put", {name, bytes}));
    }
    return answer;
  }

  // Ends the running request; resolves when the next one can begin.
  async stop() {
    await this.ready;
    if (!this.hand.job) return;
    await this.replace({ok: false, stopped: true});
  }
}
// SPDX-License-Identifier: MIT
