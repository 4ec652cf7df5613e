-- Tests the program's messages for likely mistakes: names that do not exist,
-- and kernels that are called but never launched.
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
  it("gets the name that is nil, and the likely one", function()
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

  it("gets no suggestion for a nil local or field", function()
    for _, text in ipairs {"local T; print(cute.size(T))",
                           "local p = {}; print(cute.size(p.T))",
                           "print(cute.size(nil)) -- T\n"} do
      local err = said(text)
      assert.truthy(err:find("got nil", 1, true), err)
      assert.is_nil(err:find("no local or global", 1, true), err)
    end
  end)

  it("gets the field or element that is nil, and the likely one", function()
    for text, want in pairs {
      ["local k = require 'kernels.softmax' {n = 8, dtype = cute.f32}\n"
        .. "k.kernle(t, t)"] = "'k.kernle' is nil: did you mean k.kernel?",
      ["print(os.clok())"] = "'os.clok' is nil: did you mean os.clock?",
      ["local o = {tile = 1, n = 3}\ncute.zeros({o.m, 4}, cute.f32)"] =
        "'o.m' is nil: o has n tile",
      ["local s = 'x'\nprint(s:fnd 'y')"] = "'s.fnd' is nil: did you mean "
        .. "s.find?",
      ["local l = {}\nprint(l.x.y)"] = "'l.x' is nil: l has no fields with "
        .. "names",
      ["local xs = {1, 2}\nxs[3].y = 1"] = "'xs[3]' is nil: a list counts "
        .. "from 1, and xs has 2",
      ["local xs, i = {8, 4}, 0\nprint(cute.make_layout(xs[i]))"] =
        "'xs[i]' is nil: a list counts from 1, and xs has 2",
      ["local k = cute.kernel('k', function(...)\nlocal xs = {...}\n"
        .. "xs[2][0] = 1 end)\n" .. LAUNCH] = "'xs[2]' is nil: a list counts "
        .. "from 1, and xs has 1",
      ["for i in 4 do end"] = "write for i, v in ipairs(list) do; for",
      ["for v in t do end"] = "write for i, v in ipairs(list) do; for",
      ["print(unpack {1})"] = "(did you mean table.unpack?)",
      ["local k = cute.kernel('k', function(x)\nx[threadIdx.x] = 1 end)\n"
        .. LAUNCH] = "(did you mean local x, y, z = cute.arch.thread_idx()?)",
      ["thread_idx()"] = "(did you mean cute.arch.thread_idx?)",
    } do
      local err = said(text)
      assert.truthy(err:find("\n      " .. want, 1, true)
        or err:find(want, 1, true), text .. err)
    end
  end)

  it("gets no names that an unrelated function does not use", function()
    local err = said("local k = cute.kernel('k', function(x) x[0] = os.clok() "
      .. "end)\n" .. LAUNCH)
    assert.is_nil(err:find("'cute' is nil", 1, true), err)
  end)

  it("gets a suggestion of what to write instead", function()
    local function kernel(body, opts)
      return "local k = cute.kernel('k', function(x)\n" .. body .. "\nend)\n"
        .. "k(t):launch {" .. (opts or "grid = 1, block = 32, device = 'sim'")
        .. "}\n"
    end
    for text, want in pairs {
      ["print(#t)"] = "write cute.size(x)",
      ["for i, v in pairs(t) do end"] = "for i = 0, cute.size(t) - 1 do",
      ["for i, v in ipairs(t) do end"] = "for a tensor's t[i], for i = 0, "
        .. "cute.size(t) - 1 do",
      ["cute:make_layout {8}"] = "cute.make_layout was called with ':', which "
        .. "passes its table as the first argument",
      ["cute:kernel('k', print)"] = "write cute.kernel(...)",
      [kernel "local i = cute.arch:thread_idx()"] =
        "write cute.arch.thread_idx(...)",
      [kernel "x[cute.arch.thread_idx.x] = 1"] =
        "call it: local x, y, z = cute.arch.thread_idx()",
      [kernel "cute.copy(x, x)"] = "write cute.copy(atom, src, dst), or "
        .. "cute.autovec_copy(src, dst), which needs no atom",
      [kernel("x[0] = 1", "grid = 1")] = "the block is missing",
      [kernel("x[0] = 1", "block = 1")] = "the grid is missing",
      [kernel("total = x[0]", "grid = 1, block = 1, device = 'sim'")
        .. "print(total + 1)"] = "write it to a tensor that is an argument, "
        .. "and read that after the launch",
      [kernel("x[0] = x[0] + 1", "grid = 1, block = 64, device = 'sim'")] =
        "from many threads, use an atomic (cute.arch.atomic_add)",
      ["local k = cute.kernel('k', function(x) end)\nk.launch {grid = 1}"] =
        "write k(arguments...):launch {grid = g, block = b}",
    } do
      local err, code = said(text)
      assert.truthy(err:find(want, 1, true), text .. err)
      assert.equal(1, code)
    end
  end)

  it("gets a note about a kernel's return value", function()
    local one = ":launch {grid = 1, block = 1, device = 'sim'}"
    for body, told in pairs {["return x[0]"] = true, ["return 1"] = false,
        ["x[0] = 1 return nil, x:load()"] = true, ["return x"] = false} do
      local err, code = said("local k = cute.kernel('k', function(x)\n" .. body
        .. "\nend)\nk(t)" .. one)
      assert.equal(told and "cutelua: warning: kernel k: line 5: the kernel "
        .. "returns a traced value, which a launch cannot return: write it to "
        .. "a tensor argument\n" or "", err)
      assert.equal(0, code)
    end
  end)
end)

