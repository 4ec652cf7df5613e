--- The surgeon: finds out which synchronisation operations of a launch are
-- needed and which could be weaker. For a bug, it finds out which change fixes
-- the bug.
--
-- The surgeon patches the traced function: it removes, replaces or inserts an
-- instruction (core/decode/patch.c) wherever its Lua line occurs, and explores
-- every schedule again (cutelua.check.explore). "Not needed" holds only for
-- these inputs and sizes.
local core = require "cute.core"
local explore = require "cutelua.check.explore"
local redundant_sync = require "cutelua.check.redundant_sync"
local operands = require "cutelua.check.operands"
local plural = require "cute.lang.report".plural
local source = require "cute.lang.source"
local sync = require "cutelua.check.sync"

local repair = {}

local BOUNDS = {orders = 200, seconds = 5}

---------------------------------------------------------------------------
-- Sites
---------------------------------------------------------------------------

local function key_of(s) return s.file .. ":" .. s.line end

-- STRENGTH ranks memory orders, the weakest first. STRONGEST is the strongest
-- order that each kind of access can have.
local STRENGTH = {relaxed = 1, acquire = 2, release = 3, acq_rel = 4}
local STRONGEST = {ld = "acquire", st = "release", atomic = "acq_rel",
                   ["mbarrier.arrive"] = "release"}

-- Returns the memory order of an access; nil for a plain access. An atomic
-- without an explicit order is relaxed.
local function sem_of(s)
  return s.sem or s.op == "atomic" and "relaxed" or nil
end

local function at(s) return ("%s:%d"):format(source.short(s.file), s.line) end

