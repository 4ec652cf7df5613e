--- Attention for Hopper: O = softmax(scale Q K^T) V, and the logarithm of each
-- row's sum of exponentials, by TMA and wgmma.
--
--     local attention = attention_sm90 {head = 128, causal = true}
--     attention.prepare(Q, K, V, O, LSE, {scale = 0.1}):launch()
--
-- Q and O are (B,S,H,D), and K and V (B,T,G,D), of bf16 or f16. Each row of D
-- elements is contiguous and begins at a multiple of 16 bytes. LSE is (B,H,S)
-- of f32. H is a multiple of G: H/G heads of Q share each head of K and V. The
-- last of the S rows is aligned with the last of the T keys. Q, K and V may
-- have elements of e4m3. In this case, O has elements of the type `out` (an
-- option); see kernels/attention_sm90/eight.lua.
--
-- Blocks are persistent. One thread, the producer, issues TMA loads of Q, K and
-- V far ahead of their use. The consumers, warpgroups of 64 rows each, compute
-- the scores, their exponentials ("powers" of 2), and the product of these with
-- V. Another thread stores O. If tiles take different times, blocks draw tiles
-- from a shared counter: see share().
--
-- Options:
-- rows: the number of rows of a sequence, if known; it selects the tile.
-- tile {rows, keys}: the tile of scores that a block computes at once.
-- stages: the number of tiles of K, and of V, in shared memory.
-- q_stages: the number of tiles of Q; with 2, the next tile of Q is loaded
--   early.
-- ordered: consumers issue products alternately, in the order of their numbers.
-- modify: a function that returns score_mod and mask_mod, see
--   kernels/attention.lua.
-- list {rows, keys}: the size of a block of a block mask. The tensor `blocks`
--   of kernels/block_mask.lua lists the visible blocks, and the mask applies
--   only to blocks that it hides in part. If the tensor `bits` of
--   kernels/block_mask.lua is given, the kernel reads these bits and does not
--   evaluate the mask.
-- ragged: cu_q and cu_k give sequences of different lengths. A tile may contain
--   values of the next sequence. The weights of these values are 0, but an
--   infinity or a NaN among the values makes O NaN.
-- rises: the kernel searches each block for the largest scores first. This
--   saves time if scores rise from the last key to the first. Without `rises`,
--   a block whose scores far exceed those of earlier blocks is computed twice.
-- around: the kernel processes the blocks of keys from the tile's own block
--   down to the first one, and then from the last one down. Use it for scores
--   that rise towards a row's own key. With `list`, this option means `rises`.
-- v_stages: the number of tiles of V of e4m3 that shared memory holds before
--   they are transposed.
-- scaled: k_scale and v_scale (B,blocks,G) have a factor for each block of 128
--   keys of each head. Otherwise, q_scale (H), k_scale (G) and v_scale (G) have
--   a factor for each head.
-- early: a consumer issues the product for the next scores before it rescales O
--   and converts the previous powers to 16 bits.
local rules = require "kernels.operand_rules"
local cute = require "cute"
local flash = require "kernels.flash"
local make_kernel = require "kernels.attention_sm90.kernel"
local options = require "kernels.attention_sm90.options"
local order = require "kernels.attention_sm90.order"
local tiles = require "cute.tiles"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local WHAT = "attention_sm90"

