"""More kernels in the CuTe DSL: vector copies, epilogues, attention on tensor
cores, and functions of the host that launch several times.
"""
# SPDX-License-Identifier: MIT
import cutlass
import cutlass.cute as cute
from cutlass import Float16, Float32, Int32
from cutlass.cute import sym_int
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.memory import SmemAllocator

from kernels import (STAGES80, THREADS, TILE80, grid80, parts80, product80,
                     tensor)

# ---- copies of vectors ----

WIDE = 8  # elements of a vector of 16 bytes


@cute.kernel
def blend_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, a: Float32):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i * WIDE < cute.size(x):
        rx = cute.make_rmem_tensor((WIDE,), Float16)
        ry = cute.make_rmem_tensor((WIDE,), Float16)
        cute.autovec_copy(cute.local_tile(x, (WIDE,), (i,)), rx)
        cute.autovec_copy(cute.local_tile(y, (WIDE,), (i,)), ry)
        v = rx.load().to(Float32) * a + ry.load().to(Float32) * (1.0 - a)
        rx.store(v.to(Float16))
        cute.autovec_copy(rx, cute.local_tile(out, (WIDE,), (i,)))


@cute.jit
def blend(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, a: Float32):
    blend_kernel(x, y, out, a).launch(
        grid=(cute.ceil_div(cute.size(x), THREADS * WIDE), 1, 1),
        block=(THREADS, 1, 1))


# A block for each row of at most THREADS * WIDE elements.
@cute.kernel
def rms_norm_kernel(x: cute.Tensor, w: cute.Tensor, out: cute.Tensor):
    tid, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = cute.size(x, mode=[1])
    part = SmemAllocator().allocate_tensor(Float32, cute.make_layout(4), 16)
    rx = cute.make_rmem_tensor((WIDE,), Float16)
    rw = cute.make_rmem_tensor((WIDE,), Float16)
    rx.fill(0.0)
    rw.fill(0.0)
    if tid * WIDE < n:
        cute.autovec_copy(cute.local_tile(x[row, None], (WIDE,), (tid,)), rx)
        cute.autovec_copy(cute.local_tile(w, (WIDE,), (tid,)), rw)
    v = rx.load().to(Float32)
    total = (v * v).reduce(cute.ReductionOp.ADD, 0.0, 0)
    total = cute.arch.warp_reduction_sum(total)
    warp_index = cute.arch.warp_idx()
    if cute.arch.lane_idx() == 0:
        part[warp_index] = total
    cute.arch.sync_threads()
    total = part[0] + part[1] + part[2] + part[3]
    scale = cute.math.rsqrt(total / n + 1e-5)
    if tid * WIDE < n:
        rx.store((v * scale * rw.load().to(Float32)).to(Float16))
        cute.autovec_copy(rx, cute.local_tile(out[row, None], (WIDE,), (tid,)))


@cute.jit
def rms_norm(x: cute.Tensor, w: cute.Tensor, out: cute.Tensor):
    rms_norm_kernel(x, w, out).launch(
        grid=(cute.size(x, mode=[0]), 1, 1), block=(THREADS, 1, 1))


# ---- an epilogue ----

