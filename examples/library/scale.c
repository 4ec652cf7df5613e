// Launches the kernel of scale.lua on the simulator, calls a function of the
// script, multiplies matrices by an operation of cute.ops, and shows an error.
//
//     cc scale.c $(pkg-config --cflags --libs cutelua) -o scale
//     ./scale scale.lua
#include <stdio.h>

#include <cutelua.h>

enum { N = 300, ROWS = 40, COLUMNS = 24, DEPTH = 16 };

static int failed(cutelua_state *s, cutelua_status status, const char *what) {
  if (status == CUTELUA_OK) return 0;
  fprintf(stderr, "%s: %s\n  kind %s, file %s, line %d\n", what,
          cutelua_error(s), cutelua_error_kind(s), cutelua_error_file(s),
          cutelua_error_line(s));
  return 1;
}

static cutelua_arg tensor(void *data, const int64_t *shape, int rank) {
  cutelua_arg a = {0};
  a.type = CUTELUA_TENSOR;
  a.as.tensor.data = data;
  a.as.tensor.dtype = "f32";
  a.as.tensor.shape = shape;
  a.as.tensor.rank = rank;
  a.as.tensor.device = CUTELUA_HOST;
  return a;
}

static cutelua_arg number(double x) {
  cutelua_arg a = {0};
  a.type = CUTELUA_NUMBER;
  a.as.number = x;
  return a;
}

// Computes y = 3 x by launching the script's kernel.
static int launch(cutelua_state *s, cutelua_ref script) {
  static float x[N], y[N];
  const int64_t shape[] = {N};
  cutelua_ref kernel;
  if (failed(s, cutelua_find(s, script, "scale", &kernel), "find")) return 1;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  cutelua_arg args[] = {tensor(x, shape, 1), tensor(y, shape, 1), number(3)};
  cutelua_launch_options o = {.size = sizeof o};
  o.grid[0] = (N + 127) / 128;
  o.block[0] = 128;
  cutelua_ref job;
  cutelua_status status =
    cutelua_compile_start(s, kernel, args, 3, &o, &job);
  if (status == CUTELUA_OK) status = cutelua_wait(s, job, 60000);
  if (failed(s, status, "compile")) return 1;
  if (failed(s, cutelua_launch(s, kernel, args, 3, &o), "launch")) return 1;
  printf("y[%d] = %g\n", N - 1, (double)y[N - 1]);
  return y[N - 1] != 3 * (N - 1);
}

// Calls the script's function, which launches the kernel.
static int call(cutelua_state *s, cutelua_ref script) {
  static float x[N], y[N];
  const int64_t shape[] = {N};
  cutelua_ref f;
  if (failed(s, cutelua_find(s, script, "scaled", &f), "find")) return 1;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  cutelua_arg args[] = {tensor(x, shape, 1), tensor(y, shape, 1), number(5)};
  cutelua_arg count = {.type = CUTELUA_INTEGER};
  if (failed(s, cutelua_call(s, f, args, 3, &count, 1), "call")) return 1;
  printf("%d elements, y[1] = %g\n", (int)count.as.integer, (double)y[1]);
  return count.as.integer != N || y[1] != 5;
}

// Computes D = A B^T by an operation of cute.ops.
static int multiply(cutelua_state *s) {
  static float a[ROWS * DEPTH], b[COLUMNS * DEPTH], d[ROWS * COLUMNS];
  const int64_t m_k[] = {ROWS, DEPTH}, n_k[] = {COLUMNS, DEPTH};
  const int64_t m_n[] = {ROWS, COLUMNS};
  for (int i = 0; i < ROWS * DEPTH; i++) a[i] = (float)(i % 7);
  for (int i = 0; i < COLUMNS * DEPTH; i++) b[i] = (float)(i % 5);
  cutelua_arg args[] = {tensor(a, m_k, 2), tensor(b, n_k, 2),
                        tensor(d, m_n, 2)};
  args[2].name = "out";
  if (failed(s, cutelua_op(s, "gemm", args, 3, NULL, 0), "gemm")) return 1;
  float want = 0;
  for (int k = 0; k < DEPTH; k++)
    want += a[DEPTH + k] * b[2 * DEPTH + k];
  printf("d[1][2] = %g\n", (double)d[COLUMNS + 2]);
  return d[COLUMNS + 2] != want;
}

int main(int argc, char **argv) {
  cutelua_state *s;
  cutelua_ref script;
  cutelua_options o = {.size = sizeof o};
  o.memory = (uint64_t)1 << 30;
  if (argc < 2 || cutelua_open(&o, &s) != CUTELUA_OK) return 2;
  printf("interface %d\n", cutelua_abi());
  int bad = failed(s, cutelua_load_file(s, argv[1], &script), "load") ||
            launch(s, script) || call(s, script) || multiply(s);
  // every error has a kind, a file and a line
  cutelua_status status =
    cutelua_load_text(s, "local x = nil\nreturn x.y", 25, "broken", &script);
  printf("status %d, kind %s, %s:%d\n", (int)status, cutelua_error_kind(s),
         cutelua_error_file(s), cutelua_error_line(s));
  cutelua_close(s);
  return bad;
}
// SPDX-License-Identifier: MIT
