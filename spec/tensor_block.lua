--- Parts of kernels of one block with tensor memory, and the comparison of
-- their results with sums on the host.
local assert = require "luassert"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05

local block = {}

local DEVICE = "sim:sm_100a"

--- Fills a matrix with small integers, from `least` on.
function block.small(t, step, least)
  for i = 0, cute.size(t) - 1 do t[i] = (i * step + i // 7) % 5 + least end
  return t
end

--- Allocates tensor memory and an mbarrier in a block of four warps. Returns a
-- function that waits for the allocation and returns a pointer to tensor
-- memory, and the mbarrier.
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

--- Compiles a call by NVRTC, if it is there.
function block.compile(call, target)
  if not cute.jit.version() then return end
  local program = call:compile {arch = target, grid = 1, block = 128}
  assert(cute.jit.compile(program.source, {arch = target}))
end

--- Runs a kernel, without faults and notes, and compares C with A B^T.
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
-- Scale factors
---------------------------------------------------------------------------

--- Returns scale factors for `rows` rows of k elements, and their layout
-- (row,k,0). They are powers of two, which depend on `seed`.
function block.factors(rows, k, vs, dtype, seed)
  local places = cute.utils.tile_atom_to_shape_SF(
    {cute.round_up(rows, 128), k, 1}, vs)
  local f = cute.zeros({cute.cosize(places)}, dtype)
  for e = 0, cute.size(f) - 1 do
    f[e] = 2.0 ^ ((e * (2 * seed + 1) + e // 7) % 3 - 1)
  end
  return f, places
end

--- Makes a function that copies scale factors from shared to tensor memory.
function block.s2t(s, t, dtype)
  local op = tcgen05.Cp4x32x128bOp(1)
  local from, to = cute.filter_zeros(s), cute.filter_zeros(t)
  local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(op, dtype), to)
  local thr = copy:get_slice(0)
  local rows = tcgen05.get_s2t_smem_desc_tensor(copy,
    thr:partition_S(tcgen05.append_s2t_broadcast_mode(op, from)))
  return function() cute.copy(copy, rows, thr:partition_D(to)) end
end

return block
-- SPDX-License-Identifier: MIT
