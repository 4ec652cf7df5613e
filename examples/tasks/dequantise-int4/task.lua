return {
  name = "dequantise-int4",
  text = "Y[m,n] = (q - 8) S[m,n // 32], where q is the low half of "
    .. "P[m,n // 2] for even n, and the high half for odd n",
  args = {{"P", "u8", function(s) return {s.M, 16 * s.G} end, fill = {0, 255}},
          {"S", "f32", {"M", "G"}},
          {"Y", "f32", function(s) return {s.M, 32 * s.G} end, "out"}},
  sizes = {{M = 3, G = 4}, {M = 5, G = 1}},
  held = {M = {1, 5}, G = {1, 6}},
  speed = {M = 1024, G = 64},
  target = 0.2,
  reference = function(a)
    return {Y = function(m, n)
      local q = a.P(m, n // 2) >> 4 * (n % 2) & 15
      return (q - 8) * a.S(m, n // 32)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
