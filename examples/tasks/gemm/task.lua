return {
  name = "gemm",
  text = "C[m,n] = the sum over k of A[m,k] B[n,k], in f32",
  args = {{"A", "f16", {"M", "K"}}, {"B", "f16", {"N", "K"}},
          {"C", "f32", {"M", "N"}, "out"}},
  sizes = {{M = 32, N = 16, K = 32}, {M = 19, N = 21, K = 25}},
  held = {M = {1, 36}, N = {1, 36}, K = {1, 40}},
  speed = {M = 1024, N = 1024, K = 1024},
  flops = function(s) return 2 * s.M * s.N * s.K end,
  units = "tensor",
  target = 0.1,
  reference = function(a, t)
    return {C = function(m, n)
      return t.sum(a.K, function(k) return a.A(m, k) * a.B(n, k) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
