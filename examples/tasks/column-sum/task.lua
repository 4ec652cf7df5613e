return {
  name = "column-sum",
  text = "Y[n] = the sum of X[m,n] over m",
  args = {{"X", "f16", {"M", "N"}}, {"Y", "f32", {"N"}, "out"}},
  sizes = {{M = 32, N = 64}, {M = 21, N = 75}},
  held = {M = {1, 40}, N = {1, 140}},
  speed = {M = 2048, N = 2048},
  target = 0.1,
  reference = function(a, t)
    return {Y = function(n)
      return t.sum(a.M, function(m) return a.X(m, n) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
