--- Operands of block-scaled formats such as NVFP4, in which the elements of a
-- block of a row share a scale factor. ops.convert makes such operands
-- (kernels/block_scaled.lua).
--
-- The factors of an operand (...,M,K) are the option scale_a or scale_b. Their
-- modes are (...,M,K/block), or (...,M/128,K/block/4,32,4,4): the tiles that
-- ops.convert makes with its option `tiled`. Without batch modes, all matrices
-- have the same factors. Kernels read tiles. A launch before the kernel copies
-- other factors to tiles.
local block_scaled = require "kernels.block_scaled"
local core = require "cute.core"
local cute = require "cute"
local host = require "kernels.gemm_sm90.host"
local operand = require "cute.ops.operand"

local formats = {}

local fail = operand.fail
local CHUNK = 512    -- the number of factors in a tile of 128 rows and 4 blocks

-- The estimated time in ns of a launch and its wait for the previous launch.
local LAUNCH = 2500

-- Reports whether the last modes of tensor x have these extents.
local function ends_with(x, extents)
  local own, rank = #extents, cute.rank(x)
  for i, n in ipairs(extents) do
    local mode = rank - own + i - 1
    if mode < 0 or cute.size(x, mode) ~= n then return false end
  end
  return true
end

-- Reports whether the tiles of one matrix in x are contiguous and begin at a
-- multiple of 16 bytes.
local function is_dense(x)
  local shape, stride, rank, at = x.shape, x.stride, cute.rank(x), 1
  for _, mode in ipairs {rank, rank - 1, rank - 2, rank - 3, rank - 4} do
    if shape[mode] > 1 and stride[mode] ~= at then return false end
    at = at * shape[mode]
  end
  return x.alignment % 16 == 0
end

