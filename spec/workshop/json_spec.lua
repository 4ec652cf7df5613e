-- Tests cutelua.text.json: decode() must read the JSON that dkjson and encode()
-- write, and reject text that is not JSON.
local dkjson = require "dkjson"
local json = require "cutelua.text.json"

describe("cutelua.text.json", function()
  it("reads what dkjson writes", function()
    local all = {}
    for i = 0, 127 do all[i + 1] = string.char(i) end
    local value = {list = {1, -2.5, 1e300, 0, true, false, {}},
      text = table.concat(all) .. "\u{e9}\u{20ac}\u{1f600}\u{10ffff}",
      [""] = {{{}}}, ['"\\/'] = "", big = math.maxinteger}
    assert.same(value, json.decode(dkjson.encode(value)))
    assert.same(value, json.decode(json.encode(value)))
    assert.same(value, json.decode(dkjson.encode(value, {indent = true})))
  end)

  it("reads escapes of JavaScript", function()
    assert.equal("\u{1f600} \u{fffd}! \u{fffd}\u{e000} /\b\f\0",
      json.decode [["\ud83d\ude00 \ud83d! \uDE00\ue000 \/\b\f\u0000"]])
  end)

  it("has numbers as Lua has them", function()
    assert.equal("integer", math.type(json.decode "12"))
    assert.equal("float", math.type(json.decode "12.0"))
    assert.equal(-1.5e-3, json.decode " -1.5E-3 ")
  end)

  -- Returns a value as text that shows the subtypes of numbers.
  local function written(v)
    if type(v) ~= "table" then
      return (math.type(v) or type(v)) .. " " .. tostring(v)
    end
    local out = {}
    for k, x in pairs(v) do
      out[#out + 1] = ("%s=%s"):format(written(k), written(x))
    end
    table.sort(out)
    return "{" .. table.concat(out, ",") .. "}"
  end

  it("reads difficult valid texts as dkjson does #long", function()
    for _, text in ipairs {"-0", "-0.0", "1e400", "-1E+400", "1e-400", "0.1",
        "5e-324", "1.7976931348623157e308", "12345678901234567890",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808",
        '{"a":1,"a":2}', '{"a":1,"a":null}', '{"":{"":{}},"1":1,"-":[]}',
        "[1,null,3]", "[null]", '[[],{},"",null,true,false,0]',
        '"\\u0000\\u001f\\u007f\\u00e9\\uFFFF"', '"\\uD834\\uDd1e"',
        '"\\\\u0041"', '"\127\u{10ffff}"', " \t\r\n[ 1 , 2 ]\n",
        ("["):rep(100) .. ("]"):rep(100),
        ('{"a":'):rep(99) .. "1" .. ("}"):rep(99),
        '"' .. ("\\n"):rep(100000) .. '"', "[" .. ("0,"):rep(99999) .. "0]"} do
      local want, _, message = dkjson.decode(text)
      assert.is_nil(message)
      assert.equal(written(want), written((json.decode(text))), text:sub(1, 40))
    end
  end)

  it("reads no text otherwise than dkjson, whatever is changed in it",
    function()
      math.randomseed(7)
      local random = math.random
      local TEXT = '{"a":[1,-2.5e+3,0.25,{"b\\n\\u00e9\\ud83d\\ude00":null}],'
        .. '"c":true,"":[[],{}],"d":"x\\\\\\"/","e":false}'
      local PIECES = {"", "", "[", "]", "{", "}", ",", ":", '"', "\\", "0", "1",
                      ".", "e", "-", "+", "null", "u", " ", "/", "\0", "\xff"}
      local read = 0
      for _ = 1, 8000 do
        local text = TEXT
        for _ = 1, random(3) do
          local at = random(#text)
          text = text:sub(1, at - 1) .. PIECES[random(#PIECES)]
            .. text:sub(at + random(2) - 1)
        end
        local got, why = json.decode(text)
        if why then
          assert.truthy(why:find "^no JSON: byte %d+: [^\n]+$", why)
        elseif not text:lower():find "\\ud" or text:find "\\ud83d\\ude00" then
          read = read + 1
          assert.equal(written((dkjson.decode(text))), written(got), text)
        end
      end
      assert.is_true(read > 500, read)
    end)

  it("reports the position of an error", function()
    for text, why in pairs {
        [""] = "byte 1: a value expected",
        ["[1,]"] = "byte 4: a value expected",
        ["[1"] = "byte 3: ',' or ']' expected",
        ['{"a" 1}'] = "byte 5: ':' expected", ["{1:2}"] = "byte 2: a name "
          .. "expected", ['"x'] = "byte 3: an unfinished string",
        ['"\\x"'] = "byte 2: no such escape", ["01"] = "byte 1: a value "
          .. "expected", ["1 2"] = "byte 3: text after the value",
        nul = "byte 1: a value expected", null1 = "byte 5: text after "
          .. "the value", truefalse = "byte 1: a value expected",
        ["1."] = "byte 1: a value expected", ["[1.e5]"] = "byte 2: a value "
          .. "expected", [".5"] = "byte 1: a value expected",
        ["+1"] = "byte 1: a value expected", ["1e+"] = "byte 1: a value "
          .. "expected", ["-01"] = "byte 1: a value expected",
        ["0x10"] = "byte 2: text after the value",
        NaN = "byte 1: a value expected", ["[1]]"] = "byte 4: text after "
          .. "the value", ["[1]/**/"] = "byte 4: text after the value",
        ["1\0"] = "byte 2: text after the value",
        ["\u{feff}1"] = "byte 1: a value expected",
        ['"\\u12"'] = "byte 2: no such escape", ['"\\u+123"'] = "byte 2: no "
          .. "such escape", ['"\\"'] = "byte 4: an unfinished string",
        ['{"a":1,}'] = "byte 8: a name expected", ["{a:1}"] = "byte 2: a name "
          .. "expected", ["[1;2]"] = "byte 3: ',' or ']' expected",
        [("["):rep(200)] = "byte 101: too many levels"} do
      assert.same({nil, "no JSON: " .. why}, {json.decode(text)})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
