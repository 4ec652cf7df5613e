// The cache folders of compiled kernels: reads, validates, publishes and evicts
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

#define CACHE_VERSION 2u
#define MAX_ENTRY ((size_t)256 << 20)

typedef struct Head {
  char magic[8];
  uint32_t version, parts;
  int32_t major, minor;  // version of the compiler
  // key[i]: hash i of the key text. text: length of the key text in bytes.
  // part[i]: length of part i in bytes.
  uint64_t key[2], text, part[CACHE_PARTS];
  uint64_t sum;  // checksum of this header (with sum = 0) and of all parts
} Head;

static const char magic[8] = "CUTEJIT";

// ---- hashes ----

// Hashes eight bytes at a time. The method differs from base_hash's, so that
// two different texts are unlikely to have the same pair of hashes.
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
    snprintf(c->note, sizeof c->note, "%s: %s %.300s: %s",
             c->fixed ? "the kernels of CUTELUA_CACHE_IMAGE are not used"
                      : "kernels are not cached", what, c->dir, strerror(e));
}

// Creates the folder and its parents with permissions `mode`, independently of
// the umask.
static bool make_folders(char *dir, mode_t mode) {
  for (char *s = dir + 1; ; s++) {
    if (*s != '/' && *s) continue;
    char end = *s;
    *s = '\0';
    bool made = mkdir(dir, mode) == 0, ok = made || errno == EEXIST;
    if (made) chmod(dir, mode);
    *s = end;
    if (!ok) return false;
    if (!end) return true;
  }
}

// Reports whether a file or folder belongs to this user. In a container image's
// cache, which is read-only, it may also belong to root.
static bool is_owned(const Cache *c, const struct stat *st) {
  return st->st_uid == geteuid() || (c->fixed && st->st_uid == 0);
}

