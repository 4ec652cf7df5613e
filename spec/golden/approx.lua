--- Checks approximate functions against golden data, approx.jsonl in the folder
-- CUTELUA_GOLDEN_APPROX_DIR. A line has 64 inputs, as 32-bit words, and the
-- results of an H200.
local cute = require "cute"
local golden = require "spec.golden"

local WORDS = 64

-- Returns a function that runs the instruction on 64 words on the simulator and
-- returns the 64 results.
local function launcher(instruction)
  local pairs_of = instruction:find "x2$"
  local x = cute.zeros({WORDS}, cute.u32)
  local y = cute.zeros({WORDS}, cute.u32)
  local run = cute.kernel("approx", function(from, to)
    local t = cute.arch.thread_idx()
    local word = from[t]
    if not pairs_of then word = word:bitcast(cute.f32) end
    word = cute.arch.approx(instruction, word)
    to[t] = pairs_of and word or word:bitcast(cute.u32)
  end)(x, y)
  return function(words)
    for i, w in ipairs(words) do x[i - 1] = w end
    run:launch {grid = 1, block = WORDS, device = "sim:sm_90a"}
    local out = {}
    for i = 1, #words do out[i] = y[i - 1] end
    return out
  end
end

golden.ops.approx = setmetatable({}, {__index = function(ops, op)
  if not op:find "%.approx%." then return nil end
  local run = launcher(op)
  local function check(case)
    local got = run(case["in"])
    for i, w in ipairs(case.out) do
      if got[i] ~= w then
        return false, ("%08x for word %d, %08x, instead of %08x"):format(
          got[i], i, case["in"][i], w)
      end
    end
    return true
  end
  rawset(ops, op, check)
  return check
end})

return golden
-- SPDX-License-Identifier: MIT
