--- Runs random cases, one for each seed, and counts their verdicts. Scripts in
-- spec/fuzz/ use it.
local verdicts = {}

--- Runs cases with consecutive seeds until the time is over, and prints the
-- number of each verdict. The command line is `SECONDS [SEED]`. On the verdict
-- "wrong", prints the seed and the reason, and exits with 1. The file NAME.txt
-- in the build folder contains the seed of the current case.
---@param name string
---@param run fun(seed: integer): string, string? returns verdict and reason
function verdicts.count(name, run)
  local seconds = tonumber(arg[1]) or 60
  local seed = math.tointeger(tonumber(arg[2])) or os.time() * 1000
  local trail <close> = assert(io.open(("%s/%s.txt"):format(
    os.getenv "CUTE_BUILD" or "build", name), "w"))

  local stop, counts = os.time() + seconds, {}
  repeat
    trail:seek "set"
    trail:write(seed, "\n")
    trail:flush()
    local verdict, why = run(seed)
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
  print(name .. ": " .. table.concat(names, ", "))
end

return verdicts
-- SPDX-License-Identifier: MIT
