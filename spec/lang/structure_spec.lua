-- Tests nested tables as arguments of kernels. Random structures must arrive in
-- the kernel unchanged, with traced values as leaves. The kernel must compute
-- with them as plain Lua does, in the simulator and in the emitted text.
local core = require "cute.core"
local cute = require "cute"
local cudahost = require "spec.cudahost"
local kernels = require "spec.kernels"
local random = require "spec.random"
local support = require "spec.support"
local message = support.message

local Point, Box = {tag = 3}, {}
Point.__index, Box.__index = Point, Box
Box.__newindex = function() error "a field of a box is set" end

---------------------------------------------------------------------------
-- Structures
---------------------------------------------------------------------------

-- Kinds of leaves. make(g) returns a random value x on the host. weigh(x)
-- maps x to an integer on the host, and see(x) maps it to the same
-- integer in the kernel. `kind` is the type that the leaf has in the
-- kernel.
local LEAVES = {
  {make = function(g) return g:r(1000) end, kind = "i32"},
  {make = function(g) return (1 << 33) + g:r(1000) end, kind = "i64",
   weigh = function(x) return x - (1 << 33) end,
   see = function(x) return (x - (1 << 33)):to(cute.i32) end},
  {make = function(g) return g:r(1000) + 0.5 end, kind = "f32",
   weigh = function(x) return math.floor(x) end,
   see = function(x) return x:to(cute.i32) end},
  {make = function(g) return cute.full({g:r(4)}, g:r(1000), cute.i32) end,
   kind = "tensor", weigh = function(x) return x[0] end,
   see = function(x) return x[0] end},
  {make = function(g)
    return cute.full({2, g:r(3)}, g:r(100), cute.i32):mark_layout_dynamic()
  end, kind = "tensor",
   weigh = function(x) return x(1, 0) * 10 + cute.size(x, 1) end,
   see = function(x) return x(1, 0) * 10 + cute.size(x, 1) end},
  {make = function(g) return cute.make_layout({g:r(5), 2}) end,
   kind = "layout", weigh = cute.size},
  {make = function(g) return cute.make_identity_tensor({g:r(5), 2}) end,
   kind = "tensor", weigh = function(x) return x(0, 1)[2] + cute.size(x) end},
  {make = function(g) return ("x"):rep(g:r(9)) end, weigh = string.len},
  {make = function(g) return g:chance(50) end,
   weigh = function(x) return x and 7 or 9 end},
  {make = function(g) return g:pick {cute.f16, cute.f64} end, kind = "dtype",
   weigh = function(x) return x.bits end},
  {make = function(g) local n = g:r(9) return function() return n end end,
   weigh = function(x) return x() end},
  {make = function(g) return cute.constexpr(g:r(1000)) end, kind = "integer",
   weigh = function(x) return type(x) == "number" and x or x.value end},
}

local KEYS = {"a", "b_2", "with blank", "end", "", "é", true, false, -3, 0, 9}

