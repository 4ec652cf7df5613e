--- Alternative operands of synchronisation operations, which the surgeon
-- (cutelua.check.repair) tries as fixes of a bug. The operands are the parity
-- of a wait, the bytes and arrivals that an mbarrier counts, stages, ranks and
-- masks, the thread count of a barrier, and constants from which such operands
-- are computed. A candidate is a patch of one operand
-- (core/decode/patch.h), its description, and its priority.
local operands = {}

-- Priorities of candidates, in the order in which they are tried:
--   SAID    the value that makes the counts in the fault's report agree
--   PLAIN   a common value: the other parity, a number of warps or of threads
--           as an arrival count, the bytes that copies deliver to the mbarrier
--   SAME    the operand of another instruction with the same role
--   PLACE   an mbarrier of another stage or another ring, or another block of
--           the cluster
--   RING    an mbarrier or block whose index does not depend on the operand,
--           such as warp_idx() % stages, or a constant index
--   DATA    the data of another pipeline stage
--   NUMBER  a constant in the computation of the operand, changed by 1, for
--           example; or another stage for a plain load or store
local SAID, PLAIN, SAME, PLACE, RING, DATA, NUMBER = 1, 2, 3, 4, 5, 6, 7

local function edit(o, from, steps, more)
  local e = {how = "value", operand = o.at, from = from, steps = steps}
  for k, v in pairs(more or {}) do e[k] = v end
  return e
end

local function number(o, n) return edit(o, "number", nil, {imm = n}) end

---------------------------------------------------------------------------
-- Rings
---------------------------------------------------------------------------

local function key_of(s) return s.file .. ":" .. s.line end

--- Returns the operand of an instruction (site) with this role, such as
-- "parity"; nil if there is none.
---@param site table
---@param role string
---@return table?
function operands.of(site, role)
  for _, o in ipairs(site.operands or {}) do
    if o.role == role then return o end
  end
end

