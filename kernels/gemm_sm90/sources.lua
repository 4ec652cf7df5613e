--- The sources of an epilogue of kernels/gemm_sm90. A source is a matrix with
-- the extents of D. TMA loads parts of it, of 64 rows and o.epi[2] columns, to
-- shared memory.
--
-- A warpgroup has buffers for `source_stages` parts. Its leader thread issues
-- the loads of the first parts before the products of a tile. Whenever all
-- threads have read a part and synchronized, the leader issues the load of a
-- further part. Therefore the loads overlap with products, and each load reads
-- whole rows.
local cute = require "cute"
local smem = require "kernels.gemm_sm90.smem"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local Sources = {}
Sources.__index = Sources

local sources = {}

--- Makes the buffers of all sources, and an mbarrier for each stage of each
-- warpgroup. list[i] has the TMA atom and the coordinates of source i; its
-- type and layout are in o.sources[i].
---@param o table options
---@param list table[]
---@param maker any true in the thread that initializes the mbarriers
function sources.new(o, list, maker)
  local n = o.source_stages * o.consumers
  local self = setmetatable({o = o, list = list, bytes = 0}, Sources)
  for i, x in ipairs(list) do
    local s = o.sources[i]
    local sC = cute.make_smem_tensor(s.dtype, smem.parts(o, s.dtype, s.major,
      o.source_stages), 1024)                 -- (64,EN,stage,consumer)
    x.dtype, x.major, x.smem = s.dtype, s.major, sC
    self.bytes = self.bytes + x.atom.tx_bytes
  end
  local sources_came = cute.arch.alloc_smem(cute.i64, n)
  cute.when(maker, function()
    for i = 0, n - 1 do cute.arch.mbarrier_init(sources_came + i, 1) end
    cute.arch.mbarrier_init_fence()
  end)
  self.came = sources_came
  return self
end

-- Returns the copy atom that loads a source in the layout of the accumulators:
-- ldmatrix, or plain loads of one or two elements.
local function load_atom(o, x)
  if x.dtype.bits ~= 16 then
    return cute.make_copy_atom("UniversalCopy", x.dtype,
                               x.dtype.bits * (x.major == "m" and 1 or 2))
  end
  local n = o.epi[2] % 16 == 0 and 2 or 1
  return cute.make_copy_atom(x.major == "m"
    and ("SM75_U16x%d_LDSM_T"):format(4 * n)
    or ("SM75_U32x%d_LDSM_N"):format(2 * n), x.dtype)
end

--- Returns this warpgroup's part of the sources, for its thread `thread`. The
-- MMA `mma` has 64 rows and o.epi[2] columns.
function Sources:of(mma, group, thread)
  local o = self.o
  local own = setmetatable({group = group, leader = thread:eq(0), turn = 0,
    of = {}}, {__index = self})
  for i, x in ipairs(self.list) do
    local g = cute.local_tile(x.coords, o.epi, o.batches and {_, _, _}
      or {_, _})                                          -- (64,EN,m,n,l)
    local to, from = cpasync.tma_partition(x.atom, 0, cute.make_layout(1),
      cute.group_modes(x.smem, 0, 2), cute.group_modes(g, 0, 2))
    local s2r = cute.make_tiled_copy_C(load_atom(o, x), mma)
    local slice = s2r:get_slice(thread)
    local frag = cute.make_rmem_tensor(mma:partition_shape_C(o.epi), x.dtype)
    own.of[i] = {atom = x.atom, to = to, from = from, s2r = s2r, frag = frag,
                 smem = slice:partition_S(x.smem), retiled = slice:retile(frag)}
  end
  return own
end

function Sources:barrier(n)
  local stages = self.o.source_stages
  return self.came + (self.group * stages + n % stages)
end

--- Loads part n of a tile from all sources. `place` is the position of the part
-- in D, counted in parts. `inside` tells whether the part overlaps D; nil means
-- that all parts do. Elements outside D are loaded as zeros.
function Sources:ask(n, place, l, inside)
  local o, bar = self.o, self:barrier(n)
  if inside then
    cute.when(self.leader & ~inside, function()
      cute.arch.mbarrier_arrive(bar)
    end)
  end
  cute.when(inside and self.leader & inside or self.leader, function()
    cute.arch.mbarrier_arrive_and_expect_tx(bar, self.bytes)
    for i = 1, #self.of do
      local x = self.of[i]
      local from = o.batches and x.from(_, place[1], place[2], l)
        or x.from(_, place[1], place[2])
      cute.copy(x.atom, from, x.to(_, n % o.source_stages, self.group),
                {tma_bar_ptr = bar, cache_policy = o.d_hint})
    end
  end)
end

--- Waits until part n has been loaded.
function Sources:wait(n)
  cute.arch.mbarrier_wait(self:barrier(n),
                          self.turn ~ (n // self.o.source_stages & 1))
end

--- Returns the values of source i at the positions of part n's accumulators.
function Sources:load(i, n, dtype)
  local x = self.of[i]
  cute.copy(x.s2r, x.smem(_, _, _, n % self.o.source_stages, self.group),
            x.retiled)
  return x.frag:load():to(dtype)
end

--- Records that all `count` parts of a tile have been read, so that later waits
-- use the right parity.
function Sources:done(count)
  if count // self.o.source_stages % 2 == 1 then self.turn = self.turn ~ 1 end
end

return sources
-- SPDX-License-Identifier: MIT
