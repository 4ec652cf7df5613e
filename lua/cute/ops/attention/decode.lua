--- ops.attention_decode: one query of each batch, and a cache of keys that may
-- consist of pages. See kernels/attention_decode.lua.
local cute = require "cute"
local kernel = require "kernels.attention_decode"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"

local decode = {}

local PAGE = 64  -- pages have a multiple of 64 keys, so no tile crosses pages

-- Raises an error unless tensor t, the option `name`, has the extents `shape`
-- and elements of type `dtype`.
local function check_option(call, name, t, shape, dtype)
  if t.element_type ~= dtype or not modes.has(t.layout, shape) then
    call:fail("%s is %s of %s; (%s) of %s is needed", name, t.layout,
              t.element_type, table.concat(shape, ","), dtype)
  end
end

-- Checks the options that describe the cache of keys, and returns the number of
-- keys that the cache has room for in each batch.
local function check_cache(call, q)
  local n, table_, k, v = call.lengths, call.block_table, call.k, call.v
  if n and (n.element_type ~= cute.i32 or cute.size(n) ~= q.B) then
    call:fail("lengths is %s of %s; %d elements of i32 are needed", n.layout,
              n.element_type, q.B)
  elseif (k or v or table_) and not n then
    call:fail("%s the option lengths, the number of keys of each batch",
              table_ and "block_table needs" or "k and v need")
  elseif not k ~= not v then
    call:fail "k and v must be given together"
  end
  if k then
    for _, name in ipairs {"K", "V"} do
      if call.copied[name] then
        call:fail("%s cannot be written: it is %s at a multiple of %d bytes; "
          .. "contiguous heads at multiples of 16 bytes are needed", name,
          call.copied[name].layout, call.copied[name].alignment)
      end
    end
    check_option(call, "k", k, {q.B, 1, q.G, q.D}, q.dtype)
    check_option(call, "v", v, {q.B, 1, q.G, q.D}, q.dtype)
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

local step = problem.operation("ops.attention_decode", {names = {"Q", "K", "V"},
  tensors = {"lengths", "block_table", "k", "v"},
  options = {scale = "number"}, plan = function(call)
    local q = problem.of(call, "", "V", call.block_table)
    local scale, o = problem.options_of(call, q)
    if q.S ~= 1 then
      call:fail("Q is %s; one row for each batch, (B,1,H,D), is needed",
                call.Q.layout)
    elseif call:dtype("ops.attention_decode", call.Q) ~= q.dtype then
      call:fail("O must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention_decode", call.Q))
    end
    local keys = check_cache(call, q)
    local results = {{shape = modes.extents(call.Q.layout), dtype = q.dtype},
                     {shape = {q.B, q.H, 1}, dtype = cute.f32}}
    local p = call:start(7, results)
    if cute.product(results[1].shape) == 0 then return p end
    if keys == 0 then
      p.anew, p.steps = true, problem.nothing(call, p, results)
      return p
    end
    o.causal, o.window, o.group = nil, nil, q.H // q.G
    if o.group > 64 then
      call:fail("Q has %d heads and K has %d; at most 64 for each are possible",
                q.H, q.G)
    end
    local k = kernel(o)
    local splits = k.splits(keys, q.G, q.B)
    local size = splits * q.B * q.H
    local cache = call.block_table or call.k
    p.floats = size * (q.D + 1)
    for i = 1, 2 do
      p.steps[i] = {kernel = k[i].kernel, block = k[i].block, ready = {},
        grid = k[i].grid(splits, q.H, q.B),
        arguments = function(now, out, work)
          return {now.Q, now.K, now.V, out[1], out[2],
            problem.view(work, 0, {splits, q.B, q.H, q.D}),
            problem.view(work, size * q.D, {splits, q.B, q.H}), scale,
            now.lengths,
            cache and {pages = now.block_table, k = now.k, v = now.v},
            n = cache and 10 or now.lengths and 9 or 8}
        end}
    end
    return p
  end})

--- Returns O and LSE of one query for each batch to many keys. The keys are
-- split among blocks, so that few batches keep the GPU busy.
---@param Q any (B,1,H,D)
---@param K any (B,T,G,D), or pages (P,page,G,D) with block_table
---@param V any like K
---@param o? table {lengths: any?, block_table: any?, k: any?, v: any?,
-- scale: number?, out: any}
-- lengths: the number of keys of each batch, B of i32 (T when absent).
-- block_table: the pages of each batch's keys, (B,n) of i32. k, v (B,1,G,D):
-- the last key and value of each batch, which the call stores in K and V.
function decode.attention_decode(Q, K, V, o)
  return step(Q, K, V, o)
end

return decode
-- SPDX-License-Identifier: MIT
