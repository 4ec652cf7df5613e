-- Makes random changes of the IR of the CuTe DSL, metadata of Triton, LAUNCH
-- files and captured folders, and launches them. Usage: `metadata.lua SECONDS
-- [SEED]`. Each error must have a kind in brackets at the end of its first
-- line. An error without a kind is printed with its seed, and the exit code is
-- 1. If a process dies, build/metadata.txt has its seed (under ASan:
-- BUILD=build-asan).
package.path = "./?.lua;" .. package.path
local metadata = require "spec.ptx.metadata"
local support = require "spec.support"

local seconds = tonumber(arg[1]) or 60
local seed = math.tointeger(tonumber(arg[2])) or os.time() * 1000
local trail = assert(io.open((os.getenv "CUTE_BUILD" or "build")
  .. "/metadata.txt", "w"))

local stop, counts = os.time() + seconds, {}
repeat
  trail:seek "set"
  trail:write(seed, "\n")
  trail:flush()
  local folder = support.folder()
  local verdict, why = metadata.run(seed, folder)
  support.remove(folder)
  counts[verdict] = (counts[verdict] or 0) + 1
  if verdict == "wrong" then
    print(("seed %d: %s"):format(seed, why))
    os.exit(1)
  end
  seed = seed + 1
until os.time() >= stop
local names = {}
for k, n in pairs(counts) do names[#names + 1] = ("%d %s"):format(n, k) end
table.sort(names)
print("metadata: " .. table.concat(names, ", "))
-- SPDX-License-Identifier: MIT
