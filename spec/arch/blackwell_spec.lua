-- Tests the table of docs/blackwell.md, which lists the targets that have each
-- instruction. Each row has a kernel. NVRTC must compile the kernel for the
-- targets that have the instruction; for other targets, cutelua must reject it
-- before NVRTC runs.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local arch, cpasync, all = cute.arch, cute.nvgpu.cpasync, cute._

local function program(f, ...)
  return cute.kernel("k", f)(...):trace {block = 32}
end

-- Returns the traced kernel that multiplies one tile by an MMA atom. A and B
-- have the type `dtype`, and C and D have the type f32.
local function product(atom, dtype, K)
  return kernels.tile(cute.make_tiled_mma(atom))(
    cute.zeros({16, K}, dtype), cute.zeros({8, K}, dtype),
    cute.zeros({16, 8}, "f32"), cute.zeros({16, 8}, "f32")):trace {block = 32}
end

local function scaled_product()
  local mma = cute.make_tiled_mma("SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<"
    .. "float_e4m3_t,float_e2m1_t,float,float_ue8m0_t,32>")
  return program(function(mA, mB, mS, mC)
    local thr = mma:get_slice(arch.thread_idx())
    local rA = cute.make_fragment_like(thr:partition_A(mA))
    local rB = cute.make_fragment_like(thr:partition_B(mB))
    local rC = thr:partition_fragment_C(mC)
    local rS = cute.make_rmem_tensor({4, 1, 1}, cute.ue8m0)
    cute.autovec_copy(thr:partition_A(mA), rA)
    cute.autovec_copy(thr:partition_B(mB), rB)
    for k = 0, 3 do rS[{k, 0, 0}] = mS[k] end
    rC:fill(0)
    cute.gemm(mma, rC, {rA, rS}, {rB, rS}, rC)
    cute.autovec_copy(rC, thr:partition_C(mC))
  end, cute.zeros({16, 32}, "u8"), cute.zeros({8, 32}, "u8"),
    cute.zeros({4}, "ue8m0"), cute.zeros({16, 8}, "f32"))
end

-- Returns a kernel that stores a tile by TMA. If `change` is true, the kernel
-- first changes a tensor map in global memory and then stores through that map.
local function tma(change)
  local x = cute.zeros({32, 32}, "f32")
  local tile = cute.make_ordered_layout({8, 32}, {1, 0})
  local map, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileS2GOp(), x, tile, {8, 32})
  local more = change and {x, cute.zeros({16}, cute.i64)} or {}
  return cute.kernel("k", function(atom, c, ...)
    local y, maps = ...
    local s = cute.make_smem_tensor(cute.f32, tile, 128)
    local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.zipped_divide(c, {8, 32}))
    s:fill(1)
    arch.fence_view_async_shared()
    arch.cluster_arrive()
    arch.cluster_wait()
    cute.when(arch.elect_one(), function()
      if change then
        cpasync.copy_tensormap(atom, maps)
        cpasync.update_tma_descriptor(atom, y, maps)
        cpasync.fence_tma_desc_release()
        cpasync.fence_tma_desc_acquire(maps)
      end
      cute.copy(atom, ts, tg(all, 0), change and {tma_desc_ptr = maps} or nil)
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0)
    end)
  end)(map, coords, table.unpack(more)):trace {block = 32, cluster = 2}
end

-- Returns a kernel that loads a tile by TMA for a pair of blocks.
local function pair_load()
  local x = cute.zeros({32, 32}, "f32")
  local tile = cute.make_ordered_layout({8, 32}, {1, 0})
  local map, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(2), x, tile, {8, 32})
  return cute.kernel("k", function(atom, c)
    local s = cute.make_smem_tensor(cute.f32, tile, 128)
    local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.zipped_divide(c, {8, 32}))
    local bar = arch.alloc_smem(cute.i64, 1)
    cute.copy(atom, tg(all, 0), ts, {tma_bar_ptr = bar})
  end)(map, coords):trace {block = 32, cluster = 2}
end

-- Returns a kernel that gathers or scatters rows by TMA with operation `op`.
local function rows(op, mask)
  local x, list = cute.zeros({32, 32}, "f32"), cute.zeros({8}, "i32")
  local tile = cute.make_ordered_layout({8, 32}, {1, 0})
  local spread = cute.make_layout({8, 32}, {1, 0})
  local map, coords = cpasync.make_tiled_tma_atom(op, x, tile, {8, 32}, 1,
    {gmem_coord_tensor = cute.make_tensor(list.iterator, spread)})
  return cute.kernel("k", function(atom, c, at)
    local s = cute.make_smem_tensor(cute.f32, tile, 128)
    local own = cute.make_tensor(at.iterator, spread)
    local ts, tg, ti = cpasync.tma_partition(atom, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2),
      {cute.group_modes(c, 0, 2), cute.group_modes(own, 0, 2)})
    if atom.stores then
      cute.copy(atom, ts, {tg, ti})
    else
      cute.copy(atom, {tg, ti}, ts, {mcast_mask = mask,
        tma_bar_ptr = arch.alloc_smem(cute.i64, 1)})
    end
  end)(map, coords, list):trace {block = 32}
