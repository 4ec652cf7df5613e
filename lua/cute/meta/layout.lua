---@meta cute
-- Documents layouts for editors; functions of IntTuples alone are in tuple.lua.
-- Nothing here runs; docs/layouts.md has an example of every function.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---The constants `cute._`, `cute.X`, LayoutLeft and LayoutRight.
---@class cute.Constant

---@alias cute.Int integer|cute.Value
---Nested lists of integers. Functions that rearrange modes, or that take a
---shape, accept layouts as leaves, too.
---@alias cute.Tuple cute.Int|table
---@alias cute.Coord cute.Int|cute.Constant|table
---@alias cute.Tiler cute.Int|cute.Constant|cute.Layout|table
---@alias cute.Shaped cute.Layout|cute.Tensor

---------------------------------------------------------------------------
-- Layouts: making
---------------------------------------------------------------------------

---An immutable function from coordinates to offsets. A call with a coordinate
---returns the offset. If the coordinate contains `cute._`, the call returns a
---slice: the modes that `cute._` keeps. `==` compares shapes and strides.
---
---     l = cute.layout "(8,(8,8)):(8,(1,64))"
---     l(3, 10)      --> 90
---     l(3, cute._)  --> ((8,8)):((1,64))
---@class cute.Layout
---@field shape cute.Tuple its extents
---@field stride cute.Tuple its strides; a composed layout, A o offset o B, has
---none
---@field offset cute.Tuple the offset of a composed layout, else 0
---@field swizzle cute.Swizzle? A of a composed layout, if A is a swizzle
---@field inner cute.Swizzle|cute.Layout|function|nil A of a composed layout
---@field outer cute.Layout B of a composed layout, else the layout itself
---@field is_composed boolean true for a composed layout
---@overload fun(...: cute.Coord): any
local Layout = {}

---Reports whether two layouts are equal as functions: they have the same offset
---for every coordinate. (`==` compares shapes and strides.)
---
---     cute.layout("(2,4):(1,2)"):equals(cute.layout "8:1")  --> true
---@param other cute.Layout
---@return boolean
function Layout:equals(other) end

---Returns a copy to pass to kernels. Its extents are dynamic (known at the
---launch), and so are its strides, except that of the leading mode.
---@param opts? {leading_dim: integer, divisibility: any} the leading mode; a
---divisor of the extents, for all or by mode
---@return cute.Layout
function Layout:mark_layout_dynamic(opts) end

---In a coordinate, keeps the mode in a slice. In a tiler, stands for the whole
---extent of the mode.
---
---     cute.layout "(4,8):(1,4)"(2, cute._)  --> (8):(4)
---@type cute.Constant
cute._ = nil

---In a projection, omits the mode.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.local_tile(t, {2, 99, 3}, {1, 0, 1}, {1, cute.X, 1}).layout
---     --> (2,3):(6,1)
---@type cute.Constant
cute.X = nil

---An argument of make_layout: compact strides, first mode fastest.
---@type cute.Constant
cute.LayoutLeft = nil

---An argument of make_layout: compact strides, last mode fastest.
---
---     cute.make_layout({4, 8}, cute.LayoutRight)  --> (4,8):(8,1)
---@type cute.Constant
cute.LayoutRight = nil

---Parses a layout in CuTe notation, in which layouts are also printed. If the
---argument is a layout, returns it. A shape alone gives the compact
---column-major layout. Raises [bad-notation] at the wrong character.
---
---     cute.layout "(8,(8,8)):(8,(1,64))"(3, 10)  --> 90
---@param text string|cute.Layout "(4,8):(1,4)", "Sw<3,3,3> o 0 o 64:1"
---@return cute.Layout
function cute.layout(text) end

---Parses anything in CuTe notation: an integer, tuple, layout, tiler, swizzle
---or basis.
---
---     cute.parse "(4:2,(3,5:1))"  --> (4:2,(3,5:1))
---@param text string
---@return any
function cute.parse(text) end

