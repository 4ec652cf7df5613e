-- Tests tensor memory and tcgen05 on the simulator: MMAs of all kinds against
-- sums on the host, copies of all shapes, allocation, and notes on missing
-- fences. Values are small integers, so results must be equal. NVRTC must
-- compile each kernel.
local core = require "cute.core"
local cute = require "cute"
local block = require "spec.tensor_block"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._

local begin, finish, small = block.begin, block.finish, block.small
local copy_in, copy_out = block.copy_in, block.copy_out
local compile, compare = block.compile, block.compare

local DEVICE = "sim:sm_100a"

local function smem_layout(o, major, rows, dtype)
  return cute.tile_to_shape(tcgen05.make_smem_layout_atom(
    ("%s_%s"):format(major, o.swizzle), dtype), {rows, o.k},
    major == "K" and {0, 1} or {1, 0})
end

-- Returns a kernel that multiplies one tile of m x n x k.
local function product(o)
  local mma, acc = cute.make_tiled_mma(o.op), cute[o.acc]
  local dtype, columns = cute[o.type], 32
  local load = cute.make_copy_atom(o.load, acc)
  local tm, tn = mma:get_tile_size(0), mma:get_tile_size(1)
  while columns < o.n * o.m // tm do columns = columns * 2 end
  return cute.kernel("product", function(A, B, C)
    local sA = cute.make_smem_tensor(dtype, smem_layout(o, o.a or "K", o.m,
                                                        dtype), 1024)
    local sB = cute.make_smem_tensor(dtype, smem_layout(o, o.b or "K", o.n,
                                                        dtype), 1024)
    local go = begin(columns, acc)
    copy_in(sA, A)
    copy_in(sB, B)
    local ptr, bar = go()
    local thr = mma:get_slice(0)
    local a = mma:make_fragment_A(thr:partition_A(sA))
    local b = mma:make_fragment_B(thr:partition_B(sB))
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    cute.when(arch.thread_idx():eq(0), function()
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, a, b, sums)
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    for m = 0, o.m // tm - 1 do
      for n = 0, o.n // tn - 1 do
        copy_out(load, sums({_, _}, m, n), part({_, _}, m, n))
      end
    end
    finish(ptr, columns)
  end)
end

local Ld, Ld16 = tcgen05.Ld32x32bOp(16), tcgen05.Ld16x256bOp(2)
-- Copies of f16 accumulators from tensor memory that pack pairs of them.
local LdPack = tcgen05.Ld32x32bOp(8, tcgen05.Pack.PACK_16b_IN_32b)
local Ld16Pack = tcgen05.Ld16x256bOp(1, tcgen05.Pack.PACK_16b_IN_32b)
local F16, TF32, FP8 = tcgen05.MmaF16BF16Op, tcgen05.MmaTF32Op, tcgen05.MmaFP8Op

