-- Measures products of few rows on a GPU: ops.gemm with weights of bf16, or of
-- 4 or 8 bits in groups of 128. They are compared with cuBLAS and the best of
-- cublasLt, both with bf16 weights, and with the fastest kernel that only reads
-- our weights, in one process:
--
--    cutelua spec/bench/ops_skinny.lua [--weights bf16,int4,i8] [--rounds 5]
--      [--only 16x4096x4096] [--rows 1,8,16] [--layers 4096x4096,1024x4096]
--
-- Times are microseconds per launch of a CUDA graph. Either the launches
-- alternate between copies of the weights, which then come from memory ("mem"),
-- or all launches use the same weights, which may stay in L2.
local card = require "spec.card"
local core = require "cute.core"
local cute = require "cute"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device()
if not device then return end
local dev, readers = device.dev, card.readers(device)

local options = card.options {rounds = "5", only = "", warm = "10", hot = "20",
                              rows = "1,2,4,8,16,32,64", layers = "",
                              weights = "bf16"}

-- Layers of two models, as {N, K, name}; hidden sizes 4096 and 8192.
local LAYERS = {
  {1024, 4096, "k v"}, {4096, 4096, "q o"}, {6144, 4096, "qkv"},
  {14336, 4096, "gate up"}, {28672, 4096, "gate+up"}, {4096, 14336, "down"},
  {1024, 8192, "k v"}, {8192, 8192, "q o"}, {10240, 8192, "qkv"},
  {28672, 8192, "gate up"}, {8192, 28672, "down"},
}

-- Weights of fewer than IN_L2 bytes fit in L2. FAR is a number of bytes that
-- exceeds L2: with copies of the weights of this total size, each launch reads
-- its weights from memory.
local IN_L2, FAR = 40e6, 170e6
local LAUNCHES = 16             -- minimum number of launches in a CUDA graph

---------------------------------------------------------------------------
-- Weights
---------------------------------------------------------------------------

local GROUP = 128

-- CUDA kernels: `words` makes random words; `whole` multiplies weights by their
-- scale factors, a tensor (N,K/128) with N contiguous. The weights are bytes,
-- or 4-bit weights as ops packs them.
local TEXT = [[
typedef unsigned long long u64;
#define EACH(T, i, n) (T i = (T)blockIdx.x * blockDim.x + threadIdx.x; i < n; \
                       i += (T)gridDim.x * blockDim.x)
extern "C" __global__ void words(unsigned *x, unsigned n, unsigned seed) {
  for EACH(unsigned, i, n) {
    unsigned h = (i + seed) * 0x9e3779b9u;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    x[i] = h ^ h >> 16;
  }
}
extern "C" __global__ void whole(const unsigned char *w, unsigned bits,
    const unsigned short *s, double *x, unsigned n, unsigned k) {
  for EACH(u64, i, (u64)n * k) {
    unsigned r = i / k, c = i % k;
    u64 at = ((u64)(r / 16) * (k / 64) + c / 64) * 32 + r % 8 * 4 + c % 8 / 2;
    unsigned shift = r / 8 % 2 * 4 + c / 8 % 2 * 8 + c % 2 * 16;
    int q = bits == 8 ? ((const signed char *)w)[i]
      : (int)(((const unsigned *)w)[at * 4 + c / 16 % 4] >> shift & 15) - 8;
    unsigned factor = (unsigned)s[(u64)(c / 128) * n + r] << 16;
    x[i] = q * (double)__uint_as_float(factor);
  }
}]]

local words = cute.raw_kernel(TEXT, {name = "words", block = 256})
local whole = cute.raw_kernel(TEXT, {name = "whole", block = 256})
local Int4 = getmetatable(cute.ops.int4(function() return 8 end, 16, 64))

