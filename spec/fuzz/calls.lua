-- Makes random calls of all public functions, inside kernels and outside, and
-- emits each kernel as CUDA C. Usage: `calls.lua SECONDS [SEED]`. An error must
-- have a kind and the line of the caller, and must not be one of Lua's own. The
-- script prints any other error with its seed and exits with 1. If a process
-- dies, build/calls.txt has the call (under ASan: BUILD=build-asan).
package.path = "./?.lua;" .. package.path
local calls = require "spec.calls"

local EACH = 150  -- number of random calls that one kernel makes
local seconds = tonumber(arg[1]) or 60
local seed = math.tointeger(tonumber(arg[2])) or os.time() * 1000

calls.trail = io.open((os.getenv "CUTE_BUILD" or "build") .. "/calls.txt", "w")

local stop, count = os.time() + seconds, 0

local function judge(where, wrong)
  for _, text in ipairs(wrong) do
    io.stderr:write(("seed %d, %s: %s\n"):format(seed, where, text))
  end
  if #wrong > 0 then os.exit(1) end
end

-- Each function is called at least once with a hostile value.
for _, where in ipairs {"outside", "inside"} do
  calls.about = ("seed %d, hostile, %s"):format(seed, where)
  local wrong, n = calls.each(where, seed, 1, true)
  count = count + n
  judge(where, wrong)
end
repeat
  for _, where in ipairs {"outside", "inside"} do
    calls.about = ("seed %d, %s"):format(seed, where)
    local p = calls[where](seed, EACH)
    count = count + p.count
    for i, w in ipairs(p.wrong) do
      p.wrong[i] = ("%s: %s: %s"):format(w.call, w.why, w.message)
    end
    judge(where, p.wrong)
  end
  seed = seed + 1
until os.time() >= stop
io.stderr:write(("calls: %d of %d functions, each answered or refused\n")
  :format(count, #calls.functions()))
-- SPDX-License-Identifier: MIT
