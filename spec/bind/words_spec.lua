-- Tests every public function's error for a wrong call. The message must
-- contain the function's name as users write it, the argument, the value and a
-- kind. It must contain no text of Lua's own messages and no internal name. The
-- spec finds the functions by walking the modules and the types, so that a new
-- one is covered without an edit.
local cute = require "cute"
local core = require "cute.core"
local calls_of = require "spec.calls"
local surface = require "spec.surface"

local support = require "spec.support"

local kinds = core.error_kinds

-- Parameters that stand for any number of arguments. The key is the parameter
-- as signatures write it; the value says what its arguments are.
local FREE = {
  ["modes..."] = "modes to go down to, or modes of a basis",
  ["values..."] = "a list of operands, of a coordinate, to print, to return",
  ["tuples..."] = "a list of tuples",
  ["tuple..."] = "a tuple, or its entries",
  ["pieces..."] = "what is written, in pieces",
  ["shape..."] = "a shape, or its extents",
  ["layouts..."] = "layouts side by side",
  ["arguments..."] = "a kernel's own",
  ["more..."] = "further tuples or tensors",
  ["yz..."] = "thread_idx() gives three values, of which x counts",
}

---------------------------------------------------------------------------
-- Requirements of a message
---------------------------------------------------------------------------

local RAW = {"attempt to ", "'%?'", "%.c:", "%(local '", "%(field '",
  "%(upvalue '", "core%.", "'for' ", "stack overflow",
  "not enough memory", "INTERNAL", "%[internal%]", "please report",
  "lua/cute", "invalid option", "malformed"}

