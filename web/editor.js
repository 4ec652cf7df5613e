// The editor: CodeMirror with Lua's colours, completion and descriptions of
// names from the program, errors and reports at their lines, and a column of
// counters.
//
//     editor = cuteEditor(element, {ask, run, name, changed, pointed, chosen,
//                                   say})
//
// The editor calls these functions:
//   ask(name, fields)  sends a request to the engine (engine.js)
//   run()              runs the script
//   name()             returns the script's name
//   changed(typed)     after an edit; `typed` is true if the user typed it
//   pointed(line), chosen(line)  after the pointer or the caret moved; `line`
//                      is the line's number in the text that ran last
//   say(text)          shows text below the editor
// cuteEditor.small(element, text, host) makes an editor for a step of a lesson.
// cuteEditor.prompt(element, host) makes the editor of the prompt.
"use strict";
var cuteEditor = (function () {
  var SYNTAX_MS = 350, ABOUT_MS = 450;
  var MOST_NOTES = 200;  // most notes shown at lines

  function options(text) {
    return {value: text || "", mode: "lua", theme: "cute", tabSize: 2,
      indentUnit: 2, lineNumbers: true, matchBrackets: true,
      inputStyle: "contenteditable", viewportMargin: 60, spellcheck: false,
      autocorrect: false, autocapitalize: false};
  }

  // Makes an editor that also works with screen readers.
  function codeMirror(root, more) {
    var cm = CodeMirror(root, more);
    cm.getInputField().setAttribute("role", "textbox");
    cm.getInputField().setAttribute("aria-multiline", "true");
    return cm;
  }

  // Tab indents after the user typed or selected something. If the editor has
  // just received the focus, or after Escape, Tab moves the focus to the next
  // element.
  function tabs(cm) {
    var armed = false;
    cm.on("blur", function () { armed = false; });
    cm.on("mousedown", function () { armed = true; });
    cm.on("change", function (_, change) {
      if (change.origin != "setValue") armed = true; });
    cm.addKeyMap({
      Tab: function () {
        if (!armed) return CodeMirror.Pass;
        if (cm.somethingSelected()) cm.indentSelection("add");
        else cm.execCommand("insertSoftTab");
      },
      "Shift-Tab": function () {
        if (!armed) return CodeMirror.Pass;
        cm.indentSelection("subtract");
      },
      Esc: function () {
        armed = false;
        return CodeMirror.Pass;
      }});
    var leave = {Tab: false, "Shift-Tab": false};
    cm.on("keydown", function () { cm.setOption("extraKeys",
      Object.assign({}, cm.own, armed ? {} : leave)); });
  }

  // ---- names ----

  // Returns the dotted name around a position, "cute.make_layout", or "".
  function nameAt(cm, at) {
    var token = cm.getTokenAt({line: at.line, ch: at.ch + 1});
    if (/comment|string/.test(token.type || "")) return "";
    var line = cm.getLine(at.line), end = at.ch, start = at.ch;
    while (/\w/.test(line.charAt(end))) end++;
    while (/[\w.:]/.test(line.charAt(start - 1))) start--;
    var name = line.slice(start, end);
    return /^[A-Za-z_][\w.:]*$/.test(name) ? name.replace(/:/g, ".") : "";
  }
  function words(cm, ask) {
    var tip = el("about"), timer, shown = "", asked = "";
    function hide() {
      clearTimeout(timer);
      tip.hidden = true;
      shown = asked = "";
    }
    async function show(at, missing) {
      var name = nameAt(cm, at);
      if (!name) return hide();
      if (name == shown) return;
      asked = name;
      var got = await ask("about", {name: name}).catch(function () {});
      if (asked != name) return;
      if (!got || !got.text) {
        if (!missing) return hide();
        got = {text: got && got.message || name + ": nothing is known"};
      }
      shown = name;
      tip.textContent = got.text;
      tip.hidden = false;
      var box = cm.charCoords(at, "window"), high = tip.offsetHeight;
      tip.style.left = Math.max(8, Math.min(box.left,
        innerWidth - tip.offsetWidth - 8)) + "px";
      tip.style.top = (box.bottom + high + 12 < innerHeight ? box.bottom + 4
        : Math.max(8, box.top - high - 4)) + "px";
    }
    cm.getWrapperElement().addEventListener("mousemove", function (e) {
      clearTimeout(timer);
      if (e.buttons || !e.target.closest(".CodeMirror-line")) return;
      var at = cm.coordsChar({left: e.clientX, top: e.clientY}, "window");
      if (at.outside || at.xRel > 0 && at.ch == cm.getLine(at.line).length)
        return;
      timer = setTimeout(function () { show(at); }, ABOUT_MS);
    });
    cm.getWrapperElement().addEventListener("mouseleave", function (e) {
      if (e.relatedTarget != tip) hide(); });
    tip.addEventListener("mouseleave", hide);
    cm.on("change", hide);
    cm.on("scroll", hide);
    cm.on("blur", hide);
    cm.on("keydown", function (_, e) { if (e.key != "F1") hide(); });
    return function () {
      var at = cm.getCursor(), line = cm.getLine(at.line);
      if (!/\w/.test(line.charAt(at.ch)) && at.ch > 0) at.ch--;
      show(at, true);
    };
  }
  function hints(ask, none) {
    return async function (cm) {
      var to = cm.getCursor(), text = cm.getValue();
      var got = await ask("complete", {text: text, at: cm.indexFromPos(to)});
      if (!got || !got.list || !got.list.length) {
        if (none) none();
        return null;
      }
      var typed = text.slice(got.from, cm.indexFromPos(to));
      var list = got.list.map(function (x) {
        return {text: x.text, render: function (item) {
          item.appendChild(make("span", "word", x.text));
          if (x.about) item.appendChild(make("span", "what", x.about));
        }};
      });
      var own = list.findIndex(function (x) { return x.text == typed; });
      var data = {from: cm.posFromIndex(got.from), to: to, list: list,
        selectedHint: Math.max(0, own)};
      CodeMirror.on(data, "select", function (x) { data.chosen = x.text; });
      data.complete = function () {
        return cm.getRange(data.from, cm.getCursor()) == data.chosen; };
      return data;
    };
  }
  // Completes names; calls none() if nothing can complete the text.
  function completes(cm, ask, none) {
    var hint = hints(ask, none);
    function complete(single) {
      cm.showHint({hint: hint, completeSingle: single,
        closeCharacters: /[\s()[\]{};>,"']/,
        extraKeys: {Tab: function (_, h) { h.pick(); },
          // After a complete word, Enter does the same as without a list.
          Enter: function (_, h) {
            if (!h.data.complete()) return h.pick();
            h.close();
            return CodeMirror.Pass;
          }}});
    }
    cm.on("inputRead", function (_, change) {
      var typed = change.text[change.text.length - 1];
      if (/[.:]$/.test(typed) && !cm.state.completionActive) {
        var token = cm.getTokenAt(cm.getCursor());
        if (!/comment|string|number/.test(token.type || "")) complete(false);
      }
    });
    return function () { complete(true); };
  }

  // ---- errors ----

  function underline(cm, line, kind) {
    var text = cm.getLine(line);
    if (text === undefined) return null;
    return cm.markText({line: line, ch: text.search(/\S|$/)},
      {line: line, ch: text.length || 1}, {className: kind});
  }
  function checks(cm, ask, host) {
    var timer, mark, last = "";
    function clear() {
      if (mark) { mark.mark.clear(); cm.setGutterMarker(mark.line, "reports",
        null); }
      mark = null;
    }
    function tell(text) {
      if (text != last) host.say(text);
      last = text;
    }
    async function check() {
      var text = cm.getValue();
      var got = await ask("syntax", {text: text, name: host.name()})
        .catch(function () {});
      if (!got || text != cm.getValue()) return;
      clear();
      if (!got.message) return tell("");
      var n = Math.min(Math.max((got.line || 1) - 1, 0), cm.lineCount() - 1);
      mark = {mark: underline(cm, n, "wrong"), line: cm.getLineHandle(n)};
      if (!mark.mark) mark = null;
      else cm.setGutterMarker(n, "reports", gutterMark("bad", got.message));
      tell("line " + (n + 1) + ": " + got.message);
    }
    cm.on("change", function () {
      clearTimeout(timer);
      timer = setTimeout(check, SYNTAX_MS);
    });
    return check;
  }
  function gutterMark(kind, text) {
    var e = make("span", "mark " + kind, kind == "bad" ? "\u25CF"
      : "\u25B2");
    e.title = text;
    return e;
  }

  // ---- reports at lines ----

  function reports(cm) {
    var made = [];
    function clear() {
      cm.operation(function () {
        made.forEach(function (m) { m(); });
        made = [];
      });
    }
    // Makes a widget of a note; all notes but the first are folded to one line.
    function widget(line, note, folded) {
      var lines = note.text.split("\n"), first = lines.shift();
      if (note.hint) lines.push(note.hint);
      if (note.rest && note.rest.length) lines.push(note.rest.length
        + " more may follow from it");
      var e = make("div", "note " + note.kind), rest = lines.join("\n");
      if (folded && rest) {
        var d = e.appendChild(make("details"));
        d.appendChild(make("summary", "", first));
        d.appendChild(make("div", "rest", rest));
        d.addEventListener("toggle", function () { w.changed(); });
      } else {
        e.appendChild(make("div", "", first));
        if (rest) e.appendChild(make("div", "rest", rest));
      }
      var close = make("button", "dismiss", "\u00D7");
      close.title = "hide";
      close.setAttribute("aria-label", "hide this report");
      e.insertBefore(close, e.firstChild);
      var w = cm.addLineWidget(line, e, {coverGutter: false,
        noHScroll: true});
      close.onclick = function () { w.clear(); };
      return w;
    }
    // Shows notes: {{line, kind, text, hint, also}}, lines counted from 1.
    function show(notes) {
      clear();
      var kinds = {};
      cm.operation(function () {
        notes.forEach(function (note, i) {
          var n = note.line - 1;
          if (i >= MOST_NOTES || n < 0 || n >= cm.lineCount()) return;
          var w = widget(n, note, i > 0), u = underline(cm, n,
            note.kind == "bad" ? "wrong" : "minded");
          made.push(function () { w.clear(); if (u) u.clear(); });
          if (kinds[n] != "bad") kinds[n] = note.kind;
          if (note.also && note.also <= cm.lineCount()
              && !notes.some(function (x) { return x.line == note.also; })) {
            var v = underline(cm, note.also - 1, "minded");
            made.push(function () { if (v) v.clear(); });
            kinds[note.also - 1] = kinds[note.also - 1] || "warn";
          }
        });
        Object.keys(kinds).forEach(function (n) {
          var line = cm.getLineHandle(+n);
          cm.setGutterMarker(line, "reports", gutterMark(kinds[n],
            "reported here"));
          made.push(function () { cm.setGutterMarker(line, "reports", null); });
        });
      });
    }
    return {show: show, clear: clear};
  }

  // Shows cells: {line: {text, share of the maximum, bad, colour}}.
  function heat(cm) {
    var lines = [];
    return function (cells) {
      cm.operation(function () {
        cm.clearGutter("heat");
        lines = Object.keys(cells);
        lines.forEach(function (n) {
          if (n < 1 || n > cm.lineCount()) return;
          var c = cells[n], e = make("span", "cell c" + c.colour
            + (c.bad ? " bad" : ""), c.text);
          if (c.part >= 0.05) e.style.setProperty("--w",
            Math.round(100 * c.part) + "%");
          if (c.title) e.title = c.title;
          cm.setGutterMarker(n - 1, "heat", e);
        });
      });
      cm.refresh();
    };
  }

  // Maps lines of the text to lines of the script that ran.
  function lineNumbers(cm) {
    var was = new Map();
    return {
      keep: function () {
        was = new Map();
        cm.eachLine(function (h) { was.set(h, was.size + 1); });
      },
      was: function (n) { return was.get(cm.getLineHandle(n)) || 0; },
      now: function (line) {
        var found = null;
        was.forEach(function (n, h) { if (n == line) found = h; });
        return found ? cm.getLineNumber(found) : line - 1;
      }};
  }

  // Lays an editor out again when its width changes, because the width of
  // reports is a number of pixels.
  function followWidth(cm, root) {
    var width = root.clientWidth;
    new ResizeObserver(function () {
      if (root.clientWidth == width) return;
      width = root.clientWidth;
      if (width) cm.refresh();
    }).observe(root);
  }

  // ---- the editor ----

  function editor(root, host) {
    var cm = codeMirror(root, Object.assign(options(), {
      gutters: ["reports", "CodeMirror-linenumbers", "heat"],
      screenReaderLabel: "Lua source. Tab indents once you have typed; Escape,"
        + " then Tab leaves."}));
    var about = words(cm, host.ask), complete = completes(cm, host.ask);
    cm.own = {"Ctrl-Enter": host.run, "Cmd-Enter": host.run, F1: about,
      "Ctrl-Space": complete, "Ctrl-/": "toggleComment",
      "Cmd-/": "toggleComment", "Ctrl-]": "indentMore",
      "Ctrl-[": "indentLess"};
    cm.setOption("extraKeys", cm.own);
    tabs(cm);
    followWidth(cm, root);
    var check = checks(cm, host.ask, host), told = reports(cm);
    var column = heat(cm), numbers = lineNumbers(cm), lit = [], quiet = false;

    function light(line, stays) {
      cm.operation(function () {
        lit.forEach(function (h) {
          cm.removeLineClass(h, "background", "lit");
          cm.removeLineClass(h, "background", "picked");
        });
        lit = [];
        var n = line ? numbers.now(line) : null;
        if (n === null || n < 0 || n >= cm.lineCount()) return;
        lit.push(cm.addLineClass(n, "background", stays ? "picked" : "lit"));
      });
    }
    cm.on("change", function (_, change) {
      host.changed(change.origin != "setValue"); });
    var over = -1;
    cm.getWrapperElement().addEventListener("mousemove", function (e) {
      var n = cm.lineAtHeight(e.clientY, "window");
      if (n != over) host.pointed(numbers.was(over = n));
    });
    cm.getWrapperElement().addEventListener("mouseleave", function () {
      host.pointed(0);
      over = -1;
    });
    cm.on("cursorActivity", function () {
      if (!quiet) setTimeout(function () {  // a click still moves the focus
        if (cm.hasFocus()) host.chosen(numbers.was(cm.getCursor().line));
      });
    });
    // Scrolls a line into view, now or once the editor is visible.
    var unseen = 0;
    function reveal(line) {
      unseen = cm.getWrapperElement().offsetParent ? 0 : line;
      cm.scrollIntoView({line: Math.max(0, numbers.now(line)), ch: 0}, 200);
    }
    return {
      cm: cm,
      text: function () { return cm.getValue(); },
      set: function (text) {
        told.clear();
        column({});
        light(0);
        cm.setValue(text);
        cm.clearHistory();
        numbers.keep();
        cm.scrollTo(0, 0);
        check();
      },
      ran: function () {
        unseen = 0;
        numbers.keep();
        told.clear();
        column({});
        light(0);
      },
      reports: told.show,
      heat: column,
      light: light,
      // Goes to a line of the text that ran.
      go: function (line, focus) {
        var n = Math.min(Math.max(numbers.now(line), 0), cm.lastLine());
        quiet = true;
        cm.setCursor({line: n, ch: Math.max(0, cm.getLine(n).search(/\S/))});
        quiet = false;
        var mid = cm.getScrollerElement().clientHeight / 2;
        var y = cm.heightAtLine(n, "local"), at = cm.getScrollInfo();
        if (y < at.top + 20 || y > at.top + at.clientHeight - 60)
          cm.scrollTo(null, y - mid);
        light(line, true);
        if (focus) cm.focus();
      },
      // Shows a line of the text that ran.
      reveal: reveal,
      check: check,
      focus: function () { cm.focus(); },
      refresh: function () {
        cm.refresh();
        if (unseen) reveal(unseen);
      }};
  }

  // Makes an editor as high as its text, with errors under their lines.
  editor.small = function (root, text, host) {
    var cm = codeMirror(root, Object.assign(options(text), {
      viewportMargin: Infinity, gutters: ["reports", "CodeMirror-linenumbers"],
      screenReaderLabel: host.label || "Lua"}));
    cm.getWrapperElement().classList.add("small");
    var about = words(cm, host.ask), told = reports(cm);
    cm.own = {"Ctrl-Enter": host.run, "Cmd-Enter": host.run, F1: about,
      "Ctrl-Space": completes(cm, host.ask)};
    cm.setOption("extraKeys", cm.own);
    tabs(cm);
    return {
      cm: cm,
      text: function () { return cm.getValue(); },
      set: function (s) { told.clear(); cm.setValue(s); },
      fail: function (line, message) {
        told.show([{line: line, kind: "bad", text: message}]); },
      clear: told.clear,
      focus: function () { cm.focus(); },
      refresh: function () { cm.refresh(); }};
  };
  // Makes an editor for a few lines without numbers. Enter calls host.run(),
  // Shift-Enter starts another line. host.older(by) returns the earlier or
  // later input, if any. host.none() is called if nothing can complete the
  // text.
  editor.prompt = function (root, host) {
    var cm = codeMirror(root, Object.assign(options(), {lineNumbers: false,
      viewportMargin: Infinity, placeholder: 'cute.draw "(8,8):(8,1)"',
      screenReaderLabel: "prompt"}));
    cm.getWrapperElement().classList.add("small");
    cm.getInputField().id = "prompt";
    function set(text) {
      cm.setValue(text);
      cm.execCommand("goDocEnd");
    }
    function older(by, edge) {
      return function () {
        var text = cm.getCursor().line == edge() ? host.older(by) : undefined;
        if (text === undefined) return CodeMirror.Pass;
        set(text);
      };
    }
    cm.setOption("extraKeys", {Enter: host.run,
      "Shift-Enter": "newlineAndIndent", Tab: false, "Shift-Tab": false,
      Up: older(-1, function () { return 0; }),
      Down: older(1, function () { return cm.lastLine(); }),
      F1: words(cm, host.ask), "Ctrl-Space": completes(cm, host.ask, host.none)});
    return {
      cm: cm,
      text: function () { return cm.getValue(); },
      set: set,
      focus: function () { cm.focus(); },
      refresh: function () { cm.refresh(); }};
  };
  editor.nameAt = nameAt;
  return editor;
})();
// SPDX-License-Identifier: MIT
