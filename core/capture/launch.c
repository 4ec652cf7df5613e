// Records launches. A record is a folder with LAUNCH.json, module.ptx, and a
// .npy file for each allocation to which the parameters point. The folder has a
// temporary name until it is complete.
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/inside.h"

enum { FORMAT = 1, REGIONS = 4096, PATH = 4096, SYMBOL = 64 << 10 };
enum { NPY_HEAD = 128 };  // bytes of a .npy file before its contents
enum { PIECE = 16 << 20, MISSES = 1 << 14 };

// An allocation that the parameters reach, directly or through pointers.
typedef struct Region {
  uint64_t base;
  size_t size;
} Region;

// A word in a recorded allocation whose value is an address in some recorded
// allocation.
typedef struct Pointer {
  int region;
  uint64_t offset, value;
} Pointer;

// A record that launch_before began and launch_after completes.
typedef struct Record {
  struct Record *next;
  int number;
  char folder[PATH], final[PATH];
  FILE *json;
  char *text;
  size_t bytes, ptx;
  Region region[REGIONS];
  int regions;
  Pointer *pointer;
  size_t pointers, room;
  uint64_t missed[MISSES];  // cache of 256-byte blocks (as address / 256) that
                            // are in no allocation
} Record;

// The kernel of a launch and the bytes of its parameters.
typedef struct Passed {
  const Kernel *k;
  CUfunction f;
  const CUlaunchConfig *c;
  int n;
  Param param[PARAMS];
  const unsigned char *value[PARAMS];
} Passed;

static struct {
  const char *folder, *kernel;
  int count, skip;
  bool after, pointers;
  uint64_t most;  // maximum number of bytes of a record
} settings;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Record *open_records;
// seen: number of selected launches. taken: number of records that were begun.
static int seen, taken;
static bool stopped;     // whether a folder could not be written

static int number(const char *name, int otherwise) {
  const char *s = getenv(name);
  return s && *s ? atoi(s) : otherwise;
}

static bool is_set(const char *name) {
  const char *s = getenv(name);
  return s && strcmp(s, "1") == 0;
}

static void configure(void) {
  settings.folder = getenv("CUTELUA_CAPTURE");
  settings.kernel = getenv("CUTELUA_CAPTURE_KERNEL");
  if (!settings.kernel || !*settings.kernel) settings.kernel = "*";
  settings.count = number("CUTELUA_CAPTURE_COUNT", 1);
  settings.skip = number("CUTELUA_CAPTURE_SKIP", 0);
  settings.most = (uint64_t)number("CUTELUA_CAPTURE_MB", 256) << 20;
  settings.after = is_set("CUTELUA_CAPTURE_AFTER");
  settings.pointers = is_set("CUTELUA_CAPTURE_POINTERS");
  if (settings.folder && !*settings.folder) settings.folder = NULL;
}

bool launch_wanted(void) {
  pthread_once(&once, configure);
  if (!settings.folder) return false;
  pthread_mutex_lock(&lock);
  bool wanted = !stopped && taken < settings.count;
  pthread_mutex_unlock(&lock);
  return wanted;
}

// ---- memory of the GPU ----

// Waits for all work that precedes the launch. In the relaxed capture mode, the
// wait does not invalidate a stream capture by another thread.
static bool finish_work(void) {
  CUresult (*mode)(int *), (*wait)(void);
  int relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  DRIVER(mode, "cuThreadExchangeStreamCaptureMode");
  DRIVER(wait, "cuCtxSynchronize");
  if (mode) mode(&relaxed);
  bool ok = wait && wait() == CUDA_SUCCESS;
  if (mode) mode(&relaxed);
  return ok;
}

bool launch_selects(const char *name) {
  return fnmatch(settings.kernel, name, 0) == 0;
}

