-- Tests the Python package. Runs the tests of spec/python in Python, and
-- installs the wheel in a fresh virtual environment. CUTELUA_PYTHON names a
-- Python that has PyTorch and NumPy.
local fake = require "spec.gpu.fake"
local support = require "spec.support"

local library = support.read "build/libcutelua.so" and "build/libcutelua.so"
local build = os.getenv "CUTE_BUILD" or "build"
if support.read(build .. "/libcutelua.so") then
  library = build .. "/libcutelua.so"
end
local python = os.getenv "CUTELUA_PYTHON" or "python3"

local function has(module)
  return select(3, support.exec {python, "-c", "import " .. module}) == 0
end

-- Runs a file of tests. Each test must pass, and at least `least` tests must
-- run. device: nil for the CPU, "cuda", or a folder with a driver.
local function run(file, least, device)
  local driver = device == "cuda" and "CUTELUA_TEST_DEVICE=cuda"
    or device and "LD_LIBRARY_PATH=" .. device or "CUTELUA_NO_CUDA=1"
  local out, err, code = support.exec {"env", "CUTELUA_LIBRARY=" .. library,
    "PYTHONPATH=python:spec/python", "PYTHONDONTWRITEBYTECODE=1", driver,
    "FAKE_LATE=1", "CUTELUA_CACHE=0",
    "JAX_PLATFORMS=" .. (device == "cuda" and "cuda" or "cpu"), python,
    "spec/python/" .. file}
  assert(code == 0, out .. err)
  local passed = select(2, ("\n" .. out):gsub("\nok ", ""))
  assert.is_true(passed >= least, out)
  assert.is_nil(("\n" .. out):find "\nfailed ")
end

local function lacking(...)
  if not library then return "needs libcutelua.so" end
  if os.getenv "CUTE_SANITIZED" then
    return "needs a library without sanitizers"
  end
  for _, module in ipairs {...} do
    if not has(module) then
      return ("needs %s (CUTELUA_PYTHON names a Python that has it)")
        :format(module)
    end
  end
end

describe("the Python package", function()
  it("passes its tests with Python alone", function()
    local why = lacking()
    if why then return pending(why) end
    run("test_package.py", 24)
  end)

  it("passes its tests on a driver that records its calls", function()
    local why = lacking() or not fake.there and "needs a C compiler"
    if why then return pending(why) end
    fake.build()
    run("test_gpu.py", 9, fake.folder)
    fake.remove()
  end)

  it("passes its tests with NumPy", function()
    local why = lacking "numpy"
    if why then return pending(why) end
    run("test_numpy.py", 4)
  end)

  it("passes its tests with JAX", function()
    local why = lacking("jax", "numpy")
    if why then return pending(why) end
    run("test_jax.py", 2)
  end)

  it("passes its tests with TVM-FFI", function()
    local why = lacking("tvm_ffi", "numpy")
    if why then return pending(why) end
    run("test_tvm.py", 2)
  end)

  it("passes its tests with PyTorch #long", function()
    local why = lacking("torch", "numpy")
    if why then return pending(why) end
    run("test_torch.py", 11)
  end)

  it("passes its tests of gradients with PyTorch #long", function()
    local why = lacking("torch", "numpy")
    if why then return pending(why) end
    run("test_gradients.py", 7)
  end)

  it("passes its tests with JAX on a GPU #gpu", function()
    local why = lacking("jax", "numpy")
    if why then return pending(why) end
    run("test_jax.py", 5, "cuda")
  end)

  it("passes its tests of gradients on a GPU #gpu", function()
    local why = lacking("torch", "numpy")
    if why then return pending(why) end
    run("test_gradients.py", 7, "cuda")
  end)
end)

describe("the wheel", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  -- Builds the wheel from a build folder in `dir`; returns its path.
  local function wheel()
    support.exec {"mkdir", dir .. "/build"}
    local from = library:sub(1, 1) == "/" and library
      or support.exec {"sh", "-c", "printf %s \"$PWD/\""} .. library
    for _, name in ipairs {"libcutelua.so", "libcutecapture.so"} do
      support.exec {"ln", "-s", (from:gsub("[^/]*$", name)),
                    dir .. "/build/" .. name}
    end
    local out, err, code = support.exec {"python3", "tools/wheel.py",
      dir .. "/build", "1.2.3"}
    assert(code == 0, out .. err)
    return assert(out:match "^(%S+%.whl): ")
  end

  it("is one file for every Python, small, with checksums #long", function()
    local why = lacking()
    if why then return pending(why) end
    local path = wheel()
    assert.truthy(path:find "/cutelua%-1%.2%.3%-py3%-none%-manylinux_2_%d%d_"
      and path:find "x86_64%.whl$", path)
    local out, err, code = support.exec {"python3", "-c", [[
import base64, hashlib, os, re, subprocess, sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert os.path.getsize(sys.argv[1]) < 6 << 20
names = set(z.namelist())
record = [n for n in names if n.endswith("dist-info/RECORD")][0]
rows = [r.split(",") for r in z.read(record).decode().split()]
assert {r[0] for r in rows} == names, names
for name, digest, size in rows:
    if not digest:
        continue
    data = z.read(name)
    want = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    assert digest == "sha256=" + want.rstrip(b"=").decode()
    assert int(size) == len(data)
library = sys.argv[2] + "/lib.so"
open(library, "wb").write(z.read("cutelua/libcutelua.so"))
need = re.findall(r"GLIBC_2\.(\d+)", subprocess.run(
    ["objdump", "-T", library], stdout=subprocess.PIPE).stdout.decode())
tag = int(re.search(r"manylinux_2_(\d+)", sys.argv[1])[1])
assert max(map(int, need)) <= tag <= 34
exported = re.findall(r" (\S+)$", subprocess.run(
    ["nm", "-D", "--defined-only", library],
    stdout=subprocess.PIPE).stdout.decode(), re.M)
assert all(n.startswith(("cutelua_", "CUTELUA_")) for n in exported), exported
assert {"cutelua/py.typed", "cutelua/__init__.pyi"} <= names
]], path, dir}
    assert(code == 0, out .. err)
  end)

  it("runs a first kernel in a fresh environment without network #long",
      function()
    local why = lacking()
    if not why and select(3, support.exec {"python3", "-c",
      "import ensurepip, venv"}) ~= 0 then
      why = "needs python3-venv"
    end
    if why then return pending(why) end
    local path = wheel()
    local script = support.write(dir .. "/gelu.lua",
      "return {gelu = function(x) return cute.ops.elementwise(cute.ops.gelu, "
      .. "x) end}")
    local out, err, code = support.exec {"sh", "-c", [[
cd "$1" && python3 -m venv v && v/bin/pip install -q --no-index --no-cache-dir \
  --disable-pip-version-check "$2" && v/bin/python -c '
import array, sys, cutelua
gelu = cutelua.load(sys.argv[1]).gelu
print(gelu(array.array("f", [-1, 0, 3])).tolist())' "$3" && times]], "sh", dir,
      path, script}
    assert(code == 0, out .. err)
    assert.truthy(out:find("^%[%-0%.158"), out)
    -- The last line of the output has the processes' CPU time: user,
    -- system.
    local m1, s1, m2, s2 = out:match "(%d+)m([%d.]+)s (%d+)m([%d.]+)s\n$"
    assert.is_true((m1 + m2) * 60 + s1 + s2 <= 20, out)
  end)
end)
-- SPDX-License-Identifier: MIT
