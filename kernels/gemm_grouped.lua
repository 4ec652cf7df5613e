--- GEMMs of one N and K and of any M each, in one launch: C_g = A_g B_g^T, as
-- the experts of a mixture need them.
--
--     local k = gemm_grouped {}
--     k.kernel(A, B, C, ends):launch {grid = k.grid(m, n, groups),
--                                     block = k.block}
--
-- A (M,K) and C (M,N) hold the rows of all groups one after the other, group g
-- from ends[g - 1] (or 0) to ends[g] - 1, any number of them; B is (N,K,G).
-- ends is i32 in memory of the device: how many rows a group has need not be
-- known to the host.
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local tiles = require "cute.tiles"
local _ = cute._

-- The group and the tile of rows in it that tile `at` of all is; its rows. A
-- walk over the groups, the same for all threads: at < 0 ends it.
local function find(ends, at, BM)
  local group, first, rows, rest = -1, 0, 0, at
  local below = 0
  cute.loop(function()
    return cute.ge(rest, below) & cute.lt(group + 1, cute.size(ends))
  end, function()
    rest = rest - below
    group = group + 1
    first = first + rows
    rows = ends[group] - first
    below = (rows + (BM - 1)) // BM
  end)
  return group, first, rows, rest, cute.lt(rest, below)
end

-- Rows of t from the first on, so many of them.
local function rows_of(t, first, rows)
  local l = cute.make_layout({rows, t.shape[2]}, t.stride)
  return cute.make_tensor(cute.domain_offset({first, 0}, t).iterator, l)
end

---@param o? table what kernels.gemm_sm80 takes
return function(o)
  local p = {name = "gemm_grouped"}
  for k, v in pairs(o or {}) do p[k] = v end
  local gemm = gemm_sm80(p)
  local BM, BN = gemm.tile[1], gemm.tile[2]
  local out = {tile = gemm.tile, block = gemm.block}

  --- Blocks for m rows of all groups together: each group may end in a tile
  -- that is not full.
  function out.grid(m, n, groups)
    return {tiles.count(n, BN), tiles.count(m, BM) + groups - 1, 1}
  end

  out.kernel = cute.kernel(p.name, {min_blocks = p.min_blocks},
    function(mA, mB, mC, ends, ...)
      local bn, at = cute.arch.block_idx()
      local group, first, rows, bm, some = find(ends, at, BM)
      local more = table.pack(...)
      cute.when(some, function()
        gemm.run(rows_of(mA, first, rows), mB(_, _, group),
          rows_of(mC, first, rows), {at = {bm, bn}},
          table.unpack(more, 1, more.n))
      end)
    end)
  return out
end
