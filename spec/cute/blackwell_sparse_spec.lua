-- Compares layouts of sparse operands of tcgen05.mma with those of the Python
-- DSL 4.8.1 (nvidia-cutlass-dsl), which printed the texts below on a host
-- without a GPU.
local cute = require "cute"
local core = require "cute.core"
local helpers = cute.utils.blackwell_helpers

-- {type, major, CTAs, M, N, K, layouts of A and of E in shared memory} for 3
-- stages
local SHARED = {
  {"f16", "K", 1, 128, 128, 128,
   "S<3,4,3> o 0 o ((128,32),1,4,3):((128,1),0,32,16384)",
   "(((8,2,8),(16,2)),1,4,3):(((128,16,2048),(1,1024)),0,32,16384)"},
  {"f16", "K", 1, 128, 128, 256,
   "S<3,4,3> o 0 o ((128,32),1,(4,2),3):((128,1),0,(32,16384),32768)",
   "(((8,2,8),(16,2)),1,(4,2),3):" ..
   "(((128,16,2048),(1,1024)),0,(32,16384),32768)"},
  {"f16", "K", 1, 64, 64, 128,
   "S<3,4,3> o 0 o ((64,32),1,4,3):((128,1),0,32,8192)",
   "(((8,2,4),(16,2)),2,4,3):(((128,16,2048),(1,1024)),8192,32,16384)"},
  {"f16", "K", 1, 64, 64, 256,
   "S<3,4,3> o 0 o ((64,32),1,(4,2),3):((128,1),0,(32,8192),16384)",
   "(((8,2,4),(16,2)),2,(4,2),3):" ..
   "(((128,16,2048),(1,1024)),8192,(32,16384),32768)"},
  {"f16", "K", 2, 256, 128, 128,
   "S<3,4,3> o 0 o ((128,32),1,4,3):((128,1),0,32,16384)",
   "(((8,2,8),(16,2)),1,4,3):(((128,16,2048),(1,1024)),0,32,16384)"},
  {"f16", "K", 2, 256, 128, 256,
   "S<3,4,3> o 0 o ((128,32),1,(4,2),3):((128,1),0,(32,16384),32768)",
   "(((8,2,8),(16,2)),1,(4,2),3):" ..
   "(((128,16,2048),(1,1024)),0,(32,16384),32768)"},
  {"f16", "MN", 1, 128, 128, 128,
   "S<3,4,3> o 0 o (((64,2),(2,16)),1,4,3):(((2,8192),(1,128)),0,2048,16384)",
   "(((8,2,8),(16,2)),1,4,3):(((128,16,2048),(1,1024)),0,32,16384)"},
  {"f16", "MN", 1, 128, 128, 256,
   "S<3,4,3> o 0 o (((64,2),(2,16)),1,8,3):(((2,16384),(1,128)),0,2048,32768)",
   "(((8,2,8),(16,2)),1,(4,2),3):" ..
   "(((128,16,2048),(1,1024)),0,(32,16384),32768)"},
  {"f16", "MN", 1, 64, 64, 128,
   "S<3,4,3> o 0 o ((64,(2,16)),1,4,3):((2,(1,128)),0,2048,8192)",
   "(((8,2,4),(16,2)),2,4,3):(((128,16,2048),(1,1024)),8192,32,16384)"},
  {"f16", "MN", 1, 64, 64, 256,
   "S<3,4,3> o 0 o ((64,(2,16)),1,8,3):((2,(1,128)),0,2048,16384)",
   "(((8,2,4),(16,2)),2,(4,2),3):" ..
   "(((128,16,2048),(1,1024)),8192,(32,16384),32768)"},
  {"f16", "MN", 2, 256, 128, 128,
   "S<3,4,3> o 0 o (((64,2),(2,16)),1,4,3):(((2,8192),(1,128)),0,2048,16384)",
   "(((8,2,8),(16,2)),1,4,3):(((128,16,2048),(1,1024)),0,32,16384)"},
  {"f16", "MN", 2, 256, 128, 256,
   "S<3,4,3> o 0 o (((64,2),(2,16)),1,8,3):(((2,16384),(1,128)),0,2048,32768)",
   "(((8,2,8),(16,2)),1,(4,2),3):" ..
   "(((128,16,2048),(1,1024)),0,(32,16384),32768)"},
  {"e4m3", "K", 1, 128, 128, 128,
   "S<2,4,3> o 0 o ((128,64),1,2,3):((128,1),0,64,16384)",
   "((128,64),1,2,3):((128,1),0,64,16384)"},
  {"e4m3", "K", 1, 128, 128, 256,
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "((128,64),1,(2,2),3):((128,1),0,(64,16384),32768)"},
  {"e4m3", "K", 1, 64, 64, 128,
   "S<2,4,3> o 0 o ((64,64),1,2,3):((128,1),0,64,8192)",
   "((64,64),2,2,3):((128,1),8192,64,16384)"},
  {"e4m3", "K", 1, 64, 64, 256,
   "S<3,4,3> o 0 o ((64,64),1,4,3):((256,1),0,64,16384)",
   "((64,64),2,(2,2),3):((128,1),8192,(64,16384),32768)"},
  {"e4m3", "K", 2, 256, 128, 128,
   "S<2,4,3> o 0 o ((128,64),1,2,3):((128,1),0,64,16384)",
   "((128,64),1,2,3):((128,1),0,64,16384)"},
  {"e4m3", "K", 2, 256, 128, 256,
   "S<3,4,3> o 0 o ((128,64),1,4,3):((256,1),0,64,32768)",
   "((128,64),1,(2,2),3):((128,1),0,(64,16384),32768)"},
  {"e4m3", "MN", 1, 128, 128, 128,
   "S<3,4,3> o 0 o ((128,(2,32)),1,2,3):((2,(1,256)),0,8192,16384)",
   "((128,64),1,2,3):((128,1),0,64,16384)"},
  {"e4m3", "MN", 1, 128, 128, 256,
   "S<3,4,3> o 0 o ((128,(2,32)),1,4,3):((2,(1,256)),0,8192,32768)",
   "((128,64),1,(2,2),3):((128,1),0,(64,16384),32768)"},
  {"e4m3", "MN", 1, 64, 64, 128,
   "S<2,4,3> o 0 o ((64,(2,32)),1,2,3):((2,(1,128)),0,4096,8192)",
   "((64,64),2,2,3):((128,1),8192,64,16384)"},
  {"e4m3", "MN", 1, 64, 64, 256,
   "S<2,4,3> o 0 o ((64,(2,32)),1,4,3):((2,(1,128)),0,4096,16384)",
   "((64,64),2,(2,2),3):((128,1),8192,(64,16384),32768)"},
  {"e4m3", "MN", 2, 256, 128, 128,
   "S<3,4,3> o 0 o ((128,(2,32)),1,2,3):((2,(1,256)),0,8192,16384)",
   "((128,64),1,2,3):((128,1),0,64,16384)"},
  {"e4m3", "MN", 2, 256, 128, 256,
   "S<3,4,3> o 0 o ((128,(2,32)),1,4,3):((2,(1,256)),0,8192,32768)",
   "((128,64),1,(2,2),3):((128,1),0,(64,16384),32768)"},
}

