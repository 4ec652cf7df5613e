--- Runs the program with hostile command lines, files and environments: options
-- with invalid numbers, scripts that are not text, damaged PTX and data files,
-- paths where nothing can be written. Each run must end in time and without a
-- signal. A run that fails must print a sentence that names no internal part of
-- cutelua. spec/program/hostile_spec.lua makes some of these runs, and `make
-- fuzz` makes all of them.
local random = require "spec.random"
local support = require "spec.support"

local hostile = {}

-- Runs a command with at most 10 seconds of processor time, and at most five
-- minutes in all.
local LIMITED = 'ulimit -t 10; exec /usr/bin/timeout -s KILL 300 "$0" "$@"'

---------------------------------------------------------------------------
-- Requirements for a run
---------------------------------------------------------------------------

-- Patterns that no output may contain: a crash, a sanitizer's report, and names
-- of cutelua's own files.
local RAW = {"Sanitizer", "runtime error:", "Assertion", "please report",
  "%[internal%]", "stack traceback", "%[cute%.[%l._]+%]",
  "%[cutelua%.[%l._]+%]", "lua/cute", "core/%l+/%l+%.c"}

-- Patterns of RAW that are allowed in the output with --traceback.
local OWN = {["stack traceback"] = true, ["%[cute%.[%l._]+%]"] = true,
             ["%[cutelua%.[%l._]+%]"] = true, ["lua/cute"] = true}

-- Returns a sentence on what is wrong with the output and exit code of a run,
-- or nil.
local function complaint(words, out, err, code)
  local text, traced = err .. out, table.concat(words, " "):find "%-%-traceback"
  for _, pattern in ipairs(RAW) do
    if not (traced and OWN[pattern]) and text:find(pattern) then
      return "holds " .. pattern
    end
  end
  if code == 124 or code == 137 then return "does not end" end
  if code > 3 and code ~= 130 then return "exit code " .. code end
  if code ~= 0 and not text:find "%l[%w ]*: %S" then return "no sentence" end
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

local PTX = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  .reg .pred %p;
  .shared .align 16 .b8 s[128];
  ld.param.u64 %rd0, [x];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd2, %rd0, %rd1;
  setp.lt.u32 %p, %r0, 16;
  @%p st.global.b32 [%rd2], %r0;
  bar.sync 0;
  ret;
}
]]
local LAUNCH = [[{"entry": "k", "grid": 1, "block": 32, "args": ["x"],
  "memory": {"x": {"dtype": "i32", "shape": [32]}}}
]]
local GOOD = [[
local cute = require "cute"
local x = cute.zeros({32}, cute.f32)
cute.kernel("k", function(x) x[cute.arch.thread_idx()] = 1 end)(x):launch {
  grid = 1, block = 32, device = "sim"}
]]
local READ = [[
local cute = require "cute"
local path = ...
if path:find "npy" then assert(cute.npy.read(path))
elseif path:find "gguf" then assert(cute.gguf.open(path))
else assert(cute.safetensors.open {path}) end
]]

-- Returns a script with a kernel whose body is the given code.
local function kernel(code)
  return ([[
local cute = require "cute"
cute.kernel("k", function(x) %s end)(cute.zeros({32}, cute.f32)):launch {
  grid = 1, block = 32, device = "sim"}
]]):format(code)
end

