--- Names, options and calls of the Python DSL, CUDA C, Triton and PyTorch, with
-- what to write in a script instead. (core/base/synonyms.h has names that
-- differ only in spelling, such as `grid_dim` for `grid`.)
local core = require "cute.core"

local foreign = {}

-- Returns a table with an entry for each name. The keys of `list` are names
-- separated by spaces; all names of a key get its value.
local function rows(list)
  local out = {}
  for names, text in pairs(list) do
    for name in names:gmatch "%S+" do out[name] = text end
  end
  return out
end

--- For each name of another language, the text to write instead.
foreign.NAMES = rows {
  -- Python
  ["None"] = "nil, or cute._ in a coordinate", ["True"] = "true",
  ["False"] = "false", ["len"] = "#list, cute.size(x)",
  ["enumerate"] = "ipairs", ["str"] = "tostring",
  ["int"] = "x // 1, in a kernel x:to(cute.i32)",
  ["float"] = "in a kernel x:to(cute.f32)", ["dict list"] = "{}",
  ["cutlass cutelua torch np tl triton"] = "cute",
  ["null nullptr NULL"] = "nil",
  ["isinstance"] = "type(x), core types by x.__name",
  -- threads in CUDA C
  ["threadIdx"] = "local x, y, z = cute.arch.thread_idx()",
  ["blockIdx"] = "local x, y, z = cute.arch.block_idx()",
  ["blockDim"] = "local x, y, z = cute.arch.block_dim()",
  ["gridDim"] = "local x, y, z = cute.arch.grid_dim()",
  ["warpSize"] = "32", ["dim3"] = "{x, y, z}",
  ["__syncthreads syncthreads"] = "cute.arch.sync_threads",
  ["__syncwarp syncwarp"] = "cute.arch.sync_warp",
  ["__threadfence"] = "cute.arch.fence_acq_rel_gpu",
  ["__threadfence_block"] = "cute.arch.fence_acq_rel_cta",
  ["__global__"] = "cute.kernel(\"name\", function(...) end)",
  ["__device__"] = "a Lua function",
  ["__launch_bounds__"] = "cute.kernel(\"name\", {block = 128}, "
    .. "function(...) end)",
  -- memory in CUDA C
  ["__shared__ shared_memory SharedMemory"] = "cute.make_smem_tensor",
  ["cudaMalloc"] = "cute.zeros({m, n}, cute.f32, {device = \"gpu\"})",
  ["cudaMemcpy cudaMemcpyAsync"] = "tensor:to, tensor:copy_from",
  ["cudaFree"] = "nothing: tensors are freed when they are not used",
  ["cudaDeviceSynchronize cuda_synchronize"] = "cute.synchronize",
  ["cudaStreamCreate Stream"] = "cute.stream",
  ["__ldg __ldcs"] = "t[i]",
  ["atomicAdd"] = "cute.arch.atomic_add",
  ["atomicMax"] = "cute.arch.atomic_max",
  ["atomicMin"] = "cute.arch.atomic_min",
  ["atomicCAS"] = "cute.arch.atomic_cas",
  ["atomicExch"] = "cute.arch.atomic_exch",
  -- warps and arithmetic in CUDA C
  ["__shfl_sync"] = "cute.arch.shuffle_sync",
  ["__shfl_up_sync"] = "cute.arch.shuffle_sync_up",
  ["__shfl_down_sync"] = "cute.arch.shuffle_sync_down",
  ["__shfl_xor_sync"] = "cute.arch.shuffle_sync_bfly",
  ["__ballot_sync"] = "cute.arch.vote_ballot_sync",
  ["__any_sync"] = "cute.arch.vote_any_sync",
  ["__all_sync"] = "cute.arch.vote_all_sync",
  ["__popc"] = "cute.arch.popc", ["__clz"] = "cute.arch.clz",
  ["__ffs ffs"] = "32 - cute.arch.clz(x & -x)",
  ["__fmaf_rn fmaf"] = "cute.fma", ["rsqrtf __frsqrt_rn"] = "cute.rsqrt",
  ["expf __expf"] = "cute.exp", ["logf __logf"] = "cute.log",
  ["sqrtf"] = "cute.sqrt", ["tanhf"] = "cute.tanh", ["fabsf fabs"] = "cute.abs",
  ["fmaxf fmax maximum"] = "cute.max", ["fminf fmin minimum"] = "cute.min",
  ["__float2half __float2bfloat16 __half2float"] = "x:to(cute.f16)",
  ["half __half float16"] = "cute.f16",
  ["__nv_bfloat16 nv_bfloat16 bfloat16"] = "cute.bf16",
  ["float32"] = "cute.f32", ["float64 double"] = "cute.f64",
  ["int8"] = "cute.i8", ["int16"] = "cute.i16", ["int32"] = "cute.i32",
  ["int64"] = "cute.i64", ["uint8"] = "cute.u8", ["uint32"] = "cute.u32",
  ["uint64"] = "cute.u64", ["float8e4nv float8_e4m3fn"] = "cute.e4m3",
  ["float8e5 float8_e5m2"] = "cute.e5m2", ["bool"] = "cute.boolean",
  -- Triton
  ["program_id"] = "cute.arch.block_idx", ["num_programs"] =
    "cute.arch.grid_dim", ["cdiv"] = "cute.ceil_div",
  ["arange"] = "cute.arch.thread_idx, or a loop over cute.range(n)",
  ["static_range"] = "cute.range_constexpr",
  ["load"] = "t[i], tensor:load(), or cute.copy with {pred = p} for a mask; "
    .. "for a file cute.npy.tensor(cute.npy.read(path))",
  ["load_npy read_npy fromfile"] = "cute.npy.tensor(cute.npy.read(path))",
  ["save save_npy tofile"] = "cute.npy.write(path, {dtype =, shape =, "
    .. "bytes =}), cute.safetensors.write(path, {name = tensor})",
  ["load_file safe_open"] = "cute.safetensors.open {path}",
  ["save_file"] = "cute.safetensors.write(path, {name = tensor})",
  ["shfl shfl_sync"] = "cute.arch.shuffle_sync",
  ["shfl_down shuffle_down"] = "cute.arch.shuffle_sync_down",
  ["shfl_up shuffle_up"] = "cute.arch.shuffle_sync_up",
  ["shfl_xor shuffle_xor"] = "cute.arch.shuffle_sync_bfly",
  ["store"] = "t[i] = x, tensor:store(x), or cute.copy with {pred = p}",
  ["dot matmul mma"] = "cute.gemm(mma, acc, a, b, acc) in a kernel, "
    .. "cute.ops.gemm(A, B) on the host",
  ["device_print"] = "cute.printf", ["device_assert"] = "cute.testing.assert_",
  ["static_assert"] = "assert", ["static_print"] = "print",
  ["debug_barrier"] = "cute.arch.sync_threads",
  ["multiple_of max_contiguous"] = "cute.assume",
  ["make_block_ptr advance"] = "cute.local_tile(t, tile, coordinate)",
  ["make_tensor_descriptor"] = "cute.nvgpu.cpasync.make_tiled_tma_atom",
  ["atomic_xchg"] = "cute.arch.atomic_exch",
  ["broadcast_to reshape"] = "vector:broadcast_to, vector:reshape",
  ["autotune"] = "cute.testing.autotune_jit",
  ["do_bench"] = "cute.testing.benchmark",
  ["inline_asm_elementwise asm"] = "cute.arch.inline_ptx",
  -- names of the Python DSL
  ["launch"] = "k(arguments...):launch {grid = g, block = b}",
  -- PyTorch
  ["sum mean prod amax argmax"] = "cute.ops.reduce(x, \"sum\") for a tensor "
    .. "on the host, x:load():reduce(\"add\", 0) for one in a kernel",
  ["bmm einsum linear mm addmm"] = "cute.ops.gemm(A, B), whose B is (N,K)",
  ["scaled_dot_product_attention sdpa flash_attention flash_attn"] =
    "cute.ops.attention(Q, K, V)",
  ["layer_norm"] = "cute.ops.layernorm", ["rms_norm"] = "cute.ops.rmsnorm",
  ["cast astype"] = "x:to(cute.f32) for a value, cute.ops.convert(x, dtype) "
    .. "for a tensor",
  ["from_numpy"] = "cute.tensor(list), cute.npy.read(path)",
  ["allclose assert_close assert_allclose isclose"] =
    "cute.testing.assert_close",
  ["warp_sum warp_reduce warp_reduce_sum reduce_sum"] =
    "cute.arch.warp_reduction_sum",
  ["warp_max warp_reduce_max"] = "cute.arch.warp_reduction_max",
  ["if_ if_then if_else cond"] = "cute.when(condition, f, g)",
  ["for_ for_range fori_loop for_generate"] =
    "for i in cute.range(lo, hi) do ... end",
  ["while_ while_loop"] = "cute.loop(condition, body)",
  ["print"] = "print(x) on the host, cute.printf(format, x) in a kernel",
  ["copy_async async_copy memcpy_async"] = "cute.copy with an atom of "
    .. "cute.nvgpu.cpasync",
  ["cp_async_wait_all"] = "cute.arch.cp_async_wait_group(0)",
  -- Lua 5.1
  ["unpack"] = "table.unpack", ["loadstring"] = "load",
  ["exit quit"] = "os.exit",
}

