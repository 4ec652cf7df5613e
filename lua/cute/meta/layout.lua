---@meta cute
-- Annotations of layouts for the Lua language server; those of IntTuples alone
-- are in tuple.lua. Nothing here runs; docs/layouts.md has an example of
-- every function.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---A traced scalar of a kernel.
---@class cute.Value

---`cute._`, `cute.X`, LayoutLeft, LayoutRight.
---@class cute.Constant

---`v@i`: a unit of a mode, times an integer.
---@class cute.Basis
---@field value cute.Int
---@field mode integer[]
---@operator mul(integer): cute.Basis
---@operator add(cute.Basis|table): table

---@alias cute.Int integer|cute.Value
---Nested lists of integers; what moves modes about, and what asks for a
---shape, takes layouts as leaves, too.
---@alias cute.Tuple cute.Int|table
---@alias cute.Coord cute.Int|cute.Constant|table
---@alias cute.Tiler cute.Int|cute.Constant|cute.Layout|table
---@alias cute.Shaped cute.Layout|cute.Tensor

---`Sw<b,m,s>`; called with an integer it gives the swizzled one.
---@class cute.Swizzle
---@field num_bits integer
---@field num_base integer
---@field num_shift integer
---@overload fun(x: cute.Int): cute.Int

---A function from coordinates to offsets; never changes. Called with a
---coordinate it evaluates; with `cute._` in it, it gives the slice.
---@class cute.Layout
---@field shape cute.Tuple
---@field stride cute.Tuple not where values go through another layout
---@field offset cute.Tuple of a composed layout, else 0
---@field swizzle cute.Swizzle? of a layout that goes through one swizzle alone
---@field inner cute.Swizzle|cute.Layout|function|nil left side, if composed
---@field outer cute.Layout right side of a composed layout; itself of others
---@field is_composed boolean
---@overload fun(...: cute.Coord): any
local Layout = {}

---Equal as functions (`==` compares the form).
---@param other cute.Layout
---@return boolean
function Layout:equals(other) end

---A copy whose extents, and strides other than the leading one, are dynamic
---where it is an argument of a kernel.
---@param opts? {leading_dim: integer, divisibility: any}
---@return cute.Layout
function Layout:mark_layout_dynamic(opts) end

---`F9`: a stride whose multiples are carry-less and add up by XOR.
---@param v integer
---@return cute.Constant
function cute.F2(v) end

---Keeps a mode in a slice; any extent in a tiler.
---@type cute.Constant
cute._ = nil

---Leaves a mode out of a projection.
---@type cute.Constant
cute.X = nil

---First mode fastest.
---@type cute.Constant
cute.LayoutLeft = nil

---Last mode fastest.
---@type cute.Constant
cute.LayoutRight = nil

---Reads CuTe notation.
---@param text string|cute.Layout
---@return cute.Layout
function cute.layout(text) end

---Reads an integer, tuple, layout, tiler or swizzle.
---@param text string
---@return any
function cute.parse(text) end

---A copy of a tuple that prints in CuTe notation.
---@param t cute.Tuple
---@return table
function cute.tuple(t) end

---shape:stride, compact by default; or layouts side by side.
---@param shape cute.Tuple|cute.Layout|cute.Swizzle
---@param stride? cute.Tuple|cute.Constant|cute.Layout
---@param ... cute.Layout
---@return cute.Layout
function cute.make_layout(shape, stride, ...) end

---Compact, the mode of smallest order first.
---@param shape cute.Tuple
---@param order? cute.Tuple|cute.Constant
---@return cute.Layout
function cute.make_ordered_layout(shape, order) end

---Compact, in the order of the strides.
---@param l cute.Shaped
---@return cute.Layout
function cute.make_layout_like(l) end

---As make_layout_like with mode 0 first.
---@param l cute.Shaped|cute.Tuple
---@return cute.Layout
function cute.make_fragment_like(l) end

---Maps coordinates to themselves.
---@param shape cute.Tuple
---@return cute.Layout
function cute.make_identity_layout(shape) end

---left o offset o l: its value at c is left(offset + l(c)).
---@param left cute.Swizzle|cute.Layout|fun(...): cute.Int a Lua function gets
---an integer, or each mode of coordinates
---@param offset cute.Tuple an integer, or coordinates where l gives these
---@param l cute.Shaped
---@param options? {vector: integer|integer[]} of a function: how many
---neighbours, from a multiple on, are so in memory (by mode)
---@return cute.Shaped
function cute.make_composed_layout(left, offset, l, options) end

