--- Calls the functions of a task file, which may never end or exhaust memory,
-- in the referee's process.
local core = require "cute.core"

local limit = {}

-- STEP: the number of Lua instructions between two checks. AGAIN: the same
-- after a limit was exceeded. The functions may catch the error in a loop, so
-- this number grows until an error is raised outside of the call that catches
-- errors.
local STEP, AGAIN = 1000000, 10000

--- Calls a function. Raises [limit] if it exceeds its time or memory.
---@param limits table {seconds =, memory = in bytes, of all Lua values}
---@param f function
---@param ... any
---@return any ...
function limit.call(limits, f, ...)
  local stop, again = core.clock() + limits.seconds, AGAIN
  local function look()
    local late = core.clock() > stop
    if late or collectgarbage "count" * 1024 > limits.memory then
      again = again + 1
      debug.sethook(look, "", again)
      core.fail("limit", late
        and ("the task file did not end within %g s (--seconds)"):format(
          limits.seconds)
        or ("the task file needs more than %d MB (--memory)"):format(
          limits.memory >> 20))
    end
  end
  local _ <close> = setmetatable({}, {__close = function() debug.sethook() end})
  debug.sethook(look, "", STEP)
  return f(...)
end

return limit
-- SPDX-License-Identifier: MIT