local CASES = {
  {"f16", type = "f16", acc = "f32", m = 128, n = 64, k = 32, swizzle = "SW64",
   op = F16("f16", "f32", {128, 64, 16}), load = Ld},
  {"bf16 without swizzle", type = "bf16", acc = "f32", m = 128, n = 48, k = 16,
   swizzle = "INTER", op = F16("bf16", "f32", {128, 48, 16}), load = Ld},
  {"bf16, M = 64", type = "bf16", acc = "f32", m = 64, n = 64, k = 32,
   swizzle = "SW64", op = F16("bf16", "f32", {64, 64, 16}), load = Ld16},
  {"bf16, two tiles with M = 64", type = "bf16", acc = "f32", m = 128, n = 32,
   k = 32, swizzle = "SW64", op = F16("bf16", "f32", {64, 32, 16}),
   load = Ld16},
  {"bf16, MN-major", type = "bf16", acc = "f32", m = 128, n = 64, k = 32,
   a = "MN", b = "MN", swizzle = "SW128",
   op = F16("bf16", "f32", {128, 64, 16}, 1, "SMEM", "MN", "MN"), load = Ld},
  {"four tiles of bf16", type = "bf16", acc = "f32", m = 256, n = 64, k = 64,
   swizzle = "SW128", op = F16("bf16", "f32", {128, 32, 16}), load = Ld},
  {"tf32", type = "tf32", acc = "f32", m = 128, n = 32, k = 32,
   swizzle = "SW128", op = TF32 {128, 32, 8}, load = Ld},
  {"tf32, MN-major", type = "tf32", acc = "f32", m = 128, n = 64, k = 32,
   a = "MN", b = "MN", swizzle = "SW128_32B",
   op = TF32({128, 64, 8}, 1, "SMEM", "MN", "MN"), load = Ld},
  {"e4m3", type = "e4m3", acc = "f32", m = 128, n = 32, k = 64,
   swizzle = "SW64", op = FP8("e4m3", "f32", {128, 32, 32}), load = Ld},
  {"e5m2, MN-major", type = "e5m2", acc = "f32", m = 128, n = 128, k = 32,
   a = "MN", b = "MN", swizzle = "SW128",
   op = FP8("e5m2", "f32", {128, 128, 32}, 1, "SMEM", "MN", "MN"), load = Ld},
  {"i8", type = "i8", acc = "i32", m = 128, n = 32, k = 64, swizzle = "SW64",
   op = tcgen05.MmaI8Op("i8", {128, 32, 32}), load = Ld},
  {"u8", type = "u8", acc = "i32", m = 64, n = 16, k = 32, swizzle = "SW32",
   op = tcgen05.MmaI8Op("u8", {64, 16, 32}), load = Ld16, least = 0},
  {"f16 with sums in f16", type = "f16", acc = "f16", m = 128, n = 64, k = 32,
   swizzle = "SW64", op = F16("f16", "f16", {128, 64, 16}), load = LdPack},
  {"f16 with sums in f16, M = 64", type = "f16", acc = "f16", m = 64, n = 32,
   k = 32, swizzle = "SW64", op = F16("f16", "f16", {64, 32, 16}),
   load = Ld16Pack},
  {"e5m2 with sums in f16", type = "e5m2", acc = "f16", m = 128, n = 32, k = 64,
   swizzle = "SW64", op = FP8("e5m2", "f16", {128, 32, 32}), load = LdPack},
}

