-- Measures ops.gemm with types of 64, 32 and 8 bits: every candidate of the
-- rule against cuBLAS, alternating, hot:
--
--    cutelua spec/bench/ops_types.lua [--types "f64 f32 tf32 i8"]
--      [--within 1.3] [--rounds 5] [--warm 20] [--hot 20] [--part 1/12]
--
-- `ops` is the candidate that the rule chooses. `best` is the fastest of the
-- candidates whose estimated time is at most `within` times the estimate of
-- `ops`. `regret` is the time of `ops` divided by that of `best`, and `ratio`
-- is cuBLAS's time divided by that of `ops`. Times are per launch of a graph.
-- Results are compared with cuBLAS's or, if cuBLAS has none, with those of
-- `ops`. With --part I/N the script only compiles and launches every Nth case,
-- so that many processes can compile before one measures.
local card = require "spec.card"
local core = require "cute.core"
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev
local options = card.options {types = "f64 f32 tf32 i8", within = "1.3",
  rounds = "5", warm = "20", hot = "20", part = ""}

-- For each word of the option --types: {type of A and B, type of D, tolerance}.
-- Two results for the same element of D may differ by the tolerance times K.
local TYPES = {f64 = {"f64", "f64", 1e-13}, f32 = {"f32", "f32", 1e-6},
               tf32 = {"f32", "f32", 4e-6}, i8 = {"i8", "i32", 0}}

local SHAPES = {{1024, 1024, 1024}, {4096, 4096, 4096}, {1023, 1023, 1023},
  {256, 256, 256}, {512, 512, 512}, {2048, 2048, 2048}, {8192, 8192, 8192},
  {1000, 1000, 1000}, {16, 4096, 4096}, {64, 64, 4096}, {64, 4096, 4096},
  {128, 1024, 8192}, {256, 4096, 4096}, {4096, 128, 4096}, {8192, 8192, 1024},
  {4096, 4096, 128}, {300, 700, 2000}, {128, 128, 65536}}

local cases = {}
for type in options.types:gmatch "%w+" do
  assert(TYPES[type], "no type " .. type)
  for _, layouts in ipairs {"tn", "nn", "nt", "tt"} do
    for i, s in ipairs(SHAPES) do
      if layouts == "tn" or i <= 3 then
        cases[#cases + 1] = {type = type, layouts = layouts, m = s[1],
          n = s[2], k = s[3],
          name = ("%s %dx%dx%d %s"):format(type, s[1], s[2], s[3], layouts)}
      end
    end
  end
end

local function matrix(dtype, rows, columns, across, seed)
  local t = card.normal({rows * columns}, dtype, seed)
  return cute.make_tensor(t.iterator, cute.make_layout({rows, columns},
    across and {1, rows} or {columns, 1})), core.param_memory(t)
end

-- Returns cuBLAS's product, or nil if cuBLAS does not support it (8-bit types
-- need multiples of 16).
local function blas(x, a, b)
  if x.type == "i8" and (x.m % 16 ~= 0 or x.k % 16 ~= 0) then return nil end
  local d = card.matrix(dev, TYPES[x.type][2], x.m * x.n)
  return {name = "cuBLAS", d = d, calls = 1, launch = assert(gpu.cublas {
    m = x.m, n = x.n, k = x.k, A = a, B = b, D = d, layout = x.layouts,
    tf32 = x.type == "tf32" or nil})}
end

local function contestants(x)
  local ab, d = table.unpack(TYPES[x.type])
  local A, a = matrix(ab, x.m, x.k, x.layouts:sub(1, 1) == "n", 1)
  local B, b = matrix(ab, x.n, x.k, x.layouts:sub(2) == "t", 2)
  local calls = math.max(1, math.min(20, 4e9 / (x.m * x.n * x.k) // 1 | 0))
  local list = {blas(x, a, b)}
  if list[1] then list[1].launch:launch() end
  local p, all, call = gemm.offers(A, B, {dtype = cute[d],
                                          tf32 = x.type == "tf32" or nil})
  for _, c in ipairs(all) do
    if c.ns <= tonumber(options.within) * all[1].ns then
      local made = card.candidate(p, c, call, calls)
      made.name = made.choice
      list[#list + 1] = made
    end
  end
  return list
end

local function row(x, list)
  local first = list[1].name == "cuBLAS" and 2 or 1
  for i = 2, #list do
    local error, count = card.difference(dev, list[i].d, list[1].d, 0,
                                         TYPES[x.type][3] * x.k)
    list[i].wrong = error ~= error or count > 0
  end
  local r = card.bench(list, options, {cold = false})
  local function us(c) return r[c.name].hot.median * 1e3 / c.calls end
  local ops, best, words = list[first], list[first], {}
  for i = first, #list do
    local c = list[i]
    if us(c) < us(best) then best = c end
    words[#words + 1] = ("%s %.1f (%.1f)%s"):format(c.name, us(c), c.us,
      c.wrong and " WRONG" or "")
  end
  local than = first == 2 and us(list[1])
  print(("%-22s %9s %9.1f %6s %9.1f %9.1f %6.3f  %s; %s; %s"):format(x.name,
    than and ("%.1f"):format(than) or "-", us(ops),
    than and ("%.3f"):format(than / us(ops)) or "-", ops.us, us(best),
    us(ops) / us(best), ops.name, best.name, table.concat(words, ", ")))
end

card.walk(options, cases, contestants, row, ("%s; %s\n%-22s %9s %9s %6s %9s \z
  %9s %6s  %s"):format(device.name, card.state(), "us, hot", "cuBLAS", "ops",
  "ratio", "rule", "best", "regret", "choice; the best; all"))
-- SPDX-License-Identifier: MIT
