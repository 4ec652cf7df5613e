--- Saves and restores all state that a launch on the simulator changes: the
-- memory that it writes, and the simulator's record of the previous launch. A
-- program can thus try a launch without lasting effects, or repeat it.
local core = require "cute.core"
local kernel = require "cute.lang.kernel"

local memory = {}

--- Saves all state that a launch of a program with these arguments may change.
-- Returns a function that restores the state.
---@param program table
---@param args table[] as core.sim_run takes them
---@param all? boolean also saves memory that the launch does not write
---@return fun(): integer restore restores the state, any number of times;
-- returns a checksum of the contents that it replaced
function memory.keep(program, args, all)
  local kept, seen, front = {}, {}, core.sim_front()
  local anywhere = program.info.addresses
  local function keep(buffer)
    if seen[buffer] then return end
    seen[buffer] = true
    kept[#kept + 1] = {buffer, core.buffer_keep(buffer)}
  end
  for i, v in ipairs(args) do
    if kernel.may_write(program.info, i)
      or all and program.info.args[i].pointer then keep(v[1]) end
  end
  for _, buffer in ipairs(anywhere and core.addressed_buffers() or {}) do
    keep(buffer)
  end
  return function()
    local sum = 0
    for _, k in ipairs(kept) do
      sum = core.buffer_sum(k[1], sum)
      core.buffer_restore(k[2])
    end
    core.sim_front(front)
    return sum
  end
end

--- Calls f and then restores the saved state, even if f fails. Returns the
-- checksum of the memory that f left, then f's results.
---@param restore fun(): integer
---@param f fun(...)
function memory.untouched(restore, f, ...)
  local out = table.pack(pcall(f, ...))
  local sum = restore()
  if not out[1] then error(out[2], 0) end
  return sum, table.unpack(out, 2, out.n)
end

return memory
-- SPDX-License-Identifier: MIT
