-- Tests products by kernels/gemm_sm100 on the simulator against sums in
-- doubles: odd sizes, types, layouts, batches, epilogues and tiles. A report of
-- the simulator is an error. NVRTC must compile its kernels for each chip with
-- tcgen05, without spills.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm100 = require "kernels.gemm_sm100"
local grouped = require "spec.grouped"
local hopper = require "spec.hopper"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"

local SIM = "sim:sm_100a"

-- Calls f(...) with gemm_sm100 as the only enabled family of kernels.
local function by(f, ...) return grouped.by("gemm_sm100", f, ...) end

-- Returns a tensor (...,rows,columns) of small whole numbers. `major` names the
-- contiguous one of the last two modes; the other one's stride is a multiple of
-- 16 bytes.
local function matrix(shape, dtype, seed, major)
  local each, rank = 128 // core.find_dtype(dtype).bits, #shape
  local wide, order = table.move(shape, 1, rank, 1, {}), {}
  local lead = major == "m" and rank - 1 or rank
  wide[lead] = (wide[lead] + each - 1) // each * each
  for i = 1, rank do order[i] = rank - i end
  if major == "m" then order[rank], order[rank - 1] = 1, 0 end
  local dense = cute.make_ordered_layout(wide, order)
  local b = core.buffer(dtype, cute.cosize(dense))
  if seed then b:fill_int(seed, dtype == "u8" and 0 or -2, 3) end
  return cute.make_tensor(b, cute.make_layout(shape, dense.stride))
end

local CASES = {
  {1, 1, 8}, {1, 136, 64}, {129, 1, 72}, {127, 255, 40}, {128, 256, 64},
  {200, 264, 136}, {333, 17, 200, "f16"}, {70, 130, 24, "f32", "f32"},
  {150, 72, 152, "e4m3", "bf16"}, {150, 72, 152, "e5m2", "f32"},
  {131, 67, 160, "i8", "i32"}, {64, 300, 96, "u8", "i32"},
  {150, 72, 88, "bf16", "bf16", "m", "m"},
  {77, 80, 144, "e4m3", "f32", "m", "k"},
  {140, 50, 88, "f16", "f32", "k", "m"}, {300, 33, 520, "bf16", "f32"},
}

describe("a product by tcgen05", function()
  for nth, c in ipairs(CASES) do
    local m, n, k, dtype, d = table.unpack(c)
    dtype = dtype or "bf16"
    it(("is right: %d x %d x %d of %s"):format(m, n, k, dtype)
       .. support.long(nth), function()
      local A = matrix({m, k}, dtype, 1, c[6])
      local B = matrix({n, k}, dtype, 2, c[7])
      for _, major in ipairs {"k", "m"} do
        local D = matrix({m, n}, d or dtype, nil, major)
        by(cute.ops.gemm, A, B, {device = SIM, tf32 = dtype == "f32" or nil,
                                 out = D})
        assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum)
          return sum
        end))
      end
    end)
  end

  it("has batches, alpha, C and beta #long", function()
    local A, B = matrix({2, 140, 72}, "bf16", 1), matrix({2, 40, 72}, "bf16", 2)
    local C = matrix({2, 140, 40}, "f32", 3)
    local D = by(cute.ops.gemm, A, B, C, {device = SIM, alpha = 2, beta = 3})
    assert.is_nil(ops.differs(A, B, D, function(batch, i, j, sum)
      return 2 * sum + 3 * ops.at(C, batch, i, j)
    end))
  end)

  it("has epilogues with vectors, matrices and reductions", function()
    local M, N, K = 150, 88, 72
    local A, B = matrix({M, K}, "bf16", 1), matrix({N, K}, "bf16", 2)
    local bias, T = cute.zeros({N}, cute.f32), matrix({M, N}, "f32", 3)
    for j = 0, N - 1 do bias[j] = j % 5 end
    local D, most, sum = by(cute.ops.gemm, A, B, {device = SIM,
      dtype = cute.f32, epilogue = function(x, at)
        local y = x + at:col(bias) + at:tile(T)
        return y, at:row_reduce("max", y), at:col_reduce("sum", y)
      end})
    local rows, columns = {}, {}
    assert.is_nil(ops.differs(A, B, D, function(_, i, j, x)
      local y = x + j % 5 + T(i, j)
      rows[i] = math.max(rows[i] or y, y)
      columns[j] = (columns[j] or 0) + y
      return y
    end))
    for i = 0, M - 1 do assert.equal(rows[i], most(i)) end
    for j = 0, N - 1 do assert.equal(columns[j], sum(j)) end
  end)

  it("has gates", function()
    local M, N, K = 150, 40, 72
    local A, B = matrix({M, K}, "bf16", 1), matrix({2 * N, K}, "bf16", 2)
    local D = by(cute.ops.gemm, A, B, {device = SIM, dtype = cute.f32,
      gated = true, epilogue = function(gate, up) return gate * 2.0 + up end})
    local up = cute.make_tensor(B.iterator + N * B.stride[1],
                                cute.make_layout({N, K}, B.stride))
    local other = {}
    ops.each(A, up, D, function(_, i, j, sum) other[i * N + j] = sum end)
    local gate = cute.make_tensor(B.iterator,
                                  cute.make_layout({N, K}, B.stride))
    assert.is_nil(ops.differs(A, gate, D, function(_, i, j, sum)
      return 2 * sum + other[i * N + j]
    end))
  end)

