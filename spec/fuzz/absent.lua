-- `absent.lua SECONDS [SEED]` compares random kernels whose variables start as
-- nil with plain Lua. On a difference it prints the program and exits with 1.
package.path = "./?.lua;" .. package.path
local absent = require "spec.absent"

local seconds = tonumber(arg[1]) or 60
local seed = tonumber(arg[2]) or os.time() * 1000

local stop, counts = os.time() + seconds, {same = 0, error = 0, skipped = 0}
repeat
  local verdict = absent.compare(seed)
  if verdict == "different" then
    print(("seed %d\n%s"):format(seed, absent.kernel(absent.program(seed))))
    os.exit(1)
  end
  counts[verdict] = counts[verdict] + 1
  seed = seed + 1
until os.time() >= stop
print(("absent: %d programs as in plain Lua, %d errors, %d skipped")
  :format(counts.same, counts.error, counts.skipped))
-- SPDX-License-Identifier: MIT
