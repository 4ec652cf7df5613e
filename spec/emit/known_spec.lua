-- Tests functions of constants, which the compiler could fold. The GPU must
-- compute approximate functions nevertheless, and max and min must have the
-- results that PTX defines.
local cute = require "cute"

local n, o = cute.zeros({16}, cute.f32), cute.zeros({16}, cute.f32)

local function text(f)
  return cute.kernel("k", {fastmath = true}, function(y, x) f(y, x) end)(o, n)
    :trace {block = 1}:cuda "sm_90a"
end

-- Returns how often the emitted text of f calls `helper`. Ignores calls within
-- helper functions, which precede the kernel.
local function calls(helper, f)
  local body = text(f):match "__global__(.*)"
  return select(2, body:gsub(helper .. "%(", ""))
end

describe("values that the compiler could compute", function()
  it("go through registers, variables and loops", function()
    local function hidden(want, f)
      assert.equal(want, calls("at_run_time", f))
    end
    hidden(1, function(y)
      local r = cute.make_rmem_tensor({2}, cute.f32)
      r[0] = 0.3
      y[0] = cute.exp2(r[0])
    end)
    hidden(1, function(y)
      for j in cute.range(4) do y[j] = cute.exp2(j:to(cute.f32) * 0.3) end
    end)
    -- The variable v is a constant in the first iteration only.
    hidden(1, function(y, x)
      local v = 0.3
      for j in cute.range(4) do
        y[j] = cute.exp2(v)
        v = v + x[j]
      end
    end)
    -- The variable v is a constant in all iterations but the first.
    hidden(1, function(y, x)
      local v = x[0]
      for j in cute.range(4) do
        y[j] = cute.exp2(v)
        v = 0.3
      end
    end)
    hidden(1, function(y)
      local r, s = cute.make_rmem_tensor({2}, cute.f32),
                   cute.make_rmem_tensor({2}, cute.f32)
      r:fill(0.3)
      cute.autovec_copy(r, s)
      y[0] = cute.sin(s[1])
    end)
    hidden(2, function(y)
      local r = cute.make_rmem_tensor({2}, cute.f32)
      r[0], r[1] = 0.3, 0.7
      y[0] = r[0] / r[1]
    end)
    hidden(1, function(y)
      local r = cute.make_rmem_tensor({1}, cute.f32)
      r[0] = 0.3
      y[0] = cute.arch.approx("lg2.approx.ftz.f32", r[0])
    end)
    hidden(1, function(y)
      local r = cute.make_rmem_tensor({1}, cute.f32)
      r[0] = 0.3
      y[0] = cute.erf(r[0])
    end)
    hidden(1, function(y, x)  -- pow uses a logarithm of its constant base
      local r = cute.make_rmem_tensor({1}, cute.f32)
      r[0] = 0.3
      y[0] = cute.pow(r[0], x[0], {fastmath = false})
    end)
  end)

  it("end at loads, thread indices and arguments", function()
    local function seen(f) assert.equal(0, calls("at_run_time", f)) end
    seen(function(y, x) y[0] = cute.exp2(x[0]) end)
    seen(function(y)
      y[0] = cute.exp2(cute.arch.block_idx():to(cute.f32))
    end)
    seen(function(y, x)
      local r = cute.make_rmem_tensor({2}, cute.f32)
      r:fill(0.3)
      r[0] = x[0]
      y[0] = cute.exp2(r[0])
    end)
    seen(function(y, x)
      local sum = 0.0
      for j in cute.range(4) do sum = sum + x[j] end
      y[0] = cute.exp2(sum)
    end)
    seen(function(y)  -- ptxas does not compute tanh of constants, but leaves it
                      -- to the GPU.
      local r = cute.make_rmem_tensor({1}, cute.f32)
      r[0] = 0.3
      y[0] = cute.tanh(r[0])
    end)
    -- sqrtf is correctly rounded, so the compiler may fold it.
    seen(function(y)
      local r = cute.make_rmem_tensor({1}, cute.f32)
      r[0] = 0.3
      y[0] = cute.sqrt(r[0], {fastmath = false})
    end)
  end)

  it("are compared by PTX's max and min", function()
    local function known(y)
      local r = cute.make_rmem_tensor({1}, cute.f32)
      r[0] = -0.0
      y[0], y[1] = cute.max(r[0], 0.0), cute.min(0.0, r[0])
    end
    assert.equal(1, calls("max_f32", known))
    assert.equal(1, calls("min_f32", known))
    assert.equal(1, calls("fmaxf", function(y, x)
      y[0] = cute.max(x[0], 0.0)
    end))
    local z = cute.full({2}, 1, cute.f32)
    cute.kernel("k", known)(z):launch {grid = 1, block = 1, device = "sim"}
    assert.same({math.huge, -math.huge}, {1 / z(0), 1 / z(1)})
  end)

  it("stay in the compiler's text", function()
    local jit = require "cute.jit"
    if not jit.version() then return end
    local c = cute.kernel("k", {fastmath = true}, function(y)
      local r = cute.make_rmem_tensor({3}, cute.f32)
      r[0], r[1], r[2] = 0.3, -0.0, 0.7
      y[0], y[1], y[2] = cute.exp2(r[0]), cute.max(r[1], 0.0), r[0] / r[2]
    end)(o):trace {block = 1}:compile "sm_90a"
    for _, op in ipairs {"ex2.approx", "max.f32", "div.full", "lanemask"} do
      assert.is_truthy(c.ptx:find(op, 1, true), op)
    end
  end)
end)

