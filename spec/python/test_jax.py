"""Tests the package cutelua with JAX, on the device that JAX selects."""
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import cutelua
import support
from test_package import Raises

m = cutelua.load(support.write(support.folder() + "/script.lua",
                               support.SCRIPT))


class Jax(unittest.TestCase):
    def test_arrays_come_back_as_arrays(self):
        for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
            x = jnp.arange(6, dtype=dtype).reshape(2, 3)
            y = m.square(x)
            self.assertIsInstance(y, jax.Array)
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(np.asarray(y, np.float32),
                                          np.asarray(x * x, np.float32))

    def test_64_bit_integers_are_not_truncated(self):
        big = cutelua.loads("function big(x) return cute.tensor("
                            "{(1 << 40) + 5}, cute.i64) end").big
        y = big(jnp.zeros(1))
        self.assertEqual(np.asarray(y.tolist()).tolist(), [(1 << 40) + 5])


call = None  # cutelua.jax.call, which needs jax.ffi


class Programs(unittest.TestCase):
    """Calls in programs that JAX compiles."""

    def setUp(self):
        global call
        if not hasattr(jax, "ffi"):
            self.skipTest("needs jax.ffi")
        call = cutelua.jax.call

    def test_call_functions(self):
        x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
        f = jax.jit(lambda x: call(m.square, jnp.sin(x)) + 1)
        for v in (x, x + 1):
            np.testing.assert_allclose(f(v), np.sin(v) ** 2 + 1, rtol=1e-6)
        np.testing.assert_array_equal(call(m.square, x), x * x)
        rows = jax.vmap(lambda r: call(m.square, r))(x)
        np.testing.assert_array_equal(rows, x * x)
        for dtype in (jnp.float16, jnp.bfloat16, jnp.int32):
            y = jax.jit(lambda x: call(m.square, x))(x.astype(dtype))
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(np.asarray(y, np.float32), x * x)

    def test_call_kernels_and_operations(self):
        a = jnp.arange(64, dtype=jnp.float32)
        f = jax.jit(lambda a, b: call(m.add, a, b, grid=2, block=32) * 2)
        np.testing.assert_array_equal(f(a, a + 1), (2 * a + 1) * 2)
        w = jnp.ones((8, 64), jnp.float32)
        like = jax.ShapeDtypeStruct((1, 8), jnp.float32)
        g = jax.jit(lambda a: call(cutelua.ops.gemm, a[None], w, result=like,
                                   alpha=2.0))
        np.testing.assert_array_equal(g(a), np.full((1, 8), 2 * 2016.0))
        top = cutelua.loads("function top(x, o) return cute.ops.topk(x, o.k) "
                            "end").top
        values, at = call(top, w * a, k=2, result=[
            jax.ShapeDtypeStruct((8, 2), jnp.float32),
            jax.ShapeDtypeStruct((8, 2), jnp.int32)])
        np.testing.assert_array_equal(values[0], [63, 62])
        np.testing.assert_array_equal(at[7], [63, 62])

    def test_report_errors(self):
        x = jnp.zeros(4, jnp.float32)
        fails = cutelua.loads("function fails(x) error('no good') end").fails
        for f in (fails, m.fails):
            with Raises(Exception, "no good"):
                call(f, x).block_until_ready()
        with Raises(Exception, "the function returned 1 results"):
            jax.block_until_ready(call(m.square, x, result=[x, x]))
        with Raises(Exception, "type that tensors cannot have"):
            call(m.square, x.astype(jnp.complex64)).block_until_ready()
        writes = cutelua.loads("return cute.kernel('writes', function(x, y) "
                               "x[0] = 1 end)").writes
        with Raises(Exception, "for reading only"):
            call(writes, x, grid=1, block=1).block_until_ready()
        with Raises(Exception, "cannot be differentiated"):
            jax.grad(lambda x: call(m.square, x).sum())(x)
        np.testing.assert_array_equal(call(m.square, x + 3), [9] * 4)


if __name__ == "__main__":
    support.main()
# SPDX-License-Identifier: MIT
