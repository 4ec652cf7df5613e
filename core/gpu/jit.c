// Compiles CUDA C, or takes the result from the disk caches. If several
// processes have the same source, only one of them compiles it.
#define _POSIX_C_SOURCE 200809L
#include "gpu/jit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "gpu/cache.h"
#include "gpu/dl.h"
#include "gpu/nvrtc.h"
#include "base/signals.h"

#define MAX_OPTIONS 32

// ---- identity of NVRTC ----

// The part of the cache key that identifies the compiler. The size of the
// library file distinguishes builds of one version.
typedef struct NvrtcId {
  int major, minor;
  long long size;
} NvrtcId;

static bool nvrtc_id(const char *arch, NvrtcId *id, Why *w) {
  const Nvrtc *v = nvrtc_pick(arch, w);
  if (!v) return false;
  struct stat st;
  id->major = v->major;
  id->minor = v->minor;
  id->size = stat(v->path, &st) == 0 ? (long long)st.st_size : 0;
  return true;
}

// Writes to `name` the name of a file in the cache: "nvrtc-" and a hash of
// NVRTC's search path and of the target `arch`. The file records the path,
// time, size and version of the NVRTC library that the last search found. If
// the search path and the library are unchanged, this record saves the 0.1 s
// that opening the library takes.
static void memo_name(const char *arch, char name[40]) {
  uint64_t h = base_hash(nvrtc_fingerprint(), arch, strlen(arch));
  snprintf(name, 40, "nvrtc-%016llx", (unsigned long long)h);
}

static bool memo_read(const Cache *c, const char *arch, NvrtcId *id) {
  char name[40], text[1200], path[1024];
  long long sec, nsec, size;
  if (!c->on) return false;
  memo_name(arch, name);
  bool ok = cache_read(c, name, text, sizeof text) &&
            sscanf(text, "%d.%d %lld %lld.%lld %1023[^\n]\n", &id->major,
                   &id->minor, &size, &sec, &nsec, path) == 6;
  struct stat st;
  if (!ok || !nvrtc_loads(id->major) || stat(path, &st) != 0 ||
      (long long)st.st_size != size ||
      (long long)st.st_mtim.tv_sec != sec ||
      (long long)st.st_mtim.tv_nsec != nsec)
    return false;
  id->size = size;
  return true;
}

static void memo_write(Cache *c, const char *arch, const NvrtcId *id) {
  char name[40], text[1200];
  struct stat st;
  const Nvrtc *v = nvrtc_pick(arch, NULL);
  const char *path = v ? v->path : "";
  if (!c->on || path[0] != '/' || stat(path, &st) != 0) return;
  memo_name(arch, name);
  int n = snprintf(text, sizeof text, "%d.%d %lld %lld.%lld %s\n", id->major,
                   id->minor, (long long)st.st_size,
                   (long long)st.st_mtim.tv_sec,
                   (long long)st.st_mtim.tv_nsec, path);
  if (n > 0 && (size_t)n < sizeof text) cache_write(c, name, text, (size_t)n);
}

// ---- key ----

// Returns the cache key text: everything that the CUBIN depends on. Without
// `id`, the text is the key in a container image's cache, which does not depend
// on the compiler. The caller frees the text. Returns NULL if memory is
// exhausted.
static char *key_text(const JitJob *job, const NvrtcId *id, size_t *n) {
  const char *name = job->name ? job->name : "";
  size_t size = strlen(job->source) + strlen(job->arch) + strlen(name) + 160;
  for (int i = 0; i < job->noptions; i++) size += strlen(job->options[i]) + 1;
  char *p = base_realloc(NULL, size);
  if (!p) return NULL;
  size_t at = (size_t)(id
    ? snprintf(p, size, "cutelua 2\nnvrtc %d.%d %lld\n%s\n", id->major,
               id->minor, id->size, job->arch)
    : snprintf(p, size, "cutelua 2\nnvrtc any\n%s\n", job->arch));
  for (int i = 0; i < job->noptions; i++)
    at += (size_t)snprintf(p + at, size - at, "%s\n", job->options[i]);
  if (job->name)
    at += (size_t)snprintf(p + at, size - at, "name %s\n", name);
  at += (size_t)snprintf(p + at, size - at, "\n%s", job->source);
  *n = at;
  return p;
}

