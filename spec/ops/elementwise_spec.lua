-- Tests cute.ops.elementwise, copy, convert and transpose against plain Lua,
-- with random types, random strides, and random shapes that broadcast. Some
-- tensors have different contiguous modes. Invalid calls must raise errors.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"
local elementwise = cute.ops.elementwise

local DEVICES = {"sim:sm_80", "sim:sm_90a"}
local TYPES = {"f32", "bf16", "f16", "f64", "i32", "i8", "u8", "i64", "i16",
               "e4m3"}

local each, at = ops.each_of, ops.element

-- Fails if an element of t differs from want(c) rounded to t's type.
local function same(t, shape, want)
  local round = ops.rounded(t.element_type)
  each(shape, function(c, i)
    local x, y = at(t, c), round(want(c, i))
    if not support.same(x, y) then
      error(("(%s) is %s, not %s"):format(table.concat(c, ","), x, y))
    end
  end)
end

-- Fails unless both values are equal. (assert.equal of luassert is slower.)
local function equal(want, got)
  if want ~= got then error(("%s, not %s"):format(got, want)) end
end

local function shape_of(t)
  local list = {}
  for m = 1, cute.rank(t) do list[m] = cute.size(t.shape[m]) end
  return list
end

local function random(number, device)
  local pick = ops.random(number)
  local all = ops.shape(pick, 9000)
  local part = ops.part(pick, all)
  local dtype = TYPES[number % #TYPES + 1]
  local exact = pick(2) == 0 and "f32" or dtype
  if not core.find_dtype(dtype).is_float then exact = dtype end
  if dtype == "f64" then exact = "f64" end
  local X, Y = ops.any(pick, all, dtype, number), ops.any(pick, part, exact,
                                                          number + 1)
  local o = {device = device or pick(DEVICES), seed = number}
  if pick(2) == 0 then o.out = ops.any(pick, all, pick {dtype, exact}) end
  local Z, W = elementwise(function(x, y)
    return x * 2 + y, x * 3 - x
  end, X, Y, o)
  same(Z, all, function(c) return at(X, c) * 2 + at(Y, c) end)
  same(W, all, function(c) return at(X, c) * 2 end)
  if o.out then assert.equal(o.out, Z) end
end

local function matrix(shape, dtype, seed)
  return ops.tensor(ops.random(1), shape, dtype or "f32", seed or 1, "k")
end
local SIM = {device = "sim"}

describe("ops.elementwise", function()
  it("gives a thread two vectors of one 16-bit input", function()
    local calls = require "cute.ops.calls"
    local launch, block = calls.launch, nil
    function calls.launch(step, ...)
      block = step.block
      return launch(step, ...)
    end
    local _ <close> = setmetatable({}, {__close = function()
      calls.launch = launch
    end})
    local x = cute.zeros({1 << 20}, cute.f16)
    elementwise(function(a) return -a end, x, {device = "sim:sm_90a"})
    assert.equal(128, block)
    elementwise(function(a, b) return a + b end, x, x:clone(),
                {device = "sim:sm_90a"})
    assert.equal(256, block)
  end)
end)

describe("operators of whole tensors", function()
  local X = cute.tensor({{1, 2, 3}, {4, 5, -6}}, cute.f32)
  local Y = cute.tensor({10, 20, 40}, cute.f32)
  local I = cute.tensor({5, -3}, cute.i32)

  local function is(want, dtype, t)
    cute.testing.assert_close(t, cute.tensor(want, dtype), {rtol = 0, atol = 0})
  end

  it("apply to each element, with numbers on either side #long", function()
    is({{2, 4, 6}, {8, 10, -12}}, cute.f32, X + X)
    is({{2, 3, 4}, {5, 6, -5}}, cute.f32, X + 1)
    is({{2, 3, 4}, {5, 6, -5}}, cute.f32, 1 + X)
    is({{11, 22, 43}, {14, 25, 34}}, cute.f32, Y + X)
    is({{0.5, -0.5, -1.5}, {-2.5, -3.5, 7.5}}, cute.f32, 1.5 - X)
    is({{10, 40, 120}, {40, 100, -240}}, cute.f32, X * Y)
    is({{0.25, 0.5, 0.75}, {1, 1.25, -1.5}}, cute.f32, X / 4)
    is({{0, 1, 1}, {2, 2, -3}}, cute.f32, X // 2)
    is({{1, 4, 9}, {16, 25, 36}}, cute.f32, X ^ 2)
    is({{-1, -2, -3}, {-4, -5, 6}}, cute.f32, -X)
    is({2, -2}, cute.i32, I // 2)
    is({2, 0}, cute.i32, I % 3)
    is({1, 1}, cute.i32, I & 1)
    is({7, -1}, cute.i32, I | 2)
    is({4, -4}, cute.i32, I ~ 1)
    is({-6, 2}, cute.i32, ~I)
    is({10, -6}, cute.i32, I << 1)
    is({2, -2}, cute.i32, I >> 1)
    is({2.5, -1.5}, cute.f32, I / 2)
    is({6, -2}, cute.bf16, cute.tensor({5, -3}, cute.bf16) + 1)
  end)

  it("print no note on infinities and NaNs, unlike functions", function()
    local function said(operation)
      local _, err, status = support.run_lua({"-e", [[
        local cute = require "cute"
        local x = cute.tensor({0, 1}, cute.f32)
        local y = ]] .. operation .. " print(y(0))"}, {CUTELUA_NO_CUDA = "1"})
      assert.equal(0, status, err)
      return err
    end
    assert.equal("", said "1 / x")
    assert.equal("", said "x / 0 - x / 0")
    assert.equal("", said "(1 / x) // 1")
    assert.truthy(said "cute.ops.elementwise(function(a) return 1 / a end, x)"
      :find("1 / 0 is inf", 1, true))
  end)

  it("keep operands, and mean a copy", function()
    local Z = X + 0
    Z[{0, 0}] = 9
    assert.equal(1.0, X(0, 0))
  end)

  it("leave steps of iterators as they are", function()
    assert.equal("ptr[f32,host]+2 o 1:0", tostring(X.iterator + 2))
    assert.equal("ptr[f32,host]+2 o 1:0", tostring(2 + X.iterator))
    support.raises("operator '*' does not apply to tensor ptr[f32,host] o 1:0 "
      .. "and 2", function() return X.iterator * 2 end)
    support.raises("only an integer can be added to an iterator, not a tensor",
      function() return X.iterator + X.iterator end)
    support.raises("write x.iterator + n for a view that begins n elements "
      .. "later", function() return cute.make_tensor(X + 2, 3) end)
    assert.equal(3.0, cute.make_tensor((X + 2).iterator, 3)(0))
    assert.equal(3.0, cute.make_tensor(X.iterator + 2, 3)(0))
  end)

  it("reject other operands, and say what to write in a kernel", function()
    for _, v in ipairs {"a", {}, true, cute.layout "4"} do
      for _, f in ipairs {function() return X + v end,
          function() return X * v end} do
        support.raises("does not apply to tensor ptr[f32,host] o (2,3):(3,1) "
          .. "and ", f)
      end
    end
    support.raises("operator '<' does not apply to", function()
      return X < X
    end)
    support.raises("write cute.ops.elementwise(cute.le, x, y) to compare",
      function() return X <= 1 end)
    support.raises("modes of extents 3 and 2 do not broadcast", function()
      return X + I
    end)
    local function kernel(f)
      return function()
        cute.kernel("k", f)(X, X):launch {grid = 1, block = 32, device = "sim"}
      end
    end
    support.raises("write x[i] * y[i], or x:load() * y:load()",
      kernel(function(x, y) return x * y end))
    support.raises("elements are added with a:load() + b:load()",
      kernel(function(x, y) return x + y end))
    support.raises("write an element, x[i], or a vector, x:load()",
      kernel(function(x, _) return -x end))
  end)
end)

describe("cute.ops.elementwise", function()
  ops.problems(it, random)

  it("takes numbers, and what the function captures, as arguments", function()
    local X, factor, table_of = matrix {20, 30}, 2.0, {shift = 1.0}
    local scale = cute.full({1}, 3, cute.f32)
    local function shifted(x) return x + table_of.shift end
    local function call(k)
      local Y = elementwise(function(x, y)
        return shifted(x * factor) * y * scale[0]
      end, X, k, SIM)
      same(Y, {20, 30}, function(c)
        return (X(c[1], c[2]) * factor + table_of.shift) * k * scale(0)
      end)
    end
    call(1.0)
    factor, table_of.shift = 5.0, -4.0
    scale:fill(-1)
    call(3.0)
  end)

  it("has current numbers in repeated calls #gpu", function()
    local X, factor, offset = matrix {20, 30}, 1.0, {by = 0}
    local G, scale = X:to "gpu", cute.full({1}, 3, cute.f32, {device = "gpu"})
    local D = ops.tensor(ops.random(1), {20, 30}, "f64", 1, "k"):to "gpu"
    local out = cute.zeros({20, 30}, cute.f32, {device = "gpu"})
    local function f(x, k)
      return x * factor * scale[0] + k, x + offset.by
    end
    for i = 1, 4 do
      factor, offset.by = i + 0.5, i + 1.0
      scale:fill(i)
      local Y, Z = elementwise(f, G, 2.0 * i, {out = i > 2 and {out} or nil})
      if i > 2 then assert.equal(out, Y) end
      Y, Z = Y:to "host", Z:to "host"
      same(Y, {20, 30}, function(c)
        return X(c[1], c[2]) * (i + 0.5) * i + 2 * i
      end)
      same(Z, {20, 30}, function(c) return X(c[1], c[2]) + i + 1 end)
      local third = i / 3
      local E = elementwise(function(x) return x * third end, D):to "host"
      same(E, {20, 30}, function(c) return X(c[1], c[2]) * (i / 3) end)
    end
  end)

  it("keeps all digits of numbers beside f64", function()
    local X, third = cute.full({10}, 3, cute.f64), 1 / 3
    local Y = elementwise(function(x, k) return x * third + k end, X, 1e-17,
                          SIM)
    assert.equal(cute.f64, Y.element_type)
    assert.equal(3 * (1 / 3) + 1e-17, Y(9))
  end)

  it("has types from the result, dtype, and the function", function()
    local X, F = matrix({4, 8}, "bf16"), matrix({4, 8}, "f32", 2)
    local function type_of(f, ...)
      return tostring((elementwise(f, ...)).element_type)
    end
    local function twice(x) return x + x end
    assert.equal("bf16", type_of(twice, X, SIM))
    assert.equal("f32", type_of(function(x, y) return x + y end, X, F, SIM))
    assert.equal("f16", type_of(function(x) return x:to(cute.f16) end, X, SIM))
    assert.equal("f64", type_of(twice, X, {dtype = "f64", device = "sim"}))
    local mask = elementwise(function(x) return x:gt(0) end, F, SIM)
    assert.equal(cute.boolean, mask.element_type)
    same(elementwise(function(m, x) return cute.where(m, x, -7) end, mask, F,
                     SIM), {4, 8}, function(c)
      return F(c[1], c[2]) > 0 and F(c[1], c[2]) or -7
    end)
  end)

  it("transposes several operands, of one and of several widths #long",
     function()
    for i, c in ipairs {{"i8", "f64"}, {"bf16", "bf16"}, {"i8", "i8"},
                        {"f32", "bf16"}} do
      for k, e in ipairs {{150, 264}, {40, 500}, {500, 36}, {33, 35}} do
        local function column_major(dtype)
          local t = matrix({e[2], e[1]}, dtype, i + k)
          return cute.make_tensor(t.iterator, cute.select(t.layout, {1, 0}))
        end
        local X, Y = column_major(c[1]), column_major(c[2])
        local Z = matrix({e[1], e[2]}, "f32", 9)
        same(elementwise(function(x, y, z)
          return x:to(cute.f32) + y:to(cute.f32) * 2 + z
        end, X, Y, Z, {device = "sim", out = cute.zeros(e, cute.f32)}), e,
        function(at_c)
          return X(at_c[1], at_c[2]) + Y(at_c[1], at_c[2]) * 2
            + Z(at_c[1], at_c[2])
        end)
      end
    end
  end)

  it("gives a result the order of its operand's modes", function()
    local X = cute.zeros(cute.make_layout({4, 6, 5}, {6, 1, 24}), cute.f32)
    local Y = elementwise(function(x, y) return x + y end,
                          cute.zeros({5}, cute.f32), X, SIM)
    assert.equal("(4,6,5):(6,1,24)", tostring(Y.layout))
  end)

  it("computes in place, and into another part of one matrix", function()
    local X = matrix {8, 40}
    local was = X:clone()
    elementwise(function(x) return x * 3 end, X, {out = X, device = "sim"})
    same(X, {8, 40}, function(c) return 3 * was(c[1], c[2]) end)
    local left = cute.make_tensor(X.iterator, cute.make_layout({8, 20},
                                                               {40, 1}))
    local right = cute.make_tensor(X.iterator + 20, cute.make_layout({8, 20},
                                                                     {40, 1}))
    elementwise(function(x) return -x end, left, {out = right, device = "sim"})
    same(right, {8, 20}, function(c) return -left(c[1], c[2]) end)
  end)
end)

describe("cute.ops.elementwise", function()
  it("passes coordinates of elements", function()
    local X = cute.zeros(cute.make_layout({3, 40, 50}, {2000, 1, 40}), cute.f32)
    local Y, Z = elementwise(function(x, place)
      local l, i, j = place:coords()
      return x + (l * 10000 + i * 100 + j):to(cute.f32), j
    end, X, {out = {cute.zeros({3, 40, 50}, cute.f32)}, device = "sim"})
    same(Y, {3, 40, 50}, function(c)
      return c[1] * 10000 + c[2] * 100 + c[3]
    end)
    same(Z, {3, 40, 50}, function(c) return c[3] end)
  end)

  it("drops unused values like epilogues of gemm", function()
    local A, B = cute.zeros({2, 40, 8}, cute.bf16), cute.zeros({50, 8},
                                                               cute.bf16)
    local want = cute.ops.gemm(A, B, {dtype = cute.f32, device = "sim",
      epilogue = function(acc, p) return p:dropout(acc + 3, 0.4, 7) end})
    local got = elementwise(function(x, p) return p:dropout(x, 0.4, 7) end,
      cute.full({2, 40, 50}, 3, cute.f32), SIM)
    local zeros = 0
    same(got, {2, 40, 50}, function(c)
      local x = want(table.unpack(c))
      zeros = zeros + (x == 0 and 1 or 0)
      return x
    end)
    assert.is_true(zeros > 1200 and zeros < 2000)
  end)

  it("reaches elements past 2^31 #noasan #long", function()
    local far = (1 << 31) + 64
    local function rows(n)
      return cute.make_tensor(core.buffer("i8", far + 2 * n),
                              cute.make_layout({2, n}, {far, 1}))
    end
    local X, Y = rows(100), rows(100)
    for i = 0, 1 do for j = 0, 99 do X[{i, j}] = (i * 7 + j) % 50 end end
    elementwise(function(x) return x * 2 end, X, {out = Y, device = "sim"})
    same(Y, {2, 100}, function(c) return 2 * X(c[1], c[2]) end)
    cute.ops.copy(cute.make_tensor(X.iterator, cute.make_layout({100, 2},
      {1, far})), cute.make_tensor(Y.iterator + 100, cute.make_layout({100, 2},
      {1, far})), SIM)
    assert.equal(X(1, 99), cute.make_tensor(Y.iterator + far + 199,
                                            cute.make_layout {1})(0))
  end)

  it("reports errors at the line of the call", function()
    local X, Y = matrix {20, 30}, matrix {30, 20}
    local function add(x, y) return x + y end
    local sum, list = 0, {}
    for _, c in ipairs {
      {"ops.elementwise: operand 1 is (20,30):(30,1) and operand 2 is "
       .. "(30,20):(20,1): modes of extents 20 and 30 do not "
       .. "broadcast", add, X, Y},
      {"ops.elementwise: operand 1 is 1.0; at least one operand must be a "
       .. "tensor", add, 1.0, 2.0},
      {"ops.elementwise: operand 2 is \"x\"; a tensor is needed", add, X, "x"},
      {"ops.elementwise: operand 2 is nil; a tensor or a number is needed", add,
       X, nil, {device = "sim"}},
      {"ops.elementwise: operand 2 is nil; a tensor or a number is needed", add,
       X, nil, X},
      {"ops.elementwise: no option 'ot' (did you mean out?)", add, X, X,
       {ot = X}},
      {"ops.elementwise: dtype = 3: a dtype or string is needed", add, X, X,
       {dtype = 3}},
      {"ops.elementwise: dtype = \"bf17\"; this type does not exist", add, X, X,
       {dtype = "bf17"}},
      {"ops.elementwise: out has type f32, but dtype is f16", add, X, X,
       {out = X, dtype = "f16"}},
      {"ops.elementwise: out is (30,20):(20,1), but the result has extents "
       .. "(20,30)", add, X, X, {out = Y}},
      {"ops.elementwise: out shares memory with operand 1", add,
       cute.make_tensor(Y.iterator + 1, cute.make_layout({5, 6}, {6, 1})),
       cute.zeros({6}, cute.f32),
       {out = cute.make_tensor(Y.iterator, cute.make_layout({5, 6}, {6, 1}))}},
      {"out is (20,30):(0,1): several of its elements have the same "
        .. "address", add,
       X, X, {out = cute.make_tensor(Y.iterator, cute.make_layout({20, 30},
                                                                  {0, 1}))}},
      {"dtype = i4; elements of 8 bits or more are needed", add, X, X,
       {dtype = "i4"}},
      {"has 4 parameters, but there are 2 operands; at most one more, `at`",
       function(x, y, z, k) return x + y + z + k end, X, X},
      {"the result of an integer division by zero is used [division-by-zero]",
       function(x) return x // (x - 1) end, cute.ones({20}, cute.i32),
       {device = "sim"}},
      {"returns nothing", function() end, X},
      {"returns 3 as result 1; a vector is needed",
       function() return 3 end, X},
      {"assigns 'sum', which is defined outside of it; a function that "
        .. "cute.ops traces cannot keep state",
       function(x) sum = x return x end, X},
      {"stores to a tensor that is defined outside of it; a function "
        .. "that cute.ops traces cannot keep state",
       function(x) Y[0] = 1.0 return x end, X},
      {"out 2 is given, but there are 1 results", add, X, X,
       {out = {matrix {20, 30}, matrix {20, 30}}}},
    } do
      local message = support.message(elementwise, table.unpack(c, 2))
      assert.matches(c[1], message, 1, true)
    end
    assert.equal(0, sum)
    local ok, why = pcall(elementwise, function(x)
      table.insert(list, 1)
      return x
    end, X)
    assert.is_false(ok)
    assert.matches("changes values outside of it; a function that "
      .. "cute.ops traces cannot keep state", why, 1,
                   true)
    local text = [[
      local cute = require "cute"
      local X = cute.zeros({4}, cute.f32)
      cute.ops.elementwise(function(x)
        return x + X:load(1, 2)
      end, X, {device = "sim"})]]
    local _, err = support.run_lua({"-e", text})
    assert.matches(":4", err, 1, true)
  end)
end)

describe("cute.ops.elementwise", function()
  it("shows the kernel's source in no more than it needs", function()
    local k = require "kernels.elementwise" {n = 4096, inputs = {cute.f32},
      f = function(x) return x end}
    local program = k.kernel(cute.zeros({4096}, cute.f32), cute.zeros({4096},
      cute.f32)):trace {block = k.block}
    assert.is_nil(program.source:find("if (", 1, true))
    kernels.compiles(program, {"sm_80", "sm_90a"})
  end)
end)

local function filled(shape, dtype, seed)
  return ops.tensor(ops.random(1), shape, dtype, seed, "k")
end

-- Fails if Y is not X transposed, with or without batches.
local function turned(X, Y)
  local c = shape_of(X)
  local n = #c
  each(c, function(at_x)
    local at_y = {table.unpack(at_x)}
    at_y[n - 1], at_y[n] = at_y[n], at_y[n - 1]
    equal(X(table.unpack(at_x)), Y(table.unpack(at_y)))
  end)
end

-- Returns a kernel that transposes `many` matrices (B,A), which begin `apart`
-- elements apart. A is contiguous; rows need not be aligned to 16 bytes.
local function shifted(dtype, B, A, tile, many, apart)
  local V = 128 // cute[dtype].bits
  return require "kernels.elementwise" {extents = {B, A, many or 1},
    across = 2, f = function(x) return x end, tile = tile,
    width = B % V == 0 and V or 1,
    inputs = {{dtype = cute[dtype], stride = {A, 1, apart or 0}, width = 1,
               turned = true, shifted = true}},
    outputs = {{dtype = cute[dtype], stride = {1, B, apart or 0}}}}
end

-- Transposes X, (L,B,A) or (B,A), by kernels/transpose, whose reads and writes
-- are whole sectors of 32 bytes. Returns the simulator's report. With `maps`,
-- the target is sm_90a, and the kernel uses tensor maps.
local function windows(X, Y, tile, maps)
  local n = cute.rank(X)
  local B, A = cute.size(X.shape[n - 1]), cute.size(X.shape[n])
  local k = require "kernels.transpose" {tile = tile, maps = maps,
    dtype = cute["u" .. X.element_type.bits],
    extents = {B, A, n > 2 and cute.size(X.shape[1]) or 1},
    from = {X.stride[n - 1], 1, n > 2 and X.stride[1] or 0},
    to = {1, Y.stride[n - 1], n > 2 and Y.stride[1] or 0}}
  local args = k.arguments(X, Y)
  local call = k.kernel(table.unpack(args, 1, args.n))
  return support.report(call:launch {grid = k.grid, block = k.block,
    device = maps and "sim:sm_90a" or "sim:sm_80"}), call, k.block
end

describe("cute.ops.copy, convert, transpose", function()
  it("transpose matrices of all widths, ragged and in batches #long", function()
    for i, dtype in ipairs {"i8", "bf16", "f32", "f64", "e4m3", "boolean"} do
      for k, c in ipairs {{128, 256}, {129, 257}, {72, 40}, {3, 50, 64},
                          {40, 3}, {1, 70}, {2, 33, 7}} do
        local fill = dtype == "boolean" and "u8" or dtype
        local X = ops.tensor(ops.random(i * 10 + k), c, fill, k, "k")
        if dtype == "boolean" then
          X = cute.ops.elementwise(function(x) return x:gt(1) end, X,
                                   {device = "sim"})
        end
        local Y = cute.ops.transpose(X, {device = DEVICES[k % 2 + 1]})
        local n = #c
        c[n - 1], c[n] = c[n], c[n - 1]
        assert.same(c, shape_of(Y))
        assert.equal(cute.make_layout(c, cute.LayoutRight), Y.layout)
        each(c, function(at_y)
          local at_x = {table.unpack(at_y)}
          at_x[n - 1], at_x[n] = at_x[n], at_x[n - 1]
          equal(X(table.unpack(at_x)), Y(table.unpack(at_y)))
        end)
      end
    end
  end)

  it("transpose rows that begin anywhere #long", function()
    for i, c in ipairs {
      {"bf16", {129, 275}}, {"i8", {129, 275}}, {"f32", {2, 65, 147}},
      {"f64", {65, 69}}, {"i16", {40, 201}}, {"e4m3", {33, 35}},
      {"bf16", {257, 545}}, {"i8", {2, 40, 131}}, {"i8", {261, 131}},
      {"bf16", {132, 130}}, {"i8", {264, 128}}, {"f32", {2, 68, 133}},
      {"f32", {3, 65, 132}},
    } do
      local X = ops.tensor(ops.random(i), c[2], c[1], i, "k")
      turned(X, cute.ops.transpose(X, {device = DEVICES[i % 2 + 1]}))
    end
    local apart = cute.make_ordered_layout({2, 3, 66, 73}, {2, 3, 1, 0})
    local X = cute.ops.copy(filled({2, 3, 66, 73}, "f64", 1),
                            cute.zeros(apart, cute.f64), {device = "sim"})
    turned(X, cute.ops.transpose(X, {device = "sim:sm_90a"}))
  end)

  it("turn them in windows that cut no sectors but the ends of rows #long",
     function()
    for i, c in ipairs {{"i8", 275, 163, {128, 64}}, {"bf16", 139, 203,
      {64, 64}}, {"f32", 133, 199, {64, 64}}, {"f64", 69, 75, {32, 32}},
      {"bf16", 136, 68, {128, 64}}, {"f32", 67, 34, {64, 32}}} do
      local dtype, B, A, tile = table.unpack(c)
      local X = filled({B, A}, dtype, i)
      for _, maps in ipairs {false, true} do
        local Y = cute.zeros({A, B}, dtype)
        local r, call, block = windows(X, Y, tile, maps)
        turned(X, Y)
        local stores = 0
        for _, l in ipairs(r.lines) do
          if l.op == "st.global" and l.bytes // l.count > 128 then
            assert.is_true(l.sectors - l.bytes // 32 <= A, dtype)
            stores = stores + l.count
          end
        end
        assert.is_true(stores > 0)
        kernels.compiles(call:trace {block = block},
                         maps and {"sm_90a"} or {"sm_80", "sm_90a"})
      end
    end
  end)
end)

describe("cute.ops.copy, convert, transpose", function()
  it("transpose with few bank conflicts in a suitable order of reads #long",
     function()
    -- Each case is {type, rows after the whole tiles, columns after them}. The
    -- two numbers determine the order in which threads read shared memory.
    for _, c in ipairs {
      {"f32", 0, 0}, {"f32", 1, 1}, {"f32", 2, 3}, {"f32", 3, 1},
      {"bf16", 0, 1}, {"bf16", 1, 1}, {"bf16", 3, 7}, {"bf16", 4, 1},
      {"bf16", 4, 5}, {"bf16", 6, 3}, {"i8", 1, 1}, {"i8", 5, 1},
      {"i8", 8, 0}, {"i8", 8, 2}, {"i8", 12, 4}, {"i8", 15, 3},
    } do
      local dtype, V = c[1], 128 // cute[c[1]].bits
      local tile = {8 * V, 8 * V}
      local B, A = 2 * tile[1] + c[2], 2 * tile[2] + c[3]
      local X, Y = cute.zeros({B, A}, dtype), cute.zeros({A, B}, dtype)
      local most  -- the source line with the most loads from shared memory
      for _, l in ipairs(windows(X, Y, tile).lines) do
        if l.op == "ld.shared" and (not most or l.count > most.count) then
          most = l
        end
      end
      -- At the ends of a row, vectors are split into elements, whose accesses
      -- may have bank conflicts.
      assert.is_true(most.conflicts <= most.count // 3, table.concat(c, " "))
    end
  end)

  it("turn tiles of them, whole and at edges #long", function()
    for i, c in ipairs {{"bf16", 128, 403, {64, 128}}, {"i8", 144, 403,
      {64, 128}}, {"f32", 68, 211, {32, 64}}, {"f64", 66, 101, {32, 32}},
      {"bf16", 131, 403, {64, 128}}, {"i8", 129, 289, {64, 128}}} do
      local dtype, B, A = table.unpack(c)
      local X = filled({B, A}, dtype, i)
      local Y = cute.zeros({A, B}, dtype)
      local k = shifted(dtype, B, A, c[4])
      k.kernel(X, Y):launch {grid = k.grid, block = k.block,
                             device = DEVICES[i % 2 + 1]}
      turned(X, Y)
    end
  end)

  it("transpose between memory that others write #long", function()
    -- X consists of matrices 0 and 2 of `all`, and Y of matrices 1 and 3.
    local B, A = 65, 275
    local n, all = B * A, filled({4, 65, 275}, "bf16", 5)
    local X = cute.make_tensor(all.iterator, cute.make_layout({2, B, A},
      {2 * n, A, 1}))
    local Y = cute.make_tensor(all.iterator + n, cute.make_layout({2, A, B},
      {2 * n, B, 1}))
    cute.ops.transpose(X, {out = Y, device = "sim"})
    turned(X, Y)
    Y:fill(0)
    local k = shifted("bf16", B, A, {64, 128}, 2, 2 * n)
    k.kernel(X, Y):launch {grid = k.grid, block = k.block, device = "sim"}
    turned(X, Y)
    Y:fill(0)
    windows(X, Y, {64, 64})
    turned(X, Y)
    -- Rows of X and of Y alternate in memory, without gaps.
    all = filled({133, 269}, "bf16", 7)
    X = cute.make_tensor(all.iterator, cute.make_layout({133, 133}, {269, 1}))
    Y = cute.make_tensor(all.iterator + 136, X.layout)
    for _, maps in ipairs {false, true} do
      windows(X, Y, {64, 64}, maps)
      turned(X, Y)
      Y:fill(0)
    end
    -- Z has rows that are 401 elements apart and begin at element 0 or 1.
    local wide = filled({130, 400}, "bf16", 5)
    for first = 0, 1 do
      local Z = cute.make_tensor(wide.iterator + first,
                                 cute.make_layout({129, 275}, {401, 1}))
      turned(Z, cute.ops.transpose(Z, {device = "sim"}))
    end
  end)

  it("transpose with operands of other widths and coordinates #long",
     function()
    local function rows(dtype, seed) return filled({65, 275}, dtype, seed) end
    local function columns(t)
      return cute.make_tensor(t.iterator, cute.select(t.layout, {1, 0}))
    end
    local X, Y, Z = rows("i8", 1), rows("f32", 2), rows("bf16", 3)
    local V = cute.ops.transpose(Y, {device = "sim"})
    for _, y in ipairs {columns(Y), V} do
      same(elementwise(function(x, v, z, at_xy)
        local i, j = at_xy:coords()
        return x:to(cute.f32) + v * 2 + z * 3 + (i * 7 + j):to(cute.f32)
      end, columns(X), y, columns(Z), {device = "sim",
        out = cute.zeros({275, 65}, cute.f32)}), {275, 65}, function(p)
        local i, j = p[1], p[2]
        return X(j, i) + Y(j, i) * 2 + Z(j, i) * 3 + i * 7 + j
      end)
    end
  end)

  it("turn elements past 2^31 whose rows begin anywhere #noasan #long",
     function()
    local pitch = 60000001
    local X = cute.make_tensor(core.buffer("i8", 39 * pitch + 600),
                               cute.make_layout({40, 600}, {pitch, 1}))
    for i = 0, 39 do for j = 0, 599 do X[{i, j}] = (i * 7 + j) % 100 end end
    turned(X, cute.ops.transpose(X, {device = "sim"}))
    local Y = cute.zeros({600, 40}, "i8")
    local k = require "kernels.transpose" {dtype = cute.u8, extents = {40, 600},
      from = {pitch, 1}, to = {1, 40}, tile = {128, 128}}
    k.kernel(X, Y):launch {grid = k.grid, block = k.block, device = "sim"}
    turned(X, Y)
  end)
end)

describe("cute.ops.copy, convert, transpose", function()
  it("transpose them without a bank conflict #long", function()
    for _, dtype in ipairs {"i8", "bf16", "f32", "f64"} do
      local X, Y = cute.zeros({256, 769}, dtype), cute.zeros({769, 256}, dtype)
      local k = shifted(dtype, 256, 769, {128, 128})
      local r = support.report(k.kernel(X, Y):launch {grid = k.grid,
        block = k.block, device = "sim"})
      local loads = 0
      for _, l in ipairs(r.lines) do
        if l.op == "ld.shared" then
          assert.equal(0, l.conflicts, dtype)
          loads = loads + l.count
        end
      end
      assert.is_true(loads > 0)
      kernels.compiles(k.kernel(X, Y):trace {block = k.block},
                       {"sm_80", "sm_90a"})
    end
  end)

  it("have larger tiles where rows cut lines, windows where vectors do #long",
     function()
    local name, own, tile = "cute.ops.elementwise", {}, nil
    for _, kernel in ipairs {"elementwise", "transpose"} do
      local path = "kernels." .. kernel
      own[path] = require(path)
      package.loaded[path] = function(o)
        tile = ("%s %d,%d%s"):format(kernel, o.tile[1], o.tile[2],
                                     o.maps and " by maps" or "")
        return own[path](o)
      end
    end
    own[name], package.loaded[name] = require(name), nil
    local fresh = require(name)
    for path, module in pairs(own) do package.loaded[path] = module end
    for _, c in ipairs {
      {"bf16", 576, 576, "sim:sm_90a", "elementwise 256,128"},
      {"bf16", 576, 584, "sim:sm_90a", "elementwise 256,256"},
      {"bf16", 584, 576, "sim:sm_80", "elementwise 256,256"},
      {"bf16", 584, 584, "sim:sm_86", "elementwise 256,128"},
      {"bf16", 581, 581, "sim:sm_90a", "transpose 128,128 by maps"},
      {"bf16", 576, 580, "sim:sm_80", "transpose 128,128"},
      {"bf16", 127, 581, "sim:sm_90a", "elementwise 128,128"},
      {"i8", 304, 304, "sim:sm_90a", "elementwise 512,256"},
      {"i8", 304, 301, "sim:sm_90a", "transpose 256,128 by maps"},
      {"i8", 256, 256, "sim:sm_90a", "elementwise 256,256"},
      {"f32", 300, 300, "sim:sm_90a", "elementwise 64,64"},
      {"f32", 301, 301, "sim:sm_90a", "transpose 64,128 by maps"},
      {"f64", 64, 65, "sim:sm_90a", "transpose 64,64 by maps"},
    } do
      local X = cute.zeros({c[2], c[3]}, c[1])
      fresh.transpose(X, {device = c[4]})
      assert.equal(c[5], tile)
    end
    -- Matrices whose distance is not a multiple of 16 bytes are also
    -- transposed.
    fresh.transpose(cute.zeros({2, 65, 129}, cute.f32),
                    {device = "sim:sm_90a"})
    assert.equal("transpose 64,128", tile)
  end)

  it("exchange any modes", function()
    local X = ops.tensor(ops.random(3), {5, 6, 7, 8}, "i16", 3, "k")
    for _, perm in ipairs {{3, 2, 1, 0}, {1, 0, 2, 3}, {2, 3, 0, 1},
                           {0, 1, 2, 3}, {1, 2, 3, 0}} do
      local Y = cute.ops.transpose(X, perm, {device = "sim"})
      each({5, 6, 7, 8}, function(c)
        local y = {}
        for i, m in ipairs(perm) do y[i] = c[m + 1] end
        equal(X(table.unpack(c)), Y(table.unpack(y)))
      end)
    end
  end)

  it("transpose tiles without a bank conflict, in 16 bytes", function()
    for _, dtype in ipairs {"i8", "bf16", "f32", "f64"} do
      local V = 128 // cute[dtype].bits
      local X, Y = cute.zeros({256, 256}, dtype), cute.zeros(
        cute.make_layout({256, 256}, {1, 256}), dtype)
      local k = require "kernels.elementwise" {extents = {256, 256},
        f = function(x) return x end, across = 2, width = V, tile = {128, 128},
        inputs = {{dtype = cute[dtype], stride = {256, 1}, width = V,
                   turned = true}},
        outputs = {{dtype = cute[dtype], stride = {1, 256}}}}
      local r = support.report(k.kernel(X, Y):launch {grid = k.grid,
        block = k.block, device = "sim"})
      assert.equal(0, r:total "conflicts")
      kernels.compiles(k.kernel(X, Y):trace {block = k.block},
                       {"sm_80", "sm_90a"})
      for _, l in ipairs(r.lines) do
        if l.op:find "global" then
          assert.equal(16 * 32, l.bytes // l.count, dtype)
          assert.equal(l.least_sectors, l.sectors)
        end
      end
    end
  end)

  it("keep bits unchanged", function()
    local b = core.buffer("u16", 64)
    for i = 0, 63 do b[i] = 0x7f80 + i * 0x123 & 0xffff end
    local bits = cute.make_tensor(b, cute.make_layout {8, 8})
    local X = cute.recast_tensor(bits, cute.bf16)
    local Y = cute.recast_tensor(cute.ops.copy(X, {device = "sim"}), cute.u16)
    local Z = cute.recast_tensor(cute.ops.transpose(X, {device = "sim"}),
                                 cute.u16)
    for i = 0, 7 do
      for j = 0, 7 do
        equal(bits(i, j), Y(i, j))
        equal(bits(i, j), Z(j, i))
      end
    end
  end)
end)

describe("cute.ops.copy, convert, transpose", function()
  it("convert between all types, and broadcast to their target #long",
     function()
    for i, from in ipairs(TYPES) do
      for k, to in ipairs(TYPES) do
        local X = ops.tensor(ops.random(i + 20 * k), {5, 24}, from, i)
        if from ~= "u8" and to == "u8" then
          X = cute.ops.elementwise(cute.abs, X, {device = "sim"})
        end
        local Y = cute.ops.convert(X, to, {device = "sim"})
        assert.equal(to, tostring(Y.element_type))
        same(Y, {5, 24}, function(c) return X(c[1], c[2]) end)
      end
    end
    local row, D = cute.tensor({1, 2, 3}, cute.bf16), cute.zeros({2, 4, 3},
                                                                 cute.f32)
    assert.equal(D, cute.ops.copy(row, D, {device = "sim"}))
    same(D, {2, 4, 3}, function(c) return c[3] + 1 end)
  end)

  it("do so on a GPU #gpu", function()
    for i, dtype in ipairs {"i8", "bf16", "f32", "f64"} do
      for _, c in ipairs {{1000, 513}, {3, 128, 256}, {2049, 64},
                         {2, 1001, 517}} do
        local X = ops.tensor(ops.random(i), c, dtype, i, "k")
        local Y = cute.ops.transpose(X:to "gpu"):to "host"
        local want = cute.ops.transpose(X, {device = "sim"})
        local n = cute.size(X)
        local a = core.param_memory and core.launch_values {Y, want, n = 2}
        for e = 0, n - 1, 97 do assert.equal(a[2][1][e], a[1][1][e]) end
      end
    end
  end)

  it("transpose such rows in repeated calls, and in a graph #gpu", function()
    for i, dtype in ipairs {"i8", "bf16", "f32", "f64"} do
      local out
      for seed = 1, 3 do
        local X = filled({301, 259}, dtype, seed)
        turned(X, cute.ops.transpose(X:to "gpu", {out = out}):to "host")
        out = out or seed > 1 and cute.zeros({259, 301}, dtype,
                                             {device = "gpu"}) or nil
      end
      local X, Y = filled({301, 259}, dtype, 4):to "gpu", nil
      local graph = cute.graph(function() Y = cute.ops.transpose(X) end,
                               {device = "gpu"})
      local now = filled({301, 259}, dtype, 5 + i)
      X:copy_from(now)
      graph:launch()
      turned(now, Y:to "host")
    end
  end)

  it("report what is wrong", function()
    local X = cute.zeros({4, 5}, cute.f32)
    local o = cute.ops
    for _, c in ipairs {
      {"x is (4,5):(5,1), but {0, 2} is not a permutation of its modes 0 to 1",
       o.transpose, X, {0, 2}},
      {"x is (4,5):(5,1), but {0, 0} is not a "
        .. "permutation", o.transpose, X, {0, 0}},
      {"ops.transpose needs at least two modes", o.transpose,
       cute.zeros({4}, cute.f32)},
      {"ops.copy: src is (4,5):(5,1) and dst is (5,4):(4,1): modes of extents "
       .. "4 and 5 do not broadcast", o.copy, X, cute.zeros({5, 4}, cute.f32)},
      {"ops.copy: dst is (5):(1), but the result has extents (4,5)",
       o.copy, X, cute.zeros({5}, cute.f32)},
      {"ops.copy: dst shares memory with src", o.copy,
       cute.make_tensor(X.iterator + 1, cute.make_layout {8}),
       cute.make_tensor(X.iterator, cute.make_layout {8})},
    } do
      assert.matches(c[1], support.message(c[2], table.unpack(c, 3)), 1, true)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
