// A program that specs of libcutelua run: `driver TEST ARGUMENTS` carries out a
// test and prints its results, one per line.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cutelua.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { N = 256 };

static const char kernels[] =
  "local cute = require 'cute'\n"
  "local k = cute.kernel('k', function(x, y, f)\n"
  "  local i = cute.arch.block_idx() * 64 + cute.arch.thread_idx()\n"
  "  y[i] = x[i] * f\n"
  "end)\n"
  "local out = cute.kernel('out', function(x) x[1000] = 1 end)\n"
  "local function results(n)\n"
  "  return n + 1, n / 2, n > 1, 'text', k, cute.ones({2, 2}, cute.f32)\n"
  "end\n"
  "local function sum(x, options)\n"
  "  return options.rows and cute.ops.reduce(x, 'sum', {by = 'row'})\n"
  "end\n"
  "return {k = k, out = out, results = results, sum = sum,\n"
  "  hi = function() print 'hi' end,\n"
  "  loop = function() while true do end end, number = 3}\n";

static float input[N];
static int wrong;

#define CHECK(x) ((x) ? (void)0 : fail(#x, __LINE__))

static void fail(const char *what, int line) {
  printf("line %d: %s\n", line, what);
  wrong++;
}

static cutelua_arg host(void *p, const char *dtype, const int64_t *shape,
                        const int64_t *stride, int rank) {
  cutelua_arg a = {.type = CUTELUA_TENSOR};
  a.as.tensor = (cutelua_tensor){p, dtype, shape, stride, rank, CUTELUA_HOST};
  return a;
}

static cutelua_arg number(double x) {
  cutelua_arg a = {.type = CUTELUA_NUMBER};
  a.as.number = x;
  return a;
}

static cutelua_launch_options grid(unsigned blocks, unsigned threads) {
  cutelua_launch_options o = {.size = sizeof o};
  o.grid[0] = blocks;
  o.block[0] = threads;
  return o;
}

static cutelua_state *open_state(unsigned flags) {
  cutelua_options o = {.size = sizeof o, .flags = flags};
  cutelua_state *s = NULL;
  if (cutelua_open(&o, &s) != CUTELUA_OK) printf("the state does not open\n");
  return s;
}

static cutelua_ref find(cutelua_state *s, const char *name) {
  cutelua_ref script = 0, found = 0;
  cutelua_status r = cutelua_load_text(s, kernels, sizeof kernels - 1, "test",
                                       &script);
  if (r == CUTELUA_OK) r = cutelua_find(s, script, name, &found);
  if (r != CUTELUA_OK) fail(cutelua_error(s), __LINE__);
  cutelua_release(s, script);
  return found;
}

// Launches kernel k, which multiplies by `factor`, and checks the result.
static void launch(cutelua_state *s, cutelua_ref k, float factor) {
  float y[N] = {0};
  const int64_t shape[] = {N};
  cutelua_arg args[] = {host(input, "f32", shape, NULL, 1),
                        host(y, "f32", shape, NULL, 1), number(factor)};
  cutelua_launch_options o = grid(N / 64, 64);
  cutelua_status r = cutelua_launch(s, k, args, 3, &o);
  if (r != CUTELUA_OK) fail(cutelua_error(s), __LINE__);
  for (int i = 0; i < N; i++)
    if (y[i] != input[i] * factor) {
      fail("y", __LINE__);
      return;
    }
}

// ---- scripts of files ----

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void drop(void *ud, int stream, const char *text, size_t n) {
  (void)ud, (void)stream, (void)text, (void)n;
}

// Runs each script in an untrusted state. The first argument is the time limit
// in milliseconds, the others are files. Prints for each script the status, the
// kind of error, the seconds, and the peak of the state's memory in MiB.
static int run_scripts(char **args) {
  unsigned long limit = strtoul(*args, NULL, 10);
  for (char **files = args + 1; *files; files++) {
    cutelua_options o = {.size = sizeof o, .flags = CUTELUA_UNTRUSTED,
                         .memory = 128 << 20, .instructions = 20000000,
                         .milliseconds = limit, .print = drop};
    cutelua_state *s;
    cutelua_ref script;
    uint64_t used = 0, peak = 0;
    if (cutelua_open(&o, &s) != CUTELUA_OK) return 1;
    double start = seconds();
    cutelua_status r = cutelua_load_file(s, *files, &script);
    double took = seconds() - start;
    cutelua_memory(s, &used, &peak);
    const char *kind = cutelua_error_kind(s);
    printf("%d %s %.2f %d %s\n", (int)r, *kind ? kind : "-", took,
           (int)(peak >> 20), cutelua_error(s));
    cutelua_close(s);
  }
  return 0;
}

