--- Parts of single-block kernels that use tensor memory, and comparisons of
-- their results with sums on the host.
local assert = require "luassert"
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05

local block = {}

local DEVICE = "sim:sm_100a"

--- Fills a matrix with small integers; the smallest one is `least`.
function block.small(t, step, least)
  for i = 0, cute.size(t) - 1 do t[i] = (i * step + i // 7) % 5 + least end
  return t
end

--- Allocates tensor memory and an mbarrier in a block of four warps. Returns a
-- function that waits for the allocation and returns a pointer to tensor
-- memory. Also returns the mbarrier.
function block.begin(columns, dtype)
  local bar = arch.alloc_smem(cute.i64, 1)
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(arch.warp_idx():eq(0), function()
    arch.alloc_tmem(columns, address)
    cute.when(arch.thread_idx():eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  return function()
    arch.fence_view_async_shared()
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    return arch.retrieve_tmem_ptr(dtype, 16, address), bar
  end
end

--- Frees the columns.
function block.finish(ptr, columns)
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  cute.when(arch.warp_idx():eq(0), function()
    arch.dealloc_tmem(ptr, columns)
  end)
end

--- Copies a global matrix to shared memory, element by element.
function block.copy_in(s, t)
  local n = cute.size(t)
  for first = 0, n - 1, 128 do
    local i = arch.thread_idx() + first
    cute.when(cute.lt(i, n), function() s[i] = t[i] end)
  end
end

--- Loads one tile of accumulators and stores it to a part of C.
function block.copy_out(atom, from, to)
  local load = tcgen05.make_tmem_copy(atom, from)
  local thr = load:get_slice(arch.thread_idx())
  local part = thr:partition_D(to)
  local r = cute.make_rmem_tensor(part.shape, from.element_type)
  cute.copy(load, thr:partition_S(from), r)
  arch.fence_view_async_tmem_load()
  cute.basic_copy(r, part)
end

--- Compiles a call by NVRTC, if NVRTC is installed. ctas: the number of blocks
-- in a cluster, 1 when absent.
function block.compile(call, target, ctas)
  if not cute.jit.version() then return end
  local program = call:compile {arch = target, grid = ctas or 1, block = 128,
                                cluster = ctas}
  assert(cute.jit.compile(program.source, {arch = target}))
end

--- Runs a kernel, which must have no reports, and compares C with A B^T.
function block.compare(kernel, A, B, C)
  local call = kernel(A, B, C)
  local report = support.report(
    call:launch {grid = 1, block = 128, device = DEVICE})
  assert.same({}, report:notes())
  for i = 0, cute.size(C, 0) - 1 do
    for j = 0, cute.size(C, 1) - 1 do
      local s = 0
      for k = 0, cute.size(A, 1) - 1 do s = s + A(i, k) * B(j, k) end
      if s ~= C(i, j) then
        assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
      end
    end
  end
  return call
end

---------------------------------------------------------------------------
-- Sparse matrices
---------------------------------------------------------------------------

--- Makes a matrix of `rows` rows of small integers, half of which are 0. The
-- pattern of zeros differs between rows and groups. Returns the matrix, its
-- stored values, and its metadata as bytes. A group has 2 or 4 elements, but
-- for e2m1 4 pairs of elements.
---@param o table {type, k, least}
function block.sparse_matrix(o, rows)
  local size, each = o.type == "tf32" and 2 or 4, o.type == "e2m1" and 2 or 1
  local group, keep = size * each, size // 2
  local A = block.small(cute.zeros({rows, o.k}, o.type), 7, o.least or -2)
  local values = cute.zeros({rows, o.k // 2}, o.type)
  local E = cute.zeros({rows, o.k // group // 2}, cute.u8)
  for m = 0, rows - 1 do
    for g = 0, o.k // group - 1 do
      local i = (m + g * 3) % size
      local j = keep == 2 and (i + 1 + (m // 5 + g) % 3) % 4 or i
      if i > j then i, j = j, i end
      for e = 0, group - 1 do
        local at, from = e // each, {m, g * group + e}
        local kept = at == i and 0 or at == j and 1
        if not kept then A[from] = 0 else
          values[{m, (g * keep + kept) * each + e % each}] = A[from]
        end
      end
      if size == 2 then i, j = 2 * i, 2 * i + 1 end
      E[{m, g // 2}] = E[{m, g // 2}] | (i | j << 2) << g % 2 * 4
    end
  end
  return A, values, E
end

--- Copies metadata, bytes of shape (rows,bytes), from row `first` on to shared
-- memory. The layout there is that of the MMA's tiles, ((rows,bytes),M,K). A
-- block has 128 rows.
function block.metadata_in(s, t, first)
  local tid, per = arch.thread_idx(), cute.size(s, 0) // 128
  for b = 0, cute.size(t, 1) - 1 do
    s[{{tid, b % per}, 0, b // per}] = t[{tid + (first or 0), b}]
  end
end

--- Returns a function that copies metadata from shared to tensor memory. Each
-- copy has 128 lanes of 16 bytes.
---@param ctas? integer 2 for a pair of blocks
function block.metadata_s2t(s, ptr, ctas)
  local list, lanes = {}, 128
  for at = 0, cute.cosize(s) // lanes - 1, 16 do
    local t = cute.make_tensor(ptr + at, core.layout "(128,16):(262144,1)")
    local rows = cute.make_tensor(s.iterator + lanes * at,
                                  cute.make_layout({lanes, 16}, {16, 1}))
    local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(
      tcgen05.Cp128x128bOp(ctas or 1), cute.u8), t)
    local thr = copy:get_slice(0)
    local from = tcgen05.get_s2t_smem_desc_tensor(copy, thr:partition_S(rows))
    list[#list + 1] = {copy, from, thr:partition_D(t)}
  end
  return function()
    for _, copy in ipairs(list) do cute.copy(table.unpack(copy)) end
  end
end

---------------------------------------------------------------------------
-- Pairs of blocks
---------------------------------------------------------------------------

--- Synchronizes the blocks of a cluster, between two fences of tcgen05.
function block.sync_pair()
  arch.tcgen05_before_thread_sync()
  arch.cluster_arrive()
  arch.cluster_wait()
  arch.tcgen05_after_thread_sync()
end

--- Allocates tensor memory in both blocks, and initializes an mbarrier. Returns
-- a pointer to the memory, and the mbarrier.
function block.begin_pair(columns, dtype)
  local bar = arch.alloc_smem(cute.i64, 1)
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(arch.warp_idx():eq(0), function()
    arch.alloc_tmem(columns, address, true)
    arch.relinquish_tmem_alloc_permit(true)
    cute.when(arch.elect_one(), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  return function()
    arch.fence_view_async_shared()
    block.sync_pair()
    return arch.retrieve_tmem_ptr(dtype, 16, address), bar
  end
end

--- Frees the columns of both blocks.
function block.finish_pair(ptr, columns)
  block.sync_pair()
  cute.when(arch.warp_idx():eq(0), function()
    arch.dealloc_tmem(ptr, columns, true)
  end)
end

---------------------------------------------------------------------------
-- Scale factors
---------------------------------------------------------------------------

--- Returns scale factors for `rows` rows of k elements, and their layout
-- (row,k,0). The factors are powers of two, which depend on `seed`.
function block.factors(rows, k, vs, dtype, seed)
  local places = cute.utils.tile_atom_to_shape_SF(
    {cute.round_up(rows, 128), k, 1}, vs)
  local f = cute.zeros({cute.cosize(places)}, dtype)
  for e = 0, cute.size(f) - 1 do
    f[e] = 2.0 ^ ((e * (2 * seed + 1) + e // 7) % 3 - 1)
  end
  return f, places
end

--- Returns a function that copies scale factors from shared to tensor memory.
---@param ctas? integer 2 for a pair of blocks
function block.s2t(s, t, dtype, ctas)
  local op = tcgen05.Cp4x32x128bOp(ctas or 1)
  local from, to = cute.filter_zeros(s), cute.filter_zeros(t)
  local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(op, dtype), to)
  local thr = copy:get_slice(0)
  local rows = tcgen05.get_s2t_smem_desc_tensor(copy,
    thr:partition_S(tcgen05.append_s2t_broadcast_mode(op, from)))
  return function() cute.copy(copy, rows, thr:partition_D(to)) end
end

return block
-- SPDX-License-Identifier: MIT
