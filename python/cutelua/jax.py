# SPDX-License-Identifier: MIT
"""Calls of Lua functions and kernels in programs that jax.jit compiles.

    y = cutelua.jax.call(gelu, x)                  # like x
    c = cutelua.jax.call(add, a, b, result=a, grid=8, block=128)

It works by XLA's foreign function interface.
"""
import ctypes
import os

import jax
import numpy

from ._core import Operation, _declare, _ptr, bind, make_error

_handler = _declare("cutelua_xla_handler", _ptr, ctypes.c_int,
                    ctypes.c_uint64)
_process = int.from_bytes(os.urandom(8), "little")
_TARGET = "cutelua"
_bound = {}       # functions by callable, number of arguments and options
_registered = []


def _register():
    if _registered:
        return
    for platform, gpu in (("cpu", 0), ("CUDA", 1)):
        address = _handler(gpu, _process)
        jax.ffi.register_ffi_target(
            _TARGET, jax.ffi.pycapsule(ctypes.c_void_p(address)),
            platform=platform)
    _registered.append(_process)


def _key(x):
    """Returns an object with a hash that identifies an option."""
    if isinstance(x, dict):
        return tuple((k, _key(v)) for k, v in sorted(x.items()))
    if isinstance(x, (list, tuple)):
        return tuple(_key(v) for v in x)
    return type(x), x


def _signed(x):
    return numpy.int64(x - (1 << 64) if x >> 63 else x)


def _shape(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def call(f, *arrays, result=None, **options):
    """Calls a Lua function, kernel or operation with arrays, also inside of
    jax.jit.

    result: what the results are like: an array, a jax.ShapeDtypeStruct, or a
    list of them; like the first array if absent. A function returns its
    results as tensors. A kernel gets memory for them after its arguments.
    options: constants for the function's last argument, or launch options.
    """
    _register()
    if isinstance(f, Operation):
        if not f._state:
            bind(f)
        f = f._function
    arrays = [jax.numpy.asarray(x) for x in arrays]
    if result is None:
        if not arrays:
            raise make_error("cutelua.jax.call without arrays needs `result`")
        result = arrays[0]
    several = isinstance(result, (list, tuple))
    shapes = [_shape(r) for r in (result if several else [result])]
    options = {k: v for k, v in options.items() if v is not None}
    key = f, len(arrays), _key(options)
    g = _bound.get(key)
    if g is None:
        g = _bound[key] = f.state._run("for_xla", f, len(arrays),
                                       options or None)
    run = jax.ffi.ffi_call(_TARGET, shapes, has_side_effect=False,
                           vmap_method="sequential")
    out = run(*arrays, process=_signed(_process), state=_signed(g._state),
              number=_signed(g.number))
    return out if several else out[0]
