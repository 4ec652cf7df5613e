--- Checks the operands of GEMMs that load and store by TMA (kernels/gemm_sm90,
-- kernels/gemm_sm100), and the options that describe operands. Errors begin
-- with o.kernel, the name of the kernel.
local rules = require "kernels.operand_rules"
local core = require "cute.core"

local tma_rules = {}

local function need(o, ok, text, ...) rules.need(ok, o.kernel, text, ...) end

--- Raises an error unless the options that name types, if given, are types.
---@param o table options
function tma_rules.dtypes(o)
  for _, name in ipairs {"dtype", "a_dtype", "b_dtype", "d_dtype"} do
    local x = o[name]
    need(o, x == nil or core.typename(x) == "dtype",
         "%s = %s; a type is needed, such as cute.bf16", name, core.show(x))
  end
end

local KINDS = {e4m3 = "8-bit floats", e5m2 = "8-bit floats", i8 = "bytes",
               u8 = "bytes", bf16 = "bf16", f16 = "f16", f32 = "f32"}

--- Raises an error unless tensor cores support the product of A's type and B's.
-- Returns a phrase that describes the types: "bf16", "f16", "f32", "8-bit
-- floats" or "bytes".
---@param o table options
---@return string
function tma_rules.multiplied(o)
  local a, b = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  local function kind(t) return KINDS[tostring(t)] end
  for _, x in ipairs {{"a_dtype", a}, {"b_dtype", b}} do
    need(o, kind(x[2]), "%s = %s; bf16, f16, f32 (cut to tf32), e4m3, e5m2, i8 "
      .. "or u8 is needed", o[x[1]] and x[1] or "dtype", tostring(x[2]))
  end
  need(o, kind(a) == kind(b), "A has type %s, B %s; tensor cores need the same "
    .. "type, except 8-bit floats or bytes", tostring(a), tostring(b))
  return kind(a)
end

--- Raises an error unless the K of a tile has a multiple of 64 bytes.
---@param o table options
function tma_rules.depth(o)
  local bm, bn, bk = table.unpack(o.tile)
  for _, name in ipairs {"a_dtype", "b_dtype"} do
    local t = o[name] or o.dtype
    need(o, bk * t.bits % 512 == 0, "tile = {%d, %d, %d}; K of a tile must be "
      .. "a multiple of %d, 64 bytes of %s", bm, bn, bk, 512 // t.bits,
      tostring(t))
  end
end

--- Raises an error unless the option `groups` is valid.
---@param o table options
function tma_rules.groups(o)
  rules.one_of(o.kernel, o, "groups", "rows", "masked", "list")
  need(o, o.groups ~= "rows" or o.a_major == "k" and o.d_major == "n",
    "groups = \"rows\" with a_major = %q and d_major = %q; groups can start at "
    .. "any row, but TMA boxes start at multiples of 16 bytes: rows of A and D "
    .. "must be contiguous",
    o.a_major, o.d_major)
end

--- Raises an error unless the hints for L2 and the epilogue are valid.
---@param o table options
function tma_rules.hints(o)
  for _, name in ipairs {"a_hint", "b_hint", "d_hint"} do
    local hint = o[name]
    need(o, hint == nil or math.type(hint) == "integer", "%s = %s; a policy is "
      .. "needed, such as those of cpasync.CacheHint", name, core.show(hint))
  end
  need(o, o.epilogue == nil or type(o.epilogue) == "function",
       "epilogue = %s; a function is needed", core.show(o.epilogue))
end

-- Returns the reason why TMA cannot access the rows of t, or nil if it can. TMA
-- needs one contiguous mode, `lead`, and rows at multiples of 16 bytes.
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

--- Raises an error unless source i is a matrix with D's extents that TMA can
-- access.
function tma_rules.source(o, i, t)
  local s = o.sources[i]
  local name = "source " .. i
  need(o, core.typename(t) == "tensor" and t.element_type == s.dtype, "%s is "
    .. "%s; a tensor of %s is needed", name, core.show(t), tostring(s.dtype))
  local why = reach(name, t, s.major == "n" and 2 or 1, s.major:upper())
  need(o, not why, "%s", why)
end

--- Reports whether operand X is a view: a table {shape, element_type, tensor,
-- load} whose function load(layout, tiler, ctas, options) makes its TMA atom.
function tma_rules.is_view(X) return type(X) == "table" and X.load ~= nil end

--- Returns the reason why TMA cannot access these operands, or nil if it can.
---@param o table options
---@return string?
function tma_rules.reach(o, A, B, D)
  return not tma_rules.is_view(A)
      and reach("A", A, o.a_major == "k" and 2 or 1, o.a_major:upper())
    or reach("B", B, o.b_major == "k" and 2 or 1, o.b_major:upper())
    or reach("D", D, o.d_major == "n" and 2 or 1, o.d_major:upper())
end

--- Raises an error unless these are A (M,K), B (N,K) and D (M,N) with the types
-- of the options.
---@param o table options
function tma_rules.operands(o, A, B, D)
  local list = {A = A, B = B, D = D}
  local many = o.batches or o.groups == "masked"
  local matrices = {A = many, B = many or o.groups == "rows", D = many}
  for _, name in ipairs {"A", "B", "D"} do
    local t, want = list[name], o[name:lower() .. "_dtype"]
    need(o, core.typename(t) == "tensor" or tma_rules.is_view(t),
         "%s is %s; a tensor is needed", name, core.show(t))
    local shape = t.shape
    need(o, type(shape) == "table" and (#shape == (matrices[name] and 3 or 2)
        -- With groups, a matrix (M,N) is allowed, too.
        or o.groups and #shape == 2)
      and type(shape[1]) ~= "table" and type(shape[2]) ~= "table",
      "%s is %s; %s needed", name, tostring(t.layout),
      not matrices[name] and "a matrix is" or o.groups
        and "matrices of groups are" or "matrices of batches are")
    need(o, t.element_type == want, "%s has type %s, but this kernel needs "
      .. "%s", name, tostring(t.element_type), tostring(want))
  end
  local what = o.kernel
  rules.same(what, "K of A", A.shape[2], "of B", B.shape[2])
  rules.same(what, "M of A", A.shape[1], "of D", D.shape[1])
  if o.gated then
    local n = D.shape[2]
    rules.same(what, "N of B", B.shape[1], "twice the columns of D",
               math.type(n) and 2 * n)
    return
  end
  rules.same(what, "N of B", B.shape[1], "of D", D.shape[2])
end

return tma_rules
-- SPDX-License-Identifier: MIT
