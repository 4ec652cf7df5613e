-- Tests copies that gather and scatter rows by TMA (tile::gather4 and scatter4)
-- on the simulator. The expected rows are computed on the host. NVRTC must
-- compile the kernels, and their PTX must give the same results.
local assert = require "luassert"
local cute = require "cute"
local roundtrip = require "spec.ptx.roundtrip"
local support = require "spec.support"
local arch, cpasync, tcgen05, _ = cute.arch, cute.nvgpu.cpasync,
  cute.nvgpu.tcgen05, cute._

-- Returns the layout of a tile in shared memory.
local function tile_layout(o)
  if not o.swizzle then return cute.make_layout({o.m, o.k}, {o.k, 1}) end
  return cute.tile_to_shape(tcgen05.make_smem_layout_atom(
    "K_" .. o.swizzle, o.type), {o.m, o.k}, {0, 1})
end

-- Returns `n` row numbers, some of them outside of a matrix of `all` rows.
local function rows_of(n, all)
  local list = cute.zeros({n}, cute.i32)
  for i = 0, n - 1 do list[i] = (i * 37 + 11) % (all + 6) - 3 end
  return list
end

local function filled(shape, dtype)
  local t = cute.zeros(shape, dtype)
  for i = 0, cute.size(t) - 1 do t[i] = i % 61 + 1 end
  return t
end

-- Returns row numbers as a tensor with a mode 1 that repeats them `n` times.
local function spread(rows, n)
  return cute.make_tensor(rows.iterator,
    cute.make_layout({cute.size(rows), n}, {1, 0}))
end

-- Returns the coordinates of the block's tile.
local function place()
  local x, y = arch.block_idx()
  return {x, y}
end

-- Gathers rows of A to C by tiles of {o.m, o.k}. bytes: the bytes that the
-- mbarrier expects for a tile, by default those of the atom.
local function gather(o, A, rows, C, bytes)
  local layout, n = tile_layout(o), cute.size(A, 1)
  local atom, coords = cpasync.make_tiled_tma_atom(
    (o.op or cpasync.CopyBulkTensor2DGather4G2SOp)(o.group), A, layout,
    {o.m, o.k}, 1, {gmem_coord_tensor = spread(rows, n)})
  return cute.kernel("gather", function(map, coord, list, out)
    local s = cute.make_smem_tensor(o.type, layout, 1024)
    local bar = arch.alloc_smem(cute.i64, 1)
    local tid, at = arch.thread_idx(), place()
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
    arch.cluster_arrive()
    arch.cluster_wait()
    local own = cute.make_tensor(list.iterator,
      cute.make_layout({cute.size(rows), n}, {1, 0}))
    local from = {at[1] // (o.ctas or 1), at[2]}
    local gA = cute.local_tile(coord, {o.m, o.k}, from)
    local gI = cute.local_tile(own, {o.m, o.k}, from)
    local tAsA, tAgA, tAgI = cpasync.tma_partition(map, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2),
      {cute.group_modes(gA, 0, 2), cute.group_modes(gI, 0, 2)})
    local first = o.ctas and arch.block_idx_in_cluster():eq(0) or true
    cute.when(tid:eq(0), function()
      if not o.group or o.group == 1 then
        arch.mbarrier_arrive_and_expect_tx(bar, bytes or map.tx_bytes)
      else
        cute.when(first, function()
          arch.mbarrier_arrive_and_expect_tx(bar, 2 * map.tx_bytes)
        end)
      end
      local opts = {tma_bar_ptr = bar, mcast_mask = o.mask}
      local function go() cute.copy(map, {tAgA, tAgI}, tAsA, opts) end
      if o.mask then cute.when(first, go) else go() end
    end)
    if o.group == 2 then
      cute.when(first, function() arch.mbarrier_wait(bar, 0) end)
      arch.cluster_arrive()
      arch.cluster_wait()
    else
      arch.mbarrier_wait(bar, 0)
    end
    local gC = cute.local_tile(out, {o.m, o.k}, at)
    for i = 0, o.m * o.k - 1, 128 do
      local at2 = {(tid + i) // o.k, (tid + i) % o.k}
      gC[at2] = s[at2]
    end
    arch.cluster_arrive()
    arch.cluster_wait()
  end)(atom, coords, rows, C)
end

-- Scatters rows of A to rows of C.
local function scatter(o, A, rows, C)
  local layout, n = tile_layout(o), cute.size(C, 1)
  local atom, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensor2DScatter4S2GOp(), C, layout, {o.m, o.k}, 1,
    {gmem_coord_tensor = spread(rows, n)})
  return cute.kernel("scatter", function(map, coord, list, from)
    local s = cute.make_smem_tensor(o.type, layout, 1024)
    local tid, at = arch.thread_idx(), place()
    local gA = cute.local_tile(from, {o.m, o.k}, at)
    for i = 0, o.m * o.k - 1, 128 do
      local at2 = {(tid + i) // o.k, (tid + i) % o.k}
      s[at2] = gA[at2]
    end
    arch.fence_view_async_shared()
    arch.sync_threads()
    local own = cute.make_tensor(list.iterator,
      cute.make_layout({cute.size(rows), n}, {1, 0}))
    local gC = cute.local_tile(coord, {o.m, o.k}, at)
    local gI = cute.local_tile(own, {o.m, o.k}, at)
    local tCsC, tCgC, tCgI = cpasync.tma_partition(map, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2),
      {cute.group_modes(gC, 0, 2), cute.group_modes(gI, 0, 2)})
    cute.when(tid:eq(0), function()
      cute.copy(map, tCsC, {tCgC, tCgI})
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0)
    end)
  end)(atom, coords, rows, A)
