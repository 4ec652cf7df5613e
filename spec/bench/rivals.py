#!/usr/bin/env python3
"""Measures lessons against PyTorch, torch.compile and cuDNN, in one process.

    python3 spec/bench/rivals.py [--cutelua build/cutelua] [NAME...]
    python3 spec/bench/rivals.py --list
    python3 spec/bench/rivals.py --budget 10     # minutes for all of them

The kernels of a lesson (tools/launches.lua writes them) are launched through
the driver on PyTorch's stream, with PyTorch's tensors. Results are compared
first. Then the contestants warm up and are measured in turn, round by round. A
published ratio comes from one such run.

@entry adds a lesson below: a function of its operands, by name, that returns
its rivals by name. Each rival is a function without arguments that returns the
lesson's results in order (one, or a tuple; None for a result that it lacks).
The first rival is the oracle; under the name None it is not measured. An entry
may write to its operands, except the results, before it returns.
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
import types

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ENTRIES = []
FLUSH_BYTES = 256 << 20


def entry(script, sizes, dtypes=("bf16",), tolerance=None, copy=True,
          graph=False, beside=None, **options):
    """sizes: extents of the lesson; tolerance: of the relative error in the
    norm; graph: launches are replayed from CUDA graphs, for kernels that take
    less time than a launch from Python; beside: another lesson with the same
    operands, which is measured too; options: further ones of the lesson, the
    same for all sizes."""
    def add(f):
        ENTRIES.append(types.SimpleNamespace(
            name=f.__name__, script=script, sizes=sizes, dtypes=dtypes,
            tolerance=tolerance, copy=copy, graph=graph, beside=beside,
            options=options, rivals=f))
        return f
    return add


def compiled(f):
    """Returns torch.compile's version of f, compiled again for each problem."""
    torch._dynamo.reset()
    return torch.compile(f, dynamic=False)


# ---------------------------------------------------------------------------
# Entries
# ---------------------------------------------------------------------------

