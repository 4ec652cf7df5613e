-- Tests cute.utils.hopper_helpers and the epilogue helpers of cute.utils. Their
-- names and layouts must be those of tables in this file. A product that uses
-- all of them must equal the exact result.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local raises = require "spec.support".raises
local utils = cute.utils
local hopper, cpasync = utils.hopper_helpers, cute.nvgpu.cpasync
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._

describe("hopper_helpers", function()
  it("are cute.utils' own, too", function()
    for _, name in ipairs {"get_smem_layout_atom", "get_smem_store_op",
                           "make_smem_layout_a", "make_smem_layout_b",
                           "make_smem_layout_epi", "make_trivial_tiled_mma"} do
      assert.equal(hopper[name], utils["sm90_" .. name])
    end
    assert.equal(warpgroup.make_smem_layout_atom, hopper.make_smem_layout_atom)
  end)

  it("choose the widest swizzle that the contiguous extent fills", function()
    for size, kind in pairs {[64] = "K_SW128", [192] = "K_SW128",
                             [32] = "K_SW64", [16] = "K_SW32", [8] = "K_INTER",
                             [24] = "K_INTER", [96] = "K_SW64"} do
      assert.equal(kind, hopper.get_smem_layout_atom("row", cute.bf16, size))
    end
    assert.equal("MN_SW128", hopper.get_smem_layout_atom("col", "e4m3", 128))
    assert.equal("MN_SW64", hopper.get_smem_layout_atom("col", cute.f32, 16))
    raises("extent of 64 bits is not a multiple of 128",
           hopper.get_smem_layout_atom, "row", cute.bf16, 4)
    raises("extent of 0 bits", hopper.get_smem_layout_atom, "row", cute.bf16, 0)
    raises("no layout 'K' (row or col)", hopper.get_smem_layout_atom, "K",
           cute.bf16, 64)
  end)

  it("make the layouts that a table has", function()
    local tile = {128, 96, 64}
    for want, layout in pairs {
      ["Sw<3,3,3> o 0 o ((8,16),(64,1),(1,3)):((64,512),(1,0),(0,8192))"] =
        hopper.make_smem_layout_a("row", tile, cute.bf16, 3),
      ["Sw<3,3,3> o 0 o ((64,2),(8,8),(1,2)):((1,4096),(64,512),(0,8192))"] =
        hopper.make_smem_layout_a("col", tile, cute.bf16, 2),
      ["Sw<3,3,3> o 0 o ((8,12),(64,1),(1,2)):((64,512),(1,0),(0,6144))"] =
        hopper.make_smem_layout_b("row", tile, cute.bf16, 2),
      ["Sw<2,3,3> o 0 o ((32,3),(8,8),(1,2)):((1,2048),(32,256),(0,6144))"] =
        hopper.make_smem_layout_b("col", tile, cute.bf16, 2),
      ["Sw<2,3,3> o 0 o ((8,8),(32,1),(1,4)):((32,256),(1,0),(0,2048))"] =
        hopper.make_smem_layout_epi(cute.bf16, "row", {64, 32}, 4),
      ["Sw<3,2,3> o 0 o ((32,2),(8,2),(1,2)):((1,512),(32,256),(0,1024))"] =
        hopper.make_smem_layout_epi("f32", "col", {64, 16}, 2, nil, {1, 0, 2}),
      ["Sw<3,3,3> o 0 o ((8,8),(64,1),(1,2)):((64,1024),(1,0),(0,512))"] =
        hopper.make_smem_layout_epi(cute.bf16, "row", {64, 32}, 4, {64, 64, 2},
                                    {2, 0, 1})} do
      local covered, n = {}, core.size(layout)
      for i = 0, n - 1 do covered[layout(i)] = true end
      for i = 0, n - 1 do assert.is_true(covered[i], want) end
      assert.equal(want:match "Sw<%d,%d,%d>", tostring(
        core.get_swizzle_portion(layout)))
      local got = core.get_nonswizzle_portion(layout)
      local plain = cute.layout(want:match "o 0 o (.*)$")
      assert.equal(core.size(plain), core.size(got))
      for i = 0, n - 1 do assert.equal(plain(i), got(i), want) end
    end
    raises("mma_tiler_mnk = {128}; 3 extents of 1 or more are needed",
           hopper.make_smem_layout_a, "row", {128}, cute.bf16, 3)
    raises("0 stages", hopper.make_smem_layout_b, "row", tile, cute.bf16, 0)
  end)

  it("make multiply-adds of all types", function()
    local function name(...) return hopper.make_trivial_tiled_mma(...).name end
    local one = {1, 1, 1}
    assert.equal("SM90_64x96x16_F32BF16BF16_SS<MN,K>", name(cute.bf16,
      cute.bf16, "MN", "K", cute.f32, one, {64, 96}))
    assert.equal("SM90_64x256x16_F16F16F16_RS<K,MN>", name(cute.f16, cute.f16,
      "K", "MN", cute.f16, one, {64, 256}, "RMEM"))
    assert.equal("SM90_64x64x32_F32E5M2E4M3_SS_TN", name(cute.e5m2, cute.e4m3,
      "K", "K", cute.f32, one, {64, 64}))
    assert.equal("SM90_64x64x32_S32S8U8_SS_TN", name(cute.i8, cute.u8, "K",
      "K", cute.i32, one, {64, 64}))
    assert.equal("SM90_64x64x8_F32TF32TF32_SS_TN", name(cute.f32, cute.f32,
      "K", "K", cute.f32, one, {64, 64}))
    assert.equal(256, hopper.make_trivial_tiled_mma(cute.bf16, cute.bf16, "K",
      "K", cute.f32, {2, 1, 1}, {128, 64}):size())
    raises("16-bit operands need the same type", name, cute.bf16, cute.f16, "K",
           "K", cute.f32, one, {64, 64})
    raises("tf32 needs two K-major operands", name, cute.f32, cute.f32, "MN",
           "K", cute.f32, one, {64, 64})
    raises("it may be e4m3, e5m2", name, cute.f64, cute.f64, "K", "K",
           cute.f64, one, {64, 64})
    raises("no instruction of shape {64, 300, 16}", name, cute.bf16, cute.bf16,
           "K", "K", cute.f32, one, {64, 300})
  end)
end)

