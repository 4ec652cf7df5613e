rockspec_format = "3.0"
package = "cutelua"
version = "0.2.0-1"
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
external_dependencies = {ZLIB = {header = "zlib.h"}}
build = {
  type = "make",
  build_target = "build/cute/core.so",
  build_variables = {
    CC = "$(CC)", CFLAGS = "$(CFLAGS)", LUA = "$(LUA)",
    LUA_INC = "$(LUA_INCDIR)",
  },
  install_pass = false,
  install = {
    lib = {["cute.core"] = "build/cute/core.so"},
    lua = {
      ["kernels.argmax"] =
        "kernels/argmax.lua",
      ["kernels.attention"] =
        "kernels/attention.lua",
      ["kernels.attention_bwd"] =
        "kernels/attention_bwd.lua",
      ["kernels.attention_bwd_sm90"] =
        "kernels/attention_bwd_sm90.lua",
      ["kernels.attention_bwd_sm90.consumer"] =
        "kernels/attention_bwd_sm90/consumer.lua",
      ["kernels.attention_bwd_sm90.edges"] =
        "kernels/attention_bwd_sm90/edges.lua",
      ["kernels.attention_bwd_sm90.kernel"] =
        "kernels/attention_bwd_sm90/kernel.lua",
      ["kernels.attention_bwd_sm90.options"] =
        "kernels/attention_bwd_sm90/options.lua",
      ["kernels.attention_bwd_sm90.order"] =
        "kernels/attention_bwd_sm90/order.lua",
      ["kernels.attention_bwd_sm90.parts"] =
        "kernels/attention_bwd_sm90/parts.lua",
      ["kernels.attention_bwd_sm90.producer"] =
        "kernels/attention_bwd_sm90/producer.lua",
      ["kernels.attention_bwd_sm90.sequences"] =
        "kernels/attention_bwd_sm90/sequences.lua",
      ["kernels.attention_bwd_sm90.tasks"] =
        "kernels/attention_bwd_sm90/tasks.lua",
      ["kernels.attention_bwd_sm90.transposed"] =
        "kernels/attention_bwd_sm90/transposed.lua",
      ["kernels.attention_bwd_sm90.weights"] =
        "kernels/attention_bwd_sm90/weights.lua",
      ["kernels.attention_bwd_sm90.wide"] =
        "kernels/attention_bwd_sm90/wide.lua",
      ["kernels.attention_decode"] =
        "kernels/attention_decode.lua",
      ["kernels.attention_decode.clustered"] =
        "kernels/attention_decode/clustered.lua",
      ["kernels.attention_decode.latent"] =
        "kernels/attention_decode/latent.lua",
      ["kernels.attention_decode.latent_sm90"] =
        "kernels/attention_decode/latent_sm90.lua",
      ["kernels.attention_decode.narrow"] =
        "kernels/attention_decode/narrow.lua",
      ["kernels.attention_decode.part"] =
        "kernels/attention_decode/part.lua",
      ["kernels.attention_decode.share"] =
        "kernels/attention_decode/share.lua",
      ["kernels.attention_decode.turned"] =
        "kernels/attention_decode/turned.lua",
      ["kernels.attention_sm90"] =
        "kernels/attention_sm90.lua",
      ["kernels.attention_sm90.consumer"] =
        "kernels/attention_sm90/consumer.lua",
      ["kernels.attention_sm90.eight"] =
        "kernels/attention_sm90/eight.lua",
      ["kernels.attention_sm90.kernel"] =
        "kernels/attention_sm90/kernel.lua",
      ["kernels.attention_sm90.options"] =
        "kernels/attention_sm90/options.lua",
      ["kernels.attention_sm90.order"] =
        "kernels/attention_sm90/order.lua",
      ["kernels.attention_sm90.producer"] =
        "kernels/attention_sm90/producer.lua",
      ["kernels.block_mask"] =
        "kernels/block_mask.lua",
      ["kernels.block_mask_rows"] =
        "kernels/block_mask_rows.lua",
      ["kernels.block_scaled"] =
        "kernels/block_scaled.lua",
      ["kernels.conv2d"] =
        "kernels/conv2d.lua",
      ["kernels.conv2d_sm90"] =
        "kernels/conv2d_sm90.lua",
      ["kernels.copytile"] =
        "kernels/copytile.lua",
      ["kernels.elementwise"] =
        "kernels/elementwise.lua",
      ["kernels.embedding"] =
        "kernels/embedding.lua",
      ["kernels.flash"] =
        "kernels/flash.lua",
      ["kernels.gemm_atom"] =
        "kernels/gemm_atom.lua",
      ["kernels.gemm_block_scaled"] =
        "kernels/gemm_block_scaled.lua",
      ["kernels.gemm_dot"] =
        "kernels/gemm_dot.lua",
      ["kernels.gemm_dot.model"] =
        "kernels/gemm_dot/model.lua",
      ["kernels.gemm_grouped"] =
        "kernels/gemm_grouped.lua",
      ["kernels.gemm_int4"] =
        "kernels/gemm_int4.lua",
      ["kernels.gemm_simt"] =
        "kernels/gemm_simt.lua",
      ["kernels.gemm_skinny"] =
        "kernels/gemm_skinny.lua",
      ["kernels.gemm_skinny.model"] =
        "kernels/gemm_skinny/model.lua",
      ["kernels.gemm_sm100"] =
        "kernels/gemm_sm100.lua",
      ["kernels.gemm_sm100.choice"] =
        "kernels/gemm_sm100/choice.lua",
      ["kernels.gemm_sm100.kernel"] =
        "kernels/gemm_sm100/kernel.lua",
      ["kernels.gemm_sm100.options"] =
        "kernels/gemm_sm100/options.lua",
      ["kernels.gemm_sm100.scale_factors"] =
        "kernels/gemm_sm100/scale_factors.lua",
      ["kernels.gemm_sm80"] =
        "kernels/gemm_sm80.lua",
      ["kernels.gemm_sm80.scale_factors"] =
        "kernels/gemm_sm80/scale_factors.lua",
      ["kernels.gemm_sm90"] =
        "kernels/gemm_sm90.lua",
      ["kernels.gemm_sm90.block_scales"] =
        "kernels/gemm_sm90/block_scales.lua",
      ["kernels.gemm_sm90.choice"] =
        "kernels/gemm_sm90/choice.lua",
      ["kernels.gemm_sm90.cluster_splitk"] =
        "kernels/gemm_sm90/cluster_splitk.lua",
      ["kernels.gemm_sm90.constants"] =
        "kernels/gemm_sm90/constants.lua",
      ["kernels.gemm_sm90.host"] =
        "kernels/gemm_sm90/host.lua",
      ["kernels.gemm_sm90.kernel"] =
        "kernels/gemm_sm90/kernel.lua",
      ["kernels.gemm_sm90.mainloop"] =
        "kernels/gemm_sm90/mainloop.lua",
      ["kernels.gemm_sm90.model"] =
        "kernels/gemm_sm90/model.lua",
      ["kernels.gemm_sm90.option_rules"] =
        "kernels/gemm_sm90/option_rules.lua",
      ["kernels.gemm_sm90.options"] =
        "kernels/gemm_sm90/options.lua",
      ["kernels.gemm_sm90.producer"] =
        "kernels/gemm_sm90/producer.lua",
      ["kernels.gemm_sm90.smem"] =
        "kernels/gemm_sm90/smem.lua",
      ["kernels.gemm_sm90.sources"] =
        "kernels/gemm_sm90/sources.lua",
      ["kernels.gemm_sm90.store_tile"] =
        "kernels/gemm_sm90/store_tile.lua",
      ["kernels.gemm_sm90.stream"] =
        "kernels/gemm_sm90/stream.lua",
      ["kernels.gemm_sm90.tile_order"] =
        "kernels/gemm_sm90/tile_order.lua",
      ["kernels.gemm_sm90.tma_rules"] =
        "kernels/gemm_sm90/tma_rules.lua",
      ["kernels.gemm_splitk"] =
        "kernels/gemm_splitk.lua",
      ["kernels.groups"] =
        "kernels/groups.lua",
      ["kernels.histogram"] =
        "kernels/histogram.lua",
      ["kernels.kept"] =
        "kernels/kept.lua",
      ["kernels.l2_priority"] =
        "kernels/l2_priority.lua",
      ["kernels.multiblock_rows"] =
        "kernels/multiblock_rows.lua",
      ["kernels.norm"] =
        "kernels/norm.lua",
      ["kernels.operand_rules"] =
        "kernels/operand_rules.lua",
      ["kernels.reduce"] =
        "kernels/reduce.lua",
      ["kernels.reduce_tensor"] =
        "kernels/reduce_tensor.lua",
      ["kernels.rope"] =
        "kernels/rope.lua",
      ["kernels.rows"] =
        "kernels/rows.lua",
      ["kernels.sample"] =
        "kernels/sample.lua",
      ["kernels.scan"] =
        "kernels/scan.lua",
      ["kernels.score_gradients"] =
        "kernels/score_gradients.lua",
      ["kernels.selective_scan"] =
        "kernels/selective_scan.lua",
      ["kernels.softmax"] =
        "kernels/softmax.lua",
      ["kernels.splitk_reduce"] =
        "kernels/splitk_reduce.lua",
      ["kernels.splitk_skinny"] =
        "kernels/splitk_skinny.lua",
      ["kernels.topk"] =
        "kernels/topk.lua",
      ["kernels.transpose"] =
        "kernels/transpose.lua",
      ["kernels.tuned.cublas"] =
        "kernels/tuned/cublas.lua",
      ["kernels.tuned.epilogues"] =
        "kernels/tuned/epilogues.lua",
      ["kernels.tuned.h200"] =
        "kernels/tuned/h200.lua",
      ["cute.algorithm"] =
        "lua/cute/algorithm.lua",
      ["cute.arch.aligned"] =
        "lua/cute/arch/aligned.lua",
      ["cute.arch.bits"] =
        "lua/cute/arch/bits.lua",
      ["cute.arch.cluster"] =
        "lua/cute/arch/cluster.lua",
      ["cute.arch"] =
        "lua/cute/arch/init.lua",
      ["cute.arch.mbarrier"] =
        "lua/cute/arch/mbarrier.lua",
      ["cute.arch.memory"] =
        "lua/cute/arch/memory.lua",
      ["cute.arch.packed"] =
        "lua/cute/arch/packed.lua",
      ["cute.arch.ranges"] =
        "lua/cute/arch/ranges.lua",
      ["cute.arch.tmem"] =
        "lua/cute/arch/tmem.lua",
      ["cute.arch.warp"] =
        "lua/cute/arch/warp.lua",
      ["cute.blackwell"] =
        "lua/cute/blackwell.lua",
      ["cute.blackwell_scales"] =
        "lua/cute/blackwell_scales.lua",
      ["cute.blackwell_sparse"] =
        "lua/cute/blackwell_sparse.lua",
      ["cute.clc_schedulers"] =
        "lua/cute/clc_schedulers.lua",
      ["cute.embedding"] =
        "lua/cute/embedding.lua",
      ["cute.gpu"] =
        "lua/cute/gpu.lua",
      ["cute.grouped"] =
        "lua/cute/grouped.lua",
      ["cute.hopper"] =
        "lua/cute/hopper.lua",
      ["cute"] =
        "lua/cute/init.lua",
      ["cute.jit"] =
        "lua/cute/jit.lua",
      ["cute.lang.branch"] =
        "lua/cute/lang/branch.lua",
      ["cute.lang.bytecode"] =
        "lua/cute/lang/bytecode.lua",
      ["cute.lang.dependencies"] =
        "lua/cute/lang/dependencies.lua",
      ["cute.lang.devices"] =
        "lua/cute/lang/devices.lua",
      ["cute.lang.fields"] =
        "lua/cute/lang/fields.lua",
      ["cute.lang.files"] =
        "lua/cute/lang/files.lua",
      ["cute.lang.history"] =
        "lua/cute/lang/history.lua",
      ["cute.lang.kernel"] =
        "lua/cute/lang/kernel.lua",
      ["cute.lang.kinds"] =
        "lua/cute/lang/kinds.lua",
      ["cute.lang.lex"] =
        "lua/cute/lang/lex.lua",
      ["cute.lang.loop_carried"] =
        "lua/cute/lang/loop_carried.lua",
      ["cute.lang.lua_errors"] =
        "lua/cute/lang/lua_errors.lua",
      ["cute.lang.region"] =
        "lua/cute/lang/region.lua",
      ["cute.lang.report"] =
        "lua/cute/lang/report.lua",
      ["cute.lang.script"] =
        "lua/cute/lang/script.lua",
      ["cute.lang.signature"] =
        "lua/cute/lang/signature.lua",
      ["cute.lang.simreport"] =
        "lua/cute/lang/simreport.lua",
      ["cute.lang.source"] =
        "lua/cute/lang/source.lua",
      ["cute.lang.streams"] =
        "lua/cute/lang/streams.lua",
      ["cute.lang.trace"] =
        "lua/cute/lang/trace.lua",
      ["cute.lang.truth"] =
        "lua/cute/lang/truth.lua",
      ["cute.lang.undefined"] =
        "lua/cute/lang/undefined.lua",
      ["cute.lang.untrusted"] =
        "lua/cute/lang/untrusted.lua",
      ["cute.lang.unused"] =
        "lua/cute/lang/unused.lua",
      ["cute.layoutenum"] =
        "lua/cute/layoutenum.lua",
      ["cute.math"] =
        "lua/cute/math.lua",
      ["cute.meta.arch"] =
        "lua/cute/meta/arch.lua",
      ["cute.meta.atom"] =
        "lua/cute/meta/atom.lua",
      ["cute.meta.gpu"] =
        "lua/cute/meta/gpu.lua",
      ["cute.meta.layout"] =
        "lua/cute/meta/layout.lua",
      ["cute.meta.number"] =
        "lua/cute/meta/number.lua",
      ["cute.meta.nvgpu"] =
        "lua/cute/meta/nvgpu.lua",
      ["cute.meta.object"] =
        "lua/cute/meta/object.lua",
      ["cute.meta.parts"] =
        "lua/cute/meta/parts.lua",
      ["cute.meta.tensor"] =
        "lua/cute/meta/tensor.lua",
      ["cute.meta.tile"] =
        "lua/cute/meta/tile.lua",
      ["cute.meta.tuple"] =
        "lua/cute/meta/tuple.lua",
      ["cute.mixed_input"] =
        "lua/cute/mixed_input.lua",
      ["cute.npy"] =
        "lua/cute/npy.lua",
      ["cute.nvgpu"] =
        "lua/cute/nvgpu/init.lua",
      ["cute.nvgpu.sm100.descriptor"] =
        "lua/cute/nvgpu/sm100/descriptor.lua",
      ["cute.nvgpu.sm100.tcgen05"] =
        "lua/cute/nvgpu/sm100/tcgen05.lua",
      ["cute.nvgpu.sm100.tmem"] =
        "lua/cute/nvgpu/sm100/tmem.lua",
      ["cute.nvgpu.sm80.sparse"] =
        "lua/cute/nvgpu/sm80/sparse.lua",
      ["cute.nvgpu.sm80.warp"] =
        "lua/cute/nvgpu/sm80/warp.lua",
      ["cute.nvgpu.sm90.cpasync"] =
        "lua/cute/nvgpu/sm90/cpasync.lua",
      ["cute.nvgpu.sm90.warpgroup"] =
        "lua/cute/nvgpu/sm90/warpgroup.lua",
      ["cute.ops.attention.backward"] =
        "lua/cute/ops/attention/backward.lua",
      ["cute.ops.attention.block_mask"] =
        "lua/cute/ops/attention/block_mask.lua",
      ["cute.ops.attention.captured"] =
        "lua/cute/ops/attention/captured.lua",
      ["cute.ops.attention.decode"] =
        "lua/cute/ops/attention/decode.lua",
      ["cute.ops.attention.eight"] =
        "lua/cute/ops/attention/eight.lua",
      ["cute.ops.attention.explained"] =
        "lua/cute/ops/attention/explained.lua",
      ["cute.ops.attention.forward"] =
        "lua/cute/ops/attention/forward.lua",
      ["cute.ops.attention.problem"] =
        "lua/cute/ops/attention/problem.lua",
      ["cute.ops.attention.scores"] =
        "lua/cute/ops/attention/scores.lua",
      ["cute.ops.blocks"] =
        "lua/cute/ops/blocks.lua",
      ["cute.ops.calls"] =
        "lua/cute/ops/calls.lua",
      ["cute.ops.capture"] =
        "lua/cute/ops/capture.lua",
      ["cute.ops.choose"] =
        "lua/cute/ops/choose.lua",
      ["cute.ops.convert"] =
        "lua/cute/ops/convert.lua",
      ["cute.ops.cublas"] =
        "lua/cute/ops/cublas.lua",
      ["cute.ops.determinism"] =
        "lua/cute/ops/determinism.lua",
      ["cute.ops.elementwise"] =
        "lua/cute/ops/elementwise.lua",
      ["cute.ops.embedding"] =
        "lua/cute/ops/embedding.lua",
      ["cute.ops.epilogue_function"] =
        "lua/cute/ops/epilogue_function.lua",
      ["cute.ops.families"] =
        "lua/cute/ops/families.lua",
      ["cute.ops.family.dot"] =
        "lua/cute/ops/family/dot.lua",
      ["cute.ops.family.early_b"] =
        "lua/cute/ops/family/early_b.lua",
      ["cute.ops.family.int4"] =
        "lua/cute/ops/family/int4.lua",
      ["cute.ops.family.moved"] =
        "lua/cute/ops/family/moved.lua",
      ["cute.ops.family.moved_sm100"] =
        "lua/cute/ops/family/moved_sm100.lua",
      ["cute.ops.family.moved_sm80"] =
        "lua/cute/ops/family/moved_sm80.lua",
      ["cute.ops.family.prepared"] =
        "lua/cute/ops/family/prepared.lua",
      ["cute.ops.family.repack"] =
        "lua/cute/ops/family/repack.lua",
      ["cute.ops.family.simt"] =
        "lua/cute/ops/family/simt.lua",
      ["cute.ops.family.skinny"] =
        "lua/cute/ops/family/skinny.lua",
      ["cute.ops.family.sm100"] =
        "lua/cute/ops/family/sm100.lua",
      ["cute.ops.family.sm80"] =
        "lua/cute/ops/family/sm80.lua",
      ["cute.ops.family.sm90"] =
        "lua/cute/ops/family/sm90.lua",
      ["cute.ops.family.tma"] =
        "lua/cute/ops/family/tma.lua",
      ["cute.ops.family.types"] =
        "lua/cute/ops/family/types.lua",
      ["cute.ops.fingerprint"] =
        "lua/cute/ops/fingerprint.lua",
      ["cute.ops.formats"] =
        "lua/cute/ops/formats.lua",
      ["cute.ops.functions"] =
        "lua/cute/ops/functions.lua",
      ["cute.ops.gemm"] =
        "lua/cute/ops/gemm.lua",
      ["cute.ops.grouped"] =
        "lua/cute/ops/grouped.lua",
      ["cute.ops"] =
        "lua/cute/ops/init.lua",
      ["cute.ops.int4"] =
        "lua/cute/ops/int4.lua",
      ["cute.ops.modes"] =
        "lua/cute/ops/modes.lua",
      ["cute.ops.norms"] =
        "lua/cute/ops/norms.lua",
      ["cute.ops.numbers"] =
        "lua/cute/ops/numbers.lua",
      ["cute.ops.operand"] =
        "lua/cute/ops/operand.lua",
      ["cute.ops.operators"] =
        "lua/cute/ops/operators.lua",
      ["cute.ops.partial"] =
        "lua/cute/ops/partial.lua",
      ["cute.ops.plan"] =
        "lua/cute/ops/plan.lua",
      ["cute.ops.problem"] =
        "lua/cute/ops/problem.lua",
      ["cute.ops.reduce"] =
        "lua/cute/ops/reduce.lua",
      ["cute.ops.rowwise"] =
        "lua/cute/ops/rowwise.lua",
      ["cute.ops.scales"] =
        "lua/cute/ops/scales.lua",
      ["cute.ops.softmax"] =
        "lua/cute/ops/softmax.lua",
      ["cute.ops.sum_order"] =
        "lua/cute/ops/sum_order.lua",
      ["cute.ops.tensor_op"] =
        "lua/cute/ops/tensor_op.lua",
      ["cute.ops.topk"] =
        "lua/cute/ops/topk.lua",
      ["cute.ops.tuned"] =
        "lua/cute/ops/tuned.lua",
      ["cute.persistent_schedulers"] =
        "lua/cute/persistent_schedulers.lua",
      ["cute.philox"] =
        "lua/cute/philox.lua",
      ["cute.pipe.stages"] =
        "lua/cute/pipe/stages.lua",
      ["cute.pipe.state"] =
        "lua/cute/pipe/state.lua",
      ["cute.pipe.sync"] =
        "lua/cute/pipe/sync.lua",
      ["cute.pipeline"] =
        "lua/cute/pipeline.lua",
      ["cute.pointer"] =
        "lua/cute/pointer.lua",
      ["cute.python"] =
        "lua/cute/python.lua",
      ["cute.smem"] =
        "lua/cute/smem.lua",
      ["cute.smemstruct"] =
        "lua/cute/smemstruct.lua",
      ["cute.sparse_elem"] =
        "lua/cute/sparse_elem.lua",
      ["cute.store_epilogue"] =
        "lua/cute/store_epilogue.lua",
      ["cute.stream"] =
        "lua/cute/stream.lua",
      ["cute.symbolic"] =
        "lua/cute/symbolic.lua",
      ["cute.targets"] =
        "lua/cute/targets.lua",
      ["cute.tensormaps"] =
        "lua/cute/tensormaps.lua",
      ["cute.testing"] =
        "lua/cute/testing.lua",
      ["cute.tiles"] =
        "lua/cute/tiles.lua",
      ["cute.tmem_allocator"] =
        "lua/cute/tmem_allocator.lua",
      ["cute.tuple"] =
        "lua/cute/tuple.lua",
      ["cute.utils"] =
        "lua/cute/utils.lua",
      ["cutelua.analyses.call"] =
        "lua/cutelua/analyses/call.lua",
      ["cutelua.analyses.prepared"] =
        "lua/cutelua/analyses/prepared.lua",
      ["cutelua.analyses.report"] =
        "lua/cutelua/analyses/report.lua",
      ["cutelua.bench.attention_lists"] =
        "lua/cutelua/bench/attention_lists.lua",
      ["cutelua.bench.blas"] =
        "lua/cutelua/bench/blas.lua",
      ["cutelua.bench.chart"] =
        "lua/cutelua/bench/chart.lua",
      ["cutelua.bench.convolution"] =
        "lua/cutelua/bench/convolution.lua",
      ["cutelua.bench.copylesson"] =
        "lua/cutelua/bench/copylesson.lua",
      ["cutelua.bench.harness"] =
        "lua/cutelua/bench/harness.lua",
      ["cutelua.bench.lesson"] =
        "lua/cutelua/bench/lesson.lua",
      ["cutelua.bench.lessonlib"] =
        "lua/cutelua/bench/lessonlib.lua",
      ["cutelua.bench.measure"] =
        "lua/cutelua/bench/measure.lua",
      ["cutelua.bench.oracle"] =
        "lua/cutelua/bench/oracle.lua",
      ["cutelua.bench.pattern"] =
        "lua/cutelua/bench/pattern.lua",
      ["cutelua.bench.reference"] =
        "lua/cutelua/bench/reference.lua",
      ["cutelua.bench.replay"] =
        "lua/cutelua/bench/replay.lua",
      ["cutelua.bench.scaledlesson"] =
        "lua/cutelua/bench/scaledlesson.lua",
      ["cutelua.bench.testing"] =
        "lua/cutelua/bench/testing.lua",
      ["cutelua.bench.weights"] =
        "lua/cutelua/bench/weights.lua",
      ["cutelua.bundle.any"] =
        "lua/cutelua/bundle/any.lua",
      ["cutelua.bundle.certificate"] =
        "lua/cutelua/bundle/certificate.lua",
      ["cutelua.bundle.describe"] =
        "lua/cutelua/bundle/describe.lua",
      ["cutelua.bundle.expression"] =
        "lua/cutelua/bundle/expression.lua",
      ["cutelua.bundle.header"] =
        "lua/cutelua/bundle/header.lua",
      ["cutelua.bundle"] =
        "lua/cutelua/bundle/init.lua",
      ["cutelua.bundle.lz4"] =
        "lua/cutelua/bundle/lz4.lua",
      ["cutelua.bundle.main"] =
        "lua/cutelua/bundle/main.lua",
      ["cutelua.bundle.range"] =
        "lua/cutelua/bundle/range.lua",
      ["cutelua.bundle.record"] =
        "lua/cutelua/bundle/record.lua",
      ["cutelua.bundle.runtime"] =
        "lua/cutelua/bundle/runtime.lua",
      ["cutelua.bundle.state"] =
        "lua/cutelua/bundle/state.lua",
      ["cutelua.bundle.test_program"] =
        "lua/cutelua/bundle/test_program.lua",
      ["cutelua.bundle.write"] =
        "lua/cutelua/bundle/write.lua",
      ["cutelua.cache.compile"] =
        "lua/cutelua/cache/compile.lua",
      ["cutelua.cache.compilers"] =
        "lua/cutelua/cache/compilers.lua",
      ["cutelua.cache.main"] =
        "lua/cutelua/cache/main.lua",
      ["cutelua.cache.many"] =
        "lua/cutelua/cache/many.lua",
      ["cutelua.cache.pool"] =
        "lua/cutelua/cache/pool.lua",
      ["cutelua.cache.worker"] =
        "lua/cutelua/cache/worker.lua",
      ["cutelua.check.compare"] =
        "lua/cutelua/check/compare.lua",
      ["cutelua.check.compiled"] =
        "lua/cutelua/check/compiled.lua",
      ["cutelua.check.explore"] =
        "lua/cutelua/check/explore.lua",
      ["cutelua.check"] =
        "lua/cutelua/check/init.lua",
      ["cutelua.check.main"] =
        "lua/cutelua/check/main.lua",
      ["cutelua.check.operands"] =
        "lua/cutelua/check/operands.lua",
      ["cutelua.check.redundant_sync"] =
        "lua/cutelua/check/redundant_sync.lua",
      ["cutelua.check.repair"] =
        "lua/cutelua/check/repair.lua",
      ["cutelua.check.sizes"] =
        "lua/cutelua/check/sizes.lua",
      ["cutelua.check.sync"] =
        "lua/cutelua/check/sync.lua",
      ["cutelua.check.warp_schedule"] =
        "lua/cutelua/check/warp_schedule.lua",
      ["cutelua.check.watch"] =
        "lua/cutelua/check/watch.lua",
      ["cutelua.ci.find"] =
        "lua/cutelua/ci/find.lua",
      ["cutelua.ci"] =
        "lua/cutelua/ci/init.lua",
      ["cutelua.ci.report"] =
        "lua/cutelua/ci/report.lua",
      ["cutelua.ci.verdicts"] =
        "lua/cutelua/ci/verdicts.lua",
      ["cutelua.debug"] =
        "lua/cutelua/debug/init.lua",
      ["cutelua.debug.locals"] =
        "lua/cutelua/debug/locals.lua",
      ["cutelua.debug.passes"] =
        "lua/cutelua/debug/passes.lua",
      ["cutelua.debug.prompt"] =
        "lua/cutelua/debug/prompt.lua",
      ["cutelua.debug.show"] =
        "lua/cutelua/debug/show.lua",
      ["cutelua.doc.code"] =
        "lua/cutelua/doc/code.lua",
      ["cutelua.doc.comments"] =
        "lua/cutelua/doc/comments.lua",
      ["cutelua.doc.environment"] =
        "lua/cutelua/doc/environment.lua",
      ["cutelua.doc"] =
        "lua/cutelua/doc/init.lua",
      ["cutelua.doc.names"] =
        "lua/cutelua/doc/names.lua",
      ["cutelua.doc.search"] =
        "lua/cutelua/doc/search.lua",
      ["cutelua.draw.html"] =
        "lua/cutelua/draw/html.lua",
      ["cutelua.draw"] =
        "lua/cutelua/draw/init.lua",
      ["cutelua.draw.latex"] =
        "lua/cutelua/draw/latex.lua",
      ["cutelua.draw.layouts"] =
        "lua/cutelua/draw/layouts.lua",
      ["cutelua.draw.main"] =
        "lua/cutelua/draw/main.lua",
      ["cutelua.draw.palette"] =
        "lua/cutelua/draw/palette.lua",
      ["cutelua.draw.picture"] =
        "lua/cutelua/draw/picture.lua",
      ["cutelua.draw.print"] =
        "lua/cutelua/draw/print.lua",
      ["cutelua.draw.printing"] =
        "lua/cutelua/draw/printing.lua",
      ["cutelua.draw.script"] =
        "lua/cutelua/draw/script.lua",
      ["cutelua.draw.svg"] =
        "lua/cutelua/draw/svg.lua",
      ["cutelua.draw.text"] =
        "lua/cutelua/draw/text.lua",
      ["cutelua.findings.changes"] =
        "lua/cutelua/findings/changes.lua",
      ["cutelua.findings.code"] =
        "lua/cutelua/findings/code.lua",
      ["cutelua.findings.codes"] =
        "lua/cutelua/findings/codes.lua",
      ["cutelua.findings.edits"] =
        "lua/cutelua/findings/edits.lua",
      ["cutelua.findings"] =
        "lua/cutelua/findings/init.lua",
      ["cutelua.findings.likely"] =
        "lua/cutelua/findings/likely.lua",
      ["cutelua.findings.pipelines"] =
        "lua/cutelua/findings/pipelines.lua",
      ["cutelua.findings.record"] =
        "lua/cutelua/findings/record.lua",
      ["cutelua.findings.rewrites"] =
        "lua/cutelua/findings/rewrites.lua",
      ["cutelua.findings.sarif"] =
        "lua/cutelua/findings/sarif.lua",
      ["cutelua.findings.trials"] =
        "lua/cutelua/findings/trials.lua",
      ["cutelua.findings.variants"] =
        "lua/cutelua/findings/variants.lua",
      ["cutelua"] =
        "lua/cutelua/init.lua",
      ["cutelua.learn"] =
        "lua/cutelua/learn/init.lua",
      ["cutelua.learn.lessons.algebra"] =
        "lua/cutelua/learn/lessons/algebra.lua",
      ["cutelua.learn.lessons.bugs"] =
        "lua/cutelua/learn/lessons/bugs.lua",
      ["cutelua.learn.lessons.copies"] =
        "lua/cutelua/learn/lessons/copies.lua",
      ["cutelua.learn.lessons.epilogues"] =
        "lua/cutelua/learn/lessons/epilogues.lua",
      ["cutelua.learn.lessons.hopper"] =
        "lua/cutelua/learn/lessons/hopper.lua",
      ["cutelua.learn.lessons.layouts"] =
        "lua/cutelua/learn/lessons/layouts.lua",
      ["cutelua.learn.lessons.pipelines"] =
        "lua/cutelua/learn/lessons/pipelines.lua",
      ["cutelua.learn.lessons.swizzles"] =
        "lua/cutelua/learn/lessons/swizzles.lua",
      ["cutelua.learn.lessons.tensorcores"] =
        "lua/cutelua/learn/lessons/tensorcores.lua",
      ["cutelua.learn.lessons.tensors"] =
        "lua/cutelua/learn/lessons/tensors.lua",
      ["cutelua.learn.main"] =
        "lua/cutelua/learn/main.lua",
      ["cutelua.lsp.checks"] =
        "lua/cutelua/lsp/checks.lua",
      ["cutelua.lsp.document"] =
        "lua/cutelua/lsp/document.lua",
      ["cutelua.lsp"] =
        "lua/cutelua/lsp/init.lua",
      ["cutelua.lsp.names"] =
        "lua/cutelua/lsp/names.lua",
      ["cutelua.lsp.ptx"] =
        "lua/cutelua/lsp/ptx.lua",
      ["cutelua.lsp.session"] =
        "lua/cutelua/lsp/session.lua",
      ["cutelua.mcp.calls"] =
        "lua/cutelua/mcp/calls.lua",
      ["cutelua.mcp.guard"] =
        "lua/cutelua/mcp/guard.lua",
      ["cutelua.mcp"] =
        "lua/cutelua/mcp/init.lua",
      ["cutelua.mcp.protocol"] =
        "lua/cutelua/mcp/protocol.lua",
      ["cutelua.mcp.reads"] =
        "lua/cutelua/mcp/reads.lua",
      ["cutelua.mcp.rpc"] =
        "lua/cutelua/mcp/rpc.lua",
      ["cutelua.mcp.texts"] =
        "lua/cutelua/mcp/texts.lua",
      ["cutelua.mcp.tools"] =
        "lua/cutelua/mcp/tools.lua",
      ["cutelua.mcp.worker"] =
        "lua/cutelua/mcp/worker.lua",
      ["cutelua.page"] =
        "lua/cutelua/page/init.lua",
      ["cutelua.page.link"] =
        "lua/cutelua/page/link.lua",
      ["cutelua.page.main"] =
        "lua/cutelua/page/main.lua",
      ["cutelua.page.view"] =
        "lua/cutelua/page/view.lua",
      ["cutelua.page.watch"] =
        "lua/cutelua/page/watch.lua",
      ["cutelua.profile.cards"] =
        "lua/cutelua/profile/cards.lua",
      ["cutelua.profile.clocks"] =
        "lua/cutelua/profile/clocks.lua",
      ["cutelua.profile.conflict"] =
        "lua/cutelua/profile/conflict.lua",
      ["cutelua.profile.estimate"] =
        "lua/cutelua/profile/estimate.lua",
      ["cutelua.profile.estimates"] =
        "lua/cutelua/profile/estimates.lua",
      ["cutelua.profile.main"] =
        "lua/cutelua/profile/main.lua",
      ["cutelua.profile.preflight"] =
        "lua/cutelua/profile/preflight.lua",
      ["cutelua.profile.session"] =
        "lua/cutelua/profile/session.lua",
      ["cutelua.profile.swizzle"] =
        "lua/cutelua/profile/swizzle.lua",
      ["cutelua.profile.timeline"] =
        "lua/cutelua/profile/timeline.lua",
      ["cutelua.program.cli"] =
        "lua/cutelua/program/cli.lua",
      ["cutelua.program.collected"] =
        "lua/cutelua/program/collected.lua",
      ["cutelua.program.complete"] =
        "lua/cutelua/program/complete.lua",
      ["cutelua.program.diff"] =
        "lua/cutelua/program/diff.lua",
      ["cutelua.program.diffs"] =
        "lua/cutelua/program/diffs.lua",
      ["cutelua.program.events"] =
        "lua/cutelua/program/events.lua",
      ["cutelua.program.exit"] =
        "lua/cutelua/program/exit.lua",
      ["cutelua.program.explain"] =
        "lua/cutelua/program/explain.lua",
      ["cutelua.program.fidelity"] =
        "lua/cutelua/program/fidelity.lua",
      ["cutelua.program.folders"] =
        "lua/cutelua/program/folders.lua",
      ["cutelua.program.http"] =
        "lua/cutelua/program/http.lua",
      ["cutelua.program.lines"] =
        "lua/cutelua/program/lines.lua",
      ["cutelua.program.main"] =
        "lua/cutelua/program/main.lua",
      ["cutelua.program.meaning"] =
        "lua/cutelua/program/meaning.lua",
      ["cutelua.program.memory"] =
        "lua/cutelua/program/memory.lua",
      ["cutelua.program.menu"] =
        "lua/cutelua/program/menu.lua",
      ["cutelua.program.progress"] =
        "lua/cutelua/program/progress.lua",
      ["cutelua.program.reader"] =
        "lua/cutelua/program/reader.lua",
      ["cutelua.program.repl"] =
        "lua/cutelua/program/repl.lua",
      ["cutelua.program.script"] =
        "lua/cutelua/program/script.lua",
      ["cutelua.program.show"] =
        "lua/cutelua/program/show.lua",
      ["cutelua.program.timing"] =
        "lua/cutelua/program/timing.lua",
      ["cutelua.program.topics"] =
        "lua/cutelua/program/topics.lua",
      ["cutelua.program.watch"] =
        "lua/cutelua/program/watch.lua",
      ["cutelua.program.web"] =
        "lua/cutelua/program/web.lua",
      ["cutelua.ptx.capture"] =
        "lua/cutelua/ptx/capture.lua",
      ["cutelua.ptx.card"] =
        "lua/cutelua/ptx/card.lua",
      ["cutelua.ptx.dsl"] =
        "lua/cutelua/ptx/dsl.lua",
      ["cutelua.ptx.host"] =
        "lua/cutelua/ptx/host.lua",
      ["cutelua.ptx"] =
        "lua/cutelua/ptx/init.lua",
      ["cutelua.ptx.kinds"] =
        "lua/cutelua/ptx/kinds.lua",
      ["cutelua.ptx.launch"] =
        "lua/cutelua/ptx/launch.lua",
      ["cutelua.ptx.list"] =
        "lua/cutelua/ptx/list.lua",
      ["cutelua.ptx.map"] =
        "lua/cutelua/ptx/map.lua",
      ["cutelua.ptx.mlir"] =
        "lua/cutelua/ptx/mlir.lua",
      ["cutelua.ptx.raw"] =
        "lua/cutelua/ptx/raw.lua",
      ["cutelua.ptx.triton"] =
        "lua/cutelua/ptx/triton.lua",
      ["cutelua.task.bounded"] =
        "lua/cutelua/task/bounded.lua",
      ["cutelua.task.cheats"] =
        "lua/cutelua/task/cheats.lua",
      ["cutelua.task.folder"] =
        "lua/cutelua/task/folder.lua",
      ["cutelua.task.guard"] =
        "lua/cutelua/task/guard.lua",
      ["cutelua.task.hex"] =
        "lua/cutelua/task/hex.lua",
      ["cutelua.task"] =
        "lua/cutelua/task/init.lua",
      ["cutelua.task.launches"] =
        "lua/cutelua/task/launches.lua",
      ["cutelua.task.limit"] =
        "lua/cutelua/task/limit.lua",
      ["cutelua.task.ptx"] =
        "lua/cutelua/task/ptx.lua",
      ["cutelua.task.random"] =
        "lua/cutelua/task/random.lua",
      ["cutelua.task.referee"] =
        "lua/cutelua/task/referee.lua",
      ["cutelua.task.template"] =
        "lua/cutelua/task/template.lua",
      ["cutelua.task.timing"] =
        "lua/cutelua/task/timing.lua",
      ["cutelua.task.verdict"] =
        "lua/cutelua/task/verdict.lua",
      ["cutelua.task.worker"] =
        "lua/cutelua/task/worker.lua",
      ["cutelua.text.asm"] =
        "lua/cutelua/text/asm.lua",
      ["cutelua.text.choice"] =
        "lua/cutelua/text/choice.lua",
      ["cutelua.text.columns"] =
        "lua/cutelua/text/columns.lua",
      ["cutelua.text.compared"] =
        "lua/cutelua/text/compared.lua",
      ["cutelua.text.compiler"] =
        "lua/cutelua/text/compiler.lua",
      ["cutelua.text.compiler_faults"] =
        "lua/cutelua/text/compiler_faults.lua",
      ["cutelua.text.crossed"] =
        "lua/cutelua/text/crossed.lua",
      ["cutelua.text.descriptors"] =
        "lua/cutelua/text/descriptors.lua",
      ["cutelua.text.errors"] =
        "lua/cutelua/text/errors.lua",
      ["cutelua.text.faults"] =
        "lua/cutelua/text/faults.lua",
      ["cutelua.text.fidelity"] =
        "lua/cutelua/text/fidelity.lua",
      ["cutelua.text.foreign"] =
        "lua/cutelua/text/foreign.lua",
      ["cutelua.text.gguf"] =
        "lua/cutelua/text/gguf.lua",
      ["cutelua.text.html"] =
        "lua/cutelua/text/html.lua",
      ["cutelua.text.json"] =
        "lua/cutelua/text/json.lua",
      ["cutelua.text.libraries"] =
        "lua/cutelua/text/libraries.lua",
      ["cutelua.text.literal"] =
        "lua/cutelua/text/literal.lua",
      ["cutelua.text.mapped"] =
        "lua/cutelua/text/mapped.lua",
      ["cutelua.text.markdown"] =
        "lua/cutelua/text/markdown.lua",
      ["cutelua.text.mistakes"] =
        "lua/cutelua/text/mistakes.lua",
      ["cutelua.text.nils"] =
        "lua/cutelua/text/nils.lua",
      ["cutelua.text.notes"] =
        "lua/cutelua/text/notes.lua",
      ["cutelua.text.npy"] =
        "lua/cutelua/text/npy.lua",
      ["cutelua.text.npz"] =
        "lua/cutelua/text/npz.lua",
      ["cutelua.text.output"] =
        "lua/cutelua/text/output.lua",
      ["cutelua.text.outside"] =
        "lua/cutelua/text/outside.lua",
      ["cutelua.text.relaunched"] =
        "lua/cutelua/text/relaunched.lua",
      ["cutelua.text.safetensors"] =
        "lua/cutelua/text/safetensors.lua",
      ["cutelua.text.scopes"] =
        "lua/cutelua/text/scopes.lua",
      ["cutelua.text.strays"] =
        "lua/cutelua/text/strays.lua",
      ["cutelua.text.suggest"] =
        "lua/cutelua/text/suggest.lua",
      ["cutelua.text.surplus"] =
        "lua/cutelua/text/surplus.lua",
      ["cutelua.text.tokens"] =
        "lua/cutelua/text/tokens.lua",
      ["cutelua.text.uri"] =
        "lua/cutelua/text/uri.lua",
      ["cutelua.tune.attention"] =
        "lua/cutelua/tune/attention.lua",
      ["cutelua.tune.child"] =
        "lua/cutelua/tune/child.lua",
      ["cutelua.tune.epilogues"] =
        "lua/cutelua/tune/epilogues.lua",
      ["cutelua.tune"] =
        "lua/cutelua/tune/init.lua",
      ["cutelua.tune.operands"] =
        "lua/cutelua/tune/operands.lua",
      ["cutelua.tune.products"] =
        "lua/cutelua/tune/products.lua",
      ["cutelua.tune.records"] =
        "lua/cutelua/tune/records.lua",
      ["cutelua.tune.run"] =
        "lua/cutelua/tune/run.lua",
      ["cutelua.tune.tables"] =
        "lua/cutelua/tune/tables.lua",
      ["cutelua.tune.worker"] =
        "lua/cutelua/tune/worker.lua",
      ["cutelua.workshop.globals"] =
        "lua/cutelua/workshop/globals.lua",
      ["cutelua.workshop"] =
        "lua/cutelua/workshop/init.lua",
      ["cutelua.workshop.lessons"] =
        "lua/cutelua/workshop/lessons.lua",
      ["cutelua.workshop.run"] =
        "lua/cutelua/workshop/run.lua",
    },
  },
}
