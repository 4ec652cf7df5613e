--- cute.explain: prints the steps of calls of the layout algebra, for learning.
--
--     > cute.explain(function()
--     >>   return cute.logical_divide(cute.layout "(4,6):(1,4)", {2, 3})
--     >> end)
local core = require "cute.core"

local explain = {}

--- Calls f and prints the steps of the layout algebra that f performs, such as
-- the result of each mode of a composition, or the modes that a complement
-- adds. Then prints f's results.
---@generic T
---@param f fun(): T the calls to explain
---@param out? fun(line: string) takes each line; print by default
---@return T ... what f returned
function explain.explain(f, out)
  out = out or print
  local listener = core.explain_begin()
  local results = table.pack(pcall(f))
  local text = core.explain_end(listener)
  for line in text:gmatch "[^\n]+" do out(line) end
  if not results[1] then error(results[2], 0) end
  for i = 2, results.n do out("= " .. tostring(results[i])) end
  return table.unpack(results, 2, results.n)
end

return explain
-- SPDX-License-Identifier: MIT
