return {
  name = "moe-gate",
  text = "For each token t the two experts with the largest G[t,e], larger "
    .. "first, as E[t,0], E[t,1], and the softmax of their two values as W[t]",
  args = {{"G", "f32", {"T", "N"}}, {"E", "i32", {"T", 2}, "out"},
          {"W", "f32", {"T", 2}, "out"}},
  sizes = {{T = 32, N = 8}, {T = 21, N = 5}},
  held = {T = {1, 70}, N = {2, 12}},
  speed = {T = 8192, N = 64},
  target = 0.05,
  reference = function(a, t)
    local kept = {}
    local function best(m)
      if kept[m] then return kept[m] end
      local list = {}
      for e = 0, a.N - 1 do list[e + 1] = e end
      table.sort(list, function(x, y) return a.G(m, x) > a.G(m, y) end)
      kept[m] = list
      return list
    end
    return {
      E = function(m, i) return best(m)[i + 1] end,
      W = function(m, i)
        local d = a.G(m, best(m)[2]) - a.G(m, best(m)[1])
        return i == 0 and 1 / (1 + t.exp(d)) or t.exp(d) / (1 + t.exp(d))
      end,
    }
  end,
}
-- SPDX-License-Identifier: MIT
