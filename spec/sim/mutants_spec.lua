-- Tests faults in the text of scripts and kernels, of every class that is
-- checked: a barrier, wait, commit, fence or memory order that is omitted or
-- too weak, a bound one too large, an omitted copy, an ignored predicate. The
-- simulator or the tracer must report each before the result is compared. The
-- list also has faults that only give wrong results.
local FAULTS = require "spec.faults.scripts"
local mutants = require "spec.mutants"

describe("a fault in the text of #long", function()
  local all, told = 0, 0
  for _, f in ipairs(FAULTS) do
    it(f[1] .. ": " .. (f.file or "scripts/" .. f[1]), function()
      for i = 2, #f do
        local change, nth, want = table.unpack(f[i])
        local got, wrong = mutants.run {script = f[1], file = f.file,
          from = change[1], nth = nth, to = change[2]}
        local name = ("%s %d: %s"):format(change[1], nth,
          type(got) == "table" and got.kind .. ": " .. got.message or got)
        all = all + 1
        if got then told = told + 1 end
        if not want then
          assert.is_false(got, name)
          assert.truthy(wrong, name)
        elseif type(got) == "string" then
          assert.matches(want, got)
        else
          assert.equal(want, got and got.kind, name)
        end
      end
    end)
  end

  it("all of them is reported, except one of 50", function()
    print(("planted in scripts and kernels: %d of %d faults told without a "
      .. "look at results"):format(told, all))
    assert.is_true(all >= 120 and told >= 0.98 * all, told .. " of " .. all)
  end)
end)
-- SPDX-License-Identifier: MIT
