---@meta cute
-- Comments of tiles of layouts, swizzles and bases. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Layouts: tiles
---------------------------------------------------------------------------

---Splits into (tile,rest): by a layout as a whole, by a tuple mode by mode. An
---extent that a tile does not divide is rounded up. Raises [inadmissible] where
---elements are left out.
---
---     cute.logical_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> ((4,2),(3,4)):((12,48),(1,3))
---@param layout cute.Shaped
---@param tiler cute.Tiler a layout or extent; a tuple of them, `_` for a whole
---mode
---@return cute.Shaped
function cute.logical_divide(layout, tiler) end

---Splits as logical_divide; the result is ((tile modes),(rest modes)).
---
---     cute.zipped_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> ((4,3),(2,4)):((12,1),(48,3))
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.zipped_divide(layout, tiler) end

---Splits as logical_divide; the result is ((tile modes),rest,rest,..).
---
---     cute.tiled_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> ((4,3),2,4):((12,1),48,3)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tiled_divide(layout, tiler) end

---Splits as logical_divide; the result is (tile,tile,..,rest,rest,..).
---
---     cute.flat_divide(cute.layout "(8,12):(12,1)", {4, 3})
---     --> (4,3,2,4):(12,1,48,3)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.flat_divide(layout, tiler) end

---The layout and as many copies of it, side by side in memory, as the tiler has
---elements: (layout,copies). A tiler of stride 0 repeats the layout. Raises
---[inadmissible] where no layout has the copies.
---
---     cute.logical_product(cute.layout "(2,2):(2,1)", cute.layout "6:1")
---     --> ((2,2),6):((2,1),4)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.logical_product(layout, tiler) end

---A product as logical_product; of a tuple the result is ((modes),(copies)).
---
---     cute.zipped_product(cute.layout "(2,2):(2,1)",
---       cute.layout "(3,4):(1,3)")
---     --> ((2,2),(3,4)):((2,1),(4,12))
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.zipped_product(layout, tiler) end

---A product as logical_product; the result is ((modes),copies,copies,..).
---
---     cute.tiled_product(cute.layout "(2,2):(2,1)", cute.layout "(3,4):(1,3)")
---     --> ((2,2),3,4):((2,1),4,12)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tiled_product(layout, tiler) end

---A product as logical_product; the result is (mode,..,copies,..).
---
---     cute.flat_product(cute.layout "(2,2):(2,1)", cute.layout "(3,4):(1,3)")
---     --> (2,2,3,4):(2,1,4,12)
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.flat_product(layout, tiler) end

---Copies of the layout as blocks, mode by mode: (block,copies) in each mode.
---
---     cute.blocked_product(cute.layout "(2,2):(2,1)",
---       cute.layout "(3,4):(1,3)")
---     --> ((2,3),(2,4)):((2,4),(1,12))
---@param layout cute.Shaped
---@param t cute.Layout|cute.Tuple how the copies lie
---@return cute.Shaped
function cute.blocked_product(layout, t) end

---Copies of the layout interleaved element by element, mode by mode:
---(copies,block) in each mode.
---
---     cute.raked_product(cute.layout "(2,2):(2,1)", cute.layout "(3,4):(1,3)")
---     --> ((3,2),(4,2)):((4,2),(12,1))
---@param layout cute.Shaped
---@param t cute.Layout|cute.Tuple how the copies lie
---@return cute.Shaped
function cute.raked_product(layout, t) end

---The modes of a logical divide or product sorted as zipped_divide has them.
---
---     cute.tile_unzip(cute.layout "((4,2),(3,4)):((12,48),(1,3))", {4, 3})
---     --> ((4,3),(2,4)):((12,1),(48,3))
---@param layout cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tile_unzip(layout, tiler) end

---Copies of a block, one behind the other in memory, that fill a shape. A
---swizzle of the block goes along. Modes of equal order overlap; a note on
---standard error says so.
---
---     cute.tile_to_shape(cute.layout "(2,2):(2,1)", {4, 6})
---     --> ((2,2),(2,3)):((2,4),(1,8))
---     cute.tile_to_shape(cute.layout "(2,2):(2,1)", {4, 6}, {1, 0})
---     --> ((2,2),(2,3)):((2,12),(1,4))
---@param block cute.Layout what is repeated
---@param shape cute.Tuple multiples of the block's, filled up to
---@param order? cute.Tuple|cute.Constant in which order modes are filled; the
---first one first when absent
---@return cute.Layout
function cute.tile_to_shape(block, shape, order) end

