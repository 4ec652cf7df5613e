--- Generates random kernels whose variables start as nil and get Lua values in
-- loops and branches: numbers, strings, functions and tables. The variables are
-- locals, upvalues, globals, fields and list elements. The expected results
-- come from plain Lua, which runs the same program for each thread.
--
-- Programs are generated as marked text, from which the spec makes two forms.
-- Text between @ marks is a loop or branch: a cute call in the kernel form,
-- Lua's own keyword in the plain form.
local cute = require "cute"
local random = require "spec.random"

local absent = {}

local THREADS, SLOTS = 8, 8
local NOTHING = -777  -- number that plain Lua outputs for a nil variable

local Gen = setmetatable({}, random.Gen)
Gen.__index = Gen

---------------------------------------------------------------------------
-- Statements
---------------------------------------------------------------------------

local PLACES = {
  number = {"p", "q", "o.a", "o.in_it.b", "up", "GLOBAL", "l[1]", "obj.n"},
  string = {"s", "o.s", "upper"},
  func = {"f", "o.f"},
  object = {"h", "o.h"},
  flag = {"b", "o.on"},
}
local KINDS = {"number", "number", "number", "string", "func", "object",
               "flag"}

local function constant(g, kind)
  if kind == "number" then return tostring(g:r(3)) end
  if kind == "string" then return g:pick {'"a"', '"bc"'} end
  if kind == "func" then return g:pick {"twice", "next_of"} end
  if kind == "object" then return ("{v = %d}"):format(g:r(3)) end
  return g:pick {"true", "false", "true"}
end

function Gen:x() return self:pick {"x", "y", "x", "t.z"} end

function Gen:value()
  local k = self:r(7)
  if k <= 3 then return self:x() end
  if k == 4 then return tostring(self:r(20)) end
  if k == 5 then return "n" end
  if k == 6 then return "tid" end
  return self.counters[1] and self:pick(self.counters) or "5"
end

function Gen:cond()
  return ("cute.%s((%s + %s) %% 7, %d)"):format(self:pick {"lt", "ge", "eq"},
    self:pick {"tid", self:value()}, self:value(), self:r(7) - 1)
end

function Gen:limit()
  return self:pick {"3", "2", "n % 4", "(" .. self:x() .. ") % 3", "0"}
end

local function add(g, what)
  local x = g:x()
  return ("%s = (%s + %s) %% 97"):format(x, x, what)
end

local function put(g, what)
  return ("put(%d, %s)"):format(g:r(SLOTS) - 1, what)
end

-- Statements that assign and use a variable, by the kind of its value. In them,
-- P stands for the variable, K for a constant, and X, Q and J for other terms.
local USES = {
  number = {
    {"P = K"}, {"P = K"}, {"P = (P or 0) + 1"}, {"P = nil", rare = true},
    {"if not P then P = K end"}, {"P = P or K"},
    {"if P == nil then P = K end put(J, P)"}, {"put(J, P)"},
    {"if not P then P = K end X = (X + P) % 97"}, {"put(J, P or 50)"},
    {"P = P or K X = (X + P) % 97"}, {"X = (X + get()) % 97"},
    {"X = (X + of(K)) % 97"}, {"if P then X = (X + P) % 97 end"},
    {"if not P then X = (X + 1) % 97 end"}, {"set(K)"},
    {"if P == 2 then X = (X + 3) % 97 end"}, {"P = X", rare = true},
    {"if type(P) ~= 'nil' then X = (X + 5) % 97 end"}, {"P = Q"},
    {"obj:set(K)"}, {"X = (X + obj:get(K)) % 97"}, {"P = of(K)"},
    {"local own = P P = K X = (X + (own or 7)) % 97"},
    {"P = K X = (X * 2 + P) % 97"}, {"P = K put(J, P + X)"}},
  string = {
    {"P = K"}, {"P = K"}, {"P = P or K"}, {"P = nil", rare = true},
    {"if P == 'a' then X = (X + 3) % 97 else X = (X + 4) % 97 end"},
    {"if P then X = (X + #P) % 97 end"}, {"X = (X + #(P or 'xyz')) % 97"},
    {"P = K if P == 'a' then X = (X + 3) % 97 end"}, {"say(K)"},
    {"P = (P or '') .. 'd' X = (X + #P) % 97"},
    {"if not P then P = 'a' X = (X * 2) % 97 end"}},
  func = {
    {"P = K"}, {"P = K"}, {"if P then X = P(X) end"}, {"X = (P or twice)(X)"},
    {"P = K X = P(X)"}, {"P = P or K X = P(X)"}, {"P = nil", rare = true},
    {"P = function(v) return (v + 4) % 97 end X = P(X)"},
    {"if P == twice then X = (X + 3) % 97 end"}},
  object = {
    {"P = K"}, {"P = K X = (X + P.v) % 97"},
    {"if P then X = (X + P.v) % 97 end"}, {"P = P or K X = (X + P.v) % 97"},
    {"if P then P.v = X end"}, {"P = P or K P.v = (P.v + 1) % 97"},
    {"if P then P.w = (P.w or 0) + 1 end"}},
  flag = {
    {"P = K"}, {"P = K"}, {"if P then X = (X + 3) % 97 end"},
    {"if P == nil then X = (X + 2) % 97 P = K end"}, {"P = not P"},
    {"if not P then X = (X + 3) % 97 P = true end"}},
  list = {
    {"l[#l + 1] = K"}, {"table.insert(l, K)"}, {"l[1] = K"},
    {"X = (X + #l) % 97"}, {"for _, v in ipairs(l) do X = (X + v) % 97 end"},
    {"for _ in pairs(o) do X = (X + 1) % 97 end"}, {"l[1] = l[1] or K"},
    {"if next(l) then X = (X + 3) % 97 end"}, {"l = {}"},
    {"for k in pairs(memo) do X = (X + k) % 97 end"},
    {"X = (X + select('#', table.unpack(l))) % 97"},
    {"if #l == 0 then l[1] = K end X = (X + l[1]) % 97"},
    {"local m = {} m[1] = K m[#m + 1] = K X = (X + #m) % 97"}},
}

