return {
  name = "gather",
  text = "Y[t,d] = W[I[t],d]: rows of an embedding table",
  args = {{"W", "f16", {"V", "D"}}, {"I", "i32", {"T"},
             fill = function(r, s) return r:integer(0, s.V - 1) end},
          {"Y", "f16", {"T", "D"}, "out"}},
  sizes = {{V = 50, D = 64, T = 8}, {V = 13, D = 33, T = 5}},
  held = {V = {1, 60}, D = {1, 80}, T = {1, 9}},
  speed = {V = 1024, D = 1024, T = 2048},
  target = 0.3,
  reference = function(a)
    return {Y = function(t, d) return a.W(a.I(t), d) end}
  end,
}
-- SPDX-License-Identifier: MIT
