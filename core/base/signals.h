// Defers Ctrl-C during calls into libraries. The compiler and other libraries
// may have handlers of their own for SIGINT and SIGTERM, hold malloc's locks,
// or start threads that would receive a signal. Both signals stay pending
// during such a call and are delivered after it.
//
// Files that include this header define _POSIX_C_SOURCE.
#ifndef CUTE_SIGNALS_H
#define CUTE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

// Number of Ctrl-C presses not handled yet (bind/interrupt.h). Long
// computations poll it and stop early. Always 0 where the library runs outside
// of the cutelua program.
extern volatile sig_atomic_t signals_asked;

typedef struct SigHold {
  sigset_t mask;  // the thread's signal mask before signals_hold
  struct sigaction interrupt, terminate;
  pthread_t catcher;  // of signals_catch, if `catches`
  bool catches, interrupted, terminated;
} SigHold;

// Blocks both signals in this thread and in threads that it starts from now on.
void signals_hold(SigHold *h);
// As signals_hold, for libraries that may ignore a signal for a moment, which
// discards a pending one: NVRTC's first compilation ignores SIGINT before it
// installs its handler. A thread takes the signals as soon as they arrive.
void signals_catch(SigHold *h);
// Restores the thread's previous signal mask. A signal that arrived in the
// meantime is delivered before this function returns.
void signals_release(SigHold *h);

#endif
// SPDX-License-Identifier: MIT
