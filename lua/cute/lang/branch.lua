--- Branches of a kernel: `cute.when` with functions or as the iterator of a
-- `for`; `cute.cases` for branches with an else.
--
-- Both branches are traced. After the branch, a variable that it changes has
-- the value from the branch that the thread took. The same holds for the
-- results of functions given to cute.when. Branches are traced in passes like
-- loops (cute.lang.region): the first pass finds the variables that change.
local core = require "cute.core"
local bytecode = require "cute.lang.bytecode"
local carrying = require "cute.lang.loop_carried"
local fields = require "cute.lang.fields"
local regions = require "cute.lang.region"
local sign = require "cute.lang.signature"
local undefined = require "cute.lang.undefined"
local unused = require "cute.lang.unused"

local parts, rebuild = carrying.parts, carrying.rebuild
local type_error = carrying.type_error
local get, set = regions.get, regions.set

local branch = {}

---------------------------------------------------------------------------
-- Values of a slot (a variable that a branch may change) after two branches
---------------------------------------------------------------------------

-- Records the value that a slot (a variable or field that the branches may
-- change) has at the end of a branch. `field` names the branch: "yes" or "no".
local function note_end(slot, field, now)
  slot[field] = now
  if not core.same(slot.init, now) then
    slot[field .. "_parts"] = table.pack(parts(now))
    if slot.carry and not undefined.none(now) then
      carrying.write(slot.carry, now)
    end
  end
end

-- Returns the signature (see carrying.parts) and the scalars of the value that
-- a slot has at the end of a branch.
local function left(slot, field)
  if core.same(slot.init, slot[field]) then return parts(slot.init) end
  return table.unpack(slot[field .. "_parts"], 1, 2)
end

