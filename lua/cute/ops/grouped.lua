--- Computes the products of groups in one launch. The rows of A belong to
-- groups, such as the experts of a mixture; or A is a list of products.
--
-- Only the device knows how many rows each expert has. The host neither reads
-- these numbers nor waits for them. Calls are cached like those of ops.gemm.
local common = require "cute.ops.problem"
local core = require "cute.core"
local cute = require "cute"
local calls = require "cute.ops.calls"
local capture = require "cute.ops.capture"
local epilogue = require "cute.ops.epilogue_function"
local gemm = require "cute.ops.gemm"
local gemm_sm90 = require "kernels.gemm_sm90"
local operand = require "cute.ops.operand"
local sum_order = require "cute.ops.sum_order"
local plans = require "cute.ops.plan"
local determinism = require "cute.ops.determinism"
local scales = require "cute.ops.scales"
local sign = require "cute.lang.signature"
local sm90 = require "cute.ops.family.sm90"
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
grouped.OPTIONS = OPTIONS

---------------------------------------------------------------------------
-- Experts
---------------------------------------------------------------------------

local function check_tensor(name, t, rank, modes)
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  elseif cute.rank(t) ~= rank then
    fail("%s is %s; %s is needed", name, core.show(t), modes)
  end
  operand.check_strides(name, t, math.min(rank, 2))
end

-- Checks that mode i of x and mode j of y have equal extents. Modes are counted
-- from 1.
local function check_same(mode, x, a, i, y, b, j)
  local m, n = cute.size(a, i - 1), cute.size(b, j - 1)
  if m ~= n then
    fail("%s is %s and %s is %s: %s is %d in one and %d in the "
      .. "other", x, a.layout,
         y, b.layout, mode, m, n)
  end
end

-- Checks the tensor that divides the rows among groups. It has offsets (E+1) or
-- counts (E), where E is the number of groups.
local function check_where(ragged, t, B)
  local name = ragged == "rows" and "offsets" or "counts"
  check_tensor(name, t, 1, ragged == "rows" and "(E+1)" or "(E)")
  if t.element_type ~= cute.i32 and t.element_type ~= cute.i64 then
    fail("%s have type %s; i32 or i64 is needed", name, t.element_type)
  end
  local want = cute.size(B, 0) + (ragged == "rows" and 1 or 0)
  if cute.size(t) ~= want then
    fail("%s are %s and B is %s: %d numbers are needed for %d groups%s", name,
      t.layout, B.layout, want, cute.size(B, 0), ragged == "rows"
      and ": the start of each, and the end of the last" or "")
  end
end

-- Checks the operands of a call, and returns its problem (see cute.ops.choose).
local function problem(call)
  local A, B, o, D = call.A, call.B, call.o, call.out[1]
  local masked = core.typename(A) == "tensor" and cute.rank(A) == 3
  check_tensor("A", A, masked and 3 or 2, "(M,K), or (E,M,K) with counts,")
  check_tensor("B", B, 3, "(E,N,K)")
  local ragged = masked and "masked" or "rows"
  check_where(ragged, call.where, B)
  -- Positions of M and K among the modes of A.
  local m, k = masked and 2 or 1, masked and 3 or 2
  if masked then check_same("E", "A", A, 1, "B", B, 1) end
  check_same("K", "A", A, k, "B", B, 3)
  local E = cute.size(B, 0)
  local p = {ragged = ragged, batch = {E}, batches = E, m = cute.size(A, m - 1),
             n = cute.size(B, 1), k = cute.size(B, 2), c = false}
  common.gates(p, call, B)
  p.shape = masked and {E, p.m, p.columns} or {p.m, p.columns}
  p.expected = o.expected_m
    or masked and math.max(p.m, 1)
    or math.max(tiles.count(p.m, math.max(E, 1)), 1)
  if p.expected < 1 then fail("expected_m = %d rows", p.expected) end
  p.a, p.b = operand.plain(A.element_type), operand.plain(B.element_type)
  local like = common.types(p, call)
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
  local dtype = operand.dtype(o, D)
  p.d = operand.plain(D and D.element_type or dtype or like)
  common.place(p, call)
  local rows = masked and p.batch or {}
  p.A = operand.facts(operand.layout(A.layout, rows), p.a, A.alignment)
  p.B = operand.facts(operand.layout(B.layout, p.batch), p.b, B.alignment)
  p.D = operand.facts(operand.layout(layout, rows), p.d,
                      D and D.alignment or 256)
  determinism.look(p, call)
  return p
end

-- Checks the values of offsets or counts, but only for the simulator, whose
-- memory the host can read.
local function check_numbers(plan, call)
  if plan.device.kind ~= "sim" or call.where.device ~= "host" then return end
  local t, m, before = call.where, plan.most, 0
  local name = plan.ragged == "rows" and "offsets" or "counts"
  for i = 0, cute.size(t) - 1 do
    local x = t(i)
    if x < 0 or x > m then
      fail("%s[%d] is %d; 0 to %d rows are possible", name, i, x, m)
    elseif name == "offsets" and x < before then
      fail("offsets[%d] is %d, less than the offset before, %d: offsets must "
        .. "not decrease", i, x,
           before)
    end
    before = x
  end
