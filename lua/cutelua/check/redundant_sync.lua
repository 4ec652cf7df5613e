--- Times a launch without the synchronisation operations that are not needed.
-- The times come from the GPU, which runs all variants alternately, or else
-- from the model of cutelua.profile.estimate.
local compare = require "cutelua.check.compare"
local core = require "cute.core"
local measure = require "cutelua.bench.measure"
local kernel = require "cute.lang.kernel"
local memory = require "cutelua.program.memory"
local report = require "cute.lang.report"

local redundant_sync = {}

-- Returns a copy of the program without its compiled or loaded code.
local function anew(program)
  local p = {}
  for k, v in next, program do p[k] = v end
  p.texts, p.cubins, p.views, p.launches = {}, {}, {}, {}
  return setmetatable(p, getmetatable(program))
end

-- Calls f(i, program) for the unchanged program (i = 0) and for the program
-- with each list of patches.
local function each(program, edits, f)
  for i = 0, #edits do
    core.with_edits(program.fn, {edits = edits[i] or {}}, function()
      f(i, anew(program))
    end)
  end
end

-- Reports whether the launch can be repeated with the same result. It cannot if
-- a tensor is both read and written, since the next run would read changed
-- data.
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
    return assert(measure.bench(list, {cold = false, warm_ms = 20,
      hot_ms = 20, progress = false}))
  end))
  local times = {}
  for i = 0, #edits do times[i] = results[i + 1].hot.median * 1e-3 end
  return times
end

-- Calls f and returns its results, or nil and the reason of its failure. A
-- failed measurement does not end a check, but Ctrl-C does.
local function attempt(f, ...)
  local ok, out, more = pcall(f, ...)
  if ok then return out, more end
  local parts = report.parse(tostring(out))
  if parts.sentence == "interrupted" then error(out, 0) end
  return nil, core.visible(parts.sentence)
end

local function estimated(program, launch, edits)
  local estimate, times, why = require "cutelua.profile.estimate", {}, {}
  local card, registers
  each(program, edits, function(i, p)
    local e
    e, why[i] = attempt(estimate.of, {program = p, grid = launch.grid,
      block = launch.block, values = launch.args, device = {sm = launch.sm},
      seed = launch.seed, pdl = launch.pdl, progress = launch.progress},
      {registers = registers})
    if e then
      times[i], card = e.seconds, e.card
      registers, why[i] = registers or e.registers, nil
    end
  end)
  return times, card, why
end

--- Returns the seconds that a launch takes: at index 0 for the unchanged
-- launch, at index i with the i-th list of patches. Also returns the method, in
-- words. Raises an error only on Ctrl-C.
---@param program table
---@param launch table as core.sim_run takes it
---@param edits table[][]
---@param on_gpu? boolean false: always use the model
---@return table<integer, number> times nil where unknown
---@return string how
---@return table<integer, string> why reasons for missing times
function redundant_sync.times(program, launch, edits, on_gpu)
  local device, failed = on_gpu ~= false and compare.gpu(program), nil
  if device and repeats(program) then
    local times, why = attempt(measured, program, launch, edits, device)
    if times then return times, ("measured alternately, "
      .. "%s"):format(device.name),
                         {} end
    failed = why
  end
  local times, card, why = estimated(program, launch, edits)
  return times, ("the model's estimate%s%s"):format(card and ", " .. card or "",
    failed and "; the GPU measurement failed: " .. failed or ""), why
end

return redundant_sync
-- SPDX-License-Identifier: MIT
