// A front end for a small language, which makes IR as docs/ir.md describes:
//   y = 2 * x + reverse(x * x) - sum(x) / 128
// A program is one assignment. Each name is an f32 array of n elements. The
// program runs in blocks of 128 threads, and each thread computes one element.
// reverse(e) is the value of e in the opposite thread of the block. sum(e) is
// the sum of e over the threads of the block.
//
// In the repository, after `make`:
//   rooms='base atoms ir lint layout hardware decode faults sim watch emit'
//   objects=$(for r in $rooms; do ls core/$r/*.c; done |
//     sed 's,^core,build,; s,c$,o,')
//   cc -std=c11 -Icore -o blockwise examples/frontend/blockwise.c $objects
//     -lm -pthread
//   ./blockwise ir 'y = 2 * x'       prints the IR; cu: the CUDA C
//   ./blockwise 1000 'y = 2 * x'     runs it on the simulator, with 1000
//                                    elements, and prints y
// Before the run, element k of each array is k % 7 + 1. A third word on the
// command line makes a mistake that the simulator reports: `unsynchronized`
// leaves out the barriers, and `unguarded` leaves out the bounds checks.
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"
#include "faults/facts.h"
#include "ir/operands.h"
#include "sim/sim.h"
#include "watch/watch.h"

enum { BLOCK = 128, MAX_NAMES = 8, SM = 80 };

typedef struct Compiler {
  Ctx cx;
  struct Work work;
  jmp_buf out;
  Fn fn;
  const char *at;          // rest of the program's text
  char name[MAX_NAMES][16];
  Ref array[MAX_NAMES];    // the memory object of each array
  int names;
  Ref tid, index, in;  // in: whether the thread's index is within the arrays
  bool unsynchronized, unguarded;
} Compiler;

// ---- names and values ----

static Ref value(Compiler *c, Op op, DType t, Ref a, Ref b, Ref d) {
  return ir_emit(&c->cx, &c->fn,
                 (Ins){.op = (uint8_t)op, .type = (uint8_t)t, .a = {a, b, d}});
}

static uint32_t text(Compiler *c, const char *s) {
  return ir_text(&c->cx, &c->fn, s, strlen(s));
}

static void skip(Compiler *c) { while (*c->at == ' ') c->at++; }

static bool found(Compiler *c, char symbol) {
  skip(c);
  if (*c->at != symbol) return false;
  c->at++;
  return true;
}

static void expect(Compiler *c, char symbol) {
  if (!found(c, symbol))
    ctx_fail(&c->cx, ERR_ARG, "expected '%c' at '%s'", symbol, c->at);
}

static void read_name(Compiler *c, char name[16]) {
  int n = 0;
  skip(c);
  while (isalpha((unsigned char)*c->at) && n < 15) name[n++] = *c->at++;
  name[n] = 0;
  if (!n) ctx_fail(&c->cx, ERR_ARG, "expected a name at '%s'", c->at);
}

// Returns the number of the array with this name. The first use of a name adds
// an argument to the function, and an object in global memory for it.
static int array_of(Compiler *c, const char *name) {
  Fn *fn = &c->fn;
  for (int k = 0; k < c->names; k++)
    if (!strcmp(c->name[k], name)) return k;
  if (c->names == MAX_NAMES) ctx_fail(&c->cx, ERR_ARG, "too many names");
  Arg a = {.name = text(c, name), .type = DT_F32, .pointer = true, .align = 16};
  vec_push(&c->cx, fn->arg, a);
  Mem m = {.space = SP_GMEM, .type = DT_F32, .count = -1, .align = 16,
           .arg = (int32_t)fn->arg.n - 1, .name = a.name};
  strcpy(c->name[c->names], name);
  c->array[c->names] = ir_mem(&c->cx, fn, m);
  return c->names++;
}

// ---- regions ----

static void open_if(Compiler *c, Ref pred) {
  ir_open(&c->cx, &c->fn, (Ins){.op = OP_IF, .a = {pred}});
}

// Loads the thread's element of an array, or 0 beyond the last element. The
// value is kept in a variable, because other values of a region are not visible
// after the region.
static Ref load_element(Compiler *c, int k) {
  if (c->unguarded) return value(c, OP_LD, DT_F32, c->array[k], c->index, 0);
  Ref zero = ir_float(&c->cx, &c->fn, DT_F32, 0);
  Ref v = value(c, OP_VAR, DT_F32, zero, 0, 0);
  open_if(c, c->in);
  Ref x = value(c, OP_LD, DT_F32, c->array[k], c->index, 0);
  value(c, OP_VSET, DT_NONE, v, x, 0);
  ir_close(&c->cx, &c->fn);
  return value(c, OP_VGET, DT_F32, v, 0, 0);
}

