--- Makes random kernels, as Lua text: integers of all widths, floats,
-- fragments, vectors, shared memory, branches, loops with carried locals,
-- warp-collective operations. Their results do not depend on the order in which
-- a compiler evaluates them: signed integers do not overflow, no access is out
-- of bounds, and no two threads race.
--
-- A program is a tree of lines (strings) and blocks ({head =, tail =, lines
-- ...}), so that it can be shrunk by removing parts.
local random = {}

-- Each thread has IN elements in each input and OUT elements in each output. It
-- also has LEFT elements in an output for the final values of locals and
-- fragments.
local IN, OUT, LEFT = 8, 16, 32

-- Each type has {class, number of bits}. A signed integer also has two bounds
-- of magnitudes: `lim` for intermediate values, and `keep` for locals and
-- elements of memory.
local TYPES = {
  i8 = {"I", 8, 127, 100}, u8 = {"U", 8}, i16 = {"I", 16, 32767, 10000},
  u16 = {"U", 16}, i32 = {"I", 32, (1 << 31) - 1, 1000000}, u32 = {"U", 32},
  i64 = {"I", 64, 1 << 62, 1 << 50}, u64 = {"U", 64}, f16 = {"F", 16},
  bf16 = {"F", 16}, f32 = {"F", 32}, f64 = {"F", 64}}
local NAMES = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16",
               "bf16", "f32", "f64"}

local function class(t) return TYPES[t][1] end
local function bits(t) return TYPES[t][2] end

---------------------------------------------------------------------------
-- A generator of random numbers, the same on all machines
---------------------------------------------------------------------------

local Gen = {}
Gen.__index = Gen

-- Returns a random integer from 1 to n.
function Gen:r(n)
  local s = self.state
  s = s ~ s << 13
  s = s ~ s >> 7
  s = s ~ s << 17
  self.state = s
  return (s >> 11) % n + 1
end