end

local CASES = {
  {swizzle = "SW128", type = cute.f16, m = 32, k = 64},
  {swizzle = "SW64", type = cute.f32, m = 16, k = 16},
  {swizzle = "SW32", type = cute.e4m3, m = 16, k = 32},
  {type = cute.bf16, m = 16, k = 32},
  {swizzle = "SW128", type = cute.i8, m = 8, k = 256},
}

local function name_of(o)
  return ("%s, %s, tiles of (%d,%d)"):format(o.type, o.swizzle or "no swizzle",
    o.m, o.k)
end

-- Compares C with rows of A. C(i,j) must be element (rows[i],j) of A.
local function check_gathered(A, rows, C)
  for i = 0, cute.size(C, 0) - 1 do
    local r = rows[i]
    local inside = r >= 0 and r < cute.size(A, 0)
    for j = 0, cute.size(C, 1) - 1 do
      local want = inside and j < cute.size(A, 1) and A(r, j) or 0
      if want ~= C(i, j) then assert.equal(want, C(i, j), i .. "," .. j) end
    end
  end
end

local TARGETS = {"sm_100", "sm_103a", "sm_110f", "sm_120", "sm_121a"}

local function compile(call, targets, cluster)
  for _, target in ipairs(cute.jit.version() and targets or {}) do
    local program = call:compile {arch = target, grid = 2, block = 128,
                                  cluster = cluster}
    assert(cute.jit.compile(program.source, {arch = target}))
  end
end

local function launch(call, grid, cluster)
  local report = support.report(call:launch {
    grid = grid, cluster = cluster, block = 128, device = "sim:sm_100a"})
  assert.same({}, report:notes())
end

