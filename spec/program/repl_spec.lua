local fake = require "spec.gpu.fake"
local repl = require "cutelua.program.repl"
local source = require "cute.lang.source"
local support = require "spec.support"

describe("repl.globalize", function()
  local function same(text) assert.equal(text, repl.globalize(text)) end
  local function to(want, text)
    assert.equal(want, repl.globalize(text))
  end

  it("makes locals outside of blocks global, columns kept", function()
    to("      x = 1", "local x = 1")
    to("      a, b = 1, 2", "local a, b = 1, 2")
    to("      x = nil", "local x")
    to("      a, b = nil;       c = 3", "local a, b; local c = 3")
    to("      function f() local y = 1 end",
      "local function f() local y = 1 end")
    to("      k         = 5", "local k <const> = 5")
    to("x = 1       y = 2", "x = 1 local y = 2")
    to("      s = [[\nlocal z = 1]]       t = 'local u'",
      "local s = [[\nlocal z = 1]] local t = 'local u'")
    to("if x then local y = 1 end       z = 2",
      "if x then local y = 1 end local z = 2")
    to("repeat local y = 1 until y       z = 2",
      "repeat local y = 1 until y local z = 2")
    to("for i = 1, 2 do local y = i end       z = t.local_ == 2",
      "for i = 1, 2 do local y = i end local z = t.local_ == 2")
  end)

  it("leaves everything else alone", function()
    same "do local x = 1 end"
    same "local x <close> = f()"
    same "return function() local x end"
    same "-- local x = 1"
    same "--[==[ local x = 1 ]] ]==] y = 1"
    same "s = 'it\\'s local x = 1'"
    same "while true do local x = 1 end"
    same "t.local x"
    same "local"
    same "local 5"
    same "s = [[ unfinished local x = 1"
    same "s = \"unfinished local x = 1"
  end)
end)

describe("repl.show", function()
  it("shows tables on one line if they fit", function()
    assert.equal("{8, {8, 8}}", repl.show {8, {8, 8}})
    assert.equal('{1, [true] = 2, a = "x\\ny"}',
      repl.show {1, a = "x\ny", [true] = 2})
    assert.equal("{}", repl.show {})
    assert.equal("{{{{...}}}}", repl.show {{{{{}}}}})
    local t = {}
    t.t = t
    assert.equal("{t = {t = {t = {...}}}}", repl.show(t))
    for i = 1, 100 do t[i] = i end
    assert.truthy(repl.show(t):find("... 68 more", 1, true))
  end)

  it("uses tostring for the rest", function()
    assert.equal("nil", repl.show(nil))
    assert.equal("a\nb", repl.show "a\nb")
    assert.equal("T", repl.show(setmetatable({}, {__tostring = function()
      return "T"
    end})))
  end)
end)

local function say(text)
  return support.run({}, {stdin = text})
end

describe("words of the prompt", function()
  it("leaves at exit and quit, unless the user has such a variable", function()
    for _, word in ipairs {"exit", "quit", " exit ()", "quit();"} do
      local out, err, code = say("1\n" .. word .. "\n2\n")
      assert.equal("1\n", out)
      assert.equal("", err)
      assert.equal(0, code)
    end
    assert.equal("5\n7\n", (say "exit = 5\nexit\nquit = 7\nquit\n"))
    assert.equal(1, select(3, say "error 'no'\nexit\n"))
    local _, err = say "exit(1)\n"
    assert.matches("did you mean os.exit?", err, 1, true)
  end)

  it("prints its help for ?? without a name", function()
    local help = say "help\n"
    for _, text in ipairs {"??", " ? ? ", "???"} do
      assert.equal(help, (say(text .. "\n")))
    end
    assert.matches("`exit` leaves", help, 1, true)
  end)
end)

