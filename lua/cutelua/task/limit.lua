--- Calls functions of a task file in the referee's process, with limits: they
-- may never end, or exhaust memory.
local core = require "cute.core"

local limit = {}

-- STEP: the number of Lua instructions between two checks of the limits. AGAIN:
-- the same number after a limit was exceeded. The functions may catch the error
-- in a loop. So this number grows with each error, until an error is raised
-- outside of the call that catches errors.
local STEP, AGAIN = 1000000, 10000

--- Calls f(...). If it exceeds its time or memory, raises an error of kind
-- [limit].
---@param limits table {seconds =, memory = bytes of all Lua values}
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
