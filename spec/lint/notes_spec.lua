-- Tests notes on code that is not faulty, but hardly intended: work whose
-- result is never used. The notes accompany a run without faults.
local cute = require "cute"
local support = require "spec.support"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

-- Returns the report of a launch with 32 threads, and its messages on stderr.
local function run(f, ...)
  local k <const> = cute.kernel("k", f)
  local said, r = support.told(function(...)
    local launch = {grid = 1, block = 32, device = "sim:sm_90a",
      faults = "return"}
    local r = support.report(k(...):launch(launch))
    support.report(k(...):launch(launch))
    return r
  end, ...)
  -- Ignores the note that the second launch adds to the results of the first.
  for n = #said, 1, -1 do
    if said[n]:find "this launch adds" then table.remove(said, n) end
  end
  return r, said
end

-- Returns a kernel that fills a shared tensor of 128 values, by cp.async or by
-- plain stores, and then calls `after`.
local function fill(how, after)
  return function(x, y)
    local t = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128), 128)
    if how == "async" then
      local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32)
      cute.copy(atom, cute.local_tile(x, {4}, {t}),
        cute.local_tile(s, {4}, {t}))
      arch.cp_async_commit_group()
      arch.cp_async_wait_group(0)
    else
      s[t] = x[t]
    end
    y[t] = 1
    if after then after(s, t, y) end
  end
end

local function filled(how, after)
  return run(fill(how, after), cute.ones({128}, cute.f32),
    cute.zeros({32}, cute.f32))
end

describe("a note tells of a shared tensor that", function()
  it("is filled and never read, once a program", function()
    for _, how in ipairs {"async", "plain"} do
      local r, said = filled(how)
      local line = debug.getinfo(fill, "S").linedefined
        + (how == "async" and 6 or 11)
      local text = ("notes_spec.lua:%d: shared tensor 's' is written here but "
        .. "never read"):format(line)
      assert.same({"cutelua: note: kernel k: " .. text}, said)
      assert.is_true(r.ok)
      assert.equal("simulator: kernel k: nothing to report\nnote: "
        .. text, tostring(r))
      assert.same({text}, require "cutelua.text.json".decode(r:json())
        .notes)
    end
  end)

  it("is not read, or is only noted if there is no fault", function()
    local function quiet(...)
      local r, said = filled(...)
      assert.same({}, said)
      return r
    end
    for _, how in ipairs {"async", "plain"} do
      assert.is_true(quiet(how, function(s, t, y) y[t] = s[t] end).ok
        == (how == "plain"))
      assert.is_true(quiet(how, function(s, t, y)
        cute.when(t:eq(0), function()
          y[0] = arch.atomic_add(s.iterator, 1.0)
          for j = 1, 31 do y[j] = s[j] end
        end)
      end).reports ~= nil)
      assert.is_false(quiet(how, function(_, t, y) y[t + 1] = 1 end).ok)
    end
  end)
end)

describe("a note tells of a TMA store", function()
  -- Returns the messages of a kernel that stores two tiles of 16 rows to an
  -- output of 32 rows by TMA: tile number `one` and tile number n.
  local function store(one, n)
    local D = cute.zeros({32, 16}, cute.bf16)
    local smem = cute.make_layout({16, 16}, {16, 1})
    local atom, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, smem, {16, 16})
    return run(function(a, c, tile)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.bf16, smem, 128)
      for i = 0, 15 do s[{i, t % 16}] = 1.0 end
      arch.fence_proxy("async.shared")
      arch.sync_threads()
      local g = cute.local_tile(c, {16, 16}, {cute._, cute._})
      local from, to = cpasync.tma_partition(a, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
      cute.when(t:eq(0), function()
        for i = one and 0 or 1, 1 do
          cute.copy(a, from, to[{cute._, tile + i, 0}])
        end
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)
      end)
    end, atom, coords, n)
  end

  it("whose boxes all lie outside, not of one that ends there", function()
    local r, said = store(false, 1)
    assert.is_true(r.ok, tostring(r))
    assert.equal(1, #said)
    assert.matches("^cutelua: note: kernel k: notes_spec.lua:%d+: all boxes of "
      .. "this TMA store lie outside tensor '[^']*': nothing is "
      .. "stored$", said[1])
    r, said = store(true, 1)
    assert.is_true(r.ok, tostring(r))
    assert.same({}, said)
  end)
end)

describe("a note tells of a grid that is too small", function()
  -- Computes y[i] = f(x[i]) by `grid` blocks of 32; returns the messages.
  local function run_grid(grid, x, y, body, n)
    local k = cute.kernel("k", function(a, b, m)
      if m ~= nil then cute.assume(m, 0, 640, 1) end
      body(a, b, arch.block_idx(), arch.thread_idx(), m)
    end)
    local said, r = support.told(function()
      return support.report(k(x, y, n):launch {grid = grid, block = 32,
        device = "sim", faults = "return"})
    end)
    assert.is_true(r.ok, tostring(r))
    return said[1]
  end
  local function zeros(...) return cute.zeros({...}, cute.f32) end
  local function map(x, y, b, t) y[b * 32 + t] = x[b * 32 + t] end

  it("for a vector or for columns of a matrix", function()
    assert.matches("^cutelua: note: kernel k: notes_spec.lua:%d+: elements 320 "
      .. "to 639 of 'b' were never stored %(320 of 640 elements%); is the grid "
      .. "too small, or a coordinate wrong%? cute.partial_ok says that this is "
      .. "intended$",
      run_grid(10, zeros(640), zeros(640), map))
    assert.matches("columns 15 to 19 of 'b' were never stored %(160 of 640 "
      .. "elements%)", run_grid({1, 3}, zeros(32, 20), zeros(32, 20),
        function(x, y, _, t)
          local _, by = arch.block_idx()
          for j = 0, 4 do y[{t, by * 5 + j}] = x[{t, by * 5 + j}] end
        end))
  end)

  it("not where all is stored, or a part may be meant", function()
    local function quiet(...) assert.is_nil(run_grid(...)) end
    quiet(20, zeros(640), zeros(640), map)
    -- No notes: the index is limited by a constant below the number of threads,
    -- or by a length; an input is shorter than the output; there is no input.
    quiet(10, zeros(640), zeros(640), function(x, y, b, t)
      local i = b * 32 + t
      cute.when(i:lt(300), function() y[i] = x[i] end)
    end)
    quiet(10, zeros(640), zeros(640), map, 320)
    quiet(10, zeros(320), zeros(640), map)
    quiet(10, zeros(400), zeros(640), map)
    quiet(10, zeros(1), zeros(640), function(x, y, b, t)
      cute.partial_ok(x)
      y[b * 32 + t] = 1
    end)
    -- No notes: the output is also the input; a single block is intended; some
    -- blocks store nothing; the stored part is in the middle of the output.
    quiet(10, zeros(640), zeros(640), function(x, y, b, t)
      y[b * 32 + t] = y[b * 32 + t] + x[t]
    end)
    quiet(1, zeros(640), zeros(640), function(x, y, _, t) y[t] = x[t] end)
    quiet(10, zeros(640), zeros(640), function(x, y, b, t)
      cute.when(b:lt(4), function() map(x, y, b, t) end)
    end)
    quiet(10, zeros(640), zeros(640), function(x, y, b, t)
      map(x, y, b + 5, t)
    end)
  end)
end)

