-- Tests chains of cute.ops calls, in which each call reads results of earlier
-- ones, with kernels of all families. Overlap on a GPU, in two streams or in
-- graphs, must not change results. All numbers are small and whole, so that a
-- GPU gives the same bits as the simulator, where nothing overlaps.
local core = require "cute.core"
local cute = require "cute"

local ops = cute.ops

-- Maps whole numbers to -2 to 2 by a remainder. A wrong sum nearly always
-- changes the result.
local function small(x) return x - cute.floor(x / 5) * 5.0 - 2.0 end
local function keep(acc) return small(acc) end

-- Returns a tensor of random integers from -2 to 2 on the device `place`. Its
-- rows are `apart` elements apart (contiguous when absent).
local function new(place, seed, dtype, rows, cols, apart)
  local t = cute.empty({rows, apart or cols}, dtype)
  local b = core.param_memory(t)
  b:fill_int(seed, -2, 3)
  t = t:to(place)
  return cute.make_tensor(t.iterator, cute.make_layout({rows, cols},
    {apart or cols, 1}))
end

-- Returns a program of 9 kernels on a device, which computes D (64,64) from X
-- (64,64).
local function program(place, seed)
  local p = {place = place}
  local function own(dtype, rows, cols, apart)
    seed = seed + 1
    return new(place, seed, dtype, rows, cols, apart)
  end
  p.X, p.D = own("bf16", 64, 64), own("bf16", 64, 64)
  local odd, wide = own("bf16", 64, 64, 65), own("bf16", 64, 2056)
  local next_one, third = own("bf16", 64, 64), own("bf16", 64, 64)
  local W, V, U = own("bf16", 64, 64), own("f32", 64, 64),
    own("bf16", 2056, 64)
  local T, S = own("bf16", 64, 2056), own("bf16", 64, 2050, 2051)
  local R = own("bf16", 64, 2050, 2051)
  local sums, few = own("f32", 1, 64), own("bf16", 64, 64)
  local top, two = cute.local_tile(p.D, {2, 64}, {3, 0}), own("bf16", 2, 64)
  local row = cute.make_tensor(sums.iterator, cute.make_layout {64})

  local function with_sums(acc, at)
    local y = small(acc)
    return y, at:row_reduce("sum", y)
  end
  local function with_row(acc, at)
    return small(acc + at:row(row) + at:tile(few))
  end
  function p.run(device)
    local o = {device = device}
    local function gemm(A, B, out, f)
      o.out, o.epilogue = out, f
      ops.gemm(A, B, o)
    end
    gemm(p.X, W, odd, keep)                         -- rows of `odd` are 65
                                                    -- elements apart
    gemm(odd, W, next_one, keep)                    -- mma.sync
    gemm(next_one, V, third, keep)                  -- FMA units
    gemm(third, U, wide, keep)                      -- (64,2056)
    -- a long K, and an epilogue with a reduction
    gemm(wide, T, {next_one, row}, with_sums)
    gemm(S, R, few, keep)                           -- split-K with counters
    ops.transpose(few, nil, {out = third, device = device})
    ops.elementwise(function(a, b) return small(a + b) end, next_one, third,
                    {out = few, device = device})
    ops.reduce(few, "sum", {by = "row", out = row, device = device})
    gemm(next_one, W, p.D, with_row)
    gemm(top, W, two, keep)                         -- few rows
    ops.copy(two, top, {device = device})
  end
  return p
end

local function elements(t)
  local list = {}
  for i, x in t:to "host":elements() do list[i + 1] = ("%d"):format(x) end
  return table.concat(list, " ")
end

-- Returns the simulator's results for the programs of these seeds.
local function expected(seeds)
  local out = {}
  for i, seed in ipairs(seeds) do
    local p = program("host", seed)
    p.run "sim:sm_90a"
    out[i] = elements(p.D)
  end
  return out
end

describe("the counters of blocks", function()
  it("are 0 also if a graph that never ran came first #long", function()
    local X, D = cute.full({64, 8200}, 1, cute.bf16),
      cute.zeros({64, 64}, cute.f32)
    local W = cute.full({64, 8200}, 1, cute.bf16)
    local o = {device = "sim:sm_80", out = D}
    assert.truthy(ops.explain(X, W, o).split)
    local g = cute.graph(function() ops.gemm(X, W, o) end,
      {device = o.device})
    ops.gemm(X, W, o)
    assert.equal(8200, D(63, 63))
    g:launch()
    assert.equal(8200, D(63, 63))
  end)
end)

