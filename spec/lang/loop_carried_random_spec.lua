-- Tests random loops and branches over objects. The same Lua function runs as a
-- kernel on the simulator, where changes made in loop bodies become carried
-- variables. It also runs on the host with plain numbers and Lua's loops. Both
-- must give the same results.
local cute = require "cute"
local random = require "spec.random"
local support = require "spec.support"

local PRELUDE = [[
local cute = require "cute"
local Node = {}
Node.__index = Node
function Node.new(a, b)
  return setmetatable({a = a, b = b, on = false, at = {x = a, y = b},
                       list = {a, b, 3}}, Node)
end
function Node:bump(by) self.a = (self.a + by) % 97 end
function Node:turn() self.a, self.b = self.b, (self.a + self.at.x) % 89 end
function Node:mark(c) self.on = self.on ~ c end
function Node:walk(n)
  for k in cute.range(n) do self.at.y = (self.at.y * 3 + k) % 101 end
end
function Node:pick(c)
  cute.when(c, function() self.list[2] = self.b end,
            function() self.list[3] = (self.list[2] + 1) % 53 end)
end
local function add(node, key, by) node[key] = (node[key] + by) % 83 end
local function each(n, f) for k in cute.range(n) do f(k) end end
local outside = Node.new(1, 2)
]]

local Gen = setmetatable({}, random.Gen)
Gen.__index = Gen

function Gen:node() return self:pick(self.nodes) end

function Gen:place()
  return self:node() .. self:pick {".a", ".b", ".at.x", ".at.y", ".list[1]",
                                   ".list[2]", ".list[3]", ".list[#p + 1]"}
end

function Gen:value()
  local k = self:r(9)
  if k <= 4 then return self:place() end
  if k == 5 then return tostring(self:r(20)) end
  if k == 6 then return "n" end
  if k == 7 then return ("cute.where(%s.on, %s, 7)"):format(self:node(),
    self:place()) end
  if k == 8 then return ("p[%d]"):format(self:r(2)) end
  return self.counters[1] and self:pick(self.counters) or "5"
end

function Gen:expr()
  return ("(%s %s %s)"):format(self:value(), self:pick {"+", "-", "*", "+"},
                               self:value())
end

function Gen:cond()
  return ("cute.%s(%s, %s)"):format(self:pick {"lt", "ge", "eq"},
    self:value() .. " % 7", tostring(self:r(7) - 1))
end

function Gen:limit()
  return self:pick {"3", "2", "n % 3", "(" .. self:place() .. ") % 3", "0"}
end

local SIMPLE = {
  function(g) return ("%s = %s %% 97"):format(g:place(), g:expr()) end,
  function(g) return ("%s = %s %% 97"):format(g:place(), g:expr()) end,
  function(g) return ("%s:bump(%s)"):format(g:node(), g:value()) end,
  function(g) return ("%s:turn()"):format(g:node()) end,
  function(g) return ("%s:mark(%s)"):format(g:node(), g:cond()) end,
  function(g) return ("%s:walk(%s)"):format(g:node(), g:limit()) end,
  function(g) return ("%s:pick(%s)"):format(g:node(), g:cond()) end,
  function(g)
    return ('add(%s, "%s", %s)'):format(g:node(), g:pick {"a", "b"}, g:value())
  end,
  function(g) return ("p = {%s %% 61, p[1]}"):format(g:expr()) end,
  function(g) return ("count(%s)"):format(g:value()) end,
  function(g)  -- uses an object that is local to the body
    return ("local own = Node.new(%s, %s) own:bump(%s) own:turn() %s = own.b")
      :format(g:value(), g:value(), g:value(), g:place())
  end,
  function(g)
    return ("table.insert(log, 4) table.remove(log) rawset(%s, 'b', %s %% 91)")
      :format(g:node(), g:expr())
  end,
}

local lines = random.Gen.sequence

