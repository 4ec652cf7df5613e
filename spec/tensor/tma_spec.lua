-- Tests TMA atoms: the box, the swizzle and the coordinates that are derived
-- from layouts. Also tests copies in the IR and as text that compiles for
-- sm_90a, and errors.
local cute = require "cute"
local kernels = require "spec.kernels"
local raises = require "spec.support".raises
local tma = require "spec.tma"

local cpasync, _ = cute.nvgpu.cpasync, cute._
local LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(),
  cpasync.CopyBulkTensorTileS2GOp()
local MULTICAST = cpasync.CopyBulkTensorTileG2SMulticastOp()

local function matrix(m, n, dtype, order)
  return cute.make_tensor(cute.empty({m * n}, dtype or cute.bf16).iterator,
    cute.make_layout({m, n}, order or cute.LayoutRight))
end

-- Returns a layout of K-major rows of 128 bytes with the 128-byte swizzle.
local function sw128(bm, bk, stages)
  local atom = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0,
    cute.make_layout({8, 64}, {64, 1}))
  return cute.tile_to_shape(atom, stages and {bm, bk, stages} or {bm, bk})
end

local function made(...)
  local atom, coords = cpasync.make_tiled_tma_atom(...)
  return tostring(atom) .. " | " .. tostring(coords) .. " | "
    .. atom.tx_bytes
end

