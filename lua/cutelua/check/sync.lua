--- Synchronisation operations known to the surgeon (cutelua.check.repair). For
-- each operation, this module knows the source text, the weaker form and
-- possible replacements; it also lists operations that a kernel may lack. An
-- operation is {op =} with the fields among imm, fence, read, relaxed, count,
-- mem, name, sem and scope that apply to it. `op` is a name of the IR
-- (core.sim_sites).
local operands = require "cutelua.check.operands"

local sync = {}

---------------------------------------------------------------------------
-- Source text of operations
---------------------------------------------------------------------------

-- Fences by kind: {the call in a script, the kind of the next stronger fence}.
local FENCE = {
  cta = {"arch.fence_acq_rel_cta()", "cluster"},
  cluster = {"arch.fence_acq_rel_cluster()", "gpu"},
  gpu = {"arch.fence_acq_rel_gpu()", "sys"},
  sys = {"arch.fence_acq_rel_sys()"},
  mbarrier_init = {"arch.mbarrier_init_fence()"},
  tensormap = {"nvgpu.cpasync.fence_tma_desc_release()"},
  async = {'arch.fence_proxy("async")'},
  ["async.global"] = {'arch.fence_proxy("async.global")', "async"},
  ["async.shared::cta"] = {"arch.fence_view_async_shared()", "async"},
  ["async.shared::cluster"] = {'arch.fence_proxy("async.shared", "cluster")',
                               "async"},
}
local WEAKER = {sys = "gpu", gpu = "cluster", cluster = "cta"}

local function groups_of(name)
  return function(o) return ("cute.%s(%d)"):format(name, o.imm) end
end

local function plain(name)
  return function() return ("cute.%s()"):format(name) end
end

local function more_groups(o)
  return {op = o.op, imm = o.imm + 1, read = o.read}
end

local function at_ring(what, o)
  return ("cute.arch.%s(%s"):format(what, operands.at_ring(o))
end

local AGAIN = ", where n counts its executions,"

--- For each operation, by its name: words(o) returns the call of operation o in
-- a script; weaker(o) returns the next weaker operation; `counts` is true if
-- other operations wait for o.
local OPS = {
  ["bar.sync"] = {
    words = function(o)
      return o.imm == 0 and not o.count and "cute.arch.sync_threads()"
        or ("cute.arch.barrier(%d, %s)"):format(o.imm, o.count or "...")
    end,
    weaker = function() return {op = "syncwarp"} end},
  ["bar.arrive"] = {counts = true, words = function(o)
    return ("cute.arch.barrier_arrive(%d, %s)"):format(o.imm, o.count or "...")
  end},
  ["syncwarp"] = {words = plain "arch.sync_warp"},
  ["cp.async.commit"] = {words = plain "arch.cp_async_commit_group",
                         counts = true},
  ["cp.async.wait"] = {words = groups_of "arch.cp_async_wait_group",
                       weaker = more_groups},
  ["wgmma.commit_group"] = {words = plain "nvgpu.warpgroup.commit_group",
                            counts = true},
  ["wgmma.wait_group"] = {words = groups_of "nvgpu.warpgroup.wait_group",
                          weaker = more_groups},
  ["bulk.commit"] = {words = plain "arch.cp_async_bulk_commit_group",
                     counts = true},
  ["bulk.wait"] = {
    words = function(o)
      return ("cute.arch.cp_async_bulk_wait_group(%d%s)"):format(o.imm,
        o.read and ", {read = true}" or "")
    end,
    weaker = more_groups},
  ["mbarrier.wait"] = {words = function(o)
    if not o.mem or not o.name then return "mbarrier_wait(...)" end
    return ("%s, %s %% 2%s)" .. AGAIN):format(at_ring("mbarrier_wait", o),
      (o.imm > 0 and "(n // %d + 1)" or "n // %d"):format(o.count),
      o.scope and (', {scope = "%s"}'):format(o.scope) or "")
  end},
  ["mbarrier.arrive"] = {counts = true, words = function(o)
    return at_ring("mbarrier_arrive", o) .. ")" .. AGAIN
      .. (o.imm > 0 and " by one lane" or "")
  end},
  ["mbarrier.expect_tx"] = {counts = true, words = function(o)
    return at_ring("mbarrier_arrive_and_expect_tx", o)
      .. (", %d)"):format(o.imm) .. AGAIN .. " by one lane"
  end},
  ["cp.async.mbarrier.arrive"] = {counts = true, words = function(o)
    return at_ring("cp_async_mbarrier_arrive_noinc", o) .. ")" .. AGAIN
  end},
  ["fence"] = {
    words = function(o) return "cute." .. FENCE[o.fence][1] end,
    weaker = function(o)
      return WEAKER[o.fence] and {op = o.op, fence = WEAKER[o.fence]}
    end},
  ["tmap.acquire"] = {words = function()
    return "cute.nvgpu.cpasync.fence_tma_desc_acquire(...) of its map"
  end},
  ["griddepcontrol.wait"] = {words = plain "arch.griddepcontrol_wait"},
  ["cluster.arrive"] = {words = plain "arch.cluster_arrive"},
  ["cluster.wait"] = {words = plain "arch.cluster_wait"},
}

