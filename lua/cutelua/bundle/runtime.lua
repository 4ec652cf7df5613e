--- The C code that all bundles have: the driver's functions, contexts, checks
-- of tensors, and launches. "bun_" and "BUN_" stand for the bundle's name. In
-- the generated file, `types` comes first, then the generated tables, then
-- `code`.
local runtime = {}

runtime.types = [==[
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define THREAD thread_local
#else
#define THREAD _Thread_local
#endif

// An architecture with code in the bundle. exact: the code runs on this compute
// capability only, else also on later ones of the same major version.
typedef struct Arch {
  const char *name;
  int major, minor, exact;
} Arch;

// A cubin, packed as an LZ4 block: bytes before and after, and the FNV-1a hash
// of the unpacked bytes.
typedef struct Image {
  const uint64_t *words;
  size_t packed, size;
  uint64_t hash;
} Image;

typedef struct Kernel {
  const char *name;
  int image, smem;
  int big;  // whether its clusters have more than 8 blocks
} Kernel;

// A number that depends on the size m of a call: a + b ceil(c m / d).
typedef struct Formula {
  int64_t a, b, c, d;
} Formula;

// The parameters of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col. Strides
// count bytes. extent_by, stride_by: numbers of the formulas that give an
// extent or stride, from 1 on; 0: it is constant.
typedef struct Map {
  int im2col, type, rank, interleave, swizzle, l2, fill;
  int extent_by[5], stride_by[4];
  uint64_t extent[5], stride[4];
  uint32_t box[5], step[5];
  int lower[3], upper[3];
  uint32_t channels, pixels;
} Map;

// A kernel parameter. POINTER: the address of tensor `of` plus n bytes. WORK: n
// bytes into the workspace. MAP, WORK_MAP: a tensor map at such an address.
// CONSTANT: n. NUMBER: number `of`. EXTENT, STRIDE: of a mode of tensor `of`.
// COMPUTED: formula n.
enum { POINTER, WORK, MAP, WORK_MAP, CONSTANT, NUMBER, EXTENT, STRIDE,
       COMPUTED };
typedef struct Value {
  int kind, of, mode, map;
  int64_t n;
} Value;

typedef void Grid(const bun_tensor *const *t, const uint64_t *x, int64_t *g);

// A launch, or, without a kernel (-1), zeros for n bytes at byte `at` of the
// workspace. A grid is computed by grid_of, or by the formulas grid_by (0: the
// extent is constant); `computed` is 0 for a constant grid.
enum { PDL = 1, COOPERATIVE = 2 };
typedef struct Step {
  int kernel, flags;
  int64_t grid[3];
  int computed, grid_by[3];
  Grid *grid_of;
  unsigned block[3], cluster[3];
  const Value *value;
  int values;
  int together;  // if blocks wait for others: most blocks of such a grid, or 0
  size_t at, n;
} Step;

// What a kernel assumes of a tensor: its modes, the alignment of its address,
// and whether offsets may need more than 31 bits. div: 0 for a value that must
// be equal, else the divisor of any value. by: the formula of the value, or 0.
typedef struct Mode {
  int64_t extent, stride, extent_div, stride_div;
  int extent_by, stride_by;
} Mode;
// `exact`: whether all modes are constant.
typedef struct Want {
  int rank, align, wide, exact;
  const Mode *mode;
} Want;

// Two extents (what = 0) or strides (1) that must be equal.
typedef struct Equal {
  int a, mode_a, what_a, b, mode_b, what_b;
} Equal;

// The sizes of a variant: extent `mode` of tensor `of` (-1: there is no size)
// is from first to last, in steps. The function takes sizes from least to most.
typedef struct Sizes {
  int of, mode;
  int64_t first, last, step, least, most;
} Sizes;

// One specialisation of a function for an architecture.
typedef struct Variant {
  int arch;
  Sizes size;
  const Want *want;
  const Equal *equal;
  int equals;
  const Step *step;
  int steps;
  size_t work;
} Variant;

typedef struct Tensor {
  const char *name;
  int dtype, bits, written;
} Tensor;

// A function of the bundle. Pairs of tensors in `apart` must not overlap.
typedef struct Entry {
  const char *name;
  const Tensor *tensor;
  int tensors;
  const int (*apart)[2];
  int aparts;
  const Variant *variant;
  int variants;
} Entry;
]==]

