-- Measures ops.gemm against the better of cuBLAS and the best of cublasLt, hot:
-- square and odd shapes, and the projections of two open model families at
-- eight batches of tokens:
--
--    cutelua spec/bench/ops_shapes.lua [--hidden 4096,8192,0] [--m 1,8]
--      [--type bf16|f16|e4m3] [--record FILE] [--rounds 5] [--warm 60]
--      [--hot 50] [--constant yes]
--
-- `--hidden 0` selects the odd shapes. 8-bit floats, with D of bf16, are
-- compared with cublasLt only; both accumulate in f32. If L2 could keep
-- operands for the next launch, they alternate with others; operands of less
-- than 16 MiB stay in L2. Products that are too short to reach the power limit
-- run for a quarter of --warm and --hot.
--
-- `bound` is the time to read B once, at the bandwidth of a copy in this run,
-- divided by our time. With eight rows or fewer, the fastest kernel that only
-- reads B is also launched. `read` is this kernel's time divided by ours.
-- `blas` is this kernel's time divided by the faster time of cuBLAS and
-- cublasLt.
--
-- --constant prints another table, for ops.gemm with constant = "B", which
-- reads weights before the preceding launch ends. (cuBLAS has no such option.)
-- ops.gemm is compared with itself without the option, and with kernels that
-- only read B. One of these kernels waits for the preceding launch, the other
-- does not. All launches are part of a graph, and weights come from memory.
local card = require "spec.card"
local choose = require "cute.ops.choose"
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local measure = require "spec.measure"
local operands = require "cutelua.tune.operands"
local plans = require "cute.ops.plan"
local tiles = require "cute.tiles"
local worker = require "cutelua.tune.worker"

local device = measure.gpu_device(90)
if not device then return end
local dev, readers = device.dev, card.readers(device)

local options = card.options {hidden = "0,4096,8192", m = "", record = "",
                              rounds = "5", warm = "60", hot = "50",
                              type = "bf16", constant = ""}
local AB = options.type
local D_TYPE = AB == "e4m3" and "bf16" or AB
local BYTES = AB == "e4m3" and 1 or 2

local ODD = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
  {4096, 4096, 4096}, {8192, 1024, 8192}, {8192, 8192, 8192},
  {16384, 16384, 16384}, {4096, 11008, 4096}, {4096, 4096, 128},
  {128, 8192, 8192}}
-- Layers of a model (projections), by its hidden size: {N, K, name}.
local FAMILIES = {
  [4096] = {{4096, 4096, "q o"}, {1024, 4096, "k v"}, {6144, 4096, "qkv"},
            {14336, 4096, "gate up"}, {28672, 4096, "gate+up"},
            {4096, 14336, "down"}},
  [8192] = {{8192, 8192, "q o"}, {1024, 8192, "k v"}, {10240, 8192, "qkv"},
            {28672, 8192, "gate up"}, {57344, 8192, "gate+up"},
            {8192, 28672, "down"}},
}
local TOKENS = {1, 8, 16, 64, 128, 512, 2048, 8192}

