// Raw pointers: accesses to memory at addresses that a kernel computes or
// loads. Each lane may have a different address. Such an instruction is decoded
// once for each memory object that it may access: the memory of each pointer
// argument, and memory whose address the script requested.
#include "decode/raw_pointer.h"

#include <string.h>

#include "decode/areas.h"
#include "decode/copies.h"
#include "ir/operands.h"

size_t raw_pointer_pieces(const SimProg *p) {
  return p->fn->arg.n + p->launch->nknown;
}

const LaunchArg *raw_pointer_piece(const SimProg *p, size_t k) {
  const Launch *l = p->launch;
  size_t n = p->fn->arg.n;
  const LaunchArg *a = k < n ? &l->arg[k] : &l->known[k - n];
  bool memory = k >= n || p->fn->arg.p[k].pointer;
  return memory && a->bytes ? a : NULL;
}

// ---- decoding ----

static bool is_copy(const SimIns *d) {
  return d->op == OP_COPY || d->op == OP_CPASYNC;
}

// Reports whether d changes, acquires or publishes a tensor map in memory.
static bool is_map(const SimIns *d) {
  return operand_has((Op)d->op, ROLE_TMAP) && d->op != OP_TMAPAT;
}

// Reports whether d is a bulk copy of a box.
static bool is_box(const SimIns *d) {
  return d->op == OP_TMALOAD || d->op == OP_TMASTORE;
}

// Finds the memory operands of d that may be in global memory. Writes these
// operands to s, and to `write` whether d writes each operand. Returns the
// number of operands.
static int sides_of(const SimIns *d, SimSide *s[2], bool write[2]) {
  if (is_map(d) || is_box(d)) {
    s[0] = is_box(d) ? &((SimBulk *)(uintptr_t)d->x)->place
                     : &((SimMapOp *)(uintptr_t)d->x)->dst;
    write[0] = is_map(d);
    return s[0]->mem != NULL;
  }
  if (is_copy(d)) {
    SimCopy *c = (SimCopy *)(uintptr_t)d->x;
    s[0] = &c->dst;
    s[1] = &c->src;
    write[0] = true;
    write[1] = false;
    return 2;
  }
  if (op_flag_kind((Op)d->op) != FLAGS_HINTS) return 0;
  s[0] = (SimSide *)(uintptr_t)d->x;
  write[0] = d->op != OP_LD;
  return 1;
}

// Returns a copy of instruction d whose memory operands can be changed without
// changing those of d.
static SimIns copy_of(Ctx *cx, const SimIns *d) {
  SimIns out = *d;
  size_t size = is_copy(d) ? sizeof(SimCopy) : is_map(d) ? sizeof(SimMapOp)
                : is_box(d) ? sizeof(SimBulk) : sizeof(SimSide);
  void *x = arena_alloc(cx, &cx->scratch, size);
  memcpy(x, d->x, size);
  out.x = x;
  return out;
}

// Returns the index in Fn.mem of argument k's memory, or -1 if k is not a
// pointer argument.
static int32_t object_of(const Fn *fn, size_t k) {
  for (size_t j = 0; k < fn->arg.n && j < fn->mem.n; j++)
    if (fn->mem.p[j].arg == (int32_t)k && fn->mem.p[j].space == SP_GMEM)
      return (int32_t)j;
  return -1;
}

// Returns memory object k, accessed as an array of elements of m's type. If k
// is larger than the last index, returns an empty object.
static SimMem *mem_of(Ctx *cx, const SimProg *p, const SimMem *m, size_t k) {
  bool exists = k < raw_pointer_pieces(p);
  const LaunchArg *a = exists ? raw_pointer_piece(p, k) : NULL;
  int32_t object = a ? object_of(p->fn, k) : -1;
  SimMem *out = NEW(cx, SimMem, 1);
  *out = *m;
  out->address = 0;
  if (!a) return out;
  out->p = a->p;
  out->defined = a->defined;
  out->before = p->launch->pdl ? a->before : 0;
  out->area = areas_area_of(p, a);
  out->count = (int64_t)(a->bytes * 8) / m->bits;
  out->bytes = (out->count * m->bits + 7) / 8;
  out->known = object < 0;
  if (object < 0) return out;
  out->index = object;
  out->own = dtype_bits(p->fn->mem.p[object].type);
  return out;
}

static int bytes_of(const SimIns *d, const SimMem *m) {
  return is_copy(d) ? ((const SimCopy *)d->x)->bytes : m->bits / 8;
}

