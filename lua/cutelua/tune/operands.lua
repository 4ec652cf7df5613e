--- Creates the operands of a product to measure, and checks the results. The
-- operands are tensors of random numbers on the GPU. Successive launches use
-- several sets of operands cyclically if this prevents reuse of data in L2.
local core = require "cute.core"
local cute = require "cute"
local epilogues = require "cutelua.tune.epilogues"
local gemm = require "cute.ops.gemm"
local tuned = require "cute.ops.tuned"

-- The random numbers repeat with this period. It is a prime, so that the
-- numbers do not repeat at the stride of a tile.
local PERIOD = (1 << 20) - 3
-- Operands begin at multiples of this number of elements.
local ALIGN = 256
-- Operands smaller than this number of bytes may stay in L2 during hot
-- measurements, which repeat a launch.
local SMALL = 16 << 20
-- For larger operands, there are several sets, which successive launches use
-- cyclically. Together the sets have at least this number of bytes.
local PLAY = 128 << 20
local SAMPLES = 16

local Operands = {}
Operands.__index = Operands

local operands = {}

local function layout(rows, columns, dense_rows)
  return cute.make_layout({rows, columns},
                          dense_rows and {columns, 1} or {1, rows})
end

-- Returns the layout of a tensor that an epilogue of problem o reads. `kind` is
-- "row", "col" or "tile".
local function read_as(o, kind)
  if kind == "tile" then return layout(o.m, o.columns, o.order == "row") end
  return cute.make_layout {kind == "row" and o.m or o.columns}
end

local function stand_in(l, t)
  return cute.make_tensor(cute.empty({1}, t).iterator, l)
end

-- Returns the options of problem o's epilogue, including the epilogue, and the
-- operand C. new(kind, dtype, number) creates the tensors that the epilogue
-- reads.
local function epilogue_of(o, new)
  return epilogues.made(o.make, {m = o.m, n = o.columns, dtype = o.d}, new)
end

