--- Carries a local's value through a loop or branch: determines which parts of
-- the value change, their types and the known facts about them (such as
-- ranges). A kernel variable holds each part that changes.
--
-- A slot is a location that the body of a loop or branch may change
-- (cute.lang.region); slot.name is its name in the script. A carry is the
-- record of a slot that changes: {sig=, n=, types={}, facts={}, vars={}}, where
-- n is the number of parts. Only parts that change have a type; these become
-- kernel variables.
local core = require "cute.core"

local carrying = {}

-- The largest number of scalars in a table that a loop carries.
local MAX_PARTS = 256

-- Splits x into the scalars that a loop has to carry. Accepts what core.parts
-- accepts, and plain tables of such values. Returns a signature (the structure
-- of x), the scalars, and their names. Returns nil if x cannot be carried.
local function parts(x, depth)
  if type(x) ~= "table" then return core.parts(x) end
  depth = depth or 0
  if getmetatable(x) ~= nil or depth > 4 then return nil end
  local keys, sig, list, names = {}, {}, {}, {}
  for k in next, x do
    if math.type(k) ~= "integer" and type(k) ~= "string" then return nil end
    keys[#keys + 1] = k
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(keys) do
    local s, p, n = parts(x[k], depth + 1)
    if not s or #list + #p > MAX_PARTS then return nil end
    sig[#sig + 1] = ("%s=%s"):format(k, s)
    for i, v in ipairs(p) do
      list[#list + 1] = v
      names[#list] = "_" .. k .. (n and n[i] or s == "scalar" and "" or i)
    end
  end
  return "{" .. table.concat(sig, ",") .. "}", list, names
end

-- Returns a copy of x whose scalars are replaced by the elements of `list`,
-- beginning with list[at]. Also returns the index after the last element that
-- was used.
local function rebuild(x, list, at)
  at = at or 1
  if type(x) ~= "table" then return core.rebuild(x, list, at) end
  local keys, out = {}, {}
  for k in next, x do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(keys) do out[k], at = rebuild(x[k], list, at) end
  return out, at
end

local function kind_of(v)
  local t = core.typename(v)
  if t == "value" or t == "boolean" then return tostring(core.dtype_of(v)) end
  if math.type(v) then return "a Lua " .. math.type(v) end
  if t == "tensor" or t == "vector" then return tostring(v) end
  if t ~= "table" or not parts(v) then return t end
  local kinds = {}
  local _, list = parts(v)
  for i, p in ipairs(list) do kinds[i] = kind_of(p) end
  return "{" .. table.concat(kinds, ", ") .. "}"
end

-- Returns words for an error about two values of the same kind between which a
-- kernel cannot choose: the kind's name and a verb, such as "tensor", "is".
-- Returns nil if the kinds differ, or if only scalars in the values differ. A
-- kernel variable can hold such scalars.
local function chosen(from, to)
  local sig, sig2 = parts(from), parts(to)
  local t = core.typename(from)
  if kind_of(from) ~= kind_of(to) or t == "table" and not (sig and sig2) then
    return nil
  elseif t == "table" then
    if sig:find "tensor" then return "tensors", "holds" end
    return "fields", "has"
  elseif not (sig and sig2) or t == "tensor" then
    return t == "dtype" and "element type" or t, "is"
  end
end

-- Raises an error if the kernel would have to choose between two values at run
-- time and no kernel variable can hold them.
local function choice_error(slot, what, from, to)
  local which, verb = chosen(from, to)
  if not which then return end
  local name = slot.name:find "^result %d" and slot.name
    or "'" .. slot.name .. "'"
  local how, advice = "depend on a traced condition", ("use each %s inside its "
    .. "branch"):format((which:gsub("s$", "")))
  if what:find "loop" then
    how, advice = "change in a traced loop", "unroll the loop with Lua's for"
  end
  local by = which:find "tensor" and "between coordinates or elements of one "
    .. "tensor"
    or "with Lua's if, by a condition known while tracing"
  core.fail("loop-type-changed", ("which %s %s %s cannot %s\n  %s, or select "
    .. "%s"):format(which, name, verb, how, advice, by))
end

-- Raises the error for two branches that return different kinds of values.
local function result_error(slot, what, yes, no)
  local advice = "both branches must return the same type, and tensors of the "
    .. "same layout and memory; :to(dtype) converts"
  if not parts(yes) or not parts(no) then
    advice = "only numbers, booleans, traced values, tensors, vectors and "
      .. "plain tables of them may differ; return the same value of any other "
      .. "kind from both branches"
  end
  core.fail("loop-type-changed", ("%s is %s in one branch of %s and %s in the "
    .. "other\n  %s"):format(slot.name, kind_of(yes), what, kind_of(no),
    advice))
end

local function type_error(slot, what, from, to)
  choice_error(slot, what, from, to)
  if slot.result then result_error(slot, what, from, to) end
  local kind = slot.t and "field" or "local"
  local advice = "convert it with :to(dtype), or use another " .. kind
  if not parts(from) or not parts(to) then
    if type(from) == "table" and type(to) == "table" then
      core.fail("loop-type-changed", ("%s '%s' holds a different table at the "
        .. "end of %s than at its start\n  keep one table and change its "
        .. "fields"):format(kind, slot.name, what))
    end
    advice = "only numbers, booleans, traced values, tensors, vectors and "
      .. "plain tables of them can change in a traced loop or branch: keep the "
      .. "changing state in those"
  end
  core.fail("loop-type-changed", ("%s '%s' changes from %s to %s in %s\n  %s")
    :format(kind, slot.name, kind_of(from), kind_of(to), what, advice))
end

local function wide(n) return n > 0x7fffffff or n < -0x80000000 end

-- Returns the type of a kernel variable that can hold both a and b, two values
-- of the same local. Returns i64 for an offset or extent of a tensor that has
-- type i32 in one value and i64 in the other.
local function joint_type(slot, what, sig, a, b)
  local ta, tb = core.dtype_of(a), core.dtype_of(b)
  if ta and tb then
    if ta == tb then return ta end
    if sig:find "^tensor" then return core.i64 end
    type_error(slot, what, a, b)
  end
  local t = ta or tb
  local number = ta and b or a
  if t then
    if math.type(number) == "float" and not t.is_float then
      type_error(slot, what, a, b)
    end
    return t
  end
  if math.type(a) == "float" or math.type(b) == "float" then
    return core.f32
  end
  return (wide(a) or wide(b)) and core.i64 or core.i32
end

---------------------------------------------------------------------------
-- Kernel variables of one carried local
---------------------------------------------------------------------------

local function carry_part(slot, what, carry, i, a, b)
  local t = joint_type(slot, what, carry.sig, a, b)
  carry.types[i] = t
  if core.truth(a) or core.truth(b) then carry.truth = true end
  if t.is_integer then
    carry.facts[i] = core.fact_join(core.fact(a), core.fact(b))
  end
end

-- Returns the carry of a local that changes from `init` to `now`: a record of
-- the parts of its value that change (see the top of this file).
local function new_carry(slot, what, init, now)
  local sig, a = parts(init)
  local sig2, b = parts(now)
  if not sig or sig ~= sig2 then type_error(slot, what, init, now) end
  local carry = {sig = sig, n = #a, types = {}, facts = {}}
  for i = 1, #a do
    if not core.same(a[i], b[i]) then
      carry_part(slot, what, carry, i, a[i], b[i])
    end
  end
  return carry
end

-- Reports whether the kernel variables of a carry, recorded in an earlier pass
-- of tracing, can hold this initial value.
local function fits(carry, init)
  local sig, a = parts(init)
  if sig ~= carry.sig then return false end
  for i = 1, carry.n do
    local want, t = carry.types[i], core.dtype_of(a[i])
    if want and t and t ~= want then return false end
    if want and not t and math.type(a[i]) == "float" and not want.is_float then
      return false
    end
  end
  return true
end

-- Returns the suffix that the kernel variable for part i of a local's value has
-- after the local's name.
local function part_name(sig, i)
  if sig == "scalar" then return "" end
  return sig:find "^tensor" and i == 1 and "_off" or "_" .. i - 1
end

local function declare(slot, carry, init)
  local _, a, names = parts(init)
  carry.vars = {}
  for i = 1, carry.n do
    if not carry.types[i] then goto continue end
    local name = slot.name:gsub("[^%w_]+", "_")
      .. (names and names[i] or part_name(carry.sig, i))
    if carry.facts[i] then
      local f = core.fact(a[i])
      if not core.fact_within(f, carry.facts[i]) then
        carry.facts[i] = core.fact_join(f, carry.facts[i])
      end
    end
    carry.vars[i] = core.var(core.cvt(a[i], carry.types[i]), nil, name)
    ::continue::
  end
end

local function read(carry, init, final)
  local _, list = parts(init)
  for i = 1, carry.n do
    local v, f = carry.vars[i] and core.vget(carry.vars[i]), carry.facts[i]
    if v and f then core.assume(v, f.lo, f.hi, f.div, true) end
    if v and final then v = core.cvt(v, carry.types[i]) end
    if carry.types[i] == core.boolean then
      core.carried(v, carry.truth ~= nil)
    end
    if v then list[i] = v end
  end
  return (rebuild(init, list))
end

-- Compares a local's value at the end of a body with its carry, the types and
-- facts known so far. Widens the carry if necessary; then returns true, because
-- the body must be traced again.
local function learn(slot, what, carry, head, now)
  local sig, b = parts(now)
  if sig ~= carry.sig then type_error(slot, what, head, now) end
  local _, a = parts(head)
  local again = false
  for i = 1, carry.n do
    local t = carry.types[i]
    if not t and not core.same(a[i], b[i]) then
      carry_part(slot, what, carry, i, a[i], b[i])
      again = true
    end
    t = carry.types[i]
    if not t then goto continue end
    local tb = core.dtype_of(b[i])
    if core.truth(b[i]) then carry.truth = true end
    if tb and tb ~= t and carry.sig:find "^tensor" then
      again = again or t ~= core.i64
      carry.types[i] = core.i64
    elseif tb and tb ~= t or not tb and math.type(b[i]) == "float"
      and not t.is_float then
      type_error(slot, what, head, now)
    end
    local f = carry.facts[i]
    if f and not core.fact_within(core.fact(b[i]), f) then
      carry.facts[i] = core.fact_widen(f, core.fact(b[i]))
      again = true
    end
    ::continue::
  end
  return again
end

local function write(carry, now)
  local _, b = parts(now)
  for i = 1, carry.n do
    local var = carry.vars[i]
    if var then core.vset(var, core.cvt(b[i], carry.types[i])) end
  end
end

carrying.parts, carrying.rebuild = parts, rebuild
carrying.type_error = type_error
carrying.part, carrying.new, carrying.fits = carry_part, new_carry, fits
carrying.declare, carrying.read = declare, read
carrying.learn, carrying.write = learn, write

return carrying
-- SPDX-License-Identifier: MIT