runtime.code = [==[
// ---- errors ----

static THREAD char error_text[512];
// Whether `fail` only returns its status, because nobody will read the text.
static THREAD int quiet;

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static int fail(int status, const char *format, ...) {
  va_list list;
  if (quiet) return status;
  va_start(list, format);
  vsnprintf(error_text, sizeof error_text, format, list);
  va_end(list);
  return status;
}

const char *bun_error(void) { return error_text; }

const char *bun_status_name(int status) {
  static const char *const names[] = {
    "BUN_OK", "BUN_E_NULL", "BUN_E_DTYPE", "BUN_E_RANK", "BUN_E_EXTENT",
    "BUN_E_STRIDE", "BUN_E_ALIGN", "BUN_E_OVERLAP", "BUN_E_WORKSPACE",
    "BUN_E_GRID", "BUN_E_VERSION", "BUN_E_NO_DRIVER", "BUN_E_NO_CONTEXT",
    "BUN_E_NO_CUBIN", "BUN_E_LIMIT", "BUN_E_STREAM", "BUN_E_MEMORY",
    "BUN_E_CORRUPT", "BUN_E_DRIVER", "BUN_E_DEVICE"};
  int n = (int)(sizeof names / sizeof *names);
  return status >= 0 && status < n ? names[status] : "an unknown status";
}

const char *bun_archs(void) { return arch_names; }

// ---- the driver ----

typedef struct TensorMap {
#ifdef __cplusplus
  alignas(64)
#else
  _Alignas(64)
#endif
  uint64_t word[16];
} TensorMap;

typedef struct Attribute {
  int id, pad;
  union {
    char pad[64];
    unsigned cluster[3];
    int flag;
  } value;
} Attribute;

typedef struct Config {
  unsigned grid[3], block[3], smem;
  bun_stream stream;
  Attribute *attribute;
  unsigned attributes;
} Config;

typedef void *Handle;

// FUNCTION(name, whether every driver must have it, parameters)
#define FUNCTIONS(FUNCTION) \
  FUNCTION(cuCtxGetCurrent, 1, (Handle *)) \
  FUNCTION(cuCtxGetId, 0, (Handle, unsigned long long *)) \
  FUNCTION(cuCtxGetDevice, 1, (int *)) \
  FUNCTION(cuDeviceGetAttribute, 1, (int *, int, int)) \
  FUNCTION(cuModuleLoadData, 1, (Handle *, const void *)) \
  FUNCTION(cuModuleUnload, 1, (Handle)) \
  FUNCTION(cuModuleGetFunction, 1, (Handle *, Handle, const char *)) \
  FUNCTION(cuFuncGetAttribute, 1, (int *, int, Handle)) \
  FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, 0, \
    (int *, Handle, int, size_t)) \
  FUNCTION(cuOccupancyMaxActiveClusters, 0, \
    (int *, Handle, const Config *)) \
  FUNCTION(cuFuncSetAttribute, 1, (Handle, int, int)) \
  FUNCTION(cuPointerGetAttribute, 0, (void *, int, unsigned long long)) \
  FUNCTION(cuMemGetAddressRange_v2, 0, \
    (unsigned long long *, size_t *, unsigned long long)) \
  FUNCTION(cuMemsetD8Async, 1, \
    (unsigned long long, unsigned char, size_t, bun_stream)) \
  FUNCTION(cuLaunchKernel, 1, \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     unsigned, bun_stream, void **, void **)) \
  FUNCTION(cuLaunchKernelEx, 0, (const Config *, Handle, void **, void **)) \
  FUNCTION(cuTensorMapEncodeTiled, 0, \
    (TensorMap *, int, unsigned, void *, const uint64_t *, const uint64_t *, \
     const unsigned *, const unsigned *, int, int, int, int)) \
  FUNCTION(cuTensorMapEncodeIm2col, 0, \
    (TensorMap *, int, unsigned, void *, const uint64_t *, const uint64_t *, \
     const int *, const int *, unsigned, unsigned, const unsigned *, int, \
     int, int, int)) \
  FUNCTION(cuGetErrorName, 1, (int, const char **)) \
  FUNCTION(cuGetErrorString, 1, (int, const char **))

static struct {
#define FUNCTION(name, needed, parameters) int(*name) parameters;
  FUNCTIONS(FUNCTION)
#undef FUNCTION
} api;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static char open_error[256];

static void find_function(void *library, const char *name, int needed,
                          void *to) {
  void *f = dlsym(library, name);
  if (f) memcpy(to, &f, sizeof f);
  else if (needed && !*open_error)
    snprintf(open_error, sizeof open_error,
             "the driver is too old: libcuda.so.1 has no function %s", name);
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    snprintf(open_error, sizeof open_error, "no CUDA driver: %.200s",
             why ? why : "libcuda.so.1 was not found");
    return;
  }
#define FUNCTION(name, needed, parameters) \
  find_function(library, #name, needed, &api.name);
  FUNCTIONS(FUNCTION)
#undef FUNCTION
}

// Describes a failed call of the driver. Destroyed contexts and streams have
// kinds of their own.
static int driver_error(int result, const char *what, const char *who) {
  const char *name = NULL, *text = NULL;
  api.cuGetErrorName(result, &name);
  api.cuGetErrorString(result, &text);
  int status = result == 2 ? BUN_E_MEMORY
    : result == 201 || result == 709 ? BUN_E_NO_CONTEXT
    : result == 209 ? BUN_E_NO_CUBIN : BUN_E_DRIVER;
  return fail(status, "%s: %s: %s (%s)", who, what,
              name ? name : "unknown error", text ? text : "no description");
}

// ---- unpacking ----

static uint64_t hash_of(const unsigned char *p, size_t n) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
  return h;
}

// Reads a length of an LZ4 sequence, whose first 4 bits are n. Returns 0 if the
// bytes end.
static int read_length(const unsigned char **p, const unsigned char *end,
                       size_t *n) {
  if (*n < 15) return 1;
  unsigned char more;
  do {
    if (*p == end) return 0;
    more = *(*p)++;
    *n += more;
  } while (more == 255);
  return 1;
}

