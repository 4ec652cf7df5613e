-- The parts of a Hopper GEMM: C = A B^T with persistent blocks, TMA loads by
-- one thread, warpgroups that multiply, and clusters that share loads.
--
-- kernels/gemm_sm90.lua has all options of this kernel as parameters.
-- kernels/gemm_sm90/choice.lua chooses the options by size and type. The kernel
-- extends gemm_ws.lua for large matrices. Each SM has one block, which computes
-- several tiles. So the loads of the next tile overlap with the epilogue of the
-- current tile. The two blocks of a cluster share the loads of B. Tiles are
-- ordered in groups of 8, whose reads overlap in L2. Accumulators are stored by
-- stmatrix and TMA while the next tile is multiplied.
--   cutelua scripts/gemm_hopper.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local gemm_sm90 = require "kernels.gemm_sm90"
local lesson = require "cutelua.bench.lesson"

-- Returns the launch of a lesson: the kernel gemm_sm90 with these options.
local function rung(choices)
  choices.name = "gemm_hopper"
  local k = gemm_sm90(choices)
  return {kernel = k.kernel, tile = k.options.tile, block = k.block,
          cluster = k.cluster, takes = k.takes,
          grid = function(m, n) return k.grid(m, n) end,
          arguments = function(...)
            local list = k.arguments(...)
            return table.unpack(list, 1, list.n)
          end}
end

-- Returns a variant for another type, with the options that suit the size.
local function typed(word, types, o, mma, more)
  local v = {"--dtype", word, types = types,
    general = gemm_sm80 {tile = {128, 128, 1024 // o.dtype.bits}, mma = mma,
      stages = 2, atoms = {2, 4, 1},
      permutation = {32, 64, 256 // o.dtype.bits}},
    choose = function(m, n, k) return rung(gemm_sm90.choose(m, n, k, o)) end}
  for name, x in pairs(more or {}) do v[name] = x end
  return v
end

local spec = rung {tile = {128, 256, 64}, stages = 4, cluster = {2, 1}}
spec.general = gemm_sm80 {tile = {128, 128, 64}, stages = 2}
spec.archs, spec.needs = {"sm_90a"}, "wgmma"
function spec.choose(m, n, k) return rung(gemm_sm90.choose(m, n, k)) end
spec.variants = {
  {"--dtype", "bf16", help = "type of A and B"},
  typed("f16", {"f16", "f16", "f16"}, {dtype = cute.f16},
        "SM80_16x8x16_F32F16F16F32_TN"),
  -- Sums of 8-bit floats have 13 bits, so every 128 products are added in f32.
  typed("e4m3", {"e4m3", "e4m3", "bf16"}, {dtype = cute.e4m3, promote = 1},
        "SM89_16x8x32_F32E4M3E4M3F32_TN", {unit = 1.25 * 0x1p-13}),
  typed("tf32", {"f32", "f32", "f32"}, {dtype = cute.f32},
        "SM80_16x8x8_F32TF32TF32F32_TN", {tf32 = true}),
  typed("i8", {"i8", "i8", "i32"}, {dtype = cute.i8},
        "SM80_16x8x32_S32S8S8S32_TN", {sums = "i32"}),
}
spec.about = "C = A B^T for Hopper: persistent blocks, specialised warps, "
  .. "clusters, TMA loads and stores (sm_90a)."

lesson.gemm(arg, spec)
-- SPDX-License-Identifier: MIT
