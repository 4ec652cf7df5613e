-- Tests wgmma: the GPU's results must equal the simulator's, bit for bit, for
-- every family of instructions.
local specs = require "spec.warpgroup"

local function run(c, device)
  local A, B, D, E = specs.operands(c)
  local kernel, threads = specs.kernel(c)
  kernel(A, B, D, E):launch {grid = 1, block = threads, device = device}
  return specs.raw(D)
end

describe("a warpgroup's MMA on a GPU #gpu", function()
  for _, c in ipairs(specs.cases) do
    it("is the simulator's: " .. specs.name(c), function()
      local got, want = run(c, "gpu"), run(c, "sim:sm_90a")
      for m = 0, got.shape[1] - 1 do
        for n = 0, c.n - 1 do
          if got[{m, n}] ~= want[{m, n}] then
            assert.equal(("%x"):format(want[{m, n}]),
                         ("%x"):format(got[{m, n}]), ("(%d,%d)"):format(m, n))
          end
        end
      end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
