---@meta cute
-- Comments of element types, tensors, vectors and buffers. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Element types
---------------------------------------------------------------------------

---An element type. Functions take its name, too: "f32".
---@class cute.DType
---@field bits integer how wide an element is
---@field width integer the same, by the Python DSL's name
---@field name string "f32", "bf16", ...
---@field is_float boolean is it a float?
---@field is_integer boolean is it an integer?
---@field inf number infinity, of floats that conversions keep it in
---@field nan number NaN, of floats that have it
---@field signed boolean is it a float or a signed integer?

---A float of 64 bits: 11 of exponent, 52 of fraction.
---@type cute.DType
cute.f64 = nil

---A float of 32 bits: 8 of exponent, 23 of fraction.
---@type cute.DType
cute.f32 = nil

---TensorFloat-32: an f32 of which tensor cores read 10 bits of fraction; in
---memory 32 bits.
---@type cute.DType
cute.tf32 = nil

---A float of 16 bits: 5 of exponent, 10 of fraction.
---@type cute.DType
cute.f16 = nil

---bfloat16: a float of 16 bits, 8 of exponent as f32 has, 7 of fraction.
---@type cute.DType
cute.bf16 = nil

---A float of 8 bits: 4 of exponent, 3 of fraction, up to 448, without
---infinities.
---@type cute.DType
cute.e4m3 = nil

---A float of 8 bits: 5 of exponent, 2 of fraction, up to 57344.
---@type cute.DType
cute.e5m2 = nil

---A power of two of 8 bits: the scales of block-scaled products.
---@type cute.DType
cute.ue8m0 = nil

---A float of 6 bits: 3 of exponent, 2 of fraction.
---@type cute.DType
cute.e3m2 = nil

---A float of 6 bits: 2 of exponent, 3 of fraction.
---@type cute.DType
cute.e2m3 = nil

---A float of 4 bits: 2 of exponent, 1 of fraction.
---@type cute.DType
cute.e2m1 = nil

---Two f64: real and imaginary part; of atoms alone.
---@type cute.DType
cute.complex_f64 = nil

---A signed integer of 64 bits.
---@type cute.DType
cute.i64 = nil

---A signed integer of 32 bits: what indices are.
---@type cute.DType
cute.i32 = nil

---A signed integer of 16 bits.
---@type cute.DType
cute.i16 = nil

---A signed integer of 8 bits.
---@type cute.DType
cute.i8 = nil

---A signed integer of 4 bits, two a byte, the first one in the low bits.
---@type cute.DType
cute.i4 = nil

---128 bits: the widest that one copy moves.
---@type cute.DType
cute.u128 = nil

---An unsigned integer of 64 bits.
---@type cute.DType
cute.u64 = nil

---An unsigned integer of 32 bits.
---@type cute.DType
cute.u32 = nil

---An unsigned integer of 16 bits.
---@type cute.DType
cute.u16 = nil

---An unsigned integer of 8 bits.
---@type cute.DType
cute.u8 = nil

---An unsigned integer of 4 bits, two a byte, the first one in the low bits.
---@type cute.DType
cute.u4 = nil

---One bit, eight a byte: of atoms alone.
---@type cute.DType
cute.b1 = nil

---True or false, a byte in memory: what comparisons give and predicates are.
---@type cute.DType
cute.boolean = nil

cute.Boolean = cute.boolean

cute.Int4 = cute.i4

cute.Int8 = cute.i8

cute.Uint8 = cute.u8

cute.Int16 = cute.i16

cute.Uint16 = cute.u16

cute.Int32 = cute.i32

cute.Uint32 = cute.u32

cute.Int64 = cute.i64

cute.Uint64 = cute.u64

cute.Float16 = cute.f16

cute.BFloat16 = cute.bf16

cute.TFloat32 = cute.tf32

cute.Float32 = cute.f32

cute.Float64 = cute.f64

cute.Float8E4M3FN = cute.e4m3

cute.Float8E5M2 = cute.e5m2