---Copies nested lists into a tuple. Like a shape, a tuple prints in CuTe
---notation and supports comparison and concatenation.
---
---     cute.tuple {2, {3, 4}}  --> (2,(3,4))
---@param t cute.Tuple
---@return table
function cute.tuple(t) end

---Makes the layout shape:stride. A shape alone gives a compact layout, first
---mode fastest. If the arguments are layouts, they become the modes of the
---result.
---
---     cute.make_layout({4, 8})  --> (4,8):(1,4)
---     cute.make_layout({4, 8}, cute.LayoutRight)  --> (4,8):(8,1)
---     cute.make_layout({4, 8}, {2, 16})  --> (4,8):(2,16)
---     cute.make_layout(cute.layout "4:1", cute.layout "(2,2):(4,8)")
---     --> (4,(2,2)):(1,(4,8))
---@param shape cute.Tuple|cute.Layout|cute.Swizzle extents, or the first layout
---@param stride? cute.Tuple|cute.Constant|cute.Layout strides, nested as the
---shape; cute.LayoutLeft or LayoutRight: compact, first or last mode fastest
---@param ... cute.Layout further modes
---@return cute.Layout
function cute.make_layout(shape, stride, ...) end

---Makes a compact layout: the mode with the smallest order has stride 1, and
---the others follow in increasing order. Modes of equal order overlap; then a
---note is written on standard error.
---
---     cute.make_ordered_layout({4, 8, 2}, {2, 0, 1})  --> (4,8,2):(16,1,8)
---@param shape cute.Tuple
---@param order? cute.Tuple|cute.Constant a number for each mode;
---cute.LayoutLeft or LayoutRight
---@return cute.Layout
function cute.make_ordered_layout(shape, order) end

---Makes a compact layout of the same shape. Its modes have the order of the
---given strides, the smallest stride first.
---
---     cute.make_layout_like(cute.layout "(4,8):(100,1)")  --> (4,8):(8,1)
---@param layout cute.Shaped
---@return cute.Layout
function cute.make_layout_like(layout) end

---Returns the layout of registers for a thread's part. It is compact; mode 0
---(the values of an atom) is first, and the others have the order of their
---strides. For a tensor in a kernel, allocates register memory with this
---layout.
---
---     cute.make_fragment_like(cute.layout "(2,4,8):(64,8,1)")
---     --> (2,4,8):(1,16,2)
---@param x cute.Shaped|cute.Tuple a layout or shape; a tensor
---@param dtype? any type of the registers; the tensor's own when absent
---@return cute.Layout|cute.Tensor
function cute.make_fragment_like(x, dtype) end

---Makes the layout that maps each coordinate to itself: its strides are bases.
---
---     cute.make_identity_layout({4, {2, 3}})(2, {1, 2})  --> (2,(1,2))
---@param shape cute.Tuple
---@return cute.Layout
function cute.make_identity_layout(shape) end

---Makes the layout left o offset o layout: its value at c is left(offset +
---layout(c)). The left side is a swizzle, a layout, or a Lua function. The
---function takes an integer or, if the right side returns coordinates, one
---argument for each mode.
---
---     c = cute.make_composed_layout(cute.layout "(4,5):(5,1)", 2,
---       cute.layout "(2,3):(1,2)")
---     c        --> (4,5):(5,1) o 2 o (2,3):(1,2)
---     c(1, 2)  --> 16
---@param left cute.Swizzle|cute.Layout|fun(...): cute.Int applied last
---@param offset cute.Tuple an integer, or coordinates if the right side returns
---coordinates
---@param layout cute.Shaped applied first; it has the shape
---@param options? {vector: integer|integer[]} for a function: number of
---neighbours along a mode, starting at a multiple, that are contiguous in
---memory
---@return cute.Shaped
function cute.make_composed_layout(left, offset, layout, options) end

---Returns two values: the tile that threads and values cover together, and the
---layout (thread,value) -> coordinate in this tile.
---
---     cute.make_layout_tv(cute.layout "(4,2):(2,1)",
---       cute.layout "(1,4):(4,1)")
---     --> (4,8), ((2,4),4):((16,1),4)
---@param thr cute.Layout arrangement of threads in the tile
---@param val cute.Layout arrangement of one thread's values
---@return table
---@return cute.Layout
function cute.make_layout_tv(thr, val) end

