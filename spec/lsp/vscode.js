// vscode.js PROGRAM SCRIPT: runs the extension of editors/vscode with PROGRAM
// as its server. The module `vscode` is a stub, which rejects values that VS
// Code would reject. vscode_spec.lua passes SCRIPT. Prints "passed" at the
// end.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");

const [program, script] = process.argv.slice(2);
const PATIENCE = 60000;

// ---- the stub ----

class Position {
  constructor(line, character) {
    assert(Number.isInteger(line) && line >= 0, "a line");
    assert(Number.isInteger(character) && character >= 0, "a character");
    Object.assign(this, {line, character});
  }
  isEqual(p) { return p.line === this.line && p.character === this.character; }
}

class Range {
  constructor(a, b, c, d) {
    this.start = new Position(a, b);
    this.end = new Position(c, d);
  }
  isEqual(r) { return r.start.isEqual(this.start) && r.end.isEqual(this.end); }
}

class Uri {
  static parse(text) {
    const uri = new Uri();
    uri.text = new URL(text).href;
    return uri;
  }
  toString() { return this.text; }
}

class Location {
  constructor(uri, range) {
    assert(uri instanceof Uri && range instanceof Range);
    Object.assign(this, {uri, range});
  }
}

class Diagnostic {
  constructor(range, message, severity) {
    assert(range instanceof Range && typeof message === "string");
    assert([0, 1, 2, 3].includes(severity));
    Object.assign(this, {range, message, severity});
  }
}

class DiagnosticRelatedInformation {
  constructor(location, message) {
    assert(location instanceof Location && typeof message === "string");
    Object.assign(this, {location, message});
  }
}

class MarkdownString {
  constructor(value) {
    assert.equal(typeof value, "string");
    this.value = value;
  }
}

class Hover {
  constructor(contents, range) {
    assert(contents instanceof MarkdownString && range instanceof Range);
    Object.assign(this, {contents, range});
  }
}

class CompletionItem {
  constructor(label, kind) {
    assert.equal(typeof label, "string");
    assert(kind >= 0 && kind <= 26);
    Object.assign(this, {label, kind});
  }
}

class CompletionList {
  constructor(items, isIncomplete) {
    assert(items.every((i) => i instanceof CompletionItem));
    assert.equal(typeof isIncomplete, "boolean");
    Object.assign(this, {items, isIncomplete});
  }
}

const CodeActionKind = {QuickFix: {value: "quickfix"}};

class CodeAction {
  constructor(title, kind) {
    assert.equal(typeof title, "string");
    assert.equal(kind, CodeActionKind.QuickFix);
    Object.assign(this, {title, kind});
  }
}

class WorkspaceEdit {
  constructor() { this.list = []; }
  replace(uri, range, text) {
    assert(uri instanceof Uri && range instanceof Range);
    this.list.push({uri, range, text});
  }
}

class InlayHint {
  constructor(position, label, kind) {
    assert(position instanceof Position && [1, 2].includes(kind));
    Object.assign(this, {position, label, kind});
  }
}

class EventEmitter {
  constructor() {
    this.listeners = [];
    this.count = 0;
    this.event = (f) => {
      this.listeners.push(f);
      return {dispose() {}};
    };
  }
  fire(x) {
    this.count++;
    for (const f of this.listeners) f(x);
  }
}

const settings = {path: program, allowIo: false, seconds: 10};
const events = {}, providers = {}, shown = [], commands = {}, emitters = [];
const collection = new Map();
for (const name of ["OpenTextDocument", "ChangeTextDocument",
                    "CloseTextDocument", "ChangeConfiguration"]) {
  events[name] = new EventEmitter();
}

function provider(name, method) {
  return (selector, object, ...rest) => {
    assert(Array.isArray(selector) && typeof object[method] === "function");
    assert.equal(providers[name], undefined, "registered twice");
    providers[name] = {object, rest};
    return {dispose() { delete providers[name]; }};
  };
}

