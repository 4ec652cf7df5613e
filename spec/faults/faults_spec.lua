-- Every script of spec/faults/KIND/ is reported as its head says; of the mended
-- script nothing is reported.
local faults = require "spec.faults"

-- A test that a machine without what a script needs leaves pending.
local function test(f, name, run)
  it(name, function()
    if f.needs and not faults.NEEDS[f.needs] then
      return pending("needs " .. f.needs)
    end
    assert.is_nil(run(f))
  end)
end

describe("spec/faults:", function()
  for _, f in ipairs(faults.list()) do
    local name = f.path:match "spec/faults/(.*)%.lua$"
    test(f, name .. " is reported", function()
      return faults.differs(f, faults.report(f))
    end)
    if f.mended then
      test(f, name .. " is silent once mended", faults.mended)
    end
  end
end)
