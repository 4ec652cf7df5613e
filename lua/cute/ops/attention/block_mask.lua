--- ops.block_mask: finds the blocks of the score matrix in which a mask leaves
-- at least one score visible. See kernels/block_mask.lua.
local by_keys = require "kernels.block_mask_rows"
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local kernel = require "kernels.block_mask"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"
local report = require "cute.lang.report"
local scores = require "cute.ops.attention.scores"
local tensor_op = require "cute.ops.tensor_op"
local tiles = require "cute.tiles"

local block_mask = {}

local WHAT = "ops.block_mask"

-- The number of rows of a block must be a multiple of ROWS, and its number of
-- keys a multiple of KEYS. Neither number may exceed MOST.
local ROWS, KEYS, MOST = 128, 64, 1024

local refuse = tensor_op.failing(WHAT)

local fill = problem.operation(WHAT, {
  names = {"blocks"}, tensors = {"bits"},
  options = {rows = "number", keys = "number", block = "table"},
  traced = function(o) return scores.traced_of(refuse, o) end,
  captured = {mask_mod = "function"}, plan = function(call)
    local o, p = call.o, call:start(1, {})
    local shape = call.blocks.shape
    if o.rows * o.keys * cute.product(shape) == 0 then return p end
    local options = {rows = o.rows, keys = o.keys, block = o.block}
    scores.trace_functions(call, options, p)
    local k = kernel(options)
    p.steps[1] = {kernel = k.kernel, block = k.block, ready = {},
      grid = k.grid(shape[2], shape[1]), arguments = function(now)
        return scores.push_captured(now, {now.blocks, now.bits, n = 2})
      end}
    return p
  end})

local BlockMask = {__name = "block mask"}
BlockMask.__index = BlockMask

-- Returns the extents {rows, keys} of a block, from the options.
local function block_of(o)
  local block = o.block or {128, 128}
  local M, N = block[1], block[2]
  if math.type(M) ~= "integer" or math.type(N) ~= "integer" or M < ROWS
    or M % ROWS ~= 0 or N < KEYS or N % KEYS ~= 0 or M > MOST or N > MOST then
    refuse("block = {%s, %s}; a multiple of %d rows and of %d keys, up to %d, "
      .. "is needed", core.show(M), core.show(N), ROWS, KEYS, MOST)
  end
  return block
end

