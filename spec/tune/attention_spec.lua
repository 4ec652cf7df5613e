-- Tests `cutelua tune attention`: the table that it writes with fake child
-- processes, how it checks results on the simulator, and the tiles that
-- ops.attention takes from a table.
local attention = require "cutelua.tune.attention"
local candidates = require "kernels.attention_sm90.options".candidates
local support = require "spec.support"
local tables = require "cutelua.tune.tables"
local time = require "spec.tune.faketime"
local tuned = require "cute.ops.tuned"

local dir

-- Runs the tuner with fake child processes. Returns standard output, error
-- output, exit code.
local function tune(words)
  for i, word in ipairs(words) do words[i] = ("%q"):format(word) end
  return support.run({"-e", ("os.exit(require 'cutelua.tune'.main({%s}, "
    .. "{worker = 'spec.tune.child'}))"):format(table.concat(words, ", "))},
    {env = {XDG_DATA_HOME = dir}})
end

-- Returns the name of the tile with the least fake time.
local function best(problem, given)
  local least, name = math.huge, nil
  for _, tile in ipairs(candidates(given)) do
    local n = tuned.tile_name(tile)
    local t = time(problem, n)
    if t < least then least, name = t, n end
  end
  return name, least
end

describe("cutelua tune attention", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("finds the best tile of each shape", function()
    local out, err, code = tune {"attention", "2,300,300,8,2,64/128",
                                 "--causal", "--jobs", "2"}
    assert.equal("", err)
    assert.equal(0, code)
    local rows = {}
    for i, D in ipairs {64, 128} do
      local problem = "attention bf16 causal 2 300 300 8 2 " .. D
      local name, t = best(problem, {head = D, causal = true, rows = 300})
      t = tonumber(("%.2f"):format(t))
      rows[i] = {2, 300, 300, 8, 2, D, t, t, name}
      assert.matches(name, out, 1, true)
    end
    assert.matches("2 shapes measured", out)
    local path = dir .. "/cutelua/tuned/h200.lua"
    local t = assert(tables.read(path))
    assert.same({["bf16 causal"] = rows}, t.attention)
    -- Results for products are added to the same file.
    assert.equal(0, select(3, tune {"gemm", "64,64,64"}))
    local both = assert(tables.read(path))
    assert.same(t.attention, both.attention)
    assert.equal(1, #both.gemm["bf16 bf16 bf16 tn row"])
  end)

  it("reports wrong arguments and impossible shapes", function()
    for _, case in ipairs {
        {{"attention"}, "--shapes is needed: B,S,T,H,G,D or a file"},
        {{"attention", "1,2,3"}, "'1,2,3' is neither B,S,T,H,G,D nor a file"},
        {{"attention", "1,2,3,4,4,64", "--layout", "nn"},
         "--layout: an option of 'tune gemm'"},
        {{"attention", "1,2,3,4,4,64", "--types", "e4m3"},
         "--types: 'e4m3'; attention has operands of bf16 or f16"},
        {{"gemm", "1,2,3", "--causal"}, "an option of 'tune attention'"}} do
      local out, err, code = tune(case[1])
      assert.equal("", out)
      assert.equal(2, code)
      assert.matches(case[2], err, 1, true)
    end
    local out, _, code = tune {"attention", "1,64,64,4,4,80",
                               "1,64,64,4,3,64"}
    assert.equal(1, code)
    assert.matches("head = 80; 64, 96, 128, 192 or 256 is needed", out, 1, true)
    assert.matches("H = 4; a multiple of G = 3 is needed", out, 1, true)
  end)

  it("checks a tile's results #long", function()
    local o = attention.of("attention bf16 causal 2 70 90 4 2 64", "host")
    o:contestant "attention_sm90 64x128"
    o.own.O[{1, 69, 3, 63}] = o.own.O(1, 69, 3, 63) + 0.25
    assert.matches("^wrong: O%(1,69,3,63%) is ", o:wrong())
    assert.has_error(function() o:contestant "attention_sm90 64x24" end,
                     "no tile is called 'attention_sm90 64x24'")
  end)
end)

describe("tuned tables of attention", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  -- Returns the tile that ops.attention chooses on a GPU whose tuned table has
  -- these rows.
  local function explained(rows, options)
    os.execute("mkdir -p " .. dir .. "/cutelua/tuned")
    support.write(dir .. "/cutelua/tuned/h1.lua", tables.text {
      card = "NVIDIA H1", arch = "sm_90a", sms = 144, gemm = {},
      attention = {["bf16 full"] = rows}})
    return support.run({"-e", ([[
      local cute = require "cute"
      local d = {info = {name = "NVIDIA H1", sms = 144}}
      for k, v in next, cute.device "sim:sm_90a" do d[k] = v end
      d.name = "NVIDIA H1"
      setmetatable(d, require "cute.lang.devices".Device)
      local Q = cute.zeros({1, 70, 2, 64}, cute.f16)
      local K = cute.zeros({1, 80, 1, 64}, cute.f16)
      local o = {%s}
      o.device = d
      local e = cute.ops.explain_attention(Q, K, K, o)
      print(e.tile[1], e.tile[2], e.how)]]):format(options or "")},
      {env = {XDG_DATA_HOME = dir}})
  end
  local function row(S, tile)
    return {{1, S, 80, 2, 1, 64, 1.0, 1.0, "attention_sm90 " .. tile}}
  end

  it("apply to measured shapes only", function()
    assert.equal("128\t176\tmeasured\n", (explained(row(70, "128x176"))))
    local rule = explained(row(71, "128x176"))
    assert.matches("by rule", rule)
    for _, o in ipairs {"causal = true", "window = {3, false}",
                        "softcap = 3.0"} do
      assert.matches("by rule", (explained(row(70, "128x176"), o)))
    end
    local out, err = explained(row(70, "64x24"))
    assert.equal(rule, out)
    assert.matches("configurations that no longer exist, such as "
      .. "'attention_sm90 64x24'", err, 1, true)
  end)

  it("have rows of six extents", function()
    for _, text in ipairs {"{1,2,3,4,5,6,7,8}", "{1,2,3,4,5,6.5,7,8,''}",
                           "{1,2,3,4,5,6,7,1e999,''}"} do
      local t, why = tables.parse(("return {format = 1, card = '', arch = '', "
        .. "sms = 1, gemm = {}, attention = {x = {%s}}}"):format(text))
      assert.is_nil(t)
      assert.equal('row 1 of "x" is not {B, S, T, H, G, D, hot, cold, choice}',
                   why)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
