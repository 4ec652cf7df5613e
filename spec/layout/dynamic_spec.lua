-- Tests layouts with traced extents and strides. In a kernel, the results of
-- the algebra must have the values that the algebra computes on the host from
-- the same numbers.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local raises = require "spec.support".raises
local ANY = cute._

-- Asserts that f returns the same list of integers on the host and in one
-- thread of the simulator, where the numbers that f gets are traced.
local function agree(f, ...)
  local want = f(...)
  local out = cute.zeros({#want}, cute.i64)
  cute.kernel("k", function(mOut, ...)
    for i, v in ipairs(f(...)) do
      mOut[i - 1] = type(v) == "number" and v or v:to(cute.i64)
    end
  end)(out, ...):launch {grid = 1, block = 1, device = "sim:sm_90a"}
  for i, w in ipairs(want) do
    assert.equal(w, out[i - 1], ("value %d of %d"):format(i, #want))
  end
end

-- Returns n if it is a number. Returns a traced n as a multiple of `div`.
local function known(n, div)
  if math.type(n) == "integer" then return n end
  return cute.assume(n, 1, 1 << 20, div)
end

local function append(list, ...)
  for _, v in ipairs {...} do list[#list + 1] = v end
end

-- Appends to `list` the size of layout l, and then the offset l(c) of each
-- coordinate c in `coords`.
local function sample(list, l, coords)
  append(list, cute.size(l))
  for _, c in ipairs(coords) do append(list, l(c)) end
end

describe("traced extents", function()
  it("have the size, the strides and offsets of their numbers", function()
    agree(function(m, n)
      local list, l = {}, cute.make_layout({m, n})
      sample(list, l, {{1, 2}, {5, 3}, 17})
      sample(list, cute.make_layout({m, n}, cute.LayoutRight), {{1, 2}, 17})
      sample(list, cute.make_layout({m, {n, 4}}, {n, {1, m}}),
             {{3, {2, 1}}, {3, 9}, 40})
      append(list, cute.cosize(l), cute.size(l, 1))
      return list
    end, 7, 6)
  end)

  it("are divided by static tiles as in the GEMM", function()
    for _, size in ipairs {{256, 192}, {128, 64}, {512, 64}} do
      agree(function(m, k, ld)
        k, ld = known(k, 64), known(ld, 8)
        local list, l = {}, cute.make_layout({m, k}, {ld, 1})
        local tiles = cute.zipped_divide(l, {128, 64})
        sample(list, tiles, {{{3, 5}, {0, 0}}, {{127, 63}, 0}})
        append(list, cute.size(tiles, 1), cute.size(tiles, {1, 0}))
        local tile = tiles(ANY, {0, 0})
        sample(list, tile, {0, 129, 4000})
        local tv = cute.composition(cute.get(tile, 0),
          cute.layout "((8,16),(8,8)):((1024,1),(128,16))")
        sample(list, tv, {{3, 4}, {100, 63}})
        local part = cute.zipped_divide(cute.get(tile, 0), {16, 8})
        sample(list, part, {{{3, 4}, {2, 5}}})
        return list
      end, size[1], size[2], size[2] + 8)
    end
  end)

  it("work in the rest of the algebra", function()
    local r = oracle.random(23)
    for _ = 1, 30 do
      local a, b, c = r:pick {2, 4, 8}, r:pick {16, 32}, r:pick {3, 5, 8}
      local i = r:below(a * b)
      agree(function(m, n, p)
        m, n = known(m, 2), known(n, 16)
        local list = {}
        local l = cute.make_layout({m, {n, p}}, {n * p, {1, n}})
        sample(list, cute.coalesce(l), {i})
        sample(list, cute.flatten(l), {i})
        sample(list, cute.group_modes(cute.flatten(l), 0, 2), {i})
        sample(list, cute.filter(l), {i})
        sample(list, cute.select(l, 1, 0), {i})
        sample(list, cute.logical_divide(l, {2, ANY}), {i})
        sample(list, cute.logical_divide(l, {ANY, {16, ANY}}), {i})
        sample(list, cute.tiled_divide(l, {2, {16, 1}}), {i})
        sample(list, l(ANY, {3, 1}), {0, 1})
        sample(list, cute.composition(l, {ANY, {8, ANY}}), {i % 8})
        sample(list, cute.composition(cute.make_layout({n, p}, {p, 1}),
                                      cute.layout "(4,2):(1,8)"), {1, 6})
        append(list, cute.ceil_div(n, 5), cute.round_up(p, 4))
        append(list, cute.size(cute.complement(cute.layout "4:1", n)))
        return list
      end, a, b, c)
    end
  end)

  it("split coordinates of any sign as numbers do", function()
    local r = oracle.random(7)
    for _ = 1, 40 do
      local shape = {r:pick {2, 3, 4}, {r:pick {1, 2, 5}, r:pick {2, 4}}}
      local stride, m = r:strides(shape), r:pick {3, 4}
      local l = cute.make_layout(shape, stride)
      agree(function(i, n)
        local list = {l(i), cute.make_layout({n, {5, n}})(i)}
        append(list, table.unpack(cute.flatten(cute.idx2crd(i, shape))))
        append(list, table.unpack(cute.idx2crd(i, {n, 5})))
        append(list, table.unpack(cute.idx2crd(i, {4, n}, {1, 4})))
        append(list, cute.crd2idx({i, {2, 1}}, shape))
        return list
      end, r:below(90) - 45, m)
    end
  end)

  it("multiply bases", function()
    agree(function(n)
      local l = cute.make_layout({4, 5}, {n * cute.E(1), cute.E(0) * n})
      return cute.crd2idx({3, 2}, l)
    end, 7)
  end)

  it("step to the next coordinate", function()
    local shape = {{2, 2}, 3}
    for i = 0, 12 do
      local c = cute.idx2crd(i, shape)
      agree(function(a, b, d, n)
        return cute.flatten(cute.increment_coord({{a, b}, d}, {{n, n}, 3}))
      end, c[1][1], c[1][2], c[2], 2)
    end
  end)

  it("print their divisibility", function()
    local seen
    cute.kernel("k", function(_, n)
      seen = tostring(cute.make_layout({known(n, 64), 8}, {n, 1}))
    end)(cute.zeros({1}, cute.i32), 128):trace {block = 32}
    assert.equal("(?{div=64},8):(?{div=64},1)", seen)
  end)

  it("are valid only in their kernel", function()
    local kept
    cute.kernel("k", function(_, n) kept = cute.make_layout(n) end)(
      cute.zeros({1}, cute.i32), 128):trace {block = 32}
    raises("outside its kernel", cute.size, kept)
    assert.equal("?:1", tostring(kept))
  end)
end)

describe("traced extents", function()
  it("are rejected if a number is needed", function()
    cute.kernel("k", function(_, n)
      for _, f in ipairs {
        function() return cute.complement(cute.make_layout({4, 4}, {n, 1})) end,
        function() return cute.left_inverse(cute.make_layout(4, n)) end,
        function() return cute.make_layout(n):equals(cute.make_layout(8)) end,
        function() return cute.domain_distribute({n, 4}, 8) end,
      } do
        raises("[needs-static]", f)
      end
    end)(cute.zeros({1}, cute.i32), 128):trace {block = 32}
  end)
end)
-- SPDX-License-Identifier: MIT
