-- Measures ops.gemm on random products that its tuned tables do not contain,
-- against cuBLAS and the best of 32 algorithms of cublasLt:
--
--    cutelua spec/bench/ops_unseen.lua --seed 1 [--types "bf16:60 f16:12"]
--      [--record FILE] [--rounds 3] [--warm 20] [--hot 20] [--part 1/12]
--      [--list bf16]
--
-- "bf16:60" requests 60 products of bf16. M is at most 10000; N and K are sizes
-- that models have. A quarter of the products of 16 and 32 bits have an operand
-- B whose rows (N) are contiguous.
--
-- Launches of all contestants are parts of graphs. If L2 could keep operands
-- for the next launch, they alternate with others; operands of less than 16 MiB
-- stay in L2. Each D is compared with cublasLt's. `ratio` is the time of the
-- faster rival divided by ours, and `blas` is the time of cuBLAS's default
-- algorithm divided by ours.
--
-- --record writes the card, the driver, the seed and each measured product to a
-- file. If the file exists, its products are not measured again. With --part
-- I/N the script only compiles every Nth kernel, so that several processes can
-- compile before one measures. --list prints the products of a type in the form
-- that `cutelua tune gemm --shapes` reads.
local card = require "spec.card"
local choose = require "cute.ops.choose"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local measure = require "spec.measure"
local operands = require "cutelua.tune.operands"
local plans = require "cute.ops.plan"

local options = card.options {seed = "1", types = "bf16:60", record = "",
  rounds = "3", warm = "20", hot = "20", part = "", list = ""}

-- For each type: {type of A and B, type of D, relative tolerance of an element
-- of D, absolute tolerance per product (multiplied by K), most operations of a
-- product, whether the layout of B varies}.
local TYPES = {
  bf16 = {"bf16", "bf16", 0.0079, 1e-6, 4e12, true},
  f16 = {"f16", "f16", 0.00098, 1e-6, 4e12, true},
  tf32 = {"f32", "f32", 0, 4e-6, 2e12, true},
  f32 = {"f32", "f32", 0, 1e-6, 2e11, true},
  e4m3 = {"e4m3", "bf16", 0.0079, 2^-12 * 5 * math.sqrt(128) / 32, 4e12},
  i8 = {"i8", "i32", 0, 0, 4e12},
}
local FROM = {512, 768, 1024, 1280, 1536, 2048, 2560, 2816, 3072, 3584, 4096,
  4608, 5120, 5632, 6144, 6656, 7168, 8192, 9216, 10240, 11008, 12288, 13824,
  14336, 16384, 18944, 22016, 24576, 28672, 32000}
local MOST_K = 18944

---------------------------------------------------------------------------
-- The products
---------------------------------------------------------------------------

-- Returns a generator of uniform numbers in [0, 1) with a seed.
local function uniform(seed)
  local x = seed * 0x9e3779b97f4a7c15 + 1
  return function()
    x = x * 6364136223846793005 + 1442695040888963407
    local z = (x ~ x >> 29) * 0xbf58476d1ce4e5b9
    return (z >> 11) * 2.0^-53
  end
end

