"""Launches of the kernels in kernels.py, with the results that NumPy computes.

Each function of CASES returns, for one problem, the tensors by name, the
arguments in order, the grid, and the expected outputs in f64 by name.
"""
# SPDX-License-Identifier: MIT
import math

import numpy as np


def cdiv(a, b):
    return -(-a // b)


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def add(rng, n):
    x, y = normal(rng, n), normal(rng, n)
    out = np.zeros(n, np.float32)
    return ({"x": x, "y": y, "out": out}, ["x", "y", "out", n],
            [cdiv(n, 256)], {"out": x.astype(float) + y})


def softmax(rng, rows, n):
    x = normal(rng, (rows, n))
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return ({"x": x, "out": np.zeros_like(x)}, ["x", "out", n, n], [rows],
            {"out": e / e.sum(1, keepdims=True)})


def layer_norm(rng, rows, n):
    x = normal(rng, (rows, n), np.float16)
    w, b = normal(rng, n), normal(rng, n)
    means, rstds = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    v = x.astype(float)
    mean = v.mean(1)
    rstd = 1 / np.sqrt(v.var(1) + 1e-5)
    want = (v - mean[:, None]) * rstd[:, None] * w + b
    return ({"x": x, "out": np.zeros_like(x), "w": w, "b": b, "means": means,
             "rstds": rstds},
            ["x", "out", "w", "b", "means", "rstds", n, n, 1e-5], [rows],
            {"out": want, "means": mean, "rstds": rstd})


def operands(rng, M, N, K, across=False):
    a = normal(rng, (M, K), np.float16)
    b = normal(rng, (N, K) if across else (K, N), np.float16)
    c = np.zeros((M, N), np.float16)
    return ({"a": a, "b": b, "c": c},
            {"c": a.astype(float) @ (b.T if across else b).astype(float)})


def matmul(rng, M, N, K):
    tensors, want = operands(rng, M, N, K)
    return (tensors, ["a", "b", "c", M, N, K, K, N, N],
            [cdiv(M, 64), cdiv(N, 64)], want)


def persistent(case):
    tensors, args, _, want = case
    return tensors, args, [3], want


def attention(rng, heads, S):
    q, k, v = (normal(rng, (heads, S, 64), np.float16) for _ in range(3))
    s = np.einsum("hid,hjd->hij", q.astype(float), k.astype(float)) / 8
    s = np.where(np.tril(np.ones((S, S), bool)), s, -np.inf)
    p = np.exp(s - s.max(2, keepdims=True))
    p /= p.sum(2, keepdims=True)
    return ({"q": q, "k": k, "v": v, "out": np.zeros_like(q)},
            ["q", "k", "v", "out", 0.125, S * 64, S], [cdiv(S, 64), heads],
            {"out": np.einsum("hij,hjd->hid", p, v.astype(float))})


def attention_warps(rng, heads, S):
    q, k, v = (normal(rng, (heads, S, 64), np.float16) for _ in range(3))
    s = np.einsum("hid,hjd->hij", q.astype(float), k.astype(float)) / 8
    p = np.exp(s - s.max(2, keepdims=True))
    p /= p.sum(2, keepdims=True)
    return ({"q": q, "k": k, "v": v, "out": np.zeros_like(q)},
            ["q", "k", "v", "out", 0.125, heads, S], [cdiv(S, 128), heads],
            {"out": np.einsum("hij,hjd->hid", p, v.astype(float))})


def host_maps(rng, M, N, K):
    tensors, want = operands(rng, M, N, K)
    return (tensors, [{"map": "a"}, {"map": "b"}, {"map": "c"}, K],
            [cdiv(M, 64), cdiv(N, 64)], want)


def device_maps(rng, M, N, K):
    tensors, want = operands(rng, M, N, K, across=True)
    return tensors, ["a", "b", "c", M, N, K], [3], want


def scan(rng, n):
    x = normal(rng, n)
    return ({"x": x, "out": np.zeros_like(x)}, ["x", "out", n], [1],
            {"out": np.cumsum(x.astype(float))})


def sort(rng, n):
    x = normal(rng, n)
    return ({"x": x, "out": np.zeros_like(x)}, ["x", "out", n], [1],
            {"out": np.sort(x)})


def argmax(rng, rows, n):
    x = normal(rng, (rows, n))
    return ({"x": x, "out": np.zeros(rows, np.int32)}, ["x", "out", n, n],
            [rows], {"out": x.argmax(1)})


def gelu(rng, n):
    x = normal(rng, n)
    erf = np.vectorize(math.erf)
    return ({"x": x, "out": np.zeros_like(x)}, ["x", "out", n],
            [cdiv(n, 256)],
            {"out": x / 2.0 * (1 + erf(x.astype(float) / math.sqrt(2)))})


def gather(rng, rows, n):
    table = normal(rng, (50, n))
    index = rng.integers(0, 50, rows)
    return ({"table": table, "index": index,
             "out": np.zeros((rows, n), np.float32)},
            ["table", "index", "out", n, n], [rows], {"out": table[index]})


def histogram(rng, n):
    x = rng.integers(0, 32, n).astype(np.int32)
    return ({"x": x, "out": np.zeros(32, np.int32)}, ["x", "out", n],
            [cdiv(n, 256)], {"out": np.bincount(x, minlength=32)})


def split_k(rng, M, N, K):
    tensors, want = operands(rng, M, N, K)
    tensors["c"] = np.zeros((M, N), np.float32)
    return (tensors, ["a", "b", "c", M, N, K], [cdiv(M, 32), cdiv(N, 32), 2],
            want)


def locked_sum(rng, n):
    x = normal(rng, n)
    rows = np.zeros(cdiv(n, 128) * 128)
    rows[:n] = x
    return ({"x": x, "out": np.zeros(128, np.float32),
             "lock": np.zeros(1, np.int32)}, ["x", "out", "lock", n],
            [cdiv(n, 128)], {"out": rows.reshape(-1, 128).sum(0)})


def transpose(rng, M, N):
    x = normal(rng, (M, N))
    return ({"x": x, "out": np.zeros((N, M), np.float32)},
            ["x", "out", M, N], [cdiv(M, 32), cdiv(N, 32)], {"out": x.T})


def bf16(x):
    """Returns the bf16 of floats, rounded to zero: as bits, and as f64."""
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(float)


def rms_norm(rng, rows, n):
    (x, v), (w, g) = bf16(normal(rng, (rows, n))), bf16(normal(rng, n))
    r = 1 / np.sqrt((v * v).mean(1, keepdims=True) + 1e-5)
    return ({"x:bf16": x, "w:bf16": w, "out:bf16": np.zeros_like(x)},
            ["x", "w", "out", n, n, 1e-5], [rows], {"out": v * r * g})


def matmul_f32(rng, M, N, K):
    a, b = normal(rng, (M, K)), normal(rng, (N, K))
    return ({"a": a, "b": b, "c": np.zeros((M, N), np.float32)},
            ["a", "b", "c", M, N, K], [cdiv(M, 64), cdiv(N, 64)],
            {"c": a.astype(float) @ b.T.astype(float)})


def matmul_i8(rng, M, N, K):
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((M, K), (N, K)))
    return ({"a": a, "b": b, "c": np.zeros((M, N), np.int32)},
            ["a", "b", "c", M, N, K], [cdiv(M, 64), cdiv(N, 64)],
            {"c": a.astype(int) @ b.T.astype(int)})