describe("TMA loads for a GEMM", function()
  it("multicast if a cluster shares an operand", function()
    for _, case in ipairs {{{1, 1, 1}, false, false}, {{2, 1, 1}, false, true},
                           {{1, 2, 1}, true, false}, {{2, 4, 1}, true, true}} do
      local a = utils.cluster_shape_to_tma_atom_A(case[1], cute.make_layout(1))
      local b = utils.cluster_shape_to_tma_atom_B(case[1])
      assert.equal(case[2], a.multicast or false)
      assert.equal(case[3], b.multicast or false)
    end
    assert.equal("CopyBulkTensorTileG2SOp", utils.get_tma_atom_kind(false,
      true, false).name)
    raises("not divisible into MMAs of 2", utils.cluster_shape_to_tma_atom_B,
           {3, 1, 1}, cute.make_layout(2))
    raises("a cluster's N must be an integer of 1 or more, not nil",
           utils.cluster_shape_to_tma_atom_A, {2})
  end)

  it("are checked beforehand", function()
    local valid = utils.is_valid_mma_tiler_and_cluster_shape
    assert.is_true(valid({64, 256, 64}, {1, 1}))
    assert.is_true(valid({128, 8, 64}, {3, 1}, false))
    assert.is_true(valid({256, 8, 64}, {2, 1}, true))
    assert.is_false(valid({256, 8, 64}, {2, 1}))
    assert.is_false(valid({64, 8, 64}, {2, 1}, true))
    assert.is_false(valid({128, 8, 64}, {3, 1}, true))
    assert.is_false(valid({96, 8, 64}, {1, 1}))
    local function fits(m, n, k, majors, c)
      return utils.is_valid_tensor_alignment {m = m, n = n, k = k,
        a_dtype = cute.bf16, b_dtype = cute.e4m3, c_dtype = c or cute.f32,
        a_major = majors:sub(1, 1), b_major = majors:sub(2, 2),
        c_major = majors:sub(3, 3)}
    end
    assert.is_true(fits(5, 4, 16, "kkn"))
    -- A row of B has 24 bytes; TMA needs a multiple of 16.
    assert.is_false(fits(5, 4, 24, "kkn"))
    assert.is_false(fits(5, 6, 16, "kkn"))
    assert.is_true(fits(8, 16, 5, "mnn"))
    assert.is_false(fits(4, 16, 5, "mnn"))
    assert.is_false(fits(8, 24, 5, "mnn"))
    assert.is_true(fits(8, 16, 5, "mnm", cute.bf16))
    raises("must be 'm' or 'k', not \"n\"", utils.is_valid_tensor_alignment,
           {a_dtype = cute.f32, a_major = "n"})
    raises("must be a type, not nil", utils.is_valid_tensor_alignment, {})
  end)
end)

