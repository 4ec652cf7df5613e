--- Helpers for benchmarks of products on a GPU. They fill matrices with
-- normally distributed numbers on the GPU, and compare results with
-- double-precision products or with each other.
local choose = require "cute.ops.choose"
local core = require "cute.core"
local cute = require "cute"
local gpu = require "cute.gpu"
local operands = require "cutelua.tune.operands"
local plans = require "cute.ops.plan"

local card = {}

-- Each element type has {its CUDA type, the C code that converts a float x to
-- that type, the C code that converts a value of that type to double}.
local TYPES = {
  bf16 = {"unsigned short", [[unsigned b = __float_as_uint(x);
    return (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);]],
    "return __uint_as_float((unsigned)x << 16);"},
  f16 = {"unsigned short",
    [[T h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h;]],
    [[float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x)); return f;]]},
  -- Values of f32 are rounded to the 19 bits of tf32, so a tf32 kernel does not
  -- round its operands.
  f32 = {"float", [[return __uint_as_float((__float_as_uint(x) + 0xfff
    + (__float_as_uint(x) >> 13 & 1)) & ~0x1fffu);]], "return x;"},
  f64 = {"double", "return x;", "return x;"},
  i8 = {"signed char", "return (T)fminf(fmaxf(rintf(x * 32), -128), 127);",
        "return x;"},
  i32 = {"int", "return (T)x;", "return x;"},
}
for _, name in ipairs {"e4m3", "e5m2"} do
  TYPES[name] = {"unsigned char", ([[unsigned short h;
    asm("cvt.rn.satfinite.%sx2.f32 %%0, %%1, %%1;" : "=h"(h) : "f"(x));
    return (T)h;]]):format(name), ([[unsigned h; float f;
    asm("cvt.rn.f16x2.%sx2 %%0, %%1;" : "=r"(h) : "h"((unsigned short)x));
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %%1; cvt.f32.f16 %%0, a; }"
        : "=f"(f) : "r"(h));
    return f;]]):format(name)}
end

local TEXT = [[
typedef unsigned u32; typedef unsigned long long u64;
typedef @T T; typedef @U U;
static __device__ T make(float x) { @make }
static __device__ double of(T x) { @of }
static __device__ double ofu(U x) { @ufo }
static __device__ u32 hash(u64 x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull; x ^= x >> 33;
  return (u32)x;
}
#define EACH(i, n) (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; \
  i < n; i += (u64)gridDim.x * blockDim.x)
extern "C" __global__ void fill(T *x, u64 n, u64 seed) {
  for EACH(i, n) {
    float u = (hash(2 * i + seed) + 1.0f) * 2.3283064e-10f;
    float v = hash(2 * i + 1 + seed) * 2.3283064e-10f;
    x[i] = make(sqrtf(-2 * logf(u)) * cospif(2 * v));
  }
}
extern "C" __global__ void widen(const T *x, double *y, u64 n) {
  for EACH(i, n) y[i] = of(x[i]);
}
extern "C" __global__ void differ(const T *x, const U *y, u64 n, double *sums,
                                  double relative, double bound, u32 *wrong) {
  double d2 = 0, y2 = 0;
  for EACH(i, n) {
    double a = of(x[i]), b = ofu(y[i]), d = a - b;
    d2 += d * d;
    y2 += b * b;
    if (!(fabs(d) <= relative * fabs(b) + bound)) atomicAdd(wrong, 1u);
  }
  atomicAdd(sums, d2);
  atomicAdd(sums + 1, y2);
}]]

local kernels = {}

-- Returns a CUDA kernel of TEXT, specialized for these element types.
local function kernel(name, t, u)
  local key = ("%s %s %s"):format(name, t, u)
  if not kernels[key] then
    local from, to = TYPES[t], TYPES[u or t]
    local text = TEXT:gsub("@(%a+)", {T = from[1], U = to[1], make = from[2],
                                      of = from[3],
                                      ufo = to[3]:gsub("%f[%w]T%f[%W]", "U")})
    kernels[key] = cute.raw_kernel(text, {name = name, block = 256})
  end
  return kernels[key]
end

local GRID = {grid = 1024}

