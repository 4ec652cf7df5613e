--- The gradients of attention for Hopper by TMA and wgmma, for the forward pass
-- in kernels/attention_sm90.lua: three kernels, or four.
--
--     local backward = attention_bwd_sm90 {head = 128, causal = true}
--     for _, launch in ipairs(backward.prepare(Q, K, V, O, dO, LSE, dQ, dK, dV,
--                                              {scale = 0.1})) do
--       launch:launch()
--     end
--
-- Q, O, dO and dQ are (B,S,H,D), and K, V, dK and dV (B,T,G,D), of bf16 or f16.
-- Each row of D elements is contiguous and begins at a multiple of 16 bytes.
-- LSE is (B,H,S) of f32. H is a multiple of G: H/G heads of Q share each head
-- of K and V. The last of the S rows is aligned with the last of the T keys.
--
-- P = softmax(scale Q K^T) are the weights, and delta is each row's sum of O
-- dO. Then dV = P^T dO, dS = P (dO V^T - delta), dQ = dS K and dK = dS^T Q. The
-- first kernel computes delta. In the main kernel, a block owns a tile of keys
-- and iterates over the tiles of rows that see it. One thread, the producer,
-- issues TMA loads of Q and dO far ahead of their use. Two or three warpgroups,
-- the consumers, issue the MMAs. Another thread (two threads if the order of
-- sums is fixed) adds the consumers' tiles of dQ to f32 accumulators in global
-- memory. The third kernel converts these accumulators to dQ.
--
-- If few heads of K are shared by many heads of Q, there are few blocks with
-- much work each. With the option `splits`, several blocks then share the heads
-- of Q of a tile of keys. Each block stores its sums of dK and dV in f32, and a
-- fourth kernel adds them, always in the same order.
--
-- Options:
-- tile {rows, keys}: the tile of scores that a block computes at once.
-- stages, do_stages: the numbers of tiles of Q and of dO in shared memory.
-- ds_stages: the number of tiles of dS in shared memory.
-- pieces: the number of parts into which a tile of dQ, or each of its two
--   slices, is divided for the addition to global memory.
-- sum_stages: the number of these parts that fit in shared memory.
-- rounded: dS is computed from P in 16 bits, which saves registers.
-- deterministic: blocks add to dQ in a fixed order (true when absent), so that
--   equal inputs give equal bits.
-- ragged: cu_q and cu_k give sequences of different lengths, as for
--   kernels/attention_sm90.lua.
-- list: a tile of keys is multiplied only with the tiles of rows that the
--   tensor `lists` of kernels/block_mask_rows.lua lists.
-- tasks: with heads of 256, the consumers have different tasks (tasks.lua). The
--   default is true if the order of sums is not fixed, and neither `modify` nor
--   `ragged` is given.
-- splits: the number of blocks that share the heads of Q of a head of K, a
--   divisor of H/G.
-- modify: a function that returns score_mod and mask_mod, see
--   kernels/attention.lua.
-- rows, keys, heads, group, sms: if known, the numbers of rows and of keys in
--   a batch, of heads of K in all batches, of heads of Q for each of them, and
--   of multiprocessors; they select the tile and `splits`.
local cute = require "cute"
local edges = require "kernels.attention_bwd_sm90.edges"
local flash = require "kernels.flash"
local make_kernel = require "kernels.attention_bwd_sm90.kernel"
local options = require "kernels.attention_bwd_sm90.options"
local order = require "kernels.attention_bwd_sm90.order"
local parts = require "kernels.attention_bwd_sm90.parts"
local sequences = require "kernels.attention_bwd_sm90.sequences"
local rules = require "kernels.operand_rules"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local WHAT = "attention_bwd_sm90"

-- Makes the TMA atom of an operand t whose tiles have the layout s in shared
-- memory. Returns a list {atom, coordinates}.
local function map(op, t, s)
  return {cpasync.make_tiled_tma_atom(op, t, s,
                                      {cute.size(s, 0), cute.size(s, 1)})}
end

