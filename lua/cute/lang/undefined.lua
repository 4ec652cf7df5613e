--- Handles variables and fields that are nil before a loop or branch and have a
-- value after it.
--
-- A slot is a variable or field. If a slot was nil before the body, threads
-- that never ran the body have no value for it. After the body the slot
-- therefore holds an undefined value, which raises [out-of-region] on use. The
-- value that the body left in the slot is recorded, too. If Lua tests an
-- undefined value inside a region (a loop or branch), the region is traced
-- twice: with nil and with the recorded value. Both passes have to generate the
-- same code. They do so, for example, if the body fills a cache in its first
-- iteration and finds it filled later.
local core = require "cute.core"
local fields = require "cute.lang.fields"

local undefined = {}

-- Records of undefined values: [undefined value] = {value = the last value that
-- the body left in the slot, known = whether the slot holds `value` whenever it
-- is not nil, slot = the slot, id = the id that `make` describes}.
local records = setmetatable({}, {__mode = "k"})

local is = core.is_undefined

--- Reports whether a value is undefined.
---@return boolean
undefined.is = is

--- Reports whether a slot (a variable or field) with this value is nil for all
-- or some threads.
---@return boolean
function undefined.none(v) return v == nil or is(v) end

--- Reports whether two values that are known while tracing are equal.
---@return boolean
function undefined.equal(a, b)
  if core.same(a, b) then return true end
  if type(a) ~= "userdata" or core.typename(a) ~= core.typename(b)
    or core.typename(a) ~= "layout" then return false end
  return a == b
end

-- Returns the text of a value for error messages.
local function show(v)
  if is(v) then return show(records[v].value) end
  return type(v) == "table" and "a table" or core.show(v)
end

-- Reports whether a value is known while tracing, so that the next pass of
-- tracing can use it.
local function is_plain(v)
  local kind = core.typename(v)
  return kind ~= "value" and kind ~= "vector" and kind ~= "tensor"
end

