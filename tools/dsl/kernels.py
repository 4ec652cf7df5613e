"""Kernels in the CuTe DSL that compare.py compiles to PTX without a GPU.

Each function of COMPILE compiles one @cute.jit function for extents that are
known at launch only.
"""
# SPDX-License-Identifier: MIT
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils.hopper_helpers as sm90
from cutlass import Float16, Float32, Int32
from cutlass.cute import sym_int
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.memory import SmemAllocator
from cutlass.tensor_utils import LayoutEnum

THREADS = 128


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: Int32):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + tid
    if i < n:
        out[i] = x[i] + y[i]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    n = cute.size(x)
    add_kernel(x, y, out, n).launch(
        grid=(cute.ceil_div(n, THREADS), 1, 1), block=(THREADS, 1, 1))


@cute.kernel
def row_sum_kernel(x: cute.Tensor, out: cute.Tensor, scale: Float32):
    tid, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    part = SmemAllocator().allocate_tensor(Float32, cute.make_layout(4), 16)
    total = Float32(0.0)
    for i in cutlass.range(tid, cute.size(x, mode=[1]), THREADS):
        total += x[row, i].to(Float32)
    total = cute.arch.warp_reduction_sum(total)
    warp_index = cute.arch.warp_idx()  # contains a shuffle of the whole warp
    if cute.arch.lane_idx() == 0:
        part[warp_index] = total
    cute.arch.sync_threads()
    if tid == 0:
        out[row] = (part[0] + part[1] + part[2] + part[3]) * scale


@cute.jit
def row_sum(x: cute.Tensor, out: cute.Tensor, scale: Float32):
    row_sum_kernel(x, out, scale).launch(
        grid=(cute.size(x, mode=[0]), 1, 1), block=(THREADS, 1, 1))


# One warp computes the attention of one query; lane l has elements l and l + 32.
@cute.kernel
def attention_kernel(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor,
                     out: cute.Tensor, scale: Float32):
    tid, _, _ = cute.arch.thread_idx()
    block, head, _ = cute.arch.block_idx()
    lane = tid % 32
    row = block * (THREADS // 32) + tid // 32
    if row < cute.size(q, mode=[1]):
        q0, q1 = q[head, row, lane].to(Float32), q[head, row, lane + 32].to(Float32)
        top, total = -Float32.inf, Float32(0.0)
        o0, o1 = Float32(0.0), Float32(0.0)
        for j in cutlass.range(cute.size(k, mode=[1])):
            s = q0 * k[head, j, lane].to(Float32) \
                + q1 * k[head, j, lane + 32].to(Float32)
            s = cute.arch.warp_reduction_sum(s) * scale
            high = cute.arch.fmax(top, s)
            old = cute.math.exp(top - high)
            p = cute.math.exp(s - high)
            total = total * old + p
            o0 = o0 * old + p * v[head, j, lane].to(Float32)
            o1 = o1 * old + p * v[head, j, lane + 32].to(Float32)
            top = high
        out[head, row, lane] = o0 / total
        out[head, row, lane + 32] = o1 / total


@cute.jit
def attention(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor,
              scale: Float32):
    rows = cute.size(q, mode=[1])
    attention_kernel(q, k, v, out, scale).launch(
        grid=(cute.ceil_div(rows, THREADS // 32), cute.size(q, mode=[0]), 1),
        block=(THREADS, 1, 1))


# A GEMM for Ampere: cp.async in STAGES80 stages, ldmatrix, mma.sync.
TILE80, STAGES80 = (64, 64, 32), 3


# Adds a tile of a b^T to acc.
@cute.jit
def product80(a: cute.Tensor, b: cute.Tensor, layout: cute.ComposedLayout,
              copy: cute.TiledCopy, mma: cute.TiledMma, sa: cute.Tensor,
              sb: cute.Tensor, acc: cute.Tensor, m: Int32, n: Int32):
    tid, _, _ = cute.arch.thread_idx()
    tile = (TILE80[0], TILE80[2])
    ga, gb = cute.local_tile(a, tile, (m, None)), cute.local_tile(b, tile, (n, None))
    ia = cute.local_tile(cute.make_identity_tensor(a.shape), tile, (m, 0))
    ib = cute.local_tile(cute.make_identity_tensor(b.shape), tile, (n, 0))
    thr = copy.get_slice(tid)
    tag, tas, tai = thr.partition_S(ga), thr.partition_D(sa), thr.partition_S(ia)
    tbg, tbs, tbi = thr.partition_S(gb), thr.partition_D(sb), thr.partition_S(ib)
    steps = cute.size(ga, mode=[2])
    at = mma.get_slice(tid)
    ra = mma.make_fragment_A(at.partition_A(sa[None, None, 0]))
    rb = mma.make_fragment_B(at.partition_B(sb[None, None, 0]))
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), Float16)
    load_a, load_b = cute.make_tiled_copy_A(atom, mma), cute.make_tiled_copy_B(atom, mma)
    la, lb = load_a.get_slice(tid), load_b.get_slice(tid)
    lsa, lra = la.partition_S(sa), la.retile(ra)
    lsb, lrb = lb.partition_S(sb), lb.retile(rb)
    tas.fill(0)  # rows outside the matrices
    tbs.fill(0)
    for s in cutlass.range_constexpr(STAGES80 - 1):
        if s < steps:
            for i in cutlass.range_constexpr(cute.size(tas, mode=[1])):
                if cute.elem_less(tai[0, i, 0][0], a.shape[0]):
                    cute.copy(copy, tag[None, i, None, s], tas[None, i, None, s])
                if cute.elem_less(tbi[0, i, 0][0], b.shape[0]):
                    cute.copy(copy, tbg[None, i, None, s], tbs[None, i, None, s])
        cute.arch.cp_async_commit_group()
    for k in cutlass.range(steps):
        cute.arch.cp_async_wait_group(STAGES80 - 2)
        cute.arch.sync_threads()
        ahead = k + STAGES80 - 1
        to = ahead % STAGES80
        if ahead < steps:
            for i in cutlass.range_constexpr(cute.size(tas, mode=[1])):
                if cute.elem_less(tai[0, i, 0][0], a.shape[0]):
                    cute.copy(copy, tag[None, i, None, ahead], tas[None, i, None, to])
                if cute.elem_less(tbi[0, i, 0][0], b.shape[0]):
                    cute.copy(copy, tbg[None, i, None, ahead], tbs[None, i, None, to])
        cute.arch.cp_async_commit_group()
        for kk in cutlass.range_constexpr(cute.size(ra, mode=[2])):
            cute.copy(load_a, lsa[None, None, kk, k % STAGES80], lra[None, None, kk])
            cute.copy(load_b, lsb[None, None, kk, k % STAGES80], lrb[None, None, kk])
            cute.gemm(mma, acc, ra[None, None, kk], rb[None, None, kk], acc)


@cute.kernel
def gemm80_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor,
                  layout: cute.ComposedLayout, copy: cute.TiledCopy,
                  mma: cute.TiledMma):
    tid, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    smem = SmemAllocator()
    sa = smem.allocate_tensor(Float16, layout, 128)
    sb = smem.allocate_tensor(Float16, layout, 128)
    at = mma.get_slice(tid)
    acc = cute.make_rmem_tensor(at.partition_shape_C(TILE80[:2]), Float32)
    acc.fill(0.0)
    product80(a, b, layout, copy, mma, sa, sb, acc, m, n)
    tc = at.partition_C(cute.local_tile(c, TILE80[:2], (m, n)))
    ti = at.partition_C(cute.local_tile(
        cute.make_identity_tensor(c.shape), TILE80[:2], (m, n)))
    for i in cutlass.range_constexpr(cute.size(acc)):
        if cute.elem_less(ti[i], c.shape):
            tc[i] = acc[i]


