-- Tests the emitted text of wgmma: NVRTC must accept each family of
-- instructions without a warning about serialised instructions.
local cute = require "cute"
local kernels = require "spec.kernels"
local specs = require "spec.warpgroup"
local support = require "spec.support"
local warpgroup = cute.nvgpu.warpgroup

local function compile(c)
  local A, B, D, E = specs.operands(c)
  local kernel, threads = specs.kernel(c)
  local options = {grid = 1, block = threads, device = "sim:sm_90a"}
  if E then return cute.compile(kernel, A, B, D, E, options).program end
  return cute.compile(kernel, A, B, D, options).program
end

describe("the text of a warpgroup's MMA", function()
  for _, c in ipairs(specs.cases) do
    it("compiles: " .. specs.name(c), function()
      local out = kernels.compiled(compile(c), "sm_90a")
      if not out then
        pending "needs NVRTC"
        return
      end
      assert.same({}, out.warnings)
      assert.same({}, out.losses)
      assert.equal(0, out.resources.spill_stores)
    end)
  end

  it("is one call an instruction, descriptors once, and the wait names the "
    .. "accumulators", function()
    local text = compile {a = "bf16", acc = "f32", n = 64}:cuda "sm_90a"
    local function count(what)
      return select(2, text:gsub(what:gsub("%p", "%%%0"), ""))
    end
    assert.equal(5, count "SM90_64x64x16_F32BF16BF16_SS_K_K(")
    assert.equal(2, count " = smem_desc(" + count "      smem_desc(")
    assert.truthy(text:find("  SM90_64x64x16_F32BF16BF16_SS_K_K(&acc[0], "
      .. "tCrA + 2ull, tCrB + 2ull, true);\n", 1, true), text)
    assert.truthy(text:find("wgmma.wait_group.sync.aligned 0;\" ::: "
      .. "\"memory\");\n  wgmma_retire_f32x32(&acc[0]);\n", 1, true), text)
  end)

  -- Two sets of accumulators in turn: each iteration starts an MMA for one and
  -- adds the other one's completed results. With `drained`, no MMA runs when
  -- the next iteration begins.
  local function turns(drained)
    local mma = cute.make_tiled_mma(
      warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
    local k = cute.kernel("turns", function(mD, n)
      local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
        warpgroup.make_smem_layout_atom("K_SW128", "bf16"), {64, 64}), 1024)
      local thr = mma:get_slice(cute.arch.thread_idx())
      local a = mma:make_fragment_A(thr:partition_A(s))
      local b = mma:make_fragment_B(thr:partition_B(s))
      local x = mma:make_fragment_C(thr:partition_C(mD))
      local y, sum = cute.make_fragment_like(x), cute.make_fragment_like(x)
      local function start(acc)
        warpgroup.fence()
        mma:set(warpgroup.Field.ACCUMULATE, false)
        cute.gemm(mma, acc, a, b, acc)
        mma:set(warpgroup.Field.ACCUMULATE, true)
        warpgroup.commit_group()
      end
      local function finish(acc, later)
        warpgroup.wait_group(later)
        sum:store(sum:load() + acc:load())
      end
      sum:fill(0)
      if not drained then start(x) end
      for _ in cute.range(n) do
        if drained then start(x) end
        start(y)
        finish(x, 1)
        if not drained then start(x) end
        finish(y, drained and 0 or 1)
      end
      if not drained then finish(x, 0) end
      cute.autovec_copy(sum, thr:partition_C(mD))
    end)
    local text, lines, name, options = cute.compile(k,
      cute.zeros({64, 64}, "f32"), 4, {grid = 1, block = 128,
      device = "sim:sm_90a"}).program:cuda "sm_90a"
    -- program:compile would print the warning.
    return require "cute.jit".compile(text, {arch = "sm_90a", name = name,
                                             lines = lines, options = options})
  end

  it("gets advice if an MMA runs at the end of an iteration", function()
    local out, why = turns(false)
    if not out and why:find("[no-nvrtc]", 1, true) then
      pending "needs NVRTC"
      return
    end
    assert.equal(1, #assert(out, why).losses)
    assert.matches("^wgmma_spec.lua:%d+: %(C7514%) .*; does a wgmma run while "
      .. "a loop that reads accumulators begins its next iteration%? end each "
      .. "iteration with warpgroup.wait_group%(0%)$", out.losses[1])
    assert.same({}, turns(true).losses)
  end)

end)

describe("the text of a warpgroup's MMA", function()
  it("that has too few registers is reported at its line", function()
    local dir = support.folder()
    support.write(dir .. "/big.lua", [[
local cute = require "cute"
local warpgroup = cute.nvgpu.warpgroup
local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 256, 16}, "SMEM"))
local s_layout = cute.tile_to_shape(
  warpgroup.make_smem_layout_atom("K_SW128", "bf16"), {256, 64})
local big = cute.kernel("big", function(mD, n)
  local s = cute.make_smem_tensor(cute.bf16, s_layout, 1024)
  local thr = mma:get_slice(cute.arch.thread_idx())
  local a = mma:make_fragment_A(thr:partition_A(s))
  local b = mma:make_fragment_B(thr:partition_B(s))
  local acc = mma:make_fragment_C(thr:partition_C(mD))  -- 512 registers
  for _ in cute.range(n) do
    warpgroup.fence()
    cute.gemm(mma, acc, a, b, acc)
    warpgroup.commit_group()
    warpgroup.wait_group(1)
  end
  warpgroup.wait_group(0)
  cute.autovec_copy(acc, thr:partition_C(mD))
end)
local program = cute.compile(big, cute.zeros({256, 256}, "f32"), 4,
  {grid = 1, block = 128, device = "sim:sm_90a"}).program
local out, why = program:compile "sm_90a"
if not out then print(why) return end
print(#out.losses)
for _, text in ipairs(out.losses) do print(text) end
]])
    local out, err = support.run {dir .. "/big.lua"}
    support.remove(dir)
    if out:find("[no-nvrtc]", 1, true) then
      pending "needs NVRTC"
      return
    end
    assert.truthy(out:find("^2\nbig.lua:15: %(C751%d%) "), out .. err)
    assert.truthy(out:find("\nkernel big spills %d+ bytes of registers"), out)
    assert.truthy(err:find("warning: big.lua:15: (C751", 1, true), err)
  end)
end)
-- SPDX-License-Identifier: MIT