---Tile shape, and (thread,value) -> coordinate in it.
---@param thr cute.Layout
---@param val cute.Layout
---@return table
---@return cute.Layout
function cute.make_layout_tv(thr, val) end

---A bit for every offset reached along a mode.
---@param l cute.Layout
---@param coord cute.Coord
---@param mode integer
---@return integer
function cute.make_layout_image_mask(l, coord, mode) end

---Sw<b,m,s>, or from the masks of bits read and changed.
---@param b integer
---@param m integer
---@param s? integer
---@return cute.Swizzle
function cute.make_swizzle(b, m, s) end

---The unit of a mode.
---@param ... integer
---@return cute.Basis
function cute.E(...) end

---The integer of a basis.
---@param e cute.Basis
---@return cute.Int
function cute.basis_value(e) end

---The entry of t that a basis points at.
---@param e cute.Basis
---@param t cute.Tuple|cute.Shaped
---@return cute.Tuple
function cute.basis_get(e, t) end

---Number of elements, of a mode when modes are given.
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return cute.Int
function cute.size(x, ...) end

---Number of modes.
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return integer
function cute.rank(x, ...) end

---Levels of nesting.
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return integer
function cute.depth(x, ...) end

---The shape, of a mode when modes are given.
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return cute.Tuple
function cute.shape(x, ...) end

---The strides, of a mode when modes are given.
---@param x cute.Shaped
---@param ... integer
---@return cute.Tuple
function cute.stride(x, ...) end

---One more than the largest offset.
---@param x cute.Shaped
---@param ... integer
---@return cute.Int
function cute.cosize(x, ...) end

---The same as a tuple, for basis strides.
---@param x cute.Shaped
---@param ... integer
---@return cute.Tuple
function cute.coshape(x, ...) end

---The largest N that upcast takes.
---@param x cute.Shaped|cute.Swizzle
---@return integer
function cute.max_alignment(x) end

---Is nothing traced in it?
---@param x cute.Shaped|cute.Tuple
---@return boolean
function cute.is_static(x) end

---What is known to divide an integer.
---@param x cute.Int
---@return integer
function cute.get_divisibility(x) end

---The swizzle that values go through last; Sw<0,4,3> without one.
---@param x cute.Shaped
---@return cute.Swizzle
function cute.get_swizzle_portion(x) end

---The layout without the swizzle that its values go through last.
---@param x cute.Shaped
---@return cute.Shaped
function cute.get_nonswizzle_portion(x) end

---Offset of a coordinate.
---@param coord cute.Coord
---@param shape cute.Tuple|cute.Shaped
---@param stride? cute.Tuple
---@return cute.Tuple
function cute.crd2idx(coord, shape, stride) end

---Coordinate of an index; without strides the last mode has no end.
---@param idx cute.Tuple
---@param shape cute.Tuple
---@param stride? cute.Tuple
---@return cute.Tuple
function cute.idx2crd(idx, shape, stride) end

---A coordinate of one shape as that of another.
---@param coord cute.Coord
---@param src cute.Tuple
---@param dst cute.Tuple
---@return cute.Tuple
function cute.crd2crd(coord, src, dst) end

---The next coordinate, in colexicographic order; the last: (0,..,0,n).
---@param coord cute.Tuple
---@param shape cute.Tuple
---@return cute.Tuple
function cute.increment_coord(coord, shape) end

---The coordinate with that offset, of a compact layout.
---@param l cute.Shaped
---@param offset cute.Int
---@return cute.Tuple
function cute.get_hier_coord(l, offset) end

---The same, one integer a mode.
---@param l cute.Shaped
---@param offset cute.Int
---@return cute.Tuple
function cute.get_flat_coord(l, offset) end

---The same, as one integer.
---@param l cute.Shaped
---@param offset cute.Int
---@return cute.Int
function cute.get_1d_coord(l, offset) end

---What `_` keeps; source and coordinate in either order.
---@param src cute.Shaped|cute.Tuple
---@param coord cute.Coord
---@return any
function cute.slice_(src, coord) end

---What `_` does not keep.
---@param src cute.Shaped|cute.Tuple
---@param coord cute.Coord
---@return any
function cute.dice(src, coord) end

---The slice and where it begins.
---@param coord cute.Coord
---@param l cute.Layout
---@return cute.Layout
---@return cute.Tuple
function cute.slice_and_offset(coord, l) end

---The same layout with its origin at coord.
---@param coord cute.Coord
---@param l cute.Shaped
---@return cute.Shaped
---@return cute.Tuple?
function cute.domain_offset(coord, l) end

---A mode, by a path of mode numbers.
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return any
function cute.get(x, ...) end

---The modes with these numbers.
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return any
function cute.select(x, ...) end

