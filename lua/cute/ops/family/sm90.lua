--- Products by wgmma whose operands TMA loads (kernels/gemm_sm90): the
-- supported problems, and the suitable candidates for each.
local scales = require "cute.ops.scales"
local operand = require "cute.ops.operand"
local prepared = require "cute.ops.family.prepared"
local early_b = require "cute.ops.family.early_b"
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local tiles = require "cute.tiles"
local types = require "cute.ops.family.types"

local sm90 = {name = "gemm_sm90", why = "Hopper tensor cores with TMA"}

--- Accumulation orders of Hopper's tensor cores: for 16-bit floats, and for
-- 8-bit floats, whose sums continue in f32 after %d products.
sm90.SIXTEEN = "16 products at once"
sm90.EIGHT = "32 products at once, kept to 13 bits; those of %d in f32"

-- Returns a sentence with the reason if TMA cannot move tiles of matrix t, else
-- nil. Mode `lead` of t has to be contiguous.
local function tma_refuses(name, t, lead, rows)
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

-- Returns the mode of an operand that TMA takes as the contiguous one: K, or
-- for 16-bit types M or N if that mode is contiguous.
local function lead_of(t)
  return t.stride[2] ~= 1 and t.stride[1] == 1 and t.element_type.bits == 16
    and 1 or 2
end

--- Returns the contiguous mode (1 or 2) of matrix `name` of problem p: "A", "B"
-- or "D".
function sm90.lead(p, name)
  if name == "D" then return p.D.stride[2] == 1 and 2 or 1 end
  return lead_of(p[name])
end

--- Returns the reason why gemm_sm90 does not accept the layout of matrix
-- `name`; nil if it does.
---@return string?
function sm90.refuses(p, name)
  local lead = sm90.lead(p, name)
  if name == "B" and p.gated and lead == 1 then
    return "with gated = true gemm_sm90 needs contiguous rows of B"
  end
  return tma_refuses(name, p[name], lead, name == "D" and "rows or columns"
                                          or "rows")
end

