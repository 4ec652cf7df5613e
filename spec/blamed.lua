--- Plants faults in the text of small correct kernels. The kind and the line of
-- the simulator's first report are compared with those of the planted fault.
local support = require "spec.support"

local blamed = {}

local HEAD = [[
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup
]]

--- Kernels as texts. Each text returns a function that takes a seed and returns
--- a report. `@name` at the end of a line names the line.
blamed.KERNELS = {}

-- Loads one box by TMA, doubles it and stores it by TMA.
blamed.KERNELS.box = [[
local TILE = {32, 16}
local ROWS = cute.make_layout(TILE, {16, 1})
local X = cute.zeros({32, 16}, cute.f32)
local Y = cute.zeros({32, 16}, cute.f32)
local function atom(op, t)
  return cpasync.make_tiled_tma_atom(op, t, ROWS, TILE)
end
local load, cX = atom(cpasync.CopyBulkTensorTileG2SOp(), X)
local store, cY = atom(cpasync.CopyBulkTensorTileS2GOp(), Y)
local k = cute.kernel("box", function(load, cX, store, cY)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local d = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local function part(a, t, c)
    return cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(t, 0, 2), cute.zipped_divide(c, TILE))
  end
  local ts, tg = part(load, s, cX)
  local ds, dg = part(store, d, cY)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(full, 1)  --@init
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()  -- made
  cute.when(tid:eq(0), function()
    arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
    cute.copy(load, tg(_, 0), ts, {tma_bar_ptr = full})  --@copy
  end)
  arch.mbarrier_wait(full, 0)  --@wait
  for i = 0, 3 do
    local at = {tid // 4, tid % 4 * 4 + i}
    d[at] = s[at] * 2.0  --@use
  end
  arch.fence_view_async_shared()
  arch.sync_threads()  -- filled
  cute.when(tid:eq(0), function()
    cute.copy(store, ds, dg(_, 0))  --@store
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0, true)
  end)
end)
return function(seed)
  return k(load, cX, store, cY):launch {grid = 1, block = 128,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Streams tiles by TMA through a ring of stages: one warp loads, four read.
blamed.KERNELS.ring = [[
local TILE, STAGES, TILES = {32, 16}, 3, 8
local ROWS = cute.make_layout(TILE, {16, 1})
local X = cute.zeros({32, 16 * TILES}, cute.f32)
local Y = cute.zeros({128 * TILES}, cute.f32)
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), X, ROWS, TILE)
local k = cute.kernel("ring", function(load, cX, y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout({32, 16, STAGES}, {16, 1, 512}), 128)
  local full = arch.alloc_smem(cute.i64, STAGES)
  local empty = arch.alloc_smem(cute.i64, STAGES)
  local ts, tg = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  cute.when(tid:eq(0), function()
    for i = 0, STAGES - 1 do
      arch.mbarrier_init(full + i, 1)  --@full
      arch.mbarrier_init(empty + i, 4)  --@empty
    end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()  -- made
  cute.when(tid:eq(128), function()
    for t in cute.range(TILES) do
      local i, turn = t % STAGES, t // STAGES % 2
      arch.mbarrier_wait(empty + i, 1 - turn)  --@ask
      arch.mbarrier_arrive_and_expect_tx(full + i, load.tx_bytes)  --@expect
      cute.copy(load, tg(_, t), ts(_, i), {tma_bar_ptr = full + i})  --@copy
    end
  end)
  cute.when(warp:lt(4), function()
    for t in cute.range(TILES) do
      local i, turn = t % STAGES, t // STAGES % 2
      arch.mbarrier_wait(full + i, turn)  --@wait
      local row, at = tid % 32, 4 * warp
      local sum = s[{row, at, i}] + s[{row, at + 1, i}]  --@use
      arch.sync_warp()
      cute.when(arch.lane_idx():eq(0), function()
        arch.mbarrier_arrive(empty + i)  --@release
      end)
      y[tid + t * 128] = sum
    end
  end)
end)
return function(seed)
  return k(load, cX, Y):launch {grid = 1, block = 160,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Fills a ring by stores of one warp. Producer and consumer are the two sides
-- of one branch.
blamed.KERNELS.roles = [[
local STAGES, ROUNDS = 2, 6
local Y = cute.zeros({32 * ROUNDS}, cute.f32)
local k = cute.kernel("roles", function(y)
  local warp, lane = arch.warp_idx(), arch.lane_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32, STAGES})
  local full = arch.alloc_smem(cute.i64, STAGES)
  local empty = arch.alloc_smem(cute.i64, STAGES)
  cute.when(arch.thread_idx():eq(0), function()
    for i = 0, STAGES - 1 do
      arch.mbarrier_init(full + i, 32)  --@full
      arch.mbarrier_init(empty + i, 32)  --@empty
    end
  end)
  arch.sync_threads()  -- made
  cute.when(warp:eq(0), function()
    for r in cute.range(ROUNDS) do
      local i, turn = r % STAGES, r // STAGES % 2
      arch.mbarrier_wait(empty + i, 1 - turn)  --@ask
      s[{lane, i}] = r:to(cute.f32)  --@fill
      arch.mbarrier_arrive(full + i)  --@filled
    end
  end, function()
    for r in cute.range(ROUNDS) do
      local i, turn = r % STAGES, r // STAGES % 2
      arch.mbarrier_wait(full + i, turn)  --@wait
      local v = s[{31 - lane, i}]  --@use
      arch.mbarrier_arrive(empty + i)  --@release
      y[lane + 32 * r] = v
    end
  end)
end)
return function(seed)
  return k(Y):launch {grid = 1, block = 64,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Fills a ring like `roles`, with named barriers instead of mbarriers.
blamed.KERNELS.named = [[
local ROUNDS = 6
local Y = cute.zeros({64 * ROUNDS}, cute.f32)
local k = cute.kernel("named", function(y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  cute.when(warp:lt(2), function()
    for r in cute.range(ROUNDS) do
      cute.when(r:gt(0), function()
        arch.barrier(1, 128)  --@ask
      end)
      s[tid] = r:to(cute.f32)  --@fill
      arch.barrier_arrive(2, 128)  --@filled
    end
  end, function()
    for r in cute.range(ROUNDS) do
      arch.barrier(2, 128)  --@wait
      local v = s[127 - tid]  --@use
      cute.when(r:lt(ROUNDS - 1), function()
        arch.barrier_arrive(1, 128)  --@release
      end)
      y[tid - 64 + 64 * r] = v
    end
  end)
end)
return function(seed)
  return k(Y):launch {grid = 1, block = 128,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Fills stages by cp.async, with commit groups and sync_threads.
blamed.KERNELS.groups = [[
local STAGES, TILES = 3, 7
local X = cute.zeros({128 * TILES}, cute.f32)
local Y = cute.zeros({128 * TILES}, cute.f32)
local k = cute.kernel("groups", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout {128, STAGES}, 16)
  local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32,
    {num_bits_per_copy = 32})
  local gx = cute.local_tile(x, {128}, {_})
  local tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(128),
    cute.make_layout(1))
  local thr = tiled:get_slice(tid)
  local tx, ts = thr:partition_S(gx), thr:partition_D(s)
  local function fetch(t)
    cute.when(cute.lt(t, TILES), function()
      cute.copy(tiled, tx(_, _, t), ts(_, _, t % STAGES))  --@copy
    end)
    arch.cp_async_commit_group()
  end
  for t = 0, STAGES - 2 do fetch(t) end
  for t in cute.range(TILES) do
    arch.cp_async_wait_group(STAGES - 2)  --@wait
    arch.sync_threads()  --@meet
    fetch(t + STAGES - 1)
    y[tid + 128 * t] = s[{127 - tid, t % STAGES}]  --@use
  end
end)
return function(seed)
  return k(X, Y):launch {grid = 1, block = 128,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Fills stages by cp.async that arrives at mbarriers: one warp copies, another
-- reads.
blamed.KERNELS.arrivals = [[
local STAGES, TILES = 2, 6
local X = cute.zeros({32 * TILES}, cute.f32)
local Y = cute.zeros({32 * TILES}, cute.f32)
local k = cute.kernel("arrivals", function(x, y)
  local warp, lane = arch.warp_idx(), arch.lane_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout {32, STAGES}, 16)
  local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32,
    {num_bits_per_copy = 32})
  local tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32),
    cute.make_layout(1))
  local thr = tiled:get_slice(lane)
  local tx = thr:partition_S(cute.local_tile(x, {32}, {_}))
  local ts = thr:partition_D(s)
  local pipe = pipeline.PipelineAsync {num_stages = STAGES, cp_async = true,
    producer_group = Group(Agent.Thread, 32),
    consumer_group = Group(Agent.Thread, 32)}
  cute.when(warp:eq(0), function()
    local write = pipe:make_producer_state()
    for t in cute.range(TILES) do
      pipe:producer_acquire(write)  --@ask
      cute.copy(tiled, tx(_, _, t), ts(_, _, write.index))  --@copy
      pipe:producer_commit(write)  --@commit
      write:advance()
    end
  end, function()
    local read = pipe:make_consumer_state()
    for t in cute.range(TILES) do
      pipe:consumer_wait(read)  --@wait
      y[lane + 32 * t] = s[{31 - lane, read.index}]  --@use
      pipe:consumer_release(read)  --@release
      read:advance()
    end
  end)
end)
return function(seed)
  return k(X, Y):launch {grid = 1, block = 64,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Two blocks send values to each other by st.async.
blamed.KERNELS.letters = [[
local Y = cute.zeros({128}, cute.f32)
local k = cute.kernel("letters", function(y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local mail = arch.alloc_smem(cute.f32, 64, 16)
  local came = arch.alloc_smem(cute.i64, 1)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(came, 1)  --@init
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(came, 256)  --@expect
  end)
  arch.cluster_arrive()  -- made
  arch.cluster_wait()  -- made
  arch.store_async_dsmem(mail + tid, tid:to(cute.f32), came, 1 - rank)  --@send
  arch.mbarrier_wait(came, 0)  --@wait
  local got = cute.make_tensor(mail, cute.make_layout(64))
  y[tid + 64 * rank] = got[63 - tid]  --@use
end)
return function(seed)
  return k(Y):launch {grid = 2, block = 64, cluster = 2,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Sums a block's values pairwise, as a tree.
blamed.KERNELS.sum = [[
local X, Y = cute.zeros({128}, cute.f32), cute.zeros({1}, cute.f32)
local k = cute.kernel("sum", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128))
  s[tid] = x[tid]  --@fill
  arch.sync_threads()  -- filled
  for _, n in ipairs {64, 32} do
    cute.when(tid:lt(n), function()
      s[tid] = s[tid] + s[tid + n]  --@add
    end)
    arch.sync_threads()  -- added
  end
  cute.when(tid:lt(32), function()
    for _, n in ipairs {16, 8, 4, 2, 1} do
      local v = s[tid] + s[tid + n]  --@step
      arch.sync_warp()  -- read
      s[tid] = v  --@put
      arch.sync_warp()  -- put
    end
  end)
  arch.sync_threads()  -- done
  cute.when(tid:eq(127), function() y[0] = s[0] end)  --@out
end)
return function(seed)
  return k(X, Y):launch {grid = 1, block = 128,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Multicasts in a cluster of two: each block repeatedly loads half of a box and
-- multicasts it to both blocks.
blamed.KERNELS.multicast = [[
local TILE, TILES = {32, 16}, 4
local ROWS = cute.make_layout(TILE, {16, 1})
local X = cute.zeros({32, 16 * TILES}, cute.f32)
local Y = cute.zeros({256 * TILES}, cute.f32)
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SMulticastOp(), X, ROWS, TILE,
  2)
local k = cute.kernel("multicast", function(load, cX, y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local empty = arch.alloc_smem(cute.i64, 1)
  local ts, tg = cpasync.tma_partition(load, rank, cute.make_layout(2),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(full, 1)  --@full
    arch.mbarrier_init(empty, 4)  --@empty
    arch.mbarrier_init_fence()
  end)
  arch.cluster_arrive()  -- made
  arch.cluster_wait()  -- made
  cute.when(tid:eq(64), function()
    for t in cute.range(TILES) do
      arch.mbarrier_wait(empty, 1 - t % 2, {scope = "cluster"})  --@ask
      arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)  --@expect
      local how = {tma_bar_ptr = full, mcast_mask = 3}
      cute.copy(load, tg(_, t), ts, how)  --@copy
    end
  end)
  cute.when(tid:lt(64), function()
    for t in cute.range(TILES) do
      arch.mbarrier_wait(full, t % 2)  --@wait
      local v = s[{tid // 2, tid % 2 * 8 + rank}]  --@use
      arch.sync_warp()
      cute.when(arch.lane_idx():lt(2), function()
        arch.mbarrier_arrive(empty, arch.lane_idx(), nil,
          {scope = "cluster"})  --@release
      end)
      y[tid + 64 * rank + 128 * t] = v
    end
  end)
  arch.cluster_arrive()  -- done
  arch.cluster_wait()  -- done
end)
return function(seed)
  return k(load, cX, Y):launch {grid = 2, block = 96, cluster = 2,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Returns the changed text of a kernel and the numbers of its named lines.
local function text_of(kernel, changes)
  local text = HEAD .. blamed.KERNELS[kernel]
  for _, c in ipairs(changes) do
    text = support.change(text, c[1], c[3] or 1, c[2])
  end
  local at, n = {}, 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    local name = line:match "%-%-@(%w+)"
    if name then at[name] = n end
  end
  return text, at
end

--- Runs a changed kernel. Returns its first report and the numbers of the named
-- lines.
---@param changes table[] {{from, to, nth = 1}, ...}
---@return table report, table<string, integer> lines
function blamed.run(kernel, changes, seed)
  local text, at = text_of(kernel, changes)
  local f = assert(load(text, "=" .. kernel .. ".lua"))()
  return support.report(f(seed)), at
end

return blamed
-- SPDX-License-Identifier: MIT
