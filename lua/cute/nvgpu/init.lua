--- cute.nvgpu: what one family of GPUs has, by the Python DSL's names.
local core = require "cute.core"
local sign = require "cute.lang.sign"

local nvgpu = {}

for _, part in ipairs {"cpasync", "warpgroup"} do
  nvgpu[part] = sign.namespace(require("cute.nvgpu." .. part),
                               "cute.nvgpu." .. part)
end

-- A TMA atom for tiles of the modes i and j of a GEMM's tile, which CTAs along
-- mode `shared` of the cluster (V,M,N,K) share.
local function atom_of(i, j, shared)
  return function(op, gmem_tensor, smem_layout, mma_tiler_mnk, _,
                  cluster_shape_vmnk)
    local ctas = shared and cluster_shape_vmnk
      and core.size(cluster_shape_vmnk[shared]) or 1
    return nvgpu.cpasync.make_tiled_tma_atom(op, gmem_tensor, smem_layout,
      {mma_tiler_mnk[i], mma_tiler_mnk[j]}, ctas)
  end
end

--- cpasync.make_tiled_tma_atom for the operands (M,K), (N,K) and the result
-- (M,N) of a GEMM whose CTAs have tiles of mma_tiler_mnk; of a multicast A is
-- shared along N of the cluster (V,M,N,K), B along M.
nvgpu.make_tiled_tma_atom_A = atom_of(1, 3, 3)
nvgpu.make_tiled_tma_atom_B = atom_of(2, 3, 2)
nvgpu.make_tiled_tma_atom_C = atom_of(1, 2)

return sign.public("cute.nvgpu.", nvgpu, [[
  make_tiled_tma_atom_A(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma, cluster_shape_vmnk?: table)
  make_tiled_tma_atom_B(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma, cluster_shape_vmnk?: table)
  make_tiled_tma_atom_C(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma)
]])
