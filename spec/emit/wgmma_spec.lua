-- The text of a warpgroup's MMA: NVRTC takes that of every family, without a
-- word of serialised instructions.
local cute = require "cute"
local kernels = require "spec.kernels"
local specs = require "spec.warpgroup"

local function compile(c)
  local A, B, D = specs.operands(c)
  local kernel, threads = specs.kernel(c)
  return cute.compile(kernel, A, B, D, {grid = 1, block = threads,
                                        device = "sim:sm_90a"}).program
end

describe("the text of a warpgroup's MMA", function()
  for _, c in ipairs(specs.cases) do
    it("compiles: " .. specs.name(c), function()
      local out = kernels.compiled(compile(c), "sm_90a")
      if not out then
        pending "no NVRTC"
        return
      end
      assert.same({}, out.warnings)
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
end)
