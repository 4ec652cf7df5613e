-- Hopper GEMMs on a GPU: D = A B^T in bf16, beside cuBLAS, the best of
-- cublasLt and texts written by hand, in one process:
--
--     cutelua spec/bench/hopper.lua [--only 4096x4096x4096] [--rounds 5]
--
-- Texts are read from $CUTELUA_REFERENCE_DIR (../shared/reference when unset):
-- gemm_sm90_*.cu, whose first line says how they are launched.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local gpu = require "cute.gpu"

local device, why = cute.device "gpu"
if not device or device.sm ~= 90 then
  print("Hopper benches not run: " .. (why or device.name .. " is no sm_90"))
  return
end
local dev = device.dev

local options = {rounds = "5", only = "", warm = "60", hot = "50"}
for i = 1, #arg, 2 do
  local name = arg[i]:match "^%-%-(%a+)$"
  if not options[name] then error("no option " .. arg[i]) end
  options[name] = arg[i + 1]
end

local Hint = cute.nvgpu.cpasync.CacheHint
local WIDE = {tile = {128, 256, 64}, stages = 4, cluster = {2, 1}}
local LARGE = {tile = {256, 208, 64}, stages = 3, cluster = {1, 2},
               epi_stages = 1}

-- M, N, K; our choices (kernels/gemm_sm90.lua); the text for it; with
-- programmatic dependent launch our choices, where others are better, and the
-- text.
local SHAPES = {
  {512, 512, 512, "512_cold",
   ours = {tile = {64, 32, 128}, stages = 4, consumers = 1,
           persistent = false},
   ours_pdl = {tile = {64, 64, 64}, stages = 8, consumers = 1,
               persistent = false}, pdl = "512"},
  {1024, 1024, 1024, "1024",
   ours = {tile = {128, 64, 64}, stages = 8, epi = {64, 32},
           persistent = false}, pdl = "1024"},
  {2048, 2048, 2048, "2048_nopdl",
   ours = {tile = {128, 256, 64}, stages = 4, persistent = false},
   pdl = "2048"},
  {4096, 4096, 4096, "4096", ours = WIDE},
  {8192, 1024, 8192, "4096", ours = WIDE},
  {8192, 8192, 8192, "8192", ours = LARGE},
  {16384, 16384, 16384, "16384",
   ours = {tile = {256, 208, 64}, stages = 3, epi_stages = 1}},
  {4096, 11008, 4096, "4096x11008x4096",
   ours = {tile = {256, 200, 64}, stages = 3, cluster = {1, 2},
           epi_stages = 1}},
  {4096, 4096, 128, "4096x4096x128",
   ours = {tile = {128, 128, 64}, stages = 6, schedule = "pingpong"},
   pdl = "4096x4096x128"},
  {128, 8192, 8192, "128x8192x8192",
   ours = {tile = {128, 128, 64}, stages = 5, split = 2, epi_stages = 1,
           l2_promotion = 256, a_hint = Hint.EVICT_LAST,
           b_hint = Hint.EVICT_FIRST},
   pdl = "128x8192x8192"},
}

---------------------------------------------------------------------------
-- Data and comparison, on the GPU
---------------------------------------------------------------------------

local HELPERS = [[
typedef unsigned u32; typedef unsigned long long u64;
static __device__ u32 hash(u64 x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull; x ^= x >> 33;
  return (u32)x;
}
static __device__ float of(unsigned short h) {
  return __uint_as_float((u32)h << 16);
}
extern "C" __global__ void fill(unsigned short *x, u64 n, u64 seed) {
  u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    float u = (hash(2 * i + seed) + 1.0f) * 2.3283064e-10f;
    float v = hash(2 * i + 1 + seed) * 2.3283064e-10f;
    u32 b = __float_as_uint(sqrtf(-2 * logf(u)) * cospif(2 * v));
    x[i] = (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
  }
}
extern "C" __global__ void differ(const unsigned short *x,
    const unsigned short *y, u64 n, double *sums, float bound, u32 *wrong) {
  double d2 = 0, y2 = 0;
  u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    float a = of(x[i]), b = of(y[i]), d = a - b;
    d2 += (double)d * d;
    y2 += (double)b * b;
    if (!(fabsf(d) <= 0.0079f * fabsf(b) + bound)) atomicAdd(wrong, 1u);
  }
  atomicAdd(sums, d2);
  atomicAdd(sums + 1, y2);
}]]
local fill = cute.raw_kernel(HELPERS, {name = "fill", block = 256})
local differ = cute.raw_kernel(HELPERS, {name = "differ", block = 256})
local GRID = {grid = 1024}

local function matrix(elements, seed)
  local b = assert(dev:buffer("bf16", elements))
  if seed then fill(b, elements, seed):launch(GRID) end
  return b
end

-- Error in the norm of x beside y; elements that differ by more than rounding.
local function difference(x, y, n, k)
  local sums = cute.zeros({2}, cute.f64):to "gpu"
  local wrong = cute.zeros({1}, cute.u32):to "gpu"
  -- sums of k products of N(0,1) in f32, in any order
  differ(x, y, n, sums, 4e-6 * math.sqrt(k) * 4, wrong):launch(GRID)
  sums = sums:to "host"
  return math.sqrt(sums[0] / sums[1]), wrong:to "host"[0]
end

---------------------------------------------------------------------------
-- Texts
---------------------------------------------------------------------------

local FOLDER = os.getenv "CUTELUA_REFERENCE_DIR" or "../shared/reference"
local SWIZZLE_128, L2_128 = 3, 2