-- {kind of layout atom, element type, layout atom for a sparsity of 2, layout
-- atom for a sparsity of 4}
local ATOMS = {
  {"MN_SW64", "e2m1",
   "S<2,4,3> o 0 o ((1,128),(2,8)):((0,2),(1,256))",
   "S<2,4,3> o 0 o ((1,128),(4,8)):((0,4),(1,512))"},
  {"MN_SW64", "u8",
   "S<2,4,3> o 0 o ((1,64),(2,8)):((0,2),(1,128))",
   "S<2,4,3> o 0 o ((1,64),(4,8)):((0,4),(1,256))"},
  {"MN_SW64", "f16",
   "S<2,4,3> o 0 o ((1,32),(2,8)):((0,2),(1,64))",
   "S<2,4,3> o 0 o ((1,32),(4,8)):((0,4),(1,128))"},
  {"MN_SW64", "tf32",
   "S<2,4,3> o 0 o ((1,16),(2,8)):((0,2),(1,32))",
   "S<2,4,3> o 0 o ((1,16),(4,8)):((0,4),(1,64))"},
  {"MN_SW128_32B", "tf32",
   "S<2,5,2> o 0 o ((1,32),(2,8)):((0,2),(1,64))",
   "S<2,5,2> o 0 o ((1,32),(4,8)):((0,4),(1,128))"},
  {"K_INTER", "e2m1",
   "S<0,4,3> o 0 o ((1,8),(2,32)):((0,64),(1,2))",
   "S<0,4,3> o 0 o ((1,8),(4,32)):((0,128),(1,4))"},
  {"K_INTER", "u8",
   "S<0,4,3> o 0 o ((1,8),(2,16)):((0,32),(1,2))",
   "S<0,4,3> o 0 o ((1,8),(4,16)):((0,64),(1,4))"},
  {"K_INTER", "f16",
   "S<0,4,3> o 0 o ((1,8),(2,8)):((0,16),(1,2))",
   "S<0,4,3> o 0 o ((1,8),(4,8)):((0,32),(1,4))"},
  {"K_INTER", "tf32",
   "S<0,4,3> o 0 o ((1,8),(2,4)):((0,8),(1,2))",
   "S<0,4,3> o 0 o ((1,8),(4,4)):((0,16),(1,4))"},
  {"K_SW128", "e2m1",
   "S<3,4,3> o 0 o ((1,8),(2,256)):((0,512),(1,2))",
   "S<3,4,3> o 0 o ((1,8),(4,256)):((0,1024),(1,4))"},
  {"K_SW128", "u8",
   "S<3,4,3> o 0 o ((1,8),(2,128)):((0,256),(1,2))",
   "S<3,4,3> o 0 o ((1,8),(4,128)):((0,512),(1,4))"},
  {"K_SW128", "f16",
   "S<3,4,3> o 0 o ((1,8),(2,64)):((0,128),(1,2))",
   "S<3,4,3> o 0 o ((1,8),(4,64)):((0,256),(1,4))"},
  {"K_SW128", "tf32",
   "S<3,4,3> o 0 o ((1,8),(2,32)):((0,64),(1,2))",
   "S<3,4,3> o 0 o ((1,8),(4,32)):((0,128),(1,4))"},
}

