--- Checks the options of kernels/gemm_sm90: an error names the option, its
-- value and the requirement.
local rules = require "kernels.operand_rules"
local core = require "cute.core"
local tma_rules = require "kernels.gemm_sm90.tma_rules"

local WHAT = "gemm_sm90"

local MOST_SPLIT = 8  -- largest cluster that every GPU supports, in blocks

local wrong = {}

local function need(ok, text, ...) rules.need(ok, WHAT, text, ...) end

local function integers(name, list, n)
  rules.list_of_integers(WHAT, name, list, n)
end

local function one_of(o, name, ...) rules.one_of(WHAT, o, name, ...) end

-- Checks the types. Tensor cores must support the product of A's type and B's.
local function types(o)
  tma_rules.dtypes(o)
  local kind = tma_rules.multiplied(o)
  local a = o.a_dtype or o.dtype
  need(o.a_major == "k" and o.b_major == "k" or a.bits == 16,
    "a_major = %s, b_major = %s of %s; tensor cores need K contiguous for all "
    .. "types but 16-bit "
    .. "ones", core.show(o.a_major), core.show(o.b_major), tostring(a))
  need(not o.promote or o.blocks or kind == "8-bit floats", "promote = %s "
    .. "with A of %s; only 8-bit floats (e4m3, e5m2) accumulate with fewer "
    .. "bits than f32", core.show(o.promote), tostring(a))
end

local function tile(o)
  integers("tile", o.tile, 3)
  local bm, bn, bk = table.unpack(o.tile)
  local groups = o.schedule == "pingpong" and 1 or o.consumers
  need(bm % (64 * groups) == 0, "tile = {%d, %d, %d}; rows must be a multiple "
    .. "of %d: 64 for each consumer that shares the "
    .. "tile", bm, bn, bk, 64 * groups)
  need(bn % 8 == 0 and bn <= 256, "tile = {%d, %d, %d}; columns must be a "
    .. "multiple of 8, at most 256", bm, bn, bk)
  tma_rules.depth(o)
end

-- Checks the cluster. Each block in a row of the cluster loads a part of A for
-- the row, and each block in a column a part of B for the column. A part must
-- consist of whole swizzle patterns of 8 rows.
local function cluster(o)
  integers("cluster", o.cluster, 2)
  local cm, cn = o.cluster[1], o.cluster[2]
  need(cm * cn <= 16, "cluster = {%d, %d}; at most 8 blocks, or 16 if the GPU "
    .. "supports them, are possible", cm, cn)
  for i, x in ipairs {{"A", o.tile[1], cn}, {"B", o.tile[2], cm}} do
    need(x[2] % (8 * x[3]) == 0, "cluster = {%d, %d} with tile[%d] = %d: %d "
      .. "blocks load the tile of %s together, so its extent must be a "
      .. "multiple of %d rows", cm, cn, i, x[2], x[3], x[1], 8 * x[3])
  end
end

-- Checks the option `groups`, and the options that can be combined with it.
local function groups(o)
  tma_rules.groups(o)
  need(o.groups ~= "list" or o.schedule ~= "pingpong" and not o.blocks,
    "groups = \"list\" cannot be combined with schedule = \"pingpong\" or "
      .. "the option blocks")
  need(o.split == 1 and not o.batches and o.persistent
    and o.scheduler == "static", "groups = %s cannot be combined with split, "
    .. "batches, persistent = false or scheduler = \"dynamic\"",
    core.show(o.groups))
end

-- Checks the option `sources`.
local function sources(o)
  for i, s in ipairs(o.sources or {}) do
    need(core.typename(s.dtype) == "dtype" and s.dtype.bits >= 16
      and s.dtype.bits <= 32 and (s.major == "n" or s.major == "m"),
      "source %d = {dtype = %s, major = %s}; a type of 16 or 32 bits and \"n\" "
      .. "or \"m\" are needed", i, tostring(s.dtype), core.show(s.major))
  end
  need(not o.sources or o.split ~= "stream" and not o.groups,
    "%s cannot be combined with the option sources",
    o.groups and "groups = " .. core.show(o.groups) or "split = \"stream\"")