---Modes b to e-1.
---@param x cute.Shaped|cute.Tuple
---@param b integer
---@param e? integer
---@return any
function cute.take(x, b, e) end

---Modes b to e-1 become one.
---@param x cute.Shaped|cute.Tuple
---@param b? integer
---@param e? integer
---@return any
function cute.group_modes(x, b, e) end

---Without nesting.
---@param x cute.Shaped|cute.Tuple
---@return any
function cute.flatten(x) end

---Nested as profile.
---@param x cute.Shaped|cute.Tuple
---@param profile cute.Tuple
---@return any
function cute.unflatten(x, profile) end

---With one more mode, or as many as rank needs.
---@param x cute.Shaped|cute.Tuple
---@param e? any
---@param rank? integer
---@return any
function cute.append(x, e, rank) end

---The same, in front.
---@param x cute.Shaped|cute.Tuple
---@param e? any
---@param rank? integer
---@return any
function cute.prepend(x, e, rank) end

---Mode i becomes e.
---@param x cute.Shaped|cute.Tuple
---@param i integer
---@param e any
---@return any
function cute.replace(x, i, e) end

---The first modes of all, the second ones, ..
---@param a cute.Shaped|cute.Tuple
---@param ... cute.Layout|cute.Tuple
---@return any
function cute.zip(a, ...) end

---The same elements under another shape.
---@param l cute.Shaped
---@param ... cute.Tuple
---@return cute.Shaped
function cute.with_shape(l, ...) end

---The same function with the fewest modes, or size with the fewest extents.
---@param l cute.Shaped|cute.Tuple
---@param profile? cute.Tuple
---@return any
function cute.coalesce(l, profile) end

---Without modes of stride 0 or extent 1.
---@param l cute.Shaped
---@param profile? cute.Tuple
---@return cute.Shaped
function cute.filter(l, profile) end

---Extent 1 where the stride (or the guide) is 0.
---@param x cute.Shaped|cute.Tuple
---@param t? cute.Tuple
---@return any
function cute.filter_zeros(x, t) end

---a after b: r(c) = a(b(c)); of three the second is an offset, as
---make_composed_layout has it.
---@param a cute.Shaped|cute.Swizzle
---@param b cute.Tiler|cute.Swizzle
---@param c? cute.Layout
---@return any
function cute.composition(a, b, c) end

---What l leaves free below cotarget: of coordinates mode by mode, cotarget
---having as many.
---@param l cute.Shaped
---@param cotarget? cute.Tuple|cute.Shaped
---@return cute.Layout
function cute.complement(l, cotarget) end

---a(i) + b(i), where that is a layout.
---@param a cute.Shaped
---@param b cute.Shaped
---@return cute.Layout
function cute.layout_add(a, b) end

---The factors by which both shapes count, at the indices where they do.
---@param a cute.Tuple|cute.Shaped
---@param b cute.Tuple|cute.Shaped
---@return cute.Layout
function cute.greatest_common_domain(a, b) end

---Zeros, nested as the values of l.
---@param l cute.Shaped
---@param ... integer modes
---@return any
function cute.coprofile(l, ...) end

---l(r(i)) = i
---@param l cute.Layout
---@return cute.Layout
function cute.right_inverse(l) end

---r(l(i)) = i
---@param l cute.Layout
---@return cute.Layout
function cute.left_inverse(l) end

---Coordinates of offset 0.
---@param l cute.Layout
---@return cute.Layout
function cute.nullspace(l) end

---The longest run on which both are contiguous.
---@param a cute.Shaped
---@param b cute.Shaped
---@return cute.Layout
function cute.max_common_layout(a, b) end

---Its length.
---@param a cute.Shaped
---@param b cute.Shaped
---@return integer
function cute.max_common_vector(a, b) end

---n elements spread over a shape.
---@param shape cute.Tuple|cute.Shaped
---@param n integer
---@return cute.Layout
function cute.domain_distribute(shape, n) end

---(tile,rest)
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.logical_divide(l, tiler) end

---((tiles),(rests))
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.zipped_divide(l, tiler) end

---((tiles),rest,...)
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tiled_divide(l, tiler) end

---(tile,...,rest,...)
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.flat_divide(l, tiler) end

---l, and as many copies as the tiler has elements.
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.logical_product(l, tiler) end

---l, and as many copies as the tiler has elements.
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.zipped_product(l, tiler) end

---l, and as many copies as the tiler has elements.
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tiled_product(l, tiler) end

---l, and as many copies as the tiler has elements.
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.flat_product(l, tiler) end

