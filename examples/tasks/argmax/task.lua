return {
  name = "argmax",
  text = "Y[m] = the index of the largest X[m,n]; the lowest of equal ones",
  args = {{"X", "i32", {"M", "N"}, fill = {-3, 3}}, {"Y", "i32", {"M"}, "out"}},
  sizes = {{M = 8, N = 64}, {M = 7, N = 45}},
  held = {M = {2, 9}, N = {2, 100}},
  speed = {M = 4096, N = 1024},
  target = 0.05,
  reference = function(a)
    return {Y = function(m)
      local best = 0
      for n = 1, a.N - 1 do if a.X(m, n) > a.X(m, best) then best = n end end
      return best
    end}
  end,
}
-- SPDX-License-Identifier: MIT