end

--- Raises an error unless the options are valid after defaults are filled in.
---@param o table
function wrong.options(o)
  rules.integers(WHAT, o, {"consumers"}, 1, 4)
  rules.integers(WHAT, o, {"stages", "epi_stages", "source_stages",
                           "min_blocks"}, 1, 32)
  rules.integers(WHAT, o, {"swizzle", "promote", "least"}, 1, 1 << 20)
  one_of(o, "schedule", "cooperative", "pingpong")
  one_of(o, "a_major", "k", "m")
  one_of(o, "b_major", "k", "n")
  one_of(o, "d_major", "n", "m")
  need(o.split == "stream" or math.type(o.split) == "integer" and o.split >= 1
    and o.split <= MOST_SPLIT, "split = %s; \"stream\" or an integer from 1 to "
    .. "%d is needed", core.show(o.split), MOST_SPLIT)
  one_of(o, "scheduler", "static", "dynamic")
  for _, name in ipairs {"pdl", "persistent", "raster_along_m", "epi_loop"} do
    one_of(o, name, true, false)
  end
  if o.ahead then
    one_of(o, "ahead", "a", "b")
    need(o.pdl and (not o.persistent or o.split ~= 1
      and o.split ~= "stream"), "ahead = %q needs "
      .. "dependent launches of blocks with one tile: pdl = true, persistent = "
      .. "false", o.ahead)
  end
  need(not o.batches or o.split == 1 and not o.gated
    and o.scheduler ~= "dynamic", "batches = true cannot be combined with "
    .. "split, gated = true or scheduler = \"dynamic\"")
  if o.groups ~= nil then groups(o) end
  tma_rules.hints(o)
  sources(o)
  types(o)
  tile(o)
  cluster(o)
  need(o.schedule ~= "pingpong" or o.consumers > 1, "schedule = \"pingpong\" "
    .. "with %d consumer; at least two consumers are needed", o.consumers)
  local split = o.split == "stream" and 1 or o.split
  need(o.tile[2] % (8 * split) == 0, "tile = %s with split = %d: each block "
    .. "stores a part of the columns, which must be a multiple of 8",
    core.show(o.tile), split)
  local columns = o.tile[2] // split // (o.gated and 2 or 1)
  local epi = o.epi
  if epi == nil then return end
  integers("epi", epi, 2)
  local run = epi[2] * (o.d_dtype or o.dtype).bits
  need(epi[1] == 64 and columns % epi[2] == 0 and (o.d_major == "m"
    or run % 128 == 0), "epi = {%d, %d}; 64 rows, and columns that are a "
    .. "multiple of 16 bytes and divide %d, are "
    .. "needed", epi[1], epi[2], columns)
end

--- Raises an error if complete options cannot be combined with each other.
---@param o table
function wrong.together(o)
  need(not o.stream or not o.pingpong
    and (o.cluster[1] == 1 or o.cluster[2] == 1), "split = \"stream\" needs "
    .. "consumers that share a tile, and clusters along one mode")
  need(o.consumers < 3 or o.sums <= o.most_sums, "tile = %s with %d "
    .. "consumers: each thread has %d accumulators, but registers for only %d",
    core.show(o.tile), o.consumers, o.sums, o.most_sums)
  need(o.split == 1 or not o.clustered and not o.pingpong, "split = %s cannot "
    .. "be combined with clusters or schedule = \"pingpong\"", o.split)
  need(not o.dynamic or not o.stream and o.persistent,
    "scheduler = \"dynamic\" needs persistent = true and split = 1")
  need(not o.blocks or not o.dynamic and not o.stream and (o.split == 1
    or o.promote == 1), "blocks = %s cannot be combined with scheduler = "
    .. "\"dynamic\", with split = \"stream\", or with split and promote > 1",
    core.show(o.blocks))
  need(not o.pingpong or o.persistent, "schedule = \"pingpong\" needs "
    .. "persistent blocks, but persistent = false gives one tile to each block")
end

return wrong
-- SPDX-License-Identifier: MIT
