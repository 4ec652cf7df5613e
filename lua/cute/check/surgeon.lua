--- The surgeon: what of a launch's synchronisation is needed, what weaker would
-- do; and for a bug, which line would mend it.
--
-- It works on the traced function: an instruction is taken out, replaced or put
-- in (core/sim/edit.c) wherever its Lua line is, and every schedule is looked
-- at again (cute.check.explore). Not needed is said of these inputs and sizes.
local core = require "cute.core"
local explore = require "cute.check.explore"
local gain = require "cute.check.gain"
local source = require "cute.lang.source"

local surgeon = {}

local BOUNDS = {orders = 200, seconds = 5}

---------------------------------------------------------------------------
-- Operations of synchronisation
---------------------------------------------------------------------------

local READ = 32  -- a bulk wait's flag: until the sources were read

local FENCE = {[0] = "fence_acq_rel_cta()", "fence_acq_rel_cluster()",
  "fence_acq_rel_gpu()", "fence_acq_rel_sys()", "mbarrier_init_fence()", nil,
  nil, 'fence_proxy("async")', 'fence_proxy("async.global")',
  "fence_view_async_shared()", 'fence_proxy("async.shared::cluster")'}

local function groups_of(name)
  return function(o) return ("%s(%d)"):format(name, o.imm) end
end

--- How a line writes each, and what is weaker: the next of the list.
local OPS = {
  ["bar.sync"] = {
    words = function(o)
      return o.imm == 0 and "cute.arch.sync_threads()"
        or ("cute.arch.barrier(%d, %s)"):format(o.imm, o.count or "...")
    end,
    weaker = function() return {op = "syncwarp", imm = 0} end},
  ["syncwarp"] = {words = function() return "cute.arch.sync_warp()" end},
  ["cp.async.wait"] = {
    words = groups_of "cute.arch.cp_async_wait_group",
    weaker = function(o) return {op = o.op, imm = o.imm + 1} end},
  ["wgmma.wait_group"] = {
    words = groups_of "cute.nvgpu.warpgroup.wait_group",
    weaker = function(o) return {op = o.op, imm = o.imm + 1} end},
  ["bulk.wait"] = {
    words = function(o)
      return ("cute.arch.cp_async_bulk_wait_group(%d%s)"):format(o.imm,
        o.flags & READ ~= 0 and ", {read = true}" or "")
    end,
    weaker = function(o)
      return {op = o.op, imm = o.imm + 1, flags = o.flags}
    end},
  ["mbarrier.wait"] = {words = function(o)
    if not o.mem then return "mbarrier_wait(...)" end
    return ("cute.arch.mbarrier_wait(%s + n %% %d, %s %% 2), n being how often "
      .. "it was there,"):format(o.name, o.count, (o.imm > 0 and "(n // %d + 1)"
      or "n // %d"):format(o.count))
  end},
  ["fence"] = {
    words = function(o)
      return "cute.arch." .. (FENCE[o.imm] or "fence()")
    end,
    weaker = function(o)
      return o.imm >= 1 and o.imm <= 3 and {op = o.op, imm = o.imm - 1} or nil
    end},
  ["griddepcontrol.wait"] = {
    words = function() return "cute.arch.griddepcontrol_wait()" end},
  ["cluster.wait"] = {words = function()
    return "cute.arch.cluster_arrive() cute.arch.cluster_wait()"
  end},
}

local SEMS = {[0] = "weak", "relaxed", "acquire", "release", "acq_rel"}
local RELAXED = 1
local SCOPES = {"cta", "cluster", "gpu", "sys"}
local GPU = 3
-- The order that an access can have at most.
local STRONGEST = {ld = 2, st = 3, atomic = 4, ["mbarrier.arrive"] = 3}

local function words_of(o)
  if o.op == "order" then
    return ('sem = "%s"%s'):format(SEMS[o.sem], o.scope
      and (', scope = "%s"'):format(SCOPES[o.scope]) or "")
  end
  return OPS[o.op].words(o)
end

---------------------------------------------------------------------------
-- Sites
---------------------------------------------------------------------------

local function key_of(s) return s.file .. ":" .. s.line end

local function at(s) return ("%s:%d"):format(source.short(s.file), s.line) end