// Runs scripts as a thread, which gets the smallest stack that is documented.
static void *scripts_thread(void *args) {
  return (void *)(intptr_t)run_scripts(args);
}

static int run_on_small_stack(char **args) {
  pthread_attr_t a;
  pthread_t t;
  void *result = NULL;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, SANITIZED ? 8 << 20 : 256 << 10);
  if (pthread_create(&t, &a, scripts_thread, args) != 0) return 1;
  pthread_join(t, &result);
  pthread_attr_destroy(&a);
  return (int)(intptr_t)result;
}

// Runs a script in a trusted and then in an untrusted state.
static int run_allowed(const char *file) {
  for (unsigned flags = 0; flags < 2; flags++) {
    cutelua_options o = {.size = sizeof o, .flags = flags,
                         .instructions = 1000000000, .milliseconds = 60000};
    cutelua_state *s;
    cutelua_ref script;
    if (cutelua_open(&o, &s) != CUTELUA_OK) return 1;
    if (cutelua_load_file(s, file, &script) != CUTELUA_OK)
      fail(cutelua_error(s), __LINE__);
    cutelua_close(s);
  }
  return wrong;
}

// ---- states ----

static long resident(void) {
  long pages = 0, all;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (f) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void cycle(int k) {
  cutelua_state *s = open_state(k % 2 ? CUTELUA_UNTRUSTED : 0);
  cutelua_ref script, job;
  if (k % 8 == 0) {
    cutelua_ref kernel = find(s, "k");
    cutelua_launch_options o = grid(1, 64);
    const int64_t shape[] = {N};
    cutelua_arg args[] = {host(NULL, "f32", shape, NULL, 1),
                          host(NULL, "f32", shape, NULL, 1), number(1)};
    launch(s, kernel, 3);
    args[0].as.tensor.data = args[1].as.tensor.data = input;
    CHECK(cutelua_compile_start(s, kernel, args, 3, &o, &job) == CUTELUA_OK);
  }
  CHECK(cutelua_load_text(s, "error 'x'", 9, "t", &script) == CUTELUA_ERROR);
  cutelua_close(s);
}

// Opens and closes n states. Prints the KiB by which the process grew during
// the second half of them.
static int run_cycles(int n) {
  for (int k = 0; k < n / 2; k++) cycle(k);
  long before = resident();
  for (int k = 0; k < n / 2; k++) cycle(k);
  printf("grown %ld\n", resident() - before);
  return wrong;
}

// ---- threads ----

static cutelua_state *shared;
static cutelua_ref shared_kernel;

static void use(cutelua_state *s, cutelua_ref k, int id) {
  const int64_t shape[] = {N};
  float y[N];
  cutelua_ref job = 0;
  cutelua_launch_options o = grid(4, 64);
  cutelua_arg args[] = {host(input, "f32", shape, NULL, 1),
                        host(y, "f32", shape, NULL, 1), number(id)};
  CHECK(cutelua_compile_start(s, k, args, 3, &o, &job) == CUTELUA_OK);
  cutelua_poll(s, job);
  launch(s, k, (float)id);
  CHECK(cutelua_wait(s, job, 60000) == CUTELUA_OK);
  CHECK(cutelua_release(s, job) == CUTELUA_OK);
}

// Computes row sums by an operation, on the device that the operation chooses.
static void sum_rows(cutelua_state *s) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[2] = {0};
  const int64_t shape[] = {2, 3}, two[] = {2};
  cutelua_arg args[] = {host(x, "f32", shape, NULL, 2),
                        {.type = CUTELUA_STRING}, {.type = CUTELUA_STRING}};
  cutelua_arg to = host(y, "f32", two, NULL, 1);
  args[1].as.string = "sum";
  args[2].as.string = "row";
  args[2].name = "by";
  cutelua_status r = cutelua_op(s, "reduce", args, 3, &to, 1);
  if (r != CUTELUA_OK) fail(cutelua_error(s), __LINE__);
  CHECK(y[0] == 6 && y[1] == 15);
}