static void barrier(Compiler *c) {
  if (!c->unsynchronized) value(c, OP_BAR, DT_NONE, 0, 0, 0);
}

// Creates an object in shared memory with one element for each thread. Writes x
// to the thread's element, and returns the object.
static Ref share(Compiler *c, Ref x) {
  Mem m = {.space = SP_SMEM, .type = DT_F32, .count = BLOCK, .align = 16,
           .offset = c->fn.smem_bytes, .arg = NO_ARG};
  c->fn.smem_bytes += BLOCK * 4;
  Ref s = ir_mem(&c->cx, &c->fn, m);
  value(c, OP_ST, DT_NONE, s, c->tid, x);
  barrier(c);
  return s;
}

static Ref reverse(Compiler *c, Ref x) {
  Ctx *cx = &c->cx;
  Ref s = share(c, x), last = ir_int(cx, &c->fn, DT_I32, BLOCK - 1);
  Ref other = ir_op2(cx, &c->fn, OP_SUB, last, c->tid);
  return value(c, OP_LD, DT_F32, s, other, 0);
}

static Ref sum(Compiler *c, Ref x) {
  Ctx *cx = &c->cx;
  Fn *fn = &c->fn;
  Ref s = share(c, x);
  Ref total = value(c, OP_VAR, DT_F32, ir_float(cx, fn, DT_F32, 0), 0, 0);
  Ref k = ir_open(cx, fn, (Ins){.op = OP_FOR, .type = DT_I32,
    .a = {ir_int(cx, fn, DT_I32, 0), ir_int(cx, fn, DT_I32, BLOCK),
          ir_int(cx, fn, DT_I32, 1)}});
  Ref old = value(c, OP_VGET, DT_F32, total, 0, 0);
  Ref next = value(c, OP_LD, DT_F32, s, k, 0);
  value(c, OP_VSET, DT_NONE, total, ir_op2(cx, fn, OP_ADD, old, next), 0);
  ir_close(cx, fn);
  return value(c, OP_VGET, DT_F32, total, 0, 0);
}

// ---- expressions ----

static Ref expression(Compiler *c);

static Ref factor(Compiler *c) {
  char *end, name[16];
  skip(c);
  double number = strtod(c->at, &end);
  if (end != c->at && !isalpha((unsigned char)*c->at)) {
    c->at = end;
    return ir_float(&c->cx, &c->fn, DT_F32, number);
  }
  if (found(c, '(')) {
    Ref inside = expression(c);
    expect(c, ')');
    return inside;
  }
  read_name(c, name);
  if (!found(c, '(')) return load_element(c, array_of(c, name));
  Ref x = expression(c);
  expect(c, ')');
  if (!strcmp(name, "reverse")) return reverse(c, x);
  if (!strcmp(name, "sum")) return sum(c, x);
  ctx_fail(&c->cx, ERR_ARG, "no function '%s': write reverse or sum", name);
}

static Ref term(Compiler *c) {
  Ref x = factor(c);
  for (;;) {
    Op op = found(c, '*') ? OP_MUL : found(c, '/') ? OP_DIV : OP_NOP;
    if (op == OP_NOP) return x;
    Ref y = factor(c);
    x = ir_op2(&c->cx, &c->fn, op, x, y);
  }
}

static Ref expression(Compiler *c) {
  Ref x = term(c);
  for (;;) {
    Op op = found(c, '+') ? OP_ADD : found(c, '-') ? OP_SUB : OP_NOP;
    if (op == OP_NOP) return x;
    Ref y = term(c);
    x = ir_op2(&c->cx, &c->fn, op, x, y);
  }
}

