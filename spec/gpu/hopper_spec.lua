-- Tests kernels/gemm_sm90 on a GPU, in every configuration at odd sizes: the
-- results must be exact.
local cute = require "cute"
local hopper = require "spec.hopper"

describe("gemm_sm90 on a GPU #gpu", function()
  for number, case in ipairs(hopper.CASES) do
    it("is exact: " .. case[1], function()
      if assert(cute.device "gpu").sm ~= 90 then
        return pending "needs sm_90"
      end
      assert.is_nil(hopper.wrong(number, "gpu"))
    end)
  end
end)
-- SPDX-License-Identifier: MIT
