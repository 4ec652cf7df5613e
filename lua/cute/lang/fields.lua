--- Tracks fields of tables that the body of a loop or branch writes.
--
-- While a body runs, core.note copies every table before its first write
-- (core/bind/table_writes.c). At the end, the differences between each table
-- and its copy are the changes. Before the next pass all tables are restored.
-- To name a changed table, this module searches the values that the body can
-- reach. A table that this search does not find was made inside the body, and
-- no value outside of the body refers to it.
local core = require "cute.core"
local dependencies = require "cute.lang.dependencies"

local fields = {}

-- The innermost open region (loop or branch): {outer = enclosing region, writes
-- = the writes of this pass}. core.note makes the entries of `writes`: [t] = a
-- copy of table t from before its first write, or false for a table made in the
-- region; [i] = the ith written table; [co] = true for a coroutine co begun in
-- this pass; metatables = {[t] = the previous metatable of t, or false}.
local top

local function go_on(region)
  top = region
  core.note(region and region.writes)
end

local function restore(region)
  local writes = region.writes
  for i = #writes, 1, -1 do
    local t, was = writes[i], writes[writes[i]]
    for k in next, t do
      if was[k] == nil then rawset(t, k, nil) end
    end
    for k, v in next, was do rawset(t, k, v) end
  end
  for t, meta in next, writes.metatables or {} do
    debug.setmetatable(t, meta or nil)
  end
  region.writes = {}
end

--- Forgets all open regions.
function fields.reset() top = nil end

--- Opens a region (a loop or branch): from now on, writes to tables are
-- recorded in it.
function fields.open()
  go_on {outer = top, writes = {}}
  return top
end

--- Restores all tables to the state that they had when the region opened.
function fields.rewind(region)
  restore(region)
  go_on(region)
end