-- Returns a set of integers as a list of runs {first, last} of consecutive
-- integers.
local function runs_of(set)
  local list, out = {}, {}
  for v in pairs(set) do list[#list + 1] = v end
  table.sort(list)
  for _, v in ipairs(list) do
    local last = out[#out]
    if last and last[2] == v - 1 then last[2] = v
    else out[#out + 1] = {v, v} end
  end
  return out
end

-- Returns the ranges of mbarriers that the lines of a kernel use: {mem = one of
-- here.mems, lo, hi}. Each range is listed once. Constant indices form a range
-- if one line uses them with the same arrival count.
local function ranges_of(here)
  local list, known, mems, lines = {}, {}, {}, {}
  local function add(m, lo, hi)
    local key = ("%d %d %d"):format(m.ref, lo, hi)
    if lo <= hi and not known[key] then
      known[key], list[#list + 1] = true, {mem = m, lo = lo, hi = hi}
    end
  end
  for _, m in ipairs(here.mems) do mems[m.ref] = m end
  for _, s in ipairs(here.sites) do
    local o = s.op:find "^mbarrier" and operands.of(s, "slot")
    local m = o and mems[o.mem]
    if m and o.value then
      local key = ("%s %s %d %s"):format(key_of(s), s.op, m.ref, s.count)
      if not lines[key] then
        lines[key] = {mem = m, set = {}}
        lines[#lines + 1] = lines[key]
      end
      lines[key].set[o.value] = true
    elseif m then
      add(m, math.max(o.lo or 0, 0), math.min(o.hi or m.count, m.count - 1))
    end
  end
  for _, line in ipairs(lines) do
    for _, r in ipairs(runs_of(line.set)) do add(line.mem, r[1], r[2]) end
  end
  return list
end

local function is_inside(a, b)
  return a ~= b and a.mem == b.mem and a.lo >= b.lo and a.hi <= b.hi
end

--- Returns the rings of mbarriers (arrays whose mbarriers are used cyclically),
-- each as {mem = ref, name, lo, n}. A ring is found from lines that initialise
-- several mbarriers with the same arrival count. It is also found from lines
-- that may wait or arrive at several mbarriers: their index has a known range.
-- A single mbarrier inside a ring is not a separate ring, and a range that
-- consists of several rings is not a ring.
---@param here table
---@return table[]
function operands.rings(here)
  if here.rings then return here.rings end
  local ranges = ranges_of(here)
  here.rings = {}
  for _, r in ipairs(ranges) do
    local inside, covered = false, 0
    for _, p in ipairs(ranges) do
      inside = inside or r.lo == r.hi and is_inside(r, p)
      if p.lo < p.hi and is_inside(p, r) then
        covered = covered + p.hi - p.lo + 1
      end
    end
    local n = r.hi - r.lo + 1
    if not inside and covered < n then
      table.insert(here.rings, {mem = r.mem.ref, name = r.mem.name, lo = r.lo,
                                n = n})
    end
  end
  return here.rings
end

-- Returns the smallest ring that contains the mbarriers of an operand.
local function ring_of(here, o)
  local best
  local lo, hi = o.value or o.lo or 0, o.value or o.hi or math.huge
  for _, r in ipairs(operands.rings(here)) do
    if r.mem == o.mem and r.lo <= math.max(lo, 0) and not (best
      and best.n <= r.n) and (r.lo + r.n > hi or not best) then best = r end
  end
  return best
end

--- Returns text for the mbarrier of a ring that the n-th use selects: "full + 3
-- + n % 4".
---@param o {name: string, base: integer, count: integer}
---@return string
function operands.at_ring(o)
  return ("%s + %sn %% %d"):format(o.name, o.base > 0 and o.base .. " + " or "",
                                   o.count)
end

---------------------------------------------------------------------------
-- Values available at a site
---------------------------------------------------------------------------

-- Returns, for each instruction, the path of the loops and branches that
-- enclose it, such as "1/3/".
local function regions(sites)
  local path, n, open = {}, 0, {}
  for i, s in ipairs(sites) do
    if s.class == "close" and s.op ~= "else" then table.remove(open) end
    if s.op == "else" then n, open[#open] = n + 1, n + 1 end
    path[i] = table.concat(open, "/") .. "/"
    if s.class == "open" and s.op ~= "else" then
      n = n + 1
      open[#open + 1] = n
    end
  end
  return path
end

-- Returns operands that could replace operand `own` of instruction i. They
-- belong to earlier instructions and have the same role and type, and their
-- values are available at i.
local function donors(here, i, own, role)
  here.paths = here.paths or regions(here.sites)
  local list, known = {}, {[own.ref] = true}
  for k = 1, i - 1 do
    local p = here.paths[k]
    if here.paths[i]:sub(1, #p) == p then
      for _, o in ipairs(here.sites[k].operands or {}) do
        if o.role == role and o.type == own.type and not known[o.ref]
          and not o.value then
          known[o.ref], list[#list + 1] = true, o
        end
      end
    end
  end
  return list
end

---------------------------------------------------------------------------
-- Candidates by role
---------------------------------------------------------------------------

local ROLES = {}

-- Returns plausible thread counts of a barrier in a block of `threads` threads:
-- 32, 64, 96, 128, multiples of 128, and the whole block.
local function counts_of(threads)
  local list = {}
  for n = 32, threads, 32 do
    if n <= 128 or n % 128 == 0 or n == threads then list[#list + 1] = n end
  end
  return list
end
operands.counts_of = counts_of

-- Returns the arrival counts that an mbarrier of this kernel is likely to need.
local function arrivals_of(here)
  if here.arrivals then return here.arrivals end
  local known, list = {}, {}
  local function add(n)
    if n >= 1 and not known[n] then known[n], list[#list + 1] = true, n end
  end
  for _, each in ipairs {1, here.ctas} do
    for n = 1, math.min(here.threads // 32, 8) do add(n * each) end
    for _, n in ipairs(counts_of(here.threads)) do
      add(n // 32 * each)
      add(n * each)
    end
  end
  here.arrivals = list
  return list
end

--- Returns the numbers of bytes that copies deliver to an mbarrier: one number
-- for each line, and the total of all lines. They are sorted, so the total is
-- last.
function operands.bytes_of(here, mem)
  local list, lines, known, all = {}, {}, {}, 0
  for _, s in ipairs(here.sites) do
    if s.mem == mem and not s.op:find "mbarrier" then
      local key = key_of(s)
      local n = s.imm // 8 * (s.op == "st.async" and here.threads or 1)
      lines[key] = (lines[key] or 0) + n
      all = all + n
    end
  end
  lines.all = all
  for _, n in pairs(lines) do
    if n > 0 and not known[n] then known[n], list[#list + 1] = true, n end
  end
  table.sort(list)
  return list
end

-- Adds candidates for the operand `parity` of a wait.
function ROLES.parity(o, add, here, i)
  -- skip a token, which is no parity
  if o.type ~= "i32" and o.type ~= "u32" then return end
  add(PLAIN, edit(o, "self", {{"xor", 1}}), "the other parity of mbarrier_wait")
  local slot = operands.of(here.sites[i], "slot")
  local r = slot and ring_of(here, slot)
  for _, d in ipairs(donors(here, i, o, "parity")) do
    add(SAME, edit(o, "ref", nil, {mem = d.ref}), "the parity of another wait")
    add(SAME, edit(o, "ref", {{"xor", 1}}, {mem = d.ref}),
        "the other parity than that of another wait")
  end
  if not r or here.sites[i].op ~= "mbarrier.wait" then return end
  for imm = 0, 1 do
    add(RING, {how = "as", op = "mbarrier.wait", imm = imm, mem = r.mem,
               base = r.lo, count = r.n, name = r.name})
  end
end

function ROLES.arrivals(o, add, here, i)
  local slot = operands.of(here.sites[i], "slot")
  local r = slot and ring_of(here, slot)
  local f = here.fault
  local function set(when, n)
    if n == o.value or n < 1 then return end
    add(when, number(o, n), ("mbarrier_init(..., %d)"):format(n), r)
  end
  if f.mbar and f.mbar == slot.mem and f.arrivals ~= 0 and o.value then
    set(SAID, o.value + f.arrivals)
  end
  for _, n in ipairs(arrivals_of(here)) do set(PLAIN, n) end
end

function ROLES.bytes(o, add, here, i)
  local slot = operands.of(here.sites[i], "slot")
  local f = here.fault
  local function set(when, n)
    if n == o.value or n < 1 or n >= 1 << 20 then return end
    add(when, number(o, n), ("%d bytes expected"):format(n))
  end
  if f.mbar and f.mbar == slot.mem and f.bytes ~= 0 and o.value then
    set(SAID, o.value + f.bytes)
  end
  for _, n in ipairs(operands.bytes_of(here, slot.mem)) do
    set(PLAIN, n)
    if here.ctas > 1 then set(PLAIN, n * here.ctas) end
  end
end

local CALLS = {["mbarrier.wait"] = "mbarrier_wait",
               ["mbarrier.try_wait"] = "mbarrier_try_wait",
               ["mbarrier.arrive"] = "mbarrier_arrive",
               ["mbarrier.expect_tx"] = "mbarrier_arrive_and_expect_tx",
               ["cp.async.mbarrier.arrive"] = "cp_async_mbarrier_arrive_noinc"}

-- Calls each(by, words) for each possible distance in a ring of n stages, the
-- smallest distances first. `by` is the number of stages to add, modulo n;
-- `words` describes the distance, such as "1 stage earlier, of 4".
local function stages(n, each)
  for d = 1, math.min(n - 1, 3) do
    local words = d == 1 and "1 stage" or d .. " stages"
    if n - d >= d then
      each(n - d, ("%s earlier, of %d"):format(words, n))
    end
    if n - d > d then each(d, ("%s later, of %d"):format(words, n)) end
  end
end

-- Adds candidates for the operand that selects an mbarrier of a ring.
function ROLES.slot(o, add, here, i)
  local r, site = ring_of(here, o), here.sites[i]
  if not r or site.op == "mbarrier.init" then return end
  local what = CALLS[site.op] or "the mbarrier"
  local function say(when, e, words, ...)
    add(when, e, what .. " " .. words:format(...), r)
  end
  local function in_ring(...)
    local steps = {...}
    steps[#steps + 1] = {"mod", r.n}
    if r.lo > 0 then steps[#steps + 1] = {"add", r.lo} end
    return steps
  end
  stages(r.n, function(by, words)
    say(PLACE, edit(o, "self", in_ring({"sub", r.lo}, {"add", by})), words)
  end)
  for _, p in ipairs(operands.rings(here)) do
    local from = p.lo > 0 and (" from %d on"):format(p.lo) or ""
    if p ~= r and p.n == r.n and p.mem == r.mem then
      say(PLACE, edit(o, "self", {{"add", p.lo - r.lo}}), "of '%s'%s", p.name,
          from)
    elseif p ~= r and p.n == r.n and p.lo == r.lo then
      say(PLACE, {how = "value", operand = o.at - 1, from = "ref",
                  mem = p.mem}, "of '%s'%s", p.name, from)
    end
  end
  for _, d in ipairs(donors(here, i, o, "slot")) do
    local from = ring_of(here, d)
    if from and from.n == r.n then
      say(SAME, edit(o, "ref", {{"add", r.lo - from.lo}}, {mem = d.ref}),
          "of the stage that another line uses")
    end
  end
  if not o.value or r.n == 1 then return end
  say(RING, edit(o, "warp", in_ring()), "number warp_idx() %% %d", r.n)
  for k = r.lo, r.lo + r.n - 1 do
    if k ~= o.value then say(RING, number(o, k), "number %d", k) end
  end
end

function ROLES.rank(o, add, here)
  local n, when = here.ctas, o.own and SAME or PLACE
  if n < 2 then return end
  local function own(d)
    return edit(o, "rank", {{"add", d}, {"mod", n}}),
      d == 0 and "the rank of the block itself"
        or n == 2 and "the rank of the other block"
        or ("rank + %d, modulo %d"):format(d, n)
  end
  for d = 1, n - 1 do
    add(when, edit(o, "self", {{"add", d}, {"mod", n}}), n == 2
      and "the other rank" or ("a rank larger by %d, modulo %d"):format(d, n))
  end
  for d = 1, n do add(when, own(d % n)) end
  add(RING, edit(o, "lane", {{"mod", n}}), ("the rank lane_idx() %% %d")
    :format(n))
  for k = 0, n - 1 do
    if k ~= o.value then
      add(RING, number(o, k), ("the rank %d"):format(k))
    end
  end
end

function ROLES.mask(o, add, here)
  local n = here.ctas
  if n < 2 then return end
  local all = (1 << n) - 1
  add(PLACE, number(o, all), ("mcast_mask = 0x%x: all blocks of the cluster")
    :format(all))
  for k = 0, 15 do
    local bit = 1 << k
    if o.value then
      local v = o.value ~ bit
      if v ~= all and v & ~all == 0 and v ~= 0 then
        add(PLACE, number(o, v), ("mcast_mask = 0x%x"):format(v))
      end
    elseif k < n then
      add(RING, edit(o, "self", {{"xor", bit}}),
          ("mcast_mask ~ 0x%x"):format(bit))
    end
  end
  for m = 2, n // 2 do
    if n % m == 0 then
      local line, column = 0, (1 << m) - 1
      for k = 0, n - 1, m do line = line | 1 << k end
      add(PLACE, edit(o, "rank", {{"mod", m}, {"shl", line, flip = true}}),
          ("mcast_mask = 0x%x << rank %% %d"):format(line, m))
      add(PLACE, edit(o, "rank", {{"div", m}, {"mul", m},
                                  {"shl", column, flip = true}}),
          ("mcast_mask = 0x%x << rank // %d * %d"):format(column, m, m))
    end
  end
  add(RING, edit(o, "rank", {{"shl", 1, flip = true}}),
      "mcast_mask = 1 << rank: the block itself")
end

-- Returns the numbers of stages that a shared-memory object may have: the
-- lengths of rings of mbarriers, and the last extent of the object's layout.
local function stages_of(here, m)
  local list, known = {}, {}
  local function add(n)
    if n and n > 1 and m.count % n == 0 and not known[n] then
      known[n], list[#list + 1] = true, n
    end
  end
  local shape = (m.layout or ""):match "^%(?(.-)%)?:" or ""
  add(tonumber(shape:match ",(%d+)$"))
  for _, r in ipairs(operands.rings(here)) do add(r.n) end
  return list
end

-- Adds candidates for an operand that addresses data in shared memory: the
-- address of the same data in another stage.
function ROLES.place(o, add, here, i)
  local s = here.sites[i]
  local m
  for _, x in ipairs(here.mems) do if x.ref == o.mem then m = x end end
  if not m then return end
  local when = (s.op == "ld" or s.op == "st") and NUMBER or DATA
  for _, n in ipairs(stages_of(here, m)) do
    local each = m.count // n
    stages(n, function(by, words)
      add(when, edit(o, "self", {{"add", by * each}, {"mod", m.count}}),
          ("'%s' %s"):format(m.name, words))
    end)
    for _, d in ipairs(donors(here, i, o, "slot")) do
      local r = ring_of(here, d)
      if r and r.n == n and o.hi and o.hi < each then
        local steps = {{"mul", each}, {"add", with = o.ref}}
        if r.lo > 0 then table.insert(steps, 1, {"sub", r.lo}) end
        add(when, edit(o, "ref", steps, {mem = d.ref}),
            ("'%s' at the stage of its mbarrier"):format(m.name))
      end
    end
  end
end

function ROLES.threads(o, add, here, i)
  local s = here.sites[i]
  local what = s.op == "bar.sync" and "barrier" or "barrier_arrive"
  if s.op == "bar.sync" and s.imm == 0 then return end
  for _, n in ipairs(counts_of(here.threads)) do
    if n ~= o.value then
      local call = "cute.arch.%s(%s, %d)"
      add(PLAIN, number(o, n), call:format(what, s.imm, n))
      add(RING, number(o, n), call:format(what, "...", n))
      add(RING, number(o, n), ("%d threads"):format(n), nil,
          "barrier " .. s.imm)
    end
  end
end

---------------------------------------------------------------------------
-- Numbers
---------------------------------------------------------------------------

local function near(list, known, n, least)
  if n >= least and not known[n] then known[n], list[#list + 1] = true, n end
end

-- Returns the values that a repair may try in place of constant c of an
-- expression.
local function others_of(c, here)
  local list, known = {}, {[c.value] = true}
  local least = (c.op == "mod" or c.op == "div") and 1 or -1
  if c.op == "mod" or c.op == "div" or c.op == "eq" then
    for _, r in ipairs(operands.rings(here)) do
      near(list, known, r.n, least)
    end
  end
  if c.op == "xor" or c.op == "var" then near(list, known, c.value ~ 1, 0) end
  near(list, known, c.value + 1, least)
  near(list, known, c.value - 1, least)
  if c.op == "mod" or c.op == "div" then
    near(list, known, 2 * c.value, least)
    near(list, known, c.value // 2, least)
  end
  return list
end

local SIGN = {add = "+", sub = "-", mod = "%", div = "//", xor = "~", eq = "=="}

-- Adds candidates for constants in the computation of stages, parities and
-- ranks. Such a constant may be off by one, for example.
local function numbers(here, add)
  for _, c in ipairs(here.numbers or {}) do
    for _, n in ipairs(others_of(c, here)) do
      local words
      if c.op == "var" then
        local name = c.name ~= "" and c.name:gsub("_", ".") or "a variable"
        words = ("%s = %d at first, not %d"):format(name, n, c.value)
      else
        words = ("%s %d in place of %s %d"):format(SIGN[c.op], n, SIGN[c.op],
                                                   c.value)
      end
      add({ref = c.ref, file = c.file, line = c.line},
          NUMBER, number({at = c.at}, n), words)
    end
  end
end

---------------------------------------------------------------------------

--- Calls add(site, when, edit, words, ring, group) for each alternative to an
-- operand of an instruction in here.sites. `when` is the priority: smaller
-- values are tried first. `edit` is the patch, and `words` describes it.
-- Patches of one line with equal words are tried together, as one candidate per
-- ring. With `group`, patches of the group with equal words are tried together
-- even if their lines differ. `here` is a table {sites = the kernel's
-- instructions, mems =, numbers =, threads =, ctas =, fault =}.
---@param here table
---@param add fun(site: table, when: integer, edit: table, words: string?)
function operands.each(here, add)
  for i, s in ipairs(here.sites) do
    for _, o in ipairs(s.operands or {}) do
      local f = ROLES[o.role]
      if f then
        f(o, function(...) add(s, ...) end, here, i)
      end
    end
  end
  numbers(here, add)
end

operands.PLAIN, operands.SAME, operands.RING = PLAIN, SAME, RING
operands.DATA = DATA

return operands
-- SPDX-License-Identifier: MIT
