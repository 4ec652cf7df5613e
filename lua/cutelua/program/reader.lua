--- Reads typed lines. On a terminal it uses the line editor (cursor keys,
-- history, TAB). On a terminal of unknown type it only shows a prompt.
-- Otherwise it reads plain input.
local core = require "cute.core"
local files = require "cute.lang.files"
local menu = require "cutelua.program.menu"

local has_sys, sys = pcall(require, "cute.sys")

local reader = {}
reader.__index = reader

--- Returns a reader of standard input.
---@param find? function candidates for a text, like complete.find
---@param context? fun(): string, table returns the earlier lines of an
-- unfinished input, and the globals
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

--- Reads the next line.
---@param prompt string shown on a terminal
---@return string|false|nil line nil at the end of input, false after Ctrl-C
function reader:read(prompt)
  if self.editor then return self.editor:read(prompt) end
  if not self.terminal or sys.ask(prompt) then return files.line() end
  print()
  return false
end

--- Adds an entry to the history of the line editor.
---@param entry string
function reader:add(entry)
  if self.editor then self.editor:add(entry) end
end

--- Restores the terminal.
function reader:close()
  if self.editor then self.editor:close() end
end

return reader
-- SPDX-License-Identifier: MIT
