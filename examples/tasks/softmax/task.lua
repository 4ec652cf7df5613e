return {
  name = "softmax",
  text = "Y[m,n] = exp(X[m,n]) / the sum over k of exp(X[m,k]), also for "
    .. "large X",
  args = {{"X", "f32", {"M", "N"},
           fill = function(r) return 60 * r:normal() end},
          {"Y", "f32", {"M", "N"}, "out"}},
  sizes = {{M = 4, N = 64}, {M = 3, N = 45}},
  held = {M = {1, 5}, N = {2, 100}},
  speed = {M = 2048, N = 1024},
  target = 0.3,
  reference = function(a, t)
    local kept = {}
    return {Y = function(m, n)
      local row = kept[m]
      if not row then
        row = {most = t.max(a.N, function(k) return a.X(m, k) end)}
        row.sum = t.sum(a.N, function(k)
          return t.exp(a.X(m, k) - row.most)
        end)
        kept[m] = row
      end
      return t.exp(a.X(m, n) - row.most) / row.sum
    end}
  end,
}
-- SPDX-License-Identifier: MIT
