#!/usr/bin/env python3
"""Measures cute.ops beside PyTorch on the shapes of TileOPs' manifests.

    pip download --no-deps tileops==0.1.0 && unzip tileops-*.whl -d tileops
    python3 spec/bench/tileops.py tileops/tileops/manifest/spec --out rows.tsv
        [--only NAME,...] [--part I/N] [--check] [--seconds S]
    python3 spec/bench/tileops.py --summary rows.tsv

A row is a workload of a manifest with an element type. The rivals are
PyTorch's own call and, for operators that torch.compile generates code for,
its compiled version. Results are compared with PyTorch's before a row is
measured. Each contestant is captured in a CUDA graph of several calls, so that
the figures are times of the GPU. The graphs run in turn, round by round.

--out is a table that an interrupted run continues. A row that fails is listed
without times; the script then starts itself again, because a failed capture
spoils the process. --part I/N compiles the
kernels of each Nth row and measures nothing, so that several processes can
compile at once. --check only compares results, on the CPU with short modes if
there is no GPU. Rows whose operator cute.ops or PyTorch lacks are not listed.
"""
import argparse
import math
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import cutelua

ops = cutelua.ops
ENTRIES = {}  # an operator's name: function(workload, Data) -> Row
TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16,
         "float32": torch.float32, "bool": torch.bool, "int32": torch.int32,
         "int64": torch.int64,
         "float8_e4m3fn": getattr(torch, "float8_e4m3fn", None)}
LUA_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16",
             torch.float32: "f32", torch.bool: "bool"}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 2e-5}


class Uncovered(Exception):
    """cute.ops or PyTorch has no call for a workload."""


def entry(*names):
    def add(f):
        for name in names:
            ENTRIES[name] = f
        return f
    return add


class Data:
    """Makes a row's tensors. `most` limits each mode (with --check)."""

    def __init__(self, type, device, most):
        self.type, self.device, self.most = type, device, most

    def shape(self, shape):
        return [min(n, self.most) for n in shape]

    def randn(self, *shape, type=None):
        x = torch.randn(self.shape(shape), device=self.device)
        return x.to(type or self.type)

    def any(self, *shape):
        """Numbers, or booleans, of the row's type."""
        shape = self.shape(shape)
        if self.type == torch.bool:
            return torch.rand(shape, device=self.device) < 0.5
        if not self.type.is_floating_point:
            return torch.randint(-1000, 1000, shape, device=self.device,
                                 dtype=self.type)
        return torch.randn(shape, device=self.device).to(self.type)

    def empty(self, *shape, type=None):
        return torch.empty(shape, device=self.device, dtype=type or self.type)


class Row:
    """ours: a function that writes its results; got: these results; rival:
    PyTorch's function, or a table of functions; compiled: whether
    torch.compile is a rival, too; graph: whether calls can be captured."""

    def __init__(self, ours, got, rival, compiled=True, graph=True):
        self.ours, self.rival, self.compiled = ours, rival, compiled
        self.got = got if isinstance(got, tuple) else (got,)
        self.graph = graph


# ---------------------------------------------------------------------------
# Elements
# ---------------------------------------------------------------------------

E = "cute.exp(cute.min(x, 20))"
MISH = f"x * ({E} * ({E} + 2)) * cute.rcp({E} * ({E} + 2) + 2)"

