--- What serves a product, and why: a family of kernels, its choices, and what
-- spoke against the others.
--
-- A problem is what a call's operands say (cute.ops.gemm): m, n, k, batches
-- (n: rows of B; with `gated` D has half as many columns);
-- A (M,K[,L]), B (N,K[,L]) and D (M,N[,L]) as tensors; a, b, d, their types,
-- and sums, that of the accumulators; tf32; c: is there something to add to
-- the sums? sources: that, and what else an epilogue reads like D, as A and B
-- are, with `value` its number; fused: does an epilogue follow? arch, sm, sms
-- of the device; order: the only one in which sums may be added, in the words
-- of cute.ops.order, and splits: in how many parts K then is. ragged: the form
-- of its groups (kernels.groups), with `expected` rows each; m is then those of
-- all, or the most of each.
--
-- Each family has a rule `takes`, which gives nil, or a sentence that says why
-- not, or false for what nobody would expect of it, and `list`, its candidates
-- with the time that the model expects of them, in nanoseconds on an H200: what
-- takes least of all families is chosen.
local core = require "cute.core"
local blocks = require "cute.ops.blocks"
local cute = require "cute"
local gemm_int4 = require "kernels.gemm_int4"
local gemm_skinny = require "kernels.gemm_skinny"
local gemm_sm90 = require "kernels.gemm_sm90"
local order = require "cute.ops.order"
local tiles = require "cute.tiles"
local tuned = require "cute.ops.tuned"

local choose = {}

local function same(p, name) return p.a.name == name and p.b.name == name end

local function is_fp8(t) return t.name == "e4m3" or t.name == "e5m2" end
local function is_byte(t) return t.name == "i8" or t.name == "u8" end

---------------------------------------------------------------------------
-- mma.sync
---------------------------------------------------------------------------

local UPPER = {i8 = "S8", u8 = "U8", e4m3 = "E4M3", e5m2 = "E5M2"}

local F16, BF16 = "SM80_16x8x16_F32F16F16F32_TN",
  "SM80_16x8x16_F32BF16BF16F32_TN"

-- Two types of which one is converted: the type of the product. All 8-bit types
-- are exact in both of 16 bits.
local function converted(a, b)
  local wide, narrow = a, b
  if a.bits < b.bits then wide, narrow = b, a end
  if narrow.bits ~= 8 then return nil end
  if wide == cute.bf16 or wide == cute.f16 then return wide end
  return is_fp8(a) and is_fp8(b) and cute.f16 or nil
end

-- The atom for two types, elements of K that it takes, and the type that they
-- are converted to, if any; nil, why not.
local function atom_of(p)
  local a, b = p.a, p.b
  if same(p, "bf16") then return BF16, 16 end
  if same(p, "f16") then return F16, 16 end
  if same(p, "f64") then return "SM80_8x8x4_F64F64F64F64_TN", 4 end
  if same(p, "f32") and p.tf32 then
    return "SM80_16x8x8_F32TF32TF32F32_TN", 8
  end
  if is_byte(a) and is_byte(b) then
    return ("SM80_16x8x32_S32%s%sS32_TN"):format(UPPER[a.name], UPPER[b.name]),
           32
  end
  if is_fp8(a) and is_fp8(b) and p.sm >= 89 then
    return ("SM89_16x8x32_F32%s%sF32_TN"):format(UPPER[a.name], UPPER[b.name]),
           32
  end
  local as = converted(a, b)
  if as then return as == cute.bf16 and BF16 or F16, 16, as end
  if same(p, "f32") then
    return nil, "tensor cores have no f32: tf32 = true lets them round it"
  end
  return nil, ("mma.sync does not multiply %s by %s"):format(a, b)
end

