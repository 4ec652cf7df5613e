--- Watches a script's launches on the simulator, each kernel and grid once.
-- `cutelua explain` and the workshop make pages of them.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local kernel = require "cute.lang.kernel"

local watch = {}

-- The largest number of launches on a page.
local MOST = 16

local Watch = {}
Watch.__index = Watch

---------------------------------------------------------------------------
-- os.exit
---------------------------------------------------------------------------

-- os.exit raises this value while a script is watched.
local STOP = {}
-- The watch that is in progress.
local watching

-- Raises STOP again if a function (pcall, xpcall, resume) caught it; returns
-- all other results of the function.
local function past(ok, e, ...)
  if not ok and rawequal(e, STOP) then error(STOP, 0) end
  return ok, e, ...
end

local pcall, xpcall, resume = pcall, xpcall, coroutine.resume

-- Functions that are replaced while a script is watched: {table, name, original
-- value, value while watching}.
local REPLACED = {
  {os, "exit", os.exit, function(how)
    watching.code = how == true and 0 or how == false and 1
      or math.tointeger(how) or 0
    error(STOP, 0)
  end},
  {_G, "pcall", pcall, function(...) return past(pcall(...)) end},
  {_G, "xpcall", xpcall, function(f, handler, ...)
    return past(xpcall(f, type(handler) == "function" and function(e)
      if rawequal(e, STOP) then return e end
      return handler(e)
    end or handler, ...))
  end},
  {coroutine, "resume", resume, function(...) return past(resume(...)) end},
}

local function replace(which)
  for _, one in ipairs(REPLACED) do rawset(one[1], one[2], one[which]) end
end

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

--- Starts watching: all launches run on the simulator, and os.exit ends only
-- the script. To do so, os.exit raises the watch's `stop`, which no pcall
-- catches, and stores the exit code in the watch's `code`.
---@param page table of cutelua.page
---@param name? string name of the kernels to watch; all when absent
---@param seed? integer seed of the schedules of launches that have none
---@param alone? string reason why there can be no GPU
---@return table watch with left: number of launches left out; names: of all
-- launched kernels, as keys
function watch.start(page, name, seed, alone)
  local w = setmetatable({page = page, name = name, seed = seed, known = {},
                          stop = STOP, left = 0, names = {}}, Watch)
  devices.simulates = alone or true
  kernel.runner = {record = require "cutelua.debug.locals".new,
    run = function(program, launch) return w:run(program, launch) end}
  watching = w
  replace(4)
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

-- Reports whether the page already shows the faults that the message of a
-- failed launch is about.
local function is_told(kernels, message)
  local last = kernels[#kernels]
  return last and #last.notes > 0 and message:find("[kernel-fault]", 1, true)
end

--- Stops watching; the page shows the error that stopped the script.
---@param message? string the error that stopped the script
---@param at_line? boolean does the message name a line?
function Watch:finish(message, at_line)
  kernel.runner, devices.simulates = nil, nil
  replace(3)
  local kernels = self.page.kernels
  if message and not is_told(kernels, message)
    and (#kernels > 0 or at_line) then
    self.page:fail(message)
  end
end

return watch
-- SPDX-License-Identifier: MIT
