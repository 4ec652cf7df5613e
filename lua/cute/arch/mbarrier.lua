--- The functions of cute.arch for mbarriers (sm_80): barriers in shared memory
-- that work in phases. In each phase an mbarrier counts arrivals of threads and
-- of cp.async. From sm_90 on it also counts the bytes of other asynchronous
-- copies.
--
--     local full = cute.arch.alloc_smem(cute.i64, STAGES)
--     cute.when(tid:eq(0), function()
--       for s = 0, STAGES - 1 do cute.arch.mbarrier_init(full + s, 1) end
--       cute.arch.mbarrier_init_fence()
--     end)
--     cute.arch.sync_threads()
--
-- A phase ends when the number of arrivals given to mbarrier_init is reached
-- and all expected bytes have arrived; then the next phase begins. A wait names
-- a phase by its parity: 0 for the first phase, 1 for the second, 0 for the
-- third. A wait for the phase before the current one returns at once. At an
-- mbarrier in its first phase, a wait for parity 1 therefore returns at once.
--
-- A barrier is a pointer to an i64 in shared memory, such as `full + stage`.
-- peer_cta_rank_in_cluster selects the barrier at the same position in
-- another block of the cluster. Fields of the argument `opts` of arrivals:
--   relaxed  true: does not order earlier accesses
--   scope    threads for which accesses are ordered: "cta" or "cluster"
--   token    true: mbarrier_arrive returns a token that identifies the phase of
--            the arrival; waits accept the token instead of a parity
-- On sm_80, an mbarrier cannot count bytes (mbarrier_expect_tx,
-- mbarrier_arrive_and_expect_tx). Barriers of other blocks, scope = "cluster"
-- and time limits are not available there, either. There, waits poll
-- mbarrier.test_wait, and mbarrier_try_wait tests once.
--
-- Without opts an arrival uses the instruction's plain form, which is the
-- fastest. This form suffices after reads, for example to release a stage. If a
-- thread reads data that threads of other blocks wrote, pass {scope =
-- "cluster"} to the arrivals and to the wait.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local mbarrier = {}

local HINTS = core.hints()

-- Returns the flags for the memory order and the scope of an arrival or wait.
local function order(what, opts)
  local relaxed, scope = opts and opts.relaxed, opts and opts.scope
  if relaxed ~= nil and type(relaxed) ~= "boolean" then
    core.fail("bad-argument", ("%s: relaxed = %s; a boolean is needed"):format(
      what, core.show(relaxed)))
  elseif scope ~= nil and scope ~= "cta" and scope ~= "cluster" then
    core.fail("unknown-name", ("%s: scope = %s; \"cta\" or \"cluster\" is "
      .. "needed"):format(what, core.show(scope)))
  end
  return (relaxed and HINTS.sem.relaxed or 0)
    | (scope and HINTS.scope[scope] or 0)
end

-- The largest number of arrivals that an mbarrier can count.
local MOST = (1 << 20) - 1

local function counted(what, thing, n, least)
  if math.type(n) and (math.type(n) ~= "integer" or n < least or n > MOST) then
    core.fail("bad-argument", ("%s: %s of %s; %d to %d is needed")
      :format(what, thing, tostring(n), least, MOST))
  end
  return n
end

--- Initializes a barrier whose phases end after `cnt` arrivals. Call it from
-- one thread, followed by mbarrier_init_fence and by a synchronization of all
-- threads that use the barrier.
---@param mbar_ptr table
---@param cnt any integer
function mbarrier.mbarrier_init(mbar_ptr, cnt)
  core.mbarrier("init", mbar_ptr, 0, counted("mbarrier_init", "a count", cnt,
                                             1))
end

--- Invalidates a barrier. Its memory can then be reused, for example for a
-- barrier with another count. Call it from one thread, after the last use of
-- the barrier.
---@param mbar_ptr table
function mbarrier.mbarrier_inval(mbar_ptr)
  core.mbarrier("inval", mbar_ptr, 0)
end

--- Makes initialized barriers visible to the cluster and to TMA. A cluster
-- barrier must follow. Before sm_90, makes them visible to the block.
function mbarrier.mbarrier_init_fence() core.fence "mbarrier_init" end

--- Arrives at the mbarrier `arrive_count` times at once.
---@param mbar_ptr table
---@param peer_cta_rank_in_cluster? any integer
---@param arrive_count? any integer, 1 if absent
---@param opts? {relaxed: boolean, scope: string, token: boolean}
---@return cute.Value? token if opts.token = true. mbarrier_wait, try_wait and
-- test_wait of this barrier accept it instead of a parity, as long as the phase
-- after the arrival's phase is not complete
function mbarrier.mbarrier_arrive(mbar_ptr, peer_cta_rank_in_cluster,
                                  arrive_count, opts)
  local what = "mbarrier_arrive"
  local flags, token = order(what, opts), opts and opts.token
  local n = counted(what, "a count", arrive_count or 1, 1)
  if token == nil or token == false then
    core.mbarrier("arrive", mbar_ptr, flags, n, peer_cta_rank_in_cluster)
    return
  elseif token ~= true then
    core.fail("bad-argument", ("%s: token = %s; a boolean is needed"):format(
      what, core.show(token)))
  elseif peer_cta_rank_in_cluster then
    core.fail("bad-argument", what .. ": token = true needs the block's own "
      .. "barrier: an arrival at another block's barrier returns no token")
  end
  return core.mbarrier("arrive_token", mbar_ptr, flags, n)
end

