-- Tests docs/launch.schema.json against the keys that launch.lua accepts, and
-- against all LAUNCH examples of documents and specs. This file has its own
-- checker of JSON Schema, so it needs no package. The checker fails on keywords
-- that it does not know. If python3-jsonschema is installed, it must give the
-- same results as the checker.
local json = require "cutelua.text.json"
local launch = require "cutelua.ptx.launch"
local support = require "spec.support"

local schema = json.decode(support.read "docs/launch.schema.json")

---------------------------------------------------------------------------
-- The checker
---------------------------------------------------------------------------

local function is_list(v) return type(v) == "table" and next(v) == nil
  or type(v) == "table" and v[1] ~= nil end
local function is_object(v) return type(v) == "table"
  and (next(v) == nil or v[1] == nil) end

local TYPES = {array = is_list, object = is_object,
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  number = function(v) return math.type(v) ~= nil end,
  integer = function(v)
    return math.type(v) ~= nil and math.tointeger(v) ~= nil
  end}

-- Matches the regular expressions of the schema, which contain ^, $, classes,
-- +, *, ?, and groups with alternatives. They are translated to lists of Lua
-- patterns.
local function matches(text, regex)
  local function expand(r)
    local before, group, star, after = r:match "^(.-)(%b())(%*?)(.*)$"
    if not group then return {r} end
    local out = {}
    if star == "*" then
      local one = group:sub(2, -2)
      for n = 0, 400 do out[#out + 1] = before .. one:rep(n) .. after end
      return out
    end
    for word in group:sub(2, -2):gsub("%b()", function(g)
      return (g:gsub("|", "\1"))
    end):gmatch "[^|]+" do
      for _, x in ipairs(expand(before .. word:gsub("\1", "|") .. after)) do
        out[#out + 1] = x
      end
    end
    return out
  end
  for _, pattern in ipairs(expand(regex)) do
    if text:find(pattern) then return true end
  end
  return false
end

local valid

local function count(t)
  local n = 0
  for _ in pairs(t) do n = n + 1 end
  return n
end

local KEYWORDS = {
  ["$schema"] = true, ["$defs"] = true, title = true, description = true,
  ["$ref"] = function(v, path)
    local s = schema
    for step in path:gsub("^#/", ""):gmatch "[^/]+" do s = s[step] end
    return valid(v, assert(s, path))
  end,
  type = function(v, types)
    for _, t in ipairs(type(types) == "table" and types or {types}) do
      if TYPES[t](v) then return true end
    end
    return false
  end,
  enum = function(v, list)
    for _, x in ipairs(list) do if x == v then return true end end
    return false
  end,
  anyOf = function(v, list)
    for _, s in ipairs(list) do if valid(v, s) then return true end end
    return false
  end,
  minimum = function(v, n) return math.type(v) == nil or v >= n end,
  minItems = function(v, n) return not is_list(v) or #v >= n end,
  maxItems = function(v, n) return not is_list(v) or #v <= n end,
  minProperties = function(v, n) return not is_object(v) or count(v) >= n end,
  maxProperties = function(v, n) return not is_object(v) or count(v) <= n end,
  pattern = function(v, p) return type(v) ~= "string" or matches(v, p) end,
  items = function(v, s)
    for _, x in ipairs(is_list(v) and v or {}) do
      if not valid(x, s) then return false end
    end
    return true
  end,
  propertyNames = function(v, s)
    for k in pairs(is_object(v) and v or {}) do
      if not valid(k, s) then return false end
    end
    return true
  end,
  required = function(v, list)
    for _, k in ipairs(is_object(v) and list or {}) do
      if v[k] == nil then return false end
    end
    return true
  end,
  properties = true, patternProperties = true,  -- members() checks these three
                                                -- keywords
  additionalProperties = true,
}

-- Checks an object's members by properties, patternProperties and
-- additionalProperties.
local function members(v, s)
  for k, x in pairs(v) do
    local own = s.properties and s.properties[k]
    local seen = own ~= nil
    if own and not valid(x, own) then return false end
    for p, of in pairs(s.patternProperties or {}) do
      if matches(k, p) then
        seen = true
        if not valid(x, of) then return false end
      end
    end
    local rest = s.additionalProperties
    if not seen and rest ~= nil
        and (rest == false or not valid(x, rest)) then
      return false
    end
  end
  return true
end

function valid(v, s)
  for keyword, value in pairs(s) do
    local check = assert(KEYWORDS[keyword], keyword)
    if check ~= true and not check(v, value) then return false end
  end
  local objects = s.properties or s.patternProperties or s.additionalProperties
  return not (objects and is_object(v)) or members(v, s)
end

---------------------------------------------------------------------------
-- The examples
---------------------------------------------------------------------------

-- Returns the LAUNCH files in the text of documents and of other specs. (This
-- spec has wrong ones.)
local function examples()
  local list = {}
  local p <close> = io.popen "ls docs/*.md spec/ptx/[!s]*.lua"
  for path in p:lines() do
    for text in support.read(path):gmatch "%b{}" do
      local ok, v = pcall(json.decode, text)
      if ok and type(v) == "table" and (v.args or v.launches) then
        list[#list + 1] = {path = path, text = text, value = v}
      end
    end
  end
  return list
end

-- {LAUNCH, whether it is valid}
local CASES = {
  {'{}', true}, {'{"gird": 1}', false}, {'{"grid": 0}', false},
  {'{"grid": [1, 2, 3, 4]}', false}, {'{"grid": "x"}', false},
  {'{"smem": 1.5}', false}, {'{"smem": -1}', false}, {'{"args": "x"}', false},
  {'{"args": [1, 2.5, true, "x", {"f32": 1}, {"u8": true}]}', true},
  {'{"args": [{"f16": 1}]}', false}, {'{"args": [{"f32": "x"}]}', false},
  {'{"args": [{"f32": 1, "f64": 2}]}', false}, {'{"args": [[1]]}', false},
  {'{"args": [{"bytes": "00fF"}]}', true},
  {'{"args": [{"bytes": "0"}]}', false},
  {'{"args": [{"bytes": "xy"}]}', false}, {'{"args": [{"byte": "00"}]}', false},
  {'{"args": [{"fields": {"0": "x", "8": {"i32": 4}}}]}', true},
  {'{"args": [{"fields": {"x": 1}}]}', false},
  {'{"args": [{"map": {"tensor": "x", "box": [8, 8], "swizzle": 32}}]}', true},
  {'{"args": [{"map": {"tensor": "x", "bytes": "00"}}]}', true},
  {'{"args": [{"map": {"box": [8, 8]}}]}', false},
  {'{"args": [{"map": {"tensor": "x", "box": 8}}]}', false},
  {'{"args": [{"map": {"tensor": "x", "swizzle": 16}}]}', false},
  {'{"args": [{"tensor": {"shape": 8, "fill": [0, 9], "seed": 1}}]}', true},
  {'{"memory": {"x": {"shape": [2, 3], "strides": [3, 1]}}}', true},
  {'{"memory": {"x": {"shape": 2, "strides": 3, "dtype": "u8"}}}', true},
  {'{"memory": {"x": {"fill": 1}}}', false}, {'{"memory": {"x": 1}}', false},
  {'{"memory": {"x": {"shape": 0}}}', false},
  {'{"memory": {"x": {"shape": 3, "fill": "ones"}}}', false},
  {'{"memory": {"x": {"npy": "x.npy"}}}', true},
  {'{"launches": [{"entry": "a"}, {"grid": 2}]}', true},
  {'{"launches": [{"memory": {}}]}', false}, {'{"launches": {"a": 1}}', false},
  {'{"expect": {"x": {"values": [1], "tolerance": 0.5}}}', true},
  {'{"expect": {"x": {"value": [1]}}}', false},
  {'{"symbols": {"c": "07000000"}}', true}, {'{"symbols": {"c": 7}}', false},
  {'{"arch": "sm_90a", "include": ["."], "define": {"N": 4, "D": true}}', true},
  {'{"arch": "90"}', false}, {'{"include": "."}', false},
}

describe("the schema of LAUNCH files", function()
  it("has the keys that launch.lua accepts, with the same types", function()
    local NAMES = {array = "list", object = "object", string = "string",
                   number = "number", integer = "integer", boolean = "boolean"}
    -- Adds the types that schema s allows to the set `set`.
    local function types_of(s, set)
      if s["$ref"] then
        local at = schema
        for step in s["$ref"]:gsub("^#/", ""):gmatch "[^/]+" do
          at = at[step]
        end
        return types_of(at, set)
      end
      for _, x in ipairs(s.anyOf or {}) do types_of(x, set) end
      for _, x in ipairs(s.enum or {}) do
        set[math.type(x) or type(x)] = true
      end
      for _, t in ipairs(type(s.type) == "table" and s.type or {s.type}) do
        set[NAMES[t]] = true
      end
      return set
    end
    for name, form in pairs(launch.FORMS) do
      local of = name == "file" and schema or schema["$defs"][name]
      local got = {}
      for k, s in pairs(of.properties) do got[k] = types_of(s, {}) end
      local want = {}
      for k, types in pairs(form) do
        want[k] = {}
        for t in types:gmatch "%a+" do want[k][t] = true end
      end
      assert.same(want, got, name)
      assert.is_false(of.additionalProperties)
    end
    for name in pairs(launch.SCALARS) do
      assert.is_true(valid({args = {{[name] = 1}}}, schema), name)
    end
    assert.is_false(valid({args = {{bf16 = 1}}}, schema))
  end)

  it("describes all examples of documents and specs", function()
    local list = examples()
    for _, e in ipairs(list) do
      assert.is_true(valid(e.value, schema), ("%s: %s"):format(e.path, e.text))
    end
    assert.is_true(#list >= 3)
  end)

  it("tells right from wrong", function()
    for _, case in ipairs(CASES) do
      assert.equal(case[2], valid(json.decode(case[1]), schema), case[1])
    end
  end)

  it("is read by python3-jsonschema in the same way", function()
    if not os.execute "python3 -c 'import jsonschema' 2>/dev/null" then
      pending "needs python3-jsonschema"
      return
    end
    local texts = {}
    for i, case in ipairs(CASES) do texts[i] = case[1] end
    for _, e in ipairs(examples()) do texts[#texts + 1] = e.text end
    local out = support.exec {"python3", "-c", [[
import json, sys
from jsonschema import Draft202012Validator as V
schema = json.load(open("docs/launch.schema.json"))
V.check_schema(schema)
for text in sys.argv[1:]:
    print("1" if V(schema).is_valid(json.loads(text)) else "0")]],
      table.unpack(texts)}
    local i = 0
    for verdict in out:gmatch "%d" do
      i = i + 1
      local case = CASES[i]
      local want = not case or case[2]
      assert.equal(want, verdict == "1", texts[i])
    end
    assert.equal(#texts, i)
  end)
end)
-- SPDX-License-Identifier: MIT