describe("tcgen05.mma on the simulator", function()
  for i, o in ipairs(CASES) do
    it("is exact: " .. o[1] .. support.long(i, 4), function()
      local least = o.least or -2
      local A = small(cute.zeros({o.m, o.k}, o.type), 7, least)
      local B = small(cute.zeros({o.n, o.k}, o.type), 3, least)
      compile(compare(product(o), A, B, cute.zeros({o.m, o.n}, o.acc)),
              "sm_100a")
    end)
  end

  it("takes descriptors of its operands", function()
    local mma = cute.make_tiled_mma(F16("f16", "f32", {128, 32, 16}))
    local atom = tcgen05.make_smem_layout_atom("K_SW32", cute.f16)
    local la, lb = cute.tile_to_shape(atom, {128, 16}),
      cute.tile_to_shape(atom, {32, 16})
    local kernel = cute.kernel("descriptors", function(A, B, C)
      local sA = cute.make_smem_tensor(cute.f16, la, 1024)
      local sB = cute.make_smem_tensor(cute.f16, lb, 1024)
      local go = begin(32, cute.f32)
      copy_in(sA, A)
      copy_in(sB, B)
      local ptr, bar = go()
      local part = mma:get_slice(0):partition_C(C)
      local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
      local function descriptor(s)
        local d = tcgen05.make_umma_smem_desc(s.iterator,
          cute.get_nonswizzle_portion(s.layout), "K")
        local bits = tcgen05.smem_descriptor_to_int(d)
        return tcgen05.int_to_smem_descriptor(bits + 0, cute.f16)
      end
      cute.when(arch.thread_idx():eq(0), function()
        mma:set(tcgen05.Field.ACCUMULATE, false)
        cute.gemm(mma, sums, descriptor(sA), descriptor(sB), sums)
        tcgen05.commit(bar)
      end)
      arch.mbarrier_wait(bar, 0)
      arch.tcgen05_after_thread_sync()
      copy_out(cute.make_copy_atom(Ld, cute.f32), sums({_, _}, 0, 0),
               part({_, _}, 0, 0))
      finish(ptr, 32)
    end)
    compile(compare(kernel, small(cute.zeros({128, 16}, cute.f16), 7, -2),
      small(cute.zeros({32, 16}, cute.f16), 3, -2),
      cute.zeros({128, 32}, cute.f32)), "sm_100a")
  end)

  it("takes A from tensor memory", function()
    local mma = cute.make_tiled_mma(
      F16("bf16", "f32", {128, 32, 16}, 1, tcgen05.OperandSource.TMEM))
    local store = cute.make_copy_atom(tcgen05.St32x32bOp(8), cute.bf16)
    local load = cute.make_copy_atom(Ld, cute.f32)
    local layout = cute.tile_to_shape(
      tcgen05.make_smem_layout_atom("K_SW64", cute.bf16), {32, 32})
    local kernel = cute.kernel("ts", function(A, B, C)
      local sB = cute.make_smem_tensor(cute.bf16, layout, 1024)
      local go = begin(64, cute.f32)
      copy_in(sB, B)
      local ptr, bar = go()
      local thr = mma:get_slice(0)
      local b = mma:make_fragment_B(thr:partition_B(sB))
      local part = thr:partition_C(C)
      local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
      local a = cute.make_tensor(cute.recast_ptr(ptr + 32, cute.bf16),
        mma:make_fragment_A(mma:partition_shape_A {128, 32}).layout)
      local gA = thr:partition_A(A)
      for k = 0, 1 do
        local to = a({_, _}, 0, k)
        local put = tcgen05.make_tmem_copy(store, to)
        local mine = put:get_slice(arch.thread_idx())
        local from = mine:partition_S(gA({_, _}, 0, k))
        local r = cute.make_rmem_tensor(from.shape, cute.bf16)
        cute.basic_copy(from, r)
        cute.copy(put, r, mine:partition_D(to))
      end
      arch.fence_view_async_tmem_store()
      arch.tcgen05_before_thread_sync()
      arch.sync_threads()
      arch.tcgen05_after_thread_sync()
      cute.when(arch.thread_idx():eq(0), function()
        mma:set(tcgen05.Field.ACCUMULATE, false)
        cute.gemm(mma, sums, a, b, sums)
        tcgen05.commit(bar)
      end)
      arch.mbarrier_wait(bar, 0)
      arch.tcgen05_after_thread_sync()
      copy_out(load, sums({_, _}, 0, 0), part({_, _}, 0, 0))
      finish(ptr, 64)
    end)
    compare(kernel, small(cute.zeros({128, 32}, cute.bf16), 7, -2),
            small(cute.zeros({32, 32}, cute.bf16), 3, -2),
            cute.zeros({128, 32}, cute.f32))
  end)
end)