--- Increases the number of bytes that this phase expects by `bytes`, and
-- arrives (sm_90).
---@param mbar_ptr table
---@param bytes any integer
---@param peer_cta_rank_in_cluster? any integer
---@param opts? {relaxed: boolean, scope: string}
function mbarrier.mbarrier_arrive_and_expect_tx(mbar_ptr, bytes,
                                                peer_cta_rank_in_cluster, opts)
  local what = "mbarrier_arrive_and_expect_tx"
  core.mbarrier("arrive_and_expect_tx", mbar_ptr, order(what, opts),
    counted(what, "bytes", bytes, 0), peer_cta_rank_in_cluster)
end

--- Increases the number of bytes that this phase expects by `bytes`, without
-- arriving (sm_90).
---@param mbar_ptr table
---@param bytes any integer
---@param peer_cta_rank_in_cluster? any integer
---@param opts? {scope: string}
function mbarrier.mbarrier_expect_tx(mbar_ptr, bytes, peer_cta_rank_in_cluster,
                                     opts)
  local what = "mbarrier_expect_tx"
  core.mbarrier("expect_tx", mbar_ptr, order(what, opts),
    counted(what, "bytes", bytes, 0), peer_cta_rank_in_cluster)
end

local function parity(what, phase)
  if math.type(phase) and phase ~= 0 and phase ~= 1 then
    core.fail("bad-argument", ("%s: the parity must be 0 or 1, not %s")
      :format(what, tostring(phase)))
  end
  return phase
end

--- Waits until the phase with this parity or token is complete.
---@param mbar_ptr table
---@param phase any 0 or 1, or a token of mbarrier_arrive
---@param opts? {scope: string}
function mbarrier.mbarrier_wait(mbar_ptr, phase, opts)
  local what = "mbarrier_wait"
  core.mbarrier("wait", mbar_ptr, order(what, opts),
                parity(what, phase))
end

--- Reports whether the phase with this parity or token is complete. On sm_90
-- the function may first wait for a limited time, which time_limit sets in
-- nanoseconds. Before sm_90 it does not wait.
---@param mbar_ptr table
---@param phase any 0 or 1, or a token of mbarrier_arrive
---@param opts? {scope: string, time_limit: integer|cute.Value}
function mbarrier.mbarrier_try_wait(mbar_ptr, phase, opts)
  local what = "mbarrier_try_wait"
  local limit = opts and opts.time_limit
  if limit ~= nil and core.typename(limit) ~= "value"
    and (math.type(limit) ~= "integer" or limit < 0 or limit > 0x7fffffff) then
    core.fail("bad-argument", ("%s: time_limit = %s; nanoseconds, 0 to %d, are "
      .. "needed"):format(what, core.show(limit), 0x7fffffff))
  end
  return core.mbarrier("try_wait", mbar_ptr, order(what, opts),
                       parity(what, phase), limit)
end

--- Reports, without waiting, whether the phase with this parity or token is
-- complete.
---@param mbar_ptr table
---@param phase any 0 or 1, or a token of mbarrier_arrive
---@param opts? {scope: string}
function mbarrier.mbarrier_test_wait(mbar_ptr, phase, opts)
  local what = "mbarrier_test_wait"
  return core.mbarrier("test_wait", mbar_ptr, order(what, opts),
                       parity(what, phase))
end

--- In threads where `cond` is true, calls mbarrier_try_wait and returns its
-- result. Returns true in all other threads.
---@param cond any a boolean
---@param mbar_ptr table
---@param phase any 0 or 1
function mbarrier.mbarrier_conditional_try_wait(cond, mbar_ptr, phase)
  if cond == true then return mbarrier.mbarrier_try_wait(mbar_ptr, phase) end
  if cond == false then return core.cvt(true, core.boolean) end
  local done = core.var(core.cvt(true, core.boolean))
  require "cute.lang.branch".when(cond, function()
    core.vset(done, mbarrier.mbarrier_try_wait(mbar_ptr, phase))
  end)
  return core.vget(done)
end

--- Makes the barrier count an arrival when all cp.async copies that this thread
-- has issued so far are complete. The barrier's count must include this
-- arrival.
---@param mbar_ptr table
function mbarrier.cp_async_mbarrier_arrive_noinc(mbar_ptr)
  core.mbarrier("cp_async_noinc", mbar_ptr, 0)
end

return sign.public("cute.arch.", mbarrier, [[
  mbarrier_init(mbar_ptr: tensor, cnt: integer|value) mbarrier_init_fence()
  mbarrier_inval(mbar_ptr: tensor)
  mbarrier_arrive(mbar_ptr: tensor, peer_cta_rank_in_cluster?: integer|value,
    arrive_count?: integer|value, opts?: {relaxed scope token})
  mbarrier_arrive_and_expect_tx(mbar_ptr: tensor, bytes: integer|value,
    peer_cta_rank_in_cluster?: integer|value, opts?: {relaxed scope})
  mbarrier_expect_tx(mbar_ptr: tensor, bytes: integer|value,
    peer_cta_rank_in_cluster?: integer|value, opts?: {scope})
  mbarrier_wait(mbar_ptr: tensor, phase: integer|value, opts?: {scope})
  mbarrier_try_wait(mbar_ptr: tensor, phase: integer|value,
    opts?: {scope time_limit})
  mbarrier_test_wait(mbar_ptr: tensor, phase: integer|value, opts?: {scope})
  mbarrier_conditional_try_wait(cond: boolean|value, mbar_ptr: tensor,
    phase: integer|value)
  cp_async_mbarrier_arrive_noinc(mbar_ptr: tensor)
]])
-- SPDX-License-Identifier: MIT
