-- What `make memerr` runs with every allocation failing once: a bit of all.
local cute = require "cute"

local l = cute.make_layout({8, {8, 8}}, {8, {1, 64}})
assert(tostring(l) == "(8,(8,8)):(8,(1,64))")
assert(cute.size(cute.logical_divide(l, {4, 8})) == 512)

local b = cute.buffer("f32", 64)
b:fill_normal(1)
local t = cute.make_tensor(b, cute.make_layout({8, 8}))
assert(t[{0, 0}] == b[0])