// Unpacks an LZ4 block. Returns 0 unless it has exactly `size` bytes.
static int unpack(const unsigned char *p, size_t packed, unsigned char *out,
                  size_t size) {
  const unsigned char *end = p + packed;
  size_t at = 0;
  while (p != end) {
    unsigned token = *p++;
    size_t n = token >> 4;
    if (!read_length(&p, end, &n) || n > (size_t)(end - p) || n > size - at)
      return 0;
    memcpy(out + at, p, n);
    p += n;
    at += n;
    if (p == end) break;  // the last sequence has only literal bytes
    if (end - p < 2) return 0;
    size_t back = (size_t)p[0] | (size_t)p[1] << 8;
    p += 2;
    n = token & 15;
    if (!read_length(&p, end, &n)) return 0;
    n += 4;
    if (!back || back > at || n > size - at) return 0;
    for (; n; n--, at++) out[at] = out[at - back];
  }
  return at == size;
}

// ---- contexts ----

// The kernels loaded into a context. Slots stay in the list for ever; `id`
// tells apart contexts that had the same address.
typedef struct Slot {
  struct Slot *next;
  Handle context;
  unsigned long long id;
  int arch, device;
  Handle function[BUN_KERNELS], module[BUN_KERNELS];
  int together[BUN_KERNELS];  // blocks that run at once, once they are known
} Slot;

static Slot *slots;

static Slot *find_slot(Handle context, unsigned long long id) {
  Slot *s = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
  while (s && (s->context != context || s->id != id)) s = s->next;
  return s;
}

// Returns the index of the best architecture for a compute capability, or -1.
// The list begins with the newest architecture.
static int best_arch(int major, int minor) {
  for (int i = 0; i < BUN_ARCHS; i++) {
    const Arch *a = &archs[i];
    if (a->major == major &&
        (a->exact ? a->minor == minor : a->minor <= minor))
      return i;
  }
  return -1;
}

