// Computes the instruction descriptors of tcgen05.mma (CuTe's UMMA), the
// positions of sparse metadata in tensor memory, and the opcodes of tensor
// memory copies.
#include "atoms/atom.h"

#include <stdio.h>
#include <string.h>

// Returns the code of an element type of A or B in an instruction descriptor.
static uint32_t format(const AtomMma *r, DType t) {
  bool mx4 = r->flags & AMF_SCALE && !(r->flags & AMF_BYTE);
  switch ((int)t) {
    case DT_BF16: case DT_I8: case DT_E5M2: return 1;
    case DT_TF32: return 2;
    case DT_E2M3: return 3;
    case DT_E3M2: return 4;
    case DT_E2M1: return mx4 ? 1 : 5;
    default: return 0;  // types f16, u8 and e4m3
  }
}

uint32_t atom_umma_descriptor(const AtomMma *r) {
  uint32_t sum = r->d_type == DT_F16 ? 0 : r->d_type == DT_I32 ? 2 : 1;
  // Bits 4-5 are the type of the accumulators. With scale factors, the
  // accumulators are always f32, and these bits are the field of B's scale
  // factors (UMMA_SFB_BIT).
  uint32_t own = r->flags & AMF_SCALE ? (uint32_t)(r->sf_type == DT_UE8M0) << 23
                                      : sum << 4;
  uint32_t sparse = r->flags & AMF_SPARSE ? 4 : 0;
  uint32_t saturate = r->flags & AMF_SAT ? 8 : 0;
  return own | sparse | saturate | format(r, r->a_type) << 7 |
         format(r, r->b_type) << 10 | (uint32_t)r->mn_major[0] << 15 |
         (uint32_t)r->mn_major[1] << 16 | (uint32_t)r->n / 8 << 17 |
         (uint32_t)r->m / 16 << 24;
}

int atom_umma_metadata_at(const AtomMma *r, int row, int w) {
  if (atom_umma_metadata(r) > 1) return row * 4 + w;
  // A 32-bit column of tensor memory contains one metadata value of row i and
  // one of row i + 8. Lanes l and l + 8 contain the two values of a row.
  return (row / 16 * 16 + w * 8 + row % 8) * 4 + row / 8 % 2;
}

bool atom_umma_metadata_valid(const AtomMma *r, unsigned nibble) {
  enum { TF32 = 0x4010, OTHERS = 0x7350 };  // bit n: the value n is valid
  return (r->group == 2 ? TF32 : OTHERS) >> nibble & 1;
}

void atom_tmem_text(const AtomCopy *r, char text[TMEM_TEXT]) {
  int each = strstr(r->ptx, "x256b") ? 4 : strstr(r->ptx, "x128b") ? 2 : 1;
  const char *how = !(r->flags & CPF_PACK)    ? ""
                    : r->op == CO_TMEM_LOAD ? ".pack::16b"
                                            : ".unpack::16b";
  if (r->op == CO_TMEM_CP) snprintf(text, TMEM_TEXT, "%s", r->ptx);
  else snprintf(text, TMEM_TEXT, "%s.x%d%s.b32", r->ptx, r->num / each, how);
}
// SPDX-License-Identifier: MIT
