--- Converts tensors between types, and to and from formats whose blocks of
-- elements share a scale factor (kernels/block_scaled.lua).
local block_scaled = require "kernels.block_scaled"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local modes = require "cute.ops.modes"
local rowwise = require "cute.ops.rowwise"
local tensor_op = require "cute.ops.tensor_op"

local convert = {}

local FORMATS = block_scaled.FORMATS

-- Raises an error unless each row of t has whole blocks of format f.
local function check_blocks(call, name, t, n, format)
  local size = FORMATS[format].size
  if n % size ~= 0 then
    call:fail("%s is %s; rows of %s need a multiple of %d elements", name,
              t.layout, format, size)
  end
end

-- Returns the extents of the scale factors of a tensor whose extents are
-- `shape`.
local function factor_shape(shape, format, tiled)
  local out = table.move(shape, 1, #shape, 1, {})
  local blocks = shape[#shape] // FORMATS[format].size
  out[#shape] = blocks
  if not tiled then return out end
  local rows = #shape > 1 and shape[#shape - 1] or 1
  local tile = block_scaled.tiled(1, rows, blocks)
  return table.move(tile, 2, #tile, math.max(#shape - 1, 1), out)
end

-- Returns a view of the scale factors S with the modes that kernels expect: a
-- matrix or, if the factors are tiled, one batch mode before the tile's modes.
local function factors_of(S, tiled)
  if not tiled then return rowwise.matrix(S) end
  local rank, count, shape = cute.rank(S), 1, S.shape
  for i = 1, rank - 5 do count = count * shape[i] end
  return cute.make_tensor(S.iterator, cute.make_layout(
    {count, table.unpack(shape, rank - 4)}, cute.LayoutRight))
end

-- Returns the options of a kernel for a tensor (...,M,N).
local function options_of(t, format, tiled, scale)
  local shape = modes.extents(t.layout)
  return {format = format, n = shape[#shape], tiled = tiled or nil,
          rows = tiled and (#shape > 1 and shape[#shape - 1] or 1) or nil,
          scale = scale ~= nil or nil}
end

-- Checks the global scale of a call, if it has one.
local function check_scale(call, format)
  local s = call.scale
  if s and format ~= "nvfp4" then
    call:fail("only nvfp4 has a global scale, %s does not", format)
  end
  if s and (cute.size(s) ~= 1 or s.element_type ~= cute.f32) then
    call:fail("scale is %s of %s; a number or one element of f32 is needed",
              s.layout, s.element_type)
  end
end

-- Returns the list of a kernel's arguments, with the global scale, if any.
local function list_of(call, A, B, C)
  local s = call.scale and rowwise.vector(call.scale)
  return {A, B, C, s, n = s and 4 or 3}
end

local quantize = rowwise.operation("ops.convert", {names = {"x"},
  options = {format = "string", tiled = "boolean"}, tensors = {"scale"},
  flat = "scale", narrow = true, plan = function(call)
    local x, format, tiled = call.x, call.o.format, call.o.tiled
    call:floats("x", x)
    check_scale(call, format)
    local shape, _, m, n = rowwise.extents(x)
    check_blocks(call, "x", x, n, format)
    local f = FORMATS[format]
    local p = call:start(1, {{shape = shape, dtype = f.dtype},
      {shape = factor_shape(shape, format, tiled), dtype = f.factor}})
    if m * n == 0 then return p end
    local k = block_scaled.quantize(options_of(x, format, tiled, call.scale))
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return list_of(now, rowwise.matrix(now.x), rowwise.matrix(out[1]),
                     factors_of(out[2], tiled))
    end)
    return p
  end})

local dequantize = rowwise.operation("ops.convert", {names = {"x"},
  tensors = {"factors", "scale"}, flat = "factors scale", narrow = true,
  plan = function(call)
    local x, S = call.x, call.factors
    local format = block_scaled.of(x.element_type, S.element_type)
    if not format then
      call:fail("x has type %s and its scale factors have type %s; no "
                .. "block-scaled format has both",
                x.element_type, S.element_type)
    end
    check_scale(call, format)
    local shape, _, m, n = rowwise.extents(x)
    check_blocks(call, "x", x, n, format)
    local tiled = cute.rank(S) == math.max(#shape, 2) + 3
    local want = factor_shape(shape, format, tiled)
    if not modes.has(S.layout, want) then
      call:fail("factors is %s; extents (%s) are needed for x, which is %s",
                S.layout, table.concat(want, ","), x.layout)
    end
    local dtype = tensor_op.dtype("ops.convert", call.o)
    local p = call:start(1, {{shape = shape, dtype = dtype}})
    if not (dtype == cute.f32 or dtype == cute.f16 or dtype == cute.bf16) then
      call:fail("dtype = %s; with factors, bf16, f16 or f32 is needed", dtype)
    end
    if m * n == 0 then return p end
    local k = block_scaled.dequantize(options_of(x, format, tiled, call.scale))
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return list_of(now, rowwise.matrix(now.x), factors_of(now.factors, tiled),
                     rowwise.matrix(out[1]))
    end)
    return p
  end})

-- Returns the options o, extended by those of `more`. Replaces the option
-- `scale`, if it is a number, by a tensor on the device of x.
local function with_scale(x, o, more)
  local all = tensor_op.with(o, more)
  if type(all.scale) == "number" then
    all.scale = cute.full({1}, all.scale + 0.0, cute.f32, {device = x.device})
  end
  return all
end

--- Converts x to another type or format. A format such as "mxfp4" has one scale
-- factor for each block of a row. For such a format, returns the elements and
-- the factors. To convert from such a format, pass the option `factors`. See
-- docs/ops.md.
---@param x any
---@param dtype any a type, or the name of a format
---@param o? table
---@return any
---@return any? factors
function convert.convert(x, dtype, o)
  if FORMATS[dtype] then
    return quantize(x, with_scale(x, o, {format = dtype}))
  elseif o and o.factors then
    return dequantize(x, with_scale(x, o, {dtype = dtype}))
  end
  return elementwise.convert(x, dtype, o)
end

return convert
-- SPDX-License-Identifier: MIT
