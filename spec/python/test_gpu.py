"""Tests calls with tensors of a GPU on a driver that records its calls
(spec/gpu/fakecuda.c), with a library that offers the exchange interface of
DLPack 1.3: streams, allocators, owners, captures."""
import ctypes
import gc
import unittest

import cutelua
import support
import xla
from test_package import Raises

P, I64 = ctypes.c_void_p, ctypes.c_int64
cu = ctypes.CDLL("libcuda.so.1")
m = cutelua.loads("""
local M = {}
function M.copy(x) return x:clone() end
function M.same(x) return x end
function M.device(x) return x.device end
function M.temporary(x)
  local y = x:clone()
  local z = y:clone()
  y:close()
  return z
end
function M.to_host(x) return x:to "host"(0) end
function M.other(x, handle)
  local s = cute.external_stream(handle, x.device)
  local y = cute.with_stream(s, function() return x:clone() end)
  s:close()
  return y
end
function M.used() return cute.gpu.memory() end
function M.lazy(x) return cute.full({4}, 3, cute.f32, {device = x.device}) end
M.add = cute.kernel("add", function(x, y, z)
  local i = cute.arch.thread_idx()
  z[i] = x[i] + y[i]
end)
return M
""")


def must(code):
    assert code == 0, code


class Memory:
    """Memory of the GPU."""

    held = 0

    def __init__(self, n):
        p = P()
        must(cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(n)))
        self.p, self.n = p.value, n
        Memory.held += 1

    def __del__(self):
        must(cu.cuMemFree_v2(P(self.p)))
        Memory.held -= 1

    def read(self, n):
        out = (ctypes.c_float * n)()
        must(cu.cuMemcpyDtoH_v2(out, P(self.p), ctypes.c_size_t(4 * n)))
        return list(out)


class DLTensor(ctypes.Structure):
    _fields_ = cutelua._core._DLTensor._fields_


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                    ("owner", P), ("deleter", DELETER),
                    ("flags", ctypes.c_uint64), ("t", DLTensor)]
SET_ERROR = ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)
open_ones, deleted, allocated = {}, [], []


@DELETER
def delete(pointer):
    at = ctypes.addressof(pointer.contents)
    deleted.append(at)
    del open_ones[at]


def managed(memory, shape):
    """Returns a managed tensor that keeps the memory until it is deleted."""
    extents = (I64 * len(shape))(*shape)
    x = Managed(1, 3, None, delete, 0, DLTensor(
        memory.p, 2, 0, len(shape), 2, 32, 1, extents, None, 0))
    open_ones[ctypes.addressof(x)] = (x, memory, extents)
    return ctypes.addressof(x)


class Tensor:
    """A tensor of a library with the exchange interface."""

    stream = None   # the library's current stream
    room = 1 << 30  # bytes that its allocator gives

    def __init__(self, n, memory=None):
        self.n = n
        self.memory = memory or Memory(4 * n)

    def read(self):
        return self.memory.read(self.n)


ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor),
                            ctypes.POINTER(P), P, SET_ERROR)
FROM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(P))
TO = ctypes.CFUNCTYPE(ctypes.c_int, P, ctypes.POINTER(P))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                          ctypes.POINTER(P))


@ALLOCATE
def allocate(like, out, error, set_error):
    t = like.contents
    n = t.shape[0]
    if n > Tensor.room:
        set_error(error, b"MemoryError", b"the library has no room")
        return -1
    out[0] = managed(Memory(max(n, 1)), (n,))
    allocated.append(n)
    return 0


@FROM
def from_object(x, out):
    out[0] = managed(x.memory, (x.n,))
    return 0


@TO
def to_object(pointer, out):
    t = Managed.from_address(pointer)
    x = Tensor(t.t.shape[0], next(
        (v[1] for v in open_ones.values() if v[1].p == t.t.data), None))
    x.owner = pointer
    t.deleter(ctypes.pointer(t))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    out[0] = id(x)
    return 0


@STREAM
def current_stream(device, ordinal, out):
    out[0] = Tensor.stream
    return 0


class Api(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("previous", P), ("allocate", ALLOCATE), ("from_object", FROM),
                ("to_object", TO), ("view", P), ("stream", STREAM)]


api = Api(1, 3, None, allocate, from_object, to_object, None, current_stream)
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
Tensor.__dlpack_c_exchange_api__ = new(ctypes.addressof(api),
                                       b"dlpack_exchange_api", None)


def stream():
    s = P()
    must(cu.cuStreamCreate(ctypes.byref(s), 1))
    return s.value


def fill(x, value, s):
    bits = ctypes.c_uint32.from_buffer(ctypes.c_float(value))
    must(cu.cuMemsetD32Async(P(x.memory.p), bits, ctypes.c_size_t(x.n), P(s)))


