--- Forward convolution as an implicit GEMM on mma.sync: y = x * w, channels
-- last.
--
--     local conv = conv2d {stride = 2, padding = 1}
--     local y = cute.empty(conv.shape(x, w), cute.bf16)
--     conv.kernel(x, w, y):launch {grid = conv.grid(y), block = conv.block}
--
-- The image x is (N,H,W,C), the filters w are (K,R,S,C), and the result y is
-- (N,P,Q,K), for N images, C channels and K filters. The extents can have any
-- size. In the GEMM, A is a view of x. Its layout has nested modes: a row for
-- each pixel (q,p,n) of y, and a column for each tap (c,s,r) of a filter. A
-- contains each element of x up to R S times, so x is loaded through L1.
-- Predicates, one bit for each row and tap, exclude the padding. B is w and C
-- is y.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local gemm_sm80 = require "kernels.gemm_sm80"

-- Returns option x as a pair {rows, columns}. A number applies to both.
local function pair(x, default)
  if type(x) == "table" then return x end
  return {x or default, x or default}
end

-- Returns a matrix with the given layout. If its rows are equally spaced, the
-- nested modes of the rows become one mode.
local function matrix(iterator, shape, stride)
  return cute.make_tensor(iterator, cute.make_layout(
    cute.coalesce(cute.make_layout(shape[1], stride[1])),
    cute.make_layout(shape[2], stride[2])))
end

