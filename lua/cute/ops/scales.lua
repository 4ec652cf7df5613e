--- Scale factors of operands: per tensor, per row, or per block of K.
--
-- scale_a and scale_b are numbers or tensors. A tensor (1) is one factor. A
-- tensor (M) or (N) has one factor for each row. A tensor (M,K/128) or
-- (N,K/128) has one for each row and 128 elements of K. A tensor (M/128,K/128)
-- or (N/128,K/128), rounded up, has one for each block of 128 x 128. `group`
-- replaces 128 as the number of elements of K. Factors of whole rows multiply
-- the final sums; factors of blocks multiply partial sums during the
-- accumulation. Batch modes may come first. Then (...,1) has one factor for
-- each matrix, and (...,M,1) and (...,N,1) are the same as (...,M) and (...,N).
-- cute.ops.formats describes the factors of formats such as NVFP4.
local core = require "cute.core"
local cute = require "cute"
local formats = require "cute.ops.formats"
local operand = require "cute.ops.operand"
local tiles = require "cute.tiles"

local scales = {}

local BLOCK = 128

local fail = operand.fail

-- Returns a tensor (...,rows,1) as (...,rows), and any other tensor unchanged.
-- `lead` is the number of batch or group modes that may precede the rows.
local function without_last(x, rows, lead)
  local rank = cute.rank(x)
  if rank < 2 or rank ~= 2 and rank ~= lead + 2 or cute.size(x, rank - 1) ~= 1
    or cute.size(x, rank - 2) ~= rows then
    return x
  end
  local modes = {}
  for i = 0, rank - 2 do modes[i + 1] = i end
  return cute.select(x, modes)
end