function sm90.takes(p)
  if not core.has(p.sm, "wgmma") or p.arch ~= "sm_90a" then
    return ("wgmma needs sm_90a, but the device is %s"):format(p.arch)
  end
  local known = types.same(p, "bf16") or types.same(p, "f16")
    or types.same(p, "f32") and p.tf32
    or types.fp8(p.a) and types.fp8(p.b) or types.byte(p.a) and types.byte(p.b)
  if not known then
    return ("wgmma does not multiply %s by %s%s"):format(p.a, p.b,
      types.same(p, "f32") and " (tf32 = true rounds them to tf32)" or "")
  end
  if p.d.bits ~= 16 and p.d.bits ~= 32 then
    return ("gemm_sm90 writes D of 16 or 32 bits, not %s"):format(p.d)
  end
  if p.batches > 1 and p.gated and not p.ragged then
    return "gemm_sm90 does not support gated = true with batches"
  end
  if p.group and (p.gated or p.batches > 1 and not p.ragged
    or not (types.fp8(p.a) and p.group == 128
            or p.a.bits == 16 and p.group % 64 == 0 and p.group <= 256)) then
    return "gemm_sm90 supports scale factors for 128 elements of K with 8-bit "
      .. "floats, for 64, 128, 192 or 256 with 16-bit types, without gated = "
      .. "true and batches"
  end
  if p.gated and p.n % 16 ~= 0 then
    return ("with gated = true gemm_sm90 needs N to be a multiple of 8, but it "
      .. "is %d"):format(p.n // 2)
  end
  for _, name in ipairs(p.ragged == "rows" and {"A", "D"} or {}) do
    if sm90.lead(p, name) == 1 then
      return ("groups can start at any row, but TMA boxes start at multiples "
        .. "of 16 bytes: the columns of %s must not be contiguous"):format(name)
    end
  end
  return sm90.refuses(p, "A") or sm90.refuses(p, "B") or sm90.refuses(p, "D")
end

-- Number of tiles along K whose products of 8-bit floats the tensor cores sum;
-- then the sum is added in f32, as in cublasLt, because tensor cores keep fewer
-- bits. A larger number would keep more stages occupied at a time.
local PROMOTE = 1

-- Returns the number of tiles along K that the tensor cores sum before the sum
-- is added in f32; nil if the tensor cores sum the whole K.
local function promote(p)
  if types.fp8(p.a) then return p.group and 1 or PROMOTE end
  return p.group and p.group // 64 or nil
end

-- Reports whether a candidate can apply factors for each p.group elements of K.
-- B may have one such factor per row or one per 128 rows.
local function has_factors(p, o)
  -- With 16-bit operands and a choice of option `epi` (kernels/gemm_sm90.lua),
  -- kernels that apply such factors would spill registers.
  if p.a.bits == 16 and o.epi then return false end
  return o.tile[3] * o.promote == p.group and o.stages > o.promote
    and o.split ~= 2 and (p.blocks_b ~= 128 or 128 % o.tile[2] == 0
                          or o.tile[2] % 128 == 0)
end

-- Fractions of time that an epilogue adds, measured for products of several
-- waves and K = 4096 on an H200. They apply if warpgroups do not alternate,
-- because then no MMAs run during the epilogue. GATED is for gates, EXPOSED for
-- other epilogues (also for C), READ is added if the epilogue reads matrices.
local GATED, EXPOSED, READ = 0.09, 0.08, 0.08

local function exposed(p, c)
  local busy = p.fused or p.c
  if not busy or c.waves <= 1 or c.options.schedule == "pingpong" then
    return 1
  end
  return 1 + ((p.gated and GATED or EXPOSED)
    + (#(p.sources or {}) > 0 and READ or 0)) * 4096 / p.k
end

-- Fraction of time that scale factors add for 16-bit types on an H200, if a
-- tile has 128 columns or more. Narrow tiles, and tiles of 256 rows, take less.
local FACTORS = 0.3

local function by_factors(p, o)
  if not p.group or p.a.bits ~= 16 then return 1 end
  return 1 + FACTORS * math.min(o.tile[2], 128) / 128
    * (o.tile[1] == 256 and 0.7 or 1)
end

-- Reports whether a candidate leaves enough registers for an epilogue: its
-- threads have at most 128 accumulators each.
local function has_room(o)
  local groups = o.schedule == "pingpong" and 1 or o.consumers or 2
  return o.promote or o.tile[1] * o.tile[2] // (128 * groups) <= 128
end

-- Returns those matrices of p.sources (which epilogues read) that TMA can load,
-- at most two, and their options for gemm_sm90.
local function sources_of(p, swap)
  local list, told = {}, {}
  for _, s in ipairs(p.sources or {}) do
    local lead = s.stride[2] == 1 and 2 or 1
    local bits = s.element_type.bits
    if #list < 2 and (bits == 16 or bits == 32)
      and not tma_refuses("C", s, lead, "rows or columns") then
      list[#list + 1] = s
      told[#list] = {dtype = s.element_type,
                     major = (swap ~= (lead == 2)) and "n" or "m"}
    end
  end
  return list, #told > 0 and told or nil
end

-- A placeholder for the epilogue function of a candidate. The plan replaces it
-- by the epilogue.
local function LATER() end

-- Returns the ratio of computed rows to rows of groups. On average the last
-- tile of each group is half full.
local function padded(p, o)
  if not p.ragged then return 1 end
  return 1 + o.tile[1] * (o.cluster and o.cluster[1] or 1) / 2 / p.expected
end

-- Returns the suitable candidates of kernels/gemm_sm90. With swap, returns
-- those that compute D^T = B A^T, whose tiles can be narrow along M.
local function candidates(p, swap)
  local n_major = p.D.stride[2] == 1
  local A, B = p.A, p.B
  if swap then A, B = B, A end
  local o = {sms = p.sms, d_dtype = p.d, name = "gemm_sm90",
             a_dtype = A.element_type, b_dtype = B.element_type,
             a_major = lead_of(A) == 1 and "m" or "k",
             b_major = lead_of(B) == 1 and "n" or "k",
             d_major = (swap ~= n_major) and "n" or "m",
             promote = promote(p), blocks = p.group and p.blocks_b or nil,
             gated = p.gated,
             groups = p.ragged, batches = not p.ragged and p.batches > 1 or nil}
  local out = {}
  local sources, told = sources_of(p, swap)
  o.sources = told
  if p.fused or told then o.epilogue = LATER end
  local m, n = p.m, p.n
  if swap then m, n = n, m end
  -- For batches, `rows` counts each matrix as whole units of 64 rows.
  local rows, high = m, math.huge
  if p.ragged then rows = p.expected * p.batches
  elseif o.batches then
    high = tiles.count(m, 64) * 64
    rows = high * p.batches
  end
  for _, c in ipairs(gemm_sm90.candidates(rows, n, p.k, o)) do
    local chosen = c.options
    if p.constant and (chosen.split == 2 or chosen.persistent == false)
      and early_b.pays(c.blocks, c.room, p.sms) then
      chosen.ahead = swap and "a" or "b"
    end
    if (not p.gated or chosen.tile[2] % 32 == 0)
      and (not o.epilogue or has_room(chosen))
      and (not o.batches or chosen.tile[1] <= high)
      and (not p.group or has_factors(p, chosen)) then
      out[#out + 1] = {family = "gemm_sm90", options = chosen,
        tile = chosen.tile, stages = chosen.stages, cluster = chosen.cluster,
        sources = chosen.sources and sources, swap = swap,
        ns = 1e9 * c.seconds * padded(p, chosen) * exposed(p, c)
          * by_factors(p, chosen),
        split = chosen.equal and "equal parts" or chosen.split or 1}
    end
  end
  return out
end

function sm90.list(p)
  local out = candidates(p, false)
  if p.gated or p.group or p.ragged then return out end
  local turned = candidates(p, true)
  return table.move(turned, 1, #turned, #out + 1, out)
end

function sm90.order(p, o)
  if types.fp8(p.a) then
    return sm90.EIGHT:format(o.promote * o.tile[3])
  end
  return (p.a.bits == 32 and "8 products at once" or sm90.SIXTEEN)
    .. types.factors(p)
end

--- Returns the number of columns of which an epilogue adds the elements.
function sm90.columns(o)
  return o.epi and o.epi[2] > 0 and o.epi[2] or o.tile[2]
end

-- Returns a tensor with the type and layout of t, but not with its memory.
local function like(t)
  return cute.make_tensor(cute.empty({1}, t.element_type).iterator, t.layout)
end

-- Returns what gemm_sm90 needs for the memory that its blocks share: the number
-- of sums, the number of counts, and a function that makes the kernel's last
-- argument from them, or from the groups of a call. Returns nil if blocks share
-- nothing.
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

-- Returns the matrices of a call that c.sources describes, in the form that
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

-- Returns the first arguments of gemm_sm90 for matrices with these layouts,
-- without keeping their memory.
local function first_arguments(made, A, B, D, group, sources)
  local more = group and {false, false} or {}
  for _, t in ipairs(sources) do more[#more + 1] = like(t) end
  return made.arguments(like(A), like(B), like(D), nil, nil,
                        table.unpack(more))
end

function sm90.make(p, c)
  local made = gemm_sm90(c.options)
  local m, n, known = p.m, p.columns, nil
  if c.swap then m, n = n, m end
  local grid = made.grid(m, n, p.sms, p.batches, p.place)
  local sums, counts, space = shared(made.options, grid)
  return {kernel = made.kernel, block = made.block, cluster = made.cluster,
          grid = grid, mma = made.epi_mma, tile = made.options.epi,
          pdl = c.options.pdl,
          sums = sums, counts = counts, space = space,
          arguments = function(A, B, D, _, _, call)
            if c.swap then A, B, D = B, A, operand.turned(D) end
            local sources = call_sources(p, c, call)
            known = known or first_arguments(made, A, B, D, p.group, sources)
            local list = made.with(known, A, B, D, table.unpack(sources))
            if p.group then
              local SA, SB = scales.blocks(p, call.o, p.batch)
              list[13], list[14] = SA or false, SB or false
            end
            return list
          end}
end

return sm90
-- SPDX-License-Identifier: MIT
