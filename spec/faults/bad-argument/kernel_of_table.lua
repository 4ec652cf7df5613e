-- Fault: cute.kernel gets a table in place of the kernel's function.
-- expect: cutelua: bad argument #2 to 'cute.kernel' (function expected, got {})
--   [bad-argument]
-- expect: spec/faults/bad-argument/kernel_of_table.lua:7 in main chunk
-- expect: use cute.kernel(name, opts?, func?)
local cute = require "cute"
cute.kernel("k", {})
