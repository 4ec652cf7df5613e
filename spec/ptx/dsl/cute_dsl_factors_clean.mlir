!memref_gmem_f8E4M3FN = !cute.memref<f8E4M3FN, gmem, align<16>, "(((8,4),?),((16,4),?)):(((16,4),?{div=128}),((0,1),128))">
!memref_gmem_f32_1 = !cute.memref<f32, gmem, "34:1">
!memref_smem_f8E4M3FN = !cute.memref<f8E4M3FN, smem, align<128>, "128:1">
!memref_smem_i64 = !cute.memref<i64, smem, align<8>, "1:1">
!mma = !cute.tiled_mma<!cute_nvgpu.sm100.mma_bs<128x8x64>>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @box(%arg0: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, tma_gbasis = <"((2,4,8),1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0)">, tma_format = U16> {cute_nvgpu.grid_constant}, %arg1: !cute.coord_tensor<"(0,0,0)", "(((8,4),?),((16,4),?)):(((8@0,2@0),1@2),((0,1/2@0),1@1))">, %arg2: !memref_gmem_f32_1, %arg3: !mma) attributes {cute.kernel} {
      %smem = cute.memref.alloca() {smem.partition_id = 1 : i32} : !memref_smem_f8E4M3FN
      %smem_1 = cute.memref.alloca() {smem.partition_id = 1 : i32} : !memref_smem_i64
      return
    }
  }
  func.func @factors(%arg0: !cute.ptr<i8, gmem, align<16>>, %arg1: !memref_gmem_f32_1, %arg2: i32, %arg3: i32) -> i32 {
    %c1_i32 = arith.constant 1 : i32
    %c32_i32 = arith.constant 32 : i32
    %c0_i32 = arith.constant 0 : i32
    %false = arith.constant false
    %iv = cute.assume(%c0_i32) : (i32) -> !cute.i32
    %0 = cute.inttoptr(%iv) : !cute.i32 to !cute.ptr<f8E4M3FN, tmem>
    %atom = cute.make_atom(%false, %0) : (i1, !cute.ptr<f8E4M3FN, tmem>) -> !cute_nvgpu.sm100.mma_bs<128x8x64>
    %1 = cute.make_tiled_mma(%atom) : !mma
    %shape = cute.make_shape() : () -> !cute.shape<"((8,4),(16,4))">
    %stride = cute.make_stride() : () -> !cute.stride<"((16,4),(0,1))">
    %lay = cute.make_layout(%shape, %stride) : !cute.layout<"((8,4),(16,4)):((16,4),(0,1))">
    %2 = cute.make_shape(%arg2, %arg3) : (i32, i32) -> !cute.shape<"(?,?)">
    %int_tuple = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1)">
    %tile_to_shape = cute.tile_to_shape(%lay, %2, %int_tuple) : (!cute.layout<"((8,4),(16,4)):((16,4),(0,1))">, !cute.shape<"(?,?)">, !cute.int_tuple<"(2,1)">) -> !cute.layout<"(((8,4),?),((16,4),?)):(((16,4),?{div=128}),((0,1),128))">
    %iter = cute.recast_iter(%arg0) : !cute.ptr<i8, gmem, align<16>> to !cute.ptr<f8E4M3FN, gmem, align<16>>
    %view = cute.make_view(%iter, %tile_to_shape) : !memref_gmem_f8E4M3FN
    %non_exec_atom, %tma_tensor = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view, %lay, %lay) <{kind = <sm_90> num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E4M3FN, !cute.layout<"((8,4),(16,4)):((16,4),(0,1))">, !cute.layout<"((8,4),(16,4)):((1@0@0,1@1@0),(1@0@1,1@1@1))">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, tma_gbasis = <"((2,4,8),1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0)", "(((8,4),?),((16,4),?)):(((8@0,2@0),1@2),((0,1/2@0),1@1))">)
    %3 = cute.kernel_smem_size @kernels::@box : i64
    %5 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c32_i32, %c1_i32, %c1_i32), dynamicSmemBytes = %3, gridDim = (%c1_i32, %c1_i32, %c1_i32), stream = %3) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    %6 = cuda.launch_ex @kernels::@box<%5> (%non_exec_atom, %tma_tensor, %arg1, %1) : !cuda.launch_cfg<max_attrs = 17>, (i32) -> !cuda.result
    return %c1_i32 : i32
  }
}
