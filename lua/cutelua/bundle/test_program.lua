--- Writes NAME_test.c and NAME_test.bin: a program that launches each function
-- of a bundle on a GPU and compares the results with the simulator's.
local write = require "cutelua.bundle.write"

local test_program = {}

local HEAD = [==[
// Launches each function of the bundle bun on a GPU with the inputs of
// bun_test.bin and compares the results, bit by bit, with those of cutelua's
// simulator.
//   cc -o bun_test bun_test.c bun.c -ldl -lm -pthread
//   ./bun_test [bun_test.bin] [--threads N] [--launches N] [--save FILE]
// With -DBUN_BENCH, and without bun.c, it also measures launches.
#define _POSIX_C_SOURCE 200809L
#ifdef BUN_BENCH
#include "bun.c"
#else
#include "bun.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif
#include <math.h>
#include <time.h>

// ---- the driver ----

typedef unsigned long long Address;

static struct {
  int(*cuInit)(unsigned);
  int(*cuDeviceGet)(int *, int);
  int(*cuDevicePrimaryCtxRetain)(void **, int);
  int(*cuDevicePrimaryCtxRelease_v2)(int);
  int(*cuCtxSetCurrent)(void *);
  int(*cuCtxSynchronize)(void);
  int(*cuMemAlloc_v2)(Address *, size_t);
  int(*cuMemFree_v2)(Address);
  int(*cuMemcpyHtoD_v2)(Address, const void *, size_t);
  int(*cuMemcpyDtoH_v2)(void *, Address, size_t);
  int(*cuStreamCreate)(bun_stream *, unsigned);
  int(*cuStreamDestroy_v2)(bun_stream);
  int(*cuStreamSynchronize)(bun_stream);
} cu;

static void find(void *library, const char *name, void *to) {
  void *f = dlsym(library, name);
  if (!f) {
    fprintf(stderr, "libcuda.so.1 has no function %s\n", name);
    exit(2);
  }
  memcpy(to, &f, sizeof f);
}

static void must(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "%s: error %d of the driver\n", what, result);
  exit(2);
}

static void *context;

static void start(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "no CUDA driver: %s\n", dlerror());
    exit(2);
  }
