-- Compares the copies of an epilogue and the functions of a mixed-input GEMM
-- with those of the Python DSL 4.8.1 (nvidia-cutlass-dsl). The DSL printed the
-- texts below on a host without a GPU. Kernels run on the simulator.
local cute = require "cute"
local support = require "spec.support"
local helpers, utils = cute.utils.blackwell_helpers, cute.utils
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._

-- {layout of D, type of the accumulators, type of D, M, N, whether two CTAs
-- form a pair, copy from tensor memory, copy to shared memory}. Without copies,
-- the DSL raises an error for the case.
local COPIES = {
  {"row", "f32", "f32", 128, 128, false, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f32", 128, 256, false, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f32", 64, 128, false, "16dp128b16x", "SM90_U32x4_STSM_N"},
  {"row", "f32", "f32", 64, 128, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f32", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f32", 64, 32, false, "16dp128b8x", "SM90_U32x4_STSM_N"},
  {"row", "f32", "f16", 128, 128, false, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f16", 128, 256, false, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f16", 64, 128, false, "16dp256b8x", "SM90_U32x4_STSM_N"},
  {"row", "f32", "f16", 64, 128, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f16", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "f16", 64, 32, false, "16dp256b4x", "SM90_U32x4_STSM_N"},
  {"row", "f32", "e4m3", 128, 128, false, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "e4m3", 128, 256, false, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "e4m3", 64, 128, false, "16dp32b32x", "UniversalCopy"},
  {"row", "f32", "e4m3", 64, 128, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "e4m3", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "e4m3", 64, 32, false, "16dp32b16x", "UniversalCopy"},
  {"row", "f16", "f16", 128, 128, false, "32dp32b16x_16b", "UniversalCopy"},
  {"row", "f16", "f16", 128, 256, false, "32dp32b16x_16b", "UniversalCopy"},
  {"row", "f16", "f16", 64, 128, false, "16dp128b8x_16b", "SM90_U32x4_STSM_N"},
  {"row", "f16", "f16", 64, 128, true, "32dp32b16x_16b", "UniversalCopy"},
  {"row", "f16", "f16", 128, 96, true, "32dp32b16x_16b", "UniversalCopy"},
  {"row", "f16", "f16", 64, 32, false, "16dp128b4x_16b", "SM90_U32x4_STSM_N"},
  {"row", "f32", "e2m1", 128, 128, false, "32dp32b64x", "UniversalCopy"},
  {"row", "f32", "e2m1", 128, 256, false, "32dp32b64x", "UniversalCopy"},
  {"row", "f32", "e2m1", 64, 128, false},
  {"row", "f32", "e2m1", 64, 128, true, "32dp32b64x", "UniversalCopy"},
  {"row", "f32", "e2m1", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"row", "f32", "e2m1", 64, 32, false},
  {"row", "f32", "e3m2", 128, 128, false, "32dp32b128x", "UniversalCopy"},
  {"row", "f32", "e3m2", 128, 256, false, "32dp32b128x", "UniversalCopy"},
  {"row", "f32", "e3m2", 64, 128, false},
  {"col", "f32", "f32", 128, 128, false, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "f32", 128, 256, false, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "f32", 64, 128, false, "16dp256b8x", "UniversalCopy"},
  {"col", "f32", "f32", 64, 128, true, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "f32", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "f32", 64, 32, false, "16dp256b4x", "UniversalCopy"},
  {"col", "f32", "f16", 128, 128, false, "16dp256b4x", "SM90_U16x8_STSM_T"},
  {"col", "f32", "f16", 128, 256, false, "16dp256b4x", "SM90_U16x8_STSM_T"},
  {"col", "f32", "f16", 64, 128, false, "16dp256b8x", "SM90_U16x8_STSM_T"},
  {"col", "f32", "f16", 64, 128, true, "16dp256b4x", "SM90_U16x8_STSM_T"},
  {"col", "f32", "f16", 128, 96, true, "16dp256b4x", "SM90_U16x8_STSM_T"},
  {"col", "f32", "f16", 64, 32, false, "16dp256b4x", "SM90_U16x8_STSM_T"},
  {"col", "f32", "e4m3", 128, 128, false, "16dp256b4x", "SM100_U8x16_STSM_T"},
  {"col", "f32", "e4m3", 128, 256, false, "16dp256b4x", "SM100_U8x16_STSM_T"},
  {"col", "f32", "e4m3", 64, 128, false, "16dp256b8x", "SM100_U8x16_STSM_T"},
  {"col", "f32", "e4m3", 64, 128, true, "16dp256b4x", "SM100_U8x16_STSM_T"},
  {"col", "f32", "e4m3", 128, 96, true, "16dp256b4x", "SM100_U8x16_STSM_T"},
  {"col", "f32", "e4m3", 64, 32, false, "16dp256b4x", "SM100_U8x16_STSM_T"},
  {"col", "f16", "f16", 128, 128, false, "16dp128b4x_16b", "SM90_U16x8_STSM_T"},
  {"col", "f16", "f16", 128, 256, false, "16dp128b4x_16b", "SM90_U16x8_STSM_T"},
  {"col", "f16", "f16", 64, 128, false, "16dp128b8x_16b", "SM90_U16x8_STSM_T"},
  {"col", "f16", "f16", 64, 128, true, "16dp128b4x_16b", "SM90_U16x8_STSM_T"},
  {"col", "f16", "f16", 128, 96, true, "16dp128b4x_16b", "SM90_U16x8_STSM_T"},
  {"col", "f16", "f16", 64, 32, false, "16dp128b4x_16b", "SM90_U16x8_STSM_T"},
  {"col", "f32", "e2m1", 128, 128, false, "32dp32b64x", "UniversalCopy"},
  {"col", "f32", "e2m1", 128, 256, false, "32dp32b64x", "UniversalCopy"},
  {"col", "f32", "e2m1", 64, 128, false},
  {"col", "f32", "e2m1", 64, 128, true, "32dp32b64x", "UniversalCopy"},
  {"col", "f32", "e2m1", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "e2m1", 64, 32, false},
  {"col", "f32", "e3m2", 128, 128, false, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "e3m2", 128, 256, false, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "e3m2", 64, 128, false},
  {"col", "f32", "e3m2", 64, 128, true, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "e3m2", 128, 96, true, "32dp32b32x", "UniversalCopy"},
  {"col", "f32", "e3m2", 64, 32, false},
}

-- {rows per scale factor, elements of K per scale factor, major, whether two
-- CTAs form a pair, tile, tile of a CTA, layouts of one and of 3 stages} for
-- bf16. Without layouts, the DSL raises an error for the case.
local SHARED = {
  {1, 128, "MN", false, {128, 128, 64}, {128, 64},
   "((1,128),(64,1)):((0,1),(0,128))",
   "((1,128),(64,1),3):((0,1),(0,128),128)"},
  {1, 128, "MN", false, {256, 128, 128}, {256, 128},
   "((1,256),(128,1)):((0,1),(0,256))",
   "((1,256),(128,1),3):((0,1),(0,256),256)"},
  {1, 128, "MN", true, {128, 128, 64}, {64, 64},
   "((1,64),(64,1)):((0,1),(0,64))",
   "((1,64),(64,1),3):((0,1),(0,64),64)"},
  {1, 128, "MN", true, {256, 128, 128}, {128, 128},
   "((1,128),(128,1)):((0,1),(0,128))",
   "((1,128),(128,1),3):((0,1),(0,128),128)"},
  {1, 128, "K", false, {128, 128, 64}, {128, 64},
   "((1,128),(64,1)):((0,1),(0,1))",
   "((1,128),(64,1),3):((0,1),(0,1),128)"},
  {1, 128, "K", false, {256, 128, 128}, {256, 128},
   "((1,256),(128,1)):((0,1),(0,1))",
   "((1,256),(128,1),3):((0,1),(0,1),256)"},
  {1, 128, "K", true, {128, 128, 64}, {64, 64},
   "((1,64),(64,1)):((0,1),(0,1))",
   "((1,64),(64,1),3):((0,1),(0,1),64)"},
  {1, 128, "K", true, {256, 128, 128}, {128, 128},
   "((1,128),(128,1)):((0,1),(0,1))",
   "((1,128),(128,1),3):((0,1),(0,1),128)"},
  {1, 64, "MN", false, {128, 128, 64}, {128, 64},
   "((1,128),(64,1)):((0,1),(0,128))",
   "((1,128),(64,1),3):((0,1),(0,128),128)"},
  {1, 64, "MN", false, {256, 128, 128}, {256, 128},
   "((1,256),(64,2)):((0,1),(0,256))",
   "((1,256),(64,2),3):((0,1),(0,256),512)"},
  {1, 64, "MN", true, {128, 128, 64}, {64, 64},
   "((1,64),(64,1)):((0,1),(0,64))",
   "((1,64),(64,1),3):((0,1),(0,64),64)"},
  {1, 64, "MN", true, {256, 128, 128}, {128, 128},
   "((1,128),(64,2)):((0,1),(0,128))",
   "((1,128),(64,2),3):((0,1),(0,128),256)"},
  {1, 64, "K", false, {128, 128, 64}, {128, 64},
   "((1,128),(64,1)):((0,1),(0,1))",
   "((1,128),(64,1),3):((0,1),(0,1),128)"},
  {1, 64, "K", false, {256, 128, 128}, {256, 128},
   "((1,256),(64,2)):((0,2),(0,1))",
   "((1,256),(64,2),3):((0,2),(0,1),512)"},
  {1, 64, "K", true, {128, 128, 64}, {64, 64},
   "((1,64),(64,1)):((0,1),(0,1))",
   "((1,64),(64,1),3):((0,1),(0,1),64)"},
  {1, 64, "K", true, {256, 128, 128}, {128, 128},
   "((1,128),(64,2)):((0,2),(0,1))",
   "((1,128),(64,2),3):((0,2),(0,1),256)"},
  {2, 64, "MN", false, {128, 128, 64}, {128, 64},
   "((2,64),(64,1)):((0,1),(0,64))",
   "((2,64),(64,1),3):((0,1),(0,64),64)"},
  {2, 64, "MN", false, {256, 128, 128}, {256, 128},
   "((2,128),(64,2)):((0,1),(0,128))",
   "((2,128),(64,2),3):((0,1),(0,128),256)"},
  {2, 64, "MN", true, {128, 128, 64}},
  {2, 64, "MN", true, {256, 128, 128}, {128, 128},
   "((2,64),(64,2)):((0,1),(0,64))",
   "((2,64),(64,2),3):((0,1),(0,64),128)"},
  {2, 64, "K", false, {128, 128, 64}, {128, 64},
   "((2,64),(64,1)):((0,1),(0,1))",
   "((2,64),(64,1),3):((0,1),(0,1),64)"},
  {2, 64, "K", false, {256, 128, 128}, {256, 128},
   "((2,128),(64,2)):((0,2),(0,1))",
   "((2,128),(64,2),3):((0,2),(0,1),256)"},
  {2, 64, "K", true, {128, 128, 64}},
  {2, 64, "K", true, {256, 128, 128}, {128, 128},
   "((2,64),(64,2)):((0,2),(0,1))",
   "((2,64),(64,2),3):((0,2),(0,1),128)"},
  {4, 32, "MN", false, {128, 128, 64}, {128, 64},
   "((4,32),(32,2)):((0,1),(0,32))",
   "((4,32),(32,2),3):((0,1),(0,32),64)"},
  {4, 32, "MN", false, {256, 128, 128}, {256, 128},
   "((4,64),(32,4)):((0,1),(0,64))",
   "((4,64),(32,4),3):((0,1),(0,64),256)"},
  {4, 32, "MN", true, {128, 128, 64}},
  {4, 32, "MN", true, {256, 128, 128}, {128, 128},
   "((4,32),(32,4)):((0,1),(0,32))",
   "((4,32),(32,4),3):((0,1),(0,32),128)"},
  {4, 32, "K", false, {128, 128, 64}, {128, 64},
   "((4,32),(32,2)):((0,2),(0,1))",
   "((4,32),(32,2),3):((0,2),(0,1),64)"},
  {4, 32, "K", false, {256, 128, 128}, {256, 128},
   "((4,64),(32,4)):((0,4),(0,1))",
   "((4,64),(32,4),3):((0,4),(0,1),256)"},
  {4, 32, "K", true, {128, 128, 64}},
  {4, 32, "K", true, {256, 128, 128}, {128, 128},
   "((4,32),(32,4)):((0,4),(0,1))",
   "((4,32),(32,4),3):((0,4),(0,1),128)"},
}

-- {rows per scale factor, elements of K per scale factor, major, layout} for a
-- tensor (300,512,3)
local GLOBAL = {
  {1, 128, "MN", "((1,300),(128,4),3):((0,1),(0,300),1200)"},
  {1, 128, "K", "((1,300),(128,4),3):((0,4),(0,1),1200)"},
  {1, 256, "MN", "((1,300),(256,2),3):((0,1),(0,300),600)"},
  {1, 256, "K", "((1,300),(256,2),3):((0,2),(0,1),600)"},
  {2, 64, "MN", "((2,150),(64,8),3):((0,1),(0,150),1200)"},
  {2, 64, "K", "((2,150),(64,8),3):((0,8),(0,1),1200)"},
  {4, 32, "MN", "((4,75),(32,16),3):((0,1),(0,75),1200)"},
  {4, 32, "K", "((4,75),(32,16),3):((0,16),(0,1),1200)"},
}

-- Returns the name of a copy atom without the width that may follow it, as in
-- UniversalCopy<32>.
local function name_of(atom) return (atom.name:gsub("<.*", "")) end

describe("the copies of an epilogue", function()
  it("are those of the Python DSL", function()
    for _, c in ipairs(COPIES) do
      local layout, acc, d, m, n, pair, load, store = table.unpack(c)
      local tile = helpers.compute_epilogue_tile_shape({m, n, 64}, pair, layout,
                                                       d)
      local function choose()
        return utils.get_tmem_load_op({m, n, 64}, layout, d, acc, tile, pair)
      end
      if load then
        assert.equal("SM100_TMEM_LOAD_" .. load, choose().name)
        if cute[d].bits ~= 6 then  -- 6-bit elements have no copy of a single
                                   -- element
          assert.equal(store, name_of(
            helpers.get_smem_store_op(layout, d, acc, choose())))
        end
      else
        assert.error_matches(choose, "no copy for accumulators of f32, a D of "
          .. d .. " and 16 lanes")
      end
    end
  end)

  it("store plain copies' values element by element", function()
    local plain = cute.make_copy_atom("UniversalCopy", cute.f32)
    assert.equal("UniversalCopy",
      name_of(helpers.get_smem_store_op("row", "f16", "f32", plain)))
  end)

  it("store two matrices of mma.sync on sm_120", function()
    local function name(layout, d)
      return name_of(helpers.sm120_get_smem_store_op(layout, d, "f32"))
    end
    assert.equal("SM90_U32x2_STSM_N", name("row", "f16"))
    assert.equal("SM90_U16x4_STSM_T", name("col", "f16"))
    assert.equal("UniversalCopy", name("row", "f32"))
    assert.equal("UniversalCopy", name("col", "e4m3"))
  end)

  it("reject tiles that no copy covers", function()
    assert.error_matches(function()
      utils.get_tmem_load_op({96, 64, 64}, "row", "f16", "f32", {96, 32}, false)
    end, "a tile of 96 rows has 24 for each of 4 warps")
    assert.error_matches(function()
      utils.get_tmem_load_op({64, 64, 64}, "col", "f16", "f32", {64, 4}, false)
    end, "128 bits of a lane are not a multiple of 256")
  end)
end)

describe("scales of a mixed-input GEMM", function()
  it("have the Python DSL's layouts in shared memory", function()
    for _, c in ipairs(SHARED) do
      local m, k, major, pair, tile, own, one, all = table.unpack(c)
      local function layouts()
        return utils.get_smem_layout_scale(tile, pair, m, k, major, "bf16", 3)
      end
      if one then
        local t, a, b = layouts()
        assert.same(own, t)
        assert.equal(one, tostring(a))
        assert.equal(all, tostring(b))
      else
        assert.error_matches(layouts, "TMA needs 128")
      end
    end
  end)

  it("have the Python DSL's layouts in global memory", function()
    for _, c in ipairs(GLOBAL) do
      assert.equal(c[4], tostring(
        utils.get_gmem_layout_scale({300, 512, 3}, c[1], c[2], c[3])))
    end
  end)

  it("have the granularities that the Python DSL accepts", function()
    for _, c in ipairs {
      {0, 0, "i8", 64, 64, true}, {1, 0, "i8", 64, 64, false},
      {1, 128, "i4", 512, 64, true}, {1, 128, "i4", 500, 64, false},
      {1, 96, "i4", 960, 64, false}, {2, 128, "i4", 512, 64, false},
      {1, 0, "i4", 512, 64, false}, {5, 7, "bf16", 3, 4, true}} do
      assert.equal(c[6],
        utils.is_valid_scale_granularity(table.unpack(c, 1, 5)))
    end
  end)
end)

describe("the converted A of a mixed-input GEMM", function()
  it("is stored as in the Python DSL", function()
    assert.equal("TMEM", utils.get_transform_a_source "K")
    assert.equal("SMEM", utils.get_transform_a_source "MN")
    local function name(source, pair, rows)
      local atom = utils.get_copy_atom_a_transform("bf16", pair, source,
        {{rows, 16}, 1, 4}, "i8")
      return name_of(atom) .. " " .. tostring(atom.value_type)
    end
    assert.equal("SM100_TMEM_STORE_16dp256b1x bf16", name("TMEM", false, 64))
    assert.equal("SM100_TMEM_STORE_32dp32b8x bf16", name("TMEM", false, 128))
    assert.equal("SM100_TMEM_STORE_32dp32b8x bf16", name("TMEM", true, 64))
    assert.equal("UniversalCopy i8", name("SMEM", false, 128))
  end)

  it("takes integers in a shuffled order where the DSL documents it", function()
    local good = {"k", 64, "i4", "bf16", 8}
    assert.is_true(utils.is_shuffle_a(table.unpack(good)))
    for i, other in ipairs {"m", 60, "i8", "f16", 7} do
      local bad = table.move(good, 1, 5, 1, {})
      bad[i] = other
      assert.is_false(utils.is_shuffle_a(table.unpack(bad)))
    end
  end)
end)

-- Returns a kernel that stores A to tensor memory as accumulators, and copies
-- them to C tile by tile, as an epilogue does. `major` is the layout of D.
local function epilogue(major, m, n, load_columns)
  local mma = cute.make_tiled_mma(
    tcgen05.MmaF16BF16Op("f16", "f32", {m, n, 16}))
  local tile = helpers.compute_epilogue_tile_shape({m, n, 16}, false, major,
                                                   "f16")
  local put = m == 128 and tcgen05.St32x32bOp(load_columns)
    or tcgen05.St16x256bOp(load_columns // 8)
  return cute.kernel("epilogue", function(A, C)
    local tmem = utils.TmemAllocator(nil, {barrier_for_retrieve =
      cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 128}})
    tmem:allocate(128)
    tmem:wait_for_alloc()
    local ptr, tid = tmem:retrieve_ptr(), arch.thread_idx()
    local one = mma:make_fragment_C(mma:partition_shape_C {m, n}).layout
    local acc = cute.make_tensor(ptr, cute.append(one, cute.make_layout(1, 0)))
    local store = tcgen05.make_tmem_copy(cute.make_copy_atom(put, cute.f32),
                                         acc({_, _}, 0, 0, 0))
    local from = store:get_slice(tid):partition_S(A)
    local r = cute.make_rmem_tensor(from.shape, cute.f32)
    cute.basic_copy(from, r)
    cute.copy(store, r, store:get_slice(tid):partition_D(acc({_, _}, 0, 0, 0)))
    arch.fence_view_async_tmem_store()
    local C_mnl = cute.make_tensor(C.iterator, cute.make_layout(
      {{m, n}, 1, 1, 1, 1, 1}, {{n, 1}, 0, 0, 0, 0, 0}))
    local load, sums, regs = utils.epilog_tmem_copy_and_partition({m, n, 16},
      major, "f16", "f32", tid, acc, C_mnl, tile, false)
    local parts = load:get_slice(tid):partition_D(cute.flat_divide(C, tile))
    for i = 0, cute.size(sums, 3) - 1 do
      for j = 0, cute.size(sums, 4) - 1 do
        cute.copy(load, sums(_, _, _, i, j, 0), regs)
        arch.fence_view_async_tmem_load()
        cute.basic_copy(regs, parts(_, _, _, i, j))
      end
    end
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    tmem:free(ptr)
  end)
end

describe("epilog_tmem_copy_and_partition", function()
  for _, c in ipairs {{"row", 128, 64, 32}, {"col", 128, 64, 16},
                      {"row", 64, 64, 32}, {"col", 64, 32, 32}} do
    local title = "gives each element a register: %s %dx%d"
    it(title:format(table.unpack(c, 1, 3)), function()
      local A = cute.zeros({c[2], c[3]}, "f32")
      local C = cute.zeros({c[2], c[3]}, "f32")
      for i = 0, cute.size(A) - 1 do A[i] = i + 1 end
      support.report(epilogue(table.unpack(c))(A, C):launch {
        grid = 1, block = 128, device = "sim:sm_100a"})
      for i = 0, cute.size(A) - 1 do assert.equal(A[i], C[i]) end
    end)
  end
end)

local COLUMNS, TILE_K = 64, 64

-- Returns a kernel that converts A of i8 to bf16 and multiplies it by B with
-- tcgen05.mma. A, B and D are one tile. If the scales S are given, the
-- converted A is first multiplied by them. S is K-major, and a scale belongs to
-- 1 row and 32 elements of K. major: the contiguous mode of A.
local function converted(major, rows)
  local source = utils.get_transform_a_source(major)
  local mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op("bf16", "f32",
    {rows, COLUMNS, 16}, 1, source, major))
  local tile = {rows, COLUMNS, TILE_K}
  local a_layout = helpers.make_smem_layout_a(mma, tile, "i8", 1)
  local b_layout = helpers.make_smem_layout_b(mma, tile, "bf16", 1)
  local own, one, s_layout = utils.get_smem_layout_scale(tile, false, 1, 32,
                                                         "K", "bf16", 1)
  assert(own[2] == TILE_K and one)
  local shape = mma:partition_shape_A {rows, TILE_K}
  local put = utils.get_copy_atom_a_transform("bf16", false, source, shape,
                                              "bf16")
  local take = cute.make_copy_atom("UniversalCopy", cute.bf16)
  return cute.kernel("converted", function(A, B, C, S)
    local tid, thr = arch.thread_idx(), mma:get_slice(0)
    local bar = arch.alloc_smem(cute.i64, 1)
    local sA = cute.make_smem_tensor(cute.i8, a_layout, 1024)
    local sB = cute.make_smem_tensor(cute.bf16, b_layout, 1024)
    local tmem = utils.TmemAllocator(nil, {barrier_for_retrieve =
      cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 128}})
    local pool = tmem:reserve(128)
    local sums = pool:allocate_tensor(
      mma:make_fragment_C(mma:partition_shape_C {rows, COLUMNS}).layout,
      cute.f32)
    local function fill(to, flat)   -- `to` has one more mode than `flat`, with
                                    -- extent 1
      for first = 0, cute.size(flat) - 1, 128 do
        local i = tid + first
        cute.when(cute.lt(i, cute.size(flat)), function()
          to[i] = flat[i]
        end)
      end
    end
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
    fill(sA, thr:partition_A(A))
    fill(sB, thr:partition_B(B))
    local sS
    if S then
      sS = cute.make_smem_tensor(cute.bf16, s_layout, 128)
      for k = 0, TILE_K // 32 - 1 do
        cute.when(cute.lt(tid, rows), function()
          sS[{tid, 32 * k, 0}] = S[{tid, k}]
        end)
      end
    end
    arch.sync_threads()
    local to
    if source == "TMEM" then
      local l = mma:make_fragment_A(shape).layout
      to = pool:allocate_tensor(cute.append(l, cute.make_layout(1, 0)),
                                cute.bf16)
    else
      to = cute.make_smem_tensor(cute.bf16,
        helpers.make_smem_layout_a(mma, tile, "bf16", 1), 1024)
    end
    local mode = S and utils.TransformMode.ConvertScale
      or utils.TransformMode.ConvertOnly
    local scales, store, from, part = utils.transform_partition(source, mode,
      take, put, sA, to, tid)
    local raw = cute.make_rmem_tensor(from(_, _, _, _, 0).shape, cute.i8)
    cute.autovec_copy(from(_, _, _, _, 0), raw)
    local x = cute.make_rmem_tensor(raw.shape, cute.bf16)
    x:store(utils.cvt_tensor_a(raw, "bf16", false))
    if S then
      local slice, tS, held, view = utils.scale_partition(scales,
        thr:partition_A(sS), tid, "bf16")
      assert(slice)
      cute.basic_copy(cute.filter_zeros(tS(_, _, _, _, 0)), held)
      for i = 0, cute.size(x) - 1 do x[i] = x[i] * view[i] end
    end
    utils.store_transformed_a(x, part(_, _, _, _, 0), store)
    if store then arch.fence_view_async_tmem_store()
    else arch.fence_view_async_shared() end
    arch.fence_view_async_shared()
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    local a = to(_, _, _, 0)
    if source == "SMEM" then a = mma:make_fragment_A(to)(_, _, _, 0) end
    local b = mma:make_fragment_B(sB)(_, _, _, 0)
    cute.when(tid:eq(0), function()
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, a, b, sums)
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    local get = cute.make_copy_atom(rows == 128 and tcgen05.Ld32x32bOp(16)
      or tcgen05.Ld16x256bOp(2), cute.f32)
    local load = tcgen05.make_tmem_copy(get, sums({_, _}, 0, 0))
    local dst = load:get_slice(tid):partition_D(C)
    local r = cute.make_rmem_tensor(dst.shape, cute.f32)
    cute.copy(load, load:get_slice(tid):partition_S(sums({_, _}, 0, 0)), r)
    arch.fence_view_async_tmem_load()
    cute.basic_copy(r, dst)
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    tmem:free(pool.base_ptr)
  end)
