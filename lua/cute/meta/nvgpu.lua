---@meta cute
-- Documents constants and TMA atoms for editors: cute.nvgpu, cute.pipeline,
-- cute.utils. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- cute.nvgpu
---------------------------------------------------------------------------

---Memory orders of accesses: the values of `sem` of cute.arch.load, store and
---atomics.
---@class cute.nvgpu.MemoryOrder
---@field RELAXED string no ordering of other accesses
---@field ACQUIRE string later accesses stay after it
---@field RELEASE string earlier accesses stay before it
---@field ACQ_REL string both ACQUIRE and RELEASE

---Scopes of memory orders: the values of `scope` of cute.arch.load, store and
---atomics.
---@class cute.nvgpu.MemoryScope
---@field CTA string threads of the block
---@field CLUSTER string threads of the cluster
---@field GPU string threads of the device
---@field SYS string the host and other devices, too

---Eviction priorities of lines in L1: the values of level1_eviction_priority of
---loads and stores.
---@class cute.nvgpu.CacheEvictionPriority
---@field EVICT_NORMAL string the default
---@field EVICT_FIRST string evicted first: data that is read once
---@field EVICT_LAST string evicted last: data that is read again
---@field EVICT_UNCHANGED string keeps the line's current priority
---@field NO_ALLOCATE string allocates no line

---Cache operators of stores: the values of `cop` of cute.arch.store.
---@class cute.nvgpu.StoreCacheMode
---@field WRITE_BACK string cached in all levels
---@field GLOBAL string cached in L2 only
---@field STREAMING string evicted first
---@field WRITE_THROUGH string written through L2 to system memory

---The mode along which an operand of a warpgroup MMA is contiguous: K, or M or
---N.
---@class cute.nvgpu.warpgroup.OperandMajorMode
---@field K string along K
---@field MN string along M or N

cute.nvgpu.OperandMajorMode = cute.nvgpu.warpgroup.OperandMajorMode
cute.nvgpu.LoadCacheMode = cute.nvgpu.cpasync.LoadCacheMode

---------------------------------------------------------------------------
-- cute.nvgpu.cpasync
---------------------------------------------------------------------------

---Cache operators of loads: the values of `cop` of cute.arch.load, and the
---argument of CopyG2SOp.
---@class cute.nvgpu.cpasync.LoadCacheMode
---@field ALWAYS string cached in all levels
---@field GLOBAL string cached in L2 only
---@field STREAMING string evicted first
---@field LAST_USE string not read again
---@field NONE string always read from memory

---Operations that a TMA reduction can perform on the elements in global memory.
---@class cute.nvgpu.cpasync.ReductionKind
---@field ADD string adds
---@field MIN string keeps the minimum
---@field MAX string keeps the maximum
---@field AND string bitwise and
---@field OR string bitwise or
---@field XOR string bitwise exclusive or

---Eviction priorities in L2 of lines that TMA reads: the values of cache_policy
---of a copy.
---@class cute.nvgpu.cpasync.CacheHint
---@field EVICT_NORMAL integer the default
---@field EVICT_FIRST integer evicted first: data that is read once
---@field EVICT_LAST integer evicted last: data that is read again

---A TMA instruction for one tensor, made by the functions of cute.nvgpu.cpasync
---for cute.copy.
---@class cute.TmaAtom
---@field tx_bytes integer bytes that one copy delivers to a block
---@field values integer elements that one copy moves
---@field stores boolean true if it writes global memory
---@field num_multicast integer number of blocks that receive what it loads
---@field swizzle integer bytes of shared memory's swizzle: 0, 32, 64, 128
---@field box integer[] extents of the box it moves, contiguous one first
---@field value_type cute.DType element type

---------------------------------------------------------------------------
-- cute.nvgpu.warpgroup
---------------------------------------------------------------------------

---The fields that a tiled MMA of a warpgroup can set: `tiled_mma:set(field,
---value)`.
---@class cute.nvgpu.warpgroup.Field
---@field ACCUMULATE string whether products add to their accumulators

---The memory from which a warpgroup MMA reads operand A.
---@class cute.nvgpu.warpgroup.OperandSource
---@field RMEM string registers
---@field SMEM string shared memory

---Kinds of shared-memory layouts that a warpgroup's MMA reads, by the
---contiguous mode and the width of the swizzle.
---@class cute.nvgpu.warpgroup.SmemLayoutAtomKind
---@field MN_INTER string M or N contiguous, no swizzle
---@field MN_SW32 string M or N contiguous, 32 bytes
---@field MN_SW64 string M or N contiguous, 64 bytes
---@field MN_SW128 string M or N contiguous, 128 bytes
---@field K_INTER string K contiguous, no swizzle
---@field K_SW32 string K contiguous, 32 bytes
---@field K_SW64 string K contiguous, 64 bytes
---@field K_SW128 string K contiguous, 128 bytes

---------------------------------------------------------------------------
-- cute.nvgpu.tcgen05
---------------------------------------------------------------------------

---The mode along which an operand of an MMA is contiguous: K, or M or N.
---@class cute.nvgpu.tcgen05.OperandMajorMode
---@field K string along K
---@field MN string along M or N

---The memory from which an MMA reads operand A.
---@class cute.nvgpu.tcgen05.OperandSource
---@field TMEM string tensor memory
---@field SMEM string shared memory

---Formats of the metadata of a sparse A.
---@class cute.nvgpu.tcgen05.SparseMetadataFormat
---@field TID string the only one

