-- Compares partitions of scale factors on sm_120 with those of the Python DSL.
-- Version 4.8.1 of the DSL (nvidia-cutlass-dsl) printed the texts below on a
-- host without a GPU. Also compares the values of a lane with the atom's table.
local cute = require "cute"
local core = require "cute.core"
local helpers = cute.utils.blackwell_helpers
local kernels = require "spec.kernels"
local support = require "spec.support"
local _ = cute._

local ATOMS = {
  nvf4 = {"SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,float_e2m1_t,"
            .. "float,float_ue4m3_t,16>", 16,
          "(((32,4),1),((16,4),1,2)):(((16,4),512),((0,1),4,512))"},
  mxf8 = {"SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<float_e4m3_t,float_e4m3_t,"
            .. "float,float_ue8m0_t,32>", 32,
          "(((32,4),1),((32,1),4,1)):(((16,4),512),((0,1),1,512))"},
}

-- Each case is {atom, warps, layouts of A's and B's scale factors by thread and
-- value, partitions of plain layouts of 128x128 (for A, for B), partitions of
-- the layouts in shared memory (for A, for B)}.
local CASES = {
  {"nvf4", {2, 2, 1},
   "((2,2,8,2,2),(64,(4,1))):((8,0,1,16,0),(128,(32,0)))",
   "((4,8,2,2),(64,(2,1))):((0,1,0,16),(32,(8,0)))",
   "(((2,2,8),(2,1)),(64,(4,2))):(((8,0,1),(16,0)),(128,(32,8192)))",
   "(((4,8),(2,1)),(64,((2,4),2))):(((0,1),(16,0)),(128,((8,32),8192)))",
   "(((2,2,8),(2,1)),((16,4),(4,2))):(((128,0,16),(256,0)),((0,1),(4,512)))",
   "(((4,8),(2,1)),((16,4),((2,4),2))):" ..
   "(((0,16),(256,0)),((0,1),((128,4),512)))"},
  {"nvf4", {4, 2, 1},
   "((2,2,8,4,2),(64,(2,1))):((8,0,1,16,0),(128,(64,0)))",
   "((4,8,4,2),(64,(2,1))):((0,1,0,16),(32,(8,0)))",
   "(((2,2,8),(4,1)),(64,(2,2))):(((8,0,1),(16,0)),(128,(64,8192)))",
   "(((4,8),(2,1)),(64,((2,4),2))):(((0,1),(16,0)),(128,((8,32),8192)))",
   "(((2,2,8),((2,2),1)),((16,4),(2,2))):" ..
   "(((128,0,16),((256,4),0)),((0,1),(8,512)))",
   "(((4,8),(2,1)),((16,4),((2,4),2))):" ..
   "(((0,16),(256,0)),((0,1),((128,4),512)))"},
  {"nvf4", {4, 1, 1},
   "((2,2,8,4),(64,(2,1))):((8,0,1,16),(128,(64,0)))",
   "((4,8,4),(64,((2,2),1))):((0,1,0),(32,((16,8),0)))",
   "(((2,2,8),(4,1)),(64,(2,2))):(((8,0,1),(16,0)),(128,(64,8192)))",
   "(((4,8),(1,1)),(64,((2,2,4),2))):(((0,1),(0,0)),(128,((16,8,32),8192)))",
   "(((2,2,8),((2,2),1)),((16,4),(2,2))):" ..
   "(((128,0,16),((256,4),0)),((0,1),(8,512)))",
   "(((4,8),(1,1)),((16,4),((2,2,4),2))):" ..
   "(((0,16),(0,0)),((0,1),((256,128,4),512)))"},
  {"nvf4", {2, 4, 1},
   "((2,2,8,2,4),(64,(4,1))):((8,0,1,16,0),(128,(32,0)))",
   "((4,8,2,2,2),(64,(1,1))):((0,1,0,16,8),(32,(0,0)))",
   "(((2,2,8),(2,1)),(64,(4,2))):(((8,0,1),(16,0)),(128,(32,8192)))",
   "(((4,8),((2,2),1)),(64,(4,2))):(((0,1),((16,8),0)),(128,(32,8192)))",
   "(((2,2,8),(2,1)),((16,4),(4,2))):(((128,0,16),(256,0)),((0,1),(4,512)))",
   "(((4,8),((2,2),1)),((16,4),(4,2))):" ..
   "(((0,16),((256,128),0)),((0,1),(4,512)))"},
  {"mxf8", {2, 2, 1},
   "((2,2,8,2,2),((32,1),(4,1))):((8,0,1,16,0),((128,0),(32,0)))",
   "((4,8,2,2),((32,1),(2,1))):((0,1,0,16),((32,0),(8,0)))",
   "(((2,2,8),(2,1)),((32,1),(4,4))):(((8,0,1),(16,0)),((128,0),(32,4096)))",
   "(((4,8),(2,1)),((32,1),((2,4),4))):" ..
   "(((0,1),(16,0)),((128,0),((8,32),4096)))",
   "(((2,2,8),(2,1)),((32,1),(4,4))):(((128,0,16),(256,0)),((0,0),(4,1)))",
   "(((4,8),(2,1)),((32,1),((2,4),4))):(((0,16),(256,0)),((0,0),((128,4),1)))"},
  {"mxf8", {4, 2, 1},
   "((2,2,8,4,2),((32,1),(2,1))):((8,0,1,16,0),((128,0),(64,0)))",
   "((4,8,4,2),((32,1),(2,1))):((0,1,0,16),((32,0),(8,0)))",
   "(((2,2,8),(4,1)),((32,1),(2,4))):(((8,0,1),(16,0)),((128,0),(64,4096)))",
   "(((4,8),(2,1)),((32,1),((2,4),4))):" ..
   "(((0,1),(16,0)),((128,0),((8,32),4096)))",
   "(((2,2,8),((2,2),1)),((32,1),(2,4))):" ..
   "(((128,0,16),((256,4),0)),((0,0),(8,1)))",
   "(((4,8),(2,1)),((32,1),((2,4),4))):(((0,16),(256,0)),((0,0),((128,4),1)))"},
  {"mxf8", {4, 1, 1},
   "((2,2,8,4),((32,1),(2,1))):((8,0,1,16),((128,0),(64,0)))",
   "((4,8,4),((32,1),((2,2),1))):((0,1,0),((32,0),((16,8),0)))",
   "(((2,2,8),(4,1)),((32,1),(2,4))):(((8,0,1),(16,0)),((128,0),(64,4096)))",
   "(((4,8),(1,1)),((32,1),((2,2,4),4))):" ..
   "(((0,1),(0,0)),((128,0),((16,8,32),4096)))",
   "(((2,2,8),((2,2),1)),((32,1),(2,4))):" ..
   "(((128,0,16),((256,4),0)),((0,0),(8,1)))",
   "(((4,8),(1,1)),((32,1),((2,2,4),4))):" ..
   "(((0,16),(0,0)),((0,0),((256,128,4),1)))"},
  {"mxf8", {2, 4, 1},
   "((2,2,8,2,4),((32,1),(4,1))):((8,0,1,16,0),((128,0),(32,0)))",
   "((4,8,2,2,2),((32,1),(1,1))):((0,1,0,16,8),((32,0),(0,0)))",
   "(((2,2,8),(2,1)),((32,1),(4,4))):(((8,0,1),(16,0)),((128,0),(32,4096)))",
   "(((4,8),((2,2),1)),((32,1),(4,4))):" ..
   "(((0,1),((16,8),0)),((128,0),(32,4096)))",
   "(((2,2,8),(2,1)),((32,1),(4,4))):(((128,0,16),(256,0)),((0,0),(4,1)))",
   "(((4,8),((2,2),1)),((32,1),(4,4))):(((0,16),((256,128),0)),((0,0),(4,1)))"},
}

