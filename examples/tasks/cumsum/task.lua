return {
  name = "cumsum",
  text = "Y[m,n] = the sum of X[m,0], ..., X[m,n]",
  args = {{"X", "f32", {"M", "N"}}, {"Y", "f32", {"M", "N"}, "out"}},
  sizes = {{M = 4, N = 64}, {M = 3, N = 45}},
  held = {M = {1, 5}, N = {1, 100}},
  speed = {M = 2048, N = 1024},
  target = 0.05,
  reference = function(a, t)
    return {Y = function(m, n)
      return t.sum(n + 1, function(j) return a.X(m, j) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
