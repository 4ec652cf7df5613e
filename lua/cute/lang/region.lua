--- Traces a loop or branch of a kernel in passes: running the body shows what
-- it changes, and variables of the kernel carry those changes.
--
-- A region is a loop, a branch or a function made by cute.func that is being
-- traced. It keeps a list of slots: locals, upvalues and fields of tables that
-- its body may change. When a pass begins, the slots known to change are set to
-- variables of the kernel. When the pass ends, all other slots are compared
-- with their values at the beginning of the pass.
local core = require "cute.core"
local carrying = require "cute.lang.loop_carried"
local fields = require "cute.lang.fields"
local dependencies = require "cute.lang.dependencies"
local sign = require "cute.lang.signature"
local undefined = require "cute.lang.undefined"

local parts, rebuild = carrying.parts, carrying.rebuild
local type_error = carrying.type_error

local regions = {}

-- The search for upvalues that a body can change looks into values of these
-- types.
local REACHES = {["function"] = true, table = true}

local MAX_PASSES = 24
-- The largest nesting depth of loops and branches.
local MAX_DEPTH = 2048
-- The largest number of table fields that are searched for functions, for each
-- loop.
local MAX_FIELDS = 4000
-- The number of elements that each upvalue takes in the list view.upvalues.
local ENTRY = 4

-- The state of the current trace: see TRACE_STATE in core/bind/trace.h. Its
-- field memo holds the changes that earlier loops at each source position made.
-- An inner loop then starts with these changes in each pass of the outer loop,
-- so it needs fewer passes itself.
local state

--- Begins a trace, or resumes the outer trace after another kernel was traced
-- inside it.
---@param new table? the new state, or nil if no trace is active any more
---@return table? state the previous state
function regions.begin(new)
  local before = state
  state = new
  if not before then fields.reset() end
  return before
end

---------------------------------------------------------------------------
-- Slots: locations that a body may change
---------------------------------------------------------------------------

-- Returns a slot's current value. A slot is a local {n=, name=} of the function
-- at a stack level, an upvalue {f=, n=, name=}, or a field {t=, k=,
-- name="state.phase"} of a table.
function regions.get(slot, level)
  if slot.t then return rawget(slot.t, slot.k) end
  if slot.f then return (select(2, debug.getupvalue(slot.f, slot.n))) end
  return (select(2, debug.getlocal(level + 1, slot.n)))
end

-- Types of values that regions.restore sets again.
local RESTORED = {number = true, boolean = true}

-- Records the number or boolean that a field or upvalue held before the trace,
-- so that regions.restore can set the field or upvalue again.
local function remember(slot)
  if not RESTORED[type(slot.init)] then return end
  local of = slot.t or debug.upvalueid(slot.f, slot.n)
  local known = state.left[of] or {}
  state.left[of] = known
  known[slot.k or 1] = known[slot.k or 1] or slot
end

function regions.set(slot, level, value)
  if slot.t or slot.f then remember(slot) end
  if slot.t then
    fields.set(slot.t, slot.k, value)
  elseif slot.f then
    debug.setupvalue(slot.f, slot.n, value)
  else
    debug.setlocal(level + 1, slot.n, value)
  end
end

--- Returns the value that replaces undefined value v when Lua tests or compares
-- v: see cute.lang.undefined.
function regions.tested(v)
  local value = undefined.tested(state.open, v)
  return value
end

local get, set = regions.get, regions.set

-- Types of traced values, which are meaningless after the trace.
local TRACED = {value = true, vector = true}

--- Restores the variables and fields of the script that loops and branches
-- changed to their values before the trace. Until the end of the trace they
-- held values of the kernel.
function regions.restore()
  for _, known in next, state.left do
    for _, slot in next, known do
      if TRACED[core.typename(get(slot, 1))] then
        local before = slot.init
        -- A slot whose kernel variables begin as zeros was nil before the
        -- trace.
        if slot.zeros then before = nil end
        if slot.t then rawset(slot.t, slot.k, before)
        else set(slot, 1, before) end
      end
    end
  end
  undefined.restore(state)
end

--- Maps each function that cute.func returned (a helper) to the function that
-- was passed to cute.func.
regions.helpers = setmetatable({}, {__mode = "k"})