end

local NONE = {}
local known = calls.new()

-- Indices of the arguments that may contain numbers, in the list of arguments
-- that identifies a call.
local AT = {f = 5, alpha = 6, scale_a = 7, scale_b = 8}

-- Returns a number as cute.constexpr, which makes it part of the configuration.
local function fixed(n) return math.type(n) and cute.constexpr(n) end

local function arguments(A, B, where, o)
  local alpha, stream = o.alpha, o.stream
  if alpha == 1 then alpha = nil end
  if type(stream) == "table" then stream = tostring(stream) end
  return A, B, where, o.out, o.epilogue, alpha, o.scale_a, o.scale_b,
    fixed(o.group), fixed(o.expected_m), o.dtype, o.tf32, o.gated,
    o.deterministic, o.batch_invariant, o.arch, o.device, stream
end

-- Returns a table with the operands and options of a call, in the form that
-- cute.ops.plan accepts.
local function call_of(A, B, where, o)
  operand.check_options(WHAT, OPTIONS, o)
  local f, alpha = o.epilogue, o.alpha
  if alpha == 1 then alpha = nil end
  return {A = A, B = B, where = where, o = o, out = {o.out}, f = f, at = AT,
          alpha = alpha, captured = f and capture.of(f)}
end

local function plan_of(call)
  local p = problem(call)
  local plan = plans.of(p, call)
  plan.ragged, plan.most = p.ragged, p.m
  return plan
end

-- Runs a call that core.calls could not launch: the configuration is new, or no
-- prepared launch fits the arguments. Records the launches for later calls.
local function run(A, B, where, o, plan)
  if operand.is_flat(A) and operand.is_flat(B) then  -- see gemm.lua
    local rest = scales.without_blocks(o)
    rest.alpha = nil
    return grouped.grouped_gemm(operand.deep(A), operand.deep(B), where, rest)
  end
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
  return calls.results(o.out, ...)
end

---------------------------------------------------------------------------
-- Lists
---------------------------------------------------------------------------

-- The largest number of problems in one launch. Each problem has tensor maps
-- among the kernel's arguments, and their total size is limited.
local MOST = 64

local function check_problem(i, x, gated)
  if type(x) ~= "table" then
    fail("problem %d is %s; {A, B} or {A, B, D} is needed", i, core.show(x))
  end
  local function name(of) return ("%s of problem %d"):format(of, i) end
  local a, b, d = name "A", name "B", name "D"
  check_tensor(a, x[1], 2, "(M,K)")
  check_tensor(b, x[2], 2, "(N,K)")
  check_same("K", a, x[1], 2, b, x[2], 2)
  if x[3] == nil then return end
  check_tensor(d, x[3], 2, "(M,N)")
  check_same("M", a, x[1], 1, d, x[3], 1)
  if not gated then check_same("N", b, x[2], 1, d, x[3], 2) end
end

