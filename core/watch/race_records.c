// Records of the accesses of CTAs to global memory. The unit of recorded memory
// is a granule, which has up to RACE_KINDS records of 8 bytes. Memory that a
// kernel only reads has none.
//
// A chunk of granules is open or folded. An open chunk has a list of rows
// (RaceRow). When a cluster ends, it folds (compresses) the chunks that only
// one of its CTAs accessed. A folded chunk is one word: the CTA, and the number
// of a form (RaceForm), which has the threads and lines of the accesses. CTAs
// usually access their parts in the same way, so many chunks share a form. The
// stored values need no record, because memory still holds them. Before another
// cluster first accesses the chunk, it opens the chunk again. The records
// therefore have the same contents as if chunks were never folded.
#include "watch/race_records.h"
#include "watch/own.h"

#include <sched.h>
#include <stddef.h>

// Each page has a slot for each of its chunks, and is created on first use. A
// slot is one of these:
// - 0 if no CTA accessed the chunk;
// - BUSY while a cluster is in the chunk (from race_enter to race_leave);
// - another odd number if the chunk is folded: from the lowest bit on, 1, the
//   number of the form, and the CTA;
// - else the address of a list of rows.
enum { BUSY = 1 };

// A form describes the threads and lines of the accesses to a chunk. It has n
// words, one for each granule and each class in the set `classes`. A word of 0
// states that there was no access. Other words have the bit ACCESS, the bit
// DIFFERENT if different values were stored, and, from bit WORD_AT on, the line
// and the thread. Only the first n words are allocated.
typedef struct RaceForm {
  uint32_t classes, n;
  uint32_t word[LAST * CHUNK];
} RaceForm;
enum { ACCESS = 1, DIFFERENT = 2, WORD_AT = 2,
       PLACE = (1 << (CTA_AT - SRC_AT)) - 1 };
// All forms of a launch: a hash table that does not grow. A chunk stays open if
// the table has no free entry for its form.
enum { FORMS = 1 << 12, PROBES = 32 };
typedef struct RaceForms { RaceForm *form[FORMS]; } RaceForms;

// forms: table of forms; NULL: chunks are never folded
struct RaceRecords { RaceForms *forms; uint64_t *page[]; };

// The records of a cluster: the chunks that it opened, and unused rows.
typedef struct Opened { const SimArea *a; size_t n; } Opened;
typedef struct Own {
  Opened *opened;
  uint32_t n, max;
  RaceRow *spare;
} Own;

// ---- the launch ----

size_t race_chunks(const SimArea *a) {
  return a->races ? (a->bytes >> a->shift) / CHUNK + 1 : 0;
}

static size_t pages(const SimArea *a) {
  return (race_chunks(a) + RACE_PAGE - 1) / RACE_PAGE;
}

// Reports whether the kernel may store elements narrower than a byte to area a.
// Such stores change memory, but have no records.
static bool has_bits(const SimProg *p, const SimArea *a) {
  for (size_t k = 0; k < p->fn->mem.n; k++) {
    const SimMem *m = p->mem[p->fn->mem.p[k].ref];
    if (m && m->area == a && m->bits < 8) return true;
  }
  return false;
}

void race_records_start(Ctx *cx, SimProg *p) {
  RaceForms *forms = arena_zero(cx, &cx->scratch, sizeof *forms);
  p->own[OWN_RACES] = forms;
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    if (!a->written) continue;
    size_t n = (a->bytes >> a->shift) / CHUNK / RACE_PAGE + 1;
    a->races = arena_zero(cx, &cx->scratch,
                          sizeof *a->races + n * sizeof *a->races->page);
    a->races->forms = has_bits(p, a) ? NULL : forms;
  }
}

static void free_rows(RaceRow *r) {
  while (r) {
    RaceRow *next = r->next;
    base_free(r);
    r = next;
  }
}

static RaceRow *rows(uint64_t slot) {
  return slot & 1 ? NULL : (RaceRow *)(uintptr_t)slot;
}

void race_records_free(SimProg *p) {
  for (int k = 0; k < p->narea; k++) {
    const SimArea *a = &p->area[k];
    for (size_t i = 0; i < pages(a); i++) {
      uint64_t *page = a->races->page[i];
      for (size_t n = 0; page && n < RACE_PAGE; n++) free_rows(rows(page[n]));
      base_free(page);
    }
  }
  RaceForms *forms = p->own[OWN_RACES];
  for (size_t k = 0; forms && k < FORMS; k++) base_free(forms->form[k]);
}

void race_records_release(SimCluster *c) {
  Own *o = c->own[OWN_RACES];
  if (!o) return;
  free_rows(o->spare);
  base_free(o->opened);
  base_free(o);
}