# c = relu(a b^T + bias) in f16, by way of shared memory in vectors of 16 bytes.
@cute.kernel
def gemm80_relu_kernel(a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor,
                       c: cute.Tensor, layout: cute.ComposedLayout,
                       copy: cute.TiledCopy, mma: cute.TiledMma):
    tid, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    smem = SmemAllocator()
    sa = smem.allocate_tensor(Float16, layout, 128)
    sb = smem.allocate_tensor(Float16, layout, 128)
    at = mma.get_slice(tid)
    acc = cute.make_rmem_tensor(at.partition_shape_C(TILE80[:2]), Float32)
    acc.fill(0.0)
    product80(a, b, layout, copy, mma, sa, sb, acc, m, n)
    ti = at.partition_C(cute.local_tile(
        cute.make_identity_tensor(c.shape), TILE80[:2], (m, n)))
    sc = cute.make_tensor(sa.iterator, cute.make_layout(
        (TILE80[0], TILE80[1]), stride=(TILE80[1] + WIDE, 1)))
    tsc = at.partition_C(sc)
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()  # all warps have read the last stage
    for i in cutlass.range_constexpr(cute.size(acc)):
        v = acc[i]
        if ti[i][1] < cute.size(bias):
            v = v + bias[ti[i][1]]
        tsc[i] = cute.arch.fmax(v, Float32(0.0)).to(Float16)
    cute.arch.sync_threads()
    gc = cute.local_tile(c, TILE80[:2], (m, n))
    across = TILE80[1] // WIDE
    for r in cutlass.range_constexpr(TILE80[0] * across // THREADS):
        row, col = r * (THREADS // across) + tid // across, tid % across
        place = m * TILE80[0] + row, n * TILE80[1] + col * WIDE
        if cute.elem_less(place, c.shape):
            cute.autovec_copy(
                cute.local_tile(sc, (1, WIDE), (row, col)),
                cute.local_tile(gc, (1, WIDE), (row, col)))


@cute.jit
def gemm80_relu(a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor,
                c: cute.Tensor):
    mma, copy, layout = parts80()
    gemm80_relu_kernel(a, b, bias, c, layout, copy, mma).launch(
        grid=grid80(c), block=(THREADS, 1, 1))


# ---- several launches ----

@cute.kernel
def smooth_kernel(x: cute.Tensor, out: cute.Tensor, n: Int32):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < n:
        left = x[i] if i == 0 else x[i - 1]
        right = x[i] if i == n - 1 else x[i + 1]
        out[i] = (left + x[i] + right) / 3.0


# Smooths x by way of y, 2 `steps` times.
@cute.jit
def smooth(x: cute.Tensor, y: cute.Tensor, steps: Int32):
    n = cute.size(x)
    grid = (cute.ceil_div(n, THREADS), 1, 1)
    for _ in cutlass.range(steps):
        smooth_kernel(x, y, n).launch(grid=grid, block=(THREADS, 1, 1))
        smooth_kernel(y, x, n).launch(grid=grid, block=(THREADS, 1, 1))


@cute.kernel
def halve_kernel(x: cute.Tensor, n: Int32, half: Int32):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i + half < n:
        x[i] = x[i] + x[i + half]


@cute.kernel
def first_kernel(x: cute.Tensor, out: cute.Tensor):
    if cute.arch.thread_idx()[0] == 0:
        out[0] = x[0]


# Adds the elements of x: each launch halves their number.
@cute.jit
def tree(x: cute.Tensor, out: cute.Tensor):
    n = cute.size(x)
    while n > 1:
        half = (n + 1) // 2
        halve_kernel(x, n, half).launch(
            grid=(cute.ceil_div(n - half, THREADS), 1, 1),
            block=(THREADS, 1, 1))
        n = half
    first_kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


def compile_blend():
    n = sym_int(divisibility=WIDE)
    x = tensor(Float16, n, align=16)
    cute.compile(blend, x, x, x, Float32(1))


def compile_rms_norm():
    m, n = sym_int(), sym_int(divisibility=WIDE)
    x = tensor(Float16, m, n, align=16)
    cute.compile(rms_norm, x, tensor(Float16, n, align=16), x)


def compile_gemm80_relu():
    m, n, k = sym_int(), sym_int(divisibility=WIDE), sym_int(divisibility=32)
    cute.compile(gemm80_relu, tensor(Float16, m, k, align=16),
                 tensor(Float16, n, k, align=16), tensor(Float32, n),
                 tensor(Float16, m, n, align=16))


def compile_smooth():
    n = sym_int()
    cute.compile(smooth, tensor(Float32, n), tensor(Float32, n), Int32(1))


def compile_tree():
    cute.compile(tree, tensor(Float32, sym_int()), tensor(Float32, 1))


COMPILE = {
    "blend": compile_blend,
    "rms_norm": compile_rms_norm,
    "gemm80_relu": compile_gemm80_relu,
    "smooth": compile_smooth,
    "tree": compile_tree,
}