-- Names of other languages for which the advice is a sentence, because no
-- single name replaces them.
local SENTENCES = {
  jit = "a Lua function runs as it is on the host, and inlined in a kernel",
  const_expr = "values of Lua are constants, and Lua's `if` chooses by them",
  dynamic_expr = "branch with cute.when(condition, f, g)",
}

-- Words that, in the Python DSL, occur only in names of Blackwell's features.
local LATER = {"tmem", "tcgen05", "umma", "clc", "sm100", "sm103", "sm120",
  "blackwell", "blockscaled", "mxf8"}

-- Element types of the Python DSL for which cutelua has no arithmetic, atom or
-- conversion.
local NO_TYPES = {Float8E4M3 = true, Float8E4M3B11FNUZ = true,
                  Float8E3M4 = true, Int128 = true}

-- Returns what to write for a name of another language. The name may also lack
-- its leading underscores from CUDA C.
local function own_name(name)
  return foreign.NAMES[name] or foreign.NAMES["__" .. name]
end

--- Returns advice on a name of another language, or of a feature that is not
-- supported; nil for other names. Also returns whether the feature exists only
-- on Blackwell.
---@param name string
---@return string? advice
---@return boolean? later
function foreign.python_name(name)
  if NO_TYPES[name] then
    return "\n  kernels do not support that element type; supported: "
      .. "cute.Float8E4M3FN, Float8E5M2, Float8E8M0FNU, Uint128"
  end
  if SENTENCES[name] then return "\n  " .. SENTENCES[name] end
  if own_name(name) then return "\n  write " .. own_name(name) end
  for _, part in ipairs(LATER) do
    if name:lower():find(part, 1, true) then
      return "\n  this feature specific to Blackwell is not supported yet", true
    end
  end
