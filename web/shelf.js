// The shelf: lessons, scripts and kernels of the program, the user's scripts,
// and files that were dropped onto the page or written by a script.
//
//     shelf = cuteShelf(element, {open, lesson, fresh, forget, take, solved,
//                                 store})
//
// Its buttons call open({name, text}), lesson(name), fresh(), forget(name) and
// take([File]); solved(lesson of SHELF) returns the number of solved exercises;
// store is cuteShelf.store(). The result has functions: own() and lessons()
// redraw what is stored; current(name) marks an entry; tensor({name, dtype,
// shape, global}) and wrote([{name, bytes}]) add files.
"use strict";
var cuteShelf = (function () {
  var PREFIX = "workshop.";

  // Returns storage in this browser. If the browser stores nothing, values last
  // until the page closes, and `broken` is a sentence about that.
  function store() {
    var kept = {}, s = {broken: null};
    s.get = function (key, otherwise) {
      try {
        var text = key in kept ? kept[key] : localStorage.getItem(PREFIX + key);
        return text === null ? otherwise : JSON.parse(text);
      } catch (e) { return otherwise; }
    };
    s.set = function (key, value) {
      var text = JSON.stringify(value);
      try {
        localStorage.setItem(PREFIX + key, text);
        delete kept[key];
        s.broken = null;
      } catch (e) {
        kept[key] = text;
        s.broken = "This browser keeps nothing for this page: what is typed is"
          + " lost when it is closed.";
      }
    };
    try {
      localStorage.setItem(PREFIX + "here", "1");
    } catch (e) { s.set("here", 1); }
    return s;
  }

  function bytesOf(n) {
    return n < 1024 ? n + " bytes" : n < 1 << 20 ? (n / 1024).toFixed(0)
      + " KB" : (n / (1 << 20)).toFixed(1) + " MB";
  }

  // Downloads a file to the user's computer.
  function download(name, bytes, type) {
    var url = URL.createObjectURL(new Blob([bytes], {type: type
      || "application/octet-stream"}));
    var a = make("a");
    a.href = url;
    a.download = name.replace(/^.*[\\/]/, "");
    document.body.appendChild(a);
    a.click();
    a.remove();
    setTimeout(function () { URL.revokeObjectURL(url); }, 10000);
  }

  // Splits a line into words as a shell does: at blanks, except within quotes.
  // Returns {words} or {error}.
  function words(line) {
    var out = [], word = null, quote = null;
    for (var i = 0; i < line.length; i++) {
      var c = line.charAt(i);
      if (quote) {
        if (c == quote) quote = null;
        else word += c;
      } else if (c == '"' || c == "'") {
        quote = c;
        word = word || "";
      } else if (/\s/.test(c)) {
        if (word !== null) out.push(word);
        word = null;
      } else word = (word || "") + c;
    }
    if (quote) return {error: "arguments: " + quote + " is not closed"};
    if (word !== null) out.push(word);
    return {words: out};
  }
  // Parses a seed, 0 to 2^53; {} if the field is empty.
  function seed(text) {
    text = text.trim();
    if (!text) return {};
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(+text))
      return {error: "seed: " + text + ": an integer from 0 to 2^53 is needed"};
    return {seed: +text};
  }

  function draw(root, host) {
    var wanted = {scripts: SHELF.scripts, kernels: SHELF.kernels};
    var tensors = [];
    root.innerHTML = '<div class="find"><input type="search" id="find" '
      + 'aria-label="find on the shelf" placeholder="find ..."></div>'
      + '<div class="list" id="list"></div>';
    var list = root.querySelector("#list"), find = root.querySelector("#find");

    function group(title, id, open) {
      var d = make("details", "group"), s = make("summary", "", title);
      d.open = open;
      d.id = "group-" + id;
      d.appendChild(s);
      var ul = d.appendChild(make("ul"));
      list.appendChild(d);
      return ul;
    }
    function entry(ul, name, about, data, act) {
      var li = make("li"), b = make("button", "entry");
      b.appendChild(make("span", "name", name));
      if (about) b.appendChild(make("span", "about", about));
      Object.keys(data).forEach(function (k) { b.dataset[k] = data[k]; });
      b.title = about || name;
      b.onclick = act;
      li.appendChild(b);
      ul.appendChild(li);
      return li;
    }

    var lessons = group("Lessons", "lessons", true);
    // Draws the lessons with their numbers of solved exercises.
    function drawLessons() {
      lessons.textContent = "";
      SHELF.lessons.forEach(function (l) {
        var n = (l.exercises || []).length, solved = n && host.solved(l);
        entry(lessons, l.number + ". " + l.title, solved ? solved + " of " + n
          + " exercises solved" : null, {lesson: l.name}, function () {
            host.lesson(l.name); });
      });
      mark();
    }
    var own = group("Yours", "own", true);
    [["Scripts", "scripts", true], ["Kernels", "kernels", false]].forEach(
      function (g) {
        var ul = group(g[0], g[1], g[2]);
        wanted[g[1]].forEach(function (s) {
          var name = nameOf(s);
          entry(ul, name, s.about, {script: name}, function () {
            host.open({name: name, text: s.text}); });
        });
      });
    var files = group("Files", "files", true);

    // ---- yours ----

    function drawOwn() {
      own.textContent = "";
      var li = entry(own, "new script", null, {script: "+"}, host.fresh);
      li.classList.add("fresh");
      var drafts = host.store.get("drafts", {});
      Object.keys(drafts).sort().forEach(function (name) {
        var e = entry(own, name, shelved(name) ? "changed from the shelf's"
          : null, {draft: name}, function () {
            host.open({name: name, text: drafts[name]}); });
        var x = make("button", "drop-it", "\u00D7");
        x.title = x.ariaLabel = "forget " + name;
        x.onclick = function () { host.forget(name); drawOwn(); };
        e.appendChild(x);
      });
      mark();
    }

    // ---- files ----

    function drawFiles() {
      files.textContent = "";
      var label = make("label", "entry add", "add a .npy or .lua file");
      var input = make("input");
      input.type = "file";
      input.id = "files";
      input.multiple = true;
      input.onchange = function () {
        host.take(Array.from(input.files));
        input.value = "";
      };
      label.appendChild(input);
      files.appendChild(make("li")).appendChild(label);
      tensors.forEach(function (t) {
        var li = make("li", "tensor");
        li.appendChild(make("span", "name mono", t.global || t.name));
        li.appendChild(make("span", "about", t.error || (t.dtype + " ("
          + [].concat(t.shape).join(",") + "), of " + t.name)));
        if (t.error) li.classList.add("bad");
        files.appendChild(li);
      });
      if (!tensors.length) files.appendChild(make("li", "about",
        ".npy files dropped here become tensors, until the page is closed"));
      wrote.forEach(function (f) {
        entry(files, f.name, bytesOf(f.bytes.length) + ", written by the run: "
          + "download", {file: f.name}, function () {
            download(f.name, f.bytes); });
      });
    }
    var wrote = [];

    // ---- search, and the open entry ----

    find.oninput = function () {
      var w = find.value.toLowerCase().split(/\s+/);
      list.querySelectorAll(".group").forEach(function (g) {
        var any = false;
        g.querySelectorAll("li").forEach(function (li) {
          var text = li.textContent.toLowerCase();
          li.hidden = !w.every(function (x) { return text.indexOf(x) >= 0; });
          any = any || !li.hidden;
        });
        if (find.value) {
          if (g.dataset.was === undefined) g.dataset.was = g.open;
          g.open = any;
        } else if (g.dataset.was !== undefined) {
          g.open = g.dataset.was == "true";
          delete g.dataset.was;
        }
        g.hidden = !any && !!find.value;
      });
    };
    var current = null;
    function mark() {
      list.querySelectorAll(".entry").forEach(function (b) {
        var on = current && (b.dataset.script == current
          || b.dataset.lesson == current);
        if (on) b.setAttribute("aria-current", "true");
        else b.removeAttribute("aria-current");
      });
    }
    drawLessons();
    drawOwn();
    drawFiles();
    return {
      own: drawOwn,
      lessons: drawLessons,
      current: function (name) { current = name; mark(); },
      tensor: function (t) {
        tensors = tensors.filter(function (x) { return x.name != t.name; })
          .concat(t);
        drawFiles();
      },
      wrote: function (list) { wrote = list; drawFiles(); }};
  }
  // Returns the name of a shelf's entry: a script's file name, a kernel's path.
  function nameOf(s) { return s.path.replace(/^scripts\//, ""); }
  function shelved(name) {
    return SHELF.scripts.concat(SHELF.kernels).filter(function (s) {
      return nameOf(s) == name || nameOf(s) == name + ".lua"; })[0];
  }
  // Returns the scripts that use a kernel of the shelf.
  function users(name) {
    var word = "kernels." + name.replace(/^kernels\/|\.lua$/g, "");
    return SHELF.scripts.filter(function (s) {
      return s.text.indexOf('"' + word + '"') >= 0; }).map(nameOf);
  }
  // Returns the placeholder of a script's empty field of arguments.
  function hint(name, text) {
    var own = shelved(name), found = [];
    if (!/\barg\b|\.\.\./.test(text.replace(/--.*/g, "")))
      return "none taken";
    if (own && own.words) return own.words;
    text.replace(/["'](--[a-z][\w-]*)/g, function (_, word) {
      if (found.indexOf(word) < 0) found.push(word); });
    return found.slice(0, 4).join(" ... ") || "arg[1] arg[2] ...";
  }
  draw.hint = hint;
  draw.store = store;
  draw.download = download;
  draw.words = words;
  draw.seed = seed;
  draw.shelved = shelved;
  draw.nameOf = nameOf;
  draw.users = users;
  return draw;
})();
if (typeof module != "undefined") module.exports = cuteShelf;
// SPDX-License-Identifier: MIT
