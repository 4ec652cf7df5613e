--- Writes the text of ops.explain and ops.explain_grouped: the kernel that was
-- chosen for a product, the reason, and the alternatives.
local choose = require "cute.ops.choose"
local families = require "cute.ops.families"
local plans = require "cute.ops.plan"

local choice = {}

-- Options that the function `words` prints as words, not as NAME = VALUE.
local TOLD = {cluster = true, split = true, splits = true}

local function words(c)
  local rest = ""
  for _, name in ipairs(choose.APART) do
    local v = c.options[name]
    if v ~= nil and not TOLD[name] then
      rest = ("%s, %s = %s"):format(rest, name, type(v) == "table"
        and table.concat(v, "x") or v)
    end
  end
  return ("%s%s%s, tile %s, %d stages%s%s%s, about %.1f us"):format(c.family,
    c.moved and (" with %s repacked (%.1f us)"):format(c.moved.words,
      c.moved.ns / 1000) or "",
    c.swap and " as D^T = B A^T" or "", table.concat(c.tile, "x"), c.stages,
    c.cluster and ", cluster " .. table.concat(c.cluster, "x") or "",
    c.split ~= 1 and (", K in %s"):format(c.split) or "", rest, c.ns / 1000)
end

-- Returns a sentence that says whether the kernel may read B while the previous
-- launch still runs. Returns nil if the problem does not declare B as constant.
local function ahead(p, c)
  if not p.constant then return nil end
  return c.options.ahead
    and "  constant: B is read before the previous launch is complete"
    or "  constant: B waits for the previous launch, like the other operands"
end

--- Returns text about the choice of a kernel: the kernel, the reason, and the
-- alternatives.
---@param p table the problem
---@param c table the chosen candidate
---@return string
function choice.text(p, c)
  local a, b = choose.operands(p)
  local out = {("%d x %d x %d%s, %s x %s -> %s, on %s"):format(p.m, p.n, p.k,
    p.ragged and (", %d groups"):format(p.batches)
      or p.batches > 1 and (" x %d"):format(p.batches) or "", a, b, p.d,
    p.arch), "  " .. words(c),
    ("  why: %s; %s%s"):format(families.of(c.base).why, c.how,
      c.unused and ": " .. c.unused or ""),
    "  sums: " .. c.order .. (p.promise and "; " .. p.promise or ""),
    ahead(p, c)}
  for _, other in ipairs(c.others) do
    out[#out + 1] = "  instead of: " .. words(other)
  end
  for _, r in ipairs(c.refused) do
    out[#out + 1] = ("  not %s: %s"):format(r[1], r[2])
  end
  return table.concat(out, "\n")
end

local Explained = {}
Explained.__index = Explained
function Explained.__tostring(e) return e.text end

--- Returns an explanation of a call, with these fields:
--
--     kernel, tile, stages, cluster, split   the configuration
--     order    the accumulation order
--     promise  "deterministic", "batch_invariant", "like cuBLAS", or nil
--     why      the reason for the kernel family
--     how      "by rule" or "measured"
--     unused   the reason why no table of measurements applies, or nil
--     moved    the names of the matrices that are repacked, such as "A, D"
--     others   the alternatives
--     refused  the reasons why other families do not apply
--     text     all of this as text, which tostring returns, too
--     trace()  returns the traced kernel with .source, .ir and .resources
---@param p table the problem
---@param call table
function choice.explained(p, call)
  local c = choose.must(p)
  return setmetatable({kernel = c.family, tile = {table.unpack(c.tile)},
    stages = c.stages, cluster = c.cluster or {1, 1}, split = c.split,
    order = c.order, promise = p.promise, why = families.of(c.base).why,
    how = c.how, unused = c.unused, moved = c.moved and c.moved.words,
    refused = c.refused, others = c.others, text = choice.text(p, c),
    trace = function() return plans.new(p, c, call):trace(call) end},
    Explained)
end

return choice
-- SPDX-License-Identifier: MIT