local function mma_of(c)
  local name, vec = table.unpack(ATOMS[c[1]])
  local tile = helpers.get_permutation_mnk({128, 128, 128}, vec, vec == 32)
  return cute.make_tiled_mma(cute.make_mma_atom(name), c[2], tile)
end

describe("scale factors of mma.sync on sm_120", function()
  it("are partitioned as in the Python DSL", function()
    for _, c in ipairs(CASES) do
      local mma = mma_of(c)
      assert.equal(c[3], tostring(helpers.get_layoutSFA_TV(mma)))
      assert.equal(c[4], tostring(helpers.get_layoutSFB_TV(mma)))
      local plain = cute.make_layout {128, 128}
      assert.equal(c[5], tostring(helpers.thrfrg_SFA(plain, mma)))
      assert.equal(c[6], tostring(helpers.thrfrg_SFB(plain, mma)))
      local shared = core.layout(ATOMS[c[1]][3])
      assert.equal(c[7], tostring(helpers.thrfrg_SFA(shared, mma)))
      assert.equal(c[8], tostring(helpers.thrfrg_SFB(shared, mma)))
    end
  end)

  it("give each thread registers for its factors", function()
    -- For the first case of each atom: the shape and the number of a thread's
    -- factors of A, then those of B.
    local want = {nvf4 = {"((16,4),4,2)", 32, "((16,4),(2,4),2)", 64},
                  mxf8 = {"((32,1),4,4)", 16, "((32,1),(2,4),4)", 32}}
    for _, c in ipairs {CASES[1], CASES[5]} do
      local mma, layout = mma_of(c), core.layout(ATOMS[c[1]][3])
      local got
      cute.kernel("factors", function()
        local s = cute.make_smem_tensor(cute.u8, layout, 16)
        local tid = cute.arch.thread_idx()
        local a = helpers.partition_fragment_SFA(s, mma:get_slice(tid), tid)
        local b = helpers.partition_fragment_SFB(s, mma:get_slice(tid), tid)
        local function list(t)
          return cute.pretty_str(t.layout.shape), core.cosize(t.layout)
        end
        local shape, n = list(a)
        got = {shape, n, list(b)}
      end)():compile {arch = "sm_120a", grid = 1, block = 128}
      assert.same(want[c[1]], got)
    end
  end)

  it("are loaded with multicast by clusters with several CTAs along M",
  function()
    local choose, one = cute.utils.cluster_shape_to_tma_atom_SFB,
      cute.make_layout(1)
    assert.equal("CopyBulkTensorTileG2SOp", choose({1, 2, 1}, one).name)
    assert.equal("CopyBulkTensorTileG2SMulticastOp",
                 choose({2, 1, 1}, one).name)
    assert.error_matches(function() choose({3, 1, 1}, cute.make_layout(2)) end,
      "a cluster with 3 CTAs along M is not divisible into MMAs of 2 CTAs")
  end)

  it("need an atom with K = 32 or 64", function()
    local mma = cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN"
    assert.error_matches(function()
      helpers.thrfrg_SFA(cute.make_layout {128, 128}, mma)
    end, "thrfrg_SFA: an atom with scale factors has K = 32 or 64, not 16")
  end)
end)