UNARY = {
    "Exp": ("cute.exp(x)", torch.exp), "Log": ("cute.ops.log(x)", torch.log),
    "Sqrt": ("cute.sqrt(x)", torch.sqrt),
    "Rsqrt": ("cute.rsqrt(x)", torch.rsqrt), "Abs": ("cute.abs(x)", torch.abs),
    "Neg": ("-x", torch.neg), "Reciprocal": ("1 / x", torch.reciprocal),
    "Sign": ("cute.where(x:gt(0), 1.0, cute.where(x:lt(0), -1.0, 0.0))",
             torch.sign),
    "Sin": ("cute.sin(x)", torch.sin), "Cos": ("cute.cos(x)", torch.cos),
    "Floor": ("cute.floor(x)", torch.floor),
    "Ceil": ("cute.ceil(x)", torch.ceil),
    "Round": ("cute.roundeven(x)", torch.round),
    "Trunc": ("cute.trunc(x)", torch.trunc),
    "Erf": ("cute.erf(x)", torch.erf),
    "Log1p": ("cute.ops.log1p(x)", torch.log1p),
    "Expm1": ("cute.ops.expm1(x)", torch.expm1),
    "Sigmoid": ("cute.ops.sigmoid(x)", torch.sigmoid),
    "Tanh": ("cute.tanh(x)", torch.tanh),
    "Isnan": ("x:ne(x)", torch.isnan),
    "Isinf": ("cute.abs(x):eq(math.huge)", torch.isinf),
    "Isfinite": ("cute.abs(x):lt(math.huge)", torch.isfinite),
    "BitwiseNot": ("~x", torch.bitwise_not),
    "LogicalNot": ("x:eq(0)", torch.logical_not),
    "ReLU": ("cute.max(x, 0)", F.relu), "SiLU": ("cute.ops.silu(x)", F.silu),
    "Hardswish": ("x * (cute.min(cute.max(x + 3, 0), 6) * (1 / 6))",
                  F.hardswish),
    "Hardsigmoid": ("cute.min(cute.max(x + 3, 0), 6) * (1 / 6)", F.hardsigmoid),
    # tanh(log(1 + e^x)) = p / (p + 2) with p = e^x (e^x + 2)
    "Mish": (MISH, F.mish),
    "SELU": ("cute.ops.selu(x)", F.selu),
    "LeakyReLU": ("cute.where(x:gt(0), x, x * 0.01)", F.leaky_relu),
    "ELU": ("cute.ops.elu(x)", F.elu),
    "Hardtanh": ("cute.min(cute.max(x, -1), 1)", F.hardtanh),
    "Softplus": ("cute.ops.softplus(x)", F.softplus),
}
POSITIVE = ("Log", "Sqrt", "Rsqrt", "Log1p")
BINARY = {
    "Add": ("x + y", torch.add), "Sub": ("x - y", torch.sub),
    "Mul": ("x * y", torch.mul), "Div": ("x / y", torch.div),
    "Maximum": ("cute.max(x, y)", torch.maximum),
    "Minimum": ("cute.min(x, y)", torch.minimum),
    "LerpScalar": ("x + 0.5 * (y - x)", lambda x, y: torch.lerp(x, y, 0.5)),
    "Eq": ("x:eq(y)", torch.eq), "Ne": ("x:ne(y)", torch.ne),
    "Gt": ("x:gt(y)", torch.gt), "Lt": ("x:lt(y)", torch.lt),
    "Ge": ("x:ge(y)", torch.ge), "Le": ("x:le(y)", torch.le),
    "LogicalAnd": ("x:ne(0) & y:ne(0)", torch.logical_and),
    "LogicalOr": ("x:ne(0) | y:ne(0)", torch.logical_or),
    "BitwiseAnd": ("x & y", torch.bitwise_and),
    "BitwiseOr": ("x | y", torch.bitwise_or),
    "BitwiseXor": ("x ~ y", torch.bitwise_xor),
}


def elements(body, rival, *operands):
    """A row of ops.elementwise: `body` is an expression of x, y and z."""
    names = "xyz"[:len(operands)]
    text = f"function({', '.join(names)}) return {body} end"
    like = rival(*operands)
    out = torch.empty_like(like)
    return Row(lambda: ops.elementwise(text, *operands, out=out), out,
               lambda: rival(*operands))


@entry(*(name + "FwdOp" for name in UNARY))
def unary(w, t):
    body, rival = UNARY[w["op"][:-5]]
    if t.type == torch.bool:
        body = body.replace("x:eq(0)", "x:eq(false)")
    if t.type == torch.float32:  # ops.log has a relative error of 2^-19
        body = body.replace("cute.ops.log", "cute.log")
    x = t.any(*w["S"])
    if w["op"][:-5] in POSITIVE:
        x = x.abs() + 0.01
    return elements(body, rival, x)


@entry("GELUFwdOp")
def gelu(w, t):
    how = w.get("approximate", "none")
    name = "gelu" if how == "none" else "gelu_tanh"
    x = t.randn(*w["S"])
    return elements(f"cute.ops.{name}(x)",
                    lambda x: F.gelu(x, approximate=how), x)