// ---- NVRTC ----

typedef nvrtcResult SizeFn(nvrtcProgram, size_t *);
typedef nvrtcResult TextFn(nvrtcProgram, char *);

// Copies one result of an NVRTC program (log, CUBIN or PTX) to new memory,
// *mem, and returns it. If the program does not have this result, returns ""
// and sets *mem to NULL.
static const char *fetch(nvrtcProgram p, SizeFn *size, TextFn *text,
                         size_t *n, void **mem) {
  char *s = NULL;
  *n = 0;
  if (size(p, n) == NVRTC_SUCCESS && *n > 0 &&
      (s = base_realloc(NULL, *n + 1)) != NULL) {
    s[*n] = '\0';
    if (text(p, s) != NVRTC_SUCCESS) s[0] = '\0', *n = 0;
  }
  if (!s) *n = 0;
  *mem = s;
  return s ? s : "";
}

// Returns the length of a text of n bytes without the NULs at its end. NVRTC's
// length includes one NUL, or two after errors of ptxas.
static size_t text_n(const char *s, size_t n) {
  while (n && s[n - 1] == '\0') n--;
  return n;
}

// Compiles a job. Passes cutelua's own options and the job's options to NVRTC.
// `fewer` selects cutelua's options: 0: all, 1: those that do not need CUDA
// 12.9, 2: none.
static nvrtcResult run(const NvrtcApi *api, const JitJob *job, int fewer,
                       nvrtcProgram *p) {
  char arch[80];
  const char *opt[MAX_OPTIONS + 5];
  int n = 0;
  snprintf(arch, sizeof arch, "--gpu-architecture=%s", job->arch);
  opt[n++] = arch;
  if (fewer < 2) {
    opt[n++] = "--ptxas-options=-v";
    opt[n++] = "-minimal";
  }
  // If a driver is present, NVRTC uses its own cache, and a hit returns no log.
  // The log is needed for registers, spills and warnings.
  if (fewer < 1) opt[n++] = "--no-cache";
  for (int i = 0; i < job->noptions; i++) opt[n++] = job->options[i];
  const char *name = job->name ? job->name : "k.cu";
  nvrtcResult r = api->nvrtcCreateProgram(p, job->source, name, 0, NULL, NULL);
  return r == NVRTC_SUCCESS ? api->nvrtcCompileProgram(*p, n, opt) : r;
}

// Reports that NVRTC does not support the job's architecture, and lists the
// supported architectures.
static bool unknown_arch(const Nvrtc *v, const JitJob *job, Why *w) {
  char names[512] = "";
  size_t at = 0;
  for (int i = 0; i < v->narchs && at + 16 < sizeof names; i++)
    at += (size_t)snprintf(names + at, sizeof names - at, " sm_%d",
                           v->archs[i]);
  return why(w, ERR_ARCH, "NVRTC %d.%d does not support %s%s%s", v->major,
             v->minor, job->arch, v->narchs ? "; it supports" : "", names);
}

static bool compile_held(const Nvrtc *v, const JitJob *job, JitOut *out,
                         Why *w) {
  const NvrtcApi *api = &v->api;
  nvrtcProgram p = NULL;
  nvrtcResult r = NVRTC_ERROR_INVALID_OPTION;
  for (int fewer = 0; r == NVRTC_ERROR_INVALID_OPTION && fewer < 3; fewer++) {
    if (p) api->nvrtcDestroyProgram(&p);
    p = NULL;
    r = run(api, job, fewer, &p);
  }
  if (!p) return why(w, ERR_COMPILE, "NVRTC: %s", api->nvrtcGetErrorString(r));
  out->log = fetch(p, api->nvrtcGetProgramLogSize, api->nvrtcGetProgramLog,
                   &out->log_n, &out->mem[0]);
  out->log_n = text_n(out->log, out->log_n);
  if (r == NVRTC_SUCCESS) {
    out->cubin = fetch(p, api->nvrtcGetCUBINSize, api->nvrtcGetCUBIN,
                       &out->cubin_n, &out->mem[1]);
    out->ptx = fetch(p, api->nvrtcGetPTXSize, api->nvrtcGetPTX, &out->ptx_n,
                     &out->mem[2]);
    out->ptx_n = text_n(out->ptx, out->ptx_n);
  }
  api->nvrtcDestroyProgram(&p);
  if (r == NVRTC_ERROR_INVALID_OPTION && out->log &&
      strstr(out->log, "gpu-architecture")) {
    // Drop the log, because the message of unknown_arch replaces it.
    out->log_n = 0;
    return unknown_arch(v, job, w);
  }
  if (r != NVRTC_SUCCESS)
    return why(w, ERR_COMPILE, "NVRTC rejected the source (%s)",
               api->nvrtcGetErrorString(r));
  bool virtual_arch = strncmp(job->arch, "compute_", 8) == 0;
  if (virtual_arch ? !out->ptx_n : !out->cubin_n)
    return why(w, ERR_MEMORY, "NVRTC returned no code for %s", job->arch);
  return true;
}

