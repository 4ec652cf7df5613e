-- Tests the rules for registers of asynchronous MMAs ("registers in flight")
-- with random kernels of fences, MMAs, groups, waits and uses in loops and
-- branches. A kernel must be rejected if, and only if, one of its paths breaks
-- a rule. The spec finds such paths by walking all paths one by one.
local cute = require "cute"
local warpgroup = cute.nvgpu.warpgroup

-- number of fragments; maximum number of groups that a wait leaves pending
local ACCS, MOST = 2, 3

-- ---- random kernels ----

local function random_block(random, depth, size)
  local block = {}
  for _ = 1, random(size) do
    local kind = random(depth > 0 and 10 or 7)
    if kind <= 2 then block[#block + 1] = {"gemm", random(ACCS)}
    elseif kind == 3 then block[#block + 1] = {"commit"}
    elseif kind == 4 then block[#block + 1] = {"wait", random(0, MOST - 1)}
    elseif kind == 5 then block[#block + 1] = {"use", random(ACCS)}
    elseif kind <= 7 then block[#block + 1] = {"fence"}
    elseif kind == 8 then
      block[#block + 1] = {"loop", random_block(random, depth - 1, 4)}
    elseif kind == 9 then
      block[#block + 1] = {"endless", random_block(random, depth - 1, 2),
                           random_block(random, depth - 1, 2)}
    else
      block[#block + 1] = {"if", random_block(random, depth - 1, 3),
                           random_block(random, depth - 1, 2)}
    end
  end
  return block
end

local function text_of(block)
  local words = {}
  for _, s in ipairs(block) do
    local parts = {}
    for i = 2, #s do
      parts[#parts + 1] = type(s[i]) == "table" and text_of(s[i]) or s[i]
    end
    words[#words + 1] = s[1] .. (#parts > 0
      and "(" .. table.concat(parts, ", ") .. ")" or "")
  end
  return "{" .. table.concat(words, " ") .. "}"
end

-- ---- as kernels ----

local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 8, 16}, "SMEM"))

local function kernel(block)
  return cute.kernel("random", function(x, n)
    local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
      warpgroup.make_smem_layout_atom("K_INTER", "bf16"), {64, 16}), 1024)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local a = mma:make_fragment_A(thr:partition_A(s))
    local b = mma:make_fragment_B(thr:partition_B(
      cute.local_tile(s, {8, 16}, {0, 0})))
    local acc = {}
    for i = 1, ACCS do
      acc[i] = thr:partition_fragment_C(cute.make_layout {64, 8})
    end
    local coins = 0
    local function coin()
      coins = coins + 1
      return cute.arch.block_idx():gt(coins)
    end
    local function run(body)
      for _, st in ipairs(body) do
        local kind, y = st[1], st[2]
        if kind == "gemm" then cute.gemm(mma, acc[y], a, b, acc[y])
        elseif kind == "commit" then warpgroup.commit_group()
        elseif kind == "wait" then warpgroup.wait_group(y)
        elseif kind == "fence" then warpgroup.fence()
        elseif kind == "use" then x[y] = acc[y][3]
        elseif kind == "loop" then
          for _ in cute.range(n) do run(y) end
        elseif kind == "endless" then
          cute.loop(function() return true end, function()
            run(y)
            cute.break_if(coin())
            run(st[3])
          end)
        else cute.when(coin(), function() run(y) end,
                       function() run(st[3]) end)
        end
      end
    end
    run(block)
  end)
end

local function refused(block)
  local ok, message = pcall(cute.compile, kernel(block), cute.zeros({4}, "f32"),
    3, {grid = 1, block = 128, device = "sim:sm_90a"})
  if ok then return false end
  assert.truthy(tostring(message):find("[in-flight]", 1, true), message)
  return true
end

-- ---- path by path ----

-- Parses the text of a state. For each fragment, the text has the number of
-- groups committed since its MMA, or "-" if no MMA is pending. "s" means that
-- the fragment was used since the last fence.
local function parse(state)
  local list = {}
  for age, stale in state:gmatch "([%-%d])(.)" do
    list[#list + 1] = {age = tonumber(age), stale = stale == "s"}
  end
  return list
end

local function show(list)
  local parts = {}
  for i, c in ipairs(list) do
    parts[i] = (c.age and ("%d"):format(math.min(c.age, MOST + 1)) or "-")
      .. (c.stale and "s" or "f")
  end
  return table.concat(parts)
end

local step = {}
function step.gemm(list, y)
  if list[y].stale then return true end
  list[y].age = 0
end
function step.commit(list)
  for _, c in ipairs(list) do c.age = c.age and c.age + 1 end
end
function step.wait(list, n)
  for _, c in ipairs(list) do
    if c.age and c.age > n then c.age = nil end
  end
end
function step.fence(list)
  for _, c in ipairs(list) do c.stale = false end
end
function step.use(list, y)
  list[y].stale = true
  return list[y].age ~= nil
end

-- Returns the set of states after a block, for a set of states before it. Sets
-- wrong.found if a path breaks a rule.
local function walk(block, states, wrong)
  for _, st in ipairs(block) do
    local kind, after = st[1], {}
    if step[kind] then
      for state in pairs(states) do
        local list = parse(state)
        if step[kind](list, st[2]) then wrong.found = true end
        after[show(list)] = true
      end
    elseif kind == "if" then
      for i = 2, 3 do
        for state in pairs(walk(st[i], states, wrong)) do
          after[state] = true
        end
      end
    else
      local from, news = {}, true
      for state in pairs(states) do from[state] = true end
      while news do
        news = false
        local mid = walk(st[2], from, wrong)
        if kind == "endless" then
          for state in pairs(mid) do after[state] = true end
          mid = walk(st[3], mid, wrong)
        end
        for state in pairs(mid) do
          if not from[state] then from[state], news = true, true end
        end
      end
      if kind == "loop" then after = from end
    end
    states = after
  end
  return states
end

describe("registers in flight", function()
  it("are rejected if a path is wrong, and only then", function()
    math.randomseed(90)
    local count = {[true] = 0, [false] = 0}
    for _ = 1, 30 do
      local block = {{"fence"}}
      for _, st in ipairs(random_block(math.random, 2, 7)) do
        block[#block + 1] = st
      end
      local wrong = {found = false}
      walk(block, {[("-s"):rep(ACCS)] = true}, wrong)
      count[wrong.found] = count[wrong.found] + 1
      assert.equal(wrong.found, refused(block), text_of(block))
    end
    assert.is_true(count[true] > 5 and count[false] > 5)
  end)
end)
-- SPDX-License-Identifier: MIT
