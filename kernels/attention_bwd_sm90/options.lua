--- The options of kernels/attention_bwd_sm90 with their defaults: tiles by head
-- size, registers, shared memory.
local core = require "cute.core"
local cute = require "cute"
local rules = require "kernels.operand_rules"

local options = {}

local WHAT = "attention_bwd_sm90"
local WARPGROUP = 128
local MOST = 227 * 1024 - 1024  -- bytes of shared memory, without barriers

-- The names of all options.
local NAMES = "name head dtype causal window tile stages do_stages ds_stages "
  .. "ahead rounded deterministic"

-- The default options by head size: for full and for causal attention.
local DEFAULTS = {
  [64] = {{tile = {128, 128}}},
  [96] = {{tile = {64, 128}, ahead = true}},
  [128] = {{tile = {80, 128}}, {tile = {64, 128}, ahead = true}},
}

-- Registers of a thread by the number of consumers: {producer, consumer}.
local REGISTERS = {{}, {24, 240}, {32, 160}}

--- Reports whether there is a tile for heads of `head` elements.
function options.has(head) return DEFAULTS[head] ~= nil end

--- Returns the bytes of shared memory of a block's tiles.
function options.bytes(o)
  local M, N = o.tile[1], o.tile[2]
  local elements = 2 * N * o.head + (o.stages + o.do_stages) * M * o.head
    + o.ds_stages * M * N
  return elements * o.dtype.bits // 8
    + 4 * M * (o.head + o.stages + o.do_stages)
end

-- Selects how consumers divide dQ: by rows, by elements of D ("columns"), or
-- transposed by elements of D ("turned").
local function division(o)
  local M, D, n = o.tile[1], o.head, o.consumers
  if M % (64 * n) == 0 then return "rows" end
  if M == 64 and D % (8 * n) == 0 then return "columns" end
  if D == 64 * n then return "turned" end
end

-- Checks the tile, and that its stages fit.
local function check(o)
  local M, N = o.tile[1], o.tile[2]
  rules.integers(WHAT, o, {"stages", "do_stages"}, 1, 8)
  rules.integers(WHAT, o, {"ds_stages"}, 1, 2)
  rules.need(math.type(N) == "integer" and N % 64 == 0 and N >= 64 and N <= 192
    and math.type(M) == "integer" and M % 16 == 0 and M >= 16 and M <= 256,
    WHAT, "tile = {%s, %s}; a multiple of 16 up to 256 rows, and 64, 128 or "
    .. "192 keys are needed", core.show(M), core.show(N))
  o.consumers = N // 64
  o.divided = division(o)
  rules.need(o.divided, WHAT, "tile = {%d, %d} with heads of %d; %d "
    .. "warpgroups cannot divide dQ", M, N, o.head, o.consumers)
  rules.need(options.bytes(o) <= MOST, WHAT, "tile = {%d, %d} with %d stages "
    .. "of Q, %d of dO and %d of dS needs %d bytes of shared memory; a block "
    .. "has %d", M, N, o.stages, o.do_stages, o.ds_stages, options.bytes(o),
    MOST)
  rules.need(not o.ahead or o.stages > 1, WHAT,
    "ahead with %d stage of Q; 2 are needed", o.stages)
end

-- Returns the limit of visible keys on a side: an integer or nil.
local function limit(o, i)
  local w = o.window and o.window[i] or nil
  rules.need(not w or math.type(w) == "integer" and w >= 0, WHAT,
    "a window of %s keys; an integer of 0 or more, or false, is needed",
    core.show(w))
  return w
end

--- Returns all options, from the given ones.
---@param given table
---@return table
function options.complete(given)
  rules.options(WHAT, given, NAMES)
  local known = DEFAULTS[given.head]
  rules.need(known, WHAT, "a head of %s; 64, 96 or 128 is needed",
             core.show(given.head))
  local usual = given.causal and known[2] or known[1]
  local dtype = given.dtype or "bf16"
  local o = {head = given.head,
    dtype = type(dtype) == "string" and core.find_dtype(dtype) or dtype,
    left = limit(given, 1), right = limit(given, 2),
    tile = given.tile or usual.tile, ahead = usual.ahead or false,
    rounded = given.rounded,
    stages = given.stages or 2, do_stages = given.do_stages or 2,
    ds_stages = given.ds_stages or 2,
    deterministic = given.deterministic ~= false}
  if given.ahead ~= nil then o.ahead = given.ahead end
  if given.causal then o.right = 0 end
  rules.need(o.dtype == cute.bf16 or o.dtype == cute.f16, WHAT,
    "elements of %s; bf16 or f16 is needed", core.show(given.dtype))
  check(o)
  if o.rounded == nil then o.rounded = o.divided == "turned" end
  o.producer_registers, o.registers = table.unpack(REGISTERS[o.consumers])
  o.block = (o.consumers + 1) * WARPGROUP
  return o
end

return options
-- SPDX-License-Identifier: MIT
