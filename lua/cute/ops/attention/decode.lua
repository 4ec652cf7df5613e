--- ops.attention_decode: attention of the newest rows of each sequence to a
-- cache of keys, which may consist of pages. See kernels/attention_decode.lua.
local core = require "cute.core"
local cute = require "cute"
local kernel = require "kernels.attention_decode"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"
local scores = require "cute.ops.attention.scores"
local tensor_op = require "cute.ops.tensor_op"

local decode = {}

-- The number of keys in a page is a multiple of 64, so no tile extends over two
-- pages.
local PAGE = 64

-- The largest number of heads of Q that share a head of K.
local MOST = 1024

-- Raises an error unless tensor t, the option `name`, has the extents `shape`
-- and elements of type `dtype`.
local function check_option(call, name, t, shape, dtype)
  if t.element_type ~= dtype or not modes.has(t.layout, shape) then
    call:fail("%s is %s of %s; the shape (%s) and the type %s are needed",
              name, t.layout, t.element_type, table.concat(shape, ","), dtype)
  end
end

-- Checks the options that describe the cache of keys. Returns the largest
-- number of keys that the cache can hold for each sequence.
local function check_cache(call, q)
  local n, table_, k, v = call.lengths, call.block_table, call.k, call.v
  if n and (n.element_type ~= cute.i32 or cute.size(n) ~= q.B) then
    call:fail("lengths is %s of %s; %d elements of i32 are needed", n.layout,
              n.element_type, q.B)
  elseif (k or v or table_) and not n then
    call:fail("%s the option lengths, the number of keys of each batch",
              table_ and "block_table needs" or "k and v need")
  elseif q.value and v then
    call:fail("v is given; omit it, because the values are the first %d "
      .. "elements of k", q.value)
  elseif not q.value and not k ~= not v then
    call:fail "k and v must be given together"
  end
  if k then
    for _, name in ipairs {"K", not q.value and "V" or nil} do
      if call.copied[name] then
        call:fail("%s cannot be written in place: %s has layout %s and an "
          .. "address aligned to %d bytes; contiguous heads, aligned to 16 "
          .. "bytes, are needed", name, name, call.copied[name].layout,
          call.copied[name].alignment)
      end
    end
    check_option(call, "k", k, {q.B, q.S, q.G, q.D}, q.dtype)
    if v then check_option(call, "v", v, {q.B, q.S, q.G, q.D}, q.dtype) end
  end
  if not table_ then return q.T end
  local own = modes.extents(table_.layout)
  if table_.element_type ~= cute.i32 or #own ~= 2 or own[1] ~= q.B then
    call:fail("block_table is %s of %s; (%d,pages) of i32 is needed",
              table_.layout, table_.element_type, q.B)
  elseif q.T % PAGE ~= 0 then
    call:fail("K is %s: pages of %d keys; a multiple of %d is needed",
              call.K.layout, q.T, PAGE)
  end
  return own[2] * q.T
end

-- Checks the option `tree`, which selects the new keys that each row sees.
local function check_tree(call, q)
  local t = call.tree
  if not t then return end
  local each = {q.S, q.S}
  if not (t.element_type.is_integer and (modes.has(t.layout, each)
    or modes.has(t.layout, {q.B, q.S, q.S}))) then
    call:fail("tree is %s of %s; (%d,%d) or (%d,%d,%d) of integers is needed",
              t.layout, t.element_type, q.S, q.S, q.B, q.S, q.S)
  end
end

-- Checks the options k_scale and v_scale.
local function check_scales(call, q)
  if q.value and (call.k_scale or call.v_scale) then
    call:fail("%s is given; latent heads of %s have no scale",
              call.k_scale and "k_scale" or "v_scale", q.dtype)
  end
  for _, name in ipairs {"k_scale", "v_scale"} do
    local t = call[name]
    local n = t and cute.size(t)
    if t and (t.element_type ~= cute.f32 or n ~= 1 and n ~= q.G) then
      call:fail("%s is %s of %s; (1) or (%d) of f32 is needed", name, t.layout,
                t.element_type, q.G)
    end
  end
