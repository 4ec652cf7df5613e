// Arenas, growing buffers and error reporting.
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const err_names[] = {
#define ERR(id, name) name,
#include "base/errors.h"
#undef ERR
};

const char *err_name(ErrKind kind) {
  return kind < ERR_COUNT ? err_names[kind] : "unknown";
}

void ctx_fail(Ctx *cx, ErrKind kind, const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  cx->fail(cx, kind, msg);
  abort();
}

bool why(Why *w, ErrKind kind, const char *fmt, ...) {
  if (!w) return false;
  va_list ap;
  va_start(ap, fmt);
  w->kind = kind;
  vsnprintf(w->msg, sizeof w->msg, fmt, ap);
  va_end(ap);
  return false;
}

// ---- allocation ----

bool base_room(void **p, uint32_t *max, uint32_t n, size_t size) {
  if (n <= *max) return true;
  uint32_t cap = *max ? *max * 2 : 16;
  while (cap < n) cap *= 2;
  void *q = base_realloc(*p, cap * size);
  if (!q) return false;
  *p = q;
  *max = cap;
  return true;
}

void *ctx_realloc(Ctx *cx, void *p, size_t n) {
  void *q = base_realloc(p, n);
  if (!q) ctx_fail(cx, ERR_MEMORY, "out of memory (%zu bytes requested)", n);
  return q;
}

// ---- arena ----

struct ArenaChunk {
  ArenaChunk *next;
  size_t size;
};

#define CHUNK_HEAD ((sizeof(ArenaChunk) + 15) & ~(size_t)15)

static void arena_more(Ctx *cx, Arena *a, size_t n) {
  size_t size = n + CHUNK_HEAD;
  if (size < 16384) size = 16384;
  ArenaChunk *c = ctx_realloc(cx, NULL, size);
  c->next = a->head;
  c->size = size;
  a->head = c;
  a->at = (char *)c + CHUNK_HEAD;
  a->end = (char *)c + size;
}

void *arena_alloc(Ctx *cx, Arena *a, size_t n) {
  n = (n + 15) & ~(size_t)15;
  if ((size_t)(a->end - a->at) < n) arena_more(cx, a, n);
  void *p = a->at;
  a->at += n;
  return p;
}

void *arena_zero(Ctx *cx, Arena *a, size_t n) {
  return memset(arena_alloc(cx, a, n), 0, n);
}

char *arena_printf(Ctx *cx, Arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = arena_alloc(cx, a, (size_t)n + 1);
  va_start(ap, fmt);
  vsnprintf(p, (size_t)n + 1, fmt, ap);
  va_end(ap);
  return p;
}

void arena_reset(Arena *a) {
  ArenaChunk *c = a->head;
  if (!c) return;
  for (ArenaChunk *d = c->next, *next; d; d = next) {
    next = d->next;
    base_free(d);
  }
  c->next = NULL;
  a->at = (char *)c + CHUNK_HEAD;
  a->end = (char *)c + c->size;
}

void arena_free(Arena *a) {
  for (ArenaChunk *c = a->head, *next; c; c = next) {
    next = c->next;
    base_free(c);
  }
  a->head = NULL;
  a->at = a->end = NULL;
}

// ---- growing arrays and text ----

void *vec_grow(Ctx *cx, void *p, size_t *cap, size_t need, size_t size) {
  if (need <= *cap) return p;
  size_t want = *cap ? *cap * 2 : 16;
  if (want < need) want = need;
  p = ctx_realloc(cx, p, want * size);
  *cap = want;
  return p;
}

void buf_add(Ctx *cx, Buf *b, const char *s, size_t n) {
  b->p = vec_grow(cx, b->p, &b->cap, b->n + n + 1, 1);
  memcpy(b->p + b->n, s, n);
  b->n += n;
  b->p[b->n] = '\0';
}

void buf_puts(Ctx *cx, Buf *b, const char *s) { buf_add(cx, b, s, strlen(s)); }

void buf_printf(Ctx *cx, Buf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  b->p = vec_grow(cx, b->p, &b->cap, b->n + (size_t)n + 1, 1);
  va_start(ap, fmt);
  vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
  va_end(ap);
  b->n += (size_t)n;
}

void buf_free(Buf *b) {
  base_free(b->p);
  b->p = NULL;
  b->n = b->cap = 0;
}

// ---- miscellaneous ----

bool base_debug(const char *what) {
  const char *s = getenv("CUTELUA_DEBUG");
  size_t n = strlen(what);
  for (; s && *s; s += strcspn(s, ","), s += *s == ',')
    if (strcspn(s, ",") == n && strncmp(s, what, n) == 0) return true;
  return false;
}

int64_t base_gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
  uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t r = x % y;
    x = y;
    y = r;
  }
  return x > INT64_MAX ? 1 : (int64_t)x;
}

uint64_t base_hash(uint64_t h, const void *p, size_t n) {
  const unsigned char *s = p;
  for (size_t i = 0; i < n; i++) h = (h ^ s[i]) * 1099511628211ull;
  return h;
}

uint64_t base_random(uint64_t *state) {  // splitmix64
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t base_nanotime(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
// SPDX-License-Identifier: MIT
