// Calls from XLA programs, such as those that jax.jit compiles: a handler of
// XLA's foreign function interface passes the program's buffers to a Lua
// function. The interface consists of C structures, and XLA passes the
// addresses of its functions with each call. Therefore this file needs neither
// a header nor a library of XLA.
#include "library/xla.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "library/python.h"

// ---- the interface ----

// Most structures begin with a Head: the size in bytes and a list of
// extensions.
typedef struct Extension {
  size_t size;
  int type;  // 1: Metadata
  struct Extension *next;
} Extension;
typedef struct Head {
  size_t size;
  Extension *extensions;
} Head;

typedef struct Version {
  Head head;
  int major, minor;
} Version;

// The data that XLA requests when a handler is registered.
typedef struct Metadata {
  Extension head;
  struct {
    size_t size;
    Version version;
    uint32_t traits;  // 0: none
    int64_t state_type;
  } *out;
} Metadata;

typedef struct Buffer {
  Head head;
  int type;
  void *data;
  int64_t rank, *shape;
} Buffer;

// The arguments or the results of a call. kinds[i] is 1 if list[i] is a Buffer.
typedef struct Buffers {
  Head head;
  int64_t n;
  int *kinds;
  Buffer **list;
} Buffers;

typedef struct Text {
  const char *p;
  size_t n;
} Text;
typedef struct Scalar {
  int type;
  void *value;
} Scalar;

// Named constants of the program. kinds[i] is 3 if list[i] is a Scalar.
typedef struct Attributes {
  Head head;
  int64_t n;
  int *kinds;
  Text **names;
  void **list;
} Attributes;

typedef struct Error Error;
typedef struct NewError {
  Head head;
  const char *message;
  int code;
} NewError;
typedef struct StreamOf {
  Head head;
  void *context, *stream;
} StreamOf;
typedef struct DeviceOf {
  Head head;
  void *context;
  int32_t ordinal;
} DeviceOf;

typedef struct Api {
  Head head;
  Version version;
  void *internal;
  Error *(*new_error)(NewError *);
  void *others[3];
  Error *(*stream)(StreamOf *);
  void *more[12];
  Error *(*device)(DeviceOf *);
} Api;

typedef struct Frame {
  Head head;
  const Api *api;
  void *context;
  int stage;  // 3: execution
  Buffers in, out;
  Attributes attributes;
  void *future;
} Frame;

enum { METADATA = 1, BUFFER = 1, SCALAR = 3, S64 = 5, EXECUTION = 3,
       MAJOR = 0, MINOR = 3, INVALID = 3, FAILED = 13 };

// DLPack's code and bits of each of XLA's element types.
static const struct { uint8_t code, bits; } types[] = {
  [1] = {DL_BOOL, 8}, [2] = {DL_INT, 8}, [3] = {DL_INT, 16}, [4] = {DL_INT, 32},
  [5] = {DL_INT, 64}, [6] = {DL_UINT, 8}, [7] = {DL_UINT, 16},
  [8] = {DL_UINT, 32}, [9] = {DL_UINT, 64}, [10] = {DL_FLOAT, 16},
  [11] = {DL_FLOAT, 32}, [12] = {DL_FLOAT, 64}, [16] = {DL_BFLOAT, 16},
  [19] = {DL_E5M2, 8}, [20] = {DL_E4M3FN, 8}, [33] = {DL_E8M0FNU, 8}};
enum { TYPES = sizeof types / sizeof *types };

// ---- a call ----

// Identifies this process. A program that another process compiled must not run
// here, because it contains the address of a state of that process.
static uint64_t process;

static Error *fail(const Frame *f, int code, const char *message) {
  NewError e = {{sizeof e, NULL}, message, code};
  return f->api->new_error(&e);
}

static int64_t attribute(const Frame *f, const char *name) {
  const Attributes *a = &f->attributes;
  for (int64_t i = 0; i < a->n; i++) {
    const Scalar *s = a->list[i];
    if (a->kinds[i] == SCALAR && a->names[i]->n == strlen(name) &&
        memcmp(a->names[i]->p, name, a->names[i]->n) == 0 && s->type == S64)
      return *(const int64_t *)s->value;
  }
  return 0;
}

static void keep(DLManagedTensorVersioned *m) { (void)m; }

