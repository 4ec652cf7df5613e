--- A child process of the tuner. It reads requests and writes answers, one per
-- line.
--
-- Each answer begins with the byte \1, which other output does not begin with.
-- If the child terminates, the last line of its other output is reported as the
-- reason.
local sys = require "cute.sys"

local MARK = "\1"

local Child = {}
Child.__index = Child

local child = {MARK = MARK}

--- Starts a child process, which runs main() of a Lua module in the program
-- cutelua.
---@param module string
---@param word? string the argument of main
---@return table? child
---@return string? why
function child.new(module, word)
  local process, why = sys.spawn {sys.program(), "-e",
    ("require %q .main(%s)"):format(module, word and ("%q"):format(word) or "")}
  if not process then return nil, why end
  return setmetatable({process = process, text = "", said = ""}, Child)
end

--- Splits a request or an answer at its tabs.
---@param line string
---@return string[]
function child.fields(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do
    fields[#fields + 1] = field
  end
  return fields
end

--- Returns the number of children that can compile in parallel, which is the
-- number of the computer's cores.
---@return integer
function child.cores()
  local p <close> = io.popen "nproc 2>/dev/null"
  return p and math.tointeger(tonumber(p:read "l")) or 2
end

--- Sends a request that must be answered within the given number of seconds.
-- The child object stores `job` for the caller.
function Child:ask(job, seconds, ...)
  self.job, self.deadline = job, os.time() + seconds
  self.process:send(table.concat({...}, "\t") .. "\n")
end

--- Marks the child as idle, so that it can receive another request.
function Child:rest() self.job, self.deadline = nil, nil end

--- Returns the answers received since the last call, each as a list of fields.
-- Returns nil if the child has terminated.
function Child:answers()
  local more = self.process:receive()
  if not more then return nil end
  self.text = self.text .. more
  local list = {}
  self.text = self.text:gsub("([^\n]*)\n", function(line)
    if line:sub(1, 1) ~= MARK then
      if line:find "%S" then self.said = line end
      return ""
    end
    list[#list + 1] = child.fields(line:sub(2))
    return ""
  end)
  return list
end

--- Closes a child that has terminated. Returns the reason as text.
function Child:close()
  local how, n = self.process:wait()
  self.process:close()
  local what = how == "signal" and ("signal %d"):format(n)
    or ("it ended with code %d"):format(n)
  return self.said ~= "" and ("%s (%s)"):format(what, self.said) or what
end

--- Kills the child.
function Child:kill()
  self.process:kill()
  self.process:wait()
  self.process:close()
end

return child
-- SPDX-License-Identifier: MIT
