--- Texts of scripts as functions: the program's, and the workshop's.
local source = require "cute.lang.source"

local script = {}

--- A script's text as Lua loads it: without a byte order mark, and without the
-- words behind "#" in its first line, which is for the shell.
---@param text string
---@return string
function script.plain(text)
  return (text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", ""))
end

-- What a script does to Lua's libraries is no matter here.
local byte, getlocal, load, pcall = string.byte, debug.getlocal, load, pcall
local TEMPORARY = byte "("

--- The function of a text, or nil and what is wrong. Lua's own `load` hands
-- what is nested too deep to the message handler, which makes no text of it.
---@param text string
---@param chunk string its name, with "@" or "="
---@param env? table
---@return function?
---@return string? message
function script.compile(text, chunk, env)
  local _, f, message
  if env then _, f, message = pcall(load, text, chunk, "t", env)
  else _, f, message = pcall(load, text, chunk, "t") end
  if message == "C stack overflow" then
    message = chunk:sub(2) .. ": what is in it is nested too deep"
  elseif not f and byte(text) == 27 then
    message = chunk:sub(2) .. ": this is a compiled chunk, no text of Lua"
  end
  return f, message
end

-- A script that the prompt follows leaves its locals there: a call behind
-- its last line hands them over, unless it ends in a `return`. The semicolon
-- keeps it out of an expression that is not finished.
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

--- The function of a text; raises what is wrong with its syntax.
---@param text string
---@param chunk string its name, with "@" or "="
---@param env? table takes the locals that it has at its end
---@return function
function script.load(text, chunk, env)
  local f, message = env and load_keeping(text, chunk, env), nil
  if not f then f, message = script.compile(text, chunk) end
  if not f then error(message, 0) end
  return f
end

--- That of a text which has no file: reports and traces find it.
---@param text string
---@param chunk string
---@param env? table
---@return function
function script.add(text, chunk, env)
  source.add(chunk, text)
  return script.load(text, chunk, env)
end

return script
