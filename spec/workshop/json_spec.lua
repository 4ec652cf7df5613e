-- cute.json reads what dkjson and cute.json itself write, and nothing else.
local dkjson = require "dkjson"
local json = require "cute.json"

describe("cute.json", function()
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

  it("says where a text is no JSON", function()
    for text, why in pairs {
        [""] = "byte 1: a value expected",
        ["[1,]"] = "byte 4: a value expected",
        ["[1"] = "byte 3: ',' or ']' expected",
        ['{"a" 1}'] = "byte 5: ':' expected", ["{1:2}"] = "byte 2: a name "
          .. "expected", ['"x'] = "byte 3: a string without an end",
        ['"\\x"'] = "byte 2: no such escape", ["01"] = "byte 1: a value "
          .. "expected", ["1 2"] = "byte 3: more behind its end",
        nul = "byte 1: a value expected",
        [("["):rep(200)] = "byte 101: too many levels"} do
      assert.same({nil, "no JSON: " .. why}, {json.decode(text)})
    end
  end)
end)
