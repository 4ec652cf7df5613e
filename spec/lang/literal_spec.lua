-- Tests the reader of Lua tables as data. It must return the value that Lua
-- itself evaluates, and reject anything that is not data.
local literal = require "cutelua.text.literal"
local tables = require "cutelua.tune.tables"

local state = 11
local function random(n)
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % n
end

local WORDS = {"1", "-7", "0x1F", "2.5", "-1e300", "0x.8p4", "true", "false",
  "'a'", [["b\n\\\"\65\x41c"]], "''", "9223372036854775807", "1e308",
  [["--[["]]}
local SPACE = {"", " ", "\n", "\t-- a comment\n", " --\n "}
local function space() return SPACE[random(#SPACE) + 1] end

-- Returns the text of a table, with random space and comments between its
-- parts.
local function text_of(level)
  if level == 0 or random(3) == 0 then return WORDS[random(#WORDS) + 1] end
  local out = {"{"}
  for i = 1, random(5) do
    local key = ({"", ("k%d = "):format(i), ("[%d]%s="):format(i * 3, space()),
                  ('["w %d"] ='):format(i)})[random(4) + 1]
    out[#out + 1] = space() .. key .. space() .. text_of(level - 1) .. space()
      .. (random(2) == 0 and "," or ";")
  end
  return table.concat(out) .. space() .. "}"
end

describe("a table that is read as data", function()
  it("equals Lua's own evaluation", function()
    for _ = 1, 2000 do
      local text = space() .. "return" .. (" " .. space()) .. text_of(4)
        .. space()
      local value, why = literal.read(text)
      assert.is_nil(why, text)
      assert.same(load(text, "=x", "t", {})(), value)
    end
  end)

  it("has no calls, names or endless parts", function()
    local good = "return {1}"
    assert.same({1}, literal.read(good))
    for _, text in ipairs {"", "return", "{1}", "--[[\n" .. good .. "\n]]",
        "return --[==[ ]==] {}", good .. " while true do end",
        "while true do end " .. good, "return {print()}", "return {os.exit()}",
        "return (function() end)()", "return {x}", "return {1 + 1}",
        "return {'a' .. 'b'}", "return {#'a'}", "return {-'1'}",
        "return {nil}", "return {[nil] = 1}", "return {[{}] = 1}",
        "return {[0/0] = 1}", "return {0x}", "return {1e}", "return {1..2}",
        "return {a =}", "return {= 1}", "return {,}", "return {1 2}",
        "return {['a' = 1}", "return {'a", "return {'\\", "return {'\\999'}",
        "return {'\\q'}", "return {[[a]]}", "return {{}", "\27Lua",
        "return {} {}", "return {}.x", "return {}, {}", "local x return {}",
        "\xEF\xBB\xBFreturn {}"} do
      local value, why = literal.read(text)
      assert.is_nil(value, text)
      assert.matches("^line %d+: .+, got .+$", why)
    end
  end)

  it("has an end to its levels, in keys too", function()
    for _, piece in ipairs {"{", "{[", "{a={", "{{},[{"} do
      for _, n in ipairs {150, 200000} do
        local value, why = literal.read("return " .. piece:rep(n))
        assert.is_nil(value)
        assert.matches("^line 1: .+, got", why)
        assert.is_true(#why < 100)
      end
    end
    assert.is_table(literal.read("return " .. ("{"):rep(90) .. ("}"):rep(90)))
  end)

  it("of the tuner with invalid values is found by our check only", function()
    local table_ = 'return {format = 1, card = "c", arch = "sm_90a", sms = 1,\n'
      .. 'gemm = {["a"] = {{1, 2, 3, 4.0, 5.0, "c"}}}}'
    assert.equal("c", tables.parse(table_).card)
    for _, text in ipairs {"--[[\n" .. table_ .. "\n]] while true do end",
        table_ .. "\nwhile true do end", "while true do end\n" .. table_} do
      assert.is_nil(tables.parse(text))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
