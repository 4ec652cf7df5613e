-- Compares random accesses to tensors in plain Lua, on the simulator, and as
-- emitted text that a C++ compiler compiles for the host. Usage: `places.lua
-- SECONDS [SEED]`. On a difference the script prints the program, and the exit
-- code is 1.
package.path = "./?.lua;" .. package.path
local places = require "spec.places"

local BATCH = 20  -- number of programs in one compilation
local seconds = tonumber(arg[1]) or 60
local seed = tonumber(arg[2]) or os.time() * 1000

if not require "spec.cudahost".compiler() then
  io.stderr:write("make fuzz needs a C++ compiler (apt-get install g++)\n")
  os.exit(1)
end

local stop, count = os.time() + seconds, 0
repeat
  local batch = {}
  for i = 1, BATCH do
    batch[i] = places.program(seed)
    seed = seed + 1
  end
  for i, wrong in ipairs(places.host(batch)) do
    if wrong then
      print(("seed %d: %s\n%s"):format(batch[i].seed, wrong, batch[i].text))
      os.exit(1)
    end
  end
  count = count + #batch
until os.time() >= stop
print(("places: %d programs, plain Lua, simulator and text agree")
  :format(count))
-- SPDX-License-Identifier: MIT
