-- Tests tiled operations: their printed form, and partitions, which must cover
-- a tile exactly once. Also runs kernels that copy and multiply through them on
-- the simulator.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local _ = cute._
local tensor, raises = kernels.tensor, support.raises

local BF16 = "SM80_16x8x16_F32BF16BF16F32_TN"
local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)

local function launch(f, block, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = block, device = "sim"}
end

local function trace(f, ...)
  return cute.kernel("k", f)(...):trace {block = 128}
end

-- Returns the tensor's elements as nested lists: element (i,j) is x[i][j].
local function rows(t, M, N)
  local x = {}
  for i = 0, M - 1 do
    x[i] = {}
    for j = 0, N - 1 do x[i][j] = t[{i, j}] end
  end
  return x
end

local function assert_same(want, got, M, N)
  local w, g = rows(want, M, N), rows(got, M, N)
  for i = 0, M - 1 do assert.same(w[i], g[i], "row " .. i) end
end

describe("tiled operations", function()
  it("print as CuTe prints them", function()
    assert.equal([[TiledMMA
  ThrLayoutVMNK:  ((4,2),2,2,1):((1,16),8,4,0)
  PermutationMNK: ((4,4,2):(1,8,4),32,4)
MMA_Atom
  ThrID:      (4,2):(1,16)
  Shape_MNK:  (8,8,4)
  LayoutA_TV: ((4,2),4):((8,4),1)
  LayoutB_TV: ((4,2),4):((8,4),1)
  LayoutC_TV: ((2,2,2),(2,2,2)):((1,16,4),(8,2,32))]],
      tostring(cute.make_tiled_mma("SM70_8x8x4_F32F16F16F32_NT",
        cute.make_layout({2, 2, 1}, {2, 1, 0}),
        {cute.layout "(4,4,2):(1,8,4)", 32, 4})))
    assert.equal([[TiledCopy
  Tiler_MN:       (16,64)
  TiledLayout_TV: ((8,16),8):((128,1),16)
Copy_Atom
  ThrID:        1:0
  ValLayoutSrc: (1,8):(0,1)
  ValLayoutDst: (1,8):(0,1)
  ValLayoutRef: (1,8):(0,1)
  ValueType:    16b]], tostring(cute.make_tiled_copy(
        cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.bf16, 128),
        cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 8})))
  end)

  it("return their threads, tiles and layouts", function()
    local mma = cute.make_tiled_mma(BF16, {2, 2, 1}, {32, 32, 16})
    assert.equal(128, mma:size())
    assert.equal(128, cute.size(mma))
    assert.equal(32, mma:get_tile_size(1))
    assert.same({32, 32, 16}, mma.tile_size_mnk)
    assert.same({16, 8, 16}, mma.shape_mnk)
    assert.equal("(32,2,2,1):(1,32,64,0)", tostring(mma.thr_layout_vmnk))
    assert.same({{2, 2, 2}, 4, 4}, mma:partition_shape_A {128, 64})
    assert.same({{2, 2}, 4, 2}, mma:partition_shape_C {128, 32})
    local copy = cute.make_tiled_copy_A(ldsm, mma)
    assert.same({32, 16}, copy.tiler_mn)
    assert.equal("((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))",
                 tostring(copy.layout_tv_tiled))
    assert.equal("SM75_U32x4_LDSM_N", copy.name)
  end)

  it("give every element of C to one thread", function()
    local layout = cute.make_layout {64, 96}
    for _, make in ipairs {
      {BF16, {2, 2, 1}, {32, 32, 16}}, {BF16, {1, 3, 1}}, {BF16, {4, 1, 1}},
      {"SM70_8x8x4_F32F16F16F32_TN", {2, 2, 1}},
      {"UniversalFMA<float>", {16, 16, 1}},
      {"UniversalFMA<float>", {16, 16, 1},
       {cute.layout "(16,2):(2,1)", cute.layout "(16,2):(2,1)"}}} do
      local mma = cute.make_tiled_mma(table.unpack(make))
      local hit, n = {}, 0
      local lanes = mma:size()
      for t = 0, lanes - 1 do
        local part, off = mma:get_slice(t):partition_C(layout)
        for i = 0, cute.size(part) - 1 do
          local at = off + part(i)
          if not hit[at] then n = n + 1 end
          hit[at] = true
        end
        assert.equal(64 * 96 // lanes, cute.size(part))
      end
      assert.equal(64 * 96, n, make[1])
    end
  end)

  it("divide a cotiled copy, and copies made like another one", function()
    local atom = cute.make_copy_atom("UniversalCopy", cute.f16, 64)
    local data = cute.make_layout({32, 8}, {8, 1})
    local c = cute.make_cotiled_copy(atom, cute.layout "(32,4):(8,1)", data)
    assert.same({"32:1", "4:1"}, {tostring(c.tiler_mn[1]),
                                  tostring(c.tiler_mn[2])})
    local part, off = c:get_slice(5):partition_S(data)
    assert.equal(40, off)
    assert.same({0, 1, 2, 3, 4, 5, 6, 7}, (function()
      local t = {}
      for i = 0, cute.size(part) - 1 do t[i + 1] = part(i) end
      return t
    end)())
    raises("[inadmissible]", cute.make_cotiled_copy, atom,
           cute.layout "(32,4):(8,2)", cute.layout "(4,4):(1,4)")
    local mma = cute.make_tiled_mma(BF16, {2, 2, 1}, {32, 32, 16})
    local A = cute.make_tiled_copy_A(ldsm, mma)
    local S = cute.make_tiled_copy_D(cute.make_copy_atom("UniversalCopy",
      cute.bf16, 32), A)
    assert.equal(tostring(A.layout_dst_tv_tiled),
                 tostring(S.layout_tv_tiled))
    local store = cute.make_copy_atom("UniversalCopy", cute.f32, 64)
    local C = cute.make_tiled_copy_C_atom(store, mma)
    assert.equal(2, cute.size(C.layout_tv_tiled, 1))
  end)
end)

