// The extension: hands Lua documents to `cutelua lsp`, and its answers to
// VS Code. The server decides which documents use cute.
"use strict";

const vscode = require("vscode");
const {Client} = require("./client.js");

const SELECTOR = [{language: "lua", scheme: "file"},
                  {language: "lua", scheme: "untitled"}];
// A server that ends this often within a minute is not started again.
const MOST_ENDS = 4;

// ---- from the protocol to VS Code ----

function rangeOf(r) {
  return new vscode.Range(r.start.line, r.start.character, r.end.line,
                          r.end.character);
}

function locationOf(l) {
  return new vscode.Location(vscode.Uri.parse(l.uri), rangeOf(l.range));
}

function diagnosticOf(d) {
  const out = new vscode.Diagnostic(rangeOf(d.range), d.message,
                                    (d.severity || 1) - 1);
  out.code = d.code;
  out.source = d.source;
  out.relatedInformation = (d.relatedInformation || []).map((one) =>
    new vscode.DiagnosticRelatedInformation(locationOf(one.location),
                                            one.message));
  return out;
}

function hoverOf(h) {
  const text = new vscode.MarkdownString(h.contents.value);
  return new vscode.Hover(text, h.range && rangeOf(h.range));
}

function completionOf(c) {
  // The protocol counts kinds from 1.
  const item = new vscode.CompletionItem(c.label, c.kind && c.kind - 1);
  item.detail = c.detail;
  item.range = rangeOf(c.textEdit.range);
  item.insertText = c.textEdit.newText;
  return item;
}

function actionOf(a, diagnostics) {
  const action = new vscode.CodeAction(a.title, vscode.CodeActionKind.QuickFix);
  action.isPreferred = a.isPreferred;
  const at = rangeOf(a.diagnostics[0].range);
  action.diagnostics = diagnostics.filter((d) => d.source === "cutelua"
    && d.code === a.diagnostics[0].code && d.range.isEqual(at));
  action.edit = new vscode.WorkspaceEdit();
  for (const [uri, changes] of Object.entries(a.edit.changes)) {
    for (const c of changes) {
      action.edit.replace(vscode.Uri.parse(uri), rangeOf(c.range), c.newText);
    }
  }
  return action;
}

function hintOf(h) {
  const at = new vscode.Position(h.position.line, h.position.character);
  const hint = new vscode.InlayHint(at, h.label, h.kind);
  hint.tooltip = h.tooltip;
  hint.paddingRight = h.paddingRight;
  return hint;
}

// ---- the session ----

class Session {
  constructor(log) {
    this.log = log;
    this.ends = [];
    this.diagnostics = vscode.languages.createDiagnosticCollection("cutelua");
    this.changedHints = new vscode.EventEmitter();
    this.registered = [];
  }

  isOurs(document) { return vscode.languages.match(SELECTOR, document) > 0; }

  // Starts the server, and opens all documents.
  async start() {
    const settings = vscode.workspace.getConfiguration("cutelua");
    const program = settings.get("path") || "cutelua";
    const words = ["lsp", "--seconds", String(settings.get("seconds"))];
    if (settings.get("allowIo")) words.push("--allow", "io");
    const client = new Client(program, words, {
      log: (text) => this.log.append(text),
      ended: (message) => this.ended(program, message),
      "textDocument/publishDiagnostics": (p) => this.publish(p),
      "workspace/inlayHint/refresh": () => this.changedHints.fire(),
    });
    this.client = client;
    let result;
    try {
      result = await client.ask("initialize", {processId: process.pid,
        rootUri: null,
        capabilities: {workspace: {inlayHint: {refreshSupport: true}}}});
    } catch (e) {
      return;  // `ended` has reported the reason
    }
    if (this.client !== client) return;
    client.notify("initialized", {});
    this.ready = true;
    this.register(result.capabilities);
    for (const document of vscode.workspace.textDocuments) this.open(document);
  }

  ended(program, message) {
    this.clear();
    const now = Date.now();
    this.ends = this.ends.filter((at) => now - at < 60000).concat(now);
    this.log.appendLine(`${program} lsp: ${message}`);
    if (this.ends.length < MOST_ENDS && !/ENOENT|EACCES/.test(message)) {
      this.start();
      return;
    }
    vscode.window.showErrorMessage(`cutelua: '${program} lsp' does not run: `
      + `${message}. The setting cutelua.path names the program; the command `
      + "'cutelua: Restart the Server' tries again.");
  }

