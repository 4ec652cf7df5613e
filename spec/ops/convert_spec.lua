-- Tests ops.convert to and from formats whose blocks share a scale factor. Lua
-- applies the rules of the OCP MX specification and of NVFP4 in doubles. Also
-- tests layouts of scale factors, and errors for wrong calls.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local convert = cute.ops.convert

local SIM = {device = "sim"}

-- The formats: {exponent bits and mantissa bits of an element, its largest
-- number, number of elements in a block}.
local FORMATS = {
  mxfp8_e4m3 = {4, 3, 448, 32}, mxfp8_e5m2 = {5, 2, 57344, 32},
  mxfp6_e3m2 = {3, 2, 28, 32}, mxfp6_e2m3 = {2, 3, 7.5, 32},
  mxfp4 = {2, 1, 6, 32}, nvfp4 = {2, 1, 6, 16},
}
local NAMES = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2",
               "nvfp4"}

-- Returns the largest power of two that is not larger than x, as an exponent.
local function exponent_of(x)
  -- math.log may be off by one at powers of two.
  local e = math.floor(math.log(x, 2))
  if 2.0 ^ (e + 1) <= x then e = e + 1 elseif 2.0 ^ e > x then e = e - 1 end
  return e
end

-- Returns x rounded to nearest even to a float with these bits, which saturates
-- at `largest`.
local function rounded(x, exponent, mantissa, largest)
  local bias = (1 << exponent - 1) - 1
  local size = math.abs(x)
  if size == 0 then return x end
  local step = 2.0 ^ (math.max(exponent_of(size), 1 - bias) - mantissa)
  local n = size / step
  local low = n // 1
  local up = n - low > 0.5 or n - low == 0.5 and low % 2 == 1
  local y = math.min((low + (up and 1 or 0)) * step, largest)
  return x < 0 and -y or y
end

local function f32(x) return (string.unpack("f", string.pack("f", x))) end

-- Returns the scale factor of a block, and its elements.
local function expected(list, name, scale)
  local e, m, largest = table.unpack(FORMATS[name])
  local amax, odd = 0, false
  for _, x in ipairs(list) do
    odd = odd or x ~= x or math.abs(x) == math.huge
    amax = math.max(amax, math.abs(x))
  end
  if odd then return 0 / 0 end
  local out = {}
  if name == "nvfp4" then
    local share = f32(amax / 6)
    if scale then share = f32(share / scale) end
    local factor = rounded(share, 4, 3, 448)
    local by = scale and f32(factor * scale) or factor
    for i, x in ipairs(list) do
      out[i] = by == 0 and 0 or rounded(f32(x / by), e, m, largest)
    end
    return factor, out
  end
  local emax = exponent_of(largest)
  local factor = 2.0 ^ (amax == 0 and -127
    or math.max(exponent_of(amax) - emax, -127))
  for i, x in ipairs(list) do out[i] = rounded(x / factor, e, m, largest) end
  return factor, out
end