---Returns a mask of offsets: the bits of all offsets that the layout has if
---mode `mode` of `coord` varies. With a layout of a cluster, the mask selects
---the blocks that receive a TMA multicast.
---
---     cute.make_layout_image_mask(cute.layout "(2,4):(1,2)", {1, 0}, 1)
---     --> 170
---@param layout cute.Layout
---@param coord cute.Coord a coordinate with one entry for each mode
---@param mode integer the mode along which the coordinate varies
---@return integer
function cute.make_layout_image_mask(layout, coord, mode) end

---------------------------------------------------------------------------
-- Layouts: asking
---------------------------------------------------------------------------

---Returns the number of elements. A path of mode numbers selects a mode. For a
---tiled operation, returns the number of threads.
---
---     cute.size(cute.layout "(8,(8,8)):(8,(1,64))")  --> 512
---     cute.size(cute.layout "(8,(8,8)):(8,(1,64))", 1, 0)  --> 8
---@param x cute.Shaped|cute.Tuple
---@param ... integer a path, counted from 0
---@return cute.Int
function cute.size(x, ...) end

---Returns the product of all leaves, as cute.size does.
---
---     cute.product({2, {3, 4}})  --> 24
---@param x any
---@param ... any
function cute.product(x, ...) end

---Returns the number of modes. A path of mode numbers selects a mode.
---
---     cute.rank({2, {3, 4}})  --> 2
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return integer
function cute.rank(x, ...) end

---Returns the depth of the nesting: 0 for an integer, 1 for a flat tuple.
---
---     cute.depth({2, {3, 4}})  --> 2
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return integer
function cute.depth(x, ...) end

---Returns the extents, or the extents of the mode at a path.
---
---     cute.shape(cute.layout "(8,(8,8)):(8,(1,64))", 1)  --> (8,8)
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return cute.Tuple
function cute.shape(x, ...) end

---Returns the strides, or the strides of the mode at a path. Raises
---[inadmissible] for a composed layout, A o offset o B, because it has no
---strides.
---
---     cute.stride(cute.layout "(8,(8,8)):(8,(1,64))", 1)  --> (1,64)
---@param x cute.Shaped
---@param ... integer
---@return cute.Tuple
function cute.stride(x, ...) end

---Returns one more than the largest offset: the number of elements of memory
---that the layout needs.
---
---     cute.cosize(cute.layout "(4,8):(16,1)")  --> 56
---@param x cute.Shaped
---@param ... integer
---@return cute.Int
function cute.cosize(x, ...) end

---Returns one more than the largest coordinate, mode by mode, of a layout whose
---strides are bases.
---
---     cute.coshape(cute.make_identity_layout({4, 8}))  --> (4,8)
---@param x cute.Shaped
---@param ... integer
---@return cute.Tuple
function cute.coshape(x, ...) end

---Returns a tuple of zeros with the nesting of the layout's values.
---
---     cute.coprofile(cute.layout "(4,8):(1@0,1@1)")  --> (0,0)
---@param layout cute.Shaped
---@param ... integer modes
---@return any
function cute.coprofile(layout, ...) end

---Returns the largest n for which upcast(x, n) is possible: the largest number
---of neighbours that are always contiguous.
---
---     cute.max_alignment(cute.layout "(8,4):(1,16)")  --> 8
---@param x cute.Shaped|cute.Swizzle
---@return integer
function cute.max_alignment(x) end

---Reports whether every number is known at trace time; false if any is traced.
---
---     cute.is_static(cute.layout "(4,8):(1,4)")  --> true
---@param x cute.Shaped|cute.Tuple
---@return boolean
function cute.is_static(x) end

---Returns the largest number known to divide an integer; for a plain number,
---its absolute value.
---
---     cute.get_divisibility(48)  --> 48
---@param x cute.Int
---@return integer
function cute.get_divisibility(x) end