HEADS = [(1, 16384, 16384, 2048 // d, 2048 // d, d) for d in (64, 128, 256)]


def scaled_dot_product(t, causal=False):
    q, k, v = (x.transpose(1, 2) for x in (t.q, t.k, t.v))

    def by(backend):
        def f():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(
                    q, k, v, is_causal=causal,
                    enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)
        return f
    return {"FlashAttention 2": by(SDPBackend.FLASH_ATTENTION),
            "cuDNN": by(SDPBackend.CUDNN_ATTENTION)}


FORWARD = HEADS + [(4, 4096, 4096, 16, 16, 128)]

# One key head for each query head, then one for every eight query heads.
HOPPER = ([(4, 4096, 4096, 2048 // d, 2048 // d, d) for d in (64, 128, 256)]
          + HEADS
          + [(b, s, s, 2048 // d, 256 // d, d) for d in (64, 128, 256)
             for b, s in ((16, 1024), (1, 32768))])


@entry("scripts/attention.lua", FORWARD)
def attention(t):
    return scaled_dot_product(t)


@entry("scripts/attention_hopper.lua", HOPPER, beside="scripts/attention.lua")
def attention_hopper(t):
    return scaled_dot_product(t)


@entry("scripts/attention_hopper.lua", HOPPER, beside="scripts/attention.lua",
       causal="true")
def attention_causal(t):
    return scaled_dot_product(t, causal=True)


def gradients(t, causal=False):
    q, k, v, o, dout = (x.transpose(1, 2) for x in (t.q, t.k, t.v, t.o, t.dout))
    group = q.shape[1] // k.shape[1]
    # results of the forward kernel: o and lse are operands here
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention(
        q, *(x.repeat_interleave(group, 1) for x in (k, v)),
        is_causal=causal)[:2]
    o.copy_(out)
    t.lse.copy_(lse.reshape(t.lse.shape))
    args = [x.detach().requires_grad_() for x in (q, k, v)]

    def by(backend):
        def f():
            if not kept:  # runs the forward kernel once
                with torch.enable_grad(), sdpa_kernel(backend):
                    kept.append(F.scaled_dot_product_attention(
                        *args, is_causal=causal, enable_gqa=group > 1))
            return tuple(x.transpose(1, 2) for x in torch.autograd.grad(
                kept[0], args, dout, retain_graph=True))
        kept = []
        return f
    return {"FlashAttention 2": by(SDPBackend.FLASH_ATTENTION),
            "cuDNN": by(SDPBackend.CUDNN_ATTENTION)}


@entry("scripts/attention_backward.lua", HEADS + [(4, 4096, 4096, 16, 16, 128)],
       tolerance=2e-2)
def attention_backward(t):
    return gradients(t)


@entry("scripts/attention_backward_hopper.lua", HOPPER, tolerance=2e-2,
       **{"by-size": "true"})
def attention_backward_hopper(t):
    return gradients(t)


@entry("scripts/attention_backward_hopper.lua", HOPPER, tolerance=2e-2,
       causal="true", **{"by-size": "true"})
def attention_backward_causal(t):
    return gradients(t, causal=True)


@entry("scripts/attention_backward_hopper.lua", HOPPER, tolerance=2e-2,
       **{"any-order": "true", "by-size": "true"})
def attention_backward_any_order(t):
    return gradients(t)


@entry("scripts/attention_decode.lua", [(16, 8192, 32, 8, 128),
                                        (64, 4096, 32, 32, 128),
                                        (1, 65536, 32, 8, 128)])
def attention_decode(t):
    q, k, v = (x.transpose(1, 2) for x in (t.q, t.k, t.v))

    def by(backend):
        def f():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(
                    q, k, v, enable_gqa=q.shape[1] != k.shape[1]
                ).transpose(1, 2), None
        return f
    return {"FlashAttention 2": by(SDPBackend.FLASH_ATTENTION),
            "cuDNN": by(SDPBackend.CUDNN_ATTENTION)}


ROWS = [(1 << 18, 1024), (1 << 17, 2048), (1 << 16, 4096), (1 << 15, 8192),
        (1 << 14, 16384), (1 << 13, 32768), (1 << 12, 65536)]


@entry("scripts/softmax.lua", ROWS)
def softmax(t):
    def f(x):
        return torch.softmax(x, -1)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x), "torch.compile": lambda: g(t.x)}


@entry("scripts/softmax_backward.lua", ROWS[:4], tolerance=8e-3)
def softmax_backward(t):
    def f(y, dy):
        g = y.float() * dy.float()
        return (g - y.float() * g.sum(-1, keepdim=True)).to(y.dtype)
    g = compiled(f)
    t.y.copy_(torch.softmax(t.y, -1))
    return {"PyTorch": lambda: torch.ops.aten._softmax_backward_data(
                t.dy, t.y, -1, t.y.dtype),
            "torch.compile": lambda: g(t.y, t.dy)}


IMAGES = ([(n, 56, 56, 128, 128) for n in (32, 64, 128)] +
          [(32, 28, 28, 256, 256), (32, 14, 14, 512, 512)])


@entry("scripts/conv2d_hopper.lua", IMAGES, ("bf16", "f16"),
       beside="scripts/conv2d.lua")
def conv2d_hopper(t):
    return conv2d(t)


@entry("scripts/conv2d.lua", IMAGES, ("bf16", "f16"))
def conv2d(t):
    # channels last, as in memory
    x, f = (a.permute(0, 3, 1, 2) for a in (t.x, t.f))
    torch.backends.cudnn.benchmark = True

    def cudnn():
        y = F.conv2d(x, f, padding=f.shape[2] // 2)
        return y.permute(0, 2, 3, 1)
    return {"cuDNN": cudnn}


# (N, K) of the linear layers of Llama 8B and 70B
LINEAR = [(4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336),
          (8192, 8192), (10240, 8192), (57344, 8192), (8192, 28672)]


@entry("scripts/gemm_int4.lua", [(m, n, k) for n, k in LINEAR
                                 for m in (16, 1, 32, 64)], ("bf16", "f16"),
       graph=True)
def gemm_int4(t):
    # bits of e: the upper 8 columns, the lower 8 rows, the odd column of 16x16
    e = torch.arange(8, dtype=torch.int32, device=t.w.device)
    q = t.w[..., None] >> (4 * (e // 2) + 16 * (e % 2)) & 15
    n, k = t.w.shape[:2]
    q = q.reshape(n, k, 8, 4, 4, 2, 2, 2).permute(0, 6, 2, 1, 4, 5, 3, 7)
    q = q.reshape(16 * n, 64 * k) - 8
    s = t.s.T.repeat_interleave(64 * k // t.s.shape[0], 1)
    w = (q * s.float()).to(t.a.dtype)
    return {"cuBLAS, 16-bit": lambda: t.a @ w.T}


@entry("scripts/rmsnorm.lua", ROWS)
def rmsnorm(t):
    def f(x, w):
        return F.rms_norm(x, (x.shape[-1],), w, 1e-6)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x, t.w), "torch.compile": lambda: g(t.x, t.w)}


@entry("scripts/layernorm.lua", ROWS)
def layernorm(t):
    def f(x, w, b):
        return F.layer_norm(x, (x.shape[-1],), w, b, 1e-5)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x, t.w, t.b),
            "torch.compile": lambda: g(t.x, t.w, t.b)}


@entry("scripts/rmsnorm_backward.lua", [(r // 2, n) for r, n in ROWS])
def rmsnorm_backward(t):
    def f(x, w, dy, rstd):
        xhat = x.float() * rstd[:, None]
        g = dy.float() * w.float()
        dx = (g - xhat * (g * xhat).mean(-1, keepdim=True)) * rstd[:, None]
        return dx.to(x.dtype), (dy.float() * xhat).sum(0)
    g = compiled(f)
    args = (t.x, t.w, t.dy, t.rstd)
    return {"PyTorch, by parts": lambda: f(*args),
            "torch.compile": lambda: g(*args),
            "PyTorch, fused": lambda: torch.ops.aten._fused_rms_norm_backward(
                t.dy, t.x, [t.size[1]], t.rstd[:, None], t.w, [True, True])}


@entry("scripts/elementwise.lua", [(1 << 15, 8192)], ("bf16", "f16"), f="gelu")
def gelu(t):
    def f(x):
        return F.gelu(x, approximate="tanh")
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x), "torch.compile": lambda: g(t.x)}


@entry("scripts/elementwise.lua", [(1 << 15, 8192)], ("bf16", "f16"), f="silu")
def silu(t):
    g = compiled(F.silu)
    return {"PyTorch": lambda: F.silu(t.x), "torch.compile": lambda: g(t.x)}


@entry("scripts/scan.lua", ROWS[1:4] + ROWS[6:], ("f32", "bf16"))
def scan(t):
    def f(x):
        return torch.cumsum(x, -1)
    g = compiled(f)
    # PyTorch sums bf16 in bf16, so it is no oracle
    return {None: lambda: f(t.x.double()).to(t.x.dtype),
            "PyTorch": lambda: f(t.x), "torch.compile": lambda: g(t.x)}


@entry("scripts/topk.lua", [(1 << 16, 1024), (1 << 14, 8192)], ("bf16", "f32"))
def topk(t):
    # indices are not compared: any of several equal elements is right
    return {"PyTorch": lambda: (torch.topk(t.x, t.y.shape[-1], -1)[0], None)}


@entry("scripts/argmax.lua", ROWS, ("bf16", "f32"), tolerance=1e-9)
def argmax(t):
    def f(x):
        return torch.argmax(x, -1)  # the first of equals
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x), "torch.compile": lambda: g(t.x)}


@entry("scripts/histogram.lua", [(1 << 28,)], ("u8",))
def histogram(t):
    # histc counts in its operand's type, and bytes would overflow
    return {"bincount": lambda: torch.bincount(t.x, minlength=256),
            "histc of f32": lambda: torch.histc(t.x.float(), 256, 0, 256)}


@entry("scripts/rope.lua", [(1 << 16, 32, 128, 4096), (1 << 16, 64, 64, 8192)])
def rope(t):
    places = torch.arange(t.c.shape[0], device=t.c.device)[:, None]
    half = t.c.shape[1]
    angles = places * 10000.0 ** (-torch.arange(half, device=t.c.device) / half)
    t.c.copy_(angles.cos())
    t.s.copy_(angles.sin())

    def f(x, c, s):
        m, h, d = x.shape
        a, b = x.view(-1, c.shape[0], h, d).float().chunk(2, -1)
        c, s = c[:, None, :], s[:, None, :]
        return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype).view(
            m, h, d)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x, t.c, t.s),
            "torch.compile": lambda: g(t.x, t.c, t.s)}


