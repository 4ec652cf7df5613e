--- Times launches on a GPU by CUDA events before and after each launch. Only
-- launches that a watcher of cute.lang.history observes are timed.
local events = {}

--- Starts a prepared launch on a GPU, and records an event before and after it.
---@param p table a prepared launch
---@param launch userdata
---@param stream? userdata stream to use instead of p's
function events.timed_launch(p, launch, stream)
  local dev = p.device.dev
  local from = not dev:capturing() and dev:event()
  local to = from and dev:event()
  if not to then return launch:launch(stream) end
  from:record(stream or p.stream)
  launch:launch(stream)
  to:record(stream or p.stream)
  p.events = {from, to}
end

--- Returns the duration of a recorded launch in seconds. Waits if the launch is
-- still running on a GPU. Returns nil if no watcher was set when it was
-- launched.
---@return number?
function events.seconds(last)
  if last.events then
    local from, to = table.unpack(last.events)
    last.events = nil
    local ok, ms = pcall(function()
      to:sync()
      return from:elapsed(to)
    end)
    last.seconds = ok and ms and ms * 1e-3 or nil
    from:close()
    to:close()
  end
  return last.seconds
end

return events
-- SPDX-License-Identifier: MIT
