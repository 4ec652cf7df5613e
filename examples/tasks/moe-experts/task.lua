return {
  name = "moe-experts",
  text = "Y[t,n] = the sum over k of A[t,k] W[E[t],n,k]: each token has an "
    .. "expert of its own",
  args = {{"A", "f16", {"T", "K"}}, {"W", "f16", {"C", "N", "K"}},
          {"E", "i32", {"T"}, fill = function(r, s)
             return r:integer(0, s.C - 1)
           end}, {"Y", "f32", {"T", "N"}, "out"}},
  sizes = {{T = 6, N = 32, K = 32, C = 4}, {T = 5, N = 45, K = 19, C = 3}},
  held = {T = {1, 7}, N = {1, 70}, K = {1, 33}, C = {1, 5}},
  speed = {T = 256, N = 512, K = 512, C = 8},
  flops = function(s) return 2 * s.T * s.N * s.K end,
  target = 0.05,
  reference = function(a, t)
    return {Y = function(m, n)
      local e = a.E(m)
      return t.sum(a.K, function(k) return a.A(m, k) * a.W(e, n, k) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
