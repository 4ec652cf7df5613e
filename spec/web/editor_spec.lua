-- Tests the workshop's source view beside the results: related lines, the
-- prompt, and the timeline. Also tests accessible names and contrasts. Needs
-- `make web` and a Chromium.
local browser = require "spec.browser"
local support = require "spec.support"

local PAGE = "file://" .. support.exec {"realpath", "build/web/index.html"}
  :gsub("\n", "")

-- Kernel `one` has conflicts in line 6; `two` has a race of lines 11 and 12.
local SCRIPT = [[
local cute = require "cute"
local tile = cute.make_layout({32, 32}, {32, 1})
local one = cute.kernel("one", function(x, y)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, tile)
  for i = 0, 31 do s[{tid, i}] = x[i * 32 + tid] end
  y[tid] = s[{tid, 0}]
end)
local two = cute.kernel("two", function(x, y)
  local s, tid = cute.make_smem_tensor(cute.f32, tile), cute.arch.thread_idx()
  s[{0, tid}] = x[tid]
  y[tid] = s[{0, 31 - tid}]
end)
x, y = cute.zeros({1024}, cute.f32), cute.zeros({1024}, cute.f32)
one(x, y):launch {grid = 1, block = 32}
two(x, y):launch {grid = 1, block = 32}
]]

local READY = [[
const ready = () => until(() => workshop.state() == "ready", "not ready");
const cm = () => workshop.editor.cm;
const lines = css => all(css).map(e => e.parentNode.textContent);
const over = (e, x, y) => {
  const r = e.getBoundingClientRect();
  const at = {bubbles: true, clientX: x || r.left + 40,
    clientY: y || r.top + 4};
  e.dispatchEvent(new PointerEvent("pointerover", at));
  e.dispatchEvent(new MouseEvent("mousemove", at));
};
await ready();
]]

local RUN = READY .. ([[
workshop.open({name: "pair.lua", text: %s});
click("#run");
await until(() => workshop.results.shown() && $("#status").textContent
  .startsWith("failed"), "did not run");
await ready();
click("#tab-kernel");
]]):format(require "dkjson".encode(SCRIPT))

-- Points at a line of CUDA C and at a line of the script. Returns which lines
-- are highlighted, and other texts of the page.
local LIGHTS = RUN .. [[
const choose = n => { $("#kernels").value = n;
  $("#kernels").dispatchEvent(new Event("change", {bubbles: true})); };
const shown = $("#kernels").value;
choose(0);
const row = all("#pane-cu .r.on").find(r => /s\[i0\] = x/.test(r.textContent)
  || /s\[.*x\[tid\]/.test(r.textContent));
row.scrollIntoView({block: "center"});
over(row);
const lit = lines(".CodeMirror .lit");
$("#panes").dispatchEvent(new PointerEvent("pointerleave"));
const at = cm().charCoords({line: 6, ch: 4}, "window");
over($(".CodeMirror"), at.left, at.top + 4);
const cuda = texts("#pane-cu .lit span:not([class])");
cm().replaceRange("-- above\n\n", {line: 0, ch: 0});
over(row);
const moved = lines(".CodeMirror .lit");
cm().focus();
cm().setCursor(8, 3);
await until(() => count("#pane-cu .pick"), "nothing is chosen");
const cells = all(".cell").filter(c => c.textContent).map(c => c.textContent);
const notes = count(".CodeMirror-linewidget .note.bad");
$("#heat").value = "sectors";
$("#heat").dispatchEvent(new Event("change"));
return {shown, lit, cuda, moved, said: $("#line b").textContent, cells, notes,
  sectors: all(".cell").filter(c => c.textContent).length,
  list: texts("#log .error li button")};]]

local PROMPT = RUN .. [[
click("#tab-output");
workshop.prompt.focus();
for (const text of ["x[0] = 3", "x[0] + 4", "for i = 1, 2 do"]) {
  await press(text);
  await press("Enter");
  await until(() => workshop.prompt.text() != text, "no answer");
  await ready();
}
const open = workshop.prompt.text();
await press("print(i) end");
await press("Enter");
await until(() => workshop.prompt.text() == "", "no answer");
await ready();
await press("ArrowUp");
const last = workshop.prompt.text();
await press("ArrowUp");
await press("ArrowUp");
const again = workshop.prompt.text();
workshop.prompt.set("");
await press("cute.make_lay");
await press("Control- ");
await until(() => count(".CodeMirror-hint"), "no list");
const list = $(".CodeMirror-hints"), field = document.activeElement;
const hints = {words: texts(".CodeMirror-hint .word"),
  about: texts(".CodeMirror-hint .what").filter(s => s.length > 10).length,
  roles: [list.getAttribute("role"), list.firstChild.getAttribute("role")],
  active: $("#" + field.getAttribute("aria-activedescendant") + " .word")
    .textContent,
  field: [field.id, field.getAttribute("role"), field.ariaLabel]};
await press("ArrowDown");
await press("Enter");
hints.picked = workshop.prompt.text();
await press("(4)");
await press("Control- ");
await until(() => $("#status").textContent == "nothing follows");
hints.none = count(".CodeMirror-hint");
workshop.prompt.set("cute.make_layout_");
await press("Control- ");
await until(() => count(".CodeMirror-hint"), "no list");
click(".CodeMirror-hint:last-child");
hints.clicked = workshop.prompt.text();
workshop.prompt.set("cute.make_");
await press("Control- ");
await until(() => count(".CodeMirror-hint"), "no list");
await press("Escape");
await until(() => !count(".CodeMirror-hint"), "the list stays");
hints.left = workshop.prompt.text();
await press("Tab");
hints.next = document.activeElement.id;
return {open, last, again, said: texts("#log .said"), hints,
  asked: texts("#log .asked")};]]

local TIMELINE = RUN .. [[
click("#tab-timeline");
await until(() => count("#timeline .error"), "no word of the fault");
const fault = $("#timeline .error").textContent;
$("#timeline select").value = 0;
$("#timeline select").dispatchEvent(new Event("change"));
await until(() => count("#timeline .bars"), "no timeline");
const bars = $("#timeline .bars").clientWidth <= $("#timeline").clientWidth;
$("#split").focus();
const was = $("#middle").offsetWidth;
await press("ArrowRight");
return {fault, said: $("#timeline pre").textContent, bars,
  wider: $("#middle").offsetWidth > was};]]

-- Finds elements without an accessible name, and text with too little contrast.
local READ = RUN .. [[
click("[data-more=tensors]");
const unnamed = all("button, input, textarea, select, [role]").filter(e =>
  e.offsetParent && !e.closest(".CodeMirror") && !e.ariaLabel
  && !e.textContent.trim() && !e.title && !(e.labels && e.labels.length)
  && !e.getAttribute("aria-labelledby")
  && !/status|alert/.test(e.getAttribute("role"))).map(e => e.outerHTML);
const light = c => c.map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92
  : ((x + 0.055) / 1.055) ** 2.4).reduce((s, x, i) =>
    s + [0.2126, 0.7152, 0.0722][i] * x, 0.05);
const paint = document.createElement("canvas").getContext("2d",
  {willReadFrequently: true});
const rgb = s => {
  paint.clearRect(0, 0, 1, 1);
  paint.fillStyle = s;
  paint.fillRect(0, 0, 1, 1);
  return [...paint.getImageData(0, 0, 1, 1).data];
};
const faint = all("#workshop *").filter(e => {
  if (!e.offsetParent || e.disabled || ![...e.childNodes].some(n =>
      n.nodeType == 3 && n.data.trim())) return false;
  let p = e, back;
  while ((back = rgb(getComputedStyle(p).backgroundColor))[3] < 250)
    p = p.parentElement;
  const a = light(rgb(getComputedStyle(e).color).slice(0, 3));
  const b = light(back.slice(0, 3));
  return Math.max(a, b) / Math.min(a, b) < 4.5;
}).map(e => e.id || e.className || e.tagName);
return {unnamed, faint, wide: document.documentElement.scrollWidth};]]