@entry("scripts/selective_scan.lua", [(8, 2048, 4096)], tolerance=1e-2)
def selective_scan(t):
    def f():  # step by step: too slow to be a rival
        h, ys = t.h0.clone(), []
        for i in range(t.u.shape[-1]):
            u = t.u[:, :, i].float()
            dt = F.softplus(t.delta[:, :, i].float() + t.bias)
            h = (torch.exp(dt[:, :, None] * t.A) * h
                 + (dt * u)[:, :, None] * t.B[:, None, :, i].float())
            y = (h * t.C[:, None, :, i].float()).sum(-1) + t.D * u
            ys.append((y * F.silu(t.z[:, :, i].float())).to(t.u.dtype))
        return torch.stack(ys, -1), h
    return {None: f}


@entry("scripts/gemm_splitk.lua", [(512, 512, 16384), (1024, 512, 8192),
                                   (128, 4096, 8192)])
def gemm_splitk(t):
    return {"cuBLAS": lambda: t.a @ t.b.T}


@entry("scripts/gemm_grouped.lua", [(8, 16384, 4096, 4096),
                                    (64, 16384, 2048, 2048)])
def gemm_grouped(t):
    groups, m = t.size[:2]
    last = [m * g * (g + 1) // (groups * (groups + 1)) for g in range(groups)]
    last[-1] = m
    t.offsets.copy_(torch.tensor([0] + last, dtype=torch.int32))
    b = t.b.transpose(1, 2)

    def each():
        c = torch.empty_like(t.c)
        for g, end in enumerate(last):
            first = last[g - 1] if g else 0
            torch.mm(t.a[first:end], b[g], out=c[first:end])
        return c
    return {"cuBLAS, one by one": each,
            "grouped_mm": lambda: torch._grouped_mm(t.a, b,
                                                     offs=t.offsets[1:])}


@entry("scripts/gemm_epilogue.lua", [(8192, 8192, 4096), (4096, 14336, 4096)])
def gemm_epilogue(t):
    def f(a, b, bias, residual):
        return F.gelu(F.linear(a, b, bias), approximate="tanh") + residual
    g = compiled(f)
    args = (t.a, t.b, t.bias, t.residual)
    return {"PyTorch": lambda: f(*args), "torch.compile": lambda: g(*args)}


@entry("scripts/reduce.lua", [(1 << 30,)], ("f32", "bf16"), tolerance=1e-3)
def total(t):
    def f(x):
        return x.sum(dtype=torch.float32)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x), "torch.compile": lambda: g(t.x)}


