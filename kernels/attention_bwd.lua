--- The gradients of attention on mma.sync, for the forward pass in
-- kernels/attention.lua. Several kernels run one after another with the same
-- arguments.
--
--     for _, k in ipairs(attention_bwd {head = 128, causal = true}) do
--       k.kernel(Q, K, V, O, dO, LSE, delta, dQ, dK, dV, scale):launch {
--         grid = k.grid(S, T, H, G, B), block = k.block}
--     end
--
-- Q, O, dO and dQ are (B,S,H,D); K, V, dK and dV (B,T,G,D); LSE and delta
-- (B,H,S) of f32. The first kernel computes delta, each row's sum of O dO. With
-- the weights P = softmax(scale Q K^T), dV = P^T dO, dS = P (dO V^T - delta),
-- dQ = dS K, dK = dS^T Q.
--
-- A block owns either a tile of keys or a tile of rows of Q. It iterates over
-- the rows of Q that see its keys, or over the keys. Blocks of both kinds
-- recompute the weights P. Blocks that own keys compute P transposed, so that
-- its registers are the left operand of the next product. Without the option
-- `gradients`, there are no atomics, and equal inputs give equal bits.
--
-- cu_q, cu_k and `more` follow `scale`, as in the forward pass. The option
-- `list` {rows, keys} is the size of a block of a block mask. It needs tensors:
-- more.blocks (the lists of kernels/block_mask.lua) and more.lists (the lists
-- of kernels/block_mask_rows.lua for the tile `turned`, a field of the result).
-- Blocks then neither load nor compute tiles that the mask hides. The option
-- `gradients` requests the gradients of tensors that score_mod reads
-- (kernels/score_gradients.lua). It needs more.sums, a list of an f32 vector
-- for each of these tensors, and more.parts, a tensor (reads,tiles,H,B). The
-- caller fills both with zeros.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local flash = require "kernels.flash"
local score_gradients = require "kernels.score_gradients"
local tiles = require "cute.tiles"
local _ = cute._

---------------------------------------------------------------------------
-- delta
---------------------------------------------------------------------------

-- the rows that a block of the kernel for delta handles; 4 lanes share a row
local ROWS = 32

local function sums(a)
  local tid = cute.arch.thread_idx()
  local block, h, b = cute.arch.block_idx()
  local row, lane = block * ROWS + tid // 4, tid % 4
  local O = flash.head(a.O, b, h, a.cu_q, true)             -- (S,D)
  local dO = flash.head(a.dO, b, h, a.cu_q, true)
  cute.when(cute.lt(row, cute.size(O, 0)), function()
    local function vectors(t)
      return cute.zipped_divide(t(row, _), {8})               -- (8,D/8)
    end
    local o, g, sum = vectors(O), vectors(dO), 0.0
    for i = 0, cute.size(o, 1) // 4 - 1 do
      local function part(t)
        return t(_, i * 4 + lane):load():to(cute.f32)
      end
      sum = sum + (part(o) * part(g)):reduce("add", 0.0)
    end
    local mask = 0xf << (cute.arch.lane_idx() // 4 * 4)
    for j = 1, 2 do
      sum = sum + cute.arch.shuffle_sync_bfly(sum, j, 32, mask)
    end
    cute.when(cute.eq(lane, 0), function()
      flash.numbers(a.delta, b, h, a.cu_q, true)[row] = sum
    end)
  end)
end

---------------------------------------------------------------------------
-- Weights and their factors
---------------------------------------------------------------------------

-- Returns a function (block, stage) for a vector x, the LSE or delta of each
-- row of Q. The function copies tile `block` of x from global memory to a stage
-- of s, a tensor (N,PIPE) in shared memory. Beyond the last row, the copy
-- stores zeros.
local function numbers(team, x, s)
  local n = cute.size(s, 0)
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS_ZFILL", cute.f32,
                                   32)
  local from = cute.local_tile(x, {n}, {_})                   -- (N,k)
  local src = cute.local_partition(from, cute.make_layout {n}, team.tid)
  local dst = cute.local_partition(s, cute.make_layout {n}, team.tid)
  return function(block, stage)
    cute.when(cute.lt(team.tid, n), function()
      local inside = cute.make_rmem_tensor({1}, cute.Boolean)
      inside[0] = cute.lt(block * n + team.tid, cute.size(x))
      cute.copy(atom, src(_, block), dst(_, stage), inside)
    end)
  end
end

-- Converts a row's LSE, a natural logarithm, to base 2, for exp2. Returns 0 for
-- a row that sees no column, so that the weights of its hidden columns become
-- 2^-inf = 0.
local function in_bits(lse)
  return cute.where(cute.eq(lse, -math.huge), 0.0, lse * flash.LOG2E)
end

