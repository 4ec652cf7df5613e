--- cute.arch.range names a part of a kernel (a range). Timelines show the
-- ranges with their names.
--
-- A name costs no time: the generated code of the kernel is the same with and
-- without the name. The simulator records where a range begins and ends
-- (cutelua.profile.timeline). For a timeline of a GPU, the kernel is traced
-- again with a plan (cutelua.profile.clocks), which adds code that stores clock
-- values.
local core = require "cute.core"

local ranges = {}

--- The plan of the kernel that is being traced for a timeline of a GPU, or nil.
-- Its method record(name, ends) is called where a range begins and ends, and
-- adds the code that stores clock values.
ranges.plan = nil

--- Calls f(...) as a range with a name, which timelines show, and returns the
-- results of f. Without a timeline the kernel's generated code is unchanged.
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