describe("copy", function()
  it("moves tiles between global, shared and registers", function()
    for _, bits in ipairs {16, 32, 64, 128} do
      local a = tensor({64, 64}, cute.bf16, function(i) return i % 251 end)
      local b = tensor({64, 64}, cute.bf16)
      local n = bits // 16
      local atom = cute.make_copy_atom("UniversalCopy", cute.bf16, bits)
      local c = cute.make_tiled_copy(atom, cute.make_layout({32, 2}, {2, 1}),
                                     cute.make_layout {1, n})
      launch(function(mA, mB)
        local thr = c:get_slice(cute.arch.thread_idx())
        local s = cute.make_smem_tensor(cute.bf16,
          cute.make_layout({64, 64}, {72, 1}))
        cute.copy(c, thr:partition_S(mA), thr:partition_D(s))
        cute.arch.sync_threads()
        local from = thr:partition_S(s)
        local r = cute.make_fragment_like(from)
        cute.copy(c, from, r)
        cute.copy(c, r, thr:partition_D(mB))
      end, 64, a, b)
      assert_same(a, b, 64, 64)
    end
  end)

  it("accepts predicates, for rows and for each atom", function()
    local a = tensor({32, 32}, cute.f32, function(i) return i + 1 end)
    local atom = cute.make_copy_atom("UniversalCopy", cute.f32, 64)
    local c = cute.make_tiled_copy(atom, cute.make_layout({8, 4}, {4, 1}),
                                   cute.make_layout {1, 4})
    local auto = cute.make_tiled_copy(
      cute.make_copy_atom("DefaultCopy", cute.f32),
      cute.make_layout({8, 4}, {4, 1}), cute.make_layout {1, 4})
    for _, copy in ipairs {c, auto} do
      local b = tensor({32, 32}, cute.f32)
      launch(function(mA, mB)
        local thr = copy:get_slice(cute.arch.thread_idx())
        local src, dst = thr:partition_S(mA), thr:partition_D(mB)
        local crd = thr:partition_S(cute.make_identity_tensor {32, 32})
        local p = cute.make_rmem_tensor({1, cute.size(src, 1),
                                         cute.size(src, 2)}, cute.Boolean)
        for i = 0, cute.size(src, 1) - 1 do
          for j = 0, cute.size(src, 2) - 1 do
            p[{0, i, j}] = cute.elem_less(crd(0, i, j), {19, 20})
          end
        end
        cute.copy(copy, src, dst, p)
      end, 32, a, b)
      for i = 0, 31 do
        for j = 0, 31 do
          local want = i < 19 and j < 20 and i * 32 + j + 1 or 0
          assert.equal(want, b[{i, j}], ("(%d,%d)"):format(i, j))
        end
      end
    end
  end)

  it("rejects predicates of another shape or type", function()
    local a = tensor({32, 32}, cute.f32)
    local c = cute.make_tiled_copy(
      cute.make_copy_atom("UniversalCopy", cute.f32, 64),
      cute.make_layout({8, 4}, {4, 1}), cute.make_layout {1, 4})
    local function with(shape, dtype)
      return function(mA)
        local src = c:get_slice(0):partition_S(mA)
        local p = cute.make_rmem_tensor(shape, dtype)
        cute.copy(c, src, cute.make_fragment_like(src), p)
      end
    end
    raises({"the predicate tensor (3,2):(1,3) fits neither the rest modes of "
            .. "the source nor (2 atoms,rest...)", "[shape-mismatch]"}, trace,
           with({3, 2}, cute.Boolean), a)
    raises({"a predicate tensor holds booleans, not i32", "[type-mismatch]"},
           trace, with({2, 4, 2}, cute.i32), a)
    trace(with({2, 4, 2}, cute.Boolean), a)
    trace(with({4, 2}, cute.Boolean), a)
  end)

  it("writes zeros where the predicate of cp.async ZFILL is false", function()
    local a = tensor({32, 32}, cute.f32, function(i) return i + 1 end)
    local b = tensor({32, 32}, cute.f32, function() return -1 end)
    local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL",
                                     cute.f32)
    local c = cute.make_tiled_copy(atom, cute.make_layout({4, 8}, {8, 1}),
                                   cute.make_layout {1, 4})
    launch(function(mA, mB)
      local thr = c:get_slice(cute.arch.thread_idx())
      local s = cute.make_smem_tensor(cute.f32,
        cute.make_layout({32, 32}, {32, 1}))
      local src = thr:partition_S(mA)
      local crd = thr:partition_S(cute.make_identity_tensor {32, 32})
      local p = cute.make_rmem_tensor({cute.size(src, 1)}, cute.Boolean)
      for i = 0, cute.size(src, 1) - 1 do
        p[i] = cute.elem_less(crd(0, i, 0), {10, 32})
      end
      cute.copy(c, src, thr:partition_D(s), {pred = p})
      cute.arch.cp_async_commit_group()
      cute.arch.cp_async_wait_group(0)
      cute.arch.sync_threads()
      local row = {cute.arch.thread_idx(), 0}
      cute.autovec_copy(cute.local_tile(s, {1, 32}, row),
                        cute.local_tile(mB, {1, 32}, row))
    end, 32, a, b)
    for i = 0, 31 do
      for j = 0, 31 do
        assert.equal(i < 10 and i * 32 + j + 1 or 0, b[{i, j}])
      end
    end
  end)
