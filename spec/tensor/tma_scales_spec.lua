-- Tests TMA copies of scale factors, whose layouts in shared memory repeat each
-- factor (stride 0), and tensor maps whose elements are wider than those of the
-- tensor (internal_type). Factors in shared memory are compared, bit for bit,
-- with the tensor in global memory.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

local cpasync, tcgen05, _ = cute.nvgpu.cpasync, cute.nvgpu.tcgen05, cute._
local sm100, utils = cute.utils.blackwell_helpers, cute.utils
local LOAD = cpasync.CopyBulkTensorTileG2SOp()

-- Returns a tensor of scale factors of the given type, (rows,k,batches), with
-- random bytes.
local function factors(rows, k, batches, vs, sf)
  local layout = utils.tile_atom_to_shape_SF({rows, k, batches}, vs)
  local bytes = cute.empty({cute.cosize(layout)}, cute.u8)
  for i = 0, cute.size(bytes) - 1 do bytes[i] = math.random(0, 255) end
  return cute.make_tensor(cute.recast_ptr(bytes.iterator, nil, sf), layout),
    cute.make_tensor(bytes.iterator, layout)
end

-- Returns the part of block c.v of a pair (0 without pairs) of tiles of the
-- operand.
local function part_of(c, tiles)
  local thr = c.mma:get_slice(c.v)
  return thr["partition_" .. c.letter](thr, tiles)
end

-- Returns a kernel whose blocks each load a tile of matrix c.l of the scale
-- factors, and copy the bytes of shared memory to `out`, (bytes,tiles).
local function loading(c)
  return cute.kernel("load", function(atom, coords, out)
    local s = cute.make_smem_tensor(c.sf, c.smem, 1024)
    local bar = cute.arch.alloc_smem(cute.i64, 1)
    local tid, at, k_tile = cute.arch.thread_idx(), cute.arch.block_idx()
    local to, from = cpasync.tma_partition(atom, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 3), cute.group_modes(part_of(c, cute.local_tile(
        coords, {c.rows, c.tile[3]}, {at, _, c.l})), 0, 3))
    cute.when(tid:eq(0), function()
      cute.arch.mbarrier_init(bar, 1)
      cute.arch.mbarrier_init_fence()
      cute.arch.mbarrier_arrive_and_expect_tx(bar, atom.tx_bytes)
      cute.copy(atom, cute.filter_zeros(from)(_, k_tile),
                cute.filter_zeros(to)(_, 0), {tma_bar_ptr = bar})
    end)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(bar, 0)
    local raw = cute.make_tensor(cute.recast_ptr(s.iterator, nil, cute.u8),
                                 cute.make_layout(atom.tx_bytes))
    for i in cute.range(tid, atom.tx_bytes, 32) do
      out[{i, at, k_tile}] = raw[i]
    end
  end)
end

-- Returns a random case: an MMA, the layout of the factors of one operand in
-- shared memory, and a type for the tensor map.
local function random_case()
  local e2m1 = math.random(2) == 1
  local pair = math.random(3) == 1
  local vs = e2m1 and math.random(2) == 1 and 16 or 32
  local sf = vs == 16 and math.random(2) == 1 and cute.e4m3 or cute.ue8m0
  local mn = {pair and 256 or 128, math.random(2) * 128}
  local ab = e2m1 and cute.e2m1 or cute.e4m3
  local function mma_of(group, m)
    return sm100.make_blockscaled_trivial_tiled_mma(ab, ab, "K", "K", sf, vs,
                                                    group, {m, mn[2]})
  end
  local mma = mma_of(pair and tcgen05.CtaGroup.TWO or tcgen05.CtaGroup.ONE,
                     mn[1])
  local tile = {mn[1], mn[2], (e2m1 and 64 or 32) * 4 * math.random(2)}
  local letter = ({"A", "B"})[math.random(2)]
  local smem = sm100["make_smem_layout_sf" .. letter:lower()](mma, tile, vs, 2)
  -- Each block of a pair has the factors of all rows of B.
  if letter == "B" then mma, pair = mma_of(tcgen05.CtaGroup.ONE, 128), false end
  local internal = ({false, cute.i16, cute.u16, cute.u32})[math.random(4)]
  return {mma = mma, tile = tile, vs = vs, sf = sf, letter = letter,
          rows = tile[letter == "A" and 1 or 2],
          blocks = pair and 2 or 1, smem = smem,
          opts = internal and {internal_type = internal} or nil}
end