-- Returns the carry of a slot, which is a variable or field (see
-- cute.lang.loop_carried). The carry holds the types that the slot's values
-- have at the ends of the two branches, and the known facts about these values.
local function merge_carry(slot, what)
  local sig, init = parts(slot.init)
  local sa, pa = left(slot, "yes")
  local sb, pb = left(slot, "no")
  if not sig or sa ~= sig then type_error(slot, what, slot.init, slot.yes) end
  if sb ~= sig then type_error(slot, what, slot.init, slot.no) end
  local carry = {sig = sig, n = #init, types = {}, facts = {}}
  for i = 1, #init do
    local in_a = not core.same(init[i], pa[i])
    local in_b = not core.same(init[i], pb[i])
    -- Both branches change part i of the value, so the part's value before the
    -- branches does not determine its type.
    if in_a and in_b then
      carrying.part(slot, what, carry, i, pa[i], pb[i])
    elseif in_a or in_b then
      carrying.part(slot, what, carry, i, init[i], in_a and pa[i] or pb[i])
    end
  end
  return carry
end

-- Checks a slot (a variable or field) whose values no kernel variable can hold.
-- Raises an error if the slot's values at the ends of the two branches differ,
-- and the slot is a result of cute.when or both values are strings.
local function check_constant(slot, what)
  local yes, no = slot.yes, slot.no
  if rawequal(yes, no) then return end
  if slot.result or type(yes) == "string" and type(no) == "string" then
    type_error(slot, what, yes, no)
  end
end

-- Gives an initial value to a slot (a variable or field) that was nil before
-- the branch. The value has the type that both branches leave in the slot.
-- Returns false if a branch leaves nil, or if the slot needs no kernel variable
-- or none can hold its value.
local function begin_slot(slot, what)
  if undefined.none(slot.yes) or undefined.none(slot.no) then
    if slot.result then type_error(slot, what, slot.yes, slot.no) end
    local one = slot.yes
    if undefined.none(one) then one = slot.no end
    regions.check_growth(slot, one, what)
    return false
  elseif undefined.is(slot.init) and undefined.equal(slot.yes, slot.no)
    and regions.is_known(slot.yes) then
    return false
  end
  local sig, list = left(slot, "yes")
  if not sig then
    check_constant(slot, what)
    return false
  end
  if left(slot, "no") ~= sig then type_error(slot, what, slot.yes, slot.no) end
  for i, p in ipairs(list) do
    list[i] = core.dtype_of(p) == core.boolean and false or 0
  end
  slot.form, slot.zeros, slot.before = slot.yes, list, slot.init
  -- Each pass over the branch builds a new table for the initial value.
  slot.init = rebuild(slot.form, list)
  return true
end

-- Reports whether a slot holds a result of cute.when that is the same number in
-- both functions and is known while tracing.
local function is_constant(slot)
  return slot.result and not slot.carry and core.same(slot.yes, slot.no)
    and regions.is_known(slot.yes)
end

-- Determines the carry of a slot, a variable or field that a branch changed:
-- types and facts for kernel variables. Returns true if the carry changed,
-- because both branches have to be traced again then.
local function merge(region, slot)
  local what = region.what
  local changed = not (core.same(slot.init, slot.yes)
                       and core.same(slot.init, slot.no))
  if not changed or is_constant(slot) then return false end
  if undefined.none(slot.init) then
    if not begin_slot(slot, what) then return false end
  elseif slot.zeros and (undefined.none(slot.yes) or undefined.none(slot.no))
  -- The slot had a value at the end of a branch in an earlier pass, but in this
  -- pass it is nil there.
  then
    return undefined.differs(region, slot.name)
  elseif slot.no == nil or slot.yes == nil then
    regions.check_growth(slot, nil, what)
  end
  local carry = merge_carry(slot, what)
  local known = slot.carry
  slot.carry = carry
  local more = not known
  for i = 1, known and carry.n or 0 do
    more = more or known.types[i] ~= carry.types[i]
  end
  if more and known then region:tell(slot) end
  if more and not known then region:tell(slot, slot.yes, slot.no) end
  if more then return true end
  -- Keep only the facts about this branch. An earlier branch at this source
  -- position may have recorded other facts, which need not hold here.
  slot.carry, known.facts = known, carry.facts
  return false
end

---------------------------------------------------------------------------
-- Tracing one if / else in passes
---------------------------------------------------------------------------

-- In the functions below, `level` is the stack level, counted from the caller,
-- of the function whose locals the branch may change. The level is ignored if
-- all slots are upvalues.

-- Restores all slots to their values before the branch, and begins to trace it.
local function enter(region, level)
  fields.rewind(region.writes)
  for _, slot in ipairs(region.view.slots) do
    slot.head = slot.init
    -- slot.zeros are only the initial values of kernel variables. For the
    -- script, the slot is still nil when the branch begins.
    if slot.zeros then slot.head = slot.before end
    set(slot, level + 1, slot.head)
  end
  undefined.give(region, function(slot, value) set(slot, level + 3, value) end)
end

local function leave(region, field, level)
  region:check_body()
  region:catch_up()
  for _, slot in ipairs(region.view.slots) do
    note_end(slot, field,
             undefined.now(region, slot, get(slot, level + 1)))
  end
  for _, slot in ipairs(region:new_fields()) do
    slot.yes, slot.no = slot.init, slot.init
    note_end(slot, field, undefined.now(region, slot, rawget(slot.t, slot.k)))
  end
end

-- Begins to trace the branch for a true condition.
local function begin(region, level)
  region:rewind(level + 1)
  region:declare()
  core.open_if(region.cond)
  region.depth = core.region_depth()
  enter(region, level + 1)
end

-- Ends tracing the branch of the true condition, and begins the branch of the
-- false condition.
local function turn(region, level)
  leave(region, "yes", level + 1)
  core.open_else()
  enter(region, level + 1)
end

-- Ends the tracing of the branch for a false condition. Returns true if both
-- branches have to be traced again.
local function again(region, level)
  leave(region, "no", level + 1)
  core.close()
  local more = false
  for _, slot in ipairs(region.view.slots) do
    more = merge(region, slot) or more
  end
  if more and region.given then return undefined.differs(region) end
  return more or undefined.again(region)
end

-- Returns the value that a slot (a variable or field) has after a branch, if
-- the slot was nil before the branch and no kernel variable holds its value.
local function undecided(region, slot)
  local ends = undefined.is(slot.init) and region.first
    and region.first.ends[slot] or slot
  local yes, no = ends.yes, ends.no
  local nothing, neither = undefined.none(yes), undefined.none(no)
  if not nothing and not neither then
    if undefined.equal(yes, no) then return yes end
    return undefined.either(region, slot, yes, no)
  elseif nothing and neither then
    if core.same(slot.init, yes) then yes = no end
    if yes == nil or core.same(slot.init, yes) then return slot.init end
    return yes
  end
  local known = not slot.mixed and undefined.agrees(slot.init, yes, no)
  local value = yes
  if nothing then value = no end
  return undefined.after(region, slot, value, known)
end

-- Sets locals and fields to their values after the branch.
local function finish(region, level)
  region:check_tables()
  for _, slot in ipairs(region.view.slots) do
    if slot.carry then
      set(slot, level + 1, carrying.read(slot.carry, slot.init, true))
    elseif undefined.none(slot.init) and not slot.result then
      local value = undecided(region, slot)
      if not rawequal(value, get(slot, level + 1)) then
        set(slot, level + 1, value)
      end
    elseif not core.same(slot.init, slot.yes) and slot.yes ~= nil then
      set(slot, level + 1, slot.yes)
    end
  end
  region:finish()
end

---------------------------------------------------------------------------
-- cute.when with functions
---------------------------------------------------------------------------

--- Raises an error if a function passed to cute.when has an empty body or
-- contains only `return`.
---@param what string "cute.when"
---@param f function
---@param g? function
function branch.check_idle(what, f, g)
  local idle, other = bytecode.idle(f), "empty"
  if g then other = bytecode.idle(g) end
  if idle == "return" or other == "return" then
    core.fail("bad-argument", ("%s: the function contains only `return`, which "
      .. "does not leave the kernel\n  write cute.return_if(condition) to "
      .. "leave the kernel, cute.break_if(condition) to leave a "
      .. "loop"):format(what))
  elseif idle and other and what == "cute.when" then
    core.fail("bad-argument", "cute.when: the function is empty, so the "
      .. "condition has no effect")
  end
end

local function values(n)
  return ("%s value%s"):format(n == 0 and "no" or n, n == 1 and "" or "s")
end

-- Raises an error unless both functions of cute.when return the same number of
-- values. n and m are their numbers of values.
local function check_count(n, m, has_g)
  if n == m then return end
  core.fail("bad-argument", ("cute.when: the first function returns %s, %s\n  "
    .. "return the same number of values from both, or assign to a local of "
    .. "the kernel, which keeps its value after the "
    .. "branch"):format(values(n), has_g and "the second " .. values(m)
    or "but there is no second function"))
end

-- Adds a slot for result i of the functions of cute.when. The slot is an
-- upvalue of a small function that is made for it.
local function new_result(region, i)
  local value = nil
  local slot = {f = function() return value end, n = 1, result = true,
                name = "result " .. i, key = "result " .. i}
  region.results[i] = slot
  table.insert(region.view.slots, slot)
end

-- Runs one of the functions of cute.when and records its results as the values
-- that this branch leaves in their slots.
local function run(region, f)
  core.hook(true)
  local results = f and table.pack(f()) or {n = 0}
  core.hook(false)
  for i = 1, results.n do
    if not region.results[i] then new_result(region, i) end
    set(region.results[i], 1, results[i])
  end
  return results.n
end

local function trace_when(cond, f, g)
  core.hook(false)
  local region <close> = regions.open("cute.when",
    regions.call_place "when ", regions.collect(nil, {f, g}))
  region.cond, region.results = cond, {}
  region:start(1)
  local n
  repeat
    begin(region, 1)
    n = run(region, f)
    turn(region, 1)
    check_count(n, run(region, g), g)
  until not again(region, 1)
  finish(region, 1)
  core.hook(true)
  local out = {}
  for i = 1, n do out[i] = get(region.results[i], 1) end
  return table.unpack(out, 1, n)
end

-- Returns a condition as a boolean if its value is known while tracing, else as
-- a traced value.
local function condition(what, cond)
  if core.typename(cond) ~= "value" then
    if type(cond) ~= "boolean" then
      core.fail("bad-argument", ("%s: the condition is %s, not a boolean")
        :format(what, core.typename(cond)))
    end
    return cond
  end
  local known = core.known(cond)
  if known ~= nil and type(known) == "boolean" then return known end
  if core.dtype_of(cond) ~= core.boolean then
    core.fail("type-mismatch", ("%s: the condition is %s, not a boolean")
      :format(what, tostring(core.dtype_of(cond))))
  end
  return cond
end

local function check_function(f, n, optional)
  if type(f) == "function" or optional and f == nil then return end
  core.fail("bad-argument", ("bad argument #%d to 'cute.when' (function "
    .. "expected, got %s)\n  use cute.when(condition, f?, g?)"):format(n,
    core.typename(f)))
end

-- Runs f or g, as selected by `cond`, whose value is known while tracing.
local function choose(cond, f, g)
  if core.tracing() then branch.check_idle("cute.when", f, g) end
  if not cond then
    if g then return g() end
    return
  end
  local results = table.pack(f())
  if not g then check_count(results.n, 0) end
  return table.unpack(results, 1, results.n)
end

---------------------------------------------------------------------------
-- Branches as iterators of a `for`
---------------------------------------------------------------------------

-- A chain of conditions: the state of a `for` over cute.when(c) or
-- cute.cases(c, ...). `all` holds all conditions, `conds` those that are
-- traced, and `at` the positions of the traced ones in `all`. `open` holds the
-- open regions (cute.lang.region); each region is in the else branch of the
-- region before it.
local Flat = {}
Flat.__index = Flat

-- Lua calls this metamethod of the closing value when the generic `for` over
-- cute.when or cute.cases ends, also when it ends by an error, break or
-- return.
function Flat:__close(err)
  if self.done or not core.tracing() then return end
  core.hook(false)
  for i = #self.open, 1, -1 do self.open[i]:abandon() end
  core.hook(true)
  if err == nil then
    core.fail("loop-exit", ("break, return or goto out of a branch of %s: its "
      .. "body is traced for all threads\n  cute.return_if(condition) leaves "
      .. "the kernel, cute.break_if(condition) leaves a traced loop")
      :format(self.what))
  end
end

-- Returns the values of the loop variables of the `for` in the branch at
-- position `at`: false for the conditions before `at`, true for the condition
-- at `at`. Later conditions keep their traced values.
local function answers(flat, at)
  local out = {}
  for i, cond in ipairs(flat.all) do
    out[i] = i == at
    -- The body may ignore the variable of a later condition. If it tests the
    -- variable in Lua's `if`, the traced value raises an error.
    if i > at then
      local known = type(cond) == "boolean"
      if known then out[i] = cond else out[i] = core.carried(cond & true) end
    end
  end
  return table.unpack(out)
end

local function open_next(flat, level)
  local n = #flat.open + 1
  local region = regions.open(flat.what, ("%s %d:%s"):format(flat.what, n,
    regions.place(level + 1)), regions.collect(level + 1))
  region.cond, flat.open[n] = flat.conds[n], region
  region:start(level + 1)
  begin(region, level + 1)
end

-- Ends a pass over the innermost branch. Returns the position of the condition
-- whose branch has to be traced next, or nil if all branches are complete.
local function advance(flat, level)
  local region = flat.open[#flat.open]
  if not region.turned then
    region.turned = true
    turn(region, level + 1)
    if flat.conds[#flat.open + 1] then
      open_next(flat, level + 1)
      return flat.at[#flat.open]
    elseif not flat.single then
      return flat.last
    end
  end
  while region do
    if again(region, level + 1) then
      region.turned = false
      begin(region, level + 1)
      return flat.at[#flat.open]
    end
    finish(region, level + 1)
    flat.open[#flat.open] = nil
    region = flat.open[#flat.open]
  end
end

-- The iterator function of the `for` over cute.when or cute.cases. Its caller
-- on the stack is the function that contains the `for`.
local function next_branch(flat)
  local at
  core.hook(false)
  if not flat.begun then
    flat.begun, at = true, flat.last
    if flat.conds[1] then
      open_next(flat, 2)
      at = flat.at[1]
    end
  elseif flat.conds[1] then
    at = advance(flat, 2)
  end
  flat.done = at == nil
  core.hook(true)
  if at then return answers(flat, at) end
end

-- The iterator function outside of a kernel: runs only the branch whose
-- condition is true.
local function next_on_host(flat)
  if flat.begun then return nil end
  flat.begun = true
  return answers(flat, flat.last)
end

-- Returns the iterator for a `for` over a chain of conditions. flat.last is the
-- position of the branch that is taken if no traced condition is true. This is
-- the first condition that is known to be true or, without one, the else branch
-- after all conditions.
local function flat_form(what, single, ...)
  local flat = setmetatable({what = what, single = single, all = {...},
                             conds = {}, at = {}, open = {}}, Flat)
  for i, cond in ipairs(flat.all) do
    cond = condition(what, cond)
    flat.all[i] = cond
    if not flat.last and core.typename(cond) == "value" then
      table.insert(flat.conds, cond)
      table.insert(flat.at, i)
    elseif cond == true then
      flat.last = flat.last or i
    end
  end
  flat.last = flat.last or #flat.all + 1
  if core.tracing() then
    unused.iterator(flat, what .. (single and "(c)" or "(c, ...)"))
  end
  if single and flat.last > 1 and not flat.conds[1] then
    return function() flat.begun = true end
  elseif not core.tracing() then
    return next_on_host, flat
  end
  return next_branch, flat, nil, flat
end

---------------------------------------------------------------------------
-- Functions that kernels call
---------------------------------------------------------------------------

--- Branches in the kernel: if / else. After the branch, locals that f or g
-- assigned have the values of the branch that the thread took. cute.when
-- returns that branch's results.
--
--     k = cute.kernel(function(y)
--       local i = cute.arch.thread_idx()
--       y[i] = cute.when(i:lt(4), function() return i end,
--                        function() return 10 * i end)
--     end)
--     y = cute.zeros({8}, cute.i32)
--     k(y):launch {grid = 1, block = 8, device = "sim"}
--     y(3), y(4)  --> 3, 40
--
-- Without functions, cute.when is the iterator of a `for` whose body is the
-- branch:
--
--     k = cute.kernel(function(y)
--       local i, x = cute.arch.thread_idx(), 1
--       for _ in cute.when(i:lt(4)) do
--         x = 2
--       end
--       y[i] = x
--     end)
--     y = cute.zeros({8}, cute.i32)
--     k(y):launch {grid = 1, block = 8, device = "sim"}
--     y(3), y(4)  --> 2, 1
---@param cond boolean|cute.Value a Lua boolean selects the branch while tracing
---@param ... fun(): any the functions f and, optionally, g
---@return any ... the results of the function that the thread ran
function branch.when(cond, ...)
  if select("#", ...) == 0 then return flat_form("cute.when", true, cond) end
  local f, g = ...
  check_function(f, 2)
  check_function(g, 3, true)
  cond = condition("cute.when", cond)
  if type(cond) == "boolean" then return choose(cond, f, g) end
  branch.check_idle("cute.when", f, g)
  return trace_when(cond, f, g)
end

--- Branches in the kernel: if / elseif / else. cute.cases is the iterator of a
-- `for` whose body is traced once per branch, with a Lua boolean in place of
-- each condition. Afterwards, variables that branches assigned have the values
-- of the branch that the thread took. All conditions are computed first.
--
--     k = cute.kernel(function(y)
--       local i, x = cute.arch.thread_idx(), 0
--       for first, second in cute.cases(i:lt(2), i:lt(4)) do
--         if first then
--           x = 10 * i
--         elseif second then
--           x = 20
--         else
--           x = 30
--         end
--       end
--       y[i] = x
--     end)
--     y = cute.zeros({8}, cute.i32)
--     k(y):launch {grid = 1, block = 8, device = "sim"}
--     y(1), y(3), y(7)  --> 10, 20, 30
---@param cond boolean|cute.Value a Lua boolean selects the branch while tracing
---@param ... boolean|cute.Value
---@return fun(): boolean ...
function branch.cases(cond, ...)
  return flat_form("cute.cases", false, cond, ...)
end

sign.nests(branch.when)

return branch
-- SPDX-License-Identifier: MIT