-- Kinds of weights by name. Fields of a kind: bits, the number of bits of a
-- weight; deviation, the standard deviation of unscaled weights; factors, true
-- if the weights have scale factors; make, a function of n, k, and a seed that
-- returns {buffer =, B = the operand of ops.gemm}.
local KINDS = {
  bf16 = {bits = 16, deviation = 1, make = function(n, k, seed)
    local b = card.matrix(dev, "bf16", n * k, seed << 40)
    return {buffer = b, B = card.tensor(b, n, k)}
  end},
  i8 = {bits = 8, deviation = 32, factors = true, make = function(n, k, seed)
    local b = card.matrix(dev, "i8", n * k, seed << 40)
    return {buffer = b, B = card.tensor(b, n, k)}
  end},
  int4 = {bits = 4, deviation = 5, factors = true, make = function(n, k, seed)
    local b = assert(dev:buffer("u32", n * k // 8))
    words(b, n * k // 8, seed << 24):launch {grid = 1024}
    local W = cute.make_tensor(core.buffer("u32", n * k // 8),
      cute.make_layout({n // 16, k // 64, 32, 4}, cute.LayoutRight))
    return {buffer = b, B = setmetatable({packed = core.on_device(W, b), n = n,
                                          k = k}, Int4)}
  end},
}

---------------------------------------------------------------------------
-- Contestants
---------------------------------------------------------------------------

-- Returns one graph of `count` calls, which calls these functions cyclically.
local function graph(launches, count)
  return cute.graph(function()
    for i = 1, count do launches[(i - 1) % #launches + 1]() end
  end)
end

local function launch(object) return function() object:launch() end end

-- Returns a problem, a table with the fields m, n, k and kind; own and blas,
-- lists of copies of the weights; the buffers a and d; and o, the options for
-- ops. Successive launches of ops use the copies in `own` in turn, and those of
-- cuBLAS the copies in `blas`.
local function problem(m, layer, kind)
  local n, k = table.unpack(layer)
  local p = {m = m, n = n, k = k, kind = kind, own = {}, blas = {}, o = {},
             bytes = n * k * kind.bits // 8,
             a = card.matrix(dev, "bf16", m * k, 1),
             d = card.matrix(dev, "bf16", m * n)}
  for i = 1, math.max(1, math.ceil(FAR / p.bytes)) do
    p.own[i] = kind.make(n, k, i)
  end
  if kind.factors then
    for i = 1, math.max(1, math.ceil(FAR / (2 * n * k))) do
      p.blas[i] = card.matrix(dev, "bf16", n * k, i << 40)
    end
    p.factors = card.matrix(dev, "bf16", n * (k // GROUP), 3)
    p.o.scale_b, p.o.group = card.tensor(p.factors, n, k // GROUP, true), GROUP
  else
    for i, w in ipairs(p.own) do p.blas[i] = w.buffer end
  end
  p.o.out = card.tensor(p.d, m, n)
  return p
end

local function close(p)
  for _, w in ipairs(p.own) do w.buffer:close() end
  for _, b in ipairs(p.kind.factors and p.blas or {}) do b:close() end
  for _, b in ipairs {p.a, p.d, p.factors} do b:close() end
end

-- Returns the list of contestants. Each is {name, f, the number of weights,
-- reads = true for kernels that only read}, where f(i) launches the contestant
-- with weights number i.
local function makers(p)
  local A = card.tensor(p.a, p.m, p.k)
  local function spec(i)
    return {m = p.m, n = p.n, k = p.k, A = p.a, B = p.blas[i], D = p.d}
  end
  local _, at = gpu.best(assert(gpu.cublaslt(spec(1))), {warm_ms = 2,
                                                         hot_ms = 4})
  local list = {
    {"cuBLAS", function(i) return launch(assert(gpu.cublas(spec(i)))) end,
     #p.blas},
    {"cublasLt", function(i)
      return launch(assert(gpu.cublaslt(spec(i)))[at])
    end, #p.blas},
    {"ops", function(i)
      return function() cute.ops.gemm(A, p.own[i].B, p.o) end
    end, #p.own}}
  for _, read in ipairs(readers) do
    list[#list + 1] = {"read", function(i)
      return launch(read(p.own[i].buffer, p.bytes))
    end, #p.own, reads = true}
  end
  return list
end

---------------------------------------------------------------------------

local HEAD = "%-16s %-8s %-4s %-4s %8s %8s %8s %8s   %7s %7s %7s  %s"
local LINE =
  "%-16s %-8s %-4s %-4s %8.2f %8.2f %8.2f %8.2f   %7.2f %7.2f %7.0f  %s"

-- Returns the microseconds per launch of each contestant. `same`: always use
-- the same weights instead of alternating.
local function times(list, same)
  local runs, counts = {}, {}
  for i, c in ipairs(list) do
    local sets, launches = same and 1 or c[3], {}
    for s = 1, sets do launches[s] = c[2](s) end
    for _, f in ipairs(launches) do f() end
    dev:sync()
    counts[i] = sets * math.max(1, math.ceil(LAUNCHES / sets))
    runs[i] = {name = c[1], launch = graph(launches, counts[i])}
  end
  local r = card.bench(runs, options, {cold = false})
  local best = {}
  for i, c in ipairs(list) do
    local us = r[i].hot.median * 1e3 / counts[i]
    best[c[1]] = math.min(best[c[1]] or math.huge, us)
  end
  return best
end

-- Reports whether ops's result matches cuBLAS's double-precision product with
-- weights B. ops adds k products in f32, in any order, and rounds to bf16.
local function right(p, c, B, deviation)
  local want = card.product(dev, {m = p.m, n = p.n, k = p.k, A = p.a, B = B})
  p.d:memset(0xff)
  c[2](1)()
  dev:sync()
  -- Allows a truncation error of 2^-23 of the sum per step of 16 along K.
  local cut = math.max(32e-6, p.k / 16 * 2.0^-23)
  local error, wrong = card.difference(dev, p.d, want, 0.0079,
    cut * math.sqrt(p.k) * deviation)
  want:close()
  local good = error < 3e-3 and wrong == 0
  if not good then
    print(("%s WRONG: %.2e in the norm, %d elements"):format(c[1], error,
                                                            wrong))
  end
  return good
end

-- Returns the weights of the cute.ops call in a form that cuBLAS can multiply.
local function plain_weights(p)
  if not p.kind.factors then return p.own[1].buffer end
  local x = assert(dev:buffer("f64", p.n * p.k))
  whole(p.own[1].buffer, p.kind.bits, p.factors, x, p.n, p.k):launch {
    grid = 2048}
  return x
end

local least, product, measured = {}, 0, 0

local function compete(m, layer, weights)
  local kind = KINDS[weights]
  local p = problem(m, layer, kind)
  local name, list = ("%dx%dx%d"):format(m, p.n, p.k), makers(p)
  local B = plain_weights(p)
  assert(right(p, list[3], B, kind.deviation), name .. " of ops is wrong")
  if kind.factors then B:close() end
  for i = 1, 2 do right(p, list[i], p.blas[1], 1) end
  local e = cute.ops.explain(card.tensor(p.a, m, p.k), p.own[1].B, p.o)
  local choice = ("%s %s%s"):format(e.kernel, table.concat(e.tile, "x"),
    e.split ~= 1 and (", K in %s"):format(e.split) or "")
  for _, same in ipairs(2 * p.n * p.k < IN_L2 and {false, true} or {false}) do
    local us = times(list, same)
    local ratio = math.min(us.cuBLAS, us.cublasLt) / us.ops
    print(LINE:format(name, layer[3], weights, same and "L2" or "mem",
      us.cuBLAS, us.cublasLt, us.read, us.ops, ratio, us.read / us.ops,
      (p.bytes + 2 * m * (p.n + p.k)) / us.ops / 1e3, choice))
    product, measured = product + math.log(ratio), measured + 1
    if not least[1] or ratio < least[1] then least = {ratio, name} end
  end
  close(p)
end

-- Reports whether a comma-separated list contains a name, or is empty.
local function wanted(list, name)
  return list == "" or ("," .. list .. ","):find("," .. name .. ",", 1, true)
end

print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
print(HEAD:format("M x N x K", "", "", "", "cuBLAS", "Lt", "read", "ops",
                  "/ best", "of read", "GB/s", "choice"))
for weights in options.weights:gmatch "%w+" do
  least, product, measured = {}, 0, 0
  for m in options.rows:gmatch "%d+" do
    for _, layer in ipairs(LAYERS) do
      local size = ("%dx%d"):format(layer[1], layer[2])
      if wanted(options.only, m .. "x" .. size)
        and wanted(options.layers, size) then
        compete(math.tointeger(m), layer, weights)
        io.stdout:flush()
      end
    end
  end
  if measured > 0 then
    print(("%s: geometric mean %.3f, least %.3f (%s); %s"):format(weights,
      math.exp(product / measured), least[1], least[2], card.state()))
  end
end
-- SPDX-License-Identifier: MIT