describe("a TMA atom", function()
  it("takes box, swizzle and order of modes from the layouts", function()
    local A, At = matrix(512, 256), matrix(512, 256, nil, cute.LayoutLeft)
    assert.equal("TMA load of bf16, box (64,128), swizzle 128 B | "
      .. "(0,0) o (512,256):(1@1,1@0) | 16384",
      made(LOAD, A, sw128(128, 64), {128, 64}))
    -- The tile consists of two boxes of 64 elements of K each.
    assert.equal("TMA load of bf16, box (64,128), swizzle 128 B | "
      .. "(0,0) o (512,256):(1@1,1@0) | 32768",
      made(LOAD, A, sw128(128, 128), {128, 128}))
    assert.equal("TMA store of bf16, box (32,16) | "
      .. "(0,0) o (512,256):(1@1,1@0) | 1024",
      made(STORE, A, cute.make_layout({16, 32}, {32, 1}), {16, 32}))
    assert.equal("TMA load of bf16, box (128,64) | "
      .. "(0,0) o (512,256):(1@0,1@1) | 16384",
      made(LOAD, At, cute.make_layout {128, 64}, {128, 64}))
    assert.equal("TMA load of bf16, box (64,32), swizzle 128 B, 4 CTAs | "
      .. "(0,0) o (512,256):(1@1,1@0) | 16384",
      made(MULTICAST, A, sw128(128, 64), {128, 64}, 4))
    local x = tma.tensor({64, 32, 6}, cute.f32)
    assert.equal("TMA reduction of f32, box (32,16,1), swizzle 128 B | "
      .. "(0,0,0) o (64,32,6):(1@0,1@1,1@2) | 2048",
      made(cpasync.CopyReduceBulkTensorTileS2GOp "add", x,
        cute.make_composed_layout(cute.make_swizzle(3, 2, 3), 0,
          cute.make_layout {32, 16}), {32, 16}))
  end)

  it("is made for the operands of a GEMM", function()
    local nvgpu, C = cute.nvgpu, matrix(512, 384)
    local tiler, cluster = {128, 64, 32}, {1, 2, 4, 1}
    local function rows(m, k)
      return cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0,
        cute.make_layout({m, k}, {k, 1}))
    end
    local function box(make, op, t, layout)
      return tostring((make(op, t, layout, tiler, false, cluster)))
    end
    assert.equal("TMA load of bf16, box (32,32), swizzle 64 B, 4 CTAs",
      box(nvgpu.make_tiled_tma_atom_A, MULTICAST, matrix(512, 256),
          rows(128, 32)))
    assert.equal("TMA load of bf16, box (32,32), swizzle 64 B, 2 CTAs",
      box(nvgpu.make_tiled_tma_atom_B, MULTICAST, matrix(384, 256),
          rows(64, 32)))
    assert.equal("TMA store of bf16, box (64,128)",
      tostring((nvgpu.make_tiled_tma_atom_C(STORE, C,
        cute.make_layout({128, 64}, {64, 1}), tiler, false))))
  end)

  it("reports which layouts are accepted", function()
    local A, make = matrix(512, 256), cpasync.make_tiled_tma_atom
    raises("make_tiled_tma_atom: the tiler {128, 64} has 8192 elements, but "
      .. "the layout in shared memory has 24576 "
      .. "(((8,16),(64,1),(1,3)):((64,512),(1,0),(0,8192))) "
      .. "[shape-mismatch]\n  pass the layout of one stage", function()
        make(LOAD, A, sw128(128, 64, 3), {128, 64})
      end)
    raises("make_tiled_tma_atom: shared memory is contiguous along mode 0 of "
      .. "the tensor, whose stride is 256: TMA needs the same contiguous mode "
      .. "on both sides [inadmissible]\n  use a shared-memory layout that is "
      .. "contiguous along mode 1", function()
        make(LOAD, A, cute.make_layout {128, 64}, {128, 64})
      end)
    raises("make_tiled_tma_atom: Sw<2,4,3> of bf16 is not a TMA swizzle; "
      .. "possible are Sw<1,3,3>, Sw<2,3,3>, Sw<3,3,3> (32, 64, 128 bytes) "
      .. "[inadmissible]", function()
        make(LOAD, A, cute.make_composed_layout(cute.make_swizzle(2, 4, 3), 0,
          cute.make_layout({128, 64}, {64, 1})), {128, 64})
      end)
    raises("tensor map: rows of the box are 256 bytes: a swizzle of 128 bytes "
      .. "allows no longer rows [shape-mismatch]\n", function()
        make(LOAD, A, cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0,
          cute.make_layout({64, 128}, {128, 1})), {64, 128})
      end)
    raises("make_tiled_tma_atom: (128,64):(65,1) has gaps: TMA fills shared "
      .. "memory without gaps [inadmissible]", function()
        make(LOAD, A, cute.make_layout({128, 64}, {65, 1}), {128, 64})
      end)
    raises("tensor map: the stride of mode 1, 510 bytes, is not a multiple of "
      .. "16",
      function() make(LOAD, matrix(512, 255), sw128(128, 64), {128, 64}) end)
    raises("make_tiled_tma_atom: each of 2 CTAs copies 6272 bytes of a box; "
      .. "with a swizzle of 128 bytes a multiple of 1024 is needed "
      .. "[misaligned]",
      function()
        make(MULTICAST, A, cute.make_composed_layout(cute.make_swizzle(3, 3,
          3), 0, cute.make_layout({98, 64}, {64, 1})), {98, 64}, 2)
      end)
    raises("make_tiled_tma_atom: num_multicast = 2; with "
      .. "CopyBulkTensorTileG2SMulticastOp 1 to 16 CTAs can share a tile "
      .. "[bad-argument]", function()
        make(LOAD, A, sw128(128, 64), {128, 64}, 2)
      end)
    raises("a tensor map has no element type i4 [type-mismatch]\n", function()
      make(LOAD, matrix(64, 64, cute.i4), cute.make_ordered_layout({64, 64},
        {1, 0}), {64, 64})
    end)
  end)
end)

---------------------------------------------------------------------------
-- Copies
---------------------------------------------------------------------------

