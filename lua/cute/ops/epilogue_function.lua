--- The epilogue of a product: alpha, C and beta, and a user's function, which
-- is traced into the kernel.
--
--     epilogue = function(acc, at)
--       local y = ops.gelu(acc + at:col(bias))
--       return y + at:tile(residual), at:row_reduce("sum", y)
--     end
--
-- `acc` is a vector of a thread's accumulators, so the function applies to each
-- element. `at` returns the elements' coordinates, and loads further operands.
-- The first result is D. Further results are additional outputs. A vector
-- becomes another matrix like D. A reduction yields one value for each row, for
-- each column, or in total.
--
-- Captured values of the function become arguments (cute.ops.capture). A
-- separate trial trace finds the number and types of the results before a
-- kernel is made.
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local fingerprint = require "cute.ops.fingerprint"
local numbers = require "cute.ops.numbers"
local operand = require "cute.ops.operand"
local partial = require "cute.ops.partial"
local philox = require "cute.philox"
local scales = require "cute.ops.scales"
local sign = require "cute.lang.signature"

local epilogue = {}

-- The kind of reduction that a kernel must compute in place of a requested
-- kind, if it computes D^T: rows of D are then the kernel's columns.
local TURNED = {row = "col", col = "row", all = "all"}
epilogue.TURNED = TURNED

local fail = operand.fail

---------------------------------------------------------------------------
-- Numbers of a call
---------------------------------------------------------------------------

local push, pass, reader = numbers.push, numbers.pass, numbers.reader

-- Returns a factor such as alpha as a float, or as an integer if the
-- accumulators are integers and the factor has an integer value.
local function factor(x, sums)
  if not sums.is_integer then return x + 0.0 end
  return math.tointeger(x) or x
end

---------------------------------------------------------------------------
-- Arguments of an epilogue
---------------------------------------------------------------------------

local At = {}
At.__index = At

-- During the trial trace, records a call of a method of `at`: the method's
-- name, and the size in bits of the loaded elements, if any.
local function note(at, what, dtype)
  if at.probe then
    table.insert(at.words, dtype and ("%s %d"):format(what, dtype.bits) or what)
  end
end

-- Reports whether a type is an integer type with values that i32 cannot
-- represent.
local function is_wide(dtype)
  return dtype.is_integer and (dtype.bits > 32 or dtype == cute.u32)
end

-- Returns the elements of a matrix (M,N[,L]) at the accumulators' coordinates.
-- Their type is the accumulator type if that is a float, else i32 or f32. If
-- the kernel itself loads the matrix, `source` is the matrix's number. With
-- `exact`, all integers keep their value, if necessary as i64.
local function fetch(at, t, source, exact)
  local own = t.element_type
  local dtype = at.sums
  if dtype.is_integer then
    dtype = exact and is_wide(own) and cute.i64
      or own.is_integer and own.bits <= 32 and cute.i32 or cute.f32
  end
  if at.probe then
    local r = cute.make_rmem_tensor(at.shape, dtype)
    r:fill(0)
    return r:load()
  end
  if source then return at.place.source(source, dtype) end
  if at.swap then t = operand.turned(t) end
  if at.place.batch then t = at.place.batch(t) end
  return at.place.load(t, dtype)
end

local function check_memory(name, t)
  if core.typename(t) ~= "tensor" then
    fail("at:%s: a tensor is needed, not %s", name, core.show(t))
  elseif t.memspace ~= "gmem" then
    fail("at:%s: this tensor is not an argument of the kernel; an epilogue can "
      .. "use its upvalues, globals, and fields of these", name)
  end
end

local function check_batch(at, name, t, own)
  -- Each batch mode of t must exist in the batch of D. The trial trace runs
  -- before the batch modes are merged into rows, so it can check all of them.
  local rank = at.batch.folded and 0 or cute.rank(t) - own
  for i = 1, math.max(rank, 0) do
    local extent = cute.size(t.shape[rank + 1 - i])
    if extent ~= 1 and extent ~= (at.batch[i] or 1) then
      fail("at:%s: the batch modes of %s differ from D's", name, t.layout)
    end
  end
