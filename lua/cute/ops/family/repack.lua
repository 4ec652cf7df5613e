--- Products whose operands must be repacked before TMA can load them
-- (kernels/gemm_sm90, kernels/gemm_sm100): the kernel does not accept their
-- layouts, or does not accept 8-bit weights. Launches before the kernel repack
-- A and B into memory of the pool, in layouts for TMA. A launch after the
-- kernel copies D to its destination. Repacking also converts, exactly:
-- elements of 8 bits to 16 bits, and elements of formats with scale factors to
-- 8 bits. Scale factors, C and matrices that epilogues read are not repacked.
local block_scaled = require "kernels.block_scaled"
local blocks = require "cute.ops.blocks"
local cute = require "cute"
local operand = require "cute.ops.operand"
local tiles = require "cute.tiles"

-- The estimated time in ns of a launch and its wait for the previous launch.
local LAUNCH = 2500
local LINE = 1024    -- repacked rows are aligned to this many bits

-- Returns the strides of the batch modes if matrices are stored one after
-- another, `apart` elements apart. Broadcast modes have stride 0.
local function behind_each_other(shape, stride, apart)
  if math.type(shape) then return stride == 0 and 0 or apart end
  local out = {}
  for i, n in ipairs(shape) do
    out[i] = stride[i] == 0 and 0 or apart
    if out[i] ~= 0 then apart = apart * n end
  end
  return out
end

-- Returns the layout of matrix t after repacking: mode `lead` is contiguous,
-- the other mode is padded to whole memory lines, and matrices follow one
-- another.
local function room(t, dtype, lead)
  local each = LINE // dtype.bits
  local pitch = tiles.count(t.shape[lead], each) * each
  local stride = {[lead] = 1, [3 - lead] = pitch}
  stride[3] = t.shape[3] and behind_each_other(t.shape[3], t.stride[3],
                                               pitch * t.shape[3 - lead])
  return operand.facts(cute.make_layout(t.shape, stride), dtype, 256)
end

-- Returns the number of elements of t that repacking copies; broadcast modes
-- count once.
local function count(t)
  local n, stride = 1, cute.flatten_to_tuple(t.stride)
  for i, extent in ipairs(cute.flatten_to_tuple(t.shape)) do
    n = n * (stride[i] == 0 and 1 or extent)
  end
  return n
end

-- Returns the type to which repacking converts matrix `name`, or nil.
local function wider(p, name)
  local t = p[name].element_type
  if name == "B" and t.bits == 8 and (p.a == cute.bf16 or p.a == cute.f16) then
    return p.a
  end
  if name == "D" or not p.format then return nil end
  local other = name == "A" and p.b or p.a
  return (t.bits == 6 or t.bits < other.bits) and block_scaled.WIDER[t.name]
    or nil
end

-- Returns the matrices of problem p to repack, with their new layouts: {A =, B
-- =, D = as the fields A, B, D of p, words = their names, ns = estimated time}.
-- Returns nil if there are none, or if they cannot be repacked.
local function places(family, p)
  if p.ragged then return nil end
  local to, words, ns = {}, {}, 0
  for _, name in ipairs {"A", "B", "D"} do
    local t = p[name]
    local as = wider(p, name)
    if as or family.refuses(p, name) then
      -- Repacking moves whole bytes.
      if t.element_type.bits < 8 and t.stride[2] ~= 1 then return nil end
      local lead = (as or p.gated and name == "B") and 2 or family.lead(p, name)
      to[name] = room(t, as or t.element_type, lead)
      words[#words + 1] = name .. (as and " as " .. as.name or "")
      local bytes = count(to[name]) * (t.element_type.bits
        + to[name].element_type.bits) / 8
      ns = ns + bytes / blocks.rate(bytes) + LAUNCH
    end
  end
  if not words[1] then return nil end
  to.words, to.ns = table.concat(words, ", "), ns
  return to
end

-- Returns a copy of problem p with the repacked matrices in place of the
-- originals.
local function behind(p, to)
  local q = setmetatable({}, {__index = p})
  q.A, q.B, q.D = to.A, to.B, to.D
  if to.A then q.a = to.A.element_type end
  if to.B then
    -- A launch writes the repacked B just before the product, so the product
    -- must not read B before that launch ends.
    q.b, q.constant = to.B.element_type, false
  end
  return q
end

--- Makes a family that repacks the operands of products, and then uses the
-- kernels of another family.
---@param name string
---@param family table the other family, which has the functions of tma.layouts
---@param why string
---@return table
return function(name, family, why)
  local repack = {name = name, kernel = family, make = family.make, why = why}

  function repack.takes(p)
    local to = places(family, p)
    if not to then return false end
    local refusal = family.takes(behind(p, to))
    -- The family that needs no repacking rejects p for the same reason, so the
    -- explanation need not repeat it.
    if refusal == family.takes(p) then return false end
    return refusal
  end

  function repack.list(p)
    local to = places(family, p)
    local list = family.list(behind(p, to))
    for _, c in ipairs(list) do c.moved, c.ns = to, c.ns + to.ns end
    return list
  end

  return repack
end
-- SPDX-License-Identifier: MIT
