-- Passes numbers too large for layouts, tensors and memory, and numbers that
-- look like a trace's handles. Each must be rejected, and none may be mistaken
-- for something else.
local cute = require "cute"
local core = require "cute.core"
local support = require "spec.support"
local raises = support.raises

local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

-- Integers whose upper bits are those of the internal handles of tuples, traced
-- values, `_` or basis elements.
local FAR = {1 << 60, (1 << 60) + 3, (1 << 61) + 1, (1 << 61) + 3,
             3 << 60, (3 << 60) + 1, 1 << 62, (5 << 60) + (1 << 56) + 1,
             math.maxinteger, math.mininteger, -(1 << 60) - 1, -(1 << 62)}

-- Returns functions that each pass the integer x to a public function.
local function takers(x)
  local l = cute.layout "(4,8):(8,1)"
  local swizzled = cute.make_composed_layout(cute.make_swizzle(1, 1, 4), 8,
                                             cute.layout "(1,8):(0,1)")
  local all = {
    upcast = function(n) return cute.upcast(l, n) end,
    downcast = function(n) return cute.downcast(l, n) end,
    recast_layout = function(n) return cute.recast_layout(n, 8, l) end,
    recast_layout_to = function(n) return cute.recast_layout(8, n, l) end,
    recast_method = function(n) return cute.recast_layout(n, n, l) end,
    shape = function(n) return cute.make_layout {n} end,
    stride = function(n) return cute.make_layout({4}, {n}) end,
    composition = function(n) return cute.composition(l, n) end,
    logical_divide = function(n) return cute.logical_divide(l, n) end,
    zipped_divide = function(n) return cute.zipped_divide(l, {n, n}) end,
    complement = function(n) return cute.complement(cute.layout "2:1", n) end,
    crd2idx = function(n) return cute.crd2idx(n, {4, 8}, {8, 1}) end,
    idx2crd = function(n) return cute.idx2crd(n, {4, 8}) end,
    call = function(n) return l(n) end,
    call2 = function(n) return l(n, n) end,
    call_composed = function(n) return swizzled(n) end,
    call_composed2 = function(n) return swizzled(n, n) end,
    product = function(n) return cute.product {n, 2} end,
    ceil_div = function(n) return cute.ceil_div(n, -1) end,
    ceil_div_by = function(n) return cute.ceil_div({4, 4}, {n, n}) end,
    shape_div = function(n) return cute.shape_div(n, -1) end,
    round_up = function(n) return cute.round_up(n, 3) end,
    swizzle = function(n) return cute.make_swizzle(n, n, n) end,
    swizzle_shift = function(n) return cute.make_swizzle(1, 1, n) end,
    basis = function(n) return cute.E(0) * n end,
    mode = function(n) return cute.E(n) end,
    iterator = function(n) return x.iterator + n end,
    tensor = function(n)
      return cute.make_tensor(x.iterator, cute.make_layout({4}, {n}))
    end,
    element = function(n) return x[n] end,
    identity = function(n) return cute.make_identity_tensor {n} end,
    rmem = function(n) return cute.make_rmem_tensor({n}, cute.f32) end,
    smem = function(n)
      return cute.make_smem_tensor(cute.f32, cute.make_layout {n})
    end,
    local_tile = function(n) return cute.local_tile(x, {8}, {n}) end,
    domain_offset = function(n) return cute.domain_offset({n}, x) end,
  }
  return all
end

describe("an integer of 2^60 and more", function()
  it("is rejected or stays a number, on the host and in kernels", function()
    local function try(x)
      for name, f in pairs(takers(x)) do
        for _, n in ipairs(FAR) do
          local ok, got = pcall(f, n)
          local text = tostring(got)
          if ok then  -- A result must not print as a traced value or as `_`.
            local said = ("%s(%d): %s"):format(name, n, text)
            assert.is_nil(text:find "[?_]" or text:find "traced", said)
          else
            assert.truthy(text:find "%[[%l-]+%]",
                          ("%s(%d): %s"):format(name, n, text))
            assert.is_nil(text:find("internal", 1, true), text)
          end
        end
      end
    end
    local X = cute.zeros({32}, cute.f32)
    try(X)
    run(function(x)
      try(x)
      x[0] = 1
    end, X)
  end)

  it("forges no objects in casts", function()
    local l = cute.layout "8:1"
    for name, f in pairs {
      upcast = function(n) return cute.upcast(l, n) end,
      downcast = function(n) return cute.downcast(l, n) end,
      recast_layout = function(n) return cute.recast_layout(n, 8, l) end} do
      for _, inside in ipairs {false, true} do
        local n = (1 << 61) + 3
        local function go() f(n) end
        raises(name .. ": 2305843009213693955 does not fit in an extent or "
          .. "stride (limit 2^60) [overflow]",
          inside and function() run(go) end or go)
      end
    end
  end)
end)