-- Returns a statement, taken from USES, about one of the variables in g.active.
local function of_host(g)
  local about = g:pick(g.active)
  local use = g:pick(USES[about.kind])
  if use.rare and g:chance(70) then use = g:pick(USES[about.kind]) end
  local other = g:pick(PLACES.number)
  local x, j = g:x(), tostring(g:r(SLOTS) - 1)
  return (use[1]:gsub("%f[%w_]([PQKXJ])%f[^%w_]", function(c)
    if c == "P" then return about.place end
    if c == "Q" then return other end
    if c == "X" then return x end
    if c == "J" then return j end
    return constant(g, about.kind == "list" and "number" or about.kind)
  end))
end

-- Returns a statement that stores, adds or assigns a traced number, and uses no
-- variable of g.active.
local function of_kernel(g)
  local k = g:r(4)
  if k == 1 then return put(g, g:value()) end
  if k == 2 then return ("t.z = (%s * 3 + 1) %% 89"):format(g:value()) end
  return add(g, g:value())
end

local lines = random.Gen.sequence

local function in_loop(g, depth, counter)
  g.loops = g.loops + 1
  local text = lines(g, depth, counter)
  if g:chance(25) then
    text = text .. (" @break %s@"):format(g:cond()) .. " "
      .. lines(g, depth, counter)
  end
  g.loops = g.loops - 1
  return text
end

local REGIONS = {
  function(g, depth)
    local name = "k" .. depth
    return ("@range %s %s@\n%s\n@done@"):format(name, g:limit(),
      in_loop(g, depth - 1, name))
  end,
  function(g, depth)
    local no = g:chance(50) and "@else@\n" .. lines(g, depth - 1) or ""
    return ("@when %s@\n%s\n%s\n@end@"):format(g:cond(), lines(g, depth - 1),
                                               no)
  end,
  function(g, depth)
    return ("@flat %s@\n%s\n@done@"):format(g:cond(), lines(g, depth - 1))
  end,
  function(g, depth)
    return ("@cases %s; %s@\n%s\n@second@\n%s\n%s@finish@"):format(g:cond(),
      g:cond(), lines(g, depth - 1), lines(g, depth - 1),
      g:chance(60) and "@rest@\n" .. lines(g, depth - 1) .. "\n" or "")
  end,
  function(g, depth)
    return ("local w = 0 @while cute.lt(w, %s)@ w = w + 1\n%s\n@stop@"):format(
      g:limit(), in_loop(g, depth - 1, "w"))
  end,
  function(g, depth)
    local text = lines(g, depth - 1)
    if g:chance(70) then
      text = text .. (" @return %s@ "):format(g:cond()) .. lines(g, depth - 1)
    end
    return "@call@\n" .. text .. "\n@called@"
  end,
}

