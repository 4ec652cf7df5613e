-- Tests random loops, branches and helpers that threads leave early. Each
-- program runs as a kernel of 32 threads on the simulator and as emitted text.
-- The oracle is plain Lua, thread by thread, with Lua's own break and return.
local cudahost = require "spec.cudahost"
local cute = require "cute"
local random = require "spec.random"
local support = require "spec.support"

local SLOTS = 10  -- number of output elements of a thread

local Gen = setmetatable({}, random.Gen)
Gen.__index = Gen

local PLACES = {"a", "b", "c", "t.x", "t.y", "t.in_it.z"}

function Gen:place() return self:pick(self.places) end

function Gen:value()
  local k = self:r(8)
  if k <= 4 then return self:place() end
  if k == 5 then return tostring(self:r(20)) end
  if k == 6 then return "n" end
  if k == 7 then return self.tid end
  return self.counters[1] and self:pick(self.counters) or "5"
end

function Gen:expr()
  return ("(%s %s %s)"):format(self:value(), self:pick {"+", "-", "*", "+"},
                               self:value())
end

function Gen:cond()
  return ("cute.%s(%s %% 7, %d)"):format(self:pick {"lt", "ge", "eq"},
    self:pick {self:value(), self:expr(), self.tid}, self:r(7) - 1)
end

function Gen:limit()
  return self:pick {"3", "4", "n % 5", "(" .. self:place() .. ") % 4", "6"}
end

-- Returns a random statement that may leave a loop or a function. In a kernel,
-- a text between @ marks becomes a call of cute; in plain Lua it becomes Lua's
-- own keyword.
local function leave(g, inner)
  local k = g:r(g.returns and 10 or 7)
  if k <= 6 and g.loops > 0 then return ("@break %s@"):format(g:cond()) end
  if g.results then
    return ("@leave %s, %s %% 89, %s@"):format(g:cond(), g:expr(), g:value())
  end
  if k == 10 then return ("@leave %s@"):format(g:cond()) end
  return inner(g)
end

local SIMPLE = {
  function(g) return ("%s = %s %% 97"):format(g:place(), g:expr()) end,
  function(g) return ("%s = %s %% 97"):format(g:place(), g:expr()) end,
  function() return "a, b = b, a" end,
  function(g)
    return ("put(%d, %s)"):format(g:r(SLOTS - 6) + 5, g:value())
  end,
  function(g)
    if g.results then return ("c = %s %% 83"):format(g:expr()) end
    return ("%s, %s = helper(%s, %s)"):format("a", g:pick {"b", "t.x"},
      g:value(), g:value())
  end,
}

local lines = random.Gen.sequence

local function in_loop(g, depth, counter)
  g.loops = g.loops + 1
  local text = lines(g, depth, counter)
  g.loops = g.loops - 1
  return text
end

function Gen:statement(depth)
  local k = depth > 0 and self:r(12) or 6 + self:r(6)
  local name = "k" .. depth
  if k <= 3 then
    return ("for %s in cute.range(%s) do\n%s\nend"):format(name, self:limit(),
      in_loop(self, depth - 1, name))
  elseif k == 4 then
    return ("local w = 0 @while cute.lt(w, %s)@ w = w + 1\n%s\n@done@")
      :format(self:limit(), in_loop(self, depth - 1, "w"))
  elseif k <= 6 and depth > 0 then
    local cond, yes = self:cond(), lines(self, depth - 1)
    local no = self:chance(50) and "@else@\n" .. lines(self, depth - 1) or ""
    return ("@if %s@\n%s\n%s\n@end@"):format(cond, yes, no)
  elseif k <= 9 then
    return leave(self, function(g) return g:pick(SIMPLE)(g) end)
  end
  return self:pick(SIMPLE)(self)
end

