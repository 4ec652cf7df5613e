-- Tests a search for a repair that reaches the time limit. The proposed repair
-- has no fault in the schedules that ran, but other schedules did not run.
-- run: check --surgeon --seconds 4
-- expect: check: kernel k: bug
-- expect: open.lua:23: read after a write by another warp with no barrier in
--   between: element 223 of shared tensor 's' [race]
-- expect: first access: open.lua:17, thread 223
-- expect: put sync_threads() between the two lines
-- expect: fixed by cute.arch.sync_threads() before open.lua:23 (in the
--   schedules that were examined: there are more)
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, count)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(256))
  s[t] = t
  cute.when((t % 32):eq(0), function()
    for _ = 1, 3 do
      arch.atomic_add(count.iterator + arch.atomic_add(count.iterator, 1), 1)
    end
  end)
  x[t] = s[255 - t]
end)
k(cute.zeros({256}, cute.i32), cute.zeros({64}, cute.i32)):launch {grid = 1,
  block = 256, device = "sim"}
