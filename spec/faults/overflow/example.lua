-- The example of the error kind `overflow` in docs/errors.md.
-- expect: cutelua: cute.size: 1099511627776 * 1099511627776 does not fit in an
--   extent or stride (limit 2^60) [overflow]
-- expect: spec/faults/overflow/example.lua:7 in main chunk
local cute = require "cute"

cute.size(cute.make_layout({1 << 40, 1 << 40}))  -- wrong
-- mend: cute.size(cute.make_layout({1 << 20, 1 << 20}))