end

---------------------------------------------------------------------------
-- Options
---------------------------------------------------------------------------

-- Options of other languages that have no counterpart here, and what to write
-- instead. OPTIONS[o] is for functions that have the option o.
local OPTIONS = {
  min_blocks = rows {
    ["grid cluster stream device seed pdl cooperative arch"] = "it is an "
      .. "option of k(x):launch {grid = g, block = b}",
  },
  block = rows {
    ["smem shared shared_mem shared_memory smem_bytes smem_size sharedMem "
      .. "shared_bytes dynamic_smem"] = "a kernel's shared memory is the sum "
      .. "of its tensors (cute.make_smem_tensor): leave the option out",
    ["num_warps warps"] = "write block = 32 * warps",
    ["num_stages stages"] = "a launch has no stages: pass the number to the "
      .. "kernel's pipeline, {num_stages = n}",
    ["waves_per_eu maxnreg max_registers maxrregcount num_regs"] = "registers "
      .. "follow from cute.kernel(name, {block = b, min_blocks = n}, f), or "
      .. "from cute.arch.setmaxregister_increase",
    ["args arguments kernel_args"] = "arguments are passed by the call: "
      .. "k(x, y):launch {grid = g, block = b}",
  },
  epilogue = rows {
    ["bias"] = "pass it as C: cute.ops.gemm(A, B, bias)",
    ["activation"] = "write epilogue = function(acc) return "
      .. "cute.ops.relu(acc) end",
    ["trans_a trans_b transA transB transpose_a transpose_b"] = "transpose "
      .. "the operand's layout instead: cute.select(t, {1, 0})",
  },
  alibi_slopes = rows {
    ["attn_mask mask attention_mask"] = "write bias = t for numbers that are "
      .. "added to the scores, mask_mod = function(at) for true and false",
    ["dropout dropout_p p_drop"] = "write mask_mod = function(at) return "
      .. "at:kept(p, seed) end",
    ["enable_gqa num_kv_heads"] = "leave it out: heads of Q share those of K "
      .. "and V",
    ["window_size"] = "write window = {left, right}",
    ["cu_seqlens cu_seqlens_q cu_seqlens_k"] = "write cu_q = t, cu_k = t",
  },
  by = rows {
    ["axis axes dim dims"] = "write by = \"row\" for the last mode, or by = "
      .. "{0} for a list of modes",
    ["keepdim keepdims"] = "the result lacks the reduced modes: give it a "
      .. "layout with a mode of stride 0",
  },
  dtype = rows {
    ["axis axes dim dims"] = "the operation runs along the last mode: pass a "
      .. "view such as cute.select(x, {1, 0}) for another",
    ["requires_grad"] = "derivatives are operations of their own",
  },
}
local ORDER = {"min_blocks", "block", "epilogue", "alibi_slopes", "by",
  "dtype"}