static void *own_state(void *id) {
  for (int n = 0; n < 2; n++) {
    cutelua_state *s = open_state((uintptr_t)id % 2);
    cutelua_ref k = find(s, "k");
    for (int i = 0; i < 2; i++) use(s, k, (int)(uintptr_t)id + i);
    if (n == 0) sum_rows(s);
    cutelua_close(s);
  }
  return NULL;
}

static void *one_state(void *id) {
  for (int i = 0; i < 3; i++) use(shared, shared_kernel, (int)(uintptr_t)id);
  return NULL;
}

static void run_all(void *(*f)(void *)) {
  pthread_t t[4];
  for (uintptr_t k = 0; k < 4; k++)
    pthread_create(&t[k], NULL, f, (void *)k);
  for (int k = 0; k < 4; k++) pthread_join(t[k], NULL);
}

static void *interrupts(void *p) {
  int *done = p;
  while (!__atomic_load_n(done, __ATOMIC_RELAXED)) {
    cutelua_interrupt(shared);
    usleep(1000);
  }
  return NULL;
}

static int run_threads(void) {
  run_all(own_state);
  shared = open_state(0);
  shared_kernel = find(shared, "k");
  run_all(one_state);
  cutelua_close(shared);
  // Another thread interrupts this endless script.
  cutelua_options o = {.size = sizeof o, .milliseconds = 60000};
  cutelua_ref script;
  pthread_t t;
  int done = 0;
  CHECK(cutelua_open(&o, &shared) == CUTELUA_OK);
  pthread_create(&t, NULL, interrupts, &done);
  CHECK(cutelua_load_text(shared, "while true do end", 17, "endless",
                          &script) == CUTELUA_LIMIT);
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  pthread_join(t, NULL);
  printf("%s\n", cutelua_error(shared));
  cutelua_close(shared);
  return wrong;
}

// ---- fork ----

static int run_fork(void) {
  cutelua_state *s = open_state(0);
  cutelua_ref k = find(s, "k");
  launch(s, k, 2);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    cutelua_ref script;
    CHECK(cutelua_load_text(s, "", 0, "t", &script) == CUTELUA_FORKED);
    CHECK(cutelua_launch(s, k, NULL, 0, NULL) == CUTELUA_FORKED);
    CHECK(cutelua_wait(s, 1, 0) == CUTELUA_FORKED);
    cutelua_close(s);
    // After a fork, the child must not use the parent's state, but may open its
    // own.
    s = open_state(0);
    launch(s, find(s, "k"), 4);
    cutelua_close(s);
    fflush(stdout);
    _exit(wrong);
  }
  int status = 1;
  waitpid(child, &status, 0);
  launch(s, k, 5);
  cutelua_close(s);
  return wrong || status;
}

// ---- arguments ----

static void try_launch(cutelua_state *s, cutelua_ref k, const char *what,
                       cutelua_arg *args, size_t n, cutelua_launch_options o) {
  cutelua_status r = cutelua_launch(s, k, args, n, &o);
  printf("%s: %d %s\n", what, (int)r, cutelua_error(s));
}