--- Returns elements on the GPU, drawn from N(0,1) by a seed. f32 is rounded to
-- tf32; i8 has the standard deviation 32 and is clamped. Without a seed, all
-- elements are NaN.
---@param dev table a device object
---@param dtype string
---@param elements integer
---@param seed? integer
function card.matrix(dev, dtype, elements, seed)
  local b = assert(dev:buffer(dtype, elements))
  if seed then kernel("fill", dtype)(b, elements, seed):launch(GRID)
  else b:memset(0xff) end
  return b
end

--- Returns a tensor in GPU memory, with elements as in card.matrix.
function card.normal(shape, dtype, seed)
  local t = cute.empty(shape, dtype, {device = "gpu"})
  local b = core.param_memory(t)
  kernel("fill", dtype)(b, b.count, seed):launch(GRID)
  return t
end

-- Returns a new buffer on the GPU with the elements of buffer x converted to
-- f64.
local function widened(dev, x)
  local y = assert(dev:buffer("f64", x.count))
  kernel("widen", tostring(x.dtype))(x, y, x.count):launch(GRID)
  return y
end

--- Returns cuBLAS's product in double precision, in a new buffer.
---@param dev table a device object
---@param spec table m, n, k, A, B, m_major, as for gpu.cublas
function card.product(dev, spec)
  local a, b = widened(dev, spec.A), widened(dev, spec.B)
  local d = assert(dev:buffer("f64", spec.m * spec.n))
  assert(gpu.cublas {m = spec.m, n = spec.n, k = spec.k, A = a, B = b, D = d,
                     m_major = spec.m_major}):launch()
  dev:sync()
  a:close()
  b:close()
  return d
end

--- Compares x with y. Returns the relative error in the norm, and the number of
-- elements that differ by more than relative * |y| + bound.
---@return number
---@return integer
function card.difference(dev, x, y, relative, bound)
  local sums, wrong = assert(dev:buffer("f64", 2)), assert(dev:buffer("u32", 1))
  sums:memset(0)
  wrong:memset(0)
  kernel("differ", tostring(x.dtype), tostring(y.dtype))(x, y, x.count, sums,
    relative + 0.0, bound + 0.0, wrong):launch(GRID)
  local of = sums:download()
  return math.sqrt(of[0] / of[1]), wrong:download()[0]
end

--- Returns a view of a buffer as a matrix in GPU memory. Rows are contiguous
-- or, if `first` is true, columns.
function card.tensor(buffer, rows, columns, first)
  local layout = cute.make_layout({rows, columns},
                                  first and {1, rows} or {columns, 1})
  return core.on_device(cute.make_tensor(core.buffer(tostring(buffer.dtype),
    rows * columns), layout), buffer)
end

---------------------------------------------------------------------------

-- CUDA C of a kernel that only reads, with @U loads of 16 bytes in flight per
-- thread. In a programmatic dependent launch, it waits for the preceding
-- kernel, as the products do.
local READS = [[
extern "C" __global__ void __launch_bounds__(512)
reads(const uint4 *x, unsigned n, unsigned *out) {
  unsigned s = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (unsigned at = blockIdx.x * (512 * @U) + threadIdx.x; at < n;
       at += gridDim.x * (512 * @U)) {
    uint4 v[@U];
    #pragma unroll
    for (int i = 0; i < @U; ++i)
      v[i] = at + i * 512 < n ? x[at + i * 512] : make_uint4(0, 0, 0, 0);
    #pragma unroll
    for (int i = 0; i < @U; ++i) s += v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  }
  if (s == 0x12345678u) out[0] = s;
}]]

-- CUDA C of a kernel like READS, except that it issues its first loads before
-- it waits for the preceding kernel. It issues the next loads before it uses
-- the current ones.
local READS_AHEAD = [[
extern "C" __global__ void __launch_bounds__(512)
reads(const uint4 *x, unsigned n, unsigned *out) {
  unsigned s = 0, at = blockIdx.x * (512 * @U) + threadIdx.x;
  uint4 v[@U];
  asm volatile("griddepcontrol.launch_dependents;");
  #pragma unroll
  for (int i = 0; i < @U; ++i)
    v[i] = at + i * 512 < n ? x[at + i * 512] : make_uint4(0, 0, 0, 0);
  asm volatile("griddepcontrol.wait;" ::: "memory");
  for (bool more = true; more;) {
    at += gridDim.x * (512 * @U);
    more = at - threadIdx.x < n;
    #pragma unroll
    for (int i = 0; i < @U; ++i) {
      s += v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
      v[i] = at + i * 512 < n ? x[at + i * 512] : make_uint4(0, 0, 0, 0);
    }
  }
  if (s == 0x12345678u) out[0] = s;
}]]

