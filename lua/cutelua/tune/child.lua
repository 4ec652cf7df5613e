--- A child process of the tuner, which answers requests line by line.
--
-- Each answer of a child begins with a byte that never begins other output. If
-- the child ends, the last line of its other output explains why.
local sys = require "cute.sys"

local MARK = "\1"

local Child = {}
Child.__index = Child

local child = {MARK = MARK}

--- Starts a child process: the program cutelua, running main() of a Lua module.
---@param module string
---@param word? string main's argument
---@return table? child
---@return string? why
function child.new(module, word)
  local process, why = sys.spawn {sys.program(), "-e",
    ("require %q .main(%s)"):format(module, word and ("%q"):format(word) or "")}
  if not process then return nil, why end
  return setmetatable({process = process, text = "", said = ""}, Child)
end

--- Returns the fields of a request or of an answer.
---@param line string
---@return string[]
function child.fields(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do
    fields[#fields + 1] = field
  end
  return fields
end

--- Returns how many children can compile at once: the number of cores of this
-- computer.
---@return integer
function child.cores()
  local p <close> = io.popen "nproc 2>/dev/null"
  return p and math.tointeger(tonumber(p:read "l")) or 2
end

--- Sends a request that has to be answered within some seconds. `job` is kept
-- with the child for the caller.
function Child:ask(job, seconds, ...)
  self.job, self.deadline = job, os.time() + seconds
  self.process:send(table.concat({...}, "\t") .. "\n")
end

--- Marks the child as idle, so that it can get another request.
function Child:rest() self.job, self.deadline = nil, nil end

--- Returns the answers received so far, each a list of fields; nil if the child
-- has ended.
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

--- Closes a child that has ended; returns the reason why it ended as text.
function Child:close()
  local how, n = self.process:wait()
  self.process:close()
  local what = how == "signal" and ("signal %d"):format(n)
    or ("it ended with code %d"):format(n)
  return self.said ~= "" and ("%s (%s)"):format(what, self.said) or what
end

--- Kills the child, whatever it is doing.
function Child:kill()
  self.process:kill()
  self.process:wait()
  self.process:close()
end

return child
-- SPDX-License-Identifier: MIT
