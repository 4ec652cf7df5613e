// The workshop's Worker: the program as WebAssembly, with its files in memory,
// answers the page's requests (lua/cutelua/workshop/init.lua describes them).
// web/engine.js is the page's side.
//
// The page sends {start: {program: URL or null if it is in this text, module,
// base, threads}} and then {id, ask: NAME, ...}. The Worker sends {ready: true,
// version, lua, threads, memory}, or {failed: message}; {id, out: text, fd: 1
// or 2} during a run; and {id, answer: {...}, heap: bytes of the program's
// memory}. With dead: true the program has ended. The Worker itself handles the
// requests `put` and `files`.
"use strict";
(() => {
const PAUSE = 50;        // ms of silence after which a line is sent at once
const LINES = 64;        // lines that are sent together otherwise
const MOST = 1 << 20;    // most bytes of output of one request
const ROOM = 1 << 16;    // most bytes that are decoded at once
const FOLDER = "/work";  // folder with the files that the page put

let program = null;      // the Module
let output = null;       // output of the running request

// ---- output ----

// Sends a request's output as text, several lines at a time. Counts the bytes
// that exceed the limit.
class Output {
  constructor(id) {
    this.id = id;
    this.left = MOST;
    this.dropped = 0;
    this.decoders = [];
    this.fd = 1;  // stream of the bytes that wait for decoding
    this.bytes = new Uint8Array(ROOM);
    this.used = 0;
    this.pieces = [];                   // [fd, text] that is not posted yet
    this.lines = 0;                     // lines posted since the last pause
    // times of the last output and of the last post to the page
    this.last = this.posted = -PAUSE;
  }

  write(fd, bytes) {
    const n = Math.min(bytes.length, this.left);
    this.left -= n;
    this.dropped += bytes.length - n;
    if (fd !== this.fd || this.used + n > ROOM) this.decode();
    this.fd = fd;
    if (n > ROOM) {
      this.add(fd, this.decoder(fd).decode(bytes.slice(0, n), {stream: true}));
    } else {
      this.bytes.set(bytes.subarray(0, n), this.used);
      this.used += n;
    }
    const now = performance.now();
    if (now - this.last >= PAUSE) this.lines = 0;
    this.last = now;
    if (now - this.posted >= PAUSE
        || this.lines < LINES && bytes[n - 1] === 10) this.post(now);
  }

  decoder(fd) {
    return this.decoders[fd] || (this.decoders[fd] = new TextDecoder());
  }

  decode() {
    const bytes = this.bytes.subarray(0, this.used);
    this.used = 0;
    if (bytes.length)
      this.add(this.fd, this.decoder(this.fd).decode(bytes, {stream: true}));
  }

  add(fd, text) {
    const last = this.pieces[this.pieces.length - 1];
    if (last && last[0] === fd) last[1] += text;
    else if (text) this.pieces.push([fd, text]);
  }

  // Sends a sentence from the Worker itself, as standard error.
  tell(text) {
    this.decode();
    this.add(2, text);
  }

  post(now = performance.now()) {
    this.decode();
    for (const [fd, text] of this.pieces)
      if (text) self.postMessage({id: this.id, out: text, fd});
    this.pieces = [];
    this.posted = now;
    this.lines++;
  }

  end() {
    this.decode();
    this.decoders.forEach((decoder, fd) => this.add(fd, decoder.decode()));
    if (this.dropped)
      this.tell(`\n... ${this.dropped} bytes more are not shown: `
        + `${MOST >> 20} MiB are kept of what a run prints\n`);
    this.post();
  }
}

// Replaces Emscripten's terminals, which send output line by line, by streams
// that send all written bytes at once.
function replaceStreams(fs) {
  for (const fd of [1, 2]) {
    const stream = fs.streams[fd];
    stream.tty = null;
    stream.stream_ops = {
      write(_, buffer, offset, length) {
        if (output && output.left)
          output.write(fd, new Uint8Array(buffer.buffer,
            buffer.byteOffset + offset, length));
        else if (output) output.dropped += length;
        return length;
      },
    };
  }
}

function noInput() {
  if (output && !output.asked)
    output.tell("cutelua: there is no standard input here, io.read gives "
      + "nil\n");
  if (output) output.asked = true;
  return null;
}

// ---- the program ----

async function start({program: url, module, base, threads}) {
  if (url) importScripts(url);
  program = await cutelua({
    noInitialRun: true,
    threads,
    stdin: noInput,
    mainScriptUrlOrBlob: url || undefined,
    locateFile: name => base + name,
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(module, imports).then(
        instance => done(instance, module),
        e => self.postMessage({failed: e.message}));
      return {};
    },
  });
  replaceStreams(program.FS);
  program.FS.mkdirTree(FOLDER);
  program.FS.chdir(FOLDER);
  const why = program.ccall("web_open", "number", [], []);
  if (why) throw new Error(program.UTF8ToString(why));
  const hello = asked({ask: "hello"});
  self.postMessage({ready: true, version: hello.version, lua: hello.lua,
    threads, memory: program.ccall("web_memory", "number", [], [])});
}

// Passes a request to the program and returns its answer.
function asked(request) {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = program._malloc(bytes.length + 1);
  if (!at)
    return wrong(`a request of ${bytes.length} bytes does not fit into memory`);
  program.HEAPU8.set(bytes, at);
  program.HEAPU8[at + bytes.length] = 0;
  try {
    return JSON.parse(program.UTF8ToString(program._web_ask(at)));
  } finally {
    program._free(at);
  }
}

function wrong(message) {
  return {ok: false, error: {message, text: message}};
}

// ---- files ----

const mine = new Map();  // files that the page put, with their times of writing

// Returns a file's path within FOLDER, or null if it is outside.
function inside(name) {
  const parts = String(name).split("/").filter(p => p !== "" && p !== ".");
  return parts.length && !parts.includes("..") ? parts.join("/") : null;
}

// Stores a file. `written`: whether a script in another Worker wrote it.
function put({name, bytes, written}) {
  const fs = program.FS, path = inside(name);
  if (!path) return wrong(`no name of a file: '${name}'`);
  try {
    const folder = path.replace(/[^/]*$/, "");
    if (folder) fs.mkdirTree(`${FOLDER}/${folder}`);
    fs.writeFile(`${FOLDER}/${path}`, bytes);
  } catch (e) {
    return wrong(`${path} of ${bytes.length} bytes cannot be kept: `
      + (e.errno ? "there is something else of that name"
                 : "there is no memory for it"));
  }
  if (written) return {ok: true};
  mine.set(path, +fs.stat(`${FOLDER}/${path}`).mtime);
  return /\.npy$/i.test(path) ? asked({ask: "npy", name: path}) : {ok: true};
}

// Returns the files that scripts wrote. These are the files that the page did
// not put, or that changed since.
function files() {
  const fs = program.FS, found = [];
  const walk = folder => {
    for (const name of fs.readdir(`${FOLDER}/${folder}`).sort()) {
      if (name === "." || name === "..") continue;
      const path = folder + name, {mode, mtime} = fs.stat(`${FOLDER}/${path}`);
      if (fs.isDir(mode)) walk(`${path}/`);
      else if (mine.get(path) !== +mtime)
        found.push({name: path, bytes: fs.readFile(`${FOLDER}/${path}`)});
    }
  };
  walk("");
  return {files: found};
}

// ---- asks ----

const OWN = {put, files};

// Returns the message for a crash of the program itself.
function ended(e) {
  if (e instanceof RangeError)
    return "this went deeper than the browser's stack: fewer calls in calls";
  const text = String(e && e.message || e);
  if (/out of memory|OOM|memory\.grow|allocation failed/i.test(text))
    return "not enough memory [out-of-memory]";
  return `the program ended: ${text}`;
}

self.onmessage = async ({data}) => {
  if (data.start) {
    try {
      await start(data.start);
    } catch (e) {
      self.postMessage({failed: String(e && e.message || e)});
    }
    return;
  }
  const {id, ...request} = data;
  output = new Output(id);
  let answer, dead = false;
  try {
    answer = (OWN[request.ask] || asked)(request);
    dead = answer.dead === true;
  } catch (e) {
    answer = wrong(ended(e));
    dead = true;
  }
  output.end();
  if (output.dropped) answer.dropped = output.dropped;
  output = null;
  const heap = dead ? 0 : program.ccall("web_heap", "number", [], []);
  self.postMessage({id, answer, dead, heap});
};
})();
// SPDX-License-Identifier: MIT
