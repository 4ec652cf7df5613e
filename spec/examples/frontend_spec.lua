-- Builds examples/frontend, a front end in C that uses only what docs/ir.md
-- describes, and compares its programs' results with plain Lua.
local core = require "cute.core"
local support = require "spec.support"

local FILE = "examples/frontend/blockwise.c"
local BUILD = os.getenv "CUTE_BUILD" or "build"
local BLOCK = 128
local BUILT = support.read(BUILD .. "/ir/ir.o") ~= nil

-- Returns the words of the build command in the program's head comment.
local function build_command(out)
  local words = {"cc", "-std=c11", "-Wall", "-Wextra", "-Wconversion",
                 "-Werror", "-Icore", "-o", out, FILE}
  local rooms = support.read(FILE):match "rooms='([^']*)'"
  for room in rooms:gmatch "%S+" do
    for path in support.must {"find", "core/" .. room, "-name", "*.c"}
      :gmatch "core(/%S+)%.c" do
      words[#words + 1] = BUILD .. path .. ".o"
    end
  end
  words[#words + 1] = "-lm"
  words[#words + 1] = "-pthread"
  return words
end

local dir, program
setup(function()
  if os.getenv "CUTE_SANITIZED" or not BUILT then return end
  dir = support.folder()
  program = dir .. "/blockwise"
  support.must(build_command(program))
end)
teardown(function() if dir then support.remove(dir) end end)

-- reverse and sum return element i of the result of the program with that name,
-- for an input f and n elements.
local function reverse(f, i, n)
  local j = i // BLOCK * BLOCK + BLOCK - 1 - i % BLOCK
  return f(j, n)
end

local function sum(f, i, n)
  local s, first = 0, i // BLOCK * BLOCK
  for k = first, first + BLOCK - 1 do s = s + f(k, n) end
  return s
end

-- Inputs are 0 beyond their last element.
local function x(i, n) return i < n and i % 7 + 1 or 0 end

-- Programs whose results are exact in f32, and element i of their results.
local PROGRAMS = {
  ["y = 2 * x + 1"] = function(i, n) return 2 * x(i, n) + 1 end,
  ["y = y - x * (x + 3) - 2"] = function(i, n)
    return x(i, n) - x(i, n) * (x(i, n) + 3) - 2
  end,
  ["y = reverse(x) * 4"] = function(i, n) return reverse(x, i, n) * 4 end,
  ["y = reverse(reverse(x) + 1) / 2"] = function(i, n)
    return (x(i, n) + 1) / 2
  end,
  ["y = 2 * x + reverse(x * x) - sum(x) / 128"] = function(i, n)
    return 2 * x(i, n) + reverse(x, i, n) ^ 2 - sum(x, i, n) / 128
  end,
}

describe("the example of a front end", function()
  if not BUILT then
    pending "needs the object files of a build"
    return
  end
  for text, want in pairs(PROGRAMS) do
    it("computes " .. text .. " on the simulator #noasan", function()
      for _, n in ipairs {1, BLOCK, 300} do
        local k = 0
        for line in support.must {program, tostring(n), text}
          :gmatch "[^\n]+" do
          assert.equal(want(k, n) + 0.0, tonumber(line) + 0.0)
          k = k + 1
        end
        assert.equal(n, k)
      end
    end)
  end

  it("emits CUDA C that NVRTC compiles #noasan", function()
    for text in pairs(PROGRAMS) do
      local cuda = support.must {program, "cu", text}
      local out, why, log = core.jit_compile(cuda, "sm_80", {"--fmad=false"},
                                             true)
      if not out and why:find("[no-nvrtc]", 1, true) then
        return pending "needs NVRTC"
      end
      assert.is_truthy(out, ("%s\n%s\n%s"):format(why, log, cuda))
    end
  end)

  it("prints the IR #noasan", function()
    local ir = support.must {program, "ir", "y = sum(x)"}
    for _, line in ipairs {"bar.sync #0", "i32 for 0, 128, 1", "st y[",
                           "smem"} do
      assert.is_truthy(ir:find(line, 1, true), ir)
    end
  end)

  it("gets reports of its mistakes #noasan", function()
    local function faults(...)
      local out, _, code = support.exec {program, "300", ...}
      assert.equal(1, code)
      return out
    end
    assert.matches("^race in line 1 of the program, block %d, thread %d+\n",
                   faults("y = reverse(x)", "unsynchronized"))
    assert.matches("^out%-of%-bounds in line 1 of the program, block 2, "
                   .. "thread 64\n", faults("y = x", "unguarded"))
    local _, err, code = support.exec {program, "ir", "y = f(x)"}
    assert.equal(1, code)
    assert.matches("no function 'f': write reverse or sum", err)
  end)

  it("uses only what docs/ir.md describes", function()
    local page, code = support.read "docs/ir.md", support.read(FILE)
    for header in code:gmatch '#include "([^"]+)"' do
      assert.is_truthy(page:find("`" .. header .. "`", 1, true),
                       header)
    end
    local n = 0
    for _, prefix in ipairs {"ir_", "sim_", "emit_", "facts_", "check_",
                             "dump_", "watch_"} do
      for name in code:gmatch("%f[%w_]" .. prefix .. "[%w_]+") do
        n = n + 1
        local known = page:find("%f[%w_]" .. name .. "%f[^%w_]")
        assert.is_truthy(known, name)
      end
    end
    assert.is_true(n > 20)
  end)
end)
-- SPDX-License-Identifier: MIT