# ---------------------------------------------------------------------------
# A lesson's kernels on PyTorch's stream
# ---------------------------------------------------------------------------

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
          "f64": torch.float64, "i32": torch.int32, "i64": torch.int64,
          "u32": torch.uint32, "u64": torch.uint64,
          "i16": torch.int16, "u16": torch.uint16,
          "i8": torch.int8, "u8": torch.uint8, "boolean": torch.uint8,
          "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double,
           "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
           "i64": ctypes.c_int64, "u64": ctypes.c_uint64}
TOLERANCE = {"bf16": 6e-3, "f16": 1e-3, "f32": 1e-5}


def driver(what, code):
    if code != 0:
        raise RuntimeError(f"{what}: CUDA error {code}")


def value(a, tensors):
    """An argument of tools/launches.lua as the driver takes it."""
    if a[0] in SCALARS:
        return SCALARS[a[0]](a[1])
    address = tensors[a[0]].data_ptr()
    if len(a) == 1:
        return ctypes.c_void_p(address)
    memory = ctypes.create_string_buffer(128 + 63)
    words = (ctypes.c_uint64 * 16).from_buffer(
        memory, -ctypes.addressof(memory) % 64)  # a tensor map's alignment
    words[:] = [address] + [w & (1 << 64) - 1 for w in a[1][1:]]
    return words


