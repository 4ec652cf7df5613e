--- Computes D_g = A_g B_g^T for all groups g in one launch, as for the experts
-- of a mixture-of-experts layer. A_g is (M_g,K), B_g (N,K) and D_g (M_g,N): N
-- and K are the same for all groups.
--
--     local k = gemm_grouped {form = "rows"}
--     k.kernel(A, B, D, offsets):launch {grid = k.grid(m, n, groups),
--                                        block = k.block}
--
-- A (M,K) and D (M,N) hold the rows of all groups, where M is the number of all
-- rows. With form = "masked", A (M,K,G) and D (M,N,G) hold the rows of each of
-- the G groups separately. `counts`, the last argument, then has the number of
-- rows of each group (see kernels.groups). B is (N,K,G). The host need not know
-- the number of rows of each group.
local rules = require "kernels.operand_rules"
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local groups = require "kernels.groups"
local tiles = require "cute.tiles"

---@param o? table the options of kernels.gemm_sm80, and `form`, the form of the
-- groups (default "rows")
return function(o)
  local p, rest = rules.shared("gemm_grouped", o,
    {name = "gemm_grouped", form = "rows"}, "form", rules.GEMM)
  local gemm = gemm_sm80(rest)
  local BM, BN = gemm.tile[1], gemm.tile[2]
  local out = {tile = gemm.tile, block = gemm.block, mma = gemm.mma}

  --- Returns the grid for `count` groups and n columns. m is the number of rows
  -- of all groups together. With form = "masked", m is the largest number of
  -- rows of a group. The grid is large enough even if every group ends in a
  -- partial tile.
  function out.grid(m, n, count)
    return {tiles.count(n, BN), groups.most(p.form, m, count, BM), 1}
  end

  out.kernel = cute.kernel(p.name, {min_blocks = p.min_blocks},
    function(mA, mB, mD, where, ...)
      if p.pdl then cute.arch.griddepcontrol_wait() end
      local bn, place = cute.arch.block_idx()
      local s = groups.search(p.form, where, mD.shape[1],
                              {rows = BM, across = 1})
      s:find(place)
      local given = table.pack(...)
      local function view(t) return groups.view(t, s) end
      -- Rows outside all groups may have undefined elements.
      local function some(t) return view(cute.undefined_ok(t)) end
      cute.when(s:has(place), function()
        local more = table.move(given, 1, given.n, 1, {})
        if p.blocks then
          more[1] = more[1] and view(more[1])
          more[2] = more[2] and tiles.batch(more[2], s.group)
        end
        gemm.run(view(mA), tiles.batch(mB, s.group), some(mD),
          {at = {place - s.before, bn}, batch = some, l = s.group},
          table.unpack(more, 1, given.n))
      end)
    end)
  return out
end
-- SPDX-License-Identifier: MIT
