-- Tests the page of `cutelua explain`: it must show what the emitter, the
-- simulator and the compiler report. Also tests how a browser renders it.
local browser = require "spec.browser"
local cute = require "cute"
local dkjson = require "dkjson"
local jit = require "cute.jit"
local support = require "spec.support"

-- Kernel `turn` has bank conflicts in line 10. Kernel `late` has a race in line
-- 17 and reads out of bounds.
local NASTY = "-- </script><b id=\"nasty\">&amp; 'x' \\u003c \u{20AC}"
local SCRIPT = "local how = ... " .. NASTY .. [[

local cute = require "cute"
local arch = cute.arch
local rows = cute.make_layout({32, 32}, {32, 1})
local turn = cute.kernel("turn", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, rows)
  for i = 0, 31 do s[{i, tid}] = x[i * 32 + tid] end
  arch.sync_threads()
  for i = 0, 31 do y[i * 32 + tid] = s[{tid, i}] * 2 end
end)
local late = cute.kernel("late", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64})
  local g = cute.local_tile(x, {64}, {0})
  s[tid] = g[tid]
  y[tid] = s[63 - tid]
end)
local function zeros() return cute.zeros({1024}, cute.f32) end
if how then
  turn(zeros(), zeros()):launch {grid = 1, block = 32}
  turn(zeros(), zeros()):launch {grid = 1, block = 32}
  print "turned"
end
if how == "race" then
  late(zeros(), zeros()):launch {grid = 1, block = 64}
elseif how == "leave" then pcall(os.exit, 3, true) print "went on"
elseif how == "fail" then local nothing = how.x.y
elseif how == "twice" then turn(zeros(), zeros()):launch {grid = 2, block = 32}
end
return {turn = turn, late = late}
]]

local dir, page

local NO_CUDA = {env = {CUTELUA_NO_CUDA = "1"}}

local function explain(words, opt)
  return support.exec({support.program, "explain", table.unpack(words)},
                      opt or NO_CUDA)
end

-- Returns the data that the script of a page draws. Parses each page once.
local known = {}
local function data_of(path)
  local text = assert(support.read(path)):match "\nvar page = (%b{});\n"
  known[text] = known[text] or dkjson.decode(text)
  return known[text]
end

local function key_of(k, file, line)
  for i, at in ipairs(k.keys) do
    if at[1] == file and at[2] == line then return i end
  end
end

local function make_page()
  dir = support.folder()
  support.write(dir .. "/s.lua", SCRIPT)
  page = dir .. "/k.html"
  local out, err, code = explain({dir .. "/s.lua", "twice", "-o", page}, {})
  assert.equal("", err)
  assert.equal(0, code)
  assert.matches("^turned\nwrote .*k.html: 2 kernels, %d+ KB\n$", out)
end

local function turn()
  return dofile(dir .. "/s.lua").turn(cute.zeros({1024}, cute.f32),
                                      cute.zeros({1024}, cute.f32))
end

