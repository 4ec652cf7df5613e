--- Rotary embedding for kernels/attention_decode: rotates pieces of 8 elements
-- of a head. The angles depend on the position of the row or key.
local cute = require "cute"
local _ = cute._

local turned = {}

local EACH = 8

-- Copies the elements from EACH * place to EACH * place + EACH - 1 of vector x
-- to registers.
local function copy(x, place, held)
  cute.autovec_copy(cute.local_tile(x, {EACH}, {place}), held)
end

--- Returns the table {cos =, sin =} of a cache's angles (see
-- kernels/attention_decode), or nil if heads are not rotated. Marks the tables
-- as partly read, because a kernel need not read all of their rows.
function turned.angles(cache)
  if not cache.cos then return nil end
  return {cos = cute.partial_ok(cache.cos), sin = cute.partial_ok(cache.sin)}
end

--- Makes an object that rotates pieces of a head of D elements. Its functions
-- are called in this order: early(position, place) reads the angles; load(x,
-- place) requests piece `place` of the head x (D); get(place) returns the
-- registers `held`, rotated. take(x, position, place) calls all three. angles:
-- {cos = (P,D/2), sin = (P,D/2)} of f32, or nil if heads are not rotated.
-- Element i is paired with element i + D/2.
function turned.piece(D, dtype, angles)
  local out, half = {}, D // 2 // EACH
  local held = cute.make_rmem_tensor({EACH}, dtype)
  local pair = angles and cute.make_rmem_tensor({EACH}, dtype)
  local c = angles and cute.make_rmem_tensor({EACH}, cute.f32)
  local s = angles and cute.make_rmem_tensor({EACH}, cute.f32)
  out.held = held
  function out.early(position, place)
    if not angles then return end
    copy(angles.cos(position, _), place % half, c)
    copy(angles.sin(position, _), place % half, s)
  end
  function out.load(x, place)
    copy(x, place, held)
    if not angles then return end
    copy(x, cute.where(cute.lt(place, half), place + half, place - half), pair)
  end
  function out.get(place)
    if not angles then return held end
    local sign = cute.where(cute.lt(place, half), -1.0, 1.0)
    held:store((held:load():to(cute.f32) * c:load()
      + pair:load():to(cute.f32) * (s:load() * sign)):to(dtype))
    return held
  end
  function out.take(x, position, place)
    out.early(position, place)
    out.load(x, place)
    return out.get(place)
  end
  return out
end

return turned
-- SPDX-License-Identifier: MIT