---((tiles),(rests)) of a logical divide or product.
---@param l cute.Shaped
---@param tiler cute.Tiler
---@return cute.Shaped
function cute.tile_unzip(l, tiler) end

---Copies of l side by side, mode by mode.
---@param l cute.Shaped
---@param t cute.Layout|cute.Tuple
---@return cute.Shaped
function cute.blocked_product(l, t) end

---Copies of l interleaved, mode by mode.
---@param l cute.Shaped
---@param t cute.Layout|cute.Tuple
---@return cute.Shaped
function cute.raked_product(l, t) end

---Copies of block that fill a shape.
---@param block cute.Layout
---@param shape cute.Tuple
---@param order? cute.Tuple|cute.Constant
---@return cute.Layout
function cute.tile_to_shape(block, shape, order) end

---Tiles needed, element by element.
---@param shape cute.Tuple|cute.Shaped
---@param tiler cute.Tuple|cute.Layout
---@return cute.Tuple
function cute.ceil_div(shape, tiler) end

---n elements become one.
---@param l cute.Layout|cute.Swizzle
---@param n integer
---@return any
function cute.upcast(l, n) end

---One element becomes n.
---@param l cute.Layout|cute.Swizzle
---@param n integer
---@return any
function cute.downcast(l, n) end

---From elements of old to new bits (or types).
---@param new any
---@param old any
---@param l cute.Layout
---@return cute.Layout
function cute.recast_layout(new, old, l) end

-- The same as methods of layouts.
Layout.size = cute.size
Layout.rank = cute.rank
Layout.depth = cute.depth
Layout.cosize = cute.cosize
Layout.coshape = cute.coshape
Layout.max_alignment = cute.max_alignment
Layout.is_static = cute.is_static
Layout.get_swizzle_portion = cute.get_swizzle_portion
Layout.get_nonswizzle_portion = cute.get_nonswizzle_portion
Layout.get_hier_coord = cute.get_hier_coord
Layout.get_flat_coord = cute.get_flat_coord
Layout.get_1d_coord = cute.get_1d_coord
Layout.dice = cute.dice
Layout.get = cute.get
Layout.select = cute.select
Layout.take = cute.take
Layout.group_modes = cute.group_modes
Layout.flatten = cute.flatten
Layout.unflatten = cute.unflatten
Layout.append = cute.append
Layout.prepend = cute.prepend
Layout.replace = cute.replace
Layout.with_shape = cute.with_shape
Layout.coalesce = cute.coalesce
Layout.filter = cute.filter
Layout.filter_zeros = cute.filter_zeros
Layout.composition = cute.composition
Layout.complement = cute.complement
Layout.right_inverse = cute.right_inverse
Layout.left_inverse = cute.left_inverse
Layout.nullspace = cute.nullspace
Layout.logical_divide = cute.logical_divide
Layout.zipped_divide = cute.zipped_divide
Layout.tiled_divide = cute.tiled_divide
Layout.flat_divide = cute.flat_divide
Layout.logical_product = cute.logical_product
Layout.zipped_product = cute.zipped_product
Layout.tiled_product = cute.tiled_product
Layout.flat_product = cute.flat_product
Layout.blocked_product = cute.blocked_product
Layout.raked_product = cute.raked_product
Layout.tile_to_shape = cute.tile_to_shape
Layout.upcast = cute.upcast
Layout.downcast = cute.downcast

---Runs f, prints the steps that the algebra took, and returns what f did.
---@generic T
---@param f fun(): T
---@param out? fun(line: string)
---@return T
function cute.explain(f, out) end

---f of every leaf, in the same nesting.
---@param f fun(...): any
---@param t cute.Tuple
---@param ... cute.Tuple of the same nesting
---@return cute.Tuple
function cute.transform_leaf(f, t, ...) end

---The first mode for which f is true, or nil.
---@param t cute.Tuple
---@param f fun(x: any): boolean
---@return integer?
function cute.find_if(t, f) end

---The modes of all that f returns.
---@param t cute.Tuple
---@param f fun(x: any, ...: any): table
---@param ... cute.Tuple passed along, mode by mode
---@return table
function cute.filter_tuple(t, f, ...) end

---Iterates over the coordinates of a shape, first mode fastest.
---@param shape cute.Tuple
---@return fun(): cute.Tuple
function cute.coords(shape) end

---CuTe notation of anything that has it.
---@param x any
---@return string
function cute.pretty_str(x) end

---Bytes that elements of a type take under a layout, or a tensor's own.
---@param dtype any or a tensor, alone
---@param layout? cute.Shaped|cute.Tuple
---@return integer
function cute.size_in_bytes(dtype, layout) end

return cute