end

local function wide_copy()
  return program(function(x)
    local r = cute.make_rmem_tensor({8}, cute.f32)
    local at = x(arch.thread_idx(), all)
    cute.copy(cute.make_copy_atom("SM100_LOAD_256bit_CACHE_NOALLOCATION",
                                  cute.f32), at, r)
    cute.copy(cute.make_copy_atom("SM100_STORE_256bit_CACHE_NOALLOCATION",
                                  cute.f32), r, at)
  end, cute.zeros({32, 8}, "f32"))
end

local function two_floats()
  return program(function(x)
    local r = arch.fma_packed_f32x2({x[0], x[1]}, {x[2], x[3]}, {1, 2},
                                    {rnd = "rz", ftz = true})
    x[0], x[1] = r[1], r[2]
  end, cute.zeros({4}, "f32"))
end

local function cancels()
  return program(function()
    arch.issue_clc_query(arch.alloc_smem(cute.i64, 1),
                         arch.alloc_smem(cute.i32, 4, 16))
  end)
end

-- Returns a kernel that multiplies a tile by tcgen05.mma, by operation `op`.
local function umma(op, dtype)
  local tcgen05 = cute.nvgpu.tcgen05
  local mma = cute.make_tiled_mma(op)
  local K = mma.shape_mnk[3]
  local layout = cute.tile_to_shape(
    tcgen05.make_smem_layout_atom("K_INTER", dtype), {64, K})
  return cute.kernel("k", function()
    local s = cute.make_smem_tensor(dtype, layout, 128)
    local address = arch.alloc_smem(cute.i32, 1)
    arch.alloc_tmem(64, address)
    local thr = mma:get_slice(0)
    local a = mma:make_fragment_A(thr:partition_A(s))
    local b = mma:make_fragment_B(thr:partition_B(s))
    local ptr = arch.retrieve_tmem_ptr(
      dtype == cute.i8 and cute.i32 or cute.f32, 16, address)
    local c = cute.make_tensor(ptr, mma:make_fragment_C(
      mma:partition_shape_C {64, 64}).layout)
    mma:set(tcgen05.Field.ACCUMULATE, false)
    cute.gemm(mma, c, a, b, c)
    tcgen05.commit(arch.alloc_smem(cute.i64, 1))
    arch.dealloc_tmem(ptr, 64)
  end)():trace {block = 32}
end

-- Returns a kernel with a sparse tcgen05.mma of packed e2m1.
local function sparse_umma()
  local tcgen05, helpers = cute.nvgpu.tcgen05, cute.utils.blackwell_helpers
  local mma = cute.make_tiled_mma("SM100_MMA_MXF4NVF4_SS_SPARSE<float_e2m1_t,"
    .. "float_e2m1_t,float,float_ue4m3_t,128,128,32,K,K>")
  local function shared(k)
    return cute.make_smem_tensor(cute.e2m1, cute.tile_to_shape(
      tcgen05.make_smem_layout_atom("K_INTER", cute.e2m1), {128, k}), 128)
  end
  local scales = cute.layout ("((((32,4),4),(32,4)),1,1):"
    .. "((((262144,4),8388608),(0,1)),0,0)")
  local metadata = helpers.make_sparse_e_dtype("e2m1"):stored(
    helpers.make_sparse_tmem_layout_e({{128, 128}, 1, 1}, "e2m1"))
  return cute.kernel("k", function()
    local address = arch.alloc_smem(cute.i32, 1)
    arch.alloc_tmem(256, address)
    local thr = mma:get_slice(0)
    local a = mma:make_fragment_A(thr:partition_A(shared(64)))
    local b = mma:make_fragment_B(thr:partition_B(shared(128)))
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local function tensor(dtype, layout)
      return cute.make_tensor(cute.recast_ptr(ptr + 128, nil, dtype), layout)
    end
    local c = cute.make_tensor(ptr, mma:make_fragment_C(
      mma:partition_shape_C {128, 128}).layout)
    cute.gemm(mma, c, {a, tensor(cute.e4m3, scales),
                       tensor(cute.u8, metadata)},
              {b, tensor(cute.e4m3, scales)}, c)
    tcgen05.commit(arch.alloc_smem(cute.i64, 1))
    arch.dealloc_tmem(ptr, 256)
  end)():trace {block = 32}
end

local function registers()
  return cute.kernel("k", function(x)
    arch.warpgroup_reg_alloc(240)
    x[arch.thread_idx()] = 1
  end)(cute.zeros({128}, "f32")):trace {block = 128}
end

local function warpgroup()
  return cute.kernel("k", function()
    cute.nvgpu.warpgroup.fence()
    cute.nvgpu.warpgroup.commit_group()
    cute.nvgpu.warpgroup.wait_group(0)
  end)():trace {block = 128}