// Compiles one assignment to a function of the IR (Fn).
static void compile(Compiler *c, const char *source) {
  Ctx *cx = &c->cx;
  Fn *fn = ir_init(cx, &c->fn, "blockwise");
  char name[16];
  fn->block[0] = BLOCK;
  fn->block[1] = fn->block[2] = 1;
  ir_at(cx, fn, "@program", 1);
  c->at = source;
  read_name(c, name);
  expect(c, '=');
  int result = array_of(c, name);
  Arg n = {.name = text(c, "n"), .type = DT_I32};
  vec_push(cx, fn->arg, n);
  Ref count = ir_emit(cx, fn, (Ins){.op = OP_ARG, .type = DT_I32,
                                    .imm = (int64_t)fn->arg.n - 1});
  c->tid = ir_sreg(cx, fn, SR_TID_X);
  Ref first = ir_op2(cx, fn, OP_MUL, ir_sreg(cx, fn, SR_CTAID_X),
                     ir_int(cx, fn, DT_I32, BLOCK));
  c->index = ir_op2(cx, fn, OP_ADD, first, c->tid);
  c->in = ir_op2(cx, fn, OP_LT, c->index, count);
  Ref x = expression(c);
  if (skip(c), *c->at)
    ctx_fail(cx, ERR_ARG, "unexpected text '%s'", c->at);
  open_if(c, c->in);
  value(c, OP_ST, DT_NONE, c->array[result], c->index, x);
  ir_close(cx, fn);
  ir_mark_arguments(fn);
  check_fn(cx, fn);
}

// ---- results ----

static void print_ir(Compiler *c) {
  Buf b = {0};
  dump_fn(&c->cx, &c->fn, false, &b);
  fwrite(b.p, 1, b.n, stdout);
  buf_free(&b);
}

static void print_cuda(Compiler *c) {
  EmitOut out = {0};
  emit_fn(&c->cx, &c->fn, SM, &out);
  fwrite(out.text.p, 1, out.text.n, stdout);
  emit_free(&out);
}

// Runs the program on arrays of n elements. Prints the elements of the result,
// or the faults. Returns the number of faults.
static size_t run(Compiler *c, int n) {
  Ctx *cx = &c->cx;
  size_t args = c->fn.arg.n;
  LaunchArg *arg = arena_zero(cx, &cx->scratch, args * sizeof *arg);
  for (size_t k = 0; k < args; k++) {
    if (!c->fn.arg.p[k].pointer) {
      arg[k].bits = (uint32_t)n;
      continue;
    }
    float *p = arena_alloc(cx, &cx->scratch, (size_t)n * sizeof *p);
    for (int i = 0; i < n; i++) p[i] = (float)(i % 7 + 1);
    arg[k].p = p;
    arg[k].bytes = (size_t)n * sizeof *p;
  }
  Launch l = {.fn = &c->fn, .grid = {(n + BLOCK - 1) / BLOCK, 1, 1},
              .block = {BLOCK, 1, 1}, .cluster = {1, 1, 1}, .arg = arg,
              .sm = SM};
  SimOpts o = {.threads = 1, .hooks = &watch_hooks, .unit = -1};
  SimResult *r = sim_run(cx, &l, &o);
  size_t faults = r->nreport;
  for (size_t k = 0; k < faults; k++)
    printf("%s in line %d of the program, block %d, thread %d\n",
           facts_kind_name(r->report[k].kind),
           (int)c->fn.src.p[r->report[k].src].line, r->report[k].block[0],
           r->report[k].thread[0]);
  const float *y = arg[0].p;
  for (int i = 0; i < n && !faults; i++) printf("%.9g\n", (double)y[i]);
  sim_free(r);
  return faults;
}

static _Noreturn void failed(Ctx *cx, ErrKind kind, const char *message) {
  Compiler *c = cx->ud;
  fprintf(stderr, "blockwise: error %d: %s\n", (int)kind, message);
  longjmp(c->out, 1);
}

int main(int argc, char **argv) {
  static Compiler c;
  if (argc < 3) {
    fprintf(stderr, "usage: blockwise ir|cu|N PROGRAM [MISTAKE]\n");
    return 2;
  }
  c.cx = (Ctx){.fail = failed, .ud = &c, .work = &c.work};
  c.unsynchronized = argc > 3 && !strcmp(argv[3], "unsynchronized");
  c.unguarded = argc > 3 && !strcmp(argv[3], "unguarded");
  volatile int status = 1;
  if (!setjmp(c.out)) {
    compile(&c, argv[2]);
    status = 0;
    if (!strcmp(argv[1], "ir")) print_ir(&c);
    else if (!strcmp(argv[1], "cu")) print_cuda(&c);
    else status = run(&c, atoi(argv[1])) > 0;
  }
  ir_clear(&c.fn);
  arena_free(&c.cx.scratch);
  return status;
}
// SPDX-License-Identifier: MIT
