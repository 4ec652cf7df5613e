// Defers Ctrl-C during calls into libraries. The compiler and other libraries
// may have handlers of their own for SIGINT and SIGTERM, hold malloc's locks,
// or start threads that would receive a signal. Both signals stay pending
// during such a call and are delivered after it.
//
// Files that include this header define _POSIX_C_SOURCE.
#ifndef CUTE_SIGNALS_H
#define CUTE_SIGNALS_H

#include <signal.h>

// Number of Ctrl-C presses not handled yet (bind/interrupt.h). Long
// computations poll it and stop early. Always 0 where the library runs outside
// of the cutelua program.
extern volatile sig_atomic_t signals_asked;

typedef struct SigHold {
  sigset_t mask;  // the thread's signal mask before signals_hold
  struct sigaction interrupt, terminate;
} SigHold;

// Blocks both signals in this thread and in threads that it starts from now on.
void signals_hold(SigHold *h);
// Restores the thread's previous signal mask. A pending signal is delivered
// before this function returns.
void signals_release(const SigHold *h);

#endif
// SPDX-License-Identifier: MIT