#define FIND(name) find(library, #name, &cu.name)
  FIND(cuInit);
  FIND(cuDeviceGet);
  FIND(cuDevicePrimaryCtxRetain);
  FIND(cuDevicePrimaryCtxRelease_v2);
  FIND(cuCtxSetCurrent);
  FIND(cuCtxSynchronize);
  FIND(cuMemAlloc_v2);
  FIND(cuMemFree_v2);
  FIND(cuMemcpyHtoD_v2);
  FIND(cuMemcpyDtoH_v2);
  FIND(cuStreamCreate);
  FIND(cuStreamDestroy_v2);
  FIND(cuStreamSynchronize);
  int device;
  must(cu.cuInit(0), "cuInit");
  must(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
  must(cu.cuDevicePrimaryCtxRetain(&context, device),
       "cuDevicePrimaryCtxRetain");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

// ---- cases ----

// Memory of a tensor: its bytes before the call and, if `after` is not 0, the
// bytes that the call must leave, as positions in the data. If `bits` is not 0,
// a GPU may round results differently: elements are floats of `exponent`
// exponent bits, whose relative error (in the Frobenius norm) must be at most
// `tolerance`.
typedef struct Memory {
  size_t bytes, before, after;
  int bits, exponent;
  double tolerance;
} Memory;

// Contents of the memory beyond a tensor, which must stay unchanged.
enum { GUARD = 256 };
static const unsigned char pattern = 0x5a;

// The device memory of one call.
typedef struct Call {
  Address at[MEMORIES + 1];
  void *work;
  size_t work_bytes;
} Call;

static unsigned char *data;

static void allocate(const Memory *m, int n, Call *c) {
  unsigned char guard[GUARD];
  memset(guard, pattern, sizeof guard);
  for (int i = 0; i < n; i++) {
    must(cu.cuMemAlloc_v2(&c->at[i], m[i].bytes + GUARD), "cuMemAlloc");
    must(cu.cuMemcpyHtoD_v2(c->at[i], data + m[i].before, m[i].bytes), "copy");
    must(cu.cuMemcpyHtoD_v2(c->at[i] + m[i].bytes, guard, GUARD), "copy");
  }
  c->work = NULL;
  c->work_bytes = 0;
  c->at[MEMORIES] = 0;
}

static void allocate_work(Call *c) {
  if (!c->work_bytes) return;
  must(cu.cuMemAlloc_v2(&c->at[MEMORIES], c->work_bytes), "cuMemAlloc");
  c->work = (void *)(uintptr_t)c->at[MEMORIES];
}

static void release(int n, Call *c) {
  for (int i = 0; i < n; i++) must(cu.cuMemFree_v2(c->at[i]), "cuMemFree");
  if (c->at[MEMORIES]) must(cu.cuMemFree_v2(c->at[MEMORIES]), "cuMemFree");
}

// Returns element k of an array of floats.
static double element(const unsigned char *p, size_t k, int bits,
                      int exponent) {
  uint64_t u = 0;
  memcpy(&u, p + k * (size_t)bits / 8, (size_t)bits / 8);
  int fraction = bits - 1 - exponent, largest = (1 << exponent) - 1;
  int e = (int)(u >> fraction) & largest, bias = largest >> 1;
  uint64_t f = u & ((UINT64_C(1) << fraction) - 1);
  double x = (double)f;
  if (e == largest) return f ? NAN : u >> (bits - 1) ? -INFINITY : INFINITY;
  if (e) x += (double)(UINT64_C(1) << fraction);
  x = ldexp(x, (e ? e : 1) - bias - fraction);
  return u >> (bits - 1) ? -x : x;
}

// Returns the relative error of an array of floats.
static double error_of(const Memory *m, const unsigned char *is,
                       const unsigned char *want) {
  double sum = 0, all = 0;
  size_t n = m->bytes * 8 / (size_t)m->bits;
  for (size_t k = 0; k < n; k++) {
    double x = element(is, k, m->bits, m->exponent);
    double y = element(want, k, m->bits, m->exponent);
    if ((isnan(x) && isnan(y)) || (isinf(x) && x == y)) continue;
    if (!isfinite(x) || !isfinite(y)) return INFINITY;
    sum += (x - y) * (x - y);
    all += y * y;
  }
  return sum > 0 ? sqrt(sum / all) : 0;
}

static FILE *saved;  // receives all memory after each call; or NULL

// Compares the results of a call. Returns the number of wrong tensors.
static int compare(const char *name, const Memory *m, int n, Call *c) {
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    size_t bad = 0, first = 0, all = m[i].bytes + GUARD;
    unsigned char *is = (unsigned char *)malloc(all);
    const unsigned char *want = data + (m[i].after ? m[i].after : m[i].before);
    if (!is) exit(2);
    must(cu.cuMemcpyDtoH_v2(is, c->at[i], all), "copy");
    for (size_t k = all; k-- > 0;)
      if (is[k] != (k < m[i].bytes ? want[k] : pattern)) bad++, first = k;
    if (saved) fwrite(is, 1, m[i].bytes, saved);
    double error = bad && m[i].bits ? error_of(&m[i], is, want) : INFINITY;
    if (bad && error <= m[i].tolerance) {
      printf("%s: tensor %d: relative error %.1e\n", name, i, error);
      bad = 0;
    }
    if (bad)
      printf("%s: tensor %d: %zu wrong bytes, the first at %zu\n", name, i, bad,
             first);
    wrong += bad != 0;
    free(is);
  }
  return wrong;
}
]==]

-- C code that precedes the test cases. With BUN_BENCH, it declares bench_now:
-- the launch that bench() measures.
local BENCH = [==[
#ifdef BUN_BENCH
static struct Bench {
  const Entry *entry;
  const Variant *variant;
  const bun_tensor *tensor[8 * BUN_RANK];
  bun_tensor copy[8 * BUN_RANK];
  uint64_t number[64];
} bench_now;
#endif

]==]

