--- Attention of a few queries to many keys, on mma.sync: the keys of all
-- sequences are divided equally among blocks, and a second kernel combines the
-- results. With the option cluster, one kernel does both (clustered.lua in
-- kernels/attention_decode).
--
--     local k = attention_decode {head = 128, group = 8}
--     local n = k.plan(T, S, H, B)
--     -- parts {n.slots, k.rows, D of O} and logs {n.slots, k.rows} of f32
--     for _, l in ipairs(k) do
--       l.kernel(Q, K, V, O, LSE, parts, logs, scale, lengths, cache):launch {
--         grid = l.grid(n, S, H, B), block = l.block, cluster = l.cluster}
--     end
--
-- Q and O are (B,S,H,D), K and V (B,T,G,D), of bf16 or f16; LSE is (B,H,S) of
-- f32. lengths, (B) of i32, gives each sequence's number of keys; without it,
-- every sequence has T keys. The S rows of a sequence belong to its last S
-- keys: row s sees the keys up to its own key, inclusive.
--
-- `cache` is a table of further tensors, all optional:
-- pages (B,n) of i32: K and V consist of pages (P,page,G,D), and the keys of
--   sequence b are those of the pages pages[b].
-- k and v (B,S,G,D): the last keys and values of each sequence, which the
--   kernel first stores in K and V.
-- tree (S,S) or (B,S,S), integers: of the last S keys, row s sees key j, with j
--   at most s, only if tree[s][j] is not 0.
-- k_scale and v_scale, (1) or (G) of f32: factors of K and V, which may have
--   elements of e4m3. k and v, of Q's type, are divided by these factors when
--   they are stored.
-- cos and sin (P,D/2) of f32: the kernel rotates Q and k, as kernels/rope.lua
--   does. The position of a row is the index of its own key, and selects the
--   row of cos and sin.
--
-- head = 576 is a latent head (MLA): G is 1, the values are the first 512
-- elements of the keys, V and v are not used, and O has heads of 512.
--
-- A tile of rows consists of all S rows of the `group` heads of Q that share a
-- head of K. Therefore each key is read once. Reading the keys dominates the
-- time.
local core = require "cute.core"
local rules = require "kernels.operand_rules"
local cute = require "cute"
local clustered = require "kernels.attention_decode.clustered"
local latent = require "kernels.attention_decode.latent"
local latent_sm90 = require "kernels.attention_decode.latent_sm90"
local part = require "kernels.attention_decode.part"
local tiles = require "cute.tiles"
local turned = require "kernels.attention_decode.turned"
local _ = cute._

-- The number of warps in a block of the second kernel.
local WARPS = 8

-- The number of warps of the second kernel that fit on a GPU together with the
-- blocks of the first kernel. These warps start before the first kernel ends,
-- and wait for its results.
local MOST = 3072

