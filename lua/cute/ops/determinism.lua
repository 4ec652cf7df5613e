--- Determinism guarantees of a call, and the candidates that satisfy them.
--
-- Every call guarantees the same bits for the same arguments. With
-- `batch_invariant`, a row of D has the same bits in every batch. Its
-- accumulation order is that of a large product with the same B. The order does
-- not depend on M, on the number of matrices, or on the layouts of A and D.
-- With like = "cublas" the accumulation order is cuBLAS's. Candidates with
-- another order are excluded (p.order, see cute.ops.sum_order).
local choose = require "cute.ops.choose"
local cublas = require "cute.ops.cublas"
local cute = require "cute"
local operand = require "cute.ops.operand"

local determinism = {}

local fail = operand.fail

-- The number of rows of the large product whose accumulation order
-- batch_invariant uses.
local LARGE = 4096

local function facts(shape, dtype)
  return operand.facts(cute.make_layout(shape, cute.LayoutRight), dtype, 256)
end

-- Returns a copy of problem p in which A and D are single matrices with LARGE
-- rows, without batches and groups.
local function of_many_rows(p)
  local q = {}
  for name, v in pairs(p) do q[name] = v end
  q.m, q.batch, q.batches, q.ragged, q.expected = LARGE, {}, 1, nil, nil
  q.shape = {LARGE, p.columns}
  q.A = facts({LARGE, p.k}, p.a)
  q.D = facts({LARGE, p.columns}, p.d)
  q.B = operand.facts(cute.select(p.B.layout, {0, 1}), p.b, p.B.alignment)
  return q
end

-- Returns the accumulation order of the best candidate for many rows. Prefers
-- candidates without split-K.
local function common_order(p)
  local q = of_many_rows(p)
  local list = choose.list(q)
  for _, c in ipairs(list) do
    if c.split == 1 then return c.order end
  end
  return list[1] and list[1].order
end

local SUMS = {sum = true, mean = true, rms = true}

-- Raises an error if the epilogue has sums over rows, because these depend on
-- the batch.
local function check_reductions(p)
  for i = 2, #(p.results or {}) do
    local r = p.results[i]
    if r.kind ~= "tile" and r.kind ~= "row" and SUMS[r.op] then
      fail("batch_invariant = true excludes sums over rows, but result %d is "
        .. "the %s over rows", i, r.op)
    end
  end
end

--- Sets fields of problem p from the options. p.promise is the guarantee in
-- words. p.order is the required accumulation order, if any. p.splits is the
-- number of parts of K, where known.
function determinism.look(p, call)
  local o = call.o
  if o.deterministic == false and (o.batch_invariant or o.like) then
    fail("%s cannot be combined with deterministic = false",
         o.like and ("like = %q"):format(o.like) or "batch_invariant = true")
  elseif o.like and o.batch_invariant then
    fail("batch_invariant = true cannot be combined with like = %q: cuBLAS's "
      .. "sums depend on M", o.like)
  end
  p.promise = "deterministic"
  if o.batch_invariant then
    check_reductions(p)
    p.batch_invariant, p.promise = true, "batch_invariant"
    p.order = common_order(p)
  elseif o.like then
    if o.like ~= "cublas" then
      fail("like = %q; only \"cublas\" is possible", o.like)
    end
    p.promise, p.like = "like cuBLAS", true
    -- An empty D needs no accumulation order.
    if cute.product(p.shape) == 0 then return end
    p.order, p.splits = cublas.order(p, call)
  end
end

return determinism
-- SPDX-License-Identifier: MIT