-- Returns a random table of tables and leaves. rows[table][key] describes each
-- leaf, and is nil for a subtable. `done` lists the complete tables, which may
-- occur again as subtables.
local function structure(g, depth, done, rows)
  local t = {}
  rows[t] = {}
  local function fill(k)
    local what = g:r(10)
    rows[t][k] = nil
    if what <= 2 and depth < 4 then
      t[k] = structure(g, depth + 1, done, rows)
    elseif what == 3 and #done > 0 then
      t[k] = g:pick(done)
    else
      local row = g:pick(LEAVES)
      t[k], rows[t][k] = row.make(g), row
    end
  end
  if g:chance(50) then
    for i = 1, g:r(4) do fill(i) end
  end
  for _ = 1, g:r(3) do fill(g:pick(KEYS)) end
  if g:chance(30) then setmetatable(t, g:pick {Point, Box}) end
  done[#done + 1] = t
  return t
end

-- Calls f(table, its key, row) for all leaves. Visits each table once, in the
-- order of the keys.
local function each_leaf(t, rows, f, seen)
  if seen[t] then return end
  seen[t] = true
  local keys = {}
  for k in next, t do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(keys) do
    if rows[t][k] then f(t, k, rows[t][k])
    else each_leaf(t[k], rows, f, seen) end
  end
end

local function same(x) return x end

-- Returns a copy of structure t for the kernel to read. (Values that the kernel
-- read from t itself would be constants.) its[copy] = rows[t] has the
-- descriptions of a copy's fields.
local function clone(t, rows, its, made)
  if made[t] then return made[t] end
  local copy = {}
  made[t] = copy
  its[copy] = rows[t]
  for k, v in next, t do
    if not rows[t][k] then v = clone(v, rows, its, made) end
    copy[k] = v
  end
  return setmetatable(copy, getmetatable(t))
end

-- Checks that the structure `got`, which the kernel sees, equals `given`.
-- `twin` maps each table of `given` to its counterpart in `got`.
local function check_same(given, got, rows, twin)
  assert.equal(twin[given] or got, got)
  if twin[given] then return end
  twin[given] = got
  assert.equal(getmetatable(given), getmetatable(got))
  for k in next, got do assert.is_true(given[k] ~= nil, "a field too many") end
  for k, v in next, given do
    local row = rows[given][k]
    if not row then
      check_same(v, rawget(got, k), rows, twin)
    else
      local x = rawget(got, k)
      local kind = math.type(x) or core.typename(x)
      if kind == "value" then kind = tostring(x.dtype) end
      assert.equal(row.kind or type(v), kind)
    end
  end
end

-- Messages order keys by type first, so that the order is the same in every
-- process.
local RANK = {number = 1, string = 2, boolean = 3}
local function before(a, b)
  local x, y = RANK[type(a)], RANK[type(b)]
  if x ~= y then return x < y end
  if x == 3 then return not a and b end
  return a < b
end

-- Returns the path by which messages name a field: the first that is found.
local function path_to(t, wanted, key, path, seen)
  if seen[t] then return nil end
  seen[t] = true
  local keys = {}
  for k in next, t do keys[#keys + 1] = k end
  table.sort(keys, before)
  for _, k in ipairs(keys) do
    local is_name = type(k) == "string" and k:find "^[%a_][%w_]*$"
    local here = path .. (is_name and "." .. k
      or ("[%s]"):format(type(k) == "string" and '"' .. k .. '"' or k))
    if t == wanted and k == key then return here end
    local found = type(t[k]) == "table" and path_to(t[k], wanted, key, here,
                                                    seen)
    if found then return found end
  end
end

-- Changes a leaf's kind, or adds or removes a field. Then run(t, out) must
-- raise an error that names the path of the field.
local function check_refused(g, t, rows, run, out)
  local leaves = {}
  each_leaf(t, rows, function(from, key)
    leaves[#leaves + 1] = {from, key}
  end, {})
  if #leaves == 0 then return end
  local from, key = table.unpack(g:pick(leaves))
  local was = from[key]
  rawset(from, key, type(was) == "string" and 1 or "another")
  local where = "kernel k: argument 1" .. path_to(t, from, key, "", {})
  local said = message(run, t, out)
  assert.equal(where .. " is ", said:sub(1, #where + 4))
  rawset(from, key, nil)
  assert.truthy(message(run, t, out):find("a table of", 1, true))
  rawset(from, key, was)
end

local function bytes_of(values)
  local list = {}
  for i, v in ipairs(values) do
    if core.typename(v[1]) == "buffer" then
      list[i] = v[1]:bytes()
    else
      local t = {i32 = "<i4", i64 = "<i8", f32 = "<f"}
      list[i] = t[tostring(v[1])]:pack(v[2])
    end
  end
  return list
end

---------------------------------------------------------------------------
-- One random case
---------------------------------------------------------------------------

local function weight(t, rows, of)
  local sum, n = 0, 0
  each_leaf(t, rows, function(from, k, row)
    n = n + 1
    sum = sum + of(from, k, row) * (n % 7 + 1)
  end, {})
  return sum
end

local function run_case(seed)
  local rows, its = {}, {}
  local g = setmetatable({state = seed}, random.Gen)
  local t = structure(g, 1, {}, rows)
  local like = clone(t, rows, its, {})
  local traced, got = {n = 0}, nil
  local out = cute.zeros({1}, cute.i32)
  local k = cute.kernel("k", function(arg, o)
    traced.n, got = traced.n + 1, {}
    check_same(like, arg, its, got)
    o[0] = weight(like, its, function(from, key, row)
      return (row.see or row.weigh or same)(rawget(got[from], key))
    end)
  end)
  local function want()
    return weight(t, rows, function(from, key, row)
      return (row.weigh or same)(from[key])
    end)
  end
  local opts = {grid = 1, block = 1, device = "sim"}
  local run = cute.compile(k, t, out, opts)
  for _ = 1, 3 do
    k(t, out):launch(opts)
    assert.equal(want(), out[0], "seed " .. seed)
    -- Other numbers in the same structure need no new program.
    each_leaf(t, rows, function(from, key)
      local v = from[key]
      if math.type(v) then rawset(from, key, v + 1) end
    end, {})
    assert.is_true(run(t, out).ok)
    assert.equal(want(), out[0], "seed " .. seed)
  end
  check_refused(g, t, rows, run, out)
  assert.equal(1, traced.n, "seed " .. seed)
  local program = k(t, out):trace {block = 1}
  if seed % 16 == 0 then kernels.compiles(program, {"sm_80", "sm_90a"}) end
  return {text = program.source, grid = 1, block = 1,
          args = bytes_of(core.launch_values {t, out, n = 2}), want = out[0]}
end

describe("a structure of arguments", function()
  it("is the same in the kernel, with any nesting #long", function()
    local runs = {}
    for seed = 1, 40 do runs[seed] = run_case(seed * 7919) end
    if not cudahost.compiler() then return end
    for i, args in ipairs(cudahost.run(runs)) do
      assert.equal(runs[i].want, (("<i4"):unpack(args[#args])), runs[i].text)
    end
  end)

  it("keeps its methods, can be written, and keeps its type",
     function()
    local Counter = {}
    Counter.__index = Counter
    function Counter:add(x) self.n, self.calls = self.n + x, self.calls + 1 end
    local o = cute.zeros({2}, cute.i32)
    local k = cute.kernel("k", function(c, out)
      for i in cute.range(4) do c:add(i) end
      out[0], out[1] = c.n, c.calls
    end)
    local c = setmetatable({n = 10, calls = 0}, Counter)
    k(c, o):launch {grid = 1, block = 1, device = "sim"}
    assert.same({16, 4, 10, 0}, {o[0], o[1], c.n, c.calls})
  end)

  it("is one program for all numbers, but not for other constants", function()
    local traced = {n = 0}
    local o = cute.zeros({1}, cute.f32)
    local k = cute.kernel("k", function(c, n, out)
      traced.n = traced.n + 1
      local sum = 0.0
      for i = 1, c.unroll do sum = sum + c.list[i] * n end
      out[0] = sum
    end)
    local function launch(unroll, list, n)
      k({unroll = cute.constexpr(unroll), list = list}, n, o):launch {
        grid = 1, block = 1, device = "sim"}
      return o[0]
    end
    for i = 1.0, 3 do assert.equal(i * 3, launch(2, {1.0, 2.0}, i)) end
    assert.equal(1, traced.n)
    for i = 1.0, 3 do assert.equal(i * 7, launch(2, {3.0, 4.0}, i)) end
    assert.equal(1, traced.n)
    assert.equal(3.0, launch(1, {3.0, 4.0}, 1.0))
    assert.equal(2, traced.n)
    assert.equal(12.0, launch(3, {3.0, 4.0, 5.0}, 1.0))
    assert.equal(3, traced.n)
    local top = 0
    local s = cute.kernel("s", function(out, n)
      top = top + 1
      out[0] = (type(n) == "number" and n or -1) * 1.0
    end)
    for i = 1, 3 do
      s(o, cute.constexpr(i)):launch {grid = 1, block = 1, device = "sim"}
      assert.equal(i * 1.0, o[0])
    end
    assert.equal(3, top)
    s(o, cute.constexpr(2)):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(3, top)
  end)

  it("keeps the length of its lists, and objects of cute unchanged", function()
    local o = cute.zeros({2}, cute.i32)
    local Storage = cute.struct {{"a", cute.f32, 8}, {"b", cute.i32, 4}}
    local tile = cute.local_tile(cute.make_identity_tensor {8, 8}, {2, 4},
                                 {3, 1})
    cute.kernel("k", function(list, t, out)
      assert.equal(4, #list)
      assert.equal(Storage, t.storage)
      local s = cute.utils.SmemAllocator():allocate(t.storage)
      cute.make_tensor(s.b, cute.make_layout {4})[3] = list[4]
      local at = t.tile[{1, 2}]
      out[0] = cute.make_tensor(s.b, cute.make_layout {4})[3] + list[1]
      out[1] = at[1] * 10 + at[2]
    end)({1, nil, nil, 4}, {storage = Storage, tile = tile}, o):launch {
      grid = 1, block = 1, device = "sim"}
    assert.same({5, 76}, {o[0], o[1]})
  end)

  it("in a constexpr is the table itself, and its changes are seen", function()
    local c = {n = 2}
    local traced = {n = 0}
    local o = cute.zeros({1}, cute.i32)
    local k = cute.kernel("k", function(t, out)
      traced.n = traced.n + 1
      assert.equal(c, t)
      out[0] = t.n
    end)
    for i, n in ipairs {2, 2, 5} do
      c.n = n
      k(cute.constexpr(c), o):launch {grid = 1, block = 1, device = "sim"}
      assert.same({n, i < 3 and 1 or 2}, {o[0], traced.n})
    end
    assert.equal("constexpr 5", tostring(cute.constexpr(5)))
  end)
end)

describe("a structure of arguments", function()
  it("that a kernel cannot take is rejected with its path", function()
    local k = cute.kernel("k", function(_, _) end)
    local function refused(want, ...)
      local args = table.pack(...)
      assert.equal(want, (message(function()
        k(table.unpack(args, 1, args.n)):trace {block = 1}
      end)))
    end
    local c = {list = {}}
    c.list[2] = c
    refused("kernel k: argument 1.list[2] is a table that contains itself: "
      .. "kernel arguments cannot be cyclic [bad-argument]", c)
    local deep = {}
    local at = deep
    for _ = 1, 40 do at.x = {} at = at.x end
    assert.truthy(message(function() k(deep):trace {block = 1} end):find(
      "^kernel k: argument 1%.x[%.x]+: tables that a kernel takes nest at most "
      .. "32 deep %[limit%]"))
    refused("kernel k: argument 2.scale[3] is a thread, which a kernel cannot "
      .. "take [bad-argument]", 1, {scale = {1, 2, coroutine.create(print)}})
    refused("kernel k: argument 1.f[\"a b\"] is a FILE*, which a kernel cannot "
      .. "take [bad-argument]", {f = {["a b"] = io.stdout}})
    refused("kernel k: argument 1 has the key 1.5: keys of kernel arguments "
      .. "must be strings, integers or booleans [bad-argument]",
      {[1.5] = 1})
    refused("kernel k: argument 1.w has a metatable with __mode: the kernel "
      .. "would get a copy of it [bad-argument]\n  pass only the fields that "
      .. "the kernel needs", {w = setmetatable({}, {__mode = "k"})})
    local many = {}
    for i = 1, 1025 do many[i] = i end
    refused("kernel k: argument 1.many[1025]: a kernel takes at most 1024 "
      .. "tensors, numbers and dynamic extents [limit]\n  pass numbers that "
      .. "never change as a table: cute.constexpr(t)", {many = many})
  end)

  it("suggests cute.constexpr if a number must be static", function()
    local x = cute.zeros({8}, cute.f32)
    local advice = "\n  pass an argument that Lua must know as "
      .. "cute.constexpr(n)"
    for want, f in pairs {
      ["bad 'for' limit (number expected, got cute.value) [traced-in-lua]\n"
        .. "  a traced limit needs `for k in cute.range(n) do`"] =
        function(c) for _ = 1, c.n do x = x end end,
      ["cute.make_rmem_tensor: make_rmem_tensor needs a static layout, got "
        .. "(?):(1) [needs-static]"] =
        function(c) cute.make_rmem_tensor({c.n}, cute.f32) end,
      ["'==' or '~=' beside the traced value 'c.n' is always false or true in "
        .. "Lua [traced-in-lua]\n  write a:eq(x) or a:ne(x), and "
        .. "cute.when(...) to branch on it"] =
        function(c) if c.n == 4 then x = x end end} do
      local k = cute.kernel("k", function(c, _) f(c) end)
      assert.equal(want .. advice, (message(function()
        k({n = 4}, x):trace {block = 1}
      end)))
      k({n = cute.constexpr(4)}, x):trace {block = 1}
    end
  end)

  it("names a constant's type if only that differs", function()
    local k = cute.kernel("k", function(o, n) o[0] = n end)
    local o = cute.zeros({1}, cute.f32)
    local run = cute.compile(k, o, cute.constexpr(2),
                             {grid = 1, block = 1, device = "sim"})
    for text, n in pairs {["2.0"] = 2.0, ["-1.5"] = -1.5, inf = math.huge,
                          ["1e+17"] = 1e17} do
      assert.equal(("kernel k: argument 2 is the constant %s; this launch takes"
        .. " the constant 2 [bad-launch]"):format(text),
        (message(run, o, cute.constexpr(n))))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
