-- Tests tcgen05.mma with a sparse A by a pair of CTAs on the simulator. Tiles
-- are compared with the product of the dense matrix, computed on the host. Each
-- block has the stored values and the metadata of its own rows of A. Values are
-- small integers, so results must be equal. NVRTC must compile each kernel.
local assert = require "luassert"
local block = require "spec.tensor_block"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._
local helpers = cute.utils.blackwell_helpers

local PAIR, BOTH, M, ROWS = tcgen05.CtaGroup.TWO, 3, 256, 128
-- first columns of the metadata and of the factors; number of all columns
local META, FACTORS, COLUMNS = 128, {160, 192}, 256

-- Copies scale factors, from element `first` on, to shared memory. make: "sfa"
-- or "sfb". Returns two functions: one maps a pointer to tensor memory to the
-- tensor of scale factors there, the other copies them there.
local function factors(mma, tile, make, sf, t, first)
  local utils, vs = cute.utils, mma.sf_vec_size
  local l = utils["make_smem_layout_" .. make](mma, tile, vs, 1)(_, _, _, 0)
  local s = cute.make_smem_tensor(sf, l, 128)
  local own = cute.make_tensor(s.iterator, cute.make_layout(cute.cosize(l)))
  block.copy_in(own, cute.make_tensor(t.iterator + (first or 0), own.layout))
  return function(ptr)
    local places = utils["make_tmem_layout_" .. make](mma, tile, vs, l)
    local to = cute.make_tensor(cute.recast_ptr(ptr, nil, sf), places)
    return to, block.s2t(s, to, sf, PAIR)
  end
end

