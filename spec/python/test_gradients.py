# SPDX-License-Identifier: MIT
"""Tests gradients of cutelua.ops with PyTorch: they must equal those of the same
formula in PyTorch. CUTELUA_TEST_DEVICE names the device (cpu)."""
import os
import unittest

import torch
import torch.nn.functional as F

import support
from cutelua import GradientError, ops
from test_package import Raises

DEVICE = os.environ.get("CUTELUA_TEST_DEVICE", "cpu")
torch.set_default_device(DEVICE)
torch.manual_seed(0)
random = torch.randn


def half(*shape):
    return (random(*shape) / 2).half()


def gradients(f, tensors):
    xs = [x.detach().clone().requires_grad_() for x in tensors]
    results = f(*xs)
    results = results if isinstance(results, tuple) else (results,)
    g = torch.Generator(DEVICE).manual_seed(1)
    sum((y.float() * torch.randn(y.shape, generator=g)).sum()
        for y in results).backward()
    return [x.grad for x in xs]


def rms(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def attention(q, k, v, causal=False, bias=None, sinks=None):
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** .5
    if bias is not None:
        scores = scores + bias
    if causal:
        n, m = scores.shape[-2:]
        seen = torch.ones(n, m).tril(m - n) != 0
        scores = scores.masked_fill(~seen, float("-inf"))
    if sinks is not None:
        more = sinks[None, :, None, None].expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, more], -1).softmax(-1)[..., :-1]
    else:
        weights = scores.softmax(-1)
    return (weights @ v).transpose(1, 2)


