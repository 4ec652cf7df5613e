-- Tests tools/fit.lua. It must find constants that explain given measurements.
-- The repository's constants must be close to the repository's measurements.
local support = require "spec.support"

local function fit(words, cwd)
  local all = {support.program, "tools/fit.lua", table.unpack(words)}
  if cwd then
    local here = io.popen "pwd":read "l"
    all[1] = all[1]:sub(1, 1) == "/" and all[1] or here .. "/" .. all[1]
    all[2] = here .. "/tools/fit.lua"
  end
  local out, err, code = support.exec(all, {cwd = cwd})
  assert.equal("", err)
  assert.equal(0, code)
  return out
end

-- Returns the median, the worst and the mean regret in the output's line with
-- `label`.
local function regret(out, label)
  local mean, median, worst = out:match(label .. " +%d+ products: mean "
    .. "([%d.]+), median ([%d.]+), .-worst ([%d.]+)")
  return tonumber(median), tonumber(worst), tonumber(mean)
end

-- Files of the repository whose constants tools/fit.lua fits.
local FILES = {"kernels/gemm_sm90/constants.lua",
  "kernels/gemm_skinny/model.lua", "lua/cute/ops/blocks.lua"}

-- For each set of products: limits of the mean, 90th percentile and worst
-- regret. A regret is the time of the chosen candidate divided by that of the
-- fastest one.
local SETS = {first = {1.025, 1.075, 1.33}, odd = {1.032, 1.1, 1.25},
              columns = {1.02, 1.06, 1.13}, drawn = {1.02, 1.05, 1.13},
              random = {1.02, 1.09, 1.14}, wide = {1.031, 1.1, 1.26},
              fresh = {1.042, 1.12, 1.33}, unaligned = {1.02, 1.03, 1.35},
              f32 = {1.01, 1.045, 1.09}, f64 = {1.012, 1.03, 1.1},
              tf32 = {1.03, 1.12, 1.17}, i8 = {1.035, 1.14, 1.22},
              clusters = {1.045, 1.14, 1.38}, e4m3 = {1.03, 1.1, 1.35},
              sgemm = {1.02, 1.07, 1.16}, long = {1.04, 1.12, 1.27}}

