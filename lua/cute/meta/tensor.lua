---@meta cute
-- Annotations of host tensors, buffers and numbers for the Lua language server.
-- Nothing here runs; docs/layouts.md has an example of every function.
-- luacheck: ignore
error "annotations are not to be run"

---An element type: cute.f32, cute.bf16, cute.i32, ...
---@class cute.DType
---@field bits integer
---@field name string
---@field is_float boolean
---@field is_integer boolean

---Memory of the host.
---@class cute.Buffer

---An iterator with a layout. `t(c)` reads an element or slices, `t[c] = x`
---writes one.
---@class cute.Tensor
---@field shape cute.Tuple
---@field stride cute.Tuple
---@field layout cute.Layout
---@field element_type cute.DType
---@field memspace "host"|"gmem"|"smem"|"rmem"|"coord"
---@field alignment integer bytes that its address is a multiple of
---@field iterator cute.Tensor one element, to be moved with `+ n`
---@field device "host"|"gpu"|string|nil where its data is; "gpu:1": the second
---@operator add(cute.Int): cute.Tensor
---@overload fun(...: cute.Coord): any
local Tensor = {}

---Writes one element.
---@param ... any coordinate, then the value
function Tensor:set(...) end

---Writes every element.
---@param x any
---@return cute.Tensor self
function Tensor:fill(x) end

---`for i, x in t:elements() do`: all elements, the first mode fastest.
---@return fun(): integer, any
function Tensor:elements() end

---Extents, and strides other than the leading one, become dynamic for kernels.
---@param opts? {leading_dim: integer, divisibility: any}
---@return cute.Tensor self
function Tensor:mark_layout_dynamic(opts) end

---One extent, and the strides of slower modes, become dynamic for kernels.
---@param opts {mode: integer, divisibility: integer}
---@return cute.Tensor self
function Tensor:mark_compact_shape_dynamic(opts) end

---A view of memory, or coordinates to count from, under a layout or shape.
---@param iterator cute.Tensor|cute.Buffer|cute.Tuple
---@param layout cute.Layout|cute.Tuple
---@return cute.Tensor
function cute.make_tensor(iterator, layout) end

---In the arguments of a kernel: x as it is, a constant of the program.
---@param x any a number, which Lua knows in the kernel then, or a table
---@return any
function cute.constexpr(x) end

---Coordinates of a shape: element c is c.
---@param shape cute.Tuple|cute.Layout
---@return cute.Tensor
function cute.make_identity_tensor(shape) end

---Where a new tensor is, and what is drawn for it.
---@class cute.Place
---@field device? string|table "host" (the default), "gpu", "gpu:1", a device
---@field pinned? boolean memory of the host that copies need not wait for
---@field seed? integer of rand and its kin; without one cute.manual_seed tells

---A tensor of nested tables, last mode fastest; f32 unless told.
---@param values table
---@param dtype? cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.tensor(values, dtype, opts) end

---@param shape cute.Tuple|cute.Layout last mode fastest for a shape
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.zeros(shape, dtype, opts) end

---@param shape cute.Tuple|cute.Layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.ones(shape, dtype, opts) end

---Its elements are undefined: the simulator reports who reads them.
---@param shape cute.Tuple|cute.Layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.empty(shape, dtype, opts) end

---@param shape cute.Tuple|cute.Layout
---@param x any
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.full(shape, x, dtype, opts) end

---Numbers of [0, 1), drawn on the host: the same bits on every device.
---@param shape cute.Tuple|cute.Layout
---@param dtype cute.DType a float
---@param opts? cute.Place
---@return cute.Tensor
function cute.rand(shape, dtype, opts) end

---Numbers of the normal distribution N(0, 1), the same way.
---@param shape cute.Tuple|cute.Layout
---@param dtype cute.DType a float
---@param opts? cute.Place
---@return cute.Tensor
function cute.randn(shape, dtype, opts) end

---Integers from lo on, below hi.
---@param lo integer
---@param hi integer
---@param shape cute.Tuple|cute.Layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.randint(lo, hi, shape, dtype, opts) end

---What is drawn without a seed of its own from here on depends on this alone.
---@param seed integer
function cute.manual_seed(seed) end

---The tensor itself where it is there already, else the same view (layout,
---alignment, marks) of a copy of the memory that it spans. With a stream the
---copy is only queued, and what comes to the host is pinned.
---@param device string|table "host", "gpu", "gpu:1", a device of cute.device
---@param opts? {stream: any}
---@return cute.Tensor
function Tensor:to(device, opts) end

---The same view of a copy of its memory, where it is.
---@param opts? {stream: any}
---@return cute.Tensor
function Tensor:clone(opts) end

