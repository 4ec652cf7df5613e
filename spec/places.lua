--- Makes random accesses to tensors, as Lua text: static and dynamic strides,
-- swizzled shared memory, alternating stages, slices carried through loops;
-- single elements, vectors, ldmatrix, cp.async. Each program runs three times:
-- traced on the simulator, as emitted text on the host, and as plain Lua. In
-- plain Lua, a tensor is a function of coordinates, so no offset is computed.
local random = require "spec.random"

local places = {}

-- Tensors have ROWS rows, and warps have LANES threads. The element in row r,
-- column c and stage p has the value r + ROWS (c + columns p), for tensors with
-- `columns` columns.
local ROWS, LANES = 16, 32

---------------------------------------------------------------------------
-- Programs as Lua text
---------------------------------------------------------------------------

-- Layouts of (rows, columns, stages) in which groups of eight elements are
-- contiguous
local SHARED = {
  rows = "cute.make_layout({%d, %d, %d}, {%d, 1, %d})",
  columns = "cute.make_layout({%d, %d, %d}, {1, %d, %d})",
  swizzled = "cute.tile_to_shape(cute.composition(cute.make_swizzle(%d, 3, 3),"
    .. " cute.make_layout({8, %d}, {%d, 1})), {%d, %d, %d})",
  pieces = "cute.tile_to_shape(cute.composition(cute.make_swizzle(3, 3, 3), "
    .. "cute.make_layout({8, {8, 8}}, {8, {1, 64}})), {%d, %d, %d})",
  single = "cute.tile_to_shape(cute.composition(cute.make_swizzle(2, 0, 3), "
    .. "cute.make_layout({8, 4}, {4, 1})), {%d, %d, %d})"}
local KINDS = {"rows", "columns", "swizzled", "swizzled", "swizzled", "pieces",
               "single"}

local function shared_layout(g, p)
  local C, P = p.columns, p.stages
  local kind = g:pick(KINDS)
  if kind == "pieces" and C < 64 then kind = "swizzled" end
  p.together = kind ~= "columns" and kind ~= "single"
  local text = SHARED[kind]
  if kind == "rows" then
    local row = C + 8 * (g:r(3) - 1)
    return text:format(ROWS, C, P, row, ROWS * row)
  elseif kind == "columns" then
    local column = ROWS + g:r(3) - 1
    return text:format(ROWS, C, P, column, C * column)
  elseif kind == "swizzled" then
    local wide = math.min(C, g:pick {16, 32, 64})
    local bits = ({[16] = 1, [32] = 2, [64] = 3})[wide]
    return text:format(g:r(bits), wide, wide, ROWS, C, P)
  end
  return text:format(ROWS, C, P)
end

