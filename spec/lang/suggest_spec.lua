-- Tests suggestions for mistakes that Lua takes for other operations: indexing
-- of numbers and functions, a call of a call's result, kernels as arguments.
local cute = require "cute"
local support = require "spec.support"
local raises = support.raises

local PART = "write t[{i, j}] for an element of a tensor, t(i, _) for a part"

local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

describe("suggestions for mistakes", function()
  it("is an element of an element", function()
    local t = cute.zeros({4, 4}, cute.f32)
    for _, f in ipairs {
      function() return t[1][2] end,
      function() t[1][2] = 3 end,
      function() run(function(m) m[1][2] = 3 end, t) end,
      function() run(function(m) m[0] = m[1][2] end, t) end,
    } do
      raises("was indexed like a table, by 2 [bad-argument]", f)
      raises(PART, f)
    end
    raises("a number has no field 'x' [unknown-name]",
           function() return (5).x end)
    raises("a number has no field 'let' (did you mean le?) [unknown-name]",
           function() return (5):let(3) end)
    raises("a boolean has no field 'x' [unknown-name]",
           function() return (true).x end)
    raises("a boolean was indexed like a table, by 1",
           function() return (false)[1] end)
    raises("a boolean was indexed like a table, by 1", function()
      local b = false -- luacheck: ignore
      b[1] = 2
    end)
    raises("a number has no field 'x' to set", function()
      local n = 5 -- luacheck: ignore
      n.x = 1
    end)
    raises("a traced value has no field 'x' to set",
           function() run(function(m) m[0].x = 1 end, t) end)
    assert.is_true((5):lt(6))
  end)

  it("is a kernel, a call or a device as an argument", function()
    local t = cute.zeros({4}, cute.f32)
    local k = cute.kernel("k", function() end)
    local two = cute.kernel("two", function(_, _) end)
    for what, v in pairs {kernel = k, ["call of a kernel"] = k(),
      device = cute.device "sim", ["prepared launch"] =
        k():compile {grid = 1, block = 1, device = "sim"}} do
      raises(("kernel two: argument 2 is a %s, which a kernel cannot take "
        .. "[bad-argument]"):format(what), function()
          two(t, v):launch {grid = 1, block = 32, device = "sim"}
        end)
    end
    -- A table may have fields of any type if the kernel does not use them.
    two(t, {device = cute.device "sim", k = k}):launch {grid = 1, block = 32,
                                                        device = "sim"}
  end)

  it("is a call of a call", function()
    local k = cute.kernel("k", function() end)
    raises("kernel k: :launch is missing before {grid = 1} [bad-argument]\n  "
      .. "write k(...):launch {grid = g, block = b}",
      function() k() {grid = 1} end)
  end)

  it("is a field of a function", function()
    raises("cute.draw is a function, which has no field 'svg' [unknown-name]",
           function() return cute.draw.svg end)
    raises("a function, which has no field 'body'",
           function() return require "kernels.gemm_sm80".body end)
    raises("is a function, which has no field 'x'",
           function() return (function() end).x end)
    assert.equal(cute.pipeline.PipelineTmaAsync.create,
                 cute.pipeline.PipelineTmaAsync.create)
    assert.is_function(cute.pipeline.PipelineCpAsync.create)
    raises("no field 'crate' (did you mean create?)", function()
      return cute.pipeline.PipelineTmaAsync.crate
    end)
  end)
end)

describe("the Python DSL's operations of a warp", function()
  local warp = cute.nvgpu.warp
  local SCALED = "SM120::BLOCKSCALED::SM120_16x8x"

  it("are atoms", function()
    for name, op in pairs {
      SM80_16x8x16_F32BF16BF16F32_TN = warp.MmaF16BF16Op(cute.bf16, cute.f32,
                                                         {16, 8, 16}),
      SM80_16x8x8_F16F16F16F16_TN = warp.MmaF16BF16Op("f16", "f16",
                                                      {16, 8, 8}),
      SM80_16x8x4_F32TF32TF32F32_TN = warp.MmaTF32Op {16, 8, 4},
      SM89_16x8x32_F16E5M2E5M2F16_TN = warp.MmaFP8Op("e5m2", cute.f16,
                                                     {16, 8, 32}),
      [SCALED .. "64_TN_VS<float_e2m1_t,float_e2m1_t,float,float_ue8m0_t,32>"] =
        warp.MmaMXF4Op(cute.e2m1, cute.f32, cute.ue8m0),
      [SCALED .. "64_TN_VS<float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,16>"] =
        warp.MmaMXF4NVF4Op(cute.e2m1, cute.f32, "e4m3"),
      [SCALED .. "32_TN_VS<float_e5m2_t,float_e5m2_t,float,float_ue8m0_t,32>"] =
        warp.MmaMXF8Op(cute.e5m2, "f32", cute.ue8m0),
      [SCALED .. "32_TN_VS<float_e4m3_t,float_e2m1_t,float,float_ue8m0_t,32>"] =
        warp.MmaMXF8F6F4Op(cute.e4m3, cute.e2m1, cute.f32, cute.ue8m0),
    } do
      assert.equal(name, op.name)
      assert.equal(64, cute.make_tiled_mma(op, {2, 1, 1}):size())
    end
    for name, op in pairs {
      SM75_U32x4_LDSM_N = warp.LdMatrix8x8x16bOp(false, 4),
      SM75_U32x1_LDSM_N = warp.LdMatrix8x8x16bOp(),
      SM75_U16x4_LDSM_T = warp.LdMatrix8x8x16bOp(true, 2),
      SM90_U32x2_STSM_N = warp.StMatrix8x8x16bOp(false, 2),
      SM90_U16x8_STSM_T = warp.StMatrix8x8x16bOp(true, 4),
    } do
      assert.equal(name, cute.make_copy_atom(op, cute.bf16).name)
    end
  end)

  it("report unsupported arguments", function()
    raises("MmaF16BF16Op: the accumulators' type is f16; it may be f32",
           warp.MmaF16BF16Op, "bf16", cute.f16, {16, 8, 16})
    raises("MmaF16BF16Op: no instruction of shape {16, 8, 4}; possible: "
      .. "{16, 8, 16}, {16, 8, 8}",
           warp.MmaF16BF16Op, "bf16", cute.f32, {16, 8, 4})
    raises("MmaFP8Op: no instruction of shape {16, 8, 16}; possible: "
      .. "{16, 8, 32}", warp.MmaFP8Op, "e4m3", cute.f32, {16, 8, 16})
    raises("MmaMXF8Op: the operands' type is e2m1; it may be e4m3, e5m2",
           warp.MmaMXF8Op, cute.e2m1, cute.f32, cute.ue8m0)
    raises("MmaMXF4Op: the scale factors' type is e4m3; it may be ue8m0",
           warp.MmaMXF4Op, "e2m1", cute.f32, cute.e4m3)
    raises("LdMatrix8x8x16bOp: 3 matrices; 1, 2 or 4", warp.LdMatrix8x8x16bOp,
           false, 3)
  end)
end)
-- SPDX-License-Identifier: MIT
