// The cache folder of compiled kernels: reads, validates, publishes and evicts
// entries.
#define _GNU_SOURCE
#include "gpu/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"

#define CACHE_VERSION 1u
#define MAX_ENTRY ((size_t)256 << 20)

typedef struct Head {
  char magic[8];
  uint32_t version, parts;
  // key[i]: hash i of the key text. text: bytes of the key text. part[i]: bytes
  // of part i.
  uint64_t key[2], text, part[CACHE_PARTS];
  uint64_t sum;  // checksum of this header (with sum = 0) and of all parts
} Head;

static const char magic[8] = "CUTEJIT";

// ---- hashes ----

// Hashes eight bytes at a time. The method differs from base_hash's, so that
// two texts hardly ever agree in both hashes.
static uint64_t word_hash(uint64_t h, const void *p, size_t n) {
  const unsigned char *s = p;
  for (; n; ) {
    uint64_t w = 0;
    size_t k = n < 8 ? n : 8;
    memcpy(&w, s, k);
    h = (h ^ w ^ k) * 0x9fb21c651e98df25ull;
    h ^= h >> 29;
    s += k;
    n -= k;
  }
  return h;
}

CacheKey cache_key(const char *text, size_t n) {
  CacheKey k = {.text = text, .n = n};
  k.h[0] = base_hash(HASH_INIT, text, n);
  k.h[1] = word_hash(0x6a09e667f3bcc909ull, text, n);
  snprintf(k.name, sizeof k.name, "%016llx%016llx",
           (unsigned long long)k.h[0], (unsigned long long)k.h[1]);
  return k;
}

// ---- folder ----

static void note(Cache *c, const char *what) {
  int e = errno;
  if (!c->note[0])
    snprintf(c->note, sizeof c->note, "%s %.300s: %s", what, c->dir,
             strerror(e));
}

// Creates the folder and its parents, accessible only by this user whatever the
// umask.
static bool make_folders(char *dir) {
  for (char *s = dir + 1; ; s++) {
    if (*s != '/' && *s) continue;
    char end = *s;
    *s = '\0';
    bool made = mkdir(dir, 0700) == 0, ok = made || errno == EEXIST;
    if (made) chmod(dir, 0700);
    *s = end;
    if (!ok) return false;
    if (!end) return true;
  }
}

