-- The example of the error kind `compile-failed` in docs/errors.md.
-- needs: NVRTC
-- expect: cutelua: kernel 'k' does not compile for sm_90a: … [compile-failed]
local cute = require "cute"

local k = cute.kernel("k", function()
  cute.arch.inline_ptx("nonsense;")  -- wrong
  -- mend: cute.arch.inline_ptx("nanosleep.u32 8;")
end)
assert(k():trace({block = 32}):compile "sm_90a")
