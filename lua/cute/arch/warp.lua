--- The warp-wide operations of cute.arch: masks of lanes, votes, shuffles,
-- matches and reductions.
--
-- `mask` names the participating lanes: all of these lanes, and no others, must
-- execute the operation with this mask. Without a mask the whole warp
-- participates. Lanes that execute the operation with another mask form a
-- separate group.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local warp = {}

local FULL = 0xffffffff

local function intrin(name, ...) return core.intrin(name, 0, ...) end

---------------------------------------------------------------------------
-- Masks
---------------------------------------------------------------------------

--- Returns the mask of the lanes that are active now.
function warp.activemask() return intrin "activemask" end

--- Returns a mask of the lanes below this one (u32).
function warp.lanemask_lt() return intrin "lanemask_lt" end
--- Returns a mask of the lanes up to and including this one (u32).
function warp.lanemask_le() return intrin "lanemask_le" end
--- Returns a mask with only this lane's bit set (u32).
function warp.lanemask_eq() return intrin "lanemask_eq" end
--- Returns a mask of the lanes from this one on (u32).
function warp.lanemask_ge() return intrin "lanemask_ge" end
--- Returns a mask of the lanes above this one (u32).
function warp.lanemask_gt() return intrin "lanemask_gt" end

---------------------------------------------------------------------------
-- Votes and matches
---------------------------------------------------------------------------

--- Performs a vote over the warp. "any", "all" and "uni" (all lanes agree)
-- return a boolean; "ballot" returns the mask of the lanes where pred is true.
---@param pred any a boolean
---@param kind "any"|"all"|"uni"|"ballot"
---@param mask? any participating lanes
function warp.vote_sync_op(pred, kind, mask)
  sign.one_of("vote_sync_op", "kind", kind, "any all uni ballot")
  return intrin("vote." .. kind, pred, mask or FULL)
end

--- Returns true on one lane of the warp, which the hardware chooses, and false
-- on the others (sm_90): `cute.when(cute.arch.elect_one(), function() ...
-- end)`.
---@param mask? any participating lanes
function warp.elect_one(mask) return intrin("elect", mask or FULL) end

local function vote(kind)
  return function(pred, mask) return warp.vote_sync_op(pred, kind, mask) end
end

--- Reports whether pred is true on any lane of the warp.
---@param pred any a boolean
---@param mask? any participating lanes
warp.vote_any_sync = vote "any"
--- Reports whether pred is true on all lanes of the warp.
---@param pred any a boolean
---@param mask? any participating lanes
warp.vote_all_sync = vote "all"
--- Reports whether pred is equal on all lanes of the warp.
---@param pred any a boolean
---@param mask? any participating lanes
warp.vote_uni_sync = vote "uni"
--- Returns a mask of the lanes where pred is true (u32).
---@param pred any a boolean
---@param mask? any participating lanes
warp.vote_ballot_sync = vote "ballot"

--- Compares values over the warp and returns a mask (u32). "any" returns the
-- mask of the lanes whose value equals this lane's value. "all" returns the
-- mask of all participating lanes if their values are equal, else 0.
---@param mask any participating lanes
---@param value any a 32- or 64-bit integer
---@param kind? "any"|"all" "any" if absent
function warp.match_sync(mask, value, kind)
  kind = kind or "any"
  sign.one_of("match_sync", "kind", kind, "any all")
  return intrin("match." .. kind, value, mask)
end

---------------------------------------------------------------------------
-- Shuffles
---------------------------------------------------------------------------

-- Applies `move`, which shuffles 32 bits, to a value of any width. A 64-bit
-- value is shuffled as two halves, and a value of less than 32 bits is widened
-- first.
local function by_words(value, move)
  local t = core.dtype_of(value)
  if t == core.i32 or t == core.u32 or t == core.f32 then return move(value) end
  if t.bits == 32 then
    return move(value:bitcast(core.u32)):bitcast(t)
  end
  if t.bits == 64 then
    local u = value:bitcast(core.u64)
    local lo = move(u:to(core.u32)):to(core.u64)
    local hi = move((u >> 32):to(core.u32)):to(core.u64)
    return (lo | hi << 32):bitcast(t)
  end
  local u = value:bitcast(t.bits == 16 and core.u16 or core.u8)
  return move(u:to(core.u32)):to(core.dtype_of(u)):bitcast(t)
end