local function stage_of(g, p, inside)
  local list = {"read", "write", tostring(g:r(p.stages) - 1)}
  if inside then
    list[#list + 1] = ("k %% %d"):format(p.stages)
    list[#list + 1] = "cute.where(cute.lt(k, 2), read, write)"
  end
  return g:pick(list)
end

-- Returns the text of an expression with small non-negative values. Bits of its
-- terms overlap.
local function number_of(g, inside, depth)
  if depth == 0 or g:chance(15) then
    return g:pick {"tid", "tid", "j", inside and "k" or "tid", "5"}
  end
  local op, x = g:r(7), number_of(g, inside, depth - 1)
  if op <= 2 then
    return ("(%s %s %s)"):format(x, g:pick {"+", "~", "|"},
                                 number_of(g, inside, depth - 1))
  elseif op <= 4 then
    return ("(%s ~ %d)"):format(x, g:pick {1, 2, 4, 6, 8, 12, 16, 24, 32})
  end
  return ("(%s %s %d)"):format(x, g:pick {"*", "*", "//", "%", "&", "|"},
                               g:pick {2, 3, 4, 8, 16, 31})
end

local function row_of(g, inside)
  if g:chance(30) then return number_of(g, inside, 3) .. " % 16" end
  local list = {"tid % 16", "tid // 2", "tid % 8 + 8 * (j % 2)",
                "(tid + 5 * j) % 16", "tid % 8", "15 - tid % 16",
                tostring(g:r(ROWS) - 1)}
  if inside then list[#list + 1] = "(tid // 4 + k) % 16" end
  return g:pick(list)
end

local function column_of(g, p, inside)
  local list = {"(%d * j + %d)", "(tid // 16 * 8 + %d * j + %d)",
                "(tid %% 4 * 2 + %d * j + %d)", "(tid + %d * j + %d)"}
  if inside then list[#list + 1] = "(8 * k + %d * j + %d)" end
  if g:chance(30) then
    return ("%s %% %d"):format(number_of(g, inside, 4), p.columns)
  end
  return ("%s %% %d"):format(g:pick(list):format(
    g:pick {1, 2, 8, 16, 16, 16}, g:pick {0, 0, 1, 2, 8, 24}), p.columns)
end

-- Returns the text of a random expression with which a thread reads up to eight
-- values.
local function read(g, p, inside)
  local k, from = g:r(10), g:pick(p.views)
  local stage = stage_of(g, p, inside)
  if k <= 2 and p.together then
    return ("eight(%s(%s, _, %s), (j + %s) %% %d)"):format(g:pick {"s", "x"},
      row_of(g, inside), stage, g:pick {"0", "1", "tid // 8"}, p.columns // 8)
  elseif k <= 5 and p.together then
    return ("matrix(s(_, _, %s), (j + %d) %% %d)"):format(stage, g:r(3),
      p.columns // 16)
  elseif k <= 7 then
    return ("%s[{%s, %s}]"):format(from, row_of(g, inside),
                                   column_of(g, p, inside))
  end
  return ("%s[{%s, %s, %s}]"):format(g:pick {"s", "s", "x"},
    row_of(g, inside), column_of(g, p, inside), stage)
end

local function put(out, fmt, ...) out[#out + 1] = fmt:format(...) end

-- Appends to `out` statements that read values and write them to new output
-- slots. `pass` is the text of the number of the loop's iteration.
local function reads(g, p, out, pass)
  for _ = 1, g:r(3) do
    local n, inside = g:r(4), pass == "(k + 1)"
    put(out, "%sfor j = 0, %d do put(%s * SLOTS + %d + 8 * j, %s) end",
      inside and "    " or "  ", n - 1, pass, p.slots, read(g, p, inside))
    p.slots = p.slots + 8 * n
  end
end

-- Appends the assignments at the end of a loop iteration.
local function turn(g, p, out)
  local P = p.stages
  put(out, "    %s", g:pick {
    ("read, write = (read + 1) %% %d, read"):format(P),
    ("write, read = read, (read + 1) %% %d"):format(P),
    ("read = cute.where(cute.eq(read, %d), 0, read + 1)"):format(P - 1),
    ("read, write = %d - read, read"):format(P - 1)})
  if g:chance(60) then put(out, "    v = s(_, _, %s)", stage_of(g, p, true)) end
  if g:chance(40) then
    put(out, "    when(cute.lt(k, 1), function() w = x(_, _, %s) end)",
        g:pick {"read", "1", "k"})
  end
end

---@class PlacesProgram
---@field seed integer
---@field type string "bf16", whose bits are the value, or "i32"
---@field passes integer the number of iterations of the loop
---@field text string a chunk that returns the kernel's function

--- Returns the program of a seed.
---@param seed integer
---@return PlacesProgram
function places.program(seed)
  local g = setmetatable({state = seed * 0x9e3779b97f4a7c15 | 1}, random.Gen)
  for _ = 1, 8 do g:r(2) end
  local p = {seed = seed, columns = g:pick {16, 32, 64}, stages = 1 + g:r(3),
             type = g:chance(80) and "bf16" or "i32", slots = 0,
             passes = g:r(4),
             views = {"v", "w"}, order = g:pick {"rows", "rows", "columns"},
             pad = 8 * (g:r(2) - 1), dynamic = g:chance(50)}
  local layout, out = shared_layout(g, p), {}
  if p.type == "i32" or p.order == "columns" then p.together = false end
  put(out, "  local s = shared(x, %q, %s)", layout,
      tostring(p.together and g:chance(60)))
  put(out, "  local tid, read, write = thread(), 0, %d", p.stages - 1)
  put(out, "  local v, w = s(_, _, 0), x(_, _, %d)", p.stages - 1)
  reads(g, p, out, "0")
  put(out, "  for k in range(n) do")
  reads(g, p, out, "(k + 1)")
  turn(g, p, out)
  if g:chance(50) then reads(g, p, out, "(k + 1)") end
  put(out, "  end")
  reads(g, p, out, "(n + 1)")
  p.text = ("local SLOTS = %d\nreturn function(x, n, put)\n%s\nend\n"):format(
    p.slots, table.concat(out, "\n"))
  return p
end

local function run_text(p, env)
  return assert(load(p.text, "=places." .. p.seed, "t", env))()
end

---------------------------------------------------------------------------
-- Programs in plain Lua
---------------------------------------------------------------------------

local FREE = {}

local Mock = {}

local function mock(p, at) return setmetatable({p = p, at = at}, Mock) end

-- Returns a coordinate of view t. Its free modes get the elements of `list` in
-- order.
local function given(t, list)
  local at, k = {}, 0
  for mode = 1, 3 do
    at[mode] = t.at[mode]
    if at[mode] == FREE then
      k = k + 1
      at[mode] = list[k]
    end
  end
  assert(k == #list)
  return at
end

function Mock.__call(t, ...) return mock(rawget(t, "p"), given(t, {...})) end

function Mock.__index(t, key)
  local at = given(t, type(key) == "table" and key or {key})
  local p = rawget(t, "p")
  local r, c, stage = at[1], at[2], at[3]
  assert(r >= 0 and r < ROWS and c >= 0 and c < p.columns and stage >= 0 and
         stage < p.stages, "a coordinate outside")
  return r + ROWS * (c + p.columns * stage)
end

local PLAIN = {_ = FREE}

function PLAIN.when(condition, f) if condition then f() end end
function PLAIN.range(n)
  local k = -1
  return function()
    k = k + 1
    return k < n and k or nil
  end
end
function PLAIN.shared(x) return x end
function PLAIN.eight(t, at)
  local list = {}
  for i = 0, 7 do list[i] = t[8 * at + i] end
  return list
end

PLAIN.cute = {
  where = function(c, a, b) if c then return a end return b end,
  lt = function(a, b) return a < b end,
  eq = function(a, b) return a == b end}

-- Returns the values that all threads write, ordered by slot and thread. An
-- entry is nil if no thread writes it.
local function plain(p)
  local left = {}
  for tid = 0, LANES - 1 do
    local env = setmetatable({thread = function() return tid end},
                             {__index = PLAIN})
    -- Returns a thread's fragment of operand A of SM80_16x8x16.
    function env.matrix(t, at)
      local list = {}
      for v = 0, 7 do
        list[v] = t[{tid // 4 + v // 2 % 2 * 8,
                     16 * at + tid % 4 * 2 + v % 2 + v // 4 * 8}]
      end
      return list
    end
    run_text(p, env)(mock(p, {FREE, FREE, FREE}), p.passes,
      function(slot, v)
        local several = type(v) == "table"
        for i = 0, several and 7 or 0 do
          left[(slot + i) * LANES + tid] = several and v[i] or v
        end
      end)
  end
  return left
end

---------------------------------------------------------------------------
-- Programs as kernels
---------------------------------------------------------------------------

-- Returns the host tensor (rows, columns, stages) that the program reads.
local function data(p)
  local cute = require "cute"
  local C, P, pad = p.columns, p.stages, p.pad
  local row, column = C + pad, 1
  if p.order == "columns" then row, column = 1, ROWS + pad end
  local stage = p.order == "rows" and ROWS * row or C * column
  local buffer = cute.buffer(p.type == "bf16" and "u16" or "i32", P * stage)
  for k = 0, P - 1 do
    for c = 0, C - 1 do
      for r = 0, ROWS - 1 do
        buffer[r * row + c * column + k * stage] = r + ROWS * (c + C * k)
      end
    end
  end
  local typed = cute.buffer(p.type, P * stage):set_bytes(buffer:bytes())
  local x = cute.make_tensor(typed,
    cute.make_layout({ROWS, C, P}, {row, column, stage}))
  if p.dynamic then
    x = x:mark_layout_dynamic {leading_dim = p.order == "rows" and 1 or 0,
      divisibility = {8, 8, 1}, stride_divisibility = 8}
  end
  return x, typed:bytes()
end

local TRACED = {}

function TRACED.shared(x, layout, async)
  local cute = require "cute"
  layout = load("return " .. layout, "=layout", "t", {cute = cute})()
  local s = cute.make_smem_tensor(x.element_type, layout, 128)
  local tid = cute.arch.thread_idx()
  if async then
    local copy = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", x.element_type, 128),
      cute.make_layout({16, 2}, {2, 1}), cute.make_layout {1, 8})
    local thr = copy:get_slice(tid)
    local tile = {ROWS, cute.size(layout, 1), cute.size(layout, 2)}
    cute.copy(copy, thr:partition_S(cute.local_tile(x, tile, {0, 0, 0})),
              thr:partition_D(s))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
  else
    for p = 0, cute.size(layout, 2) - 1 do
      for i in cute.range(tid, ROWS * cute.size(layout, 1), LANES) do
        s[{i % ROWS, i // ROWS, p}] = x[{i % ROWS, i // ROWS, p}]
      end
    end
  end
  cute.arch.sync_threads()
  return s
end

local function eight_of(r)
  local list = {}
  for i = 0, 7 do list[i] = r[i] end
  return list
end

function TRACED.eight(t, at)
  local cute = require "cute"
  local r = cute.make_rmem_tensor({8}, t.element_type)
  cute.autovec_copy(cute.local_tile(t, {8}, {at}), r)
  return eight_of(r)
end

function TRACED.matrix(t, at)
  local cute = require "cute"
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
  local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", t.element_type)
  local tid, tile = cute.arch.thread_idx(), cute.local_tile(t, {16, 16},
                                                            {0, at})
  local r = mma:get_slice(tid):partition_fragment_A(tile)
  local thr = cute.make_tiled_copy_A(ldsm, mma):get_slice(tid)
  cute.copy(ldsm, thr:partition_S(tile), thr:retile(r))
  return eight_of(r)
end

local function traced_env()
  local cute = require "cute"
  return setmetatable({cute = cute, _ = cute._, when = cute.when,
    range = cute.range, thread = cute.arch.thread_idx}, {__index = TRACED})
end

-- Returns the kernel of p and its arguments: x, output, number of iterations.
local function kernel(p)
  local cute = require "cute"
  local f = run_text(p, traced_env())
  local function word(v)
    if p.type == "i32" then return v end
    return v:bitcast(cute.u16):to(cute.i32)
  end
  return cute.kernel("k", function(x, o, n)
    local tid = cute.arch.thread_idx()
    f(x, n, function(slot, v)
      local several = type(v) == "table"
      for i = 0, several and 7 or 0 do
        o[(slot + i) * LANES + tid] = word(several and v[i] or v)
      end
    end)
  end)
end

local function first_difference(p, want, got, who)
  local n = (p.passes + 2) * p.slots * LANES
  for i = 0, n - 1 do
    if got[i] ~= (want[i] or -1) then
      return ("slot %d, thread %d: %s, %s has %s"):format(i // LANES,
        i % LANES, want[i], who, got[i])
    end
  end
end

--- Returns for each program the first difference from plain Lua, or false.
---@param programs PlacesProgram[]
---@return (string|false)[]
function places.host(programs)
  local cute = require "cute"
  local runs, wrong, want, count = {}, {}, {}, {}
  for i, p in ipairs(programs) do
    want[i], count[i] = plain(p), (p.passes + 2) * p.slots * LANES
    local x, bytes = data(p)
    local o = cute.full({count[i]}, -1, cute.i32)
    local call = kernel(p)(x, o, p.passes)
    local fresh = ("\xff"):rep(4 * count[i])
    local ok, why = pcall(call.launch, call, {grid = 1, block = LANES,
                                              device = "sim:sm_80"})
    wrong[i] = not ok and tostring(why)
      or first_difference(p, want[i], o, "the simulator") or false
    local args = {bytes, fresh}
    if p.dynamic then
      local shape, stride = cute.shape(x), cute.stride(x)
      for mode = 1, 3 do args[#args + 1] = ("<i4"):pack(shape[mode]) end
      for mode = 1, 3 do
        if stride[mode] ~= 1 then
          args[#args + 1] = ("<i4"):pack(stride[mode])
        end
      end
      args = {args[1], table.unpack(args, 3)}
      args[#args + 1] = fresh
    end
    args[#args + 1] = ("<i4"):pack(p.passes)
    runs[i] = {text = call:trace {block = LANES}:cuda "sm_80", grid = 1,
               block = LANES, args = args, out = p.dynamic and #args - 1 or 2}
  end
  for i, result in ipairs(require "spec.cudahost".run(runs)) do
    local o = cute.buffer("i32", count[i]):set_bytes(result[runs[i].out])
    wrong[i] = wrong[i] or
      first_difference(programs[i], want[i], o, "the text") or false
  end
  return wrong
end

return places
-- SPDX-License-Identifier: MIT
