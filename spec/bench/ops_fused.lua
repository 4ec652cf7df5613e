-- Measures ops.gemm with epilogues on a GPU, for products of bf16 as in neural
-- networks. One process compares it with cuBLAS and cublasLt:
--
--    cutelua spec/bench/ops_fused.lua [--only 4096x4096x4096] [--rounds 5]
--      [--row gelu]
--
-- Epilogues that cublasLt fuses (bias, relu, gelu) are compared with its
-- fastest heuristic algorithm. The epilogue beta C is compared with cuBLAS's
-- own. Other epilogues are compared with cuBLAS followed by one elementwise
-- kernel, or by one for each operation. Operands rotate among sets that do not
-- fit into L2 together; the contestants of one row alternate.
--
-- `most` is the highest ratio that our kernel could reach, with an epilogue
-- that takes no time: the library's time with the epilogue, divided by the
-- shorter time of the product alone (ours or cuBLAS's). `share` is our ratio
-- divided by `most`.
local card = require "spec.card"
local core = require "cute.core"
local cute = require "cute"
local gpu = require "cute.gpu"
local measure = require "spec.measure"
local ops = cute.ops

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

local options = card.options {rounds = "5", only = "", row = "", warm = "60",
                              hot = "50"}

local SHAPES = {
  {4096, 4096, 4096}, {8192, 8192, 8192},
  {512, 4096, 4096}, {512, 14336, 4096}, {512, 4096, 14336},
  {2048, 4096, 4096}, {2048, 14336, 4096}, {2048, 4096, 14336},
  {8192, 4096, 4096}, {8192, 14336, 4096}, {8192, 4096, 14336},
}

local L2 = 50 << 20

---------------------------------------------------------------------------
-- Operands
---------------------------------------------------------------------------

local buffer = core.param_memory

-- Returns a list of sets of operands. Fields of a set: A and B, the factors;
-- bias; R, the residual; D and E, M x N outputs; half and other, outputs with
-- half as many columns.
local function sets_of(m, n, k)
  local bytes = 2 * (m * k + n * k + 2 * m * n)
  local list = {}
  for i = 1, math.max(1, math.min(8, (3 * L2 + bytes - 1) // bytes)) do
    local function normal(shape, at)
      return card.normal(shape, "bf16", (8 * i + at) << 36)
    end
    local function empty(...)
      return cute.empty({...}, cute.bf16, {device = "gpu"})
    end
    list[i] = {A = normal({m, k}, 0), B = normal({n, k}, 1),
               bias = normal({n}, 2), R = normal({m, n}, 3), D = empty(m, n),
               E = empty(m, n), half = empty(m, n // 2),
               other = empty(m, n // 2)}
  end
  return list
end

-- Returns a function that launches a contestant. Each call uses the next set of
-- operands. f(set) returns the function that launches the contestant with this
-- set.
local function in_turn(sets, f)
  local runs, at = {}, 0
  for i, s in ipairs(sets) do runs[i] = f(s) end
  return function()
    at = at % #runs + 1
    runs[at]()
  end
end

---------------------------------------------------------------------------
-- Rows
---------------------------------------------------------------------------

-- Returns the argument of gpu.cublas for D = A B^T of the set s of operands.
-- The fields of `more` are added to it or replace its fields.
local function product(s, more)
  local t = {m = s.A.shape[1], n = s.B.shape[1], k = s.A.shape[2],
             A = buffer(s.A), B = buffer(s.B), D = buffer(s.D)}
  for name, v in pairs(more or {}) do t[name] = v end
  return t
end

local function cublas(s, more)
  local x = assert(gpu.cublas(product(s, more)))
  return function() x:launch() end
end

-- Returns a function that maps a set of operands to a launch of cublasLt. All
-- sets use the algorithm that is fastest for the first set, among those that
-- cublasLt's heuristic proposes.
local function fastest(more)
  local best
  return function(s)
    local list = assert(gpu.cublaslt(product(s, more(s))))
    if not best then best = select(2, gpu.best(list)) end
    local x = list[best]
    return function() x:launch() end
  end
end

local function halves(s)
  local m, n = s.D.shape[1], s.D.shape[2] // 2
  local function half(first)
    return cute.make_tensor(s.D.iterator + first,
                            cute.make_layout({m, n}, {2 * n, 1}))
  end
  return half(0), half(n)
end

local function f32(x) return x:to(cute.f32) end
local function add(x, y) return f32(x) + f32(y) end
local function silu(x) return ops.silu(f32(x)) end

-- Returns a function that launches cuBLAS's product of set s, then calls
-- ops.elementwise with the other arguments.
local function behind(s, ...)
  local run, call = cublas(s), table.pack(...)
  return function()
    run()
    ops.elementwise(table.unpack(call, 1, call.n))
  end
end

local function silu_residual(s)
  local function f(acc, at)
    return ops.silu(acc + at:col(s.bias)) + at:tile(s.R)
  end
  return function() ops.gemm(s.A, s.B, {out = s.E, epilogue = f}) end
end

local function swiglu(s)
  local function f(gate, up) return ops.silu(gate) * up end
  return function()
    ops.gemm(s.A, s.B, {out = s.other, epilogue = f, gated = true})
  end
end

local function plain(s)
  return function() ops.gemm(s.A, s.B, {out = s.E}) end
end

-- Each row is {name of the epilogue, name of the other library, its
-- contestant, our contestant}. A contestant is {make, field}: make(set)
-- returns the launch for a set of operands, which stores its result in that
-- field of the set.
local ROWS = {
  {"plain", "cublasLt", {fastest(function() return {} end), "D"},
   {plain, "E"}},
  {"plain", "cuBLAS", {cublas, "D"},
   {plain, "E"}},
  {"gelu", "cublasLt", {fastest(function(s)
      return {bias = buffer(s.bias), epilogue = "gelu"}
    end), "D"},
   {function(s)
      local function f(acc, at) return ops.gelu(acc + at:col(s.bias)) end
      return function() ops.gemm(s.A, s.B, {out = s.E, epilogue = f}) end
    end, "E"}},
  {"gelu_tanh", "cublasLt", {fastest(function(s)
      return {bias = buffer(s.bias), epilogue = "gelu"}
    end), "D"},
   {function(s)
      local function f(acc, at) return ops.gelu_tanh(acc + at:col(s.bias)) end
      return function() ops.gemm(s.A, s.B, {out = s.E, epilogue = f}) end
    end, "E"}},
  {"relu", "cublasLt", {fastest(function(s)
      return {bias = buffer(s.bias), epilogue = "relu"}
    end), "D"},
   {function(s)
      local function f(acc, at) return ops.relu(acc + at:col(s.bias)) end
      return function() ops.gemm(s.A, s.B, {out = s.E, epilogue = f}) end
    end, "E"}},
  {"beta C", "cuBLAS", {function(s) return cublas(s, {beta = 1}) end, "D",
                        adds = true},
   {function(s)
      return function() ops.gemm(s.A, s.B, {out = s.E, accumulate = true}) end
    end, "E"}},
  {"silu + R", "cuBLAS + 1", {function(s)
      return behind(s, function(x, b, r)
        return ops.silu(f32(x) + f32(b)) + f32(r)
      end, s.D, s.bias, s.R, {out = s.D})
    end, "D"}, {silu_residual, "E"}},
  {"silu + R", "cuBLAS + 3", {function(s)
      local run = behind(s, add, s.D, s.bias, {out = s.D})
      return function()
        run()
        ops.elementwise(silu, s.D, {out = s.D})
        ops.elementwise(add, s.D, s.R, {out = s.D})
      end
    end, "D"}, {silu_residual, "E"}},
  {"swiglu", "cuBLAS + 1", {function(s)
      local gate, up = halves(s)
      return behind(s, function(x, y) return ops.silu(f32(x)) * f32(y) end,
                    gate, up, {out = s.half})
    end, "half"}, {swiglu, "other"}},
  {"swiglu", "cuBLAS + 2", {function(s)
      local gate, up = halves(s)
      local run = behind(s, silu, gate, {out = s.half})
      return function()
        run()
        ops.elementwise(function(x, y) return f32(x) * f32(y) end, s.half, up,
                        {out = s.half})
      end
    end, "half"}, {swiglu, "other"}},
}

-- The unfused path rounds sums to bf16 before the elementwise kernel and uses
-- another approximation of gelu; the tolerance covers both.
local function error_of(s, row)
  local theirs, mine = row[3][2], row[4][2]
  return card.difference(dev, buffer(s[mine]), buffer(s[theirs]), 0.03,
                         1e-5 * s.A.shape[2])
end

local function compete(shape, sets, row)
  local name, rival = row[1], row[2]
  local theirs, mine = in_turn(sets, row[3][1]), in_turn(sets, row[4][1])
  for _, s in ipairs(sets) do
    -- This row's contestants add to their result, so it starts as zeros.
    if row[3].adds then
      buffer(s.D):memset(0)
      buffer(s.E):memset(0)
    end
    theirs()
    mine()
  end
  dev:sync()
  local norm, wrong = error_of(sets[#sets], row)
  local label = ("%dx%dx%d %s"):format(shape[1], shape[2], shape[3], name)
  if wrong > 0 or norm ~= norm or norm > 0.02 then
    print(("%-28s WRONG, error %.2e in the norm, %d elements"):format(label,
      norm, wrong))
    return
  end
  local r = card.bench({{name = rival, launch = theirs},
      {name = "ours", launch = mine},
      {name = "alone", launch = in_turn(sets, cublas)},
      {name = "ours alone", launch = in_turn(sets, plain)}},
    options, {cold = false, settle_ms = 2 * options.warm})
  local a, b = r[rival].hot, r.ours.hot
  local alone = math.min(r.alone.hot.median, r["ours alone"].hot.median)
  print(("%-28s %8.1f us  %-10s %8.1f us   %.3f   %.3f   %.3f   %4.1f %%")
    :format(label, b.median * 1e3, rival, a.median * 1e3, a.median / b.median,
    a.median / alone, alone / b.median, 100 * (b.q3 - b.q1) / b.median))
  io.stdout:flush()
end

print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
print("problem                         ours      beside                  ratio"
  .. "   most    share   spread")
for _, shape in ipairs(SHAPES) do
  local name = ("%dx%dx%d"):format(table.unpack(shape))
  if options.only == "" or options.only == name then
    local sets <const> = sets_of(table.unpack(shape))
    for _, row in ipairs(ROWS) do
      if options.row == "" or options.row == row[1] then
        compete(shape, sets, row)
      end
    end
  end
  collectgarbage()  -- frees the operands of this row before the next one
  gpu.trim()
end
print("after: " .. card.state())
-- SPDX-License-Identifier: MIT