@entry(*(name + "FwdOp" for name in BINARY))
def binary(w, t):
    body, rival = BINARY[w["op"][:-5]]
    if t.type == torch.bool:
        body = body.replace("x:ne(0)", "x").replace("y:ne(0)", "y")
    if w["op"] == "AddFwdOp" and w.get("alpha", 1) != 1:
        body = f"x + {w['alpha']} * y"
        return elements(body, lambda x, y: torch.add(x, y, alpha=w["alpha"]),
                        t.any(*w["A"]), t.any(*w["B"]))
    if w.get("alpha", 1) != 1 or w.get("rounding_mode"):
        raise Uncovered
    return elements(body, rival, t.any(*w["A"]), t.any(*(w.get("B") or w["E"])))


@entry("WhereFwdOp")
def where(w, t):
    c = torch.rand(t.shape(w["C"]), device=t.device) < 0.5
    return elements("cute.where(x, y, z)", torch.where, c, t.randn(*w["A"]),
                    t.randn(*w["B"]))


@entry("LerpTensorFwdOp")
def lerp(w, t):
    return elements("x + z * (y - x)", torch.lerp, t.randn(*w["A"]),
                    t.randn(*w["E"]), t.randn(*w["W"]))


@entry("MaskedFillScalarFwdOp")
def masked_fill(w, t):
    value = w.get("value", 0.0)
    mask = torch.rand(t.shape(w["M"]), device=t.device) < 0.5
    return elements(f"cute.where(y, {float(value)}, x)",
                    lambda x, m: x.masked_fill(m, value), t.randn(*w["A"]),
                    mask)


@entry("ClampScalarFwdOp")
def clamp(w, t):
    low, high = w.get("min"), w.get("max")
    body = "x"
    if low is not None:
        body = f"cute.max({body}, {low})"
    if high is not None:
        body = f"cute.min({body}, {high})"
    return elements(body, lambda x: torch.clamp(x, low, high), t.randn(*w["S"]))


@entry("ClampTensorFwdOp")
def clamp_tensor(w, t):
    if "L" not in w or "U" not in w:
        raise Uncovered
    low = t.randn(*w["L"])
    high = low + t.randn(*w["U"]).abs()
    return elements("cute.min(cute.max(x, y), z)", torch.clamp,
                    t.randn(*w["A"]), low, high)


@entry("PReLUFwdOp")
def prelu(w, t):
    x, weight = t.randn(*w["S"]), t.randn(*w["W"])
    y = weight.view(-1, *[1] * (len(w["S"]) - 2))
    row = elements("cute.where(x:gt(0), x, x * y)",
                   lambda x, y: torch.where(x > 0, x, x * y), x, y)
    row.rival = lambda: F.prelu(x, weight)
    return row


@entry("SiLUAndMulFwdOp", "GELUAndMulFwdOp")
def gated(w, t):
    x = t.randn(w["M"], 2 * w["N"])
    x, y = x.chunk(2, 1)
    if w["op"] == "SiLUAndMulFwdOp":
        return elements("cute.ops.silu(x) * y",
                        lambda x, y: F.silu(x) * y, x, y)
    how = w.get("approximate", "none")
    name = "gelu" if how == "none" else "gelu_tanh"
    return elements(f"cute.ops.{name}(x) * y",
                    lambda x, y: F.gelu(x, approximate=how) * y, x, y)


# ---------------------------------------------------------------------------
# Rows and reductions
# ---------------------------------------------------------------------------

REDUCTIONS = {
    "Sum": ("sum", torch.sum), "Mean": ("mean", torch.mean),
    "Amax": ("max", torch.amax), "Amin": ("min", torch.amin),
    "Prod": ("prod", torch.prod), "Argmax": ("argmax", torch.argmax),
    "Argmin": ("argmin", torch.argmin),
    "VectorNorm": ("norm", lambda x, d, **o: torch.linalg.vector_norm(
        x, 2, d, **o)),
}


