return {
  name = "quantise-int8",
  text = "S[m] = the largest |X[m,n]| / 127, and Q[m,n] = X[m,n] / S[m], "
    .. "rounded to the nearest integer",
  args = {{"X", "f32", {"M", "N"}}, {"Q", "i8", {"M", "N"}, "out"},
          {"S", "f32", {"M"}, "out"}},
  sizes = {{M = 4, N = 64}, {M = 3, N = 45}},
  held = {M = {1, 5}, N = {2, 100}},
  speed = {M = 2048, N = 1024},
  target = 0.2,
  reference = function(a, t)
    local kept = {}
    local function scale(m)
      kept[m] = kept[m]
        or t.max(a.N, function(n) return t.abs(a.X(m, n)) end) / 127
      return kept[m]
    end
    return {
      S = scale,
      Q = function(m, n) return t.nearest(a.X(m, n) / scale(m)) end,
    }
  end,
}
-- SPDX-License-Identifier: MIT
