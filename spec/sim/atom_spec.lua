-- Tests matrix atoms on the simulator. Every element of D must equal the plain
-- sum of products of its row of A and its column of B, bit for bit. ldmatrix
-- and stmatrix are compared with a plain copy.
local core = require "cute.core"
local units = require "spec.hardware.units"
local cute = require "cute"
local support = require "spec.support"
local kernels = require "spec.kernels"

local function random(dtype, i)
  local x = (i * 2654435761 % 1000003) / 1000003
  if dtype == cute.b1 then return x < 0.5 and 0 or 1 end
  if dtype == cute.i8 then return math.floor(x * 256) - 128 end
  if dtype == cute.u8 then return math.floor(x * 256) end
  if dtype == cute.i4 then return math.floor(x * 16) - 8 end
  if dtype == cute.u4 then return math.floor(x * 16) end
  local v = (x - 0.5) * 2 ^ (i % 7)
  return dtype.is_integer and math.floor(v) or v
end

local function matrix(dtype, rows, cols, seed)
  return kernels.tensor({rows, cols}, dtype, function(i)
    return random(dtype, i * 3 + seed)
  end)
end

-- Returns a kernel that computes D = A * B + C with one warp and copies the
-- operands element by element.
local function one(mma)
  return cute.kernel("one", function(a, b, c, d)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local tA, tB, tC = thr:partition_A(a), thr:partition_B(b),
      thr:partition_C(c)
    local rA, rB = thr:make_fragment_A(tA), thr:make_fragment_B(tB)
    local rC = thr:make_fragment_C(tC)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tB, rB)
    cute.basic_copy(tC, rC)
    cute.gemm(mma, rC, rA, rB, rC)
    cute.basic_copy(rC, thr:partition_C(d))
  end)
end

-- Runs the MMA of an atom by one warp on random operands. Returns D and the
-- operands.
local function multiply(name, types, m, n, k, opts)
  local mma = cute.make_tiled_mma(name, opts.atoms or {1, 1, 1})
  local A, B = matrix(types.a, m, k, 1), matrix(types.b, n, k, 2)
  local C, D = matrix(types.c, m, n, 3), matrix(types.d, m, n, 4)
  local r = support.report(one(mma)(A, B, C, D):launch {grid = 1, block = 32,
    device = opts.device or "sim:sm_80", faults = "return"})
  assert.are.same({}, r.reports)
  return A, B, C, D
end

local function bits(t, x) return core.to_bits(t, x) end

local function check(name, types, m, n, k, opts)
  opts = opts or {}
  local A, B, C, D = multiply(name, types, m, n, k, opts)
  local kind = {a = types.a, b = types.b, c = types.d, k = k,
                arch = opts.arch or 80, sat = opts.sat, op = opts.op}
  for i = 0, m - 1 do
    for j = 0, n - 1 do
      local a, b = {}, {}
      for l = 0, k - 1 do
        a[l + 1] = bits(types.a, A[{i, l}])
        b[l + 1] = bits(types.b, B[{j, l}])
      end
      local want = units.mma_dot(kind, a, b, bits(types.c, C[{i, j}]))
      local got = bits(types.d, D[{i, j}])
      if want ~= got then
        assert.equal(("D(%d,%d) = %x"):format(i, j, want),
                     ("D(%d,%d) = %x"):format(i, j, got))
      end
    end
  end
end

local function of(d, a, b, c)
  return {d = cute[d], a = cute[a], b = cute[b], c = cute[c or d]}
end

