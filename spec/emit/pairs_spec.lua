-- Tests operations on 16-bit floats that the emitted text combines in pairs:
-- where it uses pairs, where it does not, and that each element has the
-- simulator's result.
local core = require "cute.core"
local cudahost = require "spec.cudahost"
local cute = require "cute"
local kernels = require "spec.kernels"
local random = require "spec.random"
local support = require "spec.support"

local ELEMENTS, THREADS = 8, 4

-- Returns a kernel in which each thread stores f(a, b, c) of its vectors.
local function kernel(f)
  return cute.kernel("k", function(x, y, z, o)
    local t = cute.arch.thread_idx()
    local function part(tensor) return cute.local_tile(tensor, {8}, {t}) end
    part(o):store(f(part(x):load(), part(y):load(), part(z):load()))
  end)
end

local function tensors(dtype, f)
  local list = {}
  for k = 1, 4 do
    list[k] = kernels.tensor({ELEMENTS * THREADS}, dtype, f and function(i)
      return f(k, i)
    end)
  end
  return list
end

local function text(f, dtype, arch)
  local call = kernel(f)(table.unpack(tensors(dtype)))
  local program = call:trace {block = THREADS}
  if arch == "sm_90a" then kernels.compiles(program, {"sm_80", "sm_90a"}) end
  return (program:cuda(arch or "sm_90a"):match "__global__.*")
end

local function count(s, pattern) return select(2, s:gsub(pattern, "")) end

---------------------------------------------------------------------------
-- Random vectors
---------------------------------------------------------------------------

local Gen = setmetatable({}, {__index = random.Gen})
Gen.__index = Gen

-- Returns the bits of n elements: edge cases of the formats, and random ones.
function Gen:bytes(n)
  local edges = {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x3c00,
                 0x7f7f, 0x7f80, 0xff80, 0x7fc1, 0x7bff, 0x7c00, 0xfc00, 0x7c01}
  local list = {}
  for i = 1, n do
    local x = self:chance(25) and self:pick(edges) or self:r(65536) - 1
    list[i] = ("<I2"):pack(x)
  end
  return table.concat(list)
end

local UNARY = {
  function(v) return -v end,
  function(v) return cute.abs(v) end,
  function(v) return v:to(cute.f32):to(v.dtype) end,
  function(v) return v:to(cute.e4m3):to(v.dtype) end,
  function(v)
    return (v:to(cute.f32) * 3):to(cute.e5m2):to(cute.f32):to(v.dtype)
  end,
  function(v)
    local r = cute.make_rmem_tensor({8}, cute.e4m3)
    r:store(v:to(cute.e4m3))
    r[3] = r[5]
    local q = cute.make_rmem_tensor({8}, cute.e5m2)
    q:store(r:load():to(cute.f32):to(cute.e5m2))
    return q:load():to(cute.f16):to(v.dtype) + r[1]:to(v.dtype)
  end,
  function(v) return v:reshape {2, 4} * v[3] end,
  function(v) return v + v(1) end,
  function(v)
    local r = cute.make_rmem_tensor({8}, v.dtype)
    r:store(v)
    r[5] = r[2] * r[3]
    return r:load()
  end,
  function(v)
    local r = cute.make_rmem_tensor({8}, v.dtype)
    for i = 7, 0, -1 do r[i] = v[7 - i] end
    return r:load()
  end,
  function(v)
    local r = cute.make_rmem_tensor({8}, v.dtype)
    r:store(v)
    for i = 0, 7 do r[i] = cute.max(r[i] + r[(i + 2) % 8], 0.25) end
    return r:load()
  end,
  function(v)
    local sum = v
    for _ = 1, 2 do sum = sum + v end
    return sum
  end,
  function(v)
    local sum = v
    for k in cute.range(3) do
      sum = sum * v + k:to(v.dtype)
    end
    return sum
  end,
  function(v)
    cute.when(v[0]:lt(1), function() v = v - 1 end,
              function() v = v * v end)
    return v
  end,
}