describe("a script", function()
  it("may print traced values and the parts of a tuple", function()
    local path = support.write(os.tmpname(), HEAD, [[
      local k = cute.kernel("k", function(x)
        local v = x[0]
        print(v, tostring(v))
        x[0] = v + 1
      end)
      k(t):launch {grid = 1, block = 1, device = "sim"}
      for i, v in pairs(t.shape) do print(i, v) end
    ]])
    local out, err = support.exec {support.program, path}
    os.remove(path)
    assert.equal("", err)
    assert.equal("traced f32 'v' (line 4): cute.printf prints it\t"
      .. "traced f32 'v' (line 4)\n1\t4\n2\t4\n", out)
  end)

  it("gets the likely module, not the search path", function()
    for name, want in pairs {
      ["cute.cli"] = 'it is a field: local cute = require "cute", then '
        .. "cute.cli",
      ["cute.tile"] = "nearest: cute.tiles",
      ["kernels.gemm"] = "nearest: kernels.gemm_atom kernels.gemm_block_",
      ["kernels.sofmax"] = "nearest: kernels.softmax",
      ["cutlass"] = 'it is a field: local cute = require "cute", then cute',
      ["nvgpu.warp"] = "nearest: cute.arch.warp "
        .. "cute.nvgpu.sm80.warp",
      ["mine.own"] = "package.path and package.cpath have no file mine/own.lua",
    } do
      local err = said(("require %q"):format(name))
      assert.equal(("cutelua: module '%s' not found [lua]"):format(name),
                   err:match "^[^\n]*")
      assert.truthy(err:find("\n      " .. want, 1, true), err)
      assert.is_nil(err:find("no file '", 1, true), err)
    end
  end)

  it("gets the likely name of a module, at the reading line", function()
    for text, want in pairs {
      ["print(require 'kernels.norm'.rmsnorm)"] = "kernels.norm has no "
        .. "'rmsnorm'",
      ["print(require 'kernels.gemm_skinny'.candidate)"] =
        "nearest: candidates",
      ["print(require 'cute.tiles'.epilog)"] = "nearest: epilogue",
      ["print(require 'cute.pipeline'.PipelineTmaAsnc)"] =
        "nearest: PipelineTmaAsync",
      ["print(require 'cutelua.bench.harness'.runs)"] = "nearest: run",
      ["print(require 'kernels.gemm_sm80'.body)"] =
        "kernels.gemm_sm80 is a function, which has no field 'body'",
    } do
      local err = said(text)
      assert.truthy(err:find(want, 1, true), err)
      assert.truthy(err:find("[unknown-name]", 1, true), err)
    end
  end)

  it("gets Lua's equivalent of another language's keywords", function()
    for text, want in pairs {
      ["k():launch(grid = 1, block = 2)"] = "options are a table: launch "
        .. "{grid = g, block = b}",
      ["print(t[1, 2])"] = "write t[{i, j}] for an element",
      ["print(t[1:2])"] = "a part of a tensor is t(i, _)",
      ["local o = {grid: 1}"] = "write {name = value}",
      ["@cute.kernel"] = "Lua has no decorators",
      ["def f(x):"] = "write local function f(x) ... end",
      ["for i in range(4):\n  print(i)"] = "line 3: write for i = 0, n - 1 "
        .. "do ... end",
      ["if t then elif t then end"] = "write elseif condition then",
      ["local x = a ? 1 : 2"] = "write cute.where(condition, x, y)",
      ["if a && b then end"] = "write and, for traced values &",
      ["local x = 0\nx += 1"] = "Lua has no += or similar operators: write x = "
        .. "x + y",
      ["if x != 1 then end"] = "write ~=, for traced values x:ne(y)",
      ["int x = 4"] = "write local x = ...",
      ["local l = [1, 2]"] = "a list is {1, 2, 3}",
      ["t(0) = 1"] = "a call cannot be assigned to: write t[i] = x",
      ["if 1 == 1\nprint(1) end"] = "write if condition then ... end",
      ["cute.make_layout(shape = {8})"] = "named arguments are a table: f "
        .. "{name = value}",
    } do
      local err, code = said(text)
      assert.truthy(err:find("\n      " .. want, 1, true), err)
      assert.equal(1, code)
    end
    assert.is_nil((said "local x = = 1"):find("write", 1, true))
  end)

  it("gets a note about a kernel that is called and never launched", function()
    local err, code = said(
      "local add = cute.kernel('add', function(x) end)\n\nadd(t)\nadd(t)\n")
    assert.equal("cutelua: note: SCRIPT:5: kernel add was called and never "
      .. "launched: write add(...):launch {grid = g, block = b}\n", err)
    assert.equal(0, code)
    assert.equal("cutelua: note: SCRIPT:4: kernel add was called and never "
      .. "launched: write add(...):launch {grid = g, block = b}\n", (said(
        "for _ = 1, 3 do\n  cute.kernel('add', function(x) end)(t)\nend\n")))
    -- The note also appears if the script ends because the results are wrong.
    -- It does not appear after another error, which may come before the launch.
    for stop, noted in pairs {["cute.testing.assert_close(t, t + 1)"] = true,
                              ["error 'no data'"] = false} do
      err, code = said("cute.kernel('add', function(x) end)(t)\n" .. stop)
      assert.equal(1, code)
      assert.equal(noted, err:find("never launched", 1, true) ~= nil, err)
    end
  end)
end)

