---@meta cute
-- Documents element types, tensors, vectors and buffers. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Element types
---------------------------------------------------------------------------

---An element type. Functions also accept its name: "f32".
---@class cute.DType
---@field bits integer width of an element in bits
---@field width integer the same as bits, under the Python DSL's name
---@field name string "f32", "bf16", ...
---@field is_float boolean true for floats
---@field is_integer boolean true for integers
---@field inf number infinity, if conversions to the type keep it
---@field nan number NaN, if the type has it
---@field signed boolean true for floats and signed integers

---A 64-bit float: 11 bits of exponent, 52 of fraction.
---@type cute.DType
cute.f64 = nil

---A 32-bit float: 8 bits of exponent, 23 of fraction.
---@type cute.DType
cute.f32 = nil

---TensorFloat-32: 32 bits in memory, of which tensor cores read 8 bits of
---exponent and 10 of fraction.
---@type cute.DType
cute.tf32 = nil

---A 16-bit float: 5 bits of exponent, 10 of fraction.
---@type cute.DType
cute.f16 = nil

---A 16-bit float, bfloat16: 8 bits of exponent, as f32, and 7 of fraction.
---@type cute.DType
cute.bf16 = nil

---An 8-bit float: 4 bits of exponent, 3 of fraction, up to 448, without
---infinities.
---@type cute.DType
cute.e4m3 = nil

---An 8-bit float: 5 bits of exponent, 2 of fraction, up to 57344.
---@type cute.DType
cute.e5m2 = nil

---An 8-bit float that holds only powers of two: the type of scales of
---block-scaled products.
---@type cute.DType
cute.ue8m0 = nil

---A 6-bit float: 3 bits of exponent, 2 of fraction.
---@type cute.DType
cute.e3m2 = nil

---A 6-bit float: 2 bits of exponent, 3 of fraction.
---@type cute.DType
cute.e2m3 = nil

---A 4-bit float: 2 bits of exponent, 1 of fraction.
---@type cute.DType
cute.e2m1 = nil

---Two f64, real and imaginary part; only for atoms.
---@type cute.DType
cute.complex_f64 = nil

---A signed 64-bit integer.
---@type cute.DType
cute.i64 = nil

---A signed 32-bit integer: the type of indices.
---@type cute.DType
cute.i32 = nil

---A signed 16-bit integer.
---@type cute.DType
cute.i16 = nil

---A signed 8-bit integer.
---@type cute.DType
cute.i8 = nil

---A signed 4-bit integer, two in a byte, the first in the low bits.
---@type cute.DType
cute.i4 = nil

---128 bits: the largest unit of a copy.
---@type cute.DType
cute.u128 = nil

---An unsigned 64-bit integer.
---@type cute.DType
cute.u64 = nil

---An unsigned 32-bit integer.
---@type cute.DType
cute.u32 = nil

---An unsigned 16-bit integer.
---@type cute.DType
cute.u16 = nil

---An unsigned 8-bit integer.
---@type cute.DType
cute.u8 = nil

---An unsigned 4-bit integer, two in a byte, the first in the low bits.
---@type cute.DType
cute.u4 = nil

---One bit, eight in a byte; only for atoms.
---@type cute.DType
cute.b1 = nil

---True or false, one byte in memory: the type of comparisons and predicates.
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

---The operation of vector:reduce, under the Python DSL's names.
---@class cute.ReductionOp
---@field ADD string the sum
---@field MUL string the product
---@field MAX string the maximum
---@field MIN string the minimum
---@field AND string all
---@field OR string any

---The address space of a pointer, for cute.make_ptr.
---@class cute.AddressSpace
---@field gmem string global memory
---@field smem string shared memory
---@field rmem string registers
---@field generic string global memory, if nothing else is known

---Rounds a number to a type, to nearest even, and returns its bits.
---
---     cute.to_bits(cute.bf16, 1.0)  --> 16256
---@param dtype cute.DType
---@param x number
---@return integer
function cute.to_bits(dtype, x) end

---Returns the number that bits represent in a type.
---
---     cute.from_bits(cute.bf16, 16256)  --> 1.0
---@param dtype cute.DType
---@param bits integer
---@return number
function cute.from_bits(dtype, bits) end