-- Returns the list of the integers in a text. If the text has no integers,
-- returns `all`.
local function numbers(text, all)
  local list = {}
  for word in text:gmatch "%d+" do list[#list + 1] = math.tointeger(word) end
  return #list > 0 and list or all
end

local function shapes()
  local list = {}
  for _, hidden in ipairs(numbers(options.hidden)) do
    for _, s in ipairs(hidden == 0 and ODD or {}) do
      list[#list + 1] = {m = s[1], n = s[2], k = s[3], about = ""}
    end
    for _, s in ipairs(FAMILIES[hidden] or {}) do
      for _, m in ipairs(numbers(options.m, TOKENS)) do
        list[#list + 1] = {m = m, n = s[1], k = s[2], about = s[3]}
      end
    end
  end
  return list
end

-- Returns the bytes per second that a copy reads and writes.
local function bandwidth()
  local bytes = 1 << 30
  local from, to = dev:buffer("u8", bytes), dev:buffer("u8", bytes)
  local r = assert(gpu.bench({{name = "copy", launch = function()
    to:copy(from)
  end}}, {rounds = 3, warm_ms = 20, hot_ms = 20, cold = false}))
  from:close()
  to:close()
  return 2 * bytes / (r[1].hot.median * 1e-3)
end

---------------------------------------------------------------------------

-- Returns contestants whose successive launches use the sets of operands
-- cyclically. Each has its own D; `last` is the set that its last launch used.
local function contestants(s, sets)
  local D, list, last = {}, {}, {}
  local function result(name)
    D[name] = card.matrix(dev, D_TYPE, s.m * s.n)
    return D[name]
  end
  local function blas(make, name)
    local d, by_algorithm = result(name), {}
    for i, set in ipairs(sets) do
      local made = make {m = s.m, n = s.n, k = s.k, A = set.A, B = set.B, D = d}
      if not made then return nil end
      if name == "cuBLAS" then made = {made} end
      for j, run in ipairs(made) do
        by_algorithm[j] = by_algorithm[j] or {}
        by_algorithm[j][i] = run
      end
    end
    for j, runs in ipairs(by_algorithm) do
      local turns = #runs == #sets and worker.in_turn(runs) or nil
      by_algorithm[j] = turns
      if turns then last[turns] = runs[#runs] end
    end
    local part = operands.warmth(2.0 * s.m * s.n * s.k) / 4
    return #by_algorithm > 1 and gpu.best(by_algorithm, {
      warm_ms = part * options.warm, hot_ms = part * options.hot})
      or by_algorithm[1]
  end
  if AB ~= "e4m3" then
    list[1] = {name = "cuBLAS", launch = blas(gpu.cublas, "cuBLAS")}
  end
  local lt = blas(gpu.cublaslt, "cublasLt")
  if not lt then return nil end
  list[#list + 1] = {name = "cublasLt", launch = lt}
  local d = card.tensor(result "ops", s.m, s.n)
  local p, _, c, call, plan
  local runs = {}
  for i, set in ipairs(sets) do
    local A, B = card.tensor(set.A, s.m, s.k), card.tensor(set.B, s.n, s.k)
    if i == 1 then
      p, _, call = gemm.offers(A, B, {out = d})
      c = choose.choose(p)
      plan = plans.new(p, c, call)
    end
    call.A, call.B = A, B
    runs[i] = plan:prepare(call, {d})
  end
  list[#list + 1] = {name = "ops", launch = worker.in_turn(runs)}
  last[list[#list].launch] = runs[#runs]
  for _, x in ipairs(list) do x.last = last[x.launch] end
  s.choice = choose.name(c)
  return list, D
end

-- Returns a message about a result that differs too much, or nil.
local function wrong(D, k, name)
  -- the tolerance for truncated f32 sums of k products of N(0,1), in any order;
  -- sums of 8-bit floats are truncated at 13 fractional bits, in chunks of 128
  -- products
  local e, n = card.difference(dev, D[name], D.cuBLAS or D.cublasLt, 0.0079,
    AB == "e4m3" and k / 32 * 2^-12 * 5 * math.sqrt(128) or 1e-6 * k)
  if e ~= e or e >= 4e-3 or n > 0 then
    return ("WRONG, error %.1e in the norm, %d elements"):format(e, n)
  end
end

-- Measures a shape and returns the times of its contestants. If the shape
-- cannot be measured, returns nothing and sets s.wrong to the reason.
local function compete(s)
  local sets = {}
  for i = 1, operands.sets(BYTES * (s.m + s.n) * s.k) do
    sets[i] = {A = card.matrix(dev, AB, s.m * s.k, i),
               B = card.matrix(dev, AB, s.n * s.k, 1 << 40 | i)}
  end
  local list, D = contestants(s, sets)
  if not list then
    s.wrong, s.choice = "cublasLt has no algorithm", "-"
    return
  end
  for _, x in ipairs(list) do
    D[x.name]:memset(0xff)
    x.last:launch()
  end
  dev:sync()
  s.wrong = wrong(D, s.k, "ops")
  local first = #list + 1
  if s.m <= 8 then
    for _, read in ipairs(readers) do
      local runs = {}
      for i, set in ipairs(sets) do runs[i] = read(set.B, BYTES * s.n * s.k) end
      list[#list + 1] = {launch = worker.in_turn(runs)}
    end
  end
  local part = operands.warmth(2.0 * s.m * s.n * s.k)
  local r = assert(gpu.bench(list, {
    rounds = tonumber(options.rounds), warm_ms = part * options.warm,
    hot_ms = part * options.hot, cold = false,
    settle_ms = part == 1 and 2 * options.warm or nil}))
  s.lt, s.us = r.cublasLt.hot.median * 1e3, r.ops.hot.median * 1e3
  s.blas = r.cuBLAS and r.cuBLAS.hot.median * 1e3 or math.huge
  for i = first, #list do
    s.read = math.min(s.read or math.huge, r[i].hot.median * 1e3)
  end
  for _, b in pairs(D) do b:close() end
  for _, set in ipairs(sets) do
    set.A:close()
    set.B:close()
  end
end

---------------------------------------------------------------------------
-- constant = "B"
---------------------------------------------------------------------------

-- FAR bytes of operands do not fit in L2. LAUNCHES is the least number of
-- launches in one CUDA graph.
local FAR, LAUNCHES = 160 << 20, 32

-- Returns {launch = a CUDA graph in which the given launches alternate, each =
-- the number of launches in this graph}. The measured time of the graph is
-- divided by `each`.
local function graph(launches)
  local count = tiles.count(LAUNCHES, #launches) * #launches
  return {each = count, launch = cute.graph(function()
    for i = 1, count do launches[(i - 1) % #launches + 1]:launch() end
  end)}
end

-- Returns launches of ops.gemm that use these weights in turn, and the
-- configuration that ops.gemm chose.
local function product(s, A, weights, d, constant)
  local p, _, call = gemm.offers(A, weights[1].B, {out = d,
                                                   constant = constant})
  local c = choose.choose(p)
  local plan, list = plans.new(p, c, call), {}
  for i, w in ipairs(weights) do
    call.A, call.B = A, w.B
    list[i] = plan:prepare(call, {d})
  end
  s.choice = choose.name(c) .. (c.options.ahead and "" or " (waits)")
  return graph(list)
end

local function reading(weights, bytes, ahead)
  local out = {}
  for i, read in ipairs(card.readers(device, ahead)) do
    local list = {}
    for j, w in ipairs(weights) do list[j] = read(w.buffer, bytes) end
    out[i] = graph(list)
  end
  return out
end

local function constant(s, copied)
  local bytes, weights, buffers = BYTES * s.n * s.k, {}, {}
  for i = 1, math.max(2, tiles.count(FAR, bytes)) do
    local b = card.matrix(dev, AB, s.n * s.k, 1 << 40 | i)
    weights[i], buffers[i] = {buffer = b, B = card.tensor(b, s.n, s.k)}, b
  end
  local function own(dtype, columns, seed)
    buffers[#buffers + 1] = card.matrix(dev, dtype, s.m * columns, seed)
    return card.tensor(buffers[#buffers], s.m, columns), buffers[#buffers]
  end
  local A = own(AB, s.k, 7)
  local list, D = {}, {}
  for i, how in ipairs {false, "B"} do
    local d
    d, D[i] = own(D_TYPE, s.n)
    list[i] = product(s, A, weights, d, how or nil)
    D[i]:memset(0xff)
    list[i].launch:launch()
  end
  dev:sync()
  local _, others = card.difference(dev, D[2], D[1], 0, 0)
  for _, ahead in ipairs {false, true} do
    for _, x in ipairs(reading(weights, bytes, ahead)) do
      list[#list + 1] = x
    end
  end
  local part = operands.warmth(2.0 * s.m * s.n * s.k) / 4
  local r = assert(gpu.bench(list, {rounds = tonumber(options.rounds),
    warm_ms = part * options.warm, hot_ms = part * options.hot, cold = false}))
  local function us(i) return r[i].hot.median * 1e3 / list[i].each end
  local function least(from, to)
    local t = math.huge
    for i = from, to do t = math.min(t, us(i)) end
    return t
  end
  local bound = bytes / copied * 1e6
  local waiting = 2 + #card.readers(device)
  print(("%-16s %7.2f %7.2f  %.3f  %5.2f %5.2f %6.2f %6.2f  %s%s"):format(
    ("%dx%dx%d"):format(s.m, s.n, s.k), us(1), us(2), us(1) / us(2),
    bound / us(1), bound / us(2), bound / least(3, waiting),
    bound / least(waiting + 1, #list), s.choice,
    others == 0 and "" or "  WRONG: other bits"))
  for _, b in ipairs(buffers) do b:close() end
end

-- Prints the geometric mean and the least of the ratios of a list of measured
-- shapes.
local function summary(label, list)
  if #list == 0 then return end
  local sum, least = 0, list[1]
  for _, s in ipairs(list) do
    sum = sum + math.log(s.ratio)
    if s.ratio < least.ratio then least = s end
  end
  print(("%-16s geometric mean %.3f, least %.3f (%dx%dx%d), %d shapes"):format(
    label, math.exp(sum / #list), least.ratio, least.m, least.n, least.k,
    #list))
end

local copied = bandwidth()
print(("%s; a copy: %.2f TB/s; %s"):format(device.name, copied * 1e-12,
                                           card.state()))
if options.constant ~= "" then
  print "bound: shares of it that ops, with constant = \"B\", and reading have"
  print(("%-16s %7s %7s  %5s  %5s %5s %6s %6s  %s"):format("", "ops, us",
    "B, us", "ratio", "ops", "B", "reads", "ahead", "choice"))
  for _, s in ipairs(shapes()) do
    if s.m <= 64 and s.about ~= "" then constant(s, copied) end
  end
  return
end
print(("%-20s %-8s %9s %9s %9s  %5s %6s %5s %5s  %s"):format("", "", "cuBLAS",
  "Lt", "ops, us", "ratio", "bound", "read", "blas", "choice"))
local file = options.record ~= "" and assert(io.open(options.record, "w"))
if file then
  file:write(("# %s, copy %.3f TB/s\n"):format(device.name, copied * 1e-12))
end
local all, many, few, bound = {}, {}, {}, {}
for _, s in ipairs(shapes()) do
  compete(s)
  local name = ("%dx%dx%d"):format(s.m, s.n, s.k)
  if s.wrong then
    print(("%-20s %-8s %s  %s"):format(name, s.about, s.wrong, s.choice))
  else
    s.ratio = math.min(s.blas, s.lt) / s.us
    s.bound = 1.0 * BYTES * s.n * s.k / copied / (s.us * 1e-6)
    local function share(us) return s.read and ("%.3f"):format(s.read / us) end
    print(("%-20s %-8s %9.2f %9.2f %9.2f  %.3f %6.3f %5s %5s  %s"):format(name,
      s.about, s.blas, s.lt, s.us, s.ratio, s.bound, share(s.us) or "",
      share(math.min(s.blas, s.lt)) or "", s.choice))
    table.insert(all, s)
    table.insert(s.m >= 128 and many or few, s)
    if s.m <= 8 then table.insert(bound, s) end
  end
  io.stdout:flush()
  if file and s.us then
    file:write(("%s\t%s\t%.3f\t%.3f\t%.3f\t%s\n"):format(name, s.about, s.blas,
      s.lt, s.us, s.wrong and "wrong" or s.choice))
    file:flush()
  end
end
if file then file:close() end
summary("all", all)
summary("M >= 128", many)
summary("M < 128", few)
table.sort(bound, function(a, b) return a.bound < b.bound end)
local least = bound[1]
if least then
  print(("M <= 8: at least %.3f of the bound (%dx%dx%d)"):format(least.bound,
    least.m, least.n, least.k))
  table.sort(bound, function(a, b) return a.read / a.us < b.read / b.us end)
  least = bound[1]
  print(("and %.3f of what kernels take that only read (%dx%dx%d)"):format(
    least.read / least.us, least.m, least.n, least.k))
end
-- SPDX-License-Identifier: MIT
