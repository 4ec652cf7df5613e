// libFuzzer target for the PTX parser and the translation to the IR. The input
// is PTX. Besides libFuzzer's own mutations, a mutator exchanges tokens and
// lines. Errors with a message are fine; crashes, leaks, internal errors and
// functions that the IR's verifier rejects are not.
//
// Built and run by spec/fuzz/ptx.lua (`make fuzz`, `make fuzz-ptx`).
#include "ir/fold.h"
#include "ir/ir.h"
#include "ptx/translate.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);

typedef struct Run {
  jmp_buf out;
  Ctx cx;
  struct Work work;
  PtxModule m;
  Fn fn;
  PtxVars used;
} Run;

static void failed(Ctx *cx, ErrKind kind, const char *msg) {
  Run *r = cx->ud;
  if (kind == ERR_INTERNAL || !msg[0]) {
    fprintf(stderr, "%s [%s]\n", msg, err_name(kind));
    abort();
  }
  longjmp(r->out, 1);
}

// ---- arguments ----

static Ref object(Run *r, Space space, const char *name) {
  Arg a = {.name = ir_text(&r->cx, &r->fn, name, strlen(name)),
           .type = DT_U8, .pointer = true, .map = space == SP_TMAP,
           .align = 256};
  vec_push(&r->cx, r->fn.arg, a);
  Mem m = {.space = space, .type = a.type, .align = a.align, .name = a.name,
           .count = space == SP_TMAP ? -1 : 4096,
           .arg = (int32_t)r->fn.arg.n - 1};
  return ir_mem(&r->cx, &r->fn, m);
}

static Ref scalar(Run *r, DType t) {
  vec_push(&r->cx, r->fn.arg, (Arg){.type = t});
  return ir_emit(&r->cx, &r->fn, (Ins){.op = OP_ARG, .type = (uint8_t)t,
                                       .imm = (int64_t)r->fn.arg.n - 1});
}

static DType type_of(PtxType t) {
  if (t.kind == PTX_F) return t.bits == 64 ? DT_F64 : DT_F32;
  return t.bits == 64 ? DT_I64 : t.bits == 32 ? DT_I32
       : t.bits == 16 ? DT_U16 : DT_U8;
}

// Moves an array to memory of exactly its size, so that ASan detects every
// access beyond its end.
#define FIT(cx, v) \
  ((v).p = ctx_realloc((cx), (v).p, ((v).n + !(v).n) * sizeof *(v).p), \
   (v).cap = (v).n)

static void fit(Ctx *cx, PtxModule *m) {
  FIT(cx, m->funcs);
  FIT(cx, m->vars);
  FIT(cx, m->ins);
  FIT(cx, m->args);
  FIT(cx, m->labels);
  FIT(cx, m->regs);
  FIT(cx, m->inits);
}

// A tensor map of 32 x 4 bytes.
static const TensorMap map = {.rank = 2, .extent = {32, 4}, .box = {32, 4},
                              .stride = {32}, .step = {1, 1}};

// Binds a parameter to an object: a pointer or a number; for an array, a tensor
// map or bytes.
static PtxBound bind(Run *r, const PtxVar *v, bool plain) {
  PtxBound b = {.offset = v->offset};
  if (v->array) {
    b.size = (uint32_t)(v->type.bits / 8 * v->count);
    char *bytes = NEW(&r->cx, char, b.size + 1);
    memset(bytes, 1, b.size + 1);
    if (b.size == 128 && !plain) {
      b.mem = object(r, SP_TMAP, v->name);
      b.map = &map;
    } else {
      b.bytes = bytes;
    }
  } else if (v->type.bits == 64 && v->type.kind != PTX_F && !plain) {
    b.mem = object(r, SP_GMEM, v->name);
  } else {
    b.value = scalar(r, type_of(v->type));
  }
  return b;
}

