--- Faults of Hopper kernels as people shipped and mended them: small kernels,
-- each with the fault and without. The fault is reported by a plain run or by
-- check, at its lines; of the mended kernel neither says anything.
local cute = require "cute"
local support = require "spec.support"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

local shipped = {}

local SEEDS = 4

--- Copies of f32 in bulk: from global memory, to it, to a block of the cluster.
shipped.LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
shipped.STORE = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)
shipped.SEND = cute.make_copy_atom(cpasync.CopyBulkS2SOp(), cute.f32)

--- The line that calls.
function shipped.line() return debug.getinfo(2, "l").currentline end

--- f() by thread 0.
function shipped.thread0(f) cute.when(arch.thread_idx():eq(0), f) end

--- The cluster meets.
function shipped.meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

--- n values of zero, of f32 and of i32.
function shipped.f32(n) return cute.zeros({n}, cute.f32) end
function shipped.i32(n) return cute.zeros({n}, cute.i32) end

--- n values of shared memory.
function shipped.smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

--- mbarriers of these counts; `share`: for the cluster.
function shipped.barriers(counts, share)
  local all = arch.alloc_smem(cute.i64, #counts)
  shipped.thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  if share then shipped.meet() else arch.sync_threads() end
  return all
end

--- Waits while the flag is not stored: 0, or until it is `turn`.
function shipped.await(flag, turn)
  cute.loop(function()
    local now = arch.load(flag.iterator, nil, {sem = "acquire", scope = "gpu"})
    if turn then return now:ne(turn) end
    return now:eq(0)
  end, function() end)
end

--- What a bulk copy takes: 64 values from place n of each.
function shipped.run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

-- f(call, options) of a launch with fresh arguments.
local function with(c, bad, at, own, f)
  local arguments, body = c.make(bad, at)
  for name, v in pairs(c.opts) do
    if name ~= "before" then own[name] = v end
  end
  own.grid, own.device = own.grid or 1, "sim:sm_90a"
  if c.opts.before then c.opts.before(arguments[1]) end
  local call = cute.kernel("faulty", body)(table.unpack(arguments))
  return f(call, own)
end

local function launched(c, bad, at, seed)
  local own = {seed = seed, faults = "return", output = false}
  return with(c, bad, at, own, function(call, opts)
    return support.report(call:launch(opts))
  end)
end

local function checked(c, bad, at)
  local own = {gpu = false, orders = 200, seconds = 10}
  return with(c, bad, at, own, function(call, opts) return call:check(opts) end)
end

-- What is told first: a fault, or a note.
local function first_of(c, bad)
  local at = support.recorder()
  for seed = 1, SEEDS do
    local r = launched(c, bad, at, seed)
    local f = r.reports[1] or r.relies[1]
    if f then return f, at, tostring(r) end
  end
  local v = checked(c, bad, at)
  return v.fault, at, tostring(v)
end

-- Are its lines those of the labels, one way round or the other?
local function is_at(at, want, f)
  local a, b = at[want[2]], at[want[3]]
  if want[2] == "*" then return true end
  if not b then return a == f.line or a == f.line2 end
  return (a == f.line and b == f.line2) or (a == f.line2 and b == f.line)
end

--- A list of cases, and what adds one: name, launch options (before(x): what
-- runs in front), {kind or "*", label, label} of what is told first, and
-- make(bad, at), which gives arguments and the kernel's function. That writes
-- the lines of the labels into `at`.
function shipped.cases()
  local list = {}
  return list, function(name, opts, want, make)
    list[#list + 1] = {name = name, opts = opts, want = want, make = make}
  end
end

--- Is the fault of a case told? nil, or what is told instead.
function shipped.untold(c)
  local f, at, text = first_of(c, true)
  if f and (c.want[1] == "*" or c.want[1] == f.kind) and is_at(at, c.want, f)
  then return nil end
  return text
end

--- Is anything told of the mended kernel? nil, or that.
function shipped.told(c)
  for seed = 1, SEEDS do
    local r = launched(c, false, {}, seed)
    if not r.ok or r.relies[1] then return tostring(r) end
  end
  local v = checked(c, false, {})
  if v.verdict == "bug" or v.notes[1] then return tostring(v) end
end

return shipped
