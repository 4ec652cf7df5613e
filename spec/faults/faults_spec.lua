-- Every script of spec/faults/KIND/ is reported as its head says; of the mended
-- script nothing is reported.
local faults = require "spec.faults"

describe("spec/faults:", function()
  for _, f in ipairs(faults.list()) do
    local missing = f.needs and not faults.NEEDS[f.needs]
    local name = f.path:match "spec/faults/(.*)%.lua$"
    if not missing then
      it(name .. " is reported", function()
        assert.is_nil(faults.differs(f, faults.report(f)))
      end)
    end
    if not missing and f.mended then
      it(name .. " is silent once mended", function()
        assert.is_nil(faults.mended(f))
      end)
    end
  end
end)
