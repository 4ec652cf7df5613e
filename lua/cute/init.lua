--- cutelua: CuTe's layouts, tensors, atoms and tiled operations in Lua.
--
-- `local cute = require "cute"`. The layout algebra and host tensors work
-- anywhere. Inside a function given to cute.kernel, the same functions append
-- operations to the kernel. Modules are loaded on first use.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local cute = {version = core.version}

-- The fields of core that become public names: functions with a signature
-- (core/bind/public.c), types and constants. The other fields of core are
-- primitives for lua/cute/*.lua.
for name, v in pairs(core) do
  if type(v) == "userdata" or type(v) == "function" and core.signature(v) then
    cute[name] = v
  end
end

-- Modules whose functions are fields of cute itself, with their signatures
-- (cute.lang.signature).
local PARTS = {
  ["cute.lang.branch"] = [[
    when(condition: boolean|value, f?: function, g?: function)
    cases(condition: boolean|value, more...: boolean|value)]],
  ["cute.lang.trace"] = [[
    range(first: number|value, limit?, step?, opts?: {unroll})
    range_constexpr(first: number|value, limit?, step?)
    loop(condition: function, body: function)
    break_if(condition: boolean|value) func(f: function)
    return_if(condition: boolean|value, values...)
    var(x: number|boolean|value, dtype?: dtype|string)]],
  ["cute.lang.kernel"] = [[
    kernel(name: string|function, opts?: table|function, func?: function)
    compile(kernel: kernel, arguments...) device(name?: string|device,
    arch?: string)]],
  ["cute.stream"] = [[
    stream(device?) external_stream(handle: integer, device?)
    event(device?) with_stream(stream, f: function,
    arguments...) synchronize(device?) graph(f: function, opts?: table)]],
  ["cute.tuple"] = [[
    transform_leaf(f, t, more...) transform_apply(tuples...) find_if(t, f)
    filter_tuple(t, f, more...) append_ones(x, up_to_rank?: integer)
    pretty_str(x) size_in_bytes(dtype: dtype|tensor, layout?) coords(shape)
    assume(x: integer|value, lo: integer|table, hi?: integer, div?: integer)]],
  ["cute.math"] = [[
    add(x: number|value|vector, y: number|value|vector, opts?: {ftz rounding})
    sub(x: number|value|vector, y: number|value|vector)
    mul(x: number|value|vector, y: number|value|vector, opts?: {ftz rounding})
    div(x: number|value|vector, y: number|value|vector,
      opts?: {fastmath ftz rounding})
    rem(x: number|value|vector, y: number|value|vector)
    neg(x: number|value|vector) absf(x) absi(x) clamp(x, lo, hi)
    sincos(x, opts?: {fastmath})
    isnan(x: number|value|vector) isinf(x: number|value|vector)
    isfinite(x: number|value|vector) isnormal(x: number|value|vector)
    fpowi(x: number|value|vector, n: integer|value)
    ipowi(x: integer|value|vector, n: integer|value)
    fast_divmod_create_divisor(divisor: integer|value)]],
  ["cute.symbolic"] = [[
    sym_int(width?: integer|{divisibility}, opts?: {divisibility})
    sym_int32(divisibility?: integer) sym_int64(divisibility?: integer)
    make_fake_tensor(dtype: dtype|string, shape, stride,
      opts?: {assumed_align memspace})
    make_fake_compact_tensor(dtype: dtype|string, shape,
      opts?: {assumed_align memspace stride_order use_32bit_stride})
    symbolic(declaration: {align dtype shape stride})]],
  ["cute.sparse_elem"] = [[
    get_sparse_elem_type(num_logical: integer, num_phys: integer,
      elem_type: dtype|string)
    make_sparse_elem(num_logical: integer, elems: table)]],
  ["cute.smemstruct"] = [[struct(fields: table) union(fields: table)]],
  ["cute.algorithm"] = [[
    fill(tensor: tensor, x) clear(tensor: tensor)
    axpby(alpha: number|value, x: tensor, beta: number|value, y: tensor,
      pred?: tensor)
    transform(tensor: tensor, more...: tensor|function)
    reduce(tensor: tensor, init: number|value, op?: function)]],
  ["cute.nvgpu.sm90.cpasync"] = [[
    prefetch(tma_atom, gmem_tensor: tensor)]],
  ["cute.pointer"] = [[
    make_ptr(dtype: dtype|string, value: integer|value|buffer|tensor,
      memspace?: string|table, opts?: {assumed_align})
    recast_ptr(pointer: tensor, dtype?, swizzle?)
    empty_like(x: vector|tensor, dtype?: dtype|string)
    make_atom(name: string, dtype?: dtype|string)]],
}
-- Modules that are fields of cute.
local MODULES = {arch = "cute.arch", gpu = "cute.gpu", jit = "cute.jit",
                 nvgpu = "cute.nvgpu",
                 pipeline = "cute.pipeline", utils = "cute.utils",
                 ops = "cute.ops"}
-- The names of cute.math; they are also the Python DSL's names.
local MATH = [[abs absf absi acos acosh add asin asinh atan atan2 atanh cbrt
  ceil clamp copysign cos cosh div erf erfc exp exp2 expm1 floor fma fmod
  fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 max min mul
  neg pow rcp rem round roundeven rsqrt sin sincos sinh sqrt sub tan tanh
  trunc]]
-- Maps the Python DSL's names of element types to the names in cutelua.
local TYPES = {
  Boolean = "boolean", Int8 = "i8", Uint8 = "u8", Int16 = "i16",
  Uint16 = "u16", Int32 = "i32", Uint32 = "u32", Int64 = "i64",
  Uint64 = "u64", Float16 = "f16", BFloat16 = "bf16", TFloat32 = "tf32",
  Float32 = "f32", Float64 = "f64", Float8E4M3FN = "e4m3",
  Float8E5M2 = "e5m2", Float8E8M0FNU = "ue8m0", Float6E2M3FN = "e2m3",
  Float6E3M2FN = "e3m2", Float4E2M1FN = "e2m1", Int4 = "i4", Uint4 = "u4",
  Uint128 = "u128",
}
for name, short in pairs(TYPES) do cute[name] = core[short] end

-- The Python DSL's enumerations. Their values are the strings that reductions
-- and pointers accept.
cute.ReductionOp = {ADD = "add", MUL = "mul", MAX = "max", MIN = "min",
                    AND = "and", OR = "or"}
cute.AddressSpace = {gmem = "gmem", smem = "smem", rmem = "rmem",
                     generic = "gmem"}

core.mover(function(...) return require "cute.ops.elementwise".move(...) end)
core.operators(function(...)
  return require "cute.ops.operators".apply(...)
end)

return sign.parts(cute, "cute", "cute.", PARTS, function(name)
  if name == "math" then
    local functions = {}
    for f in MATH:gmatch "%w+" do functions[f] = cute[f] end
    return sign.namespace(functions, "cute.math")
  end
  -- cute.runtime has the functions of the Python DSL's module runtime that
  -- cutelua supports.
  if name == "runtime" then
    return sign.namespace({make_ptr = cute.make_ptr,
      make_fake_tensor = cute.make_fake_tensor,
      make_fake_compact_tensor = cute.make_fake_compact_tensor,
      from_dlpack = cute.from_dlpack}, "cute.runtime")
  end
  local module = MODULES[name] and require(MODULES[name])
  if not module or sign.namespaces[module] then return module end
  return sign.namespace(module, "cute." .. name)
end, MODULES)
-- SPDX-License-Identifier: MIT
