// The disk cache of compiled kernels: $XDG_CACHE_HOME/cutelua (default
// ~/.cache/cutelua), one file for each entry. CUTELUA_CACHE=0 disables it, and
// CUTELUA_CACHE_MB sets its maximum size (256).
//
// An entry is found by a 128-bit hash of its key text (everything that the code
// was compiled from). It is valid only if the whole text, the lengths and the
// checksum agree. Otherwise it is a miss, and the next cache_put replaces it.
// Nothing here can fail: problems only reduce caching, and `note` describes
// them.
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
  int fd;          // descriptor of the folder while `on`
  char dir[900];
  char note[400];  // reason why entries are not written, or ""
} Cache;

typedef struct CacheKey {
  uint64_t h[2];
  char name[33];  // h in hexadecimal
  const char *text;
  size_t n;
} CacheKey;

#define CACHE_PARTS 3  // log, CUBIN, PTX

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
// Publishes an entry (written to a temporary file, then renamed), then evicts
// the oldest entries beyond the maximum size.
void cache_put(Cache *c, const CacheKey *key,
               const CachePart parts[CACHE_PARTS]);

// Locks a key, which one process at a time can hold. Waits up to two minutes,
// or until Ctrl-C. Returns a file descriptor for cache_unlock, or -1 if locks
// do not work here.
int cache_lock(Cache *c, const CacheKey *key);
void cache_unlock(Cache *c, const CacheKey *key, int fd);

// Write a small file of the cache's folder atomically, and read one of less
// than n bytes as a string.
bool cache_write(Cache *c, const char *name, const void *p, size_t n);
bool cache_read(const Cache *c, const char *name, char *p, size_t n);

#endif
// SPDX-License-Identifier: MIT
