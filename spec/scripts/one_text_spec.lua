-- Tests kernels/gemm_atom. The same text runs with an atom of wgmma or of
-- tcgen05, on the simulators of Hopper and Blackwell, at odd sizes, without
-- reports. It must compile for both, and both must give the host's sums.
local assert = require "luassert"
local cute = require "cute"
local gemm_atom = require "kernels.gemm_atom"
local support = require "spec.support"
local tcgen05, warpgroup = cute.nvgpu.tcgen05, cute.nvgpu.warpgroup

-- Operations (atoms) by element type and architecture.
local ATOMS = {
  bf16 = {
    sm_90a = warpgroup.MmaF16BF16Op("bf16", "f32", {64, 128, 16}, "SMEM"),
    sm_100a = tcgen05.MmaF16BF16Op("bf16", "f32", {128, 128, 16})},
  f16 = {
    sm_90a = warpgroup.MmaF16BF16Op("f16", "f32", {64, 64, 16}, "SMEM"),
    sm_100a = tcgen05.MmaF16BF16Op("f16", "f32", {128, 64, 16})},
  e4m3 = {
    sm_90a = warpgroup.MmaF8Op("e4m3", "e4m3", "f32", {64, 64, 32}, "SMEM"),
    sm_100a = tcgen05.MmaFP8Op("e4m3", "f32", {128, 64, 32})},
}

local SIZES = {{150, 200, 328, "bf16"}, {77, 300, 144, "e4m3"},
               {1, 1, 16, "f16"}, {129, 65, 200, "f16"},
               {256, 128, 512, "bf16"}}

describe("kernels.gemm_atom", function()
  for nth, size in ipairs(SIZES) do
    local m, n, k, type_ = table.unpack(size)
    it(("multiplies on both: %d x %d x %d of %s"):format(m, n, k, type_)
       .. support.long(nth), function()
      local A, B = cute.zeros({m, k}, type_), cute.zeros({n, k}, type_)
      for i = 0, m * k - 1 do A[i] = (i * 7 + i // 11) % 5 - 2 end
      for i = 0, n * k - 1 do B[i] = (i * 3 + i // 13) % 5 - 2 end
      for arch, atom in pairs(ATOMS[type_]) do
        local gemm = gemm_atom {atom = atom, dtype = cute[type_]}
        local C = cute.full({m, n}, 1, cute.f32)
        local call = gemm.kernel(gemm.arguments(A, B, C, 2, 3))
        local report = support.report(call:launch {grid = gemm.grid(m, n),
          block = gemm.block, device = "sim:" .. arch})
        assert.same({}, report:notes())
        for i = 0, m - 1, 3 do
          for j = i % 7, n - 1, 7 do
            local s = 3
            for q = 0, k - 1 do s = s + 2 * A(i, q) * B(j, q) end
            if s ~= C(i, j) then
              assert.equal(s, C(i, j), ("%s: C(%d,%d)"):format(arch, i, j))
            end
          end
        end
        if cute.jit.version() then
          local p = call:compile {arch = arch, grid = 1, block = gemm.block}
          assert(cute.jit.compile(p.source, {arch = arch}))
        end
      end
    end)
  end

  it("rejects tiles that do not fit the atom", function()
    for _, tile in ipairs {{64, 128, 64}, {128, 64, 64}, {128, 128, 32}} do
      support.raises("128 rows, the columns of the atom, 128", gemm_atom,
                     {atom = ATOMS.bf16.sm_100a, tile = tile})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
