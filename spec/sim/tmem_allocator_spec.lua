-- Tests cute.utils.TmemAllocator on the simulator. A warp must load what it
-- stored to columns of a pool, all columns must be freed, and wrong numbers of
-- columns must be rejected. NVRTC must compile the kernels.
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05

local ONE_LANE = 1 << 16

local function barrier()
  return cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 128}
end

-- Returns the layout of n 32-bit columns in all 128 lanes.
local function lanes(n)
  return cute.make_layout({128, n}, {ONE_LANE, 1})
end

-- Stores the thread's row of tensor t to its lane of tensor memory.
local function store(t, tile, n)
  local put = tcgen05.make_tmem_copy(
    cute.make_copy_atom(tcgen05.St32x32bOp(n), cute.f32), tile)
  local thr = put:get_slice(arch.thread_idx())
  local from = thr:partition_S(t)
  local r = cute.make_rmem_tensor(from.shape, cute.f32)
  cute.basic_copy(from, r)
  cute.copy(put, r, thr:partition_D(tile))
end

local function load(tile, t, n)
  local get = tcgen05.make_tmem_copy(
    cute.make_copy_atom(tcgen05.Ld32x32bOp(n), cute.f32), tile)
  local thr = get:get_slice(arch.thread_idx())
  local to = thr:partition_D(t)
  local r = cute.make_rmem_tensor(to.shape, cute.f32)
  cute.copy(get, thr:partition_S(tile), r)
  arch.fence_view_async_tmem_load()
  cute.basic_copy(r, to)
end

local function compile(call)
  if not cute.jit.version() then return end
  local program = call:compile {arch = "sm_100a", grid = 1, block = 128}
  assert(cute.jit.compile(program.source, {arch = "sm_100a"}))
  return program.source
end

