-- Tests retile, and make_tiled_copy_S of make_tiled_copy_C_atom. They put the
-- accumulators of a tile into the order of a copy that moves a part of the
-- tile. The value of each element depends on its coordinate, so the test can
-- compare the values in the destination with the coordinates there.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

local warpgroup = cute.nvgpu.warpgroup

local function value(m, n) return (m * 7 + n * 13) % 251 end

-- Copies the accumulators of a tile c.tile = {M, N} through shared memory.
-- c.groups warpgroups compute it by an MMA of c.n columns, and each copy moves
-- c.epi elements.
local function leave(c)
  local M, N, threads = c.tile[1], c.tile[2], 128 * c.groups
  local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("f16", "f32",
    {64, c.n, 16}, "SMEM", "K", "K"), {c.groups, 1, 1})
  local atom = cute.make_copy_atom(c.atom, cute.f16, c.bits)
  local r2s = cute.make_tiled_copy_S(atom,
                                     cute.make_tiled_copy_C_atom(atom, mma))
  local EM, EN = c.epi[1], c.epi[2]
  local layout = cute.make_layout({EM, EN}, c.turned and {1, EM} or {EN, 1})
  local function kernel(mD)
    local tid = cute.arch.thread_idx()
    local thr = mma:get_slice(tid)
    local at = thr:partition_C(cute.make_identity_tensor {M, N})
    local acc = mma:make_fragment_C(mma:partition_shape_C {M, N})
    for i = 0, cute.size(acc) - 1 do
      local x = at[i]
      acc[i] = ((x[1] * 7 + x[2] * 13) % 251):to(cute.f32)
    end
    local sD = cute.make_smem_tensor(cute.f16, layout, 128)
    local tRS_sD = r2s:get_slice(tid):partition_D(sD)
    local tRS_rAcc = r2s:retile(acc)
    local tRS_rD = cute.make_rmem_tensor(
      r2s:get_slice(tid):partition_S(sD).shape, cute.f16)
    local size = cute.size(tRS_rD)
    for e = 0, M // EM * (N // EN) - 1 do
      for v = 0, size - 1 do
        tRS_rD[v] = tRS_rAcc[e * size + v]:to(cute.f16)
      end
      cute.copy(r2s, tRS_rD, tRS_sD)
      cute.arch.sync_threads()
      local gD = cute.local_tile(mD, {EM, EN}, {e // (N // EN), e % (N // EN)})
      local own = cute.make_layout {32, threads // 32}
      cute.autovec_copy(cute.local_partition(sD, own, tid),
                        cute.local_partition(gD, own, tid))
      cute.arch.sync_threads()
    end
  end
  local D = cute.zeros({M, N}, cute.f16)
  local call = cute.kernel("leave", kernel)(D)
  call:launch {grid = 1, block = threads, device = "sim:sm_90a"}
  for m = 0, M - 1 do
    for n = 0, N - 1 do
      if D(m, n) ~= value(m, n) then
        assert.equal(value(m, n), D(m, n), ("%s at (%d,%d)"):format(c.atom, m,
                                                                    n))
      end
    end
  end
  return call:trace {block = threads}
end

describe("retile of the accumulators of a whole tile", function()
  local N4, T8 = "SM90_U32x4_STSM_N", "SM90_U16x8_STSM_T"
  for i, c in ipairs {
    {atom = N4, groups = 1, n = 128, tile = {64, 128}, epi = {64, 32}},
    {atom = N4, groups = 1, n = 64, tile = {128, 64}, epi = {64, 16}},
    {atom = N4, groups = 2, n = 64, tile = {128, 64}, epi = {128, 32}},
    {atom = T8, groups = 1, n = 64, tile = {128, 64}, epi = {64, 32},
     turned = true},
    {atom = "SM90_U32x2_STSM_N", groups = 1, n = 24, tile = {64, 48},
     epi = {64, 8}},
    {atom = "UniversalCopy", bits = 32, groups = 1, n = 32, tile = {64, 32},
     epi = {64, 8}},
  } do
    if not support.skipped(i, 3) then
      it(("by %s, %d columns at a time of %d"):format(c.atom, c.epi[2], c.n),
        function()
          local program = leave(c)
          kernels.compiles(program, {"sm_90a"})
        end)
    end
  end

  it("has CuTe's shapes, and rejects tiles that do not divide", function()
    local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("bf16", "f32",
      {64, 128, 16}, "SMEM", "K", "K"))
    local atom = cute.make_copy_atom(N4, cute.bf16)
    local r2s = cute.make_tiled_copy_S(atom,
                                       cute.make_tiled_copy_C_atom(atom, mma))
    local acc = cute.make_layout({{2, 2, 16}, 2, 3})
    assert.equal("((8,8),2,3):((1,8),64,128)", tostring(r2s:retile(acc)))
    assert.equal("((8,8),2,3):((1,8),64,128)",
                 tostring(r2s:get_slice(0):retile(acc)))
    assert.equal("tiled:retile: the fragment ((2,2,3),1,1):((1,2,4),0,0) has "
      .. "12 values in its first mode, but the copy moves 8 a thread "
      .. "[shape-mismatch]",
      (support.message(function()
        r2s:retile(cute.make_layout {{2, 2, 3}, 1, 1})
      end)))
  end)
end)
-- SPDX-License-Identifier: MIT