@entry(*(name + "FwdOp" for name in REDUCTIONS))
def reduction(w, t):
    op, f = REDUCTIONS[w["op"][:-5]]
    if w.get("ord", 2) != 2 and w["ord"] != math.inf:
        raise Uncovered
    if w.get("ord") == math.inf:
        op, f = "amax", lambda x, d, **o: torch.linalg.vector_norm(
            x, math.inf, d, **o)
    x, dim = t.randn(*w["S"]), w.get("dim")
    if op == "prod":
        x = 1 + x / 1000
    modes = list(range(x.dim())) if dim is None else \
        [d % x.dim() for d in (dim if isinstance(dim, list) else [dim])]
    more = {"dtype": TYPES[w["dtype"]]} if w.get("dtype") else {}
    torch_dim = modes if len(modes) > 1 else modes[0]

    def rival():
        return f(x, torch_dim, **more)
    like = rival()
    out = torch.empty_like(like).view(like.shape or (1,))
    return Row(lambda: ops.reduce(x, op, by=modes, out=out), out, rival)


@entry("SoftmaxFwdOp")
def softmax(w, t):
    if w["dim"] not in (-1, len(w["S"]) - 1):
        raise Uncovered
    x = t.randn(*w["S"])
    type = TYPES[w["dtype"]] if w.get("dtype") else t.type
    out = t.empty(*x.shape, type=type)
    return Row(lambda: ops.softmax(x, out=out), out,
               lambda: torch.softmax(x, -1, dtype=type))


def rms_norm(x, weight, eps):
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, x.shape[-1:], weight, eps)
    y = x.float()
    y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + eps)
    return (y if weight is None else y * weight.float()).to(x.dtype)


@entry("RMSNormFwdOp", "LayerNormFwdOp")
def norm(w, t):
    if len(w["normalized_shape"]) > 1:
        raise Uncovered
    n, some = w["normalized_shape"][0], w.get("some", [])
    x = t.randn(*w["B"], n)
    weights = [t.randn(n) for name in ("weight", "bias") if name in some]
    out = torch.empty_like(x)
    if w["op"] == "RMSNormFwdOp":
        eps = w.get("eps") or torch.finfo(t.type).eps
        return Row(lambda: ops.rmsnorm(x, *weights, eps=eps, out=out), out,
                   lambda: rms_norm(x, weights[0] if weights else None, eps))
    eps = w.get("eps", 1e-5)
    return Row(lambda: ops.layernorm(x, *weights, eps=eps, out=out), out,
               lambda: F.layer_norm(x, x.shape[-1:], *weights, eps=eps))


@entry("FusedAddRMSNormFwdOp", "FusedAddLayerNormFwdOp")
def added_norm(w, t):
    x, r = t.randn(*w["B"], w["N"]), t.randn(*w["B"], w["N"])
    weight, bias = t.randn(w["N"]), t.randn(w["N"])
    got, eps = (torch.empty_like(x), torch.empty_like(x)), w.get("eps", 1e-6)
    if w["op"] == "FusedAddRMSNormFwdOp":
        def rival():
            h = x + r
            return rms_norm(h, weight, eps), h
        return Row(lambda: ops.rmsnorm(x, weight, residual=r, eps=eps,
                                       out=list(got)), got, rival)

    def rival():
        h = x + r
        return F.layer_norm(h, h.shape[-1:], weight, bias, eps), h
    return Row(lambda: ops.layernorm(x, weight, bias, residual=r, eps=eps,
                                     out=list(got)), got, rival)


@entry("RoPEFwdOp", "RoPELlama31FwdOp", "YaRNFwdOp", "LongRoPEFwdOp")
def rope(w, t):
    """The frequencies differ, but not the work that they take."""
    b, s, h, d = w.get("B", 1), w["S"], w.get("H", 1), w["D"]
    x = t.randn(b, s, h, d)
    b, s, h, d = x.shape
    angle = torch.arange(s, device=t.device)[:, None] * 10000.0 ** (
        -torch.arange(0, d, 2, device=t.device) / d)
    cos, sin = angle.cos(), angle.sin()
    out, inter = torch.empty_like(x), w.get("rope_layout") == "interleaved"

    def rival():
        c, n = cos[None, :, None], sin[None, :, None]
        y = x.float()
        p, q = (y[..., 0::2], y[..., 1::2]) if inter else y.chunk(2, -1)
        both = (p * c - q * n, q * c + p * n)
        return (torch.stack(both, -1).flatten(-2) if inter
                else torch.cat(both, -1)).to(x.dtype)
    return Row(lambda: ops.rope(x, cos, sin, interleaved=inter, out=out), out,
               rival)


