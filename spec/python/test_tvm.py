# SPDX-License-Identifier: MIT
"""Tests the package cutelua with TVM-FFI."""
import unittest

import numpy as np
import tvm_ffi

import cutelua
import support

m = cutelua.load(support.write(support.folder() + "/script.lua",
                               support.SCRIPT))


class Tvm(unittest.TestCase):
    def test_tensors_come_back_as_tensors(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        y = m.square(tvm_ffi.from_dlpack(x))
        self.assertIs(type(y), tvm_ffi.Tensor)
        np.testing.assert_array_equal(np.from_dlpack(y), x * x)

    def test_functions_are_global_functions(self):
        tvm_ffi.register_global_func("cutelua.square", m.square)
        tvm_ffi.register_global_func("cutelua.fails", m.fails)
        square = tvm_ffi.get_global_func("cutelua.square")
        x = np.arange(6, dtype=np.float32)
        y = square(tvm_ffi.from_dlpack(x))
        np.testing.assert_array_equal(np.from_dlpack(y), x * x)
        with self.assertRaisesRegex(RuntimeError, "no good"):
            tvm_ffi.get_global_func("cutelua.fails")()


if __name__ == "__main__":
    support.main()
