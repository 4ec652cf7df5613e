-- Compares the cost model with a GPU: `cutelua spec/bench/estimates.lua [card]
-- [sim]`. Each printed line has a kernel's estimated and measured time in
-- microseconds. The last lines are the median ratio of the two times and the
-- share of kernels within 15 %. They also have the pairs of kernels that the
-- model ranks wrongly although their GPU times differ by more than 20 %. With
-- `sim`, recorded measurements are used instead of a GPU.
local estimates = require "spec.estimates"

local card, sim = arg[1] or "h100", arg[2] == "sim"

local function beside(name, list)
  local rows, near = {}, 0
  for _, r in ipairs(list) do
    local ok, said = pcall(estimates.said, r, card)
    local there, took = true, r.us
    if not sim then there, took = pcall(estimates.took, r) end
    if not ok or not there then
      print(("%-46s %s"):format(r.name, tostring(ok and took or said)
        :match "[^\n]*"))
    elseif not took then
      print(("%-46s estimate %8.2f us"):format(r.name, said))
    else
      local q = said / took
      rows[#rows + 1] = {said = said, took = took, q = q, name = r.name}
      near = near + (math.abs(q - 1) <= 0.15 and 1 or 0)
      print(("%-46s estimate %8.2f us  card %8.2f us  %5.2f%s"):format(r.name,
        said, took, q, math.abs(q - 1) <= 0.15 and "" or "  <--"))
    end
  end
  if #rows == 0 then return end
  local wrong = 0
  for _, a in ipairs(rows) do
    for _, b in ipairs(rows) do
      if a.took > 1.2 * b.took and a.said < b.said then
        wrong = wrong + 1
        print(("  order: %s, %s"):format(a.name, b.name))
      end
    end
  end
  table.sort(rows, function(a, b) return a.q < b.q end)
  print(("%s: %d rows, median %.2f, within 15 %%: %d (%.0f %%), pairs in the "
    .. "wrong order: %d"):format(name, #rows, rows[(#rows + 1) // 2].q, near,
    100 * near / #rows, wrong))
end

beside("known", estimates.known)
beside("new", estimates.new)
-- SPDX-License-Identifier: MIT
