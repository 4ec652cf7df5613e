-- Copies 64 KiB to shared memory by bulk copies. Fault: all lanes of the warp
-- expect the bytes and start the copies, instead of one.
-- expect: cutelua: simulator: kernel fill: 1 fault [kernel-fault]
-- expect: spec/faults/mbarrier/warp_expects.lua:36 in main chunk
-- expect: warp_expects.lua:25: mbarrier 'full'[0] expects 1179648 bytes; the
--   maximum is 1048575 [mbarrier]
-- expect: one thread should expect the bytes of a stage; do several threads of
--   a warp run this line? Use cute.when(arch.elect_one(), ...) or a condition
--   on one thread
local cute = require "cute"
local arch = cute.arch

local N = 9216

local fill = cute.kernel("fill", function(x, y)
  local t = arch.thread_idx()
  local full = cute.make_smem_tensor(cute.u64, 1)
  local s = cute.make_smem_tensor(cute.f32, N, 128)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  local function load()
    arch.mbarrier_arrive_and_expect_tx(full, N * 4)
    cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(), cute.f32),
      x, s, {mbar_ptr = full})
  end
  load()  -- wrong
  -- mend: cute.when(t:eq(0), load)
  arch.mbarrier_wait(full, 0)
  for i in cute.range(t, N, 32) do y[i] = s[i] end
end)

local x, y = cute.ones({N}, cute.f32), cute.zeros({N}, cute.f32)
fill(x, y):launch {grid = 1, block = 32, device = "sim:sm_90a"}
assert(y[N - 1] == 1)
-- SPDX-License-Identifier: MIT
