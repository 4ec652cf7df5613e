-- Tests the readable text of a traced function, which `--emit ir` prints.
local cute = require "cute"
local arch = cute.arch
local L = cute.make_layout
local support = require "spec.support"

local function ir(f, ...)
  local t = {}
  for k, x in ipairs {...} do t[k] = cute.zeros({x}, cute.f32) end
  return cute.kernel("k", f)(table.unpack(t)):trace {block = 32}.ir
end

local function lines(text, what)
  local found = {}
  for line in text:gmatch "[^\n]+" do
    if line:find(what, 1, true) then found[#found + 1] = line end
  end
  return found
end

describe("the dump", function()
  it("has the script's names, and constants where they are used", function()
    local text = ir(function(x)
      local tid = arch.thread_idx()
      local twice = tid * 2
      x[twice + 3] = 1.5
    end, 64)
    assert.truthy(text:find("  twice = i32 mul tid, 2\n", 1, true), text)
    assert.truthy(text:find("%%%d+ = i32 add twice, 3\n"), text)
    assert.truthy(text:find("st x%[%%%d+%], 1.5\n"), text)
    assert.is_nil(text:find(" const ", 1, true))
  end)

  it("numbers the second variable of the same name", function()
    local text = ir(function(x)
      for n = 1, 2 do
        local at = arch.thread_idx() + n
        x[at] = n
      end
    end, 64)
    assert.truthy(text:find("st x[at], 1\n", 1, true), text)
    assert.truthy(text:find("st x%[at%.%d+%], 2\n"), text)
  end)

  it("names a chunk by its file, by its name, or as a chunk", function()
    for name, shown in pairs {["@dir/a.lua"] = "dir/a.lua",
        ["=[inside]"] = "[inside]", ["x[0] = 1 -- code"] = "chunk"} do
      local text = ir(load("local x = ...\nx[0] = 1", name), 64)
      assert.truthy(text:find("  -- " .. shown .. ":2\n", 1, true), text)
    end
  end)

  it("has a script's line number once, where it changes", function()
    local text = ir(function(x)
      x[0] = x[1] + x[2]
      x[3] = 1
    end, 64)
    local told = lines(text, "dump_spec.lua:")
    assert.equal(2, #told, text)
    assert.truthy(told[1]:match "^  %-%- .*spec/ir/dump_spec%.lua:%d+$")
  end)

  it("indents regions", function()
    local text = ir(function(x)
      for k in cute.range(x[0]:to(cute.i32)) do
        cute.when(k:lt(3), function() x[k] = 1 end)
      end
    end, 64)
    assert.truthy(text:find("\n  k = i32 for 0, %%%d+, 1\n"), text)
    assert.truthy(text:find "\n    if %%%d+\n", text)
    local rest = "\n      st x[k], 1\n    else\n    end\n  end\n"
    assert.truthy(text:find(rest, 1, true), text)
  end)

  it("prints atoms by name and runs of registers", function()
    local text = ir(function(x)
      local mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
      local a = mma:make_fragment_A(L {{8}, 1, 1})
      local b = mma:make_fragment_B(L {{4}, 1, 1})
      local acc = mma:make_fragment_C(L {{4}, 1, 1})
      a:fill(1)
      b:fill(1)
      acc:fill(0)
      cute.gemm(mma, acc, a, b, acc)
      x[arch.thread_idx()] = acc[0]
    end, 64)
    assert.truthy(text:find("mma SM80_16x8x16_F32F16F16F32_TN acc[0..3], " ..
      "a[0..6 by 2], b[0,2], acc[0..3]\n", 1, true), text)
    assert.truthy(text:find("fill 8 elements a[0], 1\n", 1, true), text)
  end)

  it("prints intrinsics, kinds and hints by name", function()
    local text = ir(function(x)
      local lane = arch.lane_idx()
      local other = arch.shuffle_sync_bfly(lane, 1)
      arch.atomic_add(x, 1.0)
      arch.fence_acq_rel_gpu()
      x[other] = cute.exp2(x[0])
    end, 64)
    for _, word in ipairs {"ask shfl.bfly", "atomic", "add x[0], 1\n",
                           "fence gpu\n", "math exp2"} do
      assert.truthy(text:find(word, 1, true), word .. "\n" .. text)
    end
  end)
end)

describe("CUTELUA_DEBUG", function()
  local function said(words)
    local folder = support.folder()
    finally(function() support.remove(folder) end)
    local script = support.write(folder .. "/s.lua", [[
local cute = require "cute"
cute.kernel("k", function(x)
  local i = cute.arch.thread_idx()
  x[i] = cute.exp2(x[i] * 3.0 + 1.0)
end)(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32,
  device = "sim", fmad = true, fastmath = true}
]])
    return (select(2, support.run_lua({script}, {CUTELUA_DEBUG = words})))
  end

  it("=sim prints the program that the simulator runs", function()
    local text = said "trace,sim"
    assert.truthy(text:find("sim k: 1 warps", 1, true), text)
    assert.truthy(text:find "%-%- line 4\n +0  v%d+ +%%%d+ = f32 ld x%[i%]\n",
                  text)
    assert.truthy(text:find " +%d+ +exit\n$", text)
  end)

  it("=trace lists what fmad and fastmath change", function()
    local text = said "trace"
    assert.truthy(text:find("line 4: add becomes fma\n", 1, true), text)
    assert.truthy(text:find("line 4: exp2 becomes ex2.approx\n", 1, true), text)
    assert.is_nil(text:find("sim k", 1, true))
    assert.equal("", said "")
  end)
end)
-- SPDX-License-Identifier: MIT
