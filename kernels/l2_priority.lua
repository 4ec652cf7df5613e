--- Returns the option level2_eviction_priority of the loads of a tensor that a
-- kernel reads once and that has so many bytes, or nil.
--
-- With the priority "evict last", L2 evicts the lines of results before those
-- that were read, and so writes results to memory in longer runs, although no
-- line is read again. On an H200, RMSNorm of 32768 rows of 8192 bf16 takes 249
-- us in place of 258, and negation of 2^28 f16 249 in place of 253. Tensors of
-- less than LONG bytes gain little or nothing. The next kernel is slowed down:
-- if it reads 24 MiB twice, the second time takes 8.7 us in place of 7.5.
local LONG = 1 << 27

---@param bytes integer
---@return string?
return function(bytes) return bytes >= LONG and "evict_last" or nil end
-- SPDX-License-Identifier: MIT