class Launch:
    """One kernel with its arguments."""

    def __init__(self, cuda, made, tensors):
        self.cuda, self.made = cuda, made
        module, self.f = ctypes.c_void_p(), ctypes.c_void_p()
        with open(made["cubin"], "rb") as f:
            image = f.read()
        driver("load", cuda.cuModuleLoadData(ctypes.byref(module), image))
        driver(made["name"], cuda.cuModuleGetFunction(
            ctypes.byref(self.f), module, made["name"].encode()))
        if made["smem"] > 48 << 10:  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED...
            driver("smem", cuda.cuFuncSetAttribute(self.f, 8, made["smem"]))
        self.values = [value(a, tensors) for a in made["args"]]
        self.args = (ctypes.c_void_p * len(self.values))(
            *[ctypes.addressof(v) for v in self.values])

    def __call__(self):
        m = self.made
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        driver(m["name"], self.cuda.cuLaunchKernel(
            self.f, *m["grid"], *m["block"], m["smem"], stream, self.args,
            None))


def filled(o, device, seed):
    shape, dtype = o["shape"], DTYPES[o["dtype"]]
    if o["out"] and not o["fill"]:
        return torch.empty(shape, dtype=dtype, device=device)
    if o["fill"] == "zero":
        return torch.zeros(shape, dtype=dtype, device=device)
    g = torch.Generator(device).manual_seed(seed)
    if isinstance(o["fill"], list) or not dtype.is_floating_point:
        lo, hi = o["fill"] if isinstance(o["fill"], list) else (-8, 7)
        return torch.randint(lo, hi + 1, shape, dtype=dtype, device=device,
                             generator=g)
    return torch.randn(shape, device=device, generator=g,
                       dtype=torch.float32 if dtype.itemsize < 2
                       else dtype).to(dtype)


def load(script, e, size, dtype, o, folder):
    """A lesson's problem: its kernels, its operands, what it moves."""
    words = [o.cutelua, "tools/launches.lua", script, folder, o.arch,
             "--dtype", dtype]
    for name, value in e.options.items():
        words += ["--" + name, str(value)]
    out = subprocess.run(words + [str(x) for x in size], cwd=o.root,
                         capture_output=True, text=True)
    if out.returncode != 0:
        raise RuntimeError(out.stderr.strip() or "tools/launches.lua failed")
    made = json.loads(out.stdout)
    tensors = {x["name"]: filled(x, o.device, i + 1)
               for i, x in enumerate(made["operands"])}
    launches = [Launch(o.cuda, m, tensors) for m in made["launches"]]

    def run():
        for f in launches:
            f()
    return run, tensors, made


# ---------------------------------------------------------------------------
# Comparing, measuring
# ---------------------------------------------------------------------------

