"""The operations of cute.ops on Python's tensors.

    y = cutelua.ops.gemm(a, b, epilogue="function(x) return cute.max(x, 0) end")
    v, i = cutelua.ops.topk(x, 8)

Keywords are the operation's options. A text that begins with "function(" is a
Lua function. docs/ops.md describes the operations.
"""
from ._core import Operation, default


def __getattr__(name):
    if name.startswith("_") or default()._run("operation", name) is None:
        raise AttributeError("cutelua.ops has no operation %r (docs/ops.md "
                             "lists them)" % name)
    f = globals()[name] = Operation(name)
    return f
