// A fake CUDA driver, which uses host memory and knows three kernels by name.
// Specs build it as libcuda.so.1. Without a GPU, they use it to show that every
// handle is returned exactly once, that a dead context is replaced, and how
// failing calls are reported.
//   axpy(float *y, const float *x, float a, int n, long long shift)
//   bad...()  makes the context fail as an illegal address does
//   refused() cannot be launched
// Any other kernel does nothing. Two events are 2 ms apart, plus 1 ms for each
// element of an axpy between them.
//   FAKE_LOST  after a fault, no new context can be created
//   FAKE_FAIL  "cuMemcpyHtoD_v2 2": the second call of that function fails
//   FAKE_SAY   prints buffers, copies and waits on standard error
//   FAKE_PTX   prints PTX that is loaded; PTX with the word newest is rejected
//   FAKE_PARAMS  prints the first words of the parameters of launches
//   FAKE_GPUS  number of GPUs
//   FAKE_CUDA  the driver's version of CUDA (13000 if absent)
//   FAKE_MEMORY  bytes of memory of the GPU (1 MiB if absent). If it is set, no
//              operation writes memory, so the host needs less memory.
//   FAKE_INIT  milliseconds that the first cuInit takes, after which "init" is
//              printed on standard error
//   FAKE_CONTEXT  milliseconds that it takes to create a context, after which
//              "context" is printed on standard error
//   FAKE_STOP  the process ends at the first launch
//   FAKE_LATE  work runs only when something waits for it. Of the work that
//              may run, the latest runs first, which reveals missing order.
// If FAKE_CLUSTERS is defined, the GPU is an sm_90. At the end of the process,
// the driver prints the handles that were not released.
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cudaapi.h"

typedef struct Handle {
  struct Handle *next;
  int context;  // number of the context that owns the handle
  char kind, name[31];
  _Alignas(256) char data[];
} Handle;

static Handle *handles;
static int context, contexts, retained, sticky;
static int count;  // variable of each module: the number of axpy launches
// number of elements that all launches of axpy together have processed
static long work;
static int lost;  // with FAKE_LOST set: the error of all further calls
static int capturing;  // number of streams that are being captured

// Makes driver function f return an error if f must fail now.
#define CALLED(f) if (sticky || fails(#f)) return sticky ? sticky : 999

static int fails(const char *name) {
  static int left = -1;
  const char *which = getenv("FAKE_FAIL");
  size_t n = strlen(name);
  if (!which || strncmp(which, name, n) != 0 || which[n] != ' ') return 0;
  if (left < 0) left = atoi(which + n);
  return --left == 0;
}

static void say(const char *what, size_t n) {
  if (getenv("FAKE_SAY")) fprintf(stderr, "%s %zu\n", what, n);
}

// Makes a handle. The bytes after its head are 0; for memory (kind 'm'), only
// if FAKE_MEMORY is not set.
static void *make(char kind, size_t size) {
  size_t all = (sizeof(Handle) + size + 255) / 256 * 256;
  Handle *h = aligned_alloc(256, all);
  memset(h, 0, kind == 'm' && getenv("FAKE_MEMORY") ? sizeof *h : all);
  h->kind = kind;
  h->context = context;
  h->next = handles;
  handles = h;
  return h->data;
}

static Handle *find(const void *p) {
  for (Handle *h = handles; h; h = h->next)
    if (h->data == (const char *)p) return h;
  fprintf(stderr, "fakecuda: a handle that is none\n");
  exit(9);
}

static void drop_ops(void *graph);

static CUresult drop(const void *p, char kind) {
  for (Handle **h = &handles; *h; h = &(*h)->next) {
    if ((*h)->data != (const char *)p || (*h)->kind != kind) continue;
    Handle *dead = *h;
    *h = dead->next;
    if (kind == 'g' || kind == 'x') drop_ops(dead->data);
    free(dead);
    return CUDA_SUCCESS;
  }
  fprintf(stderr, "fakecuda: freed a handle that is none\n");
  exit(9);
}

static void forget(void);

__attribute__((destructor)) static void report(void) {
  forget();
  for (Handle *h = handles; h; h = h->next)
    fprintf(stderr, "fakecuda: still held: %c\n", h->kind);
  if (retained) fprintf(stderr, "fakecuda: context still held\n");
}

// ---- work ----

typedef struct Stream {
  unsigned flags;
  struct Graph *graph;  // graph that captures the stream, or NULL
} Stream;

