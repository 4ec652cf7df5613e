--- What specs of the program share: running it, temporary folders.
local support = {}

support.program = os.getenv "CUTELUA" or "build/cutelua"
-- The interpreter that the spec runs under, for child processes: stock Lua,
-- or a sanitized cutelua.
support.lua = os.getenv "CUTELUA_LUA" or "lua5.4"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

--- A fresh folder; the caller removes it with support.remove.
function support.folder()
  local p <close> = io.popen "mktemp -d"
  return (p:read "l")
end

function support.remove(path)
  assert(path:find "^/tmp/" or path:find "/tmp%.")
  os.execute("rm -rf " .. quote(path))
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

--- Runs a command (a list of words); returns its standard output, standard
-- error and exit code (128 + n for signal n).
---@param words string[]
---@param opt? {stdin: string?, env: table<string,string>?, cwd: string?}
function support.exec(words, opt)
  opt = opt or {}
  local dir = support.folder()
  support.write(dir .. "/in", opt.stdin or "")
  local line = {}
  if opt.cwd then line[1] = "cd " .. quote(opt.cwd) .. " &&" end
  line[#line + 1] = "env"
  for name, value in pairs(opt.env or {}) do
    line[#line + 1] = quote(name .. "=" .. value)
  end
  for _, word in ipairs(words) do line[#line + 1] = quote(word) end
  local command = ("%s <%s/in >%s/out 2>%s/err"):format(
    table.concat(line, " "), dir, dir, dir)
  local _, how, code = os.execute(command)
  local out, err = support.read(dir .. "/out"), support.read(dir .. "/err")
  support.remove(dir)
  return out, err, how == "signal" and 128 + code or code
end

--- Runs the program under test with these arguments.
function support.run(words, opt)
  return support.exec({support.program, table.unpack(words)}, opt)
end

--- Talks to the program on a pseudo terminal. A step is {send, wait}: what
-- is typed, and the text to wait for before the next one. Returns all that
-- the terminal got, without carriage returns, and the exit code.
---@param steps string[][]
---@param env? table<string,string>
function support.terminal(steps, env)
  local lines = {}
  for i, step in ipairs(steps) do
    lines[i] = ("%s %s\n"):format(
      step[1]:gsub(".", function(c) return ("%02x"):format(c:byte()) end),
      step[2]:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
  end
  local out, err, code = support.exec(
    {"python3", "spec/terminal.py", support.program},
    {stdin = table.concat(lines), env = env})
  assert(err == "", err)
  assert(not out:find("(nothing more came)", 1, true), out)
  return (out:gsub("\r", "")), code
end

return support
