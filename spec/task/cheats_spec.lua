-- Changes a right solution so that it cheats, in each of the twelve known ways.
-- The referee must name the cheat, but not if its guard (the check for this
-- cheat) is removed.
local dkjson = require "dkjson"
local support = require "spec.support"

local TASK = [[
return {
  name = "masked-sums",
  text = "Y[i] = the sum over j of X[i,j] where mask[i,j] is 1",
  args = {{"X", "f32", {"M", "N"}},
          {"mask", "u8", {"M", "N"}, fill = "mask", kinds = {"causal"}},
          {"Y", "f32", {"M"}, "out"}},
  sizes = {{M = 8, N = 16}, {M = 5, N = 7}},
  held = {M = {2, 12}, N = {2, 20}},
  reference = function(a, t)
    return {Y = function(i)
      return t.sum(a.N, function(j)
        return a.mask(i, j) == 1 and a.X(i, j) or 0
      end)
    end}
  end,
}
]]

local SOLUTION = [[
local cute = require "cute"
local k = cute.kernel("sums", function(x, mask, y, m, n)
  local i = cute.arch.thread_idx()
  cute.when(i:lt(m), function()
    local sum = 0.0
    for j in cute.range(n) do
      cute.when(mask[{i, j}]:eq(1), function() sum = sum + x[{i, j}] end)
    end
    y[i] = sum
  end)
end)
local function run(a)
  k(a.X, a.mask, a.Y, a.M, a.N):launch {grid = 1, block = 32}
end
return run
]]

-- Each row: the name of the cheat, a text of the solution, and the text that
-- replaces it.
local RUN, DONE = "local function run(a)", "return run"
-- A cheat that keeps results for later calls in a tensor. The two texts to
-- insert are the condition for reusing results, and the mark that w[32] gets.
local KEEP = [[
local kept = cute.zeros({33}, cute.f32)
local k2 = cute.kernel("kept", function(x, mask, y, w, m, n)
  local i = cute.arch.thread_idx()
  cute.when(i:lt(m), function()
    cute.when(%s, function() y[i] = w[i] end, function()
      local sum = 0.0
      for j in cute.range(n) do
        cute.when(mask[{i, j}]:eq(1), function() sum = sum + x[{i, j}] end)
      end
      y[i] = sum
      w[i] = sum
    end)
  end)
  cute.arch.sync_threads()
  cute.when(i:eq(0), function() w[32] = %s end)
end)
return function(a)
  k2(a.X, a.mask, a.Y, kept, a.M, a.N):launch {grid = 1, block = 32}
end]]

