return {
  name = "dot",
  text = "D[0] = the sum of X[i] Y[i]; two runs give the same bits",
  args = {{"X", "f32", {"N"}}, {"Y", "f32", {"N"}}, {"D", "f32", {1}, "out"}},
  sizes = {{N = 512}, {N = 333}},
  held = {N = {1, 900}},
  speed = {N = 1 << 18},
  target = 0.1,
  flops = function(s) return 2 * s.N end,
  reference = function(a, t)
    return {D = function()
      return t.sum(a.N, function(i) return a.X(i) * a.Y(i) end)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
