--- Makes random calls of public functions, nearly all of them wrong. Each call
-- must return, or raise an error that has a kind, names the caller's line, and
-- contains no message of Lua's own. Results of calls become arguments of later
-- calls. With `hostile`, each call passes one hostile value, such as a table
-- that contains itself. `make fuzz` makes many calls, spec/bind/calls_spec.lua
-- a few.
local cute = require "cute"
local core = require "cute.core"
local random = require "spec.random"
local surface = require "spec.surface"

local calls = {}

---------------------------------------------------------------------------
-- Requirements of an error
---------------------------------------------------------------------------

local OURS = "a callback's own error"  -- the message that callbacks raise

-- Patterns that no message may contain: parts of Lua's messages, our file
-- names, internal names.
local RAW = {"attempt to ", "to '%?'", "%.c:%d", "%(local '", "%(field '",
  "%(upvalue '", "%(method '", "%(global '", "core%.%l", "'for' ",
  "stack overflow", "%[internal%]", "please report", "lua/cute",
  "%[cute%.", "invalid option", "malformed", "bad argument #%d+ to '[%l]+' %("
  .. "[%l ]+ expected, got [%l ]+%)$", "invalid value %(",
  "number has no integer", "assertion failed!", "too many results"}

-- Returns an error's first line if it has the required form, "FILE:LINE:
-- SENTENCE [KIND]".
local function first_line(message)
  local first = message:match "^[^\n]*"
  local where, _, kind = first:match "^(.-:%d+: )(.*) %[([%l-]+)%]$"
  return where, kind or first:match " %[([%l-]+)%]$"
end

--- Returns a sentence on what is wrong with an error's value, or nil. Does not
-- check the position in the message.
---@param message any
---@return string?
function calls.unclear(message)
  if type(message) == "table" and message[1] == OURS then return end
  if type(message) ~= "string" then return "no text" end
  if message:find(OURS, 1, true) then return end
  for _, pattern in ipairs(RAW) do
    if message:find(pattern) then return "holds " .. pattern end
  end
  local _, kind = first_line(message)
  if not core.error_kinds[kind] then return "no kind" end
end

--- Returns a sentence on what is wrong with an error's value or its position,
-- or nil.
---@param message any
---@return string?
function calls.complaint(message)
  local why = calls.unclear(message)
  if why or type(message) == "table" or message:find(OURS, 1, true) then
    return why
  end
  local where = first_line(message)
  if not where then return "no place" end
  -- Kernel files that are not built into the program count as scripts, so an
  -- error may name one of their lines.
  if not where:find "calls.lua" and not where:find "^%./kernels/" then
    return "not the caller's line"
  end
end

---------------------------------------------------------------------------
-- Values
---------------------------------------------------------------------------

local INTEGERS = {0, 0, 1, 1, 2, 2, 3, 4, 4, 7, 8, 8, 16, 32, 64, 128, -1, -1,
  -2, -7, 1 << 31, 1 << 40, 1 << 62, math.maxinteger, math.mininteger}
local NUMBERS = {0.0, 1.5, -0.5, 0 / 0, 1 / 0, -1 / 0, 1e300, 2.0}
local STRINGS = {"", "x", "f32", "bf16", "f16", "i32", "u8", "e4m3", "bool",
  "sm_90a", "sm_80", "gpu", "cta", "cluster", "add", "max", "sum", "K", "MN",
  "row", "release", "acquire", "sim", "all", "thread", "warp", "shared",
  "global", "\0", "\27[31m", "%d %s", "%", "(4,2):(1,4)", "(8,(2,4))", "((",
  "SM80_16x8x16_F32BF16BF16F32_TN", "SM75_U32x4_LDSM_N", "UniversalCopy",
  "SM90_TMA_LOAD", ("long "):rep(50), "5", "-1", "1e9", "nan"}