-- Returns the lines of a report that exceed the limits, and the names of its
-- sets.
local function above(out)
  local list, sets = {}, {}
  for set, most in pairs(SETS) do
    local mean, nine, worst = out:match("\n" .. set .. " +%d+ products: mean "
      .. "([%d.]+), .-9 of 10 within ([%d.]+), worst ([%d.]+)")
    sets[#sets + 1] = mean and set
    for i, x in ipairs {mean, nine, worst} do
      if tonumber(x) > most[i] then
        list[#list + 1] = ("%s: %s for %s"):format(set, x, most[i])
      end
    end
  end
  table.sort(sets)
  return list, sets
end

describe("tools/fit.lua #long", function()
  local dir
  setup(function()
    dir = support.folder()
    for _, name in ipairs(FILES) do
      os.execute(("mkdir -p %s/%s"):format(dir, name:match "^(.*)/"))
      support.write(dir .. "/" .. name, support.read(name))
    end
    -- The times are those of the cost model with a quarter of our constant
    -- `fill`.
    local out, err, code = support.run({"-e", [[
      local constants = require "kernels.gemm_sm90.constants"
      constants.fill = constants.fill / 4
      local choose = require "cute.ops.choose"
      local gemm = require "cute.ops.gemm"
      local operands = require "cutelua.tune.operands"
      local records = require "cutelua.tune.records"
      local worker = require "cutelua.tune.worker"
      local r = assert(records.open(arg[1], "NVIDIA H1\tsm_90a\t132"))
      for _, m in ipairs {64, 128, 512} do
        for _, n in ipairs {1024, 6144} do
          for _, k in ipairs {4096, 8192} do
            local problem = ("bf16 bf16 bf16 tn row %d %d %d"):format(m, n, k)
            local o = operands.without_memory(problem)
            local _, list = gemm.offers(o.A, o.B, {out = o.D,
              device = worker.device("sm_90a", 132)})
            for i = 1, 16 do
              local c = list[i]
              r:add(problem, i < 13 and "look" or "failed",
                    i < 13 and ("%.3f"):format(c.ns / 1000) or "wrong", "-",
                    choose.name(c))
            end
          end
        end
      end]], "-", dir .. "/j.tsv"}, {stdin = ""})
    assert.same({"", 0}, {out .. err, code})
  end)
  teardown(function() support.remove(dir) end)

  it("learns errors of its rule, also for unseen products", function()
    fit {dir .. "/packed.tsv", "--pack", "planted", dir .. "/j.tsv"}
    local head = support.lines(support.read(dir .. "/packed.tsv"))[1]
    assert.equal("# NVIDIA H1\tsm_90a\t132", head)
    assert.truthy(#support.read(dir .. "/packed.tsv")
      < #support.read(dir .. "/j.tsv") / 3)
    local out = fit({dir .. "/packed.tsv", "--write"}, dir)
    local _, before, before_mean = regret(out, "the rule")
    local median, worst, mean = regret(out, "held out")
    local _, after = regret(out, "fitted")
    assert.is_true(before > 1.05, out)
    assert.is_true(median < 1.01 and worst <= before, out)
    -- The fit removes a quarter of the excess time of unseen products.
    assert.is_true(mean - 1 < 3 / 4 * (before_mean - 1), out)
    assert.is_true(after < 1.03, out)
    local was = dofile "kernels/gemm_sm90/constants.lua"
    local now = dofile(dir .. "/kernels/gemm_sm90/constants.lua")
    assert.not_same(was, now)
    assert.equal(was.clock, now.clock)
    local function lines(path) return #support.lines(support.read(path)) end
    assert.equal(lines "lua/cute/ops/blocks.lua",
                 lines(dir .. "/lua/cute/ops/blocks.lua"))
  end)

  -- Writes the measurements of the products that `keep` selects by their set
  -- and number. Returns the file's name.
  local function measured(name, keep)
    local some, path, n = {}, ("%s/%s.tsv"):format(dir, name), 0
    for line in io.lines "docs/measured/gemm_choices.tsv" do
      local set = line:match "^%l[^\t]*\t([^\t]+)\t"
      n = n + 1
      if not set or keep(set, n) then some[#some + 1] = line end
    end
    support.write(path, table.concat(some, "\n") .. "\n")
    return path
  end

  it("reports how close the repository's rule is to measurements #noasan",
     function()
    -- Only a third of "wide", the largest set, is used.
    local out = fit {measured("most", function(set, n)
      return set ~= "wide" or n % 3 == 0
    end)}
    local list, sets = above(out)
    assert.same({}, list, out)
    assert.same({"clusters", "columns", "drawn", "e4m3", "f32", "f64", "first",
                 "fresh", "i8", "long", "odd", "random", "sgemm", "tf32",
                 "unaligned", "wide"}, sets)
    assert.is_true(regret(out, "the rule") <= 1.01, out)
  end)

  it("reports a spoilt rule #noasan", function()
    for _, x in ipairs {{"odd", "missing = 0.2"}, {"odd", "l2 = 1e14"},
        {"drawn", "steady = 1e13"}, {"tf32", "good = {}"}} do
      local set, change = table.unpack(x)
      local out, err = support.run({"-e", ([[
        require("kernels.gemm_sm90.constants").%s
        arg = {[0] = "fit", %q}
        dofile "tools/fit.lua"]]):format(change,
        measured(set, function(one) return one == set end))})
      assert.equal("", err)
      local list, sets = above(out)
      assert.same({set}, sets)
      assert.is_true(#list > 0, change .. "\n" .. out)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
