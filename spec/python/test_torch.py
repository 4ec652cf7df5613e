"""Tests the package cutelua with PyTorch on the CPU: tensors, operations with
gradients, torch.compile."""
import subprocess
import sys
import time
import unittest

import torch
import torch._dynamo

import cutelua
import support
from test_package import Raises

FOLDER = support.folder()
m = cutelua.load(support.write(FOLDER + "/script.lua", support.SCRIPT))

SQUARE = """
local ops = cute.ops
local function square(x) return x * x end
local function dsquare(g, x) return g * x * 2 end
local M = {}
function M.forward(x) return ops.elementwise(square, x) end
function M.backward(g, x) return ops.elementwise(dsquare, g, x) end
return M
"""
GEMM = """
local ops = cute.ops
local M = {schema = "(Tensor a, Tensor b, float alpha=1.0) -> Tensor"}
function M.forward(a, b, alpha) return ops.gemm(a, b, {alpha = alpha}) end
function M.fake(a, b, alpha)
  return {shape = {a.shape[1], b.shape[1]}, dtype = a.dtype}
end
return M
"""
TWO = """
local ops = cute.ops
local M = {schema = "(Tensor x, int n) -> (Tensor, Tensor)"}
function M.forward(x, n)
  return ops.elementwise(function(v) return v * n end, x),
         cute.zeros({x.shape[2], n}, cute.f64, {device = x.device})
end
function M.fake(x, n)
  return {shape = x.shape}, {shape = {x.shape[2], n}, dtype = "f64"}
end
return M
"""
SQRT = """
local ops = cute.ops
local M = {}
function M.root(x) return ops.elementwise(cute.sqrt, x) end
function M.backward(g, x, y)
  return ops.elementwise(function(a, b) return a / (b * 2) end, g, y)
end
return M
"""

square = cutelua.op("square", cutelua.loads(SQUARE, "square"))
gemm = cutelua.op("mine::gemm", cutelua.loads(GEMM, "gemm"))
two = cutelua.op("two", cutelua.loads(TWO, "two"))
root = cutelua.op("root", cutelua.loads(SQRT, "root"))
plain = cutelua.op("plain", cutelua.loads(SQUARE.replace("M.backward",
                                                         "M.other"), "plain"))


def passes(op, args):
    return {k: v for k, v in torch.library.opcheck(op.op, args).items()
            if v != "SUCCESS"}