---Reports whether a mode has stride 1.
---
---     cute.is_major(1, {8, 1})  --> true
---@param mode integer counted from 0
---@param stride cute.Tuple|cute.Shaped strides, a layout or a tensor
---@return boolean
function cute.is_major(mode, stride) end

---Returns the mode of stride 1, counted from 0, or nil.
---
---     cute.leading_dim({4, 8}, {8, 1})  --> 1
---@param shape cute.Tuple|cute.Shaped a layout or tensor alone, or a shape
---@param stride? cute.Tuple of that shape
---@return integer?
function cute.leading_dim(shape, stride) end

---------------------------------------------------------------------------
-- Layouts: coordinates
---------------------------------------------------------------------------

---Returns the offset of a coordinate under a layout, or under a shape with
---strides (compact when absent). A 1-D coordinate counts colexicographically.
---
---     cute.crd2idx({1, {2, 0}}, {4, {3, 2}})  --> 9
---@param coord cute.Coord an integer, one for each mode, or nested as the shape
---@param shape cute.Tuple|cute.Shaped a layout, or a shape
---@param stride? cute.Tuple of that shape
---@return cute.Tuple
function cute.crd2idx(coord, shape, stride) end

---Returns the coordinate of an index in a shape. If the index is beyond the
---end, the coordinate of the last mode is beyond its extent.
---
---     cute.idx2crd(9, {4, {3, 2}})  --> (1,(2,0))
---@param idx cute.Tuple
---@param shape cute.Tuple
---@param stride? cute.Tuple compact when absent
---@return cute.Tuple
function cute.idx2crd(idx, shape, stride) end

---Converts a coordinate of one shape to the coordinate of another shape that
---has the same colexicographic index.
---
---     cute.crd2crd(9, {4, 6}, {2, 12})  --> (1,4)
---@param coord cute.Coord
---@param src cute.Tuple
---@param dst cute.Tuple
---@return cute.Tuple
function cute.crd2crd(coord, src, dst) end

---Returns the coordinate that follows in colexicographic order. After the last
---coordinate, returns (0,..,0,n), where n is the extent of the last mode.
---
---     cute.increment_coord({3, 1}, {4, 6})  --> (0,2)
---@param coord cute.Tuple
---@param shape cute.Tuple
---@return cute.Tuple
function cute.increment_coord(coord, shape) end

cute.increment = cute.increment_coord

---Returns the coordinate at which the layout has this offset, with the nesting
---of the shape. The layout must be one to one.
---
---     cute.get_hier_coord(cute.layout "(8,(8,8)):(8,(1,64))", 90)
---     --> (3,(2,1))
---@param layout cute.Shaped
---@param offset cute.Int
---@return cute.Tuple
function cute.get_hier_coord(layout, offset) end

---Returns the coordinate at which the layout has this offset, with one integer
---for each mode.
---
---     cute.get_flat_coord(cute.layout "(8,(8,8)):(8,(1,64))", 90)  --> (3,10)
---@param layout cute.Shaped
---@param offset cute.Int
---@return cute.Tuple
function cute.get_flat_coord(layout, offset) end

---Returns the coordinate at which the layout has this offset, as one integer.
---
---     cute.get_1d_coord(cute.layout "(8,(8,8)):(8,(1,64))", 90)  --> 83
---@param layout cute.Shaped
---@param offset cute.Int
---@return cute.Int
function cute.get_1d_coord(layout, offset) end

---Returns those modes of a layout, tensor or tuple for which the coordinate has
---`cute._`. For a layout, the offset of the other entries of the coordinate is
---dropped. The two arguments may be in either order.
---
---     cute.slice_({3, cute._}, cute.layout "(8,(8,8)):(8,(1,64))")
---     --> ((8,8)):((1,64))
---@param src cute.Shaped|cute.Tuple
---@param coord cute.Coord with `cute._` for each mode to keep
---@return any
function cute.slice_(src, coord) end

cute.slice = cute.slice_

---Returns the modes for which the coordinate does not have `cute._`. It is the
---complement of slice_.
---
---     cute.dice({3, cute._}, cute.layout "(8,(8,8)):(8,(1,64))")  --> (8):(8)
---@param src cute.Shaped|cute.Tuple
---@param coord cute.Coord
---@return any
function cute.dice(src, coord) end

