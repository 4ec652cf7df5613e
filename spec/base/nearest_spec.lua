-- Tests suggestions for misspelt names. The suggested name must have the
-- smallest edit distance, which the spec computes recursively from its
-- definition.
local core = require "cute.core"

-- Returns the number of edits between two lower-case names: insert, delete,
-- change, swap of neighbours.
local function edits(a, b)
  local known = {}
  local function d(i, j)
    if i == 0 or j == 0 then return i + j end
    local key = i * 100 + j
    if known[key] then return known[key] end
    local x, y = a:sub(i, i), b:sub(j, j)
    local least = math.min(d(i - 1, j) + 1, d(i, j - 1) + 1,
                           d(i - 1, j - 1) + (x == y and 0 or 1))
    if i > 1 and j > 1 and x == b:sub(j - 1, j - 1)
      and a:sub(i - 1, i - 1) == y then
      least = math.min(least, d(i - 2, j - 2) + 1)
    end
    known[key] = least
    return least
  end
  return d(#a, #b)
end

local function nearest(name, list)
  local best, least
  for _, c in ipairs(list) do
    local d = edits(name:lower(), c:lower())
    local near = d <= (#name < 2 and 0 or math.max(1, #name // 3))
      or #name > 3 and c:sub(1, #name) == name
    local better = not least or d < least or d == least and c < best
    if near and better then best, least = c, d end
  end
  return best
end

describe("the nearest name", function()
  it("has the least edit distance among random names", function()
    math.randomseed(3)
    local function word()
      local s = {}
      for i = 1, math.random(0, 9) do
        s[i] = ("abAB_1"):sub(math.random(6)):sub(1, 1)
      end
      return table.concat(s)
    end
    for _ = 1, 2000 do
      local list, name = {}, word()
      for i = 1, math.random(0, 6) do list[i] = word() end
      assert.equal(nearest(name, list), core.nearest(name, list),
                   name .. " of " .. table.concat(list, " "))
    end
  end)

  it("is our name for a name of another language", function()
    for name, own in pairs {gridDim = "grid", num_threads = "block",
                            astype = "to", lane_id = "lane_idx"} do
      assert.equal(own, core.nearest(name, {name .. "s", own, "x"}))
      assert.not_equal(own, core.nearest(name, {name .. "s", "x"}))
    end
  end)

  it("is found where names are long, empty or alike but for case", function()
    local long = ("x"):rep(400)
    assert.equal(long, core.nearest(long, {"y", long}))
    assert.is_nil(core.nearest("", {"ab"}))
    assert.equal("gC", core.nearest("gc", {"gA", "gC"}))
    assert.is_nil(core.nearest("width", {}))
  end)
end)
-- SPDX-License-Identifier: MIT