describe("a script that runs #long", function()
  it("gets a note about a launch that is prepared and never used", function()
    local run = "{grid = 1, block = 1, device = 'sim'}"
    local kernel = "local k = cute.kernel('k', function(x) x[0] = 1 end)\n"
    local note = "cutelua: note: SCRIPT:4: the launch of kernel k was prepared "
      .. "and never launched: call launch() of the result, or write "
      .. "k(...):launch {...}\n"
    assert.equal(note, (said(kernel .. "cute.compile(k, t, " .. run .. ")")))
    assert.equal(note, (said(kernel .. "local run = k(t):compile" .. run)))
    for _, use in ipairs {"run:launch()", "run(t)", "local s = run.source",
                          "run:launch_n(2)", "tostring(run)",
                          "run:forget() run(t)"} do
      assert.equal("", (said(("%slocal run = cute.compile(k, t, %s)\n%s")
        :format(kernel, run, use))), use)
    end
  end)

  it("gets a note about a result of cute.ops that it discards #long", function()
    for call, name in pairs {
      ["cute.ops.gemm(t, t, {alpha = 2})"] = "gemm",
      ["cute.ops.softmax(t)"] = "softmax",
      ["cute.ops.elementwise(function(x) return x end, t)"] = "elementwise",
      ["cute.ops.reduce(t, 'sum', {by = 'row'})"] = "reduce",
      ["cute.ops.rmsnorm(t)"] = "rmsnorm",
    } do
      assert.equal(("cutelua: note: SCRIPT:4: cute.ops.%s returns a new tensor,"
        .. " which this statement discards: write local y = cute.ops.%s(...), "
        .. "or name a tensor for the result, {out = y}\n"):format(name, name),
        (said("\n" .. call)), call)
    end
    for _, use in ipairs {
      "cute.ops.softmax(t, {out = t})", "local y = cute.zeros({4, 4}, "
        .. "cute.f32) cute.ops.gemm(t, t, {out = y})",
      "local y = cute.ops.softmax(t)", "cute.ops.copy(t, t:clone())",
      "cute.size(cute.ops.softmax(t))", "assert(cute.ops.softmax(t))",
      "local f = function() cute.ops.softmax(t) end\nf()",
      "pcall(cute.ops.softmax, t)", "local ops = {}; ops.y = "
        .. "cute.ops.softmax(t)",
    } do
      assert.equal("", (said(use)), use)
    end
  end)

  it("gets a note about an element type that it compares with a string",
     function()
    local note = "cutelua: note: SCRIPT:3: an element type never equals the "
      .. "string \"f32\": compare it with cute.f32, or its name, "
      .. "x.element_type.name, with \"f32\"\n"
    for _, text in ipairs {
      "local y = t.element_type == 'f32'", "if t.dtype ~= 'f32' then end",
      "for _ = 1, 2 do if 'f32' == t.dtype then break end end",
      "local n = 'f32' if t.dtype == n then n = 1 end",
      "local k = cute.kernel('k', function(x) local i = cute.arch.thread_idx() "
        .. "if i.dtype ~= 'f32' then x[0] = 1 end end) " .. LAUNCH,
    } do
      assert.equal(note, (said(text)), text)
    end
    for _, text in ipairs {
      "local y = t.element_type == cute.f32", "if t.dtype == t.dtype then end",
      "local y = t.element_type.name == 'f32'", "local y = t.memspace == 'f32'",
      "local o = {dtype = 'f32'} local y = o.dtype == 'f32'",
      "local y = t.dtype == nil",
    } do
      assert.equal("", (said(text)), text)
    end
  end)

  it("gets a note about options that it does not read", function()
    local path = os.tmpname()
    local function notes(text, ...)
      support.write(path, text)
      local _, err, code = support.run {path, ...}
      assert.equal(0, code)
      return (err:gsub(path:gsub("%p", "%%%0"), "SCRIPT"))
    end
    assert.equal("cutelua: note: --device has no effect, because SCRIPT reads "
      .. "no arguments: write device = \"sim\" or \"gpu\" in the launch's "
      .. "options\n", notes("local x = 1", "--device", "sim"))
    assert.equal("cutelua: note: --size has no effect, because SCRIPT reads no "
      .. "arguments\n", notes("local x = 1", "--size=3"))
    assert.matches("%-%-emit has no effect.*:trace", notes("", "--emit", "cu"))
    assert.equal("", notes("print(arg[1])", "--device", "sim"))
    assert.equal("", notes("print(...)", "--device", "sim"))
    assert.equal("", notes("local x = 1", "sim", "-3"))
    os.remove(path)
  end)
end)

