---@meta cute
-- Maps the names of cute that are written in Lua to their modules, so that
-- editors find the comments there. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

cute.arch = require "cute.arch"
cute.gpu = require "cute.gpu"
cute.jit = require "cute.jit"
cute.npy = require "cutelua.text.npy"
cute.nvgpu = require "cute.nvgpu"
cute.testing = require "cute.testing"
cute.pipeline = require "cute.pipeline"
cute.utils = require "cute.utils"
cute.ops = require "cute.ops"
cute.ops.gemm = require "cute.ops.gemm".gemm
cute.ops.explain = require "cute.ops.gemm".explain
cute.ops.grouped_gemm = require "cute.ops.grouped".grouped_gemm
cute.ops.explain_grouped = require "cute.ops.grouped".explain_grouped
cute.ops.elementwise = require "cute.ops.elementwise".elementwise
cute.ops.copy = require "cute.ops.elementwise".copy
cute.ops.convert = require "cute.ops.elementwise".convert
cute.ops.transpose = require "cute.ops.elementwise".transpose
cute.ops.reduce = require "cute.ops.reduce".reduce
cute.ops.int4 = require "cute.ops.int4".int4
cute.ops.relu = require "cute.ops.functions".relu
cute.ops.sigmoid = require "cute.ops.functions".sigmoid
cute.ops.silu = require "cute.ops.functions".silu
cute.ops.gelu = require "cute.ops.functions".gelu
cute.ops.gelu_tanh = require "cute.ops.functions".gelu_tanh
cute.gpu.bench = require "cutelua.bench.measure".bench
cute.gpu.best = require "cutelua.bench.measure".best
cute.gpu.stats = require "cutelua.bench.measure".stats
cute.testing.benchmark = require "cutelua.bench.testing".benchmark
cute.testing.tune = require "cutelua.bench.testing".tune
cute.testing.autotune_jit = require "cutelua.bench.testing".autotune_jit
cute.testing.get_workspace_count =
  require "cutelua.bench.testing".get_workspace_count
cute.utils.print_latex = require "cutelua.draw.print".print_latex
cute.utils.print_latex_tv = require "cutelua.draw.print".print_latex_tv
cute.cli = require "cutelua.program.cli"
cute.absf = require "cute.math".absf
cute.absi = require "cute.math".absi
cute.add = require "cute.math".add
cute.append_ones = require "cute.tuple".append_ones
cute.assume = require "cute.tuple".assume
cute.axpby = require "cute.algorithm".axpby
cute.break_if = require "cute.lang.trace".break_if
cute.cases = require "cute.lang.branch".cases
cute.clamp = require "cute.math".clamp
cute.clear = require "cute.algorithm".clear
cute.compile = require "cute.lang.kernel".compile
cute.coords = require "cute.tuple".coords
cute.debug = require "cutelua.debug".debug
cute.device = require "cute.lang.kernel".device
cute.diff = require "cutelua.program.diff".diff
cute.div = require "cute.math".div
cute.doc = require "cutelua.doc".doc
cute.draw = require "cutelua.draw".draw
cute.empty_like = require "cute.pointer".empty_like
cute.event = require "cute.stream".event
cute.explain = require "cutelua.program.explain".explain
cute.fast_divmod_create_divisor = require "cute.math".fast_divmod_create_divisor
cute.fill = require "cute.algorithm".fill
cute.filter_tuple = require "cute.tuple".filter_tuple
cute.find_if = require "cute.tuple".find_if
cute.find_swizzle = require "cutelua.profile.swizzle".find_swizzle
cute.fpowi = require "cute.math".fpowi
cute.func = require "cute.lang.trace".func
cute.graph = require "cute.stream".graph
cute.ipowi = require "cute.math".ipowi
cute.isfinite = require "cute.math".isfinite
cute.isinf = require "cute.math".isinf
cute.isnan = require "cute.math".isnan
cute.isnormal = require "cute.math".isnormal
cute.kernel = require "cute.lang.kernel".kernel
cute.loop = require "cute.lang.trace".loop
cute.make_atom = require "cute.pointer".make_atom
cute.make_fake_compact_tensor = require "cute.symbolic".make_fake_compact_tensor
cute.make_fake_tensor = require "cute.symbolic".make_fake_tensor
cute.make_ptr = require "cute.pointer".make_ptr
cute.mul = require "cute.math".mul
cute.neg = require "cute.math".neg
cute.prefetch = require "cute.nvgpu.sm90.cpasync".prefetch
cute.pretty_str = require "cute.tuple".pretty_str
cute.print_latex = require "cutelua.draw.print".print_latex
cute.print_latex_tv = require "cutelua.draw.print".print_latex_tv
cute.print_layout = require "cutelua.draw.print".print_layout
cute.print_tensor = require "cutelua.draw.printing".print_tensor
cute.printf = require "cutelua.draw.printing".printf
cute.range = require "cute.lang.trace".range
cute.range_constexpr = require "cute.lang.trace".range_constexpr
cute.raw_kernel = require "cutelua.ptx.raw".raw_kernel
cute.ptx = require "cutelua.ptx".ptx
cute.cuda = require "cutelua.ptx".cuda
cute.recast_ptr = require "cute.pointer".recast_ptr
cute.reduce = require "cute.algorithm".reduce
cute.rem = require "cute.math".rem
cute.return_if = require "cute.lang.trace".return_if
cute.sincos = require "cute.math".sincos
cute.size_in_bytes = require "cute.tuple".size_in_bytes
cute.stream = require "cute.stream".stream
cute.struct = require "cute.smemstruct".struct
cute.sub = require "cute.math".sub
cute.sym_int = require "cute.symbolic".sym_int
cute.sym_int32 = require "cute.symbolic".sym_int32
cute.sym_int64 = require "cute.symbolic".sym_int64
cute.symbolic = require "cute.symbolic".symbolic
cute.synchronize = require "cute.stream".synchronize
cute.transform = require "cute.algorithm".transform
cute.transform_leaf = require "cute.tuple".transform_leaf
cute.union = require "cute.smemstruct".union
cute.var = require "cute.lang.trace".var
cute.when = require "cute.lang.branch".when
cute.with_stream = require "cute.stream".with_stream

return cute
-- SPDX-License-Identifier: MIT
