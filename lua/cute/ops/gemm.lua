--- Computes D = alpha A B^T + beta C with the best kernel.
--
-- A plan (the kernel and its launches) is made once for each configuration:
-- types, layouts and alignment of the operands, options, device. cute.ops.calls
-- recognizes later calls of the same configuration, which only launch the
-- kernel.
local common = require "cute.ops.problem"
local core = require "cute.core"
local cute = require "cute"
local calls = require "cute.ops.calls"
local choose = require "cute.ops.choose"
local capture = require "cute.ops.capture"
local int4 = require "cute.ops.int4"
local operand = require "cute.ops.operand"
local plans = require "cute.ops.plan"
local determinism = require "cute.ops.determinism"
local scales = require "cute.ops.scales"
local tensor_op = require "cute.ops.tensor_op"

local gemm = {}

local fail, facts, plain = operand.fail, operand.facts, operand.plain

---------------------------------------------------------------------------
-- Operands
---------------------------------------------------------------------------

local OPTIONS = {
  alpha = "number", beta = "number", out = "tensor table",
  accumulate = "boolean", deterministic = "boolean",
  batch_invariant = "boolean", like = "string", constant = "string",
  dtype = "dtype string", tf32 = "boolean",
  device = "string table device", arch = "string", stream = "stream table",
  epilogue = "function", gated = "boolean", seed = "integer",
  scale_a = "number tensor", scale_b = "number tensor", group = "integer",
  zeros = "tensor"}
gemm.OPTIONS = OPTIONS

local function check_options(o)
  operand.check_options("ops.gemm", OPTIONS, o)
end

local function same_extent(x, i, y, j)
  local a, b = cute.size(x.l, i), cute.size(y.l, j)
  if a == b then return end
  local turned = cute.size(y.l, 1 - j) == a and y
    or cute.size(x.l, 1 - i) == b and x
  local advice = turned and ("\n  write cute.select(%s, {1, 0}): %s must be "
    .. "(%s)"):format(turned.name, turned.name, table.concat(turned.modes, ","))
  fail("%s is %s and %s is %s: %s is %d in one and %d in the other%s", x.name,
    x.t.layout, y.name, y.t.layout, x.modes[i + 1], a, b, advice or "")
end

---------------------------------------------------------------------------
-- Problems
---------------------------------------------------------------------------

local MODES = {A = {"M", "K"}, B = {"N", "K"}, C = {"M", "N"},
               out = {"M", "N"}}

-- Describes a matrix with the shape of D that the kernel reads after the
-- accumulation: C, or a captured value of the epilogue. `value` is the index of
-- the captured value.
local function source(t, batch, value)
  local s = facts(operand.layout(t.layout, batch), plain(t.element_type),
                  t.alignment)
  s.value = value
  return s
end

-- Raises an error unless B has two rows (gate and up) for each column of D,
-- which gated = true requires.
local function check_gates(B, D)
  local rows, n = cute.size(B.l, 0), cute.size(D.l, 1)
  if rows ~= 2 * n then
    fail("B is %s and %s is %s: with gated = true B needs 2 N = %d rows, not "
      .. "%d", B.t.layout, D.name, D.t.layout, 2 * n, rows)
  end
end

