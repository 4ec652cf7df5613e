--- cute.arch.range gives a part of a kernel (a range) a name, which timelines
-- show.
--
-- A name costs no time: the generated code of the kernel is the same with and
-- without the name. The simulator records where a range begins and ends
-- (cutelua.profile.timeline). For a timeline of a GPU, the kernel is traced
-- again with a plan (cutelua.profile.clocks), which adds code that stores clock
-- values.
local core = require "cute.core"

local ranges = {}

--- While a kernel is traced for a timeline of a GPU, the plan of this trace;
-- else nil. The plan's method record(name, ends) is called where a range begins
-- and ends, and adds the code that stores clock values.
ranges.plan = nil

--- Calls f(...) as a range with a name, which timelines show, and returns the
-- results of f. The name does not change the kernel's generated code, except
-- for a timeline of a GPU.
---@param name string
---@param f fun(...): ...
---@return any ... results of f
function ranges.range(name, f, ...)
  if name == "" then core.fail("bad-argument", "range: the name is empty") end
  if not core.tracing() then return f(...) end
  core.name_place(name, true)
  if ranges.plan then ranges.plan:record(name, false) end
  local out = table.pack(f(...))
  core.name_place(name, false)
  if ranges.plan then ranges.plan:record(name, true) end
  return table.unpack(out, 1, out.n)
end

return ranges
-- SPDX-License-Identifier: MIT