class Tensors(unittest.TestCase):
    def test_are_shared_and_come_back_as_tensors(self):
        x = torch.randn(4, 6)
        for a in (x, x.t(), x[1:, ::2], x[:0], x.expand(3, 4, 6), x[0, 0],
                  x.double(), torch.nn.Parameter(x, requires_grad=False)):
            y = m.square(a)
            self.assertIs(type(y), torch.Tensor)
            self.assertEqual((y.dtype, y.device), (a.dtype, a.device))
            torch.testing.assert_close(y.reshape(a.shape), a * a, rtol=1e-6,
                                       atol=1e-6)
        before = x.clone()
        m.double(x)
        self.assertTrue(torch.equal(x, before * 2))
        y = m.all(x)
        self.assertEqual(y.data_ptr(), x.data_ptr())

    def test_of_every_type(self):
        for name, ours in cutelua._core.NAMES.items():
            dtype = getattr(torch, name, None)
            if dtype is None or ours in ("e2m1", "ue8m0", "i4", "u4"):
                continue
            x = torch.ones(3).to(dtype)
            self.assertEqual(m.kind(x), ours)
            self.assertEqual(m.all(x).dtype, dtype)
            self.assertEqual(m.all(dtype), ours)
        for dtype in (torch.complex64, torch.complex128):
            with Raises(cutelua.TypeMismatch, "complex"):
                m.kind(torch.zeros(3, dtype=dtype))

    def test_of_packed_4_bit_floats(self):
        pairs = getattr(torch, "float4_e2m1fn_x2", None)
        if pairs is None:
            self.skipTest("needs float4_e2m1fn_x2")
        x = torch.tensor([[0x21, 0x43]], dtype=torch.uint8).view(pairs)
        self.assertEqual(m.shape(x), ("(1,4):(4,1)", "host"))
        self.assertEqual(m.kind(x), "e2m1")

    def test_that_no_memory_describes_are_rejected(self):
        for x in (torch.zeros(3, device="meta"), torch.zeros(3).to_sparse(),
                  torch.zeros(2, dtype=torch.complex64).conj()):
            with Raises(Exception):
                m.kind(x)
        self.assertEqual(m.kind(torch.zeros(3)), "f32")

    def test_that_require_gradients_are_rejected(self):
        x = torch.randn(3, requires_grad=True)
        with Raises(cutelua.GradientError, "cutelua.op"):
            m.square(x)
        with Raises(cutelua.GradientError):
            m.all({"x": [x]})
        with torch.no_grad():
            self.assertTrue(torch.equal(m.square(x), x * x))
        self.assertTrue(torch.equal(m.square(x.detach()), x * x))

    def test_of_subclasses_are_converted_by_dlpack(self):
        class Mine(torch.Tensor):
            pass

        x = torch.randn(5).as_subclass(Mine)
        y = m.square(x)
        self.assertTrue(torch.equal(torch.as_tensor(y), (x * x).as_subclass(
            torch.Tensor)))

    def test_operations_by_name(self):
        a, b = (torch.randn(48, 64).bfloat16() for _ in range(2))
        d = cutelua.ops.gemm(a, b, epilogue="function(x) return "
                                            "cute.max(x, 0) end")
        want = torch.relu(a.float() @ b.float().T)
        torch.testing.assert_close(d.float(), want, rtol=1e-2, atol=1e-1)
        out = torch.empty(48, 48, dtype=torch.bfloat16)
        same = cutelua.ops.gemm(a, b, out=out)
        self.assertEqual(same.data_ptr(), out.data_ptr())
        torch.testing.assert_close(out.float(), a.float() @ b.float().T,
                                   rtol=1e-2, atol=1e-1)
        q, k, v = (torch.randn(1, 2, 32, 64).half() for _ in range(3))
        o = cutelua.ops.attention(*(x.transpose(1, 2).contiguous()
                                    for x in (q, k, v)))
        o = o[0] if isinstance(o, tuple) else o
        want = torch.nn.functional.scaled_dot_product_attention(
            q.float(), k.float(), v.float()).transpose(1, 2)
        torch.testing.assert_close(o.float(), want, rtol=2e-2, atol=2e-2)