local BINARY = {
  function(v, w) return v + w end,
  function(v, w) return v - w end,
  function(v, w) return v * w end,
  function(v, w) return v * w end,
  function(v, w) return cute.max(v, w) end,
  function(v, w) return cute.min(v, w) end,
  function(v, w) return cute.fma(v, w, v) end,
  function(v, w) return cute.fma(v, 0.5, w) end,
  function(v, w) return cute.where(v:lt(w), v, w) end,
  function(v, w) return v / w end,
  function(v, w) return v + w[1] * w end,
  function(v, w) return v * w:reduce("max", -1) end,
}

-- Returns a random program: a function (a, b, c), the same for every trace.
function Gen:program()
  local steps = {}
  for k = 1, 5 + self:r(6) do
    local n = k + 2
    steps[k] = {self:chance(35) and self:pick(UNARY) or self:pick(BINARY),
                self:r(n), self:chance(30) and n or self:r(n)}
  end
  return function(a, b, c)
    local v = {a, b, c}
    for _, s in ipairs(steps) do
      v[#v + 1] = s[1](v[s[2]], v[s[3]]):reshape(8)
    end
    return v[#v] + v[#v - 1]
  end
end

-- Runs the program of a seed on the simulator. Returns its arguments before and
-- after the run, and its emitted text.
local function run(seed, arch)
  local g = setmetatable({state = seed * 0x9e3779b97f4a7c15 | 1}, Gen)
  local dtype = g:pick {"bf16", "f16"}
  local f = g:program()
  local n, args, before = ELEMENTS * THREADS, {}, {}
  local buffers = {}
  for k = 1, 4 do
    before[k] = g:bytes(n)
    buffers[k] = core.buffer(dtype, n):set_bytes(before[k])
    args[k] = cute.make_tensor(buffers[k], cute.make_layout {n})
  end
  local fmad = g:chance(30)
  local call = kernel(f)(table.unpack(args))
  call:launch {grid = 1, block = THREADS, device = "sim:" .. arch,
               fmad = fmad}
  local source = call:trace {block = THREADS, fmad = fmad}:cuda(arch)
  return {text = source, grid = 1, block = THREADS, args = before},
    buffers[4]:bytes()
end

-- Returns the seeds whose emitted text, run on the host, has wrong results.
local function differing(first, last, arch)
  local runs, want, wrong, packed = {}, {}, {}, 0
  for seed = first, last do
    local k = #runs + 1
    runs[k], want[k] = run(seed, arch)
    packed = packed + count(runs[k].text:match "__global__.*", "16x2%(")
  end
  for k, bytes in ipairs(cudahost.run(runs)) do
    if bytes[4] ~= want[k] then wrong[#wrong + 1] = first + k - 1 end
  end
  return wrong, packed
end

describe("pairs of 16-bit floats", function()
  it("are added, multiplied and compared by one instruction", function()
    for _, t in ipairs {"bf16", "f16"} do
      local s = text(function(a, b, c)
        return cute.max(cute.fma(a, b, c) * 0.5 - a, -cute.abs(b))
      end, t)
      for _, name in ipairs {"fma_rn_", "mul_", "sub_", "max_"} do
        assert.equal(4, count(s, name .. "[rn_]*" .. t .. "x2%("), s)
      end
      assert.is_nil(s:find(t .. "_to_f32"))
      assert.is_nil(s:find(">> 16", 1, true))
    end
  end)

  it("are combined with numbers, and with one value for both", function()
    local s = text(function(a, b)
      return (a + 1) * b[0]
    end, "bf16")
    assert.equal(4, count(s, "add_bf16x2%(r[%w_]*%[%d%], 0x3f803f80u%)"), s)
    assert.equal(4, count(s, "mul_bf16x2%("), s)
  end)

  it("are moved as 32-bit words if nothing is computed", function()
    local s = text(function(a)
      local r = cute.make_rmem_tensor({8}, a.dtype)
      r:store(a)
      r[3] = 1
      return r:load()
    end, "f16")
    assert.equal(8, count(s, "r_%d%[%d%] = r[_%d]*%[%d%];"), s)
    assert.is_nil(s:find(">> 16", 1, true))
  end)

  it("are divided in f32, and rounded by one instruction", function()
    local function f(a, b) return a / b end
    local s = text(f, "bf16")
    assert.equal(4, count(s, "pack_bf16%(div_full%("), s)
    s = text(f, "f16")  -- f16 shows div.full's wrong last bits
    assert.equal(4, count(s, "pack_f16%("), s)
    assert.is_nil(s:find("div_full", 1, true))
    assert.is_nil(text(f, "bf16", "sm_80"):find("div_full", 1, true))
  end)

  it("of 8-bit floats are converted by one instruction", function()
    local function f(t)
      return function(a)
        local r = cute.make_rmem_tensor({8}, t)
        r:store((a:to(cute.f32) * 2):to(t))
        return r:load():to(cute.f16) + a
      end
    end
    for _, t in ipairs {"e4m3", "e5m2"} do
      local s = text(f(cute[t]), "f16")
      assert.equal(4, count(s, "cvt_" .. t .. "x2"), s)
      assert.equal(4, count(s, "cvt_rn_f16x2_" .. t .. "x2%("), s)
      assert.equal(4, count(s, "add_rn_f16x2%("), s)
      assert.is_nil(s:find(t .. "_to_f32", 1, true))
    end
    assert.is_nil(text(f(cute.e4m3), "f16", "sm_80"):find("x2_e4m3", 1, true))
  end)

  it("are split if only one half is used", function()
    local s = text(function(a, b)
      local v = a * b
      return v + v:reduce("max", -1)
    end, "f16")
    assert.equal(4, count(s, "mul_rn_f16x2%("), s)
    assert.equal(4, count(s, "add_rn_f16x2%("), s)
  end)

  it("are not formed of scalars, other types or for old targets", function()
    local scalars = text(function(a, b)
      local x = a[0] * b[0]
      local y = a[3] * b[2]
      return cute.full(8, x + y, a.dtype)
    end, "bf16")
    assert.is_nil(scalars:find "16x2")
    local floats = text(function(a, b)
      return (a:to(cute.f32) * b:to(cute.f32)):to(cute.bf16)
    end, "bf16")
    assert.equal(0, count(floats, "16x2"))
    assert.equal(4, count(floats, "pack_bf16%("))
    assert.is_nil(text(function(a, b) return a * b end, "f16", "sm_75")
      :find "16x2")
  end)

  it("are not formed if the fragment is written in between", function()
    local list = tensors("f16", function(k, i) return k + i end)
    local f = function(a, b)
      local r = cute.make_rmem_tensor({8}, a.dtype)
      r:store(a)
      local low = r[0]
      -- The two halves of a word are overwritten at different times.
      r[0], r[1] = 5, 6
      local high = r[1]
      local q = cute.make_rmem_tensor({8}, a.dtype)
      q:store(b)
      q[0], q[1] = low + low, high + high
      return q:load() * 1
    end
    kernel(f)(table.unpack(list)):launch {grid = 1, block = THREADS,
                                          device = "sim"}
    assert.equal(2.0, list[4][0])
    assert.equal(12.0, list[4][1])
    if not cudahost.compiler() then return end
    local call = kernel(f)(table.unpack(list))
    local args = {}
    for k, t in ipairs(list) do args[k] = core.param_memory(t):bytes() end
    local got = cudahost.run {{text = call:trace {block = THREADS}
      :cuda "sm_90a", grid = 1, block = THREADS, args = args}}
    assert.equal(args[4], got[1][4])
  end)
end)

describe("pairs of 16-bit floats", function()
  for i, arch in ipairs {"sm_90a", "sm_80"} do
    it("mean the same as text and in the simulator: " .. arch
       .. support.long(i), function()
      if not cudahost.compiler() then return pending "needs a C++ compiler" end
      local first = arch == "sm_80" and 101 or 1
      local wrong, packed = differing(first, first + 15, arch)
      assert.same({}, wrong)
      assert.is_true(packed > 100, packed)
    end)
  end

  it("are reported if the text is wrong #long", function()
    if not cudahost.compiler() then return pending "needs a C++ compiler" end
    local sound = cudahost.run
    finally(function() cudahost.run = sound end)
    -- Simulates a compiler that reads the low half of a pair as its high half.
    function cudahost.run(runs)
      for _, r in ipairs(runs) do
        r.text = r.text:gsub(" >> 16", " >> 0")
      end
      return sound(runs)
    end
    assert.is_true(#differing(1, 8, "sm_90a") > 2)
  end)
end)
-- SPDX-License-Identifier: MIT
