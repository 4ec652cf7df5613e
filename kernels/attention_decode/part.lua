--- The kernel of kernels/attention_decode that computes a part: the attention
-- of one tile of rows of Q to consecutive tiles of keys.
--
-- A block has one warp for each 16 rows of the tile. cp.async loads tiles of
-- keys and values `stages` - 1 tiles ahead of their use. The indices of pages
-- are read one tile earlier.
local core = require "cute.core"
local rules = require "kernels.operand_rules"
local cute = require "cute"
local flash = require "kernels.flash"
local kept = require "kernels.kept"
local narrow = require "kernels.attention_decode.narrow"
local share = require "kernels.attention_decode.share"
local tiles = require "cute.tiles"
local turned = require "kernels.attention_decode.turned"
local _ = cute._

local part = {}

--- Returns the extents that all kernels derive from their operands.
-- - B: the number of sequences.
-- - S: the number of rows of Q of a sequence.
-- - T: the largest number of keys of a sequence.
-- - G: the number of heads of K.
-- - R: the number of rows of all heads of Q that share a head of K.
-- - count: the number of tiles into which the R rows are divided.
function part.extents(o, mQ, mK, pages)
  local B, S, G = cute.size(mQ, 0), cute.size(mQ, 1), cute.size(mK, 2)
  local R = S * o.group
  return {B = B, S = S, G = G, R = R, count = tiles.count(R, o.tile[1]),
          T = cute.size(mK, 1) * (pages and cute.size(pages, 1) or 1)}
end

--- Makes the object that divides the work among blocks
-- (kernels/attention_decode/share.lua). mParts is the tensor for the results of
-- the parts.
function part.share(o, e, lengths, mParts)
  local per = e.G * e.count
  return share.new(o, e.T, lengths, e.B, per, cute.size(mParts, 0) - e.B * per)
end

