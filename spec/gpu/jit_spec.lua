local core = require "cute.core"
local jit = require "cute.jit"
local support = require "spec.support"

local has_nvrtc = jit.version() ~= nil

local function needs_nvrtc(name, f)
  if has_nvrtc then it(name, f) else pending(name .. " (needs NVRTC)") end
end

local scale = [[
extern "C" __global__ void scale(float *p, float x) {
  __shared__ float s[64];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[63 - threadIdx.x] * x;
}
]]

local spills = [[
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float *p) {
  float v[64];
  for (int i = 0; i < 64; i++) v[i] = p[threadIdx.x + i * 1024];
  for (int k = 0; k < 64; k++)
    for (int i = 0; i < 64; i++) v[i] = v[i] * v[(i + 1) & 63] + v[k];
  for (int i = 0; i < 64; i++) p[threadIdx.x + i * 1024] = v[i];
}
]]

describe("jit.compile", function()
  needs_nvrtc("gives a CUBIN and its resources for the exact arch", function()
    for _, arch in ipairs {"sm_80", "sm_90a"} do
      local out = assert(jit.compile(scale, {arch = arch, name = "scale",
                                             cache = false}))
      assert.equal("\x7fELF", out.cubin:sub(1, 4))
      assert.truthy(out.ptx:find(".target " .. arch, 1, true))
      local r = out.resources
      assert.truthy(r.registers >= 4 and r.registers <= 32)
      assert.equal(256, r.smem_static)
      assert.equal(1, r.barriers)
      assert.equal(0, r.stack)
      assert.equal(0, r.spill_stores)
      assert.equal(0, r.spill_loads)
      -- The constant memory has the driver's parameters and the kernel's 12
      -- bytes of parameters.
      assert.truthy(r.const > 12 and r.const < 1024)
      assert.equal(arch, out.arch)
      assert.same({}, out.warnings)
      assert.falsy(out.cached)
      assert.equal(jit.version(), out.nvrtc)
      assert.truthy(out.seconds > 0)
    end
  end)

  needs_nvrtc("tells spills", function()
    local out = assert(jit.compile(spills, {arch = "sm_80", name = "spills"}))
    assert.truthy(out.resources.spill_stores > 0)
    assert.truthy(out.resources.spill_loads > 0)
    assert.truthy(out.resources.stack > 0)
    assert.equal(32, out.resources.registers)
  end)

  needs_nvrtc("gives only PTX for a compute_ target", function()
    local out = assert(jit.compile(scale, {arch = "compute_80",
                                           name = "scale"}))
    assert.truthy(out.ptx:find(".target sm_80", 1, true))
    assert.is_nil(out.cubin)
  end)

  needs_nvrtc("passes options on, and each makes its own code", function()
    local plain = assert(jit.compile(scale, {arch = "sm_80"}))
    local info = assert(jit.compile(scale, {arch = "sm_80",
                                            options = {"-lineinfo"}}))
    assert.falsy(plain.ptx:find("\t.loc", 1, true))
    assert.truthy(info.ptx:find("\t.loc", 1, true))
  end)

  needs_nvrtc("maps errors and warnings to the script's lines", function()
    local bad = 'extern "C" __global__ void k(int *p) {\n' ..
      '  int unused = 3;\n  *p = x;\n  *p = y;\n}\n'
    local out, message, log = jit.compile(bad, {
      arch = "sm_80", name = "mine",
      lines = {"", "a.lua:7", "a.lua:31", ""}})
    assert.is_nil(out)
    assert.equal([[kernel 'mine' does not compile for sm_80: a.lua:31: ]] ..
      [[error: identifier "x" is undefined (mine.cu:3) [compile-failed] ]],
      message:match "[^\n]*" .. " ")
    assert.truthy(log:find('mine.cu:4: error: identifier "y"', 1, true))
    assert.truthy(log:find('a.lua:7: warning', 1, true))
    assert.truthy(log:find('compilation of "mine.cu".', 1, true))
    assert.falsy(log:find("k.cu", 1, true))
  end)

  needs_nvrtc("maps what ptxas says of its own lines", function()
    local out, message = jit.compile('extern "C" __global__ void k(int *p) {\n'
      .. '  int v = p[threadIdx.x];\n  asm volatile("nonsense.b32 %0;"\n'
      .. '    : "+r"(v));\n  p[0] = v;\n}\n', {arch = "sm_90a", name = "mine",
      lines = {"a.lua:1", "a.lua:2", "a.lua:3", "a.lua:3", "a.lua:4", ""}})
    assert.is_nil(out)
    assert.matches("^kernel 'mine' does not compile for sm_90a: "
      .. "a.lua:3: error *: Not a name of any known instruction: 'nonsense' "
      .. "%(mine.cu:[34]%) %[compile%-failed%]\n", message)
  end)

  needs_nvrtc("keeps the warnings of a compile that succeeds", function()
    local out = assert(jit.compile(
      'extern "C" __global__ void k(int *p) {\n  int v = 1;\n  *p = 2;\n}\n',
      {arch = "sm_80", lines = {[2] = "w.lua:5"}}))
    assert.equal(1, #out.warnings)
    assert.truthy(out.warnings[1]:find("^w.lua:5: warning"))
  end)

  needs_nvrtc("refuses an unknown architecture", function()
    local out, message = jit.compile(scale, {arch = "sm_8x", name = "s"})
    assert.is_nil(out)
    assert.truthy(message:find "does not support sm_8x; it supports .*sm_90")
    assert.truthy(message:find("[wrong-arch]", 1, true))
  end)

  it("names the files it searched if there is no NVRTC", function()
    local out, err, code = support.run_lua({"-e", [[
      local jit = require "cute.jit"
      print(select(2, jit.compile("", {arch = "sm_80"})))
      print(select(2, jit.version()))]]},
      {CUTELUA_NO_CUDA = "1"})
    assert.equal("", err)
    assert.equal(0, code)
    local first, second = out:match "^([^\n]*)\n([^\n]*)\n$"
    assert.truthy(first:find("^NVRTC was not found %(looked for libnvrtc"))
    assert.truthy(first:find("%[no%-nvrtc%]$"))
    assert.equal(first, second)
  end)

  it("accepts only strings", function()
    assert.has_error(function() core.jit_compile() end)
    assert.has_error(function() core.jit_compile("", {}) end)
    assert.has_error(function() core.jit_compile("", "sm_80", {{}}) end)
  end)
end)

describe("jit.resources", function()
  -- The log of NVRTC 11's ptxas is worded differently.
  it("reads older logs, kernels apart from device functions", function()
    local kernels, first = jit.resources(table.concat({
      "ptxas info    : 0 bytes gmem, 24 bytes cmem[3]",
      "ptxas info    : Compiling entry function 'b' for 'sm_80'",
      "ptxas info    : Function properties for b",
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads",
      "ptxas info    : Used 255 registers, 4096 bytes smem, 368 bytes cmem[0]",
      "ptxas info    : Function properties for helper",
      "    99 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads",
      "ptxas info    : Compiling entry function 'a' for 'sm_80'",
      "ptxas info    : Function properties for a",
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
      "ptxas info    : Used 8 registers, used 2 barriers, 352 bytes cmem[0]",
    }, "\n"))
    assert.equal("b", first)
    assert.same({registers = 255, stack = 16, spill_stores = 12,
                 spill_loads = 8, smem_static = 4096, barriers = 0,
                 const = 368}, kernels.b)
    assert.same({registers = 8, stack = 0, spill_stores = 0, spill_loads = 0,
                 smem_static = 0, barriers = 2, const = 352}, kernels.a)
  end)

  it("reports errors of ptxas whole", function()
    if not jit.version() then return end
    local out, why = jit.compile(
      'extern "C" __global__ void k() { asm("foo.bar %r1;"); }',
      {arch = "sm_90a"})
    assert.is_nil(out)
    assert.is_truthy(why:find("aborted due to errors", 1, true), why)
    assert.is_nil(why:find("\0", 1, true) or why:find("x00", 1, true))
  end)

  it("rejects data that is no CUBIN", function()
    for _, s in ipairs {"", "\x7fELF\2", ("\x7fELF\2"):rep(40),
                        "\x7fELF\2" .. ("\xff"):rep(300)} do
      assert.same({}, (jit.resources("", s)))
    end
  end)
end)

describe("our CUDA declarations", function()
  local folder = os.getenv "CUDA_HOME" or "/usr/local/cuda"
  local include = folder .. "/include"
  local cc = os.getenv "CC" or "cc"
  local function compiles(source)
    local dir = support.folder()
    local path = support.write(dir .. "/check.c", source)
    local _, err, code = support.exec {cc, "-std=c11", "-fsyntax-only",
                                       "-I" .. include, "-Icore", path}
    support.remove(dir)
    return code == 0, err
  end
  local headers = "#include <cuda.h>\n#include <nvrtc.h>\n" ..
    "#include <cublas_v2.h>\n#include <cublasLt.h>\n#define CUTE_TOOLKIT\n"
  local present = support.read(include .. "/cuda.h") and
    support.read(include .. "/cublasLt.h") and
    support.read "core/gpu/cudaapi.h" and true

  local function needs_headers(name, f)
    if present then it(name, f) else pending(name .. " (needs headers)") end
  end

  needs_headers("agree with the toolkit's headers", function()
    local ok, err = compiles(headers .. '#include "gpu/cudaapi.h"\n')
    assert.equal("", err)
    assert.truthy(ok)
  end)

  needs_headers("would be caught when they do not", function()
    local text = support.read "core/gpu/cudaapi.h"
    local function with(from, to)
      local at, last = text:find(from, 1, true)
      assert.truthy(at)
      return headers .. text:sub(1, at - 1) .. to .. text:sub(last + 1)
    end
    assert.truthy((compiles(headers .. text)))
    assert.falsy((compiles(with("K(CUDA_R_16BF, 14)", "K(CUDA_R_16BF, 15)"))))
    assert.falsy((compiles(with("cuEventRecord, (CUevent, CUstream)",
                                "cuEventRecord, (CUstream, CUevent)"))))
  end)
end)

describe("a compilation that takes long", function()
  local CODE = [[
    local cute = require "cute"
    require "cute.jit".patience = %s
    local out, why = cute.kernel("slow", function(x)
      for i = 0, 9 do x[i] = x[i + 1] * 2 end
      x[11] = 3
    end)(cute.zeros({16}, cute.f32)):trace {block = 1}:compile "sm_80"
    print(out and "compiled" or why)]]
  local OFF = {CUTELUA_CACHE = "0", TERM = "xterm"}

  local function script(patience, f)
    local dir = support.folder()
    local path = support.write(dir .. "/slow.lua", CODE:format(patience))
    local out, more = f(path)
    support.remove(dir)
    return out, more
  end

  needs_nvrtc("tells a terminal what is waited for, and what it came from",
              function()
    local out = script(0, function(path)
      return support.terminal({{"", "> "}, {("dofile %q\n"):format(path),
        "compiled"}, {"os.exit()\n", ""}}, OFF)
    end)
    assert.is_truthy(out:find(
      "cutelua: compiling kernel slow for sm_80 ...", 1, true), out)
    assert.is_truthy(out:find("kernel slow took %d+%.%d s to compile: %d+ "
      .. "lines of CUDA C, 1%d from slow%.lua:4, 2 from slow%.lua:5"), out)
  end)

  needs_nvrtc("tells a pipe nothing", function()
    local out, err = script(0, function(path)
      return support.run({path}, {env = OFF})
    end)
    assert.equal("compiled\n", out)
    assert.equal("", err)
  end)

  needs_nvrtc("says nothing while it is short", function()
    local out = script(60, function(path)
      return support.terminal({{"", "> "}, {("dofile %q\n"):format(path),
        "compiled"}, {"os.exit()\n", ""}}, OFF)
    end)
    assert.is_nil(out:find("compiling kernel", 1, true), out)
    assert.is_nil(out:find("to compile", 1, true), out)
  end)
end)
-- SPDX-License-Identifier: MIT
