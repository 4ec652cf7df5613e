-- Tests tcgen05.mma with a sparse A on the simulator. Tiles of all kinds are
-- compared with the product of the dense matrix, computed on the host. Values
-- are small integers, so results must be equal. NVRTC must compile each kernel.
local block = require "spec.tensor_block"
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._
local helpers, small = cute.utils.blackwell_helpers, block.small

local DEVICE, M = "sim:sm_100a", 128

-- Copies scale factors to shared memory. make: "sfa" or "sfb". Returns two
-- functions: one maps a pointer to tensor memory to the tensor of factors
-- there, the other copies them there.
local function factors(mma, tile, make, sf, t)
  local utils = cute.utils
  local l = utils["make_smem_layout_" .. make](mma, tile, mma.sf_vec_size,
                                               1)(_, _, _, 0)
  local s = cute.make_smem_tensor(sf, l, 128)
  block.copy_in(cute.make_tensor(s.iterator, cute.make_layout(cute.size(t))), t)
  return function(ptr)
    local places = utils["make_tmem_layout_" .. make](mma, tile,
                                                      mma.sf_vec_size, l)
    local to = cute.make_tensor(cute.recast_ptr(ptr, nil, sf), places)
    return to, block.s2t(s, to, sf)
  end
end

-- first columns of the metadata, and of the scale factors of A and of B
local META, FACTORS = 128, {160, 192}

