"""Tests the package cutelua with NumPy arrays and scalars."""
import unittest

import numpy as np

import cutelua
import support
from test_package import Raises

m = cutelua.load(support.write(support.folder() + "/script.lua",
                               support.SCRIPT))


class NumPy(unittest.TestCase):
    def test_arrays_are_shared_and_come_back_as_arrays(self):
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        for a in (x, x.T, np.asfortranarray(x), x[1:, ::2], x[:0],
                  np.broadcast_to(x[0], (3, 6)), np.float32([5])):
            y = m.square(a)
            self.assertIsInstance(y, np.ndarray)
            self.assertEqual(y.dtype, a.dtype)
            np.testing.assert_array_equal(y, a * a)
        m.double(x)
        self.assertEqual(x[3, 5], 46)
        self.assertIs(type(np.from_dlpack(m.all(memoryview(x)))), np.ndarray)

    def test_types_are_kept(self):
        for name, ours in cutelua._core.NAMES.items():
            dtype = getattr(np, name, None)
            if name == "bool":
                dtype = np.bool_
            if dtype is None or cutelua.TYPES[ours][2] is None:
                continue
            self.assertEqual(m.kind(np.ones(3, dtype)), ours)
            self.assertEqual(m.all(np.ones(3, dtype)).dtype, dtype)
        for dtype in (np.complex64, "U3", "O", "M8[s]", np.longdouble):
            with Raises(TypeError, "not supported"):
                m.kind(np.zeros(3, dtype))
        with Raises(cutelua.TypeMismatch, "big-endian"):
            m.kind(np.zeros(3, ">f4"))
        big = np.array([(1 << 40) + 5, -1], np.int64)
        self.assertEqual(m.all(big).tolist(), big.tolist())

    def test_scalars_are_numbers(self):
        self.assertEqual(m.all(np.bool_(True), np.int64(-3), np.float32(0.5),
                               np.uint64((1 << 63) + 1)),
                         (True, -3, 0.5, -(1 << 63) + 1))
        self.assertIs(m.all(np.bool_(False)), False)
        self.assertEqual(m.kind(np.array(3.0, np.float32)), "f32")
        self.assertEqual(m.all(np.dtype("float16"), np.int8), ("f16", "i8"))

    def test_arrays_for_reading_only_are_not_written(self):
        x = np.ones(32, np.float32)
        x.flags.writeable = False
        self.assertEqual(m.square(x).sum(), 32)
        with Raises(cutelua.BadArgument, "for reading only"):
            m.add(x, x, x, grid=1, block=32)
        y = np.zeros_like(x)
        m.add(x, x, y, grid=1, block=32)
        self.assertEqual(y.sum(), 64)

    def test_arrays_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("needs ml_dtypes")
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            dtype = getattr(ml_dtypes, name)
            x = np.arange(6).astype(dtype).reshape(2, 3)
            self.assertEqual(m.kind(x), cutelua._core.NAMES[name])
            y = m.all(x.T)
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(y.astype(np.float32),
                                          x.T.astype(np.float32))


if __name__ == "__main__":
    support.main()
# SPDX-License-Identifier: MIT
