--- Computes a dot product by a tcgen05.mma with scale factors, in a kernel of
-- one block on the simulator. Operands are in shared memory; scale factors, C
-- and D are in tensor memory. tcgen05.cp copies the scale factors to tensor
-- memory.
local core = require "cute.core"
local cute = require "cute"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05

local umma = {}

local M, N, COLUMNS = 128, 8, 32
local ROW = 32  -- bytes of a row of A and of B
local SFA, SFB = 8, 12  -- first columns of the scale factors

-- Returns the operation for a kind in the form of hardware.units.umma_tile.
local function operation(kind)
  if kind.kind == "mxf8f6f4" then
    return tcgen05.MmaMXF8F6F4Op(kind.a, kind.b, {M, N})
  elseif kind.scales == 2 then
    return tcgen05.MmaMXF4Op({M, N})
  end
  return tcgen05.MmaMXF4NVF4Op(kind.scale, {M, N})
end

-- Returns the type of an operand in shared memory, where an element has 8 bits
-- or is one of two packed 4-bit elements.
local function stored_type(kind, dtype)
  if kind.kind ~= "mxf8f6f4" then return cute.e2m1 end
  return cute[dtype].bits < 8 and cute.u8 or cute[dtype]
end

-- Copies n bytes from `from` to shared memory, to where s begins.
local function fill(s, n, from)
  local to = cute.make_tensor(cute.recast_ptr(s.iterator, nil, cute.u8),
                              cute.make_layout(n))
  for first = 0, n - 1, 128 do
    local i = arch.thread_idx() + first
    cute.when(cute.lt(i, n), function() to[i] = from[i] end)
  end
end

-- Returns a function that copies 512 bytes of scale factors, for 128 rows, to
-- tensor memory.
local function s2t(s, t, dtype)
  local cp = tcgen05.make_s2t_copy(cute.make_copy_atom(
    tcgen05.Cp4x32x128bOp(1), dtype), t)
  local thr = cp:get_slice(0)
  local from = tcgen05.get_s2t_smem_desc_tensor(cp, thr:partition_S(s))
  return function() cute.copy(cp, from, thr:partition_D(t)) end
end

-- Returns the kernel of one instruction. Its arguments are the bytes of A, of
-- A's scale factors, of B, and of B's scale factors; and C, which becomes D.
local function make(kind)
  local mma = cute.make_tiled_mma(operation(kind))
  local k, sf = mma.shape_mnk[3], cute[kind.scale]
  local a, b = stored_type(kind, kind.a), stored_type(kind, kind.b)
  local function layout(dtype, rows)
    return cute.tile_to_shape(tcgen05.make_smem_layout_atom("K_INTER", dtype),
                              {rows, k})
  end
  local blocks = k // mma.sf_vec_size
  local places = core.layout(("(((32,4),4),(%d,%d)):(((262144,4),8388608),"
    .. "(0,1))"):format(mma.sf_vec_size, blocks))
  local io = core.layout "(128,8):(65536,1)"
  local ld = cute.make_copy_atom(tcgen05.Ld32x32bOp(N), cute.f32)
  local st = cute.make_copy_atom(tcgen05.St32x32bOp(N), cute.f32)
  return cute.kernel("dot", function(A, FA, B, FB, C)
    local tid, warp = arch.thread_idx(), arch.warp_idx()
    local sA = cute.make_smem_tensor(a, layout(a, M), 128)
    local sB = cute.make_smem_tensor(b, layout(b, N), 128)
    local rows = cute.make_layout({{32, 4}, 4}, {{16, 4}, 1})
    local sFA = cute.make_smem_tensor(sf, rows, 128)
    local sFB = cute.make_smem_tensor(sf, rows, 128)
    local bar = arch.alloc_smem(cute.i64, 1)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(0), function()
      arch.alloc_tmem(COLUMNS, address)
      cute.when(tid:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
      end)
    end)
    fill(sA, cute.size(A), A)
    fill(sB, cute.size(B), B)
    fill(sFA, 512, FA)
    fill(sFB, 512, FB)
    arch.fence_view_async_shared()
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local all = cute.make_tensor(ptr, io)
    local store = tcgen05.make_tmem_copy(st, all)
    local part = store:get_slice(tid):partition_S(C)
    local r = cute.make_rmem_tensor(part.shape, cute.f32)
    cute.basic_copy(part, r)
    cute.copy(store, r, store:get_slice(tid):partition_D(all))
    arch.fence_view_async_tmem_store()
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    local thr = mma:get_slice(0)
    local tCrA = mma:make_fragment_A(thr:partition_A(sA))
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    local acc = cute.make_tensor(ptr, mma:make_fragment_C(
      mma:partition_shape_C {M, N}).layout)
    local function factors(s, column)
      local at = cute.recast_ptr(ptr, nil, sf) + 4 * column
      local lanes = core.layout "(((32,4),4),4):(((262144,4),8388608),1)"
      s2t(s, cute.make_tensor(at, lanes), sf)()
      return cute.make_tensor(at, cute.make_layout(places,
        cute.make_layout(1, 0), cute.make_layout(1, 0)))
    end
    cute.when(tid:eq(0), function()
      local tA, tB = factors(sFA, SFA), factors(sFB, SFB)
      mma:set(tcgen05.Field.ACCUMULATE, true)
      cute.gemm(mma, acc, {tCrA, tA}, {tCrB, tB}, acc)
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    local load = tcgen05.make_tmem_copy(ld, all):get_slice(tid)
    cute.copy(ld, load:partition_S(all), r)
    arch.fence_view_async_tmem_load()
    cute.basic_copy(r, part)
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, COLUMNS) end)
  end)