-- A map of rows of `inner` elements, copied in boxes of 64 by `rows`.
local function map(buffer, inner, outer, rows)
  local words = core.encode_tensor_map {
    type = 9, rank = 2, address = buffer.address, extent = {inner, outer},
    stride = {inner * 2}, box = {64, rows}, step = {1, 1},
    swizzle = SWIZZLE_128, l2 = L2_128}
  return string.pack("<" .. ("i8"):rep(#words), table.unpack(words))
end

local function by_text(name, m, n, k, A, B, D, pdl)
  local file <close> = io.open(("%s/gemm_sm90_%s.cu"):format(FOLDER, name))
  if not file then return nil end
  local text = file:read "a"
  local says = {}
  for key, value in text:match "^[^\n]*":gmatch "(%w+)=(%S+)" do
    says[key] = math.tointeger(tonumber(value)) or value
  end
  local cluster = says.cluster
  local tiles = (m + says.BM * says.CM - 1) // (says.BM * says.CM)
    * ((n + says.BN * says.CN - 1) // (says.BN * says.CN))
  local kernel = cute.raw_kernel(text, {name = "gemm", block = says.threads,
                                        smem = says.smem})
  local most = device.info.sms // cluster
  return assert(kernel(map(A, k, m, says.boxAm), map(B, k, n, says.boxBn),
    map(D, m, n, says.EN), m, n, k):compile {
      grid = math.min(tiles, most) * cluster, cluster = cluster,
      pdl = pdl and says.PDL == 1})
end

-- A matrix of the GPU's memory, its first mode contiguous or its second.
local function tensor(rows, columns, buffer, first)
  local layout = cute.make_layout({rows, columns},
                                  first and {1, rows} or {columns, 1})
  return core.on_device(cute.make_tensor(core.buffer("bf16", rows * columns),
                                         layout), buffer)
end

local function by_ours(choices, m, n, k, A, B, D, pdl)
  local all = {d_major = "m", pdl = pdl}
  for name, v in pairs(choices) do all[name] = v end
  return assert(gemm_sm90(all).prepare(tensor(m, k, A), tensor(n, k, B),
    tensor(m, n, D, true), {device = "gpu", sms = device.info.sms}))
end

---------------------------------------------------------------------------

local function machine()
  local p = io.popen "nvidia-smi --query-gpu=power.limit,clocks.sm,power.draw \z
    --format=csv,noheader 2>/dev/null"
  local line = p and p:read "l"
  if p then p:close() end
  return line or "unknown"
end

local function contestants(shape, A, B)
  local m, n, k = table.unpack(shape)
  local D = {}
  local function result(name)
    D[name] = matrix(m * n)
    D[name]:memset(0xff)  -- NaN
    return D[name]
  end
  local how = {m = m, n = n, k = k, A = A, B = B, m_major = true}
  local function blas(make, name)
    local t = {D = result(name)}
    for key, v in pairs(how) do t[key] = v end
    return assert(make(t))
  end
  local list = {{name = "cuBLAS", launch = blas(gpu.cublas, "cuBLAS")}}
  local lt = blas(gpu.cublaslt, "cublasLt")
  if #lt > 0 then
    list[#list + 1] = {name = "cublasLt", launch = (gpu.best(lt))}
  end
  local function text(name, which, pdl)
    local run = which and by_text(which, m, n, k, A, B, result(name), pdl)
    if run then list[#list + 1] = {name = name, launch = run} end
  end
  local function ours(name, choices, pdl)
    list[#list + 1] = {name = name,
      launch = by_ours(choices, m, n, k, A, B, result(name), pdl)}
  end
  ours("ours", shape.ours)
  if shape.pdl then ours("ours, PDL", shape.ours_pdl or shape.ours, true) end
  text("text", shape[4])
  text("text, PDL", shape.pdl, true)
  return list, D
end

local function compete(shape)
  local m, n, k = table.unpack(shape)
  local A, B = matrix(m * k, 1), matrix(n * k, 1 << 40)
  local list, D = contestants(shape, A, B)
  local good = {}
  for _, c in ipairs(list) do
    c.launch:launch()
    dev:sync()
    local norm, wrong = difference(D[c.name], D.cuBLAS, m * n, k)
    local right = norm < 3e-3 and wrong == 0
    if not right then
      print(("%dx%dx%d %s: WRONG, error %.2e in the norm, %d elements"):format(
        m, n, k, c.name, norm, wrong))
    else
      good[#good + 1] = c
    end
  end
  local r = assert(gpu.bench(good, {
    rounds = tonumber(options.rounds), warm_ms = tonumber(options.warm),
    hot_ms = tonumber(options.hot), flops = 2.0 * m * n * k}))
  for _, c in ipairs(good) do
    local x, base = r[c.name], r.cuBLAS
    print(("%-18s %-12s %6.1f %6.1f   %.3f %.3f   %4.1f %%"):format(
      ("%dx%dx%d"):format(m, n, k), c.name, x.cold.tflops, x.hot.tflops,
      base.cold.median / x.cold.median, base.hot.median / x.hot.median,
      100 * (x.hot.q3 - x.hot.q1) / x.hot.median))
  end
  for _, b in pairs(D) do b:close() end
  A:close()
  B:close()
end

print(("%s; power limit, clock, draw: %s"):format(device.name, machine()))
print "problem            by            cold    hot   / cuBLAS      spread"
for _, shape in ipairs(SHAPES) do
  local name = ("%dx%dx%d"):format(table.unpack(shape, 1, 3))
  if options.only == "" or options.only == name then compete(shape) end
end
print("after: " .. machine())
