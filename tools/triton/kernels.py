"""Kernels in Triton that compare.py compiles, and how each one is compiled.

compile_all() writes NAME.ptx and NAME.json for each row of ROWS, as Triton's
own cache does. No GPU is needed.
"""
# SPDX-License-Identifier: MIT
import json
import os
import shutil

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import more


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    b = tl.load(y + i, mask=inside)
    tl.store(out + i, a + b, mask=inside)


@triton.jit
def softmax(x, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, B)
    v = tl.load(x + row * stride + j, mask=j < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + j, e / tl.sum(e, axis=0), mask=j < n)


@triton.jit
def layer_norm(x, out, weight, bias, means, rstds, stride, n, eps,
               B: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    total = tl.zeros([B], dtype=tl.float32)
    for k in range(0, n, B):
        j = k + tl.arange(0, B)
        total += tl.load(x + j, mask=j < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([B], dtype=tl.float32)
    for k in range(0, n, B):
        j = k + tl.arange(0, B)
        v = tl.load(x + j, mask=j < n, other=0.0).to(tl.float32)
        d = tl.where(j < n, v - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    for k in range(0, n, B):
        j = k + tl.arange(0, B)
        v = tl.load(x + j, mask=j < n, other=0.0).to(tl.float32)
        w = tl.load(weight + j, mask=j < n)
        b = tl.load(bias + j, mask=j < n)
        tl.store(out + row * stride + j, (v - mean) * rstd * w + b, mask=j < n)


@triton.jit
def matmul(a, b, c, M, N, K, lda, ldb, ldc, BM: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + i[:, None] * lda + k[None, :]
    pb = b + k[:, None] * ldb + j[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        va = tl.load(pa, mask=(i[:, None] < M) & (k[None, :] < K - k0),
                     other=0.0)
        vb = tl.load(pb, mask=(k[:, None] < K - k0) & (j[None, :] < N),
                     other=0.0)
        acc = tl.dot(va, vb, acc)
        pa += BK
        pb += BK * ldb
    tl.store(c + i[:, None] * ldc + j[None, :], acc.to(c.dtype.element_ty),
             mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def matmul_persistent(a, b, c, M, N, K, lda, ldb, ldc, BM: tl.constexpr,
                      BN: tl.constexpr, BK: tl.constexpr,
                      PROGRAMS: tl.constexpr):
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    k = tl.arange(0, BK)
    for t in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        i = t // across * BM + tl.arange(0, BM)
        j = t % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k0 in range(0, K, BK):
            pa = a + i[:, None] * lda + (k0 + k)[None, :]
            pb = b + (k0 + k)[:, None] * ldb + j[None, :]
            va = tl.load(pa, mask=(i[:, None] < M) & (k[None, :] < K - k0),
                         other=0.0)
            vb = tl.load(pb, mask=(k[:, None] < K - k0) & (j[None, :] < N),
                         other=0.0)
            acc = tl.dot(va, vb, acc)
        tl.store(c + i[:, None] * ldc + j[None, :], acc.to(c.dtype.element_ty),
                 mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def attention(q, k, v, out, scale, stride, S, BM: tl.constexpr,
              BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    base = tl.program_id(1) * stride
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    vq = tl.load(q + base + i[:, None] * D + d[None, :], mask=i[:, None] < S,
                 other=0.0)
    most = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    end = tl.minimum(S, (tl.program_id(0) + 1) * BM) if CAUSAL else S
    for n in range(0, end, BN):
        j = n + tl.arange(0, BN)
        vk = tl.load(k + base + j[None, :] * D + d[:, None],
                     mask=j[None, :] < S, other=0.0)
        s = tl.dot(vq, vk) * (scale * 1.44269504)
        seen = j[None, :] < S
        if CAUSAL:
            seen = seen & (j[None, :] <= i[:, None])
        s = tl.where(seen, s, -float("inf"))
        top = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        shrink = tl.exp2(most - top)
        total = total * shrink + tl.sum(p, 1)
        vv = tl.load(v + base + j[:, None] * D + d[None, :],
                     mask=j[:, None] < S, other=0.0)
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(v.dtype.element_ty), vv, acc)
        most = top
    tl.store(out + base + i[:, None] * D + d[None, :],
             (acc / total[:, None]).to(out.dtype.element_ty),
             mask=i[:, None] < S)


@triton.jit
def matmul_host_maps(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr):
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)
    c.store([i, j], acc.to(tl.float16))


@triton.jit
def matmul_device_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                       BK: tl.constexpr, PROGRAMS: tl.constexpr,
                       SPECIAL: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    for t in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=not SPECIAL,
                      warp_specialize=SPECIAL):
        i = t // across * BM
        j = t % across * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(da.load([i, k]), db.load([j, k]).T, acc)
        dc.store([i, j], acc.to(tl.float16))


F16, F32, I32 = "*fp16", "*fp32", "i32"
BF16, INTS = "*bf16", "*i32"
SCALED = {"a": "*u8", "b": "*u8", "factors_a": "*u8", "factors_b": "*u8",
          "c": F32}
SHAPE = {"M": I32, "N": I32, "K": I32}
TILE = {"BM": 64, "BN": 64, "BK": 32}
MATMUL = dict({"a": F16, "b": F16, "c": F16}, **SHAPE, lda=I32, ldb=I32,
              ldc=I32)
EVEN = ("N", "K", "lda", "ldb", "ldc")
HALF = {"q": F16, "k": F16, "v": F16, "out": F16, "scale": "fp32",
        "stride": I32, "S": I32}

# Rows: name, function, types of parameters, constants, integers that are
# multiples of 16, options of the compiler, architectures.
ROWS = [
    ("add", add, {"x": F32, "y": F32, "out": F32, "n": I32}, {"B": 256}, (),
     {}, (80, 90)),
    ("softmax", softmax, {"x": F32, "out": F32, "stride": I32, "n": I32},
     {"B": 1024}, (), {}, (80, 90)),
    ("layer_norm", layer_norm,
     dict({"x": F16, "out": F16, "weight": F32, "bias": F32, "means": F32,
           "rstds": F32, "stride": I32, "n": I32, "eps": "fp32"}),
     {"B": 256}, (), {}, (80, 90)),
    ("matmul", matmul, MATMUL, TILE, EVEN, {"num_stages": 3}, (80, 90, 100)),
    ("matmul_ragged", matmul, MATMUL, TILE, (), {"num_stages": 3}, (80, 90, 100)),
    ("matmul_persistent", matmul_persistent, MATMUL,
     dict(TILE, PROGRAMS=3), EVEN, {"num_stages": 3}, (80, 90, 100)),
    ("attention", attention, HALF,
     {"BM": 64, "BN": 32, "D": 64, "CAUSAL": True}, ("stride",),
     {"num_stages": 3}, (80, 90, 100)),
    ("matmul_host_maps", matmul_host_maps,
     {"a": "tensordesc<fp16[64, 64]>", "b": "tensordesc<fp16[64, 64]>",
      "c": "tensordesc<fp16[64, 64]>", "K": I32},
     {"BM": 64, "BN": 64, "BK": 64}, (), {"num_stages": 3}, (90, 100)),
    ("matmul_device_maps", matmul_device_maps,
     dict({"a": F16, "b": F16, "c": F16}, **SHAPE),
     {"BM": 64, "BN": 64, "BK": 64, "PROGRAMS": 3, "SPECIAL": False},
     ("N", "K"), {"num_stages": 3}, (90, 100)),
    ("matmul_warps", matmul_device_maps,
     dict({"a": F16, "b": F16, "c": F16}, **SHAPE),
     {"BM": 128, "BN": 64, "BK": 64, "PROGRAMS": 3, "SPECIAL": True},
     ("N", "K"), {"num_stages": 3}, (90, 100)),
    ("scan", more.scan, {"x": F32, "out": F32, "n": I32}, {"B": 1024}, (), {},
     (80, 90)),
    ("sort", more.sort, {"x": F32, "out": F32, "n": I32}, {"B": 256}, (), {},
     (80, 90)),
    ("argmax", more.argmax, {"x": F32, "out": INTS, "stride": I32, "n": I32},
     {"B": 1024}, (), {}, (80, 90)),
    ("gelu", more.gelu, {"x": F32, "out": F32, "n": I32}, {"B": 256}, (), {},
     (80, 90)),
    ("gather", more.gather, {"table": F32, "index": "*i64", "out": F32,
                             "stride": I32, "n": I32}, {"B": 128}, (), {},
     (80, 90)),
    ("histogram", more.histogram, {"x": INTS, "out": INTS, "n": I32},
     {"B": 256, "BINS": 32}, (), {}, (80, 90)),
    ("split_k", more.split_k, dict({"a": F16, "b": F16, "c": F32}, **SHAPE),
     {"BM": 32, "BN": 32, "BK": 32, "S": 2}, ("N", "K"), {}, (80, 90, 100)),
    ("locked_sum", more.locked_sum, {"x": F32, "out": F32, "lock": INTS,
                                     "n": I32}, {"B": 128}, (), {}, (80, 90)),
    ("transpose", more.transpose, {"x": F32, "out": F32, "M": I32, "N": I32},
     {"B": 32}, (), {}, (80, 90)),
    ("rms_norm", more.rms_norm, {"x": BF16, "w": BF16, "out": BF16,
                                 "stride": I32, "n": I32, "eps": "fp32"},
     {"B": 512}, (), {}, (80, 90)),
    ("matmul_tf32", more.matmul_any, dict({"a": F32, "b": F32, "c": F32},
                                          **SHAPE),
     TILE, ("N", "K"), {}, (80, 90, 100)),
    ("matmul_i8", more.matmul_any, dict({"a": "*i8", "b": "*i8", "c": INTS},
                                        **SHAPE),
     {"BM": 64, "BN": 64, "BK": 64}, ("N", "K"), {"num_warps": 8}, (80, 90, 100)),
    ("matmul_e4m3", more.matmul_any, dict({"a": "*fp8e4nv", "b": "*fp8e4nv",
                                           "c": F32}, **SHAPE),
     {"BM": 64, "BN": 64, "BK": 64}, ("N", "K"), {}, (90, 100)),
    *((name, more.matmul_scaled, dict(SCALED, **SHAPE),
       {"TYPE": t, "VECTOR": v, "BM": 128, "BN": 128, "BK": 128}, ("N", "K"),
       {}, (100, 120)) for name, t, v in (("matmul_mxfp8", "e4m3", 32),
                                      ("matmul_mxfp4", "e2m1", 32),
                                      ("matmul_nvfp4", "e2m1", 16))),
    ("attention_warps", more.attention_warps,
     {"q": F16, "k": F16, "v": F16, "out": F16, "scale": "fp32", "H": I32,
      "S": I32}, {"BM": 128, "BN": 64, "D": 64}, ("S",), {"num_stages": 2},
     (90, 100)),
    ("add_clusters", add, {"x": F32, "y": F32, "out": F32, "n": I32},
     {"B": 512}, (), {"num_ctas": 2}, (90,)),
    ("softmax_clusters", softmax, {"x": F32, "out": F32, "stride": I32,
                                   "n": I32}, {"B": 1024}, (),
     {"num_ctas": 2}, (90,)),
    ("matmul_clusters", matmul, MATMUL, {"BM": 128, "BN": 64, "BK": 32}, EVEN,
     {"num_stages": 3, "num_ctas": 2}, (90, 100)),
]


def compile_row(row, arch, folder):
    """Compiles a row for an architecture; returns the metadata's path."""
    name, function, types, constants, even, options, _ = row
    signature = dict(types, **{c: "constexpr" for c in constants})
    attrs = {}
    for i, (p, t) in enumerate(signature.items()):
        if t.startswith("*") or p in even:
            attrs[(i,)] = [["tt.divisibility", 16]]
    src = ASTSource(function, signature, constants, attrs)
    made = triton.compile(src, target=GPUTarget("cuda", arch, 32),
                          options=dict(options))
    base = os.path.join(folder, f"{name}_sm{arch}")
    for kind in ("ptx", "json"):
        files = made.metadata_group
        path = next(p for n, p in files.items()
                    if n.endswith("." + kind) and not n.startswith("__grp"))
        shutil.copy(path, f"{base}.{kind}")
    return base + ".json"


def compile_all(folder, names=None):
    """Compiles all rows; returns {name_smARCH: path of the metadata}."""
    made = {}
    for row in ROWS:
        if names and row[0] not in names:
            continue
        for arch in row[6]:
            made[f"{row[0]}_sm{arch}"] = compile_row(row, arch, folder)
    return made


if __name__ == "__main__":
    import sys
    for key, path in compile_all(sys.argv[1], sys.argv[2:]).items():
        meta = json.load(open(path))
        print(key, meta["num_warps"], meta["shared"],
              meta["global_scratch_size"], meta["tensordesc_meta"])