local SCRIPTS = {
  "", "\0", ("\0"):rep(5000), "\27Lua", "\27LuaT\0\25\147", "#!",
  "\xef\xbb\xbf",
  "\xff\xfe\0x", "local x =", "x = [==[", "'", "goto a", "return 1, 2", "--[[",
  "x = " .. ("("):rep(200000), "x = " .. ("{"):rep(200000),
  "x = '" .. ("y"):rep(1 << 21) .. "'", ("a.b"):rep(100000),
  "error {}", "error(nil)", "error()", "error(print)", "error(0/0)",
  "error(setmetatable({}, {__tostring = function() error {} end}))",
  "error(setmetatable({}, {__tostring = function() return 1 end}))",
  "error('\\0\\27[2J')", "local function f() return 1 + f() end f()",
  "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) "
    .. "return t[k] end print(t.x)",
  "setmetatable({}, {__gc = function() error 'gc' end}) collectgarbage()",
  "local x <close> = setmetatable({}, {__close = function() error {} end})",
  "setmetatable(_G, {__index = error, __newindex = error}) x = y",
  "for k in pairs(_G) do _G[k] = nil end",
  "for k in pairs(string) do string[k] = nil end error 'x'",
  "debug.sethook(function() error 'hook' end, '', 1) local x = 1",
  "debug.setmetatable(nil, {__index = error}) local x = (nil).y",
  "getmetatable('').__index = nil error 'x'",
  "print 'x: 3' os.exit(3)", "print 'x: 1' os.exit(false)",
  "io.stdout:close() print 'x'",
  "io.stderr:close() error 'x'", "io.stdin:close() io.read()",
  "print(('x'):rep(1 << 40))", "print(string.rep('x', math.maxinteger, 'y'))",
  "print(table.concat({}, 'x', 1, 1 << 40))", "print(('%99999d'):format(1))",
  "print(table.unpack({}, 1, 1e8))", "print(utf8.char(-1))",
  "local function f() return coroutine.wrap(f)() end f()",
  "coroutine.yield(1)", "require 'no.such.module'", "require '../x'",
  "package.path = nil require 'x'",
  "package.loaded.cute = 1 require 'cute'.x()",
  "package.searchers = nil require 'x'", "dofile 'script1.lua'",
  "load(string.dump(load 'return 1'):sub(1, 20))()",
  "require 'cute'.zeros({1 << 60}, 'f32')",
  "require 'cute'.layout(('('):rep(99))",
  "require 'cute'.zeros({-1}, 'f32')", "require 'cute'.buffer('f32', 1 << 62)",
  kernel "x[0] = x", kernel "x[1 << 40] = 1", kernel "error {}",
  kernel "coroutine.yield()", kernel "x[0] = nil", kernel "return x",
  kernel "local function f() return 1 + f() end x[0] = f()",
  kernel "for i = 1, 1e9 do x[0] = x[0] + i end",
  kernel "cute.make_smem_tensor(cute.f32, 1 << 40)",
  kernel "cute.when(x[0], function() end)", kernel "print 'x: 3' os.exit(3)",
  kernel "x[cute.arch.thread_idx() * 1000] = 1",
  kernel "cute.arch.barrier(99, -1)", kernel "collectgarbage 'step' error(x)",
  kernel "setmetatable(_G, {__index = error}) y = z",
}

-- Commands that run a script; `after` has the words after the script's name.
local RUNNERS = {{}, {"check", "--seconds", "2"}, {"profile"}, {"estimate"},
  {"explain", after = {"-o", "page.html"}}, {"debug"}, {"ci"},
  {"compile", "--arch", "sm_90a"}, {"bundle", "-o", "out"}, {"ptx"}, {"run"},
  {"check", "--format", "json", "--seconds", "2"}, {"diff", "good.lua"}}

