-- Tests the exercises of the workshop. Right answers that differ from the
-- solution's text are accepted. Wrong ones get a message about the mistake.
local learn = require "cutelua.learn"

-- Replaces parts of a text, each of which occurs once.
local function with(text, from, to, ...)
  local at, stop = text:find(from, 1, true)
  assert(at and not text:find(from, stop, true), from)
  text = text:sub(1, at - 1) .. to .. text:sub(stop + 1)
  return ... and with(text, ...) or text
end

local function exercise(lesson, name)
  local l = learn.lesson(lesson)
  local at
  for i, block in ipairs(learn.blocks(l)) do
    if block.name == name then at = i end
  end
  local env = learn.before(l, at)
  return l.exercises[name].solution, learn.blocks(l)[at].text,
    function(text) return learn.check(l, name, text, env) end
end

-- Checks answers. {description, text} is a right answer; {description, text,
-- part of the expected message} is a wrong one.
local function answers(check, list)
  for _, row in ipairs(list) do
    local what, text, want = table.unpack(row)
    it((want and "is told of " or "takes ") .. what, function()
      local right, why = check(text)
      if want then
        assert.is_nil(right or nil)
        assert.truthy(why:find(want, 1, true), why)
      else
        assert.is_true(right, why)
      end
    end)
  end
end

describe("remove the bank conflicts #long", function()
  local solution, start, check = exercise("swizzles", "conflicts")
  local kernel = start:match "(k = cute.kernel.*)$"
  answers(check, {
    {"an XOR by hand", with(start, "s[{i, tid}] =", "s[{i, tid ~ i}] =",
      "s[{tid, i}]", "s[{tid, tid ~ i}]")},
    {"a rotation by hand", with(start, "s[{i, tid}] =",
      "s[{i, (tid + i) % 32}] =", "s[{tid, i}]", "s[{tid, (tid + i) % 32}]")},
    {"a swizzle inside the kernel, column-major", "local l = cute.composition("
      .. "cute.make_swizzle(5, 0, 5), cute.make_layout {32, 32})\n"
      .. with(kernel, "layout", "l")},
    {"what find_swizzle finds", start .. [[

local x, y = cute.zeros({32, 32}, cute.f32), cute.zeros({32, 32}, cute.f32)
local found = k(x, y):find_swizzle {grid = 1, block = 32}
layout = found[1].layout
]] .. kernel},
    {"the beginning", start, "there are 992 conflicts, most of them at line 7"},
    {"a swizzle of too few bits", with(solution, "make_swizzle(5, 0, 5)",
      "make_swizzle(3, 0, 5)"), "conflicts, most of them at line"},
    {"a swizzle of vectors", with(solution, "make_swizzle(5, 0, 5)",
      "make_swizzle(3, 2, 3)"), "conflicts, most of them at line"},
    {"padding", with(start, "{32, 1}", "{33, 1}"), "1055 words of shared"},
    {"columns of global memory", with(kernel, "y[{i, tid}] = s[{tid, i}]",
      "y[{tid, i}] = s[{i, tid}]", "layout",
      "cute.make_layout({32, 32}, {32, 1})"), "in columns now"},
    {"a barrier that was lost", with(solution, "  cute.arch.sync_warp()\n", ""),
      "[warp-race]"},
    {"no transposition", with(solution, "s[{tid, i}]", "s[{i, tid}]"),
      "and should be"},
    {"no kernel", "layout = 1", "makes no global k"},
  })
end)

describe("find the missing barrier #long", function()
  local solution, start, check = exercise("bugs", "barrier")
  local sync = "    cute.arch.sync_threads()\n"
  local first, last = "    s[tid] = x[{i, tid}]\n", "% 128]\n"
  answers(check, {
    {"the barrier in front", with(start, first, sync .. first)},
    {"a named barrier", with(start, last, last
      .. "    cute.arch.barrier {barrier_id = 1, number_of_threads = 128}\n")},
    {"two buffers and one barrier", with(start,
      "make_layout(128)", "make_layout {128, 2}",
      "s[tid] =", "s[{tid, i % 2}] =",
      "s[(tid + 1) % 128]", "s[{(tid + 1) % 128, i % 2}]")},
    {"the beginning", start, "[race]"},
    {"a barrier of the warp", with(start, last, last
      .. "    cute.arch.sync_warp()\n"), "[race]"},
    {"both at the same place", with(start, sync, sync .. sync), "[race]"},
    {"one barrier at the wrong place", with(start, sync, "", last,
      last .. sync), "[race]"},
    {"a barrier for some", with(start, last, last
      .. "    cute.when(tid:lt(64), function()\n" .. sync .. "    end)\n"),
      "where 64 threads arrived and 128 are needed"},
    {"no shared memory", [[
k = cute.kernel("shift", function(x, y)
  local tid = cute.arch.thread_idx()
  for i in cute.range(cute.size(x, 0)) do
    y[{i, tid}] = x[{i, (tid + 1) % 128}]
  end
end)]], "do not go through shared memory"},
    {"another shift", with(solution, "(tid + 1)", "(tid + 2)"),
      "and should be"},
  })
end)

describe("make the pipeline three stages deep #long", function()
  local solution, start, check = exercise("pipelines", "three")
  local wait = "    cute.arch.cp_async_wait_group(1)\n"
  local four = solution:gsub("%% 3", "%% 4"):gsub("stages = 3", "stages = 4")
  answers(check, {
    {"a wait for the rest behind the loop", with(solution, "  C.store(1, 0)",
      "  cute.arch.cp_async_wait_group(0)\n  C.store(1, 0)")},
    {"a wait that knows the last tile", with(solution, wait, [[
    cute.when(cute.lt(k_tile + 1, A.k_tiles), function()
      cute.arch.cp_async_wait_group(1)
    end, function()
      cute.arch.cp_async_wait_group(0)
    end)
]], [[
    end)
    cute.arch.cp_async_commit_group()
  end
]], [[
      cute.arch.cp_async_commit_group()
    end)
  end
]])},
    {"a loop that Lua unrolls", with(solution,
      "for k_tile in cute.range(A.k_tiles) do",
      "for k_tile = 0, A.k_tiles - 1 do")},
    {"four stages", with(four, wait, "cute.arch.cp_async_wait_group(2)\n",
      "  load(1)\n", "  load(1)\n  load(2)\n",
      "load(k_tile + 2)", "load(k_tile + 3)")},
    {"the beginning", start, "are no three stages"},
    {"three places of which two are used", start:gsub("stages = 2",
      "stages = 3"), "one more is in flight"},
    {"a wait for all groups", with(solution, wait, (wait:gsub("1", "0"))),
      "one more is in flight"},
    {"a wait for too few", with(solution, wait, (wait:gsub("1", "2"))),
      "[async-in-flight]"},
    {"tiles that are left out", with(solution,
      "    load(k_tile + 2)\n", "    load(k_tile + 3)\n"), "[async-in-flight]"},
    {"no barrier", with(solution, "    cute.arch.sync_threads()\n", ""),
      "[race]"},
    {"a wait behind the barrier", with(solution, wait, "", "sync_threads()\n",
      "sync_threads()\n" .. wait), "[race]"},
  })
end)
-- SPDX-License-Identifier: MIT