--- Returns a sentence about an option of another language that has no
-- counterpart here; nil for other options.
---@param name any
---@param known table the existing options, as keys
---@return string?
function foreign.option(name, known)
  for _, option in ipairs(ORDER) do
    if known[option] and OPTIONS[option][name] then
      return OPTIONS[option][name]
    end
  end
end

-- Options that only lessons, the demonstrations in scripts/, have; and what to
-- write in other scripts.
local LESSONS = {emit = "print k(...):trace({block = n}).source",
  arch = "launch with device = \"sim:sm_80\"",
  device = "launch with device = \"sim\"", seed = "launch with seed = n"}

--- Returns the message for an option of lessons that precedes the name of a
-- script; nil for other options.
---@param option string
---@return string?
function foreign.lesson_option(option)
  local advice = LESSONS[option:match "^%-%-(%l+)$"]
  return advice and ("'%s' is an option of lessons: write it after the "
    .. "lesson's name; other scripts %s"):format(option, advice)
end

--- Returns the note for a user who gives a script an option that only PTX and
-- CUDA C files have; nil for other options.
---@param option string
---@param help string the command's --help
---@return string?
function foreign.launch_option(option, help)
  if option == "--launch" and help:find("--launch LAUNCH", 1, true) then
    return "--launch describes the launches of a .ptx or .cu file; a script "
      .. "launches its kernels itself"
  end
end

---------------------------------------------------------------------------
-- Fields and methods
---------------------------------------------------------------------------

-- Fields and methods of tensors and values in other languages. Each text says
-- what to write instead of x.NAME.
local FIELDS = rows {
  ["T t mT transpose permute swapaxes"] = "cute.select(x, {1, 0}) for the "
    .. "transposed view, cute.ops.transpose(x) for a copy",
  ["view reshape flatten ravel"] = "cute.make_tensor(x.iterator, layout), or "
    .. "cute.composition(x, layout)",
  ["item"] = "x(0)", ["numpy cpu"] = "x:to \"host\"",
  ["cuda gpu"] = "x:to \"gpu\"", ["tolist"] = "x(i) for each element",
  ["contiguous"] = "cute.ops.copy(x)",
  ["ndim dim"] = "cute.rank(x)", ["numel nelement"] = "cute.size(x)",
  ["nbytes itemsize element_size"] = "cute.size(x) * x.element_type.bits // 8",
  ["half"] = "x:to(cute.f16)", ["float"] = "x:to(cute.f32)",
  ["bfloat16"] = "x:to(cute.bf16)", ["int"] = "x:to(cute.i32)",
  ["sum mean max min amax"] = "cute.ops.reduce(x, \"sum\") on the host, "
    .. "x:load():reduce(\"add\", 0) in a kernel",
  ["exp"] = "cute.exp(x)", ["sqrt"] = "cute.sqrt(x)", ["abs"] = "cute.abs(x)",
  ["zero zero_ fill_ clear"] = "x:fill(0)", ["copy_"] = "x:copy_from(y)",
  ["data_ptr"] = "x.iterator",
  ["stage stage_index"] = "x.index", ["requires_grad backward grad"] =
    "a kernel for the derivative: cute.ops has those of its operations",
}

-- If a message is about a missing field that another language has, returns a
-- sentence about it.
local function missing_field(message)
  local name = message:match "has no field '([%w_]+)'"
    or message:match "^[^\n]*%f[%a]an? [%w ]+ has no '([%w_]+)'"
  return name and FIELDS[name] and "write " .. FIELDS[name]
end