describe("the source beside its results", function()
  local found = {}
  setup(function()
    if not browser.find() then return end
    local steps = {{url = PAGE, script = PROMPT},
      {url = PAGE, script = TIMELINE}, {url = PAGE, script = READ},
      {url = PAGE, script = READ, dark = true},
      {url = PAGE, script = READ, width = 390},
      -- this script leaves a draft in the page's storage
      {url = PAGE, script = LIGHTS}}
    for i, step in ipairs(browser.drive(steps)) do
      assert.same({}, step.errors)
      found[i] = step.value
    end
  end)
  before_each(function()
    if not browser.find() then pending "needs Chromium" end
  end)

  it("lights lines together, wherever they were moved", function()
    local f = found[6]
    assert.equal("1", f.shown)  -- the page shows kernel 1, the faulty one
    assert.equal(1, #f.lit)
    assert.truthy(f.lit[1]:find("for i = 0, 31 do s[{tid, i}] = x", 1, true))
    assert.truthy(f.moved[1]:find("^8992%s+for i = 0, 31 do"), f.moved[1])
    assert.is_true(#f.cuda >= 1)
    assert.truthy(table.concat(f.cuda, "\n"):find("y[tid] = s[", 1, true))
    assert.equal("pair.lua:7", f.said)
    assert.same({"992", "31"}, f.cells)
    assert.same({2, 1, {"line 12"}}, {f.sectors, f.notes, f.list})
  end)

  it("has a prompt in the run's globals, with earlier inputs", function()
    local f = found[1]
    assert.equal("for i = 1, 2 do\n", f.open)
    assert.equal("for i = 1, 2 do\nprint(i) end", f.last)
    assert.equal("x[0] + 4", f.again)
    assert.equal("7.0\n", f.said[1])
    assert.equal("> for i = 1, 2 do\n>> print(i) end", f.asked[3])
    assert.equal("1\n2\n", f.said[#f.said])
  end)

  it("has a completion list at the prompt, like the editor's", function()
    local h = found[1].hints
    assert.same({"make_layout", "make_layout_image_mask", "make_layout_like",
                 "make_layout_tv"}, h.words)
    assert.equal(4, h.about)
    assert.same({"listbox", "option"}, h.roles)
    assert.equal("make_layout", h.active)
    assert.same({"prompt", "textbox", "prompt"}, h.field)
    assert.equal("cute.make_layout_image_mask", h.picked)
    assert.equal(0, h.none)
    assert.equal("cute.make_layout_tv", h.clicked)
    assert.equal("cute.make_", h.left)
    assert.not_equal("prompt", h.next)
  end)

  it("has a timeline of each kernel, in the width there is", function()
    local f = found[2]
    assert.same({true, true}, {f.bars, f.wider})
    assert.truthy(f.fault:find "two", f.fault)
    assert.truthy(f.said:find "^timeline of one, model of H200")
  end)

  it("has readable names and contrast, light and dark", function()
    for i = 3, 5 do
      assert.same({}, found[i].unnamed)
      assert.same({}, found[i].faint)
    end
    assert.equal(390, found[5].wide)
  end)
end)
-- SPDX-License-Identifier: MIT
