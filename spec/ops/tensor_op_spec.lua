-- Tests random calls of operations on whole tensors against plain Lua. The text
-- of a random elementwise function runs on vectors in the kernel and on plain
-- numbers as the oracle. Copies, transposes and reductions read any views, with
-- all values of a type.
local core = require "cute.core"
local cute = require "cute"
local ops = require "spec.ops"
local plain = require "spec.plain"
local support = require "spec.support"

local DEVICES = {"sim:sm_80", "sim:sm_89", "sim:sm_90a"}
local TYPES = {"f32", "bf16", "f16", "f64", "i32", "i8", "u8", "i64", "i16",
               "u16", "u32", "u64", "e4m3", "e5m2"}

---------------------------------------------------------------------------
-- Functions
---------------------------------------------------------------------------

local function is_float(t) return cute[t].is_float end
local function is_unsigned(t) return t:find "^u" ~= nil end

local NARROW = {bf16 = true, f16 = true, e4m3 = true, e5m2 = true}

-- Returns the type that a function sees for an operand of type t.
local function seen(t) return NARROW[t] and "f32" or t end

local Maker = {}
Maker.__index = Maker

-- Returns the text of an operand of type t. An operand of another type is
-- converted in the text.
function Maker:leaf(t)
  local i = self.pick(#self.types) + 1
  local s = seen(self.types[i])
  if s == t then return "x" .. i end
  -- Clamping replaces NaNs, and values that the integer type cannot represent.
  if is_float(s) and not is_float(t) then
    return ("cute.max(cute.min(x%d, 120), %d):to(cute.%s)"):format(i,
      is_unsigned(t) and 0 or -120, t)
  end
  return ("x%d:to(cute.%s)"):format(i, t)
end

function Maker:number(t)
  if t == self.sums then
    return self.pick {"0.5", "-3", "k", "c.by", "1e-3"}
  elseif is_float(t) then
    return self.pick {"0.5", "-3", "2.25"}
  end  -- A literal gets its type from the other operand.
  return self.pick {"1", "3", "100", (t == "i32" or t == "i64") and "n" or "7"}
end

function Maker:condition(depth)
  local t = self.pick(self.inside)
  local text = ("%s:%s(%s)"):format(self:expr(t, depth, true),
    self.pick {"lt", "le", "gt", "ge", "eq", "ne"}, self.pick(2) == 0
    and self:number(t) or self:expr(t, depth))
  if depth > 1 and self.pick(4) == 0 then
    return ("(%s %s ~%s)"):format(text, self.pick {"&", "|"},
                                  self:condition(depth - 1))
  end
  return text
end

local FLOAT = {"+", "-", "*", "/", "//", "%", "neg", "min", "max", "abs",
               "floor", "ceil", "sqrt", "where", "to"}
local INTEGER = {"+", "-", "*", "//", "%", "&", "|", "~", "<<", ">>", "neg",
                 "min", "max", "abs", "where", "to"}

-- Returns the text of an expression of type t. The leftmost operand is never a
-- literal, so that the expression has methods.
function Maker:expr(t, depth)
  if depth == 0 then return self:leaf(t) end
  local op = self.pick(is_float(t) and FLOAT or INTEGER)
  local a = self:expr(t, depth - 1)
  local function b()
    if self.pick(3) == 0 then return self:number(t) end
    return self:expr(t, depth - 1)
  end
  if op == "neg" then return ("(-%s)"):format(a)
  elseif op == "abs" and is_unsigned(t) then return a
  elseif op == "sqrt" then return ("cute.sqrt(cute.abs(%s))"):format(a)
  elseif op == "abs" or op == "floor" or op == "ceil" then
    return ("cute.%s(%s)"):format(op, a)
  elseif op == "min" or op == "max" then
    return ("cute.%s(%s, %s)"):format(op, a, b())
  elseif op == "where" then
    return ("cute.where(%s, %s, %s)"):format(self:condition(depth - 1), a, b())
  elseif op == "to" then
    local s = self.pick(self.inside)
    if s == t then return a end
    if is_float(s) and not is_float(t) then
      return ("cute.max(cute.min(%s, 99), 0):to(cute.%s)"):format(
        self:expr(s, depth - 1), t)
    end
    return ("%s:to(cute.%s)"):format(self:expr(s, depth - 1), t)
  elseif op == "<<" or op == ">>" then
    local n = self.pick(cute[t].bits)
    -- The mask limits the operand, so that no bit is shifted into the sign bit.
    if op == "<<" and cute[t].bits >= 32 then
      return ("((%s & 15) << %d)"):format(a, n % 20)
    end
    return ("(%s %s %d)"):format(a, op, n)
  elseif (op == "//" or op == "%") and not is_float(t) then
    return ("(%s %s ((%s & 7) + 1))"):format(a, op, self:expr(t, depth - 1))
  elseif not is_float(t) and cute[t].bits >= 32 and op:find "[+*-]" then
    return ("(%s %% 97 %s %s)"):format(a, op, self.pick(2) == 0
      and self:number(t) or self:expr(t, depth - 1) .. " % 97")
  end
  return ("(%s %s %s)"):format(a, op, b())
end

-- Returns the text of a function whose operands have these types, and the types
-- of its results.
local function text_of(pick, types, with_at)
  local m = setmetatable({pick = pick, types = types, inside = {},
                          sums = "f32"}, Maker)
  for i, t in ipairs(types) do
    m.inside[i] = seen(t)
    if t == "f64" then m.sums = t end
  end
  m.inside[#m.inside + 1] = pick {"f32", "i32", "bf16", "f16", "i64"}
  local names, values = {}, {}
  for i = 1, #types do names[i] = "x" .. i end
  if with_at then names[#names + 1] = "at" end
  for i = 1, pick {1, 1, 1, 2, 3} do
    local t = pick(m.inside)
    values[i] = m:expr(t, pick {1, 2, 2, 3})
    if with_at and i == 1 then
      values[i] = ("cute.where((select(-1, at:coords()) %% 2):eq(0), %s, %s)")
        :format(values[i], m:leaf(t))
    end
    if i > 1 and pick(4) == 0 then values[i] = m:condition(1) end
  end
  return ("local k, n, c = ...\nreturn function(%s)\n  return %s\nend"):format(
    table.concat(names, ", "), table.concat(values, ",\n    "))
end

local function elements(number, device, told)
  local pick = ops.random(number)
  local all = ops.shape(pick, 700)
  local types, list, shapes = {}, {}, {}
  for i = 1, pick {1, 2, 2, 3} do
    types[i] = pick(TYPES)
    shapes[i] = i == 1 and all or ops.part(pick, all)
    list[i] = ops.scattered(pick, shapes[i], types[i], pick {"few", "all"})
  end
  local with_at = pick(5) == 0
  local text = text_of(pick, types, with_at)
  local k, n, c = pick {1.5, -0.25}, pick {1, 5}, {by = 4.0}
  local function made(env)
    return assert(load(text, "=f", "t", env))(k, n, c)
  end
  local o = {device = device or pick(DEVICES), seed = number}
  told(("%s of %s: %s"):format(table.concat(types, " "), o.device, text))
  local f, want = made {cute = cute, select = select},
    made {cute = plain.cute, select = select}
  local args = table.move(list, 1, #list, 1, {})
  if pick(3) == 0 then
    o.out = ops.scattered(pick, all, pick(TYPES), "none")
  end
  args[#args + 1] = o
  local on_card = device == "gpu"
  if on_card then
    for i, t in ipairs(list) do args[i] = t:to "gpu" end
    if o.out then o.out = o.out:to "gpu" end
  end
  local results = {cute.ops.elementwise(f, table.unpack(args))}
  assert(not o.out or rawequal(o.out, results[1]) or o.out == results[1])
  for i, t in ipairs(results) do results[i] = t:to "host" end
  ops.each_of(all, function(at)
    local given = {}
    for i, t in ipairs(list) do
      given[i] = plain.value(types[i], ops.element(t, at)):to(seen(types[i]))
    end
    if with_at then given[#given + 1] = plain.at(at) end
    local right = {want(table.unpack(given))}
    for i, y in ipairs(results) do
      local x = right[i]:to(tostring(y.element_type)).v
      local got = ops.element(y, at)
      if not support.same(x, got) then
        error(("result %d at (%s) is %s, not %s"):format(i,
          table.concat(at, ","), got, x), 0)
      end
    end
  end)
end

---------------------------------------------------------------------------
-- Views
---------------------------------------------------------------------------

-- Returns all elements of t's buffer as bit patterns.
local function memory_of(t)
  local b = core.launch_values {t, n = 1}[1][1]
  local list = {}
  for i = 0, #b - 1 do list[i] = b[i] end
  return list, b
end

-- Fails if an element of t differs from f(coordinates), or if memory outside of
-- t's elements has changed.
local function check(t, shape, was, f)
  local mine = {}
  local first = core.launch_values({t, n = 1})[1][2] * 8 // t.element_type.bits
  local l = t.layout
  ops.each_of(shape, function(at)
    local x, y = f(at), t(table.unpack(at))
    if not support.same(x, y) then
      error(("(%s) is %s, not %s"):format(table.concat(at, ","), y, x), 0)
    end
    mine[first + l(table.unpack(at))] = true
  end)
  local now = memory_of(t)
  for i, x in pairs(was or {}) do
    if not mine[i] and not support.same(x, now[i]) then
      error(("element %d of its memory was %s and is %s"):format(i, x, now[i]),
            0)
    end
  end
end

-- Returns a view of t in which two modes are merged into one nested mode.
local function nested(pick, t, shape)
  local m = pick(#shape - 1) + 1
  local s, d, own, l = {}, {}, {}, t.layout
  for i = 1, #shape do
    if i == m + 1 then
      s[m], d[m] = {l.shape[m + 1], l.shape[m]}, {l.stride[m + 1], l.stride[m]}
      own[m] = shape[m] * shape[m + 1]
    else
      s[#s + 1], d[#d + 1] = l.shape[i], l.stride[i]
      own[#own + 1] = shape[i]
    end
  end
  return cute.make_tensor(t.iterator, cute.make_layout(s, d)), own
end

local function views(number, device, told)
  local pick = ops.random(number)
  local shape = ops.shape(pick, 3000)
  local from, to = pick(TYPES), pick(TYPES)
  if pick(2) == 0 then to = from end
  local X = ops.scattered(pick, shape, from, "all")
  if #shape > 2 and pick(4) == 0 then X, shape = nested(pick, X, shape) end
  local o = {device = device or pick(DEVICES), seed = number}
  local on_card = device == "gpu"
  local G = on_card and X:to "gpu" or X
  local what = pick {"copy", "copy", "convert", "transpose", "transpose"}
  if #shape < 2 and what == "transpose" then what = "copy" end
  told(("%s of %s %s to %s on %s"):format(what, X.layout, from, to, o.device))
  local function value(at)
    local x = ops.element(X, at)
    return from == to and x or plain.value(from, x):to(to).v
  end
  local Y
  if what == "copy" then
    local all = table.move(shape, 1, #shape, 1, {})
    if pick(3) == 0 then table.insert(all, 1, pick {2, 3}) end
    local D = ops.any(pick, all, to)
    local was = memory_of(D)
    Y = cute.ops.copy(G, on_card and D:to "gpu" or D, o):to "host"
    check(Y, all, not on_card and was, value)
  elseif what == "convert" then
    Y = cute.ops.convert(G, to, o):to "host"
    check(Y, shape, nil, value)
  else
    local perm = {}
    for m = 1, #shape do table.insert(perm, pick(m) + 1, m - 1) end
    if pick(2) == 0 then perm = nil end
    to = from
    Y = (perm and cute.ops.transpose(G, perm, o) or cute.ops.transpose(G, o))
      :to "host"
    if not perm then
      perm = {}
      for m = 1, #shape do perm[m] = m - 1 end
      perm[#shape - 1], perm[#shape] = #shape - 1, #shape - 2
    end
    local own = {}
    for i, m in ipairs(perm) do own[i] = shape[m + 1] end
    assert(Y.layout == cute.make_layout(own, cute.LayoutRight))
    check(Y, own, nil, function(at)
      local c = {}
      for i, m in ipairs(perm) do c[m + 1] = at[i] end
      return value(c)
    end)
  end
end

---------------------------------------------------------------------------
-- Reductions
---------------------------------------------------------------------------

local OPS = {"sum", "max", "argmax", "norm", "min", "argmin", "amax", "mean",
             "prod", "rms"}

-- A Fold is an object that reduces, in plain Lua, the elements that belong to
-- one element of the result. It also computes the tolerance of sums.
local Fold = {}
Fold.__index = Fold

function Fold:add(x, index)
  local v, float = x.v, self.float
  local less = x.t == "u64" and math.ult or function(a, b) return a < b end
  self.n = self.n + 1
  if float then
    self.sum, self.size = self.sum + v, self.size + math.abs(v)
    self.prod = self.prod * v
    local way = math.abs(v) < 1 and "down" or "up"
    self[way] = self[way] * math.abs(v)
    self.q = self.q + v * v
  else
    self.sum, self.prod = self.sum + v, self.prod * v
    local f = x:to "f32".v
    self.fsum, self.size = self.fsum + f, self.size + math.abs(f)
    self.q = self.q + f * f
  end
  if v == v then
    if not self.max or less(self.max, v) then self.max = v end
    if not self.min or less(v, self.min) then self.min = v end
    local a = cute[x.t].is_integer and is_unsigned(x.t) and v or math.abs(v)
    if not self.amax or less(self.amax, a) then self.amax = a end
  end
  for name, first in pairs {argmax = function(a, b) return less(b, a) end,
                            argmin = less} do
    local best = self[name]
    if not best or best.v == best.v and (v ~= v or first(v, best.v)) then
      self[name] = {v = v, at = index}
    end
  end
end

-- Returns the expected result of the reduction `op` and its tolerance. Returns
-- nil if the result may have any value.
function Fold:value(op)
  local most = self.float == "f64" and math.huge or 2.0 ^ 127
  local eps = self.float == "f64" and 2.0 ^ -50 or 2.0 ^ -20
  if op:find "^arg" then return self[op].at, 0
  elseif op == "max" or op == "min" then
    return self[op] or (op == "max" and -math.huge or math.huge), 0
  elseif op == "amax" then return self.amax or 0.0, 0
  elseif op == "norm" or op == "rms" then
    if self.q >= most or self.q > 0 and self.q < 2.0 ^ -90 then return nil end
    return (self.q / (op == "rms" and self.n or 1)) ^ 0.5,
      self.q ^ 0.5 * eps
  elseif op == "mean" then
    local sum = self.float and self.sum or self.fsum
    if self.size >= most then return nil end
    return sum / self.n, self.size * eps
  elseif not self.float then return self[op], 0
  elseif op == "sum" then
    if self.size >= most then return nil end
    return self.sum, self.size * eps
  end
  -- A product that may overflow or underflow depends on the order.
  if self.down < 1e-30 or self.up > 1e30 then return nil end
  return self.prod, math.abs(self.prod) * self.n * 2.0 ^ -22
end

local function reductions(number, device, told)
  local pick = ops.random(number)
  local shape = ops.shape(pick, 3000)
  local dtype, op = pick(TYPES), pick(OPS)
  local X = ops.scattered(pick, shape, dtype, pick {"few", "all"})
  if #shape > 2 and pick(4) == 0 then X, shape = nested(pick, X, shape) end
  local by = pick {"row", "all", "list", #shape > 1 and "column" or "row"}
  local gone = {}
  if by == "list" then
    by = {}
    for m = 0, #shape - 1 do
      if pick(2) == 0 then table.insert(by, pick(#by + 1) + 1, m) end
    end
    if #by == 0 then by[1] = pick(#shape) end
    for _, m in ipairs(by) do gone[m + 1] = true end
  else
    for m = 1, #shape do
      gone[m] = by == "all" or by == "row" and m == #shape
        or by == "column" and m == #shape - 1
    end
  end
  local o = {by = by, device = device or pick(DEVICES), seed = number}
  told(("%s by %s of %s %s on %s"):format(op, type(by) == "table"
    and table.concat(by, ",") or by, X.layout, dtype, o.device))
  local kept, folds = {}, {}
  for m, n in ipairs(shape) do
    if not gone[m] then kept[#kept + 1] = n end
  end
  ops.each_of(shape, function(at)
    local place, index = {}, 0
    for m, c in ipairs(at) do
      if gone[m] then index = index * shape[m] + c
      else place[#place + 1] = c end
    end
    local key = table.concat(place, ",")
    if not folds[key] then
      folds[key] = setmetatable({float = is_float(dtype) and dtype, n = 0,
        sum = is_float(dtype) and 0.0 or 0, fsum = 0.0, size = 0.0, q = 0.0,
        up = 1, down = 1,
        prod = is_float(dtype) and 1.0 or 1}, Fold)
    end
    folds[key]:add(plain.value(dtype, X(table.unpack(at))), index)
  end)
  if #kept == 0 then kept[1] = 1 end
  local Y = cute.ops.reduce(device == "gpu" and X:to "gpu" or X, op, o)
    :to "host"
  assert(Y.layout == cute.make_layout(kept, cute.LayoutRight))
  ops.each_of(kept, function(at)
    local f = folds[table.concat(at, ",")] or folds[""]
    local x, off = f:value(op)
    local y = Y(table.unpack(at))
    if x and not (support.same(x, y) or math.abs(x - y) <= off) then
      error(("(%s) is %s, not %s"):format(table.concat(at, ","), y, x), 0)
    end
  end)
end

---------------------------------------------------------------------------

local function problems(name, random)
  local function all(first, last, device)
    for number = first, last do
      local words
      local ok, why = pcall(random, number, device, function(x) words = x end)
      if not ok then error(("%d: %s: %s"):format(number, words, why), 0) end
    end
  end
  it(name, function() all(1, 10) end)
  it(name .. ", 30 more #long", function() all(11, 40) end)
  it(name .. " on a card #gpu", function() all(41, 80, "gpu") end)
end

describe("random calls", function()
  problems("of elementwise give what numbers give", elements)
  problems("of copies and transposes move what is there", views)
  problems("of reductions give what numbers give", reductions)
end)

describe("calls", function()
  local SIM = {device = "sim:sm_90a"}

  it("store all elements of small tiles, for any mix of widths #long",
     function()
    for _, types in ipairs {{"f32", "i8"}, {"f64", "u8"}, {"f64", "bf16"},
                            {"i32", "e4m3"}, {"f32", "f32"}} do
      for _, e in ipairs {{17, 8}, {16, 16}, {9, 40}, {33, 24}} do
        local X = ops.tensor(ops.random(e[1]), e, types[1], 3, "m")
        local Y = cute.full(e, 3, types[2])
        cute.ops.copy(X, Y, SIM)
        ops.each_of(e, function(at)
          local x = types[2] == "u8" and math.max(X(at[1], at[2]), 0)
            or X(at[1], at[2])
          if Y(at[1], at[2]) ~= x then
            error(("%s to %s (%d,%d): (%d,%d)"):format(types[1], types[2], e[1],
                                                       e[2], at[1], at[2]))
          end
        end)
      end
    end
  end)

  it("round integers once that doubles cannot represent", function()
    local X = cute.tensor({0x32dfffffffffff, 0xffcd200000000001,
      0x78400000000001, (1 << 53) - 1, -1, math.maxinteger}, cute.i64)
    local U = cute.recast_tensor(cute.tensor({0xff7fffffffffffff,
      0x2e5fffffffffff, 1 << 62, -1}, cute.i64), cute.u64)
    local function codes(t) -- codes as bf16
      local Y = cute.recast_tensor(cute.ops.convert(t, "bf16", SIM), cute.u16)
      local list = {}
      for i = 0, cute.size(Y) - 1 do list[i + 1] = Y(i) end
      return list
    end
    assert.same({0x5a4b, 0xda4b, 0x5af1, 0x5a00, 0xbf80, 0x5f00}, codes(X))
    assert.same({0x5f7f, 0x5a39, 0x5e80, 0x5f80}, codes(U))
  end)

  it("convert all values as the simulator does #gpu", function()
    for _, from in ipairs(TYPES) do
      local X = ops.scattered(ops.random(7), {40, 200}, from, "all")
      local f = function(x)
        local list = {}
        for i, t in ipairs(TYPES) do list[i] = x:to(cute[t]) end
        return table.unpack(list)
      end
      local a = {cute.ops.elementwise(f, X, SIM)}
      local b = {cute.ops.elementwise(f, X:to "gpu")}
      for i, to in ipairs(a) do
        local t = tostring(to.element_type)
        local code = cute["u" .. cute[t].bits]
        local x, y = cute.recast_tensor(a[i], code),
          cute.recast_tensor(b[i]:to "host", code)
        ops.each_of({40, 200}, function(at)
          if x(at[1], at[2]) ~= y(at[1], at[2]) then
            error(("%s to %s at (%d,%d): %s is %x, not %x"):format(from, t,
              at[1], at[2], X(at[1], at[2]), y(at[1], at[2]), x(at[1], at[2])))
          end
        end)
      end
    end
  end)

  it("of reduce reach past 2^31 vectors and places", function()
    local reduce_tensor = require "kernels.reduce_tensor"
    local far, some = (1 << 31) + 37, {extents = {3}, stride = {1}}
    local function one(dtype)
      return cute.make_tensor(cute.zeros({64}, dtype).iterator,
                              cute.make_layout {64})
    end
    for _, c in ipairs {
      {"along", "argmax", {extents = {far}, stride = {1}}, some},
      {"along", "sum", {extents = {far}, stride = {0}}, some, 8},
      {"along", "max", some, {extents = {far}, stride = {3}}},
      {"across", "argmax", {extents = {far}, stride = {3}}, some},
      {"across", "sum", {extents = {far, 3}, stride = {3, 0}}, some, 8},
      {"across", "argmin", {extents = {3}, stride = {far}},
       {extents = {far}, stride = {1}}}} do
      local way, op, folded, kept, splits = table.unpack(c)
      local k = reduce_tensor[way] {op = op, dtype = cute.i8,
        sums = cute.i64, width = 1, kept = kept,
        folded = folded, stride = {1}, places = kept.extents[1],
        count = cute.product(folded.extents), splits = splits or 1, steps = 2,
        index = op:find "^arg" and {1} or nil, block = 256, threads = 256,
        wide = folded.extents[1] == far, lanes = 32}
      local source = k.kernel(one(cute.i8), one(cute.i64), splits
        and one(cute.i64)):trace {block = 256}.source
      assert.matches("long long", source, 1, true)
    end
  end)

  it("of elementwise pass coordinates past 2^31", function()
    local n = (1 << 31) + 37  -- 37 % 16 elements follow the last full
                              -- vector
    local k = require "kernels.elementwise" {extents = {n}, wide = true,
      width = 16, index = {1}, inputs = {{dtype = cute.i8, stride = {1}}},
      f = function(x, i) return cute.where(i:ge(1 << 31), x, i:to(cute.i8)) end,
      outputs = {{dtype = cute.i8, stride = {1}}}}
    local X = cute.make_tensor(cute.zeros({64}, cute.i8).iterator,
                               cute.make_layout {64})
    assert.matches("+ 2147483680ll", k.kernel(X, X):trace {block = k.block}
      .source, 1, true)
  end)
end)

describe("calls", function()
  local GPU, reduce = {device = "gpu"}, cute.ops.reduce
  -- Returns a view of `count` elements of t, from element `first`
  -- on.
  local function part(t, first, count)
    return cute.make_tensor(t.iterator + first, cute.make_layout {count})
  end

  it("take more than 2^31 elements #gpu", function()
    local n = (1 << 31) + 37
    local X = cute.full({n}, 1, cute.i8, GPU)
    part(X, n - 3, 3):fill(5)
    assert.equal(n + 12, reduce(X, "sum"):to "host"(0))
    assert.equal(n - 3, reduce(X, "argmax"):to "host"(0))
    assert.equal(5, reduce(X, "max"):to "host"(0))
    -- `odd` begins at an odd element, so vectors of it have a single element.
    -- `same` has a stride of 0.
    local odd = part(X, 1, n - 1)
    assert.equal(n + 11, reduce(odd, "sum"):to "host"(0))
    assert.equal(n - 4, reduce(odd, "argmax"):to "host"(0))
    local same = cute.make_tensor(X.iterator, cute.make_layout({n}, {0}))
    assert.equal(n, reduce(same, "sum"):to "host"(0))
    -- reduces to more than 2^31 positions
    local pairs_of = cute.make_tensor(X.iterator,
                                      cute.make_layout({n, 2}, {1, 0}))
    local P = reduce(pairs_of, "max", {by = "row"})
    assert.equal(5, part(P, n - 1, 1):to "host"(0))
    assert.equal(n + 12, reduce(P, "sum"):to "host"(0))
    local Y = cute.ops.elementwise(function(x, at)
      return cute.where((at:coords()):lt(0), x, x * 3)
    end, X)
    assert.equal(3 * (n + 12), reduce(Y, "sum"):to "host"(0))
  end)

  it("transpose more than 2^31 elements #gpu", function()
    collectgarbage()
    local rows, columns = 65537, 32771
    local X = cute.full({rows, columns}, 1, cute.i8, GPU)
    part(X, (rows - 2) * columns + 32769, 1):fill(7)
    local T = cute.ops.transpose(X)
    assert.equal(32769 * rows + rows - 2, reduce(T, "argmax"):to "host"(0))
    assert.equal(rows * columns + 6, reduce(T, "sum"):to "host"(0))
  end)

  it("of reduce have one result, and accept tf32", function()
    local X = cute.full({4, 6}, 1.5, cute.tf32)
    local Y = cute.ops.reduce(X, "sum", {by = "row", device = "sim"})
    assert.equal(9.0, Y(3))
    assert.equal(0, cute.ops.reduce(X, "argmax", {device = "sim"})(0))
    assert.matches("ops.reduce: out 2 is given, but there is only one result",
      support.message(cute.ops.reduce, X, "sum", {out = {cute.zeros({1}, "f32"),
        cute.zeros({1}, "f32")}, device = "sim"}), 1, true)
  end)

  it("of amax give magnitudes that the type cannot represent", function()
    for _, bits in ipairs {8, 16, 32, 64} do
      local X = cute.zeros({3, 5000}, "i" .. bits)
      X[{1, 4000}], X[{2, 7}] = -1 << bits - 1, -3
      local Y = cute.ops.reduce(X, "amax", {by = "row", device = "sim"})
      assert.equal("u" .. bits, tostring(Y.element_type))
      assert.equal(0, Y(0))
      assert.equal(1 << bits - 1, Y(1))
      assert.equal(3, Y(2))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
