--- Calls that are known, and the memory that they share.
--
--     local known = calls.new()
--     local ok, x, ... = known(arguments...)     -- true: launched, new tensors
--     known:add(plan, arguments...)              -- what such a call is
--     known:ready(run, arguments...)             -- and what it launches
--
-- A call's arguments are all that makes it another one: operands, options,
-- functions with what they capture. A number among them is of the run (one that
-- is not stands in a cute.constexpr). core/bind/plan_cache.c finds a call by
-- them and launches what is ready, in a microsecond; what it does not know, or
-- has to do on the simulator, Lua does.
--
-- What blocks of a launch share lies in memory of the pool: a launch takes it
-- and gives it back at once, in stream order, so that launches of one stream
-- have the same, those of two have not, and a graph keeps its own. Counts, by
-- which blocks find out who is last, are 0 between launches, and so each stream
-- has some that stay; launches with counts that a graph is captured of have
-- new ones, which the graph sets to 0.
--
-- Launches are dependent ones where the device has these (PDL): a kernel
-- begins while the one before it on the stream ends, and waits for all of it
-- (griddepcontrol.wait) before it reads or writes memory that others have. A
-- kernel that waits is done after the one before it is, so what a third one
-- waits for has waited for the first: memory of the pool that comes back, of
-- counts, of operands that are written over is safe behind any of them. Behind
-- a kernel that says nothing of it, a copy, or an event the wait is that of any
-- launch.
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local tiles = require "cute.tiles"

local calls = {}

local MOST = 1024  -- configurations of an operation

local all = {}

function calls.new()
  local known = core.calls(MOST, capture.form)
  all[#all + 1] = known
  return known
end

--- The results of a known call: what `out` gives, and the new tensors where it
-- has none.
---@param out any a tensor, a list of them, or nil
function calls.results(out, ...)
  if out == nil then return ... end
  if type(out) ~= "table" then return out, ... end
  local list, new = table.move(out, 1, #out, 1, {}), {...}
  for i = 1, #out + #new do
    if list[i] == nil then list[i] = table.remove(new, 1) end
  end
  return table.unpack(list)
end

---------------------------------------------------------------------------
-- Memory
---------------------------------------------------------------------------

local LARGE = 1 << 22  -- f32

--- Memory of so many f32 for a launch. Few sizes are kept: powers of two, and
-- of large ones those that are an eighth of n more at most.
---@param place string where operands are
---@param n integer
function calls.work(place, n)
  local size = 2048
  while size < n do size = 2 * size end
  if size > LARGE then size = tiles.count(n, size // 16) * (size // 16) end
  local ok, t = pcall(cute.empty, {size}, cute.f32, {device = place})
  if not ok then
    core.fail("out-of-memory", ("no room for the %d bytes that launches share: "
      .. "%s"):format(4 * size, (tostring(t):gsub("^.-:%d+: ", ""))))
  end
  return t
end

local counts = {}  -- [place][number of the stream]: i32

--- Zeros of i32, at least n, that a launch leaves at 0; and whether they are
-- the graph's that is captured.
---@param device table
---@param place string
---@param stream any of the launch, or nil
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

--- Counts may not be 0 any more.
function calls.failed(place) counts[place] = nil end

-- Memory that calls keep is given back with that of the pool.
devices.on_trim(function()
  counts = {}
  for _, known in ipairs(all) do known:rest() end
end)

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

local LAUNCHES = 4  -- that a step keeps ready

--- Has the device dependent launches? true or nil: what kernels take as pdl.
function calls.dependent(device)
  return core.has(device.sm, "griddepcontrol") or nil
end

--- Launches a step {kernel, grid, block, cluster, pdl, ready = {}} with these
-- arguments: by what is ready, or by a launch made ready now.
---@param step table
---@param list table arguments {n =}; its `from` is that of known:ready
---@param o table device, stream, seed, captured = what a function of it has
---@param check? fun() called before there is a new launch
---@return table launch for known:ready
---@return table? reads what else a trace read through what was captured
function calls.launch(step, list, o, check)
  local now = {seed = o.seed, stream = o.stream}
  for _, r in ipairs(step.ready) do
    local ready, reads = r.launch, r.reads
    -- what a function reads through tables and functions may have changed
    if (not reads or core.unchanged(reads))
      and ready:try(now, table.unpack(list, 1, list.n)) then
      return calls.step(ready, list), reads
    end
  end
  if check then check() end
  local ready, why = step.kernel(table.unpack(list, 1, list.n)):compile {
    grid = step.grid, block = step.block, cluster = step.cluster,
    pdl = step.pdl, device = o.device}  -- a stream is the call's own
  if not ready then require "cute.lang.report".raise(why) end
  local reads = o.captured and o.captured:reads(ready.program)
  step.ready[LAUNCHES] = nil
  table.insert(step.ready, 1, {launch = ready, reads = reads})
  ready:launch(now)
  ready:forget()
  return calls.step(ready, list), reads
end

--- What known:ready wants of a launch; nil of the simulator's.
function calls.step(ready, list)
  if ready.device.kind ~= "gpu" then return nil end
  return {launch = ready.run, values = core.launch_values(list),
          from = list.from}
end

--- Where a number of a call goes that is argument `list.n` of a kernel: the
-- nth number of the call's argument `at`; part: 1, 2 for its lower or upper
-- half in f64.
function calls.mark(list, at, nth, part)
  list.from = list.from or {}
  list.from[list.n] = {at, nth, part or 0}
end

return calls
