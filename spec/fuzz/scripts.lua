-- Runs scripts at odd sizes on the simulator, under random schedules. None may
-- have reports or wrong results. Usage: `scripts.lua SECONDS [SEED
-- [LAUNCHES]]`.
package.path = "./?.lua;" .. package.path
local odd = require "spec.odd"

local seconds = tonumber(arg[1]) or 60
local seed = tonumber(arg[2]) or os.time()
local most = tonumber(arg[3]) or math.huge

local stop, right, refused = os.time() + seconds, 0, {}
repeat
  local script = odd.SCRIPTS[seed % #odd.SCRIPTS + 1]
  local wrong, why = odd.try(script, seed)
  if wrong then
    print(("seed %d: %s, %s"):format(seed, script, wrong))
    os.exit(1)
  elseif wrong == false then
    right = right + 1
  else
    refused[#refused + 1] = ("%s: %s"):format(script, why)
  end
  seed = seed + 1
until os.time() >= stop or right >= most
print(("scripts: %d launches right and clean, %d sizes not taken"):format(right,
  #refused))
if os.getenv "CUTELUA_DEBUG" then print(table.concat(refused, "\n")) end
-- SPDX-License-Identifier: MIT
