"""Kernels in the CuTe DSL for Blackwell that compare.py compiles for sm_100a.

One thread multiplies by tcgen05 with accumulators in tensor memory, another one
loads tiles by TMA, and four warps store the accumulators.
"""
# SPDX-License-Identifier: MIT
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100
import cutlass.utils.blockscaled_layout as scales
from cutlass import Float4E2M1FN, Float8E4M3FN, Float16, Float32, Uint8
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


@cute.jit
def store(acc, c, tile, at, tx):
    """Stores the part of a tile of accumulators that is inside of c."""
    gc = cute.local_tile(c, tile, at)
    ci = cute.local_tile(cute.make_identity_tensor(c.shape), tile, at)
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
    store(acc, c, TILE[:2], (bx, by), tx)
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


# ---- NVFP4: 16 numbers of e2m1 share a scale factor of e4m3 ----

TILE4 = (128, 128, 256)
VECTOR = 16
COLUMNS = 256  # of tensor memory: accumulators and scale factors


def factor_copy(smem, tmem):
    """Returns the copy of scale factors to tensor memory, and both sides."""
    atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE),
                               Float8E4M3FN)
    smem, tmem = cute.filter_zeros(smem), cute.filter_zeros(tmem)
    copy = tcgen05.make_s2t_copy(atom, tmem)
    part = copy.get_slice(0)
    source = tcgen05.get_s2t_smem_desc_tensor(copy, part.partition_S(smem))
    return copy, source, part.partition_D(tmem)


def loaded(atom, smem, tiles):
    """Returns both sides of the loads of an operand."""
    s, g = cpasync.tma_partition(atom, 0, cute.make_layout(1),
                                 cute.group_modes(smem, 0, 3),
                                 cute.group_modes(tiles, 0, 3))
    return cute.filter_zeros(s), cute.filter_zeros(g)


