-- Tests small kernels, listed in a table. Each runs on the simulator and on the
-- GPU with the same inputs. The resulting tensors must be equal bit for bit, or
-- for CUDA's functions within a bound. Without a GPU, each kernel still runs on
-- the simulator without a fault, and NVRTC accepts its text.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local arch = cute.arch

---------------------------------------------------------------------------
-- Inputs
---------------------------------------------------------------------------

local seed = 0

-- Returns a tensor over a new buffer, whose elements fill(buffer) writes.
local function tensor(dtype, layout, fill)
  seed = seed + 1
  local l = cute.make_layout(table.unpack(layout))
  local b = core.buffer(dtype, cute.cosize(l))
  fill(b)
  return cute.make_tensor(b, l)
end

local function normal(dtype, ...)
  local s = seed
  return tensor(dtype, {{...}, cute.LayoutRight},
                function(b) b:fill_normal(s) end)
end

local function ints(dtype, lo, hi, ...)
  local s = seed
  return tensor(dtype, {{...}, cute.LayoutRight},
                function(b) b:fill_int(s, lo, hi) end)
end

-- Returns n elements whose bit patterns repeat a list.
local function patterns(dtype, bits, list, n)
  local format = "<I" .. bits // 8
  return tensor(dtype, {n}, function(b)
    local out = {}
    for i = 1, n do out[i] = format:pack(list[(i - 1) % #list + 1]) end
    b:set_bytes(table.concat(out))
  end)
end

local function counting(from, n)
  local list = {}
  for i = 1, n do list[i] = from + i - 1 end
  return list
end

-- Returns bits of f32 numbers for which conversions to narrow types are
-- difficult: ties, and numbers near the ends of the ranges.
local function corners()
  local list = {}
  for _, sign in ipairs {0, 0x80000000} do
    for exp = 0, 255 do
      for _, man in ipairs {0, 1, 0x0fffff, 0x100000, 0x100001, 0x07ffff,
          0x080000, 0x7fffff, 0x008000, 0x007fff, 0x018000, 0x001000,
          0x003000, 0x2aaaaa} do
        if exp < 255 or man == 0 then
          list[#list + 1] = sign | exp << 23 | man
        end
      end
    end
  end
  return list
end

local function zeros(dtype, ...) return cute.zeros({...}, dtype) end

---------------------------------------------------------------------------
-- The table: name, inputs, kernel; grid and block if not 1 and 32
---------------------------------------------------------------------------

-- Cases are registered by case(c). Each case starts from the same seed, so its
-- inputs do not depend on which other cases run.
local CASES = {}
local function case(c)
  local make = c.make
  c.make = function()
    seed = 1000
    return make()
  end
  CASES[#CASES + 1] = c
end

-- Adds a kernel whose output Y(i,j) is result j of f for element i of each
-- input.
local function functions(name, dtype, columns, make, f, bound)
  case {name, grid = 4, block = 64, bound = bound,
    make = function()
      local t = make(256)
      t[#t + 1] = zeros(dtype, 256, columns)
      return t
    end,
    kernel = function(...)
      local t = {...}
      local out = table.remove(t)
      local i = arch.block_idx() * 64 + arch.thread_idx()
      for j, src in ipairs(t) do t[j] = src[i] end
      local values = f(table.unpack(t))
      assert(#values == columns, #values)
      for j, v in ipairs(values) do out[{i, j - 1}] = v end
    end}
end

for _, t in ipairs {"i32", "i64", "u32"} do
  local lo, hi = -(1 << 31), (1 << 31) - 1
  if t == "u32" then lo, hi = 0, (1 << 32) - 1 end
  functions("integers " .. t, t, 17, function(n)
    return {ints(t, lo, hi, n), ints(t, t == "u32" and 1 or -9, 50, n)}
  end, function(a, b)
    local d = cute.where(b:eq(0), 7, b)
    return {a + b, a - b, a * b, a // d, a % d, a // 7, a % 7, a // 8, a % 8,
            a << 3, a >> 3, a & b, a | b, a ~ b, cute.min(a, b),
            cute.max(a, b), d * a + b}
  end)
end

functions("signed integers", "i32", 14, function(n)
  return {ints("i32", -1000, 1000, n), ints("i32", 1, 40, n)}
end, function(a, b)
  return {-a, cute.abs(a), a // -7, a % -7, a // -8, a % -8, a // -b, a % -b,
          (a + 2000) // b, (a + 2000) % b, a >> (b % 31), a << (b % 31),
          ~a, a * 3 + b // 2}
end)

for _, t in ipairs {"f32", "f64", "f16", "bf16"} do
  functions("floats " .. t, t, 23, function(n)
    return {normal(t, n), normal(t, n), normal(t, n)}
  end, function(a, b, c)
    return {a + b, a - b, a * b, a / b, a % b, a // b, a // -0.75, a * b + c,
            cute.fma(a, b, c), -a, cute.abs(a), cute.min(a, b), cute.max(a, b),
            cute.sqrt(cute.abs(a)), cute.floor(a), cute.ceil(a),
            cute.trunc(a * 3), cute.round(a * 2), cute.roundeven(a * 2),
            cute.copysign(a, b), cute.fmod(a * 9, b), a * 0.5 + 1,
            cute.where(a:lt(b), a, c)}
  end)
end

-- If one operand is a NaN, quiet or signaling, min and max return the other
-- operand.
for t, row in pairs {
  f64 = {64, 0x7ff0000000000001, 0x7ff8000000000000, 0xfff4000000000000},
  f32 = {32, 0x7f800001, 0x7fc00000, 0xffa00000},
  f16 = {16, 0x7c01, 0x7e00, 0xfd00}, bf16 = {16, 0x7f81, 0x7fc0, 0xffa0}} do
  functions("the smaller and the larger of a NaN and a number, " .. t, t, 4,
    function(n)
      return {patterns(t, row[1], {row[2], row[3], row[4]}, n), normal(t, n)}
    end, function(a, b)
      return {cute.min(a, b), cute.max(a, b), cute.min(b, a), cute.max(b, a)}
    end)
end

-- Bounds of the relative difference between the simulator's results and the
-- GPU's: half an ulp for the simulator's rounding, plus the error bound of
-- CUDA's function.
local ULP = 2.0 ^ -23

for _, row in ipairs {
    {"exponentials", 4 * ULP, 5, function(x)
      return {cute.exp(x), cute.expm1(x), cute.sinh(x),
              cute.cosh(x), cute.tanh(x)}
    end},
    {"logarithms and roots", 4 * ULP, 6, function(x)
      local y = cute.abs(x) + 0.01
      return {cute.log(y), cute.log2(y), cute.log10(y), cute.log1p(y),
              cute.rcp(y), cute.cbrt(y)}
    end},
    {"angles", 4 * ULP, 8, function(x)
      return {cute.sin(x), cute.cos(x), cute.tan(x), cute.atan(x),
              cute.asin(cute.min(cute.abs(x), 1.0)), cute.asinh(x),
              cute.acosh(cute.abs(x) + 1), cute.atan2(x, x + 2)}
    end},
    {"error functions and powers", 8 * ULP, 3, function(x)
      return {cute.erf(x), cute.erfc(x), cute.pow(cute.abs(x), 1.7)}
    end}} do
  functions(row[1], "f32", row[3], function(n) return {normal("f32", n)} end,
            row[4], row[2])
end

functions("approximations", "f32", 11, function(n)
  return {normal("f32", n)}
end, function(x)
  return {cute.ex2_approx(x), cute.tanh_approx(x), cute.rcp_approx(x),
          cute.lg2_approx(x), cute.sqrt_approx(x), cute.rsqrt_approx(x),
          cute.sin_approx(x), cute.cos_approx(x), cute.div_full(x, x + 2),
          cute.exp2(x), cute.rsqrt(x)}
end)

-- Approximate instructions, tested on corner cases and on random words.
local APPROX = {"tanh.approx.f32", "ex2.approx.f16x2", "ex2.approx.ftz.bf16x2",
                "tanh.approx.f16x2", "tanh.approx.bf16x2"}
for _, f in ipairs {"ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos"} do
  APPROX[#APPROX + 1] = f .. ".approx.f32"
  APPROX[#APPROX + 1] = f .. ".approx.ftz.f32"
end
case {"approximate instructions", grid = 256, block = 64,
  make = function()
    local list = corners()
    for i = #list + 1, 16384 do
      list[i] = (i * 0x9e3779b97f4a7c15 >> 32) & 0xffffffff
    end
    return {patterns("u32", 32, list, 16384), zeros("u32", 16384, #APPROX)}
  end,
  kernel = function(x, y)
    local i = arch.block_idx() * 64 + arch.thread_idx()
    for j, name in ipairs(APPROX) do
      local v = x[i]
      if name:find "x2$" then v = arch.approx(name, v)
      else v = arch.approx(name, v:bitcast(cute.f32)):bitcast(cute.u32) end
      y[{i, j - 1}] = v
    end
  end}

functions("comparisons", "i32", 8, function(n)
  return {ints("i32", -3, 3, n), normal("f32", n), normal("f32", n)}
end, function(a, x, y)
  local function int(p) return p:to(cute.i32) end
  return {int(a:lt(1)), int(a:le(1)), int(a:gt(1)), int(a:ge(1)),
          int(a:eq(1)), int(x:ne(y)), int(x:lt(y) & a:gt(0) | y:lt(0)),
          int(~x:lt(y))}
end)

-- Conversions of every value of the narrow types, and of corner cases of f32.
for _, to in ipairs {"f16", "bf16", "e4m3", "e5m2", "f64"} do
  local list = corners()
  local n = #list // 64
  case {"f32 to " .. to .. " and back", grid = n, block = 64,
    make = function()
      return {patterns("f32", 32, list, n * 64), zeros(to, n * 64),
              zeros("f32", n * 64)}
    end,
    kernel = function(x, y, back)
      local i = arch.block_idx() * 64 + arch.thread_idx()
      local v = x[i]:to(cute[to])
      y[i] = v
      back[i] = v:to(cute.f32)
    end}
end

for _, from in ipairs {"f16", "bf16", "e4m3", "e5m2"} do
  local bits = cute[from].width
  local n = 1 << bits
  case {"every " .. from .. " to f32", grid = n // 64, block = 64,
    make = function()
      return {patterns(from, bits, counting(0, n), n), zeros("f32", n)}
    end,
    kernel = function(x, y)
      local i = arch.block_idx() * 64 + arch.thread_idx()
      y[i] = x[i]:to(cute.f32)
    end}
end

for _, t in ipairs {"i8", "u8", "i16", "u16", "i32", "u32", "i64"} do
  case {"floats to " .. t .. " and back", grid = 8, block = 64,
    make = function()
      local x, y = ints("i32", -2000000, 2000000, 512), zeros("f32", 512)
      for i = 0, 511 do y[i] = x[i] / 2.0 ^ (i % 24) end
      return {x, y, zeros(t, 512), zeros(t, 512), zeros("f32", 512),
              zeros("bf16", 512)}
    end,
    kernel = function(x, y, a, b, c, d)
      local i = arch.block_idx() * 64 + arch.thread_idx()
      a[i] = y[i]:to(cute.i32):to(cute[t])
      local v = x[i]:to(cute[t])
      b[i] = v
      c[i] = v:to(cute.f32)
      d[i] = v:to(cute.bf16)
    end}
end

case {"loops, branches and what they carry", block = 64,
  make = function()
    return {zeros("i32", 64, 4), ints("i32", 0, 9, 64)}
  end,
  kernel = function(out, limit)
    local t = arch.thread_idx()
    local n, a, b, trips = limit[t], 0, 1, 0
    for i in cute.range(n) do
      a, b = b, a + b
      for j in cute.range(i, 9, 2) do
        cute.when((j % 3):eq(0), function() trips = trips + j end,
                  function() trips = trips - t end)
      end
    end
    local x, steps = t + 1, 0
    cute.loop(function() return x:ne(1) end, function()
      x = cute.where((x % 2):eq(0), x // 2, 3 * x + 1)
      steps = steps + 1
    end)
    local v = cute.var(0)
    for i in cute.range(5) do
      cute.when(((t + i) % 2):eq(0), function() v:set(v:get() + i) end)
    end
    out[{t, 0}], out[{t, 1}], out[{t, 2}], out[{t, 3}] = a, trips, steps,
      v:get()
  end}

case {"shuffles, votes and warp reductions", block = 64,
  make = function()
    return {ints("i32", -99, 99, 64), normal("f32", 64), zeros("i32", 64, 16),
            zeros("f32", 64, 4)}
  end,
  kernel = function(x, y, o, p)
    local t = arch.thread_idx()
    local v, w = x[t], y[t]
    local r = {}
    for _, width in ipairs {32, 8} do
      r[#r + 1] = arch.shuffle_sync(v, 5, width)
      r[#r + 1] = arch.shuffle_sync_up(v, 3, width)
      r[#r + 1] = arch.shuffle_sync_down(v, 2, width)
      r[#r + 1] = arch.shuffle_sync_bfly(v, 6, width)
    end
    r[#r + 1] = arch.vote_ballot_sync(v:gt(0)):to(cute.i32)
    r[#r + 1] = arch.vote_any_sync(v:gt(97)):to(cute.i32)
    r[#r + 1] = arch.vote_all_sync(v:gt(-97)):to(cute.i32)
    for _, kind in ipairs {"add", "min", "max", "and", "xor"} do
      r[#r + 1] = arch.warp_redux_sync(v, kind)
    end
    for j, value in ipairs(r) do o[{t, j - 1}] = value end
    p[{t, 0}] = arch.warp_reduction(w, function(a, b) return a + b end)
    p[{t, 1}] = arch.warp_reduction(w, cute.max, 8)
    p[{t, 2}] = arch.shuffle_sync(w, (t * 7) % 32)
    p[{t, 3}] = arch.shuffle_sync_bfly(w:to(cute.bf16), 1):to(cute.f32)
  end}

case {"shared memory, barriers and named barriers", block = 128,
  make = function() return {normal("bf16", 128), zeros("bf16", 128)} end,
  kernel = function(x, y)
    local t = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, cute.composition(
      cute.make_swizzle(2, 1, 3), cute.make_layout({16, 8}, {8, 1})), 16)
    s[{t // 8, t % 8}] = x[t]
    arch.sync_threads()
    local v = s[{t % 16, t // 16}]
    arch.sync_threads()
    cute.when(t:lt(64), function()
      s[{t // 8, t % 8}] = v
      arch.barrier(1, 64)
      v = s[{(63 - t) // 8, (63 - t) % 8}]
    end)
    y[t] = v
  end}

case {"vectors of 16 bytes", block = 32,
  make = function()
    return {normal("bf16", 256), normal("f32", 256), zeros("bf16", 256),
            zeros("f32", 32, 4)}
  end,
  kernel = function(x, y, o, r)
    local t = arch.thread_idx()
    local vx = cute.local_tile(x, {8}, {t}):load():to(cute.f32)
    local vy = cute.local_tile(y, {8}, {t}):load()
    local v = vx * vy + 0.25
    cute.local_tile(o, {8}, {t}):store(cute.max(v, -vy):to(cute.bf16))
    r[{t, 0}] = v:reduce("add", 0.0, 0)
    r[{t, 1}] = v:reduce("max", -1.0, 0)
    r[{t, 2}] = v[3] / (cute.abs(vy[7]) + 1)
    r[{t, 3}] = cute.where(v:lt(vy), vx, vy):reduce("add", 0.5, 0)
  end}

case {"cp.async and predicated copies", block = 32,
  make = function() return {normal("f32", 128), zeros("f32", 128, 2)} end,
  kernel = function(x, y)
    local t = arch.thread_idx()
    local g2s = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
      cute.make_layout {32}, cute.make_layout {4})
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout {128}, 16)
    local thr = g2s:get_slice(t)
    cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    for j = 0, 3 do
      y[{t * 4 + j, 0}] = s[127 - t * 4 - j]
      cute.when((t % 3):eq(0), function()
        y[{t * 4 + j, 1}] = s[(t + 17 * j) % 128]
      end)
    end
  end}

-- ldmatrix with each number of matrices, plain and transposed, and stmatrix.
for _, name in ipairs {"SM75_U32x1_LDSM_N", "SM75_U32x2_LDSM_N",
    "SM75_U32x4_LDSM_N", "SM75_U16x2_LDSM_T", "SM75_U16x4_LDSM_T",
    "SM75_U16x8_LDSM_T"} do
  local n, way = name:match "x(%d)_LDSM_(.)"
  local num = way == "T" and n // 2 or n // 1
  case {"ldmatrix and stmatrix: " .. name,
    make = function()
      return {ints("u16", 0, 65535, 8 * num, 8), zeros("u16", 32, 2 * num),
              zeros("u16", 8 * num, 8)}
    end,
    kernel = function(x, y, back)
      local t, rows = arch.thread_idx(), 8 * num
      local layout = cute.composition(cute.make_swizzle(3, 3, 3),
        cute.make_layout({rows, 8}, {64, 1}))
      local s = cute.make_smem_tensor(cute.u16, layout, 128)
      local r = cute.make_smem_tensor(cute.u16, layout, 128)
      for i = 0, rows * 8 - 1, 32 do
        local at = {(t + i) // 8, (t + i) % 8}
        s[at] = x[at]
      end
      arch.sync_threads()
      local v = cute.make_rmem_tensor({2 * num}, cute.u16)
      local function row(of)
        return cute.local_tile(of, {1, 8}, {t % rows, 0})(0, cute._)
      end
      cute.copy(cute.make_copy_atom(name, cute.u16), row(s), v)
      cute.copy(cute.make_copy_atom(name:gsub("SM75", "SM90")
        :gsub("LDSM", "STSM"), cute.u16), v, row(r))
      arch.sync_threads()
      for j = 0, 2 * num - 1 do y[{t, j}] = v[j] end
      for i = 0, rows * 8 - 1, 32 do
        local at = {(t + i) // 8, (t + i) % 8}
        back[at] = r[at]
      end
    end}
end

---------------------------------------------------------------------------

describe("small kernels", function()
  for _, c in ipairs(CASES) do
    it("run on the simulator and compile: " .. c[1], function()
      return kernels.check(c, {"sm_90a"}) or pending "needs NVRTC"
    end)
  end
end)

describe("small kernels on a GPU #gpu", function()
  for _, c in ipairs(CASES) do
    it("give what the simulator gives: " .. c[1], function()
      kernels.agree(c)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
