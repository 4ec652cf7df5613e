-- Fault: the script indexes the array of a .npy file, whose elements are packed
-- bytes.
-- expect: cutelua: an array of a .npy file cannot be indexed: its elements are
--   packed bytes [bad-argument]
-- expect: spec/faults/bad-argument/npy_element.lua:14 in main chunk
-- expect: write cute.npy.tensor(array) for a tensor

local cute = require "cute"
local path = os.tmpname()
local bytes = string.pack("<ff", 1, 2)
assert(cute.npy.write(path, {dtype = "f32", shape = {2}, bytes = bytes}))
local array = cute.npy.read(path)
os.remove(path)
local x = array[1]  -- wrong
-- mend: local x = cute.npy.tensor(array)(1)
assert(x == 2)