describe("an MMA of integers", function()
  it("saturates sums of integers if the atom says so", function()
    local tile = "SM100_MMA_S8_SS<int8_t,int8_t,int32_t,128,32,K,K%s>"
    local atom = tcgen05.make_smem_layout_atom("K_SW32", cute.i8)
    local la, lb = cute.tile_to_shape(atom, {128, 32}),
      cute.tile_to_shape(atom, {32, 32})
    local store = cute.make_copy_atom(tcgen05.St32x32bOp(16), cute.i32)
    local function kernel(mma)
      return cute.kernel("sums", function(A, B, C)
        local sA = cute.make_smem_tensor(cute.i8, la, 1024)
        local sB = cute.make_smem_tensor(cute.i8, lb, 1024)
        local go = begin(32, cute.i32)
        copy_in(sA, A)
        copy_in(sB, B)
        local ptr, bar = go()
        local thr = mma:get_slice(0)
        local part = thr:partition_C(C)
        local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
        local to = sums({_, _}, 0, 0)
        local own = tcgen05.make_tmem_copy(store, to):get_slice(
          arch.thread_idx())
        local from = own:partition_S(part({_, _}, 0, 0))
        local r = cute.make_rmem_tensor(from.shape, cute.i32)
        cute.basic_copy(from, r)
        cute.copy(store, r, own:partition_D(to))
        arch.fence_view_async_tmem_store()
        arch.tcgen05_before_thread_sync()
        arch.sync_threads()
        arch.tcgen05_after_thread_sync()
        cute.when(arch.thread_idx():eq(0), function()
          cute.gemm(mma, sums, mma:make_fragment_A(thr:partition_A(sA)),
                    mma:make_fragment_B(thr:partition_B(sB)), sums)
          tcgen05.commit(bar)
        end)
        arch.mbarrier_wait(bar, 0)
        arch.tcgen05_after_thread_sync()
        copy_out(cute.make_copy_atom(Ld, cute.i32), to, part({_, _}, 0, 0))
        finish(ptr, 32)
      end)
    end
    local A, B = cute.full({128, 32}, 127, cute.i8), cute.zeros({32, 32}, "i8")
    for j = 0, 31 do
      for k = 0, 31 do B[{j, k}] = j % 2 == 0 and 127 or -127 end
    end
    local sum, most = 32 * 127 * 127, 2147483647
    for names, want in pairs {[""] = {most - 9 + sum - (1 << 32),
                                      9 - most - sum + (1 << 32)},
                              [",One,One,True"] = {most, -most - 1}} do
      local C = cute.zeros({128, 32}, cute.i32)
      for i = 0, cute.size(C) - 1 do
        C[i] = i // 128 % 2 == 0 and most - 9 or 9 - most
      end
      local mma = cute.make_tiled_mma(tile:format(names))
      local call = kernel(mma)(A, B, C)
      support.report(call:launch {grid = 1, block = 128, device = DEVICE})
      assert.same(want, {C(77, 4), C(127, 31)})
      compile(call, "sm_100a")
    end
  end)
end)

