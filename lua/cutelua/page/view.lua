--- Writes the page of cutelua.page as HTML, with its style and its script. The
-- browser draws the data that cutelua.page collected. The workshop (web/) shows
-- the same view next to its editor, so it uses view.style and view.script, too.
local html = require "cutelua.text.html"

local view = {}

local OWN = [[
body { height: 100vh; height: 100dvh; display: flex; flex-direction: column; }
main { flex: 1; min-height: 0; padding: 0; }
]]

--- Style of the view, besides html.style and the style of pictures.
view.style = [[
.view { display: flex; flex-direction: column; min-height: 0; }
#bar { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center;
  padding: 8px 16px; border-bottom: 1px solid var(--rule); }
#kernels { max-width: 100%; font-weight: 600; }
.fact { font-size: 12.5px; white-space: nowrap; }
.missing { font-size: 12px; color: var(--dim); flex-basis: 100%;
  overflow-wrap: anywhere; white-space: pre-line; }
.fact b { font-weight: 600; font-variant-numeric: tabular-nums; }
#tabs { display: flex; gap: 2px; padding: 6px 16px 0; overflow-x: auto;
  flex: none; border-bottom: 1px solid var(--rule); }
#tabs button { border: 0; border-bottom: 2px solid transparent;
  border-radius: 0; background: none; color: var(--dim); padding: 5px 12px;
  white-space: nowrap; }
#tabs button[aria-selected=true], #tabs button[aria-expanded=true] {
  color: var(--fore);
  border-color: var(--link); }
.gap { flex: 1; }
#tabs > div { display: flex; gap: 2px; }
#tabs .n { color: var(--link); font-size: 11px; margin-left: 5px; }
#panes { flex: 1; min-height: 0; display: flex; }
.pane { flex: 1 1 0; min-width: 0; overflow: auto; outline: none;
  border-right: 1px solid var(--rule); position: relative;
  container-type: inline-size; }
.pane:last-child { border: 0; }
.pane[hidden] { display: none; }
.pane:focus-visible { box-shadow: inset 0 0 0 2px var(--link); }
.head, .file { position: sticky; left: 0; padding: 5px 10px;
  background: var(--panel); color: var(--dim); font-size: 12px; }
.head { top: 0; z-index: 2; border-bottom: 1px solid var(--rule);
  display: flex; gap: 8px; }
.head b { color: var(--fore); font-weight: 600; }
.file { color: var(--fore); font-weight: 600; }
.code { min-width: max-content; font: 12px/1.5 ui-monospace, SFMono-Regular,
  Menlo, Consolas, "DejaVu Sans Mono", monospace; padding-bottom: 40vh; }
.r { display: flex; white-space: pre; border-left: 4px solid transparent;
  padding-right: 12px; min-height: 18px; }
.r.on { cursor: pointer; border-left-color: var(--h); }
.r.lit { background: var(--lit); }
.r.same { background: var(--pick); }
.r.lit .no, .r.lit .d, .r.same .no, .r.same .d { color: var(--fore); }
.r.pick { box-shadow: inset 0 0 0 1px var(--link); }
.r i { font-style: normal; text-align: right; color: var(--dim); flex: none;
  padding-right: 1ch; }
.r .no { width: 5ch; position: sticky; left: 0; background: var(--back); }
.r.lit .no { background: var(--lit); } .r.same .no { background: var(--pick); }
.r .c { width: 6.5ch; font-size: 11px; line-height: 18px; }
.pane[data-pane=lua] { flex-grow: 1.3; }
.r .c.bad { color: var(--bad); font-weight: 600; }
.r .hot { background: linear-gradient(to left,
  color-mix(in srgb, var(--warn) 30%, transparent) var(--w), transparent 0); }
.cols { position: sticky; top: 28px; z-index: 1; background: var(--back);
  border-bottom: 1px solid var(--rule); color: var(--dim); font-size: 11px; }
.note { margin: 2px 8px 4px 5ch; padding: 4px 10px; white-space: pre-wrap;
  border-left: 3px solid var(--warn); background: var(--panel);
  color: var(--fore); width: fit-content; position: sticky; left: 5ch;
  max-width: min(76ch, calc(100cqw - 7ch)); overflow-wrap: anywhere; }