cute.Float8E8M0FNU = cute.ue8m0

cute.Float6E2M3FN = cute.e2m3

cute.Float6E3M2FN = cute.e3m2

cute.Float4E2M1FN = cute.e2m1

cute.Uint4 = cute.u4

cute.Uint128 = cute.u128

---The operation of vector:reduce, by the Python DSL's names.
---@class cute.ReductionOp
---@field ADD string the sum
---@field MUL string the product
---@field MAX string the largest
---@field MIN string the least
---@field AND string all
---@field OR string any

---The memory that a pointer is into, for cute.make_ptr.
---@class cute.AddressSpace
---@field gmem string global memory
---@field smem string shared memory
---@field rmem string registers
---@field generic string global memory, where nothing else is known

---The bits of a number rounded to a type, to nearest even.
---
---     cute.to_bits(cute.bf16, 1.0)  --> 16256
---@param dtype cute.DType
---@param x number
---@return integer
function cute.to_bits(dtype, x) end

---The number that bits stand for in a type.
---
---     cute.from_bits(cute.bf16, 16256)  --> 1.0
---@param dtype cute.DType
---@param bits integer
---@return number
function cute.from_bits(dtype, bits) end

---------------------------------------------------------------------------
-- Tensors: making
---------------------------------------------------------------------------

---Memory, or coordinates, under a layout. `t(c)` reads an element or, with
---`cute._` in the coordinate, slices; `t[c] = x` writes one. Functions of
---layouts that move modes about or tile take tensors, too.
---@class cute.Tensor
---@field shape cute.Tuple the layout's extents
---@field stride cute.Tuple the layout's strides
---@field layout cute.Layout coordinates to offsets, in elements
---@field element_type cute.DType what elements are
---@field dtype cute.DType the same
---@field memspace "host"|"gmem"|"smem"|"rmem"|"coord" where its data is
---@field alignment integer bytes that its address is a multiple of
---@field address integer where its first element is, for cute.make_ptr; not of
---a kernel's own tensors
---@field iterator cute.Tensor its first element alone, to be moved with `+ n`
---@field device "host"|"gpu"|string|nil where its data is; "gpu:1": the second
---@operator add(cute.Int): cute.Tensor
---@overload fun(...: cute.Coord): any
local Tensor = {}

---Where a new tensor is, and what is drawn for it.
---@class cute.Place
---@field device? string|table "host" (the default), "gpu", "gpu:1", a device
---@field pinned? boolean memory of the host that copies need not wait for
---@field seed? integer of rand and its kin; without one cute.manual_seed tells

---A view of memory, or coordinates to count from, under a layout or shape.
---Raises [shape-mismatch] where the layout reaches beyond the memory.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.make_tensor(t.iterator + 6, 6)  --> ptr[f32,host]+6 o 6:1
---     cute.make_tensor({8, 0}, cute.layout "(4,4):(1@0,2@1)")(1, 3)  --> (9,6)
---@param iterator cute.Tensor|cute.Buffer|cute.Tuple a tensor's iterator, a
---buffer; an integer or tuple
---@param layout cute.Layout|cute.Tuple a shape is compact
---@return cute.Tensor
function cute.make_tensor(iterator, layout) end

---The tensor of coordinates: element c is c. Tiled as the data is, it says
---where each element lies: the source of predicates.
---
---     c = cute.make_identity_tensor({4, 6})
---     c(2, 3)  --> (2,3)
---     cute.local_tile(c, {2, 3}, {1, 1})(0, 0)  --> (2,3)
---@param shape cute.Tuple|cute.Layout
---@return cute.Tensor
function cute.make_identity_tensor(shape) end

---A tensor on the host of nested tables, the last mode fastest.
---
---     cute.tensor({{1, 2}, {3, 4}}, cute.i32)(1, 0)  --> 3
---@param values table tables of tables of numbers
---@param dtype? cute.DType f32 when absent
---@param opts? cute.Place
---@return cute.Tensor
function cute.tensor(values, dtype, opts) end

