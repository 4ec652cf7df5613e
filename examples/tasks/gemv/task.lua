return {
  name = "gemv",
  text = "Y[m] = the sum over k of A[m,k] X[k], in f32",
  args = {{"A", "bf16", {"M", "K"}}, {"X", "bf16", {"K"}},
          {"Y", "f32", {"M"}, "out"}},
  sizes = {{M = 12, K = 64}, {M = 7, K = 75}},
  held = {M = {1, 14}, K = {1, 120}},
  speed = {M = 4096, K = 1024},
  target = 0.3,
  reference = function(a, t)
    return {Y = function(m)
      return t.sum(a.K, function(k) return a.A(m, k) * a.X(k) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
