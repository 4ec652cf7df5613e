--- Changes one operand of a small correct kernel: a parity, a number of bytes,
-- a count, a mask, a rank, a stage, or a number of groups or threads. Checks
-- whether the repair search (cutelua.check.repair) proposes the right edit.
local blamed = require "spec.blamed"
local check = require "cutelua.check"
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local support = require "spec.support"
local repair = require "cutelua.check.repair"

local operands = {}

local HEAD = [[
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup
local function data(shape, type) return cute.randn(shape, type, {seed = 1}) end
]]

-- Kernels as texts, each of which ends in a launch. A comment `--@name` gives a
-- name to its line.
local KERNELS = {}
operands.KERNELS = KERNELS

-- The kernels of spec.blamed, with inputs whose elements all differ instead of
-- zeros.
for name, text in pairs(blamed.KERNELS) do
  text = text:gsub("local X = cute.zeros(%b())", "local X = data%1")
  text = text:gsub("local X, Y = cute.zeros(%b())", "local X, Y = data%1")
  KERNELS[name] = text
end

-- Streams tiles through a PipelineTmaAsync: one thread loads, four warps read.
KERNELS.tma = [[
local TILE, STAGES, TILES = {32, 16}, 3, 8
local ROWS = cute.make_layout(TILE, {16, 1})
local X = data({32, 16 * TILES}, cute.f32)
local Y = cute.zeros({128 * TILES}, cute.f32)
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), X, ROWS, TILE)
local k = cute.kernel("tma", function(load, cX, y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout({32, 16, STAGES}, {16, 1, 512}), 128)
  local ts, tg = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  local how = {num_stages = STAGES, tx_count = load.tx_bytes}  --@how
  how.producer_group = Group(Agent.Thread, 1)
  how.consumer_group = Group(Agent.Warp, 4)  --@readers
  local pipe = pipeline.PipelineTmaAsync(how)  --@pipe
  cute.when(tid:eq(128), function()
    local write = pipe:make_producer_state()  --@writes
    for t in cute.range(TILES) do  --@loads
      pipe:producer_acquire(write)  --@ask
      local bar = pipe:producer_get_barrier(write)
      local to = ts(_, write.index)  --@into
      cute.copy(load, tg(_, t), to, {tma_bar_ptr = bar})  --@copy
      write:advance()
    end
  end)
  cute.when(warp:lt(4), function()
    local read = pipe:make_consumer_state()  --@reads
    for t in cute.range(TILES) do  --@uses
      pipe:consumer_wait(read)  --@wait
      local row, at, i = tid % 32, 4 * warp, read.index  --@which
      local sum = s[{row, at, i}] + s[{row, at + 1, i}]  --@use
      arch.sync_warp()
      pipe:consumer_release(read)  --@release
      read:advance()
      y[tid + t * 128] = sum
    end
  end)
end)
return function(seed)
  return k(load, cX, Y):launch {grid = 1, block = 160,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Loads two matrices by one PipelineTmaAsync, whose phases count the bytes of
-- both.
KERNELS.two = [[
local TILE, HALF, STAGES, TILES = {32, 16}, {16, 16}, 2, 6
local A, B = cute.make_layout(TILE, {16, 1}), cute.make_layout(HALF, {16, 1})
local X = data({32, 16 * TILES}, cute.f32)
local W = data({16, 16 * TILES}, cute.f32)
local Y = cute.zeros({64 * TILES}, cute.f32)
local op = cpasync.CopyBulkTensorTileG2SOp()
local la, cX = cpasync.make_tiled_tma_atom(op, X, A, TILE)
local lb, cW = cpasync.make_tiled_tma_atom(op, W, B, HALF)
local k = cute.kernel("two", function(la, cX, lb, cW, y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local sa = cute.make_smem_tensor(cute.f32,
    cute.make_layout({32, 16, STAGES}, {16, 1, 512}), 128)
  local sb = cute.make_smem_tensor(cute.f32,
    cute.make_layout({16, 16, STAGES}, {16, 1, 256}), 128)
  local function part(l, s, c, tile)
    return cpasync.tma_partition(l, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.group_modes(
        cute.local_tile(c, tile, {0, _}), 0, 2))
  end
  local ta, ga = part(la, sa, cX, TILE)
  local tb, gb = part(lb, sb, cW, HALF)
  local bars = arch.alloc_smem(cute.i64, 2 * STAGES)
  cute.when(tid:eq(0), function()
    for i = 0, STAGES - 1 do
      arch.mbarrier_init(bars + i, 1)  --@full
      arch.mbarrier_init(bars + (STAGES + i), 64)  --@empty
    end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  cute.when(tid:eq(64), function()
    for t in cute.range(TILES) do
      local i, turn = t % STAGES, t // STAGES % 2  --@place
      arch.mbarrier_wait(bars + (i + STAGES), 1 - turn)  --@ask
      local bytes = la.tx_bytes + lb.tx_bytes  --@bytes
      arch.mbarrier_arrive_and_expect_tx(bars + i, bytes)  --@expect
      cute.copy(la, ga(_, t), ta(_, i), {tma_bar_ptr = bars + i})  --@first
      cute.copy(lb, gb(_, t), tb(_, i), {tma_bar_ptr = bars + i})  --@second
    end
  end)
  cute.when(tid:lt(64), function()
    for t in cute.range(TILES) do
      local i, turn = t % STAGES, t // STAGES % 2  --@where
      arch.mbarrier_wait(bars + i, turn)  --@wait
      local a, b = sa[{tid // 2, 0, i}], sb[{tid // 4, tid % 4, i}]  --@use
      arch.mbarrier_arrive(bars + (STAGES + i))  --@release
      y[tid + t * 64] = a + b
    end
  end)
end)
return function(seed)
  return k(la, cX, lb, cW, Y):launch {grid = 1, block = 96,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Streams values through a PipelineAsync: two warps fill it by stores, two
-- others read.
KERNELS.async = [[
local STAGES, ROUNDS = 2, 6
local X = data({64 * ROUNDS}, cute.f32)
local Y = cute.zeros({64 * ROUNDS}, cute.f32)
local k = cute.kernel("async", function(x, y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, STAGES})
  local from, to = Group(Agent.Thread, 64), Group(Agent.Thread, 64)  --@groups
  local how = {num_stages = STAGES, producer_group = from, consumer_group = to}
  local pipe = pipeline.PipelineAsync(how)  --@pipe
  cute.when(warp:lt(2), function()
    local write = pipe:make_producer_state()  --@writes
    for r in cute.range(ROUNDS) do  --@loads
      pipe:producer_acquire(write)  --@ask
      s[{tid, write.index}] = x[tid + 64 * r]  --@fill
      pipe:producer_commit(write)  --@commit
      write:advance()
    end
  end, function()
    local read = pipe:make_consumer_state()  --@reads
    for r in cute.range(ROUNDS) do  --@uses
      pipe:consumer_wait(read)  --@wait
      local v = s[{127 - tid, read.index}]  --@use
      pipe:consumer_release(read)  --@release
      read:advance()
      y[tid - 64 + 64 * r] = v
    end
  end)
end)
return function(seed)
  return k(X, Y):launch {grid = 1, block = 128,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Each block of a cluster of four sends to the next and reads what it receives.
KERNELS.circle = [[
local Y = cute.zeros({4 * 32}, cute.i32)
local k = cute.kernel("circle", function(y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32))
  local came = arch.alloc_smem(cute.i64, 1)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(came, 32)  --@init
    arch.mbarrier_init_fence()
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  local to = (rank + 1) % 4  --@to
  local there = arch.map_dsmem_ptr(s.iterator, to)  --@map
  local far = cute.make_tensor(there, s.layout)
  far[tid] = rank * 100 + tid  --@put
  arch.mbarrier_arrive(came, to, 1, {scope = "cluster"})  --@arrive
  arch.mbarrier_wait(came, 0, {scope = "cluster"})  --@wait
  y[rank * 32 + tid] = s[31 - tid]  --@use
end)
return function(seed)
  return k(Y):launch {grid = 4, block = 32, cluster = 4,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Each thread sends two values by st.async to the next of three blocks.
KERNELS.post = [[
local Y = cute.zeros({3 * 64}, cute.i32)
local k = cute.kernel("post", function(y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local mail = arch.alloc_smem(cute.i32, 64, 16)
  local came = arch.alloc_smem(cute.i64, 1)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(came, 1)  --@init
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(came, 256)  --@expect
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  local to = (rank + 1) % 3
  local a, b = rank * 100 + tid, rank * 100 - tid
  arch.store_async_dsmem(mail + 2 * tid, a, came, to)  --@send
  arch.store_async_dsmem(mail + (2 * tid + 1), b, came, to)  --@again
  arch.mbarrier_wait(came, 0)  --@wait
  local got = cute.make_tensor(mail, cute.make_layout(64))
  y[rank * 64 + tid] = got[63 - tid]  --@use
  y[rank * 64 + 32 + tid] = got[tid]
end)
return function(seed)
  return k(Y):launch {grid = 3, block = 32, cluster = 3,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Sends shared memory to the other block of a pair, by a bulk copy.
KERNELS.parcel = [[
local Y = cute.zeros({128}, cute.i32)
local k = cute.kernel("parcel", function(y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
  local r = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
  local came = arch.alloc_smem(cute.i64, 1)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(came, 1)  --@init
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(came, 256)  --@expect
  end)
  s[tid] = rank * 100 + tid
  arch.fence_proxy("async")
  arch.cluster_arrive()
  arch.cluster_wait()
  cute.when(tid:eq(0), function()
    local send = cute.make_copy_atom(cpasync.CopyBulkS2SOp(), cute.i32)
    local how = {mbar_ptr = came, cta_rank = 1 - rank}  --@how
    cute.copy(send, s, r, how)  --@copy
  end)
  arch.mbarrier_wait(came, 0)  --@wait
  y[rank * 64 + tid] = r[63 - tid]  --@use
  arch.cluster_arrive()
  arch.cluster_wait()
end)
return function(seed)
  return k(Y):launch {grid = 2, block = 64, cluster = 2,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Multicasts tiles in a cluster of 2 x 2: tiles of A along a row of blocks,
-- tiles of B along a column.
KERNELS.square = [[
local TILE = {16, 16}
local ROWS = cute.make_layout(TILE, {16, 1})
local X = data({32, 16}, cute.f32)
local W = data({32, 16}, cute.f32)
local Y = cute.zeros({4 * 32}, cute.f32)
local op = cpasync.CopyBulkTensorTileG2SMulticastOp()
local la, cX = cpasync.make_tiled_tma_atom(op, X, ROWS, TILE, 2)
local lb, cW = cpasync.make_tiled_tma_atom(op, W, ROWS, TILE, 2)
local k = cute.kernel("square", function(la, cX, lb, cW, y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local m, n = rank % 2, rank // 2
  local sa = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local sb = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local function part(l, s, c, who)
    return cpasync.tma_partition(l, who, cute.make_layout(2),
      cute.group_modes(s, 0, 2), cute.group_modes(
        cute.local_tile(c, TILE, {_, 0}), 0, 2))
  end
  local ta, ga = part(la, sa, cX, n)
  local tb, gb = part(lb, sb, cW, m)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(full, 1)  --@init
    arch.mbarrier_init_fence()
    local bytes = la.tx_bytes + lb.tx_bytes  --@bytes
    arch.mbarrier_arrive_and_expect_tx(full, bytes)  --@expect
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  local row, column = 5 << m, 3 << 2 * n
  cute.when(tid:eq(0), function()
    local how = {tma_bar_ptr = full, mcast_mask = row}  --@row
    cute.copy(la, ga(_, m), ta, how)  --@first
    how = {tma_bar_ptr = full, mcast_mask = column}  --@column
    cute.copy(lb, gb(_, n), tb, how)  --@second
  end)
  arch.mbarrier_wait(full, 0)  --@wait
  local at = {tid // 2, tid % 2}
  y[rank * 32 + tid] = sa[at] + sb[at]  --@use
  arch.cluster_arrive()
  arch.cluster_wait()
end)
return function(seed)
  return k(la, cX, lb, cW, Y):launch {grid = 4, block = 32, cluster = {4, 1, 1},
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Lets two groups of two warps use one buffer alternately, synchronized by
-- named barriers.
KERNELS.turns = [[
local ROUNDS = 4
local Y = cute.zeros({2 * 64 * ROUNDS}, cute.i32)
local k = cute.kernel("turns", function(y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
  local own = tid % 64
  local function work(group, r)
    s[own] = group * 1000 + 100 * r + own  --@fill
    arch.barrier(3 + group, 64)  --@meet
    y[group * 64 + own + 128 * r] = s[63 - own]  --@use
  end
  cute.when(warp:lt(2), function()
    for r in cute.range(ROUNDS) do
      cute.when(r:gt(0), function() arch.barrier(1, 128) end)  --@first
      work(0, r)
      arch.barrier_arrive(2, 128)  --@pass
    end
  end, function()
    for r in cute.range(ROUNDS) do
      arch.barrier(2, 128)  --@second
      work(1, r)
      cute.when(r:lt(ROUNDS - 1), function()
        arch.barrier_arrive(1, 128)  --@back
      end)
    end
  end)
end)
return function(seed)
  return k(Y):launch {grid = 1, block = 128,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Writes tiles by bulk stores from two alternating buffers.
KERNELS.stores = [[
local TILES = 5
local Y = cute.zeros({64 * TILES}, cute.i32)
local k = cute.kernel("stores", function(y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64, 2}, 128)
  local atom = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.i32)
  for t in cute.range(TILES) do
    cute.when(tid:eq(0), function()
      arch.cp_async_bulk_wait_group(1, true)  --@ask
    end)
    arch.sync_threads()
    s[{tid, t % 2}] = 100 * t + tid  --@fill
    arch.fence_view_async_shared()
    arch.sync_threads()
    cute.when(tid:eq(0), function()
      cute.copy(atom, s(_, t % 2), cute.local_tile(y, {64}, {t}))  --@store
      arch.cp_async_bulk_commit_group()  --@commit
    end)
  end
  cute.when(tid:eq(0), function()
    arch.cp_async_bulk_wait_group(0, true)  --@last
  end)
end)
return function(seed)
  return k(Y):launch {grid = 1, block = 64,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- Computes a wavefront through mbarriers: each warp waits for the preceding
-- warp.
KERNELS.wave = [[
local WARPS = 4
local Y = cute.zeros({32 * WARPS}, cute.i32)
local k = cute.kernel("wave", function(y)
  local warp, lane = arch.warp_idx(), arch.lane_idx()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32, WARPS})
  local done = arch.alloc_smem(cute.i64, WARPS)
  cute.when(arch.thread_idx():eq(0), function()
    for i = 0, WARPS - 1 do
      arch.mbarrier_init(done + i, 32)  --@init
    end
  end)
  arch.sync_threads()
  cute.when(warp:gt(0), function()
    arch.mbarrier_wait(done + (warp - 1), 0)  --@wait
    s[{lane, warp}] = s[{31 - lane, warp - 1}] + warp  --@step
  end, function()
    s[{lane, 0}] = lane
  end)
  arch.mbarrier_arrive(done + warp)  --@arrive
  y[lane + 32 * warp] = s[{lane, warp}]  --@use
end)
return function(seed)
  return k(Y):launch {grid = 1, block = 32 * WARPS,
    device = "sim:sm_90a", faults = "return", seed = seed, output = false}
end
]]

-- The list of faults; each has three lines. Line 1 has the class of the fault,
-- the kernel, the lines that the repair may name, and which occurrence of the
-- text to change. A line is given by its name or by a part of its text. Line 2
-- is the text to change, and line 3 its replacement.
local LIST = [[
parity box wait
  arch.mbarrier_wait(full, 0)
  arch.mbarrier_wait(full, 1)
parity ring wait
  (full + i, turn)
  (full + i, 1 - turn)
parity ring ask
  (empty + i, 1 - turn)
  (empty + i, turn)
parity ring wait
  (full + i, turn)
  (full + i, 0)
parity ring wait
  (full + i, turn)
  (full + i, t % 2)
parity ring ask
  (empty + i, 1 - turn)
  (empty + i, 1)
parity roles wait
  (full + i, turn)
  (full + i, r // 3 % 2)
parity roles ask
  (empty + i, 1 - turn)
  (empty + i, turn)
parity multicast wait
  (full, t % 2)
  (full, 1 - t % 2)
parity multicast ask
  (empty, 1 - t % 2
  (empty, t % 2
parity letters wait
  (came, 0)
  (came, 1)
parity circle wait
  (came, 0,
  (came, 1,
parity tma reads,uses,wait
  pipe:make_consumer_state()
  pipeline.PipelineState(STAGES, 0, 0, 1)
parity tma writes,loads,ask
  pipe:make_producer_state()
  pipeline.PipelineState(STAGES, 0, 0, 0)
parity async reads,uses,wait
  pipe:make_consumer_state()
  pipeline.PipelineState(STAGES, 0, 0, 1)
parity async writes,loads,ask
  pipe:make_producer_state()
  pipeline.PipelineState(STAGES, 0, 0, 0)
parity two ask
  (bars + (i + STAGES), 1 - turn)
  (bars + (i + STAGES), 0)
parity two where,wait 2
  i, turn = t % STAGES, t // STAGES % 2
  i, turn = t % STAGES, t % 2
bytes box expect
  (full, load.tx_bytes)
  (full, load.tx_bytes // 2)
bytes ring expect
  (full + i, load.tx_bytes)
  (full + i, load.tx_bytes + 128)
bytes ring expect
  (full + i, load.tx_bytes)
  (full + i, 512)
bytes two expect,bytes
  la.tx_bytes + lb.tx_bytes
  la.tx_bytes
bytes two expect,bytes
  la.tx_bytes + lb.tx_bytes
  2 * la.tx_bytes
bytes tma pipe,how,ask
  tx_count = load.tx_bytes
  tx_count = load.tx_bytes * 2
bytes multicast expect
  (full, load.tx_bytes)
  (full, load.tx_bytes // 2)
bytes letters expect
  (came, 256)
  (came, 64)
bytes post expect
  (came, 256)
  (came, 128)
bytes parcel expect
  (came, 256)
  (came, 64)
bytes square expect,bytes
  la.tx_bytes + lb.tx_bytes
  la.tx_bytes
bytes ring expect
  (full + i, load.tx_bytes)
  (full + i, cute.where(t:eq(0), 1024, load.tx_bytes))
count ring empty
  (empty + i, 4)
  (empty + i, 128)
count ring empty
  (empty + i, 4)
  (empty + i, 3)
count ring full
  (full + i, 1)
  (full + i, 2)
count roles full
  (full + i, 32)
  (full + i, 1)
count roles empty
  (empty + i, 32)
  (empty + i, 33)
count two empty
  (bars + (STAGES + i), 64)
  (bars + (STAGES + i), 2)
count two full
  (bars + i, 1)
  (bars + i, 3)
count multicast empty
  (empty, 4)
  (empty, 2)
count tma pipe,readers
  Group(Agent.Warp, 4)
  Group(Agent.Warp, 5)
count async pipe,groups
  Group(Agent.Thread, 64), Group
  Group(Agent.Thread, 128), Group
count arrivals PipelineAsync
  producer_group = Group(Agent.Thread, 32)
  producer_group = Group(Agent.Thread, 1)
count circle init
  (came, 32)
  (came, 1)
count post init
  (came, 1)
  (came, 32)
count wave init
  (done + i, 32)
  (done + i, 31)
mask multicast copy
  mcast_mask = 3
  mcast_mask = 1
mask multicast copy
  mcast_mask = 3
  mcast_mask = 2
mask multicast copy
  mcast_mask = 3
  mcast_mask = 7
mask square first,row
  mcast_mask = row
  mcast_mask = column
mask square second,column
  mcast_mask = column
  mcast_mask = row
mask square first,row
  mcast_mask = row
  mcast_mask = 5
mask square second,column
  mcast_mask = column
  mcast_mask = 1 << 2 * n
silent circle to
  (rank + 1) % 4
  (rank + 2) % 4
rank letters send
  came, 1 - rank)
  came, 0)
rank circle arrive
  (came, to, 1
  (came, rank, 1
rank circle map,put
  (s.iterator, to)
  (s.iterator, rank)
rank circle arrive
  (came, to, 1
  (came, 0, 1
rank circle map,put
  (s.iterator, to)
  (s.iterator, (rank + 3) % 4)
silent post send
  came, to)
  came, rank)
silent post again 2
  came, to)
  came, (rank + 2) % 3)
rank parcel copy,how
  cta_rank = 1 - rank
  cta_rank = 0
rank multicast arch.mbarrier_arrive(empty
  (empty, arch.lane_idx(), nil
  (empty, rank, nil
stage ring wait
  (full + i, turn)
  (full + (i + 1) % STAGES, turn)
stage ring release
  arch.mbarrier_arrive(empty + i)
  arch.mbarrier_arrive(empty + (i + 1) % STAGES)
stage ring copy
  ts(_, i), {tma_bar_ptr = full + i}
  ts(_, (i + 1) % STAGES), {tma_bar_ptr = full + i}
stage ring copy
  ts(_, i), {tma_bar_ptr = full + i}
  ts(_, i), {tma_bar_ptr = full}
stage ring expect
  (full + i, load.tx_bytes)
  (full, load.tx_bytes)
stage ring ask
  (empty + i, 1 - turn)
  (empty + (i + 1) % STAGES, 1 - turn)
stage roles use
  s[{31 - lane, i}]
  s[{31 - lane, 1 - i}]
stage roles fill
  s[{lane, i}]
  s[{lane, 0}]
stage two second
  tb(_, i), {tma_bar_ptr = bars + i}
  tb(_, i), {tma_bar_ptr = bars + (STAGES + i)}
stage two release
  arch.mbarrier_arrive(bars + (STAGES + i))
  arch.mbarrier_arrive(bars + i)
stage two where,wait,use,release 2
  i, turn = t % STAGES, t // STAGES % 2
  i, turn = t % 3 % 2, t // STAGES % 2
stage groups copy
  ts(_, _, t % STAGES)
  ts(_, _, (t + 1) % STAGES)
stage groups use
  s[{127 - tid, t % STAGES}]
  s[{127 - tid, (t + 1) % STAGES}]
stage tma use,which
  at, i = tid % 32, 4 * warp, read.index
  at, i = tid % 32, 4 * warp, (read.index + 1) % STAGES
stage wave wait
  (done + (warp - 1), 0)
  (done + (warp % 4), 0)
stage wave arrive
  mbarrier_arrive(done + warp)
  mbarrier_arrive(done)
groups groups wait
  cp_async_wait_group(STAGES - 2)
  cp_async_wait_group(STAGES - 1)
groups groups wait
  cp_async_wait_group(STAGES - 2)
  cp_async_wait_group(STAGES)
groups stores ask
  cp_async_bulk_wait_group(1, true)
  cp_async_bulk_wait_group(2, true)
groups stores last
  cp_async_bulk_wait_group(0, true)
  cp_async_bulk_wait_group(1, true)
groups box cp_async_bulk_wait_group
  cp_async_bulk_wait_group(0, true)
  cp_async_bulk_wait_group(1, true)
threads named wait
  arch.barrier(2, 128)
  arch.barrier(2, 64)
threads named filled
  arch.barrier_arrive(2, 128)
  arch.barrier_arrive(2, 96)
threads named release
  arch.barrier_arrive(1, 128)
  arch.barrier_arrive(1, 64)
threads named ask
  arch.barrier(1, 128)
  arch.barrier(1, 160)
threads turns meet
  arch.barrier(3 + group, 64)
  arch.barrier(3 + group, 128)
threads turns meet
  arch.barrier(3 + group, 64)
  arch.barrier(3 + group, 32)
threads turns second
  arch.barrier(2, 128)
  arch.barrier(2, 96)
threads turns back
  arch.barrier_arrive(1, 128)
  arch.barrier_arrive(2, 128)
]]

--- The faults of LIST: {class =, kernel =, lines =, nth =, from =, to =}.
operands.FAULTS = {}
for head, from, to in LIST:gmatch "(%S[^\n]*)\n  ([^\n]*)\n  ([^\n]*)\n" do
  local class, name, lines, nth = head:match "^(%S+) (%S+) (%S+) ?(%d*)$"
  table.insert(operands.FAULTS, {class = class, kernel = name, lines = lines,
    nth = tonumber(nth) or 1, from = from, to = to})
end

-- Returns the correct text of a fault's kernel, and the numbers of its lines.
local function text_of(f)
  local text, lines = HEAD .. KERNELS[f.kernel], {}
  for what in f.lines:gmatch "[^,]+" do
    local at = text:find("%-%-@" .. what .. "%f[%W]")
      or assert(text:find(what, 1, true), what)
    lines[select(2, text:sub(1, at):gsub("\n", "")) + 1] = true
  end
  return text, lines
end

local function compiled(name, text)
  text = text:gsub(":launch {(.-),%s*device.-}",
                   ':compile {%1, device = "sim:sm_90a"}')
  local p = assert(load(text, "=" .. name .. ".lua"))()()
  return p.program, kernel.sim_launch(p, {}, p.values, p.grid)
end

-- Returns the buffers that a launch writes.
local function outputs(program, launch)
  local list = {}
  for i, a in ipairs(program.info.args) do
    if a.written then list[#list + 1] = launch.args[i][1] end
  end
  return list
end

-- Returns the outputs of a correct launch, as the reference for launch `other`.
local function reference_of(program, launch, other)
  local own, kept = outputs(program, launch), {}
  core.sim_run(program.fn, launch)
  for k, b in ipairs(own) do
    kept[k] = {}
    for i = 0, #b - 1 do kept[k][i] = b[i] end
  end
  return function()
    for k, b in ipairs(outputs(table.unpack(other))) do
      for i = 0, #b - 1 do b[i] = kept[k][i] end
    end
  end
end

--- Runs the repair search on a fault. Returns a table of results. verdict: the
-- verdict of the check; mend: the repair; told: the repair's message; first:
-- whether the first line that the repair names is a line of the fault; any:
-- whether any line that it names is; right: whether the repaired kernel has
-- the correct results. With `refer`, the search gets the correct results as a
-- reference.
---@param f table of FAULTS
---@param refer? boolean
function operands.try(f, refer)
  local text, lines = text_of(f)
  local sound = {compiled(f.kernel, text)}
  local want = check.runner(table.unpack(sound)) {}
  assert(not want.reports[1], want.reports[1] and want.reports[1].message)
  local wrong = {compiled(f.kernel, support.change(text, f.from, f.nth, f.to))}
  local program, launch = table.unpack(wrong)
  local reference = refer and reference_of(sound[1], sound[2], wrong)
  local v = check.launch(program, launch, {surgeon = true, gpu = false,
    seconds = 20, reference = reference}, {n = 0})
  local out = {verdict = v, mend = v.mend}
  if not v.mend then return out end
  out.told = repair.advice(v.mend)
  out.first, out.any = lines[v.mend.places[1].line], false
  for _, p in ipairs(v.mend.places) do out.any = out.any or lines[p.line] end
  if v.mend.edits then
    local run = repair.edited(check.runner(program, launch), v.mend.edits)
    local found = run {}
    out.right = not found.reports[1] and found.memory == want.memory
  end
  return out
end

return operands
-- SPDX-License-Identifier: MIT
