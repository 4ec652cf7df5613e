-- Measures operations on whole tensors (ops.elementwise, convert, transpose,
-- reduce) on a GPU. One process compares each with the driver's copy of as many
-- bytes:
--
--    cutelua spec/bench/ops_memory.lua [--only turn] [--mib 1024] [--rounds 5]
--
-- Each line has the median TB/s of the bytes that must move. It also has the
-- median, over the rounds, of the ratio of the copy's time to the operation's,
-- and the quartiles of that ratio. `mib` is half of the bytes that an operation
-- reads and writes. If a copy's speed is below 0.97 of the fastest copy so far,
-- its case is measured again: sometimes a GPU's memory is slow for some tenths
-- of a second, for all kernels. The specs compare results with the simulator's
-- on small problems. The last lines compare the host's time of repeated calls
-- with a prepared launch.
local card = require "spec.card"
local cute = require "cute"
local gpu = require "cute.gpu"
local measure = require "spec.measure"
local ops = cute.ops

local device = measure.gpu_device()
if not device then return end
local options = card.options {rounds = "5", only = "", mib = "1024",
                              warm = "20", hot = "20", host = "200"}
local BYTES = tonumber(options.mib) * (1 << 20) // 1 | 0

-- Returns a tensor of normally distributed numbers in GPU memory.
local function numbers(shape, dtype, seed)
  local n = cute.product(shape)
  local b = card.matrix(device.dev, dtype, n, seed)
  local t = card.tensor(b, 1, n)
  return cute.make_tensor(t.iterator, cute.make_layout(shape,
                                                       cute.LayoutRight))
end

