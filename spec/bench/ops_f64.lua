-- ops.gemm of doubles: every candidate of the rule beside cuBLAS, in turn, hot:
--
--     cutelua spec/bench/ops_f64.lua [--rounds 5] [--warm 20] [--hot 20]
--       [--part 1/12]
--
-- `ops` is what the rule takes, `best` the fastest of all, `ratio` cuBLAS's
-- time by that of `ops`. Launches of a graph. Results are compared with
-- cuBLAS's. A part is only compiled and launched: many processes can do that
-- before one that measures.
local card = require "spec.card"
local choose = require "cute.ops.choose"
local core = require "cute.core"
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local measure = require "spec.measure"
local plans = require "cute.ops.plan"

local device = measure.gpu_device(90)
if not device then return end
local options = card.options {rounds = "5", warm = "20", hot = "20", part = ""}

local SHAPES = {{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
  {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
  {1000, 1000, 1000}, {1023, 1023, 1023}, {16, 4096, 4096}, {64, 64, 4096},
  {64, 4096, 4096}, {256, 4096, 4096}, {4096, 128, 4096}, {8192, 8192, 1024},
  {4096, 4096, 128}, {300, 700, 2000}}

local function matrix(rows, columns, across, seed)
  local t = card.normal({rows * columns}, "f64", seed)
  return cute.make_tensor(t.iterator, cute.make_layout({rows, columns},
    across and {1, rows} or {columns, 1})), core.param_memory(t)
end

local function contestants(m, n, k, layouts)
  local A, a = matrix(m, k, layouts:sub(1, 1) == "n", 1)
  local B, b = matrix(n, k, layouts:sub(2) == "t", 2)
  local d = card.matrix(device.dev, "f64", m * n)
  local blas = assert(gpu.cublas {m = m, n = n, k = k, A = a, B = b, D = d,
                                  layout = layouts})
  blas:launch()
  local calls = math.max(1, math.min(20, 4e9 // (1.0 * m * n * k) // 1 | 0))
  local list = {{name = "cuBLAS", launch = blas, calls = 1}}
  local p, all, call = gemm.offers(A, B, {})
  for i, c in ipairs(all) do
    local X = cute.empty({m, n}, cute.f64, {device = "gpu"})
    local run = plans.new(p, c, call):prepare(call, {X})
    run:launch()
    local error, count = card.difference(device.dev, core.param_memory(X), d,
                                         0, 1e-13 * k)
    list[i + 1] = {name = choose.name(c), calls = calls, us = c.ns / 1000,
      wrong = error ~= error or count > 0,
      launch = cute.graph(function()
        for _ = 1, calls do run:launch() end
      end)}
  end
  return list
end

local function row(name, list)
  local r = assert(gpu.bench(list, {rounds = tonumber(options.rounds),
    warm_ms = tonumber(options.warm), hot_ms = tonumber(options.hot),
    cold = false}))
  local function us(c) return r[c.name].hot.median * 1e3 / c.calls end
  local best, words = list[2], {}
  for j = 2, #list do
    local c = list[j]
    if us(c) < us(best) then best = c end
    words[#words + 1] = ("%s %.1f (%.1f)%s"):format(c.name, us(c), c.us,
      c.wrong and " WRONG" or "")
  end
  print(("%-18s %9.1f %9.1f %6.3f %9.1f %9.1f  %s; %s; %s"):format(name,
    us(list[1]), us(list[2]), us(list[1]) / us(list[2]), list[2].us, us(best),
    list[2].name, best.name, table.concat(words, ", ")))
  io.stdout:flush()
end

local part, parts = options.part:match "(%d+)/(%d+)"
if not part then
  print(("%s; %s"):format(device.name, card.state()))
  print(("%-18s %9s %9s %6s %9s %9s  %s"):format("us, hot", "cuBLAS", "ops",
    "ratio", "rule", "best", "choice; the best; all"))
end
local number = 0
for _, layouts in ipairs {"tn", "nn", "nt", "tt"} do
  for i, s in ipairs(SHAPES) do
    if layouts == "tn" or i == 3 or i == 5 or i == 8 then
      number = number + 1
      if not part then
        row(("%dx%dx%d %s"):format(s[1], s[2], s[3], layouts),
            contestants(s[1], s[2], s[3], layouts))
      elseif number % parts == part % parts then
        contestants(s[1], s[2], s[3], layouts)
      end
      collectgarbage()
    end
  end
end
