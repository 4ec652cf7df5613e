# SPDX-License-Identifier: MIT
"""A caller of handlers of XLA's foreign function interface, in version 0.3:
its structures, and functions that answer for the GPU 0 and a stream."""
import ctypes

import cutelua

P, I32, I64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
TOKEN = 77
_errors = []


def structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


HEAD = (("size", ctypes.c_size_t), ("extensions", P))
Buffer = structure("Buffer", *HEAD, ("type", I32), ("data", P), ("rank", I64),
                   ("shape", P))
List = structure("List", *HEAD, ("n", I64), ("kinds", P), ("list", P))
Attributes = structure("Attributes", *HEAD, ("n", I64), ("kinds", P),
                       ("names", P), ("list", P))
Text = structure("Text", ("p", ctypes.c_char_p), ("n", ctypes.c_size_t))
Scalar = structure("Scalar", ("type", I32), ("value", P))
NewError = structure("NewError", *HEAD, ("message", ctypes.c_char_p),
                     ("code", I32))
StreamOf = structure("StreamOf", *HEAD, ("context", P), ("stream", P))
DeviceOf = structure("DeviceOf", *HEAD, ("context", P), ("ordinal", I32))
Call = structure("Call", *HEAD, ("api", P), ("context", P), ("stage", I32),
                 ("arguments", List), ("results", List),
                 ("attributes", Attributes), ("future", P))
ANSWER = ctypes.CFUNCTYPE(P, P)


@ANSWER
def new_error(p):
    _errors.append(NewError.from_address(p).message.decode())
    return len(_errors)


@ANSWER
def stream_of(p):
    call = StreamOf.from_address(p)
    call.stream = call.context  # the context of a Frame is its stream
    return None


@ANSWER
def device_of(p):
    DeviceOf.from_address(p).ordinal = 0
    return None


def _pointers(list_of):
    return (P * (len(list_of) + 1))(*(ctypes.addressof(x) for x in list_of))


# The API table: its head, the version, internal functions, 18 functions.
_api = (P * 24)()
_api[0], _api[2], _api[4] = 24 * 8, 24, 3 << 32
for _at, _f in ((6, new_error), (10, stream_of), (23, device_of)):
    _api[_at] = ctypes.cast(_f, P)
_handler = cutelua._core._lib.cutelua_xla_handler
_handler.restype, _handler.argtypes = P, [I32, ctypes.c_uint64]


class Frame:
    """A call with tensors of test_gpu, on a stream, with integers by name."""

    def __init__(self, arguments, results, stream, integers):
        self.keep = [_api]
        a, r = self._list(arguments), self._list(results)
        names = [Text(n.encode(), len(n)) for n in integers]
        values = [I64(v) for v in integers.values()]
        scalars = [Scalar(5, ctypes.addressof(v)) for v in values]
        kinds = (I32 * len(names))(*[3] * len(names))
        lists = _pointers(names), _pointers(scalars)
        self.keep += [names, values, scalars, kinds, lists]
        self.call = Call(ctypes.sizeof(Call), None,
                         ctypes.addressof(_api), stream, 3, a, r,
                         Attributes(0, None, len(names),
                                    ctypes.addressof(kinds),
                                    *map(ctypes.addressof, lists)), None)

    def _list(self, tensors):
        shapes = [I64(t.n) for t in tensors]
        buffers = [Buffer(0, None, 11, t.memory.p, 1, ctypes.addressof(n))
                   for t, n in zip(tensors, shapes)]
        kinds = (I32 * len(tensors))(*[1] * len(tensors))
        pointers = _pointers(buffers)
        self.keep += [shapes, buffers, kinds, pointers]
        self.buffers = buffers
        return List(0, None, len(tensors), ctypes.addressof(kinds),
                    ctypes.addressof(pointers))

    def run(self):
        """Calls the handler; returns the text of an error, or None."""
        handler = ANSWER(_handler(1, TOKEN))
        error = handler(ctypes.addressof(self.call))
        return _errors[error - 1] if error else None