// ---- message during a long compilation ----

typedef struct Wait {
  const JitJob *job;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t end;
  bool over, on;
} Wait;

static void *wait_run(void *p) {
  Wait *w = p;
  struct timespec t;
  int r = 0;
  clock_gettime(CLOCK_REALTIME, &t);
  double at = (double)t.tv_nsec * 1e-9 + w->job->patience;
  t.tv_sec += (time_t)at;
  t.tv_nsec = (long)((at - (double)(time_t)at) * 1e9);
  pthread_mutex_lock(&w->lock);
  while (!w->over && r == 0) r = pthread_cond_timedwait(&w->end, &w->lock, &t);
  if (!w->over) fputs(w->job->waiting, stderr);
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static void wait_begin(Wait *w, const JitJob *job) {
  *w = (Wait){.job = job};
  if (!job->waiting) return;
  if (job->patience <= 0) {
    fputs(job->waiting, stderr);
    return;
  }
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->end, NULL);
  w->on = pthread_create(&w->thread, NULL, wait_run, w) == 0;
}

static void wait_end(Wait *w) {
  if (!w->on) return;
  pthread_mutex_lock(&w->lock);
  w->over = true;
  pthread_cond_signal(&w->end);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->end);
  pthread_mutex_destroy(&w->lock);
}

static bool compile(const JitJob *job, JitOut *out, Why *w) {
  const Nvrtc *v = nvrtc_pick(job->arch, w);
  if (!v) return false;
  SigHold hold;
  Wait wait;
  signals_catch(&hold);
  wait_begin(&wait, job);
  bool ok = compile_held(v, job, out, w);
  wait_end(&wait);
  signals_release(&hold);
  return ok;
}

// ---- compilation with the cache ----

static bool lookup(Cache *c, const CacheKey *key, JitOut *out) {
  CacheEntry e;
  if (!cache_get(c, key, &e, &out->mem[0])) return false;
  out->log = e.part[0].p, out->log_n = e.part[0].n;
  out->cubin = e.part[1].p, out->cubin_n = e.part[1].n;
  out->ptx = e.part[2].p, out->ptx_n = e.part[2].n;
  out->major = e.major;
  out->minor = e.minor;
  out->cached = true;
  return true;
}

static bool store(Cache *c, const CacheKey *key, const JitOut *out) {
  CacheEntry e = {.part = {{out->log, out->log_n},
                           {out->cubin, out->cubin_n},
                           {out->ptx, out->ptx_n}},
                  .major = out->major, .minor = out->minor};
  return cache_put(c, key, &e);
}

// Locks the key and compiles, unless another process stored the entry while
// this process waited for the lock.
static bool compile_once(Cache *c, const CacheKey *key, const NvrtcId *id,
                         const JitJob *job, JitOut *out, Why *w) {
  int lock = cache_lock(c, key);
  bool ok = lookup(c, key, out);
  // Lua raises the error for Ctrl-C after this function returns.
  if (!ok && signals_asked) {
    why(w, ERR_COMPILE, "interrupted");
  } else if (!ok && (ok = compile(job, out, w))) {
    out->major = id->major;
    out->minor = id->minor;
    store(c, key, out);
  }
  cache_unlock(c, key, lock);
  return ok;
}

