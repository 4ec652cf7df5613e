-- Tests the arguments of kernels: any number of arguments, of every type, and
-- the errors for invalid arguments.
local cute = require "cute"
local support = require "spec.support"
local message = support.message

-- Returns the chunk of a kernel that adds what its n arguments represent (see
-- KINDS). The first 180 parameters have names, a1 to a180, and the others are
-- "..."; with `dots`, all are "...".
local function adder(n, dots)
  local names, all = {}, {}
  for i = 1, dots and 0 or math.min(n, 180) do names[i] = "a" .. i end
  for i, name in ipairs(names) do all[i] = name end
  if #names < n then names[#names + 1], all[#all + 1] = "...", "..." end
  local text = ([[
    local value, pack = ...
    return function(out%s)
      local sum = 0
      for i, a in ipairs {%s} do sum = sum + value(i, a) end
      out[0] = sum
    end]]):format(#names > 0 and ", " .. table.concat(names, ", ") or "",
    table.concat(all, ", "))
  return load(text, "=adder")
end

-- Kinds of kernel arguments. make(i) returns an argument and the number for
-- which it stands. In the kernel, see(argument) returns that number.
local function same(a) return a end
local KINDS = {
  {make = function(i) return i, i end, see = same},
  {make = function(i) return (1 << 40) + i, i end,
   see = function(a) return (a % (1 << 20)):to(cute.i32) end},
  {make = function(i) return i + 0.5, i end,
   see = function(a) return (a - 0.5):to(cute.i32) end},
  {make = function(i) return cute.full({3}, i, cute.i32), i end,
   see = function(a) return a[2] end},
  {make = function(i)
    return cute.full({2, 4}, i, cute.f32):mark_layout_dynamic(), i + 4
  end, see = function(a) return a(1, 3):to(cute.i32) + cute.size(a, 1) end},
  {make = function(i) return tostring(i), i end, see = tonumber},
  {make = function() return true, 1 end,
   see = function(a) return a and 1 or 0 end},
  {make = function(i) return {i}, i end, see = function(a) return a[1] end},
  {make = function(i) return cute.make_layout {i}, i end, see = cute.size},
  {make = function(i) return function() return i end, i end,
   see = function(a) return a() end},
  {make = function() return cute.f16, 16 end,
   see = function(a) return a.bits end},
}