-- Returns names for option tables: all option names that signatures mention.
local function option_names()
  local set, list = {}, {}
  for _, item in ipairs(require "cutelua.doc.names".all()) do
    for _, part in ipairs(item.doc and item.doc.body or {}) do
      for word in (part.text or ""):gmatch "([%a_][%w_]*) =" do
        set[word] = true
      end
    end
    for _, p in ipairs(item.doc and item.doc.params or {}) do
      for word in (p.text or ""):gmatch "([%a_][%w_]*) ?=" do
        set[word] = true
      end
      for word in (p.type or ""):gmatch "([%a_][%w_]*)%??:" do
        set[word] = true
      end
    end
  end
  set.file = nil  -- `file` is left out, because calls must not write files.
  for word in pairs(set) do list[#list + 1] = word end
  table.sort(list)
  return list
end

-- Expressions for host objects, as text. Each evaluation makes a new object.
local HOST = {
  [[cute.layout "(4,2):(1,4)"]], [[cute.layout "8:1"]],
  [[cute.layout "(0,8):(8,1)"]], [[cute.layout "(4,(2,0)):(1,(4,8))"]],
  [[cute.make_layout({{2, 4}, 8}, {{1, 2}, 8})]],
  [[cute.make_swizzle(3, 3, 3)]], [[cute._]], [[cute.X]], [[cute.E(0)]],
  [[cute.LayoutLeft]], [[cute.f32]], [[cute.bf16]], [[cute.i32]], [[cute.u8]],
  [[cute.zeros({4, 2}, cute.f32)]], [[cute.ones({16, 16}, cute.bf16)]],
  [[cute.zeros({8}, cute.i32)]], [[cute.zeros({64}, cute.f16)]],
  [[cute.zeros({0, 8}, cute.f32)]], [[cute.zeros({16, 0}, cute.bf16)]],
  [[cute.zeros({4, 2}, cute.f32).iterator]], [[cute.buffer("f32", 8)]],
  [[cute.make_identity_tensor {8, 4}]],
  [[cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN"]],
  [[cute.make_copy_atom("UniversalCopy", cute.f32)]],
  [[cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)]],
  [[cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN"]],
  [[cute.make_tiled_mma(cute.nvgpu.tcgen05.MmaF16BF16Op("f16", "f32",
    {128, 64, 16}))]],
  [[cute.make_tiled_mma(cute.nvgpu.tcgen05.MmaMXF4NVF4Op("e4m3",
    {256, 64, 64}, 2))]],
  [[cute.make_tiled_mma(cute.nvgpu.tcgen05.MmaF16BF16SparseOp("f16", "f32",
    {128, 64, 32}))]],
  [[cute.make_mma_atom("SM100_MMA_F16BF16_WS_SS<half_t,half_t,float,32,64,"
    .. "K,K>")]],
  [[cute.make_copy_atom(cute.nvgpu.tcgen05.Ld32x32bOp(8), cute.f32)]],
  [[cute.make_copy_atom(cute.nvgpu.tcgen05.Cp4x32x128bOp(1), cute.e4m3)]],
  [[cute.get_sparse_elem_type(2, 1, cute.f16)]],
  [[cute.nvgpu.cpasync.CopyBulkTensor2DGather4G2SOp()]],
  [[cute.nvgpu.tcgen05.make_smem_layout_atom("K_SW128", cute.f16)]],
  [[cute.make_tiled_copy(cute.make_copy_atom("UniversalCopy", cute.f32),
    cute.make_layout {32}, cute.make_layout {4})]],
  [[cute.kernel("k", function() end)]],
  [[cute.kernel("k2", function(x) x[0] = 1 end)(cute.zeros({4}, cute.f32))]],
  [[cute.kernel("k3", function() end)():trace {block = 32}]],
  [[cute.compile(cute.kernel("k4", function() end), {grid = 1, block = 32,
    device = "sim"})]],
  [[cute.raw_kernel('extern "C" __global__ void f() {}')]],
  [[cute.struct {{"x", cute.f32, 4}, {"y", cute.i32}}]],
  [[cute.utils.PersistentTileSchedulerParams({4, 4, 1}, {1, 1, 1})]],
  [[cute.utils.LayoutEnum.from_tensor(cute.zeros({4, 2}, cute.f32))]],
  [[cute.utils.HardwareInfo()]], [[cute.utils.create_initial_search_state()]],
  [[cute.utils.GroupSearchResult(0, 0, 0, 4, 4, 4, 1)]],
  [[cute.utils.GroupedWorkTileInfo({0, 0, 0}, true,
    cute.utils.GroupSearchResult(0, 0, 0, 4, 4, 4, 1))]],
  [[cute.utils.WorkTileInfo({0, 0, 0}, true)]],
  [[cute.sym_int()]], [[cute.make_fake_tensor(cute.f32, {4}, {1})]],
  [[cute.device "sim"]],
  [[cute.stream()]], [[cute.event()]], [[io.stdout]],
  [[coroutine.create(function() end)]], [[cute]], [[cute.arch]],
  [[cute.ops.int4(cute.zeros({16, 64}, cute.i8))]],
  [[cute.ptx(".version 8.0\n.target sm_90a\n.address_size 64\n"
    .. ".global .b32 g[4];\n.entry k(.param .u64 x, .param .f64 y, "
    .. ".param .align 8 .b8 z[16]) {\n.reg .b64 d; .reg .b32 r;\n"
    .. "ld.param.u64 d, [x]; ld.global.b32 r, [g];\n"
    .. "st.global.b32 [d], r; ret;\n}\n")]],
}

-- Expressions for objects that exist only inside a kernel, as text.
local DEVICE = {
  [[cute.arch.thread_idx()]], [[cute.arch.lane_idx()]],
  [[cute.arch.block_idx():to(cute.i64)]], [[cute.arch.lane_idx():lt(3)]],
  [[cute.arch.lane_idx():to(cute.f32)]], [[cute.arch.lane_idx():to(cute.bf16)]],
  [[cute.make_smem_tensor(cute.bf16, cute.make_layout({16, 16}, {16, 1}))]],
  [[cute.make_smem_tensor(cute.f32, cute.make_layout {64}, 128)]],
  [[cute.make_smem_tensor(cute.i64, cute.make_layout {4})]],
  [[cute.make_rmem_tensor({4}, cute.f32)]],
  [[cute.make_rmem_tensor({4}, cute.f32):load()]],
  [[cute.make_rmem_tensor({8}, cute.i8):load()]],
  [[cute.make_smem_tensor(cute.i64, cute.make_layout {4}).iterator]],
  [[cute.arch.retrieve_tmem_ptr(cute.f32, 16,
    cute.arch.alloc_smem(cute.i32, 1))]],
  [[cute.make_tensor(cute.arch.retrieve_tmem_ptr(cute.f32, 16,
    cute.arch.alloc_smem(cute.i32, 1)), cute.layout "(128,8):(65536,1)")]],
  [[cute.make_smem_tensor(cute.f16, cute.tile_to_shape(
    cute.nvgpu.tcgen05.make_smem_layout_atom("K_SW128", cute.f16), {128, 64}),
    1024)]],
  [[cute.utils.TmemAllocator(cute.arch.alloc_smem(cute.i32, 1),
    {barrier_for_retrieve = cute.pipeline.NamedBarrier {barrier_id = 1,
      num_threads = 128}})]],
  [[cute.fast_divmod_create_divisor(7)]], [[cute.var(3)]],
  [[cute.var(0.5, cute.f32)]], [[cute.range(4)]],
  [[cute.make_tiled_copy(cute.make_copy_atom("UniversalCopy", cute.f32),
    cute.make_layout {32}, cute.make_layout {4}):get_slice(
      cute.arch.lane_idx())]],
  [[cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN":get_slice(
    cute.arch.lane_idx())]],
  [[cute.pipeline.PipelineState(2)]],
  [[cute.pipeline.PipelineCpAsync {num_stages = 2}]],
  [[cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 32}]],
  [[cute.pipeline.CooperativeGroup("thread", 32)]],
  [[cute.pipeline.PipelineAsync {num_stages = 2,
    producer_group = cute.pipeline.CooperativeGroup("thread", 32),
    consumer_group = cute.pipeline.CooperativeGroup("thread", 32)}]],
  [[cute.pipeline.PipelineTmaAsync {num_stages = 2, tx_count = 512,
    producer_group = cute.pipeline.CooperativeGroup("thread"),
    consumer_group = cute.pipeline.CooperativeGroup("warp", 1)}]],
  [[cute.utils.SmemAllocator()]],
  [[cute.utils.StaticPersistentTileScheduler(
    cute.utils.PersistentTileSchedulerParams({4, 4, 1}, {1, 1, 1}))]],
  [[cute.struct {{"x", cute.f32, 4}, {"y", cute.i32}}:allocate()]],
}

-- A table whose metamethods all raise an error.
local RAISING = [[setmetatable({}, (function()
  local mt = {}
  for name in ("index newindex call tostring len eq lt le concat unm add sub "
      .. "mul div idiv mod pow band bor bxor bnot shl shr pairs name close")
      :gmatch "%a+" do
    mt["__" .. name] = function() error("a callback's own error") end
  end
  return mt
end)())]]

-- Expressions for hostile values, as text: numbers out of range, tables without
-- an end, closed or dead objects, objects that pretend to be others, and
-- functions that never return.
local HOSTILE = {
  RAISING,
  [[math.maxinteger]], [[math.mininteger]], [[-1]], [[(1 << 53) + 1]],
  [[0 / 0]], [[1 / 0]], [[-1 / 0]], [[-0.0]], [[1e308]], [[2.5]],
  [[""]], [["\0"]], [[("x"):rep(1 << 20)]], [[("("):rep(100000)]],
  [["%s%n%d"]], [["\xff\xfe\27[31m"]],
  [[(function() local t = {} t[1] = t return t end)()]],
  [[(function() local t = {} t.x = {t} return t end)()]],
  [[(function()
    local t = {}
    for _ = 1, 100000 do t = {t} end
    return t
  end)()]],
  [[(function()
    local t = {}
    for i = 1, 100000 do t[i] = i end
    return t
  end)()]],
  [[{[0] = 1, [2] = 3}]], [[{1, nil, 3}]], [[{[1.5] = 1}]], [[{[{}] = {}}]],
  [[setmetatable({}, {__index = function(_, k) return k end})]],
  [[setmetatable({}, {__len = function() return math.maxinteger end})]],
  [[setmetatable({}, {__name = "tensor"})]],
  [[setmetatable({}, {__name = "cute.Layout", __index = {shape = {4}}})]],
  [[setmetatable({}, {__metatable = false})]],
  [[(function()
    local f = io.tmpfile()
    f:close()
    return f
  end)()]],
  [[(function()
    local b = cute.buffer("f32", 8)
    b:close()
    return b
  end)()]],
  [[coroutine.running()]],
  [[(function()
    local c = coroutine.create(function() error {} end)
    coroutine.resume(c)
    return c
  end)()]],
  [[coroutine.wrap(function() coroutine.yield() end)]],
  [[function() error {"a callback's own error"} end]],
  [[function() coroutine.yield() end]],
  [[function(...)
    local function f(...) return 1 + f(...) end
    pcall(f, ...)
    error("a callback's own error")
  end]],
  [[string.rep]], [[os.exit]], [[print]], [[_G]],
}

local function made(text)
  return assert(load("local cute = ... return " .. text, "=spec/calls.lua"))(
    cute)
end

-- Returns the name that signatures use for a value's type.
local function type_of(v)
  local mt = type(v) == "table" and getmetatable(v)
  local name = type(mt) == "table" and rawget(mt, "__name")
  return name or core.typename(v)
end

local Pool = {}
Pool.__index = Pool

local SAME = {divisor = "divisor"}

-- Adds a value to the pool of its type, which keeps only the latest ones.
function Pool:add(v)
  local t = type_of(v)
  if t == "nil" or t == "number" or t == "string" or t == "boolean" then
    return
  end
  t = SAME[t] or t
  local list = self.by[t]
  if not list then
    list = {}
    self.by[t], self.types[#self.types + 1] = list, t
  end
  if #list < 12 then list[#list + 1] = v
  -- The first four values stay in the pool; a new value replaces a random later
  -- one.
  else list[self.g:r(8) + 4] = v end
end

function Pool:any()
  local list = self.by[self.g:pick(self.types)]
  return list and self.g:pick(list)
end

function Pool:of(name)
  local list = self.by[name]
  return list and self.g:pick(list)
end

local value

local function list_of(p, depth, n)
  local t = {}
  for i = 1, n do t[i] = value(p, depth - 1) end
  return t
end

local function options(p, depth, keys)
  local t = {}
  for _ = 1, p.g:r(4) do
    t[p.g:pick(keys)] = value(p, depth - 1)
  end
  return t
end

local function shape(p, depth)
  local t = {}
  for i = 1, p.g:r(3) do
    t[i] = depth > 1 and p.g:chance(20) and shape(p, depth - 1)
      or p.g:pick {1, 2, 4, 8, 16, 64, 128}
  end
  return t
end

local arguments

local function callback(p)
  local g, kind = p.g, p.g:r(4)
  if kind == 1 then return function(...) return ... end end
  if kind == 2 then return function() error(OURS) end end
  if kind == 3 then
    local v = value(p, 1)
    return function() return v end
  end
  -- The random numbers are drawn before the kernel runs. Otherwise the kernel's
  -- loops would treat the generator's state as a variable that they carry.
  if p.nested then return print end
  p.nested = true
  local f = g:pick(p.functions)
  local args = arguments(p, f)
  p.nested = false
  return function() return f.f(table.unpack(args, 1, args.n)) end
end

-- Returns a random value of any type; tables are nested at most `depth` deep.
function value(p, depth)
  local g = p.g
  local r = g:r(100)
  if r <= 30 then return p:any() end
  if r <= 50 then return g:pick(INTEGERS) end
  if r <= 62 then return g:pick(STRINGS) end
  if r <= 66 then return g:pick(NUMBERS) end
  if r <= 70 then return g:chance(50) end
  if r <= 74 then return nil end
  if r <= 78 then return callback(p) end
  if depth <= 0 then return g:r(16) end
  if r <= 84 then return shape(p, depth) end
  if r <= 92 then return list_of(p, depth, g:r(4) - 1) end
  return options(p, depth, p.keys)
end

-- Returns a value of the type that a signature names. `keys` are the names of
-- its options.
local function of_type(p, word, keys)
  local g = p.g
  if word == "options" then return options(p, 3, keys) end
  if word == "integer" or word == "number" then return g:pick(INTEGERS) end
  if word == "string" then return g:pick(STRINGS) end
  if word == "boolean" then return g:chance(50) end
  if word == "function" then return callback(p) end
  if word == "table" then
    local r = g:r(3)
    return r == 1 and shape(p, 2) or r == 2 and options(p, 3, p.keys)
      or list_of(p, 3, g:r(4))
  end
  local v = p:of(word)
  if v == nil then return value(p, 2) end
  return v
end

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

-- Splits "f(x, n?: integer|value, rest...)" into the words of each parameter.
local function parameters(signature)
  local list = {}
  local owner = signature:match "^([^(.]+):"
  if owner then list[1] = {owner} end
  for p in signature:match "%((.*)%)":gmatch "[^,]+" do
    local words, types = {}, p:match ":%s*(.*)$" or ""
    words.keys = {}
    types = types:gsub("%b{}", function(keys)
      for key in keys:gmatch "[%w_]+" do words.keys[#words.keys + 1] = key end
      return "options"
    end)
    for word in types:gmatch "[^|%s]+" do words[#words + 1] = word end
    list[#list + 1] = words
  end
  return list
end

-- Returns an argument that usually has a type in `words`, so that calls pass
-- the first checks.
local function argument(p, words)
  if #words > 0 and p.g:chance(75) then
    return of_type(p, p.g:pick(words), words.keys)
  end
  return value(p, 3)
end

function arguments(p, f)
  local g, args = p.g, {n = 0}
  for i, words in ipairs(f.parameters) do
    if i > 1 and g:chance(8) then break end
    if i == 1 and f.method and g:chance(95) then
      args[1] = p:of(words[1])
    else
      args[i] = argument(p, words)
    end
    args.n = i
  end
  if g:chance(6) then
    args.n = args.n + 1
    args[args.n] = value(p, 2)
  end
  args[1] = surface.path(f.name, args[1])
  return args
end

local STEPS = 3000000  -- limit of Lua instructions in one call

local function too_long() error(OURS, 0) end

local null = assert(io.open("/dev/null", "w"))

--- Calls f as pcall does, but discards output. An exit of the process, or too
-- many Lua instructions, become errors.
---@return table results true and values, or false and the error
function calls.quiet(f, ...)
  local out, say, exit = io.output(), print, os.exit
  io.output(null)
  rawset(_G, "print", function() end)
  rawset(os, "exit", too_long)
  if not core.tracing() then debug.sethook(too_long, "", STEPS) end
  local r = table.pack(pcall(f, ...))
  if not core.tracing() then debug.sethook() end
  rawset(_G, "print", say)
  rawset(os, "exit", exit)
  io.output(out)
  return r
end

local function shown(f, args)
  local list = {}
  for i = 1, args.n do list[i] = core.show(args[i]) end
  return ("%s(%s)"):format(f.name, table.concat(list, ", "))
end

--- File that records the current call, for diagnosis when the process dies.
---@type file*?
calls.trail = nil

-- Functions that call their callback very often. Inside a kernel, each call is
-- traced, which would take hours.
local SLOW = {["testing.benchmark"] = true}

--- Makes one call. If its result or error is wrong, adds the call to p.wrong.
---@param p table a pool
---@param f table one of calls.functions()
function calls.one(p, f)
  if p.where == "inside" and SLOW[f.name] then return end
  local args = arguments(p, f)
  if p.hostile then
    local n = p.g:r(#f.parameters + 1)
    args[n], args.n = p.g:pick(p.hostile), math.max(args.n, n)
    args[1] = surface.path(f.name, args[1])
  end
  p.count = p.count + 1
  if calls.trail then
    calls.trail:seek "set"
    calls.trail:write(shown(f, args), "\n\n")
    calls.trail:flush()
  end
  local r = calls.quiet(f.f, table.unpack(args, 1, args.n))
  local why, message
  if not r[1] then
    message = r[2]
    why = calls.complaint(message)
  else
    if f.name:find "to_dlpack" and type(r[2]) == "userdata" then
      -- The caller owns an exported DLPack tensor, and must delete it.
      core.delete_dlpack(r[2], args[2])
    else
      for i = 2, r.n do p:add(r[i]) end
    end
    if r[2] == nil and type(r[3]) == "string" then
      message = r[3]
      for _, pattern in ipairs(RAW) do
        if message:find(pattern) then why = "gives " .. pattern end
      end
    end
  end
  if why then
    p.wrong[#p.wrong + 1] = {f = f.name, where = p.where, why = why,
      call = shown(f, args), message = tostring(message)}
  end
end

---------------------------------------------------------------------------
-- Programs of calls
---------------------------------------------------------------------------

local functions, keys

-- Returns functions that apply an operator to a tensor and another value.
local function operators()
  local list = {}
  for _, sign in ipairs {"+", "-", "*", "/", "//", "%", "^", "&", "|", "~",
                         "<<", ">>"} do
    local apply = load(("local x, y = ...; local z = x %s y; return z")
      :format(sign), "=spec/calls.lua")
    local function f(x, y)
      if core.typename(x) == "tensor" or core.typename(y) == "tensor" then
        return apply(x, y)
      end
    end
    local types = {"tensor", "number", "tensor", keys = {}}
    list[#list + 1] = {f = f, name = "tensor " .. sign, method = false,
                       parameters = {types, types}}
  end
  return list
end

--- Returns all public functions with the types of their parameters, except
-- those that would write files: a random string may be a path.
---@return table[]
function calls.functions()
  if functions then return functions end
  surface.nameless()
  functions = {}
  for _, f in ipairs(surface.functions()) do
    if not f.signature:find "^%l+%.write" then
      functions[#functions + 1] = f
    end
  end
  for _, f in ipairs(functions) do
    f.parameters = parameters(f.signature)
    f.method = f.signature:match "^[^(]+:" ~= nil
  end
  table.move(operators(), 1, 12, #functions + 1, functions)
  keys = option_names()
  return functions
end

local function pool(seed, where, hostile)
  local g = setmetatable({state = seed * 7919 + 12345}, random.Gen)
  for _ = 1, 8 do g:r(2) end
  local all = calls.functions()
  local values = hostile and {}
  for i, text in ipairs(values and HOSTILE or {}) do values[i] = made(text) end
  return setmetatable({g = g, by = {}, types = {}, keys = keys, wrong = {},
    count = 0, where = where, hostile = values, functions = all}, Pool)
end

local function fill(p, list)
  for _, text in ipairs(list) do
    local ok, v = pcall(made, text)
    if not ok and not tostring(v):find "no%-gpu" then
      io.stderr:write(text .. ": " .. tostring(v), "\n")
    end
    if ok then p:add(v) end
  end
end

local function draw(p, n, each)
  for _, f in ipairs(each or {}) do
    for _ = 1, n do calls.one(p, f) end
  end
  for _ = 1, each and 0 or n do calls.one(p, p.g:pick(p.functions)) end
end

--- Makes n calls of random functions outside kernels; with `each`, n calls of
-- each of these functions.
---@param seed integer
---@param n integer
---@param each? table[] some of calls.functions()
---@param hostile? boolean whether each call passes a hostile value
---@return table pool wrong = {{f =, why =, call =, message =} ...}, count =
function calls.outside(seed, n, each, hostile)
  local p = pool(seed, "outside", hostile)
  fill(p, HOST)
  draw(p, n, each)
  return p
end

--- Makes n calls inside one kernel, which is emitted as CUDA C if possible.
function calls.inside(seed, n, each, hostile)
  local p = pool(seed, "inside", hostile)
  fill(p, HOST)
  local k = cute.kernel("k", function(x, y, m)
    p:add(x) p:add(y) p:add(m)
    fill(p, DEVICE)
    draw(p, n, each)
  end)
  local r = calls.quiet(function()
    local traced = k(cute.zeros({16, 16}, cute.bf16), cute.zeros({8}, cute.i32),
      5):trace {block = 128, arch = p.g:pick {"sm_80", "sm_90a"}}
    return traced:cuda()
  end)
  local why = not r[1] and calls.complaint(r[2])
  if why then
    p.wrong[#p.wrong + 1] = {f = "trace", where = "kernel", why = why,
      call = "the kernel of these calls", message = tostring(r[2])}
  end
  return p
end

-- Functions are called in groups of this size. A group shares one pool of
-- values, so that each call finds values of its types.
local TOGETHER = 40

--- Calls each function n times. Returns a list of the calls whose result or
-- error was wrong, as text, and the number of calls.
---@param where "outside"|"inside"
---@param seed integer
---@param n integer
---@param hostile? boolean whether each call passes a hostile value
---@param each? table[] some of calls.functions(), which is the default
---@return string[]
---@return integer
function calls.each(where, seed, n, hostile, each)
  local list, count, all = {}, 0, each or calls.functions()
  for k = 1, #all, TOGETHER do
    local p = calls[where](seed * 1000 + k, n,
      table.move(all, k, math.min(k + TOGETHER - 1, #all), 1, {}), hostile)
    count = count + p.count
    for _, w in ipairs(p.wrong) do
      list[#list + 1] = ("%s: %s: %s"):format(w.call, w.why, w.message)
    end
  end
  return list, count
end

return calls
-- SPDX-License-Identifier: MIT
