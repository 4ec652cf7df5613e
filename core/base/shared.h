// Memory with several owners: buffers of Lua states, and other libraries. When
// the last owner drops the memory, on any host thread, it is released.
#ifndef CUTE_SHARED_H
#define CUTE_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct Shared {
  atomic_int owners;
  void (*release)(void *what, size_t bytes);
  void *what;    // argument of `release`, which is called once
  size_t bytes;
} Shared;

// Returns an object with one owner, or NULL if there is no memory.
Shared *shared_new(void (*release)(void *what, size_t bytes), void *what,
                   size_t bytes);
void shared_keep(Shared *s);  // adds an owner
void shared_drop(Shared *s);  // removes an owner

#endif
// SPDX-License-Identifier: MIT
