--- Caches the calls of an operation. Also allocates the workspace memory that
-- the blocks of a launch share.
--
--     local known = calls.new()
--     local ok, x, ... = known(arguments...)     -- true: launched, new tensors
--     known:add(plan, arguments...)              -- record the plan of a call
--     known:ready(run, arguments...)             -- and its launches
--
-- A configuration consists of the operands' layouts and types, the options, and
-- the functions with their captured values. A call's arguments determine its
-- configuration. Numbers may differ between launches of one configuration,
-- except numbers passed as cute.constexpr, which are part of the configuration.
-- core/bind/plan_cache.c finds a call by its arguments and starts its launches
-- in a microsecond. Calls with a new configuration, and calls on the simulator,
-- run in Lua.
--
-- Workspace memory comes from the memory pool. A launch allocates it and frees
-- it at once, in stream order. Launches of one stream therefore share memory,
-- launches of two streams do not, and a graph keeps its own. A block uses a
-- counter to detect that it is the last one. The counter must be 0 when a
-- launch begins, and the launch resets it. Concurrent launches must not share
-- counters, so each stream has its own. Launches that a graph captures get new
-- counters, which the graph sets to 0.
--
-- Launches use programmatic dependent launch (PDL) where the device supports
-- it: a kernel begins while the previous kernel of the stream ends. Before it
-- reads or writes memory that other kernels use, it waits until the previous
-- kernel is complete (griddepcontrol.wait). Each kernel waits for its
-- predecessor before it completes. A kernel that has waited has thus also
-- waited for all earlier kernels. So it can safely reuse memory of the pool and
-- counters, and overwrite operands. After a copy, an event or a kernel without
-- PDL, the launch waits like an ordinary launch.
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local tiles = require "cute.tiles"
local unused = require "cute.lang.unused"

local calls = {}

-- The largest number of configurations that each operation keeps in memory.
local MOST = 1024

local all = {}