static int add_slot(Handle context, unsigned long long id, Slot **out) {
  int device, major = 0, minor = 0;
  int r = api.cuCtxGetDevice(&device);
  if (!r) r = api.cuDeviceGetAttribute(&major, 75, device);
  if (!r) r = api.cuDeviceGetAttribute(&minor, 76, device);
  if (r) return driver_error(r, "cuCtxGetDevice", "the current context");
  int arch = best_arch(major, minor);
  if (arch < 0)
    return fail(BUN_E_NO_CUBIN, "this GPU is an sm_%d%d; the bundle has code "
                "for %s", major, minor, arch_names);
  pthread_mutex_lock(&loading);
  Slot *s = find_slot(context, id);
  if (!s && (s = (Slot *)calloc(1, sizeof *s))) {
    s->context = context;
    s->id = id;
    s->arch = arch;
    s->device = device;
    s->next = slots;
    __atomic_store_n(&slots, s, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&loading);
  *out = s;
  return s ? BUN_OK : fail(BUN_E_MEMORY, "no memory for a context's state");
}

// Finds the slot of the current context, or adds one.
static int current_slot(Slot **out) {
  Handle context = NULL;
  unsigned long long id = 0;
  pthread_once(&opened, open_driver);
  if (*open_error) return fail(BUN_E_NO_DRIVER, "%s", open_error);
  int r = api.cuCtxGetCurrent(&context);
  if (!r && !context)
    return fail(BUN_E_NO_CONTEXT, "no CUDA context is current in this thread");
  if (!r && api.cuCtxGetId) r = api.cuCtxGetId(context, &id);
  if (r) {
    driver_error(r, "cuCtxGetCurrent", "the current context");
    return BUN_E_NO_CONTEXT;
  }
  *out = find_slot(context, id);
  return *out ? BUN_OK : add_slot(context, id, out);
}

// ---- kernels ----

// Sets the attributes of a function that its launches need.
static int set_attributes(const Slot *s, const Kernel *k, Handle f) {
  int fixed = 0, most = 0, r = api.cuFuncGetAttribute(&fixed, 1, f);
  if (!r && k->big) r = api.cuFuncSetAttribute(f, 14, 1);
  if (!r && fixed + k->smem > 48 * 1024) {
    r = api.cuDeviceGetAttribute(&most, 97, s->device);
    if (!r && fixed + k->smem > most)
      return fail(BUN_E_LIMIT, "kernel %s needs %d bytes of shared memory, and "
                  "this GPU has %d for a block", k->name, fixed + k->smem,
                  most);
    if (!r) r = api.cuFuncSetAttribute(f, 8, k->smem);
  }
  return r ? driver_error(r, "cuFuncSetAttribute", k->name) : BUN_OK;
}

// Unpacks and loads the module of a kernel. The caller holds the mutex.
static int load_module(const Slot *s, const Kernel *k, Handle *module,
                       Handle *f) {
  const Image *m = &images[k->image];
  unsigned char *bytes = (unsigned char *)malloc(m->size);
  if (!bytes)
    return fail(BUN_E_MEMORY, "kernel %s: no memory for %zu bytes", k->name,
                m->size);
  int status = BUN_OK;
  if (!unpack((const unsigned char *)m->words, m->packed, bytes, m->size) ||
      hash_of(bytes, m->size) != m->hash)
    status = fail(BUN_E_CORRUPT, "kernel %s: its code in the bundle was "
                  "changed", k->name);
  if (!status) {
    int r = api.cuModuleLoadData(module, bytes);
    if (r) status = driver_error(r, "cuModuleLoadData", k->name);
  }
  free(bytes);
  if (status) return status;
  int r = api.cuModuleGetFunction(f, *module, k->name);
  status = r ? driver_error(r, "cuModuleGetFunction", k->name)
             : set_attributes(s, k, *f);
  if (status) api.cuModuleUnload(*module);
  return status;
}

static int load_kernel(Slot *s, int number, Handle *out) {
  Handle module = NULL, f = NULL;
  int status = BUN_OK;
  pthread_mutex_lock(&loading);
  *out = __atomic_load_n(&s->function[number], __ATOMIC_ACQUIRE);
  if (!*out && !(status = load_module(s, &kernels[number], &module, &f))) {
    s->module[number] = module;
    __atomic_store_n(&s->function[number], f, __ATOMIC_RELEASE);
    *out = f;
  }
  pthread_mutex_unlock(&loading);
  return status;
}

static int kernel_of(Slot *s, int number, Handle *out) {
  *out = __atomic_load_n(&s->function[number], __ATOMIC_ACQUIRE);
  return *out ? BUN_OK : load_kernel(s, number, out);
}

const char *bun_arch(void) {
  Slot *s;
  return current_slot(&s) ? NULL : archs[s->arch].name;
}

int bun_load(void) {
  Slot *s;
  Handle f;
  int status = current_slot(&s);
  for (int i = 0; !status && i < BUN_ENTRIES; i++)
    for (int j = 0; j < entries[i].variants; j++) {
      const Variant *v = &entries[i].variant[j];
      for (int k = 0; !status && v->arch == s->arch && k < v->steps; k++)
        if (v->step[k].kernel >= 0)
          status = kernel_of(s, v->step[k].kernel, &f);
    }
  return status;
}

int bun_unload(void) {
  Slot *s;
  int status = current_slot(&s), r = 0;
  if (status) return status;
  pthread_mutex_lock(&loading);
  for (int i = 0; i < BUN_KERNELS; i++) {
    if (!s->module[i]) continue;
    __atomic_store_n(&s->function[i], NULL, __ATOMIC_RELEASE);
    int one = api.cuModuleUnload(s->module[i]);
    if (!r) r = one;
    s->module[i] = NULL;
  }
  pthread_mutex_unlock(&loading);
  return r ? driver_error(r, "cuModuleUnload", "bun_unload") : BUN_OK;
}

// ---- checks of tensors ----

// Returns the bytes that a tensor spans, from its first element on; at most
// 2^60, also if there are more.
static uint64_t span_of(const bun_tensor *t, int bits) {
  const uint64_t most = UINT64_C(1) << 56;
  uint64_t last = 0, far;
  for (int i = 0; i < t->rank; i++) {
    if (t->extent[i] <= 0) return 0;
    if (__builtin_mul_overflow((uint64_t)(t->extent[i] - 1),
                               (uint64_t)t->stride[i], &far) ||
        __builtin_add_overflow(last, far, &last) || last > most)
      return most << 4;
  }
  return ((last + 1) * (uint64_t)bits + 7) / 8;
}

// Checks an extent (what = 0) or stride (1) of tensor number `of`.
static int check_value(const Entry *e, int of, int what, int mode, int64_t is,
                       int64_t want, int64_t div) {
  static const char *const word[] = {"extent", "stride"};
  int status = what ? BUN_E_STRIDE : BUN_E_EXTENT;
  const char *name = e->tensor[of].name;
  if (!div && is == want) return BUN_OK;
  if (!div)
    return fail(status, "%s: tensor %s: %s %d is %lld; %lld is needed", e->name,
                name, word[what], mode, (long long)is, (long long)want);
  if (is < 0 || is > (what ? INT64_C(0x7fffffffffff) : INT32_MAX))
    return fail(status, "%s: tensor %s: %s %d is %lld; 0 to %s is possible",
                e->name, name, word[what], mode, (long long)is,
                what ? "2^47 - 1" : "2^31 - 1");
  if (is % div == 0) return BUN_OK;
  return fail(status, "%s: tensor %s: %s %d is %lld; a multiple of %lld is "
              "needed", e->name, name, word[what], mode, (long long)is,
              (long long)div);
}

// Returns formula number k for size m, or `plain` if k is 0.
static int64_t computed(int k, int64_t m, int64_t plain) {
  if (!k) return plain;
  const Formula *f = &formulas[k - 1];
  return f->a + f->b * ((f->c * m + f->d - 1) / f->d);
}

// Checks whether a tensor is what a variant wants as tensor number `of` of a
// call of size m.
static int check_tensor(const Entry *e, int of, const bun_tensor *t,
                        const Want *w, int64_t m) {
  int status = BUN_OK, bits = e->tensor[of].bits;
  const char *name = e->tensor[of].name;
  if (t->rank != w->rank)
    return fail(BUN_E_RANK, "%s: tensor %s has %d modes; %d are needed",
                e->name, name, (int)t->rank, w->rank);
  for (int i = 0; i < w->rank && !status; i++)
    status = check_value(e, of, 0, i, t->extent[i],
                         computed(w->mode[i].extent_by, m, w->mode[i].extent),
                         w->mode[i].extent_div);
  for (int i = 0; i < w->rank && !status; i++)
    if (t->extent[i] != 1)
      status = check_value(e, of, 1, i, t->stride[i],
                           computed(w->mode[i].stride_by, m,
                                    w->mode[i].stride),
                           w->mode[i].stride_div);
  if (status) return status;
  if (!w->wide && span_of(t, bits) * 8 / (uint64_t)bits > INT32_MAX)
    return fail(BUN_E_EXTENT, "%s: tensor %s spans more than 2^31 - 1 elements",
                e->name, name);
  if ((uintptr_t)t->data & ((uintptr_t)w->align - 1))
    return fail(BUN_E_ALIGN, "%s: tensor %s: its address %p is not aligned to "
                "%d bytes", e->name, name, t->data, w->align);
  return BUN_OK;
}

static int64_t dimension(const bun_tensor *t, int mode, int what) {
  return what ? t->stride[mode] : t->extent[mode];
}

static int check_equal(const Entry *e, const bun_tensor *const *t,
                       const Equal *q) {
  static const char *const word[] = {"extent", "stride"};
  int64_t a = dimension(t[q->a], q->mode_a, q->what_a);
  int64_t b = dimension(t[q->b], q->mode_b, q->what_b);
  if (a == b || (q->what_a && t[q->a]->extent[q->mode_a] == 1) ||
      (q->what_b && t[q->b]->extent[q->mode_b] == 1))
    return BUN_OK;
  return fail(q->what_a ? BUN_E_STRIDE : BUN_E_EXTENT, "%s: %s %d of %s is "
              "%lld and %s %d of %s is %lld; they must be equal", e->name,
              word[q->what_a], q->mode_a, e->tensor[q->a].name, (long long)a,
              word[q->what_b], q->mode_b, e->tensor[q->b].name, (long long)b);
}

// Returns the size of a call, or 0 for a variant without sizes.
static int64_t size_of(const Variant *v, const bun_tensor *const *t) {
  return v->size.of < 0 ? 0 : t[v->size.of]->extent[v->size.mode];
}

// Checks whether a variant takes the size of a call.
static int check_size(const Entry *e, const Variant *v,
                      const bun_tensor *const *t) {
  const Sizes *s = &v->size;
  if (s->of < 0) return BUN_OK;
  const char *name = e->tensor[s->of].name;
  if (t[s->of]->rank <= s->mode)
    return fail(BUN_E_RANK, "%s: tensor %s has %d modes; %d are needed",
                e->name, name, (int)t[s->of]->rank, v->want[s->of].rank);
  int64_t m = size_of(v, t);
  if (m >= s->first && m <= s->last && (m - s->first) % s->step == 0)
    return BUN_OK;
  return fail(BUN_E_EXTENT, "%s: tensor %s: extent %d is %lld; %lld to %lld in "
              "steps of %lld are possible", e->name, name, s->mode,
              (long long)m, (long long)s->least, (long long)s->most,
              (long long)s->step);
}

// Reports whether a tensor is exactly what a variant with static extents wants,
// for most calls instead of check_tensor.
static int is_exact(const bun_tensor *t, const Want *w) {
  if (t->rank != w->rank || !w->exact ||
      ((uintptr_t)t->data & ((uintptr_t)w->align - 1)))
    return 0;
  for (int i = 0; i < w->rank; i++)
    if (t->extent[i] != w->mode[i].extent || t->stride[i] != w->mode[i].stride)
      return 0;
  return 1;
}

// Checks whether a variant takes the tensors. Sets *fit to the number of
// tensors that it takes.
static int check_variant(const Entry *e, const Variant *v,
                         const bun_tensor *const *t, int *fit) {
  *fit = 0;
  int status = check_size(e, v, t);
  if (status) return status;
  for (int i = 0; i < e->tensors; i++) {
    if (is_exact(t[i], &v->want[i])) continue;
    *fit = i;
    status = check_tensor(e, i, t[i], &v->want[i], size_of(v, t));
    if (status) return status;
  }
  *fit = e->tensors;
  for (int i = 0; i < v->equals && !status; i++)
    status = check_equal(e, t, &v->equal[i]);
  return status;
}

// Checks the properties of tensors that all variants need.
static int check_all(const Entry *e, const bun_tensor *const *t) {
  for (int i = 0; i < e->tensors; i++) {
    const char *name = e->tensor[i].name;
    if (!t[i])
      return fail(BUN_E_NULL, "%s: tensor %s is NULL", e->name, name);
    if (t[i]->dtype != e->tensor[i].dtype)
      return fail(BUN_E_DTYPE, "%s: tensor %s has type %s; %s is needed",
                  e->name, name, dtype_name(t[i]->dtype),
                  dtype_name(e->tensor[i].dtype));
    if (t[i]->rank < 1 || t[i]->rank > BUN_RANK)
      return fail(BUN_E_RANK, "%s: tensor %s has %d modes; 1 to %d are "
                  "possible", e->name, name, (int)t[i]->rank, BUN_RANK);
    if (!t[i]->data && span_of(t[i], e->tensor[i].bits))
      return fail(BUN_E_NULL, "%s: the address of tensor %s is NULL", e->name,
                  name);
  }
  return BUN_OK;
}

static int check_apart(const Entry *e, const bun_tensor *const *t) {
  for (int i = 0; i < e->aparts; i++) {
    int a = e->apart[i][0], b = e->apart[i][1];
    uintptr_t x = (uintptr_t)t[a]->data, y = (uintptr_t)t[b]->data;
    if (x < y ? y - x < span_of(t[a], e->tensor[a].bits)
              : x - y < span_of(t[b], e->tensor[b].bits))
      return fail(BUN_E_OVERLAP, "%s: tensors %s and %s share memory", e->name,
                  e->tensor[a].name, e->tensor[b].name);
  }
  return BUN_OK;
}

static int careful;  // the last argument of bun_careful

void bun_careful(int on) { __atomic_store_n(&careful, on, __ATOMIC_RELAXED); }

// Checks whether n bytes from an address on are memory of a context's GPU.
static int check_memory(const Entry *e, const Slot *s, const char *name,
                        const void *data, uint64_t n) {
  unsigned long long at = (unsigned long long)(uintptr_t)data, base = 0;
  size_t size = 0;
  int device = -1;
  if (!n || !api.cuPointerGetAttribute || !api.cuMemGetAddressRange_v2)
    return BUN_OK;
  // 9: CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  if (api.cuPointerGetAttribute(&device, 9, at))
    return fail(BUN_E_DEVICE, "%s: %s: its address %p is not memory of a GPU",
                e->name, name, data);
  if (device != s->device)
    return fail(BUN_E_DEVICE, "%s: %s is in memory of GPU %d, but the current "
                "context is of GPU %d", e->name, name, device, s->device);
  if (!api.cuMemGetAddressRange_v2(&base, &size, at) && at - base + n > size)
    return fail(BUN_E_DEVICE, "%s: %s needs %llu bytes, but its memory ends "
                "after %llu", e->name, name, (unsigned long long)n,
                (unsigned long long)(size - (at - base)));
  return BUN_OK;
}

static int check_memories(const Entry *e, const Slot *s,
                          const bun_tensor *const *t, const void *work,
                          size_t bytes) {
  int status = check_memory(e, s, "the workspace", work, bytes);
  for (int i = 0; i < e->tensors && !status; i++)
    status = check_memory(e, s, e->tensor[i].name, t[i]->data,
                          span_of(t[i], e->tensor[i].bits));
  return status;
}

// Reports whether the size of a call is among those of a variant, as far as the
// first and last one tell.
static int in_range(const Variant *v, const bun_tensor *const *t) {
  const Sizes *s = &v->size;
  if (s->of < 0 || t[s->of]->rank <= s->mode) return 1;
  int64_t m = t[s->of]->extent[s->mode];
  return m >= s->first && m <= s->last;
}

// Describes why no variant for an architecture takes the tensors: the fault in
// the variant that takes most of them.
static int no_variant(const Entry *e, int arch, const bun_tensor *const *t) {
  int tried = 0, best = -1, fit = 0, status = BUN_OK;
  char text[sizeof error_text];
  for (int i = 0; i < e->variants; i++) {
    if (e->variant[i].arch != arch) continue;
    int own = check_variant(e, &e->variant[i], t, &fit);
    tried++;
    if (fit <= best) continue;
    best = fit;
    status = own;
    memcpy(text, error_text, sizeof text);
  }
  if (!tried)
    return fail(BUN_E_NO_CUBIN, "%s has no kernel for %s", e->name,
                archs[arch].name);
  memcpy(error_text, text, sizeof text);
  size_t n = strlen(error_text);
  if (tried > 1)
    snprintf(error_text + n, sizeof error_text - n, " (by the most similar of "
             "%d specialisations)", tried);
  return status;
}

// Finds the variant for the tensors on an architecture.
static int find_variant(const Entry *e, int arch, const bun_tensor *const *t,
                        const Variant **out) {
  int status = check_all(e, t), fit, other = BUN_E_NO_CUBIN;
  if (status) return status;
  quiet = 1;
  for (int i = 0; i < e->variants && other; i++) {
    *out = &e->variant[i];
    if ((*out)->arch == arch && in_range(*out, t))
      other = check_variant(e, *out, t, &fit);
  }
  quiet = 0;
  return other ? no_variant(e, arch, t) : check_apart(e, t);
}

// ---- launches ----

// A tensor map that this thread encoded, for an address and a call of a size.
// used: the launch that used the map last.
typedef struct Encoded {
  TensorMap map;
  const Map *of;
  uint64_t address, used;
  int64_t size;
} Encoded;
// The tensor maps of this thread in sets, selected by address. A set has more
// maps than a launch, so that it can keep those of the current launch.
enum { SETS = 8, WAYS = BUN_MAPS < 4 ? 4 : BUN_MAPS };
static THREAD Encoded encoded[SETS][WAYS];
static THREAD uint64_t launch_number;

static int encode(const Entry *e, const Map *m, Encoded *k) {
  int r;
  uint64_t extent[5], stride[4];
  for (int i = 0; i < 5; i++)
    extent[i] = (uint64_t)computed(m->extent_by[i], k->size,
                                   (int64_t)m->extent[i]);
  for (int i = 0; i < 4; i++)
    stride[i] = (uint64_t)computed(m->stride_by[i], k->size,
                                   (int64_t)m->stride[i]);
  k->of = NULL;
  void *at = (void *)(uintptr_t)k->address;
  if (m->im2col ? !api.cuTensorMapEncodeIm2col : !api.cuTensorMapEncodeTiled)
    return fail(BUN_E_NO_DRIVER, "%s: this driver has no tensor maps",
                e->name);
  if (m->im2col)
    r = api.cuTensorMapEncodeIm2col(&k->map, m->type, (unsigned)m->rank, at,
      extent, stride, m->lower, m->upper, m->channels, m->pixels,
      m->step, m->interleave, m->swizzle, m->l2, m->fill);
  else
    r = api.cuTensorMapEncodeTiled(&k->map, m->type, (unsigned)m->rank, at,
      extent, stride, m->box, m->step, m->interleave, m->swizzle, m->l2,
      m->fill);
  if (r) return driver_error(r, "cuTensorMapEncodeTiled", e->name);
  k->of = m;
  return BUN_OK;
}

// Finds the tensor map m for an address and a call of a size, or encodes it in
// place of the one that was not used for the longest time.
static int map_of(const Entry *e, const Map *m, uint64_t address, int64_t size,
                  void **out) {
  unsigned set = (unsigned)((address >> 8 ^ address >> 16 ^
                             (uint64_t)(m - maps)) % SETS);
  Encoded *oldest = encoded[set];
  for (int i = 0; i < WAYS; i++) {
    Encoded *k = &encoded[set][i];
    if (k->of == m && k->address == address && k->size == size) {
      k->used = launch_number;
      *out = &k->map;
      return BUN_OK;
    }
    if (k->used < oldest->used) oldest = k;
  }
  oldest->address = address;
  oldest->size = size;
  oldest->used = launch_number;
  *out = &oldest->map;
  return encode(e, m, oldest);
}

// The parameters of a launch.
typedef struct Parameters {
  uint64_t word[BUN_VALUES];
  void *at[BUN_VALUES + 1];
} Parameters;

static int set_parameters(const Entry *e, const Step *p,
                          const bun_tensor *const *t, const uint64_t *x,
                          int64_t size, const char *work, Parameters *out) {
  launch_number++;
  for (int i = 0; i < p->values; i++) {
    const Value *v = &p->value[i];
    int is_work = v->kind == WORK || v->kind == WORK_MAP;
    uint64_t at = (uint64_t)v->n;
    out->at[i] = &out->word[i];
    switch (v->kind) {
      case POINTER: case MAP: case WORK: case WORK_MAP:
        at += (uint64_t)(uintptr_t)(is_work ? work : t[v->of]->data);
        if (v->kind == MAP || v->kind == WORK_MAP) {
          int status = map_of(e, &maps[v->map], at, size, &out->at[i]);
          if (status) return status;
        }
        break;
      case NUMBER: at = x[v->of]; break;
      case COMPUTED: at = (uint64_t)computed((int)v->n, size, 0); break;
      case EXTENT: at = (uint64_t)t[v->of]->extent[v->mode]; break;
      case STRIDE:
        at = t[v->of]->extent[v->mode] == 1
               ? 0 : (uint64_t)t[v->of]->stride[v->mode];
        break;
      default: break;
    }
    out->word[i] = at;
  }
  return BUN_OK;
}

static int check_grid(const Entry *e, const Step *p, const int64_t *g) {
  for (int i = 0; i < 3; i++) {
    if (g[i] < 0 || g[i] > (i ? 65535 : INT32_MAX))
      return fail(BUN_E_GRID, "%s: a grid of %lld blocks along %c is "
                  "impossible", e->name, (long long)g[i], "xyz"[i]);
    if (p->cluster[i] > 1 && g[i] % p->cluster[i])
      return fail(BUN_E_GRID, "%s: a grid of %lld blocks along %c is not a "
                  "multiple of the cluster's %u", e->name, (long long)g[i],
                  "xyz"[i], p->cluster[i]);
  }
  return BUN_OK;
}

// Returns the configuration of a launch; a[3] receives its attributes.
static Config config_of(const Step *p, const int64_t *g, bun_stream stream,
                        Attribute *a) {
  unsigned n = 0;
  const unsigned *b = p->block, *c = p->cluster;
  unsigned smem = (unsigned)kernels[p->kernel].smem;
  memset(a, 0, 3 * sizeof *a);
  if (c[0] * c[1] * c[2] > 1) {
    a[n].id = 4;  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    memcpy(a[n++].value.cluster, c, 3 * sizeof *c);
  }
  if (p->flags & PDL) {
    a[n].id = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    a[n++].value.flag = 1;
  }
  if (p->flags & COOPERATIVE) {
    a[n].id = 2;  // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    a[n++].value.flag = 1;
  }
  Config config = {{(unsigned)g[0], (unsigned)g[1], (unsigned)g[2]},
                   {b[0], b[1], b[2]}, smem, stream, a, n};
  return config;
}

static int submit(const Step *p, const int64_t *g, Handle f, void **at,
                  bun_stream stream) {
  const unsigned *b = p->block, *c = p->cluster;
  if (!p->flags && c[0] * c[1] * c[2] == 1)
    return api.cuLaunchKernel(f, (unsigned)g[0], (unsigned)g[1],
                              (unsigned)g[2], b[0], b[1], b[2],
                              (unsigned)kernels[p->kernel].smem, stream, at,
                              NULL);
  Attribute a[3];
  Config config = config_of(p, g, stream, a);
  return api.cuLaunchKernelEx(&config, f, at, NULL);
}

// Checks that a grid whose blocks wait for each other runs at once on the GPU.
// A larger grid than the script's GPU runs at once cannot wait so. The answer
// of the driver is kept with the kernel.
static int check_together(const Entry *e, const Step *p, const int64_t *g,
                          Slot *s, Handle f) {
  int most = __atomic_load_n(&s->together[p->kernel], __ATOMIC_RELAXED);
  int64_t blocks = g[0] * g[1] * g[2];
  if (blocks > p->together || blocks <= most) return BUN_OK;
  const unsigned *b = p->block, *c = p->cluster;
  int size = (int)(c[0] * c[1] * c[2]), n = 0, sms = 0, r;
  if (size > 1 ? !api.cuOccupancyMaxActiveClusters
               : !api.cuOccupancyMaxActiveBlocksPerMultiprocessor)
    return BUN_OK;
  if (size > 1) {
    Attribute a[3];
    Config config = config_of(p, g, NULL, a);
    r = api.cuOccupancyMaxActiveClusters(&n, f, &config);
    most = n * size;
  } else {
    r = api.cuDeviceGetAttribute(&sms, 16, s->device);
    if (!r)
      r = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f,
        (int)(b[0] * b[1] * b[2]), (size_t)kernels[p->kernel].smem);
    most = n * sms;
  }
  if (r) return driver_error(r, "cuOccupancy", e->name);
  __atomic_store_n(&s->together[p->kernel], most, __ATOMIC_RELAXED);
  if (blocks <= most) return BUN_OK;
  return fail(BUN_E_LIMIT, "%s: the %lld blocks of kernel %s wait for each "
              "other, and this GPU runs %d of them at once", e->name,
              (long long)blocks, kernels[p->kernel].name, most);
}

