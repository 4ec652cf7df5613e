-- The example of the error kind `limit` in docs/errors.md.
-- expect: cutelua: cute.make_layout: tuples nest at most 32 deep [limit]
-- expect: spec/faults/limit/example.lua:8 in main chunk
local cute = require "cute"

local s = {1}  -- wrong
for i = 1, 1000 do s = {s} end  -- wrong
cute.make_layout(s)               -- s is nested too deeply  -- wrong
-- mend: cute.make_layout({1, {1, {1}}})
