// run.js CUTELUA.JS FILE... [--out FOLDER] [--threads N] -- ARGUMENT...: runs
// the program under node, with these files in its memory under their names.
// Files that it writes to /out are copied to FOLDER.
const fs = require("fs"), path = require("path");
const [program, ...rest] = process.argv.slice(2);
const cut = rest.indexOf("--"), words = rest.slice(cut + 1);
const files = rest.slice(0, cut);

function option(name) {
  const at = files.indexOf(name);
  return at < 0 ? null : files.splice(at, 2)[1];
}
const out = option("--out"), threads = Number(option("--threads"));

let memory = null;

// Collects bytes unchanged. By default, Emscripten would emulate a terminal.
function stream(fd) {
  const bytes = [];
  return {
    put: byte => { if (byte !== null) bytes.push(byte); },
    flush: () => fs.writeSync(fd, Buffer.from(bytes)),
  };
}
const streams = [stream(1), stream(2)];

require(path.resolve(program))({
  arguments: words,
  threads,
  preRun: [module => {
    memory = module.FS;
    memory.mkdir("/out");
    for (const file of files) {
      memory.mkdirTree(path.posix.dirname("/" + file));
      memory.writeFile("/" + file, fs.readFileSync(file));
    }
  }],
  stdin: () => null,
  stdout: streams[0].put,
  stderr: streams[1].put,
  onExit: () => {
    for (const s of streams) s.flush();
    if (out === null) return;
    for (const name of memory.readdir("/out"))
      if (name[0] !== ".")
        fs.writeFileSync(path.join(out, name),
                         memory.readFile("/out/" + name));
  },
});
// SPDX-License-Identifier: MIT
