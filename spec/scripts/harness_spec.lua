-- Tests the harness of lessons that define their own operands: the comparison
-- of results, the errors for invalid options, several launches, and the export
-- for other programs.
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local support = require "spec.support"

local NAN = 0 / 0

-- Returns a lesson of y = a x. `wrong(i, y)` may replace a value.
local function scale(wrong)
  return cute.kernel("scale", function(x, y, a)
    local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
    cute.when(cute.lt(i, cute.size(x)), function()
      local v = x[i]:to(cute.f32) * a
      y[i] = (wrong and wrong(i, v) or v):to(y.element_type)
    end)
  end)
end

local function lesson(fields)
  local spec = {
    dims = {{"n", "elements"}}, dtypes = {"f32", "bf16", "i32"},
    sim = {{100}}, gpu = {{100}},
    operands = function(p)
      return {{"x", {p.n}}, {"y", {p.n}, out = true}}
    end,
    make = function()
      return {kernel = scale(fields.wrong), block = 32, args = {"x", "y", 2.0},
              grid = function(n) return (n + 31) // 32 end}
    end,
    pieces = function(p) return p.n end,
    reference = function(p, i) return {y = {2.0 * p.x[i]}} end}
  for k, v in pairs(fields) do spec[k] = v end
  return spec
end

local function try(fields, size, o)
  return harness.try(harness.problem(lesson(fields), {size or 100}, o), "sim")
end

describe("the harness of lessons", function()
  it("accepts right results", function()
    for _, dtype in ipairs {"f32", "bf16", "i32"} do
      local ok, reports, wrong = try({}, 100, {dtype = dtype})
      assert.is_nil(wrong)
      assert.is_true(ok)
      assert.equal(1, #reports)
    end
  end)

  it("finds one wrong element, and reports it", function()
    for _, c in ipairs {
      {"f32", 1.00002}, {"bf16", 1.02}, {"f32", NAN}, {"i32", 1.2},
      {"f32", math.huge}, {"f32", -1}} do
      local ok, _, wrong = try({wrong = function(i, v)
        return cute.where(cute.eq(i, 77), v * c[2], v)
      end, operands = function(p)
        return {{"x", {p.n}, fill = {3, 7}}, {"y", {p.n}, out = true}}
      end}, 100, {dtype = c[1]})
      assert.is_false(ok)
      assert.truthy(wrong:find("y(77) is ", 1, true), wrong)
    end
  end)

  it("takes rounding, by the type and by the scale of a piece", function()
    local function off(by)
      return {wrong = function(_, v) return v * by end}
    end
    assert.is_true((try(off(1.000005))))
    assert.is_false((try(off(1.00002))))
    assert.is_true((try(off(1.0005), 100, {dtype = "bf16"})))
    -- An exact result may be 0 although large numbers are summed. Then an error
    -- as large as their rounding error is accepted.
    local fields = {wrong = function(i, v)
      return cute.where(cute.eq(i, 0), v + 1e-6, v)
    end, operands = function(p)
      return {{"x", {p.n}, fill = function(b)
        b:fill(1)
        b[0] = 0
        return b
      end}, {"y", {p.n}, out = true}}
    end}
    assert.is_false((try(fields)))
    function fields.pieces() return 1 end
    function fields.reference(p)
      local y = {}
      for i = 1, p.n do y[i] = 2.0 * p.x[i - 1] end
      return {y = y}
    end
    assert.is_true((try(fields)))
  end)

  it("finds unwritten elements", function()
    local ok, reports, wrong = try {make = function()
      return {kernel = scale(), block = 32, args = {"x", "y", 2.0}, grid = 3}
    end}
    assert.is_false(ok)
    assert.matches("4 of 100 elements of global tensor 'y'",
                   tostring(reports[1]))
    assert.is_nil(wrong)  -- a fault comes before a comparison
  end)

  it("looks at the first, the last and some others of many", function()
    local seen = {}
    local spec = lesson {look = 10, reference = function(p, i)
      seen[i] = true
      return {y = {2.0 * p.x[i]}}
    end}
    local p = harness.problem(spec, {1000})
    assert.is_true((harness.try(p, "sim")))
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.is_true(seen[0] and seen[999] and n <= 10 and n > 5)
    local _, how = harness.verify(p)
    assert.truthy(how:find "of 10 elements$", how)
  end)

  it("runs several launches, and keeps a result's initial values", function()
    local add = cute.kernel("add", function(x, y)
      local i = cute.arch.thread_idx()
      y[i] = y[i] + x[i]
    end)
    local p = harness.problem(lesson {
      operands = function(p)
        return {{"x", {p.n}}, {"y", {p.n}, out = true, fill = {-9, 9}},
                {"t", {p.n}, scratch = true}}
      end,
      make = function()
        return {{kernel = scale(), grid = 1, block = 32,
                 args = {"x", "t", 2.0}},
                {kernel = add, grid = 1, block = 32, args = {"t", "y"}}}
      end,
      reference = function(p, i) return {y = {2.0 * p.x[i] + p.was.y[i]}} end},
      {32}, {dtype = "i32"})
    -- The second run must start from the same data as the first.
    for _ = 1, 2 do
      local ok, reports, wrong = harness.try(p, "sim")
      assert.is_nil(wrong)
      assert.is_true(ok)
      assert.equal(2, #reports)
    end
    -- bytes: x is read, and y is read and written; scratch memory does not
    -- count
    assert.equal(32 * 4 * 3, p.bytes)
  end)

  it("reports operands beyond the memory", function()
    local _, err, code = support.run {"scripts/softmax.lua", "--device", "sim",
      "--rows", "2000000000", "--n", "2000000000"}
    assert.equal(1, code)
    assert.truthy(err:find("softmax: 2000000000x2000000000 bf16: [^\n]*"
      .. "%[out%-of%-memory%]\n$"), err)
  end)
end)

describe("the harness of lessons", function()
  it("gives other programs the launches", function()
    local dir = support.folder()
    local out, err, code = support.run {"tools/launches.lua",
      "scripts/softmax.lua", dir, "sm_90a", "--dtype", "f16", "6", "4096"}
    if not err:find("[no-nvrtc]", 1, true) then
      assert.equal("", err)
      assert.equal(0, code)
      assert.truthy(out:find('"args":[["x"],["y"]]', 1, true), out)
      assert.truthy(out:find('"bytes":98304', 1, true), out)
      assert.truthy(out:find('"dtype":"f16","fill":"normal","name":"x"', 1,
                             true), out)
      assert.equal("\x7fELF", support.read(out:match '"cubin":"([^"]*)"')
        :sub(1, 4))
    end
    support.remove(dir)
  end)
end)
-- SPDX-License-Identifier: MIT
