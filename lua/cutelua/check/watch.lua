--- Checks every launch that a program makes, for tests in other languages.
local check = require "cutelua.check"
local core = require "cute.core"
local kernel = require "cute.lang.kernel"

local watch = {}

-- What launches found since the watch began: a list of texts.
local found = {}

-- Returns what a verdict found, or nil.
local function finding(v)
  if v.verdict == "bug" then
    local text = tostring(v)
    if v.report then text = text .. "\n" .. v.report:details() end
    return text
  elseif v.verdict == "incomplete" then
    return ("kernel %s: %s"):format(v.kernel, tostring(v))
  elseif v.notes[1] then
    return ("kernel %s: %s"):format(v.kernel, table.concat(v.notes, "\n"))
  end
end

--- Checks each launch on the simulator from now on, as call:check does with
-- these options. Without options, ends that, and returns the list of what the
-- checks found.
---@param opts? {seconds: number?, orders: integer?}
---@return string[]?
function watch.watch_launches(opts)
  if not opts then
    kernel.runner = nil
    return found
  end
  found = {}
  kernel.runner = {run = function(program, launch)
    found[#found + 1] = finding(check.launch(program, launch, opts))
    return core.sim_run(program.fn, launch)
  end}
end

return watch
-- SPDX-License-Identifier: MIT
