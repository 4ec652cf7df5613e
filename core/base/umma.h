// The kinds of tcgen05.mma, the tensor-core instruction of Blackwell's
// datacenter GPUs, which CuTe calls UMMA.
#ifndef CUTE_UMMA_H
#define CUTE_UMMA_H

#include "base/base.h"

// UM(ID, "name of .kind in PTX", k, chunk). A dense instruction multiplies k
// elements along K, a sparse one 2 k. A sparse A stores half of each chunk of
// `chunk` elements along K. Therefore A stores k elements of a row in both
// cases.
#define UMMA_KINDS(UM) \
  UM(TF32, "tf32", 8, 2) \
  UM(F16, "f16", 16, 4) \
  UM(F8F6F4, "f8f6f4", 32, 4) \
  UM(I8, "i8", 32, 4) \
  UM(MXF8F6F4, "mxf8f6f4", 32, 4) \
  UM(MXF4, "mxf4", 64, 8) \
  UM(MXF4NVF4, "mxf4nvf4", 64, 8)

typedef enum UmmaKind {
#define UM(id, name, k, chunk) UMMA_##id,
  UMMA_KINDS(UM)
#undef UM
  UMMA_KIND_COUNT
} UmmaKind;

typedef struct UmmaKindRow {
  const char *name;
  uint8_t k, chunk;
} UmmaKindRow;

static inline const UmmaKindRow *umma_kind(UmmaKind kind) {
  static const UmmaKindRow rows[] = {
#define UM(id, name, k, chunk) {name, k, chunk},
    UMMA_KINDS(UM)
#undef UM
  };
  return &rows[kind];
}

// Returns the number of 32-bit metadata words of a row of a sparse A.
static inline int umma_metadata_words(UmmaKind kind) {
  const UmmaKindRow *r = umma_kind(kind);
  return 2 * r->k / r->chunk / 8;
}

#endif
// SPDX-License-Identifier: MIT
