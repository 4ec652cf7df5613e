-- The example of the error kind `not-tracing` in docs/errors.md.
-- expect: cutelua: cute.arch.thread_idx: a special register is only meaningful
--   inside a kernel [not-tracing]
-- expect: spec/faults/not-tracing/example.lua:11 in main chunk
-- expect: hint: call it inside cute.kernel(name, function(...) ... end)
local cute = require "cute"
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

local tid = cute.arch.thread_idx()        -- outside of any kernel  -- wrong
-- mend: run(function()
  -- mend: local tid = cute.arch.thread_idx()
-- mend: end)
