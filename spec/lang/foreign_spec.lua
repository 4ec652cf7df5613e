-- Tests messages for habits of CUDA C, Triton, PyTorch and the Python DSL. Each
-- must begin with the cause, at the script's line, and say what to write.
local core = require "cute.core"
local cute = require "cute"
local errors = require "cutelua.text.errors"
local foreign = require "cutelua.text.foreign"
local source = require "cute.lang.source"

local HEAD = [[
local cute = require "cute"
local x, y = cute.full({64}, 1, cute.f32), cute.zeros({64}, cute.f32)
local t = cute.zeros({4, 8}, cute.f32)
local k = cute.kernel("k", function(y) y[cute.arch.thread_idx()] = 1.0 end)
]]
local _, LINES = HEAD:gsub("\n", "")

-- Returns the report that the program prints for a script.
local function said(text)
  local name = "=habit.lua"
  source.add(name, HEAD .. text)
  local f, why = load(HEAD .. text, name)
  if not f then return errors.format(why) end
  local ok, failure = xpcall(f, errors.capture)
  assert.is_false(ok, text)
  return errors.format(failure)
end

-- Asserts that the report of a script begins with `cause`, shows the script's
-- first line, and contains `advice`.
local function check(text, cause, advice)
  local got = said(text)
  assert.equal(cause, got:sub(1, #cause), text)
  assert.truthy(got:find(("habit.lua:%d"):format(LINES + 1), 1, true), got)
  assert.truthy(got:find(advice, 1, true), got)
end

local STATE = "local s = cute.pipeline.make_pipeline_state('producer', 2) "

local function kernel(body, options)
  return ("cute.kernel('k', function(x, y) local t = cute.arch.thread_idx() "
    .. "%s end)(x, y):launch {%s}"):format(body,
    options or "grid = 1, block = 64, device = 'sim'")
end

describe("a habit of another language", function()
  it("is a launch", function()
    local write = "write :launch {grid = 1, block = 64}"
    local triton = "kernel k was indexed by "
    for _, row in ipairs {
      {"k(y).launch {grid = 1, block = 64}", "'call:launch' is a method, but "
        .. "was called with a dot, on {grid = 1, block = 64}", "with a colon"},
      {"k(y):launch(1, 64)", "call:launch takes a table of named options, but "
        .. "was given (1, 64)", write},
      {"k(y):launch({1}, {64})", "call:launch takes a table of named options",
        "write :launch {grid = {1}, block = {64}}"},
      {"k(y):launch {1, 64}", "call:launch takes a table of named options, "
        .. "but was given {1, 64}", write},
      {"k(y, {grid = 1, block = 64})", "kernel k got the options of a launch, "
        .. "{grid = 1, block = 64}, as an argument",
        "write k(y):launch {grid = 1, block = 64}"},
      {"k[{1}](y)", triton .. "{1}", "write k(arguments...):launch {grid = g"},
      {"k[8](y)", triton .. "8", "write k(arguments...):launch {grid = g"},
      {"k(y):launch {grid = 1, threads = 64}", "call:launch: the block is "
        .. "missing: threads = 64 is the number of the host's threads",
        "write block = 64"},
      {"k(y):launch {grid = 128 / 64, block = 64}", "call:launch: grid = 2.0; "
        .. "one to three integers", "write a // b for an integer"},
      {"k(y):launch {grid = 1, block = 64, stream = 0}",
        "call:launch: stream of 0: a stream", "if the option is left out"},
    } do
      check(table.unpack(row))
    end
    for text, advice in pairs {
      ["k<<<1, 64>>>(y)"] = "write k(arguments...):launch",
      ["k[1, 64](y)"] = "write k(arguments...):launch",
      ["local f = function(x, n: cute.i32) end"] = "parameters have no types",
      ["local f = (x) => x + 1"] = "write function(x) return ... end",
      ["if x is None then end"] = "write x == nil",
      ["cute::copy(x, y)"] = "write cute.copy with a dot",
      ["cute.arch.atomic_add(&y[0], 1)"] = "write t.iterator + i",
      ["local z = 1.0f"] = "write numbers without a suffix",
      ["print(f'{x}')"] = "for a string with values",
      ["require 'cutelua.kernel'"] = "then cute.kernel",
      ["cute.kernel('k', {grid = 1}, print)"] = "no option 'grid': it is an "
        .. "option of k(x):launch",
    } do
      assert.truthy(said(text):find(advice, 1, true), text)
    end
  end)

end)

describe("a habit of another language in a name", function()
  it("is an option's name", function()
    for option, meant in pairs {grid_dim = "grid", gridDim = "grid",
        block_dim = "block", num_threads = "block", fast_math = "fastmath",
        cluster_shape = "cluster"} do
      check(("k(y):launch {%s = 1}"):format(option), ("call:launch: no option "
        .. "'%s' (did you mean %s?)"):format(option, meant), "there are")
    end
    for option, advice in pairs {smem = "leave the option out",
        shared_mem = "leave the option out", num_warps = "block = 32 * warps",
        num_stages = "{num_stages = n}", maxnreg = "min_blocks"} do
      check(("k(y):launch {%s = 1}"):format(option), ("call:launch: no option "
        .. "'%s': "):format(option), advice)
    end
  end)

  it("is an option or operation of cute.ops", function()
    for _, row in ipairs {
      {"cute.ops.gemm(t, t, {bias = x})", "ops.gemm: no option 'bias': pass it "
        .. "as C", "cute.ops.gemm(A, B, bias)"},
      {"cute.ops.gemm(t, t, {trans_b = true})",
        "ops.gemm: no option 'trans_b': transpose the operand's layout",
        "cute.select(t, {1, 0})"},
      {"cute.ops.reduce(t, 'sum', {axis = 1})",
        "ops.reduce: no option 'axis': write by = \"row\"", "by = {0}"},
      {"cute.ops.softmax(t, {dim = -1})", "ops.softmax: no option 'dim': the "
        .. "operation runs along the last mode", "cute.select(x, {1, 0})"},
      {"cute.ops.reduce(t, 'add')", "ops.reduce: no operation 'add' (did you "
        .. "mean sum?)", "there are"},
      {"cute.ops.sdpa(t, t, t)", "cute.ops has no 'sdpa'",
        "write cute.ops.attention(Q, K, V)"},
      {"cute.ops.relu(t)", "bad argument #1 to 'ops.relu'",
        "cute.ops.elementwise(f, x) on the host"},
      {"t:to(cute.f16)", "tensor:to: f16 is an element type, not a device",
        "write cute.ops.convert(x, cute.f16)"},
      {"k(y):launch {grid = 1, block = 64, arch = 'hopper'}",
        "call:launch: no architecture 'hopper' (did you mean sm_90a?)",
        "sm_80"},
      {"k(y):launch {grid = 1, block = 64, device = 'sim:sm_85'}",
        "call:launch: no architecture 'sm_85' (did you mean sm_86?)", "sm_80"},
      {"k(y):launch {grid = 1, block = 64, device = 'sim:sm_105'}",
        "call:launch: no architecture 'sm_105' (did you mean sm_103?)",
        "sm_80"},
      {"cute.ops.gemm(t, t, {num_warps = 4})",
        "ops.gemm: no option 'num_warps': there are", "alpha"},
    } do
      check(table.unpack(row))
    end
    assert.truthy(said("print(t @ t)"):find("write cute.ops.gemm(A, B)", 1,
                                            true))
  end)

  it("is a name", function()
    for _, row in ipairs {
      {"cute.jit(print)", "cute.jit was called, but it is a table of functions",
        "a Lua function runs as it is on the host"},
      {"cute.arch(1)", "cute.arch was called, but it is a table of functions",
        "write cute.arch.NAME(...)"},
      {"cute.Float32(1)", "the element type f32 was called like a function, "
        .. "with 1", "write (1):to(cute.f32)"},
      {kernel "y[t] = cute.Float32(x[t])", "the element type f32 was called "
        .. "like a function, with traced f32", "write x:to(cute.f32)"},
      {"require('cutelua').zeros({4}, 'f32')", "module cutelua has no 'zeros'",
        "write local cute = require \"cute\", then cute.zeros"},
      {kernel "y[cute.arch.thread_idx().x] = 1", "a traced value has no field "
        .. "'x'", "write local x, y, z = cute.arch.thread_idx()"},
      {kernel "cute.arch.syncthreads()", "cute.arch has no 'syncthreads'",
        "write cute.arch.sync_threads"},
      {kernel "cute.arch.shfl_down_sync(t, 1)",
        "cute.arch has no 'shfl_down_sync'", "cute.arch.shuffle_sync_down"},
      {kernel "y[cute.program_id(0)] = 1", "cute has no 'program_id'",
        "write cute.arch.block_idx"},
      {kernel "cute.cp_async_commit_group()",
        "cute has no 'cp_async_commit_group'",
        "write cute.arch.cp_async_commit_group"},
      {"cute.zeros({4}, cute.float32)", "cute has no 'float32'",
        "write cute.f32"},
      {"print(t.T)", "a tensor has no field 'T'", "cute.select(x, {1, 0})"},
      {"print(x.numel())", "a tensor has no field 'numel'",
        "write cute.size(x)"},
    } do
      check(table.unpack(row))
    end
  end)

end)

describe("a habit of another language in a call", function()
  it("is a dot in place of a colon", function()
    for _, row in ipairs {
      {kernel "cute.when(t.lt(4), print)", "'value:lt' is a method, but was "
        .. "called with a dot, on 4", "write value:lt(other) with a colon"},
      {kernel "y[t] = x[t].to(cute.f16)", "'value:to' is a method, but was "
        .. "called with a dot, on f16", "write value:to(dtype) with a colon"},
      {"print(x.load())", "'tensor:load' is a method, but was called with a "
        .. "dot, on no value", "write tensor:load() with a colon"},
      {"print(x.size())", "bad argument #1 to 'cute.size'",
        "write x:size(...) with a colon"},
    } do
      check(table.unpack(row))
    end
  end)

  it("is an argument", function()
    for _, row in ipairs {
      {kernel "y[t] = x[t / 2]", "an integer is needed, but a / b is a traced "
        .. "f32", "write a // b for an integer"},
      {"print(x[3 / 2])", "an integer is needed, got 1.5", "write a // b"},
      {kernel "for i in cute.range(64 / 3) do y[i] = 1 end",
        "cute.range: a limit is 21.33", "write a // b"},
      {"cute.make_swizzle(3, 3)", "cute.make_swizzle: two arguments are masks, "
        .. "and 0x3 and 0x3 do not form a swizzle",
        "write cute.make_swizzle(b, m, s)"},
      {"cute.size(t, {modes = 1})", "cute.size: a list of modes is a list such "
        .. "as", "this table has the key modes"},
      {kernel "cute.pipeline.PipelineAsync.create(2)", "PipelineAsync takes a "
        .. "table of options, not 2", "write PipelineAsync {num_stages = n"},
      {"cute.compile(k(y), {grid = 1, block = 64})", "bad argument #1 to "
        .. "'cute.compile' (kernel expected", "write (k, x, y, {grid = g"},
      {"cute.zeros({4}, 'f32', {device = 'cuda'})", "cute.zeros: no device "
        .. "'cuda' (did you mean gpu?)", "host, gpu"},
      {"cute.zeros(64, 4)", "bad argument #2 to 'cute.zeros' (element type "
        .. "such as cute.bf16 expected, got 4)",
        "write the shape as one table: {m, n}"},
      {kernel "local s = y(nil)", "mode 0 of the coordinate is nil",
        "write cute._ for all of a mode"},
      {kernel "y:store(1.0)", "bad argument #1 to 'tensor:store'",
        "write t:fill(x)"},
      {kernel "cute.arch.atomic_add(y[t], 1.0)", "bad argument #1 to "
        .. "'cute.arch.atomic_add' (tensor expected, got traced f32",
        "t.iterator + i for an address"},
      {kernel "cute.loop(t:lt(4), t:lt(5))", "bad argument #1 to 'cute.loop' "
        .. "(function expected, got traced boolean",
        "write f for the function"},
      {"cute.ops.gemm(t, cute.zeros({8, 6}, cute.f32), {device = 'sim'})",
        "ops.gemm: A is (4,8):(8,1) and B is (8,6):(6,1): K is 8 in one and 6",
        "write cute.select(B, {1, 0}): B must be (N,K)"},
    } do
      check(table.unpack(row))
    end
  end)

  it("is a function or a condition", function()
    for _, row in ipairs {
      {kernel "local i = cute.arch.thread_idx y[i] = 1", "bad index (integer "
        .. "or tuple expected, got a function)", "write f() for the result"},
      {kernel "local i = cute.arch.thread_idx y[i + 1] = 1", "attempt to "
        .. "perform arithmetic on a function value (local 'i')",
        "write i() for the result of function i"},
      {kernel "cute.when(t, function() y[0] = 1 end)",
        "cute.when: the condition is i32, not a boolean", "write x:ne(0)"},
      {kernel "cute.when(t:eq(0), print, t:eq(1), print)", "bad argument #4 to "
        .. "'cute.when'", "cute.cases(c1, c2)"},
      {kernel "cute.range(0, 4, function(i) y[i] = 1 end)",
        "cute.range: a limit is a function", "write for i in cute.range"},
      {kernel "cute.printf(t)", "bad argument #1 to 'cute.printf'",
        "write cute.printf(\"{}\", x)"},
      {kernel "cute.if_(t:eq(0), print)", "cute has no 'if_'",
        "write cute.when(condition, f, g)"},
      {kernel(STATE .. "y[s.index()] = 1"),
        "attempt to call a number value (field 'index')",
        "write .index without ()"},
      {kernel(STATE .. "y[s.stage] = 1"), "a PipelineState has no 'stage'",
        "write x.index"},
      {"cute.kernel('k', function(a, b) a(0, 0, 0) end)(t):launch {grid = 1, "
        .. "block = 1, device = 'sim'}", "", "kernel k takes 2 arguments (a, "
        .. "b), got 1: the missing ones are nil"},
      {"print(cute.make_layout({2, 4}).shape())", "(2,4) cannot be called",
        "write it without ()"},
    } do
      check(table.unpack(row))
    end
  end)

  it("is a list of modes with one mode", function()
    local t = cute.zeros({4, 8}, cute.f32)
    assert.equal(8, cute.size(t, {mode = 1}))
    assert.equal(8, cute.size(t, {mode = {1}}))
    assert.equal(4, cute.size(t, {mode = 0}))
  end)

  it("is replaced by names that exist", function()
    local n = 0
    for name, text in pairs(foreign.NAMES) do
      for path in text:gmatch "%f[%w_]cute[%w_.]*[%w_]" do
        local v = cute
        for part in path:gmatch "%.([%w_]+)" do v = v[part] end
        assert.is_not_nil(v, name .. ": " .. path)
        n = n + 1
      end
    end
    assert.is_true(n > 50)
    assert.is_nil(core.nearest("grid_dim", {"cluster", "stream"}))
    assert.equal("grid", core.nearest("grid_dim", {"block", "grid"}))
  end)
end)

describe("a habit of another language in an operand", function()
  it("is the order of arguments, a key or a start of a loop", function()
    for _, row in ipairs {
      {"cute.make_layout({8, 4}, {stride = {4, 1}})", "cute.make_layout: a "
        .. "tuple is a list such as {8, {8, 8}}, but this table has the key "
        .. "stride", "write make_layout(shape, stride)"},
      {kernel "for i = t, 63 do y[i] = 1.0 end", "bad 'for' initial value",
        "a traced start needs `for k in cute.range(lo, hi, step) do`"},
      {kernel([[cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS",
        cute.f32), cute.make_smem_tensor(cute.f32, 64), y)]]),
        "cute.copy: the source of SM80_CP_ASYNC_CACHEALWAYS<uint128_t> must "
        .. "be in global memory, not in shared memory",
        "are the source and the destination exchanged?"},
      {kernel([[cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
        :get_slice(t):make_fragment_C(y)]], "grid = 1, block = 32"),
        "slice:make_fragment_C: (64):(1) is not a partition (V,M,N) with V = 4 "
        .. "values of SM80_16x8x16_F32BF16BF16F32_TN",
        "use partition_C of a slice of the same TiledMMA"},
    } do
      check(table.unpack(row))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
