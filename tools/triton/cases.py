"""Launches of the kernels in kernels.py, with the results that NumPy computes.

Each function of CASES returns, for one problem, the tensors by name, the
arguments in order, the grid, and the expected outputs in f64 by name.
"""
# SPDX-License-Identifier: MIT
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


def host_maps(rng, M, N, K):
    tensors, want = operands(rng, M, N, K)
    return (tensors, [{"map": "a"}, {"map": "b"}, {"map": "c"}, K],
            [cdiv(M, 64), cdiv(N, 64)], want)


def device_maps(rng, M, N, K):
    tensors, want = operands(rng, M, N, K, across=True)
    return tensors, ["a", "b", "c", M, N, K], [3], want


# Names of kernels: function of this file, sizes, largest relative error.
EVEN = [(100, 80, 112), (130, 144, 48), (64, 64, 16)]
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
}
