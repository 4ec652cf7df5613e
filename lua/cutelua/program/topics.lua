--- Sorts the names in cute and its modules by topic.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local topics = {}

-- Topics of the names in cute. A topic also lists modules whose functions are
-- fields of cute.
local CUTE = {
  {"layouts", [[layout make_layout make_identity_layout make_ordered_layout
    make_layout_like make_layout_tv make_layout_image_mask
    make_composed_layout make_swizzle Swizzle get_swizzle get_swizzle_portion
    get_nonswizzle_portion shape stride size cosize coshape rank depth
    leading_dim is_major with_shape idx2crd crd2idx crd2crd get_1d_coord
    get_flat_coord get_hier_coord compact_col_major compact_order
    compact_row_major max_alignment layout_add recast_layout upcast downcast
    find_swizzle]]},
  {"algebra", [[coalesce composition complement left_inverse right_inverse
    nullspace logical_divide zipped_divide tiled_divide flat_divide
    logical_product zipped_product tiled_product flat_product blocked_product
    raked_product tile_to_shape tile_unzip filter filter_zeros group
    group_modes select get take append prepend replace remove flatten
    unflatten dice slice slice_ slice_and_offset domain_offset
    domain_distribute max_common_layout max_common_vector
    greatest_common_domain coprofile inner_product]]},
  {"tuples", [[parse tuple tuple_cat ArithmeticTuple ScaledBasis E F2
    basis_get basis_value make_basis_like wrap unwrap zip insert front back
    reverse repeat_as_tuple repeat_like product product_each product_like sum
    flatten_to_tuple find increment increment_coord get_leaves
    get_divisibility has_underscore is_int_tuple is_integer is_static
    constexpr elem_scale elem_geq elem_gtr elem_leq elem_less lex_geq lex_gtr
    lex_leq lex_less colex_geq colex_gtr colex_leq colex_less compatible
    congruent weakly_compatible weakly_congruent is_congruent
    is_weakly_congruent evenly_divides ceil_div round_up shape_div gcd
    cute.tuple]]},
  {"tensors", [[tensor make_tensor make_identity_tensor zeros ones rand randn
    randint full empty full_like zeros_like ones_like manual_seed buffer
    buffer_from on_device make_rmem_tensor make_rmem_tensor_like
    make_fragment make_fragment_like make_smem_tensor local_tile
    local_partition inner_partition outer_partition recast recast_tensor
    partial_ok undefined_ok nonfinite_ok broadcast to_bits from_bits
    cute.algorithm cute.pointer cute.smemstruct cute.symbolic]]},
  {"atoms", [[make_copy_atom make_mma_atom atom_name make_tiled_copy
    make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C
    make_tiled_copy_C_atom make_tiled_copy_D make_tiled_copy_S
    make_tiled_copy_tv make_cotiled_copy make_tiled_mma copy copy_if
    copy_atom_call autovec_copy basic_copy basic_copy_if gemm gemm_check
    gemm_reference mma_atom_call cute.nvgpu.cpasync]]},
  {"kernels", "cute.lang.kernel cutelua.cache.many cutelua.ptx.raw "
    .. "cutelua.debug nvrtc_version"},
  {"control flow", "cute.lang.branch cute.lang.trace"},
  {"streams", "cute.stream"},
  {"looking", [[cute.draw cutelua.draw.print cutelua.draw.printing
    cutelua.program.explain cutelua.program.diff cute.doc]]},
  {"math", [[cute.math abs acos acosh all_ any_ asin asinh atan atan2 atanh
    cbrt ceil copysign cos cos_approx cosh div_full eq erf erfc ex2_approx exp
    exp2 expm1 floor fma fmod ge gt le lg2_approx log log10 log1p log2 lt max
    min ne pow rcp rcp_approx round roundeven rsqrt rsqrt_approx sin
    sin_approx sinh sqrt sqrt_approx tan tanh tanh_approx trunc where]]},
}

-- Maps each name in CUTE to its topic.
local topic_of = {}
for _, t in ipairs(CUTE) do
  for word in t[2]:gmatch "%S+" do topic_of[word] = t[1] end
end

local ORDER = {"modules"}
for i, t in ipairs(CUTE) do ORDER[i + 1] = t[1] end
for _, title in ipairs {"types", "classes", "functions", "constants", "more"} do
  ORDER[#ORDER + 1] = title
end

-- Returns the topic of field `name` of namespace t. v is the field's value; it
-- is nil if the field's module is not loaded yet.
local function topic(t, name, v, module)
  local cute = sign.namespaces[t] == "cute"
  if v ~= nil and sign.namespaces[v] then return "modules" end
  if core.typename(v) == "dtype" then return "types" end
  if cute and (topic_of[name] or topic_of[module]) then
    return topic_of[name] or topic_of[module]
  end
  if type(v) == "function" then return cute and "more" or "functions" end
  if type(v) == "table" then return "classes" end
  return v ~= nil and "constants" or "more"
end

--- Returns the names of a namespace by topic: {{title =, names = sorted}, ...}.
-- Each name occurs once.
---@param t table one of sign.namespaces
---@return table[]
function topics.of(t)
  local known, by = {}, {}
  local functions, modules = sign.lazy(t)
  local function add(name, title)
    if known[name] or type(name) ~= "string" then return end
    known[name] = true
    by[title] = by[title] or {title = title, names = {}}
    table.insert(by[title].names, name)
  end
  for name in pairs(modules) do add(name, "modules") end
  for name, module in pairs(functions) do
    add(name, topic(t, name, rawget(t, name), module))
  end
  for name, v in next, t do add(name, topic(t, name, v)) end
  if sign.namespaces[t] == "cute" then add("math", "modules") end
  local out = {}
  for _, title in ipairs(ORDER) do
    if by[title] then
      table.sort(by[title].names)
      out[#out + 1] = by[title]
    end
  end
  return out
end

return topics
-- SPDX-License-Identifier: MIT