-- Returns a sentence about a method that was called with a dot, as in x.size().
-- Such a call passes no first argument to the public function cute.NAME.
local function dotted(message, text)
  local name = message:match("^[^\n]*bad argument #1 to 'cute%.([%w_]+)'.-"
    .. "got no value")
  local of = name and text:match("([%a_][%w_]*)%." .. name .. "%s*%(")
  if of and of ~= "cute" then
    return ("write %s:%s(...) with a colon"):format(of, name)
  end
end

-- Rows of {pattern of the message, advice to print, pattern of the line}. The
-- line must match, too, if its pattern is given. In the advice, %1 is the
-- message pattern's first capture.
local LINES = {
  {"get length of", "write a comment with --", "^%s*#"},
  {"operator '//'", "write a comment with --", "^%s*//"},
  {"to 'cute%.copy' %(.*%[bad%-argument%]", "write pred = t, a tensor of "
    .. "booleans with one for each access; for one condition cute.when(c, "
    .. "function() cute.copy(...) end)", "%f[%w_]pred%f[^%w_]"},
  {"%(global 'f'%)", "write (\"x is %g\"):format(x) for a string with values",
    "%f[%w_]f[\"']"},
  {"at most %d+ arguments? expected, got %d+; #2 is \"cannot ",
    "the call inside returned nil and a message: write assert(...) around it"},
  {"a layout has no field %d", "write l(i) for an offset, cute.get(l, i) for a "
    .. "mode, l.shape and l.stride for its lists"},
  {"operand #%d of '%w+' %(number or traced value expected, got tensor",
    "write t[i] for an element, t:load() for a vector of all; in an epilogue "
    .. "at:col(t), at:row(t) or at:tile(t); pass ops.elementwise one more "
    .. "operand"},
  {"attempt to call a number value$", "write t(i, j) for an element, t(i, _) "
    .. "for a part"},
  {"on a function value %(%a+ '([%w_]+)'%)",
    "write %1() for the result of function %1"},
  {"%([%d,]+%) cannot be called: it is not a function",
    "write it without (): a shape or stride is a field"},
  {"attempt to call a number value %(field '([%w_]+)'%)",
    "write .%1 without (): it is a field"},
  {"the condition is [iuf]%d+, not a boolean",
    "write x:ne(0), or another comparison such as x:lt(y), for a condition"},
  {"to 'cute%.when' %(at most 3 arguments",
    "write for a, b in cute.cases(c1, c2) do ... end for else if"},
  {"no copy atom 'SM80_CP_ASYNC_[%w_]+'", "write a num_bits_per_copy of 32, "
    .. "64 or 128, a name with a type such as "
    .. "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>"},
  {"no copy atom 'UniversalCopy'", "write a num_bits_per_copy that is a power "
    .. "of two from the element's bits to 256"},
  {"cute%.range: a limit is a function",
    "write for i in cute.range(lo, hi) do ... end"},
  {"to 'cute%.printf' %(string expected, got traced",
    "write cute.printf(\"{}\", x)"},
  {"to 'cute%.printf' %(string expected, got tensor",
    "write cute.print_tensor(x)"},
}

local function known_line(message, text)
  local first = message:match "^[^\n]*"
  for _, row in ipairs(LINES) do
    local at, _, name = first:find(row[1])
    if at and (not row[3] or text:find(row[3])) then
      return (row[2]:gsub("%%1", name or ""))
    end
  end
end

--- Returns advice on a line whose error comes from a field or method of another
-- language; nil for other lines.
---@param message string
---@param text string
---@return string?
function foreign.line(message, text)
  return missing_field(message) or dotted(message, text)
    or known_line(message, text)
end

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

--- Returns the message for a call of a namespace as a function, as in
-- cute.jit(f).
---@param full string "cute.jit"
---@return string
function foreign.called_namespace(full)
  local name = full:match "[^.]+$"
  local advice = foreign.python_name(name)
  return ("%s was called, but it is a table of functions%s"):format(full,
    advice or ("\n  write %s.NAME(...); ?%s lists the names"):format(full,
      full))
end

--- Returns the message for k[g](x), which is a launch in Triton.
---@param k table the kernel
---@param grid any
---@return string
function foreign.indexed_kernel(k, grid)
  return ("kernel %s was indexed by %s, as Triton launches a kernel\n  write "
    .. "%s(arguments...):launch {grid = g, block = b}"):format(k.name,
    core.show(grid), k.name)
end

return foreign
-- SPDX-License-Identifier: MIT