---A tensor of zeros, on the host or, by its options, on a GPU.
---
---     cute.zeros({4, 6}, cute.f32)  --> ptr[f32,host] o (4,6):(6,1)
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.zeros(shape, dtype, opts) end

---A tensor of ones.
---
---     cute.ones({2, 3}, cute.i8)(1, 2)  --> 1
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.ones(shape, dtype, opts) end

---A tensor whose elements are undefined: the simulator reports who reads one.
---
---     cute.empty({128, 64}, cute.bf16)  --> ptr[bf16,host] o (128,64):(64,1)
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.empty(shape, dtype, opts) end

---A tensor of one number. In a kernel a vector of it, in registers.
---
---     cute.full({2, 3}, 7, cute.f32)(0, 0)  --> 7.0
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param x any the number
---@param dtype? cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.full(shape, x, dtype, opts) end

---Numbers of [0, 1), drawn on the host: the same bits on every device.
---
---     cute.rand({4}, cute.f32, {seed = 1}).shape  --> (4)
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param dtype cute.DType a float
---@param opts? cute.Place
---@return cute.Tensor
function cute.rand(shape, dtype, opts) end

---Numbers of the normal distribution N(0, 1), drawn on the host: the same bits
---on every device.
---
---     cute.randn({4}, cute.bf16, {seed = 1}).element_type  --> bf16
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param dtype cute.DType a float
---@param opts? cute.Place
---@return cute.Tensor
function cute.randn(shape, dtype, opts) end

---Whole numbers from lo on, below hi, drawn on the host.
---
---     cute.randint(5, 6, {3}, cute.i32)(2)  --> 5
---@param lo integer the least
---@param hi integer one more than the largest
---@param shape cute.Tuple|cute.Layout the last mode fastest; a layout as it is
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.randint(lo, hi, shape, dtype, opts) end

---Sets the seed of what is drawn without a seed of its own from here on.
---@param seed integer
function cute.manual_seed(seed) end

---Zeros: on the host compact, in the order of the tensor's strides; in a kernel
---a vector of the shape of a vector or tensor.
---
---     cute.zeros_like(cute.ones({4, 6}, cute.f32), cute.i8)
---     --> ptr[i8,host] o (4,6):(6,1)
---@param x cute.Tensor|cute.Vector
---@param dtype? cute.DType that of x when absent
---@return cute.Tensor|cute.Vector
function cute.zeros_like(x, dtype) end

---Ones: a tensor or, in a kernel, a vector, as zeros_like.
---
---     cute.ones_like(cute.zeros({4, 6}, cute.f32))(3, 5)  --> 1.0
---@param x cute.Tensor|cute.Vector
---@param dtype? cute.DType that of x when absent
---@return cute.Tensor|cute.Vector
function cute.ones_like(x, dtype) end

---One number everywhere: a tensor or, in a kernel, a vector, as zeros_like.
---
---     cute.full_like(cute.zeros({4, 6}, cute.f32), 7)(3, 5)  --> 7.0
---@param x cute.Tensor|cute.Vector
---@param value number|cute.Value
---@param dtype? cute.DType that of x when absent
---@return cute.Tensor|cute.Vector
function cute.full_like(x, value, dtype) end

---Registers of this thread, in a kernel, under a layout or shape; undefined
---until written. Indices are known while tracing, or the elements go to local
---memory.
---
---     k = cute.kernel(function(y)
---       local r = cute.make_rmem_tensor({2, 4}, cute.f32)
---       r:fill(3)
---       y[0] = r(1, 3)
---     end)
---     y = cute.zeros({1}, cute.f32)
---     k(y):launch {grid = 1, block = 1, device = "sim"}
---     y(0)  --> 3.0
---@param layout cute.Layout|cute.Tuple
---@param dtype cute.DType
---@return cute.Tensor
function cute.make_rmem_tensor(layout, dtype) end

cute.make_fragment = cute.make_rmem_tensor

