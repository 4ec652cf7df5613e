-- The example of the error kind `in-graph` in docs/errors.md.
-- expect: cutelua: sync waits for the GPU, which runs nothing while a graph is
--   captured [in-graph]
-- expect: spec/faults/in-graph/example.lua:9 in main chunk
-- expect: hint: wait, and read results, after graph:launch()
local cute = require "cute"

local s = cute.stream "sim"
cute.graph(function() s:sync() end, {device = "sim"})  -- wrong
-- mend: cute.graph(function() end, {device = "sim"}):launch(s)
-- mend: s:sync()
