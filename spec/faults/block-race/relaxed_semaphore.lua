-- Fault: the atomic add to the semaphore of a split-K tile is relaxed.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/block-race/relaxed_semaphore.lua:35 in main chunk
-- expect: relaxed_semaphore.lua:27: read by block (1,0,0) and write by block
--   (0,0,0) with nothing to order them: element 0 of global tensor 'sum'
--   [block-race]
-- expect: second access: thread 0
-- expect: let one block access it, use atomics, or synchronize with a release
--   and an acquire of gpu scope; a thread that releases for its block must come
--   after a sync_threads()
local cute = require "cute"
local arch = cute.arch

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function await(flag, turn)
  local how = {sem = "acquire", scope = "gpu"}
  cute.loop(function()
    return arch.load(flag.iterator, nil, how):ne(turn)
  end, function() end)
end

local k = cute.kernel("faulty", function(sum, turn)
  local t, b = arch.thread_idx(), arch.block_idx()
  thread0(function() await(turn, b) end)
  arch.sync_threads()
  sum[t] = sum[t] + 1
  arch.sync_threads()
  thread0(function()
    arch.atomic_add(turn.iterator, 1, {sem = "relaxed",  -- wrong
    -- mend: arch.atomic_add(turn.iterator, 1, {sem = "release",
                                       scope = "gpu"})
  end)
end)
k(cute.zeros({64}, cute.f32), cute.zeros({1}, cute.i32)):launch {
  grid = 2, block = 64, device = "sim:sm_90a", seed = 1}
