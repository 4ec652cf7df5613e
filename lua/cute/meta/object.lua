---@meta cute
-- Comments of the objects that lua/cute makes, of traced scalars and of what
-- layouts are made of. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

---A kernel, as cute.kernel makes it: called with arguments it gives a call,
---which is launched, compiled or asked.
---
---     local add = cute.kernel(function(x, y)
---       local i = cute.arch.thread_idx()
---       x[i] = x[i] + y[i]
---     end)
---     x, y = cute.ones({32}, cute.f32), cute.ones({32}, cute.f32)
---     add(x, y):launch {grid = 1, block = 32, device = "sim"}
---     x[31]  --> 2.0
---@class cute.Kernel

---A kernel with its arguments, `k(A, B)`: traced once per kind of arguments,
---compiled once per architecture.
---@class cute.Call

---A traced kernel and what was made of it: source (CUDA C), ir (the trace as
---text), resources (registers, spills, shared memory; by NVRTC), warnings.
---@class cute.Program

---A launch with everything traced, compiled and packed, as cute.compile and
---call:compile give it: launching is one call.
---@class cute.Prepared

---CUDA C of the user's own, as cute.raw_kernel compiles it: called with
---arguments it gives a call.
---@class cute.RawKernel

---A raw kernel with its arguments.
---@class cute.RawCall

---A launch of a raw kernel that is compiled, loaded and packed.
---@class cute.PreparedRawKernel

---Where kernels run: the simulator of an architecture, or a GPU.
---@class cute.Device

---What keeps a kernel from a target, or what it takes there: call:preflight
---gives it; registers, spilled, blocks (an SM's) and by (what limits them) are
---there when it was compiled.
---@class cute.Preflight

---An access to shared memory that takes more passes than it needs, as
---report:conflicts() lists them: file, line, op, tensor, conflicts, passes,
---least, lanes.
---@class cute.Conflict

---What cute.find_swizzle found for one tensor: layout, lua (what to write), was
---and now (conflicts), cured, bytes, lines.
---@class cute.FoundSwizzle

---------------------------------------------------------------------------
-- Loops, branches, variables
---------------------------------------------------------------------------

---A traced scalar of a kernel. Operators append to the kernel; comparisons are
---methods (`a:lt(b)`), since Lua's would need their answer while tracing.
---@class cute.Value

---------------------------------------------------------------------------
-- Mathematics
---------------------------------------------------------------------------

---A divisor that is used many times, as cute.fast_divmod_create_divisor makes
---it: `n // d` and `n % d` are a product and shifts.
---@class cute.Divisor

---------------------------------------------------------------------------
-- Symbolic arguments
---------------------------------------------------------------------------

---An integer that each launch tells, as cute.sym_int makes it.
---@class cute.Symbol
---@field id integer which one it is
---@field width integer bits
---@field divisibility integer what divides it

---------------------------------------------------------------------------
-- cute.pipeline
---------------------------------------------------------------------------

---What barriers of cute.pipeline have in common: methods that one of them lacks
---say so.
---@class cute.pipeline.SyncObject
---@field arrive function tells that this thread, or its agent, has come
---@field wait function waits until all have come
---@field arrive_and_wait function both
---@field arrive_and_drop function arrives, and is not counted from then on
---@field get_barrier function what it is to the hardware
---@field max function how many stages it can have

---A stage that a PipelineProducer or PipelineConsumer waited for: index, count.
---@class cute.PipelineHandle

---------------------------------------------------------------------------
-- cute.utils
---------------------------------------------------------------------------

---Which mode of a matrix is contiguous: cute.utils.LayoutEnum.ROW_MAJOR or
---COL_MAJOR.
---@class cute.LayoutEnum

---Who hands tiles to the blocks of a cluster, as
---DynamicPersistentTileScheduler:producer gives it.
---@class cute.DynamicTileProducer

---Who takes tiles, as DynamicPersistentTileScheduler:consumer gives it.
---@class cute.DynamicTileConsumer

---Where a search through groups that follow one another is, as
---cute.utils.create_initial_contiguous_group_search_state makes it.
---@class cute.ContiguousGroupSearchState

---------------------------------------------------------------------------
-- Printing and drawing
---------------------------------------------------------------------------

---The version of cutelua.
---@type string
cute.version = nil

return cute
