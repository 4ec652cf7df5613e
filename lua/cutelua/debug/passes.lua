--- Prints how the tracer infers the types of variables in loops and branches,
-- if CUTELUA_DEBUG=trace is set. The tracer runs the body of a loop or branch
-- in several passes, until a pass finds nothing new (cute.lang.region).
local core = require "cute.core"
local report = require "cute.lang.report"

local passes = {}

-- Returns the loop-carried variables of `carry` as text, with their types and
-- known ranges: "i32 0 to 2".
local function variables(carry)
  local list = {}
  for i = 1, carry.n do
    local f = carry.facts[i]
    local text = carry.types[i] and tostring(carry.types[i])
    if f and (f.lo > math.mininteger or f.hi < math.maxinteger) then
      text = ("%s %s to %s"):format(text,
        f.lo > math.mininteger and f.lo or "any",
        f.hi < math.maxinteger and f.hi or "any")
    end
    list[#list + 1] = text
  end
  return table.concat(list, ", ")
end

--- Prints that the passes over a region (the body of a loop or branch) begin.
---@param key string the region's position in the script
---@param what string "this loop"
function passes.open(key, what)
  report.tell(key:match "@?([^@]*)$" .. ": " .. what)
end

--- Prints what a pass over the body found about a slot (a variable or field).
-- `from` and `to` are the slot's values before and after the body of a loop, or
-- after two branches. If `from` is nil, the range of its possible values grew.
function passes.slot(region, slot, from, to)
  local line = ("  pass %d: %s '%s' "):format(region.passes,
    slot.t and "field" or slot.f and "upvalue" or "local", slot.name)
  if from ~= nil then
    line = line .. (region.loops and "changes from %s to %s: carried as "
      or "ends as %s or %s: carried as "):format(core.show(from), core.show(to))
  else
    line = line .. "may hold more values: "
  end
  report.tell(line .. variables(slot.carry))
end

--- Prints that the last pass over a region found nothing new.
function passes.finish(region)
  report.tell(("  pass %d: nothing new"):format(region.passes))
end

return passes
-- SPDX-License-Identifier: MIT
