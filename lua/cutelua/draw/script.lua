--- The JavaScript of a picture's page, in two parts. `algebra` parses CuTe
-- notation and evaluates layouts. `picture` draws panels, highlights the cells
-- that have the same thread (or value, lane, pass, offset, bank), steps through
-- passes, and redraws edited layouts. Each part defines one global name of the
-- page: cuteAlgebra, with layout(text); and cutePicture(element, data), which
-- takes the data of html.lua. data.wide is the length of a timeline's bars in
-- pixels.
local script = {}

script.algebra = [==[
var cuteAlgebra = (function () {
  "use strict";

  // The parser of core/layout/notation.c, as far as it concerns integers.
  function parse(text) {
    var at = 0;
    function fail(what) {
      throw new Error(what + " at position " + (at + 1));
    }
    function blanks() { while (/\s/.test(text.charAt(at))) at++; }
    function peek() { blanks(); return text.charAt(at); }
    function take(c) {
      if (peek() !== c) return false;
      at++;
      return true;
    }
    function expect(c) { if (!take(c)) fail("expected '" + c + "'"); }
    function number() {
      blanks();
      var found = /^_?(-?\d+)/.exec(text.slice(at));
      if (!found) fail("expected an integer");
      var v = Number(found[1]);
      if (!Number.isSafeInteger(v)) fail("a number beyond 2^53");
      at += found[0].length;
      if (text.charAt(at) === "@") {
        fail("strides of coordinates are not drawn here; a plain integer is"
          + " needed");
      }
      return v;
    }
    function tuple() {
      if (!take("(")) return number();
      var list = [];
      while (!take(")")) {
        if (list.length) expect(",");
        list.push(tuple());
      }
      return list;
    }
    // What follows in a chain: a swizzle, a tuple, a layout.
    function item() {
      blanks();
      var found = /^Sw?</.exec(text.slice(at));
      if (found) {
        at += found[0].length;
        var b = number();
        expect(",");
        var m = number();
        expect(",");
        var s = number();
        expect(">");
        if (b < 0 || m < 0 || Math.abs(s) < b)
          fail("a swizzle Sw<B,M,S> needs B, M >= 0 and |S| >= B");
        return {swizzle: {b: b, m: m, s: s}};
      }
      var start = at, shape = tuple();
      if (!take(":")) return {tuple: shape};
      return {layout: pair(shape, tuple(), start)};
    }
    function pair(shape, stride, start) {
      var flat = {modes: [], shapes: [], strides: []};
      function add(s, d) {
        if (Array.isArray(s) !== Array.isArray(d)
            || Array.isArray(s) && s.length !== d.length) {
          at = start;
          fail("shape and stride have different nesting");
        }
        if (Array.isArray(s)) return s.forEach(function (x, i) {
          add(x, d[i]); });
        if (s < 1) { at = start; fail("an extent is not a positive integer"); }
        flat.shapes.push(s);
        flat.strides.push(d);
      }
      add(shape, stride);
      flat.modes = (Array.isArray(shape) ? shape : [shape]).map(size);
      return flat;
    }
    function size(t) {
      return Array.isArray(t)
        ? t.reduce(function (n, x) { return n * size(x); }, 1) : t;
    }
    function compact(shape) {  // strides of columns
      var next = 1;
      return (function each(s) {
        if (Array.isArray(s)) return s.map(each);
        var d = s === 1 ? 0 : next;
        next *= s;
        return d;
      })(shape);
    }
    var chain = [item()];
    while (take("o")) chain.push(item());
    if (peek() !== "") fail("text after the end of the notation");
    var last = chain[chain.length - 1];
    if (last.tuple !== undefined && chain.length === 1) {
      last = {layout: pair(last.tuple, compact(last.tuple), 0)};
    }
    if (!last.layout) fail("expected a layout");
    var steps = chain.slice(0, -1).map(function (x, i) {
      if (x.tuple === undefined) return x;
      if (i === 0 || chain[i - 1].tuple !== undefined
          || Array.isArray(x.tuple)) fail("expected an integer as offset");
      return {offset: x.tuple};
    });
    return {modes: last.layout.modes, base: last.layout,
            steps: steps.reverse()};
  }

  function swizzled(w, x) {
    var mask = ((1n << BigInt(w.b)) - 1n) << BigInt(w.m + Math.max(w.s, 0));
    var bits = BigInt(x) & mask, by = BigInt(Math.abs(w.s));
    return Number(BigInt(x) ^ (w.s >= 0 ? bits >> by : bits << by));
  }

  function plain(l, i) {
    var sum = 0, last = l.shapes.length - 1;
    for (var k = 0; k <= last; k++) {
      sum += (k < last ? i % l.shapes[k] : i) * l.strides[k];
      i = Math.floor(i / l.shapes[k]);
    }
    return sum;
  }

  // Where the layout has coordinate i, counted along columns.
  function evaluate(l, i) {
    return l.steps.reduce(function (x, f) {
      if (f.swizzle) return swizzled(f.swizzle, x);
      return f.layout ? plain(f.layout, x) : x + f.offset;
    }, plain(l.base, i));
  }

  return {parse: parse, layout: function (text) {
    var l = parse(text);
    return {modes: l.modes, at: function (i) { return evaluate(l, i); },
      size: l.modes.reduce(function (n, s) { return n * s; }, 1)};
  }};
})();
]==]