--- Returns a table with the kernels and the functions that launch them.
---@param given table {head: integer, dtype: any?, causal: boolean?,
-- window: any[]?, tile: integer[]?, stages: integer?, do_stages: integer?,
-- ds_stages: integer?, sum_stages: integer?, pieces: integer?,
-- rounded: boolean?, deterministic: boolean?, ragged: boolean?,
-- list: boolean?, modify: function?, keys: integer?, heads: integer?,
-- sms: integer?, rows: integer?, group: integer?, splits: integer?,
-- tasks: boolean?, name: string?}
-- causal: a row sees the keys up to its own position; window: {left, right},
-- the number of visible keys before and after it, false for all
return function(given)
  local o = options.complete(given)
  local l = parts.layouts(o)
  local M, N = o.tile[1], o.tile[2]
  local self = {options = o}
  local function kernel(name, block, f, opts)
    local all = {block = block, fastmath = true}
    for k, v in pairs(opts or {}) do all[k] = v end
    return cute.kernel(name, all, f)
  end
  self.before = kernel("attention_rows", edges.THREADS, edges.before(o))
  self.kernel = kernel(given.name or WHAT, o.block, make_kernel(o),
                       {min_blocks = 1})
  self.behind = kernel("attention_dq", 128 * o.sharers, edges.dq(o))
  self.last = o.splits > 1
    and kernel("attention_sum_dkv", 128 * o.sharers, edges.dkv(o)) or nil

  --- Returns a list with {atom, coordinates} for each operand that TMA
  -- accesses, in the order of the kernel's parameters.
  ---@param t table the tensors, see arguments()
  ---@param acc any the accumulators of dQ
  function self.maps(t, acc)
    local load, store = cpasync.CopyBulkTensorTileG2SOp(),
      cpasync.CopyBulkTensorTileS2GOp()
    local function of(x, s, op)
      local all = flash.batched(x)
      return map(op, cute.make_tensor(all.iterator,
        cute.select(all.layout, {1, 3, 2, 0})), s(_, _, 0))
    end
    local box, add = l.acc(_, _, 0), cpasync.CopyReduceBulkTensorTileS2GOp "add"
    return {of(t.Q, l.q, load), of(t.K, l.k, load), of(t.V, l.k, load),
      of(t.dO, l.g, load), of(t.dK, l.k, store), of(t.dV, l.k, store),
      map(add, acc, box), map(store, acc, box)}
  end

  --- Reports whether TMA accepts these operands; if not, also returns the
  -- reason.
  ---@return boolean, string?
  function self.takes(Q, K, V, dO, dK, dV)
    local names = {"Q", "K", "V", "dO", "dK", "dV"}
    for i, t in ipairs {Q, K, V, dO, dK, dV} do
      local why = t and rules.tma_obstacle(flash.batched(t))
      if why then return false, names[i] .. " has " .. why end
    end
    return true
  end

  -- Returns the number of tiles of rows of a head. Without `ragged`, S is the
  -- number of rows of one batch; with `ragged`, of all B sequences together.
  local function tiles_of(S, B)
    return sequences.count(S, o.ragged and B, M)
  end

  -- Returns the number of tiles of keys of a head of K in all batches.
  local function key_tiles(T, B)
    return sequences.count(T, o.ragged and B, N) * (o.ragged and 1 or B)
  end

  --- Returns the sizes of the buffers that the kernels share: {sums = number of
  -- f32 accumulators of dQ, parts = number of f32 accumulators of dK and dV, 0
  -- unless `splits` exceeds 1, logs = number of f32 LSEs, delta = number of f32
  -- deltas, turns = number of i32 counters, 0 if the order of sums is not
  -- fixed}.
  ---@return table<string, integer>
  function self.sizes(S, T, H, G, B)
    local rows = tiles_of(S, B) * M * H * (o.ragged and 1 or B)
    local keys = o.splits > 1 and key_tiles(T, B) * N * G * o.splits or 0
    return {sums = rows * o.head, parts = 2 * keys * o.head, logs = rows,
            delta = rows, turns = o.deterministic and rows // M + 1 or 0}
  end

  -- Returns three views of `memory`, a table with a buffer for each size of
  -- self.sizes(): the accumulators of dQ as (256,k,tiles), the LSEs as
  -- (rows,H,B), and the deltas as (rows,H,B).
  local function views(S, H, B, memory)
    local count = tiles_of(S, B) * M
    if o.ragged then B = 1 end
    local n = M * o.head // o.slices // o.pieces
    local rows = cute.make_layout({count, H, B}, {1, count, count * H})
    local parts_of = cute.make_layout({256, n // 256,
      count // M * H * B * o.slices * o.pieces}, {1, 256, n})
    return cute.make_tensor(memory.sums.iterator, parts_of),
      cute.make_tensor(memory.logs.iterator, rows),
      cute.make_tensor(memory.delta.iterator, rows)
  end

  --- Returns the buffer `delta`, each row's sum of O dO, as a tensor (B,H,S),
  -- or (H,rows) for concatenated sequences. In the second form, each sequence
  -- begins with a new tile of self.padding rows (sequences.lua).
  function self.delta(delta, S, H, B)
    local count = tiles_of(S, B) * M
    if o.ragged then
      return cute.make_tensor(delta.iterator,
                              cute.make_layout({H, count}, {count, 1}))
    end
    return cute.make_tensor(delta.iterator, cute.make_layout(
      {B, H, S}, {count * H, count, 1}))
  end

  --- Returns the launches in the order in which they run.
  ---@return {kernel: any, grid: any, block: integer}[]
  function self.launches(S, T, H, G, B)
    local batches = o.ragged and 1 or B
    local rows, keys = tiles_of(S, B), key_tiles(T, B)
    local list = {
      {kernel = self.before, grid = {rows, H, batches}, block = edges.THREADS},
      {kernel = self.kernel, grid = keys * G * o.splits, block = o.block},
      {kernel = self.behind, grid = {rows * o.slices, H, batches},
       block = 128 * o.sharers}}
    if self.last then
      list[4] = {kernel = self.last, grid = {2 * keys // batches, G, batches},
                 block = 128 * o.sharers}
    end
    return list
  end

  --- Returns the arguments of launch i.
  ---@param i integer
  ---@param t table {Q: any, K: any, V: any, O: any, dO: any, LSE: any,
  -- dQ: any, dK: any, dV: any}
  ---@param scale number above 0
  ---@param memory {sums: any, parts: any?, logs: any, delta: any, turns: any?}
  -- tensors of self.sizes() elements, not initialized
  ---@param more? {cu_q: any, cu_k: any, lists: any, before: any} the positions
  -- of concatenated sequences; with `list`, the tensors of
  -- kernels/block_mask_rows.lua for the tile of `options`
  function self.arguments(i, t, scale, memory, more)
    flash.check(WHAT, o.head, t)
    rules.need(scale > 0, WHAT, "scale = %s; a number above 0 is needed", scale)
    local ok, why = self.takes(t.Q, t.K, t.V, t.dO, t.dK, t.dV)
    rules.need(ok, WHAT, "%s", why)
    local all = flash.batched(t.Q)
    local B, S, H = all.shape[1], all.shape[2], all.shape[3]
    local T, G = table.unpack(flash.batched(t.K).shape, 2, 3)
    rules.need(H % (G * o.splits) == 0, WHAT, "splits = %d; a divisor of %d is "
      .. "needed, the number of heads of Q for a head of K", o.splits, H // G)
    if o.ragged then B = cute.size(more.cu_q) - 1 end
    local acc, logs, delta = views(S, H, B, memory)
    local cu_q, cu_k
    if o.ragged then cu_q, cu_k = more.cu_q, more.cu_k end
    local turns = o.deterministic and memory.turns or nil
    local function sums()
      return o.splits > 1 and parts.key_sums(o, memory.parts,
        key_tiles(T, B) * G * o.splits) or nil
    end
    if i == 1 then
      -- The accumulators need to be cleared only if blocks add in any order, or
      -- if there may be tiles to which no block adds. Otherwise, the first
      -- block overwrites a tile.
      local clear = not turns or o.ragged or o.list or order.idle(o, S, T)
      return {t.O, t.dO, t.LSE, logs, delta, clear and acc or nil, turns, cu_q,
              n = 8}
    elseif i == 3 then
      return {acc, t.dQ, scale + 0.0, cu_q, n = 4}
    elseif i == 4 then
      return {sums(), t.dK, t.dV, scale + 0.0, cu_k, n = 5}
    end
    local a = {n = 23}
    for k, m in ipairs(self.maps(t, acc)) do
      a[2 * k - 1], a[2 * k] = m[1], m[2]
    end
    a[17], a[18], a[19], a[20] = logs, delta, scale + 0.0,
      order.section(o, S, T, H // G // o.splits)
    a[21], a[22] = turns, sums()
    a[23] = o.ragged and {cu_q = cu_q, cu_k = cu_k, dK = t.dK, dV = t.dV}
      or o.list and {lists = more.lists, before = more.before} or nil
    return a
  end

  --- Prepares the launches. Returns them as a list. opts: launch options, scale
  -- (1 / sqrt(D) when absent), cu (see arguments).
  function self.prepare(Q, K, V, O, dO, LSE, dQ, dK, dV, opts)
    opts = opts or {}
    local t = {Q = Q, K = K, V = V, O = O, dO = dO, LSE = LSE, dQ = dQ, dK = dK,
               dV = dV}
    local B, S, H = table.unpack(flash.batched(Q).shape, 1, 3)
    local T, G = table.unpack(flash.batched(K).shape, 2, 3)
    if o.ragged then B = cute.size(opts.cu.cu_q) - 1 end
    local memory = {}
    for name, n in pairs(self.sizes(S, T, H, G, B)) do
      memory[name] = cute.empty({n}, name == "turns" and cute.i32 or cute.f32,
                                {device = Q.device})
    end
    local list = self.launches(S, T, H, G, B)
    for i, s in ipairs(list) do
      local a = self.arguments(i, t, opts.scale or 1 / math.sqrt(o.head),
                               memory, opts.cu)
      local all = {grid = s.grid}
      for k, v in pairs(opts) do all[k] = v end
      all.scale, all.cu = nil, nil
      list[i] = s.kernel(table.unpack(a, 1, a.n)):compile(all)
    end
    return list
  end

  return self
end
-- SPDX-License-Identifier: MIT
