--- Reports errors that Lua raises inside lua/cute and kernels/ as misuse of the
-- public function that was called. The function's signature has already been
-- checked against the types of the arguments. So the cause is a value inside an
-- argument, and the error names the caller's line. cutelua.text.mistakes
-- rewrites Lua's message.
local core = require "cute.core"

local lua_errors = {}

-- Lua's messages about a lack of stack or memory. After them, too little is
-- left to load a module that explains the error. Each row has the beginning of
-- the message, a message for users, and its kind.
local SHORTAGES = {
  {"^stack overflow", "there are too many values, or tables are nested too "
    .. "deep", "limit"},
  {"^not enough memory", "memory ran out", "out-of-memory"},
}

-- Rewrites a message of Lua in terms of the called function's arguments.
-- Returns the new message and the kind of the error.
local function said(sentence)
  for _, row in ipairs(SHORTAGES) do
    if sentence:find(row[1]) then return row[2], row[3] end
  end
  local explain = require "cute.lang.signature".workshop.argument
  if explain then return explain(sentence) end
  return "an argument has the wrong type or value: " .. sentence
end

-- Reports whether a function's source file belongs to lua/cute or kernels/.
local function is_ours(source)
  return core.own_source(source) or source:find "^=%[kernels"
    or source:find "^@kernels/" or source:find "5%.4/kernels/"
end

-- Returns Lua's message if it was raised in the files of lua/cute or kernels/,
-- or in a function of Lua's library that they called. The message has no
-- position if a library function, such as table.sort, fails on the contents of
-- a table.
local function own_sentence(message)
  local bare = false
  for level = 3, 6 do
    local info = debug.getinfo(level, "Slf")
    if not info then return end
    if info.what ~= "C" then
      if not is_ours(info.source) then return end
      local at = ("%s:%d: "):format(info.short_src, info.currentline)
      if message:sub(1, #at) == at then return message:sub(#at + 1) end
      return bare and message:find "^attempt to " and message
    end
    bare = info.func ~= error and info.func ~= assert
  end
end

--- Rewrites Lua's errors; xpcall uses it as message handler. Errors of cutelua
-- and Ctrl-C are unchanged.
---@return any
function lua_errors.handler(message)
  local sentence = type(message) == "string" and own_sentence(message)
  if not sentence or sentence == "interrupted"
    or sentence:find "^[^\n]* %[[%l-]+%]" then
    return message
  end
  local text, kind = said(sentence)
  local name, given, use = core.usage()
  if name then
    text = ("bad arguments to '%s' (%s)\n  %s\n  %s"):format(name, text, given,
      use)
  end
  local _, told = pcall(core.fail, kind or "bad-argument", text)
  return told
end

return lua_errors
-- SPDX-License-Identifier: MIT