@cute.kernel
def nvfp4_kernel(mma: cute.TiledMma,
                 atom_a: cute.CopyAtom, a: cute.Tensor,
                 atom_b: cute.CopyAtom, b: cute.Tensor,
                 atom_fa: cute.CopyAtom, fa: cute.Tensor,
                 atom_fb: cute.CopyAtom, fb: cute.Tensor, c: cute.Tensor,
                 la: cute.ComposedLayout, lb: cute.ComposedLayout,
                 lfa: cute.Layout, lfb: cute.Layout):
    tx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = SmemAllocator()
    own = smem.allocate(Storage)
    sa = smem.allocate_tensor(Float4E2M1FN, la.outer, 1024, la.inner)
    sb = smem.allocate_tensor(Float4E2M1FN, lb.outer, 1024, lb.inner)
    sfa = smem.allocate_tensor(Float8E4M3FN, lfa, 128)
    sfb = smem.allocate_tensor(Float8E4M3FN, lfb, 128)
    stage = (None, None, None, 0)
    bytes_ = sum(cute.size_in_bytes(t, cute.slice_(l, stage)) for t, l in (
        (Float4E2M1FN, la), (Float4E2M1FN, lb),
        (Float8E4M3FN, lfa), (Float8E4M3FN, lfb)))
    barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
    memory = utils.TmemAllocator(own.columns.ptr, barrier_for_retrieve=barrier,
                                 allocator_warp_id=ALLOCATOR)
    memory.allocate(COLUMNS)
    loads = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES, producer_group=thread(), consumer_group=thread(),
        tx_count=bytes_, barrier_storage=own.full.data_ptr())
    sums = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=thread(),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
        barrier_storage=own.sums.data_ptr())
    thr = mma.get_slice(0)
    rows, columns = (TILE4[0], TILE4[2]), (TILE4[1], TILE4[2])
    ga = thr.partition_A(cute.local_tile(a, rows, (bx, None, 0)))
    gb = thr.partition_B(cute.local_tile(b, columns, (by, None, 0)))
    gfa = thr.partition_A(cute.local_tile(fa, rows, (bx, None, 0)))
    gfb = thr.partition_B(cute.local_tile(fb, columns, (by, None, 0)))
    steps = cute.size(ga, mode=[3])
    tas, tag = loaded(atom_a, sa, ga)
    tbs, tbg = loaded(atom_b, sb, gb)
    tfas, tfag = loaded(atom_fa, sfa, gfa)
    tfbs, tfbg = loaded(atom_fb, sfb, gfb)
    ra, rb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
    acc = mma.make_fragment_C(mma.partition_shape_C(TILE4[:2]))
    memory.wait_for_alloc()
    pointer = memory.retrieve_ptr(Float32)
    acc = cute.make_tensor(pointer, acc.layout)
    at = pointer + tcgen05.find_tmem_tensor_col_offset(acc)
    ta = cute.make_tensor(
        cute.recast_ptr(at, dtype=Float8E4M3FN), scales.make_tmem_layout_sfa(
            mma, TILE4, VECTOR, cute.slice_(lfa, stage)))
    at = at + tcgen05.find_tmem_tensor_col_offset(ta)
    tb = cute.make_tensor(
        cute.recast_ptr(at, dtype=Float8E4M3FN), scales.make_tmem_layout_sfb(
            mma, TILE4, VECTOR, cute.slice_(lfb, stage)))
    copy_a, from_a, to_a = factor_copy(sfa, ta)
    copy_b, from_b, to_b = factor_copy(sfb, tb)

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
            cute.copy(atom_fa, tfag[None, k], tfas[None, state.index],
                      tma_bar_ptr=bar)
            cute.copy(atom_fb, tfbg[None, k], tfbs[None, state.index],
                      tma_bar_ptr=bar)
            state.advance()
        loads.producer_tail(state)
    if warp == MULTIPLIER:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer,
                                             STAGES)
        done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer,
                                            1)
        sums.producer_acquire(done)
        mma.set(tcgen05.Field.ACCUMULATE, False)
        for k in cutlass.range(steps):
            loads.consumer_wait(state)
            step = (None, None, None, None, state.index)
            cute.copy(copy_a, from_a[step], to_a)
            cute.copy(copy_b, from_b[step], to_b)
            for kk in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                mma.set(tcgen05.Field.SFA, ta[None, None, kk].iterator)
                mma.set(tcgen05.Field.SFB, tb[None, None, kk].iterator)
                at_k = (None, None, kk, state.index)
                cute.gemm(mma, acc, ra[at_k], rb[at_k], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            loads.consumer_release(state)
            state.advance()
        sums.producer_commit(done)
    memory.relinquish_alloc_permit()

    ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    sums.consumer_wait(ready)
    store(acc, c, TILE4[:2], (bx, by), tx)
    sums.consumer_release(ready)
    pipeline.sync(barrier_id=1)
    memory.free(pointer)


@cute.jit
def gemm100_nvfp4(a: cute.Tensor, b: cute.Tensor, fa: cute.Tensor,
                  fb: cute.Tensor, c: cute.Tensor):
    k = 2 * a.shape[1]  # a byte holds 2 numbers
    mma = cute.make_tiled_mma(tcgen05.MmaMXF4NVF4Op(
        Float8E4M3FN, (TILE4[0], TILE4[1], 64), tcgen05.CtaGroup.ONE,
        tcgen05.OperandSource.SMEM))
    la = sm100.make_smem_layout_a(mma, TILE4, Float4E2M1FN, STAGES)
    lb = sm100.make_smem_layout_b(mma, TILE4, Float4E2M1FN, STAGES)
    lfa = scales.make_smem_layout_sfa(mma, TILE4, VECTOR, STAGES)
    lfb = scales.make_smem_layout_sfb(mma, TILE4, VECTOR, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    stage = (None, None, None, 0)

    def atoms(make, x, factors, l, lf):
        rows = x.shape[0]
        layout = cute.make_ordered_layout((rows, cute.assume(k, 32), 1),
                                          order=(1, 0, 2))
        numbers = cute.make_tensor(
            cute.recast_ptr(x.iterator, dtype=Float4E2M1FN), layout)
        atom, t = make(op, numbers, cute.slice_(l, stage), TILE4, mma)
        factors = cute.make_tensor(
            cute.recast_ptr(factors.iterator, dtype=Float8E4M3FN),
            scales.tile_atom_to_shape_SF(numbers.shape, VECTOR))
        return atom, t, *make(op, factors, cute.slice_(lf, stage), TILE4, mma,
                              internal_type=cutlass.Int16)

    aa, ta, afa, tfa = atoms(cute.nvgpu.make_tiled_tma_atom_A, a, fa, la, lfa)
    ab, tb, afb, tfb = atoms(cute.nvgpu.make_tiled_tma_atom_B, b, fb, lb, lfb)
    nvfp4_kernel(mma, aa, ta, ab, tb, afa, tfa, afb, tfb, c, la, lb, lfa,
                 lfb).launch(grid=cute.ceil_div((*c.layout.shape, 1), TILE4[:2]),
                             block=(128, 1, 1))


def nvfp4_tensors():
    m, n, k = cute.sym_int(), cute.sym_int(), cute.sym_int(divisibility=16)
    return (kernels.tensor(Uint8, m, k, align=16),
            kernels.tensor(Uint8, n, k, align=16),
            kernels.tensor(Uint8, cute.sym_int(), align=128),
            kernels.tensor(Uint8, cute.sym_int(), align=128),
            kernels.tensor(Float32, m, n))


COMPILE = {
    "gemm100": lambda: cute.compile(gemm100, *kernels.gemm_tensors(8),
                                    options="--gpu-arch sm_100a"),
    "gemm100_nvfp4": lambda: cute.compile(gemm100_nvfp4, *nvfp4_tensors(),
                                          options="--gpu-arch sm_100a"),
}
