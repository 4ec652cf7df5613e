// The binary interface of DLPack 1.3: descriptions of tensors that libraries
// exchange without a copy (https://dmlc.github.io/dlpack).
#ifndef CUTE_DLPACK_H
#define CUTE_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3 };
// maximum number of modes of a tensor that cutelua accepts
enum { DLPACK_RANK = 64 };

// Kinds of devices. CPU and CUDA_HOST (pinned) memory belongs to the host.
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

typedef struct DLDevice { int32_t kind, id; } DLDevice;

// Codes of element types: DLPack's DLDataTypeCode.
enum {
  DL_INT, DL_UINT, DL_FLOAT, DL_HANDLE, DL_BFLOAT, DL_COMPLEX, DL_BOOL,
  DL_E3M4, DL_E4M3, DL_E4M3B11FNUZ, DL_E4M3FN, DL_E4M3FNUZ, DL_E5M2,
  DL_E5M2FNUZ, DL_E8M0FNU, DL_E2M3FN, DL_E3M2FN, DL_E2M1FN
};

typedef struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;  // in elements; NULL: row-major without gaps
  uint64_t byte_offset;
} DLTensor;

// A tensor with its owner. The consumer calls `deleter` once, on any thread.
typedef struct DLManagedTensor {
  DLTensor t;
  void *owner;
  void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;

enum { DL_READ_ONLY = 1, DL_COPIED = 2, DL_PADDED = 4 };  // bits of `flags`

// A tensor with its owner, in the form that DLPack 1.0 introduced. If a
// consumer does not know the version `major`, it must not read fields after
// `deleter`.
typedef struct DLManagedTensorVersioned {
  struct { uint32_t major, minor; } version;
  void *owner;
  void (*deleter)(struct DLManagedTensorVersioned *);
  uint64_t flags;
  DLTensor t;
} DLManagedTensorVersioned;

#endif
// SPDX-License-Identifier: MIT
