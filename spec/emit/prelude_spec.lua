-- Tests all of core/emit/prelude.cu. Compilers must accept every helper that
-- may precede a kernel, and only the helpers that the kernel needs may be
-- emitted.
local cudahost = require "spec.cudahost"
local cute = require "cute"
local jit = require "cute.jit"
local kernels = require "spec.kernels"
local support = require "spec.support"

local prelude = support.read "core/emit/prelude.cu"
  .. support.read "core/emit/preludemem.cu"

-- Returns the names of the prelude's functions in order; each name once, also
-- if it is overloaded.
local function functions()
  local names = {}
  for name in prelude:gmatch "__forceinline__ [^\n(]-([%w_]+)%(" do
    if not names[name] then names[#names + 1] = name end
    names[name] = true
  end
  return names
end

describe("the prelude", function()
  it("has functions that compile for every architecture", function()
    -- Exports the functions, which the compiler would drop without a caller.
    local text = prelude:gsub("static __device__ __forceinline__",
                              "__device__ __noinline__")
    for _, arch in ipairs {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"} do
      local out, why = jit.compile(text, {arch = arch,
        options = {"--relocatable-device-code=true"}})
      if not out and why:find("[no-nvrtc]", 1, true) then return end
      assert.is_truthy(out, why)
    end
  end)

  it("compiles as C++ for the host", function()
    if not cudahost.compiler() then return end
    local dir <close> = setmetatable({path = support.folder()}, {
      __close = function(d) support.remove(d.path) end})
    support.write(dir.path .. "/k.cc", '#include "cudahost.h"\n', prelude)
    for _, arch in ipairs {"750", "800", "890", "1000"} do
      local out, err = support.exec {cudahost.compiler(), "-std=c++17",
        "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unknown-pragmas",
        "-fsyntax-only", "-Ispec", "-D__CUDA_ARCH__=" .. arch,
        dir.path .. "/k.cc"}
      assert.equal("", err .. out)
    end
  end)

  it("has blocks that begin with their name and end at an empty line",
     function()
    local blocks = 0
    for name, text in prelude:gmatch "//: ([%l%d_]+)\n(.-\n)\n" do
      blocks = blocks + 1
      local called = text:match "__forceinline__ [^\n(]-([%w_]+)%("
        or text:match "#define ([%w_]+)%(":lower()
      assert.equal(called, name:sub(1, #called))
      local _, opened = text:gsub("#if ", "")
      local _, closed = text:gsub("#endif", "")
      assert.equal(opened, closed, name)
    end
    assert.is_true(blocks >= #functions())
  end)

  it("contributes only what a kernel needs for its target",
     function()
    local call = cute.kernel("k", function(out, x)
      out:store(x:load():to(cute.bf16))
    end)(cute.zeros({2}, cute.bf16), cute.zeros({2}, cute.f32))
    local function helpers(arch)
      local found, text = {}, call:trace {block = 1}:cuda(arch)
      for name in text:gmatch "__forceinline__ [^\n(]-([%w_]+)%(" do
        found[#found + 1] = name
      end
      assert.is_nil(text:find("__CUDA_ARCH", 1, true))
      return table.concat(found, " ")
    end
    assert.equal("pack_bf16", helpers "sm_80")
    assert.equal("f32_to_bf16 pack_bf16", helpers "sm_75")
  end)

  -- The instruction for one value, cvt.rn.bf16.f32, takes three times as long
  -- as cvt.rn.bf16x2.f32 for two values.
  it("rounds one value to bf16 as half of a pair", function()
    local k = cute.kernel("k", function(a, b, c)
      local i = cute.arch.thread_idx()
      b[i] = a[i]:to(cute.bf16)
      c[i] = a[i + 32]:to(cute.bf16):to(cute.f32) + 1
    end)(cute.zeros({64}, cute.f32), cute.zeros({32}, cute.bf16),
         cute.zeros({32}, cute.f32)):trace {block = 32}
    for _, arch in ipairs {"sm_80", "sm_90a"} do
      local out = kernels.compiled(k, arch)
      if not out then return pending "needs NVRTC" end
      assert.is_nil(out.ptx:find("cvt.rn.bf16.f32", 1, true))
      assert.equal(2, select(2, out.ptx:gsub("cvt%.rn%.bf16x2%.f32", "")))
    end
  end)

  it("leaves pairs to ptxas, which rounds both at once", function()
    local k = cute.kernel("k", function(a, b)
      local r = cute.make_rmem_tensor({2}, cute.bf16)
      local i, sum = cute.arch.thread_idx(), 0.0
      for j = 0, 1 do
        local x = a[2 * i + j] * 3
        r[j] = x:to(cute.bf16)
        sum = sum + x
      end
      cute.autovec_copy(r, cute.local_tile(b, {2}, {i}))
      a[i] = sum
    end)(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.bf16))
      :trace {block = 32}
    local text = k:cuda "sm_90a"
    assert.equal(3, select(2, text:gsub("f32_to_bf16_half%(", "")))
    local out = kernels.compiled(k, "sm_90a")
    if not out then return pending "needs NVRTC" end
    assert.equal(2, select(2, out.ptx:gsub("cvt%.rn%.bf16%.f32", "")))
  end)
end)
-- SPDX-License-Identifier: MIT
