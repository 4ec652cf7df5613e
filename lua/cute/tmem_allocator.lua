--- cute.utils.TmemAllocator: one warp allocates columns of tensor memory for
-- its block, and all warps get a pointer to these columns (sm_100a and its
-- family).
--
--     local tmem = cute.utils.TmemAllocator(nil, {barrier_for_retrieve =
--       cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 128}})
--     tmem:allocate(128)
--     tmem:wait_for_alloc()
--     local ptr = tmem:retrieve_ptr(cute.f32)
--     tmem:relinquish_alloc_permit()
--     ...                                   -- accumulators at ptr
--     cute.arch.sync_threads()              -- after the columns' last use
--     tmem:free(ptr)
--
-- All threads of the block may call each method. Methods for the allocating
-- warp do nothing in other warps.
local sign = require "cute.lang.signature"
local arch = require "cute.arch"
local blackwell = require "cute.blackwell"
local branch = require "cute.lang.branch"
local core = require "cute.core"
local pointer = require "cute.pointer"

local allocator = {}

local function refuse(what, text, ...)
  core.fail("bad-argument", what .. ": " .. text:format(...))
end

---------------------------------------------------------------------------
-- TmemBufferPool
---------------------------------------------------------------------------

local Pool = {}
Pool.__index = Pool

--- Makes a pool that divides columns of tensor memory among tensors. Its fields
-- are base_ptr, total_cols and current_offset, in columns. Columns cannot be
-- returned to a pool.
---@param base_ptr table pointer to the first column, with elements of 32 bits
---@param total_cols integer
---@return table pool
function allocator.TmemBufferPool(base_ptr, total_cols)
  if base_ptr.element_type.bits ~= 32 then
    refuse("TmemBufferPool", "base_ptr points to %s; elements of 32 bits are "
      .. "needed, one for each column", tostring(base_ptr.element_type))
  end
  return setmetatable({base_ptr = base_ptr, total_cols = total_cols,
                       current_offset = 0}, Pool)
end

--- Returns the number of columns that are still free.
---@return integer
function Pool:remaining_cols() return self.total_cols - self.current_offset end

--- Allocates the next columns of the pool, and returns a pointer to the first.
---@param size integer|cute.Layout a number of columns, or a layout in tensor
-- memory whose offsets count elements of dtype
---@param dtype cute.DType element type of the pointer
---@return table pointer
function Pool:allocate(size, dtype)
  local n = size
  if core.typename(size) == "layout" then
    n = blackwell.compute_tmem_cols_from_layout(size, dtype)
  end
  if math.type(n) ~= "integer" or n < 1 then
    refuse("allocate", "%s columns; a number from 1 on is needed",
           core.show(n))
  elseif n > self:remaining_cols() then
    refuse("allocate", "%d columns; the pool has %d left of %d", n,
           self:remaining_cols(), self.total_cols)
  end
  local at = self.base_ptr
  if self.current_offset > 0 then at = at + self.current_offset end
  self.current_offset = self.current_offset + n
  return pointer.recast_ptr(at, dtype)
end

--- Allocates columns of the pool for a layout, and returns a tensor in them.
---@param layout cute.Layout a layout in tensor memory whose offsets count
-- elements of dtype
---@param dtype cute.DType
---@return cute.Tensor
function Pool:allocate_tensor(layout, dtype)
  return core.make_tensor(self:allocate(layout, dtype), layout)
end

---------------------------------------------------------------------------
-- TmemAllocator
---------------------------------------------------------------------------

local Allocator = {}
Allocator.__index = Allocator

-- Runs f in the allocating warp only.
local function when_allocating(self, f)
  branch.when(arch.warp_idx():eq(self.warp), f)
end

-- Makes one thread of the allocating warp initialize an mbarrier. The 32
-- threads of the other block's allocating warp arrive at it.
local function init_mbarrier(self)
  when_allocating(self, function()
    branch.when(arch.elect_one(), function()
      arch.mbarrier_init(self.mbarrier, 32)
    end)
  end)
  arch.mbarrier_init_fence()
end

--- Makes an allocator for the kernel being traced.
--
-- barrier_for_retrieve is a NamedBarrier at which wait_for_alloc waits, so its
-- num_threads counts all threads that call it. allocator_warp_id is the warp of
-- the block that allocates and frees (0 if absent). With is_two_cta, a pair of
-- blocks allocates together, and frees only when both have called free. The
-- pair synchronizes at the mbarrier two_cta_tmem_dealloc_mbar_ptr. Pass both
-- this pointer and alloc_result_dst_smem_ptr, or neither. num_allocated_columns
-- is the number of columns that are allocated already.
---@param alloc_result_dst_smem_ptr? table pointer to an i32 in shared memory
-- that receives the address; if absent, it is allocated
---@param opts table the fields above
---@return table allocator
function allocator.TmemAllocator(alloc_result_dst_smem_ptr, opts)
  local bar = opts.barrier_for_retrieve
  if type(bar) ~= "table" then
    refuse("TmemAllocator", "barrier_for_retrieve is %s; a NamedBarrier is "
      .. "needed", core.show(bar))
  end
  local pair, mbar = opts.is_two_cta, opts.two_cta_tmem_dealloc_mbar_ptr
  if pair and (mbar == nil) ~= (alloc_result_dst_smem_ptr == nil) then
    refuse("TmemAllocator", "a pair needs both alloc_result_dst_smem_ptr and "
      .. "two_cta_tmem_dealloc_mbar_ptr, or none of them")
  end
  local self = setmetatable({
    address = alloc_result_dst_smem_ptr or arch.alloc_smem(core.i32, 1, 8),
    barrier = bar, warp = opts.allocator_warp_id or 0, pair = pair or false,
    columns = opts.num_allocated_columns or 0,
    mbarrier = pair and (mbar or arch.alloc_smem(core.i64, 1, 8)) or nil,
  }, Allocator)
  if pair then init_mbarrier(self) end
  return self
