-- Tests arguments that share memory, and what compilers may assume about them
-- from the emitted text. The emitted code and the simulator must behave as if
-- the loads and stores ran in order.
local core = require "cute.core"
local cute = require "cute"
local jit = require "cute.jit"
local support = require "spec.support"
local arch = cute.arch

local N = 64

-- Returns a list of tensors on one buffer. Tensor i has `count` elements, and
-- begins at element starts[i] of the buffer.
local function views(buffer, starts, count)
  local list = {}
  for i, from in ipairs(starts) do
    list[i] = cute.make_tensor(cute.make_tensor(buffer,
      cute.make_layout {#buffer}).iterator + from, cute.make_layout {count})
  end
  return list
end

-- Returns a group number for each leaf (tensor or number) of the arguments that
-- shares memory with another leaf. Returns nil if no leaves share memory.
local function overlaps(...)
  return (select(4, core.kind(table.pack(...))))
end

local function ramp(n)
  local b = core.buffer("f32", n)
  for i = 0, n - 1 do b[i] = i + 1 end
  return b
end

local both = cute.kernel("both", function(x, y)
  local t = arch.thread_idx()
  y[t] = x[t] + 1
  y[t + 32] = x[t] * 10
end)

local function source(...)
  return both(...):trace({block = 32}).source
end

local function host(n) return cute.zeros({n or N}, cute.f32) end

describe("arguments that overlap", function()
  local x, y = host(), host()

  it("have no __restrict__, and others do", function()
    assert.is_truthy(source(x, y):find("const float *__restrict__ x", 1, true))
    assert.is_truthy(source(x, y):find("float *__restrict__ y", 1, true))
    assert.is_nil(source(x, x):find("restrict", 1, true))
    assert.is_truthy(source(x, x):find("const float *x,", 1, true))
    -- The trace with overlapping arguments does not change the text for
    -- separate arguments.
    assert.is_truthy(source(x, y):find("__restrict__ x", 1, true))
  end)

  it("are those that share bytes", function()
    local b = core.buffer("f32", 4 * N)
    for _, case in ipairs {
      {0, 0, true}, {0, 1, true}, {0, N - 1, true}, {0, N, false},
      {N, 0, false}, {N - 1, 0, true}, {3, 2 * N, false},
    } do
      local v = views(b, {case[1], case[2]}, N)
      assert.equal(case[3], not source(v[1], v[2]):find("restrict", 1, true),
                   case[1] .. " " .. case[2])
    end
    local bytes = cute.recast_tensor(views(b, {N}, N)[1], cute.u8)
    local kernel = cute.kernel("k", function(p, q)
      q[0] = p[0]:to(cute.f32)
    end)
    local function text(p, q) return kernel(p, q):trace({block = 1}).source end
    assert.is_nil(text(bytes, views(b, {2 * N - 1}, N)[1]):find("restrict", 1,
                                                               true))
    assert.is_truthy(text(bytes, views(b, {2 * N}, N)[1]):find("restrict", 1,
                                                              true))
    -- Tensors overlap even if they share only half a byte.
    local four = cute.zeros({16}, cute.i4)
    local low = cute.make_tensor(four.iterator, cute.make_layout {5})
    local high = cute.make_tensor(four.iterator + 4, cute.make_layout {4})
    assert.same({1, 1}, overlaps(low, high))
    high = cute.make_tensor(four.iterator + 6, cute.make_layout {4})
    assert.is_nil(overlaps(low, high))
  end)

  it("include all that overlap indirectly", function()
    local b = core.buffer("f32", 10 * N)
    local v = views(b, {0, 5 * N, N - 1, 7 * N, 5 * N}, N)
    local groups = overlaps(v[1], 3, {v[2], 4}, v[3], {x = v[4]}, v[5], "s")
    assert.equal(groups[1], groups[5])
    assert.equal(groups[3], groups[7])
    assert.is_true(groups[1] ~= groups[3] and groups[1] > 0 and groups[3] > 0)
    assert.same({0, 0, 0}, {groups[2], groups[4], groups[6]})
    local text = core.kind_text
    assert.equal(text(v[1], v[2], v[4]), text(v[1], v[4], v[2]))
    assert.is_true(text(v[1], v[2], v[4]) ~= text(v[1], v[2], v[5]))
    -- The third view overlaps the first and the second, which are disjoint.
    local chain = views(b, {0, N, N // 2}, N)
    groups = overlaps(table.unpack(chain))
    assert.is_true(groups[1] == groups[2] and groups[2] == groups[3])
    b:close()
    assert.is_nil(overlaps(v[1], v[1]))
  end)

  it("keep __restrict__ if none of them is written", function()
    local k = cute.kernel("k", function(p, q, out)
      out[arch.thread_idx()] = p[arch.thread_idx()] * q[arch.thread_idx()]
    end)
    local text = k(x, x, y):trace({block = 32}).source
    for _, name in ipairs {"p", "q", "out"} do
      assert.is_truthy(text:find("*__restrict__ " .. name, 1, true), text)
    end
    text = k(x, y, y):trace({block = 32}).source
    assert.is_truthy(text:find("*__restrict__ p", 1, true))
    assert.is_nil(text:find("*__restrict__ q", 1, true))
    assert.is_nil(text:find("*__restrict__ out", 1, true))
  end)

  it("are marked in the IR and in a program's description", function()
    local p = both(x, x):trace {block = 32}
    assert.is_true(p.info.args[1].shared and p.info.args[2].shared)
    assert.is_truthy(p.ir:find("arg 0 f32* x shared", 1, true))
    assert.is_false(both(x, y):trace({block = 32}).info.args[1].shared)
  end)

  it("are read again after a store in NVRTC's code", function()
    if not jit.version() then return pending "needs NVRTC" end
    local function loads(...)
      local out = assert(both(...):trace({block = 32}):compile "sm_90a")
      local _, all = out.ptx:gsub("ld%.global", "")
      local _, constant = out.ptx:gsub("ld%.global%.nc", "")
      return {all, constant}
    end
    assert.same({1, 1}, loads(x, y))
    assert.same({2, 0}, loads(x, x))
  end)

  it("may not begin inside a byte", function()
    local four = cute.zeros({16}, cute.i4)
    local odd = cute.make_tensor(four.iterator + 3, cute.make_layout {4})
    local k = cute.kernel("k", function(p, q) q[0] = p[0]:to(cute.f32) end)
    support.raises("starts inside a byte", function()
      k(odd, y):launch {grid = 1, block = 1, device = "sim"}
    end)
  end)
end)

-- ---- results ----

-- Returns a random straight-line program of one thread over three views of one
-- buffer. Each step stores a sum of two elements. A loop over a Lua table
-- computes the expected results.
local function program(seed)
  local state = seed
  local function random(n)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 8) % n
  end
  local steps, starts = {}, {random(6), random(6), random(6)}
  for i = 1, 12 do
    steps[i] = {random(3) + 1, random(8), random(3) + 1, random(8),
                random(3) + 1, random(8)}
  end
  return steps, starts
end

local function check(seed, device)
  local steps, starts = program(seed)
  local k = cute.kernel("k", function(a, b, c)
    local v = {a, b, c}
    for _, s in ipairs(steps) do
      v[s[1]][s[2]] = v[s[3]][s[4]] + v[s[5]][s[6]] * 0.5
    end
  end)
  local buffer, want = ramp(16), {}
  for i = 0, 15 do want[i] = buffer[i] end
  for _, s in ipairs(steps) do
    want[starts[s[1]] + s[2]] = support.f32(want[starts[s[3]] + s[4]]
      + support.f32(want[starts[s[5]] + s[6]] * 0.5))
  end
  local v = views(buffer, starts, 8)
  assert(k(v[1], v[2], v[3]):launch {grid = 1, block = 1, device = device})
  for i = 0, 15 do assert.equal(want[i], buffer[i], "seed " .. seed) end
end

describe("the simulator and arguments that overlap", function()
  it("computes in the order of the kernel", function()
    for seed = 1, 40 do check(seed, "sim") end
    local x = cute.make_tensor(ramp(N), cute.make_layout {N})
    assert(both(x, x):launch {grid = 1, block = 32, device = "sim"})
    for t = 0, 31 do
      assert.equal(t + 2, x[t])
      assert.equal((t + 2) * 10, x[t + 32])
    end
  end)

  it("sees through one argument what another one wrote", function()
    local copy = cute.kernel("copy", function(p, q, out)
      q[arch.thread_idx()] = 1.0
      arch.sync_warp()
      out[arch.thread_idx()] = p[arch.thread_idx()]
    end)
    local v = views(core.buffer("f32", N), {0, 0, 8}, 32)
    local out = host()
    assert(copy(v[1], v[2], out):launch {grid = 1, block = 32, device = "sim"})
    for t = 0, 31 do assert.equal(1, out[t]) end
    v = views(core.buffer("f32", N), {0, 0, 8}, 32)
    support.raises("[kernel-fault]", function()
      copy(v[1], v[3], out):launch {grid = 1, block = 32, device = "sim"}
    end)
  end)

  it("finds a race of blocks through two arguments", function()
    local k = cute.kernel("k", function(p, q)
      local b = arch.block_idx()
      cute.when(b:eq(0), function() q[0] = 7.0 end)
      cute.when(b:eq(1), function() q[1] = p[0] end)
    end)
    local opts = {grid = 2, block = 1, device = "sim"}
    local v = views(ramp(N), {0, 0, 8}, 8)
    local ok, err = pcall(function() k(v[1], v[2]):launch(opts) end)
    assert.is_false(ok)
    assert.is_truthy(err:find("block-race", 1, true), err)
    assert(k(v[1], v[3]):launch(opts))
  end)
end)

describe("a GPU and arguments that overlap #gpu", function()
  it("computes in the order of the kernel, as the simulator does", function()
    for seed = 1, 40 do check(seed, "gpu") end
  end)

  it("reads again what another argument wrote", function()
    local x = cute.make_tensor(ramp(N), cute.make_layout {N})
    assert(both(x, x):launch {grid = 1, block = 32, device = "gpu"})
    local dev = assert(require "cute.gpu".open())
    local d = assert(dev:buffer(ramp(N)))
    local on = core.on_device(cute.make_tensor(ramp(N), cute.make_layout {N}),
                              d)
    assert(both(on, on):launch {grid = 1, block = 32})
    local got = d:download()
    for t = 0, 31 do
      assert.equal(t + 2, x[t])
      assert.equal((t + 2) * 10, x[t + 32])
      assert.equal(t + 2, got[t])
      assert.equal((t + 2) * 10, got[t + 32])
    end
  end)

  it("has read-only loads if nothing overlaps", function()
    local x = cute.make_tensor(ramp(N), cute.make_layout {N})
    local y = host()
    assert(both(x, y):launch {grid = 1, block = 32, device = "gpu"})
    for t = 0, 31 do
      assert.equal(t + 2, y[t])
      assert.equal((t + 1) * 10, y[t + 32])
    end
  end)
end)
-- SPDX-License-Identifier: MIT