end

describe("transform_partition", function()
  for nth, c in ipairs {{"K", 64, true}, {"K", 64, false}, {"MN", 128, true},
                        {"MN", 128, false}, {"K", 128, true},
                        {"K", 128, false}} do
    local title = "converts each element of A: %s, %d rows, scales: %s%s"
    it(title:format(c[1], c[2], tostring(c[3]), support.long(nth)), function()
      local rows = c[2]
      local A = cute.zeros({rows, TILE_K}, "i8")
      local B = cute.zeros({COLUMNS, TILE_K}, "bf16")
      local C = cute.zeros({rows, COLUMNS}, "f32")
      local S = cute.zeros({rows, TILE_K // 32}, "bf16")
      for i = 0, cute.size(A) - 1 do A[i] = (i * 7 + i // 11) % 9 - 4 end
      for i = 0, cute.size(B) - 1 do B[i] = (i * 3 + i // 13) % 5 - 2 end
      for i = 0, cute.size(S) - 1 do S[i] = 2 ^ (i % 3) end
      support.report(converted(c[1], rows)(A, B, C, c[3] and S or nil):launch {
        grid = 1, block = 128, device = "sim:sm_100a"})
      for m = 0, rows - 1 do
        for n = 0, COLUMNS - 1 do
          local sum = 0
          for k = 0, TILE_K - 1 do
            local scale = c[3] and S(m, k // 32) or 1
            sum = sum + A(m, k) * scale * B(n, k)
          end
          assert.equal(sum, C(m, n))
        end
      end
    end)
  end
end)

describe("scale_tma_partition", function()
  it("copies each tile of an operand to its stage", function()
    local m, k, tiles = 128, 64, 3
    local mma = cute.make_tiled_mma(
      tcgen05.MmaF16BF16Op("bf16", "f32", {m, 64, 16}))
    local layout = cute.tile_to_shape(
      tcgen05.make_smem_layout_atom("K_SW128", cute.bf16), {m, k, tiles})
    local kernel = cute.kernel("tiles", function(tma, cA, out)
      local bar = arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.bf16, layout, 1024)
      local thr, tid = mma:get_slice(0), arch.thread_idx()
      local g = cute.local_tile(cA, {m, k}, {_, _, _})
      local tS, tG = utils.scale_tma_partition(thr:partition_A(s),
        thr:partition_A(g), tma, {0, 0, 0, 0}, cute.make_layout(1))
      assert.equal(2, cute.rank(tS))
      for _, t in ipairs {tS, tG} do
        assert.equal(2, cute.rank(t.shape[1]))
        assert.equal(1, t.shape[1][2])
      end
      cute.when(tid:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, tiles * tma.tx_bytes)
        for j = 0, tiles - 1 do
          cute.copy(tma, tG({_, 0}, 0, j, 0), tS({_, 0}, j),
                    {tma_bar_ptr = bar})
        end
      end)
      arch.sync_threads()
      arch.mbarrier_wait(bar, 0)
      for j = 0, tiles - 1 do
        for i = 0, k - 1 do out[{tid, j * k + i}] = s[{tid, i, j}] end
      end
    end)
    local A = cute.zeros({m, k * tiles, 1}, "bf16")
    for i = 0, cute.size(A) - 1 do A[i] = i % 251 end
    local cpasync = cute.nvgpu.cpasync
    local atom, cA = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileG2SOp(), A, layout(_, _, 0), {m, k})
    local out = cute.zeros({m, k * tiles}, "bf16")
    kernel(atom, cA, out):launch {grid = 1, block = 128,
                                  device = "sim:sm_100a"}
    for i = 0, m - 1 do
      for j = 0, k * tiles - 1 do assert.equal(A(i, j, 0), out(i, j)) end
    end
  end)
end)

describe("cvt_tensor_a", function()
  it("converts integers of 4 bits, also in a shuffled order", function()
    local kernel = cute.kernel("convert", function(A, plain, shuffled, mxf8)
      local r = cute.make_rmem_tensor({16}, cute.i4)
      cute.basic_copy(A, r)
      local function put(x, to)
        local held = cute.make_rmem_tensor({16}, to.element_type)
        held:store(x)
        utils.store_transformed_a(held, to)
      end
      put(utils.cvt_tensor_a(r, "bf16", false), plain)
      put(utils.cvt_tensor_a(r, "bf16", true), shuffled)
      put(utils.cvt_tensor_a_mxf8(r, "e4m3"), mxf8)
    end)
    local A = cute.zeros({16}, "i4")
    for i = 0, 15 do A[i] = (i * 5) % 16 - 8 end
    local plain, shuffled = cute.zeros({16}, "bf16"), cute.zeros({16}, "bf16")
    local mxf8 = cute.zeros({16}, "e4m3")
    kernel(A, plain, shuffled, mxf8):launch {grid = 1, block = 1,
                                             device = "sim:sm_100a"}
    local order = {[0] = 0, 2, 1, 3, 4, 6, 5, 7}
    for i = 0, 15 do
      assert.equal(A[i], plain[i])
      assert.equal(A[i], mxf8[i])
      assert.equal(A[i // 8 * 8 + order[i % 8]],
                   shuffled[i // 8 * 8 + i % 8])
    end
  end)
end)

describe("check_int8_mma_arch", function()
  it("rejects i8 and u8 on sm_107", function()
    assert.error_matches(function()
      helpers.check_int8_mma_arch("u8", "sm_107a")
    end, "sm_107a has no tcgen05.mma of u8")
    helpers.check_int8_mma_arch("i8", "sm_100a")
    helpers.check_int8_mma_arch("f16", "sm_107a")
  end)
end)
-- SPDX-License-Identifier: MIT