-- Runs case c for a tensor of random size, and returns the number of bytes that
-- differ from the tensor in global memory. Bytes beyond the tensor are 0.
local function differences(c)
  local tiles, batches = math.random(2), math.random(2)
  local k = math.random(4) * 4 * c.vs
  local SF, bytes = factors(math.random(1, tiles * c.rows), k, batches, c.vs,
                            c.sf)
  local atom, coords = cute.nvgpu["make_tiled_tma_atom_" .. c.letter](LOAD, SF,
    c.smem, c.tile, c.mma, {c.blocks, 1, 1, 1}, c.opts)
  local k_tiles = (k + c.tile[3] - 1) // c.tile[3]
  c.v, c.l = math.random(0, c.blocks - 1), math.random(0, batches - 1)
  local out = cute.zeros({atom.tx_bytes, tiles, k_tiles}, cute.u8)
  loading(c)(atom, coords, out):launch {grid = {tiles, k_tiles}, block = 32,
                                        device = "sim:sm_100a"}
  local one = c.smem(_, _, _, 0)
  local bad = 0
  for i = 0, tiles - 1 do
    for j = 0, k_tiles - 1 do
      local part = part_of(c,
                           cute.make_identity_tensor {c.rows, c.tile[3]})
      for x = 0, cute.size(one) - 1, 5 do
        local at = part(x)
        local row, col = at[1] + i * c.rows, at[2] + j * c.tile[3]
        local inside = row < cute.size(SF, 0) and col < cute.size(SF, 1)
        if out(one(x), i, j) ~= (inside and bytes(row, col, c.l) or 0) then
          bad = bad + 1
        end
      end
    end
  end
  return bad, atom
end

describe("a TMA load of scale factors", function()
  it("copies each factor once, as a plain copy does", function()
    math.randomseed(21)
    for _ = 1, 12 do
      local c = random_case()
      local bad, atom = differences(c)
      assert.equal(0, bad, ("%s of %s, tile %s"):format(atom, c.letter,
        table.concat(c.tile, " ")))
    end
  end)

  it("is made as in the Python DSL", function()
    local mma = sm100.make_blockscaled_trivial_tiled_mma(cute.e4m3, cute.e4m3,
      "K", "K", cute.ue8m0, 32, tcgen05.CtaGroup.ONE, {128, 128})
    local tile, SF = {128, 128, 256}, factors(256, 1024, 1, 32, cute.ue8m0)
    local smem = sm100.make_smem_layout_sfa(mma, tile, 32, 2)
    local function made(op, cluster, opts)
      local atom, coords = cute.nvgpu.make_tiled_tma_atom_A(op, SF, smem, tile,
                                                            mma, cluster, opts)
      return tostring(atom), atom.values, atom.tx_bytes,
        tostring(coords.layout.stride)
    end
    -- The bytes of 128 rows and 4 blocks are 16 rows of 32 bytes, or one row of
    -- 256 words.
    assert.same({"TMA load of ue8m0, box (16,32,2,1,1)", 1024, 1024,
                 "(((1@1,4@0),1@3),((0,1@0),1@2),(1@4,0))"}, {made(LOAD)})
    assert.same({"TMA load of ue8m0 as i16, box (256,2,1,1,1)", 1024, 1024,
                 "(((16@0,4@0),1@2),((0,1@0),1@1),(1@3,1@4))"},
                {made(LOAD, nil, {internal_type = cute.i16})})
    assert.same({"TMA load of ue8m0 as i16, box (256,1,1,1,1), 2 CTAs", 1024,
                 1024, "(((16@0,4@0),1@2),((0,1@0),1@1),(1@3,1@4))"},
                {made(cpasync.CopyBulkTensorTileG2SMulticastOp(), {1, 1, 2, 1},
                      {internal_type = cute.i16})})
  end)

  it("compiles for sm_100a", function()
    local c = random_case()
    local SF = factors(c.rows, 4 * c.vs, 1, c.vs, c.sf)
    c.v, c.l = 0, 0
    local atom, coords = cute.nvgpu["make_tiled_tma_atom_" .. c.letter](LOAD,
      SF, c.smem, c.tile, c.mma, nil, {internal_type = cute.i16})
    local program = loading(c)(atom, coords, cute.zeros({atom.tx_bytes, 1, 1},
      cute.u8)):trace {block = 32, arch = "sm_100a"}
    assert.truthy(program.source:find("tma_load_5d(s_addr, &atom, bar_addr, 0,",
      1, true), program.source)
    kernels.compiles(program, {"sm_100a"})
  end)

  it("needs a tensor that repeats what shared memory repeats", function()
    local SF = factors(128, 64, 1, 16, cute.e4m3)
    support.raises("make_tiled_tma_atom: (128,(32,2)):(2,(0,1)) repeats "
      .. "elements along mode 4 of the tensor, whose stride is 1 [inadmissible]"
      .. "\n  use a tensor with stride 0 along this mode, or a layout without",
      function()
      cpasync.make_tiled_tma_atom(LOAD, SF(_, _, 0),
        cute.make_layout({128, {32, 2}}, {2, {0, 1}}), {128, 64})
    end)
    support.raises("make_tiled_tma_atom: the tiler {128, 64} has 8192 "
      .. "elements, but the layout in shared memory has 512 ((128,4):(4,1)) "
      .. "[shape-mismatch]\n  pass the layout of the whole tile, with its "
      .. "modes of stride 0", function()
      cpasync.make_tiled_tma_atom(LOAD, SF(_, _, 0),
        cute.make_layout({128, 4}, cute.LayoutRight), {128, 64})
    end)
  end)
end)