-- Tiles of 16- and 8-bit types, and of tf32.
local TILES = {
  {128, 256, atoms = {2, 4, 1}, each = {32, 64}, stages = 3, group = 16},
  {128, 128, atoms = {2, 2, 1}, each = {32, 32}, stages = 3},
  {128, 64, atoms = {2, 2, 1}, each = {32, 32}, stages = 3},
  {64, 128, atoms = {2, 2, 1}, each = {32, 32}, stages = 3},
  {64, 64, atoms = {2, 2, 1}, each = {32, 32}, stages = 4},
  {32, 64, atoms = {2, 2, 1}, each = {32, 32}, stages = 4},
  {16, 128, atoms = {1, 4, 1}, each = {16, 64}, stages = 4},
  {128, 16, atoms = {4, 1, 1}, each = {64, 16}, stages = 4},
}
local TILES64 = {  -- of f64; how well they use the tensor cores
  {128, 64, atoms = {4, 2, 1}, each = {32, 16}, stages = 4, good = 1.0},
  {64, 64, atoms = {2, 2, 1}, each = {16, 16}, stages = 4, good = 0.9},
  {32, 32, atoms = {2, 2, 1}, each = {16, 16}, stages = 4, good = 0.6},
}
local TILES_FMA = {
  {128, 128, stages = 6, good = 1.0}, {64, 64, stages = 6, good = 0.7},
}

local BY_FACTORS = 0.6  -- of the rate, where sums have factors in their midst
local SPLITS = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

-- Candidates of a list of tiles, with K shared out where that helps.
local function with_splits(p, family, list, make)
  local out = {}
  local can = p.batches == 1 and p.sums == cute.f32 and not p.gated
    and not p.group and not p.ragged
  for _, t in ipairs(list) do
    for _, splits in ipairs(p.splits and {p.splits} or SPLITS) do
      local o, tile, rate = make(t)
      local alone = splits == 1
      if alone or can and splits <= tiles.count(p.k, tile[3]) // 2 then
        o.splits = not alone and splits or nil
        out[#out + 1] = {
          family = alone and family or "gemm_splitk", options = o, tile = tile,
          stages = o.stages, split = splits,
          ns = blocks.time(p, tile, rate * blocks.good(t), splits)}
      end
    end
  end
  return out
end

-- Tiles of which a thread has both halves.
local function for_gates(list)
  local out = {}
  for _, t in ipairs(list) do
    if t[2] // 2 % t.each[2] == 0 then out[#out + 1] = t end
  end
  return out
end

local function smem(arch)
  return core.smem_budget(cute.device("sim:" .. arch).sm)
end

local sm80 = {name = "gemm_sm80"}

function sm80.takes(p)
  local atom, why = atom_of(p)
  if not atom then return why end
  if p.group and p.sums ~= cute.f32 then
    return ("factors for blocks of K are of f32 sums, not of %s"):format(p.sums)
  end
  if p.group and (p.group < 16 or p.group & (p.group - 1) ~= 0) then
    return ("blocks of %d of K: powers of two from 16 on"):format(p.group)
  end
end

