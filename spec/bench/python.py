# SPDX-License-Identifier: MIT
"""Measures what calls from Python cost the host, on the driver of
spec/gpu/fakecuda.c and with the tensors of spec/bench/python_tensors.c, which
spec/bench/python.lua builds in the folder that is the first argument. Prints a
line for each: name, microseconds by Python, microseconds of the same call in
Lua (0: there is none). Further arguments: number of batches, calls of each."""
import ctypes
import gc
import random
import sys
import time

import cutelua

lib = ctypes.PyDLL(sys.argv[1] + "/tensors.so")
BATCHES, CALLS = (int(x) for x in (sys.argv[2:] + ["41", "500"])[:2])
new, drop = lib.bench_new, lib.bench_drop
new.restype, new.argtypes = ctypes.c_void_p, [ctypes.c_int64, ctypes.c_int]
drop.argtypes = [ctypes.c_void_p]


class Tensor(int):
    requires_grad = False

    def __del__(self):
        drop(self)


capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
lib.bench_interface.restype = ctypes.c_void_p
lib.bench_interface.argtypes = [ctypes.py_object]
Tensor.__dlpack_c_exchange_api__ = capsule(
    lib.bench_interface(Tensor), b"dlpack_exchange_api", None)

SCRIPT = """
local M = {}
local function sum(a, b) return a + b end
function M.nothing() end
function M.same(x) return x end
function M.sum(x, y) return cute.ops.elementwise(sum, x, y) end
local options = {}
function M.into(x, y, z)
  options.out = z
  cute.ops.elementwise(sum, x, y, options)
end
M.add = cute.kernel("add", function(x, y, z)
  local i = cute.arch.thread_idx()
  z[i] = x[i] + y[i]
end)
local N
local function new() return cute.zeros({N}, "f32", {device = "gpu"}) end
local batches = {
  launch = function(n)
    local x, y, z = new(), new(), new()
    for _ = 1, n do M.add(x, y, z):launch {grid = 1, block = 64} end
  end,
  into = function(n)
    local x, y, z = new(), new(), new()
    for _ = 1, n do M.into(x, y, z) end
  end,
  sum = function(n)
    local x, y = new(), new()
    for _ = 1, n do M.sum(x, y):close() end
  end}
function M.batch(name, n, extent)
  N = extent
  batches[name](1)
  local begun = os.clock()
  batches[name](n)
  local us = (os.clock() - begun) / n * 1e6
  collectgarbage()
  return us
end
return M
"""
m = cutelua.loads(SCRIPT)
elementwise, add = cutelua.ops.elementwise, m.add
SUM = "function(a, b) return a + b end"
x, y, z = (Tensor(new(64, 32)) for _ in range(3))
CASES = [
    ("a call", m.nothing, None),
    ("a tensor", lambda: m.nothing(x), None),
    ("three tensors", lambda: m.nothing(x, y, z), None),
    ("a tensor in and out", lambda: m.same(x), None),
    ("launch of a kernel", lambda: add(x, y, z, grid=1, block=64), "launch"),
    ("operation, result given", lambda: m.into(x, y, z), "into"),
    ("operation, result new", lambda: m.sum(x, y), "sum"),
    ("operation by name", lambda: elementwise(SUM, x, y), "sum"),
]


def batch(f):
    begun = time.thread_time()
    for _ in range(CALLS):
        f()
    return (time.thread_time() - begun) / CALLS * 1e6


def mean(values):
    return sum(values) / len(values)


# Uses means and a random order, because Lua may collect garbage in any batch of
# Python's calls. For Lua's own calls, m.batch collects it after measuring.
times = {name: [] for name, _, _ in CASES}
plain = {name: [] if name else [0] for _, _, name in CASES}
for f in CASES:
    f[1]()
gc.disable()
for _ in range(BATCHES):
    for name, f, lua in random.sample(CASES, len(CASES)):
        times[name].append(batch(f))
        if lua:
            plain[lua].append(m.batch(lua, CALLS, 64))
for name, _, lua in CASES:
    print("%s\t%.2f\t%.2f" % (name, mean(times[name]), mean(plain[lua])))
