-- Tests the bar charts that the scripts of the GEMM ladder draw, and the errors
-- for invalid options.
local chart = require "cutelua.bench.chart"
local support = require "spec.support"

local function count(text, what)
  local n = 0
  for _ in text:gmatch(what) do n = n + 1 end
  return n
end

describe("chart", function()
  local svg = chart.bars {title = "a < b", unit = "of x",
    series = {"1", "2"}, mark = 1, rival = "R&D",
    groups = {{label = "p", values = {0.5, 1.25}},
              {label = "q", values = {0.25, 1}}}}

  it("draws a bar for each value, in proportion", function()
    -- 7 rectangles: the background, two in the legend, four bars.
    assert.equal(7, count(svg, "<rect"))
    local width = {}
    for w in svg:gmatch 'width="([%d.]+)" height="12"' do
      width[#width + 1] = tonumber(w)
    end
    assert.equal(4, #width)
    assert.is_true(math.abs(width[1] * 2.5 - width[2]) < 0.2)
    assert.is_true(math.abs(width[3] * 4 - width[4]) < 0.2)
  end)

  it("marks the rival at the end of a bar of 1", function()
    local x = tonumber(svg:match '<line x1="([%d.]+)"')
    local left = tonumber(svg:match '<rect x="([%d.]+)" y="34"')
    local one
    for w in svg:gmatch 'width="([%d.]+)" height="12"' do one = tonumber(w) end
    assert.is_true(math.abs(x - left - one) < 0.2)
  end)

  it("draws proportional growth along its dashed line", function()
    local text = chart.growth {title = "t", x = "n", y = "s", series = {
      {name = "linear", points = {{1, 0.01}, {10, 0.1}, {100, 1}}},
      {name = "quadratic", points = {{1, 0.01}, {10, 1}}}}}
    local lines = {}
    local polyline = '<polyline points="([^"]+)" fill="none" stroke="#[4f]'
    for points in text:gmatch(polyline) do
      local list = {}
      for x, y in points:gmatch "([%d.]+),([%d.]+)" do
        list[#list + 1] = {tonumber(x), tonumber(y)}
      end
      lines[#lines + 1] = list
    end
    local function slope(line)
      local p, q = line[1], line[#line]
      return (p[2] - q[2]) / (q[1] - p[1])
    end
    -- each series has a measured line and a dashed one
    assert.equal(4, #lines)
    assert.is_true(math.abs(slope(lines[1]) / slope(lines[2]) - 1) < 0.01)
    assert.is_true(math.abs(slope(lines[3]) / slope(lines[4]) - 2) < 0.01)
    assert.equal(5, count(text, "<circle"))
  end)

  it("escapes markup", function()
    assert.is_truthy(svg:find("a &lt; b", 1, true))
    assert.is_truthy(svg:find("R&amp;D", 1, true))
    assert.is_nil(svg:find("a < b", 1, true))
  end)
end)

describe("a GEMM script", function()
  local function run(script, ...)
    return support.run_lua {"scripts/" .. script .. ".lua", ...}
  end

  for _, case in ipairs {
    {{"--m", "0"}, "--m: a whole number of at least 1 expected, got '0'"},
    {{"--n", "-4"}, "at least 1 expected, got '-4'"},
    {{"--k", "many"}, "--k: a whole number expected, got 'many'"},
    {{"--k", "99999999999999999999"}, "at most 63 bits"},
    {{"--m", "4000000000"}, "the limit of an extent is 2147483647"},
    {{"--m", "2000000000", "--n", "2000000000"}, "[out-of-memory]"},
    {{"--layout", "xy"}, "one of tn, nt, nn, tt expected, got 'xy'"},
    {{"--alpha", "x"}, "--alpha: a finite number expected, got 'x'"},
    {{"--rows"}, "unknown option '--rows'"},
    {{"--a", "/nonexistent.npy"}, "/nonexistent.npy"},
    {{"extra"}, "extra"},
  } do
    it("rejects " .. table.concat(case[1], " "), function()
      local out, err, code = run("gemm_base", "--device", "sim",
                                 table.unpack(case[1]))
      assert.equal("", out)
      assert.is_truthy(err:find(case[2], 1, true), err)
      assert.is_true(code ~= 0 and code < 128)
    end)
  end

  it("prints how much memory is needed and free", function()
    local _, err = run("gemm_base", "--device", "sim", "--m", "2000000000",
                       "--n", "2000000000", "--k", "1")
    assert.is_truthy(err:find "needs [%d.]+ GB of memory, but only [%d.]+ GB",
                     err)
  end)

  it("reports which architecture has its atom", function()
    local _, err, code = run("gemm_fp8_sm89", "--device", "sim", "--arch",
                             "sm_80", "--m", "16", "--n", "16", "--k", "16")
    assert.is_truthy(err:find("needs sm_89 or newer", 1, true), err)
    assert.is_true(code ~= 0)
  end)

  it("wants whole numbers to scale integers with", function()
    local _, err, code = run("gemm_int8", "--alpha", "0.5", "--device", "sim")
    assert.is_truthy(err:find("must be integers", 1, true), err)
    assert.equal(1, code)
  end)

  it("names the nearest rung of the ladder", function()
    local _, err, code = run("ladder", "gemm_bse", "--device", "sim")
    assert.is_truthy(err:find("did you mean gemm_base?", 1, true), err)
    assert.equal(1, code)
  end)

  it("rejects invalid sizes of the ladder #long", function()
    for _, text in ipairs {"0", "a", "64,-1", "1.5", "0x80", "64,", "1e2",
        " 64"} do
      local _, err, code = run("ladder", "--sizes", text, "--device", "sim")
      assert.is_truthy(err:find("--sizes: whole numbers", 1, true), err)
      assert.equal(1, code)
    end
  end)

  it("reports that another kernel runs than the one on its page", function()
    for size, want in pairs {["128"] = false, ["100"] = true} do
      local out, _, code = run("gemm3stage", "--rows", "--device", "sim",
                               "--m", size, "--n", "128", "--k", "64")
      assert.equal(0, code)
      assert.equal(want, out:find("instead     of gemm3stage, "
        .. "kernels/gemm_sm80.lua", 1, true) ~= nil)
    end
  end)

  it("runs the rungs that are named", function()
    local out, _, code = run("ladder", "gemm_base", "gemm2stage.lua",
                             "--device", "sim", "--sizes", "64,65")
    assert.equal(0, code)
    assert.is_truthy(out:find "gemm_base +65 +ok")
    assert.is_truthy(out:find "gemm2stage +64")
    assert.is_nil(out:find "sgemm")
  end)
end)
-- SPDX-License-Identifier: MIT
