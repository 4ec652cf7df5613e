#!/usr/bin/env python3
"""Times the decoder of scripts/llama.lua in PyTorch: eager, eager in a CUDA
graph, and torch.compile in a CUDA graph, with random weights of the same sizes.

    python3 spec/bench/llama_rival.py [--size 8b] [--batch 1,8,64]
        [--prompt 2048] [--tokens 64] [--seconds 120]

Keys and values are in one static cache for each layer. A part that fails, or
that would start after --seconds, prints a line that says so.
"""
import argparse
import time

import torch
import torch.nn.functional as F

SIZES = {"tiny": (64, 2, 4, 2, 32, 96, 50),
         "1b": (2048, 16, 32, 8, 64, 8192, 128256),
         "8b": (4096, 32, 32, 8, 128, 14336, 128256)}
EPS = 1e-5


def rotate(x, cos, sin):
    """x: (B, n, heads, D); cos, sin: (n, 1, D / 2)."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Decoder:
    def __init__(self, size, device):
        (self.N, self.layers, self.H, self.G, self.D, self.F,
         self.V) = SIZES[size]
        self.device = device

        def random(rows, columns):
            w = torch.empty(rows, columns, dtype=torch.bfloat16, device=device)
            return w.normal_(0, columns ** -0.5)
        n, heads = self.N, self.H + 2 * self.G
        self.embedding = random(self.V, n)
        self.head = random(self.V, n)
        self.norm = torch.ones(n, dtype=torch.bfloat16, device=device)
        self.w = [(self.norm, random(heads * self.D, n),
                   random(n, self.H * self.D), self.norm,
                   random(2 * self.F, n), random(n, self.F))
                  for _ in range(self.layers)]
        self.bytes = 2 * sum(x.numel() for w in self.w for x in w) + \
            2 * self.head.numel()

    def start(self, batch, prompt, tokens):
        """Makes the caches, and the state after the prompt."""
        total = (prompt + tokens + 63) // 64 * 64
        shape = (batch, self.G, total, self.D)
        self.caches = [tuple(torch.zeros(shape, dtype=torch.bfloat16,
                                         device=self.device)
                             for _ in range(2)) for _ in range(self.layers)]
        t = torch.arange(total, device=self.device, dtype=torch.float32)
        i = torch.arange(self.D // 2, device=self.device, dtype=torch.float32)
        angle = t[:, None, None] * 500000.0 ** (-2 * i / self.D)
        self.cos, self.sin = angle.cos(), angle.sin()
        self.keys = torch.arange(total, device=self.device)
        self.position = torch.full((1,), prompt, dtype=torch.long,
                                   device=self.device)
        self.token = torch.zeros(batch, 1, dtype=torch.long,
                                 device=self.device)

    def block(self, x, norm1, qkv, o, norm2, up, down, k, v, position, cos,
              sin, mask):
        """One layer. mask: None for the prompt, which is causal."""
        batch, n, _ = x.shape
        H, G, D = self.H, self.G, self.D
        y = F.linear(F.rms_norm(x, (self.N,), norm1, EPS), qkv)
        q, knew, vnew = y.view(batch, n, H + 2 * G, D).split((H, G, G), 2)
        q = rotate(q, cos, sin).transpose(1, 2)
        knew = rotate(knew, cos, sin).transpose(1, 2)
        vnew = vnew.transpose(1, 2)
        k[:, :, position] = knew
        v[:, :, position] = vnew
        if mask is None:
            a = F.scaled_dot_product_attention(
                q, knew, vnew, is_causal=True, enable_gqa=True).transpose(1, 2)
        else:  # the heads of a group are rows, so that no keys are repeated
            a = F.scaled_dot_product_attention(
                q.reshape(batch, G, H // G, D), k, v, attn_mask=mask)
        x = x + F.linear(a.reshape(batch, n, H * D), o)
        gate, more = F.linear(F.rms_norm(x, (self.N,), norm2, EPS),
                              up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * more, down)

    def forward(self, tokens, position, block, mask):
        cos, sin = self.cos[position], self.sin[position]
        x = F.embedding(tokens, self.embedding)
        for w, (k, v) in zip(self.w, self.caches):
            x = block(x, *w, k, v, position, cos, sin, mask)
        x = F.rms_norm(x[:, -1:], (self.N,), self.norm, EPS)
        return F.linear(x, self.head)

    def step(self, block):
        """Generates one token of each sequence, greedily."""
        mask = (self.keys <= self.position)[None, None, None]
        logits = self.forward(self.token, self.position, block, mask)
        self.token.copy_(logits.argmax(-1))

    def read(self, tokens, block):
        position = torch.arange(tokens.shape[1], device=self.device)
        return self.forward(tokens, position, block, None)


def seconds(f, device, times=5):
    """Returns the median seconds of f()."""
    if device == "cpu":
        start = time.perf_counter()
        f()
        return time.perf_counter() - start
    f()
    all_ = []
    for _ in range(times):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        f()
        b.record()
        b.synchronize()
        all_.append(a.elapsed_time(b) / 1e3)
    return sorted(all_)[times // 2]


def graphed(f, device):
    """Returns a launch of f's CUDA graph."""
    if device == "cpu":
        return f
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        f()
        f()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    return graph.replay


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", default="8b", choices=sorted(SIZES))
    p.add_argument("--batch", default="1,8,64")
    p.add_argument("--prompt", type=int, default=2048)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--seconds", type=float, default=120)
    o = p.parse_args()
    begin = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = Decoder(o.size, device)
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"{o.size}, PyTorch {torch.__version__}, {name}", flush=True)

    def part(title, f):
        if time.perf_counter() - begin > o.seconds:
            print(f"{title}: no time left", flush=True)
            return
        try:
            print(f"{title}: {f()}", flush=True)
        except Exception as e:  # the other parts still count
            print(f"{title}: {type(e).__name__}: {str(e)[:200]}", flush=True)
            torch.cuda.empty_cache() if device == "cuda" else None

    def copy():
        a = torch.empty(1 << 29 if device == "cuda" else 1 << 20,
                        dtype=torch.uint8, device=device)
        b = torch.empty_like(a)
        return f"{2e-9 * a.numel() / seconds(lambda: b.copy_(a), device):.0f}" \
            " GB/s"

    for batch in (int(b) for b in o.batch.split(",")):
        model.caches = None
        part(f"batch {batch}, caches", lambda: model.start(
            batch, o.prompt, o.tokens))
        if model.caches is None:
            continue
        model.position.fill_(o.prompt + o.tokens // 2)
        moved = model.bytes + 4 * model.layers * model.G * model.D * batch * \
            (o.prompt + o.tokens / 2)
        torch._dynamo.reset()
        fast = torch.compile(model.block, dynamic=False)

        def rate(f):
            s = seconds(f, device)
            return f"{1e3 * s:.3f} ms, {moved / s / 1e9:.0f} GB/s, " \
                f"{batch / s:.0f} tokens/s"

        def read(block):
            tokens = torch.randint(model.V, (batch, o.prompt), device=device)
            s = seconds(lambda: model.read(tokens, block), device, 3)
            return f"{1e3 * s:.1f} ms"
        with torch.inference_mode():
            where = f"batch {batch}, prompt {o.prompt}"
            part(f"{where}, step, eager", lambda: rate(
                lambda: model.step(model.block)))
            part(f"{where}, step, eager in a graph", lambda: rate(
                graphed(lambda: model.step(model.block), device)))
            part(f"{where}, step, compiled in a graph", lambda: rate(
                graphed(lambda: model.step(fast), device)))
            if batch == 1:
                part(f"{where}, prompt, eager", lambda: read(model.block))
                part(f"{where}, prompt, compiled", lambda: read(fast))
    part("copy", copy)


if __name__ == "__main__":
    with torch.no_grad():
        main()
# SPDX-License-Identifier: MIT
