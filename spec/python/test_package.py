"""Tests the package cutelua with Python's standard library alone."""
import array
import ctypes
import enum
import gc
import math
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import cutelua
import support

FOLDER = support.folder()
PATH = support.write(FOLDER + "/script.lua", support.SCRIPT)
LINE = 1 + support.SCRIPT.split("\n").index('  error("no good")')
m = cutelua.load(PATH)


def floats(*x):
    return array.array("f", x)


class Raises:
    """with Raises(kind, text): the error must be of this kind and say text."""

    def __init__(self, kind, text=""):
        self.kind, self.text = kind, text

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        assert kind is not None, "no error was raised"
        if not isinstance(value, self.kind):
            return False
        assert self.text in str(value), str(value)
        self.error = value
        return True


class Scripts(unittest.TestCase):
    def test_have_functions_kernels_and_values(self):
        self.assertEqual(m.scale, 2)
        self.assertEqual(m.names, ["a", "b"])
        self.assertIn("square", repr(m.square))
        with Raises(AttributeError, "it has add, all, double"):
            m.absent
        g = cutelua.loads("x = 3\nfunction f() return x end\n"
                          "local function hidden() end")
        self.assertEqual((g.x, g.f()), (3, 3))
        self.assertFalse(hasattr(g, "hidden"))
        k = cutelua.loads("return cute.kernel('k', function(x) x[0] = 1 end)")
        x = floats(0, 0)
        k.k(x, grid=1, block=1)
        self.assertEqual(x[0], 1)
        self.assertEqual(cutelua.loads("return function() return 5 end").main(),
                         5)

    def test_errors_have_kinds_and_lines(self):
        with Raises(cutelua.LuaError, "no good") as r:
            m.fails()
        self.assertEqual((r.error.kind, r.error.file, r.error.line),
                         ("lua", PATH, LINE))
        with Raises(cutelua.LuaError, "no string"):
            m.fails_oddly()
        with Raises(cutelua.Error, "unexpected symbol") as r:
            cutelua.loads("x = = 1", "broken")
        self.assertEqual((r.error.file, r.error.line), ("broken", 1))
        with Raises(cutelua.FileError, "absent.lua"):
            cutelua.load(FOLDER + "/absent.lua")
        with Raises(OSError):
            cutelua.load(FOLDER)
        with Raises(cutelua.Error, "compiled chunk"):
            cutelua.loads("\x1bLua")
        with Raises(cutelua.BadLaunch, "grid"):
            m.add(floats(1), floats(1), floats(1), block=32)
        with Raises(cutelua.KernelFault, "out-of-bounds") as r:
            m.add(floats(1), floats(1), floats(1), grid=1, block=32)
        self.assertEqual(r.error.file, os.path.basename(PATH))
        self.assertGreater(r.error.line, 0)
        self.assertIsInstance(r.error, RuntimeError)
        with Raises(ValueError):
            m.add(floats(1), floats(1), floats(1), grid=0.5, block=1)

    def test_limits_end_calls_and_the_state_goes_on(self):
        s = cutelua.State(memory=64 << 20)
        t = s.loads(support.SCRIPT)
        y = t.square(floats(1, 2, 3))
        used = s.memory[0]
        for _ in range(2):
            with Raises(cutelua.OutOfMemory):
                t.fills()
            with Raises(MemoryError):
                t.fills()
        late = cutelua.State(seconds=1).loads(support.SCRIPT)
        for _ in range(2):
            begun = time.perf_counter()
            with Raises(cutelua.LimitReached, "time limit"):
                late.forever()
            self.assertLess(time.perf_counter() - begun, 20)
        self.assertEqual(late.square(floats(3)).tolist(), [9])
        self.assertEqual(t.square(floats(3)).tolist(), [9])
        self.assertEqual(y.tolist(), [1, 4, 9])
        self.assertLess(s.memory[0] - used, 8 << 20)
        with Raises(cutelua.LimitReached, "instructions"):
            cutelua.State(instructions=100000).loads("while true do end")