---------------------------------------------------------------------------
-- Tensors: making
---------------------------------------------------------------------------

---A tensor: memory, or coordinates, accessed through a layout. `t(c)` reads an
---element or, with `cute._` in the coordinate, returns a slice; `t[c] = x`
---writes an element. Layout functions that rearrange modes or tile also accept
---tensors. Outside of a kernel, operators apply to each element: `x + y`, `2 *
---x`, as cute.ops.elementwise does.
---@class cute.Tensor
---@field shape cute.Tuple the layout's extents
---@field stride cute.Tuple the layout's strides
---@field layout cute.Layout coordinates to offsets, in elements
---@field element_type cute.DType element type
---@field dtype cute.DType the same as element_type
---@field memspace "host"|"gmem"|"smem"|"rmem"|"coord" memory space of its data
---@field alignment integer known alignment of its address, in bytes
---@field address integer address of its first element, for cute.make_ptr;
---absent for tensors made in a kernel
---@field iterator cute.Tensor pointer to its first element; `+ n` moves it
---@field device "host"|"gpu"|string|nil device of its data; "gpu:1": the second
---@operator add(cute.Int|cute.Tensor): cute.Tensor
---@operator sub(number|cute.Tensor): cute.Tensor
---@operator mul(number|cute.Tensor): cute.Tensor
---@operator div(number|cute.Tensor): cute.Tensor
---@operator unm: cute.Tensor
---@overload fun(...: cute.Coord): any
local Tensor = {}

---Where a new tensor is placed, and the seed of random values.
---@class cute.Place
---@field device? string|table "host" (the default), "gpu", "gpu:1", a device
---@field pinned? boolean page-locked host memory, for asynchronous copies
---@field seed? integer seed of rand, randn and randint; else that of
---cute.manual_seed

---Makes a view of memory under a layout or shape, or a tensor of coordinates
---that start at an origin. Raises [shape-mismatch] if the layout reaches beyond
---the memory.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.make_tensor(t.iterator + 6, 6)  --> ptr[f32,host]+6 o 6:1
---     cute.make_tensor({8, 0}, cute.layout "(4,4):(1@0,2@1)")(1, 3)  --> (9,6)
---@param iterator cute.Tensor|cute.Buffer|cute.Tuple a tensor's iterator, a
---buffer; an integer or tuple
---@param layout cute.Layout|cute.Tuple a shape gives a compact layout
---@return cute.Tensor
function cute.make_tensor(iterator, layout) end

---Makes a tensor of coordinates: its element at coordinate c is c itself. Tile
---it like the data to get the position of each element. Predicates are computed
---from these positions.
---
---     c = cute.make_identity_tensor({4, 6})
---     c(2, 3)  --> (2,3)
---     cute.local_tile(c, {2, 3}, {1, 1})(0, 0)  --> (2,3)
---@param shape cute.Tuple|cute.Layout
---@return cute.Tensor
function cute.make_identity_tensor(shape) end

---Makes a tensor on the host from nested tables, last mode fastest.
---
---     cute.tensor({{1, 2}, {3, 4}}, cute.i32)(1, 0)  --> 3
---@param values table tables of tables of numbers
---@param dtype? cute.DType f32 when absent
---@param opts? cute.Place
---@return cute.Tensor
function cute.tensor(values, dtype, opts) end

---Makes a tensor of zeros, on the host or, by its options, on a GPU.
---
---     cute.zeros({4, 6}, cute.f32)  --> ptr[f32,host] o (4,6):(6,1)
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.zeros(shape, dtype, opts) end

---Makes a tensor of ones.
---
---     cute.ones({2, 3}, cute.i8)(1, 2)  --> 1
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.ones(shape, dtype, opts) end

---Makes a tensor of undefined elements; the simulator reports reads of them.
---
---     cute.empty({128, 64}, cute.bf16)  --> ptr[bf16,host] o (128,64):(64,1)
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.empty(shape, dtype, opts) end