-- Each case: the operation, a call, and how the call appears in the printed IR,
-- in the emitted text and in PTX.
local CASES = {
  {LOAD, function(atom, s, g, bar)
     cute.copy(atom, g(_, 3), s(_, 1), {tma_bar_ptr = bar})
   end, "tma.load 131072 bits s[8192], atom, bar[0], 192, 0",
   "tma_load_2d(s_addr + 16384u, &atom, bar_addr, 192, 0);",
   ".mbarrier::complete_tx::bytes\"\n      \" [%0], [%1, {%3, %4}], [%2];"},
  {MULTICAST, function(atom, s, g, bar)
     cute.copy(atom, g(_, 3), s(_, 1), {tma_bar_ptr = bar, mcast_mask = 3,
               cache_policy = 0x12f0000000000000})
   end, "tma.load 131072 bits s[8192], atom, bar[0], 3, ",
   "tma_load_2d_multicast_hint(s_addr + 16384u, &atom, bar_addr, 192, 0, 3, ",
   ".multicast::cluster.L2::cache_hint\"\n      "
   .. "\" [%0], [%1, {%3, %4}], [%2], %5, %6;"},
  {STORE, function(atom, s, g) cute.copy(atom, s(_, 0), g(_, 2)) end,
   "tma.store atom, s[0], 128, 0",
   "tma_store_2d(&atom, s_addr, 128, 0);",
   "cp.async.bulk.tensor.2d.global.shared::cta.tile\"\n      "
   .. "\".bulk_group [%0, {%2, %3}], [%1];"},
  {cpasync.CopyReduceBulkTensorTileS2GOp "min",
   function(atom, s, g) cute.copy(atom, s(_, 0), g(_, 2)) end,
   "tma.store.min 131072 bits atom, s[0], 128, 0",
   "tma_reduce_min_2d(&atom, s_addr, 128, 0);",
   "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile"},
  {LOAD, function(atom) cpasync.prefetch_descriptor(atom) end,
   "tma.prefetch atom\n", "tma_prefetch(&atom);", "prefetch.tensormap [%0];"},
  {LOAD, function(atom, _, g) cute.prefetch(atom, g(cute._, 1)) end,
   "tma.prefetch atom, 64, 0", "tma_prefetch_2d(&atom, 64, 0);",
   "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];"},
  {STORE, function() cute.arch.cp_async_bulk_commit_group() end,
   "bulk.commit\n", 'asm volatile("cp.async.bulk.commit_group;"', ""},
  {STORE, function() cute.arch.cp_async_bulk_wait_group(2, true) end,
   "bulk.wait.read #2\n", 'asm volatile("cp.async.bulk.wait_group.read 2;"',
   ""},
}

-- Returns a kernel that calls f with a TMA atom, two stages of shared memory,
-- the tiles of a matrix, and an mbarrier.
local function kernel_of(f)
  return cute.kernel("k", function(atom, coords)
    local s = cute.make_smem_tensor(cute.bf16, sw128(128, 64, 2), 1024)
    local bar = cute.arch.alloc_smem(cute.i64, 1)
    local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2),
      cute.group_modes(cute.local_tile(coords, {128, 64}, {0, _}), 0, 2))
    f(atom, ts, tg, bar, s)
  end)
end

local function traced(op, f, arch)
  local atom, coords = cpasync.make_tiled_tma_atom(op, matrix(512, 256),
    sw128(128, 64), {128, 64})
  return kernel_of(f)(atom, coords):trace {block = 32, arch = arch}
end

