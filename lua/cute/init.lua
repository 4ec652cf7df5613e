--- cutelua: CuTe's layouts, tensors, atoms and tiled operations in Lua.
--
-- `local cute = require "cute"`. The algebra and host tensors work anywhere;
-- inside a function given to cute.kernel the same names append to a kernel.
-- Modules are loaded when first used.
local core = require "cute.core"
local namespace = require "cute.namespace"

local cute = {version = core.version}

-- What has a signature is for users (see core/arglib.c), and so are types and
-- constants; the rest are primitives for lua/cute/*.lua.
for name, v in pairs(core) do
  if type(v) == "userdata" or type(v) == "function" and core.signature(v) then
    cute[name] = v
  end
end

-- Functions of these modules are cute's own.
local PARTS = {
  ["cute.trace"] = {"range", "range_constexpr", "when", "loop", "var"},
  ["cute.kernel"] = {"kernel", "compile", "device"},
  ["cute.draw"] = {"print_layout", "print_tensor"},
  ["cute.explain"] = {"explain"},
  ["cute.tuple"] = {"transform_leaf", "find_if", "filter_tuple",
                    "pretty_str", "size_in_bytes", "coords", "assume"},
  ["cute.math"] = {"add", "sub", "mul", "div", "neg", "rem", "absf", "absi",
    "clamp", "sincos", "isnan", "isinf", "isfinite", "isnormal", "fpowi",
    "ipowi", "fast_divmod_create_divisor"},
  ["cute.smemstruct"] = {"struct", "union"},
  ["cute.algorithm"] = {"fill", "clear", "axpby", "transform", "reduce"},
  ["cute.pointer"] = {"make_ptr", "recast_ptr", "empty_like", "make_atom"},
}
-- Modules that are fields of cute.
local MODULES = {arch = "cute.arch", gpu = "cute.gpu", jit = "cute.jit",
                 npy = "cute.npy", cli = "cute.cli",
                 testing = "cute.testing", pipeline = "cute.pipeline",
                 utils = "cute.utils"}
-- The Python DSL's names of element types.
local TYPES = {
  Boolean = "boolean", Int8 = "i8", Uint8 = "u8", Int16 = "i16",
  Uint16 = "u16", Int32 = "i32", Uint32 = "u32", Int64 = "i64",
  Uint64 = "u64", Float16 = "f16", BFloat16 = "bf16", TFloat32 = "tf32",
  Float32 = "f32", Float64 = "f64", Float8E4M3FN = "e4m3",
  Float8E5M2 = "e5m2", Int4 = "i4",
}
for name, short in pairs(TYPES) do cute[name] = core[short] end

local LAZY = {}
for module, names in pairs(PARTS) do
  for _, name in ipairs(names) do LAZY[name] = module end
end

return namespace.strict(cute, "cute", function(name)
  if LAZY[name] then return require(LAZY[name])[name] end
  local module = MODULES[name]
  return module and namespace.strict(require(module), "cute." .. name)
end, {LAZY, MODULES})
