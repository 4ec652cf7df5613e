---@meta cute
-- Documents IntTuples for editors. Nothing here runs; docs/layouts.md has an
-- example of every function.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Tuples
---------------------------------------------------------------------------

---Returns the size of each mode, in a flat tuple.
---
---     cute.product_each({2, {3, 4}})  --> (2,12)
---@param t cute.Tuple
---@return cute.Tuple
function cute.product_each(t) end

---Returns, for each leaf of the tuple `guide`, the size of the part of t at the
---same place.
---
---     cute.product_like({2, {3, 4}}, {1, 1})  --> (2,12)
---@param t cute.Tuple
---@param guide cute.Tuple only its nesting is used
---@return cute.Tuple
function cute.product_like(t, guide) end

---Returns all leaves in one flat tuple. For an integer, returns a tuple with
---this one element.
---
---     cute.flatten_to_tuple(5)  --> (5)
---@param t cute.Tuple
---@return table
function cute.flatten_to_tuple(t) end

---Returns all leaves, in order, in one flat tuple.
---
---     cute.get_leaves({1, {2, 3}})  --> (1,2,3)
---@param t cute.Tuple
---@return table
function cute.get_leaves(t) end

---Returns an integer as a tuple with one element, and a tuple unchanged.
---
---     cute.wrap(5)  --> (5)
---@param t cute.Tuple
---@return table
function cute.wrap(t) end

---Removes the tuples with one element around a value.
---
---     cute.unwrap({{5}})  --> 5
---@param t cute.Tuple
---@return cute.Tuple
function cute.unwrap(t) end

---Reverses the order of the modes; their contents are unchanged.
---
---     cute.reverse({2, {3, 4}, 5})  --> (5,(3,4),2)
---@param t cute.Tuple
---@return cute.Tuple
function cute.reverse(t) end

---Returns the first leaf.
---
---     cute.front({{2, 3}, 4})  --> 2
---@param t cute.Tuple
---@return any
function cute.front(t) end

---Returns the last leaf.
---
---     cute.back({2, {3, 4}})  --> 4
---@param t cute.Tuple
---@return any
function cute.back(t) end

---Inserts x as mode i, before the old mode i.
---
---     cute.insert({2, 3}, 1, 9)  --> (2,9,3)
---@param t cute.Tuple
---@param i integer
---@param x cute.Tuple
---@return table
function cute.insert(t, i, x) end

---Removes mode i.
---
---     cute.remove({2, 3, 4}, 1)  --> (2,4)
---@param t cute.Tuple
---@param i integer
---@return table
function cute.remove(t, i) end

---Concatenates the modes of all arguments into one tuple; an integer counts as
---one mode.
---
---     cute.tuple_cat({2, 3}, 4, {5})  --> (2,3,4,5)
---@param ... cute.Tuple
---@return table
function cute.tuple_cat(...) end

---Returns a tuple with the nesting of a profile, all of whose leaves are x.
---
---     cute.repeat_like({1, {2, 3}}, 7)  --> (7,(7,7))
---@param profile cute.Tuple
---@param x cute.Int
---@return cute.Tuple
function cute.repeat_like(profile, x) end

---Returns the tuple (x,x,..) of rank n.
---
---     cute.repeat_as_tuple(7, 3)  --> (7,7,7)
---@param x cute.Tuple
---@param n integer
---@return table
function cute.repeat_as_tuple(x, n) end

---Returns a tuple with the nesting of t in which each leaf is its own basis.
---These are the strides of the identity layout.
---
---     cute.make_basis_like({4, {2, 3}})  --> (1@0,(1@0@1,1@1@1))
---@param t cute.Tuple
---@return cute.Tuple
function cute.make_basis_like(t) end

---Returns the number, counted from 0, of the mode that equals x, or nil.
---
---     cute.find({4, 8, 2}, 8)  --> 1
---@param t cute.Tuple
---@param x cute.Tuple
---@return integer?
function cute.find(t, x) end

---Returns the sum of all leaves.
---
---     cute.sum({2, {3, 4}})  --> 9
---@param ... cute.Tuple
---@return cute.Int
function cute.sum(...) end

---Returns the greatest common divisor of all leaves.
---
---     cute.gcd({12, {18, 6}})  --> 6
---@param ... cute.Tuple
---@return cute.Int
function cute.gcd(...) end

---Returns the sum of the products of corresponding leaves.
---
---     cute.inner_product({1, {2, 3}}, {4, {5, 6}})  --> 32
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Int
function cute.inner_product(a, b) end

---Multiplies each leaf of a by the size of the corresponding part of b.
---
---     cute.elem_scale({2, 3}, {4, {5, 6}})  --> (8,90)
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Tuple
function cute.elem_scale(a, b) end

---Divides a shape by a number or a shape, starting at the first mode. Raises
---[inadmissible] if for some mode neither of the two numbers divides the other.
---
---     cute.shape_div({12, 6}, 24)  --> (1,3)
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Tuple
function cute.shape_div(a, b) end

