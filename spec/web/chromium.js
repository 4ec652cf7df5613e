// chromium.js CHROMIUM [SERVER ARGUMENT...]: opens pages in a headless Chromium
// as a user has them, in real time and with real keys; spec/browser.lua calls
// it.
//
// Standard input is JSON, [{url, width, height, dark, script, png}, ...]: steps
// in one profile, in order. A step without url keeps the page; the url "<" is
// the previous step's value. script is the body of an async function that can
// use the page's names and
//   $(css) count(css) texts(css) click(css)
//   until(f, what)   waits until f() is true; raises "WHAT" after 20 s
//   press(keys)      "Tab", "Shift-Tab", "Control-Enter", or a text to type
// SERVER prints its address in its first line; a url that begins with "/" is on
// it. Pages can only reach this machine.
// Prints [{value, errors: [text], asked: [URL], including Workers'}, ...].
"use strict";
const {spawn} = require("child_process");
const fs = require("fs"), os = require("os"), path = require("path");

const HELPERS = `
  const $ = css => { const e = document.querySelector(css);
    if (!e) throw new Error("no element " + css); return e; };
  const all = css => [...document.querySelectorAll(css)];
  const count = css => all(css).length;
  const texts = css => all(css).map(e => e.textContent);
  const click = e => (typeof e == "string" ? $(e) : e).click();
  const sleep = ms => new Promise(f => setTimeout(f, ms));
  const until = async (f, what) => {
    for (const end = Date.now() + 20000; Date.now() < end; await sleep(10)) {
      const found = await f();
      if (found) return found;
    }
    throw new Error(what || String(f));
  };
  const press = keys => new Promise(f => { pressed = f; pressKeys(keys); });
`;

const CODES = {Tab: 9, Enter: 13, Escape: 27, " ": 32, ArrowLeft: 37,
  ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, F1: 112, F6: 117};
const MODIFIERS = {Alt: 1, Control: 2, Meta: 4, Shift: 8};

