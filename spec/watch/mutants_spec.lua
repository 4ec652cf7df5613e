-- Tests faults in the text of scripts and kernels. The faults are of every
-- class that is checked: a barrier, wait, commit, fence or memory order that is
-- omitted or too weak, a bound that is one too large, an omitted copy, an
-- ignored predicate. The simulator or the tracer must report each fault before
-- the result is compared. The lists also have faults that only give wrong
-- results.
local mutants = require "spec.mutants"

-- Tests a list of at least `least` faults. At most one in 50 may give only
-- wrong results, without a report.
local function test(title, list, least)
  local all, told = 0, 0
  for _, f in ipairs(list) do
    it(f[1] .. ": " .. (f.file or "scripts/" .. f[1]), function()
      for i = 2, #f do
        local change, nth, want = table.unpack(f[i])
        local got, wrong, note = mutants.run {script = f[1], file = f.file,
          from = change[1], nth = nth, to = change[2], size = f.size,
          device = f.device, seed = f.seed, launch = f.launch}
        local name = ("%s %d: %s"):format(change[1], nth,
          type(got) == "table" and got.kind .. ": " .. got.message or got)
        all = all + 1
        if got or want == "note" and note then told = told + 1 end
        if not want then
          assert.is_false(got, name)
          assert.truthy(wrong, name)
        elseif want == "note" then
          assert.is_false(got, name)
          assert.truthy(note, name)
        elseif type(got) == "string" then
          assert.matches(want, got)
        else
          assert.equal(want, got and got.kind, name)
        end
      end
    end)
  end

  it("all of them is reported, except one of 50: " .. title, function()
    print(("planted in %s: %d of %d faults told without a look at "
      .. "results"):format(title, told, all))
    assert.is_true(all >= least and told >= 0.98 * all, told .. " of " .. all)
  end)
end

describe("a fault in the text of #long", function()
  test("scripts and kernels", require "spec.faults.scripts", 120)
  test("those for Blackwell", require "spec.faults.scripts_sm100", 90)
end)
-- SPDX-License-Identifier: MIT
