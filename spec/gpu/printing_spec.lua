-- Tests that kernels print the same on a GPU as on the simulator.
local support = require "spec.support"

describe("printing on a GPU #gpu", function()
  it("prints what the simulator prints", function()
    local function said(device)
      local out, err, code = support.run_lua {"-e", ([[
        local printing = require "spec.printing"
        for _, c in ipairs(printing.cases) do
          io.write("== ", c.name, "\n")
          io.flush()
          io.write(printing.run(c, %q) or "")
          io.flush()
        end]]):format(device)}
      assert.equal("", err)
      assert.equal(0, code)
      return out
    end
    assert.equal(said "sim", said "gpu")
  end)
end)
-- SPDX-License-Identifier: MIT