-- Returns the synchronisation operations of a kernel by line: {op, file, line,
-- sites = the instructions}. An arrival at the cluster's barrier is part of the
-- wait that follows it.
local function operations(sites)
  local list, known, arrivals = {}, {}, {}
  for _, s in ipairs(sites) do
    local key = ("%s %s %d"):format(key_of(s), s.op, s.imm)
    if s.op == "cluster.arrive" then
      arrivals[#arrivals + 1] = s
    elseif sync.is_order(s.op) then
      local o = known[key]
      if not o then
        o = {op = s.op, imm = s.imm, fence = s.fence, read = s.read,
             file = s.file, line = s.line, count = s.count, sites = {}}
        known[key], list[#list + 1] = o, o
      end
      o.sites[#o.sites + 1] = s
      if s.op == "cluster.wait" then
        o.first = {op = "cluster.arrive"}
        o.sites[#o.sites + 1] = table.remove(arrivals)
      end
    elseif STRENGTH[s.sem] and s.sem ~= "relaxed" then
      key = key .. " sem"
      local o = known[key]
      if not o then
        o = {op = "order", sem = s.sem, file = s.file, line = s.line,
             sites = {}}
        known[key], list[#list + 1] = o, o
      end
      o.sites[#o.sites + 1] = s
    end
  end
  return list
end

local function edits_of(o, how, as)
  local list = {}
  for i, s in ipairs(o.sites) do
    local e = {ref = s.ref, how = how}
    for k, v in pairs(as or {}) do e[k] = v end
    list[i] = e
  end
  return list
end

--- Returns the patches that remove operation o, an entry of operations(). A
-- memory order is not removed; it becomes relaxed.
---@param o table
---@return table[]
function repair.without(o)
  if o.op == "order" then return edits_of(o, "sem", {sem = "relaxed"}) end
  return edits_of(o, "drop")
end

--- Returns a function like `run` that also applies the patches `edits`. The
-- caller's own patches (o.edits) are applied after `edits`.
---@param run fun(o: table): table
---@param edits table[]
---@return fun(o: table): table
function repair.edited(run, edits)
  return function(o)
    local more, all = o.edits or {}, table.move(edits, 1, #edits, 1, {})
    -- If an instruction has several patches, the last one applies.
    table.move(more, 1, #more, #all + 1, all)
    local words = {edits = all}
    for k, v in pairs(o) do if k ~= "edits" then words[k] = v end end
    return run(words)
  end
end

local edited = repair.edited

-- Explores a launch with patches. Returns "ok"; or "bug" and the fault; or
-- "differs" if the results are not those of `memory`, a checksum; or
-- "incomplete".
local function verdict(run, edits, memory, limit)
  local changed = edited(run, edits)
  local result = explore.all(changed, {orders = BOUNDS.orders,
    seconds = BOUNDS.seconds, limit = limit})
  if result.verdict ~= "ok" then return result.verdict, result.fault end
  local found = memory and changed {}
  if found and found.stopped then return "incomplete" end
  if found and found.memory ~= memory then return "differs" end
  return "ok"
end

---------------------------------------------------------------------------
-- Needed operations
---------------------------------------------------------------------------

--- Examines each synchronisation operation of a launch. It removes each
-- barrier, wait, fence and memory order in turn, and tries weaker forms of
-- needed ones. Returns a list of {file, line, words, need = "needed", "not
-- needed" or "unknown", fault, weaker = words}.
---@param run fun(o: table): table runs a launch that is ok
---@param fn any the traced function
---@param limit? number a time of core.clock: operations not examined by then
-- are "unknown", and list.late is true
---@return table[]
function repair.needs(run, fn, limit)
  local memory, list = run({}).memory, {}
  for _, o in ipairs(operations(core.sim_sites(fn))) do
    local out = {file = o.file, line = o.line, words = sync.words(o), op = o}
    list.late = list.late or limit and core.clock() > limit
    local found, fault = "incomplete", nil
    if not list.late then
      found, fault = verdict(run, repair.without(o), memory, limit)
    end
    out.need = found == "ok" and "not needed"
      or found == "incomplete" and "unknown" or "needed"
    out.fault = fault
    local as = out.need == "needed" and sync.weaker(o)
    if as and verdict(run, edits_of(o, "as", as), memory, limit) == "ok" then
      out.weaker = sync.words(as)
    end
    list[#list + 1] = out
    out.nth = #list
  end
  return list
end

-- Returns the patches that remove all operations of a list, whose entries are
-- those of repair.needs.
local function all_of(list)
  local edits = {}
  for _, n in ipairs(list) do
    local own = repair.without(n.op)
    table.move(own, 1, #own, #edits + 1, edits)
  end
  return edits
end

-- Returns a minimal subset of `others` whose removal, together with operation
-- n, causes a fault. fails(list) reports whether removing the operations of
-- `list` causes a fault.
local function conflict(others, n, fails)
  local set = table.move(others, 1, #others, 1, {})
  for i = #set, 1, -1 do
    local o = table.remove(set, i)
    if not fails {n, table.unpack(set)} then table.insert(set, i, o) end
  end
  return set
end

--- Finds a set of operations that can be removed together, among the operations
-- that repair.needs reports as not needed. Sets list.together to this set. An
-- operation that can be removed alone, but not together with the set, gets
-- `one_of`: a list of entries, at least one of which must stay.
---@param list table[]
---@param run fun(o: table): table
---@param limit? number a time of core.clock: if it is reached, list.late is
-- true and there are no sets
function repair.sets(list, run, limit)
  local memory, together, apart = run({}).memory, {}, {}
  local function is_late()
    list.late = list.late or limit and core.clock() > limit or nil
    return list.late
  end
  local function fails(some)
    return not is_late() and verdict(run, all_of(some), memory, limit) ~= "ok"
  end
  for _, n in ipairs(list) do
    if n.need == "not needed" then
      local more = table.move(together, 1, #together, 1, {})
      more[#more + 1] = n
      if together[1] and fails(more) then apart[#apart + 1] = n
      else together = more end
    end
  end
  for _, n in ipairs(is_late() and {} or apart) do
    local set = conflict(together, n, fails)
    if is_late() then break end
    table.insert(set, 1, n)
    table.sort(set, function(x, y) return x.nth < y.nth end)
    for _, o in ipairs(set) do o.one_of = o.one_of or set end
  end
  list.together = not is_late() and together[2] and together or nil
  return together
end

--- Times the launch without each operation that is not needed. Sets the field
-- `gain` of each operation to {with =, without = seconds, how =}, or to {why
-- =} if times are unknown. list.gain is the gain of removing all of
-- list.together.
---@param list table[]
---@param run fun(o: table): table
---@param program table
---@param launch table
---@param on_gpu? boolean false: use the model
---@param limit? number a time of core.clock at which the search for sets ends
function repair.gains(list, run, program, launch, on_gpu, limit)
  local unneeded, edits = {}, {}
  local together = repair.sets(list, run, limit)
  if list.late then return end
  for _, n in ipairs(list) do
    if n.need == "not needed" then
      unneeded[#unneeded + 1], edits[#edits + 1] = n, repair.without(n.op)
    end
  end
  if not unneeded[1] then return end
  if list.together then
    unneeded[#unneeded + 1], edits[#edits + 1] = list, all_of(together)
  end
  local times, how, why = redundant_sync.times(program, launch, edits, on_gpu)
  for i, n in ipairs(unneeded) do
    n.gain = times[0] and times[i]
      and {with = times[0], without = times[i], how = how}
      or {why = why[0] or why[i]}
  end
end

local function gain_told(g)
  if g.why then return "; time unknown: " .. g.why end
  return ("; %.2f us without it, %.2f with (%s)"):format(g.without * 1e6,
    g.with * 1e6, g.how)
end

local NUMBERS = {"one", "two", "three", "four", "five"}

-- Returns text that says whether an operation is needed: "needed", or "one of
-- these two is needed, this or gemm.lua:7".
local function need_told(n)
  if not n.one_of then return n.need end
  local others = {}
  for _, o in ipairs(n.one_of) do
    if o ~= n then others[#others + 1] = at(o) end
  end
  return ("one of these %s is needed, this or %s"):format(
    NUMBERS[#n.one_of] or #n.one_of, table.concat(others, " or "))
end

--- Returns a text for the user that says which synchronisation is needed, for a
-- list from repair.needs.
function repair.told(list)
  local text = {}
  for _, n in ipairs(list) do
    local why = n.fault and (" (without it: %s)"):format(n.fault.kind) or ""
    text[#text + 1] = ("%s: %s: %s%s%s"):format(at(n), n.words, need_told(n),
      why,
      n.weaker and ("; %s suffices at these sizes"):format(n.weaker)
      or n.gain and gain_told(n.gain) or "")
  end
  if list.late then
    text[#text + 1] = "not all of them were examined: the time limit was "
      .. "reached"
  end
  if list.together then
    local lines = {}
    for i, n in ipairs(list.together) do lines[i] = at(n) end
    text[#text + 1] = "not needed together: " .. table.concat(lines, ", ")
      .. gain_told(list.gain):gsub(" it,", " them,", 1)
  end
  return text
end

---------------------------------------------------------------------------
-- Fixing a bug
---------------------------------------------------------------------------

local VALUES = {["vset"] = true, ["vget"] = true, ["var"] = true}

-- Reports whether an instruction's position before or after a synchronisation
-- operation can matter. It cannot for instructions that only compute values or
-- use registers.
local function matters(s)
  return s.class ~= "value" and not sync.is_order(s.op) and not VALUES[s.op]
    and s.op ~= "cluster.arrive"
end

-- Iterates over the instructions that do more than compute a value. Each step
-- yields an instruction, and whether the instruction ends a region: a loop, or
-- the first part of a branch with an else. The end of an `if` is omitted.
local function steps(sites)
  return coroutine.wrap(function()
    local open = {}
    for _, s in ipairs(sites) do
      if s.op == "else" then
        coroutine.yield(s, true)
      elseif s.class == "open" then
        coroutine.yield(s, false)
        open[#open + 1] = s.op
      elseif s.class == "close" then
        if table.remove(open) ~= "if" then coroutine.yield(s, true) end
      elseif s.class ~= "value" then
        coroutine.yield(s, false)
      end
    end
  end)
end

-- Returns the points where an operation can be inserted, in the order of the
-- trace: before each line with an effect, and at the end of each region.
local function places(sites)
  local list, known, before, op = {}, {}, nil, nil
  for s, ends in steps(sites) do
    local key = key_of(s) .. (ends and " end" or "")
    if key ~= before then
      local p = known[key]
      if not p then
        p = {file = s.file, line = s.line, refs = {}, op = s.op, before = op,
             ends = ends}
        known[key], list[#list + 1] = p, p
      end
      p.refs[#p.refs + 1] = s.ref
    end
    before, op = key, s.op
  end
  if list[1] then
    local p = list[#list]
    list[#list + 1] = {file = p.file, line = p.line, refs = {sites.last},
                       before = op, last = true}
  end
  return list
end

-- Returns the instructions of `sites` without those of the operation `gone`.
local function left(sites, gone)
  if not gone then return sites end
  local refs, list = {}, {last = sites.last}
  for _, s in ipairs(gone.sites) do refs[s.ref] = true end
  for _, s in ipairs(sites) do
    if not refs[s.ref] then list[#list + 1] = s end
  end
  return list
end

-- Appends to `list` the patches that insert operation o before the instruction
-- `ref`. If o.first is set, this other operation is inserted before o.
local function insert(list, ref, o)
  if o.first then insert(list, ref, o.first) end
  list[#list + 1] = {ref = ref, how = "before", op = o.op, imm = o.imm,
                     fence = o.fence, read = o.read, count = o.count,
                     scope = o.scope, mem = o.mem, base = o.base}
end

local function insertion(place, o)
  local list = {}
  for _, ref in ipairs(place.refs) do insert(list, ref, o) end
  if o.op == "tmap.acquire" then
    for i, e in ipairs(list) do e.mem = place.maps[i] end
  end
  return list
end

-- Returns the insertion points before copies that use tensor maps in memory.
local function map_places(sites)
  local list, known = {}, {}
  for _, s in ipairs(sites) do
    local key = key_of(s)
    if s.map then
      local p = known[key]
      if not p then
        p = {file = s.file, line = s.line, refs = {}, maps = {}, op = s.op}
        known[key], list[#list + 1] = p, p
      end
      p.refs[#p.refs + 1], p.maps[#p.maps + 1] = s.ref, s.map
    end
  end
  return list
end

-- Reports whether operation o is usually needed at insertion point p. This
-- holds for a barrier after a wait or a fence, a fence before a barrier, and
-- expect_tx before a copy.
local function is_usual(p, o)
  if o.op == "mbarrier.expect_tx" then
    return p.op ~= nil and p.op:find "%.load$" ~= nil
  end
  if o.op == "bar.sync" then
    return p.before and sync.is_order(p.before) and p.before ~= "bar.sync"
  end
  return o.op == "fence" and p.op == "bar.sync"
end

-- Returns the insertion points in the order in which to try them. The usual
-- points for operation o come first. Then points are ordered by their distance
-- from the lines of the fault; at equal distance, points before such a line
-- come first.
local function in_turn(list, fault, o)
  local function far(p)
    local d = math.huge
    for i, line in ipairs {fault.line or false, fault.line2 or false} do
      if line then
        local n = line - p.line
        d = math.min(d, (n >= 0 and 2 * n or -2 * n + 1) + i / 4)
      end
    end
    return (is_usual(p, o) and d - 1e6 or d) + (p.when or 0) * 1e9
  end
  local order = {}
  for i, p in ipairs(list) do order[p] = {far(p), i} end
  local out = table.move(list, 1, #list, 1, {})
  table.sort(out, function(a, b)
    local x, y = order[a], order[b]
    if x[1] ~= y[1] then return x[1] < y[1] end
    return x[2] < y[2]
  end)
  return out
end

---------------------------------------------------------------------------
-- Trials
---------------------------------------------------------------------------

-- The largest number of instructions of a warp in a trial run. A patched kernel
-- that exceeds it does not count as fixed, because it probably spins.
local BUDGET = 2000000

local DOING = "searching for a repair of"

-- A search for a fix of one launch that has a bug. Its fields: sites, the
-- launch's instructions; here, the input of cutelua.check.sync; fault; bounds,
-- whose `limit` is a time of core.clock; limit, a time of os.clock. The search
-- ends at the earlier of these times. began: the time of os.clock at its start;
-- edits: number of edits tried so far; progress: shows the spent part of the
-- time.
local Trial = {}
Trial.__index = Trial

function Trial:is_spent()
  local limit = self.bounds.limit
  return os.clock() > self.limit or limit and core.clock() > limit
end

--- Reports whether patches fix the bug: no fault remains and, if there is a
-- judge of results, the results are right. Returns "ok"; "open" if not all
-- schedules were examined; nil if the bug remains. One run shows most faults,
-- so only patches whose run has no fault are explored fully.
function Trial:mends(edits)
  if self:is_spent() then return nil end
  self.edits = self.edits + 1
  self.progress((os.clock() - self.began) / (self.limit - self.began), DOING)
  local changed = edited(self.run, edits)
  local found = changed {budget = BUDGET}
  if found.reports[1] or found.stopped then return nil end
  if self.judge and not self.judge(edits) then return nil end
  local result = explore.all(changed, self.bounds)
  if result.verdict == "bug" then return nil end
  return result.verdict == "ok" and "ok" or "open"
end

-- Returns the accesses whose memory order could be stronger or whose scope
-- could be wider, by line: {file, line, refs, sem = stronger order, scope =
-- wider scope}.
function Trial:weak_ones()
  local list, known = {}, {}
  for _, s in ipairs(self.sites) do
    local function add(sem, scope)
      local key = ("%s %s %s %s"):format(key_of(s), s.op, sem, scope)
      local p = known[key]
      if not p then
        p = {file = s.file, line = s.line, refs = {}, sem = sem, scope = scope}
        known[key], list[#list + 1] = p, p
      end
      p.refs[#p.refs + 1] = s.ref
    end
    local sem, most = sem_of(s), STRONGEST[s.op]
    if sem == "relaxed" and most == "acq_rel" then
      add "acquire"
      add "release"
    end
    if sem and most and STRENGTH[sem] < STRENGTH[most] then add(most) end
    if s.op:find "^mbarrier" then
      if self.here.ctas > 1 and s.scope ~= "cluster" then
        add(nil, "cluster")
        if sem then add(most, "cluster") end
      end
    elseif sem and (s.scope == "cta" or s.scope == "cluster") then
      add(nil, "gpu")
      if STRENGTH[sem] < STRENGTH[most] then add(most, "gpu") end
    end
  end
  table.sort(list, function(a, b)
    local x, y = a.scope ~= nil, b.scope ~= nil
    if x ~= y then return y end
    if a.refs[1] ~= b.refs[1] then return a.refs[1] < b.refs[1] end
    return (STRENGTH[a.sem] or 0) < (STRENGTH[b.sem] or 0)
  end)
  return list
end

local function strengthened(list)
  local edits = {}
  for _, p in ipairs(list) do
    for _, ref in ipairs(p.refs) do
      edits[#edits + 1] = {ref = ref, how = "sem", sem = p.sem, scope = p.scope}
    end
  end
  return edits
end

--- Returns a fix of the bug that strengthens one memory order, or a minimal set
-- of several orders; nil if there is none.
function Trial:orders()
  local list = self:weak_ones()
  local function result(some, how)
    for _, p in ipairs(some) do
      p.words = sync.words {op = "order", sem = p.sem, scope = p.scope}
    end
    return {words = some[1].words, op = {op = "order", sem = some[1].sem,
      scope = some[1].scope}, places = some, together = #some > 1,
      stands = true, open = how == "open" or nil}
  end
  for _, p in ipairs(list) do
    local how = self:mends(strengthened {p})
    if how then return result({p}, how) end
  end
  local how = #list > 1 and self:mends(strengthened(list))
  if not how then return nil end
  for i = #list, 1, -1 do
    local p = table.remove(list, i)
    local less = self:mends(strengthened(list))
    how = less or how
    if not less then table.insert(list, i, p) end
  end
  return result(list, how)
end

-- Returns the candidates for a fix, in the order in which to try them:
-- replacements of operations and of their operands. Patches of one line with
-- the same words and ring form one candidate.
function Trial:candidates()
  local list, known = {}, {}
  local function add(s, when, as, words, ring, group)
    words = words or sync.words(as)
    local key = ("%s %d %s %s"):format(group or key_of(s), when, words,
      ring and ring.mem .. ":" .. ring.lo or "")
    local c = known[key]
    if not c then
      c = {words = words, as = as, file = s.file, line = s.line, edits = {},
           when = when, places = {}}
      known[key], list[#list + 1] = c, c
    end
    local place = key_of(s)
    if not c.places[place] then
      c.places[place] = true
      table.insert(c.places, {file = s.file, line = s.line, words = words,
                              ring = ring and ring.name, refs = {s.ref}})
    end
    local e = {ref = s.ref}
    for k, v in pairs(as) do e[k] = v end
    c.edits[#c.edits + 1] = e
  end
  for _, s in ipairs(self.sites) do
    sync.changes(s, self.here, function(as, words)
      add(s, operands.PLAIN, as, words)
    end)
  end
  operands.each(self.here, add)
  return in_turn(list, self.fault, {})
end

-- The last priority of operand changes that are tried before operations are
-- inserted, by kind of fault. It is RING for kinds that are not listed. The
-- listed kinds, such as accesses to blocks that start late or exit early, have
-- a smaller limit. There, changing a rank, stage or number may merely hide the
-- fault.
local BEFORE = {["exited-block"] = operands.SAME,
                ["unstarted-block"] = operands.SAME,
                ["dependent-launch"] = operands.SAME}

-- The largest number of alternative fixes that are reported, at other lines
-- than the first fix.
local OTHERS = 3

--- Returns a fix that replaces an operation or an operand; nil if there is
-- none. m.others has alternative fixes at other lines. Tries candidates with
-- priorities from `after` (exclusive) to `last`.
function Trial:changes(after, last)
  local first, known, began, till = nil, {}, os.clock(), self.limit
  self.list = self.list or self:candidates()
  for _, c in ipairs(self.list) do
    if first and (#first.others == OTHERS or os.clock() > till) then break end
    local how = c.when > after and c.when <= last and not known[key_of(c)]
      and self:mends(c.edits)
    if how then
      local m = {words = c.words, op = c.as, stands = true, edits = c.edits,
                 places = table.move(c.places, 1, #c.places, 1, {}),
                 together = #c.places > 1, open = how == "open" or nil}
      known[key_of(c)] = true
      if first then
        table.insert(first.others, m)
      else
        first, m.others = m, {}
        till = os.clock() + math.max(os.clock() - began, 0.2)
      end
    end
  end
  return first
end

-- Adds alternatives to fix m: candidates with a priority above `after`. The
-- search for them may take as long as the search for m, which began at `began`.
function Trial:alternatives(m, after, began)
  local now = os.clock()
  self.limit = math.min(self.limit, now + math.max(now - began, 0.2))
  local more = #m.others < OTHERS and self:changes(after, math.huge)
  for _, o in ipairs(more and {more, table.unpack(more.others)} or {}) do
    if #m.others < OTHERS then table.insert(m.others, o) end
    o.others = nil
  end
  return m
end

-- Tries to insert operation o at the points `from` to `to` of a list. Returns
-- the points where the insertion fixes the bug. Also returns whether some
-- schedules were not examined.
function Trial:at_places(list, o, from, to)
  local found, open = {}, false
  for i = from, math.min(to, #list) do
    if self:is_spent() then break end
    local how = self:mends(insertion(list[i], o))
    if how then
      found[#found + 1] = list[i]
      open = open or how == "open"
      -- Stop here: an incomplete exploration has used up the time.
      if open then break end
    end
  end
  return found, open
end

--- Returns a fix that inserts one operation or, if `chains` is true, several in
-- sequence; nil if there is none. For all operations, insertion points near the
-- fault are tried before points that are far from it.
function Trial:insertions(chains)
  local all, maps = places(self.sites), map_places(self.sites)
  local list = {}
  for _, o in ipairs(sync.lacks(self.here, self.fault.kind)) do
    local several = o.first ~= nil and o.op ~= "cluster.wait"
    if several == chains then list[#list + 1] = o end
  end
  local before = os.clock()
  self.run {budget = BUDGET}
  local each = math.max(os.clock() - before, 1e-5)
  local near = math.max(6, (self.limit - before) // (2 * each * #list))
  for _, part in ipairs {{1, near}, {near + 1, math.huge}} do
    for _, o in ipairs(list) do
      local where = in_turn(o.op == "tmap.acquire" and maps or all, self.fault,
                            o)
      local found, open = self:at_places(where, o, part[1], part[2])
      if found[1] and not open and part[1] == 1 then
        local more = self:at_places(where, o, part[2] + 1, math.huge)
        table.move(more, 1, #more, #found + 1, found)
      end
      if found[1] then
        return {words = sync.words(o), op = o, places = found,
                open = open or nil}
      end
    end
  end
end

-- Returns the first fix that the search finds, or nil.
function Trial:find()
  local before = BEFORE[self.fault.kind] or operands.RING
  local lacks = self.fault.kind ~= "wrong-results"
  local m = self:orders()
  if m then return m end
  local began = os.clock()
  m = self:changes(0, before)
  if m then return self:alternatives(m, before, began) end
  return lacks and self:insertions(false)
    or self:changes(before, operands.DATA)
    or lacks and self:insertions(true)
    or self:changes(operands.DATA, math.huge) or nil
end

--- Searches for the smallest fix of a bug, usually an operation to insert at
-- one line. Returns nil and what was tried (repair.failure) if nothing is
-- found, else a table with these fields:
--   words, op  the operation as text and as a table
--   places     {file, line, ends}, ...: all lines where the fix works
--   stands     true if the fix changes an existing operation, such as its
--              memory order, instead of inserting one
--   together   true if all the places must change
--   others     fixes at other lines
--   open       true if not all schedules were examined; the examined ones have
--              no fault
---@param run fun(o: table): table runs a launch that has a bug
---@param fn any
---@param fault table
---@param opts table {seconds: number?, gone: table?, runs: integer?, judge:
-- function?, limit: number?, progress: function?}. seconds: time limit of the
-- search, 20 when absent. gone: an operation of repair.needs whose removal
-- caused the bug. runs: runs until the fault was found; exploring a fix may
-- take twice as many. judge(edits): reports whether results are right. limit: a
-- time of core.clock at which the search ends, even before `seconds` are over
---@return table? fix
---@return table? tried
function repair.mend(run, fn, fault, opts)
  local gone, began = opts.gone, os.clock()
  local weak = gone and gone.op == "order" and repair.without(gone) or {}
  local sites = left(core.sim_sites(fn), gone and not weak[1] and gone)
  for _, e in ipairs(weak) do
    for _, s in ipairs(sites) do
      if s.ref == e.ref then s.sem = "relaxed" end
    end
  end
  local found = run {budget = BUDGET}
  local trial = setmetatable({run = run, sites = sites, fault = fault,
    judge = opts.judge, edits = 0, began = began,
    progress = opts.progress or function() end,
    limit = began + (opts.seconds or 20),
    bounds = {orders = math.max(BOUNDS.orders, 2 * (opts.runs or 1)),
              seconds = BOUNDS.seconds, limit = opts.limit},
    here = {sites = sites, threads = found.threads, ctas = found.cluster,
            mems = fn:info().mems, numbers = core.sim_numbers(fn),
            fault = fault}}, Trial)
  local m = trial:find()
  trial.progress(1, DOING)
  if m then return m end
  return nil, {edits = trial.edits, late = trial:is_spent()}
end

local function joined(m)
  local text = {}
  for i, p in ipairs(m.places) do
    text[i] = ("%s at %s"):format(p.words, at(p))
  end
  return table.concat(text, " and ")
end

--- Returns a fix as a sentence for the user.
function repair.advice(m)
  local open = m.open and " (in the schedules that were examined: there are "
    .. "more)" or ""
  if m.stands then
    local list = {joined(m)}
    for i, o in ipairs(m.others or {}) do list[i + 1] = joined(o) end
    return "fixed by " .. table.concat(list, ", or by ") .. open
  end
  local text = {}
  for i, p in ipairs(m.places) do
    if i == 5 then break end
    text[i] = (p.last and "at the end of the kernel, after %s"
      or p.ends and "at the end of %s" or "before %s"):format(at(p))
  end
  return ("fixed by %s %s%s"):format(m.words, table.concat(text, ", or "),
    #m.places > 4 and (", or at %d other lines"):format(#m.places - 4) or "")
    .. open
end

--- Returns a sentence for the user that says that there is no fix. tried:
-- number of edits that were tried, and whether the time limit ended the search
---@param tried {edits: integer, late: boolean?}
---@return string
function repair.failure(tried)
  if tried.edits == 0 and not tried.late then
    return "no repair was searched for: without a fault or a reference, "
      .. "nothing shows whether an edit fixes the bug"
  end
  local text = ("no repair was found: %s of the synchronization, or of its "
    .. "operands, %s tried"):format(plural(tried.edits, "edit"),
    tried.edits == 1 and "was" or "were")
  return tried.late and text .. " until the time limit (--seconds)" or text
end

--- Returns only the source lines of a list of operations, in the form of JSON
-- reports.
---@param list table[]
---@return table[]
function repair.plain_places(list)
  local out = {}
  for i, n in ipairs(list) do
    out[i] = {file = source.short(n.file), line = n.line}
  end
  return out
end

--- Returns a list of insertion points, or of entries of repair.needs, in the
-- form of JSON reports.
---@param list table[]
---@return table[]
function repair.plain(list)
  local out = {}
  for i, n in ipairs(list) do
    out[i] = {file = source.short(n.file), line = n.line, words = n.words,
              need = n.need, weaker = n.weaker, ends = n.ends, last = n.last,
              gain = n.gain, fault = n.fault and n.fault.kind,
              one_of = n.one_of and repair.plain_places(n.one_of)}
  end
  return out
end

--- Reports whether fix m inserts an operation where operation o was removed:
-- between the same two memory accesses. `first` reports this for the line
-- m.places[1], `any` for at least one line of m.places.
---@param fn any
---@param o table operation of repair.needs
---@param m table
---@return boolean first the first place, boolean any
function repair.finds(fn, o, m)
  local sites = core.sim_sites(fn)
  local gap, n = {}, 0
  for _, s in ipairs(sites) do
    gap[s.ref] = n
    if matters(s) then n = n + 1 end
  end
  gap[sites.last] = n
  local gone = {}
  for _, s in ipairs(o.sites) do gone[gap[s.ref]] = true end
  local function same(p)
    for _, ref in ipairs(p.refs) do if gone[gap[ref]] then return true end end
    return false
  end
  local any = false
  for _, p in ipairs(m.places) do any = any or same(p) end
  return same(m.places[1]), any
end

return repair
-- SPDX-License-Identifier: MIT
