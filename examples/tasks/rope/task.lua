return {
  name = "rope",
  text = "Rotates each pair (X[s,2p], X[s,2p+1]) by the angle with cosine "
    .. "C[s,p] and sine S0[s,p].",
  args = {
    {"X", "f32", function(s) return {s.S, 2 * s.P} end},
    {"C", "f32", {"S", "P"}}, {"S0", "f32", {"S", "P"}},
    {"Y", "f32", function(s) return {s.S, 2 * s.P} end, "out"},
  },
  sizes = {{S = 4, P = 32}, {S = 3, P = 19}},
  held = {S = {1, 6}, P = {1, 40}},
  speed = {S = 1024, P = 1024},
  target = 0.3,
  reference = function(a)
    return {Y = function(s, d)
      local p = d // 2
      local x, y = a.X(s, 2 * p), a.X(s, 2 * p + 1)
      if d % 2 == 0 then return x * a.C(s, p) - y * a.S0(s, p) end
      return x * a.S0(s, p) + y * a.C(s, p)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
