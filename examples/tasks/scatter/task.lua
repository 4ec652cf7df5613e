return {
  name = "scatter",
  text = "Y[(7 i + S) mod N] = X[i] for N that 7 does not divide; S = O[0]",
  args = {{"X", "f32", {"N"}}, {"O", "i32", {1}, fill = {0, 1000}},
          {"Y", "f32", {"N"}, "out"}},
  sizes = {{N = 256}, {N = 99}},
  held = {N = {1, 400}},
  fits = function(s) return s.N % 7 ~= 0 end,
  speed = {N = 1 << 20},
  target = 0.2,
  reference = function(a)
    local from = {}
    for i = 0, a.N - 1 do from[(7 * i + a.O(0)) % a.N] = i end
    return {Y = function(i) return a.X(from[i]) end}
  end,
}
-- SPDX-License-Identifier: MIT