describe("MMA atoms", function()
  local floats = {
    {"SM80_16x8x16_F32BF16BF16F32_TN", of("f32", "bf16", "bf16"), 16, 8, 16},
    {"SM80_16x8x8_F32BF16BF16F32_TN", of("f32", "bf16", "bf16"), 16, 8, 8},
    {"SM80_16x8x16_F32F16F16F32_TN", of("f32", "f16", "f16"), 16, 8, 16},
    {"SM80_16x8x16_F16F16F16F16_TN", of("f16", "f16", "f16"), 16, 8, 16},
    {"SM80_16x8x8_F16F16F16F16_TN", of("f16", "f16", "f16"), 16, 8, 8},
    {"SM80_16x8x8_F32TF32TF32F32_TN", of("f32", "tf32", "tf32"), 16, 8, 8},
    {"SM80_16x8x4_F32TF32TF32F32_TN", of("f32", "tf32", "tf32"), 16, 8, 4},
    {"SM80_8x8x4_F64F64F64F64_TN", of("f64", "f64", "f64"), 8, 8, 4},
    {"SM75_16x8x8_F32F16F16F32_TN", of("f32", "f16", "f16"), 16, 8, 8},
  }
  for _, f in ipairs(floats) do
    it(f[1], function() check(table.unpack(f)) end)
  end
  it("on Hopper", function()
    check("SM80_16x8x16_F32BF16BF16F32_TN", of("f32", "bf16", "bf16"),
          16, 8, 16, {device = "sim:sm_90a", arch = 90})
  end)

  it("four quad pairs on Volta", function()
    for _, name in ipairs {"SM70_8x8x4_F32F16F16F32_TN",
                           "SM70_8x8x4_F32F16F16F32_NT"} do
      check(name, of("f32", "f16", "f16"), 16, 16, 4,
            {device = "sim:sm_70", arch = 70, atoms = {2, 2, 1}})
    end
  end)

  for _, f in ipairs {
    {"SM80_16x8x32_S32S8S8S32_TN_SATURATE", of("i32", "i8", "i8"), 16, 8, 32,
     {sat = true}},
    {"SM80_16x8x16_S32S8S8S32_TN", of("i32", "i8", "i8"), 16, 8, 16},
    {"SM80_16x8x32_S32U8S8S32_TN", of("i32", "u8", "i8"), 16, 8, 32},
  } do
    it(f[1], function() check(table.unpack(f)) end)
  end

  it("undefined rows of A make undefined rows of D", function()
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
    local A, B = matrix(cute.bf16, 16, 16, 1), matrix(cute.bf16, 8, 16, 2)
    local D = cute.zeros({16, 8}, cute.f32)
    local function run(rows)
      local call = cute.kernel("rows", function(a, b, d)
        local lane = cute.arch.lane_idx()
        local thr = mma:get_slice(lane)
        local tA, tB = thr:partition_A(a), thr:partition_B(b)
        local tD = thr:partition_C(d)
        local rA, rB = thr:make_fragment_A(tA), thr:make_fragment_B(tB)
        local rD = thr:make_fragment_C(tD)
        rD:fill(0)
        -- A lane has elements of rows lane // 4 and lane // 4 + 8 of A, and
        -- copies them only if lane // 4 < 6.
        cute.when((lane // 4):lt(6), function() cute.basic_copy(tA, rA) end)
        cute.basic_copy(tB, rB)
        cute.gemm(mma, rD, rA, rB, rD)
        cute.when((lane // 4):lt(rows), function()
          cute.basic_copy(rD, tD)
        end)
      end)(A, B, D)
      return support.report(call:launch {grid = 1, block = 32,
        device = "sim:sm_80", faults = "return"})
    end
    assert.are.same({}, run(6).reports)
    local r = run(7)
    assert.equal("uninitialised", r.reports[1].kind)
    assert.equal("rD", r.reports[1].tensor)
    assert.equal(6 * 4, r.reports[1].thread[1])
  end)

  it("UniversalFMA is one rounding", function()
    local mma = cute.make_tiled_mma("UniversalFMA<float,float,float,float>",
      {8, 4, 1})
    local A, B, C = matrix(cute.f32, 8, 3, 1), matrix(cute.f32, 4, 3, 2),
      matrix(cute.f32, 8, 4, 3)
    local first = {}
    for i = 0, 7 do for j = 0, 3 do first[i * 4 + j] = C[{i, j}] end end
    local r = support.report(one(mma)(A, B, C, C):launch {grid = 1, block = 32,
      device = "sim:sm_80", faults = "return"})
    assert.are.same({}, r.reports)
    for i = 0, 7 do
      for j = 0, 3 do
        local x = first[i * 4 + j]
        -- Each step is exact in a double, and is then rounded to f32.
        for k = 0, 2 do
          x = string.unpack("f", string.pack("f", A[{i, k}] * B[{j, k}] + x))
        end
        assert.equal(x, C[{i, j}])
      end
    end
  end)
end)

describe("matrix copies", function()
  -- Loads a matrix of (rows, 8) 16-bit elements by ldmatrix. Returns a tensor
  -- of the registers of each lane.
  local function ldmatrix(name, num, swizzled)
    local rows = 8 * num
    local A = matrix(cute.f16, rows, 8, 1)
    for i = 0, rows - 1 do for j = 0, 7 do A[{i, j}] = i * 8 + j end end
    local D = cute.zeros({32, 2 * num}, cute.f16)
    local atom = cute.make_copy_atom(name, cute.f16)
    local call = cute.kernel("ld", function(a, d)
      local t = cute.arch.thread_idx()
      local inner = cute.make_layout({rows, 8}, {8, 1})
      if swizzled then
        inner = cute.composition(cute.make_swizzle(3, 3, 3),
          cute.make_layout({rows, 8}, {64, 1}))
      end
      local s = cute.make_smem_tensor(cute.f16, inner, 128)
      for i = 0, rows * 8 - 1, 32 do
        local at = t + i
        s[{at // 8, at % 8}] = a[{at // 8, at % 8}]
      end
      cute.arch.sync_threads()
      local v = cute.make_rmem_tensor({2 * num}, cute.f16)
      local row = cute.local_tile(s, {1, 8}, {t % rows, 0})
      cute.copy(atom, row(0, cute._), v)
      for i = 0, 2 * num - 1 do d[{t, i}] = v[i] end
    end)(A, D)
    local r = support.report(call:launch {grid = 1, block = 32,
      device = "sim:sm_80", faults = "return"})
    assert.are.same({}, r.reports)
    return D, r
  end

  for num, name in pairs {[1] = "SM75_U32x1_LDSM_N", [2] = "SM75_U32x2_LDSM_N",
                          [4] = "SM75_U32x4_LDSM_N"} do
    it(name, function()
      for _, swizzled in ipairs {false, true} do
        local D, r = ldmatrix(name, num, swizzled)
        for lane = 0, 31 do
          for v = 0, 2 * num - 1 do
            -- register v // 2 holds row lane // 4 of matrix v // 2
            local row, col = v // 2 * 8 + lane // 4, lane % 4 * 2 + v % 2
            assert.equal(row * 8 + col, D[{lane, v}])
          end
        end
        local line
        for _, l in ipairs(r.lines) do
          if l.op == "ldmatrix" then line = l end
        end
        assert.are.same({1, num, 0, num * 8 * 16},
          {line.count, line.wavefronts, line.conflicts, line.bytes})
      end
    end)
  end

  for num, name in pairs {[1] = "SM75_U16x2_LDSM_T", [2] = "SM75_U16x4_LDSM_T",
                          [4] = "SM75_U16x8_LDSM_T"} do
    it(name, function()
      local D = ldmatrix(name, num)
      for lane = 0, 31 do
        for v = 0, 2 * num - 1 do
          -- Transposed: the register holds the element at (col, row).
          local row, col = v // 2 * 8 + lane % 4 * 2 + v % 2, lane // 4
          assert.equal(row * 8 + col, D[{lane, v}])
        end
      end
    end)
  end

  it("stmatrix is the inverse of ldmatrix", function()
    local D = cute.zeros({32, 8}, cute.f16)
    local ld = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
    local st = cute.make_copy_atom("SM90_U32x4_STSM_N", cute.f16)
    local call = cute.kernel("st", function(d)
      local t = cute.arch.thread_idx()
      local layout = cute.make_layout({32, 8}, {8, 1})
      local a = cute.make_smem_tensor(cute.f16, layout, 128)
      local b = cute.make_smem_tensor(cute.f16, layout, 128)
      for i = 0, 7 do a[{t, i}] = (t * 8 + i):to(cute.f16) end
      cute.arch.sync_warp()
      local v = cute.make_rmem_tensor({8}, cute.f16)
      cute.copy(ld, cute.local_tile(a, {1, 8}, {t, 0})(0, cute._), v)
      cute.copy(st, v, cute.local_tile(b, {1, 8}, {t, 0})(0, cute._))
      for i = 0, 7 do d[{t, i}] = b[{t, i}] end
    end)(D)
    local r = support.report(call:launch {grid = 1, block = 32,
      device = "sim:sm_90a", faults = "return"})
    assert.are.same({}, r.reports)
    for t = 0, 31 do
      for i = 0, 7 do assert.equal(t * 8 + i, D[{t, i}]) end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
