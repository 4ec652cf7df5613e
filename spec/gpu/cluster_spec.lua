-- Tests mbarriers, clusters, distributed shared memory, register transfers and
-- overlapping kernels, on the simulator and on a GPU of sm_90a.
local core = require "cute.core"
local cute = require "cute"
local arch = cute.arch

local function read(t)
  local list = {}
  for i = 0, cute.size(t) - 1 do list[i + 1] = t[i] end
  return list
end

-- Launches `kernel` with a tensor of n i32 as its first argument. Returns the
-- tensor's elements as a list.
local function run(device, n, opts, kernel, ...)
  local out = cute.zeros({n}, cute.i32)
  opts.device = device
  cute.kernel("k", kernel)(out, ...):launch(opts)
  return read(out)
end

-- Makes an mbarrier for each stage, initialised by thread 0.
local function barriers(n, count)
  local bars = arch.alloc_smem(cute.i64, n)
  cute.when(arch.thread_idx():eq(0), function()
    for s = 0, n - 1 do arch.mbarrier_init(bars + s, count) end
    arch.mbarrier_init_fence()
  end)
  return bars
end

local CASES = {}

-- Warp 0 fills the stages of a ring. Warp 1 sums the values of each stage and
-- then frees it.
CASES["pass stages from warp to warp by mbarriers"] = function(device)
  local STAGES, ROUNDS = 3, 50
  local got = run(device, 32, {grid = 1, block = 64}, function(out)
    local tid = arch.thread_idx()
    local ring = cute.make_smem_tensor(cute.i32,
                                       cute.make_layout {32, STAGES}, 16)
    local full, empty = barriers(STAGES, 32), barriers(STAGES, 32)
    arch.sync_threads()
    cute.when(tid:lt(32), function()
      for k in cute.range(ROUNDS) do
        local stage, phase = k % STAGES, k // STAGES & 1
        arch.mbarrier_wait(empty + stage, phase ~ 1)
        ring[{tid, stage}] = k * k + tid
        arch.mbarrier_arrive(full + stage)
      end
    end, function()
      local sum = 0
      for k in cute.range(ROUNDS) do
        local stage, phase = k % STAGES, k // STAGES & 1
        arch.mbarrier_wait(full + stage, phase)
        -- Adds the product of another lane's value and the number of the round.
        sum = sum + ring[{(tid - 32) ~ 5, stage}] * (k + 1)
        arch.mbarrier_arrive(empty + stage)
      end
      out[tid - 32] = sum
    end)
  end)
  for lane = 0, 31 do
    local sum = 0
    for k = 0, ROUNDS - 1 do sum = sum + (k * k + (lane ~ 5)) * (k + 1) end
    assert.equal(sum, got[lane + 1])
  end
end

CASES["poll a barrier, and count arrivals several at once"] = function(device)
  local got = run(device, 34, {grid = 1, block = 32}, function(out)
    local tid = arch.thread_idx()
    local bar = barriers(1, 32 + 4)
    local seen = cute.make_smem_tensor(cute.i32, cute.make_layout(32), 16)
    arch.sync_threads()
    cute.when(tid:eq(0), function()
      out[32] = cute.where(arch.mbarrier_test_wait(bar, 0), 1, 0)
      out[33] = cute.where(arch.mbarrier_test_wait(bar, 1), 1, 0)
    end)
    arch.sync_warp()
    seen[tid] = 3 * tid
    arch.mbarrier_arrive(bar)
    cute.when(tid:eq(7), function() arch.mbarrier_arrive(bar, nil, 4) end)
    local done = cute.var(false)
    cute.loop(function() return ~done:get() end, function()
      done:set(arch.mbarrier_try_wait(bar, 0))
    end)
    out[tid] = seen[31 - tid]
  end)
  for lane = 0, 31 do assert.equal(3 * (31 - lane), got[lane + 1]) end
  assert.same({0, 1}, {got[33], got[34]})
end