end

local function vector(at, name, v, by_row)
  check_memory(name, v)
  local n = cute.size(v, cute.rank(v) - 1)
  local want = by_row and at.m or at.n
  if n ~= want then
    local other = by_row and at.n or at.m
    fail("at:%s needs a value for each of %d %s, but this is %s%s", name, want,
      by_row and "rows" or "columns", v.layout, n == other
      and ("; at:%s takes one for each %s"):format(by_row and "col" or "row",
      by_row and "column" or "row") or "")
  end
  check_batch(at, name, v, 1)
  note(at, name, v.element_type)
  if by_row or cute.rank(v) > 1 then at.placed = true end
  return fetch(at, operand.matrix(
    operand.spread(v, by_row and at.n or at.m, by_row), at.batch))
end

--- Returns a vector of v's values at the rows of the accumulators. v has the
-- modes (...,M).
function At:row(v) return vector(self, "row", v, true) end

--- Returns a vector of v's values at the columns of the accumulators. v has the
-- modes (...,N).
function At:col(v) return vector(self, "col", v, false) end

--- Returns the elements of t at the accumulators' coordinates. t has the modes
-- (...,M,N) of D.
function At:tile(t)
  check_memory("tile", t)
  local rank = cute.rank(t)
  if not self.batch.folded and (rank < 2 or cute.size(t, rank - 2) ~= self.m
    or cute.size(t, rank - 1) ~= self.n) then
    fail("at:tile needs a tensor of D's shape, (%d,%d), but this is %s", self.m,
         self.n, t.layout)
  end
  check_batch(self, "tile", t, 2)
  note(self, "tile", t.element_type)
  if self.probe then self.read[t] = true end
  return fetch(self, operand.matrix(t, self.batch), self.sources[t])
end

--- Returns the row and the column of each accumulator as two vectors of i32.
function At:coords()
  note(self, "coords")
  self.placed = true
  local rows = cute.make_rmem_tensor(self.shape, cute.i32)
  local cols = cute.make_rmem_tensor(self.shape, cute.i32)
  if self.probe then
    rows:fill(0)
    cols:fill(0)
    return rows:load(), cols:load()
  end
  local crd = partial.coordinates(self.place)
  for i = 0, cute.size(self.shape) - 1 do
    rows[i], cols[i] = crd[i][1], crd[i][2]
  end
  if self.swap then rows, cols = cols, rows end
  return rows:load(), cols:load()
end

--- Returns x / (1 - p), or 0 with probability p. The random numbers of
-- Philox4x32-10 depend only on the seed, row, column and batch of an element. p
-- and seed are Lua numbers or traced scalars.
function At:dropout(x, p, seed)
  philox.check(x, p, seed)
  local rows, cols = self:coords()
  local paired = not self.probe and not self.swap
    and partial.paired(self.place)
  local bits = philox.words(rows, cols, self:batch_index(), seed, paired)
  return philox.dropout(x, bits, p)
end

--- Returns the index (within the batch) of the matrix to which the accumulators
-- belong.
function At:batch_index()
  self.placed = true
  if self.probe or self.batches == 1 then return 0 end
  return self.place.l or (select(3, cute.arch.block_idx()))
end

sign.closed("at", sign.colons("at", At))

local Reduction = {}
Reduction.__index = Reduction
function Reduction.__tostring(r)
  return ("at:%sreduce, which is known behind the kernel"):format(
    r.kind == "all" and "" or r.kind .. "_")
end

