return {
  name = "decode-attention",
  text = "One query for each sequence b: O[b] = the sum over t < L[b] of "
    .. "P[b,t] V[b,t], with P = the softmax of Q[b] . K[b,t] / sqrt(32)",
  args = {{"Q", "f16", {"B", 32}}, {"K", "f16", {"B", "T", 32}},
          {"V", "f16", {"B", "T", 32}},
          {"L", "i32", {"B"}, fill = {1, "T"}},
          {"O", "f32", {"B", 32}, "out"}},
  sizes = {{B = 4, T = 24}, {B = 3, T = 17}},
  held = {B = {1, 5}, T = {2, 32}},
  speed = {B = 128, T = 512},
  flops = function(s) return 4 * s.B * s.T * 32 end,
  units = "tensor",
  target = 0.05,
  reference = function(a, t)
    local kept = {}
    local function row(b)
      local score, p, n = {}, {}, a.L(b)
      for k = 0, n - 1 do
        score[k] = t.sum(32, function(d) return a.Q(b, d) * a.K(b, k, d) end)
          / math.sqrt(32)
      end
      local most = t.max(n, function(k) return score[k] end)
      for k = 0, n - 1 do p[k] = t.exp(score[k] - most) end
      return {p = p, sum = t.sum(n, function(k) return p[k] end)}
    end
    return {O = function(b, d)
      kept[b] = kept[b] or row(b)
      return t.sum(a.L(b), function(k) return kept[b].p[k] * a.V(b, k, d) end)
        / kept[b].sum
    end}
  end,
}
-- SPDX-License-Identifier: MIT
