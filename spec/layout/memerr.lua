-- Uses layouts, tuples and host tensors for `make memerr`, which makes each
-- allocation fail once. Each failure must raise an error, without leaks or
-- half-made objects.
local cute = require "cute"
local ANY = cute._
local L = cute.layout

local l = L "(8,(8,8)):(8,(1,64))"
assert(tostring(cute.composition(l, L "(4,2):(2,1)")) ==
       "(4,2):(16,8)")
assert(tostring(cute.zipped_divide(l, {4, {2, 4}})) ==
       "((4,(2,4)),(2,(4,2))):((8,(1,64)),(32,(2,256)))")
assert(tostring(cute.complement(L "(2,2):(1,6)", 24)) == "(3,2):(2,12)")
assert(tostring(cute.blocked_product(L "(2,2):(2,1)", L "(3,4):(1,3)")) ==
       "((2,3),(2,4)):((2,4),(1,12))")
local s = cute.tile_to_shape(
  cute.composition(cute.make_swizzle(3, 3, 3), l), {128, 64, 3})
assert(s(5, 9, 1) == s({5, 9, 1}))
assert(tostring(cute.slice_and_offset({3, ANY}, l)) == "((8,8)):((1,64))")
assert(cute.right_inverse(L "(4,8):(8,1)")(9) == 5)
assert(not pcall(cute.composition, L "(4,6):(1,8)", L "3:6"))
assert(not pcall(L, "(8,4:(1,8)"))

local lines = {}
cute.explain(function() return cute.logical_divide(l, {4, ANY}) end,
             function(line) lines[#lines + 1] = line end)
assert(#lines > 2)
assert(cute.transform_leaf(function(x) return 2 * x end, {1, {2, 3}})[2][2]
       == 6)

local t = cute.tensor({{1, 2, 3, 4}, {5, 6, 7, 8}}, cute.f32)
assert(cute.local_tile(t, {L "2:1", 2}, {0, 1})(1, 1) == 8)
assert(cute.recast_tensor(t, cute.u16)(0, 1) == 0x3f80)
assert(#require("cutelua.draw.print").tensor_text(t, true) > 40)
local sum = 0
for _, x in cute.ones_like(t):elements() do sum = sum + x end
assert(sum == 8)
-- SPDX-License-Identifier: MIT