---Registers shaped as a layout or tensor, in the order of make_fragment_like.
---@param x cute.Tensor|cute.Layout
---@param dtype? cute.DType that of x when absent
---@return cute.Tensor
function cute.make_rmem_tensor_like(x, dtype) end

---Shared memory of the block, in a kernel, under a layout; undefined until
---written. Raises [smem-budget] at the launch where the target has less.
---
---     k = cute.kernel(function(x, y)
---       local tid = cute.arch.thread_idx()
---       local s = cute.make_smem_tensor(cute.f32, {32})
---       s[tid] = x[tid]
---       cute.arch.sync_threads()
---       y[tid] = s[31 - tid]
---     end)
---     x, y = cute.rand({32}, cute.f32), cute.zeros({32}, cute.f32)
---     k(x, y):launch {grid = 1, block = 32, device = "sim"}
---     y(0) == x(31)  --> true
---@param dtype cute.DType
---@param layout cute.Layout|cute.Tuple
---@param alignment? integer bytes; what the layout's swizzle and wide copies
---need when absent
---@return cute.Tensor
function cute.make_smem_tensor(dtype, layout, alignment) end

---The same view of memory on the GPU, which has to hold as much.
---@param tensor cute.Tensor
---@param memory userdata `dev:buffer(...)` of cute.gpu.open()
---@return cute.Tensor
function cute.on_device(tensor, memory) end

---Memory of the host for `count` elements, zero, under no layout yet.
---
---     cute.make_tensor(cute.buffer("f32", 16), cute.layout "(4,4):(1,4)")
---     --> ptr[f32,host] o (4,4):(1,4)
---@param dtype cute.DType|string
---@param count integer
---@return cute.Buffer
function cute.buffer(dtype, count) end

---Memory of the host with the numbers of a list, or with the raw bytes of a
---string.
---
---     cute.buffer_from("i32", {3, 4, 5})[1]  --> 4
---@param dtype cute.DType|string
---@param values number[]|string
---@return cute.Buffer
function cute.buffer_from(dtype, values) end

---------------------------------------------------------------------------
-- Tensors: parts and copies of memory
---------------------------------------------------------------------------

---The tile of a tensor at a coordinate of tiles; `cute._` in the coordinate
---keeps tiles as modes behind it.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.local_tile(t, {2, 3}, {1, 0})
---     --> ptr[f32,host]+12 o (2,3):(6,1)
---     cute.local_tile(t, {2, 3}, {1, cute._})
---     --> ptr[f32,host]+12 o (2,3,2):(6,1,3)
---@param tensor cute.Tensor
---@param tiler cute.Tiler by mode, or one layout over the whole tensor
---@param coord cute.Coord which tile, mode by mode
---@param proj? table picks entries of tiler and coord: 1 takes one, cute.X
---drops it
---@return cute.Tensor
function cute.local_tile(tensor, tiler, coord, proj) end

---The tile at a coordinate: what local_tile does, too.
---
---     cute.inner_partition(cute.zeros({4, 6}, cute.f32), {2, 3}, {1, 0})
---     --> ptr[f32,host]+12 o (2,3):(6,1)
---@param tensor cute.Tensor
---@param tiler cute.Tiler
---@param coord cute.Coord
---@param proj? table
---@return cute.Tensor
function cute.inner_partition(tensor, tiler, coord, proj) end

---The element at a coordinate of every tile: what is left is a mode a tile.
---
---     cute.outer_partition(cute.zeros({4, 6}, cute.f32), {2, 3}, {1, 0})
---     --> ptr[f32,host]+6 o (2,2):(12,3)
---@param tensor cute.Tensor
---@param tiler cute.Tiler
---@param coord cute.Coord
---@return cute.Tensor
function cute.outer_partition(tensor, tiler, coord) end

