rockspec_format = "3.0"
package = "cutelua"
version = "0.1.0-1"
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
      ["kernels.attention_decode"] =
        "kernels/attention_decode.lua",
      ["kernels.check"] =
        "kernels/check.lua",
      ["kernels.conv2d"] =
        "kernels/conv2d.lua",
      ["kernels.copytile"] =
        "kernels/copytile.lua",
      ["kernels.elementwise"] =
        "kernels/elementwise.lua",
      ["kernels.flash"] =
        "kernels/flash.lua",
      ["kernels.fold"] =
        "kernels/fold.lua",
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
      ["kernels.gemm_sm80"] =
        "kernels/gemm_sm80.lua",
      ["kernels.gemm_sm90"] =
        "kernels/gemm_sm90.lua",
      ["kernels.gemm_sm90.check"] =
        "kernels/gemm_sm90/check.lua",
      ["kernels.gemm_sm90.choice"] =
        "kernels/gemm_sm90/choice.lua",
      ["kernels.gemm_sm90.constants"] =
        "kernels/gemm_sm90/constants.lua",
      ["kernels.gemm_sm90.epilogue"] =
        "kernels/gemm_sm90/epilogue.lua",
      ["kernels.gemm_sm90.factors"] =
        "kernels/gemm_sm90/factors.lua",
      ["kernels.gemm_sm90.halves"] =
        "kernels/gemm_sm90/halves.lua",
      ["kernels.gemm_sm90.kernel"] =
        "kernels/gemm_sm90/kernel.lua",
      ["kernels.gemm_sm90.mainloop"] =
        "kernels/gemm_sm90/mainloop.lua",
      ["kernels.gemm_sm90.model"] =
        "kernels/gemm_sm90/model.lua",
      ["kernels.gemm_sm90.options"] =
        "kernels/gemm_sm90/options.lua",
      ["kernels.gemm_sm90.producer"] =
        "kernels/gemm_sm90/producer.lua",
      ["kernels.gemm_sm90.schedule"] =
        "kernels/gemm_sm90/schedule.lua",
      ["kernels.gemm_sm90.smem"] =
        "kernels/gemm_sm90/smem.lua",
      ["kernels.gemm_sm90.sources"] =
        "kernels/gemm_sm90/sources.lua",
      ["kernels.gemm_sm90.stream"] =
        "kernels/gemm_sm90/stream.lua",
      ["kernels.gemm_splitk"] =
        "kernels/gemm_splitk.lua",
      ["kernels.groups"] =
        "kernels/groups.lua",
      ["kernels.histogram"] =
        "kernels/histogram.lua",
      ["kernels.join"] =
        "kernels/join.lua",
      ["kernels.meet"] =
        "kernels/meet.lua",
      ["kernels.norm"] =
        "kernels/norm.lua",
      ["kernels.reduce"] =
        "kernels/reduce.lua",
      ["kernels.rope"] =
        "kernels/rope.lua",
      ["kernels.rows"] =
        "kernels/rows.lua",
      ["kernels.scan"] =
        "kernels/scan.lua",
      ["kernels.selective_scan"] =
        "kernels/selective_scan.lua",
      ["kernels.share"] =
        "kernels/share.lua",
      ["kernels.softmax"] =
        "kernels/softmax.lua",
      ["kernels.topk"] =
        "kernels/topk.lua",
      ["kernels.transpose"] =
        "kernels/transpose.lua",
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
      ["cute.arch.warp"] =
        "lua/cute/arch/warp.lua",
      ["cute.asm"] =
        "lua/cute/asm.lua",
      ["cute.bench.chart"] =
        "lua/cute/bench/chart.lua",
      ["cute.bench.copylesson"] =
        "lua/cute/bench/copylesson.lua",
      ["cute.bench.harness"] =
        "lua/cute/bench/harness.lua",
      ["cute.bench.lesson"] =
        "lua/cute/bench/lesson.lua",
      ["cute.bench.lessonlib"] =
        "lua/cute/bench/lessonlib.lua",
      ["cute.bench.oracle"] =
        "lua/cute/bench/oracle.lua",
      ["cute.check.compare"] =
        "lua/cute/check/compare.lua",
      ["cute.check.explore"] =
        "lua/cute/check/explore.lua",
      ["cute.check.gain"] =
        "lua/cute/check/gain.lua",
      ["cute.check"] =
        "lua/cute/check/init.lua",
      ["cute.check.main"] =
        "lua/cute/check/main.lua",
      ["cute.check.operands"] =
        "lua/cute/check/operands.lua",
      ["cute.check.schedule"] =
        "lua/cute/check/schedule.lua",
      ["cute.check.sizes"] =
        "lua/cute/check/sizes.lua",
      ["cute.check.surgeon"] =
        "lua/cute/check/surgeon.lua",
      ["cute.check.sync"] =
        "lua/cute/check/sync.lua",
      ["cute.debug"] =
        "lua/cute/debug/init.lua",
      ["cute.debug.locals"] =
        "lua/cute/debug/locals.lua",
      ["cute.debug.prompt"] =
        "lua/cute/debug/prompt.lua",
      ["cute.debug.show"] =
        "lua/cute/debug/show.lua",
      ["cute.doc.code"] =
        "lua/cute/doc/code.lua",
      ["cute.doc.comments"] =
        "lua/cute/doc/comments.lua",
      ["cute.doc.environment"] =
        "lua/cute/doc/environment.lua",
      ["cute.doc"] =
        "lua/cute/doc/init.lua",
      ["cute.doc.names"] =
        "lua/cute/doc/names.lua",
      ["cute.doc.search"] =
        "lua/cute/doc/search.lua",
      ["cute.draw.html"] =
        "lua/cute/draw/html.lua",
      ["cute.draw"] =
        "lua/cute/draw/init.lua",
      ["cute.draw.latex"] =
        "lua/cute/draw/latex.lua",
      ["cute.draw.layouts"] =
        "lua/cute/draw/layouts.lua",
      ["cute.draw.palette"] =
        "lua/cute/draw/palette.lua",
      ["cute.draw.picture"] =
        "lua/cute/draw/picture.lua",
      ["cute.draw.print"] =
        "lua/cute/draw/print.lua",
      ["cute.draw.script"] =
        "lua/cute/draw/script.lua",
      ["cute.draw.svg"] =
        "lua/cute/draw/svg.lua",
      ["cute.draw.text"] =
        "lua/cute/draw/text.lua",
      ["cute.epilogue"] =
        "lua/cute/epilogue.lua",
      ["cute.gpu"] =
        "lua/cute/gpu.lua",
      ["cute.grouped"] =
        "lua/cute/grouped.lua",
      ["cute.hopper"] =
        "lua/cute/hopper.lua",
      ["cute.html"] =
        "lua/cute/html.lua",
      ["cute"] =
        "lua/cute/init.lua",
      ["cute.jit"] =
        "lua/cute/jit.lua",
      ["cute.json"] =
        "lua/cute/json.lua",
      ["cute.lang.branch"] =
        "lua/cute/lang/branch.lua",
      ["cute.lang.bytecode"] =
        "lua/cute/lang/bytecode.lua",
      ["cute.lang.carry"] =
        "lua/cute/lang/carry.lua",
      ["cute.lang.devices"] =
        "lua/cute/lang/devices.lua",
      ["cute.lang.fields"] =
        "lua/cute/lang/fields.lua",
      ["cute.lang.files"] =
        "lua/cute/lang/files.lua",
      ["cute.lang.folders"] =
        "lua/cute/lang/folders.lua",
      ["cute.lang.kernel"] =
        "lua/cute/lang/kernel.lua",
      ["cute.lang.lex"] =
        "lua/cute/lang/lex.lua",
      ["cute.lang.literal"] =
        "lua/cute/lang/literal.lua",
      ["cute.lang.meant"] =
        "lua/cute/lang/meant.lua",
      ["cute.lang.memory"] =
        "lua/cute/lang/memory.lua",
      ["cute.lang.printing"] =
        "lua/cute/lang/printing.lua",
      ["cute.lang.progress"] =
        "lua/cute/lang/progress.lua",
      ["cute.lang.questions"] =
        "lua/cute/lang/questions.lua",
      ["cute.lang.raw"] =
        "lua/cute/lang/raw.lua",
      ["cute.lang.reach"] =
        "lua/cute/lang/reach.lua",
      ["cute.lang.region"] =
        "lua/cute/lang/region.lua",
      ["cute.lang.report"] =
        "lua/cute/lang/report.lua",
      ["cute.lang.runs"] =
        "lua/cute/lang/runs.lua",
      ["cute.lang.sign"] =
        "lua/cute/lang/sign.lua",
      ["cute.lang.simreport"] =
        "lua/cute/lang/simreport.lua",
      ["cute.lang.slip"] =
        "lua/cute/lang/slip.lua",
      ["cute.lang.source"] =
        "lua/cute/lang/source.lua",
      ["cute.lang.surplus"] =
        "lua/cute/lang/surplus.lua",
      ["cute.lang.trace"] =
        "lua/cute/lang/trace.lua",
      ["cute.lang.truth"] =
        "lua/cute/lang/truth.lua",
      ["cute.lang.undefined"] =
        "lua/cute/lang/undefined.lua",
      ["cute.lang.unused"] =
        "lua/cute/lang/unused.lua",
      ["cute.layoutenum"] =
        "lua/cute/layoutenum.lua",
      ["cute.learn"] =
        "lua/cute/learn/init.lua",
      ["cute.learn.lessons.algebra"] =
        "lua/cute/learn/lessons/algebra.lua",
      ["cute.learn.lessons.bugs"] =
        "lua/cute/learn/lessons/bugs.lua",
      ["cute.learn.lessons.copies"] =
        "lua/cute/learn/lessons/copies.lua",
      ["cute.learn.lessons.epilogues"] =
        "lua/cute/learn/lessons/epilogues.lua",
      ["cute.learn.lessons.hopper"] =
        "lua/cute/learn/lessons/hopper.lua",
      ["cute.learn.lessons.layouts"] =
        "lua/cute/learn/lessons/layouts.lua",
      ["cute.learn.lessons.pipelines"] =
        "lua/cute/learn/lessons/pipelines.lua",
      ["cute.learn.lessons.swizzles"] =
        "lua/cute/learn/lessons/swizzles.lua",
      ["cute.learn.lessons.tensorcores"] =
        "lua/cute/learn/lessons/tensorcores.lua",
      ["cute.learn.lessons.tensors"] =
        "lua/cute/learn/lessons/tensors.lua",
      ["cute.learn.main"] =
        "lua/cute/learn/main.lua",
      ["cute.markdown"] =
        "lua/cute/markdown.lua",
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
      ["cute.npy"] =
        "lua/cute/npy.lua",
      ["cute.nvgpu.cpasync"] =
        "lua/cute/nvgpu/cpasync.lua",
      ["cute.nvgpu"] =
        "lua/cute/nvgpu/init.lua",
      ["cute.nvgpu.sparse"] =
        "lua/cute/nvgpu/sparse.lua",
      ["cute.nvgpu.warp"] =
        "lua/cute/nvgpu/warp.lua",
      ["cute.nvgpu.warpgroup"] =
        "lua/cute/nvgpu/warpgroup.lua",
      ["cute.ops.blocks"] =
        "lua/cute/ops/blocks.lua",
      ["cute.ops.calls"] =
        "lua/cute/ops/calls.lua",
      ["cute.ops.capture"] =
        "lua/cute/ops/capture.lua",
      ["cute.ops.choose"] =
        "lua/cute/ops/choose.lua",
      ["cute.ops.cublas"] =
        "lua/cute/ops/cublas.lua",
      ["cute.ops.elementwise"] =
        "lua/cute/ops/elementwise.lua",
      ["cute.ops.epilogue"] =
        "lua/cute/ops/epilogue.lua",
      ["cute.ops.family.ahead"] =
        "lua/cute/ops/family/ahead.lua",
      ["cute.ops.family.int4"] =
        "lua/cute/ops/family/int4.lua",
      ["cute.ops.family.moved"] =
        "lua/cute/ops/family/moved.lua",
      ["cute.ops.family.simt"] =
        "lua/cute/ops/family/simt.lua",
      ["cute.ops.family.skinny"] =
        "lua/cute/ops/family/skinny.lua",
      ["cute.ops.family.sm80"] =
        "lua/cute/ops/family/sm80.lua",
      ["cute.ops.family.sm90"] =
        "lua/cute/ops/family/sm90.lua",
      ["cute.ops.family.types"] =
        "lua/cute/ops/family/types.lua",
      ["cute.ops.fingerprint"] =
        "lua/cute/ops/fingerprint.lua",
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
      ["cute.ops.numbers"] =
        "lua/cute/ops/numbers.lua",
      ["cute.ops.operand"] =
        "lua/cute/ops/operand.lua",
      ["cute.ops.order"] =
        "lua/cute/ops/order.lua",
      ["cute.ops.partial"] =
        "lua/cute/ops/partial.lua",
      ["cute.ops.philox"] =
        "lua/cute/ops/philox.lua",
      ["cute.ops.plan"] =
        "lua/cute/ops/plan.lua",
      ["cute.ops.problem"] =
        "lua/cute/ops/problem.lua",
      ["cute.ops.promise"] =
        "lua/cute/ops/promise.lua",
      ["cute.ops.reduce"] =
        "lua/cute/ops/reduce.lua",
      ["cute.ops.scales"] =
        "lua/cute/ops/scales.lua",
      ["cute.ops.tuned"] =
        "lua/cute/ops/tuned.lua",
      ["cute.ops.whole"] =
        "lua/cute/ops/whole.lua",
      ["cute.page"] =
        "lua/cute/page/init.lua",
      ["cute.page.link"] =
        "lua/cute/page/link.lua",
      ["cute.page.main"] =
        "lua/cute/page/main.lua",
      ["cute.page.view"] =
        "lua/cute/page/view.lua",
      ["cute.page.watch"] =
        "lua/cute/page/watch.lua",
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
      ["cute.profile.conflict"] =
        "lua/cute/profile/conflict.lua",
      ["cute.profile.estimate"] =
        "lua/cute/profile/estimate.lua",
      ["cute.profile.preflight"] =
        "lua/cute/profile/preflight.lua",
      ["cute.profile.ranges"] =
        "lua/cute/profile/ranges.lua",
      ["cute.profile.swizzle"] =
        "lua/cute/profile/swizzle.lua",
      ["cute.profile.targets"] =
        "lua/cute/profile/targets.lua",
      ["cute.profile.timeline"] =
        "lua/cute/profile/timeline.lua",
      ["cute.program.cli"] =
        "lua/cute/program/cli.lua",
      ["cute.program.complete"] =
        "lua/cute/program/complete.lua",
      ["cute.program.diff"] =
        "lua/cute/program/diff.lua",
      ["cute.program.explain"] =
        "lua/cute/program/explain.lua",
      ["cute.program.http"] =
        "lua/cute/program/http.lua",
      ["cute.program.lines"] =
        "lua/cute/program/lines.lua",
      ["cute.program.main"] =
        "lua/cute/program/main.lua",
      ["cute.program.meaning"] =
        "lua/cute/program/meaning.lua",
      ["cute.program.menu"] =
        "lua/cute/program/menu.lua",
      ["cute.program.reader"] =
        "lua/cute/program/reader.lua",
      ["cute.program.repl"] =
        "lua/cute/program/repl.lua",
      ["cute.program.script"] =
        "lua/cute/program/script.lua",
      ["cute.program.show"] =
        "lua/cute/program/show.lua",
      ["cute.program.timing"] =
        "lua/cute/program/timing.lua",
      ["cute.program.topics"] =
        "lua/cute/program/topics.lua",
      ["cute.program.watch"] =
        "lua/cute/program/watch.lua",
      ["cute.program.web"] =
        "lua/cute/program/web.lua",
      ["cute.ptx"] =
        "lua/cute/ptx.lua",
      ["cute.schedule"] =
        "lua/cute/schedule.lua",
      ["cute.smem"] =
        "lua/cute/smem.lua",
      ["cute.smemstruct"] =
        "lua/cute/smemstruct.lua",
      ["cute.stream"] =
        "lua/cute/stream.lua",
      ["cute.symbolic"] =
        "lua/cute/symbolic.lua",
      ["cute.tensormaps"] =
        "lua/cute/tensormaps.lua",
      ["cute.testing"] =
        "lua/cute/testing.lua",
      ["cute.tiles"] =
        "lua/cute/tiles.lua",
      ["cute.tune.child"] =
        "lua/cute/tune/child.lua",
      ["cute.tune.epilogues"] =
        "lua/cute/tune/epilogues.lua",
      ["cute.tune"] =
        "lua/cute/tune/init.lua",
      ["cute.tune.operands"] =
        "lua/cute/tune/operands.lua",
      ["cute.tune.records"] =
        "lua/cute/tune/records.lua",
      ["cute.tune.run"] =
        "lua/cute/tune/run.lua",
      ["cute.tune.worker"] =
        "lua/cute/tune/worker.lua",
      ["cute.tuple"] =
        "lua/cute/tuple.lua",
      ["cute.utils"] =
        "lua/cute/utils.lua",
      ["cute.workshop.globals"] =
        "lua/cute/workshop/globals.lua",
      ["cute.workshop"] =
        "lua/cute/workshop/init.lua",
      ["cute.workshop.lessons"] =
        "lua/cute/workshop/lessons.lua",
      ["cute.workshop.run"] =
        "lua/cute/workshop/run.lua",
    },
  },
}