local function reduction(at, name, kind, op, x)
  if at.ragged then
    fail("at:%s: grouped products do not support reductions", name)
  end
  if not partial.OPS[op] then
    fail("at:%s: no operation %s; possible are %s", name, core.show(op),
         partial.NAMES)
  end
  if core.typename(x) ~= "vector" or cute.size(x.shape) ~= cute.size(at.shape)
  then
    fail("at:%s: a vector of the accumulators' length is needed, not "
      .. "%s", name, core.show(x))
  end
  at.placed = true
  return setmetatable({kind = kind, op = op, x = x}, Reduction)
end

--- Makes a result of the epilogue, a tensor (...,M): reduces each row of x to
-- one f32. op is "sum", "mean", "max", "min", "amax" (largest magnitude) or
-- "rms" (root of the mean square).
function At:row_reduce(op, x)
  return reduction(self, "row_reduce", "row", op, x)
end

--- Makes a result of the epilogue, a tensor (...,N): reduces each column of x
-- to one f32.
function At:col_reduce(op, x)
  return reduction(self, "col_reduce", "col", op, x)
end

--- Makes a result of the epilogue, a tensor (1): reduces all elements of x to
-- one f32.
function At:reduce(op, x) return reduction(self, "reduce", "all", op, x) end

---------------------------------------------------------------------------
-- The function
---------------------------------------------------------------------------

local function where_is(f)
  local i = debug.getinfo(f, "S")
  return ("the epilogue at %s:%d"):format(i.short_src, i.linedefined)
end

-- Calls f with the accumulators (or with gate and up values) and `at`, checks
-- its results and returns them. If the original function belongs to cute, such
-- as cute.tanh, passes only the vectors, without `at`.
local function results_of(f, original, shape, ...)
  local n, users = select("#", ...), capture.is_users(original)
  if not users then n = n - 1 end
  local of = debug.getinfo(original, "u")
  local takes = of.nparams
  if users and n == 3 and takes == 1 and not of.isvararg then
    fail("%s has 1 parameter, but a gated product gives it two vectors: write "
      .. "function(gate, up, at)", where_is(original))
  elseif takes > n then
    fail("%s has %d parameters, but gets %d values: accumulators and `at`",
         where_is(original), takes, n)
  end
  local out = table.pack(f(table.unpack({...}, 1, n)))
  local what = where_is(original)
  if out.n == 0 then fail("%s returns nothing; a value is needed", what) end
  for i = 1, out.n do
    local x = out[i]
    local is_reduction = i > 1 and getmetatable(x) == Reduction
    if not is_reduction and core.typename(x) ~= "vector" then
      fail("%s returns %s as result %d; a vector of the accumulators' length "
        .. "is needed", what,
           core.show(x), i)
    elseif not is_reduction and cute.size(x.shape) ~= cute.size(shape) then
      fail("result %d of %s must have %d values, one for each accumulator, not "
        .. "%d", i, what, cute.size(shape), cute.size(x.shape))
    end
  end
  return out
end

