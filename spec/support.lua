--- Helpers for all specs: they check errors and texts, run the program, and
-- make temporary folders.
local assert = require "luassert"

local support = {}

support.program = os.getenv "CUTELUA" or "build/cutelua"
-- The interpreter for child processes, the one that the spec itself runs under:
-- stock Lua, or a cutelua with sanitizers.
support.lua = os.getenv "CUTELUA_LUA" or "lua5.4"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

--- Reports whether to skip case i. Under sanitizers, only every nth of many
-- similar cases runs: sanitizers look for faults in our C code, while the run
-- without sanitizers checks the results.
---@param i integer the number of a case
---@param n integer
---@return boolean
function support.skipped(i, n)
  return os.getenv "CUTE_SANITIZED" ~= nil and i % n ~= 0
end

--- Returns the tag of case i: " #long", with which only `make test-all` runs a
-- test, or "" for every nth of many similar cases. Without n, only the first
-- case gets "".
---@param i integer the number of a case
---@param n? integer
---@return string
function support.long(i, n)
  return i % (n or math.maxinteger) == 1 and "" or " #long"
end

--- Returns the path of a new folder; the caller removes it with support.remove.
function support.folder()
  local p <close> = io.popen "mktemp -d"
  return (p:read "l")
end

function support.remove(path)
  assert(path:find "^/tmp/" or path:find "/tmp%.")
  os.execute("rm -rf " .. quote(path))
end

--- Returns a path that does not depend on the current folder.
---@param path string
---@return string
function support.absolute(path)
  if path:sub(1, 1) == "/" then return path end
  return support.exec {"pwd"}:gsub("%s+$", "") .. "/" .. path
end

function support.read(path)
  local f <close> = io.open(path, "rb")
  return f and f:read "a"
end

function support.write(path, ...)
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(...))
  return path
end

--- Calls f and discards its output. Errors of f are raised.
---@param f function
function support.quietly(f)
  local stdout <const>, output <const> = io.stdout, io.output()
  local show <const> = print
  local sink <close> = assert(io.open("/dev/null", "w"))
  rawset(io, "stdout", sink)
  rawset(_G, "print", function() end)
  io.output(sink)
  local ok, why = pcall(f)
  rawset(io, "stdout", stdout)
  rawset(_G, "print", show)
  io.output(output)
  if not ok then error(why, 0) end
end

