-- Fault: no proxy fence separates reads by ldmatrix from the next copy.
-- run: check
-- expect: check: kernel faulty: ok
-- expect: note: ldmatrix_refill.lua:39: write by a bulk copy after a thread's
--   read, with no fence_proxy("async") in between: element 0 of shared tensor
--   's' (first access: ldmatrix_refill.lua:45); PTX does not guarantee this:
--   PTX needs a fence between accesses through two proxies: call
--   fence_view_async_shared() in the threads that read, before they arrive, or
--   in the thread that copies, after its wait
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return all
end

local rows = cute.make_layout({16, 16}, {16, 1})
local k = cute.kernel("faulty", function(x, y)
  local t, bar = arch.thread_idx(), barriers {1}
  local s = cute.make_smem_tensor(cute.f16, rows, 128)
  local load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f16)
  local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
  local flat = cute.make_tensor(s.iterator, cute.make_layout(256))
  for k = 0, 1 do
    thread0(function()
      -- mend: if k == 1 then arch.fence_view_async_shared() end
      arch.mbarrier_arrive_and_expect_tx(bar, 512)
      local from, to = cpasync.group_bulk_copy_modes(
        cute.local_tile(x, {256}, {k}), flat)
      cute.copy(load, from, to, {mbar_ptr = bar})
    end)
    arch.mbarrier_wait(bar, k)
    local got = cute.make_rmem_tensor(8, cute.f16)
    local row = cute.make_tensor(s.iterator + t % 16 * 16 + t // 16 * 8,
                                 cute.make_layout(8))
    cute.copy(ldsm, row, got)
    for i = 0, 7 do y[k * 256 + t * 8 + i] = got[i] end
    arch.sync_warp()
  end
end)
k(cute.zeros({512}, cute.f16), cute.zeros({512}, cute.f16)):launch {
  grid = 1, block = 32, device = "sim:sm_90a"}