CASES["arrive when cp.async has copied"] = function(device)
  local source = cute.zeros({128}, cute.i32)
  for i = 0, 127 do source[i] = 7 * i end
  local got = run(device, 128, {grid = 1, block = 32}, function(out, x)
    local tid = arch.thread_idx()
    local bar = barriers(1, 32)
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(128), 16)
    arch.sync_threads()
    local g2s = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.i32, 128),
      cute.make_layout {32}, cute.make_layout {4})
    local thr = g2s:get_slice(tid)
    cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
    arch.cp_async_mbarrier_arrive_noinc(bar)
    arch.mbarrier_wait(bar, 0)
    for k = 0, 3 do out[tid + 32 * k] = s[127 - tid - 32 * k] end
  end, source)
  for i = 0, 127 do assert.equal(7 * (127 - i), got[i + 1]) end
end

CASES["elect one lane, the same each time"] = function(device)
  local got = run(device, 3, {grid = 1, block = 64}, function(out)
    cute.when(arch.elect_one(), function()
      arch.atomic_add(out.iterator, 1)
      arch.atomic_add(out.iterator + 1, arch.lane_idx())
    end)
    cute.when(arch.elect_one(), function()
      arch.atomic_add(out.iterator + 2, arch.lane_idx())
    end)
  end)
  assert.equal(2, got[1])
  assert.equal(got[2], got[3])
end

-- Each block of a cluster reads the values of all others.
for _, size in ipairs {2, 4, 8} do
  local name = ("exchange through shared memory, %d blocks"):format(size)
  CASES[name] = function(device)
    local n = 2 * size * 32
    local opts = {grid = 2 * size, block = 32, cluster = size}
    local got = run(device, n, opts, function(out)
      local tid, block = arch.thread_idx(), arch.block_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32), 16)
      s[tid] = block * 1000 + tid
      arch.cluster_arrive()
      arch.cluster_wait()
      local rank, sum = arch.block_idx_in_cluster(), 0
      for k = 1, size - 1 do
        local peer = arch.map_dsmem_ptr(s.iterator, (rank + k) % size)
        sum = sum + arch.load(peer + (31 - tid)) * k
      end
      out[block * 32 + tid] = sum
      arch.cluster_arrive()
      arch.cluster_wait()
    end)
    for i = 0, n - 1 do
      local block, tid = i // 32, i % 32
      local first, rank, sum = block // size * size, block % size, 0
      for k = 1, size - 1 do
        sum = sum + ((first + (rank + k) % size) * 1000 + 31 - tid) * k
      end
      assert.equal(sum, got[i + 1])
    end
  end
end

CASES["write, copy and add in another block's memory"] = function(device)
  local opts = {grid = 4, block = 32, cluster = 2}
  local got = run(device, 4 * 64, opts, function(out)
    local tid, block = arch.thread_idx(), arch.block_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 16)
    local all = cute.make_smem_tensor(cute.i32, cute.make_layout(128), 16)
    s[tid], s[tid + 32] = 0, 0
    for k = 0, 3 do all[tid * 4 + k] = block * 500 + tid * 4 + k end
    arch.cluster_arrive()
    arch.cluster_wait()
    local other = arch.block_idx_in_cluster() ~ 1
    local peer = arch.map_dsmem_ptr(s.iterator, other)
    arch.store(peer + tid, 10 * block + tid)
    arch.red(peer + (32 + tid % 4), tid, {op = "add"})
    local r = cute.make_rmem_tensor(cute.make_layout(4), cute.i32)
    local far = cute.make_tensor(arch.map_dsmem_ptr(all.iterator, other),
                                 cute.make_layout(128))
    cute.autovec_copy(cute.local_tile(far, {4}, {tid}), r)
    arch.atomic_add(peer + 40, r[3], {sem = "relaxed", scope = "cluster"})
    arch.cluster_arrive()
    arch.cluster_wait()
    out[block * 64 + tid] = s[tid]
    out[block * 64 + 32 + tid] = s[tid + 32]
  end)
  for block = 0, 3 do
    local from = block ~ 1  -- rank of the block that sends to this block
    for i = 0, 31 do
      assert.equal(10 * from + i, got[block * 64 + i + 1])
    end
    for j = 0, 3 do  -- value j is the sum of threads j, j + 4, j + 8, ...
      assert.equal(8 * j + 4 * 28, got[block * 64 + 32 + j + 1])
    end
    local sum = 0
    for tid = 0, 31 do sum = sum + block * 500 + tid * 4 + 3 end
    assert.equal(sum, got[block * 64 + 40 + 1])
  end
