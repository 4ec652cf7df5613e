// The disk caches of compiled kernels: the user's own cache, and the cache of a
// container image. A cache is a folder with one file for each entry.
//
// The user's own cache is $XDG_CACHE_HOME/cutelua (default ~/.cache/cutelua).
// CUTELUA_CACHE_MB sets its maximum size in MB (default 256). The image's cache
// is the folder CUTELUA_CACHE_IMAGE. `cutelua compile --into` fills this
// folder, and launches only read it. CUTELUA_CACHE=0 disables both.
//
// Each entry is named by a 128-bit hash of its key text. The key text contains
// everything that the code was compiled from; in the user's own cache, it also
// contains the compiler's version. cache_get returns an entry only if its key
// text equals the requested one, and its lengths and checksum are correct.
// Otherwise it reports a miss, and the next cache_put replaces the entry. No
// function here can fail: a problem only disables caching, and `note` describes
// it.
//
// Cached code runs on the GPU, so a cache is used only if nobody but this user
// (or root, for the image's cache) can have written it. The user's own folder
// (0700, not a symbolic link) and its files (0600, plain files) must belong to
// the effective user. The image's folder and files must belong to root or to
// the effective user, and nobody else may be able to write to them. If others
// can write to the user's own folder, its files are removed when it is opened.
// All accesses use the folder's descriptor. They do not follow links of other
// users, and do not block on FIFOs of other users.
#ifndef CUTE_CACHE_H
#define CUTE_CACHE_H

#include "base/base.h"

typedef struct Cache {
  bool on;
  // whether it is a container image's cache, whose keys do not contain the
  // compiler's version
  bool image;
  bool fixed;      // whether the cache is read-only
  int fd;          // descriptor of the folder; valid if `on`
  char dir[900];
  char note[480];  // reason why the cache does not work, or ""
  // a message if other users could write to the folder, else ""
  char warning[480];
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

typedef struct CacheEntry {
  CachePart part[CACHE_PARTS];
  int major, minor;  // version of the compiler
} CacheEntry;

// cache_open opens the user's own cache, cache_open_image the image's cache,
// and cache_open_into a folder that is to become an image's cache.
void cache_open(Cache *c);
void cache_open_image(Cache *c);
void cache_open_into(Cache *c, const char *dir);
void cache_close(Cache *c);
CacheKey cache_key(const char *text, size_t n);

// Finds the entry of a key and stores it in *e. Returns false for a miss. The
// parts of the entry point into *mem, which the caller frees with base_free.
bool cache_get(Cache *c, const CacheKey *key, CacheEntry *e, void **mem);
// Writes an entry to a temporary file and renames the file, so that no reader
// sees an incomplete entry. In the user's own cache, then evicts the least
// recently used entries until the folder is within its maximum size.
bool cache_put(Cache *c, const CacheKey *key, const CacheEntry *e);

// An entry's file.
typedef struct CacheFile {
  char name[80];
  int64_t used;  // when it was used last, in nanoseconds since 1970
  size_t size;
} CacheFile;

// Returns the files of all entries, the least recently used first. Sets *count
// to their number and *total to the sum of their sizes. The caller frees the
// list with base_free.
CacheFile *cache_list(Cache *c, size_t *count, size_t *total);

typedef enum CacheState {
  CACHE_GOOD,
  CACHE_BROKEN,   // the file is damaged
  CACHE_OLD,      // the file is from another version of cutelua
  // the entry is not a regular file, or another user could have written it
  CACHE_FOREIGN,
  CACHE_GONE,     // the file does not exist any more
} CacheState;

// Checks the header of an entry's file (if `verify` is set, all bytes of the
// file). If the file is good, stores the compiler's version, and the key text,
// which points into *mem (the caller frees it with base_free).
CacheState cache_look(Cache *c, const char *name, bool verify, CachePart *text,
                      int *major, int *minor, void **mem);

// Removes the least recently used entries until the remaining entries have at
// most `keep` bytes. With keep = 0, also removes lock files, temporary files
// and records of compilers that no process uses. Returns the number of removed
// entries, and stores their total size in *bytes.
size_t cache_clear(Cache *c, size_t keep, size_t *bytes);
size_t cache_cap(void);  // the maximum size of the user's own cache in bytes

// Takes the lock of a key, which one process at a time can hold. Waits up to
// two minutes, or until Ctrl-C. Returns a file descriptor for cache_unlock, or
// -1 if it did not get the lock.
int cache_lock(Cache *c, const CacheKey *key);
void cache_unlock(Cache *c, const CacheKey *key, int fd);

// cache_write replaces a small file of the cache's folder atomically.
// cache_read reads such a file as a string, if it has less than n bytes.
bool cache_write(Cache *c, const char *name, const void *p, size_t n);
bool cache_read(const Cache *c, const char *name, char *p, size_t n);

#endif
// SPDX-License-Identifier: MIT
