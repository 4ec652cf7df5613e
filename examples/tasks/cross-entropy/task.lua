return {
  name = "cross-entropy",
  text = "L[m] = log(the sum over n of exp(X[m,n])) - X[m,T[m]]",
  args = {{"X", "f32", {"M", "N"}}, {"T", "i32", {"M"}, fill = function(r, s)
             return r:integer(0, s.N - 1)
           end}, {"L", "f32", {"M"}, "out"}},
  sizes = {{M = 6, N = 64}, {M = 5, N = 45}},
  held = {M = {2, 7}, N = {2, 100}},
  speed = {M = 2048, N = 1024},
  target = 0.2,
  reference = function(a, t)
    return {L = function(m)
      local most = t.max(a.N, function(n) return a.X(m, n) end)
      local sum = t.sum(a.N, function(n) return t.exp(a.X(m, n) - most) end)
      return t.log(sum) + most - a.X(m, a.T(m))
    end}
  end,
}
-- SPDX-License-Identifier: MIT