end

local made = {}

-- Returns the kernel of a kind, with tensors for its arguments.
local function kernel_of(kind)
  local key = table.concat({kind.kind, kind.a, kind.b, kind.scale,
                            kind.scales}, " ")
  local x = made[key]
  if not x then
    x = {run = make(kind), A = cute.zeros({M * ROW}, "u8"),
         B = cute.zeros({N * ROW}, "u8"), FA = cute.zeros({512}, "u8"),
         FB = cute.zeros({512}, "u8"), C = cute.zeros({M, N}, "f32")}
    made[key] = x
  end
  return x
end

-- Writes the codes of row 0 of an operand, in pieces of 16 bytes. Consecutive
-- pieces of a row are 16 bytes times the number of rows apart. A piece packs 16
-- elements, or 32 for the kinds mxf4 and mxf4nvf4.
local function put_row(t, rows, kind, dtype, codes)
  local bits, per = cute[dtype].bits, kind.kind == "mxf8f6f4" and 16 or 32
  for first = 1, #codes, per do
    local bytes = {}
    for i = 0, per - 1 do
      local at = i * bits
      local u = codes[first + i] << at % 8
      bytes[at // 8] = (bytes[at // 8] or 0) | u & 255
      if u > 255 then bytes[at // 8 + 1] = u >> 8 end
    end
    for i = 0, 15 do
      t[(first // per) * rows * 16 + i] = bytes[i] or 0
    end
  end
end

--- Returns D = A B^T + C, as an f32 word, for one row of A and one row of B.
---@param kind table kind, a, b, scale, scales: as for umma_tile of
-- spec.hardware.units
---@param a integer[] codes of the row of A
---@param b integer[]
---@param c integer word of C
---@param sfa integer[] codes of the scale factors
---@param sfb integer[]
---@return integer
function umma.dot(kind, a, b, c, sfa, sfb)
  local x = kernel_of(kind)
  put_row(x.A, M, kind, kind.a, a)
  put_row(x.B, N, kind, kind.b, b)
  for i = 1, kind.scales do x.FA[i - 1], x.FB[i - 1] = sfa[i], sfb[i] end
  local words = cute.recast_tensor(x.C, cute.u32)
  words[{0, 0}] = c
  x.run(x.A, x.FA, x.B, x.FB, x.C):launch {grid = 1, block = 128,
    device = "sim:sm_100a"}
  return words(0, 0)
end

return umma
-- SPDX-License-Identifier: MIT
