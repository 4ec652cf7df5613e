"""Loads libcutelua, and converts what its C code does not know."""
import ctypes
import os
import sys
import threading

_HERE = os.path.dirname(os.path.abspath(__file__))
_PATH = os.environ.get("CUTELUA_LIBRARY") or os.path.join(_HERE,
                                                          "libcutelua.so")
_lib = ctypes.CDLL(_PATH)     # releases Python's lock
_held = ctypes.PyDLL(_PATH)   # keeps it

_u64, _ptr, _text = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_char_p


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("flags", _u64), ("alloc", _ptr),
                ("alloc_ud", _ptr), ("print", _ptr), ("print_ud", _ptr),
                ("memory", _u64), ("instructions", _u64),
                ("milliseconds", _u64)]


def _declare(name, result, *arguments, lib=_lib):
    f = getattr(lib, name)
    f.restype, f.argtypes = result, arguments
    return f


_object = ctypes.py_object
_open = _declare("cutelua_open", ctypes.c_int, _ptr, _ptr)
_error_text = _declare("cutelua_error", _text, _ptr)
_error_kind = _declare("cutelua_error_kind", _text, _ptr)
_error_file = _declare("cutelua_error_file", _text, _ptr)
_error_line = _declare("cutelua_error_line", ctypes.c_int, _ptr)
_status_text = _declare("cutelua_status_text", _text, ctypes.c_int)
_load_text = _declare("cutelua_load_text", ctypes.c_int, _ptr, _text,
                      ctypes.c_size_t, _text, _ptr)
_find = _declare("cutelua_find", ctypes.c_int, _ptr, _u64, _text, _ptr)
_release = _declare("cutelua_release", ctypes.c_int, _ptr, _u64)
_memory = _declare("cutelua_memory", ctypes.c_int, _ptr, _ptr, _ptr)
_version = _declare("cutelua_version", _text)
_call = _declare("cutelua_python_call", _object, _ptr, _u64, _object, _object,
                 ctypes.c_uint, _ptr, lib=_held)
_capsule = _declare("cutelua_python_capsule", _object, _ptr, ctypes.c_int, _ptr,
                    ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                    ctypes.c_int, _object, lib=_held)
_take = _declare("cutelua_python_take", _ptr, _object, lib=_held)
_drop = _declare("cutelua_python_drop", None, _ptr, lib=_held)
_share = _declare("cutelua_python_share", _object, _ptr, ctypes.c_int, _object,
                  lib=_held)
_name_stream = _declare("cutelua_python_stream", None, _ptr, lib=_held)
_choose_stream = _declare("cutelua_python_choose", None, _ptr, lib=_held)
_Callable = _declare("cutelua_python_class", _object, ctypes.c_int, _ptr,
                     lib=_held)(
    object.__basicsize__,
    ctypes.cast(ctypes.pythonapi.PyType_FromSpec, _ptr))

version = _version().decode()

# ---- errors ----


class Error(RuntimeError):
    """An error of cutelua or of a script.

    kind: the error's name, such as "bad-argument" (docs/errors.md); file and
    line: where the script raised it ("" and 0 if unknown); text: the whole
    message with its details.
    """

    kind = "error"

    def __init__(self, text, kind=None, file="", line=0):
        super().__init__(text)
        self.text, self.file, self.line = text, file, line
        if kind:
            self.kind = kind


_BASES = {
    "bad-argument": ("BadArgument", ValueError),
    "type-mismatch": ("TypeMismatch", TypeError),
    "shape-mismatch": ("ShapeMismatch", ValueError),
    "misaligned": ("Misaligned", ValueError),
    "unknown-name": ("UnknownName", LookupError),
    "bad-launch": ("BadLaunch", ValueError),
    "kernel-fault": ("KernelFault", RuntimeError),
    "limit": ("LimitReached", RuntimeError),
    "out-of-memory": ("OutOfMemory", MemoryError),
    "io": ("FileError", OSError),
    "no-gpu": ("NoGpu", RuntimeError),
    "no-nvrtc": ("NoNvrtc", RuntimeError),
    "compile-failed": ("CompileFailed", RuntimeError),
    "driver-error": ("DriverError", RuntimeError),
    "closed": ("Closed", ValueError),
    "in-graph": ("InGraph", RuntimeError),
    "lua": ("LuaError", RuntimeError),
}
_BY_KIND = {}
for _kind, (_name, _base) in _BASES.items():
    _bases = (Error,) if issubclass(Error, _base) else (Error, _base)
    _BY_KIND[_kind] = type(_name, _bases, {
        "kind": _kind, "__module__": "cutelua",
        "__doc__": "An error of the kind " + _kind + "."})
    globals()[_name] = _BY_KIND[_kind]