describe("the prompt without a terminal", function()
  it("prints values, and no prompts", function()
    local out, err, code = say "1 + 1\nx = 5\n\nx, nil\n= x\nf = print\nf()\n"
    assert.equal("2\n5\tnil\n5\n\n", out)
    assert.equal("7\t8\nnil\n", (say "return 7, 8\nnil\n"))
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("takes input of many lines", function()
    assert.equal("6\n3\n", (say [[
local sum = 0
for i = 1, 3 do
  sum = sum + i
end
sum
(function()
  return 3
end)()
]]))
  end)

  it("keeps locals for the next line", function()
    assert.equal("3\n120\n", (say [[
local x <const>, y = 1, 2
x + y
local function fact(n) return n < 2 and 1 or n * fact(n - 1) end
fact(5)
]]))
  end)

  it("continues after errors and reports them by the exit code", function()
    local out, err, code = say "x = 1\nx.y.z = 2\nx = = 3\nprint(x)"
    assert.equal("1\n", out)
    assert.equal(1, code)
    assert.truthy(err:find("a number has no field 'y' [unknown-name]", 1,
                           true))
    assert.truthy(err:find("(prompt):2:1", 1, true))
    assert.truthy(err:find("> 1 | x.y.z = 2", 1, true))
    assert.truthy(err:find("unexpected symbol near '='", 1, true))
  end)

  it("reports values nested too deep, as the program does", function()
    local deep = "x = " .. ("{"):rep(300) .. ("}"):rep(300)
    local out, err = say(deep .. "\nprint(1)")
    assert.equal("1\n", out)
    assert.matches("nested too deep", err, 1, true)
    assert.equal("cutelua: (command line): its contents are nested too deep "
                 .. "[lua]\n",
                 select(2, support.run {"-e", deep}))
    local folder = support.folder()
    support.write(folder .. "/answer.lua", deep)
    out = support.run {"learn", "1", "--check", folder .. "/answer.lua"}
    support.remove(folder)
    assert.matches("nested too deep", out, 1, true)
  end)

  it("names the line of a call that fails, tail calls too", function()
    local _, err = say "function f() error('no', 0) end\nf()\n"
    assert.truthy(err:find("(prompt):2:1 in main chunk", 1, true)
      or err:find("(prompt):1:1 in f", 1, true), err)
  end)

  it("survives errors in printing", function()
    local out, err = say [[
setmetatable({}, {__tostring = function() error "no" end})
7]]
    assert.equal("7\n", out)
    assert.truthy(err:find("no", 1, true))
  end)

  it("has cute, _ and X, makes and redefines kernels", function()
    local out, err, code = say [[
cute.layout "(8,(8,8)):(8,(1,64))"
_ == cute._, X == cute.X
local b = cute.buffer("i32", 32)
local t = cute.make_tensor(b, cute.make_layout({32}))
k = cute.kernel("k", function(m)
  local i = cute.arch.thread_idx()
  m[i] = i * 2
end)
r = k(t):launch {grid = {1}, block = {32}}
b[0], b[31]
k = cute.kernel("k", function(m) m[cute.arch.thread_idx()] = 7 end)
r = k(t):launch {grid = {1}, block = {32}}
b[31]
]]
    assert.equal("", err)
    assert.equal("(8,(8,8)):(8,(1,64))\ntrue\ttrue\n0\t62\n7\n", out)
    assert.equal(0, code)
  end)

  it("reads the source of a kernel that was typed", function()
    local out, err, code = say [[
local t = cute.make_tensor(cute.buffer("i32", 32), cute.make_layout({32}))
k = cute.kernel("k", function(m)
  local i = cute.arch.thread_idx()
  if i == 0 then m[i] = 1 end
end)
k(t):launch {grid = {1}, block = {32}}
print "on"
]]
    assert.truthy(err:find("[traced-in-lua]", 1, true), err)
    assert.truthy(err:find("> 3 |   if i == 0 then", 1, true), err)
    assert.equal("on\n", out)
    assert.equal(1, code)
  end)
end)

describe("the prompt without a terminal", function()
  it("follows a script with -i and has its locals", function()
    local dir = support.folder()
    local path = support.write(dir .. "/s.lua",
      "local answer, _t = 42, {1}\nglobal = 'g'\n")
    local out, err, code = support.run({"-i", path},
      {stdin = "answer\nglobal\n_t\n"})
    assert.equal("42\ng\n{1}\n", out)
    assert.equal("", err)
    assert.equal(0, code)
    support.write(path, "local answer = 42 return answer")
    assert.equal("42\n", (support.run({"-i", path},
      {stdin = "(answer or 42)\n"})))
    support.remove(dir)
  end)

  it("finds modules beside the script, at the prompt in the folder", function()
    local dir = support.folder()
    os.execute("mkdir " .. dir .. "/deep")
    support.write(dir .. "/deep/s.lua", "print((require 'beside'))")
    support.write(dir .. "/deep/beside.lua", "return 'in deep'")
    support.write(dir .. "/beside.lua", "return 'in the folder'")
    assert.equal("in deep\n", (support.run {dir .. "/deep/s.lua"}))
    assert.equal("in deep\nin deep\n", (support.run({"-i", dir
      .. "/deep/s.lua"}, {stdin = "(require 'beside')"})))
    local program = support.program:find "^/" and support.program
      or os.getenv "PWD" .. "/" .. support.program
    for _, env in ipairs {{}, {LUA_PATH = "/nowhere/?.lua"}} do
      assert.equal("in the folder\n", (support.exec({program},
        {stdin = "(require 'beside')", cwd = dir, env = env})))
      assert.equal("in deep\n", (support.exec({program, "deep/s.lua"},
        {cwd = dir, env = env})))
    end
    support.remove(dir)
  end)

  it("ends silently if nothing reads its output", function()
    local out, err = support.exec({"sh", "-c", "'" .. support.program
      .. "' | head -1"}, {stdin = "1\nfor i = 1, 1e5 do print(i) end\n2\n"})
    assert.equal("1\n", out)
    assert.equal("", err)
  end)

  it("has the last value as ans, unless that is the user's", function()
    assert.equal("8\n9\n9\t1\n9\nnil\n9\n5\n6\n5\n", (say [[
8
ans + 1
ans, 1
ans
nil
ans
ans = 5
ans
6
ans
]]))
    assert.equal("3\n", (say "a = 3\nlocal ans = 1\na\n"))
  end)

  it("measures the time of code: %time CODE", function()
    local out, err, code = say [[
n = 0
%time n = n + 1
n > 1000
%time cute.size({4, 4})
ans
k = cute.kernel("mine", function(m) m[cute.arch.thread_idx()] = 1.0 end)
t = cute.zeros({32}, cute.f32)
%time k(t):launch {grid = 1, block = 32, device = "sim"}
t[3]
%time for i = 1, 2 do
  n = i
end
n
]]
    assert.equal("", err)
    assert.equal(0, code)
    local number = "[%d.]+ [num]?s"
    local median = "median " .. number .. ", middle half " .. number .. " to "
      .. number .. "\n"
    local times = "%d+ times[^\n]*; the first took " .. number .. "\n"
    assert.matches("^host  " .. median .. times .. "true\nhost  " .. median
      .. times .. "true\nhost +" .. median .. "kernel mine on simulator "
      .. "%(sm_90a%)  " .. median .. times .. "1.0\nhost  " .. median .. times
      .. "2\n$", out)
  end)

  it("times GPU work by events, in a row of its own #long", function()
    if not fake.there then return end
    fake.build()
    local out, err = support.run({}, {stdin = [[
t = cute.zeros({32}, cute.f32):to "gpu"
%time t:fill(1)
]], env = {LD_LIBRARY_PATH = fake.folder, CUTELUA_NO_CUDA = "0"}})
    fake.remove()
    assert.equal("", err)
    assert.matches("^host  median [^\n]*\nFake  median [^\n]*\n%d+ times", out)
  end)
end)

describe("the prompt without a terminal", function()
  it("reports errors in timed code, and continues", function()
    local out, err, code = say [[
%time
%tim 3
%time x = = 3
%time error "mine"
r = 0
%time r = r + 1 if r == 3 then error "third" end
r
7 % 4
]]
    assert.equal("3\n3\n", out)
    assert.equal(1, code)
    for _, want in ipairs {"%time CODE: the code is missing [bad-argument]\n",
        "no %tim; the prompt has %time CODE, which measures how long code "
        .. "takes "
        .. "[unknown-name]\n", "unexpected symbol near '='", "mine [lua]\n",
        "third [lua]\n"} do
      assert.truthy(err:find(want, 1, true), want .. err)
    end
  end)

  it("shows the source of functions: name?? #long", function()
    local out, err = say [[
function f(x)  -- a comment
  return x
end
f??
??f
t = {inner = {g = f}}
t.inner.g??
f?
k = cute.kernel("k", function(m)
  m[0] = 1.0
end)
k??
string.byte??
cute.size??
cute.arch.popc??
x??
load("return function() return '\27[2J' end")()??
]]
    local f = "-- (prompt):1:1\nfunction f(x)  -- a comment\n  return x\nend\n"
    assert.equal(f .. f .. f .. "f is a function of yours: f?? shows it\n"
      .. "-- (prompt):3:1\nk = cute.kernel(\"k\", function(m)\n  m[0] = 1.0\n"
      .. "end)\nstring.byte: a function of Lua itself, in C\n",
      out:match "^(.-in C\n)")
    for _, want in ipairs {"\ncute.size: a function of C\n"
        .. "cute.size(x, modes...)\n",
        "-- cute.arch.bits:%d+\n%-%-%- Returns the number",
        "\nfunction bits.popc(value)", "\nx: no function or kernel has that "
        .. "name\n"} do
      assert.truthy(out:find(want, 1, not want:find "%%"), want .. out)
    end
    assert.truthy(err:find("unexpected symbol near '?'", 1, true), err)
  end)

  it("shows the source of a file's function, or that it is gone",
     function()
    local dir = support.folder()
    local path = support.write(dir .. "/s.lua", "-- Adds.\n--- it does\n"
      .. "local function add(a, b)\n  return a + b -- '\27[2J'\nend\n")
    assert.equal("-- s.lua:3\n-- Adds.\n--- it does\nlocal function add(a, b)\n"
      .. "  return a + b -- '\\x1b[2J'\nend\n", (support.run({"-i", path},
      {stdin = "add??\n"})))
    assert.equal("add: the source of this function is not there: s.lua:3\n",
      (support.run({"-i", path},
        {stdin = ("os.remove '%s'\nadd??\n"):format(path)}):gsub("^true\n",
                                                                 "")))
    support.remove(dir)
  end)

  it("keeps the text of each input", function()
    local p = repl.new()
    p:eval "x = 1"
    p:eval "function f()\n  return 2\nend"
    local info = debug.getinfo(p.env.f, "S")
    assert.equal("=(prompt):2", info.source)
    assert.equal("  return 2", source.line(info.source, 2))
    assert.equal(repl.source, source.text)
  end)
end)

describe("the prompt on a terminal", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function talk(steps, env)
    env = env or {}
    env.TERM = env.TERM or "xterm"
    env.XDG_STATE_HOME = env.XDG_STATE_HOME or dir
    table.insert(steps, 1, {"", "> "})
    return support.terminal(steps, env)
  end

  it("edits lines, continues on the next line, prints values", function()
    local out, code = talk {
      {"x = 4O", "4O"}, {"\b2\n", "> "}, {"x\n", "42\r\n> "},
      {"t = {1,\n", ">> "}, {"2}\n", "> "}, {"#t\n", "2\r\n> "},
      {"\4", ""}}
    assert.truthy(out:find("help", 1, true))
    assert.truthy(out:find("> x\n42\n", 1, true))
    assert.truthy(out:find("> #t\n2\n", 1, true))
    assert.equal(0, code)
  end)

  it("recalls earlier input, whole, also in the next session", function()
    talk {{"y = {1,\n", ">> "}, {"  5}\n", "> "}, {"y\n", "{1, 5}\r\n> "},
      {"\4", ""}}
    assert.equal("y = {1,\\n  5}\ny\n",
      support.read(dir .. "/cutelua/history"))
    local out = talk {{"\27[A\27[A\n", "5}\r\n> "},
      {"y[2] + 100\n", "105\r\n> "}, {"\4", ""}}
    assert.truthy(out:find("105", 1, true))
    local list <close> = io.popen("ls " .. dir .. "/cutelua")
    assert.equal("history\n", list:read "a")
  end)

  it("keeps an input of many lines as one entry, also when pasted", function()
    local out = talk {{"f = function(x)\n", ">> "}, {"  return x + 1\n", ">> "},
      {"end\n", "> "}, {"f(1)\n", "2\r\n> "}, {"f(1)\n", "2\r\n> "},
      {"\27[A\27[A\8\8\8end, f(2)\n", "f(2)\r\n> "},
      {"f\n", ":1\r\n> "}, {"\4", ""}}
    assert.truthy(out:find("  return x + 1", 1, true))
    assert.equal("f = function(x)\\n  return x + 1\\nend\nf(1)\n"
      .. "f = function(x)\\n  return x + 1\\nend, f(2)\nf\n",
      support.read(dir .. "/cutelua/history"))
  end)

  it("keeps no entry that its search would take seconds for #long", function()
    local long = "#'" .. ("a"):rep(4094) .. "'"
    talk {{long .. "\n", "\n4094\r\n> "}, {"1 + 1\n", "2\r\n> "},
      {"\4", ""}}
    assert.equal("1 + 1\n", support.read(dir .. "/cutelua/history"))
    support.write(dir .. "/cutelua/history", long, "\n", "7\n")
    talk {{"\27[A\27[A\n", "7\r\n> "}, {"\18bcdefgh\3", "^C\r\n> "},
      {"\4", ""}}
  end)

  it("stops a running chunk on Ctrl-C and keeps earlier values", function()
    local out, code = talk {
      {"z = 7\n", "> "}, {"z = 9 print(8) while true do end\n", "8\r\n"},
      {"\3", "chunk\r\n> "}, {"z\n", "9\r\n> "}, {"\4", ""}}
    assert.truthy(out:find("interrupted\n  (prompt):2:1", 1, true))
    assert.equal(0, code)
  end)

  it("drops an input on Ctrl-C", function()
    local out = talk {{"w = 1\n", "> "}, {"w = {2,\n", ">> "},
      {"3\3", "> "}, {"w\n", "1\r\n> "}, {"w = 5\3", "> "},
      {"w + 1\n", "2\r\n> "}, {"\4", ""}}
    assert.truthy(out:find("> w\n1\n", 1, true))
    assert.truthy(out:find("> w + 1\n2\n", 1, true))
  end)

  it("needs no terminal database", function()
    local out, code = talk({{"1 + 1\n", "2\r\n> "}, {"x = 5\3", "\r\n> "},
      {"print 'on' while true do end\n", "\non\r\n"}, {"\3", "\r\n> "},
      {"f = {\n", ">> "}, {"\3", "\r\n> "}, {"x, f\n", "nil\tnil\r\n> "},
      {"\4", ""}},
      {TERM = "no-such-terminal"})
    assert.truthy(out:find("2\n> ", 1, true))
    assert.equal(0, code)
    assert.is_nil(out:find("terminal", 1, true))
  end)

  it("works if no history can be written", function()
    local out, code = talk({{"1 + 1\n", "2\r\n> "}, {"\4", ""}},
      {XDG_STATE_HOME = "/proc/none"})
    assert.truthy(out:find("2\n> ", 1, true))
    assert.equal(0, code)
  end)

  it("takes letters beyond ASCII", function()
    local out = talk({{"#'é'\n", "2\r\n> "}, {"\4", ""}},
      {LC_ALL = "C.UTF-8"})
    assert.truthy(out:find("2\n> ", 1, true))
  end)

  it("accepts them in the locale C, and without a locale", function()
    for _, locale in ipairs {"C", "POSIX"} do
      local out = talk({{"x = '日é'\n", "> "}, {"#x\n", "5\r\n> "},
        {"x\n", "é\r\n> "}, {"\4", ""}}, {LC_ALL = locale})
      assert.truthy(out:find("x = '日é'", 1, true), out)
      assert.truthy(out:find("\n日é\n", 1, true), out)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
