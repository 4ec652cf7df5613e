"""Tests the package cutelua with JAX on the CPU."""
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import cutelua
import support

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


if __name__ == "__main__":
    support.main()
# SPDX-License-Identifier: MIT
