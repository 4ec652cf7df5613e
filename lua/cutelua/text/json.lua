--- Encodes Lua values as JSON for reports and verdicts, and decodes JSON
-- requests.
--
-- docs/hacking.md explains why this module does not use the library lua-dkjson,
-- which the specs use.
local json = {}

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n",
                 ["\t"] = "\\t", ["\r"] = "\\r"}

-- Returns a string as a JSON string. Bytes that are not valid UTF-8 become
-- U+FFFD.
local function quoted(s)
  if not utf8.len(s) then s = s:gsub("[\x80-\xff]", "\u{FFFD}") end
  return '"' .. s:gsub('[%c"\\\x7f]', function(c)
    return ESCAPES[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function number(v)
  if math.type(v) == "integer" then return tostring(v) end
  if v ~= v or v == math.huge or v == -math.huge then return "null" end
  return ("%.17g"):format(v)
end

-- The metatables of the objects and arrays that json.marked decoded.
local OBJECT, ARRAY = {}, {}

--- The value that json.marked returns for null.
json.null = setmetatable({}, {__name = "null"})

--- Marks a table as an object, so that json.encode encodes it as {} if it is
-- empty.
---@param t table
---@return table t
function json.object(t) return setmetatable(t, OBJECT) end

--- Reports whether a value is marked as an object, by json.marked or
-- json.object.
---@param v any
---@return boolean
function json.is_object(v)
  return type(v) == "table" and getmetatable(v) == OBJECT
end

--- Encodes a Lua value as JSON. The value may be a string, number, boolean,
-- list or object. A list is a table that is empty or has only the keys 1 to n.
-- An object is a table whose keys are strings. The keys are sorted.
---@param v any
---@return string
function json.encode(v)
  local t = type(v)
  if t == "number" then return number(v) end
  if t == "string" then return quoted(v) end
  if t ~= "table" or v == json.null then
    return t == "boolean" and tostring(v) or "null"
  end
  local out, names = {}, {}
  for k in next, v do
    if type(k) == "string" then names[#names + 1] = k end
  end
  table.sort(names)
  for _, k in ipairs(names) do
    out[#out + 1] = quoted(k) .. ":" .. json.encode(v[k])
  end
  if #names > 0 or getmetatable(v) == OBJECT then
    return "{" .. table.concat(out, ",") .. "}"
  end
  for i, x in ipairs(v) do out[i] = json.encode(x) end
  return "[" .. table.concat(out, ",") .. "]"
end

---------------------------------------------------------------------------
-- Decoding
---------------------------------------------------------------------------

-- The maximum nesting depth of values.
local MOST_LEVELS = 100
local LITERALS = {["true"] = true, ["false"] = false}
local PLAIN = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"',
               ["\\"] = "\\", ["/"] = "/"}

local function wrong(at, what)
  error(("byte %d: %s"):format(at, what), 0)
end

-- Returns the character of the escape sequence \uXXXX whose backslash is at
-- `at`, and the position after it. A surrogate pair of two such sequences
-- yields one character. Unpaired surrogates become U+FFFD.
local function escaped(text, at)
  local first = text:match("^u(%x%x%x%x)", at + 1)
  if not first then
    local c = PLAIN[text:sub(at + 1, at + 1)]
    if not c then wrong(at, "no such escape") end
    return c, at + 2
  end
  local code, after = tonumber(first, 16), at + 6
  local low = code >> 10 == 0x36
    and tonumber(text:match("^\\u([dD][c-fC-F]%x%x)", after) or "", 16)
  if low then
    return utf8.char(0x10000 + ((code & 0x3ff) << 10 | low & 0x3ff)), after + 6
  end
  return utf8.char(code >> 11 == 0x1b and 0xfffd or code), after
end

-- Returns the string whose opening quote is at `at`, and the position after the
-- closing quote. Accepts unescaped control characters.
local function read_string(text, at)
  local out = {}
  at = at + 1
  while true do
    local stop = text:match('^[^"\\]*()', at)
    if stop > at then out[#out + 1] = text:sub(at, stop - 1) end
    local c = text:sub(stop, stop)
    if c == '"' then return table.concat(out), stop + 1 end
    if c == "" then wrong(stop, "an unfinished string") end
    out[#out + 1], at = escaped(text, stop)
  end
end

local read

-- Reads an array or object whose opening bracket is at `at` and whose closing
-- bracket is `close`. item(at) reads one item and returns the position after
-- the item. Returns the position after the closing bracket.
local function read_list(text, at, close, item)
  at = text:match("^[ \t\r\n]*()", at + 1)
  if text:sub(at, at) == close then return at + 1 end
  while true do
    at = text:match("^[ \t\r\n]*()", item(at))
    local c = text:sub(at, at)
    if c == close then return at + 1 end
    if c ~= "," then wrong(at, "',' or '" .. close .. "' expected") end
    at = text:match("^[ \t\r\n]*()", at + 1)
  end
end

-- Options of the current call. unique: whether duplicate names in an object are
-- an error. marks: whether null, objects and arrays are marked (see
-- json.marked).
local unique, marks = false, false

local function read_object(text, at, level)
  local out, met = marks and json.object {} or {}, {}
  return out, read_list(text, at, "}", function(from)
    if text:sub(from, from) ~= '"' then wrong(from, "a name expected") end
    local name, to = read_string(text, from)
    if unique and met[name] then wrong(from, "a name that was there before") end
    met[name] = true
    to = text:match("^[ \t\r\n]*:[ \t\r\n]*()", to) or wrong(to, "':' expected")
    out[name], to = read(text, to, level + 1)
    return to
  end)
end

local function read_array(text, at, level)
  local out, n = marks and setmetatable({}, ARRAY) or {}, 0
  return out, read_list(text, at, "]", function(from)
    local to
    n = n + 1
    out[n], to = read(text, from, level + 1)
    return to
  end)
end

-- Returns the value that begins at position `at`, and the position after it.
function read(text, at, level)
  if level > MOST_LEVELS then wrong(at, "too many levels") end
  local c = text:sub(at, at)
  if c == '"' then return read_string(text, at) end
  if c == "{" then return read_object(text, at, level) end
  if c == "[" then return read_array(text, at, level) end
  local word = text:match("^%a+", at)
  if word == "null" then return marks and json.null or nil, at + 4 end
  if LITERALS[word] ~= nil then return LITERALS[word], at + #word end
  local digits = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local value = digits and tonumber(digits)
  if not value or digits:find "^-?0%d" or digits:find "%.[eE]"
    or digits:find "%.$" then wrong(at, "a value expected") end
  return value, at + #digits
end

local function decode(text)
  local ok, value, at = pcall(read, text, text:match "^[ \t\r\n]*()", 1)
  if not ok then return nil, "no JSON: " .. tostring(value) end
  at = text:match("^[ \t\r\n]*()", at)
  if at <= #text then
    return nil, ("no JSON: byte %d: text after the value"):format(at)
  end
  return value
end

--- Returns the Lua value of a JSON text. null becomes nil. Returns nil and a
-- message if the JSON is invalid.
---@param text string
---@param distinct? boolean whether duplicate names in an object are an error
---@return any
---@return string? message
function json.decode(text, distinct)
  unique, marks = distinct or false, false
  return decode(text)
end

--- Returns the Lua value of a JSON text, in which null, empty objects and empty
-- arrays stay distinct, so that json.encode restores them. null becomes
-- json.null, and json.is_object distinguishes objects from arrays. Returns nil
-- and a message if the JSON is invalid.
---@param text string
---@return any
---@return string? message
function json.marked(text)
  unique, marks = false, true
  return decode(text)
end

return json
-- SPDX-License-Identifier: MIT
