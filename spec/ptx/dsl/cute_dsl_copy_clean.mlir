!memref_gmem_f32 = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{i64 div=4},1)">
!memref_gmem_f32_1 = !cute.memref<f32, gmem, "34:1">
!memref_smem_f32 = !cute.memref<f32, smem, align<128>, "(4,8):(8,1)">
!memref_smem_i64 = !cute.memref<i64, smem, align<8>, "1:1">
!mma = !cute.tiled_mma<!cute_nvgpu.sm90.mma<64x8x16>>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @box(%arg0: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f32, tma_gbasis = <"(8,4):(1@1,1@0)">, tma_format = F32_RN> {cute_nvgpu.grid_constant}, %arg1: !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@1,1@0)">, %arg2: !memref_gmem_f32_1, %arg3: !mma) attributes {cute.kernel} {
      %smem = cute.memref.alloca() {smem.partition_id = 1 : i32} : !memref_smem_f32
      %smem_1 = cute.memref.alloca() {smem.partition_id = 1 : i32} : !memref_smem_i64
      return
    }
  }
  func.func @copy(%arg0: !memref_gmem_f32, %arg1: !memref_gmem_f32_1) -> i32 {
    %c1_i32 = arith.constant 1 : i32
    %c32_i32 = arith.constant 32 : i32
    %false = arith.constant false
    %atom = cute.make_atom(%false) : (i1) -> !cute_nvgpu.sm90.mma<64x8x16>
    %1 = cute.make_tiled_mma(%atom) : !mma
    %lay = cute.get_layout(%arg0) : !memref_gmem_f32
    %2 = cute.get_shape(%lay) : (!cute.layout<"(?,?{div=4}):(?{i64 div=4},1)">) -> !cute.shape<"(?,?{div=4})">
    %slice = cute.slice(%2, %2) : !cute.composed_layout<"S<0,4,3> o 0 o (4,8):(8,1)">, !cute.coord<"(_,_)">
    %non_exec_atom, %tma_tensor = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%arg0, %slice, %lay) <{kind = <sm_90> num_multicast = 1}> : (!memref_gmem_f32, !cute.composed_layout<"S<0,4,3> o 0 o (4,8):(8,1)">, !cute.layout<"(4,8):(1@0,1@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f32, tma_gbasis = <"(8,4):(1@1,1@0)">, tma_format = F32_RN>, !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@1,1@0)">)
    %3 = cute.kernel_smem_size @kernels::@box : i64
    %5 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c32_i32, %c1_i32, %c1_i32), dynamicSmemBytes = %3, gridDim = (%c1_i32, %c1_i32, %c1_i32), stream = %3) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    %6 = cuda.launch_ex @kernels::@box<%5> (%non_exec_atom, %tma_tensor, %arg1, %1) : !cuda.launch_cfg<max_attrs = 17>, (i32) -> !cuda.result
    return %c1_i32 : i32
  }
}
