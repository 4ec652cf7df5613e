--- Stores the accumulators of a tile by TMA. They pass through a ring of
-- buffers in shared memory, as in the epilogues of CUTLASS's GEMMs for Hopper.
--
-- A tile is stored in parts. A part consists of EN columns of the tile, with
-- all rows of the MMA. The threads convert a part and write it to shared
-- memory, with stmatrix if its type has 16 bits. One thread then copies it to
-- global memory while the threads write the next part to another buffer.
local core = require "cute.core"
local cute = require "cute"
local hopper = require "cute.hopper"
local _ = cute._

local epilogue = {}

local Epilogue = {}
Epilogue.__index = Epilogue

-- Returns the copy atom that stores EN columns of accumulators. For 16-bit
-- types it is utils.get_smem_store_op's stmatrix or, if EN is not a multiple of
-- 16, an stmatrix of half as many columns. For other types it is a plain store.
local function store_atom(dtype, major, columns)
  if dtype.bits ~= 16 then
    return cute.make_copy_atom("UniversalCopy", dtype,
                               dtype.bits * (major == "m" and 1 or 2))
  elseif columns % 16 == 0 then
    return hopper.get_smem_store_op(major == "m" and "col" or "row", dtype)
  end
  return cute.make_copy_atom(major == "m" and "SM90_U16x4_STSM_T"
    or "SM90_U32x2_STSM_N", dtype)
end

--- Makes an object that stores accumulators to a tensor D by TMA. Call
-- store(acc, at, f) for each tile, and tail() after all tiles.
--
-- `smem` (EM,EN,STAGES) is the ring of buffers in shared memory; EM is the
-- MMA's number of rows. `atom` was made with the layout of smem
-- (utils.make_smem_layout_epi). `coords` is the coordinate tensor that belongs
-- to the atom, (M,N) or (M,N,L). `major` is the contiguous mode of smem, "n" if
-- absent. `barrier` synchronizes the threads of the MMA; if absent, all threads
-- of the block synchronize. `thread` is this thread's index among the threads
-- of the MMA.
---@param o table {mma: any, atom: any, coords: any, smem: any, thread: any?,
-- barrier: any?, major: string?, cache_policy: any?}
function epilogue.new(o)
  local smem, mma = o.smem, o.mma
  local EM, EN, stages = cute.size(smem, 0), cute.size(smem, 1),
    cute.size(smem, 2)
  local tile = mma.tile_size_mnk
  if EM ~= tile[1] or tile[2] % EN ~= 0 then
    core.fail("shape-mismatch", ("tiles.epilogue: parts of %d x %d for an MMA "
      .. "of %d x %d; parts must have the MMA's rows and a divisor of its "
      .. "columns"):format(EM, EN, tile[1], tile[2]))
  end
  if o.major and o.major ~= "m" and o.major ~= "n" then
    core.fail("bad-argument", ('tiles.epilogue: major = %s; "n" or "m" is '
      .. "needed"):format(core.show(o.major)))
  end
  local thread = o.thread or (cute.arch.thread_idx())
  local dtype = smem.element_type
  local atom = store_atom(dtype, o.major, EN)
  local r2s = cute.make_tiled_copy_S(atom,
                                     cute.make_tiled_copy_C_atom(atom, mma))
  local slice = r2s:get_slice(thread)
  local shape = slice:partition_S(smem(_, _, 0)).shape      -- (CPY,CPY_M,CPY_N)
  local rest = cute.rank(o.coords) > 2 and {_, _, _} or {_, _}
  local gD = cute.local_tile(o.coords, {EM, EN}, rest)      -- (EM,EN,m,n,l)
  local from, to = cute.nvgpu.cpasync.tma_partition(o.atom, 0,
    cute.make_layout(1), cute.group_modes(smem, 0, 2),
    cute.group_modes(gD, 0, 2))
  local barrier = o.barrier
  return setmetatable({
    r2s = r2s, atom = o.atom, from = from, to = to, stages = stages,
    part = cute.make_rmem_tensor(shape, dtype),
    smem = slice:partition_D(smem), buffer = 0, parts = tile[2] // EN,
    count = {cute.size(gD, 2), cute.size(gD, 3)}, leader = cute.eq(thread, 0),
    matrices = #rest == 3, hint = o.cache_policy,
    pipe = cute.pipeline.PipelineTmaStore {
      num_stages = math.max(stages - 1, 1)},
    meet = barrier and function() barrier:arrive_and_wait() end
      or cute.arch.sync_threads}, Epilogue)
end

-- Fills the registers of one part with n values of a fragment, beginning with
-- number `first`. f converts the values, which are then rounded to the type of
-- D.
local function fill(self, acc, first, f)
  local part = self.part
  local sums = cute.make_rmem_tensor(part.shape, acc.element_type)
  for v = 0, cute.size(part) - 1 do sums[v] = acc[first + v] end
  local x = sums:load()
  if f then x = f(x) end
  part:store(x:to(part.element_type))
end

-- Copies a buffer to the part of D at {m, n} by TMA. Skips a part that begins
-- outside D.
local function send(self, m, n, l, buffer)
  local from = self.from(_, buffer)
  local to = self.matrices and self.to(_, m, n, l) or self.to(_, m, n)
  local inside = core.lt(m, self.count[1]) & core.lt(n, self.count[2])
  cute.when(self.leader, function()
    cute.when(inside, function()
      cute.copy(self.atom, from, to, {cache_policy = self.hint})
    end)
    self.pipe:producer_commit()
  end)
end

-- Makes the thread that issues the copies wait until the buffer of the next
-- part is free.
local function free(self)
  cute.when(self.leader, function() self.pipe:producer_acquire() end)
end

--- Stores the accumulators (MMA,MMA_M,MMA_N) of tile {m, n[, l]} of D. Drops
-- elements outside D. f converts a vector of accumulators to the values to
-- store.
---@param acc any
---@param at any[]
---@param f? fun(sums: cute.Vector): cute.Vector
function Epilogue:store(acc, at, f)
  local retiled = self.r2s:retile(acc)                      -- (V,MMA_M,MMA_N)
  local V, MM, MN = cute.size(acc, 0), cute.size(acc, 1), cute.size(acc, 2)
  local parts, each = self.parts, cute.size(self.part)
  if V ~= parts * each then
    core.fail("shape-mismatch", ("tiles.epilogue: the accumulators have %d "
      .. "values for each MMA; %d parts of %d values, %d in all, are needed")
      :format(V, parts, each, parts * each))
  end
  for j = 0, MN - 1 do
    for m = 0, MM - 1 do
      for i = 0, parts - 1 do
        local buffer = self.buffer
        if self.stages == 1 then
          free(self)
          self.meet()
        end
        fill(self, retiled, (j * MM + m) * V + i * each, f)
        cute.copy(self.r2s, self.part, self.smem(_, _, _, buffer))
        cute.arch.fence_view_async_shared()
        if self.stages > 1 then free(self) end
        self.meet()
        send(self, at[1] * MM + m, (at[2] * MN + j) * parts + i, at[3] or 0,
             buffer)
        self.buffer = (buffer + 1) % self.stages
      end
    end
  end
end

--- Waits until all stores have read shared memory, so that it can be released.
function Epilogue:tail()
  cute.when(self.leader, function() self.pipe:producer_tail() end)
end

require "cute.lang.signature".class("Epilogue", Epilogue, [[
  store(acc: tensor, at: table, f?: function) tail()
]])

return epilogue
-- SPDX-License-Identifier: MIT