---Returns a slice and the offset at which it begins.
---
---     cute.slice_and_offset({3, cute._}, cute.layout "(8,(8,8)):(8,(1,64))")
---     --> ((8,8)):((1,64)), 24
---@param coord cute.Coord
---@param layout cute.Layout
---@return cute.Layout
---@return cute.Tuple
function cute.slice_and_offset(coord, layout) end

---Moves the origin to a coordinate. For a layout, returns the unchanged layout
---and the offset of the coordinate. For a tensor, returns a tensor that begins
---at the coordinate.
---
---     cute.domain_offset({1, 2}, cute.layout "(8,(8,8)):(8,(1,64))")
---     --> (8,(8,8)):(8,(1,64)), 10
---@param coord cute.Coord
---@param x cute.Shaped
---@return cute.Shaped
---@return cute.Tuple?
function cute.domain_offset(coord, x) end

---------------------------------------------------------------------------
-- Layouts: modes
---------------------------------------------------------------------------

---Returns the mode at a path of mode numbers.
---
---     cute.get(cute.layout "(8,(8,8)):(8,(1,64))", 1, 1)  --> 8:64
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return any
function cute.get(x, ...) end

---Returns the modes with these numbers, in that order.
---
---     cute.select(cute.layout "(2,3,4):(1,2,6)", 2, 0)  --> (4,2):(6,1)
---@param x cute.Shaped|cute.Tuple
---@param ... integer
---@return any
function cute.select(x, ...) end

---Returns modes b to e-1, or to the last when e is absent.
---
---     cute.take({2, 3, 4}, 1, 3)  --> (3,4)
---@param x cute.Shaped|cute.Tuple
---@param b integer
---@param e? integer
---@return any
function cute.take(x, b, e) end

---Groups modes b to e-1, or all of them when absent, into one mode.
---
---     cute.group_modes(cute.layout "(2,3,4):(1,2,6)", 0, 2)
---     --> ((2,3),4):((1,2),6)
---@param x cute.Shaped|cute.Tuple
---@param b? integer
---@param e? integer
---@return any
function cute.group_modes(x, b, e) end

cute.group = cute.group_modes

---Removes the nesting: every leaf becomes a mode.
---
---     cute.flatten(cute.layout "(8,(8,8)):(8,(1,64))")  --> (8,8,8):(8,1,64)
---@param x cute.Shaped|cute.Tuple
---@return any
function cute.flatten(x) end

---Nests a flat tuple like a profile.
---
---     cute.unflatten({1, 2, 3}, {0, {0, 0}})  --> (1,(2,3))
---@param x cute.Shaped|cute.Tuple
---@param profile cute.Tuple only its nesting is used
---@return any
function cute.unflatten(x, profile) end

---Appends mode e. With a rank, appends e repeatedly until the result has this
---rank (1:0 when e is absent).
---
---     cute.append(cute.layout "4:1", cute.layout "3:4")  --> (4,3):(1,4)
---     cute.append(cute.layout "4:1", nil, 3)  --> (4,1,1):(1,0,0)
---@param x cute.Shaped|cute.Tuple
---@param e? any the mode
---@param rank? integer number of modes of the result
---@return any
function cute.append(x, e, rank) end

---Prepends mode e. With a rank, prepends e repeatedly until the result has this
---rank.
---
---     cute.prepend(cute.layout "4:1", cute.layout "3:4")  --> (3,4):(4,1)
---@param x cute.Shaped|cute.Tuple
---@param e? any the mode
---@param rank? integer number of modes of the result
---@return any
function cute.prepend(x, e, rank) end

---Replaces mode i by e.
---
---     cute.replace({2, 3}, 1, {4, 5})  --> (2,(4,5))
---@param x cute.Shaped|cute.Tuple
---@param i integer
---@param e any
---@return any
function cute.replace(x, i, e) end