---Rounds each leaf of a up to a multiple of the corresponding leaf of b.
---
---     cute.round_up({12, 6}, {5, 4})  --> (15,8)
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Tuple
function cute.round_up(a, b) end

---Returns the strides of a compact layout, first mode fastest.
---
---     cute.compact_col_major({4, 8})  --> (1,4)
---@param shape cute.Tuple
---@param first? cute.Tuple the smallest stride, 1 when absent
---@return cute.Tuple
function cute.compact_col_major(shape, first) end

---Returns the strides of a compact layout, last mode fastest.
---
---     cute.compact_row_major({4, 8})  --> (8,1)
---@param shape cute.Tuple
---@param first? cute.Tuple the smallest stride, 1 when absent
---@return cute.Tuple
function cute.compact_row_major(shape, first) end

---Returns the strides of a compact layout. The mode with the smallest order is
---fastest.
---
---     cute.compact_order({4, 8, 2}, {2, 0, 1})  --> (16,1,8)
---@param shape cute.Tuple
---@param order? cute.Tuple
---@return cute.Tuple
function cute.compact_order(shape, order) end

---Reports whether a coordinate contains `cute._`.
---
---     cute.has_underscore({1, {cute._, 2}})  --> true
---@param t cute.Coord
---@return boolean
function cute.has_underscore(t) end

---Reports whether x is an integer, plain or traced.
---
---     cute.is_integer(2.5)  --> false
---@param x any
---@return boolean
function cute.is_integer(x) end

---Reports whether x is an integer, or nested lists of integers.
---
---     cute.is_int_tuple({1, {2, 3}})  --> true
---@param x any
---@return boolean
function cute.is_int_tuple(x) end

---------------------------------------------------------------------------
-- Tuples: comparison
---------------------------------------------------------------------------

---Reports whether two tuples have the same nesting.
---
---     cute.congruent({1, {2, 3}}, {4, {5, 6}})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.congruent(a, b) end

cute.is_congruent = cute.congruent

---Reports whether a has the nesting of b, or a shallower one.
---
---     cute.weakly_congruent({1, 2}, {4, {5, 6}})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.weakly_congruent(a, b) end

cute.is_weakly_congruent = cute.weakly_congruent

---Reports whether every coordinate of a is also a coordinate of b: the part of
---b at each leaf of a has the same size.
---
---     cute.compatible({2, 12}, {2, {3, 4}})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.compatible(a, b) end

---Reports whether each leaf of a divides the size of the corresponding part of
---b.
---
---     cute.weakly_compatible({2, 6}, {2, {3, 4}})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.weakly_compatible(a, b) end

---Reports whether the tiler b divides the shape a without remainder. If b is a
---layout, this means that its tiles and the rest cover each position of a once.
---
---     cute.evenly_divides({8, 12}, {4, 3})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.evenly_divides(a, b) end

---Reports whether a comes before b, comparing entries from the first. Traced
---operands give a traced boolean.
---
---     cute.lex_less({1, 9}, {2, 0})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_less(a, b) end

---Reports whether a comes before b or equals it, comparing entries from the
---first.
---
---     cute.lex_leq({1, 9}, {1, 9})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_leq(a, b) end

---Reports whether a comes after b, comparing entries from the first.
---
---     cute.lex_gtr({1, 9}, {2, 0})  --> false
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_gtr(a, b) end

---Reports whether a comes after b or equals it, comparing entries from the
---first.
---
---     cute.lex_geq({2, 0}, {1, 9})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_geq(a, b) end

---Reports whether a comes before b, comparing entries from the last to the
---first, which is the order of 1-D coordinates.
---
---     cute.colex_less({1, 9}, {2, 0})  --> false
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_less(a, b) end

---Reports whether a comes before b or equals it, comparing entries from the
---last.
---
---     cute.colex_leq({2, 0}, {1, 9})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_leq(a, b) end

---Reports whether a comes after b, comparing entries from the last.
---
---     cute.colex_gtr({1, 9}, {2, 0})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_gtr(a, b) end

---Reports whether a comes after b or equals it, comparing entries from the
---last.
---
---     cute.colex_geq({1, 9}, {1, 9})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_geq(a, b) end

---Reports whether every entry of a is less than the corresponding entry of b.
---For a coordinate a and a shape b: whether a is inside b. Predicates of copies
---use it.
---
---     cute.elem_less({1, 2}, {2, 3})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_less(a, b) end

---Reports whether every entry of a is at most the corresponding entry of b.
---
---     cute.elem_leq({1, 3}, {2, 3})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_leq(a, b) end

---Reports whether every entry of a is greater than the corresponding entry of
---b.
---
---     cute.elem_gtr({3, 4}, {2, 3})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_gtr(a, b) end

---Reports whether every entry of a is at least the corresponding entry of b.
---
---     cute.elem_geq({2, 4}, {2, 3})  --> true
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_geq(a, b) end

return cute
-- SPDX-License-Identifier: MIT