class Numbers(unittest.TestCase):
    def test_become_lua_values_and_come_back(self):
        values = (1, -5, 2.5, True, False, None, "x", "\u20ac", 1 << 62,
                  math.inf)
        self.assertEqual(m.all(*values), values)
        self.assertEqual([type(x) for x in m.all(*values)],
                         [type(x) for x in values])
        self.assertIsNone(m.all())
        self.assertEqual(m.all([1, [2, (3,)], {"a": None, "b": "c"}]),
                         [1, [2, [3]], {"b": "c"}])
        self.assertEqual(m.all(1, a=2, b=[3]), (1, {"a": 2, "b": [3]}))
        self.assertEqual(m.all("\0a"), "\0a")
        with Raises(TypeError, "not valid"):
            m.all("\ud800")

    def test_of_other_types_are_converted(self):
        class Index:
            def __index__(self):
                return 7

        class Real:
            def __float__(self):
                return 1.5

        class Color(enum.IntEnum):
            RED = 3

        self.assertEqual(m.all(Index(), Real(), Color.RED), (7, 1.5, 3))
        self.assertEqual(m.kind(Color.RED), "integer")
        # 2^63 and above are the same bits as negative numbers in Lua.
        self.assertEqual(m.all((1 << 63) + 5), -(1 << 63) + 5)
        with Raises(TypeError, "64 bits"):
            m.all(1 << 64)
        with Raises(cutelua.TypeMismatch, "neither a tensor nor a value"):
            m.all(object())
        deep = []
        deep.append(deep)
        with Raises(TypeError, "nested too deep"):
            m.all(deep)
        with Raises(TypeError, "not a string"):
            m.all({1: 2})

    def test_of_functions_are_passed_on(self):
        twice = cutelua.loads("return function(f, x) return f(f(x)) end").main
        add = cutelua.loads("return function() return function(x) "
                            "return x + 1 end end").main()
        self.assertEqual(twice(add, 5), 7)
        self.assertEqual(m.kind(m.add), "table")