static void split_side(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d, int k,
                       bool write) {
  SimSide *s[2];
  bool w[2];
  sides_of(d, s, w);
  const SimMem *mem = s[k]->mem;
  size_t n = raw_pointer_pieces(p);
  SimAddressed *m = NEW(cx, SimAddressed, 1);
  *m = (SimAddressed){.ins = NEW(cx, SimIns, n + 1),
                      .piece = NEW(cx, const LaunchArg *, n + 1),
                      .address = mem->address, .off = s[k]->slot,
                      .wide = s[k]->wide, .write = write,
                      .bits = mem->bits,
                      .align = p->fn->mem.p[mem->index].align,
                      .at = (*top + 63) & ~63u, .mem = mem};
  if (is_copy(d))
    m->pred = ((const SimCopy *)d->x)->pred;
  *top = m->at + 8 * LANES;
  for (size_t j = 0; j <= n; j++) {
    const LaunchArg *a = j < n ? raw_pointer_piece(p, j) : NULL;
    if (j < n && !a) continue;
    SimMem *piece = mem_of(cx, p, mem, j);
    SimIns one = copy_of(cx, d);
    SimSide *side[2];
    sides_of(&one, side, w);
    side[k]->mem = piece;
    side[k]->slot = m->at;
    side[k]->wide = true;
    areas_note(piece, bytes_of(d, mem), write);
    if (is_box(d) && piece->area) piece->area->maps = true;
    raw_pointer_split(cx, p, top, &one);
    m->piece[m->n] = a;
    m->ins[m->n] = one;
    m->n += j < n;
  }
  SimUses *u = arena_zero(cx, &cx->scratch, sizeof *u + 2 * sizeof *u->slot);
  u->slot[u->n++] = m->address;
  u->slot[u->n++] = m->off;
  *d = (SimIns){.op = OP_PTR, .src = d->src, .ref = d->ref, .stat = -1,
                .who = d->who, .sem = d->sem, .x = m, .uses = u};
}

// Fails if an operand of d is a raw pointer. Called for operations in which the
// simulator does not support raw pointers.
static void refuse(Ctx *cx, const Fn *fn, const SimIns *d) {
  const Ins *i = ir_get(fn, d->ref);
  Operand o;
  if (i->op != d->op || !(op_effect((Op)i->op) & EF_MEMORY)) return;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.ref && ir_get(fn, o.ref)->op == OP_PTR)
      ctx_fail(cx, ERR_ARG, "line %u: the simulator cannot follow a raw "
               "address in %s, only in loads, stores, thread copies and "
               "atomics",
               fn->src.p[i->src].line, op_name((Op)i->op));
}

void raw_pointer_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d) {
  SimSide *s[2];
  bool write[2];
  int n = sides_of(d, s, write);
  if (!n || is_box(d)) refuse(cx, p->fn, d);
  for (int k = 0; k < n; k++)
    if (s[k]->mem->address) {
      split_side(cx, p, top, d, k, write[k]);
      return;
    }
}

// ---- objects that tensor maps in memory describe ----

// Returns the memory object of argument k, or NULL if no instruction uses it.
static const SimMem *own_mem(const SimProg *p, size_t k) {
  for (size_t j = 0; k < p->fn->arg.n && j < p->fn->mem.n; j++) {
    const Mem *m = &p->fn->mem.p[j];
    bool memory = mem_is_global(m);
    if (memory && m->arg == (int32_t)k && p->mem[m->ref]) return p->mem[m->ref];
  }
  return NULL;
}

void raw_pointer_reach(Ctx *cx, SimProg *p, const SimMem *m, bool write) {
  size_t n = raw_pointer_pieces(p);
  if (!p->reach) {
    SimMem bytes = *m;
    bytes.memory = MEMORY_GLOBAL;
    bytes.type = DT_U8;
    bytes.bits = bytes.own = 8;
    p->reach = NEW(cx, const SimMem *, n + 1);
    for (size_t k = 0; k < n; k++) {
      p->reach[k] = raw_pointer_piece(p, k) ? own_mem(p, k) : NULL;
      if (raw_pointer_piece(p, k) && !p->reach[k])
        p->reach[k] = mem_of(cx, p, &bytes, k);
    }
  }
  for (size_t k = 0; k < n; k++) {
    const LaunchArg *a = raw_pointer_piece(p, k);
    int each = a && a->map ? p->reach[k]->own / 8 : 1;
    if (a) areas_note(p->reach[k], each > 1 ? each : 1, write);
  }
}

const SimMem *raw_pointer_object(const SimProg *p, uint64_t address) {
  for (size_t k = 0; p->reach && k < raw_pointer_pieces(p); k++)
    if (p->reach[k] && raw_pointer_in(raw_pointer_piece(p, k), address))
      return p->reach[k];
  return NULL;
}
// SPDX-License-Identifier: MIT
