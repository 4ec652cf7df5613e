--- Products of groups in one launch: the experts of a mixture, of which each
-- row of A has one, or a list of products.
--
-- How many rows an expert has is known on the device alone: the host neither
-- reads it nor waits for it. Calls are known as those of ops.gemm are.
local core = require "cute.core"
local cute = require "cute"
local calls = require "cute.ops.calls"
local capture = require "cute.ops.capture"
local choose = require "cute.ops.choose"
local epilogue = require "cute.ops.epilogue"
local gemm = require "cute.ops.gemm"
local operand = require "cute.ops.operand"
local plans = require "cute.ops.plan"
local promise = require "cute.ops.promise"
local scales = require "cute.ops.scales"
local tiles = require "cute.tiles"

local grouped = {}

local WHAT = "ops.grouped_gemm"

local fail = operand.fail

local OPTIONS = {
  alpha = "number", out = "tensor", deterministic = "boolean",
  batch_invariant = "boolean",
  dtype = "dtype string", tf32 = "boolean", expected_m = "integer",
  device = "string table device", arch = "string", stream = "stream table",
  epilogue = "function", gated = "boolean", seed = "integer",
  scale_a = "number tensor", scale_b = "number tensor", group = "integer"}

---------------------------------------------------------------------------
-- Experts
---------------------------------------------------------------------------

local function check_tensor(name, t, rank, modes)
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  elseif cute.rank(t) ~= rank then
    fail("%s is %s; %s is needed", name, core.show(t), modes)
  end
end

-- Extents of x and y that are one: modes of the user's, from 1 on.
local function check_same(mode, x, a, i, y, b, j)
  local m, n = cute.size(a, i - 1), cute.size(b, j - 1)
  if m ~= n then
    fail("%s is %s and %s is %s: %s of %d and of %d do not agree", x, a.layout,
         y, b.layout, mode, m, n)
  end
end

-- Offsets (E+1), or counts (E).
local function check_where(ragged, t, B)
  local name = ragged == "rows" and "offsets" or "counts"
  check_tensor(name, t, 1, ragged == "rows" and "(E+1)" or "(E)")
  if t.element_type ~= cute.i32 and t.element_type ~= cute.i64 then
    fail("%s are of %s; i32 or i64 is needed", name, t.element_type)
  end
  local want = cute.size(B, 0) + (ragged == "rows" and 1 or 0)
  if cute.size(t) ~= want then
    fail("%s are %s and B is %s: %d numbers are needed for %d groups%s", name,
      t.layout, B.layout, want, cute.size(B, 0), ragged == "rows"
      and ": where each begins, and the last one's end" or "")
  end
end

-- What a call asks for, checked: see cute.ops.choose.
local function problem(call)
  local A, B, o, D = call.A, call.B, call.o, call.out[1]
  local masked = core.typename(A) == "tensor" and cute.rank(A) == 3
  check_tensor("A", A, masked and 3 or 2, "(M,K), or (E,M,K) with counts,")
  check_tensor("B", B, 3, "(E,N,K)")
  local ragged = masked and "masked" or "rows"
  check_where(ragged, call.where, B)
  local m, k = masked and 2 or 1, masked and 3 or 2  -- modes of A
  if masked then check_same("E", "A", A, 1, "B", B, 1) end
  check_same("K", "A", A, k, "B", B, 3)
  local E = cute.size(B, 0)
  local p = {ragged = ragged, batch = {E}, batches = E, m = cute.size(A, m - 1),
             n = cute.size(B, 1), k = cute.size(B, 2), c = false,
             gated = o.gated or nil, arch = nil}
  if p.gated and p.n % 2 ~= 0 then
    fail("B is %s: with gates it has 2 N rows", B.layout)
  elseif p.gated and not call.f then
    fail "gated wants an epilogue of (gate, up, at)"
  elseif p.gated and (call.alpha or o.scale_a or o.scale_b) then
    fail "with gates the epilogue does what factors would"
  end
  p.columns = p.gated and p.n // 2 or p.n
  p.shape = masked and {E, p.m, p.columns} or {p.m, p.columns}
  p.expected = o.expected_m
    or masked and p.m or math.max(tiles.count(p.m, E), 1)
  if p.expected < 1 then fail("expected_m = %d rows", p.expected) end
  p.a, p.b = operand.plain(A.element_type), operand.plain(B.element_type)
  p.tf32 = o.tf32 or A.element_type == cute.tf32 or nil
  local like
  p.sums, like = operand.sums_of(p.a, p.b)
  scales.look(p, o)
  if p.value ~= p.sums then like = cute.bf16 end
  if call.f then
    local made = epilogue.look(p, call.f)
    like = made ~= p.value and made or like
    p.fused = true
  end
  local layout = cute.make_layout(p.shape, cute.LayoutRight)
  if D then
    check_tensor("out", D, masked and 3 or 2, masked and "(E,M,N)" or "(M,N)")
    for i, extent in ipairs(p.shape) do
      if cute.size(D, i - 1) ~= extent then
        fail("out is %s; (%s) is needed", D.layout, table.concat(p.shape, ","))
      end
    end
    layout = D.layout
  end
  p.d = operand.plain(D and D.element_type or o.dtype
    and core.find_dtype(tostring(o.dtype)) or like)
  p.device, p.place = operand.device(A, o), A.device
  p.arch, p.sm = p.device.arch, p.device.sm
  p.sms = p.device.info and p.device.info.sms or 132
  local rows = masked and p.batch or {}
  p.A = operand.facts(operand.layout(A.layout, rows), p.a, A.alignment)
  p.B = operand.facts(operand.layout(B.layout, p.batch), p.b, B.alignment)
  p.D = operand.facts(operand.layout(layout, rows), p.d,
                      D and D.alignment or 256)
  promise.look(p, call)
  return p
