return {
  name = "masked-attention",
  text = "As the task attention, with a mask: key t counts for query s where "
    .. "mask[s,t] is 1; each query sees a key",
  args = {{"Q", "f16", {"S", 32}}, {"K", "f16", {"S", 32}},
          {"V", "f16", {"S", 32}},
          {"mask", "u8", {"S", "S"}, fill = "mask", kinds = {"causal"}},
          {"O", "f32", {"S", 32}, "out"}},
  sizes = {{S = 12}, {S = 17}},
  held = {S = {2, 20}},
  speed = {S = 1024},
  flops = function(s) return 4 * s.S * s.S * 32 end,
  units = "tensor",
  target = 0.05,
  reference = function(a, t)
    local kept = {}
    local function row(s)
      local seen, score, p = {}, {}, {}
      for k = 0, a.S - 1 do
        if a.mask(s, k) == 1 then seen[#seen + 1] = k end
      end
      for i, k in ipairs(seen) do
        score[i] = t.sum(32, function(d) return a.Q(s, d) * a.K(k, d) end)
          / math.sqrt(32)
      end
      local most = t.max(#seen, function(i) return score[i + 1] end)
      for i in ipairs(seen) do p[i] = t.exp(score[i] - most) end
      return {p = p, seen = seen,
              sum = t.sum(#seen, function(i) return p[i + 1] end)}
    end
    return {O = function(s, d)
      kept[s] = kept[s] or row(s)
      local r = kept[s]
      return t.sum(#r.seen, function(i)
        return r.p[i + 1] * a.V(r.seen[i + 1], d)
      end) / r.sum
    end}
  end,
}
-- SPDX-License-Identifier: MIT
