-- Measures cute.ops.grouped_gemm on a GPU, for experts of 128 to 4096 rows
-- each. It is compared with cuBLAS's products one after the other in a stream,
-- with the same products as a graph, and with one product of all rows. "/
-- ideal" is the rate divided by the best rate of one big product with the same
-- N and K:
--
--    cutelua spec/bench/ops_grouped.lua [--only 4096x7168] [--rounds 5]
--      [--least 128] [--most 4096]
--
-- Each line ends with the clock and the power that were measured during 0.6 s
-- of the run.
local card = require "spec.card"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

local options = card.options {rounds = "5", only = "", warm = "60",
                              hot = "50", experts = "64", least = "128",
                              most = "4096"}
local EXPERTS = math.tointeger(options.experts)

local SHAPES = {{4096, 7168}, {14336, 4096}, {2048, 4096}}
local BIG = 16384  -- number of rows of the big product

-- Returns the number of rows of each expert, the same in every run.
local function sizes()
  local list, state, total = {}, 12345, 0
  local least, most = tonumber(options.least), tonumber(options.most)
  for e = 1, EXPERTS do
    state = (state * 1103515245 + 12345) % (1 << 31)
    list[e] = least + (state >> 8) % (most - least + 1) // 1
    total = total + list[e]
  end
  return list, total
end

local function rows_of(t, first, rows)
  local n = t.shape[2]
  return cute.make_tensor(t.iterator + first * n,
    cute.make_layout({rows, n}, {n, 1}))
end

-- Returns {A, B, D, offsets, sizes, parts}: the operands of all experts
-- together, and in `parts` the buffers {a, b, d} of each expert.
local function operands(N, K)
  local list, M = sizes()
  local function empty(...)
    return cute.empty({...}, cute.bf16, {device = "gpu"})
  end
  local x = {A = empty(M, K), B = empty(EXPERTS, N, K), D = empty(M, N), M = M,
             sizes = list, parts = {}}
  local at, ends = 0, {0}
  local B = cute.make_tensor(x.B.iterator, cute.make_layout({EXPERTS * N, K},
                                                            {K, 1}))
  for e, rows in ipairs(list) do
    local p = {m = rows, n = N, k = K,
               A = card.matrix(dev, "bf16", rows * K, e),
               B = card.matrix(dev, "bf16", N * K, (e << 20) + 7),
               D = card.matrix(dev, "bf16", rows * N), m_major = false}
    rows_of(x.A, at, rows):copy_from(card.tensor(p.A, rows, K))
    rows_of(B, (e - 1) * N, N):copy_from(card.tensor(p.B, N, K))
    x.parts[e], at = p, at + rows
    ends[e + 1] = at
  end
  x.offsets = cute.tensor(ends, cute.i32):to "gpu"
  return x
end

-- Compares the rows of x.D that belong to an expert with p.D, the product of
-- that expert alone. Returns the largest relative error in the norm, and the
-- number of wrong elements.
local function compare(x, K)
  local worst, wrong, at = 0, 0, 0
  for e, p in ipairs(x.parts) do
    local rows = x.sizes[e]
    local copy = assert(dev:buffer("bf16", rows * p.n))
    card.tensor(copy, rows, p.n):copy_from(rows_of(x.D, at, rows))
    local error, bad = card.difference(dev, copy, p.D, 0.0079,
                                       4e-6 * math.sqrt(K) * 8)
    copy:close()
    worst, wrong, at = math.max(worst, error), wrong + bad, at + rows
  end
  return worst, wrong
end

-- Returns two contestants for one product of M rows, cuBLAS and our kernel.
-- With a large M, their rate is the highest that an expert's product could
-- reach.
local function pair(label, M, N, K)
  local A = card.matrix(dev, "bf16", M * K, 5)
  local B = card.matrix(dev, "bf16", N * K, 6)
  local D = card.matrix(dev, "bf16", M * N)
  local flops = 2.0 * M * N * K
  local o = gemm_sm90.choose(M, N, K, {sms = device.info.sms})
  local run = gemm_sm90(o).prepare(card.tensor(A, M, K),
    card.tensor(B, N, K), card.tensor(D, M, N),
    {device = "gpu", sms = device.info.sms})
  local blas = assert(gpu.cublas {m = M, n = N, k = K, A = A, B = B, D = D})
  return {name = label .. ", cuBLAS", flops = flops, launch = blas},
         {name = label .. ", ours", flops = flops, launch = assert(run)}
end

local function report(label, r, list)
  local ideal = math.max(r["big, cuBLAS"].hot.tflops, r["big, ours"].hot.tflops)
  for _, c in ipairs(list) do
    local t = r[c.name]
    print(("%-12s %-15s %8.3f ms %7.1f %7.1f   %.3f %.3f   %.3f  %s"):format(
      label, c.name, t.hot.median, t.cold.tflops, t.hot.tflops,
      t.cold.tflops / r.cuBLAS.cold.tflops, t.hot.tflops / r.cuBLAS.hot.tflops,
      t.hot.tflops / ideal, card.busy(dev, c.launch, t.hot.median)))
  end
end

-- Measures the contestants that ways(x, N, K) returns. Each contestant is {name
-- =, run = a function that fills x.D}.
local function compete(N, K, ways)
  local x = operands(N, K)
  local flops = 2.0 * x.M * N * K
  local products = {}
  for e, p in ipairs(x.parts) do products[e] = assert(gpu.cublas(p)) end
  local function loop()
    for _, p in ipairs(products) do p:launch() end
  end
  loop()
  dev:sync()
  local list = {{name = "cuBLAS", launch = loop}, {name = "cuBLAS, graph",
                 launch = cute.graph(loop, {device = "gpu"})}}
  for _, way in ipairs(ways(x, N, K)) do
    x.D:fill(0)
    local ok, why = pcall(way.run)
    dev:sync()
    local error, wrong = 1, -1
    if ok then error, wrong = compare(x, K) end
    if ok and error < 3e-3 and wrong == 0 then
      list[#list + 1] = {name = way.name, launch = way.run}
    else
      print(("%s WRONG: error %.2e, %d elements %s"):format(way.name, error,
        wrong, ok and "" or tostring(why)))
    end
  end
  for _, c in ipairs(list) do c.flops = flops end
  list[#list + 1], list[#list + 2] = pair("big", BIG, N, K)
  list[#list + 1], list[#list + 2] = pair("whole", x.M, N, K)
  local r = card.bench(list, options)
  report(("%dx%d"):format(N, K), r, list)
end

local function ours(x)
  return {{name = "ours", run = function()
    cute.ops.grouped_gemm(x.A, x.B, x.offsets, {out = x.D})
  end}}
end

print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
local list, total = sizes()
print(("%d experts, %d rows: %d to %d"):format(EXPERTS, total,
  math.min(table.unpack(list)), math.max(table.unpack(list))))
print "N x K        by                    hot    cold     hot   / cuBLAS \z
  cold, hot   / ideal  limit, clock, draw"
for _, shape in ipairs(SHAPES) do
  local N, K = table.unpack(shape)
  local name = ("%dx%d"):format(N, K)
  if options.only == "" or options.only == name then
    compete(N, K, ours)
    collectgarbage()
    gpu.trim()
  end
end
print("after: " .. card.state())
-- SPDX-License-Identifier: MIT
