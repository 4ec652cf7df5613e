-- Tests TMA on a GPU: the data of loads and stores, tile by tile. Also compares
-- our encoded tensor maps with the driver's.
local core = require "cute.core"
local tma = require "spec.tma"

describe("TMA #gpu", function()
  tma.suite(it, function(wrong, first) assert.equal(0, wrong, first) end,
            "gpu")

  it("encodes tensor maps like the driver", function()
    assert(core.gpu_open())
    local seed, taken = 1, 0
    local function chance(n)
      seed = (seed * 6364136223846793005 + 1442695040888963407) &
        math.maxinteger
      return (seed >> 33) % n
    end
    for _ = 1, 3000 do
      local rank = 1 + chance(5)
      local p = {type = chance(13), rank = rank,
                 address = 0x7f0000000000 + 16 * chance(1 << 20), extent = {},
                 stride = {}, box = {}, step = {}, swizzle = chance(4),
                 l2 = chance(4), fill = chance(2),
                 interleave = chance(8) == 0 and chance(3) or 0}
      for i = 1, rank do
        p.extent[i] = 1 + chance(1 << chance(33))
        p.box[i] = i == 1 and 8 << chance(4) or 1 + chance(1 << chance(8))
        p.step[i] = chance(5) == 0 and 1 + chance(9) or 1
        if i > 1 then p.stride[i - 1] = 16 * (1 + chance(1 << chance(36))) end
      end
      local theirs = core.driver_tensor_map(p)
      local ok, ours = pcall(core.encode_tensor_map, p)
      assert.equal(theirs ~= nil, ok, ours)
      if ok then
        assert.same(theirs, ours)
        taken = taken + 1
      end
    end
    assert.is_true(taken > 300)
  end)
end)
-- SPDX-License-Identifier: MIT