class Array:
    """An array of a library without DLPack."""

    def __init__(self, n, readonly=False):
        self.memory, self.n, self.readonly = Memory(4 * n), n, readonly

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": (self.n,), "typestr": "<f4",
                "data": (self.memory.p, self.readonly), "stream": 1}


class Gpu(unittest.TestCase):
    def setUp(self):
        Tensor.stream, Tensor.room = None, 1 << 30
        gc.collect()
        del deleted[:], allocated[:]

    def test_tensors_are_shared_and_released_once(self):
        x = Tensor(8)
        self.assertEqual(m.device(x), "gpu")
        self.assertEqual((len(deleted), len(open_ones)), (1, 0))
        y = m.same(x)
        self.assertEqual(y.memory.p, x.memory.p)
        for _ in range(3):
            with Raises(cutelua.Error):
                m.add(x, x, object(), grid=1, block=8)
            with Raises(cutelua.BadLaunch, "argument 2 on the host"):
                m.add(x, memoryview(bytearray(32)).cast("f"), x, grid=1,
                      block=8)
        self.assertEqual(len(open_ones), 0)

    def test_memory_comes_from_the_librarys_allocator(self):
        x = Tensor(8)
        before = dict(m.used())
        y = m.temporary(x)
        self.assertEqual(allocated, [32, 32])
        self.assertEqual(y.n, 8)
        after = m.used()
        self.assertEqual((after["used"], after["misses"]),
                         (before["used"], before["misses"]))
        # All memory except the result's has been returned.
        self.assertEqual(len(open_ones), 0)
        Tensor.room = 16
        held = Memory.held
        with Raises(cutelua.OutOfMemory, "the library has no room"):
            m.copy(x)
        gc.collect()
        self.assertEqual((Memory.held, len(open_ones)), (held, 0))
        Tensor.room = 1 << 20
        self.assertEqual(m.copy(x).n, 8)

    def test_work_runs_in_the_librarys_stream(self):
        for s in (stream(), stream(), None):
            Tensor.stream = s
            x = Tensor(8)
            fill(x, 2.5, s)
            y = m.copy(x)
            fill(x, 7, s)  # comes after the copy
            if s:
                must(cu.cuStreamSynchronize(P(s)))
            self.assertEqual(y.read(), [2.5] * 8)
            self.assertEqual(x.read(), [7] * 8)
            del x, y
            gc.collect()

    def test_work_runs_in_a_stream_that_the_script_names(self):
        s = stream()
        x = Tensor(8)
        fill(x, 2.5, s)
        y = m.other(x, s)
        fill(x, 7, s)
        must(cu.cuStreamSynchronize(P(s)))
        self.assertEqual((y.read(), x.read()), ([2.5] * 8, [7] * 8))
        must(cu.cuStreamDestroy_v2(P(s)))  # the library still owns it

    def test_calls_are_captured(self):
        s = Tensor.stream = stream()
        x = Tensor(8)
        m.copy(x)
        must(cu.cuStreamBeginCapture_v2(P(s), 0))
        y = m.copy(x)
        z = m.lazy(x)
        with Raises(cutelua.InGraph, "captured"):
            m.to_host(x)
        graph, run = P(), P()
        must(cu.cuStreamEndCapture(P(s), ctypes.byref(graph)))
        must(cu.cuGraphInstantiateWithFlags(ctypes.byref(run), graph,
                                            ctypes.c_ulonglong(0)))
        for v in (1, 2):
            fill(x, v, s)
            fill(z, 0, s)
            must(cu.cuGraphLaunch(run, P(s)))
            must(cu.cuStreamSynchronize(P(s)))
            self.assertEqual((y.read(), z.read()), ([v] * 8, [3] * 4))
        must(cu.cuGraphExecDestroy(run))
        must(cu.cuGraphDestroy(graph))

    def test_the_callers_context_stays_current(self):
        def current():
            c = P()
            must(cu.cuCtxGetCurrent(ctypes.byref(c)))
            return c.value

        x = Tensor(8)
        m.copy(x)
        ours = current()
        must(cu.cuCtxSetCurrent(P(77)))
        m.copy(x)
        self.assertEqual(current(), 77)
        with Raises(cutelua.Error):
            m.add(x, x, x, grid=0.5)
        self.assertEqual(current(), 77)
        must(cu.cuCtxSetCurrent(P(ours)))

    def test_kernels_do_not_write_memory_for_reading_only(self):
        x = Array(8, readonly=True)
        for _ in range(2):
            with Raises(cutelua.BadArgument, "writes argument 3, whose memory "
                        "another library shares for reading only"):
                m.add(x, x, x, grid=1, block=8)

    def test_memory_of_the_array_interface(self):
        x = Array(8)
        fill(x, 4, None)
        y = m.copy(x)
        self.assertEqual((y.device, y.shape), ("cuda:0", (8,)))
        d = y.__cuda_array_interface__
        self.assertEqual((d["shape"], d["typestr"], d["strides"]),
                         ((8,), "<f4", (4,)))
        z = m.copy(y)
        used = m.used()["used"]
        del y, z, d
        gc.collect()
        m.copy(x)
        gc.collect()
        m.copy(x)
        # Blocks that Python has released are used again.
        self.assertLess(m.used()["used"], used + 1)
        with cutelua.stream(stream()):
            self.assertEqual(m.device(x), "gpu")

    def test_tensors_of_lua_serve_later_calls(self):
        n = cutelua.loads("""
function copies(x, y) return x:clone(), y and y:clone() end
function names(x, y) return ("%p"):format(x), ("%p"):format(y) end
function holds(x) return function() return x:clone() end end
function fails(x) error("no good") end""")
        for f in (n.copies, n.names, n.holds, n.fails):
            f._flags = 2  # as those of cute.ops
        a, b, c = Tensor(8), Tensor(8), Tensor(4)
        for value, x in ((1, a), (2, b), (3, c)):
            fill(x, value, None)
        for x, y in ((a, b), (b, a), (c, a), (a, a)):
            got = n.copies(x, y)
            must(cu.cuCtxSynchronize())
            self.assertEqual([t.read() for t in got], [x.read(), y.read()])
            self.assertEqual(len(open_ones), 0)
            del got
            gc.collect()
        first, second = n.names(a, b)
        self.assertNotEqual(first, second)
        self.assertEqual(n.names(b, a), (first, second))
        self.assertEqual(n.names(c, a)[1], first)
        # A tensor that an object refers to after the call stays closed.
        held = n.holds(a)
        for x in (a, b):
            n.copies(x, x)
            with Raises(cutelua.Closed):
                held()
        for _ in range(3):
            with Raises(cutelua.LuaError, "no good"):
                n.fails(a)
        self.assertEqual(len(open_ones), 0)
        # Uses more kinds of tensors than Lua keeps for later calls.
        for k in list(range(1, 100)) * 2:
            x = Tensor(k)
            fill(x, k, None)
            y = n.copies(x, None)[0]
            must(cu.cuCtxSynchronize())
            self.assertEqual(y.read(), [k] * k)

    def test_programs_of_xla_call_functions(self):
        s = stream()
        square = cutelua.loads("function f(x) return x:clone(), x end").f
        g = square.state._run("for_xla", square, 1, None)
        x, y, z = Tensor(8), Tensor(8), Tensor(8)
        frame = xla.Frame([x], [y, z], s, dict(
            process=xla.TOKEN, state=g._state, number=g.number))
        fill(x, 2.5, s)
        self.assertIsNone(frame.run())
        fill(x, 7, s)  # comes after the copies
        must(cu.cuStreamSynchronize(P(s)))
        self.assertEqual((y.read(), z.read()), ([2.5] * 8, [2.5] * 8))
        frame = xla.Frame([x], [y], s, dict(
            process=xla.TOKEN, state=g._state, number=g.number))
        self.assertIn("the function returned 2 results", frame.run())
        frame = xla.Frame([x], [y, z], s, dict(process=1))
        self.assertIn("another process", frame.run())

    def test_programs_of_xla_with_wrong_structures_are_rejected(self):
        s, x, y = stream(), Tensor(8), Tensor(8)
        f = cutelua.loads("function f(x) return x:clone() end").f
        g = f.state._run("for_xla", f, 1, None)
        names = dict(process=xla.TOKEN, state=g._state, number=g.number)

        def frame(**integers):
            return xla.Frame([x], [y], s, dict(names, **integers))

        self.assertIsNone(frame().run())
        self.assertIn("names no function", frame(state=0).run())
        self.assertIn("does not exist", frame(number=1 << 40).run())
        for field, value, what in (
                ("rank", -1, "more than 64 modes"),
                ("rank", 65, "more than 64 modes"),
                ("rank", (1 << 32) + 1, "more than 64 modes"),
                ("type", -1, "elements of a type"),
                ("type", 13, "elements of a type"),
                ("type", 1 << 20, "elements of a type")):
            c = frame()
            setattr(c.buffers[0], field, value)
            self.assertIn(what, c.run())
        c = frame()
        for name in ("arguments", "results"):
            for n in (-1, 1 << 40):
                c = frame()
                getattr(c.call, name).n = n
                self.assertIn("number of arrays is wrong", c.run())
        c = frame()
        c.call.size = 64
        self.assertIn("version of XLA's interface", c.run())

    def test_a_kernel_gets_the_tensors_addresses(self):
        x, y, z = Tensor(8), Tensor(8), Tensor(8)
        try:
            m.add(x, y, z, grid=1, block=8)
        except cutelua.NoNvrtc:
            self.skipTest("needs NVRTC")
        self.assertEqual(len(open_ones), 0)


if __name__ == "__main__":
    support.main()
# SPDX-License-Identifier: MIT