describe("mma.sync with block scales", function()
  -- Multiplies 16x8x32 ones, with a scale factor of 1 in byte 0 of the register
  -- of A's scale factors, and in byte `byte` of B's. Returns the report and the
  -- first element of the product.
  local function product(byte)
    local mma = cute.make_tiled_mma("SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<"
      .. "float_e4m3_t,float_e4m3_t,float,float_ue8m0_t,32>")
    local C = cute.zeros({16, 8}, cute.f32)
    local report = support.report(cute.kernel("k", function(A, B, D)
      local thr = mma:get_slice(cute.arch.thread_idx())
      local a, b = thr:make_fragment_A(thr:partition_A(A)),
        thr:make_fragment_B(thr:partition_B(B))
      local d = thr:make_fragment_C(thr:partition_C(D))
      cute.autovec_copy(thr:partition_A(A), a)
      cute.autovec_copy(thr:partition_B(B), b)
      d:fill(0)
      local sfa = cute.make_rmem_tensor({4, 1, 1}, cute.ue8m0)
      local sfb = cute.make_rmem_tensor({4, 1, 1}, cute.ue8m0)
      sfa[{0, 0, 0}], sfb[{byte, 0, 0}] = 1, 1
      cute.gemm(mma, d, {a, sfa}, {b, sfb}, d)
      cute.autovec_copy(d, thr:partition_C(D))
    end)(cute.ones({16, 32}, cute.e4m3), cute.ones({8, 32}, cute.e4m3), C)
      :launch {grid = 1, block = 32, device = "sim:sm_120a",
               faults = "return"})
    return report, C(0, 0)
  end

  it("reads only the bytes of the register that have factors", function()
    local report, first = product(0)
    assert.is_true(report.ok, tostring(report))
    assert.equal(32, first)
    report = product(1)
    assert.is_false(report.ok)
    assert.matches("uninitialised memory: element 0 of register tensor 'sfb'",
                   tostring(report))
  end)
end)

