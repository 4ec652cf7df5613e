return {
  name = "axpy",
  text = "Y[i] = 2 X[i] + Y0[i]",
  args = {{"X", "f32", {"N"}}, {"Y0", "f32", {"N"}},
          {"Y", "f32", {"N"}, "out"}},
  sizes = {{N = 256}, {N = 333}},
  held = {N = {1, 600}},
  speed = {N = 1 << 22},
  target = 0.5,
  reference = function(a)
    return {Y = function(i) return 2 * a.X(i) + a.Y0(i) end}
  end,
}
-- SPDX-License-Identifier: MIT