describe("shifts by more than the width", function()
  it("have the results of PTX's instructions", function()
    local x = cute.zeros({96}, cute.i32)
    local k = cute.kernel("k", function(y, v)
      for j in cute.range(0, 41, 1) do y[j] = v << j end
    end)
    local t = k(x, 3):trace {block = 1}
    assert.is_truthy(t:cuda "sm_90a":find "%(int%)shl_b32%(")
    if require "cute.jit".version() then
      assert.equal(41, select(2, t:compile "sm_90a".ptx:gsub("st%.global", "")))
    end
    k(x, 3):launch {grid = 1, block = 1, device = "sim"}
    for j = 0, 40 do
      local want = j < 32 and 3 << j & 0xffffffff or 0
      assert.equal(want, x(j) & 0xffffffff)
    end
  end)

  it("stay operators if they are less than the width", function()
    local x = cute.zeros({64}, cute.i32)
    local body = cute.kernel("k", function(y)
      local t = cute.arch.thread_idx()
      y[t] = y[t] << (t & 31)
      y[t] = y[t] >> 3
    end)(x):trace {block = 64}:cuda "sm_90a"
    assert.is_nil(body:find("sh[lr]_"))
  end)

  it("have 64 bits, a sign and narrow types", function()
    local want = {i8 = {"shl_b32", "shr_s32"}, u8 = {"shl_b32", "shr_s32"},
                  u32 = {"shl_b32", "shr_u32"}, i64 = {"shl_b64", "shr_s64"},
                  u64 = {"shl_b64", "shr_u64"}, i32 = {"shl_b32", "shr_s32"}}
    for t, helpers in pairs(want) do
      local x = cute.zeros({4}, cute[t])
      local body = cute.kernel("k", function(y, v)
        y[0], y[1] = (y[2] << v):to(cute[t]), (y[3] >> v):to(cute[t])
      end)(x, 3):trace {block = 1}:cuda "sm_90a"
      for _, h in ipairs(helpers) do
        assert.is_truthy(body:find(h .. "(", 1, true), t .. " " .. h)
      end
    end
  end)
end)

describe("floats of indices that differ by constants", function()
  it("share a conversion if f32 is exact", function()
    local x, list = cute.zeros({64, 8}, cute.f32), cute.zeros({64}, cute.i32)
    local k = cute.kernel("k", function(y, m)
      local t = cute.arch.thread_idx()
      for j = 0, 7 do
        y[{t, j}] = cute.abs(t - 3 - (t * 2 + j - 40)):to(cute.f32)
          + (t + j - 9 - t * 5):to(cute.f32)
      end
      y[{t, 0}] = y[{t, 0}] + (m[t] + 3 - m[63 - t]):to(cute.f32)
    end)(x, list)
    local body = k:trace {block = 64}:cuda "sm_90a":match "__global__(.*)"
    assert.equal(3, select(2, body:gsub("%(float%)", "")))
    assert.is_truthy(body:find("(float)(m[t] - m[63 - t] + 3)", 1, true))
    for i = 0, 63 do list[i] = i * i * 8000 - 5 end
    k:launch {grid = 1, block = 64, device = "sim"}
    for t = 0, 63 do
      for j = 0, 7 do
        local want = math.abs(37 - t - j) + j - 9.0 - 4 * t
        if j == 0 then
          want = string.unpack("f", string.pack("f", want + string.unpack("f",
            string.pack("f", list(t) + 3.0 - list(63 - t)))))
        end
        assert.equal(want, x(t, j))
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