-- Stores a tile with one shape of copy and loads it with another shape. Both
-- must see the same matrix of lanes and columns.
describe("copies of tensor memory", function()
  local function there_and_back(put, get, lanes, columns, dtype)
    dtype = dtype or cute.f32
    local step = 32 // dtype.bits
    local kernel = cute.kernel("copies", function(X, Y)
      local ptr = begin(32, dtype)()
      local t = cute.make_tensor(ptr, cute.make_layout(
        {{lanes // 4, 4}, columns},
        {{step << 16, 32 * step << 16}, step}))
      local tid = arch.thread_idx()
      local store = tcgen05.make_tmem_copy(cute.make_copy_atom(put, dtype), t)
      local mine = store:get_slice(tid)
      local from = mine:partition_S(X)
      local r = cute.make_rmem_tensor(from.shape, dtype)
      cute.basic_copy(from, r)
      cute.copy(store, r, mine:partition_D(t))
      arch.fence_view_async_tmem_store()
      copy_out(cute.make_copy_atom(get, dtype), t, Y)
      finish(ptr, 32)
    end)
    local X = cute.rand({lanes, columns}, dtype)
    local Y = cute.zeros({lanes, columns}, dtype)
    local call = kernel(X, Y)
    call:launch {grid = 1, block = 128, device = DEVICE}
    compile(call, "sm_100a")
    for i = 0, lanes * columns - 1 do
      if X[i] ~= Y[i] then assert.equal(X[i], Y[i], i) end
    end
  end

  it("of 32 lanes", function()
    there_and_back(tcgen05.St32x32bOp(4), tcgen05.Ld32x32bOp(2), 128, 16)
  end)
  it("of 32 lanes of 16-bit values", function()
    there_and_back(tcgen05.St32x32bOp(4, "UNPACK_32b_IN_16b"),
                   tcgen05.Ld32x32bOp(2, "PACK_16b_IN_32b"), 128, 16,
                   cute.f16)
  end)
  it("of 16-bit values fit their layout", function()
    local function make(pack, layout)
      return function()
        cute.kernel("k", function()
          local ptr = arch.retrieve_tmem_ptr(cute.f16, 16,
                                             arch.alloc_smem(cute.i32, 1))
          tcgen05.make_tmem_copy(cute.make_copy_atom(
            tcgen05.Ld32x32bOp(8, pack), cute.f16),
            cute.make_tensor(ptr, core.layout(layout)))
        end)():trace {block = 128}
      end
    end
    support.raises("values have a column each, but SM100_TMEM_LOAD_32dp32b8x "
      .. "copies two values of a column: give the operation "
      .. "Pack.PACK_16b_IN_32b", make("NONE", "(128,32):(131072,2)"))
    support.raises("columns have two values each",
                   make("PACK_16b_IN_32b", "(128,32):(131072,1)"))
  end)
  it("are packed by a Pack and unpacked by an Unpack", function()
    support.raises("is no Unpack; NONE and UNPACK_32b_IN_16b are",
                   tcgen05.St32x32bOp, 4, "PACK_16b_IN_32b")
  end)
  local shapes = {"16x64b", "16x128b", "16x256b"}
  for i, put in ipairs(shapes) do
    local get = shapes[i % #shapes + 1]
    it(("of 16 lanes: %s, %s"):format(put, get), function()
      there_and_back(tcgen05["St" .. put .. "Op"](2),
                     tcgen05["Ld" .. get .. "Op"](1), 64, 16)
    end)
    it(("of 16 lanes of 16-bit values: %s, %s"):format(put, get), function()
      there_and_back(tcgen05["St" .. put .. "Op"](2, "UNPACK_32b_IN_16b"),
                     tcgen05["Ld" .. get .. "Op"](1, "PACK_16b_IN_32b"), 64, 32,
                     cute.bf16)
    end)
  end
end)

describe("a kernel with tensor memory", function()
  -- Runs a product while the function `name` of cute.arch does nothing. Returns
  -- the notes.
  local function notes_without(name)
    local was = arch[name]
    local o = CASES[1]
    rawset(arch, name, function() end)
    local ok, report = pcall(function()
      local A = small(cute.zeros({o.m, o.k}, o.type), 7, -2)
      local B = small(cute.zeros({o.n, o.k}, o.type), 3, -2)
      return support.report(product(o)(A, B, cute.zeros({o.m, o.n}, o.acc))
        :launch {grid = 1, block = 128, device = DEVICE})
    end)
    rawset(arch, name, was)
    assert.is_true(ok, report)
    return report:notes()
  end

  it("may commit to mbarriers of other blocks of its cluster", function()
    local mma = cute.make_tiled_mma(F16("bf16", "f32", {64, 8, 16}))
    local layout = cute.tile_to_shape(
      tcgen05.make_smem_layout_atom("K_INTER", cute.bf16), {64, 16})
    local function kernel(mask)
      return cute.kernel("multicast", function(X)
        local s = cute.make_smem_tensor(cute.bf16, layout, 1024)
        local rank = arch.block_idx_in_cluster()
        local go = begin(32, cute.f32)
        for k = 0, 7 do s[k * 128 + arch.thread_idx()] = 1 end
        local ptr, bar = go()
        arch.cluster_arrive()
        arch.cluster_wait()
        local thr = mma:get_slice(0)
        local a = mma:make_fragment_A(thr:partition_A(s))
        local b = mma:make_fragment_B(thr:partition_B(
          cute.local_tile(s, {8, 16}, {0, 0})))
        local sums = cute.make_tensor(ptr,
          mma:make_fragment_C(mma:partition_shape_C {64, 8}).layout)
        cute.when(arch.thread_idx():eq(0) & rank:eq(0), function()
          mma:set(tcgen05.Field.ACCUMULATE, false)
          cute.gemm(mma, sums, a, b, sums)
          tcgen05.commit(bar, mask)
        end)
        arch.mbarrier_wait(bar, 0)
        X[rank] = 1
        arch.cluster_arrive()
        arch.cluster_wait()
        finish(ptr, 32)
      end)
    end
    local X = cute.zeros({2}, cute.i32)
    local launch = {grid = 2, block = 128, cluster = 2, device = DEVICE}
    kernel(3)(X):launch(launch)
    assert.equal(2, X[0] + X[1])
    support.raises("for the blocks of mask 5", function()
      kernel(5)(X):launch(launch)
    end)
    local ok, text = pcall(function() kernel(1)(X):launch(launch) end)
    assert.is_false(ok)
    assert.truthy(text:find("no warp can go on", 1, true), text)
  end)

  it("gets a note if PTX requires a fence", function()
    local notes = notes_without "tcgen05_after_thread_sync"
    assert.truthy(#notes > 0)
    assert.truthy(notes[1]:find("after_thread_sync", 1, true))
  end)

  it("is rejected for targets without it", function()
    local kernel = cute.kernel("k", function(X)
      arch.relinquish_tmem_alloc_permit()
      X[0] = 1
    end)
    for _, target in ipairs {"sm_90a", "sm_120a", "sm_80", "sm_100"} do
      local ok, text = pcall(function()
        kernel(cute.zeros({1}, cute.f32)):launch {grid = 1, block = 32,
          device = "sim:" .. target}
      end)
      assert.is_false(ok, target)
      assert.truthy(text:find("tcgen05", 1, true), text)
    end
  end)

  it("is compiled for all targets that have it", function()
    if not cute.jit.version() then pending "needs NVRTC" return end
    for _, target in ipairs {"sm_100a", "sm_100f", "sm_103a", "sm_103f",
                             "sm_110a", "sm_110f"} do
      for _, number in ipairs {1, 7, 9} do
        local o = CASES[number]
        local call = product(o)(cute.zeros({o.m, o.k}, o.type),
          cute.zeros({o.n, o.k}, o.type), cute.zeros({o.m, o.n}, o.acc))
        compile(call, target)
      end
    end
  end)

  it("has MMAs of integers for single chips only", function()
    local o = CASES[11]
    local call = product(o)(cute.zeros({o.m, o.k}, o.type),
      cute.zeros({o.n, o.k}, o.type), cute.zeros({o.m, o.n}, o.acc))
    compile(call, "sm_110a")
    for _, target in ipairs {"sm_100f", "sm_103a", "sm_110f"} do
      support.raises("SM100_MMA_S8", call.compile, call,
                     {arch = target, grid = 1, block = 128})
    end
  end)

end)

describe("an operand of tcgen05.mma", function()
  -- Checks that a product whose A is M-major with this swizzle is rejected.
  local function rejected(why, dtype, swizzle, op)
    local o = {type = dtype, acc = "f32", m = 128, n = 64, k = 32, a = "MN",
               b = "MN", swizzle = swizzle, load = Ld, op = op}
    support.raises(why, function()
      product(o)(cute.zeros({128, 32}, dtype), cute.zeros({64, 32}, dtype),
        cute.zeros({128, 64}, cute.f32)):trace {block = 128}
    end)
  end

  it("with M contiguous is MN_SW128_32B exactly if it is tf32", function()
    for _, swizzle in ipairs {"INTER", "SW32", "SW64", "SW128"} do
      rejected("tcgen05 has 32-bit elements whose M or N is contiguous only in "
        .. "the layout MN_SW128_32B", "tf32", swizzle,
        TF32({128, 64, 8}, 1, "SMEM", "MN", "MN"))
    end
    rejected("tcgen05 has MN_SW128_32B only for 32-bit elements", "bf16",
      "SW128_32B", F16("bf16", "f32", {128, 64, 16}, 1, "SMEM", "MN", "MN"))
  end)
end)

describe("a kernel with tensor memory", function()
  it("rejects shapes and numbers of columns that do not exist", function()
    support.raises("M must be 64 or 128", F16, "bf16", "f32", {32, 64, 16})
    support.raises("or 16 (M = 128) from 16", F16, "bf16", "f32", {128, 24, 16})
    support.raises("K 16", F16, "bf16", "f32", {128, 32, 32})
    support.raises("A in tensor memory must be K-major", F16, "bf16", "f32",
                   {128, 32, 16}, 1, "TMEM", "MN")
    for _, n in ipairs {0, 16, 48, 1024} do
      assert.has_error(function()
        cute.kernel("k", function()
          arch.alloc_tmem(n, arch.alloc_smem(cute.i32, 1))
        end)():trace {block = 32}
      end)
    end
  end)
end)

describe("scripts/gemm_tcgen05", function()
  for i, size in ipairs {{1, 8, 8}, {127, 8, 64}, {129, 136, 72},
                         {65, 83, 96}, {257, 264, 320}} do
    it("is right at " .. table.concat(size, " x ") .. support.long(i),
       function()
      local out, err, code = support.run {"scripts/gemm_tcgen05.lua",
        "--device", DEVICE, "--m", ("%d"):format(size[1]), "--n",
        ("%d"):format(size[2]), "--k", ("%d"):format(size[3]),
        "--seed", ("%d"):format(size[1])}
      assert.equal(0, code, err)
      assert.truthy(out:find("verified .*: ok\n"), out)
      assert.truthy(out:find("nothing to report", 1, true), out)
      assert.is_nil(out:find("instead", 1, true), out)
    end)
  end
end)

-- Expected layouts of accumulators and of A in tensor memory come from CuTe
-- C++.
describe("fragments in tensor memory", function()
  local function layout_of(name, which, shape)
    local mma = cute.make_tiled_mma(name)
    return mma["make_fragment_" .. which](mma, cute.make_layout(
      mma["partition_shape_" .. which](mma, shape)))
  end
  for _, case in ipairs {
    {"SM100_MMA_F16BF16_SS<half_t,half_t,float,64,64,K,K>", "C", {64, 64},
     "(((16,4),64),1,1):(((65536,2097152),1),0,0)"},
    {"SM100_MMA_F16BF16_SS<half_t,half_t,float,64,64,K,K>", "C", {128, 64},
     "(((16,4),64),2,1):(((65536,2097152),1),1048576,0)"},
    {"SM100_MMA_F16BF16_SS<half_t,half_t,float,128,128,K,K>", "C", {256, 128},
     "((128,128),2,1):((65536,1),128,0)"},
    {"SM100_MMA_F16BF16_SS<half_t,half_t,half_t,64,64,K,K>", "C", {64, 64},
     "(((16,4),64),1,1):(((131072,4194304),2),0,0)"},
    {"SM100_MMA_F16BF16_TS<half_t,half_t,float,64,64,K,K>", "A", {128, 32},
     "(((16,4),16),2,2):(((131072,4194304),1),16,32)"},
    {"SM100_MMA_F16BF16_TS<half_t,half_t,float,128,64,K,K>", "A", {128, 32},
     "((128,16),1,2):((131072,1),0,16)"}} do
    it(("%s of %s %s"):format(case[2], case[1], core.show(case[3])), function()
      assert.equal(case[4], tostring(layout_of(case[1], case[2], case[3])))
    end)
  end
end)
-- SPDX-License-Identifier: MIT
