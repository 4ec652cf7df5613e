"""Attention on tensor cores in the CuTe DSL: heads of 64 elements, online
softmax over tiles of 64 keys, without a mask.
"""
# SPDX-License-Identifier: MIT
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils.hopper_helpers as sm90
from cutlass import Float16, Float32, Int32
from cutlass.cute import sym_int
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.memory import SmemAllocator
from cutlass.tensor_utils import LayoutEnum

from kernels import THREADS, tensor

ROWS, KEYS, HEAD, STAGES = 64, 64, 64, 2


# Scales the scores `s` of a tile of keys, updates the maxima and sums of the
# thread's two rows, turns the scores to probabilities, and scales `o`.
@cute.jit
def online_softmax(s: cute.Tensor, o: cute.Tensor, ti: cute.Tensor,
                   top: cute.Tensor, total: cute.Tensor, first: Int32,
                   keys: Int32, scale: Float32):
    for r in cutlass.range_constexpr(2):
        high = top[r]
        for n in cutlass.range_constexpr(KEYS // 8):
            for c in cutlass.range_constexpr(2):
                v = s[(c, r), 0, n] * scale
                column = ti[(c, r), 0, n][1]
                v = v if first + column < keys else -Float32.inf
                s[(c, r), 0, n] = v
                high = cute.arch.fmax(high, v)
        high = cute.arch.fmax(high, cute.arch.shuffle_sync_bfly(high, offset=1))
        high = cute.arch.fmax(high, cute.arch.shuffle_sync_bfly(high, offset=2))
        old = cute.math.exp(top[r] - high)
        own = Float32(0.0)
        for n in cutlass.range_constexpr(KEYS // 8):
            for c in cutlass.range_constexpr(2):
                p = cute.math.exp(s[(c, r), 0, n] - high)
                s[(c, r), 0, n] = p
                own = own + p
        for n in cutlass.range_constexpr(HEAD // 8):
            for c in cutlass.range_constexpr(2):
                o[(c, r), 0, n] = o[(c, r), 0, n] * old
        total[r] = total[r] * old + own
        top[r] = high


# Returns probabilities in f16 as operand A of the next product. 16 columns of A
# consist of two groups of 8 columns of the accumulators.
def as_operand(s):
    p = cute.make_rmem_tensor(s.layout, Float16)
    p.store(s.load().to(Float16))
    return cute.make_tensor(p.iterator, cute.make_layout(
        ((2, 2, 2), 1, KEYS // 16), stride=((1, 2, 4), 0, 8)))


# Divides o by the sums of the rows, and stores it.
@cute.jit
def finish(o: cute.Tensor, total: cute.Tensor, to: cute.Tensor,
           ti: cute.Tensor, rows: Int32):
    for r in cutlass.range_constexpr(2):
        t = total[r]
        t = t + cute.arch.shuffle_sync_bfly(t, offset=1)
        t = t + cute.arch.shuffle_sync_bfly(t, offset=2)
        if ti[(0, r), 0, 0][0] < rows:
            for n in cutlass.range_constexpr(HEAD // 8):
                for c in cutlass.range_constexpr(2):
                    to[(c, r), 0, n] = o[(c, r), 0, n] / t


# ---- cp.async, mma.sync ----

@cute.jit
def load_rows(copy: cute.TiledCopy, source: cute.Tensor, to: cute.Tensor,
              places: cute.Tensor, rows: Int32):
    for i in cutlass.range_constexpr(cute.size(to, mode=[1])):
        if places[0, i, 0][0] < rows:
            cute.copy(copy, source[None, i, None], to[None, i, None])


@cute.kernel
def flash80_kernel(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor,
                   out: cute.Tensor, layout: cute.ComposedLayout,
                   copy: cute.TiledCopy, mma: cute.TiledMma, scale: Float32):
    tid, _, _ = cute.arch.thread_idx()
    m, h, _ = cute.arch.block_idx()
    rows, keys = cute.size(q, mode=[1]), cute.size(k, mode=[1])
    smem = SmemAllocator()
    sq = smem.allocate_tensor(Float16, cute.select(layout, [0, 1]), 128)
    sk = smem.allocate_tensor(Float16, layout, 128)
    sv = smem.allocate_tensor(Float16, layout, 128)
    tile = (KEYS, HEAD)
    gq = cute.local_tile(q[h, None, None], tile, (m, 0))
    gk = cute.local_tile(k[h, None, None], tile, (None, 0))
    gv = cute.local_tile(v[h, None, None], tile, (None, 0))
    iq = cute.local_tile(cute.make_identity_tensor((rows, HEAD)), tile, (m, 0))
    ik = cute.local_tile(cute.make_identity_tensor((keys, HEAD)), tile,
                         (None, 0))
    thr = copy.get_slice(tid)
    tq, tsq, tiq = thr.partition_S(gq), thr.partition_D(sq), thr.partition_S(iq)
    tk, tsk = thr.partition_S(gk), thr.partition_D(sk)
    tv, tsv, tik = thr.partition_S(gv), thr.partition_D(sv), thr.partition_S(ik)
    tsq.fill(0)  # rows outside the matrices
    tsk.fill(0)
    tsv.fill(0)
    at = mma.get_slice(tid)
    rq = mma.make_fragment_A(at.partition_A(sq))
    rk = mma.make_fragment_B(at.partition_B(sk[None, None, 0]))
    # V as B has HEAD columns of KEYS elements.
    turned = cute.make_layout((HEAD, KEYS), stride=(KEYS, 1))
    rv = mma.make_fragment_B(at.partition_B(
        cute.composition(sv[None, None, 0], turned)))
    s = cute.make_rmem_tensor(at.partition_shape_C((ROWS, KEYS)), Float32)
    o = cute.make_rmem_tensor(at.partition_shape_C((ROWS, HEAD)), Float32)
    o.fill(0.0)
    top = cute.make_rmem_tensor((2,), Float32)
    total = cute.make_rmem_tensor((2,), Float32)
    top.fill(-Float32.inf)
    total.fill(0.0)
    plain = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), Float16)
    trans = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), Float16)
    load_q = cute.make_tiled_copy_A(plain, mma).get_slice(tid)
    load_k = cute.make_tiled_copy_B(plain, mma).get_slice(tid)
    load_v = cute.make_tiled_copy_B(trans, mma).get_slice(tid)
    ti = at.partition_C(cute.make_identity_tensor((ROWS, KEYS)))
    tiles = cute.size(gk, mode=[2])
    load_rows(copy, tq, tsq, tiq, rows)
    load_rows(copy, tk[None, None, None, 0], tsk[None, None, None, 0],
              tik[None, None, None, 0], keys)
    load_rows(copy, tv[None, None, None, 0], tsv[None, None, None, 0],
              tik[None, None, None, 0], keys)
    cute.arch.cp_async_commit_group()
    for j in cutlass.range(tiles):
        to, own = (j + 1) % STAGES, j % STAGES
        if j + 1 < tiles:
            load_rows(copy, tk[None, None, None, j + 1],
                      tsk[None, None, None, to], tik[None, None, None, j + 1],
                      keys)
            load_rows(copy, tv[None, None, None, j + 1],
                      tsv[None, None, None, to], tik[None, None, None, j + 1],
                      keys)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()
        s.fill(0.0)
        for kk in cutlass.range_constexpr(HEAD // 16):
            cute.copy(plain, load_q.partition_S(sq)[None, None, kk],
                      load_q.retile(rq)[None, None, kk])
            cute.copy(plain, load_k.partition_S(sk)[None, None, kk, own],
                      load_k.retile(rk)[None, None, kk])
            cute.gemm(mma, s, rq[None, None, kk], rk[None, None, kk], s)
        online_softmax(s, o, ti, top, total, j * KEYS, keys, scale)
        p = as_operand(s)
        stage = cute.composition(sv[None, None, own], turned)
        for kk in cutlass.range_constexpr(KEYS // 16):
            cute.copy(trans, load_v.partition_S(stage)[None, None, kk],
                      load_v.retile(rv)[None, None, kk])
            cute.gemm(mma, o, p[None, None, kk], rv[None, None, kk], o)
        cute.arch.sync_threads()
    to_o = at.partition_C(cute.local_tile(out[h, None, None], tile, (m, 0)))
    finish(o, total, to_o, at.partition_C(iq), rows)


@cute.jit
def flash80(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor,
            scale: Float32):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)),
                              (4, 1, 1), permutation_mnk=(ROWS, 16, 16))
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), Float16,
                               num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(
        atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
    eight = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0,
                                      cute.make_layout((8, 64), stride=(64, 1)))
    layout = cute.tile_to_shape(eight, (KEYS, HEAD, STAGES), (0, 1, 2))
    flash80_kernel(q, k, v, out, layout, copy, mma, scale).launch(
        grid=(cute.ceil_div(cute.size(q, mode=[1]), ROWS),
              cute.size(q, mode=[0]), 1), block=(THREADS, 1, 1))


# ---- TMA, wgmma ----

# A warp loads the queries and the ring of keys and values, and a warpgroup
# computes. The probabilities are operands in registers.
@cute.kernel
def flash90_kernel(atom_q: cute.CopyAtom, q: cute.Tensor,
                   atom_k: cute.CopyAtom, k: cute.Tensor,
                   atom_v: cute.CopyAtom, v: cute.Tensor, out: cute.Tensor,
                   mma_s: cute.TiledMma, mma_o: cute.TiledMma,
                   lq: cute.ComposedLayout, lk: cute.ComposedLayout,
                   lv: cute.ComposedLayout, scale: Float32):
    tid, _, _ = cute.arch.thread_idx()
    m, h, _ = cute.arch.block_idx()
    warp_index = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rows, keys = cute.size(q, mode=[0]), cute.size(k, mode=[0])
    smem = SmemAllocator()
    bars_q = smem.allocate_array(cutlass.Int64, 2)
    bars = smem.allocate_array(cutlass.Int64, STAGES * 2)
    sq = smem.allocate_tensor(Float16, lq.outer, 1024, lq.inner)
    sk = smem.allocate_tensor(Float16, lk.outer, 1024, lk.inner)
    sv = smem.allocate_tensor(Float16, lv.outer, 1024, lv.inner)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    four = pipeline.CooperativeGroup(pipeline.Agent.Thread, 4)
    alone = cute.make_layout((1, 1, 1, 1))
    bytes_ = ROWS * HEAD * 2
    pipe_q = pipeline.PipelineTmaAsync.create(
        num_stages=1, producer_group=one, consumer_group=four,
        tx_count=bytes_, barrier_storage=bars_q, cta_layout_vmnk=alone)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES, producer_group=one, consumer_group=four,
        tx_count=2 * bytes_, barrier_storage=bars, cta_layout_vmnk=alone)
    gq = cute.local_tile(q, (ROWS, HEAD), (m, 0, h))
    gk = cute.local_tile(k, (KEYS, HEAD), (None, 0, h))
    gv = cute.local_tile(v, (HEAD, KEYS), (0, None, h))
    line = cute.make_layout(1)
    tsq, tq = cpasync.tma_partition(atom_q, 0, line, cute.group_modes(sq, 0, 2),
                                    cute.group_modes(gq, 0, 2))
    tsk, tk = cpasync.tma_partition(atom_k, 0, line, cute.group_modes(sk, 0, 2),
                                    cute.group_modes(gk, 0, 2))
    tsv, tv = cpasync.tma_partition(atom_v, 0, line, cute.group_modes(sv, 0, 2),
                                    cute.group_modes(gv, 0, 2))
    tiles = cute.size(gk, mode=[2])
    if warp_index == 4:
        first = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer,
                                             1)
        pipe_q.producer_acquire(first)
        cute.copy(atom_q, tq, tsq[None, 0],
                  tma_bar_ptr=pipe_q.producer_get_barrier(first))
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer,
                                             STAGES)
        for j in cutlass.range(tiles):
            pipe.producer_acquire(state)
            bar = pipe.producer_get_barrier(state)
            cute.copy(atom_k, tk[None, j], tsk[None, state.index],
                      tma_bar_ptr=bar)
            cute.copy(atom_v, tv[None, j], tsv[None, state.index],
                      tma_bar_ptr=bar)
            pipe.producer_commit(state)
            state.advance()
        pipe.producer_tail(state)
    if warp_index < 4:
        at_s, at_o = mma_s.get_slice(tid), mma_o.get_slice(tid)
        rq = mma_s.make_fragment_A(at_s.partition_A(sq))
        rk = mma_s.make_fragment_B(at_s.partition_B(sk))
        rv = mma_o.make_fragment_B(at_o.partition_B(sv))
        s = cute.make_rmem_tensor(at_s.partition_shape_C((ROWS, KEYS)), Float32)
        o = cute.make_rmem_tensor(at_o.partition_shape_C((ROWS, HEAD)), Float32)
        o.fill(0.0)
        top = cute.make_rmem_tensor((2,), Float32)
        total = cute.make_rmem_tensor((2,), Float32)
        top.fill(-Float32.inf)
        total.fill(0.0)
        flat_s = cute.make_tensor(s.iterator, cute.make_layout(
            ((2, 2), 1, KEYS // 8), stride=((1, 2), 0, 4)))
        flat_o = cute.make_tensor(o.iterator, cute.make_layout(
            ((2, 2), 1, HEAD // 8), stride=((1, 2), 0, 4)))
        place = at_s.partition_C(cute.make_identity_tensor((ROWS, KEYS)))
        ti = cute.composition(place, cute.make_layout(
            ((2, 2), 1, KEYS // 8), stride=((1, 2), 0, 4)))
        first = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer,
                                             1)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer,
                                             STAGES)
        pipe_q.consumer_wait(first)
        for j in cutlass.range(tiles):
            pipe.consumer_wait(state)
            mma_s.set(warpgroup.Field.ACCUMULATE, False)
            warpgroup.fence()
            for kk in cutlass.range_constexpr(cute.size(rq, mode=[2])):
                cute.gemm(mma_s, s, rq[None, None, kk, 0],
                          rk[None, None, kk, state.index], s)
                mma_s.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            online_softmax(flat_s, flat_o, ti, top, total, j * KEYS, keys,
                           scale)
            p = as_operand(flat_s)
            mma_o.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.fence()
            for kk in cutlass.range_constexpr(KEYS // 16):
                cute.gemm(mma_o, o, p[None, None, kk],
                          rv[None, None, kk, state.index], o)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            pipe.consumer_release(state)
            state.advance()
        pipe_q.consumer_release(first)
        go = cute.local_tile(out[h, None, None], (ROWS, HEAD), (m, 0))
        io = cute.local_tile(cute.make_identity_tensor((rows, HEAD)),
                             (ROWS, HEAD), (m, 0))
        flat = cute.make_layout(((2, 2), 1, HEAD // 8), stride=((1, 2), 0, 4))
        finish(flat_o, total, cute.composition(at_o.partition_C(go), flat),
               cute.composition(at_o.partition_C(io), flat), rows)


def heads_last(x, order):
    return cute.make_tensor(x.iterator, cute.select(x.layout, order))


@cute.jit
def flash90(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor,
            scale: Float32):
    mma_s = sm90.make_trivial_tiled_mma(
        Float16, Float16, OperandMajorMode.K, OperandMajorMode.K, Float32,
        (1, 1, 1), (ROWS, KEYS))
    mma_o = sm90.make_trivial_tiled_mma(
        Float16, Float16, OperandMajorMode.K, OperandMajorMode.MN, Float32,
        (1, 1, 1), (ROWS, HEAD), warpgroup.OperandSource.RMEM)
    lq = sm90.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (ROWS, KEYS, HEAD),
                                 Float16, 1)
    lk = sm90.make_smem_layout_b(LayoutEnum.ROW_MAJOR, (ROWS, KEYS, HEAD),
                                 Float16, STAGES)
    lv = sm90.make_smem_layout_b(LayoutEnum.COL_MAJOR, (ROWS, HEAD, KEYS),
                                 Float16, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp()
    aq, tq = cpasync.make_tiled_tma_atom(
        op, heads_last(q, [1, 2, 0]), cute.slice_(lq, (None, None, 0)),
        (ROWS, HEAD))
    ak, tk = cpasync.make_tiled_tma_atom(
        op, heads_last(k, [1, 2, 0]), cute.slice_(lk, (None, None, 0)),
        (KEYS, HEAD))
    av, tv = cpasync.make_tiled_tma_atom(
        op, heads_last(v, [2, 1, 0]), cute.slice_(lv, (None, None, 0)),
        (HEAD, KEYS))
    flash90_kernel(aq, tq, ak, tk, av, tv, out, mma_s, mma_o, lq, lk, lv,
                   scale).launch(
        grid=(cute.ceil_div(cute.size(q, mode=[1]), ROWS),
              cute.size(q, mode=[0]), 1), block=(THREADS + 32, 1, 1))


def compile_with(function):
    def compile_it():
        h, m, n = sym_int(), sym_int(), sym_int()
        q, k = (tensor(Float16, h, x, HEAD, align=16) for x in (m, n))
        cute.compile(function, q, k, k, tensor(Float32, h, m, HEAD), Float32(1))
    return compile_it


COMPILE = {
    "flash80": compile_with(flash80),
    "flash90": compile_with(flash90),
}
