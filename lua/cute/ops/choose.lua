--- Chooses the kernel for a product: a family of kernels, and its
-- configuration. Also returns the reasons against other families.
-- cutelua.text.choice prints the result.
--
-- A problem describes a call's operands (cute.ops.gemm). Its fields:
-- m, n, k, batches: the extents. n is the number of rows of B; if `gated`, D
--   has half as many columns. With groups, m is the total number of rows, or
--   the largest number of rows of a group.
-- A (M,K[,L]), B (N,K[,L]), D (M,N[,L]): descriptions of the matrices; a, b, d:
--   their types; sums: the accumulator type; tf32: whether f32 operands are
--   multiplied as tf32.
-- c: whether a matrix C is added to the product; fused: whether an epilogue
--   follows.
-- sources: C and other matrices with D's shape that an epilogue reads,
--   described like A and B. The field `value` of each is its index among the
--   values that the epilogue function captures.
-- arch, sm, sms: properties of the device.
-- format: the formats of A and B (cute.ops.formats), if blocks of K have scale
--   factors in a format such as NVFP4.
-- order: the only permitted accumulation order, as cute.ops.sum_order describes
--   it; splits: the number of parts of K in this order.
-- ragged: the form of the groups (kernels.groups); expected: the expected
--   number of rows of each group.
--
-- Of the candidates of all families (cute.ops.families), the one with the least
-- estimated time is chosen.
local core = require "cute.core"
local families = require "cute.ops.families"
local sum_order = require "cute.ops.sum_order"
local tuned = require "cute.ops.tuned"

local choose = {}

-- Reports whether candidate x comes before candidate y. If their estimates are
-- equal, the larger tile comes first, or of equal tiles the one that was listed
-- first.
local function before(x, y)
  if x.ns ~= y.ns then return x.ns < y.ns end
  if x.swap ~= y.swap then return not x.swap end
  for i = 1, 3 do
    local a, b = x.tile[i] or 0, y.tile[i] or 0
    if a ~= b then return a > b end
  end
  return x.at < y.at
end

-- The options that, besides the tile, distinguish the candidates of a problem.
choose.APART = {"cluster", "schedule", "consumers", "split", "splits", "equal",
               "epi_stages", "scheduler", "min_blocks", "side", "warps",
               "unroll"}

--- Returns a candidate's name, such as "gemm_sm90 128x256x64 cluster=2x1". The
-- name is unique among a problem's candidates. The name does not depend on the
-- size of the problem.
---@return string
function choose.name(c)
  local out = {c.base, table.concat(c.tile, "x")}
  if c.swap then out[#out + 1] = "swap" end
  for _, name in ipairs(choose.APART) do
    local v = c.options[name]
    if type(v) == "table" then v = table.concat(v, "x") end
    if v ~= nil then out[#out + 1] = ("%s=%s"):format(name, v) end
  end
  return table.concat(out, " ")
end

-- Returns the reason why a family does not accept problem p: a sentence, false
-- if the reason is obvious, or nil if the family accepts p.
local function refusal(family, p)
  if p.format and not (family.kernel or family).formats then return false end
  return family.takes(p)
end

--- Returns all candidates for a problem, sorted by estimated time, and the
-- families that rejected it: {{family, why}, ...}.
---@return table[] list
---@return table[] refused
function choose.list(p)
  local refused, list = {}, {}
  for _, family in ipairs(families) do
    local why = refusal(family, p)
    if why then refused[#refused + 1] = {family.name, why}
    elseif why == nil then
      local other, kept
      for _, c in ipairs(family.list(p)) do
        c.base = family.name
        c.order = sum_order.of(p, c)
        if p.order and c.order ~= p.order then other = c.order
        else
          c.at, kept = #list, true
          list[#list + 1] = c
        end
      end
      if not kept then
        refused[#refused + 1] = {family.name, other
          and "it accumulates in " .. other or "none of its tiles has that "
            .. "order of additions"}
      end
    end
  end
  table.sort(list, before)
  return list, refused
end

--- Returns the choice for a problem: the candidate that was measured as the
-- best (cute.ops.tuned) or, without a measurement, the candidate with the least
-- estimated time. Fields: {family, base = the family that offers it, options,
-- tile, stages, cluster, split, order, ns, how = "by rule" or "measured",
-- unused = why no table of measurements applies to the GPU, others = the next
-- best candidates, refused = {{family, why}, ...}}. If no family accepts the
-- problem, returns nil and the list `refused`.
---@return table?
---@return table refused
function choose.choose(p)
  local list, refused = choose.list(p)
  if not list[1] then return nil, refused end
  local at, unused
  if not p.ragged then at, unused = tuned.find(p, list, choose.name) end
  local c = table.remove(list, at or 1)
  c.how, c.unused = at and "measured" or "by rule", unused
  c.others, c.refused = table.move(list, 1, math.min(#list, 3), 1, {}), refused
  return c, refused
end

--- Returns the types of A and B, or the names of their formats.
function choose.operands(p)
  if p.format then return p.format.a, p.format.b end
  return tostring(p.a), tostring(p.b)
end

--- Returns the choice for a problem, or raises an error with the reasons why no
-- kernel fits.
---@return table
function choose.must(p)
  local c, refused = choose.choose(p)
  if c then return c end
  local a, b = choose.operands(p)
  local out = {("no kernel multiplies %s by %s on %s%s"):format(a, b, p.arch,
    p.order and (", with additions in the order %s "
      .. "(%s)"):format(p.order, p.promise)
    or "")}
  for _, r in ipairs(refused) do
    out[#out + 1] = ("  %s: %s"):format(r[1], r[2])
  end
  if p.format then
    out[#out + 1] = "  convert A and B to bf16 before: ops.convert(x, "
      .. "cute.bf16, {factors = ...})"
  end
  core.fail("bad-argument", table.concat(out, "\n"))
end

return choose
-- SPDX-License-Identifier: MIT