local TAIL = [==[
// ---- the program ----

typedef struct Case {
  const char *name, *arch;
  const Memory *memory;
  int memories;
  int(*call)(Call *c, bun_stream stream, int query);
} Case;

static const Case cases[] = {
CASES};
enum { COUNT = sizeof cases / sizeof *cases };

// Reports whether a case is for the architecture of the current context.
static int is_here(const Case *k) {
  const char *arch = bun_arch();
  if (arch) return !strcmp(arch, k->arch);
  printf("%s: %s\n", k->name, bun_error());
  exit(2);
}

static int run_case(const Case *k, bun_stream stream, int times) {
  Call c;
  int wrong = 1;
  allocate(k->memory, k->memories, &c);
  int status = k->call(&c, stream, 1);
  if (!status) allocate_work(&c);
  if (!status) status = k->call(&c, stream, 0);
  must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
  if (status)
    printf("%s: %s: %s\n", k->name, bun_status_name(status), bun_error());
  else
    wrong = compare(k->name, k->memory, k->memories, &c);
  for (int i = 1; i < times && !status; i++) status = k->call(&c, stream, 0);
  must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
  if (status && times > 1)
    printf("%s: %s: %s\n", k->name, bun_status_name(status), bun_error());
  release(k->memories, &c);
  return wrong || status;
}

static int launches = 1;

static void *run_thread(void *out) {
  bun_stream stream;
  int *wrong = (int *)out;
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  must(cu.cuStreamCreate(&stream, 1), "cuStreamCreate");
  for (int i = 0; i < COUNT; i++)
    if (is_here(&cases[i])) *wrong += run_case(&cases[i], stream, launches);
  must(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
  return NULL;
}

#ifdef BUN_BENCH
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Returns the nanoseconds of a call of f.
static double nanoseconds(void(*f)(void)) {
  double from = now();
  for (int i = 0; i < 100000; i++) f();
  return (now() - from) * 1e4;
}

static void ask_current(void) {
  Handle h;
  api.cuCtxGetCurrent(&h);
}

static void ask_slot(void) {
  Slot *s;
  current_slot(&s);
}

// Measures the first launch, then the time of a launch beside the driver's own
// call with the same parameters, as medians of 9 rounds of 400 launches.
static int order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// What bench_case measures.
typedef struct Measured {
  const Case *k;
  Slot *slot;
  const Entry *entry;
  const Variant *variant;
  const bun_tensor *const *tensor;
  const uint64_t *number;
  Parameters *list;  // of each step
  Call *call;
  bun_stream stream;
} Measured;

enum { ROUNDS = 9 };
static const int times = 400;

// Returns the microseconds of a launch by the bundle's function.
static double own_time(const Measured *m) {
  must(cu.cuStreamSynchronize(m->stream), "cuStreamSynchronize");
  double from = now();
  for (int i = 0; i < times; i++) m->k->call(m->call, m->stream, 0);
  return (now() - from) / times * 1e6;
}

// Makes the driver's calls of one step alone.
static void submit_step(const Measured *m, int j) {
  const Step *p = &m->variant->step[j];
  if (p->kernel < 0) {
    char *at = (char *)m->call->work + p->at;
    api.cuMemsetD8Async((Address)(uintptr_t)at, 0, p->n, m->stream);
    return;
  }
  int64_t g[3];
  for (int n = 0; n < 3; n++)
    g[n] = computed(p->grid_by[n], size_of(m->variant, m->tensor), p->grid[n]);
  if (p->grid_of) p->grid_of(m->tensor, m->number, g);
  submit(p, g, m->slot->function[p->kernel], m->list[j].at, m->stream);
}

// Returns the microseconds of the driver's calls for a launch.
static double bare_time(const Measured *m) {
  must(cu.cuStreamSynchronize(m->stream), "cuStreamSynchronize");
  double from = now();
  for (int i = 0; i < times; i++)
    for (int j = 0; j < m->variant->steps; j++) submit_step(m, j);
  return (now() - from) / times * 1e6;
}

static void bench_case(Measured *m) {
  double own[ROUNDS], bare[ROUNDS];
  int steps = m->variant->steps;
  m->list = (Parameters *)calloc((size_t)steps, sizeof *m->list);
  if (!m->list || current_slot(&m->slot)) exit(2);
  for (int i = 0; i < steps; i++)
    if (m->variant->step[i].kernel >= 0)
      set_parameters(m->entry, &m->variant->step[i], m->tensor, m->number,
                     size_of(m->variant, m->tensor), (char *)m->call->work,
                     &m->list[i]);
  for (int r = 0; r < ROUNDS; r++) {
    if (r % 2) bare[r] = bare_time(m);
    own[r] = own_time(m);
    if (r % 2 == 0) bare[r] = bare_time(m);
  }
  must(cu.cuStreamSynchronize(m->stream), "cuStreamSynchronize");
  qsort(own, ROUNDS, sizeof *own, order);
  qsort(bare, ROUNDS, sizeof *bare, order);
  printf("%-40s launch %.2f us, driver's call %.2f us, ratio %.3f\n",
         m->k->name, own[ROUNDS / 2], bare[ROUNDS / 2],
         own[ROUNDS / 2] / bare[ROUNDS / 2]);
  free(m->list);
}

// Replaces the driver's call to remember what a function launches.
static void bench(void) {
  bun_stream stream;
  must(cu.cuStreamCreate(&stream, 1), "cuStreamCreate");
  for (int i = 0; i < COUNT; i++) {
    Call c;
    if (!is_here(&cases[i])) continue;
    allocate(cases[i].memory, cases[i].memories, &c);
    if (cases[i].call(&c, stream, 1)) continue;
    allocate_work(&c);
    must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
    double from = now();
    int status = cases[i].call(&c, stream, 0);
    double first = (now() - from) * 1e3;
    must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (status) {
      printf("%s: %s: %s\n", cases[i].name, bun_status_name(status),
             bun_error());
      continue;
    }
    if (!i)
      printf("the current context: %.0f ns, with its kernels: %.0f ns\n",
             nanoseconds(ask_current), nanoseconds(ask_slot));
    printf("%-40s first launch %.2f ms\n", cases[i].name, first);
    cases[i].call(&c, stream, 2);
    Measured m = {&cases[i], NULL, bench_now.entry, bench_now.variant,
                  bench_now.tensor, bench_now.number, NULL, &c, stream};
    bench_case(&m);
    release(cases[i].memories, &c);
  }
}
#endif

static void read_data(const char *name) {
  FILE *f = fopen(name, "rb");
  char head[32];
  char want[32] = {0};
  snprintf(want, sizeof want, "bun %016llx", (unsigned long long)BUN_VERSION);
  if (!f || !(data = (unsigned char *)malloc(DATA)) ||
      fread(data, 1, DATA, f) != DATA) {
    fprintf(stderr, "cannot read %d bytes from %s\n", DATA, name);
    exit(2);
  }
  memcpy(head, data, sizeof head);
  if (strncmp(head, want, sizeof want)) {
    fprintf(stderr, "%s belongs to another version of the bundle\n", name);
    exit(2);
  }
  fclose(f);
}

int main(int argc, char **argv) {
  const char *name = "bun_test.bin";
  enum { MOST = 64 };
  pthread_t thread[MOST];
  int wrong[MOST] = {0}, threads = 1, bad = 0;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--threads") && i + 1 < argc)
      threads = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--launches") && i + 1 < argc)
      launches = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--save") && i + 1 < argc)
      saved = fopen(argv[++i], "wb");
    else
      name = argv[i];
  }
  if (threads < 1 || threads > MOST) threads = 1;
  read_data(name);
  start();
#ifdef BUN_BENCH
  bench();
#endif
  for (int i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, run_thread, &wrong[i])) exit(2);
  for (int i = 0; i < threads; i++) {
    pthread_join(thread[i], NULL);
    bad += wrong[i];
  }
  int here = 0;
  for (int i = 0; i < COUNT; i++) here += is_here(&cases[i]);
  if (!bad)
    printf("%d cases, %d threads, %d launches each: the results are the "
           "simulator's\n", here, threads, launches);
  if (saved) fclose(saved);
  bun_unload();
  cu.cuDevicePrimaryCtxRelease_v2(0);
  free(data);
  return bad != 0;
}
]==]