-- Replaces the scores s by the weights P = 2^(c s - lse). `dp`, if given, has
-- the gradients of P, and is replaced by dS. lse(i, j) and delta(i, j) return
-- the LSE and the delta of the row of Q that belongs to a thread's accumulator
-- (i, j). `slopes`, if given, has the derivatives of the scores that score_mod
-- returned. add(i, j, d, w), if given, is called for each of these scores with
-- its gradient d and weight w.
local function weigh(s, dp, c, lse, delta, slopes, add)
  local sr, pr = flash.by_rows(s), dp and flash.by_rows(dp)
  local slope = slopes and flash.by_rows(slopes)
  for i = 0, cute.size(sr, 0) - 1 do
    for j = 0, cute.size(sr, 1) - 1 do
      local w = flash.exp2(cute.fma(sr(i, j), c, -lse(i, j)))
      sr[{i, j}] = w
      local d = dp and w * (pr(i, j) - delta(i, j))
      if add then add(i, j, d, w) end
      if slope then  -- The derivative of a hidden score may be NaN, so the
                     -- gradient is set to 0.
        d = cute.where(cute.eq(w, 0), 0.0, d * slope(i, j))
      end
      if dp then pr[{i, j}] = d end
    end
  end
end

-- Returns accumulators, rounded to dtype, as the left operand of a product.
local function left(acc, dtype)
  local narrow = cute.make_fragment_like(acc, dtype)
  narrow:store(acc:load():to(dtype))
  return flash.left_operand(narrow)
end

-- Returns two functions of i. They return the LSE (in base 2) and the delta of
-- row i of a thread's accumulators, which stay in registers.
local function held_numbers(row, places, S, lse, delta)
  local n = cute.size(places, 0)
  local l = cute.make_rmem_tensor({n}, cute.f32)
  local d = cute.make_rmem_tensor({n}, cute.f32)
  l:fill(0)
  d:fill(0)
  for i = 0, n - 1 do
    local at = row + places(i, 0)[1]
    cute.when(cute.lt(at, S), function()
      l[i], d[i] = in_bits(lse[at]), delta[at]
    end)
  end
  return function(i) return l[i] end, function(i) return d[i] end
end

-- Returns two functions (_, j) for transposed scores, whose columns are rows of
-- Q. The functions return the LSE (in base 2) and the delta of column j of a
-- thread's accumulators. sL and sD contain the LSEs and deltas in shared
-- memory.
local function passing_numbers(places, sL, sD, stage)
  local l, d = {}, {}
  for j = 0, cute.size(places, 1) - 1 do
    local at = places(0, j)[2]
    l[j], d[j] = in_bits(sL(at, stage)), sD(at, stage)
  end
  return function(_, j) return l[j] end, function(_, j) return d[j] end
end

---------------------------------------------------------------------------
-- The iteration over tiles, for both kinds of blocks
---------------------------------------------------------------------------

-- Iterates over tiles. This block's tiles X and Z (Q and dO, or K and V) are
-- multiplied with tiles Y and W (K and V, or Q and dO): the scores are X Y^T,
-- the gradients of the weights Z W^T. Each step adds dS Y to t.dX and P W to
-- t.dZ, if these accumulators exist. With a block mask, `count` is the number
-- of visible tiles, and at(i) returns the index of tile i (see flash.listed).
-- Both are nil otherwise.
local function walk(o, team, t, c, count, at)
  local BM, BN = o.tile[1], o.tile[2]
  local first, last, from, to = t.sight:blocks(t.row, BM, BN)
  if at then first, last = 0, count end
  local places = team:places(BM, BN)
  local function load(block, stage, inner)
    for _, f in ipairs(t.loads) do f(block, stage, inner) end
  end
  flash.walk(first, last, load, cute.arch.sync_threads, function(kb, stage)
    local s, dp = team:zeros(BM, BN), t.dX and team:zeros(BM, BN)
    t.Y.times(stage, s, t.X.block)
    local slopes, reads
    if t.change then
      slopes, reads = t.change(s, places, t.row, kb * BN, t.dX)
    end
    if dp then t.W.times(stage, dp, t.Z.block) end
    if to then
      cute.when(cute.ge(kb, to) | cute.lt(kb, from), function()
        t.sight:hide(s, places, t.row, kb * BN, -math.huge)
      end)
    end
    local lse, delta = t.numbers(places, stage)
    local add = t.adder and function(i, j, d, w)
      local live = cute.ne(w, 0)
      if not tiles.divides(BM, t.rows) then
        live = live & cute.lt(t.row + places(i, 0)[1], t.rows)
      end
      t.adder:add(reads[i][j], d, live)
    end
    weigh(s, dp, t.change and flash.LOG2E or c, lse, delta, slopes, add)
    if t.dZ then t.W.turned(stage, t.dZ, left(s, team.dtype)) end
    if t.dX then t.Y.turned(stage, t.dX, left(dp, team.dtype)) end
  end, at)
