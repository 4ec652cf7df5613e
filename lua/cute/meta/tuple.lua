---@meta cute
-- Annotations of IntTuples for the Lua language server. Nothing here runs;
-- docs/layouts.md has an example of every function.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---Size of each mode.
---@param t cute.Tuple
---@return cute.Tuple
function cute.product_each(t) end

---Sizes at the terminals of guide.
---@param t cute.Tuple
---@param guide cute.Tuple
---@return cute.Tuple
function cute.product_like(t, guide) end

---Flat, a tuple even of an integer.
---@param t cute.Tuple
---@return table
function cute.flatten_to_tuple(t) end

---A tuple, of an integer too.
---@param t cute.Tuple
---@return table
function cute.wrap(t) end

---Without tuples of one.
---@param t cute.Tuple
---@return cute.Tuple
function cute.unwrap(t) end

---Modes in reverse.
---@param t cute.Tuple
---@return cute.Tuple
function cute.reverse(t) end

---The bases of every leaf.
---@param t cute.Tuple
---@return cute.Tuple
function cute.make_basis_like(t) end

---The first leaf.
---@param t cute.Tuple
---@return any
function cute.front(t) end

---The last leaf.
---@param t cute.Tuple
---@return any
function cute.back(t) end

---All leaves.
---@param t cute.Tuple
---@return table
function cute.get_leaves(t) end

---Element-wise, where one divides the other.
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Tuple
function cute.shape_div(a, b) end

---a up to multiples of b.
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Tuple
function cute.round_up(a, b) end

---Leaves of a times sizes of b.
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Tuple
function cute.elem_scale(a, b) end

---Sum of products.
---@param a cute.Tuple
---@param b cute.Tuple
---@return cute.Int
function cute.inner_product(a, b) end

---Compact strides, the smallest order first.
---@param shape cute.Tuple
---@param order cute.Tuple
---@return cute.Tuple
function cute.compact_order(shape, order) end

---Compact strides, first mode fastest.
---@param shape cute.Tuple
---@param first? cute.Tuple
---@return cute.Tuple
function cute.compact_col_major(shape, first) end

---Compact strides, last mode fastest.
---@param shape cute.Tuple
---@param first? cute.Tuple
---@return cute.Tuple
function cute.compact_row_major(shape, first) end

---Sum of the leaves.
---@param ... cute.Tuple
---@return cute.Int
function cute.sum(...) end

---Least leaf.
---@param ... cute.Tuple
---@return cute.Int
function cute.min(...) end

---Largest leaf.
---@param ... cute.Tuple
---@return cute.Int
function cute.max(...) end

---Greatest common divisor of the leaves.
---@param ... cute.Tuple
---@return cute.Int
function cute.gcd(...) end

---Same nesting?
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.congruent(a, b) end

---Is a nested as b, or less?
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.weakly_congruent(a, b) end

---Is every coordinate of a one of b?
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.compatible(a, b) end

---Do terminals of a divide those of b?
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.weakly_compatible(a, b) end

---Does tiler b divide a?
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean
function cute.evenly_divides(a, b) end

---Comparison, first entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_less(a, b) end

---Comparison, first entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_leq(a, b) end

---Comparison, first entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_gtr(a, b) end

---Comparison, first entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.lex_geq(a, b) end

---Comparison, last entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_less(a, b) end

---Comparison, last entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_leq(a, b) end

---Comparison, last entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_gtr(a, b) end

---Comparison, last entry first.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.colex_geq(a, b) end

---Comparison, every entry.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_less(a, b) end

---Comparison, every entry.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_leq(a, b) end

---Comparison, every entry.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_gtr(a, b) end

---Comparison, every entry.
---@param a cute.Tuple
---@param b cute.Tuple
---@return boolean|cute.Value
function cute.elem_geq(a, b) end

---Without mode i.
---@param t cute.Tuple
---@param i integer
---@return table
function cute.remove(t, i) end

---x as mode i.
---@param t cute.Tuple
---@param i integer
---@param x cute.Tuple
---@return table
function cute.insert(t, i, x) end

---The modes of all.
---@param ... cute.Tuple
---@return table
function cute.tuple_cat(...) end

---x for every leaf of profile.
---@param profile cute.Tuple
---@param x cute.Int
---@return cute.Tuple
function cute.repeat_like(profile, x) end

---(x,x,..) of rank n.
---@param x cute.Tuple
---@param n integer
---@return table
function cute.repeat_as_tuple(x, n) end

---The mode that is x, or nil.
---@param t cute.Tuple
---@param x cute.Tuple
---@return integer?
function cute.find(t, x) end

---Is `_` in it?
---@param t cute.Coord
---@return boolean
function cute.has_underscore(t) end

---A static or traced integer?
---@param x any
---@return boolean
function cute.is_integer(x) end

---An integer or nested lists of them?
---@param x any
---@return boolean
function cute.is_int_tuple(x) end

---Has that mode the stride 1?
---@param mode integer
---@param stride cute.Tuple|cute.Shaped
---@return boolean
function cute.is_major(mode, stride) end

---The mode of stride 1, or nil.
---@param shape cute.Tuple|cute.Shaped
---@param stride? cute.Tuple
---@return integer?
function cute.leading_dim(shape, stride) end

return cute