// Describes a launch that the driver refused. The kernel is that of the current
// context, so an invalid handle (400) is the stream's.
static int refused(const Entry *e, int r, bun_stream stream) {
  if (r == 400 && stream)
    return fail(BUN_E_STREAM, "%s: the stream was destroyed, or belongs to "
                "another context than the current one", e->name);
  return driver_error(r, "cuLaunchKernel", e->name);
}

// Loads the kernel of a step, computes its grid g and checks both.
static int look_at(const Entry *e, const Step *p, Slot *s,
                   const bun_tensor *const *t, const uint64_t *x, int64_t size,
                   int64_t *g, Handle *f) {
  int status = BUN_OK;
  for (int i = 0; i < 3; i++) g[i] = p->grid[i];
  if (p->computed) {
    for (int i = 0; i < 3; i++) g[i] = computed(p->grid_by[i], size, g[i]);
    if (p->grid_of) p->grid_of(t, x, g);
    status = check_grid(e, p, g);
  }
  if (!status) status = kernel_of(s, p->kernel, f);
  if (!status && p->together) status = check_together(e, p, g, s, *f);
  if (!status && !api.cuLaunchKernelEx &&
      (p->flags || p->cluster[0] * p->cluster[1] * p->cluster[2] > 1))
    status = fail(BUN_E_NO_DRIVER, "%s: this driver cannot launch clusters",
                  e->name);
  return status;
}

