--- Products by kernels with operands loaded by TMA (kernels/gemm_sm90,
-- kernels/gemm_sm100): what TMA can load, and the plans of such kernels.
local cute = require "cute"
local formats = require "cute.ops.formats"
local operand = require "cute.ops.operand"
local prepared = require "cute.ops.family.prepared"
local scales = require "cute.ops.scales"
local tiles = require "cute.tiles"

local tma = {}

--- Checks whether TMA can move tiles of matrix t with mode `lead` contiguous.
-- Returns a sentence with the reason if it cannot, else nil.
function tma.refuses(name, t, lead, rows)
  local what = lead == 2 and "rows" or "columns"
  local bits = t.element_type.bits
  if t.stride[lead] ~= 1 then
    return ("%s is %s, but TMA needs contiguous %s here"):format(name, t.layout,
                                                                 rows)
  end
  local stride = t.stride[3 - lead]
  if type(stride) == "table" then
    return ("TMA needs %s at a constant stride, but %s is "
      .. "%s"):format(what, name, t.layout)
  end
  if t.shape[3 - lead] > 1 and (stride * bits % 128 ~= 0 or stride <= 0) then
    return ("TMA needs %s at multiples of 16 bytes, but those of %s are %d "
      .. "elements (%d bytes) "
      .. "apart"):format(what, name, stride, stride * bits // 8)
  end
  local apart = cute.flatten_to_tuple(t.stride[3] or {0})
  if #apart > 3 then return ("TMA supports 5 modes, but %s has "
    .. "more"):format(name) end
  for _, far in ipairs(apart) do
    if far * bits % 128 ~= 0 or far < 0 then
      return ("TMA needs matrices at multiples of 16 bytes, but those of %s "
        .. "are %d bytes apart"):format(name, far * bits // 8)
    end
  end
  if t.alignment % 16 ~= 0 then
    return ("TMA needs addresses at multiples of 16 bytes, but %s starts at a "
      .. "multiple of %d"):format(name, t.alignment)
  end
end

--- Defines the functions `lead` and `refuses` of a family. lead(p, name)
-- returns the contiguous mode (1 or 2) of matrix "A", "B" or "D" of problem p.
-- refuses(p, name) returns the reason if the kernel does not accept the layout
-- of this matrix, else nil.
---@param family table
---@param turned fun(dtype: any): boolean reports whether the tensor cores
-- accept operands of this type with contiguous M or N
function tma.layouts(family, turned)
  function family.lead(p, name)
    local t = p[name]
    if name == "D" then return t.stride[2] == 1 and 2 or 1 end
    return t.stride[2] ~= 1 and t.stride[1] == 1 and turned(t.element_type)
      and 1 or 2
  end

  function family.refuses(p, name)
    local lead = family.lead(p, name)
    if name == "B" and p.gated and lead == 1 then
      return ("with gated = true %s needs contiguous rows of B"):format(
        family.name)
    end
    return tma.refuses(name, p[name], lead, name == "D" and "rows or columns"
                                            or "rows")
  end
end

--- Returns the reason if a family's kernel does not support D's type, the
-- gates, the groups, or a layout of problem p, else nil.
---@return string?
function tma.form(family, p)
  if p.d.bits ~= 16 and p.d.bits ~= 32 then
    return ("%s writes D of 16 or 32 bits, not %s"):format(family.name, p.d)
  end
  if p.batches > 1 and p.gated and not p.ragged then
    return ("%s does not support gated = true with batches"):format(family.name)
  end
  if p.gated and p.n % 16 ~= 0 then
    return ("with gated = true %s needs N to be a multiple of 8, but it "
      .. "is %d"):format(family.name, p.n // 2)
  end
  for _, name in ipairs(p.ragged == "rows" and {"A", "D"} or {}) do
    if family.lead(p, name) == 1 then
      return ("groups can start at any row, but TMA boxes start at multiples "
        .. "of 16 bytes: the columns of %s must not be contiguous"):format(name)
    end
  end
  return family.refuses(p, "A") or family.refuses(p, "B")
    or family.refuses(p, "D")
end

--- Returns the kernel options that follow from problem p. With swap, they are
-- those of D^T = B A^T.
function tma.options(family, p, swap)
  local A, B = "A", "B"
  if swap then A, B = B, A end
  return {sms = p.sms, d_dtype = p.d, name = family.name,
          a_dtype = p[A].element_type, b_dtype = p[B].element_type,
          a_major = family.lead(p, A) == 1 and "m" or "k",
          b_major = family.lead(p, B) == 1 and "n" or "k",
          d_major = (swap ~= (p.D.stride[2] == 1)) and "n" or "m",
          gated = p.gated, groups = p.ragged,
          batches = not p.ragged and p.batches > 1 or nil}
end

--- Returns the extents M and N for which a family lists candidates, and the
-- largest useful number of rows of a tile. With batches, each matrix is padded
-- to a multiple of `unit` rows, and M counts the rows of all matrices.
---@return integer m
---@return integer n
---@return number most
function tma.extents(p, swap, unit)
  local m, n = p.m, p.n
  if swap then m, n = n, m end
  if p.ragged then return p.expected * p.batches, n, math.huge end
  if p.batches == 1 then return m, n, math.huge end
  local high = tiles.count(m, unit) * unit
  return high * p.batches, n, high
end

--- Stands for the epilogue function in a candidate's options until the plan
-- sets it.
function tma.LATER() end

--- Returns the ratio of the rows that tiles compute to the rows of the groups.
-- On average the last tile of each group is half full.
function tma.padded(p, o)
  if not p.ragged then return 1 end
  return 1 + o.tile[1] * (o.cluster and o.cluster[1] or 1) / 2 / p.expected
end

-- Returns a tensor with the type and layout of t, but other memory. The garbage
-- collector can then free t's memory.
local function like(t)
  return cute.make_tensor(cute.empty({1}, t.element_type).iterator, t.layout)
end

-- Describes the memory that a kernel's blocks share. Returns the number of
-- sums, the number of counters, and a function. The function makes the kernel's
-- last argument from these sums and counters, or from the groups of a call.
-- Returns nil if blocks share nothing.
local function shared(o, grid)
  if not o.shares then return nil end
  if o.groups then
    local name = o.groups == "rows" and "offsets" or "counts"
    return nil, nil, function(_, _, call) return {[name] = call.where} end
  end
  if o.dynamic then
    return nil, 1, function(_, turns) return {counter = turns} end
  end
  local blocks = grid[1] * grid[2] * grid[3]
  local sums = blocks * o.tile[1] * o.tile[2]
  return sums, blocks, function(work, turns)
    return {sums = prepared.view(work, sums, o.acc), turns = turns}
  end
end

-- Returns the matrices of a call that c.sources describes, in the layouts that
-- kernels accept.
local function call_sources(p, c, call)
  local list = {}
  for i, s in ipairs(c.sources or {}) do
    local t = operand.matrix(s.value and call.captured.values[s.value]
      or call.C, p.batch)
    list[i] = c.swap and operand.turned(t) or t
  end
  return list
end

-- Returns a function that makes the first arguments of a kernel. The function
-- keeps the layouts of the matrices A, B, D and `sources`, but not their
-- memory.
local function first_arguments(made, A, B, D, group, sources)
  local more = group and {false, false} or {}
  for _, t in ipairs(sources) do more[#more + 1] = like(t) end
  return made.arguments(like(A), like(B), like(D), nil, nil,
                        table.unpack(more))
end

--- Makes the plan for a candidate of a kernel (`make` of cute.ops.families).
---@param kernel fun(o: table): table such as kernels.gemm_sm90
function tma.make(kernel, p, c)
  local made = kernel(c.options)
  local m, n, known = p.m, p.columns, nil
  if c.swap then m, n = n, m end
  local grid = made.grid(m, n, p.sms, p.batches, p.place)
  local sums, counts, space = shared(made.options, grid)
  local factors = p.format and formats.mover(p)
  if factors and factors.floats > 0 then sums = factors.floats end
  return {kernel = made.kernel, block = made.block, cluster = made.cluster,
          grid = grid, mma = made.epi_mma, tile = made.options.epi,
          pdl = c.options.pdl,
          sums = sums, counts = counts, space = space,
          before = factors and factors.before,
          arguments = function(A, B, D, work, _, call)
            if c.swap then A, B, D = B, A, operand.turned(D) end
            local sources = factors and {factors.tiles(call, work)}
              or call_sources(p, c, call)
            known = known or first_arguments(made, A, B, D, p.group, sources)
            local list = made.with(known, A, B, D, table.unpack(sources))
            if p.group then
              local SA, SB = scales.blocks(p, call.o, p.batch)
              if c.swap then SA, SB = SB, SA end
              list[13], list[14] = SA or false, SB or false
            end
            return list
          end}
end

return tma
-- SPDX-License-Identifier: MIT
