-- Tests the table of docs/files.md, which says who chooses names of files.
-- Every call that loads, runs, opens or removes something by a computed name
-- must have a row. A new call fails the test until it is reviewed.
local support = require "spec.support"

-- Functions that load, run, open or remove something, as their calls are
-- written in Lua (LUA) and in C.
local LUA = {"require", "load", "loadfile", "dofile", "package.loadlib",
  "package.searchpath", "io.open", "io.lines", "io.popen", "os.execute",
  "os.remove", "os.rename", "core.open_input", "core.open_aside",
  "files.read", "bytes.read", "sys.spawn"}
local C = {"dlopen", "popen", "system", "fopen", "freopen", "open", "openat",
  "opendir", "execv", "execvp", "execve", "posix_spawn", "posix_spawnp",
  "unlink", "unlinkat", "rename",
  "renameat", "mkdir", "mkdirat", "luaL_loadfile", "luaL_loadfilex",
  "luaL_dofile",
  "luaL_loadbuffer", "luaL_loadbufferx", "luaL_loadstring", "luaL_dostring",
  "lua_load"}

local function escaped(s) return (s:gsub("%p", "%%%0")) end

-- Reports whether the first argument of a call is a string literal, without
-- anything concatenated. The arguments begin at `at`.
local function is_written(text, at)
  local after = text:match('^%s*%(?%s*"[^"]*"()', at)
    or text:match("^%s*%(?%s*'[^']*'()", at)
  return after and not text:find("^%s*%.%.", after)
end

-- Returns the text of a file without comments and, for Lua, long strings.
local function bare(path)
  local text = "\n" .. support.read(path)
  if path:find "%.lua$" then
    return (text:gsub("%[%[.-%]%]", "[]"):gsub("%-%-[^\n]*", ""))
  end
  return (text:gsub("//[^\n]*", ""):gsub("/%*.-%*/", ""))
end

-- Returns the calls of a file that have computed names: {name = true}.
local function calls_of(path, names)
  local text, found = bare(path), {}
  for _, name in ipairs(names) do
    if not text:find(name, 1, true) then goto continue end
    local own = name == "load" and (text:find "local function load%f[^%w_]"
      or text:find "function[^\n]*[(,] ?load[,)]")
    for at in text:gmatch("%f[%w_.:]" .. escaped(name) .. "%f[^%w_]()") do
      local before = text:sub(math.max(1, at - #name - 12), at - #name - 1)
      local handed = before:find "pcall%($" and text:match("^%s*,()", at)
      local called = handed or text:find("^%s*[%({]", at)
        or name == "require" and text:find("^%s+[\"']", at)
      if called and not before:find "static %w+ $" and not (own and not handed)
        and not is_written(text, handed or at) then
        found[name] = true
      end
    end
    ::continue::
  end
  return found
end

local function product_files()
  local list = {}
  local p <close> = io.popen("find lua core kernels scripts -name '*.lua' "
    .. "-o -name '*.[ch]'")
  for path in p:lines() do
    if path:find "^[lcks]" and not path:find "/lessons/" then
      list[#list + 1] = path
    end
  end
  table.sort(list)
  return list
end

-- Returns "FILE: CALL" for the rows "| `FILE` | `CALL` `CALL` | who |".
local function rows()
  local list = {}
  local text = support.read "docs/files.md"
  local part = text:match "\n## Calls with computed names.-\n## "
  for file, calls, who in part:gmatch "\n| `([^`]+)` | ([^|]+) | ([^|]+) |" do
    assert(#who > 3, file)
    for name in calls:gmatch "`([%w_.]+)`" do list[file .. ": " .. name] = true
    end
  end
  return list
end

describe("names that data could decide", function()
  it("are all in docs/files.md", function()
    local listed, found = rows(), {}
    for _, path in ipairs(product_files()) do
      for call in pairs(calls_of(path, path:find "%.lua$" and LUA or C)) do
        found[path .. ": " .. call] = true
      end
    end
    for row in pairs(found) do
      assert.truthy(listed[row], row .. " is not in docs/files.md")
    end
    for row in pairs(listed) do
      assert.truthy(found[row], row .. " is in docs/files.md alone")
    end
  end)

  it("differ from literal ones", function()
    local path = support.folder()
    support.write(path .. "/x.lua", [[
      local a, b = require "x", pcall(require, "y")
      local c, d = require(a), pcall(require, b or "")
      io.open("/etc/x"):close() -- io.open(name)
      io.open(name) io.open("a" .. b) r:load() load(x)
      require "x".of(a)
    ]])
    assert.same({require = true, ["io.open"] = true, load = true},
                calls_of(path .. "/x.lua", LUA))
    support.remove(path)
  end)
end)
-- SPDX-License-Identifier: MIT