---The fields that a tiled MMA can set: `tiled_mma:set(field, value)`.
---@class cute.nvgpu.tcgen05.Field
---@field ACCUMULATE string whether products add to their accumulators
---@field SFA string pointer to the first scale factor of A, in tensor memory,
---for one instruction
---@field SFB string the same for B

---Says whether a load packs two 16-bit values into a register.
---@class cute.nvgpu.tcgen05.Pack
---@field NONE string no
---@field PACK_16b_IN_32b string yes

---Says whether a store unpacks two 16-bit values of a register.
---@class cute.nvgpu.tcgen05.Unpack
---@field NONE string no
---@field UNPACK_32b_IN_16b string yes

---Kinds of shared-memory layouts that an MMA reads, by the contiguous mode and
---the width of the swizzle.
---@class cute.nvgpu.tcgen05.SmemLayoutAtomKind
---@field MN_INTER string M or N contiguous, no swizzle
---@field MN_SW32 string M or N contiguous, 32 bytes
---@field MN_SW64 string M or N contiguous, 64 bytes
---@field MN_SW128 string M or N contiguous, 128 bytes
---@field MN_SW128_32B string M or N contiguous, 128 bytes in pieces of 32
---@field K_INTER string K contiguous, no swizzle
---@field K_SW32 string K contiguous, 32 bytes
---@field K_SW64 string K contiguous, 64 bytes
---@field K_SW128 string K contiguous, 128 bytes

---Makes the operation of a load from tensor memory by a warp: 32 lanes of 32
---bits. Thread t loads columns of lane t. The shape is repeated along the
---columns.
---@param repeats? integer from Repetition, x1 when absent
---@param pack? string from Pack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.Ld32x32bOp(repeats, pack) end

---Makes the operation of a load from tensor memory by a warp: 16 lanes of 64
---bits. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param pack? string from Pack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.Ld16x64bOp(repeats, pack) end

---Makes the operation of a load from tensor memory by a warp: 16 lanes of 128
---bits. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param pack? string from Pack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.Ld16x128bOp(repeats, pack) end

---Makes the operation of a load from tensor memory by a warp: 16 lanes of 256
---bits. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param pack? string from Pack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.Ld16x256bOp(repeats, pack) end

---Makes the operation of a load from tensor memory by a warp: 16 lanes of 32
---bits, twice. One half of the threads loads columns directly after those of
---the other half. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param pack? string from Pack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.Ld16x32bx2Op(repeats, pack) end

---Makes the operation of a store to tensor memory by a warp: 32 lanes of 32
---bits. Thread t stores columns of lane t. The shape is repeated along the
---columns.
---@param repeats? integer from Repetition, x1 when absent
---@param unpack? string from Unpack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.St32x32bOp(repeats, unpack) end

---Makes the operation of a store to tensor memory by a warp: 16 lanes of 64
---bits. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param unpack? string from Unpack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.St16x64bOp(repeats, unpack) end

---Makes the operation of a store to tensor memory by a warp: 16 lanes of 128
---bits. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param unpack? string from Unpack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.St16x128bOp(repeats, unpack) end

---Makes the operation of a store to tensor memory by a warp: 16 lanes of 256
---bits. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param unpack? string from Unpack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.St16x256bOp(repeats, unpack) end

---Makes the operation of a store to tensor memory by a warp: 16 lanes of 32
---bits, twice. One half of the threads stores columns directly after those of
---the other half. The shape is repeated along the columns.
---@param repeats? integer from Repetition, x1 when absent
---@param unpack? string from Unpack
---@return table for cute.make_copy_atom
function cute.nvgpu.tcgen05.St16x32bx2Op(repeats, unpack) end

---------------------------------------------------------------------------
-- cute.pipeline
---------------------------------------------------------------------------

---Kinds of agents of cute.pipeline. An agent is the group of threads that
---arrives at a barrier, or that synchronizes.
---@class cute.pipeline.Agent
---@field Thread string each thread
---@field Warp string one lane of each warp
---@field ThreadBlock string the block
---@field ThreadBlockCluster string the cluster

---Arrangements of a pipeline's mbarriers in shared memory.
---@class cute.pipeline.MbarrierLayout
---@field V0 string consecutive

---Users of a pipeline's stages, for which a state is made.
---@class cute.pipeline.PipelineUserType
---@field Producer string fills stages
---@field Consumer string reads stages

---------------------------------------------------------------------------
-- cute.utils
---------------------------------------------------------------------------

---Says where a kernel changes a tensor map.
---@class cute.utils.TensorMapUpdateMode
---@field GMEM string in global memory
---@field SMEM string in shared memory, and copied from there

---The layouts of a matrix, named by its contiguous mode. from_tensor returns
---the value for a tensor. The values have methods for operands and results.
---@class cute.utils.LayoutEnum
---@field ROW_MAJOR cute.LayoutEnum last mode contiguous
---@field COL_MAJOR cute.LayoutEnum first mode contiguous

---------------------------------------------------------------------------
-- cute.cli
---------------------------------------------------------------------------

---The command-line options that all scripts share, by name. The option `common`
---of cli.parse selects from them.
---@class cute.cli.common
---@field device table --device: where to run
---@field arch table --arch: the target of the simulator and of --emit
---@field emit table --emit: write generated code
---@field output table -o: the file that --emit writes
---@field seed table --seed: of the data and of schedules
---@field a table --a: the file of the first operand
---@field b table --b: the file of the second operand
---@field out table --out: the file of the result
---@field conflicts table --conflicts: report bank conflicts

return cute
-- SPDX-License-Identifier: MIT