-- Returns the kind of a scale factor x for `rows` rows and k elements
-- ("number", "one", "rows" or "blocks"). Also returns whether each matrix of
-- the batch has its own factors. `groups` is the number of groups, if the first
-- mode of x is the group. `ragged` says whether groups may begin and end at any
-- row. `batch` lists the batch modes of a product without groups.
local function kind_of(name, x, rows, k, group, groups, ragged, batch)
  if x == nil then return nil end
  if type(x) == "number" then return "number" end
  local given = x
  x = without_last(x, rows, groups and 1 or batch and #batch or 0)
  local rank = cute.rank(x)
  local n, own = cute.size(x, math.max(rank - 2, 0)), groups and 1 or 0
  if cute.size(x) == 1 then return "one" end
  local fits = not groups or cute.size(x, 0) == groups
  if fits and rank == 1 + own and cute.size(x, own) == rows then
    return "rows"
  end
  local along, blocks = tiles.count(k, group), tiles.count(rows, BLOCK)
  local last = cute.size(x, rank - 1)
  local each = operand.has_batch(x, batch, 2)
  if (fits and rank == 2 + own or each) and last == along
    and (n == rows or not ragged and n == blocks) then
    return "blocks", each
  elseif operand.has_batch(x, batch, 1) and (last == rows or last == 1) then
    return "rows", true
  end
  local e = groups and groups .. "," or ""
  fail("%s is %s: (1), (%s%d), (%s%d,%d)%s is needed for %s%d rows and %d "
    .. "elements of K in groups of %d%s", name, given.layout, e, rows, e, rows,
    along, ragged and "" or (" or (%s%d,%d)"):format(e, blocks, along),
    groups and groups .. " x " or "", rows, k, group, batch and batch[1]
    and ", with modes of the batch in front or without" or "")
end

-- Returns the number of rows that share a factor x of this kind. `rows` is the
-- number of the operand's rows.
local function rows_of(kind, x, rows)
  return kind == "blocks" and cute.size(x, cute.rank(x) - 2) == rows and 1
    or BLOCK
end

--- Sets the fields of problem p that describe its scale factors. p.scale_a and
-- p.scale_b are their kinds. p.group is the number of elements of K of a block,
-- if blocks of K have factors; p.blocks_a and p.blocks_b are then the numbers
-- of rows of A and of B that share a factor. p.value is the type of scaled
-- sums. p.own_factors says whether each matrix of a batch has its own scale_b.
-- For factors of formats, sets the fields of cute.ops.formats instead.
function scales.look(p, o)
  if formats.look(p, o) then
    p.value = p.sums
    return
  end
  local group = o.group or BLOCK
  if o.group and not (o.scale_a or o.scale_b) then
    fail("group = %d needs scale_a or scale_b", group)
  elseif group < 1 then
    fail("group = %d; 1 or more elements of K for each factor of scale_a and "
      .. "scale_b are needed", group)
  end
  local form, batches, each = p.ragged, p.batches
  local batch = not form and p.batch
  p.scale_a = kind_of("scale_a", o.scale_a, p.m, p.k, group,
                      form == "masked" and batches, form ~= nil, batch)
  p.scale_b, each = kind_of("scale_b", o.scale_b, p.n, p.k, group,
                            form and batches, false, batch)
  p.own_factors = each or nil
  if p.scale_a == "blocks" or p.scale_b == "blocks" then
    p.group = group
    p.blocks_a = rows_of(p.scale_a, o.scale_a, p.m)
    p.blocks_b = rows_of(p.scale_b, o.scale_b, p.n)
  end
  local z, S = o.zeros, o.scale_b
  if z and p.b ~= cute.Int4 then
    fail "the option zeros needs int4 weights, the result of ops.int4, as B"
  end
  if z and not (core.typename(S) == "tensor"
    and tostring(S.layout) == tostring(z.layout)) then
    fail("zeros = %s, but scale_b = %s; both need the same layout", z.layout,
         core.typename(S) == "tensor" and S.layout or core.show(S))
  end
  p.value = p.sums
  if p.sums.is_integer and (p.scale_a or p.scale_b) then p.value = cute.f32 end
end

--- Returns the options of a product with an empty K. Tensors of factors for
-- blocks of K are then empty. The options have the factor 1.0 instead, because
-- scaled sums have another type than unscaled ones.
function scales.without_blocks(o)
  local rest = {}
  for name, v in pairs(o) do rest[name] = v end
  for _, name in ipairs {"scale_a", "scale_b"} do
    local x = o[name]
    if core.typename(x) == "tensor" and cute.size(x) == 0 then
      rest[name] = 1.0
    end
  end
  return rest
end

-- Returns scale factors of blocks as (rows,K/group[,L]). Broadcasts a factor
-- for 128 rows over these rows.
local function matrix(x, rows, batch)
  local rank = cute.rank(x)
  if cute.size(x, rank - 2) == rows then return operand.matrix(x, batch) end
  local shape, stride = x.shape, x.stride
  shape[rank - 1] = {BLOCK, shape[rank - 1]}
  stride[rank - 1] = {0, stride[rank - 1]}
  return operand.matrix(cute.make_tensor(x.iterator,
    cute.make_layout(shape, stride)), batch)
end

--- Returns scale factors or zero points of packed 4-bit weights with the modes
-- that gemm_int4 reads, (K/group,N) or (1,N).
function scales.turned(p, x)
  local first = x.stride
  if type(first) == "table" then first = first[1] end
  if first ~= 1 then
    fail("scale_b and zeros of int4 weights need N contiguous, not %s",
         x.layout)
  end
  if p.scale_b == "rows" then
    return cute.make_tensor(x.iterator, cute.make_layout({1, p.n}, {0, 1}))
  end
  return operand.turned(x)
end

--- Returns the scale factors of A and of B for blocks of K, as kernel
-- arguments. Returns nil in place of an operand without such factors.
function scales.blocks(p, o, batch)
  return p.scale_a == "blocks" and matrix(o.scale_a, p.m, batch) or nil,
         p.scale_b == "blocks" and matrix(o.scale_b, p.n, batch) or nil
end

-- Returns the factors of rows of A or B, or one factor, as a matrix with the
-- shape of D.
local function like_D(p, x, by_row)
  local rows = by_row and p.m or p.n
  x = without_last(x, rows, #p.batch)
  -- Each group of rows, or each matrix of the batch, has its own factor.
  if cute.rank(x) > 1 and cute.size(x) > 1 then
    local rank = cute.rank(x)
    if cute.size(x, rank - 1) ~= rows then
      local shape, stride = x.shape, x.stride
      shape[rank], stride[rank] = rows, 0
      x = cute.make_tensor(x.iterator, cute.make_layout(shape, stride))
    end
    return operand.matrix(operand.spread(x, by_row and p.n or p.m, by_row),
                          p.batch)
  end
  if cute.size(x) > 1 then
    return operand.spread(x, by_row and p.n or p.m, by_row)
  end
  return cute.make_tensor(x.iterator, cute.make_layout({p.m, p.n}, {0, 0}))
end

--- Returns the scale factors that the epilogue applies: all except those of
-- blocks of K. The list has an entry {number, name} for a number and {matrix}
-- for a tensor.
function scales.rest(p, o)
  local out = {}
  for i, side in ipairs {"a", "b"} do
    local name = "scale_" .. side
    local kind, x = p[name], o[name]
    -- The kernel gemm_int4 applies the factors of packed weights itself.
    if i == 2 and p.b == cute.Int4 then kind = nil end
    if kind == "number" then out[#out + 1] = {number = x, name = name}
    elseif kind == "one" or kind == "rows" then
      out[#out + 1] = {matrix = like_D(p, x, i == 1)}
    end
  end
  return out
end

return scales
-- SPDX-License-Identifier: MIT