const vscode = {Position, Range, Uri, Location, Diagnostic, MarkdownString,
  DiagnosticRelatedInformation, Hover, CompletionItem, CompletionList,
  CodeAction, CodeActionKind, WorkspaceEdit, InlayHint,
  EventEmitter: class extends EventEmitter {
    constructor() {
      super();
      emitters.push(this);
    }
  },
  languages: {
    match: (selector, document) => selector.some((s) => s.language
      === document.languageId && document.uri.toString().startsWith(s.scheme
        + ":")) ? 10 : 0,
    createDiagnosticCollection: () => ({
      set: (uri, list) => {
        assert(list.every((d) => d instanceof Diagnostic));
        collection.set(uri.toString(), list);
      },
      clear: () => collection.clear(),
      dispose: () => collection.clear()}),
    registerHoverProvider: provider("hover", "provideHover"),
    registerDefinitionProvider: provider("definition", "provideDefinition"),
    registerCompletionItemProvider: provider("completion",
                                             "provideCompletionItems"),
    registerCodeActionsProvider: provider("action", "provideCodeActions"),
    registerInlayHintsProvider: provider("hints", "provideInlayHints"),
  },
  workspace: {
    textDocuments: [],
    getConfiguration: (name) => {
      assert.equal(name, "cutelua");
      return {get: (key) => {
        assert(key in settings, key);
        return settings[key];
      }};
    },
  },
  window: {
    createOutputChannel: () => ({append() {}, appendLine() {}, dispose() {}}),
    showErrorMessage: (text) => shown.push(text),
  },
  commands: {registerCommand: (name, f) => {
    commands[name] = f;
    return {dispose() {}};
  }},
};
for (const [name, emitter] of Object.entries(events)) {
  vscode.workspace["onDid" + name] = emitter.event;
}
const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? vscode
  : load(name, ...rest);

// ---- documents ----

function offset(text, p) {
  let at = 0;
  for (let i = 0; i < p.line; i++) at = text.indexOf("\n", at) + 1;
  return at + p.character;
}

class Document {
  constructor(uri, text, languageId) {
    Object.assign(this, {uri: Uri.parse(uri), text, languageId, version: 1});
  }
  getText() { return this.text; }
  replace(range, text) {
    this.text = this.text.slice(0, offset(this.text, range.start)) + text
      + this.text.slice(offset(this.text, range.end));
    this.version++;
    events.ChangeTextDocument.fire({document: this,
                                    contentChanges: [{range, text}]});
  }
}

function until(f, what) {
  const stop = Date.now() + PATIENCE;
  return new Promise((resolve, reject) => {
    (function again() {
      const found = f();
      if (found) resolve(found);
      else if (Date.now() > stop) reject(new Error("no " + what));
      else setTimeout(again, 5);
    })();
  });
}

const TOKEN = {isCancellationRequested: false};
const text = fs.readFileSync(script, "utf8");
const doc = new Document("file:///tmp/k%C3%A4rnel.lua", text, "lua");
const plain = new Document("file:///tmp/plain.lua", "local x = = 2\n", "lua");
const other = new Document("file:///tmp/x.json", "require 'cute'", "json");
const key = doc.uri.toString();

// Returns the position of the first occurrence of a word, or of its end.
function place(word, behind) {
  const before = doc.text.slice(0, doc.text.indexOf(word)
                                + (behind ? word.length : 0)).split("\n");
  return new Position(before.length - 1, before.at(-1).length);
}

// ---- tests ----

async function findings() {
  const found = await until(() => collection.get(key), "diagnostics");
  const line = place("s[w] = v - top").line;
  assert.equal(found.length, 1);
  assert.equal(found[0].range.start.line, line);
  assert.equal(found[0].severity, 0);
  assert.deepEqual([found[0].code, found[0].source],
                   ["race/smem/missing-barrier", "cutelua"]);
  assert.equal(found[0].relatedInformation[0].location.uri.toString(), key);
  assert.deepEqual(await until(() => collection.get(plain.uri.toString()),
                               "answer about a plain file"), []);
  assert.equal(collection.get(other.uri.toString()), undefined);
  return found;
}

async function answers() {
  const {object, rest} = providers.completion;
  assert.deepEqual(rest, [".", ":", "\"", "{"]);
  const at = place("cute.make_sm", true);
  const list = await object.provideCompletionItems(doc, at, TOKEN);
  const item = list.items.find((i) => i.label === "make_smem_tensor");
  assert.equal(doc.text.slice(offset(doc.text, item.range.start),
                              offset(doc.text, item.range.end)), "make_sm");
  assert.equal(item.insertText, "make_smem_tensor");
  assert.equal(item.kind, 4);  // a field

  const words = place("arch.thread_idx");
  const hover = await providers.hover.object.provideHover(doc,
    new Position(words.line, words.character + 7), TOKEN);
  assert.match(hover.contents.value, /thread_idx/);
  assert.equal(await providers.hover.object.provideHover(doc,
    new Position(0, 0), TOKEN), undefined);
  assert.equal(await providers.hover.object.provideHover(doc, words,
    {isCancellationRequested: true}), undefined);

  const use = place("k(cute");
  const location = await providers.definition.object.provideDefinition(doc,
    use, TOKEN);
  assert.deepEqual({...location.range.start}, {...place("k = cute.kernel")});
}