---Groups the first modes of all arguments into one, the second modes into one,
---and so on.
---
---     cute.zip({2, 3}, {4, 5}, {6, 7})  --> ((2,4,6),(3,5,7))
---@param ... cute.Shaped|cute.Tuple
---@return any
function cute.zip(...) end

---Returns the layout with the given shape that has the same offsets at 1-D
---coordinates. Raises [inadmissible] if there is none.
---
---     cute.with_shape(cute.layout "12:2", {3, 4})  --> (3,4):(2,6)
---@param layout cute.Shaped
---@param ... cute.Tuple a shape, or its modes one by one
---@return cute.Shaped
function cute.with_shape(layout, ...) end

---------------------------------------------------------------------------
-- Layouts: algebra
---------------------------------------------------------------------------

---Simplifies a layout to the fewest modes that keep the offset of every 1-D
---coordinate. With a profile, simplifies the part at each leaf of the profile
---separately. For a shape, returns its size.
---
---     cute.coalesce(cute.layout "(2,(1,6)):(1,(6,2))")  --> 12:1
---     cute.coalesce(cute.layout "(2,(1,6)):(1,(6,2))", {1, 1})
---     --> (2,6):(1,2)
---@param layout cute.Shaped|cute.Tuple
---@param profile? cute.Tuple
---@return any
function cute.coalesce(layout, profile) end

---Removes modes of stride 0 or extent 1 and coalesces. The result has the same
---set of offsets, each offset once.
---
---     cute.filter(cute.layout "(2,4,1):(0,1,3)")  --> 4:1
---@param layout cute.Shaped
---@param profile? cute.Tuple
---@return cute.Shaped
function cute.filter(layout, profile) end

---Replaces each extent by 1 if its stride is 0. If x is a tuple of strides, t
---holds the extents.
---
---     cute.filter_zeros(cute.layout "(2,4):(0,1)")  --> (1,4):(0,1)
---@param x cute.Shaped|cute.Tuple
---@param t? cute.Tuple extents, if x is a tuple of strides
---@return any
function cute.filter_zeros(x, t) end

---Returns the layout R with R(c) = a(b(c)), for every coordinate c of b. With
---three arguments, the second is an offset, as in make_composed_layout. A tuple
---on the right composes mode by mode. If no layout has these values, raises
---[inadmissible] with a counter-example.
---
---     cute.composition(cute.layout "(6,2):(8,2)", cute.layout "(4,3):(3,1)")
---     --> ((2,2),3):((24,2),8)
---     cute.composition(cute.layout "(4,8):(1,4)", {2, cute._})
---     --> (2,8):(1,4)
---@param a cute.Shaped|cute.Swizzle layout, tensor or swizzle
---@param b cute.Tiler|cute.Swizzle layout, swizzle or tiler; an offset if c is
---given
---@param c? cute.Layout
---@return any
function cute.composition(a, b, c) end

---Returns the layout of the offsets that `layout` does not use, in ascending
---order. It fills the gaps between the modes. Beyond the last mode it continues
---in steps of the layout's extent up to cotarget. If strides do not divide a
---gap, part of the gap stays unused.
---
---     cute.complement(cute.layout "(2,2):(1,6)", 24)  --> (3,2):(2,12)
---@param layout cute.Shaped
---@param cotarget? cute.Tuple|cute.Shaped an integer, a shape, or a layout for
---its shape
---@return cute.Layout
function cute.complement(layout, cotarget) end

---Returns the largest layout r with layout(r(i)) = i for all i.
---
---     cute.right_inverse(cute.layout "(4,8):(8,1)")  --> (8,4):(4,1)
---@param layout cute.Layout
---@return cute.Layout
function cute.right_inverse(layout) end

---Returns the layout r with r(layout(i)) = i for all i.
---
---     cute.left_inverse(cute.layout "(4,8):(1,5)")  --> (5,8):(1,4)
---@param layout cute.Layout
---@return cute.Layout
function cute.left_inverse(layout) end

---Returns a layout whose values are the 1-D coordinates at which `layout` has
---offset 0.
---
---     cute.nullspace(cute.layout "(2,4):(0,1)")  --> 2:1
---@param layout cute.Layout
---@return cute.Layout
function cute.nullspace(layout) end