-- Returns a kernel that multiplies one tile of 256 x n x k. fault: a name in
-- FAULTS.
local function product(o, fault)
  local mma = cute.make_tiled_mma(cute.make_mma_atom("SM100_MMA_" .. o.atom))
  local dtype, acc, tile = cute[o.type], cute[o.acc], {M, o.n, o.k}
  local inst, sf = mma.shape_mnk[3], o.sf and cute[o.sf]
  local e = helpers.make_sparse_e_dtype(dtype)
  local la = cute.get_sparse_elem_type(2, 1, dtype):stored(
    helpers.make_sparse_smem_layout_a(mma, tile, dtype, 1))
  local le = e:stored(helpers.make_sparse_smem_layout_e(mma, tile, dtype,
                                                        1))(_, _, _, 0)
  local te = e:stored(helpers.make_sparse_tmem_layout_e(
    {{ROWS, inst}, 1, o.k // inst}, dtype))
  local load = cute.make_copy_atom(o.load or tcgen05.Ld32x32bOp(16), acc)
  return cute.kernel("sparse", function(A, E, B, C, FA, FB)
    local rank, tid = arch.block_idx_in_cluster(), arch.thread_idx()
    local sA = cute.make_smem_tensor(dtype, la, 1024)
    local sE = cute.make_smem_tensor(cute.u8, le, 128)
    local sB = cute.make_smem_tensor(dtype,
      helpers.make_smem_layout_b(mma, tile, dtype, 1), 1024)
    local go = block.begin_pair(COLUMNS, acc)
    local per = inst // 2
    for k = 0, cute.size(A, 1) - 1 do
      sA[{{tid, k % per}, 0, k // per, 0}] = A[{tid + rank * ROWS, k}]
    end
    block.metadata_in(sE, E, rank * ROWS)
    local thr = mma:get_slice(rank)
    block.copy_in(sB, thr:partition_B(B))
    local place_a = sf and factors(mma, tile, "sfa", sf, FA,
                                   rank * (cute.size(FA) // 2))
    local place_b = sf and factors(mma, tile, "sfb", sf, FB)
    local ptr, bar = go()
    local tCrA, tCrB = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    local bytes = cute.recast_ptr(ptr + META, nil, cute.u8)
    local tCtE = cute.make_tensor(bytes, te)
    local copies, tFA, tFB = {block.metadata_s2t(sE, bytes, 2)}, nil, nil
    if fault == "metadata is not copied" then copies = {} end
    if sf then
      tFA, copies[2] = place_a(ptr + FACTORS[1])
      tFB, copies[3] = place_b(ptr + FACTORS[2])
    end
    cute.when(rank:eq(0) & tid:eq(0), function()
      for _, copy in ipairs(copies) do copy() end
      mma:set(tcgen05.Field.ACCUMULATE, false)
      local a, b = tCrA(_, _, _, 0), tCrB(_, _, _, 0)
      cute.gemm(mma, sums, sf and {a, tFA, tCtE} or {a, tCtE},
                sf and {b, tFB} or b, sums)
      tcgen05.commit(bar, fault == "a commit for one block" and 1 or BOTH, PAIR)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    block.copy_out(load, sums({_, _}, 0, 0), part({_, _}, 0, 0))
    block.finish_pair(ptr, COLUMNS)
  end)
end

local MX4 = "MXF4NVF4_2x1SM_SS_SPARSE<float_e2m1_t,float_e2m1_t,float,"
local CASES = {
  {type = "f16", acc = "f32", n = 64, k = 128,
   atom = "F16BF16_2x1SM_SS_SPARSE<half_t,half_t,float,256,64,K,K>"},
  {type = "e4m3", acc = "f32", n = 32, k = 128,
   atom = "F8F6F4_2x1SM_SS_SPARSE<float_e4m3_t,float_e4m3_t,float,256,32,K,K>"},
  {type = "bf16", acc = "f32", n = 128, k = 128,
   atom = "F16BF16_2x1SM_SS_SPARSE<bfloat16_t,bfloat16_t,float,256,128,K,MN>"},
  {type = "f16", acc = "f16", n = 32, k = 128,
   load = tcgen05.Ld32x32bOp(8, tcgen05.Pack.PACK_16b_IN_32b),
   atom = "F16BF16_2x1SM_SS_SPARSE<half_t,half_t,half_t,256,32,K,K>"},
  {type = "tf32", acc = "f32", n = 32, k = 64,
   atom = "TF32_2x1SM_SS_SPARSE<tfloat32_t,tfloat32_t,float,256,32,K,K>"},
  {type = "i8", acc = "i32", n = 32, k = 128, targets = {"sm_100a", "sm_110a"},
   atom = "S8_2x1SM_SS_SPARSE<int8_t,int8_t,int32_t,256,32,K,K>"},
  {type = "e4m3", acc = "f32", n = 32, k = 256, sf = "ue8m0", vs = 64,
   atom = "MXF8F6F4_2x1SM_SS_SPARSE<float_e4m3_t,float_e4m3_t,float,"
     .. "float_ue8m0_t,256,32,K,K>"},
  {type = "e2m1", acc = "f32", n = 32, k = 256, sf = "ue8m0", vs = 64,
   atom = MX4 .. "float_ue8m0_t,256,32,64,K,K>", targets = {"sm_103a"}},
  {type = "e2m1", acc = "f32", n = 64, k = 256, sf = "e4m3", vs = 32,
   atom = MX4 .. "float_ue4m3_t,256,64,32,K,K>", targets = {"sm_100a"}},
}

local LAUNCH = {grid = 2, block = 128, cluster = 2, device = "sim:sm_100a"}

-- Multiplies each row of t by its scale factors.
local function scaled(t, f, at)
  local out = cute.zeros(t.shape, cute.f32)
  for i = 0, cute.size(t, 0) - 1 do
    for k = 0, cute.size(t, 1) - 1 do
      out[{i, k}] = t(i, k) * (f and f[at(i, k, 0)] or 1)
    end
  end
  return out
end

-- Returns a call of the kernel, C, and the operands times their factors.
local function prepare(o, fault)
  local A, values, E = block.sparse_matrix(o, M)
  local B = block.small(cute.zeros({o.n, o.k}, o.type), 3, -2)
  local C = cute.zeros({M, o.n}, o.acc)
  local FA, at_a, FB, at_b
  if o.sf then
    FA, at_a = block.factors(M, o.k, o.vs, o.sf, 1)
    FB, at_b = block.factors(o.n, o.k, o.vs, o.sf, 2)
  end
  return product(o, fault)(values, E, B, C, FA, FB), C, scaled(A, FA, at_a),
    scaled(B, FB, at_b)
end

describe("a sparse tcgen05.mma of a pair", function()
  for n, o in ipairs(CASES) do
    it("multiplies tiles: " .. o.atom .. support.long(n, 4), function()
      local call, C, A, B = prepare(o)
      assert.same({}, support.report(call:launch(LAUNCH)):notes())
      for i = 0, M - 1 do
        for j = i % 3, o.n - 1, 3 do
          local s = 0
          for k = 0, o.k - 1 do s = s + A(i, k) * B(j, k) end
          if s ~= C(i, j) then
            assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
          end
        end
      end
      for _, target in ipairs(o.targets or {"sm_100a", "sm_103f", "sm_110a"}) do
        block.compile(call, target, 2)
      end
    end)
  end

  for fault, want in pairs {
    ["metadata is not copied"] = "copy the metadata of A to tensor memory",
    ["a commit for one block"] = "no warp can go on"} do
    it("is reported: " .. fault, function()
      local call = prepare(CASES[1], fault)
      local ok, why = pcall(call.launch, call, LAUNCH)
      assert.is_false(ok)
      assert.is_truthy(tostring(why):find(want, 1, true), tostring(why))
    end)
  end
end)
-- SPDX-License-Identifier: MIT