end

-- Two blocks send values back and forth, synchronised only by remote arrivals.
CASES["arrive at another block's barrier"] = function(device)
  local ROUNDS = 20
  local opts = {grid = 2, block = 32, cluster = 2}
  local got = run(device, 2, opts, function(out)
    local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local bar = barriers(1, 32)
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32), 16)
    s[tid] = 0
    arch.cluster_arrive()
    arch.cluster_wait()
    local other = rank ~ 1
    local peer = arch.map_dsmem_ptr(s.iterator, other)
    for k in cute.range(ROUNDS) do
      -- Block 0 sends a value; block 1 adds to it and sends it back.
      cute.when(rank:eq(1), function()
        arch.mbarrier_wait(bar, k & 1, {scope = "cluster"})
      end)
      arch.store(peer + tid, s[tid] + tid + 1)
      arch.mbarrier_arrive(bar, other, 1, {scope = "cluster"})
      cute.when(rank:eq(0), function()
        arch.mbarrier_wait(bar, k & 1, {scope = "cluster"})
      end)
    end
    arch.cluster_arrive()
    arch.cluster_wait()
    arch.atomic_add(out.iterator + rank, s[tid])
  end)
  local all = 0
  for tid = 0, 31 do all = all + (tid + 1) end
  assert.same({2 * ROUNDS * all, (2 * ROUNDS - 1) * all}, got)
end

-- Runs operations that the hardware supports only in clusters. The launch has
-- no cluster, so the kernel must declare one of a single block.
CASES["send values to themselves, in no cluster"] = function(device)
  local got = run(device, 64, {grid = 1, block = 32}, function(out)
    local tid, bar = arch.thread_idx(), barriers(1, 1)
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 16)
    cute.when(tid:eq(0), function()
      arch.mbarrier_arrive_and_expect_tx(bar, 2 * 32 * 4)
    end)
    cute.arch.sync_threads()
    arch.store_async_dsmem(s.iterator + tid, tid * 3, bar, 0)
    cute.when(tid:eq(0), function()
      local x = cute.make_smem_tensor(cute.i32, cute.make_layout(32), 16)
      for i = 0, 31 do x[i] = 100 + i end
      arch.fence_view_async_shared()
      cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkS2SOp(),
                                    cute.i32),
                x, cute.make_tensor(s.iterator + 32, cute.make_layout(32)),
                {mbar_ptr = bar, cta_rank = 0})
    end)
    arch.mbarrier_wait(bar, 0)
    out[tid], out[tid + 32] = s[tid], s[tid + 32]
  end)
  for i = 0, 31 do
    assert.equal(i * 3, got[i + 1])
    assert.equal(100 + i, got[i + 33])
  end
end

-- Blocks send values to each other. The receiver's mbarrier counts the bytes
-- that st.async sends.
CASES["send values with st.async"] = function(device)
  local opts = {grid = 4, block = 32, cluster = 4}
  local got = run(device, 4 * 160, opts, function(out)
    local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local bar = barriers(1, 1)
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(160), 16)
    cute.when(tid:eq(0), function()
      arch.mbarrier_arrive_and_expect_tx(bar, 160 * 4)
    end)
    arch.cluster_arrive()
    arch.cluster_wait()
    local to = (rank + 1) % 4
    local v = rank * 1000 + tid
    arch.store_async_dsmem(s.iterator + tid * 4, {v, v + 1, v + 2, v + 3}, bar,
                           to)
    arch.store_async_dsmem(s.iterator + (128 + tid), -v, bar, to)
    arch.mbarrier_wait(bar, 0)
    for k = 0, 4 do
      out[rank * 160 + tid + 32 * k] = s[tid + 32 * k]
    end
    arch.cluster_arrive()
    arch.cluster_wait()
  end)
  for rank = 0, 3 do
    local from = (rank + 3) % 4
    for i = 0, 159 do
      local v = from * 1000 + (i < 128 and i // 4 or i - 128)
      assert.equal(i < 128 and v + i % 4 or -v, got[rank * 160 + i + 1])
    end
  end
end

CASES["meet at named barriers, lanes of a warp one by one"] = function(device)
  local got = run(device, 64, {grid = 1, block = 64}, function(out)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 16)
    local full = cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 64}
    s[tid] = tid * tid
    cute.when(tid:lt(32), function()
      full:arrive_unaligned()
      cute.pipeline.wait_unaligned(2, 64)
      out[tid] = s[tid + 32]
    end, function()
      full:wait_unaligned()
      out[tid] = s[tid - 32]
      cute.pipeline.arrive_unaligned(2, 64)
    end)
  end)
  for tid = 0, 63 do assert.equal((tid ~ 32) ^ 2, got[tid + 1]) end
