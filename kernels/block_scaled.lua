--- Converts matrices to and from formats in which the elements of a block of a
-- row share a scale factor: the MX formats of the OCP specification, and NVFP4.
--
--     local to = block_scaled.quantize {format = "mxfp4", n = 4096}
--     to.kernel(X, Q, S):launch {grid = to.grid(m), block = to.block}
--     local from = block_scaled.dequantize {format = "mxfp4", n = 4096}
--     from.kernel(Q, S, Y):launch {grid = from.grid(m), block = from.block}
--
-- X and Y (M,N) are matrices of floats, and Q (M,N) has elements of the format.
-- S holds the scale factors. N is a multiple of the block's size. The elements
-- of a block represent the values S * Q. With scale = true, the last argument
-- is a global scale of one f32, and the values are S * Q * scale.
--
-- Let amax be the largest magnitude of a block of X, and emax the exponent of
-- the largest power of two that the element type has.
-- - MX formats: S is 2^(floor(log2(amax)) - emax), but at least 2^-127, as
--   ue8m0. Q is X / S.
-- - NVFP4: S is amax / 6 / scale, rounded to e4m3, or 0 if amax is 0. Q is
--   X / (S * scale), or 0 if S is 0.
--
-- Elements are rounded to nearest even and saturate. The factor of a block with
-- an infinity or a NaN is a NaN.
--
-- By default, S (M,N/block) is row-major. With tiled = true it has the layout
-- that cuBLAS expects, (L,M/128,N/block/4,32,4,4), where M/128 and N/block/4
-- are rounded up. In memory, 16 adjacent factors are the 4 factors of each of
-- the rows r, r + 32, r + 64 and r + 96. X, Q and Y then have the rows of L
-- matrices; `rows` is the number of rows of each. The factors of a tile outside
-- the matrix are 0.
local core = require "cute.core"
local cute = require "cute"
local rules = require "kernels.operand_rules"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"

local _ = cute._

local block_scaled = {}

local BLOCK = 128                   -- threads of a block
local TILE_ROWS, TILE_BLOCKS = 128, 4
local NAN_MX, NAN_E4M3 = 0xff, 0x7f
local LARGEST = 6                   -- largest number of e2m1