// Returns the reason why the buffers of a list cannot be passed to a function,
// or NULL.
static const char *unfit(const Buffers *list) {
  if (list->n < 0 || list->n > INT_MAX)
    return "cutelua: the number of arrays is wrong";
  for (int64_t i = 0; i < list->n; i++) {
    const Buffer *b = list->list[i];
    if (list->kinds[i] != BUFFER || b->type < 0 || b->type >= TYPES ||
        !types[b->type].bits)
      return "cutelua: an array has elements of a type that tensors cannot "
             "have";
    if (b->rank < 0 || b->rank > DLPACK_RANK)
      return "cutelua: an array has more than 64 modes";
  }
  return NULL;
}

// Describes the buffers of a list as managed tensors m[0], m[1], ... Returns
// the number of buffers.
static int64_t describe(const Buffers *from, DLDevice device, uint64_t flags,
                        DLManagedTensorVersioned *m) {
  for (int64_t i = 0; i < from->n; i++) {
    const Buffer *b = from->list[i];
    m[i] = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR, DLPACK_MINOR}, .deleter = keep, .flags = flags,
      .t = {.data = b->data, .device = device, .ndim = (int32_t)b->rank,
            .dtype = {types[b->type].code, types[b->type].bits, 1},
            .shape = b->shape}};
  }
  return from->n;
}

static Error *execute(const Frame *f, DLDevice device, void *stream) {
  if (f->head.size < offsetof(Frame, future) || f->api->version.major != MAJOR)
    return fail(f, INVALID, "cutelua: this version of XLA's interface is not "
                "supported");
  if ((uint64_t)attribute(f, "process") != process)
    return fail(f, INVALID, "cutelua: another process compiled the program");
  cutelua_state *state = (cutelua_state *)(intptr_t)attribute(f, "state");
  if (!state) return fail(f, INVALID, "cutelua: the call names no function");
  const char *wrong = unfit(&f->in);
  if (!wrong) wrong = unfit(&f->out);
  if (wrong) return fail(f, INVALID, wrong);
  DLManagedTensorVersioned *m =
    calloc((size_t)(f->in.n + f->out.n + 1), sizeof *m);
  if (!m) return fail(f, FAILED, "cutelua: out of memory");
  int64_t n = describe(&f->in, device, DL_READ_ONLY, m);
  n += describe(&f->out, device, 0, m + n);
  char *message = python_run(state, (cutelua_ref)attribute(f, "number"), m,
                             (size_t)n, stream);
  Error *e = message ? fail(f, FAILED, message) : NULL;
  free(message);
  free(m);
  return e;
}

// Handles a request of XLA other than to execute a call. Returns false if XLA
// requests the execution.
static bool answers(const Frame *f) {
  const Extension *x = f->head.extensions;
  if (x && x->type == METADATA) {
    const Metadata *asked = (const void *)x;
    Version *v = &asked->out->version;
    // Versions 0.1 to 0.3 have the same fields. Report the older one of XLA's
    // version and 0.3; XLA decides whether it accepts that. Version 0.1 makes
    // this request without passing its functions.
    int theirs = f->api ? f->api->version.minor : 1;
    v->major = MAJOR;
    v->minor = theirs < MINOR ? theirs : MINOR;
    asked->out->traits = 0;
    return true;
  }
  return f->stage != EXECUTION;
}

static Error *on_cpu(Frame *f) {
  if (answers(f)) return NULL;
  return execute(f, (DLDevice){DL_CPU, 0}, NULL);
}

static Error *on_gpu(Frame *f) {
  if (answers(f)) return NULL;
  const Api *api = f->api;
  if (api->head.size < sizeof *api)
    return fail(f, INVALID, "cutelua: this version of JAX does not name the "
                "GPU of a call");
  StreamOf s = {{sizeof s, NULL}, f->context, NULL};
  Error *e = api->stream(&s);
  if (e) return e;
  DeviceOf d = {{sizeof d, NULL}, f->context, 0};
  if ((e = api->device(&d)) != NULL) return e;
  return execute(f, (DLDevice){DL_CUDA, d.ordinal}, s.stream);
}

// ---- registration ----

void *cutelua_xla_handler(int gpu, uint64_t token) {
  Error *(*handler)(Frame *) = gpu ? on_gpu : on_cpu;
  void *p;
  process = token;
  memcpy(&p, &handler, sizeof p);
  return p;
}
// SPDX-License-Identifier: MIT