.note.bad { border-color: var(--bad); }
.note summary { cursor: pointer; color: var(--dim); white-space: normal; }
.note .one { border-top: 1px solid var(--rule); padding: 3px 0; }
.skip { width: 100%; border: 0; border-radius: 0; text-align: left;
  color: var(--dim); font-size: 11px; padding: 1px 10px 1px 6ch; }
.k { color: var(--link); } .s { color: var(--good); } .d { color: var(--dim); }
#more { flex: none; border-top: 1px solid var(--rule); max-height: 45vh;
  overflow: auto; background: var(--back); }
#more[hidden] { display: none; }
#more > div { padding: 8px 16px 16px; }
#more h2 { margin: 8px 0 4px; }
#line { display: flex; gap: 4px 16px; flex-wrap: wrap; align-items: baseline;
  padding: 6px 16px; border-top: 1px solid var(--rule); min-height: 34px;
  font-size: 12.5px; background: var(--panel); flex: none; max-height: 30vh;
  overflow: auto; }
#line table { width: 100%; }
.thing td { font-size: 12.5px; overflow-wrap: anywhere; }
.thing td.mono { min-width: 16ch; }
.thing td:nth-child(2) { overflow-wrap: normal; }
.view button { white-space: nowrap; }
.drawn { overflow-x: auto; margin: 6px 0; }
dialog { border: 1px solid var(--rule); border-radius: 10px; padding: 14px;
  background: var(--back); color: var(--fore); max-width: 96vw;
  max-height: 94vh; }
dialog::backdrop { background: rgba(0, 0, 0, .5); }
dialog .close { float: right; }
.c0 { --h: var(--c0); } .c1 { --h: var(--c1); } .c2 { --h: var(--c2); }
.c3 { --h: var(--c3); } .c4 { --h: var(--c4); } .c5 { --h: var(--c6); }
.c6 { --h: var(--c7); }
@media (max-width: 719px) {
  #bar, #tabs, #line, #more > div { padding-left: 10px; padding-right: 10px; }
  #tabs, #tabs > div { flex-wrap: wrap; }
  .gap { display: none; }
  .r .c, .cols { display: none; }
  .fact { font-size: 12px; } #bar { gap: 2px 10px; max-height: 22vh;
    overflow: auto; }
}
]]

