-- Fault: the host calls a barrier of threads.
-- expect: cutelua: cute.arch.sync_threads: it is only meaningful inside a
--   kernel [not-tracing]
-- expect: spec/faults/not-tracing/barrier.lua:7 in main chunk
-- expect: hint: call it inside cute.kernel(name, function(...) ... end)
local cute = require "cute"
cute.arch.sync_threads()  -- wrong
