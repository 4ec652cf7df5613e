return {
  name = "histogram",
  text = "H[b] = the number of i with X[i] = b",
  args = {{"X", "i32", {"N"}, fill = function(r, s)
             return r:integer(0, s.B - 1)
           end}, {"H", "i32", {"B"}, "out"}},
  sizes = {{N = 512, B = 16}, {N = 300, B = 33}},
  held = {N = {40, 600}, B = {2, 64}},
  speed = {N = 1 << 18, B = 256},
  target = 0.05,
  reference = function(a)
    local count = {}
    for i = 0, a.N - 1 do count[a.X(i)] = (count[a.X(i)] or 0) + 1 end
    return {H = function(b) return count[b] or 0 end}
  end,
}
-- SPDX-License-Identifier: MIT