---How many tiles cover a shape, mode by mode, the last one perhaps in part.
---
---     cute.ceil_div({8, 12}, {4, 5})  --> (2,3)
---@param shape cute.Tuple|cute.Shaped
---@param tiler cute.Tuple|cute.Layout
---@return cute.Tuple
function cute.ceil_div(shape, tiler) end

---The layout of elements n times as wide: n neighbours become one. Raises
---[inadmissible] where n neighbours do not lie together.
---
---     cute.upcast(cute.layout "(8,4):(1,8)", 4)  --> (2,4):(1,2)
---@param layout cute.Layout|cute.Swizzle
---@param n integer
---@return any
function cute.upcast(layout, n) end

---The layout of elements n times as narrow: one becomes n neighbours.
---
---     cute.downcast(cute.layout "(2,4):(1,2)", 4)  --> (8,4):(1,8)
---@param layout cute.Layout|cute.Swizzle
---@param n integer
---@return any
function cute.downcast(layout, n) end

---A layout of elements of one width as that of another: upcast or downcast.
---recast_layout(layout, old, new), C++'s order, means the same.
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

---`Sw<b,m,s>`: XORs b bits, s places up, into the bits from m on. Called with
---an integer it gives the swizzled one.
---@class cute.Swizzle
---@field num_bits integer how many bits are read: b
---@field num_base integer the lowest bit that changes: m
---@field num_shift integer how far up the bits are read: s
---@overload fun(x: cute.Int): cute.Int

---`v@i`: the unit of a mode, times an integer.
---@class cute.Basis
---@field value cute.Int what the unit is multiplied by
---@field mode integer[] which mode it is, as a path
---@operator mul(integer): cute.Basis
---@operator add(cute.Basis|table): table

---The swizzle Sw<b,m,s>: XORs b bits, s places up (down for negative s), into
---the bits from m on. Of two numbers they are masks: bits read, bits changed.
---
---     cute.make_swizzle(3, 3, 3)(72)  --> 64
---     cute.make_swizzle(448, 56)  --> Sw<3,3,3>
---@param b integer how many bits, or the mask of those read
---@param m integer the lowest bit changed, or the mask of those changed
---@param s? integer how far up the bits are read
---@return cute.Swizzle
function cute.make_swizzle(b, m, s) end

cute.Swizzle = cute.make_swizzle

---The swizzle that values go through last; Sw<0,4,3>, which changes nothing,
---where there is none.
---
---     cute.get_swizzle_portion(cute.layout "Sw<3,3,3> o 0 o 64:1")
---     --> Sw<3,3,3>
---@param x cute.Shaped
---@return cute.Swizzle
function cute.get_swizzle_portion(x) end

cute.get_swizzle = cute.get_swizzle_portion

---The layout without the swizzle that its values go through last.
---
---     cute.get_nonswizzle_portion(cute.layout "Sw<3,3,3> o 0 o 64:1")
---     --> 64:1
---@param x cute.Shaped
---@return cute.Shaped
function cute.get_nonswizzle_portion(x) end

---The unit of a mode, `1@i`: a stride that is one makes a layout give
---coordinates.
---
---     cute.E(0) + 2 * cute.E(1)  --> (1,2)
---@param ... integer a path: E(1, 0) is mode 0 of mode 1
---@return cute.Basis
function cute.E(...) end

---The unit of a mode times a number, `value@mode`.
---
---     cute.ScaledBasis(3, 1) == 3 * cute.E(1)  --> true
---@param value any
---@param ... any
function cute.ScaledBasis(value, ...) end

---A tuple that adds up with others and with bases.
---
---     cute.ArithmeticTuple(1, 2) + cute.E(0)  --> (2,2)
---@param ... any
function cute.ArithmeticTuple(...) end

---The number that the unit of a basis is multiplied by.
---
---     cute.basis_value(3 * cute.E(1))  --> 3
---@param e cute.Basis
---@return cute.Int
function cute.basis_value(e) end

---The entry of a tuple that a basis points at.
---
---     cute.basis_get(cute.E(1), {4, 8})  --> 8
---@param e cute.Basis
---@param t cute.Tuple|cute.Shaped
---@return cute.Tuple
function cute.basis_get(e, t) end

---A stride of the field of two elements, written `F9`: its multiples are
---products without carries, and those of several modes are XORed. A swizzle of
---a whole layout is one of its strides that way.
---
---     f = cute.make_layout({8, 8}, {cute.F2(1), cute.F2(9)})
---     f        --> (8,8):(F1,F9)
---     f(3, 5)  --> 46
---@param v integer the stride's bits
---@return cute.Constant
function cute.F2(v) end

return cute
