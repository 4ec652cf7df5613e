--- Lua values as JSON: what reports and verdicts are for programs.
local json = {}

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n",
                 ["\t"] = "\\t", ["\r"] = "\\r"}

-- Bytes that are no UTF-8 become U+FFFD.
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

--- A list (a table without fields but 1 to n; an empty one, too), an object
-- (strings as fields, in their order), a string, number or boolean.
---@param v any
---@return string
function json.encode(v)
  local t = type(v)
  if t == "number" then return number(v) end
  if t == "string" then return quoted(v) end
  if t ~= "table" then return t == "boolean" and tostring(v) or "null" end
  local out, names = {}, {}
  for k in next, v do
    if type(k) == "string" then names[#names + 1] = k end
  end
  table.sort(names)
  for _, k in ipairs(names) do
    out[#out + 1] = quoted(k) .. ":" .. json.encode(v[k])
  end
  if #names > 0 then return "{" .. table.concat(out, ",") .. "}" end
  for i, x in ipairs(v) do out[i] = json.encode(x) end
  return "[" .. table.concat(out, ",") .. "]"
end

return json
