--- Notes on arguments of a kernel in another order than its parameters. A
-- script often has locals with the names of the parameters. If an argument is
-- the local with the name of another parameter, which gets a different value,
-- the order is probably a mistake. Only the first call of a kernel is looked
-- at, because later calls may exchange two tensors on purpose.
local core = require "cute.core"
local words = require "cute.lang.report"
local at = require "cute.lang.simreport".at

local crossed = {}

-- Returns the level of the script's function that calls the kernel, as seen
-- from the caller of this function.
local function script_level()
  for level = 3, 13 do
    local info = debug.getinfo(level, "Sl")
    if not info then return end
    if info.currentline > 0 and not core.own_source(info.source) then
      return level - 1, info
    end
  end
end

-- Returns the locals and upvalues of the function at a level, by name.
local function names_at(level)
  local values = {}
  local func = debug.getinfo(level + 1, "f").func
  for n = 1, math.huge do
    local name, value = debug.getupvalue(func, n)
    if not name then break end
    values[name] = value
  end
  for n = 1, math.huge do
    local name, value = debug.getlocal(level + 1, n)
    if not name then break end
    values[name] = value
  end
  return values
end

-- Returns the positions of two arguments that seem exchanged, or nil. At least
-- one other argument is the local with the name of its own parameter.
local function exchanged(params, call, values)
  local function is(i, name)
    return values[name] ~= nil and rawequal(call[i], values[name])
  end
  local own = false
  for i, name in ipairs(params) do own = own or is(i, name) end
  for i = 1, own and #params or 0 do
    for j = i + 1, #params do
      if is(i, params[j]) and is(j, params[i]) and not is(i, params[i]) then
        return i, j
      end
    end
  end
end

--- Writes a note if two arguments of a call seem to be exchanged.
---@param name string of the kernel
---@param func function of the kernel
---@param call table the arguments
function crossed.crossed(name, func, call)
  local level, info = script_level()
  if not level or call.n < 3 then return end
  local params = {}
  for n = 1, call.n do
    params[n] = debug.getlocal(func, n)
    if not params[n] then break end
  end
  local i, j = exchanged(params, call, names_at(level))
  if not i then return end
  words.note(("kernel %s: %s: parameter '%s' gets the script's '%s', and "
    .. "parameter '%s' gets '%s'; is the order of the arguments right?")
    :format(name, at(info.source, info.currentline), params[i], params[j],
    params[j], params[i]))
end

return crossed
-- SPDX-License-Identifier: MIT
