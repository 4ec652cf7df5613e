--- Records launches that went through Lua: `program.runs.last` of each program
-- describes its last launch.
--
-- `last` of a launch on the simulator: {device, arch, seconds, instructions,
-- bytes, sectors, requests, wavefronts, conflicts}. `last` of a launch on a
-- GPU: device, arch and first = true (later launches bypass Lua). If a watcher
-- is set, `last` also holds the two events around the launch (see
-- cutelua.program.events).
local sign = require "cute.lang.signature"

local history = {}

--- A function f(prepared, last) that is called for each launch, or nil. The
-- prompt and the option --watch set it.
history.watcher = nil

local COUNTERS = {"bytes", "sectors", "requests", "wavefronts", "conflicts"}

--- Records a launch as `runs.last` of its program.
---@param p table a prepared launch
---@param found table|true the simulator's report, or true for a GPU
function history.note(p, found)
  local last = {device = tostring(p.device), arch = p.device.arch,
                events = p.events, first = found == true}
  p.events = nil
  if found ~= true then
    last.seconds, last.instructions = found.seconds, found.instructions
    for _, c in ipairs(COUNTERS) do
      last[c] = 0
      for _, line in ipairs(found.lines) do last[c] = last[c] + line[c] end
    end
  end
  p.program.runs.last = last
  if history.watcher then history.watcher(p, last) end
end

--- Launches a prepared launch on a GPU. If a watcher is set, the package
-- cutelua records an event before and after the launch.
---@param p table a prepared launch
---@param launch userdata
---@param stream? userdata the stream to use instead of p's
function history.launch(p, launch, stream)
  local timed = history.watcher and sign.workshop.timed_launch
  if timed then return timed(p, launch, stream) end
  launch:launch(stream)
end

return history
-- SPDX-License-Identifier: MIT
