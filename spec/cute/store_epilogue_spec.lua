-- Tests tiles.epilogue, which stores the accumulators of a tile to a tensor by
-- TMA, through a ring of buffers in shared memory. Each element encodes its
-- position, so that all are checked.
local cute = require "cute"
local tiles = require "cute.tiles"
local kernels = require "spec.kernels"
local support = require "spec.support"

local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup

local function value(m, n, l) return (m * 7 + n * 13 + l * 31) % 251 end

-- Stores the tiles of an M x N x L tensor. The tiles are assigned to two blocks
-- alternately. The MMA has c.n columns and c.groups warpgroups. The ring has
-- c.stages stages of c.epi columns each. The block has c.side additional
-- threads, which do nothing. Returns the program.
local function leave(c, device)
  local M, N, L = c.shape[1], c.shape[2], c.shape[3]
  local BM, BN, EM, EN = c.tile[1], c.tile[2], 64 * c.groups, c.epi
  local threads, dtype = 128 * c.groups, c.dtype or cute.f16
  local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("f16", "f32",
    {64, c.n, 16}, "SMEM", "K", "K"), {c.groups, 1, 1})
  local pad = (c.major and M or N) + 7 & ~7
  local memory = cute.zeros({(c.major and N or M) * pad * (L or 1)}, dtype)
  local stride = c.major and {1, pad, pad * N} or {pad, 1, pad * M}
  local D = cute.make_tensor(memory.iterator, cute.make_layout(c.shape,
    L and stride or {stride[1], stride[2]}))
  local box = cute.make_layout({EM, EN}, c.major and {1, EM} or {EN, 1})
  local atom, mD = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileS2GOp(), D, box, {EM, EN})
  local rows, columns = (M + BM - 1) // BM, (N + BN - 1) // BN
  local function work(store, coords, tid, sD)
    local way = tiles.epilogue {mma = mma, atom = store, coords = coords,
      smem = sD, major = c.major, thread = tid, barrier = c.side
        and cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = threads}}
    local acc = mma:make_fragment_C(mma:partition_shape_C {BM, BN})
    local at = mma:get_slice(tid):partition_C(
      cute.make_identity_tensor {BM, BN})
    for t in cute.range(cute.arch.block_idx(), rows * columns * (L or 1), 2) do
      local l, rest = t // (rows * columns), t % (rows * columns)
      local m, n = rest // columns, rest % columns
      for i = 0, cute.size(acc) - 1 do
        local x = at[i]
        acc[i] = (((m * BM + x[1]) * 7 + (n * BN + x[2]) * 13 + l * 31) % 251)
          :to(cute.f32)
      end
      way:store(acc, {m, n, l}, c.f)
    end
    way:tail()
  end
  local kernel = cute.kernel("leave", function(store, coords)
    local tid = cute.arch.thread_idx()
    local sD = cute.make_smem_tensor(dtype, cute.make_layout(
      {EM, EN, c.stages}, {box.stride[1], box.stride[2], EM * EN}), 1024)
    if not c.side then return work(store, coords, tid, sD) end
    cute.when(tid:lt(threads), function() work(store, coords, tid, sD) end)
  end)
  local call = kernel(atom, mD)
  call:launch {grid = 2, block = threads + (c.side or 0),
               device = device}
  for l = 0, (L or 1) - 1 do
    for m = 0, M - 1 do
      for n = 0, N - 1 do
        local want = value(m, n, l) + (c.f and 1 or 0)
        local got = L and D(m, n, l) or D(m, n)
        if want ~= got then
          assert.equal(want, got, ("at (%d,%d,%d)"):format(m, n, l))
        end
      end
    end
  end
  return call:trace {block = threads + (c.side or 0)}
end

describe("tiles.epilogue", function()
  local function one(x) return x + 1 end
  for i, c in ipairs {
    {groups = 1, n = 64, tile = {128, 64}, epi = 32, stages = 2,
     shape = {200, 150}, f = one},
    {groups = 1, n = 32, tile = {64, 96}, epi = 32, stages = 2,  -- 3 parts
     shape = {100, 200}},
    {groups = 2, n = 64, tile = {128, 64}, epi = 16, stages = 3,
     shape = {128, 128}},
    {groups = 1, n = 32, tile = {64, 32}, epi = 16, stages = 1,
     shape = {64, 96}, side = 32},
    {groups = 1, n = 32, tile = {128, 32}, epi = 32, stages = 2, major = "m",
     shape = {136, 40}, f = one},
    {groups = 1, n = 24, tile = {64, 24}, epi = 8, stages = 4,
     shape = {64, 48, 2}},
    {groups = 1, n = 32, tile = {64, 32}, epi = 16, stages = 2,
     shape = {64, 64}, dtype = cute.f32},
  } do
    if not support.skipped(i, 3) then
      it(("stores tiles of %d x %d, %d columns at a time, through %d buffers")
        :format(c.tile[1], c.tile[2], c.epi, c.stages), function()
          kernels.compiles(leave(c, "sim:sm_90a"), {"sm_90a"})
        end)
    end
    it(("does so on a card: case %d #gpu"):format(i), function()
      leave(c, "gpu")
    end)
  end

  it("is reported by the simulator without its tail", function()
    local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("f16", "f32",
      {64, 32, 16}, "SMEM", "K", "K"))
    local D = cute.zeros({64, 32}, "f16")
    local box = cute.make_layout({64, 32}, {32, 1})
    local atom, mD = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, box, {64, 32})
    local report = support.report(cute.kernel("k", function(store, coords)
      local sD = cute.make_smem_tensor(cute.f16,
        cute.make_layout({64, 32, 1}, {32, 1, 2048}), 1024)
      local acc = mma:make_fragment_C(mma:partition_shape_C {64, 32})
      acc:fill(1)
      tiles.epilogue {mma = mma, atom = store, coords = coords, smem = sD}
        :store(acc, {0, 0})
    end)(atom, mD):launch {grid = 1, block = 128, device = "sim:sm_90a",
                           faults = "return"})
    assert.is_false(report.ok)
  end)

  it("rejects parts with other rows than the MMA's", function()
    local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("f16", "f32",
      {64, 64, 16}, "SMEM", "K", "K"))
    local function refused(EM, EN, opts)
      local D = cute.zeros({128, 64}, "f16")
      local atom, mD = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), D,
        cute.make_layout({EM, EN}, {EN, 1}), {EM, EN})
      return (support.message(function()
        cute.kernel("k", function(store, coords)
          local way = {mma = mma, atom = store, coords = coords,
            smem = cute.make_smem_tensor(cute.f16,
              cute.make_layout({EM, EN, 1}, {EN, 1, EM * EN}), 1024)}
          for k, v in pairs(opts or {}) do way[k] = v end
          local acc = mma:make_fragment_C(mma:partition_shape_C {128, 64})
          acc:fill(0)
          tiles.epilogue(way):store(acc, {0, 0})
        end)(atom, mD):trace {block = 128}
      end))
    end
    local text = "tiles.epilogue: parts of %d x %d for an MMA of 64 x 64; "
      .. "parts must have the MMA's rows and a divisor of its columns "
      .. "[shape-mismatch]"
    assert.equal(text:format(128, 32), refused(128, 32))
    assert.equal(text:format(64, 48), refused(64, 48))
    assert.equal('tiles.epilogue: major = "k"; "n" or "m" is needed '
      .. "[bad-argument]", refused(64, 32, {major = "k"}))
  end)
end)
-- SPDX-License-Identifier: MIT
