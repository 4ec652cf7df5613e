-- How long the program takes to start, and how large it is.
local clock = require "cute.core".clock
local program = arg[-1] or "build/cutelua"

local function median(words, n)
  local times = {}
  for i = 1, n do
    local start = clock()
    assert(os.execute(program .. " " .. words))
    times[i] = clock() - start
  end
  table.sort(times)
  return times[(n + 1) // 2] * 1e3
end

local f <close> = assert(io.open(program, "rb"))
print(("program: %.2f MB"):format(f:seek "end" / 1e6))
print(("cutelua -e '': %.2f ms (at most 10)"):format(median("-e ''", 31)))
print(("cutelua -e 'require\"cute\"': %.2f ms (at most 10)"):format(
  median("-e 'require\"cute\"'", 31)))
