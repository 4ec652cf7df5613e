-- Tests the names of targets' features (core/ir/target.h), and the error for a
-- kernel that uses a feature which its target lacks.
local core = require "cute.core"
local cute = require "cute"
local raises = require "spec.support".raises

describe("targets", function()
  it("are listed, oldest first", function()
    local archs = core.archs()
    assert.equal("sm_70", archs[1])
    assert.equal("sm_121f", archs[#archs])
    assert.equal(90, archs["sm_90a"])
    assert.is_nil(archs["sm_90f"])
  end)

  it("have features by name", function()
    assert.is_false(core.has(70, "ldmatrix"))
    assert.is_true(core.has(75, "ldmatrix"))
    assert.is_true(core.has(120, "cp.async"))
    assert.is_true(core.has(90, "wgmma"))
    assert.is_false(core.has(100, "wgmma"))
    assert.is_false(pcall(core.has, 90, "magic"))
  end)

  it("are checked before a kernel runs, intrinsics as atoms are", function()
    local k = cute.kernel("k", function(o)
      o[0] = cute.arch.warp_redux_sync(o[0], "add")
    end)
    local function on(device)
      k(cute.zeros({1}, "i32")):launch {grid = 1, block = 32,
        device = device, faults = "return"}
    end
    on "sim:sm_80"
    raises("redux.add (line 27) needs sm_80 or newer, the target is sm_75",
           on, "sim:sm_75")
  end)
end)
-- SPDX-License-Identifier: MIT
