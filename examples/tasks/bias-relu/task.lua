return {
  name = "bias-relu",
  text = "Y[m,n] = max(X[m,n] + B[n], 0)",
  args = {{"X", "f16", {"M", "N"}}, {"B", "f16", {"N"}},
          {"Y", "f16", {"M", "N"}, "out"}},
  sizes = {{M = 4, N = 128}, {M = 5, N = 77}},
  held = {M = {1, 8}, N = {1, 150}},
  speed = {M = 1024, N = 4096},
  target = 0.4,
  reference = function(a, t)
    return {Y = function(m, n) return t.most(a.X(m, n) + a.B(n), 0) end}
  end,
}
-- SPDX-License-Identifier: MIT