--- Returns the blocks of scores that a mask does not hide completely, for the
-- option `block_mask` of ops.attention. Evaluates the mask for all scores.
---@param mask_mod function see ops.attention
---@param shape integer[] {B, H, S, T}: sequences, heads, rows and keys. With B
-- = 1, all sequences share the blocks; with H = 1, all heads do
---@param o? table {block: integer[]?, bits: boolean?, device: any?,
-- stream: any?}
-- block: the extents {rows, keys} of a block, {128, 128} when absent; bits:
-- whether it also stores a bit for each score, which ops.attention on sm_90a
-- reads in place of evaluating the mask again
---@return table
function block_mask.block_mask(mask_mod, shape, o)
  o = o or {}
  tensor_op.options(WHAT, o, {block = "table", bits = "boolean"})
  local block = block_of(o)
  if o.bits and block[2] % 128 ~= 0 then
    refuse("bits = true with blocks of %d keys; a multiple of 128 is needed",
           block[2])
  end
  for i = 1, 4 do
    if math.type(shape[i]) ~= "integer" or shape[i] < 0
      or shape[i] >= 1 << 31 then
      refuse("shape[%d] is %s; the extents {B, H, S, T} of the scores are "
        .. "needed", i, core.show(shape[i]))
    end
  end
  local f = scores.traced_of(refuse, {mask_mod = mask_mod})
  local device, why = devices.pick(scores.captured_tensors(f), o, "auto")
  if not device then report.raise(why) end
  local B, H, S, T = table.unpack(shape)
  local m, n = tiles.count(S, block[1]), tiles.count(T, block[2])
  local place = {device = device.place or "host"}
  local blocks = cute.zeros({B, H, m, 1 + n}, cute.i32, place)
  local bits = o.bits and cute.empty({B, H, m, n, block[1], block[2] // 32},
                                     cute.u32, place) or nil
  fill(blocks, {rows = S, keys = T, block = block, mask_mod = mask_mod,
                bits = bits, device = o.device, arch = o.arch,
                stream = o.stream})
  return setmetatable({mask_mod = mask_mod, shape = {B, H, S, T},
                       block = {block[1], block[2]}, blocks = blocks,
                       bits = bits}, BlockMask)
end

function BlockMask.__tostring(m)
  return ("block mask of (%s), blocks of %dx%d"):format(
    table.concat(m.shape, ","), m.block[1], m.block[2])
end

--- Returns a copy of a call's options o in which three options replace
-- `block_mask`: mask_mod, the tensor `blocks`, and `listed`, the size of a
-- block. Q and K are the operands, which are not checked yet.
---@param raise function from tensor_op.failing
function block_mask.options(raise, o, Q, K)
  if o == nil then return nil end
  for _, name in ipairs {"blocks", "bits", "listed"} do
    if o[name] ~= nil then raise("no option '%s'", name) end
  end
  local m = o.block_mask
  if m == nil then return o end
  if getmetatable(m) ~= BlockMask then
    raise("block_mask is %s; a result of ops.block_mask is needed",
          core.show(m))
  elseif o.mask_mod ~= nil or o.cu_q ~= nil then
    raise("block_mask and %s are given together; block_mask %s",
      o.mask_mod ~= nil and "mask_mod" or "cu_q", o.mask_mod ~= nil
      and "has its own mask" or "needs Q (B,S,H,D)")
  elseif core.typename(Q) == "tensor" and core.typename(K) == "tensor"
    and cute.rank(Q) == 4 and cute.rank(K) == 4 then
    local q, s = modes.extents(Q.layout), m.shape
    local t = modes.extents(K.layout)[2]
    if s[1] ~= 1 and s[1] ~= q[1] or s[2] ~= 1 and s[2] ~= q[3]
      or s[3] ~= q[2] or s[4] ~= t then
      raise("block_mask was made for scores of shape (%s), but "
            .. "the scores of Q and K have the shape (%d,%d,%d,%d)",
            table.concat(s, ","), q[1], q[3], q[2], t)
    end
  end
  local new = {}
  for name, v in pairs(o) do new[name] = v end
  new.block_mask, new.mask_mod, new.blocks = nil, m.mask_mod, m.blocks
  new.listed, new.bits = m.block, m.bits
  return new
end

--- Returns a view of t, a tensor of the block mask, for B sequences and H
-- heads. If t has one entry for all sequences or heads, the view repeats this
-- entry.
function block_mask.view(t, B, H)
  local l = t.layout
  local shape, stride = {B, H}, {l.shape[1] > 1 and l.stride[1] or 0,
                                 l.shape[2] > 1 and l.stride[2] or 0}
  for i = 3, cute.rank(t) do shape[i], stride[i] = l.shape[i], l.stride[i] end
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

--- For a call with a block mask, adds a step (launch) to plan p. The step lists
-- the tiles of rows for each tile of keys (kernels/block_mask_rows.lua). `q` is
-- the problem, `tile` is {rows, keys}. Returns a function (now, work), where
-- `now` is a call, and `work` the memory that the call's launches share. That
-- function returns a table: `blocks` has the block lists of the call; `lists`
-- and `before` are the two new lists in `work`.
---@return function
function block_mask.by_keys(call, p, q, tile)
  local shape = modes.extents(call.blocks.layout)
  local B, H = shape[1], shape[2]
  local k = by_keys {rows = q.S, keys = q.T, block = call.o.listed, tile = tile}
  local extents, first = k.shape(H, B), p.floats
  local count = cute.product(extents)
  p.floats = first + 2 * count
  local function lists(work, nth)
    return cute.recast_tensor(problem.view(work, first + nth * count, extents),
                              cute.i32)
  end
  p.steps[#p.steps + 1] = {kernel = k.kernel, block = k.block, ready = {},
    grid = k.grid(H, B), arguments = function(now, _, work)
      return {now.blocks, lists(work, 0), lists(work, 1), n = 3}
    end}
  return function(now, work)
    return {blocks = block_mask.view(now.blocks, q.B, q.H),
            lists = block_mask.view(lists(work, 0), q.B, q.H),
            before = block_mask.view(lists(work, 1), q.B, q.H)}
  end
end

return block_mask
-- SPDX-License-Identifier: MIT
