"""Launches the kernel of scale.lua from Python, by ctypes alone.

    python3 scale.py libcutelua.so scale.lua
"""
import array
import ctypes
import sys

HOST, TENSOR, NUMBER = -1, 1, 3


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("stride", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_int32), ("device", ctypes.c_int32)]


class Value(ctypes.Union):
    _fields_ = [("tensor", Tensor), ("integer", ctypes.c_int64),
                ("number", ctypes.c_double), ("string", ctypes.c_char_p),
                ("ref", ctypes.c_uint64), ("reserved", ctypes.c_uint64 * 12)]


class Arg(ctypes.Structure):
    _anonymous_ = ["value"]
    _fields_ = [("type", ctypes.c_int), ("name", ctypes.c_char_p),
                ("value", Value)]


class LaunchOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("grid", ctypes.c_uint32 * 3),
                ("block", ctypes.c_uint32 * 3),
                ("cluster", ctypes.c_uint32 * 3), ("flags", ctypes.c_uint32),
                ("device", ctypes.c_char_p), ("stream", ctypes.c_void_p),
                ("seed", ctypes.c_int64)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint64),
                ("alloc", ctypes.c_void_p), ("alloc_ud", ctypes.c_void_p),
                ("print", ctypes.c_void_p), ("print_ud", ctypes.c_void_p),
                ("memory", ctypes.c_uint64), ("instructions", ctypes.c_uint64),
                ("milliseconds", ctypes.c_uint64)]


PRINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int,
                         ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


class CuteluaError(RuntimeError):
    """An error of a script: its kind, file and line are attributes."""


class State:
    """A state; `printed` receives what scripts print."""

    def __init__(self, library, printed):
        self.lib = ctypes.CDLL(library)
        for name in ("error", "error_kind", "error_file"):
            getattr(self.lib, "cutelua_" + name).restype = ctypes.c_char_p
        self.hook = PRINT(lambda ud, stream, text, size:
                          printed(ctypes.string_at(text, size).decode()))
        options = Options(size=ctypes.sizeof(Options),
                          print=ctypes.cast(self.hook, ctypes.c_void_p))
        self.state = ctypes.c_void_p()
        self.check(self.lib.cutelua_open(ctypes.byref(options),
                                         ctypes.byref(self.state)))

    def check(self, status):
        if status == 0:
            return
        error = CuteluaError(self.lib.cutelua_error(self.state).decode())
        error.kind = self.lib.cutelua_error_kind(self.state).decode()
        error.file = self.lib.cutelua_error_file(self.state).decode()
        error.line = self.lib.cutelua_error_line(self.state)
        raise error

    def load(self, path):
        script = ctypes.c_uint64()
        self.check(self.lib.cutelua_load_file(self.state, path.encode(),
                                              ctypes.byref(script)))
        return script

    def load_text(self, text, name):
        script, data = ctypes.c_uint64(), text.encode()
        self.check(self.lib.cutelua_load_text(
            self.state, data, ctypes.c_size_t(len(data)), name.encode(),
            ctypes.byref(script)))
        return script

    def find(self, script, name):
        found = ctypes.c_uint64()
        self.check(self.lib.cutelua_find(self.state, script, name.encode(),
                                         ctypes.byref(found)))
        return found

    def launch(self, kernel, args, grid, block):
        options = LaunchOptions(size=ctypes.sizeof(LaunchOptions))
        options.grid[0], options.block[0] = grid, block
        self.check(self.lib.cutelua_launch(
            self.state, kernel, (Arg * len(args))(*args),
            ctypes.c_size_t(len(args)), ctypes.byref(options)))

    def close(self):
        self.lib.cutelua_close(self.state)


def tensor(values):
    """Describes the memory of an array of floats, without a copy."""
    arg = Arg(type=TENSOR)
    arg.tensor = Tensor(data=values.buffer_info()[0], dtype=b"f32",
                        shape=(ctypes.c_int64 * 1)(len(values)), rank=1,
                        device=HOST)
    return arg


def main():
    printed = []
    state = State(sys.argv[1], printed.append)
    script = state.load(sys.argv[2])
    x, y = array.array("f", range(256)), array.array("f", [0] * 256)
    factor = Arg(type=NUMBER)
    factor.number = 6
    state.launch(state.find(script, "scale"), [tensor(x), tensor(y), factor],
                 grid=2, block=128)
    print("y[255] =", y[255])
    state.load_text("print('two', 2)", "prints")
    print("printed", printed)
    try:
        state.load_text("\nerror 'no'", "fails")
    except CuteluaError as e:
        print(e.kind, e.file, e.line)
    state.close()


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: MIT