---Makes a tensor filled with one number. In a kernel, makes a vector of it, in
---registers.
---
---     cute.full({2, 3}, 7, cute.f32)(0, 0)  --> 7.0
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param x any the number
---@param dtype? cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.full(shape, x, dtype, opts) end

---Draws numbers from [0, 1) on the host: the same bits on every device.
---
---     cute.rand({4}, cute.f32, {seed = 1}).shape  --> (4)
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param dtype cute.DType a float
---@param opts? cute.Place
---@return cute.Tensor
function cute.rand(shape, dtype, opts) end

---Draws numbers from the normal distribution N(0, 1) on the host: the same bits
---on every device.
---
---     cute.randn({4}, cute.bf16, {seed = 1}).element_type  --> bf16
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param dtype cute.DType a float
---@param opts? cute.Place
---@return cute.Tensor
function cute.randn(shape, dtype, opts) end

---Draws whole numbers from lo, inclusive, to hi, exclusive, on the host.
---
---     cute.randint(5, 6, {3}, cute.i32)(2)  --> 5
---@param lo integer the smallest number
---@param hi integer one more than the largest number
---@param shape cute.Tuple|cute.Layout a shape: last mode fastest; or a layout
---@param dtype cute.DType
---@param opts? cute.Place
---@return cute.Tensor
function cute.randint(lo, hi, shape, dtype, opts) end

---Sets the seed for all later random tensors that are made without the option
---seed.
---@param seed integer
function cute.manual_seed(seed) end

---Makes a tensor of zeros in the shape of x. On the host, it is compact, and
---its modes have the order of x's strides. In a kernel, makes a vector.
---
---     cute.zeros_like(cute.ones({4, 6}, cute.f32), cute.i8)
---     --> ptr[i8,host] o (4,6):(6,1)
---@param x cute.Tensor|cute.Vector
---@param dtype? cute.DType type of x when absent
---@return cute.Tensor|cute.Vector
function cute.zeros_like(x, dtype) end

---Makes a tensor or, in a kernel, a vector of ones in the shape of x, like
---zeros_like.
---
---     cute.ones_like(cute.zeros({4, 6}, cute.f32))(3, 5)  --> 1.0
---@param x cute.Tensor|cute.Vector
---@param dtype? cute.DType type of x when absent
---@return cute.Tensor|cute.Vector
function cute.ones_like(x, dtype) end

---Makes a tensor or, in a kernel, a vector in the shape of x, filled with one
---number, like zeros_like.
---
---     cute.full_like(cute.zeros({4, 6}, cute.f32), 7)(3, 5)  --> 7.0
---@param x cute.Tensor|cute.Vector
---@param value number|cute.Value
---@param dtype? cute.DType type of x when absent
---@return cute.Tensor|cute.Vector
function cute.full_like(x, value, dtype) end

---Allocates registers of this thread, in a kernel, with a layout or shape.
---Elements are undefined until written. If an index is not known at trace time,
---the elements are in local memory instead.
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

---Allocates registers in the shape of a layout or tensor. Their layout is that
---of make_fragment_like.
---@param x cute.Tensor|cute.Layout
---@param dtype? cute.DType type of x when absent
---@return cute.Tensor
function cute.make_rmem_tensor_like(x, dtype) end

---Allocates shared memory of the block, in a kernel, with a layout. Elements
---are undefined until written. The launch raises [smem-budget] if the target
---has too little shared memory.
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
---@param alignment? integer bytes; when absent, the alignment that the layout's
---swizzle and wide copies need
---@return cute.Tensor
function cute.make_smem_tensor(dtype, layout, alignment) end

---Makes a view of memory on the GPU with the tensor's layout. The memory must
---be as large as the tensor.
---@param tensor cute.Tensor
---@param memory userdata `dev:buffer(...)` of cute.gpu.open()
---@return cute.Tensor
function cute.on_device(tensor, memory) end

---Allocates host memory for `count` elements, zeroed and without a layout.
---
---     cute.make_tensor(cute.buffer("f32", 16), cute.layout "(4,4):(1,4)")
---     --> ptr[f32,host] o (4,4):(1,4)
---@param dtype cute.DType|string
---@param count integer
---@return cute.Buffer
function cute.buffer(dtype, count) end