// Prints the status and the message of launches with wrong arguments.
static int run_wrong(void) {
  cutelua_state *s = open_state(0);
  cutelua_ref k = find(s, "k"), out = find(s, "out");
  float y[N];
  const int64_t shape[] = {N}, huge[] = {INT64_MAX / 2}, less[] = {-1};
  const int64_t two[] = {N, 2}, back[] = {-1};
  cutelua_launch_options o = grid(4, 64), none = {.size = sizeof none};
  cutelua_arg x = host(input, "f32", shape, NULL, 1), f = number(2), a[3];
#define TRY(what, kernel, first, options) \
  (a[0] = first, a[1] = host(y, "f32", shape, NULL, 1), a[2] = f, \
   try_launch(s, kernel, what, a, 3, options))
  TRY("type", k, host(input, "f31", shape, NULL, 1), o);
  TRY("no type", k, host(input, NULL, shape, NULL, 1), o);
  TRY("memory", k, host(NULL, "f32", shape, NULL, 1), o);
  TRY("shape", k, host(input, "f32", NULL, NULL, 1), o);
  TRY("rank", k, host(input, "f32", shape, NULL, 9), o);
  TRY("extent", k, host(input, "f32", less, NULL, 1), o);
  TRY("stride", k, host(input, "f32", shape, back, 1), o);
  TRY("size", k, host(input, "f32", huge, huge, 1), o);
  TRY("gaps", k, host(input, "i4", shape, two, 1), o);
  TRY("overlap", k, host((char *)y + 2, "f32", shape, NULL, 1), o);
  TRY("reference", 12345, x, o);
  TRY("no reference", 0, x, o);
  TRY("no grid", k, x, none);
  TRY("fault", out, x, o);
  x.as.tensor.device = 0;
  TRY("gpu", k, x, o);
  x.as.tensor.device = -7;
  TRY("device", k, x, o);
  x.type = (cutelua_type)99;
  TRY("kind", k, x, o);
  o.size = 1;
  TRY("options", k, host(input, "f32", shape, NULL, 1), o);
  o.size = sizeof o;
  o.device = "abacus";
  TRY("device name", k, host(input, "f32", shape, NULL, 1), o);
  cutelua_status r = cutelua_launch(s, k, NULL, 3, &o);
  printf("NULL: %d %s\n", (int)r, cutelua_error(s));
  CHECK(cutelua_launch(NULL, k, NULL, 0, NULL) == CUTELUA_MISUSE);
  CHECK(cutelua_open(NULL, NULL) == CUTELUA_MISUSE);
  cutelua_close(NULL);
  cutelua_close(s);
  return wrong;
}

// ---- results, strides, options ----

static int run_results(void) {
  cutelua_state *s = open_state(0);
  cutelua_ref f = find(s, "results");
  float square[4] = {0}, gaps[2 * 8], sums[4] = {0};
  const int64_t two[] = {2, 2}, eight[] = {4, 2}, step[] = {4, 2};
  const int64_t four[] = {4};
  cutelua_arg n = {.type = CUTELUA_INTEGER}, r[6] = {
    {.type = CUTELUA_INTEGER}, {.type = CUTELUA_NUMBER},
    {.type = CUTELUA_BOOLEAN}, {.type = CUTELUA_STRING},
    {.type = CUTELUA_REF}, {.type = CUTELUA_TENSOR}};
  n.as.integer = 5;
  r[5] = host(square, "f32", two, NULL, 2);
  CHECK(cutelua_call(s, f, &n, 1, r, 6) == CUTELUA_OK);
  printf("%d %g %d %s %g\n", (int)r[0].as.integer, r[1].as.number,
         (int)r[2].as.integer, r[3].as.string, (double)square[3]);
  launch(s, r[4].as.ref, 7);
  // A result variable of another type or of another shape is rejected.
  r[0].type = CUTELUA_STRING;
  CHECK(cutelua_call(s, f, &n, 1, r, 1) == CUTELUA_ERROR);
  printf("%s\n", cutelua_error(s));
  r[5] = host(square, "f32", four, NULL, 1);
  r[0].type = CUTELUA_INTEGER;
  CHECK(cutelua_call(s, f, &n, 1, r, 6) == CUTELUA_ERROR);
  printf("%s\n", cutelua_error(s));
  // Passes a tensor with gaps, and an option.
  for (int i = 0; i < 16; i++) gaps[i] = (float)i;
  cutelua_arg rows = {.type = CUTELUA_BOOLEAN, .name = "rows"};
  rows.as.integer = 1;
  cutelua_arg args[] = {host(gaps, "f32", eight, step, 2), rows};
  cutelua_arg to = host(sums, "f32", four, NULL, 1);
  CHECK(cutelua_call(s, find(s, "sum"), args, 2, &to, 1) == CUTELUA_OK);
  printf("%g %g %g %g\n", (double)sums[0], (double)sums[1],
         (double)sums[2], (double)sums[3]);
  cutelua_close(s);
  return wrong;
}

// ---- operations ----

enum { HEADS = 2, DIM = 64, QUERIES = 16 };