// Looks a job up in the cache, with NVRTC `id` in the key, and compiles the job
// on a miss. If `id` comes from a record (`sure` is false), first compares it
// with the installed NVRTC, and replaces `id` if they differ.
static bool with_id(Cache *c, NvrtcId *id, bool sure, const JitJob *job,
                    JitOut *out, Why *w) {
  NvrtcId real = *id;
  CacheKey key;
  size_t n;
  char *text = key_text(job, id, &n);
  bool ok = text != NULL;
  if (!ok) return why(w, ERR_MEMORY, "out of memory");
  key = cache_key(text, n);
  if (!lookup(c, &key, out)) {
    if (!sure) ok = nvrtc_id(job->arch, &real, w);
    bool same = real.major == id->major && real.minor == id->minor &&
                real.size == id->size;
    if (ok && !same) {
      memo_write(c, job->arch, &real);
      *id = real;
      base_free(text);
      return with_id(c, id, true, job, out, w);
    }
    ok = ok && compile_once(c, &key, id, job, out, w);
  }
  base_free(text);
  return ok;
}

static bool with_cache(Cache *c, const JitJob *job, JitOut *out, Why *w) {
  NvrtcId id;
  bool sure = !memo_read(c, job->arch, &id);
  if (sure) {
    if (!nvrtc_id(job->arch, &id, w)) return false;
    memo_write(c, job->arch, &id);
  }
  bool ok = with_id(c, &id, sure, job, out, w);
  if (!nvrtc_loads(id.major))
    snprintf(out->notes[2], sizeof out->notes[2], "NVRTC %d.%d is newer than "
             "the driver, which is for CUDA %d.%d and may reject its code",
             id.major, id.minor, nvrtc_driver() / 1000,
             nvrtc_driver() % 1000 / 10);
  return ok;
}

static void clear(JitOut *out) {
  *out = (JitOut){.log = "", .cubin = "", .ptx = ""};
}

// Looks a job up in the container image's cache. Treats an entry as a miss if
// the driver cannot load its code.
static bool with_image(Cache *c, const JitJob *job, JitOut *out) {
  size_t n;
  char *text = c->on ? key_text(job, NULL, &n) : NULL;
  if (!text) return false;
  CacheKey key = cache_key(text, n);
  bool ok = lookup(c, &key, out);
  if (ok && !nvrtc_loads(out->major)) {
    jit_free(out);
    clear(out);
    ok = false;
  }
  out->image = ok;
  base_free(text);
  return ok;
}

// Stores a result in job->into, the folder of a container image's cache.
static bool put_into(const JitJob *job, const JitOut *out, Why *w) {
  Cache c;
  size_t n;
  char *text = key_text(job, NULL, &n);
  if (!text) return why(w, ERR_MEMORY, "out of memory");
  CacheKey key = cache_key(text, n);
  cache_open_into(&c, job->into);
  bool ok = c.on && store(&c, &key, out);
  cache_close(&c);
  base_free(text);
  return ok || why(w, ERR_IO, "%s", *c.note ? c.note : "out of memory");
}

bool jit_compile(const JitJob *job, JitOut *out, Why *w) {
  clear(out);
  if (job->noptions > MAX_OPTIONS)
    return why(w, ERR_LIMIT, "more than %d options of NVRTC", MAX_OPTIONS);
  Cache own, image;
  memset(&own, 0, sizeof own);
  memset(&image, 0, sizeof image);
  if (!job->no_cache) cache_open_image(&image);
  bool ok = with_image(&image, job, out);
  memcpy(out->notes[1], image.note, sizeof out->notes[1]);
  cache_close(&image);
  if (!ok) {
    if (!job->no_cache && !dl_disabled()) cache_open(&own);
    ok = with_cache(&own, job, out, w);
    memcpy(out->notes[0], own.note, sizeof out->notes[0]);
    memcpy(out->notes[3], own.warning, sizeof out->notes[3]);
    cache_close(&own);
    if (!ok && w && w->kind == ERR_NONVRTC && *out->notes[1]) {
      size_t n = strlen(w->msg);
      snprintf(w->msg + n, sizeof w->msg - n, "; %s", out->notes[1]);
    }
  }
  return ok && (!job->into || put_into(job, out, w));
}

void jit_free(JitOut *out) {
  for (int i = 0; i < 3; i++) base_free(out->mem[i]);
  memset(out->mem, 0, sizeof out->mem);
}
// SPDX-License-Identifier: MIT
