---@meta cute
-- Documents tiles of layouts, swizzles and bases for editors. Nothing here
-- runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Layouts: tiles
---------------------------------------------------------------------------

---Splits a layout into (tile,rest). If the tiler is a layout, it splits the
---layout as a whole; a tuple splits mode by mode. If a tile does not divide an
---extent, the number of tiles is rounded up. Raises [inadmissible] if elements
---would be lost.
---
---     cute.logical_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> ((4,2),(3,4)):((12,48),(1,3))
---@param layout cute.Shaped
---@param tiler cute.Tiler a layout or extent, or a tuple of them; `_` keeps a
---whole mode
---@return cute.Shaped
function cute.logical_divide(layout, tiler) end

---Splits like logical_divide; the result is ((tile modes),(rest modes)).
---
---     cute.zipped_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> ((4,3),(2,4)):((12,1),(48,3))
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.zipped_divide(layout, tiler) end

---Splits like logical_divide; the result is ((tile modes),rest,rest,..).
---
---     cute.tiled_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> ((4,3),2,4):((12,1),48,3)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tiled_divide(layout, tiler) end

---Splits like logical_divide; the result is (tile,tile,..,rest,rest,..).
---
---     cute.flat_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> (4,3,2,4):(12,1,48,3)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.flat_divide(layout, tiler) end

---Repeats the layout, side by side in memory, once for each element of the
---tiler. The result is (layout,copies). If the tiler has stride 0, all copies
---are at the same offsets. Raises [inadmissible] if no layout describes the
---copies.
---
---     cute.logical_product(cute.layout "(2,2):(2,1)", cute.layout "6:1")
---     --> ((2,2),6):((2,1),4)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.logical_product(layout, tiler) end

---Repeats like logical_product; for a tuple the result is ((modes),(copies)).
---
---     cute.zipped_product(cute.layout "(2,2):(2,1)",
---       cute.layout "(3,4):(1,3)")
---     --> ((2,2),(3,4)):((2,1),(4,12))
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.zipped_product(layout, tiler) end

---Repeats like logical_product; the result is ((modes),copies,copies,..).
---
---     cute.tiled_product(cute.layout "(2,2):(2,1)", cute.layout "(3,4):(1,3)")
---     --> ((2,2),3,4):((2,1),4,12)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tiled_product(layout, tiler) end

---Repeats like logical_product; the result is (mode,..,copies,..).
---
---     cute.flat_product(cute.layout "(2,2):(2,1)", cute.layout "(3,4):(1,3)")
---     --> (2,2,3,4):(2,1,4,12)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.flat_product(layout, tiler) end

---Repeats the layout as blocks. Each mode of the result is (block,copies).
---
---     cute.blocked_product(cute.layout "(2,2):(2,1)",
---       cute.layout "(3,4):(1,3)")
---     --> ((2,3),(2,4)):((2,4),(1,12))
---@param layout cute.Shaped
---@param t cute.Layout|cute.Tuple arrangement of the copies
---@return cute.Shaped
function cute.blocked_product(layout, t) end

---Repeats the layout with its copies interleaved element by element. Each mode
---of the result is (copies,block).
---
---     cute.raked_product(cute.layout "(2,2):(2,1)", cute.layout "(3,4):(1,3)")
---     --> ((3,2),(4,2)):((4,2),(12,1))
---@param layout cute.Shaped
---@param t cute.Layout|cute.Tuple arrangement of the copies
---@return cute.Shaped
function cute.raked_product(layout, t) end

---Changes the order of the modes of a logical divide or product into that of
---zipped_divide: ((tile modes),(rest modes)).
---
---     cute.tile_unzip(cute.layout "((4,2),(3,4)):((12,48),(1,3))", {4, 3})
---     --> ((4,3),(2,4)):((12,1),(48,3))
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tile_unzip(layout, tiler) end

---Repeats a block, consecutively in memory, to fill a shape. If the block has a
---swizzle, the result has it, too. If the order has equal entries, modes
---overlap, and a note is written on standard error.
---
---     cute.tile_to_shape(cute.layout "(2,2):(2,1)", {4, 6})
---     --> ((2,2),(2,3)):((2,4),(1,8))
---     cute.tile_to_shape(cute.layout "(2,2):(2,1)", {4, 6}, {1, 0})
---     --> ((2,2),(2,3)):((2,12),(1,4))
---@param block cute.Layout the layout to repeat
---@param shape cute.Tuple the shape to fill; a multiple of the block's
---@param order? cute.Tuple|cute.Constant the order in which modes are filled;
---first mode first when absent
---@return cute.Layout
function cute.tile_to_shape(block, shape, order) end

---Returns the number of tiles that cover a shape, mode by mode, including
---partial ones.
---
---     cute.ceil_div({8, 12}, {4, 5})  --> (2,3)
---@param shape cute.Tuple|cute.Shaped
---@param tiler cute.Tuple|cute.Layout
---@return cute.Tuple
function cute.ceil_div(shape, tiler) end