async function repair(found) {
  const actions = await providers.action.object.provideCodeActions(doc,
    found[0].range, {diagnostics: found}, TOKEN);
  assert(actions[0].isPreferred);
  assert.deepEqual(actions[0].diagnostics, found);
  for (const one of actions[0].edit.list) {
    assert.equal(one.uri.toString(), key);
    doc.replace(one.range, one.text);
  }
  await until(() => collection.get(key).length === 0, "repair");

  const hints = await until(() => emitters[0].count > 0, "inlay hints").then(
    () => providers.hints.object.provideInlayHints(doc,
      new Range(0, 0, 100, 0), TOKEN));
  const at = place("local s", true);
  const hint = hints.find((h) => h.position.isEqual(at));
  assert.match(hint.label, /^: \(?2\)?:/);
  const hover = await providers.hover.object.provideHover(doc,
    new Position(at.line, at.character - 1), TOKEN);
  assert.match(hover.contents.value, /smem/);

  // Without the inserted line, the race is back.
  const line = actions[0].edit.list[0].range.start.line;
  doc.replace(new Range(line, 0, line + 1, 0), "");
  assert.equal(doc.text, text);
  await until(() => collection.get(key).length === 1, "race");
}

// Kills the server repeatedly until the extension stops restarting it.
async function ends(client) {
  for (let i = 0; i < 3; i++) {
    const before = client();
    before.child.kill("SIGKILL");
    await until(() => client() && client() !== before && collection.get(key),
                "next server");
    assert.equal(shown.length, 0);
  }
  client().child.kill("SIGKILL");
  await until(() => shown.length === 1, "message");
  assert.match(shown[0], /cutelua\.path/);
  assert.equal(Object.keys(providers).length, 0);
  await commands["cutelua.restart"]();
  await until(() => collection.get(key), "diagnostics after a restart");

  settings.path = "/nowhere/cutelua";
  events.ChangeConfiguration.fire({affectsConfiguration: () => true});
  await until(() => shown.length === 2, "message about the path");
  assert.match(shown[1], /'\/nowhere\/cutelua lsp' does not run: .*ENOENT/);
  settings.path = program;
  await commands["cutelua.restart"]();
  await until(() => collection.get(key), "diagnostics after a setting");
}

// Tests servers whose output violates the protocol.
async function garbage({Client}) {
  for (const bytes of ["Content-Length: x\\r\\n\\r\\n",
                       "Content-Length: 99999999999\\r\\n\\r\\n", "\\r\\n\\r\\n"]) {
    let message;
    const client = new Client(process.execPath, ["-e",
      `process.stdout.write("${bytes}"); setInterval(() => {}, 1000)`],
      {ended: (text) => { message = text; }, log() {}});
    await assert.rejects(client.ask("initialize", {}));
    await until(() => message, "end");
  }
}

async function main() {
  const extension = require(path.resolve("editors/vscode/extension.js"));
  const client = require(path.resolve("editors/vscode/client.js"));
  const servers = [];
  const Client = client.Client;
  await garbage(client);
  client.Client = class extends Client {
    constructor(...words) {
      super(...words);
      servers.push(this);
    }
  };
  delete require.cache[path.resolve("editors/vscode/extension.js")];
  const watched = require(path.resolve("editors/vscode/extension.js"));
  assert.deepEqual(Object.keys(watched), Object.keys(extension));
  vscode.workspace.textDocuments.push(doc, plain, other);
  await watched.activate({subscriptions: []});
  const found = await findings();
  await answers();
  await repair(found);
  await ends(() => servers.at(-1).ended ? undefined : servers.at(-1));
  await watched.deactivate();
  assert(servers.every((one) => one.ended));
  console.log("passed");
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
// SPDX-License-Identifier: MIT
