// Images of modules: PTX texts, fat binaries and machine code. Finds the PTX of
// an entry in an image. If the image has none, searches a folder for a file
// with the same machine code and its PTX beside it, as in Triton's cache.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/inside.h"

enum { WRAPPER = 0x466243b1, FATBIN = (int)0xba55ed50u, ELF = 0x464c457f };
enum { LZ4 = 0x2000, ZSTD = 0x8000 };  // flags of an entry of a fat binary
enum { LARGEST = 64 << 20 };  // maximum size of a copied image, in bytes

// The head of one entry of a fat binary.
typedef struct Part {
  uint16_t kind, version;  // kind: 1: PTX, 2: machine code
  uint32_t head;
  uint64_t bytes;
  uint32_t packed, options;
  uint16_t minor, major;
  uint32_t arch;
  uint64_t name, flags, zero, plain;
} Part;

static uint32_t word_at(const void *p) {
  uint32_t w;
  memcpy(&w, p, 4);
  return w;
}

// Returns the size of an ELF file. The file ends after its section table or
// after its program headers, whichever comes last.
static size_t elf_size(const unsigned char *p) {
  uint64_t sections, programs;
  uint16_t n[4];
  memcpy(&programs, p + 32, 8);
  memcpy(&sections, p + 40, 8);
  memcpy(n, p + 54, 8);  // size and number of program headers, then of sections
  uint64_t a = programs + (uint64_t)n[0] * n[1];
  uint64_t b = sections + (uint64_t)n[2] * n[3];
  return (size_t)(a > b ? a : b);
}

static size_t size_of(const void *data) {
  uint64_t n;
  int magic = (int)word_at(data);
  if (magic == ELF) return elf_size(data);
  if (magic != FATBIN) return strlen(data) + 1;
  memcpy(&n, (const char *)data + 8, 8);
  return (size_t)n + 16;
}

Image *image_new(const void *data) {
  Image *image = calloc(1, sizeof *image);
  if (!image || !data) return image;
  // A wrapper and its fat binary need no copy, because they are static data of
  // the program.
  bool fixed = (int)word_at(data) == WRAPPER;
  if (fixed) memcpy(&data, (const char *)data + 8, sizeof data);
  image->size = size_of(data);
  image->data = data;
  if (fixed) return image;
  void *copy = image->size <= LARGEST ? malloc(image->size) : NULL;
  image->data = copy ? memcpy(copy, data, image->size) : NULL;
  return image;
}

// ---- compressed texts ----

// Reads a length in LZ4 data. n is the length's 4-bit field in the token. If n
// is 15, further bytes are added.
static size_t length(const unsigned char **s, const unsigned char *end,
                     size_t n) {
  if (n != 15) return n;
  unsigned char c = 255;
  while (c == 255 && *s < end) n += c = *(*s)++;
  return n;
}

// Unpacks a block of LZ4 to exactly `size` bytes.
static bool unpack_lz4(const unsigned char *s, size_t n, char *out,
                       size_t size) {
  const unsigned char *end = s + n;
  size_t at = 0;
  while (s < end) {
    unsigned head = *s++;
    size_t k = length(&s, end, head >> 4);
    if (k > (size_t)(end - s) || k > size - at) return false;
    memcpy(out + at, s, k);
    s += k, at += k;
    if (s == end) break;
    if (end - s < 2) return false;
    size_t back = s[0] | (size_t)s[1] << 8;
    s += 2;
    k = length(&s, end, head & 15) + 4;
    if (!back || back > at || k > size - at) return false;
    for (; k > 0; k--, at++) out[at] = out[at - back];
  }
  return at == size;
}

// Unpacks zstd data with libzstd. Returns false if it is not installed.
static bool unpack_zstd(const void *s, size_t n, char *out, size_t size) {
  size_t (*unpack)(void *, size_t, const void *, size_t);
  void *lib = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
  *(void **)(void *)&unpack = real_dlsym()(lib, "ZSTD_decompress");
  bool ok = unpack && unpack(out, size, s, n) == size;
  dlclose(lib);
  return ok;
}

// Returns the text of a PTX part, in newly allocated memory, or NULL if its
// compression is unknown.
static char *text_of(const Part *p, const unsigned char *data) {
  bool packed = p->packed && p->flags & (LZ4 | ZSTD);
  size_t size = (size_t)(packed ? p->plain : p->bytes);
  char *out = size <= LARGEST ? malloc(size + 1) : NULL;
  if (!out) return NULL;
  bool ok = true;
  if (!packed) memcpy(out, data, size);
  else if (p->flags & LZ4) ok = unpack_lz4(data, p->packed, out, size);
  else ok = unpack_zstd(data, p->packed, out, size);
  out[size] = 0;
  if (ok) return out;
  free(out);
  return NULL;
}

// ---- the PTX of an image ----

