// Calls functions of libcutelua with random arguments: `random SEED COUNT`. The
// program must neither crash nor leak; the sanitizers report both. Some
// allocations fail.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cutelua.h>

enum { N = 64, REFS = 32 };

static const char *const scripts[] = {
  "local cute = require 'cute'\n"
  "local k = cute.kernel('k', function(x, y, f)\n"
  "  local i = cute.arch.thread_idx()\n"
  "  cute.when(i:lt(cute.size(x)), function() y[i] = x[i] * f end)\n"
  "end)\n"
  "return {k = k, id = function(...) return ... end,\n"
  "  fail = function() error {} end}",
  "return function(x) return x end", "error 'x'", "x = (", "while true do end",
  "print(('x'):rep(100))", "local t = {} while true do t[#t + 1] = {} end",
  "return 3", "", "\x1bLua", "#!/bin/sh\nreturn {}",
  "require 'cute'.ops.gemm(1, 2)", "coroutine.yield()",
  "error(setmetatable({}, {__tostring = function() error 'y' end}))"};

static uint64_t seed;

static unsigned next(unsigned n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((seed >> 33) % n);
}

// ---- allocations that fail ----

static int left;  // number of allocations that succeed; all if negative

static void *allocate(void *ud, void *p, size_t old, size_t size) {
  (void)ud, (void)old;
  if (!size) {
    free(p);
    return NULL;
  }
  // Only allocations that need more memory may fail.
  if (left == 0 && (!p || size > old)) return NULL;
  if (left > 0) left--;
  return realloc(p, size);
}

static void print(void *ud, int stream, const char *text, size_t n) {
  (void)ud, (void)stream;
  if (n && text[0] == text[n - 1]) left = left;
}

// ---- random values ----

static cutelua_ref refs[REFS];
static float memory[4][N];
static int64_t shapes[3][8], strides[3][8];

static cutelua_ref any_ref(void) {
  return next(20) ? refs[next(REFS)] : ((uint64_t)next(1000) << (next(2) * 63));
}

static void keep(cutelua_ref ref) {
  if (ref) refs[next(REFS)] = ref;
}

static const char *any_name(void) {
  static const char *const names[] = {
    "k", "id", "fail", "", "x", "gemm", "reduce", "softmax", "out", "copy",
    "elementwise", "no such", "device", "sum", NULL};
  return names[next(sizeof names / sizeof *names)];
}

static cutelua_tensor any_tensor(void) {
  static const char *const types[] = {"f32", "f32", "f32", "f32", "bf16", "i8",
                                      "i4", "f64", "bool", "nix", NULL};
  cutelua_tensor t = {.data = memory[next(4)], .device = CUTELUA_HOST};
  int k = (int)next(3);
  t.dtype = types[next(sizeof types / sizeof *types)];
  t.rank = next(12) ? 1 + (int)next(2) : (int)next(12) - 1;
  // The elements lie within the memory, even for the widest type.
  if (next(2)) t.dtype = "f32";
  for (int m = 0; m < 8; m++) {
    shapes[k][m] = 1 + (int64_t)next(m < 2 ? 5 : 2);
    strides[k][m] = (int64_t)next(m == 1 ? 2 : m == 0 ? 3 : 2);
  }
  if (next(30) == 0) shapes[k][0] = -(int64_t)next(5);
  if (next(30) == 0) shapes[k][1] = INT64_MAX / (1 + next(3));
  if (next(30) == 0) strides[k][0] = -1;
  t.shape = next(40) ? shapes[k] : NULL;
  t.stride = next(3) ? NULL : strides[k];
  if (next(40) == 0) t.data = NULL;
  if (next(40) == 0) t.device = (int32_t)next(4) - 2;
  if (t.rank > 2) t.rank = t.rank > 8 ? 9 : 2;
  return t;
}

static cutelua_arg any_arg(void) {
  cutelua_arg a;
  memset(&a, 0, sizeof a);
  a.type = (cutelua_type)(next(30) ? 1 + next(6) : next(200));
  if (next(8) == 0) a.name = any_name();
  switch (a.type) {
    case CUTELUA_TENSOR: a.as.tensor = any_tensor(); break;
    case CUTELUA_STRING: a.as.string = any_name(); break;
    case CUTELUA_REF: a.as.ref = any_ref(); break;
    case CUTELUA_NUMBER: a.as.number = (double)next(9) / 2; break;
    default: a.as.integer = (int64_t)next(9) - 2; break;
  }
  return a;
}

