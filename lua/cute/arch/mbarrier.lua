--- cute.arch, mbarriers (sm_80): barriers in shared memory that count arrivals
-- of threads and of cp.async, from sm_90 on bytes of other asynchronous copies
-- too, phase by phase.
--
--     local full = cute.arch.alloc_smem(cute.i64, STAGES)
--     cute.when(tid:eq(0), function()
--       for s = 0, STAGES - 1 do cute.arch.mbarrier_init(full + s, 1) end
--       cute.arch.mbarrier_init_fence()
--     end)
--     cute.arch.sync_threads()
--
-- A phase ends when as many arrived as mbarrier_init said and all expected
-- bytes came; then the next begins. Who waits names a phase by its parity: 0
-- of the first, 1 of the second, 0 of the third. Waiting for the phase before
-- the one at work goes through at once, so for parity 1 on a fresh barrier.
--
-- A barrier is a pointer to an i64 in shared memory, `full + stage`;
-- peer_cta_rank_in_cluster names the one at the same place in another block of
-- the cluster. opts, of what arrives:
--   relaxed  true: orders nothing before it
--   scope    for whom it orders: "cta", "cluster"
--   token    true: mbarrier_arrive gives a token, which waits take for the
--            parity: it names the phase that the arrival was of
-- What sm_80 lacks: bytes (mbarrier_expect_tx, mbarrier_arrive_and_expect_tx),
-- barriers of other blocks, scope = "cluster", a time limit. Waits ask again
-- and again there (mbarrier.test_wait), and mbarrier_try_wait once.
--
-- Without opts it is the instruction's plain form, which is fastest and enough
-- to hand back what was only read. Who waits for what threads of other blocks
-- wrote says {scope = "cluster"} as they do.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local mbarrier = {}

local HINTS = core.hints()

-- The order of an arrival or a wait, and for whom, as the flags that say it.
local function order(what, opts)
  local relaxed, scope = opts and opts.relaxed, opts and opts.scope
  if relaxed ~= nil and type(relaxed) ~= "boolean" then
    core.fail("bad-argument", ("%s: relaxed = %s: a boolean is needed"):format(
      what, core.show(relaxed)))
  elseif scope ~= nil and scope ~= "cta" and scope ~= "cluster" then
    core.fail("unknown-name", ("%s: scope = %s: \"cta\" or \"cluster\""):format(
      what, core.show(scope)))
  end
  return (relaxed and HINTS.sem.relaxed or 0)
    | (scope and HINTS.scope[scope] or 0)
end

-- A count of at least `least` and at most what the barrier holds.
local MOST = (1 << 20) - 1

local function counted(what, thing, n, least)
  if math.type(n) and (math.type(n) ~= "integer" or n < least or n > MOST) then
    core.fail("bad-argument", ("%s: %s of %s: %d to %d is needed")
      :format(what, thing, tostring(n), least, MOST))
  end
  return n
end

--- Makes a barrier: `cnt` arrivals end a phase. By one thread, before
-- mbarrier_init_fence and a barrier of all that use it.
---@param mbar_ptr table
---@param cnt any integer
function mbarrier.mbarrier_init(mbar_ptr, cnt)
  core.mbarrier("init", mbar_ptr, 0, counted("mbarrier_init", "a count", cnt,
                                             1))
end

--- Takes a barrier back: its place may be used for something else, or for a
-- barrier of another count. By one thread, when nobody uses it any more.
---@param mbar_ptr table
function mbarrier.mbarrier_inval(mbar_ptr)
  core.mbarrier("inval", mbar_ptr, 0)
end

--- What mbarrier_init made is seen by the cluster and by TMA, after a barrier
-- of theirs (before sm_90: by the block).
function mbarrier.mbarrier_init_fence() core.fence "mbarrier_init" end

--- Arrives, `arrive_count` times at once.
---@param mbar_ptr table
---@param peer_cta_rank_in_cluster? any integer
---@param arrive_count? any integer, 1 when absent
---@param opts? {relaxed: boolean, scope: string, token: boolean}
---@return cute.Value? token with token = true: for mbarrier_wait, try_wait and
-- test_wait in the place of a parity, of this barrier, until the phase behind
-- its own is over
function mbarrier.mbarrier_arrive(mbar_ptr, peer_cta_rank_in_cluster,
                                  arrive_count, opts)
  local what = "mbarrier_arrive"
  local flags, token = order(what, opts), opts and opts.token
  local n = counted(what, "a count", arrive_count or 1, 1)
  if token == nil or token == false then
    core.mbarrier("arrive", mbar_ptr, flags, n, peer_cta_rank_in_cluster)
    return
  elseif token ~= true then
    core.fail("bad-argument", ("%s: token = %s: a boolean is needed"):format(
      what, core.show(token)))
  elseif peer_cta_rank_in_cluster then
    core.fail("bad-argument", what .. ": the barrier of another block gives no "
      .. "token")
  end
  return core.mbarrier("arrive_token", mbar_ptr, flags, n)
end

--- Expects so many more bytes in this phase, and arrives (sm_90).
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

--- Expects so many more bytes in this phase, without arriving (sm_90).
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
    core.fail("bad-argument", ("%s: parity %s of a phase: 0 or 1 is needed")
      :format(what, tostring(phase)))
  end
  return phase
end

--- Waits until the phase of that parity, or of that token, is complete.
---@param mbar_ptr table
---@param phase any 0 or 1, or what mbarrier_arrive gave
---@param opts? {scope: string}
function mbarrier.mbarrier_wait(mbar_ptr, phase, opts)
  local what = "mbarrier_wait"
  core.mbarrier("wait", mbar_ptr, order(what, opts),
                parity(what, phase))
end

--- Is the phase of that parity, or of that token, complete? Waits a while for
-- it (a boolean), with time_limit (sm_90) for so many nanoseconds at most.
-- Before sm_90 it does not wait.
---@param mbar_ptr table
---@param phase any 0 or 1, or what mbarrier_arrive gave
---@param opts? {scope: string, time_limit: integer|cute.Value}
function mbarrier.mbarrier_try_wait(mbar_ptr, phase, opts)
  local what = "mbarrier_try_wait"
  local limit = opts and opts.time_limit
  if limit ~= nil and core.typename(limit) ~= "value"
    and (math.type(limit) ~= "integer" or limit < 0 or limit > 0x7fffffff) then
    core.fail("bad-argument", ("%s: time_limit = %s: nanoseconds, 0 to %d, are "
      .. "needed"):format(what, core.show(limit), 0x7fffffff))
  end
  return core.mbarrier("try_wait", mbar_ptr, order(what, opts),
                       parity(what, phase), limit)
end

--- Is the phase of that parity, or of that token, complete, now?
---@param mbar_ptr table
---@param phase any 0 or 1, or what mbarrier_arrive gave
---@param opts? {scope: string}
function mbarrier.mbarrier_test_wait(mbar_ptr, phase, opts)
  local what = "mbarrier_test_wait"
  return core.mbarrier("test_wait", mbar_ptr, order(what, opts),
                       parity(what, phase))
end

--- mbarrier_try_wait where `cond` holds, true elsewhere.
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

--- Arrives when the cp.async copies that this thread made so far are there:
-- one of the arrivals that the barrier counts.
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
