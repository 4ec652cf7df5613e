--- The main loop of the consumers of kernels/gemm_sm90: multiplies the stages
-- of a tile as they arrive.
local core = require "cute.core"
local cute = require "cute"
local tiles = require "cute.tiles"

local _ = cute._
local warpgroup = cute.nvgpu.warpgroup

local mainloop = {}

--- Returns the MMA operation for n columns.
function mainloop.op(o, n)
  local a, b = o.a_dtype, o.b_dtype
  if a.bits == 32 then return warpgroup.MmaTF32Op({64, n, 8}, "SMEM") end
  if a.bits == 16 then
    return warpgroup.MmaF16BF16Op(a, o.acc, {64, n, 16}, "SMEM",
      o.a_major == "k" and "K" or "MN", o.b_major == "k" and "K" or "MN")
  end
  local make = a.is_integer and warpgroup.MmaI8Op or warpgroup.MmaF8Op
  return make(a, b, o.acc, {64, n, 32}, "SMEM")
end

-- Starts the products of the stage at state `read`: acc = A B^T if k is 0,
-- otherwise acc += A B^T.
local function start(mma, pipe, read, k, acc, rows, tCrB)
  pipe:consumer_wait(read)
  warpgroup.fence()
  mma:set(warpgroup.Field.ACCUMULATE, core.gt(k, 0))
  cute.gemm(mma, acc, rows(_, _, _, read.index), tCrB(_, _, _, read.index), acc)
  mma:set(warpgroup.Field.ACCUMULATE, true)
  warpgroup.commit_group()
end

--- Multiplies one tile: acc = A B^T. Releases each stage once the products of
-- the next stage are in flight. Calls issued() when all products are in flight.
function mainloop.multiply(mma, pipe, read, acc, tCrA, tCrB, k_tiles, issued)
  local before = read:clone()
  for k in cute.range(k_tiles) do
    start(mma, pipe, read, k, acc, tCrA, tCrB)
    warpgroup.wait_group(1)
    cute.when(core.gt(k, 0), function() pipe:consumer_release(before) end)
    before.index = read.index
    read:advance()
  end
  issued()
  warpgroup.wait_group(0)
  pipe:consumer_release(before)
end

-- Adds accumulators to `sums`, multiplied by their scale factors if there are
-- any.
local function add(sums, acc, factors)
  if factors then
    sums:store(cute.fma(acc:load(), factors.by():load(), sums:load()))
  else
    sums:store(sums:load() + acc:load())
  end
end

-- Returns the number of stages in an iteration of multiply_overlapped. No
-- products may run from one iteration to the next: ptxas would serialize all
-- wgmmas. With scale factors and narrow tiles, an iteration uses each set of
-- accumulators only once. If it used them twice, NVRTC would move the first
-- additions after the next wgmma.fence, and copy accumulators there.
local function chain_of(o) return o.blocks and o.tile[2] < 64 and 2 or 4 end

--- Multiplies one tile and returns the sums, like multiply_promoted with
-- promote = 1 and 64 rows for each warpgroup. The products of a stage run while
-- those of the preceding stage are added, so there are two sets of
-- accumulators.
function mainloop.multiply_overlapped(o, mma, pipe, read, acc, rows, tCrB,
                                      k_tiles, factors)
  local function fresh() return cute.make_fragment_like(acc) end
  local sums, ahead, chain = fresh(), read:clone(), chain_of(o)
  sums:fill(0)
  local function issue(set)
    start(mma, pipe, ahead, 0, set, rows, tCrB)
    ahead:advance()
  end
  -- Adds the products of a stage. `later` is the number of later stages whose
  -- products have begun.
  local function finish(set, later)
    if factors then factors.take(0) end
    warpgroup.wait_group(later)
    pipe:consumer_release(read)
    read:advance()
    add(sums, set, factors)
    if factors then factors.release() end
  end
  for _ in cute.range(k_tiles // chain) do
    local now, later = fresh(), fresh()
    issue(now)
    for _ = 1, chain - 1 do
      issue(later)
      finish(now, 1)
      now, later = later, now
    end
    finish(now, 0)
  end
  for _ in cute.range(k_tiles % chain) do
    local now = fresh()
    issue(now)
    finish(now, 0)
  end
  return sums
end

--- Multiplies one tile and returns the sums, in type o.acc. acc holds the
-- accumulators for 64 rows of each warpgroup. After every `promote` tiles along
-- K, acc is added to the sums. Each fragment in the list tCrA is for 64 rows of
-- A in each warpgroup.
function mainloop.multiply_promoted(o, mma, pipe, read, acc, tCrA, tCrB,
                                    k_tiles, factors)
  local sums = cute.make_rmem_tensor(cute.size(acc) * #tCrA, o.acc)
  sums:fill(0)
  local function each(count, f)
    if o.promote == 1 then return f(0) end
    for k in cute.range(count) do f(k) end
  end
  for at in cute.range(tiles.count(k_tiles, o.promote)) do
    local count = cute.min(o.promote, k_tiles - at * o.promote)
    for i, rows in ipairs(tCrA) do
      local from = read:clone()
      each(count, function(k)
        start(mma, pipe, from, k, acc, rows, tCrB)
        from:advance()
      end)
      if factors then factors.take(i - 1) end
      warpgroup.wait_group(0)
      if i == #tCrA then
        each(count, function()
          pipe:consumer_release(read)
          read:advance()
        end)
      end
      add(cute.make_tensor(sums.iterator + (i - 1) * cute.size(acc),
                           acc.layout), acc, factors)
    end
    if factors then factors.release() end
  end
  return sums
end

return mainloop
-- SPDX-License-Identifier: MIT