def error(got, want):
    """Relative error in the norm; infinite where only one is a NaN."""
    got, want = got.double(), want.double()
    if not torch.equal(got.isnan(), want.isnan()):
        return math.inf
    got, want = got.nan_to_num(), want.nan_to_num()
    return float((got - want).norm() / want.norm().clamp(min=1e-30))


def check(e, dtype, run, tensors, made, rivals):
    """Returns the largest error of our results against the oracle's; reports a
    rival whose results differ more than ours may."""
    names = [o["name"] for o in made["operands"]
             if o["out"] and not o["scratch"]]
    was = {n: tensors[n].clone() for n in names}
    wants, worst = None, 0.0
    most = e.tolerance or TOLERANCE.get(dtype, 0)
    for name, f in list(rivals.items()):
        try:
            out = f()
        except Exception as why:  # a rival may raise anything; the others continue
            print(f"  {e.name}: {name}: {(str(why) or repr(why)).splitlines()[0]}")
            del rivals[name]
            continue
        out = out if isinstance(out, (tuple, list)) else (out,)
        if wants is None:
            wants = [None if x is None else x.clone() for x in out]
        for a, b in zip(out, wants):
            if a is not None and b is not None and error(a, b) > 4 * most:
                print(f"  {e.name}: {name} differs from the oracle by "
                      f"{error(a, b):.1e}")
    if wants is None:
        raise RuntimeError("none of its rivals runs: nothing to compare with")
    for n in names:
        tensors[n].copy_(was[n])
    run()
    torch.cuda.synchronize()
    for n, want in zip(names, wants):
        if want is not None:
            worst = max(worst, error(tensors[n].reshape(-1),
                                     want.reshape(-1)))
    return worst, worst <= most


def ms(f, n):
    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    a.record()
    for _ in range(n):
        f()
    b.record()
    b.synchronize()
    return a.elapsed_time(b)