// Attention to a single key must return that key's value in each row.
static int run_attention(void) {
  static uint16_t q[QUERIES * HEADS * DIM], k[HEADS * DIM], v[HEADS * DIM];
  static uint16_t o[QUERIES * HEADS * DIM];
  const int64_t of_q[] = {1, QUERIES, HEADS, DIM}, of_k[] = {1, 1, HEADS, DIM};
  cutelua_state *s = open_state(CUTELUA_UNTRUSTED);
  for (int i = 0; i < QUERIES * HEADS * DIM; i++)
    q[i] = (uint16_t)(0x3f00 + i % 64);  // bf16 from 0.5 to 0.75
  for (int i = 0; i < HEADS * DIM; i++) {
    k[i] = (uint16_t)(0x3e80 + i % 32);
    v[i] = (uint16_t)(0x4000 + i % 100);
  }
  cutelua_arg args[] = {host(q, "bf16", of_q, NULL, 4),
                        host(k, "bf16", of_k, NULL, 4),
                        host(v, "bf16", of_k, NULL, 4)};
  cutelua_arg to = host(o, "bf16", of_q, NULL, 4);
  cutelua_status r = cutelua_op(s, "attention", args, 3, &to, 1);
  if (r != CUTELUA_OK) fail(cutelua_error(s), __LINE__);
  int same = 0;
  for (int i = 0; i < QUERIES * HEADS * DIM; i++)
    same += o[i] == v[i % (HEADS * DIM)];
  printf("%d of %d\n", same, QUERIES * HEADS * DIM);
  // Calls an operation that does not exist.
  r = cutelua_op(s, "gemmm", args, 3, &to, 1);
  printf("%d %s\n", (int)r, cutelua_error(s));
  cutelua_close(s);
  return wrong;
}

// ---- hooks ----

typedef struct Hooks {
  cutelua_state *state;
  size_t bytes, most;
  int blocks, busy;
} Hooks;

static void *count(void *ud, void *p, size_t old, size_t size) {
  Hooks *h = ud;
  if (!p) __atomic_fetch_add(&h->blocks, 1, __ATOMIC_RELAXED);
  if (p && !size) __atomic_fetch_sub(&h->blocks, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&h->bytes, size - (p ? old : 0), __ATOMIC_RELAXED);
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

static void printed(void *ud, int stream, const char *text, size_t n) {
  Hooks *h = ud;
  cutelua_ref script;
  printf("%d %.*s", stream, (int)n, text);
  // The state must reject calls from within its own hook.
  if (h->state)
    h->busy = cutelua_load_text(h->state, "", 0, "t", &script) == CUTELUA_BUSY;
  if (h->state) cutelua_close(h->state);
}

static int run_hooks(unsigned flags) {
  Hooks h = {0};
  cutelua_options o = {.size = sizeof o, .flags = flags, .alloc = count,
                       .alloc_ud = &h, .print = printed, .print_ud = &h};
  cutelua_state *s;
  uint64_t used, peak;
  CHECK(cutelua_open(&o, &s) == CUTELUA_OK);
  cutelua_ref hi = find(s, "hi");
  h.state = s;
  CHECK(cutelua_call(s, hi, NULL, 0, NULL, 0) == CUTELUA_OK);
  CHECK(h.busy);
  h.state = NULL;
  launch(s, find(s, "k"), 2);
  CHECK(cutelua_memory(s, &used, &peak) == CUTELUA_OK);
  CHECK(used == h.bytes);
  cutelua_close(s);
  CHECK(h.blocks == 0 && h.bytes == 0);
  return wrong;
}

int main(int argc, char **argv) {
  for (int i = 0; i < N; i++) input[i] = (float)i;
  const char *test = argc > 1 ? argv[1] : "";
  if (strcmp(test, "scripts") == 0) return run_on_small_stack(argv + 2);
  if (strcmp(test, "cycles") == 0 && argc > 2) return run_cycles(atoi(argv[2]));
  if (strcmp(test, "threads") == 0) return run_threads();
  if (strcmp(test, "fork") == 0) return run_fork();
  if (strcmp(test, "wrong") == 0) return run_wrong();
  if (strcmp(test, "results") == 0) return run_results();
  if (strcmp(test, "allowed") == 0 && argc > 2) return run_allowed(argv[2]);
  if (strcmp(test, "attention") == 0) return run_attention();
  if (strcmp(test, "hooks") == 0) return run_hooks(0) || run_hooks(1);
  return 2;
}
// SPDX-License-Identifier: MIT
