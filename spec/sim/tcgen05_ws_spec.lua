-- Tests tcgen05.mma.ws, whose accumulators occupy all lanes, on the simulator.
-- Tiles are compared with sums on the host. Values are small integers, so
-- results must be equal. NVRTC must compile each kernel.
local block = require "spec.tensor_block"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._

-- Returns a kernel that multiplies one tile of m x n x k. commit: a function
-- that replaces tcgen05.commit. columns: the number of columns to allocate, by
-- default as many as D has.
local function product(o, commit, columns)
  local mma = cute.make_tiled_mma("SM100_MMA_" .. o[1])
  local dtype, acc = cute[o.type], cute[o.acc]
  local m, n = mma.shape_mnk[1], mma.shape_mnk[2]
  columns = columns or math.max(32, n * m // 128)
  commit = commit or tcgen05.commit
  local function layout(major, rows)
    return cute.tile_to_shape(tcgen05.make_smem_layout_atom(
      major .. "_" .. o.swizzle, dtype), {rows, o.k},
      major == "K" and {0, 1} or {1, 0})
  end
  return cute.kernel("ws", function(A, B, C)
    local sA = cute.make_smem_tensor(dtype, layout(o.major or "K", m), 1024)
    local sB = cute.make_smem_tensor(dtype, layout(o.major or "K", n), 1024)
    local go = block.begin(columns, acc)
    block.copy_in(sA, A)
    block.copy_in(sB, B)
    local ptr, bar = go()
    local thr = mma:get_slice(0)
    local a = mma:make_fragment_A(thr:partition_A(sA))
    local b = mma:make_fragment_B(thr:partition_B(sB))
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    cute.when(arch.thread_idx():eq(0), function()
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, a, b, sums)
      commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    block.copy_out(cute.make_copy_atom(o.load, acc), sums({_, _}, 0, 0),
                   part({_, _}, 0, 0))
    block.finish(ptr, columns)
  end), m, n
end

local Ld = tcgen05.Ld32x32bOp(16)
local LdPack = tcgen05.Ld32x32bOp(8, tcgen05.Pack.PACK_16b_IN_32b)

local CASES = {
  {"F16BF16_WS_SS<half_t,half_t,float,32,64,K,K>", type = "f16", acc = "f32",
   k = 32, swizzle = "SW64", load = Ld},
  {"F16BF16_WS_SS<bfloat16_t,bfloat16_t,float,64,128,MN,MN>", type = "bf16",
   acc = "f32", k = 32, swizzle = "SW128", major = "MN", load = Ld},
  {"F16BF16_WS_SS<half_t,half_t,half_t,64,64,K,K>", type = "f16", acc = "f16",
   k = 32, swizzle = "SW64", load = LdPack},
  {"F16BF16_WS_SS<half_t,half_t,float,128,64,K,K>", type = "f16", acc = "f32",
   k = 32, swizzle = "INTER", load = Ld},
  {"TF32_WS_SS<tfloat32_t,tfloat32_t,float,32,128,K,K>", type = "tf32",
   acc = "f32", k = 32, swizzle = "SW128", load = Ld},
  {"F8F6F4_WS_SS<float_e4m3_t,float_e4m3_t,float,64,64,K,K>", type = "e4m3",
   acc = "f32", k = 64, swizzle = "SW64", load = Ld},
  {"S8_WS_SS<int8_t,int8_t,int32_t,32,256,K,K>", type = "i8", acc = "i32",
   k = 32, swizzle = "SW32", load = Ld},
}

describe("tcgen05.mma.ws", function()
  for i, o in ipairs(CASES) do
    it("is exact: " .. o[1] .. support.long(i, 3), function()
      local kernel, m, n = product(o)
      local A = block.small(cute.zeros({m, o.k}, o.type), 7, -2)
      local B = block.small(cute.zeros({n, o.k}, o.type), 3, -2)
      local call = block.compare(kernel, A, B, cute.zeros({m, n}, o.acc))
      for _, target in ipairs {"sm_100a", "sm_110a"} do
        block.compile(call, target)
      end
      if o.type ~= "i8" then block.compile(call, "sm_103f") end
    end)
  end

  it("has parts of the columns in the lanes behind its rows #long",
     function()
    -- the expected layouts are those that CuTe C++ prints for tmem_frg_ws
    for shape, want in pairs {
      ["64,64"] = "((64,(32,2)),1,1):((65536,(1,4194304)),0,0)",
      ["64,256"] = "((64,(128,2)),1,1):((65536,(1,4194304)),0,0)",
      ["128,64"] = "((128,64),1,1):((65536,1),0,0)",
      ["32,64"] = "((32,(16,4)),1,1):((65536,(1,2097152)),0,0)"} do
      local mma = cute.make_tiled_mma(
        ("SM100_MMA_F16BF16_WS_SS<half_t,half_t,float,%s,K,K>"):format(shape))
      local m, n = shape:match "(%d+),(%d+)"
      assert.equal(want, tostring(mma:make_fragment_C(cute.make_layout(
        mma:partition_shape_C {m // 1, n // 1}))))
    end
    for _, of in ipairs {"32,72", "96,64", "256,64"} do
      support.raises("no MMA atom", cute.make_mma_atom,
        ("SM100_MMA_F16BF16_WS_SS<half_t,half_t,float,%s,K,K>"):format(of))
    end
  end)

  it("is reported without a commit, and for missing columns", function()
    local o = {"F16BF16_WS_SS<half_t,half_t,float,32,256,K,K>", type = "f16",
               acc = "f32", k = 32, swizzle = "SW64", load = Ld}
    local function why(...)
      local kernel, m, n = product(o, ...)
      local call = kernel(cute.zeros({m, o.k}, o.type),
                          cute.zeros({n, o.k}, o.type),
                          cute.zeros({m, n}, o.acc))
      local ok, text = pcall(call.launch, call, {
        grid = 1, block = 128, device = "sim:sm_100a"})
      return not ok and tostring(text) or "no error"
    end
    assert.matches("tcgen05.commit", why(arch.mbarrier_arrive))
    assert.matches("columns 0 to 63 of tensor memory go beyond", why(nil, 32))
  end)
end)
-- SPDX-License-Identifier: MIT