describe("operations on rows", function()
  it("have dependent launches", function()
    local calls = require "cute.ops.calls"
    local launch, texts = calls.launch, nil
    function calls.launch(step, list, ...)
      texts[#texts + 1] = step.kernel(table.unpack(list, 1, list.n)):trace {
        block = step.block, cluster = step.cluster,
        arch = step.pdl and "sm_90a" or "sm_80"}.source
      return launch(step, list, ...)
    end
    local _ <close> = setmetatable({}, {__close = function()
      calls.launch = launch
    end})
    for device, least in pairs {["sim:sm_90a"] = 1, ["sim:sm_80"] = 0} do
      texts = {}
      local x = cute.full({2, 64}, 1, cute.bf16)
      local o = {device = device}
      ops.rmsnorm(x, o)
      ops.softmax(x, o)
      ops.embedding(cute.zeros({2}, cute.i32), x, o)
      ops.attention_decode(cute.full({1, 1, 2, 32}, 1, cute.bf16), cute.full(
        {1, 2, 1, 32}, 1, cute.bf16), cute.full({1, 2, 1, 32}, 1, cute.bf16), o)
      assert.equal(5 - least, #texts)  -- sm_90a decodes by one cluster launch
      for _, text in ipairs(texts) do
        assert.equal(least, select(2, text:gsub("griddepcontrol.wait", "")))
      end
    end
  end)
end)

describe("a chain of calls", function()
  it("has kernels of all families, and dependent launches", function()
    local X, Y, Z = cute.zeros({64, 64}, cute.bf16),
      cute.zeros({64, 65}, cute.bf16), cute.zeros({64, 64}, cute.f32)
    Y = cute.local_tile(Y, {64, 64}, {0, 0})
    local L = cute.zeros({64, 2048}, cute.f64)
    local function few(t) return cute.local_tile(t, {64, 8}, {0, 0}) end
    local found = {}
    for _, c in ipairs {{X, X}, {Y, X}, {few(X), few(Z)}, {L, L}} do
      local o = {device = "sim:sm_90a"}
      local e = ops.explain(c[1], c[2], o)
      local text = e:trace().source
      found[#found + 1] = e.kernel
      assert.truthy(text:find("griddepcontrol.wait", 1, true))
      local before = text:match "^(.-)griddepcontrol.wait"
      assert.is_nil(before:match "__global__.*cp%.async")
      o.device = "sim:sm_80"
      assert.is_nil(ops.explain(c[1], c[2], o):trace().source
                      :find("griddepcontrol", 1, true))
    end
    assert.same({"gemm_sm90", "gemm_sm80", "gemm_simt", "gemm_splitk"}, found)
  end)

  it("has the same results in a graph, again and changed #long", function()
    local p = program("host", 7)
    p.run "sim:sm_90a"
    local once = elements(p.D)
    local device = cute.device "sim:sm_90a"
    p.D:fill(0)
    local g = cute.graph(function() p.run(device) end, {device = "sim"})
    g:launch()
    assert.equal(once, elements(p.D))
    local q = program("host", 8)
    p.X:copy_from(q.X)
    g:launch()
    local other = elements(p.D)
    p.D:fill(0)
    p.run "sim:sm_90a"
    assert.equal(elements(p.D), other)
    assert.are_not.equal(once, other)
  end)

  it("is right however it overlaps #gpu", function()
    local want = expected {1, 2}
    local p = {program("gpu", 1), program("gpu", 2)}
    local out = {}
    for i = 1, 60 do
      local which = i % 2 + 1
      p[which].run()
      out[i] = p[which].D:clone()
    end
    for i, D in ipairs(out) do assert.equal(want[i % 2 + 1], elements(D), i) end
  end)

  it("is right in two streams at once #gpu", function()
    local want = expected {3, 4}
    local p, s = {program("gpu", 3), program("gpu", 4)}, {}
    cute.synchronize()
    for i = 1, 2 do s[i] = cute.stream() end
    for round = 1, 40 do
      for i = 1, 2 do cute.with_stream(s[i], p[i].run) end
      if round % 10 == 0 then
        for i = 1, 2 do
          s[i]:sync()
          assert.equal(want[i], elements(p[i].D), round)
          p[i].D:fill(0)
        end
        cute.synchronize()
      end
    end
  end)

  it("is right in two graphs at once, each with its own counters #gpu",
     function()
    local want = expected {5, 6}
    local p = {program("gpu", 5), program("gpu", 6)}
    local g, s = {}, {}
    for i = 1, 2 do
      p[i].run()
      g[i] = cute.graph(p[i].run)
      s[i] = cute.stream()
    end
    for _ = 1, 5 do
      for i = 1, 2 do p[i].D:fill(0) end
      cute.synchronize()
      for _ = 1, 20 do
        for i = 1, 2 do g[i]:launch(s[i]) end
      end
      cute.synchronize()
      for i = 1, 2 do assert.equal(want[i], elements(p[i].D)) end
    end
    g[1]:update(p[2].run)
    p[2].D:fill(0)
    g[1]:launch()
    assert.equal(want[2], elements(p[2].D))
  end)
end)
-- SPDX-License-Identifier: MIT
