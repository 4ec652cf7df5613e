return {
  name = "row-sum",
  text = "Y[m] = the sum of X[m,n] over n",
  args = {{"X", "f32", {"M", "N"}}, {"Y", "f32", {"M"}, "out"}},
  sizes = {{M = 8, N = 64}, {M = 5, N = 45}},
  held = {M = {1, 9}, N = {1, 100}},
  speed = {M = 4096, N = 1024},
  target = 0.3,
  reference = function(a, t)
    return {Y = function(m)
      return t.sum(a.N, function(n) return a.X(m, n) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