end)

describe("copy", function()
  it("transposes 2x2 words between lanes as the layouts say", function()
    local cases = {{1, cute.f32}, {4, cute.f32}, {1, cute.f16}, {4, cute.i8}}
    for i = 1, #cases do
      local case = cases[i]
      local name = "SM50_Shuffle_U32_2x2Trans_XOR" .. case[1]
      local dtype = case[2]
      local atom = cute.make_copy_atom(name, dtype)
      local n = 64 // dtype.bits
      local a = tensor({32, n}, dtype, function(j) return j % 120 end)
      local b = tensor({32, n}, dtype)
      launch(function(mA, mB)
        local tid = cute.arch.thread_idx()
        local src = cute.make_rmem_tensor({n}, dtype)
        local dst = cute.make_rmem_tensor({n}, dtype)
        cute.autovec_copy(mA(tid, _), src)
        cute.copy(atom, src, dst)
        cute.autovec_copy(dst, mB(tid, _))
      end, 32, a, b)
      for t = 0, 31 do
        for v = 0, n - 1 do
          -- the index in the source tile of the element that becomes b[{t, v}]
          local at = atom.layout_dst_tv(t, v)
          assert.equal(a[{at // n, at % n}], b[{t, v}], name)
        end
      end
    end
  end)

  it("suggests an atom for the memory spaces", function()
    local a = tensor({64, 64}, cute.bf16)
    local c = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.bf16),
      cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 8})
    raises({"the destination of SM80_CP_ASYNC_CACHEALWAYS<uint128_t> must be "
            .. "in shared memory, not in registers", "[type-mismatch]",
            "UniversalCopy"}, trace, function(mA)
      local thr = c:get_slice(cute.arch.thread_idx())
      local src = thr:partition_S(mA)
      cute.copy(c, src, cute.make_fragment_like(src))
    end, a)
    raises({"was made for bf16 values (16 bits)", "holds f32",
            "[type-mismatch]"}, trace, function(mA)
      local thr = c:get_slice(cute.arch.thread_idx())
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, 64})
      cute.copy(c, thr:partition_S(mA), thr:partition_D(s))
    end, a)
  end)

  it("rejects misaligned and scattered 128-bit copies", function()
    local a = tensor({64, 64}, cute.bf16)
    local c = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.bf16),
      cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 8})
    raises({"multiples of 16 bytes",
            "destination is only known to be aligned to 4",
            "[misaligned]", "use a copy atom of 32 bits"}, trace, function(mA)
      local thr = c:get_slice(cute.arch.thread_idx())
      local s = cute.make_smem_tensor(cute.bf16,
        cute.make_layout({64, 64}, {66, 1}))
      cute.copy(c, thr:partition_S(mA), thr:partition_D(s))
    end, a)
    raises({"8 contiguous values", "but the source has them at",
            "[shape-mismatch]"},
           trace, function(mA)
      local thr = c:get_slice(cute.arch.thread_idx())
      local s = cute.make_smem_tensor(cute.bf16,
        cute.make_layout({64, 64}, {64, 1}))
      cute.copy(c, thr:partition_S(mA), thr:partition_D(s))
    end, cute.zeros(cute.make_layout {64, 64}, cute.bf16))
  end)

  it("rejects more threads than the block has", function()
    local c = cute.make_tiled_copy(
      cute.make_copy_atom("UniversalCopy", cute.bf16, 128),
      cute.make_layout({32, 8}, {8, 1}), cute.make_layout {1, 8})
    raises({"the tiled copy has 256 threads, but the block has 128",
            "[shape-mismatch]"}, trace, function()
      c:get_slice(cute.arch.thread_idx())
    end)
  end)

  it("rejects fewer threads than the block has, by default", function()
    local c = cute.make_tiled_copy(
      cute.make_copy_atom("UniversalCopy", cute.bf16, 128),
      cute.make_layout({8, 8}, {8, 1}), cute.make_layout {1, 8})
    local mma = cute.make_tiled_mma(BF16, {2, 1, 1})
    raises({"the tiled copy has 64 threads, but the block has 128: thread 64",
            "cute.when(tid:lt(64)", "[shape-mismatch]"}, trace, function()
      c:get_slice(cute.arch.thread_idx())
    end)
    raises({"the tiled MMA has 64 threads", "[shape-mismatch]"}, trace,
           function()
      mma:get_slice(cute.arch.thread_idx())
    end)
    trace(function()
      local tid = cute.arch.thread_idx()
      c:get_slice(tid % 64)
      c:get_slice(3)
      cute.when(tid:lt(64), function() c:get_slice(tid) end)
    end)
  end)
