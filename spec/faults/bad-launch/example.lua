-- The example of the error kind `bad-launch` in docs/errors.md.
-- expect: cutelua: call:launch: block = 0; one to three integers of at
--   least 1 are needed [bad-launch]
-- expect: spec/faults/bad-launch/example.lua:7 in main chunk
local cute = require "cute"

cute.kernel("k", function() end)():launch {grid = 1, block = 0, device = "sim"}  -- wrong
-- mend: cute.kernel("k", function() end)():launch {grid = 1, block = 32, device = "sim"}