-- Draws an extent M, log-uniform up to 10000. Half of the extents are multiples
-- of 8 or, above 128, of 64.
local function rows_of(draw)
  local m = math.floor(2 * 5000 ^ draw())
  local step = draw() < 0.5 and 1 or m > 128 and 64 or 8
  return math.max(m // step * step, 2)
end

-- Reports whether the tuned table, which has only products of 16-bit floats,
-- contains this product.
local function seen(x)
  local rows = require "kernels.tuned.h200".gemm["bf16 bf16 bf16 tn row"]
  for _, r in ipairs(rows) do
    if r[1] == x.m and r[2] == x.n and r[3] == x.k then return true end
  end
end

-- Returns the products to measure, as {type, layout, m, n, k, name}.
local function products()
  local list = {}
  for type, count in options.types:gmatch "(%w+):(%d+)" do
    local row = assert(TYPES[type], "no type " .. type)
    local draw = uniform(math.tointeger(options.seed) + #type * 1009
      + type:byte(1) * 31)
    local drawn = 0
    while drawn < tonumber(count) do
      local x = {type = type, m = rows_of(draw),
                 n = FROM[1 + math.floor(draw() * #FROM)],
                 k = FROM[1 + math.floor(draw() * #FROM)]}
      x.layout = draw() < 0.25 and row[6] and "tt" or "tn"
      if row[1] == "i8" then x.m = math.max(x.m // 16 * 16, 16) end
      if x.k <= MOST_K and 2.0 * x.m * x.n * x.k <= row[5]
        and not (x.layout == "tn" and seen(x)) then
        drawn = drawn + 1
        x.name = ("%s %s %dx%dx%d"):format(type, x.layout, x.m, x.n, x.k)
        list[#list + 1] = x
      end
    end
  end
  return list
end

if options.list ~= "" then
  for _, x in ipairs(products()) do
    if x.type == options.list and x.layout == "tn" then
      print(("%d,%d,%d"):format(x.m, x.n, x.k))
    end
  end
  return
end

---------------------------------------------------------------------------
-- Compiling
---------------------------------------------------------------------------

-- Returns the text of a product in the form of cutelua.tune.operands.
local function problem_of(x)
  local row = TYPES[x.type]
  local ab = x.type == "tf32" and "tf32" or row[1]
  return ("%s %s %s %s row %d %d %d"):format(ab, ab, row[2], x.layout, x.m, x.n,
                                             x.k)
end

local function compile(x, device)
  local set = operands.without_memory(problem_of(x))
  set.options.device = device
  local p, _, call = gemm.offers(set.A, set.B, set.options)
  assert(plans.new(p, choose.choose(p), call):trace(call):compile())
end

---------------------------------------------------------------------------
-- Measuring
---------------------------------------------------------------------------

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

-- Returns the arguments of gpu.cublas and gpu.cublaslt for a product.
local function rival(x, set, d)
  return {m = x.m, n = x.n, k = x.k, A = set.a, B = set.b, D = d,
          layout = x.layout, tf32 = x.type == "tf32" or nil}
end

-- Returns one launch of cublasLt's best algorithm for each set of operands.
local function best_lt(x, sets, d)
  local all, index = {}, 1
  for i, set in ipairs(sets) do
    all[i] = gpu.cublaslt(rival(x, set, d))
    if not all[i] then return nil end
  end
  if #all[1] > 1 then
    index = select(2, gpu.best(all[1], {warm_ms = 4, hot_ms = 8}))
  end
  local runs = {}
  for i, list in ipairs(all) do runs[i] = list[index] or list[1] end
  return runs
end

local function blas(x, sets, d)
  local runs = {}
  for i, set in ipairs(sets) do
    runs[i] = gpu.cublas(rival(x, set, d))
    if not runs[i] then return nil end
  end
  return runs
end

-- Returns one launch of ops.gemm for each set, and the chosen configuration.
local function ours(x, sets, d)
  local first_n = x.layout == "tt"
  local p, _, call = gemm.offers(card.tensor(sets[1].a, x.m, x.k),
    card.tensor(sets[1].b, x.n, x.k, first_n),
    {out = d, tf32 = x.type == "tf32" or nil})
  local c = choose.choose(p)
  return card.runs(p, c, call, sets, first_n, d), c
end

-- Measures a product. Sets x.us, x.lt and x.blas (microseconds), x.choice,
-- x.how and, for a wrong result, x.wrong.
local function compete(x)
  local row = TYPES[x.type]
  local flops = 2.0 * x.m * x.n * x.k
  local sets, D = card.sets(dev, row[1], x.m, x.n, x.k), {}
  for i = 1, 3 do D[i] = card.matrix(dev, row[2], x.m * x.n) end
  local count = card.launches(flops, sets)
  local runs, c = ours(x, sets, card.tensor(D[1], x.m, x.n))
  local list = {{name = "ops", launch = card.graph(dev, runs, count)}}
  for i, make in ipairs {best_lt, blas} do
    local made = make(x, sets, D[i + 1])
    if made then
      list[#list + 1] = {name = i == 1 and "Lt" or "cuBLAS", D = D[i + 1],
                         launch = card.graph(dev, made, count)}
    end
  end
  if not list[2] then error(x.name .. ": cuBLAS and cublasLt have no algorithm")
  end
  -- compares our result for the last set of operands with a library's
  local off, n = card.difference(dev, D[1], list[2].D, row[3], row[4] * x.k)
  x.wrong = (off ~= off or n > 0) and ("WRONG: error %.1e, %d elements")
    :format(off, n) or nil
  local part = operands.warmth(flops)
  local r = card.bench(list, {rounds = options.rounds,
    warm = part * options.warm, hot = part * options.hot},
    {cold = false, settle_ms = part == 1 and 2 * options.warm or nil})
  local function us(name)
    return r[name] and r[name].hot.median * 1e3 / count or math.huge
  end
  x.us, x.lt, x.blas = us "ops", us "Lt", us "cuBLAS"
  x.spread = (r.ops.hot.max - r.ops.hot.min) / r.ops.hot.median
  x.choice, x.how = choose.name(c), c.how
  for _, b in ipairs(D) do b:close() end
  for _, set in ipairs(sets) do
    set.a:close()
    set.b:close()
  end
end

---------------------------------------------------------------------------
-- Records
---------------------------------------------------------------------------

local function line_of(x)
  return ("%s\t%.3f\t%.3f\t%.3f\t%.3f\t%s\t%s"):format(x.name, x.us, x.lt,
    x.blas, x.spread, x.how, x.wrong or x.choice)
end

-- Opens the file of --record. Returns the file, and its lines by product.
local function record(head)
  if options.record == "" then return nil, {} end
  local old, known = io.open(options.record), {}
  if old then
    assert(old:read "l" == head,
           "the record is of another card, driver or seed")
    for line in old:lines() do known[line:match "^[^\t]*"] = line end
    old:close()
  end
  local f = assert(io.open(options.record, "a"))
  if not old then f:write(head, "\n") end
  return f, known
end

local function restore(x, line)
  local us, lt, blas_us, spread, how, choice = line:match(
    "^[^\t]*\t(%S+)\t(%S+)\t(%S+)\t(%S+)\t([^\t]*)\t(.*)$")
  x.us, x.lt, x.blas = tonumber(us), tonumber(lt), tonumber(blas_us)
  x.lt, x.blas = x.lt or math.huge, x.blas or math.huge
  x.spread, x.how, x.choice = tonumber(spread), how, choice
  x.wrong = choice:match "^WRONG.*"
end

-- Returns the geometric mean of f(x) over the list, without the elements for
-- which f returns infinity.
local function mean(list, f)
  local sum, n = 0, 0
  for _, x in ipairs(list) do
    local v = f(x)
    if v < math.huge then sum, n = sum + math.log(v), n + 1 end
  end
  return n > 0 and ("%.3f"):format(math.exp(sum / n)) or "-"
end

local function summary(label, list)
  local least = list[1]
  for _, x in ipairs(list) do
    if x.ratio < least.ratio then least = x end
  end
  print(("%-16s geometric mean %s, least %.3f (%s), %d products; beside "
    .. "cuBLAS alone %s"):format(label, mean(list, function(x)
    return x.ratio
  end), least.ratio, least.name, #list, mean(list, function(x)
    return x.blas / x.us
  end)))
end

local all = products()
local part, parts = options.part:match "^(%d+)/(%d+)$"
if part then
  for i, x in ipairs(all) do
    if i % parts == part % parts then compile(x, device) end
  end
  return
end
local head = ("# %s, driver %s, seed %s"):format(device.name, card.driver(),
                                                 options.seed)
local file, known = record(head)
print(head .. "; " .. card.state())
print(("%-26s %9s %9s %9s  %5s %5s %6s  %s"):format("", "cuBLAS", "Lt",
  "ops, us", "ratio", "blas", "spread", "choice"))
local groups, names = {}, {}
local function group(name, x)
  if not groups[name] then groups[name], names[#names + 1] = {}, name end
  table.insert(groups[name], x)
end
for _, x in ipairs(all) do
  if known[x.name] then restore(x, known[x.name])
  else
    compete(x)
    collectgarbage()
    if file then
      file:write(line_of(x), "\n")
      file:flush()
    end
  end
  x.ratio = math.min(x.blas, x.lt) / x.us
  print(("%-26s %9.2f %9.2f %9.2f  %.3f %.3f %5.1f%%  %s (%s)"):format(x.name,
    x.blas, x.lt, x.us, x.ratio, x.blas / x.us, 100 * x.spread,
    x.wrong or x.choice, x.how))
  io.stdout:flush()
  group(x.type, x)
  if x.m >= 128 then group(x.type .. ", M >= 128", x) end
end
for _, name in ipairs(names) do summary(name, groups[name]) end
print("after: " .. card.state())
if file then file:close() end
-- SPDX-License-Identifier: MIT
