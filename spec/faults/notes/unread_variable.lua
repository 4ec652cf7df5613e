-- The sum of the exponentials is computed, but the result is not divided by it.
-- run: notes
-- expect: note: unread_variable.lua:13: the loop computes 'l' here, but
--   nothing that the kernel stores depends on it; is it missing from
--   the result?
local cute = require "cute"

cute.kernel("average", function(s, v, o)
  local t = cute.arch.thread_idx()
  local l, acc = 0.0, 0.0
  for k in cute.range(32) do
    local p = cute.exp(s[{t, k}])
    l = l + p
    acc = acc + p * v[k]
  end
  o[t] = acc  -- wrong
  -- mend: o[t] = acc / l
end)(cute.rand({32, 32}, cute.f32), cute.rand({32}, cute.f32),
  cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32, device = "sim"}
