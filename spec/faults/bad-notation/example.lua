-- The example of the error kind `bad-notation` in docs/errors.md.
-- expect: cutelua: cute.layout: stride (1,8) does not have the nesting of shape
--   4 (is a ')' missing before the ':'?) at position 5 [bad-notation]
-- expect: spec/faults/bad-notation/example.lua:10 in main chunk
-- expect: (8,4:(1,8)
-- expect: ^
-- expect: hint: write shapes as (2,(4,8)) and layouts as shape:stride
local cute = require "cute"

cute.layout "(8,4:(1,8)"          -- a bracket is missing  -- wrong
-- mend: cute.layout "(8,4):(1,8)"
