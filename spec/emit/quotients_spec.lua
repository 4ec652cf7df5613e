-- Tests quotients and remainders: how the emitted text computes them, and their
-- values on the simulator.
local cute = require "cute"
local support = require "spec.support"

local function source(f, opts, ...)
  return cute.kernel("k", f)(...):trace(opts):cuda "sm_80"
end

local function find(text, what)
  assert.is_truthy(text:find(what, 1, true), ("no '%s' in:\n%s"):format(what,
    text))
end

describe("emitted text", function()
  local x = cute.zeros({64}, cute.i32)

  it("divides without corrections if nothing is negative", function()
    local text = source(function(a)
      local tid = cute.arch.thread_idx()
      a[tid] = tid // 6 + tid % 6 + a[tid] // 6
    end, {block = 64}, x)
    find(text, "tid / 6 + tid % 6 + floor_div(a[tid], 6)")
  end)

  it("drops the part of a dividend below its multiple", function()
    local y = cute.zeros({4096}, cute.i32)
    find(source(function(a)
      local tid = cute.arch.thread_idx()
      a[tid] = (a[0] * 64 + tid) // 192
    end, {block = 64}, y), "floor_div(a[0], 3)")
    -- The emitter must keep a term of the dividend that can change the
    -- quotient. These kernels use all remainders, including negative ones.
    for _, case in ipairs {{64, 192}, {6, 4}, {12, 8}, {5, 7}, {0, 6}} do
      local m, c = case[1], case[2]
      for _, n in ipairs {4, 6, 64, 65} do
        cute.kernel("rest", function(a)
          local t = cute.arch.thread_idx()
          for u in cute.range(-7, 8) do
            local v = u * m + t
            a[(u + 7) * n + t] = v // c * 10000 + (v % c)
          end
        end)(y):launch {grid = 1, block = n, device = "sim"}
        for u = -7, 7 do
          for t = 0, n - 1 do
            local v = u * m + t
            assert.equal(v // c * 10000 + v % c, y((u + 7) * n + t))
          end
        end
      end
    end
  end)

  it("finds terms of a sum that the divisor divides", function()
    local y = cute.zeros({4096}, cute.i32)
    local text = source(function(a)
      local t = cute.arch.thread_idx()
      local v = (a[0] * 128 + t) + a[1] * 64
      for k = 0, 3 do a[k] = (v + (k * 16 + 4)) // 64 end
      a[4] = (v - 60) // 64 * 64 + (v + 116) % 64
    end, {block = 12}, y)
    assert.is_nil(text:find(">>", 1, true))
    assert.is_nil(text:find("floor_", 1, true))
    find(text, "a[4] = i0 * 64 + t - 12;")
    -- A division may drop the terms of its dividend that are not multiples of
    -- the divisor only if their sum is in [0, divisor).
    for _, case in ipairs {{64, 3, 5}, {64, 60, 64}, {6, -1, 6}, {8, -4, 4},
                           {12, 17, 6}, {10, 4, 5}, {9, 0, 3}, {64, 57, 64},
                           {64, 58, 64}, {64, 6, 64, -1}, {64, 5, 64, -1}} do
      local m, k, c, sign = table.unpack(case)
      sign = sign or 1
      cute.kernel("rest", function(a)
        local t = cute.arch.thread_idx()
        for u in cute.range(-5, 6) do
          local v = (u * m + sign * t) + (u * c + k)
          a[(u + 5) * 7 + t] = v // c * 10000 + (v % c)
        end
      end)(y):launch {grid = 1, block = 7, device = "sim"}
      for u = -5, 5 do
        for t = 0, 6 do
          local v = u * m + sign * t + u * c + k
          assert.equal(v // c * 10000 + v % c, y((u + 5) * 7 + t))
        end
      end
    end
  end)
end)

describe("quotients of floats", function()
  it("are rounded down as in Lua, and so are remainders", function()
    local list = {7.5, -7.5, 8.0, -8.0, 0.0, -0.0, 1e30, -1e-30, 1e-30, 3.25,
                  math.huge, -math.huge, 0 / 0}
    for _, t in ipairs {"f32", "f64"} do
      local round = t == "f32" and support.f32 or function(x) return x end
      local n = #list
      local x = cute.tensor(list, t)
      local o = cute.zeros({n, n, 2}, t)
      cute.kernel("quotients", function(a, out)
        local i, j = cute.arch.thread_idx(), cute.arch.block_idx()
        out[{i, j, 0}], out[{i, j, 1}] = a[i] // a[j], a[i] % a[j]
      end)(x, o):launch {grid = n, block = n, device = "sim"}
      for i = 0, n - 1 do
        for j = 0, n - 1 do
          local a, b = x(i), x(j)
          local q = round(a / b)
          q = q - q == 0 and math.floor(q) + 0.0 or q
          assert(support.same(q, o(i, j, 0)), ("%s // %s is %s, not %s"):format(
            a, b, o(i, j, 0), q))
          assert(support.same(round(a % b), o(i, j, 1)), ("%s %% %s is %s, "
            .. "not %s"):format(a, b, o(i, j, 1), a % b))
        end
      end
    end
    local text = source(function(a) a[0] = a[1] // a[2] end, {block = 1},
                        cute.zeros({4}, cute.f32))
    find(text, "floorf(a[1] / a[2])")
  end)
end)
-- SPDX-License-Identifier: MIT