describe("TmemAllocator", function()
  it("gives the tensors of a pool columns of their own", function()
    local kernel = cute.kernel("pool", function(X, Y, A, B)
      local tmem = cute.utils.TmemAllocator(nil,
        {barrier_for_retrieve = barrier(), allocator_warp_id = 2})
      local pool = tmem:reserve(64)
      tmem:relinquish_alloc_permit()
      assert.equal(64, pool:remaining_cols())
      local a = pool:allocate_tensor(lanes(16), cute.f32)
      local b = cute.make_tensor(pool:allocate(32, cute.f32), lanes(32))
      assert.equal(16, pool:remaining_cols())
      assert.error_matches(function() pool:allocate(17, cute.f32) end,
                           "allocate: 17 columns; the pool has 16 left of 64")
      store(X, a, 16)
      store(Y, b, 32)
      arch.fence_view_async_tmem_store()
      load(a, A, 16)
      load(b, B, 32)
      arch.tcgen05_before_thread_sync()
      arch.sync_threads()
      arch.tcgen05_after_thread_sync()
      tmem:free(pool.base_ptr)
    end)
    local X, Y = cute.zeros({128, 16}, "f32"), cute.zeros({128, 32}, "f32")
    for i = 0, cute.size(X) - 1 do X[i] = i + 1 end
    for i = 0, cute.size(Y) - 1 do Y[i] = -i - 1 end
    local A, B = cute.zeros({128, 16}, "f32"), cute.zeros({128, 32}, "f32")
    local call = kernel(X, Y, A, B)
    local report = support.report(
      call:launch {grid = 1, block = 128, device = "sim:sm_100a"})
    assert.same({}, report:notes())
    for i = 0, cute.size(X) - 1 do assert.equal(X[i], A[i]) end
    for i = 0, cute.size(Y) - 1 do assert.equal(Y[i], B[i]) end
    compile(call)
  end)

  it("reports columns that nobody frees", function()
    local kernel = cute.kernel("leak", function()
      local tmem = cute.utils.TmemAllocator(nil,
                                            {barrier_for_retrieve = barrier()})
      tmem:allocate(32)
      tmem:allocate(64)
      tmem:wait_for_alloc()
      tmem:free(tmem:retrieve_ptr(), 64)
    end)
    assert.error_matches(function()
      kernel():launch {grid = 1, block = 128, device = "sim:sm_100a"}
    end, "32 columns")
  end)

  it("makes a pair of blocks free only when both are ready", function()
    local kernel = cute.kernel("pair", function()
      local tmem = cute.utils.TmemAllocator(nil,
        {barrier_for_retrieve = barrier(), is_two_cta = true})
      tmem:allocate(128)
      tmem:wait_for_alloc()
      local ptr = tmem:retrieve_ptr()
      tmem:relinquish_alloc_permit()
      arch.cluster_arrive()
      arch.cluster_wait()
      tmem:free(ptr)
    end)
    local source = kernel():compile {arch = "sm_100a", grid = 2, block = 128,
                                     cluster = 2}.source
    for _, text in ipairs {"tmem_alloc<2>(",
                           "tcgen05.relinquish_alloc_permit.cta_group::2",
                           "mbar_arrive_remote(", "tmem_dealloc<2>("} do
      assert.truthy(source:find(text, 1, true), text)
    end
    if cute.jit.version() then
      assert(cute.jit.compile(source, {arch = "sm_100a"}))
    end
  end)

  it("refuses numbers of columns that no allocation has", function()
    local made = cute.kernel("columns", function()
      local tmem = cute.utils.TmemAllocator(nil,
                                            {barrier_for_retrieve = barrier()})
      local valid = {}
      for n = 0, 1024 do
        if tmem:check_valid_num_columns(n) then valid[#valid + 1] = n end
      end
      assert.same({0, 32, 64, 128, 256, 512}, valid)
      assert.error_matches(function() tmem:allocate(48) end,
        "allocate: 48 columns; a power of two from 32 to 512 is needed")
      tmem:allocate(256)
      assert.error_matches(function() tmem:allocate(512) end,
        "allocate: 512 columns after 256; a block has 512")
      assert.error_matches(function() tmem:free(tmem:retrieve_ptr(), 512) end,
        "free: 512 columns; 256 are allocated")
      tmem:wait_for_alloc()
      tmem:free(tmem:retrieve_ptr())
    end)
    made():compile {arch = "sm_100a", grid = 1, block = 128}
    assert.error_matches(function() cute.utils.TmemAllocator(nil, {}) end,
      "barrier_for_retrieve is nil; a NamedBarrier is needed")
    assert.error_matches(function()
      cute.kernel("half", function()
        cute.utils.TmemAllocator(arch.alloc_smem(cute.i32, 1), {
          barrier_for_retrieve = barrier(), is_two_cta = true})
      end)():compile {arch = "sm_100a", grid = 2, block = 128}
    end, "a pair needs both")
  end)
end)

describe("a second allocation", function()
  -- An SM runs several blocks of 128 threads at the same time, and each block
  -- allocates columns twice.
  it("is noted if blocks on an SM may wait for each other", function()
    local function notes(first, second, grid)
      local kernel = cute.kernel("twice", function(X)
        local address = arch.alloc_smem(cute.i32, 2)
        cute.when(arch.warp_idx():eq(0), function()
          arch.alloc_tmem(first, address)
          arch.alloc_tmem(second, address + 1)
          arch.sync_warp()
          for k, n in ipairs {first, second} do
            arch.dealloc_tmem(arch.retrieve_tmem_ptr(cute.f32, 16,
                                                     address + (k - 1)), n)
          end
          X[arch.block_idx()] = 1
        end)
      end)
      return support.report(kernel(cute.zeros({16}, cute.f32)):launch {
        grid = grid, block = 128, device = "sim:sm_100a"}):notes()
    end
    assert.matches("128 more columns of tensor memory are allocated while the "
      .. "block has 256", notes(256, 128, 2)[1])
    assert.same({}, notes(256, 128, 1))
    assert.same({}, notes(128, 256, 2))
    assert.same({}, notes(64, 64, 2))
    assert.matches("8 blocks on an SM", notes(64, 64, 16)[1])
  end)

  it("is not one of the other block of a pair", function()
    local kernel = cute.kernel("pair", function(X)
      local address = arch.alloc_smem(cute.i32, 1)
      arch.alloc_tmem(256, address, true)
      arch.sync_warp()
      X[arch.block_idx()] = 1
      arch.dealloc_tmem(arch.retrieve_tmem_ptr(cute.f32, 16, address), 256,
                        true)
    end)
    local report = support.report(kernel(cute.zeros({8}, cute.f32)):launch {
      grid = 8, block = 32, cluster = 2, device = "sim:sm_100a"})
    assert.same({}, report:notes())
  end)
end)
-- SPDX-License-Identifier: MIT
