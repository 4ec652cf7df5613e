// params.c: reads of an entry's parameter bytes as values of the IR.
#include <string.h>

#include "ptx/inside.h"

// Returns the parameter or structure field that was passed as a value and
// contains these bytes, or NULL.
static const PtxBound *covering(const PtxBuild *b, uint32_t at, int bytes) {
  for (size_t k = 0; k < b->nbound; k++) {
    const PtxBound *p = &b->bound[k];
    uint32_t size = p->bytes ? p->size
      : p->value ? (uint32_t)dtype_bits(ir_type(b->fn, p->value)) / 8 : 0;
    if (at >= p->offset && at + (uint32_t)bytes <= p->offset + size) return p;
  }
  return NULL;
}

static uint64_t constant(const PtxBound *p, uint32_t at, int bytes) {
  uint64_t v = 0;
  memcpy(&v, p->bytes + (at - p->offset), (size_t)bytes);
  return v;
}

Ref op_param(PtxOp *o, uint32_t at, int bits) {
  PtxBuild *b = o->b;
  int bytes = bits / 8;
  DType want = unsigned_of(bits);
  const PtxBound *p = covering(b, at, bytes);
  if (p && p->bytes) return number(o, want, (int64_t)constant(p, at, bytes));
  if (p) {
    DType own = unsigned_of(dtype_bits(ir_type(b->fn, p->value)));
    Ref v = as(o, own, p->value);
    if (own == want) return v;
    v = op2(o, OP_SHR, v, number(o, DT_U32, 8 * (int64_t)(at - p->offset)));
    return to(o, want, v);
  }
  // The bytes may span two fields: read and combine two halves.
  if (bytes >= 2) {
    int half = bits / 2;
    bool here = covering(b, at, 1) && covering(b, at + (uint32_t)half / 8, 1);
    if (here) {
      Ref low = to(o, want, op_param(o, at, half));
      Ref high = to(o, want, op_param(o, at + (uint32_t)half / 8, half));
      high = op2(o, OP_SHL, high, number(o, DT_U32, half));
      return op2(o, OP_OR, low, high);
    }
  }
  ptx_fail(b, "nothing was passed for byte %u of the parameters", (unsigned)at);
}
// SPDX-License-Identifier: MIT
