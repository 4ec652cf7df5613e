--- Reports errors that Lua raises inside lua/cute and kernels/ as misuse of the
-- public function that was called. Since the signatures accepted the arguments'
-- types, the cause is a value inside an argument, and the error names the
-- caller's line.
--
-- The rewritten message says what is wrong with a value: "attempt to index a
-- nil value (field 'tile')" becomes "'tile' is nil, where a table is expected".
local core = require "cute.core"

local lua_errors = {}

-- The expected kind of value, by the verb in Lua's message.
local EXPECTED = {
  index = "a table or an object", call = "a function",
  ["perform arithmetic on"] = "a number",
  ["perform bitwise operation on"] = "an integer",
  concatenate = "a string or a number", ["get length of"] = "a list",
}

-- Each entry holds a pattern of Lua's messages, its replacement (formatted with
-- the captures), and the kind of the error if it is not bad-argument.
local SENTENCES = {
  {"^attempt to compare two ([%a_.]+) values",
   "two values (%s) cannot be compared with <"},
  {"^attempt to compare ([%a_.]+) with ([%a_.]+)",
   "a %s is compared with a %s, where numbers are expected"},
  {"^attempt to perform 'n[/%%]+0'", "a number is divided by 0"},
  {"has no integer representation",
   "a number is not an integer, where one is expected"},
  {"^'for' (%a+) .*must be a number", "the %s of a loop is not a number"},
  {"^'for' step is zero", "a step is 0"},
  {"^table index is (%a+)", "a key of a table is %s"},
  {"^bad argument #%d+ to '[^']*' %((%a+) expected, got ([%a_. ]+)%)",
   "a %s is expected, got %s"},
  {"^invalid value %(at index %d+%) in table",
   "a list holds a value that is neither a string nor a number"},
  {"^string slice too long", "a string is too long", "limit"},
  {"too large$", "a string is too long", "limit"},
  {"^too many results to unpack", "a list is too long", "limit"},
  {"^attempt to yield", "a callback yields, but it cannot be resumed"},
  {"^stack overflow", "there are too many values, or tables are nested too "
    .. "deep",
   "limit"},
  {"^not enough memory", "memory ran out", "out-of-memory"},
}

-- Rewrites a message of Lua so that it speaks of arguments. Returns the new
-- message and the kind of the error.
local function said(sentence)
  local what, type_, name =
    sentence:match "^attempt to ([%a ]-) an? ([%a_.]+) value(.*)"
  if EXPECTED[what] then
    local of = name:match "^ %(%a+ '([%a_][%w_]*)'%)"
    return ("%s is %s, where %s is expected"):format(
      of and "'" .. of .. "'" or "a value",
      type_ == "nil" and type_ or "a " .. type_:gsub("^cute%.", ""),
      EXPECTED[what])
  end
  for _, row in ipairs(SENTENCES) do
    if sentence:find(row[1]) then
      return row[2]:format(sentence:gsub("cute%.", ""):match(row[1])), row[3]
    end
  end
  return "an argument has the wrong type or value"
end

-- Reports whether a function's source file belongs to lua/cute or kernels/.
local function is_ours(source)
  return core.own_source(source) or source:find "^=%[kernels"
    or source:find "^@kernels/" or source:find "5%.4/kernels/"
end

-- Returns Lua's message if it was raised in the files of lua/cute or kernels/,
-- or in a function of Lua's library that they called. A library function's
-- error has no position if the function reads a table.
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
---@param message any
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
