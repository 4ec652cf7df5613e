// Counts the owners of shared memory.
#include "base/shared.h"

#include "base/base.h"

Shared *shared_new(void (*release)(void *what, size_t bytes), void *what,
                   size_t bytes) {
  Shared *s = base_zeros(sizeof *s);
  if (!s) return NULL;
  atomic_init(&s->owners, 1);
  s->release = release;
  s->what = what;
  s->bytes = bytes;
  return s;
}

void shared_keep(Shared *s) { atomic_fetch_add(&s->owners, 1); }

void shared_drop(Shared *s) {
  if (atomic_fetch_sub(&s->owners, 1) > 1) return;
  s->release(s->what, s->bytes);
  base_free(s);
}
// SPDX-License-Identifier: MIT