end

-- Functions that return the program to compile for a row of the docs' table.
-- The key is the text with which the row's first cell begins.
local PROGRAMS = {
  ["two f32 at a time"] = two_floats, ["256-bit copies"] = wide_copy,
  ["`clusterlaunchcontrol`"] = cancels,
  ["`tcgen05` and tensor"] = function()
    return umma(cute.nvgpu.tcgen05.MmaF16BF16Op(cute.bf16, cute.f32,
                                                {64, 64, 16}), cute.bf16)
  end,
  ["`tcgen05.mma` of i8"] = function()
    return umma(cute.nvgpu.tcgen05.MmaI8Op(cute.i8, {64, 64, 32}), cute.i8)
  end,
  ["sparse `tcgen05.mma`"] = sparse_umma,
  ["`tcgen05.shift`"] = function()
    return program(function()
      local address = arch.alloc_smem(cute.i32, 1)
      cute.nvgpu.tcgen05.shift(arch.retrieve_tmem_ptr(cute.f32, 16, address))
    end)
  end,
  ["`mma.sync` of f16"] = function()
    return product("SM89_16x8x32_F32E4M3E4M3F32_TN", "e4m3", 32)
  end,
  ["`mma.sync` of 6-"] = function()
    return product("SM120_16x8x32_TN<float_e2m3_t,float_e2m1_t,float>", "u8",
                   32)
  end,
  ["`mma.sync` with scales"] = scaled_product,
  ["TMA, clusters"] = function() return tma(false) end,
  ["TMA loads for a pair"] = pair_load,
  ["TMA loads that gather"] = function()
    return rows(cpasync.CopyBulkTensor2DGather4G2SOp())
  end,
  ["the same for several"] = function()
    rows(cpasync.CopyBulkTensor2DGather4G2SMulticastOp(), 1)
    return rows(cpasync.CopyBulkTensor2DScatter4S2GOp())
  end,
  ["`tensormap.replace`"] = function() return tma(true) end,
  ["`setmaxnreg`"] = registers, ["`wgmma`"] = warpgroup,
}

-- Returns the list of the table's rows. A row has its first cell as `name`, and
-- for each target the cell in that target's column: "yes", "no", or the
-- suffixes of the architectures that have the instruction, such as "a" or "a,
-- f".
local function table_rows()
  local list, targets = {}, nil
  for line in support.read("docs/blackwell.md"):gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "| ([^|]*) %f[|]" do cells[#cells + 1] = cell end
    if cells[1] == "instruction" then targets = cells
    elseif targets and #cells == #targets and cells[2]:find "^[yn]" then
      local row = {name = cells[1]}
      for k = 2, #cells do row[targets[k]] = cells[k] end
      list[#list + 1] = row
    end
  end
  return list
end

-- Compiles a program for a target, or checks that it is rejected. Returns false
-- without NVRTC.
local function check(p, target, has)
  if has then return kernels.compiles(p, {target}) end
  local text, why = pcall(p.cuda, p, target)
  assert.is_false(text, target .. " accepts it")
  assert.is_truthy(tostring(why):find("needs sm_", 1, true), why)
  return true
end

describe("docs/blackwell.md", function()
  for n, row in ipairs(table_rows()) do
    it("says which targets have " .. row.name .. support.long(n, 2), function()
      local make
      for start, f in pairs(PROGRAMS) do
        if row.name:sub(1, #start) == start then make = f end
      end
      local p, done = make(), true
      for chip, cell in pairs(row) do
        if chip == "sm_90a" then
          done = check(p, chip, cell == "yes") and done
        elseif chip ~= "name" then
          done = check(p, chip, cell == "yes") and done
          for _, suffix in ipairs {"a", "f"} do
            local has = cell == "yes"
              or cell:find("%f[%a]" .. suffix .. "%f[%A]")
            done = check(p, chip .. suffix, has) and done
          end
        end
      end
      return done or pending "needs NVRTC"
    end)
  end

  it("has a row for each program", function()
    local count = 0
    for _ in pairs(PROGRAMS) do count = count + 1 end
    assert.equal(count, #table_rows())
  end)
end)

describe("pairs of f32", function()
  it("are multiplied and added by two instructions", function()
    for _, multiply in ipairs {
      function(a, b) return arch.mul_packed_f32x2(a, b) end,
      function(a, b) return arch.fma_packed_f32x2(a, b, {-0.0, -0.0}) end,
    } do
      local p = program(function(x)
        local r = arch.add_packed_f32x2(multiply({x[0], x[1]}, {x[2], x[3]}),
                                        {x[4], x[5]})
        x[0], x[1] = r[1], r[2]
      end, cute.zeros({6}, "f32"))
      local cubin = kernels.compiled(p, "sm_100a")
      if not cubin then
        pending "needs NVRTC"
        return
      end
      assert.equal(1, kernels.opcodes(cubin.cubin)[kernels.FADD2])
    end
  end)
end)
-- SPDX-License-Identifier: MIT
