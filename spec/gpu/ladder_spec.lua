-- Tests the GEMM ladder on a GPU: at partial and tiny sizes every step must
-- equal the simulator bit for bit. Also tests that one compiled kernel serves
-- all sizes with the same alignment.
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local load_script = require "spec.lesson"

local RUNGS = {
  "gemm_simt", "sgemm", "gemm_base", "gemm2stage", "gemm_l2swizzle",
  "gemm3stage", "gemm_sm80_best", "gemm_wgmma", "gemm_int8", "gemm_fp8_sm89",
  "gemm_tf32", "gemm_f64",
}

-- Sizes that are multiples of the tile, sizes whose rows are multiples of 16
-- bytes, and sizes that are neither.
local SIZES = {{256, 256, 256}, {128, 384, 448}, {136, 264, 80},
               {17, 129, 127}, {1, 2, 129},
               {129, 1, 17}, {127, 17, 1}, {2, 127, 2}}

describe("the GEMM ladder on a GPU #gpu", function()
  for _, name in ipairs(RUNGS) do
    it("equals the simulator bit for bit: " .. name, function()
      local rung = load_script("scripts/" .. name .. ".lua")
      local device = assert(cute.device "gpu")
      for i, size in ipairs(SIZES) do
        local o = {seed = i, dynamic = true}
        if i % 2 == 0 then o.alpha, o.beta = 2, -1 end
        local sim, gpu = lesson.problem(rung, size, o),
                         lesson.problem(rung, size, o)
        assert.is_true(lesson.simulate(rung, sim, "sim:" .. device.arch).ok)
        local run = assert(lesson.prepare(rung, gpu, device))
        assert.is_true(run:launch())
        local what = ("%s %dx%dx%d"):format(name, size[1], size[2], size[3])
        assert.is_true((lesson.verify(rung, gpu)), what)
        assert.is_true(gpu.c:equal(sim.c), what)
      end
    end)
  end

  it("takes operands in every order", function()
    local rung = load_script "scripts/gemm_sm80_best.lua"
    local device = assert(cute.device "gpu")
    for i, layout in ipairs(rung.layouts) do
      for _, size in ipairs {{256, 512, 128}, {130, 258, 66}} do
        local o = {seed = i, layout = layout}
        local sim, gpu = lesson.problem(rung, size, o),
                         lesson.problem(rung, size, o)
        assert.is_true(lesson.simulate(rung, sim, "sim:" .. device.arch).ok)
        assert.is_true(assert(lesson.prepare(rung, gpu, device)):launch())
        assert.is_true(gpu.c:equal(sim.c), layout)
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
