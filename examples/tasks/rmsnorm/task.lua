return {
  name = "rmsnorm",
  text = "Y[m,n] = W[n] X[m,n] / sqrt(the mean of X[m,k]^2 + 1e-5)",
  args = {{"X", "bf16", {"M", "N"}}, {"W", "bf16", {"N"}},
          {"Y", "bf16", {"M", "N"}, "out"}},
  sizes = {{M = 4, N = 64}, {M = 3, N = 45}},
  held = {M = {1, 5}, N = {2, 100}},
  speed = {M = 2048, N = 1024},
  target = 0.3,
  reference = function(a, t)
    local kept = {}
    return {Y = function(m, n)
      kept[m] = kept[m] or t.rsqrt(t.sum(a.N, function(k)
        return a.X(m, k) * a.X(m, k)
      end) / a.N + 1e-5)
      return a.X(m, n) * kept[m] * a.W(n)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
