-- Makes random calls of all public functions, inside kernels and outside, and
-- emits each kernel as CUDA C. Usage: `calls.lua SECONDS [SEED]`. The script
-- prints an error, with its seed, if the error has no kind, is Lua's own, or is
-- at a line of our code. The exit code is then 1. If a process dies,
-- build/calls.txt has the call (under ASan: BUILD=build-asan).
package.path = "./?.lua;" .. package.path
local calls = require "spec.calls"

local EACH = 150  -- number of random calls that one kernel makes
local seconds = tonumber(arg[1]) or 60
local seed = math.tointeger(tonumber(arg[2])) or os.time() * 1000

calls.trail = io.open((os.getenv "CUTE_BUILD" or "build") .. "/calls.txt", "w")

local stop, count = os.time() + seconds, 0
repeat
  for _, where in ipairs {"outside", "inside"} do
    calls.about = ("seed %d, %s"):format(seed, where)
    local p = calls[where](seed, EACH)
    count = count + p.count
    for _, w in ipairs(p.wrong) do
      io.stderr:write(("seed %d, %s: %s: %s\n  %s\n"):format(seed, w.where,
        w.call, w.why, w.message))
    end
    if #p.wrong > 0 then os.exit(1) end
  end
  seed = seed + 1
until os.time() >= stop
io.stderr:write(("calls: %d of %d functions, each answered or refused\n")
  :format(count, #calls.functions()))
-- SPDX-License-Identifier: MIT
