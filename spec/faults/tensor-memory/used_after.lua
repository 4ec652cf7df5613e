-- Fault: a warp loads columns of tensor memory that it has freed.
-- expect: cutelua: simulator: kernel double: 1 fault [kernel-fault]
-- expect: spec/faults/tensor-memory/used_after.lua:34 in main chunk
-- expect: used_after.lua:27: columns 32 to 35 of tensor memory are used after
--   they were freed [tensor-memory]
-- expect: freed: used_after.lua:26
-- expect: before dealloc_tmem, let all warps that use the columns synchronize;
--   do the waits before it use the right stage and phase?
local cute = require "cute"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05
local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(4), cute.f32)
local store = cute.make_copy_atom(tcgen05.St32x32bOp(4), cute.f32)

local double = cute.kernel("double", function(X)
  local address = arch.alloc_smem(cute.i32, 1)
  local r = cute.make_rmem_tensor(4, cute.f32)
  arch.alloc_tmem(64, address)
  arch.sync_warp()
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  -- 32 lanes x 4 columns
  local lanes = cute.make_layout({{4, 32}}, {{1, 1 << 16}})
  local t = cute.make_tensor(ptr + 32, lanes)
  r:fill(1)
  cute.copy(store, r, t)
  arch.fence_view_async_tmem_store()
  arch.dealloc_tmem(ptr, 64)  -- wrong
  cute.copy(load, t, r)
  arch.fence_view_async_tmem_load()
  -- mend: arch.dealloc_tmem(ptr, 64)
  X[arch.thread_idx()] = r[0] + r[3]
end)

local X = cute.zeros({32}, cute.f32)
double(X):launch {grid = 1, block = 32, device = "sim:sm_100a", seed = 1}
-- SPDX-License-Identifier: MIT