# ---------------------------------------------------------------------------
# Products
# ---------------------------------------------------------------------------

@entry("GEMMFwdOp")
def gemm(w, t):
    a = t.randn(w["K"], w["M"]).t() if w["trans_a"] else t.randn(w["M"], w["K"])
    b = t.randn(w["N"], w["K"]) if w["trans_b"] else t.randn(w["K"], w["N"]).t()
    out = t.empty(a.shape[0], b.shape[0])
    return Row(lambda: ops.gemm(a, b, out=out), out,
               lambda: torch.mm(a, b.t()), compiled=False)


@entry("BMMFwdOp")
def bmm(w, t):
    a, b = t.randn(w["B"], w["M"], w["K"]), t.randn(w["B"], w["K"], w["N"])
    out = t.empty(a.shape[0], a.shape[1], b.shape[2])
    return Row(lambda: ops.gemm(a, b.transpose(1, 2), out=out), out,
               lambda: torch.bmm(a, b), compiled=False)


@entry("GEMMFP8FwdOp")
def gemm_fp8(w, t):
    if "bias" in w.get("some", []):
        raise Uncovered
    m, n, k = (min(w[x], t.most) for x in "MNK")
    a, b = t.randn(m, k), t.randn(n, k)
    type = TYPES[w.get("out_dtype", "bfloat16")]
    out = t.empty(m, n, type=type)

    def scale(*shape):
        return torch.rand(shape, device=t.device) + 0.5
    if w["SA"] == [1, 1]:
        sa, sb = scale(1), scale(1)
        ours, theirs = (sa, sb), (sa.view(1, 1), sb.view(1, 1))
    else:
        parts = -(-k // 128)
        rows = w["SB"][0] == w["N"]
        # _scaled_mm requires contiguous M in sa, and contiguous N if `rows`
        sa = scale(parts, m).t()
        sb = scale(parts, n).t() if rows else scale(-(-n // 128), parts)
        ours, theirs = (sa, sb), (sa, sb.t())
    return Row(lambda: ops.gemm(a, b, scale_a=ours[0], scale_b=ours[1],
                                out=out), out,
               lambda: torch._scaled_mm(a, b.t(), theirs[0], theirs[1],
                                        out_dtype=type),
               compiled=False)


# ---------------------------------------------------------------------------
# Attention
# ---------------------------------------------------------------------------

def backends():
    from torch.nn.attention import SDPBackend
    return {"flash": SDPBackend.FLASH_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}


def scaled_dot_product(q, k, v, causal, backend):
    """q, k and v: (B,S,H,D)."""
    from torch.nn.attention import bias, sdpa_kernel
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    options, s, t = {}, q.shape[2], k.shape[2]
    if causal and s == t:
        options["is_causal"] = True
    elif causal and s > 1:
        options["attn_mask"] = bias.causal_lower_right(s, t)
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(
            q, k, v, enable_gqa=q.shape[1] != k.shape[1],
            **options).transpose(1, 2)


@entry("GQADenseFwdOp", "GQADenseWithLSEFwdOp")
def attention(w, t):
    known = {"op", "B", "S_q", "S_kv", "H", "H_kv", "D", "is_causal"}
    if set(w) - known or t.type not in (torch.float16, torch.bfloat16):
        raise Uncovered  # PyTorch has no such call
    b, s, n = (min(w[x], t.most) for x in ("B", "S_q", "S_kv"))
    causal = w.get("is_causal", False)
    q = t.randn(b, s, w["H"], w["D"])
    k, v = (t.randn(b, n, w["H_kv"], w["D"]) for _ in "kv")
    out = torch.empty_like(q)
    if s == 1:
        def ours():
            return ops.attention_decode(q, k, v, out=out)
    else:
        lse = t.empty(b, w["H"], s, type=torch.float32)

        def ours():
            return ops.attention(q, k, v, causal=causal, out=[out, lse])
    return Row(ours, out, {
        name: lambda backend=backend: scaled_dot_product(q, k, v, causal,
                                                         backend)
        for name, backend in backends().items()}, compiled=False)


@entry("GQADenseBwdOp")
def attention_backward(w, t):
    b, s = min(w["B"], t.most), min(w["S"], t.most)
    q, g = (t.randn(b, s, w["H"], w["D"]) for _ in "qg")
    k, v = (t.randn(b, s, w["H_kv"], w["D"]) for _ in "kv")
    o, lse = ops.attention(q, k, v, causal=True)
    got = tuple(torch.empty_like(x) for x in (q, k, v))
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]

    def by(backend):
        y = scaled_dot_product(*inputs, True, backend)
        return lambda: torch.autograd.grad(y, inputs, g, retain_graph=True)
    return Row(lambda: ops.attention_backward(g, q, k, v, o, lse, causal=True,
                                              out=list(got)), got,
               {name: (lambda backend=backend: by(backend))
                for name, backend in backends().items() if name != "efficient"},
               compiled=False, graph=False)


# ---------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------

def workloads(folder, only):
    """Returns (operator, workload, element type, the row's name) in order."""
    import yaml
    rows = []
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".yaml"):
            continue
        with open(os.path.join(folder, file)) as f:
            manifest = yaml.safe_load(f)
        for op, x in manifest.items():
            if op not in ENTRIES or (only and op not in only):
                continue
            for w in x.get("workloads", []):
                w = {**w, "op": op}
                label, cases = w.pop("label", ""), w.pop("dtype_cases", [{}])
                for case in cases:
                    if "T" in case and case["T"] in TYPES:
                        of_op = sum(row[0]["op"] == op for row in rows)
                    rows.append((w, case["T"],
                                 f"{op} {label} {case['T']} {of_op}"))
    return rows


def rivals_of(row, compile):
    """Returns PyTorch's functions by name; drops those that raise."""
    if isinstance(row.rival, dict):
        found = {}
        for name, f in row.rival.items():
            try:
                f = f() if not torch.is_tensor(f()) else f
                f()
                found[name] = f
            except RuntimeError:
                pass
        if not found:
            raise Uncovered
        return found
    found = {"torch": row.rival}
    try:
        row.rival()
    except (RuntimeError, ValueError):
        raise Uncovered from None
    if compile and row.compiled:
        torch._dynamo.reset()
        found["compile"] = torch.compile(row.rival, dynamic=False)
        found["compile"]()
    return found


def error_of(row, rival, type):
    """Returns the largest relative error, and whether it is small enough."""
    want = rival()
    want = want if isinstance(want, (tuple, list)) else (want,)
    worst, good = 0.0, True
    for x, y in zip(row.got, want):
        y = y.reshape(x.shape)
        if not x.is_floating_point():
            wrong = (x != y).sum().item() / max(x.numel(), 1)
            worst, good = max(worst, wrong), good and wrong < 1e-3
            continue
        limit = TOLERANCE[x.dtype]
        wide = torch.float64 if x.numel() < 1 << 28 else torch.float32
        x, y = x.to(wide), y.to(wide)
        same = (x == y) & x.isinf()  # quotients by 0
        x, y = x.masked_fill(same, 0), y.masked_fill(same, 0)
        e = ((x - y).norm() / y.norm().clamp(min=1e-30)).item()
        worst, good = max(worst, e), good and e <= limit
    return worst, good


def captured(f):
    """Captures calls of f, which take about 0.2 ms together. Returns the
    function that replays them, and their number."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            f()
        stream.synchronize()
        begin = time.perf_counter()
        f()
        stream.synchronize()
        calls = max(1, min(40, round(2e-4 / (time.perf_counter() - begin))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            f()
    return graph.replay, calls


def timed(run, ms):
    """Calls `run` for about `ms`; returns milliseconds for each call."""
    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    n, total = 1, 0.0
    while True:
        a.record()
        for _ in range(n):
            run()
        b.record()
        b.synchronize()
        total = a.elapsed_time(b)
        if total >= ms / 2 or n >= 1 << 12:
            return total / n
        n = max(n + 1, math.ceil(n * ms / max(total, 1e-3)))


def measure(row, rivals, o):
    runs = {name: captured(f) if row.graph else (f, 1)
            for name, f in {"ours": row.ours, **rivals}.items()}
    times = {name: [] for name in runs}
    for run, _ in runs.values():
        timed(run, o.warm)
    for r in range(o.rounds):
        for name in (list(runs) if r % 2 == 0 else reversed(list(runs))):
            run, calls = runs[name]
            times[name].append(1e3 * timed(run, o.hot) / calls)
    return {name: (statistics.median(x),
                   (max(x) - min(x)) / statistics.median(x))
            for name, x in times.items()}


def summary(path):
    families, below = {}, []
    with open(path) as f:
        for line in f:
            p = line.rstrip("\n").split("\t")
            if len(p) < 7 or p[0] == "row":
                continue
            ratio = float(p[4])
            if ratio > 0:
                families.setdefault(p[0].split()[0], []).append(ratio)
            if ratio < 1:  # 0 if a result was wrong
                below.append((ratio, p))
    every = [r for rows in families.values() for r in rows]
    print(f"{'operator':24} rows  at least 1  geomean  least")
    for name, rows in [*families.items(), ("all", every)]:
        mean = math.exp(statistics.fmean(map(math.log, rows)))
        print(f"{name:24} {len(rows):4} {sum(r >= 1 for r in rows):11} "
              f"{mean:8.3f} {min(rows):6.3f}")
    print(f"{len(below)} rows below 1 or wrong:")
    for ratio, p in sorted(below):
        print("  ", *p)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folder", nargs="?")
    p.add_argument("--out")
    p.add_argument("--only", default="")
    p.add_argument("--part", default="")
    p.add_argument("--check", action="store_true")
    p.add_argument("--seconds", type=float, default=math.inf)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--warm", type=float, default=5, help="ms")
    p.add_argument("--hot", type=float, default=10, help="ms")
    p.add_argument("--summary")
    o = p.parse_args()
    if o.summary:
        return summary(o.summary)
    gpu = torch.cuda.is_available()
    device, most = ("cuda", 1 << 62) if gpu else ("cpu", 24)
    index, parts = map(int, o.part.split("/")) if o.part else (1, 1)
    end = time.monotonic() + o.seconds
    known = set()
    if o.out and os.path.exists(o.out):
        with open(o.out) as f:
            known = {line.split("\t")[0] for line in f}
    out = open(o.out, "a") if o.out else None

    def say(*columns):
        line = "\t".join(map(str, columns))
        print(line, flush=True)
        if out:
            print(line, file=out, flush=True)
    if gpu and not known and not o.part:
        say(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
        say("row", "us", "best rival", "rival us", "ratio", "error", "")
    rows = workloads(o.folder, set(filter(None, o.only.split(","))))
    for i, (w, type, name) in enumerate(rows):
        if name in known or i % parts != index - 1:
            continue
        if time.monotonic() > end:
            print(f"{len(rows) - i} rows left", flush=True)
            break
        torch.manual_seed(20261130 + i)
        row = rivals = None
        try:
            row = ENTRIES[w["op"]](w, Data(TYPES[type], device, most))
            rivals = rivals_of(row, gpu and not o.check)
            row.ours()
            if o.part:
                continue
            error, good = error_of(row, next(iter(rivals.values())), type)
            if o.check or not good:
                say(name, "", "", "", "0", f"{error:.2g}",
                    "ok" if good else "WRONG")
                continue
            times = measure(row, rivals, o)
            best = min(rivals, key=lambda n: times[n][0])
            say(name, f"{times['ours'][0]:.3f}", best, f"{times[best][0]:.3f}",
                f"{times[best][0] / times['ours'][0]:.3f}", f"{error:.2g}",
                "ok", f"{max(s for _, s in times.values()):.3f}")
        except Uncovered:
            pass
        except Exception as why:  # the other rows are measured all the same
            text = f"{why.__class__.__name__} {str(why)[:200]}"
            if o.part or not out:
                print(f"# {name}: {text}", flush=True)
                continue
            say(name, " ".join(text.split()))
            os.execv(sys.executable, [sys.executable, *sys.argv,
                                      f"--seconds={end - time.monotonic()}"])
        finally:
            del row, rivals
            if gpu:
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: MIT
