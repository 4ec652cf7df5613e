--- Shows the progress of a simulator run on a terminal, if the run takes long.
local core = require "cute.core"

local progress = {AFTER = 2, EVERY = 0.5}  -- seconds

-- Shows nothing. A run with a progress function, even this one, can be stopped
-- by Ctrl-C.
local function quiet() end

--- Returns a function that takes the finished fraction (0 to 1) and shows it in
-- a separate line, at intervals of EVERY seconds. Closing the second result
-- removes this line, as the fraction 1 does. The argument `doing` names a task
-- of many runs, whose progress the fraction then is. After a call with `doing`,
-- calls without it, which come from the task's single runs, show nothing.
---@param name string the kernel's name
---@param write? fun(text: string) when absent: standard error, if it is a
-- terminal
---@param now? fun(): number seconds
---@return fun(done: number, doing: string?) show
---@return table line to be closed
function progress.progress(name, write, now)
  if not write and core.isatty(2) then
    write = function(text)
      io.stderr:write(text)
      io.stderr:flush()
    end
  end
  if not write then return quiet, setmetatable({}, {__close = quiet}) end
  now = now or core.clock
  local start, last, closed, work = now(), nil, false, nil
  local function show(done, doing)
    work = doing or work
    -- Show nothing if the launch runs again after the line was closed.
    if closed or work ~= doing then return end
    if done >= 1 then
      if last then write "\r\27[K" end
      last = nil
      return
    end
    local t = now() - start
    if t < progress.AFTER or last and t - last < progress.EVERY then return end
    last = t
    write(("\r\27[K%s %s: %d %%, %.0f s (Ctrl-C stops it)"):format(
      doing or "simulating", core.visible(name, false), done * 100 // 1, t))
  end
  return show, setmetatable({}, {__close = function()
    if last then write "\r\27[K" end
    closed = true
  end})
end

return progress
-- SPDX-License-Identifier: MIT