function sm80.list(p)
  local atom, k, as = atom_of(p)
  local bits, room = math.max(p.a.bits, p.b.bits, as and 16 or 8), smem(p.arch)
  local bk = bits == 64 and 16 or 1024 // bits
  if p.group then bk = core.gcd(bk, p.group) end
  local list = bits == 64 and TILES64 or TILES
  if p.gated then list = for_gates(list) end
  return with_splits(p, p.ragged and "gemm_grouped" or "gemm_sm80", list,
    function(t)
      local bytes = (t[1] * p.a.bits + t[2] * p.b.bits) * bk // 8
      local stages = math.max(2, math.min(t.stages, room // bytes))
      local o = {name = p.ragged and "gemm_grouped" or "gemm_sm80",
        form = p.ragged, tile = {t[1], t[2], bk}, stages = stages,
        group = t.group, gated = p.gated, blocks = p.group, as = as,
        mma = atom, atoms = t.atoms,
        permutation = {t.each[1], t.each[2], k},
        rows = not p.fused and p.d.bits <= 16 or nil,
        piece = bits == 64 and 32 or nil}
      return o, setmetatable({t[1], t[2], bk}, {__index = t}),
             blocks.constants.rate[bits] * (p.group and BY_FACTORS or 1)
    end)
end

---------------------------------------------------------------------------
-- FMA units
---------------------------------------------------------------------------

local simt = {name = "gemm_simt"}

local FMA = {f32 = true, f64 = true, f16 = true, bf16 = true, i32 = true}

function simt.takes(p)
  for _, t in ipairs {p.a, p.b} do
    if not FMA[t.name] then
      return ("FMA units do not multiply %s"):format(t)
    end
  end
  if p.gated then return "gemm_simt has no gates" end
  if p.ragged then return "gemm_simt has no groups" end
  if p.group then return "gemm_simt has no factors for blocks of K" end
  if p.a ~= p.b and (p.a.bits > 32 or p.b.bits > 32 or p.sums.is_integer) then
    return ("FMA units do not multiply %s by %s"):format(p.a, p.b)
  end
end

function simt.list(p)
  return with_splits(p, "gemm_simt", TILES_FMA, function(t)
    local o = {name = "gemm_simt", tile = {t[1], t[2], 8}, stages = t.stages,
               sums = p.sums, a_dtype = p.a, b_dtype = p.b}
    return o, setmetatable({t[1], t[2], 8}, {__index = t}),
           p.sums.bits == 64 and 200 or 400
  end)
end

---------------------------------------------------------------------------
-- Weights of 4 bits
---------------------------------------------------------------------------

local int4 = {name = "gemm_int4"}

function int4.takes(p)
  if p.b ~= cute.Int4 then return false
  elseif p.a ~= cute.bf16 and p.a ~= cute.f16 then
    return ("gemm_int4 has A of bf16 or f16, not of %s"):format(p.a)
  elseif p.batches > 1 or p.ragged then return "gemm_int4 has no batches"
  elseif p.gated then return "gemm_int4 has no gates"
  elseif p.A.stride[2] ~= 1 then
    return ("gemm_int4 wants rows of A, A is %s"):format(p.A.layout)
  end
  for i = 2, #(p.results or {}) do
    if p.results[i].kind ~= "tile" then return "gemm_int4 has no reductions" end
  end
  if p.scale_b ~= "blocks" and p.scale_b ~= "rows" or p.scale_a == "blocks" then
    return "gemm_int4 wants scale_b, one of each column, or of groups of K"
  end
end

-- For how many rows it is planned where their number must not matter.
local INT4_ROWS = 16

function int4.list(p)
  local o = {n = p.n, k = p.k, m = p.batch_invariant and INT4_ROWS or p.m,
             zeros = p.zeros, arch = p.arch,
             group = p.scale_b == "blocks" and p.group or nil}
  local plan = gemm_int4(o).plan
  return {{family = "gemm_int4", tile = plan.tile, stages = plan.stages,
           split = plan.splits, swap = true, options = o,
           ns = blocks.memory(p) + 3000}}
end

---------------------------------------------------------------------------
-- Few rows of A
---------------------------------------------------------------------------

local skinny = {name = "gemm_skinny"}

local MOST = 32  -- rows

-- Are t's rows in pieces of 16 bytes? A sentence where not.
local function rows_refuse(name, t)
  local each = 128 // t.element_type.bits
  local steps = cute.flatten_to_tuple(t.stride[3] or {0})
  if t.shape[1] > 1 then steps[#steps + 1] = t.stride[1] end
  local whole = t.stride[2] == 1 and t.alignment % 16 == 0
  for _, far in ipairs(steps) do whole = whole and far % each == 0 end
  if not whole then
    return ("gemm_skinny wants rows at multiples of 16 bytes, %s is %s")
      :format(name, t.layout)
  end
end

function skinny.takes(p)
  if p.m > MOST or p.ragged or not (same(p, "bf16") or same(p, "f16")) then
    return false
  elseif p.gated then return "gemm_skinny has no gates"
  elseif p.group then return "gemm_skinny has no factors for blocks of K"
  elseif p.k % 8 ~= 0 then
    return ("gemm_skinny wants K in pieces of 8, not %d"):format(p.k)
  end
  return rows_refuse("A", p.A) or rows_refuse("B", p.B)
end

function skinny.list(p)
  local out = {}
  for _, c in ipairs(gemm_skinny.candidates(p.m, p.n, p.k,
      {dtype = p.a, sms = p.sms, batches = p.batches,
       clusters = p.sm >= 90})) do
    local o = c.options
    out[#out + 1] = {family = "gemm_skinny", options = o, tile = c.tile,
      stages = o.unroll, split = o.splits, swap = o.side == "a",
      ns = 1e9 * c.seconds}
  end
  return out
end

---------------------------------------------------------------------------
-- wgmma and TMA
---------------------------------------------------------------------------

local sm90 = {name = "gemm_sm90"}

-- Can TMA move tiles of t, whose mode `lead` is to be contiguous? A sentence
-- where not.
local function tma_refuses(name, t, lead, rows)
  local what = lead == 2 and "rows" or "columns"
  local bits = t.element_type.bits
  if t.stride[lead] ~= 1 then
    return ("%s is %s, and TMA here wants contiguous %s"):format(name, t.layout,
                                                                 rows)
  end
  local stride = t.stride[3 - lead]
  if t.shape[3 - lead] > 1 and (stride * bits % 128 ~= 0 or stride <= 0) then
    return ("TMA wants %s at multiples of 16 bytes: %s's are %d elements (%d "
      .. "bytes) apart"):format(what, name, stride, stride * bits // 8)
  end
  local apart = cute.flatten_to_tuple(t.stride[3] or {0})
  if #apart > 3 then return ("TMA has 5 modes, %s more"):format(name) end
  for _, far in ipairs(apart) do
    if far * bits % 128 ~= 0 or far < 0 then
      return ("TMA wants matrices at multiples of 16 bytes: %s's are %d bytes "
        .. "apart"):format(name, far * bits // 8)
    end
  end
  if t.alignment % 16 ~= 0 then
    return ("TMA wants addresses at multiples of 16 bytes: %s begins at one of "
      .. "%d"):format(name, t.alignment)
  end
end

-- The mode along which TMA moves an operand: K, or the other one of 16 bits.
local function lead_of(t)
  return t.stride[2] ~= 1 and t.stride[1] == 1 and t.element_type.bits == 16
    and 1 or 2
end

function sm90.takes(p)
  if not core.has(p.sm, "wgmma") or p.arch ~= "sm_90a" then
    return ("wgmma wants sm_90a, the device is %s"):format(p.arch)
  end
  local known = same(p, "bf16") or same(p, "f16") or same(p, "f32") and p.tf32
    or is_fp8(p.a) and is_fp8(p.b) or is_byte(p.a) and is_byte(p.b)
  if not known then
    return ("wgmma does not multiply %s by %s%s"):format(p.a, p.b,
      same(p, "f32") and " (tf32 = true lets it round them)" or "")
  end
  if p.d.bits ~= 16 and p.d.bits ~= 32 then
    return ("gemm_sm90 stores 16 and 32 bits, not %s"):format(p.d)
  end
  if p.batches > 1 and p.gated and not p.ragged then
    return "gemm_sm90 has no gates in batches"
  end
  if p.group and not (is_fp8(p.a) and is_fp8(p.b) and p.group == 128
    and (p.batches == 1 or p.ragged) and not p.gated) then
    return "gemm_sm90 has factors for 128 elements of K of 8-bit floats"
  end
  if p.gated and p.n % 16 ~= 0 then
    return ("gates of gemm_sm90 come in groups of 8, N is %d"):format(p.n // 2)
  end
  local major = p.D.stride[2] == 1 and 2 or 1
  local a, b = lead_of(p.A), lead_of(p.B)
  if p.gated and b == 1 then return "gates of gemm_sm90 want rows of B" end
  return tma_refuses("A", p.A, a, "rows") or tma_refuses("B", p.B, b, "rows")
    or tma_refuses("D", p.D, major, "rows or columns")
end

-- Tiles along K after which sums of 8-bit floats go on in f32, as cublasLt's:
-- tensor cores keep them with fewer bits. More would hold more stages.
local PROMOTE = 1

-- What an epilogue adds to the time of a product of several waves and K = 4096,
-- on an H200, where warpgroups do not take turns, so that no products run
-- beside it: one of gates, others, and what is read besides.
local GATED, EXPOSED, READ = 0.04, 0.08, 0.03

local function exposed(p, c)
  if not p.fused or c.waves <= 1 or c.options.schedule == "pingpong" then
    return 1
  end
  return 1 + ((p.gated and GATED or EXPOSED)
    + (#(p.sources or {}) > 0 and READ or 0)) * 4096 / p.k
end

-- Do a thread's sums leave registers to an epilogue? 128 do.
local function has_room(o)
  local groups = o.schedule == "pingpong" and 1 or o.consumers or 2
  return o.promote or o.tile[1] * o.tile[2] // (128 * groups) <= 128
end

-- Those of p.sources that TMA reaches, two at most, and how gemm_sm90 is told.
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

-- In place of an epilogue, which a plan makes.
local function LATER() end

-- How many rows tiles have for each that groups have: the last tile of each is
-- half full.
local function padded(p, o)
  if not p.ragged then return 1 end
  return 1 + o.tile[1] * (o.cluster and o.cluster[1] or 1) / 2 / p.expected
end

-- The candidates of kernels/gemm_sm90; with swap those for D^T = B A^T, whose
-- tiles can be narrow along M.
local function candidates(p, swap)
  local n_major = p.D.stride[2] == 1 and p.n > 1
    or p.D.stride[1] ~= 1 and p.m > 1
  local A, B = p.A, p.B
  if swap then A, B = B, A end
  local o = {sms = p.sms, d_dtype = p.d, name = "gemm_sm90",
             a_dtype = A.element_type, b_dtype = B.element_type,
             a_major = lead_of(A) == 1 and "m" or "k",
             b_major = lead_of(B) == 1 and "n" or "k",
             d_major = (swap ~= n_major) and "n" or "m",
             promote = is_fp8(p.a) and (p.group and 1 or PROMOTE) or nil,
             blocks = p.group and p.blocks_b or nil, gated = p.gated,
             groups = p.ragged, batches = not p.ragged and p.batches > 1 or nil}
  local out = {}
  local sources, told = sources_of(p, swap)
  o.sources = told
  if p.fused or told then o.epilogue = LATER end
  local m, n = p.m, p.n
  if swap then m, n = n, m end
  -- matrices one below the other, each of whole tiles
  local rows, high = m, math.huge
  if p.ragged then rows = p.expected * p.batches
  elseif o.batches then
    high = tiles.count(m, 64) * 64
    rows = high * p.batches
  end
  for _, c in ipairs(gemm_sm90.candidates(rows, n, p.k, o)) do
    local chosen = c.options
    if (not p.gated or chosen.tile[2] % 32 == 0)
      and (not o.epilogue or has_room(chosen))
      and (not o.batches or chosen.tile[1] <= high)
      and (not p.group or chosen.tile[3] == 128 and chosen.split ~= 2
           and (128 % chosen.tile[2] == 0 or chosen.tile[2] % 128 == 0)) then
      out[#out + 1] = {family = "gemm_sm90", options = chosen,
        tile = chosen.tile, stages = chosen.stages, cluster = chosen.cluster,
        sources = chosen.sources and sources, swap = swap,
        ns = 1e9 * c.seconds * padded(p, chosen) * exposed(p, c),
        split = chosen.equal and "equal parts" or chosen.split or 1}
    end
  end
  return out
end

function sm90.list(p)
  local out = candidates(p, false)
  if p.gated or p.group or p.ragged then return out end
  return table.move(candidates(p, true), 1, #out, #out + 1, out)
end

---------------------------------------------------------------------------
-- The choice
---------------------------------------------------------------------------

local FAMILIES = {sm90, skinny, sm80, simt, int4}
choose.FAMILIES, choose.sm90 = FAMILIES, sm90

local WHY = {gemm_sm90 = "tensor cores of Hopper, fed by TMA",
  gemm_sm80 = "tensor cores by mma.sync, any strides",
  gemm_simt = "FMA units, any strides",
  gemm_skinny = "few rows: weights come straight into registers",
  gemm_int4 = "4-bit weights made numbers on their way to tensor cores"}

local function before(x, y)
  if x.ns ~= y.ns then return x.ns < y.ns end
  if x.swap ~= y.swap then return not x.swap end
  if x.tile[1] ~= y.tile[1] then return x.tile[1] > y.tile[1] end
  return x.tile[2] > y.tile[2]
end

-- What tells candidates of a problem apart, besides their tile.
local APART = {"cluster", "schedule", "consumers", "split", "splits", "equal",
               "epi_stages", "scheduler", "min_blocks", "side", "warps",
               "unroll"}

--- A candidate's name among those of its problem, the same for other sizes:
-- "gemm_sm90 128x256x64 cluster=2x1".
---@param c table
---@return string
function choose.name(c)
  local out = {c.base, table.concat(c.tile, "x")}
  if c.swap then out[#out + 1] = "swap" end
  for _, name in ipairs(APART) do
    local v = c.options[name]
    if type(v) == "table" then v = table.concat(v, "x") end
    if v ~= nil then out[#out + 1] = ("%s=%s"):format(name, v) end
  end
  return table.concat(out, " ")
end

--- All candidates for a problem, the best by the rule first; the families that
-- refused it: {{family, why}, ...}.
---@param p table
---@return table[] list
---@return table[] refused
function choose.list(p)
  local refused, list = {}, {}
  for _, family in ipairs(FAMILIES) do
    local why = family.takes(p)
    if why then refused[#refused + 1] = {family.name, why}
    elseif why == nil then
      local other, kept
      for _, c in ipairs(family.list(p)) do
        c.base = family.name
        c.order = order.of(p, c)
        if p.order and c.order ~= p.order then other = c.order
        else
          list[#list + 1], kept = c, true
        end
      end
      if not kept then
        refused[#refused + 1] = {family.name, "its sums are of " .. other}
      end
    end
  end
  table.sort(list, before)
  return list, refused
end

--- The choice for a problem: what was measured as the best (cute.ops.tuned),
-- else of all that families say the one that should take the least time:
-- {family, base = the family that offers it, options, tile, stages, cluster,
-- split, order, ns, why = a sentence, how = "by rule" or "measured", others =
-- the next best, refused = {{family, why}, ...}}; nil, the refusals where
-- nothing serves it.
---@param p table
---@return table?
---@return table refused
function choose.choose(p)
  local list, refused = choose.list(p)
  if not list[1] then return nil, refused end
  local at = not p.ragged and tuned.find(p, list, choose.name)
  local c = table.remove(list, at or 1)
  c.how = at and "measured" or "by rule"
  c.others, c.refused = table.move(list, 1, math.min(#list, 3), 1, {}), refused
  c.why = WHY[c.base]
  return c, refused
end

--- The same, or an error that says why nothing serves it.
---@param p table
---@return table
function choose.must(p)
  local c, refused = choose.choose(p)
  if c then return c end
  local out = {("no kernel multiplies %s by %s on %s%s"):format(p.a, p.b,
    p.arch, p.order and (", with sums of %s (%s)"):format(p.order, p.promise)
    or "")}
  for _, r in ipairs(refused) do
    out[#out + 1] = ("  %s: %s"):format(r[1], r[2])
  end
  core.fail("bad-argument", table.concat(out, "\n"))
end

local function words(c)
  return ("%s%s, tile %s, %d stages%s%s, about %.1f us"):format(c.family,
    c.swap and " as D^T = B A^T" or "", table.concat(c.tile, "x"), c.stages,
    c.cluster and ", cluster " .. table.concat(c.cluster, "x") or "",
    c.split ~= 1 and (", K in %s"):format(c.split) or "", c.ns / 1000)
end

--- A choice as text: what, why, what else there was.
---@param p table the problem
---@param c table
---@return string
function choose.text(p, c)
  local out = {("%d x %d x %d%s, %s x %s -> %s, on %s"):format(p.m, p.n, p.k,
    p.ragged and (", %d groups"):format(p.batches)
      or p.batches > 1 and (" x %d"):format(p.batches) or "", p.a, p.b, p.d,
    p.arch), "  " .. words(c), ("  why: %s; %s"):format(c.why, c.how),
    "  sums: " .. c.order .. (p.promise and "; " .. p.promise or "")}
  for _, other in ipairs(c.others) do
    out[#out + 1] = "  instead of: " .. words(other)
  end
  for _, r in ipairs(c.refused) do
    out[#out + 1] = ("  not %s: %s"):format(r[1], r[2])
  end
  return table.concat(out, "\n")
end

local Explained = {}
Explained.__index = Explained
function Explained.__tostring(e) return e.text end

--- What a call would do, and why: {kernel, tile, stages, cluster, split,
-- order = of sums, promise, why, how = it was chosen, others, refused, text,
-- trace()}; tostring gives the text.
---@param p table the problem
---@param c table
---@param trace fun(): any the kernel that would run, traced: with .source, .ir,
-- .resources
function choose.explained(p, c, trace)
  return setmetatable({kernel = c.family, tile = {table.unpack(c.tile)},
    stages = c.stages, cluster = c.cluster or {1, 1}, split = c.split,
    order = c.order, promise = p.promise, why = c.why, how = c.how,
    refused = c.refused, others = c.others, text = choose.text(p, c),
    trace = trace}, Explained)
end

return choose