def parts80():
    """The MMA, the copy and the layout of a stage of product80."""
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)),
                              (2, 2, 1), permutation_mnk=(32, 32, 16))
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), Float16, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4), stride=(4, 1)),
                                   cute.make_layout((1, 8)))
    rows = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0,
                                     cute.make_layout((8, 32), stride=(32, 1)))
    return mma, copy, cute.tile_to_shape(rows, (64, 32, STAGES80), (0, 1, 2))


def grid80(c):
    return (cute.ceil_div(cute.size(c, mode=[0]), TILE80[0]),
            cute.ceil_div(cute.size(c, mode=[1]), TILE80[1]), 1)


@cute.jit
def gemm80(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma, copy, layout = parts80()
    gemm80_kernel(a, b, c, layout, copy, mma).launch(
        grid=grid80(c), block=(THREADS, 1, 1))


# A persistent, warp-specialised GEMM for Hopper: a warp loads by TMA, two
# warpgroups compute by wgmma.
TILE = (128, 64, 64)
STAGES = 3

@cute.kernel
def gemm90_kernel(atom_a: cute.CopyAtom, a: cute.Tensor, atom_b: cute.CopyAtom, b: cute.Tensor,
                c: cute.Tensor, mma: cute.TiledMma,
                sa_layout: cute.ComposedLayout, sb_layout: cute.ComposedLayout):
    tx, _, _ = cute.arch.thread_idx()
    bx, _, _ = cute.arch.block_idx()
    gx, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = SmemAllocator()
    bars = smem.allocate_array(cutlass.Int64, STAGES * 2)
    sa = smem.allocate_tensor(Float16, sa_layout.outer, 1024, sa_layout.inner)
    sb = smem.allocate_tensor(Float16, sb_layout.outer, 1024, sb_layout.inner)
    ga = cute.local_tile(a, (TILE[0], TILE[2]), (None, None))
    gb = cute.local_tile(b, (TILE[1], TILE[2]), (None, None))
    tiles_m, tiles_k = cute.size(ga, mode=[2]), cute.size(ga, mode=[3])
    tiles = tiles_m * cute.size(gb, mode=[2])
    bytes_ = cute.size_in_bytes(Float16, cute.slice_(sa_layout, (None, None, 0))) \
        + cute.size_in_bytes(Float16, cute.slice_(sb_layout, (None, None, 0)))
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8),
        tx_count=bytes_, barrier_storage=bars,
        cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)))
    tas, tag = cpasync.tma_partition(atom_a, 0, cute.make_layout(1),
                                     cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2))
    tbs, tbg = cpasync.tma_partition(atom_b, 0, cute.make_layout(1),
                                     cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2))
    if warp >= 8:
        cute.arch.setmaxregister_decrease(40)
        if warp == 8:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            tile = bx
            while tile < tiles:
                m, n = tile % tiles_m, tile // tiles_m
                for k in cutlass.range(tiles_k):
                    pipe.producer_acquire(state)
                    bar = pipe.producer_get_barrier(state)
                    cute.copy(atom_a, tag[None, m, k], tas[None, state.index], tma_bar_ptr=bar)
                    cute.copy(atom_b, tbg[None, n, k], tbs[None, state.index], tma_bar_ptr=bar)
                    pipe.producer_commit(state)
                    state.advance()
                tile += gx
            pipe.producer_tail(state)
    else:
        cute.arch.setmaxregister_increase(232)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        thr = mma.get_slice(tx)
        ra = mma.make_fragment_A(thr.partition_A(sa))
        rb = mma.make_fragment_B(thr.partition_B(sb))
        acc = cute.make_rmem_tensor(thr.partition_shape_C(TILE[:2]), Float32)
        cc = cute.make_identity_tensor(c.shape)
        tile = bx
        while tile < tiles:
            m, n = tile % tiles_m, tile // tiles_m
            gc = cute.local_tile(c, TILE[:2], (m, n))
            ci = cute.local_tile(cc, TILE[:2], (m, n))
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for k in cutlass.range(tiles_k):
                pipe.consumer_wait(state)
                warpgroup.fence()
                for kk in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                    at = (None, None, kk, state.index)
                    cute.gemm(mma, acc, ra[at], rb[at], acc)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                pipe.consumer_release(state)
                state.advance()
            tc, ti = thr.partition_C(gc), thr.partition_C(ci)
            for i in cutlass.range_constexpr(cute.size(acc)):
                if cute.elem_less(ti[i], c.shape):
                    tc[i] = acc[i]
            tile += gx