-- Returns the extents of a matrix with `columns` columns and about `bytes`
-- bytes. The number of rows is a multiple of 8 if there are more than 8.
local function matrix(bytes, bits, columns)
  local rows = bytes * 8 // bits // columns
  return {rows > 8 and rows // 8 * 8 or rows, columns}
end

local function add(x, y) return x + y end

local CASES = {}
local function case(name, moved, make)
  CASES[#CASES + 1] = {name = name, moved = moved, make = make}
end

for _, d in ipairs {"f32", "bf16"} do
  case("add " .. d, 3, function(bytes)
    local shape = matrix(bytes, cute[d].bits, 1024)
    local X, Y = numbers(shape, d, 1), numbers(shape, d, 2)
    local Z = cute.empty(shape, d, {device = "gpu"})
    return function() ops.elementwise(add, X, Y, {out = Z}) end
  end)
  case("add row " .. d, 2, function(bytes)
    local shape = matrix(bytes, cute[d].bits, 4096)
    local X, b = numbers(shape, d, 1), numbers({4096}, "f32", 2)
    local Z = cute.empty(shape, d, {device = "gpu"})
    return function() ops.elementwise(add, X, b, {out = Z}) end
  end)
end
for _, c in ipairs {{"gelu", "bf16"}, {"gelu", "f16"}, {"gelu", "f32"},
                    {"gelu_tanh", "bf16"}, {"silu", "bf16"}} do
  local f, d = table.unpack(c)
  case(f .. " " .. d, 2, function(bytes)
    local X = numbers(matrix(bytes, cute[d].bits, 1024), d, 1)
    local Z = cute.empty(X.shape, d, {device = "gpu"})
    return function() ops.elementwise(ops[f], X, {out = Z}) end
  end)
end
for _, c in ipairs {{"f32", "bf16"}, {"bf16", "f32"}, {"f32", "e4m3"},
                    {"e4m3", "f32"}, {"bf16", "e4m3"}, {"e4m3", "bf16"},
                    {"f16", "e5m2"}, {"e5m2", "f16"}, {"e4m3", "e5m2"}} do
  local from, to = cute[c[1]], cute[c[2]]
  case(("convert %s to %s"):format(c[1], c[2]), 1 + to.bits / from.bits,
       function(bytes)
    local X = numbers(matrix(bytes, from.bits, 1024), c[1], 1)
    local Z = cute.empty(X.shape, to, {device = "gpu"})
    return function() ops.copy(X, Z) end
  end)
end
for _, c in ipairs {{"bf16", 16384}, {"bf16", 32768}, {"bf16", 4096},
                    {"bf16", 20008}, {"bf16", 20001}, {"bf16", 20001, 1},
                    {"f32", 16384}, {"f32", 4096}, {"f32", 20004},
                    {"f32", 20001, 1}, {"i8", 16384}, {"i8", 20001},
                    {"f64", 8192}} do
  local d, n, more = table.unpack(c)
  case(("turn %s, %d columns%s"):format(d, n, more and ", odd rows" or ""), 2,
       function(bytes)
    local shape = matrix(bytes, cute[d].bits, n)
    local X = numbers({shape[1] + (more or 0), n}, d, 1)
    local Z = cute.empty({n, X.shape[1]}, d, {device = "gpu"})
    return function() ops.transpose(X, {out = Z}) end
  end)
end
case("turn f32, batches of 1024 x 1024", 2, function(bytes)
  local X = numbers({bytes // (4 << 20), 1024, 1024}, "f32", 1)
  local Z = cute.empty(X.shape, "f32", {device = "gpu"})
  return function() ops.transpose(X, {out = Z}) end
end)
for _, d in ipairs {"f32", "bf16"} do
  for _, c in ipairs {{"all", 1024}, {"row", 128}, {"row", 1024}, {"row", 8192},
                      {"row", 1 << 20}, {"column", 128}, {"column", 1024},
                      {"column", 8192}, {"column", 1 << 20}} do
    local by, n = table.unpack(c)
    case(("sum %s, %s of %d"):format(d, by, n), 1, function(bytes)
      local X = numbers(matrix(bytes, cute[d].bits, n), d, 1)
      local Y = cute.empty(by == "all" and {1} or {by == "row" and X.shape[1]
                           or n}, cute.f32, {device = "gpu"})
      return function() ops.reduce(X, "sum", {by = by, out = Y}) end
    end)
  end
  for _, c in ipairs {
    {"argmax", "row", 4096}, {"argmax", "row", 128}, {"argmax", "all", 4096},
    {"argmax", "column", 4096}, {"norm", "row", 4096}, {"norm", "all", 4096},
    {"norm", "column", 4096}, {"max", "row", 4096}, {"max", "all", 4096},
    {"max", "column", 4096}} do
    local op, by, n = table.unpack(c)
    case(("%s %s, %s of %d"):format(op, d, by, n), 1, function(bytes)
      local X = numbers(matrix(bytes, cute[d].bits, n), d, 1)
      local Y = cute.empty(by == "all" and {1} or {by == "row" and X.shape[1]
        or n}, op == "argmax" and cute.i32 or cute.f32, {device = "gpu"})
      return function() ops.reduce(X, op, {by = by, out = Y}) end
    end)
  end
end

-- Returns two functions: the first launches the driver's copy of bytes / 2
-- bytes, which reads half of `bytes` and writes the other half; the second
-- frees the buffers.
local function driver(bytes)
  local from = assert(device.dev:buffer("u8", bytes // 2))
  local to = assert(device.dev:buffer("u8", bytes // 2))
  from:memset(1)
  return function() to:copy(from) end, function()
    from:close()
    to:close()
  end
end

-- Times our launch and the driver's copy alternately. Returns the statistics
-- (gpu.stats), over all rounds, of three numbers: our milliseconds, the copy's
-- milliseconds, and the copy's time divided by ours.
local function rounds(ours, copy)
  local a, b, ratio = {}, {}, {}
  for i = 1, tonumber(options.rounds) do
    local list = {{name = "ours", launch = ours},
                  {name = "copy", launch = copy}}
    if i % 2 == 0 then list[1], list[2] = list[2], list[1] end
    local r = assert(gpu.bench(list, {rounds = 1, cold = false,
      warm_ms = tonumber(options.warm), hot_ms = tonumber(options.hot),
      progress = false}))
    a[i], b[i] = r.ours.hot.median, r.copy.hot.median
    ratio[i] = b[i] / a[i]
  end
  return gpu.stats(a), gpu.stats(b), gpu.stats(ratio)
end

local fastest = math.huge  -- the fastest copy so far, in ms per byte
print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
print(("%-34s %8s %8s %8s %8s"):format("", "TB/s", "copy", "ratio", "spread"))
for _, c in ipairs(CASES) do
  if c.name:find(options.only, 1, true) then
    local each = math.tointeger(2 * BYTES // c.moved // (1 << 20) * (1 << 20)
                                // 1)
    local moved = each * c.moved
    local copy, close = driver(math.tointeger(moved // 1))
    local launch = c.make(each)
    local ours, than, ratio = rounds(launch, copy)
    if than.median > fastest / 0.97 * moved then
      ours, than, ratio = rounds(launch, copy)
    end
    fastest = math.min(fastest, than.median / moved)
    print(("%-34s %8.3f %8.3f %8.3f %6.1f %%"):format(c.name,
      moved / ours.median * 1e-9, moved / than.median * 1e-9, ratio.median,
      100 * (ratio.q3 - ratio.q1) / ratio.median))
    close()
    collectgarbage()
    collectgarbage()
    gpu.trim()
  end
end

-- Compares the host's time of repeated calls with that of a prepared launch.
local calls = tonumber(options.host)
if calls > 0 then
  local X = cute.zeros({64, 64}, cute.bf16, {device = "gpu"})
  local out = cute.zeros({64, 64}, cute.bf16, {device = "gpu"})
  local sums = cute.zeros({64}, cute.f32, {device = "gpu"})
  local bias, factor = cute.zeros({64}, cute.f32, {device = "gpu"}), 2.0
  local k = cute.kernel("plain", function(x, y) y[0] = x[0] end)
  local ready = cute.compile(k, X, out, {grid = 1, block = 32})
  local function f(x, b) return x * factor + b end
  local t = measure.table "Host's time of a call"
  for _, c in ipairs {
    {"a launch that is ready", function() ready(X, out) end},
    {"elementwise", function() ops.elementwise(f, X, bias, {out = out}) end},
    {"elementwise, new result", function() ops.elementwise(f, X, bias) end},
    {"copy", function() ops.copy(X, out) end},
    {"transpose", function() ops.transpose(X, {out = out}) end},
    {"convert", function() ops.convert(X, cute.f32) end},
    {"reduce", function() ops.reduce(X, "sum", {by = "row", out = sums}) end},
  } do
    t:add(c[1], measure.host_us(device, function(n)
      for _ = 1, n do c[2]() end
    end, calls), "us")
  end
  t:print()
end
print("after: " .. card.state())
-- SPDX-License-Identifier: MIT