typedef struct Event {
  long work;
  struct Op *op;        // operation that records the event, or NULL
  struct Graph *graph;  // graph in which the event was recorded
} Event;

// An operation: a copy of bytes, a fill with a word, an axpy, the recording of
// an event, or a wait for an event.
typedef struct Op {
  struct Op *next;
  int done, context;
  char kind;  // 'c' copy, 'f' fill, 'k' kernel, 'e' event, 'w' wait
  Stream *stream;
  char *to, *from, *own;  // own: a copy of the source bytes, made at submission
  size_t n, size;
  unsigned long long word;
  float a;
  long long shift;
  Event *event;
  const char *pinned;  // host memory that must stay pinned during a copy
  struct Op *before;  // for a wait: the operation that recorded the event
} Op;

typedef struct Graph {
  Op *first, *last;
  size_t n;
  int broken;
} Graph;

static Op *queue, *newest;

static void forget(void) {
  while (queue) {
    Op *o = queue;
    queue = o->next;
    free(o->own);
    free(o);
  }
  newest = NULL;
}

static void run(Op *o) {
  o->done = 1;
  if (getenv("FAKE_MEMORY") && strchr("cfk", o->kind)) return;
  switch (o->kind) {
  case 'c': memmove(o->to, o->own ? o->own : o->from, o->n); break;
  case 'f':
    for (size_t i = 0; i < o->n; i++) memcpy(o->to + i * o->size, &o->word,
                                             o->size > 4 ? 4 : o->size);
    break;
  case 'k':
    for (size_t i = 0; i < o->n; i++)
      ((float *)(void *)o->to)[i] =
        o->a * ((float *)(void *)o->from)[i] + (float)o->shift;
    work += (long)o->n;
    count++;
    break;
  case 'b': sticky = CUDA_ERROR_ILLEGAL_ADDRESS; break;
  case 'e': o->event->work = work; break;
  default: break;
  }
}

// Reports whether a must complete before b, which was submitted later.
static int comes_first(const Op *a, const Op *b) {
  if (a->context != b->context) return 0;
  if (a->stream == b->stream || b->before == a) return 1;
  return (!a->stream && !(b->stream->flags & 1)) ||
         (!b->stream && !(a->stream->flags & 1));
}

// Runs operations, the newest first if several may run, until `last` is done.
// If `last` is NULL, runs all operations.
static void run_until(const Op *last) {
  while (!sticky) {
    Op *best = NULL;
    for (Op *o = queue; o; o = o->next) {
      int ready = !o->done;
      for (Op *b = queue; ready && b != o; b = b->next)
        if (!b->done && comes_first(b, o)) ready = 0;
      if (ready) best = o;
    }
    if (!best) return;
    run(best);
    if (best == last) return;
  }
}

static Op *give(CUstream s, Op op) {
  Op *o = malloc(sizeof *o);
  *o = op;
  o->stream = s ? (Stream *)(void *)find(s)->data : NULL;
  o->context = context;
  o->next = NULL;
  if (o->stream && o->stream->graph) {
    Graph *g = o->stream->graph;
    if (g->last) g->last->next = o;
    else g->first = o;
    g->last = o;
    g->n += o->kind != 'e' && o->kind != 'w';
    return o;
  }
  if (o->kind == 'n' && !getenv("FAKE_LATE")) return free(o), NULL;
  if (newest) newest->next = o;
  else queue = o;
  newest = o;
  if (!getenv("FAKE_LATE")) run_until(NULL);
  return o;
}

// Returns the error of a call that waits for the GPU or uses the default stream
// while a stream is captured. 900 is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
static int in_capture(void) {
  return capturing ? 900 : 0;
}

static char *copy_of(const void *p, size_t n) {
  return memcpy(malloc(n + 1), p, n);
}

// Reports whether p points to registered host memory.
static int registered(const void *p) {
  for (Handle *h = handles; h; h = h->next) {
    void *at;
    size_t n;
    if (h->kind != 'p') continue;
    memcpy(&at, h->data, sizeof at);
    memcpy(&n, h->data + sizeof at, sizeof n);
    if ((const char *)p >= (char *)at && (const char *)p < (char *)at + n)
      return 1;
  }
  return 0;
}

