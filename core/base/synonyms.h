// Names of options, fields and methods in CUDA C, Triton, PyTorch, NumPy and
// the Python DSL, with cutelua's name for the same object.
//
// SYN("foreign names", "own name"): for each of the foreign names, nearest.c
// suggests cutelua's own name, if it is among the candidates.
#ifndef BASE_SYNONYMS_H
#define BASE_SYNONYMS_H

#define SYNONYMS(SYN) \
  /* options of launches and kernels */ \
  SYN("grid_dim gridDim grid_dims grid_size gridSize num_blocks n_blocks " \
      "numBlocks nblocks blocks", "grid") \
  SYN("block_dim blockDim block_dims block_size blockSize num_threads " \
      "n_threads numThreads nthreads threads_per_block threadsPerBlock", \
      "block") \
  SYN("cluster_dim cluster_dims clusterDim cluster_shape cluster_size " \
      "num_ctas", "cluster") \
  SYN("use_pdl launch_pdl programmatic programmatic_dependent_launch", "pdl") \
  SYN("is_cooperative launch_cooperative", "cooperative") \
  SYN("fast_math use_fast_math enable_fast_math", "fastmath") \
  SYN("fma enable_fp_fusion contract", "fmad") \
  SYN("gpu_arch target sm compute_capability", "arch") \
  SYN("queue cuda_stream", "stream") \
  SYN("dev place location", "device") \
  SYN("min_blocks_per_mp min_blocks_per_sm minBlocksPerMultiprocessor " \
      "min_ctas", "min_blocks") \
  /* options of loops, copies and pipelines */ \
  SYN("unroll_factor unroll_full loop_unroll_factor", "unroll") \
  SYN("predicate mask", "pred") \
  SYN("stages n_stages pipeline_stages depth", "num_stages") \
  SYN("mbar mbar_ptr barrier bar tma_barrier", "tma_bar_ptr") \
  SYN("multicast_mask", "mcast_mask") \
  SYN("num_bits bits bits_per_copy", "num_bits_per_copy") \
  /* options of operations and tensors */ \
  SYN("type element_type data_type out_dtype", "dtype") \
  SYN("axis dim", "mode") \
  SYN("dims axes dim mode", "axis") \
  SYN("axis mode", "dim") \
  SYN("output dst result", "out") \
  SYN("is_causal", "causal") \
  SYN("sm_scale softmax_scale", "scale") \
  SYN("epsilon", "eps") \
  /* operations of reductions; architectures */ \
  SYN("add plus", "sum") \
  SYN("avg average", "mean") \
  SYN("maximum", "max") \
  SYN("minimum", "min") \
  SYN("multiply mul product", "prod") \
  SYN("90 90a sm90 sm90a hopper h100 h200 H100 H200", "sm_90a") \
  SYN("80 sm80 ampere a100 A100", "sm_80") \
  SYN("89 sm89 ada", "sm_89") \
  /* fields and methods */ \
  SYN("astype cast type convert", "to") \
  SYN("numel nelement", "size") \
  SYN("strides", "stride") \
  SYN("ptr data data_ptr pointer", "iterator") \
  SYN("sync synchronise wait", "synchronize") \
  SYN("get_thread_slice get_thr_slice thread_slice", "get_slice") \
  /* thread indices and barriers */ \
  SYN("threadIdx thread_id tid", "thread_idx") \
  SYN("blockIdx block_id bid program_id", "block_idx") \
  SYN("blockDim", "block_dim") \
  SYN("gridDim num_programs", "grid_dim") \
  SYN("laneId lane_id laneid", "lane_idx") \
  SYN("warpId warp_id warpid", "warp_idx") \
  SYN("syncthreads __syncthreads sync_block debug_barrier", "sync_threads") \
  SYN("syncwarp __syncwarp", "sync_warp") \
  SYN("atomicAdd red_add", "atomic_add") \
  SYN("atomicMax", "atomic_max") \
  SYN("atomicMin", "atomic_min") \
  SYN("atomicCAS", "atomic_cas") \
  SYN("atomicExch atomic_xchg", "atomic_exch") \
  SYN("cdiv div_up divup ceildiv", "ceil_div")

#endif
// SPDX-License-Identifier: MIT
