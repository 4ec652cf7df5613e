--- Watches a script's launches on the simulator. Each kernel is recorded once
-- for each grid. `cutelua explain` and the workshop (the browser page) show the
-- records.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local exit = require "cutelua.program.exit"
local kernel = require "cute.lang.kernel"

local watch = {}

-- The largest number of launches on a page.
local MOST = 16

local Watch = {}
Watch.__index = Watch

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

--- Starts watching. All launches then run on the simulator, and os.exit ends
-- only the script, not the program: it stores the exit code in the watch's
-- `code` and raises the watch's `stop`, which no pcall catches.
---@param page table of cutelua.page
---@param name? string name of the kernels to watch; all when absent
---@param seed? integer seed of the schedules of launches that specify none
---@param alone? string reason why there can be no GPU
---@return table watch with left: number of launches that are not on the page;
-- names: set of the names of all launched kernels
function watch.start(page, name, seed, alone)
  local w = setmetatable({page = page, name = name, seed = seed, known = {},
                          stop = exit.STOP, left = 0, names = {}}, Watch)
  devices.simulates = alone or true
  kernel.runner = {record = require "cutelua.debug.locals".new,
    run = function(program, launch) return w:run(program, launch) end}
  exit.watch(function(code) w.code = code end)
  return w
end

-- Runs a launch and adds it to the page. A later launch of the same program and
-- grid only increases the count of launches.
function Watch:run(program, launch)
  local key = ("%s %s"):format(program.fn, table.concat(launch.grid, ","))
  local k = self.known[key]
  self.names[program.info.name] = true
  if k then k.launches = k.launches + 1 end
  local wanted = not k
    and (self.name or program.info.name) == program.info.name
  if wanted and #self.page.kernels == MOST then
    self.left = self.left + 1
    wanted = false
  end
  launch.record = wanted or launch.record
  launch.seed = launch.seed or self.seed
  local found = core.sim_run(program.fn, launch)
  if wanted then
    self.known[key] = self.page:add(program, launch, found)
  end
  return found
end

-- Reports whether the page already shows the faults that an error message
-- reports.
local function is_told(kernels, message)
  local last = kernels[#kernels]
  return last and #last.notes > 0 and message:find("[kernel-fault]", 1, true)
end

--- Stops watching; the page shows the error that stopped the script.
---@param message? string the error that stopped the script
---@param at_line? boolean true if the message names a line
function Watch:finish(message, at_line)
  kernel.runner, devices.simulates = nil, nil
  exit.unwatch()
  local kernels = self.page.kernels
  if message and not is_told(kernels, message)
    and (#kernels > 0 or at_line) then
    self.page:fail(message)
  end
end

return watch
-- SPDX-License-Identifier: MIT
