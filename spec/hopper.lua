--- Helpers for specs of kernels/gemm_sm90. They choose configurations and
-- sizes, fill operands with small whole numbers, and compute the expected
-- products on the host.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"

local hopper = {}

--- Returns a matrix whose rows begin at multiples of 16 bytes; with m_major,
-- its columns begin there.
function hopper.matrix(rows, cols, seed, dtype, m_major)
  local t = core.find_dtype(tostring(dtype or "bf16"))
  local lead = (m_major and rows or cols) + 15 & ~15
  local b = core.buffer(t, (m_major and cols or rows) * lead)
  if seed then b:fill_int(seed, t == core.u8 and 0 or -3, 3)
  elseif t.is_integer then b:fill(77)
  else b:fill(0 / 0) end
  return cute.make_tensor(b, cute.make_layout({rows, cols},
    m_major and {1, lead} or {lead, 1}))
end

-- Returns the strides of a matrix, whose offset in its buffer must be 0.
local function strides(t) return {t.stride[1], t.stride[2]} end

--- Returns a function of row and column that gives the elements of A B^T.
function hopper.product(A, B)
  local m, n, k = A.shape[1], B.shape[1], A.shape[2]
  local ref = core.gemm_reference(core.param_memory(A), core.param_memory(B),
    core.buffer("f64", m * n), m, n, k,
    {a = strides(A), b = strides(B)}):list()
  return function(i, j) return ref[i * n + j + 1] end
end

--- Describes the first element (i, j) of D that differs from want(i, j).
function hopper.differs(D, want)
  local values, r, c = core.param_memory(D):list(), table.unpack(strides(D))
  for i = 0, D.shape[1] - 1 do
    for j = 0, D.shape[2] - 1 do
      local x, y = values[i * r + j * c + 1], want(i, j)
      if x ~= y then
        return ("(%d,%d) is %s, not %s"):format(i, j, x, y)
      end
    end
  end
end

local cell = core.buffer("bf16", 1)
--- Returns the bf16 number nearest to x.
function hopper.rounded(x)
  cell[0] = x
  return cell[0]
end

hopper.PING = {tile = {128, 128, 64}, stages = 3, schedule = "pingpong"}
--- Configurations of kernels/gemm_sm90: every schedule, cluster, tile order and
-- type.
hopper.CASES = {
  {"cooperative", {stages = 3}},
  {"one consumer", {tile = {64, 32, 128}, consumers = 1, d_major = "m"}},
  {"a cluster of 2 x 1", {tile = {128, 256, 64}, cluster = {2, 1}, stages = 3}},
  {"a cluster of 1 x 2", {tile = {128, 64, 64}, cluster = {1, 2}, stages = 2,
                          d_major = "m"}},
  {"a cluster of 2 x 2", {tile = {128, 64, 64}, cluster = {2, 2}, stages = 2}},
  {"turns", hopper.PING},
  {"turns in a cluster", {tile = {64, 64, 64}, stages = 4, cluster = {1, 2},
                          schedule = "pingpong", d_major = "m"}},
  {"registers passed on", {tile = {256, 208, 64}, stages = 3, epi_stages = 1,
                           cluster = {1, 2}, d_major = "m"}},
  {"K in halves", {tile = {128, 128, 64}, stages = 3, split = 2}},
  {"K in thirds", {tile = {128, 192, 64}, stages = 2, split = 3,
                   epi_stages = 1}},
  {"K in quarters", {tile = {64, 128, 64}, consumers = 1, stages = 3,
                     split = 4, d_major = "m"}},
  {"stream-K", {tile = {128, 64, 64}, stages = 3, split = "stream",
                least = 1}},
  {"stream-K in a cluster", {tile = {128, 128, 64}, stages = 3, least = 1,
    cluster = {2, 1}, split = "stream", d_major = "m"}},
  {"stream-K, registers passed on", {tile = {256, 208, 64}, stages = 3,
    epi_stages = 1, cluster = {1, 2}, split = "stream", least = 2}},
  {"stream-K of i8", {tile = {64, 96, 128}, consumers = 1, split = "stream",
                      dtype = cute.i8, least = 1}},
  {"stream-K, equal parts", {tile = {128, 64, 64}, stages = 3,
                             split = "stream", equal = 3}},
  {"tiles by a counter", {tile = {128, 64, 64}, stages = 3,
                          scheduler = "dynamic"}},
  {"turns, tiles by a counter", {tile = {64, 64, 64}, stages = 4,
    schedule = "pingpong", scheduler = "dynamic", d_major = "m"}},
  {"tiles by a counter in a cluster", {tile = {128, 64, 64}, stages = 3,
    cluster = {1, 2}, scheduler = "dynamic"}},
  {"M contiguous", {tile = {128, 64, 64}, a_major = "m", stages = 3}},
  {"N contiguous", {tile = {128, 208, 64}, b_major = "n", stages = 2}},
  {"M and N contiguous in a cluster", {tile = {128, 128, 64}, a_major = "m",
    b_major = "n", cluster = {2, 1}, stages = 3, dtype = cute.f16}},
  {"M and N contiguous, K in halves", {tile = {128, 128, 64}, a_major = "m",
    b_major = "n", stages = 3, split = 2}},
  {"f16", {tile = {64, 64, 64}, consumers = 1, dtype = cute.f16}},
  {"e4m3", {tile = {128, 64, 128}, dtype = cute.e4m3, d_dtype = cute.f32}},
  {"e5m2 x e4m3, promoted", {tile = {64, 64, 128}, consumers = 1, promote = 2,
    a_dtype = cute.e5m2, b_dtype = cute.e4m3, d_dtype = cute.f32}},
  {"e4m3, promoted by halves of a warpgroup's rows", {tile = {256, 64, 128},
    stages = 3, dtype = cute.e4m3, promote = 1, cluster = {1, 2}}},
  {"tf32", {tile = {128, 64, 32}, dtype = cute.f32, d_major = "m"}},
  {"i8", {tile = {128, 64, 128}, dtype = cute.i8, schedule = "pingpong",
          stages = 3}},
  {"u8 x i8", {tile = {64, 96, 128}, consumers = 1, a_dtype = cute.u8,
               b_dtype = cute.i8}},
  {"behind another launch", {tile = {128, 64, 64}, cluster = {1, 2}, pdl = true,
                             d_dtype = cute.f32}},
  {"D in parts of 48 columns", {tile = {128, 144, 64}, epi = {64, 48},
                                stages = 3}},
  {"a block a tile", {tile = {64, 128, 64}, consumers = 1, persistent = false,
                      d_major = "m"}},
  {"a block a tile, along N", {tile = {64, 64, 64}, consumers = 1,
    persistent = false, raster_along_m = true}},
  {"K in halves, along N", {tile = {128, 64, 64}, stages = 3, split = 2,
                            raster_along_m = true}},
  {"a block a tile, clusters, L2's hints", {
    tile = {128, 64, 64}, cluster = {2, 1}, stages = 2, persistent = false,
    a_hint = cute.nvgpu.cpasync.CacheHint.EVICT_LAST, l2_promotion = 256,
    b_hint = cute.nvgpu.cpasync.CacheHint.EVICT_FIRST,
    d_hint = cute.nvgpu.cpasync.CacheHint.EVICT_FIRST}},
  {"rows of D that no swizzle fits", {tile = {64, 72, 64}, consumers = 1}},
  {"the same of a wide tile", {tile = {256, 200, 64}, stages = 3,
                               epi_stages = 1}},
  {"the same in parts", {tile = {128, 208, 64}, stages = 3, epi = {64, 104}}},
  {"three consumers", {tile = {192, 64, 64}, consumers = 3, stages = 3,
                       a_major = "m"}},
  {"three consumers, registers passed on", {tile = {192, 192, 64},
    consumers = 3, stages = 2, epi_stages = 1, cluster = {1, 2},
    d_major = "m"}},
}

