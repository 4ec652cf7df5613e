-- Tests notes on variables outside of a kernel that the kernel assigns by
-- mistake: locals of the script, and globals.
local cute = require "cute"
local support = require "spec.support"

-- Runs a script in its own environment. With `failure`, the script must raise
-- an error that matches this pattern. Returns the messages on standard error.
local runs = 0
local function told(text, failure)
  -- A note is printed once for each kernel name, so each run uses a new
  -- name.
  runs = runs + 1
  local env = setmetatable({cute = cute, x = cute.ones({32}, cute.f32),
                            y = cute.zeros({32}, cute.f32)}, {__index = _G})
  local script = ([[
local function launch(f, ...)
  cute.kernel("k%d", f)(x, y, ...):launch {grid = 1, block = 32, device = "sim"}
end
]]):format(runs) .. text
  local said, ok, why = support.told(pcall,
    assert(load(script, "@stray.lua", "t", env)))
  if failure then assert.matches(failure, why) else assert.is_true(ok, why) end
  return said
end

local function note(line, text)
  return ("cutelua: note: kernel k%d: stray.lua:%d: %s"):format(runs, line,
    text)
end

local ONCE = "'%s' is a local of the script: the kernel changed it once, on "
  .. "the host, when it was traced, not in each thread or launch; declare "
  .. "it in the kernel, or count in a tensor by cute.arch.atomic_add"
local UNSEEN = "'%s' is a local of the script, which keeps its value: what "
  .. "the threads assign to it does not reach the script; count in a tensor by "
  .. "cute.arch.atomic_add"
local TRACED = "the kernel assigns a traced value to '%s', a local of the "
  .. "script, where no later code can use it; declare the local in the kernel"
local GLOBAL = "the kernel assigns the global '%s', which it shares with the "
  .. "script and all kernels; write `local %s = ...`"

describe("a note tells of a kernel that assigns", function()
  it("a number in a local of the script", function()
    local said = told [[
local count = 0
launch(function(a, b)
  local t = cute.arch.thread_idx()
  b[t] = a[t]
  count = count + 1
end)
]]
    assert.same({note(8, ONCE:format "count")}, said)
    said = told [[
local count = 0
launch(function(a, b)
  local t = cute.arch.thread_idx()
  cute.when(t:lt(3), function()
    count = count + 1
    b[t] = a[t]
  end)
end)
]]
    assert.same({note(8, UNSEEN:format "count")}, said)
  end)

  it("a traced value in a local of the script", function()
    local said = told [[
local sum = 0.0
launch(function(a, b)
  local t = cute.arch.thread_idx()
  sum = sum + a[t]
  b[t] = sum
end)
]]
    assert.same({note(7, TRACED:format "sum")}, said)
  end)

  it("a global, in the body or in a function of it", function()
    local said = told [[
launch(function(a, b)
  local t = cute.arch.thread_idx()
  acc = a[t]
  b[t] = acc * 2
end)
]]
    assert.same({note(6, GLOBAL:format("acc", "acc"))}, said)
    -- A traced loop does not carry a global that the kernel creates, so the
    -- trace raises an error.
    said = told([[
launch(function(a, b, n)
  local t = cute.arch.thread_idx()
  acc = 0.0
  for i in cute.range(n) do acc = acc + a[i] end
  b[t] = acc
end, 4)
]], "%[out%-of%-region%]")
    assert.same({note(6, GLOBAL:format("acc", "acc"))}, said)
    said = told [[
launch(function(a, b)
  local t = cute.arch.thread_idx()
  cute.when(t:lt(3), function()
    twice = a[t] * 2
    b[t] = twice
  end)
end)
]]
    assert.same({note(7, GLOBAL:format("twice", "twice"))}, said)
  end)

  it("not what may be meant", function()
    for _, text in ipairs {
      -- No notes: locals of the kernel, even if an inner function assigns them.
      [[
launch(function(a, b, n)
  local t, sum, count = cute.arch.thread_idx(), 0.0, 0
  for i in cute.range(n) do sum = sum + a[i] end
  cute.when(t:lt(3), function() sum = sum * 2 end)
  count = count + 1
  b[t] = sum + count
end, 4)
]],
      -- No notes: a result that the script keeps, a memo, fields of tables.
      [[
local seen, memo, calls = nil, nil, {n = 0}
launch(function(a, b)
  local t = cute.arch.thread_idx()
  seen = cute.size(a)
  memo = memo or {}
  memo[1] = 5
  calls.n = calls.n + 1
  calls[calls.n] = "call"
  b[t] = a[t]
end)
]],
      -- No notes: globals that exist already, or are tables or functions.
      [[
known = 1
launch(function(a, b)
  local t = cute.arch.thread_idx()
  known = 2
  cache = cache or {}
  function helper(v) return v * 2 end
  b[t] = helper(a[t])
end)
]],
      -- No note: a local of the script that a loop carries counts as a local of
      -- the kernel.
      [[
local sum = 0.0
launch(function(a, b, n)
  local t = cute.arch.thread_idx()
  for i in cute.range(n) do sum = sum + a[i] end
  b[t] = sum
end, 4)
assert(y(0) == 4 and sum == 0)
]]} do
      assert.same({}, told(text))
    end
  end)
end)

describe("the line of an assignment", function()
  local bytecode = require "cute.lang.bytecode"

  it("is found behind many lines and instructions", function()
    local text = {"local n = 0", "return function(t)"}
    for i = 1, 200 do
      text[#text + 1] = ("  t[%d] = %d %s"):format(i, i, ("\n"):rep(i % 300))
    end
    text = table.concat(text, "\n")
    local _, before = text:gsub("\n", "\n")
    text = text .. "\n  n = n + 1\n  G = 1\nend"
    local f = assert(load(text, "@far.lua"))()
    local n = 1
    for k = 1, 2 do
      local name = debug.getupvalue(f, k)
      if name == "n" then n = k end
    end
    assert.equal(before + 2, bytecode.assigned(f, n))
    assert.equal(before + 3, bytecode.assigned(f, 3 - n, "G"))
    assert.is_nil(bytecode.assigned(f, 3 - n, "H"))
    local bare = load(string.dump(f, true))
    assert.is_nil(bytecode.assigned(bare, n))
  end)
end)
-- SPDX-License-Identifier: MIT
