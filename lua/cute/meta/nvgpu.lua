---@meta cute
-- Comments of constants and TMA atoms: cute.nvgpu, cute.pipeline, cute.utils.
-- Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- cute.nvgpu
---------------------------------------------------------------------------

---The order of an access among threads: `sem` of cute.arch.load, store and
---atomics.
---@class cute.nvgpu.MemoryOrder
---@field RELAXED string no order but its own
---@field ACQUIRE string what is behind it comes after
---@field RELEASE string what is in front of it comes before
---@field ACQ_REL string both

---Among whom an access is ordered: `scope` of cute.arch.load, store, atomics.
---@class cute.nvgpu.MemoryScope
---@field CTA string threads of the block
---@field CLUSTER string threads of the cluster
---@field GPU string threads of the device
---@field SYS string the host and other devices, too

---How long a line stays in the first cache: level1_eviction_priority of loads
---and stores.
---@class cute.nvgpu.CacheEvictionPriority
---@field EVICT_NORMAL string as usual
---@field EVICT_FIRST string leaves first: data that is read once
---@field EVICT_LAST string leaves last: data that comes again
---@field EVICT_UNCHANGED string the line's place stays as it is
---@field NO_ALLOCATE string does not take a line

---Through which caches stores go: `cop` of cute.arch.store.
---@class cute.nvgpu.StoreCacheMode
---@field WRITE_BACK string kept in all caches
---@field GLOBAL string kept in L2 alone
---@field STREAMING string leaves first
---@field WRITE_THROUGH string through L2 to memory of the system

---In which mode an operand is contiguous.
---@class cute.nvgpu.warpgroup.OperandMajorMode
---@field K string along K
---@field MN string along M or N

cute.nvgpu.OperandMajorMode = cute.nvgpu.warpgroup.OperandMajorMode
cute.nvgpu.LoadCacheMode = cute.nvgpu.cpasync.LoadCacheMode

---------------------------------------------------------------------------
-- cute.nvgpu.cpasync
---------------------------------------------------------------------------

---Through which caches loads go: `cop` of cute.arch.load, CopyG2SOp.
---@class cute.nvgpu.cpasync.LoadCacheMode
---@field ALWAYS string kept in all caches
---@field GLOBAL string kept in L2 alone
---@field STREAMING string leaves first
---@field LAST_USE string not needed again
---@field NONE string read anew from memory

---What a TMA reduction does with what is there.
---@class cute.nvgpu.cpasync.ReductionKind
---@field ADD string adds
---@field MIN string keeps the least
---@field MAX string keeps the largest
---@field AND string keeps bits that both have
---@field OR string keeps bits that one has
---@field XOR string keeps bits that one alone has

---How long lines that TMA reads stay in L2: cache_policy of a copy.
---@class cute.nvgpu.cpasync.CacheHint
---@field EVICT_NORMAL integer as usual
---@field EVICT_FIRST integer leaves first: data that is read once
---@field EVICT_LAST integer leaves last: data that comes again

---An instruction of TMA for one tensor, as the functions of
---cute.nvgpu.cpasync make it: what cute.copy takes.
---@class cute.TmaAtom
---@field tx_bytes integer bytes that one copy brings to a block
---@field values integer elements that one copy moves
---@field stores boolean does it write global memory?
---@field num_multicast integer blocks that share what it loads
---@field swizzle integer bytes of shared memory's swizzle: 0, 32, 64, 128
---@field box integer[] extents of what it moves, the contiguous one first
---@field value_type cute.DType what elements are

---------------------------------------------------------------------------
-- cute.nvgpu.warpgroup
---------------------------------------------------------------------------

---What a tiled MMA of a warpgroup can be told: `tiled_mma:set(field, value)`.
---@class cute.nvgpu.warpgroup.Field
---@field ACCUMULATE string do products add to their accumulators?

---Where a warpgroup's MMA reads A.
---@class cute.nvgpu.warpgroup.OperandSource
---@field RMEM string registers
---@field SMEM string shared memory

---Layouts of shared memory that a warpgroup's MMA reads, by what is contiguous
---and how many bytes are swizzled.
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
-- cute.pipeline
---------------------------------------------------------------------------

---Who arrives at a barrier, or is synchronised.
---@class cute.pipeline.Agent
---@field Thread string each thread
---@field Warp string one lane of each warp
---@field ThreadBlock string the block
---@field ThreadBlockCluster string the cluster

---How the mbarriers of a pipeline lie in shared memory.
---@class cute.pipeline.MbarrierLayout
---@field V0 string one behind the other

---Who a pipeline's state belongs to.
---@class cute.pipeline.PipelineUserType
---@field Producer string who fills stages
---@field Consumer string who reads them

---------------------------------------------------------------------------
-- cute.utils
---------------------------------------------------------------------------

---Where a tensor map is changed.
---@class cute.utils.TensorMapUpdateMode
---@field GMEM string in global memory
---@field SMEM string in shared memory, copied from there

---Which mode of a matrix is contiguous: from_tensor tells it of a tensor, and
---its objects answer for operands and results.
---@class cute.utils.LayoutEnum
---@field ROW_MAJOR cute.LayoutEnum the last mode
---@field COL_MAJOR cute.LayoutEnum the first mode

---------------------------------------------------------------------------
-- cute.cli
---------------------------------------------------------------------------

---The options that scripts share, by name: what `common` of cli.parse picks.
---@class cute.cli.common
---@field device table --device: where to run
---@field arch table --arch: what the simulator and --emit target
---@field emit table --emit: write what is generated
---@field output table -o: where --emit writes
---@field seed table --seed: of the data and of schedules
---@field a table --a: the first operand from a file
---@field b table --b: the second operand from a file
---@field out table --out: where the result goes
---@field conflicts table --conflicts: who collides in shared memory

return cute