end

-- Allocates the shared memory and makes the tiled products for both kinds of
-- blocks: those that own keys, and those that own rows of Q.
local function frame(o, dtype)
  local team = flash.team(dtype, o.warps)
  local BM, BN, D = o.tile[1], o.tile[2], o.head
  local t = {sX = team:tile(BM, D, 1), sZ = team:tile(BM, D, 1),
             sY = team:tile(BN, D, 2), sW = team:tile(BN, D, 2),
             X = {}, Z = {}, Y = {}, W = {}}
  t.X.block, t.Z.block = team:left(t.sX(_, _, 0)), team:left(t.sZ(_, _, 0))
  t.Y.times, t.W.times = team:times(t.sY), team:times(t.sW)
  t.Y.turned = team:times(flash.turned(t.sY), true)
  t.W.turned = team:times(flash.turned(t.sW), true)
  return team, t
end

-- Returns a function that applies score_mod and mask_mod to scores of head h
-- (see flash.change), or nil if there are no such functions.
local function change(o, a, b, h, rows, columns, turned)
  return flash.change {score = a.score, mask = a.mask, scale = a.scale, b = b,
    h = h, tile = o.tile, rows = rows, columns = columns, turned = turned,
    note = not turned and a.adder
      and function(y) return a.adder:reads(y) end or nil}
end

local function finish()
  -- A block without tiles has not yet waited for the copies of its own tiles X
  -- and Z.
  cute.arch.cp_async_wait_group(0)
  cute.arch.sync_threads()
end