local function list(v, n)
  local out = {}
  for i = 1, n do out[i] = ("%d"):format(v[i] or 1) end
  return "{" .. table.concat(out, ", ") .. "}"
end

-- Types whose results a GPU may round differently: {bits, exponent bits,
-- largest relative error}.
local FLOATS = {bf16 = {16, 8, 3e-3}, f16 = {16, 5, 6e-4},
                f32 = {32, 8, 2e-5}, f64 = {64, 11, 1e-13}}

-- Returns a number as a C constant.
local function constant(n, v)
  if n.dtype == "i32" then return ("%d"):format(v) end
  if n.dtype == "i64" then return ("INT64_C(%d)"):format(v) end
  if v ~= v then return "NAN" end
  if v - v ~= 0 then return v > 0 and "INFINITY" or "-INFINITY" end
  local text = ("%.17g"):format(v)
  if not text:find "[.en]" then text = text .. ".0" end
  return n.dtype == "f32" and ("(float)%s"):format(text) or text
end

-- Appends bytes to the data, padded to a multiple of 64 bytes; returns their
-- position.
local function put(data, bytes)
  local at = data.at
  local padded = bytes .. ("\0"):rep(-#bytes % 64)
  data[#data + 1], data.at = padded, at + #padded
  return at
end

-- Returns a title for a test, such as "gemm 256x128, 512x128".
local function title(f, v, test)
  local out = {}
  for i, t in ipairs(test.tensors) do out[i] = table.concat(t.shape, "x") end
  return ("%s %s %s"):format(f.name, v.arch, table.concat(out, " "))
end

-- Returns the C code of a test case, and its row in the table of cases.
local function case_of(f, at, v, test, nth, data)
  local rows, tensors, passed = {}, {}, {}
  for i, t in ipairs(test.tensors) do
    local before = put(data, t.input)
    local x = v.tensors[i]
    local float = test.inexact and FLOATS[x.dtype] or {0, 0, 0}
    rows[i] = ("{%d, %d, %d, %d, %d, %g}"):format(#t.input, before,
      t.expected and put(data, t.expected) or 0, table.unpack(float))
    tensors[i] = ("{(void *)(uintptr_t)c->at[%d], BUN_%s, %d,\n"
      .. "     %s, %s}"):format(i - 1, x.dtype:upper(), #t.shape,
      list(t.shape, 8), list(t.stride, 8))
    passed[i] = ("&t[%d]"):format(i - 1)
  end
  local sent = table.move(passed, 1, #passed, 1, {})
  local bits = {}
  for i, n in ipairs(v.numbers) do
    local number = constant(n, test.numbers[i])
    sent[#sent + 1] = number
    bits[i] = ("    bench_now.number[%d] = %s;\n"):format(i - 1,
      write.bits(n.dtype, number))
  end
  if write.works(f) then
    sent[#sent + 1] = "c->work"
    sent[#sent + 1] = "c->work_bytes"
  end
  local query = write.works(f) and ("bun_%s_workspace(%s,\n      "
    .. "&c->work_bytes)"):format(f.name, table.concat(passed, ", ")) or "0"
  local code = ([[
static const Memory memory_%d[] = {%s};
static int case_%d(Call *c, bun_stream stream, int query) {
  bun_tensor t[] = {
    %s};
  if (query == 1) return %s;
#ifdef BUN_BENCH
  if (query == 2) {
    Slot *s;
    for (int i = 0; i < %d; i++) {
      bench_now.copy[i] = t[i];
      bench_now.tensor[i] = &bench_now.copy[i];
    }
%s    bench_now.entry = &entries[%d];
    return current_slot(&s) ||
           find_variant(&entries[%d], s->arch, bench_now.tensor,
                        &bench_now.variant);
  }
#endif
  return bun_%s(%s, stream);
}
]]):format(nth, table.concat(rows, ", "), nth, table.concat(tensors, ",\n    "),
    query, #tensors, table.concat(bits), at, at, f.name,
    table.concat(sent, ",\n    "))
  return code, ('  {"%s", "%s", memory_%d, %d, case_%d}'):format(
    title(f, v, test), v.arch, nth, #rows, nth), #rows
end

--- Returns the text of the program and its data.
---@param b table a bundle
---@param version string
---@return string text
---@return string data
function test_program.write(b, version)
  local head = ("%s %s"):format(b.name, version)
  local data = {at = 0}
  put(data, head .. ("\0"):rep(64 - #head))
  local cases, rows, most, nth = {}, {}, 1, 0
  for at, f in ipairs(b.functions) do
    for _, v in ipairs(f.variants) do
      for _, test in ipairs(v.tests or {}) do
        nth = nth + 1
        local n
        cases[nth], rows[nth], n = case_of(f, at - 1, v, test, nth, data)
        most = math.max(most, n)
      end
    end
  end
  local text = HEAD:gsub("// %-%-%-%- cases %-%-%-%-\n",
    ("%%0\nenum { MEMORIES = %d };\n"):format(most)) .. "\n"
    .. BENCH .. table.concat(cases, "\n") .. "\n"
    .. TAIL:gsub("DATA", ("%d"):format(data.at)):gsub("CASES",
      (table.concat(rows, ",\n"):gsub("%%", "%%%%")))
  text = text:gsub('#include "bun%.', '#include "' .. b.name .. ".")
    :gsub("%f[%w]bun_test", b.name .. "_test"):gsub("%f[%w]bun%.c",
    b.name .. ".c"):gsub('"bun %%016', '"' .. b.name .. " %%016")
    :gsub("bundle bun ", "bundle " .. b.name .. " ")
  return write.renamed(text, b.name), table.concat(data)
end

return test_program
-- SPDX-License-Identifier: MIT