bool launch_capturing(CUstream s) {
  CUresult (*is)(CUstream, CUstreamCaptureStatus *);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  DRIVER(is, "cuStreamIsCapturing");
  return is && (is(s, &status) || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

static bool copy(void *to, uint64_t from, size_t n) {
  CUresult (*download)(void *, CUdeviceptr, size_t);
  DRIVER(download, "cuMemcpyDtoH_v2");
  return download && download(to, from, n) == CUDA_SUCCESS;
}

// Returns the index of the recorded allocation that contains the address, or
// -1.
static int known_region(const Record *r, uint64_t address) {
  int i = 0;
  while (i < r->regions && address - r->region[i].base >= r->region[i].size)
    i++;
  return i < r->regions ? i : -1;
}

// Records the allocation that contains the address, if it is not recorded yet.
// Returns its index, or -1 if there is none.
static int region_of(Record *r, uint64_t address) {
  CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr);
  CUdeviceptr base;
  size_t size;
  if (address < 4096) return -1;
  int known = known_region(r, address);
  if (known >= 0) return known;
  DRIVER(range, "cuMemGetAddressRange_v2");
  if (!range || range(&base, &size, address) || address < base ||
      address - base >= size || r->regions == REGIONS)
    return -1;
  r->region[r->regions] = (Region){base, size};
  return r->regions++;
}

// ---- pointers in memory ----

// Finds the words of an allocation that are addresses in recorded allocations,
// and adds them to the record's pointers. With `add`, also records the other
// allocations to which words point. An address here is a multiple of 8 below
// 2^47, and allocations begin at multiples of 256.
static bool add_words(Record *r, int region, uint64_t from,
                      const uint64_t *word, size_t n, bool add) {
  for (size_t k = 0; k < n; k++) {
    uint64_t v = word[k], page = v >> 8;
    if (v < 1 << 20 || v >> 47 || r->missed[page % MISSES] == page) continue;
    if ((add ? region_of(r, v) : known_region(r, v)) < 0) {
      r->missed[page % MISSES] = page;
      continue;
    }
    if (r->pointers == r->room) {
      size_t room = 2 * r->room + 64;
      Pointer *p = realloc(r->pointer, room * sizeof *p);
      if (!p) return false;
      r->pointer = p, r->room = room;
    }
    r->pointer[r->pointers++] = (Pointer){region, from + 8 * k, v};
  }
  return true;
}

// Finds the pointers in all recorded allocations. With `add`, also records the
// allocations to which they point. Stops when the recorded allocations exceed
// the maximum size of a record.
static bool find_pointers(Record *r, bool add) {
  uint64_t bytes = 0;
  uint64_t *piece = malloc(PIECE);
  bool ok = piece != NULL;
  r->pointers = 0;
  for (int i = 0; ok && i < r->regions && bytes <= settings.most; i++) {
    const Region *own = &r->region[i];
    bytes += own->size;
    for (size_t at = 0; ok && at + 8 <= own->size; at += PIECE) {
      size_t n = own->size - at < PIECE ? own->size - at : PIECE;
      ok = copy(piece, own->base + at, n) &&
           add_words(r, i, at, piece, n / 8, add);
    }
  }
  free(piece);
  return ok;
}

// ---- files ----

static FILE *create(const Record *r, const char *name) {
  char path[PATH + 64];
  snprintf(path, sizeof path, "%s/%s", r->folder, name);
  return fopen(path, "wb");
}

static bool closed(FILE *f) {
  bool ok = !ferror(f);
  return fclose(f) == 0 && ok;
}

static bool write_file(const Record *r, const char *name, const char *p,
                       size_t n) {
  FILE *f = create(r, name);
  bool ok = f && fwrite(p, 1, n, f) == n;
  return f && closed(f) && ok;
}

// Writes an allocation as a .npy file.
static bool write_region(const Record *r, const Region *region,
                         const char *name) {
  bool words = region->size % 4 == 0;
  char head[NPY_HEAD + 1];
  FILE *f = create(r, name);
  char *piece = malloc(PIECE);
  bool ok = f && piece;
  snprintf(head, sizeof head, "\x93NUMPY\x01%c\x76%c{'descr': '%s', "
           "'fortran_order': False, 'shape': (%zu,), }", 1, 1,
           words ? "<u4" : "|u1", words ? region->size / 4 : region->size);
  head[7] = head[9] = 0;
  size_t end = 10 + strlen(head + 10);
  memset(head + end, ' ', NPY_HEAD - 1 - end);
  head[NPY_HEAD - 1] = '\n';
  if (ok) ok = fwrite(head, 1, NPY_HEAD, f) == NPY_HEAD;
  for (size_t at = 0; ok && at < region->size; at += PIECE) {
    size_t n = region->size - at < PIECE ? region->size - at : PIECE;
    ok = copy(piece, region->base + at, n) && fwrite(piece, 1, n, f) == n;
  }
  free(piece);
  return f && closed(f) && ok;
}

static void remove_folder(const Record *r) {
  char path[PATH + 64];
  for (int i = 0; i < 2 * r->regions + 2; i++) {
    if (i < 2) snprintf(path, sizeof path, "%s/%s", r->folder,
                        i ? "LAUNCH.json" : "module.ptx");
    else snprintf(path, sizeof path, "%s/%s%d.npy", r->folder,
                  i % 2 ? "after" : "m", (i - 2) / 2);
    unlink(path);
  }
  rmdir(r->folder);
}

// ---- LAUNCH.json ----

static void write_hex(FILE *f, const unsigned char *p, size_t n) {
  fputc('"', f);
  for (size_t i = 0; i < n; i++) fprintf(f, "%02x", p[i]);
  fputc('"', f);
}

static void write_bytes(FILE *f, const unsigned char *p, size_t n) {
  fputs("{\"bytes\": ", f);
  write_hex(f, p, n);
  fputc('}', f);
}

static void write_pointer(Record *r, int i, uint64_t v) {
  uint64_t offset = v - r->region[i].base;
  if (offset) fputs("{\"pointer\": {\"tensor\": ", r->json);
  fprintf(r->json, "\"m%d\"", i);
  if (offset)
    fprintf(r->json, ", \"offset\": %llu}}", (unsigned long long)offset);
}

static uint64_t word(const unsigned char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

// Writes a structure. It is written as a tensor map if its size, alignment and
// first word match one, as fields if it contains pointers, and otherwise as
// bytes.
static void write_struct(Record *r, const Param *p, const unsigned char *v) {
  bool pointers = false;
  for (size_t at = 0; at + 8 <= p->size; at += 8)
    pointers = region_of(r, word(v + at)) >= 0 || pointers;
  if (pointers && p->size == 128 && p->align >= 64) {
    int i = region_of(r, word(v));
    if (i >= 0) {
      fprintf(r->json, "{\"map\": {\"tensor\": \"m%d\", \"offset\": %llu, "
              "\"bytes\": ", i,
              (unsigned long long)(word(v) - r->region[i].base));
      write_hex(r->json, v, p->size);
      fputs("}}", r->json);
      return;
    }
  }
  if (!pointers) {
    write_bytes(r->json, v, p->size);
    return;
  }
  fputs("{\"fields\": {", r->json);
  for (size_t at = 0; at < p->size;) {
    uint32_t low;
    int i = at + 8 <= p->size && at % 8 == 0 ? region_of(r, word(v + at)) : -1;
    fprintf(r->json, "%s\"%zu\": ", at ? ", " : "", at);
    if (i >= 0) {
      write_pointer(r, i, word(v + at));
      at += 8;
    } else if (at + 4 <= p->size) {
      memcpy(&low, v + at, 4);
      fprintf(r->json, "{\"u32\": %u}", low);
      at += 4;
    } else {
      fprintf(r->json, "{\"u8\": %u}", v[at++]);
    }
  }
  fputs("}}", r->json);
}

// Writes a float parameter. printf uses the decimal point of the program's
// locale, which is replaced by a dot.
static void write_float(FILE *f, const Param *p, const unsigned char *v) {
  char text[40];
  float single;
  double d;
  if (p->size == 4) memcpy(&single, v, 4), d = (double)single;
  else memcpy(&d, v, 8);
  if (isfinite(d)) {
    snprintf(text, sizeof text, "%.*g", p->size == 4 ? 9 : 17, d);
    size_t point = strspn(text, "-+0123456789e");
    if (text[point]) text[point] = '.';
    fprintf(f, "{\"f%zu\": %s}", p->size * 8, text);
    return;
  }
  write_bytes(f, v, p->size);
}

static void write_argument(Record *r, const Param *p, const unsigned char *v) {
  uint64_t whole = 0;
  int i = -1;
  if (p->array || p->size > 8) {
    write_struct(r, p, v);
  } else if (p->kind == 'f' && p->size >= 4) {
    write_float(r->json, p, v);
  } else {
    memcpy(&whole, v, p->size);
    if (p->size == 8) i = region_of(r, whole);
    if (i >= 0) write_pointer(r, i, whole);
    else if (p->size == 8)
      fprintf(r->json, "{\"u64\": %lld}", (long long)whole);
    else fprintf(r->json, "{\"u%zu\": %llu}", p->size * 8,
                 (unsigned long long)whole);
  }
}

typedef struct Symbols {
  Record *r;
  const Kernel *k;
  int n;
} Symbols;

// Writes the contents of a variable of the module.
static void write_symbol(const char *name, void *data) {
  Symbols *s = data;
  CUresult (*of)(CUdeviceptr *, size_t *, void *, const char *);
  CUdeviceptr at;
  size_t n;
  unsigned char *bytes;
  DRIVER(of, s->k->module ? "cuModuleGetGlobal_v2" : "cuLibraryGetGlobal");
  if (!of || of(&at, &n, s->k->module ? (void *)s->k->module : s->k->library,
                name) || n > SYMBOL || !(bytes = malloc(n)))
    return;
  if (copy(bytes, at, n)) {
    fprintf(s->r->json, "%s\n  \"%s\": ", s->n++ ? "," : "", name);
    write_hex(s->r->json, bytes, n);
  }
  free(bytes);
}

static void write_launch(Record *r, const Passed *p, const char *ptx) {
  const CUlaunchConfig *c = p->c;
  Symbols symbols = {r, p->k, 0};
  fprintf(r->json, "{\"capture\": %d, \"entry\": \"%s\",\n \"grid\": "
          "[%u, %u, %u], \"block\": [%u, %u, %u], \"smem\": %u", FORMAT,
          p->k->name, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
          c->blockDimY, c->blockDimZ, c->sharedMemBytes);
  for (unsigned i = 0; i < c->numAttrs; i++) {
    const CUlaunchAttribute *a = &c->attrs[i];
    int id = (int)a->id;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && a->value.clusterDim.x)
      fprintf(r->json, ", \"cluster\": [%u, %u, %u]", a->value.clusterDim.x,
              a->value.clusterDim.y, a->value.clusterDim.z);
    else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && a->value.cooperative)
      fputs(", \"cooperative\": true", r->json);
    else if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
             a->value.programmaticStreamSerializationAllowed)
      fputs(", \"pdl\": true", r->json);
  }
  fputs(",\n \"args\": [", r->json);
  for (int i = 0; i < p->n; i++) {
    if (i) fputs(", ", r->json);
    write_argument(r, &p->param[i], p->value[i]);
  }
  fputs("],\n \"symbols\": {", r->json);
  entry_variables(ptx, write_symbol, &symbols);
  fputs("},\n", r->json);
}

