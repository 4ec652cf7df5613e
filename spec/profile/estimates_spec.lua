-- The model of time beside what an H100 took: kernels of one kind of work.
local assert = require "luassert"
local estimates = require "spec.estimates"

describe("estimates of one kind of work", function()
  local rows = {}
  for _, r in ipairs(estimates.known) do
    it(("are within 15 %% of an H100: %s"):format(r.name), function()
      local said = estimates.said(r, "h100")
      rows[#rows + 1] = {said = said, took = r.us, name = r.name}
      assert.near(r.us, said, 0.15 * r.us)
    end)
  end

  it("are in the H100's order where it has 20 % between them", function()
    assert.equal(#estimates.known, #rows)
    for _, a in ipairs(rows) do
      for _, b in ipairs(rows) do
        assert.is_true(a.took <= 1.2 * b.took or a.said > b.said,
                       a.name .. ", " .. b.name)
      end
    end
  end)

  it("are there for the rows that are not measured yet", function()
    assert.equal(40, #estimates.new)
    local names = {}
    for _, list in ipairs {estimates.known, estimates.new} do
      for _, r in ipairs(list) do
        assert.is_nil(names[r.name], r.name)
        names[r.name] = true
      end
    end
    for _, r in ipairs(estimates.new) do
      assert.is_true(estimates.said(r, "h100") > 3, r.name)
    end
  end)
end)
