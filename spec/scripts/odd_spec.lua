-- Tests scripts at odd sizes: they must have right results and no reports.
-- `make fuzz` runs as many sizes as time allows.
local odd = require "spec.odd"
local support = require "spec.support"

local EACH = 1  -- number of sizes for each script

describe("scripts at odd sizes", function()
  for i, script in ipairs(odd.SCRIPTS) do
    it(script .. support.long(i, 8), function()
      local ran = 0
      for k = 0, EACH * 4 - 1 do
        local wrong = odd.try(script, k * #odd.SCRIPTS + i - 1)
        assert.is_falsy(wrong, wrong)
        ran = ran + (wrong == false and 1 or 0)
        if ran == EACH then return end
      end
      error "no size was taken"
    end)
  end
end)
-- SPDX-License-Identifier: MIT
