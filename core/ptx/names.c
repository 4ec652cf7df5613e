// names.c: the interned names of a module, an open-addressing hash table.
#include "ptx/names.h"

#include <string.h>

struct PtxNames {
  PtxNameEntry *p;
  size_t n, cap;  // capacity, a power of 2
};

static PtxNameEntry *slot(const struct PtxNames *t, const char *s, size_t n) {
  size_t at = (size_t)base_hash(HASH_INIT, s, n) & (t->cap - 1);
  while (t->p[at].text &&
         (t->p[at].n != n || memcmp(t->p[at].text, s, n) != 0)) {
    at = (at + 1) & (t->cap - 1);
  }
  return &t->p[at];
}

static void grow(Ctx *cx, struct PtxNames *t) {
  size_t cap = t->cap ? t->cap * 2 : 256;
  struct PtxNames bigger = {.cap = cap, .n = t->n};
  bigger.p = base_zeros(cap * sizeof *bigger.p);
  if (!bigger.p) ctx_fail(cx, ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < t->cap; i++) {
    if (t->p[i].text) *slot(&bigger, t->p[i].text, t->p[i].n) = t->p[i];
  }
  base_free(t->p);
  *t = bigger;
}

PtxNameEntry *names_find(const PtxModule *m, const char *s, size_t n) {
  if (!m->table || !m->table->cap) return NULL;
  PtxNameEntry *e = slot(m->table, s, n);
  return e->text ? e : NULL;
}

PtxNameEntry *names_entry(Ctx *cx, PtxModule *m, const char *s, size_t n) {
  if (!m->table) {
    m->table = base_zeros(sizeof *m->table);
    if (!m->table) ctx_fail(cx, ERR_MEMORY, "out of memory");
  }
  if (m->table->n * 2 >= m->table->cap) grow(cx, m->table);
  PtxNameEntry *e = slot(m->table, s, n);
  if (e->text) return e;
  char *text = arena_alloc(cx, &m->names, n + 1);
  memcpy(text, s, n);
  text[n] = 0;
  *e = (PtxNameEntry){.text = text, .n = n, .var = -1};
  m->table->n++;
  return e;
}

const char *ptx_name(Ctx *cx, PtxModule *m, const char *s, size_t n) {
  return names_entry(cx, m, s, n)->text;
}

void names_free(PtxModule *m) {
  if (m->table) base_free(m->table->p);
  base_free(m->table);
  m->table = NULL;
  arena_free(&m->names);
}
// SPDX-License-Identifier: MIT
