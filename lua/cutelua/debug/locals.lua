--- Records the values of a kernel's local variables at each line of its trace.
-- The debugger uses them to find the value that a name has at an instruction.
local locals = {}

local Locals = {}
Locals.__index = Locals

-- Reports whether a line is inside the function to which the local of record e
-- belongs.
local function is_around(e, file, line)
  return file == e.file and e.first <= line and line <= e.last
end

--- Returns the names visible at an instruction, {name = value}. If a name
-- occurs twice, the local of a function that contains the instruction's line
-- has priority over a local of its callers.
---@param ref integer instruction of the IR
---@param file? string chunk of its line
---@param line? integer
---@return table<string, any> seen, string[] names in order
function Locals:at(ref, file, line)
  local near, far, names = {}, {}, {}
  for _, e in ipairs(self.list) do
    if e.at > ref then break end
    local at = is_around(e, file, line or 0) and near or far
    if near[e.name] == nil and far[e.name] == nil then
      names[#names + 1] = e.name
    end
    at[e.name] = e
  end
  local seen = {}
  for _, name in ipairs(names) do
    seen[name] = (near[name] or far[name]).value
  end
  return seen, names
end

-- Records that a local has `value` after n instructions of the trace, unless
-- its last recorded value is the same.
local function note(self, n, info, last, name, value)
  if name:sub(1, 1) == "(" or rawequal(last[name], value) then return end
  last[name] = value
  self.list[#self.list + 1] = {at = n, name = name, value = value,
    file = info.source, first = info.linedefined, last = info.lastlinedefined,
    line = self.line[info.func] or info.linedefined}
end

--- Returns a new list of records, and a function that extends the list. The
-- trace calls this function at every line of the user's code, with the number
-- of instructions so far (TRACE_STATE, `record`).
---@return table locals, fun(n: integer) record
function locals.new()
  -- A value that is new at the beginning of a line was set by the line before.
  local self = setmetatable({list = {}, line = {}}, Locals)
  local last = {}
  return self, function(n)
    local list = self.list
    if list[1] and list[#list].at > n then
      -- The body of a loop is being traced again: the records of the earlier
      -- pass are deleted.
      while list[1] and list[#list].at > n do list[#list] = nil end
      last = {}
    end
    local info = debug.getinfo(2, "Sfl")
    local known = last[info.func] or {}
    last[info.func] = known
    for i = 1, math.huge do
      local name, value = debug.getupvalue(info.func, i)
      if not name then break end
      if name ~= "_ENV" and type(value) ~= "function" then
        note(self, n, info, known, name, value)
      end
    end
    for i = 1, math.huge do
      local name, value = debug.getlocal(2, i)
      if not name then break end
      note(self, n, info, known, name, value)
    end
    self.line[info.func] = info.currentline
  end
end

return locals
-- SPDX-License-Identifier: MIT
