-- Tests libcutelua: its exported names, calls from C, C++ and Python on the
-- simulator, threads, forks, hooks, limits, and hostile scripts.
local support = require "spec.support"

local build = support.absolute(os.getenv "CUTE_BUILD" or "build")
local library = build .. "/libcutelua.so"
local ENV = {CUTELUA_NO_CUDA = "1"}

local WARN = {"-Wall", "-Wextra", "-Wconversion", "-Werror"}
-- Programs that use a library with sanitizers need sanitizers, too.
local sanitized = os.getenv "CUTE_SANITIZED" ~= nil
if sanitized then
  table.move({"-g", "-fsanitize=address,undefined"}, 1, 2, #WARN + 1, WARN)
end

-- Compiles a source with these compiler flags, and returns the program's path.
local function compile(dir, words, source, ...)
  local path = dir .. "/" .. source:gsub("[/.]", "_")
  local all = table.move(words, 1, #words, 1, {})
  table.move(WARN, 1, #WARN, #all + 1, all)
  for _, word in ipairs {"-Icore/library", source, "-o", path, ...} do
    all[#all + 1] = word
  end
  local out, err, code = support.exec(all)
  assert.equal(0, code, out .. err)
  return path
end

local function shared() return "-L" .. build, "-lcutelua",
  "-Wl,-rpath," .. build, "-lpthread" end

local function run(...)
  local out, err, code = support.exec({...}, {env = ENV})
  assert.equal(0, code, out .. err)
  return out
end

local dir
setup(function() dir = support.folder() end)
teardown(function() support.remove(dir) end)

-- Returns the functions that cutelua.h, python.h and xla.h declare, in order.
local function declared()
  local names = {}
  local text = support.read "core/library/cutelua.h"
    .. support.read "core/library/python.h"
    .. support.read "core/library/xla.h"
  for name in text:gmatch "CUTELUA_API[^(]-(cutelua_[%w_]+)%(" do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

describe("the exported names of libcutelua", function()
  local function exported(...)
    local names = {}
    for name in run("nm", ...):gmatch "%x+ [TDBRVWi] ([%w_@]+)" do
      names[#names + 1] = name
    end
    table.sort(names)
    return names
  end

  it("are those of cutelua.h, with the version of the interface", function()
    local want = {}
    for _, name in ipairs(declared()) do
      want[#want + 1] = name .. "@@CUTELUA_1"
    end
    assert.is_true(#want > 20)
    assert.same(want, exported("-D", "--defined-only", library))
  end)

  it("are the same in the archive #noasan", function()
    assert.same(declared(), exported("-g", "--defined-only",
                                     build .. "/libcutelua.a"))
  end)

  it("need no Lua, zlib or CUDA of the system", function()
    local needed = {}
    for name in run("objdump", "-p", library):gmatch "NEEDED%s+(%S+)" do
      needed[#needed + 1] = name:match "^lib(%a+)" or name:match "^%a+"
    end
    for _, name in ipairs(needed) do
      assert.truthy(("c m dl pthread ld asan ubsan tsan gcc"):find(name, 1,
        true), name)
    end
    assert.truthy(run("objdump", "-p", library):find
      "SONAME%s+libcutelua.so.1\n")
  end)
end)

describe("the examples of libcutelua", function()
  local script = "examples/library/scale.lua"
  local C = "interface 1\ny[299] = 897\n300 elements, y[1] = 5\n"
    .. "d[1][2] = 86\nstatus 1, kind lua, broken:2\n"

  it("run in C with the shared library and the archive #noasan", function()
    local source = "examples/library/scale.c"
    local path = compile(dir, {"cc", "-std=c11"}, source, shared())
    assert.equal(C, run(path, script))
    path = compile(dir, {"cc", "-std=c11"}, source, build .. "/libcutelua.a",
                   "-lm", "-ldl", "-lpthread")
    assert.equal(C, run(path, script))
  end)

  it("run in C++ without a warning #long", function()
    local path = compile(dir, {"c++", "-std=c++17", "-Wpedantic"},
                         "examples/library/scale.cpp", shared())
    assert.equal("y[999] = 8\nstatus 3, kind limit, endless:1: endless:1: the "
      .. "script exceeded its budget of instructions [limit]\n",
      run(path, script))
  end)

  it("run in several threads of C++, each with a state #long", function()
    local path = compile(dir, {"c++", "-std=c++17", "-Wpedantic"},
                         "examples/library/threads.cpp", shared())
    assert.equal("1\n2\n3\n4\n", run(path, script))
    local out, _, code = support.exec({path, dir .. "/none.lua"}, {env = ENV})
    assert.equal(1, code)
    assert.equal(4, select(2, out:gsub("none%.lua", "")))
  end)

  it("run in Python by ctypes #noasan", function()
    local out = run("python3", "examples/library/scale.py", library, script)
    assert.equal("y[255] = 1530.0\nprinted ['two\\t2\\n']\nlua fails 2\n", out)
  end)
end)

describe("an installed libcutelua #noasan", function()
  if not support.lua_headers then
    pending "needs the headers of Lua"
    return
  end
  local prefix = "/opt/c"
  local root, at
  setup(function()
    root = dir .. "/root"
    at = root .. prefix
    run("make", "-s", "install-library", "BUILD=" .. build, "DESTDIR=" .. root,
        "PREFIX=" .. prefix, "LIBDIR=lib/arch")
  end)

  local function check(path)
    local out, err, code = support.exec({path, "examples/library/scale.lua"},
      {env = {CUTELUA_NO_CUDA = "1", LD_LIBRARY_PATH = at .. "/lib/arch"}})
    assert.equal(0, code, out .. err)
    assert.truthy(out:find "y%[299%] = 897\n")
  end

  local function has(tool)
    return select(3, support.exec {"sh", "-c", "command -v " .. tool}) == 0
  end

  it("is found by pkg-config", function()
    if not has "pkg-config" then return pending "needs pkg-config" end
    local out = support.exec({"pkg-config", "--cflags", "--libs", "cutelua"},
      {env = {PKG_CONFIG_PATH = at .. "/lib/arch/pkgconfig",
              PKG_CONFIG_SYSROOT_DIR = root}})
    local path = dir .. "/found"
    local words = {"cc", "examples/library/scale.c", "-o", path}
    for word in out:gmatch "%S+" do words[#words + 1] = word end
    local _, err, code = support.exec(words)
    assert.equal(0, code, out .. err)
    check(path)
  end)

  it("is found by CMake #long", function()
    if not has "cmake" then return pending "needs CMake" end
    local source = support.absolute "examples/library/scale.c"
    support.write(dir .. "/CMakeLists.txt", ([[
      cmake_minimum_required(VERSION 3.13)
      project(scale C)
      find_package(cutelua 0.2 REQUIRED)
      find_package(cutelua 9.9 QUIET)
      if(cutelua_FOUND)
        message(FATAL_ERROR "version 9.9 was found")
      endif()
      add_executable(shared %s)
      target_link_libraries(shared cutelua::cutelua)
      add_executable(static %s)
      target_link_libraries(static cutelua::static)]]):format(source, source))
    run("cmake", "-S", dir, "-B", dir .. "/cmake", "-Dcutelua_DIR=" .. at
      .. "/lib/arch/cmake/cutelua")
    run("cmake", "--build", dir .. "/cmake")
    check(dir .. "/cmake/shared")
    check(dir .. "/cmake/static")
  end)
end)

local driver
setup(function()
  driver = compile(dir, {"cc", "-std=c11"}, "spec/library/driver.c", shared())
end)

describe("libcutelua", function()
  it("names each wrong argument", function()
    local out = run(driver, "wrong")
    for want in ([[
type: 4 argument 1: a tensor cannot have elements of type f31 [bad-argument]
no type: 4 argument 1: a tensor cannot have elements of type NULL [bad-argument]
memory: 4 argument 1: the tensor's memory is NULL [bad-argument]
shape: 4 argument 1: a tensor needs a shape and a rank from 1 to 8, not 1
rank: 4 argument 1: a tensor needs a shape and a rank from 1 to 8, not 9
extent: 4 argument 1: extent -1 and stride 1 of mode 0; both must be 0 or more
stride: 4 argument 1: extent 256 and stride -1 of mode 0; both must be 0 or more
size: 4 argument 1: the tensor has more than 2^56 elements [bad-argument]
gaps: 4 argument 1: elements of i4 must be contiguous [bad-argument]
overlap: 4 argument 2 overlaps the memory of another tensor, whose elements
reference: 4 reference 12345 does not exist in this state [bad-argument]
no reference: 4 reference 0 does not exist in this state [bad-argument]
no grid: 1 call:launch: the block is missing
fault: 1 kernel out takes 1 argument (x), got 3 [bad-launch]
device: 4 argument 1: device -7; CUTELUA_HOST or the number of a GPU is needed
kind: 4 argument 1 has the unknown type 99 [bad-argument]
options: 4 the launch options have size 1; sizeof(cutelua_launch_options)
device name: 1 call:launch: no device 'abacus'
NULL: 4 3 arguments; at most 64 are possible, ]]
      .. "and their array must not be NULL [bad-argument]\n"):gmatch "[^\n]+" do
      assert.truthy(out:find(want, 1, true), want .. "\n" .. out)
    end
    assert.truthy(out:find "\ngpu: 1 [^\n]+%[no%-gpu%]\n", out)
  end)

  it("returns results of each type, and copies tensors with gaps", function()
    assert.equal("6 2.5 1 text 1\n"
      .. "result 1 is 6, which the type of the caller's cutelua_arg cannot "
      .. "hold [type-mismatch]\n"
      .. "tensor:copy_from: a tensor of shape (2,2) cannot be copied to one of "
      .. "(4) [shape-mismatch]\n2 10 18 26\n", run(driver, "results"))
  end)

  it("calls operations by their names #long", function()
    local out = run(driver, "attention")
    assert.truthy(out:find "^2048 of 2048\n1 cute.ops has no 'gemmm'", out)
  end)

  it("uses the application's allocator and print hook", function()
    assert.equal("1 hi\n1 hi\n", run(driver, "hooks"))
  end)

  it("serves several states and threads, and can be interrupted", function()
    assert.equal("endless:1: the script was interrupted by the application "
      .. "[limit]\n", run(driver, "threads"))
  end)

  it("refuses a state of the parent in a child, which opens its own",
     function()
    assert.equal("", run(driver, "fork"))
  end)

  it("returns all memory of a state when it is closed", function()
    local grown = run(driver, "cycles", "20"):match "^grown (%-?%d+)\n$"
    -- Sanitizers keep freed memory for a while, so growth is not checked there.
    assert.is_true(sanitized or tonumber(grown) < 2000, grown)
  end)

  it("returns all memory of 500 states #long", function()
    local grown = run(driver, "cycles", "500"):match "^grown (%-?%d+)\n$"
    assert.is_true(tonumber(grown) < 1000, grown)
  end)

  it("survives random calls, also when allocations fail", function()
    local path = compile(dir, {"cc", "-std=c11"}, "spec/library/random.c",
                         shared())
    for seed = 1, 2 do
      assert.truthy(run(path, tostring(seed), "200"):find "^done ")
    end
  end)
end)

describe("an untrusted state of libcutelua", function()
  -- Runs scripts of hostile.lua with a time limit, and checks that each ends as
  -- expected.
  local function attack(rows, milliseconds)
    local files = {}
    for i, row in ipairs(rows) do
      files[i] = support.write(("%s/%d.lua"):format(dir, i), row[3])
    end
    local out, k = run(driver, "scripts", tostring(milliseconds),
                       table.unpack(files)), 0
    for status, kind, seconds, mib, text in
      out:gmatch "(%d) (%S+) (%S+) (%d+) ([^\n]*)" do
      k = k + 1
      local row = rows[k]
      local ends = status == "0" and "ok" or status == "2" and "memory" or kind
      assert.truthy(row[2]:find(ends, 1, true), row[1] .. ": " .. text)
      assert.is_true(tonumber(seconds) < 4 + milliseconds / 1000,
                     row[1] .. ": " .. seconds)
      -- The limit is 128 MiB.
      assert.is_true(tonumber(mib) <= 128, row[1] .. ": " .. mib)
    end
    assert.equal(#rows, k, out)
  end

  it("gives an untrusted script what it may use #long", function()
    assert.equal("", run(driver, "allowed", "spec/library/allowed.lua"))
  end)

  it("matches patterns in an untrusted state as Lua does", function()
    local out = run(driver, "allowed", "spec/library/patterns.lua")
    local trusted, untrusted = out:match "^(%d+)\n(%d+)\n$"
    assert.is_truthy(trusted, out)
    assert.equal(trusted, untrusted)
  end)

  -- `quick` has the scripts that end by themselves, `huge` those that use up
  -- the memory or the statements of a trace, and `endless` the others.
  local quick, huge, endless = {}, {}, {}
  for _, row in ipairs(require "spec.library.hostile") do
    local list = (row[2] == "memory" or row[2] == "runaway-trace") and huge
      or (row[2] == "ok" or row[2] == "lua") and quick or endless
    table.insert(list, row)
  end

  -- A loaded machine needs long time limits for scripts that end by themselves
  -- or by another limit.
  it("lets no hostile script escape", function()
    assert.is_true(#quick + #huge + #endless >= 40)
    attack(quick, 60000)
  end)

  it("ends each endless script within its budget #long", function()
    attack(endless, 800)
  end)

  it("ends each huge script within its budget #long", function()
    attack(huge, 60000)
  end)
end)
-- SPDX-License-Identifier: MIT
