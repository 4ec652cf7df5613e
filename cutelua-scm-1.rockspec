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
        "core/algebra.c",
        "core/alglib.c",
        "core/arglib.c",
        "core/atom.c",
        "core/atom_copy.c",
        "core/atom_sm70.c",
        "core/atom_sm80.c",
        "core/atom_sm90.c",
        "core/atomlib.c",
        "core/base.c",
        "core/bulk.c",
        "core/cache.c",
        "core/check.c",
        "core/compose.c",
        "core/composed.c",
        "core/cublas.c",
        "core/cuda.c",
        "core/cutelib.c",
        "core/dim.c",
        "core/divide.c",
        "core/dl.c",
        "core/domain.c",
        "core/dtype.c",
        "core/emit.c",
        "core/emitatom.c",
        "core/emitcvt.c",
        "core/emith.c",
        "core/emitintrin.c",
        "core/emitm.c",
        "core/emituse.c",
        "core/emitw.c",
        "core/emitx.c",
        "core/filelib.c",
        "core/gemmcheck.c",
        "core/gpulib.c",
        "core/hooklib.c",
        "core/hostlib.c",
        "core/intrin.c",
        "core/intrinlib.c",
        "core/inverse.c",
        "core/ir.c",
        "core/irfast.c",
        "core/irfold.c",
        "core/jit.c",
        "core/kernlib.c",
        "core/layout.c",
        "core/layoutlib.c",
        "core/laytext.c",
        "core/mathlib.c",
        "core/runlib.c",
        "core/signals.c",
        "core/sim.c",
        "core/simaccess.c",
        "core/simalu.c",
        "core/simatom.c",
        "core/simblocks.c",
        "core/simcta.c",
        "core/simexec.c",
        "core/simintrin.c",
        "core/simlib.c",
        "core/simmem.c",
        "core/simmma.c",
        "core/simorder.c",
        "core/simprog.c",
        "core/simreport.c",
        "core/simrunlib.c",
        "core/simtaint.c",
        "core/simtensor.c",
        "core/simtile.c",
        "core/simtile16.c",
        "core/stoplib.c",
        "core/swizzle.c",
        "core/tensor.c",
        "core/tensorcopy.c",
        "core/tensorlib.c",
        "core/tensormem.c",
        "core/tiled.c",
        "core/tiledcall.c",
        "core/tiledcopy.c",
        "core/tracelib.c",
        "core/tuple.c",
        "core/tuplelib.c",
        "core/tuplemath.c",
        "core/vallib.c",
        "core/veclib.c",
        "core/vmlib.c",
        "core/xor.c",
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
    ["cute.arch"] =
      "lua/cute/arch.lua",
    ["cute.atom_meta"] =
      "lua/cute/atom_meta.lua",
    ["cute.bits"] =
      "lua/cute/bits.lua",
    ["cute.bytecode"] =
      "lua/cute/bytecode.lua",
    ["cute.carry"] =
      "lua/cute/carry.lua",
    ["cute.chart"] =
      "lua/cute/chart.lua",
    ["cute.cli"] =
      "lua/cute/cli.lua",
    ["cute.copylesson"] =
      "lua/cute/copylesson.lua",
    ["cute.draw"] =
      "lua/cute/draw.lua",
    ["cute.explain"] =
      "lua/cute/explain.lua",
    ["cute.golden"] =
      "lua/cute/golden.lua",
    ["cute.golden_atoms"] =
      "lua/cute/golden_atoms.lua",
    ["cute.golden_layout"] =
      "lua/cute/golden_layout.lua",
    ["cute.gpu"] =
      "lua/cute/gpu.lua",
    ["cute"] =
      "lua/cute/init.lua",
    ["cute.jit"] =
      "lua/cute/jit.lua",
    ["cute.kernel"] =
      "lua/cute/kernel.lua",
    ["cute.latex"] =
      "lua/cute/latex.lua",
    ["cute.layout_meta"] =
      "lua/cute/layout_meta.lua",
    ["cute.lesson"] =
      "lua/cute/lesson.lua",
    ["cute.lessonlib"] =
      "lua/cute/lessonlib.lua",
    ["cute.lex"] =
      "lua/cute/lex.lua",
    ["cute.math"] =
      "lua/cute/math.lua",
    ["cute.memory"] =
      "lua/cute/memory.lua",
    ["cute.names"] =
      "lua/cute/names.lua",
    ["cute.namespace"] =
      "lua/cute/namespace.lua",
    ["cute.npy"] =
      "lua/cute/npy.lua",
    ["cute.pipeline"] =
      "lua/cute/pipeline.lua",
    ["cute.pointer"] =
      "lua/cute/pointer.lua",
    ["cute.program"] =
      "lua/cute/program.lua",
    ["cute.reach"] =
      "lua/cute/reach.lua",
    ["cute.repl"] =
      "lua/cute/repl.lua",
    ["cute.report"] =
      "lua/cute/report.lua",
    ["cute.sign"] =
      "lua/cute/sign.lua",
    ["cute.simreport"] =
      "lua/cute/simreport.lua",
    ["cute.smem"] =
      "lua/cute/smem.lua",
    ["cute.smemstruct"] =
      "lua/cute/smemstruct.lua",
    ["cute.source"] =
      "lua/cute/source.lua",
    ["cute.tensor_meta"] =
      "lua/cute/tensor_meta.lua",
    ["cute.testing"] =
      "lua/cute/testing.lua",
    ["cute.tiles"] =
      "lua/cute/tiles.lua",
    ["cute.trace"] =
      "lua/cute/trace.lua",
    ["cute.tuple"] =
      "lua/cute/tuple.lua",
    ["cute.tuple_meta"] =
      "lua/cute/tuple_meta.lua",
    ["cute.utils"] =
      "lua/cute/utils.lua",
    ["cute.warp"] =
      "lua/cute/warp.lua",
  },
}
