-- Compares layouts of cute.utils.blackwell_helpers with those of the Python DSL
-- 4.8.1 (nvidia-cutlass-dsl), which printed the texts below on a host without a
-- GPU.
local cute = require "cute"
local core = require "cute.core"
local helpers = cute.utils.blackwell_helpers

-- Compares l with the DSL's text. The DSL's swizzle counts bytes, and `bits` is
-- the width of the elements that our swizzle counts. For SW128_32B the atom of
-- the DSL has 8 rows instead of 4, so only offsets are compared.
local function same(l, bits, want)
  local text = tostring(l)
  local b, m, s = text:match "Sw<(%d+),(%d+),(%d+)>"
  if b then
    m = tonumber(m)
    while bits > 8 do bits, m = bits // 2, m + 1 end
    while bits < 8 do bits, m = bits * 2, m - 1 end
    l = core.get_nonswizzle_portion(l)
    text = ("S<%s,%d,%s> o 0 o %s"):format(b, m, s, tostring(l))
  end
  if text == want then return end
  local plain = want:match "^S<2,5,2> o 0 o (.*)$"
  assert.truthy(plain and text:find "^S<2,5,2>", text .. "\n" .. want)
  local other = core.layout(plain)
  for i = 0, core.size(other) - 1 do assert.equal(other(i), l(i), want) end
end

