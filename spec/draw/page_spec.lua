-- Tests drawings as pages, in a browser: their cells, their highlighting, their
-- steps, and the layouts that a user edits there.
local browser = require "spec.browser"
local cute = require "cute"
local L = cute.layout

-- Functions that all scripts here use.
local TOOLS = [[
  function cells(panel) {
    return Array.from(document.querySelectorAll(
      ".panel[data-panel='" + panel + "'] .c")); }
  function labels(panel) { return cells(panel).map(function (c) {
    return Array.from(c.querySelectorAll("text")).map(function (t) {
      return t.textContent; }).join(" "); }); }
  function fills(panel) { return cells(panel).map(function (c) {
    return c.querySelector("rect").getAttribute("fill"); }); }
  function lit(panel) { return cells(panel).map(function (c, i) {
    return c.classList.contains("lit") ? i : -1; })
    .filter(function (i) { return i >= 0; }); }
  function type(panel, text) {
    var e = $(".panel[data-panel='" + panel + "'] input");
    e.value = text;
    e.dispatchEvent(new Event("input", {bubbles: true}));
    return $(".panel[data-panel='" + panel + "'] .error").textContent; }
  function choose(k) { var e = $(".key"); e.value = k;
    e.dispatchEvent(new Event("change", {bubbles: true})); }
]]