static int run_step(const Entry *e, const Step *p, Slot *s,
                    const bun_tensor *const *t, const uint64_t *x,
                    int64_t size, char *work, bun_stream stream) {
  int r;
  if (p->kernel < 0) {
    r = api.cuMemsetD8Async((unsigned long long)(uintptr_t)(work + p->at), 0,
                            p->n, stream);
    return r ? refused(e, r, stream) : BUN_OK;
  }
  Handle f;
  Parameters list;
  int64_t g[3];
  int status = look_at(e, p, s, t, x, size, g, &f);
  if (status || !g[0] || !g[1] || !g[2]) return status;
  status = set_parameters(e, p, t, x, size, work, &list);
  if (status) return status;
  r = submit(p, g, f, list.at, stream);
  return r ? refused(e, r, stream) : BUN_OK;
}

// Checks all steps of a call with several, so that none is launched alone.
static int check_steps(const Entry *e, const Variant *v, Slot *s,
                       const bun_tensor *const *t, const uint64_t *x) {
  Handle f;
  int64_t g[3];
  int status = BUN_OK;
  for (int i = 0; i < v->steps && !status; i++)
    if (v->step[i].kernel >= 0)
      status = look_at(e, &v->step[i], s, t, x, size_of(v, t), g, &f);
  return status;
}