static void init(void) {
  const char *ms = getenv("FAKE_INIT");
  if (!ms) return;
  usleep((useconds_t)atoi(ms) * 1000);
  fprintf(stderr, "init\n");
}
CUresult cuInit(unsigned f) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, init);
  CALLED(cuInit);
  return f ? 1 : 0;
}
CUresult cuDriverGetVersion(int *v) {
  const char *cuda = getenv("FAKE_CUDA");
  return *v = cuda ? atoi(cuda) : 13000, 0;
}
CUresult cuDeviceGetCount(int *n) {
  const char *s = getenv("FAKE_GPUS");
  return *n = s ? atoi(s) : 1, 0;
}
CUresult cuDeviceGet(CUdevice *d, int i) { return *d = i, 0; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) {
  (void)d;
  return snprintf(s, (size_t)n, "Fake"), 0;
}
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
  (void)d;
#ifdef FAKE_CLUSTERS
  if (a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return *v = 9, 0;
  if (a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) return *v = 108, 0;
  if (a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    return *v = 232448, 0;
#endif
  *v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8
     : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 166912
     : 0;
  return 0;
}
static size_t total_memory(void) {
  const char *s = getenv("FAKE_MEMORY");
  return s ? (size_t)atoll(s) : 1 << 20;
}
static size_t held_memory(void) {
  size_t held = 0;
  for (Handle *h = handles; h; h = h->next)
    if (h->kind == 'm') held += (size_t)atoll(h->name);
  return held;
}
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) {
  return (void)d, *n = total_memory(), 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
  (void)d;
  const char *ms = getenv("FAKE_CONTEXT");
  if (ms) {
    usleep((useconds_t)atoi(ms) * 1000);
    fprintf(stderr, "context\n");
  }
  if (lost) return lost;
  CALLED(cuDevicePrimaryCtxRetain);
  retained++;
  *c = (CUcontext)(uintptr_t)++contexts;
  return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  return (void)d, retained--, 0;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
  (void)d;
  if (getenv("FAKE_LOST")) lost = sticky;
  sticky = 0;
  forget();
  while (handles) drop(handles->data, handles->kind);
  return 0;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  return context = (int)(uintptr_t)c, 0;
}
CUresult cuCtxGetCurrent(CUcontext *c) {
  return *c = (CUcontext)(uintptr_t)context, 0;
}
CUresult cuCtxSynchronize(void) {
  CALLED(cuCtxSynchronize);
  if (in_capture()) return in_capture();
  say("sync", 0);
  return run_until(NULL), sticky;
}
CUresult cuGetErrorName(CUresult r, const char **s) {
  *s = r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
     : r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return 0;
}
CUresult cuGetErrorString(CUresult r, const char **s) {
  return (void)r, *s = "in words", 0;
}
CUresult cuMemGetInfo_v2(size_t *a, size_t *b) {
  *b = total_memory();
  *a = *b - (getenv("FAKE_MEMORY") ? held_memory() : 0);
  return 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  CALLED(cuMemAlloc_v2);
  if (held_memory() + n > total_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
  char *m = make('m', n);
  say("buffer", n);
  snprintf(find(m)->name, 31, "%zu", n);
  *p = (CUdeviceptr)(uintptr_t)m;
  return 0;
}
CUresult cuMemFree_v2(CUdeviceptr p) {
  if (!sticky) run_until(NULL);
  say("free", (size_t)atol(find((void *)p)->name));
  return drop((void *)p, 'm');
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
  CALLED(cuMemcpyHtoD_v2);
  if (in_capture()) return in_capture();
  say("upload", n);
  give(NULL, (Op){.kind = 'c', .to = (char *)d, .own = copy_of(s, n), .n = n});
  return 0;
}
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) {
  CALLED(cuMemcpyDtoH_v2);
  if (in_capture()) return in_capture();
  say("download", n);
  run_until(give(NULL, (Op){.kind = 'c', .to = d, .from = (char *)s,
                            .n = n}));
  return sticky;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n,
                              CUstream t) {
  CALLED(cuMemcpyHtoDAsync_v2);
  say("write", n);
  int pinned = registered(s);
  if (capturing && !pinned) return 900;
  give(t, (Op){.kind = 'c', .to = (char *)d, .n = n, .from = (char *)s,
               .own = pinned ? NULL : copy_of(s, n),
               .pinned = pinned ? s : NULL});
  return 0;
}
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream t) {
  CALLED(cuMemcpyDtoHAsync_v2);
  say("read", n);
  Op *o = give(t, (Op){.kind = 'c', .to = d, .from = (char *)s, .n = n,
                       .pinned = registered(d) ? d : NULL});
  if (!registered(d) && !capturing) run_until(o);
  return sticky;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr d, CUcontext to, CUdeviceptr s,
                           CUcontext from, size_t n, CUstream t) {
  CALLED(cuMemcpyPeerAsync);
  if (to == from || (int)(uintptr_t)to != context) return 201;
  say("peer", n);
  give(t, (Op){.kind = 'c', .to = (char *)d, .from = (char *)s, .n = n});
  return 0;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n,
                              CUstream t) {
  CALLED(cuMemcpyDtoDAsync_v2);
  if (d < s + n && s < d + n) {
    fprintf(stderr, "fakecuda: a copy of memory to itself\n");
    exit(9);
  }
  give(t, (Op){.kind = 'c', .to = (char *)d, .from = (char *)s, .n = n});
  return 0;
}
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned f) {
  CALLED(cuMemHostRegister_v2);
  if (((uintptr_t)p | n) & 4095) return 1;
  char *m = make('p', sizeof p + sizeof n);
  memcpy(m, &p, sizeof p);
  memcpy(m + sizeof p, &n, sizeof n);
  return (void)f, 0;
}
CUresult cuMemHostUnregister(void *p) {
  for (Handle *h = handles; h; h = h->next)
    if (h->kind == 'p' && memcmp(h->data, &p, sizeof p) == 0)
      return drop(h->data, 'p');
  fprintf(stderr, "fakecuda: unregistered memory that was not\n");
  exit(9);
}
static CUresult fill(CUdeviceptr d, size_t size, unsigned w, size_t n,
                     CUstream s) {
  give(s, (Op){.kind = 'f', .to = (char *)d, .size = size, .word = w,
               .n = n});
  return 0;
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char c, size_t n,
                         CUstream s) {
  CALLED(cuMemsetD8Async);
  return fill(d, 1, c, n, s);
}
CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short c, size_t n,
                          CUstream s) {
  CALLED(cuMemsetD16Async);
  return fill(d, 2, c, n, s);
}
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned c, size_t n, CUstream s) {
  CALLED(cuMemsetD32Async);
  return fill(d, 4, c, n, s);
}
CUresult cuMemsetD2D32Async(CUdeviceptr d, size_t pitch, unsigned c,
                            size_t width, size_t n, CUstream s) {
  CALLED(cuMemsetD2D32Async);
  return width == 1 ? fill(d, pitch, c, n, s) : 1;
}

