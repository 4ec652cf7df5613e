// The workshop: wires the engine, the editor, the results and the shelf.
"use strict";
var workshop = (function () {
  var FIRST = "start.lua";
  // milliseconds from a key press to a live run (a run while typing)
  var LIVE_MS = 600;
  var LIVE_S = 2;     // seconds that a live run may take
  var LIMITS = [[10, "10 s"], [60, "60 s"], [300, "5 min"], [86400, "a day"]];
  var FRESH = 'local cute = require "cute"\n\n';
  var KEYS = [["Ctrl-Enter", "runs the script"], ["Ctrl-.", "stops it"],
    ["F6, Shift-F6", "to the next, the last pane"],
    ["Ctrl-Space", "lists what can follow, in the editor and at the prompt"],
    ["F1", "says what the name at the caret is"],
    ["Tab", "indents once you have typed; Escape, then Tab leaves the editor"],
    ["Ctrl-/", "makes lines a comment, and back"],
    ["Ctrl-F, Ctrl-G", "finds, and goes on finding"],
    ["Up, Down", "at the prompt: what was typed there before"],
    ["Up, Down, Left, Right", "in the kernel: from line to line, text to text"],
    ["Left, Right", "at the line between source and results: moves it"],
    ["?", "this list"]];

  function say(text) { el("status").textContent = text; }

  // ---- stored state ----

  var store = cuteShelf.store();
  var current = {name: FIRST};
  var drafts = store.get("drafts", {});

  function shelved(name) { return cuteShelf.shelved(name); }
  // Returns the script's name as in reports: Lua cuts names above 40 bytes.
  function baseName() {
    var name = current.name.replace(/[\x00-\x1f\x7f]|^.*\//g, "");
    var left = 39, size = new TextEncoder();
    if (size.encode(name).length <= 40) return name;
    return Array.from(name).filter(function (c) {
      return (left -= size.encode(c).length) >= 0; }).join("");
  }
  function keep() {
    var own = shelved(current.name), text = editor.text();
    var known = current.name in drafts;
    if (own && own.text == text) delete drafts[current.name];
    else drafts[current.name] = text;
    store.set("drafts", drafts);
    store.set("current", {name: current.name, words: el("words").value,
      seed: el("seed").value});
    el("revert").hidden = !own || own.text == text;
    if (known != current.name in drafts) shelf.own();
    if (store.broken) warn(store.broken);
  }
  var keeping;
  function changed(typed) {
    clearTimeout(keeping);
    if (typed) keeping = setTimeout(keep, 300);
    live(typed);
    el("words").placeholder = cuteShelf.hint(current.name, editor.text());
  }
  addEventListener("pagehide", function () { if (editor) keep(); });
  var warned = {};
  function warn(text) {
    if (!warned[text]) results.note(text);
    warned[text] = true;
  }

  // ---- the engine ----

  var running = false, state = "starting", engine;
  function failed(why) {
    return {ok: false, error: {message: why && why.message || String(why)}};
  }
  function ask(name, fields) {
    return engine ? engine.ask(name, fields || {}) : Promise.resolve();
  }
  function onstate(now) {
    state = now;
    document.body.dataset.state = now;
    var busy = now == "busy" && running;
    el("stop").disabled = !busy;
    el("run").disabled = now == "failed" || running;
    if (now == "failed") {
      say("the program did not start");
      results.done(failed(engine && engine.reason || "the program did not"
        + " start: this browser may lack WebAssembly"));
    }
  }
  function busy(on) {
    running = on;
    document.body.classList.toggle("running", on);
    el("stop").disabled = !on;
    el("run").disabled = on || state == "failed";
  }
  // Runs a request. The results pane shows its output and its answer. A step of
  // a lesson shows them, too: onout receives the output.
  async function during(title, name, fields, onout) {
    if (running) return {ok: false, error: {message: "something runs"}};
    busy(true);
    results.begin(title);
    say("running " + title);
    if (el("lesson").hidden) goRoom("results");
    var started = performance.now(), answer;
    var clock = setInterval(function () {
      say("running " + title + ", " + results.seconds(
        (performance.now() - started) / 1000));
    }, 1000);
    try {
      answer = await engine.ask(name, fields, function (text, fd) {
        results.out(text, fd);
        if (onout) onout(text, fd);
      });
    } catch (e) { answer = failed(e); }
    clearInterval(clock);
    busy(false);
    results.done(answer);
    after(answer);
    return answer;
  }
  // Updates the page after a run.
  async function after(answer) {
    editor.check();
    if (answer.stopped) return;
    silent(answer);
    var got = await ask("files").catch(function () {});
    if (got && got.files) shelf.wrote(got.files);
    if (answer.seconds < 1) results.costs();
  }
  // A kernel's file launches nothing when it runs. Shows the scripts that
  // launch its kernel.
  function silent(answer) {
    var users = cuteShelf.users(current.name);
    if (!/^kernels\//.test(current.name) || !el("lesson").hidden || answer.page
        || !users.length) return;
    var note = make("div", "dim", "A kernel is launched by scripts: ");
    users.forEach(function (name) {
      var b = note.appendChild(make("button", "", name));
      b.onclick = function () {
        open({name: name, text: shelved(name).text}); };
    });
    results.add(note);
  }
  // Returns the run to start as {title, fields}. If a field of the form is
  // wrong, returns {error, at: that field}.
  function request() {
    var w = cuteShelf.words(el("words").value);
    var s = cuteShelf.seed(el("seed").value);
    if (w.error || s.error)
      return {error: w.error || s.error, at: w.error ? "words" : "seed"};
    var fields = {name: current.name, text: editor.text(), words: w.words};
    if (s.seed !== undefined) fields.seed = s.seed;
    return {title: [current.name].concat(w.words).join(" "), fields: fields};
  }
  async function run() {
    if (running) return;
    keep();
    var r = request();
    if (r.error) {
      el(r.at).focus();
      return say(r.error);
    }
    leave();
    // A narrow window's shelf covers the editor, where reports appear.
    if (!wide()) shelfOpen(false);
    await quiet();
    var answer = await during(r.title, "run", r.fields);
    slow = answer.stopped ? slow : answer.seconds > LIVE_S;
    return answer;
  }
  function stop() {
    if (!running) return;
    say("stopping");
    return engine.stop();
  }

  // ---- a run while typing ----

  var trying = null;  // promise of the live run in progress
  var slow = false;   // whether the last live run exceeded LIVE_S
  var later;
  // Cancels a planned live run, and ends the running one.
  async function quiet() {
    clearTimeout(later);
    if (!trying) return;
    engine.stop();
    await trying;
  }
  function live(typed) {
    quiet();
    if (!typed || !el("live").checked || !el("lesson").hidden) return;
    if (slow) say("this takes longer than " + LIVE_S + " s: Run runs it");
    else later = setTimeout(attempt, LIVE_MS);
  }
  async function attempt() {
    await trying;
    var r = request();
    if (running || trying || r.error || !engine) return;
    trying = once(r);
    await trying;
    trying = null;
  }
  // Runs once; shows the results unless the run was stopped.
  async function once(r) {
    var said = [], answer, wrong = await ask("syntax", {text: r.fields.text,
      name: r.fields.name}).catch(failed);
    if (!wrong || wrong.message || wrong.error
        || editor.text() != r.fields.text) return;
    try {
      answer = await engine.ask("run", r.fields, function (text, fd) {
        said.push([text, fd]); }, LIVE_S);
    } catch (e) { answer = failed(e); }
    if (answer.late) {
      slow = true;
      say("stopped after " + LIVE_S + " s: Run runs all of it");
    }
    if (answer.stopped || answer.busy || running) return;
    results.begin(r.title, true);
    said.forEach(function (s) { results.out(s[0], s[1]); });
    results.done(answer, true);
    var got = await ask("files").catch(function () {});
    if (got && got.files) shelf.wrote(got.files);
  }

  // ---- the prompt ----

  var history = store.get("history", []), at = history.length, line;
  // Shows the previous or next input of the history. After the last comes an
  // empty line.
  function older(by) {
    var to = at + by;
    if (to < 0 || to > history.length) return undefined;
    at = to;
    return history[at] || "";
  }
  async function prompt() {
    var text = line.text();
    if (!text.trim() || running) return;
    await quiet();
    busy(true);
    var answer, said = [];
    function out(t, fd) {
      if (said) said.push([t, fd]);
      else results.out(t, fd);
    }
    // Shows the input 30 ms later, or before the first output.
    var shown = setTimeout(begin, 30);
    function begin() {
      if (!said) return;
      results.asked(text);
      said.forEach(function (s) { results.out(s[0], s[1]); });
      said = null;
    }
    try { answer = await engine.ask("prompt", {text: text}, out); }
    catch (e) { answer = failed(e); }
    clearTimeout(shown);
    busy(false);
    if (answer.unfinished && line.text() == text) {
      line.set(text + "\n");
      return;
    }
    begin();
    line.set("");
    history = history.filter(function (h) { return h != text; })
      .concat(text).slice(-200);
    at = history.length;
    store.set("history", history);
    results.answered(answer);
    if (answer.error) say(answer.error.message.split("\n")[0]);
    line.focus();
  }

  // ---- scripts ----

  function freeName(name) {
    var base = name.replace(/\.lua$/, ""), n = 2;
    function numbered() { return base + "-" + n + ".lua"; }
    while (numbered() in drafts || shelved(numbered())) n++;
    return numbered();
  }
  // Opens an entry {name, text, words?, seed?}. The user's version of that name
  // takes precedence, except with `link`: then the script gets a new name.
  function open(entry, link) {
    clearTimeout(keeping);
    if (current.text !== undefined) keep();
    var name = entry.name;
    if (!shelved(name)) name = name.replace(/^.*[\\/]/, "") || "script.lua";
    var draft = drafts[name];
    if (link && (draft !== undefined && draft != entry.text
        || draft === undefined && shelved(name)
        && shelved(name).text != entry.text)) {
      if (draft !== undefined) name = freeName(name);
      draft = undefined;
    }
    current = {name: name, text: draft === undefined ? entry.text : draft};
    slow = false;
    leave();
    editor.set(current.text);
    el("name").textContent = name;
    document.title = name + " - cutelua workshop";
    el("words").value = entry.words || "";
    el("seed").value = entry.seed === undefined ? "" : entry.seed;
    results.nothing();
    keep();
    shelf.own();
    shelf.current(name);
    el("problem").textContent = "";
    goRoom("source");
  }
  function fresh() {
    var name = "new.lua" in drafts ? freeName("new.lua") : "new.lua";
    open({name: name, text: FRESH});
    editor.focus();
  }
  function forget(name) {
    delete drafts[name];
    store.set("drafts", drafts);
    if (name != current.name) return;
    var own = shelved(name);
    if (own) editor.cm.setValue(own.text);
    else {
      current.text = undefined;
      open(first());
    }
  }
  function first() {
    var s = shelved(FIRST) || SHELF.scripts[0];
    return {name: cuteShelf.nameOf(s), text: s.text};
  }
  function revert() {
    editor.cm.setValue(shelved(current.name).text);
    keep();
    editor.focus();
  }

  // ---- lessons ----

  var progress = {
    get: function (k) { return store.get("lesson." + k, null); },
    set: function (k, v) {
      store.set("lesson." + k, v);
      shelf.lessons();
    }};

  function lesson(name, step) {
    el("source").hidden = true;
    el("lesson").hidden = false;
    shelf.current(name);
    goRoom("source");
    results.nothing();
    cuteLessons.open(el("lesson-text"), name, {engine: engine, step: step,
      say: say, go: lesson, progress: progress,
      open: function (n, text) { open({name: n, text: text}, true); },
      run: function (fields, onout) {
        var rest = Object.assign({}, fields);
        delete rest.ask;
        return during(name, fields.ask || "run", rest, onout);
      },
      editor: function (e, text, opt) {
        return cuteEditor.small(e, text, Object.assign({ask: ask}, opt)); },
      link: function (text, n) { return link({name: n, text: text}); }});
    el("lesson").focus();
  }
  function leave() {
    if (el("lesson").hidden) return;
    el("lesson").hidden = true;
    el("source").hidden = false;
    shelf.current(current.name);
    editor.refresh();
  }

  // ---- links and files ----

  async function link(object) {
    return location.href.replace(/#.*$/, "") + await cuteLink(object);
  }
  async function share() {
    var object = {name: current.name, text: editor.text()};
    if (el("words").value) object.words = cuteShelf.words(el("words").value)
      .words;
    if (el("seed").value) object.seed = cuteShelf.seed(el("seed").value).seed;
    var url = await link(object), box = dialog("A link to this script");
    box.appendChild(make("p", "", "It carries the script itself: nothing is"
      + " sent anywhere. " + url.length + " characters"
      + (url.length > 8000 ? "; some programs cut links of that length." : ".")
    ));
    var field = box.appendChild(make("textarea", "mono"));
    field.value = url;
    field.readOnly = true;
    field.rows = 5;
    field.id = "link";
    field.setAttribute("aria-label", "link");
    var copy = box.appendChild(make("button", "main", "Copy"));
    copy.onclick = async function () {
      field.select();
      try {
        await navigator.clipboard.writeText(url);
        copy.textContent = "Copied";
      } catch (e) {
        copy.textContent = document.execCommand("copy") ? "Copied"
          : "Copy it by hand";
      }
    };
    copy.focus();
  }
  function dialog(title) {
    var d = el("talk");
    d.textContent = "";
    var close = d.appendChild(make("button", "close", "close"));
    close.onclick = function () { d.close(); };
    var h = d.appendChild(make("h2", "", title));
    h.id = "talk-title";
    d.showModal();
    return d;
  }
  function keys() {
    var t = dialog("Keys").appendChild(make("table"));
    KEYS.forEach(function (k) {
      var tr = t.appendChild(make("tr"));
      tr.appendChild(make("td")).appendChild(make("kbd", "", k[0]));
      tr.appendChild(make("td", "", k[1]));
    });
  }

  async function take(files) {
    for (var f of files) {
      if (/\.lua$/i.test(f.name)) {
        open({name: f.name, text: await f.text()}, true);
      } else if (/\.npy$/i.test(f.name)) await tensor(f);
      else tell({message: f.name + ": .npy files and .lua scripts are taken"});
    }
  }
  function tell(error) {
    results.answered({error: error});
    say(error.message.split("\n")[0]);
  }
  async function tensor(f) {
    var got;
    try {
      if (f.size > 1 << 29) throw new Error(f.name + " has "
        + (f.size / (1 << 20)).toFixed(0) + " MB: at most 512 MB are taken");
      got = await engine.put(f.name, new Uint8Array(await f.arrayBuffer()));
    } catch (e) { got = failed(e); }
    if (!got.ok) {
      tell(got.error || {message: f.name + " is no tensor"});
      return;
    }
    shelf.tensor(Object.assign({name: f.name}, got));
    results.note(f.name + " is the global " + got.global + ": " + got.dtype
      + " (" + [].concat(got.shape).join(",") + ")");
    say(f.name + " is the global " + got.global);
  }
  function dropping() {
    var deep = 0;
    function files(e) {
      return Array.from(e.dataTransfer ? e.dataTransfer.types : [])
        .indexOf("Files") >= 0;
    }
    addEventListener("dragenter", function (e) {
      if (files(e)) { deep++; el("drop").hidden = false; } });
    addEventListener("dragleave", function (e) {
      if (files(e) && --deep <= 0) { deep = 0; el("drop").hidden = true; } });
    addEventListener("dragover", function (e) {
      if (files(e)) e.preventDefault(); });
    addEventListener("drop", function (e) {
      deep = 0;
      el("drop").hidden = true;
      if (!files(e)) return;
      e.preventDefault();
      take(Array.from(e.dataTransfer.files));
    }, true);
  }

  // Performs the request in the page's address (#script=..., #lesson=...).
  // Returns false if there is none.
  async function follow() {
    var hash = location.hash, found = /^#(\w+)=(.*)$/.exec(hash), said;
    if (!found) return false;
    try { said = decodeURIComponent(found[2]); } catch (e) { said = found[2]; }
    if (found[1] == "script") {
      var name = said, s = shelved(name);
      if (s) {
        open({name: cuteShelf.nameOf(s), text: s.text});
        return true;
      }
      tell({message: "the link names " + name + ", which is not on the shelf"});
      return false;
    }
    if (found[1] == "lesson") {
      var parts = said.split("/");
      if (SHELF.lessons.some(function (l) { return l.name == parts[0]; })) {
        lesson(parts[0], parts[1]);
        return true;
      }
      tell({message: "the link names the lesson " + parts[0]
        + ", which there is not"});
      return false;
    }
    try {
      var object = await cuteUnlink(hash), line = "";
      if (Array.isArray(object.words)) line = object.words.map(function (w) {
        return /[\s"']|^$/.test(w) ? (w.indexOf('"') < 0 ? '"' + w + '"'
          : "'" + w + "'") : w; }).join(" ");
      open({name: object.name || "linked.lua", text: object.text, words: line,
        seed: object.seed}, true);
      return true;
    } catch (e) {
      tell({message: e.message});
      return false;
    }
  }

  // ---- panes ----

  function wide() { return innerWidth >= 1200; }
  function rooms() {
    document.querySelectorAll("#rooms [role=tab]").forEach(function (b) {
      b.setAttribute("aria-selected", b.dataset.room
        == document.body.dataset.room); });
  }
  function goRoom(name) {
    document.body.dataset.room = name;
    rooms();
    if (!wide() && name != "shelf") shelfOpen(false);
    if (name == "source" && editor) editor.refresh();
  }
  function shelfOpen(on) {
    document.body.classList.toggle("shelved", on);
    el("open-shelf").setAttribute("aria-expanded", on);
    if (wide()) store.set("shelf", on);
  }
  function hop(by) {
    var places = [
      ["shelf", function () { return el("find"); }],
      ["source", function () { return el("lesson").hidden ? editor
        : el("lesson"); }],
      ["results", function () { return document.querySelector(
        "#views [aria-selected=true]"); }],
      ["results", function () { return line; }]];
    var here = document.activeElement, i = here.closest("#shelf") ? 0
      : here.closest("#middle") ? 1 : here == el("prompt") ? 3
      : here.closest("#results") ? 2 : by > 0 ? 0 : 2;
    var n = places.length, next = places[(i + by + n) % n];
    if (next[0] == "shelf" && !el("shelf").offsetWidth && innerWidth >= 760)
      next = places[(i + 2 * by + n) % n];
    if (next == places[3]) results.show("output");
    goRoom(next[0]);
    next[1]().focus();
  }
  // Sets the width of the editor's pane, in percent of the page.
  function splits() {
    var bar = el("split"), part = store.get("part", 53.5);
    function set(p) {
      part = Math.min(80, Math.max(20, p));
      el("room").style.setProperty("--part", part);
      bar.setAttribute("aria-valuenow", Math.round(part));
    }
    function done() {
      store.set("part", part);
      editor.refresh();
    }
    set(part);
    bar.addEventListener("pointerdown", function (e) {
      bar.setPointerCapture(e.pointerId);
      bar.classList.add("held");
      e.preventDefault();
    });
    bar.addEventListener("pointermove", function (e) {
      if (!bar.classList.contains("held")) return;
      var left = el("middle").getBoundingClientRect().left;
      set(100 * (e.clientX - left) / (innerWidth - left));
    });
    bar.addEventListener("lostpointercapture", function () {
      bar.classList.remove("held");
      done();
    });
    bar.addEventListener("dblclick", function () { set(53.5); done(); });
    bar.addEventListener("keydown", function (e) {
      var by = {ArrowLeft: -2, ArrowRight: 2}[e.key];
      if (!by) return;
      set(part + by);
      done();
      e.preventDefault();
    });
  }
  function theme() {
    var root = document.documentElement;
    var dark = matchMedia("(prefers-color-scheme: dark)");
    try { root.dataset.theme = localStorage.getItem("theme") || ""; }
    catch (e) { root.dataset.theme = ""; }
    el("theme").onclick = function () {
      var now = root.dataset.theme || (dark.matches ? "dark" : "light");
      root.dataset.theme = now == "dark" ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch (e) {}
    };
  }

  // ---- all of it ----

  theme();
  var editor, results, shelf;
  function go(line) {
    leave();
    goRoom("source");
    editor.go(line, true);
  }
  editor = cuteEditor(el("editor"), {ask: ask, run: run, changed: changed,
    name: baseName,
    pointed: function (line) { results.pointed(line); },
    chosen: function (line) { results.chosen(line); },
    say: function (text) {
      el("problem").textContent = text;
      el("problem").className = text ? "bad" : "";
    }});
  line = cuteEditor.prompt(el("asked"), {ask: ask, run: prompt, older: older,
    none: function () { say("nothing follows"); }});
  results = cuteResults({ask: ask, editor: editor, say: say, go: go, room: goRoom,
    name: baseName, prompt: async function (text) {
      line.set(text);
      await prompt();
      results.show("drawn");
    }});
  shelf = cuteShelf(el("shelf"), {open: open, lesson: lesson, fresh: fresh,
    forget: forget, take: take, store: store,
    solved: function (l) {
      return cuteLessons.solved(progress, l); }});

  document.querySelectorAll(".jump").forEach(function (a) {
    a.onclick = function (e) {
      e.preventDefault();
      goRoom(a.hash.slice(1));
      if (a.hash == "#source") (el("lesson").hidden ? editor : el("lesson"))
        .focus();
      else document.querySelector("#views [aria-selected=true]").focus();
    };
  });
  el("run").onclick = run;
  el("stop").onclick = stop;
  el("share").onclick = share;
  el("save").onclick = function () {
    cuteShelf.download(current.name, editor.text(), "text/x-lua"); };
  el("keys").onclick = keys;
  el("revert").onclick = revert;
  el("leave").onclick = leave;
  el("words").oninput = el("seed").oninput = function () { changed(true); };
  [el("words"), el("seed")].forEach(function (e) {
    e.addEventListener("keydown", function (k) {
      if (k.key == "Enter") run(); }); });
  el("open-shelf").onclick = function () {
    shelfOpen(!document.body.classList.contains("shelved")); };
  el("rooms").addEventListener("click", function (e) {
    var b = e.target.closest("[role=tab]");
    if (b) goRoom(b.dataset.room);
  });
  document.addEventListener("keydown", function (e) {
    if (e.key == "F6") { e.preventDefault(); hop(e.shiftKey ? -1 : 1); }
    else if (e.key == "." && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      stop();
    } else if (e.key == "Enter" && (e.ctrlKey || e.metaKey)
        && !e.defaultPrevented && !e.target.closest("#editor, #lesson")) run();
    else if (e.key == "?" && !e.target.closest(
        "input, textarea, select, [contenteditable]")) keys();
    else if (e.key == "Escape" && !wide()
        && document.body.classList.contains("shelved")) {
      shelfOpen(false);
      el("open-shelf").focus();
    }
  });
  dropping();
  splits();
  document.body.dataset.room = "source";
  shelfOpen(wide() && store.get("shelf", true));
  LIMITS.forEach(function (l) {
    var o = el("seconds").appendChild(make("option", "", l[1]));
    o.value = l[0];
  });
  el("live").checked = store.get("live", false);
  el("live").onchange = function () {
    store.set("live", el("live").checked);
    live(el("live").checked);
  };
  el("seconds").value = store.get("seconds", 60);
  el("seconds").onchange = function () {
    engine.seconds = +el("seconds").value;
    store.set("seconds", engine.seconds);
  };

  var last = store.get("current", null);
  var known = last && last.name && (drafts[last.name] !== undefined
    || shelved(last.name));
  open(known ? {name: last.name, text: drafts[last.name] !== undefined
    ? drafts[last.name] : shelved(last.name).text, words: last.words,
    seed: last.seed} : first());
  say("starting");
  engine = new Engine({seconds: +el("seconds").value,
    onstate: onstate});
  engine.ready.then(function (info) {
    el("memory").textContent = "and " + (info.memory / (1 << 30)).toFixed(
      info.memory % (1 << 30) ? 1 : 0) + " GiB";
    el("version").textContent = "cutelua " + info.version + ", "
      + info.threads + " thread"
      + (info.threads == 1 ? "" : "s");
    say("ready");
    editor.check();
  }).catch(function (e) { tell({message: e.message}); });
  follow();
  addEventListener("hashchange", follow);

  return {editor: editor, prompt: line, results: results, engine: engine, open: open,
    lesson: lesson,
    state: function () { return running ? "running"
      : state == "busy" ? "ready" : state; }};
})();
// SPDX-License-Identifier: MIT
