-- Tests the scripts for Blackwell's tensor memory: their results on the
-- simulator against sums in doubles, and their kernels by NVRTC, without
-- spills, for each chip with tcgen05. spec/odd.lua runs them at odd sizes.
local support = require "spec.support"

local CHIPS = {"sm_100a", "sm_103a", "sm_110a"}

describe("the script for Blackwell", function()
  for _, name in ipairs {"gemm_tcgen05", "gemm_clc", "gemm_2cta"} do
    local script = ("scripts/%s.lua"):format(name)

    it(name .. " is right and needs no registers in memory", function()
      local out, err, code = support.run {script, "--m", "200", "--n", "264",
        "--k", "136", "--device", "sim", "--seed", "7"}
      assert.equal("", err)
      assert.equal(0, code)
      assert.matches("device +simulator %(sm_100a%)", out)
      assert.matches("verified .-: ok", out)
      assert.matches("nothing to report", out)
      if not out:find "registers" then
        pending "needs NVRTC"
        return
      end
      assert.matches("sm_100a +%d+ registers, 0 bytes spilled", out)
    end)

    it(name .. " compiles for each chip with tcgen05", function()
      local folder = support.folder()
      for _, chip in ipairs(CHIPS) do
        local _, err, code = support.run {script, "--emit", "cubin", "--arch",
          chip, "-o", folder .. "/k.cubin"}
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

  it("is rejected for a GPU without tensor memory", function()
    local _, err, code = support.run {"scripts/gemm_clc.lua", "--emit", "cu",
                                      "--arch", "sm_120a"}
    assert.equal(1, code)
    assert.matches("tcgen05.-%[wrong%-arch%]", err)
  end)
end)
-- SPDX-License-Identifier: MIT
