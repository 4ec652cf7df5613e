return {
  name = "swiglu",
  text = "Y[m,n] = G[m,n] / (1 + exp(-G[m,n])) U[m,n]",
  args = {{"G", "bf16", {"M", "N"}}, {"U", "bf16", {"M", "N"}},
          {"Y", "bf16", {"M", "N"}, "out"}},
  sizes = {{M = 2, N = 256}, {M = 3, N = 137}},
  held = {M = {1, 3}, N = {129, 300}},
  speed = {M = 1024, N = 4096},
  target = 0.4,
  reference = function(a, t)
    return {Y = function(m, n)
      local g = a.G(m, n)
      return g / (1 + t.exp(-g)) * a.U(m, n)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