---Allocates host memory with the numbers of a list, or with the raw bytes of a
---string.
---
---     cute.buffer_from("i32", {3, 4, 5})[1]  --> 4
---@param dtype cute.DType|string
---@param values number[]|string
---@return cute.Buffer
function cute.buffer_from(dtype, values) end

---Makes a tensor on the memory of another library, without a copy. The argument
---is the pointer to a managed tensor of DLPack, light userdata from C code.
---Its deleter is called once, when no tensor uses the memory any more. After an
---error, the caller still owns the managed tensor.
---
---     t = cute.tensor({3, 4}, cute.f32)
---     u = cute.from_dlpack(t:to_dlpack())
---     u[0] = 7
---     t(0)  --> 7.0
---@param pointer userdata
---@param opts? {versioned: boolean} false: a DLManagedTensor, of versions of
---DLPack before 1.0
---@return cute.Tensor
function cute.from_dlpack(pointer, opts) end

---------------------------------------------------------------------------
-- Tensors: parts and copies of memory
---------------------------------------------------------------------------

---Returns the tile of a tensor at a tile coordinate. For each `cute._` in the
---coordinate, the result has an additional last mode, which iterates over the
---tiles along the mode of this entry.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.local_tile(t, {2, 3}, {1, 0})
---     --> ptr[f32,host]+12 o (2,3):(6,1)
---     cute.local_tile(t, {2, 3}, {1, cute._})
---     --> ptr[f32,host]+12 o (2,3,2):(6,1,3)
---@param tensor cute.Tensor
---@param tiler cute.Tiler extents by mode, or one layout over the whole tensor
---@param coord cute.Coord the tile, mode by mode
---@param proj? table selects entries of tiler and coord: 1 keeps one, cute.X
---drops it
---@return cute.Tensor
function cute.local_tile(tensor, tiler, coord, proj) end

---Returns the tile at a coordinate, like local_tile.
---
---     cute.inner_partition(cute.zeros({4, 6}, cute.f32), {2, 3}, {1, 0})
---     --> ptr[f32,host]+12 o (2,3):(6,1)
---@param tensor cute.Tensor
---@param tiler cute.Tiler
---@param coord cute.Coord
---@param proj? table
---@return cute.Tensor
function cute.inner_partition(tensor, tiler, coord, proj) end

---Returns a tensor of the elements at `coord` of all tiles. Mode i of the
---result iterates over the tiles along mode i of the tensor.
---
---     cute.outer_partition(cute.zeros({4, 6}, cute.f32), {2, 3}, {1, 0})
---     --> ptr[f32,host]+6 o (2,2):(12,3)
---@param tensor cute.Tensor
---@param tiler cute.Tiler
---@param coord cute.Coord a position in each tile
---@return cute.Tensor
function cute.outer_partition(tensor, tiler, coord) end

---Returns the part of a tensor that belongs to one thread. A layout arranges
---the threads as a tile, which is repeated over the tensor.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     cute.local_partition(t, cute.layout "(2,3):(3,1)", 4)
---     --> ptr[f32,host]+7 o (2,2):(12,3)
---@param tensor cute.Tensor
---@param threads cute.Layout|cute.Tuple arrangement of threads in a tile
---@param index cute.Int number of the thread in the arrangement
---@param proj? table selects modes of threads: 1 keeps one, cute.X drops it
---@return cute.Tensor
function cute.local_partition(tensor, threads, index, proj) end

---Views the same memory with elements of another type. Raises [inadmissible] if
---a wider element would not be contiguous.
---
---     cute.recast_tensor(cute.zeros({4, 6}, cute.f32), cute.u16)
---     --> ptr[u16,host] o (4,12):(12,1)
---@param tensor cute.Tensor
---@param dtype cute.DType
---@return cute.Tensor
function cute.recast_tensor(tensor, dtype) end

cute.recast = cute.recast_tensor

