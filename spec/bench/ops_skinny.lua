-- Products of few rows on a GPU: ops.gemm in bf16 beside cuBLAS, the best of
-- cublasLt and a kernel that only reads the weights, in one process:
--
--     cutelua spec/bench/ops_skinny.lua [--only 16x4096x4096] [--rows 1,8,16]
--                                       [--rounds 5]
--
-- Launches are those of a CUDA graph, microseconds each. Weights take turns, so
-- that they come from memory (mem), or are the same each time, which small ones
-- find in L2.
local card = require "spec.card"
local cute = require "cute"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device()
if not device then return end
local dev = device.dev

local options = card.options {rounds = "5", only = "", warm = "10", hot = "20",
                              rows = "1,2,4,8,16,32,64", int = ""}

-- N, K of the layers of two models, of hidden size 4096 and 8192.
local LAYERS = {
  {1024, 4096, "k v"}, {4096, 4096, "q o"}, {6144, 4096, "qkv"},
  {14336, 4096, "gate up"}, {28672, 4096, "gate+up"}, {4096, 14336, "down"},
  {1024, 8192, "k v"}, {8192, 8192, "q o"}, {10240, 8192, "qkv"},
  {28672, 8192, "gate up"}, {8192, 28672, "down"},
}

local IN_L2, FAR = 40e6, 170e6  -- bytes that stay, that do not

---------------------------------------------------------------------------
-- Contestants
---------------------------------------------------------------------------

local READ = cute.raw_kernel([[
extern "C" __global__ void __launch_bounds__(512)
reads(const uint4 *x, unsigned n, unsigned *out) {
  unsigned s = 0, at = blockIdx.x * 4096u + threadIdx.x;
  for (; at < n; at += gridDim.x * 4096u) {
    uint4 v[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      v[i] = at + i * 512u < n ? x[at + i * 512u] : make_uint4(0, 0, 0, 0);
    #pragma unroll
    for (int i = 0; i < 8; ++i) s += v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  }
  if (s == 0x12345678u) out[0] = s;
}]], {name = "reads", block = 512})
local sink = assert(dev:buffer("u32", 64))

-- Launches of each of these functions in turn, one graph.
local function graph(launches, count)
  return cute.graph(function()
    for i = 1, count do launches[(i - 1) % #launches + 1]() end
  end)
end

local function launch(object) return function() object:launch() end end

-- What runs with the weights in w: by name, a function that launches it.
local function makers(m, n, k, a, d, W)
  local A, D = card.tensor(a, m, k), card.tensor(d, m, n)
  local function spec(w) return {m = m, n = n, k = k, A = a, B = w, D = d} end
  local _, at = gpu.best(assert(gpu.cublaslt(spec(W[1]))), {warm_ms = 2,
                                                            hot_ms = 4})
  local list = {
    {"cuBLAS", function(w) return launch(assert(gpu.cublas(spec(w)))) end},
    {"cublasLt", function(w)
      return launch(assert(gpu.cublaslt(spec(w)))[at])
    end},
    {"ops", function(w)
      local B = card.tensor(w, n, k)
      return function() cute.ops.gemm(A, B, {out = D}) end
    end}}
  for _, blocks in ipairs {2 * device.info.sms, 4 * device.info.sms,
                           n * k // 32768} do
    list[#list + 1] = {"read", function(w)
      return launch(READ(w, n * k // 8, sink):compile {grid = blocks})
    end, reads = true}
  end
  return list
end

---------------------------------------------------------------------------

local HEAD = "%-16s %-8s %-4s %8s %8s %8s %8s   %7s %7s %7s  %s"
local LINE = "%-16s %-8s %-4s %8.2f %8.2f %8.2f %8.2f   %7.2f %7.2f %7.0f  %s"

-- Of all makers the microseconds of a launch, weights in turn or the same.
local function times(list, W, same)
  local sets = same and 1 or #W
  local count = sets * math.max(1, math.ceil(16 / sets))
  local runs = {}
  for i, c in ipairs(list) do
    local launches = {}
    for s = 1, sets do launches[s] = c[2](W[s]) end
    for _, f in ipairs(launches) do f() end
    dev:sync()
    runs[i] = {name = c[1], launch = graph(launches, count)}
  end
  local r = assert(gpu.bench(runs, {rounds = tonumber(options.rounds),
    cold = false, warm_ms = tonumber(options.warm),
    hot_ms = tonumber(options.hot)}))
  local best = {}
  for i, c in ipairs(list) do
    local us = r[i].hot.median * 1e3 / count
    best[c[1]] = math.min(best[c[1]] or math.huge, us)
  end
  return best
end

-- Are all results those of double precision? Sums of k products of N(0,1) in
-- f32, in any order, rounded to bf16.
local function right(list, m, n, k, a, d, W)
  local want = card.product(dev, {m = m, n = n, k = k, A = a, B = W[1]})
  local all = true
  for _, c in ipairs(list) do
    if not c.reads then
      d:memset(0xff)
      c[2](W[1])()
      dev:sync()
      local error, wrong = card.difference(dev, d, want, 0.0079,
                                           4e-6 * math.sqrt(k) * 8)
      local good = error < 3e-3 and wrong == 0
      if not good then
        print(("%s WRONG: %.2e in the norm, %d elements"):format(c[1], error,
                                                                wrong))
      end
      all = all and (good or c[1] ~= "ops")
    end
  end
  want:close()
  return all
end

local least, product, measured = {}, 0, 0

local function compete(m, layer)
  local n, k, what = table.unpack(layer)
  local bytes, name = 2 * n * k, ("%dx%dx%d"):format(m, n, k)
  local a, d = card.matrix(dev, "bf16", m * k, 1), card.matrix(dev, "bf16",
                                                               m * n)
  local W = {}
  for i = 1, math.max(1, math.ceil(FAR / bytes)) do
    W[i] = card.matrix(dev, "bf16", n * k, i << 40)
  end
  local list = makers(m, n, k, a, d, W)
  assert(right(list, m, n, k, a, d, W), name .. " of ops is wrong")
  local e = cute.ops.explain(card.tensor(a, m, k), card.tensor(W[1], n, k),
                             {out = card.tensor(d, m, n)})
  local choice = ("%s %s%s"):format(e.kernel, table.concat(e.tile, "x"),
    e.split ~= 1 and (", K in %s"):format(e.split) or "")
  for _, same in ipairs(bytes < IN_L2 and {false, true} or {false}) do
    local us = times(list, W, same)
    local ratio = math.min(us.cuBLAS, us.cublasLt) / us.ops
    print(LINE:format(name, what, same and "L2" or "mem", us.cuBLAS,
      us.cublasLt, us.read, us.ops, ratio, us.read / us.ops,
      (bytes + 2 * m * (n + k)) / us.ops / 1e3, choice))
    product, measured = product + math.log(ratio), measured + 1
    if not least[1] or ratio < least[1] then least = {ratio, name} end
  end
  for _, b in ipairs {a, d, table.unpack(W)} do b:close() end
end

print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
print(HEAD:format("M x N x K", "", "", "cuBLAS", "Lt", "read", "ops", "/ best",
                  "of read", "GB/s", "choice"))
for m in options.rows:gmatch "%d+" do
  for _, layer in ipairs(LAYERS) do
    local name = ("%sx%dx%d"):format(m, layer[1], layer[2])
    if options.only == "" or options.only == name then
      compete(math.tointeger(m), layer)
    end
  end
end
if measured > 0 then
  print(("geometric mean %.3f, least %.3f (%s); %s"):format(
    math.exp(product / measured), least[1], least[2], card.state()))
end
