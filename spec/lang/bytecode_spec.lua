-- luacheck: ignore 113 111 112 21. 231 311 (functions to read, not to run)
-- Tests what cutelua reads from the bytecode of a function (string.dump), and
-- that it can tell whether it understands the bytecode of this version of Lua.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"

describe("the code of a Lua function", function()
  it("is known, and a wrong idea of it is found out", function()
    assert.is_true(bytecode.known())
    local function f()
      local a, b = 1, 2
      a = b
    end
    local dump = string.dump(f, true)
    local right
    -- Tries the code at each offset of the dump. One of them has the code LOADI
    -- LOADI MOVE RETURN0.
    for at = 1, #dump - 16 do
      right = right or core.vm_trial(f, dump:sub(at, at + 15))
    end
    assert.is_true(right)
    assert.is_false(core.vm_trial(f, ("\0"):rep(16)))
    assert.is_false(core.vm_trial(f, ""))
    assert.is_false(core.vm_trial(f, dump))
    assert.is_false(core.vm_trial(error, dump))
    for _ = 1, 100 do f() end
  end)

  it("has the constants that it compares with", function()
    local function f(x)
      return x == "a", x == 1.5, x == nil, x == true, x == false, x == 1 << 40,
        x == ("long"):rep(2)
    end
    local seen = {}
    for i = 0, 6 do
      local k = bytecode.constant(f, i)
      seen[#seen + 1] = math.type(k) and k or tostring(k)
    end
    assert.same({"a", 1.5, "nil", "true", "false", 1 << 40, "long"}, seen)
    assert.is_nil(bytecode.constant(f, 1000))
    assert.is_nil(bytecode.constant(print, 0))
  end)

  it("that is empty, or only returns", function()
    assert.equal("empty", bytecode.idle(function() end))
    assert.equal("empty", bytecode.idle(function(a, b, ...) end))
    assert.equal("return", bytecode.idle(function() return end))
    assert.equal("return", bytecode.idle(function(...) do return end end))
    local x = 1
    for _, f in ipairs {function() return x end, function() x = 2 end,
                        function() return nil end, function() f() end,
                        function() local y end, print} do
      assert.is_nil(bytecode.idle(f))
    end
  end)

  it("shows its use of upvalues, also in inner functions", function()
    local read, set, tab = 1, 2, {}
    local function f()
      local mine = read + GLOBAL_A
      GLOBAL_B = mine
      mine = GLOBAL_B
      return function()
        set = GLOBAL_C
        mine = tab.field
        return function() tab.other = GLOBAL_A end
      end
    end
    local by_name = {}
    local uses = bytecode.upvalues(f)
    for i = 1, 4 do by_name[debug.getupvalue(f, i)] = uses[i] end
    assert.same({
      read = {whole = true, balance = 1, keys = {}},
      set = {set = true, balance = -1, keys = {}},
      tab = {balance = 0, keys = {field = true, other = false}},
      _ENV = {balance = 0,
              keys = {GLOBAL_A = true, GLOBAL_B = false, GLOBAL_C = true}},
    }, by_name)
    assert.is_nil(bytecode.upvalues(print))
  end)
end)
-- SPDX-License-Identifier: MIT
