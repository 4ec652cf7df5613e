---@meta cute
-- Documents the GPUs of cute.gpu for editors: memory, launches, products.
-- Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- cute.gpu
---------------------------------------------------------------------------

---@class cute.Resources
---@field registers integer|nil   registers per thread
---@field stack integer|nil       bytes of stack frame per thread
---@field spill_stores integer|nil bytes
---@field spill_loads integer|nil bytes
---@field barriers integer|nil    named barriers, __syncthreads included
---@field smem_static integer|nil bytes per block
---@field const integer|nil       bytes of constant bank 0 (parameters)

---@class cute.Compiled
---@field cubin string|nil    absent if the target is a compute_ one
---@field ptx string
---@field log string          with script lines
---@field warnings string[]   lines of the log that need attention
---@field losses string[]     reasons why the kernel is slow: serialized MMAs of
-- a warpgroup (C7510 and similar), spills
---@field resources cute.Resources those of kernel `name`, or of the first
-- kernel
---@field kernels table<string, cute.Resources>
---@field cached boolean      from the disk cache
---@field seconds number      duration of the call
---@field arch string
---@field nvrtc string        "13.0"

---A GPU opened by cute.gpu.open: memory, streams, kernels and products without
---cute.kernel. Functions return nil and a message if a resource is not
---available, and raise an error if an operation fails.
---@class cute.Gpu
local Gpu = {}

---Reports whether the GPU can still be used. After a kernel's fault has
---destroyed the context of the process, returns nil and a message.
---@return boolean?
---@return string?
function Gpu:alive() end

---Starts the creation of the GPU's context in another thread. The first call
---that needs the context waits for it. A launch calls this function before it
---compiles.
function Gpu:begin() end

---Allocates GPU memory for `count` undefined elements, or for a copy of a host
---buffer.
---@param dtype cute.DType|string|cute.Buffer
---@param count? integer
---@return cute.DeviceBuffer
function Gpu:buffer(dtype, count) end

---Captures the launches and copies of a function in a graph, as cute.graph
---does.
---@param f function
---@param stream? any the stream to record; launches in f may name it
---@return any graph
function Gpu:capture(f, stream) end

---Reports whether a graph is being captured now.
---@return boolean
function Gpu:capturing() end

---Prepares a product of cuBLAS: D = A * B^T + beta * D.
---@param options table m, n, k, A, B, D (buffers), layout, m_major, tf32, beta
---@return cute.Blas
function Gpu:cublas(options) end

---Returns the version of cuBLAS, or nil and a message if it is not found.
---@return string?
function Gpu:cublas_version() end

---Prepares products of cublasLt and returns them in a list, one for each
---algorithm that its heuristics propose.
---@param options table those of cublas, and scale_A, scale_B, fast_accum, bias,
---epilogue = "relu" or "gelu", algos = 32, workspace = bytes
---@return cute.Blas[]
function Gpu:cublaslt(options) end

---Returns the first proposal of cublasLt's heuristics for a problem: algorithm,
---tile, split, reduction and workspace.
---@param options table those of cublaslt, with element types for A, B and D
---@return table
function Gpu:cublaslt_first(options) end

---Creates an event: a point in a stream that other work can wait for.
---@return any event
function Gpu:event() end

---Returns the free and the total memory of the GPU in bytes.
---@return integer
---@return integer
function Gpu:free_memory() end

---Wraps a stream of another library, given by its handle in the driver, in a
---stream object. The library must keep its stream open (cute.external_stream).
---@param handle integer
---@return any? stream
---@return string? message
function Gpu:foreign_stream(handle) end

---Returns the driver's description of the GPU: name, architecture,
---multiprocessors, memory, clocks.
---@return table
function Gpu:info() end

---Returns a kernel of a compiled program.
---@param cubin string
---@param name string
---@param parameters? integer number of its parameters, if known
---@param level? integer level of the driver's optimisation of PTX, 0 to 4; 4
---when absent
---@return cute.GpuFunction
function Gpu:load(cubin, name, parameters, level) end