function Gen:chance(percent) return self:r(100) <= percent end
function Gen:pick(list) return list[self:r(#list)] end

--- Returns one to three statements as text, which may use the loop variable
-- `counter`.
function Gen:sequence(depth, counter)
  local out = {}
  self.counters[#self.counters + 1] = counter
  for _ = 1, self:r(3) do out[#out + 1] = self:statement(depth) end
  if counter then self.counters[#self.counters] = nil end
  return "do " .. table.concat(out, " end do ") .. " end"
end

random.Gen = Gen

---------------------------------------------------------------------------
-- Expressions: a text and, for signed integers, a bound of the magnitude
---------------------------------------------------------------------------

-- Returns an expression whose values are at most `most`, and its bound. The
-- expression is `text` if `bound` is small enough; otherwise `text` modulo a
-- number.
local function within(g, text, bound, most)
  if bound <= most then return text, bound end
  local m = most + 1
  if g:chance(50) then
    m = 1
    while m <= most // 2 + 1 do m = m * 2 end
    if m > most + 1 then m = m // 2 end
  end
  if m > (1 << 61) then m = 1 << 61 end
  return ("((%s) %% %d)"):format(text, m), m - 1
end

-- Returns the least power of two above `bound`, at most 2^61.
local function power(bound)
  local p = 1
  while p <= bound and p < 1 << 61 do p = p * 2 end
  return p
end

local CONSTS = {0, 1, 2, 3, 5, 7, 8, 16, 31, 100}

-- Returns the text of a variable, or of an element of an argument, a fragment
-- or shared memory.
local function leaf(g, t)
  local found = {}
  for _, v in ipairs(g.scope) do
    if v.type == t and (v.kind == "local" or v.kind == "frag"
      or v.kind == "var") then
      found[#found + 1] = v
    end
  end
  if #found > 0 and g:chance(70) then
    local v = g:pick(found)
    if v.kind == "local" then return v.name, v.bound end
    if v.kind == "var" then return v.name .. ".value", v.bound end
    return ("%s[%s]"):format(v.name, g:register(v)), v.bound
  end
  local keep = TYPES[t][4] or 0
  if not g.args[t] then  -- converts an element of an argument that has another
                         -- type
    local from = g:pick(g.types)
    local text = ("x_%s[%d]"):format(from, g:r(IN) - 1)
    if class(t) == "I" and class(from) ~= "F" then
      local most = math.min(keep, (1 << (math.min(bits(from), 62) - 1)) - 1)
      return ("(%s & %d):to(cute.%s)"):format(text, power(most) // 2 - 1, t),
        keep
    elseif class(t) == "I" then
      return ("(%s:to(cute.%s) %% %d)"):format(text, t, keep), keep
    end
    return ("%s:to(cute.%s)"):format(text, t), keep
  end
  local what = g:chance(80) and "x" or "y"
  if what == "x" and g:chance(20) then
    return ("x_%s[%s & %d]"):format(t, g:expr("i32", 1), IN - 1), keep
  end
  return ("%s_%s[%d]"):format(what, t, g:r(what == "x" and IN or OUT) - 1),
    keep
end

-- Returns two operands whose sum is within the range of the type.
local function two(g, t, d, most)
  local a, m = g:expr(t, d - 1)
  local b, n
  if g:chance(25) then
    n = g:pick(CONSTS)
    b = tostring(n)
  else
    b, n = g:expr(t, g:r(d) - 1)
  end
  if class(t) ~= "I" then return a, b, 0, 0 end
  a, m = within(g, a, m, most)
  if not math.tointeger(b) then b, n = within(g, b, n, most) end
  if n > most then b, n = "7", 7 end
  return a, b, m, n
end

local INT_OPS = {}

function INT_OPS.add(g, t, d)
  local a, b, m, n = two(g, t, d, (TYPES[t][3] or 0) // 2)
  return ("(%s + %s)"):format(a, b), m + n
end
function INT_OPS.sub(g, t, d)
  local a, b, m, n = two(g, t, d, (TYPES[t][3] or 0) // 2)
  if g:chance(10) then a, b = b, a end
  if math.tointeger(a) and math.tointeger(b) then a = "x_" .. t .. "[0]" end
  return ("(%s - %s)"):format(a, b), m + n
end
function INT_OPS.mul(g, t, d)
  local a, b, m, n = two(g, t, d, math.floor(math.sqrt(TYPES[t][3] or 0)))
  return ("(%s * %s)"):format(a, b), m * n
end
function INT_OPS.div(g, t, d)
  local a, m = g:expr(t, d - 1)
  local most = TYPES[t][3] or math.maxinteger
  if class(t) == "I" then a, m = within(g, a, m, most - 1) end
  local b = g:chance(70) and g:pick {"1", "2", "3", "7", "8", "100"}
    or ("((%s & 7) + 1)"):format((g:expr(t, d - 1)))
  if class(t) == "I" and g:chance(20) and tonumber(b) then b = "-" .. b end
  return ("(%s // %s)"):format(a, b), m + 1
end
function INT_OPS.mod(g, t, d)
  local a, m = g:expr(t, d - 1)
  if class(t) == "I" then a, m = within(g, a, m, TYPES[t][3] - 1) end
  local c = g:pick {2, 3, 7, 8, 16, 100}
  local sign = class(t) == "I" and g:chance(20) and "-" or ""
  return ("(%s %% %s%d)"):format(a, sign, c), m and c
end
local function bitwise(op)
  return function(g, t, d)
    local a, b, m, n = two(g, t, d, (TYPES[t][3] or 0) // 2)
    return ("(%s %s %s)"):format(a, op, b), power(math.max(m, n))
  end
end
INT_OPS["and"], INT_OPS["or"], INT_OPS.xor =
  bitwise "&", bitwise "|", bitwise "~"
function INT_OPS.shl(g, t, d)
  local a, m = g:expr(t, d - 1)
  local k = g:r(math.min(bits(t) - 2, 7))
  if class(t) == "I" then a, m = within(g, a, m, TYPES[t][3] >> (k + 1)) end
  return ("(%s << %d)"):format(a, k), (m or 0) << k
end
function INT_OPS.shr(g, t, d)
  local a, m = g:expr(t, d - 1)
  local by = g:chance(60) and tostring(g:r(bits(t)) - 1)
    or ("(%s & 7):to(cute.%s)"):format((g:expr("i32", d - 1)), t)
  return ("(%s >> %s)"):format(a, by), m
end
function INT_OPS.minmax(g, t, d)
  local a, b, m, n = two(g, t, d, TYPES[t][3] or 0)
  return ("cute.%s(%s, %s)"):format(g:pick {"min", "max"}, a, b),
    math.max(m, n)
end
function INT_OPS.neg(g, t, d)
  local a, m = g:expr(t, d - 1)
  if class(t) == "I" then a, m = within(g, a, m, TYPES[t][3] - 1) end
  local f = g:pick(class(t) == "I" and {"(-%s)", "(~%s)", "cute.abs(%s)"}
                   or {"(-%s)", "(~%s)"})
  return f:format(a), (m or 0) + 1
end
-- Returns the conversion of a value of another type to t.
function INT_OPS.cvt(g, t, d)
  if g:chance(15) then
    return ("%s:to(cute.%s)"):format(g:bool(d - 1), t), 1
  end
  local from = g:pick(NAMES)
  local a, m = g:expr(from, d - 1)
  if class(t) ~= "I" then return ("(%s):to(cute.%s)"):format(a, t) end
  local lim = TYPES[t][3]
  if class(from) == "F" then
    return ("((%s):to(cute.%s) %% %d)"):format(a, t, lim // 2), lim // 2
  elseif class(from) == "U" then
    local mask = power(math.min(lim, (1 << math.min(bits(from), 62)) - 1))
      // 2 - 1
    return ("(%s & %d):to(cute.%s)"):format(a, mask, t), mask
  end
  a, m = within(g, a, m, lim)
  return ("(%s):to(cute.%s)"):format(a, t), m
end
function INT_OPS.where(g, t, d)
  local a, m = g:expr(t, d - 1)
  local b, n = g:expr(t, d - 1)
  return ("cute.where(%s, %s, %s)"):format(g:bool(d - 1), a, b),
    math.max(m or 0, n or 0)
end

local FLOAT_OPS = {where = INT_OPS.where}

for name, op in pairs {add = "+", sub = "-", mul = "*", div = "/",
                        idiv = "//", mod = "%"} do
  FLOAT_OPS[name] = function(g, t, d)
    local b = g:chance(20) and g:pick {"0.5", "3", "-1.25", "0"}
      or g:expr(t, g:r(d) - 1)
    return ("(%s %s %s)"):format(g:expr(t, d - 1), op, b)
  end
end
function FLOAT_OPS.fma(g, t, d)
  local e = function() return (g:expr(t, d - 1)) end
  return ("cute.fma(%s, %s, %s)"):format(e(), e(), e())
end
function FLOAT_OPS.minmax(g, t, d)
  return ("cute.%s(%s, %s)"):format(g:pick {"min", "max"},
    g:expr(t, d - 1), (g:expr(t, d - 1)))
end
function FLOAT_OPS.one(g, t, d)
  return g:pick {"(-%s)", "cute.abs(%s)"}:format((g:expr(t, d - 1)))
end
function FLOAT_OPS.exact(g, t, d)
  if bits(t) < 32 then return FLOAT_OPS.one(g, t, d) end
  return g:pick {"cute.sqrt(cute.abs(%s))", "cute.floor(%s)", "cute.ceil(%s)"}
    :format((g:expr(t, d - 1)))
end
function FLOAT_OPS.cvt(g, t, d)
  if t == "f32" and g:chance(30) then
    return ("(%s):to(cute.%s):to(cute.f32)"):format((g:expr(t, d - 1)),
      g:pick {"e4m3", "e5m2", "tf32", "bf16", "f16"})
  end
  return ("(%s):to(cute.%s)"):format((g:expr(g:pick(NAMES), d - 1)), t)
end

-- Returns a sorted list, because the order of pairs differs between processes.
local function sorted(ops)
  local names, list = {}, {}
  for name in pairs(ops) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = ops[name] end
  return list
end
local INT_LIST, FLOAT_LIST = sorted(INT_OPS), sorted(FLOAT_OPS)

--- Returns an expression of type t as text, and a bound of its magnitude.
function Gen:expr(t, d)
  local make = leaf
  if d > 0 and not self:chance(15) then
    make = self:pick(class(t) == "F" and FLOAT_LIST or INT_LIST)
  end
  local text, bound = make(self, t, d)
  return text, class(t) == "I" and bound or 0
end

function Gen:bool(d)
  local k = self:r(8)
  if d > 0 and k <= 2 then
    return ("(%s %s %s)"):format(self:bool(d - 1), k == 1 and "&" or "|",
      self:bool(d - 1))
  elseif d > 0 and k == 3 then
    return ("(~%s)"):format(self:bool(d - 1))
  elseif k == 4 then
    for _, v in ipairs(self.scope) do
      if v.type == "boolean" then return v.name end
    end
  end
  local t = self:pick(NAMES)
  local b = self:chance(40) and tostring(self:pick(CONSTS))
    or (self:expr(t, d - 1))
  return ("(%s):%s(%s)"):format((self:expr(t, d)),
    self:pick {"lt", "le", "gt", "ge", "eq", "ne"}, b)
end

-- Returns a value that may be stored: a signed integer is within the bound
-- `keep` of its type.
function Gen:value(t, d)
  local text, bound = self:expr(t, d or self.depth)
  if class(t) ~= "I" then return text end
  return (within(self, text, bound, TYPES[t][4]))
end

---------------------------------------------------------------------------
-- Statements
---------------------------------------------------------------------------

local function declare(g, kind, t, n)
  g.count = g.count + 1
  local name = ({["local"] = "v", frag = "r", var = "m"})[kind] .. g.count
  return {name = name, kind = kind, type = t, n = n, bound = TYPES[t]
          and TYPES[t][4], depth = #g.marks}
end

local function of_kind(g, kind, t)
  local list = {}
  for _, v in ipairs(g.scope) do
    if v.kind == kind and (not t or v.type == t) then list[#list + 1] = v end
  end
  return #list > 0 and g:pick(list) or nil
end

--- Returns the index of one of a fragment's registers, which is sometimes a
-- traced value.
function Gen:register(v)
  if self:chance(80) then return tostring(self:r(v.n) - 1) end
  return ("%s & %d"):format(self:expr("i32", 1), v.n - 1)
end

local STATEMENTS = {}

local function put(out, fmt, ...) out[#out + 1] = fmt:format(...) end

-- Appends a statement that uses a boolean, because an unused boolean is an
-- error.
local function use_boolean(g, out, v)
  put(out, "y_i32[%d] = %s:to(cute.i32)", g:r(OUT) - 1, v.name)
end

function STATEMENTS.new_local(g, out)
  local t = g:chance(85) and g:pick(NAMES) or "boolean"
  local v = declare(g, "local", t)
  put(out, "local %s = %s", v.name,
      t == "boolean" and g:bool(g.depth) or g:value(t))
  g.scope[#g.scope + 1] = v
  if t == "boolean" then use_boolean(g, out, v) end
end

function STATEMENTS.assign(g, out)
  local v = of_kind(g, "local")
  if not v or v.fixed or v.type == "boolean" then
    return STATEMENTS.new_local(g, out)
  end
  put(out, "%s = %s", v.name, g:value(v.type))
end

function STATEMENTS.swap(g, out)
  local v = of_kind(g, "local")
  local w = v and of_kind(g, "local", v.type)
  if not w or v == w or v.fixed or w.fixed or v.type == "boolean" then
    return STATEMENTS.assign(g, out)
  end
  put(out, "%s, %s = %s, %s", v.name, w.name, w.name, g:value(v.type))
end

function STATEMENTS.var(g, out)
  local v = of_kind(g, "var")
  if v and g:chance(70) then
    put(out, "%s.value = %s", v.name, g:value(v.type))
    return
  end
  v = declare(g, "var", g:pick(NAMES))
  put(out, "local %s = cute.var(%s)", v.name, g:value(v.type))
  g.scope[#g.scope + 1] = v
end

function STATEMENTS.new_fragment(g, out)
  local t = g:pick(NAMES)
  local v = declare(g, "frag", t, g:pick {1, 2, 4, 4, 8, 16})
  put(out, "local %s = cute.make_rmem_tensor({%d}, cute.%s)", v.name, v.n, t)
  local k = g:r(3)
  if k == 1 or not g.args[t] or v.n > IN then
    put(out, "%s:fill(%s)", v.name, g:value(t))
  elseif k == 2 then
    put(out, "cute.autovec_copy(cute.local_tile(x_%s, {%d}, {0}), %s)", t,
        v.n, v.name)
  else
    put(out, "for k = 0, %d do %s[k] = x_%s[k] end", v.n - 1, v.name, t)
  end
  g.scope[#g.scope + 1] = v
end

-- Returns a statement that stores to fragment v. The stored values may come
-- from v itself.
local function write_fragment(g, v)
  local k = g:r(8)
  if k <= 3 then
    return ("%s[%s] = %s"):format(v.name, g:register(v), g:value(v.type))
  elseif k == 4 then
    return ("%s:fill(%s)"):format(v.name, g:value(v.type))
  elseif k == 5 and v.n >= 4 then
    return ("cute.local_tile(%s, {2}, {%d}):fill(%s)"):format(v.name,
      g:r(v.n // 2) - 1, g:value(v.type))
  elseif k == 6 then
    local w = of_kind(g, "frag", v.type)
    if w.n ~= v.n then w = v end
    local op = class(v.type) == "F" and g:pick {"+", "*"} or
      class(v.type) == "U" and g:pick {"+", "*", "~"} or "&"
    local with = class(v.type) == "I" and tostring(power(v.bound) // 2 - 1)
      or g:chance(50) and w.name .. ":load()" or g:value(v.type)
    return ("%s:store(%s:load() %s %s)"):format(v.name, w.name, op, with)
  elseif k == 7 and class(v.type) == "U" and bits(v.type) < 32
    and v.n * bits(v.type) >= 32 then
    return ("cute.recast_tensor(%s, cute.u32)[0] = %s"):format(v.name,
      g:value "u32")
  end
  local w = of_kind(g, "frag", v.type)
  if w.n ~= v.n or w == v then
    return ("%s[%s] = %s[%s]"):format(v.name, g:register(v), v.name,
      g:register(v))
  end
  return ("cute.autovec_copy(%s, %s)"):format(w.name, v.name)
end

function STATEMENTS.fragment(g, out)
  local v = of_kind(g, "frag")
  if not v then return STATEMENTS.new_fragment(g, out) end
  for _ = 1, g:r(3) do out[#out + 1] = write_fragment(g, v) end
end

function STATEMENTS.output(g, out)
  local t = g:pick(g.types)
  put(out, "y_%s[%d] = %s", t, g:r(OUT) - 1, g:value(t))
end

function STATEMENTS.store_fragment(g, out)
  local v = of_kind(g, "frag")
  if not v or not g.args[v.type] then return STATEMENTS.output(g, out) end
  put(out, "cute.autovec_copy(%s, cute.local_tile(y_%s, {%d}, {%d}))", v.name,
      v.type, v.n, g:r(OUT // v.n) - 1)
end

function STATEMENTS.atomic(g, out)
  put(out, "cute.arch.atomic_add(Z.iterator + %d, %s)", g:r(4) - 1,
      g:value "u32")
end

-- ---- blocks ----

local function enter(g)
  g.marks[#g.marks + 1] = #g.scope
end
local function leave(g)
  local n = table.remove(g.marks)
  for i = #g.scope, n + 1, -1 do g.scope[i] = nil end
end

local function block(g, head, tail, make)
  local b = {head = head, tail = tail}
  enter(g)
  make(b)
  leave(g)
  return b
end

local function lines(g, uniform)
  return function(b) g:statements(b, g:r(4), uniform) end
end

function STATEMENTS.when(g, out)
  local c = g:bool(g.depth)
  out[#out + 1] = block(g, ("cute.when(%s, function()"):format(c),
    g:chance(50) and "end)" or "end, function()", lines(g))
  local last = out[#out]
  if last.tail == "end, function()" then
    last.tail = nil
    last.other = block(g, "end, function()", "end)", lines(g))
  end
end

-- Calls make() while g[what], a count of regions around it, is one higher.
local function inside(g, what, make)
  g[what] = g[what] + 1
  make()
  g[what] = g[what] - 1
end

function STATEMENTS.range(g, out, uniform)
  g.count = g.count + 1
  local k = "k" .. g.count
  local fixed = uniform or g:chance(50)
  local limit = fixed and tostring(g:r(5) - 1)
    or ("(%s & 3)"):format((g:expr("i32", 1)))
  local step = g:pick {"%s", "%s", "%s", "%s, {unroll = 2}", "0, %s, 2",
                       "3, -(%s), -1"}
  out[#out + 1] = block(g, ("for %s in cute.range(%s) do"):format(k,
    step:format(limit)), "end", function(b)
    g.scope[#g.scope + 1] = {name = k, kind = "local", type = "i32",
                             bound = 8, fixed = true}
    -- These statements may contain barriers, so no thread may leave the loop
    -- early.
    if uniform and fixed then
      g:statements(b, g:r(4), true)
    else
      inside(g, "loops", function() g:statements(b, g:r(4)) end)
    end
  end)
end

function STATEMENTS.unrolled(g, out, uniform)
  out[#out + 1] = block(g, "for _ = 1, 2 do", "end", lines(g, uniform))
end

function STATEMENTS.loop(g, out)
  g.count = g.count + 1
  local n = "n" .. g.count
  put(out, "local %s = tid %% 3", n)
  out[#out + 1] = block(g, ("cute.loop(function() return %s:lt(5) & %s end, "
    .. "function()"):format(n, g:bool(1)), "end)", function(b)
    put(b, "%s = %s + 1", n, n)
    inside(g, "loops", function() lines(g)(b) end)
  end)
end

-- Appends a helper function that is called immediately.
function STATEMENTS.helper(g, out)
  local loops = g.loops
  g.loops = 0  -- a return in the helper leaves no loop outside of it
  inside(g, "helpers", function()
    out[#out + 1] = block(g, "cute.func(function()", "end)()", lines(g))
  end)
  g.loops = loops
end

-- Appends a statement by which some threads leave the current loop or helper.
function STATEMENTS.leave(g, out)
  local name = (g.loops == 0 or g.helpers > 0 and g:chance(40)) and "return_if"
    or "break_if"
  put(out, "cute.%s(%s)", name, g:bool(g:r(2)))
end

-- ---- statements that all threads must reach ----

local TOGETHER = {}

function TOGETHER.shared(g, out)
  local t = g:pick(NAMES)
  g.count = g.count + 1
  local s = "s" .. g.count
  put(out, "local %s = cute.make_smem_tensor(cute.%s, "
    .. "cute.make_layout {THREADS})", s, t)
  put(out, "%s[tid] = %s", s, g:value(t))
  put(out, "cute.arch.sync_threads()")
  local v = declare(g, "local", t)
  put(out, "local %s = %s[%s]", v.name, s, g:pick {"THREADS - 1 - tid",
    "(tid + 5) % THREADS", ("(%s) & 31"):format((g:expr("i32", 1)))})
  put(out, "cute.arch.sync_threads()")
  g.scope[#g.scope + 1] = v
end

function TOGETHER.shuffle(g, out)
  local t = g:pick {"i32", "u32", "f32", "i32", "u64", "f64", "f16", "i8"}
  local v = declare(g, "local", t)
  local how = g:pick {"(%s, 3)", "(%s, (tid * 7) & 31)", "_bfly(%s, 5)",
                      "_down(%s, 2)", "_up(%s, 9)", "_bfly(%s, 1, 8)"}
  put(out, "local %s = cute.arch.shuffle_sync%s", v.name,
      how:format(g:value(t)))
  g.scope[#g.scope + 1] = v
end

function TOGETHER.vote(g, out)
  if g:chance(50) then
    local v = declare(g, "local", "u32")
    put(out, "local %s = cute.arch.vote_ballot_sync(%s)", v.name, g:bool(2))
    g.scope[#g.scope + 1] = v
  else
    local v = declare(g, "local", "boolean")
    put(out, "local %s = cute.arch.vote_%s_sync(%s)", v.name,
        g:pick {"any", "all"}, g:bool(2))
    g.scope[#g.scope + 1] = v
    use_boolean(g, out, v)
  end
end

local SIMPLE = {STATEMENTS.new_local, STATEMENTS.new_local, STATEMENTS.assign,
  STATEMENTS.assign, STATEMENTS.swap, STATEMENTS.var, STATEMENTS.new_fragment,
  STATEMENTS.fragment, STATEMENTS.fragment, STATEMENTS.fragment,
  STATEMENTS.output, STATEMENTS.output, STATEMENTS.store_fragment,
  STATEMENTS.atomic}
local BLOCKS = {STATEMENTS.when, STATEMENTS.when, STATEMENTS.range,
  STATEMENTS.range, STATEMENTS.unrolled, STATEMENTS.loop, STATEMENTS.helper}
local WARP = {TOGETHER.shared, TOGETHER.shuffle, TOGETHER.vote}

--- Appends n statements. uniform: all threads of the block reach them.
function Gen:statements(out, n, uniform)
  for _ = 1, n do
    local k = self:r(100)
    if k <= 18 and #self.marks < 3 then
      self:pick(BLOCKS)(self, out, uniform)
    elseif k <= 26 and uniform then
      self:pick(WARP)(self, out)
    elseif k <= 26 and self.loops + self.helpers > 0 then
      STATEMENTS.leave(self, out)
    else
      self:pick(SIMPLE)(self, out)
    end
  end
end

---------------------------------------------------------------------------
-- Programs
---------------------------------------------------------------------------

-- Appends stores of the final values of locals and fragments, as u64 or f64, so
-- that no bits are lost.
local function leftovers(g, out)
  local used = {u64 = 0, f64 = 0}
  local function keep(name, t)
    local to = TYPES[t] and class(t) == "F" and "f64" or "u64"
    if used[to] == LEFT then return end
    put(out, "left_%s[%d] = %s:to(cute.%s)", to, used[to], name, to)
    used[to] = used[to] + 1
  end
  for _, v in ipairs(g.scope) do
    if v.kind == "local" then keep(v.name, v.type) end
    if v.kind == "var" then keep(v.name .. ".value", v.type) end
    for k = 0, v.kind == "frag" and v.n - 1 or -1 do
      keep(("%s[%d]"):format(v.name, k), v.type)
    end
  end
end

---@class RandomProgram
---@field seed integer
---@field types string[] the types of its arguments
---@field grid integer
---@field block integer
---@field fmad boolean
---@field body table

--- Returns the program of a seed.
---@param seed integer
---@return RandomProgram
function random.program(seed)
  local g = setmetatable({state = seed * 0x9e3779b97f4a7c15 | 1, scope = {},
                          marks = {}, count = 0, args = {}, types = {},
                          loops = 0, helpers = 0, depth = 3}, Gen)
  for _ = 1, 8 do g:r(2) end
  g.depth = g:r(3)
  for _, t in ipairs {"i32", g:pick(NAMES), g:pick(NAMES), g:pick(NAMES)} do
    if not g.args[t] then g.types[#g.types + 1] = t end
    g.args[t] = true
  end
  g.scope[1] = {name = "tid", kind = "local", type = "i32", bound = 64,
                fixed = true}
  g.scope[2] = {name = "n", kind = "local", type = "i32", bound = 1000,
                fixed = true}
  local p = {seed = seed, types = g.types, grid = g:r(2), block = 32 * g:r(2),
             fmad = g:chance(30), body = {}}
  g:statements(p.body, 6 + g:r(14), true)
  leftovers(g, p.body)
  return p
end

local function write(out, node, indent)
  if type(node) == "string" then
    out[#out + 1] = indent .. node
    return
  end
  if node.head then out[#out + 1] = indent .. node.head end
  for _, line in ipairs(node) do
    write(out, line, indent .. (node.head and "  " or ""))
  end
  if node.other then write(out, node.other, indent) end
  if node.tail then out[#out + 1] = indent .. node.tail end
end

--- Returns the Lua text of a program: a chunk that returns the kernel's
-- function.
---@param p RandomProgram
---@return string
function random.text(p)
  local params, out = {}, {}
  for _, t in ipairs(p.types) do
    params[#params + 1] = ("X_%s, Y_%s"):format(t, t)
    put(out, "  local x_%s = cute.local_tile(X_%s, {%d}, {gid})", t, t, IN)
    put(out, "  local y_%s = cute.local_tile(Y_%s, {%d}, {gid})", t, t, OUT)
  end
  for _, t in ipairs {"u64", "f64"} do
    put(out, "  local left_%s = cute.local_tile(L_%s, {%d}, {gid})", t, t,
        LEFT)
  end
  write(out, p.body, "  ")
  return ([[
local THREADS = %d
return function(%s, L_u64, L_f64, Z, n)
  local tid = cute.arch.thread_idx()
  local gid = cute.arch.block_idx() * THREADS + tid
%s
end
]]):format(p.block, table.concat(params, ", "), table.concat(out, "\n"))
end

---------------------------------------------------------------------------
-- Data, runs, comparisons
---------------------------------------------------------------------------

local FORMAT = {[8] = "<I1", [16] = "<I2", [32] = "<I4", [64] = "<I8"}
local MANTISSA = {f16 = 10, bf16 = 7, f32 = 23, f64 = 52}

-- Returns the bits of a random input. Half of the floats have ordinary
-- magnitudes, the others any magnitude.
local function input(g, t)
  if class(t) == "I" then return g:r(2 * TYPES[t][4] + 1) - TYPES[t][4] - 1 end
  if class(t) == "U" or g:chance(20) then return g.state >> (64 - bits(t)) end
  local m = MANTISSA[t]
  local bias = (1 << (bits(t) - m - 2)) - 1
  return (g:r(2) - 1) << (bits(t) - 1) | (bias + g:r(12) - 7) << m
    | g:r(4) << (m - 2) & ((1 << m) - 1)
end

local function bytes_of(g, t, n)
  local out, mask = {}, bits(t) == 64 and -1 or (1 << bits(t)) - 1
  for i = 1, n do
    g:r(2)
    out[i] = FORMAT[bits(t)]:pack(input(g, t) & mask)
  end
  return table.concat(out)
end

-- Returns the arguments of a program: name, type, bytes.
local function arguments(p)
  local g = setmetatable({state = p.seed | 1}, Gen)
  local threads, list = p.grid * p.block, {}
  local function add(name, t, n, data)
    list[#list + 1] = {name = name, type = t, n = n,
                       bytes = data or ("\0"):rep(n * bits(t) // 8)}
  end
  for _, t in ipairs(p.types) do
    add("X_" .. t, t, threads * IN, bytes_of(g, t, threads * IN))
    add("Y_" .. t, t, threads * OUT)
  end
  add("L_u64", "u64", threads * LEFT)
  add("L_f64", "f64", threads * LEFT)
  add("Z", "u32", 4)
  return list
end

local chunks = 0

-- Runs a program on a device. Returns its tensors after the run, and the call.
local function run(p, device)
  local cute, core = require "cute", require "cute.core"
  local list, tensors = arguments(p), {}
  for i, a in ipairs(list) do
    a.buffer = core.buffer(a.type, a.n):set_bytes(a.bytes)
    tensors[i] = cute.make_tensor(a.buffer, cute.make_layout {a.n})
  end
  tensors[#tensors + 1] = p.seed % 1000
  -- Each run has a new chunk name, because source positions are cached by name.
  chunks = chunks + 1
  local f = assert(load(random.text(p), ("=random.%d.%d"):format(p.seed,
    chunks), "t", {cute = cute}))()
  local call = cute.kernel("k", f)(table.unpack(tensors))
  assert(call:launch {grid = p.grid, block = p.block, device = device,
                      fmad = p.fmad})
  return list, call
end

local function traced(p, call)
  return call:trace {block = p.block, fmad = p.fmad}
end

-- Returns the first element of `a` (an argument after a run) that differs from
-- `bytes`. Any two NaNs are equal.
local function difference(a, bytes)
  local core = require "cute.core"
  if a.buffer:bytes() == bytes then return nil end
  local other = core.buffer(a.type, a.n):set_bytes(bytes)
  for i = 0, a.n - 1 do
    local x, y = a.buffer[i], other[i]
    local same = a.buffer:bytes(i, 1) == other:bytes(i, 1) or x ~= x and y ~= y
    if not same then
      return ("%s[%d]: %s on the simulator, %s"):format(a.name, i, x, y)
    end
  end
end

local function first_difference(list, get)
  for i, a in ipairs(list) do
    local d = difference(a, get(i, a))
    if d then return d end
  end
end

--- Compiles the emitted text of all programs for the host. Returns for each
-- program the first difference from the simulator, or false.
---@param programs RandomProgram[]
---@return (string|false)[]
function random.host(programs)
  local runs, lists, wrong = {}, {}, {}
  local at = {}
  for i, p in ipairs(programs) do
    local ok, list, call = pcall(run, p, "sim:sm_80")
    if ok then
      local args = {}
      for k, a in ipairs(list) do args[k] = a.bytes end
      args[#args + 1] = ("<i4"):pack(p.seed % 1000)
      runs[#runs + 1] = {text = traced(p, call):cuda "sm_80",
                         grid = p.grid, block = p.block, args = args}
      lists[#runs], at[#runs] = list, i
    end
    wrong[i] = not ok and tostring(list)
  end
  local results = require "spec.cudahost".run(runs)
  for k, list in ipairs(lists) do
    wrong[at[k]] = first_difference(list, function(i) return results[k][i] end)
      or false
  end
  return wrong
end

--- Runs a program on a GPU. Returns the first difference from the simulator, or
-- false.
---@param p RandomProgram
---@return string|false
function random.gpu(p)
  local list, gpu = run(p, "sim"), run(p, "gpu")
  return first_difference(list, function(i) return gpu[i].buffer:bytes() end)
    or false
end

--- Returns the traced program of a random program, to compile it.
---@param p RandomProgram
---@return table program
function random.traced(p)
  local _, call = run(p, "sim:sm_80")
  return traced(p, call)
end

--- Returns the emitted text of a program.
function random.cuda(p)
  return (random.traced(p):cuda "sm_80")
end

-- Lists every way to remove one line or block, as functions that do and undo
-- it.
local function cuts(node, list)
  for i = #node, 1, -1 do
    local line = node[i]
    list[#list + 1] = {node, i}
    if type(line) == "table" then
      cuts(line, list)
      if line.other then cuts(line.other, list) end
    end
  end
  return list
end

--- Removes as many lines as possible while `fails(program)` stays true.
---@param p RandomProgram
---@param fails fun(p: RandomProgram): boolean
function random.shrink(p, fails)
  local again = true
  while again do
    again = false
    for _, cut in ipairs(cuts(p.body, {})) do
      local node, i = cut[1], cut[2]
      local line = table.remove(node, i)
      if line ~= nil then
        if fails(p) then again = true else table.insert(node, i, line) end
      end
    end
  end
  return p
end

return random
-- SPDX-License-Identifier: MIT