// Writes to LAUNCH.json the file name of each allocation, and the pointers in
// the allocation.
static void write_names(Record *r, const char *name) {
  size_t k = 0;
  for (int i = 0; i < r->regions; i++) {
    fprintf(r->json, "%s\n  \"m%d\": {\"npy\": \"%s%d.npy\"", i ? "," : "", i,
            name, i);
    size_t first = k;
    for (; k < r->pointers && r->pointer[k].region == i; k++) {
      uint64_t v = r->pointer[k].value;
      fprintf(r->json, "%s\"%llu\": ", k == first ? ", \"pointers\": {" : ", ",
              (unsigned long long)r->pointer[k].offset);
      write_pointer(r, known_region(r, v), v);
    }
    fputs(k > first ? "}}" : "}", r->json);
  }
  fputs("}", r->json);
}

// Writes the files of the allocations.
static bool write_memory(Record *r) {
  char name[64];
  fputs(" \"memory\": {", r->json);
  for (int i = 0; i < r->regions; i++) {
    snprintf(name, sizeof name, "m%d.npy", i);
    if (!write_region(r, &r->region[i], name)) return false;
  }
  write_names(r, "m");
  return true;
}

// Completes LAUNCH.json with the sizes of the files, and renames the folder to
// its final name.
static bool complete(Record *r) {
  if (settings.after) {
    fputs(",\n \"expect\": {", r->json);
    if (settings.pointers && !find_pointers(r, false)) return false;
    write_names(r, "after");
  }
  fprintf(r->json, ",\n \"files\": {\"module.ptx\": %zu", r->ptx);
  for (int i = 0; i < r->regions; i++) {
    size_t bytes = r->region[i].size + NPY_HEAD;
    fprintf(r->json, ", \"m%d.npy\": %zu", i, bytes);
    if (settings.after) fprintf(r->json, ", \"after%d.npy\": %zu", i, bytes);
  }
  fputs("}}\n", r->json);
  fflush(r->json);
  return r->text && write_file(r, "LAUNCH.json", r->text, r->bytes) &&
         rename(r->folder, r->final) == 0;
}