class Browser {
  constructor(program) {
    this.profile = fs.mkdtempSync(path.join(os.tmpdir(), "cutelua-"));
    this.process = spawn(program, ["--headless=new", "--no-sandbox",
      "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
      "--disable-extensions", "--disable-sync", "--disable-component-update",
      "--disable-background-networking", "--hide-scrollbars",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
      "--remote-debugging-pipe", "--user-data-dir=" + this.profile,
      "about:blank"], {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
    this.count = 0;
    this.waiting = new Map();
    this.errors = [];
    this.asked = [];
    let text = "";
    this.process.stdio[4].on("data", data => {
      const parts = (text + data).split("\0");
      text = parts.pop();
      for (const part of parts) this.hear(JSON.parse(part));
    });
  }

  send(method, params = {}, sessionId = this.session) {
    const id = ++this.count;
    this.process.stdio[3].write(JSON.stringify({id, method, params,
      sessionId}) + "\0");
    return new Promise((resolve, reject) => {
      this.waiting.set(id, m => m.error
        ? reject(new Error(`${method}: ${m.error.message}`))
        : resolve(m.result));
    });
  }

  hear({id, method, params, ...rest}) {
    if (id) {
      this.waiting.get(id)(rest);
      this.waiting.delete(id);
    } else if (method === "Page.loadEventFired") {
      if (this.loaded) this.loaded();
    } else if (method === "Runtime.exceptionThrown") {
      const e = params.exceptionDetails;
      this.errors.push(e.exception ? e.exception.description : e.text);
    } else if (method === "Runtime.consoleAPICalled"
               && params.type === "error") {
      this.errors.push(params.args.map(a => a.value || a.description)
        .join(" "));
    } else if (method === "Log.entryAdded" && params.entry.level === "error") {
      this.errors.push(`${params.entry.text} ${params.entry.url || ""}`);
    } else if (method === "Network.requestWillBeSent") {
      this.asked.push(params.request.url);
    } else if (method === "Target.attachedToTarget") {
      for (const begin of ["Network.enable", "Runtime.runIfWaitingForDebugger"])
        this.send(begin, {}, params.sessionId).catch(() => {});
    } else if (method === "Runtime.bindingCalled") {
      this.press(params.payload).then(() => this.send("Runtime.evaluate",
        {expression: "pressed()"}));
    }
  }

  async start() {
    const {targetInfos} = await this.send("Target.getTargets");
    const {targetId} = targetInfos.find(t => t.type === "page");
    this.session = (await this.send("Target.attachToTarget",
      {targetId, flatten: true})).sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network"])
      await this.send(domain + ".enable");
    await this.send("Runtime.addBinding", {name: "pressKeys"});
    await this.send("Target.setAutoAttach", {autoAttach: true, flatten: true,
      waitForDebuggerOnStart: true});
  }

  async press(keys) {
    const names = keys.split("-"), key = names.pop();
    const modifiers = names.reduce((sum, m) => sum + MODIFIERS[m], 0);
    if (!(key in CODES) && !names.length) {
      for (const c of keys) {
        await this.send("Input.dispatchKeyEvent", {type: "keyDown", key: c,
          text: c});
        await this.send("Input.dispatchKeyEvent", {type: "keyUp", key: c});
      }
      return;
    }
    const event = {key, modifiers,
      windowsVirtualKeyCode: CODES[key] || key.toUpperCase().charCodeAt(0)};
    const text = key === "Enter" && !modifiers ? {text: "\r"} : {};
    await this.send("Input.dispatchKeyEvent", {...event, ...text,
      type: text.text ? "keyDown" : "rawKeyDown"});
    await this.send("Input.dispatchKeyEvent", {...event, type: "keyUp"});
  }

  async step({url, width = 1300, height = 900, dark, script = "", png}) {
    await this.send("Emulation.setDeviceMetricsOverride", {width, height,
      deviceScaleFactor: 1, mobile: width < 500});
    await this.send("Emulation.setEmulatedMedia", {features: [
      {name: "prefers-color-scheme", value: dark ? "dark" : "light"}]});
    if (url) {
      // Goes to about:blank first: a new fragment alone would not load the
      // page.
      for (const to of ["about:blank", url]) {
        const loaded = new Promise(f => { this.loaded = f; });
        await this.send("Page.navigate", {url: to});
        await loaded;
      }
    }
    const found = await this.send("Runtime.evaluate", {awaitPromise: true,
      returnByValue: true,
      expression: `var pressed; (async () => {${HELPERS}${script}\n})()`});
    if (found.exceptionDetails)
      this.errors.push(found.exceptionDetails.exception.description);
    if (png) {
      const {data} = await this.send("Page.captureScreenshot");
      fs.writeFileSync(png, Buffer.from(data, "base64"));
    }
    return {value: found.result.value, errors: this.errors.splice(0),
            asked: this.asked.splice(0)};
  }

  async end() {
    const ended = new Promise(f => this.process.on("exit", f));
    this.send("Browser.close").catch(() => {});
    setTimeout(() => this.process.kill("SIGKILL"), 3000).unref();
    await ended;
    fs.rmSync(this.profile, {recursive: true, force: true, maxRetries: 5});
  }
}

// Starts a server. Returns {address, end()}.
async function serve([program, ...words]) {
  const server = spawn(program, words, {stdio: ["ignore", "pipe", "inherit"]});
  const line = await new Promise((resolve, reject) => {
    server.stdout.once("data", data => resolve(String(data)));
    server.once("exit", code => reject(new Error(`${program}: ${code}`)));
  });
  return {address: /http:[^ ]*(?=\/)/.exec(line)[0],
          end: () => server.kill()};
}

(async () => {
  const [program, ...words] = process.argv.slice(2);
  const steps = JSON.parse(fs.readFileSync(0, "utf8")), found = [];
  const server = words.length ? await serve(words) : null;
  const browser = new Browser(program);
  try {
    await browser.start();
    for (const step of steps) {
      if (step.url && step.url.startsWith("/"))
        step.url = server.address + step.url;
      if (step.url === "<") step.url = found[found.length - 1].value;
      found.push(await browser.step(step));
    }
  } finally {
    await browser.end();
    if (server) server.end();
  }
  process.stdout.write(JSON.stringify(found));
})().catch(e => {
  process.stderr.write(e.stack + "\n");
  process.exitCode = 1;
});
// SPDX-License-Identifier: MIT
