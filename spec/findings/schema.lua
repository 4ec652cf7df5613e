-- Validates plain data against a JSON Schema. Supports only the keywords that
-- docs/findings.schema.json and spec/findings/sarif.json use. Any other keyword
-- raises an error, so that nothing in a schema goes unchecked.
local schema = {}

local ANNOTATIONS = {["$schema"] = true, ["$defs"] = true, title = true,
                     description = true}

-- Reports whether dkjson read a table from an array.
local function is_array(v)
  local mt = getmetatable(v)
  return mt and mt.__jsontype == "array"
end

local TYPES = {
  object = function(v) return type(v) == "table" and not is_array(v) end,
  array = function(v) return type(v) == "table" and is_array(v) end,
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  number = function(v) return type(v) == "number" end,
  integer = function(v) return math.tointeger(v) ~= nil end,
}

local check

-- For each keyword of JSON Schema: a function that checks a value against the
-- keyword's value in a schema. It returns a description of the mistake, or nil.
local KEYWORDS = {
  type = function(v, want)
    return not TYPES[want](v) and ("%s is no %s"):format(tostring(v), want)
  end,
  const = function(v, want)
    return v ~= want and ("%s, not %s"):format(tostring(v), want)
  end,
  enum = function(v, list)
    for _, x in ipairs(list) do if x == v then return nil end end
    return ("%s is none of the values"):format(tostring(v))
  end,
  minimum = function(v, least)
    return type(v) == "number" and v < least and "too small: " .. v
  end,
  -- The schemas' patterns use only anchors, classes, + and ( )?, which Lua's
  -- patterns can express.
  pattern = function(v, text)
    if text == "^[0-9]+(:[0-9]+)?$" then
      return not v:find "^%d+$" and not v:find "^%d+:%d+$" and v
    end
    return not v:find((text:gsub("%-%]", "%%-]"))) and v .. " is no " .. text
  end,
  minItems = function(v, n) return #v < n and "too short" end,
  maxItems = function(v, n) return #v > n and "too long" end,
  required = function(v, names)
    for _, name in ipairs(names) do
      if v[name] == nil then return "no " .. name end
    end
  end,
  items = function(v, one, root, path)
    for i, x in ipairs(v) do
      check(x, one, root, ("%s[%d]"):format(path, i))
    end
  end,
  properties = function(v, by, root, path)
    for name, one in pairs(by) do
      if v[name] ~= nil then
        check(v[name], one, root, path .. "." .. name)
      end
    end
  end,
}

function check(v, one, root, path)
  local ref = one["$ref"]
  if ref then
    return check(v, root["$defs"][ref:match "^#/%$defs/(%w+)$"], root, path)
  end
  for keyword, value in pairs(one) do
    if keyword == "additionalProperties" then
      assert(value == false)
      for name in pairs(v) do
        assert(one.properties[name], path .. ": unknown " .. tostring(name))
      end
    elseif not ANNOTATIONS[keyword] then
      local f = assert(KEYWORDS[keyword], "no keyword " .. keyword)
      local wrong = f(v, value, root, path)
      assert(not wrong, path .. ": " .. tostring(wrong))
    end
  end
end

--- Raises an error that names the path of a value that does not fit a schema.
---@param v any of dkjson
---@param root table the schema, of dkjson
function schema.check(v, root) check(v, root, root, "$") end

return schema
-- SPDX-License-Identifier: MIT