--- Shuffles a value between lanes, with the operands of the PTX instruction
-- shfl. mask_and_clamp contains the last lane of a segment (bits 0 to 4), and a
-- mask of the lane bits that select a segment (bits 8 to 12). A Lua number is
-- shuffled as an i32 or an f32.
---@param value any
---@param offset any lane, distance or lane mask
---@param mask? any participating lanes
---@param mask_and_clamp? integer 31 if absent
---@param kind? "idx"|"up"|"down"|"bfly" "idx" if absent
function warp.shuffle_sync_op(value, offset, mask, mask_and_clamp, kind)
  kind = kind or "idx"
  sign.one_of("shuffle_sync_op", "kind", kind, "idx up down bfly")
  local c = mask_and_clamp or 31
  if math.type(c) ~= "integer" or c & ~0x1f1f ~= 0 then
    core.fail("needs-static", "shuffle_sync_op: mask_and_clamp must be a Lua "
      .. "integer of two 5-bit fields, not " .. tostring(c))
  end
  local lane = core.cvt(offset, core.i32)
  if type(value) == "number" then
    value = core.cvt(value, math.type(value) == "integer" and core.i32
                            or core.f32)
  end
  return by_words(value, function(word)
    return core.intrin("shfl." .. kind, c, word, lane, mask or FULL)
  end)
end

local function check_width(what, width, least, advice)
  if math.type(width) ~= "integer" or width < least or width > 32
    or width & (width - 1) ~= 0 then
    core.fail("bad-argument", ("%s: a width of %s lanes; a power of two from "
      .. "%d to 32 is needed%s"):format(what, core.show(width), least,
      advice or ""))
  end
end

local ORDER = "\n  the mask follows the width; shuffle_sync_op(value, offset, "
  .. "mask, mask_and_clamp, kind) has the Python DSL's order"

local function shuffle(kind)
  return function(value, lane, width, mask)
    width = width or 32
    check_width("shuffle", width, 2, ORDER)
    local clamp = kind == "up" and 0 or 31
    return warp.shuffle_sync_op(value, lane, mask, (32 - width) << 8 | clamp,
                                kind)
  end
end

--- Returns the value of lane number `lane` of this lane's group of `width`
-- lanes.
---@param value any
---@param lane any
---@param width? integer 32 if absent
---@param mask? any participating lanes
warp.shuffle_sync = shuffle "idx"
--- Returns the value of the lane that is `distance` below this one in its group
-- of `width` lanes. A lane without such a neighbour gets its own value.
---@param value any
---@param distance any
---@param width? integer 32 if absent
---@param mask? any participating lanes
warp.shuffle_sync_up = shuffle "up"
--- Returns the value of the lane that is `distance` above this one in its group
-- of `width` lanes. A lane without such a neighbour gets its own value.
---@param value any
---@param distance any
---@param width? integer 32 if absent
---@param mask? any participating lanes
warp.shuffle_sync_down = shuffle "down"
--- Returns the value of lane `this ~ lane_mask` of this lane's group of `width`
-- lanes. This is one step of a butterfly reduction.
---@param value any
---@param lane_mask any
---@param width? integer 32 if absent
---@param mask? any participating lanes
warp.shuffle_sync_bfly = shuffle "bfly"

--- Returns lane 0's value on all lanes. The compiler can then treat it as
-- uniform in the warp.
---@param value any
function warp.make_warp_uniform(value)
  return warp.shuffle_sync(value, 0)
end

---------------------------------------------------------------------------
-- Reductions
---------------------------------------------------------------------------

--- Reduces a value over the warp, or over each group of lanes if `width` is
-- given. `op` is a Lua function that combines two values.
---@param value any traced value
---@param op fun(a, b): any
---@param width? integer|{threads_in_group: integer} number of lanes in a group
-- (a power of two, 32 if absent); each group is reduced separately
function warp.warp_reduction(value, op, width)
  if type(width) == "table" then width = width.threads_in_group end
  width = width or 32
  check_width("warp_reduction", width, 1)
  local d = width // 2
  while d > 0 do
    value = op(value, warp.shuffle_sync_bfly(value, d))
    d = d // 2
  end
  return value
end

--- Returns the maximum over each group of `width` lanes to all lanes of the
-- group.
---@param value any
---@param width? integer 32 if absent
function warp.warp_reduction_max(value, width)
  return warp.warp_reduction(value, core.max, width)
end