-- Reports whether a message shows a value: as written, as printed, or by its
-- type.
local function mentions(message, v)
  local words = {core.show(v), tostring(v), core.typename(v)}
  if type(v) == "table" then
    -- The message may report a missing field, as in "x is nil".
    words = {words[1], "nil", "()", "empty"}
    for k in pairs(v) do words[#words + 1] = tostring(k) end
    for _, x in ipairs(v) do
      if mentions(message, x) then return true end
    end
  elseif math.type(v) == "integer" then
    words[4] = ("%x"):format(v)
  elseif words[3] == "tensor" then
    words[4] = tostring(v.layout)
    words[5] = ("type %s"):format(v.element_type)
  end
  for _, word in ipairs(words) do
    if message:find(word, 1, true) then return true end
  end
  return false
end

-- Returns what is wrong with the message of the error of name(args...), or nil
-- if it is right.
local function complaint(message, name, args)
  if type(message) ~= "string" then return "is no text" end
  local first = message:match "^[^\n]*"
  local where, said, kind = first:match "^(.-:%d+: )(.*) %[([%l-]+)%]$"
  if not where then return "has no place or kind" end
  if not kinds[kind] then return "has no known kind" end
  if not where:find "spec/calls.lua" then return "does not tell the caller" end
  for _, pattern in ipairs(RAW) do
    if message:find(pattern) then return "holds " .. pattern end
  end
  local base = name:match "[%w_]+$"
  if not (said:find "^kernel " or said:find(name, 1, true)
    or said:find(":" .. base, 1, true)) then
    return "does not name " .. name
  end
  if said:find "#%d" or said:find "expected, got" or said:find "called on" then
    return
  end
  if kind == "bad-launch" then return end
  if kind == "not-tracing" or kind == "inside-kernel" then return end
  -- An argument may be missing; then the message must say nil.
  if said:find "%f[%w]nil%f[%W]" then return end
  for i = 1, args.n do
    if mentions(message, args[i]) then return end
  end
  if next(args) == "n" and next(args, "n") == nil then return end
  return "tells neither argument nor value"
end

local function count(signature)
  local n, least, free = 0, 0, nil
  for p in signature:match "%((.*)%)":gmatch "[^,]+" do
    p = p:match "^%s*(.-)%s*$"
    if p:find "%.%.%." then
      free = p:match "^[^:]+"
    else
      n = n + 1
      if not p:find "?" then least = n end
    end
  end
  return n, least, free
end

local SINK = assert(io.open("/dev/null", "w"))

local function samples()
  local L = cute.layout "(4,2):(1,4)"
  local list = {true, false, "x", {}, {"x"}, {n = 1}, function() end, 0 / 0,
    1 << 62, -1, 1.5, 0, L, cute._, cute.LayoutLeft, cute.E(0),
    cute.make_swizzle(1, 0, 1), cute.f32, cute.zeros({4, 2}, cute.f32),
    cute.zeros({4, 2}, cute.f32).iterator, cute.buffer("f32", 8), SINK,
    cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN",
    cute.make_copy_atom("UniversalCopy", cute.f32),
    cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN",
    cute.kernel("k", function() end)}
  if not core.tracing() then list[#list + 1] = list[#list]() end
  return list
end

-- Returns an object of the type whose method is called, or nil.
local function receiver(type_)
  local L, T = cute.layout "(4,2):(1,4)", cute.zeros({4, 2}, cute.f32)
  local k = cute.kernel("k", function() end)
  local copy = cute.make_tiled_copy(cute.make_copy_atom("UniversalCopy",
    cute.f32), cute.make_layout {32}, cute.make_layout {1})
  local make = {layout = L, tensor = T, buffer = cute.buffer("f32", 8),
    value = 7, tiled = copy, slice = copy:get_slice(0),
    atom = cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN", call = k(),
    PipelineState = cute.pipeline.PipelineState(2),
    PipelineCpAsync = cute.pipeline.PipelineCpAsync {num_stages = 2},
    NamedBarrier = cute.pipeline.NamedBarrier {barrier_id = 1,
                                               num_threads = 32},
    SmemAllocator = cute.utils.SmemAllocator(),
    struct = cute.struct {{"x", cute.f32, 4}}}
  if not core.tracing() then
    make.prepared = cute.compile(k, {grid = 1, block = 32, device = "sim"})
    make.program = k():trace {block = 32}
  else
    make.value = cute.arch.lane_idx()
    make.vector = cute.make_rmem_tensor({4}, cute.f32):load()
  end
  return make[type_]
end

-- Returns calls of one function: lists of arguments.
local function calls(f)
  local most, _, free = count(f.signature)
  local list = {{n = 0}, {n = 1}}
  local self = receiver(f.name:match "^(%w+):")
  for _, v in ipairs(self ~= nil and samples() or {}) do
    list[#list + 1] = {self, v, n = 2}
    list[#list + 1] = {self, v, v, n = 3}
    list[#list + 1] = {self, nil, v, n = 3}
  end
  for _, v in ipairs(samples()) do
    list[#list + 1] = {v, n = 1}
    list[#list + 1] = {v, v, n = 2}
    list[#list + 1] = {nil, v, n = 2}
    list[#list + 1] = {v, v, v, v, n = 4}
  end
  if not free then
    local args = {n = most + 1 + (f.name:find ":" and 1 or 0)}
    for i = 1, args.n do args[i] = 7 end
    list[#list + 1] = args
  end
  return list
end

local function text(f, args)
  local list = {}
  for i = 1, args.n do list[i] = core.show(args[i]) end
  return ("%s(%s)"):format(f.name, table.concat(list, ", "))
end

-- Returns the index of the last argument that is not nil.
local function given(args)
  local n = args.n
  while n > 0 and args[n] == nil do n = n - 1 end
  return n
end

local function check(f, bad)
  local most, least, free = count(f.signature)
  if f.name:find ":" then most, least = most + 1, least + 1 end
  for _, args in ipairs(calls(f)) do
    args[1] = surface.path(f.name, args[1])
    local r = calls_of.quiet(f.f, table.unpack(args, 1, args.n))
    local ok, message = r[1], r[2]
    local why
    if not ok then
      why = complaint(message, f.name, args)
    elseif args.n < least or not free and given(args) > most then
      why = "raised nothing"
    end
    if why then
      bad[#bad + 1] = ("%s: %s: %s"):format(text(f, args), why,
        tostring(message))
    end
  end
end

---------------------------------------------------------------------------

describe("every public function #long", function()
  local stdout = io.stdout

  setup(function() rawset(io, "stdout", SINK) end)  -- cli.output writes

  teardown(function() rawset(io, "stdout", stdout) end)

  surface.nameless()  -- Loads all modules of the language.
  local public = surface.functions()

  it("has a signature, and a reason if it takes any number of arguments",
     function()
    assert.same({}, surface.nameless())
    for _, f in ipairs(public) do
      local _, _, free = count(f.signature)
      assert.truthy(not free or FREE[free], f.signature)
    end
  end)

  -- A signature must name all keys of its option table, and the function must
  -- reject other keys. CHECKED lists functions whose signature does not name
  -- the keys, with the check that rejects other keys.
  local CHECKED = {
    ["cute.graph"] = "kernel.check_options", ["cute.kernel"] = "the same",
    ["cute.raw_kernel"] = "raw.lua's own", ["cute.print_tensor"] = "printing",
    ["prepared:try"] = "kernel.check_options",
    ["raw call:launch"] = "the same", ["raw call:compile"] = "the same",
    ["ops.gemm"] = "operand.check_options", ["ops.explain"] = "the same",
    ["ops.grouped_gemm"] = "the same", ["ops.explain_grouped"] = "the same",
    ["ops.copy"] = "the same", ["ops.convert"] = "the same",
    ["ops.transpose"] = "the same", ["ops.reduce"] = "the same",
    ["tiles.is_async"] = "a kernel's own choices",
    ["tiles.operand"] = "a kernel's own choices",
  }
  for name in ("rmsnorm rmsnorm_backward layernorm layernorm_backward softmax "
    .. "softmax_backward cross_entropy cross_entropy_backward topk sample "
    .. "embedding embedding_backward rope attention attention_backward "
    .. "attention_decode block_mask explain_attention "
    .. "explain_attention_backward"):gmatch "%g+" do
    CHECKED["ops." .. name] = "rowwise.operation"
  end
  it("has a list of its options", function()
    for _, f in ipairs(public) do
      local loose = f.signature and f.signature:find "%f[%w]opt%w*%??: ?table"
      assert.truthy(not loose or CHECKED[f.name], f.signature)
    end
  end)

  it("rejects unknown options, and names the nearest", function()
    for said, f in pairs {
      ["cute.zeros: no option 'devce' (did you mean device?): there are device "
        .. "pinned seed"] = function()
          cute.zeros({4}, cute.f32, {devce = "gpu"})
        end,
      ["cute.range: no option 'unrol' (did you mean unroll?): there is unroll"]
        = function() cute.range(4, {unrol = 2}) end,
      ["testing.tune: no option 'iteration' (did you mean iterations?): there"]
        = function() cute.testing.tune(print, {}, {iteration = 3}) end,
      ["pipeline.PipelineCpAsync: no option 'stages' (did you mean "
        .. "num_stages?): there are barrier num_stages"] = function()
          cute.pipeline.PipelineCpAsync {stages = 3}
        end,
      ["cute.make_copy_atom: no option 'bits' (did you mean "
        .. "num_bits_per_copy?): there are num_bits_per_copy"]
        = function()
          cute.make_copy_atom("UniversalCopy", cute.f32, {bits = 128})
        end,
      ["cute.symbolic: no option 1 = \"f16\": there are align dtype shape"]
        = function() cute.symbolic {"f16", {4}} end,
      ["cute.find_swizzle: no option 'treads' (did you mean threads?)"]
        = function()
          cute.find_swizzle(cute.layout "(8,8):(8,1)", {{op = "ld", treads = 4,
            at = function(t) return {t % 8, 0} end}})
        end,
    } do
      support.raises(said, f)
    end
  end)

  for _, f in ipairs(public) do
    if f.signature then
      it("reports what is wrong: " .. f.signature, function()
        local bad = {}
        check(f, bad)
        assert.equal(0, #bad, table.concat(bad, "\n", 1, math.min(#bad, 4)))
      end)
      it("in a kernel too: " .. f.signature, function()
        local bad = {}
        pcall(function()
          cute.kernel("k", function() check(f, bad) end)()
            :trace {block = 32}
        end)
        assert.equal(0, #bad, table.concat(bad, "\n", 1, math.min(#bad, 4)))
      end)
    end
  end
end)

describe("every type", function()
  local types = {}
  for name in surface.types() do types[#types + 1] = name end
  table.sort(types)

  local OPERATORS = {add = "+", sub = "-", mul = "*", div = "/", idiv = "//",
    mod = "%", pow = "^", band = "&", bor = "|", bxor = "~", shl = "<<",
    shr = ">>", concat = "..", lt = "<", le = "<=", call = "()"}

  for _, name in ipairs(types) do
    it("answers to every operator: " .. name, function()
      local mt = debug.getregistry()[name]
      for event in pairs(OPERATORS) do
        assert.is_function(rawget(mt, "__" .. event), event)
      end
    end)
  end

  local function operations()
    local list = {}
    for event, sign in pairs(OPERATORS) do
      local code = event == "call" and "return a()"
        or ("return a %s b"):format(sign)
      list[event] = load("local a, b = ...; " .. code, "=words_spec")
    end
    list.field = load("return (...).nosuch", "=words_spec")
    list.method = load("return (...):nosuch()", "=words_spec")
    list.length = load("return #...", "=words_spec")
    return list
  end

  it("reports unsupported operators and fields", function()
    local T = cute.zeros({4, 2}, cute.f32)
    local values = {cute.layout "(4,2):(1,4)", T, T.iterator, cute.f32,
      cute.buffer("f32", 4), cute.make_swizzle(1, 0, 1),
      cute.make_copy_atom("UniversalCopy", cute.f32),
      cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN",
      cute.kernel("k", function() end)()}
    local partners = {5, "x", {}, values[1], values[2]}
    for _, v in ipairs(values) do
      for event, f in pairs(operations()) do
        for _, w in ipairs(partners) do
          local ok, message = pcall(f, v, w)
          if not ok and type(v) == "userdata" then
            assert.is_nil(message:find "attempt to", event .. ": " .. message)
            assert.truthy(message:match "^[^\n]* %[[%l-]+%]", message)
          end
        end
      end
    end
  end)
end)

describe("an easily mistaken name", function()
  local function says(want, f, ...)
    local ok, message = pcall(f, ...)
    assert.is_false(ok)
    assert.equal(want, message:match ":%d+: ([^\n]*)")
  end

  it("is reported as it was written", function()
    local k = cute.kernel("k", function(_) end)
    local T = cute.zeros({4}, cute.f32)
    says("bad argument #1 to 'cute.size' (integer or tuple expected, got no "
      .. "value) [bad-argument]", cute.size)
    says("bad argument #1 to 'cute.print_layout' (layout or tensor expected, "
      .. "got {8, 4}) [bad-argument]", cute.print_layout, {8, 4})
    says("bad argument #1 to 'gpu.open' (integer expected, got \"x\") "
      .. "[bad-argument]", cute.gpu.open, "x")
    says("bad argument #3 to 'cute.arch.bfi' (integer or traced value "
      .. "expected, got \"x\") [bad-argument]", cute.arch.bfi, 1, 2, "x", 3)
    says("a call has no 'lanch' (did you mean launch?) [unknown-name]",
      function() k(1):lanch {} end)
    says("bad argument #2 to 'tensor:fill' (at most 1 argument expected, got "
      .. "3; #2 is 7) [bad-argument]", function() T:fill(1, 7, 8) end)
    says("bad argument #3 to 'cute.coalesce' (at most 2 arguments expected, "
      .. "got 3; #3 is 2) [bad-argument]", cute.coalesce, cute.layout "4:1",
      {1}, 2)
    says("'tensor:fill' was called on 5 (tensor expected) [bad-argument]",
      T.fill, 5, 1)
    says("bad argument #1 to 'layout:coalesce' (integer or tuple expected, "
      .. "got \"x\") [bad-argument]",
      function() cute.layout "8:1":coalesce "x" end)
    says("bad argument #1 to 'layout:size' (integer expected, got \"x\") "
      .. "[bad-argument]", function() cute.layout "8:1":size "x" end)
    says("operator '-' does not apply to tensor ptr[f32,host] o 1:0 and 5 "
      .. "[bad-argument]",
      function() return T.iterator - 5 end)
    says("bad argument #2 to 'npy.write' (table expected, got 5) "
      .. "[bad-argument]", cute.npy.write, "x", 5)
  end)

  it("shows values in a line, shortened, without escapes", function()
    assert.equal([["a\10\27[1m"]], core.show "a\n\27[1m")
    assert.equal("{1, {2, \"x\"}}", core.show {1, {2, "x"}})
    assert.equal("{block = 3}", core.show {block = 3})
    assert.equal("layout (4,2):(1,4)", core.show(cute.layout "(4,2):(1,4)"))
    assert.is_true(#core.show(("x"):rep(1000)) < 80)
    assert.is_true(#core.show(setmetatable({}, {__tostring = function()
      return ("y"):rep(1000) end})) < 80)
    local loop = {}
    loop[1] = loop
    assert.equal("{{{{{...}}}}}", core.show(loop))
  end)
end)
-- SPDX-License-Identifier: MIT