end

-- One warpgroup releases registers, and the other two warpgroups take them.
CASES["pass registers from warpgroup to warpgroup"] = function(device)
  local got = run(device, 384, {grid = 2, block = 384}, function(out)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(128), 16)
    local full = barriers(1, 128)
    arch.sync_threads()
    cute.when((tid // 128):eq(0), function()
      arch.setmaxregister_decrease(40)
      s[tid] = 5 * tid
      arch.mbarrier_arrive(full)
      out[tid] = -tid
    end, function()
      arch.setmaxregister_increase(232)
      arch.mbarrier_wait(full, 0)
      out[tid] = s[tid % 128 ~ 1] + tid
    end)
  end)
  for tid = 0, 383 do
    assert.equal(tid < 128 and -tid or 5 * (tid % 128 ~ 1) + tid,
                 got[tid + 1])
  end
end

describe("a kernel of sm_90 can", function()
  for name, check in pairs(CASES) do
    it(name .. " #gpu", function() check "gpu" end)
    it(name, function() check "sim:sm_90a" end)
  end
end)

describe("kernels that overlap #gpu", function()
  -- Computes y = x + 1 after it has waited for the preceding launch.
  local step = cute.kernel("step", function(x, y)
    arch.griddepcontrol_launch_dependents()
    local i = arch.block_idx() * 128 + arch.thread_idx()
    arch.griddepcontrol_wait()
    y[i] = x[i] + 1
  end)

  it("read what earlier kernels wrote", function()
    local device = assert(cute.device "gpu")
    local N, buffers = 1 << 16, {}
    for k = 1, 2 do
      local t = cute.zeros({N}, cute.i32)
      local b = assert(device.dev:buffer((core.param_memory(t))))
      buffers[k] = core.on_device(t, b)
      buffers[-k] = {t, b}
    end
    local opts = {grid = N // 128, block = 128, pdl = true, device = "gpu"}
    for k = 1, 200 do
      step(buffers[k % 2 + 1], buffers[(k + 1) % 2 + 1]):launch(opts)
    end
    -- the tensor to which the last launch wrote, and its buffer
    local t, b = table.unpack(buffers[-2])
    b:download((core.param_memory(t)))
    for i = 0, N - 1, 997 do assert.equal(200, t[i]) end
  end)
end)

describe("clusters #gpu", function()
  it("may have 16 blocks if the GPU has room", function()
    local info = assert(cute.utils.HardwareInfo())
    local most = assert(info:get_max_active_clusters(1))
    assert.equal(info:get_device_multiprocessor_count(), most)
    local last = most
    for _, n in ipairs {2, 4, 8, 16} do
      local fit = assert(info:get_max_active_clusters(n))
      assert.is_true(fit * n <= most and fit <= last, ("%d: %d"):format(n, fit))
      last = fit
    end
    local got = run("gpu", 16, {grid = 16, block = 32, cluster = 16},
      function(out)
        out[arch.block_idx_in_cluster()] = arch.cluster_size()
      end)
    for i = 1, 16 do assert.equal(16, got[i]) end
  end)
end)
-- SPDX-License-Identifier: MIT
