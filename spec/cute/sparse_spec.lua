-- Tests sparse matrices: which elements are stored and the metadata of their
-- positions, a sparse GEMM against the dense one, and the error for each
-- misuse.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local products = require "spec.sparse"
local support = require "spec.support"
local sparse, warpgroup = cute.nvgpu.sparse, cute.nvgpu.warpgroup
local raises = support.raises

local random, matrix, gemm = products.random, products.matrix, products.gemm

-- Returns row m of the dense matrix that `values` and `metadata` describe.
local function whole(values, metadata, m, depth, group)
  local row = {}
  for k = 0, depth - 1 do row[k] = 0 end
  for g = 0, depth // group - 1 do
    local four = metadata[{m, g // 4}] >> g % 4 * 4 & 15
    for i = 0, group // 2 - 1 do
      local at = four >> 2 * i & 3
      if group == 2 then at = at // 2 end
      row[g * group + at] = row[g * group + at] + values[{m, g * (group // 2)
        + i}]
    end
  end
  return row
end

describe("cute.nvgpu.sm80.sparse", function()
  it("returns a matrix's stored elements and positions", function()
    for _, dtype in ipairs {"bf16", "f16", "f32", "e4m3", "i8", "u8"} do
      local A = matrix(5, 64, dtype, random(#dtype))
      local group = A.element_type.bits == 32 and 2 or 4
      local values, metadata = sparse.compress(A)
      assert.same({5, 32}, values.shape)
      assert.same({5, 64 // group // 4}, metadata.shape)
      assert.equal(A.element_type, values.element_type)
      for m = 0, 4 do
        local row = whole(values, metadata, m, 64, group)
        for k = 0, 63 do assert.equal(A[{m, k}], row[k]) end
        -- The metadata of each group must name two different positions, the
        -- lower one first.
        for g = 0, 64 // group - 1 do
          local four = metadata[{m, g // 4}] >> g % 4 * 4 & 15
          assert.is_true(four & 3 < four >> 2)
        end
      end
    end
  end)

  it("rejects other matrices", function()
    local A = cute.zeros({2, 16}, "bf16")
    for k = 8, 10 do A[{1, k}] = 1 end
    raises("compress: elements 8 to 11 of row 1: 3 of 4 are not 0, but at most "
      .. "2 may be nonzero [bad-argument]", function() sparse.compress(A) end)
    raises("compress: rows of 24 elements; for f16 a multiple of 16 is needed",
      function() sparse.compress(cute.zeros({1, 24}, "f16")) end)
    raises(" have 64 bits, not 8, 16 or 32",
      function() sparse.compress(cute.zeros({1, 16}, "f64")) end)
    raises("compress: a matrix (M,K) is needed, got ",
      function() sparse.compress(cute.zeros({16}, "f16")) end)
  end)
end)

local op = warpgroup.MmaF16BF16SparseOp("bf16", "f32", {64, 8, 32}, "SMEM")
local mma = cute.make_tiled_mma(op)

describe("a sparse product", function()
  for _, case in ipairs(products.CASES) do
    local name = case[1] .. (case[4] and " in registers" or "")
    it("equals the dense one: " .. name, function()
      assert.equal(0, products.wrong(case, "sim:sm_90a", 1, 128, 32, 128))
    end)

    it("equals the dense one on a GPU: " .. name .. " #gpu", function()
      for seed = 1, 4 do
        assert.equal(0, products.wrong(case, "gpu", seed, 256, 64, 256))
      end
    end)
  end

  it("has atoms by CuTe's names", function()
    local W, name = warpgroup, "SM90::GMMA::SPARSE::GMMA_64x"
    assert.equal(name .. "8x32_F32BF16BF16_SS<K,K>", op.name)
    assert.equal(name .. "200x32_F16F16F16_SS<MN,K,One>",
      W.MmaF16BF16SparseOp("f16", "f16", {64, 200, 32}, "SMEM", "MN", "K", 1)
        .name)
    assert.equal(name .. "16x16_F32TF32TF32_RS_TN<One>",
      W.MmaTF32SparseOp({64, 16, 16}, "RMEM", 1).name)
    assert.equal(name .. "256x64_F16E5M2E4M3_SS_TN",
      W.MmaF8SparseOp("e5m2", "e4m3", "f16", {64, 256}, "SMEM").name)
    assert.equal(name .. "96x64_S32U8S8_RS_TN",
      W.MmaI8SparseOp("u8", "i8", "i32", {64, 96, 64}, "RMEM").name)
    assert.equal("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16",
                 op.ptx)
    assert.same({64, 8, 32}, op.shape_mnk)
    -- CuTe's layout of A covers the dense A, (64,32)
    assert.equal("((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))", tostring(
      cute.make_mma_atom(name .. "8x32_F32BF16BF16_RS<K,K>").tv_layout_A))
    raises("K 32", function()
      W.MmaF16BF16SparseOp("bf16", "f32", {64, 8, 16}, "SMEM")
    end)
    raises("the selector must be 0 (lanes 0 and 1 of four have metadata) or 1 "
      .. "(lanes 2 and 3), not 2", function()
      W.MmaTF32SparseOp({64, 16, 16}, "RMEM", 2)
    end)
  end)

  it("takes tensors of stored elements, and of metadata", function()
    assert.same({{64, 16}, 1, 4}, mma:partition_shape_A {64, 64})
    assert.same({2, 1, 4}, mma:partition_shape_E {64, 8})
    assert.same({{8, 32}, 1, 4}, mma:partition_shape_B {8, 128})
    assert.equal("(2,1,4):(1,0,2)", tostring(mma:make_fragment_E(
      (mma:get_slice(0):partition_E(cute.make_layout({64, 8}, {8, 1}))))))
    raises("partition_E: the tile of the MMA does not divide the tensor in "
      .. "mode 1 (K): 3 is not a multiple of 2", function()
      mma:get_slice(0):partition_E(cute.make_layout {64, 3})
    end)
    local dense = cute.make_tiled_mma(
      warpgroup.MmaF16BF16Op("bf16", "f32", {64, 8, 16}, "SMEM"))
    for _, f in ipairs {"partition_E", "make_fragment_E", "partition_shape_E",
                        "partition_fragment_E", "thrfrg_E"} do
      raises("SM90_64x8x16_F32BF16BF16_SS<K,K> has no metadata: its A is not "
        .. "sparse", function()
        local l = cute.make_layout {64, 8}
        local of = f == "partition_E" and dense:get_slice(0) or dense
        of[f](of, f == "partition_shape_E" and {64, 8} or l)
      end)
    end
    raises("the tile of K must be an extent, not the layout (2,16):(16,1)",
      function()
        cute.make_tiled_mma(op, {1, 1, 1}, {64, 8,
          cute.make_layout({2, 16}, {16, 1})}):partition_shape_A {64, 64}
      end)
    -- The MMA needs 64 contiguous bytes in a row of B, but K_SW32 has only 32.
    raises("the layout is not canonical: element (0,16) lies ", function()
      mma:make_fragment_B((mma:get_slice(0):partition_B(cute.tile_to_shape(
        warpgroup.make_smem_layout_atom("K_SW32", "bf16"), {8, 32}))))
    end)
  end)
end)

describe("a sparse product", function()
  -- Runs a kernel in which f(mE, rE, multiply, A) executes one sparse MMA. mE
  -- is the metadata in memory, rE is its copy in registers.
  local function once(f, opts)
    local E = cute.zeros({64, 2}, "u16")
    E:fill(0x4444)
    for k, v in pairs(opts and opts.E or {}) do E[k - 1] = v end
    local k = cute.kernel("k", function(mE, mD)
      local tid = cute.arch.thread_idx()
      local thr = mma:get_slice(tid)
      local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
        warpgroup.make_smem_layout_atom("K_SW64", "bf16"), {64, 32}), 1024)
      for i = 0, 15 do s[{(i * 128 + tid) // 32, tid % 32}] = 1 end
      cute.arch.fence_view_async_shared()
      cute.arch.sync_threads()
      local a = mma:make_fragment_A(thr:partition_A(cute.local_tile(s, {64, 16},
        {0, 0})))
      local b = mma:make_fragment_B(thr:partition_B(cute.local_tile(s, {8, 32},
        {0, 0})))
      local acc = mma:make_fragment_C(thr:partition_C(mD))
      local gE = thr:partition_E(mE)
      local e = mma:make_fragment_E(gE)
      f(gE, e, function(operand)
        mma:set("ACCUMULATE", false)
        warpgroup.fence()
        cute.gemm(mma, acc, operand or {a, e}, b, acc)
        warpgroup.commit_group()
      end, a)
      warpgroup.wait_group(0)
      cute.autovec_copy(acc, thr:partition_C(mD))
    end)
    return k(E, cute.zeros({64, 8}, "f32")):launch {
      grid = 1, block = 128, device = "sim:sm_90a", faults = "return"}
  end

  local function told(kind, text, f, opts)
    local report = support.report(once(f, opts))
    local r = report.reports[1]
    assert.equal(kind, r and r.kind, r and r.message)
    assert.truthy(r.message:find(text, 1, true), r.message)
  end

  it("requires metadata that selects two elements of four", function()
    local function good(gE, e, multiply)
      cute.autovec_copy(gE, e)
      multiply()
    end
    assert.is_true(support.report(once(good)).ok)
    told("bad-metadata", "the metadata of a sparse A has 0x5 for a group of 4 "
      .. "elements, which selects element 1 twice: it must select two "
      .. "different elements of four", good,
      {E = {[7] = 0x4454}})
    told("uninitialised", "of register tensor", function(_, _, multiply)
      multiply()
    end)
  end)

  it("reports its operands", function()
    raises("gemm: SM90::GMMA::SPARSE::GMMA_64x8x32_F32BF16BF16_SS<K,K> takes "
      .. "{A, metadata} and B", function()
      once(function(gE, e, multiply, a)
        cute.autovec_copy(gE, e)
        multiply(a)
      end)
    end)
    raises("takes the metadata of A from registers of u32 or u8", function()
      once(function(gE, _, multiply, a) multiply {a, gE} end)
    end)
    raises("[in-flight]", function()  -- reads the result before the wait
      once(function(gE, e, multiply)
        cute.autovec_copy(gE, e)
        multiply()
        cute.autovec_copy(gE, e)
      end)
    end)
  end)

  it("is one call, with metadata as last argument", function()
    local program = gemm(op, 8, 64)(cute.zeros({128, 32}, "bf16"),
      cute.zeros({128, 4}, "u16"), cute.zeros({8, 64}, "bf16"),
      cute.zeros({128, 8}, "f32"), 1):trace {block = 256}
    local text = program:cuda "sm_90a"
    assert.truthy(text:find("GMMA_64x8x32_F32BF16BF16_SS_K_K(&acc[0], u0 + "
      .. "2ull, tCrB + 4ull, true, &tCrE[1]);", 1, true), text)
    assert.truthy(text:find("{%0, %1, %2, %3}, %4, %5, %7, 0, p, 1, 1, 0, 0;",
                            1, true), text)
    local out = kernels.compiled(program, "sm_90a")
    if out then assert.same({}, out.warnings) end
  end)
end)

-- Returns how often a layout maps to each of the n positions. Fails unless this
-- number is equal for all positions.
local function times(layout, n, name)
  local hit = {}
  for i = 0, cute.size(layout) - 1 do
    local at = layout(i)
    hit[at] = (hit[at] or 0) + 1
  end
  for at = 0, n - 1 do assert.equal(hit[0], hit[at], name) end
  return hit[0]
end

describe("atoms of sparse products", function()
  it("assign stored elements of A, and its metadata, to threads #long",
     function()
    local list = {
      "SM120::SPARSE::SM120_SPARSE_16x8x64_TN<float_e4m3_t,float_e2m1_t,float>",
      "SM120::BLOCKSCALED::SPARSE::SM120_SPARSE_16x8x128_TN_VS<float_e2m1_t,"
        .. "float_e2m1_t,float,float_ue4m3_t,16>"}
    for i = 0, math.huge do
      local name = core.atom_name("mma", i)
      -- The names that begin with SM100 come next: thousands of atoms without a
      -- layout.
      if name:find "^SM100" then break end
      if name:find "SPARSE.*64x8x" then list[#list + 1] = name end
    end
    assert.equal(2 + 36 + 4 + 16 + 16, #list)
    for _, name in ipairs(list) do
      local m = cute.make_tiled_mma(name)
      local M, _, K = table.unpack(m.shape_mnk)
      local words = K // (name:find "TF32" and 8 or name:find "VS" and 32 or 16)
      local of_e = times(m:thrfrg_E(cute.make_layout {M, words}), M * words,
                         name)
      -- Four lanes hold each row's metadata. If a row has two words of
      -- metadata, two of these lanes hold each word.
      assert.equal(words == 2 and 2 or 1, of_e, name)
      local of_a = times(m.tv_layout_A_tiled, M * K // 2, name)
      assert.equal(name:find "_SS" and m:size() or 1, of_a, name)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
