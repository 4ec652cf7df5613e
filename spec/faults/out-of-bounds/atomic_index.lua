-- Each lane appends its index to a list; one lane reserves the elements of the
-- warp. Fault: all lanes reserve them.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: atomic_index.lua:18: write outside global tensor 'list': element …
--   of 64 [out-of-bounds]
-- expect: the index comes from the atomic in atomic_index.lua:13, whose result
--   grows each time that a thread executes it: does one thread reserve the
--   elements of all, and should it alone execute the atomic?
local cute = require "cute"
local list, count = cute.zeros({64}, cute.i32), cute.zeros({1}, cute.i32)
local k = cute.kernel("k", function(list, count)
  local lane = cute.arch.thread_idx()
  local first = cute.arch.atomic_add(count.iterator, 32)  -- wrong
  -- mend: local first = cute.when(lane:eq(0), function()
    -- mend: return cute.arch.atomic_add(count.iterator, 32)
  -- mend: end, function() return 0 end)
  -- mend: first = cute.arch.shuffle_sync(first, 0)
  list[first + lane] = lane
end)
k(list, count):launch {grid = 2, block = 32, device = "sim", seed = 1}
