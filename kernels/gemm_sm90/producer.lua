--- The producer of kernels/gemm_sm90. One thread requests tiles of A and B by
-- TMA, up to the number of stages ahead of their use.
local cute = require "cute"
local groups = require "kernels.groups"
local smem = require "kernels.gemm_sm90.smem"
local tile_order = require "kernels.gemm_sm90.tile_order"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local producer = {}

--- Makes the object that loads an operand by TMA, in tiles of `rows` rows. It
-- loads from coordinates (rows,K[,L]) of the operand's tensor map to stages s.
-- Each of the cluster's blocks along `mode` (1: M, 2: N) loads a part of a
-- tile, and multicasts it to all of these blocks.
---@param how table {atom: any, coords: any, smem: any, rows: integer,
-- mode: integer, block: any[], hint: integer?, atoms: any[]?, maps: any?}
-- block: this block's position in the cluster; atoms, maps: see groups.map
function producer.load(o, how)
  local mode, block = how.mode, how.block
  local shared_by, matrices = o.cluster[mode], cute.rank(how.coords) > 2
  local stages, dtype = how.smem, how.smem.element_type
  local depth = o.tile[3] * math.min(dtype.bits, 8) // 8
  stages = smem.bytes(stages, dtype)
  local function partition(coords)
    local g = cute.local_tile(coords, {how.rows, depth},
                              matrices and {_, _, _} or {_, _})
    return cpasync.tma_partition(how.atom,               -- (rows,BK,tile,k,l)
      shared_by > 1 and block[mode] or 0, cute.make_layout(shared_by),
      cute.group_modes(stages, 0, 2), cute.group_modes(g, 0, 2))
  end
  local tile, all = partition(how.coords)
  local vmnk = cute.make_layout {1, o.cluster[1], o.cluster[2], 1}
  local X = {atom = how.atom, smem = tile, hint = how.hint, mode = 3 - mode,
             atoms = how.atoms, maps = how.maps,
             mask = shared_by > 1 and cpasync.create_tma_multicast_mask(vmnk,
               {0, block[1], block[2], 0}, mode) or nil}
  -- Returns the tiles along K of the operand for tile `at` along its rows, in
  -- matrix l. For groups, tiles are counted from the group's first row.
  function X.along_k(at, l, group)
    local from = all
    if group then
      from = select(2, partition(groups.from(how.coords, group)))
    end
    if matrices then return from(_, at, _, l) end
    return from(_, at, _)
  end
  return X
end

-- Loads the first tile of each stage, with pdl. Issues the loads of the operand
-- that no preceding launch writes, then waits for the preceding launch, and
-- issues the loads of the other operand. Returns the number of these tiles. The
-- next launch may start its own loads meanwhile.
local function ahead(o, pipe, k_count, fill, ask)
  local constant = o.ahead == "a" and 1 or 2
  local some, behind = cute.min(k_count, o.stages), pipe:make_producer_state()
  for k in cute.range(some) do fill(k, constant, constant) end
  cute.arch.griddepcontrol_launch_dependents()
  cute.arch.griddepcontrol_wait()
  for k in cute.range(some) do
    ask(3 - constant, k, behind)
    behind:advance()
  end
  return some
end

--- Loads the operands of each tile of `work`, along K from first_k on. Then
-- loads the partial sums that `parts` (kernels.gemm_sm90.stream) adds to the
-- tile. loads: functions that load A, B and scale factors
-- (kernels.gemm_sm100.kernel).
function producer.run(o, pipe, loads, work, first_k, k_tiles, parts)
  local write = pipe:make_producer_state()
  tile_order.each(o, work, function()
    local w, from, map = work:get_current_work(), {}, {}
    local k_first = w.k_first or first_k
    local at = w.tile_idx
    for i, X in ipairs(loads) do
      from[i] = X.along_k(at[X.mode], at[3], i == 1 and o.groups and w)
      map[i] = X.maps and groups.map(X.atoms, X.maps, w.group, w.new)
    end
    local function ask(i, k, stage)
      local X = loads[i]
      cute.copy(X.atom, from[i](_, k_first + k), X.smem(_, stage.index), {
        tma_bar_ptr = pipe:producer_get_barrier(stage), mcast_mask = X.mask,
        cache_policy = X.hint, tma_desc_ptr = map[i]})
    end
    -- Fills the next stage with tile k of operands first to last of `loads`.
    local function fill(k, first, last)
      pipe:producer_acquire(write)
      for i = first, last do ask(i, k, write) end
      write:advance()
    end
    local k_count = w.k_count or k_tiles
    local asked = o.ahead and ahead(o, pipe, k_count, fill, ask) or 0
    for k in cute.range(asked, k_count) do fill(k, 1, #loads) end
    if parts then
      parts:each(work, w, function(slot) parts:fetch(pipe, write, slot) end)
    end
    work:advance_to_next_work()
  end)
  if o.clustered then pipe:producer_tail(write) end
  if o.dynamic then work:tail() end
end

return producer
-- SPDX-License-Identifier: MIT