describe("a script that runs #long", function()
  it("gets a note about a name that is nil and stored in a field", function()
    local note = "cutelua: note: SCRIPT:%d: '%s' is nil: no local or global "
      .. "has that name%s\n"
    for text, want in pairs {
      ["local o = {causal = True,\n n = None}"] = note:format(3, "True",
        ": write true") .. note:format(4, "None", ": write nil"),
      ["local function f() return False end\nf()"] = note:format(3, "False",
        ": write false"),
      ["local scores = 1\nlocal o = {out = score, n = scores}"] =
        note:format(4, "score", " (did you mean scores?)"),
    } do
      local err, code = said(text)
      assert.equal(want, err)
      assert.equal(0, code)
    end
    for _, text in ipairs {
      "True = true\nlocal o = {causal = True}",
      "local None\nlocal o = {n = None}",
      "DEBUG = DEBUG or false\nlocal o = {debug = DEBUG, jit = jit}",
      "local out = 1\nlocal o = {out = out, debug = DEBUG, n = o}",
      "function make() return {made = later} end\nlater = 1\nmake()",
      "local unpack = unpack or table.unpack",
    } do
      assert.equal("", (said(text)))
    end
  end)

  it("gets a note about a kernel that stores nothing", function()
    local note = "cutelua: note: SCRIPT:3: kernel k stores nothing to its "
      .. "arguments, so that a launch has no effect: write t[i] = x or "
      .. "t:store(x)\n"
    local kernel = "local k = cute.kernel('k', function(x) local i = 0\n%s "
      .. "end)\n" .. LAUNCH
    assert.equal(note, (said(kernel:format "local v = x[i] * 2")))
    assert.equal(note, (said(kernel:format("local r = cute.make_rmem_tensor(4, "
      .. "cute.f32)\nr:store(x(0, cute._):load() * 2)"))))
    for _, body in ipairs {"x[i] = x[i] * 2", "", "cute.printf('{}\\n', x[i])",
                           "cute.arch.atomic_add(x.iterator, x[i])"} do
      assert.is_nil((said(kernel:format(body))):find("stores nothing", 1, true),
                    body)
    end
  end)

  it("gets a note about an operand that its function does not get", function()
    assert.equal("cutelua: note: ops.elementwise: the function at SCRIPT:3 has "
      .. "1 parameter, but there are 2 operands: it does not get the last\n",
      (said("local y = cute.ops.elementwise(function(x) return x + 1 end, t, "
        .. "t, {device = 'sim'})")))
  end)

end)

describe("a script", function()
  it("gets no note about kernels that are launched or inspected", function()
    assert.equal("", (said([[
      local function new(name)
        return cute.kernel(name, function(x) x[0] = 1 end)
      end
      local one, run = new "k", {grid = 1, block = 1, device = "sim"}
      one(t):launch(run)
      local call = one(t)
      local kept = new "later"(t)
      new "prepared"(t):compile(run):launch()
      cute.compile(new "compiled", t, run):launch()
      new "traced"(t):trace {block = 1}
      new "profiled"(t):profile(run)
      new "estimated"(t):estimate {grid = 1, block = 1, card = "h200"}
      pcall(function() new "wrong"(t):launch {gird = 1, block = 1} end)
      kept:launch(run)
      local never = new "never"
    ]])))
  end)
end)
-- SPDX-License-Identifier: MIT