--- Returns the sum over each group of `width` lanes, to all lanes of the group.
--
--     k = cute.kernel(function(y)
--       local lane = cute.arch.lane_idx()
--       y[lane] = cute.arch.warp_reduction_sum(lane)
--     end)
--     y = cute.zeros({32}, cute.i32)
--     k(y):launch {grid = 1, block = 32, device = "sim"}
--     y(0), y(31)  --> 496, 496
---@param value any
---@param width? integer 32 if absent
function warp.warp_reduction_sum(value, width)
  return warp.warp_reduction(value, function(a, b) return a + b end, width)
end

local REDUX = {add = true, min = true, max = true, ["and"] = true,
               ["or"] = true, xor = true}

-- Converts the bits of an f32 to an i32, so that i32 values compare like the
-- floats (-0 before 0). A second call converts the result back.
local function ordered(bits) return bits ~ ((bits >> 31) & 0x7fffffff) end

-- Reduces floats over the warp. By default, an integer that loses against all
-- numbers replaces a NaN. With opts.nan, an integer that wins against all
-- numbers replaces it. If no number remains, the result is the NaN 0x7fffffff.
local function float_redux(value, kind, mask, opts)
  local max = kind == "fmax" or kind == "max"
  if not max and kind ~= "fmin" and kind ~= "min" then
    core.fail("type-mismatch", ("warp_redux_sync: '%s' of a float; only max "
      .. "and min are possible"):format(kind))
  end
  local t = core.dtype_of(value)
  if t.bits > 32 then
    core.fail("type-mismatch", ("warp_redux_sync: '%s' of %s; f32 or a "
      .. "narrower type is needed"):format(kind, t.name))
  end
  if t ~= core.f32 then
    return float_redux(value:to(core.f32), kind, mask, opts):to(t)
  end
  if opts.abs then value = core.abs(value) end
  local least, most = -1 << 31, 0x7fffffff
  local nan = (not opts.nan == max) and least or most
  local key = ordered(value:bitcast(core.i32))
  key = core.where(value:eq(value), key, core.cvt(nan, core.i32))
  key = intrin(max and "redux.max" or "redux.min", key, mask)
  if nan == least then key = core.where(key:eq(least), most, key) end
  return ordered(key):bitcast(core.f32)
end

--- Reduces a value over the warp in one instruction (sm_80). For i32 or u32,
-- `kind` is "add", "min", "max", "and", "or" or "xor"; or "umin" or "umax",
-- which compare as unsigned. For floats it is "fmax" or "fmin".
---@param value any
---@param kind string
---@param mask? any participating lanes
---@param opts? {abs: boolean, nan: boolean} for floats
function warp.warp_redux_sync(value, kind, mask, opts)
  local t = core.typename(value) == "value" and core.dtype_of(value)
  if t and t.is_float then
    return float_redux(value, kind, mask or FULL, opts or {})
  end
  if kind == "umin" or kind == "umax" then
    local r = warp.warp_redux_sync(value:to(core.u32), kind:sub(2), mask)
    return r:to(t)
  end
  if not REDUX[kind] then
    core.fail("unknown-name", "warp_redux_sync: no kind " .. tostring(kind))
  end
  return intrin("redux." .. kind, value, mask or FULL)
end

return sign.public("cute.arch.", warp, [[
  activemask() lanemask_lt() lanemask_le() lanemask_eq() lanemask_ge()
  lanemask_gt()
  vote_sync_op(pred: boolean|value, kind: string, mask?: integer|value)
  elect_one(mask?: integer|value)
  vote_any_sync(pred: boolean|value, mask?: integer|value)
  vote_all_sync(pred: boolean|value, mask?: integer|value)
  vote_uni_sync(pred: boolean|value, mask?: integer|value)
  vote_ballot_sync(pred: boolean|value, mask?: integer|value)
  match_sync(mask: integer|value, value: number|value, kind?: string)
  shuffle_sync_op(value: number|value, offset: integer|value,
    mask?: integer|value, mask_and_clamp?: integer, kind?: string)
  shuffle_sync(value: number|value, lane: integer|value, width?,
    mask?: integer|value)
  shuffle_sync_up(value: number|value, distance: integer|value, width?,
    mask?: integer|value)
  shuffle_sync_down(value: number|value, distance: integer|value, width?,
    mask?: integer|value)
  shuffle_sync_bfly(value: number|value, lane_mask: integer|value, width?,
    mask?: integer|value)
  make_warp_uniform(value: number|value)
  warp_reduction(value: number|value, op: function, width?)
  warp_reduction_max(value: number|value, width?)
  warp_reduction_sum(value: number|value, width?)
  warp_redux_sync(value: value, kind: string, mask?: integer|value,
    opts?: {abs nan})
]])
-- SPDX-License-Identifier: MIT