--- Twelve sizes {M, N, K}. Each case uses three of them in rotation, so that
-- all sizes are covered.
hopper.SIZES = {
  {128, 128, 128}, {200, 104, 264}, {1, 1, 128}, {257, 129, 72},
  {64, 300, 130}, {300, 64, 65}, {129, 257, 200}, {511, 40, 128},
  {40, 511, 136}, {320, 320, 70}, {127, 255, 129}, {256, 16, 512},
}

--- Describes the first mistake of a configuration at a size, or returns nil.
---@param g table a result of gemm_sm90
---@param size integer[] {M, N, K}
---@param device string
---@param seed integer of the schedule and of the numbers
---@return string?
function hopper.wrong_at(g, size, device, seed)
  local o, m, n, k = g.options, table.unpack(size)
  k = math.max(k, 64 * o.split + 8)
  local A = hopper.matrix(m, k, seed, o.a_dtype, o.a_major == "m")
  local B = hopper.matrix(n, k, seed + 9, o.b_dtype, o.b_major == "n")
  local D = hopper.matrix(m, n, nil, o.d_dtype, o.d_major == "m")
  local ok, why = g.prepare(A, B, D, {device = device, sms = 4,
    seed = seed}):launch {faults = "return"}
  if not ok then return why end
  local want = hopper.product(A, B)
  local wrong = hopper.differs(D, function(x, y)
    return o.d_dtype == cute.bf16 and hopper.rounded(want(x, y))
      or want(x, y)
  end)
  return wrong and ("%dx%dx%d: %s"):format(m, n, k, wrong)
end

--- Describes the first mistake of configuration `number` at three of the sizes,
-- or returns nil.
---@param number integer of CASES
---@param device string
---@return string?
function hopper.wrong(number, device)
  local g, sizes = gemm_sm90(hopper.CASES[number][2]), hopper.SIZES
  for i = 1, 3 do
    local wrong = hopper.wrong_at(g, sizes[(number * 3 + i * 5) % #sizes + 1],
                                  device, i)
    if wrong then return wrong end
  end
end

return hopper
-- SPDX-License-Identifier: MIT