// Reports whether only this user can have written a file or folder.
static bool is_ours(const struct stat *st) {
  return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static bool open_folder(Cache *c) {
  struct stat st;
  c->fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (c->fd < 0) {
    note(c, lstat(c->dir, &st) == 0 && S_ISLNK(st.st_mode)
         ? "cannot use a symbolic link as the cache folder"
         : "cannot open the cache folder");
    return false;
  }
  bool ok = fstat(c->fd, &st) == 0;
  if (ok && st.st_uid != geteuid()) ok = false, errno = EPERM;
  if (ok && (st.st_mode & 0777) != 0700) ok = fchmod(c->fd, 0700) == 0;
  if (ok) return true;
  note(c, "cannot use the cache folder of another user,");
  close(c->fd);
  return false;
}

void cache_open(Cache *c) {
  memset(c, 0, sizeof *c);
  const char *off = getenv("CUTELUA_CACHE");
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (off && strcmp(off, "0") == 0) return;
  int n = 0;
  // By the XDG specification, a relative path counts as unset.
  if (xdg && xdg[0] == '/')
    n = snprintf(c->dir, sizeof c->dir, "%s/cutelua", xdg);
  else if (home && home[0] == '/')
    n = snprintf(c->dir, sizeof c->dir, "%s/.cache/cutelua", home);
  if (n <= 0 || (size_t)n >= sizeof c->dir) return;
  if (!make_folders(c->dir)) note(c, "cannot make the cache folder");
  else c->on = open_folder(c);
}

void cache_close(Cache *c) {
  if (c->on) close(c->fd);
  c->on = false;
}

// ---- reading ----

static bool read_all(int fd, char *p, size_t n) {
  while (n) {
    ssize_t k = read(fd, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k;
    n -= (size_t)k;
  }
  return true;
}

// Marks an entry as used by setting its times, at most once an hour. Eviction
// removes the entries that were not used for the longest time.
static void touch(int fd, const struct stat *st) {
  if (time(NULL) - st->st_mtim.tv_sec > 3600) futimens(fd, NULL);
}

static bool believe(const char *p, size_t size, const CacheKey *key,
                    CachePart parts[]) {
  Head h;
  memcpy(&h, p, sizeof h);
  if (memcmp(h.magic, magic, 8) != 0 || h.version != CACHE_VERSION ||
      h.parts != CACHE_PARTS || h.key[0] != key->h[0] ||
      h.key[1] != key->h[1] || h.text != key->n)
    return false;
  size_t left = size - sizeof h;
  if (h.text > left) return false;
  left -= h.text;
  const char *at = p + sizeof h + h.text;
  for (int i = 0; i < CACHE_PARTS; i++) {
    if (h.part[i] > left) return false;
    parts[i] = (CachePart){at, (size_t)h.part[i]};
    at += h.part[i];
    left -= h.part[i];
  }
  if (left != 0 || memcmp(p + sizeof h, key->text, key->n) != 0) return false;
  uint64_t sum = h.sum;
  h.sum = 0;
  return sum == word_hash(word_hash(HASH_INIT, &h, sizeof h), p + sizeof h,
                          size - sizeof h);
}

// Opens a file that belongs to this user for reading, or returns -1.
static int open_ours(const Cache *c, const char *name, struct stat *st) {
  int fd = openat(c->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && is_ours(st)) return fd;
  close(fd);
  return -1;
}

bool cache_get(Cache *c, const CacheKey *key, CachePart parts[CACHE_PARTS],
               void **mem) {
  if (!c->on) return false;
  char name[40];
  struct stat st;
  snprintf(name, sizeof name, "%s.jit", key->name);
  int fd = open_ours(c, name, &st);
  if (fd < 0) return false;
  char *p = NULL;
  size_t size = (size_t)st.st_size;
  bool ok = size >= sizeof(Head) && size <= MAX_ENTRY &&
            (p = base_realloc(NULL, size)) != NULL && read_all(fd, p, size) &&
            believe(p, size, key, parts);
  if (ok) touch(fd, &st);
  close(fd);
  if (!ok) base_free(p);
  *mem = ok ? p : NULL;
  return ok;
}

bool cache_read(const Cache *c, const char *name, char *p, size_t n) {
  struct stat st;
  int fd = c->on ? open_ours(c, name, &st) : -1;
  if (fd < 0) return false;
  size_t size = (size_t)st.st_size;
  bool ok = size < n && read_all(fd, p, size);
  if (ok) p[size] = '\0';
  close(fd);
  return ok;
}

// ---- writing ----

static bool write_all(int fd, const void *data, size_t n) {
  const char *p = data;
  while (n) {
    ssize_t k = write(fd, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k;
    n -= (size_t)k;
  }
  return true;
}

typedef struct Name { char s[120]; } Name;

// Creates a temporary file whose name starts with the final name. Returns a
// descriptor, or -1.
static int open_aside(Cache *c, const char *name, Name *tmp) {
  uint64_t seed = base_nanotime() ^ (uint64_t)getpid() << 32;
  for (int i = 0; i < 8; i++) {
    snprintf(tmp->s, sizeof tmp->s, "%s.%016llx.tmp", name,
             (unsigned long long)base_random(&seed));
    int fd = openat(c->fd, tmp->s,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) fchmod(fd, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

static bool publish(Cache *c, const char *name, const CachePart pieces[],
                    int n) {
  Name tmp;
  int fd = open_aside(c, name, &tmp);
  bool ok = fd >= 0;
  for (int i = 0; i < n && ok; i++)
    ok = write_all(fd, pieces[i].p, pieces[i].n);
  int e = errno;
  if (fd >= 0 && close(fd) != 0 && ok) ok = false, e = errno;
  if (ok && renameat(c->fd, tmp.s, c->fd, name) != 0) ok = false, e = errno;
  if (ok) return true;
  if (fd >= 0) unlinkat(c->fd, tmp.s, 0);
  errno = e;
  note(c, "cannot write to the cache folder");
  return false;
}

bool cache_write(Cache *c, const char *name, const void *p, size_t n) {
  CachePart piece = {p, n};
  return c->on && publish(c, name, &piece, 1);
}

// ---- eviction ----

typedef struct Entry {
  char name[80];
  int64_t time;
  size_t size;
} Entry;

static int by_time(const void *a, const void *b) {
  int64_t x = ((const Entry *)a)->time, y = ((const Entry *)b)->time;
  return (x > y) - (x < y);
}

static bool has_suffix(const char *s, const char *suffix) {
  size_t n = strlen(s), k = strlen(suffix);
  return n > k && strcmp(s + n - k, suffix) == 0;
}

static size_t size_cap(void) {
  const char *s = getenv("CUTELUA_CACHE_MB");
  long mb = s ? strtol(s, NULL, 10) : 0;
  if (mb > 1 << 30) mb = 1 << 30;
  return (size_t)(mb > 0 ? mb : 256) << 20;
}

// Lists the entries of the folder. Removes temporary files and lock files older
// than an hour, whose processes must have died.
static Entry *list_entries(Cache *c, size_t *count, size_t *total) {
  int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
  if (fd >= 0 && !d) close(fd);
  Entry *list = NULL;
  size_t n = 0, cap = 0;
  *total = 0;
  for (struct dirent *e; d && (e = readdir(d)); ) {
    if (strlen(e->d_name) >= sizeof list->name) continue;
    struct stat st;
    if (fstatat(c->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode))
      continue;
    if (!has_suffix(e->d_name, ".jit")) {
      bool left = has_suffix(e->d_name, ".tmp") ||
                  has_suffix(e->d_name, ".lock");
      if (left && time(NULL) - st.st_mtim.tv_sec > 3600)
        unlinkat(c->fd, e->d_name, 0);
      continue;
    }
    if (n == cap) {
      Entry *more = base_realloc(list, (cap = 2 * cap + 64) * sizeof *list);
      if (!more) break;
      list = more;
    }
    snprintf(list[n].name, sizeof list->name, "%s", e->d_name);
    list[n].time = (int64_t)st.st_mtim.tv_sec * 1000000000 +
                   st.st_mtim.tv_nsec;
    list[n].size = (size_t)st.st_size;
    *total += list[n++].size;
  }
  if (d) closedir(d);
  *count = n;
  return list;
}

static void trim(Cache *c, const CacheKey *newest) {
  size_t n, total, cap = size_cap();
  Entry *list = list_entries(c, &n, &total);
  if (list && total > cap) {
    qsort(list, n, sizeof *list, by_time);
    for (size_t i = 0; i < n && total > cap - cap / 8; i++) {
      if (strncmp(list[i].name, newest->name, 32) == 0) continue;
      if (unlinkat(c->fd, list[i].name, 0) == 0) total -= list[i].size;
    }
  }
  base_free(list);
}

void cache_put(Cache *c, const CacheKey *key,
               const CachePart parts[CACHE_PARTS]) {
  if (!c->on) return;
  Head h;
  memset(&h, 0, sizeof h);
  memcpy(h.magic, magic, 8);
  h.version = CACHE_VERSION;
  h.parts = CACHE_PARTS;
  memcpy(h.key, key->h, sizeof h.key);
  h.text = key->n;
  size_t size = key->n;
  for (int i = 0; i < CACHE_PARTS; i++) size += h.part[i] = parts[i].n;
  char *body = base_realloc(NULL, size);
  if (!body) return;
  char *at = body;
  memcpy(at, key->text, key->n);
  at += key->n;
  for (int i = 0; i < CACHE_PARTS; i++) {
    if (parts[i].n) memcpy(at, parts[i].p, parts[i].n);
    at += parts[i].n;
  }
  h.sum = word_hash(word_hash(HASH_INIT, &h, sizeof h), body, size);
  CachePart pieces[] = {{(const char *)&h, sizeof h}, {body, size}};
  char name[40];
  snprintf(name, sizeof name, "%s.jit", key->name);
  if (publish(c, name, pieces, 2)) trim(c, key);
  base_free(body);
}

// ---- locks ----

// Waits for a lock on fd. Returns false if locks do not work on this file
// system.
static bool wait_lock(int fd) {
  for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || i > 40000 ||
        signals_asked)
      return false;
    nanosleep(&(struct timespec){0, 3000000}, NULL);
  }
  return true;
}

// Opens or creates a lock file that belongs to this user. Removes anything else
// that has the file's name.
static int open_lock(const Cache *c, const char *name) {
  for (int i = 0; i < 8; i++) {
    int fd = openat(c->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
                    O_CLOEXEC, 0600);
    int e = errno;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_uid == geteuid())
      return fd;
    if (fd >= 0) close(fd);
    errno = e;
    if (fd < 0 && e != ELOOP && e != EACCES && e != ENXIO) return -1;
    if (unlinkat(c->fd, name, 0) != 0 && errno != ENOENT) return -1;
  }
  return -1;
}

int cache_lock(Cache *c, const CacheKey *key) {
  if (!c->on) return -1;
  char name[40];
  snprintf(name, sizeof name, "%s.lock", key->name);
  for (;;) {
    int fd = open_lock(c, name);
    if (fd < 0) {
      note(c, "cannot write to the cache folder");
      return -1;
    }
    if (!wait_lock(fd)) {
      close(fd);
      return -1;
    }
    // If the previous holder removed the file in the meantime, this lock
    // protects nothing: another process can create and lock a new file.
    struct stat a, b;
    if (fstat(fd, &a) == 0 &&
        fstatat(c->fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
        a.st_ino == b.st_ino && a.st_dev == b.st_dev)
      return fd;
    close(fd);
  }
}

void cache_unlock(Cache *c, const CacheKey *key, int fd) {
  if (fd < 0) return;
  char name[40];
  snprintf(name, sizeof name, "%s.lock", key->name);
  unlinkat(c->fd, name, 0);
  close(fd);
}
// SPDX-License-Identifier: MIT