--- The formats by name.
-- - dtype: the type of an element.
-- - factor: the type of a scale factor (ue8m0 when absent).
-- - size: the number of elements that share a factor (32 when absent).
-- - emax: see the top of this file.
block_scaled.FORMATS = {
  mxfp8_e4m3 = {dtype = cute.e4m3, emax = 8},
  mxfp8_e5m2 = {dtype = cute.e5m2, emax = 15},
  mxfp6_e3m2 = {dtype = cute.e3m2, emax = 4},
  mxfp6_e2m3 = {dtype = cute.e2m3, emax = 2},
  mxfp4 = {dtype = cute.e2m1, emax = 2},
  nvfp4 = {dtype = cute.e2m1, factor = cute.e4m3, size = 16},
}
local names = {}
for name, f in pairs(block_scaled.FORMATS) do
  f.factor, f.size = f.factor or cute.ue8m0, f.size or 32
  names[#names + 1] = name
end
table.sort(names)
--- The names of the formats, for messages.
block_scaled.NAMES = table.concat(names, ", ")

--- Returns the name of the format whose elements and factors have these types;
-- nil if there is none.
---@param dtype cute.DType
---@param factor cute.DType
---@param size? integer elements of a block, if known
---@return string?
function block_scaled.of(dtype, factor, size)
  for name, f in pairs(block_scaled.FORMATS) do
    if f.dtype == dtype and f.factor == factor and (size or f.size) == f.size
      then return name end
  end
end

--- Returns the layout (rows,blocks) of factors in tiles of 128 x 4, as cuBLAS
-- expects them.
---@param rows integer
---@param blocks integer
---@return cute.Layout
function block_scaled.layout(rows, blocks)
  local down, along = tiles.count(rows, TILE_ROWS),
    tiles.count(blocks, TILE_BLOCKS)
  return cute.make_layout({{32, 4, down}, {4, along}},
                          {{16, 4, 512 * along}, {1, 512}})
end

--- Returns the extents of a tensor with the factors of `count` matrices in
-- tiles.
---@param count integer
---@param rows integer
---@param blocks integer
---@return integer[]
function block_scaled.tiled(count, rows, blocks)
  return {count, tiles.count(rows, TILE_ROWS),
          tiles.count(blocks, TILE_BLOCKS), 32, 4, 4}
end

-- Returns the ue8m0 code of an mx block's factor, and a function that divides
-- an element by the factor. `most` is the largest magnitude of the block, as
-- the bits of an f32.
local function mx(f, most)
  local exponent = most >> 23
  local code = cute.where(cute.eq(exponent, 255), NAN_MX,
                          cute.max(exponent - f.emax, 0))
  -- 1 / factor: the exponent 127 - (code - 127) with the bias 127
  local by = (cute.max(254 - code, 1) << 23):bitcast(cute.f32)
  return code, function(x) return x * by end
end

-- Returns the e4m3 code of an nv block's factor, and a function that divides an
-- element by the factor. `most` is the largest magnitude of the block, as the
-- bits of an f32. `scale` is the matrix's global scale, or nil.
local function nv(_, most, scale)
  local share = most:bitcast(cute.f32) / LARGEST
  -- The global scale of a matrix of zeros may be 0.
  if scale then
    share = cute.where(cute.eq(most, 0), 0.0, share / scale)
  end
  local s = share:to(cute.e4m3)
  local code = cute.where(cute.ge(most, 0x7f800000), NAN_E4M3,
                          s:bitcast(cute.u8):to(cute.i32))
  local factor = s:to(cute.f32)
  if scale then factor = factor * scale end
  local zero = cute.eq(factor, 0)
  return code, function(x)
    return cute.where(zero, 0.0, x / cute.where(zero, 1.0, factor))
  end
end

local function new(what, o)
  rules.options(what, o, "format n rows tiled scale")
  rules.given(what, o, "n")
  local f = block_scaled.FORMATS[o.format]
  rules.need(f, what, "no format %s; formats are %s", core.show(o.format),
             block_scaled.NAMES)
  rules.need(not o.scale or o.format == "nvfp4", what, "scale = true with %s; "
    .. "only nvfp4 has a global scale", o.format)
  rules.need(o.n % f.size == 0, what, "rows of %d elements; a multiple of %d "
    .. "is needed", o.n, f.size)
  local blocks = o.n // f.size
  -- The extents of S for one matrix. They include factors outside the matrix.
  local high, wide = 1, blocks
  if o.tiled then
    rules.given(what, o, "rows")
    high = tiles.count(o.rows, TILE_ROWS) * TILE_ROWS
    wide = tiles.count(blocks, TILE_BLOCKS) * TILE_BLOCKS
  end
  local self = {block = BLOCK}

  --- Returns the grid. m: the number of rows of all matrices together.
  function self.grid(m)
    local rows = o.tiled and m // o.rows * high or m
    return {tiles.count(rows * wide, BLOCK), 1, 1}
  end

  -- Handles this thread's block b of row `row`: calls each(row, b, place),
  -- where place is the coordinate of the block's factor. If the factor is
  -- outside the matrix, calls outside(place) instead. m: the number of rows of
  -- all matrices.
  local function of_thread(m, each, outside)
    local at = cute.arch.block_idx() * BLOCK + (cute.arch.thread_idx())
    local row, b = at // wide, at % wide
    local all = o.tiled and m // o.rows * high or m
    cute.when(cute.lt(at, all * wide), function()
      if not o.tiled then return each(row, b, {row, b}) end
      local l, r = row // high, row % high
      local place = {l, r // TILE_ROWS, b // TILE_BLOCKS, r % 32,
                     r % TILE_ROWS // 32, b % TILE_BLOCKS}
      local inside = cute.lt(r, o.rows) & cute.lt(b, blocks)
      cute.when(inside, function() each(l * o.rows + r, b, place) end,
                outside and function() outside(place) end)
    end)
  end
  return self, f, of_thread
end

-- Returns block b of row `row` of matrix t.
local function block_of(t, f, row, b)
  return cute.local_tile(t, {1, f.size}, {row, b})(0, _)
end

--- Makes the kernel that converts X (M,N) to elements Q and factors S: {kernel,
-- block, grid(m)}.
---@param o table {format = string, n = integer, tiled = boolean?, rows =
-- integer?, scale = boolean?}
---@return table
function block_scaled.quantize(o)
  local self, f, of_thread = new("block_scaled.quantize", o)
  local factor = f.emax and mx or nv
  self.kernel = cute.kernel("to_" .. o.format, {block = BLOCK},
    function(X, Q, S, scale)
      local codes = cute.recast_tensor(S, cute.u8)
      local g = o.scale and scale[0] or nil
      of_thread(X.shape[1], function(row, b, place)
        local x = cute.make_rmem_tensor({f.size}, X.element_type)
        cute.autovec_copy(block_of(X, f, row, b), x)
        local y = cute.make_rmem_tensor({f.size}, cute.f32)
        y:store(x:load():to(cute.f32))
        local most = y[0]:bitcast(cute.i32) & 0x7fffffff
        for i = 1, f.size - 1 do
          most = cute.max(most, y[i]:bitcast(cute.i32) & 0x7fffffff)
        end
        local code, scaled = factor(f, most, g)
        codes[place] = code:to(cute.u8)
        for i = 0, f.size - 1 do y[i] = scaled(y[i]) end
        local q = cute.make_rmem_tensor({f.size}, f.dtype)
        q:store(y:load():to(f.dtype))
        cute.autovec_copy(q, block_of(Q, f, row, b))
      end, function(place) codes[place] = 0 end)
    end)
  return self
end

--- Makes the kernel that converts elements Q and factors S to Y (M,N): {kernel,
-- block, grid(m)}.
---@param o table as for block_scaled.quantize
---@return table
function block_scaled.dequantize(o)
  local self, f, of_thread = new("block_scaled.dequantize", o)
  self.kernel = cute.kernel("from_" .. o.format, {block = BLOCK},
    function(Q, S, Y, scale)
      of_thread(Q.shape[1], function(row, b, place)
        local q = cute.make_rmem_tensor({f.size}, f.dtype)
        cute.autovec_copy(block_of(Q, f, row, b), q)
        local y = q:load():to(cute.f32) * S[place]:to(cute.f32)
        if o.scale then y = y * scale[0] end
        local out = cute.make_rmem_tensor({f.size}, Y.element_type)
        out:store(y:to(Y.element_type))
        cute.autovec_copy(out, block_of(Y, f, row, b))
      end)
    end)
  return self
end

--- Maps the name of each narrower type to an 8-bit type that represents all of
-- its values.
block_scaled.WIDER = {e3m2 = cute.e5m2, e2m3 = cute.e4m3, e2m1 = cute.e4m3}

--- Makes the kernel that converts elements Q (M,N) of 6 or 4 bits to elements Y
-- (M,N) of 8 bits with the same values: {kernel, block, grid(m)}. N must be a
-- multiple of the block's size.
---@param o table {format = string, n = integer}
---@return table
function block_scaled.widen(o)
  local self, f, of_thread = new("block_scaled.widen", o)
  local wide = block_scaled.WIDER[f.dtype.name]
  self.kernel = cute.kernel("widen_" .. o.format, {block = BLOCK},
    function(Q, Y)
      of_thread(cute.size(Q, 0), function(row, b)
        local q = cute.make_rmem_tensor({f.size}, f.dtype)
        cute.autovec_copy(block_of(Q, f, row, b), q)
        local y = cute.make_rmem_tensor({f.size}, wide)
        y:store(q:load():to(wide))
        cute.autovec_copy(y, block_of(Y, f, row, b))
      end)
    end)
  return self
end

--- Makes the kernel that copies factors S (M,N/block[,L]), with any strides, to
-- tiles T: {kernel, block, grid(m)}, where m counts the rows of all L matrices.
---@param o table {format = string, n = integer, rows = integer}
---@return table
function block_scaled.arrange(o)
  local self, _, of_thread = new("block_scaled.arrange", {format = o.format,
    n = o.n, rows = o.rows, tiled = true})
  self.kernel = cute.kernel("arrange_" .. o.format, {block = BLOCK},
    function(S, T)
      local from, to = cute.recast_tensor(S, cute.u8),
        cute.recast_tensor(T, cute.u8)
      local matrices = cute.rank(S) > 2
      local m = o.rows * (matrices and cute.size(S, 2) or 1)
      of_thread(m, function(row, b, place)
        to[place] = matrices and from(row % o.rows, b, row // o.rows)
          or from(row, b)
      end, function(place) to[place] = 0 end)
    end)
  return self
end

return sign.module("kernels.block_scaled", block_scaled)
-- SPDX-License-Identifier: MIT