--- Closes the region, and adds its recorded writes to the enclosing region.
function fields.close(region)
  local outer, writes = region.outer and region.outer.writes, region.writes
  for _, t in ipairs(outer and writes or {}) do
    if outer[t] == nil then outer[t], outer[#outer + 1] = writes[t], t end
  end
  for t, was in next, outer and writes or {} do
    if was == false then outer[t] = false end
  end
  for t, meta in next, outer and writes.metatables or {} do
    outer.metatables = outer.metatables or {}
    if outer.metatables[t] == nil then outer.metatables[t] = meta end
  end
  go_on(region.outer)
end

--- Closes the region (a loop or branch) and all regions inside it, and undoes
-- the writes recorded in them.
function fields.abandon(region)
  local around = top
  while around and around ~= region do around = around.outer end
  if not around then return end
  while top ~= region.outer do
    restore(top)
    top = top.outer
  end
  go_on(top)
end

--- Sets t[k] = v without calling a metamethod, and records the write in the
-- innermost region.
function fields.set(t, k, v)
  local writes = top.writes
  if writes[t] == nil then
    local copy = {}
    for name, was in next, t do copy[name] = was end
    writes[t], writes[#writes + 1] = copy, t
  end
  rawset(t, k, v)
end

--- Calls f() and returns its result. During the call, the innermost region
-- holds all writes since `region` opened, including the writes of regions
-- inside it.
---@param region table
---@param f function
function fields.since(region, f)
  local inner, around, merged = top, {}, {}
  local at = top
  while at ~= region do
    table.insert(around, 1, at)
    at = at.outer
  end
  for t, was in next, region.writes do merged[t] = was end
  for _, part in ipairs(around) do
    for _, t in ipairs(part.writes) do
      if merged[t] == nil then
        merged[t], merged[#merged + 1] = part.writes[t], t
      end
    end
    for t, was in next, part.writes do
      if was == false and merged[t] == nil then merged[t] = false end
    end
  end
  top = {outer = region.outer, writes = merged}
  local result = f()
  top = inner
  return result
end

local ORDER = {number = 1, string = 2}

-- Reports whether key a comes before key b: numbers come first, then strings,
-- then all other keys. The order of numbers and strings is the same in every
-- process.
local function before(a, b)
  local x, y = ORDER[type(a)] or 3, ORDER[type(b)] or 3
  if x ~= y or x == 3 then return x < y end
  return a < b
end

--- Reports whether a coroutine that began in this pass of tracing is suspended.
---@return boolean
function fields.suspended()
  for co in next, top.writes do
    if type(co) == "thread" and coroutine.status(co) == "suspended" then
      return true
    end
  end
  return false
end

--- Returns the set of tables whose metatable was replaced in this pass of
-- tracing.
---@return table<table, true>
function fields.metatables()
  local set_of = {}
  for t, meta in next, top.writes.metatables or {} do
    if debug.getmetatable(t) ~= (meta or nil) then set_of[t] = true end
  end
  return set_of
end

--- Returns the changes of fields in this pass of tracing as a list of {t =
-- table, k = key, from = old value, to = new value}. The field `appends` is
-- true if the change made a list longer.
function fields.changes()
  local list, writes = {}, top.writes
  for _, t in ipairs(writes) do
    local was, keys = writes[t], {}
    for k, v in next, was do
      if not core.same(v, rawget(t, k)) then keys[#keys + 1] = k end
    end
    for k in next, t do
      if was[k] == nil then keys[#keys + 1] = k end
    end
    if keys[2] ~= nil then table.sort(keys, before) end
    for _, k in ipairs(keys) do
      list[#list + 1] = {t = t, k = k, from = was[k], to = rawget(t, k),
                         appends = k == #was + 1 and k > 1}
    end
  end
  return list
end

---------------------------------------------------------------------------
-- Names of tables
---------------------------------------------------------------------------

-- A place describes how to reach table t from a variable. If another table
-- holds t, the place is {t =, key = the key of t in that table, up = that
-- table's place}. If a variable holds t, the place is {t =, name =, root = the
-- caller's id of the variable, fixed = whether the variable always holds t}.
-- The place of an upvalue without an id has the field `f`, its function. META
-- is the key that stands for a table's metatable.
local META = {}

local function step(name, key)
  if key == META then return ("getmetatable(%s)"):format(name) end
  if name == "_G" and type(key) == "string" then return key end
  if type(key) == "string" and key:find "^[%a_][%w_]*$" then
    return name .. "." .. key
  end
  return ("%s[%s]"):format(name, core.show(key))
end

--- Returns the expression, as a script would write it, for field k of the table
-- at a place (see META). Without k, for the table itself.
---@return string
function fields.name(place, k)
  local name = place.up and fields.name(place.up, place.key) or place.name
  return k == nil and name or step(name, k)
end

-- Calls see(x, key) for each table x that was a value or a key in table t when
-- the innermost region began its pass, and for t's metatable (key META).
local function each_inside(t, see)
  local keys, now = {}, top.writes[t] or t
  for k, v in next, now do
    if type(v) == "table" or type(k) == "table" then keys[#keys + 1] = k end
  end
  table.sort(keys, before)
  for _, k in ipairs(keys) do
    if type(k) == "table" then see(k, k) end
    if type(now[k]) == "table" then see(now[k], k) end
  end
  local meta = debug.getmetatable(t)
  if type(meta) == "table" then see(meta, META) end
end

--- Searches for the wanted tables, beginning at the roots, the places of
-- variables. Returns the place of each wanted table that it finds, by the
-- shortest path.
---@param roots table[] places
---@param wanted table<table, true>
---@return table<table, table> places of the tables that were found
function fields.find(roots, wanted)
  local fixed, queue, seen, found = dependencies.fixed(), {}, {}, {}
  local left = 0
  for t in next, wanted do
    if not fixed[t] or t == _G then left = left + 1 end
  end
  local function add(place)
    if seen[place.t] or fixed[place.t] and place.t ~= _G then return end
    seen[place.t] = true
    queue[#queue + 1] = place
    if wanted[place.t] then
      found[place.t], left = place, left - 1
    end
  end
  for _, root in ipairs(roots) do add(root) end
  local i = 0
  while i < #queue and left > 0 do
    i = i + 1
    local up = queue[i]
    each_inside(up.t, function(t, key)
      add {t = t, up = up, key = key}
    end)
  end
  return found
end

--- Returns the path to a place: a list of the keys that lead from the root
-- variable's table to it. The list's field `root` is the id of the variable. If
-- the variable always holds the same table, the field `from` is this table.
---@param place table
---@param id fun(place: table): any returns the id of a root without the field
-- `root`
function fields.way(place, id)
  if not place.up then
    return {root = place.root or id(place),
            from = place.fixed and place.t or nil}
  end
  local way = fields.way(place.up, id)
  way[#way + 1] = place.key
  return way
end

--- Returns the table at the end of a path from t, or nil.
function fields.follow(way, t)
  for _, key in ipairs(way) do
    if type(t) ~= "table" then return nil end
    if key == META then t = debug.getmetatable(t) else t = rawget(t, key) end
  end
  return type(t) == "table" and t or nil
end

return fields
-- SPDX-License-Identifier: MIT
