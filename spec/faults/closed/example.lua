-- The example of the error kind `closed` in docs/errors.md.
-- expect: cutelua: buffer:fill: the buffer was closed [closed]
-- expect: spec/faults/closed/example.lua:10 in main chunk
-- expect: hint: use it before its close() or the end of its block
local cute = require "cute"

local b = cute.buffer("f32", 64)  -- wrong
b:close()  -- wrong
-- mend: local b <close> = cute.buffer("f32", 64)
b:fill(0)
