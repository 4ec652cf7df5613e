-- Tests products of MX formats and NVFP4 by ops.gemm on the simulator against
-- sums in doubles: by tcgen05 on sm_100a, by mma.sync on sm_120a. A report of
-- the simulator is an error. NVRTC must compile the kernels for each chip,
-- without spills.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"

local gemm, convert = cute.ops.gemm, cute.ops.convert

local CHIPS = {"sm_100a", "sm_120a"}
local FORMATS = {nvfp4 = {"e2m1", "e4m3", 16}, mxfp4 = {"e2m1", "ue8m0", 32},
                 mxfp8_e4m3 = {"e4m3", "ue8m0", 32},
                 mxfp8_e5m2 = {"e5m2", "ue8m0", 32},
                 mxfp6_e3m2 = {"e3m2", "ue8m0", 32},
                 mxfp6_e2m3 = {"e2m3", "ue8m0", 32}}

-- Returns a tensor of this shape, row-major; with a seed, of small whole
-- numbers.
local function tensor(shape, dtype, seed)
  local b = core.buffer(dtype, cute.product(shape))
  if seed then b:fill_int(seed, -2, 3) end
  return cute.make_tensor(b, cute.make_layout(shape, cute.LayoutRight))
end

-- Calls f(coordinates) for all rows of a tensor of this shape,
-- (...,rows,columns).
local function each_row(shape, f)
  ops.each_of(table.move(shape, 1, #shape - 1, 1, {}), f)
end

-- Returns a list of the coordinates in c, followed by the further
-- arguments.
local function at(c, ...)
  local list = table.move(c, 1, #c, 1, {})
  for _, x in ipairs {...} do list[#list + 1] = x end
  return list
end

-- Returns elements (...,rows,k) of small whole numbers with scale factors of 1,
-- 2 or 4. Also returns the elements times their factors, in f32. Without a
-- seed, all elements and factors are undefined.
local function operand(shape, format, seed, tiled)
  local dtype, sf, size = table.unpack(FORMATS[format])
  local Q, X = tensor(shape, dtype, seed), tensor(shape, "f32")
  local rank, blocks = #shape, shape[#shape] // size
  local extents = table.move(shape, 1, rank - 1, 1, {})
  extents[rank] = blocks
  if tiled then
    extents[rank - 1] = (shape[rank - 1] + 127) // 128
    extents[rank] = (blocks + 3) // 4
    table.move({32, 4, 4}, 1, 3, rank + 1, extents)
  end
  local S = tensor(extents, sf)
  if not seed then return Q, S, X end
  local q, x, width = core.param_memory(Q), core.param_memory(X), shape[rank]
  each_row(shape, function(c, number)
    local row, lead = c[#c], {table.unpack(c, 1, #c - 1)}
    for b = 0, blocks - 1 do
      seed = seed * 1103515245 + 12345 & 0x7fffffff
      local s = 2.0 ^ ((seed >> 16) % 3)
      if tiled then
        S[at(lead, row // 128, b // 4, row % 32, row % 128 // 32, b % 4)] = s
      else
        S[at(c, b)] = s
      end
      local first = number * width + b * size
      for k = first, first + size - 1 do x[k] = s * q[k] end
    end
  end)
  return Q, S, X
end

-- Computes the product of case c on a chip. Describes the first wrong element,
-- or returns nil.
local function differs(chip, c, o)
  local a, b = c[1], c.b or c[1]
  local function shape(rows, count)
    return count and {count, rows, c[4]} or {rows, c[4]}
  end
  local A, SA, X = operand(shape(c[2], c.batches), a, 1, c.tiled)
  local B, SB, Y = operand(shape(c[3], c.one and 1 or c.batches), b, 2,
                           c.tiled_b == nil and c.tiled or c.tiled_b)
  local all = {scale_a = SA, scale_b = SB, device = "sim:" .. chip,
               dtype = c[5]}
  for name, v in pairs(o or {}) do all[name] = v end
  local C, want = all.C, all.want
  all.C, all.want = nil, nil
  local D = gemm(A, B, C, all)
  return ops.differs(X, Y, D, want or function(_, _, _, sum) return sum end), D
end

-- {format, M, N, K, type of D}
local CASES = {
  {"nvfp4", 1, 1, 16, "f32"}, {"nvfp4", 33, 17, 48, "bf16"},
  {"nvfp4", 129, 130, 336, "f32", tiled = true},
  {"nvfp4", 200, 264, 64, "f16", tiled = true, tiled_b = false},
  {"nvfp4", 65, 40, 272, "f32", batches = 2},
  {"mxfp4", 127, 255, 32, "f32"},
  {"mxfp4", 128, 128, 256, "bf16", tiled = true},
  {"mxfp4", 31, 77, 160, "f32", batches = 3, one = true, tiled = true},
  {"mxfp4", 300, 9, 544, "f16"},
  {"mxfp8_e4m3", 1, 300, 96, "f32"},
  {"mxfp8_e4m3", 150, 72, 288, "bf16", tiled = true},
  {"mxfp8_e4m3", 130, 131, 64, "f32", batches = 2, tiled = true},
  {"mxfp8_e5m2", 77, 143, 224, "f32"}, {"mxfp8_e5m2", 257, 34, 32, "f16"},
  {"mxfp8_e4m3", 100, 100, 160, "f32", b = "mxfp8_e5m2"},
  -- ops.gemm converts these formats to 8 bits first
  {"mxfp6_e3m2", 77, 40, 96, "f32"},
  {"mxfp6_e2m3", 130, 33, 160, "bf16", tiled = true},
  {"mxfp6_e3m2", 33, 70, 64, "f32", b = "mxfp6_e2m3", batches = 2},
  {"mxfp6_e2m3", 40, 70, 96, "f32", batches = 3, one = true},
  {"mxfp6_e2m3", 65, 29, 192, "f32", b = "mxfp4"},
  {"mxfp4", 40, 150, 128, "f32", b = "mxfp8_e5m2", tiled = true},
  {"mxfp8_e4m3", 31, 64, 32, "f32", b = "mxfp6_e3m2"},
}

describe("ops.gemm of formats with scale factors", function()
  for _, chip in ipairs(CHIPS) do
    for nth, c in ipairs(CASES) do
      it(("is right on %s: %d x %d x %d of %s"):format(chip, c[2], c[3], c[4],
                                                      c[1])
         .. support.long(nth, 8), function()
        assert.is_nil(differs(chip, c))
      end)
    end

    it("has alpha, C, beta and epilogues on " .. chip .. " #long", function()
      local C = cute.zeros({40, 50}, cute.f32)
      for i = 0, 39 do for j = 0, 49 do C[{i, j}] = i - j end end
      assert.is_nil(differs(chip, {"mxfp4", 40, 50, 96, "f32"}, {
        alpha = 2, beta = 3, C = C, want = function(_, i, j, sum)
          return 2 * sum + 3 * (i - j)
        end}))
      local bias = cute.full({50}, 3, cute.f32)
      assert.is_nil(differs(chip, {"nvfp4", 140, 50, 96, "f32"}, {
        epilogue = function(x, part) return x * 2.0 + part:col(bias) end,
        want = function(_, _, _, sum) return 2 * sum + 3 end}))
    end)
  end

  for nth, name in ipairs {"nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp8_e5m2",
                           "mxfp6_e3m2", "mxfp6_e2m3"} do
    it("takes what ops.convert returns: " .. name .. support.long(nth),
       function()
      local X, Y = cute.randn({40, 96}, cute.f32, {seed = 1}),
        cute.randn({72, 96}, cute.f32, {seed = 2})
      local o = {tiled = nth % 2 == 0, device = "sim"}
      local A, SA = convert(X, name, o)
      local B, SB = convert(Y, name, o)
      local A32 = convert(A, cute.f32, {factors = SA, device = "sim"})
      local B32 = convert(B, cute.f32, {factors = SB, device = "sim"})
      for _, chip in ipairs(CHIPS) do
        local D = gemm(A, B, {scale_a = SA, scale_b = SB, dtype = cute.f32,
                              device = "sim:" .. chip})
        ops.each(A32, B32, D, function(_, i, j, sum)
          assert.near(sum, D(i, j), 1e-4)
        end)
      end
    end)
  end

  for nth, c in ipairs {{"nvfp4", 140, 72, 96}, {"mxfp8_e4m3", 33, 200, 160},
                        {"mxfp6_e2m3", 70, 40, 64, tiled = true}} do
    it("has gates: " .. c[1] .. support.long(nth), function()
      local name, M, N, K = table.unpack(c)
      local A, SA, X = operand({M, K}, name, 1, c.tiled)
      local B, SB, Y = operand({2 * N, K}, name, 2)
      local D = gemm(A, B, {scale_a = SA, scale_b = SB, dtype = cute.f32,
        gated = true, device = "sim:sm_100a",
        epilogue = function(gate, up) return gate * 2.0 + up end})
      local function half(first)
        return cute.make_tensor(Y.iterator + first * K,
                                cute.make_layout({N, K}, {K, 1}))
      end
      local up = {}
      ops.each(X, half(N), D, function(_, i, j, sum) up[i * N + j] = sum end)
      assert.is_nil(ops.differs(X, half(0), D, function(_, i, j, sum)
        return 2 * sum + up[i * N + j]
      end))
    end)
  end

  it("is 0 if K is empty", function()
    for _, name in ipairs {"nvfp4", "mxfp8_e4m3"} do
      local A, S = operand({3, 0}, name, 1)
      local D = gemm(A, A, {scale_a = S, scale_b = S, device = "sim:sm_100a"})
      assert.equal(cute.bf16, D.element_type)
      for i = 0, 8 do assert.equal(0, D[i]) end
    end
  end)

  it("compiles without spills for each chip #long", function()
    local function gelu(x) return cute.ops.gelu(x) end
    for i, name in ipairs {"nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp8_e5m2",
                           "mxfp6_e3m2"} do
      local A, SA = operand({512, 512}, name, nil, true)
      for j, chip in ipairs {"sm_100a", "sm_103a", "sm_110a", "sm_120a"} do
        local e = cute.ops.explain(A, A, {scale_a = SA, scale_b = SA,
          epilogue = (i + j) % 2 == 0 and gelu or nil,
          device = "sim:" .. chip})
        local out = kernels.compiled(e.trace(), chip)
        assert.equal(0, out and out.resources.spill_stores or 0,
                     name .. " on " .. chip)
      end
    end
  end)

  it("is chosen by estimates from public rates", function()
    local function seconds(name)
      local dtype, sf, size = table.unpack(FORMATS[name])
      local X = cute.make_tensor(cute.empty({1}, dtype).iterator,
                                 cute.make_layout({8192, 8192}, {8192, 1}))
      local S = cute.make_tensor(cute.empty({1}, sf).iterator,
        cute.make_layout({64, 8192 // size // 4, 32, 4, 4},
                         cute.LayoutRight))
      local e = cute.ops.explain(X, X, {scale_a = S, scale_b = S,
                                        device = "sim:sm_100a"})
      assert.equal("gemm_sm100", e.kernel)
      return tonumber(e.text:match "about ([%d.]+) us") * 1e-6
    end
    -- the lower bounds are 2 * 8192^3 operations at 9 and 4.5 PFLOP/s
    local four, eight = seconds "nvfp4", seconds "mxfp8_e4m3"
    assert.is_true(four > 122e-6 and four < 200e-6, tostring(four))
    assert.is_true(eight > 244e-6 and eight < 350e-6, tostring(eight))
  end)
end)

describe("ops.gemm rejects formats with", function()
  local nv, nv_factors = operand({64, 64}, "nvfp4", 1)
  local mx, mx_factors = operand({64, 64}, "mxfp4", 1)

  -- Checks that a product on a device raises an error with this text.
  local function raises(text, device, A, SA, B, SB, more)
    local o = {scale_a = SA, scale_b = SB, device = "sim:" .. device}
    for name, v in pairs(more or {}) do o[name] = v end
    support.raises(text, gemm, A, B, o)
  end

  it("factors of one operand, of two types or of another shape", function()
    raises("A has the format nvfp4, but B of e2m1 has no block-scaled "
      .. "format; convert both operands by ops.convert", "sm_100a", nv,
      nv_factors, mx)
    raises("A has the format nvfp4 and B mxfp4; both need factors of the same "
      .. "type, each for the same number of elements", "sm_100a", nv,
      nv_factors, mx, mx_factors)
    raises("scale_b is (64,2):(2,1): (64,4) is needed for 64 x 64 elements of "
      .. "nvfp4, or the tiles (1,1,32,4,4)", "sm_100a", nv, nv_factors, nv,
      tensor({64, 2}, "e4m3"))
    raises("group = 32, but nvfp4 has one factor for 16 elements", "sm_100a",
      nv, nv_factors, nv, nv_factors, {group = 32})
    local X = tensor({64, 40}, "e2m1")
    raises("K is 40; rows of nvfp4 need a multiple of 16 elements", "sm_100a",
      X, nv_factors, X, nv_factors)
  end)

  it("gates and factors in tiles", function()
    local B, tiles = operand({64, 64}, "nvfp4", 1, true)
    raises("scale_b is (1,1,32,4,4):(0,0,16,4,1); with gated = true it must "
      .. "be (2N,K/16), not tiles", "sm_100a", nv, nv_factors, B, tiles,
      {gated = true, epilogue = function(x, y) return x * y end})
  end)

  it("targets and formats that no kernel multiplies", function()
    raises("no kernel multiplies nvfp4 by nvfp4 on sm_90a", "sm_90a", nv,
      nv_factors, nv, nv_factors)
    raises("  convert A and B to bf16 before: ops.convert(x, cute.bf16, "
      .. "{factors = ...})", "sm_90a", nv, nv_factors, nv, nv_factors)
    raises("tcgen05 needs sm_100a or its family, but the device is sm_100",
      "sm_100", nv, nv_factors, nv, nv_factors)
    raises("mma.sync with scale factors needs sm_120a or its family, but the "
      .. "device is sm_120", "sm_120", nv, nv_factors, nv, nv_factors)
    local X, S = tensor({64, 64}, "e2m3"), tensor({64, 2}, "ue8m0")
    raises("no kernel multiplies mxfp6_e2m3 by mxfp6_e2m3 on sm_90a", "sm_90a",
           X, S, X, S)
  end)
end)
-- SPDX-License-Identifier: MIT
