--- cute.utils.TensorMapManager: makes tensor maps inside a kernel. A grouped
-- product, for example, needs a map for each tensor that it processes.
--
--     local maps = cute.utils.TensorMapManager("SMEM", 128)
--     local ptr = maps:get_tensormap_ptr(tensormaps(block, _))
--     maps:init_tensormap_from_atom(load, smem_map, 0)
--     maps:fence_tensormap_initialization()
--     maps:update_tensormap({tensor}, {load}, {ptr}, 0, {smem_map})
--     maps:fence_tensormap_update(ptr)      -- in the thread that copies
--     cute.copy(load, tAgA, tAsA, {tma_bar_ptr = bar, tma_desc_ptr = ptr})
local arch = require "cute.arch"
local core = require "cute.core"
local cpasync = require "cute.nvgpu.sm90.cpasync"
local sign = require "cute.lang.signature"

local tensormaps = {}

local BYTES = 128

local function when(...) require "cute.lang.branch".when(...) end

--- The memory in which a kernel changes tensor maps. With GMEM, maps are
-- changed in place in global memory. With SMEM, they are changed in shared
-- memory and then copied to global memory.
tensormaps.TensorMapUpdateMode = {GMEM = "GMEM", SMEM = "SMEM"}

local Manager = {}
Manager.__index = Manager

--- Makes an object that makes and changes tensor maps.
---@param tensormap_update_mode string from TensorMapUpdateMode
---@param bytes_per_tensormap integer 128
function tensormaps.TensorMapManager(tensormap_update_mode,
                                     bytes_per_tensormap)
  if not tensormaps.TensorMapUpdateMode[tensormap_update_mode] then
    core.fail("unknown-name", ("TensorMapManager: no mode %s; SMEM or GMEM is "
      .. "needed")
      :format(core.show(tensormap_update_mode)))
  end
  if bytes_per_tensormap ~= BYTES then
    core.fail("bad-argument", ("TensorMapManager: a tensor map has %d bytes, "
      .. "not %s"):format(BYTES, core.show(bytes_per_tensormap)))
  end
  return setmetatable({in_smem = tensormap_update_mode == "SMEM"}, Manager)
end

-- Runs f in one thread of a warp.
local function by_one(f)
  when(arch.elect_one(), f)
end

--- Returns the pointer to a tensor map as the argument type that copies accept.
---@param ptr table pointer to i64
function Manager:get_tensormap_ptr(ptr)  -- luacheck: ignore self
  return core.make_tensor(ptr.iterator or ptr,
    core.make_layout(BYTES * 8 // ptr.element_type.bits))
end

--- Copies an atom's tensor map to the memory at a pointer. Only the warp with
-- index warp_id copies.
---@param copy_atom table
---@param dst_ptr table in global memory or, in mode SMEM, in shared memory
---@param warp_id integer
function Manager:init_tensormap_from_atom(copy_atom, dst_ptr, warp_id)
  when(arch.warp_idx():eq(warp_id), function()
    by_one(function() cpasync.copy_tensormap(copy_atom, dst_ptr) end)
  end)
  return self
end

--- Makes new maps in global memory visible to the threads that use them.
function Manager:fence_tensormap_initialization()
  if not self.in_smem then cpasync.fence_tma_desc_release() end
end

--- Acquires a tensor map that a warp has changed. Copies that this thread
-- issues later then use the map's new contents.
---@param tensormap_ptr table in global memory
function Manager:fence_tensormap_update(tensormap_ptr)
  cpasync.fence_tma_desc_acquire(tensormap_ptr)
  return self
end

--- Changes each tensor map so that it describes another tensor, and releases
-- the map for other threads. Only the warp with index `warp_id` changes the
-- maps.
---@param tensor_gmem table[] the tensors to describe
---@param tma_copy_atom table[] the atoms to which the maps belong
---@param tensormap_gmem_ptr table[] pointers to the maps
---@param warp_id integer
---@param tensormap_smem_ptr? table[] in mode SMEM: pointers to the maps in
-- shared memory
function Manager:update_tensormap(tensor_gmem, tma_copy_atom,
                                  tensormap_gmem_ptr, warp_id,
                                  tensormap_smem_ptr)
  local at = self.in_smem and tensormap_smem_ptr or tensormap_gmem_ptr
  when(arch.warp_idx():eq(warp_id), function()
    by_one(function()
      for i, t in ipairs(tensor_gmem) do
        cpasync.update_tma_descriptor(tma_copy_atom[i], t, at[i])
      end
      if not self.in_smem then cpasync.fence_tma_desc_release() end
    end)
    arch.sync_warp()
    for i, ptr in ipairs(self.in_smem and tensormap_gmem_ptr or {}) do
      cpasync.cp_fence_tma_desc_release(ptr, at[i])
    end
  end)
end

sign.class("TensorMapManager", Manager, [[
  get_tensormap_ptr(ptr: tensor)
  init_tensormap_from_atom(copy_atom, dst_ptr: tensor, warp_id: integer)
  fence_tensormap_initialization()
  fence_tensormap_update(tensormap_ptr: tensor)
  update_tensormap(tensor_gmem: table, tma_copy_atom: table,
    tensormap_gmem_ptr: table, warp_id: integer, tensormap_smem_ptr?: table)
]])

return sign.public("utils.", tensormaps, [[
  TensorMapManager(tensormap_update_mode: string, bytes_per_tensormap: integer)
]])
-- SPDX-License-Identifier: MIT