  // Forgets the server.
  clear() {
    this.client = undefined;
    this.ready = false;
    this.diagnostics.clear();
    for (const one of this.registered.splice(0)) one.dispose();
  }

  async restart() {
    const client = this.client;
    this.clear();
    this.ends = [];
    if (client) await client.stop();
    await this.start();
  }

  async dispose() {
    const client = this.client;
    this.clear();
    this.diagnostics.dispose();
    if (client) await client.stop();
  }

  // ---- documents ----

  open(document) {
    if (!this.ready || !this.isOurs(document)) return;
    this.client.notify("textDocument/didOpen", {textDocument: {
      uri: document.uri.toString(), languageId: document.languageId,
      version: document.version, text: document.getText()}});
  }

  change(event) {
    if (!this.ready || !this.isOurs(event.document)
        || event.contentChanges.length === 0) return;
    this.client.notify("textDocument/didChange", {
      textDocument: {uri: event.document.uri.toString(),
                     version: event.document.version},
      contentChanges: event.contentChanges.map((c) => ({
        range: {start: c.range.start, end: c.range.end}, text: c.text}))});
  }

  close(document) {
    if (!this.ready || !this.isOurs(document)) return;
    this.client.notify("textDocument/didClose",
                       {textDocument: {uri: document.uri.toString()}});
  }

  publish(p) {
    const document = vscode.workspace.textDocuments.find((one) =>
      one.uri.toString() === p.uri);
    const old = document && p.version !== undefined
      && p.version !== document.version;
    if (old) return;
    this.diagnostics.set(vscode.Uri.parse(p.uri),
                         p.diagnostics.map(diagnosticOf));
  }

  // ---- answers ----

  // Returns what `of` makes of the server's answer about a document; undefined
  // if there is none, or if the document changed meanwhile.
  async ask(method, document, token, params, of) {
    const version = document.version;
    let result;
    try {
      result = await this.client.ask(`textDocument/${method}`, {
        textDocument: {uri: document.uri.toString()}, ...params});
    } catch (e) {
      return undefined;
    }
    const late = token.isCancellationRequested || document.version !== version;
    return late || !result ? undefined : of(result);
  }

  // Registers a provider for each capability of the server.
  register(can) {
    const l = vscode.languages, add = (one) => this.registered.push(one);
    if (can.hoverProvider) {
      add(l.registerHoverProvider(SELECTOR, {
        provideHover: (document, position, token) => this.ask("hover", document,
          token, {position}, hoverOf)}));
    }
    if (can.definitionProvider) {
      add(l.registerDefinitionProvider(SELECTOR, {
        provideDefinition: (document, position, token) => this.ask("definition",
          document, token, {position}, locationOf)}));
    }
    if (can.completionProvider) {
      add(l.registerCompletionItemProvider(SELECTOR, {
        provideCompletionItems: (document, position, token) => this.ask(
          "completion", document, token, {position}, (list) =>
            new vscode.CompletionList(list.items.map(completionOf),
                                      list.isIncomplete))},
        ...can.completionProvider.triggerCharacters));
    }
    if (can.codeActionProvider) {
      add(l.registerCodeActionsProvider(SELECTOR, {
        provideCodeActions: (document, range, context, token) => this.ask(
          "codeAction", document, token,
          {range: {start: range.start, end: range.end},
           context: {diagnostics: []}}, (list) => list.map((one) =>
            actionOf(one, context.diagnostics)))},
        {providedCodeActionKinds: [vscode.CodeActionKind.QuickFix]}));
    }
    if (can.inlayHintProvider) {
      add(l.registerInlayHintsProvider(SELECTOR, {
        onDidChangeInlayHints: this.changedHints.event,
        provideInlayHints: (document, range, token) => this.ask("inlayHint",
          document, token, {range: {start: range.start, end: range.end}},
          (list) => list.map(hintOf))}));
    }
  }
}

let session;

async function activate(context) {
  const log = vscode.window.createOutputChannel("cutelua");
  session = new Session(log);
  const w = vscode.workspace;
  context.subscriptions.push(log,
    w.onDidOpenTextDocument((document) => session.open(document)),
    w.onDidChangeTextDocument((event) => session.change(event)),
    w.onDidCloseTextDocument((document) => session.close(document)),
    w.onDidChangeConfiguration((event) => event.affectsConfiguration("cutelua")
      && session.restart()),
    vscode.commands.registerCommand("cutelua.restart",
                                    () => session.restart()));
  await session.start();
}

function deactivate() { return session && session.dispose(); }

module.exports = {activate, deactivate};
// SPDX-License-Identifier: MIT