-- Returns a table of the operands of a call, each with its layout as kernels
-- accept it. The table is a list, and also has the operands by name. Also
-- returns the batch modes.
local function operands(A, B, C, out, gated)
  local list = {{"A", A}, {"B", B}, {"C", C}, {"out", out}}
  local all = {}
  for i = 1, 4 do
    local name, t = list[i][1], list[i][2]
    if t ~= nil then
      -- For packed 4-bit weights, a tensor with their extents is checked
      -- instead.
      if name == "B" and int4.is(t) then
        t = cute.make_tensor(t.packed.iterator, cute.make_layout({t.n, t.k},
          cute.LayoutRight))
      end
      operand.check(name, t)
      local x = {name = name, t = t, modes = MODES[name]}
      all[#all + 1], all[name] = x, x
    end
  end
  local batch = operand.batch(all)
  for _, x in ipairs(all) do x.l = operand.layout(x.t.layout, batch) end
  same_extent(all.A, 1, all.B, 1)
  for _, name in ipairs {"C", "out"} do
    if all[name] then
      same_extent(all.A, 0, all[name], 0)
      if gated then
        check_gates(all.B, all[name])
      else
        same_extent(all.B, 0, all[name], 1)
      end
    end
  end
  for i, n in ipairs(out and batch or {}) do
    local mode = cute.rank(out) - 1 - i
    if mode < 1 or cute.size(out.shape[mode]) ~= n then
      fail("out is %s; the batch modes of the operands are needed, too",
           out.layout)
    end
  end
  if out then operand.check_apart("out", out) end
  return all, batch
end

-- Merges a batch into one product with more rows, if all matrices of the batch
-- share one B, and their rows are equally spaced across matrices. Tiles then
-- extend across matrices, and B is read once.
local function fold(p, call, B, read)
  if p.placed or call.o.like or p.scale_a == "rows" or p.scale_a == "blocks"
    or p.own_factors or p.format then
    return
  end
  local list = {call.A}
  list[2] = call.C
  for _, D in pairs(call.out) do list[#list + 1] = D end
  for _, i in ipairs(read) do list[#list + 1] = call.captured.values[i] end
  local batch = operand.folded(p.batch, list, B)
  if batch then p.batch, p.batches, p.m = batch, 1, batch.rows end
end

-- Returns a new problem (see cute.ops.choose) with the extents M, N and K and
-- the batch modes of a product.
local function extents(all, batch)
  local p = {batch = batch, batches = 1, shape = {}, sources = {}}
  for i, n in ipairs(batch) do
    p.batches = p.batches * n
    p.shape[#batch + 1 - i] = n
  end
  p.m, p.k = cute.size(all.A.l, 0), cute.size(all.A.l, 1)
  p.n = cute.size(all.B.l, 0)
  return p
end

local function check_results(p, out)
  local most = math.max(1, #(p.results or {}))
  if #out > most then
    fail("out has %d tensors, but this product has %d result%s", #out, most,
         most > 1 and "s" or "")
  end
end

-- Checks the operands of a call, and returns its problem (see cute.ops.choose).
-- The problem does not keep the operands.
local function problem(call)
  local A, B, C, o, out = call.A, call.B, call.C, call.o, call.out[1]
  check_options(o)
  local all, batch = operands(A, B, C, out, o.gated)
  B = all.B.t
  local p = extents(all, batch)
  common.gates(p, call, B)
  p.shape[#batch + 1], p.shape[#batch + 2] = p.m, p.columns
  p.a, p.b = plain(A.element_type), plain(B.element_type)
  if int4.is(call.B) then p.b, p.zeros = cute.Int4, o.zeros ~= nil end
  if o.constant and o.constant ~= "B" then
    fail("constant = %q; only \"B\" is possible", o.constant)
  end
  p.constant, p.c = o.constant ~= nil or nil, C ~= nil
  local like, read = common.types(p, call)
  fold(p, call, B, read)
  batch = p.batch
  local dtype = operand.dtype(o, out)
  p.d = plain(out and out.element_type or dtype or C and C.element_type or like)
  check_results(p, call.out)
  common.place(p, call)
  p.A = facts(operand.layout(A.layout, batch), p.a, A.alignment)
  p.B = facts(operand.layout(B.layout, batch), p.b, B.alignment)
  local D = operand.layout(out and out.layout
    or cute.make_layout(p.shape, cute.LayoutRight), batch)
  p.D = facts(D, p.d, out and out.alignment or 256)
  if C then p.sources[1] = source(C, batch) end
  for _, i in ipairs(read) do
    table.insert(p.sources, source(call.captured.values[i], batch, i))
  end
  determinism.look(p, call)
  return p
end

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

local NONE = {}
local known = calls.new()

-- Indices of the arguments that may contain numbers, in the list that
-- `arguments` returns. core.calls identifies a call by this list.
local AT = {f = 5, alpha = 6, beta = 7, scale_a = 8, scale_b = 9}

-- Maps a number to a constexpr, and any other value to false. Numbers that
-- become a constexpr are part of the configuration.
local fixed = setmetatable({}, {__mode = "v", __index = function(t, n)
  t[n] = math.type(n) and cute.constexpr(n) or false
  return t[n]
end})

local function arguments(A, B, C, o, alpha, beta)
  local packed = type(B) == "table" or nil
  -- Without options and packed weights, A, B and C are followed only by nil.
  if o == NONE and not packed then return A, B, C end
  local stream, group = o.stream, o.group
  if type(stream) == "table" then stream = tostring(stream) end
  return A, packed and B.packed or B, C, o.out, o.epilogue, alpha, beta,
    o.scale_a, o.scale_b, o.zeros, group and fixed[group], packed, o.dtype,
    o.tf32, o.gated, o.deterministic, o.batch_invariant, o.like, o.arch,
    o.device, stream, o.constant
end

-- Returns the options of a call whose C has no effect, such as with beta = 0.
-- If D would have had C's type, the options keep it as `dtype`.
local function without(C, o)
  local D = o.out
  if type(D) == "table" then D = D[1] end
  if D or o.dtype or core.typename(C) ~= "tensor" then return o end
  return tensor_op.with(o, {dtype = C.element_type})
end

-- Returns C, options, alpha and beta. Any of them that has no effect becomes
-- nil, such as alpha = 1.
local function normal(C, o)
  if o == NONE then return C, o end
  local alpha, beta = o.alpha, o.beta
  if alpha == 1 then alpha = nil end
  if o.accumulate then
    local D = o.out
    if type(D) == "table" then D = D[1] end
    if not D then
      fail "accumulate = true needs the option out, to which it adds the result"
    end
    if C then
      fail "accumulate = true adds to out and cannot be combined with C"
    end
    C = D
  end
  if beta ~= nil and C == nil then fail "beta is given, but C is not" end
  if beta == 0 then o, C, beta = without(C, o), nil, nil end
  if beta == 1 then beta = nil end
  return C, o, alpha, beta
end

-- Returns C and the options from the arguments of a call, which may omit either
-- of them.
local function ordered(B, C, o)
  if type(B) == "table" and not int4.is(B) then
    fail("B is %s; a tensor or the result of ops.int4 is needed", core.show(B))
  end
  if type(C) == "table" and o == nil then C, o = nil, C end
  if o == nil then return C, NONE end
  for name in next, o do
    if not OPTIONS[name] then check_options(o) end
  end
  return C, o
end

-- Returns C with the extents of D. A vector (N), a single row or a single
-- column is broadcast.
local function spread(A, B, C)
  local packed = int4.is(B)
  if not C or cute.rank(A) < 2 or not packed and cute.rank(B) < 2 then
    return C
  end
  local a, rank, shape, stride = A.shape, cute.rank(A), C.shape, C.stride
  local want = {a[rank - 1], packed and B.n or B.shape[cute.rank(B) - 1]}
  local other = cute.rank(C) == 1
  if other then
    if cute.size(C) ~= 1 and cute.size(C) ~= want[2] then
      fail("B is %s and C is %s: N is %d in one and %d in the other",
           packed and tostring(B) or B.layout, C.layout, want[2], cute.size(C))
    end
    if type(shape) == "table" then shape, stride = shape[1], stride[1] end
    shape, stride = {1, shape}, {0, stride}
  end
  local n = #shape
  for i = 1, 2 do
    if shape[n - 2 + i] == 1 and want[i] ~= 1 then
      shape[n - 2 + i], stride[n - 2 + i], other = want[i], 0, true
    end
  end
  if not other then return C end
  for i = n == 2 and rank - 2 or 0, 1, -1 do  -- batches
    table.insert(shape, 1, cute.size(a[i]))
    table.insert(stride, 1, 0)
  end
  return cute.make_tensor(C.iterator, cute.make_layout(shape, stride))
end

-- Returns a table with the operands and options of a call, in the form that
-- cute.ops.plan accepts.
local function call_of(A, B, C, o, alpha, beta)
  check_options(o)
  local out, f = o.out, o.epilogue
  return {A = A, B = B, C = spread(A, B, C), o = o, alpha = alpha, beta = beta,
          out = type(out) == "table" and out or {out}, f = f, at = AT,
          captured = f and capture.of(f)}
end

-- For an empty K, whose sum is 0: returns operands with zeros along K, and
-- options for them. Returns nil if K is not empty.
local function with_depth(A, B, o, beta)
  if not (operand.is_flat(A) and operand.is_flat(B)) then return nil end
  local rest = scales.without_blocks(o)
  rest.alpha, rest.beta, rest.accumulate = nil, beta, nil
  -- A sum over no elements has no accumulation order, so cuBLAS's order is not
  -- needed.
  if o.like == "cublas" then rest.like = nil end
  return operand.deep(A), operand.deep(B), rest
end

-- Runs a call that core.calls could not launch: the configuration is new, or no
-- prepared launch fits the arguments. Records the launches for later calls.
local function run(A, B, C, o, alpha, beta, plan)
  local deep, other, rest = with_depth(A, B, o, beta)
  if deep then return gemm.gemm(deep, other, C, rest) end
  local call = call_of(A, B, C, o, alpha, beta)
  if not plan then
    local p = problem(call)
    plan = plans.of(p, call)
    known:add(plan, arguments(A, B, C, o, alpha, beta))
  end
  return plan:run(call, function(ready)
    known:ready(ready, arguments(A, B, C, o, alpha, beta))
  end)
end

local function finish(A, B, C, o, alpha, beta, launched, ...)
  if not launched then return run(A, B, C, o, alpha, beta, ...) end
  return calls.results(o.out, ...)
end

--- Computes D = alpha A B^T + beta C and applies an epilogue; see docs/ops.md.
---@param A any (...,M,K)
---@param B any (...,N,K)
---@param C? any (...,M,N)
---@param o? table
---@return any D (...,M,N), and further results of the epilogue
function gemm.gemm(A, B, C, o)
  local alpha, beta
  C, o = ordered(B, C, o)
  C, o, alpha, beta = normal(C, o)
  return finish(A, B, C, o, alpha, beta,
                known(arguments(A, B, C, o, alpha, beta)))
end

--- Returns the problem (see cute.ops.choose) of a call of gemm with these
-- operands.
function gemm.problem(A, B, o, C) return problem(call_of(A, B, C, o)) end

--- Returns the data that the tuner (`cutelua tune`) needs for these operands:
-- the problem, its candidates, and the call in the form that cute.ops.plan
-- accepts.
function gemm.offers(A, B, o, C)
  local alpha, beta
  C, o, alpha, beta = normal(C, o)
  local call = call_of(A, B, C, o, alpha, beta)
  local p = problem(call)
  return p, choose.list(p), call
end

--- Describes the kernel that gemm would use for the same arguments. Returns a
-- table with the fields of choice.explained in cutelua.text.choice. tostring
-- returns the table's text, and its method trace() the traced kernel.
function gemm.explain(A, B, C, o)
  local alpha, beta
  C, o = ordered(B, C, o)
  C, o, alpha, beta = normal(C, o)
  local deep, other, rest = with_depth(A, B, o, beta)
  if deep then return gemm.explain(deep, other, C, rest) end
  local call = call_of(A, B, C, o, alpha, beta)
  return plans.explained(problem(call), call)
end

return gemm
-- SPDX-License-Identifier: MIT
