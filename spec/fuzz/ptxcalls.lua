-- Launches PTX texts in which random parts are cut and random tokens exchanged,
-- with random arguments. Usage: `ptxcalls.lua SECONDS [SEED]`. Each error must
-- have a kind in brackets at the end of its first line. An error without a kind
-- is printed with its seed, and the exit code is 1. If a process dies,
-- build/ptxcalls.txt has its seed (under ASan: BUILD=build-asan).
package.path = "./?.lua;" .. package.path
local attack = require "spec.ptx.attack"

local seconds = tonumber(arg[1]) or 60
local seed = math.tointeger(tonumber(arg[2])) or os.time() * 1000
local trail = assert(io.open((os.getenv "CUTE_BUILD" or "build")
  .. "/ptxcalls.txt", "w"))

local stop, counts = os.time() + seconds, {}
repeat
  trail:seek "set"
  trail:write(seed, "\n")
  trail:flush()
  local verdict, why = attack.run(seed)
  counts[verdict] = (counts[verdict] or 0) + 1
  if verdict == "wrong" then
    print(("seed %d: %s\n%s"):format(seed, why, attack.text(seed)))
    os.exit(1)
  end
  seed = seed + 1
until os.time() >= stop
local names = {}
for k, n in pairs(counts) do names[#names + 1] = ("%d %s"):format(n, k) end
table.sort(names)
print("ptxcalls: " .. table.concat(names, ", "))
-- SPDX-License-Identifier: MIT