-- Returns how the second kernel divides its work among warps. A job is 32 to
-- 512 columns of a row of O. Returns the number of jobs, the number of columns
-- of a job, and the number of warps of a job. The warps of a job divide the
-- row's partial results among them.
local function jobs_of(o, B, S, H)
  local columns = o.value % 128 == 0 and 128 or o.value % 64 == 0 and 64 or 32
  local rows = B * S * H
  while rows * (o.value // columns) > MOST and o.value % (2 * columns) == 0 do
    columns = 2 * columns
  end
  local jobs, groups = rows * (o.value // columns), WARPS
  while groups > 1 and jobs * groups > MOST do groups = groups // 2 end
  -- With batch_invariant (o.chunk), the order of sums must not depend on B, so
  -- the number of warps of a job is fixed.
  return jobs, columns, o.chunk and WARPS // 2 or groups
end

-- The second kernel. It combines the partial results of each row, weighted by
-- their sums of exponentials.
local function together(o, mQ, mK, _V, mO, mL, mParts, mLogs, _scale, lengths,
                        cache)
  -- Some rows of a tile do not exist in Q, and some partial results were never
  -- stored. The kernel does not read these elements.
  cute.partial_ok(mParts)
  cute.partial_ok(mLogs)
  local lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
  local e = part.extents(o, mQ, mK, cache and cache.pages)
  local H = e.G * o.group
  local jobs, columns, groups = jobs_of(o, e.B, e.S, H)
  local at = cute.arch.block_idx() * (WARPS // groups) + warp // groups
  local group, job = warp % groups, cute.min(at, jobs - 1)
  local place = {job % (o.value // columns) * 32 + lane}
  local row = job // (o.value // columns)
  local h, s, b = row % H, row // H % e.S, row // (H * e.S)
  local r = s * o.group + h % o.group
  local first, last = part.share(o, e, lengths, mParts):places(b,
    h // o.group * e.count + r // o.tile[1])
  r = r % o.tile[1]
  if o.pdl then cute.arch.griddepcontrol_wait() end
  local function reduce(init, f, combine)  -- Reduces over the lanes of a warp.
    local x = init
    for i in cute.range(first + lane, last, 32) do x = f(x, mLogs[{i, r}]) end
    return cute.arch.warp_reduction(x, combine)
  end
  local weight, sum, lse = part.weights(reduce)
  local width = columns // 32
  local x = cute.make_rmem_tensor({width}, cute.f32)
  local other = cute.make_rmem_tensor({width}, cute.f32)
  x:fill(0)
  for i in cute.range(first + group, last, groups, {unroll = 4}) do
    cute.autovec_copy(cute.local_tile(mParts(i, r, _), {width}, place), other)
    x:store(x:load() + other:load() * weight(mLogs[{i, r}]))
  end
  -- This block has issued its loads, so the loads of blocks of the next launch
  -- cannot delay them.
  if o.pdl then cute.arch.griddepcontrol_launch_dependents() end
  local sums
  if groups > 1 then
    sums = cute.make_smem_tensor(cute.f32, cute.make_layout({width, 32, WARPS}),
                                 16)
    cute.autovec_copy(x, sums(_, lane, warp))
    cute.arch.sync_threads()
  end
  cute.when(cute.eq(group, 0) & cute.lt(at, jobs), function()
    for i = 1, groups - 1 do
      cute.autovec_copy(sums(_, lane, warp + i), other)
      x:store(x:load() + other:load())
    end
    local some = cute.ne(sum, 0)  -- true for NaN, too
    local out = cute.make_rmem_tensor({width}, mO.element_type)
    out:store((x:load() * cute.where(some, 1 / sum, 0.0)):to(mO.element_type))
    cute.autovec_copy(out, cute.local_tile(mO(b, s, h, _), {width}, place))
    cute.when(cute.eq(place[1], 0), function()
      mL[{b, h, s}] = lse(some)
    end)
  end)
end

-- The kernel that stores the new keys and values of a sequence in K and V. It
-- runs before the first kernel, if several blocks of the first kernel read
-- them.
local function append(o, mQ, mK, mV, _O, _LSE, _parts, _logs, _scale, lengths,
                      cache)
  if o.pdl then cute.arch.griddepcontrol_wait() end
  local g, b = cute.arch.block_idx()
  local e = part.extents(o, mQ, mK, cache.pages)
  local T = lengths and lengths[b] or e.T
  for i, x in ipairs {cache.k, o.value == o.head and cache.v or nil} do
    local t, scale = mK, cache.k_scale
    if i == 2 then t, scale = mV, cache.v_scale end
    part.append(o, x(b, _, g, _), e.S, T, 0, T,
                part.row_of(t, b, g, cache.pages), (cute.arch.thread_idx()),
                part.scale_of(scale, g), i == 1 and turned.angles(cache) or nil)
  end
end

-- For each head size: the default number of keys in a tile, and the default
-- number of stages of K and V.
local DEFAULT = {[32] = {64, 4}, [64] = {64, 3}, [96] = {32, 3},
                 [128] = {32, 3}, [192] = {32, 2}, [256] = {32, 2},
                 [576] = {32, 2}}

-- A table like DEFAULT, for keys and values with elements of 8 bits. If an
-- entry has a third number, it is the number of keys in a tile for tiles of
-- more than 16 rows.
local NARROW = {[32] = {64, 3}, [64] = {64, 2}, [96] = {64, 2},
                [128] = {32, 2, 64}, [192] = {32, 2}, [256] = {16, 3}}

-- The number of keys in a part of a sequence if o.batch_invariant is set.
local CHUNK = 1024

-- SMEM: bytes of shared memory of a multiprocessor. RESERVED: bytes that the
-- system reserves there for each block.
local SMEM, RESERVED = 233472, 1024

-- Defaults with clusters. CLUSTERED: for each head size, {keys in a tile,
-- stages} of each warp, first for up to 8 rows, then for up to 16 rows. TEAMS:
-- the number of warps in a block.
local CLUSTERED = {[32] = {{32, 4}, {32, 4}}, [64] = {{32, 4}, {32, 4}},
                   [128] = {{32, 3}, {16, 5}}}
local TEAMS = 4

-- The minimum number of tiles in a part: combining more parts would take more
-- time than the shorter parts save.
local LEAST = 2

local NAMES = "name head group rows bits tile stages held pdl modify blocks "
  .. "least batch_invariant wgmma early cluster teams"

-- Sets p.blocks, the number of blocks that a multiprocessor can hold. A thread
-- needs up to 255 registers, so each of the multiprocessor's four partitions
-- has registers for two warps.
local function complete_blocks(p, warps, bytes)
  local most = math.min(SMEM // (bytes + RESERVED), 8 // warps)
  rules.need(most > 0, "attention_decode", "tile = {%d, %d} with %d stages "
    .. "needs %d bytes of shared memory; a block has %d", p.tile[1], p.tile[2],
    p.stages, bytes, SMEM - RESERVED)
  p.blocks = p.blocks or most
  p.warps = warps
  -- In one copy, each thread copies 16 bytes, and the threads cover at most 128
  -- adjacent bytes of each row.
  local rows = 32 * (p.cluster and 1 or warps) * 8
    // core.gcd(p.head * p.bits // 16, 64)
  rules.need(p.tile[2] % rows == 0, "attention_decode", "tile = {any, %d}; a "
    .. "multiple of %d keys, which the threads copy at once, is needed",
    p.tile[2], rows)
end

-- Returns the given options, with defaults for all missing options.
local function complete(o)
  rules.options("attention_decode", o, NAMES)
  local known = (o.bits == 8 and NARROW or DEFAULT)[o.head]
  rules.need(known, "attention_decode", "head = %s; 32, 64, 96, 128, 192, "
    .. "256%s elements are needed", core.show(o.head), o.bits == 8 and ""
    or " or 576")
  rules.integers("attention_decode", o, {"rows"}, 1, 1 << 20)
  rules.integers("attention_decode", o, {"stages"}, 2, 8)
  rules.integers("attention_decode", o, {"blocks"}, 1, 32)
  local p = {head = o.head, value = o.head == 576 and 512 or o.head,
    group = o.group or 1, pdl = o.pdl,
    stages = o.stages or known[2],
    held = o.held, modify = o.modify, least = o.least or LEAST,
    blocks = o.blocks, bits = o.bits or 16}
  rules.integers("attention_decode", p, {"group"}, 1, 1024)
  if p.held == nil then p.held = o.head <= 128 end
  local rows = p.group * (o.rows or 1)
  if o.cluster then
    local c = (CLUSTERED[o.head] or {})[rows <= 8 and 1 or 2]
    rules.need(c and rows <= 16 and p.bits == 16 and not o.batch_invariant,
      "attention_decode", "cluster = %s with head = %s, %d rows and %d bits; "
      .. "32, 64 or 128 elements of 16 bits, up to 16 rows, and no "
      .. "batch_invariant are needed", core.show(o.cluster), core.show(o.head),
      rows, p.bits)
    rules.need(({[1] = 1, [2] = 1, [4] = 1, [8] = 1, [16] = 1})[o.cluster]
      and o.cluster <= o.head // 8, "attention_decode", "cluster = %s; 1, 2, "
      .. "4, 8 or 16 blocks, with at least 8 of the %d columns each, are "
      .. "needed", core.show(o.cluster), o.head)
    p.cluster, known, p.stages = o.cluster, c, o.stages or c[2]
  end
  local N = o.tile and o.tile[2] or rows > 16 and known[3] or known[1]
  rules.need(math.type(N) == "integer" and N % 16 == 0 and N > 0,
    "attention_decode", "tile = {any, %s}; a multiple of 16 keys is needed", N)
  p.wgmma = o.wgmma and p.value < p.head
  if p.wgmma then N, p.stages = 64, 2 end
  p.tile = {p.wgmma and 64 or rows <= 16 and 16 or rows <= 32 and 32 or 64, N}
  p.early = o.early and p.pdl and p.value == p.head and rows <= p.tile[1]
  p.chunk = o.batch_invariant and math.max(CHUNK // N, 1) or nil
  if p.cluster then
    local teams = o.teams or TEAMS
    complete_blocks(p, teams, 2 * p.head * (p.tile[1] + 2 * N * p.stages
      * teams) + 4 * teams * rows * (p.head + p.cluster))
  elseif p.wgmma then
    complete_blocks(p, 8, 2 * p.head * (p.tile[1] + N * p.stages))
  elseif p.value < p.head then
    local down, across = latent.warps(p)
    rules.need(N % (8 * across) == 0, "attention_decode", "tile = {any, %d}; a "
      .. "multiple of %d keys is needed", N, 8 * across)
    complete_blocks(p, down * across, 2 * p.head * (p.tile[1] + N * p.stages)
      + p.tile[1] * (2 * N + 4 * across))
  else
    complete_blocks(p, p.tile[1] // 16, 2 * p.head * (p.tile[1]
      + N * p.stages * (p.bits == 8 and 1 or 2)))
  end
  return p
end

--- Returns a list of two kernels (one with o.cluster) in the order in which
-- they run, each with a function grid(n, S, H, B). The list also has these
-- fields:
-- rows: the number of rows in a tile.
-- append: nil, or a third kernel, which must run before the two if cache.k and
--   cache.v are given.
-- plan(T, S, H, B[, sms]): a function that returns n = {blocks = the number of
--   blocks of the first kernel, slots = the number of partial results in
--   `parts`}, where sms is the number of multiprocessors.
---@param o table {head: integer, group: integer?, rows: integer?,
-- bits: integer?, tile: integer[]?, stages: integer?, held: boolean?,
-- pdl: boolean?, modify: function?, blocks: integer?, least: integer?,
-- batch_invariant: boolean?, wgmma: boolean?, early: boolean?,
-- cluster: integer?, teams: integer?} group: heads of
-- Q for each head of K and V, 1 when absent; rows: the number S of rows of a
-- sequence, 1 when absent; bits: the number of bits of an element of K, 16 when
-- absent; tile: {any, keys}; stages: number of tiles of K in shared memory;
-- modify: see kernels/attention.lua; blocks: number of blocks on each
-- multiprocessor; least: minimum number of tiles of keys in a part;
-- batch_invariant: how a sequence is divided into parts does not depend on the
-- batch; wgmma: whether the kernel for latent heads uses wgmma; early: with
-- pdl, the kernel reads lengths, pages, angles and all keys but the new ones
-- before it waits for the preceding launch; cluster: that many blocks, a
-- cluster, compute all rows of a head of K, for 16-bit heads of 32, 64 or 128
-- elements and up to 16 rows (`parts` and `logs` are then not used); teams: the
-- number of warps of such a block
return function(o)
  local p = complete(o)
  local function made(name, f, block, grid)
    return {kernel = cute.kernel(name, {block = block, min_blocks = 1,
              fastmath = true},
              function(...) f(p, ...) end), block = block, grid = grid}
  end
  local list = {rows = p.tile[1], options = p}
  if p.cluster then
    list[1] = made("attention_decode", clustered.kernel, 32 * p.warps,
      function(_n, _S, H, B) return {p.cluster, H // p.group * B} end)
    list[1].cluster = {p.cluster, 1, 1}
  else
    list[1] = made("attention_part", p.wgmma and latent_sm90.kernel
      or p.value < p.head and latent.kernel or part.kernel,
      32 * p.warps, function(n) return {n.blocks} end)
    list[2] = made("attention_together", together, 32 * WARPS,
      function(_n, S, H, B)
        local jobs, _, groups = jobs_of(p, B, S, H)
        return {tiles.count(jobs * groups, WARPS)}
      end)
  end
  if p.group * (o.rows or 1) > p.tile[1] then
    list.append = made("attention_append", append,
      tiles.count(p.head // 8, 32) * 32, function(_n, _S, H, B)
        return {H // p.group, B}
      end)
  end
  function list.plan(T, S, H, B, sms)
    if p.cluster then return {slots = 0} end
    local rows = B * (H // p.group) * tiles.count(S * p.group, p.tile[1])
    local n = tiles.count(T, p.tile[2])
    local blocks = (sms or 132) * p.blocks
    local parts
    if p.chunk then
      parts = rows * tiles.count(n, p.chunk)
      blocks = math.min(parts, 16 * blocks)
    else
      blocks = math.min(blocks, tiles.count(rows * n, p.least))
      parts = blocks
    end
    return {blocks = math.max(blocks, 1), slots = math.max(parts, 1) + rows}
  end
  return list
end
-- SPDX-License-Identifier: MIT
