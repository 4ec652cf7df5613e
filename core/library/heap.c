// Heap allocation of libcutelua, in place of base/heap.c. Each block of memory
// records the state that owns it. The allocator and the memory limit of this
// state apply to the block.
#include <stdlib.h>
#include <string.h>

#include "library/state.h"

// number of allocated bytes that cost as much of the budget as one instruction
enum { PER_INSTRUCTION = 64 };

// The head of a block, as large as the strictest alignment.
typedef struct Block {
  Account *owner;  // NULL: the block belongs to the whole process
  size_t size;     // bytes of the block, without the head
} Block;

static void *raw_alloc(const Account *a, void *p, size_t old, size_t new) {
  if (a && a->alloc) return a->alloc(a->alloc_ud, p, old, new);
  if (new) return realloc(p, new);
  free(p);
  return NULL;
}

// Adds n bytes to the memory in use by account a (a state). Returns false, and
// adds nothing, if this would exceed the account's limit.
static bool take(Account *a, size_t n) {
  Guard *g = &a->guard;
  size_t now = atomic_fetch_add_explicit(&g->used, n, memory_order_relaxed) + n;
  if (g->most && now > g->most) {
    atomic_fetch_sub_explicit(&g->used, n, memory_order_relaxed);
    return false;
  }
  size_t peak = atomic_load_explicit(&g->peak, memory_order_relaxed);
  while (now > peak && !atomic_compare_exchange_weak(&g->peak, &peak, now)) {}
  if (g->step && n >= PER_INSTRUCTION)
    atomic_fetch_sub_explicit(&g->left, (int64_t)(n / PER_INSTRUCTION),
                              memory_order_relaxed);
  return true;
}

static void give(Account *a, size_t n) {
  atomic_fetch_sub_explicit(&a->guard.used, n, memory_order_relaxed);
}

static void *block_new(Account *a, size_t n, bool zeros) {
  if (n > SIZE_MAX / 2) return NULL;
  size_t all = sizeof(Block) + n;
  if (a && !take(a, all)) return NULL;
  Block *b = zeros && !(a && a->alloc) ? calloc(1, all)
             : raw_alloc(a, NULL, 0, all);
  if (!b) {
    if (a) give(a, all);
    return NULL;
  }
  if (zeros && a && a->alloc) memset(b, 0, all);
  *b = (Block){a, n};
  return b + 1;
}

static void block_free(void *p) {
  Block *b = (Block *)p - 1;
  Account *a = b->owner;
  size_t all = sizeof *b + b->size;
  raw_alloc(a, b, all, 0);
  if (a) give(a, all);
}

static void *block_resize(void *p, size_t n) {
  Block *b = (Block *)p - 1;
  Account *a = b->owner;
  size_t old = b->size;
  if (n > SIZE_MAX / 2) return NULL;
  if (a && n > old && !take(a, n - old)) return NULL;
  b = raw_alloc(a, b, sizeof *b + old, sizeof *b + n);
  if (!b) {
    if (a && n > old) give(a, n - old);
    return NULL;
  }
  if (a && n < old) give(a, old - n);
  b->size = n;
  return b + 1;
}

// ---- base.h ----

void *base_realloc(void *p, size_t n) {
  if (n == 0) n = 1;
  return p ? block_resize(p, n) : block_new((Account *)guard_now, n, false);
}

void *base_zeros(size_t n) {
  return block_new((Account *)guard_now, n ? n : 1, true);
}

void base_free(void *p) {
  if (p) block_free(p);
}

void *base_lasting(size_t n) { return block_new(NULL, n ? n : 1, false); }

// ---- Lua's allocator ----

void *account_alloc(void *account, void *p, size_t old, size_t new) {
  (void)old;
  if (new) return p ? block_resize(p, new) : block_new(account, new, false);
  if (p) block_free(p);
  return NULL;
}
// SPDX-License-Identifier: MIT
