-- What the program says of scripts that mean something else: names that there
-- are not, kernels that are called and never launched.
local support = require "spec.support"

local HEAD = [[
local cute = require "cute"
local t = cute.zeros({4, 4}, cute.f32)
]]

local function said(text)
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write(HEAD, text)
  f:close()
  local _, err, code = support.exec {support.program, path}
  os.remove(path)
  return (err:gsub(path:gsub("%p", "%%%0"), "SCRIPT")), code
end

local LAUNCH = "k(t):launch {grid = 1, block = 32, device = 'sim'}\n"

describe("a script", function()
  it("is told which name is nil, and which was meant", function()
    for text, want in pairs {
      ["print(cute.size(T))"] = "(did you mean t?)",
      ["cute.zeros({4}, f32)"] = "'f32' is nil: no local or global has that "
        .. "name (did you mean cute.f32?)",
      ["for i = 0, len(t) do end"] = "(did you mean #list, cute.size(x)?)",
      ["xyzzy.a = 1"] = "'xyzzy' is nil: no local or global has that name\n",
      ["local k = cute.kernel('k', function(gC) local x = gc[0] end)\n"
        .. LAUNCH] = "'gc' is nil: no local or global has that name (did you "
        .. "mean gC?)",
      ["local k = cute.kernel('k', function(gC) local atom\n"
        .. "cute.copy(atm, gC, gC) end)\n" .. LAUNCH] = "'atm' is nil: no "
        .. "local or global has that name (did you mean atom?)",
    } do
      local err, code = said(text)
      assert.truthy(err:find(want, 1, true), err)
      assert.equal(1, code)
    end
  end)

  it("is not told so where nil is a local's value, or a field's", function()
    for _, text in ipairs {"local T; print(cute.size(T))",
                           "local p = {}; print(cute.size(p.T))",
                           "print(cute.size(nil)) -- T\n"} do
      local err = said(text)
      assert.truthy(err:find("got nil", 1, true), err)
      assert.is_nil(err:find("no local or global", 1, true), err)
    end
  end)

  it("is told of a kernel that is called and never launched", function()
    local err, code = said(
      "local add = cute.kernel('add', function(x) end)\n\nadd(t)\nadd(t)\n")
    assert.equal("cutelua: note: SCRIPT:5: kernel add was called and never "
      .. "launched: write add(...):launch {grid = g, block = b}\n", err)
    assert.equal(0, code)
    assert.equal("cutelua: note: SCRIPT:4: kernel add was called and never "
      .. "launched: write add(...):launch {grid = g, block = b}\n", (said(
        "for _ = 1, 3 do\n  cute.kernel('add', function(x) end)(t)\nend\n")))
  end)

  it("is told nothing of kernels that are launched or asked", function()
    assert.equal("", (said([[
      local function new(name)
        return cute.kernel(name, function(x) x[0] = 1 end)
      end
      local one, run = new "k", {grid = 1, block = 1, device = "sim"}
      one(t):launch(run)
      local call = one(t)
      local kept = new "later"(t)
      new "prepared"(t):compile(run):launch()
      cute.compile(new "compiled", t, run)
      new "traced"(t):trace {block = 1}
      new "profiled"(t):profile(run)
      new "estimated"(t):estimate {grid = 1, block = 1, card = "h200"}
      pcall(function() new "wrong"(t):launch {gird = 1, block = 1} end)
      kept:launch(run)
      local never = new "never"
    ]])))
  end)
end)
