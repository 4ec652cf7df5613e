-- Fault: the array of a .npy file, which has packed bytes, is indexed.
-- expect: cutelua: an array of a .npy file has its elements as bytes
--   [bad-argument]
-- expect: spec/faults/bad-argument/npy_element.lua:13 in main chunk
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