--- Returns a list of functions f(buffer, bytes). Each returns a launch of
-- another kernel that only reads the buffer. The time of the fastest one counts
-- as the time of reading.
---@param device table a result of cute.device
---@param ahead? boolean whether the kernels may read before the preceding
-- launch ends
function card.readers(device, ahead)
  local sink, list = assert(device.dev:buffer("u32", 1)), {}
  local sms, pdl = device.info.sms, core.has(device.sm, "griddepcontrol")
  -- The shapes of the grids: {loads in flight per thread, blocks per SM}.
  local text, shapes = READS, {{4, 4}, {8, 4}, {8}}
  if ahead then
    text, shapes = READS_AHEAD, {{8, 1}, {8, 2}, {8, 4}, {4, 3}}
  end
  for _, v in ipairs(shapes) do
    local k = cute.raw_kernel((text:gsub("@U", tostring(v[1]))),
                              {name = "reads", block = 512})
    list[#list + 1] = function(buffer, bytes)
      return assert(k(buffer, bytes // 16, sink):compile {pdl = pdl,
        grid = v[2] and v[2] * sms or math.max(1, bytes // (8192 * v[1]))})
    end
  end
  return list
end

---------------------------------------------------------------------------

--- Parses a command line, "--name value ...", into `options`, which has the
-- default values.
---@param options table<string, string>
---@return table<string, string>
function card.options(options)
  for i = 1, #arg, 2 do
    local name = arg[i]:match "^%-%-(%a+)$"
    if not options[name] then error("no option " .. arg[i]) end
    options[name] = arg[i + 1]
  end
  return options
end

--- Makes a contestant for gpu.bench from a candidate of gemm.offers, and
-- launches it once.
---@param p table
---@param c table
---@param call table
---@param calls integer the number of calls in its graph
---@return table {launch = a graph, calls =, choice = its name, us = its
-- estimated microseconds, D =, d = D's memory}
function card.candidate(p, c, call, calls)
  local D = cute.empty(p.shape, p.d, {device = "gpu"})
  local run = plans.new(p, c, call):prepare(call, {D})
  run:launch()
  return {calls = calls, choice = choose.name(c), us = c.ns / 1000, D = D,
          d = core.param_memory(D), launch = cute.graph(function()
            for _ = 1, calls do run:launch() end
          end, {device = "gpu"})}
end

--- Returns sets {a =, b =} of buffers with operands (m,k) and (n,k) from
-- N(0,1). Small operands (cutelua.tune.operands) have one set; otherwise the
-- sets together exceed L2.
---@param dev table a device object
---@param dtype string
---@return table[]
function card.sets(dev, dtype, m, n, k)
  local sets = {}
  for i = 1, operands.sets(cute[dtype].bits // 8 * (m + n) * k) do
    sets[i] = {a = card.matrix(dev, dtype, m * k, i),
               b = card.matrix(dev, dtype, n * k, 1 << 40 | i)}
  end
  return sets
end

-- A graph has at least FEWEST launches. If a product has few operations, its
-- graph has FLOPS operations in all, but at most 32 launches.
local FEWEST, FLOPS = 4, 4e10

--- Returns how many launches of a product a graph should have. The number is a
-- multiple of the number of sets of operands.
---@param flops number
---@param sets table[]
---@return integer
function card.launches(flops, sets)
  local n = math.max(FEWEST, math.min(32, FLOPS / flops))
  return math.ceil(n / #sets) * #sets
end

--- Returns a graph of `count` launches, which uses the launches of `runs` in
-- turn. There is one run for each set of operands. Before that, each run is
-- launched once.
---@param dev table a device object
---@param runs table[]
---@param count integer
function card.graph(dev, runs, count)
  for _, run in ipairs(runs) do run:launch() end
  dev:sync()
  return cute.graph(function()
    for i = 1, count do runs[(i - 1) % #runs + 1]:launch() end
  end, {device = "gpu"})
end

--- Returns one launch of candidate c of problem p for each set of operands,
-- with the result d.
---@param p table
---@param c table
---@param call table
---@param sets table[]
---@param first_n? boolean the first mode of B is contiguous, not K
---@param d any a tensor
function card.runs(p, c, call, sets, first_n, d)
  local plan, runs = plans.new(p, c, call), {}
  for i, set in ipairs(sets) do
    call.A = card.tensor(set.a, p.m, p.k)
    call.B = card.tensor(set.b, p.n, p.k, first_n)
    runs[i] = plan:prepare(call, {d})
  end
  return runs
end

--- Calls gpu.bench with the rounds and milliseconds from a benchmark's options.
---@param list table[]
---@param options table rounds, warm, hot, as words
---@param more? table other options of gpu.bench
---@return table
function card.bench(list, options, more)
  local o = {rounds = tonumber(options.rounds),
             warm_ms = tonumber(options.warm), hot_ms = tonumber(options.hot)}
  for k, v in pairs(more or {}) do o[k] = v end
  return assert(gpu.bench(list, o))
end

--- Calls `make` for each of a benchmark's cases, and `measure` for the result.
-- With options.part = "I/N", it makes only every Nth case and measures none, so
-- that many processes can compile before one measures.
---@param options table
---@param cases table[]
---@param make fun(case: table): table[] makes the contestants, and launches
-- each once
---@param measure fun(case: table, list: table[]) prints a row
---@param head string printed above the rows
function card.walk(options, cases, make, measure, head)
  local part, parts = options.part:match "^(%d+)/(%d+)$"
  if not part then print(head) end
  for i, x in ipairs(cases) do
    if not part then
      measure(x, make(x))
      io.stdout:flush()
    elseif i % parts == part % parts then
      make(x)
    end
    collectgarbage()
  end
end

--- Header of card.compete's lines, with the name of the baseline.
card.HEAD = "problem            by             error   cold    hot   / %-14s "
  .. "spread"

--- Times the candidates whose results are right, alternately. Prints a line for
-- each: TFLOP/s, and the ratio to the candidate with the name `base`.
---@param label string names the problem
---@param list table[] {name =, launch =, error = in the norm, most = the
-- limit of error, wrong = the number of wrong elements}
---@param base string
---@param flops number
---@param options table rounds, warm, hot (milliseconds)
function card.compete(label, list, base, flops, options)
  local good = {}
  for _, c in ipairs(list) do
    if c.error < c.most and c.wrong == 0 then
      good[#good + 1] = c
    else
      print(("%-18s %-14s WRONG, error %.2e in the norm, %d elements"):format(
        label, c.name, c.error, c.wrong))
    end
  end
  local r = card.bench(good, options, {flops = flops})
  local than = r[base]
  for _, c in ipairs(than and good or {}) do
    local x = r[c.name]
    print(("%-18s %-12s %7.1e %6.1f %6.1f   %.3f %.3f   %4.1f %%"):format(
      label, c.name, c.error, x.cold.tflops, x.hot.tflops,
      than.cold.median / x.cold.median, than.hot.median / x.hot.median,
      100 * (x.hot.q3 - x.hot.q1) / x.hot.median))
  end
end

-- Returns what nvidia-smi reports about these properties, as one line.
local function asked(properties)
  local p <close> = io.popen(("nvidia-smi --query-gpu=%s --format=csv,noheader "
    .. "2>/dev/null"):format(properties))
  return p and p:read "l" or "unknown"
end

--- Returns power limit, clock and power draw as one line.
function card.state() return asked "power.limit,clocks.sm,power.draw" end

--- Returns the driver's version: "580.159.04".
function card.driver() return asked "driver_version" end

-- milliseconds to keep the GPU busy; nvidia-smi takes part of them to start
local BUSY = 600

--- Returns card.state while launches of `each` milliseconds keep the GPU busy.
---@param dev table a device object
---@param launch function|table
---@param each number
function card.busy(dev, launch, each)
  local run = type(launch) == "function" and launch
    or function() launch:launch() end
  for _ = 1, math.ceil(BUSY / each) do run() end
  local line = card.state()
  dev:sync()
  return line
end

return card
-- SPDX-License-Identifier: MIT