static cutelua_launch_options any_launch(void) {
  static const char *const devices[] = {NULL, "sim", "sim:sm_80", "gpu", "x"};
  cutelua_launch_options o;
  memset(&o, 0, sizeof o);
  o.size = next(20) ? sizeof o : next(2 * (unsigned)sizeof o);
  if (o.size > sizeof o) o.size = sizeof o;
  o.grid[0] = next(4);
  o.block[0] = next(6) * 16;
  if (next(8) == 0) o.grid[next(3)] = next(5);
  if (next(8) == 0) o.cluster[next(3)] = next(3);
  o.device = devices[next(5)];
  o.seed = next(3);
  if (next(40) == 0) o.flags = next(4);
  return o;
}

// ---- calls ----

static int counts[8];  // numbers of calls, by the status that the call returned

static int note(cutelua_status status) {
  counts[status]++;
  return (int)status;
}

static void call(cutelua_state *s) {
  cutelua_arg args[6], results[4];
  cutelua_launch_options o = any_launch(), *launch = next(10) ? &o : NULL;
  size_t nargs = next(6), nresults = next(4);
  cutelua_ref ref = 0;
  for (size_t i = 0; i < 6; i++) args[i] = any_arg();
  for (size_t i = 0; i < 4; i++) results[i] = any_arg();
  const char *script = scripts[next(sizeof scripts / sizeof *scripts)];
  if (next(30) == 0) nargs = next(2) ? 65 : 1000;
  const cutelua_arg *given = nargs > 6 || next(30) ? args : NULL;
  switch (next(14)) {
    case 0: case 1: case 2:
      note(cutelua_load_text(s, script, strlen(script), any_name(), &ref));
      break;
    case 3: case 4: case 5:
      note(cutelua_find(s, any_ref(), any_name(), &ref));
      break;
    case 6: case 7: note(cutelua_launch(s, any_ref(), given, nargs, launch)); break;
    case 8:
      if (note(cutelua_call(s, any_ref(), given, nargs, results, nresults)) == 0)
        for (size_t i = 0; i < nresults; i++)
          if (results[i].type == CUTELUA_REF) keep(results[i].as.ref);
      break;
    case 9:
      note(cutelua_op(s, any_name(), given, nargs, results, nresults));
      break;
    case 10:
      note(cutelua_compile(s, any_ref(), given, nargs, launch));
      break;
    case 11:
      note(cutelua_compile_start(s, any_ref(), given, nargs, launch, &ref));
      break;
    case 12: note(cutelua_wait(s, any_ref(), next(3))); break;
    default:
      cutelua_release(s, any_ref());
      cutelua_interrupt(s);
      if (next(10) == 0) cutelua_load_file(s, next(2) ? "/" : "/nix", &ref);
  }
  keep(ref);
  if (strlen(cutelua_error(s)) + strlen(cutelua_error_kind(s)) > 1 << 20)
    abort();
}

// Fills the references with a script, its kernel and its functions.
static void begin(cutelua_state *s) {
  static const char *const names[] = {"k", "k", "id", "fail"};
  cutelua_ref script = 0, found = 0;
  memset(refs, 0, sizeof refs);
  cutelua_load_text(s, scripts[0], strlen(scripts[0]), "begin", &script);
  for (int k = 0; k < REFS; k++) {
    cutelua_find(s, script, names[k % 4], &found);
    refs[k] = k % 8 ? found : script;
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int count = atoi(argv[2]);
  seed = (uint64_t)atoll(argv[1]) * 7919 + 1;
  for (int done = 0; done < count;) {
    cutelua_state *s = NULL;
    cutelua_options o = {.size = sizeof o, .flags = next(2), .print = print,
                         .memory = next(3) ? 0 : next(1 << 26),
                         .instructions = 200000, .milliseconds = 300};
    left = -1;
    if (next(2)) o.alloc = allocate;
    if (o.alloc && next(3) == 0) left = (int)next(40000);
    if (cutelua_open(&o, &s) != CUTELUA_OK) {
      done++;
      continue;
    }
    begin(s);
    for (int n = (int)next(60); n >= 0; n--, done++) {
      if (o.alloc && next(20) == 0) left = (int)next(3000);
      call(s);
      if (next(4)) left = -1;
    }
    left = -1;
    cutelua_close(s);
  }
  printf("done");
  for (int k = 0; k < 8; k++) printf(" %d", counts[k]);
  printf("\n");
  return 0;
}
// SPDX-License-Identifier: MIT