bool race_rows(const SimArea *a, size_t n, const uint64_t *row[RACE_KINDS]) {
  const uint64_t *page = a->races->page[n / RACE_PAGE];
  const RaceRow *r = page ? rows(page[n % RACE_PAGE]) : NULL;
  if (!r) return false;
  for (int k = 0; k < RACE_KINDS; k++) row[k] = NULL;
  for (; r; r = r->next) row[r->kind] = r->record;
  return true;
}

// ---- rows ----

static void *fail(SimCluster *c) {
  c->oom = c->stop = true;
  return NULL;
}

static Own *own(SimCluster *c) {
  Own *o = c->own[OWN_RACES];
  if (o) return o;
  c->own[OWN_RACES] = o = base_realloc(NULL, sizeof *o);
  if (!o) return fail(c);
  *o = (Own){0};
  return o;
}

// Adds an empty row of records of kind `kind` to a chunk.
static RaceRow *new_row(RaceChunk *x, int kind) {
  Own *o = own(x->c);
  RaceRow *r = o ? o->spare : NULL;
  if (r) o->spare = r->next;
  else r = base_realloc(NULL, sizeof *r);
  if (!o || !r) return fail(x->c);
  *r = (RaceRow){.next = x->rows, .kind = kind};
  return x->rows = r;
}

static RaceRow *row(RaceChunk *x, int kind) {
  RaceRow *r = x->rows;
  while (r && r->kind != kind) r = r->next;
  return r ? r : new_row(x, kind);
}

// ---- forms ----

static bool equal(const RaceForm *x, const RaceForm *y) {
  return x->classes == y->classes &&
         memcmp(x->word, y->word, x->n * sizeof *x->word) == 0;
}

