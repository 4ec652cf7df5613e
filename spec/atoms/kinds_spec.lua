-- Tests atoms other than the dense MMAs: single-thread atoms, complex numbers,
-- values of one byte, block-scaled and sparse MMAs, and movmatrix. Each is
-- compared with a plain loop on the simulator. NVRTC's PTX must contain the
-- expected instruction.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local raises = require "spec.support".raises
local _ = cute._
local tensor = kernels.tensor

-- Returns the value of an element type's raw bits.
local function value_of(dtype, bits) return core.from_bits(dtype, bits) end

-- Returns deterministic integers in [lo, hi].
local function integers(seed, lo, hi)
  return function(i)
    return lo + ((i + seed) * 2654435761 // 16) % (hi - lo + 1)
  end
end

-- Asserts that NVRTC's PTX of the call contains this text.
local function holds(call, arch, text, block)
  local out = kernels.compiled(call:trace {block = block or 32}, arch)
  assert.is_truthy(not out or out.ptx:find(text, 1, true),
                   text .. " in the PTX")
end

-- Runs a call on the device `on`, for example "gpu". If `on` is nil, runs it on
-- the simulator of the architecture `arch`.
local function run(call, arch, on)
  assert(call:launch {grid = 1, block = 32, device = on or "sim:" .. arch})
end

local function dot_products(on)
  for _, case in ipairs {
    {"SM61_DP4A", "i8", 8, 127, "dp4a.s32.s32"},
    {"SM61_DP2A", "i16", 6, 32767},
  } do
    local name, dtype, K, top, text = table.unpack(case)
    it(name, function()
      local mma = cute.make_tiled_mma(name, {8, 4, 1})
      local A = tensor({8, K}, cute[dtype], integers(1, -top - 1, top))
      local B = tensor({4, K}, cute[dtype], integers(5, -top - 1, top))
      local C = tensor({8, 4}, cute.i32, integers(9, 2^31 - 99, 2^31 - 1))
      local D = tensor({8, 4}, cute.i32)
      local call = kernels.tile(mma)(A, B, C, D)
      run(call, "sm_80", on)
      for m = 0, 7 do
        for n = 0, 3 do
          local sum = C[{m, n}]
          for k = 0, K - 1 do sum = sum + A[{m, k}] * B[{n, k}] end
          assert.equal((sum + 2^31 | 0) % 2^32 - 2^31 | 0, D[{m, n}])
        end
      end
      if on then return end
      if text then holds(call, "sm_80", text) end
      holds(call, "sm_80", ".entry tile")
    end)
  end
end

describe("atoms of a single thread", function()
  dot_products()

  for _, case in ipairs {{"SM100_2x1x1_F32F32F32F32", {4, 8, 1}},
                         {"SM100_1x2x1_F32F32F32F32", {8, 4, 1}}} do
    it(case[1], function()
      local mma = cute.make_tiled_mma(case[1], case[2])
      local A = tensor({8, 3}, cute.f32, integers(1, -50, 50))
      local B = tensor({8, 3}, cute.f32, integers(5, -50, 50))
      local C = tensor({8, 8}, cute.f32, integers(9, -50, 50))
      local D = tensor({8, 8}, cute.f32)
      local call = kernels.tile(mma)(A, B, C, D)
      run(call, "sm_100a")
      for m = 0, 7 do
        for n = 0, 7 do
          local sum = C[{m, n}]
          for k = 0, 2 do sum = sum + A[{m, k}] * B[{n, k}] end
          assert.equal(sum, D[{m, n}])
        end
      end
      holds(call, "sm_100a", "fma.rn.f32x2")
    end)
  end
end)

describe("atoms of a single thread #gpu", function()
  dot_products "gpu"
end)

local function complex(on)
  for _, case in ipairs {
    {"SM80_8x8x4_C64C64C64C64_TN", 8, 4, "sm_80", "m8n8k4"},
    {"SM90_16x8x4_C64C64C64C64_TN", 16, 4, "sm_90a", "m16n8k4"},
    {"SM90_16x8x8_C64C64C64C64_TN", 16, 8, "sm_90a", "m16n8k8"},
    {"SM90_16x8x16_C64C64C64C64_TN", 16, 16, "sm_90a", "m16n8k16"},
  } do
    local name, M, K, arch, shape = table.unpack(case)
    it(name, function()
      local mma = cute.make_tiled_mma(name)
      local A = tensor({M, 2 * K}, cute.f64, integers(1, -9, 9))
      local B = tensor({8, 2 * K}, cute.f64, integers(5, -9, 9))
      local D = tensor({M, 16}, cute.f64)
      local call = cute.kernel("complex", function(fA, fB, fD)
        local mA = cute.recast_tensor(fA, cute.complex_f64)
        local mB = cute.recast_tensor(fB, cute.complex_f64)
        local mD = cute.recast_tensor(fD, cute.complex_f64)
        local thr = mma:get_slice(cute.arch.thread_idx())
        local rA = thr:partition_fragment_A(mA)
        local rB = thr:partition_fragment_B(mB)
        local rD = thr:partition_fragment_C(mD)
        cute.autovec_copy(thr:partition_A(mA), rA)
        cute.autovec_copy(thr:partition_B(mB), rB)
        rD:fill(0)
        cute.gemm(mma, rD, rA, rB, rD)
        cute.autovec_copy(rD, thr:partition_C(mD))
      end)(A, B, D)
      run(call, arch, on)
      for m = 0, M - 1 do
        for n = 0, 7 do
          local re, im = 0, 0
          for k = 0, K - 1 do
            local ar, ai = A[{m, 2 * k}], A[{m, 2 * k + 1}]
            local br, bi = B[{n, 2 * k}], B[{n, 2 * k + 1}]
            re, im = re + ar * br - ai * bi, im + ar * bi + ai * br
          end
          assert.same({re, im}, {D[{m, 2 * n}], D[{m, 2 * n + 1}]})
        end
      end
      if on then return end
      holds(call, arch, ("mma.sync.aligned.%s.row.col.f64.f64.f64.f64")
        :format(shape))
    end)
  end
end

describe("complex f64 atoms", function() complex() end)
describe("complex f64 atoms #gpu", function() complex "gpu" end)

-- ---- values of one byte ----

local SMALL = {e4m3 = "float_e4m3_t", e5m2 = "float_e5m2_t",
               e3m2 = "float_e3m2_t", e2m3 = "float_e2m3_t",
               e2m1 = "float_e2m1_t"}
-- For each type, MASK selects bits of a random code so that values stay small
-- and sums exact. SHIFT is the position of the code's lowest bit in its byte.
local MASK = {e4m3 = 0xbf, e5m2 = 0xbf, e3m2 = 0x3f, e2m3 = 0x3f, e2m1 = 0xf}
local SHIFT = {e4m3 = 0, e5m2 = 0, e3m2 = 0, e2m3 = 0, e2m1 = 2}

local function codes(kind, seed)
  local pick = integers(seed, 0, 255)
  return function(i)
    local c = pick(i) & MASK[kind]
    if kind == "e4m3" then c = c & 0x80 | 0x30 + (c & 15) end
    if kind == "e5m2" then c = c & 0x80 | 0x38 + (c & 7) end
    return c
  end
end

-- Returns a tensor (rows,K) of bytes, each with the code of one element of type
-- `kind`, and a function of (row, k) that returns the element's value.
local function bytes(kind, rows, K, seed)
  local f = codes(kind, seed)
  local t = tensor({rows, K}, cute.u8, function(i)
    return f(i) << SHIFT[kind]
  end)
  return t, function(r, k) return value_of(cute[kind], f(r * K + k)) end
end

local function bytes_gemm(mma)
  return cute.kernel("bytes", function(mA, mB, mC, mD)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local rA = cute.make_fragment_like(thr:partition_A(mA))
    local rB = cute.make_fragment_like(thr:partition_B(mB))
    local rC = thr:partition_fragment_C(mC)
    cute.autovec_copy(thr:partition_A(mA), rA)
    cute.autovec_copy(thr:partition_B(mB), rB)
    cute.autovec_copy(thr:partition_C(mC), rC)
    cute.gemm(mma, rC, rA, rB, rC)
    cute.autovec_copy(rC, thr:partition_C(mD))
  end)
end

local function assert_product(M, N, K, a, b, C, D, what)
  for m = 0, M - 1 do
    for n = 0, N - 1 do
      local sum = C[{m, n}]
      for k = 0, K - 1 do sum = sum + a(m, k) * b(n, k) end
      if sum ~= D[{m, n}] then
        assert.equal(sum, D[{m, n}], ("%s (%d,%d)"):format(what, m, n))
      end
    end
  end
end

describe("SM120 atoms", function()
  for a, aname in pairs(SMALL) do
    for b, bname in pairs(SMALL) do
      it(("%s times %s"):format(a, b), function()
        for acc, cname in pairs {f32 = "float", f16 = "half_t"} do
          local name = ("SM120_16x8x32_TN<%s,%s,%s>"):format(aname, bname,
                                                            cname)
          local A, av = bytes(a, 16, 32, 1)
          local B, bv = bytes(b, 8, 32, 7)
          local C = tensor({16, 8}, cute[acc], integers(3, -8, 8))
          local D = tensor({16, 8}, cute[acc])
          local call = bytes_gemm(cute.make_tiled_mma(name))(A, B, C, D)
          run(call, "sm_120a")
          if acc == "f32" then
            assert_product(16, 8, 32, av, bv, C, D, name)
          end
          holds(call, "sm_120a", ("mma.sync.aligned.kind::f8f6f4.m16n8k32"
            .. ".row.col.%s.%s.%s.%s"):format(acc, a, b, acc))
        end
      end)
    end
  end

  it("round f16 accumulators once", function()
    local name = "SM120_16x8x32_TN<float_e4m3_t,float_e4m3_t,half_t>"
    local A, av = bytes("e4m3", 16, 32, 1)
    local B, bv = bytes("e4m3", 8, 32, 7)
    local C = tensor({16, 8}, cute.f16, integers(3, 1000, 2000))
    local D = tensor({16, 8}, cute.f16)
    run(bytes_gemm(cute.make_tiled_mma(name))(A, B, C, D), "sm_120a")
    for m = 0, 15 do
      for n = 0, 7 do
        local sum = C[{m, n}]
        for k = 0, 31 do sum = sum + av(m, k) * bv(n, k) end
        assert.equal((sum):to(cute.f16), D[{m, n}])
      end
    end
  end)

  it("take fragments of their own type, or of bytes", function()
    local mma = cute.make_tiled_mma
      "SM120_16x8x32_TN<float_e4m3_t,float_e2m1_t,float>"
    cute.kernel("types", function()
      local thr = mma:get_slice(0)
      assert.equal(cute.e4m3, thr:partition_fragment_A({16, 32}).dtype)
      assert.equal(cute.u8, thr:partition_fragment_B({8, 32}).dtype)
    end)():trace {block = 32}
  end)
end)

-- ---- block-scaled ----

-- Returns a lane's fragment of scales. Lane 4r + j holds row r + 8 * (j % 2) of
-- A's scales, and lane 4r holds row r of B's scales. Byte k of the fragment is
-- the scale of block k.
local function scales_of(mSF, row)
  local r = cute.make_rmem_tensor({4, 1, 1}, mSF.dtype)
  for k = 0, cute.size(mSF, 1) - 1 do r[{k, 0, 0}] = mSF[{row, k}] end
  for k = cute.size(mSF, 1), 3 do r[{k, 0, 0}] = mSF[{row, 0}] end
  return r
end

local function scaled_gemm(mma, elem)
  return cute.kernel("scaled", function(mA, mB, mSA, mSB, mC, mD)
    local tid = cute.arch.thread_idx()
    local thr = mma:get_slice(tid)
    local pA, pB = thr:partition_A(mA), thr:partition_B(mB)
    local rA = cute.make_fragment_like(pA, elem)
    local rB = cute.make_fragment_like(pB, elem)
    local rC = thr:partition_fragment_C(mC)
    cute.autovec_copy(pA, rA)
    cute.autovec_copy(pB, rB)
    cute.autovec_copy(thr:partition_C(mC), rC)
    local sA = scales_of(mSA, tid // 4 + tid % 2 * 8)
    local sB = scales_of(mSB, tid // 4)
    cute.gemm(mma, rC, {rA, sA}, {rB, sB}, rC)
    cute.autovec_copy(rC, thr:partition_C(mD))
  end)
end

local function scale_tensor(rows, blocks, dtype, seed, lo, hi)
  return tensor({rows, blocks}, dtype, function(i)
    local code = integers(seed, lo, hi)(i)
    return value_of(dtype, code)
  end)
end

describe("block-scaled atoms", function()
  local function check(name, kind, K, vs, sf, lo, hi)
    local byte = K == 32
    local A, av, B, bv
    if byte then
      A, av = bytes(kind, 16, K, 1)
      B, bv = bytes(kind, 8, K, 7)
    else
      local fa, fb = codes(kind, 1), codes(kind, 7)
      av = function(m, k) return value_of(cute[kind], fa(m * K + k)) end
      bv = function(n, k) return value_of(cute[kind], fb(n * K + k)) end
      A = tensor({16, K}, cute[kind], function(i)
        return value_of(cute[kind], fa(i))
      end)
      B = tensor({8, K}, cute[kind], function(i)
        return value_of(cute[kind], fb(i))
      end)
    end
    local SA = scale_tensor(16, K // vs, cute[sf], 3, lo, hi)
    local SB = scale_tensor(8, K // vs, cute[sf], 5, lo, hi)
    local C = tensor({16, 8}, cute.f32, integers(3, -8, 8))
    local D = tensor({16, 8}, cute.f32)
    local mma = cute.make_tiled_mma(name)
    local call = scaled_gemm(mma)(A, B, SA, SB, C, D)
    run(call, "sm_120a")
    assert_product(16, 8, K,
      function(m, k) return av(m, k) * SA[{m, k // vs}] end,
      function(n, k) return bv(n, k) * SB[{n, k // vs}] end, C, D, name)
    holds(call, "sm_120a", cute.make_mma_atom(name).ptx)
  end

  for kind, cname in pairs(SMALL) do
    it("mxf8f6f4 of " .. kind, function()
      check(("SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<%s,%s,float,"
        .. "float_ue8m0_t,32>"):format(cname, cname), kind, 32, 32, "ue8m0",
        125, 129)
    end)
  end
  it("mxf4", function()
    check("SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,float_e2m1_t,"
      .. "float,float_ue8m0_t,32>", "e2m1", 64, 32, "ue8m0", 125, 129)
  end)
  it("nvf4", function()
    check("SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,float_e2m1_t,"
      .. "float,float_ue4m3_t,16>", "e2m1", 64, 16, "e4m3", 0x30, 0x43)
  end)

  it("say which operands they take", function()
    local mma = cute.make_tiled_mma("SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<"
      .. "float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,16>")
    local function refused(want, change)
      raises(want, function()
        cute.kernel("bad", function()
          local thr = mma:get_slice(0)
          local rA, rB = thr:partition_fragment_A({16, 64}),
                         thr:partition_fragment_B({8, 64})
          local rC = thr:partition_fragment_C({16, 8})
          change(rA, rB, rC)
        end)():trace {block = 32}
      end)
    end
    refused("takes {A, scales} and {B, scales}", function(a, b, c)
      cute.gemm(mma, c, a, b, c)
    end)
    refused("takes the scales of A from registers of e4m3 or u8",
            function(a, b, c)
      local s = cute.make_rmem_tensor({4, 1, 1}, cute.f32)
      cute.gemm(mma, c, {a, s}, {b, s}, c)
    end)
    refused("here of shape (4,1,1)", function(a, b, c)
      local s = cute.make_rmem_tensor({4, 2, 1}, cute.e4m3)
      cute.gemm(mma, c, {a, s}, {b, s}, c)
    end)
  end)
end)

-- ---- sparse ----

describe("sparse atoms", function()
  -- Pairs of positions in a group of four elements, the lower position first.
  local pairs_of = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}

  -- Returns two tables for 16 rows of a sparse A. kept[row][group] has the
  -- positions of the two elements that A keeps of each group of four elements;
  -- a row has K // 4 // unit groups. words[lane] is the metadata word of each
  -- lane.
  local function metadata(K, unit)
    local groups, half = K // (4 * unit), K // (4 * unit) // 2
    local kept, words = {}, {}
    for l = 0, 31 do words[l] = 0 end
    for m = 0, 15 do
      kept[m] = {}
      for g = 0, groups - 1 do
        local p = pairs_of[1 + (m * 7 + g * 5) % 6]
        kept[m][g] = p
        local lane = m % 8 * 4 + m // 8 + 2 * (g // half)
        words[lane] = words[lane] | (p[1] | p[2] << 2) << (4 * (g % half))
      end
    end
    return kept, words
  end

  -- Returns the position of stored value i of row m in the uncompressed row.
  local function place(kept, m, i, unit)
    local g, at = i // (2 * unit), i % (2 * unit)
    return (g * 4 + kept[m][g][at // unit + 1]) * unit + at % unit
  end

  local function gemm(mma, dense, elem, scaled)
    return cute.kernel("sparse", function(mA, mB, mE, mC, mD, mSA, mSB)
      local tid = cute.arch.thread_idx()
      local thr, half = mma:get_slice(tid), dense:get_slice(tid)
      local pA, pB = half:partition_A(mA), thr:partition_B(mB)
      local rA = cute.make_fragment_like(pA, elem)
      local rB = cute.make_fragment_like(pB, elem)
      local rC = thr:partition_fragment_C(mC)
      local rE = cute.make_rmem_tensor({1, 1, 1}, cute.u32)
      cute.autovec_copy(pA, rA)
      cute.autovec_copy(pB, rB)
      cute.autovec_copy(thr:partition_C(mC), rC)
      rE[{0, 0, 0}] = mE[tid]
      if scaled then
        local sA = scales_of(mSA, tid // 4 + tid % 2 * 8)
        local sB = scales_of(mSB, tid // 4)
        cute.gemm(mma, rC, {rA, sA, rE}, {rB, sB}, rC)
      else
        cute.gemm(mma, rC, {rA, rE}, rB, rC)
      end
      cute.autovec_copy(rC, thr:partition_C(mD))
    end)
  end

  local function check(name, dense, a, b, K, unit, scaled)
    local kept, words = metadata(K, unit)
    local A, av, B, bv
    if K == 64 then
      A, av = bytes(a, 16, K // 2, 1)
      B, bv = bytes(b, 8, K, 7)
    else
      local fa, fb = codes(a, 1), codes(b, 7)
      A = tensor({16, K // 2}, cute[a], function(i)
        return value_of(cute[a], fa(i))
      end)
      B = tensor({8, K}, cute[b], function(i)
        return value_of(cute[b], fb(i))
      end)
      av = function(m, k) return value_of(cute[a], fa(m * K // 2 + k)) end
      bv = function(n, k) return value_of(cute[b], fb(n * K + k)) end
    end
    local E = tensor({32}, cute.u32, function(l) return words[l] end)
    local C = tensor({16, 8}, cute.f32, integers(3, -8, 8))
    local D = tensor({16, 8}, cute.f32)
    local SA, SB
    if scaled then
      SA = scale_tensor(16, 4, cute.e4m3, 3, 0x30, 0x43)
      SB = scale_tensor(8, 4, cute.e4m3, 5, 0x30, 0x43)
    end
    local call = gemm(cute.make_tiled_mma(name), cute.make_tiled_mma(dense),
                      nil, scaled)(A, B, E, C, D, SA or C, SB or C)
    run(call, "sm_120a")
    for m = 0, 15 do
      for n = 0, 7 do
        local sum = C[{m, n}]
        for i = 0, K // 2 - 1 do
          local k = place(kept, m, i, unit)
          local s = scaled and SA[{m, k // 32}] * SB[{n, k // 32}] or 1
          sum = sum + av(m, i) * bv(n, k) * s
        end
        assert.equal(sum, D[{m, n}], ("%s (%d,%d)"):format(name, m, n))
      end
    end
    holds(call, "sm_120a", cute.make_mma_atom(name).ptx)
  end

  for _, p in ipairs {{"e4m3", "e4m3"}, {"e2m1", "e4m3"}, {"e5m2", "e3m2"},
                      {"e2m3", "e2m1"}} do
    it(("two of four, %s times %s"):format(p[1], p[2]), function()
      local types = SMALL[p[1]] .. "," .. SMALL[p[2]] .. ",float>"
      check("SM120::SPARSE::SM120_SPARSE_16x8x64_TN<" .. types,
            "SM120_16x8x32_TN<" .. types, p[1], p[2], 64, 1)
    end)
  end

  it("two pairs of four, nvf4", function()
    check("SM120::BLOCKSCALED::SPARSE::SM120_SPARSE_16x8x128_TN_VS<"
      .. "float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,16>",
      "SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,float_e2m1_t,"
      .. "float,float_ue4m3_t,16>", "e2m1", "e2m1", 128, 2, true)
  end)
end)

local function movmatrix(on)
  it("transposes 8x8 of 16 bits between the lanes", function()
    local atom = cute.make_copy_atom("SM75_U32x1_MOVM_T", cute.f16)
    local A = tensor({32, 2}, cute.f16, function(i) return i end)
    local D = tensor({32, 2}, cute.f16)
    local call = cute.kernel("movm", function(mA, mD)
      local tid = cute.arch.thread_idx()
      local a = cute.make_rmem_tensor({2}, cute.f16)
      local d = cute.make_rmem_tensor({2}, cute.f16)
      cute.autovec_copy(mA(tid, _), a)
      cute.copy(atom, a, d)
      cute.autovec_copy(d, mD(tid, _))
    end)(A, D)
    run(call, "sm_80", on)
    for l = 0, 31 do
      for h = 0, 1 do
        local row, col = l // 4, l % 4 * 2 + h
        assert.equal(col * 8 + row, D[{l, h}])
      end
    end
    if on then return end
    holds(call, "sm_80", "movmatrix.sync.aligned.m8n8.trans.b16")
  end)
end

describe("movmatrix", function() movmatrix() end)
describe("movmatrix #gpu", function() movmatrix "gpu" end)

describe("atoms that are tables alone", function()
  it("say so, whatever the operands", function()
    local function refused(name, want, copy)
      raises(name .. " can be partitioned, but cutelua cannot execute it: "
             .. want, function()
        cute.kernel("k", function()
          local r = cute.make_rmem_tensor({4}, cute.f32)
          local s = cute.make_smem_tensor(cute.f32, {4})
          if copy then
            cute.copy(cute.make_copy_atom(name, cute.f32), s, r)
          else
            cute.gemm(cute.make_mma_atom(name), r, s, s, r)
          end
        end)():trace {block = 128}
      end)
    end
    refused("SM80_8x8x4_GC64C64C64GC64_TN", "its accumulator of three")
    refused("SM90_TMA_LOAD,128", "bulk copies", true)
    refused("SM100_SU4_DU8x16_x1_LDSM_N", "Blackwell's", true)
  end)

  it("of one family of chips need its architecture", function()
    local name = "SM120_16x8x32_TN<float_e4m3_t,float_e4m3_t,float>"
    local A, B = bytes("e4m3", 16, 32, 1), bytes("e4m3", 8, 32, 7)
    local C = tensor({16, 8}, cute.f32)
    local call = bytes_gemm(cute.make_tiled_mma(name))(A, B, C, C)
    local function why(arch)
      local ok, text = pcall(run, call, arch)
      return ok and "" or tostring(text)
    end
    assert.truthy(why "sm_120":find("needs sm_120a or sm_120f, the target is "
      .. "sm_120", 1, true))
    assert.truthy(why "sm_90a":find("needs sm_120a or newer", 1, true))
    assert.equal("", why "sm_121f")
  end)
end)
-- SPDX-License-Identifier: MIT