---Returns the layout of elements that are n times as wide: n neighbours become
---one element. Raises [inadmissible] if n neighbours are not contiguous.
---
---     cute.upcast(cute.layout "(8,4):(1,8)", 4)  --> (2,4):(1,2)
---@param layout cute.Layout|cute.Swizzle
---@param n integer
---@return any
function cute.upcast(layout, n) end

---Returns the layout of elements that are 1/n times as wide: one element
---becomes n neighbours.
---
---     cute.downcast(cute.layout "(2,4):(1,2)", 4)  --> (8,4):(1,8)
---@param layout cute.Layout|cute.Swizzle
---@param n integer
---@return any
function cute.downcast(layout, n) end

---Converts a layout between element widths, by upcast or downcast.
---recast_layout(layout, old, new), the argument order of C++, means the same.
---
---     cute.recast_layout(128, 16, cute.layout "(8,16):(64,1)")
---     --> (8,2):(8,1)
---@param new any bits, or an element type
---@param old any bits, or an element type
---@param layout cute.Layout
---@return cute.Layout
function cute.recast_layout(new, old, layout) end

---------------------------------------------------------------------------
-- Layouts: swizzles and bases
---------------------------------------------------------------------------

---A swizzle `Sw<b,m,s>`: XORs the b bits from position m+s into the b bits from
---position m. A call with an integer returns the swizzled integer.
---@class cute.Swizzle
---@field num_bits integer number of bits that are read: b
---@field num_base integer lowest bit that changes: m
---@field num_shift integer distance from a changed bit up to the bit read: s
---@overload fun(x: cute.Int): cute.Int

---A basis `v@i`: the integer v times the unit vector of mode i.
---@class cute.Basis
---@field value cute.Int the factor of the unit
---@field mode integer[] the mode, as a path
---@operator mul(integer): cute.Basis
---@operator add(cute.Basis|table): table

---Makes the swizzle Sw<b,m,s>: XORs the b bits s positions above (below for
---negative s) into the b bits from position m. Without s, the two arguments are
---masks: the bits that are read, and the bits that are changed.
---
---     cute.make_swizzle(3, 3, 3)(72)  --> 64
---     cute.make_swizzle(448, 56)  --> Sw<3,3,3>
---@param b integer number of bits, or the mask of the bits read
---@param m integer lowest bit changed, or the mask of the bits changed
---@param s? integer distance up to the bits read
---@return cute.Swizzle
function cute.make_swizzle(b, m, s) end

cute.Swizzle = cute.make_swizzle

---Returns the swizzle that is applied last to the layout's values. If there is
---none, returns Sw<0,4,3>, which changes nothing.
---
---     cute.get_swizzle_portion(cute.layout "Sw<3,3,3> o 0 o 64:1")
---     --> Sw<3,3,3>
---@param x cute.Shaped
---@return cute.Swizzle
function cute.get_swizzle_portion(x) end

cute.get_swizzle = cute.get_swizzle_portion

---Returns the layout without the swizzle that is applied last to its values.
---
---     cute.get_nonswizzle_portion(cute.layout "Sw<3,3,3> o 0 o 64:1")
---     --> 64:1
---@param x cute.Shaped
---@return cute.Shaped
function cute.get_nonswizzle_portion(x) end

---Returns the unit vector of a mode, `1@i`. As a stride, it makes a layout
---return coordinates.
---
---     cute.E(0) + 2 * cute.E(1)  --> (1,2)
---@param ... integer a path: E(1, 0) is mode 0 of mode 1
---@return cute.Basis
function cute.E(...) end

---Returns the unit vector of a mode times a number, `value@mode`.
---
---     cute.ScaledBasis(3, 1) == 3 * cute.E(1)  --> true
---@param value any
---@param ... any
function cute.ScaledBasis(value, ...) end

---Makes a tuple that can be added to other tuples and to bases.
---
---     cute.ArithmeticTuple(1, 2) + cute.E(0)  --> (2,2)
---@param ... any
function cute.ArithmeticTuple(...) end

---Returns the factor v of a basis `v@i`.
---
---     cute.basis_value(3 * cute.E(1))  --> 3
---@param e cute.Basis
---@return cute.Int
function cute.basis_value(e) end

---Returns the entry of tuple t at the mode that the basis e names.
---
---     cute.basis_get(cute.E(1), {4, 8})  --> 8
---@param e cute.Basis
---@param t cute.Tuple|cute.Shaped
---@return cute.Tuple
function cute.basis_get(e, t) end

---Makes a stride over the field of two elements, for example `F9`. Its
---multiples are carry-less products; the products of several modes are XORed.
---With such strides a swizzle can be part of the layout.
---
---     f = cute.make_layout({8, 8}, {cute.F2(1), cute.F2(9)})
---     f        --> (8,8):(F1,F9)
---     f(3, 5)  --> 46
---@param v integer the bits of the stride
---@return cute.Constant
function cute.F2(v) end

return cute
-- SPDX-License-Identifier: MIT
