-- Tests CUDA's float functions. NVRTC compiles a call to instructions. The
-- simulator must compute the same bits for the function as for these
-- instructions, for numbers of all magnitudes.
local core = require "cute.core"
local cute = require "cute"
local through = require "spec.ptx.through"

local ONE = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin",
             "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
             "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "rsqrt", "sqrt",
             "rcp", "floor", "ceil", "trunc", "round", "roundeven"}
local TWO = {"pow", "atan2", "fmod", "copysign"}
local ALL = table.move(TWO, 1, #TWO, #ONE + 1, table.move(ONE, 1, #ONE, 1, {}))

-- Bits of zeros, subnormal numbers, infinities, NaNs, and of numbers near which
-- a function switches to another formula. Every pair of them is tested.
local EDGES = {0, 1, 0x7fffff, 0x800000, 0x38000000, 0x3a00b43c, 0x3e800000,
               0x3ed1eb85, 0x3f000000, 0x3f0f5c29, 0x3f19999a, 0x3f7fffff,
               0x3f800000, 0x3f800001, 0x3f8060fe, 0x40000000, 0x40400000,
               0x41102cb4, 0x4120e148, 0x42aeac50, 0x42fc0000, 0x43000000,
               0x43180000, 0x47ce477f, 0x47ce4780, 0x4b000000, 0x4b000001,
               0x7e800000, 0x7e800001, 0x7f7fffff, 0x7f800000, 0x7f800001,
               0x7fc00000, 0x7fffffff}

local function bits_of(x) return (("<I4"):unpack(("<f"):pack(x))) end

-- Returns two buffers of n arguments, as bits: all pairs of edges with both
-- signs, then random bits and random numbers of several ranges.
local function arguments(n, seed)
  local x, y = core.buffer(cute.u32, n), core.buffer(cute.u32, n)
  local state = seed
  local function random()
    state = state * 6364136223846793005 + 1442695040888963407
    return state >> 32
  end
  local function any(kind)
    local r = random()
    if kind % 4 == 0 then return r end
    local unit = r / 2.0 ^ 31 - 1
    if kind % 4 == 3 then return bits_of(math.floor(unit * 300) / 2) end
    return bits_of(unit * (kind % 4 == 1 and 2 or 20))
  end
  local edges = {}
  for _, e in ipairs(EDGES) do
    edges[#edges + 1] = e
    edges[#edges + 1] = e | 0x80000000
  end
  local count = #edges
  for i = 0, n - 1 do
    if i < count * count then
      x[i], y[i] = edges[i % count + 1], edges[i // count + 1]
    else
      x[i], y[i] = any(i), any(i // 4)
    end
  end
  return x, y
end

-- Returns a kernel that applies all functions to n arguments of a float type
-- and stores the bits: result j of argument i is at j n + i.
local function kernel(n, dtype)
  return cute.kernel("k", function(x, y, out)
    local i = cute.arch.block_idx() * 256 + cute.arch.thread_idx()
    local a, b = x[i]:bitcast(dtype), y[i]:bitcast(dtype)
    for j, name in ipairs(ALL) do
      local r = j > #ONE and cute[name](a, b) or cute[name](a)
      out[i + (j - 1) * n] = r:bitcast(out.element_type)
    end
  end)
end

-- Returns the results of a call, directly and through the PTX of its CUDA C.
local function both(call, out, opts, arch)
  opts.device = "sim:" .. arch
  call:launch(opts)
  local direct = core.buffer(out.dtype, #out):copy(out, 0, 0, #out)
  out:fill(0)
  local text, smem = through.call(call, opts, arch)
  through.kernel(text, smem)(through.arguments(core.launch_values(call)))
    :launch(opts)
  return direct, out
end

-- Compares all functions of the arguments in two buffers of bits.
local function compare(x, y, dtype, arch)
  local n = #x
  local out = core.buffer(x.dtype, #ALL * n)
  local function tensor(b) return cute.make_tensor(b, cute.make_layout(#b)) end
  local call = kernel(n, dtype)(tensor(x), tensor(y), tensor(out))
  local direct, ptx = both(call, out, {grid = n // 256, block = 256}, arch)
  if direct:equal(ptx) then return end
  for at = 0, #ALL * n - 1 do
    local i, j = at % n, at // n + 1
    if direct[at] ~= ptx[at] then
      error(("%s of %x, %x: %x directly, %x through PTX"):format(
        ALL[j], x[i], y[i], direct[at], ptx[at]), 0)
    end
  end
end

local function compare_f32(n, arch, seed)
  local x, y = arguments(n, seed)
  compare(x, y, cute.f32, arch)
end

-- Compares the functions for all numbers of a type of 16 bits.
local function compare_narrow(dtype, arch)
  local n = 1 << 16
  local x, y = core.buffer(cute.u16, n), core.buffer(cute.u16, n)
  for i = 0, n - 1 do x[i], y[i] = i, (i * 40503 >> 3) & 0xffff end
  compare(x, y, dtype, arch)
end

-- Compares the functions for constants, which the compiler may evaluate.
local function compare_known(arch)
  local N = 16
  local x = cute.zeros({N}, cute.f32)
  local out = core.buffer(cute.u32, #ONE + #TWO * (1 + 2 * N) + 3 * N)
  for i = 0, N - 1 do x[i] = (i * 4 - 20) / 7 end
  local to = cute.make_tensor(out, cute.make_layout(#out))
  for _, v in ipairs {0.3, 1.0, 3.25, 1e6} do
    local call = cute.kernel("k", function(a, c)
      local r = cute.make_rmem_tensor({2}, cute.f32)
      r[0], r[1] = v, 1.3
      local at = 0
      local function put(f)
        c[at], at = f:bitcast(cute.u32), at + 1
      end
      for _, name in ipairs(ONE) do put(cute[name](r[0])) end
      for _, name in ipairs(TWO) do
        put(cute[name](r[0], r[1]))
        for i = 0, N - 1 do
          put(cute[name](r[0], a[i]))
          put(cute[name](a[i], r[0]))
        end
      end
      for _, power in ipairs {0.5, 3.0, -1.0} do
        for i = 0, N - 1 do put(cute.pow(a[i], power)) end
      end
    end)(x, to)
    local direct, ptx = both(call, out, {grid = 1, block = 1}, arch)
    for i = 0, #out - 1 do
      assert.equal(direct[i], ptx[i], ("%s, result %d"):format(v, i))
    end
  end
end

-- The version of CUDA that core/base/cudafn.h names. Other versions compute
-- some functions by other instructions (docs/simulator.md).
local VERSION = "13.0"

describe("CUDA's functions are those of the PTX", function()
  local version = core.nvrtc_version()
  if version ~= VERSION then
    pending(("needs NVRTC %s, not %s"):format(VERSION, version or "none"))
    return
  end

  it("which is the same for sm_80 and sm_90a", function()
    local function text(arch)
      local b = cute.zeros({256}, cute.u32)
      local out = cute.zeros({256 * #ALL}, cute.u32)
      return (through.call(kernel(256, cute.f32)(b, b, out), {block = 256},
                           arch)
        :gsub("%.target[^\n]*", ""))
    end
    assert.equal(text "sm_80", text "sm_90a")
  end)

  it("for 16,384 arguments", function() compare_f32(1 << 14, "sm_90a", 1) end)

  for seed = 1, 4 do
    it(("for 131,072 arguments, %d #long"):format(seed), function()
      compare_f32(1 << 17, "sm_80", seed)
    end)
  end

  for _, dtype in ipairs {"f16", "bf16"} do
    for _, arch in ipairs {"sm_80", "sm_90a"} do
      it(("for all numbers of %s, %s #long"):format(dtype, arch), function()
        compare_narrow(cute[dtype], arch)
      end)
    end
  end

  it("for values that the compiler knows", function()
    compare_known "sm_90a"
  end)
end)
-- SPDX-License-Identifier: MIT