---Returns the tensor itself, and declares that the kernel intentionally reads
---or stores only a part of it. For an argument, the simulator then writes no
---note about elements that the launch never reads or stores. For a shared
---tensor or a fragment, it writes none about elements that nothing reads.
---
---     cute.partial_ok(mK)      -- the window hides the first keys
---@param tensor cute.Tensor an argument, a shared tensor or registers
---@return cute.Tensor
function cute.partial_ok(tensor) end

---Returns the tensor itself and allows reads of elements that were never
---written, which the simulator otherwise reports. Use it for rows that no load
---fills and whose values are masked afterwards.
---@param tensor cute.Tensor
---@return cute.Tensor
function cute.undefined_ok(tensor) end

---Returns the tensor itself and declares that NaNs and infinities in it are
---intended. Otherwise the simulator names the first operation that makes such a
---value from finite numbers, if the value may have reached an output. Call this
---function for an output such as the logarithms of sums of masked rows.
---@param tensor cute.Tensor
---@return cute.Tensor
function cute.nonfinite_ok(tensor) end

---Marks a kernel argument as a constant of the program. A call with another
---value compiles another program.
---@param x any a number, which is a plain Lua number in the kernel, or a table
---@return any
function cute.constexpr(x) end

---Writes one element of the tensor.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     t:set(1, 2, 5)
---     t(1, 2)  --> 5.0
---@param ... any the coordinate, then the value
function Tensor:set(...) end

---Writes a number to every element; returns the tensor.
---
---     cute.zeros({4, 6}, cute.f32):fill(3)(2, 5)  --> 3.0
---@param x any the number
---@return cute.Tensor self
function Tensor:fill(x) end