end

--- Reports whether an allocation may have this number of columns: 0, or a power
-- of two from 32 to 512.
---@param num_columns integer
---@return boolean
function Allocator:check_valid_num_columns(num_columns) -- luacheck: ignore self
  return num_columns >= 0 and num_columns <= arch.get_max_tmem_alloc_cols()
    and num_columns % arch.get_min_tmem_alloc_cols() == 0
    and num_columns & num_columns - 1 == 0
end

local function check(self, what, n)
  if math.type(n) ~= "integer" or not self:check_valid_num_columns(n) then
    refuse(what, "%s columns; a power of two from %d to %d is needed",
           core.show(n), arch.get_min_tmem_alloc_cols(),
           arch.get_max_tmem_alloc_cols())
  end
end

--- Makes the allocating warp allocate columns. All columns of an allocator must
-- fit in tensor memory. Afterwards, retrieve_ptr returns the address of this
-- allocation.
---@param num_columns integer a power of two from 32 to 512
function Allocator:allocate(num_columns)
  check(self, "allocate", num_columns)
  local most = arch.get_max_tmem_alloc_cols()
  if num_columns == 0 or self.columns + num_columns > most then
    refuse("allocate", "%d columns after %d; a block has %d", num_columns,
           self.columns, most)
  end
  when_allocating(self, function()
    arch.alloc_tmem(num_columns, self.address, self.pair)
  end)
  self.columns = self.columns + num_columns
end

--- Waits at barrier_for_retrieve. retrieve_ptr may be called afterwards.
function Allocator:wait_for_alloc() self.barrier:arrive_and_wait() end

--- Returns a pointer to the columns of the last allocation.
---@param dtype? cute.DType f32 if absent
---@return table pointer
function Allocator:retrieve_ptr(dtype)
  return arch.retrieve_tmem_ptr(dtype or core.f32, 16, self.address)
end

--- Allocates columns, waits for the allocation, and returns a pool that divides
-- the columns.
---@param num_columns integer as for allocate
---@return table pool a TmemBufferPool
function Allocator:reserve(num_columns)
  self:allocate(num_columns)
  self:wait_for_alloc()
  return allocator.TmemBufferPool(self:retrieve_ptr(), num_columns)
end

--- Makes the allocating warp give up its right to allocate, so that other
-- blocks can allocate tensor memory.
function Allocator:relinquish_alloc_permit()
  when_allocating(self, function()
    arch.relinquish_tmem_alloc_permit(self.pair)
  end)
end

--- Makes the allocating warp free the columns. The threads that used the
-- columns must have synchronized with this warp before. In a pair of blocks,
-- first waits until the other block calls `free`.
---@param tmem_ptr table pointer to the first column
---@param num_columns? integer all allocated columns if absent or 0
function Allocator:free(tmem_ptr, num_columns)
  local n = num_columns or 0
  check(self, "free", n)
  if n > self.columns then
    refuse("free", "%d columns; %d are allocated", n, self.columns)
  end
  if n == 0 then n = self.columns end
  self.columns = self.columns - n
  when_allocating(self, function()
    if self.pair then
      arch.mbarrier_arrive(self.mbarrier, arch.block_idx_in_cluster() ~ 1)
      arch.mbarrier_wait(self.mbarrier, 0)
    end
    arch.dealloc_tmem(tmem_ptr, n, self.pair)
  end)
end

sign.class("TmemBufferPool", Pool, [[
  remaining_cols() allocate(size: integer|layout, dtype: dtype)
  allocate_tensor(layout: layout, dtype: dtype)
]])
sign.class("TmemAllocator", Allocator, [[
  check_valid_num_columns(num_columns: integer) allocate(num_columns: integer)
  wait_for_alloc() retrieve_ptr(dtype?: dtype) reserve(num_columns: integer)
  relinquish_alloc_permit() free(tmem_ptr: tensor, num_columns?: integer)
]])

return sign.public("utils.", allocator, [[
  TmemBufferPool(base_ptr: tensor, total_cols: integer)
  TmemAllocator(alloc_result_dst_smem_ptr?: tensor,
    opts: {barrier_for_retrieve allocator_warp_id is_two_cta
           num_allocated_columns two_cta_tmem_dealloc_mbar_ptr})
]])
-- SPDX-License-Identifier: MIT
