// A GEMM with the C++ templates of CuTe (CUTLASS's headers), for sm_90a.
// SPDX-License-Identifier: MIT
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>

using namespace cute;
using Barrier = cutlass::arch::ClusterTransactionBarrier;

// c = a b^T for tiles of 64 x 64; a and b are row-major with k columns. Each
// step loads 64 columns by TMA and multiplies them by wgmma.
template <class A, class B>
__global__ void hopper(__grid_constant__ A const load_a,
                       __grid_constant__ B const load_b, float *c, int m,
                       int n, int k) {
  extern __shared__ __align__(1024) char raw[];
  __shared__ uint64_t full;
  auto layout = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{},
                              Shape<_64, _64>{});
  Tensor sa = make_tensor(make_smem_ptr((half_t *)raw), layout);
  Tensor sb = make_tensor(make_smem_ptr((half_t *)(raw + 8192)), layout);
  Tensor ga = local_tile(load_a.get_tma_tensor(make_shape(m, k)),
                         Shape<_64, _64>{}, make_coord(blockIdx.x, _));
  Tensor gb = local_tile(load_b.get_tma_tensor(make_shape(n, k)),
                         Shape<_64, _64>{}, make_coord(blockIdx.y, _));
  Tensor gc = local_tile(make_tensor(make_gmem_ptr(c), make_shape(m, n),
                                     make_stride(n, _1{})),
                         Shape<_64, _64>{},
                         make_coord(blockIdx.x, blockIdx.y));
  auto [from_a, to_a] = tma_partition(load_a, Int<0>{}, Layout<_1>{},
                                      group_modes<0, 2>(sa),
                                      group_modes<0, 2>(ga));
  auto [from_b, to_b] = tma_partition(load_b, Int<0>{}, Layout<_1>{},
                                      group_modes<0, 2>(sb),
                                      group_modes<0, 2>(gb));
  if (threadIdx.x == 0) Barrier::init(&full, 1);
  cutlass::arch::fence_barrier_init();
  __syncthreads();
  auto mma = make_tiled_mma(
    SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
  auto own = mma.get_slice(threadIdx.x);
  Tensor ra = own.partition_fragment_A(sa);
  Tensor rb = own.partition_fragment_B(sb);
  Tensor rc = own.partition_fragment_C(gc);
  clear(rc);
  CUTE_NO_UNROLL
  for (int s = 0; s < size<2>(ga); s++) {
    if (threadIdx.x == 0) {
      Barrier::arrive_and_expect_tx(&full, 16384);
      copy(load_a.with(full), from_a(_, s), to_a);
      copy(load_b.with(full), from_b(_, s), to_b);
    }
    Barrier::wait(&full, s % 2);
    warpgroup_arrive();
    gemm(mma, ra, rb, rc);
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    __syncthreads();
  }
  Tensor tc = own.partition_C(gc);
  Tensor ti = own.partition_C(local_tile(
    make_identity_tensor(make_shape(m, n)), Shape<_64, _64>{},
    make_coord(blockIdx.x, blockIdx.y)));
  for (int i = 0; i < size(rc); i++)
    if (elem_less(ti(i), make_shape(m, n))) tc(i) = rc(i);
}

// The types of the copies, which the host would make.
void host(half_t *a, half_t *b, float *c, int m, int n, int k) {
  auto layout = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{},
                              Shape<_64, _64>{});
  auto load = [&](half_t *x, int rows) {
    return make_tma_atom(SM90_TMA_LOAD{},
                         make_tensor(make_gmem_ptr(x), make_shape(rows, k),
                                     make_stride(k, _1{})),
                         layout, Shape<_64, _64>{});
  };
  hopper<<<1, 128, 16384>>>(load(a, m), load(b, n), c, m, n, k);
}
