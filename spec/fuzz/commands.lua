-- Runs the program with hostile command lines, files and environments
-- (spec/hostile.lua). Uses SEED (default 1), then the following seeds until
-- SECONDS have passed. Usage: `commands.lua SECONDS [SEED]`. If a run has a
-- wrong outcome, the script prints the run and exits with 1. The environment
-- variable CUTELUA names another program to run, such as one with sanitizers.
package.path = "./?.lua;" .. package.path
local hostile = require "spec.hostile"
local support = require "spec.support"

local seconds = tonumber(arg[1]) or 60
local seed = math.tointeger(tonumber(arg[2])) or 1
local stop, count, wrong = os.time() + seconds, 0, 0
repeat
  local folder = support.folder()
  for _, run in ipairs(hostile.runs(seed, folder)) do
    local why, text = hostile.run(run, folder)
    count = count + 1
    if why then
      wrong = wrong + 1
      io.stderr:write(("seed %d: %s: %s\n"):format(seed, text, why))
    end
  end
  support.remove(folder)
  seed = seed + 1
until os.time() >= stop
io.stderr:write(("commands: %d of %d hostile runs ended as they should\n")
  :format(count - wrong, count))
if wrong > 0 then os.exit(1) end
-- SPDX-License-Identifier: MIT
