--- Checks IntTuples, layouts, swizzles and the errors of rejected calls against
-- golden data.
--
-- Registers golden.ops.int_tuple, .layout, .swizzle and .inadmissible. Each
-- parses the argument strings, calls the operation by its CuTe name, and
-- compares the printed result and its table with the data.
local core = require "cute.core"
local definition = require "spec.golden.definition"
local golden = require "spec.golden"
local smem = require "cute.smem"

local CONSTANT = {LayoutLeft = core.LayoutLeft, LayoutRight = core.LayoutRight}

local function value(x)
  if type(x) ~= "string" then return x end
  return CONSTANT[x] or core.parse(x)
end

local function values(args)
  local list = {n = #args}
  for i, x in ipairs(args) do list[i] = value(x) end
  return list
end

local function is_layout(x) return core.typename(x) == "layout" end

-- Reports whether l(0), l(1), ... equal the values of the list `want`.
local function same_table(l, want)
  for i, w in ipairs(want) do
    local v = l(i - 1)
    if v ~= w and tostring(v) ~= w then
      return false, ("%s: at %d %s instead of %s"):format(l, i - 1, v, w)
    end
  end
  return true
end

-- Reports whether our make_fragment_like is the same function of the index as
-- CuTe's, and has a shape congruent with the argument's. (CuTe's result has a
-- differently nested shape.)
local function congruent_form(case, got)
  if case.op ~= "make_fragment_like" then return false end
  local l = value(case.args[1])
  return core.rank(l) == 2 and core.congruent(got.shape, l.shape) and
    core.get_nonswizzle_portion(got):equals(value(case.out))
end

local function show(x) return type(x) == "boolean" and x or tostring(x) end

-- Reports whether our result `got`, and the offset if the case has one, agree
-- with the case. If not, also returns our result as text.
local function compare(case, got, offset)
  local want = case.out
  if type(want) ~= "string" then
    if got ~= want then return false, show(got) end
    return true
  end
  if tostring(got) ~= want then
    if is_layout(got) and congruent_form(case, got) then return true end
    if is_layout(got) and case.table and #want > 2 then
      local same = same_table(got, case.table)
      return false, tostring(got) ..
                    (same and " (the same function)" or " (another function)")
    end
    return false, tostring(got)
  end
  if case.offset and tostring(offset) ~= tostring(case.offset) then
    return false, ("%s with offset %s"):format(got, offset)
  end
  if case.table and is_layout(got) then return same_table(got, case.table) end
  return true
end

-- ---- calls whose names or arguments differ from those of the core ----

local calls = {}

function calls.eval(a) return a[1](a[2]) end
function calls.identity(a) return a[1] end
function calls.append_to_rank(a) return core.append(a[1], a[3], a[2]) end
function calls.prepend_to_rank(a) return core.prepend(a[1], a[3], a[2]) end
function calls.slice(a) return core.slice_(a[2], a[1]) end
function calls.dice(a) return core.dice(a[2], a[1]) end

function calls.make_layout_concat(a)
  return core.make_layout(table.unpack(a, 1, a.n))
end

function calls.slice_and_offset_tile_to_shape(a)
  return core.slice_and_offset(a[1], core.tile_to_shape(a[2], a[3]))
end

function calls.apply_list(a)
  local out = {}
  for i, x in ipairs(a[2]) do out[i] = a[1](x) end
  return out
end

for _, kind in ipairs {"GMMA", "UMMA"} do
  calls[kind .. "_atom"] = function(a) return smem.atom(a[1], a[2], a[3]) end
  calls[kind .. "_atom_flagged"] = function(a)
    return core.get_nonswizzle_portion(smem.atom(a[1], a[2], a[3]))
  end
  calls[kind .. "_atom_swizzle"] = function(a) return smem.swizzle(a[2]) end
  calls[kind .. "_atom_tile_to_shape"] = function(a)
    return core.tile_to_shape(smem.atom(a[1], a[2], a[3]), value(a[4]),
                              value(a[5]))
  end
end

local function is_atom(op) return op:find "^[GU]MMA_atom" end

local function call(op, args)
  local a = is_atom(op) and args or values(args)
  if calls[op] then return calls[op](a) end
  return core[op](table.unpack(a, 1, a.n))
end

local function known(op) return calls[op] ~= nil or core[op] ~= nil end

-- Reports whether our rejection of a case is right: the result in the data
-- contradicts the operation's definition.
local function declined(case, message)
  return tostring(message):find("[inadmissible]", 1, true) ~= nil and
    definition.holds(case.op, values(case.args), value(case.out)) == false
end

local function run(case)
  local ok, got, offset = pcall(call, case.op, case.args)
  if not ok and declined(case, got) then return "declined" end
  if not ok then error(got, 0) end
  if case.op == "apply_list" then
    for i, w in ipairs(case.out) do
      if got[i] ~= w then
        return false, ("%s at %s"):format(got[i], case.args[2][i])
      end
    end
    return true
  end
  return compare(case, got, offset)
end

for _, file in ipairs {"int_tuple", "layout", "swizzle"} do
  golden.ops[file] = setmetatable({}, {__index = function(_, op)
    return known(op) and run or nil
  end})
end

-- ---- calls that CuTe rejects ----

-- Families of ops that this module checks; modules such as atoms.lua check
-- others.
local OURS = {int_tuple = true, layout = true, swizzle = true}

-- Checks for operations in which CuTe's assertions fail although a correct
-- result exists. Each one reports whether our result is correct.
local right = {}

-- Checks that got(i) == a(b(i)) for all i in the domain of b or, if b is a
-- swizzle, of a.
function right.composition(a, got)
  local A, B = a[1], a[2]
  if not (is_layout(A) and is_layout(got)) then return false end
  if not is_layout(B) and not tostring(B):find "^Sw<" then return false end
  local n = core.size(is_layout(B) and B or A)
  for i = 0, n - 1 do
    if got(i) ~= A(B(i)) then return false end
  end
  return core.size(got) == n
end

-- Checks that a(r(i)) == i, and that r has as many elements as the inverse
-- without the swizzle.
function right.right_inverse(a, got)
  local A = a[1]
  for i = 0, core.size(got) - 1 do
    if A(got(i)) ~= i then return false end
  end
  local plain = core.right_inverse(core.get_nonswizzle_portion(A))
  return core.size(got) == core.size(plain)
end

-- Checks that a(l(a(i))) == a(i) for all i, where l = got.
function right.left_inverse(a, got)
  local A = a[1]
  for i = 0, core.size(A) - 1 do
    if A(got(A(i))) ~= A(i) then return false end
  end
  return true
end

local function values_of(l)
  local list = {}
  for i = 0, core.size(l) - 1 do list[i + 1] = l(i) end
  return list
end

-- CuTe rejects negative strides although a complement exists. Checks that the
-- complement's offsets are increasing, and that its copies of a's offsets do
-- not overlap.
function right.complement(a, got)
  local seen, last = {}, -1
  for _, c in ipairs(values_of(got)) do
    if c <= last then return false end
    last = c
    for _, v in ipairs(values_of(core.filter(a[1]))) do
      if seen[v + c] then return false end
      seen[v + c] = true
    end
  end
  return tostring(a[1]):find "-" ~= nil
end

-- Products are compared with the definition (definition.holds), for any order
-- of modes.
for name in ([[logical zipped tiled flat blocked raked]]):gmatch "%a+" do
  local op = name .. "_product"
  right[op] = function(a, got) return definition.holds(op, a, got) end
end

-- For divides, checks that all elements occur, and that the tile and the rest
-- have the right coordinates.
for name in ([[logical zipped tiled flat]]):gmatch "%a+" do
  local op = name .. "_divide"
  right[op] = function(a, got)
    local A, T = a[1], a[2]
    if not is_layout(T) then return false end
    if not definition.holds(op, a, got) then return false end
    local rest, n = core.complement(T, core.coalesce(A).shape), core.size(T)
    for i = 0, core.size(got) - 1 do
      local at = T(i % n) + rest(i // n)
      if at < core.size(A) and got(i) ~= A(at) then return false end
    end
    return true
  end
end

local function refused(case)
  if not OURS[case.file] then return nil end
  if not known(case.op) then return nil end
  local ok, got = pcall(call, case.op, case.args)
  if not ok then
    local kind = tostring(got):match "%[([%w-]+)%]"
    if kind == nil or kind == "internal" then return false, got end
    return true
  end
  if case.how == "no_compile" then return true end
  local check = right[case.op]
  if check and check(values(case.args), got) then return true end
  return false, ("accepted: %s"):format(got)
end

local others = golden.ops.inadmissible or {}
golden.ops.inadmissible = setmetatable({}, {__index = function(_, op)
  return function(case)
    if OURS[case.file] then return refused(case) end
    local check = others[op]
    if check then return check(case) end
    return nil
  end
end})

return golden.ops
-- SPDX-License-Identifier: MIT
