--- The tiles of keys of kernels/attention_bwd_sm90, their order, and the rows
-- that see them.
--
-- The heads of Q that share a head of K form a group, or `splits` groups of
-- equal size. Blocks process the groups of all batches in sections. If
-- possible, the rows of Q, dO and dQ of a section fit into L2 together. A
-- section must also have enough tiles. Within a section, the tiles of all
-- groups with the same keys are consecutive. With a causal mask, the first
-- tiles of keys come first, because the most rows see them.
--
-- If the order of sums is fixed, blocks add to a tile of dQ in the order of
-- their tiles of keys. They then draw their tiles from a counter, so that a
-- block waits only for blocks that already run. Blocks of a group then process
-- the same rows one after another, each block one tile behind the preceding
-- block. A section therefore has more groups, so that fewer blocks of each
-- group run at once. In this case, L2 needs to hold only the rows that these
-- blocks process, from the first to the last block.
local cute = require "cute"
local flash = require "kernels.flash"
local tiles = require "cute.tiles"

local order = {}

-- The largest number of bytes that the rows of Q, dO and dQ of a section may
-- have.
local L2 = 40 << 20

-- If the order of sums is fixed, a section has at least GROUPS groups, and
-- their heads of K have at least ELEMENTS elements in total.
local GROUPS, ELEMENTS = 16, 2048

-- The smallest number of tiles in a section, about two for each multiprocessor.
-- Tiles with few rows then keep multiprocessors busy at the end of a section.
local TILES = 256

--- Returns the number of groups in a section, counting the groups of all
-- batches.
---@param T integer the number of keys
---@param heads integer the heads of Q in a group
function order.section(o, S, T, heads)
  local bytes = S * o.head * (2 * o.dtype.bits // 8 + 4) * heads
  local least = o.deterministic and math.max(GROUPS, ELEMENTS // o.head) or 1
  return math.max(L2 // math.max(bytes, 1), least,
                  tiles.count(TILES, tiles.count(T, o.tile[2])))
end

--- Returns n, g and b of the tile at position t in the order: tile n of N tiles
-- of keys, group g of G groups, batch b of B.
function order.place(t, N, G, B, section)
  local first = t // (section * N) * section
  local rest = t % (section * N)
  local wide = cute.min(section, G * B - first)
  cute.assume(wide, 1, (1 << 31) - 1, 1)
  local n, head = rest // wide, first + rest % wide
  return n, head % G, head // G
end

--- Calls f(m, r[, before]) for all tiles m of rows from x.rows[1] to x.rows[2]
-- - 1, and for each r of the x.heads heads of Q of a group. With a block mask,
-- the tiles are those of x.listed(r). before() then returns the tile's entry in
-- the tensor `before` (kernels/block_mask_rows.lua).
--
-- If the order of sums is fixed and the mask is causal, the last tiles of rows
-- come first, each tile for all heads. Blocks whose rows end together then
-- begin with the same tile, one shortly after another. No block catches up with
-- the block whose turn precedes its own, because the preceding block has more
-- rows.
function order.walk(o, x, f)
  local first, last, heads = x.rows[1], x.rows[2], x.heads
  local late = o.deterministic and o.right
  if x.listed then
    for r in cute.range(heads) do
      local count, at = x.listed(r)
      for i in cute.range(count) do
        local m, before = at(late and count - 1 - i or i)
        f(m, r, before)
      end
    end
  elseif not late then
    for r in cute.range(heads) do
      for m in cute.range(first, last) do f(m, r) end
    end
  else
    for m in cute.range(last - 1, first - 1, -1) do
      for r in cute.range(heads) do f(m, r) end
    end
  end
end

--- Returns two values for the tile of rows that begins at `row`. The second is
-- the number of tiles of keys that add to its dQ. The first is the position of
-- tile n of keys among them.
function order.turn(o, sight, n, row)
  local first, last = sight:blocks(row, o.tile[1], o.tile[2])
  return n - first, last - first
end

--- Reports whether there are tiles of rows that see no key.
---@param S integer
---@param T integer
function order.idle(o, S, T)
  local sight = order.sight(o, S, T)
  for _, m in ipairs {0, tiles.count(S, o.tile[1]) - 1} do
    if select(2, order.turn(o, sight, 0, m * o.tile[1])) == 0 then
      return true
    end
  end
  return false
end

--- Returns first, last, from and to. Some rows of the tiles `first` to last - 1
-- see keys of tile n. All rows of the tiles `from` to to - 1 see all keys of
-- tile n; `from` and `to` are nil if there is no mask.
function order.rows(o, n, S, T)
  local M, N = o.tile[1], o.tile[2]
  local first, last = 0, tiles.count(S, M)
  local off = T - S
  local from, to = first, last
  if o.right then
    local row = n * N - (off + o.right)
    first = cute.max(row, 0) // M
    from = cute.ceil_div(cute.max(row + (N - 1), 0), M)
  end
  if o.left then
    local past = n * N + (o.left + 1) - off
    to = cute.max(past, 0) // M
    last = cute.min(last, cute.ceil_div(cute.max(past + (N - 1), 0), M))
  end
  first = cute.min(first, last)
  if not (o.left or o.right or o.ragged)
    and (not o.modify or tiles.divides(N, T)) then
    return first, last
  end
  if not tiles.divides(N, T) then
    to = cute.where(cute.gt((n + 1) * N, T), 0, to)
  end
  return first, last, from, to
end

--- Returns which keys each row sees (flash.sight).
function order.sight(o, S, T) return flash.sight(S, T, o.left, o.right) end

return order
-- SPDX-License-Identifier: MIT
