#!/usr/bin/env python3
"""Lessons beside PyTorch, torch.compile and cuDNN, on a GPU, in one process.

    python3 spec/bench/rivals.py [--cutelua build/cutelua] [NAME...]

The kernels of a lesson (tools/launches.lua writes them) are launched through
the driver on PyTorch's stream, with PyTorch's tensors. Results are compared
first; then each contestant warms itself up, is measured, and makes room for
the next, round by round. A claim is a ratio of one such run.

A lesson is entered below by @entry: a function of its operands, by name, that
gives its rivals by name. Each is a function without arguments that returns the
lesson's results in their order (one, or a tuple; None where it has no such
result). The first one is the oracle.
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import tempfile
import types

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ENTRIES = []
FLUSH_BYTES = 256 << 20


def entry(script, sizes, dtypes=("bf16",), tolerance=None, copy=True, **options):
    """sizes: extents of the lesson; tolerance: of the relative error in the
    norm; options: further ones of the lesson, the same for all sizes."""
    def add(f):
        ENTRIES.append(types.SimpleNamespace(
            name=f.__name__, script=script, sizes=sizes, dtypes=dtypes,
            tolerance=tolerance, copy=copy, options=options, rivals=f))
        return f
    return add


def compiled(f):
    """torch.compile's version of f, made anew for each problem."""
    torch._dynamo.reset()
    return torch.compile(f, dynamic=False)


# ---------------------------------------------------------------------------
# Entries
# ---------------------------------------------------------------------------

