-- Fault: a function of cute.arch is called as a function of cute.
-- expect: cutelua: cute has no 'sync_threads' [unknown-name]
-- expect: spec/faults/unknown-name/of_other_module.lua:7 in kernel k
-- expect: write cute.arch.sync_threads
local cute = require "cute"
cute.kernel("k", function()
  cute.sync_threads()  -- wrong
  -- mend: cute.arch.sync_threads()
end)():launch {grid = 1, block = 32, device = "sim"}