-- Raises an error if a D that the user gave overlaps an operand or another D.
local function check_memory(problems)
  local all, names, given = {n = 0}, {}, {}
  for i, x in ipairs(problems) do
    for j, name in ipairs {"A", "B", "D"} do
      if x[j] then
        all.n = all.n + 1
        all[all.n] = x[j]
        names[all.n] = ("%s of problem %d"):format(name, i)
        if j == 3 then given[#given + 1] = all.n end
      end
    end
  end
  if not given[1] then return end
  local _, _, _, together = core.kind(all, 0)
  for _, d in ipairs(together and given or {}) do
    for i = 1, all.n do
      if i ~= d and together[i] == together[d] and together[d] ~= 0 then
        operand.check_shared(names[i], all[i], all[d], names[d])
      end
    end
  end
end

-- The fields that must be equal in all problems of one launch.
local SAME = {"a", "b", "d", "tf32", "arch", "place", "order"}

-- Combines a list of problems into one problem, which one launch of Hopper's
-- kernel computes. Returns nil if the problems need separate launches.
local function all_of(problems, o)
  local all, first
  for i, x in ipairs(problems) do
    local p = gemm.problem(x[1], x[2], {out = x[3], dtype = o.dtype,
      tf32 = o.tf32, device = o.device, arch = o.arch,
      deterministic = o.deterministic, batch_invariant = o.batch_invariant})
    if i == 1 then
      first = p
      all = setmetatable({ragged = "list", batches = #problems, m = 0},
                         {__index = p})
    end
    for _, name in ipairs(SAME) do
      if p[name] ~= first[name] then return nil end
    end
    for _, t in ipairs {p.A, p.B, p.D} do
      if t.stride[2] ~= 1 then return nil end
    end
    if sm90.takes(p) then return nil end
    all.m, all.n = all.m + p.m, math.max(all.n, p.n)
    all.k, all.columns = math.max(all.k, p.k), all.n
  end
  all.expected = tiles.count(all.m, #problems)
  return all
end

-- Returns one launch for all products of a list, as a step of cute.ops.calls.
-- Returns false if one launch cannot compute them.
local function launch_of(problems, o, call)
  local p = not (o.epilogue or o.gated or o.scale_a or o.scale_b or o.group)
    and all_of(problems, o)
  if not p then return false end
  local c
  for _, x in ipairs(sm90.list(p)) do
    x.base = "gemm_sm90"
    if (not c or x.ns < c.ns) and (not p.order or sum_order.of(p, x) == p.order)
    then
      c = x
    end
  end
  if not c then return false end
  local ending = epilogue.new(p, c, call)
  c.options.epilogue = ending.finish
  local made = gemm_sm90(c.options)
  return {made = made, kernel = made.kernel, block = made.block,
          grid = made.grid(p.m, p.columns, p.sms, #problems, p.place),
          cluster = made.cluster, ready = {}, device = p.device, d = p.d,
          place = p.place, ending = ending}
end

local launches, count, KEPT = {}, 0, 256

-- Returns the launch for a list of problems as a step of cute.ops.calls, or
-- false. Caches the steps.
local function step_of(problems, o, call)
  local words = {}
  for i, x in ipairs(problems) do
    words[i] = core.kind_text(x[1].device, x[1], x[2], x[3])
  end
  words[#words + 1] = core.kind_text(call.alpha, o.dtype, o.tf32, o.arch,
    tostring(o.device), o.deterministic, o.batch_invariant,
    o.epilogue ~= nil, o.gated, o.scale_a ~= nil, o.scale_b ~= nil,
    o.group ~= nil)
  local key = table.concat(words, " ")
  if launches[key] == nil then
    if count == KEPT then launches, count = {}, 0 end
    launches[key], count = #problems > 1 and launch_of(problems, o, call),
      count + 1
  end
  return launches[key]
end

local function one_by_one(problems, o, out)
  for _, x in ipairs(problems) do
    local opts = {}
    for name, v in pairs(o) do opts[name] = v end
    opts.out, opts.expected_m = x[3], nil
    local D, more = gemm.gemm(x[1], x[2], nil, opts)
    if more then
      fail("for a list of problems, the epilogue must return exactly one "
        .. "result: D of the current problem")
    end
    out[#out + 1] = D
  end
end

local function at_once(step, problems, call, out)
  local part = {}
  for i, x in ipairs(problems) do
    local D = x[3] or cute.empty({x[1].shape[1], x[2].shape[1]}, step.d,
                                 {device = step.place})
    part[i] = {operand.matrix(x[1], {}), operand.matrix(x[2], {}),
               operand.matrix(D, {})}
    out[#out + 1] = D
  end
  step.known = step.known or step.made.arguments(table.unpack(part[1]))
  step.space = step.made.list(part, step.grid, step.place ~= "host"
    and step.place or nil, step.space)
  local args = table.move(step.known, 1, step.known.n, 1, {n = step.known.n})
  step.ending.more(args, nil, call)
  args.n = args.n + 1
  args[args.n] = step.space
  calls.launch(step, args, {device = step.device, stream = call.o.stream,
                            seed = call.o.seed})
end

local function list(problems, o)
  local call, out = call_of(nil, nil, nil, o or NONE), {}
  if call.o.out then
    fail("option out cannot be combined with a list of problems: give each "
      .. "problem its own D, {A, B, D}")
  end
  sign.list("the list of problems", problems)
  for i, x in ipairs(problems) do check_problem(i, x, call.o.gated) end
  -- The problems without empty operands, and their positions in the list.
  local full, at = {}, {}
  for i, x in ipairs(problems) do
    if cute.size(x[1]) > 0 and cute.size(x[2]) > 0 then
      full[#full + 1], at[#at + 1] = x, i
    else
      local D = {}
      one_by_one({x}, call.o, D)
      out[i] = D[1]
    end
  end
  local made = {}
  for first = 1, #full, MOST do
    local some = table.move(full, first, math.min(first + MOST - 1, #full), 1,
                            {})
    check_memory(some)
    local step = step_of(some, call.o, call)
    if step then at_once(step, some, call, made)
    else one_by_one(some, call.o, made) end
  end
  for k, i in ipairs(at) do out[i] = made[k] end
  return out
end

--- Computes D_g = A_g B_g^T for groups of rows. See docs/ops.md.
---@param A any (M,K) with offsets, (E,M,K) with counts; or a list of {A, B[,
-- D]}, where the second argument has the options
---@param B any (E,N,K)
---@param where any offsets (E+1) or counts (E), of i32 or i64 on the device
---@param o? table
---@return any D (M,N) or (E,M,N), and further results of the epilogue; for a
-- list of products, the list of their results
function grouped.grouped_gemm(A, B, where, o)
  if type(A) == "table" then return list(A, B) end
  o = o or NONE
  return finish(A, B, where, o, known(arguments(A, B, where, o)))
end

--- Describes the kernel that grouped_gemm would use for the same arguments,
-- like gemm.explain.
function grouped.explain_grouped(A, B, where, o)
  local call = call_of(A, B, where, o or NONE)
  return plans.explained(problem(call), call)
end

return grouped
-- SPDX-License-Identifier: MIT
