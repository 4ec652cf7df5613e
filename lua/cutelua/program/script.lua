--- Compiles script text to functions, for the program and the workshop.
local scripts = require "cute.lang.script"
local source = require "cute.lang.source"

local script = {plain = scripts.plain}

-- Functions of Lua's libraries, kept here because a script may replace the
-- originals.
local byte, getlocal, load, pcall = string.byte, debug.getlocal, load, pcall
local TEMPORARY = byte "("

--- Returns the function that a text compiles to, or nil and the error. It calls
-- `load` inside pcall: if text is nested too deeply, a message handler would
-- run after the stack overflow, with too little stack left.
---@param text string
---@param chunk string the chunk's name, with "@" or "="
---@param env? table
---@return function?
---@return string? message
function script.compile(text, chunk, env)
  local _, f, message
  if env then _, f, message = pcall(load, text, chunk, "t", env)
  else _, f, message = pcall(load, text, chunk, "t") end
  if message == "C stack overflow" then
    message = chunk:sub(2) .. ": its contents are nested too deep"
  elseif not f and byte(text) == 27 then
    message = chunk:sub(2) .. ": this is a compiled chunk, not Lua source text"
  end
  return f, message
end

-- Compiles a script whose locals the prompt keeps. A call after its last line
-- stores them in `env`. Compilation fails if the script ends in a `return`. The
-- semicolon separates the call from an unfinished expression.
local function load_keeping(text, chunk, env)
  _G["cutelua keep"] = function()
    local i = 1
    while true do
      local name, value = getlocal(2, i)
      if not name then break end
      if byte(name) ~= TEMPORARY then env[name] = value end
      i = i + 1
    end
  end
  return script.compile(text .. '\n;_G["cutelua keep"]()', chunk)
end

--- Returns the function that a text compiles to; raises an error if the text
-- has a syntax error.
---@param text string
---@param chunk string the chunk's name, with "@" or "="
---@param env? table receives the values of the text's locals when it ends
---@return function
function script.load(text, chunk, env)
  local f, message = env and load_keeping(text, chunk, env), nil
  if not f then f, message = script.compile(text, chunk) end
  if not f then error(message, 0) end
  return f
end

--- Returns the function that a text compiles to. The text, which is in no file,
-- is recorded so that reports and traces can read it.
---@param text string
---@param chunk string
---@param env? table
---@return function
function script.add(text, chunk, env)
  source.add(chunk, text)
  return script.load(text, chunk, env)
end

return script
-- SPDX-License-Identifier: MIT
