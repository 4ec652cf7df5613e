// The disk cache of compiled kernels: $XDG_CACHE_HOME/cutelua (default
// ~/.cache/cutelua), one file an entry. CUTELUA_CACHE=0 turns it off and
// CUTELUA_CACHE_MB sets its size cap (256).
//
// An entry is found by a 128-bit hash of its key text and believed only if
// the whole text (all that the code was compiled from), the lengths and the
// checksum agree; anything else is a miss, and the next cache_put replaces
// it. Nothing here can fail: trouble means less caching, and a sentence in
// `note`.
//
// What is cached is run on the GPU, so only this user may have written it:
// the folder (0700, no symbolic link) and what is read from it (0600, plain
// files) belong to the effective user, or are not used. Everything goes
// through the folder's descriptor, and nothing that somebody else put there
// is followed or waited for.
#ifndef CUTE_CACHE_H
#define CUTE_CACHE_H

#include "base/base.h"

typedef struct Cache {
  bool on;
  int fd;          // of the folder while `on`
  char dir[900];
  char note[400];  // why entries are not written, or ""
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

// The entry's parts, pointing into *mem, which the caller frees with
// base_free; false for a miss.
bool cache_get(Cache *c, const CacheKey *key, CachePart parts[CACHE_PARTS],
               void **mem);
// Publishes an entry (written aside, then renamed), then evicts the oldest
// entries over the size cap.
void cache_put(Cache *c, const CacheKey *key,
               const CachePart parts[CACHE_PARTS]);

// One process at a time holds a key's lock; waits up to two minutes for it,
// less with a Ctrl-C. A file descriptor for cache_unlock, or -1 when locks do
// not work here.
int cache_lock(Cache *c, const CacheKey *key);
void cache_unlock(Cache *c, const CacheKey *key, int fd);

// Writes a small file of the cache's folder aside and renames it; reads one
// of less than n bytes as a string.
bool cache_write(Cache *c, const char *name, const void *p, size_t n);
bool cache_read(const Cache *c, const char *name, char *p, size_t n);

#endif