class GradientError(Error):
    """A tensor requires a gradient, but the function has no backward."""

    kind = "no-gradient"


def make_error(text, kind="bad-argument", file="", line=0):
    """Returns the exception of a kind of errors."""
    return _BY_KIND.get(kind, Error)(text, kind, file, line)


# ---- states ----


class _Thread(threading.local):
    """What each thread has of its own."""

    stream = None  # handle of the stream of cutelua.stream


_tls = _Thread()
_states = {}  # states by address; they are never closed


class State:
    """A Lua state: scripts that share modules, kernels and memory.

    memory: limit of host memory in bytes; seconds and instructions: limits of
    each call. 0 means no limit. A call that reaches a limit raises OutOfMemory
    or LimitReached; the state remains usable.
    """

    def __init__(self, memory=0, seconds=0, instructions=0):
        ms = max(int(seconds * 1000), 1) if seconds else 0
        o = _Options(ctypes.sizeof(_Options), memory=memory,
                     instructions=instructions, milliseconds=ms)
        state = _ptr()
        status = _open(ctypes.byref(o), ctypes.byref(state))
        if status != 0:
            raise make_error(_status_text(status).decode(), "out-of-memory")
        self._state = state.value
        self._dead = []  # references that no Function has any more
        _states[self._state] = self
        number = _u64()
        code = b"return require 'cute.python'"
        self._check(_load_text(state, code, len(code), b"python",
                               ctypes.byref(number)))
        self._parts = {}
        for name in ("load", "shapes", "watch", "add_error", "findings",
                     "operation", "arity", "for_xla"):
            f = _u64()
            self._check(_find(state, number, name.encode(), ctypes.byref(f)))
            self._parts[name] = f.value

    def _error(self, status):
        text = _error_text(self._state).decode(errors="replace")
        kind = _error_kind(self._state).decode()
        if not text or status in (5, 6):
            text, kind = _status_text(status).decode(), "bad-argument"
        return make_error(text, kind, _error_file(self._state).decode(),
                          _error_line(self._state))

    def _check(self, status):
        if status != 0:
            raise self._error(status)

    def _run(self, part, *args):
        return _call(self._state, self._parts[part], args, None, 1, None)

    @property
    def memory(self):
        """Bytes of host memory that the state uses, and the most so far."""
        used, peak = _u64(), _u64()
        self._check(_memory(self._state, ctypes.byref(used),
                            ctypes.byref(peak)))
        return used.value, peak.value

    def load(self, path):
        """Runs a script; see cutelua.load."""
        path = os.fspath(path)
        try:
            with open(path, "rb") as f:
                text = f.read()
        except OSError as e:
            raise make_error("%s cannot be read: %s [io]"
                             % (path, e.strerror), "io", path) from None
        return self._module(text, "@" + path, path)

    def loads(self, text, name="script"):
        """Runs a script given as text; see cutelua.loads."""
        return self._module(text, "=" + name, name)

    def _module(self, text, chunk, path):
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        parts = self._run("load", text, chunk)
        return Module(self, path, parts)


_default = None
_default_lock = threading.Lock()


def default():
    """Returns the state of the process, which has no limits."""
    global _default
    if _default is None or _default_pid != os.getpid():
        _make_default()
    return _default


def _make_default():
    global _default, _default_pid
    with _default_lock:
        if _default is None or _default_pid != os.getpid():
            _default, _default_pid = State(), os.getpid()


_default_pid = 0


