return {
  name = "gelu",
  text = "Y[i] = X[i] / 2 (1 + tanh(0.7978846 (X[i] + 0.044715 X[i]^3)))",
  args = {{"X", "f16", {"N"}}, {"Y", "f16", {"N"}, "out"}},
  sizes = {{N = 256}, {N = 201}},
  held = {N = {1, 500}},
  speed = {N = 1 << 22},
  target = 0.4,
  reference = function(a, t)
    return {Y = function(i)
      local x = a.X(i)
      local z = 0.7978845608 * (x + 0.044715 * (x * x * x))
      return 0.5 * x * (1 + t.tanh(z))
    end}
  end,
}
-- SPDX-License-Identifier: MIT
