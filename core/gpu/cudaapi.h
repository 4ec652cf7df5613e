// The CUDA declarations that this project needs, without the toolkit's headers:
// types, constants, and a function table for each library.
//
// If CUTE_TOOLKIT is defined, the types come from the toolkit's headers, which
// must be included before. Assertions at the end of this file then compare its
// tables and struct layouts with those headers. A spec (test) compiles this
// file with CUTE_TOOLKIT.
#ifndef CUTE_CUDAAPI_H
#define CUTE_CUDAAPI_H

#include <stddef.h>
#include <stdint.h>

#ifndef CUTE_TOOLKIT
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef int CUdevice_attribute, CUfunction_attribute, CUstreamCaptureMode,
  CUstreamCaptureStatus, CUjit_option;
typedef struct CUgraphExecUpdateResultInfo {
  int result;
  CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;
typedef unsigned cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct { _Alignas(64) cuuint64_t opaque[16]; } CUtensorMap;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle,
  CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef struct CUlaunchAttribute {
  int id, pad;
  union {
    char pad[64];
    struct { unsigned x, y, z; } clusterDim;
    int programmaticStreamSerializationAllowed;
    int cooperative;
  } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

typedef int cublasStatus_t, cublasOperation_t, cublasComputeType_t,
  cublasGemmAlgo_t, cudaDataType, cudaDataType_t;
typedef CUstream cudaStream_t;
typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct LtDesc *cublasLtMatmulDesc_t;
typedef struct LtLayout *cublasLtMatrixLayout_t;
typedef struct LtPref *cublasLtMatmulPreference_t;
typedef int cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
  cublasLtMatmulPreferenceAttributes_t, cublasLtMatmulAlgoConfigAttributes_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

// K(name, value)
#define CUDA_CONSTANTS(K) \
  K(CUDA_SUCCESS, 0) \
  K(CUDA_ERROR_OUT_OF_MEMORY, 2) \
  K(CUDA_ERROR_NO_DEVICE, 100) \
  K(CUDA_ERROR_ECC_UNCORRECTABLE, 214) \
  K(CUDA_ERROR_NOT_READY, 600) \
  K(CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
  K(CUDA_ERROR_LAUNCH_TIMEOUT, 702) \
  K(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709) \
  K(CUDA_ERROR_ASSERT, 710) \
  K(CUDA_ERROR_HARDWARE_STACK_ERROR, 714) \
  K(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715) \
  K(CUDA_ERROR_MISALIGNED_ADDRESS, 716) \
  K(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717) \
  K(CUDA_ERROR_INVALID_PC, 718) \
  K(CUDA_ERROR_LAUNCH_FAILED, 719) \
  K(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720) \
  K(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912) \
  K(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13) \
  K(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
  K(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38) \
  K(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
  K(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
  K(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
  K(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
  K(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
  K(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2) \
  K(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) \
  K(CU_FUNC_ATTRIBUTE_NUM_REGS, 4) \
  K(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6) \
  K(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
  K(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14) \
  K(CU_JIT_ERROR_LOG_BUFFER, 5) \
  K(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6) \
  K(CU_JIT_OPTIMIZATION_LEVEL, 7) \
  K(CU_STREAM_NON_BLOCKING, 1) \
  K(CU_EVENT_DISABLE_TIMING, 2) \
  K(CU_MEMHOSTREGISTER_PORTABLE, 1) \
  K(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
  K(CU_STREAM_CAPTURE_STATUS_NONE, 0) \
  K(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1) \
  K(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2) \
  K(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4) \
  K(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6) \
  K(NVRTC_SUCCESS, 0) \
  K(NVRTC_ERROR_INVALID_OPTION, 5) \
  K(NVRTC_ERROR_COMPILATION, 6) \
  K(CUBLAS_STATUS_SUCCESS, 0) \
  K(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
  K(CUBLAS_OP_N, 0) \
  K(CUBLAS_OP_T, 1) \
  K(CUBLAS_GEMM_DEFAULT, -1) \
  K(CUBLAS_COMPUTE_32F, 68) \
  K(CUBLAS_COMPUTE_64F, 70) \
  K(CUBLAS_COMPUTE_32I, 72) \
  K(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
  K(CUDA_R_32F, 0) \
  K(CUDA_R_64F, 1) \
  K(CUDA_R_16F, 2) \
  K(CUDA_R_8I, 3) \
  K(CUDA_R_32I, 10) \
  K(CUDA_R_16BF, 14) \
  K(CUDA_R_8F_E4M3, 28) \
  K(CUDA_R_8F_E5M2, 29) \
  K(CUBLASLT_MATMUL_DESC_TRANSA, 3) \
  K(CUBLASLT_MATMUL_DESC_TRANSB, 4) \
  K(CUBLASLT_MATMUL_DESC_EPILOGUE, 7) \
  K(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8) \
  K(CUBLASLT_EPILOGUE_DEFAULT, 1) \
  K(CUBLASLT_EPILOGUE_RELU, 2) \
  K(CUBLASLT_EPILOGUE_BIAS, 4) \
  K(CUBLASLT_EPILOGUE_GELU, 32) \
  K(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17) \
  K(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18) \
  K(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25) \
  K(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5) \
  K(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
  K(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
  K(CUBLASLT_ALGO_CONFIG_ID, 0) \
  K(CUBLASLT_ALGO_CONFIG_TILE_ID, 1) \
  K(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2) \
  K(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)

// F(result, name, arguments) is a function that every supported library has.
// G(result, name, arguments) is a function that only newer libraries have: its
// pointer may be NULL.
#define CUDA_FUNCTIONS(F, G) \
  F(CUresult, cuInit, (unsigned)) \
  F(CUresult, cuDriverGetVersion, (int *)) \
  F(CUresult, cuDeviceGetCount, (int *)) \
  F(CUresult, cuDeviceGet, (CUdevice *, int)) \
  F(CUresult, cuDeviceGetName, (char *, int, CUdevice)) \
  F(CUresult, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice)) \
  F(CUresult, cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
  F(CUresult, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
  F(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice)) \
  F(CUresult, cuDevicePrimaryCtxReset_v2, (CUdevice)) \
  F(CUresult, cuCtxSetCurrent, (CUcontext)) \
  F(CUresult, cuCtxGetCurrent, (CUcontext *)) \
  F(CUresult, cuCtxSynchronize, (void)) \
  F(CUresult, cuGetErrorName, (CUresult, const char **)) \
  F(CUresult, cuGetErrorString, (CUresult, const char **)) \
  F(CUresult, cuMemGetInfo_v2, (size_t *, size_t *)) \
  F(CUresult, cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
  F(CUresult, cuMemFree_v2, (CUdeviceptr)) \
  F(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
  F(CUresult, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
  F(CUresult, cuMemcpyHtoDAsync_v2, \
    (CUdeviceptr, const void *, size_t, CUstream)) \
  F(CUresult, cuMemcpyDtoHAsync_v2, \
    (void *, CUdeviceptr, size_t, CUstream)) \
  F(CUresult, cuMemcpyPeerAsync, \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
  F(CUresult, cuMemHostRegister_v2, (void *, size_t, unsigned)) \
  F(CUresult, cuMemHostUnregister, (void *)) \
  F(CUresult, cuMemcpyDtoDAsync_v2, \
    (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
  F(CUresult, cuMemsetD8Async, \
    (CUdeviceptr, unsigned char, size_t, CUstream)) \
  F(CUresult, cuMemsetD16Async, \
    (CUdeviceptr, unsigned short, size_t, CUstream)) \
  F(CUresult, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream)) \
  F(CUresult, cuMemsetD2D32Async, \
    (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream)) \
  F(CUresult, cuStreamCreate, (CUstream *, unsigned)) \
  F(CUresult, cuStreamDestroy_v2, (CUstream)) \
  F(CUresult, cuStreamSynchronize, (CUstream)) \
  F(CUresult, cuStreamWaitEvent, (CUstream, CUevent, unsigned)) \
  F(CUresult, cuStreamQuery, (CUstream)) \
  F(CUresult, cuEventCreate, (CUevent *, unsigned)) \
  F(CUresult, cuEventDestroy_v2, (CUevent)) \
  F(CUresult, cuEventRecord, (CUevent, CUstream)) \
  F(CUresult, cuEventSynchronize, (CUevent)) \
  F(CUresult, cuEventQuery, (CUevent)) \
  F(CUresult, cuEventElapsedTime, (float *, CUevent, CUevent)) \
  F(CUresult, cuModuleLoadData, (CUmodule *, const void *)) \
  F(CUresult, cuModuleUnload, (CUmodule)) \
  F(CUresult, cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
  F(CUresult, cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction)) \
  F(CUresult, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int)) \
  F(CUresult, cuLaunchKernel, \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     unsigned, CUstream, void **, void **)) \
  G(CUresult, cuModuleLoadDataEx, \
    (CUmodule *, const void *, unsigned, CUjit_option *, void **)) \
  G(CUresult, cuLaunchKernelEx, \
    (const CUlaunchConfig *, CUfunction, void **, void **)) \
  G(CUresult, cuOccupancyMaxActiveClusters, \
    (int *, CUfunction, const CUlaunchConfig *)) \
  G(CUresult, cuModuleGetGlobal_v2, \
    (CUdeviceptr *, size_t *, CUmodule, const char *)) \
  G(CUresult, cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *)) \
  G(CUresult, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) \
  G(CUresult, cuStreamEndCapture, (CUstream, CUgraph *)) \
  G(CUresult, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *)) \
  G(CUresult, cuGraphInstantiateWithFlags, \
    (CUgraphExec *, CUgraph, unsigned long long)) \
  G(CUresult, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *)) \
  G(CUresult, cuGraphLaunch, (CUgraphExec, CUstream)) \
  G(CUresult, cuGraphDestroy, (CUgraph)) \
  G(CUresult, cuGraphExecDestroy, (CUgraphExec)) \
  G(CUresult, cuGraphExecUpdate_v2, \
    (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *)) \
  G(CUresult, cuTensorMapEncodeTiled, \
    (CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, \
     const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, \
     const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, \
     CUtensorMapL2promotion, CUtensorMapFloatOOBfill))

#define NVRTC_FUNCTIONS(F, G) \
  F(nvrtcResult, nvrtcVersion, (int *, int *)) \
  F(nvrtcResult, nvrtcCreateProgram, \
    (nvrtcProgram *, const char *, const char *, int, const char *const *, \
     const char *const *)) \
  F(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *)) \
  F(nvrtcResult, nvrtcCompileProgram, \
    (nvrtcProgram, int, const char *const *)) \
  F(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *)) \
  F(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram, char *)) \
  F(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram, size_t *)) \
  F(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram, char *)) \
  F(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram, size_t *)) \
  F(nvrtcResult, nvrtcGetPTX, (nvrtcProgram, char *)) \
  F(const char *, nvrtcGetErrorString, (nvrtcResult)) \
  G(nvrtcResult, nvrtcGetNumSupportedArchs, (int *)) \
  G(nvrtcResult, nvrtcGetSupportedArchs, (int *))

#define CUBLAS_FUNCTIONS(F, G) \
  F(cublasStatus_t, cublasCreate_v2, (cublasHandle_t *)) \
  F(cublasStatus_t, cublasDestroy_v2, (cublasHandle_t)) \
  F(cublasStatus_t, cublasGetVersion_v2, (cublasHandle_t, int *)) \
  F(cublasStatus_t, cublasSetStream_v2, (cublasHandle_t, cudaStream_t)) \
  F(cublasStatus_t, cublasGemmEx, \
    (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, \
     const void *, const void *, cudaDataType, int, const void *, \
     cudaDataType, int, const void *, void *, cudaDataType, int, \
     cublasComputeType_t, cublasGemmAlgo_t)) \
  F(cublasStatus_t, cublasGemmStridedBatchedEx, \
    (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, \
     const void *, const void *, cudaDataType, int, long long, const void *, \
     cudaDataType, int, long long, const void *, void *, cudaDataType, int, \
     long long, int, cublasComputeType_t, cublasGemmAlgo_t)) \
  G(const char *, cublasGetStatusName, (cublasStatus_t))

#define CUBLASLT_FUNCTIONS(F, G) \
  F(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t *)) \
  F(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t)) \
  F(cublasStatus_t, cublasLtMatmulDescCreate, \
    (cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType_t)) \
  F(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t)) \
  F(cublasStatus_t, cublasLtMatmulDescSetAttribute, \
    (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *, \
     size_t)) \
  F(cublasStatus_t, cublasLtMatrixLayoutCreate, \
    (cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t, int64_t)) \
  F(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t)) \
  F(cublasStatus_t, cublasLtMatrixLayoutSetAttribute, \
    (cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *, \
     size_t)) \
  F(cublasStatus_t, cublasLtMatmulPreferenceCreate, \
    (cublasLtMatmulPreference_t *)) \
  F(cublasStatus_t, cublasLtMatmulPreferenceDestroy, \
    (cublasLtMatmulPreference_t)) \
  F(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, \
    (cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, \
     const void *, size_t)) \
  F(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic, \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, \
     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, \
     cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t *, \
     int *)) \
  F(cublasStatus_t, cublasLtMatmulAlgoConfigGetAttribute, \
    (const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoConfigAttributes_t, \
     void *, size_t, size_t *)) \
  F(cublasStatus_t, cublasLtMatmul, \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, \
     cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t, \
     const void *, const void *, cublasLtMatrixLayout_t, void *, \
     cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, \
     cudaStream_t))

#ifndef CUTE_TOOLKIT

enum {
#define K(name, value) name = value,
  CUDA_CONSTANTS(K)
#undef K
};

#define F(result, name, args) result(*name) args;
typedef struct CudaApi { CUDA_FUNCTIONS(F, F) } CudaApi;
typedef struct NvrtcApi { NVRTC_FUNCTIONS(F, F) } NvrtcApi;
typedef struct CublasApi { CUBLAS_FUNCTIONS(F, F) } CublasApi;
typedef struct CublasLtApi { CUBLASLT_FUNCTIONS(F, F) } CublasLtApi;
#undef F

#else  // Assert that the declarations agree with the toolkit's headers.

#define K(name, value) _Static_assert((int)(name) == (value), #name);
#define F(result, name, args) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), \
    __typeof__(result(*) args)), #name);
CUDA_CONSTANTS(K)
CUDA_FUNCTIONS(F, F)
NVRTC_FUNCTIONS(F, F)
CUBLAS_FUNCTIONS(F, F)
CUBLASLT_FUNCTIONS(F, F)
#undef K
#undef F
_Static_assert(sizeof(CUresult) == 4 && sizeof(CUdevice) == 4, "int");
_Static_assert(sizeof(CUdeviceptr) == 8, "CUdeviceptr");
_Static_assert(sizeof(CUtensorMap) == 128, "CUtensorMap");
_Static_assert(sizeof(CUtensorMapDataType) == 4, "CUtensorMapDataType");
_Static_assert(sizeof(CUdevice_attribute) == 4, "CUdevice_attribute");
_Static_assert(sizeof(CUfunction_attribute) == 4, "CUfunction_attribute");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");
_Static_assert(offsetof(CUlaunchAttribute, value) == 8, "value");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(offsetof(CUlaunchConfig, sharedMemBytes) == 24, "smem");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "hStream");
_Static_assert(offsetof(CUlaunchConfig, attrs) == 40, "attrs");
_Static_assert(offsetof(CUlaunchConfig, numAttrs) == 48, "numAttrs");
_Static_assert(sizeof(CUgraphExecUpdateResultInfo) == 24, "update");
_Static_assert(sizeof(nvrtcResult) == 4, "nvrtcResult");
_Static_assert(sizeof(cublasStatus_t) == 4, "cublasStatus_t");
_Static_assert(sizeof(cublasComputeType_t) == 4, "cublasComputeType_t");
_Static_assert(sizeof(cudaDataType) == 4, "cudaDataType");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "heuristic");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64,
               "workspaceSize");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72,
               "state");

#endif
#endif
// SPDX-License-Identifier: MIT