local function of_rows(o, a)
  local h, b = select(2, cute.arch.block_idx())
  local g = h // flash.group(a.Q, a.K)
  local function row(t) return flash.head(t, b, h, a.cu_q, true) end
  local function key(t) return flash.head(t, b, g, a.cu_k) end
  local Q, K = row(a.Q), key(a.K)
  local S, BM = cute.size(Q, 0), o.tile[1]
  local bm = flash.place(S, BM, o.right, a.cu_q)
  local team, t = frame(o, Q.element_type)
  t.row, t.sight = bm * BM, flash.sight(S, cute.size(K, 0), o.left, o.right)
  team:rows(Q, t.sX)(bm, 0)
  team:rows(row(a.dO), t.sZ)(bm, 0)
  t.loads = {team:rows(K, t.sY), team:rows(key(a.V), t.sW)}
  t.dX = team:zeros(BM, o.head)
  local lse, delta = held_numbers(t.row, team:places(BM, o.tile[2]), S,
    flash.numbers(a.LSE, b, h, a.cu_q, true),
    flash.numbers(a.delta, b, h, a.cu_q, true))
  function t.numbers() return lse, delta end
  t.change, t.adder, t.rows = change(o, a, b, h, S, cute.size(K, 0)), a.adder, S
  local c, count, at = a.scale * flash.LOG2E, nil, nil
  if o.list then
    count, at = flash.listed(a.blocks(b, h, bm // (o.list[1] // BM), _),
                             o.list[2] // o.tile[2])
  end
  walk(o, team, t, c, count, at)
  finish()
  local function store() a.adder:store(a.parts(_, bm, h, b), o.warps) end
  if a.adder and a.cu_q then
    -- Blocks with b = B handle the rows after the last sequence. Scores of
    -- these rows contribute to no gradient.
    cute.when(cute.lt(b, cute.size(a.parts, 3)), store)
  elseif a.adder then store() end
  t.dX:store(t.dX:load() * a.scale)
  team:store(t.dX, t.sX(_, _, 0), row(a.dQ), bm)
end

local function of_keys(o, a)
  local g, b = select(2, cute.arch.block_idx())
  local heads = flash.group(a.Q, a.K)
  local function key(t) return flash.head(t, b, g, a.cu_k, true) end
  local K, BM = key(a.K), o.tile[1]
  local bm = flash.place(cute.size(K, 0), BM, o.left, a.cu_k)
  local team, t = frame(o, K.element_type)
  t.row = bm * BM
  team:rows(K, t.sX)(bm, 0)
  team:rows(key(a.V), t.sZ)(bm, 0)
  if o.keys then t.dX = team:zeros(BM, o.head) end
  if o.values then t.dZ = team:zeros(BM, o.head) end
  local pipe = cute.make_layout {o.tile[2], 2}
  local sL = cute.make_smem_tensor(cute.f32, pipe)            -- (BN,PIPE)
  local sD = cute.make_smem_tensor(cute.f32, pipe)            -- (BN,PIPE)
  function t.numbers(places, stage)
    return passing_numbers(places, sL, sD, stage)
  end
  for r in cute.range(heads) do
    local h = g * heads + r
    local function row(x) return flash.head(x, b, h, a.cu_q) end
    local function number(x) return flash.numbers(x, b, h, a.cu_q) end
    local Q = row(a.Q)
    -- The loads below overwrite tiles of the previous head. The barrier makes
    -- sure that all threads have read them.
    cute.arch.sync_threads()
    t.sight = flash.sight(cute.size(K, 0), cute.size(Q, 0), o.right, o.left)
    t.loads = {team:rows(Q, t.sY), team:rows(row(a.dO), t.sW),
               numbers(team, number(a.LSE), sL),
               numbers(team, number(a.delta), sD)}
    t.change = change(o, a, b, h, cute.size(K, 0), cute.size(Q, 0), true)
    local c, count, at = a.scale * flash.LOG2E, nil, nil
    if o.list then count, at = flash.listed(a.lists(b, h, bm, _), 1) end
    walk(o, team, t, c, count, at)
  end
  finish()
  if t.dX then
    t.dX:store(t.dX:load() * a.scale)
    team:store(t.dX, t.sX(_, _, 0), key(a.dK), bm)
  end
  if t.dZ then team:store(t.dZ, t.sZ(_, _, 0), key(a.dV), bm) end
end

-- The default tile and number of warps for each head size. From head size 192
-- on, one kernel for both dK and dV would need too many registers. Therefore dK
-- and dV have separate kernels.
local DEFAULT = {
  [32] = {{64, 64}, 4}, [64] = {{64, 64}, 4}, [96] = {{64, 64}, 4},
  [128] = {{64, 64}, 4}, [192] = {{128, 32}, 8}, [256] = {{64, 32}, 4},
}

--- Returns the kernels in the order in which they run, each with its function
-- grid(S, T, H, G, B).
---@param o table {head: integer, causal: boolean?, window: any[]?,
-- tile: integer[]?, warps: integer?, modify: function?, list: integer[]?,
-- gradients: table?} as
-- for kernels/attention.lua; gradients: {kinds, at}, see
-- kernels/score_gradients.lua
---@return {kernel: any, block: integer, grid: function}[] with the fields tile
-- and turned, the extents {rows, keys} of the tiles of blocks that own rows and
-- of those that own keys
return function(o)
  rules.options("attention_bwd", o, "modify list gradients " .. flash.OPTIONS)
  local p = flash.options("attention_bwd", o, DEFAULT)
  p.list = o.list
  rules.need(p.tile[2] <= 32 * p.warps, "attention_bwd",
    "tiles of %d columns; at most %d, one for each thread, are "
      .. "possible", p.tile[2],
    32 * p.warps)
  local function made(name, f, fields, block, grid)
    local mine = setmetatable(fields, {__index = p})
    return {kernel = cute.kernel(name, {block = block, fastmath = true},
      function(Q, K, V, O, dO, LSE, delta, dQ, dK, dV, scale, cu_q, cu_k, more,
               ...)
        flash.check("attention_bwd", p.head, {Q = Q, K = K, V = V, O = O,
          dO = dO, dQ = dQ, dK = dK, dV = dV})
        local a = {Q = Q, K = K, V = V, O = O, dO = dO, LSE = LSE,
                   scale = scale, delta = delta, dQ = dQ, dK = dK, dV = dV,
                   cu_q = cu_q, cu_k = cu_k}
        if o.list then a.blocks, a.lists = more.blocks, more.lists end
        local done
        if o.modify then a.score, a.mask, done = o.modify(...) end
        if fields.adds and o.gradients then
          local tensors = {}
          for i, at in ipairs(o.gradients.at) do
            tensors[i] = select(at, ...)
          end
          a.parts = more.parts
          a.adder = score_gradients.adder(o.gradients.kinds, tensors, more.sums)
        end
        f(mine, a)
        if done then done() end
      end), block = block, grid = grid}
  end
  local threads = 32 * p.warps
  local function keys(name, fields)
    return made(name, of_keys, fields, threads, function(_, T, _, G, B)
      return {tiles.count(T, p.tile[1]), G, B}
    end)
  end
  local list = {
    made("attention_delta", function(_, a) sums(a) end, {}, 4 * ROWS,
      function(S, _, H, _, B) return {tiles.count(S, ROWS), H, B} end),
    made("attention_dq", of_rows, {adds = true}, threads,
      function(S, _, H, _, B) return {tiles.count(S, p.tile[1]), H, B} end)}
  if o.head < 192 then
    list[3] = keys("attention_dkv", {keys = true, values = true})
  else
    list[3] = keys("attention_dk", {keys = true})
    list[4] = keys("attention_dv", {values = true})
  end
  list.tile, list.turned = p.tile, {p.tile[2], p.tile[1]}
  return list
end
-- SPDX-License-Identifier: MIT