def matmul_e4m3(rng, M, N, K):
    # The bytes of 1, 1.125, 1.25 ... 1.875, and of their negatives
    bits = [rng.integers(0, 8, s) for s in ((M, K), (N, K))]
    signs = [rng.integers(0, 2, s) for s in ((M, K), (N, K))]
    a, b = ((0x38 + x + 128 * s).astype(np.uint8) for x, s in zip(bits, signs))
    va, vb = ((1 + x / 8) * (1 - 2 * s) for x, s in zip(bits, signs))
    return ({"a:e4m3": a, "b:e4m3": b, "c": np.zeros((M, N), np.float32)},
            ["a", "b", "c", M, N, K], [cdiv(M, 64), cdiv(N, 64)],
            {"c": va @ vb.T})


# The values of e2m1 by their bits.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def scaled(rng, rows, K, packed, vector):
    """Returns a matrix and its scale factors as bytes, and their product."""
    codes = rng.integers(0, 16, (rows, K), np.uint8)
    bits, v = codes[:, 0::2] | codes[:, 1::2] << 4, E2M1[codes]
    if not packed:  # 1, 1.125 ... 1.875 in e4m3, and their negatives
        bits = (0x38 + codes % 8 + codes // 8 * 128).astype(np.uint8)
        v = (1 + codes % 8 / 8) * (1 - 2.0 * (codes // 8))
    factors = rng.integers(0, 4, (rows, K // vector), np.uint8)
    small = 2.0 ** factors  # the bytes of 1, 2, 4, 8 in ue8m0 and e4m3
    stored = (0x38 + 8 * factors if vector == 16 else 127 + factors)
    return bits, stored.astype(np.uint8), v * np.repeat(small, vector, 1)


def matmul_scaled(packed, vector):
    def problem(rng, M, N, K):
        a, fa, x = scaled(rng, M, K, packed, vector)
        b, fb, y = scaled(rng, N, K, packed, vector)
        return ({"a": a, "b": b, "fa": fa, "fb": fb,
                 "c": np.zeros((M, N), np.float32)},
                ["a", "b", "fa", "fb", "c", M, N, K],
                [cdiv(M, 128), cdiv(N, 128)], {"c": x @ y.T})
    return problem


def wide(rng, M, N, K):
    tensors, args, _, want = matmul(rng, M, N, K)
    return tensors, args, [cdiv(M, 128), cdiv(N, 64)], want


def wide_add(rng, n):
    tensors, args, _, want = add(rng, n)
    return tensors, args, [cdiv(n, 512)], want


# Names of kernels: function of this file, sizes, largest relative error.
EVEN = [(100, 80, 112), (130, 144, 48), (64, 64, 16)]
SCALED = [(100, 80, 128), (130, 144, 320), (1, 16, 64)]
CASES = {
    "add": (add, [(1,), (1001,), (777,)], 0),
    "softmax": (softmax, [(3, 1000), (2, 7), (2, 1024)], 1e-6),
    "layer_norm": (layer_norm, [(3, 1000), (2, 257), (2, 33)], 1e-3),
    "matmul": (matmul, EVEN, 1e-3),
    "matmul_ragged": (matmul, [(67, 71, 45), (33, 130, 7)], 1e-3),
    "matmul_persistent": (lambda *a: persistent(matmul(*a)), EVEN, 1e-3),
    "attention": (attention, [(1, 65), (2, 100), (1, 33)], 2e-3),
    "matmul_host_maps": (host_maps, EVEN, 1e-3),
    "matmul_device_maps": (device_maps, EVEN, 1e-3),
    "matmul_warps": (device_maps, EVEN, 1e-3),
    "scan": (scan, [(1000,), (1,), (257,)], 1e-5),
    "sort": (sort, [(200,), (1,), (256,)], 0),
    "argmax": (argmax, [(3, 1000), (2, 5)], 0),
    "gelu": (gelu, [(1001,), (3,)], 1e-6),
    "gather": (gather, [(5, 100), (1, 7)], 0),
    "histogram": (histogram, [(1000,), (3,)], 0),
    "split_k": (split_k, [(33, 48, 80), (65, 16, 16)], 1e-3),
    "locked_sum": (locked_sum, [(1000,), (130,)], 1e-5),
    "transpose": (transpose, [(33, 65), (5, 7)], 0),
    "rms_norm": (rms_norm, [(3, 500), (2, 9)], 8e-3),
    "matmul_tf32": (matmul_f32, EVEN, 1e-2),
    "matmul_i8": (matmul_i8, EVEN, 0),
    "matmul_e4m3": (matmul_e4m3, EVEN, 1e-3),
    "matmul_mxfp8": (matmul_scaled(False, 32), SCALED, 1e-6),
    "matmul_mxfp4": (matmul_scaled(True, 32), SCALED, 1e-6),
    "matmul_nvfp4": (matmul_scaled(True, 16), SCALED, 1e-6),
    "attention_warps": (attention_warps, [(2, 128), (1, 256)], 2e-3),
    "add_clusters": (wide_add, [(1001,), (1,)], 0),
    "softmax_clusters": (softmax, [(3, 1000), (2, 7)], 1e-6),
    "matmul_clusters": (wide, EVEN, 1e-3),
}
