--- Lines that are typed: on a terminal with its editor (cursor keys,
-- history, TAB), on one that is unknown with a prompt alone, elsewhere as they
-- come.
local core = require "cute.core"
local menu = require "cutelua.program.menu"

local has_sys, sys = pcall(require, "cute.sys")

local reader = {}
reader.__index = reader

--- A reader of standard input.
---@param find? function what can follow a text, as complete.find
---@param context? fun(): string, table what was typed in lines before, and the
-- globals
---@return table
function reader.new(find, context)
  local self = setmetatable({terminal = has_sys and core.isatty(0)}, reader)
  local tab = menu.new(find)
  self.editor = self.terminal and sys.editor(function(text, ...)
    local before, env = context()
    return tab:press(before .. text, env, ...)
  end)
  return self
end

--- The next line.
---@param prompt string shown on a terminal
---@return string|false|nil line nil at the end of input, false after Ctrl-C
function reader:read(prompt)
  if self.editor then return self.editor:read(prompt) end
  if not self.terminal or sys.ask(prompt) then return io.read() end
  print()
  return false
end

--- Keeps an entry for the keys that recall what was typed.
---@param entry string
function reader:add(entry)
  if self.editor then self.editor:add(entry) end
end

--- Gives the terminal back.
function reader:close()
  if self.editor then self.editor:close() end
end

return reader
