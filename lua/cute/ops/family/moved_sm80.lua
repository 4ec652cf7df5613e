--- Products of MX formats by kernels/gemm_sm80, for which an earlier launch
-- converts operands to 8 bits: operands of 6 bits, and operands with fewer bits
-- than the other operand.
local sm80 = require "cute.ops.family.sm80"

-- gemm_sm80 accepts any layout, so no operand is repacked for its layout alone.
local family = setmetatable({
  lead = function() return 2 end,
  refuses = function() end,
}, {__index = sm80})

local moved = require "cute.ops.family.repack"("moved_sm80", family,
  "tensor cores by mma.sync, after operands are converted to 8 bits")

local takes = moved.takes
function moved.takes(p)
  if not p.format then return false end
  return takes(p)
end

return moved
-- SPDX-License-Identifier: MIT
