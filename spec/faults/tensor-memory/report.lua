-- The example of the error kind `tensor-memory` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/tensor-memory/report.lua:14 in run
-- expect: report.lua:31: read after the write of column 0 of tensor memory by a
--   store, for which its warp did not wait [tensor-memory]
-- expect: first access: report.lua:29
-- expect: call cute.arch.fence_view_async_tmem_store() after the store, then
--   synchronize
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = launch.device or "sim"
  cute.kernel("k", f)(...):launch(launch)
end

local tcgen05 = cute.nvgpu.tcgen05
local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(4), cute.f32)
local store = cute.make_copy_atom(tcgen05.St32x32bOp(4), cute.f32)
run({device = "sim:sm_100a"}, function(mX)
  local address = cute.arch.alloc_smem(cute.i32, 1)
  cute.arch.alloc_tmem(32, address)
  cute.arch.sync_warp()
  local ptr = cute.arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local lanes = cute.make_layout({{4, 32}}, {{1, 1 << 16}})  -- 32 lanes x 4
  local t = cute.make_tensor(ptr, lanes)
  local r = cute.make_rmem_tensor(4, cute.f32)
  r:fill(1)
  cute.copy(store, r, t)
  -- mend: cute.arch.fence_view_async_tmem_store()
  cute.copy(load, t, r)
  cute.arch.fence_view_async_tmem_load()
  cute.arch.dealloc_tmem(ptr, 32)
end, X)
