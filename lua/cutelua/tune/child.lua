--- A child process that answers requests: lines to it, lines from it.
--
-- What a child says to its parent begins with a byte that nothing else prints
-- begins with; its last other line tells what it died of.
local sys = require "cute.sys"

local MARK = "\1"

local Child = {}
Child.__index = Child

local child = {MARK = MARK}

--- Starts the program, which runs main() of a Lua module.
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

--- A request, to be answered within so many seconds. `job` is the caller's.
function Child:ask(job, seconds, ...)
  self.job, self.deadline = job, os.time() + seconds
  self.process:send(table.concat({...}, "\t") .. "\n")
end

--- No request is under way any more.
function Child:rest() self.job, self.deadline = nil, nil end

--- The answers that have come, a list of fields each; nil at its end.
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
    local fields = {}
    for field in (line:sub(2) .. "\t"):gmatch "([^\t]*)\t" do
      fields[#fields + 1] = field
    end
    list[#list + 1] = fields
    return ""
  end)
  return list
end

--- Ends it; what it died of, in words.
function Child:close()
  local how, n = self.process:wait()
  self.process:close()
  local what = how == "signal" and ("signal %d"):format(n)
    or ("it ended with code %d"):format(n)
  return self.said ~= "" and ("%s (%s)"):format(what, self.said) or what
end

--- Ends it whatever it does.
function Child:kill()
  self.process:kill()
  self.process:wait()
  self.process:close()
end

return child