---What of a tensor belongs to one thread, when threads lie as a layout says and
---their tile is repeated over the tensor.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.local_partition(t, cute.layout "(2,3):(3,1)", 4)
---     --> ptr[f32,host]+7 o (2,2):(12,3)
---@param tensor cute.Tensor
---@param threads cute.Layout|cute.Tuple how threads lie in a tile
---@param index cute.Int the thread
---@param proj? table picks modes of threads: 1 takes one, cute.X drops it
---@return cute.Tensor
function cute.local_partition(tensor, threads, index, proj) end

---The same memory with elements of another type. Raises [inadmissible] where a
---wider element would not lie together.
---
---     cute.recast_tensor(cute.zeros({4, 6}, cute.f32), cute.u16)
---     --> ptr[u16,host] o (4,12):(12,1)
---@param tensor cute.Tensor
---@param dtype cute.DType
---@return cute.Tensor
function cute.recast_tensor(tensor, dtype) end

cute.recast = cute.recast_tensor

---The tensor itself: elements of its memory that nobody wrote may be read,
---which the simulator otherwise reports. For rows that no load fills and whose
---values are masked afterwards.
---@param tensor cute.Tensor
---@return cute.Tensor
function cute.undefined_ok(tensor) end

---In the arguments of a kernel: the value as it is, a constant of the program.
---Another value is another program.
---@param x any a number, which Lua knows in the kernel then, or a table
---@return any
function cute.constexpr(x) end

---Writes one element.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     t:set(1, 2, 5)
---     t(1, 2)  --> 5.0
---@param ... any the coordinate, then the value
function Tensor:set(...) end

---Writes a number to every element; the tensor is given back.
---
---     cute.zeros({4, 6}, cute.f32):fill(3)(2, 5)  --> 3.0
---@param x any the number
---@return cute.Tensor self
function Tensor:fill(x) end

---Where it begins, a pointer: its `iterator`, as the Python DSL's MemRange
---calls it.
---
---     cute.zeros({4, 6}, cute.f32):data_ptr()
---     --> ptr[f32,host] o 1:0
---@return cute.Tensor iterator
function Tensor:data_ptr() end

---The memory where it begins under a layout: cute.make_tensor(t.iterator,
---layout), of another type and seen through a swizzle where they are given.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     t:get_tensor(cute.layout "(2,3):(3,1)")
---     --> ptr[f32,host] o (2,3):(3,1)
---@param layout cute.Layout
---@param swizzle? cute.Swizzle of make_swizzle
---@param dtype? cute.DType
---@return cute.Tensor
function Tensor:get_tensor(layout, swizzle, dtype) end

---Iterates over all elements, the first mode fastest: `for i, x in t:elements()
---do`.
---
---     sum = 0
---     for i, x in cute.ones({4, 6}, cute.f32):elements() do sum = sum + x end
---     sum  --> 24.0
---@return fun(): integer, any
function Tensor:elements() end

---The elements as a vector, in a kernel: arithmetic works on whole vectors.
---
---     k = cute.kernel(function(x, y) y:store(x:load() * 2 + 1) end)
---     x, y = cute.ones({8}, cute.f32), cute.zeros({8}, cute.f32)
---     k(x, y):launch {grid = 1, block = 1, device = "sim"}
---     y(7)  --> 3.0
---@return cute.Vector
function Tensor:load() end

---Writes a vector's elements, in a kernel, to a tensor of its shape.
---@param vector cute.Vector
function Tensor:store(vector) end

---The tensor itself where it is there already, else the same view (layout,
---alignment, marks) of a copy of the memory that it spans. With a stream the
---copy is only queued, and what comes to the host is pinned.
---@param device string|table "host", "gpu", "gpu:1", a device of cute.device
---@param opts? {stream: any}
---@return cute.Tensor
function Tensor:to(device, opts) end

---The same view of a copy of its memory, where it is.
---
---     t = cute.zeros({4}, cute.f32)
---     u = t:clone()
---     u[0] = 1
---     t(0), u(0)  --> 0.0, 1.0
---@param opts? {stream: any}
---@return cute.Tensor
function Tensor:clone(opts) end

