-- Tests launches in clusters: the special registers that describe blocks, which
-- of these registers become constants, and the errors for invalid launches.
local cute = require "cute"
local raises = require "spec.support".raises
local arch = cute.arch

-- Returns the list of values that the calling block reads: its rank in the
-- cluster, the size of the cluster, cluster_idx, cluster_dim,
-- block_in_cluster_idx, and block_in_cluster_dim.
local function told()
  local list = {arch.block_idx_in_cluster(), arch.cluster_size()}
  for _, f in ipairs {arch.cluster_idx, arch.cluster_dim,
                      arch.block_in_cluster_idx, arch.block_in_cluster_dim} do
    for _, v in ipairs {f()} do list[#list + 1] = v end
  end
  return list
end

local tell = cute.kernel("tell", function(o)
  local x, y, z = arch.block_idx()
  local nx, ny = arch.grid_dim()
  for k, v in ipairs(told()) do o[{x + nx * (y + ny * z), k - 1}] = v end
end)

-- Computes the values of told() independently: clusters tile the grid, and
-- ranks increase along x first.
local function expected(grid, c, block)
  local id, at, n = {}, {}, {}
  local rest = block
  for i = 1, 3 do
    local b = rest % grid[i]
    rest = rest // grid[i]
    id[i], at[i], n[i] = b // c[i], b % c[i], grid[i] // c[i]
  end
  return {at[1] + c[1] * (at[2] + c[2] * at[3]), c[1] * c[2] * c[3],
          id[1], id[2], id[3], n[1], n[2], n[3], at[1], at[2], at[3],
          c[1], c[2], c[3]}
end

local function check(device)
  for _, case in ipairs {{{4, 1, 1}, {2, 1, 1}}, {{6, 4, 2}, {3, 2, 1}},
      {{2, 4, 6}, {1, 2, 3}}, {{4, 4, 4}, {2, 2, 2}}, {{5, 3, 1}, {1, 1, 1}}} do
    local grid, c = table.unpack(case)
    local blocks = grid[1] * grid[2] * grid[3]
    local o = cute.zeros({blocks, 14}, cute.i32)
    tell(o):launch {grid = grid, block = 32, cluster = c, device = device}
    for b = 0, blocks - 1 do
      local got = {}
      for k = 0, 13 do got[k + 1] = o[{b, k}] end
      assert.same(expected(grid, c, b), got, ("block %d"):format(b))
    end
  end
end

describe("clusters", function()
  it("give each block its position", function() check "sim:sm_90a" end)
  it("give each block its position #gpu", function() check "gpu" end)

  it("have extents that are constants of the program", function()
    local text = tell(cute.zeros({8, 14}, cute.i32)):trace {
      block = 32, cluster = {4, 1, 2}}.source
    assert.truthy(text:find("__launch_bounds__(32) __cluster_dims__(4, 1, 2)",
                            1, true), text)
    assert.is_nil(text:find("nctaid", 1, true), text)
    assert.is_nil(text:find("cluster_ctaid_y", 1, true), text)
    assert.truthy(text:find("cluster_ctaid_z() {\n  int r;\n"
      .. '  asm("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(r));\n', 1, true), text)
    text = tell(cute.zeros({8, 14}, cute.i32)):trace {block = 32}.source
    assert.is_nil(text:find "clusterid" or text:find "cluster_n?cta", text)
    assert.is_nil(text:find("__cluster_dims__", 1, true), text)
    -- st.async outside of a cluster is an illegal instruction on hardware, so
    -- the emitted kernel declares a cluster of one block.
    text = cute.kernel("k", function()
      arch.store_async_dsmem(arch.alloc_smem(cute.i32, 1), 1,
                             arch.alloc_smem(cute.i64, 1), 0)
    end)():trace {block = 32}.source
    assert.truthy(text:find("__cluster_dims__(1, 1, 1)", 1, true), text)
  end)

  it("bound values computed from a block's position", function()
    local k = cute.kernel("k", function(o)
      o[0] = arch.block_idx_in_cluster() % 2
    end)
    local o = cute.zeros({1}, cute.i32)
    assert.is_nil(k(o):trace {block = 32, cluster = 2}.ir:find " mod ")
    assert.truthy(k(o):trace {block = 32, cluster = 4}.ir:find " mod ")
  end)

  it("are rejected if they do not fit, with the values", function()
    local function launch(opts)
      opts.block, opts.device = 32, opts.device or "sim:sm_90a"
      return function() tell(cute.zeros({8, 14}, cute.i32)):launch(opts) end
    end
    raises("a grid of 5 x 1 x 1 blocks in clusters of 2 x 1 x 1: 5 is not a "
      .. "multiple of 2 along x", launch {grid = 5, cluster = 2})
    raises("a grid of 4 x 3 x 1 blocks in clusters of 2 x 2 x 1: 3 is not a "
      .. "multiple of 2 along y", launch {grid = {4, 3}, cluster = {2, 2}})
    raises("a cluster of 32 blocks; the limit is 16",
           launch {grid = 32, cluster = {8, 4}})
    raises("cluster = 0; one to three integers of at least 1 are needed",
           launch {grid = 4, cluster = 0})
    raises("a cluster of 2 blocks needs sm_90 or newer, the target is sm_80",
           launch {grid = 4, cluster = 2, device = "sim:sm_80"})
    raises("pdl = true needs sm_90 or newer, but the target is sm_80",
           launch {grid = 4, pdl = true, device = "sim:sm_80"})
    raises("pdl of 1: a boolean is needed",
           launch {grid = 4, pdl = 1})
    launch {grid = 8, cluster = {1, 1, 1}, device = "sim:sm_80"}
  end)
end)
-- SPDX-License-Identifier: MIT