-- Returns a tensor of random numbers whose blocks have very different
-- magnitudes: normal numbers, zeros, tiny numbers, and ties. With `odd`, it
-- also has infinities and NaNs.
local function numbers(rows, columns, dtype, seed, odd)
  local t = cute.zeros({rows, columns}, dtype)
  local state = seed
  local function random()
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) / 2 ^ 31
  end
  local half = tostring(dtype) == "f16"
  for i = 0, rows - 1 do
    local by = 2.0 ^ math.floor((random() - 0.5) * (half and 20 or 250))
    for j = 0, columns - 1 do
      local x = (random() + random() + random() - 1.5) * by
      local kind = random()
      if kind < 0.05 then x = 0.0
      elseif kind < 0.15 then x = by * (random() * 16 // 1 / 4 - 2) end
      if odd and i % 5 == 0 and j % 40 == 3 then
        x = i % 2 == 0 and math.huge or 0 / 0
      end
      t[{i, j}] = i == 1 and 0.0 or x
    end
  end
  return t
end

-- Compares elements and scale factors with the expected ones. at(i, b) is the
-- position of the factor of row i and block b among the elements of S.
local function differs(X, Q, S, name, scale, at)
  local size = FORMATS[name][4]
  local flat = cute.make_tensor(S.iterator, cute.make_layout(cute.cosize(
    S.layout)))
  for i = 0, X.shape[1] - 1 do
    for b = 0, X.shape[2] // size - 1 do
      local list = {}
      for j = 1, size do list[j] = X(i, b * size + j - 1) end
      local factor, elements = expected(list, name, scale)
      local s = flat(at(i, b))
      if elements and s ~= factor or not elements and s == s then
        return ("factor (%d,%d) is %s, not %s"):format(i, b, s, factor)
      end
      for j = 1, elements and size or 0 do
        local q = Q(i, b * size + j - 1)
        if q ~= elements[j] then
          return ("(%d,%d) is %s, not %s, of %s"):format(i, b * size + j - 1, q,
            elements[j], list[j])
        end
      end
    end
  end
end

describe("ops.convert", function()
  for nth, name in ipairs(NAMES) do
    local f = FORMATS[name]
    for at, dtype in ipairs {"f32", "bf16", "f16"} do
      it(("converts %s to %s"):format(dtype, name) .. support.long(at),
         function()
        local m, n = 23, 3 * f[4]
        local X = numbers(m, n, dtype, 3 * nth + at, true)
        local Q, S = convert(X, name, SIM)
        assert.equal(name:match "e%dm%d" or "e2m1", Q.element_type.name)
        assert.is_nil(differs(X, Q, S, name, nil, function(i, b)
          return i * 3 + b
        end))
        local layout = require "kernels.block_scaled".layout(m, 3)
        Q, S = convert(X, name, {device = "sim", tiled = true})
        assert.equal(512, cute.size(S))
        assert.is_nil(differs(X, Q, S, name, nil, layout))
        -- the layout also has 0 as the factor of rows and blocks outside of the
        -- matrix
        local codes = cute.recast_tensor(S, cute.u8)
        assert.equal(0, codes(0, 0, 31, 3, 0))
        assert.equal(0, codes(0, 0, 0, 0, 3))
      end)
    end

    it("converts from " .. name, function()
      local m, n = 37, 4 * f[4]
      local X = numbers(m, n, "f32", 7)
      for _, tiled in ipairs {false, true} do
        local Q, S = convert(X, name, {device = "sim", tiled = tiled})
        local Y = convert(Q, "f32", {device = "sim", factors = S})
        local factor = {}
        for i = 0, m - 1 do
          for b = 0, 3 do
            local list = {}
            for j = 1, f[4] do list[j] = X(i, b * f[4] + j - 1) end
            factor[b] = expected(list, name)
          end
          for j = 0, n - 1 do
            assert.equal(f32(Q(i, j) * factor[j // f[4]]), Y(i, j))
          end
        end
      end
    end)
  end

  it("has a global scale of nvfp4", function()
    local X, scale = numbers(9, 64, "f32", 3), 2.0 ^ 40 / 3
    scale = f32(scale)
    local Q, S = convert(X, "nvfp4", {device = "sim", scale = scale})
    local function at(i, b) return i * 4 + b end
    assert.is_nil(differs(X, Q, S, "nvfp4", scale, at))
    local one = cute.full({1}, scale, cute.f32)
    local Q2, S2 = convert(X, "nvfp4", {device = "sim", scale = one})
    assert.is_nil(differs(X, Q2, S2, "nvfp4", scale, at))
    local Y = convert(Q, "bf16", {device = "sim", factors = S, scale = one})
    local cell = core.buffer("bf16", 1)
    for i = 0, 8 do
      for j = 0, 63 do
        cell[0] = f32(Q(i, j) * S(i, j // 16) * scale)
        assert.equal(cell[0], Y(i, j))
      end
    end
  end)

  it("takes batches, other layouts and given results", function()
    local X = numbers(6, 64, "f32", 5)
    local B = cute.make_tensor(X.iterator, cute.make_layout({2, 3, 64},
      {192, 64, 1}))
    local Q, S = convert(B, "mxfp8_e4m3", {device = "sim", tiled = true})
    assert.same({2, 1, 1, 32, 4, 4}, S.shape)
    local turned = cute.ops.transpose(X, SIM)
    turned = cute.select(turned, {1, 0})
    local P, F = cute.zeros({6, 64}, cute.e4m3), cute.zeros({6, 2}, cute.ue8m0)
    local P2 = convert(turned, "mxfp8_e4m3", {device = "sim", out = {P, F}})
    assert.is_true(rawequal(P, P2))
    for i = 0, 5 do
      for j = 0, 63 do assert.equal(Q(i // 3, i % 3, j), P(i, j)) end
      assert.equal(S(i // 3, 0, 0, i % 3, 0, 1), F(i, 1))
    end
    local empty = convert(cute.zeros({0, 64}, cute.f32), "mxfp4", SIM)
    assert.equal("e2m1 (0,64):(64,1)", empty.element_type.name .. " "
      .. tostring(empty.layout))
  end)

  it("rejects what no format has", function()
    local X = cute.zeros({4, 48}, cute.f32)
    local function refused(text, ...)
      support.raises(text, convert, ...)
    end
    refused("rows of mxfp4 need a multiple of 32 elements", X, "mxfp4", SIM)
    refused("only nvfp4 has a global scale", cute.zeros({4, 64}, cute.f32),
            "mxfp4", {scale = 2, device = "sim"})
    refused("x has elements of type i32; bf16, f16 or f32 is needed",
            cute.zeros({4, 64}, cute.i32), "mxfp4", SIM)
    refused('dtype = "mxfp5"; this type does not exist', X, "mxfp5", SIM)
    local Q, S = convert(X, "nvfp4", SIM)
    refused("factors is (4,2):(2,1); extents (4,3) are needed", Q, "f32",
      {factors = cute.zeros({4, 2}, cute.e4m3), device = "sim"})
    refused("x has type e2m1 and its scale factors have type f32; no "
      .. "block-scaled format has both", Q, "f32",
      {factors = cute.zeros({4, 3}, cute.f32), device = "sim"})
    refused("dtype = i32; with factors, bf16, f16 or f32 is needed", Q, "i32",
            {factors = S, device = "sim"})
  end)

  it("compiles for GPUs without and with instructions for 4-bit floats",
     function()
    local kernels = require "spec.kernels"
    local k = require "kernels.block_scaled".quantize {format = "mxfp4",
                                                       n = 256}
    local program = k.kernel(cute.zeros({4, 256}, cute.bf16),
      cute.zeros({4, 256}, cute.e2m1), cute.zeros({4, 8}, cute.ue8m0))
      :trace {block = k.block}
    for _, arch in ipairs {"sm_90a", "sm_100a", "sm_120a"} do
      local out = kernels.compiled(program, arch)
      assert.equal(0, out and out.resources.spill_stores or 0, arch)
    end
  end)
end)

describe("the conversion of zeros to nvfp4", function()
  it("has zeros, also if the global scale is 0", function()
    for _, scale in ipairs {0, 1} do
      local Q, S = convert(cute.zeros({2, 32}, cute.f32), "nvfp4",
                           {device = "sim", scale = scale})
      for _, s in S:elements() do assert.equal(0, s) end
      for _, q in Q:elements() do assert.equal(0, q) end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