-- Returns the shape and the strides of the columns of A and of B, (C,S,R). If
-- BK divides C, the shape is (BK,(S,R,C/BK)): tiles of BK channels at one tap.
-- Consecutive tiles have the same channels at different taps, so L1 still holds
-- their data, and the coordinates of a tile need no divisions.
local function columns(BK, shape, stride)
  local C, S, R = table.unpack(shape)
  local c, s, r = table.unpack(stride)
  if not math.type(C) or C % BK ~= 0 then return shape, stride end
  return {BK, {S, R, C // BK}}, {c, {s, r, c * BK}}
end

-- Reports whether several taps each read nearly all of x, so that x should stay
-- in L1.
local function read_again(o, taps)
  return o.stride[1] == 1 and o.stride[2] == 1
    and not (math.type(taps) and taps == 1)
end

-- Returns a function of a tap's index t along one axis. Bit i - 1 of the result
-- is set if position at[i] + t * step is inside the image, from 0 to extent -
-- 1. If the bits of all taps fit into one word, they are computed once.
local function inside(at, taps, step, extent)
  local function bits(t)
    local word = 0
    for i, x in ipairs(at) do
      -- As u32, a negative position exceeds the extent, so one comparison
      -- suffices.
      local there = cute.lt((x + t * step):to(cute.u32), extent)
      word = word | cute.where(there, 1 << i - 1, 0)
    end
    return word
  end
  if not taps or taps * #at > 31 then return bits end
  local all = 0
  for t = 0, taps - 1 do all = all | bits(t) << t * #at end
  return function(t) return all >> t * #at end
end

-- Returns a function that makes the predicate of A for a list `rows` of rows.
-- The predicate (k, i) reports whether the element of A in row rows[i] and
-- column k is inside x, and not in the padding. k is a column's index or, for
-- the layout of tiles (see columns), its coordinates {s, r, ...}.
local function valid_of(o, x, w, y)
  local P, Q = y.shape[2], y.shape[3]
  local R, S, C = w.shape[2], w.shape[3], w.shape[4]
  local stride, step, pad = o.stride, o.dilation, o.padding
  local taps = math.type(R) and math.type(S) and math.max(R, S)
  -- The number of rows of A whose bits fit into one word. A row needs `taps`
  -- bits; a word provides 31.
  local some = math.max(31 // (taps or 1), 1)
  return function(rows)
    local words = {}
    for first = 1, #rows, some do
      local p, q = {}, {}
      for i = 1, math.min(some, #rows - first + 1) do
        local m = rows[first + i - 1]
        p[i] = m // Q % P * stride[1] - pad[1]
        q[i] = m % Q * stride[2] - pad[2]
      end
      words[#words + 1] = {down = inside(p, taps, step[1], x.shape[2]),
                           across = inside(q, taps, step[2], x.shape[3])}
    end
    return function(k, i)
      local tile = type(k) == "table"
      local s = tile and k[1] or k // C % S
      local r = tile and k[2] or k // (C * S)
      local word = words[(i - 1) // some + 1]
      return cute.ne(word.down(r) & word.across(s) & 1 << (i - 1) % some, 0)
    end
  end
end

-- Returns a view of x as the matrix A (M,K) of the GEMM. The view includes
-- elements of the padding, which predicates exclude.
local function im2col(o, x, w, y)
  local N, P, Q = table.unpack(y.shape)
  local _, R, S, C = table.unpack(w.shape)
  local image, row, column, channel = table.unpack(x.stride)
  local stride, step, pad = o.stride, o.dilation, o.padding
  local shape, strides = columns(o.BK, {C, S, R},
    {channel, column * step[2], row * step[1]})
  return matrix(x.iterator + row * -pad[1] + column * -pad[2],
    {{Q, P, N}, shape},
    {{column * stride[2], row * stride[1], image}, strides})
end

--- Returns a table: `kernel`, with arguments (x, w, y), or (x, w, y, ...) with
-- an epilogue; its launch parameters grid(y) and `block`; and the function
-- shape(x, w), which returns the shape of y.
---@param options? table {stride: integer|integer[]?, padding:
-- integer|integer[]?, dilation: integer|integer[]?} and the options of
-- kernels.gemm_sm80
---@return {kernel: any, shape: function, grid: function, block: integer}
return function(options)
  local o, rest = rules.shared("conv2d", options, {},
    "stride padding dilation", rules.GEMM)
  o.stride, o.padding = pair(o.stride, 1), pair(o.padding, 0)
  o.dilation = pair(o.dilation, 1)
  local gemm = gemm_sm80(rest)
  o.BK = gemm.tile[3]
  local conv = {block = gemm.block}

  function conv.shape(x, w)
    local out = {x.shape[1], 0, 0, w.shape[1]}
    for i = 1, 2 do
      local reach = o.dilation[i] * (w.shape[i + 1] - 1) + 1
      out[i + 1] = (x.shape[i + 1] + 2 * o.padding[i] - reach) // o.stride[i]
        + 1
      rules.need(not math.type(out[i + 1]) or out[i + 1] > 0, "conv2d",
        "filters of (%s,%s) do not fit into (%s,%s)", w.shape[2], w.shape[3],
        x.shape[2], x.shape[3])
    end
    return out
  end

  function conv.grid(y)
    local s = y.shape
    return gemm.grid(s[1] * s[2] * s[3], s[4])
  end

  conv.kernel = cute.kernel(o.name or "conv2d", {min_blocks = o.min_blocks},
    function(x, w, y, ...)
      rules.same("conv2d", "C of x", x.shape[4], "of w", w.shape[4])
      for i, extent in ipairs(conv.shape(x, w)) do
        rules.same("conv2d", "extent " .. i .. " of y", y.shape[i],
                   "to be", extent)
      end
      local s, d = w.shape, w.stride
      local shape, strides = columns(o.BK, {s[4], s[3], s[2]},
                                     {d[4], d[3], d[2]})
      local B = matrix(w.iterator, {s[1], shape}, {d[1], strides})
      local padded = o.padding[1] ~= 0 or o.padding[2] ~= 0
      local way = {valid = padded and valid_of(o, x, w, y) or nil,
                   cached = read_again(o, s[2]) or read_again(o, s[3])}
      s, d = y.shape, y.stride
      local C = matrix(y.iterator, {{s[3], s[2], s[1]}, s[4]},
                       {{d[3], d[2], d[1]}, d[4]})
      gemm.run(im2col(o, x, w, y), B, C, way, ...)
    end)
  return conv
end
-- SPDX-License-Identifier: MIT