@cute.jit
def gemm90(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sms: Int32):
    mma = sm90.make_trivial_tiled_mma(Float16, Float16,
        OperandMajorMode.K, OperandMajorMode.K, Float32,
        (2, 1, 1), (64, TILE[1]))
    la = sm90.make_smem_layout_a(LayoutEnum.ROW_MAJOR, TILE, Float16, STAGES)
    lb = sm90.make_smem_layout_b(LayoutEnum.ROW_MAJOR, TILE, Float16, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp()
    aa, ta = cpasync.make_tiled_tma_atom(op, a, cute.slice_(la, (None, None, 0)), (TILE[0], TILE[2]))
    ab, tb = cpasync.make_tiled_tma_atom(op, b, cute.slice_(lb, (None, None, 0)), (TILE[1], TILE[2]))
    tiles = cute.ceil_div(cute.size(c, mode=[0]), TILE[0]) * cute.ceil_div(cute.size(c, mode=[1]), TILE[1])
    grid = cutlass.min(tiles, sms)
    gemm90_kernel(aa, ta, ab, tb, c, mma, la, lb).launch(grid=(grid, 1, 1), block=(384, 1, 1))


def tensor(dtype, *shape, align=None):
    """A row-major tensor of fake memory with extents of these symbols."""
    return make_fake_compact_tensor(
        dtype, shape, stride_order=tuple(reversed(range(len(shape)))),
        assumed_align=align)


def gemm_tensors(divisor):
    m, n, k = sym_int(), sym_int(), sym_int(divisibility=divisor)
    return (tensor(Float16, m, k, align=16), tensor(Float16, n, k, align=16),
            tensor(Float32, m, n))


def compile_add():
    n = sym_int()
    cute.compile(add, *(tensor(Float32, n) for _ in range(3)))


def compile_row_sum():
    m, n = sym_int(), sym_int()
    cute.compile(row_sum, tensor(Float16, m, n), tensor(Float32, m), Float32(1))


def compile_attention():
    h, m, n = sym_int(), sym_int(), sym_int()
    q, k = tensor(Float16, h, m, 64), tensor(Float16, h, n, 64)
    cute.compile(attention, q, k, k, tensor(Float32, h, m, 64), Float32(1))


COMPILE = {
    "add": compile_add,
    "row_sum": compile_row_sum,
    "attention": compile_attention,
    "gemm80": lambda: cute.compile(gemm80, *gemm_tensors(32)),
    "gemm90": lambda: cute.compile(gemm90, *gemm_tensors(8), Int32(2)),
}
