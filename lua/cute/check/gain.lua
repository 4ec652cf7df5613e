--- How long a launch takes with operations left out of it: on the GPU, all in
-- turns, or by the model (cute.profile.estimate).
local compare = require "cute.check.compare"
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local memory = require "cute.lang.memory"

local gain = {}

-- The program with nothing made of it yet.
local function anew(program)
  local p = {}
  for k, v in next, program do p[k] = v end
  p.texts, p.cubins, p.views, p.launches = {}, {}, {}, {}
  return setmetatable(p, getmetatable(program))
end

-- Calls f(program) of each variant, the first without edits.
local function each(program, edits, f)
  for i = 0, #edits do
    core.with_edits(program.fn, {edits = edits[i] or {}}, function()
      f(i, anew(program))
    end)
  end
end

-- What it read would be another's result the next time.
local function repeats(program)
  for _, a in ipairs(program.info.args) do
    if a.read and a.written then return false end
  end
  return true
end

local function measured(program, launch, edits, device)
  local list, restore = {}, memory.keep(program, launch.args)
  local results = select(2, memory.untouched(restore, function()
    each(program, edits, function(i, p)
      local run = assert(kernel.elsewhere(p, launch, device))
      run:launch()
      list[i + 1] = {name = tostring(i), launch = run.run}
    end)
    return assert(require "cute.gpu".bench(list, {cold = false, warm_ms = 20,
      hot_ms = 20, progress = false}))
  end))
  local times = {}
  for i = 0, #edits do times[i] = results[i + 1].hot.median * 1e-3 end
  return times
end

local function estimated(program, launch, edits)
  local estimate, times, first = require "cute.profile.estimate", {}, nil
  each(program, edits, function(i, p)
    local e = estimate.of({program = p, grid = launch.grid,
      block = launch.block, values = launch.args, device = {sm = launch.sm},
      seed = launch.seed, pdl = launch.pdl},
      {registers = first and first.registers})
    first = first or e
    times[i] = e.seconds
  end)
  return times, first.card
end

--- Seconds of a launch as it is ([0]) and with each of these lists of edits,
-- and where they come from, in words.
---@param program table
---@param launch table as core.sim_run takes it
---@param edits table[][]
---@param on_gpu? boolean false: by the model, wherever it runs
---@return table<integer, number> times
---@return string how
function gain.times(program, launch, edits, on_gpu)
  local device = on_gpu ~= false and compare.gpu()
  if device and repeats(program) then
    return measured(program, launch, edits, device),
      ("measured in turns, %s"):format(device.name)
  end
  local times, card = estimated(program, launch, edits)
  return times, ("the model's estimate, %s"):format(card)
end

return gain
