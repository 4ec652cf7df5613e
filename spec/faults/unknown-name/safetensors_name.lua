-- Fault: a tensor's name is in none of the opened files.
-- expect: cutelua: safetensors:tensor: no file has a tensor
--   weigth (did you mean weight?) [unknown-name]
-- expect: spec/faults/unknown-name/safetensors_name.lua:11 in main chunk

local cute = require "cute"
local path = os.tmpname()
cute.safetensors.write(path, {weight = cute.ones({4}, cute.f32)})
local f = cute.safetensors.open {path}
os.remove(path)
local w = f:tensor "weigth"  -- wrong
-- mend: local w = f:tensor "weight"
assert(w(3) == 1)
