--- Forward convolution for Hopper: y = x * w, channels last. Uses
-- kernels/gemm_sm90 with another tensor map for A: with this map, TMA unfolds
-- the image (im2col).
--
--     local conv = conv2d_sm90 {padding = 1, tile = {128, 128, 64}}
--     local y = cute.empty(conv.shape(x, w), cute.bf16)
--     conv.prepare(x, w, y, {device = "gpu"}):launch()
--
-- The image x is (N,H,W,C), the filters w are (K,R,S,C), and the result y is
-- (N,P,Q,K), all of bf16 or f16. There are N images, C channels and K filters.
-- In the GEMM, a row of A is a pixel of y, and a tile along K is 64 channels at
-- one position (s,r) of the filter. TMA computes the addresses of a tile's
-- pixels and writes zeros for the padding. Therefore the loop of the producer
-- is that of a GEMM. B is w and D is y, both as plain matrices.
--
-- C must be a multiple of 64, and K a multiple of 8; kernels.conv2d supports
-- other sizes. The corners of a tensor map and the offsets of a copy have 8
-- bits each. This limits the padding to 128, and the distance from a pixel to
-- the end of the filter to 255.
local conv2d = require "kernels.conv2d"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local rules = require "kernels.operand_rules"
local sign = require "cute.lang.signature"

local cpasync = cute.nvgpu.cpasync
local CHANNELS = 64  -- a tile's channels: 128 bytes, the swizzle's span

local conv2d_sm90 = {}

-- Returns option x as {along W, along H}. A number applies to both; a list is
-- given as {along H, along W}.
local function across(x, default)
  if type(x) == "table" then return {x[2], x[1]} end
  return {x or default, x or default}
end

-- Reports whether the elements of t are contiguous, with the last mode fastest.
local function contiguous(t)
  local n = 1
  for i = cute.rank(t), 1, -1 do
    if t.shape[i] > 1 and t.stride[i] ~= n then return false end
    n = n * t.shape[i]
  end
  return true
end

-- Returns the reason why TMA cannot unfold the operands x, w and y of a
-- convolution; nil if TMA can unfold them.
local function obstacle(o, x, w, y)
  local C, K = x.shape[4], y.shape[4]
  if C % CHANNELS ~= 0 then
    return ("x has %d channels; a multiple of %d is needed"):format(C, CHANNELS)
  elseif K % 8 ~= 0 then
    return ("y has %d channels; a multiple of 8 is needed"):format(K)
  end
  for name, t in pairs {w = w, y = y} do
    if not contiguous(t) then
      return ("%s is %s; contiguous elements are needed"):format(name, t.layout)
    end
  end
  if x.stride[4] ~= 1 then
    return ("x is %s; contiguous channels are needed"):format(x.layout)
  end
  for i = 1, 3 do
    if x.stride[i] % 8 ~= 0 then
      return ("x is %s; its strides must be multiples of 8"):format(x.layout)
    end
  end
  for i = 1, 2 do
    local reach = o.dilation[i] * (w.shape[4 - i] - 1)
    if o.stride[i] > 8 then
      return ("stride = %d; TMA needs 8 or less"):format(o.stride[i])
    elseif o.padding[i] > 128 or reach > 255
      or math.abs(o.padding[i] - reach) > 127 then
      return ("padding = %d with a filter that reaches %d pixels further; TMA "
        .. "needs at most 128 and 255, and a difference of at most 127"):format(
        o.padding[i], reach)
    end
  end
end

