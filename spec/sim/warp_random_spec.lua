-- Tests random programs of branches, loops and lane operations under masks. The
-- simulator's results and reports are compared with those of an interpreter
-- that runs the same program one lane at a time.
--
-- A program exists in two forms: as Lua text, and as a tree of the same
-- operations. The text has one operation per line, so that reports name the
-- operation. Masks come from ballots of the condition before a branch or loop,
-- and from match_sync for groups without a branch. Some operations get a wrong
-- mask. Their results are not used, so that both forms still compute the same
-- values.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local FULL = 0xffffffff

local function generator(seed)
  return function(n)
    seed = seed * 6364136223846793005 + 1442695040888963407
    return (seed >> 33) % n
  end
end

---------------------------------------------------------------------------
-- Programs
---------------------------------------------------------------------------

local REDUX = {"add", "min", "max", "and", "or", "xor"}
local VOTES = {"any", "all", "uni", "ballot"}
local SHUFFLES = {"idx", "up", "down", "bfly"}
-- Wrong masks: patterns for the text of a mask, %s.
local WRONG = {"nil", "%s & (%s - 1)", "%s | 1", "0xffff", "~%s"}

local Program = {}
Program.__index = Program

function Program:line(format, ...)
  self.text[#self.text + 1] = format:format(...)
  return #self.text
end

function Program:name(letter)
  self.names = self.names + 1
  return letter .. self.names
end

-- Returns the text of an operation's mask, which is sometimes wrong, and the
-- variable for the operation's result. Also returns the pattern of WRONG that
-- was applied, or nil.
function Program:mask(m)
  if self.random(100) >= self.wrong then return m, "v" end
  local how = WRONG[1 + self.random(#WRONG)]
  return how:gsub("%%s", m), "local _", how
end

local KINDS = {}

function KINDS:step()
  local a, b = 1 + self.random(7), self.random(100)
  return {kind = "step", a = a, b = b,
          line = self:line("v = (v * %d + (lane + %d)) & 0xffff", a, b)}
end

function KINDS:vote(m)
  local how = VOTES[1 + self.random(4)]
  local mask, to, bent = self:mask(m)
  return {kind = "vote", how = how, mask = m, bent = bent,
    line = self:line("%s = (v + arch.vote_sync_op(((v >> 2) %% 3):eq(1), "
      .. "'%s', %s):to(cute.i32) %% 1000) & 0xffff", to, how, mask)}
end

function KINDS:redux(m)
  local how = REDUX[1 + self.random(6)]
  local mask, to, bent = self:mask(m)
  return {kind = "redux", how = how, mask = m, bent = bent,
    line = self:line("%s = v ~ arch.warp_redux_sync(v, '%s', %s) & 0xffff",
                     to, how, mask)}
end

function KINDS:match(m)
  local how = self.random(2) == 0 and "any" or "all"
  local mask, to, bent = self:mask(m)
  mask = mask == "nil" and "0xffffffff" or mask
  return {kind = "match", how = how, mask = m, bent = bent,
    line = self:line("%s = (v + arch.match_sync(%s, v %% 3, '%s')"
      .. ":to(cute.i32) %% 1000) & 0xffff", to, mask, how)}
end

function KINDS:sync(m)
  local mask, _, bent = self:mask(m)
  return {kind = "sync", mask = m, bent = bent,
          line = self:line("arch.sync_warp(%s)", mask)}
end

-- Adds a shuffle from the first lane of the mask, or from any lane.
function KINDS:shuffle(m)
  local mask, to, bent = self:mask(m)
  local how, by, width = "idx", "first", 32
  local lane = ("arch.popc((%s & -%s) - 1)"):format(m, m)
  if self.random(100) < self.wrong then
    how, by = SHUFFLES[1 + self.random(4)], self.random(32)
    width, lane, to = 1 << (1 + self.random(5)), tostring(by), "local _"
  end
  return {kind = "shuffle", how = how, by = by, width = width, mask = m,
    bent = bent, unused = to ~= "v",
    line = self:line("%s = (v + arch.shuffle_sync%s(v, %s, %d, %s)) & 0xffff",
      to, how == "idx" and "" or "_" .. how, lane, width, mask)}
end

function Program:condition()
  if self.random(3) == 0 then
    local n = 1 + self.random(31)
    return ("lane:lt(%d)"):format(n), function(_, l) return l < n end
  end
  local bit = self.random(5)
  return ("((v >> %d) & 1):eq(1)"):format(bit), function(v)
    return v >> bit & 1 == 1
  end
end

function KINDS:branch(m, depth)
  local text, test = self:condition()
  local p, yes, no = self:name "p", self:name "m", self:name "m"
  self:line("local %s = %s", p, text)
  local node = {kind = "branch", test = test, mask = m, yes = yes, no = no}
  self:line("local %s = arch.vote_ballot_sync(%s, %s)", yes, p, m)
  self:line("local %s = %s & ~%s", no, m, yes)
  self:line("cute.when(%s, function()", p)
  node.body = self:block(yes, depth - 1)
  self:line("end, function()")
  node.other = self:block(no, depth - 1)
  self:line "end)"
  return node
end

-- Adds a loop whose number of iterations depends on the lane's value.
function KINDS:loop(m, depth)
  local n, live = self:name "n", self:name "m"
  self:line("local %s = v & 3", n)
  self:line("local %s = arch.vote_ballot_sync(%s:gt(0), %s)", live, n, m)
  self:line("cute.loop(function() return %s:gt(0) end, function()", n)
  local node = {kind = "loop", mask = m, live = live}
  node.body = self:block(live, depth - 1)
  self:line("%s = %s - 1", n, n)
  self:line("%s = arch.vote_ballot_sync(%s:gt(0), %s)", live, n, live)
  self:line "end)"
  return node
end

function KINDS:group(m, depth)
  local g = self:name "m"
  self:line("local %s = arch.match_sync(%s, v & 1)", g, m)
  return {kind = "group", mask = m, group = g,
          body = self:block(g, depth - 1, true)}
end

local LEAVES = {"step", "step", "vote", "redux", "match", "sync", "shuffle"}
local TREES = {"branch", "branch", "loop", "group"}

-- Adds a block. With `flat` it has no branch, which would separate lanes.
function Program:block(m, depth, flat)
  local list = {}
  for i = 1, 2 + self.random(2) do
    local kind = LEAVES[1 + self.random(#LEAVES)]
    if depth > 0 and not flat and self.random(2) == 0 then
      kind = TREES[1 + self.random(#TREES)]
    end
    list[i] = KINDS[kind](self, m, depth)
  end
  return list
end

local function make(seed, wrong)
  local p = setmetatable({random = generator(seed), wrong = wrong, names = 0,
    text = {}}, Program)
  p:line "local cute, arch, A = ..."
  p:line "local lane, at = arch.lane_idx(), arch.thread_idx()"
  p:line "local v = A[at]"
  p:line "local m0 = cute.var(0xffffffff, cute.u32):get()"
  p.tree = p:block("m0", 3)
  p:line "A[at] = v"
  return p
end

---------------------------------------------------------------------------
-- One warp of a program, one lane at a time
---------------------------------------------------------------------------

local function i32(x)
  x = x & FULL
  return x >= 1 << 31 and x - (1 << 32) or x
end

local Warp = {}
Warp.__index = Warp

local function bits(lanes)
  local m = 0
  for _, l in ipairs(lanes) do m = m | 1 << l end
  return m
end

-- For each pattern of WRONG, a function that computes the wrong mask.
local BEND = {
  ["nil"] = function() return FULL end,
  ["%s & (%s - 1)"] = function(m) return m & (m - 1) end,
  ["%s | 1"] = function(m) return m | 1 end,
  ["0xffff"] = function() return 0xffff end,
  ["~%s"] = function(m) return ~m & FULL end,
}

-- Calls f(lanes, mask) for each group of lanes that pass the same mask. Records
-- a report if the mask is not that of the group's lanes.
function Warp:groups(node, lanes, f)
  local by, order = {}, {}
  for _, l in ipairs(lanes) do
    local m = self[node.mask][l]
    if node.bent then m = BEND[node.bent](m) end
    if not by[m] then
      by[m] = {}
      order[#order + 1] = m
    end
    table.insert(by[m], l)
  end
  for _, m in ipairs(order) do
    if bits(by[m]) ~= m & self.valid then
      self.faults["divergent " .. node.line] = true
    end
    f(by[m], m)
  end
end

local RUN = {}

function Warp:run(list, lanes)
  if #lanes == 0 then return end
  for _, node in ipairs(list) do RUN[node.kind](self, node, lanes) end
end

function RUN:step(node, lanes)
  for _, l in ipairs(lanes) do
    self.v[l] = self.v[l] * node.a + l + node.b & 0xffff
  end
end

function RUN:sync(node, lanes) self:groups(node, lanes, function() end) end

function RUN:vote(node, lanes)
  self:groups(node, lanes, function(group)
    local ballot = 0
    for _, l in ipairs(group) do
      if self.v[l] // 4 % 3 == 1 then ballot = ballot | 1 << l end
    end
    local all = ballot == bits(group)
    local r = ({any = ballot ~= 0, all = all, uni = all or ballot == 0,
                ballot = i32(ballot)})[node.how]
    if type(r) == "boolean" then r = r and 1 or 0 end
    if node.bent then return end
    for _, l in ipairs(group) do self.v[l] = self.v[l] + r % 1000 & 0xffff end
  end)
end

local FOLD = {add = function(a, b) return a + b end, min = math.min,
  max = math.max, ["and"] = function(a, b) return a & b end,
  ["or"] = function(a, b) return a | b end,
  xor = function(a, b) return a ~ b end}

function RUN:redux(node, lanes)
  self:groups(node, lanes, function(group)
    local r
    for _, l in ipairs(group) do
      r = r and FOLD[node.how](r, self.v[l]) or self.v[l]
    end
    if node.bent then return end
    for _, l in ipairs(group) do self.v[l] = self.v[l] ~ r & 0xffff end
  end)
end

function RUN:match(node, lanes)
  self:groups(node, lanes, function(group)
    local same, out = {}, {}
    for _, l in ipairs(group) do
      local key = self.v[l] % 3
      same[key] = (same[key] or 0) | 1 << l
    end
    for _, l in ipairs(group) do
      local r = same[self.v[l] % 3]
      if node.how == "all" and r ~= bits(group) then r = 0 end
      out[l] = i32(r) % 1000
    end
    if node.bent then return end
    for _, l in ipairs(group) do self.v[l] = self.v[l] + out[l] & 0xffff end
  end)
end

-- Returns a shuffle's source lane, as CUDA defines it in segments of `width`.
local function source(node, l, mask)
  local w, by = node.width, node.by
  local base = l // w * w
  if by == "first" then
    by = 0
    while mask >> by & 1 == 0 do by = by + 1 end
  end
  if node.how == "idx" then return base + by % w end
  if node.how == "up" then return l - by >= base and l - by or l end
  if node.how == "down" then return l + by < base + w and l + by or l end
  local from = l ~ by
  return from < base + w and from or l
end

function RUN:shuffle(node, lanes)
  local new = {}
  self:groups(node, lanes, function(group, mask)
    local part = mask & self.valid
    for _, l in ipairs(group) do
      local from = source(node, l, self[node.mask][l])
      if part >> l & 1 == 1 and part >> from & 1 == 0 then
        self.faults["inactive-lane " .. node.line] = true
      end
      new[l] = self.v[from] or 0
    end
  end)
  if node.unused then return end
  for _, l in ipairs(lanes) do self.v[l] = self.v[l] + new[l] & 0xffff end
end

local function constant(lanes, m)
  local t = {}
  for _, l in ipairs(lanes) do t[l] = m end
  return t
end

function RUN:branch(node, lanes)
  local yes, no, ballot = {}, {}, {}
  for _, l in ipairs(lanes) do
    local list = node.test(self.v[l], l) and yes or no
    list[#list + 1] = l
  end
  for _, l in ipairs(lanes) do ballot[l] = bits(yes) & self[node.mask][l] end
  self[node.yes], self[node.no] = ballot, {}
  for _, l in ipairs(lanes) do
    self[node.no][l] = self[node.mask][l] & ~ballot[l]
  end
  self:run(node.body, yes)
  self:run(node.other, no)
end

function RUN:loop(node, lanes)
  local n = {}
  for _, l in ipairs(lanes) do n[l] = self.v[l] & 3 end
  while true do
    local live = {}
    for _, l in ipairs(lanes) do
      if n[l] > 0 then live[#live + 1] = l end
    end
    if #live == 0 then return end
    self[node.live] = constant(live, bits(live))
    self:run(node.body, live)
    for _, l in ipairs(live) do n[l] = n[l] - 1 end
    lanes = live
  end
end

function RUN:group(node, lanes)
  local odd, group = {[0] = 0, 0}, {}
  for _, l in ipairs(lanes) do
    local k = self.v[l] & 1
    odd[k] = odd[k] | 1 << l
  end
  for _, l in ipairs(lanes) do group[l] = odd[self.v[l] & 1] end
  self[node.group] = group
  self:run(node.body, lanes)
end

---------------------------------------------------------------------------

-- Returns a program's expected reports and results, and those of the simulator.
local function both(seed, wrong, threads)
  local p, random = make(seed, wrong), generator(seed + 77)
  local text = table.concat(p.text, "\n")
  local A, v = cute.zeros({threads}, "i32"), {}
  for t = 0, threads - 1 do
    v[t] = random(1 << 16)
    A[t] = v[t]
  end
  local chunk = assert(load(text, "=program"))
  local call = cute.kernel("k", function(a) chunk(cute, arch, a) end)(A)
  local report = support.report(call:launch {grid = 1, block = threads,
                                             device = "sim", faults = "return"})
  local faults = {}
  for w = 0, threads - 1, 32 do
    local n = math.min(32, threads - w)
    local warp = setmetatable({v = {}, faults = faults,
                               valid = (1 << n) - 1}, Warp)
    local lanes = {}
    for l = 0, n - 1 do lanes[l + 1], warp.v[l] = l, v[w + l] end
    warp.m0 = constant(lanes, FULL)
    warp:run(p.tree, lanes)
    for l = 0, n - 1 do v[w + l] = warp.v[l] end
  end
  local want, got = {}, {}
  for fault in pairs(faults) do want[#want + 1] = fault end
  for i, r in ipairs(report.reports) do
    got[i] = ("%s %d"):format(r.kind, r.line)
  end
  table.sort(want)
  table.sort(got)
  local where = ("seed %d\n%s"):format(seed, text)
  assert.equal(table.concat(want, ", "), table.concat(got, ", "), where)
  if #want > 0 then return #want end
  for t = 0, threads - 1 do assert.equal(v[t], A[t], where) end
  return 0
end

describe("random programs of lanes", function()
  it("with right masks compute right results without a report",
    function()
      for seed = 1, 60 do
        assert.equal(0, both(seed, 0, ({32, 64, 52, 7})[seed % 4 + 1]))
      end
    end)

  it("with wrong masks: each is reported, and nothing else #long", function()
    local found = 0
    for seed = 1, 120 do
      found = found + both(1000 + seed, 8, ({32, 64, 52, 7})[seed % 4 + 1])
    end
    assert.is_true(found > 60, found .. " faults")
  end)
end)
-- SPDX-License-Identifier: MIT