---Returns the layout whose value at i is a(i) + b(i), if there is one.
---
---     cute.layout_add(cute.layout "(4,3):(1,4)", cute.layout "(4,3):(3,1)")
---     --> (4,3):(4,5)
---@param a cute.Shaped
---@param b cute.Shaped
---@return cute.Layout
function cute.layout_add(a, b) end

---Returns a layout of 1-D coordinates that a and b have in common. Each of its
---modes is inside one mode of a and inside one mode of b. Any layout with shape
---a or shape b has a constant stride along each of these modes.
---
---     cute.greatest_common_domain({5, 3, 4}, {10, 6})  --> (5,2):(1,30)
---@param a cute.Tuple|cute.Shaped
---@param b cute.Tuple|cute.Shaped
---@return cute.Layout
function cute.greatest_common_domain(a, b) end

---Returns the longest layout r with a(r(i)) = b(r(i)) = i for all i. Its values
---are the 1-D coordinates of a run that is contiguous in both layouts.
---
---     cute.max_common_layout(cute.layout "(4,8):(1,8)",
---       cute.layout "(4,8):(1,4)")
---     --> 4:1
---@param a cute.Shaped
---@param b cute.Shaped
---@return cute.Layout
function cute.max_common_layout(a, b) end

---Returns the number of elements of max_common_layout. This is the width of the
---widest vector that a copy between the two layouts can move.
---
---     cute.max_common_vector(cute.layout "(4,8):(1,8)",
---       cute.layout "(4,8):(1,4)")
---     --> 4
---@param a cute.Shaped
---@param b cute.Shaped
---@return integer
function cute.max_common_vector(a, b) end

---Distributes n elements over the modes of a shape. Returns a layout whose
---values are indices into the shape.
---
---     cute.domain_distribute({15, 14}, 6)  --> (3,2):(1,15)
---@param shape cute.Tuple|cute.Shaped
---@param n integer
---@return cute.Layout
function cute.domain_distribute(shape, n) end

-- Functions of cute that are also methods of layouts.
Layout.append = cute.append
Layout.blocked_product = cute.blocked_product
Layout.coalesce = cute.coalesce
Layout.complement = cute.complement
Layout.composition = cute.composition
Layout.coshape = cute.coshape
Layout.cosize = cute.cosize
Layout.depth = cute.depth
Layout.dice = cute.dice
Layout.downcast = cute.downcast
Layout.filter = cute.filter
Layout.filter_zeros = cute.filter_zeros
Layout.flat_divide = cute.flat_divide
Layout.flat_product = cute.flat_product
Layout.flatten = cute.flatten
Layout.get = cute.get
Layout.get_1d_coord = cute.get_1d_coord
Layout.get_flat_coord = cute.get_flat_coord
Layout.get_hier_coord = cute.get_hier_coord
Layout.get_nonswizzle_portion = cute.get_nonswizzle_portion
Layout.get_swizzle_portion = cute.get_swizzle_portion
Layout.group = cute.group
Layout.group_modes = cute.group_modes
Layout.is_static = cute.is_static
Layout.left_inverse = cute.left_inverse
Layout.logical_divide = cute.logical_divide
Layout.logical_product = cute.logical_product
Layout.max_alignment = cute.max_alignment
Layout.nullspace = cute.nullspace
Layout.prepend = cute.prepend
Layout.raked_product = cute.raked_product
Layout.rank = cute.rank
Layout.replace = cute.replace
Layout.right_inverse = cute.right_inverse
Layout.select = cute.select
Layout.size = cute.size
Layout.take = cute.take
Layout.tile_to_shape = cute.tile_to_shape
Layout.tiled_divide = cute.tiled_divide
Layout.tiled_product = cute.tiled_product
Layout.unflatten = cute.unflatten
Layout.upcast = cute.upcast
Layout.with_shape = cute.with_shape
Layout.zipped_divide = cute.zipped_divide
Layout.zipped_product = cute.zipped_product

return cute
-- SPDX-License-Identifier: MIT