describe("memory", function()
  it("that wraps around is over the budget", function()
    for _, n in ipairs {1 << 58, (1 << 58) - 1, 1 << 57, 1 << 40} do
      raises({"over the budget of any GPU, 232448 bytes", "[smem-budget]"},
        run, function()
          cute.make_smem_tensor(cute.f64, cute.make_layout {n})
        end)
    end
  end)

  it("ends 2^52 elements from its start", function()
    local x = cute.zeros({32}, cute.f32)
    local far = "a tensor can reach at most 2^52 elements from its start, not "
    raises(far .. "576460752303423488 [limit]", function()
      return x.iterator + (1 << 59), nil
    end)
    raises(far, function() return x.iterator + -(1 << 59), nil end)
    raises(far, run, function(a) return a.iterator + (1 << 59), nil end, x)
    raises(far, run, function(a)
      local t = cute.make_tensor(a.iterator, cute.make_layout({4}, {1 << 58}))
      t[3] = 1
    end, x)
    local wide = cute.make_tensor(x.iterator, cute.make_layout({2}, {1 << 59}))
    raises(far, run, function(a) a[1] = 1 end, wide)
    assert.equal("misaligned", (support.message(run, function(a)
      cute.copy(cute.make_copy_atom("UniversalCopy", cute.f32, 128),
                cute.make_tensor(a.iterator + (1 << 51) + 1,
                                 cute.make_layout {4}),
                cute.make_rmem_tensor({4}, cute.f32))
    end, x):match "%[([%l-]+)%]"))
  end)
end)

describe("numbers at the ends of their range", function()
  it("have absolute values, swizzles and blocks without surprise", function()
    assert.equal(math.mininteger, cute.abs(math.mininteger))
    assert.equal(math.maxinteger, cute.abs(-math.maxinteger))
    for _, n in ipairs {51, -51, math.mininteger, math.maxinteger} do
      raises("bits and base must not be negative", cute.make_swizzle, 1, 1, n)
    end
    local k = cute.kernel("k", function(x) x[cute.arch.thread_idx()] = 1 end)
    local x = cute.zeros({4}, cute.f32)
    for block, want in pairs {
      [1 << 31] = "a block of 2147483648 threads; the limit is 1024 "
        .. "[bad-launch]",
      [1025] = "a block of 1025 threads; the limit is 1024 [bad-launch]"} do
      assert.equal("call:trace: " .. want, (support.message(function()
        k(x):trace {block = block}
      end)))
    end
    raises("a block of 2048 threads", function()
      k(x):trace {block = {32, 32, 2}}
    end)
    assert.is_false((pcall(core.trace, "k", function() end,
                           {block = {1 << 31}}, function(e) return e end)))
  end)

  it("of a block that the kernel fixes are those of the launch", function()
    local x = cute.zeros({64}, cute.f32)
    local k = cute.kernel("fixed", {block = {8, 8}}, function(a) a[0] = 1 end)
    raises("kernel fixed was created for a block of 8 x 8 x 1, not 32 x 1 x 1 "
      .. "[bad-launch]", function()
        k(x):launch {grid = 1, block = 32, device = "sim"}
      end)
    k(x):launch {grid = 1, block = {8, 8, 1}, device = "sim"}
    k(x):launch {grid = 1, device = "sim"}
    assert.equal(1.0, x(0))
  end)
end)

describe("a mark of a trace", function()
  local function traced(f) cute.kernel("k", f)():trace {block = 1} end

  it("is no string, and its kernel's own", function()
    traced(function()
      for _, bad in ipairs {"x", ("\0"):rep(64), 5, {}, cute.f32} do
        raises("(mark expected", function() core.rollback(bad) end)
      end
      assert.is_true(core.rollback(core.mark()))
    end)
    local old
    traced(function() old = core.mark() end)
    traced(function() assert.is_false(core.rollback(old)) end)
  end)

  it("is valid only while the state before it exists", function()
    traced(function()
      local a = core.mark()
      local tid = cute.arch.thread_idx()
      local b = core.mark()
      assert.is_true(core.rollback(b))
      assert.is_true(core.rollback(a))
      assert.is_false(core.rollback(b))
      assert.is_false((pcall(tid.lt, tid, 3)))
      local bid = cute.arch.block_idx() + cute.arch.thread_idx()
      assert.is_false(core.rollback(b))
      core.open_if(bid:lt(3))
      local c = core.mark()
      core.open_else()
      assert.is_false(core.rollback(c))
      core.close()
      assert.is_false(core.rollback(c))
      raises("without an open loop or branch", function() core.close() end)
      raises("without an open branch", function() core.open_else() end)
      assert.is_true(core.rollback(a))
    end)
  end)
end)

describe("methods of values", function()
  it("called on others raise", function()
    local X, of = cute.zeros({4}, cute.f32), {}
    local atom = cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN"
    for _, o in ipairs {cute.f32, X, cute.make_layout {4}, cute._, atom,
                        core.buffer("f32", 4), atom:get_slice(0),
                        cute.make_copy_atom("UniversalCopy", cute.f32)} do
      of[#of + 1] = o
    end
    cute.kernel("k", function(x)
      of[#of + 1], of[#of + 2] = cute.arch.thread_idx(), x:load()
      of[#of + 1] = core.mark()
    end)(X):trace {block = 32}
    local called = 0
    for i, o in ipairs(of) do
      for name, f in pairs(getmetatable(o)) do
        if type(f) == "function" and not name:find "close$"
          and name ~= "__gc" then
          for k, self in ipairs(of) do
            if k ~= i then pcall(f, self, "dtype") end
            pcall(f, self, o, self)
          end
          for _, self in ipairs {0, "x", {}, print} do
            pcall(f, self)
            pcall(f, self, 1, self)
          end
          pcall(f)
          called = called + 1
        end
      end
    end
    assert.is_true(called > 100)
  end)
end)
-- SPDX-License-Identifier: MIT
