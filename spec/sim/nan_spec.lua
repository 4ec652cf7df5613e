-- Tests that the simulator computes the bits that an H100 and an H200 gave
-- (driver 580.159.04): NaNs, subnormal sums of reductions, elements outside of
-- a tensor map, 64-bit fields.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local WORD = {f32 = "u32", f64 = "u64", f16 = "u16", bf16 = "u16", tf32 = "u32",
              u32 = "u32", i32 = "u32", u64 = "u64", i64 = "u64",
              e4m3 = "u8", e5m2 = "u8"}

-- Returns a tensor of type t with these words, and its memory as words.
local function words(t, list)
  local w = cute.zeros({#list}, cute[WORD[t]])
  for i, u in ipairs(list) do w[i - 1] = u end
  return WORD[t] == t and w or cute.recast_tensor(w, cute[t]), w
end

-- Asserts that f of operands {type, word} is `want`, a word of type `out`.
-- First all lanes of a warp compute it, then a single thread.
local function gives(want, out, f, ...)
  local n, ins = select("#", ...), {}
  for k = 1, n do
    local t, u = (select(k, ...))[1], (select(k, ...))[2]
    local list = {}
    for i = 1, 32 do list[i] = u end
    ins[k] = words(t, list)
  end
  for _, block in ipairs {1, 32} do
    local list = {}
    for i = 1, 32 do list[i] = 0 end
    local o, w = words(out, list)
    cute.kernel("k", function(to, ...)
      local i, v = arch.thread_idx(), {}
      for k = 1, n do v[k] = (select(k, ...))[i] end
      to[i] = f(table.unpack(v))
    end)(o, table.unpack(ins)):launch {grid = 1, block = block,
                                       device = "sim:sm_90a"}
    assert.equal(("%x"):format(want), ("%x"):format(w(block - 1)))
  end
end

local A, B = {"f64", 0x7ff8000000000111}, {"f64", 0xfff8000000000222}
local S, ONE = {"f64", 0x7ff0000000000333}, {"f64", 0x3ff0000000000000}
local S2 = {"f64", 0xfff0000000000444}
local INF, MINUS = {"f64", 0x7ff0000000000000}, {"f64", 0xfff0000000000000}

describe("NaNs of f64", function()
  it("are the second operand's, of a quotient the first one's", function()
    for _, f in ipairs {function(a, b) return a + b end,
                        function(a, b) return a - b end,
                        function(a, b) return a * b end} do
      gives(B[2], "f64", f, A, B)
      gives(A[2], "f64", f, B, A)
      gives(0x7ff8000000000333, "f64", f, S, ONE)
      gives(0x7ff8000000000333, "f64", f, ONE, S)
    end
    gives(A[2], "f64", function(a, b) return a / b end, A, B)
    gives(B[2], "f64", function(a, b) return a / b end, B, A)
    gives(B[2], "f64", function(a, b) return a / b end, ONE, B)
    gives(0xfff8000000000000, "f64", function(a, b) return a + b end, INF,
      MINUS)
  end)

  it("of an FMA are the second factor's, the summand's, the first's", function()
    local function fma(a, b, c) return cute.fma(a, b, c) end
    gives(B[2], "f64", fma, A, B, S)
    gives(0x7ff8000000000333, "f64", fma, A, ONE, S)
    gives(A[2], "f64", fma, A, ONE, ONE)
  end)

  it("lose against numbers; two of them give the second, quiet", function()
    gives(0x7ff8000000000333, "f64", cute.min, A, S)
    gives(0xfff8000000000444, "f64", cute.max, S, S2)
    gives(ONE[2], "f64", cute.max, S, ONE)
    gives(ONE[2], "f64", cute.min, ONE, S)
  end)

  it("keep sign and payload where one operand is rounded or turned", function()
    local m = cute.math
    local function minus(a) return -a end
    for _, f in ipairs {m.floor, m.ceil, m.trunc, m.round, m.roundeven,
                        cute.abs, minus} do
      gives(0x7ff8000000000333, "f64", f, S)
      gives(B[2], "f64", f, B)
    end
  end)

  it("keep them in f32 and f16, lose them in bf16", function()
    local function to(t) return function(a) return a:to(cute[t]) end end
    gives(0xffc00000, "f32", to "f32", B)
    gives(0x7fc00000, "f32", to "f32", {"f64", 0x7ff0000012345678})
    gives(0x7fc91a2b, "f32", to "f32", {"f64", 0x7ff9234567812345})
    gives(0xfe00, "f16", to "f16", B)
    gives(0x7e48, "f16", to "f16", {"f64", 0x7ff9234567812345})
    gives(0x7fff, "bf16", to "bf16", B)
  end)

  it("are converted from narrow types through f32", function()
    local function wide(a) return a:to(cute.f64) end
    for _, x in ipairs {{"f16", 0x7c0d}, {"e4m3", 0xff}, {"e5m2", 0x7e}} do
      gives(0x7fffffffe0000000, "f64", wide, x)
    end
    gives(0xfffc200000000000, "f64", wide, {"bf16", 0xffe1})
  end)
end)

describe("NaNs of f32", function()
  it("are 7fffffff when turned, those of 16 bits change their sign", function()
    local function minus(a) return -a end
    for _, u in ipairs {0x7f812345, 0xffe00001, 0x7fc00000} do
      gives(0x7fffffff, "f32", minus, {"f32", u})
      gives(0x7fffffff, "f32", cute.abs, {"f32", u})
    end
    gives(0xfe01, "f16", minus, {"f16", 0x7e01})
    gives(0x7f01, "f16", cute.abs, {"f16", 0xff01})
    gives(0xffc1, "bf16", minus, {"bf16", 0x7fc1})
  end)

  it("lose against numbers in min and max, where -0 is less than 0", function()
    local list = {0, 0x80000000, 0x7fffffff, 0xffc00001, 0x7f800001, 0x3f800000,
                  0xbf800000, 0x7f800000, 0xff800000, 1, 0x80000001}
    local function key(u)  -- maps words to ordered integers
      return u >> 31 == 1 and -(u & 0x7fffffff) - 1 or u
    end
    local n, left, right = 0, {}, {}
    for _, x in ipairs(list) do
      for _, y in ipairs(list) do
        n = n + 1
        left[n], right[n] = x, y
      end
    end
    local function is_nan(u) return u & 0x7fffffff > 0x7f800000 end
    local function want(least, x, y)
      if is_nan(x) and is_nan(y) then return 0x7fffffff end
      if is_nan(x) or is_nan(y) then return is_nan(x) and y or x end
      return (key(x) < key(y)) == least and x or y
    end
    local a, b = words("f32", left), words("f32", right)
    local zeros = {}
    for i = 1, n do zeros[i] = 0 end
    local lo, lo_words = words("f32", zeros)
    local hi, hi_words = words("f32", zeros)
    cute.kernel("k", function(least, most, x, y)
      local i = arch.thread_idx()
      least[i], most[i] = cute.min(x[i], y[i]), cute.max(x[i], y[i])
    end)(lo, hi, a, b):launch {grid = 1, block = n, device = "sim:sm_90a"}
    for i = 1, n do
      local x, y = left[i], right[i]
      assert.equal(want(true, x, y), lo_words[i - 1], ("%x %x"):format(x, y))
      assert.equal(want(false, x, y), hi_words[i - 1], ("%x %x"):format(x, y))
    end
  end)

  it("are numbers to cvt.rna.tf32", function()
    local cvt = arch.cvt_f32_tf32
    for u, want in pairs {[0x7f800001] = 0x7f800000, [0xffc12345] = 0xffc12000,
                          [0xffffffff] = 0xffffe000, [0x7f800000] = 0x7f800000,
                          [0x7f7fffff] = 0x7f800000, [0x1000] = 0x2000} do
      gives(want, "i32", cvt, {"f32", u})
    end
  end)
end)

describe("fields of 64 bits", function()
  it("take positions and lengths whole", function()
    local x = {"u64", 0x0070bcb02079e030}
    gives(x[2], "u64", function(a, n) return arch.bfe(a, n - 256, n) end, x,
      {"u32", 256})
    gives(0, "u64", function(a, n) return arch.bfe(a, n, n - 248) end, x,
      {"u32", 256})
    gives(0x30, "u32", function(a, n) return arch.bfe(a, n, n - 248) end,
      {"u32", 0x2079e030}, {"u32", 256})
  end)
end)

-- Applies the atomic `op`, with an operand, to each of the words in a memory
-- space. Returns the words of memory after that.
local function after(t, op, space, memory, operand)
  local a, w = words(t, memory)
  local b = words(t, operand)
  cute.kernel("k", function(x, v)
    local i, p = arch.thread_idx(), x.iterator
    local s
    if space == "shared" then
      s = cute.make_smem_tensor(cute[t], cute.make_layout {#memory})
      s[i] = x[i]
      arch.sync_threads()
      p = s.iterator
    end
    arch["atomic_" .. op](p + i, v[i])
    if s then x[i] = s[i] end
  end)(a, b):launch {grid = 1, block = #memory, device = "sim:sm_90a"}
  local got = {}
  for i = 0, #memory - 1 do got[i + 1] = ("%x"):format(w(i)) end
  return table.concat(got, " ")
end

describe("atomic sums", function()
  local memory = {1, 0x00800000, 0x80000001, 0x00800000, 0x00400000, 0x7fc12345}
  local operand = {1, 0x80000001, 0, 0x80800001, 0x00400000, 0x3f800000}

  it("of f32 flush subnormals in global memory alone", function()
    assert.equal("0 800000 0 80000000 0 7fffffff",
                 after("f32", "add", "global", memory, operand))
    assert.equal("2 7fffff 80000001 80000001 800000 7fffffff",
                 after("f32", "add", "shared", memory, operand))
    assert.equal("2 8001", after("f16", "add", "global", {1, 0x8001}, {1, 0}))
    assert.equal("1 80000001", after("f32", "min", "global", {1, 0x80000001},
                                     {2, 0}))
  end)

  it("of f64 keep signalling NaNs in global memory", function()
    local m = {S[2], A[2], ONE[2], A[2], 0x7ff0000000000000}
    local v = {ONE[2], B[2], S[2], S[2], MINUS[2]}
    assert.equal("7ff0000000000333 fff8000000000222 7ff0000000000333 "
      .. "7ff0000000000333 fff8000000000000",
      after("f64", "add", "global", m, v))
    assert.equal("7ff8000000000333 7ff8000000000111 7ff8000000000333 "
      .. "7ff8000000000111 fff8000000000000",
      after("f64", "add", "shared", m, v))
  end)
end)

-- Returns the result of a TMA reduction of 8 elements of type t by `op`.
local function reduced(t, op, from, to, internal)
  local cpasync = cute.nvgpu.cpasync
  local n = #from
  local function row(x)
    return cute.make_tensor(x.iterator, cute.make_layout({1, n}, {n, 1}))
  end
  local b, w = words(t, to)
  local layout = cute.make_layout({1, n}, {n, 1})
  local atom, mB = cpasync.make_tiled_tma_atom(
    cpasync.CopyReduceBulkTensorTileS2GOp(op), row(b), layout, {1, n}, 1,
    {internal_type = internal and cute[internal]})
  cute.kernel("reduce", function(store, coords, x)
    local s, i = cute.make_smem_tensor(cute[t], layout, 128), arch.thread_idx()
    s[{0, i}] = x[{0, i}]
    arch.fence_view_async_shared()
    arch.sync_threads()
    local part, there = cpasync.tma_partition(store, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2),
      cute.group_modes(cute.zipped_divide(coords, {1, n}), 1, 2))
    cute.when(i:eq(0), function()
      cute.copy(store, part, there(cute._, 0))
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0)
    end)
  end)(atom, mB, row((words(t, from))))
    :launch {grid = 1, block = n, device = "sim:sm_90a"}
  local got = {}
  for i = 0, n - 1 do got[i + 1] = ("%x"):format(w(i)) end
  return table.concat(got, " ")
end

describe("TMA reductions", function()
  it("that no card executes are rejected", function()
    local all = "add min max and or xor"
    local runs = {u32 = all, i32 = all, u64 = all, i64 = all,
                  f16 = "add min max", bf16 = "add min max", f32 = "add",
                  f64 = "add", tf32 = "add", u16 = "", u8 = ""}
    local cpasync = cute.nvgpu.cpasync
    for t, list in pairs(runs) do
      local x = cute.zeros({1, 16}, cute[t])
      local layout = cute.make_layout({1, 16}, {16, 1})
      for op in all:gmatch "%a+" do
        local function make()
          cpasync.make_tiled_tma_atom(cpasync.CopyReduceBulkTensorTileS2GOp(op),
                                      x, layout, {1, 16})
        end
        if (" " .. list .. " "):find(" " .. op .. " ", 1, true) then make()
        else
          support.raises(("a TMA reduction of %s by '%s' is an illegal "
            .. "instruction on sm_90"):format(t, op), make)
        end
      end
    end
  end)

  it("of i64 are those of u64, and min and max have a sign", function()
    local m, v = {5, 1 << 63}, {3, -1}
    assert.equal("8 7fffffffffffffff", reduced("i64", "add", v, m))
    assert.equal("1 8000000000000000", reduced("i64", "and", v, m))
    assert.equal("3 8000000000000000", reduced("i64", "min", v, m))
    assert.equal("5 ffffffffffffffff", reduced("i64", "max", v, m))
  end)

  it("keep subnormals, and are of the map's type", function()
    local m, v = {1, 0x00800000, 0, 0x7fc12345}, {1, 0x80000001, 0, 0x3f800000}
    assert.equal("2 7fffff 0 7fffffff", reduced("f32", "add", v, m))
    assert.equal("2 80800001 0 bf412345", reduced("f32", "add", v, m, "u32"))
  end)
end)

describe("what lies outside of a tensor map", function()
  it("is 7ff7 in every 16 bits", function()
    local cpasync = cute.nvgpu.cpasync
    local want = {f16 = 0x7ff7, bf16 = 0x7ff7, f32 = 0x7ff77ff7,
                  tf32 = 0x7ff77ff7, f64 = 0x7ff77ff77ff77ff7}
    for t, word in pairs(want) do
      local a, b = cute.zeros({1, 8}, cute[t]), cute.zeros({1, 16}, cute[t])
      local layout = cute.make_layout({1, 16}, {16, 1})
      local atom, mA = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), a, layout, {1, 16}, 1,
        {oob_fill = "nan"})
      cute.kernel("load", function(load, coords, to_b)
        local s, bar = cute.make_smem_tensor(cute[t], layout, 128),
                       arch.alloc_smem(cute.i64, 1)
        local i = arch.thread_idx()
        local to, from = cpasync.tma_partition(load, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2),
          cute.group_modes(cute.zipped_divide(coords, {1, 16}), 1, 2))
        cute.when(i:eq(0), function()
          arch.mbarrier_init(bar, 1)
          arch.mbarrier_init_fence()
          arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)
          cute.copy(load, from(cute._, 0), to, {tma_bar_ptr = bar})
        end)
        arch.sync_threads()
        arch.mbarrier_wait(bar, 0)
        to_b[{0, i}] = s[{0, i}]
      end)(atom, mA, b):launch {grid = 1, block = 16, device = "sim:sm_90a"}
      local w = cute.recast_tensor(b, cute[WORD[t]])
      assert.same({0, word}, {w(0, 7), w(0, 8)})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