-- Returns a random program as marked text: a helper with two results, and the
-- body that calls it.
local function program(seed)
  local g = setmetatable({state = seed * 0x9e3779b97f4a7c15 | 1, counters = {},
    places = PLACES, loops = 0, tid = "tid", returns = true}, Gen)
  for _ = 1, 8 do g:r(2) end
  local body, of_helper = {}, {}
  for _ = 1, 4 do body[#body + 1] = g:statement(3) end
  g.results, g.places, g.tid = true, {"x", "y", "c", "t.y"}, "x"
  for _ = 1, 3 do of_helper[#of_helper + 1] = g:statement(2) end
  return [[
  local a, b, c = tid, n, 3
  local t = {x = 1, y = tid * 2, in_it = {z = 4}}
  local helper = @func@(function(x, y)
    local own = x
    do ]] .. table.concat(of_helper, " end do\n") .. [[ end
    own = (own + y) % 59
    return own, x
  end)
  do ]] .. table.concat(body, " end do\n") .. [[ end
  put(0, a) put(1, b) put(2, c) put(3, t.x) put(4, t.y) put(5, t.in_it.z)]]
end

-- Returns the kernel that a text with @ marks stands for.
local function as_kernel(text)
  text = text:gsub("@(%l+) ?([^@]*)@", function(word, rest)
    if word == "break" then return "cute.break_if(" .. rest .. ")" end
    if word == "leave" then return "cute.return_if(" .. rest .. ")" end
    if word == "if" then return "cute.when(" .. rest .. ", function()" end
    if word == "else" then return "end, function()" end
    if word == "while" then
      return "cute.loop(function() return " .. rest .. " end, function()"
    end
    return word == "func" and "cute.func" or "end)"
  end)
  return "local cute = require 'cute'\nreturn function(out, n)\n  local tid = "
    .. "cute.arch.thread_idx()\n  local function put(i, v) out[{tid, i}] = v "
    .. "end\n" .. text .. "\nend"
end

local function as_plain(text)
  text = text:gsub("@(%l+) ?([^@]*)@", function(word, rest)
    if word == "break" then return "if " .. rest .. " then break end" end
    if word == "leave" then
      -- finds the comma between the condition and the results
      local depth, at = 0, nil
      for i, c in rest:gmatch "()(.)" do
        if c == "(" then depth = depth + 1 elseif c == ")" then
          depth = depth - 1
        elseif c == "," and depth == 0 then
          at = i
          break
        end
      end
      return ("if %s then return %s end"):format(rest:sub(1, (at or 0) - 1),
        at and rest:sub(at + 1) or "")
    end
    if word == "if" then return "if " .. rest .. " then" end
    if word == "while" then return "while " .. rest .. " do" end
    if word == "func" then return "" end
    return word == "else" and "else" or "end"
  end)
  return "local cute = require 'cute'\nreturn function(out, n, tid)\n  local "
    .. "function put(i, v) out[tid * " .. SLOTS .. " + i] = v end\n" .. text
    .. "\nend"
end

local N = 32 * SLOTS

local function on_host(text, n)
  local out = {}
  for i = 0, N - 1 do out[i] = -1 end
  local f = assert(load(as_plain(text), "=plain"))()
  for tid = 0, 31 do f(out, n, tid) end
  return table.move(out, 0, N - 1, 1, {})
end

local function call_of(text, n)
  local flat = cute.full({N}, -1, cute.i32)
  local out = cute.make_tensor(flat.iterator,
    cute.make_layout({32, SLOTS}, {SLOTS, 1}))
  local f = assert(load(as_kernel(text), "=kernel"))()
  return cute.kernel("k", f)(out, n), flat
end

local function simulated(call, out)
  call:launch {grid = 1, block = 32, device = "sim:sm_80"}
  local got = {}
  for i = 0, N - 1 do got[i + 1] = out[i] end
  return got
end

describe("early exits of random loops, branches and helpers", function()
  local most = tonumber(os.getenv "CUTELUA_SEEDS") or 50
  for first = 1, most, 10 do
    it(("is as in plain Lua, seeds from %d"):format(first)
       .. support.long(first), function()
      local runs, wants, wheres, breaks = {}, {}, {}, 0
      for seed = first, math.min(first + 9, most) do
        local text, n = program(seed), seed % 6
        local where = ("seed %d\n%s"):format(seed, as_kernel(text))
        breaks = breaks + select(2, text:gsub("@break", ""))
        local made, call, out = pcall(call_of, text, n)
        assert.is_true(made, tostring(call) .. "\n" .. where)
        local ok, got = pcall(simulated, call, out)
        assert.is_true(ok, tostring(got) .. "\n" .. where)
        local want = on_host(text, n)
        assert.same(want, got, where)
        runs[#runs + 1] = {text = call:trace {block = 32}:cuda "sm_80",
          grid = 1, block = 32, args = {("<i4"):pack(-1):rep(N),
                                        ("<i4"):pack(n)}}
        wants[#wants + 1], wheres[#wheres + 1] = want, where
      end
      assert.is_true(breaks > 20)
      if not cudahost.compiler() then return pending "needs a C++ compiler" end
      for i, result in ipairs(cudahost.run(runs)) do
        local got = {("<" .. ("i4"):rep(N)):unpack(result[1])}
        assert.same(wants[i], table.move(got, 1, N, 1, {}), wheres[i])
      end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