function Gen:statement(depth)
  local k = depth > 0 and self:r(15) or 15
  local name = "k" .. depth
  if k <= 2 then
    return ("for %s in cute.range(%s) do\n%s\nend"):format(name, self:limit(),
      lines(self, depth - 1, name))
  elseif k <= 4 then
    return ("cute.when(%s, function()\n%s\nend, function()\n%s\nend)"):format(
      self:cond(), lines(self, depth - 1), lines(self, depth - 1))
  elseif k == 5 then
    return ("cute.when(%s, function()\n%s\nend)"):format(self:cond(),
      lines(self, depth - 1))
  elseif k == 6 then
    return ("each(%s, function(%s)\n%s\nend)"):format(self:limit(), name,
      lines(self, depth - 1, name))
  elseif k == 7 then
    return ("local w = {i = 0} cute.loop(function() return cute.lt(w.i, %s) "
      .. "end, function()\nw.i = w.i + 1\n%s\nend)"):format(self:limit(),
      lines(self, depth - 1, "w.i"))
  elseif k == 8 then
    return ("for _ = 1, 2 do\n%s\nend"):format(lines(self, depth - 1))
  elseif k == 9 then
    return ("for _ in cute.when(%s) do\n%s\nend"):format(self:cond(),
      lines(self, depth - 1))
  elseif k == 10 then
    return ("for a, b in cute.cases(%s, %s) do\nif a then %s\nelseif b then "
      .. "%s\nelse %s\nend end"):format(self:cond(), self:pick {self:cond(),
      self:cond(), "true", "false"}, lines(self, depth - 1),
      lines(self, depth - 1), lines(self, depth - 1))
  elseif k == 11 then
    return ("%s, v.peer.b = cute.when(%s, function() %s return %s %% 61, %s "
      .. "end, function() %s return %s %% 59, %s end)"):format(self:place(),
      self:cond(), lines(self, depth - 1), self:expr(), self:value(),
      lines(self, depth - 1), self:expr(), self:value())
  end
  return self:pick(SIMPLE)(self)
end

local function program(seed)
  local g = setmetatable({state = seed * 0x9e3779b97f4a7c15 | 1, counters = {},
    nodes = {"u", "v", "v.peer", "same", "outside", "held[1]"}}, Gen)
  for _ = 1, 8 do g:r(2) end
  local body = {}
  for _ = 1, 3 do body[#body + 1] = g:statement(3) end
  return PRELUDE .. [[
return function(out, n)
  outside.a, outside.b, outside.on = 4, 5, false
  outside.at.x, outside.at.y = 6, 7
  for i = 1, 3 do outside.list[i] = i end
  local u, v = Node.new(3, 5), Node.new(8, 2)
  v.peer = Node.new(1, 1)
  local same, held, p, log = u, {Node.new(9, 9)}, {1, 2}, {1, 2, 3}
  local times = {n = 0}
  local function count(by) times.n = (times.n + by) % 211 end
  do ]] .. table.concat(body, " end do\n") .. [[ end
  local at = 0
  local function put(x)
    out[at] = x
    at = at + 1
  end
  for _, o in ipairs {u, v, v.peer, outside, held[1]} do
    put(o.a) put(o.b) put(cute.where(o.on, 1, 0)) put(o.at.x) put(o.at.y)
    for i = 1, 3 do put(o.list[i]) end
  end
  put(p[1]) put(p[2]) put(times.n) put(#log)
end]]
end

local N = 5 * 8 + 4

local function on_host(text, n)
  local out = {}
  assert(load(text, "=program"))()(out, n)
  return table.move(out, 0, N - 1, 1, {})
end

local function as_kernel(text, n)
  local out, got = cute.zeros({N}, cute.i32), {}
  cute.kernel("objects", assert(load(text, "=program"))())(out, n):launch {
    grid = 1, block = 1, device = "sim"}
  for i = 0, N - 1 do got[i + 1] = out[i] end
  return got
end

describe("objects that random loops and branches change", function()
  local most = tonumber(os.getenv "CUTELUA_SEEDS") or 120
  for first = 1, most, 40 do
    it(("hold what they hold on the host, seeds from %d"):format(first)
       .. support.long(first),
      function()
        for seed = first, math.min(first + 39, most) do
          local text, n = program(seed), seed % 5
          local ok, got = pcall(as_kernel, text, n)
          local where = ("seed %d\n%s"):format(seed, text)
          assert.is_true(ok, tostring(got) .. "\n" .. where)
          assert.same(on_host(text, n), got, where)
        end
      end)
  end
end)
-- SPDX-License-Identifier: MIT
