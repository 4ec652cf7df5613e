// Finds unwritten outputs. An output is a tensor that was unwritten before the
// launch, and to which the kernel stores without reading it. A script that
// creates the tensor with cute.empty guarantees that all of it will be written.
// If a kernel has no visible effect at all, every tensor that was unwritten
// before the launch counts as an output. Tensors that are accessed through
// tensor maps do not count, because these maps may be for loads. If an argument
// is part of a tensor, only that part is an output. cute.undefined_ok allows
// unwritten elements.
//
// A kernel may leave a part of an output unchanged if this part was written
// before the launch. cover.c finds parts that are probably omitted by mistake.
#include "decode/footprint.h"
#include "sim/bulk.h"
#include "watch/unwritten.h"

#include <string.h>

struct SimLeft {
  SimLeft *next;
  int32_t mem;             // memory object, an index into Fn.mem
  const LaunchArg *arg;
  int bits;                // bits of an element of the object
  SimFootprint of;
  bool moves;              // whether the footprint is known only at the launch
};

// Reports whether unwritten elements of argument k's memory are allowed. This
// is the case if the kernel reads this memory, or allows undefined elements in
// it, through argument k or an overlapping argument.
static bool is_free(const SimProg *p, int32_t k) {
  const SimArea *a = areas_area(p, k);
  for (size_t j = 0; j < p->fn->mem.n; j++) {
    const Mem *m = &p->fn->mem.p[j];
    if (!mem_outlives(m)) continue;
    if ((m->undefined_ok || p->fn->arg.p[m->arg].read) &&
        areas_area(p, m->arg) == a)
      return true;
  }
  return !a;
}

// Reports whether list t already contains the memory of argument a.
static bool is_there(const SimLeft *t, const LaunchArg *a) {
  while (t && t->arg->p != a->p) t = t->next;
  return t;
}

static SimLeft *one_of(Ctx *cx, const SimProg *p, int32_t mem, bool idle) {
  const Mem *m = &p->fn->mem.p[mem];
  if (!mem_outlives(m)) return NULL;
  const LaunchArg *a = &p->launch->arg[m->arg];
  bool written = (idle && m->space == SP_GMEM) ||
                 p->fn->arg.p[m->arg].written;
  if (!a->defined || !written || is_free(p, m->arg)) return NULL;
  SimLeft *t = arena_zero(cx, &cx->scratch, sizeof *t);
  const char *text = ir_str(p->fn, m->layout);
  *t = (SimLeft){.mem = mem, .arg = a, .bits = dtype_bits(m->type),
                 .moves = a->map || strchr(text, '?')};
  bool known = a->map ? footprint_map(&t->of, a->map, t->bits)
                      : footprint_layout(cx, &t->of, p->launch, m);
  return known ? t : NULL;
}

SimLeft *unwritten_make(Ctx *cx, const SimProg *p) {
  SimLeft *all = NULL;
  // a raw pointer may point to any output, so no output can be checked
  if (ir_has_addresses(p->fn)) return NULL;
  bool idle = ir_is_idle(p->fn);
  for (size_t k = 0; k < p->fn->mem.n; k++) {
    SimLeft *t = one_of(cx, p, (int32_t)k, idle);
    if (!t || is_there(all, t->arg)) continue;
    t->next = all;
    all = t;
  }
  return all;
}

static bool is_written(const SimLeft *t, int64_t element) {
  int64_t at = element * t->bits / 8;
  return t->arg->defined[at / 8] >> (at & 7) & 1;
}

// Returns the first line that writes to the argument of memory object `mem`.
// The line may use another object of the argument, such as the bytes that
// inline PTX accesses.
static uint32_t line_of(const SimProg *p, int32_t mem) {
  int32_t arg = p->fn->mem.p[mem].arg;
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    const SimMem *m = NULL;
    if (i->op == OP_ST) m = ((const SimSide *)i->x)->mem;
    if (i->op == OP_COPY) m = ((const SimCopy *)i->x)->dst.mem;
    if (i->op == OP_TMASTORE || i->op == OP_BULKSTORE)
      m = ((const SimBulk *)i->x)->global;
    if (!m || m->index < 0) continue;
    const Mem *own = &p->fn->mem.p[m->index];
    bool same = own->space == SP_GMEM && own->arg == arg && arg != NO_ARG;
    if (m->index == mem || same) return i->src;
  }
  return 0;
}

static int64_t look(const SimProg *p, const SimLeft *t, SimFound *found,
                    void *ud) {
  int64_t at[FOOTPRINT_MODES] = {0}, element = 0, none = 0, all = 0;
  SimFault f = {.r = {.kind = SIM_UNWRITTEN, .mem = t->mem, .other = -1,
                      .leads = -1, .elsewhere = -1,
                      .src = line_of(p, t->mem), .count = 1}};
  for (;;) {
    bool there = (element + 1) * t->bits <= (int64_t)t->arg->bytes * 8;
    all += there;
    if (there && !is_written(t, element) && !none++) {
      f.r.offset = element;
      f.r.modes = t->moves && t->of.n <= SIM_MODES ? t->of.n : 0;
      memcpy(f.r.coord, at, (size_t)f.r.modes * sizeof *at);
    }
    int k = 0;
    while (k < t->of.n && ++at[k] == t->of.extent[k]) {
      element -= (t->of.extent[k] - 1) * t->of.stride[k];
      at[k++] = 0;
    }
    if (k == t->of.n) break;
    element += t->of.stride[k];
  }
  f.left.none = none;
  f.left.all = all;
  if (none && found) found(ud, &f);
  return none;
}

int64_t unwritten_find(const SimProg *p, const SimLeft *t, SimFound *found,
                       void *ud) {
  int64_t n = 0;
  for (; t; t = t->next) n += look(p, t, found, ud);
  return n;
}
// SPDX-License-Identifier: MIT