// ---- streams, events, graphs ----

static Stream *stream(CUstream s) { return (Stream *)(void *)find(s)->data; }
static Event *event(CUevent e) { return (Event *)(void *)find(e)->data; }

CUresult cuStreamCreate(CUstream *s, unsigned f) {
  CALLED(cuStreamCreate);
  *s = make('s', sizeof(Stream));
  stream(*s)->flags = f;
  return 0;
}
static Op *last_of(const Stream *s) {
  Op *last = NULL;
  for (Op *o = queue; o; o = o->next)
    if (o->stream == s && !o->done) last = o;
  return last;
}
CUresult cuStreamDestroy_v2(CUstream s) {
  if (last_of(stream(s))) return fprintf(stderr, "fakecuda: a stream with "
                                         "work was closed\n"), 1;
  if (stream(s)->graph) stream(s)->graph->broken = 1, capturing--;
  static Stream gone;
  // Moves the stream's operations to the stream `gone`, since a new stream may
  // get the address of this one.
  for (Op *o = queue; o; o = o->next)
    if (o->stream == stream(s)) o->stream = &gone;
  return drop(s, 's');
}
CUresult cuStreamSynchronize(CUstream s) {
  CALLED(cuStreamSynchronize);
  if (stream(s)->graph) return 900;
  const Op *last = last_of(stream(s));
  if (last) run_until(last);
  return sticky;
}
CUresult cuStreamQuery(CUstream s) {
  CALLED(cuStreamQuery);
  if (stream(s)->graph) return stream(s)->graph->broken = 1, 900;
  return last_of(stream(s)) ? CUDA_ERROR_NOT_READY : 0;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned f) {
  CALLED(cuStreamWaitEvent);
  say("wait", 0);
  Event *x = event(e);
  if (x->graph && s) {
    if (!stream(s)->graph) capturing++;
    stream(s)->graph = x->graph;
  }
  give(s, (Op){.kind = 'w', .before = x->op});
  return (void)f, 0;
}
CUresult cuEventCreate(CUevent *e, unsigned f) {
  CALLED(cuEventCreate);
  return (void)f, *e = make('e', sizeof(Event)), 0;
}
CUresult cuEventDestroy_v2(CUevent e) {
  if (!sticky) run_until(NULL);
  return drop(e, 'e');
}
CUresult cuEventRecord(CUevent e, CUstream s) {
  CALLED(cuEventRecord);
  Event *x = event(e);
  x->graph = s ? stream(s)->graph : NULL;
  x->op = give(s, (Op){.kind = 'e', .event = x});
  if (x->graph) x->op = NULL;
  return 0;
}
CUresult cuEventSynchronize(CUevent e) {
  CALLED(cuEventSynchronize);
  const Event *x = event(e);
  if (x->op && !x->op->done) run_until(x->op);
  return sticky;
}
CUresult cuEventQuery(CUevent e) {
  CALLED(cuEventQuery);
  const Event *x = event(e);
  return x->op && !x->op->done ? CUDA_ERROR_NOT_READY : 0;
}
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
  CALLED(cuEventElapsedTime);
  return *ms = 2 + (float)(event(b)->work - event(a)->work), 0;
}
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  CALLED(cuStreamBeginCapture_v2);
  if (stream(s)->graph) return 900;
  stream(s)->graph = make('g', sizeof(Graph));
  memset(stream(s)->graph, 0, sizeof(Graph));
  return (void)mode, capturing++, 0;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
  CALLED(cuStreamEndCapture);
  Graph *of = stream(s)->graph;
  for (Handle *h = handles; h; h = h->next) {
    Stream *other = (Stream *)(void *)h->data;
    if (h->kind != 's' || other->graph != of || !of) continue;
    other->graph = NULL;
    capturing--;
  }
  if (of && of->broken) {
    drop(of, 'g');
    of = NULL;
  }
  return *g = (CUgraph)of, of ? 0 : 901;
}
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
  return *status = stream(s)->graph != NULL, 0;
}
static void drop_ops(void *graph) {
  Graph *g = graph;
  for (Op *o = g->first, *next; o; o = next) {
    next = o->next;
    free(o->own);
    free(o);
  }
}
static void copy_ops(Graph *to, const Graph *from) {
  *to = (Graph){.n = from->n};
  for (const Op *o = from->first; o; o = o->next) {
    Op *p = malloc(sizeof *p);
    *p = *o;
    p->next = NULL;
    if (to->last) to->last->next = p;
    else to->first = p;
    to->last = p;
  }
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g,
                                     unsigned long long f) {
  CALLED(cuGraphInstantiateWithFlags);
  *x = make('x', sizeof(Graph));
  copy_ops((Graph *)*x, (Graph *)g);
  return (void)f, 0;
}
CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g,
                              CUgraphExecUpdateResultInfo *info) {
  CALLED(cuGraphExecUpdate_v2);
  find(x);
  if (((Graph *)x)->n != ((Graph *)g)->n) return 910;
  drop_ops((Graph *)x);
  copy_ops((Graph *)x, (Graph *)g);
  return (void)info, say("updated", 0), 0;
}
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
  return (void)nodes, *n = ((Graph *)g)->n, 0;
}
CUresult cuGraphLaunch(CUgraphExec x, CUstream s) {
  CALLED(cuGraphLaunch);
  find(x);
  if (s && stream(s)->graph) return 900;
  for (const Op *o = ((Graph *)x)->first; o; o = o->next) {
    if (o->pinned && !registered(o->pinned)) {
      fprintf(stderr, "fakecuda: a graph copies memory that was given back\n");
      exit(9);
    }
    if (o->kind != 'e' && o->kind != 'w') give(s, *o);
  }
  return 0;
}
CUresult cuGraphDestroy(CUgraph g) { return drop(g, 'g'); }
CUresult cuGraphExecDestroy(CUgraphExec x) {
  if (!sticky) run_until(NULL);
  return drop(x, 'x');
}

