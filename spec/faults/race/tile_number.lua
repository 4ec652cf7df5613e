-- Fault: the next tile number overwrites the one that slow warps still read.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/tile_number.lua:29 in main chunk
-- expect: tile_number.lua:22: write after a read by another warp with no
--   barrier in between: element 0 of shared tensor 's' [race]
-- expect: first access: tile_number.lua:25, thread 32
-- expect: put sync_threads() between the two lines
local cute = require "cute"
local arch = cute.arch

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local k = cute.kernel("faulty", function(counter, y)
  local t, s = arch.thread_idx(), smem(4, cute.i32)
  for _k = 1, 3 do  -- luacheck: ignore _k
    thread0(function()
      local ticket = arch.atomic_add(counter.iterator, 1)
      s[0] = ticket
    end)
    arch.sync_threads()
    y[t] = y[t] + s[0]
    -- mend: arch.sync_threads()
  end
end)
k(cute.zeros({1}, cute.i32), cute.zeros({64}, cute.i32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
