--- Parses Lua tables that contain numbers, strings and tables. The text is
-- parsed as data and never executed.
--
--     literal.read('return {card = "H200", sms = 132, {1, 2.5}} -- a table')
local literal = {}

-- The maximum nesting depth of tables.
local MOST_LEVELS = 100
local ESCAPES = {a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
  v = "\v", ["\\"] = "\\", ['"'] = '"', ["'"] = "'", ["\n"] = "\n"}
local NAMED = {["true"] = true, ["false"] = false}

local function wrong(text, at, want)
  local _, line = text:sub(1, at):gsub("\n", "")
  local word = text:match("^[%w_]+", at) or text:match("^[^\n]", at)
  error(("line %d: %s, got %s"):format(line + 1, want,
    word and ("'%s'"):format(word:sub(1, 40)) or "its end"), 0)
end

-- Returns the first position at or after `at` that is in neither white space
-- nor a comment.
local function skip(text, at)
  while true do
    at = text:match("^%s*()", at)
    if text:sub(at, at + 1) ~= "--" then return at end
    if text:find("^%-%-%[=*%[", at) then
      wrong(text, at, "a one-line comment is needed")
    end
    at = text:find("\n", at, true) or #text + 1
  end
end

-- Returns the character of the escape sequence whose backslash is at `at`, and
-- the position after the sequence.
local function escaped(text, at)
  local digits = text:match("^%d%d?%d?", at + 1)
  local hex = text:match("^x(%x%x)", at + 1)
  local code = digits and tonumber(digits) or hex and tonumber(hex, 16)
  if code and code < 256 then
    return string.char(code), at + 1 + (digits and #digits or 3)
  end
  local c = ESCAPES[text:sub(at + 1, at + 1)]
  if not c then wrong(text, at + 1, "an escape sequence is needed") end
  return c, at + 2
end

-- Returns the string whose opening quote is at `at`, and the position after its
-- closing quote.
local function read_string(text, at)
  local quote, out = text:sub(at, at), {}
  local plain = "^[^\\\n" .. quote .. "]*()"
  at = at + 1
  while true do
    local stop = text:match(plain, at)
    out[#out + 1] = text:sub(at, stop - 1)
    local c = text:sub(stop, stop)
    if c == quote then return table.concat(out), stop + 1 end
    if c ~= "\\" then wrong(text, stop, "an unfinished string") end
    out[#out + 1], at = escaped(text, stop)
  end
end

local read_value

-- Returns the key of a table field, and the position where the field's value
-- begins. The key is written as "[...] =" or "name =". Returns nil as the key
-- if the field has none.
local function read_key(text, at, level)
  local name, after = text:match("^([%a_][%w_]*)()", at)
  local key = name
  if text:sub(at, at) == "[" then
    key, after = read_value(text, skip(text, at + 1), level + 1)
    after = skip(text, after)
    if text:sub(after, after) ~= "]" then wrong(text, after, "']' is needed")
    end
    after = after + 1
    if type(key) == "table" or key ~= key then
      wrong(text, at, "a number or a word is needed as a key")
    end
  end
  if not after then return nil, at end
  after = skip(text, after)
  if text:find("^=[^=]", after) then return key, skip(text, after + 1) end
  if not name then wrong(text, after, "'=' is needed") end
  return nil, at
end

-- Returns the table whose opening brace is at `at`, and the position after its
-- closing brace.
local function read_table(text, at, level)
  local out, n = {}, 0
  if level > MOST_LEVELS then wrong(text, at, "too many levels") end
  at = skip(text, at + 1)
  while text:sub(at, at) ~= "}" do
    local key
    key, at = read_key(text, at, level)
    if key == nil then
      n = n + 1
      key = n
    end
    out[key], at = read_value(text, at, level + 1)
    at = skip(text, at)
    if text:find("^[,;]", at) then at = skip(text, at + 1)
    elseif text:sub(at, at) ~= "}" then wrong(text, at, "',' or '}' is needed")
    end
  end
  return out, at + 1
end

-- Returns the value that begins at position `at`, and the position after it.
function read_value(text, at, level)
  local c = text:sub(at, at)
  if c == "{" then return read_table(text, at, level) end
  if c == '"' or c == "'" then return read_string(text, at) end
  local word, after = text:match("^([%a_][%w_]*)()", at)
  if NAMED[word] ~= nil then return NAMED[word], after end
  local digits = text:match("^-?0[xX][%x.]+[pP]?[+-]?%d*", at)
    or text:match("^-?[%d.]+[eE]?[+-]?%d*", at)
  local value = digits and tonumber(digits)
  if not value or text:find("^[%w_]", at + #digits) then
    wrong(text, at, "a table, a number or a word in quotes is needed")
  end
  return value, at + #digits
end

--- Returns the value of a text of the form `return VALUE`, or nil and a
-- message.
---@param text string
---@return any value
---@return string? why
function literal.read(text)
  local ok, result = pcall(function()
    local at = skip(text, 1)
    local after = text:match("^return%f[^%w_]()", at)
    if not after then wrong(text, at, "'return' and a table are needed") end
    local value
    value, at = read_value(text, skip(text, after), 0)
    at = skip(text, at)
    at = skip(text, text:sub(at, at) == ";" and at + 1 or at)
    if at <= #text then wrong(text, at, "the end of the file is needed") end
    return value
  end)
  if not ok then return nil, result end
  return result
end

--- Converts a command-line argument to an integer. Returns nil if the argument
-- is not a decimal integer of at most 64 bits. Rejects hexadecimal numbers,
-- decimal points, exponents and spaces.
---@param text string?
---@return integer?
function literal.whole(text)
  return text and text:find "^[+-]?%d+$" and math.tointeger(tonumber(text))
    or nil
end

--- Converts a command-line argument to a finite number. Returns nil if the
-- argument is not a decimal number. Rejects hexadecimal numbers and spaces.
---@param text string?
---@return number?
function literal.decimal(text)
  local x = text and text:find "^[+-]?[%d.]+[eE]?[+-]?%d*$" and tonumber(text)
  return x and x - x == 0 and x or nil
end

return literal
-- SPDX-License-Identifier: MIT