describe("a note tells of the first NaN or infinity", function()
  local math = cute.math
  -- Returns a tensor of type t with 32 numbers, whose element i is f(i).
  local function numbers(f, t)
    local x = cute.zeros({32}, t or cute.f32)
    for i = 0, 31 do x[i] = f(i) end
    return x
  end
  local function count(i) return i end
  local function out(t) return cute.zeros({32}, t or cute.f32) end

  -- Runs y[t] = f(x[t], t). Expects a note with this text or, for nil, no note.
  local function expect(text, f, x, y)
    local r, said = run(function(a, b)
      local t = arch.thread_idx()
      b[t] = f(a[t], t)
    end, x or numbers(count), y or out())
    assert.is_true(r.ok, tostring(r))
    local line = debug.getinfo(f, "S").linedefined
    assert.same(text and {("cutelua: note: kernel k: notes_spec.lua:%d: the "
      .. "first NaN or infinity from finite inputs: %s; if this is intended, "
      .. "call cute.nonfinite_ok(output)"):format(line, text)} or {}, said)
  end

  it("that each kind of operation makes from finite numbers", function()
    expect("5 / 0 is inf, in block (0,0,0), thread (5,0,0)",
      function(x) return x / (x - 5) end)
    expect("0 / 0 is NaN, in block (0,0,0), thread (0,0,0)",
      function(x) return x / x end)
    expect("log(-3) is NaN, in block (0,0,0), thread (0,0,0), 3 times in all",
      function(x) return math.log(x - 3) + 1 end, numbers(function(i)
        return i + 0.5 * (i // 3) * 2 - (i < 3 and i or 0)
      end))
    expect("1e+20 * 1e+20 is inf, in block (0,0,0), thread (31,0,0)",
      function(x) return x * x end,
      numbers(function(i) return i == 31 and 1e20 or i end))
    expect("the conversion of 66000 to f16 is inf, in block (0,0,0), thread "
      .. "(22,0,0), 10 times in all",
      function(x) return (x * 3000):to(cute.f16) end, nil, out(cute.f16))
    expect("40000 * 2 is inf, in block (0,0,0), thread (4,0,0), 28 times in "
      .. "all", function(x) return x * 2 end,
      numbers(function(i) return i * 10000 // 1 > 60000 and 40000 or i * 1e4
      end, cute.f16), out(cute.f16))
    expect("-1e+300 * 1e+10 is -inf, in block (0,0,0), thread (0,0,0), 32 "
      .. "times in all", function(x) return x * 1e10 end,
      numbers(function() return -1e300 end, cute.f64), out(cute.f64))
  end)

  it("that the sum of an MMA makes", function()
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
    local function product(value)
      return run(function(a, b, c)
        local slice = mma:get_slice(arch.thread_idx())
        local A, B = slice:partition_A(a), slice:partition_B(b)
        local C = slice:partition_C(c)
        local rA, rB = mma:make_fragment_A(A), mma:make_fragment_B(B)
        local rC = mma:make_fragment_C(C)
        cute.autovec_copy(A, rA)
        cute.autovec_copy(B, rB)
        rC:fill(value)
        cute.gemm(mma, rC, rA, rB, rC)
        cute.autovec_copy(rC, C)
      end, cute.full({16, 16}, 2.0^70, cute.bf16),
        cute.full({8, 16}, 2.0^60, cute.bf16), cute.zeros({16, 8}, cute.f32))
    end
    local r, said = product(1)
    assert.is_true(r.ok, tostring(r))
    assert.equal(1, #said)
    assert.matches("^cutelua: note: kernel k: notes_spec.lua:%d+: the first "
      .. "NaN or infinity from finite inputs: the sum of an MMA %(accumulator "
      .. "1, largest product 1.180592e%+21 %* 1.152922e%+18%) is inf, in block "
      .. "%(0,0,0%), thread %(0,0,0%), 128 times in all;", said[1])
    assert.same({}, select(2, product(1 / 0)))
  end)

  it("not of one that is meant or reaches no output", function()
    -- No notes: the kernel's constants or inputs already have an infinity.
    expect(nil, function(x) return x + 1 / 0 end)
    expect(nil, function(x) return cute.where(x:lt(3), -1 / 0, x) end)
    expect(nil, function(x) return 1 / x end,
      numbers(function(i) return i == 9 and 1 / 0 or i end))
    -- No note: an infinity on the way to a finite result is harmless.
    expect(nil, function(x) return 1 / (1 + math.exp(x * 100)) end)
    expect(nil, function(x) return cute.where(x:eq(0), 0, 1 / x) end)
    -- A condition on x guards 1 / x; a condition on the index does not.
    expect(nil, function(x) return cute.where(x:ne(0), 1 / x, -1 / 0) end)
    expect("1 / 0 is inf, in block (0,0,0), thread (0,0,0)",
      function(x, t) return cute.where(t:lt(30), 1 / x, 0) end)
    expect(nil, function(x) return (x * 1e38):to(cute.f16):to(cute.f32) * 0 end,
      numbers(function() return 0 end))
    -- No note: only branches that are not taken divide by 0.
    local r, said = run(function(a, b)
      local t = arch.thread_idx()
      cute.when(t:gt(0), function() b[t] = a[t] / t:to(cute.f32) end)
    end, numbers(count), out())
    assert.is_true(r.ok)
    assert.same({}, said)
  end)

  it("not where the kernel declares that its output may have some", function()
    local function log(declare)
      local r, said = run(function(a, b)
        local t = arch.thread_idx()
        if declare then cute.nonfinite_ok(b) end
        b[t] = math.log(a[t])
      end, numbers(count), out())
      assert.is_true(r.ok)
      return #said
    end
    assert.equal(1, log(false))
    assert.equal(0, log(true))
  end)
end)

describe("a note tells of sums of an MMA that are lost", function()
  local warpgroup = cute.nvgpu.warpgroup
  local mma = cute.make_tiled_mma(
    warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
  local atom = warpgroup.make_smem_layout_atom("K_SW128", "bf16")

  -- Runs a kernel that calls body(multiply, read, n), and returns the
  -- messages. multiply() issues MMAs and waits for them; read() stores an
  -- accumulator.
  local count = 0
  local function told(body, n)
    count = count + 1  -- Each kernel name gets a note only once.
    local k = cute.kernel("k" .. count, function(out, steps)
      local s = cute.make_smem_tensor(cute.bf16,
        cute.tile_to_shape(atom, {64, 64}), 1024)
      local tid = arch.thread_idx()
      cute.when(tid:eq(0), function() s:fill(0) end)
      local thr = mma:get_slice(tid)
      local a = mma:make_fragment_A(thr:partition_A(s))
      local b = mma:make_fragment_B(thr:partition_B(s))
      local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
      arch.fence_view_async_shared()
      arch.sync_threads()
      local function product(add)
        if add ~= nil then mma:set(warpgroup.Field.ACCUMULATE, add) end
        warpgroup.fence()
        cute.gemm(mma, acc, a, b, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
      end
      local function read() out[tid] = acc[0] end
      cute.assume(steps, 1, 9, 1)
      body(product, read, steps)
      read()
    end)
    local said, r = support.told(function()
      return support.report(k(cute.zeros({128}, cute.f32), n or 3):launch {
        grid = 1, block = 128, device = "sim:sm_90a", faults = "return"})
    end)
    assert.is_true(r.ok, tostring(r))
    return said
  end

  it("in a loop, or one after the other", function()
    for _, body in ipairs {
      function(product, _, n)
        for _ in cute.range(n) do product(false) end
      end,
      function(product)
        for _ = 1, 2 do product(false) end
      end,
      function(product, _, n)
        for i in cute.range(n) do product(i:gt(1)) end
      end,
      function(product, _, n)
        for i in cute.range(n) do
          for _ = 1, 2 do product(i:gt(0)) end
        end
      end,
      function(product, read, n)
        for _ in cute.range(n) do
          for _ in cute.range(n) do product(false) end
          read()
        end
      end} do
      local said = told(body)
      assert.equal(1, #said)
      assert.matches("^cutelua: note: kernel k%d: notes_spec.lua:%d+: this MMA "
        .. "overwrites sums of an MMA that nothing has read, because "
        .. "ACCUMULATE is false; set ACCUMULATE to true after the first MMA of "
        .. "each sum$", said[1])
    end
  end)

  it("not where they are added, read, or made once", function()
    for _, body in ipairs {
      function(product) product(false) end,
      function(product, _, n)
        product(false)
        for _ in cute.range(n) do product(true) end
      end,
      function(product, _, n)
        for i in cute.range(n) do product(i:gt(0)) end
      end,
      function(product, _, n)
        mma:set(warpgroup.Field.ACCUMULATE, false)
        for _ in cute.range(n) do
          product()
          mma:set(warpgroup.Field.ACCUMULATE, true)
        end
      end,
      function(product, read, n)
        for _ in cute.range(n) do
          product(false)
          product(true)
          read()
        end
      end,
      function(product, read)
        product(false)
        read()
        product(false)
      end,
      function(product)
        for _ in cute.range(1) do product(false) end
      end,
      function(product, _, n)
        for i in cute.range(n) do
          cute.when(i:eq(0), function() product(false) end)
          product(true)
        end
      end} do
      assert.same({}, told(body))
    end
  end)
end)

it("a note tells of arguments in another order than the parameters", function()
  -- Returns the messages of a kernel with the parameters x, w, b and y, whose
  -- arguments are in this order. With `list`, the kernel takes them as `...`.
  local function said(order, list)
    local function body(x, w, b, y)
      local t = arch.thread_idx()
      y[t] = x[t] * w[t] + b[t]
    end
    local k = cute.kernel(list and "v" or "k", list and function(...)
      local x, w, b, y = ...
      body(x, w, b, y)
    end or function(x, w, b, y) body(x, w, b, y) end)
    local x, w, b = cute.ones({32}, "f32"), cute.ones({32}, "f32"),
      cute.zeros({32}, "f32")
    local y = cute.zeros({32}, "f32")
    local c, none = b, cute.zeros({32}, "f32")
    local function launch(call)
      call:launch {grid = 1, block = 32, device = "sim"}
    end
    return (support.told(function()
      if order == "crossed" then launch(k(x, b, w, y))
      elseif order == "straight" then launch(k(x, w, b, y))
      elseif order == "others" then launch(k(x, c, none, y))
      else
        launch(k(x, w, b, y))
        launch(k(x, b, w, y))
      end
    end))
  end
  local list = said "crossed"
  assert.equal(1, #list)
  assert.matches("kernel k: .*notes_spec.lua:%d+: parameter 'w' gets the "
    .. "script's 'b', and parameter 'b' gets 'w'; is the order of the "
    .. "arguments right%?", list[1])
  for _, order in ipairs {"straight", "others", "later"} do
    assert.same({}, (said(order)))
  end
  assert.equal(1, #said("crossed", true))
  assert.same({}, (said("straight", true)))
end)

describe("a note tells of a number that its type cannot hold", function()
  -- Returns the messages of a kernel whose loop finds the last element that is
  -- 1. The kernel stores the index of that element, `at`, as `dtype`.
  local function last(n, dtype, at)
    local y = cute.zeros({32}, dtype)
    local x = cute.zeros({n}, "f32")
    x[at] = 1
    local _, said = run(function(X, Y)
      local found = cute.var(0, cute.i32)
      for i in cute.range(n) do
        found.value = cute.where(X[i]:eq(1), i, found.value)
      end
      Y[arch.thread_idx()] = found.value:to(Y.element_type)
    end, x, y)
    return said, y(3)
  end

  it("such as an index in a float of 16 bits", function()
    local said, got = last(300, cute.bf16, 259)
    assert.equal(260, got)
    assert.equal(1, #said)
    assert.matches("spec.lua:%d+: the conversion of 259 to bf16 is 260, in "
      .. "block %(0,0,0%), thread %(0,0,0%), 32 times in all; is a tensor of "
      .. "indices", said[1])
    assert.same({}, (last(300, cute.bf16, 258)))
    assert.same({}, (last(300, cute.f16, 259)))
    assert.same({}, (last(300, cute.i32, 259)))
  end)

  it("such as an index in registers, not loaded data in registers", function()
    local function stored(datum)
      local _, said = run(function(X, Y)
        local t = arch.thread_idx()
        local r = cute.make_rmem_tensor({2}, cute.i32)
        for k = 0, 1 do r[k] = datum and X[t] or t + 256 + k end
        for k = 0, 1 do Y[t + 32 * k] = r[k]:to(cute.bf16) end
      end, cute.full({32}, 259, cute.i32), cute.zeros({64}, cute.bf16))
      return said
    end
    local said = table.concat(stored(false), "\n")
    assert.matches("the conversion of 257 to bf16 is 256, in", said)
    assert.not_matches("the conversion", table.concat(stored(true), "\n"))
  end)

  it("such as a sum of a loop in 16 bits", function()
    -- Returns the messages of a kernel that sums n values in `dtype`: first
    -- `of`, then n - 1 times `next`.
    local function sum(dtype, n, next, of)
      local x, y = cute.full({n}, next, dtype), cute.zeros({32}, dtype)
      x[0] = of
      local _, said = run(function(X, Y)
        local all = cute.var(0.0, dtype)
        for i in cute.range(n) do all.value = all.value + X[i] end
        Y[arch.thread_idx()] = all.value
      end, x, y)
      return said, y(3)
    end
    local said, got = sum(cute.bf16, 300, 1, 1)
    assert.equal(256, got)
    assert.equal(1, #said)
    assert.matches("256 %+ 1 is 256, in block %(0,0,0%), thread %(0,0,0%), "
      .. "1408 times in all; the sum is too large", said[1])
    assert.same({}, (sum(cute.bf16, 256, 1, 1)))
    assert.same({}, (sum(cute.f16, 300, 1, 1)))
    assert.same({}, (sum(cute.bf16, 300, 0, 256)))
    -- a sum that becomes an infinity has another note
    said = sum(cute.f16, 20, 10000, 1)
    assert.equal(1, #said)
    assert.matches("the first NaN or infinity from finite inputs", said[1])
  end)

  it("such as a product of i8, not data that are rounded", function()
    local function product(dtype, number)
      local y = cute.zeros({32}, dtype)
      local _, said = run(function(X, Y)
        local t = arch.thread_idx()
        Y[t] = X[t] * X[t]
      end, cute.full({32}, number, dtype), y)
      return said, y(3)
    end
    local said, got = product(cute.i8, 100)
    assert.equal(10000 % 256, got)
    assert.equal(1, #said)
    assert.matches("100 %* 100 is 16, in block", said[1])
    assert.same({}, (product(cute.i8, 11)))
    assert.same({}, (product(cute.u8, 100)))
    local _, none = run(function(X, Y)
      Y[arch.thread_idx()] = X[arch.thread_idx()]:to(cute.bf16)
    end, cute.full({32}, 259, cute.i32), cute.zeros({32}, cute.bf16))
    assert.same({}, none)
  end)
end)

-- Returns the notes on sums of a launch with 2 blocks of 64
-- threads.
local function notes_on_sums(f)
  local k, x = cute.kernel("k", f), cute.ones({2, 64}, "f32")
  local list = support.told(function()
    k(x, cute.zeros({2, 64}, "f32")):launch {grid = 2, block = 64,
                                            device = "sim:sm_90a"}
  end)
  local sums = {}
  for _, text in ipairs(list) do
    -- Drops the notes on unread parts of x and unstored parts of y.
    if not text:find "never read" and not text:find "never stored" then
      sums[#sums + 1] = text:match "kernel k: notes_spec.lua:%d+: (.*)$"
    end
  end
  return sums
end
local function place_of_thread() return arch.thread_idx(), arch.block_idx() end

describe("a note tells of a sum that counts the same value", function()
  local said, place = notes_on_sums, place_of_thread

  -- Returns the notes of a kernel in which each block sums a row. `who` says
  -- which threads add the sum to y: all, lane 0 of each warp, or one.
  local function total(who, mine)
    return said(function(x, y)
      local t, b = place()
      local s = cute.make_smem_tensor(cute.f32, 2)
      local sum = arch.warp_reduction_sum(x[{mine and b or 0, t}])
      cute.when((t % 32):eq(0), function() s[t // 32] = sum end)
      arch.sync_threads()
      local all = s[0] + s[1]
      local function add() arch.atomic_add(y.iterator + b, all) end
      if who == "one" then cute.when(t:eq(0), add)
      elseif who == "warp" then
        cute.when((t % 32):eq(0), function()
          arch.atomic_add(y.iterator, sum)
        end)
      else add() end
    end)
  end

  it("of each thread, warp or block", function()
    local list = total("all", true)
    assert.equal(1, #list)
    assert.matches("^all threads of the block add the same value", list[1])
    assert.same({}, total("one", true))
    assert.same({}, total("warp", true))
    local function lanes(width)
      return said(function(x, y)
        local t, b = place()
        local v = x[{b, t % 4}]
        y[{b, t}] = arch.warp_reduction_sum(v, width)
      end)
    end
    assert.same({}, lanes(4))
    list = lanes(32)
    assert.equal(1, #list)
    assert.matches("this sum counts each value 8 times", list[1])
  end)

  it("of each block, which stores or adds it", function()
    local list = total("warp", false)
    assert.equal(1, #list)
    assert.matches("every block adds the same value here", list[1])
    -- no note: each block stores the sum to its own element, which may be
    -- intended
    list = said(function(x, y)
      local t, b = place()
      local sum = arch.warp_reduction_sum(x[{0, t}])
      cute.when((t % 32):eq(0), function() y[{b, t // 32}] = sum end)
    end)
    assert.equal(1, #list)
    assert.matches("every block stores the same value here", list[1])
    assert.same({}, said(function(x, y)
      local t, b = place()
      local sum = arch.warp_reduction_sum(x[{0, t}])
      y[{b, t}] = x[{b, t}] / sum
    end))
  end)

  it("of a warp, and of warps whose sums nothing uses", function()
    local function first(of)
      return said(function(x, y)
        local t, b = place()
        local sum = arch.warp_reduction_sum(x[{b, t}])
        cute.when(of(t), function() y[{b, t // 32}] = sum end)
      end)
    end
    local list = first(function(t) return t:eq(0) end)
    assert.equal(1, #list)
    assert.matches("warp 1 computes a sum here that nothing uses", list[1])
    assert.same({}, first(function(t) return (t % 32):eq(0) end))
    -- no note: all warps compute the same sum of partial sums, and one of them
    -- stores it
    assert.same({}, said(function(x, y)
      local t, b = place()
      local s = cute.make_smem_tensor(cute.f32, 32)
      s[t % 32] = x[{b, 0}]
      arch.sync_threads()
      local sum = arch.warp_reduction_sum(s[t % 32])
      cute.when(t:eq(0), function() y[{b, 0}] = sum end)
    end))
  end)

  it("of each lane after a reduction, not of constants and counts", function()
    local list = said(function(x, y)
      local t, b = place()
      local sum = arch.warp_reduction_sum(x[{b, t}])
      y[{b, t}] = arch.warp_reduction_sum(sum)
    end)
    assert.equal(1, #list)
    assert.matches("this sum counts each value 32 times", list[1])
    assert.same({}, said(function(x, y)
      local t, b = place()
      local count = cute.where(x[{b, t}]:gt(0), 1.0, 0.0)
      local sum = arch.warp_reduction_sum(count)
      cute.when((t % 32):eq(0), function()
        arch.atomic_add(y.iterator + b, sum)
      end)
      arch.atomic_add(y.iterator, 1.0)
    end))
  end)
end)

it("a note tells of equal sums of warps, which shared elements hold",
   function()
  local function rows(at)
    return notes_on_sums(function(x, y)
      local t, b = place_of_thread()
      local s = cute.make_smem_tensor(cute.f32, 2)
      local sum = arch.warp_reduction_sum(x[{b, at(t)}])
      cute.when((t % 32):eq(0), function() s[t // 32] = sum end)
      arch.sync_threads()
      y[{b, t}] = s[0] + s[1]
    end)
  end
  local list = rows(function(t) return t % 32 end)
  assert.equal(1, #list)
  assert.matches("this line adds elements of shared tensor 's' to which all "
    .. "threads store the same sum, so it counts that sum more than once",
    list[1])
  assert.same({}, rows(function(t) return t end))
end)

it("a note tells of values of their own that many store to one element",
   function()
  local count = 0
  -- Returns the notes of a launch of 4 blocks of 64 threads, which store sums
  -- of x (4,64).
  local function said(f)
    count = count + 1
    local k = cute.kernel("k" .. count, function(x, y)
      f(x, y, arch.thread_idx(), arch.block_idx())
    end)
    local found = {}
    for _, text in ipairs(support.told(function()
      k(cute.ones({4, 64}, "f32"), cute.zeros({8}, "f32")):launch {
        grid = 4, block = 64, device = "sim:sm_90a"}
    end)) do
      found[#found + 1] = text:match "all (%a+) store values of their own"
    end
    return found
  end
  local function sum(x, b, t) return arch.warp_reduction_sum(x[{b, t}]) end
  local function one(f)
    return function(x, y, t, b)
      local s = sum(x, b, t)
      cute.when(t:eq(0), function() f(y, b, s) end)
    end
  end
  assert.same({"blocks"}, said(one(function(y, _, s) y[0] = s end)))
  assert.same({}, said(one(function(y, b, s) y[b] = s end)))
  assert.same({}, said(one(function(y, b, s)
    cute.when(b:eq(3), function() y[0] = s end)
  end)))
  assert.same({"warps"}, said(function(x, y, t, b) y[b] = sum(x, b, t) end))
  assert.same({}, said(function(x, y, t, b) y[b] = sum(x, b, t % 32) end))
  assert.same({"lanes"}, said(function(x, y, t, b) y[b] = x[{b, t}] end))
  local function copied(to)
    return said(function(x, y, t, b)
      local r = cute.make_rmem_tensor({2}, cute.f32)
      for k = 0, 1 do r[k] = x[{b, (t + k) % 64}] end
      cute.autovec_copy(r, cute.local_tile(y, {2}, {to(t, b)}))
    end)
  end
  assert.same({"lanes"}, copied(function(_, b) return b end))
  assert.same({}, said(function(_, y) y[0] = 1 end))
end)

it("a note tells of values that redux.sync adds several times", function()
  -- Returns the notes on a sum over a warp by redux.sync. The lanes have only
  -- `values` different elements.
  local function said(values)
    local k = cute.kernel("k", function(x, y)
      local t = arch.thread_idx()
      y[t] = arch.warp_redux_sync(x[t % values], "add")
    end)
    return (support.told(function()
      k(cute.ones({values}, "i32"), cute.zeros({32}, "i32")):launch {
        grid = 1, block = 32, device = "sim:sm_90a"}
    end))
  end
  local list = said(4)
  assert.equal(1, #list)
  assert.matches("this sum counts each value 8 times", list[1])
  assert.same({}, said(32))
end)

it("a note tells of the two arguments of a call in another order", function()
  -- Returns the notes of y = x + 1; "crossed" exchanges the arguments.
  local function said(how, old)
    local k = cute.kernel("k", function(x, y)
      y[arch.thread_idx()] = x[arch.thread_idx()] + 1
    end)
    local x, y = cute.ones({32}, "f32"), cute.zeros({32}, "f32")
    if old then y[3] = 1 end
    local opts = {grid = 1, block = 32, device = "sim"}
    return (support.told(function()
      if how == "crossed" then k(y, x):launch(opts)
      else k(x, y):launch(opts) end
    end))
  end
  local list = said "crossed"
  assert.equal(1, #list)
  assert.matches("kernel k: .*notes_spec.lua:%d+: parameter 'x' gets the "
    .. "script's 'y', and parameter 'y' gets 'x'; is the order", list[1])
  assert.same({}, said "straight")
  -- No note: y has an earlier result, which an inverse kernel may read.
  assert.same({}, said("crossed", true))
end)

it("a note tells of launches that add the same sums to an output", function()
  -- Returns the notes of two launches that add x to y; between(x, y) runs in
  -- between.
  local count = 0
  local function said(between, body)
    count = count + 1
    local k = cute.kernel("k" .. count, body or function(x, y)
      arch.atomic_add(y.iterator, x[arch.thread_idx()])
    end)
    local x, y = cute.ones({32}, "f32"), cute.zeros({1}, "f32")
    local function launch()
      k(x, y):launch {grid = 1, block = 32, device = "sim"}
    end
    return (support.told(function()
      launch()
      between(x, y)
      launch()
    end))
  end
  local function nothing() end
  local list = said(nothing)
  assert.equal(1, #list)
  assert.matches("kernel k1: notes_spec.lua:(%d+): this launch adds to 'y', "
    .. "which still has the sums of the launch at notes_spec.lua:%1;", list[1])
  assert.same({}, said(function(_, y) y:fill(0) end))
  assert.same({}, said(function(x) x:fill(2) end))
  -- no note: the launches count with an atomic
  assert.same({}, said(nothing, function(x, y)
    cute.when(x[arch.thread_idx()]:gt(0), function()
      arch.atomic_add(y.iterator, 1.0)
    end)
  end))
end)

it("a note tells of a failed launch whose results a line ignores", function()
  local k = cute.kernel("k", function(x) x[arch.thread_idx() + 1] = 1 end)
  local x = cute.zeros({32}, "f32")
  local opts = {grid = 1, block = 32, device = "sim", faults = "return"}
  local said, ok, why = support.told(function()
    local fine, message = k(x):launch(opts)
    return fine, message
  end)
  assert.same({}, said)
  assert.is_nil(ok)
  assert.matches("out%-of%-bounds", why)
  said = support.told(function() k(x):launch(opts) end)
  assert.equal(1, #said)
  assert.matches("notes_spec.lua:%d+: faults = \"return\" raises no error, and "
    .. "this line ignores the results of the launch: notes_spec.lua:%d+: write "
    .. "outside global tensor 'x'", said[1])
end)

it("a note tells of operands of a lesson in another order, or unstored",
   function()
  local harness = require "cutelua.bench.harness"
  -- Returns the notes of a lesson whose kernel computes 2 * from + more.
  local function said(names, launches)
    local k = cute.kernel("k", function(From, More, To)
      local t = arch.thread_idx()
      To[t] = 2 * From[t] + More[t]
    end)
    local spec = {dims = {}, dtypes = {"f32"}, operands = function()
      local list = {{"to", {32}, out = true}}
      for n, name in ipairs(names) do table.insert(list, n, {name, {32}}) end
      return list
    end, make = function()
      return table.move({{kernel = k, grid = 1, block = 32}}, 1, launches, 1,
                        {})
    end, reference = function(p)
      local to = {}
      for i = 1, 32 do to[i] = 2 * p.from[i - 1] + p.more[i - 1] end
      return {to = to}
    end}
    local list
    list = support.told(function()
      harness.try(harness.problem(spec, {}), "sim")
    end)
    return list
  end
  local list = said({"more", "from"}, 1)
  assert.equal(1, #list)
  assert.matches("kernel k: parameter 'From' gets operand 'more', and "
    .. "parameter 'More' gets 'from'", list[1])
  assert.same({}, said({"from", "more"}, 1))
  list = said({"from", "more"}, 0)
  assert.equal(1, #list)
  assert.matches("no launch stores to operand 'to', which is a result", list[1])
end)

it("a note tells of a NaN from infinities that the kernel writes", function()
  local function difference(y, masked)
    local r, said = run(function(x, out)
      local t = arch.lane_idx()
      local v = cute.where(t:lt(masked), -math.huge, x[t])
      local most = cute.where(t:lt(masked), -math.huge, x[t])
      out[t] = cute.exp(v - most)
    end, cute.ones({32}, cute.f32), y)
    assert.is_true(r.ok)
    return said
  end
  local y = cute.zeros({32}, cute.f32)
  assert.same({}, difference(y, 0))
  local said = difference(y, 3)
  assert.is_true(y(2) ~= y(2))
  assert.equal(1, #said)
  assert.matches("first NaN or infinity from finite inputs: %-inf %- %-inf is "
    .. "NaN, in block %(0,0,0%), thread %(0,0,0%), 3 times", said[1])
end)

-- Returns the notes of a launch of f with `threads` threads, without the
-- kernel's name.
local function notes(threads, f, ...)
  local k <const> = cute.kernel("k", f)
  local said, r = support.told(function(...)
    return support.report(k(...):launch {grid = 1, block = threads,
      device = "sim:sm_90a", faults = "return"})
  end, ...)
  assert.is_true(r.ok, tostring(r))
  for j, text in ipairs(said) do
    said[j] = text:gsub("^cutelua: note: ", ""):gsub("^kernel k: ", "")
      :gsub("^.-notes_spec.lua:%d+: ", "")
  end
  return said
end

describe("a note tells of an argument that the kernel does not use", function()
  local function ones() return cute.ones({32}, cute.f32) end
  local function unused(f, ...)
    return notes(32, f, ones(), ones(), 3.0, ...)
  end

  it("whether a tensor or a number, unless a part of it is meant", function()
    local function text(names, n)
      return {("kernel k does not use argument%s %s; is a line missing, or "
        .. "does one name another argument by mistake? Leave out what is not "
        .. "needed, or call cute.partial_ok(tensor)"):format(n and "s" or "",
        names)}
    end
    assert.same({}, unused(function(x, y, f)
      local t = arch.thread_idx()
      y[t] = x[t] * f
    end))
    assert.same(text "'_'", unused(function(x, y, _)
      local t = arch.thread_idx()
      y[t] = x[t] * 2.0
    end))
    assert.same(text("'_y', '_f'", 2), unused(function(x, _y, _f)
      local t = arch.thread_idx()
      x[t] = x[t] * 2.0
    end))
    assert.same({}, unused(function(x, y, f)
      local t = arch.thread_idx()
      cute.partial_ok(y)
      x[t] = x[t] * f
    end))
  end)

  it("other than its extents", function()
    local function size(y)
      return notes(32, function(a, b)
        local t = arch.thread_idx()
        cute.when(t:lt(cute.size(b)), function() a[t] = 1.0 end)
      end, ones(), y)
    end
    assert.same({}, size(ones():mark_layout_dynamic()))
  end)
end)

it("a note tells of a kernel with loops and barriers that stores nothing",
   function()
  local function loop(store)
    return notes(32, function(x, y)
      local t, sum = arch.thread_idx(), 0.0
      local s = cute.make_smem_tensor(cute.f32, 32)
      s[t] = x[t]
      arch.sync_threads()
      for i in cute.range(32) do sum = sum + s[i] end
      cute.partial_ok(y)
      if store then y[t] = sum end
    end, cute.ones({32}, cute.f32), cute.zeros({32}, cute.f32))
  end
  assert.same({}, loop(true))
  assert.same({"kernel k stores nothing to its arguments, so that a launch has "
    .. "no effect: write t[i] = x or t:store(x)"}, loop(false))
end)

-- Returns the text of the note that n of `all` elements of s are never read.
local function unread(n, all, first)
  return ("%d of %d elements of shared tensor 's', %s, are written here but "
    .. "never read; the first is element %d; do the loops that read it cover "
    .. "the whole tile? cute.partial_ok says that this is intended"):format(n,
    all, all == 4096 and "(64,32,2):(40,1,2560)" or all .. ":1", first)
end

describe("a note tells of elements of a shared tensor that", function()
  local function zeros(n) return cute.zeros({n}, cute.f32) end
  local function ones(n) return cute.ones({n}, cute.f32) end

  -- Returns the notes of a kernel in which four warps store sums to s; read(s,
  -- t) adds up sums in s.
  local function warps(read)
    return notes(128, function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, 4)
      local sum = arch.warp_reduction_sum(x[t])
      cute.when(arch.lane_idx():eq(0), function() s[arch.warp_idx()] = sum end)
      arch.sync_threads()
      y[t] = read(s, t, sum)
    end, ones(128), zeros(128))
  end

  it("hold sums of warps that no thread adds", function()
    assert.same({}, warps(function(s) return s[0] + s[1] + s[2] + s[3] end))
    assert.same({unread(2, 4, 2)},
                warps(function(s) return s[0] + s[1] end))
    assert.same({}, warps(function(s)
      cute.partial_ok(s)
      return s[0] + s[1]
    end))
    assert.same({unread(1, 4, 3)}, warps(function(s)
      local sum = 0.0
      for w in cute.range(3) do sum = sum + s[w] end
      return sum
    end))
  end)

  it("not of values that threads keep, nor of scans or data", function()
    local function of(first, last)
      return function(s, t, own)
        local sum, w = cute.var(own, cute.f32), t // 32
        for k = 0, 3 do
          local read = k >= first and k <= last
            and (first == 0 and w:gt(k) or w:eq(0))
          if read then
            cute.when(read, function() sum.value = sum.value + s[k] end)
          end
        end
        return sum.value
      end
    end
    assert.same({}, warps(of(1, 3)))
    assert.same({}, warps(of(0, 2)))
    assert.same({}, warps(function(s, _, own)
      local sum = cute.var(s[0], cute.f32)
      cute.when(own:gt(1e9), function() sum.value = s[1] + s[2] + s[3] end)
      return sum.value
    end))
  end)

  -- Returns the notes of a kernel of two warps. One warp stores 32 numbers;
  -- lane l of the other warp reads number at(l).
  local function passed(at)
    return notes(64, function(x, y)
      local t, lane = arch.thread_idx(), arch.lane_idx()
      local s = cute.make_smem_tensor(cute.f32, 32)
      cute.when(t:lt(32), function() s[t] = x[t] end)
      arch.sync_threads()
      cute.when(t:ge(32), function() y[lane] = s[at(lane)] end)
    end, ones(32), zeros(32))
  end

  it("another warp does not read", function()
    assert.same({}, passed(function(lane) return 31 - lane end))
    assert.same({unread(16, 32, 16)}, passed(function(lane)
      return (31 - lane) % 16
    end))
  end)

  -- Returns the notes of a kernel that counts the elements of x in 64 shared
  -- bins, and adds the first n bins to y.
  local function bins(n)
    local numbers = cute.zeros({128}, cute.i32)
    for i = 0, 127 do numbers[i] = i end
    return notes(128, function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, 64)
      cute.when(t:lt(64), function() s[t] = 0 end)
      arch.sync_threads()
      arch.atomic_add(s.iterator + x[t] % 64, 1)
      arch.sync_threads()
      cute.when(t:lt(n), function() arch.atomic_add(y.iterator + t, s[t]) end)
    end, numbers, cute.zeros({64}, cute.i32))
  end

  it("count what no thread adds", function()
    assert.same({}, bins(64))
    assert.same({unread(32, 64, 32)}, bins(32))
  end)
end)

describe("a note tells of a tile in shared memory that", function()
  -- Multiplies tiles of 64 x 32, in two alternating stages, by `steps` MMAs
  -- along K.
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1},
                                  {32, 32, 16})
  local layout = cute.make_layout({64, 32, 2}, {40, 1, 2560})
  local function product(steps, fragment)
    local list = notes(128, function(x, y)
      local t, _ = arch.thread_idx(), cute._
      local s = cute.make_smem_tensor(cute.bf16, layout, 128)
      local thr = mma:get_slice(t)
      local c = thr:partition_C(y)
      local a = thr:make_fragment_A(thr:partition_A(s(_, _, 0)))
      local b = thr:make_fragment_B(thr:partition_B(s(_, _, 0)))
      local acc = thr:make_fragment_C(c)
      local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
      local ca, cb = cute.make_tiled_copy_A(ldsm, mma),
        cute.make_tiled_copy_B(ldsm, mma)
      local sa, sb = ca:get_slice(t), cb:get_slice(t)
      local fa, fb = sa:retile(a), sb:retile(b)
      local ta, tb = sa:partition_S(s), sb:partition_S(s)
      acc:fill(0)
      for k in cute.range(2) do
        local stage = k % 2
        for j = 0, 15 do
          local at = {j * 4 + t // 32, t % 32}
          s[{at[1], at[2], stage}] = x[{at[1], at[2], k}]
        end
        arch.sync_threads()
        for kb = 0, steps - 1 do
          cute.copy(ca, ta(_, _, kb, stage), fa(_, _, kb))
          cute.copy(cb, tb(_, _, kb, stage), fb(_, _, kb))
          cute.gemm(mma, acc, a(_, _, kb), b(_, _, fragment or kb), acc)
        end
        arch.sync_threads()
      end
      cute.autovec_copy(acc, c)
    end, cute.ones({64, 32, 2}, cute.bf16), cute.zeros({64, 64}, cute.f32))
    return list
  end

  it("an MMA multiplies in part", function()
    assert.same({}, product(2))
    assert.same({unread(2048, 4096, 16)}, product(1))
    assert.same({"16 of 32 elements of fragment 'b' are loaded here, but no "
      .. "MMA reads them; the first is element 4; does the MMA take the "
      .. "fragment of each step?"}, product(2, 0))
  end)

  it("nothing reads if descriptors are those of another tensor", function()
    local warpgroup = cute.nvgpu.warpgroup
    local wgmma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("bf16", "f32",
      {64, 64, 16}, "SMEM", "K", "K"))
    local atom = warpgroup.make_smem_layout_atom("K_SW128", cute.bf16)
    local function multiply(swapped)
      return notes(128, function(x, y)
        local t = arch.thread_idx()
        local thr = wgmma:get_slice(t)
        local tile = cute.tile_to_shape(atom, {64, 64})
        local sA = cute.make_smem_tensor(cute.bf16, tile, 1024)
        local sB = cute.make_smem_tensor(cute.bf16, tile, 1024)
        local a = wgmma:make_fragment_A(thr:partition_A(sA))
        local b = wgmma:make_fragment_B(thr:partition_B(sB))
        local c = thr:partition_C(y)
        local acc = wgmma:make_fragment_C(c)
        for i = 0, 31 do
          local at = {(i * 128 + t) // 64, t % 64}
          sA[at], sB[at] = x[at], x[at]
        end
        arch.fence_view_async_shared()
        arch.sync_threads()
        warpgroup.fence()
        wgmma:set(warpgroup.Field.ACCUMULATE, false)
        cute.gemm(wgmma, acc, a, swapped and a or b, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, c)
      end, cute.ones({64, 64}, cute.bf16), cute.zeros({64, 64}, cute.f32))
    end
    assert.same({}, multiply(false))
    assert.same({"shared tensor 'sB' is written here, but no thread or MMA "
      .. "read it; is another tensor read in its place? cute.partial_ok says "
      .. "that this is intended"}, multiply(true))
  end)
end)

it("a note tells of tiles that are copied last and never read", function()
  -- Returns the notes of a kernel that sums the tiles of x in `count`
  -- iterations. Each iteration copies the next tile to one of two stages. The
  -- first iteration copies tile `first`.
  local function said(first, count, scale)
    local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32)
    local x, y = cute.full({8, 128}, scale or 1, "f32"), cute.zeros({32}, "f32")
    local r, list = run(function(X, Y)
      local t, s = arch.thread_idx(),
        cute.make_smem_tensor(cute.f32, cute.make_layout({2, 128}, {128, 1}))
      local function fetch(k, stage)
        cute.copy(atom, cute.local_tile(X(k, cute._), {4}, {t}),
                  cute.local_tile(s(stage, cute._), {4}, {t}))
      end
      fetch(0, 0)
      arch.cp_async_commit_group()
      local next, sum = cute.var(first, cute.i32), cute.var(0.0, cute.f32)
      for k in cute.range(count) do
        cute.when(next.value:lt(8), function()
          fetch(next.value, (k + 1) % 2)
        end)
        next.value = next.value + 1
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(1)
        arch.sync_threads()
        for j = 0, 3 do sum.value = sum.value + s[{k % 2, j * 32 + t}] end
        arch.sync_threads()
      end
      arch.cp_async_wait_group(0)
      Y[t] = sum.value
    end, x, y)
    assert.is_true(r.ok, tostring(r))
    return list
  end
  assert.same({}, said(1, 8))
  local text = "nothing reads 128 of 256 elements of shared tensor 's' after "
    .. "the last copy to them; the first is element "
  assert.matches(text .. "128", said(1, 7)[1], 1, true)  -- one iteration fewer
  assert.matches(text .. "0", said(0, 8)[1], 1, true)    -- tile 0 is read twice
  assert.same({}, said(1, 7, 0))                         -- loads only zeros
end)

it("a note tells of a part of a shared tensor that is filled, not read",
   function()
  -- Returns the notes of a kernel whose threads fill a tile of 4 x 8 and sum
  -- its first n columns.
  local function columns(n, also, meant)
    local y = cute.zeros({32}, cute.f32)
    local r, said = run(function(x, out)
      local t, sum = arch.thread_idx(), 0.0
      local s = cute.make_smem_tensor(cute.f32,
        cute.make_layout({4, 8}, {8, 1}))
      if meant then cute.partial_ok(s) end
      s[{t // 8, t % 8}] = x[t]
      arch.sync_threads()
      for k = 0, n - 1 do sum = sum + s[{t // 8, k}] end
      if also then sum = sum + s[{0, x[0]:to(cute.i32)}] end
      out[t] = sum
    end, cute.ones({32}, cute.f32), y)
    assert.is_true(r.ok)
    assert.equal(n + (also and 1.0 or 0), y(9))
    return said
  end
  local said = columns(7)
  assert.equal(1, #said)
  assert.matches("4 of 32 elements of shared tensor 's', %(4,8%):%(8,1%), are "
    .. "written here but never read; the first is element 7;", said[1])
  assert.same({}, columns(7, false, true))
  assert.same({}, columns(8))
  assert.same({}, columns(7, true))  -- no note: a loaded value says which
                                     -- element the kernel reads

  -- No note: with another scalar argument than 5, all elements might be
  -- read.
  local y = cute.zeros({32}, cute.f32)
  local _, all = run(function(x, out, n)
    local s, t = cute.make_smem_tensor(cute.f32, cute.make_layout(32)),
      arch.thread_idx()
    s[t] = x[t]
    arch.sync_threads()
    out[t] = s[t // 2 * 2]
    cute.when(n:gt(0), function() out[t] = s[t] end)
  end, cute.ones({32}, cute.f32), y, 5)
  assert.same({}, all)
end)

it("a note tells of a sum that each iteration of a loop resets", function()
  -- Returns the notes of a loop that sums x. `where` says where the sum is
  -- reset to 0. `also` is a function that uses the sum in each iteration.
  local function total(where, also)
    local y = cute.zeros({32}, cute.f32)
    local r, said = run(function(x, out)
      local sum, t = cute.var(0.0, cute.f32), arch.lane_idx()
      for i in cute.range(4) do
        if where == "loop" then sum.value = 0.0 end
        for j = 0, 1 do sum.value = sum.value + x[{t, 2 * i + j}] end
        if also then also(out, t, sum) end
      end
      if not also then out[t] = sum.value end
    end, cute.ones({32, 8}, cute.f32), y)
    assert.is_true(r.ok)
    return said, y(5)
  end
  local said, sum = total("loop")
  assert.equal(2.0, sum)
  assert.equal(1, #said)
  assert.matches("spec.lua:%d+: each iteration of the loop resets the sum, so "
    .. "the sums of all iterations but the last are lost", said[1])
  said, sum = total("before")
  assert.equal(8.0, sum)
  assert.same({}, said)
  assert.same({}, (total("loop", function(out, t, v)
    out[t] = out[t] + v.value
  end)))
end)

describe("a note tells of a sum in a loop", function()
  -- Returns the notes of a warp that sums 128 elements of x. combine(sum) gets
  -- each lane's sum, and `use` stores the result.
  local function sums(combine, use, index)
    local y = cute.zeros({32}, cute.f32)
    local r, said = run(function(x, out)
      local lane = arch.lane_idx()
      local sum = cute.var(0.0, cute.f32)
      for i in cute.range(0, 128, 32) do
        sum.value = sum.value + x[index and index(i, lane) or i + lane]
      end
      use(combine(sum.value), lane, out)
    end, cute.ones({128}, cute.f32), y)
    assert.is_true(r.ok)
    return said, y(0)
  end
  local function whole(v) return v end
  local function by_first(v, lane, out)
    cute.when(lane:eq(0), function() out[0] = v end)
  end

  it("that nothing combines with those of the other lanes", function()
    local said, y = sums(whole, by_first)
    assert.equal(4.0, y)
    assert.equal(1, #said)
    assert.matches("spec.lua:%d+: each lane adds elements of its own to this "
      .. "sum, but nothing uses the sums of lanes 1 to 31: is a reduction "
      .. "missing, such as warp_reduction_sum%?", said[1])
  end)

  it("but not of a right one", function()
    local said, y = sums(arch.warp_reduction_sum, by_first)
    assert.equal(128.0, y)
    assert.same({}, said)
    for _, use in ipairs {
      function(v, lane, out) out[lane] = v end,
      function(v, lane, out)
        cute.when(lane:lt(16), function() out[lane] = v end)
      end,
      function(v, lane, out)
        local s = cute.make_smem_tensor(cute.f32, 32)
        s[lane] = v
        arch.sync_threads()
        by_first(s[31 - lane], lane, out)
      end,
      function(v, _, out) arch.atomic_add(out.iterator, v) end,
      function(v, lane, out)
        by_first(arch.shuffle_sync(v, 31 - lane), lane, out)
      end,
    } do
      assert.same({}, (sums(whole, use)))
    end
    -- no note: all lanes add the same elements
    assert.same({}, (sums(whole, by_first, function(i) return i end)))
  end)
end)

describe("a note tells of a sum of shuffles", function()
  -- Returns the notes of a sum of 64 numbers by shuffles over the distances in
  -- the list. `use` combines a lane's sum with the shuffled one (default:
  -- adds). Lane 0 stores the sum or, with `each`, every lane.
  local function sums(shuffle, distances, use, each)
    local y = cute.zeros({32}, cute.f32)
    local r, said = run(function(x, out)
      local lane = arch.lane_idx()
      local v = x[lane] + x[lane + 32]
      for _, d in ipairs(distances) do
        local u = arch["shuffle_sync_" .. shuffle](v, d)
        v = use and use(v, u, d, lane) or v + u
      end
      each = each or shuffle == "up"
      cute.when(each or lane:eq(0), function() out[lane] = v end)
    end, cute.ones({64}, cute.f32), y)
    assert.is_true(r.ok)
    return said, y
  end

  it("that lacks the values of some lanes", function()
    local said, y = sums("down", {8, 4, 2, 1})
    assert.equal(32.0, y(0))
    assert.equal(1, #said)
    assert.matches("no sum contains the values of lanes 16 to 31;", said[1])
    said, y = sums("down", {16, 8, 4, 2})
    assert.equal(32.0, y(0))
    assert.matches("values of 16 lanes %(lane 1 is the first%); do", said[1])
    said, y = sums("down", {16, 8, 4, 2, 1})
    assert.equal(64.0, y(0))
    assert.same({}, said)
    assert.same({}, (sums("bfly", {1, 2, 4, 8, 16})))
  end)

  it("whose distances leave out a power of two", function()
    local said = sums("bfly", {1, 4, 8})
    assert.matches("the shuffles exchange lanes at the distances 1, 4, 8, but "
      .. "not 2; do the steps leave one out%?", said[1])
    assert.same({}, (sums("bfly", {4, 8, 16}, function(v, u)
      return cute.max(v, u)
    end, true)))
    -- no note: lanes at the missing distances 2 and 4 have other sums
    assert.same({}, (sums("bfly", {1, 8, 16}, nil, true)))
  end)

  it("or a maximum or choice that lacks some lanes", function()
    for _, use in ipairs {
        function(v, u) return cute.max(v, u) end,
        function(v, u) return cute.where(u:gt(v), u, v) end} do
      assert.same({}, (sums("bfly", {16, 8, 4, 2, 1}, use)))
      local said = sums("bfly", {8, 4, 2, 1}, use)
      assert.matches("no sum contains the values of lanes 16 to 31;", said[1])
    end
  end)

  it("whose steps leave out the first lane that may add", function()
    local function step(first)
      return function(v, u, d, lane)
        return cute.where(lane:ge(first(d)), v + u, v)
      end
    end
    local list = {1, 2, 4, 8, 16}
    local said, y = sums("up", list, step(function(d) return d end))
    assert.equal(64.0, y(31))
    assert.same({}, said)
    said, y = sums("up", list, step(function(d) return d + 1 end))
    assert.equal(62.0, y(31))
    assert.matches("the sum of the last lane lacks the values of lane 0; does "
      .. "each step of the scan", said[#said])
    -- no note: each lane sums its own value and those of the 7 lanes before it
    said, y = sums("up", {1, 2, 4}, step(function(d) return d end))
    assert.equal(16.0, y(31))
    assert.same({}, said)
  end)

  it("that counts the own value of a lane twice", function()
    local said, y = sums("up", {1, 2, 4, 8, 16})
    assert.equal(64.0, y(0))
    assert.equal(1, #said)
    assert.matches("counts values twice in lane 0: no lane is 1 before, "
      .. "so shfl.up returns the lane's own value", said[1])
    said, y = sums("up", {1, 2, 4, 8, 16}, function(v, u, d, lane)
      return cute.where(lane:ge(d), v + u, v)
    end)
    assert.equal(64.0, y(31))
    assert.equal(2.0, y(0))
    assert.same({}, said)
    said = sums("up", {1, 2, 4, 8, 16}, function(v, u, d, lane)
      cute.when(lane:ge(d), function() v = v + u end)
      return v
    end)
    assert.same({}, said)
  end)
end)
-- SPDX-License-Identifier: MIT