local function a_of(i, j) return (i * 3 + j * 5) % 7 - 3 end
local function b_of(i, j) return (i * 5 + j * 2) % 5 - 2 end

local sums = {}  -- cache of exact dot products of row i of A and row j of B

local function sum_of(i, j)
  local at = i << 16 | j
  if not sums[at] then
    sums[at] = 0
    for e = 0, 63 do sums[at] = sums[at] + a_of(i, e) * b_of(j, e) end
  end
  return sums[at]
end

-- Computes a tile of D = A B^T with the helpers' layouts. o.groups is 1 or 2
-- warpgroups, for 64 or 128 rows. o.by is "tma" if TMA stores D, or "threads"
-- if threads copy it from shared memory.
local function multiply(o)
  local dtype, n, tile = o.d_dtype, o.n, {64 * o.groups, o.n, 64}
  local mma = utils.sm90_make_trivial_tiled_mma(cute.bf16, cute.bf16, "K",
    o.b_layout == "row" and "K" or "MN", cute.f32, {o.groups, 1, 1}, tile)
  local layout_a = utils.sm90_make_smem_layout_a("row", tile, cute.bf16, 1)
  local layout_b = utils.sm90_make_smem_layout_b(o.b_layout, tile, cute.bf16, 1)
  local epi = {64 * o.groups, n}
  local layout_d = utils.sm90_make_smem_layout_epi(dtype, o.d_layout, epi, 1)
  local threads = 128 * o.groups
  local function matrix(rows, columns, t, layout, f)
    local x = cute.zeros(layout == "col" and {columns, rows} or {rows, columns},
                         t)
    if layout == "col" then
      x = cute.make_tensor(x.iterator, cute.make_layout({rows, columns},
                                                        {1, rows}))
    else
      x = cute.make_tensor(x.iterator, cute.make_layout({rows, columns},
                                                        {columns, 1}))
    end
    for i = 0, rows - 1 do
      for j = 0, columns - 1 do x[{i, j}] = f and f(i, j) or 0 end
    end
    return x
  end
  local A = matrix(tile[1], 64, "bf16", "row", a_of)
  local B = matrix(n, 64, "bf16", "row", b_of)
  local D = matrix(tile[1], n, dtype, o.d_layout)
  local atom, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileS2GOp(), D, layout_d(_, _, 0), epi)
  local out = cute.make_tiled_copy(cute.make_copy_atom("UniversalCopy", dtype),
    o.d_layout == "row" and cute.make_layout({threads // 8, 8}, {8, 1})
    or cute.make_layout {8, threads // 8}, cute.make_layout {1, 1})
  local k = cute.kernel("tile", function(mA, mB, mD, tma, cD)
    local tid = cute.arch.thread_idx()
    local sA = cute.make_smem_tensor(cute.bf16, layout_a, 1024)(_, _, 0)
    local sB = cute.make_smem_tensor(cute.bf16, layout_b, 1024)(_, _, 0)
    local sD = cute.make_smem_tensor(dtype, layout_d, 1024)
    for i in cute.range(tid, tile[1] * 64, threads) do
      sA[{i // 64, i % 64}] = mA[{i // 64, i % 64}]
    end
    for i in cute.range(tid, n * 64, threads) do
      sB[{i // 64, i % 64}] = mB[{i // 64, i % 64}]
    end
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    local thr = mma:get_slice(tid)
    local tA = mma:make_fragment_A(thr:partition_A(sA))
    local tB = mma:make_fragment_B(thr:partition_B(sB))
    local acc = cute.make_rmem_tensor(mma:partition_shape_C {tile[1], n},
                                      cute.f32)
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, false)
    cute.gemm(mma, acc, tA, tB, acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    local part = cute.make_rmem_tensor(mma:partition_shape_C {tile[1], n},
                                       dtype)
    part:store(acc:load():to(dtype))
    local r2s, from, to = utils.epilog_smem_copy_and_partition(mma, part, tid,
      sD, o.d_layout)
    cute.copy(r2s, from, to(_, _, _, 0))
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    if o.by == "tma" then
      local fence = cute.pipeline.TmaStoreFence(1)
      local op, s, g = utils.epilog_gmem_copy_and_partition(tid, tma, cD, epi,
                                                            sD)
      cute.when(tid:eq(0), function()
        cute.copy(op, s(_, 0), g(_, 0, 0))
        fence:arrive_and_wait()
        fence:tail()
      end)
      return
    end
    local op, r, g = utils.epilog_gmem_copy_and_partition(tid, out, mD, epi)
    cute.copy(op, op:get_slice(tid):partition_S(sD(_, _, 0)), r)
    cute.copy(op, r, g(_, _, _, 0, 0))
  end)
  local call = k(A, B, D, atom, coords)
  assert(call:launch {grid = 1, block = threads, device = "sim:sm_90a"})
  if o.groups == 2 then
    kernels.compiles(call:trace {block = threads}, {"sm_90a"})
  end
  for i = 0, tile[1] - 1 do
    for j = 0, n - 1 do
      if D[{i, j}] ~= sum_of(i, j) then
        assert.equal(sum_of(i, j), D[{i, j}], ("at (%d,%d)"):format(i, j))
      end
    end
  end
end

describe("a tile of a GEMM with the helpers", function()
  for _, o in ipairs {
    {d_dtype = cute.f32, d_layout = "row", b_layout = "row", n = 32},
    {d_dtype = cute.f32, d_layout = "col", b_layout = "col", n = 64},
    {d_dtype = cute.f16, d_layout = "row", b_layout = "col", n = 64},
    {d_dtype = cute.f16, d_layout = "col", b_layout = "row", n = 32}} do
    for groups = 1, 2 do
      it(("is exact: %s, D %s-major, B %s-major, %d warpgroups"):format(
        tostring(o.d_dtype), o.d_layout, o.b_layout, groups), function()
          o.groups = groups
          for _, by in ipairs {"tma", "threads"} do
            o.by = by
            multiply(o)
          end
        end)
    end
  end

  it("takes shared memory that TMA stores from", function()
    local D = cute.zeros({64, 64}, cute.f32)
    local atom, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, cute.make_layout({64, 64}, {64, 1}),
      {64, 64})
    raises("sC is nil", utils.epilog_gmem_copy_and_partition, 0, atom, coords,
           {64, 64})
  end)
end)
-- SPDX-License-Identifier: MIT