// ---- selection ----

static uint64_t total(const Record *r) {
  uint64_t n = 0;
  for (int i = 0; i < r->regions; i++) n += r->region[i].size;
  return n;
}

// Sets p->value to the addresses of the parameters' values. Returns false if
// the driver reports other sizes than the PTX, or if the launch passes too few
// bytes.
static bool values(Passed *p, void **params, void **extra) {
  CUresult (*info)(CUfunction, size_t, size_t *, size_t *);
  const unsigned char *buffer = NULL;
  size_t offset, size, bytes = 0;
  DRIVER(info, p->k->library ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
  for (void **e = extra; e && *e && !params; e += 2) {
    if ((uintptr_t)*e == 1) buffer = e[1];
    else if ((uintptr_t)*e == 2) bytes = *(size_t *)e[1];
  }
  for (int i = 0; i < p->n; i++) {
    const Param *a = &p->param[i];
    p->value[i] = params ? params[i] : buffer ? buffer + a->offset : NULL;
    if (!p->value[i] || (!params && a->offset + a->size > bytes) ||
        (info && !info(p->f, (size_t)i, &offset, &size) && size != a->size)) {
      warn_once(WARN_PARAMS, "a launch of %s is not recorded: its parameters "
                "do not match those of the PTX", p->k->name);
      return false;
    }
  }
  return true;
}

static Record *new_record(int n) {
  Record *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->number = n;
  if (settings.count > 1) {
    if (n == 1) mkdir(settings.folder, 0777);
    snprintf(r->final, sizeof r->final, "%s/%d", settings.folder, n);
  } else {
    snprintf(r->final, sizeof r->final, "%s", settings.folder);
  }
  snprintf(r->folder, sizeof r->folder, "%.4000s.%ld.tmp", r->final,
           (long)getpid());
  r->json = open_memstream(&r->text, &r->bytes);
  if (r->json && access(r->final, F_OK) == 0) errno = EEXIST;
  else if (r->json && mkdir(r->folder, 0777) == 0) return r;
  warn_once(WARN_FOLDER, "cannot write %s: %s", r->final, strerror(errno));
  stopped = true;
  if (r->json) fclose(r->json);
  free(r->text);
  free(r);
  return NULL;
}

static void end_record(Record *r, bool good) {
  if (!good) remove_folder(r);
  fclose(r->json);
  free(r->text);
  free(r->pointer);
  free(r);
}

// Writes all data that is known before the launch. Prints a warning on failure.
static bool fill(Record *r, const Passed *p, const char *ptx) {
  r->ptx = strlen(ptx);
  bool ok = write_file(r, "module.ptx", ptx, r->ptx);
  write_launch(r, p, ptx);
  if (settings.pointers) ok = find_pointers(r, true) && ok;
  uint64_t bytes = total(r);
  if (ok && bytes > settings.most) {
    warn_once(WARN_LARGE, "a launch of %s is not recorded: its allocations "
              "have %llu MiB, more than CUTELUA_CAPTURE_MB=%llu", p->k->name,
              (unsigned long long)(bytes + (1 << 20) - 1) >> 20,
              (unsigned long long)settings.most >> 20);
    return false;
  }
  if (!ok || !write_memory(r)) {
    warn_once(WARN_MEMORY, "a launch of %s is not recorded: its memory cannot "
              "be copied to %s", p->k->name, r->folder);
    return false;
  }
  return true;
}

// Records a selected launch. The caller holds the lock.
static int begin(Passed *p, void **params, void **extra) {
  char why[256];
  char *ptx = image_ptx(p->k->image, p->k->name, why, sizeof why);
  Record *r = NULL;
  if (!ptx) {
    warn_once(WARN_PTX, "a launch of %s is not recorded: %s", p->k->name, why);
    return 0;
  }
  p->n = entry_params(ptx, p->k->name, p->param);
  if (p->n < 0)
    warn_once(WARN_PARAMS, "a launch of %s is not recorded: the parameters of "
              "its PTX are not understood", p->k->name);
  else if (!finish_work())
    warn_once(WARN_DRIVER, "a launch of %s is not recorded: the GPU's work "
              "before it failed", p->k->name);
  else if (values(p, params, extra))
    r = new_record(taken + 1);
  if (r && !fill(r, p, ptx)) {
    end_record(r, false);
    r = NULL;
  }
  free(ptx);
  if (!r) return 0;
  r->next = open_records;
  open_records = r;
  return taken = r->number;
}

int launch_before(const Kernel *k, CUfunction f, const CUlaunchConfig *c,
                  void **params, void **extra) {
  if (!c || !launch_selects(k->name)) return 0;
  // This launch is recorded when the program launches the captured graph.
  if (launch_capturing(c->hStream)) return 0;
  Passed *p = calloc(1, sizeof *p);
  if (!p) return 0;
  p->k = k, p->f = f, p->c = c;
  pthread_mutex_lock(&lock);
  int record = 0;
  if (!stopped && taken < settings.count && seen++ >= settings.skip)
    record = begin(p, params, extra);
  pthread_mutex_unlock(&lock);
  free(p);
  return record;
}

void launch_after(int record) {
  char name[64];
  pthread_mutex_lock(&lock);
  Record **at = &open_records;
  while (*at && (*at)->number != record) at = &(*at)->next;
  Record *r = *at;
  if (r) *at = r->next;
  bool good = r != NULL;
  if (good && settings.after) good = finish_work();
  for (int i = 0; good && settings.after && i < r->regions; i++) {
    snprintf(name, sizeof name, "after%d.npy", i);
    good = write_region(r, &r->region[i], name);
  }
  good = good && complete(r);
  if (r && !good)
    warn_once(WARN_FOLDER, "cannot write %s: %s", r->final, strerror(errno));
  if (r) end_record(r, good);
  pthread_mutex_unlock(&lock);
}
// SPDX-License-Identifier: MIT