describe("a TMA copy", function()
  it("is dumped, written and compiled", function()
    for _, case in ipairs(CASES) do
      local p = traced(case[1], case[2])
      local ir, text = p.ir:gsub("tma.store 131072 bits", "tma.store"), p.source
      assert.truthy(ir:find(case[3], 1, true), ir)
      assert.truthy(text:find(case[4], 1, true), text)
      assert.truthy(text:find(case[5], 1, true), text)
      kernels.compiles(p, "sm_90a")
    end
  end)

  it("is rejected if the target has no TMA", function()
    raises("a bulk copy (line ", function()
      local _ = traced(CASES[1][1], CASES[1][2], "sm_80").source
    end)
  end)

  it("names what is missing or wrong", function()
    local function wrong(text, op, f)
      raises(text, function() traced(op, f) end)
    end
    wrong("copy: a TMA load needs tma_bar_ptr, the mbarrier that counts its "
      .. "bytes [bad-argument]\n  cute.copy(atom, src, dst, {tma_bar_ptr = bar "
      .. "+ stage})", LOAD,
      function(atom, s, g) cute.copy(atom, g(_, 0), s(_, 0)) end)
    wrong("copy: a multicast needs mcast_mask, the CTAs of the cluster that "
      .. "get the tile [bad-argument]\n", MULTICAST, function(atom, s, g, bar)
        cute.copy(atom, g(_, 0), s(_, 0), {tma_bar_ptr = bar})
      end)
    wrong("copy: a TMA store takes no tma_bar_ptr [bad-argument]\n", STORE,
      function(atom, s, g, bar)
        cute.copy(atom, s(_, 0), g(_, 0), {tma_bar_ptr = bar})
      end)
    wrong("copy: the source of a TMA store must be a tensor in shared memory",
      STORE, function(atom, s, g) cute.copy(atom, g(_, 0), s(_, 0)) end)
    wrong("copy: the coordinates name 64 values, but boxes of this atom have "
      .. "8192 [shape-mismatch]\n", LOAD, function(atom, s, _, bar)
        local row = cute.make_tensor({0, 0}, cute.make_layout({64, 1},
          {cute.E(0), cute.E(1)}))
        cute.copy(atom, row, s(cute._, 0), {tma_bar_ptr = bar})
      end)
    wrong("copy: a TMA box with this swizzle must start at a multiple of 1024 "
      .. "bytes of shared memory, this one is only known to start at a "
      .. "multiple of 128 [misaligned]\n",
      LOAD, function(atom, _, g, bar)
        local s = cute.make_smem_tensor(cute.bf16, sw128(128, 64), 128)
        local ts = cpasync.tma_partition(atom, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), cute.group_modes(s, 0, 2))
        cute.copy(atom, g(cute._, 0), ts, {tma_bar_ptr = bar})
      end)
    -- Traces a copy of a tile that has the layout `layout` in shared memory, by
    -- an atom that is made for the layout `from` (default sw128).
    local function placed(op, layout, from)
      local x, c = cpasync.make_tiled_tma_atom(op, matrix(512, 256),
        from or sw128(128, 64), {128, 64})
      return cute.kernel("k", function(a, coords)
        local s = cute.make_smem_tensor(cute.bf16, layout, 1024)
        local bar = cute.arch.alloc_smem(cute.i64, 1)
        local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), cute.group_modes(
            cute.local_tile(coords, {128, 64}, {0, 0}), 0, 2))
        if op == STORE then return cute.copy(a, ts, tg) end
        cute.copy(a, tg, ts, {tma_bar_ptr = bar})
      end)(x, c):trace {block = 32}
    end
    local rows = cute.make_layout({128, 64}, {64, 1})
    local other = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, rows)
    for _, op in ipairs {LOAD, STORE} do
      placed(op, sw128(128, 64))
      placed(op, rows, rows)
      raises("copy: the atom was made for a layout with Sw<3,3,3>, but shared "
        .. "memory has Sw<2,3,3>: element 256 of the tile would be at another "
        .. "address [inadmissible]\n", placed, op, other)
      raises("copy: the atom was made for a layout with Sw<3,3,3>, but shared "
        .. "memory has no swizzle: element 64 of the tile", placed, op, rows)
      raises("copy: the atom was made for a layout with no swizzle, but "
        .. "shared memory has Sw<3,3,3>: element 64 of the tile", placed, op,
        sw128(128, 64), rows)
      -- This swizzle is accepted, because it only reads address bits that are 0
      -- in the whole tile.
      placed(op, cute.make_composed_layout(cute.make_swizzle(3, 3, 10), 0,
        rows), rows)
    end
    local atom = cpasync.make_tiled_tma_atom(LOAD, matrix(512, 256),
      sw128(128, 64), {128, 64})
    wrong("copy: a TMA atom must be an argument of the kernel: pass it and the "
      .. "coordinate tensor at the launch [bad-argument]", LOAD,
      function(_, s, g, bar)
        cute.copy(atom, g(cute._, 0), s(cute._, 0), {tma_bar_ptr = bar})
      end)
  end)
end)