---Takes all elements of a tensor of its shape and type, from any device. Where
---layouts differ or have gaps a kernel moves them on the GPU they go to.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     t:copy_from(cute.ones({4, 6}, cute.f32))
---     t(3, 5)  --> 1.0
---@param source cute.Tensor
---@param opts? {stream: any} with a stream the copy is only queued
---@return cute.Tensor self
function Tensor:copy_from(source, opts) end

---Extents, and strides other than the leading one, become dynamic for kernels:
---one program serves all of them.
---@param opts? {leading_dim: integer, divisibility: any} which mode leads; what
---divides extents, for all or by mode
---@return cute.Tensor self
function Tensor:mark_layout_dynamic(opts) end

---One extent, and the strides of slower modes, become dynamic for kernels.
---@param opts {mode: integer, divisibility: integer} which mode; what divides
---its extent
---@return cute.Tensor self
function Tensor:mark_compact_shape_dynamic(opts) end

---Values of a kernel with a shape, in registers: `t:load()` gives one.
---Operators and the functions of numbers go element by element; `v[i]` and
---`v(i, j)` are elements.
---@class cute.Vector
---@field shape cute.Tuple its extents
---@field dtype cute.DType what elements are
---@field element_type cute.DType the same
local Vector = {}

---Converts every element: to floats rounding to nearest even, 8-bit ones end at
---the largest; from floats to whole numbers toward 0 and to the nearest that
---there is, a NaN to 0 (from f64, and into 64 bits, as the hardware has it);
---whole numbers lose their upper bits.
---@param dtype cute.DType
---@return cute.Vector
function Vector:to(dtype) end

---The bits of every element as one of a type as wide.
---@param dtype cute.DType
---@return cute.Vector
function Vector:bitcast(dtype) end

---Folds its elements, in order from init. A profile such as `{_, 1}` keeps the
---modes with `_`, at any depth; `keep` keeps the others, too, with extent 1.
---
---     k = cute.kernel(function(x, y) y[0] = x:load():reduce("add", 0.0) end)
---     x, y = cute.ones({8}, cute.f32), cute.zeros({1}, cute.f32)
---     k(x, y):launch {grid = 1, block = 1, device = "sim"}
---     y(0)  --> 8.0
---@param op "add"|"mul"|"max"|"min"|"and"|"or" how two are folded
---@param init cute.Int|number what to begin with
---@param modes? cute.Coord a profile; a scalar is the result without one
---@param options? {keep: boolean}
---@return cute.Vector|cute.Int scalar without a profile
function Vector:reduce(op, init, modes, options) end

---Repeats modes of extent 1, and those that it lacks at its end. Raises
---[shape-mismatch] where shapes do not go together.
---@param shape cute.Tuple|cute.Layout
---@return cute.Vector
function Vector:broadcast_to(shape) end

---The same elements in the same (colexicographic) order under another shape.
---@param shape cute.Tuple|cute.Layout
---@return cute.Vector
function Vector:reshape(shape) end

---Element by element: are they equal? A vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:eq(other) end

---Element by element: do they differ? A vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:ne(other) end

---Element by element: is this one less? A vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:lt(other) end

---Element by element: is this one at most the other? A vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:le(other) end

---Element by element: is this one greater? A vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:gt(other) end

---Element by element: is this one at least the other? A vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:ge(other) end

---Memory of the host: `b[i]` is element i, from 0 on, `#b` how many there are.
---@class cute.Buffer
---@field dtype cute.DType what elements are
---@field count integer how many
---@field nbytes integer bytes
---@field closed boolean was its memory given back?
---@field defined boolean was it ever written?
local Buffer = {}

---Element i, counted from 0.
---@param i integer
---@return number
function Buffer:get(i) end

---Writes element i.
---@param i integer
---@param value number|boolean
function Buffer:set(i, value) end

---Writes a number to every element; the buffer is given back.
---@param value number
---@return cute.Buffer self
function Buffer:fill(value) end

