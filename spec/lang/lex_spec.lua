-- Tests cute.lang.lex, which finds the names that lines assign. A second
-- algorithm, which works on tokens, must find the same names.
local lex = require "cute.lang.lex"
local tokens = require "cutelua.text.tokens"

-- Adds to `names` the names in the list that ends before token t[i], an `=`.
local function names_before(t, i, names)
  repeat
    i = i - 1
    if not (t[i] and t[i].name) then return end
    names[#names + 1] = t[i].text
    i = i - 1
  until not t[i] or t[i].text ~= ","
end

local function by_tokens(text)
  local lines, t = {}, tokens.of(text)
  for i, token in ipairs(t) do
    if token.text == "=" then
      lines[token.line] = lines[token.line] or {}
      names_before(t, i, lines[token.line])
    end
  end
  return lines
end

describe("names that lines assign", function()
  it("are found among operators, strings and comments", function()
    assert.same({[1] = {"b", "a"}, [2] = {"d", "c"}, [5] = {"e"}, [6] = {"f"},
                 [7] = {"y", "h"}, [9] = {}},
      lex.assigned(table.concat({
        "local a, b = 1 == 2, 3",
        "a.c, d = x <= y, x ~= y or x >= y",
        "-- no = 1",
        "e --[[ z = 2",
        "]] = 'x = 1' .. \"\\\" = \" .. [==[",
        "g = ]] 1 ]==] f = 2",
        "x, 5, y = 1 local h <const>, h= 2",
        "return a == b, -a - b",
        "t[1] = 2"}, "\n")))
  end)

  it("agree with the tokens, in the scripts and in kernels", function()
    local n = 0
    for path in io.popen "ls scripts/*.lua kernels/*.lua":lines() do
      local file <close> = io.open(path)
      local text = file:read "a"
      assert.same(by_tokens(text), lex.assigned(text), path)
      n = n + 1
    end
    assert.is_true(n > 20)
  end)

  it("take no quadratic time on one line #long", function()
    local function seconds(text)
      local best = math.huge
      for _ = 1, 3 do
        local began = os.clock()
        assert.equal(1 << 18, #tokens.of(text))
        best = math.min(best, os.clock() - began)
      end
      return best
    end
    collectgarbage "generational"
    local one = seconds(("x."):rep(1 << 17))
    local many = seconds(("x.\n"):rep(1 << 17))
    collectgarbage "incremental"
    assert.is_true(one < 4 * many, ("%.2f s, %.2f s"):format(one, many))
  end)
end)
-- SPDX-License-Identifier: MIT
