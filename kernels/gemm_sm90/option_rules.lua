--- Checks the options and operands of kernels/gemm_sm90: an error names the
-- option or the operand, its value and the requirement.
local rules = require "kernels.operand_rules"
local core = require "cute.core"

local WHAT = "gemm_sm90"

local wrong = {}

local function need(ok, text, ...) rules.need(ok, WHAT, text, ...) end

-- Checks n integers of 1 or more.
local function integers(name, list, n)
  local ok = type(list) == "table" and #list == n
  for i = 1, ok and n or 0 do
    ok = ok and math.type(list[i]) == "integer" and list[i] >= 1
  end
  need(ok, "%s = %s; %d integers of 1 or more are needed", name,
       core.show(list), n)
end

local function one_of(o, name, ...)
  local words = {...}
  for i, word in ipairs(words) do
    if o[name] == word then return end
    words[i] = core.show(word)
  end
  need(false, "%s = %s; %s is needed", name, core.show(o[name]),
       table.concat(words, " or "))
end

-- Checks the types: tensor cores must be able to multiply A's type by B's.
local function types(o)
  for _, name in ipairs {"dtype", "a_dtype", "b_dtype", "d_dtype"} do
    local x = o[name]
    need(x == nil or core.typename(x) == "dtype",
         "%s = %s; a type is needed, such as cute.bf16", name, core.show(x))
  end
  local a, b = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  local function kind(t)
    local name = tostring(t)
    if name == "e4m3" or name == "e5m2" then return "8-bit floats" end
    if name == "i8" or name == "u8" then return "bytes" end
    return (name == "bf16" or name == "f16" or name == "f32") and name
  end
  for _, x in ipairs {{"a_dtype", a}, {"b_dtype", b}} do
    need(kind(x[2]), "%s = %s; bf16, f16, f32 (cut to tf32), e4m3, e5m2, i8 or "
      .. "u8 is needed", o[x[1]] and x[1] or "dtype", tostring(x[2]))
  end
  need(kind(a) == kind(b), "A has type %s, B %s; tensor cores need the same "
    .. "type, except 8-bit floats or bytes", tostring(a), tostring(b))
  need(o.a_major == "k" and o.b_major == "k" or a.bits == 16,
    "a_major = %s, b_major = %s of %s; tensor cores need K contiguous for all "
    .. "types but 16-bit "
    .. "ones", core.show(o.a_major), core.show(o.b_major), tostring(a))
  need(not o.promote or o.blocks or kind(a) == "8-bit floats", "promote = %s "
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
  for _, name in ipairs {"a_dtype", "b_dtype"} do
    local t = o[name] or o.dtype
    need(bk * t.bits % 512 == 0, "tile = {%d, %d, %d}; K of a tile must be a "
      .. "multiple of %d, 64 bytes of %s", bm, bn, bk, 512 // t.bits,
      tostring(t))
  end
end

-- Checks the cluster. Each block of a cluster's row loads a part of A for the
-- row, each block of a column a part of B. The parts must be whole swizzle
-- patterns, of 8 rows.
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

-- Checks groups, and the options that they allow.
local function groups(o)
  one_of(o, "groups", "rows", "masked", "list")
  need(o.groups ~= "list" or o.schedule ~= "pingpong" and not o.blocks,
    "groups = \"list\" cannot be combined with schedule = \"pingpong\" or "
      .. "the option blocks")
  need(o.split == 1 and not o.batches and o.persistent
    and o.scheduler == "static", "groups = %s cannot be combined with split, "
    .. "batches, persistent = false or scheduler = \"dynamic\"",
    core.show(o.groups))
  need(o.groups ~= "rows" or o.a_major == "k" and o.d_major == "n",
    "groups = \"rows\" with a_major = %q and d_major = %q; groups can start at "
    .. "any row, but TMA boxes start at multiples of 16 bytes: rows of A and D "
    .. "must be contiguous",
    o.a_major, o.d_major)
end

-- Checks the sources of an epilogue.
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
  one_of(o, "split", 1, 2, "stream")
  one_of(o, "scheduler", "static", "dynamic")
  for _, name in ipairs {"pdl", "persistent", "raster_along_m", "epi_loop"} do
    one_of(o, name, true, false)
  end
  if o.ahead then
    one_of(o, "ahead", "a", "b")
    need(o.pdl and (o.split == 2 or not o.persistent), "ahead = %q needs "
      .. "dependent launches of blocks with one tile: pdl = true, persistent = "
      .. "false", o.ahead)
  end
  need(not o.batches or o.split == 1 and not o.gated
    and o.scheduler ~= "dynamic", "batches = true cannot be combined with "
    .. "split, gated = true or scheduler = \"dynamic\"")
  if o.groups ~= nil then groups(o) end
  for _, name in ipairs {"a_hint", "b_hint", "d_hint"} do
    local hint = o[name]
    need(hint == nil or math.type(hint) == "integer", "%s = %s; a policy is "
      .. "needed, such as those of cpasync.CacheHint", name, core.show(hint))
  end
  need(o.epilogue == nil or type(o.epilogue) == "function",
       "epilogue = %s; a function is needed", core.show(o.epilogue))
  sources(o)
  types(o)
  tile(o)
  cluster(o)
  need(o.schedule ~= "pingpong" or o.consumers > 1, "schedule = \"pingpong\" "
    .. "with %d consumer; at least two consumers are needed", o.consumers)
  local columns = o.tile[2] // (o.split == 2 and 2 or 1) // (o.gated and 2 or 1)
  local epi = o.epi
  if epi == nil then return end
  integers("epi", epi, 2)
  local run = epi[2] * (o.d_dtype or o.dtype).bits
  need(epi[1] == 64 and columns % epi[2] == 0 and (o.d_major == "m"
    or run % 128 == 0), "epi = {%d, %d}; 64 rows, and columns that are a "
    .. "multiple of 16 bytes and divide %d, are "
    .. "needed", epi[1], epi[2], columns)
end

--- Raises an error unless complete options are compatible with each other.
---@param o table
function wrong.together(o)
  need(not o.stream or not o.pingpong
    and (o.cluster[1] == 1 or o.cluster[2] == 1), "split = \"stream\" needs "
    .. "consumers that share a tile, and clusters along one mode")
  need(o.split == 1 or o.split == 2 and not o.clustered and not o.pingpong,
    "split must be 1 or, without clusters and schedule = \"pingpong\", 2")
  need(not o.dynamic or not o.stream and o.persistent,
    "scheduler = \"dynamic\" needs persistent = true and split = 1")
  need(not o.pingpong or o.persistent, "schedule = \"pingpong\" needs "
    .. "persistent blocks, but persistent = false gives one tile to each block")
end

-- Returns the reason why TMA cannot reach the rows of t, or nil. TMA needs one
-- contiguous mode, `lead`, and rows at multiples of 16 bytes.
local function reach(name, t, lead, mode)
  if t.stride[lead] ~= 1 then
    return ("%s of %s is not contiguous: it is %s"):format(mode, name,
      tostring(t.layout))
  end
  local bytes = t.stride[3 - lead] * t.element_type.bits // 8
  if t.stride[3 - lead] * t.element_type.bits % 128 ~= 0 then
    return ("rows of %s are %d bytes apart; TMA needs multiples of 16"):format(
      name, bytes)
  end
end

--- Raises an error unless source i is a matrix like D that TMA can reach.
function wrong.source(o, i, t)
  local s = o.sources[i]
  local name = "source " .. i
  need(core.typename(t) == "tensor" and t.element_type == s.dtype, "%s is %s; "
    .. "a tensor of %s is needed", name, core.show(t), tostring(s.dtype))
  local why = reach(name, t, s.major == "n" and 2 or 1, s.major:upper())
  need(not why, "%s", why)
end

--- Reports whether operand X is a view: a table {shape, element_type, tensor,
-- load} whose function load(layout, tiler, ctas, options) makes its TMA atom.
function wrong.is_view(X) return type(X) == "table" and X.load ~= nil end

--- Returns the reason why TMA cannot reach these operands, or nil if it can.
---@param o table options
---@return string?
function wrong.reach(o, A, B, D)
  return not wrong.is_view(A)
      and reach("A", A, o.a_major == "k" and 2 or 1, o.a_major:upper())
    or reach("B", B, o.b_major == "k" and 2 or 1, o.b_major:upper())
    or reach("D", D, o.d_major == "n" and 2 or 1, o.d_major:upper())
end

--- Raises an error unless these are A (M,K), B (N,K) and D (M,N) with the types
-- of the options.
---@param o table options
function wrong.operands(o, A, B, D)
  local list = {A = A, B = B, D = D}
  local many = o.batches or o.groups == "masked"
  local matrices = {A = many, B = many or o.groups == "rows", D = many}
  for _, name in ipairs {"A", "B", "D"} do
    local t, want = list[name], o[name:lower() .. "_dtype"]
    need(core.typename(t) == "tensor" or wrong.is_view(t),
         "%s is %s; a tensor is needed", name,
         core.show(t))
    local shape = t.shape
    need(type(shape) == "table" and (#shape == (matrices[name] and 3 or 2)
        -- with groups, a matrix (M,N) is allowed, too
        or o.groups and #shape == 2)
      and type(shape[1]) ~= "table" and type(shape[2]) ~= "table",
      "%s is %s; %s needed", name, tostring(t.layout),
      not matrices[name] and "a matrix is" or o.groups
        and "matrices of groups are" or "matrices of batches are")
    need(t.element_type == want, "%s has type %s, but this kernel needs "
      .. "%s", name,
         tostring(t.element_type), tostring(want))
  end
  rules.same(WHAT, "K of A", A.shape[2], "of B", B.shape[2])
  rules.same(WHAT, "M of A", A.shape[1], "of D", D.shape[1])
  if o.gated then
    local n = D.shape[2]
    rules.same(WHAT, "N of B", B.shape[1], "twice the columns of D",
               math.type(n) and 2 * n)
    return
  end
  rules.same(WHAT, "N of B", B.shape[1], "of D", D.shape[2])
end

return wrong
-- SPDX-License-Identifier: MIT