-- Traces the user's function for problem p. Returns four values: the results as
-- a list of {kind, dtype, op}; the indices of the captured values that at:tile
-- reads; the epilogue's fingerprint (cute.ops.fingerprint); whether the results
-- depend on an element's row or batch. Sets p.read to the state that the trace
-- read.
local function probe(p, f, captured)
  local found, placed
  local read, words = {}, {p.gated and "gated" or "sums " .. p.value.name}
  local values = captured.values
  local clone, bind = captured:clone()
  local kernel = cute.kernel("epilogue", function(...)
    local next_one, number = reader {...}
    local list = {}
    for i, v in ipairs(values) do
      list[i] = number(p.value, math.type(v) == "float")
    end
    assert(not next_one())
    local acc = cute.make_rmem_tensor({4}, p.value)
    acc:fill(0)
    local at = setmetatable({probe = true, sources = {}, read = {},
      words = words, shape = {4}, sums = p.value, m = p.m, ragged = p.ragged,
      n = p.columns, batch = p.batch, batches = p.batches}, At)
    bind(list)
    if p.gated then
      found = results_of(clone, f, at.shape, acc:load(), acc:load(), at)
    else
      found = results_of(clone, f, at.shape, acc:load(), at)
    end
    bind()
    placed = at.placed
    for i, v in ipairs(list) do
      if at.read[v] then read[#read + 1] = i end
    end
    for i, x in ipairs(found) do
      found[i] = getmetatable(x) == Reduction and {kind = x.kind, op = x.op}
        or {kind = "tile", dtype = x.dtype}
      note(at, found[i].op or "tile", found[i].dtype)
      note(at, found[i].kind)
    end
  end)
  local list = {n = 0}
  for _, v in ipairs(values) do pass(list, v, p.value) end
  local program = kernel(table.unpack(list, 1, list.n)):trace {block = 32}
  captured:check_stores(program)
  p.read = captured:reads(program)
  return found, read, fingerprint(program.fn:dump(true), words), placed
end

--- Determines the results of an epilogue before a kernel exists. Sets
-- p.results, p.fingerprint, and p.placed (whether values depend on an element's
-- row or batch). Returns the type of the first result. Also returns the indices
-- of the captured values that the epilogue reads as matrices of D's shape.
function epilogue.look(p, f)
  local read
  p.results, read, p.fingerprint, p.placed = probe(p, f, capture.of(f))
  return p.results[1].dtype, read
end

-- Returns a function that clamps integer results to the range of D's type, or
-- nil if no clamping is needed.
local function narrowing(p, C)
  local d, sums = p.d, p.value
  if sums.is_integer and C and is_wide(C.element_type) then sums = cute.i64 end
  local unsigned = d.name:find "^u"
  if not (sums.is_integer and d.is_integer)
    or d.bits >= sums.bits and not unsigned then
    return nil
  end
  local least = unsigned and 0 or -(1 << d.bits - 1)
  local most = d.bits < sums.bits
    and (1 << (unsigned and d.bits or d.bits - 1)) - 1
  return function(x)
    -- x has another type only if the user's function has already converted it.
    if x.dtype ~= sums then return x end
    x = cute.max(x, least)
    return most and cute.min(x, most) or x
  end
end

-- Returns a vector multiplied by a factor. An integer vector times a float
-- gives f32.
local function scaled(x, by)
  if x.dtype.is_integer and by.dtype ~= cute.i32 then x = x:to(cute.f32) end
  return x * by
end

-- Returns alpha * acc + beta * was, rounded like cuBLAS's result. The number of
-- split-K parts (splits) decides which of the two products cuBLAS rounds before
-- the addition.
local function like_cublas(acc, alpha, was, beta, splits)
  if splits == 1 then return cute.fma(acc, alpha, was * beta) end
  return cute.fma(was, beta, acc * alpha)
end

-- Stores the results of the user's function except the first, which is D:
-- matrices like D, and partial results of reductions.
local function leave(at, out, next_one)
  local place, swap = at.place, at.swap
  for i = 2, out.n do
    local x, to = out[i], next_one()
    if getmetatable(x) == Reduction then
      partial.leave(place, swap and TURNED[x.kind] or x.kind, x.op, x.x, to,
                    at:batch_index())
    else
      if swap then to = operand.turned(to) end
      if place.batch then to = place.batch(to) end
      place.save(to, x)
    end
  end
end

--- Returns the epilogue of problem p for candidate c as a table of functions.
-- `finish` is the value for the option `epilogue` of gemm_sm80 and gemm_sm90,
-- or nil. more(list, C, call) appends the epilogue's kernel arguments to the
-- list, except further outputs, which come last. take(captured) replaces the
-- user's function by that of another call with the same code, for later traces.
function epilogue.new(p, c, call)
  local has_alpha, has_beta, has_c = call.alpha ~= nil, call.beta ~= nil, p.c
  local f = call.f
  local factors, narrowed = scales.rest(p, call.o), narrowing(p, call.C)
  if not (has_alpha or has_c or f or #factors > 0 or narrowed) then
    return {more = function() end}
  end
  for i, x in ipairs(factors) do factors[i] = x.number ~= nil end
  local clone, bind
  local function take(captured)
    -- The clone has no captured values until `bind` sets them. call.f would
    -- keep the values of this call, so the clone is used instead.
    f, bind = captured:clone()
    clone = capture.steady(f, p.read)
  end
  local floats = {}
  if f then
    take(call.captured)
    for i, v in ipairs(call.captured.values) do
      floats[i] = math.type(v) == "float"
    end
  end

  -- brought[x] is the index in c.sources of a matrix that the kernel itself
  -- loads. x is "C" or the index of a captured value.
  local brought = {}
  for i, s in ipairs(c.sources or {}) do brought[s.value or "C"] = i end

  -- Computes alpha times the sums plus beta C, and applies scale factors.
  -- alpha, beta and the factors are arguments of the kernel.
  local function summed(acc, at, next_one, number)
    if acc.dtype ~= p.value then acc = acc:to(p.value) end
    for _, is_number in ipairs(factors) do
      if is_number then acc = scaled(acc, number(p.value, true))
      else acc = acc * fetch(at, next_one()) end
    end
    local alpha = has_alpha and number(p.value, true) or nil
    local was = has_c and fetch(at, next_one(), brought.C, not p.like) or nil
    local beta = has_beta and number(p.value, true) or nil
    if p.like and was then
      return like_cublas(acc, alpha or 1.0, was, beta or 1.0, p.splits)
    end
    if alpha then acc = scaled(acc, alpha) end
    if beta then was = scaled(was, beta) end
    if was and was.dtype.is_float ~= acc.dtype.is_float then
      was, acc = was:to(cute.f32), acc:to(cute.f32)
    end
    return was and acc + was or acc
  end

  local function finish(acc, ...)
    local up, place, next_one, number
    if p.gated then
      up, place = ...
      next_one, number = reader {select(3, ...)}
    else
      place = ...
      next_one, number = reader {select(2, ...)}
    end
    local at = setmetatable({place = place, swap = c.swap, sums = p.value,
      m = p.m, n = p.columns, batch = p.batch, batches = p.batches,
      shape = acc.shape, ragged = p.ragged, sources = {}}, At)
    acc = summed(acc, at, next_one, number)
    if not f then return narrowed and narrowed(acc) or acc end
    local values = {}
    for i, is_float in ipairs(floats) do
      values[i] = number(p.value, is_float)
      if brought[i] then at.sources[values[i]] = brought[i] end
    end
    bind(values)
    local out
    if p.gated then out = results_of(clone, f, at.shape, acc, up, at)
    else out = results_of(clone, f, at.shape, acc, at) end
    bind()
    if out.n ~= #p.results then
      fail("%s returned %d results before, but %d now; the number must not "
        .. "change", where_is(f), #p.results, out.n)
    end
    leave(at, out, next_one)
    return narrowed and narrowed(out[1]) or out[1]
  end

  local function more(list, C, now)
    local at = now.at
    for _, x in ipairs(#factors > 0 and scales.rest(p, now.o) or factors) do
      if x.number then pass(list, x.number + 0.0, p.value, at[x.name], 1)
      else push(list, x.matrix) end
    end
    if has_alpha then
      pass(list, factor(now.alpha, p.value), p.value, at.alpha, 1)
    end
    if has_c then push(list, C) end
    if has_beta then
      pass(list, factor(now.beta, p.value), p.value, at.beta, 1)
    end
    local nth = 0
    for _, v in ipairs(now.captured and now.captured.values or {}) do
      if math.type(v) then nth = nth + 1 end
      pass(list, v, p.value, at.f, nth)
    end
  end
  return {finish = finish, more = more, take = take}
end

return epilogue
-- SPDX-License-Identifier: MIT