-- Returns x as the operand A (N P Q, R S C) of gemm_sm90.
local function unfolded(o, x, w, y)
  local N, H, W, C = table.unpack(x.shape)
  local R, S = w.shape[2], w.shape[3]
  local lower, upper = {}, {}
  for i, taps in ipairs {S, R} do
    lower[i] = -o.padding[i]
    upper[i] = o.padding[i] - o.dilation[i] * (taps - 1)
  end
  local image, row, column = table.unpack(x.stride)
  local tensor = cute.make_tensor(x.iterator,
    cute.make_layout({C, W, H, N}, {1, column, row, image}))
  return {tensor = tensor, element_type = x.element_type,
    shape = {cute.size(y) // y.shape[4], R * S * C},
    load = function(layout, tiler, ctas, opts)
      local op = ctas > 1 and cpasync.CopyBulkTensorIm2ColG2SMulticastOp()
        or cpasync.CopyBulkTensorIm2ColG2SOp()
      return cpasync.make_im2col_tma_atom(op, tensor, layout, tiler, lower,
        upper, lower, o.padding, o.stride, nil, o.dilation, ctas, opts)
    end}
end

-- Returns a view of the contiguous tensor t as a row-major matrix with `rows`
-- rows.
local function matrix(t, rows)
  local columns = cute.size(t) // rows
  return cute.make_tensor(t.iterator,
                          cute.make_layout({rows, columns}, {columns, 1}))
end

local function make(given)
  local rest, own = {}, {}
  for name, v in pairs(given or {}) do
    local mine = name == "stride" or name == "padding" or name == "dilation"
    if mine then own[name] = v else rest[name] = v end
  end
  rest.name = rest.name or "conv2d_sm90"
  local gemm, shape = gemm_sm90(rest), conv2d(own).shape
  local o = {stride = across(own.stride, 1), padding = across(own.padding, 0),
             dilation = across(own.dilation, 1)}
  rules.need(gemm.options.tile[3] == CHANNELS and gemm.options.a_major == "k",
    "conv2d_sm90", "tile = {%d,%d,%d}; the last extent must be %d",
    gemm.options.tile[1], gemm.options.tile[2], gemm.options.tile[3], CHANNELS)
  local conv = {kernel = gemm.kernel, block = gemm.block, shape = shape,
                cluster = gemm.cluster, options = gemm.options}

  --- Reports whether TMA can unfold these operands; if not, also returns the
  -- reason.
  ---@return boolean, string?
  function conv.takes(x, w, y)
    local why = obstacle(o, x, w, y)
    return not why, why
  end

  -- Checks the tensors x, w and y. Returns the operands A, B and D of the GEMM.
  local function operands(x, w, y)
    rules.same("conv2d_sm90", "C of x", x.shape[4], "of w", w.shape[4])
    for i, extent in ipairs(shape(x, w)) do
      rules.same("conv2d_sm90", "extent " .. i .. " of y", y.shape[i], "to be",
                 extent)
    end
    local why = obstacle(o, x, w, y)
    rules.need(not why, "conv2d_sm90", "%s (conv2d accepts any sizes)", why)
    return unfolded(o, x, w, y), matrix(w, w.shape[1]),
           matrix(y, cute.size(y) // y.shape[4])
  end

  --- Returns all arguments of the kernel, like arguments() of gemm_sm90.
  function conv.arguments(x, w, y, ...)
    local A, B, D = operands(x, w, y)
    return gemm.arguments(A, B, D, ...)
  end

  --- Returns the grid that computes y on a GPU with `sms` multiprocessors.
  function conv.grid(y, sms)
    local k = y.shape[4]
    return gemm.grid(cute.size(y) // k, k, sms, 1, y.device)
  end

  --- Prepares a launch, like prepare() of gemm_sm90.
  function conv.prepare(x, w, y, opts)
    local A, B, D = operands(x, w, y)
    return gemm.prepare(A, B, D, opts)
  end
  return conv
end

--- Returns the options that kernels.gemm_sm90 prefers for a convolution whose
-- result has m pixels of n channels, with k = R S C.
---@param m integer
---@param n integer
---@param k integer
---@param o? table stride, padding, dilation, and options of gemm_sm90
---@return table
function conv2d_sm90.choose(m, n, k, o)
  local rest, own = {}, {stride = true, padding = true, dilation = true}
  for name, v in pairs(o or {}) do rest[name] = not own[name] and v or nil end
  for _, c in ipairs(gemm_sm90.candidates(m, n, k, rest)) do
    if c.options.tile[3] == CHANNELS and c.options.split == nil then
      for name in pairs(own) do c.options[name] = o and o[name] end
      -- The options of kernels.gemm_sm90 may tell L2 to evict A early. In a
      -- convolution, however, most elements of A are read again for other taps
      -- of the filter.
      c.options.a_hint = o and o.a_hint
      return c.options
    end
  end
end

--- conv2d_sm90(options): returns a convolution with these options (see the top
-- of this file). Fields of the convolution: kernel, block, cluster, shape(x,
-- w), takes(x, w, y), arguments(x, w, y), grid(y, sms), prepare(x, w, y, opts).
setmetatable(conv2d_sm90, {__call = function(_, given) return make(given) end})

return sign.module("kernels.conv2d_sm90", conv2d_sm90)
-- SPDX-License-Identifier: MIT