-- Returns a kernel that multiplies one tile of 128 x n x k. `wrong` describes a
-- mistake with the metadata: metadata = false omits its copy; `column` moves it
-- by columns; iterator(ptr) returns another address for it; `k` is another
-- number of instructions in its layout; `layout` is another layout.
local function product(o, wrong)
  wrong = wrong or {}
  local mma = cute.make_tiled_mma(o.op)
  local dtype, acc, tile = cute[o.type], cute[o.acc], {M, o.n, o.k}
  local a = cute.get_sparse_elem_type(2, 1, dtype)
  local e = helpers.make_sparse_e_dtype(dtype)
  local la = helpers.make_sparse_smem_layout_a(mma, tile, dtype, 1)
  local le = e:stored(helpers.make_sparse_smem_layout_e(mma, tile, dtype,
                                                        1))(_, _, _, 0)
  local inst = mma.shape_mnk[3]
  local te = e:stored(helpers.make_sparse_tmem_layout_e(
    {{M, inst}, 1, wrong.k or o.k // inst}, dtype))
  local lb = cute.tile_to_shape(tcgen05.make_smem_layout_atom(
    (o.b or "K") .. "_" .. o.swizzle, dtype), {o.n, o.k},
    o.b == "MN" and {1, 0} or {0, 1})
  return cute.kernel("sparse", function(A, E, B, C, FA, FB)
    local sA = cute.make_smem_tensor(dtype, a:stored(la), 1024)
    local sE = cute.make_smem_tensor(cute.u8, le, 128)
    local sB = cute.make_smem_tensor(dtype, lb, 1024)
    local go = block.begin(256, acc)
    for k = 0, cute.size(A, 1) - 1 do
      local per = inst // 2
      sA[{{arch.thread_idx(), k % per}, 0, k // per, 0}] =
        A[{arch.thread_idx(), k}]
    end
    block.metadata_in(sE, E)
    block.copy_in(sB, B)
    local sf = o.sf and cute[o.sf]
    local place_a = sf and factors(mma, tile, "sfa", sf, FA)
    local place_b = sf and factors(mma, tile, "sfb", sf, FB)
    local ptr, bar = go()
    local thr = mma:get_slice(0)
    local tCrA = mma:make_fragment_A(sA(_, _, _, 0))
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    local bytes = cute.recast_ptr(ptr + META, nil, cute.u8)
    local tCtE = cute.make_tensor(wrong.iterator and wrong.iterator(ptr)
      or bytes + 4 * (wrong.column or 0), wrong.layout or te)
    local copies, tFA, tFB = {block.metadata_s2t(sE, bytes)}, nil, nil
    if wrong.metadata == false then copies = {} end
    if sf then
      tFA, copies[2] = place_a(ptr + FACTORS[1])
      tFB, copies[3] = place_b(ptr + FACTORS[2])
    end
    cute.when(arch.thread_idx():eq(0), function()
      for _, copy in ipairs(copies) do copy() end
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, sf and {tCrA, tFA, tCtE} or {tCrA, tCtE},
                sf and {tCrB, tFB} or tCrB, sums)
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    block.copy_out(cute.make_copy_atom(o.load, acc), sums({_, _}, 0, 0),
                   part({_, _}, 0, 0))
    block.finish(ptr, 256)
  end)
end

local Ld = tcgen05.Ld32x32bOp(16)
local LdPack = tcgen05.Ld32x32bOp(8, tcgen05.Pack.PACK_16b_IN_32b)
local function named(text) return cute.make_mma_atom("SM100_MMA_" .. text) end

local CASES = {
  {"f16", type = "f16", acc = "f32", n = 64, k = 128, swizzle = "SW128",
   op = tcgen05.MmaF16BF16SparseOp("f16", "f32", {128, 64, 32}), load = Ld},
  {"bf16, B MN-major", type = "bf16", acc = "f32", n = 64, k = 128, b = "MN",
   swizzle = "SW128", load = Ld,
   op = named "F16BF16_SS_SPARSE<bfloat16_t,bfloat16_t,float,128,64,K,MN>"},
  {"bf16, A MN-major", type = "bf16", acc = "f32", n = 32, k = 128,
   swizzle = "SW64", load = Ld,
   op = named "F16BF16_SS_SPARSE<bfloat16_t,bfloat16_t,float,128,32,MN,K>"},
  {"f16 with sums in f16", type = "f16", acc = "f16", n = 32, k = 128,
   swizzle = "INTER", load = LdPack,
   op = named "F16BF16_SS_SPARSE<half_t,half_t,half_t,128,32,K,K>"},
  {"tf32", type = "tf32", acc = "f32", n = 32, k = 64, swizzle = "SW128",
   op = named "TF32_SS_SPARSE<tfloat32_t,tfloat32_t,float,128,32,K,K>",
   load = Ld},
  {"e4m3", type = "e4m3", acc = "f32", n = 32, k = 128, swizzle = "SW128",
   op = tcgen05.MmaFP8SparseOp("e4m3", "f32", {128, 32, 64}), load = Ld},
  {"f16, weight-stationary", type = "f16", acc = "f32", n = 64, k = 128,
   swizzle = "SW128", load = Ld,
   op = named "F16BF16_WS_SS_SPARSE<half_t,half_t,float,128,64,K,K>"},
  {"i8", type = "i8", acc = "i32", n = 32, k = 128, swizzle = "SW64",
   op = named "S8_SS_SPARSE<int8_t,int8_t,int32_t,128,32,K,K>", load = Ld,
   targets = {"sm_100a", "sm_110a"}},
  {"mxf8f6f4", type = "e4m3", acc = "f32", sf = "ue8m0", n = 32, k = 256,
   swizzle = "SW128", load = Ld, op = named("MXF8F6F4_SS_SPARSE<float_e4m3_t,"
     .. "float_e4m3_t,float,float_ue8m0_t,128,32,K,K>")},
  {"mxf4", type = "e2m1", acc = "f32", sf = "ue8m0", n = 32, k = 256,
   swizzle = "SW128", load = Ld, op = named("MXF4NVF4_SS_SPARSE<float_e2m1_t,"
     .. "float_e2m1_t,float,float_ue8m0_t,128,32,64,K,K>"),
   targets = {"sm_100a", "sm_103a"}},
  {"mxf4nvf4", type = "e2m1", acc = "f32", sf = "e4m3", n = 32, k = 256,
   swizzle = "SW64", load = Ld, op = named("MXF4NVF4_SS_SPARSE<float_e2m1_t,"
     .. "float_e2m1_t,float,float_ue4m3_t,128,32,32,K,K>"),
   targets = {"sm_103a", "sm_110a"}},
}

-- Returns a call of the kernel, and a function that checks its result C.
local function prepare(o, wrong)
  local A, values, E = block.sparse_matrix(o, M)
  local B = small(cute.zeros({o.n, o.k}, o.type), 3, o.least or -2)
  local C = cute.zeros({M, o.n}, o.acc)
  local vs = cute.make_tiled_mma(o.op).sf_vec_size
  local FA, at_a, FB, at_b
  if o.sf then
    FA, at_a = block.factors(M, o.k, vs, o.sf, 1)
    FB, at_b = block.factors(o.n, o.k, vs, o.sf, 2)
  end
  local function row(t, i, f, at)
    local list = {}
    for k = 0, o.k - 1 do
      list[k] = t(i, k) * (f and f[at(i, k, 0)] or 1)
    end
    return list
  end
  return product(o, wrong)(values, E, B, C, FA, FB), function()
    local columns = {}
    for j = 0, o.n - 1 do columns[j] = row(B, j, FB, at_b) end
    for i = 0, M - 1, 5 do
      local a = row(A, i, FA, at_a)
      for j = 0, o.n - 1 do
        local s, b = 0, columns[j]
        for k = 0, o.k - 1 do s = s + a[k] * b[k] end
        if s ~= C(i, j) then
          assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
        end
      end
    end
  end
end

local OPTIONS = {grid = 1, block = 128, device = DEVICE}

describe("a sparse tcgen05.mma", function()
  for n, o in ipairs(CASES) do
    it("multiplies tiles: " .. o[1] .. support.long(n, 6), function()
      local call, check = prepare(o)
      assert.same({}, support.report(call:launch(OPTIONS)):notes())
      check()
      for _, target in ipairs(o.targets or {"sm_100a", "sm_103f", "sm_110a"}) do
        block.compile(call, target)
      end
    end)
  end

  -- Checks that a run with the mistake `wrong` reports these texts.
  local function reports(o, wrong, ...)
    local ok, why = pcall(function()
      return prepare(o, wrong):launch(OPTIONS)
    end)
    assert.is_false(ok)
    for _, text in ipairs {...} do
      assert.is_truthy(tostring(why):find(text, 1, true), tostring(why))
    end
  end

  it("reports metadata that is missing, or not valid", function()
    local o = CASES[1]
    reports(o, {metadata = false}, "column 128 of tensor memory is read, but "
      .. "nothing wrote it", "copy the metadata of A to tensor memory")
    reports(o, {column = 1}, "column 132 of tensor memory is read, but nothing")
    reports(o, {iterator = function(ptr)
      return cute.recast_ptr(ptr, nil, cute.u8)
    end}, "column 0 of tensor memory")
    reports(o, {iterator = function(ptr)
      return cute.recast_ptr(ptr + 256, nil, cute.u8)
    end}, "of tensor memory are not allocated")
    -- These nibbles select an element twice, or have a descending order.
    local A, values, E = block.sparse_matrix(o, M)
    for nibble, text in pairs {[5] = "has 0x5 for a group of 4 elements, which "
      .. "selects element 1 twice", [1] = "has 0x1 for a group of 4 elements, "
      .. "whose elements are not in order"} do
      E[{77, 3}] = E(77, 3) & 0xf0 | nibble
      local ok, why = pcall(function()
        product(o)(values, E, cute.zeros({o.n, o.k}, o.type),
                   cute.zeros({M, o.n}, o.acc)):launch(OPTIONS)
      end)
      assert.is_false(ok)
      assert.is_truthy(tostring(why):find(text, 1, true), tostring(why))
    end
    assert.equal(o.k, cute.size(A, 1))
  end)

  it("rejects metadata of other types, layouts and extents", function()
    local o = CASES[1]
    reports(o, {iterator = function(ptr) return ptr end}, "takes the metadata "
      .. "of A from tensor memory, as bytes of u8")
    reports(o, {k = 2}, "the metadata of A must be (V,1,4)")
    reports(o, {layout = core.layout "((128,4),1,4):((262144,1),0,4)"},
            "cannot read the metadata of A in the layout",
            "make_sparse_tmem_layout_e")
    local raises = support.raises
    raises("M must be 128, N a multiple of 8 up to 256, K 32",
           tcgen05.MmaF16BF16SparseOp, "f16", "f32", {64, 64, 32})
    raises("M must be 256, N a multiple of 16", tcgen05.MmaFP8SparseOp, "e4m3",
           "f32", {128, 64, 64}, 2)
    raises("A must come from SMEM or TMEM", tcgen05.MmaFP8SparseOp, "e4m3",
           "f32", {128, 64, 64}, 1, "RMEM")
    raises("the metadata must have the format TID", tcgen05.MmaFP8SparseOp,
           "e4m3", "f32", {128, 64, 64}, 1, "SMEM", "K", "K", "REGULAR")
    raises("the operands' type is i8", tcgen05.MmaFP8SparseOp, "i8", "f32",
           {128, 64, 64})
    raises("the positions of metadata are known only for 128 rows of A in each "
           .. "CTA", function()
      local mma = cute.make_tiled_mma(
        named "F16BF16_SS_SPARSE<half_t,half_t,float,64,64,K,K>")
      cute.kernel("k", function(x)
        cute.gemm(mma, x, x, x, x)
      end)(cute.zeros({64}, "f32")):trace {block = 128}
    end)
  end)

  it("has the metadata that compress returns", function()
    local o = CASES[1]
    local A, values, E = block.sparse_matrix(o, M)
    local v, e = cute.nvgpu.sparse.compress(A)
    local own = cute.recast_tensor(e, cute.u8)
    local C = {cute.zeros({M, o.n}, "f32"), cute.zeros({M, o.n}, "f32")}
    local B = small(cute.zeros({o.n, o.k}, o.type), 3, -2)
    product(o)(values, E, B, C[1]):launch(OPTIONS)
    product(o)(v, own, B, C[2]):launch(OPTIONS)
    for i = 0, M * o.n - 1 do assert.equal(C[1][i], C[2][i]) end
  end)
end)
-- SPDX-License-Identifier: MIT
