"""A kernel in the CuTe DSL for Blackwell that compare.py compiles for sm_100a.

One thread multiplies by tcgen05 with accumulators in tensor memory, another one
loads tiles by TMA, and four warps store the accumulators.
"""
# SPDX-License-Identifier: MIT
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100
from cutlass import Float16, Float32
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.memory import SmemAllocator

import kernels

TILE = (128, 64, 64)
STAGES = 3
LOADER, MULTIPLIER, ALLOCATOR = 0, 1, 2  # numbers of warps


@cute.struct
class Storage:
    full: cute.struct.MemRange[cutlass.Int64, STAGES * 2]
    sums: cute.struct.MemRange[cutlass.Int64, 2]
    columns: cutlass.Int32


def thread():
    return pipeline.CooperativeGroup(pipeline.Agent.Thread)


@cute.kernel
def gemm100_kernel(mma: cute.TiledMma, atom_a: cute.CopyAtom, a: cute.Tensor,
                   atom_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
                   la: cute.ComposedLayout, lb: cute.ComposedLayout):
    tx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = SmemAllocator()
    own = smem.allocate(Storage)
    sa = smem.allocate_tensor(Float16, la.outer, 1024, la.inner)
    sb = smem.allocate_tensor(Float16, lb.outer, 1024, lb.inner)
    barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
    memory = utils.TmemAllocator(own.columns.ptr, barrier_for_retrieve=barrier,
                                 allocator_warp_id=ALLOCATOR)
    memory.allocate(TILE[1])
    stage = (None, None, None, 0)
    bytes_ = cute.size_in_bytes(Float16, cute.slice_(la, stage)) \
        + cute.size_in_bytes(Float16, cute.slice_(lb, stage))
    loads = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES, producer_group=thread(), consumer_group=thread(),
        tx_count=bytes_, barrier_storage=own.full.data_ptr())
    sums = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=thread(),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
        barrier_storage=own.sums.data_ptr())
    ga = cute.local_tile(a, (TILE[0], TILE[2]), (bx, None))
    gb = cute.local_tile(b, (TILE[1], TILE[2]), (by, None))
    steps = cute.size(ga, mode=[2])
    thr = mma.get_slice(0)
    tas, tag = cpasync.tma_partition(
        atom_a, 0, cute.make_layout(1), cute.group_modes(sa, 0, 3),
        cute.group_modes(thr.partition_A(ga), 0, 3))
    tbs, tbg = cpasync.tma_partition(
        atom_b, 0, cute.make_layout(1), cute.group_modes(sb, 0, 3),
        cute.group_modes(thr.partition_B(gb), 0, 3))
    ra, rb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
    acc = mma.make_fragment_C(mma.partition_shape_C(TILE[:2]))
    memory.wait_for_alloc()
    pointer = memory.retrieve_ptr(Float32)
    acc = cute.make_tensor(pointer, acc.layout)

    if warp == LOADER:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer,
                                             STAGES)
        for k in cutlass.range(steps):
            loads.producer_acquire(state)
            bar = loads.producer_get_barrier(state)
            cute.copy(atom_a, tag[None, k], tas[None, state.index],
                      tma_bar_ptr=bar)
            cute.copy(atom_b, tbg[None, k], tbs[None, state.index],
                      tma_bar_ptr=bar)
            state.advance()
        loads.producer_tail(state)
    if warp == MULTIPLIER:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer,
                                             STAGES)
        done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer,
                                            1)
        sums.producer_acquire(done)
        for k in cutlass.range(steps):
            loads.consumer_wait(state)
            for kk in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                at = (None, None, kk, state.index)
                cute.gemm(mma, acc, ra[at], rb[at], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            loads.consumer_release(state)
            state.advance()
        sums.producer_commit(done)
    memory.relinquish_alloc_permit()

    ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    sums.consumer_wait(ready)
    gc = cute.local_tile(c, TILE[:2], (bx, by))
    ci = cute.local_tile(cute.make_identity_tensor(c.shape), TILE[:2], (bx, by))
    flat = acc[((None, None), 0, 0)]
    load = tcgen05.make_tmem_copy(cute.make_copy_atom(
        tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), Float32), flat)
    mine = load.get_slice(tx)
    tc, ti = mine.partition_D(gc), mine.partition_D(ci)
    values = cute.make_rmem_tensor(tc.shape, Float32)
    cute.copy(load, mine.partition_S(flat), values)
    for i in cutlass.range_constexpr(cute.size(values)):
        if cute.elem_less(ti[i], c.shape):
            tc[i] = values[i]
    sums.consumer_release(ready)
    pipeline.sync(barrier_id=1)
    memory.free(pointer)


@cute.jit
def gemm100(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(
        Float16, Float32, (TILE[0], TILE[1], 16), tcgen05.CtaGroup.ONE,
        tcgen05.OperandSource.SMEM, OperandMajorMode.K, OperandMajorMode.K))
    la = sm100.make_smem_layout_a(mma, TILE, Float16, STAGES)
    lb = sm100.make_smem_layout_b(mma, TILE, Float16, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    stage = (None, None, None, 0)
    aa, ta = cute.nvgpu.make_tiled_tma_atom_A(op, a, cute.slice_(la, stage),
                                              TILE, mma)
    ab, tb = cute.nvgpu.make_tiled_tma_atom_B(op, b, cute.slice_(lb, stage),
                                              TILE, mma)
    grid = cute.ceil_div((*c.layout.shape, 1), TILE[:2])
    gemm100_kernel(mma, aa, ta, ab, tb, c, la, lb).launch(
        grid=grid, block=(128, 1, 1))


COMPILE = {
    "gemm100": lambda: cute.compile(gemm100, *kernels.gemm_tensors(8),
                                    options="--gpu-arch sm_100a"),
}
