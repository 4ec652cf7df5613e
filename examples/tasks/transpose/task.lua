return {
  name = "transpose",
  text = "Y[n,m] = X[m,n]",
  args = {{"X", "f16", {"M", "N"}}, {"Y", "f16", {"N", "M"}, "out"}},
  sizes = {{M = 32, N = 32}, {M = 9, N = 37}},
  held = {M = {1, 40}, N = {1, 40}},
  speed = {M = 2048, N = 2048},
  target = 0.3,
  reference = function(a)
    return {Y = function(n, m) return a.X(m, n) end}
  end,
}
-- SPDX-License-Identifier: MIT