class Function(_Callable):
    """A Lua function or kernel.

    f(x, y, alpha=2): positional arguments are the function's, keywords become
    a table of options, the last argument. For a kernel, keywords are launch
    options: k(x, y, grid=8, block=128).

    Tensors are those of any library with DLPack, of __cuda_array_interface__,
    and buffers such as array.array. They are shared, not copied. CPU tensors
    run on the simulator. A script must not keep them: they are closed when the
    function returns, as are the tensors that it returns.
    """

    __slots__ = ("name", "state", "__weakref__")

    def __init__(self, number, state):
        self.number, self.name, self._state = number, "function", state
        self.state = _states[state]
        dead = self.state._dead
        while len(dead) > 100:
            _release(state, dead.pop())

    def __del__(self):
        self.state._dead.append(self.number)

    def _without_grad(self):
        """Returns a function that takes tensors that require gradients."""
        return _Quiet(self)

    def __repr__(self):
        return "<cutelua function %s>" % self.name


class _Quiet(_Callable):
    __slots__ = ("function",)

    def __init__(self, f):
        self.function, self.number, self._state = f, f.number, f._state
        self._flags = 1


class Module:
    """The functions, kernels and values of a script, as attributes."""

    def __init__(self, state, path, parts):
        self.__dict__.update(parts)
        self.__dict__["__file__"] = path
        self.__dict__["_cutelua_state"] = state
        for name, v in parts.items():
            if type(v) is Function:
                v.name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        names = sorted(n for n in self.__dict__ if not n.startswith("_"))
        raise AttributeError("the script %s has no %s; it has %s" % (
            self.__file__, name, ", ".join(names) or "no functions"))

    def __repr__(self):
        return "<cutelua script %s>" % self.__file__


class stream:
    """with cutelua.stream(handle): calls launch on this CUDA stream.

    handle: the stream's address as an integer. Calls with tensors of torch use
    torch's current stream by themselves.
    """

    def __init__(self, handle):
        self.handle = int(handle)

    def __enter__(self):
        self._before = _tls.stream
        _tls.stream = self.handle
        _choose_stream(self.handle)
        return self

    def __exit__(self, *_):
        _tls.stream = self._before
        _choose_stream(self._before)


# ---- element types ----

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
# For each of our types: code and bits of DLPack, NumPy's typestr.
TYPES = {
    "boolean": (_BOOL, 8, "|b1"), "i8": (_INT, 8, "|i1"),
    "i16": (_INT, 16, "<i2"), "i32": (_INT, 32, "<i4"),
    "i64": (_INT, 64, "<i8"), "u8": (_UINT, 8, "|u1"),
    "u16": (_UINT, 16, "<u2"), "u32": (_UINT, 32, "<u4"),
    "u64": (_UINT, 64, "<u8"), "f16": (_FLOAT, 16, "<f2"),
    "f32": (_FLOAT, 32, "<f4"), "f64": (_FLOAT, 64, "<f8"),
    "bf16": (_BFLOAT, 16, None), "e4m3": (10, 8, None), "e5m2": (12, 8, None),
    "ue8m0": (14, 8, None), "e2m3": (15, 6, None), "e3m2": (16, 6, None),
    "e2m1": (17, 4, None), "i4": (_INT, 4, None), "u4": (_UINT, 4, None),
}
_BY_CODE = {v[:2]: k for k, v in TYPES.items()}
_BY_STR = {v[2]: k for k, v in TYPES.items() if v[2]}
# Names that other libraries give to the types.
NAMES = {
    "bool": "boolean", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64",
    "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "float8_e8m0fnu": "ue8m0", "float6_e2m3fn": "e2m3",
    "float6_e3m2fn": "e3m2", "float4_e2m1fn": "e2m1", "int4": "i4",
    "uint4": "u4",
}
_FORMATS = {"?": "boolean", "b": "i8", "B": "u8", "c": "u8", "h": "i16",
            "H": "u16", "i": "i32", "I": "u32", "l": "i64", "L": "u64",
            "q": "i64", "Q": "u64", "e": "f16", "f": "f32", "d": "f64"}


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", _ptr), ("device", ctypes.c_int32),
                ("id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", _u64)]


class _Managed(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("owner", _ptr), ("deleter", _ptr), ("flags", _u64),
                ("t", _DLTensor)]


