--- The GPU: availability, properties, and launch times.
--
-- Buffers, kernels and cuBLAS products are methods of the device object:
--
--     local dev = assert(gpu.open())
--     local a = dev:buffer(host)              -- or dev:buffer("bf16", n)
--     local f = dev:load(compiled.cubin, "gemm")
--     local run = f:prepare {args = {a, b, c}, grid = {8, 8}, block = 128}
--     run:launch()
--     dev:sync()
--
-- Queries (for a GPU, a buffer, a product, a time) return nil, message if there
-- is no result. Commands (launch, launch_n, copies, memset, sync, record) raise
-- an error if the driver fails, and name the kernels that may be at fault.
-- @module cute.gpu

local sign = require "cute.lang.sign"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"

local gpu = {}

-- Calls a method of the device object; returns nil, message if there is no GPU.
local function ask(ordinal, method, ...)
  local dev, why = core.gpu_open(ordinal)
  if not dev then return nil, why end
  return dev[method](dev, ...)
end

--- Returns the device object of a GPU.
---@param ordinal integer|nil 0 is the first
---@return table|nil device
---@return string|nil message
function gpu.open(ordinal)
  return core.gpu_open(ordinal)
end

--- Reports whether a GPU can be used.
---@param ordinal integer|nil
---@return boolean
---@return string|nil reason
function gpu.available(ordinal)
  local dev, why = core.gpu_open(ordinal)
  if not dev then return false, why end
  return true
end

--- Returns name, arch ("sm_90a"), sms, memory, smem, l2, cuda (the driver's
-- version).
---@param ordinal integer|nil
---@return table|nil
---@return string|nil reason
function gpu.info(ordinal)
  return ask(ordinal, "info")
end