--- Calls f(...) without printing its notes. Returns the notes as a list, then
-- the results of f. Errors of f are raised.
---@param f function
---@return string[] said
function support.told(f, ...)
  local words = require "cute.lang.report"
  local said <const>, tell <const> = {}, words.tell
  words.tell = function(text) said[#said + 1] = text end
  local results = table.pack(pcall(f, ...))
  words.tell = tell
  if not results[1] then error(results[2], 0) end
  return said, table.unpack(results, 2, results.n)
end

--- Returns the simulator's report from the results of a launch with faults =
-- "return", which differ if there are faults: support.report(k(x):launch
-- {...}).
function support.report(ok, message, report)
  return ok or report or error(message, 0)
end

--- Reports whether two values are equal, or are both NaN.
function support.same(a, b) return a == b or a ~= a and b ~= b end

--- Returns x rounded to f32 by string.pack, independently of our conversions.
---@param x number
function support.f32(x) return (string.unpack("f", string.pack("f", x))) end

--- Returns a text with the nth occurrence of `from` replaced.
---@param text string
---@param from string
---@param nth integer
---@param to string
function support.change(text, from, nth, to)
  local at = 0
  for _ = 1, nth do
    at = text:find(from, at + 1, true)
    assert(at, from)
  end
  return text:sub(1, at - 1) .. to .. text:sub(at + #from)
end

--- Returns a table that keeps assignments made inside loops and branches of a
-- kernel. The tracer would treat an ordinary Lua table as state of the kernel,
-- so a coroutine keeps the values.
---@return table
function support.recorder()
  local kept = coroutine.wrap(function(_, k, v)
    local list = {}
    while true do
      if v ~= nil then list[k] = v end
      _, k, v = coroutine.yield(list[k])
    end
  end)
  return setmetatable({}, {__index = kept, __newindex = kept})
end

--- Returns the nonempty lines of a text.
---@param text string
---@return string[]
function support.lines(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

--- Returns the message of the error that f(...) raises, without its position,
-- and the spec's line that it names. The message must have at most five lines,
-- apart from the tensors that it lists.
---@param f function
---@return string text
---@return integer line
function support.message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  local own = type(f) == "function" and
    debug.getinfo(f, "S").source:find "_spec%.lua$" and "_spec" or ""
  local line, text = tostring(err):match(
    "^[^\n]-spec/[%w_/]+" .. own .. "%.lua:(%d+): (.*)$")
  assert.is_truthy(line, "no position in: " .. tostring(err))
  local _, more = text:gsub("\n  %u ptr%[[^\n]*", ""):gsub("\n", "")
  assert.is_true(more < 5, "more than five lines: " .. text)
  return text, tonumber(line)
end

--- Asserts that f(...) raises an error whose message contains this text, or all
-- texts of a list.
---@param want string | string[]
---@param f function
function support.raises(want, f, ...)
  local got = support.message(f, ...)
  for _, text in ipairs(type(want) == "table" and want or {want}) do
    assert.is_truthy(got:find(text, 1, true),
      ("%q expected in %q"):format(text, got))
  end
end

--- Returns the result of f, or nil if f raises an error. The error must be one
-- of cutelua's, with a kind.
function support.try(f, ...)
  local ok, v = pcall(f, ...)
  if ok then return v end
  assert.is_truthy(tostring(v):find("%[[%w-]+%]"), tostring(v))
  assert.is_falsy(tostring(v):find("[internal]", 1, true), tostring(v))
  return nil
end

--- Runs a command (a list of words). Returns its standard output, its standard
-- error and its exit code (128 + n for signal n).
---@param words string[]
---@param opt? {stdin: string?, env: table<string,string>?, cwd: string?}
function support.exec(words, opt)
  opt = opt or {}
  -- os.tmpname starts no process; making and removing a folder would start
  -- two.
  local input, output, errors = os.tmpname(), os.tmpname(), os.tmpname()
  support.write(input, opt.stdin or "")
  local line = {}
  if opt.cwd then line[1] = "cd " .. quote(opt.cwd) .. " &&" end
  line[#line + 1] = "env"
  for name, value in pairs(opt.env or {}) do
    line[#line + 1] = quote(name .. "=" .. value)
  end
  for _, word in ipairs(words) do line[#line + 1] = quote(word) end
  local _, how, code = os.execute(("%s <%s >%s 2>%s"):format(
    table.concat(line, " "), input, output, errors))
  local out, err = support.read(output), support.read(errors)
  for _, name in ipairs {input, output, errors} do os.remove(name) end
  return out, err, how == "signal" and 128 + code or code
end

--- Runs a command, which must succeed; returns its standard output. If it
-- fails, raises an error that contains what the command printed.
---@param words string[]
---@param opt? {stdin: string?, env: table<string,string>?, cwd: string?}
---@return string
function support.must(words, opt)
  local out, err, code = support.exec(words, opt)
  assert(code == 0, table.concat(words, " ") .. ": " .. err .. out)
  return out
end

--- whether the header files of Lua are installed
support.lua_headers = support.read "/usr/include/lua5.4/lua.h" ~= nil

--- Runs the interpreter with these arguments and the module paths of this
-- process.
---@param words string[]
---@param env? table<string,string>
function support.run_lua(words, env)
  local all = {LUA_PATH = package.path, LUA_CPATH = package.cpath}
  for name, value in pairs(env or {}) do all[name] = value end
  return support.exec({support.lua, table.unpack(words)}, {env = all})
end

--- Runs the program under test with these arguments.
function support.run(words, opt)
  return support.exec({support.program, table.unpack(words)}, opt)
end

local function hexadecimal(text)
  return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

--- Runs the program on a pseudo terminal. A step is {send, wait, pause}: the
-- text to type, the text to wait for before the next step, and the milliseconds
-- to wait before typing. Returns the terminal's output without carriage
-- returns, and the exit code.
---@param steps table[]
---@param env? table<string,string>
---@param words? string[] its arguments
---@param cwd? string its folder
function support.terminal(steps, env, words, cwd)
  local lines = {}
  for i, step in ipairs(steps) do
    lines[i] = ("%s %s %d\n"):format(hexadecimal(step[1]),
      hexadecimal(step[2]), step[3] or 0)
  end
  local here = os.getenv "PWD" .. "/"
  local program = support.program:find "^/" and support.program
    or here .. support.program
  local out, err, code = support.exec({"python3",
    here .. "spec/program/terminal.py", program, table.unpack(words or {})},
    {stdin = table.concat(lines), env = env, cwd = cwd})
  assert(err == "", err)
  assert(not out:find("(nothing more came)", 1, true), out)
  return (out:gsub("\r", "")), code
end

return support
-- SPDX-License-Identifier: MIT
