"""cutelua: kernels and operations written in Lua, for Python's tensors.

    import cutelua
    gelu = cutelua.load("gelu.lua").gelu
    y = gelu(x)          # x: a tensor of torch, NumPy, JAX, CuPy ...

Tensors are exchanged without a copy. CPU tensors run on the simulator, CUDA
tensors on their GPU, in the current stream and allocator of torch.
"""
from ._core import (  # noqa: F401
    Error, GradientError, BadArgument, TypeMismatch, ShapeMismatch, Misaligned,
    UnknownName, BadLaunch, KernelFault, LimitReached, OutOfMemory, FileError,
    NoGpu, NoNvrtc, CompileFailed, DriverError, Closed, InGraph, LuaError,
    State, Function, Module, Tensor, DType, stream, default, TYPES,
    version as __version__)

for _name in TYPES:
    globals()[_name] = DType(_name)


def load(path):
    """Runs a script, and returns its functions and kernels as attributes.

    These are the fields of the table that the script returns, and its global
    variables. `cute` is a global of the script.
    """
    return default().load(path)


def loads(text, name="script"):
    """Runs a script given as text; see load."""
    return default().loads(text, name)


def op(name, script, schema=None):
    """Registers an operation of torch from a script, and returns it.

    See cutelua.torch_op.
    """
    from .torch_op import op as register
    return register(name, script, schema)


def checked(f=None, *, seconds=10.0, orders=None):
    """Runs each launch of a test on the simulator under all checks.

    Use it as a decorator, with or without options, or as a context manager:
    with cutelua.checked(): ... Each launch is checked for races, bounds,
    undefined values and deadlocks in every schedule that the limits permit. A
    finding raises CheckFailed.
    """
    from .check import checked as make
    guard = make(seconds=seconds, orders=orders)
    return guard(f) if f else guard


def __getattr__(name):
    if name in ("ops", "jax"):
        import importlib
        return importlib.import_module("." + name, __name__)
    if name == "CheckFailed":
        from .check import CheckFailed
        return CheckFailed
    raise AttributeError("module 'cutelua' has no attribute %r" % name)
