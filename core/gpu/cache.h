// The disk cache of compiled kernels: $XDG_CACHE_HOME/cutelua (default
// ~/.cache/cutelua), one file for each entry. CUTELUA_CACHE=0 disables it, and
// CUTELUA_CACHE_MB sets its maximum size in MB (default 256).
//
// A 128-bit hash of the key text names an entry. The key text contains
// everything that the code was compiled from. The entry is valid only if the
// key text, the lengths and the checksum agree. Otherwise it is a miss, and the
// next cache_put replaces it. No function here can fail: a problem only
// disables caching, and `note` describes it.
//
// Cached code runs on the GPU, so only this user may have written it. The
// folder (0700, not a symbolic link) and the files read (0600, plain files)
// must belong to the effective user. All accesses use the folder's descriptor,
// and never follow or wait for objects that another user created.
#ifndef CUTE_CACHE_H
#define CUTE_CACHE_H

#include "base/base.h"

typedef struct Cache {
  bool on;
  int fd;          // descriptor of the folder, if `on`
  char dir[900];
  char note[400];  // reason why entries cannot be written, or ""
} Cache;

typedef struct CacheKey {
  uint64_t h[2];
  char name[33];  // hash h in hexadecimal, which names the entry's file
  const char *text;
  size_t n;
} CacheKey;

#define CACHE_PARTS 3  // parts of an entry: log, CUBIN, PTX

typedef struct CachePart {
  const char *p;
  size_t n;
} CachePart;

void cache_open(Cache *c);
void cache_close(Cache *c);
CacheKey cache_key(const char *text, size_t n);

// Returns an entry's parts, which point into *mem (freed by the caller with
// base_free), or false for a miss.
bool cache_get(Cache *c, const CacheKey *key, CachePart parts[CACHE_PARTS],
               void **mem);
// Writes an entry to a temporary file and renames the file, so that no reader
// sees a part of it. Then evicts the entries that were not used for the longest
// time until the folder has its maximum size.
void cache_put(Cache *c, const CacheKey *key,
               const CachePart parts[CACHE_PARTS]);

// Takes the lock of a key, which one process at a time can hold. Waits up to
// two minutes, or until Ctrl-C. Returns a file descriptor for cache_unlock, or
// -1 without a lock.
int cache_lock(Cache *c, const CacheKey *key);
void cache_unlock(Cache *c, const CacheKey *key, int fd);

// cache_write replaces a small file of the cache's folder atomically.
// cache_read reads such a file as a string, if it has less than n bytes.
bool cache_write(Cache *c, const char *name, const void *p, size_t n);
bool cache_read(const Cache *c, const char *name, char *p, size_t n);

#endif
// SPDX-License-Identifier: MIT