end

-- The simulator's memory can be read: what is wrong with offsets and counts is
-- told.
local function check_numbers(plan, call)
  if plan.device.kind ~= "sim" or call.where.device ~= "host" then return end
  local t, m, before = call.where, plan.most, 0
  local name = plan.ragged == "rows" and "offsets" or "counts"
  for i = 0, cute.size(t) - 1 do
    local x = t(i)
    if x < 0 or x > m then
      fail("%s[%d] is %d: 0 to %d rows are possible", name, i, x, m)
    elseif name == "offsets" and x < before then
      fail("offsets[%d] is %d, behind %d: groups follow each other", i, x,
           before)
    end
    before = x
  end
end

local NONE = {}
local known = calls.new()

-- Places of numbers in a call's arguments, as known takes them.
local AT = {f = 5, alpha = 6, scale_a = 7, scale_b = 8}

-- Numbers that are part of a configuration.
local function fixed(n) return math.type(n) and cute.constexpr(n) end

local function arguments(A, B, where, o)
  local alpha, stream = o.alpha, o.stream
  if alpha == 1 then alpha = nil end
  if type(stream) == "table" then stream = tostring(stream) end
  return A, B, where, o.out, o.epilogue, alpha, o.scale_a, o.scale_b,
    fixed(o.group), fixed(o.expected_m), o.dtype, o.tf32, o.gated,
    o.deterministic, o.batch_invariant, o.arch, o.device, stream
end

-- A call as plans take it: see cute.ops.plan.
local function call_of(A, B, where, o)
  operand.check_options(WHAT, OPTIONS, o)
  local f, alpha = o.epilogue, o.alpha
  if alpha == 1 then alpha = nil end
  return {A = A, B = B, where = where, o = o, out = {o.out}, f = f, at = AT,
          alpha = alpha, captured = f and capture.of(f)}
end

local function plan_of(call)
  local p = problem(call)
  local plan = plans.new(p, choose.must(p), call)
  plan.ragged, plan.most = p.ragged, p.m
  return plan
end

-- Lua runs it, and makes what it launches known.
local function run(A, B, where, o, plan)
  local call = call_of(A, B, where, o)
  if not plan then
    plan = plan_of(call)
    known:add(plan, arguments(A, B, where, o))
  end
  check_numbers(plan, call)
  return plan:run(call, function(ready)
    known:ready(ready, arguments(A, B, where, o))
  end)
end

local function finish(A, B, where, o, launched, ...)
  if not launched then return run(A, B, where, o, ...) end
  if o.out then return o.out, ... end
  return ...
end

---------------------------------------------------------------------------
-- Lists
---------------------------------------------------------------------------

-- Products of any shapes, one by one.
local function list(problems, o)
  o = o or NONE
  local out = {}
  for i, x in ipairs(problems) do
    if type(x) ~= "table" then
      fail("problem %d is %s; {A, B} or {A, B, D} is needed", i, core.show(x))
    end
    local opts = {out = x[3]}
    for name, v in pairs(o) do opts[name] = v end
    out[i] = gemm.gemm(x[1], x[2], nil, opts)
  end
  return out
end

--- D_g = A_g B_g^T for groups of rows: see docs/ops.md.
---@param A any (M,K) with offsets, (E,M,K) with counts; or a list of
-- {A, B[, D]}, with the options next
---@param B any (E,N,K)
---@param where any offsets (E+1) or counts (E), of i32 or i64 on the device
---@param o? table
---@return any D (M,N) or (E,M,N), and further results of the epilogue; of a
-- list the list of results
function grouped.grouped_gemm(A, B, where, o)
  if type(A) == "table" then return list(A, B) end
  o = o or NONE
  return finish(A, B, where, o, known(arguments(A, B, where, o)))
end

--- What grouped_gemm would do with the same arguments: see gemm.explain.
function grouped.explain(A, B, where, o)
  local call = call_of(A, B, where, o or NONE)
  local p = problem(call)
  local c = choose.must(p)
  return choose.explained(p, c, function()
    return plans.new(p, c, call):trace(call)
  end)
end

return grouped
