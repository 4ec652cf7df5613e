// A client of the Language Server Protocol: starts a server, and exchanges
// requests and notifications with it over its standard input and output.
"use strict";

const {spawn} = require("node:child_process");

// The largest message that is read, in bytes.
const LARGEST = 64 << 20;

class Client {
  // events: ended(message), called once when the server has ended or could not
  // be started; log(text), with its standard error; handlers of the server's
  // notifications and requests by method.
  constructor(program, words, events) {
    this.events = events;
    this.pending = new Map();
    this.id = 0;
    this.bytes = Buffer.alloc(0);
    this.child = spawn(program, words, {stdio: "pipe"});
    this.child.on("error", (e) => this.end(e.message));
    this.child.on("close", (code, signal) => this.end(signal
      ? `it was ended by ${signal}` : `it ended with exit code ${code}`));
    this.child.stdout.on("data", (bytes) => this.receive(bytes));
    this.child.stderr.on("data", (bytes) => events.log(bytes.toString()));
    // A write to a server that has ended is an error of the stream; `close`
    // reports the end.
    this.child.stdin.on("error", () => {});
  }

  end(message) {
    if (this.ended) return;
    this.ended = true;
    for (const one of this.pending.values()) one.reject(new Error(message));
    this.pending.clear();
    this.events.ended(message);
  }

  write(message) {
    if (this.ended) return;
    const body = Buffer.from(JSON.stringify({jsonrpc: "2.0", ...message}));
    this.child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.child.stdin.write(body);
  }

  notify(method, params) { this.write({method, params}); }

  // Returns a promise of the result.
  ask(method, params) {
    if (this.ended) return Promise.reject(new Error("the server has ended"));
    const id = ++this.id;
    return new Promise((resolve, reject) => {
      this.pending.set(id, {resolve, reject});
      this.write({id, method, params});
    });
  }

  receive(bytes) {
    this.bytes = Buffer.concat([this.bytes, bytes]);
    for (;;) {
      const at = this.bytes.indexOf("\r\n\r\n");
      if (at < 0) return;
      const head = this.bytes.toString("latin1", 0, at);
      const size = Number(/^Content-Length: *(\d+)$/im.exec(head)?.[1]);
      if (!(size <= LARGEST)) {
        this.child.kill();
        return;
      }
      if (this.bytes.length < at + 4 + size) return;
      const body = this.bytes.toString("utf8", at + 4, at + 4 + size);
      this.bytes = this.bytes.subarray(at + 4 + size);
      this.take(JSON.parse(body));
    }
  }

  take(message) {
    const handler = this.events[message.method];
    if (message.method && message.id !== undefined) {
      if (handler) handler(message.params);
      this.write(handler ? {id: message.id, result: null}
        : {id: message.id, error: {code: -32601, message: "unknown method"}});
    } else if (message.method) {
      if (handler) handler(message.params);
    } else {
      const one = this.pending.get(message.id);
      this.pending.delete(message.id);
      if (!one) return;
      if (message.error) one.reject(new Error(message.error.message));
      else one.resolve(message.result);
    }
  }

  // Shuts the server down; kills it if that takes longer than a second.
  async stop() {
    if (this.ended) return;
    this.events.ended = () => {};
    const closed = new Promise((done) => this.child.on("close", done));
    const timer = setTimeout(() => this.child.kill("SIGKILL"), 1000);
    this.ask("shutdown").then(() => this.notify("exit"), () => {});
    await closed;
    clearTimeout(timer);
  }
}

module.exports = {Client};
// SPDX-License-Identifier: MIT