describe("a tensor map with wider elements than the tensor", function()
  -- Copies tiles of X to Y by maps of elements of `internal`.
  local function copied(X, Y, internal, tile, f)
    local opts = {internal_type = internal}
    local smem = cute.make_layout(tile, cute.LayoutRight)
    local from, cX = cpasync.make_tiled_tma_atom(LOAD, X, smem, tile, 1, opts)
    local to, cY = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), Y, smem, tile, 1, opts)
    return from, cute.kernel("k", function(load, mX, store, mY, Z, map)
      local s = cute.make_smem_tensor(X.dtype, smem, 128)
      local bar = cute.arch.alloc_smem(cute.i64, 1)
      local i, j = cute.arch.block_idx()
      local function part(atom, m)
        return cpasync.tma_partition(atom, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2),
          cute.group_modes(f(m, tile, i, j), 0, 2))
      end
      cute.when(cute.arch.thread_idx():eq(0), function()
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)
        local own, at = part(load, mX)
        local ptr = map and map(0, _)
        if map then
          cpasync.copy_tensormap(load, ptr)
          cpasync.update_tma_descriptor(load, Z, ptr)
          cpasync.fence_tma_desc_release()
          cpasync.fence_tma_desc_acquire(ptr)
        end
        cute.copy(load, at, own, {tma_bar_ptr = bar, tma_desc_ptr = ptr})
        cute.arch.mbarrier_wait(bar, 0)
        own, at = part(store, mY)
        cute.copy(store, own, at)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)
      end)
    end), cX, to, cY
  end

  local function at_tile(m, tile, i, j)
    return cute.local_tile(m, tile, {i, j})
  end

  local function matrix(m, n, f)
    local t = cute.make_tensor(cute.empty({m * n}, cute.u8).iterator,
                               cute.make_layout({m, n}, {n, 1}))
    for i = 0, m - 1 do for j = 0, n - 1 do t[{i, j}] = f(i, j) end end
    return t
  end

  local function byte(i, j) return (i * 7 + j * 3) % 251 end

  it("loads and stores tiles", function()
    for _, internal in ipairs {cute.i16, cute.u32, cute.i64} do
      local X = matrix(40, 96, byte)
      local Y = matrix(40, 96, function() return 255 end)
      local load, k, cX, store, cY = copied(X, Y, internal, {16, 32}, at_tile)
      assert.equal(("TMA load of u8 as %s, box (%d,16)"):format(internal,
        32 * 8 // internal.bits), tostring(load))
      k(load, cX, store, cY):launch {grid = {3, 3}, block = 32,
                                     device = "sim:sm_90a"}
      for i = 0, 39 do
        for j = 0, 95 do assert.equal(byte(i, j), Y(i, j)) end
      end
    end
  end)

  it("can be updated for another tensor", function()
    local X, Z = matrix(16, 32, byte), matrix(24, 64, function(i, j)
      return byte(j, i)
    end)
    local Y = matrix(16, 32, function() return 255 end)
    local load, k, cX, store, cY = copied(X, Y, cute.i16, {16, 32}, at_tile)
    k(load, cX, store, cY, Z, cute.zeros({1, 16}, cute.i64)):launch {
      grid = {1, 1}, block = 32, device = "sim:sm_90a"}
    for i = 0, 15 do
      for j = 0, 31 do assert.equal(byte(j, i), Y(i, j)) end
    end
  end)

  it("has whole elements", function()
    local function shifted(m, tile)
      return cute.local_tile(cute.domain_offset({0, 1}, m), tile, {0, 0})
    end
    local X, Y = matrix(16, 32, byte), matrix(16, 32, byte)
    local load, k, cX, store, cY = copied(X, Y, cute.i16, {16, 16}, shifted)
    assert.error_matches(function()
      k(load, cX, store, cY):trace {block = 32}
    end, "copy: a box must start at a multiple of 2 elements, because the "
      .. "tensor map has elements of i16 [misaligned]", 1, true)
    local function refuses(want, t, tile, opts)
      support.raises("make_tiled_tma_atom: " .. want, function()
        cpasync.make_tiled_tma_atom(LOAD, t, cute.make_layout(tile,
          cute.LayoutRight), tile, 1, opts)
      end)
    end
    refuses("17 elements are contiguous in global and shared memory; a "
      .. "multiple of 2, an element of internal_type, is needed "
      .. "[shape-mismatch]", X, {16, 17}, {internal_type = cute.i16})
    refuses("internal_type f16 has 16 bits, but the tensor's type u8 has 8 "
      .. "[type-mismatch]", X, {16, 16}, {internal_type = cute.f16})
    refuses("rows have 31 elements of u8; a tensor map of i16 needs a multiple "
      .. "of 2 [shape-mismatch]", cute.make_tensor(X.iterator,
        cute.make_layout({16, 31}, {32, 1})), {16, 16},
      {internal_type = cute.i16})
  end)
end)
-- SPDX-License-Identifier: MIT