describe("a TMA copy", function()
  it("of contiguous bytes needs no tensor map", function()
    local x = cute.zeros({64, 40}, cute.f32)
    local row = cute.make_layout {40}
    local function trace(f)
      return cute.kernel("k", function(a)
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout {40}, 128)
        f(a, s, cute.arch.alloc_smem(cute.i64, 1))
      end)(x):trace {block = 32}
    end
    local function atom(op) return cute.make_copy_atom(op, cute.f32) end
    local load, sent = atom(cpasync.CopyBulkG2SOp()),
      atom(cpasync.CopyBulkS2SOp())
    local cases = {
      {function(a, s, bar) cute.copy(load, a(2, _), s, {mbar_ptr = bar}) end,
       "bulk.load 1280 bits s[0], a[80], bar[0]",
       "bulk_load(s_addr, a + 80, 160, s_addr + 160u);",
       "cp.async.bulk.shared::cluster.global"},
      {function(a, s)
         cute.copy(atom(cpasync.CopyBulkS2GOp()), s, a(2, _))
       end, "bulk.store 1280 bits a[80], s[0]",
       "bulk_store(a + 80, s_addr, 160);",
       "cp.async.bulk.global.shared::cta.bulk_group"},
      {function(_, s, bar)
         cute.copy(sent, s, s, {mbar_ptr = bar, cta_rank = 1})
       end, "bulk.send 1280 bits s[0], s[0], bar[0], 1",
       "bulk_send(s_addr, s_addr, 160, ", "mapa.shared::cluster.u32 to, %0"}}
    for _, case in ipairs(cases) do
      local p = trace(case[1])
      local text = p.source:gsub("bar_addr", "s_addr + 160u")
      assert.truthy(p.ir:find(case[2], 1, true), p.ir)
      assert.truthy(text:find(case[3], 1, true), text)
      assert.truthy(text:find(case[4], 1, true), text)
      kernels.compiles(p, "sm_90a")
    end
    raises("copy: this bulk copy needs mbar_ptr, the mbarrier that counts its "
      .. "bytes [bad-argument]", function()
        trace(function(a, s) cute.copy(load, a(2, _), s) end)
      end)
    raises("copy: bulk copies move multiples of 16 bytes at 16-byte aligned "
      .. "addresses; this one moves 152 bytes [misaligned]", function()
        trace(function(a, s, bar)
          cute.copy(load, cute.make_tensor(a.iterator, cute.make_layout {38}),
            cute.make_tensor(s.iterator, cute.make_layout {38}),
            {mbar_ptr = bar})
        end)
      end)
    raises("copy: a bulk copy moves contiguous values, but the first mode of "
      .. "the source is 40:40 [shape-mismatch]", function()
        trace(function(a, s, bar)
          cute.copy(load, cute.make_tensor(a.iterator,
            cute.make_layout({40}, {40})), s, {mbar_ptr = bar})
        end)
      end)
    assert.equal("bulk load of f32", tostring(load))
    assert.equal(40, cute.size(row))
  end)
end)

describe("a TMA copy", function()
  it("uses tensor maps in memory, updated for other tensors", function()
    local x = matrix(32, 32)
    local tile = {16, 32}
    local atom, coords = cpasync.make_tiled_tma_atom(LOAD, x,
      cute.make_ordered_layout(tile, {1, 0}), tile)
    local maps = cute.zeros({4, 16}, cute.i64)
    local function trace(f, block)
      return cute.kernel("k", function(a, c, y, m)
        f(a, y, m, function(map)
          local s = cute.make_smem_tensor(cute.bf16,
            cute.make_ordered_layout(tile, {1, 0}), 128)
          local bar = cute.arch.alloc_smem(cute.i64, 1)
          local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
            cute.group_modes(s, 0, 2), cute.zipped_divide(c, tile))
          cute.copy(a, tg(_, 1), ts, {tma_bar_ptr = bar, tma_desc_ptr = map})
        end)
      end)(atom, coords, x, maps):trace {block = block or 32}
    end
    local program = trace(function(a, y, m, copy)
      local map = cute.make_smem_tensor(cute.i64, cute.make_layout(16), 128)
      cpasync.copy_tensormap(a, map)
      cpasync.update_tma_descriptor(a, y, map)
      cpasync.fence_tma_desc_release()
      cpasync.cp_fence_tma_desc_release(m(1, _), map)
      cpasync.fence_tma_desc_acquire(m(1, _))
      copy(m(1, _))
    end)
    for _, text in ipairs {"map_copy(map, &a);", "map_address(map, y);",
      "map_extent<0>(map, 32);", "map_stride<1>(map, 64ll);",
      "fence.proxy.tensormap::generic.release.gpu;",
      "map_publish(m + 16, map);", "map_acquire(m + 16);",
      "const TensorMap *const a_1 = (const TensorMap *)(m + 16);",
      "tma_load_2d(s_addr, a_1, bar_addr, 0, 16);"} do
      assert.truthy(program.source:find(text, 1, true), program.source)
    end
    kernels.compiles(program, {"sm_90a"})
    raises(") is a feature of one chip: it needs "
      .. "sm_90a, the target is sm_90 [wrong-arch]", function()
        program:compile "sm_90"
      end)
    raises("copy: tma_desc_ptr must be a tensor map in global", function()
      trace(function(_, _, _, copy)
        copy(cute.make_smem_tensor(cute.i64, cute.make_layout(16), 128))
      end)
    end)
    for _, place in ipairs {
      function() return cute.make_smem_tensor(cute.i64, cute.make_layout(16),
                                              64) end,
      function(m) return m.iterator + 8 end} do
      raises("a tensor map must be aligned to 128 bytes", function()
        trace(function(a, _, m) cpasync.copy_tensormap(a, place(m)) end)
      end)
    end
    for _, place in ipairs {
      function(m) return cute.recast_tensor(m, cute.i32) end,
      function(m) return m(_, 0) end,
      function() return cute.make_rmem_tensor({16}, cute.i64) end} do
      raises("a tensor map must be 16 elements of i64 in global or shared",
        function()
          trace(function(a, _, m) cpasync.copy_tensormap(a, place(m)) end)
        end)
    end
    raises("update_tma_descriptor: a tensor of bf16 in global memory is "
      .. "needed", function()
        trace(function(a, y, m)
          cpasync.update_tma_descriptor(a, cute.recast_tensor(y, cute.f16),
                                        m(0, _))
        end)
      end)
  end)
