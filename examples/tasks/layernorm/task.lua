return {
  name = "layernorm",
  text = "Y[m,n] = G[n] (X[m,n] - mean) / sqrt(variance + 1e-5) + B[n], with "
    .. "the mean and the variance of row m",
  args = {{"X", "f32", {"M", "N"},
           fill = function(r) return 3 + r:normal() end},
          {"G", "f32", {"N"}}, {"B", "f32", {"N"}},
          {"Y", "f32", {"M", "N"}, "out"}},
  sizes = {{M = 4, N = 64}, {M = 3, N = 45}},
  held = {M = {1, 5}, N = {8, 100}},
  speed = {M = 2048, N = 1024},
  target = 0.3,
  reference = function(a, t)
    local kept = {}
    return {Y = function(m, n)
      local row = kept[m]
      if not row then
        row = {mean = t.sum(a.N, function(k) return a.X(m, k) end) / a.N}
        local squares = t.sum(a.N, function(k)
          local d = a.X(m, k) - row.mean
          return d * d
        end)
        row.scale = t.rsqrt(squares / a.N + 1e-5)
        kept[m] = row
      end
      return (a.X(m, n) - row.mean) * row.scale * a.G(n) + a.B(n)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