class Gradients(unittest.TestCase):
    def same(self, f, want, *tensors, tol=1e-4):
        pairs = zip(gradients(f, tensors), gradients(want, tensors))
        for i, (a, b) in enumerate(pairs):
            self.assertIsNotNone(a, "argument %d" % i)
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            torch.testing.assert_close(a.float(), b.float(), rtol=tol,
                                       atol=tol)

    def test_of_products(self):
        self.same(lambda a, b: ops.gemm(a, b, alpha=0.5),
                  lambda a, b: 0.5 * (a @ b.T), random(5, 7), random(6, 7))
        self.same(lambda a, b, c: ops.gemm(a, b, c, beta=2),
                  lambda a, b, c: a @ b.T + 2 * c,
                  random(5, 7), random(6, 7), random(6))
        # Batches, and operands that broadcast.
        for a, b in (((3, 5, 7), (6, 7)), ((3, 5, 7), (3, 6, 7)),
                     ((5, 7), (3, 6, 7)), ((1, 5, 7), (3, 6, 7))):
            self.same(ops.gemm, lambda a, b: a @ b.mT, random(*a), random(*b))
        self.same(ops.gemm, lambda a, b: a @ b.mT, random(16, 32).bfloat16(),
                  random(24, 32).bfloat16(), tol=3e-2)

    def test_of_rows(self):
        self.same(ops.softmax, lambda x: x.softmax(-1), random(3, 5, 9))
        self.same(ops.rmsnorm, rms, random(3, 5, 16), random(16))
        self.same(ops.rmsnorm, lambda x: rms(x, 1), random(5, 16))
        self.same(ops.layernorm, lambda x, w, b: F.layer_norm(x, (16,), w, b),
                  random(5, 16), random(16), random(16))
        self.same(lambda x, w: ops.layernorm(x, w, save=True)[0],
                  lambda x, w: F.layer_norm(x, (16,), w), random(5, 16),
                  random(16))
        targets = torch.tensor([1, 3, -100, 0, 8])
        self.same(lambda x: ops.cross_entropy(x, targets)[0],
                  lambda x: F.cross_entropy(x, targets, reduction="none"),
                  random(5, 9))
        rows = torch.tensor([[1, 0, 2], [1, 1, 3]])
        self.same(lambda w: ops.embedding(rows, w),
                  lambda w: F.embedding(rows, w), random(4, 16))

    def test_of_norms_with_a_residual(self):
        x, w, h = random(5, 16), random(16), random(5, 16)
        self.same(lambda x, w, h: ops.rmsnorm(x, w, residual=h),
                  lambda x, w, h: (rms(x + h, w), x + h), x, w, h)
        # Only one of the two results is used.
        self.same(lambda x, w, h: ops.layernorm(x, w, residual=h)[0],
                  lambda x, w, h: F.layer_norm(x + h, (16,), w), x, w, h)
        self.same(lambda x, h: ops.layernorm(x, residual=h)[1],
                  lambda x, h: x + h, x, h)

    def test_of_rotations(self):
        angles = random(6, 4)
        cos, sin = angles.cos(), angles.sin()

        def rotated(x, sign=1):
            a, b, c, s = x[..., :4], x[..., 4:], cos[:, None], sin[:, None]
            return torch.cat([a * c - sign * b * s, b * c + sign * a * s], -1)

        self.same(lambda x: ops.rope(x, cos, sin), rotated, random(2, 6, 3, 8))
        self.same(lambda x: ops.rope(x, cos, sin, inverse=True),
                  lambda x: rotated(x, -1), random(2, 6, 3, 8))

    def test_of_attention(self):
        q, k, v = half(1, 9, 2, 64), half(1, 12, 2, 64), half(1, 12, 2, 64)
        self.same(lambda q, k, v: ops.attention(q, k, v, causal=True)[0],
                  lambda q, k, v: attention(q, k, v, True), q, k, v, tol=1e-2)
        twice = "function(s, at) return s * 2 end"
        self.same(lambda q, k, v: ops.attention(q, k, v, score_mod=twice)[0],
                  lambda q, k, v: attention(q * 2, k, v), q, k, v, tol=1e-2)
        self.same(lambda q, k, v, s: ops.attention(q, k, v, sinks=s)[0],
                  lambda q, k, v, s: attention(q, k, v, sinks=s), q, k, v,
                  random(2), tol=1e-2)
        self.same(lambda q, k, v, b: ops.attention(q, k, v, bias=b)[0],
                  lambda q, k, v, b: attention(q, k, v, bias=b), q, k, v,
                  random(1, 2, 9, 12), tol=1e-2)

    def test_are_recorded_only_where_they_are_needed(self):
        a, b = random(4, 8, requires_grad=True), random(4, 8)
        self.assertIsNotNone(ops.gemm(a, b).grad_fn)
        self.assertIsNone(ops.gemm(a.detach(), b).grad_fn)
        with torch.no_grad():
            self.assertIsNone(ops.gemm(a, b).grad_fn)
        loss, logs = ops.cross_entropy(a, torch.zeros(4, dtype=torch.int64))
        self.assertEqual((loss.requires_grad, logs.requires_grad),
                         (True, False))
        y = ops.gemm(a, b)
        with torch.no_grad():
            b.zero_()  # the gradient needs b
        with Raises(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_that_do_not_exist_are_errors(self):
        x = random(4, 4, requires_grad=True)
        with Raises(GradientError, "cutelua.ops.topk has no backward"):
            ops.topk(x, 2)
        with Raises(GradientError, "no backward with the option epilogue"):
            ops.gemm(x, x, epilogue="function(x) return x * 2 end")
        with Raises(GradientError, "no backward with the option out"):
            ops.softmax(x, out=torch.empty(4, 4))
        with Raises(GradientError, "no gradient of Cos, which requires one"):
            ops.rope(random(1, 4, 1, 8), x, x.detach())
        with Raises(GradientError, "no gradient of a tensor in a list"):
            ops.softmax([x])
        g, = torch.autograd.grad(ops.softmax(x).square().sum(), x,
                                 create_graph=True)
        with Raises(RuntimeError, "once_differentiable"):
            g.sum().backward()
        with torch.no_grad():
            self.assertEqual(ops.topk(x, 2)[0].shape, (4, 2))


if __name__ == "__main__":
    support.main()
