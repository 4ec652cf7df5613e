--- The functions of cute.arch for tensor memory (sm_100a and its family): 128
-- lanes of 512 columns of 32 bits, which a block allocates by columns.
--
--     local holding = cute.arch.alloc_smem(cute.i32, 1)
--     cute.when(warp:eq(0), function()        -- one whole warp
--       cute.arch.alloc_tmem(128, holding)
--       cute.arch.relinquish_tmem_alloc_permit()
--     end)
--     cute.arch.sync_threads()
--     local ptr = cute.arch.retrieve_tmem_ptr(cute.f32, 16, holding)
--     ...                                     -- cute.make_tensor(ptr, layout)
--     cute.arch.sync_threads()
--     cute.when(warp:eq(0), function() cute.arch.dealloc_tmem(ptr, 128) end)
--
-- The allocation waits until enough columns are free. The warp that allocated
-- columns must free them. If a kernel's MMAs belong to pairs of blocks, pass
-- is_two_cta = true. A warp of each block then allocates and frees, and both
-- blocks get the same columns.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local tmem = {}

local MOST, LEAST = 512, 32

--- Returns the largest number of columns that one allocation can have.
---@param compute_capability? string
---@return integer
function tmem.get_max_tmem_alloc_cols(compute_capability) -- luacheck: ignore
  return MOST
end

--- Returns the smallest number of columns that one allocation can have.
---@param compute_capability? string
---@return integer
function tmem.get_min_tmem_alloc_cols(compute_capability) -- luacheck: ignore
  return LEAST
end

--- Reports whether an allocation needs all of tensor memory. Only sm_107 has
-- such allocations, with more than 512 columns.
---@param num_columns integer
---@param arch string such as "sm_100a"
---@return boolean
function tmem.is_tmem_allocation_exclusive(num_columns, arch)
  return num_columns > MOST and arch:find "^sm_107" ~= nil
end

-- Checks a number of columns, if it is known at trace time, and returns it.
local function columns(what, n)
  if not math.type(n) then return n end
  if math.type(n) ~= "integer" or n < LEAST or n > MOST or n & n - 1 ~= 0 then
    core.fail("bad-argument", ("%s: %s columns; a power of two from %d to %d "
      .. "is needed"):format(what, tostring(n), LEAST, MOST))
  end
  return n
end

--- Allocates columns of tensor memory, and stores the address of the first
-- column to shared memory. All lanes of a warp must call this function.
---@param num_columns any integer, a power of two from 32 to 512
---@param smem_ptr_to_write_address table pointer to an i32 in shared memory
---@param is_two_cta? boolean
function tmem.alloc_tmem(num_columns, smem_ptr_to_write_address, is_two_cta)
  core.tmem_alloc(smem_ptr_to_write_address, columns("alloc_tmem", num_columns),
                  is_two_cta)
end

--- Frees columns that alloc_tmem allocated. The warp that allocated them must
-- call this function, after all operations on the columns have ended.
---@param tmem_ptr table pointer to the first column
---@param num_columns any integer, as for alloc_tmem
---@param is_two_cta? boolean
function tmem.dealloc_tmem(tmem_ptr, num_columns, is_two_cta)
  core.tmem_dealloc(core.tmem_address(tmem_ptr),
                    columns("dealloc_tmem", num_columns), is_two_cta)
end

--- Lets other blocks allocate tensor memory. This block must not allocate after
-- this call.
---@param is_two_cta? boolean
function tmem.relinquish_tmem_alloc_permit(is_two_cta)
  core.effect(is_two_cta and "tmem_relinquish_pair" or "tmem_relinquish")
end

--- Returns a pointer to the tensor memory whose address alloc_tmem stored. The
-- calling threads must have synchronized with the allocating warp.
---@param element_type cute.DType of 32 bits or less
---@param alignment integer in bytes, such as 16
---@param ptr_to_buffer_holding_addr table pointer to an i32 in shared memory
---@return table iterator
function tmem.retrieve_tmem_ptr(element_type, alignment, -- luacheck: ignore
                                ptr_to_buffer_holding_addr)
  local view = core.make_tensor(ptr_to_buffer_holding_addr,
                                core.make_layout(1))
  return core.tmem_at(element_type, view[0]).iterator
end

--- Waits until this warp's loads from tensor memory have completed
-- (tcgen05.wait::ld). Their registers may be used afterwards.
function tmem.fence_view_async_tmem_load() core.effect "tmem_wait_load" end

--- Waits until this warp's stores to tensor memory have completed
-- (tcgen05.wait::st).
function tmem.fence_view_async_tmem_store() core.effect "tmem_wait_store" end

--- Waits for loads ("load") or stores ("store") of tensor memory.
---@param kind "load"|"store"
function tmem.fence_view_async_tmem_op(kind)
  sign.one_of("fence_view_async_tmem_op", "kind", kind, "load store")
  core.effect(kind == "load" and "tmem_wait_load" or "tmem_wait_store")
end

--- Orders this thread's earlier tcgen05 operations before the thread
-- synchronization that follows (tcgen05.fence::before_thread_sync). A commit
-- needs no such fence.
function tmem.tcgen05_before_thread_sync() core.effect "tmem_before_sync" end

--- Orders this thread's later tcgen05 operations after the thread
-- synchronization that precedes this call (tcgen05.fence::after_thread_sync).
function tmem.tcgen05_after_thread_sync() core.effect "tmem_after_sync" end

return sign.public("cute.arch.", tmem, [[
  get_max_tmem_alloc_cols(compute_capability?: string)
  get_min_tmem_alloc_cols(compute_capability?: string)
  is_tmem_allocation_exclusive(num_columns: integer, arch: string)
  alloc_tmem(num_columns, smem_ptr_to_write_address: tensor,
    is_two_cta?: boolean)
  dealloc_tmem(tmem_ptr: tensor, num_columns, is_two_cta?: boolean)
  relinquish_tmem_alloc_permit(is_two_cta?: boolean)
  retrieve_tmem_ptr(element_type: dtype, alignment: integer,
    ptr_to_buffer_holding_addr: tensor)
  fence_view_async_tmem_load() fence_view_async_tmem_store()
  fence_view_async_tmem_op(kind: string)
  tcgen05_before_thread_sync() tcgen05_after_thread_sync()
]])
-- SPDX-License-Identifier: MIT