function calls.new()
  local known = core.calls(MOST, capture.form)
  all[#all + 1] = known
  return known
end

--- True while a bundle (kernels compiled in advance) traces kernels for any
-- size. Kernels then receive the extents that a plan provides as their last
-- arguments. The field `extents` of a step (launch) is the number of these
-- arguments, and its field `share` is the number of elements that each block
-- handles.
calls.any = false

--- Returns the number of rows for which an operation chooses its kernel. This
-- is m, except in a bundle (kernels compiled in advance) that uses one kernel
-- for all sizes.
---@param m integer
---@return integer
function calls.typical(m) return m end

--- Drops all known configurations of all operations.
function calls.forget()
  for _, known in ipairs(all) do known:forget() end
end

--- Returns the results of a call that reuses a known configuration. These are
-- the tensors of `out`. Results for which `out` has no tensor are the new
-- tensors `...`, in order.
---@param out any a tensor, a list of them, or nil
function calls.results(out, ...)
  if out == nil then return ... end
  if type(out) ~= "table" then return out, ... end
  if select("#", ...) == 0 then return table.unpack(out) end
  local list, new = table.move(out, 1, #out, 1, {}), {...}
  for i = 1, #out + #new do
    if list[i] == nil then list[i] = table.remove(new, 1) end
  end
  return table.unpack(list)
end

---------------------------------------------------------------------------
-- Memory
---------------------------------------------------------------------------

--- Returns a new tensor of undefined elements for a call whose operands are on
-- the device `place`. While a graph is recorded on the simulator, the tensor
-- may reuse the memory of closed tensors.
---@param shape any a shape or layout
---@param place string
function calls.empty(shape, dtype, place)
  if place == "host" then unused.result() end
  return cute.empty(shape, dtype, {device = place == "host" and "sim" or place})
end

-- A number of f32 elements. calls.work rounds larger sizes up by at most an
-- eighth, and smaller sizes to powers of two.
local LARGE = 1 << 22

--- Returns memory of at least n f32 elements for a launch. To limit the number
-- of different sizes, rounds n up to a power of two or, above LARGE, by at most
-- an eighth.
---@param place string the device of the operands
---@param n integer
function calls.work(place, n)
  local size = 2048
  while size < n do size = 2 * size end
  if size > LARGE then size = tiles.count(n, size // 16) * (size // 16) end
  local ok, t = pcall(calls.empty, {size}, cute.f32, place)
  if not ok then
    core.fail("out-of-memory", ("out of memory for the operation's workspace "
      .. "of %d bytes: %s"):format(4 * size,
                                   (tostring(t):gsub("^.-:%d+: ", ""))))
  end
  return t
end

-- Counters that are 0 between launches. counts[device][stream number] is a
-- tensor of i32 counters.
local counts = {}

--- Returns a tensor of at least n i32 counters that are 0; the launch that uses
-- the counters resets them to 0 at its end. Also returns whether this memory
-- belongs to the graph that is being captured.
---@param device table
---@param place string
---@param stream any the launch's stream, or nil
---@param n integer
function calls.counts(device, place, stream, n)
  local dev = place ~= "host" and device.dev
  local number = dev and dev:stream_number(stream) or 0
  local alone = dev and dev:capturing()
  local mine = counts[place] or {}
  counts[place] = mine
  local have = not alone and mine[number]
  if have and cute.size(have) >= n then return have, false end
  local make = dev and cute.empty or cute.zeros
  local t = make({math.max(2 * n, 1024)}, cute.i32, {device = place})
  if dev then core.param_memory(t):memset(0, stream) end
  if not alone then mine[number] = t end
  return t, alone
end

--- Discards the counters of a device, because a failed launch may leave other
-- values than 0 in them.
function calls.failed(place) counts[place] = nil end

-- cute.gpu.trim also drops the memory that cached calls keep.
devices.on_trim(function()
  counts = {}
  for _, known in ipairs(all) do known:rest() end
end)

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

-- The largest number of prepared launches that a plan keeps for each of its
-- kernels.
local LAUNCHES = 4

--- Returns the value of the kernels' option pdl: true if the device supports
-- programmatic dependent launch, else nil.
function calls.dependent(device)
  return core.has(device.sm, "griddepcontrol") or nil
end

--- Launches a step {kernel, grid, block, cluster, pdl, ready = {}} of a plan
-- with the arguments `list`. Uses a prepared launch of the step if one fits,
-- otherwise prepares a new one.
---@param step table
---@param list table the arguments, with their number in `n`, and `from`
-- (calls.mark)
---@param o table {device, stream, seed, captured}: `captured` holds the
-- captured values of a function that the step traces
---@param check? fun() called before a new launch
---@return table launch for known:ready
---@return table? reads further state that the trace read through captured
-- values
function calls.launch(step, list, o, check)
  local now = {seed = o.seed, stream = o.stream}
  for _, r in ipairs(step.ready) do
    local ready, reads = r.launch, r.reads
    -- A prepared launch is valid only if the values besides the arguments that
    -- its traced function used (through tables and functions) are unchanged.
    if (not reads or core.unchanged(reads))
      and ready:try(now, table.unpack(list, 1, list.n)) then
      return calls.step(ready, list), reads
    end
  end
  if check then check() end
  local ready, why = step.kernel(table.unpack(list, 1, list.n)):compile {
    grid = step.grid, block = step.block, cluster = step.cluster,
    -- There is no `stream` here: the launch below takes it from `now`.
    pdl = step.pdl, device = o.device}
  if not ready then require "cute.lang.report".raise(why) end
  local reads = o.captured and o.captured:reads(ready.program)
  step.ready[LAUNCHES] = nil
  table.insert(step.ready, 1, {launch = ready, reads = reads})
  ready:launch(now)
  ready:forget()
  return calls.step(ready, list), reads
end

--- Returns a prepared launch in the form that known:ready (see the top of this
-- file) accepts, or nil for a launch on the simulator.
function calls.step(ready, list)
  if ready.device.kind ~= "gpu" then return nil end
  return {launch = ready.run, values = core.launch_values(list),
          from = list.from}
end

--- Records where the last kernel argument in `list` comes from: it is the nth
-- number in argument `at` of the call. `part` is 1 for the lower half of an
-- f64, 2 for its upper half, and nil for other types.
function calls.mark(list, at, nth, part)
  list.from = list.from or {}
  list.from[list.n] = {at, nth, part or 0}
end

return calls
-- SPDX-License-Identifier: MIT
