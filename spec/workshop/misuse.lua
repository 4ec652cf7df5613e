-- Mistakes of users of the workshop, and the expected messages.
-- spec/workshop/misuse_spec.lua runs them natively, spec/web/asks_spec.lua
-- under node.
local assert = require "luassert"

local misuse = {}

local CUTE = 'local cute = require "cute"\n'

-- Returns a script with a kernel of one thread that has this body.
local function kernel(body, options)
  return CUTE .. [[local k = cute.kernel("k", function(x)
  ]] .. body .. [[

end)
k(cute.zeros({8}, cute.f32)):launch {grid = 1, block = 1]]
    .. (options or "") .. "}"
end

local function run(text, expected)
  expected.ask, expected.text = "run", text
  return expected
end

local function ask(name, expected)
  expected.ask = name
  return expected
end

local RUNAWAY = "this line traced over 131072 operations: Lua loops are "
  .. "unrolled, and a `while` on a traced boolean never ends"
local SMEM = "shared memory of %d bytes is over the budget of any GPU, 232448 "
  .. "bytes (227 KiB)"

-- Requests with expected fields of the responses: says (part of error.message),
-- line and kind of the error, code, unfinished, out (the output).
misuse.list = {
  -- texts
  run("local x = = 1", {says = "unexpected symbol near '='", line = 1}),
  run("local a <const> = 1\na = 2", {line = 2,
    says = "attempt to assign to const variable 'a'"}),
  run("goto x", {says = "no visible label 'x' for <goto> at line 1",
                 line = 1}),
  run("print(", {says = "unexpected symbol near <eof>", line = 1}),
  run("\27Lua", {says = "this is compiled Lua: the workshop runs source text"}),
  ask("run", {says = "the script's text is missing"}),
  run("", {code = 0, out = ""}),
  run("#!/usr/bin/env cutelua\nprint(arg[0], #arg, ...)", {
    words = {"a", "b"}, name = "../a\0b/c.lua", out = "c.lua\t2\ta\tb\n"}),

  -- errors
  run("error {1}", {says = "error object is a table value", line = 1}),
  run("error()", {says = "error object is a nil value", line = 1}),
  run("error(setmetatable({}, {__tostring = function() return 'mine' end}))",
    {says = "mine", line = 1}),
  run("\nlocal x\nprint(x.y)", {line = 3,
    says = "attempt to index a nil value (local 'x')"}),
  run("coroutine.wrap(function() error 'in one' end)()", {line = 1,
    says = "in one"}),
  run("local function f(n) return 1 + f(n) end\nf(1)", {line = 1,
    says = "stack overflow"}),
  run("local t = setmetatable({}, {__index = function(t, k)\n"
    .. "  return t[k + 1] end})\nprint(t[1])", {line = 2,
    says = "C stack overflow"}),
  run("local s = ('x'):rep(1 << 40)", {line = 1,
    says = "resulting string too large"}),
  run("error('\\xff bad')", {says = "\\xff bad", line = 1}),
  run("print '\\xff\\xfe ok'", {out = "\u{fffd}\u{fffd} ok\n"}),
  run("require 'nothing.here'", {line = 1,
    says = "module 'nothing.here' not found"}),
  run("print 'a'\nos.exit(3)\nprint 'b'", {code = 3, out = "a\n"}),
  run("pcall(os.exit, 7)\nprint 'b'", {code = 7, out = ""}),
  run("xpcall(os.exit, function() print 'a' os.exit(1) end, 0)\nprint 'b'",
      {code = 0, out = ""}),
  run([[
    local function each(f) for _, x in ipairs {1, 2} do f(x) end end
    local co = coroutine.create(function()
      each(function(x)
        pcall(table.sort, {x, 2, 3}, function() pcall(pcall, os.exit, 5) end)
      end)
    end)
    print(coroutine.resume(co))
    print 'b']], {code = 5, out = ""}),
  run([[
    print(pcall(error, 'x'), pcall(os.time), (pcall()))]], {line = 1,
    says = "bad argument #1 to 'pcall' (value expected)"}),
  run([[
    print(pcall(error, 'x'))
    print(xpcall(error, function(e) return e .. 'y' end, 'x'))
    print(coroutine.resume(coroutine.create(error), 'x'))
    print((pcall(xpcall, print)))]],
    {out = "false\tx\nfalse\txy\nfalse\tx\nfalse\n"}),

  -- A script overwrites globals. The next script must have the original ones.
  run([[string.format, string.match, string.gsub, table.concat = nil
    pairs, type, tostring, print, error, load, arg = nil
    os, io = nil
    local s = getmetatable("")
    s.__index = nil]], {code = 0}),
  run("print(#arg, ('%d'):format(1))", {out = "0\t1\n"}),
  run("setmetatable(_G, {__index = function(_, k) error(k, 2) end,\n"
    .. "  __newindex = error})\nprint(nothing)", {says = "nothing", line = 3}),
  run("print(nothing)", {out = "nil\n"}),
  run("debug.sethook(function() error 'hook' end, '', 100)\n"
    .. "for _ = 1, 1e6 do end", {says = "hook", line = 1}),
  run("x = 1 for _ = 1, 1e6 do end print(x)", {out = "1\n"}),
  run("print(x)", {out = "nil\n"}),

  -- Mistakes in drawings and kernels.
  run(CUTE .. "cute.draw(cute.make_layout({100000, 10000}))", {line = 2,
    kind = "limit", says = "cute.draw: 100000 x 10000 = 1000000000 cells are "
      .. "too many; the limit is 32768"}),
  run(CUTE .. "for _ = 1, 65 do cute.draw(cute.make_layout {2}) end", {
    line = 2, kind = "limit",
    says = "cute.draw: a run can show at most 64 pictures"}),
  run(kernel [[local s = cute.make_smem_tensor(cute.f32, cute.make_layout {
    1 << 31})
  s[0] = x[0] ]], {kind = "smem-budget", says = SMEM:format(1 << 33)}),
  run(kernel "while true do x[0] = x[0] + 1 end", {line = 3,
    kind = "runaway-trace", says = RUNAWAY}),
  run(kernel "while x[0] do x[0] = x[0] + 1 end", {line = 3,
    kind = "traced-in-lua", says = "the traced value 'x[0]' is always true in "
      .. "Lua's if, and, or, not, while, even when it is 0"}),
  run(kernel "x[cute.arch.thread_idx() + 8] = 1", {kind = "kernel-fault",
    line = 5, says = "simulator: kernel k: 1 fault"}),
  run(kernel "x[8] = 1", {kind = "bad-argument", line = 3,
    says = "coordinate 8 of the tensor is outside of the 8 elements"}),
  run(kernel("x[0] = 1", ', device = "gpu"'), {kind = "no-gpu", line = 5,
    says = "kernel k: the workshop has only the simulator: a page cannot reach "
      .. "a GPU"}),
  run(CUTE .. 'print(cute.device "gpu")', {out = "nil\tthe workshop has only "
    .. "the simulator: a page cannot reach a GPU [no-gpu]\n"}),

  -- Mistakes at the prompt and in other requests.
  ask("prompt", {text = "x +", unfinished = true}),
  ask("prompt", {text = "y.z", line = 1,
    says = "attempt to index a nil value (global 'y')"}),
  ask("prompt", {text = "os.exit(2)", code = 2}),
  ask("prompt", {says = "prompt: text = nil: a string is needed"}),
  ask("costs", {kernel = 1,
    says = "nothing was launched yet: run a script first"}),
  ask("picture", {number = "x",
    says = 'picture: number = "x": an integer is needed'}),
  ask("about", {says = "about: name = nil: a string is needed"}),
  ask("npy", {name = "nope.npy", kind = "io",
    says = "cannot open nope.npy: No such file or directory"}),
  ask("bogus", {kind = "unknown-name", says = "no ask 'bogus': there are "
    .. "about complete costs hello npy picture prompt "
    .. "run syntax timeline"}),
}

local ANSWER = {says = true, line = true, kind = true, code = true, out = true,
                unfinished = true}

--- Returns the request of a row.
---@param row table
---@return table
function misuse.request(row)
  local request = {}
  for name, v in pairs(row) do
    if not ANSWER[name] then request[name] = v end
  end
  return request
end

--- Returns a row's title.
---@param row table
---@return string
function misuse.name(row)
  local what = tostring(row.text or row.name or row.number):gsub("%c+", " ")
  return ("%s %s"):format(row.ask, what:sub(1, 48))
end

--- Checks that a response has the fields that its row expects.
---@param row table
---@param answer table
---@param out string what was printed
function misuse.check(row, answer, out)
  local e = answer.error or {}
  assert.equal(row.says, e.message)
  if row.says then
    assert.is_false(answer.ok)
    assert.equal(1, select(2, e.text:gsub("^[^\n]+", "")))
  end
  for _, name in ipairs {"line", "kind"} do
    if row[name] then assert.equal(row[name], e[name]) end
  end
  if row.code then assert.same({row.code, row.code == 0}, {answer.code,
                                                           answer.ok}) end
  if row.unfinished then assert.is_true(answer.unfinished) end
  if row.out then assert.equal(row.out, out) end
end

return misuse
-- SPDX-License-Identifier: MIT
