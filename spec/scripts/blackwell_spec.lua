-- Tests the scripts for Blackwell's tensor memory. Their results on the
-- simulator are compared with sums in doubles. NVRTC must compile their kernels
-- for each chip with tcgen05, without spills. spec/odd.lua runs the scripts at
-- odd sizes.
local harness = require "cutelua.bench.harness"
local lib = require "cutelua.bench.lessonlib"
local support = require "spec.support"

local CHIPS = {"sm_100a", "sm_103a", "sm_110a"}

-- Returns the tag #long, except for the script that takes the least
-- time.
local function long(name)
  return name == "gemm_tcgen05" and "" or " #long"
end

describe("a kernel of the scripts for Blackwell:", function()
  -- A warning of NVRTC about spills would be in `err`. gemm_sm120 needs more
  -- registers if rows of its operands are not multiples of 16 bytes, or of 4.
  for _, c in ipairs {
    {"gemm_tcgen05", CHIPS}, {"gemm_clc", CHIPS}, {"gemm_2cta", CHIPS},
    {"gemm_mxf8", CHIPS}, {"gemm_nvf4", CHIPS},
    {"attention_sm100", CHIPS, "--b 1 --s 461 --t 381 --h 2 --g 1 --d 64"},
    {"gemm_sm120", {"sm_120a"}, "--m 521 --n 237 --k 344"},
    {"gemm_sm120", {"sm_120a"}, "--m 256 --n 128 --k 290"},
  } do
    local name, size = c[1], c[3]
    it(("%s compiles for each of its chips, without spills%s%s"):format(name,
       size and ": " .. size or "", long(name)), function()
      local folder = support.folder()
      for _, chip in ipairs(c[2]) do
        local words = {("scripts/%s.lua"):format(name), "--emit", "cubin",
                       "--arch", chip, "-o", folder .. "/k.cubin"}
        for word in (size or ""):gmatch "%S+" do words[#words + 1] = word end
        local _, err, code = support.run(words)
        if err:find("[no-nvrtc]", 1, true) then
          pending "needs NVRTC"
          break
        end
        assert.equal("", err)
        assert.equal(0, code)
      end
      support.remove(folder)
    end)
  end
end)

describe("the script for Blackwell", function()
  for _, name in ipairs {"gemm_tcgen05", "gemm_clc", "gemm_2cta", "gemm_mxf8",
                         "gemm_nvf4"} do
    local script = ("scripts/%s.lua"):format(name)

    it(name .. " is right and needs no registers in memory" .. long(name),
       function()
      local out, err, code = support.run {script, "--m", "200", "--n", "264",
        "--k", "160", "--device", "sim", "--seed", "7"}
      assert.equal("", err)
      assert.equal(0, code)
      assert.matches("simulator %(sm_100a%)", out)
      assert.matches("verified .-: ok", out)
      assert.matches("nothing to report", out)
      if out:find "NVRTC was not found" then
        pending "needs NVRTC"
        return
      end
      assert.matches("sm_100a +%d+ registers, 0 bytes spilled", out)
    end)
  end

  -- Sizes that are not multiples of the tile, and K that ends within a chunk of
  -- scale factors
  for _, name in ipairs {"gemm_mxf8", "gemm_nvf4"} do
    it(name .. " is right at 15 odd sizes #long", function()
      local spec = assert(lib.script_spec(("scripts/%s.lua"):format(name),
                                          "cutelua.bench.harness", "run"))
      math.randomseed(11)
      for i = 1, 15 do
        local size = {math.random(300), math.random(300), 32 * math.random(20)}
        local p = harness.problem(spec, size, {dtype = spec.dtypes[i % 2 + 1]})
        local right, reports, wrong = harness.try(p, "sim:sm_100a", {seed = i})
        assert.is_true(right, table.concat(size, "x") .. ": "
          .. (wrong or tostring(reports[1])))
      end
    end)
  end

  it("rejects a K that is no multiple of 32", function()
    local _, err, code = support.run {"scripts/gemm_nvf4.lua", "--k", "40",
                                      "--device", "sim"}
    assert.equal(1, code)
    assert.matches("%-%-k 40: k must be a multiple of 32", err)
  end)

  -- {B, S, T, H, G, D, whether the attention is causal}
  for nth, c in ipairs {
    {1, 130, 150, 2, 1, 64, true}, {1, 1, 1, 1, 1, 64}, {1, 1, 65, 1, 1, 128},
    {2, 257, 129, 2, 1, 64}, {1, 300, 64, 1, 1, 64, true},
    {1, 511, 65, 1, 1, 128, true}, {1, 33, 300, 4, 2, 64, true},
    {1, 33, 300, 4, 2, 128}, {1, 128, 200, 3, 1, 128, true},
    {1, 256, 256, 1, 1, 64, true}, {1, 257, 31, 1, 1, 128},
    {2, 5, 70, 2, 2, 128, true}, {1, 129, 127, 1, 1, 64},
    {1, 63, 64, 2, 1, 64}, {1, 385, 192, 1, 1, 128, true},
  } do
    local title = table.concat(c, " ", 1, 6) .. (c[7] and ", causal" or "")
    it(("attention_sm100 is right: %s #long"):format(title), function()
      local words = {"scripts/attention_sm100.lua", "--device", "sim",
                     "--dtype", nth % 2 == 0 and "bf16" or "f16", "--seed",
                     ("%d"):format(nth)}
      for i, name in ipairs {"b", "s", "t", "h", "g", "d"} do
        words[#words + 1], words[#words + 2] = "--" .. name, ("%d"):format(c[i])
      end
      if c[7] then words[#words + 1] = "--causal" end
      local out, err, code = support.run(words)
      assert.equal("", err)
      assert.equal(0, code)
      assert.matches("verified .-: ok", out)
      assert.matches("nothing to report", out)
      if out:find "NVRTC was not found" then
        pending "needs NVRTC"
        return
      end
      assert.matches("sm_100a +%d+ registers, 0 bytes spilled", out)
    end)
  end

  it("has the text of Hopper's for mma.sync", function()
    for _, chip in ipairs {"sm_90a", "sm_100a", "sm_120a"} do
      local out, err, code = support.run {"scripts/gemm3stage.lua", "--m",
        "72", "--n", "40", "--k", "64", "--device", "sim:" .. chip}
      assert.equal("", err)
      assert.equal(0, code)
      assert.matches("simulator %(" .. chip .. "%)", out)
      assert.matches("verified .-: ok", out)
      assert.matches("nothing to report", out)
    end
  end)

  it("is rejected for a GPU without tensor memory", function()
    local _, err, code = support.run {"scripts/gemm_clc.lua", "--emit", "cu",
                                      "--arch", "sm_120a"}
    assert.equal(1, code)
    assert.matches("tcgen05.-%[wrong%-arch%]", err)
  end)
end)
-- SPDX-License-Identifier: MIT