HEADS = [(1, 16384, 16384, 2048 // d, 2048 // d, d) for d in (64, 128, 256)]


@entry("scripts/attention.lua", HEADS + [(4, 4096, 4096, 16, 16, 128)])
def attention(t):
    q, k, v = (x.transpose(1, 2) for x in (t.q, t.k, t.v))

    def by(backend):
        def f():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(
                    q, k, v).transpose(1, 2)
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


@entry("scripts/conv2d.lua", [(n, 56, 56, 128, 128) for n in (32, 64, 128)] +
       [(32, 28, 28, 256, 256), (32, 14, 14, 512, 512)], ("bf16", "f16"))
def conv2d(t):
    # channels last, as they lie
    x, f = (a.permute(0, 3, 1, 2) for a in (t.x, t.f))
    torch.backends.cudnn.benchmark = True

    def cudnn():
        y = F.conv2d(x, f, padding=f.shape[2] // 2)
        return y.permute(0, 2, 3, 1)
    return {"cuDNN": cudnn}


@entry("scripts/rmsnorm.lua", ROWS)
def rmsnorm(t):
    def f(x, w):
        return F.rms_norm(x, (x.shape[-1],), w, 1e-6)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x, t.w), "torch.compile": lambda: g(t.x, t.w)}


@entry("scripts/rmsnorm_backward.lua", [(r // 2, n) for r, n in ROWS[:5]])
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


@entry("scripts/scan.lua", ROWS[1:4] + ROWS[6:], ("f32", "bf16"), tolerance=1e-2)
def scan(t):
    def f(x):
        return torch.cumsum(x, -1)
    g = compiled(f)
    return {"PyTorch": lambda: f(t.x), "torch.compile": lambda: g(t.x)}


@entry("scripts/topk.lua", [(1 << 16, 1024), (1 << 14, 8192)], ("bf16", "f32"))
def topk(t):
    # of equal elements any may be named: places are not compared
    return {"PyTorch": lambda: (torch.topk(t.x, t.y.shape[-1], -1)[0], None)}


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
          "u32": torch.uint32, "i16": torch.int16, "u16": torch.uint16,
          "i8": torch.int8, "u8": torch.uint8, "boolean": torch.uint8,
          "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double,
           "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
           "i64": ctypes.c_int64, "u64": ctypes.c_uint64}
TOLERANCE = {"bf16": 6e-3, "f16": 1e-3, "f32": 1e-5}


def driver(what, code):
    if code != 0:
        raise RuntimeError(f"{what}: CUDA error {code}")


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
        self.values = [ctypes.c_void_p(tensors[a[0]].data_ptr())
                       if len(a) == 1 else SCALARS[a[0]](a[1])
                       for a in made["args"]]
        self.args = (ctypes.c_void_p * len(self.values))(
            *[ctypes.cast(ctypes.byref(v), ctypes.c_void_p)
              for v in self.values])

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


def load(e, size, dtype, o, folder):
    """A lesson's problem: its kernels, its operands, what it moves."""
    words = [o.cutelua, "tools/launches.lua", e.script, folder, o.arch,
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
    """The largest error of our results against the oracle's; a rival's that
    differs from it more than ours may is told."""
    names = [o["name"] for o in made["operands"]
             if o["out"] and not o["scratch"]]
    was = {n: tensors[n].clone() for n in names}
    wants, worst = None, 0.0
    most = e.tolerance or TOLERANCE.get(dtype, 0)
    for name, f in list(rivals.items()):
        try:
            out = f()
        except (RuntimeError, AttributeError) as why:
            print(f"  {e.name}: {name}: {str(why).splitlines()[0]}")
            del rivals[name]
            continue
        out = out if isinstance(out, (tuple, list)) else (out,)
        if wants is None:
            wants = [None if x is None else x.clone() for x in out]
        for a, b in zip(out, wants):
            if a is not None and b is not None and error(a, b) > 4 * most:
                print(f"  {e.name}: {name} differs from the oracle by "
                      f"{error(a, b):.1e}")
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


def measure(contestants, o):
    """{name: (hot ms of each round, cold ms of each round)}"""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=o.device)
    times = {name: ([], []) for name in contestants}
    names = list(contestants)
    for r in range(o.rounds):
        turn = names[r // 2 % len(names):] + names[:r // 2 % len(names)]
        for name in turn if r % 2 == 0 else reversed(turn):
            f, total, n = contestants[name], 0.0, 1
            while total < o.warm:
                t = ms(f, n)
                total, each = total + t, max(t / n, 1e-4)
                n = max(1, math.ceil(min(o.warm - total, o.warm / 4) / each))
            n = max(1, math.ceil(o.hot / each))
            times[name][0].append(ms(f, n) / n)
            cold = []
            for _ in range(3):
                flush.zero_()
                cold.append(ms(f, 1))
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
        run, tensors, made = load(e, size, dtype, o, folder)
    t = types.SimpleNamespace(size=size, dtype=dtype, options=e.options,
                              **tensors)
    rivals = e.rivals(t)
    worst, ok = check(e, dtype, run, tensors, made, rivals)
    flops = made["flops"]
    contestants = {"cutelua": run, **rivals}
    if e.copy and not flops:
        contestants["device copy"] = copy_of(made["bytes"], o.device)
    times = measure(contestants, o)
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


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("names", nargs="*", help="entries; none: all")
    p.add_argument("--cutelua", default="build/cutelua")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--warm", type=float, default=60, help="ms")
    p.add_argument("--hot", type=float, default=50, help="ms")
    p.add_argument("--dtype")
    p.add_argument("--size", help="such as 4096x1024, in place of an entry's")
    o = p.parse_args()
    o.root, o.device = root, torch.device("cuda")
    torch.zeros(1, device=o.device)  # the context that all share
    o.cuda = ctypes.CDLL("libcuda.so.1")
    major, minor = torch.cuda.get_device_capability()
    o.arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}, medians of {o.rounds} "
          "rounds; TB/s or TFLOP/s; the last two: their time over ours")
    say([["kernel", "", "ms hot", "spread", "hot", "cold", "/ours hot", "cold",
          "error"]])
    good = True
    for e in ENTRIES:
        if o.names and e.name not in o.names:
            continue
        sizes = [tuple(map(int, o.size.split("x")))] if o.size else e.sizes
        for dtype in [o.dtype] if o.dtype else e.dtypes:
            for size in sizes:
                try:
                    more, ok = compete(e, size, dtype, o)
                    say(more)
                    good = good and ok
                except RuntimeError as why:
                    print(f"  {e.name} {size} {dtype}: {why}")
                    good = False
                torch.cuda.empty_cache()
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