-- {type, tile of E, layout of E in global memory for M = 300, N = 64, K = 500
-- and 3 batches}
local GLOBAL = {
  {"e2m1", "(128,256):(256,1)",
   "((128,3),(256,2),3):((256,32768),(1,98304),196608)"},
  {"u8", "(128,128):(128,1)",
   "((128,3),(128,4),3):((128,16384),(1,49152),196608)"},
  {"e4m3", "(128,128):(128,1)",
   "((128,3),(128,4),3):((128,16384),(1,49152),196608)"},
  {"tf32", "((8,2,8),(8,2,4)):((64,8,1024),(1,512,16))",
   "(((8,2,8),3),((8,2,4),8),3):" ..
   "(((64,8,1024),8192),((1,512,16),24576),196608)"},
  {"f16", "((8,2,8),(16,2,4)):((128,16,2048),(1,1024,32))",
   "(((8,2,8),3),((16,2,4),4),3):" ..
   "(((128,16,2048),16384),((1,1024,32),49152),196608)"},
  {"bf16", "((8,2,8),(16,2,4)):((128,16,2048),(1,1024,32))",
   "(((8,2,8),3),((16,2,4),4),3):" ..
   "(((128,16,2048),16384),((1,1024,32),49152),196608)"},
}

-- {type, further modes of the shape, layout of E in tensor memory}. For e2m1,
-- lanes are half as far apart in the DSL's layout as in that of CuTe C++.
local TENSOR = {
  {"f16", {1, 1}, "(((8,2,8),(16,2)),1,1):" ..
   "(((2097152,16,33554432),(1,16777216)),0,0)"},
  {"f16", {1, 4}, "(((8,2,8),(16,2)),1,4):" ..
   "(((2097152,16,33554432),(1,16777216)),0,32)"},
  {"f16", {2, 2}, "(((8,2,8),(16,2)),2,2):" ..
   "(((2097152,16,33554432),(1,16777216)),32,64)"},
  {"f16", {2, 4, 3}, "(((8,2,8),(16,2)),2,4,3):" ..
   "(((2097152,16,33554432),(1,16777216)),32,64,256)"},
  {"u8", {1, 1}, "((128,64),1,1):((2097152,1),0,0)"},
  {"u8", {1, 4}, "((128,64),1,4):((2097152,1),0,64)"},
  {"u8", {2, 2}, "((128,64),2,2):((2097152,1),64,128)"},
  {"u8", {2, 4, 3}, "((128,64),2,4,3):((2097152,1),64,128,512)"},
  {"e2m1", {1, 1}, "((128,128),1,1):((2097152,1),0,0)"},
  {"e2m1", {1, 4}, "((128,128),1,4):((2097152,1),0,128)"},
  {"e2m1", {2, 2}, "((128,128),2,2):((2097152,1),128,256)"},
  {"e2m1", {2, 4, 3}, "((128,128),2,4,3):((2097152,1),128,256,1024)"},
}

