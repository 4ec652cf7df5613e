return {
  name = "conv1d",
  text = "Y[c,s] = the sum over k of W[c,k] X[c,s+k-K+1], with X = 0 before "
    .. "s = 0: a causal convolution of each channel",
  args = {{"X", "f32", {"C", "S"}}, {"W", "f32", {"C", "K"}},
          {"Y", "f32", {"C", "S"}, "out"}},
  sizes = {{C = 4, S = 96, K = 4}, {C = 3, S = 37, K = 3}},
  held = {C = {1, 5}, S = {1, 140}, K = {1, 6}},
  speed = {C = 1024, S = 2048, K = 4},
  target = 0.2,
  reference = function(a, t)
    return {Y = function(c, s)
      return t.sum(a.K, function(k)
        local from = s + k - a.K + 1
        return from >= 0 and a.W(c, k) * a.X(c, from) or 0
      end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