-- {CTAs, M, N, type of a scale factor, number of elements that it scales,
-- layouts of SFA and SFB in shared memory, layouts of SFA and SFB in tensor
-- memory, layouts of A and B} for e2m1, K = 256 and 3 stages
local SCALED = {
  {1, 128, 128, "ue8m0", 32,
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)"},
  {1, 128, 128, "e4m3", 16,
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)"},
  {2, 256, 128, "ue8m0", 32,
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((64,64),1,4,3):((256,1),0,64,16384)"},
  {2, 256, 128, "e4m3", 16,
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((64,64),1,4,3):((256,1),0,64,16384)"},
  {1, 128, 64, "ue8m0", 32,
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((64,64),1,4,3):((256,1),0,64,16384)"},
  {1, 128, 64, "e4m3", 16,
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((64,64),1,4,3):((256,1),0,64,16384)"},
  {2, 256, 256, "ue8m0", 32,
   "((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),2),(32,2)),1,(2,2),3):((((16,4),1024),(0,1)),0,(2,512),2048)",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "((((32,8),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,32))",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)"},
  {2, 256, 256, "e4m3", 16,
   "((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),2),(16,4)),1,4,3):((((16,4),2048),(0,1)),0,512,4096)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)"},
}

-- {type, majors of A and B, CTAs, M, N, layouts of A, of B, of C (f16, N-major)
-- and of C (M-major)} for K = 64, 3 stages of A and B and 2 stages of C
local PLAIN = {
  {"f16", "K", "MN", 1, 128, 128,
   "S<3,4,3> o 0 o ((128,16),1,4,3):((64,1),0,16,8192)",
   "S<3,4,3> o 0 o (((64,2),16),1,4,3):(((1,4096),64),0,1024,8192)",
   "S<3,4,3> o 0 o ((128,(64,2)),1,1,2):((64,(1,8192)),0,0,16384)",
   "S<3,4,3> o 0 o (((64,2),128),1,1,2):(((1,8192),64),0,0,16384)"},
  {"f16", "K", "MN", 2, 256, 128,
   "S<3,4,3> o 0 o ((128,16),1,4,3):((64,1),0,16,8192)",
   "S<3,4,3> o 0 o ((64,16),1,4,3):((1,64),0,1024,4096)",
   "S<3,4,3> o 0 o ((128,(64,2)),1,1,2):((64,(1,8192)),0,0,16384)",
   "S<3,4,3> o 0 o (((64,2),128),1,1,2):(((1,8192),64),0,0,16384)"},
  {"f16", "K", "MN", 1, 64, 64,
   "S<3,4,3> o 0 o ((64,16),1,4,3):((64,1),0,16,4096)",
   "S<3,4,3> o 0 o ((64,16),1,4,3):((1,64),0,1024,4096)",
   "S<3,4,3> o 0 o ((64,64),1,1,2):((64,1),0,0,4096)",
   "S<3,4,3> o 0 o ((64,64),1,1,2):((1,64),0,0,4096)"},
  {"tf32", "MN", "K", 1, 128, 128,
   "S<2,5,2> o 0 o (((32,4),8),1,8,3):(((1,2048),32),0,256,8192)",
   "S<3,4,3> o 0 o ((128,8),1,(4,2),3):((32,1),0,(8,4096),8192)",
   "S<3,4,3> o 0 o ((128,(64,2)),1,1,2):((64,(1,8192)),0,0,16384)",
   "S<3,4,3> o 0 o (((64,2),128),1,1,2):(((1,8192),64),0,0,16384)"},
  {"tf32", "MN", "K", 2, 256, 128,
   "S<2,5,2> o 0 o (((32,4),8),1,8,3):(((1,2048),32),0,256,8192)",
   "S<3,4,3> o 0 o ((64,8),1,(4,2),3):((32,1),0,(8,2048),4096)",
   "S<3,4,3> o 0 o ((128,(64,2)),1,1,2):((64,(1,8192)),0,0,16384)",
   "S<3,4,3> o 0 o (((64,2),128),1,1,2):(((1,8192),64),0,0,16384)"},
  {"tf32", "MN", "K", 1, 64, 64,
   "S<2,5,2> o 0 o (((32,2),8),1,8,3):(((1,2048),32),0,256,4096)",
   "S<3,4,3> o 0 o ((64,8),1,(4,2),3):((32,1),0,(8,2048),4096)",
   "S<3,4,3> o 0 o ((64,64),1,1,2):((64,1),0,0,4096)",
   "S<3,4,3> o 0 o ((64,64),1,1,2):((1,64),0,0,4096)"},
  {"e4m3", "MN", "MN", 1, 128, 128,
   "S<3,4,3> o 0 o ((128,32),1,2,3):((1,128),0,4096,8192)",
   "S<3,4,3> o 0 o ((128,32),1,2,3):((1,128),0,4096,8192)",
   "S<3,4,3> o 0 o ((128,(64,2)),1,1,2):((64,(1,8192)),0,0,16384)",
   "S<3,4,3> o 0 o (((64,2),128),1,1,2):(((1,8192),64),0,0,16384)"},
  {"e4m3", "MN", "MN", 2, 256, 128,
   "S<3,4,3> o 0 o ((128,32),1,2,3):((1,128),0,4096,8192)",
   "S<2,4,3> o 0 o ((64,32),1,2,3):((1,64),0,2048,4096)",
   "S<3,4,3> o 0 o ((128,(64,2)),1,1,2):((64,(1,8192)),0,0,16384)",
   "S<3,4,3> o 0 o (((64,2),128),1,1,2):(((1,8192),64),0,0,16384)"},
  {"e4m3", "MN", "MN", 1, 64, 64,
   "S<2,4,3> o 0 o ((64,32),1,2,3):((1,64),0,2048,4096)",
   "S<2,4,3> o 0 o ((64,32),1,2,3):((1,64),0,2048,4096)",
   "S<3,4,3> o 0 o ((64,64),1,1,2):((64,1),0,0,4096)",
   "S<3,4,3> o 0 o ((64,64),1,1,2):((1,64),0,0,4096)"},
}

-- {M, N, whether two CTAs form a pair, C's contiguous mode, type, epilogue
-- tile, epilogue tile if the epilogue also reads C, layout of C in shared
-- memory}
local EPILOGUE = {
  {128, 128, false, "row", "f16",
   "(128:1, 32:1)",
   "(128:1, 32:1)",
   "S<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))"},
  {128, 128, false, "row", "f32",
   "(128:1, 32:1)",
   "(128:1, 16:1)",
   "S<3,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))"},
  {128, 128, false, "row", "e4m3",
   "(128:1, 32:1)",
   "(128:1, 64:1)",
   "S<1,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))"},
  {128, 128, false, "col", "f16",
   "(128:1, 32:1)",
   "(128:1, 32:1)",
   "S<3,4,3> o 0 o ((64,2),(8,4),(1,2)):((1,2048),(64,512),(0,4096))"},
  {128, 128, false, "col", "f32",
   "(128:1, 32:1)",
   "(128:1, 16:1)",
   "S<2,5,2> o 0 o ((32,4),(8,4),(1,2)):((1,1024),(32,256),(0,4096))"},
  {128, 128, false, "col", "e4m3",
   "(128:1, 32:1)",
   "(128:1, 64:1)",
   "S<3,4,3> o 0 o ((128,1),(8,4),(1,2)):((1,0),(128,1024),(0,4096))"},
  {128, 256, false, "row", "f16",
   "(128:1, 32:1)",
   "(128:1, 64:1)",
   "S<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))"},
  {128, 256, false, "row", "f32",
   "(128:1, 32:1)",
   "(128:1, 32:1)",
   "S<3,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))"},
  {128, 256, false, "row", "e4m3",
   "(128:1, 32:1)",
   "(128:1, 64:1)",
   "S<1,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))"},
  {128, 256, false, "col", "f16",
   "(128:1, 32:1)",
   "(128:1, 64:1)",
   "S<3,4,3> o 0 o ((64,2),(8,4),(1,2)):((1,2048),(64,512),(0,4096))"},
  {128, 256, false, "col", "f32",
   "(128:1, 32:1)",
   "(128:1, 32:1)",
   "S<2,5,2> o 0 o ((32,4),(8,4),(1,2)):((1,1024),(32,256),(0,4096))"},
  {128, 256, false, "col", "e4m3",
   "(128:1, 32:1)",
   "(128:1, 64:1)",
   "S<3,4,3> o 0 o ((128,1),(8,4),(1,2)):((1,0),(128,1024),(0,4096))"},
  {64, 128, true, "row", "f16",
   "(64:1, (32,2):(1,64))",
   "(64:1, (16,2):(1,64))",
   "S<2,4,3> o 0 o ((8,8),(32,2),(1,2)):((32,256),(1,2048),(0,4096))"},
  {64, 128, true, "row", "f32",
   "(64:1, (32,2):(1,64))",
   "(64:1, (16,2):(1,64))",
   "S<3,4,3> o 0 o ((8,8),(32,2),(1,2)):((32,256),(1,2048),(0,4096))"},
  {64, 128, true, "row", "e4m3",
   "(64:1, (32,2):(1,64))",
   "(64:1, (32,2):(1,64))",
   "S<1,4,3> o 0 o ((8,8),(32,2),(1,2)):((32,256),(1,2048),(0,4096))"},
  {64, 128, true, "col", "f16",
   "(64:1, (32,2):(1,64))",
   "(64:1, (16,2):(1,64))",
   "S<3,4,3> o 0 o ((64,1),(8,8),(1,2)):((1,0),(64,512),(0,4096))"},
  {64, 128, true, "col", "f32",
   "(64:1, (32,2):(1,64))",
   "(64:1, (16,2):(1,64))",
   "S<2,5,2> o 0 o ((32,2),(8,8),(1,2)):((1,2048),(32,256),(0,4096))"},
  {64, 128, true, "col", "e4m3",
   "(64:1, (32,2):(1,64))",
   "(64:1, (32,2):(1,64))",
   "S<2,4,3> o 0 o ((64,1),(8,8),(1,2)):((1,0),(64,512),(0,4096))"},
}

describe("cute.utils.blackwell_helpers", function()
  it("lays out scale factors as the Python DSL does", function()
    assert.equal("(((32,4),2),((16,4),2),(1,2)):(((16,4),1024),((0,1),512)," ..
                 "(0,2048))",
      tostring(cute.utils.tile_atom_to_shape_SF({256, 128, 2}, 16)))
    for _, c in ipairs(SCALED) do
      local ctas, m, n, sf, vec = table.unpack(c)
      local mma = helpers.make_blockscaled_trivial_tiled_mma("e2m1", "e2m1",
        "K", "K", sf, vec, ctas, {m, n})
      local tile = {m, n, 256}
      local a = helpers.make_smem_layout_sfa(mma, tile, vec, 3)
      local b = helpers.make_smem_layout_sfb(mma, tile, vec, 3)
      local all = core._
      same(a, 8, c[6])
      same(b, 8, c[7])
      same(helpers.make_tmem_layout_sfa(mma, tile, vec, a(all, all, all, 0)), 8,
           c[8])
      same(helpers.make_tmem_layout_sfb(mma, tile, vec, b(all, all, all, 0)), 8,
           c[9])
      same(helpers.make_smem_layout_a(mma, tile, "e2m1", 3), 4, c[10])
      same(helpers.make_smem_layout_b(mma, tile, "e2m1", 3), 4, c[11])
    end
  end)

  it("lays out operands as the Python DSL does", function()
    for _, c in ipairs(PLAIN) do
      local type, a, b, ctas, m, n = table.unpack(c)
      local mma = helpers.make_trivial_tiled_mma(type, type, a, b, "f32", ctas,
                                                 {m, n})
      local tile, bits = {m, n, 64}, cute[type].bits
      same(helpers.make_smem_layout_a(mma, tile, type, 3), bits, c[7])
      same(helpers.make_smem_layout_b(mma, tile, type, 3), bits, c[8])
      same(helpers.make_smem_layout_c(mma, tile, "f16", 2, false), 16, c[9])
      same(helpers.make_smem_layout_c(mma, tile, "f16", 2, true), 16, c[10])
    end
  end)

  it("chooses the epilogue's tiles of the Python DSL", function()
    local function text(tile)
      return ("(%s, %s)"):format(tile[1], tile[2])
    end
    for _, c in ipairs(EPILOGUE) do
      local m, n, pair, layout, type = table.unpack(c)
      local plain = helpers.compute_epilogue_tile_shape({m, n, 64}, pair,
                                                        layout, type)
      local source = helpers.compute_epilogue_tile_shape({m, n, 64}, pair,
        layout, type, {layout_c = layout, elem_ty_c = type})
      assert.equal(c[6], text(plain))
      assert.equal(c[7], text(source))
      same(helpers.make_smem_layout_epi(type, layout, plain, 2),
           cute[type].bits, c[8])
    end
  end)

  it("counts columns of accumulators by their layouts", function()
    local columns = helpers.compute_acc_tmem_cols_per_stage
    -- one CTA: two tiles of 64 rows share columns, unless A is in tensor memory
    assert.equal(128, columns(64, 256, false, 128, false))
    assert.equal(256, columns(64, 256, false, 128, true))
    assert.equal(256, columns(128, 256, false, 256, false))
    -- With a pair of CTAs, 64 rows occupy all 128 lanes.
    assert.equal(64, columns(64, 128, true, 128, false))
    assert.equal(128, columns(128, 128, true, 128, false))
  end)

  it("makes the Python DSL's MMAs with K = 96", function()
    for _, c in ipairs {
      {"ue8m0", 32, 1, {128, 128}, "1:0", "(1,(128,96)):(0,(1,128))",
       "(1,(128,96)):(0,(1,128))", "((128,96),1,8)"},
      {"e4m3", 16, 2, {256, 192}, "2:1", "(2,(128,96)):(128,(1,256))",
       "(2,(96,96)):(96,(1,192))", "((128,96),1,8)"},
      {"ue8m0", 16, 1, {128, 64}, "1:0", "(1,(128,96)):(0,(1,128))",
       "(1,(64,96)):(0,(1,64))", "((128,96),1,8)"}} do
      local mma = helpers.sm103_make_blockscaled_trivial_tiled_mma(
        c[1], c[2], c[3], c[4])
      assert.same({c[4][1], c[4][2], 96}, mma.shape_mnk)
      assert.same({c[5], c[6], c[7], c[8]}, {tostring(mma.thr_id),
        tostring(mma.tv_layout_A), tostring(mma.tv_layout_B),
        tostring(mma:partition_shape_A {c[4][1], 768})})
      assert.equal(c[2], mma.sf_vec_size)
    end
    for _, c in ipairs {
      {"e4m3", 32, 1, {128, 128}, "no instruction has a scale factor of e4m3"},
      {"ue8m0", 16, 1, {64, 128}, "M must be 128, N a multiple of 8"},
      {"ue8m0", 16, 2, {128, 24}, "M must be 128 or 256, N a multiple of 16"},
      {"ue8m0", 16, 3, {128, 64}, "cta_group must be"}} do
      assert.error_matches(function()
        helpers.sm103_make_blockscaled_trivial_tiled_mma(c[1], c[2], c[3], c[4])
      end, c[5])
    end
    assert.error_matches(function()
      local mma = helpers.sm103_make_blockscaled_trivial_tiled_mma(
        "ue8m0", 32, 1, {128, 128})
      cute.kernel("k", function(x)
        cute.gemm(mma, x, {x, x}, {x, x}, x)
      end)(cute.zeros({4}, "f32")):trace {block = 32}
    end, "K of 96, are not supported")
  end)

  it("rejects what no instruction has", function()
    assert.error_matches(function()
      helpers.make_blockscaled_trivial_tiled_mma("e4m3", "e4m3", "K", "K",
        "e4m3", 16, 1, {128, 128})
    end, "no instruction for e4m3 and e4m3 has a scale factor of e4m3 for 16")
    assert.error_matches(function()
      helpers.make_trivial_tiled_mma("f16", "bf16", "K", "K", "f32", 1,
                                     {128, 128})
    end, "no instruction multiplies f16 and bf16")
    assert.error_matches(function()
      helpers.check_gemm_tma_alignment(128, 128, 100, "f16", "f16", nil, "k",
                                       "k")
    end, "A: K = 100 is not a multiple of 8 elements of f16")
    assert.error_matches(function()
      helpers.check_gemm_tma_alignment(128, 128, 64, "f16", "f16", nil, "n",
                                       "k")
    end, "A: the major mode is \"n\"; it may be m or k")
    helpers.check_gemm_tma_alignment(128, 128, 64, "f16", "f16", "f32", "k",
                                     "k", "n")
  end)
end)
-- SPDX-License-Identifier: MIT