--- cutePage(root, page, opt) draws a page into an element. The page is scrolled
-- to the first report or to the most expensive line of page.script, if it has
-- one. With `opt`, the page is shown next to an editor that has the script.
-- Fields of opt:
--   beside         true: shows one text at a time
--   view           name of the text to show
--   kernel         number of the kernel to show
--   lit(place, stays)  is called with the highlighted place, {file, line} or
--                  null
--   go(place)      moves the editor to a place; returns true if it did
--   shown(kernel, number)  is called for each kernel shown
--   picture(n), costs(number)  return promises of a picture, and of a kernel
--                  with its estimate, which a lazy page does not contain
-- cutePage returns functions for the editor:
--   light(file, line), pick(file, line)  highlight and select a line
--   lines()        returns the kernel's own lines
--   costs()        requests costs
--   show(number)   shows another kernel
view.script = [=[
var cutePage = (function () {
"use strict";
var NAMES = {lua: "Lua", cu: "CUDA C", ptx: "PTX", sass: "SASS"};
var COLUMNS = [
  ["issued", "issued", "instructions that one cluster issues"],
  ["waits", "waits", "part of its warps' time that they wait here"],
  ["passes", "passes", "passes of shared memory, of the whole grid"],
  ["conflicts", "confl.", "passes beyond the fewest: bank conflicts"],
  ["sectors", "sectors", "sectors of 32 bytes of global memory"],
  ["registers", "regs", "registers that hold something here, at most"]];
var WORDS = new RegExp("(--[^\n]*|//[^\n]*)"
  + "|(\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*')|\\b("
  + ("and break do else elseif end false for function goto if in local nil not "
  + "or repeat return then true until while const int unsigned float double "
  + "void asm volatile extern static template struct char short long bool "
  + "continue __global__ __device__ __shared__ __forceinline__")
  .replace(/ /g, "|") + ")\\b", "g");

var MOST_NOTES = 50;  // that are shown of what follows from one

function esc(s) { return String(s).replace(/[&<>"]/g, function (c) {
  return {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]; }); }
function tint(s, pane) {
  if (pane == "ptx" || pane == "sass") return esc(s);
  var out = "", at = 0;
  s.replace(WORDS, function (all, d, str, k, i) {
    if (pane == "cu" && all.slice(0, 2) == "--") return;
    if (pane == "lua" && all.slice(0, 2) == "//") return;
    out += esc(s.slice(at, i)) + '<span class="' + (d ? "d" : str ? "s" : "k")
      + '">' + esc(all) + "</span>";
    at = i + all.length;
  });
  return out + esc(s.slice(at));
}
// A note with what may follow from it folded, each behind a button to its line
// where `place` gives one a name.
function noteHtml(note, place) {
  var rest = note.rest || [], shown = rest.slice(0, MOST_NOTES);
  return esc(note.text) + (rest.length ? "<details><summary>" + rest.length
    + " more may follow from it</summary>" + shown.map(function (n) {
      var at = place && n.key && place(n.key);
      return '<div class="one">' + (at ? '<button data-key="' + n.key + '">'
        + esc(at) + "</button> " : "") + esc(n.text) + "</div>";
    }).join("") + (rest.length > shown.length ? '<div class="one">'
      + (rest.length - shown.length) + " more</div>" : "") + "</details>" : "");
}
function number(name, x) {
  if (x == null || !x) return "";
  if (name == "waits") return x < 0.005 ? "" : Math.round(100 * x) + " %";
  return x >= 1e7 ? (x / 1e6).toFixed(0) + "M"
    : x >= 1e5 ? (x / 1e3).toFixed(0) + "k" : String(x);
}
function columnsOf(k) {
  var most = {};
  Object.keys(k.counts).forEach(function (key) {
    COLUMNS.forEach(function (col) {
      var x = k.counts[key][col[0]] || 0;
      if (x > (most[col[0]] || 0)) most[col[0]] = x;
    });
  });
  return [COLUMNS.filter(function (col) { return most[col[0]]; }), most];
}

function draw(root, page, opt) {
opt = opt || {};
function el(id) { return root.querySelector("#" + id); }
function all(css) { return root.querySelectorAll(css); }
root.classList.add("view");
root.innerHTML = '<div id="bar"></div><div id="tabs"></div>'
  + '<div id="panes"></div><div id="line" aria-live="polite"></div>'
  + '<div id="more" hidden></div><dialog id="picture"></dialog>';

function where(k, key) {
  var at = k.keys[key - 1];
  return at ? {file: page.files[at[0] - 1].name, line: at[1]} : null;
}
function place(k, key) {
  var at = where(k, key);
  return at ? at.file + ":" + at.line : "";
}

// ---- state: which kernel, which panes, which line ----

var kernel, rows, view = opt.view || "lua", asm, picked = null;

function panesOf(k) {
  return ["lua", "cu", "ptx", "sass"].filter(function (p) {
    return p == "lua" || k[p]; });
}
function shown() {
  var all = panesOf(kernel), w = root.clientWidth || innerWidth;
  var n = opt.beside ? 1 : w >= 1700 ? 4 : w >= 1100 ? 3 : w >= 720 ? 2 : 1;
  if (n >= all.length) return all;
  if (n == 1) return [all.indexOf(view) < 0 ? "lua" : view];
  var last = view == "ptx" || view == "sass" ? view : asm;
  if (n == 2) return ["lua", view == "lua" ? "cu" : view];
  return ["lua", "cu", last];
}

// ---- rows ----

function own(f) { return page.files[f - 1].name === page.script ? 1 : 0; }
function row(pane, n, text, key, cu, cells) {
  return '<div class="r' + (key ? " on c" + key % 7 : "") + '" data-n="' + n
    + '" data-k="' + key + '" data-c="' + cu + '"><i class="no">' + n + "</i>"
    + (cells || "") + "<span>" + tint(text, pane) + "</span></div>";
}
function luaRows(k, columns, most) {
  var files = {}, out = "", order = [];
  k.keys.forEach(function (at, i) {
    if (!files[at[0]]) { files[at[0]] = {}; order.push(at[0]); }
    files[at[0]][at[1]] = i + 1;
  });
  var blank = columns.map(function () { return '<i class="c"></i>'; }).join("");
  order = order.filter(function (f) {  // where something came of a line
    return Object.keys(files[f]).some(function (n) {
      return files[f][n] <= k.lines || k.failed; }); });
  order.sort(function (a, b) { return own(b) - own(a); });  // the script first
  order.forEach(function (f) {
    var file = page.files[f - 1], by = files[f], skipped = "", from = 0;
    function code(n) { return by[n] && by[n] <= k.lines; }
    if (order.length > 1)
      out += '<div class="file">' + esc(file.name) + "</div>";
    function flush(to) {
      if (from) out += '<button class="skip" data-rows="' + esc(skipped)
        + '">\u22EF ' + (to - from) + " lines</button>";
      skipped = ""; from = 0;
    }
    file.lines.forEach(function (text, i) {
      var n = i + 1, key = by[n] || 0, c = key ? k.counts[key] : null;
      var near = false;
      for (var d = -6; d <= 6; d++) if (code(n + d)) near = true;
      var cells = !c ? blank : columns.map(function (col) {
        var x = c[col[0]], hot = x >= 0.05 * most[col[0]]
          ? ' hot" style="--w:' + Math.round(100 * x / most[col[0]]) + "%" : "";
        return '<i class="c' + (col[0] == "conflicts" && x ? " bad" : "") + hot
          + '">' + number(col[0], x) + "</i>";
      }).join("");
      var html = row("lua", n, text, key, 0, cells);
      k.notes.forEach(function (note) {
        if (key && note.key == key)
          html += '<div class="note ' + note.kind + '">' + noteHtml(note)
            + "</div>";
      });
      if (near) { flush(n); out += html; }
      else { if (!from) from = n; skipped += html; }
    });
    flush(file.lines.length + 1);
  });
  return out;
}
function textRows(k, pane) {
  var t = k[pane], out = [], i = 0, helpers = "";
  if (pane == "cu") {  // the small functions in front
    while (i < t.text.length && !t.at[i])
      helpers += row(pane, i + 1, t.text[i++], 0, 0);
    if (i) out.push('<button class="skip" data-rows="' + esc(helpers)
      + '">\u22EF ' + i + " lines of helpers</button>");
  }
  for (; i < t.text.length; i++) {
    var cu = pane == "cu" ? i + 1 : t.at[i];
    var key = pane == "cu" ? t.at[i] : cu ? k.cu.at[cu - 1] || 0 : 0;
    var cells = pane == "sass" && t.live
      ? '<i class="c">' + (t.live[i] || "") + "</i>" : "";
    out.push(row(pane, i + 1, t.text[i], key, cu || 0, cells));
  }
  return out.join("");
}
function drawPanes() {
  var k = kernel, both = columnsOf(k), html = "";
  panesOf(k).forEach(function (pane) {
    var head = '<div class="head"><b>' + NAMES[pane] + "</b>"
      + (pane == "lua" ? "" : k[pane].text.length + " lines") + "</div>";
    var cells = pane == "lua" ? both[0]
      : pane == "sass" ? COLUMNS.slice(-1) : [];
    var cols = cells.length ? '<div class="r cols"><i class="no"></i>'
      + cells.map(function (c) {
          return '<i class="c" title="' + esc(c[2]) + '">' + c[1] + "</i>";
        }).join("") + "</div>" : "";
    html += '<div class="pane" id="pane-' + pane + '" data-pane="' + pane
      + '" tabindex="0" role="tabpanel" aria-label="' + NAMES[pane] + '">'
      + head + '<div class="code">' + cols
      + (pane == "lua" ? luaRows(k, both[0], both[1]) : textRows(k, pane))
      + "</div></div>";
  });
  el("panes").innerHTML = html;
  index();
}
function index() {
  rows = {};
  all(".pane").forEach(function (p) {
    var by = rows[p.dataset.pane] = {key: {}, cu: {}};
    p.querySelectorAll(".r.on").forEach(function (r) {
      (by.key[r.dataset.k] = by.key[r.dataset.k] || []).push(r);
      if (r.dataset.c != "0")
        (by.cu[r.dataset.c] = by.cu[r.dataset.c] || []).push(r);
    });
  });
}

// ---- lit together ----

var lit = [];
function light(r) {
  lightAs(r ? r.dataset.k : 0, r ? r.dataset.c : "0");
  if (opt.lit) opt.lit(r ? where(kernel, r.dataset.k) : null, r == picked);
}
function lightAs(key, cu) {
  lit.forEach(function (x) { x.classList.remove("lit", "same"); });
  lit = [];
  if (!+key) return;
  function add(list, name) {
    (list || []).forEach(function (x) { x.classList.add(name); lit.push(x); });
  }
  Object.keys(rows).forEach(function (p) {
    add(rows[p].key[key], "lit");
    if (cu != "0") add(rows[p].cu[cu], "same");
  });
}
function matches(pane, r) {
  var by = rows[pane];
  return r.dataset.c != "0" && by.cu[r.dataset.c] || by.key[r.dataset.k] || [];
}
function reveal(r, pane) {
  var p = el("pane-" + pane), top = r.offsetTop, h = p.clientHeight;
  if (top < p.scrollTop + 60 || top > p.scrollTop + h - 40)
    p.scrollTop = Math.max(0, top - h / 3);
}
function pick(r) {
  all(".r.pick").forEach(function (x) {
    x.classList.remove("pick"); });
  picked = r;
  light(r);
  if (r) {
    r.classList.add("pick");
    var own = r.closest(".pane").dataset.pane;
    Object.keys(rows).forEach(function (p) {
      var list = p == own ? [r] : matches(p, r);
      if (list[0] && !el("pane-" + p).hidden) reveal(list[0], p);
    });
  }
  drawTabs();
  drawLine();
}

// ---- what is said of a line ----

function drawLine() {
  var r = picked, k = kernel;
  if (!r) {
    el("line").innerHTML = '<span class="dim">Point at a line to light what '
      + "became of it, click or use the arrow keys to stay there.</span>";
    return;
  }
  var key = +r.dataset.k, c = k.counts[key], out = "<b>" + esc(place(k, key))
    + "</b>";
  COLUMNS.forEach(function (col) {
    var x = c && number(col[0], c[col[0]]);
    if (x) out += '<span title="' + esc(col[2]) + '">' + col[1] + " <b"
      + (col[0] == "conflicts" ? ' class="bad"' : "") + ">" + x
      + "</b></span>";
  });
  ["cu", "ptx", "sass"].forEach(function (p) {
    if (rows[p] && rows[p].key[key]) out += '<span class="dim">'
      + rows[p].key[key].length + " of " + NAMES[p] + "</span>";
  });
  k.notes.forEach(function (n) {
    if (n.key == key || n.also == key)
      out += '<span class="' + n.kind + '">' + esc(n.text.split("\n")[0])
        + "</span>";
  });
  if (c && c.ops.length) out += '<div class="scroll" style="flex-basis:100%">'
    + "<table><tr><th>access<th>tensor<th class=n>requests<th class=n>passes"
    + "<th class=n>conflicts<th class=n>sectors<th class=n>bytes</tr>"
    + c.ops.map(function (o) {
        return "<tr>" + o.map(function (x, i) {
          return "<td" + (i > 1 ? " class=n>" : ">") + esc(x); }).join("")
          + "</tr>";
      }).join("") + "</table></div>";
  k.things.forEach(function (t, i) {
    if (t.key == key) out += '<span>' + (t.picture
      ? '<button data-thing="' + i + '">' + esc(t.name) + "</button>"
      : "<b>" + esc(t.name) + "</b>") + ' <span class="mono">'
      + esc(t.layout || t.kind) + "</span></span>";
  });
  el("line").innerHTML = out;
}

// ---- what is said of the kernel ----

var MORE = {
  tensors: function (k) {
    return '<table class="thing"><tr><th>name<th>what<th>layout<th></tr>'
      + k.things.map(function (t, i) {
        return '<tr><td><button data-key="' + t.key + '" title="'
          + esc(place(k, t.key)) + '">' + esc(t.name) + "</button><td>"
          + esc(t.space || t.kind) + '<td class="mono">' + (t.more
          ? "<details><summary>" + esc(t.layout || "threads and values")
            + "</summary><pre>" + esc(t.more) + "</pre></details>"
          : esc(t.layout)) + "<td>" + (t.picture ? '<button data-thing="' + i
          + '">picture</button>' : "") + "</tr>";
      }).join("") + "</table>";
  },
  conflicts: function (k) {
    return k.conflicts.map(function (c) {
      return '<h2><button data-key="' + c.key + '">' + esc(place(k, c.key))
        + "</button></h2><pre>" + esc(c.text) + "</pre>" + (c.picture
        ? '<div class="drawn" data-picture="' + c.picture + '"></div>' : "");
    }).join("");
  },
  estimate: function (k) { return k.estimate ? "<pre>" + esc(k.estimate)
    + "</pre>" : "<p class=dim>" + (k.asked ? "reckoning ..." : "none")
    + "</p>"; },
  compiler: function (k) { return "<pre>" + esc(k.log) + "</pre>"; },
  notes: function (k) {
    return k.notes.map(function (n) {
      return '<div class="note ' + n.kind + '" style="margin:4px 0">'
        + (n.key ? '<button data-key="' + n.key + '">' + esc(place(k, n.key))
        + "</button> " : "") + noteHtml(n, function (key) {
          return place(k, key); }) + "</div>";
    }).join("");
  }};
function moreOf(k) {
  return [k.things.length && ["tensors", k.things.length],
    k.notes.length && ["notes", k.notes.length],
    k.conflicts.length && ["conflicts", k.conflicts.length],
    (k.estimate || opt.costs && !k.failed) && ["estimate", 0],
    k.log && ["compiler", 0]]
    .filter(Boolean);
}
var more = null;
function drawMore() {
  var box = el("more"), has = moreOf(kernel).some(function (m) {
    return m[0] == more; });
  if (!has) more = null;
  box.hidden = !more;
  box.innerHTML = more ? '<div class="scroll" id="more-' + more + '">'
    + MORE[more](kernel) + "</div>" : "";
  box.querySelectorAll("[data-picture]").forEach(function (e) {
    drawn(e, e.dataset.picture); });
  if (more == "estimate") costs();
}
// A picture that the page has, or that is asked for.
function drawn(e, n, then) {
  var data = page.pictures && page.pictures[n - 1];
  if (data) {
    cutePicture(e, data);
    return then && then(data);
  }
  e.innerHTML = "<p class=dim>drawing ...</p>";
  opt.picture(n).then(function (data) {
    cutePicture(e, data);
    if (then) then(data);
  }, function (error) {
    e.innerHTML = "<p class=bad>" + esc(error.message) + "</p>";
  });
}
function costs() {
  var k = kernel, i = page.kernels.indexOf(k);
  if (!opt.costs || k.estimate || k.asked || k.failed) return;
  k.asked = true;
  opt.costs(i).then(function (got) {
    page.kernels[i] = got;
    got.asked = true;
    if (kernel == k) show(i, picked && picked.dataset.k);
  }, function () {
    k.asked = false;
  });
}

// ---- bars ----

function drawBar() {
  var k = kernel, out = "";
  if (page.kernels.length > 1) {
    out += '<select id="kernels" aria-label="kernel">'
      + page.kernels.map(function (x, i) {
        return "<option value=" + i + (x == k ? " selected" : "") + ">"
          + esc(x.name) + (x.facts.length ? ", grid " + esc(x.facts[1][1]) : "")
          + (x.launches > 1 ? ", " + x.launches + " launches" : "")
          + "</option>"; }).join("") + "</select>";
  } else out += "<b id='kernels'>" + esc(k.name) + "</b>";
  out += k.facts.map(function (f) {
    return '<span class="fact dim">' + esc(f[0]) + ' <b class="'
      + (f[2] ? "bad" : "") + '" style="color:var(--' + (f[2] ? "bad"
      : "fore") + ')">' + esc(f[1]) + "</b></span>"; }).join("");
  out += k.missing.map(function (m) {
    return '<span class="missing">' + esc(m) + "</span>"; }).join("");
  el("bar").innerHTML = out;
}
function drawTabs() {
  var on = shown();
  el("tabs").innerHTML = '<div role="tablist" aria-label="texts">'
    + panesOf(kernel).map(function (p) {
    var n = picked && on.indexOf(p) < 0 ? matches(p, picked).length : 0;
    return '<button role="tab" data-view="' + p + '" aria-selected="'
      + (on.indexOf(p) >= 0) + '">' + NAMES[p] + (n ? '<span class="n">' + n
      + "</span>" : "") + "</button>";
  }).join("") + '</div><span class="gap"></span><div>'
  + moreOf(kernel).map(function (m) {
    return '<button data-more="' + m[0] + '" aria-expanded="' + (more == m[0])
      + '" aria-controls="more">' + m[0] + (m[1] ? '<span class="n">' + m[1]
      + "</span>" : "") + "</button>"; }).join("") + "</div>";
}
function fit() {
  var on = shown();
  all(".pane").forEach(function (p) {
    p.hidden = on.indexOf(p.dataset.pane) < 0; });
  drawTabs();
}
function show(i, key) {
  kernel = page.kernels[i];
  asm = kernel.sass ? "sass" : "ptx";
  picked = null; lit = [];
  drawBar(); drawPanes(); fit(); drawLine(); drawMore();
  if (opt.shown) opt.shown(kernel, i);
  var bad = kernel.notes.filter(function (n) { return n.key; })[0];
  var r = firstRow(key || (bad ? bad.key : opt.beside ? 0 : hottest(kernel)));
  if (r) pick(r);
}
function go(key) {
  if (opt.go && opt.go(where(kernel, key))) {
    var own = firstRow(key);
    return own && pick(own);
  }
  var r = rows.lua.key[key] && rows.lua.key[key][0];
  if (!r) {
    all(".skip").forEach(open);
    r = rows.lua.key[key] && rows.lua.key[key][0];
  }
  if (r) { view = "lua"; fit(); pick(r); }
}
function open(b) { b.outerHTML = b.dataset.rows; index(); }
function picture(t) {
  el("picture").innerHTML = '<button class="close" autofocus>close</button><b>'
    + esc(t.name) + '</b> <span class="mono">' + esc(t.layout || t.kind)
    + '</span><p class="dim"></p><div class="drawn"></div>';
  el("picture").showModal();
  drawn(el("picture").lastChild, t.picture, function (data) {
    el("picture").querySelector("p").textContent = data.part || ""; });
}

// ---- what a reader does ----

var panes = el("panes");
panes.addEventListener("pointerover", function (e) {
  if (e.pointerType == "touch") return;
  var r = e.target.closest(".r.on");
  light(r || picked);
});
panes.addEventListener("pointerleave", function () { light(picked); });
panes.addEventListener("click", function (e) {
  var skip = e.target.closest(".skip"), r = e.target.closest(".r.on");
  if (skip) open(skip);
  else if (r && !String(getSelection())) pick(r == picked ? null : r);
});
panes.addEventListener("keydown", function (e) {
  var p = e.target.closest(".pane");
  if (!p) return;
  var list = Array.from(p.querySelectorAll(".r.on"));
  if (e.key == "ArrowDown" || e.key == "ArrowUp") {
    var here = picked && picked.closest(".pane") == p ? picked
      : picked && matches(p.dataset.pane, picked)[0];
    var i = list.indexOf(here), d = e.key == "ArrowDown" ? 1 : -1;
    var r = i < 0 ? list[0] : list[Math.min(list.length - 1,
      Math.max(0, i + d))];
    if (r) pick(r);
    e.preventDefault();
  } else if (e.key == "ArrowLeft" || e.key == "ArrowRight") {
    var all = panesOf(kernel), at = all.indexOf(p.dataset.pane)
      + (e.key == "ArrowRight" ? 1 : -1);
    if (all[at]) { view = all[at]; fit(); el("pane-" + view).focus(); }
    e.preventDefault();
  } else if (e.key == "Escape") pick(null);
});
root.addEventListener("click", function (e) {
  var b = e.target.closest("button");
  if (!b) return;
  if (b.dataset.view) {
    view = b.dataset.view;
    if (view == "ptx" || view == "sass") asm = view;
    fit();
    if (picked) pick(picked);
  } else if (b.dataset.more) {
    more = more == b.dataset.more ? null : b.dataset.more;
    drawMore(); drawTabs();
  } else if (b.dataset.key) go(b.dataset.key);
  else if (b.dataset.thing) picture(kernel.things[b.dataset.thing]);
  else if (b.className == "close") el("picture").close();
});
root.addEventListener("change", function (e) {
  if (e.target.id == "kernels") show(+e.target.value);
});
new ResizeObserver(function () { fit(); if (picked) pick(picked); })
  .observe(root);
show(opt.kernel || 0);

// The key of the line that costs most, of the script's own if any costs
// something.
function hottest(k) {
  var keys = Object.keys(k.counts), mine = keys.filter(function (key) {
    return k.keys[key - 1] && own(k.keys[key - 1][0]); });
  var name = ["waits", "issued", "passes", "sectors"].filter(function (x) {
    return keys.some(function (key) { return k.counts[key][x]; }); })[0];
  function cost(key) { return k.counts[key][name] || 0; }
  return (mine.some(cost) ? mine : keys).reduce(function (best, key) {
    return cost(key) > (best ? cost(best) : 0) ? key : best; }, 0);
}
// The key of a line of a file; 0 where nothing came of it.
function keyOf(file, line) {
  return 1 + kernel.keys.findIndex(function (at) {
    return at[1] == line && page.files[at[0] - 1].name == file; });
}
function firstRow(key) {
  var pane = shown()[0];
  return rows[pane].key[key] && rows[pane].key[key][0];
}
return {
  light: function (file, line) { lightAs(keyOf(file, line), "0"); },
  pick: function (file, line) {
    var r = firstRow(keyOf(file, line));
    if (r && r != picked) pick(r);
  },
  lines: function () { go(1); },
  costs: costs, show: show};
}
draw.columns = columnsOf;
draw.number = number;
return draw;
})();
]=]

