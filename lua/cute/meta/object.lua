---@meta cute
-- Documents the objects that lua/cute makes, traced scalars and the parts of
-- layouts. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

---A kernel made by cute.kernel. Called with arguments it returns a call, which
---can be launched, compiled or inspected.
---
---     local add = cute.kernel(function(x, y)
---       local i = cute.arch.thread_idx()
---       x[i] = x[i] + y[i]
---     end)
---     x, y = cute.ones({32}, cute.f32), cute.ones({32}, cute.f32)
---     add(x, y):launch {grid = 1, block = 32, device = "sim"}
---     x[31]  --> 2.0
---@class cute.Kernel

---A kernel with its arguments, `k(A, B)`. The kernel is traced once for each
---argument key (types, layouts, alignment, constants) and compiled once for
---each architecture.
---@class cute.Call

---A traced kernel with its compiled forms. Fields: source (CUDA C), ir (the
---trace as text), resources (registers, spills, shared memory; from NVRTC),
---warnings.
---@class cute.Program

---A launch that is already traced, compiled and packed, so that launching takes
---one call. cute.compile and call:compile make it.
---@class cute.Prepared

---CUDA C written by the user and compiled by cute.raw_kernel. Called with
---arguments it returns a call.
---@class cute.RawKernel

---A raw kernel with its arguments.
---@class cute.RawCall

---A launch of a raw kernel that is already compiled, loaded and packed.
---@class cute.PreparedRawKernel

---A target on which kernels run: the simulator of an architecture, or a GPU.
---@class cute.Device

---The result of call:preflight: the reasons why a kernel cannot run on a
---target, or the resources that it uses there. If the kernel was compiled,
---registers, spilled, blocks (per SM) and by (the resource that limits the
---blocks) are present.
---@class cute.Preflight

---A shared-memory access that takes more passes than necessary because of bank
---conflicts. report:conflicts() lists such accesses. Fields: file, line, op,
---tensor, conflicts, passes, least (the smallest possible number of passes),
---lanes.
---@class cute.Conflict

---The result of cute.find_swizzle for one tensor: layout; lua (the code to
---write); was and now (the conflicts before and with the layout); cured; bytes;
---lines.
---@class cute.FoundSwizzle

---------------------------------------------------------------------------
-- Loops, branches, variables
---------------------------------------------------------------------------

---A traced scalar of a kernel. Operators append an instruction to the kernel.
---Comparisons are methods (`a:lt(b)`), because Lua's operators would need the
---result at trace time.
---@class cute.Value

---------------------------------------------------------------------------
-- Mathematics
---------------------------------------------------------------------------

---A divisor for repeated use, made by cute.fast_divmod_create_divisor: `n // d`
---and `n % d` become a product and shifts.
---@class cute.Divisor

---------------------------------------------------------------------------
-- Symbolic arguments
---------------------------------------------------------------------------

---An integer whose value each launch provides, made by cute.sym_int.
---@class cute.Symbol
---@field id integer identifies the symbol
---@field width integer bits
---@field divisibility integer a known divisor

---------------------------------------------------------------------------
-- cute.pipeline
---------------------------------------------------------------------------

---The common interface of the barriers of cute.pipeline. If a barrier does not
---support a method, calling the method raises an error.
---@class cute.pipeline.SyncObject
---@field arrive function records the arrival of this thread or its warp
---@field wait function waits until all have arrived
---@field arrive_and_wait function arrives, then waits
---@field arrive_and_drop function arrives, and is not counted in later phases
---@field get_barrier function returns the hardware barrier
---@field max function returns the largest number of stages

---A stage that a PipelineProducer or PipelineConsumer acquired. It has the
---fields index and count.
---@class cute.PipelineHandle

---------------------------------------------------------------------------
-- cute.utils
---------------------------------------------------------------------------

---The layout of a matrix, by its contiguous mode:
---cute.utils.LayoutEnum.ROW_MAJOR or COL_MAJOR.
---@class cute.LayoutEnum

---An iterator over tiles that also sends tile numbers to the blocks of a
---cluster. DynamicPersistentTileScheduler:producer makes it.
---@class cute.DynamicTileProducer

---An iterator over tiles that receives their numbers.
---DynamicPersistentTileScheduler:consumer makes it.
---@class cute.DynamicTileConsumer

---The state of a search through consecutive groups, made by
---cute.utils.create_initial_contiguous_group_search_state.
---@class cute.ContiguousGroupSearchState

---------------------------------------------------------------------------
-- Printing and drawing
---------------------------------------------------------------------------

---The version of cutelua.
---@type string
cute.version = nil

return cute
-- SPDX-License-Identifier: MIT
