--- A loop or branch of a kernel, traced in passes: what its body changes is
-- found by running it, and carried by variables of the kernel.
--
-- A region keeps a list of slots, the places that a body may change: locals,
-- upvalues, fields of tables. In each pass those known to change are set to
-- variables at its head; at its end the others are looked at.
local core = require "cute.core"
local carrying = require "cute.lang.loop_carried"
local fields = require "cute.lang.fields"
local dependencies = require "cute.lang.dependencies"
local report = require "cute.lang.report"
local undefined = require "cute.lang.undefined"

local parts, rebuild = carrying.parts, carrying.rebuild
local type_error = carrying.type_error

local regions = {}

local MAX_PASSES = 24
local MAX_DEPTH = 2048  -- of loops and branches
local MAX_FIELDS = 4000  -- of tables, searched for functions per loop

-- What is kept while a kernel is traced: see TRACE_STATE in core/bind/trace.h.
-- memo: what loops at a source position carried before, so that the passes of
-- an outer loop do not repeat those of an inner one.
local state

--- Tracing begins, or one within which another kernel was traced goes on.
---@param new table? state, nil: none is traced
---@return table? state of before
function regions.begin(new)
  local before = state
  state = new
  if not before then fields.reset() end
  return before
end

---------------------------------------------------------------------------
-- Slots: the places a body may change
---------------------------------------------------------------------------

-- A slot is a local {n=, name=} of the frame, an upvalue {f=, n=, name=}, or a
-- field {t=, k=, name="state.phase"} of a table.
function regions.get(slot, level)
  if slot.t then return rawget(slot.t, slot.k) end
  if slot.f then return (select(2, debug.getupvalue(slot.f, slot.n))) end
  return (select(2, debug.getlocal(level + 1, slot.n)))
end

-- The first host's value of a place that may outlive the trace: see restore.
local function remember(slot)
  local init = type(slot.init)
  if init ~= "number" and init ~= "boolean" then return end
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

--- Lua tests an undefined value, or compares it: see cute.lang.undefined.
function regions.tested(v)
  local value = undefined.tested(state.open, v)
  return value
end

local get, set = regions.get, regions.set
local SENTINEL = {}

-- Objects that mean nothing where the trace is over.
local TRACED = {value = true, vector = true}

--- What loops and branches changed in the script's variables and tables gets
-- its value back when the trace is over: they stood for values of the kernel.
function regions.restore()
  for _, known in next, state.left do
    for _, slot in next, known do
      if TRACED[core.typename(get(slot, 1))] then
        local before = slot.init
        if slot.zeros then before = nil end  -- only the branch set it
        if slot.t then rawset(slot.t, slot.k, before)
        else set(slot, 1, before) end
      end
    end
  end
  undefined.restore(state)
end

-- Is upvalue n of f one of the frame's own locals?
local function aliases_local(view, f, n, name, level)
  for _, slot in ipairs(view.slots) do
    if not slot.f and slot.name == name then
      local was = get(slot, level + 1)
      set(slot, level + 1, SENTINEL)
      local _, seen = debug.getupvalue(f, n)
      set(slot, level + 1, was)
      if seen == SENTINEL then return true end
    end
  end
  return false
end

local see

-- Functions in a table: what they change may change in the body.
local function search(view, t)
  if view.seen[t] or view.fixed[t] and t ~= _G or view.fields > MAX_FIELDS then
    return
  end
  view.seen[t] = true
  local n = 0
  for _, v in next, t do
    local kind = type(v)
    if kind == "function" or kind == "table" then see(view, v) end
    n = n + 1
  end
  view.fields = view.fields + n
  local meta = debug.getmetatable(t)
  if meta then see(view, meta) end
end

--- What cute.func made of functions: [helper] = function.
regions.helpers = setmetatable({}, {__mode = "k"})

