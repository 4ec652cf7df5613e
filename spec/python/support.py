"""What the tests of the Python package share: scripts, and a runner that
prints a line for each test."""
import os
import sys
import tempfile
import unittest

SCRIPT = """
local cute = require "cute"
local ops = cute.ops
local M = {scale = 2, names = {"a", "b"}}
local function square(x) return x * x end
function M.square(x) return ops.elementwise(square, x) end
function M.all(...) return ... end
function M.kind(x)
  return type(x) == "userdata" and tostring(x.dtype) or math.type(x) or type(x)
end
function M.shape(x) return tostring(x.layout), x.device end
function M.double(x) x:copy_from(ops.elementwise(function(v) return v * 2 end,
                                                 x)) end
M.add = cute.kernel("add", function(x, y, z)
  local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
  z[i] = x[i] + y[i]
end)
M.race = cute.kernel("race", function(x)
  local s = cute.make_smem_tensor("f32", {32})
  local i = cute.arch.thread_idx()
  s[31 - i] = x[i]
  x[i] = s[i]
end)
function M.fails()
  error("no good")
end
function M.fails_oddly() error({}) end
local kept
function M.keep(x) kept = x end
function M.kept() return ops.elementwise(square, kept) end
function M.forever() while true do end end
function M.fills() local t = {} while true do t[#t + 1] = {} end end
function M.nop() end
return M
"""


def folder():
    return tempfile.mkdtemp(prefix="cutelua")


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        print("ok", test.id().split(".", 1)[1])

    def addSkip(self, test, reason):
        print("skipped", test.id().split(".", 1)[1], reason)

    def _say(self, test, err):
        print("failed", test.id().split(".", 1)[1])
        print(self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say(test, err)

    addError = addFailure


def main():
    """Runs the tests of the script, or those whose names begin with an
    argument."""
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromModule(sys.modules["__main__"])
    runner = unittest.TextTestRunner(resultclass=Result, stream=sys.stderr,
                                     verbosity=0)
    result = runner.run(suite)
    sys.stdout.flush()
    os._exit(0 if result.wasSuccessful() else 1)
# SPDX-License-Identifier: MIT
