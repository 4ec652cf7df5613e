-- Measures ops.gemm of matrices whose layout TMA and wgmma do not accept. The
-- contestants are the Hopper kernel on repacked matrices, the kernel by
-- mma.sync, and cuBLAS. They alternate, with operands in L2:
--
--    cutelua spec/bench/ops_odd.lua [--only bf16] [--rounds 5] [--warm 20]
--      [--hot 20] [--part 1/12]
--
-- Each of our two contestants is the candidate of its kind that the
-- configuration rule prefers, in a graph of several calls. `choice` says which
-- of the two the rule chooses. Results are first compared with cuBLAS's, or
-- with each other if cuBLAS has none. With --part I/N the script only compiles
-- and launches every Nth case, so that many processes can compile before one
-- measures.
local card = require "spec.card"
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local measure = require "spec.measure"
local ops = cute.ops

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev
local options = card.options {only = "", rounds = "5", warm = "20", hot = "20",
                              part = ""}

local CALLS = 4  -- calls in one CUDA graph

local CASES = {}

-- Adds a case. `types` names the type of A and B, then the type of D.
-- `layouts`, such as "tn", gives the contiguous modes of A and B in BLAS's
-- notation. Optional fields of `more`: batches; epilogue; off, the number of
-- elements by which A and B are displaced from the start of their buffers.
local function case(types, layouts, m, n, k, more)
  local x = more or {}
  x.ab, x.d = types:match "(%w+) (%w+)"
  x.layouts, x.m, x.n, x.k = layouts, m, n, k
  x.name = ("%s %s %s%s%s"):format(x.ab, layouts,
    m == n and n == k and m .. "^3" or ("%dx%dx%d"):format(m, n, k),
    x.batches and " x" .. x.batches or "", x.about and ", " .. x.about or "")
  CASES[#CASES + 1] = x
end

local function square(types, layouts, n, more)
  case(types, layouts, n, n, n, more)
end

for _, n in ipairs {511, 1023, 1501, 2047, 3001, 4095, 8191} do
  square("bf16 bf16", "tn", n)
end
for _, s in ipairs {{4096, 4096, 4095}, {1024, 1024, 1023}, {300, 1001, 4095},
    {16, 4096, 4095}, {128, 4095, 4095}, {512, 4095, 4095},
    {2048, 2047, 2048}, {4096, 4096, 4094}, {4096, 4096, 4092},
    {1024, 1024, 1022}, {1024, 1024, 1020}} do
  case("bf16 bf16", "tn", table.unpack(s))
end
for _, l in ipairs {"nn", "nt", "tt"} do
  square("bf16 bf16", l, 4095)
  square("bf16 bf16", l, 1023)
end
local function bias(x)
  local b = card.normal({x.n}, "f32", 5)
  return {epilogue = function(acc, at) return ops.gelu(acc + at:col(b)) end}
end
local function residual(x)
  local r = card.normal({x.m, x.n}, "bf16", 6)
  return {epilogue = function(acc, at) return ops.silu(acc) + at:tile(r) end}
end
local function gates()
  return {gated = true,
          epilogue = function(gate, up) return ops.silu(gate) * up end}
end
square("bf16 bf16", "tn", 4095, {about = "bias, GELU", o = bias})
square("bf16 bf16", "tn", 1023, {about = "bias, GELU", o = bias})
square("bf16 bf16", "tn", 4095, {about = "SiLU, R", o = residual})
case("bf16 bf16", "tn", 4095, 8192, 4095, {about = "gates", o = gates})
square("bf16 bf16", "tn", 1023, {batches = 8})
square("bf16 bf16", "tn", 255, {batches = 64})
square("bf16 bf16", "tn", 4096, {about = "on 2 bytes", off = 1})
for _, n in ipairs {1024, 2048, 4096} do
  for _, l in ipairs {"nn", "nt", "tt"} do
    if n ~= 2048 or l == "nn" then
      square("f32 f32", l, n)
      square("i8 i32", l, n)
      square("e4m3 bf16", l, n)
    end
  end
end
for _, n in ipairs {1023, 2047, 4095} do
  square("f32 f32", "tn", n)
  square("i8 i32", "tn", n)
  square("e4m3 bf16", "tn", n)
end

---------------------------------------------------------------------------

local function matrices(x, name, rows, columns, dense, seed)
  local l, off = x.batches or 1, x.off or 0
  local all = card.matrix(dev, name, rows * columns * l + off, seed)
  local t = card.tensor(all, 1, rows * columns * l + off)
  local layout = dense and {columns, 1} or {1, rows}
  local shape = {rows, columns}
  if l > 1 then
    shape, layout = {l, rows, columns}, {rows * columns, layout[1], layout[2]}
  end
  return cute.make_tensor(t.iterator + off, cute.make_layout(shape, layout)),
    all
end

local function blas(x, a, b)
  if x.o or x.off or x.ab == "e4m3"
    or x.ab == "i8" and (x.k % 16 ~= 0 or x.m % 16 ~= 0) then return nil end
  local d = card.matrix(dev, x.d, x.m * x.n * (x.batches or 1))
  local ok, made = pcall(gpu.cublas, {m = x.m, n = x.n, k = x.k, A = a, B = b,
    D = d, layout = x.layouts, tf32 = x.ab == "f32" or nil,
    batches = x.batches})
  if not ok or not made then return nil end
  return {name = "cuBLAS", launch = made, d = d}
end

local function contestants(x)
  local A, a = matrices(x, x.ab, x.m, x.k, x.layouts:sub(1, 1) == "t", 1)
  local B, b = matrices(x, x.ab, x.n, x.k, x.layouts:sub(2) == "n", 2)
  local list = {blas(x, a, b)}
  if list[1] then list[1].launch:launch() end
  for _, kind in ipairs {"mma.sync", "moved"} do
    local o = x.o and x.o(x) or {}
    o.tf32, o.dtype = x.ab == "f32" or nil, cute[x.d]
    local p, all, call = gemm.offers(A, B, o)
    for i, c in ipairs(all) do
      if (c.base == "moved") == (kind == "moved") then
        local made = card.candidate(p, c, call, CALLS)
        made.name, made.best = kind, i == 1
        list[#list + 1] = made
        break
      end
    end
  end
  return list
end

local function row(x, list)
  local wrong = {}
  for i = 2, #list do
    local error, count = card.difference(dev, list[i].d, list[1].d,
      x.d == "i32" and 0 or x.d == "bf16" and 0.01 or 0.02,
      x.d == "i32" and 0 or 0.1 * math.sqrt(x.k) / 8)
    if error ~= error or error >= 0.01 or count > 0 then
      wrong[#wrong + 1] = ("%s WRONG (%.2e, %d)"):format(list[i].name, error,
                                                       count)
    end
  end
  local r = card.bench(list, options, {cold = false})
  local function us(name)
    local calls = name == "cuBLAS" and 1 or CALLS
    return r[name] and ("%8.1f"):format(r[name].hot.median * 1e3 / calls)
      or ("%8s"):format "-"
  end
  local by = {}
  for _, c in ipairs(list) do by[c.name] = c end
  local old, new = by["mma.sync"] or {}, by.moved or {}
  print(("%-30s %s %s %s  %6.1f %6.1f  %s; %s; %s %s"):format(x.name,
    us "cuBLAS", us "mma.sync", us "moved", old.us or 0, new.us or 0,
    new.best and "moved" or "mma.sync", old.choice or "-",
    new.choice or "-", table.concat(wrong, " ")))
end

local cases = {}
for _, x in ipairs(CASES) do
  if x.name:find(options.only, 1, true) then cases[#cases + 1] = x end
end
card.walk(options, cases, contestants, row,
  ("%-30s %8s %8s %8s  %6s %6s  %s"):format("us, hot", "cuBLAS", "mma.sync",
    "moved", "rule", "rule", "choice; mma.sync's; moved's"))
-- SPDX-License-Identifier: MIT
