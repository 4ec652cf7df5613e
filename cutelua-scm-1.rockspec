rockspec_format = "3.0"
package = "cutelua"
version = "scm-1"
source = {url = "."}
description = {
  summary = "CuTe layouts, tensors and kernels in Lua",
  detailed = [[
A C11 runtime with a Lua front end for CuTe layouts, tensors, copy and MMA
atoms and tiled operations. A Lua function composes a kernel; it is traced,
emitted as CUDA C, compiled with NVRTC and launched, or simulated on the CPU.
Nothing of CUDA is needed to build it or to simulate.]],
  license = "MIT",
}
dependencies = {"lua >= 5.4, < 5.5"}
build = {
  type = "builtin",
  modules = {
    ["cute.core"] = {
      sources = {
        "core/atoms/atom.c",
        "core/atoms/copy.c",
        "core/atoms/sm70.c",
        "core/atoms/sm80.c",
        "core/atoms/sm90.c",
        "core/base/base.c",
        "core/base/bulk.c",
        "core/base/dtype.c",
        "core/base/gemmcheck.c",
        "core/base/signals.c",
        "core/bind/alglib.c",
        "core/bind/arglib.c",
        "core/bind/atomlib.c",
        "core/bind/cutelib.c",
        "core/bind/filelib.c",
        "core/bind/gpulib.c",
        "core/bind/hooklib.c",
        "core/bind/hostlib.c",
        "core/bind/intrinlib.c",
        "core/bind/kernlib.c",
        "core/bind/layoutlib.c",
        "core/bind/mathlib.c",
        "core/bind/runlib.c",
        "core/bind/simlib.c",
        "core/bind/simrunlib.c",
        "core/bind/stoplib.c",
        "core/bind/tensorlib.c",
        "core/bind/tracelib.c",
        "core/bind/tuplelib.c",
        "core/bind/vallib.c",
        "core/bind/veclib.c",
        "core/bind/vmlib.c",
        "core/emit/atomtext.c",
        "core/emit/convert.c",
        "core/emit/emit.c",
        "core/emit/expr.c",
        "core/emit/helper.c",
        "core/emit/ptx.c",
        "core/emit/stmt.c",
        "core/emit/uses.c",
        "core/emit/warp.c",
        "core/gpu/cache.c",
        "core/gpu/cublas.c",
        "core/gpu/cuda.c",
        "core/gpu/dl.c",
        "core/gpu/jit.c",
        "core/ir/fast.c",
        "core/ir/fold.c",
        "core/ir/intrin.c",
        "core/ir/ir.c",
        "core/ir/verify.c",
        "core/layout/algebra.c",
        "core/layout/compose.c",
        "core/layout/composed.c",
        "core/layout/dim.c",
        "core/layout/divide.c",
        "core/layout/domain.c",
        "core/layout/inverse.c",
        "core/layout/layout.c",
        "core/layout/notation.c",
        "core/layout/swizzle.c",
        "core/layout/tuple.c",
        "core/layout/tuplemath.c",
        "core/layout/xor.c",
        "core/sim/access.c",
        "core/sim/alu.c",
        "core/sim/blocks.c",
        "core/sim/cta.c",
        "core/sim/decode.c",
        "core/sim/exec.c",
        "core/sim/intrin.c",
        "core/sim/matrix.c",
        "core/sim/mem.c",
        "core/sim/mma.c",
        "core/sim/order.c",
        "core/sim/report.c",
        "core/sim/sim.c",
        "core/sim/tables.c",
        "core/sim/taint.c",
        "core/sim/tile.c",
        "core/sim/tile16.c",
        "core/tensor/tensor.c",
        "core/tensor/tensorcopy.c",
        "core/tensor/tensormem.c",
        "core/tensor/tiled.c",
        "core/tensor/tiledcall.c",
        "core/tensor/tiledcopy.c",
      },
      incdirs = {"core"},
      libraries = {"m", "dl", "pthread"},
    },
    ["kernels.copytile"] =
      "kernels/copytile.lua",
    ["kernels.gemm_sm80"] =
      "kernels/gemm_sm80.lua",
    ["cute.algorithm"] =
      "lua/cute/algorithm.lua",
    ["cute.arch.bits"] =
      "lua/cute/arch/bits.lua",
    ["cute.arch"] =
      "lua/cute/arch/init.lua",
    ["cute.arch.memory"] =
      "lua/cute/arch/memory.lua",
    ["cute.arch.warp"] =
      "lua/cute/arch/warp.lua",
    ["cute.bench.chart"] =
      "lua/cute/bench/chart.lua",
    ["cute.bench.copylesson"] =
      "lua/cute/bench/copylesson.lua",
    ["cute.bench.lesson"] =
      "lua/cute/bench/lesson.lua",
    ["cute.bench.lessonlib"] =
      "lua/cute/bench/lessonlib.lua",
    ["cute.gpu"] =
      "lua/cute/gpu.lua",
    ["cute"] =
      "lua/cute/init.lua",
    ["cute.jit"] =
      "lua/cute/jit.lua",
    ["cute.lang.bytecode"] =
      "lua/cute/lang/bytecode.lua",
    ["cute.lang.carry"] =
      "lua/cute/lang/carry.lua",
    ["cute.lang.kernel"] =
      "lua/cute/lang/kernel.lua",
    ["cute.lang.lex"] =
      "lua/cute/lang/lex.lua",
    ["cute.lang.namespace"] =
      "lua/cute/lang/namespace.lua",
    ["cute.lang.reach"] =
      "lua/cute/lang/reach.lua",
    ["cute.lang.report"] =
      "lua/cute/lang/report.lua",
    ["cute.lang.sign"] =
      "lua/cute/lang/sign.lua",
    ["cute.lang.simreport"] =
      "lua/cute/lang/simreport.lua",
    ["cute.lang.source"] =
      "lua/cute/lang/source.lua",
    ["cute.lang.trace"] =
      "lua/cute/lang/trace.lua",
    ["cute.math"] =
      "lua/cute/math.lua",
    ["cute.npy"] =
      "lua/cute/npy.lua",
    ["cute.pipeline"] =
      "lua/cute/pipeline.lua",
    ["cute.pointer"] =
      "lua/cute/pointer.lua",
    ["cute.program.cli"] =
      "lua/cute/program/cli.lua",
    ["cute.program.draw"] =
      "lua/cute/program/draw.lua",
    ["cute.program.explain"] =
      "lua/cute/program/explain.lua",
    ["cute.program.latex"] =
      "lua/cute/program/latex.lua",
    ["cute.program.main"] =
      "lua/cute/program/main.lua",
    ["cute.program.names"] =
      "lua/cute/program/names.lua",
    ["cute.program.repl"] =
      "lua/cute/program/repl.lua",
    ["cute.smem"] =
      "lua/cute/smem.lua",
    ["cute.smemstruct"] =
      "lua/cute/smemstruct.lua",
    ["cute.testing"] =
      "lua/cute/testing.lua",
    ["cute.tiles"] =
      "lua/cute/tiles.lua",
    ["cute.tuple"] =
      "lua/cute/tuple.lua",
    ["cute.utils"] =
      "lua/cute/utils.lua",
  },
}
