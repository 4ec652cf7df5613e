--- Matrices of operands: batches in front, modes exchanged.
--
-- Users have batch modes first, (...,M,K), the kernels one of them last,
-- (M,K,L); what an operand has one of is the same for all.
local core = require "cute.core"
local cute = require "cute"

local operand = {}

--- Says what of a call is wrong.
function operand.fail(text, ...)
  core.fail("bad-argument", "ops.gemm: " .. text:format(...))
end
local fail = operand.fail

--- Fails unless t is a tensor of two modes or more.
function operand.check(name, t)
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  end
  local rank = cute.rank(t)
  if rank < 2 then
    fail("%s is %s; modes (..., rows, columns) are needed", name, core.show(t))
  end
end

-- Modes in front of a matrix's own two.
local function batch_modes(t)
  return {table.unpack(t.shape, 1, cute.rank(t) - 2)}
end

--- The batch that all operands are of: each mode is that of one, or 1.
function operand.batch(list)
  local out, owner = {}, {}
  for _, x in ipairs(list) do
    local modes = batch_modes(x.t)
    for i = 1, #modes do  -- from the last on
      local extent, have = cute.size(modes[#modes + 1 - i]), out[i] or 1
      if have ~= 1 and extent ~= 1 and extent ~= have then
        fail("%s is %s and %s is %s: their batches do not agree", owner[i].name,
             owner[i].t.layout, x.name, x.t.layout)
      end
      if out[i] == nil or have == 1 then out[i], owner[i] = extent, x end
    end
  end
  return out
end

--- A layout as the kernels take it: (rows, columns), and with batches
-- (rows, columns, L), the last batch mode fastest. batch: of operand.batch;
-- strides of what there is one of are 0.
function operand.layout(l, batch)
  local rank = cute.rank(l)
  if rank == 2 and #batch == 0 then return l end
  local shape, stride = l.shape, l.stride
  if cute.product(batch) == 1 then
    return cute.make_layout({shape[rank - 1], shape[rank]},
                            {stride[rank - 1], stride[rank]})
  end
  local extents, strides = {}, {}
  for i, extent in ipairs(batch) do
    local mode = rank - 1 - i
    extents[i] = extent
    strides[i] = mode >= 1 and cute.size(shape[mode]) ~= 1 and stride[mode] or 0
  end
  local L = cute.coalesce(cute.make_layout(extents, strides))
  return cute.make_layout({shape[rank - 1], shape[rank], L.shape},
                          {stride[rank - 1], stride[rank], L.stride})
end

--- The tensor so, with nothing of it dynamic; of type tf32 it is f32 to memory.
function operand.matrix(t, batch)
  if t.element_type == cute.tf32 then t = cute.recast_tensor(t, cute.f32) end
  return cute.make_tensor(t.iterator, operand.layout(t.layout, batch))
end

--- A matrix with its first two modes exchanged.
function operand.turned(t)
  return cute.make_tensor(t.iterator, cute.select(t.layout,
    cute.rank(t) > 2 and {1, 0, 2} or {1, 0}))
end

--- A vector (..., n) as a matrix of `other` equal columns (by_row), or rows.
function operand.spread(v, other, by_row)
  local shape, stride = v.shape, v.stride
  if type(shape) ~= "table" then shape, stride = {shape}, {stride} end
  local s, d, rank = {}, {}, #shape
  for i = 1, rank - 1 do s[i], d[i] = shape[i], stride[i] end
  s[rank], s[rank + 1] = shape[rank], other
  d[rank], d[rank + 1] = stride[rank], 0
  if not by_row then
    s[rank], s[rank + 1] = s[rank + 1], s[rank]
    d[rank], d[rank + 1] = d[rank + 1], d[rank]
  end
  return cute.make_tensor(v.iterator, cute.make_layout(s, d))
end

--- A vector (..., n) as (n, l), its batches one mode.
function operand.flat(v, batches)
  local n = cute.size(v) // batches
  if batches == 1 or cute.rank(v) == 1 then
    return cute.make_tensor(v.iterator, cute.make_layout({n, 1},
      {cute.flatten_to_tuple(v.stride)[cute.rank(v)], 0}))
  end
  local rank, shape, stride, l = cute.rank(v), v.shape, v.stride, {{}, {}}
  for i = rank - 1, 1, -1 do
    table.insert(l[1], shape[i])
    table.insert(l[2], stride[i])
  end
  return cute.make_tensor(v.iterator, cute.make_layout({shape[rank], l[1]},
                                                       {stride[rank], l[2]}))
end

return operand