class Tensor:
    """A tensor in cutelua's memory, which other libraries can share.

    np.from_dlpack(t), torch.from_dlpack(t) and the like take it without a copy.
    """

    def __init__(self, capsule):
        self._p = _take(capsule)
        t = _Managed.from_address(self._p).t
        self.dtype = _BY_CODE.get((t.code, t.bits))
        if not self.dtype:
            raise make_error("a tensor cannot have elements of DLPack's type "
                             "%d with %d bits" % (t.code, t.bits))
        self.shape = tuple(t.shape[:t.ndim])
        self.strides = tuple(t.strides[:t.ndim])
        self.device = "cpu" if t.device == 1 else "cuda:%d" % t.id
        self.data_ptr = (t.data or 0) + t.byte_offset

    def __del__(self):
        p, self._p = getattr(self, "_p", None), None
        if p:
            _drop(p)

    def _check_open(self):
        if not self._p:
            raise make_error("the tensor was closed", "closed")

    def __dlpack_device__(self):
        self._check_open()
        t = _Managed.from_address(self._p).t
        return t.device, t.id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None,
                   copy=None):
        if copy:
            raise BufferError("a cutelua.Tensor is exported without a copy")
        if dl_device is not None and dl_device != self.__dlpack_device__():
            raise BufferError("a cutelua.Tensor stays on its device")
        self._check_open()
        new = max_version is not None and max_version[0] >= 1
        return _share(self._p, int(new), self)

    def _interface(self):
        self._check_open()
        code, bits, typestr = TYPES[self.dtype]
        if not typestr:
            raise AttributeError("elements of %s have no array interface"
                                 % self.dtype)
        return {"version": 3, "shape": self.shape, "typestr": typestr,
                "data": (self.data_ptr, False),
                "strides": tuple(s * bits // 8 for s in self.strides)}

    @property
    def __array_interface__(self):
        if self.device != "cpu":
            raise AttributeError("the tensor is on a GPU")
        return self._interface()

    @property
    def __cuda_array_interface__(self):
        if self.device == "cpu":
            raise AttributeError("the tensor is on the CPU")
        return dict(self._interface(), stream=1)

    def __len__(self):
        return self.shape[0]

    def tolist(self):
        """Returns the elements as nested lists."""
        self._check_open()
        code, bits, typestr = TYPES[self.dtype]
        kind = {v: k for k, v in _FORMATS.items() if k not in "cli"}
        kind["i32"] = "i"
        if self.device != "cpu" or self.dtype not in kind:
            raise make_error("tolist: elements of %s on %s cannot be read"
                             % (self.dtype, self.device), "type-mismatch")
        size = bits // 8
        import struct

        def part(at, dims):
            if not dims:
                raw = ctypes.string_at(self.data_ptr + at * size, size)
                return struct.unpack("<" + kind[self.dtype], raw)[0]
            n, s = dims[0]
            return [part(at + i * s, dims[1:]) for i in range(n)]

        return part(0, list(zip(self.shape, self.strides)))

    def numpy(self):
        """Returns a NumPy array on the same memory."""
        import numpy
        return numpy.from_dlpack(self)

    def __repr__(self):
        return "cutelua.Tensor(shape=%s, dtype=%s, device=%s)" % (
            self.shape, self.dtype, self.device)


class DType(str):
    """An element type, such as cutelua.bf16; a string of its name."""

    def __repr__(self):
        return "cutelua." + self


# ---- objects that the C code does not know ----


class _Buffer(ctypes.Structure):
    _fields_ = [("buf", _ptr), ("obj", _object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", _text),
                ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
                ("internal", _ptr)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_Buffer)]


class _Owner:
    """Keeps the memory of an object with the buffer protocol."""

    def __init__(self, x):
        self.b = _Buffer()
        _get_buffer(x, ctypes.byref(self.b), 0x1C | 0x4)

    def __del__(self):
        _release_buffer(ctypes.byref(self.b))


def _make(data, dtype, shape, strides, device, ordinal, readonly, owner):
    n = len(shape)
    extents = (ctypes.c_int64 * (2 * n + 1))(*shape, *strides)
    code, bits = TYPES[dtype][:2]
    return _capsule(data, n, extents, code, bits, device, ordinal, readonly,
                    owner)


def _of_interface(d, device, ordinal, owner, dtype=None):
    dtype = dtype or _BY_STR.get(d["typestr"].replace("=", "<"))
    if dtype is None:
        raise make_error("elements of the type %s are not supported"
                         % d["typestr"], "type-mismatch")
    shape, size = tuple(d["shape"]), TYPES[dtype][1] // 8
    strides = d.get("strides")
    if strides is None:
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= max(n, 1)
    else:
        for s in strides:
            if s % size:
                raise make_error("a stride of %d bytes is not a multiple of "
                                 "the %d bytes of %s" % (s, size, dtype),
                                 "misaligned")
        strides = [s // size for s in strides]
    data, readonly = d["data"]
    return _make(data or None, dtype, shape, strides, device, ordinal,
                 int(readonly), owner)


def _of_buffer(x):
    try:
        owner = _Owner(x)
    except (TypeError, BufferError):
        return None
    b = owner.b
    kind = (b.format or b"B").decode().lstrip("@=<")
    if kind not in _FORMATS:
        raise make_error("a buffer with elements of the format %r is not "
                         "supported" % kind, "type-mismatch")
    dtype = _FORMATS[kind]
    size = TYPES[dtype][1] // 8
    if b.itemsize != size:
        raise make_error("a buffer with elements of %d bytes is not supported"
                         % b.itemsize, "type-mismatch")
    return _make(b.buf, dtype, b.shape[:b.ndim],
                 [s // size for s in b.strides[:b.ndim]], 1, 0, b.readonly,
                 owner)


def _current_stream(module):
    if module == "torch":
        return sys.modules["torch"].cuda.current_stream().cuda_stream
    if module == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return None


def _of_dlpack(x, module):
    options = {"max_version": (1, 3)}
    handle = None
    if x.__dlpack_device__()[0] == 2:
        handle = _tls.stream or _current_stream(module)
        options["stream"] = handle or 1
        _name_stream(handle)
    try:
        return x.__dlpack__(**options)
    except TypeError:
        del options["max_version"]
        return x.__dlpack__(**options)


def _of_torch(x):
    """Describes a tensor of a torch without DLPack's interface in C."""
    if x.requires_grad:
        check_grad(x)
        x = x.detach()
    torch = sys.modules["torch"]
    name = NAMES.get(str(x.dtype)[6:])
    kind = {"cpu": 1, "cuda": 2}.get(x.device.type)
    if (not name or not kind or x.layout is not torch.strided or x.is_conj()
            or x.is_neg() or TYPES[name][1] < 8):
        return _of_dlpack(x, "torch")
    if kind == 2:
        _name_stream(_tls.stream
                     or torch.cuda.current_stream(x.device).cuda_stream)
    return _make(x.data_ptr() or None, name, x.shape, x.stride(), kind,
                 x.device.index or 0, 0, x)


def _of_numpy(x, module):
    kind = x.dtype.kind
    if x.shape == () and not hasattr(x, "__dlpack__"):  # a scalar
        if kind == "b":
            return bool(x)
        return int(x) if kind in "iu" else float(x)
    name = NAMES.get(x.dtype.name)
    if name and TYPES[name][2] is None:  # a type of ml_dtypes
        return _of_interface(x.__array_interface__, 1, 0, x, name)
    if not name:
        raise make_error("elements of NumPy's type %s are not supported"
                         % x.dtype, "type-mismatch")
    if not x.dtype.isnative:
        raise make_error("elements of NumPy's type %s are big-endian: "
                         "x.astype(x.dtype.newbyteorder('<')) converts them"
                         % x.dtype, "type-mismatch")
    if not x.flags.writeable:
        return _of_interface(x.__array_interface__, 1, 0, x, name)
    return _of_dlpack(x, module)


def convert(x):
    """Returns a capsule of DLPack for a tensor, or a value of a basic type."""
    for base in (bool, int, float, str, dict):
        if isinstance(x, base):
            return base(x)
    module = type(x).__module__.split(".")[0]
    torch = sys.modules.get("torch")
    if torch and isinstance(x, torch.Tensor):
        return _of_torch(x)
    if isinstance(x, tuple):
        return tuple(x)
    if isinstance(x, list):
        return list(x)
    if module in ("numpy", "ml_dtypes") and hasattr(x, "shape") \
            and hasattr(x, "dtype"):
        return _of_numpy(x, module)
    name = (x.__name__.rstrip("_") if isinstance(x, type)
            else str(x).replace("torch.", ""))
    if name in NAMES and (isinstance(x, type) or module != "builtins"):
        return NAMES[name]
    if hasattr(x, "__dlpack__"):
        return _of_dlpack(x, module)
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        handle = interface.get("stream")
        _name_stream(_tls.stream or handle)
        return _of_interface(interface, 2, getattr(x, "device_id", 0) or 0, x)
    capsule = _of_buffer(x)
    if capsule is not None:
        return capsule
    for base, method in ((int, "__index__"), (float, "__float__")):
        if hasattr(x, method):
            return base(x)
    raise make_error("an argument of type %s.%s is neither a tensor nor a "
                     "value of Lua" % (type(x).__module__, type(x).__name__),
                     "type-mismatch")


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes, _get_pointer.restype = [_object, _text], _ptr


def classify(kind):
    """Returns the address of a type's DLPackExchangeAPI, or 0."""
    module = kind.__module__.split(".")[0]
    if module == "torch" and kind.__name__ not in ("Tensor", "Parameter"):
        return 0
    api = getattr(kind, "__dlpack_c_exchange_api__", None)
    return _get_pointer(api, b"dlpack_exchange_api") if api else 0


def wrap(capsule, like):
    """Returns a result in the library of the argument `like`."""
    t = Tensor(capsule)
    module = type(like).__module__.split(".")[0]
    if module == "jax" or module == "jaxlib":
        import jax
        # JAX silently converts 64-bit types to 32 bits if they are not enabled.
        if TYPES[t.dtype][1] == 64 and not jax.config.jax_enable_x64:
            return t
        return jax.dlpack.from_dlpack(t)
    library = sys.modules.get(module)
    if module not in ("numpy", "torch", "cupy", "tvm_ffi"):
        return t
    try:
        return library.from_dlpack(t)
    except (BufferError, TypeError, RuntimeError):
        if module != "numpy" or "ml_dtypes" not in sys.modules:
            return t
    import ml_dtypes
    name = next(k for k, v in NAMES.items() if v == t.dtype)
    size = TYPES[t.dtype][1] // 8
    reach = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.strides))
    raw = (ctypes.c_uint8 * (0 if 0 in t.shape else reach * size)
           ).from_address(t.data_ptr)
    raw._tensor = t  # the array keeps `raw`, which keeps the memory
    return library.ndarray(t.shape, getattr(ml_dtypes, name), raw, 0,
                           [s * size for s in t.strides])


def failed(status, state):
    """Raises the error of the call that failed."""
    raise _states[state]._error(status)


def check_grad(x):
    """Raises an error if gradients of a tensor are recorded."""
    if sys.modules["torch"].is_grad_enabled():
        raise GradientError("an argument requires a gradient, but a call of a "
                            "script records none: write torch.no_grad(), or "
                            "register an operation with a backward by "
                            "cutelua.op")


_operations = []  # operations of cute.ops


def _forget_operations():
    """Detaches operations from the parent's state after fork."""
    for f in _operations:
        f._state = 0


os.register_at_fork(after_in_child=_forget_operations)


class Operation(_Callable):
    """An operation of cute.ops."""

    __slots__ = ("name", "__name__", "_function")

    def __init__(self, name):
        self.name = self.__name__ = name
        self._flags = 2
        _operations.append(self)

    def __repr__(self):
        return "<cutelua operation %s>" % self.name


def bind(operation):
    """Attaches an operation to the state of the process."""
    f = default()._run("operation", operation.name)
    operation._function, operation.number = f, f.number
    operation._state = f._state


def differentiate(operation, args, options):
    """Calls an operation of cute.ops whose gradients torch records."""
    from .gradients import call
    return call(operation, args, options or {})


def _start():
    api = ctypes.pythonapi
    names = _declare("cutelua_python_names", _text)().decode().split()
    objects = _declare("cutelua_python_objects", _text)().decode().split()
    ours = dict(bool_type=bool, int_type=int, float_type=float, str_type=str,
                tuple_type=tuple, list_type=list, dict_type=dict, none=None,
                type_error=TypeError, requires_grad="requires_grad",
                failed=failed, ref_type=Function, bind=bind,
                classify=classify, convert=convert, wrap=wrap,
                check_grad=check_grad, gradient_error=GradientError,
                differentiate=differentiate)
    _start.keep = list(ours.values())
    values = (_ptr * (len(names) + len(objects)))(
        *(ctypes.cast(getattr(api, n), _ptr).value for n in names),
        *(id(ours[o]) for o in objects))
    _declare("cutelua_python_start", None, _ptr)(values)


_start()