function Gen:statement(depth)
  if depth > 0 and self:chance(38) then
    local loops = self.loops
    local k = self:r(#REGIONS)
    -- self.loops: the number of loops of the same function that enclose a
    -- statement
    if k == #REGIONS then self.loops = 0 end
    local text = REGIONS[k](self, depth)
    self.loops = loops
    return text
  end
  return self:chance(self.hosts) and of_host(self) or of_kernel(self)
end

local DECLARED = {
  {"p", "number"}, {"q", "number"}, {"s", "string"}, {"f", "func"},
  {"h", "object"}, {"b", "flag"}, {"up", "number"}, {"upper", "string"}}

--- Returns a seed's program as text with @ marks around loops and branches.
---@param seed integer
---@return string
function absent.program(seed)
  local g = setmetatable({state = seed * 0x9e3779b97f4a7c15 | 1, counters = {},
                          loops = 0, active = {}}, Gen)
  for _ = 1, 8 do g:r(2) end
  g.hosts = g:pick {25, 45, 70}
  for _ = 1, g:r(3) do
    local kind = g:pick(KINDS)
    if g:chance(12) then kind = "list" end
    g.active[#g.active + 1] = {kind = kind,
      place = kind ~= "list" and g:pick(PLACES[kind]) or nil}
  end
  local head = {}
  for i, d in ipairs(DECLARED) do
    head[i] = ("local %s%s"):format(d[1], g:chance(15)
      and " = " .. constant(g, d[2]) or "")
  end
  local body = {}
  for _ = 1, 1 + g:r(4) do body[#body + 1] = g:statement(3) end
  return table.concat(head, " ") .. [[

  GLOBAL = nil
  local x, y, t = tid, n, {z = 3}
  local o, l, memo = {in_it = {}}, {}, {}
  local function twice(v) return v * 2 % 97 end
  local function next_of(v) return (v + 1) % 97 end
  local function set(v) up = v end
  local function say(v) upper = v end
  local function get()
    if not up then up = 2 end
    return up
  end
  local function of(k)
    local v = memo[k]
    if not v then
      v = k * 5
      memo[k] = v
    end
    return v
  end
  local Object = {}
  Object.__index = Object
  function Object:set(v) self.n = v end
  function Object:get(v)
    self.n = self.n or v
    return self.n
  end
  local obj = setmetatable({}, Object)
  do ]] .. table.concat(body, " end do\n") .. [[ end
  put(0, x) put(1, y) put(2, t.z)]]
end

---------------------------------------------------------------------------
-- The two forms of a program: a kernel, and plain Lua
---------------------------------------------------------------------------

local KERNEL = {
  ["break"] = "cute.break_if(%s)", ["return"] = "cute.return_if(%s)",
  when = "cute.when(%s, function()", ["else"] = "end, function()",
  ["end"] = "end)", flat = "for _ in cute.when(%s) do", done = "end",
  second = "elseif second then", rest = "else", finish = "end end",
  ["while"] = "cute.loop(function() return %s end, function()", stop = "end)",
  call = "cute.func(function()", called = "end)()"}
local PLAIN = {
  ["break"] = "if %s then break end", ["return"] = "if %s then return end",
  when = "if %s then", ["else"] = "else", ["end"] = "end",
  flat = "if %s then", done = "end", second = "elseif second then",
  rest = "else", finish = "end end", ["while"] = "while %s do", stop = "end",
  call = "(function()", called = "end)()"}

local function expand(text, words, range, cases)
  return (text:gsub("@(%l+) ?([^@]*)@", function(word, rest)
    if word == "range" then
      return range:format(rest:match "^(%S+) (.*)$")
    elseif word == "cases" then
      return cases:format(rest:match "^(.-); (.*)$")
    elseif word == "call" or word == "called" then
      return ";" .. words[word]
    end
    local f = words[word]
    return f:find "%%s" and f:format(rest) or f
  end):gsub(";end%)", "end)"))
end

--- Returns the program as text of a kernel, function(out, n).
---@param text string
---@return string
function absent.kernel(text)
  return "local cute = require 'cute'\nreturn function(out, n)\n  local tid = "
    .. "(cute.arch.thread_idx())\n  local function put(i, v) out[{tid, i}] = "
    .. "v end\n"
    .. expand(text, KERNEL, "for %s in cute.range(%s) do",
              "for first, second in cute.cases(%s, %s) do if first then")
    .. "\nend"
end

-- Returns Lua code of a function(put, n, tid) that runs the program as thread
-- `tid`.
local function plain(text)
  return "local cute = require 'cute'\nreturn function(put, n, tid)\n"
    .. expand(text, PLAIN, "for %s = 0, (%s) - 1 do",
              "do local first, second = %s, %s if first then")
    .. "\nend"
end

local N = THREADS * SLOTS

local function on_host(text, n)
  local out = {}
  for i = 1, N do out[i] = -1 end
  for tid = 0, THREADS - 1 do
    assert(load(plain(text), "=plain"))()(function(i, v)
      if v == nil then v = NOTHING end
      out[tid * SLOTS + i + 1] = v
    end, n, tid)
  end
  return out
end

local function simulated(text, n)
  local flat = cute.full({N}, -1, cute.i32)
  local out = cute.make_tensor(flat.iterator,
    cute.make_layout({THREADS, SLOTS}, {SLOTS, 1}))
  local f = assert(load(absent.kernel(text), "=kernel"))()
  cute.kernel("k", f)(out, n):launch {grid = 1, block = THREADS,
                                      device = "sim:sm_80"}
  local got = {}
  for i = 0, N - 1 do got[i + 1] = flat[i] end
  return got
end

--- Runs the program of a seed as a kernel and in plain Lua. Returns one of:
-- "same";
-- "error" and the message, if the kernel fails;
-- "skipped", if plain Lua fails for a thread;
-- "different" and the results of both runs.
---@param seed integer
---@return string verdict, any ...
function absent.compare(seed)
  local text, n = absent.program(seed), seed % 5
  local known, want = pcall(on_host, text, n)
  local ok, got = pcall(simulated, text, n)
  rawset(_G, "GLOBAL", nil)
  if not ok then return "error", got end
  if not known then return "skipped", want end
  for i = 1, N do
    if want[i] ~= got[i] then return "different", want, got end
  end
  return "same"
end

return absent
-- SPDX-License-Identifier: MIT