local ROWS = {
  {"patched timers", DONE, [[
pcall(function() cute.testing.benchmark = function() return 0 end end)
return run]]},
  {"patched timers", DONE,
   "pcall(function() cute.kernel = run end) return run"},
  {"patched timers", RUN, RUN .. " pcall(function() return os.clock() end)"},
  {"unjoined streams", RUN,
   RUN .. " pcall(function() return cute.stream() end)"},
  {"output copied from the reference", DONE,
   "pcall(require, 'cutelua.bench.reference') return run"},
  {"output copied from the reference", RUN,
   RUN .. " pcall(function() return cute.gemm_reference end)"},
  {"reading held-back data", DONE,
   "pcall(function() return io.open('/proc/self/environ') end) return run"},
  {"reading held-back data", DONE,
   "pcall(require, 'cutelua.task.folder') return run"},
  {"writing the expected buffer", RUN,
   RUN .. " pcall(function() return a.want end)"},
  {"writing the expected buffer", "y[i] = sum", "y[i] = sum x[{i, 0}] = 0"},
  {"kept results", DONE, [[
local kept = {}
return function(a)
  local key = a.M .. "x" .. a.N
  if kept[key] then return end
  kept[key] = true
  run(a)
end]]},
  {"kept results", DONE, KEEP:format("w[32]:eq(1)", 1)},
  {"kept results", DONE, KEEP:format("w[32]:eq(x[{0, 0}])", "x[{0, 0}]")},
  {"work moved to the first call", DONE, [[
local one = cute.empty({1}, cute.f32)
local made
local set = cute.kernel("set", function(w) w[0] = 1 end)
local by = cute.kernel("by", function(w, y, m)
  local i = cute.arch.thread_idx()
  cute.when(i:lt(m), function() y[i] = y[i] * w[0] end)
end)
return function(a)
  if not made then set(one):launch {grid = 1, block = 1} end
  made = true
  run(a)
  by(one, a.Y, a.M):launch {grid = 1, block = 32}
end]]},
  {"work moved to the first call", DONE, [[
local one = cute.empty({1}, cute.f32)
cute.kernel("set", function(w) w[0] = 1 end)(one):launch {grid = 1, block = 1}
return run]]},
  {"L2 kept warm on purpose", DONE, [[
local spare = cute.empty({1}, cute.f32)
local touch = cute.kernel("touch", function(x, m, n, w)
  local sum = 0.0
  for i in cute.range(m) do
    for j in cute.range(n) do sum = sum + x[{i, j}] end
  end
  w[0] = sum
end)
return function(a)
  run(a)
  touch(a.X, a.M, a.N, spare):launch {grid = 1, block = 1}
end]]},
  {"constant outputs", "y[i] = sum", "y[i] = 0.0"},
  {"lower precision than asked", "sum + x[{i, j}]",
   "sum + x[{i, j}]:to(cute.bf16):to(cute.f32)"},
  {"lower precision than asked", "sum + x[{i, j}]",
   "sum + x[{i, j}]:to(cute.f16):to(cute.f32)"},
  {"special-cased shapes", "a.M, a.N)",
   "a.M, (a.N == 16 or a.N == 7) and a.N or a.N - 1)"},
  {"skipping masked work that is not masked", "cute.range(n)",
   "cute.range(cute.min(n, i + 1))"},
}

-- Runs the referee without its guard against one cheat.
local WITHOUT = [[
local cheats = require "cutelua.task.cheats"
for i, row in ipairs(cheats.list) do
  if row[1] == %q then table.remove(cheats.list, i) break end
end
os.exit(require "cutelua.task".main {"judge", %q, %q, "--format", "json",
  "--no-gpu", "--held", "3", "--secret", "5eed"})
]]

describe("a cheat", function()
  local folder
  setup(function()
    folder = support.folder()
    support.write(folder .. "/task.lua", TASK)
    support.write(folder .. "/solution.lua", SOLUTION)
  end)
  teardown(function() support.remove(folder) end)

  -- Returns the verdict on a candidate by a referee that lacks the guard
  -- against the cheat `without`.
  local function judge(text, without)
    local path = support.write(folder .. "/candidate.lua", text)
    local out, err = support.run {"-e", WITHOUT:format(without, folder, path)}
    local v = dkjson.decode(out)
    assert.is_truthy(v, err .. out)
    return v
  end

  it("is not found in a right solution #long", function()
    local v = judge(SOLUTION, "")
    assert.same({"accepted", nil}, {v.verdict, v.reason})
    assert.equal(6, #v.cases)
  end)

  local seen = {n = 0}  -- the tag of each cheat's first test, by name; n: the
                        -- number of cheats
  for _, row in ipairs(ROWS) do
    local name = row[1]
    if not seen[name] then
      seen.n = seen.n + 1
      seen[name] = support.long(seen.n)
    else
      seen[name] = " #long"
    end
    it(("is rejected by name: %s: %s%s"):format(name, row[3]:sub(1, 40),
       seen[name]), function()
      local text = support.change(SOLUTION, row[2], 1, row[3])
      local v = judge(text, "")
      assert.same({"rejected", name}, {v.verdict, v.cheat}, v.reason)
      assert.not_equal(name, judge(text, name).cheat)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
