-- Tests notes on sums and maxima that lack a reduction over lanes or warps.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch
local f32 = cute.f32

local told, quiet = notes.told, notes.quiet

local function expect(text, ...)
  local said = told(...)
  assert.equal(1, #said, table.concat(said, "\n"))
  assert.matches("^cutelua: note: kernel k%d+: partial_sums_spec.lua:%d+: "
    .. text, said[1])
end

local function rand(...) return cute.rand({...}, f32) end
local function zeros(...) return cute.zeros({...}, f32) end

-- Returns a kernel that divides the elements of a row by their sum. `reduce`
-- combines the threads' sums.
local function divide(threads, reduce)
  return function(x, y)
    local t, row = arch.thread_idx(), arch.block_idx()
    local sum = 0.0
    for k in cute.range(t, 256, threads) do sum = sum + x[{row, k}] end
    sum = reduce(sum, t)
    for k in cute.range(t, 256, threads) do
      y[{row, k}] = x[{row, k}] / sum
    end
  end
end

local function same(x) return x end

local function through_shared(sum, t)
  local parts = cute.make_smem_tensor(f32, 2)
  sum = arch.warp_reduction_sum(sum)
  cute.when((t % 32):eq(0), function() parts[t // 32] = sum end)
  arch.sync_threads()
  return parts[0] + parts[1]
end

-- A kernel that computes the softmax of rows of 256 elements. A warp has one
-- row, and each lane keeps 8 elements in registers as two vectors of 4. `max`
-- and `sum` reduce over the lanes. `shift` subtracts the maximum, `add` sums
-- the lane's elements, and `scale` multiplies them by a number.
local function softmax(o)
  local function reduced(name)
    return o[name] or arch["warp_reduction_" .. name]
  end
  return function(x, y)
    local row = arch.block_idx()
    local atom = cute.make_copy_atom("UniversalCopy", f32, 128)
    local copy = cute.make_tiled_copy(atom, cute.make_layout({1, 32}, {32, 1}),
                                      cute.make_layout {1, 4})
    local thr = copy:get_slice((arch.lane_idx()))
    local src = thr:partition_S(cute.local_tile(x, {1, 256}, {row, 0}))
    local dst = thr:partition_D(cute.local_tile(y, {1, 256}, {row, 0}))
    local r = cute.make_rmem_tensor(src.shape, f32)
    cute.copy(copy, src, r)
    local v = r:load()
    local m = reduced "max"(v:reduce("max", -math.huge))
    local e = cute.math.exp2(o.shift(v, m))
    r:store(e)
    r:store(o.scale(e, 1 / reduced "sum"(o.add(r, e))))
    cute.copy(copy, r, dst)
  end
end

-- The steps of a softmax with the operators of vectors, and with pairs.
local PLAIN = {shift = function(v, m) return (v - m) * 1.5 end,
  add = function(_, e) return e:reduce("add", 0.0) end,
  scale = function(e, by) return e * by end}
local PACKED = {shift = function(v, m)
    return arch.fma_packed_f32x2(v, cute.full_like(v, 1.5),
                                 cute.full_like(v, -m * 1.5))
  end,
  add = function(r)
    local s = {0.0, 0.0}
    for k = 0, 7, 2 do s = arch.add_packed_f32x2(s, {r[k], r[k + 1]}) end
    return s[1] + s[2]
  end,
  scale = function(e, by)
    return arch.mul_packed_f32x2(e, cute.full_like(e, by))
  end}
local FORMS = {PLAIN, PACKED}

local function changed(form, key, f)
  local o = {[key] = f}
  for k, v in pairs(form) do o[k] = o[k] or v end
  return softmax(o)
end

local function launch(f, body)
  return f(body, {grid = 2, block = 32, arch = "sm_100a"}, rand(2, 256),
           zeros(2, 256))
end

describe("a note tells of", function()
  it("a sum of lanes or warps in a loop", function()
    expect("this sum has only the elements of one lane, .* such as "
      .. "warp_reduction_sum%?", divide(32, same), {grid = 2, block = 32},
      rand(2, 256), zeros(2, 256))
    expect("this sum has only the elements of one warp, .* such as one through "
      .. "shared memory%?", divide(64, function(sum)
        return arch.warp_reduction_sum(sum)
      end), {grid = 2, block = 64}, rand(2, 256), zeros(2, 256))
  end)

  it("a sum of elements in registers", function()
    expect("this sum has only the elements of one lane", function(x, y)
      local t, row = arch.thread_idx(), arch.block_idx()
      local r = cute.make_rmem_tensor({4}, f32)
      for k = 0, 3 do r[k] = x[{row, k * 32 + t}] end
      local mean = (r[0] + r[1] + r[2] + r[3]) / 128
      for k = 0, 3 do y[{row, k * 32 + t}] = r[k] - mean end
    end, {grid = 2, block = 32}, rand(2, 128), zeros(2, 128))
  end)

  it("a maximum or sum of one lane in vectors and pairs", function()
    for _, form in ipairs(FORMS) do
      local said = launch(told, changed(form, "max", same))
      assert.equal(2, #said, table.concat(said, "\n"))
      assert.matches("this line adds sums of exponentials of several lanes, "
        .. "but each lane subtracted a maximum of its own", said[1])
      assert.matches("this maximum has only the elements of one lane, and each "
        .. "lane uses its own maximum for the elements that it stores; is a "
        .. "reduction missing, such as warp_reduction_max%?$", said[2])
      launch(function(...)
        expect("this sum has only the elements of one lane", ...)
      end, changed(form, "sum", same))
    end
  end)

  it("a reduction that covers 16 of 32 lanes", function()
    local few = "this %s has only the elements of 16 lanes, although further "
      .. "lanes of the warp hold elements of the same row; does the reduction "
      .. "cover too few lanes%%?$"
    for _, form in ipairs(FORMS) do
      for name, what in pairs {max = "maximum", sum = "sum"} do
        launch(function(...) expect(few:format(what), ...) end,
               changed(form, name, function(x)
          return arch["warp_reduction_" .. name](x, 16)
        end))
      end
    end
  end)

  it("elements that unrolled loops keep in registers", function()
    for _, what in ipairs {"maximum", "sum"} do
      expect(("this %s has only the elements of one lane"):format(what),
             function(x, y)
        local lane, row = arch.thread_idx(), arch.block_idx()
        local r, m, s = cute.make_rmem_tensor({4}, f32), -math.huge, 0.0
        for k = 0, 3 do r[k] = x[{row, k * 32 + lane}] end
        for k = 0, 3 do m = cute.max(r[k], m) end
        if what == "sum" then m = arch.warp_reduction_max(m) end
        for k = 0, 3 do
          r[k] = cute.exp(r[k] - m)
          if what == "sum" then s = s + r[k] end
        end
        for k = 0, 3 do
          y[{row, k * 32 + lane}] = what == "sum" and r[k] / s or r[k]
        end
      end, {grid = 2, block = 32}, rand(2, 128), zeros(2, 128))
    end
  end)
end)

describe("no note tells of", function()
  it("a right softmax in vectors and pairs", function()
    for _, form in ipairs(FORMS) do launch(quiet, softmax(form)) end
  end)

  it("a reduction over 16 lanes that share a row", function()
    quiet(function(x, y)
      local lane = arch.thread_idx()
      local row, c = arch.block_idx() * 2 + lane // 16, lane % 16
      local r = cute.make_rmem_tensor({4}, f32)
      for k = 0, 3 do r[k] = x[{row, k * 16 + c}] end
      local m = arch.warp_reduction_max(r:load():reduce("max", -math.huge), 16)
      for k = 0, 3 do y[{row, k * 16 + c}] = r[k] - m end
    end, {grid = 2, block = 32}, rand(4, 64), zeros(4, 64))
  end)

  it("sums that begin anew in each iteration", function()
    quiet(function(x, y)
      local t = arch.thread_idx()
      for row in cute.range(t // 2, 32, 16) do
        local sum = cute.var(0.0, f32)
        for k = 0, 3 do sum.value = sum.value + x[{row, t % 2 * 4 + k}] end
        local all = arch.warp_reduction_sum(sum.value, 2)
        for k = 0, 3 do
          y[{row, t % 2 * 4 + k}] = x[{row, t % 2 * 4 + k}] / all
        end
      end
    end, {grid = 1, block = 32}, rand(32, 8), zeros(32, 8))
  end)

  it("exponentials that a common maximum rescales", function()
    quiet(function(x, y)
      local t, row = arch.thread_idx(), arch.block_idx()
      local parts = cute.make_smem_tensor(f32, {2, 2})
      local r = cute.make_rmem_tensor({4}, f32)
      for k = 0, 3 do r[k] = x[{row, k * 64 + t}] end
      local m = r:load():reduce("max", -math.huge)
      m = arch.warp_reduction_max(m)
      local e = cute.exp(r:load() - m)
      local sum = arch.warp_reduction_sum(e:reduce("add", 0.0))
      cute.when((t % 32):eq(0), function()
        parts[{0, t // 32}], parts[{1, t // 32}] = m, sum
      end)
      arch.sync_threads()
      local most = cute.max(parts[{0, 0}], parts[{0, 1}])
      local total = parts[{1, 0}] * cute.exp(parts[{0, 0}] - most)
        + parts[{1, 1}] * cute.exp(parts[{0, 1}] - most)
      r:store(e * (cute.exp(m - most) / total))
      for k = 0, 3 do y[{row, k * 64 + t}] = r[k] end
    end, {grid = 2, block = 64}, rand(2, 256), zeros(2, 256))
  end)

  it("sums that lanes and warps combine", function()
    quiet(divide(32, function(sum) return arch.warp_reduction_sum(sum) end),
          {grid = 2, block = 32}, rand(2, 256), zeros(2, 256))
    quiet(divide(64, through_shared), {grid = 2, block = 64}, rand(2, 256),
          zeros(2, 256))
  end)

  it("sums of warps that have a row each", function()
    quiet(function(x, y)
      local lane, row = arch.lane_idx(), arch.block_idx() * 4 + arch.warp_idx()
      local r, sum = cute.make_rmem_tensor({3}, f32), 0.0
      for k = 0, 2 do
        r[k] = x[{row, k * 32 + lane}]
        sum = sum + r[k]
      end
      sum = arch.warp_reduction_sum(sum)
      for k = 0, 2 do y[{row, k * 32 + lane}] = r[k] / sum end
    end, {grid = 2, block = 128}, rand(8, 96), zeros(8, 96))
    -- Two warps share a row.
    expect("this sum has only the elements of one warp", function(x, y)
      local t, row = arch.thread_idx() % 64, arch.block_idx() * 2
                     + arch.thread_idx() // 64
      local r, sum = cute.make_rmem_tensor({3}, f32), 0.0
      for k = 0, 2 do
        r[k] = x[{row, k * 64 + t}]
        sum = sum + r[k]
      end
      sum = arch.warp_reduction_sum(sum)
      for k = 0, 2 do y[{row, k * 64 + t}] = r[k] / sum end
    end, {grid = 4, block = 128}, rand(8, 192), zeros(8, 192))
  end)

  it("rows and columns of threads", function()
    quiet(function(x, y)
      local t, sum = arch.thread_idx(), 0.0
      for k in cute.range(16) do sum = sum + x[{t, k}] end
      for k in cute.range(16) do y[{t, k}] = x[{t, k}] / sum end
    end, {grid = 1, block = 32}, rand(32, 16), zeros(32, 16))
    quiet(function(x, y)
      local t = arch.thread_idx()
      local sum = x[{0, t}] + x[{1, t}] + x[{2, t}] + x[{3, t}]
      for k = 0, 3 do y[{k, t}] = x[{k, t}] / sum end
    end, {grid = 1, block = 32}, rand(4, 32), zeros(4, 32))
    quiet(function(x, y)
      local t = arch.thread_idx()
      local sum = x[{0, 4 * t}] + x[{0, 4 * t + 1}] + x[{0, 4 * t + 2}]
        + x[{0, 4 * t + 3}]
      for k = 0, 3 do y[{0, 4 * t + k}] = x[{0, 4 * t + k}] / sum end
    end, {grid = 1, block = 32}, rand(1, 128), zeros(1, 128))
  end)

  it("partial sums that are stored for another kernel", function()
    quiet(function(x, y)
      local t, b, sum = arch.thread_idx(), arch.block_idx(), 0.0
      for k in cute.range(t, 256, 32) do sum = sum + x[{b, k}] end
      y[{b, t}] = sum * 0.5
    end, {grid = 2, block = 32}, rand(2, 256), zeros(2, 32))
  end)
end)

describe("no note tells of a scan", function()
  -- A lane without a source lane gets its own value, which does not change its
  -- maximum. So these lanes may be omitted in any steps, here in the last one.
  it("by maxima", function()
    quiet(function(x, y)
      local lane = arch.thread_idx()
      local v = x[lane]
      for _, d in ipairs {1, 2, 4, 8} do
        v = cute.max(v, arch.shuffle_sync_up(v, d))
      end
      local last = cute.max(v, arch.shuffle_sync_up(v, 16))
      y[lane] = cute.where(cute.ge(lane, 16), last, v)
    end, {grid = 1, block = 32}, cute.rand({32}, cute.f32),
      cute.zeros({32}, cute.f32))
  end)
end)
-- SPDX-License-Identifier: MIT