end)

local IMAGE = tma.tensor({64, 10, 7, 3}, cute.bf16)  -- (C,W,H,N)
local IM2COL = cpasync.CopyBulkTensorIm2ColG2SOp()

local function made_of(tile, layout, ...)
  return cpasync.make_im2col_tma_atom(IM2COL, IMAGE,
    layout or cute.make_layout(tile, cute.LayoutRight), tile, ...)
end

-- Makes the atom and coordinates of im2col loads for a filter of 3 x 3, with a
-- padding of one pixel.
local function filter()
  return made_of({32, 64}, sw128(32, 64), {-1, -1}, {-1, -1}, {1, 1}, {1, 1})
end

describe("a TMA copy", function()
  it("loads im2col tiles for convolutions", function()
    local atom, coords = filter()
    assert.equal("TMA load of bf16, box (64,32) by im2col, swizzle 128 B",
                 tostring(atom))
    assert.equal("(0,0,0,0) o (210,(64,3,3)):(1@1,(1@0,1@2,1@3))",
                 tostring(coords))
    assert.equal(4096, atom.tx_bytes)
    local program = cute.kernel("k", function(a, c)
      local s = cute.make_smem_tensor(cute.bf16, sw128(32, 64), 1024)
      local bar = cute.arch.alloc_smem(cute.i64, 1)
      local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.zipped_divide(c, {32, 64}))
      cute.copy(a, tg(_, {3, {2, 1}}), ts, {tma_bar_ptr = bar})
    end)(atom, coords):trace {block = 32}
    -- The tile begins at pixel 96, which is (6,2) of image 1, and at filter
    -- position (2,1). The padding of one pixel turns (6,2) into coordinates
    -- (5,1).
    assert.truthy(program.source:find("tma_load_im2col_4d(s_addr, &a, "
      .. "bar_addr, 0, 5, 1, 1, 2, 1);", 1, true), program.source)
    kernels.compiles(program, {"sm_90", "sm_90a"})
    local stepped = select(2, made_of({8, 32}, nil, {0, 0}, {-2, -1}, {0, 0},
                                      {0, 0}, {2, 3}, nil, {2, 1}))
    assert.equal("(0,0,0,0) o (24,(64,2,2)):(1@1,(1@0,1@2,1@3))",
                 tostring(stepped))
    local same = select(2, cute.nvgpu.make_im2col_tma_atom_A(IM2COL, IMAGE,
      cute.make_layout({8, 32}, cute.LayoutRight), {8, 64, 32}, false, {2, 3},
      {1, 2}, {0, 1}, {3, 2}, {1, 2}))
    -- An image has 3 positions along h: (7 + 1 - 1) / 3, rounded up. It has 5
    -- along w: (10 + 1 + 2 - 4) / 2, rounded up.
    assert.equal("(0,0,0,0) o (45,(64,3,2)):(1@1,(1@0,1@2,1@3))",
                 tostring(same))
    local function refuses(text, ...)
      local args = table.pack(...)
      raises(text, function() made_of(table.unpack(args, 1, args.n)) end)
    end
    refuses("internal_type f32 has 32 bits, but the tensor's type bf16 has 16 "
      .. "[type-mismatch]",
      {32, 64}, sw128(32, 64), {-1, -1}, {-1, -1}, {1, 1}, {1, 1}, nil, nil,
      nil, 1, {internal_type = cute.f32})
    refuses("make_im2col_tma_atom: lower_corner_whd: 2 integers (w, "
      .. "h, d) are needed, got {0} [bad-argument]", {8, 32}, nil, {0},
      {0, 0})
    refuses("make_im2col_tma_atom: tiles of 48 channels do not divide the "
      .. "image's 64 channels [shape-mismatch]", {8, 48}, nil, {0, 0}, {0, 0})
    refuses("shared memory must hold a tile's pixels one after the other",
      {8, 32}, cute.make_layout {8, 32}, {0, 0}, {0, 0})
    refuses("spatial mode 1: the corners give a filter of extent 1 and 0 "
      .. "output pixels; both must be positive [shape-mismatch]", {8, 32}, nil,
      {0, 4}, {0, -3})
    refuses("tensor map: the upper corner of spatial mode 0, 200",
      {8, 32}, nil, {0, 0}, {200, 0})
  end)
