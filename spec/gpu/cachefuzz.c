// Damages the file of a cache entry in random ways, and reads the entry after
// each damage. The reader must reject all damaged entries, and accept the
// intact one. Usage: `cachefuzz SEED ROUNDS`, with XDG_CACHE_HOME set.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cache.h"

enum { KEY = 699, PART = 3000, MOST = 40000 };

static unsigned long long state;

static unsigned pick(unsigned n) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % n;
}

// Writes a damaged copy of an entry of n bytes; returns the copy's length.
static size_t damage(char *bad, const char *good, size_t n) {
  size_t m = n;
  unsigned all = (unsigned)n;
  memcpy(bad, good, n);
  switch (pick(7)) {
    case 0:
      m = pick(all + 1);
      break;
    case 1:
      m = n + 1 + pick(500);
      memset(bad + n, (int)pick(256), m - n);
      break;
    case 2:
      bad[pick(all)] ^= (char)(1 << pick(8));
      break;
    case 3:  // the head
      for (unsigned i = pick(20) + 1; i--;) bad[pick(120)] = (char)pick(256);
      break;
    case 4:
      for (unsigned i = pick(20) + 1; i--;) bad[pick(all)] = (char)pick(256);
      break;
    case 5: {  // a length in the entry's head
      unsigned long long v = pick(4) ? (unsigned long long)pick(1u << 30)
                                         << pick(34) : ~0ull - pick(9);
      memcpy(bad + 8 * pick(13), &v, 8);
      break;
    }
    default: {
      unsigned to = pick(all), from = pick(all);
      memmove(bad + to, good + from, all - (to > from ? to : from));
    }
  }
  return m;
}

static int wrong(long round, const char *what) {
  printf("round %ld: %s\n", round, what);
  return 1;
}

static bool same(const CacheEntry *a, const CacheEntry *b) {
  for (int i = 0; i < CACHE_PARTS; i++)
    if (a->part[i].n != b->part[i].n ||
        memcmp(a->part[i].p, b->part[i].p, a->part[i].n) != 0)
      return false;
  return a->major == b->major && a->minor == b->minor;
}

static int attack(Cache *c, const CacheKey *key, const CacheEntry *e,
                  long rounds) {
  static char good[MOST], bad[MOST];
  char name[64];
  snprintf(name, sizeof name, "%s.jit", key->name);
  int fd = openat(c->fd, name, O_RDONLY);
  ssize_t n = read(fd, good, sizeof good);
  close(fd);
  for (long r = 0; r < rounds; r++) {
    size_t m = damage(bad, good, (size_t)n);
    bool changed = m != (size_t)n || memcmp(bad, good, m) != 0;
    // Avoids O_TRUNC, after which some file systems flush the file.
    fd = openat(c->fd, name, O_WRONLY);
    if (write(fd, bad, m) != (ssize_t)m || ftruncate(fd, (off_t)m) != 0)
      return wrong(r, "cannot write");
    close(fd);
    CacheEntry got;
    CachePart text;
    int major, minor;
    void *mem;
    bool hit = cache_get(c, key, &got, &mem);
    if (hit == changed) return wrong(r, hit ? "damaged, taken" : "not taken");
    if (hit && !same(&got, e)) return wrong(r, "other bytes");
    base_free(mem);
    CacheState s = cache_look(c, name, true, &text, &major, &minor, &mem);
    if ((s == CACHE_GOOD) == changed) return wrong(r, "wrongly verified");
    if (s == CACHE_GOOD && (text.n != key->n ||
        memcmp(text.p, key->text, text.n) != 0))
      return wrong(r, "another key");
    base_free(mem);
    s = cache_look(c, name, false, &text, &major, &minor, &mem);
    if (text.n && memchr(text.p, '\n', text.n)) state++;
    base_free(mem);
  }
  printf("ok\n");
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  state = strtoull(argv[1], NULL, 10);
  static char text[KEY], part[2][PART];
  for (int i = 0; i < KEY; i++) text[i] = (char)('a' + pick(20));
  for (int i = 0; i < 2 * PART; i++) part[i / PART][i % PART] = (char)pick(256);
  CacheEntry e = {.part = {{part[0], PART / 3}, {part[1], PART}, {"", 0}},
                  .major = 13, .minor = 5};
  CacheKey key = cache_key(text, KEY);
  Cache c;
  cache_open(&c);
  if (!c.on || !cache_put(&c, &key, &e)) return wrong(0, c.note);
  int code = attack(&c, &key, &e, atol(argv[2]));
  cache_close(&c);
  return code;
}
// SPDX-License-Identifier: MIT
