--- Writes notes on comparisons of an element type with a string, as in `x.dtype
-- == "f32"`. Such a comparison is always false, because Lua calls no metamethod
-- for values of different types.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local report = require "cute.lang.report"

local compared = {}

-- The script lines about which a note was written, as a set.
local known = {}

-- If instruction i of function f compares register `reg` with a string, returns
-- the string; else nil. `level` is the stack level of f.
local function string_of(level, f, flow, i, reg)
  local value
  if flow.op[i] == bytecode.OP.EQK and flow.a[i] == reg then
    value = bytecode.constant(f, flow.b[i])
  elseif flow.op[i] == bytecode.OP.EQ
    and (flow.a[i] == reg or flow.b[i] == reg) then
    local other = flow.a[i] == reg and flow.b[i] or flow.a[i]
    value = select(2, debug.getlocal(level + 1, other + 1))
  end
  return type(value) == "string" and value or nil
end

--- Is called when a script reads an element type. Emits a note if the script's
-- next instruction compares the type with a string.
function compared.compared_type()
  local level = 4  -- the script's function is above two functions in C
  local info = debug.getinfo(level, "Sfl")
  local place = ("%s:%d"):format(info.short_src, info.currentline)
  if known[place] or not bytecode.known() then return end
  local flow, at = bytecode.flow(info.func), core.vm_at(level)
  if not flow or not at or flow.op[at] ~= bytecode.OP.GETFIELD then return end
  local value = string_of(level, info.func, flow, at + 1, flow.a[at])
  if not value then return end
  known[place] = true
  report.note(("%s: an element type never equals the string \"%s\": compare "
    .. "it with cute.f32, or its name, x.element_type.name, with \"f32\"")
    :format(place, core.visible(value)))
end

return compared
-- SPDX-License-Identifier: MIT
