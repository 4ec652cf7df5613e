-- Tests layouts with traced extents and strides against the same layouts with
-- numbers. An operation may give the same elements, raise an error while
-- tracing, or cause a report of the simulator when the launch supplies the
-- numbers. It must never give other elements without a report.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local support = require "spec.support"

local ELEMENTS = 64

-- Makes some numbers of shape and stride traced. Returns the kernel's arguments
-- in order, and a function that makes the shape and stride from them.
local function traced(r, shape, stride)
  local numbers, all = {}, r:below(3)
  local function plan(t, is_stride)
    if type(t) == "table" then
      local list = {}
      for i, x in ipairs(t) do list[i] = plan(x, is_stride) end
      return list
    end
    if all == 1 and is_stride or all == 2 and r:below(2) == 0 then return t end
    numbers[#numbers + 1] = t
    return {at = #numbers}
  end
  local s, d = plan(shape, false), plan(stride, true)
  local function build(p, args, extent)
    if type(p) ~= "table" then return p end
    if p.at then
      local x = args[p.at]
      return extent and cute.assume(x, 1, 1 << 20, 1) or x
    end
    local list = {}
    for i, x in ipairs(p) do list[i] = build(x, args, extent) end
    return list
  end
  return numbers, function(args)
    return cute.make_layout(build(s, args, true), build(d, args, false))
  end
end

-- Applies f to the layout that `build` makes of traced numbers. Returns the
-- result's first elements, or nil and the error or the report.
local function run(numbers, build, f, n)
  local out = cute.full({ELEMENTS}, -1, cute.i64)
  local ok, message = pcall(function()
    local _, report = cute.kernel("k", function(o, ...)
      local l, tid = f(build {...}), cute.arch.thread_idx()
      cute.when(tid:lt(n) & tid:lt(cute.size(l)), function()
        o[tid] = l(tid):to(cute.i64)
      end)
    end)(out, table.unpack(numbers)):launch {
      grid = 1, block = ELEMENTS, device = "sim", faults = "return"}
    return report
  end)
  local got = {}
  for i = 0, n - 1 do got[i] = out(i) end
  if ok and not message then return got end
  return nil, tostring(message), got
end

local CALLS = {
  with_shape = function(l, t) return cute.with_shape(l, t.shape) end,
  complement = function(l, t) return cute.complement(l, 12 * cute.size(t)) end,
}
for _, name in ipairs {
    "composition", "logical_divide", "zipped_divide", "tiled_divide",
    "flat_divide", "logical_product", "zipped_product", "tiled_product",
    "flat_product", "blocked_product", "raked_product"} do
  CALLS[name] = function(l, t) return cute[name](l, t) end
end

local function layout(r)
  local shape = {}
  for i = 1, 1 + r:below(3) do shape[i] = r:pick {1, 2, 3, 4, 5, 6, 8} end
  if #shape > 1 and r:below(4) == 0 then
    shape[1] = {shape[1], r:pick {1, 2, 3}}
  end
  return shape, r:compact(shape, r:below(2) == 0)
end

local function tile(r)
  local s, d = {}, {}
  for i = 1, 1 + r:below(2) do
    s[i], d[i] = r:pick {1, 2, 3, 4, 6}, r:pick {1, 1, 1, 2, 3, 4, 6, 8}
  end
  if #s == 1 then return cute.make_layout(s[1], d[1]) end
  return cute.make_layout(s, d)
end

-- Reports whether got[i] is l(i), the offset in the static layout, for each i
-- from 0 to n - 1.
local function same(got, l, n)
  for i = 0, n - 1 do if got[i] ~= l(i) then return false end end
  return true
end

local function random_pairs(name, cases, at_least)
  local f, r, equal, reports = CALLS[name], oracle.random(#name), 0, 0
  for _ = 1, cases do
    local shape, stride = layout(r)
    local a, t = cute.make_layout(shape, stride), tile(r)
    local l = support.try(f, a, t)
    local n = math.min(l and cute.size(l) or 1, ELEMENTS)
    local numbers, build = traced(r, shape, stride)
    local got, why, seen = run(numbers, build, function(x) return f(x, t) end,
                               n)
    local where = ("%s of %s and %s = %s, %d traced"):format(name, a, t, l,
                                                             #numbers)
    if got then
      assert.is_true(not l or same(got, l, n), where)
      -- If the static layout is rejected, the traced one may be accepted only
      -- for a tile of one element.
      assert.is_true(l ~= nil or cute.size(t) == 1, where .. ": accepted")
      equal = equal + 1
    elseif why:find("[wrong-layout]", 1, true) then
      reports = reports + 1
      assert.is_false(l ~= nil and cute.size(l) <= ELEMENTS and
                      same(seen, l, n), where .. ": " .. why)
    end
  end
  assert.is_true(equal >= at_least[1] and reports >= at_least[2],
    ("%s: %d equal, %d reports"):format(name, equal, reports))
end

describe("traced layouts", function()
  it("are composed as their numbers", function()
    random_pairs("composition", 120, {40, 12})
    random_pairs("with_shape", 90, {25, 6})
  end)

  it("are divided as their numbers #long", function()
    for _, name in ipairs {"logical_divide", "zipped_divide", "tiled_divide",
                           "flat_divide"} do
      random_pairs(name, 120, {45, 15})
    end
  end)

  it("are multiplied as their numbers, and have complements #long", function()
    for _, name in ipairs {"logical_product", "zipped_product",
                           "tiled_product", "flat_product", "complement"} do
      random_pairs(name, 120, {12, 1})
    end
    for _, name in ipairs {"blocked_product", "raked_product"} do
      random_pairs(name, 120, {8, 0})
    end
  end)

  it("report what differs once the launch has the extents", function()
    local function divided(m)
      local o = cute.zeros({1}, cute.i32)
      cute.kernel("k", function(out, x, y)
        local l = cute.make_layout({x, y}, {1, x})
        out[0] = cute.zipped_divide(l, cute.layout "3:1")(16)
      end)(o, m, 8):launch {grid = 1, block = 1, device = "sim"}
      return o(0)
    end
    local text = support.message(divided, 4)
    assert.truthy(text:find("(4,8):(1,4) divided by 3:1 is (3,11):(1,3), but "
      .. "was traced as ((3,1),(2,8)):((1,4),(3,4)), which has a different "
      .. "offset at coordinate 2 in mode 1 [wrong-layout]", 1, true), text)
    assert.truthy(text:find("keep the layout static", 1, true), text)
    assert.equal(16, divided(6))
  end)

  it("are widened as their numbers", function()
    local function widened(m, ld)
      local o = cute.zeros({1}, cute.i32)
      cute.kernel("k", function(out, x, y)
        out[0] = cute.upcast(cute.make_layout({x, 8}, {y, 1}), 2)({x - 1, 3})
      end)(o, m, ld):launch {grid = 1, block = 1, device = "sim"}
      return o(0)
    end
    support.raises("neither stride 7 nor factor 2 divides the other "
      .. "[wrong-layout]", widened, 4, 7)
    assert.equal(3 * 5 + 3, widened(4, 10))
    -- With a single row, any row stride is accepted.
    assert.equal(3, widened(1, 7))
  end)

  it("are not checked in a branch that is not taken", function()
    local o = cute.zeros({1}, cute.i32)
    cute.kernel("k", function(out, m, n)
      cute.when((m % 3):eq(0), function()
        local l = cute.make_layout({m, n}, {1, m})
        out[0] = cute.zipped_divide(l, cute.layout "3:1")(4)
      end)
    end)(o, 4, 8):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(0, o(0))
  end)
end)
-- SPDX-License-Identifier: MIT