// Reports whether a file or folder has an owner that is_owned accepts, and only
// this owner can write to it.
static bool is_ours(const Cache *c, const struct stat *st) {
  return is_owned(c, st) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

// Empties the user's own folder, to which other users could write: they may
// have placed the files there, or renamed files of this user. Sets the sticky
// bit until the last file is removed, so that meanwhile no other process trusts
// the files.
static bool take_over(Cache *c, mode_t was) {
  size_t bytes;
  if (fchmod(c->fd, S_ISVTX | 0700) != 0) return false;
  c->on = true;
  size_t n = cache_clear(c, 0, &bytes);
  c->on = false;
  snprintf(c->warning, sizeof c->warning, "other users could write to the "
           "cache folder %.300s (mode %04o): its mode is 0700 now, and its %zu "
           "entr%s removed", c->dir, (unsigned)was & 07777u, n,
           n == 1 ? "y was" : "ies were");
  return fchmod(c->fd, 0700) == 0;
}

static const char *unfit(Cache *c, const struct stat *st) {
  errno = EPERM;
  if (!is_owned(c, st)) return "cannot use the cache folder of another user,";
  if (c->fixed)
    return is_ours(c, st) ? NULL
           : "cannot use a cache folder that others can write to,";
  mode_t mode = c->image ? 0755 : 0700;
  bool open = st->st_mode & (S_IWGRP | S_IWOTH | S_ISVTX);
  if (open && !c->image ? take_over(c, st->st_mode)
      : (st->st_mode & 0777) == mode || fchmod(c->fd, mode) == 0)
    return NULL;
  return "cannot set the mode of the cache folder";
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
  const char *wrong = "cannot open the cache folder";
  if (fstat(c->fd, &st) == 0 && !(wrong = unfit(c, &st))) return true;
  note(c, wrong);
  close(c->fd);
  return false;
}

static bool disabled(void) {
  const char *off = getenv("CUTELUA_CACHE");
  return off && strcmp(off, "0") == 0;
}

void cache_open(Cache *c) {
  memset(c, 0, sizeof *c);
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (disabled()) return;
  int n = 0;
  // By the XDG specification, a relative path is treated as unset.
  if (xdg && xdg[0] == '/')
    n = snprintf(c->dir, sizeof c->dir, "%s/cutelua", xdg);
  else if (home && home[0] == '/')
    n = snprintf(c->dir, sizeof c->dir, "%s/.cache/cutelua", home);
  if (n <= 0 || (size_t)n >= sizeof c->dir) return;
  if (!make_folders(c->dir, 0700)) note(c, "cannot make the cache folder");
  else c->on = open_folder(c);
}

void cache_open_image(Cache *c) {
  memset(c, 0, sizeof *c);
  const char *dir = getenv("CUTELUA_CACHE_IMAGE");
  if (disabled() || !dir || !*dir) return;
  c->image = c->fixed = true;
  int n = snprintf(c->dir, sizeof c->dir, "%s", dir);
  errno = n < 0 || (size_t)n >= sizeof c->dir ? ENAMETOOLONG : EINVAL;
  if (*dir != '/' || errno == ENAMETOOLONG)
    note(c, "the absolute path of a folder is needed, got");
  else
    c->on = open_folder(c);
}

void cache_open_into(Cache *c, const char *dir) {
  memset(c, 0, sizeof *c);
  c->image = true;
  int n = snprintf(c->dir, sizeof c->dir, "%s", dir);
  errno = n < 0 || (size_t)n >= sizeof c->dir ? ENAMETOOLONG : ENOENT;
  if (n <= 0 || errno == ENAMETOOLONG || !make_folders(c->dir, 0755))
    note(c, "cannot make the folder");
  else
    c->on = open_folder(c);
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

// Marks an entry as used by setting the times of its file, at most once a
// minute. Eviction removes the least recently used entries.
static void touch(const Cache *c, int fd, const struct stat *st) {
  if (!c->fixed && time(NULL) - st->st_mtim.tv_sec > 60) futimens(fd, NULL);
}

// Reads the head of an entry of `size` bytes. Returns false if the lengths in
// the head do not add up to `size`.
static bool read_head(const char *p, size_t size, Head *h) {
  if (size < sizeof *h) return false;
  memcpy(h, p, sizeof *h);
  if (memcmp(h->magic, magic, 8) != 0 || h->version != CACHE_VERSION ||
      h->parts != CACHE_PARTS)
    return false;
  size_t left = size - sizeof *h;
  if (h->text > left) return false;
  left -= h->text;
  for (int i = 0; i < CACHE_PARTS; i++) {
    if (h->part[i] > left) return false;
    left -= h->part[i];
  }
  return left == 0;
}

// Reports whether the checksum of an entry is correct.
static bool sums_up(const char *p, size_t size, const Head *h) {
  Head zero = *h;
  zero.sum = 0;
  return h->sum == word_hash(word_hash(HASH_INIT, &zero, sizeof zero),
                             p + sizeof zero, size - sizeof zero);
}

static bool believe(const char *p, size_t size, const CacheKey *key,
                    CacheEntry *e) {
  Head h;
  if (!read_head(p, size, &h) || h.key[0] != key->h[0] ||
      h.key[1] != key->h[1] || h.text != key->n ||
      memcmp(p + sizeof h, key->text, key->n) != 0 || !sums_up(p, size, &h))
    return false;
  const char *at = p + sizeof h + h.text;
  for (int i = 0; i < CACHE_PARTS; i++) {
    e->part[i] = (CachePart){at, (size_t)h.part[i]};
    at += h.part[i];
  }
  e->major = h.major;
  e->minor = h.minor;
  return true;
}

// Opens a file for reading if only its trusted owner can have written it.
// Otherwise returns -1.
static int open_ours(const Cache *c, const char *name, struct stat *st) {
  int fd = openat(c->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && is_ours(c, st)) return fd;
  close(fd);
  return -1;
}

// Reads a whole file of an entry to new memory. Returns NULL if the file is too
// short or too long for an entry.
static char *read_entry(int fd, const struct stat *st) {
  size_t size = (size_t)st->st_size;
  char *p = size >= sizeof(Head) && size <= MAX_ENTRY ? base_realloc(NULL, size)
                                                      : NULL;
  if (p && read_all(fd, p, size)) return p;
  base_free(p);
  return NULL;
}

bool cache_get(Cache *c, const CacheKey *key, CacheEntry *e, void **mem) {
  *mem = NULL;
  if (!c->on) return false;
  char name[40];
  struct stat st;
  snprintf(name, sizeof name, "%s.jit", key->name);
  int fd = open_ours(c, name, &st);
  if (fd < 0) return false;
  char *p = read_entry(fd, &st);
  bool ok = p && believe(p, (size_t)st.st_size, key, e);
  if (ok) touch(c, fd, &st);
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
    if (fd >= 0) fchmod(fd, c->image ? 0644 : 0600);
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
  return c->on && !c->fixed && publish(c, name, &piece, 1);
}

// ---- eviction ----

static int by_time(const void *a, const void *b) {
  int64_t x = ((const CacheFile *)a)->used, y = ((const CacheFile *)b)->used;
  return (x > y) - (x < y);
}

static bool has_suffix(const char *s, const char *suffix) {
  size_t n = strlen(s), k = strlen(suffix);
  return n > k && strcmp(s + n - k, suffix) == 0;
}

size_t cache_cap(void) {
  const char *s = getenv("CUTELUA_CACHE_MB");
  long mb = s ? strtol(s, NULL, 10) : 0;
  if (mb > 1 << 30) mb = 1 << 30;
  return (size_t)(mb > 0 ? mb : 256) << 20;
}

// Reports whether a file is a record of a compiler (jit.c) or a GPU (known.c).
static bool is_record(const char *name) {
  return strncmp(name, "nvrtc-", 6) == 0 || strncmp(name, "gpu-", 4) == 0;
}

// Removes a file that is not an entry, if no process can still need it: a
// temporary file or lock file after an hour, a record after 30 days without
// use.
static void remove_old(Cache *c, const char *name, const struct stat *st) {
  bool left = has_suffix(name, ".tmp") || has_suffix(name, ".lock");
  bool record = is_record(name);
  time_t age = time(NULL) - st->st_mtim.tv_sec;
  if ((left && age > 3600) || (record && age > 30 * 86400))
    unlinkat(c->fd, name, 0);
}

// Reports whether the cache created a file, by its name: the name starts with
// the two hashes of a key, or with "nvrtc-" or "gpu-". The cache never touches
// other files.
static bool is_own_name(const char *s) {
  return strspn(s, "0123456789abcdef") >= 32 || is_record(s);
}

// Lists the entries of the folder. Calls other(c, name, stat) for other files
// of the cache.
static CacheFile *list_files(Cache *c, size_t *count, size_t *total,
                             void (*other)(Cache *, const char *,
                                           const struct stat *)) {
  int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
  if (fd >= 0 && !d) close(fd);
  CacheFile *list = NULL;
  size_t n = 0, cap = 0;
  *total = 0;
  for (struct dirent *e; d && (e = readdir(d)); ) {
    if (strlen(e->d_name) >= sizeof list->name || !is_own_name(e->d_name))
      continue;
    struct stat st;
    if (fstatat(c->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode))
      continue;
    if (!has_suffix(e->d_name, ".jit")) {
      if (other) other(c, e->d_name, &st);
      continue;
    }
    if (n == cap) {
      CacheFile *more = base_realloc(list, (cap = 2 * cap + 64) * sizeof *list);
      if (!more) break;
      list = more;
    }
    snprintf(list[n].name, sizeof list->name, "%s", e->d_name);
    list[n].used = (int64_t)st.st_mtim.tv_sec * 1000000000 +
                   st.st_mtim.tv_nsec;
    list[n].size = (size_t)st.st_size;
    *total += list[n++].size;
  }
  if (d) closedir(d);
  if (n) qsort(list, n, sizeof *list, by_time);
  *count = n;
  return list;
}

CacheFile *cache_list(Cache *c, size_t *count, size_t *total) {
  *count = *total = 0;
  return c->on ? list_files(c, count, total, NULL) : NULL;
}

// Removes listed entries, except `newest`, until at most `keep` of `total`
// bytes are left. Files that another process removed in the meantime reduce the
// total, too. Returns the number of files removed here, and stores their size
// in *bytes.
static size_t remove_files(Cache *c, const CacheFile *list, size_t n,
                           size_t total, size_t keep, const char *newest,
                           size_t *bytes) {
  size_t count = 0;
  *bytes = 0;
  for (size_t i = 0; i < n && total > keep; i++) {
    if (newest && strncmp(list[i].name, newest, 32) == 0) continue;
    bool gone = unlinkat(c->fd, list[i].name, 0) == 0;
    if (gone) count++, *bytes += list[i].size;
    if (gone || errno == ENOENT) total -= list[i].size;
  }
  return count;
}

static void trim(Cache *c, const CacheKey *newest) {
  size_t n, total, bytes, cap = cache_cap();
  CacheFile *list = list_files(c, &n, &total, remove_old);
  if (total > cap)
    remove_files(c, list, n, total, cap - cap / 8, newest->name, &bytes);
  base_free(list);
}

// Removes a file that is not an entry, unless a process may be using it: a lock
// that a process holds, or a temporary file of the last minute.
static void remove_idle(Cache *c, const char *name, const struct stat *st) {
  bool idle = has_suffix(name, ".tmp")
              ? time(NULL) - st->st_mtim.tv_sec > 60
              : is_record(name);
  if (has_suffix(name, ".lock")) {
    int fd = openat(c->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    idle = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (idle) unlinkat(c->fd, name, 0);
    if (fd >= 0) close(fd);
    return;
  }
  if (idle) unlinkat(c->fd, name, 0);
}

size_t cache_clear(Cache *c, size_t keep, size_t *bytes) {
  size_t n, total, count;
  *bytes = 0;
  if (!c->on || c->fixed) return 0;
  CacheFile *list = list_files(c, &n, &total, keep ? remove_old : remove_idle);
  // With keep = 0, pretend that there is one byte more, so that the loop also
  // removes files of 0 bytes.
  if (!keep) total++;
  count = remove_files(c, list, n, total, keep, NULL, bytes);
  base_free(list);
  return count;
}

// ---- examination ----

CacheState cache_look(Cache *c, const char *name, bool verify, CachePart *text,
                      int *major, int *minor, void **mem) {
  struct stat st;
  *text = (CachePart){"", 0};
  *mem = NULL;
  int fd = open_ours(c, name, &st);
  if (fd < 0)
    return fstatat(c->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? CACHE_FOREIGN
                                                               : CACHE_GONE;
  char *p = read_entry(fd, &st);
  close(fd);
  size_t size = (size_t)st.st_size;
  Head h;
  memset(&h, 0, sizeof h);
  if (p) memcpy(&h, p, sizeof h);
  bool old = memcmp(h.magic, magic, 8) == 0 && h.version != CACHE_VERSION;
  bool ok = p && read_head(p, size, &h);
  if (ok && verify) {
    CacheKey key = cache_key(p + sizeof h, (size_t)h.text);
    ok = strncmp(key.name, name, 32) == 0 && memcmp(key.h, h.key,
         sizeof h.key) == 0 && sums_up(p, size, &h);
  }
  if (ok) {
    *text = (CachePart){p + sizeof h, (size_t)h.text};
    *major = h.major;
    *minor = h.minor;
    *mem = p;
    return CACHE_GOOD;
  }
  base_free(p);
  return old ? CACHE_OLD : CACHE_BROKEN;
}

bool cache_put(Cache *c, const CacheKey *key, const CacheEntry *e) {
  if (!c->on || c->fixed) return false;
  Head h;
  memset(&h, 0, sizeof h);
  memcpy(h.magic, magic, 8);
  h.version = CACHE_VERSION;
  h.parts = CACHE_PARTS;
  h.major = e->major;
  h.minor = e->minor;
  memcpy(h.key, key->h, sizeof h.key);
  h.text = key->n;
  size_t size = key->n;
  for (int i = 0; i < CACHE_PARTS; i++) size += h.part[i] = e->part[i].n;
  char *body = base_realloc(NULL, size);
  if (!body) return false;
  char *at = body;
  memcpy(at, key->text, key->n);
  at += key->n;
  for (int i = 0; i < CACHE_PARTS; i++) {
    if (e->part[i].n) memcpy(at, e->part[i].p, e->part[i].n);
    at += e->part[i].n;
  }
  h.sum = word_hash(word_hash(HASH_INIT, &h, sizeof h), body, size);
  CachePart pieces[] = {{(const char *)&h, sizeof h}, {body, size}};
  char name[40];
  snprintf(name, sizeof name, "%s.jit", key->name);
  bool ok = publish(c, name, pieces, 2);
  if (ok && !c->image) trim(c, key);
  base_free(body);
  return ok;
}

// ---- locks ----

// Waits for a lock on fd. Returns false if this file system does not support
// locks.
static bool wait_lock(int fd) {
  for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || i > 40000 ||
        signals_asked)
      return false;
    nanosleep(&(struct timespec){0, 3000000}, NULL);
  }
  return true;
}

// Opens or creates a lock file that belongs to this user. Removes any other
// object that has the file's name.
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
  if (!c->on || c->fixed) return -1;
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
    // The previous holder may have removed the file in the meantime. The lock
    // then protects nothing, because another process can create and lock a new
    // file of the same name. Try again.
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