--- Returns memory statistics in bytes: used (tensors and buffers), peak, pool
-- (allocated from the driver: used and kept for reuse), free and total (the
-- driver's). hits and misses count blocks from the pool and from the driver.
---@param ordinal integer|nil
---@return table|nil
---@return string|nil reason
function gpu.memory(ordinal)
  return ask(ordinal, "memory")
end

--- Collects garbage and returns unused memory of the pool to the driver.
---@param ordinal integer|nil
---@return integer|nil bytes
---@return string|nil reason
function gpu.trim(ordinal)
  for _, f in ipairs(devices.trims) do f() end
  return ask(ordinal, "trim")
end

local clusters = {}  -- of each GPU, by size: the driver's answers

local function ask_clusters(dev, size)
  local info = dev:info()
  local made, why = require "cute.jit".compile(
    'extern "C" __global__ void empty() {}',
    {arch = info.arch, name = "empty"})
  if not made then return nil, why end
  local f, run
  f, why = dev:load(made.cubin, "empty")
  if not f then return nil, why end
  run, why = f:prepare {grid = size, block = 128, cluster = size,
                        smem = info.smem}
  if not run then return nil, why end
  return run:max_active_clusters()
end

--- Returns the number of clusters that a GPU runs at once, with one block on
-- each multiprocessor. The driver's answer is cached.
---@param size integer blocks in a cluster
---@param ordinal integer|nil
---@return integer|nil
---@return string|nil reason
function gpu.clusters(size, ordinal)
  ordinal = ordinal or 0
  local dev, why = core.gpu_open(ordinal)
  if not dev then return nil, why end
  local known = clusters[ordinal] or {}
  clusters[ordinal] = known
  if not known[size] then
    known[size], why = ask_clusters(dev, size)
    if not known[size] then return nil, why end
  end
  return known[size]
end

-- ---- cuBLAS ----

--- Prepares a product by cuBLAS's default algorithm: D[m,n] = A[m,k] B[n,k],
-- with f32 accumulators.
--
-- layout: "tn" (the default), "nt", "nn" or "tt", in BLAS notation: A (M,K) has
-- K contiguous with t and M with n, B (N,K) has K contiguous with n and N with
-- t. D has N contiguous, or M with m_major = true. The types are those of the
-- buffers: floats of 16 to 64 bits, or i8 with D of i32 (exact). tf32 = true
-- allows f32 operands to be rounded. 8-bit floats need cublasLt. batches = 3 is
-- a batch of products (cublasGemmStridedBatchedEx) with matrices step_A, step_B
-- and step_D elements apart: 0 shares one matrix; absent, they are dense.
---@param t table m, n, k, A, B, D, layout, m_major, tf32, batches, ordinal; for
-- floats alpha = 1, beta = 0: D = alpha A B^T + beta D
---@return table|nil product with :launch([stream]) and :launch_n(n [, stream])
---@return string|nil message
function gpu.cublas(t)
  return ask(t.ordinal, "cublas", t)
end

--- Prepares products by cublasLt: a list, one for each algorithm that its
-- heuristics propose, most promising first.
--
-- It also takes e4m3 and e5m2 (not e5m2 with e5m2), in "tn" with extents that
-- are multiples of 16. scale_A and scale_B are buffers of one f32 that scale A
-- and B. Accumulators are f32 unless fast_accum = true leaves them to the
-- tensor cores, which keep fewer bits. bias, of D's type, is added to each
-- column of a D with N contiguous; then epilogue = "relu" or "gelu"
-- (cublasLt's, by tanh) is applied.
---@param t table as for gpu.cublas; scale_A, scale_B, fast_accum = false, bias,
-- epilogue, algos = 32, workspace = 64 MiB
---@return table[]|nil products nil if it has no algorithm
---@return string|nil message
function gpu.cublaslt(t)
  return ask(t.ordinal, "cublaslt", t)
end

--- Returns the first proposal of cublasLt's heuristics, which cublasGemmEx
-- uses: {algorithm =, tile =, split = parts of K, reduction =, workspace =
-- bytes}, numbered as in cublasLt.
---@param t table as for gpu.cublaslt, but A, B and D are types; workspace = 32
-- MiB, as in cublasGemmEx
---@return table|nil
---@return string|nil message
function gpu.cublaslt_first(t)
  return ask(t.ordinal, "cublaslt_first", t)
end

-- ---- timing ----

local function must(value, message)
  if value == nil then report.raise(message) end
  return value
end

-- Checks that entry i of the timed list can be launched.
local function check_launchable(what, i, x)
  local ok = type(x) == "function"
    or (type(x) == "table" or type(x) == "userdata") and x.launch ~= nil
  if not ok then
    core.fail("bad-argument", ("%s: entry %d is %s: a function or an object "
      .. "with launch is needed"):format(what, i, core.show(x)))
  end
end

-- Returns a function that launches a contestant n times: an object with launch
-- (and launch_n), or a function called once for each launch.
local function runner(c)
  local x = c.launch
  if type(x) ~= "function" and x.launch_n then
    return function(n) x:launch_n(n) end
  end
  return function(n)
    for _ = 1, n do
      local ok, message
      if type(x) == "function" then ok, message = x()
      else ok, message = x:launch() end
      if ok == nil and message then report.raise(message) end
    end
  end
end

---@class cute.Timer
local Timer = {}
Timer.__index = Timer

local function new_timer(dev)
  return setmetatable({dev = dev, from = must(dev:event()),
                       to = must(dev:event())}, Timer)
end

-- Returns the milliseconds of n launches back to back, on the GPU's clock.
function Timer:time(run, n)
  self.from:record()
  run(n)
  self.to:record()
  self.to:sync()
  return self.from:elapsed(self.to)
end

-- Runs for at least `ms`; returns the time of one launch at the end.
function Timer:warm(run, ms)
  local total, n, each = 0, 1
  repeat
    local t = self:time(run, n)
    total = total + t
    each = math.max(t / n, 1e-4)
    n = math.max(1, math.ceil(math.min(ms - total, ms / 4) / each))
  until total >= ms
  return each
end

-- Times one launch with none of its data in L2.
function Timer:cold(run, flush)
  flush:memset(0)
  return self:time(run, 1)
end

local function quantile(sorted, q)
  local at = 1 + (#sorted - 1) * q
  local lo = math.floor(at)
  local hi = math.min(lo + 1, #sorted)
  return sorted[lo] + (sorted[hi] - sorted[lo]) * (at - lo)
end

--- Returns median and spread of a list of numbers.
---@param list number[]
---@return table {median =, min =, max =, q1 =, q3 =, n =}
function gpu.stats(list)
  for i = 1, math.max(#list, 1) do
    if type(list[i]) ~= "number" then
      core.fail("bad-argument", ("stats: a list of numbers is needed, its "
        .. "entry %d is %s"):format(i, core.show(list[i])))
    end
  end
  local s = table.move(list, 1, #list, 1, {})
  table.sort(s)
  return {median = quantile(s, 0.5), q1 = quantile(s, 0.25),
          q3 = quantile(s, 0.75), min = s[1], max = s[#s], n = #s}
end

--- Returns the order of the contestants in a round. It reverses and rotates
-- from round to round, so that no contestant always follows the same neighbour.
---@param n integer contestants, at most 4096
---@param round integer counted from 1
---@return integer[]
local function order(n, round)
  if n < 0 or n > 4096 then
    core.fail("limit", ("%d contestants; at most 4096"):format(n))
  end
  local list, turn = {}, (round - 1) // 2
  for i = 1, n do list[i] = (i - 1 + turn) % n + 1 end
  if round % 2 == 0 then
    for i = 1, n // 2 do list[i], list[n + 1 - i] = list[n + 1 - i], list[i] end
  end
  return list
end
gpu.bench_order = order

local function progress(opts)
  if opts.progress == false or not core.isatty(2) then
    return function() end
  end
  return function(text)
    io.stderr:write("\r\27[K", text or "")
    io.stderr:flush()
  end
end

local function bench(dev, list, opts)
  local timer = new_timer(dev)
  local flush
  if opts.cold ~= false then
    flush = must(timer.dev:buffer("u8", opts.flush_bytes or 256 << 20))
  end
  local rounds, show = opts.rounds or 9, progress(opts)
  local runs, hot, cold = {}, {}, {}
  for i, c in ipairs(list) do runs[i], hot[i], cold[i] = runner(c), {}, {} end
  if opts.settle_ms and runs[1] then timer:warm(runs[1], opts.settle_ms) end
  for round = 1, rounds do
    for _, i in ipairs(order(#list, round)) do
      show(("bench %d/%d %s"):format(round, rounds, list[i].name))
      local each = timer:warm(runs[i], opts.warm_ms or 60)
      local n = math.max(1, math.ceil((opts.hot_ms or 50) / each))
      table.insert(hot[i], timer:time(runs[i], n) / n)
      local samples = {}
      for s = 1, flush and (opts.cold_launches or 3) or 0 do
        samples[s] = timer:cold(runs[i], flush)
      end
      if flush then table.insert(cold[i], gpu.stats(samples).median) end
    end
  end
  show()
  local results = {}
  for i, c in ipairs(list) do
    local r = {name = c.name, hot = gpu.stats(hot[i]),
               cold = flush and gpu.stats(cold[i]) or nil}
    local flops = c.flops or opts.flops
    if flops then
      r.hot.tflops = flops / r.hot.median * 1e-9
      if r.cold then r.cold.tflops = flops / r.cold.median * 1e-9 end
    end
    results[i] = r
    if c.name then results[c.name] = r end
  end
  if flush then flush:close() end
  return results
end

--- Times contestants against each other in one process.
--
-- Each contestant warms up just before it is measured, since a card at its
-- power limit would otherwise still run at its neighbour's clock. Contestants
-- are interleaved; the order reverses and rotates over the rounds. hot: back to
-- back; cold: one launch after L2 was overwritten. Compare only results of one
-- call.
---@param list table[] {name =, launch = object or function, flops = n|nil}
---@param opts table|nil rounds = 9, warm_ms = 60, hot_ms = 50, cold = true,
-- settle_ms = 0 (before the first round: a cool card is fast until it reaches
-- its power limit, which favours the first contestant when there are few
-- rounds), cold_launches = 3 (their median is the round's result), flush_bytes
-- = 256 MiB, flops (adds .tflops), progress = false
---@return table|nil results in the list's order, also by name: name, hot and
-- cold with median, min, max, q1, q3 in milliseconds; nil without a GPU
---@return string|nil message
function gpu.bench(list, opts)
  core.outside()
  opts = opts or {}
  for i, c in ipairs(list) do
    check_launchable("gpu.bench", i, type(c) == "table" and c.launch or c)
  end
  local dev, message = core.gpu_open(opts.ordinal)
  if not dev then return nil, message end
  return bench(dev, list, opts)
end

local function best(dev, list, opts)
  local timer = new_timer(dev)
  local at, least
  for i, object in ipairs(list) do
    local run = runner {launch = object}
    local each = timer:warm(run, opts.warm_ms or 20)
    local n = math.max(1, math.ceil((opts.hot_ms or 20) / each))
    local t = timer:time(run, n) / n
    if not least or t < least then at, least = i, t end
  end
  return list[at], at, least
end

--- Returns the fastest of several launchable objects, each warmed up first.
---@param list table[] with :launch_n, such as the list from gpu.cublaslt
---@param opts table|nil warm_ms = 20, hot_ms = 20
---@return table|nil object nil without a GPU
---@return integer|string index or message
---@return number|nil milliseconds
function gpu.best(list, opts)
  core.outside()
  opts = opts or {}
  if #list == 0 then
    core.fail("bad-argument", "gpu.best: nothing to choose from: the list is "
      .. "empty")
  end
  for i, object in ipairs(list) do
    check_launchable("gpu.best", i, object)
  end
  local dev, message = core.gpu_open(opts.ordinal)
  if not dev then return nil, message end
  return best(dev, list, opts)
end

-- The options of all products by cuBLAS.
local PRODUCT = [[{A B D algos alpha batches beta bias epilogue fast_accum k
  layout m m_major n ordinal scale_A scale_B step_A step_B step_D tf32
  workspace}]]

return sign.public("gpu.", gpu, ([[
  open(ordinal?: integer) available(ordinal?: integer) info(ordinal?: integer)
  memory(ordinal?: integer) trim(ordinal?: integer)
  clusters(size: integer, ordinal?: integer)
  cublas(options: PRODUCT) cublaslt(options: PRODUCT)
  cublaslt_first(options: PRODUCT) stats(list: table)
  bench(list: table, opts?: {cold cold_launches flops flush_bytes hot_ms ordinal
    progress rounds settle_ms warm_ms})
  best(list: table, opts?: {hot_ms ordinal warm_ms})
  bench_order(n: integer, round: integer)
]]):gsub("PRODUCT", PRODUCT))
