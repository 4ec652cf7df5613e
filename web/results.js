// Results of runs and prompts: their output, the kernels beside the editor,
// pictures and timelines.
//
//     results = cuteResults({ask, name, editor, say, go, room, prompt})
//
// ask(name, fields) sends a request to the engine; name() returns the name of
// the script in the editor; editor is cuteEditor's result; say(text) sets the
// line at the foot of the page; go(line) shows a line of the script, room(name)
// shows another pane; prompt(text) runs the text.
//
// The result has functions. begin(title), out(text, fd) and done(answer) show a
// run; if `quiet` is true, they change neither the view nor the line at the
// foot. asked(text) and answered(answer) show an input of the prompt and its
// answer. pointed(line) and chosen(line) follow the editor.
"use strict";
var cuteResults = (function () {
  var MOST = 400000;  // most characters of output that are kept
  var BLOCK = 8000;   // most characters of one block of output
  var DRAWN = 30;     // milliseconds until new output is drawn
  var LISTED = 100;   // most faults that an opened fold shows
  var VIEWS = ["output", "kernel", "drawn", "timeline"];

  function plural(n, word) { return n + " " + word + (n == 1 ? "" : "s"); }
  function seconds(s) {
    return s < 1 ? Math.max(1, Math.round(1000 * s)) + " ms"
      : s.toFixed(s < 10 ? 2 : 1) + " s";
  }

  // ---- printed output ----

  function logOf(log) {
    var block = null, kept = 0, dropped = 0;
    // waiting: list of [text, fd] that is not drawn yet; length: its characters
    var waiting = [], length = 0, timer = null;
    function size(e) { return e.textContent.length; }
    function printed(e) { return /^(said|warned)$/.test(e.className); }
    // Removes the oldest output beyond the limit: whole lines, or part of a
    // line that is longer than the limit.
    function trim() {
      var note = log.querySelector(".dropped");
      while (kept > MOST && log.childNodes.length > (note ? 1 : 0)) {
        var oldest = note ? note.nextSibling : log.firstChild;
        var text = oldest.textContent, cut = kept - MOST;
        if (cut >= text.length || !printed(oldest)) {
          cut = text.length;
          if (oldest == block) block = null;
          oldest.remove();
        } else {
          cut = text.indexOf("\n", cut - 1) + 1 || cut;
          oldest.textContent = text.slice(cut);
        }
        kept -= cut;
        dropped += cut;
      }
      if (!dropped) return;
      if (!note) note = log.insertBefore(make("div", "dropped dim"),
        log.firstChild);
      note.textContent = dropped + " characters of output in front were "
        + "dropped";
    }
    // Appends text in blocks of lines, which the browser lays out separately.
    function append(text, fd) {
      var kind = fd == 2 ? "warned" : "said";
      for (var at = 0; at < text.length;) {
        if (!block || block.className != kind)
          block = log.appendChild(make("pre", kind));
        var cut = text.indexOf("\n", at + BLOCK) + 1 || text.length;
        block.appendChild(document.createTextNode(text.slice(at, cut)));
        kept += cut - at;
        if (size(block) > BLOCK && text[cut - 1] == "\n") block = null;
        at = cut;
      }
    }
    // Draws the waiting output, which has at most MOST characters.
    function draw() {
      waiting.forEach(function (piece) { append(piece[0], piece[1]); });
      waiting = [];
      length = 0;
      trim();
    }
    // Scrolls to the end repeatedly: the height of a block is only known once
    // it comes into view.
    function toEnd(times) {
      log.scrollTop = log.scrollHeight;
      if (times > 1) requestAnimationFrame(function () { toEnd(times - 1); });
    }
    // Draws after a short delay, together with all output until then.
    function soon() {
      if (timer) return;
      timer = setTimeout(function () {
        timer = null;
        draw();
        toEnd(4);
      }, DRAWN);
    }
    return {
      clear: function () {
        clearTimeout(timer);
        timer = block = null;
        waiting = [];
        log.textContent = "";
        length = kept = dropped = 0;
      },
      add: function (e) {
        draw();
        log.appendChild(e);
        kept += size(e);
        block = null;
        soon();
      },
      // Adds output, which is drawn together with what follows shortly.
      text: function (text, fd) {
        waiting.push([text, fd]);
        length += text.length;
        while (length - waiting[0][0].length >= MOST) {
          var first = waiting.shift()[0].length;
          length -= first;
          dropped += first;
        }
        soon();
      }};
  }

  // ---- pictures ----

  function panelsOf(data) {
    return Math.max.apply(null, data.panels.map(function (p) {
      return p.place ? p.place[1] : 1; }).concat(1));
  }
  function picture(data, title) {
    var figure = make("figure"), box = make("div", "drawn");
    if (title) figure.appendChild(make("figcaption", "", title));
    if (data.part) figure.appendChild(make("p", "dim", data.part));
    figure.appendChild(box);
    box.style.setProperty("--panels", panelsOf(data));
    cutePicture(box, data);
    return figure;
  }

  return function (host) {
    var log = logOf(el("log")), answer = null, pictures = [], at = 0;
    var view = null, times = {}, wanted = null;

    // ---- tabs ----

    function tab(v) { return document.querySelector("[aria-controls=" + v
      + "]"); }
    function show(v, focus) {
      VIEWS.forEach(function (x) {
        el(x).hidden = x != v;
        tab(x).setAttribute("aria-selected", x == v);
        tab(x).tabIndex = x == v ? 0 : -1;
      });
      if (focus) tab(v).focus();
      if (v == "drawn") drawPictures();
      if (v == "timeline") drawTimeline();
      if (v == "output") el("log").scrollTop = el("log").scrollHeight;
    }
    function shown() {
      return VIEWS.filter(function (x) { return !el(x).hidden; })[0];
    }
    el("views").addEventListener("click", function (e) {
      var b = e.target.closest("[role=tab]");
      if (b) show(b.getAttribute("aria-controls"));
    });
    el("views").addEventListener("keydown", function (e) {
      var d = {ArrowLeft: -1, ArrowRight: 1}[e.key];
      if (!d) return;
      var n = VIEWS.length;
      show(VIEWS[(VIEWS.indexOf(shown()) + d + n) % n], true);
      e.preventDefault();
    });
    function count(v, n) {
      var b = tab(v), mark = b.querySelector(".n");
      if (mark) mark.remove();
      if (n) b.appendChild(make("span", "n", n));
    }

    // ---- errors ----

    function mine(file) { return file == host.name(); }
    function lineButton(line) {
      var b = make("button", "", "line " + line);
      b.onclick = function () { host.go(line); };
      return b;
    }
    // Makes a collapsible list, whose items are drawn when it is first opened.
    function fold(title, list) {
      var d = make("details");
      d.appendChild(make("summary", "", title));
      d.addEventListener("toggle", function () {
        if (d.childNodes.length > 1) return;
        var ul = d.appendChild(make("ul"));
        list.slice(0, LISTED).forEach(function (n) {
          ul.appendChild(faultItem(n)); });
        if (list.length > LISTED) ul.appendChild(make("li", "dim",
          plural(list.length - LISTED, "more fault")));
      });
      return d;
    }
    function faultItem(n) {
      var li = make("li");
      if (n.line) li.appendChild(lineButton(n.line));
      li.appendChild(document.createTextNode(n.text.split("\n")[0]));
      if (n.rest && n.rest.length) li.appendChild(fold(n.rest.length
        + " more may follow from it", n.rest));
      return li;
    }
    // `notes` are the faulty kernel's reports, which have more details than the
    // error; the first one is the most important.
    function failure(error, notes) {
      var e = make("div", "error"), faults = error.kind == "kernel-fault"
        && notes && notes.length;
      e.setAttribute("role", "alert");
      if (error.text && !faults) e.appendChild(make("pre", "", error.text));
      else e.appendChild(make("span", "", error.message || "it failed"));
      if (error.hint && !error.text)
        e.appendChild(make("div", "dim", error.hint));
      if (faults) {
        e.appendChild(make("ul")).appendChild(faultItem(notes[0]));
        if (notes.length > 1) e.appendChild(fold(plural(notes.length - 1,
          "more fault"), notes.slice(1)));
      } else if (error.line && (!error.file || mine(error.file))) {
        e.insertBefore(lineButton(error.line), e.firstChild);
      }
      return e;
    }

    // ---- the kernels ----

    // Returns the reports of all kernels about lines of the script, without
    // duplicates.
    function notesOf(a) {
      var out = [], known = {};
      function ours(at) {
        return at && mine(a.page.files[at[0] - 1].name); }
      // Removes the position at the start of the text.
      function bare(text, at) {
        return text.replace(host.name() + ":" + at[1] + ": ", ""); }
      function add(note) {
        var id = note.line + note.text;
        if (!known[id]) out.push(known[id] = note);
      }
      ((a.page || {}).kernels || []).forEach(function (k) {
        k.notes.forEach(function (n) {
          var at = k.keys[n.key - 1], also = n.also && k.keys[n.also - 1];
          if (!ours(at)) return;
          add({line: at[1], kind: n.kind, text: bare(n.text, at),
            also: also && also[0] == at[0] ? also[1] : 0,
            rest: (n.rest || []).map(function (r) {
              var its = k.keys[r.key - 1];
              return ours(its) ? {line: its[1], text: bare(r.text, its)}
                : {text: r.text};
            })});
        });
      });
      var e = a.error;
      var told = e && (e.kind == "kernel-fault" && out.length
        || out.some(function (n) {
          return n.line == e.line || n.also == e.line; }));
      if (e && e.line && (!e.file || mine(e.file)) && !told)
        add({line: e.line, kind: "bad", text: e.message, hint: e.hint});
      return out;
    }
    // Removes the note that NVRTC is missing: a page can never use NVRTC.
    function tidy(k) {
      k.missing = k.missing.filter(function (m) {
        return m.indexOf("[no-nvrtc]") < 0; });
      return k;
    }
    function drawKernel() {
      var root = el("kernel"), p = answer && answer.page;
      root.textContent = "";
      view = null;
      count("kernel", p ? p.kernels.length : 0);
      if (p) p.kernels.forEach(tidy);
      if (!p || !p.kernels.length) {
        root.appendChild(make("p", "none", "A script that launches a kernel "
          + "has its CUDA C here, line by line, with tensors, layouts, "
          + "conflicts and an estimate."));
        heat();
        return;
      }
      var box = root.appendChild(make("div"));
      view = cutePage(box, p, {beside: true, view: "cu", kernel: at,
        shown: function (k, i) {
          // Another run has replaced this page's answer.
          if (!answer || answer.page != p) return;
          at = i;
          heat(k);
        },
        lit: function (place, stays) {
          host.editor.light(place && mine(place.file) ? place.line : 0, stays);
        },
        picture: async function (n) {
          var got = await host.ask("picture", {number: n});
          if (got && got.picture) return got.picture;
          throw new Error(got && got.error ? got.error.message
            : "something runs: ask again when it has ended");
        },
        costs: async function (i) {
          var got = await host.ask("costs", {kernel: i + 1});
          if (got && got.kernel) return tidy(got.kernel);
          throw new Error(got && got.error ? got.error.message : "");
        },
        go: function (place) {
          if (!place || !mine(place.file)) return false;
          host.go(place.line);
          return true;
        }});
    }

    function fileOf(at) { return answer.page.files[at[0] - 1].name; }
    el("elsewhere").onclick = function () {
      host.room("results");
      show("kernel", true);
      view.lines();
    };
    // Shows the chosen counter at the lines of the script.
    function heat(k) {
      var select = el("heat");
      var both = k ? cutePage.columns(k) : [[], {}];
      var own = k && k.keys.slice(0, k.lines).some(function (at) {
        return mine(fileOf(at)); });
      el("heat-label").hidden = !both[0].length || !own;
      el("elsewhere").hidden = !both[0].length || own;
      if (k && !own) el("elsewhere").textContent = "by line, in "
        + fileOf(k.keys[0]).replace(/^\[|\]$/g, "");
      select.textContent = "";
      both[0].forEach(function (c) {
        var o = make("option", "", c[1]);
        o.value = c[0];
        o.title = c[2];
        select.appendChild(o);
      });
      var names = both[0].map(function (c) { return c[0]; });
      select.value = [wanted, "conflicts", "waits"].concat(names).filter(
        function (x) { return names.indexOf(x) >= 0; })[0] || "";
      heatLines(k, both);
      select.onchange = function () {
        wanted = select.value;
        if (k) heatLines(k, both);
      };
    }
    function heatLines(k, both) {
      var out = {}, name = el("heat").value;
      var column = both[0].filter(function (c) { return c[0] == name; })[0];
      if (k) k.keys.slice(0, k.lines).forEach(function (at, i) {
        if (!mine(fileOf(at))) return;
        var c = k.counts[i + 1], x = c && c[name] || 0;
        out[at[1]] = {text: column ? cutePage.number(name, x) : "",
          part: column && x ? x / both[1][name] : 0,
          bad: name == "conflicts" && x > 0, colour: (i + 1) % 7,
          title: column && x ? x + " " + column[1] + ": " + column[2] : ""};
      });
      host.editor.heat(out);
    }

    // ---- pictures and time ----

    function drawPictures() {
      var root = el("drawn");
      if (root.dataset.drawn === String(pictures.length)) return;
      if (!pictures.length) {
        root.textContent = "";
        var none = root.appendChild(make("p", "none", "There is no picture yet:"
          + " cute.draw(x) puts one here, from the script or the prompt. x is a"
          + " layout, a tensor, a TiledMMA, a report of k:profile. "));
        var example = none.appendChild(make("button", "mono", "cute.draw "
          + '"(8,8):(8,1)"'));
        example.title = "asks this at the prompt";
        example.onclick = function () { host.prompt(example.textContent); };
      } else {
        for (var i = +root.dataset.drawn || 0; i < pictures.length; i++) {
          if (i == 0) root.textContent = "";
          root.appendChild(picture(pictures[i], pictures[i].title));
        }
      }
      root.dataset.drawn = pictures.length;
    }
    function addPictures(list) {
      pictures = pictures.concat(list || []);
      count("drawn", pictures.length);
      if (!el("drawn").hidden) drawPictures();
    }
    function clearPictures() {
      pictures = [];
      el("drawn").dataset.drawn = "";
      el("drawn").textContent = "";
      count("drawn", 0);
    }
    // Returns the name of the timeline's kernel, or a menu of several.
    function kernels(p) {
      if (p.kernels.length == 1) return make("h2", "", p.kernels[0].name);
      var select = make("select");
      select.setAttribute("aria-label", "kernel");
      p.kernels.forEach(function (k, i) {
        var o = select.appendChild(make("option", "", k.name + (k.facts.length
          ? ", grid " + k.facts[1][1] : "")));
        o.value = i;
        o.disabled = k.failed;
      });
      select.value = at;
      select.onchange = function () {
        view.show(+select.value);
        drawTimeline();
      };
      return select;
    }
    // Draws the timeline again when the pane's width changes.
    var drawnWidth = 0;
    new ResizeObserver(function () {
      var root = el("timeline"), width = root.clientWidth;
      if (!width || width == drawnWidth || !times[at]) return;
      root.dataset.kernel = "";
      drawTimeline();
    }).observe(el("timeline"));
    async function drawTimeline() {
      var root = el("timeline"), p = answer && answer.page;
      var k = p && p.kernels[at], id = at;
      if (!k || k.failed) {
        root.textContent = "";
        root.dataset.kernel = "";
        root.appendChild(make("p", "none", "What each warp of a kernel does "
          + "when: run a script that launches one."));
        return;
      }
      if (root.dataset.kernel === String(at)) return;
      root.dataset.kernel = at;
      drawnWidth = root.clientWidth;
      root.textContent = "";
      root.appendChild(make("p", "none", "reckoning the time of " + k.name
        + " ..."));
      var mineAnswer = answer;
      var got = times[id] || await host.ask("timeline", {kernel: id + 1})
        .catch(function (e) { return {ok: false, error: {message: e.message}};
        }) || {ok: false, error: {message: "something runs: ask again when it"
        + " has ended"}};
      if (mineAnswer != answer || id != at) return;
      root.textContent = "";
      if (got.ok === false || got.stopped) {
        root.dataset.kernel = "";
        root.appendChild(kernels(p));
        root.appendChild(got.stopped ? make("p", "none", "stopped")
          : failure(got.error || {}));
        return;
      }
      times[id] = got;
      root.appendChild(kernels(p));
      got.picture.wide = Math.max(240, Math.min(1200,
        root.clientWidth - 150));
      root.appendChild(picture(got.picture));
      root.appendChild(make("pre", "scroll", got.text));
    }

    // ---- a run ----

    function summary(a) {
      var out = [], p = a.page || {kernels: []}, told = 0, c = 0;
      var launched = p.kernels.filter(function (k) { return !k.failed; });
      p.kernels.forEach(function (k) {
        k.notes.forEach(function (n) { if (n.kind == "bad") told++; });
        Object.keys(k.counts).forEach(function (key) {
          c += k.counts[key].conflicts || 0; });
      });
      if (a.stopped) out.push("stopped");
      else out.push(a.ok ? "done" : "failed");
      if (a.seconds !== undefined) out.push("in " + seconds(a.seconds));
      var text = out.join(" ");
      if (launched.length) text += ", " + plural(launched.length, "kernel");
      if (told && launched.length) text += ", " + plural(told, "report");
      if (c) text += ", " + plural(c, "bank conflict");
      if (a.pictures && a.pictures.length)
        text += ", " + plural(a.pictures.length, "picture");
      return text;
    }

    log.add(make("p", "none", "Run, or Ctrl-Enter, runs the script: here, in"
      + " this page, on cutelua's simulator. Nothing of it is sent anywhere."
      + " What it prints comes here; what is wrong with it stands at its"
      + " lines."));
    return {
      show: show,
      shown: shown,
      begin: function (title, quiet) {
        answer = null;
        at = 0;
        times = {};
        log.clear();
        clearPictures();
        el("timeline").dataset.kernel = "";
        el("log").setAttribute("aria-busy", true);
        host.editor.ran();
        drawKernel();
        log.add(make("div", "ran", title));
        if (quiet && shown() == "drawn") drawPictures();
        else if (!quiet && shown() != "kernel") show("output");
      },
      out: log.text,
      // Shows the answer of a run and, at the foot, one line about it.
      done: function (a, quiet) {
        answer = a;
        if (a.stopped) {
          log.add(make("div", "stopped", a.message || "stopped"));
        }
        var notes = notesOf(a);
        if (a.error) log.add(failure(a.error, notes));
        if (a.code && !a.error)
          log.add(make("div", "dim", "it ended with code " + a.code));
        if (a.page && a.page.left) log.add(make("div", "dim",
          a.page.left + " more launched, of which nothing is shown"));
        if (a.large) log.add(make("div", "dim", "the program has "
          + (a.large / (1 << 30)).toFixed(1) + " GiB of memory now, which it "
          + "gives back when the next script begins"));
        el("log").setAttribute("aria-busy", false);
        at = Math.max(0, ((a.page || {}).kernels || []).findIndex(function (k) {
          return k.notes.some(function (n) { return n.kind == "bad"; }); }));
        var text = summary(a);
        log.add(make("div", a.ok ? "ended" : "ended bad", text));
        drawKernel();
        host.editor.reports(notes);
        if (notes.length && !quiet) host.editor.reveal(notes[0].line);
        addPictures(a.pictures);
        if (shown() == "kernel" && !(a.page && a.page.kernels.length))
          show("output");
        if (shown() == "timeline") drawTimeline();
        host.say(text);
        return notes;
      },
      // Adds the prompt's input, and its answer.
      asked: function (text) {
        log.add(make("pre", "asked", text.split("\n").map(function (s, i) {
          return (i ? ">> " : "> ") + s; }).join("\n")));
        if (shown() != "output") show("output");
      },
      answered: function (a) {
        if (a.stopped) log.add(make("div", "stopped", a.message || "stopped"));
        if (a.error) log.add(failure(a.error));
        // The pictures and costs now show the kernels of the prompt's input.
        if (a.page) {
          answer = a;
          at = 0;
          times = {};
          el("timeline").dataset.kernel = "";
          drawKernel();
        }
        addPictures(a.pictures);
        (a.pictures || []).slice(0, 4).forEach(function (data) {
          log.add(picture(data, data.title)); });
      },
      note: function (text) { log.add(make("div", "dim", text)); },
      add: function (e) { log.add(e); },
      // Highlights the kernel's text for a line of the editor: pointed() for
      // the line under the pointer, chosen() for the line of the caret.
      pointed: function (line) {
        if (view && shown() == "kernel") view.light(host.name(), line);
      },
      chosen: function (line) {
        if (view && line && shown() == "kernel") view.pick(host.name(), line);
      },
      costs: function () { if (view) view.costs(); },
      nothing: function () { answer = null; clearPictures(); drawKernel(); },
      seconds: seconds};
  };
})();
// SPDX-License-Identifier: MIT
