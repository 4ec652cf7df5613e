-- An online softmax: the accumulators are not rescaled when the maximum grows.
-- run: notes
-- expect: note: unscaled_sum.lua:18: this line adds exponentials of numbers
--   minus a maximum that the loop raises, but the sum keeps the terms
--   of the smaller maximum; multiply it by exp(old maximum - new
--   maximum) in each iteration
local cute = require "cute"

cute.kernel("attend", function(s, v, o)
  local t = cute.arch.thread_idx()
  local m, l, acc = -math.huge, 0.0, 0.0
  for k in cute.range(32) do
    local most = cute.max(m, s[{t, k}])
    local p, factor = cute.exp(s[{t, k}] - most), cute.exp(m - most)
    l = l * factor + p
    m = most
    -- mend: acc = acc * factor
    acc = acc + p * v[k]
  end
  o[t] = acc / l
end)(cute.rand({32, 32}, cute.f32), cute.rand({32}, cute.f32),
  cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32, device = "sim"}
