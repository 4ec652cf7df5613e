return {
  name = "attention",
  text = "O[s] = the sum over t of P[s,t] V[t], with P = the softmax over t of "
    .. "Q[s] . K[t] / sqrt(32); vectors have 32 elements",
  args = {{"Q", "f16", {"S", 32}}, {"K", "f16", {"T", 32}},
          {"V", "f16", {"T", 32}}, {"O", "f32", {"S", 32}, "out"}},
  sizes = {{S = 8, T = 32}, {S = 5, T = 21}},
  held = {S = {1, 9}, T = {1, 40}},
  speed = {S = 2048, T = 1024},
  flops = function(s) return 4 * s.S * s.T * 32 end,
  units = "tensor",
  target = 0.05,
  reference = function(a, t)
    local kept = {}
    local function row(s)
      local score, p = {}, {}
      for k = 0, a.T - 1 do
        score[k] = t.sum(32, function(d) return a.Q(s, d) * a.K(k, d) end)
          / math.sqrt(32)
      end
      local most = t.max(a.T, function(k) return score[k] end)
      for k = 0, a.T - 1 do p[k] = t.exp(score[k] - most) end
      return {p = p, sum = t.sum(a.T, function(k) return p[k] end)}
    end
    return {O = function(s, d)
      kept[s] = kept[s] or row(s)
      return t.sum(a.T, function(k) return kept[s].p[k] * a.V(k, d) end)
        / kept[s].sum
    end}
  end,
}
-- SPDX-License-Identifier: MIT
