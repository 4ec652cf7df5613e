-- Adds 1 to elements of a vector, some of which are beyond its end. Fault:
-- cute.where evaluates the read even where its condition is false.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/out-of-bounds/where_reads_both.lua:20 in main chunk
-- expect: where_reads_both.lua:15: read outside global tensor 'x': element
--   60 of 60 [out-of-bounds]
-- expect: cute.where(c, x, y) computes both x and y, also where c is false:
--   read in cute.when(c, function() return x end, function() return y end), or
--   clamp the index
local cute = require "cute"
local x, y = cute.full({60}, 1, cute.f32), cute.zeros({64}, cute.f32)
local k = cute.kernel("k", function(x, y)
  local t = cute.arch.thread_idx()
  local inside = t:lt(60)
  local v = x[t] + 1  -- wrong
  y[t] = cute.where(inside, v, 0.0)  -- wrong
  -- mend: y[t] = cute.when(inside, function() return x[t] + 1 end,
  -- mend: function() return 0.0 end)
end)
k(x, y):launch {grid = 1, block = 64, device = "sim", seed = 1}