describe("cutelua explain", function()
  setup(make_page)
  teardown(function() support.remove(dir) end)

  it("has the emitted text and the script's line of each line", function()
    local data = data_of(page)
    local k = data.kernels[1]
    assert.same({2, 1}, {k.launches, data.kernels[2].launches})
    local program = turn():trace {block = 32, arch = "sm_90a"}
    local text, places = program:cuda "sm_90a"
    assert.equal(text, table.concat(k.cu.text, "\n") .. "\n")
    for i, key in ipairs(k.cu.at) do
      local at = k.keys[key]
      local name = at and data.files[at[1]].name .. ":" .. at[2] or ""
      assert.equal(places[i], name)
    end
    for i, line in ipairs(support.lines(SCRIPT)) do
      assert.equal(line, data.files[1].lines[i])
    end
  end)

  it("has the counters of a profile, line by line", function()
    local k = data_of(page).kernels[1]
    local r = turn():profile {grid = 1, block = 32, device = "sim:sm_90a"}
    local want = {}
    for _, s in ipairs(r.lines) do
      local sum = want[s.line] or {passes = 0, conflicts = 0, sectors = 0}
      want[s.line] = sum
      sum.passes = sum.passes + s.wavefronts
      sum.conflicts = sum.conflicts + s.conflicts
      sum.sectors = sum.sectors + s.sectors
    end
    assert.equal(992, want[10].conflicts)
    local seen = 0
    for line, sum in pairs(want) do
      local c = k.counts[tostring(key_of(k, 1, line))]
      for name, n in pairs(sum) do assert.equal(n, c[name], name .. line) end
      seen = seen + 1
    end
    assert.equal(2, seen)
    assert.equal(1, #k.conflicts)
    assert.equal(key_of(k, 1, 10), k.conflicts[1].key)
    local e = turn():estimate {grid = 1, block = 32, device = "sim:sm_90a"}
    for _, l in ipairs(e.lines) do
      local c = k.counts[tostring(key_of(k, 1, l.line))]
      assert.equal(l.slots, c.issued)
      assert.is_true(math.abs(l.stall - c.waits) < 0.1)
    end
  end)

  it("lists tensors at the lines that make them", function()
    local k = data_of(page).kernels[1]
    local by = {}
    for _, t in ipairs(k.things) do by[t.name] = t end
    assert.equal("f32,smem", by.s.space)
    assert.equal("(32,32):(32,1)", by.s.layout)
    assert.equal(key_of(k, 1, 7), by.s.key)
    assert.equal("f32,gmem", by.x.space)
    assert.equal("layout", by.rows.kind)
    local picture = data_of(page).pictures[by.s.picture]
    assert.equal(by.s.picture, by.rows.picture)
    for i, offset in ipairs(picture.panels[1].ids.offset) do
      assert.equal(i - 1, offset)  -- offsets are consecutive numbers
    end
    assert.equal(1024, #picture.panels[1].ids.offset)
    assert.is_nil(picture.part)
  end)

  it("has PTX whose lines are the text's, or explains why not", function()
    local k = data_of(page).kernels[1]
    if not jit.version() then
      assert.truthy(k.missing[1]:find("NVRTC was not found", 1, true))
      return
    end
    local stores = 0
    for i, line in ipairs(k.ptx.text) do
      if line:find "st%.global" then
        stores = stores + 1
        assert.truthy(k.cu.text[k.ptx.at[i]]:find("y[", 1, true))
        assert.equal(key_of(k, 1, 10), k.cu.at[k.ptx.at[i]])
      end
    end
    assert.equal(32, stores)
    local _, err, code = explain {dir .. "/s.lua", "once", "-o",
      dir .. "/n.html"}
    assert.same({"", 0}, {err, code})
    k = data_of(dir .. "/n.html").kernels[1]
    assert.is_nil(k.ptx)
    assert.truthy(k.missing[1]:find("NVRTC was not found", 1, true))
  end)
end)

describe("cutelua explain", function()
  setup(make_page)
  teardown(function() support.remove(dir) end)

  it("has reports at their lines, and the script's exit code", function()
    local path = dir .. "/r.html"
    local out, err, code = explain {dir .. "/s.lua", "race", "-o", path}
    assert.equal(1, code)
    assert.matches("kernel late", err)
    assert.matches("wrote .*: 2 kernels", out)
    local data = data_of(path)
    local k = data.kernels[2]
    assert.equal("late", k.name)
    local race
    for _, note in ipairs(k.notes) do
      assert.equal("bad", note.kind)
      if note.text:find "%[race%]" then race = note end
    end
    assert.same({[16] = true, [17] = true},
                {[k.keys[race.key][2]] = true, [k.keys[race.also][2]] = true})
  end)

  it("has the compiler's warnings, and spills, at their lines", function()
    local asm, kernel = require "cutelua.text.asm", require "cute.lang.kernel"
    local made = {missing = {}, compiled = {log = "", resources = {
        registers = 40, spill_stores = 4, spill_loads = 8},
      warnings = {"s.lua:9: (C7511) serialized (turn.cu:30)", "no line"},
      losses = {"s.lua:9: (C7511) serialized (turn.cu:30)",
                "kernel turn spills 12 bytes"}}}
    local one
    local of = asm.of
    asm.of = function(program)
      local _, places = program:cuda "sm_90a"
      local at = {}
      for i, place in ipairs(places) do at[place] = at[place] or i end
      made.sass = {text = {"  STL [R1], R2", "  LDL R2, [R1]", "@P0 LDL R3"},
        at = {at["s.lua:8"], at["s.lua:10"], at["s.lua:10"]},
        live = {7, 9, 11}}
      return made
    end
    local found = require "cutelua.page".new()
    kernel.runner = {run = function(program, launch)
      launch.record = true
      one = found:add(program, launch,
        require "cute.core".sim_run(program.fn, launch))
      error("enough", 0)
    end}
    local ok, why = pcall(function()
      turn():launch {grid = 1, block = 32, device = "sim:sm_90a"}
    end)
    kernel.runner, asm.of = nil, of
    assert.same({false, "enough"}, {ok, why})
    local told = {}
    for i, note in ipairs(one.notes) do
      local at = one.keys[note.key]
      told[i] = (at and at[2] or 0) .. " " .. note.text
    end
    assert.same({"9 s.lua:9: (C7511) serialized (turn.cu:30)", "0 no line",
      "0 kernel turn spills 12 bytes", "8 registers spill here: 1 store",
      "10 registers spill here: 2 loads"}, told)
    assert.same({7, 11}, {one.counts[key_of(one, 1, 8)].registers,
                          one.counts[key_of(one, 1, 10)].registers})
  end)

  it("is written for a script that leaves or fails, too #long", function()
    local path = dir .. "/f.html"
    local out, _, code = explain {dir .. "/s.lua", "leave", "-o", path}
    assert.equal(3, code)
    assert.is_nil(out:find "went on")
    assert.matches("wrote .*: 1 kernel,", out)
    local _, err, rc = explain {dir .. "/s.lua", "fail", "-o", path}
    assert.equal(1, rc)
    assert.matches("attempt to index a nil value", err)
    local data = data_of(path)
    local k = data.kernels[2]
    assert.is_true(k.failed)
    assert.same({1, 28}, k.keys[k.notes[1].key])
    assert.matches("attempt to index", k.notes[1].text)
  end)

  it("goes to standard output, and the script's output elsewhere", function()
    local out, err, code = explain {"-o", "-", dir .. "/s.lua", "once"}
    assert.equal(0, code)
    assert.equal("turned\n", err)
    assert.matches("^<!doctype html>.*</html>\n$", out)
  end)

  it("rejects unsupported options, and leaves files unchanged #long", function()
    local s = dir .. "/s.lua"
    local function refused(want, rc, ...)
      local out, err, code = explain {...}
      assert.matches(want, err)
      assert.same({"", rc}, {(out:gsub("^turned\n$", "")), code})
    end
    refused("explain: no output file: write %-o FILE", 2, s, "once")
    refused("explain: which script%?", 2)
    refused("unknown option '%-%-x'", 2, "--x", s, "-o", "k.html")
    refused("'%-%-kernel' needs an argument", 2, "--kernel")
    refused("the script launched nothing; nothing was written", 1, s, "-o",
            dir .. "/none.html")
    refused("no kernel launched 'other'", 1, "--kernel", "other", s, "once",
            "-o", dir .. "/none.html")
    refused("cannot open .*none.lua", 1, dir .. "/none.lua", "-o",
            dir .. "/e.html")
    assert.is_nil(support.read(dir .. "/none.html"))
    refused("cannot write .*: Is a directory", 1, s, "once", "-o", dir)
    refused("cannot write .*: No such file or directory", 1, s, "once", "-o",
            dir .. "/no/k.html")
    local help, _, code = explain {"--help"}
    assert.equal(0, code)
    assert.matches("^usage: cutelua explain", help)
  end)
end)

describe("cutelua explain", function()
  setup(make_page)
  teardown(function() support.remove(dir) end)

  it("is Hopper's GEMM in under 2 MB #noasan #long", function()
    local path = dir .. "/h.html"
    local _, _, code = explain {"scripts/gemm_hopper.lua", "-o", path}
    assert.equal(0, code)
    local text = support.read(path)
    assert.is_true(#text < 2e6)
    for _, op in ipairs {'["tma.load","tma_a > sA",128,0,0,32768,1048576]',
                         '["tma.load","tma_b > sB",128,0,0,16384,524288]',
                         '["stmatrix","sD",256,1024,0,0,131072]',
                         '["tma.store","sD > tma_d",32,0,0,4096,131072]',
                         -- All stages together have too many cells for a
                         -- drawing, so the page shows one stage.
                         '"part":"a part of it: Sw\\u003c3,3,3> o 0 o '
                           .. '((8,8),(64,2)):((64,512),(1,4096))"'} do
      assert.truthy(text:find(op, 1, true), op)
    end
  end)
end)

-- Reads the page in a browser, to compare it with its data.
local LOOK = [[
  var k = page.kernels[0], out = {};
  function rows(css) { return Array.from(document.querySelectorAll(css)).map(
    function (r) { return +r.dataset.n; }); }
  function lua(line) { return Array.from(document.querySelectorAll(
    "#pane-lua .r")).filter(function (r) {
      return r.dataset.n == line && r.classList.contains("on"); })[0]; }
  out.shown = Array.from(document.querySelectorAll(".pane")).filter(
    function (p) { return !p.hidden; }).map(function (p) {
      return p.dataset.pane; });
  out.begins = rows(".r.pick");
  var pane = $("#pane-lua"), seen = $(".r.pick").getBoundingClientRect();
  var box = pane.getBoundingClientRect();
  out.inView = seen.top >= box.top && seen.bottom <= box.bottom;
  var number = $(".r.pick .no"), at = number.getBoundingClientRect().left;
  pane.scrollLeft = 1000;
  out.scrolled = pane.scrollLeft;
  out.moved = Math.abs(number.getBoundingClientRect().left - at);
  out.over = document.elementFromPoint(box.left + 8, seen.top + 8) === number;
  pane.scrollLeft = 0;
  key("#pane-lua", "Escape");
  out.cu = count("#pane-cu .r");
  out.lua = count("#pane-lua .r:not(.cols)");
  hover(lua(10));
  out.lit = rows("#pane-cu .r.lit");
  out.ptx = count("#pane-ptx .r.lit");
  out.line = count("#pane-lua .r.lit");
  hover($("#pane-cu .r.on"));
  out.first = rows("#pane-lua .r.lit");
  panes.dispatchEvent(new PointerEvent("pointerleave"));
  out.none = count(".lit");
  click(lua(10));
  out.picked = rows("#pane-lua .r.pick");
  out.said = $("#line").textContent;
  key("#pane-lua", "ArrowUp");
  out.up = rows("#pane-lua .r.pick");
  key("#pane-lua", "Escape");
  out.unpicked = count(".r.pick, .lit");
  out.kernels = texts("#kernels option");
  click("[data-more=tensors]");
  out.things = count("#more-tensors tr") - 1;
  click("[data-more=conflicts]");
  out.maps = count("#more-conflicts [data-picture]");
  out.drawn = count("#more-conflicts svg") > 0;
  click("[data-more=tensors]");
  out.s = k.things.findIndex(function (t) { return t.name == "s"; });
  click("[data-thing='" + out.s + "']");
  out.cells = count("#picture g.c");
  hover("#picture g.c");
  out.cell = count("#picture g.c.lit");
  click("#picture .close");
  out.open = count("dialog[open]");
  click("[data-view=cu]");
  out.after = Array.from(document.querySelectorAll(".pane")).filter(
    function (p) { return !p.hidden; }).map(function (p) {
      return p.dataset.pane; });
  out.wide = document.documentElement.scrollWidth;
  click("[data-more=tensors]");
  click("[data-more=tensors]");
  out.broken = Array.from(document.querySelectorAll("button")).filter(
    function (b) { return b.offsetWidth && !b.classList.contains("skip")
      && b.offsetHeight > 40; }).map(function (b) { return b.textContent; });
  out.cut = Array.from(document.querySelectorAll("body *")).filter(
    function (e) {
      if (e.getBoundingClientRect().right <= innerWidth + 0.5) return false;
      for (var p = e; p; p = p.parentElement)
        if (/auto|scroll/.test(getComputedStyle(p).overflowX)) return false;
      return true;
    }).map(function (e) { return e.tagName + "." + e.className; });
  out.notes = count(".note");
  out.nasty = [count("#nasty"), $("#pane-lua .r:not(.cols) span").textContent];
  var skips = count(".skip"), before = count(".r");
  click("#pane-cu .skip");
  out.opened = [skips - count(".skip"), count(".r") - before];
  return out;]]

describe("the page of a kernel in a browser", function()
  it("highlights related parts together #noasan #long", function()
    if not browser.find() then pending "needs Chromium" end
    dir = support.folder()
    finally(function() support.remove(dir) end)
    support.write(dir .. "/s.lua", SCRIPT)
    explain({dir .. "/s.lua", "twice", "-o", dir .. "/twice.html"}, {})
    explain {dir .. "/s.lua", "race", "-o", dir .. "/race.html"}
    local file = dir .. "/twice.html"
    local found = browser.visit {
      {file = file, width = 1400, script = LOOK},
      {file = file, width = 800, script = LOOK},
      {file = file, width = 390, script = LOOK},
      {file = dir .. "/race.html", width = 390, script = [[
        function name() { return box.selectedOptions[0].text.split(",")[0]; }
        var box = $("#kernels"), was = name();
        box.value = "1";
        box.dispatchEvent(new Event("change", {bubbles: true}));
        return [was, name(), count(".note.bad"), $(".note").firstChild.data,
          $("#pane-lua .r.pick").dataset.n, $(".note summary").textContent,
          texts(".note .one")]; ]]}}
    local k = data_of(file).kernels[1]
    local lit, luas, all, helpers = {}, {}, 0, 0
    for i, at in ipairs(k.cu.at) do
      if at == key_of(k, 1, 10) then lit[#lit + 1] = i end
      if at > 0 and not luas[1] then luas[1] = k.keys[at][2] end
      if not luas[1] then helpers = i end
      all = i
    end
    local has_ptx, hottest, most = k.ptx ~= nil, nil, 0
    for key, c in pairs(k.counts) do
      if (c.waits or 0) > most then
        hottest, most = k.keys[tonumber(key)][2], c.waits
      end
    end
    for i, panes in ipairs {{"lua", "cu", k.sass and "sass" or "ptx"},
                            {"lua", "cu"}, {"lua"}} do
      local f = found[i].value
      assert.same({}, found[i].errors)
      if i > 1 or has_ptx then assert.same(panes, f.shown) end
      -- The view begins at the line with the longest wait. The line's number is
      -- visible.
      assert.same({hottest}, f.begins)
      assert.same({true, true}, {f.inView, f.over})
      assert.is_true(f.moved <= 4, f.moved)
      assert.is_true(i == 1 or f.scrolled > 20, f.scrolled)
      assert.same({}, f.broken)
      assert.same({}, f.cut)
      assert.equal(all - helpers, f.cu)
      assert.same(lit, f.lit)
      assert.is_true(#lit > 30)
      assert.equal(1, f.line)
      if has_ptx then assert.is_true(f.ptx >= 64) end
      assert.same(luas, f.first)
      assert.same({0, 0}, {f.none, f.unpicked})
      assert.same({{10}, {8}}, {f.picked, {f.up[1] > 8 and 8 or f.up[1]}})
      assert.matches("s.lua:10.*confl. 992", f.said)
      assert.same({"turn, grid 1, 2 launches", "turn, grid 2"}, f.kernels)
      assert.equal(#k.things, f.things)
      assert.same({1, true}, {f.maps, f.drawn})
      assert.same({1024, 1, 0}, {f.cells, f.cell, f.open})
      assert.same(i == 3 and {"cu"} or f.shown, f.after)
      assert.is_true(f.wide <= ({1400, 800, 390})[i])
      assert.equal(0, f.notes)
      assert.same({0, "local how = ... " .. NASTY}, f.nasty)
      assert.same({1, helpers}, f.opened)
    end
    assert.same({}, found[4].errors)
    local f = found[4].value
    local notes = data_of(dir .. "/race.html").kernels[2].notes
    assert.same({"turn", "late", #notes}, {f[1], f[2], f[3]})
    assert.equal(notes[1].text, f[4])
    local rest = {}
    for j, n in ipairs(notes[1].rest) do rest[j] = n.text end
    assert.is_true(#rest > 0)
    assert.equal(#rest .. " more may follow from it", f[6])
    assert.same(rest, f[7])
    assert.truthy(f[5] == "16" or f[5] == "17")
  end)
end)

describe("a page of nothing", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("is not written for a script that launches nothing", function()
    local path, bad = dir .. "/none.html", dir .. "/bad.lua"
    for text, why in pairs {["local x = = 1"] = "unexpected symbol near '='",
        ["error 'boom'"] = "boom", ["local x = 1"] = "launched nothing"} do
      support.write(bad, text)
      local out, err, code = explain {bad, "-o", path}
      assert.equal("", out)
      assert.truthy(err:find(why, 1, true), err)
      assert.matches("nothing was written\n$", err)
      assert.equal(1, code)
      assert.is_nil(support.read(path))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
