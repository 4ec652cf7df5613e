-- Tests tcgen05.mma on the simulator with A in tensor memory: all kinds,
-- including weight-stationary and sparse MMAs and MMAs with scale factors.
-- Tiles are compared with sums on the host. Values are small integers, so
-- results must be equal. NVRTC must compile each kernel.
local block = require "spec.tensor_block"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._
local helpers, utils = cute.utils.blackwell_helpers, cute.utils

-- first columns of A, of the metadata, and of the scale factors of A and of B
local A_AT, META, FACTORS, COLUMNS = 128, 192, {208, 224}, 256

-- Stores A to tensor memory, one row of this block per lane. If the MMA has
-- fewer than 128 rows, the remaining lanes get copies of the rows.
local function put_a(a, A, dtype)
  local tid, rows = arch.thread_idx(), cute.size(A, 0)
  local width = cute.size(a, 0) // 128  -- K of one MMA instruction
  local op = tcgen05.St32x32bOp(width * dtype.bits // 32)
  for k = 0, cute.size(a, 2) - 1 do
    local to = a({_, _}, 0, k)
    local put = tcgen05.make_tmem_copy(cute.make_copy_atom(op, dtype), to)
    local mine = put:get_slice(tid)
    local own = mine:partition_S(cute.make_identity_tensor {128, width})
    local r = cute.make_rmem_tensor(own.shape, dtype)
    for e = 0, width - 1 do r[e] = A[{tid % rows, k * width + e}] end
    cute.copy(put, r, mine:partition_D(to))
  end
  arch.fence_view_async_tmem_store()
end

-- Copies scale factors to shared memory. Returns a function of their first
-- column in tensor memory. It returns the tensor of factors there, and a
-- function that copies them there.
local function scale_factors(mma, tile, make, sf, t)
  local l = utils["make_smem_layout_" .. make](mma, tile, mma.sf_vec_size,
                                               1)(_, _, _, 0)
  local s = cute.make_smem_tensor(sf, l, 128)
  block.copy_in(cute.make_tensor(s.iterator, cute.make_layout(cute.size(t))), t)
  return function(ptr)
    local to = cute.make_tensor(cute.recast_ptr(ptr, nil, sf),
      utils["make_tmem_layout_" .. make](mma, tile, mma.sf_vec_size, l))
    return to, block.s2t(s, to, sf)
  end
end

-- Returns a kernel that multiplies one tile of m x o.n x o.k. o[1] is the name
-- or operation of the MMA. Fields: type, b_type, acc, n, k, load, sparse, sf.
local function product(o)
  local mma = cute.make_tiled_mma(o[1])
  local dtype, acc, sf = cute[o.type], cute[o.acc], o.sf and cute[o.sf]
  local b_dtype = cute[o.b_type or o.type]
  local m, inst = mma.shape_mnk[1], mma.shape_mnk[3]
  local tile, depth = {m, o.n, o.k}, inst // (o.sparse and 2 or 1)
  local lb = cute.tile_to_shape(tcgen05.make_smem_layout_atom("K_SW64",
    b_dtype), {o.n, o.k})
  local e, le, te = helpers.make_sparse_e_dtype(dtype), nil, nil
  if o.sparse then
    le = e:stored(helpers.make_sparse_smem_layout_e(mma, tile, dtype,
                                                    1))(_, _, _, 0)
    te = e:stored(helpers.make_sparse_tmem_layout_e({{m, inst}, 1,
                                                     o.k // inst}, dtype))
  end
  return cute.kernel("tmem_a", function(A, B, C, E, FA, FB)
    local sB = cute.make_smem_tensor(b_dtype, lb, 1024)
    local sE = le and cute.make_smem_tensor(cute.u8, le, 128)
    local go = block.begin(COLUMNS, acc)
    block.copy_in(sB, B)
    if sE then block.metadata_in(sE, E) end
    local place_a = sf and scale_factors(mma, tile, "sfa", sf, FA)
    local place_b = sf and scale_factors(mma, tile, "sfb", sf, FB)
    local ptr, bar = go()
    local thr = mma:get_slice(0)
    local a = cute.make_tensor(cute.recast_ptr(ptr + A_AT, dtype),
      mma:make_fragment_A(cute.make_layout {{m, depth}, 1, o.k // inst}).layout)
    put_a(a, A, dtype)
    local b = mma:make_fragment_B(thr:partition_B(sB))
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    local copies, left, right = {}, a, b
    if sE then
      local bytes = cute.recast_ptr(ptr + META, nil, cute.u8)
      copies[1] = block.metadata_s2t(sE, bytes)
      left = {a, cute.make_tensor(bytes, te)}
    elseif sf then
      local tFA, tFB
      tFA, copies[1] = place_a(ptr + FACTORS[1])
      tFB, copies[2] = place_b(ptr + FACTORS[2])
      left, right = {a, tFA}, {b, tFB}
    end
    cute.when(arch.thread_idx():eq(0), function()
      for _, copy in ipairs(copies) do copy() end
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, left, right, sums)
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    block.copy_out(cute.make_copy_atom(tcgen05.Ld32x32bOp(16), acc),
                   sums({_, _}, 0, 0), part({_, _}, 0, 0))
    block.finish(ptr, COLUMNS)
  end), m
end

local CASES = {
  {tcgen05.MmaFP8Op("e4m3", "f32", {128, 32, 32}, 1, "TMEM"), "e4m3",
   type = "e4m3", acc = "f32", n = 32, k = 64},
  {tcgen05.MmaF8F6F4Op("e5m2", "e4m3", "f32", {128, 32, 32}, 1, "TMEM"),
   "e5m2 by e4m3", type = "e5m2", b_type = "e4m3", acc = "f32", n = 32, k = 64},
  {tcgen05.MmaI8Op("i8", {128, 32, 32}, 1, "TMEM"), "i8", type = "i8",
   acc = "i32", n = 32, k = 64},
  {tcgen05.MmaTF32Op({128, 32, 8}, 1, "TMEM"), "tf32", type = "tf32",
   acc = "f32", n = 32, k = 16},
  {"SM100_MMA_F16BF16_WS_TS<half_t,half_t,float,32,64,K,K>",
   "f16, .ws, M = 32", type = "f16", acc = "f32", n = 64, k = 32},
  {"SM100_MMA_F16BF16_WS_TS<bfloat16_t,bfloat16_t,float,64,64,K,K>",
   "bf16, .ws, M = 64", type = "bf16", acc = "f32", n = 64, k = 32},
  {"SM100_MMA_F8F6F4_WS_TS<float_e4m3_t,float_e4m3_t,float,128,64,K,K>",
   "e4m3, .ws, M = 128", type = "e4m3", acc = "f32", n = 64, k = 64},
  {"SM100_MMA_S8_WS_TS<int8_t,int8_t,int32_t,32,64,K,K>",
   "i8, .ws, M = 32", type = "i8", acc = "i32", n = 64, k = 64},
  {"SM100_MMA_TF32_WS_TS<tfloat32_t,tfloat32_t,float,64,64,K,K>",
   "tf32, .ws, M = 64", type = "tf32", acc = "f32", n = 64, k = 16},
  {tcgen05.MmaF16BF16SparseOp("f16", "f32", {128, 32, 32}, 1, "TMEM"),
   "sparse f16", type = "f16", acc = "f32", n = 32, k = 128, sparse = true},
  {tcgen05.MmaFP8SparseOp("e4m3", "f32", {128, 32, 64}, 1, "TMEM"),
   "sparse e4m3", type = "e4m3", acc = "f32", n = 32, k = 128, sparse = true},
  {"SM100_MMA_F16BF16_WS_TS_SPARSE<half_t,half_t,float,128,64,K,K>",
   "sparse f16, .ws", type = "f16", acc = "f32", n = 64, k = 128,
   sparse = true},
  {"SM100_MMA_S8_WS_TS_SPARSE<int8_t,int8_t,int32_t,128,64,K,K>",
   "sparse i8, .ws", type = "i8", acc = "i32", n = 64, k = 128, sparse = true},
  {tcgen05.MmaMXF8Op("e4m3", {128, 32, 32}, 1, "TMEM"), "mxf8f6f4",
   type = "e4m3", acc = "f32", n = 32, k = 128, sf = "ue8m0"},
  {tcgen05.MmaMXF4Op({128, 32, 64}, 1, "TMEM"), "mxf4", type = "e2m1",
   acc = "f32", n = 32, k = 256, sf = "ue8m0"},
  {tcgen05.MmaMXF4NVF4Op("e4m3", {128, 32, 64}, 1, "TMEM"), "mxf4nvf4",
   type = "e2m1", acc = "f32", n = 32, k = 256, sf = "e4m3"},
}

-- Returns a function that maps (i, k) to element (i, k) times its factor.
local function scaled(t, f, at)
  return function(i, k) return t(i, k) * (f and f[at(i, k, 0)] or 1) end
end

local function check(o)
  local kernel, m = product(o)
  local A, stored, E
  if o.sparse then A, stored, E = block.sparse_matrix(o, m)
  else
    A = block.small(cute.zeros({m, o.k}, o.type), 7, -2)
    stored = A
  end
  local B = block.small(cute.zeros({o.n, o.k}, o.b_type or o.type), 3, -2)
  local C, vs = cute.zeros({m, o.n}, o.acc),
    o.sf and cute.make_tiled_mma(o[1]).sf_vec_size
  local FA, at_a, FB, at_b
  if vs then
    FA, at_a = block.factors(m, o.k, vs, o.sf, 1)
    FB, at_b = block.factors(o.n, o.k, vs, o.sf, 2)
  end
  local call = kernel(stored, B, C, E, FA, FB)
  local report = support.report(call:launch {grid = 1, block = 128,
                                             device = "sim:sm_100a"})
  assert.same({}, report:notes())
  local a, b = scaled(A, FA, at_a), scaled(B, FB, at_b)
  for i = 0, m - 1, 3 do
    for j = 0, o.n - 1 do
      local s = 0
      for k = 0, o.k - 1 do s = s + a(i, k) * b(j, k) end
      if s ~= C(i, j) then
        assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
      end
    end
  end
  return call
end

describe("tcgen05.mma with A in tensor memory", function()
  for i, o in ipairs(CASES) do
    it("is exact: " .. o[2] .. support.long(i, 5), function()
      local call = check(o)
      block.compile(call, "sm_100a")
      block.compile(call, o.type ~= "i8" and i % 2 == 0 and "sm_103f"
        or "sm_110a")
    end)
  end

  it("rejects A of 6 and 4 bits", function()
    support.raises("MmaF8F6F4Op: A of float_e3m2_t must come from SMEM",
      tcgen05.MmaF8F6F4Op, "e3m2", "e4m3", "f32", {128, 32, 32}, 1, "TMEM")
    support.raises("MmaMXF8F6F4Op: A of float_e2m1_t must come from SMEM",
      tcgen05.MmaMXF8F6F4Op, "e2m1", "e4m3", {128, 32, 32}, 1, "TMEM")
  end)
end)
-- SPDX-License-Identifier: MIT