def replayed(f, n=20):
    """Returns f, n times, as a graph."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        for _ in range(n):
            f()
        graph.capture_end()
    return graph.replay, n


def measure(contestants, o, graph):
    """{name: (hot ms of each round, cold ms of each round)}; after two rounds
    the budget of the entry may end it."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=o.device)
    times = {name: ([], []) for name in contestants}
    names = list(contestants)
    hots = {name: replayed(f) if graph else (f, 1)
            for name, f in contestants.items()}
    for r in range(o.rounds):
        if r >= 2 and time.monotonic() > o.deadline:
            break
        turn = names[r // 2 % len(names):] + names[:r // 2 % len(names)]
        for name in turn if r % 2 == 0 else reversed(turn):
            (f, runs), total, n = hots[name], 0.0, 1
            while total < o.warm:
                t = ms(f, n)
                total, each = total + t, max(t / n, 1e-4)
                n = max(1, math.ceil(min(o.warm - total, o.warm / 4) / each))
            n = max(1, math.ceil(o.hot / each))
            times[name][0].append(ms(f, n) / n / runs)
            cold = []
            for _ in range(3):
                flush.zero_()
                cold.append(ms(contestants[name], 1))
            times[name][1].append(statistics.median(cold))
    return times


WIDTHS = (34, 18, 9, 7, 8, 8, 9, 7, 13)


def say(rows):
    for r in rows:
        print(" ".join(c.ljust(w) if i < 2 else c.rjust(w)
                       for i, (c, w) in enumerate(zip(r, WIDTHS))).rstrip(),
              flush=True)


def copy_of(nbytes, device):
    a, b = (torch.zeros(max(1, nbytes // 2), dtype=torch.uint8, device=device)
            for _ in range(2))
    return lambda: b.copy_(a)


def compete(e, size, dtype, o):
    """Rows of the table for one problem."""
    with tempfile.TemporaryDirectory() as folder:
        run, tensors, made = load(e.script, e, size, dtype, o, folder)
    t = types.SimpleNamespace(size=size, dtype=dtype, options=e.options,
                              **tensors)
    rivals = e.rivals(t)
    worst, ok = check(e, dtype, run, tensors, made, rivals)
    flops = made["flops"]
    contestants = {"cutelua": run, **rivals}
    if e.beside:
        with tempfile.TemporaryDirectory() as folder:
            other, tensors, also = load(e.beside, e, size, dtype, o, folder)
        error_of_other, ok_too = check(e, dtype, other, tensors, also, rivals)
        worst, ok = max(worst, error_of_other), ok and ok_too
        contestants[os.path.basename(e.beside)] = other
    if e.copy and not flops:
        contestants["device copy"] = copy_of(made["bytes"], o.device)
    contestants.pop(None, None)
    times = measure(contestants, o, e.graph)
    med = {n: [statistics.median(x) for x in times[n]] for n in times}
    rows = []
    for i, n in enumerate(contestants):
        hot, cold = med[n]
        spread = (max(times[n][0]) - min(times[n][0])) / hot
        rows.append([
            f"{e.name} {'x'.join(map(str, size))} {dtype}" if i == 0 else "",
            n, f"{hot:.4f}", f"{100 * spread:.1f} %",
            f"{(flops or made['bytes']) / hot * 1e-9:.2f}",
            f"{(flops or made['bytes']) / cold * 1e-9:.2f}",
            f"{hot / med['cutelua'][0]:.3f}", f"{cold / med['cutelua'][1]:.3f}",
            f"{worst:.1e} {'ok' if ok else 'WRONG'}" if i == 0 else ""])
    return rows, ok


def chosen(o):
    return [e for e in ENTRIES if not o.names or e.name in o.names]


def listing(o):
    for e in chosen(o):
        print(f"{e.name:20} {e.script:30} {' '.join(e.dtypes):9}",
              " ".join("x".join(map(str, x)) for x in e.sizes))


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("names", nargs="*", help="entries; none: all")
    p.add_argument("--cutelua", default="build/cutelua")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--warm", type=float, default=60, help="ms")
    p.add_argument("--hot", type=float, default=50, help="ms")
    p.add_argument("--budget", type=float, default=math.inf,
                   help="seconds for an entry: then it takes no further size")
    p.add_argument("--list", action="store_true", help="what there is")
    p.add_argument("--dtype")
    p.add_argument("--size", help="such as 4096x1024, in place of an entry's")
    o = p.parse_args()
    for name in o.names:
        if name not in [e.name for e in ENTRIES]:
            p.error(f"no entry {name}; --list names them")
    if o.list:
        return listing(o)
    o.root, o.device = root, torch.device("cuda")
    torch.zeros(1, device=o.device)  # the context that all of them share
    o.cuda = ctypes.CDLL("libcuda.so.1")
    major, minor = torch.cuda.get_device_capability()
    o.arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}, medians of {o.rounds} "
          "rounds; TB/s or TFLOP/s; the last two: their time over ours")
    say([["kernel", "", "ms hot", "spread", "hot", "cold", "/ours hot", "cold",
          "error"]])
    good = True
    for e in chosen(o):
        sizes = [tuple(map(int, o.size.split("x")))] if o.size else e.sizes
        problems = [(d, x) for x in sizes
                    for d in ([o.dtype] if o.dtype else e.dtypes)]
        o.deadline = time.monotonic() + o.budget
        for i, (dtype, size) in enumerate(problems):
            if i > 0 and time.monotonic() > o.deadline:
                print(f"  {e.name}: {len(problems) - i} more left out")
                break
            try:
                more, ok = compete(e, size, dtype, o)
                say(more)
                good = good and ok
            except Exception as why:
                print(f"  {e.name} {size} {dtype}: {why!r}")
                good = False
            torch.cuda.empty_cache()
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: MIT
