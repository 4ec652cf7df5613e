// A GEMM with the C++ templates of CuTe (CUTLASS's headers), for sm_80.
// SPDX-License-Identifier: MIT
#include <cute/tensor.hpp>

using namespace cute;

// c = a b^T for tiles of 64 x 64; a and b are row-major with k columns, a
// multiple of 32. Two stages of 32 columns.
extern "C" __global__ void product(const half_t *a, const half_t *b, float *c,
                                   int m, int n, int k) {
  Tensor ga = local_tile(make_tensor(make_gmem_ptr(a), make_shape(m, k),
                                     make_stride(k, _1{})),
                         make_shape(_64{}, _32{}), make_coord(blockIdx.x, _));
  Tensor gb = local_tile(make_tensor(make_gmem_ptr(b), make_shape(n, k),
                                     make_stride(k, _1{})),
                         make_shape(_64{}, _32{}), make_coord(blockIdx.y, _));
  Tensor gc = local_tile(make_tensor(make_gmem_ptr(c), make_shape(m, n),
                                     make_stride(n, _1{})),
                         make_shape(_64{}, _64{}),
                         make_coord(blockIdx.x, blockIdx.y));
  auto stages = make_layout(make_shape(_64{}, _32{}, _2{}),
                            make_stride(_40{}, _1{}, Int<64 * 40>{}));
  __shared__ alignas(128) half_t pa[cosize(stages)], pb[cosize(stages)];
  Tensor sa = make_tensor(make_smem_ptr(pa), stages);
  Tensor sb = make_tensor(make_smem_ptr(pb), stages);
  auto load = make_tiled_copy(
    Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
    Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{},
                            Layout<Shape<_2, _2, _1>>{});
  auto mine = load.get_slice(threadIdx.x);
  auto own = mma.get_slice(threadIdx.x);
  Tensor from_a = mine.partition_S(ga);
  Tensor from_b = mine.partition_S(gb);
  Tensor to_a = mine.partition_D(sa);
  Tensor to_b = mine.partition_D(sb);
  Tensor rc = own.partition_fragment_C(gc);
  clear(rc);
  int steps = size<2>(ga);
  copy(load, from_a(_, _, _, 0), to_a(_, _, _, 0));
  copy(load, from_b(_, _, _, 0), to_b(_, _, _, 0));
  cp_async_fence();
  CUTE_NO_UNROLL
  for (int s = 0; s < steps; s++) {
    if (s + 1 < steps) {
      copy(load, from_a(_, _, _, s + 1), to_a(_, _, _, (s + 1) % 2));
      copy(load, from_b(_, _, _, s + 1), to_b(_, _, _, (s + 1) % 2));
    }
    cp_async_fence();
    cp_async_wait<1>();
    __syncthreads();
    Tensor ra = own.partition_fragment_A(sa(_, _, 0));
    Tensor rb = own.partition_fragment_B(sb(_, _, 0));
    copy(own.partition_A(sa(_, _, s % 2)), ra);
    copy(own.partition_B(sb(_, _, s % 2)), rb);
    gemm(mma, ra, rb, rc);
    __syncthreads();
  }
  copy(rc, own.partition_C(gc));
}
