-- Calls every public function with random arguments, inside and outside kernels
-- (spec/calls.lua). Each error must name a kind and the caller's line. Also
-- tests the messages of errors that no check anticipates.
local calls = require "spec.calls"
local cute = require "cute"
local support = require "spec.support"

local EACH = 5  -- number of calls of each function, outside and inside kernels
local SHARE = 3  -- without #long, the tests call one in SHARE functions

describe("random calls", function()
  for i, where in ipairs {"outside", "inside"} do
    it("return, or raise an error at the caller's line, " .. where
       .. support.long(i), function()
      assert.same({}, (calls.each(where, i, EACH)))
    end)
  end
end)

describe("calls with a hostile value", function()
  it("return, or raise an error at the caller's line", function()
    local some = {}
    for i = 1, #calls.functions(), SHARE do
      some[#some + 1] = calls.functions()[i]
    end
    local wrong, count = calls.each("outside", 1, 1, true, some)
    assert.same({}, wrong)
    assert.is_true(count >= 383)
  end)

  it("do so in every function, inside kernels too #long", function()
    for _, where in ipairs {"outside", "inside"} do
      local wrong, count = calls.each(where, 2, 1, true)
      assert.same({}, wrong)
      assert.is_true(count > 1000)
    end
  end)

  it("show objects whose __tostring raises an error by their type", function()
    local bad = setmetatable({}, {__tostring = function() error "no" end})
    local ok, text = pcall(cute.layout, bad)
    assert.is_false(ok)
    assert.matches("bad argument #1 to 'cute.layout' %(.*got a table%) "
      .. "%[bad%-argument%]", text)
  end)
end)

describe("an error that no check anticipated", function()
  local function message(f, ...)
    local ok, text = pcall(f, ...)
    assert.is_false(ok)
    return (text:gsub("^[^\n]-calls_spec.lua:%d+: ", ""))
  end

  it("names the arguments, for Lua's own message too", function()
    local params = cute.utils.PersistentTileSchedulerParams({4, 4, 1},
                                                            {1, 1, 1})
    local said
    cute.kernel("k", function()
      said = message(cute.utils.DynamicPersistentTileScheduler, params, {})
    end)():trace {block = 32}
    assert.equal("utils.DynamicPersistentTileScheduler: counter must be an "
      .. "i32 tensor of global memory, got nothing [bad-argument]\n  write "
      .. "{counter = an i32 tensor of global memory that holds 0, "
      .. "consumer_group = CooperativeGroup(Agent.Warp, n)}", said)
    assert.equal("bad arguments to 'cli.help' ('name' is nil, where a string "
      .. "or a number is expected) [bad-argument]\n  given ({})\n"
      .. "  use cli.help(spec)", message(cute.cli.help, {}))
    local A = cute.zeros({16, 16}, cute.bf16)
    assert.matches("^bad arguments to 'ops.grouped_gemm' %(a table is "
      .. "expected, got tensor%) %[bad%-argument%]\n",
      message(cute.ops.grouped_gemm, {{A, A}}, A))
  end)

  it("names an element type, or a loop", function()
    assert.equal("bad argument #3 to 'utils.make_smem_layout_a' (element type "
      .. "or its name expected, got \"nope\") [bad-argument]\n"
      .. "  use utils.make_smem_layout_a(tiled_mma?, mma_tiler_mnk, dtype, "
      .. "num_stages, opts?)",
      message(cute.utils.make_smem_layout_a, nil, {128, 128, 64}, "nope", 3))
    local said
    pcall(function()
      cute.kernel("k", function() said = message((cute.range(4))) end)()
        :trace {block = 32}
    end)
    assert.equal("cute.range was called outside a for loop: write `for k in "
      .. "cute.range(n) do` [bad-argument]", said)
    assert.matches("^bad argument #1 to 'cli.try_parse' %(table expected, "
      .. "got nil%) %[bad%-argument%]", message(cute.cli.try_parse, nil))
  end)

  it("has the kind limit if something is too large", function()
    local list = {}
    for i = 1, 1000000 do list[i] = i end
    local k = cute.kernel("k", function() end)
    assert.matches(" %[limit%]\n", message(function()
      cute.kernel("k", function(_) end)(list):launch {grid = 1, block = 32,
        device = "sim"}
    end))
    assert.matches("^kernel k takes 0 arguments.* %[bad%-launch%]",
      message(k, table.unpack(list, 1, 1000)))
  end)

  it("leaves errors of callbacks unchanged", function()
    local A = cute.zeros({4}, cute.f32)
    assert.equal("mine", message(cute.ops.elementwise, function()
      error("mine", 0) end, A))
    local mark = {}
    local ok, value = pcall(cute.transform_leaf, function() error(mark) end, 1)
    assert.is_false(ok)
    assert.equal(mark, value)
  end)
end)

describe("a call that was once accepted silently", function()
  local function says(want, f, ...)
    local ok, text = pcall(f, ...)
    assert.is_false(ok)
    assert.equal(want, text:match ":%d+: ([^\n]*)")
  end
  local A = cute.zeros({16, 16}, cute.bf16)

  it("is rejected", function()
    local params = cute.utils.PersistentTileSchedulerParams({4, 4, 1},
                                                            {1, 1, 1})
    says("bad argument #1 to 'PersistentTileSchedulerParams:get_grid_shape' "
      .. "(1 cluster or more expected, got -3) [bad-argument]", function()
      params:get_grid_shape(-3) end)
    says("bad argument #2 to 'utils.StreamKTileScheduler' (1 tile along K or "
      .. "more expected, got 0) [bad-argument]",
      cute.utils.StreamKTileScheduler, params, 0)
    says("cute.zeros: pinned = \"yes\": true or false expected [bad-argument]",
      cute.zeros, {4}, cute.f32, {pinned = "yes"})
    says(("ops.elementwise: dropout probability %s; a number from 0 to less "
      .. "than 1 is needed [bad-argument]"):format(0 / 0), cute.ops.elementwise,
      function(x, at) return at:dropout(x, 0 / 0, 1) end, A, {device = "sim"})
    local f = function(sums, at, more) return sums, at, more end
    local i = debug.getinfo(f, "S")
    says(("ops.gemm: the epilogue at %s:%d has 3 parameters, but gets 2 "
      .. "values: accumulators and `at` "
      .. "[bad-argument]"):format(i.short_src, i.linedefined),
      cute.ops.gemm, A, A, {epilogue = f})
    local bytes = "\x93NUMPY\1\0\46\0{'fortran_order': False, 'shape': (3,), }"
    assert.same({nil, "has no 'descr' in its header"},
      {cute.npy.header(bytes .. (" "):rep(56 - #bytes))})
  end)
end)
-- SPDX-License-Identifier: MIT