-- Checks the factors x of an operand with `rows` rows. Returns whether they are
-- tiles, and whether each matrix of the batch has its own factors.
local function check(p, name, x, rows, format)
  local size = block_scaled.FORMATS[format].size
  if p.k % size ~= 0 then
    fail("K is %d; rows of %s need a multiple of %d elements", p.k, format,
         size)
  end
  local plain = {rows, p.k // size}
  local tiles = block_scaled.tiled(1, rows, p.k // size)
  table.remove(tiles, 1)
  for _, want in ipairs {plain, tiles} do
    if ends_with(x, want)
      and (cute.rank(x) == #want or operand.has_batch(x, p.batch, #want)) then
      if want == tiles and not is_dense(x) then
        fail("%s is %s; tiles must be contiguous and aligned to 16 bytes",
             name, x.layout)
      end
      return want == tiles, cute.rank(x) > #want
    end
  end
  fail("%s is %s: (%s) is needed for %d x %d elements of %s, or the tiles "
    .. "(%s)%s", name, x.layout, table.concat(plain, ","), rows, p.k, format,
    table.concat(tiles, ","), p.batch[1]
    and ", with modes of the batch in front or without" or "")
end

-- Returns the name of the format with elements of type dtype and factors of x's
-- type, or nil if there is no such format.
local function format_of(dtype, x)
  return core.typename(x) == "tensor"
    and block_scaled.of(dtype, x.element_type) or nil
end

--- Reports whether both operands of a call with options o have the scale
-- factors of a format.
function formats.are(A, B, o)
  return format_of(A.element_type, o.scale_a) ~= nil
    and format_of(B.element_type, o.scale_b) ~= nil
end

--- Sets p.format if the factors of a call belong to formats: {a, b = the names
-- of the formats, size = the number of elements of a block, factor = the type
-- of factors, tiled = {a, b = whether the factors are tiles}, batched = {a, b =
-- whether each matrix of the batch has its own factors}}. Returns p.format.
function formats.look(p, o)
  local a, b = format_of(p.a, o.scale_a), format_of(p.b, o.scale_b)
  if not (a or b) then return nil end
  if not (a and b) then
    local x = a and "B" or "A"
    fail("%s has the format %s, but %s of %s has no block-scaled "
      .. "format; convert both operands by ops.convert", a and "A" or "B",
      a or b, x, tostring(p[x:lower()]))
  elseif p.ragged then
    fail("grouped products do not support factors of %s", a)
  end
  local f, g = block_scaled.FORMATS[a], block_scaled.FORMATS[b]
  if f.factor ~= g.factor or f.size ~= g.size then
    fail("A has the format %s and B %s; both need factors of the same type, "
      .. "each for the same number of elements", a, b)
  elseif o.group and o.group ~= f.size then
    fail("group = %d, but %s has one factor for %d elements", o.group, a,
         f.size)
  end
  p.format = {a = a, b = b, size = f.size, factor = f.factor, tiled = {},
              batched = {}}
  for _, x in ipairs {{"a", p.m}, {"b", p.n}} do
    local side, name = x[1], "scale_" .. x[1]
    p.format.tiled[side], p.format.batched[side] = check(p, name, o[name], x[2],
                                                         p.format[side])
  end
  if p.gated and p.format.tiled.b then
    fail("scale_b is %s; with gated = true it must be (2N,K/%d), not tiles, "
      .. "because the kernel takes groups of 8 rows of both halves in turn",
      o.scale_b.layout, f.size)
  end
  return p.format
end

-- Returns the number of factors of one matrix with `rows` rows, padded to whole
-- tiles.
local function count(p, rows)
  local t = block_scaled.tiled(1, rows, p.k // p.format.size)
  return t[2] * t[3] * CHUNK
end

-- Returns the tiles x, which has batch modes first, as a tensor (n[,L]). n is
-- the number of factors of a matrix.
local function flat(p, x, n)
  local lead = cute.rank(x) - 5
  local shape, stride = x.shape, x.stride
  shape = table.move({1, n}, 1, 2, lead + 1, {table.unpack(shape, 1, lead)})
  stride = table.move({0, 1}, 1, 2, lead + 1, {table.unpack(stride, 1, lead)})
  local t = operand.matrix(cute.make_tensor(x.iterator,
    cute.make_layout(shape, stride)), p.batch)
  return cute.select(t, cute.rank(t) > 2 and {1, 2} or {1})
end

-- Makes the object that provides the tiles of operand `side`, "a" or "b", with
-- `rows` rows: {floats, step(x, work), tiles(x, work)}. If the factors x are
-- not tiles, they are copied to `floats` elements of the f32 memory `work`,
-- from element `at` on.
local function mover(p, side, rows, at)
  local f, n, name = p.format, count(p, rows), "scale_" .. side
  if f.tiled[side] then
    return {name = name, floats = 0,
            tiles = function(x) return flat(p, x, n) end}
  end
  local L = f.batched[side] and p.batches or 1
  local k = block_scaled.arrange {format = f[side], n = p.k, rows = rows}
  local step = {kernel = k.kernel, block = k.block, grid = k.grid(rows * L),
                ready = {}}
  local self = {name = name, floats = n * L // 4}
  local function memory(work, layout)
    local part = cute.make_tensor(work.iterator + at,
                                  cute.make_layout(self.floats))
    return cute.make_tensor(cute.recast_tensor(part, f.factor).iterator, layout)
  end
  function self.step(x, work)
    local S = operand.matrix(x, L > 1 and p.batch or {})
    if p.gated and side == "b" then S = host.in_turn(S) end
    return {step, {S, memory(work,
      cute.make_layout(block_scaled.tiled(L, rows, p.k // f.size),
                       cute.LayoutRight)), n = 2}}
  end
  function self.tiles(_, work)
    return memory(work, p.batches > 1 and cute.make_layout({n, p.batches},
      {1, L > 1 and n or 0}) or cute.make_layout(n))
  end
  return self
end

-- Returns a tensor (M,K,...) as one matrix ((M,...),K), whose first mode has
-- the rows of all matrices.
local function rows_of(t)
  local shape, stride = t.shape, t.stride
  local k, step = table.remove(shape, 2), table.remove(stride, 2)
  return cute.make_tensor(t.iterator, cute.make_layout({shape, k},
                                                       {stride, step}))
end

--- Makes a step (launch) that converts elements of 6 or 4 bits to 8 bits.
-- `from` and `to` have the modes (M,K,...). Returns the step and its arguments.
function formats.widening(from, to)
  local format = block_scaled.of(from.element_type, cute.ue8m0)
  from, to = rows_of(from), rows_of(to)
  local k = block_scaled.widen {format = format, n = cute.size(from, 1)}
  return {kernel = k.kernel, block = k.block, ready = {},
          grid = k.grid(cute.size(from, 0))}, {from, to, n = 2}
end

--- Makes the object that copies the factors of problem p to tiles. `floats` is
-- the number of f32 elements of work memory that it needs. before(call, work)
-- returns the launches before the kernel, as a list for Plan:launches.
-- tiles(call, work) returns the tiles of A and of B, each with the modes
-- (factors of a matrix[,L]).
---@param p table
---@return table
function formats.mover(p)
  local a = mover(p, "a", p.m, 0)
  local b = mover(p, "b", p.n, a.floats)
  return {floats = a.floats + b.floats, before = function(call, work)
    local list = {}
    for _, x in ipairs {a, b} do
      if x.step then list[#list + 1] = x.step(call.o[x.name], work) end
    end
    return list
  end, tiles = function(call, work)
    return a.tiles(call.o.scale_a, work), b.tiles(call.o.scale_b, work)
  end}
end

--- Takes the scale factors of A and of B in tiles, as tensors (n[,L]) with n
-- factors for each of L matrices. Returns them as matrices (rows,blocks[,L]).
function formats.matrices(p, a, b)
  local out, blocks = {}, p.k // p.format.size
  for i, x in ipairs {{a, p.m}, {b, p.n}} do
    local t, layout = x[1], block_scaled.layout(x[2], blocks)
    if cute.rank(t) > 1 then
      layout = cute.append(layout, cute.make_layout(t.shape[2], t.stride[2]))
    end
    out[i] = cute.make_tensor(t.iterator, layout)
  end
  return out[1], out[2]
end

--- Returns the time in ns of the launches that copy factors to tiles.
function formats.ns(p)
  local tiled = p.format.tiled
  return (tiled.a and 0 or LAUNCH) + (tiled.b and 0 or LAUNCH)
end

return formats
-- SPDX-License-Identifier: MIT
