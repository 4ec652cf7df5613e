---@meta cute
-- Comments of GPUs as cute.gpu has them: memory, launches, products.
-- Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- cute.gpu
---------------------------------------------------------------------------

---A GPU, as cute.gpu.open gives it: memory, streams, kernels and products
---without cute.kernel. What the driver refuses to give is nil and a message;
---what it refuses to do is an error.
---@class cute.Gpu
local Gpu = {}

---Can the GPU still be used? Nil and a message once a kernel's fault cost the
---process its context.
---@return boolean?
---@return string?
function Gpu:alive() end

---Memory of the GPU: for `count` elements, undefined, or a copy of a buffer of
---the host.
---@param dtype cute.DType|string|cute.Buffer
---@param count? integer
---@return cute.DeviceBuffer
function Gpu:buffer(dtype, count) end

---A graph of what a function launches and copies: cute.graph, by the GPU.
---@param f function
---@param stream? any where launches name one, that which is recorded
---@return any graph
function Gpu:capture(f, stream) end

---Is a graph being captured now?
---@return boolean
function Gpu:capturing() end

---A product of cuBLAS, made ready: D = A * B^T + beta * D.
---@param options table m, n, k, A, B, D (buffers), layout, m_major, tf32, beta
---@return cute.Blas
function Gpu:cublas(options) end

---The version of cuBLAS, or nil and a message where there is none.
---@return string?
function Gpu:cublas_version() end

---A list of products of cublasLt, made ready: one for each algorithm that its
---heuristics propose.
---@param options table as cublas, and scale_A, scale_B, fast_accum, bias,
---epilogue = "relu" or "gelu", algos = 32, workspace = bytes
---@return cute.Blas[]
function Gpu:cublaslt(options) end

---What cublasLt's heuristics propose first for a problem: algorithm, tile,
---split, reduction and workspace.
---@param options table as cublaslt, with element types for A, B and D
---@return table
function Gpu:cublaslt_first(options) end

---An event: a place in a stream that one can wait for.
---@return any event
function Gpu:event() end

---Bytes that the driver has left, and all that the GPU has.
---@return integer
---@return integer
function Gpu:free_memory() end

---What the driver says of the GPU: name, architecture, multiprocessors, memory,
---clocks.
---@return table
function Gpu:info() end

---A kernel of a compiled program.
---@param cubin string
---@param name string
---@param parameters? integer how many it has, where that is known
---@return cute.GpuFunction
function Gpu:load(cubin, name, parameters) end

---What the pool of buffers holds: used, peak, pool, hits, misses, free and
---total (bytes).
---@return table
function Gpu:memory() end

---A stream: what it is given runs in that order, beside other streams.
---@return any stream
function Gpu:stream() end

---The number of a stream, or of the one where work goes now; 0 is the driver's
---own.
---@param stream? any
---@return integer
function Gpu:stream_number(stream) end

---Waits for all that the GPU was given. Raises [kernel-fault] or [driver-error]
---where something of it failed.
function Gpu:sync() end

---Gives the driver what of the pool is not in use.
---@return integer bytes
function Gpu:trim() end

---Makes a stream the current one, to which goes what names none; the one before
---is given back.
---@param stream? any the driver's own when absent
---@return any
function Gpu:use_stream(stream) end

---Memory of a GPU. It goes back to the pool when it is closed or collected.
---@class cute.DeviceBuffer
---@field dtype cute.DType what elements are
---@field count integer how many
---@field nbytes integer bytes
---@field closed boolean was it given back?
---@field device string whose it is: "gpu", "gpu:1"
---@field address integer where it is
local DeviceBuffer = {}

---Takes the elements of a buffer of the host, of the same type and count.
---@param buffer cute.Buffer
function DeviceBuffer:upload(buffer) end

---Its elements as a buffer of the host.
---@param buffer? cute.Buffer filled and given back; a new one when absent
---@return cute.Buffer
function DeviceBuffer:download(buffer) end

---Sets every byte.
---@param byte integer
---@param stream? any
function DeviceBuffer:memset(byte, stream) end

---Takes the bytes of a device buffer as large.
---@param source cute.DeviceBuffer
---@param stream? any
function DeviceBuffer:copy(source, stream) end

---Gives the memory back to the pool; what uses it then raises [closed].
function DeviceBuffer:close() end

---A kernel of a compiled program on a GPU.
---@class cute.GpuFunction
local GpuFunction = {}

---What the driver says of it: registers, shared, local and constant memory,
---threads.
---@return table
function GpuFunction:attributes() end

---Is it neither closed nor lost with its context?
---@return boolean
function GpuFunction:usable() end

---A launch with everything checked and packed, so that launching is one call.
---@param options table args (a list of device buffers, {buffer, byte offset},
---{dtype, number}, raw bytes), grid, block, smem, stream, cluster, pdl,
---cooperative
---@return cute.GpuLaunch
function GpuFunction:prepare(options) end

---Unloads the program.
function GpuFunction:close() end

---A launch that is ready.
---@class cute.GpuLaunch
local GpuLaunch = {}

---Launches, and does not wait.
---@param stream? any that of the launch, or the current one when absent
function GpuLaunch:launch(stream) end

---Launches n times, one behind the other.
---@param n integer
---@param stream? any
function GpuLaunch:launch_n(n, stream) end

---How many of its clusters the GPU holds at a time.
---@return integer
function GpuLaunch:max_active_clusters() end

---A product of cuBLAS that is ready.
---@class cute.Blas
local Blas = {}

---Computes the product, and does not wait.
---@param stream? any
function Blas:launch(stream) end

---Computes the product n times.
---@param n integer
---@param stream? any
function Blas:launch_n(n, stream) end

---Gives its workspace back.
function Blas:close() end

---------------------------------------------------------------------------
-- cute.jit
---------------------------------------------------------------------------

---The version of NVRTC, or nil and a message where it is not found.
---@return string?
---@return string?
function cute.nvrtc_version() end

return cute