local CPP = {f16 = "F16BF16%s_SS_SPARSE<half_t,half_t",
             e4m3 = "F8F6F4%s_SS_SPARSE<float_e4m3_t,float_e4m3_t"}
local K = {tf32 = 16, f16 = 32, bf16 = 32, u8 = 64, e2m1 = 128}

-- Compares a layout with the DSL's text. The DSL's swizzle counts bytes, and
-- `bits` is the width of the elements that our swizzle counts. A swizzle of 0
-- bits in the DSL's text means none. For SW128_32B the tile of the DSL has 8
-- rows instead of 4, so only offsets are compared.
local function same(l, bits, want)
  local sw, plain = want:match "^S<(%d,%d,%d)> o 0 o (.*)$"
  if not sw then return assert.equal(want, tostring(l)) end
  local b, m, s = tostring(core.get_swizzle(l)):match "<(%d+),(%d+),(%d+)>"
  m = tonumber(m)
  while bits > 8 do bits, m = bits // 2, m + 1 end
  while bits < 8 do bits, m = bits * 2, m - 1 end
  if sw:sub(1, 1) ~= "0" then
    assert.equal(sw, ("%s,%d,%s"):format(b, m, s))
  else
    assert.equal("0", b)
  end
  local mine, other = core.get_nonswizzle_portion(l), core.layout(plain)
  if sw ~= "2,5,2" then assert.equal(plain, tostring(mine)) end
  for i = 0, core.size(other) - 1 do assert.equal(other(i), mine(i)) end
end

