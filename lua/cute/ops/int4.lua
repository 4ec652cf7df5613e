--- Packs weights of 4 bits for kernels/gemm_int4.
--
--     local W = ops.int4(q)      -- q: tensor (N,K) of numbers from 0 to 15
--     ops.gemm(A, W:to "gpu", {scale_b = S, group = 128})
local core = require "cute.core"
local gemm_int4 = require "kernels.gemm_int4"

local int4 = {}

-- The field __closed tells cute.lang.dependencies not to examine the fields.
local Int4 = {__closed = true}
Int4.__index = Int4
function Int4.__tostring(w) return ("int4 weights (%d,%d)"):format(w.n, w.k) end

--- Packs numbers from 0 to 15. q is a tensor (N,K), or a function of row and
-- column with the extents n and k. N must be a multiple of 16, K of 64.
function int4.int4(q, n, k)
  if core.typename(q) == "tensor" then n, k = q.shape[1], q.shape[2] end
  if math.type(n) ~= "integer" or math.type(k) ~= "integer" or n < 1 or k < 1
    or n % 16 ~= 0 or k % 64 ~= 0 then
    core.fail("bad-argument", ("ops.int4: weights %s of (%s,%s); N must be a "
      .. "multiple of 16 and K a multiple of "
      .. "64"):format(core.show(q), core.show(n),
      core.show(k)))
  end
  local packed = gemm_int4.pack(q, n, k)
  return setmetatable({packed = packed, n = n, k = k}, Int4)
end

--- Returns a copy of the weights on a device.
function Int4:to(device)
  return setmetatable({packed = self.packed:to(device), n = self.n, k = self.k},
                      Int4)
end

--- Reports whether x is an object with packed 4-bit weights.
function int4.is(x) return getmetatable(x) == Int4 end

return int4
-- SPDX-License-Identifier: MIT