-- Operations by line: {op, file, line, sites}; an arrival at the cluster's
-- barrier goes with the wait behind it.
local function operations(sites)
  local list, known, arrivals = {}, {}, {}
  for _, s in ipairs(sites) do
    local key = ("%s %s %d"):format(key_of(s), s.op, s.imm)
    if s.op == "cluster.arrive" then
      arrivals[#arrivals + 1] = s
    elseif OPS[s.op] then
      local o = known[key]
      if not o then
        o = {op = s.op, imm = s.imm, flags = s.flags, file = s.file,
             line = s.line, count = s.count, sites = {}}
        known[key], list[#list + 1] = o, o
      end
      o.sites[#o.sites + 1] = s
      if s.op == "cluster.wait" then
        o.sites[#o.sites + 1] = table.remove(arrivals)
      end
    elseif (s.sem or 0) > RELAXED then
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

--- The edits that take an operation of surgeon.needs out.
---@param o table
---@return table[]
function surgeon.without(o)
  if o.op == "order" then return edits_of(o, "sem", {imm = RELAXED}) end
  return edits_of(o, "drop")
end

--- A run of a launch that is changed; changes that it is asked for come after.
---@param run fun(o: table): table
---@param edits table[]
---@return fun(o: table): table
function surgeon.edited(run, edits)
  return function(o)
    local more, all = o.edits or {}, table.move(edits, 1, #edits, 1, {})
    table.move(more, 1, #more, #all + 1, all)  -- the last one counts
    local words = {edits = all}
    for k, v in pairs(o) do if k ~= "edits" then words[k] = v end end
    return run(words)
  end
end

local edited = surgeon.edited

-- What comes of edits: "ok", "bug" with the fault, "differs" (results),
-- "incomplete".
local function verdict(run, edits, memory)
  local changed = edited(run, edits)
  local result = explore.all(changed, BOUNDS)
  if result.verdict ~= "ok" then return result.verdict, result.fault end
  if memory and changed {}.memory ~= memory then return "differs" end
  return "ok"
end

---------------------------------------------------------------------------
-- What is needed
---------------------------------------------------------------------------

--- Takes out each barrier, wait, fence and order in turn, and weakens those
-- that are needed: a list of {file, line, words, need = "needed", "not needed",
-- "unknown", fault, weaker = words}.
---@param run fun(o: table): table of a launch that is ok
---@param fn any the traced function
---@return table[]
function surgeon.needs(run, fn)
  local memory, list = run({}).memory, {}
  for _, o in ipairs(operations(core.sim_sites(fn))) do
    local out = {file = o.file, line = o.line, words = words_of(o), op = o}
    local found, fault = verdict(run, surgeon.without(o), memory)
    out.need = found == "ok" and "not needed"
      or found == "incomplete" and "unknown" or "needed"
    out.fault = fault
    local weaker = OPS[o.op] and OPS[o.op].weaker
    local as = out.need == "needed" and weaker and weaker(o)
    if as and verdict(run, edits_of(o, "as", as), memory) == "ok" then
      as.flags = as.flags or 0
      out.weaker = words_of(as)
    end
    list[#list + 1] = out
  end
  return list
end

--- How long the launch takes without what of such a list is not needed: gain of
-- each ({with =, without = seconds, how =}); and list.gain without as much of
-- it as can be left out together, list.together.
---@param list table[]
---@param run fun(o: table): table
---@param program table
---@param launch table
---@param on_gpu? boolean false: by the model
function surgeon.gains(list, run, program, launch, on_gpu)
  local unneeded, edits, all, together = {}, {}, {}, {}
  local memory = run({}).memory
  for _, n in ipairs(list) do
    if n.need == "not needed" then
      local own = surgeon.without(n.op)
      unneeded[#unneeded + 1], edits[#edits + 1] = n, own
      local more = table.move(own, 1, #own, #all + 1, {table.unpack(all)})
      if not all[1] or verdict(run, more, memory) == "ok" then
        all, together[#together + 1] = more, n
      end
    end
  end
  if not unneeded[1] then return end
  if together[2] then
    list.together = together
    unneeded[#unneeded + 1], edits[#edits + 1] = list, all
  end
  local times, how = gain.times(program, launch, edits, on_gpu)
  for i, n in ipairs(unneeded) do
    n.gain = {with = times[0], without = times[i], how = how}
  end
end

local function gain_told(g)
  return ("; %.2f us without it, %.2f with (%s)"):format(g.without * 1e6,
    g.with * 1e6, g.how)
end

--- Such a list in words.
function surgeon.told(list)
  local text = {}
  for _, n in ipairs(list) do
    local why = n.fault and (" (without it: %s)"):format(n.fault.kind) or ""
    text[#text + 1] = ("%s: %s: %s%s%s"):format(at(n), n.words, n.need, why,
      n.weaker and ("; %s would do at these sizes"):format(n.weaker)
      or n.gain and gain_told(n.gain) or "")
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
-- What mends a bug
---------------------------------------------------------------------------

local VALUES = {["vset"] = true, ["vget"] = true, ["var"] = true}

-- Does a site matter for what comes before what? Not registers, nor values.
local function matters(s)
  return s.class ~= "value" and not OPS[s.op] and not VALUES[s.op]
    and s.op ~= "cluster.arrive"
end

-- The sites that are more than values, and whether they end a region: a
-- branch, and a loop; that of a branch for nobody is left out.
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

-- Places for a line: before each line that does something, where it is in the
-- trace; and at the end of each region.
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
  return list
end

-- The sites without those of an operation.
local function left(sites, gone)
  if not gone then return sites end
  local refs, list = {}, {}
  for _, s in ipairs(gone.sites) do refs[s.ref] = true end
  for _, s in ipairs(sites) do
    if not refs[s.ref] then list[#list + 1] = s end
  end
  return list
end

-- Barriers of a name, as others have them, and one that nobody has.
local function named(sites, threads, add)
  local free, known = 1, {}
  for _, s in ipairs(sites) do
    if s.op == "bar.sync" or s.op == "bar.arrive" then
      free = math.max(free, s.imm + 1)
      local key = s.imm .. " " .. (s.count or "")
      if s.imm > 0 and s.count and not known[key] then
        known[key] = true
        add("bar.sync", s.imm, 0, {count = s.count})
      end
    end
  end
  for n = 64, free < 16 and threads - 32 or 0, 32 do
    if n <= 128 or n % 128 == 0 then
      add("bar.sync", free, 0, {count = n})
    end
  end
end

-- Waits at rings of mbarriers, from either phase on.
local function rings(sites, fn, add)
  local known = {}
  for _, m in ipairs(fn:info().mems) do known[m.ref] = m end
  for _, s in ipairs(sites) do
    local m = s.op == "mbarrier.init" and known[s.mem]
    if m then
      known[s.mem] = nil
      for flip = 0, 1 do
        add("mbarrier.wait", flip, 0, {mem = s.mem, count = m.count,
                                       name = m.name})
      end
    end
  end
end

-- What may be lacking, the smallest first.
local function lacks(sites, fn, threads)
  local has = {}
  for _, s in ipairs(sites) do has[s.op] = true end
  local list = {}
  local function add(op, imm, flags, more)
    local o = {op = op, imm = imm, flags = flags or 0}
    for k, v in pairs(more or {}) do o[k] = v end
    list[#list + 1] = o
  end
  add("syncwarp", 0)
  if has["cp.async"] then
    for n = 3, 0, -1 do add("cp.async.wait", n) end
  end
  if has["wgmma"] then
    for n = 1, 0, -1 do add("wgmma.wait_group", n) end
  end
  if has["bulk.commit"] then
    for n = 1, 0, -1 do
      add("bulk.wait", n, READ)
      add("bulk.wait", n)
    end
  end
  if has["mbarrier.init"] then add("fence", 4) end
  if has["wgmma"] or has["tma.load"] or has["tma.store"] or has["bulk.load"]
    or has["bulk.store"] then
    add("fence", 9)
    add("fence", 7)
  end
  rings(sites, fn, add)
  add("bar.sync", 0)
  named(sites, threads, add)
  if has["tma.load"] or has["st.async"] then add("cluster.wait", 0) end
  return list
end

local function insertion(place, o)
  local list = {}
  for _, ref in ipairs(place.refs) do
    if o.op == "cluster.wait" then
      list[#list + 1] = {ref = ref, how = "before", op = "cluster.arrive"}
    end
    list[#list + 1] = {ref = ref, how = "before", op = o.op, imm = o.imm,
                       flags = o.flags, count = o.count, mem = o.mem}
  end
  return list
end

-- What people write behind what: a barrier behind waits and fences, a fence
-- before a barrier.
local function is_usual(p, o)
  if o.op == "bar.sync" then return OPS[p.before] and p.before ~= "bar.sync" end
  return o.op == "fence" and p.op == "bar.sync"
end

-- Places in the order in which they are tried: where such a line usually is,
-- then close before the line of the fault, then behind the other.
local function in_turn(list, fault, o)
  local function far(p)
    local d = math.huge
    for i, line in ipairs {fault.line or false, fault.line2 or false} do
      if line then
        local n = line - p.line
        d = math.min(d, (n >= 0 and 2 * n or -2 * n + 1) + i / 4)
      end
    end
    return is_usual(p, o) and d - 1e6 or d
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

-- One run shows most faults: only what has none there is looked at closely.
local function mends(run, edits)
  local changed = edited(run, edits)
  if changed({}).reports[1] then return false end
  return explore.all(changed, BOUNDS).verdict == "ok"
end

-- Accesses that could have a stronger order, or one for more threads, by line:
-- {file, line, refs, op, sem, scope}.
local function weak_ones(sites)
  local list, known = {}, {}
  for _, s in ipairs(sites) do
    local most = STRONGEST[s.op]
    if most and s.sem >= RELAXED then
      local function add(scope)
        local key = ("%s %s %s"):format(key_of(s), s.op, scope)
        local p = known[key]
        if not p then
          p = {file = s.file, line = s.line, refs = {}, sem = most,
               scope = scope}
          known[key], list[#list + 1] = p, p
        end
        p.refs[#p.refs + 1] = s.ref
      end
      if s.sem < most then add() end
      if s.scope < GPU and s.op ~= "mbarrier.arrive" then add(GPU) end
    end
  end
  table.sort(list, function(a, b)
    if (a.scope or 0) ~= (b.scope or 0) then
      return (a.scope or 0) < (b.scope or 0)
    end
    return a.refs[1] < b.refs[1]
  end)
  return list
end

local function strengthened(list)
  local edits = {}
  for _, p in ipairs(list) do
    for _, ref in ipairs(p.refs) do
      edits[#edits + 1] = {ref = ref, how = "sem", imm = p.sem,
                           count = p.scope}
    end
  end
  return edits
end

-- Orders that mend: one, or as few as do together; nil: none do.
local function mend_orders(run, sites)
  local list = weak_ones(sites)
  local function result(some)
    local o = {op = "order", sem = some[1].sem, scope = some[1].scope}
    for _, p in ipairs(some) do
      p.words = words_of {op = "order", sem = p.sem, scope = p.scope}
    end
    return {words = words_of(o), op = o, places = some, together = #some > 1}
  end
  for _, p in ipairs(list) do
    if mends(run, strengthened {p}) then return result {p} end
  end
  if #list < 2 or not mends(run, strengthened(list)) then return nil end
  for i = #list, 1, -1 do
    local p = table.remove(list, i)
    if not mends(run, strengthened(list)) then table.insert(list, i, p) end
  end
  return result(list)
end

--- The smallest operation that, put in at one line, leaves no bug, and the
-- lines where it does: {words, op, places = {{file, line, ends}, ...}}; nil:
-- none was found. An order that is strengthened stands in its own line, and
-- where several are needed the places are so `together`.
---@param run fun(o: table): table of a launch that is a bug
---@param fn any
---@param fault table
---@param seconds? number to look for it (20)
---@param gone? table operation that is not there: one of surgeon.needs
---@return table?
function surgeon.mend(run, fn, fault, seconds, gone)
  local weak = gone and gone.op == "order" and surgeon.without(gone) or {}
  local sites = left(core.sim_sites(fn), gone and not weak[1] and gone)
  for _, e in ipairs(weak) do
    for _, s in ipairs(sites) do
      if s.ref == e.ref then s.sem = RELAXED end
    end
  end
  local limit = os.clock() + (seconds or 20)
  local orders = mend_orders(run, sites)
  if orders then return orders end
  local list = places(sites)
  for _, o in ipairs(lacks(sites, fn, run({}).threads)) do
    local found = {}
    for _, p in ipairs(in_turn(list, fault, o)) do
      if os.clock() > limit then break end
      if mends(run, insertion(p, o)) then found[#found + 1] = p end
    end
    if found[1] then
      return {words = words_of(o), op = o, places = found}
    end
  end
end

local function joined(m)
  local text = {}
  for i, p in ipairs(m.places) do
    text[i] = ("%s at %s"):format(p.words, at(p))
  end
  return "mended by " .. table.concat(text, " and ")
end

--- What mends it, in words.
function surgeon.advice(m)
  if m.op.op == "order" then return joined(m) end
  local text = {}
  for i, p in ipairs(m.places) do
    if i == 5 then break end
    text[i] = (p.ends and "at the end of %s" or "before %s"):format(at(p))
  end
  return ("mended by %s %s%s"):format(m.words, table.concat(text, ", or "),
    #m.places > 4 and (", or at %d other lines"):format(#m.places - 4) or "")
end

--- A list of places, or of what is needed, for programs.
---@param list table[]
---@return table[]
function surgeon.plain(list)
  local out = {}
  for i, n in ipairs(list) do
    out[i] = {file = source.short(n.file), line = n.line, words = n.words,
              need = n.need, weaker = n.weaker, ends = n.ends,
              gain = n.gain, fault = n.fault and n.fault.kind}
  end
  return out
end

--- Is the place of an operation that was taken out among those of a mend?
-- Between the same accesses, that is.
---@param fn any
---@param o table operation, as surgeon.needs has it
---@param m table
---@return boolean first the first place, boolean any
function surgeon.finds(fn, o, m)
  local sites = core.sim_sites(fn)
  local gap, n = {}, 0
  for _, s in ipairs(sites) do
    gap[s.ref] = n
    if matters(s) then n = n + 1 end
  end
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

return surgeon
