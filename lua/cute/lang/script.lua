--- Functions for programs and libraries that load scripts: reading a script's
-- text as Lua does, and finding the kernels among its values.
local core = require "cute.core"

local script = {}

-- Functions of Lua's libraries are kept here, so that a script that replaces
-- them does not affect this module.
local byte, getmetatable = string.byte, getmetatable
local rawget, type = rawget, type

--- Returns a script's text as Lua loads it: without a byte order mark, and
-- without a first line that begins with "#". (The shell reads such a line.)
---@param text string
---@return string
function script.plain(text)
  return (text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", ""))
end

--- Returns a script's text like script.plain. Raises an error if the text is a
-- compiled chunk.
---@param text string
---@param chunk string the chunk's name, with "@" or "="
---@return string
function script.source(text, chunk)
  text = script.plain(text)
  if byte(text) == 27 then
    core.fail("lua", chunk:sub(2) .. ": this is a compiled chunk, not Lua "
      .. "source text")
  end
  return text
end

--- Reports whether a value is a kernel.
---@param v any
---@return boolean
function script.is_kernel(v)
  local meta = type(v) == "table" and getmetatable(v)
  return meta and rawget(meta, "__host") == "kernel"
end

return script
-- SPDX-License-Identifier: MIT