-- Makes the tiled copy for rows of D elements of this type. Each thread copies
-- 16 bytes, and one copy covers at most 128 bytes of a row.
local function copy_of(team, name, dtype, D)
  local along = core.gcd(D, 64) // 8
  return cute.make_tiled_copy(cute.make_copy_atom(name, dtype, 128),
    cute.make_layout({team.threads // along, along}, {along, 1}),
    cute.make_layout {1, 8})
end

-- Returns the shared memory for tiles of keys and of values, and two functions:
-- scores(stage, s, Q) adds Q K^T to s, and weigh(stage, acc, p) adds p V to
-- acc. small: K and V have elements of 8 bits.
local function make_tiles(o, team, small)
  local BN, D = o.tile[2], small and o.head // 2 or o.head
  local sK, sV = team:tile(BN, D, o.stages), team:tile(BN, D, o.stages)
  if small then
    return sK, sV, narrow.times_keys(team, sK), narrow.times_values(team, sV)
  end
  return sK, sV, team:times(sK), team:times(flash.turned(sV), true)
end

--- Returns a function (block, page, stage, inner) that loads a block of t, K or
-- V, into a stage of s. page: the block's page, if K is paged. inner: all keys
-- of the block exist. at: {b = sequence, g = head of K, T = number of keys}.
function part.loader(o, team, t, s, at, paged)
  local BN, D = o.tile[2], cute.size(s, 1)
  local g2s = copy_of(team, "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", t.element_type,
                      D)
  local thr = g2s:get_slice(team.tid)
  local dst = thr:partition_D(s)                           -- (CPY,M,K,PIPE)
  local all = flash.section(t(paged and 0 or at.b, _, at.g, _), 0, at.T)
  local size = cute.size(t, 1)
  rules.need(not paged or size % BN == 0, "attention_decode",
    "pages of %s keys; a multiple of %d is needed", size, BN)
  return function(block, page, stage, inner)
    local rows, place = all, block
    if paged then
      rows, place = t(page, _, at.g, _), block % (size // BN)
    end
    local src = thr:partition_S(cute.local_tile(rows, {BN, D}, {place, 0}))
    local inside = not inner and tiles.inside(thr, all, {BN, D}, block)(0)
    cute.copy(g2s, src, dst(_, _, _, stage), inside or nil)
  end
end

local MOST = 65504.0  -- of f16

--- Loads the tile of rows of Q that `at` describes. Row r of the tile is row r
-- // group of head r % group. Rows after the last one are zeros. If the MMA has
-- f16 operands, bf16 elements beyond the range of f16 become the largest f16.
-- small: K has elements of 8 bits, so the columns of Q are stored in the order
-- of narrow.put_row. angles: see kernels/attention_decode/turned.lua.
function part.load_rows(o, team, mQ, sQ, at, small, angles)
  local BM, each = o.tile[1], o.head // 8
  local R = at.R
  local piece = turned.piece(o.head, mQ.element_type, angles)
  local held = piece.held
  local out = held
  if team.dtype ~= mQ.element_type then
    out = cute.make_rmem_tensor({8}, team.dtype)
  end
  local function load(n)
    local row, place = n // each, n % each
    local r = at.m * BM + row
    held:fill(0)
    cute.when(cute.lt(r, R), function()
      piece.take(mQ(at.b, r // o.group, at.g * o.group + r % o.group, _),
                 at.T - at.S + r // o.group, place)
    end)
    if out ~= held then
      local x = cute.max(cute.min(held:load():to(cute.f32), MOST), -MOST)
      out:store(x:to(team.dtype))
    end
    if small then
      narrow.put_row(sQ(row, _, 0), place, out)
    else
      cute.autovec_copy(out, cute.local_tile(sQ(row, _, 0), {8}, {place}))
    end
  end
  local all, some = BM * each, team.threads
  for i = 0, all - 1, some do
    local n = team.tid + i
    if i + some <= all then load(n)
    else cute.when(cute.lt(n, all), function() load(n) end) end
  end
end

--- Appends x (S,D), new keys or values, to the cache, which then has T rows:
-- row i of x becomes row T - S + i. Stores only rows `first` to last - 1.
-- row(i) returns row i of the cache. The elements of the cache times `scale`
-- are the keys or values. angles: see kernels/attention_decode/turned.lua.
function part.append(o, x, S, T, first, last, row, thread, scale, angles)
  for i in cute.range(cute.max(first, cute.max(T - S, 0)),
                      cute.min(last, T)) do
    cute.when(cute.lt(thread * 8, o.head), function()
      local place, to = {thread}, row(i)
      local held = turned.piece(o.head, x.element_type, angles).take(
        x(i - (T - S), _), i, thread)
      if to.element_type ~= x.element_type then
        local small = cute.make_rmem_tensor({8}, to.element_type)
        small:store((held:load():to(cute.f32) * (1 / scale))
          :to(to.element_type))
        held = small
      end
      cute.autovec_copy(held, cute.local_tile(to, {8}, place))
    end)
  end
end

--- Returns the scale of head g from tensor t, which has one element for all
-- heads or one element for each head. Returns 1 if t is nil.
function part.scale_of(t, g)
  if not t then return 1.0 end
  return t[cute.size(t) == 1 and 0 or g]
end

--- Returns a function that maps a key's index to the row of t (K or V) with
-- this key.
function part.row_of(t, b, g, pages)
  local size = cute.size(t, 1)
  return function(i)
    if not pages then return t(b, i, g, _) end
    return t(pages[{b, i // size}], i % size, g, _)
  end
end

-- Returns the tree (S,S) of sequence b. The tensor has one tree for all
-- sequences, or one for each sequence. Returns nil if there is no tensor.
local function tree_of(tree, b)
  return tree and (cute.rank(tree) == 2 and tree or tree(b, _, _)) or nil
end

-- Returns the number of keys, counted from the first one, that all of the S
-- rows see. A tree may hide any of the last S keys.
local function seen_by_all(T, S, tree) return T - (tree and S or S - 1) end

-- Sets the scores of keys that a row does not see to -inf. The first key of the
-- block of scores s is `col`. Query q sees the keys up to T - S + q. With
-- `tree` (S,S), query q sees only those of the last S keys that tree[q]
-- selects.
local function hide(o, s, places, col, at, tree)
  local all, S, T = flash.by_rows(s), at.S, at.T
  for i = 0, cute.size(all, 0) - 1 do
    local row = at.m * o.tile[1] + places(i, 0)[1]
    local q = S == 1 and 0 or cute.min(row // o.group, S - 1)
    local to = T - (S - 1) + q
    for j = 0, cute.size(all, 1) - 1 do
      local key = col + places(i, j)[2]
      local seen = cute.lt(key, to)
      if tree then
        local e = key - (T - S)
        local on = tree[{q, cute.min(cute.max(e, 0), S - 1)}]
        seen = seen & (cute.lt(e, 0) | cute.ne(on, 0))
      end
      all[{i, j}] = cute.where(seen, all(i, j), -math.huge)
    end
  end
end

-- Applies f.score and f.mask (see kernels/attention.lua) to scores s. Instead
-- of rows and keys after the last one, these functions get the index of the
-- last row or key.
local function change(o, f, s, places, col, scale, at)
  local all = flash.by_rows(s)
  for i = 0, cute.size(all, 0) - 1 do
    local r = cute.min(at.m * o.tile[1] + places(i, 0)[1], at.R - 1)
    for j = 0, cute.size(all, 1) - 1 do
      local to = kept.at(at.b, at.g * o.group + r % o.group, r // o.group,
                         cute.min(col + places(i, j)[2], at.T - 1))
      local x = all(i, j) * scale
      local y = f.score and f.score(x, to) or x
      if f.mask then y = cute.where(f.mask(to), y, -math.huge) end
      all[{i, j}] = y
    end
  end
end

--- Calls o.modify with the captured values. Returns {score = score_mod, mask =
-- mask_mod}, and the function `done`, see kernels/attention.lua. Returns
-- nothing without o.modify.
function part.functions(o, ...)
  if not o.modify then return end
  local score, mask, done = o.modify(...)
  return {score = score, mask = mask}, done
end

--- Applies the functions f, if given, to the scores of a block of keys, and
-- hides the keys that a row does not see.
function part.alter(o, f, s, places, block, scale, at, tree)
  local col = block * o.tile[2]
  if f then change(o, f, s, places, col, scale, at) end
  local all = seen_by_all(at.T, at.S, tree)
  cute.when(cute.gt((block + 1) * o.tile[2], all), function()
    hide(o, s, places, col, at, tree_of(tree, at.b))
  end)
end

--- Calls `one` (see Share:walk) for each part that this block computes.
function part.each(work, one)
  for item in cute.range((cute.arch.block_idx()), work.items,
                         (cute.arch.grid_dim())) do
    work:walk(item, one)
  end
end

--- Processes the tiles of keys of a part, from last - 1 down to `first`. Calls
-- begin() once after it has issued the first loads, and then f(block, stage)
-- for each tile. Loads of later tiles run meanwhile.
function part.walk(o, first, last, load, page_of, meet, begin, f)
  local ahead = o.stages - 1
  for i = 0, ahead - 1 do
    local block = last - 1 - i
    local function ask() load(block, page_of(block), i, i > 0) end
    if i == 0 then ask() else cute.when(cute.ge(block, first), ask) end
    cute.arch.cp_async_commit_group()
  end
  local page = page_of(cute.max(last - 1 - ahead, first))
  begin()
  local stage, free = 0, ahead
  for block in cute.range(last - 1, first - 1, -1) do
    cute.arch.cp_async_wait_group(ahead - 1)
    meet()
    cute.when(cute.ge(block - ahead, first), function()
      load(block - ahead, page, free, true)
    end)
    cute.arch.cp_async_commit_group()
    page = page_of(cute.max(block - ahead - 1, first))
    f(block, stage)
    free = stage
    stage = cute.where(cute.eq(stage, ahead), 0, stage + 1)
  end
  cute.arch.cp_async_wait_group(0)
end

--- Stores the results of a part at index `place`: acc, multiplied by `factor`
-- if given, to mParts, and logs[i] of row i to mLogs. `writer`, if given,
-- selects the threads that store. column(d), if given, returns the column of O
-- for column d of the accumulators.
function part.store(o, places, logs, acc, mParts, mLogs, place, at, factor,
                    writer, column)
  local out, rows = mParts(place, _, _), flash.by_rows(acc)
  for i = 0, cute.size(rows, 0) - 1 do
    local row = places(i, 0)[1]
    cute.when(cute.lt(at.m * o.tile[1] + row, at.R), function()
      for j = 0, cute.size(rows, 1) - 1 do
        local d = places(i, j)[2]
        if column then d = column(d) end
        out[{row, d}] = factor and rows(i, j) * factor or rows(i, j)
      end
      local mine = cute.eq(cute.arch.lane_idx() % 4, 0)
      cute.when(writer and writer & mine or mine, function()
        mLogs[{place, row}] = logs[i]
      end)
    end)
  end
end

--- Returns three values with which the partial results of a row are combined:
-- weight, the sum of all weights, and lse. weight(log) returns the weight of a
-- partial result. lse(some) returns the row's LSE; `some` is whether the sum is
-- not 0. reduce(init, f, combine) must reduce the logs of the partial results:
-- f(x, log) adds a log to a lane's state, and combine merges the states of two
-- lanes.
function part.weights(reduce)
  local top = reduce(-math.huge, cute.max, cute.max)
  local base = cute.where(cute.eq(top, -math.huge), 0.0, top)
  local function weight(log) return flash.exp2((log - base) * flash.LOG2E) end
  local sum = reduce(0.0, function(x, log) return x + weight(log) end, cute.add)
  return weight, sum, function(some)
    return cute.where(some, base + cute.log2(sum) / flash.LOG2E, -math.huge)
  end
end

--- Waits for the preceding launches (griddepcontrol), and then lets the next
-- launch begin. The next launch may read only what these preceding launches
-- have written, until it waits for this launch.
function part.begin(o)
  if not o.pdl then return end
  cute.arch.griddepcontrol_wait()
  cute.arch.griddepcontrol_launch_dependents()
end

-- With o.early, waits for the preceding launches here, instead of at the
-- beginning of the kernel. Before this wait, the kernel reads lengths, pages
-- and old keys.
local function arrive(o)
  if o.early then part.begin(o) end
end

--- The function of the kernel. cache: see kernels/attention_decode.lua. The
-- remaining arguments are the captured values for o.modify.
function part.kernel(o, mQ, mK, mV, _O, _LSE, mParts, mLogs, scale, lengths,
                     cache, ...)
  if not o.early then part.begin(o) end
  flash.check("attention_decode", o.head, {Q = mQ, K = mK, V = mV}, o.group)
  local BM, BN, D, more = o.tile[1], o.tile[2], o.head, cache or {}
  local pages = more.pages
  local e = part.extents(o, mQ, mK, pages)
  -- Some indices of mParts and mLogs are not used.
  mParts, mLogs = cute.undefined_ok(mParts), cute.undefined_ok(mLogs)
  local work = part.share(o, e, lengths, mParts)

  local small = mK.element_type ~= mQ.element_type
  local team = flash.team(small and cute.f16 or mQ.element_type, BM // 16)
  local cK, cV = mK, mV
  if small then cK, cV = narrow.pairs_of(mK), narrow.pairs_of(mV) end
  local meet = BM == 16 and cute.arch.sync_warp or cute.arch.sync_threads
  local sK, sV, scores, weigh = make_tiles(o, team, small)
  local sQ = team:tile(BM, D, 1)                              -- (BM,D,1)
  local block_of_Q, hold = team:left(sQ(_, _, 0), o.held)
  local places = team:places(BM, BN)
  flash.check_scale(scale)
  local f, done = part.functions(o, ...)
  local angles = turned.angles(more)

  local function one(b, row, first, last, place)
    local T = work:keys(b)
    local at = {b = b, g = row // e.count, m = row % e.count, R = e.R, S = e.S,
                T = T}
    local by_k = part.scale_of(more.k_scale, at.g)
    local by_v = part.scale_of(more.v_scale, at.g)
    local by = more.k_scale and scale * by_k or scale
    -- Waits until all threads have read the shared memory of the previous part.
    meet()
    if more.k and e.count == 1 then
      -- If the part contains new keys, which a preceding launch writes, waits
      -- for this launch.
      if o.early then
        cute.when(cute.gt(last * BN, T - e.S), function() arrive(o) end)
      end
      for _i, x in ipairs {{mK, more.k, by_k}, {mV, more.v, by_v}} do
        part.append(o, x[2](b, _, at.g, _), e.S, T, first * BN, last * BN,
                    part.row_of(x[1], b, at.g, pages), team.tid, x[3],
                    x[1] == mK and angles or nil)
      end
      meet()
    end
    local load_K = part.loader(o, team, cK, sK, at, pages)
    local load_V = part.loader(o, team, cV, sV, at, pages)
    local acc = team:zeros(BM, D)                             -- (MMA,M,N)
    local state = flash.softmax(2 * cute.size(acc, 1),
                                (f and 1.0 or by) * flash.LOG2E, true)
    local per_page = pages and cute.size(mK, 1) // BN
    part.walk(o, first, last, function(...)
      load_K(...)
      load_V(...)
    end, function(block)
      return pages and pages[{b, block // per_page}] or b
    end, meet, function()
      arrive(o)
      part.load_rows(o, team, mQ, sQ, at, small, angles)
      meet()
      hold()
    end, function(block, stage)
      local s = team:zeros(BM, BN)
      scores(stage, s, block_of_Q)
      part.alter(o, f, s, places, block, by, at, more.tree)
      weigh(stage, acc, state:take(s, acc, team.dtype))
    end)
    part.store(o, team:places(BM, D), state:finish(acc), acc, mParts, mLogs,
               place, at, more.v_scale and by_v, nil, small and narrow.column)
  end
  part.each(work, one)
  arrive(o)  -- Blocks without a part continue here.
  if done then done() end
end

return part
-- SPDX-License-Identifier: MIT