-- Makes an undefined value for a slot (a variable or field) of a region. Slots
-- that a region sets together have the same `id`: either all are nil, or all
-- have their values.
local function make(region, slot, text, value, known)
  local v = core.undefined(text, value)
  local id = region.id
  if is(value) then
    local inner = records[value]
    known, value, id = known and inner.known, inner.value, id .. slot.name
  elseif slot.outs and slot.outs[1] then
    id = id .. slot.name
  end
  records[v] = {value = value, known = known and is_plain(value), slot = slot,
                id = id}
  local all = region.state.undefined
  if slot.t then all.holders[slot.t] = true end
  all[#all + 1] = v
  return v
end

--- Reports whether all of these values agree: each is nil, or equal to one
-- known value, or an undefined value that records this value.
---@param ... any
---@return boolean
function undefined.agrees(...)
  local value = nil
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    local r = records[v]
    if r and not r.known then return false end
    if r then v = r.value end
    if v ~= nil then
      if value ~= nil and not undefined.equal(v, value) then return false end
      value = v
    end
  end
  return true
end

--- Makes the undefined value, which raises an error on use, for a slot (a
-- variable or field) that was nil before a region (a loop or branch). At one of
-- the region's ends, the slot has `value`.
---@param region table
---@param slot table
---@param value any
---@param known boolean whether the slot is nil or `value` at all these ends
function undefined.after(region, slot, value, known)
  return make(region, slot, ("'%s' is nil before this %s and %s after it\n  "
    .. "give it a value before, or use it only inside (the %s is in line "
    .. "%s)"):format(slot.name, region.form, show(value), region.form,
    region.line), value, known)
end

--- Makes the undefined value, which raises an error on use, for a slot (a
-- variable or field) that the two branches leave with different values.
function undefined.either(region, slot, yes, no)
  return make(region, slot, ("'%s' is %s in one branch and %s in the other, "
    .. "depending on the thread\n  use it inside the branches (in line %s), or "
    .. "assign the same value in both"):format(slot.name, show(yes),
    show(yes) == show(no) and "another one" or show(no), region.line), nil,
    false)
end

-- Adds a slot (a record of a variable) for upvalue n of f, which holds `v`, so
-- that the region restores the upvalue. Does nothing if the region already has
-- such a slot.
local function own(region, f, n, name, v)
  local id = debug.upvalueid(f, n)
  for _, slot in ipairs(region.view.slots) do
    if slot.f and debug.upvalueid(slot.f, slot.n) == id
      or slot.name == name and not slot.f and not slot.t then return end
  end
  if region:own(id) then return end
  table.insert(region.view.slots, {f = f, n = n, name = name, init = v,
                                   head = v, yes = v, no = v})
end

-- Replaces the undefined value `v` by `value` in every local, upvalue and field
-- that holds `v` and that the function at `level` can reach.
local function replace(region, v, value, level)
  for n = 1, math.huge do
    local name, now = debug.getlocal(level + 1, n)
    if not name then break end
    if rawequal(now, v) then debug.setlocal(level + 1, n, value) end
  end
  local slot = records[v].slot
  if slot.t and rawequal(rawget(slot.t, slot.k), v) then
    fields.set(slot.t, slot.k, value)
  end
  local f = debug.getinfo(level + 1, "f").func
  for n = 1, math.huge do
    local name, now = debug.getupvalue(f, n)
    if not name then return end
    if rawequal(now, v) then
      own(region, f, n, name, v)
      debug.setupvalue(f, n, value)
    end
  end
end

--- Returns the value that stands for an undefined value in this pass over the
-- innermost region (a loop or branch), when Lua tests or compares it. Raises an
-- error outside of a region.
---@param region table? the innermost one
---@param v any
function undefined.tested(region, v)
  local r = records[v]
  if not region or not r.known then core.use(v) end
  local value = nil
  if region.given and region.given[r.id] then value = r.value end
  region.doubts[v] = {value = value}
  region.ids[r.id] = r.slot.name
  replace(region, v, value, 3)
  return value
end

--- Returns the value of a loop's slot (a variable or field) at the beginning of
-- a pass with recorded values (see the top of this file). This is the value
-- that the body left in the slot. If undefined.give will replace the value
-- before the loop, this is the value before the loop.
---@return any
function undefined.head(region, slot)
  local r = records[slot.init]
  return not (r and region.given[r.id]) and slot.fresh or slot.init
end

--- Sets slots (variables and fields) to their recorded values, at the beginning
-- of a pass that traces the body with them.
---@param region table
---@param place fun(slot: table, value: any) sets a slot
function undefined.give(region, place)
  local given = region.given
  if not given or next(given) == nil then return end
  for _, slot in ipairs(region.view.slots) do
    local r = records[slot.head]
    if r and given[r.id] then
      region.doubts[slot.head] = {value = r.value}
      place(slot, r.value)
    end
  end
  for _, v in ipairs(region.state.undefined) do
    local r = records[v]
    local slot = r.slot
    if given[r.id] and slot.t and rawequal(rawget(slot.t, slot.k), v) then
      region.doubts[v] = {value = r.value}
      fields.set(slot.t, slot.k, r.value)
    elseif given[r.id] and slot.f
      and rawequal(select(2, debug.getupvalue(slot.f, slot.n)), v) then
      own(region, slot.f, slot.n, slot.name, v)
      region.doubts[v] = {value = r.value}
      debug.setupvalue(slot.f, slot.n, r.value)
    end
  end
end

--- Raises an error if Lua reads the length of list t while one of its fields is
-- undefined.
function undefined.read(t)
  for _, v in next, t do
    if is(v) then core.use(v) end
  end
end

--- After the trace, sets the slots (variables and fields) that are undefined to
-- nil.
function undefined.restore(state)
  for _, v in ipairs(state.undefined) do
    local slot = records[v].slot
    if slot.t then
      if is(rawget(slot.t, slot.k)) then rawset(slot.t, slot.k, nil) end
    elseif slot.f then
      local _, now = debug.getupvalue(slot.f, slot.n)
      if is(now) then debug.setupvalue(slot.f, slot.n, nil) end
    end
  end
end

---------------------------------------------------------------------------
-- Comparing passes
---------------------------------------------------------------------------

--- Returns a slot's value at the end of a pass over the body. If the pass
-- replaced an undefined value in the slot, and the slot still has the
-- replacement, returns the undefined value.
function undefined.now(region, slot, now)
  local d = not slot.zeros and region.doubts[slot.head]
  if d and rawequal(d.value, now) then return slot.head end
  return now
end

-- Returns what a pass over the body generated: a digest of the pass's
-- instructions, and the final values of each slot (a variable or field) that
-- was nil before the body.
local function snapshot(region)
  local ends = {}
  for _, slot in ipairs(region.view.slots) do
    if undefined.none(slot.init) then
      ends[slot] = {head = slot.head, yes = slot.yes, no = slot.no}
    end
  end
  return {digest = core.digest(region.mark), ends = ends}
end

-- Compares the final values of a slot (a variable or field) in two passes, and
-- reports whether they agree. In the pass with final value a, an undefined
-- value was nil. In the pass with final value b, it was the recorded value;
-- `head` is the slot's value at the beginning of this pass.
local function agree(a, b, head)
  local a_none, b_none = undefined.none(a), undefined.none(b)
  if a_none or b_none then
    if a_none and b_none then return true end
    local r = b_none and rawequal(b, head) and records[head]
    return r and r.known and undefined.equal(a, r.value) or false
  end
  return undefined.equal(a, b)
end

-- Returns the name of a slot (a variable or field) whose undefined value this
-- pass tested or replaced.
local function tested_name(region)
  local names = {}
  for id, name in next, region.ids do
    if not region.given or region.given[id] then names[#names + 1] = name end
  end
  table.sort(names)
  return names[1]
end

-- Returns the name of a slot (a variable or field) whose final value differs
-- between two passes over the body, or nil if the passes agree.
local function difference(region, first, second)
  for _, slot in ipairs(region.view.slots) do
    local a, b = first.ends[slot] or {}, second.ends[slot]
    local tested = b and region.doubts[b.head]
    for _, e in ipairs(b and {"yes", "no"} or {}) do
      if not agree(a[e], b[e], b.head) then
        if tested or undefined.none(a[e]) ~= undefined.none(b[e]) then
          return slot.name
        end
        slot.mixed = true
      end
    end
  end
  if first.digest ~= second.digest then return tested_name(region) end
end

-- Chooses the undefined slots that get their recorded values in the next pass.
-- Returns the set of their ids, and the set's key in region.tried. Successive
-- calls try all slots together, each slot alone and, for few slots, each pair.
-- After the last, returns nil.
local function choose(region)
  local ids, tried = {}, region.tried
  for id in next, region.ids do ids[#ids + 1] = id end
  table.sort(ids)
  local function offer(set)
    local key = {}
    for _, id in ipairs(ids) do key[#key + 1] = set[id] and id end
    key = table.concat(key, "\n")
    if tried[key] then return nil end
    return set, key
  end
  local all = {}
  for _, id in ipairs(ids) do all[id] = true end
  local set, key = offer(all)
  if set then return set, key end
  for i, a in ipairs(ids) do
    for j = i, #ids <= 4 and #ids or i do
      set, key = offer {[a] = true, [ids[j]] = true}
      if set then return set, key end
    end
  end
end

--- Ends a pass that found no new changes in the body of a region (a loop or
-- branch). Returns true if the body has to be traced again.
---@param region table
---@param fresh? boolean whether slots of a loop that were nil have a value now
---@return boolean
function undefined.again(region, fresh)
  if not region.given then
    if not fresh and next(region.doubts) == nil then return false end
    region.first, region.tried = snapshot(region), {}
    if fresh then
      region.given, region.tried[""] = {}, true
      return true
    end
  elseif next(region.doubts) then
    local name = difference(region, region.first, snapshot(region))
    if name then return undefined.differs(region, name) end
  end
  local set, key = choose(region)
  if not set then return false end
  region.given, region.tried[key] = set, true
  return true
end

--- Handles a pass with recorded values whose code differs from that of the pass
-- with nil. Inner regions may have found new facts between the two passes, and
-- these also change the code. So both passes are repeated up to twice; returns
-- true then. Afterwards raises an error.
---@param region table
---@param name? string
---@return boolean
function undefined.differs(region, name)
  name = name or tested_name(region) or "a variable"
  region.given, region.retried = nil, (region.retried or 0) + 1
  if region.retried <= 2 then return true end
  local value
  for v in next, region.doubts do
    local r = records[v]
    if r.slot.name == name then value = r.value end
  end
  core.fail("out-of-region", ("'%s' is nil at first and %s later, which "
    .. "changes what the body of this %s does\n  give it a value before the %s "
    .. "in line %s"):format(name, value == nil and "something" or show(value),
    region.form, region.form, region.line))
end

return undefined
-- SPDX-License-Identifier: MIT