-- Returns the cells, row by row from 0, for which f(m, n) is true.
local function where(rows, columns, f)
  local list = {}
  for i = 0, rows * columns - 1 do
    if f(i // columns, i % columns) then list[#list + 1] = i end
  end
  return list
end

-- Returns the offsets of a layout's cells, row by row.
local function offsets(l)
  local list, rows = {}, cute.rank(l) > 1 and cute.size(l, 0) or 1
  local columns = cute.size(l) // rows
  for i = 0, cute.size(l) - 1 do
    list[i + 1] = tostring(l(i // columns + i % columns * rows))
  end
  return list
end

-- Returns layouts of any nesting, some with swizzles, offsets and composed
-- layouts.
local function random_layouts(n)
  local function tuple(depth)
    if depth == 0 or math.random(3) == 1 then return math.random(1, 4) end
    local parts = {}
    for i = 1, math.random(1, 3) do parts[i] = tuple(depth - 1) end
    return "(" .. table.concat(parts, ",") .. ")"
  end
  local list = {}
  for i = 1, n do
    local shape = ("(%s,%s)"):format(tuple(2), tuple(2))
    local text = shape .. ":" .. shape:gsub("%d+", function()
      return math.random(i % 4 == 0 and -3 or 0, 40)
    end)
    if i % 3 == 0 then
      local b, m = math.random(0, 3), math.random(0, 3)
      local s = math.random(b, 4)
      if math.random(2) == 1 then s = -s end
      text = ("Sw<%d,%d,%d> o %d o %s"):format(b, m, s, math.random(0, 99),
                                               text)
    end
    if i % 9 == 0 then text = "Sw<1,0,2> o 3 o " .. text end
    if i % 10 == 1 then text = "(7,900):(50,1) o 5 o " .. text end
    local ok, l = pcall(L, text)
    if ok and cute.size(l) <= 600 then list[#list + 1] = text end
  end
  return list
end

local ATOM = cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN"

-- Pages to visit in one start of the browser: {page, script, expected value}.
local visits = {}

math.randomseed(11)
local TEXTS, QUOTED = random_layouts(250), {}
for i, text in ipairs(TEXTS) do QUOTED[i] = ("%q"):format(text) end

visits["a layout, and layouts in its place"] = {
  page = function() return cute.draw("(4,8):(8,1)", {as = "html"}) end,
  script = [[
    var out = {labels: labels(0), fills: fills(0)};
    out.all = [];
    for (var text of []] .. table.concat(QUOTED, ",") .. [[]) {
      var error = type(0, text);
      out.all.push({error: error, labels: labels(0)});
    }
    out.bad = type(0, "(4,8:(8,1)");
    out.kept = labels(0);
    out.large = type(0, "(4096,4096):(1,2)");
    out.deep = type(0, "(2,2,2)");
    out.nests = type(0, "(2,2):1");
    out.basis = type(0, "(2,2):(1@0,1@1)");
    out.shape = type(0, "(2,(2,2))") + labels(0).join(" ");
    out.vector = type(0, "5:2") + labels(0).join(" ");
    return out;]],
  check = function(f)
    assert.same(offsets(L "(4,8):(8,1)"), f.labels)
    local seen, n = {}, 0
    for i, fill in ipairs(f.fills) do
      assert.equal(f.fills[(i - 1) % 8 + 1], fill)
      if not seen[fill] then n = n + 1 end
      seen[fill] = true
    end
    assert.equal(8, n)
    assert.is_true(#TEXTS > 100)
    for i, text in ipairs(TEXTS) do
      assert.equal("", f.all[i].error, text)
      assert.same(offsets(L(text)), f.all[i].labels, text)
    end
    assert.equal("expected ',' at position 5", f.bad)
    assert.same(offsets(L(TEXTS[#TEXTS])), f.kept)
    assert.equal("16777216 cells are too many; the limit is 32768",
                 f.large)
    assert.is_truthy(f.deep:find("rank 1 or 2", 1, true))
    assert.is_truthy(f.nests:find("have different nesting", 1, true))
    assert.is_truthy(f.basis:find("strides of coordinates", 1, true))
    assert.equal("0 2 4 6 1 3 5 7", f.shape)
    assert.equal("0 2 4 6 8", f.vector)
  end,
}

visits["an atom, on a phone"] = {
  page = function() return cute.draw(ATOM, {as = "html"}) end,
  width = 390,
  script = [[
    var out = {counts: [0, 1, 2].map(function (p) {
      return cells(p).length; })};
    hover(cells(0)[9]);
    out.thread = [lit(0), lit(1), lit(2)];
    out.said = $(".said").textContent;
    leave(cells(0)[9]);
    out.left = count(".lit") + count(".picture.some");
    choose("value");
    hover(cells(1)[0].querySelector("rect"));
    out.value = lit(0);
    leave(cells(1)[0]);
    click(".on"); click(".on");
    out.step = [$(".one").value, $("output").textContent, lit(0)];
    hover(cells(0)[0]);
    out.stays = lit(0);
    click(".back"); click(".back");
    out.all = [$(".one").value, $("output").textContent, count(".lit")];
    out.wide = document.documentElement.scrollWidth;
    out.play = [$(".play").textContent];
    choose("thread");
    out.play.push($(".play").textContent);
    function number(n) {
      $(".one").value = n;
      $(".one").dispatchEvent(new Event("input")); }
    number(5);
    out.one = [$(".slider").value, lit(0)];
    number(32);
    out.none = [$(".said").textContent, count(".lit")];
    number("");
    out.again = count(".lit") + count(".picture.some");
    return out;]],
  check = function(f)
    assert.same({16 * 8, 16 * 16, 16 * 8}, f.counts)
    local function of_thread(tv, rows, columns, turned, t)
      return where(rows, columns, function(m, n)
        if turned then m, n = n, m end
        for v = 0, cute.size(tv, 1) - 1 do
          if tv(t, v) == m + n * (turned and columns or rows) then
            return true
          end
        end
      end)
    end
    assert.same({of_thread(ATOM.tv_layout_C, 16, 8, false, 4),
                 of_thread(ATOM.tv_layout_A, 16, 16, false, 4),
                 of_thread(ATOM.tv_layout_B, 16, 8, true, 4)}, f.thread)
    assert.equal("(1,1)  T4  V1  offset 17", f.said)
    assert.equal(0, f.left)
    local function values(v)
      return where(16, 8, function(m, n) return m < 8 and n % 2 == v end)
    end
    assert.same(values(0), f.value)
    assert.same({"1", "of 8", values(1)}, f.step)
    assert.same(values(1), f.stays)
    assert.same({"", "of 8", 0}, f.all)
    assert.same({"\u{25B6} play all values", "\u{25B6} play all threads"},
                f.play)
    assert.same({"5", of_thread(ATOM.tv_layout_C, 16, 8, false, 5)}, f.one)
    assert.same({"there is no thread 32", 0}, f.none)
    assert.equal(0, f.again)
    assert.is_true(f.wide <= 390)
  end,
}

-- Rows of C align with A and columns of C with B, within the window's width.
for _, width in ipairs {1280, 390} do
  visits["a TiledMMA of " .. width .. " pixels"] = {
    page = function()
      return cute.draw(cute.make_tiled_mma(ATOM, {2, 2, 1}, {32, 32, 16}),
                       {as = "html"})
    end,
    width = width,
    script = [[
      function boxes(panel, columns) {
        var list = cells(panel).map(function (c) {
          return c.querySelector("rect").getBoundingClientRect(); });
        return {x: list.slice(0, columns).map(function (b) { return b.left; }),
          y: list.filter(function (b, i) { return i % columns == 0; })
            .map(function (b) { return b.top; }),
          sizes: list.map(function (b) { return [b.width, b.height]; })};
      }
      var tick = $(".fit input");
      function found() {
        return {C: boxes(0, 32), A: boxes(1, 16), B: boxes(2, 32),
          wide: document.documentElement.scrollWidth,
          inner: $(".panels").scrollWidth - $(".panels").clientWidth};
      }
      var out = {fitted: found(), hidden: tick.parentNode.hidden};
      tick.click();
      out.full = found();
      return out;]],
    check = function(f)
      local function near(want, have)
        assert.equal(#want, #have)
        for i, x in ipairs(want) do
          assert.is_true(math.abs(x - have[i]) < 0.6, x .. " " .. have[i])
        end
      end
      for _, way in ipairs {f.fitted, f.full} do
        near(way.C.x, way.B.x)
        near(way.C.y, way.A.y)
        for _, p in ipairs {way.A, way.B} do
          for _, size in ipairs(p.sizes) do near(way.C.sizes[1], size) end
        end
        assert.is_true(way.wide <= width, way.wide)
      end
      assert.is_true(f.fitted.inner <= 1, f.fitted.inner)
      assert.is_false(f.hidden)
      near({37, 32}, f.full.C.sizes[1])
      assert.is_true(f.full.inner > 100)
    end,
  }
end

visits["a thread-value layout, and others in its place"] = {
  page = function()
    return cute.draw("((4,2),2):((2,8),1)", {as = "html", tile = {2, 8}})
  end,
  script = [[
    var out = {labels: labels(0)};
    out.error = type(0, "(2,8):(8,1)");
    out.edited = labels(0);
    out.outside = type(0, "(2,9):(8,1)");
    out.shared = type(0, "(3,4):(0,1)");
    choose("thread");
    hover(cells(0)[0]);
    out.held = $(".said").textContent;
    click(".on"); click(".on"); click(".on");
    out.third = lit(0);
    return out;]],
  check = function(f)
    assert.equal("T0 V0 T1 V0 T2 V0 T3 V0 T4 V0 T5 V0 T6 V0 T7 V0 T0 V1 T1 V1 "
      .. "T2 V1 T3 V1 T4 V1 T5 V1 T6 V1 T7 V1", table.concat(f.labels, " "))
    assert.equal("", f.error)
    assert.equal("T0 V0 T0 V2 T0 V4 T0 V6 T1 V0 T1 V2 T1 V4 T1 V6 T0 V1 T0 V3 "
      .. "T0 V5 T0 V7 T1 V1 T1 V3 T1 V5 T1 V7", table.concat(f.edited, " "))
    assert.equal("thread 1, value 8 is element 16, outside the tile of 2 x 8",
                 f.outside)
    assert.equal("", f.shared)
    assert.equal("(0,0)  T0  V0  offset 0  T1 V0  T2 V0", f.held)
    assert.same({0, 1, 8, 9}, f.third)
  end,
}

visits["accesses to shared memory"] = {
  page = function()
    local k = cute.kernel("columns", function(x)
      local tid = cute.arch.thread_idx()
      local sX = cute.make_smem_tensor(cute.f32,
                                       cute.make_layout({32, 32}, {32, 1}))
      for i = 0, 31 do sX[{tid, i}] = x[i * 32 + tid] end
    end)
    return cute.draw(k(cute.zeros({1024}, cute.f32))
      :profile {grid = 1, block = 32}, {as = "html"})
  end,
  script = [[
    var out = {key: $(".key").value, labels: labels(1)};
    click(".on"); click(".on"); click(".on");
    out.step = [$(".one").value, $("output").textContent, lit(0), lit(1)];
    return out;]],
  check = function(f)
    assert.equal("pass", f.key)
    for pass = 0, 31 do
      assert.equal(tostring(pass), f.labels[pass * 32 + 1])
    end
    assert.same({"3", "of 32", {2 * 32}, {2 * 32}}, f.step)
  end,
}

visits["a timeline"] = {
  page = function()
    local k = cute.kernel("span", function(x)
      cute.arch.range("part<", function()
        x[cute.arch.thread_idx()] = 1
      end)
    end)
    return cute.draw(k(cute.zeros({64}, cute.f32))
      :timeline {grid = 1, block = 64}, {as = "html"})
  end,
  script = [[
    var bars = cells(0);
    hover(bars.find(function (b) {
      return b.querySelector("rect").hasAttribute("fill"); }));
    return {bars: bars.length, lit: lit(0).length,
      said: $(".said").textContent, legend: texts(".legend")};]],
  check = function(f)
    assert.same({4, 2}, {f.bars, f.lit})
    assert.is_truthy(f.said:find "^part<: [%d.]+ to [%d.]+ us$")
    assert.is_truthy(f.legend[1]:find("part< 2 times", 1, true))
  end,
}

describe("the page of", function()
  local names, found = {}, nil
  for name in pairs(visits) do names[#names + 1] = name end
  table.sort(names)

  local function visit()
    if not browser.find() then return pending "needs Chromium" end
    if found then return end
    local pages = {}
    for i, name in ipairs(names) do
      local v = visits[name]
      pages[i] = {html = v.page(), width = v.width, script = TOOLS .. v.script}
    end
    found = browser.visit(pages)
  end

  for i, name in ipairs(names) do
    it(name .. " #noasan"
       .. (i > 1 and " #long" or ""), function()
      visit()
      assert.same({}, found[i].errors)
      visits[name].check(found[i].value)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