--- Returns a table with a kernel and the functions that launch it.
---@param given table {head: integer, value: integer?, dtype: any?,
-- causal: boolean?, window: any[]?, rows: integer?, tile: integer[]?,
-- stages: integer?, q_stages: integer?, ordered: boolean?, name: string?,
-- modify: function?, list: integer[]?, ragged: boolean?, rises: boolean?,
-- v_stages: integer?, out: any?, scaled: boolean?, early: boolean?,
-- around: boolean?}
-- causal: a row sees the keys up to its own position; window: {left, right},
-- the number of visible keys before and after it, false for all
return function(given)
  local o = options.complete(given)
  local made = make_kernel(o)
  local self = {block = o.block, options = o}
  self.kernel = cute.kernel(given.name or WHAT,
    {block = o.block, min_blocks = 1, fastmath = true}, made.f)

  --- Makes the TMA atom and coordinates of an operand.
  ---@param name string "q", "k", "v" or "o"
  function self.map(name, t)
    local modes = name == "v" and not o.narrow and {3, 1, 2, 0}
      or {1, 3, 2, 0}
    if name == "v" and o.narrow then t = cute.recast_tensor(t, cute.f16) end
    local op = name == "o" and cpasync.CopyBulkTensorTileS2GOp()
      or cpasync.CopyBulkTensorTileG2SOp()
    local s = made[name](_, _, 0)
    return cpasync.make_tiled_tma_atom(op, cute.make_tensor(t.iterator,
      cute.select(t.layout, modes)), s, {cute.size(s, 0), cute.size(s, 1)})
  end

  --- Reports whether TMA accepts these operands; if not, also returns the
  -- reason.
  ---@param O? any contiguous when absent
  ---@return boolean, string?
  function self.takes(Q, K, V, O)
    for i, t in ipairs {Q, K, V, not o.narrow and O or nil} do
      local why = rules.tma_obstacle(flash.batched(t))
      if why then return false, ("QKVO"):sub(i, i) .. " has " .. why end
    end
    return true
  end

  --- Returns the table `share`, or nil if all tiles take the same time.
  -- section: the number of heads whose tiles run together. counter: the counter
  -- from which blocks draw tiles; it is 0 between launches.
  ---@param counter? any an i32 tensor of 0, allocated when absent
  function self.share(Q, K, counter)
    if not o.dynamic then return nil end
    return {section = o.ragged and 1 or order.section(o, K.shape[2],
              Q.shape[3] // K.shape[3]),
            counter = counter or cute.zeros({1}, cute.i32, {device = Q.device})}
  end

  --- Returns all arguments of the kernel.
  ---@param scale number above 0
  ---@param share? table from share()
  ---@param more? table {blocks: any?, bits: any?, sinks: any?, cu_q: any?,
  -- cu_k: any?, q_scale: any?, k_scale: any?, v_scale: any?}, see
  -- kernels/attention.lua and the top of this file
  function self.arguments(Q, K, V, O, LSE, scale, share, more)
    flash.check(WHAT, o.head, {Q = Q, K = K})
    rules.need(scale > 0, WHAT, "scale = %s; a number above 0 is needed", scale)
    local ok, why = self.takes(Q, K, V, O)
    rules.need(ok, WHAT, "%s", why)
    local a = {n = 12}
    for i, t in ipairs {Q, K, V, not o.narrow and O or nil} do
      a[2 * i - 1], a[2 * i] = self.map(("qkvo"):sub(i, i), flash.batched(t))
    end
    if o.ragged or o.narrow then
      local all = {O = O}
      for name, t in pairs(more or {}) do all[name] = t end
      more = all
    end
    a[9], a[10], a[11], a[12] = LSE, scale + 0.0, share, more
    return a
  end

  --- Returns the grid for B batches of H heads of S rows. With `ragged`, B is
  -- the number of sequences, and S their total number of rows.
  ---@param sms? integer multiprocessors, 132 when absent
  function self.grid(S, H, B, sms)
    return math.min(o.ragged and order.places(o, S, H, B)
      or tiles.count(S, o.tile[1]) * H * B, sms or 132)
  end

  --- Prepares a launch. opts: launch options, scale (1 / sqrt(D) when absent),
  -- sms, more (see arguments).
  function self.prepare(Q, K, V, O, LSE, opts)
    opts = opts or {}
    local args = self.arguments(Q, K, V, O, LSE,
      opts.scale or 1 / math.sqrt(o.head), self.share(Q, K), opts.more)
    local S, H, B = Q.shape[2], Q.shape[3], Q.shape[1]
    if o.ragged then
      S, H, B = Q.shape[1], Q.shape[2], cute.size(opts.more.cu_q) - 1
    end
    local all = {grid = self.grid(S, H, B, opts.sms)}
    for k, v in pairs(opts) do all[k] = v end
    all.scale, all.sms, all.more = nil, nil, nil
    return self.kernel(table.unpack(args, 1, args.n)):compile(all)
  end

  return self
end
-- SPDX-License-Identifier: MIT