end)

describe("a TMA copy", function()
  it("prefetches, multicasts and stores im2col tiles", function()
    local atom, coords = filter()
    local function kernel(f)
      return cute.kernel("k", f)(atom, coords, IMAGE,
        cute.zeros({16}, cute.i64)):trace {block = 32}
    end
    raises("update_tma_descriptor: im2col tensor maps cannot be updated",
      function()
      kernel(function(a, _, t, m) cpasync.update_tma_descriptor(a, t, m) end)
    end)
    -- Copies of im2col tiles: by a prefetch into L2, a multicast, and a store.
    local program = kernel(function(a, c, ...)
      cpasync.prefetch(a, cute.zipped_divide(c, {32, 64})(_, {3, {2, 1}}))
      return ...
    end)
    assert.truthy(program.source:find("tma_prefetch_im2col_4d(&a, 0, 5, 1, 1, "
      .. "2, 1);", 1, true), program.source)
    kernels.compiles(program, {"sm_90"})
    local function other(op, corner, ctas)
      return cpasync.make_im2col_tma_atom(op, IMAGE, sw128(32, 64), {32, 64},
        {-1, -1}, corner, {1, 1}, {1, 1}, nil, nil, nil, ctas)
    end
    local function stored(lower, upper)
      return cpasync.make_im2col_tma_atom(cpasync.CopyBulkTensorIm2ColS2GOp(),
        IMAGE, sw128(32, 64), {32, 64}, lower, upper)
    end
    local multicast = cpasync.CopyBulkTensorIm2ColG2SMulticastOp()
    local store = cpasync.CopyBulkTensorIm2ColS2GOp()
    local two, cs = other(multicast, {-1, -1}, 2)
    local to, ds = stored({1, 0}, {0, -1})
    assert.equal("TMA load of bf16, box (64,16) by im2col, swizzle 128 B, 2 "
      .. "CTAs", tostring(two))
    assert.equal("TMA store of bf16, box (64,32) by im2col, swizzle 128 B",
                 tostring(to))
    program = cute.kernel("k", function(a, c, b, d)
      local s = cute.make_smem_tensor(cute.bf16, sw128(32, 64), 1024)
      local bar = cute.arch.alloc_smem(cute.i64, 1)
      local function part(of, at, rank, ctas)
        return cpasync.tma_partition(of, rank, cute.make_layout(ctas),
          cute.group_modes(s, 0, 2), cute.zipped_divide(at, {32, 64}))
      end
      local ts, tg = part(a, c, 1, 2)
      cute.copy(a, tg(_, {3, {2, 1}}), ts, {tma_bar_ptr = bar, mcast_mask = 3})
      ts, tg = part(b, d, 0, 1)
      cute.copy(b, ts, tg(_, 3))
    end)(two, cs, to, ds):trace {block = 32, cluster = 2, grid = 2}
    -- The second half of the tile begins at pixel 112, which is (2,4) of image
    -- 1. The padding of one pixel turns (2,4) into coordinates (1,3).
    assert.truthy(program.source:find("tma_load_im2col_4d_multicast(s_addr + "
      .. "2048u, &a, bar_addr, 0, 1, 3, 1, 2, 1, 3);", 1, true), program.source)
    -- The corners leave 9 x 6 pixels of each image, from coordinates (1,0) on.
    -- The store begins at pixel 96: (6,4) of image 1, at coordinates (7,4).
    assert.truthy(program.source:find("tma_store_im2col_4d(&b, s_addr, 0, 7, "
      .. "4, 1);", 1, true), program.source)
    kernels.compiles(program, {"sm_90"})
    raises("make_im2col_tma_atom: spatial mode 0: the corners give a filter "
      .. "of 3; a store needs 1 [shape-mismatch]", function()
      other(store, {-1, -1})
    end)
    raises("spatial mode 1: corners -1 and 0; a store needs a lower corner "
      .. "of at least 0 and an upper corner of at most 0 [inadmissible]",
      function() stored({0, -1}, {0, 0}) end)
    raises("spatial mode 0: corners 0 and 2",
      function() stored({0, 0}, {2, 0}) end)
    raises("make_im2col_tma_atom: 3 CTAs cannot share a box of 32 pixels "
      .. "[shape-mismatch]", function() other(multicast, {-1, -1}, 3) end)
    raises("make_im2col_tma_atom: num_multicast = 2", function()
      other(IM2COL, {-1, -1}, 2)
    end)
    raises("make_im2col_tma_atom: each of 8 CTAs copies 512 bytes of a box; "
      .. "with a swizzle of 128 bytes a multiple of 1024 is needed",
      function() other(multicast, {-1, -1}, 8) end)
    raises("prefetch of an im2col box: an atom that loads is needed, and this "
      .. "one stores", function()
      cute.kernel("k", function(a, c) cpasync.prefetch(a, c) end)(to, ds)
        :trace {block = 32}
    end)
    raises("an image has modes (C,W,N) to (C,W,H,D,N)", function()
      cpasync.make_im2col_tma_atom(IM2COL, matrix(8, 8),
        cute.make_layout {8, 8}, {8, 8}, {}, {})
    end)
    raises("CopyBulkTensorIm2ColG2SOp() is needed", function()
      cpasync.make_im2col_tma_atom(LOAD, IMAGE, cute.make_layout {8, 8}, {8, 8},
                                   {}, {})
    end)
    raises("an operation such as CopyBulkTensorTileG2SOp() is needed",
      function()
        cpasync.make_tiled_tma_atom(IM2COL, IMAGE, cute.make_layout {8, 8},
                                    {8, 8})
      end)
  end)
end)

