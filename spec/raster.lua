--- Computes the order of tiles in tile schedulers by plain loops.
local raster = {}

--- Returns the positions {m, n} of cm x cn clusters in the scheduler's order.
-- Groups of `size` clusters along one mode are walked along the other mode,
-- which is M if along_m is true.
function raster.brute(cm, cn, size, along_m)
  local list = {}
  local fast, slow = along_m and cn or cm, along_m and cm or cn
  for first = 0, fast - 1, size do
    for y = 0, slow - 1 do
      for x = first, math.min(first + size, fast) - 1 do
        list[#list + 1] = along_m and {y, x} or {x, y}
      end
    end
  end
  return list
end

return raster
-- SPDX-License-Identifier: MIT