---Draws every element from a normal distribution.
---@param seed? integer
---@param mean? number
---@param deviation? number
---@return cute.Buffer self
function Buffer:fill_normal(seed, mean, deviation) end

---Draws every element from the whole numbers lo to hi.
---@param seed integer
---@param lo integer
---@param hi integer
---@return cute.Buffer self
function Buffer:fill_int(seed, lo, hi) end

---Takes n elements of another buffer, from `from` on, to its own from `at` on,
---converted.
---@param source cute.Buffer
---@param at? integer
---@param from? integer
---@param n? integer all that are left when absent
---@return cute.Buffer self
function Buffer:copy(source, at, from, n) end

---A copy with elements of another type.
---
---     cute.buffer_from("f32", {1.5, 2}):to("i32")[1]  --> 2
---@param dtype cute.DType|string
---@return cute.Buffer
function Buffer:to(dtype) end

---The raw bytes of n elements from `at` on, as a string.
---@param at? integer
---@param n? integer
---@return string
function Buffer:bytes(at, n) end

---Takes whole elements from raw bytes.
---@param bytes string
---@param at? integer
---@return cute.Buffer self
function Buffer:set_bytes(bytes, at) end

---A copy of a row-major matrix in which columns are contiguous.
---@param rows integer
---@param columns integer
---@return cute.Buffer
function Buffer:transpose(rows, columns) end

---Clears the lowest bits of every f32: what tensor cores see of a tf32 for 13.
---@param bits integer
---@return cute.Buffer self
function Buffer:cut(bits) end

---How far apart two buffers are: a table with max_abs, max_rel, max_scaled,
---frobenius, worst (an index), nans and count.
---@param reference cute.Buffer
---@return table
function Buffer:diff(reference) end

---Are all bits equal? Otherwise false and the first index that differs.
---@param other cute.Buffer
---@return boolean
---@return integer?
function Buffer:equal(other) end

---Gives its memory back; what uses it then raises [closed].
function Buffer:close() end

---D = A * B^T by the CPU over buffers, A (m,k), B (n,k) and D (m,n) row-major
---unless strides say otherwise; f64 accumulators.
---
---     A = cute.buffer_from("f32", {1, 2, 3, 4})
---     D = cute.gemm_reference(A, A, cute.buffer("f32", 4), 2, 2, 2)
---     D[0], D[1], D[3]  --> 5.0, 11.0, 25.0
---@param A cute.Buffer
---@param B cute.Buffer
---@param D cute.Buffer
---@param m integer
---@param n integer
---@param k integer
---@param strides? {a: integer[], b: integer[], d: integer[]}
---@return cute.Buffer D
function cute.gemm_reference(A, B, D, m, n, k, strides) end

---Is every element of D alpha * A * B^T + beta * c0, as far as rounding goes? A
---verdict: ok, count, wrong, nans, and of the worst element row, col, got,
---want, bound.
---@param A cute.Buffer
---@param B cute.Buffer
---@param D cute.Buffer
---@param m integer
---@param n integer
---@param k integer
---@param opts table ref = the product in f64, or samples, seed; unit, sums =
---dtype, alpha, beta, c0, strides a, b, d
---@return table
function cute.gemm_check(A, B, D, m, n, k, opts) end

-- Methods of tensors that layouts have, too.
Tensor.coalesce = cute.coalesce
Tensor.composition = cute.composition
Tensor.cosize = cute.cosize
Tensor.depth = cute.depth
Tensor.filter = cute.filter
Tensor.flat_divide = cute.flat_divide
Tensor.flatten = cute.flatten
Tensor.get = cute.get
Tensor.group_modes = cute.group_modes
Tensor.logical_divide = cute.logical_divide
Tensor.rank = cute.rank
Tensor.select = cute.select
Tensor.size = cute.size
Tensor.take = cute.take
Tensor.tiled_divide = cute.tiled_divide
Tensor.with_shape = cute.with_shape
Tensor.zipped_divide = cute.zipped_divide

return cute