script.picture = [==[
var cutePicture = function (root, data) {
  "use strict";
  var KEYS = ["thread", "value", "lane", "pass", "offset", "bank"];
  var LETTERS = {thread: "T", value: "V", lane: "L", pass: "P"};
  var panels = data.panels;
  var key = null, pinned = false, timer = null;

  function $(css) { return root.querySelector(css); }
  function escape(s) {
    return String(s).replace(/[&<>"]/g, function (c) {
      return {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c];
    });
  }
  function has(list, i) {
    return list && list[i] !== undefined && list[i] !== false;
  }

  // ---- what is known of cells ----

  function side(p, which, i) {
    var list = p[which + "Labels"];
    return list ? list[i] : i;
  }
  function words(p, i) {
    if (p.bars) {
      var b = p.bars[i];
      return b.label + ": " + b.from.toFixed(3) + " to " + b.to.toFixed(3)
        + " " + p.unit;
    }
    var out = ["(" + side(p, "row", Math.floor(i / p.columns)) + ","
      + side(p, "column", i % p.columns) + ")"];
    KEYS.forEach(function (k) {
      if (!has(p.ids[k], i)) return;
      out.push((LETTERS[k] || k + " ") + p.ids[k][i]);
    });
    var more = p.more && p.more[i + 1];
    if (more && p.ids.thread) {
      for (var n = 0; n < more.length; n += 2) {
        out.push("T" + more[n] + " V" + more[n + 1]);
      }
    } else if (more) {
      more.forEach(function (lane) { out.push("L" + lane); });
    }
    return out.join("  ");
  }
  // All that cell i of a panel has under a key.
  function held(p, k, i) {
    if (p.bars) return [p.bars[i].label];
    var list = has(p.ids[k], i) ? [p.ids[k][i]] : [];
    var more = p.more && p.more[i + 1];
    if (more && k === "lane") return list.concat(more);
    if (more && (k === "thread" || k === "value")) {
      for (var n = k === "thread" ? 0 : 1; n < more.length; n += 2) {
        list.push(more[n]);
      }
    }
    return list;
  }
  function index(p) {
    if (p.index && p.indexed === key) return p.index;
    var map = new Map(), n = p.bars ? p.bars.length : p.rows * p.columns;
    for (var i = 0; i < n; i++) held(p, key, i).forEach(function (v) {
      if (!map.has(v)) map.set(v, []);
      map.get(v).push(i);
    });
    p.index = map;
    p.indexed = key;
    return map;
  }

  // ---- drawing ----

  function text(x, y, s, more) {
    return "<text x='" + x + "' y='" + y + "'" + (more || "") + ">" + escape(s)
      + "</text>";
  }
  // Panels that meet have cells of one size, and begin with room for as much.
  function likeOf(p) { return data.meet ? panels : [p]; }
  function cellSize(p) {
    if (data.unlabelled) return [14, 14];
    var most = 1, two = false;
    likeOf(p).forEach(function (q) { q.label.forEach(function (s) {
      if (s === false) return;
      String(s).split(" ").forEach(function (part, i) {
        most = Math.max(most, part.length);
        two = two || i > 0;
      });
    }); });
    return [Math.max(two ? 30 : 26, Math.ceil(most * 6.7) + 10), two ? 32 : 26];
  }
  function labelRoom(p) {
    var left = 8;
    likeOf(p).forEach(function (q) {
      for (var i = 0; i < q.rows; i++)
        left = Math.max(left, 10 + 7 * String(side(q, "row", i)).length);
    });
    return left;
  }
  // An <svg> that `fit` may shrink.
  function opened(p, name, width, height, what) {
    p.width = width;
    p.section.style.setProperty("--w", width + "px");
    return "<svg class='" + name + "' viewBox='0 0 "
      + width + " " + height + "' role='img' aria-label=\""
      + escape(p.name || what) + "\">";
  }
  function grid(p) {
    var size = cellSize(p), w = size[0], h = size[1], left = labelRoom(p), i, s;
    var top = 20, out = [opened(p, "grid", left + p.columns * w + 4,
                                top + p.rows * h + 4, "picture")];
    for (i = 0; i < p.columns; i++) {
      out.push(text(left + (i + 0.5) * w, top - 6, side(p, "column", i),
                    " class='s'"));
    }
    for (i = 0; i < p.rows; i++) {
      out.push(text(left - 6, top + (i + 0.5) * h + 4, side(p, "row", i),
                    " class='e'"));
    }
    for (i = 0; i < p.rows * p.columns; i++) {
      var x = left + i % p.columns * w;
      var y = top + Math.floor(i / p.columns) * h;
      var colour = has(p.class, i)
        ? data.palettes[p.palette][p.class[i]] : null;
      out.push("<g class='c' data-i='" + i + "'><rect x='" + x + "' y='" + y
        + "' width='" + w + "' height='" + h + "'"
        + (colour ? " fill='" + colour + "'" : " class='none'") + "/>");
      s = has(p.label, i) ? String(p.label[i]).split(" ") : [];
      if (s.length > 1) {
        out.push(text(x + w / 2, y + 14, s[0]), text(x + w / 2, y + 26, s[1]));
      } else if (s.length) out.push(text(x + w / 2, y + h / 2 + 4, s[0]));
      out.push("</g>");
    }
    return out.join("") + "</svg>";
  }
  function bars(p) {
    var left = 12, W = data.wide || 900, H = 16;
    p.rowLabels.forEach(function (s) {
      left = Math.max(left, 12 + 7 * String(s).length); });
    var out = [opened(p, "bars", left + W + 40, p.rowLabels.length * H + 26,
                      "timeline")];
    p.rowLabels.forEach(function (s, i) {
      out.push(text(left - 8, (i + 0.5) * H + 4, s, " class='e'")); });
    p.bars.forEach(function (b, i) {
      var inner = has(b, "class") ? 3 : 1;
      var colour = inner === 3 ? data.palettes[p.palette][b.class] : null;
      out.push("<g class='c' data-i='" + i + "'><rect x='"
        + (left + b.from / p.last * W).toFixed(2) + "' y='"
        + ((b.row - 1) * H + inner) + "' width='"
        + Math.max((b.to - b.from) / p.last * W, 0.3).toFixed(2)
        + "' height='" + (H - 2 * inner) + "'"
        + (colour ? " fill='" + colour + "'" : " class='idle'") + "/></g>");
    });
    var steps = Math.max(1, Math.min(5, Math.floor(W / 75)));
    for (var i = 0; i <= steps; i++) {
      out.push(text(left + i / steps * W, p.rowLabels.length * H + 16,
        (p.last * i / steps).toPrecision(3) + " " + p.unit, " class='s'"));
    }
    return out.join("") + "</svg>";
  }
  function legend(p) {
    return "<p class='legend'>" + p.legend.map(function (e) {
      return "<span><i style='background:" + data.palettes[p.palette][e.class]
        + "'></i>" + escape(e.name) + " <span class='dim'>" + e.count
        + " times, " + e.sum.toFixed(3) + " " + escape(p.unit)
        + "</span></span>";
    }).join("") + "</p>";
  }
  function redraw(p) {
    p.box.innerHTML = p.bars ? bars(p) : grid(p);
    p.cells = p.box.querySelectorAll(".c");
    p.index = null;
  }
  // All panels in the width that there is, by one scale; those that stand below
  // each other on narrow screens by the widest of them.
  function fit() {
    var across = {}, gap = 28, room = root.clientWidth, tick = $(".fit input");
    if (!room) return;
    var stacked = getComputedStyle($(".panels")).display !== "grid";
    panels.forEach(function (p) {
      var column = p.place && !stacked ? p.place[1] : 1;
      across[column] = Math.max(across[column] || 0, p.width);
    });
    var columns = Object.keys(across);
    var scale = (room - gap * (columns.length - 1)) / columns.reduce(
      function (sum, c) { return sum + across[c]; }, 0);
    tick.parentNode.hidden = scale >= 1;
    root.style.setProperty("--scale", tick.checked ? Math.min(1, scale) : 1);
    root.classList.toggle("fitted", tick.checked && scale < 1);
  }
  function build(p, number) {
    var e = document.createElement("section");
    e.className = "panel";
    if (p.place) {
      e.style.gridRow = p.place[0];
      e.style.gridColumn = p.place[1];
    }
    var names = p.rowName ? " <span class='dim'>rows " + escape(p.rowName)
      + ", columns " + escape(p.columnName) + "</span>" : "";
    e.innerHTML = (p.name ? "<h2>" + escape(p.name) + names + "</h2>" : "")
      + (p.edit ? "<label class='edit'><span class='dim'>layout</span><input "
        + "class='mono' spellcheck='false' autocapitalize='off'></label>"
        + "<p class='bad error' role='alert'></p>" : "")
      + [p.caption, p.note].filter(Boolean).map(function (s) {
        return "<p class='dim mono'>" + escape(s) + "</p>"; }).join("")
      + (p.legend && p.legend.length ? legend(p) : "")
      + "<div class='scroll'></div>";
    e.dataset.panel = number;
    p.section = e;
    $(".panels").appendChild(e);
    p.box = e.querySelector(".scroll");
    if (p.edit) edit(p, e);
    redraw(p);
  }

  // ---- editing ----

  function most(list) {
    return list.reduce(function (n, v) {
      return v === false ? n : Math.max(n, v); }, 0);
  }
  function colour(p) {
    var by = p.edit.by, list = p.ids[by];
    p.class = [];
    if (!list) return;
    p.palette = by === "offset" ? "hues" : by === "bank" || most(list) > 7
      ? "shades" : "hues";
    var n = data.palettes[p.palette].length;
    p.class = list.map(function (v) {
      return v === false ? false : (v % n + n) % n; });
  }
  function label(p) {
    var names = p.edit.labels;
    p.label = [];
    for (var i = 0; i < p.rows * p.columns; i++) {
      var parts = names.filter(function (k) { return has(p.ids[k], i); })
        .map(function (k) {
          return names.length > 1 ? (LETTERS[k] || "") + p.ids[k][i]
            : p.ids[k][i]; });
      p.label.push(names[0] === "coord"
        ? "(" + Math.floor(i / p.columns) + "," + i % p.columns + ")"
        : parts.length ? parts.join(" ") : false);
    }
  }
  function checkCells(n) {
    if (n > data.limit) throw new Error(n + " cells are too many; the limit is "
      + data.limit);
  }
  // The offset of each coordinate.
  function offsets(l) {
    if (l.modes.length > 2) throw new Error("a layout of rank 1 or 2 is drawn"
      + " here, this has " + l.modes.length + " modes");
    checkCells(l.size);
    var rows = l.modes.length > 1 ? l.modes[0] : 1;
    var columns = l.size / rows, offset = [];
    for (var m = 0; m < rows; m++) for (var n = 0; n < columns; n++) {
      offset.push(l.at(m + n * rows));
    }
    return {rows: rows, columns: columns, offset: offset};
  }
  // The first holder of each element of the tile, and the others.
  function holders(l, e) {
    var M = e.tile[0], N = e.tile[1], cells = M * N;
    if (l.modes.length !== 2) throw new Error("a layout (thread, value) of"
      + " rank 2 is needed");
    checkCells(l.size / 32);
    function none() { return Array(cells).fill(false); }
    var out = {thread: none(), value: none(), offset: none(), more: {}};
    for (var t = 0; t < l.modes[0]; t++) for (var v = 0; v < l.modes[1]; v++) {
      var i = l.at(t + v * l.modes[0]);
      if (i < 0 || i >= cells) throw new Error("thread " + t + ", value " + v
        + " is element " + i + ", outside the tile of " + M + " x " + N);
      var m = e.across ? Math.floor(i / N) : i % M;
      var n = e.across ? i % N : Math.floor(i / M);
      var at = e.turned ? n * M + m : m * N + n;
      if (out.thread[at] === false) {
        out.thread[at] = t;
        out.value[at] = v;
        out.offset[at] = i;
      } else (out.more[at + 1] = out.more[at + 1] || []).push(t, v);
    }
    return out;
  }
  function apply(p, value) {
    var l = cuteAlgebra.layout(value);
    if (p.edit.tile) {
      var h = holders(l, p.edit);
      p.ids = {thread: h.thread, value: h.value, offset: h.offset};
      p.more = h.more;
    } else {
      var found = offsets(l);
      p.rows = found.rows;
      p.columns = found.columns;
      p.ids = {offset: found.offset};
      if (p.edit.bits) p.ids.bank = found.offset.map(function (x) {
        return ((Math.floor(x * p.edit.bits / 32) % 32) + 32) % 32; });
    }
    colour(p);
    label(p);
  }
  function edit(p, e) {
    var input = e.querySelector("input"), error = e.querySelector(".error");
    input.value = p.edit.text;
    input.size = Math.max(24, p.edit.text.length + 2);
    input.oninput = function () {
      try {
        apply(p, input.value);
        error.textContent = "";
        likeOf(p).forEach(redraw);
        fit();
        choices();
      } catch (x) {
        error.textContent = x.message;
      }
    };
  }

  // ---- light and steps ----

  function light(values, word) {
    root.classList.toggle("some", values !== null);
    root.querySelectorAll(".c.lit").forEach(function (c) {
      c.classList.remove("lit"); });
    if (values !== null) panels.forEach(function (p) {
      values.forEach(function (v) {
        (index(p).get(v) || []).forEach(function (i) {
          p.cells[i].classList.add("lit"); });
      });
    });
    $(".said").textContent = word || "\u00a0";
  }
  function pointed(target) {
    var c = target.closest ? target.closest(".c") : null;
    var e = c && c.closest(".panel");
    return e ? {p: panels[e.dataset.panel], i: Number(c.dataset.i)} : null;
  }
  function stop() { clearInterval(timer); timer = null; said(); }
  function many() { return key + (/s$/.test(key) ? "es" : "s"); }
  function said() {
    $(".play").textContent = timer ? "\u25A0 stop"
      : "\u25B6 play all " + many();
  }
  function show(at) {
    var values = keyValues(), slider = $(".slider"), one = $(".one");
    slider.value = at;
    one.hidden = typeof values[0] !== "number";
    one.value = at < 0 ? "" : values[at];
    $(".step output").textContent = (one.hidden && at >= 0
      ? values[at] + ", one " : "") + "of " + values.length;
    pinned = at >= 0;
    light(at < 0 ? null : [values[at]], at < 0 ? "" : key + " " + values[at]);
  }
  function keyValues() {
    var all = new Set();
    panels.forEach(function (p) {
      index(p).forEach(function (_, v) { all.add(v); }); });
    return Array.from(all).sort(function (a, b) {
      return typeof a === "number" ? a - b : a < b ? -1 : 1; });
  }
  function choose(k) {
    key = k;
    stop();
    $(".slider").max = keyValues().length - 1;
    $(".one").setAttribute("aria-label", key + " to highlight");
    show(-1);
  }
  // The keys that cells have now.
  function choices() {
    var select = $(".key"), list = panels[0].bars ? ["name"]
      : KEYS.filter(function (k) {
        return panels.some(function (p) { return p.ids && p.ids[k]; }); });
    if (!list.length) list = ["offset"];
    select.innerHTML = list.map(function (k) {
      return "<option>" + k + "</option>"; }).join("");
    var first = list.indexOf("pass") < 0 ? list[0] : "pass";
    select.value = list.indexOf(key) < 0 ? first : key;
    choose(select.value);
  }

  root.classList.add("picture");
  root.classList.toggle("meet", !!data.meet);
  root.innerHTML = "<div class='tools'><span class='step'><label>highlight "
    + "<select class='key'></select></label><input class='one' type='number' "
    + "placeholder='all'><output></output></span><span class='step'>"
    + "<button class='back' aria-label='the one before'>&lsaquo;</button>"
    + "<input class='slider' type='range' min='-1' aria-label='which one'>"
    + "<button class='on' aria-label='the next one'>&rsaquo;</button>"
    + "<button class='play'></button></span><label class='fit' hidden>"
    + "<input type='checkbox' checked> fit to width</label></div>"
    + "<p class='said mono' aria-live='polite'>&nbsp;</p>"
    + data.captions.map(function (s) {
      return "<p class='dim mono'>" + escape(s) + "</p>"; }).join("")
    + "<div class='panels'></div>";
  panels.forEach(build);
  choices();
  $(".key").onchange = function () { choose(this.value); };
  $(".fit input").onchange = fit;
  // Not by a scroll bar's width, which comes and goes with what fits.
  var fitted = 0;
  new ResizeObserver(function () {
    var more = root.clientWidth - fitted;
    if (more >= 0 && more < 20) return;
    fitted = root.clientWidth;
    fit();
  }).observe(root);
  fit();
  var slider = $(".slider");
  function move(by) {
    var last = Number(slider.max), at = Number(slider.value) + by;
    show(at > last ? -1 : at < -1 ? last : at);
  }
  $(".one").oninput = function () {
    stop();
    var at = this.value === "" ? -1 : keyValues().indexOf(Number(this.value));
    if (at >= 0 || this.value === "") return show(at);
    light([], "there is no " + key + " " + this.value);
  };
  slider.oninput = function () { stop(); show(Number(slider.value)); };
  $(".on").onclick = function () { stop(); move(1); };
  $(".back").onclick = function () { stop(); move(-1); };
  $(".play").onclick = function () {
    if (timer) return stop();
    timer = setInterval(function () { move(1); }, 500);
    said();
  };
  root.addEventListener("pointerover", function (event) {
    var c = pointed(event.target);
    if (c && !pinned) light(held(c.p, key, c.i), words(c.p, c.i));
    else if (c) $(".said").textContent = words(c.p, c.i);
  });
  root.addEventListener("pointerout", function (event) {
    if (pointed(event.target) && !pinned) light(null);
  });
  // A cell that is clicked stays lit until it is clicked again.
  root.addEventListener("click", function (event) {
    var c = pointed(event.target);
    if (!c) return;
    stop();
    if (pinned) return show(-1);
    light(held(c.p, key, c.i), words(c.p, c.i));
    pinned = true;
  });
};
]==]

return script
-- SPDX-License-Identifier: MIT