describe("element types of sparse operands", function()
  it("are those of the Python DSL, whose integers have no sign", function()
    for dtype, want in pairs {f16 = "2 f16 8", bf16 = "2 bf16 8", i8 = "2 i8 8",
                              u8 = "2 u8 8", e4m3 = "2 e4m3 8", f32 = "2 f32 4",
                              tf32 = "2 tf32 4", e2m1 = "4 u8 16"} do
      local a, e = want:match "(%d+ %w+) (%d+)"
      local function text(x)
        return ("sparse_elem<%s,vector<1x%s>>"):format(x:match "(%d+) (%w+)")
      end
      assert.equal(text(a), tostring(helpers.make_sparse_a_dtype(dtype)))
      assert.equal(text(e .. " u8"),
                   tostring(helpers.make_sparse_e_dtype(dtype)))
    end
    assert.error_matches(function() helpers.make_sparse_e_dtype "f64" end,
                         "no metadata for f64")
  end)

  it("convert layouts to those of stored elements", function()
    local t = cute.get_sparse_elem_type(4, 2, "f16")
    assert.same({4, 2, cute.f16, 32},
                {t.num_logical, t.num_phys, t.elem_type, t.bits})
    assert.is_true(t == cute.get_sparse_elem_type(4, 2, cute.f16))
    local dense = core.layout "(3,8):(16,1)"
    local stored = t:stored(dense)
    assert.equal("(3,4):(8,1)", tostring(stored))
    -- In the order of stored elements, group g of four elements begins at
    -- position 2 g.
    for i = 0, 2 do
      for g = 0, 1 do
        assert.equal(dense(i, 4 * g) // 4 * 2, stored(i, 2 * g))
      end
    end
    for _, bad in ipairs {{3, 1}, {2, 4}, {0, 1}, {4, 1.5}} do
      assert.error_matches(function()
        cute.get_sparse_elem_type(bad[1], bad[2], "f16")
      end, bad[2] == 1.5 and "integer" or "cannot be stored")
    end
    assert.error_matches(function() t:stored(3) end, "layout")
  end)

  it("have values that kernels store", function()
    local kernel = cute.kernel("k", function(x)
      local tid = cute.arch.thread_idx()
      local e = cute.make_sparse_elem(8, {tid:to(cute.u8),
                                          (tid + 100):to(cute.u8)})
      assert(tostring(e.type) == "sparse_elem<8,vector<2xu8>>")
      e:store(x, tid)
    end)
    local x = cute.zeros({64}, cute.u8)
    kernel(x):launch {grid = 1, block = 32, device = "sim:sm_90a"}
    for i = 0, 31 do assert.same({i, i + 100}, {x[2 * i], x[2 * i + 1]}) end
    local function trace(f)
      return function() cute.kernel("k", f)(x):trace {block = 32} end
    end
    assert.error_matches(trace(function(t)  -- luacheck: ignore
      cute.make_sparse_elem(4, {1})
    end), "list of traced values")
    assert.error_matches(trace(function(t)
      cute.make_sparse_elem(4, {t[0], t[1]:to(cute.f32)})
    end), "element 2 has type f32, the first has type u8")
    assert.error_matches(trace(function(t)
      cute.make_sparse_elem(4, {t[0]:to(cute.f32)}):store(t, 0)
    end), "needs a tensor of f32")
  end)
end)

describe("sparse operands of tcgen05.mma", function()
  it("are laid out in shared memory as in the Python DSL #long", function()
    for _, c in ipairs(SHARED) do
      local type, major, ctas, m, n, k, a, e = table.unpack(c)
      local mma = cute.make_tiled_mma(cute.make_mma_atom(
        ("SM100_MMA_%s,float,%d,%d,%s,K>"):format(
          CPP[type]:format(ctas == 2 and "_2x1SM" or ""), m, n, major)))
      same(helpers.make_sparse_smem_layout_a(mma, {m, n, k}, type, 3),
           cute[type].bits // 2, a)
      same(helpers.make_sparse_smem_layout_e(mma, {m, n, k}, type, 3), 8, e)
    end
  end)

  it("have the Python DSL's atoms", function()
    for _, c in ipairs(ATOMS) do
      local bits = cute[c[2]].bits
      same(helpers.make_sparse_smem_layout_atom(c[1], c[2]), bits // 2, c[3])
      same(helpers.make_sparse_smem_layout_atom(c[1], c[2], 4), bits // 4, c[4])
    end
    assert.error_matches(function()
      helpers.make_sparse_smem_layout_atom("K_SW128", "f16", 3)
    end, "a sparsity of 3; 2 and 4 exist")
  end)

  it("have the Python DSL's metadata in global memory", function()
    for _, c in ipairs(GLOBAL) do
      assert.equal(c[2], tostring(helpers.make_tensor_e_atom_layout(c[1])))
      assert.equal(c[3], tostring(
        helpers.make_sparse_gmem_layout_e({300, 64, 500, 3}, c[1])))
    end
    assert.error_matches(function()
      helpers.make_tensor_e_atom_layout "f64"
    end, "no metadata for f64")
  end)

  it("have the Python DSL's metadata in tensor memory", function()
    for _, c in ipairs(TENSOR) do
      local want = c[3]
      if c[1] == "e2m1" then want = want:gsub("2097152", "4194304") end
      assert.equal(want, tostring(helpers.make_sparse_tmem_layout_e(
        {{128, K[c[1]]}, table.unpack(c[2])}, c[1])))
    end
    -- for tf32, the layout that CuTe C++ prints
    assert.equal(
      "(((8,2,8),(8,2)),1,2):(((1048576,8,16777216),(1,8388608)),0,16)",
      tostring(helpers.make_sparse_tmem_layout_e({{128, 16}, 1, 2}, "tf32")))
    assert.error_matches(function()
      helpers.make_sparse_tmem_layout_e({{128, 64}, 1, 1}, "f16")
    end, "K of an instruction is 64; f16 needs 32")
  end)
end)
-- SPDX-License-Identifier: MIT