// Returns the PTX text with the entry from a fat binary. If several texts have
// the entry, returns the one for the newest architecture. Sets *packed if a
// text cannot be unpacked.
static char *fatbin_ptx(const unsigned char *p, size_t size, const char *name,
                        bool *packed) {
  const unsigned char *end = p + size;
  char *best = NULL;
  uint32_t arch = 0;
  p += 16;
  while ((size_t)(end - p) >= sizeof(Part)) {
    Part part;
    memcpy(&part, p, sizeof part);
    if (part.head < sizeof part || part.head > (size_t)(end - p) ||
        part.bytes > (size_t)(end - p) - part.head ||
        part.packed > part.bytes)
      break;
    char *text = part.kind == 1 ? text_of(&part, p + part.head) : NULL;
    *packed = *packed || (part.kind == 1 && !text);
    if (text && part.arch >= arch && entry_find(text, name)) {
      free(best);
      best = text, arch = part.arch;
    } else {
      free(text);
    }
    p += part.head + part.bytes;
  }
  return best;
}

// Returns the bytes of a file, followed by a zero, or NULL.
static char *file_bytes(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  struct stat st;
  char *out = NULL;
  if (f && fstat(fileno(f), &st) == 0 && st.st_size <= LARGEST)
    out = malloc((size_t)st.st_size + 1);
  if (out) {
    *size = fread(out, 1, (size_t)st.st_size, f);
    out[*size] = 0;
  }
  if (f) fclose(f);
  return out;
}

Image *image_file(const char *path) {
  size_t size;
  char *bytes = file_bytes(path, &size);
  Image *image = bytes && size >= 4 ? image_new(bytes) : NULL;
  free(bytes);
  return image;
}

// If PATH.cubin has the same contents as the image, returns the text of
// PATH.ptx, else NULL.
static char *beside(const Image *image, const char *path) {
  char ptx[4096];
  struct stat st;
  size_t n = strlen(path), size;
  if (stat(path, &st) != 0 || (size_t)st.st_size != image->size) return NULL;
  char *bytes = file_bytes(path, &size);
  bool same = bytes && size == image->size &&
              memcmp(bytes, image->data, size) == 0;
  free(bytes);
  if (!same) return NULL;
  snprintf(ptx, sizeof ptx, "%.*s.ptx", (int)n - 6, path);
  return file_bytes(ptx, &size);
}

// Searches a folder and its subfolders for the image's machine code. Returns
// the PTX beside it, or NULL.
static char *search(const Image *image, const char *folder, int depth) {
  DIR *d = opendir(folder);
  char path[4096], *found = NULL;
  const struct dirent *e;
  while (d && !found && (e = readdir(d))) {
    if (e->d_name[0] == '.') continue;
    size_t n = strlen(e->d_name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >=
        sizeof path)
      continue;
    if (n > 6 && strcmp(e->d_name + n - 6, ".cubin") == 0)
      found = beside(image, path);
    else if (e->d_type == DT_DIR && depth < 4)
      found = search(image, path, depth + 1);
  }
  if (d) closedir(d);
  return found;
}

// Finds the image's machine code in a cache such as Triton's. Returns the PTX
// beside it, or NULL.
static char *cached_ptx(const Image *image, const char *name) {
  const char *folder = getenv("CUTELUA_CAPTURE_PTX"), *home = getenv("HOME");
  char path[4096];
  if (!folder) folder = getenv("TRITON_CACHE_DIR");
  if (!folder && home) {
    snprintf(path, sizeof path, "%s/.triton/cache", home);
    folder = path;
  }
  char *text = folder ? search(image, folder, 0) : NULL;
  if (text && entry_find(text, name)) return text;
  free(text);
  return NULL;
}

char *image_ptx(const Image *image, const char *name, char *why, size_t size) {
  bool packed = false;
  char *text = NULL;
  int magic = image->data ? (int)word_at(image->data) : 0;
  if (!image->data) {
    snprintf(why, size, "its module is larger than 64 MiB");
  } else if (magic == FATBIN) {
    text = fatbin_ptx(image->data, image->size, name, &packed);
    snprintf(why, size, packed
      ? "its PTX is compressed: compile with nvcc --compress-mode=speed, or "
        "-Xfatbin -compress-all=no before CUDA 13"
      : "its fat binary has no PTX of it: compile with nvcc "
        "-gencode arch=compute_90,code=compute_90");
  } else if (magic == ELF) {
    text = cached_ptx(image, name);
    snprintf(why, size, "its module is machine code: load the PTX itself, or "
             "name the folder of X.cubin and X.ptx in CUTELUA_CAPTURE_PTX");
  } else if (entry_find((const char *)image->data, name)) {
    text = strdup((const char *)image->data);
    snprintf(why, size, "the memory of the host is exhausted");
  } else {
    snprintf(why, size, "its module is neither PTX nor a fat binary");
  }
  return text;
}
// SPDX-License-Identifier: MIT
