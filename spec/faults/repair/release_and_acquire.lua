-- Fault: the store of a flag and its load are relaxed.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: release_and_acquire.lua:24: read after a write by another warp with
--   no barrier in between: element 0 of global tensor 'x' [race]
-- expect: first access: release_and_acquire.lua:16, thread 0
-- expect: put sync_threads() between the two lines
-- expect: fixed by sem = "release" at release_and_acquire.lua:17 and sem =
--   "acquire" at release_and_acquire.lua:21
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y, flag)
  local i = arch.thread_idx()
  cute.when(i:eq(0), function()
    x[0] = 7
    arch.store(flag.iterator, 1, {sem = "relaxed", scope = "gpu"})
  end)
  cute.when(i:eq(32), function()
    cute.loop(function()
      return arch.load(flag.iterator, cute.i32,
                       {sem = "relaxed", scope = "gpu"}):eq(0)
    end, function() end)
    y[0] = x[0]
  end)
end)
local function ints(n) return cute.zeros({n}, cute.i32) end
k(ints(1), ints(1), ints(1)):launch {grid = 1, block = 64, device = "sim"}
