"""More kernels in Triton: scans, sorts, atomics, locks, types of products,
attention with warp specialization. kernels.py compiles them."""
# SPDX-License-Identifier: MIT
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def scan(x, out, n, B: tl.constexpr):
    j = tl.arange(0, B)
    v = tl.load(x + j, mask=j < n, other=0.0)
    tl.store(out + j, tl.cumsum(v, 0), mask=j < n)


@triton.jit
def sort(x, out, n, B: tl.constexpr):
    j = tl.arange(0, B)
    v = tl.load(x + j, mask=j < n, other=float("inf"))
    tl.store(out + j, tl.sort(v), mask=j < n)


@triton.jit
def argmax(x, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, B)
    v = tl.load(x + row * stride + j, mask=j < n, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, 0))


@triton.jit
def gelu(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v * 0.5 * (1 + libdevice.erf(v * 0.70710678)),
             mask=i < n)


@triton.jit
def gather(table, index, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.load(index + row)
    j = tl.arange(0, B)
    v = tl.load(table + at * stride + j, mask=j < n)
    tl.store(out + row * n + j, v, mask=j < n)


@triton.jit
def histogram(x, out, n, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    h = tl.histogram(v, BINS, mask=i < n)
    tl.atomic_add(out + tl.arange(0, BINS), h)


@triton.jit
def split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, S: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(tl.program_id(2) * BK, K, BK * S):
        k = k0 + tl.arange(0, BK)
        va = tl.load(a + i[:, None] * K + k[None, :],
                     mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        vb = tl.load(b + k[:, None] * N + j[None, :],
                     mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        acc = tl.dot(va, vb, acc)
    tl.atomic_add(c + i[:, None] * N + j[None, :], acc,
                  mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def locked_sum(x, out, lock, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    p = out + tl.arange(0, B)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(p, tl.load(p) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def transpose(x, out, M, N, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + i[:, None] * N + j[None, :],
                mask=(i[:, None] < M) & (j[None, :] < N))
    tl.store(out + j[:, None] * M + i[None, :], v.T,
             mask=(j[:, None] < N) & (i[None, :] < M))


@triton.jit
def rms_norm(x, w, out, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, B)
    v = tl.load(x + row * stride + j, mask=j < n, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    g = tl.load(w + j, mask=j < n, other=0.0).to(tl.float32)
    tl.store(out + row * stride + j, (v * r * g).to(out.dtype.element_ty),
             mask=j < n)


@triton.jit
def matmul_any(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=c.dtype.element_ty)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        va = tl.load(a + i[:, None] * K + k[None, :],
                     mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        vb = tl.load(b + k[:, None] + j[None, :] * K,
                     mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        acc = tl.dot(va, vb, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc,
             mask=(i[:, None] < M) & (j[None, :] < N))


# A and B with scale factors, one for VECTOR numbers of a row. e2m1: a byte holds
# two numbers. With VECTOR = 16 the factors are e4m3, otherwise ue8m0.
@triton.jit
def matmul_scaled(a, b, factors_a, factors_b, c, M, N, K, TYPE: tl.constexpr,
                  VECTOR: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    EACH: tl.constexpr = 2 if TYPE == "e2m1" else 1
    i = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    j = (tl.program_id(1) * BN + tl.arange(0, BN))[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = (k0 // EACH + tl.arange(0, BK // EACH))[None, :]
        f = (k0 // VECTOR + tl.arange(0, BK // VECTOR))[None, :]
        n, m = K // EACH, K // VECTOR
        va = tl.load(a + i * n + k, mask=(i < M) & (k < n), other=0)
        vb = tl.load(b + j * n + k, mask=(j < N) & (k < n), other=0)
        fa = tl.load(factors_a + i * m + f, mask=(i < M) & (f < m), other=0)
        fb = tl.load(factors_b + j * m + f, mask=(j < N) & (f < m), other=0)
        if EACH == 1:
            va = va.to(tl.float8e4nv, bitcast=True)
            vb = vb.to(tl.float8e4nv, bitcast=True)
        if VECTOR == 16:
            fa = fa.to(tl.float8e4nv, bitcast=True)
            fb = fb.to(tl.float8e4nv, bitcast=True)
        acc = tl.dot_scaled(va, fa, TYPE, vb.T, fb, TYPE, acc)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(c + i * N + j[None, :], acc, mask=(i < M) & (j[None, :] < N))


@triton.jit
def attention_warps(q, k, v, out, scale, H, S, BM: tl.constexpr,
                    BN: tl.constexpr, D: tl.constexpr):
    dq = tl.make_tensor_descriptor(q, [H * S, D], [D, 1], [BM, D])
    dk = tl.make_tensor_descriptor(k, [H * S, D], [D, 1], [BN, D])
    dv = tl.make_tensor_descriptor(v, [H * S, D], [D, 1], [BN, D])
    do = tl.make_tensor_descriptor(out, [H * S, D], [D, 1], [BM, D])
    base = tl.program_id(1) * S
    i = base + tl.program_id(0) * BM
    vq = dq.load([i, 0])
    most = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for n in tl.range(0, S, BN, warp_specialize=True):
        vk = dk.load([base + n, 0])
        s = tl.dot(vq, vk.T) * (scale * 1.44269504)
        top = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        shrink = tl.exp2(most - top)
        total = total * shrink + tl.sum(p, 1)
        vv = dv.load([base + n, 0])
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(tl.float16), vv, acc)
        most = top
    do.store([i, 0], (acc / total[:, None]).to(tl.float16))