static void translate(Run *r, const PtxFunc *f, uint64_t random) {
  Ctx *cx = &r->cx;
  r->used.n = 0;
  f = ptx_whole(cx, &r->m, f);
  ptx_variables(cx, &r->m, f, &r->used);
  ir_init(cx, &r->fn, f->name);
  r->fn.serial = ++r->work.fns;
  ir_trace(cx, &r->fn);
  size_t n = 0;
  PtxBound *bound = NEW(cx, PtxBound, f->params + r->used.n + 1);
  for (uint32_t k = 0; k < f->params; k++) {
    bool plain = base_random(&random) % 8 == 0;
    bound[n++] = bind(r, &r->m.vars.p[f->param + k], plain);
  }
  for (size_t k = 0; k < r->used.n; k++) {
    bound[n++] = (PtxBound){.offset = UINT32_MAX, .var = r->used.p[k] + 1,
                            .mem = object(r, SP_GMEM, "variable")};
  }
  ptx_translate(cx, &r->fn, &r->m, f, bound, n,
                (int64_t)(base_random(&random) % 4096), "=ptx", random & 63);
  arena_reset(&cx->scratch);
  check_fn(cx, &r->fn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Run r;
  memset(&r, 0, sizeof r);
  r.cx = (Ctx){.fail = failed, .ud = &r, .work = &r.work};
  if (setjmp(r.out) == 0) {
    ptx_parse(&r.cx, &r.m, (const char *)data, size);
    fit(&r.cx, &r.m);
    for (volatile size_t k = 0; k < r.m.funcs.n; k++) {
      if (!r.m.funcs.p[k].entry || !r.m.funcs.p[k].body) continue;
      if (setjmp(r.out) == 0) {
        translate(&r, &r.m.funcs.p[k], base_hash(HASH_INIT, data, size));
      }
      ir_trace(&r.cx, NULL);
      ir_clear(&r.fn);
      arena_reset(&r.cx.scratch);
    }
  }
  ptx_free(&r.m);
  vec_free(r.used);
  arena_free(&r.cx.scratch);
  return 0;
}

// ---- the mutator ----

typedef struct Span {
  size_t at, n;
} Span;

static bool in_word(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

// Returns the span of a random line. Without `line`, returns the span of a
// random word, including a dot before the word.
static Span pick(const uint8_t *p, size_t n, bool line, uint64_t *random) {
  Span s = {base_random(random) % n, 0};
  if (line) {
    while (s.at && p[s.at - 1] != '\n') s.at--;
    while (s.at + s.n < n && p[s.at + s.n] != '\n') s.n++;
    s.n += s.at + s.n < n;
    return s;
  }
  while (s.at && in_word(p[s.at]) && in_word(p[s.at - 1])) s.at--;
  if (s.at && p[s.at - 1] == '.') s.at--;
  s.n = 1;
  while (s.at + s.n < n && in_word(p[s.at + s.n])) s.n++;
  return s;
}

// Replaces span `to` by the text of span `from` of the same input.
static size_t replace(uint8_t *p, size_t n, size_t max, Span to, Span from) {
  uint8_t text[512];
  if (from.n > sizeof text || n - to.n + from.n > max) return n;
  memcpy(text, p + from.at, from.n);
  memmove(p + to.at + from.n, p + to.at + to.n, n - to.at - to.n);
  memcpy(p + to.at, text, from.n);
  return n - to.n + from.n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed) {
  uint64_t random = seed;
  if (size == 0 || base_random(&random) % 4 == 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  uint64_t times = 1 + base_random(&random) % 4;
  for (; times && size; times--) {
    bool line = base_random(&random) % 3 == 0;
    Span to = pick(data, size, line, &random);
    Span from = pick(data, size, line, &random);
    uint64_t how = base_random(&random) % 8;
    if (how == 0) from.n = 0;     // removes it
    else if (how < 3) to.n = 0;   // inserts the text before `to`
    size = replace(data, size, max, to, from);
  }
  return size;
}
// SPDX-License-Identifier: MIT