---Returns the memory of a variable of a kernel's module, as a buffer of u8. Do
---not use the buffer after the kernel is closed.
---@param kernel cute.GpuFunction
---@param name string
---@return any? buffer
---@return string? message
function Gpu:variable(kernel, name) end

---Returns statistics of the buffer pool: used, peak, pool, hits, misses, free
---and total (bytes).
---@return table
function Gpu:memory() end

---Creates a stream, which runs its work in order and concurrently with other
---streams.
---@return any stream
function Gpu:stream() end

---Returns the number of a stream, or of the current one; 0 is the driver's
---default stream.
---@param stream? any
---@return integer
function Gpu:stream_number(stream) end

---Waits for all work of the GPU. Raises [kernel-fault] or [driver-error] if any
---of it failed.
function Gpu:sync() end

---Returns unused memory of the pool to the driver.
---@return integer bytes
function Gpu:trim() end

---Makes a stream the current one, for work that names no stream. Returns the
---previous one.
---@param stream? any the driver's default stream when absent
---@return any
function Gpu:use_stream(stream) end

---Memory of a GPU. It returns to the pool when it is closed or collected.
---@class cute.DeviceBuffer
---@field dtype cute.DType element type
---@field count integer number of elements
---@field nbytes integer size in bytes
---@field closed boolean true after close
---@field device string the GPU that owns it: "gpu", "gpu:1"
---@field address integer its address
local DeviceBuffer = {}

---Copies the elements of a host buffer of the same type and count to the GPU.
---@param buffer cute.Buffer
function DeviceBuffer:upload(buffer) end

---Copies the elements of the device buffer to a buffer of the host.
---@param buffer? cute.Buffer filled and returned; a new one when absent
---@return cute.Buffer
function DeviceBuffer:download(buffer) end

---Sets every byte of the device buffer to `byte`.
---@param byte integer
---@param stream? any
function DeviceBuffer:memset(byte, stream) end

---Copies the bytes of a device buffer of the same size.
---@param source cute.DeviceBuffer
---@param stream? any
function DeviceBuffer:copy(source, stream) end

---Returns the memory to the pool; later uses raise [closed].
function DeviceBuffer:close() end

---A kernel of a compiled program on a GPU.
---@class cute.GpuFunction
local GpuFunction = {}

---Returns the driver's attributes of the kernel: registers, shared, local and
---constant memory, threads.
---@return table
function GpuFunction:attributes() end

---Reports whether the kernel is neither closed nor lost with its context.
---@return boolean
function GpuFunction:usable() end

---Checks and packs the arguments and options of a launch, so that a later
---launch is one call of the driver.
---@param options table args (a list of device buffers, {buffer, byte offset},
---{dtype, number}, raw bytes), grid, block, smem, stream, cluster, pdl,
---cooperative
---@return cute.GpuLaunch
function GpuFunction:prepare(options) end

---Unloads the program.
function GpuFunction:close() end

---A launch whose arguments are already checked and packed.
---@class cute.GpuLaunch
local GpuLaunch = {}

---Launches without waiting.
---@param stream? any the stream of the launch, or the current one when absent
function GpuLaunch:launch(stream) end

---Launches n times in sequence.
---@param n integer
---@param stream? any
function GpuLaunch:launch_n(n, stream) end

---Returns how many clusters of this launch the GPU can hold at the same time.
---@return integer
function GpuLaunch:max_active_clusters() end

---A product of cuBLAS that is ready to be computed.
---@class cute.Blas
local Blas = {}

---Computes the product without waiting.
---@param stream? any
function Blas:launch(stream) end

---Computes the product n times.
---@param n integer
---@param stream? any
function Blas:launch_n(n, stream) end

---Frees the workspace of the product.
function Blas:close() end

---------------------------------------------------------------------------
-- cute.jit
---------------------------------------------------------------------------

---Returns the version of NVRTC, or nil and a message if it is not found.
---@return string?
---@return string?
function cute.nvrtc_version() end

return cute
-- SPDX-License-Identifier: MIT