--- Parses a problem's text: "bf16 bf16 bf16 tn row 4096 4096 4096". `make` is
-- the function that creates the epilogue (cutelua.tune.epilogues), if there is
-- one.
---@param problem string
---@param make? function
---@return table # types of A, B, D, layouts "tn", D's order, m, n, k, D's
-- columns, flops
function operands.parse(problem, make)
  local w = {}
  for word in problem:gmatch "%S+" do w[#w + 1] = word end
  local function of(name) return cute[name == "tf32" and "f32" or name] end
  local function extent(i) return math.tointeger(tonumber(w[#w - 3 + i])) end
  local o = {class = problem:match "^(.-) %d+ %d+ %d+$",
             a = of(w[1]), b = of(w[2]), d = of(w[3]), tf32 = w[1] == "tf32",
             layouts = w[4], order = w[5], m = extent(1), n = extent(2),
             k = extent(3), make = make}
  o.columns, o.flops = o.n, 2.0 * o.m * o.n * o.k
  if make then
    local more = epilogue_of(o, function(kind, dtype)
      return stand_in(read_as(o, kind), dtype)
    end)
    o.gated = more.gated
    if o.gated then o.columns = o.n // 2 end
  end
  return o
end

-- Returns the layouts of A, B and D.
local function layouts(o)
  return layout(o.m, o.k, o.layouts:sub(1, 1) == "t"),
    layout(o.n, o.k, o.layouts:sub(2) == "n"), read_as(o, "tile")
end

-- Returns the options of an ops.gemm call that writes D, and the operand C or
-- nil. new(kind, dtype, number) creates the tensors that the epilogue reads.
local function options_of(o, D, new)
  local more, C = {}, nil
  if o.make then more, C = epilogue_of(o, new) end
  more.out, more.tf32 = D, o.tf32 or nil
  return more, C
end

--- Returns operands for compiling a candidate. Each has the memory of only one
-- element.
---@param problem string
---@param make? function
---@return table # A, B, D, C, options
function operands.without_memory(problem, make)
  local o = operands.parse(problem, make)
  local lA, lB, lD = layouts(o)
  local set = {A = stand_in(lA, o.a), B = stand_in(lB, o.b),
               D = stand_in(lD, o.d), tf32 = o.tf32 or nil}
  set.options, set.C = options_of(o, set.D, function(kind, dtype)
    return stand_in(read_as(o, kind), dtype)
  end)
  return set
end

--- Returns the class of a problem with the epilogue that `make` creates. A
-- class is a key of the tuned tables (cute.ops.tuned).
---@param problem string
---@param make function
---@param name string the epilogue's name in the class
---@return string?
function operands.class(problem, make, name)
  local set = operands.without_memory(problem, make)
  set.options.device = "sim"
  return tuned.class(gemm.problem(set.A, set.B, set.options, set.C), name)
end

-- The random numbers, by element type and device.
-- - all: a device tensor in which PERIOD numbers repeat.
-- - count: the number of its elements.
-- - list: these PERIOD numbers on the host.
local pools = {}

local function pool_of(dtype, elements, place)
  local name = ("%s %s"):format(dtype, place)
  local pool = pools[name]
  if pool and pool.count >= elements then return pool end
  pools[name] = nil
  -- Integers are random in 0 to 3 for unsigned types, in -3 to 3 otherwise.
  local least = dtype.name:find "^u" and 0 or -3
  local first = dtype.is_integer
    and cute.randint(least, 4, {PERIOD}, dtype, {seed = 1})
    or cute.randn({PERIOD}, dtype, {seed = 1})
  local list = {}
  for i, x in first:elements() do list[i] = x end
  local count = (elements + PERIOD - 1) // PERIOD * PERIOD
  local all = cute.empty({count}, dtype, {device = place})
  local function part(at, n)
    return cute.make_tensor(all.iterator + at, cute.make_layout {n})
  end
  part(0, PERIOD):copy_from(first)
  local done = PERIOD
  while done < count do
    local n = math.min(done, count - done)
    part(done, n):copy_from(part(0, n))
    done = done + n
  end
  pool = {all = all, count = count, list = list}
  pools[name] = pool
  return pool
end

--- Returns a vector of n random numbers on a device, a list of the numbers of
-- one period on the host, and the period. The list begins at index 0.
---@param dtype any
---@param n integer
---@param place string
---@return any
---@return number[]
---@return integer
function operands.numbers(dtype, n, place)
  local pool = pool_of(dtype, n, place)
  return cute.make_tensor(pool.all.iterator, cute.make_layout {n}), pool.list,
    PERIOD
end

--- Returns the number of operand sets that successive launches use cyclically,
-- if one set has the given size. The number is 1 for small operands, which may
-- stay in L2. Otherwise all sets together exceed L2.
---@param bytes integer the size of A and B
---@return integer
function operands.sets(bytes)
  return bytes < SMALL and 1 or (PLAY + bytes - 1) // bytes
end

-- A product with fewer operations does not reach the GPU's power limit.
local CALM = 4e10

--- Returns the fraction of the warm-up time that a launch with the given number
-- of operations needs. At its power limit, a GPU needs a long time until its
-- clock is stable.
---@param flops number
function operands.warmth(flops) return flops > CALM and 1 or 0.25 end

-- Returns the index in the random numbers for element i of the nth tensor that
-- an epilogue reads.
local function at_of(nth, i) return (nth * 7919 + i) % PERIOD end

-- Creates the nth tensor that an epilogue reads, with random numbers, on the
-- device of problem o.
local function read_by(o, kind, dtype, nth)
  local l = read_as(o, kind)
  local n = cute.size(l)
  local t = cute.empty({n}, dtype, {device = o.place})
  local pool = pool_of(dtype, n + PERIOD, o.place)
  t:copy_from(cute.make_tensor(pool.all.iterator + at_of(nth, 0),
                               cute.make_layout {n}))
  o.lists[nth] = pool.list
  return cute.make_tensor(t.iterator, l)
end

-- The most recent problem, with its operands.
local kept

--- Returns a problem with its operands on the GPU, or on the host.
---@param problem string
---@param make? function
---@param place? string "gpu" (by default) or "host"
function operands.of(problem, make, place)
  if kept and kept.problem == problem then return kept end
  kept = nil
  local o = setmetatable(operands.parse(problem, make), Operands)
  o.lists, o.place = {}, place or "gpu"
  o.problem = problem
  local lA, lB, lD = layouts(o)
  local function room(x) return (x + ALIGN - 1) // ALIGN * ALIGN end
  local na, nb = room(o.m * o.k), room(o.n * o.k)
  local bytes = (na * o.a.bits + nb * o.b.bits) // 8
  local sets = operands.sets(bytes)
  local pa = pool_of(o.a, sets * (na + nb), o.place)
  local pb = pool_of(o.b, sets * (na + nb), o.place)
  o.sets, o.list_a, o.list_b, o.at_b = {}, pa.list, pb.list, na
  o.D = cute.make_tensor(cute.empty({o.m * o.columns}, o.d,
    {device = o.place}).iterator, lD)
  for i = 1, sets do
    local at = (i - 1) * (na + nb)
    local set = {A = cute.make_tensor(pa.all.iterator + at, lA),
                 B = cute.make_tensor(pb.all.iterator + (at + na), lB)}
    set.options, set.C = options_of(o, o.D, function(...)
      return read_by(o, ...)
    end)
    o.sets[i] = set
  end
  -- The kernels that the worker has prepared for timing, by candidate name.
  o.ready = {}
  o.A, o.B = o.sets[1].A, o.sets[1].B
  kept = o
  return o
end

--- Fills D with wrong values, so that missing stores are detected. Floats
-- become NaN, signed integers -1. The bytes of unsigned types become 0x55,
-- which is less than the maximum, where sums saturate.
function Operands:spoil()
  core.param_memory(self.D):memset(self.d.name:find "^u" and 0x55 or 0xff)
end

-- Returns the sum over k of A(i,k) B(j,k) in double precision.
local function sum_of(o, i, j)
  local sum, A, B = 0, o.A.layout, o.B.layout
  local a, b = A(i, 0), B(j, 0) + o.at_b
  local da, db = A.stride[2], B.stride[2]
  for _ = 1, o.k do
    sum = sum + o.list_a[a % PERIOD] * o.list_b[b % PERIOD]
    a, b = a + da, b + db
  end
  return sum
end

-- Returns two host matrices A and B such that A B^T is the list of given sums.
-- Each sum is split into three bf16 numbers, which together hold all bits of an
-- f32.
local function of_sums(sums)
  local n = 3 * #sums
  local A = cute.zeros({1, n}, cute.bf16)
  local B = cute.zeros({#sums, n}, cute.bf16)
  for i, x in ipairs(sums) do
    for j = 3 * i - 3, 3 * i - 1 do
      A[{0, j}], B[{i - 1, j}] = x, 1
      x = x - A(0, j)
    end
  end
  return A, B
end

-- Returns element (i, j) of D after the epilogue, for the given sums: one, or
-- two if the epilogue is gated. Runs a product with only this element on the
-- simulator.
local function ended(o, i, j, sums)
  local one = setmetatable({m = 1, n = #sums, columns = 1}, {__index = o})
  local options, C = options_of(one, nil, function(kind, dtype, nth)
    local at = kind == "row" and i or kind == "col" and j or o.D.layout(i, j)
    local t = cute.empty({1}, dtype)
    t[0] = o.lists[nth][at_of(nth, at)]
    return kind == "tile" and cute.make_tensor(t.iterator,
      cute.make_layout {1, 1}) or t
  end)
  options.device, options.dtype, options.tf32 = "sim:sm_80", cute.f32, nil
  local A, B = of_sums(sums)
  return (gemm.gemm(A, B, C, options))(0, 0)
end

-- Returns the coordinates and expected values of some elements of D, including
-- the corners.
local function samples(o)
  local list = {{0, 0}, {o.m - 1, o.columns - 1}, {o.m - 1, 0},
                {0, o.columns - 1}}
  for i = 5, SAMPLES do
    list[i] = {i * 0x9e3779b1 % o.m, i * 0x85ebca6b % o.columns}
  end
  for _, s in ipairs(list) do
    local i, j = s[1], s[2]
    local sum = sum_of(o, i, j)
    s.want = not o.make and sum or ended(o, i, j, o.gated
      and {sum, sum_of(o, i, j + o.columns)} or {sum})
  end
  return list
end

-- The largest relative distance between adjacent numbers of each 8-bit float
-- type.
local COARSE = {e4m3 = 1 / 8, e5m2 = 1 / 4}

-- Returns x clamped to the range of D's type, and the tolerance for it. The
-- tolerance covers the rounding errors of a sum of k products of numbers near
-- 1, in any order.
local function expected(o, x)
  local off = 0.004 * math.sqrt(o.k) + 0.008 * math.abs(x)
  if not o.d.is_integer then
    local most = o.d == cute.e4m3 and 448 or o.d == cute.e5m2 and 57344
      or math.huge
    return math.max(-most, math.min(x, most)),
      off + (COARSE[tostring(o.d)] or 0) * math.abs(x)
  end
  local count, unsigned = 2.0 ^ o.d.bits, o.d.name:find "^u"
  local least = unsigned and 0 or -count / 2
  -- Integer sums are exact, so the tolerance is 0 without an epilogue.
  if o.a.is_integer and o.b.is_integer then
    off = o.make and 1 or 0
  else
    off = off + 1
  end
  return math.max(least, math.min(x, least + count - 1)), off
end

--- Returns a message about the first wrong element of D. Returns nil if all
-- samples are correct. D must be the product of the first operand set.
function Operands:wrong()
  self.samples = self.samples or samples(self)
  for _, s in ipairs(self.samples) do
    local at = cute.make_tensor(self.D.iterator + self.D.layout(s[1], s[2]),
                                cute.make_layout {1})
    local got = at:to "host"(0)
    local want, off = expected(self, s.want)
    local d = math.abs(got - want)
    if d ~= d or d > off then
      return ("wrong: D(%d,%d) is %g, not %g"):format(s[1], s[2], got, want)
    end
  end
end

return operands
-- SPDX-License-Identifier: MIT