// Returns the number of a form that equals f. If there is none, adds f to the
// table. Returns -1 if the table has no free entry for it.
static int64_t number_of(RaceForms *all, const RaceForm *f) {
  uint64_t h = f->classes;
  for (uint32_t k = 0; k < f->n; k += 2) {
    h ^= f->word[k] | (uint64_t)f->word[k + 1] << 32;
    h *= 0x9e3779b97f4a7c15ull;
    h ^= h >> 32;
  }
  for (uint64_t k = 0; k < PROBES; k++) {
    uint64_t at = (h + k) % FORMS;
    RaceForm *old = __atomic_load_n(&all->form[at], __ATOMIC_ACQUIRE);
    if (!old) {
      size_t size = offsetof(RaceForm, word) + f->n * sizeof *f->word;
      RaceForm *new = base_realloc(NULL, size);
      if (!new) return -1;
      memcpy(new, f, size);
      if (__atomic_compare_exchange_n(&all->form[at], &old, new, false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return (int64_t)at;
      base_free(new);
    }
    if (equal(old, f)) return (int64_t)at;
  }
  return -1;
}

// Returns a digest of the value that is in memory at granule g of area a.
static inline uint64_t held(const SimArea *a, size_t g) {
  return race_digest(a->p + (g << a->shift), 1 << a->shift);
}

// Writes the words of a form for row r of chunk n to `word`. Returns false if
// the row has records of CTAs other than `cta`, or if memory no longer holds
// the stored values.
static bool describe(const SimArea *a, size_t n, const RaceRow *r,
                     uint64_t cta, uint32_t *word) {
  for (size_t g = 0; g < CHUNK; g++) {
    uint64_t x = r->record[g], value = x & MANY;
    word[g] = 0;
    if (!x) continue;
    if (race_cta(x) != cta) return false;
    if (r->kind == WRITE && value != MANY && value != held(a, n * CHUNK + g))
      return false;
    word[g] = (uint32_t)(x >> SRC_AT & PLACE) << WORD_AT |
              (value == MANY ? DIFFERENT : 0) | ACCESS;
  }
  return true;
}

// Returns the slot value for chunk n in compressed form. `r` is the list of the
// chunk's rows. Returns 0 if the chunk must stay open.
static uint64_t fold(const SimArea *a, size_t n, const RaceRow *r) {
  RaceForm f;
  const RaceRow *of[LAST] = {0};
  uint64_t some = 0;
  for (; r; r = r->next) {
    if (r->kind >= LAST) return 0;
    of[r->kind] = r;
    for (size_t g = 0; g < CHUNK && !some; g++) some = r->record[g];
  }
  f.classes = f.n = 0;
  for (int k = 0; k < LAST; k++) {
    if (!of[k]) continue;
    if (!describe(a, n, of[k], race_cta(some), f.word + f.n)) return 0;
    f.classes |= 1u << k;
    f.n += CHUNK;
  }
  int64_t number = number_of(a->races->forms, &f);
  return number < 0 ? 0 : race_cta(some) << CTA_AT | (uint64_t)number << 1 | 1;
}

// Restores the rows of chunk n from its slot, which holds the chunk in
// compressed form.
static bool unfold(RaceChunk *x, size_t n, uint64_t slot) {
  uint64_t cta = slot >> CTA_AT << CTA_AT;
  const RaceForm *f = x->a->races->forms->form[(slot - cta) >> 1];
  const uint32_t *word = f->word;
  for (int k = 0; k < LAST; k++) {
    if (!(f->classes >> k & 1)) continue;
    RaceRow *r = new_row(x, k);
    if (!r) return false;
    for (size_t g = 0; g < CHUNK; g++) {
      uint32_t w = *word++;
      if (!w) continue;
      uint64_t value = w & DIFFERENT ? MANY :
                       k == WRITE ? held(x->a, n * CHUNK + g) : 0;
      r->record[g] = cta | (uint64_t)(w >> WORD_AT) << SRC_AT | value;
    }
  }
  return true;
}

// ---- chunks ----

// Returns the page of slots at *at. If it is missing, creates it atomically.
// Returns NULL if memory is exhausted.
static uint64_t *page(SimCluster *c, uint64_t **at) {
  uint64_t *old = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  if (old) return old;
  uint64_t *new = base_realloc(NULL, RACE_PAGE * sizeof *new);
  if (!new) return fail(c);
  memset(new, 0, RACE_PAGE * sizeof *new);
  if (__atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return new;
  base_free(new);
  return old;
}

static uint64_t lock(uint64_t *slot) {
  for (;;) {
    uint64_t old = __atomic_exchange_n(slot, BUSY, __ATOMIC_ACQUIRE);
    if (old != BUSY) return old;
    sched_yield();
  }
}

static void unlock(uint64_t *slot, uint64_t new) {
  __atomic_store_n(slot, new, __ATOMIC_RELEASE);
}

// Records that the cluster opened chunk n, so that the chunk can be compressed
// when the cluster ends.
static bool note(RaceChunk *x, size_t n) {
  Own *o = own(x->c);
  if (!o) return false;
  if (!base_room((void **)&o->opened, &o->max, o->n + 1, sizeof *o->opened))
    return fail(x->c);
  o->opened[o->n++] = (Opened){x->a, n};
  return true;
}

bool race_enter(RaceChunk *x, size_t n) {
  uint64_t *slots = page(x->c, &x->a->races->page[n / RACE_PAGE]);
  if (!slots) return false;
  x->slot = &slots[n % RACE_PAGE];
  uint64_t old = lock(x->slot);
  x->rows = rows(old);
  bool ok = x->rows || note(x, n);
  if (ok && old & 1) ok = unfold(x, n, old);
  RaceRow *r = ok ? row(x, x->class) : NULL;
  if (r) x->record = r->record;
  else race_leave(x);
  return r;
}

void race_leave(RaceChunk *x) {
  unlock(x->slot, (uint64_t)(uintptr_t)x->rows);
  x->slot = NULL;
}

void race_records_fold(SimCluster *c) {
  Own *o = c->own[OWN_RACES];
  for (; o && o->n; o->n--) {
    const SimArea *a = o->opened[o->n - 1].a;
    size_t n = o->opened[o->n - 1].n;
    if (!a->races->forms) continue;
    uint64_t *slot = &a->races->page[n / RACE_PAGE][n % RACE_PAGE];
    uint64_t open = lock(slot), folded = fold(a, n, rows(open));
    unlock(slot, folded ? folded : open);
    for (RaceRow *r = folded ? rows(open) : NULL, *next; r; r = next) {
      next = r->next;
      r->next = o->spare;
      o->spare = r;
    }
  }
}

// ---- accesses ----

// Merges two records of accesses. If both belong to the same CTA, returns the
// record of the lower thread. Otherwise returns the record of the CTA with the
// lower number or, with `higher`, with the higher number. If the stored values
// differ, sets the record's value to MANY.
static uint64_t merge(uint64_t x, uint64_t y, bool higher) {
  bool first = x >> SRC_AT < y >> SRC_AT;
  uint64_t kept = first != (higher && race_cta(x) != race_cta(y)) ? x : y;
  return ((x ^ y) & MANY) == 0 ? kept : kept | MANY;
}

void race_merge(RaceChunk *x, size_t g, uint64_t access) {
  uint64_t old = x->record[g], new = merge(old, access, false);
  x->record[g] = new;
  if (race_cta(old) == race_cta(access)) return;
  uint64_t rest = race_cta(new) == race_cta(access) ? old : access;
  RaceRow *r = row(x, LAST + x->class);
  if (!r) return;
  uint64_t *last = &r->record[g];
  *last = *last ? merge(*last, rest, true) : rest;
}
// SPDX-License-Identifier: MIT