// ---- kernels ----

CUresult cuModuleLoadData(CUmodule *m, const void *p) {
  CALLED(cuModuleLoadData);
  return (void)p, *m = make('M', 1), 0;
}
// Loads PTX up to the version that the driver's CUDA supports.
CUresult cuModuleLoadDataEx(CUmodule *m, const void *p, unsigned n,
                            CUjit_option *options, void **values) {
  int version, major = 0, minor = 0, most;
  CALLED(cuModuleLoadDataEx);
  cuDriverGetVersion(&version);
  // CUDA 13.0 has PTX 9.0; CUDA 12.8 and 12.9 have 8.7 and 8.8.
  most = version >= 13000 ? 90 + version % 1000 / 10
       : 80 + version % 1000 / 10 - 1;
  sscanf(p, ".version %d.%d", &major, &minor);
  if (getenv("FAKE_PTX")) fprintf(stderr, "%s", (const char *)p);
  if (n != 3 || options[0] != CU_JIT_ERROR_LOG_BUFFER ||
      options[1] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
      options[2] != CU_JIT_OPTIMIZATION_LEVEL)
    return 1;
  if (getenv("FAKE_LEVEL")) fprintf(stderr, "O%d\n", (int)(size_t)values[2]);
  if (10 * major + minor > most || strstr(p, "newest")) {
    snprintf(values[0], (size_t)(uintptr_t)values[1],
             "ptxas fatal   : a fault of this text\nsecond line");
    return 218;
  }
  return *m = make('M', 1), 0;
}
CUresult cuModuleUnload(CUmodule m) { return drop(m, 'M'); }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  Handle *h = find(m);
  if (strcmp(name, "none") == 0) return 500;
  snprintf(h->name, sizeof h->name, "%s", name);
  return *f = (CUfunction)m, 0;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule m,
                              const char *name) {
  CALLED(cuModuleGetGlobal_v2);
  find(m);
  if (strcmp(name, "count") != 0) return 500;
  return *p = (CUdeviceptr)&count, *n = sizeof count, 0;
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
  return find(f), *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 512
                     : 0, 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  return find(f), (void)a, fprintf(stderr, "opt in %d\n", v), 0;
}
static CUresult launch(CUfunction f, CUstream s, void **p) {
  if (getenv("FAKE_STOP")) _exit(0);
  const char *name = find(f)->name;
  if (getenv("FAKE_PARAMS")) {
    fprintf(stderr, "launch %s %p %p", name, (void *)f, (void *)s);
    for (; *p; p++) fprintf(stderr, " %llx", *(unsigned long long *)*p);
    return fputs("\n", stderr), 0;
  }
  if (find(f)->context != context) return 201;
  if (strcmp(name, "refused") == 0) return 701;
  if (strncmp(name, "bad", 3) == 0) {
    give(s, (Op){.kind = 'b'});
  } else if (strcmp(name, "axpy") == 0) {
    give(s, (Op){.kind = 'k', .to = *(char **)p[0], .from = *(char **)p[1],
                 .a = *(float *)p[2], .n = (size_t)*(int *)p[3],
                 .shift = *(long long *)p[4]});
  } else {
    give(s, (Op){.kind = 'n'});
  }
  return 0;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned smem,
                        CUstream s, void **p, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem;
  (void)extra;
  CALLED(cuLaunchKernel);
  return launch(f, s, p);
}