end)

describe("copy", function()
  it("warns of fragments that no thread's registers hold", function()
    local f = cute.zeros({8}, cute.f32)
    local program = cute.kernel("k", function(t)
      local small = cute.make_rmem_tensor({255}, cute.f32)
      local packed = cute.make_rmem_tensor({1024}, cute.e2m1)
      small:fill(0)
      packed:fill(0)
      t[0] = small[1] + packed[0]:to(cute.f32)
    end)(f):trace {block = 1}
    assert.same({}, program.warnings)
    local out, err = support.run {"-e", [[
      local cute = require "cute"
      local f = cute.zeros({8}, cute.f32)
      local call = cute.kernel("big", function(t)
        local acc = cute.make_rmem_tensor({16, 64}, cute.bf16)
        acc:fill(0)
        t[0] = acc[1]:to(cute.f32)
      end)(f)
      for _ = 1, 2 do call:launch {grid = 1, block = 1, device = "sim"} end
      print(#call:trace({block = 1}).warnings)]]}
    assert.equal("1\n", out)
    assert.equal("cutelua: warning: kernel big: line 4: the fragment acc "
      .. "(16,64):(1,16) of 1024 bf16 values takes 512 registers; a thread "
      .. "has 255, the rest spills to memory\n", err)
  end)

  it("copies with vectors as wide as the known alignment", function()
    local function widths(name, bytes)
      local a = cute.zeros(cute.make_layout({64, 64}, {64, 1}), cute.bf16)
      local b = cute.zeros(cute.make_layout({64, 64}, {64, 1}), cute.bf16)
      a:mark_layout_dynamic {leading_dim = 1}
      b:mark_layout_dynamic {leading_dim = 1}
      for i = 0, 63 do a[{i, i}] = i end
      local atom = cute.make_copy_atom(name, cute.bf16)
      local r = cute.kernel("wide", function(mA, mB)
        local row = cute.arch.thread_idx()
        local from = cute.local_tile(mA, {1, 64}, {row, 0})
        local to = cute.local_tile(mB, {1, 64}, {row, 0})
        local frag = cute.make_fragment_like(from)
        cute.copy(atom, from, frag)
        cute.copy(atom, frag, to)
      end)(a, b):launch {grid = 1, block = 32, device = "sim"}
      for i = 0, 31 do assert.equal(i, b[{i, i}]) end
      assert.equal(128 // bytes, r.lines[1].count, name)
    end
    widths("AutoVectorizingCopy", 16)
    widths("AutoVectorizingCopyWithAssumedAlignment<128>", 16)
    widths("AutoVectorizingCopyWithAssumedAlignment<64>", 8)
    widths("AutoVectorizingCopyWithAssumedAlignment<32>", 4)
    widths("DefaultCopy", 2)
  end)

  it("reports assumed alignments that are wrong", function()
    local a = cute.zeros(cute.make_layout({8, 8}, {9, 1}), cute.f32)
    a:mark_layout_dynamic {leading_dim = 1}
    local atom = cute.make_copy_atom("AutoVectorizingCopy", cute.f32)
    local call = cute.kernel("odd", function(mA)
      local from = cute.local_tile(mA, {1, 8}, {cute.arch.thread_idx(), 0})
      cute.copy(atom, from, cute.make_fragment_like(from))
    end)(a)
    local r = support.report(call:launch {grid = 1, block = 8, device = "sim",
                                          faults = "return"})
    assert.equal("misaligned", r.reports[1].kind)
  end)

  it("rounds up extents that a copy's tile does not divide #long", function()
    local R = math.random
    math.randomseed(5)
    local atom = cute.make_copy_atom("UniversalCopy", cute.bf16, 16)
    -- Asserts that each element of a tensor of this shape is in exactly one
    -- thread's partition.
    local function covers(shape, thr, val)
      local l = cute.make_layout(shape)
      local M, N = cute.size(l, 0), cute.size(l, 1)
      local c = cute.make_tiled_copy(atom,
        cute.make_layout(thr, {thr[2], 1}), cute.make_layout(val))
      local offsets = cute.make_tensor(0, l)
      local crd, seen = cute.make_identity_tensor {M, N}, {}
      for t = 0, thr[1] * thr[2] - 1 do
        local p = c:get_slice(t):partition_S(offsets)
        local q = c:get_slice(t):partition_D(crd)
        assert.equal(cute.size(q), cute.size(p))
        for i = 0, cute.size(q) - 1 do
          local at = q(i)
          if at[1] < M and at[2] < N then
            assert.equal(at[1] + at[2] * M, p(i))
            seen[p(i)] = (seen[p(i)] or 0) + 1
          end
        end
      end
      for i = 0, M * N - 1 do assert.equal(1, seen[i]) end
    end
    for _ = 1, 60 do
      covers({R(40), R(40)}, {1 << R(0, 3), 1 << R(0, 3)},
             {R(4), 1 << R(0, 3)})
    end
    covers({{4, 5}, {8, 3}}, {4, 4}, {2, 4})
    raises({"extent 16 is not divisible by extent 5", "[inadmissible]"},
      function()
        local c = cute.make_tiled_copy(atom, cute.make_layout {16, 1},
                                      cute.make_layout {1, 1})
        c:get_slice(0):partition_S(cute.make_layout({{5, 3}, 8},
                                                    {{1, 10}, 100}))
      end)
  end)
end)

describe("copy", function()
  it("reports what a partial tile without predicates reaches", function()
    local M, N = 40, 50
    local tiled = cute.make_tiled_copy(
      cute.make_copy_atom("UniversalCopy", cute.f32, 32),
      cute.make_layout({4, 8}, {8, 1}), cute.make_layout {4, 2})
    local A = tensor({M, N}, cute.f32, function(i) return i end)
    local B = tensor({M, N}, cute.f32, function() return -1 end)
    local copy = cute.kernel("ragged", function(mA, mB, guarded)
      local thr = tiled:get_slice(cute.arch.thread_idx())
      local from, to = thr:partition_S(mA), thr:partition_D(mB)
      local crd = thr:partition_S(cute.make_identity_tensor {M, N})
      local pred = cute.make_rmem_tensor(crd.shape, cute.boolean)
      for i = 0, cute.size(pred) - 1 do
        pred[i] = cute.elem_less(crd(i), {M, N})
      end
      cute.basic_copy_if(pred, from, to)
      if not guarded then cute.autovec_copy(from, to) end
    end)
    copy(A, B, true):launch {grid = 1, block = 32, device = "sim"}
    for i = 0, M * N - 1 do assert.equal(A(i), B(i)) end
    local r = support.report(copy(A, B, false):launch {grid = 1, block = 32,
      device = "sim", faults = "return"})
    assert.equal("out-of-bounds", r.reports[1].kind)
  end)

  it("rejects tensors that an MMA's tiler does not divide", function()
    local mma = cute.make_tiled_mma(BF16, {2, 2, 1}, {32, 32, 16})
    raises({"partition_B", "in mode 1 (K): 24 is not a multiple of 16",
            "[shape-mismatch]"}, function()
      mma:get_slice(0):partition_B(cute.make_layout {64, 24})
    end)
  end)
end)

-- Computes D = A B^T through shared memory, ldmatrix (or plain loads), the MMA
-- and, optionally, stmatrix. A (M,K) and B (N,K) have the majors that opt
-- gives.
local function through_shared(opt)
  local M, N, K = 64, 64, 32
  local A = tensor({M, K}, opt.type, function(i) return i * 7 % 5 - 2 end)
  local B = tensor({N, K}, opt.type, function(i) return i * 3 % 7 - 3 end)
  local D = tensor({M, N}, opt.out or cute.f32)
  local mma = cute.make_tiled_mma(opt.mma or BF16, {2, 2, 1}, opt.perm)
  local atom = cute.make_copy_atom(opt.load, opt.type)
  local cA, cB = cute.make_tiled_copy_A(atom, mma),
                 cute.make_tiled_copy_B(atom, mma)
  local sA_layout = opt.mn and cute.make_layout({M, K}, {1, M})
                    or cute.make_layout({M, K}, {K, 1})
  local sB_layout = opt.mn and cute.make_layout({N, K}, {1, N})
                    or cute.make_layout({N, K}, {K, 1})
  launch(function(mA, mB, mD)
    local tid = cute.arch.thread_idx()
    local sA = cute.make_smem_tensor(opt.type, sA_layout, 128)
    local sB = cute.make_smem_tensor(opt.type, sB_layout, 128)
    local thr_id = cute.make_layout({16, 8}, {8, 1})
    cute.basic_copy(cute.local_partition(mA, thr_id, tid),
                    cute.local_partition(sA, thr_id, tid))
    cute.basic_copy(cute.local_partition(mB, thr_id, tid),
                    cute.local_partition(sB, thr_id, tid))
    cute.arch.sync_threads()
    local thr = mma:get_slice(tid)
    local rA, rB = thr:partition_fragment_A(sA), thr:partition_fragment_B(sB)
    local rC = thr:partition_fragment_C(mD)
    rC:fill(0)
    local tA, tB = cA:get_slice(tid), cB:get_slice(tid)
    cute.copy(cA, tA:partition_S(sA), tA:retile_D(rA))
    cute.copy(cB, tB:partition_S(sB), tB:retile_D(rB))
    cute.gemm(mma, rC, rA, rB, rC)
    if opt.store then
      cute.arch.sync_threads()
      local sD = cute.make_smem_tensor(opt.out,
        opt.store_layout or cute.make_layout({M, N}, {N, 1}), 128)
      local st = cute.make_tiled_copy_C(
        cute.make_copy_atom(opt.store, opt.out), mma)
      local tD = st:get_slice(tid)
      local rD = cute.make_fragment_like(rC, opt.out)
      rD:store(rC:load():to(opt.out))
      cute.copy(st, tD:retile_S(rD), tD:partition_D(sD))
      cute.arch.sync_threads()
      cute.basic_copy(cute.local_partition(sD, thr_id, tid),
                      cute.local_partition(mD, thr_id, tid))
    else
      cute.autovec_copy(rC, thr:partition_C(mD))
    end
  end, 128, A, B, D)
  local a, b, d = rows(A, M, K), rows(B, N, K), rows(D, M, N)
  for m = 0, M - 1 do
    for n = 0, N - 1 do
      local sum = 0
      for k = 0, K - 1 do sum = sum + a[m][k] * b[n][k] end
      if sum ~= d[m][n] then
        assert.equal(sum, d[m][n], ("%s (%d,%d)"):format(opt.load, m, n))
      end
    end
  end
end

describe("gemm", function()
  it("multiplies fragments from ldmatrix, plain and transposed", function()
    local P = {32, 32, 16}
    for _, n in ipairs {1, 2, 4} do
      through_shared {type = cute.bf16, load = ("SM75_U32x%d_LDSM_N"):format(n),
                      perm = P}
      through_shared {type = cute.bf16, perm = P, mn = true,
                      load = ("SM75_U16x%d_LDSM_T"):format(2 * n)}
    end
    through_shared {type = cute.bf16, perm = P,
                    load = "UniversalCopy<uint32_t>"}
    through_shared {type = cute.bf16, load = "DefaultCopy", perm = P}
    through_shared {type = cute.i8, load = "SM75_U32x4_LDSM_N", out = cute.i32,
                    perm = {32, 32, 32}, mma = "SM80_16x8x32_S32S8S8S32_TN"}
  end)

  it("stores accumulators through stmatrix, plain and transposed", function()
    for _, n in ipairs {1, 2, 4} do
      through_shared {type = cute.bf16, load = "SM75_U32x4_LDSM_N",
                      out = cute.f16, perm = {32, 32, 16},
                      store = ("SM90_U32x%d_STSM_N"):format(n)}
      through_shared {type = cute.bf16, load = "SM75_U32x4_LDSM_N",
                      out = cute.f16, perm = {32, 32, 16},
                      store = ("SM90_U16x%d_STSM_T"):format(2 * n),
                      store_layout = cute.make_layout({64, 64}, {1, 64})}
    end
  end)

  it("selects loops by ranks like CuTe, with plain multiply-adds", function()
    local A = tensor({8, 4}, cute.f32, function(i) return i % 7 - 3 end)
    local B = tensor({6, 4}, cute.f32, function(i) return i % 5 - 2 end)
    local mma = cute.make_mma_atom "UniversalFMA<float>"
    local function with(fold)
      local D = tensor({8, 6}, cute.f32)
      launch(function(mA, mB, mD)
        local rA, rB = cute.make_fragment_like(mA), cute.make_fragment_like(mB)
        local rC = cute.make_fragment_like(mD)
        cute.autovec_copy(mA, rA)
        cute.autovec_copy(mB, rB)
        rC:fill(1)
        fold(rA, rB, rC)
        cute.autovec_copy(rC, mD)
      end, 1, A, B, D)
      for m = 0, 7 do
        for n = 0, 5 do
          local sum = 1
          for k = 0, 3 do sum = sum + A[{m, k}] * B[{n, k}] end
          assert.equal(sum, D[{m, n}])
        end
      end
    end
    with(function(a, b, c) cute.gemm(mma, c, a, b, c) end)
    with(function(a, b, c)
      for k = 0, 3 do cute.gemm(mma, c, a(_, k), b(_, k), c) end
    end)
    with(function(a, b, c)
      local function one(t, i, j)
        return cute.local_tile(t, {1, 1}, {i, j})(_, 0)
      end
      for m = 0, 7 do
        for n = 0, 5 do
          for k = 0, 3 do  -- gemm with fragments of the form (V) x (V) => (V)
            local d = one(c, m, n)
            cute.gemm(mma, d, one(a, m, k), one(b, n, k), d)
          end
        end
      end
    end)
  end)

  it("rejects operands that do not fit, and names the right shape", function()
    local mma = cute.make_tiled_mma(BF16, {2, 2, 1}, {32, 32, 16})
    local a = tensor({64, 32}, cute.f16)
    local d = tensor({64, 64}, cute.f32)
    local function go(change)
      return function(mA, mD)
        local thr = mma:get_slice(0)
        local f = {rA = thr:partition_fragment_A(mA),
                   rB = thr:partition_fragment_B(mA),
                   rC = thr:partition_fragment_C(mD)}
        change(f, thr, mA)
        cute.gemm(mma, f.rC, f.rA, f.rB, f.rC)
      end
    end
    raises({"got D:f32 A:f16 B:f16 C:f32", "[type-mismatch]",
            "would fit: SM80_16x8x16_F32F16F16F32_TN"}, trace,
      go(function(f)
        f.rA = cute.make_rmem_tensor(f.rA.layout, cute.f16)
        f.rB = cute.make_rmem_tensor(f.rB.layout, cute.f16)
      end), a, d)
    raises({"mode K must have one size, not 1 in A and 2 in B",
            "[shape-mismatch]"}, trace,
      go(function(f) f.rA = cute.local_tile(f.rA, {8, 2, 1}, {0, 0, 0}) end),
      a, d)
    raises({"takes 8 values of A per thread", "partition_fragment_A",
            "[shape-mismatch]"}, trace,
      go(function(f)
        f.rA = cute.make_rmem_tensor(cute.make_layout {4, 2, 2}, cute.bf16)
      end), a, d)
    raises({"cannot be multiplied; possible are", "[shape-mismatch]"}, trace,
      go(function(f) f.rA = f.rA(_, 0, 0) end), a, d)
    raises({"takes A from registers", "[type-mismatch]"}, trace,
      go(function(f)
        f.rA = cute.make_smem_tensor(cute.bf16, f.rA.layout)
      end), a, d)
  end)
end)

describe("a slice", function()
  it("needs a thread index within the tiled operation", function()
    local mma = cute.make_tiled_mma(BF16)
    local copy = cute.make_tiled_copy(
      cute.make_copy_atom("UniversalCopy", cute.f32), cute.make_layout {8, 8},
      cute.make_layout {1, 1})
    for tiled, n in pairs {[mma] = 32, [copy] = 64} do
      local of = (" is outside a tiled operation of %d threads [bad-argument]")
        :format(n)
      local function slice(t) return tiled:get_slice(t), nil end
      for _, t in ipairs {n, 99, -1, 1 << 40} do
        raises(("get_slice: thread %d%s"):format(t, of), slice, t)
      end
      slice(0)
      slice(n - 1)
      trace(function()
        local tid = cute.arch.thread_idx()
        cute.when(tid:lt(n), function() slice(tid) end)
        raises(("get_slice: thread %d or more%s"):format(n, of), slice, tid + n)
      end)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
