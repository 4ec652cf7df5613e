--- Convolution forward as an implicit GEMM on mma.sync: y = x * w, channels
-- last.
--
--     local conv = conv2d {stride = 2, padding = 1}
--     local y = cute.empty(conv.shape(x, w), cute.bf16)
--     conv.kernel(x, w, y):launch {grid = conv.grid(y), block = conv.block}
--
-- x (N,H,W,C), w (K,R,S,C) and y (N,P,Q,K), of any size. Of the product that it
-- is, A is x with a row for each pixel (q,p,n) of y and a column for each tap
-- (c,s,r) of a filter: a layout of nested modes, where elements of x come up
-- R S times; what pads x is left out by a predicate. B is w and C is y.
local cute = require "cute"
local check = require "kernels.check"
local gemm_sm80 = require "kernels.gemm_sm80"

-- Along rows and columns.
local function pair(x, default)
  if type(x) == "table" then return x end
  return {x or default, x or default}
end

-- Modes that are one in memory are one in the layout.
local function matrix(t, shape, stride)
  return cute.make_tensor(t.iterator,
    cute.coalesce(cute.make_layout(shape, stride), {1, 1}))
end

-- x as A (M,K), and which of its elements there are (nil: all).
local function im2col(o, x, w, y)
  local N, P, Q = table.unpack(y.shape)
  local _, R, S, C = table.unpack(w.shape)
  local image, row, column, channel = table.unpack(x.stride)
  local stride, step, pad = o.stride, o.dilation, o.padding
  local A = cute.make_tensor(x.iterator + row * -pad[1] + column * -pad[2],
    cute.make_layout({{Q, P, N}, {C, S, R}},
      {{column * stride[2], row * stride[1], image},
       {channel, column * step[2], row * step[1]}}))
  if pad[1] == 0 and pad[2] == 0 then return A end
  return A, function(m, k)
    local p, r = m // Q % P, k // (C * S)
    local q, s = m % Q, k // C % S
    local i = p * stride[1] + r * step[1] - pad[1]
    local j = q * stride[2] + s * step[2] - pad[2]
    return cute.lt(i:to(cute.u32), x.shape[2])  -- below 0 is large
      & cute.lt(j:to(cute.u32), x.shape[3])
  end
end

--- A kernel of (x, w, y), or of (x, w, y, ...) with an epilogue, and what its
-- launch needs: grid(y) and block; shape(x, w) is that of y.
---@param options? {stride: integer|integer[]?, padding: integer|integer[]?,
-- dilation: integer|integer[]?} and what kernels.gemm_sm80 takes
---@return {kernel: any, shape: function, grid: function, block: integer}
return function(options)
  local o = {}
  for k, v in pairs(options or {}) do o[k] = v end
  o.stride, o.padding = pair(o.stride, 1), pair(o.padding, 0)
  o.dilation = pair(o.dilation, 1)
  local gemm = gemm_sm80(o)
  local conv = {block = gemm.block}

  function conv.shape(x, w)
    local out = {x.shape[1], 0, 0, w.shape[1]}
    for i = 1, 2 do
      local reach = o.dilation[i] * (w.shape[i + 1] - 1) + 1
      out[i + 1] = (x.shape[i + 1] + 2 * o.padding[i] - reach) // o.stride[i]
        + 1
      check.need(not math.type(out[i + 1]) or out[i + 1] > 0, "conv2d",
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
      check.same("conv2d", "C of x", x.shape[4], "of w", w.shape[4])
      for i, extent in ipairs(conv.shape(x, w)) do
        check.same("conv2d", "extent " .. i .. " of y", y.shape[i],
                   "to be", extent)
      end
      local A, valid = im2col(o, x, w, y)
      local s, d = w.shape, w.stride
      local B = matrix(w, {s[1], {s[4], s[3], s[2]}},
                       {d[1], {d[4], d[3], d[2]}})
      s, d = y.shape, y.stride
      local C = matrix(y, {{s[3], s[2], s[1]}, s[4]},
                       {{d[3], d[2], d[1]}, d[4]})
      gemm.run(A, B, C, {valid = valid}, ...)
    end)
  return conv
end