describe("a TMA copy", function()
  it("has multicast masks", function()
    local ctas = cute.make_layout {1, 4, 2, 1}
    local mask = cpasync.create_tma_multicast_mask
    assert.equal(0x0f, mask(ctas, {0, 1, 0, 0}, 1))
    assert.equal(0xf0, mask(ctas, {0, 1, 1, 0}, 1))
    assert.equal(0x22, mask(ctas, {0, 1, 1, 0}, 2))
    raises("a cluster has at most 16 blocks, but 2147483648:1 has more "
      .. "[bad-argument]", mask, cute.layout "2147483648:1", {0}, 0)
    assert.same({0x22, 0x11, 0x88}, kernels.run(3, function(out)
      for i, at in ipairs {1, 0, 3} do
        local m = cute.var(at)
        out[i - 1] = mask(ctas, {0, m:get(), 0, 0}, 2)
      end
    end))
  end)

  it("has one program for all values of a dynamic extent",
    function()
      local function args(m)
        local A = matrix(m, 256):mark_compact_shape_dynamic {mode = 0}
        local atom, coords = cpasync.make_tiled_tma_atom(LOAD, A,
          sw128(128, 64), {128, 64})
        return atom, coords
      end
      local k = kernel_of(CASES[1][2])
      local one = k(args(512)):trace {block = 32}
      assert.equal(one.source, k(args(640)):trace {block = 32}.source)
      assert.equal(one.fn, k(args(640)):trace {block = 32}.fn)
    end)
end)
-- SPDX-License-Identifier: MIT