end)

describe("the kernel gemm_sm100", function()
  for nth, o in ipairs {
    {tile = {128, 48, 64}, cluster = {2, 1}, persistent = true},
    {tile = {128, 208, 64}, stages = 2, persistent = false},
    {tile = {128, 64, 32}, cluster = {1, 2}, d_major = "m"},
    {tile = {128, 96, 64}, stages = 1, epi = {128, 48}, epi_stages = 1},
    {tile = {128, 64, 64}, epi_loop = true, epilogue = function(x)
      return x * 1.0
    end},
  } do
    it("is right in each configuration: " .. nth .. " #long", function()
      local M, N, K = 300, 264, 136
      local A, B = hopper.matrix(M, K, 1), hopper.matrix(N, K, 2)
      local D = matrix({M, N}, "bf16", nil, o.d_major)
      for seed = 1, 2 do
        assert(gemm_sm100(o).prepare(A, B, D, {device = SIM, sms = 4,
                                               seed = seed})):launch()
        assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum)
          return sum
        end))
      end
    end)
  end

  local KERNELS = {
    {tile = {128, 256, 64}, cluster = {2, 1}},
    {tile = {128, 256, 64}, gated = true, epilogue = function(x, y)
      return cute.ops.gelu(x) * y
    end},
    {tile = {128, 256, 32}, dtype = cute.f32},
    {tile = {128, 256, 128}, dtype = cute.e4m3, d_dtype = cute.bf16,
     persistent = false},
    {tile = {128, 256, 64}, a_major = "m", b_major = "n", d_major = "m"},
  }
  for nth, o in ipairs(KERNELS) do
    it("compiles without spills: " .. nth .. support.long(nth), function()
      local g = gemm_sm100(o)
      local a, b = g.options.a_dtype, g.options.b_dtype
      local n = o.gated and 1024 or 512
      local args = g.arguments(matrix({512, 512}, a.name, 1, o.a_major),
        matrix({n, 512}, b.name, 2, o.b_major and "m"),
        matrix({512, 512}, g.options.d_dtype.name, nil, o.d_major))
      local program = g.kernel(table.unpack(args, 1, args.n))
        :trace {cluster = g.cluster}
      for _, chip in ipairs {"sm_100a", "sm_103a", "sm_110a"} do
        local out = kernels.compiled(program, chip)
        assert.equal(0, out and out.resources.spill_stores or 0, chip)
      end
    end)
  end

  it("is rejected for other options and targets", function()
    support.raises("tile = {64, 64, 64}; 128 rows, and a multiple of 16 "
      .. "columns", gemm_sm100, {tile = {64, 64, 64}})
    support.raises("A has type i8, B u8; tcgen05.mma needs the same type",
      gemm_sm100, {a_dtype = cute.i8, b_dtype = cute.u8, tile = {128, 64, 64}})
    support.raises('a_major = "m", b_major = "k" of f32; tf32', gemm_sm100,
      {dtype = cute.f32, tile = {128, 64, 32}, a_major = "m"})
    local A, B = matrix({64, 64}, "i8", 1), matrix({64, 64}, "i8", 2)
    for chip, why in pairs {
      sm_103a = "tcgen05%.mma of sm_103a does not multiply i8 by i8",
      sm_120a = "tcgen05 needs sm_100a or its family, but the device is sm_120a"
    } do
      local ok, message = pcall(by, cute.ops.gemm, A, B,
                                {device = "sim:" .. chip})
      assert.is_false(ok)
      assert.matches(why, message)
    end
  end)

  it("is chosen by estimates from public rates", function()
    local X = cute.make_tensor(cute.empty({1}, cute.bf16).iterator,
                               cute.make_layout({4096, 4096}, {4096, 1}))
    local e = cute.ops.explain(X, X, {device = SIM})
    assert.equal("gemm_sm100", e.kernel)
    assert.equal("by rule", e.how)
    -- 2 * 4096^3 operations at 2.25 PFLOP/s take 61 us.
    local function seconds(o)
      return gemm_sm100.candidates(4096, 4096, 4096, o)[1].seconds
    end
    assert.is_true(seconds {} > 61e-6 and seconds {} < 90e-6)
    assert.is_true(seconds {dtype = cute.e4m3} < 0.6 * seconds {})
    assert.is_true(seconds {dtype = cute.f32} > 1.8 * seconds {})
  end)
end)
-- SPDX-License-Identifier: MIT