-- Returns a text in which some bytes are changed, repeated or removed.
local function damaged(g, text)
  for _ = 1, g:r(4) do
    local a = g:r(#text + 1)
    local b = math.min(a + g:r(20) - 1, #text)
    local kind = g:r(6)
    local put = kind == 1 and "" or kind == 2 and text:sub(a, b):rep(g:r(60))
      or kind == 3 and string.char(g:r(256) - 1)
      or kind == 4 and g:pick {"99999999999999999999", "-1", "0x", "nan", "{",
        "[", "\"", ";", "\0", "%", "1e999", "\xff"}
      or kind == 5 and text:sub(b + 1, b + 10) or nil
    if put then text = text:sub(1, a - 1) .. put .. text:sub(b + 1)
    else text = text:sub(1, a) end
  end
  return text
end

-- Returns the files of a run's folder: a table of texts by name.
local function files_of(g, damages)
  local files = {["good.lua"] = GOOD, ["read.lua"] = READ, ["k.ptx"] = PTX,
                 ["k.json"] = LAUNCH}
  for i, text in ipairs(SCRIPTS) do files[("script%d.lua"):format(i)] = text end
  local header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }"
  local npy = "\x93NUMPY\1\0" .. ("<s2"):pack(header .. (" "):rep(117 - #header)
    .. "\n") .. ("<f"):pack(1):rep(8)
  local st = [[{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}]]
  local safetensors = ("<s8"):pack(st) .. ("<f"):pack(1):rep(4)
  local gguf = "GGUF" .. ("<I4i8i8"):pack(3, 1, 1)
    .. ("<s8I4s8"):pack("name", 8, "x")
    .. ("<s8I4i8I4i8"):pack("a", 1, 4, 0, 0) .. ("\0"):rep(64)
  for i = 1, damages do
    files[("damaged%d.ptx"):format(i)] = damaged(g, PTX)
    files[("damaged%d.json"):format(i)] = damaged(g, LAUNCH)
    files[("damaged%d.npy"):format(i)] = damaged(g, npy)
    files[("damaged%d.safetensors"):format(i)] = damaged(g, safetensors)
    files[("damaged%d.gguf"):format(i)] = damaged(g, gguf)
  end
  return files
end

---------------------------------------------------------------------------
-- Runs
---------------------------------------------------------------------------

local VALUES = {"", "-1", "0x80", "1e999", "nan", "99999999999999999999",
  "\xff", ("9"):rep(5000), "a,b;c", "/dev/null/x", "%s%n", "1,,2", "0", "--",
  "good.lua",
  "..", "\27[2J", "(", "="}

-- With a wrong port, `cutelua web` ends at once; otherwise it would not end.
local AFTER = {web = {"--port", "65536"}}
-- Options with which a run does not end, so no run gets them.
local ENDLESS = {["--watch"] = true}

-- Returns the commands, and all options in their help texts as {command,
-- option, whether it takes a value}.
local function options()
  local list = {}
  local text = support.run {"--help"}
  local commands = {""}
  for word in text:gmatch "\n  (%l+)[^\n]*" do
    commands[#commands + 1] = word
  end
  for _, command in ipairs(commands) do
    local help = support.run {"help", command ~= "" and command or nil}
    for option, rest in help:gmatch "\n  (%-%-?[%a][%a-]*)([^\n]*)" do
      list[#list + 1] = {command, option, rest:find "^ %u" ~= nil}
    end
  end
  return list, commands
end

-- Adds runs of each command with each of its options and some values.
local function add_options(g, add, list)
  for _, row in ipairs(list) do
    local command, option, valued = table.unpack(row)
    for _ = 1, ENDLESS[option] and 0 or 4 do
      local words = {command ~= "" and command or nil}
      words[#words + 1] = option
      if valued or g:chance(30) then words[#words + 1] = g:pick(VALUES) end
      if g:chance(50) then words[#words + 1] = "good.lua" end
      for _, word in ipairs(AFTER[command] or {}) do
        words[#words + 1] = word
      end
      add {words}
    end
  end
end

-- Adds n command lines of random words.
local function add_words(g, add, list, commands, n)
  for _ = 1, n do
    local words = {}
    for i = 1, g:r(6) do
      local kind = g:r(4)
      local word = kind == 1 and g:pick(commands)
        or kind == 2 and g:pick(VALUES)
        or kind == 3 and ("script%d.lua"):format(g:r(#SCRIPTS))
        or g:pick(list)[2]
      words[i] = (word == "web" or ENDLESS[word]) and "" or word
    end
    add {words}
  end
end

-- Adds `each` runs of each script, by random commands.
local function add_scripts(g, add, each)
  for i = 1, #SCRIPTS do
    for _ = 1, each do
      local run = g:pick(RUNNERS)
      local words = table.move(run, 1, #run, 1, {})
      words[#words + 1] = ("script%d.lua"):format(i)
      for _, word in ipairs(run.after or {}) do words[#words + 1] = word end
      add {words}
    end
  end
end

local function add_data(add, n)
  for i = 1, n do
    local function name(kind) return ("damaged%d.%s"):format(i, kind) end
    add {{"check", "--seconds", "2", name "ptx", "--launch", "k.json"}}
    add {{"run", "k.ptx", "--launch", name "json"}}
    add {{"check", "--replay", name "json", "good.lua"}}
    for _, kind in ipairs {"npy", "safetensors", "gguf"} do
      add {{"read.lua", name(kind)}}
    end
    add {{"ptx", name "ptx"}}
    add {{"task", "run", name "json"}}
    add {{i % 2 == 0 and "mcp" or "lsp"}, stdin = name "json"}
  end
end

local VARIABLES = {"CUTELUA_CACHE", "CUTELUA_CACHE_IMAGE", "CUTELUA_CACHE_MB",
  "CUTELUA_DEBUG", "CUTELUA_WORKSHOP", "CUTELUA_NO_CUDA", "CUTELUA_NVRTC",
  "CUDA_HOME", "CUDA_PATH", "HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
  "COLUMNS", "TERM", "TMPDIR", "LUA_PATH", "LUA_PATH_5_4", "LUA_CPATH",
  "LUA_INIT", "NO_COLOR", "PATH", "LANG", "LC_ALL"}

local function add_variables(g, add)
  for _, name in ipairs(VARIABLES) do
    for k, words in ipairs {{"good.lua"}, {"profile", "good.lua"}, {"version"},
        {"compile", "--arch", "sm_90a", "good.lua"}} do
      add {words, env = {[name] = k == 1 and "/dev/null" or g:pick(VALUES)}}
    end
  end
end

--- Writes the files to a folder, and returns the runs of a seed: {{words, stdin
-- = name of a file or nil, env = variables or nil} ...}.
---@param seed integer
---@param folder string
---@return table[]
function hostile.runs(seed, folder)
  local g = setmetatable({state = seed * 7919 + 12345}, random.Gen)
  for _ = 1, 8 do g:r(2) end
  local runs, damages = {}, 20
  local function add(run) runs[#runs + 1] = run end
  for name, text in pairs(files_of(g, damages)) do
    support.write(folder .. "/" .. name, text)
  end
  local list, commands = options()
  add_options(g, add, list)
  add_words(g, add, list, commands, 150)
  add_scripts(g, add, 4)
  add_data(add, damages)
  add_variables(g, add)
  return runs
end

--- Makes a run in the folder. Returns what is wrong with its outcome (or nil),
-- and the run as text.
---@param run table
---@param folder string
---@return string? why
---@return string text
function hostile.run(run, folder)
  local env = {HOME = folder, XDG_CACHE_HOME = folder .. "/cache",
    XDG_STATE_HOME = folder .. "/state", ASAN_OPTIONS = "exitcode=99:"
    .. "allocator_may_return_null=1"}
  local text = {}
  for name, value in pairs(run.env or {}) do
    env[name] = value
    text[1] = name .. "=" .. value
  end
  for _, word in ipairs(run[1]) do
    text[#text + 1] = ("%q"):format(#word > 80 and word:sub(1, 80) or word)
  end
  local out, err, code = support.exec({"/bin/sh", "-c", LIMITED,
    support.absolute(support.program), table.unpack(run[1])}, {cwd = folder,
    env = env,
    stdin = run.stdin and support.read(folder .. "/" .. run.stdin)})
  local why = complaint(run[1], out, err, code)
  return why and ("%s\n%s%s"):format(why, err:sub(-2000), out:sub(-500)),
    table.concat(text, " ")
end

return hostile
-- SPDX-License-Identifier: MIT