--- Returns an operation as source text. If another operation precedes it
-- (o.first), the text contains both.
---@param o table
---@return string
function sync.words(o)
  if o.op == "order" then
    local list = {}
    for _, k in ipairs {"sem", "scope"} do
      if o[k] then list[#list + 1] = ('%s = "%s"'):format(k, o[k]) end
    end
    return table.concat(list, ", ")
  end
  local words = OPS[o.op].words(o)
  return o.first and sync.words(o.first) .. " " .. words or words
end

--- Reports whether the operation `op` only orders memory accesses or waits. It
-- does not for arrivals, which other operations count.
---@param op string
---@return boolean
function sync.is_order(op) return OPS[op] ~= nil and not OPS[op].counts end

--- Returns the next weaker operation; nil if there is none.
---@param o table
---@return table?
function sync.weaker(o)
  local f = OPS[o.op] and OPS[o.op].weaker
  return f and f(o) or nil
end

---------------------------------------------------------------------------
-- Replacements
---------------------------------------------------------------------------

-- Adds replacements for operation o on a named barrier: the same operation on
-- each other named barrier that the kernel uses.
local function other_numbers(o, add, here)
  if o.imm == 0 or not o.count then return end
  local known = {[o.imm] = true, [0] = true}
  for _, s in ipairs(here.sites) do
    if (s.op == "bar.sync" or s.op == "bar.arrive") and not known[s.imm] then
      known[s.imm] = true
      add {op = o.op, imm = s.imm, count = o.count}
    end
  end
end

local CHANGES = {
  ["bar.sync"] = function(o, add, here) other_numbers(o, add, here) end,
  ["bar.arrive"] = function(o, add, here)
    add {op = "bar.sync", imm = o.imm, count = o.count}
    other_numbers(o, add, here)
  end,
  ["cluster.arrive"] = function(o, add)
    if o.relaxed then add {op = o.op} end
  end,
  ["fence"] = function(o, add)
    local kind = FENCE[o.fence][2]
    while kind do
      add {op = o.op, fence = kind}
      kind = FENCE[kind][2]
    end
  end,
}

local function fewer(o, add)
  if o.read then add {op = o.op, imm = o.imm} end
  for n = o.imm - 1, 0, -1 do
    add {op = o.op, imm = n, read = o.read}
    if o.read then add {op = o.op, imm = n} end
  end
end
for _, op in ipairs {"cp.async.wait", "wgmma.wait_group", "bulk.wait"} do
  CHANGES[op] = fewer
end

--- Calls add(patch operation, words) for each operation that could replace the
-- operation at `site`. here: {threads =, ctas =, sites =}.
---@param site table
---@param here table
---@param add fun(as: table, words: string)
function sync.changes(site, here, add)
  local f = CHANGES[site.op]
  if not f then return end
  f(site, function(as)
    as.how = "as"
    local words, old = sync.words(as), sync.words(site)
    if words ~= old then words = words .. " in place of " .. old end
    add(as, words)
  end, here)
end

---------------------------------------------------------------------------
-- Missing operations
---------------------------------------------------------------------------

-- Adds waits at each named barrier that the kernel uses, and at an unused
-- barrier. If `arrive` is true, because threads wait forever, also adds
-- arrivals at the used barriers.
local function named(here, add, arrive)
  local free, known = 1, {}
  for _, s in ipairs(here.sites) do
    if s.op == "bar.sync" or s.op == "bar.arrive" then
      free = math.max(free, s.imm + 1)
      local key = s.imm .. " " .. (s.count or "")
      if s.imm > 0 and s.count and not known[key] then
        known[key] = true
        if arrive then add {op = "bar.arrive", imm = s.imm, count = s.count} end
        add {op = "bar.sync", imm = s.imm, count = s.count}
      end
    end
  end
  if free >= 16 then return end
  for _, n in ipairs(operands.counts_of(here.threads - 32)) do
    if n >= 64 then add {op = "bar.sync", imm = free, count = n} end
  end
end

-- Adds operation `op` on each ring of mbarriers, once with imm = 0 and once
-- with imm = 1. In a wait, imm is the parity for the first round of the ring.
local function rings(here, op, add)
  for _, r in ipairs(operands.rings(here)) do
    for imm = 0, 1 do
      local o = {op = op, imm = imm, mem = r.mem, count = r.n, base = r.lo,
                 name = r.name}
      add(o)
      if op == "mbarrier.wait" and here.ctas > 1 then
        local far = {scope = "cluster"}
        for k, v in pairs(o) do far[k] = v end
        add(far)
      end
    end
  end
end

-- Adds arrivals at mbarriers that a kernel may lack: expect_tx for copies,
-- arrivals of cp.async, and arrivals of threads.
local function arrivals(has, here, add)
  rings(here, "mbarrier.arrive", function(o)
    local bytes = o.imm == 0 and operands.bytes_of(here, o.mem) or {}
    if bytes[1] then
      add {op = "mbarrier.expect_tx", imm = bytes[#bytes], mem = o.mem,
           count = o.count, base = o.base, name = o.name}
    end
    if has["cp.async"] and o.imm == 0 then
      add {op = "cp.async.mbarrier.arrive", mem = o.mem, count = o.count,
           base = o.base, name = o.name}
    end
    add(o)
  end)
end

-- Adds commits and waits for the asynchronous mechanisms (cp.async, wgmma, bulk
-- stores) that the kernel uses.
local function agents(has, add)
  if has["cp.async"] then
    add {op = "cp.async.commit"}
    for n = 3, 0, -1 do add {op = "cp.async.wait", imm = n} end
  end
  if has.wgmma then
    add {op = "wgmma.commit_group"}
    for n = 1, 0, -1 do add {op = "wgmma.wait_group", imm = n} end
  end
  if has["tma.store"] or has["bulk.store"] or has["bulk.commit"] then
    add {op = "bulk.commit"}
    for n = 1, 0, -1 do
      add {op = "bulk.wait", imm = n, read = true}
      add {op = "bulk.wait", imm = n}
    end
  end
end

local ASYNC = {"wgmma", "tma.load", "tma.store", "bulk.load", "bulk.store",
               "bulk.send", "st.async"}

local function fences(has, here, add)
  if has["mbarrier.init"] then add {op = "fence", fence = "mbarrier_init"} end
  for _, op in ipairs(ASYNC) do
    if has[op] then
      add {op = "fence", fence = "async.shared::cta"}
      add {op = "fence", fence = "async.global"}
      add {op = "fence", fence = "async"}
      break
    end
  end
  if has.atomic or here.ordered then
    if here.ctas > 1 then add {op = "fence", fence = "cluster"} end
    add {op = "fence", fence = "gpu"}
  end
end

-- Adds sequences of operations that are usually needed together, such as a
-- commit, a wait for the group, and a barrier of all threads.
local function together(has, add)
  local function chain(...)
    local first
    for _, o in ipairs {...} do
      o.imm, o.first, first = o.imm or 0, first, o
    end
    add(first)
  end
  if has["cp.async"] then
    chain({op = "cp.async.commit"}, {op = "cp.async.wait"})
    chain({op = "cp.async.wait"}, {op = "bar.sync"})
    chain({op = "cp.async.commit"}, {op = "cp.async.wait"}, {op = "bar.sync"})
  end
  if has.wgmma then
    chain({op = "wgmma.commit_group"}, {op = "wgmma.wait_group"})
    chain({op = "wgmma.wait_group"}, {op = "bar.sync"})
  end
  if has["tma.store"] or has["bulk.store"] then
    chain({op = "bulk.commit"}, {op = "bulk.wait", read = true})
    chain({op = "bulk.wait", read = true}, {op = "bar.sync"})
  end
  for _, op in ipairs(ASYNC) do
    if has[op] then
      return chain({op = "fence", fence = "async.shared::cta"},
                   {op = "bar.sync"})
    end
  end
end

--- Returns the operations that a kernel may lack. Small changes come first,
-- except that for some kinds of fault the usual fixes come before all others.
-- `here` is a table {sites = the kernel's instructions, threads =, ctas =, mems
-- =, pdl =}.
---@param here table
---@param kind string kind of the fault
---@return table[]
function sync.lacks(here, kind)
  local has, list, maps = {}, {}, false
  for _, s in ipairs(here.sites) do
    has[s.op] = true
    here.ordered = here.ordered or s.sem ~= nil
    maps = maps or s.map ~= nil
  end
  local function add(o)
    o.imm = o.imm or 0
    if o.op == "fence" then o.imm = nil end
    list[#list + 1] = o
  end
  if kind == "dependent-launch" then add {op = "griddepcontrol.wait"} end
  if maps then
    add {op = "fence", fence = "tensormap"}
    add {op = "tmap.acquire"}
  end
  if kind == "deadlock" then arrivals(has, here, add) end
  add {op = "syncwarp"}
  agents(has, add)
  fences(has, here, add)
  rings(here, "mbarrier.wait", add)
  add {op = "bar.sync"}
  named(here, add, kind == "deadlock")
  if here.ctas > 1 then
    add {op = "cluster.wait", first = {op = "cluster.arrive"}}
    add {op = "cluster.arrive"}
    add {op = "cluster.wait"}
  end
  together(has, add)
  return list
end

return sync
-- SPDX-License-Identifier: MIT
