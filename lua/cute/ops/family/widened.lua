--- Products with weights of 8 bits whose rows are many: a first launch makes
-- B's elements those of A's type, which all of them are exactly, and Hopper's
-- kernel (kernels/gemm_sm90) has that. Its factors stay where they were, in the
-- midst of the sums or behind them.
local blocks = require "cute.ops.blocks"
local cute = require "cute"
local operand = require "cute.ops.operand"
local sm90 = require "cute.ops.family.sm90"

local widened = {name = "widened"}

local LAUNCH = 2500  -- ns of a launch, and of what the next one waits for

-- The problem that is left when B was converted.
local function behind(p)
  local q = setmetatable({}, {__index = p})
  q.b, q.constant = p.a, false  -- the first launch writes what that reads
  q.B = operand.facts(cute.make_layout({p.n, p.k}, cute.LayoutRight), p.a, 256)
  return q
end

function widened.takes(p)
  if p.ragged or p.batches > 1 or p.b.bits ~= 8
    or p.a ~= cute.bf16 and p.a ~= cute.f16 then
    return false
  end
  return sm90.takes(behind(p))
end

-- Nanoseconds of the conversion, whose result the product finds in L2, in part.
local function converting(p)
  local read, written = p.n * p.k, 2 * p.n * p.k
  return (read + written) / blocks.constants.memory + LAUNCH
end

function widened.list(p)
  local list, more = sm90.list(behind(p)), converting(p)
  for _, c in ipairs(list) do
    c.widened, c.ns = p.a, c.ns + more
  end
  return list
end

return widened