-- Launches a kernel with n arguments of kind number `from`. With `mixed`, the
-- arguments have the kinds after `from`, in rotation.
local function check(n, from, mixed, dots)
  local function kind(i) return KINDS[(from + (mixed and i or 0)) % #KINDS + 1]
  end
  local args, want = {}, 0
  for i = 1, n do
    local counts
    args[i], counts = kind(i).make(i)
    want = want + counts
  end
  local out = cute.zeros({1}, cute.i32)
  local f = adder(n, dots)(function(i, a) return kind(i).see(a) end)
  cute.kernel("sum", f)(out, table.unpack(args)):launch {
    grid = 1, block = 1, device = "sim"}
  assert.equal(want, out(0), ("%d arguments, kind %d"):format(n, from))
end

describe("kernels take arguments", function()
  it("of every kind, from 1 to 250", function()
    for from = 0, #KINDS - 1 do
      for _, n in ipairs {1, 7, 15, 16, 17, 31, 60, 125} do
        check(n, from, false, n % 2 == 0)
      end
    end
    for n = 1, 249, 8 do check(n, n, true, n % 3 == 0) end
    check(249, 0, true, true)
  end)

  it("and no more than they have parameters for", function()
    local k = cute.kernel("k", function(x, n) x[0] = n end)
    local X = cute.zeros({1}, cute.i32)
    local want = "kernel k takes 2 arguments (x, n), got 3 [bad-launch]"
    assert.equal(want, (message(function() local _ = k(X, 1, 2) end)))
    assert.equal(want, (message(function()
      local _ = cute.compile(k, X, 1, 2, {grid = 1, block = 1})
    end)))
  end)

  it("and name an integer argument that would need to be a float", function()
    local k = cute.kernel("k", function(x, scale) x[0] = scale * 1.5 end)
    assert.equal("the number 1.5 does not fit in i32, the type of the kernel's "
      .. "argument 'scale' [type-mismatch]\n  pass a number with a point for "
      .. "this argument, such as 2.0, or convert it with :to(cute.f32)",
      (message(function()
        k(cute.zeros({1}, cute.f32), 2):trace {block = 1}
      end)))
  end)

  it("and name those of kernels of the library", function()
    local norm = require "kernels.norm".rms {dtype = cute.bf16, n = 64}
    local x, w = cute.zeros({2, 64}, "bf16"), cute.zeros({64}, "bf16")
    local text = message(function()
      norm.kernel(x, x, w, 1e-5):trace {block = norm.block}
    end)
    assert.matches("the arguments of kernel rmsnorm: bf16 %(2,64%), "
      .. "bf16 %(2,64%), bf16 %(64%), 1e%-05", text)
    local elementwise = require "kernels.elementwise"
    assert.matches('elementwise: inputs%[1%] = "f32"; a type is needed',
      (message(function()
        elementwise {n = 8, inputs = {"f32"}, f = function(v) return v end}
      end)))
    local double = elementwise {n = 8, inputs = {cute.f32},
                                f = function(v) return v * 2 end}
    assert.matches("elementwise: argument 2 is i32; f32 is needed",
      (message(function()
        double.kernel(cute.zeros({8}, "f32"), cute.zeros({8}, "i32")):trace {
          block = double.block}
      end)))
    local sgemm = require "kernels.gemm_simt" {}
    local a = cute.zeros({128, 8}, "f16")
    assert.matches("gemm_simt: A is f16; f32 is needed", (message(function()
      sgemm.kernel(a, a, cute.zeros({128, 128}, "f32"), 1.0, 0.0):trace {
        block = sgemm.block}
    end)))
  end)

  it("and report the missing ones", function()
    local k = cute.kernel("k", function(x, n) x[0] = n + 1 end)
    assert.equal("attempt to perform arithmetic on a nil value (local 'n')\n"
      .. "  kernel k takes 2 arguments (x, n), got 1: the missing ones are nil",
      (message(function()
        k(cute.zeros({1}, cute.i32)):trace {block = 1}
      end)))
    assert.equal("attempt to perform arithmetic on a nil value (local 'n')\n"
      .. "  kernel k: argument 2 (n) is nil",
      (message(function()
        k(cute.zeros({1}, cute.i32), nil):trace {block = 1}
      end)))
    local some = cute.kernel("some", function(x, n) x[0] = n or 7 end)
    local X = cute.zeros({1}, cute.i32)
    some(X):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(7, X(0))
  end)

  it("are named as in the script, also within tables", function()
    local seen
    local k = cute.kernel("k", function(t, y)
      seen = {tostring(t.bits), tostring(t.deep.v[2]), tostring(t[1])}
      y[0] = t.m[900 + t.bits + t.deep.v[2] + t[1]]
    end)
    local t = {bits = 3, deep = {v = {4, 5}}, 6, m = cute.ones({32}, cute.i32)}
    local y = cute.zeros({1}, cute.i32)
    local _, why = k(t, y):launch {grid = 1, block = 1, device = "sim",
      faults = "return"}
    assert.same({"traced i32 (argument t.bits)",
      "traced i32 (argument t.deep.v[2])", "traced i32 (argument t[1])"}, seen)
    assert.matches("read outside global tensor 't.m': element 914 of 32", why,
      1, true)
    local text = k(t, y):trace {block = 1}:cuda()
    for _, name in ipairs {"t_m", "t_bits", "t_deep_v_2", "t_1"} do
      assert.matches("%f[%w_]" .. name .. "%f[^%w_]", text)
    end
  end)
end)

describe("a table argument of a kernel", function()
  it("fits on Lua's stack, or raises an error", function()
    local many = {}
    for i = 1, 1000000 do many[i] = 1 end
    local said = message(function()
      cute.kernel("k", function(t) return t end)({x = many}):trace {block = 1}
    end)
    assert.matches("^kernel k: argument 1%.x is a table of more than %d+ "
      .. "fields, which do not fit on Lua's stack %[limit%]\n  pass many "
      .. "numbers as a tensor$", said)
  end)
end)

describe("a list", function()
  local A = cute.zeros({8, 8}, cute.f32)
  local params = cute.utils.PersistentTileSchedulerParams
  local function launch(grid)
    cute.kernel("k", function() end)():launch {grid = grid, block = 1,
                                               device = "sim"}
  end

  it("has neither gaps nor names, which would be lost", function()
    for _, row in ipairs {
      {"by has an entry [3] but no entry [2]: a list must not have gaps",
       function() cute.ops.reduce(A, "sum", {by = {0, nil, 1}}) end},
      {"by is a list, but has the key \"x\"",
       function() cute.ops.reduce(A, "sum", {by = {0, x = 1}}) end},
      {"the list of problems has an entry [3] but no entry [2]",
       function() cute.ops.grouped_gemm {{A, A}, nil, {A, A}} end},
      {"the list of problems is a list, but has the key 0",
       function() cute.ops.grouped_gemm {[0] = {A, A}, {A, A}} end},
      {"cute.struct: struct has an entry [3] but no entry [2]",
       function() cute.struct {{"x", cute.f32}, nil, {"y", cute.i32}} end},
      {"the shape in tiles has an entry [3] but no entry [2]",
       function() params({4, nil, 1}, {1, 1, 1}) end},
      {"the shape of a cluster is a list, but has the key \"m\"",
       function() params({4, 1, 1}, {1, m = 2}) end},
      {"grid has the field [3] = 2; a list of one to three integers of at",
       function() launch {1, nil, 2} end},
      {"cute.tensor: a list of length 1 also has the key \"x\"",
       function() cute.tensor {1, x = 3} end},
      {"cute.tensor: a list of length 2 also has the key 0",
       function() cute.tensor {{1, 2}, {3, 4, [0] = 5}} end}} do
      support.raises(row[1], row[2])
    end
  end)

  it("of fields is no structure that is larger than any memory", function()
    local inner = cute.struct {{"y", cute.f32, 1 << 38}}
    for _, fields in ipairs {{{"x", cute.f32, 1 << 60}},
        {{"x", cute.f64, math.maxinteger}}, {{"x", inner, 2}},
        {{"x", cute.u8, 1, 1 << 62}}} do
      support.raises("is larger than any memory [limit]", cute.struct, fields)
    end
  end)

  it("counts as one if it was one before", function()
    cute.ops.reduce(A, "sum", {by = {0}, device = "sim"})
    support.raises("by has an entry [3]", function()
      cute.ops.reduce(A, "sum", {by = {0, nil, 1}, device = "sim"})
    end)
    local k = cute.kernel("k", function() end)
    local options = {grid = {1, 1, 2}, block = 1, device = "sim"}
    for _ = 1, 3 do k():launch(options) end
    options.grid[2] = nil
    support.raises("grid has the field [3] = 2", function()
      k():launch(options)
    end)
  end)
end)

describe("a prepared launch", function()
  it("cannot be used inside a kernel", function()
    local x = cute.zeros({32}, cute.f32)
    local call = cute.kernel("k", function(t) t[0] = 1 end)(x)
    local o = {grid = 1, block = 32, device = "sim"}
    local ready = call:compile(o)
    for _, f in ipairs {
      function() ready:check() end, function() ready:estimate() end,
      function() call:check(o) end, function() call:profile(o) end,
      function() call:timeline(o) end, function() call:find_swizzle(o) end,
      function() call:estimate(o) end} do
      local ok, text
      cute.kernel("outer", function() ok, text = pcall(f) end)():trace {
        block = 32}
      assert.is_false(ok)
      assert.matches("a host function was called in kernel 'outer', which "
        .. "would call it only once, while it is traced [inside-kernel]",
        text, 1, true)
    end
    assert.equal(0, x(0))
  end)
end)
-- SPDX-License-Identifier: MIT