class Buffers(unittest.TestCase):
    def test_are_shared(self):
        x = floats(*range(8))
        m.double(x)
        self.assertEqual(x.tolist(), [0, 2, 4, 6, 8, 10, 12, 14])
        y = m.square(x)
        self.assertEqual((y.shape, y.strides, y.dtype, y.device),
                         ((8,), (1,), "f32", "cpu"))
        self.assertEqual(y.tolist(), [v * v for v in x])
        self.assertEqual(m.kind(memoryview(x)), "f32")
        for code, name in {"b": "i8", "B": "u8", "h": "i16", "H": "u16",
                           "i": "i32", "I": "u32", "q": "i64", "Q": "u64",
                           "f": "f32", "d": "f64"}.items():
            self.assertEqual(m.kind(array.array(code, [1])), name)
        self.assertEqual(m.kind(bytearray(3)), "u8")
        with Raises(cutelua.TypeMismatch, "elements of the format"):
            m.kind(array.array("u", "x"))

    def test_may_have_strides_and_shapes(self):
        x = floats(*range(24))
        v = memoryview(x)
        self.assertEqual(m.shape(v[::3]), ("(8):(3)", "host"))
        self.assertEqual(m.square(v[1::3]).tolist(),
                         [float((1 + 3 * i) ** 2) for i in range(8)])
        grid = v.cast("B").cast("f", (4, 6))
        self.assertEqual(m.shape(grid), ("(4,6):(6,1)", "host"))
        y = m.square(grid)
        self.assertEqual((y.shape, y.tolist()[3][5]), ((4, 6), 23.0 ** 2))
        # A negative stride must raise a named error and change no data.
        with Raises(cutelua.BadArgument, "negative strides"):
            m.add(v[::-1], v, v, grid=1, block=8)
        self.assertEqual(x[23], 23)

    def test_for_reading_only_are_not_written(self):
        data = bytes(floats(1, 2))
        x = memoryview(data).cast("f")
        self.assertEqual(m.square(x).tolist(), [1, 4])
        with Raises(cutelua.BadArgument, "for reading only"):
            m.add(x, x, x, grid=1, block=2)
        self.assertEqual(data, bytes(floats(1, 2)))

    def test_at_the_end_of_memory_are_not_read_beyond(self):
        size = mmap.PAGESIZE
        memory = mmap.mmap(-1, 2 * size)
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        libc = ctypes.CDLL(None, use_errno=True)
        protect = libc.mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.assertEqual(protect(at + size, size, 0), 0)
        for n in (1, 3, 5, 31, 64):
            for code in "bhfd":
                bytes_ = n * array.array(code).itemsize
                view = memoryview(memory)[size - bytes_:size].cast(code)
                for i in range(n):
                    view[i] = i % 7
                y = m.square(view)
                self.assertEqual(y.tolist(), [(i % 7) ** 2 for i in range(n)])
                m.double(view)
                self.assertEqual(view[n - 1], (n - 1) % 7 * 2)
        a = memoryview(memory)[size - 16 * 16 * 4:size].cast("B").cast(
            "f", (16, 16))
        for i in range(256):
            a[i // 16, i % 16] = float(i == i // 16 * 17)
        d = cutelua.ops.gemm(a, a)
        self.assertEqual(sum(map(sum, d.tolist())), 16)

    def test_that_a_script_keeps_are_closed(self):
        x = floats(1, 2)
        m.keep(x)
        with Raises(cutelua.Closed, "closed"):
            m.kept()
        x.append(3)  # the buffer is no longer exported
        self.assertEqual(len(x), 3)


class Owner:
    """An object with DLPack whose memory is that of an array."""

    def __init__(self, x, versions=(True, False)):
        self.x, self.versions, self.calls = x, versions, 0

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        if not self.versions[0] and "max_version" in options:
            raise TypeError("unexpected keyword max_version")
        self.calls += 1
        t = cutelua._core.Tensor(cutelua._core._of_buffer(self.x))
        return t.__dlpack__(**options)


class DLPack(unittest.TestCase):
    def test_objects_of_both_versions_are_shared_and_released(self):
        for versions in ((True, True), (False, True)):
            x = floats(1, 2, 3)
            o = Owner(x, versions)
            y = m.square(o)
            self.assertEqual(y.tolist(), [1, 4, 9])
            m.double(o)
            self.assertEqual(x.tolist(), [2, 4, 6])
            self.assertEqual(o.calls, 2)
            gc.collect()
            x.append(1)  # fails while an export is alive

    def test_objects_are_released_after_errors(self):
        x = floats(1, 2, 3)
        for _ in range(3):
            with Raises(cutelua.Error):
                m.add(Owner(x), Owner(x), object(), grid=1, block=1)
            with Raises(cutelua.Error):
                m.add(Owner(x), Owner(x), Owner(x), grid=9, block=1024)
        gc.collect()
        x.append(1)

    def test_results_live_as_long_as_somebody_uses_them(self):
        y = m.square(floats(*range(1000)))
        capsule = y.__dlpack__(max_version=(1, 0))
        old = y.__dlpack__()
        gone = weakref.ref(y)
        z = m.square(y)
        self.assertEqual(z.tolist()[3], 81)
        del y
        gc.collect()
        self.assertIsNotNone(gone())  # the capsules keep it
        del capsule
        gc.collect()
        self.assertIsNotNone(gone())
        del old
        gc.collect()
        self.assertIsNone(gone())
        with Raises(BufferError):
            z.__dlpack__(copy=True)
        with Raises(BufferError):
            z.__dlpack__(dl_device=(2, 0))
        self.assertEqual(z.__array_interface__["typestr"], "<f4")
        self.assertFalse(hasattr(z, "__cuda_array_interface__"))

    def test_the_same_memory_comes_back(self):
        x = floats(1, 2, 3)
        y = m.all(x)
        self.assertEqual(y.data_ptr, x.buffer_info()[0])
        x[1] = 20
        self.assertEqual(y.tolist(), [1, 20, 3])


class _Array:
    """An object whose tensor is the result of a function."""

    def __init__(self, export):
        self.export = export

    def __dlpack__(self, **_):
        return self.export()

    def __dlpack_device__(self):
        return 1, 0


class Hostile(unittest.TestCase):
    def setUp(self):
        self.t = m.all(floats(1, 2, 3))

    def test_arguments_that_change_their_containers(self):
        g = cutelua.loads("function f(t) return t[1], #t end")
        share = self.t.__dlpack__
        items = ["x" * 1000]

        def clear():
            items[0] = None
            gc.collect()
            self.junk = ["y" * 1000 for _ in range(100)]
            return share()

        items.append(_Array(clear))
        self.assertEqual(g.f(items), ("x" * 1000, 2))
        items = []

        def shorten():
            items.clear()
            return share()

        items += [_Array(shorten), 1, 2]
        with Raises(IndexError):
            g.f(items)
        named = {}

        def replace():
            named.clear()
            named.update({str(i): i for i in range(1000)})
            return share()

        named["x"] = _Array(replace)
        cutelua.loads("function f(t) end").f(named)

    def test_lists_that_another_thread_changes(self):
        g = cutelua.loads("""function f(t)
          for i = 1, 3e6 do end
          return t[1], t.x
        end""")
        named = {"x": "x" * 1000}
        items = ["y" * 1000, _Array(self.t.__dlpack__)]
        stop = threading.Event()

        def change():
            while not stop.is_set():
                items[0] = "y" * 1000
                items[1] = _Array(self.t.__dlpack__)
                named["x"] = "x" * 1000

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(3):
                self.assertEqual(g.f(items)[0], "y" * 1000)
                self.assertEqual(g.f(named)[1], "x" * 1000)
        finally:
            stop.set()
            thread.join()

    def test_wrong_capsules(self):
        used = self.t.__dlpack__()
        m.all(_Array(lambda: used))
        for bad in (used, self.t, 5, self.t.__dlpack__()):
            with Raises((TypeError, ValueError)):
                cutelua.Tensor(bad)
        for bad in (used, self.t.__dlpack__()):
            with Raises(cutelua.TypeMismatch, "neither a tensor nor a value"):
                m.all(bad)
        with Raises(ZeroDivisionError):
            m.all(_Array(lambda: 1 / 0))
        with Raises(TypeError, "nested too deep"):
            again = _Array(lambda: again)
            m.all(again)

    def test_closed_tensors(self):
        t = self.t
        t.__del__()
        t.__del__()
        for f in (t.__dlpack__, t.__dlpack_device__, t.tolist,
                  lambda: t.__array_interface__, lambda: m.all(t)):
            with Raises(cutelua.Closed, "the tensor was closed"):
                f()

    def test_functions_of_another_state_and_too_many_arguments(self):
        other = cutelua.State().loads("function f() return 1 end")
        with Raises(TypeError, "a function of another cutelua.State"):
            m.all(other.f)
        with Raises(cutelua.LimitReached, "a call with 1000000 arguments"):
            m.all(*range(1000000))


class Calls(unittest.TestCase):
    def test_of_operations_take_functions_as_text(self):
        a = floats(*(i % 5 - 2 for i in range(32 * 32)))
        A = memoryview(a).cast("B").cast("f", (32, 32))
        d = cutelua.ops.gemm(A, A, epilogue="function(x) return "
                                            "cute.max(x, 0) + 1 end")
        rows = [[float(A[i, k]) for k in range(32)] for i in range(32)]
        want = [[max(sum(x * y for x, y in zip(r, c)), 0) + 1 for c in rows]
                for r in rows]
        self.assertEqual(d.tolist(), want)
        v, i = cutelua.ops.topk(floats(3, 1, 2), 2)
        self.assertEqual((v.tolist(), i.tolist()), ([3, 2], [0, 2]))
        y = cutelua.ops.elementwise("function(x) return x + 1 end",
                                    floats(1, 2), dtype=cutelua.f64)
        self.assertEqual((y.dtype, y.tolist()), ("f64", [2, 3]))
        with Raises(AttributeError, "no operation"):
            cutelua.ops.absent
        with Raises(cutelua.Error, "function(x"):
            cutelua.ops.elementwise("function(x", floats(1))

    def test_run_in_several_threads(self):
        out = {}

        def work(k):
            for i in range(20):
                x = floats(*(k + j for j in range(16)))
                out[k, i] = m.square(x).tolist() == [(k + j) ** 2
                                                     for j in range(16)]

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((len(out), all(out.values())), (80, True))

    def test_end_by_ctrl_c_and_later_calls_work(self):
        # A process that a shell starts in the background ignores Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop = cutelua.loads("function go(x) while true do end end")
        spin = cutelua.loads("""
return cute.kernel("spin", function(x)
  for _ = 1, 20 do
    for i in cute.range(1 << 30) do x[0] = x[0] + i end
  end
end)""").spin
        for f in (lambda: loop.go(floats(1)),
                  lambda: spin(floats(1), grid=1, block=1)):
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            begun = time.perf_counter()
            with Raises(KeyboardInterrupt):
                f()
            self.assertLess(time.perf_counter() - begun, 10)
        self.assertEqual(m.square(floats(3)).tolist(), [9])
        self.assertIs(signal.getsignal(signal.SIGINT),
                      signal.default_int_handler)

    def test_work_in_a_child_process(self):
        text = "function(v) return v * v end"
        elementwise = cutelua.ops.elementwise
        self.assertEqual(elementwise(text, floats(3)).tolist(), [9])
        child = os.fork()
        if child == 0:
            ok = False
            try:
                m.nop()
            except cutelua.Error:
                n = cutelua.load(PATH)
                ok = (n.square(floats(4)).tolist()
                      == elementwise(text, floats(4)).tolist() == [16])
            os._exit(0 if ok else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_leak_nothing(self):
        x = floats(*range(256))
        y = floats(*range(256))

        def work(n):
            for _ in range(n):
                m.all(x, [y, {"a": 1}], "text", b=2)
                try:
                    m.fails(x)
                except cutelua.Error:
                    pass
            gc.collect()

        collect = cutelua.loads("return function() collectgarbage() "
                                "collectgarbage() end").main

        def used():
            gc.collect()
            collect()
            return cutelua.default().memory[0]

        make = cutelua.loads("return function() return function() end "
                             "end").main
        for _ in range(1000):
            make()
        before = used()
        for _ in range(3000):
            make()
        self.assertLess(used() - before, 100_000)

        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * mmap.PAGESIZE

        work(1000)
        pages, before = resident(), used()
        work(4000)
        self.assertLess(used() - before, 100_000)
        self.assertLess(resident() - pages, 4 << 20)

    def test_take_few_microseconds(self):
        x = floats(*range(32))

        def best(f, *args):
            times = []
            for _ in range(20):
                begun = time.perf_counter()
                for _ in range(200):
                    f(*args)
                times.append((time.perf_counter() - begun) / 200 * 1e6)
            return min(times)

        none, two = best(m.nop), best(m.all, 1, 2.5)
        print("a call: %.2f us; with two numbers: %.2f us" % (none, two))
        self.assertLess(none, 30)
        self.assertLess(two, 40)


class Checked(unittest.TestCase):
    def test_launches_are_run_under_all_checks(self):
        x = floats(*range(32))

        @cutelua.checked
        def good():
            m.add(x, x, x, grid=1, block=32)
            return 5

        @cutelua.checked(seconds=5)
        def bad():
            m.race(x)

        self.assertEqual(good(), 5)
        self.assertEqual(x[3], 6)
        with Raises(cutelua.CheckFailed, "race"):
            with cutelua.checked(seconds=5):
                m.race(x, grid=1, block=32, faults="return")
        with Raises(cutelua.BadLaunch):  # the test's own error wins
            bad()
        good()


class Package(unittest.TestCase):
    def test_imports_in_less_than_50_ms(self):
        code = ("import sys, time, ctypes, os, threading; "
                "t = time.process_time(); import cutelua; "
                "print(time.process_time() - t); "
                "assert 'numpy' not in sys.modules and 'torch' not in "
                "sys.modules")
        times = [float(subprocess.run(
            [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE,
            env=dict(os.environ)).stdout) for _ in range(5)]
        print("import: %.1f ms" % (min(times) * 1e3))
        self.assertLess(min(times), 0.05)

    def test_has_stubs_of_its_names(self):
        import ast
        folder = os.path.dirname(cutelua.__file__)
        with open(folder + "/__init__.pyi") as f:
            tree = ast.parse(f.read())
        stubs = set()
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                stubs.add(node.name)
            elif isinstance(node, ast.AnnAssign):
                stubs.add(node.target.id)
        names = {n for n in dir(cutelua) if not n.startswith("_")}
        names |= {"__version__", "CheckFailed", "ops", "jax"}
        names -= {"torch_op", "check", "TYPES"}
        self.assertEqual(stubs, names)
        for name in names - {"ops", "jax", "__version__"} - set(cutelua.TYPES):
            self.assertTrue(getattr(cutelua, name).__doc__, name)


if __name__ == "__main__":
    support.main()
# SPDX-License-Identifier: MIT
