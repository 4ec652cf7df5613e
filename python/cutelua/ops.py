"""The operations of cute.ops on Python's tensors.

    y = cutelua.ops.gemm(a, b, epilogue="function(x) return cute.max(x, 0) end")
    v, i = cutelua.ops.topk(x, 8)

Keywords are the operation's options. A text that begins with "function(" is a
Lua function. docs/ops.md describes the operations.
"""
from ._core import _call, _tls, default


class Operation:
    """An operation of cute.ops."""

    __slots__ = ("name", "__name__")

    def __init__(self, name):
        self.name = self.__name__ = name

    def __call__(self, *args, **options):
        state = default()
        return _call(state._state, state._parts["op"], (self.name,) + args,
                     options or None, 0, _tls.stream)

    def __repr__(self):
        return "<cutelua operation %s>" % self.name


def __getattr__(name):
    if name.startswith("_") or not default()._run("operation", name):
        raise AttributeError("cutelua.ops has no operation %r (docs/ops.md "
                             "lists them)" % name)
    f = globals()[name] = Operation(name)
    return f