---Takes all elements of a tensor of its shape and type, from any device. Where
---layouts differ or have gaps a kernel moves them on the GPU they go to.
---@param source cute.Tensor
---@param opts? {stream: any} then the copy is only queued
---@return cute.Tensor self
function Tensor:copy_from(source, opts) end

---On the host: compact in the order of t's strides. In a kernel: a vector.
---@param t cute.Tensor
---@param x any
---@param dtype? cute.DType
---@return cute.Tensor
function cute.full_like(t, x, dtype) end

---@param t cute.Tensor
---@param dtype? cute.DType
---@return cute.Tensor
function cute.zeros_like(t, dtype) end

---@param t cute.Tensor
---@param dtype? cute.DType
---@return cute.Tensor
function cute.ones_like(t, dtype) end

---@class cute.Vector: values of the kernel with a shape; t:load() gives one
---@field shape cute.Tuple
---@field dtype cute.DType
local Vector = {}

---Converts every element.
---@param dtype cute.DType
---@return cute.Vector
function Vector:to(dtype) end

---The bits of every element as one of a type as wide.
---@param dtype cute.DType
---@return cute.Vector
function Vector:bitcast(dtype) end

---Folds its elements, in order from init. A profile such as `{_, 1}` keeps the
---modes with `_`, at any depth; `keep` keeps the others, too, with extent 1.
---@param op "add"|"mul"|"max"|"min"|"and"|"or"
---@param init cute.Int|number
---@param profile? cute.Coord
---@param options? {keep: boolean}
---@return cute.Vector|cute.Int scalar without a profile
function Vector:reduce(op, init, profile, options) end

---Repeats modes of extent 1, and those that it lacks at its end.
---@param shape cute.Tuple|cute.Layout
---@return cute.Vector
function Vector:broadcast_to(shape) end

---The same elements in the same (colexicographic) order.
---@param shape cute.Tuple|cute.Layout
---@return cute.Vector
function Vector:reshape(shape) end

---The tile at a coordinate; `_` in it keeps the tiles as a mode.
---@param t cute.Tensor
---@param tiler cute.Tiler by mode, or one layout over the whole tensor
---@param coord cute.Coord
---@param proj? table 1 uses an entry of tiler and coord, cute.X drops it
---@return cute.Tensor
function cute.local_tile(t, tiler, coord, proj) end

---The same as local_tile without a projection.
---@param t cute.Tensor
---@param tiler cute.Tiler
---@param coord cute.Coord
---@return cute.Tensor
function cute.inner_partition(t, tiler, coord) end

---What of every tile is at a coordinate.
---@param t cute.Tensor
---@param tiler cute.Tiler
---@param coord cute.Coord
---@return cute.Tensor
function cute.outer_partition(t, tiler, coord) end

---What of every tile belongs to a thread.
---@param t cute.Tensor
---@param threads cute.Layout|cute.Tuple
---@param index cute.Int
---@param proj? table
---@return cute.Tensor
function cute.local_partition(t, threads, index, proj) end

---t itself, of a kernel: elements of its memory that nobody wrote may be read,
---which the simulator tells otherwise. For rows that no load fills and whose
---values are masked afterwards.
---@param t cute.Tensor
---@return cute.Tensor
function cute.undefined_ok(t) end

---The same memory with elements of another type.
---@param t cute.Tensor
---@param dtype cute.DType
---@return cute.Tensor
function cute.recast_tensor(t, dtype) end

---The same view of a copy of its memory on the GPU.
---@param t cute.Tensor
---@param memory userdata `dev:buffer(...)` of cute.gpu.open()
---@return cute.Tensor
function cute.on_device(t, memory) end

---Who prints in a kernel, and how much.
---@class cute.PrintOptions
---@field limit? integer elements
---@field when? boolean|cute.Value
---@field thread? cute.Int|table an index, or up to three
---@field block? cute.Int|table

---Prints all elements: on the host, in colour on a terminal; in a kernel on
---the device.
---@param t cute.Tensor
---@param opts? cute.PrintOptions in a kernel
function cute.print_tensor(t, opts) end

---Prints on the device: `{}` by the value's type, or C's conversions. A last
---table with names is cute.PrintOptions.
---@param format string
---@param ... any scalars, vectors, tensors, layouts, nested tables, strings
function cute.printf(format, ...) end

---x, known to be divisible by div; a plain integer is checked.
---@param x cute.Int
---@param div integer|{div: integer}
---@return cute.Int
function cute.assume(x, div) end

---value@..@mode
---@param value cute.Int
---@param ... integer modes
---@return cute.Basis
function cute.ScaledBasis(value, ...) end

---A tuple that adds up with others and bases.
---@param ... cute.Coord
---@return cute.Tuple
function cute.ArithmeticTuple(...) end

return cute
