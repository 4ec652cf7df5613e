-- Fault: the operation that releases a lock is relaxed.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: lock_release.lua:20: read by block (0,0,0) and write by block (1,0,0)
--   with nothing to order them: element 0 of global tensor 'count' [block-race]
-- expect: second access: thread 0
-- expect: let one block access it, use atomics, or synchronize with a release
--   and an acquire of gpu scope; a thread that releases for its block must come
--   after a sync_threads()
-- expect: fixed by sem = "release" at lock_release.lua:21
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(lock, count)
  cute.when(arch.thread_idx():eq(0), function()
    cute.loop(function()
      return arch.atomic_cas(lock.iterator,
                             {cmp = 0, val = 1, sem = "acquire"}):ne(0)
    end, function() end)
    count[0] = count[0] + 1
    arch.atomic_exch(lock.iterator, 0, {sem = "relaxed"})
  end)
end)
k(cute.zeros({1}, cute.i32), cute.zeros({1}, cute.i32)):launch {grid = 2,
  block = 32, device = "sim"}
