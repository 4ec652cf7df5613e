--- Scale factors of formats such as NVFP4 for mma.sync on sm_120.
--
-- Factors are a tensor (rows,blocks[,L]) in tiles of 128 rows x 4 blocks
-- (kernels.block_scaled.layout), in which the 4 factors of a row are adjacent.
-- cp.async copies them to shared memory. From there, each thread loads the
-- factors that it passes to the tensor cores.
local cute = require "cute"

local _ = cute._

local scale_factors = {}

local WORD = 4    -- factors that one copy moves

-- Returns two numbers: the first row whose factors this thread passes to the
-- tensor core, and the distance in rows between this warp's consecutive blocks.
-- In a block of A, lane 4 r passes the factors of row r (r < 8), and lane 4 (r
-- - 8) + 1 those of row r (r >= 8). In a block of B, lane 4 r passes the
-- factors of row r.
local function rows_of(mma, which, tid)
  local lane, warp = tid % 32, tid // 32
  local high = cute.size(mma.thr_layout_vmnk, 1)
  if which == "A" then
    return warp % high * 16 + lane // 4 + 8 * (lane % 2), 16 * high
  end
  return warp // high * 8 + lane // 4, 8 * cute.size(mma.thr_layout_vmnk, 2)
end

--- Adds the scale factors SF to operand X (tiles.operand). Adds the method
-- X.load_factors(k_tile, stage). The methods fetch and block then fetch and
-- return the elements together with their factors.
---@param X table
---@param SF any
---@param o table {of: any, which: string, tile: integer[], at: any,
-- stages: integer} as for tiles.operand
function scale_factors.add(X, SF, o)
  local mma, tid = o.of, (cute.arch.thread_idx())
  local rows, blocks = o.tile[1], mma.shape_mnk[3] // mma.sf_vec_size
  local words = o.tile[2] // (WORD * mma.sf_vec_size)   -- words per row
  local dtype = SF.element_type
  -- A tile has at most as many rows as a chunk, so the chunk's rows beyond the
  -- matrix are not read.
  local g = cute.local_tile(cute.partial_ok(SF), {rows, WORD}, {o.at, _})
  local s = cute.make_smem_tensor(dtype, cute.make_layout(   -- (rows,SF,PIPE)
    {rows, {WORD, words}, o.stages},
    {WORD, {1, WORD * rows}, WORD * rows * words}), 16)
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", dtype,
                                   WORD * dtype.bits)
  local along = cute.size(SF, 1) // WORD
  function X.load_factors(k_tile, stage)
    local threads = mma:size()
    for first = 0, rows * words - 1, threads do
      local i = first + tid
      local row, word = i % rows, i // rows
      local function copy()
        local to, at = s(row, {_, word}, stage), k_tile * words + word
        cute.when(cute.lt(at, along), function()
          cute.copy(atom, g(row, _, at), to)                   -- (4)
        -- Beyond K, products must be 0. A factor there could be a NaN, so it is
        -- replaced by 0.
        end, function()
          to:fill(0)
        end)
      end
      if first + threads <= rows * words then copy()
      else cute.when(cute.lt(i, rows * words), copy) end
    end
  end

  local row, step = rows_of(mma, o.which, tid)
  local own = cute.zipped_divide(s, {step, blocks})  -- ((row,SF),(..,k,PIPE))
  -- An MMA gets a register with 4 factors, and uses the first ones of them.
  local count, k_blocks = cute.size(X.frag, 1), X.k_blocks
  local frag = cute.make_rmem_tensor({WORD, count, k_blocks}, dtype)
  local used = cute.make_tensor(frag.iterator, cute.make_layout(
    {blocks, count, k_blocks}, {1, WORD, WORD * count}))
  if blocks < WORD then frag:fill(0) end
  local fetch, block = X.fetch, X.block
  function X.fetch(stage, k_block)
    fetch(stage, k_block)
    cute.autovec_copy(own({row, _}, {_, k_block, stage}), used(_, _, k_block))
  end
  function X.block(k_block) return {block(k_block), frag(_, _, k_block)} end
end

return scale_factors
-- SPDX-License-Identifier: MIT
