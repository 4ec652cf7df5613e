// params.c: reads of an entry's parameter bytes as values of the IR.
#include <string.h>

#include "ptx/inside.h"

// Returns the parameter or structure field that contains the `bytes` bytes from
// `at` on and that the launch passed as a value; or NULL.
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
  uint32_t inside = at % 8;  // Pointers are aligned to 8 bytes.
  int32_t pointer = ptx_bound_pointer(b, at - inside);
  if (pointer >= 0 && b->object[pointer] && inside + (uint32_t)bytes <= 8) {
    Ref v = ir_emit(b->cx, b->fn, (Ins){.op = OP_ADDRESS, .type = DT_I64,
                                        .a = {b->object[pointer]}});
    v = op2(o, OP_SHR, as(o, DT_U64, v), number(o, DT_U32, 8 * inside));
    return to(o, want, v);
  }
  // The bytes may be in two fields, so read two halves and combine them.
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

// Reports whether the launch passed all n bytes of the parameters from byte
// `at` on.
static bool all_passed(const PtxBuild *b, uint32_t at, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) if (!covering(b, at + k, 1)) return false;
  return true;
}

// Translates .fetch to, from, an instruction that calls.c creates. Copies the
// bytes of parameter `from` that the launch passed to local variable `to`.
void row_fetch(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  int64_t to_at = b->local_at[op_arg(o, 0)->value];
  const PtxVar *v = &b->m->vars.p[op_arg(o, 1)->value];
  uint32_t size = (uint32_t)ptx_size(v);
  bool bytes = dtype_bits(ir_memof(b->fn, b->local)->type) == 8;
  for (uint32_t at = 0; at < size; at++) {
    bool word = at % 4 == 0 && at + 4 <= size;
    Ref off = number(o, DT_I32, to_at + at);
    int32_t pointer = ptx_bound_pointer(b, v->offset + at);
    if (pointer >= 0 && b->object[pointer]) {
      local_store(o, off, op_param(o, v->offset + at, 64));
      at += 7;
    } else if (word && all_passed(b, v->offset + at, 4)) {
      local_store(o, off, op_param(o, v->offset + at, 32));
      at += 3;
    } else if (bytes && all_passed(b, v->offset + at, 1)) {
      local_store(o, off, op_param(o, v->offset + at, 8));
    }
  }
}
// SPDX-License-Identifier: MIT
