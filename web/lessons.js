// The tutorial in the page: a lesson's text, its steps as small editors that
// run, exercises with checks.
//
//     cuteLessons.open(element, name, host)
//
// The workshop passes host with the fields engine; run({ask, ...}, onOutput),
// which returns a Promise of an answer that the results pane also shows;
// editor(element, text, {label, run}); progress {get(name), set(name, value)};
// go(name, step); say(text); and step, the block at which the lesson opens.
//
// Data stored for each lesson: texts: the changed texts, by block; good: the
// texts that ran; solved: solved exercises; hints: the number of hints shown.
"use strict";
var cuteLessons = (function () {
  var MOST = 100000;  // most characters of a step's output that are kept

  function button(text, press, name) {
    var b = make("button", name, text);
    b.type = "button";
    b.onclick = press;
    return b;
  }
  function remembered(progress, name) {
    return Object.assign({texts: {}, good: {}, solved: {}, hints: {}},
      progress.get(name));
  }
  // Returns how many exercises of a lesson of SHELF are solved.
  function solved(progress, lesson) {
    var known = remembered(progress, lesson.name).solved;
    return lesson.exercises.filter(function (e) { return known[e]; }).length;
  }

  // ---- all lessons ----

  function listOf(host, name) {
    var box = make("details", "lesson-list"), all = 0, done = 0;
    var list = make("ol");
    SHELF.lessons.forEach(function (l) {
      var n = solved(host.progress, l), item = make("li");
      all += l.exercises.length;
      done += n;
      var b = button(l.title, function () { host.go(l.name); });
      if (l.name == name) b.setAttribute("aria-current", "page");
      item.append(b, make("span", n == l.exercises.length ? "good" : "dim",
        n + " of " + l.exercises.length + (n == l.exercises.length ? " \u2713"
        : "")));
      list.append(item);
    });
    box.append(make("summary", "", "Lessons: " + done + " of " + all
      + " exercises solved"), list);
    return box;
  }
  function next(host, lesson) {
    var nav = make("nav", "lesson-next"), n = lesson.number;
    nav.setAttribute("aria-label", "lessons before and behind");
    [SHELF.lessons[n - 2], SHELF.lessons[n]].forEach(function (l, i) {
      if (l) nav.append(button((i ? "" : "\u2190 ") + l.number + ". " + l.title
        + (i ? " \u2192" : ""), function () { host.go(l.name); }));
    });
    return nav;
  }

  // ---- results of a step ----

  function values(text, shown) {
    var list = make("dl", "lesson-values"), lines = text.split("\n");
    shown.forEach(function (one) {
      list.append(make("dt", "mono", (lines[one.line - 1] || "")
        .replace(/\s*-->.*$/, "").trim()), make("dd", "mono", one.text));
    });
    return list;
  }
  // Makes a step of the lesson: an editor, its buttons, its results.
  function Step(all, index, title) {
    var block = all.lesson.blocks[index - 1], self = this;
    this.all = all;
    this.index = index;
    this.block = block;
    this.box = make("section", "lesson-step");
    this.box.id = "lesson-" + index;
    this.box.tabIndex = -1;
    this.box.setAttribute("aria-label", title);
    this.edit = make("div", "lesson-edit");
    this.bar = make("div", "lesson-bar");
    this.out = make("div", "lesson-out");
    this.out.setAttribute("role", "status");
    this.box.append(this.edit, this.bar, this.out);
    var known = all.known.texts[index];
    this.editor = all.host.editor(this.edit,
      known === undefined ? block.text : known,
      {label: title, run: function () { self.run(); }});
    this.reset = button("Reset", function () { self.set(block.text); });
    this.reset.title = "the text as the lesson has it";
    this.editor.cm.on("change", function () { self.changed(); });
  }
  Step.prototype.set = function (text) {
    this.editor.set(text);
    this.out.textContent = "";
    this.editor.focus();
  };
  Step.prototype.changed = function () {
    var text = this.editor.text(), same = text == this.block.text;
    if (same) delete this.all.known.texts[this.index];
    else this.all.known.texts[this.index] = text;
    this.reset.hidden = same;
    this.all.keep();
  };
  Step.prototype.say = function (text, kind) {
    this.out.append(make("div", "lesson-said " + (kind || ""), text));
  };
  // Appends output of the step's run; `fd` 2 is for warnings.
  Step.prototype.print = function (text, fd) {
    var last = this.out.lastElementChild, kind = fd == 2 ? "warn" : "plain";
    if (!last || last.dataset.kind != kind) {
      last = make("pre", "scroll " + kind);
      last.dataset.kind = kind;
      this.out.append(last);
    }
    var room = MOST - last.textContent.length;
    if (room > 0) last.append(text.length <= room ? text
      : text.slice(0, room) + "\n... more of it is in the results\n");
  };
  Step.prototype.draw = function (pictures) {
    var out = this.out;
    (pictures || []).forEach(function (data) {
      var e = make("figure", "drawn");
      if (data.title) e.append(make("figcaption", "mono", data.title));
      e.append(make("div"));
      out.append(e);
      cutePicture(e.lastChild, data);
    });
  };
  // Shows a sentence, and the details below it.
  Step.prototype.told = function (text) {
    var at = text.indexOf("\n"), box = make("div", "lesson-error",
      at < 0 ? text : text.slice(0, at));
    if (at >= 0)
      box.append(make("pre", "", text.slice(at + 1).replace(/^ {4}/gm, "")));
    this.out.append(box);
  };
  Step.prototype.fail = function (error) {
    var at = /-(\d+)\.lua$/.exec(error.file || "");
    var step = at ? this.all.steps[at[1]] : null;
    if (step && error.line) step.editor.fail(error.line, error.message);
    this.told(error.text || error.message);
    if (error.hint && !error.text) this.say(error.hint, "dim");
  };
  // Runs a request with these fields; `came` draws the answer.
  Step.prototype.ask = async function (fields, came) {
    var self = this;
    this.out.textContent = "";
    this.editor.clear();
    this.box.classList.add("busy");
    await this.all.drawn;
    var answer = await this.all.host.run(Object.assign({
      lesson: this.all.lesson.name, text: this.editor.text()}, fields),
      function (text, fd) { self.print(text, fd); });
    this.box.classList.remove("busy");
    if (answer.stopped) {
      this.say(answer.error ? answer.error.message : "Stopped.", "bad");
      return null;
    }
    came.call(this, answer);
    return answer;
  };

  // ---- Lua and pictures ----

  function Snippet(all, index, title) {
    Step.call(this, all, index, title);
    var self = this;
    this.bar.append(button("Run", function () { self.run(); }), this.reset);
    this.reset.hidden = this.editor.text() == this.block.text;
  }
  Snippet.prototype = Object.create(Step.prototype);
  Snippet.prototype.fields = function () {
    var good = this.all.known.good, before = [];
    for (var i = 1; i < this.index; i++)
      if (good[i] !== undefined) before.push({index: i, text: good[i]});
    return {ask: "block", index: this.index, before: before};
  };
  Snippet.prototype.came = function (text, answer) {
    var good = this.all.known.good;
    if (answer.error) return this.fail(answer.error);
    if (!answer.shown) return this.say("It left with exit code " + answer.code
      + ".", "dim");
    if (text == this.block.text) delete good[this.index];
    else good[this.index] = text;
    this.all.keep();
    if (answer.shown.length) this.out.append(values(text, answer.shown));
    this.draw(answer.pictures);
    if (!this.out.firstChild) this.say("Done.", "dim");
  };
  Snippet.prototype.run = function () {
    var text = this.editor.text();
    return this.ask(this.fields(), function (answer) {
      this.came(text, answer); });
  };
  // Draws the block's picture before the reader gets there.
  Snippet.prototype.show = async function () {
    var answer = await this.all.host.engine.ask("block", Object.assign(
      {lesson: this.all.lesson.name, text: this.block.text}, this.fields()));
    if (!this.out.firstChild && answer && answer.ok)
      this.draw(answer.pictures);
  };

  // ---- exercises ----

  function Exercise(all, index, title) {
    Step.call(this, all, index, title);
    var self = this, b = this.block;
    this.box.classList.add("lesson-exercise");
    this.head = make("h3", "", title);
    this.box.prepend(this.head);
    this.more = make("div", "lesson-more");
    this.hints = make("ol", "lesson-hints");
    this.hint = button("", function () { self.tip(); });
    this.solution = button("Solution", function () { self.solve(); });
    this.bar.append(button("Check", function () { self.run(); }, "main"),
      this.hint, this.solution, this.reset);
    this.more.append(this.hints);
    this.box.append(this.more);
    this.reset.hidden = this.editor.text() == b.text;
    for (var n = all.known.hints[b.name] || 0; n > 0; n--) this.tip(true);
    this.label();
  }
  Exercise.prototype = Object.create(Step.prototype);
  Exercise.prototype.label = function () {
    var all = this.block.hints.length, n = this.hints.children.length;
    var done = this.all.known.solved[this.block.name];
    this.hint.textContent = n < all ? "Hint " + (n + 1) + " of " + all
      : "No more hints";
    this.hint.disabled = n == all;
    this.head.classList.toggle("lesson-solved", !!done);
    this.head.textContent = this.box.getAttribute("aria-label")
      + (done ? ": solved" : "");
  };
  Exercise.prototype.tip = function (again) {
    var n = this.hints.children.length, item = make("li");
    if (n == this.block.hints.length) return;
    item.innerHTML = this.block.hints[n];
    this.hints.append(item);
    if (again) return;
    this.all.known.hints[this.block.name] = n + 1;
    this.all.keep();
    this.label();
    this.all.host.say("Hint " + (n + 1) + ": " + item.textContent);
  };
  Exercise.prototype.solve = function () {
    var old = this.more.querySelector(".lesson-solution");
    if (old) return old.remove();
    var box = make("div", "lesson-solution"), self = this, b = this.block;
    box.append(make("pre", "scroll", b.solution), button("Take it",
      function () {
        box.remove();
        self.set(b.solution);
      }));
    this.more.append(box);
    this.solution.setAttribute("aria-expanded", "true");
    box.tabIndex = -1;
    box.focus();
  };
  Exercise.prototype.run = function () {
    return this.ask({ask: "exercise", name: this.block.name}, this.came);
  };
  Exercise.prototype.came = function (answer) {
    if (answer.right) {
      this.say("Right.", "good");
      this.all.known.solved[this.block.name] = true;
      this.all.keep();
      this.all.list();
      this.label();
      return this.all.host.say("right");
    }
    var error = answer.error || {};
    var text = answer.message || error.text || error.message;
    this.told("Not yet: " + text);
    // Shows the message about this line, if there is one, else the first line.
    if (answer.line) {
      var there = text.split("\n").find(function (l) {
        return l.trim().indexOf(".lua:" + answer.line + ": ") > 0; });
      this.editor.fail(answer.line, there ? there.replace(/^\s*\S+: /, "")
        : text.split("\n")[0]);
    }
    this.all.host.say("not yet: " + text.split("\n")[0]);
  };

  // ---- a lesson ----

  var opened = 0;

  function fill(root, lesson, host) {
    var all = {lesson: lesson, host: host, steps: {},
      known: remembered(host.progress, lesson.name)};
    all.keep = function () { host.progress.set(lesson.name, all.known); };
    var list = make("div"), n = 0, pictures = [];
    all.list = function () {
      var open = list.firstChild && list.firstChild.open;
      list.replaceChildren(listOf(host, lesson.name));
      list.firstChild.open = !!open;
    };
    all.list();
    var body = make("article", "lesson");
    body.append(make("h2", "", lesson.number + ". " + lesson.title));
    root.replaceChildren(list, body, next(host, lesson));
    lesson.blocks.forEach(function (b, i) {
      if (b.kind == "text") {
        var said = make("div", "lesson-text");
        said.innerHTML = b.html;
        body.append(said);
        return;
      }
      // An editor must be in the page when it is created.
      var place = make("div");
      body.append(place);
      var step = b.kind == "exercise"
        ? new Exercise(all, i + 1, "Exercise " + b.name)
        : new Snippet(all, i + 1, b.kind == "draw" ? "Picture " + ++n
          : "Step " + ++n);
      place.append(step.box);
      step.editor.refresh();
      all.steps[i + 1] = step;
      if (b.kind == "draw") pictures.push(step);
    });
    return {all: all, pictures: pictures};
  }

  // Resolves when the lesson is complete, including its pictures.
  async function open(root, name, host) {
    var number = ++opened;
    root.replaceChildren(make("p", "dim", "opening the lesson"));
    var lesson = await host.engine.ask("lesson", {name: name});
    if (number != opened) return;
    if (!lesson.blocks) {
      root.replaceChildren(make("p", "bad", lesson.error.message));
      return;
    }
    var made = fill(root, lesson, host), step = made.all.steps[host.step];
    root.scrollTop = step ? step.box.getBoundingClientRect().top
      - root.getBoundingClientRect().top - 12 : 0;
    if (step) step.box.focus({preventScroll: true});
    made.all.drawn = (async function () {
      for (var i = 0; i < made.pictures.length && number == opened; i++)
        await made.pictures[i].show();
    })();
    return made.all.drawn;
  }

  return {open: open, solved: solved};
})();
// SPDX-License-Identifier: MIT