-- Raises an error if the function at a level lacks debug information, without
-- which its locals have no names and are not found.
local function check_names(level)
  if debug.getinfo(level + 1, "l").currentline >= 0 then return end
  core.fail("bad-argument", "a function without debug information contains a "
    .. "traced loop or branch: its locals cannot be carried\n  load it from "
    .. "its source, or compile it without strip (string.dump(f), luac without "
    .. "-s)")
end

-- Adds the locals and variable arguments of the function at stack level `level`
-- to `view`, the table that regions.collect makes.
local function collect_locals(view, level)
  local slots, values, names = view.slots, view.values, view.locals
  for n = 1, math.huge do
    local name, v = debug.getlocal(level + 1, n)
    if not name then break end
    if name:sub(1, 1) ~= "(" then
      slots[#slots + 1] = {n = n, name = name}
      names[n], names[name] = names[name], n
      if REACHES[type(v)] then values[#values + 1] = v end
    end
  end
  for n = 1, math.huge do
    local name, v = debug.getlocal(level + 1, -n)
    if not name then break end
    if type(v) == "table" then
      view.rest[#view.rest + 1] = {t = v, name = "(...)", root = -n}
    end
    if REACHES[type(v)] then values[#values + 1] = v end
  end
end

--- Collects the variables that can change: the locals of the function at stack
-- level `level` (or the upvalues of `functions`), and the upvalues of every
-- function that these variables can reach. A function in lua/cute is searched
-- only if its file also contains the function at this level or one of
-- `functions`. Few upvalues change, so an upvalue gets a slot (a record of a
-- variable) only when it has changed (Region:catch_up). Until then it is in
-- view.upvalues (core/bind/reachlib.c).
function regions.collect(level, functions)
  local view = {slots = {}, rest = {}, values = {}, locals = {}, seen = {},
                pending = {}, chunks = {}, upvalues = {}, most = MAX_FIELDS,
                helpers = regions.helpers, functions = functions,
                fixed = state.open and state.open.view.fixed
                  or dependencies.fixed()}
  if level then
    check_names(level + 1)
    collect_locals(view, level + 1)
    view.functions = {debug.getinfo(level + 1, "f").func}
  end
  for _, f in ipairs(view.functions) do
    view.chunks[core.own_chunk(f) or 0] = true
  end
  core.reach(view, level and level + 1)
  view.variables = #view.slots
  return view
end

-- Returns the key of a slot (a variable or field): text that identifies it in
-- every pass and in every region.
local function key_of(slot)
  if slot.key then return slot.key end
  if slot.f then
    local info = debug.getinfo(slot.f, "S")
    slot.key = ("U%s:%d:%s"):format(info.short_src, info.linedefined,
                                    slot.name)
  else
    slot.key = ("L%d:%s"):format(slot.n, slot.name)
  end
  return slot.key
end

-- Reports whether a value is known while tracing and contains nothing that the
-- device computes.
function regions.is_known(v)
  local sig, scalars = parts(v)
  for _, p in ipairs(scalars or {}) do
    if sig:find "^tensor" or core.typename(p) == "value" then return false end
  end
  return true
end

local is_known = regions.is_known

--- Checks a slot that is a table's field and that is nil either before or after
-- a region. `now` is its value at the region's end. A value that is known while
-- tracing may be stored under a new key. It must not be appended to a list: the
-- list would grow once, although it should grow in each iteration.
function regions.check_growth(slot, now, what)
  if not slot.t then return end
  if undefined.none(slot.init) then
    if undefined.none(now) or not slot.appends and is_known(now) then return end
    core.fail("loop-table-changed", ("field '%s' is nil before %s and has a "
      .. "value after it\n  give it a value before, or keep it in a "
      .. "local"):format(slot.name, what))
  elseif now == nil then
    core.fail("loop-table-changed", ("field '%s' has a value before %s and is "
      .. "nil after it\n  assign a value of the same type instead of "
      .. "nil"):format(slot.name, what))
  end
end

---------------------------------------------------------------------------
-- One region, traced in passes
---------------------------------------------------------------------------

local Region = {}
Region.__index = Region

-- With CUTELUA_DEBUG=trace, the package cutelua prints the findings of each
-- pass.
local telling = core.debugs "trace" and sign.workshop.passes

--- Prints what a pass over the body found about a slot (a variable or field).
-- With `from` and `to`: the slot changes between these values. Without: the
-- known facts about the slot have widened.
function Region:tell(slot, from, to)
  if telling then telling.slot(self, slot, from, to) end
end

--- Returns the position in the script of the `for` loop that calls the running
-- iterator function.
---@param level integer stack level of the loop's function, seen from the caller
---@return string
function regions.place(level)
  local info = debug.getinfo(level + 1, "Sl")
  return info.source .. ":" .. info.currentline
end

--- Returns the position in the script of the running call of a function of
-- cute.
---@param what string a prefix such as "loop ", which distinguishes calls at one
-- position
---@return string
function regions.call_place(what)
  local chunk, line = core.script_line()
  return what .. (chunk and chunk .. ":" .. line or "?")
end

local FORMS = {["cute.when"] = "branch", ["cute.cases"] = "branch",
               ["cute.func"] = "function"}

--- Opens a region. `key` is its position in the script. A later region at the
-- same position starts with the changes that this region found.
---@param what string "this loop"
---@param key string
---@param view table from regions.collect
function regions.open(what, key, view)
  if core.region_depth() >= MAX_DEPTH then
    core.fail("limit", ("loops and branches nest at most %d deep\n  use "
      .. "cute.loop(cond, body) instead of a recursion: a traced condition "
      .. "never ends it"):format(MAX_DEPTH))
  end
  local memo = state.memo[key] or {ways = {}, carries = {}, upvalues = {}}
  state.memo[key] = memo
  if telling then telling.open(key, what) end
  local around = state.open or state
  around.inside = around.inside or {}
  local nth = (around.inside[key] or 0) + 1
  around.inside[key] = nth
  state.open = setmetatable({what = what, view = view, memo = memo, passes = 0,
                             mark = core.mark(), watched = #state.watched,
                             fields = {}, writes = fields.open(),
                             outer = state.open, state = state,
                             id = ("%s\n%s %d "):format(around.id or "", key,
                                                       nth),
                             form = FORMS[what] or "loop", ids = {},
                             line = select(2, core.script_line())}, Region)
  return state.open
end

--- Returns the innermost loop, branch or function of cute.func that is being
-- traced, or nil.
---@return table?
function regions.opened() return state.open end

--- Returns the innermost open region that cute.break_if or cute.return_if can
-- leave: a loop, or a function made by cute.func. Returns nil if there is none.
---@return table?
function regions.innermost()
  local region = state.open
  while region and not region.leavable do region = region.outer end
  return region
end

-- Gives a slot (a variable or field) the carry (the types of its kernel
-- variables) that an earlier region at this position found for the slot. Does
-- nothing if that carry cannot hold the slot's value.
function Region:recall(slot)
  if undefined.none(slot.init) then return end
  local carry = self.memo.carries[key_of(slot)]
  if not carry or not carrying.fits(carry, slot.init) then return end
  slot.carry = {sig = carry.sig, n = carry.n, truth = carry.truth,
                types = table.move(carry.types, 1, carry.n, 1, {}),
                facts = table.move(carry.facts, 1, carry.n, 1, {})}
end

-- Makes a slot for the upvalue at index `at` of view.upvalues. Inserts the slot
-- before the slots of fields.
function Region:give_slot(at)
  local view = self.view
  local list = view.upvalues
  local v = list[at + 2]
  local slot = {f = list[at], n = list[at + 1], name = list[at + 3], init = v,
                head = v, yes = v, no = v}
  list[at + 1], view.variables = slot, view.variables + 1
  table.insert(view.slots, view.variables, slot)
  return slot
end

-- Makes slots for the upvalues that have changed since the region opened.
function Region:catch_up()
  for _, at in ipairs(core.changed(self.view.upvalues) or {}) do
    self:give_slot(at)
  end
end

--- Makes a slot for the upvalue with this id (debug.upvalueid). Returns nil if
-- view.upvalues has no such upvalue, or if the upvalue has a slot already.
---@return table? slot
function Region:own(id)
  local list = self.view.upvalues
  for at = 1, list.n, ENTRY do
    local f, n = list[at], list[at + 1]
    if math.type(n) and debug.upvalueid(f, n) == id then
      return self:give_slot(at)
    end
  end
end

-- Prepares the upvalues when the region begins. Remembers numbers and booleans.
-- Makes slots for undefined values (cute.lang.undefined), and for upvalues that
-- changed in an earlier region at this position.
function Region:start_upvalues()
  local list, names = self.view.upvalues, self.memo.upvalues
  for at = 1, list.n, ENTRY do
    local v = list[at + 2]
    if names[list[at + 3]] or undefined.is(v) then
      self:recall(self:give_slot(at))
    elseif RESTORED[type(v)] then
      local f, n = list[at], list[at + 1]
      if not state.left[debug.upvalueid(f, n)] then
        remember {f = f, n = n, init = v}
      end
    end
  end
end

function Region:start(level)
  local known = next(self.memo.carries) ~= nil
  for _, slot in ipairs(self.view.slots) do
    slot.init = get(slot, level + 1)
    if known then self:recall(slot) end
  end
  self:start_upvalues()
  for _, way in ipairs(self.memo.ways) do self:recall_field(way) end
end

-- Begins a pass: discards the instructions of the previous pass and restores
-- all locals and fields to their values before the region.
function Region:rewind(level)
  self.passes = self.passes + 1
  self.more, self.exits, self.doubts, self.inside = false, 0, {}, {}
  if self.passes > MAX_PASSES and not self.given then
    core.fail("internal", "the types of a loop's locals still change after "
      .. MAX_PASSES .. " passes")
  end
  if self.passes > 1 then
    if not core.rollback(self.mark) then self:interleaved() end
    for i = #state.watched, self.watched + 1, -1 do
      state.watched[i] = nil
    end
  end
  fields.rewind(self.writes)
  self:catch_up()
  for _, slot in ipairs(self.view.slots) do
    if slot.zeros then slot.init = rebuild(slot.form, slot.zeros) end
    set(slot, level + 1, slot.init)
    slot.outs = nil
  end
end

-- Discards the region after an error. The kernel may catch the error with pcall
-- and continue, so upvalues get their old values again.
function Region:abandon()
  if not core.tracing() then return end
  core.rollback(self.mark)
  fields.abandon(self.writes)
  self:catch_up()
  for _, slot in ipairs(self.view.slots) do
    local before = slot.init
    if slot.zeros then before = slot.before end
    -- Locals are not restored, because the function that has them may have
    -- ended.
    if slot.f then set(slot, 1, before) end
  end
  for i = #state.watched, self.watched + 1, -1 do state.watched[i] = nil end
  state.open = self.outer
  core.hook(true)
end

function Region:__close(err)
  if err == nil then return end
  core.hook(false)
  self:abandon()
end

-- Raises the error for a coroutine that yielded inside the region. Code of the
-- kernel that follows the yield would be traced outside the region, or inside
-- another one, but regions have to be nested.
function Region:interleaved()
  core.fail("loop-exit", ("a coroutine yielded inside %s\n  yield only outside "
    .. "traced loops and branches")
    :format(self.what))
end

-- Checks that all regions and coroutines that began in the body have ended.
function Region:check_body()
  if core.region_depth() ~= self.depth then self:interleaved() end
  if fields.suspended() then
    core.fail("loop-exit", ("a coroutine that started in %s is still suspended "
      .. "at its end\n  finish the coroutine there, or collect its values "
      .. "before")
      :format(self.what))
  end
end

function Region:remember()
  local memo = self.memo
  for _, slot in ipairs(self.view.slots) do
    if slot.carry then
      local key = key_of(slot)
      if slot.way and not memo.carries[key] then
        table.insert(memo.ways, slot.way)
      end
      memo.carries[key] = slot.carry
      if slot.f then memo.upvalues[slot.name] = true end
    end
  end
end

-- Ends the region (a loop or branch). Keeps the types that its kernel variables
-- have, for later regions at this position. The enclosing region becomes the
-- open one.
function Region:finish()
  self:remember()
  if telling then telling.finish(self) end
  fields.close(self.writes)
  state.open = self.outer
end

function Region:add_field(slot, place_way)
  local of_table = self.fields[slot.t] or {}
  self.fields[slot.t], of_table[slot.k] = of_table, slot
  slot.key, slot.way = place_way.root .. ":" .. slot.name, place_way
  place_way.name, place_way.k = slot.name, slot.k
  self.view.slots[#self.view.slots + 1] = slot
end

-- Returns the value that a variable had when the region opened. `key` is the
-- variable's key (key_of).
function Region:root(key)
  local value
  for _, slot in ipairs(self.view.slots) do
    if key_of(slot) == key then value = slot.init end
  end
  local list, name = self.view.upvalues, key:match "^U.*:(.*)$"
  for at = 1, name and list.n or 0, ENTRY do
    local f, v = list[at], list[at + 2]
    if list[at + 3] == name and type(v) == "table"
      and key_of {f = f, name = name} == key then value = v end
  end
  return value
end

-- Adds a slot (a record of a field) for a field that an earlier region at this
-- position changed, if the field exists now. `way` is the path to the field.
function Region:recall_field(way)
  local t = way.from
  if not t then t = self:root(way.root) end
  t = t and fields.follow(way, t)
  if not t or self.fields[t] and self.fields[t][way.k] then return end
  local init = rawget(t, way.k)
  if undefined.none(init) then return end
  local slot = {t = t, k = way.k, name = way.name, init = init, head = init}
  self:add_field(slot, table.move(way, 1, #way, 1,
                                  {root = way.root, from = way.from}))
  self:recall(slot)
end

-- The user's modules, sorted by name. Region:roots uses them as starting points
-- of the search for tables. The list is made again when package.loaded has
-- changed.
local modules = {count = 0}

local function module_roots()
  local count = 0
  for _ in next, package.loaded do count = count + 1 end
  local current = count == modules.count
  for _, root in ipairs(modules) do
    current = current and package.loaded[root.module] == root.t
  end
  if current then return modules end
  local fixed, names = dependencies.fixed(), {}
  for name, m in next, package.loaded do
    if type(m) == "table" and m ~= _G and not fixed[m] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  modules = {count = count}
  for i, name in ipairs(names) do
    local text = ("require %q"):format(name)
    modules[i] = {t = package.loaded[name], name = text, root = text,
                  fixed = true, module = name}
  end
  return modules
end

-- Adds a table to `roots`, the starting points of a search for tables, if the
-- slot of a variable holds one.
function Region:add_root(roots, slot)
  local v = slot.head
  if self.doubts[v] then v = self.doubts[v].value end
  if type(v) == "table" then
    roots[#roots + 1] = {t = v, name = slot.name, root = key_of(slot)}
  end
end

-- Returns the variables and tables from which the body can reach other tables.
-- Each variable is listed with its value when the body began.
function Region:roots()
  local view = self.view
  local roots = table.move(view.rest, 1, #view.rest, 1, {})
  for _, slot in ipairs(view.slots) do
    if not slot.t and not slot.f then self:add_root(roots, slot) end
  end
  local list, listed = view.upvalues, {}
  for at = 1, list.n, ENTRY do
    local slot, v = list[at + 1], list[at + 2]
    if type(slot) == "table" then
      listed[slot] = true
      self:add_root(roots, slot)
    elseif type(v) == "table" then
      roots[#roots + 1] = {t = v, f = list[at], name = list[at + 3]}
    end
  end
  for _, slot in ipairs(view.slots) do
    if slot.f and not listed[slot] then self:add_root(roots, slot) end
  end
  for i, t in ipairs(state.accumulate) do
    roots[#roots + 1] = {t = t, name = "ACCUMULATE", root = "ACCUMULATE " .. i,
                         fixed = true}
  end
  roots[#roots + 1] = {t = _G, name = "_G", root = "_G", fixed = true}
  local of_modules = module_roots()
  return table.move(of_modules, 1, #of_modules, #roots + 1, roots)
end

-- Raises an error if the body gives another metatable to a table that was made
-- outside of the region. The change would affect all threads, not only those
-- that run the body.
function Region:check_metatables()
  local wanted = fields.metatables()
  if next(wanted) == nil then return end
  local _, place = next(fields.find(self:roots(), wanted))
  if place then
    core.fail("loop-table-changed", ("the metatable of '%s' changes in %s\n  "
      .. "set it before, or create the table inside"):format(fields.name(place),
      self.what))
  end
end

-- Makes slots for the table fields that this pass changed and that have none.
-- Returns the new slots.
function Region:new_fields()
  self:check_metatables()
  local changes, wanted, slots = {}, {}, {}
  for _, c in ipairs(fields.changes()) do
    local known = self.fields[c.t] and self.fields[c.t][c.k]
    if not known then
      changes[#changes + 1], wanted[c.t] = c, true
    end
  end
  local places = changes[1] and fields.find(self:roots(), wanted)
  for _, c in ipairs(changes) do
    local place = places[c.t]
    if place then
      local slot = {t = c.t, k = c.k, name = fields.name(place, c.k),
                    init = c.from, head = c.from}
      slot.appends = self.loops and c.appends
      self:add_field(slot, fields.way(place, key_of))
      slots[#slots + 1] = slot
    end
  end
  return slots
end

-- Adds a table and the plain tables inside it to a set.
local function add_tables(set_of, t, name)
  if type(t) ~= "table" or set_of[t] then return end
  set_of[t] = name
  for _, v in next, t do add_tables(set_of, v, name) end
end

-- Checks that no field of a table would get two kernel variables. If a local is
-- assigned another plain table, the local's kernel variables include the fields
-- of this table. These fields cannot have slots of their own.
function Region:check_tables()
  local carried = {}
  for _, slot in ipairs(self.view.slots) do
    if slot.carry then
      add_tables(carried, slot.init, slot.name)
      add_tables(carried, slot.head, slot.name)
    end
  end
  if next(carried) == nil then return end
  for _, slot in ipairs(self.view.slots) do
    local by = slot.t and carried[slot.t]
    if by then
      core.fail("loop-table-changed", ("'%s' is a different table at the end "
        .. "of %s, and '%s' of the original table changed\n  either change the "
        .. "fields of one table, or create a new one each time")
        :format(by, self.what, slot.name))
    end
  end
end

-- Sorts the slots of upvalues that kernel variables carry, so that the order is
-- the same in every process. Functions in tables were found in the order of
-- `next`, which varies.
function Region:order()
  local slots, at, carried = self.view.slots, {}, {}
  for i, slot in ipairs(slots) do
    if slot.carry and slot.f then
      at[#at + 1], carried[#carried + 1] = i, slot
    end
  end
  table.sort(carried, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return key_of(a) < key_of(b)
  end)
  for i, slot in ipairs(carried) do slots[at[i]] = slot end
end

-- Declares the kernel variables of all slots that change, before the loop. The
-- loop's body reads these variables at its beginning.
function Region:declare()
  self:order()
  for _, slot in ipairs(self.view.slots) do
    if slot.carry then carrying.declare(slot, slot.carry, slot.init) end
  end
end

function Region:enter(level)
  self.depth, self.loops = core.region_depth(), true
  for _, slot in ipairs(self.view.slots) do
    if slot.carry then
      set(slot, level + 1, carrying.read(slot.carry, slot.init))
    end
    slot.head = get(slot, level + 1)
    if self.given and slot.fresh then
      slot.head = undefined.head(self, slot)
      set(slot, level + 1, slot.head)
    end
  end
  undefined.give(self, function(slot, value) set(slot, level + 3, value) end)
end

-- Returns the stack level, counted from the caller, of the function that
-- contains the traced `for` loop.
local function frame_of(loop)
  for level = 2, math.huge do
    if not debug.getinfo(level, "l") then break end
    for n = 1, math.huge do
      local name, v = debug.getlocal(level, n)
      if not name then break end
      if rawequal(v, loop) and name == "(for state)" then return level - 1 end
    end
  end
  core.fail("loop-exit", "cute.break_if was called in a coroutine that started "
    .. "in the loop\n  call it in the loop's own body")
end

-- Records the value of a slot (a variable or field) at a cute.break_if or
-- cute.return_if that leaves the region. Returns true if the value has to be
-- written to a kernel variable there. Sets self.more if the change is new,
-- because another pass is then needed.
function Region:learn_exit(slot, now)
  regions.check_growth(slot, now, self.what)
  if undefined.none(slot.init) then
    slot.outs = slot.outs or {}
    if not core.same(slot.head, now) then
      slot.outs[#slot.outs + 1] = {value = now}
    end
    return false
  elseif slot.carry then
    if carrying.learn(slot, self.what, slot.carry, slot.head, now) then
      self.more = true
      self:tell(slot)
    end
  elseif not core.same(slot.head, now) then
    slot.carry, self.more = carrying.new(slot, self.what, slot.init, now), true
    self:tell(slot, slot.init, now)
  end
  return slot.carry and not core.same(slot.head, now)
end

--- Makes the threads for which cond is true leave the region. Changes that the
-- body made before this point take effect. If the region is a function made by
-- cute.func, `results` are the function's results for these threads.
---@param cond boolean|cute.Value
---@param results? table packed
function Region:leave_if(cond, results)
  local level = self.loop and frame_of(self.loop) or 1
  self.exits = self.exits + 1
  fields.since(self.writes, function() return self:new_fields() end)
  self:catch_up()
  local sets = {}
  for _, slot in ipairs(self.view.slots) do
    local now = undefined.now(self, slot, get(slot, level))
    if self:learn_exit(slot, now) then sets[#sets + 1] = {slot, now} end
  end
  for i = 1, results and results.n or 0 do
    local slot = self:result(i, results)
    if self:learn_result(slot, results[i]) then
      sets[#sets + 1] = {slot, results[i]}
    end
  end
  local levels = core.region_depth() - self.depth + 1
  if self.more or not sets[1] then return core.leave_if(cond, levels) end
  if cond ~= true then core.open_if(cond) end
  for _, s in ipairs(sets) do carrying.write(s[1].carry, s[2]) end
  core.leave_if(true, levels + (cond == true and 0 or 1))
  if cond ~= true then core.close() end
end

-- Records the value of a slot (a variable or field) at the end of the body.
-- Returns true if the body has to be traced in another pass.
function Region:learn_end(slot, now)
  regions.check_growth(slot, now, self.what)
  slot.yes = now
  if undefined.none(slot.init) then
    if self.given then return false end
    slot.fresh = nil
    if now ~= nil and not core.same(slot.head, now) then
      slot.fresh = undefined.after(self, slot, now, true)
      self.grown = true
    end
    return false
  elseif slot.carry then
    if not carrying.learn(slot, self.what, slot.carry, slot.head, now) then
      return false
    end
    self:tell(slot)
    return true
  elseif core.same(slot.head, now) then
    return false
  end
  slot.carry = carrying.new(slot, self.what, slot.init, now)
  self:tell(slot, slot.init, now)
  return true
end

-- Ends a pass over the body of a loop. Returns true if another pass is needed.
function Region:again(level)
  local again = self.more
  self:check_body()
  self.grown = false
  self:new_fields()
  self:catch_up()
  for _, slot in ipairs(self.view.slots) do
    local now = undefined.now(self, slot, get(slot, level + 1))
    again = self:learn_end(slot, now) or again
  end
  self:check_tables()
  if again and self.given then return undefined.differs(self) end
  return again or undefined.again(self, self.grown)
end

-- Returns the value that a slot (a variable or field) has after a loop or a
-- function made by cute.func, if the slot was nil before. If no exit leaves a
-- value in the slot, this is the old value. If all exits of a function leave
-- the same known value, this is that value. Else it is an undefined value.
function Region:left(slot, at_end)
  local outs, value, known, ways = slot.outs or {}, nil, not slot.mixed, 0
  for _, out in ipairs(outs) do
    if out.value ~= nil and not rawequal(out.value, slot.init) then
      known = known and (value == nil or undefined.equal(value, out.value))
      value, ways = out.value, ways + 1
    end
  end
  if at_end ~= nil and not core.same(slot.init, at_end) then
    known = known and (value == nil or undefined.equal(value, at_end))
    value, ways = at_end, ways + 1
  end
  if value == nil then return slot.init end
  known = known and undefined.agrees(slot.init, value)
  if not self.loops and known and ways == self.exits + 1
    and not undefined.is(value) then return value end
  return undefined.after(self, slot, value, known)
end

function Region:leave(level)
  for _, slot in ipairs(self.view.slots) do
    local now = get(slot, level + 1)
    if slot.carry and not core.same(slot.head, now) then
      carrying.write(slot.carry, now)
    end
  end
  core.close()
  for _, slot in ipairs(self.view.slots) do
    if slot.carry then
      set(slot, level + 1, carrying.read(slot.carry, slot.init, true))
    elseif undefined.none(slot.init) then
      local now = slot.yes
      if slot.fresh and rawequal(now, slot.fresh) then
        now = self.first.ends[slot].yes
      end
      now = self:left(slot, now)
      if not rawequal(now, get(slot, level + 1)) then
        set(slot, level + 1, now)
      end
    end
  end
  self:finish()
end

---------------------------------------------------------------------------
-- Helpers that some threads leave early: cute.func
---------------------------------------------------------------------------

-- Returns the slot for result i of a function made by cute.func. The first exit
-- of the function determines how many results it has.
function Region:result(i, results)
  if self.results.n == nil then self.results.n = results.n end
  if self.results.n ~= results.n then
    core.fail("bad-argument", ("cute.return_if: %d values here, but the "
      .. "function's other return has %d\n  return the same number of values "
      .. "everywhere"):format(self.results.n, results.n))
  end
  self.results[i] = self.results[i] or {name = "result " .. i}
  return self.results[i]
end

-- Creates kernel variables for a result of a function made by cute.func. `one`
-- is a value that the function returns as this result.
local function carry_result(slot, one)
  local sig, list = parts(one)
  for k, p in ipairs(list) do
    list[k] = core.dtype_of(p) == core.boolean and false or 0
  end
  slot.form, slot.zeros = one, list
  slot.carry = {sig = sig, n = #list, types = {}, facts = {}}
end

-- Records a result's value at one exit of a function made by cute.func. Returns
-- true if the value has to be written to a kernel variable there. A result that
-- no kernel variable can hold must be the same at all exits.
function Region:learn_result(slot, now)
  if slot.known or not parts(now) then
    if slot.known and not rawequal(slot.value, now) or slot.carry then
      type_error(slot, self.what, slot.carry and slot.form or slot.value, now)
    end
    slot.known, slot.value = true, now
    return false
  end
  if not slot.carry then
    self.more = true
    -- A Lua number gets the type of the traced values that other exits return.
    -- This type is known at the end of the pass.
    if is_known(now) then
      slot.numbers = slot.numbers or {}
      table.insert(slot.numbers, now)
      return false
    end
    carry_result(slot, now)
  end
  if self.more then slot.init = rebuild(slot.form, slot.zeros) end
  if carrying.learn(slot, self.what, slot.carry, slot.init, now) then
    self.more = true
  end
  return not core.same(slot.init, now)
end

-- Records results that are plain numbers at some exits of the function. Called
-- at the end of a pass over the function's body, when the types of traced
-- results are known.
local function learn_numbers(region)
  for _, slot in ipairs(region.results) do
    local numbers = slot.numbers or {}
    slot.numbers = nil
    for _, now in ipairs(numbers) do
      if slot.known then type_error(slot, region.what, slot.value, now) end
      if not slot.carry then carry_result(slot, now) end
      region:learn_result(slot, now)
    end
  end
end

--- Begins a pass over a function made by cute.func; first restores all slots
-- (the variables and fields that it may change).
function Region:begin_once()
  self:rewind(1)
  self:declare()
  for _, slot in ipairs(self.results) do
    if slot.carry then
      slot.init = rebuild(slot.form, slot.zeros)
      carrying.declare(slot, slot.carry, slot.init)
    end
  end
  core.open_once()
  self.depth = core.region_depth()
  for _, slot in ipairs(self.view.slots) do slot.head = slot.init end
  undefined.give(self, function(slot, value) set(slot, 1, value) end)
end

--- Ends a pass over a function made by cute.func that returned these results.
-- Returns true if another pass is needed.
---@param results table packed
---@return boolean
function Region:end_once(results)
  self:check_body()
  self:new_fields()
  self:catch_up()
  local sets = {}
  for _, slot in ipairs(self.view.slots) do
    local now = undefined.now(self, slot, get(slot, 1))
    slot.yes = now
    if self:learn_exit(slot, now) then sets[#sets + 1] = {slot, now} end
  end
  for i = 1, math.max(results.n, self.results.n or 0) do
    local slot = self:result(i, results)
    if self:learn_result(slot, results[i]) then
      sets[#sets + 1] = {slot, results[i]}
    end
  end
  self:check_tables()
  if self.more then
    learn_numbers(self)
    return self.given and undefined.differs(self) or true
  end
  if undefined.again(self) then return true end
  for _, s in ipairs(sets) do carrying.write(s[1].carry, s[2]) end
  core.close()
  return false
end

--- Ends the region of a function made by cute.func and returns the function's
-- results.
---@return any ...
function Region:finish_once()
  for _, slot in ipairs(self.view.slots) do
    if slot.carry then
      set(slot, 1, carrying.read(slot.carry, slot.init, true))
    elseif undefined.none(slot.init) then
      set(slot, 1, self:left(slot))
    end
  end
  local out = {n = self.results.n or 0}
  for i = 1, out.n do
    local slot = self.results[i]
    out[i] = slot.value
    if slot.carry then
      out[i] = carrying.read(slot.carry, slot.init, true)
    end
  end
  self:finish()
  return table.unpack(out, 1, out.n)
end

return regions
-- SPDX-License-Identifier: MIT
