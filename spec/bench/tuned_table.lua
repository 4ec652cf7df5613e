-- Measures the configurations of a new table of `cutelua tune gemm` against
-- those of the repository's table, for the bf16 products in the repository's
-- table. For a product that the new table lacks, the configuration rule
-- chooses.
--
--    cutelua spec/bench/tuned_table.lua [--table FILE] [--rounds 3]
--      [--warm 15] [--hot 15] [--part 1/12] [--list yes]
--
-- Without --table the rule is measured. Launches are parts of graphs, as in
-- spec/bench/ops_unseen.lua. With --part I/N the script only compiles every Nth
-- product's kernels. --list prints the products in a random order, in the form
-- that `cutelua tune gemm --shapes` reads.
local card = require "spec.card"
local choose = require "cute.ops.choose"
local gemm = require "cute.ops.gemm"
local measure = require "spec.measure"
local operands = require "cutelua.tune.operands"
local plans = require "cute.ops.plan"
local tables = require "cutelua.tune.tables"

local options = card.options {table = "", rounds = "3", warm = "15",
                              hot = "15", part = "", list = ""}
local CLASS = "bf16 bf16 bf16 tn row"
local rows = require "kernels.tuned.h200".gemm[CLASS]

if options.list ~= "" then
  local list, state = table.move(rows, 1, #rows, 1, {}), 1
  for i = #list, 2, -1 do
    state = state * 6364136223846793005 + 1442695040888963407
    local j = (state >> 33) % i + 1
    list[i], list[j] = list[j], list[i]
  end
  for _, r in ipairs(list) do print(("%d,%d,%d"):format(r[1], r[2], r[3])) end
  return
end

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

local names = {}  -- names of the new table's configurations, by "M N K"
if options.table ~= "" then
  local t = assert(tables.read(options.table))
  for _, r in ipairs(t.gemm[CLASS] or {}) do
    names[table.concat(r, " ", 1, 3)] = r[6]
  end
end

-- Returns two candidates from the list of a row's problem: the choice of the
-- new table (without an entry, the rule's), and the choice of the old table.
local function pair(row, list)
  local new, old = names[table.concat(row, " ", 1, 3)], nil
  local first = not new and list[1] or nil
  for _, c in ipairs(list) do
    local name = choose.name(c)
    if name == new then first = c end
    if name == row[6] then old = c end
  end
  return first, old
end

local part, parts = options.part:match "^(%d+)/(%d+)$"
if part then
  for i, row in ipairs(rows) do
    if i % parts == part % parts then
      local set = operands.without_memory(("%s %d %d %d"):format(CLASS,
        row[1], row[2], row[3]))
      set.options.device = device
      local p, list, call = gemm.offers(set.A, set.B, set.options)
      for _, c in pairs {pair(row, list)} do
        assert(plans.new(p, c, call):trace(call):compile())
      end
    end
  end
  return
end

print(("%s, driver %s; %s"):format(device.name, card.driver(), card.state()))
local sum, count, same, least = 0, 0, 0, nil
for _, row in ipairs(rows) do
  local m, n, k = table.unpack(row, 1, 3)
  local flops = 2.0 * m * n * k
  local sets = card.sets(dev, "bf16", m, n, k)
  local D = card.matrix(dev, "bf16", m * n)
  local d = card.tensor(D, m, n)
  local p, list, call = gemm.offers(card.tensor(sets[1].a, m, k),
                                    card.tensor(sets[1].b, n, k), {out = d})
  local new, old = pair(row, list)
  local ratio = 1
  if new == old then same = same + 1
  elseif new and old then
    local launches = card.launches(flops, sets)
    local part_of = operands.warmth(flops)
    local r = card.bench({
      {name = "new", launch = card.graph(dev, card.runs(p, new, call, sets, nil,
                                                        d), launches)},
      {name = "old", launch = card.graph(dev, card.runs(p, old, call, sets, nil,
                                                        d), launches)}},
      {rounds = options.rounds, warm = part_of * options.warm,
       hot = part_of * options.hot}, {cold = false})
    ratio = r.old.hot.median / r.new.hot.median
    print(("%-18s %.3f  %9.2f  %s (%s)  %s"):format(
      ("%dx%dx%d"):format(m, n, k), ratio, r.new.hot.median * 1e3 / launches,
      choose.name(new), names[table.concat(row, " ", 1, 3)] and "tuned"
        or "by rule", row[6]))
    io.stdout:flush()
  end
  sum, count = sum + math.log(ratio), count + 1
  if not least or ratio < least[1] then least = {ratio, m, n, k} end
  D:close()
  for _, set in ipairs(sets) do
    set.a:close()
    set.b:close()
  end
  collectgarbage()
end
print(("%d products, %d with equal configurations: geometric mean %.4f, least "
  .. "%.3f (%dx%dx%d)"):format(count, same, math.exp(sum / count), table.unpack(
  least)))
-- SPDX-License-Identifier: MIT