end

-- Checks the options cos and sin: the tables of angles by which the kernel
-- rotates Q and k.
local function check_angles(call, q)
  local cos, sin = call.cos, call.sin
  if not cos and not sin then return end
  if q.value then
    call:fail("%s is given; latent heads are not rotated", cos and "cos"
      or "sin")
  elseif not (cos and sin) then
    call:fail "cos and sin must be given together"
  end
  for _, name in ipairs {"cos", "sin"} do
    local t = call[name]
    local own = modes.extents(t.layout)
    if t.element_type ~= cute.f32 or #own ~= 2 or own[2] ~= q.D // 2
      or own[1] ~= cute.size(cos.shape[1]) then
      call:fail("%s is %s of %s; (%d,%d) of f32 is needed", name, t.layout,
                t.element_type, cute.size(cos.shape[1]), q.D // 2)
    end
  end
end

-- The number of elements of a latent head, and how many of them, from the
-- first, are also the head of V.
local LATENT, VALUE = 576, 512

-- Checks the operands of a call with latent heads, where all heads of Q share
-- one head of K. Returns the problem.
local function latent_of(call)
  local Q, K = call.Q, call.K
  local q, k = modes.extents(Q.layout), modes.extents(K.layout)
  if #q ~= 4 or #k ~= 4 or k[3] ~= 1 or k[4] ~= LATENT then
    call:fail("Q is %s and K is %s; (B,S,H,%d) and (B,T,1,%d) are needed",
              Q.layout, K.layout, LATENT, LATENT)
  elseif Q.element_type ~= cute.bf16 and Q.element_type ~= cute.f16
    or K.element_type ~= Q.element_type then
    call:fail("Q and K have elements of types %s and %s; both must be bf16 or "
      .. "f16", Q.element_type, K.element_type)
  elseif not call.block_table and q[1] ~= k[1] then
    call:fail("Q is %s and K is %s; equal batch sizes are needed", Q.layout,
              K.layout)
  end
  return {dtype = Q.element_type, B = q[1], S = q[2], T = k[2], H = q[3], G = 1,
          D = LATENT, value = VALUE}
end

-- Returns the problem of a call (problem.of). The elements of K may have fewer
-- bits than those of Q.
local function problem_of(call)
  local Q = call.Q
  if cute.rank(Q) == 4 and Q.shape[4] == LATENT and not call.V then
    return latent_of(call)
  elseif not call.V then
    call:fail("V is missing; a tensor is needed, unless heads have %d elements",
              LATENT)
  end
  return problem.of(call, "", "V", call.block_table, cute.e4m3)
end

-- Returns the launch of kernel k as a step of a plan (cute.ops.tensor_op). `n`,
-- from k.plan, has the numbers of blocks and of slots. A slot is workspace for
-- one partial result, of `made.rows` rows.
local function step_of(call, p, k, n, q, made, scale)
  local cache = call.block_table or call.k or call.tree or call.k_scale
    or call.v_scale or call.cos
  local D = q.value or q.D
  local floats = n.slots * made.rows * D
  return {kernel = k.kernel, block = k.block, ready = {}, pdl = p.pdl,
    cluster = k.cluster,
    grid = k.grid(n, q.S, q.H, q.B), arguments = function(now, out, work)
      local list = {now.Q, now.K, now.V or now.K, out[1], out[2],
        work and problem.view(work, 0, {n.slots, made.rows, D}),
        work and problem.view(work, floats, {n.slots, made.rows}), scale,
        now.lengths,
        cache and {pages = now.block_table, k = now.k, v = now.v,
                   tree = now.tree, k_scale = now.k_scale,
                   v_scale = now.v_scale, cos = now.cos, sin = now.sin},
        n = (cache or now.captured) and 10 or now.lengths and 9 or 8}
      return now.captured and scores.push_captured(now, list) or list
    end}
end

-- A call uses one cluster per head of K only for at most MOST_KEYS keys. With
-- more keys it is faster to divide the keys among all multiprocessors. For
-- clusters of 4 and more blocks the limit is FEW_KEYS, except with constant =
-- "cache", where the clusters read the cache before the preceding launch ends.
local MOST_KEYS, FEW_KEYS = 32768, 2047

-- Clusters are used only on devices that allow a block this many bytes of
-- shared memory.
local ROOM = 232448

-- Pairs {blocks of a cluster, clusters of this size that run at once} on an
-- H100 or H200, which has 132 multiprocessors. Each multiprocessor runs one
-- block.
local AT_ONCE = {{8, 15}, {4, 30}, {2, 66}, {1, 132}}

-- Decides whether clusters compute this call, one cluster for each head of K of
-- a sequence. If so, returns the kernel's options cluster, tile and stages,
-- otherwise an empty table. docs/measured/attention.md has the figures.
local function clusters(call, q, keys, device)
  local info, sm = device.info, device.sm
  local sms, heads, rows = info and info.sms or 132, q.B * q.G,
                           q.S * (q.H // q.G)
  local even = q.B == 1 or not call.lengths or call.o.even
  if not (even and core.has(sm, "a cluster of blocks")
    and core.smem_budget(sm) >= ROOM and not call.o.batch_invariant
    and (q.D == 128 or q.D == 64 or q.D == 32) and rows <= 16
    and call.K.element_type == q.dtype and keys <= MOST_KEYS) then
    return {}
  end
  for _, c in ipairs(AT_ONCE) do
    local blocks = c[1] * heads
    if c[1] <= q.D // 8 and heads <= c[2] * sms // 132 then
      if c[1] >= 4 and keys > FEW_KEYS and not call.o.constant then
        return {}
      end
      -- If the blocks fill most multiprocessors, smaller tiles distribute the
      -- keys more evenly, so that more blocks work until the end.
      local many = 4 * blocks > 3 * sms
      if c[1] == 1 and not many then return {} end
      return many and q.D == 128 and {cluster = c[1], tile = {16, 16},
                                      stages = 5} or {cluster = c[1]}
    end
  end
  -- Without clusters of several blocks, uses two blocks for each multiprocessor
  -- if the last wave of blocks fills most of the GPU.
  local waves = heads / (2 * sms)
  return q.D == 128 and rows <= 8 and waves >= 0.9 * math.ceil(waves)
    and {cluster = 1, tile = {16, 16}, stages = 3} or {}
end

local refuse = tensor_op.failing "ops.attention_decode"

local step = problem.operation("ops.attention_decode", {
  names = {"Q", "K", "V?"}, tensors = {"lengths", "block_table", "k", "v",
                                       "tree", "k_scale", "v_scale", "cos",
                                       "sin"},
  traced = function(o, list)
    return scores.traced_of(refuse, o, list[1], list[2])
  end,
  options = {scale = "number", batch_invariant = "boolean", even = "boolean",
             constant = "string"},
  captured = {score_mod = "function", mask_mod = "function",
              softcap = "number"}, plan = function(call)
    local q = problem_of(call)
    local scale = problem.options_of(call, q)
    if call:dtype("ops.attention_decode", call.Q) ~= q.dtype then
      call:fail("O must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention_decode", call.Q))
    end
    local keys = check_cache(call, q)
    check_tree(call, q)
    check_scales(call, q)
    check_angles(call, q)
    local results = {{shape = {q.B, q.S, q.H, q.value or q.D}, dtype = q.dtype},
                     {shape = {q.B, q.H, q.S}, dtype = cute.f32}}
    local p = call:start(12, results)
    if cute.product(results[1].shape) == 0 then return p end
    if keys == 0 then
      problem.nothing(call, p)
      return p
    end
    local o = {head = q.D, group = q.H // q.G, rows = q.S, pdl = p.pdl,
               bits = call.K.element_type.bits,
               batch_invariant = call.o.batch_invariant,
               early = call.o.constant ~= nil}
    if o.early and call.o.constant ~= "cache" then
      call:fail("constant = %q; only \"cache\" is possible", call.o.constant)
    end
    if o.group > MOST then
      call:fail("Q has %d heads and K has %d; at most %d heads of Q can share "
        .. "a head of K", q.H, q.G, MOST)
    end
    -- For a single tile of 16 rows, mma.sync is fast enough. Devices with wgmma
    -- have enough shared memory for larger tiles of keys, which are faster.
    o.wgmma = q.value and q.H * q.S > 16 and p.device.arch == "sm_90a"
    if q.value and core.has(p.device.sm, "wgmma") then o.tile = {16, 64} end
    for name, value in pairs(clusters(call, q, keys, p.device)) do
      o[name] = value
    end
    scores.trace_functions(call, o, p)
    local made, info = kernel(o), p.device.info
    local n = made.plan(keys, q.S, q.H, q.B, info and info.sms)
    p.floats = made[2] and n.slots * made.rows * ((q.value or q.D) + 1)
    local list = {made[1], made[2]}
    if call.k and made.append then table.insert(list, 1, made.append) end
    for i, k in ipairs(list) do
      p.steps[i] = step_of(call, p, k, n, q, made, scale)
    end
    return p
  end})

-- Reports whether V is the view of the first VALUE elements of each latent head
-- of K.
local function is_view(V, K)
  if cute.rank(V) ~= 4 or cute.rank(K) ~= 4 then return false end
  local own, at = core.param_memory(V)
  local other, from = core.param_memory(K)
  local same = rawequal(own, other) and at == from and V.shape[4] == VALUE
  for i = 1, 4 do
    same = same and V.stride[i] == K.stride[i]
      and (i == 4 or V.shape[i] == K.shape[i])
  end
  return same
end

--- Computes attention of the last S rows of each sequence to all T keys of the
-- sequence. Returns O and LSE, the logarithm of each row's sum of exponentials.
-- The keys of one sequence are divided among blocks, so that even few sequences
-- keep the GPU busy. A row sees the keys up to its own position; see
-- docs/ops.md.
---@param Q any (B,S,H,D)
---@param K any (B,T,G,D), or pages (P,page,G,D) with block_table
---@param V any like K. For latent heads of 576 elements: nil, or the view of
-- the first 512 elements of K's heads
---@param o? table {lengths: any?, block_table: any?, k: any?, v: any?,
-- tree: any?, k_scale: any?, v_scale: any?, cos: any?, sin: any?,
-- scale: number?,
-- batch_invariant: boolean?, even: boolean?, constant: string?,
-- score_mod: function?,
-- mask_mod: function?, softcap: number?, out: any}
-- lengths: the number of keys of each batch, B of i32 (T if absent).
-- block_table: the pages of each batch's keys, (B,n) of i32. k, v (B,S,G,D):
-- the last keys and values of each batch, which the call stores in K and V.
-- tree (S,S) or (B,S,S): which of the last S keys each row sees. k_scale,
-- v_scale, (1) or (G) of f32: factors of K and V, which may be of e4m3. cos,
-- sin (P,D/2) of f32: the call rotates Q and k, like ops.rope; the position of
-- a head is the index of its key. even: promises that the batches have about
-- the same number of keys, so that each may get an equal part of the GPU.
-- constant = "cache": promises that the preceding launch writes none of
-- lengths, block_table, k_scale, v_scale, cos, sin, K and V.
function decode.attention_decode(Q, K, V, o)
  if core.typename(K) == "tensor" and core.typename(V) == "tensor"
    and cute.rank(K) == 4 and K.shape[4] == LATENT then
    if not is_view(V, K) then
      refuse("V is %s and K is %s; a view of the first %d elements of K's "
        .. "heads, or nil, is needed", V.layout, K.layout, VALUE)
    end
    V = nil
  end
  return step(Q, K, V, o)
end

return decode
-- SPDX-License-Identifier: MIT
