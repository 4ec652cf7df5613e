-- Tests composed layouts with a Lua function on the left: gathers, and views
-- that strides cannot describe. Results on the host and in kernels are compared
-- with the function itself.
local cute = require "cute"
local support = require "spec.support"
local raises = support.raises
local _ = cute._

local DEVICE = "sim:sm_90a"

-- Returns memory whose elements equal their offsets.
local function counting(n, dtype)
  local t = cute.zeros({n}, dtype or cute.i32)
  for i = 0, n - 1 do t[i] = i end
  return t
end

-- Returns an M x K matrix with the rows whose numbers are in the tensor `rows`.
local function gather(rows, K, vector)
  return cute.make_composed_layout(function(i, j)
    return rows[i + 1] * K + j
  end, {0, 0}, cute.make_identity_layout {#rows, K},
    vector and {vector = {1, vector}})
end

describe("a layout through a Lua function", function()
  it("is indexed, sliced, tiled and divided", function()
    local rows = {3, 1, 2, 0, 7, 5, 4, 6}
    local l = gather(rows, 12)
    local function f(i, j) return rows[i + 1] * 12 + j end
    local t = cute.make_tensor(counting(96).iterator, l)
    for i = 0, 7 do
      for j = 0, 11 do
        assert.equal(f(i, j), l(i, j))
        assert.equal(f(i, j), t(i, j))
        assert.equal(f(i, j), t(i + 8 * j))
        assert.equal(f(i, j), t(i, _)(j))
        assert.equal(f(i, j), t(_, j)(i))
        assert.equal(f(i, j),
          cute.local_tile(t, {4, 3}, {i // 4, j // 3})(i % 4, j % 3))
        assert.equal(f(i, j), cute.domain_offset({i, 0}, t)(0, j))
        assert.equal(f(i, j), cute.zipped_divide(l, {2, 6})(
          {i % 2, j % 6}, {i // 2, j // 6}))
        assert.equal(f(i, j),
          cute.composition(l, {cute._, cute.layout "12:1"})(i, j))
      end
    end
    local tiled = cute.make_tiled_copy(
      cute.make_copy_atom("UniversalCopy", cute.i32, 32),
      cute.make_layout({4, 4}, {4, 1}), cute.make_layout {1, 3})
    local crd = cute.make_identity_tensor {8, 12}
    for thread = 0, 15 do
      local part = tiled:get_slice(thread):partition_S(t)
      local at = tiled:get_slice(thread):partition_S(crd)
      for i = 0, cute.size(part) - 1 do
        local c = at(i)
        assert.equal(f(c[1], c[2]), part(i))
      end
    end
    assert.equal(96, cute.cosize(l))
    t[{2, 5}] = -1
    assert.equal(-1, t(2, 5))
    local one = cute.make_composed_layout(function(i) return i * i end, 3,
                                          cute.make_layout(4, 2))
    assert.same({9, 25, 49, 81}, {one(0), one(1), one(2), one(3)})
  end)

  it("is composed with other functions on the left", function()
    local function twice(i, j) return {j, i} end
    local l = cute.make_composed_layout(cute.layout "(4,8):(8,1)", {0, 0},
      cute.make_composed_layout(twice, {1, 2},
                                cute.make_identity_layout {4, 2}))
    for i = 0, 3 do
      for j = 0, 1 do assert.equal((j + 2) * 8 + i + 1, l(i, j)) end
    end
    local sw = cute.composition(cute.make_swizzle(2, 0, 3), gather({1, 0}, 8))
    local swizzle = cute.make_swizzle(2, 0, 3)
    for j = 0, 7 do assert.equal(swizzle(8 + j), sw(0, j)) end
  end)

  it("describes itself", function()
    local l = gather({1, 0}, 8)
    assert.matches("^f<function_spec.lua:%d+> o %(0,0%) o "
      .. "%(2,8%):%(1@0,1@1%)$", tostring(l))
    assert.matches("o %(1,0%) o %(8%):%(1@1%)$", tostring(l(1, _)))
    assert.equal("function", type(l.inner))
    assert.equal("(0,0)", tostring(l.offset))
    assert.is_true(l == l and l.is_composed)
    assert.is_false(l == gather({1, 0}, 8))
    local g = l.inner
    local function again(o)
      return cute.make_composed_layout(g, o, cute.make_identity_layout {2, 8})
    end
    assert.is_true(again {0, 0} == again(0))
    assert.is_false(again {0, 0} == again {0, 1})
  end)

  it("keeps its function", function()
    local list = {}
    for i = 1, 20 do
      local l = gather({i, 0}, 8)
      local t = cute.make_tensor(counting(400).iterator, l)
      list[i] = i % 2 == 0 and l(_, 3) or t(_, 3)
    end
    collectgarbage()
    collectgarbage()
    for i = 1, 20 do assert.equal(i * 8 + 3, list[i](0)) end
  end)

  it("rejects operations that need more than a function", function()
    local l = gather({1, 0}, 8)
    local t = cute.make_tensor(counting(16).iterator, l)
    raises("has no inverse", cute.left_inverse, l)
    raises("has no inverse", cute.right_inverse, l)
    raises("cannot be inverted", cute.get_1d_coord, l, 3)
    raises("have no element width", cute.recast_tensor, t, cute.i64)
    raises("cannot be recast", cute.upcast, cute.make_composed_layout(
      print, 0, cute.layout "8:1"), 2)
    raises("no layout describes", cute.complement, l, 24)
    raises("has no strides", cute.stride, l)
    raises("plain layout", t.mark_layout_dynamic, t)
    raises("the offset (0,0) is made of coordinates", cute.make_composed_layout,
           print, {0, 0}, cute.layout "8:1")
    local function bad(f, ...)
      local x = cute.make_composed_layout(f, 0, cute.layout "8:1", ...)
      return x(3)
    end
    raises({"returned nil for 3", "function_spec.lua"}, bad, function() end)
    raises("returned 1.5 for 3", bad, function() return 1.5 end)
    raises("returned \"x\" for 3", bad, function() return "x" end)
    raises("power of two", bad, print, {vector = 3})
    raises("two numbers of the option 'vector' are above 1", bad, print,
           {vector = {2, 2}})
    raises("vector must be an integer", bad, print, {vector = "wide"})
    raises("outside of the buffer of 16", function()
      return cute.make_tensor(counting(16).iterator, gather({2}, 8))(0, 0)
    end)
    local ok, err = pcall(bad, function() error("of its own", 2) end)
    assert.is_false(ok)
    assert.matches("of its own", err)
  end)
end)

describe("a tensor through a Lua function, in a kernel", function()
  it("gathers rows that the kernel reads", function()
    local K, rows = 16, {3, 1, 2, 0, 7, 5, 4, 6}
    local X, out = counting(8 * K), cute.zeros({8, K}, cute.i32)
    local index = cute.tensor(rows, cute.i32)
    local widths = {}
    local function run(vector, atom)
      local k = cute.kernel("rows", function(mX, mIndex, mOut)
        local x = cute.make_tensor(mX.iterator, cute.make_composed_layout(
          function(i, j) return mIndex[i] * K + j end, {0, 0},
          cute.make_identity_layout {8, K}, {vector = {1, vector}}))
        local thr = cute.make_tiled_copy(atom, cute.make_layout({8, 4}, {4, 1}),
          cute.make_layout {1, 4}):get_slice(cute.arch.thread_idx())
        local s = cute.make_smem_tensor(cute.i32,
                                        cute.make_layout({8, K}, {K, 1}))
        cute.copy(atom, thr:partition_S(x), thr:partition_D(s))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.autovec_copy(thr:partition_S(s), thr:partition_D(mOut))
      end)(X, index, out)
      k:launch {grid = 1, block = 32, device = DEVICE}
      for i = 0, 7 do
        for j = 0, K - 1 do assert.equal(rows[i + 1] * K + j, out(i, j)) end
      end
      local source = k:trace({block = 32}).source
      widths[#widths + 1] = tonumber(source:match "cp_async_c[ag](%d+)%(")
        or source:find "int4 %*%)%(mX" and -16 or -4
    end
    run(4, cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.i32, 128))
    run(1, cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.i32, 32))
    run(8, cute.make_copy_atom("AutoVectorizingCopy", cute.i32))
    assert.same({16, 4, -16}, widths)
    raises({"multiples of 16 bytes", "known to be aligned to 8"}, run, 2,
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.i32, 128))
  end)

  it("is copied with vectors as wide as its strides allow", function()
    local rows, widths = {2, 0, 3, 1}, {}
    local X, out = counting(128), cute.zeros({8}, cute.i32)
    for at = 0, 8 do
      local k = cute.kernel("place", function(mX, mOut)
        local x = cute.make_tensor(mX.iterator, gather(rows, 32, 8))
        local part = cute.local_tile(cute.domain_offset({1, at}, x), {1, 8},
                                     {0, 0})
        cute.autovec_copy(part(0, _), mOut)
      end)(X, out)
      k:launch {grid = 1, block = 1, device = DEVICE}
      for j = 0, 7 do assert.equal(rows[2] * 32 + at + j, out(j)) end
      local text = k:trace({block = 1}).source
      widths[at + 1] = text:find "const int4 %*" and 4
        or text:find "const int2 %*" and 2 or 1
    end
    assert.same({4, 1, 2, 1, 4, 1, 2, 1, 4}, widths)
    -- Each case has a layout, and the number of elements that a vector may
    -- have. In some layouts only pairs of elements are contiguous. In others a
    -- row continues in the next one.
    for _, case in ipairs {{"(2,4):(1@1,3@1)", 1}, {"(2,4):(1@1,6@1)", 2},
                           {"(4,2):(1@1,1@0)", 4}, {"(4,2):(2@1,1@0)", 1},
                           {"(4,2):(1@0,4@1)", 1}} do
      local k = cute.kernel("strides", function(mX, mOut)
        cute.autovec_copy(cute.make_tensor(mX.iterator,
          cute.make_composed_layout(function(i, j) return i * 32 + j end, 0,
            cute.layout(case[1]), {vector = {1, 8}})), mOut)
      end)(X, out)
      k:launch {grid = 1, block = 1, device = DEVICE}
      local crd = cute.layout(case[1])
      for i = 0, 7 do
        local c = crd(i)
        assert.equal((c[1] or 0) * 32 + (c[2] or 0), out(i))
      end
      local text = k:trace({block = 1}).source
      assert.equal(case[2], text:find "const int4 %*" and 4
        or text:find "const int2 %*" and 2 or 1, case[1])
    end
  end)

  it("is carried by loops, and scatters", function()
    local K, rows = 8, {2, 0, 3, 1}
    local out, sums = cute.zeros({4 * K}, cute.i32), cute.zeros({4}, cute.i32)
    cute.kernel("scatter", function(mX, mOut, mSums)
      local t = cute.arch.thread_idx()
      local l = gather(rows, K)
      local to = cute.make_tensor(mOut.iterator, l)
      for i = 0, 3 do
        cute.when(t:eq(i), function()
          local row, sum = to(i, _), 0
          for j in cute.range(K) do
            row[0] = mX[i * K + j]
            sum = sum + row[0]
            row = cute.domain_offset({1}, row)
          end
          mSums[i] = sum
        end)
      end
    end)(counting(4 * K), out, sums):launch {grid = 1, block = 4,
                                             device = DEVICE}
    for i = 0, 3 do
      local sum = 0
      for j = 0, K - 1 do
        assert.equal(i * K + j, out(rows[i + 1] * K + j))
        sum = sum + i * K + j
      end
      assert.equal(sum, sums(i))
    end
  end)
end)

describe("a tensor through a Lua function, in a kernel", function()
  it("is an argument, with one program for each function", function()
    local turn, traced = {by = 3, from = 1}, 0
    local X, out = counting(64), cute.zeros({4, 8}, cute.i32)
    local function row(i) return (i * turn.by + turn.from) % 4 end
    local function turned(rows, K)
      return cute.make_composed_layout(function(i, j)
        return row(i) * K + j
      end, {0, 0}, cute.make_identity_layout {rows, K})
    end
    local x = cute.make_tensor(X.iterator, turned(4, 16))
    local k = cute.kernel("argument", function(mX, l, mOut)
      traced = traced + 1
      local i, j = cute.arch.thread_idx() % 4, cute.arch.thread_idx() // 4
      mOut[{i, j}] = mX[{i, j}] + l(0, j)
    end)
    local function check(l)
      k(x, l, out):launch {grid = 1, block = 32, device = DEVICE}
      for i = 0, 3 do
        for j = 0, 7 do
          assert.equal(row(i) * 16 + j + l(0, j), out(i, j))
        end
      end
    end
    local one, other = turned(1, 8), turned(1, 8)
    check(one)
    check(other)
    check(one)
    assert.equal(2, traced)
    -- The function reads turn.by, which is part of the program's key, so this
    -- change needs a new trace.
    turn.by = 1
    check(one)
    assert.equal(3, traced)
    local far = cute.make_composed_layout(function(i, j)
      return i * 20 + j
    end, 0, cute.make_identity_layout {4, 16})
    local r = support.report(k(cute.make_tensor(X.iterator, far), one, out)
      :launch {grid = 1, block = 32, device = DEVICE, faults = "return"})
    assert.equal("out-of-bounds", r.reports[1].kind)
  end)

  -- Strides alone describe a layout that views an image as the matrix of
  -- im2col: rows (Q,P,N), columns (C,S,R).
  it("gets one index for nested modes", function()
    local N, H, W, C, R, S = 2, 5, 6, 4, 3, 2
    local P, Q = H - R + 1, W - S + 1
    local l = cute.make_composed_layout(
      cute.make_layout({{Q, P, N}, {C, S, R}},
                       {{C, W * C, H * W * C}, {1, C, W * C}}), {0, 0},
      cute.make_identity_layout {Q * P * N, C * S * R})
    local function f(m, k)
      local q, p, n = m % Q, m // Q % P, m // (Q * P)
      local c, s, r = k % C, k // C % S, k // (C * S)
      return ((n * H + p + r) * W + q + s) * C + c
    end
    for m = 0, Q * P * N - 1 do
      for k = 0, C * S * R - 1 do assert.equal(f(m, k), l(m, k)) end
    end
    local M, K = 8, 8
    local out = cute.zeros({Q * P * N, C * S * R}, cute.i32)
    local k = cute.kernel("im2col", function(mX, mOut)
      local atom = cute.make_copy_atom("UniversalCopy", cute.i32, 128)
      local thr = cute.make_tiled_copy(atom, cute.make_layout({8, 2}, {2, 1}),
        cute.make_layout {1, 4}):get_slice(cute.arch.thread_idx())
      local x = cute.make_tensor(mX.iterator, l)
      for m in cute.range(Q * P * N // M) do
        for j in cute.range(C * S * R // K) do
          cute.copy(atom,
            thr:partition_S(cute.local_tile(x, {M, K}, {m, j})),
            thr:partition_D(cute.local_tile(mOut, {M, K}, {m, j})))
        end
      end
    end)(counting(N * H * W * C), out)
    k:launch {grid = 1, block = 16, device = DEVICE}
    for m = 0, (Q * P * N // M) * M - 1 do
      for j = 0, C * S * R - 1 do assert.equal(f(m, j), out(m, j)) end
    end
  end)

  it("is another type of argument if its function differs", function()
    local k = cute.kernel("k", function(t, o) o[0] = t[1] end)
    local o = cute.zeros({1}, cute.i32)
    local function of(scale)
      return cute.make_tensor(counting(8).iterator, cute.make_composed_layout(
        function(i) return i * scale end, 0, cute.make_layout {4}))
    end
    local one, two = of(1), of(2)
    local run = cute.compile(k, two, o,
                             {grid = 1, block = 1, device = DEVICE})
    run(two, o)
    assert.equal(2, o(0))
    local text = support.message(run, one, o)
    local is, takes = text:match("^kernel k: argument 1 is (.-); this launch "
      .. "takes a different one, (.*) %[bad%-launch%]$")
    assert.equal(is, takes)
    assert.matches("^a tensor of i32, f<function_spec%.lua:%d+> o 0 o "
      .. "%(4%):%(1%), aligned to %d+ bytes$", is)
  end)
end)
-- SPDX-License-Identifier: MIT
