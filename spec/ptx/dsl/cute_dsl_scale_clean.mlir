!memref_gmem_f32 = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{i64 div=4},1)">
!memref_smem_i8 = !cute.memref<i8, smem, align<16>, "4:1">
!memref_smem_i8_1 = !cute.memref<i8, smem, align<16>, "128:1">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @kernel_scale_0(%arg0: !memref_gmem_f32 loc("-":4:104), %arg1: !memref_gmem_f32, %arg2: f32, %arg3: i32, %arg4: !cute.layout<"(2,3):(3,1)">) attributes {cute.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %smem = cute.memref.alloca() {smem.partition_id = 1 : i32} : !memref_smem_i8 loc(#loc7)
      %smem_1 = cute.memref.alloca() {smem.partition_id = 1 : i32} : !memref_smem_i8_1
      return loc(#loc19)
    } loc(#loc2)
  } loc(#loc1)
  func.func @scale(%arg0: !memref_gmem_f32 loc("-":45:95), %arg1: !memref_gmem_f32, %arg2: f32, %stream: !cuda.stream) -> i32 attributes {llvm.emit_c_interface} {
    %c0_i32 = arith.constant 0 : i32 loc(#loc24)
    %c1_i32 = arith.constant 1 : i32
    %c2_i32 = arith.constant 2 : i32
    %c32_i32 = arith.constant 32 : i32
    %c1000_i64 = arith.constant 1000 : i64
    %sz = cute.size(%arg0) : (!memref_gmem_f32) -> !cute.int_tuple<"?">
    %e0 = cute.get_leaves(%sz) : !cute.int_tuple<"?">
    %0 = cute.get_scalars(%e0) : !cute.int_tuple<"?">
    %int_tuple = cute.make_int_tuple(%e0) : (!cute.int_tuple<"?">) -> !cute.int_tuple<"?">
    %tile = cute.make_tile() : () -> !cute.tile<"64:1">
    %shp = cute.ceil_div(%int_tuple, %tile) : !cute.int_tuple<"?">, !cute.tile<"64:1">
    %e0_1 = cute.get_leaves(%shp) : !cute.int_tuple<"?">
    %1 = cute.get_scalars(%e0_1) : !cute.int_tuple<"?">
    %2 = arith.muli %1, %c2_i32 : i32
    %3 = cute.kernel_smem_size @kernels::@kernel_scale_0 : i64
    %4 = arith.cmpi sgt, %3, %c1000_i64 : i64
    scf.if %4 {
      cute.print("too large: {} bytes", %3) : i64
    } loc(#loc39)
    %lay = cute.static : !cute.layout<"(2,3):(3,1)">
    %5 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c32_i32, %c1_i32, %c1_i32), dynamicSmemBytes = %3, gridDim = (%2, %c1_i32, %c1_i32), stream = %stream) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    cuda.launch_cfg.programmatic_stream_serialization_allowed[%5] %c0_i32 : !cuda.launch_cfg<max_attrs = 17>, i32
    cuda.launch_cfg.cluster_dim[%5] (%c2_i32, %c1_i32, %c1_i32) : !cuda.launch_cfg<max_attrs = 17>, i32, i32, i32
    %6 = cuda.launch_ex @kernels::@kernel_scale_0<%5> (%arg0, %arg1, %arg2, %0, %lay) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!memref_gmem_f32, !memref_gmem_f32, f32, i32) -> !cuda.result
    return %c0_i32 : i32
  } loc(#loc20)
} loc(#loc)
#loc = loc("-":2:1)