static int launch(uint64_t version, const Entry *e, const bun_tensor *const *t,
                  const uint64_t *x, void *work, size_t bytes,
                  bun_stream stream) {
  Slot *s;
  const Variant *v;
  if (version != BUN_VERSION)
    return fail(BUN_E_VERSION, "%s: the program was compiled with the header "
                "of another version of this bundle", e->name);
  int status = current_slot(&s);
  if (!status) status = find_variant(e, s->arch, t, &v);
  if (status) return status;
  if (v->work && !work)
    return fail(BUN_E_NULL, "%s: the workspace is NULL", e->name);
  if (bytes < v->work)
    return fail(BUN_E_WORKSPACE, "%s: the workspace has %zu bytes; %zu are "
                "needed", e->name, bytes, v->work);
  if (v->work && (uintptr_t)work % 256)
    return fail(BUN_E_ALIGN, "%s: the workspace is not aligned to 256 bytes",
                e->name);
  if (__atomic_load_n(&careful, __ATOMIC_RELAXED))
    status = check_memories(e, s, t, work, v->work);
  if (!status && v->steps > 1) status = check_steps(e, v, s, t, x);
  for (int i = 0; i < v->steps && !status; i++)
    status = run_step(e, &v->step[i], s, t, x, size_of(v, t), (char *)work,
                      stream);
  return status;
}
]==]

--- The C function `workspace`, for bundles with functions that need a
-- workspace.
runtime.workspace = [==[
static int workspace(uint64_t version, const Entry *e,
                     const bun_tensor *const *t, size_t *bytes) {
  Slot *s;
  const Variant *v;
  if (version != BUN_VERSION)
    return fail(BUN_E_VERSION, "%s: the program was compiled with the header "
                "of another version of this bundle", e->name);
  int status = current_slot(&s);
  if (!status) status = find_variant(e, s->arch, t, &v);
  *bytes = status ? 0 : v->work;
  return status;
}
]==]

return runtime
-- SPDX-License-Identifier: MIT