#ifdef FAKE_CLUSTERS
// cuLaunchKernelEx prints its arguments and rejects clusters of blocks with 256
// threads. A multiprocessor holds one block.
static int blocks(const CUlaunchConfig *c) {
  int n = 1;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      n = (int)(c->attrs[i].value.clusterDim.x *
                c->attrs[i].value.clusterDim.y *
                c->attrs[i].value.clusterDim.z);
  return n;
}
static int cooperative(const CUlaunchConfig *c) {
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      return c->attrs[i].value.cooperative != 0;
  return 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p,
                          void **extra) {
  if (cooperative(c) && c->gridDimX > 100)
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  if (c->blockDimX == 256 && blocks(c) > 1)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  fprintf(stderr, "%s: grid %u %u %u, clusters of %d%s%s\n", find(f)->name,
          c->gridDimX, c->gridDimY, c->gridDimZ, blocks(c),
          c->attrs[c->numAttrs - 1].id ==
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            ? ", pdl" : "", cooperative(c) ? ", cooperative" : "");
  return (void)extra, launch(f, c->hStream, p);
}
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f,
                                      const CUlaunchConfig *c) {
  int sms = 0;
  cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  return find(f), *n = sms / blocks(c), 0;
}
#endif
// SPDX-License-Identifier: MIT
