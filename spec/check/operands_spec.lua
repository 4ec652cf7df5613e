-- Tests the repairs that the search proposes for faults in one operand of an
-- instruction (spec/operands.lua).
local operands = require "spec.operands"
local support = require "spec.support"

describe("the repair search, for one wrong operand,", function()
  -- Runs the repair search on all faults. With `silent`, runs it only on faults
  -- that cause no report, only wrong results.
  local function over(silent, refer)
    local n, mended, first, right, lost = 0, 0, 0, 0, {}
    for i, f in ipairs(operands.FAULTS) do
      if (f.class == "silent") == silent and not support.skipped(i, 9) then
        local r = operands.try(f, refer)
        assert.equal("bug", r.verdict.verdict, f.to)
        n = n + 1
        mended = mended + (r.mend and 1 or 0)
        first = first + (r.first and 1 or 0)
        right = right + (r.right and 1 or 0)
        if not (r.first and r.right) then
          lost[#lost + 1] = ("%s %s: %s: %s"):format(f.class, f.kernel, f.to,
            r.told or "nothing")
        end
      end
    end
    return n, mended, first, right, table.concat(lost, "\n")
  end

  it("mends it at its line, with the right results #long", function()
    local n, mended, first, right, lost = over(false)
    assert.is_true(n >= 54 or support.skipped(1, 9))
    assert.is_true(mended >= n - 1, lost)
    assert.is_true(first >= n - 4, lost)
    assert.is_true(right >= n - 3, lost)
  end)

  it("proposes nothing that a reference contradicts #long", function()
    local n, mended, first, right, lost = over(false, true)
    assert.is_true(mended >= n - 1, lost)
    assert.is_true(first >= n - 2, lost)
    assert.equal(mended, right, lost)
  end)

  it("repairs what only a reference reveals", function()
    local n, _, first, right, lost = over(true, true)
    assert.equal(n, first, lost)
    assert.equal(n, right, lost)
  end)
end)
-- SPDX-License-Identifier: MIT
