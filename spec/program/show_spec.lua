local cute = require "cute"
local show = require "cutelua.program.show"
local sign = require "cute.lang.signature"
local support = require "spec.support"
local topics = require "cutelua.program.topics"

local function shown(v, columns) return show.text(v, columns or 80) end

local function first(text) return (text:match "^[^\n]*") end

-- Checks that a text has at most `rows` lines of at most `columns` columns.
local function fits(text, columns, rows)
  for _, line in ipairs(support.lines(text)) do
    assert.is_true(#line <= columns, line)
  end
  assert.is_true(#support.lines(text) <= rows, text)
end

describe("show.text", function()
  it("shows small layouts as grids, others by their notation", function()
    assert.equal("(2,3):(3,1)\n  0 1 2\n  3 4 5",
      shown(cute.make_layout({2, 3}, {3, 1})))
    assert.equal("((2,2),2):((1,4),2)\n  0 2\n  1 3\n  4 6\n  5 7",
      shown(cute.layout "((2,2),2):((1,4),2)"))
    assert.equal("3:5\n   0  5 10", shown(cute.layout "3:5"))
    assert.equal("(8,(8,8)):(8,(1,64))", shown(cute.layout
      "(8,(8,8)):(8,(1,64))"))
    assert.equal("(4,16):(16,1)", shown(cute.layout "(4,16):(16,1)", 40))
    assert.equal("(2,2,2):(1,2,4)", shown(cute.layout "(2,2,2):(1,2,4)"))
    local swizzled = cute.make_composed_layout(cute.make_swizzle(1, 0, 1), 0,
      cute.make_layout({2, 2}, {2, 1}))
    assert.equal(tostring(swizzled) .. "\n  0 1\n  3 2", shown(swizzled))
    assert.equal(tostring(cute.layout "(1000000000000):(0)"),
      shown(cute.layout "(1000000000000):(0)"))
  end)

  it("shows the elements of small tensors", function()
    local t = cute.tensor({{1, 2.5}, {-3, 400}}, cute.f32)
    assert.equal(tostring(t) .. "\n    1 2.5\n   -3 400", shown(t))
    local ints = cute.zeros({3}, cute.i8)
    ints[1] = -7
    assert.equal(tostring(ints) .. "\n   0 -7  0", shown(ints))
    assert.equal("(0,0) o (2,2):(1@0,1@1)\n  (0,0) (0,1)\n  (1,0) (1,1)",
      shown(cute.make_identity_tensor {2, 2}))
    local deep = shown(cute.zeros({2, 2, 2}, cute.i8))
    assert.truthy(deep:find("\n  (_,_,0):\n  0 0\n  0 0\n  (_,_,1):\n  0 0\n",
      1, true), deep)
    local long = cute.zeros({64}, cute.i8)
    assert.equal(64, select(2, shown(long, 20):match "\n(.*)":gsub("0", "")))
  end)

  it("cuts large ones with a word, at any width", function()
    for _, columns in ipairs {20, 40, 80} do
      for _, shape in ipairs {{100, 100}, {5000}, {3, 100}, {100, 3},
                              {40, 40, 40}, {2, 2, 2, 500}} do
        local t = cute.zeros(shape, cute.f32)
        local text = shown(t, columns):gsub("^[^\n]*\n", "")
        local cells, all = select(2, text:gsub("%f[%d]0%f[^%d.,)]", "")), 1
        for _, n in ipairs(shape) do all = all * n end
        assert.truthy(text:find("... cut: " .. table.concat(shape, " x ")
          .. " elements; cute.print_tensor(t) prints all", 1, true), text)
        assert.is_true(cells < all)
        fits(text:gsub("  %.%.%. cut:[^\n]*", ""), columns, 40)
      end
    end
  end)

  it("shows which threads hold the elements of an atom or a tile", function()
    local atom = cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN"
    local text = shown(atom)
    local tv, list = atom.tv_layout_C, {}
    for v = 0, 3 do  -- an offset is an index in a column-major 16 x 8
                     -- tile
      list[v + 1] = ("(%d,%d)"):format(tv(5, v) % 16, tv(5, v) // 16)
    end
    assert.equal("(1,2) (1,3) (9,2) (9,3)", table.concat(list, " "))
    assert.truthy(text:find("\n  T5 " .. table.concat(list, " ") .. "\n", 1,
      true), text)
    assert.truthy(text:find("... 24 more threads", 1, true))
    text = shown(cute.make_tiled_mma(atom, {2, 1, 1}))
    assert.truthy(text:find("C by thread, (m,n):\n  T0 (0,0) (0,1)", 1, true))
    assert.truthy(text:find("... 56 more threads", 1, true))
    text = shown(cute.make_tiled_copy(cute.make_copy_atom(
      "UniversalCopy<uint128_t>", cute.bf16), cute.make_layout({4, 2}, {2, 1}),
      cute.make_layout {1, 8}))
    assert.truthy(text:find("\n  T1 (0,8) (0,9)", 1, true), text)
    assert.truthy(shown(atom, 20):find "\n  T0 %(0,0%) %(0,1%) %.%.%.\n")
  end)

  it("shows kernels, calls and programs with their facts", function()
    local k = cute.kernel("twice", function(m, n)
      local i = cute.arch.thread_idx()
      cute.when(i:lt(n), function() m[i] = m[i] * 2 end)
    end)
    local t = cute.ones({32}, cute.f32)
    assert.equal("kernel twice(m, n)\n"
      .. "  not launched yet: k(...):launch {grid = , block = }", shown(k))
    assert.equal("kernel twice(m, n) with\n  m = " .. tostring(t)
      .. "\n  n = 32\n  not launched yet: :launch {grid = , block = }",
      shown(k(t, 32)))
    k(t, 32):launch {grid = 1, block = 32, device = "sim"}
    local text = shown(k(t, 32))
    assert.truthy(text:find("bytes of shared memory, a block of 32\n", 1, true))
    assert.truthy(text:find "\n  last run: [%d.]+ %a+ on simulator")
    if require "cute.core".nvrtc_version() then
      assert.truthy(text:find "\n  %d+ registers a thread on sm_%w+, no spills")
    else
      assert.truthy(text:find("registers: no NVRTC here", 1, true))
    end
    local p = k(t, 32):compile {grid = 4, block = {32, 2}, device = "sim"}
    assert.truthy(shown(p):find("a block of 32 x 2", 1, true))
    assert.truthy(shown(p):find("a grid of 4", 1, true))
    assert.truthy(shown(k):find("its 2 last programs:", 1, true))
    local own = cute.kernel("own", {block = 64}, function(m) m[0] = 1.0 end)
    assert.truthy(shown(own(t)):find("a block of 64", 1, true))
  end)

  it("never shows raw bytes or addresses", function()
    assert.equal("a\n\tb é", shown "a\n\tb é")
    assert.equal("5 bytes: \\x7fELF\\x02", shown "\x7fELF\2")
    assert.equal("100 bytes: " .. ("\\xff"):rep(48) .. " ...",
      shown(("\xff"):rep(100)))
    assert.equal("5 bytes: \\x1b[31m", shown "\27[31m")
    local long = shown(("x"):rep(100000))
    assert.truthy(long:find("\n... 34464 more characters", 1, true))
    long = shown(("x"):rep((1 << 16) + 1))
    assert.truthy(long:find "\n... 1 more character$")
    assert.equal("function cute.make_layout(shape, stride?, layouts...)",
      shown(cute.make_layout))
    assert.equal("function of C", shown(print))
    assert.truthy(shown(function(a, ...) return a, ... end)
      :find("^function%(a, %.%.%.%) of .*show_spec.lua:%d+$"))
  end)
end)

describe("show.text", function()
  it("shows modules by topic, each public name once", function()
    for _, module in ipairs {cute, cute.arch, cute.pipeline, cute.nvgpu} do
      local seen, count = {}, 0
      for _, topic in ipairs(topics.of(module)) do
        for _, name in ipairs(topic.names) do
          assert.is_nil(seen[name], name)
          seen[name], count = topic.title, count + 1
          assert.truthy(module[name] ~= nil, name)
        end
      end
      for name in pairs(module) do assert.truthy(seen[name], name) end
      local text = shown(module)
      assert.equal(sign.namespaces[module], first(text))
      local _, words = text:gsub("%f[%w_][%w_]+", "")
      assert.is_true(words >= count)
    end
    local by = {}
    for _, topic in ipairs(topics.of(cute)) do by[topic.title] = topic.names end
    assert.is_true(#(by.more or {}) <= 12, table.concat(by.more or {}, " "))
    local modules = table.concat(by.modules, " ")
    assert.truthy(modules:find("arch bundle cli", 1, true))
    assert.truthy(table.concat(by["control flow"], " "):find "range")
    fits(shown(cute, 40):gsub("  %w+[^\n]*", "", 0), 80, 400)
    for _, line in ipairs(support.lines(shown(cute, 40))) do
      assert.is_true(#line <= 40 or not line:find "%S%s+%S+%s+%S", line)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
