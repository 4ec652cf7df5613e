--- cute.arch: what a thread of the device can ask and do: indices, barriers,
-- asynchronous copies, warp-wide operations. Names are the Python DSL's.
local core = require "cute.core"

local arch = {}

-- Places of core/ir.h's SReg.
local TID, CTAID, NTID, NCTAID = 0, 3, 6, 9
local LANE, WARP, CLOCK, SMID = 12, 13, 14, 15

local function three(base)
  return function()
    return core.sreg(base), core.sreg(base + 1), core.sreg(base + 2)
  end
end

--- Index of this thread in its block: x, y, z (each i32).
arch.thread_idx = three(TID)
--- Index of this block in the grid: x, y, z.
arch.block_idx = three(CTAID)
--- Threads of a block: x, y, z.
arch.block_dim = three(NTID)
--- Blocks of the grid: x, y, z.
arch.grid_dim = three(NCTAID)

--- Lane of this thread in its warp, 0 to 31.
function arch.lane_idx() return core.sreg(LANE) end

--- Warp of this thread in its block (of a one-dimensional block).
function arch.warp_idx() return core.sreg(WARP) end

--- The multiprocessor's clock, and which multiprocessor it is.
function arch.clock() return core.sreg(CLOCK) end
function arch.smid() return core.sreg(SMID) end

--- Threads of a warp.
arch.WARP_SIZE = 32

--- All threads of the block meet (__syncthreads).
function arch.sync_threads() core.effect("bar", 0) end

--- A named barrier: `threads` of them meet at barrier id (1 to 15).
---@param id integer
---@param threads? integer multiple of 32; all of the block when absent
function arch.barrier(id, threads)
  if math.type(id) ~= "integer" or id < 0 or id > 15 then
    core.fail("bad-argument", ("barrier: id %s is not in 0 to 15")
      :format(tostring(id)))
  end
  core.effect("bar", id, threads)
end

--- Arrives at a named barrier without waiting there.
function arch.barrier_arrive(id, threads)
  if not threads then
    core.fail("bad-argument", "barrier_arrive needs the number of threads")
  end
  core.effect("bar_arrive", id, threads)
end

--- The lanes of the warp meet (__syncwarp).
function arch.sync_warp(mask) core.effect("syncwarp", 0, mask) end

--- Closes a group of the cp.async copies issued so far.
function arch.cp_async_commit_group() core.effect "cp_commit" end

--- Waits until at most n of this thread's cp.async groups are pending.
---@param n integer
function arch.cp_async_wait_group(n)
  if math.type(n) ~= "integer" or n < 0 then
    core.fail("needs-static", "cp_async_wait_group: the number of pending "
      .. "groups is a Lua integer of 0 or more")
  end
  core.effect("cp_wait", n)
end

--- Memory order for the block, the device, the system.
function arch.fence_acq_rel_cta() core.effect("fence", 0) end
function arch.fence_acq_rel_gpu() core.effect("fence", 1) end
function arch.fence_acq_rel_sys() core.effect("fence", 2) end

local IDX, UP, DOWN, BFLY = 0, 1, 2, 3

local function shuffle(kind)
  return function(value, lane, width)
    width = width or 32
    if width ~= 32 and width ~= 16 and width ~= 8 and width ~= 4
      and width ~= 2 then
      core.fail("bad-argument", "shuffle: a width of " .. tostring(width))
    end
    return core.warp("shfl", kind | width << 8, value, lane)
  end
end

--- The value of another lane: of lane, of this lane - d, + d, xor mask.
arch.shuffle_sync = shuffle(IDX)
arch.shuffle_sync_up = shuffle(UP)
arch.shuffle_sync_down = shuffle(DOWN)
arch.shuffle_sync_bfly = shuffle(BFLY)

--- Votes of the warp.
function arch.vote_any_sync(p) return core.warp("vote", 0, p) end
function arch.vote_all_sync(p) return core.warp("vote", 1, p) end
function arch.vote_ballot_sync(p) return core.warp("vote", 2, p) end

local REDUX = {add = 0, min = 1, max = 2, ["and"] = 3, ["or"] = 4, xor = 5}

--- One integer reduction over the warp (sm_80): "add" "min" "max" "and"
-- "or" "xor".
function arch.warp_redux_sync(value, kind)
  local k = REDUX[kind]
  if not k then
    core.fail("unknown-name", "warp_redux_sync: no kind "
      .. tostring(kind))
  end
  return core.warp("redux", k, value)
end

--- Reduction over the warp with a Lua function of two values.
---@param value any traced value
---@param op fun(a, b): any
---@param width? integer threads that take part (a power of two)
function arch.warp_reduction(value, op, width)
  local d = (width or 32) // 2
  while d > 0 do
    value = op(value, arch.shuffle_sync_bfly(value, d))
    d = d // 2
  end
  return value
end

return arch
