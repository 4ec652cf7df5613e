--- Watches what a script launches on the simulator, each kernel and grid once:
-- what `cutelua explain` and the workshop make pages of.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local kernel = require "cute.lang.kernel"

local watch = {}

local MOST = 16  -- launches of a page

local Watch = {}
Watch.__index = Watch

---------------------------------------------------------------------------
-- os.exit
---------------------------------------------------------------------------

local STOP = {}  -- what it raises
local watching   -- what there is

-- What catches errors hands that one on.
local function past(ok, e, ...)
  if not ok and rawequal(e, STOP) then error(STOP, 0) end
  return ok, e, ...
end

local pcall, xpcall, resume = pcall, xpcall, coroutine.resume

-- {table, name, what stands there, and while something is watched}, ...
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

--- From now on all launches are on the simulator and are watched, and os.exit
-- ends the script alone: it raises `stop`, which no pcall keeps, and leaves the
-- exit code in `code`.
---@param page table of cutelua.page
---@param name? string of the kernels that are wanted; all when absent
---@param seed? integer of the schedules of launches that have none
---@param alone? string why there is no GPU, where nobody can have one
---@return table watch with left: how many launches had no room; names: of all
-- kernels that were launched, as keys
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

-- Launches of one program and grid are one.
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

-- Is that failure of a launch whose reports the page has?
local function is_told(kernels, message)
  local last = kernels[#kernels]
  return last and #last.notes > 0 and message:find("[kernel-fault]", 1, true)
end

--- Ends it; the page says what stopped the script.
---@param message? string what stopped the script
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
