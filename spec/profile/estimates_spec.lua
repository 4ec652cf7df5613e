-- Tests the cost model against an H100's measured times of kernels that each do
-- one kind of work.
local assert = require "luassert"
local estimates = require "spec.estimates"

-- Returns a row with the model's estimate for each kernel of the list.
local function said(list)
  local rows = {}
  for i, r in ipairs(list) do
    rows[i] = {said = estimates.said(r, "h100"), took = r.us, name = r.name}
  end
  return rows
end

local function is_near(r) return math.abs(r.said - r.took) <= 0.15 * r.took end

describe("estimates of one kind of work #long", function()
  local known, new = said(estimates.known), said(estimates.new)

  it("are within 15 % of an H100", function()
    for _, r in ipairs(known) do
      assert.is_true(is_near(r), ("%s: %.2f us, not %.2f"):format(r.name,
        r.said, r.took))
    end
  end)

  it("are in the H100's order if its times differ by 20 %", function()
    for _, rows in ipairs {known, new} do
      for _, a in ipairs(rows) do
        for _, b in ipairs(rows) do
          assert.is_true(a.took <= 1.2 * b.took or a.said > b.said,
                         a.name .. ", " .. b.name)
        end
      end
    end
  end)

  it("are near for rows that no fit used", function()
    assert.equal(40, #new)
    local near, unseen = 0, 0
    for i, r in ipairs(new) do
      near = near + (is_near(r) and 1 or 0)
      if i % 2 == 0 then unseen = unseen + (is_near(r) and 1 or 0) end
    end
    assert.is_true(near >= 36, near .. " of 40")
    assert.is_true(unseen >= 18, unseen .. " of 20")
  end)
end)
-- SPDX-License-Identifier: MIT