-- Multiplies one tile of random numbers by MMA `c.name`, with fragments of
-- partition_fragment_SFA and _SFB. Returns the largest error, and the program.
local function error_of(c)
  local mma = cute.make_tiled_mma(c.name, c.warps, c.permutation)
  local function random(rows)
    local X = cute.empty({rows, c.k}, c.dtype)
    local S = cute.empty({rows, c.k // c.vs}, c.sf)
    for i = 0, rows - 1 do
      for j = 0, c.k - 1 do X[{i, j}] = math.random(-2, 2) end
      for j = 0, c.k // c.vs - 1 do S[{i, j}] = 2 ^ math.random(-2, 3) end
    end
    return X, cute.make_tensor(S.iterator, cute.make_layout(
      {rows, {c.vs, c.k // c.vs}}, {c.k // c.vs, {0, 1}}))
  end
  local A, SA = random(c.m)
  local B, SB = random(c.n)
  local C = cute.zeros({c.m, c.n}, cute.f32)
  local call = cute.kernel("k", function(mA, mSA, mB, mSB, mC)
    local tid = cute.arch.thread_idx()
    local thr = mma:get_slice(tid)
    local a, b = thr:make_fragment_A(thr:partition_A(mA)),
      thr:make_fragment_B(thr:partition_B(mB))
    local d = thr:make_fragment_C(thr:partition_C(mC))
    cute.autovec_copy(thr:partition_A(mA), a)
    cute.autovec_copy(thr:partition_B(mB), b)
    local function load(S, r, tv, mn)
      local copy = cute.make_tiled_copy(cute.make_copy_atom(
        cute.nvgpu.CopyUniversalOp(), c.sf), tv, {mn, c.tile[3]})
      local own = copy:get_slice(tid)
      cute.copy(copy, cute.filter_zeros(own:partition_S(S)),
                cute.filter_zeros(own:retile(r)))
      return r
    end
    local ra = load(mSA, helpers.partition_fragment_SFA(mSA, thr, tid),
                    helpers.get_layoutSFA_TV(mma), c.tile[1])
    local rb = load(mSB, helpers.partition_fragment_SFB(mSB, thr, tid),
                    helpers.get_layoutSFB_TV(mma), c.tile[2])
    d:fill(0)
    if c.whole then cute.gemm(mma, d, {a, ra}, {b, rb}, d)
    else
      for i = 0, cute.size(a, 2) - 1 do
        cute.gemm(mma, d, {a(_, _, i), ra(_, _, i)},
                  {b(_, _, i), rb(_, _, i)}, d)
      end
    end
    cute.autovec_copy(d, thr:partition_C(mC))
  end)(A, SA, B, SB, C)
  call:launch {grid = 1, block = mma:size(), device = "sim:sm_120a"}
  local worst = 0
  for i = 0, c.m - 1 do
    for j = 0, c.n - 1 do
      local sum = 0
      for x = 0, c.k - 1 do
        sum = sum + A(i, x) * SA(i, x) * B(j, x) * SB(j, x)
      end
      worst = math.max(worst, math.abs(C(i, j) - sum))
    end
  end
  return worst, call:trace {block = mma:size(), arch = "sm_120a"}
end

describe("mma.sync with block scales", function()
  it("takes the fragments of partition_fragment_SFA and _SFB", function()
    local kinds = {
      {"16x8x32", "e4m3", "ue8m0", 32}, {"16x8x64", "e2m1", "ue8m0", 32},
      {"16x8x64", "e2m1", "ue4m3", 16}, {"16x8x32", "e5m2", "ue8m0", 32}}
    math.randomseed(4)
    for i = 1, 12 do
      local shape, ab, sf, vs = table.unpack(kinds[i % #kinds + 1])
      local depth = tonumber(shape:match "%d+$")
      local warps = {math.random(2), math.random(2), 1}
      local tile = {16 * warps[1], 8 * warps[2], depth}
      local c = {name = ("SM120::BLOCKSCALED::SM120_%s_TN_VS<float_%s_t,"
          .. "float_%s_t,float,float_%s_t,%d>"):format(shape, ab, ab, sf, vs),
        dtype = cute[ab], sf = cute[sf == "ue4m3" and "e4m3" or sf], vs = vs,
        warps = warps, tile = tile, whole = math.random(2) == 1}
      if math.random(2) == 1 then
        -- Each warp has pairs of adjacent blocks of N.
        c.permutation = {tile[1], core.layout(("(8,%d,2):(1,16,8)"):format(
          tile[2] // 8)), depth}
        tile[2] = 2 * tile[2]
      end
      c.m, c.n = tile[1] * math.random(2), tile[2] * math.random(2)
      c.k = depth * math.random(3)
      local worst, program = error_of(c)
      assert.equal(0, worst, c.name)
      if i <= #kinds then kernels.compiles(program, {"sm_120a"}) end
    end
  end)

  it("needs as many scales as an instruction has blocks", function()
    support.raises("must be a fragment (V,M,K) with one 32-bit register in V, "
      .. "here of shape (4,1,1), got ptr[ue8m0,rmem] o (2,1,1):(1,0,0) "
      .. "[shape-mismatch]\n  partition_fragment_SFA makes such a fragment",
      function()
      local mma = cute.make_tiled_mma("SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<"
        .. "float_e4m3_t,float_e4m3_t,float,float_ue8m0_t,32>")
      cute.kernel("k", function()
        local d = cute.make_rmem_tensor(mma:partition_shape_C {16, 8}, cute.f32)
        local a = cute.make_rmem_tensor(mma:partition_shape_A {16, 32},
                                        cute.e4m3)
        local b = cute.make_rmem_tensor(mma:partition_shape_B {8, 32},
                                        cute.e4m3)
        local s = cute.make_rmem_tensor({2, 1, 1}, cute.ue8m0)
        cute.gemm(mma, d, {a, s}, {b, s}, d)
      end)():trace {block = 32}
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