describe("gather4", function()
  for i, o in ipairs(CASES) do
    it("loads rows: " .. name_of(o) .. support.long(i, 2), function()
      local A = filled({45, 2 * o.k - 16 * 8 // o.type.bits}, o.type)
      local rows = rows_of(2 * o.m, 45)
      local C = cute.zeros({2 * o.m, 2 * o.k}, o.type)
      local call = gather(o, A, rows, C)
      launch(call, {2, 2})
      check_gathered(A, rows, C)
      compile(call, TARGETS)
    end)
  end

  for _, group in ipairs {1, 2} do
    it("loads rows for two blocks, cta_group " .. group, function()
      local o = {swizzle = "SW128", type = cute.f16, m = 16, k = 64, ctas = 2,
                 mask = 3, group = group,
                 op = cpasync.CopyBulkTensor2DGather4G2SMulticastOp}
      local A, rows = filled({45, 64}, cute.f16), rows_of(16, 45)
      local C = cute.zeros({32, 64}, cute.f16)
      local call = gather(o, A, rows, C)
      launch(call, 2, 2)
      for b = 0, 1 do
        check_gathered(A, rows, cute.local_tile(C, {16, 64}, {b, 0}))
      end
      compile(call, {"sm_100a", "sm_103f", "sm_110a"}, 2)
    end)
  end
end)

describe("scatter4", function()
  for i, o in ipairs(CASES) do
    it("stores rows: " .. name_of(o) .. support.long(i, 2), function()
      local n = 2 * o.k - 16 * 8 // o.type.bits
      local A = filled({2 * o.m, 2 * o.k}, o.type)
      local rows = cute.zeros({2 * o.m}, cute.i32)
      for k = 0, 2 * o.m - 1 do rows[k] = k * 7 % (2 * o.m + 1) * 2 - 4 end
      local C = cute.zeros({3 * o.m, n}, o.type)
      local call = scatter(o, A, rows, C)
      launch(call, {2, 2})
      local want = cute.zeros({3 * o.m, n}, o.type)
      for k = 0, 2 * o.m - 1 do
        for j = 0, n - 1 do
          if rows[k] >= 0 and rows[k] < 3 * o.m then
            want[{rows[k], j}] = A(k, j)
          end
        end
      end
      for k = 0, cute.size(C) - 1 do
        if want[k] ~= C[k] then assert.equal(want[k], C[k], k) end
      end
      compile(call, {"sm_100a", "sm_103f", "sm_110a"})
    end)
  end
end)

describe("a copy of rows", function()
  local o = CASES[1]
  local A, rows = filled({45, 64}, cute.f16), rows_of(32, 45)
  local C = cute.zeros({32, 64}, cute.f16)

  it("gives equal results through PTX", function()
    if not cute.jit.version() then return pending "needs NVRTC" end
    local n = 0
    roundtrip.during(function()
      launch(gather(o, A, rows, C), 1)
      launch(scatter(o, C, rows_of(32, 900), cute.zeros({45, 64}, cute.f16)), 1)
    end, function(pair)
      n = n + 1
      assert.is_true(pair.equal, pair.kernel)
      assert.equal(pair.faults[1], pair.faults[2])
    end)
    assert.equal(2, n)
  end)

  it("is rejected for a target that lacks it", function()
    local call = gather(o, A, rows, C)
    support.raises({"gathers rows", "needs sm_100 or newer", "for each row"},
      call.compile, call, {arch = "sm_90a", grid = 1, block = 128})
    call = scatter(o, C, rows, A)
    support.raises({"scatters rows", "needs sm_100a or its own family"},
      call.compile, call, {arch = "sm_120a", grid = 1, block = 128})
    support.raises({"scatters rows", "it needs sm_100a or sm_100f"},
      call.compile, call, {arch = "sm_100", grid = 1, block = 128})
  end)

  local function fault_of(call)
    local ok, why = pcall(call.launch, call,
      {grid = 1, block = 128, device = "sim:sm_100a"})
    assert.is_false(ok)
    return tostring(why)
  end

  it("that expects too few bytes is reported", function()
    assert.matches("4032 bytes arrived that no expect_tx announced",
                   fault_of(gather(o, A, rows, C, 64)))
  end)

  it("that stores two rows to the same row is reported", function()
    assert.matches("write after a write by a bulk copy",
                   fault_of(scatter(o, C, cute.zeros({32}, cute.i32), A)))
  end)

  it("needs rows that fit the matrix and the tile", function()
    local gather4 = cpasync.CopyBulkTensor2DGather4G2SOp()
    local layout = tile_layout(o)
    local function raises(text, ...)
      support.raises(text, cpasync.make_tiled_tma_atom, ...)
    end
    raises("gmem_coord_tensor, the tensor of i32", gather4, A, layout, {32, 64})
    raises("such as (m,n):(1,0)", gather4, A, layout, {32, 64}, 1,
           {gmem_coord_tensor = rows})
    raises("stride 0 along mode 0", gather4, A, layout, {32, 64}, 1,
           {gmem_coord_tensor = cute.make_tensor(rows.iterator,
             cute.make_layout({32, 64}, {0, 1}))})
    raises("for rows, 1 is needed: one CTA loads them for all CTAs",
           cpasync.CopyBulkTensor2DGather4G2SMulticastOp(), A, layout,
           {32, 64}, 2, {gmem_coord_tensor = spread(rows, 64)})
    raises("only CopyBulkTensor2DGather4G2SOp",
           cpasync.CopyBulkTensorTileG2SOp(), A, layout, {32, 64}, 1,
           {gmem_coord_tensor = spread(rows, 64)})
    raises("each row must be contiguous", gather4, A,
           cute.make_layout({32, 64}, {1, 32}), {32, 64}, 1,
           {gmem_coord_tensor = spread(rows, 64)})
    raises("a multiple of 4 rows of at most 256 elements is needed", gather4,
           A, cute.make_layout({2, 64}, {64, 1}), {2, 64}, 1,
           {gmem_coord_tensor = spread(rows, 64)})
  end)

  it("takes the coordinates and the rows in a list", function()
    local atom, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensor2DGather4G2SOp(), A, tile_layout(o), {32, 64}, 1,
      {gmem_coord_tensor = spread(rows, 64)})
    local function try(make)
      return cute.kernel("k", function(map, coord, list)
        local s = cute.make_smem_tensor(cute.f16, tile_layout(o), 1024)
        local own = cute.make_tensor(list.iterator,
          cute.make_layout({32, 64}, {1, 0}))
        local ts, tg, ti = cpasync.tma_partition(map, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), {cute.group_modes(coord, 0, 2),
                                      cute.group_modes(own, 0, 2)})
        cute.copy(map, make(tg, ti), ts,
                  {tma_bar_ptr = arch.alloc_smem(cute.i64, 1)})
      end)(atom, coords, rows)
    end
    local function raises(text, make)
      local call = try(make)
      support.raises(text, call.trace, call, {block = 32})
    end
    raises("pass {coordinates, rows}", function(tg) return tg end)
    raises("tensor of rows has 8 values", function(tg, ti)
      return {tg, cute.make_tensor(ti.iterator, cute.make_layout {8})}
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
