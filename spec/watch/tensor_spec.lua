-- Tests the advice on races in tensor memory: wrong stages of accumulators, and
-- arrivals that come before the last load is complete.
local block = require "spec.tensor_block"
local cute = require "cute"
local source = require "cute.lang.source"
local support = require "spec.support"
local faults = require "cutelua.text.faults"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._

local STAGES, TILES, N, K, EPILOGUE, HALF = 2, 4, 32, 16, 128, 16
local mma = cute.make_tiled_mma(
  tcgen05.MmaF16BF16Op("f16", "f32", {128, N, K}))
local atom = tcgen05.make_smem_layout_atom("K_INTER", cute.f16)
local load_atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(HALF), cute.f32)

-- Returns the stage of tile t. Both roles use this stage by default.
local function own(t) return t % STAGES end

-- Computes C = A B^T `TILES` times in two stages of accumulators, by a warp
-- that issues the MMAs and four warps that load their results.
-- o.tiles: the number of products. o.mma, o.load: functions that return the
-- stage of tile t whose columns are used. o.advance: whether the warp of the
-- MMAs advances its stage. o.acquire: whether it waits for the readers.
-- o.release: when the readers arrive: "loaded", after all loads are complete;
-- "half", after the first of two loads; "issued", before the last wait.
local function kernel(o)
  local of_mma, of_load = o.mma or own, o.load or own
  return cute.kernel("stages", function(A, B, C)
    local tid, warp = arch.thread_idx(), arch.warp_idx()
    local sA = cute.make_smem_tensor(cute.f16,
      cute.tile_to_shape(atom, {128, K}), 1024)
    local sB = cute.make_smem_tensor(cute.f16,
      cute.tile_to_shape(atom, {N, K}), 1024)
    local full = arch.alloc_smem(cute.i64, STAGES)
    local empty = arch.alloc_smem(cute.i64, STAGES)
    cute.when(tid:eq(0), function()
      for s = 0, STAGES - 1 do
        arch.mbarrier_init(full + s, 1)
        arch.mbarrier_init(empty + s, EPILOGUE)
      end
    end)
    local go = block.begin(STAGES * N, cute.f32)
    cute.when(tid:lt(128), function()
      block.copy_in(sA, A)
      block.copy_in(sB, B)
    end)
    local ptr = go()
    local thr = mma:get_slice(0)
    local a = mma:make_fragment_A(thr:partition_A(sA))
    local b = mma:make_fragment_B(thr:partition_B(sB))
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(
      cute.append(part.shape, STAGES)).layout)
    cute.when(tid:eq(EPILOGUE), function()
      for t in cute.range(o.tiles or TILES) do
        local s = o.advance == false and t * 0 or own(t)
        if o.acquire ~= false then
          arch.mbarrier_wait(empty + s, 1 - t // STAGES % 2)
        end
        arch.tcgen05_after_thread_sync()
        mma:set(tcgen05.Field.ACCUMULATE, false)
        local acc = sums(_, _, _, o.advance == false and s or of_mma(t))
        cute.gemm(mma, acc, a, b, acc)
        tcgen05.commit(full + s)
      end
    end)
    cute.when(warp:lt(EPILOGUE // 32), function()
      local r = cute.make_rmem_tensor(HALF, cute.f32)
      for t in cute.range(o.tiles or TILES) do
        arch.mbarrier_wait(full + own(t), t // STAGES % 2)
        arch.tcgen05_after_thread_sync()
        local tile = sums({_, _}, 0, 0, of_load(t))
        local copy = tcgen05.make_tmem_copy(load_atom, tile)
        local from = copy:get_slice(tid):partition_S(tile)
        local function release(when)
          if (o.release or "loaded") ~= when then return end
          arch.tcgen05_before_thread_sync()
          arch.mbarrier_arrive(empty + own(t))
        end
        for half = 0, 1 do
          cute.copy(load_atom, from(_, _, half), r)
          if half == 1 then release "issued" end
          arch.fence_view_async_tmem_load()
          if half == 0 then release "half" end
          for k = 0, HALF - 1 do C[{tid, half * HALF + k}] = r[k] end
        end
        release "loaded"
      end
    end)
    block.finish(ptr, STAGES * N)
  end)
end

-- Runs the kernel. Returns its first report, or nil.
local function first(o, seed)
  local A = block.small(cute.zeros({128, K}, cute.f16), 7, -2)
  local B = block.small(cute.zeros({N, K}, cute.f16), 3, -1)
  local r = support.report(kernel(o)(A, B, cute.zeros({128, N}, cute.f32))
    :launch {grid = 1, block = EPILOGUE + 32, device = "sim:sm_100a",
             seed = seed, faults = "return"})
  return r.reports[1]
end

-- Checks the sentence and the advice of the first report.
local function reports(o, sentence, advice)
  local r = first(o, 1)
  assert.equal(sentence, r.message)
  assert.equal(advice, (faults.advice(r)))
  return r
end

local UNFINISHED = "read after the write of column %d of tensor memory by a "
  .. "tcgen05.mma, whose completion was not waited for"

describe("in tensor memory", function()
  it("stages in turn have no reports and no notes", function()
    local said = support.told(function()
      for seed = 1, 4 do assert.is_nil(first({}, seed)) end
    end)
    assert.same({}, said)
  end)

  it("an arrival that does not cover a load is named", function()
    for _, release in ipairs {"half", "issued"} do
      local r = reports({release = release}, "write after the read of column "
        .. "16 of tensor memory by a load, which an earlier arrival does not "
        .. "cover", "arrive after the last access to the columns and after "
        .. "cute.arch.fence_view_async_tmem_load()")
      assert.equal("arrive(empty + own(t))",
        source.line(r.wait_file, r.wait):match "mbarrier_(.*)")
      assert.matches("\n    the arrival: tensor_spec.lua:%d+\n",
                     faults.text(r))
    end
  end)

  it("columns of another stage than that of the wait are a question", function()
    reports({mma = function() return 0 end}, UNFINISHED:format(0), "the MMA "
      .. "follows a wait for stage 1, and the other access a wait for stage 0: "
      .. "does each use the columns of its stage?")
    local ready = "the wait completed the MMA to column 0, which no thread has "
      .. "read: do the MMA, the wait and this load use the same stage?"
    local function other(t) return 1 - own(t) end
    reports({load = other}, UNFINISHED:format(N), ready)
    reports({load = other, tiles = 1}, ("column %d of tensor memory is read, "
      .. "but nothing wrote it"):format(N), ready)
  end)

  it("a stage that is not advanced or acquired is named", function()
    reports({advance = false}, UNFINISHED:format(0), "advance after each "
      .. "stage: state:advance() of a pipeline, or the next index and parity, "
      .. "so that the waits go around the ring")
    reports({acquire = false}, UNFINISHED:format(0), "no thread waits at the "
      .. "mbarrier of the readers: wait there before the MMAs of a stage, as "
      .. "pipe:producer_acquire(state) does")
  end)
end)
-- SPDX-License-Identifier: MIT
