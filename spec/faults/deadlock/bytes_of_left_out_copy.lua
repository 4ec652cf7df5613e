-- Fault: the mbarrier also expects the bytes of a tile that is not loaded.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/bytes_of_left_out_copy.lua:53 in main chunk
-- expect: bytes_of_left_out_copy.lua:50: no warp can go on: 2 warps wait (warp
--   0, 1) at mbarrier 'all'[0] for the end of phase 0 (parity 0), which lacks
--   256 bytes [deadlock]
-- expect: expected: bytes_of_left_out_copy.lua:41
-- expect: a TMA load transfers the tx_bytes of its atom, whole boxes, including
--   elements outside the tensor: expect all of these bytes
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local when = cute.when
local LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return all
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(x, y, n)
  local t, s = arch.thread_idx(), smem(128)
  local bar = barriers {1}
  thread0(function()
    arch.mbarrier_arrive_and_expect_tx(bar, 512)  -- wrong
    -- mend: arch.mbarrier_arrive_and_expect_tx(bar, cute.where(n:gt(1), 512, 256))
    for k = 0, 1 do
      when(cute.lt(k, n), function()
        local from, to = run64(x, 0, s, k)
        cute.copy(LOAD, from, to, {mbar_ptr = bar})
      end)
    end
  end)
  arch.mbarrier_wait(bar, 0)
  y[t] = s[t]
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32), 1):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
