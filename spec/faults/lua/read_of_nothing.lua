-- Fault: a file cannot be read, but the result nil is used as an array.
-- expect: cutelua: attempt to index a nil value (local 'array') [lua]
-- expect: spec/faults/lua/read_of_nothing.lua:9 in main chunk
-- expect: 'array' is nil: cute.npy.read returns nil and a message if it fails
-- expect: write assert(cute.npy.read(...)) to see the message

local cute = require "cute"
local array = cute.npy.read("/dev/null/none.npy")  -- wrong
print(array.shape)  -- wrong
-- mend: assert(cute.npy.read("/dev/null/none.npy") == nil)
