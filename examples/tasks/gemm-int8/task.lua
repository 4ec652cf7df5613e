return {
  name = "gemm-int8",
  text = "C[m,n] = S[n] times the sum over k of A[m,k] B[n,k], where A is f16 "
    .. "and B has integers of 8 bits",
  args = {{"A", "f16", {"M", "K"}}, {"B", "i8", {"N", "K"}, fill = {-127, 127}},
          {"S", "f32", {"N"}, fill = "positive"},
          {"C", "f32", {"M", "N"}, "out"}},
  sizes = {{M = 8, N = 32, K = 32}, {M = 5, N = 45, K = 21}},
  held = {M = {1, 9}, N = {1, 70}, K = {1, 40}},
  speed = {M = 64, N = 1024, K = 1024},
  flops = function(s) return 2 * s.M * s.N * s.K end,
  target = 0.05,
  reference = function(a, t)
    return {C = function(m, n)
      return a.S(n) * t.sum(a.K, function(k) return a.A(m, k) * a.B(n, k) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
