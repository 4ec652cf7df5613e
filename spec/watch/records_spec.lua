-- Tests the records that the simulator keeps of blocks' accesses to global
-- memory. Blocks access words at random, in parts of their own and in shared
-- parts. The simulator must report a race if, and only if, two accesses of
-- different blocks are a race. The records of parts that only one block
-- accesses must stay small.
local cute = require "cute"
local support = require "spec.support"
local Gen = require "spec.random".Gen
local arch = cute.arch

local WORDS, BLOCKS, LANES = 512, 4, 32

-- Returns random accesses. Each has an operation, and its word, value and guard
-- as linear functions of the block and the lane.
local function program(g)
  local list, apart = {}, g:chance(60)
  for k = 1, g:r(5) do
    list[k] = {
      op = g:pick {"store", "store", "load", "add"},
      at = {block = apart and g:pick {64, 96} or g:pick {0, 8, 16, 32, 48},
            lane = g:pick {0, 1, 1, 2}, from = g:pick {0, 0, 1, 5, 32}},
      value = {block = g:pick {0, 0, 1}, lane = g:pick {0, 1}, from = 7},
      only = g:chance(30) and g:r(BLOCKS) - 1}
  end
  return list
end

local function number(x, b, l) return b * x.block + l * x.lane + x.from end

local function kernel(list)
  return cute.kernel("k", function(x)
    local b, l = arch.block_idx(), arch.thread_idx()
    for _, s in ipairs(list) do
      local at = number(s.at, b, l)
      cute.when(s.only and b:eq(s.only) or l:ge(0), function()
        if s.op == "store" then x[at] = number(s.value, b, l)
        elseif s.op == "load" then x[WORDS + b] = x[at]
        else arch.atomic_add(x.iterator + at, 1) end
      end)
      arch.sync_warp()
    end
  end)
end

-- Returns the list of accesses to each word.
local function accesses(list)
  local words = {}
  for _, s in ipairs(list) do
    for b = 0, BLOCKS - 1 do
      for l = 0, LANES - 1 do
        local at = number(s.at, b, l)
        words[at] = words[at] or {}
        if not s.only or s.only == b then
          table.insert(words[at], {block = b, op = s.op,
                                   value = number(s.value, b, l)})
        end
      end
    end
  end
  return words
end

local function is_race(x, y)
  if x.block == y.block or x.op == y.op and x.op ~= "store" then
    return false
  end
  return x.op ~= y.op or x.value ~= y.value
end

local function races(list)
  for _, word in pairs(accesses(list)) do
    for i, x in ipairs(word) do
      for k = i + 1, #word do
        if is_race(x, word[k]) then return true end
      end
    end
  end
  return false
end

local function reported(list, threads)
  local x = cute.zeros({WORDS + BLOCKS}, cute.i32)
  local r = support.report(kernel(list)(x):launch {grid = BLOCKS,
    block = LANES, device = "sim", threads = threads, faults = "return"})
  for _, f in ipairs(r.reports) do
    if f.kind == "block-race" then return true end
  end
  return false
end

describe("records of accesses by blocks", function()
  local function compare(from, to)
    local racy = 0
    for seed = from, to do
      local list = program(setmetatable(
        {state = seed * 0x9e3779b97f4a7c15}, Gen))
      local want = races(list)
      racy = racy + (want and 1 or 0)
      assert.equal(want, reported(list, seed % 3 + 1), "seed " .. seed)
    end
    assert.is_true(racy > (to - from) // 5 and racy < (to - from) * 4 // 5,
                   racy)
  end

  it("give races", function() compare(1, 30) end)

  it("give races, many #long", function() compare(31, 1000) end)

  -- The launch uses one host thread, because each host thread keeps the records
  -- of its own block. Each element is read and written, so while its block
  -- runs, the element's two records take 16 bytes.
  it("are small for parts that one block accesses #noasan",
     function()
    local out = support.must {support.program, "-e", [[
      local cute = require "cute"
      local function peak()
        for line in io.lines "/proc/self/status" do
          local kb = line:match "^VmHWM:%s*(%d+) kB"
          if kb then return tonumber(kb) * 1024 end
        end
      end
      local N = 1 << 20
      local x, y = cute.rand({N}, cute.f32), cute.rand({N}, cute.f32)
      local copy = cute.kernel("copy", function(x, y)
        local i = cute.arch.block_idx() * 256 + cute.arch.thread_idx()
        y[i] = x[i] + y[i]
      end)
      local before = peak()
      if not before then return print "none" end
      copy(x, y):launch {grid = N // 256, block = 256, device = "sim",
                         threads = 1}
      print((peak() - before) // N)]]}
    if out:find "none" then return pending "needs /proc" end
    assert.is_true(tonumber(out) < 12, out)
  end)
end)
-- SPDX-License-Identifier: MIT
