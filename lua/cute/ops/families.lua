--- The families of kernels for products. To add a family, add its module, a
-- file of cute/ops/family/, to this list. A module has these fields:
--
-- name: the name of the family, and of its kernel.
-- why: a phrase that tells the user why this family is chosen.
-- takes(p): nil if the family accepts a problem (cute.ops.choose). Otherwise a
--   sentence with the reason, or false where no user would expect the family to
--   accept the problem.
-- list(p): the candidates, with the model's time in nanoseconds on an H200
--   (gemm_sm100: with the tensor cores of a B200).
-- order(p, o): a description of the order in which the kernel adds products
--   (cute.ops.sum_order), and whether it includes the parts of K.
-- columns(o): the number of adjacent columns that an epilogue's reduction adds
--   in a fixed order. Without this function, it adds all columns of a tile.
-- make(p, c): a table with the kernel and the data to call it: the kernel, its
--   block, grid and cluster; the MMA and tile of the epilogue; how much memory
--   its blocks share (sums, counts); pdl, if launches can be dependent; a
--   function that returns the first arguments of a call; `space`, a function
--   that makes the last argument from the shared memory; and before(call,
--   work), which returns the launches that precede the kernel (Plan:launches
--   of cute.ops.plan).
-- formats: whether the kernel multiplies formats with scale factors (p.format
--   of cute.ops.formats).
-- kernel: the name of the family whose kernel this family uses, if it has none.
--   The named family then has `order` and `columns`.
-- any: whether the extents can be arguments of the kernel and its blocks share
--   no memory (cutelua.bundle.any).
local families = {}
for i, name in ipairs {"sm90", "sm100", "moved", "moved_sm100", "moved_sm80",
                      "skinny", "dot", "sm80", "simt", "int4"} do
  families[i] = require("cute.ops.family." .. name)
end

local named = {}
for _, family in ipairs(families) do named[family.name] = family end

--- Returns the family with this name.
---@param name string
---@return table
function families.of(name) return named[name] end

return families
-- SPDX-License-Identifier: MIT