class Operations(unittest.TestCase):
    def test_pass_opcheck_and_gradcheck(self):
        x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(square, (x,)))
        y = torch.rand(4, 6, dtype=torch.float64) + 1
        self.assertTrue(torch.autograd.gradcheck(root,
                                                 (y.requires_grad_(),)))
        self.assertEqual(passes(square, (x,)), {})
        self.assertEqual(passes(square, (torch.randn(3),)), {})
        self.assertEqual(passes(root, (y,)), {})
        self.assertEqual(passes(plain, (torch.randn(3),)), {})
        self.assertEqual(passes(two, (torch.randn(4, 6), 3)), {})
        a = torch.randn(16, 32).bfloat16()
        self.assertEqual(passes(gemm, (a, a, 2.0)), {})

    def test_compile_without_a_graph_break(self):
        def f(x):
            a, b = two(square(torch.sin(x)), 3)
            return a.sum() + b.sum()

        x = torch.randn(4, 6)
        self.assertEqual(torch._dynamo.explain(f)(x).graph_break_count, 0)
        g = torch.compile(f, fullgraph=True, backend="aot_eager",
                          dynamic=True)
        for n in (4, 5, 9):
            x = torch.randn(n, n + 2)
            torch.testing.assert_close(g(x), 3 * torch.sin(x).square().sum(),
                                       check_dtype=False)
        h = torch.compile(lambda x: square(torch.sin(x)).sum(),
                          fullgraph=True, backend="aot_eager")
        x = torch.randn(4, 6, requires_grad=True)
        h(x).backward()
        torch.testing.assert_close(x.grad, 2 * torch.sin(x) * torch.cos(x))

    def test_report_what_is_wrong(self):
        with Raises(cutelua.GradientError, "cutelua::plain has no backward"):
            plain(torch.randn(3, requires_grad=True))
        with torch.no_grad():
            plain(torch.randn(3, requires_grad=True))
        with Raises(cutelua.UnknownName, "neither a function forward"):
            cutelua.op("nothing", cutelua.loads("x = 1"))
        with Raises(cutelua.BadArgument, "is not of the form"):
            cutelua.op("odd", cutelua.loads(SQUARE), schema="Tensor x")
        for text in ("(Tensor(a!) x) -> Tensor", "(Tensor x) -> Tensor[]",
                     "(Tensor x, *, float a) -> Tensor"):
            with Raises(cutelua.BadArgument, "is not supported"):
                cutelua.op("odd", cutelua.loads(SQUARE), schema=text)
        with Raises(cutelua.Error, "cannot be registered"):
            cutelua.op("odd", cutelua.loads(SQUARE), schema="(Tenser x) -> "
                                                            "Tensor")
        with Raises(cutelua.Error, "cannot be registered"):
            cutelua.op("square", cutelua.loads(SQUARE))
        few = cutelua.op("few", cutelua.loads(
            "function forward(x) return x:clone() end"),
            schema="(Tensor x) -> (Tensor, Tensor)")
        with Raises(cutelua.TypeMismatch, "the schema of cutelua::few has 2"):
            few(torch.zeros(2))
        fails = cutelua.op("fails", cutelua.loads(
            "function forward(x) error('no good') end"))
        with Raises(cutelua.LuaError, "no good"):
            fails(torch.zeros(2))
        values = cutelua.op("values", cutelua.loads("""
function forward(x) return x:clone() end
function fake(x)
  return {shape = {x.shape[1] < 3 and 1 or 2}}
end"""))
        with Raises(cutelua.BadArgument, "extents of a fake tensor"):
            values._fake(torch.zeros(3))

    def test_cost_few_microseconds_beyond_the_call(self):
        copy = "function forward(x) return x:clone() end"
        one = cutelua.op("one", cutelua.loads(copy))
        x = torch.randn(4)

        def best(f):
            times = []
            for _ in range(20):
                begun = time.perf_counter()
                for _ in range(100):
                    f(x)
                times.append((time.perf_counter() - begun) / 100 * 1e6)
            return min(times)

        take, back = best(m.nop), best(m.all)
        call, op = best(one.forward), best(one.op)
        print("a tensor in: %.2f us; in and out: %.2f us; torch's dispatch of "
              "an operation: %.2f us" % (take, back, op - call))
        self.assertLess(take, 15)
        self.assertLess(back, 20)


class Plugin(unittest.TestCase):
    def test_checks_tests_of_pytest(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("needs pytest")
        path = support.write(FOLDER + "/test_it.py", """
import cutelua, pytest, torch
m = cutelua.load(%r)
def test_race():
    x = torch.zeros(32)
    m.race(x, grid=1, block=32, faults="return")
@pytest.mark.cutelua_checked(seconds=5)
def test_marked():
    test_race()
def test_good():
    x = torch.ones(32)
    m.add(x, x, x, grid=1, block=32)
""" % (FOLDER + "/script.lua"))
        def run(*options):
            return subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p",
                 "cutelua.pytest_plugin", "-p", "no:cacheprovider", path]
                + list(options), stdout=subprocess.PIPE,
                universal_newlines=True).stdout
        out = run()
        self.assertIn("1 failed, 2 passed", out)
        self.assertIn("CheckFailed", out)
        self.assertIn("race", out)
        self.assertIn("2 failed, 1 passed", run("--cutelua-checked"))


if __name__ == "__main__":
    support.main()
# SPDX-License-Identifier: MIT