-- JavaScript of the link "open in the workshop" at the top of the page. The
-- link appears only in browsers that can compress the script.
local WORKSHOP = [=[
if (page.workshop && window.CompressionStream) {
  cuteLink(page.workshop.script).then(function (fragment) {
    var a = document.createElement("a");
    a.id = "workshop";
    a.textContent = "open in the workshop";
    a.title = "to edit and run it in the browser, at " + page.workshop.address;
    a.href = page.workshop.address + fragment;
    a.target = "_blank";
    a.rel = "noreferrer";
    document.querySelector(".top h1").after(a);
  });
}
]=]

--- Returns the whole page as HTML.
---@param title string
---@param model table of cutelua.page
---@param workshop? {address: string, script: table} what the page's button
-- opens
---@return string
function view.html(title, model, workshop)
  local drawing = require "cutelua.draw.html"
  local link = require "cutelua.page.link"
  return html.page {title = title,
    body = "<noscript>This page is drawn by its script, which is part of it."
      .. "</noscript>",
    style = drawing.style .. OWN .. view.style,
    script = drawing.script .. view.script .. link.script
      .. 'cutePage(document.querySelector("main"), page);\n' .. WORKSHOP,
    data = {files = model.files, kernels = model.kernels, script = title,
            pictures = model.pictures, workshop = workshop}}
end

return view
-- SPDX-License-Identifier: MIT
