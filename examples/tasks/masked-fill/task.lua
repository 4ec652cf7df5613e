return {
  name = "masked-fill",
  text = "Y[m,n] = X[m,n] where mask[m,n] is 1, else V[m]",
  args = {{"X", "f32", {"M", "N"}},
          {"mask", "u8", {"M", "N"}, fill = "mask",
           kinds = {"causal", "random"}},
          {"V", "f32", {"M"}}, {"Y", "f32", {"M", "N"}, "out"}},
  sizes = {{M = 6, N = 64}, {M = 5, N = 33}},
  held = {M = {1, 8}, N = {2, 80}},
  speed = {M = 1024, N = 2048},
  target = 0.3,
  reference = function(a)
    return {Y = function(m, n)
      return a.mask(m, n) == 1 and a.X(m, n) or a.V(m)
    end}
  end,
}
-- SPDX-License-Identifier: MIT