function see(view, v)
  if type(v) == "function" then
    view.pending[#view.pending + 1] = regions.helpers[v] or v
  elseif type(v) == "table" then
    search(view, v)
  end
end

local function see_upvalues(view, f, level)
  if view.seen[f] then return end
  view.seen[f] = true
  local own = core.own_chunk(f)
  if own ~= nil and not view.chunks[own] then return end
  for n = 1, math.huge do
    local name, v = debug.getupvalue(f, n)
    if not name then break end
    local id = debug.upvalueid(f, n)
    if not view.seen[id] then
      view.seen[id] = true
      if name ~= "_ENV"
        and not (level and aliases_local(view, f, n, name, level + 1)) then
        view.slots[#view.slots + 1] = {f = f, n = n, name = name}
      end
      see(view, v)
    end
  end
end

--- What can change: locals of the frame at `level`, or the upvalues of these
-- functions; the upvalues of every function reached from there. Of lua/cute
-- functions are looked at where one of their file is a body.
function regions.collect(level, functions)
  local view = {slots = {}, rest = {}, pending = {}, seen = {}, fields = 0,
                chunks = {}, fixed = state.open and state.open.view.fixed
                  or dependencies.fixed()}
  if level then
    for n = 1, math.huge do
      local name, v = debug.getlocal(level + 1, n)
      if not name then break end
      if name:sub(1, 1) ~= "(" then
        view.slots[#view.slots + 1] = {n = n, name = name}
        see(view, v)
      end
    end
    for n = 1, math.huge do
      local name, v = debug.getlocal(level + 1, -n)
      if not name then break end
      if type(v) == "table" then
        view.rest[#view.rest + 1] = {t = v, name = "(...)", root = -n}
      end
      see(view, v)
    end
    functions = {debug.getinfo(level + 1, "f").func}
  end
  for _, f in ipairs(functions) do
    view.chunks[core.own_chunk(f) or 0] = true
    view.pending[#view.pending + 1] = f
  end
  while #view.pending > 0 do
    see_upvalues(view, table.remove(view.pending), level and level + 1)
  end
  return view
end

-- What a slot is known by from one pass or region to another.
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

-- Is a value known while tracing, with nothing of the device in it?
function regions.is_known(v)
  local sig, scalars = parts(v)
  for _, p in ipairs(scalars or {}) do
    if sig:find "^tensor" or core.typename(p) == "value" then return false end
  end
  return true
end

local is_known = regions.is_known

--- Checks a field that holds nothing at one end of a region; `now` is what it
-- holds at its end. What Lua alone computes may be kept under a new key, but
-- for a list, which grows once where its loop would do it each time.
function regions.check_growth(slot, now, what)
  if not slot.t then return end
  if undefined.none(slot.init) then
    if undefined.none(now) or not slot.appends and is_known(now) then return end
    core.fail("loop-table-changed", ("'%s' is new at the end of %s: fields "
      .. "that it changes must hold something before\n  give it a value "
      .. "before, or keep it in a local"):format(slot.name, what))
  elseif now == nil then
    core.fail("loop-table-changed", ("'%s' is gone at the end of %s: fields "
      .. "that it changes must hold something then\n  let it keep a value of "
      .. "its type"):format(slot.name, what))
  end
end

---------------------------------------------------------------------------
-- One region traced in passes
---------------------------------------------------------------------------

local Region = {}
Region.__index = Region

-- CUTELUA_DEBUG=trace tells what each pass found.
local telling = core.debugs "trace"

-- The variables of a carry: "i32 0 to 2".
local function variables(carry)
  local list = {}
  for i = 1, carry.n do
    local f = carry.facts[i]
    local text = carry.types[i] and tostring(carry.types[i])
    if f and (f.lo > math.mininteger or f.hi < math.maxinteger) then
      text = ("%s %s to %s"):format(text,
        f.lo > math.mininteger and f.lo or "any",
        f.hi < math.maxinteger and f.hi or "any")
    end
    list[#list + 1] = text
  end
  return table.concat(list, ", ")
end

--- Tells of a slot: newly carried, since it changes from one value to another
-- (or a branch's two ends leave them), or known better.
function Region:tell(slot, from, to)
  if not telling then return end
  local line = ("  pass %d: %s '%s' "):format(self.passes,
    slot.t and "field" or slot.f and "upvalue" or "local", slot.name)
  if from ~= nil then
    line = line .. (self.loops and "changes from %s to %s: carried as "
      or "ends as %s or %s: carried as "):format(core.show(from), core.show(to))
  else
    line = line .. "may be more: "
  end
  report.tell(line .. variables(slot.carry))
end

--- The place in the script of a `for` whose iterator is asked.
---@param level integer of the frame with the loop, for the caller
---@return string
function regions.place(level)
  local info = debug.getinfo(level + 1, "Sl")
  return info.source .. ":" .. info.currentline
end

--- The place in the script of a call.
---@param what string "loop ", to tell it from others there
---@return string
function regions.call_place(what)
  local chunk, line = core.script_line()
  return what .. (chunk and chunk .. ":" .. line or "?")
end

local FORMS = {["cute.when"] = "branch", ["cute.cases"] = "branch",
               ["cute.func"] = "function"}

--- A region opens. `key` is its place in the script, by which later ones of
-- that place know what it carried.
---@param what string "this loop"
---@param key string
---@param view table from regions.collect
function regions.open(what, key, view)
  if core.region_depth() >= MAX_DEPTH then
    core.fail("limit", ("loops and branches nest at most %d deep"):format(
      MAX_DEPTH))
  end
  local memo = state.memo[key] or {ways = {}, carries = {}}
  state.memo[key] = memo
  if telling then report.tell(key:match "@?([^@]*)$" .. ": " .. what) end
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

--- The innermost open region that one can leave: a loop, or a helper.
---@return table?
function regions.innermost()
  local region = state.open
  while region and not region.leavable do region = region.outer end
  return region
end

-- What was remembered of a slot, if it fits.
function Region:recall(slot)
  if undefined.none(slot.init) then return end
  local carry = self.memo.carries[key_of(slot)]
  if not carry or not carrying.fits(carry, slot.init) then return end
  slot.carry = {sig = carry.sig, n = carry.n, truth = carry.truth,
                types = table.move(carry.types, 1, carry.n, 1, {}),
                facts = table.move(carry.facts, 1, carry.n, 1, {})}
end

function Region:start(level)
  local known = next(self.memo.carries) ~= nil
  for _, slot in ipairs(self.view.slots) do
    slot.init = get(slot, level + 1)
    if known then self:recall(slot) end
  end
  for _, way in ipairs(self.memo.ways) do self:recall_field(way) end
end

-- Back to the region's head, with all locals and fields as they were.
function Region:rewind(level)
  self.passes = self.passes + 1
  self.more, self.exits, self.doubts, self.inside = false, 0, {}, {}
  if self.passes > MAX_PASSES and not self.given then
    core.fail("internal", "a loop did not settle in "
      .. MAX_PASSES .. " passes")
  end
  if self.passes > 1 then
    if not core.rollback(self.mark) then self:interleaved() end
    for i = #state.watched, self.watched + 1, -1 do
      state.watched[i] = nil
    end
  end
  fields.rewind(self.writes)
  for _, slot in ipairs(self.view.slots) do
    if slot.zeros then slot.init = rebuild(slot.form, slot.zeros) end
    set(slot, level + 1, slot.init)
    slot.outs = nil
  end
end

-- An error came out of the region, and the kernel may go on (pcall): nothing
-- of it stays.
function Region:abandon()
  if not core.tracing() then return end
  core.rollback(self.mark)
  fields.abandon(self.writes)
  for _, slot in ipairs(self.view.slots) do
    local before = slot.init
    if slot.zeros then before = slot.before end
    if slot.f then set(slot, 1, before) end  -- the frame's own locals end
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

-- A coroutine switched to other code of the kernel within the region, or from
-- it: regions would no longer nest.
function Region:interleaved()
  core.fail("loop-exit", ("a coroutine switched out of %s before its end\n  "
    .. "let it yield outside of loops and branches of the kernel")
    :format(self.what))
end

-- The body is done, and with it all that it began.
function Region:check_body()
  if core.region_depth() ~= self.depth then self:interleaved() end
  if fields.suspended() then
    core.fail("loop-exit", ("a coroutine that began in %s has not come to its "
      .. "end with it\n  let it end there, or take before what it gives")
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
    end
  end
end

-- The region has ended.
function Region:finish()
  self:remember()
  if telling then report.tell(("  pass %d: no more"):format(self.passes)) end
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

-- The field that a loop at this place carried before, if there is one.
function Region:recall_field(way)
  local t = way.from
  for _, slot in ipairs(t and {} or self.view.slots) do
    if key_of(slot) == way.root then t = slot.init end
  end
  t = t and fields.follow(way, t)
  if not t or self.fields[t] and self.fields[t][way.k] then return end
  local init = rawget(t, way.k)
  if undefined.none(init) then return end
  local slot = {t = t, k = way.k, name = way.name, init = init, head = init}
  self:add_field(slot, table.move(way, 1, #way, 1,
                                  {root = way.root, from = way.from}))
  self:recall(slot)
end

-- Where the body can reach tables from, as it began.
function Region:roots()
  local roots = table.move(self.view.rest, 1, #self.view.rest, 1, {})
  for _, slot in ipairs(self.view.slots) do
    local v = slot.head
    if self.doubts[v] then v = self.doubts[v].value end
    if type(v) == "table" and not slot.t then
      roots[#roots + 1] = {t = v, name = slot.name, root = key_of(slot)}
    end
  end
  for i, t in ipairs(state.accumulate) do
    roots[#roots + 1] = {t = t, name = "ACCUMULATE", root = "ACCUMULATE " .. i,
                         fixed = true}
  end
  roots[#roots + 1] = {t = _G, name = "_G", root = "_G", fixed = true}
  local names = {}
  for name, m in next, package.loaded do
    if type(m) == "table" and m ~= _G then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local text = ("require %q"):format(name)
    roots[#roots + 1] = {t = package.loaded[name], name = text, root = text,
                         fixed = true}
  end
  return roots
end

-- A table from outside keeps its metatable: only some threads would see it.
function Region:check_metatables()
  local wanted = fields.metatables()
  if next(wanted) == nil then return end
  local _, place = next(fields.find(self:roots(), wanted))
  if place then
    core.fail("loop-table-changed", ("'%s' gets another metatable in %s\n  "
      .. "set it before, or make the table inside"):format(fields.name(place),
      self.what))
  end
end

-- Slots for fields that changed and had none.
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
      self:add_field(slot, fields.way(place))
      slots[#slots + 1] = slot
    end
  end
  return slots
end

-- Adds a table, and the plain ones in it, to a set.
local function add_tables(set_of, t, name)
  if type(t) ~= "table" or set_of[t] then return end
  set_of[t] = name
  for _, v in next, t do add_tables(set_of, v, name) end
end

-- A local that gets another plain table is carried by what is in the tables;
-- fields of them cannot be carried, too.
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
      core.fail("loop-table-changed", ("'%s' is another table at the end of "
        .. "%s, and '%s' of the first one changed\n  either change the fields "
        .. "of one table, or make a new one each time")
        :format(by, self.what, slot.name))
    end
  end
end

-- Puts carried upvalues in an order that is the same in every process: of
-- functions in a table, they were found in that table's order.
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

-- Loops: declare variables before the region, read them at its head.
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

-- The level of the frame that a traced `for` runs in, for its caller.
local function frame_of(loop)
  for level = 2, math.huge do
    if not debug.getinfo(level, "l") then break end
    for n = 1, math.huge do
      local name, v = debug.getlocal(level, n)
      if not name then break end
      if rawequal(v, loop) and name == "(for state)" then return level - 1 end
    end
  end
  core.fail("loop-exit", "cute.break_if in a coroutine that began in the loop"
    .. "\n  leave the loop where it stands")
end

-- What a slot holds where lanes leave: true when it has to be written. The
-- pass is void (self.more) when that was not known.
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

--- Lanes leave the region where cond holds: what has changed by now is what
-- comes out of it. A helper's results are those given.
---@param cond boolean|cute.Value
---@param results? table packed
function Region:leave_if(cond, results)
  local level = self.loop and frame_of(self.loop) or 1
  self.exits = self.exits + 1
  fields.since(self.writes, function() return self:new_fields() end)
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

-- What a slot holds at the body's end: true when another pass is needed.
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

-- At the body's end: true when another pass is needed.
function Region:again(level)
  local again = self.more
  self:check_body()
  self.grown = false
  self:new_fields()
  for _, slot in ipairs(self.view.slots) do
    local now = undefined.now(self, slot, get(slot, level + 1))
    again = self:learn_end(slot, now) or again
  end
  self:check_tables()
  if again and self.given then return undefined.differs(self) end
  return again or undefined.again(self, self.grown)
end

-- What a slot that was nil holds behind a loop or function: where all ways out
-- leave one value, that; nil, or an undefined value.
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
-- A helper that lanes leave early: cute.func
---------------------------------------------------------------------------

-- A slot for result i, of as many as the first way out gave.
function Region:result(i, results)
  if self.results.n == nil then self.results.n = results.n end
  if self.results.n ~= results.n then
    core.fail("bad-argument", ("a function returns %d values here and %d "
      .. "there\n  cute.return_if(condition, values...) gives what its return "
      .. "does"):format(self.results.n, results.n))
  end
  self.results[i] = self.results[i] or {name = "result " .. i}
  return self.results[i]
end

-- Begins to carry a result, of which `one` is an example.
local function carry_result(slot, one)
  local sig, list = parts(one)
  for k, p in ipairs(list) do
    list[k] = core.dtype_of(p) == core.boolean and false or 0
  end
  slot.form, slot.zeros = one, list
  slot.carry = {sig = sig, n = #list, types = {}, facts = {}}
end

-- One way's result: true when it has to be written. What cannot be carried is
-- the same on all ways.
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
    if is_known(now) then  -- numbers take the type of what is traced, later
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

-- The pass is over: what numbers say of results.
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

--- A pass over a helper begins, all as it was before.
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

--- The helper came to its end, with these results: true when another pass is
-- needed.
---@param results table packed
---@return boolean
function Region:end_once(results)
  self:check_body()
  self:new_fields()
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

--- The region of a helper has ended; its results.
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
