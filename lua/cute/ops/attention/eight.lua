--- Operands of e4m3 for ops.attention: checks their scale factors, and makes
-- views of them.
local cute = require "cute"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"

local eight = {}

local BLOCK = 128  -- The number of keys that share an element of a scale.
local HEADS = {[64] = true, [128] = true, [256] = true}

-- Checks the tensor of scale factors `name`. It has one number, or one for each
-- of n heads; for keys it may have one for each block of keys of each head.
-- Returns true if blocks of keys have their own factors.
local function check_scale(call, q, name, n, keys)
  local t = call[name]
  if not t then return false end
  local blocks = keys and not q.ragged and {q.B, (q.T + BLOCK - 1) // BLOCK, n}
  if t.element_type == cute.f32 then
    if cute.rank(t) == 1 and (cute.size(t) == 1 or cute.size(t) == n) then
      return false
    elseif blocks and modes.has(t.layout, blocks) then
      return true
    end
  end
  call:fail("%s is %s of %s; (1)%s (%d)%s of f32 is needed", name, t.layout,
    t.element_type, blocks and "," or " or", n,
    blocks and " or (" .. table.concat(blocks, ",") .. ")" or "")
end

--- Checks the options and types of a call. If Q has elements of e4m3, sets two
-- fields of q. `out` is the type of O. `scaled` is true if blocks of keys have
-- their own scale factors.
function eight.check(call, q)
  if q.dtype ~= cute.e4m3 then
    for _, name in ipairs {"q_scale", "k_scale", "v_scale"} do
      if call[name] then
        call:fail("%s is given, but Q has elements of type %s; e4m3 is needed",
                  name, q.dtype)
      end
    end
    return
  elseif not HEADS[q.D] then
    call:fail("Q is %s: heads of %d elements of e4m3; 64, 128 or 256 are "
      .. "possible", call.Q.layout, q.D)
  end
  check_scale(call, q, "q_scale", q.H)
  local k = check_scale(call, q, "k_scale", q.G, true)
  local v = check_scale(call, q, "v_scale", q.G, true)
  q.scaled = k or v or nil
  local given = call.o.dtype ~= nil or call.out[1] ~= nil
  q.out = given and call:dtype("ops.attention", call.Q) or cute.bf16
  if q.out ~= cute.bf16 and q.out ~= cute.f16 and q.out ~= cute.f32 then
    call:fail("O must have the type bf16, f16 or f32, not %s", q.out)
  elseif call.out[1] and q.out == cute.f32 and not problem.fits(call.out[1])
  then
    call:fail("out is %s; contiguous heads at multiples of 16 bytes are needed",
              call.out[1].layout)
  end
end

--- Returns a view of scale factors t in the kernel's layout: (H) for Q, (G) for
-- K and V. If blocks of keys have factors, the layout for K and V is
-- (B,blocks,G). Returns nil for nil.
function eight.scale_view(t, q, of_q)
  if not t then return nil end
  local shape, stride = {of_q and q.H or q.G}, {cute.size(t) > 1 and 1 or 0}
  if q.scaled and not of_q then
    local blocks = (q.T + BLOCK - 1) // BLOCK
    shape = {q.B, blocks, q.G}
    stride = cute.rank(t) == 3 and {blocks * q.G, q.G, 1} or {0, 0, stride[1]}
  end
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

return eight
-- SPDX-License-Identifier: MIT