---Returns a pointer to the tensor's first element, like the field `iterator`.
---(The Python DSL's MemRange has this method.)
---
---     cute.zeros({4, 6}, cute.f32):data_ptr()
---     --> ptr[f32,host] o 1:0
---@return cute.Tensor iterator
function Tensor:data_ptr() end

---Views the tensor's memory from its first element under another layout, like
---cute.make_tensor(t.iterator, layout), optionally with another type and a
---swizzle.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     t:get_tensor(cute.layout "(2,3):(3,1)")
---     --> ptr[f32,host] o (2,3):(3,1)
---@param layout cute.Layout
---@param swizzle? cute.Swizzle from make_swizzle
---@param dtype? cute.DType
---@return cute.Tensor
function Tensor:get_tensor(layout, swizzle, dtype) end

---Iterates over all elements, first mode fastest: `for i, x in t:elements()
---do`.
---
---     sum = 0
---     for i, x in cute.ones({4, 6}, cute.f32):elements() do sum = sum + x end
---     sum  --> 24.0
---@return fun(): integer, any
function Tensor:elements() end

---Loads the elements of the tensor as a vector, in a kernel. Arithmetic on
---vectors works element by element.
---
---     k = cute.kernel(function(x, y) y:store(x:load() * 2 + 1) end)
---     x, y = cute.ones({8}, cute.f32), cute.zeros({8}, cute.f32)
---     k(x, y):launch {grid = 1, block = 1, device = "sim"}
---     y(7)  --> 3.0
---@return cute.Vector
function Tensor:load() end

---Writes a vector's elements, in a kernel, to a tensor of the same shape.
---@param vector cute.Vector
function Tensor:store(vector) end

---Returns the tensor itself if it is on this device. Otherwise copies its
---memory, and returns a view of the copy with the tensor's layout, alignment
---and dynamic modes. With a stream the copy is only queued, and a copy to the
---host uses page-locked memory.
---@param device string|table "host", "gpu", "gpu:1", a device of cute.device
---@param opts? {stream: any}
---@return cute.Tensor
function Tensor:to(device, opts) end

---Copies the tensor's memory on its device. Returns a tensor with the same
---layout on the copy.
---
---     t = cute.zeros({4}, cute.f32)
---     u = t:clone()
---     u[0] = 1
---     t(0), u(0)  --> 0.0, 1.0
---@param opts? {stream: any}
---@return cute.Tensor
function Tensor:clone(opts) end

---Returns the memory of a tensor for another library, as a pointer to a managed
---tensor of DLPack. The memory lives until the library calls the deleter, even
---if the script closes the tensor.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     type(t:to_dlpack())  --> userdata
---@param opts? {versioned: boolean} false: a DLManagedTensor, for libraries
---that know only versions of DLPack before 1.0
---@return userdata pointer
function Tensor:to_dlpack(opts) end

---Copies all elements from a tensor of the same shape and type, from any
---device. If layouts differ or have gaps, a kernel on the destination GPU moves
---the elements.
---
---     t = cute.zeros({4, 6}, cute.f32)
---     t:copy_from(cute.ones({4, 6}, cute.f32))
---     t(3, 5)  --> 1.0
---@param source cute.Tensor
---@param opts? {stream: any} with a stream the copy is only queued
---@return cute.Tensor self
function Tensor:copy_from(source, opts) end

---Frees the memory of the tensor and of all its views; later uses raise
---[closed]. Work that was launched earlier can still use the memory. A tensor
---can be a to-be-closed variable (`local t <close> = ...`).
---
---     t = cute.zeros({4}, cute.f32)
---     t:close()
---     pcall(cute.print_tensor, t)
function Tensor:close() end

---Makes all extents dynamic for kernels, and all strides except that of the
---leading mode. One program then serves all sizes.
---@param opts? {leading_dim: integer, divisibility: any} the leading mode; a
---divisor of the extents, for all or by mode
---@return cute.Tensor self
function Tensor:mark_layout_dynamic(opts) end

---Makes one extent, and the strides of slower modes, dynamic for kernels.
---@param opts {mode: integer, divisibility: integer} the mode; a divisor of its
---extent
---@return cute.Tensor self
function Tensor:mark_compact_shape_dynamic(opts) end

---A vector: values of a kernel, with a shape, in registers; `t:load()` returns
---one. Operators and mathematical functions work element by element; `v[i]` and
---`v(i, j)` are elements.
---@class cute.Vector
---@field shape cute.Tuple its extents
---@field dtype cute.DType element type
---@field element_type cute.DType the same as dtype
local Vector = {}

---Converts every element. Conversions to floats round to nearest even; 8-bit
---floats saturate. Conversions from floats to integers round toward 0 and
---saturate, and a NaN becomes 0. For conversions from f64, or to 64 bits, the
---hardware's rules apply. Conversions between integers drop the upper bits.
---@param dtype cute.DType
---@return cute.Vector
function Vector:to(dtype) end

---Reinterprets the bits of every element as a type of the same width.
---@param dtype cute.DType
---@return cute.Vector
function Vector:bitcast(dtype) end

---Reduces the vector's elements, in order, beginning with init. A profile such
---as `{_, 1}` keeps the modes marked `_`, at any depth, and reduces the others.
---With `keep`, the others remain with extent 1.
---
---     k = cute.kernel(function(x, y) y[0] = x:load():reduce("add", 0.0) end)
---     x, y = cute.ones({8}, cute.f32), cute.zeros({1}, cute.f32)
---     k(x, y):launch {grid = 1, block = 1, device = "sim"}
---     y(0)  --> 8.0
---@param op "add"|"mul"|"max"|"min"|"and"|"or" combines two elements
---@param init cute.Int|number the initial value
---@param modes? cute.Coord a profile; without one the result is a scalar
---@param options? {keep: boolean}
---@return cute.Vector|cute.Int scalar without a profile
function Vector:reduce(op, init, modes, options) end

---Repeats the elements along modes of extent 1, and along modes that are
---missing at the end of the shape. Raises [shape-mismatch] if the shapes are
---not compatible.
---@param shape cute.Tuple|cute.Layout
---@return cute.Vector
function Vector:broadcast_to(shape) end

---Returns the same elements in the same (colexicographic) order with another
---shape.
---@param shape cute.Tuple|cute.Layout
---@return cute.Vector
function Vector:reshape(shape) end

---Compares element by element for equality; returns a vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:eq(other) end

---Compares element by element for inequality; returns a vector of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:ne(other) end

---Compares each element: true where it is less than other. Returns a vector of
---booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:lt(other) end

---Compares each element: true where it is at most other. Returns a vector of
---booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:le(other) end

---Compares each element: true where it is greater than other. Returns a vector
---of booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:gt(other) end

---Compares each element: true where it is at least other. Returns a vector of
---booleans.
---@param other cute.Vector|number|cute.Value
---@return cute.Vector
function Vector:ge(other) end

---Host memory: `b[i]` is element i, counted from 0, and `#b` their number.
---@class cute.Buffer
---@field dtype cute.DType element type
---@field count integer number of elements
---@field nbytes integer size in bytes
---@field closed boolean true after close
---@field defined boolean true if it was ever written
local Buffer = {}

---Returns element i, counted from 0.
---@param i integer
---@return number
function Buffer:get(i) end

---Writes element i.
---@param i integer
---@param value number|boolean
function Buffer:set(i, value) end

---Writes a number to every element; returns the buffer.
---@param value number
---@return cute.Buffer self
function Buffer:fill(value) end

---Draws every element from a normal distribution.
---@param seed? integer
---@param mean? number
---@param deviation? number
---@return cute.Buffer self
function Buffer:fill_normal(seed, mean, deviation) end

---Draws every element from the whole numbers lo to hi, inclusive.
---@param seed integer
---@param lo integer
---@param hi integer
---@return cute.Buffer self
function Buffer:fill_int(seed, lo, hi) end

---Copies n elements of another buffer, starting at `from`, into this buffer,
---starting at `at`. Elements are converted to the type of this buffer.
---@param source cute.Buffer
---@param at? integer
---@param from? integer
---@param n? integer all remaining elements when absent
---@return cute.Buffer self
function Buffer:copy(source, at, from, n) end

---Returns a copy with elements of another type.
---
---     cute.buffer_from("f32", {1.5, 2}):to("i32")[1]  --> 2
---@param dtype cute.DType|string
---@return cute.Buffer
function Buffer:to(dtype) end

---Returns the raw bytes of n elements from `at` on, as a string.
---@param at? integer
---@param n? integer
---@return string
function Buffer:bytes(at, n) end

---Returns the values of n elements from `at` on, as a list.
---@param at? integer
---@param n? integer
---@return number[]
function Buffer:list(at, n) end

---Writes whole elements from raw bytes.
---@param bytes string
---@param at? integer
---@return cute.Buffer self
function Buffer:set_bytes(bytes, at) end

---Returns a transposed copy of a row-major matrix: elements of one column of
---the matrix are contiguous in the copy.
---@param rows integer
---@param columns integer
---@return cute.Buffer
function Buffer:transpose(rows, columns) end

---Sets the lowest `bits` bits of every f32 to 0. With 13 bits, the results are
---the values that tensor cores read as tf32.
---@param bits integer
---@return cute.Buffer self
function Buffer:cut(bits) end

---Measures the difference of two buffers. Returns a table with max_abs,
---max_rel, max_scaled, frobenius, worst (an index), nans and count.
---@param reference cute.Buffer
---@return table
function Buffer:diff(reference) end

---Reports whether all bits are equal; if not, also returns the first differing
---index.
---@param other cute.Buffer
---@return boolean
---@return integer?
function Buffer:equal(other) end

---Frees the buffer's memory; later uses raise [closed].
function Buffer:close() end

---Computes D = A * B^T on the CPU, with f64 accumulators, for matrices in
---buffers. A (m,k), B (n,k) and D (m,n) are row-major unless `strides` is
---given.
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

---Checks that every element of D is alpha * A * B^T + beta * c0 within rounding
---error. Returns a table with the fields ok, count, wrong and nans and, for the
---worst element, row, col, got, want and bound.
---@param A cute.Buffer
---@param B cute.Buffer
---@param D cute.Buffer
---@param m integer
---@param n integer
---@param k integer
---@param opts table {ref = A * B^T in f64, or samples = number of elements to
---check, seed = seed that selects them; unit = relative rounding error of the
---sums; sums = dtype of the accumulators; alpha, beta, c0; a, b, d = strides}
---@return table
function cute.gemm_check(A, B, D, m, n, k, opts) end

-- Functions of cute for tensors and layouts that are also methods of tensors.
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
-- SPDX-License-Identifier: MIT
