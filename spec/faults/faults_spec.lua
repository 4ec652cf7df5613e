-- Runs each script of spec/faults/KIND/. The script must give the report that
-- its first comment expects. With its repair (the line `mend`), it must give no
-- report.
local faults = require "spec.faults"

-- Defines a test that is pending if the machine lacks a requirement of the
-- script.
local function test(f, name, run)
  it(name, function()
    if f.needs and not faults.NEEDS[f.needs] then
      return pending("needs " .. f.needs)
    end
    assert.is_nil(run(f))
  end)
end

-- `make test` runs the first script of each kind.
describe("spec/faults:", function()
  local tested = {}
  for _, f in ipairs(faults.list()) do
    local name, kind = f.path:match "spec/faults/((.*)/.*)%.lua$"
    local long = tested[kind] and " #long" or ""
    tested[kind] = true
    test(f, name .. " is reported" .. long, function()
      return faults.differs(f, faults.report(f))
    end)
    if f.mended then
      test(f, name .. " is silent once mended" .. long, faults.mended)
    end
  end
end)
