// Defers Ctrl-C (SIGINT) and SIGTERM during calls into libraries. The compiler
// and other libraries may have handlers of their own for these signals, hold
// malloc's locks, or start threads that would receive a signal. Both signals
// stay pending during such a call and are delivered after it.
//
// A file must define _POSIX_C_SOURCE before it includes this header.
#ifndef CUTE_SIGNALS_H
#define CUTE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

// Number of Ctrl-C presses not handled yet (bind/interrupt.h). Long
// computations poll it and stop early. Always 0 in programs that use cutelua as
// a library.
extern volatile sig_atomic_t signals_asked;

typedef struct SigHold {
  sigset_t mask;  // the thread's signal mask before signals_hold
  struct sigaction interrupt, terminate;
  pthread_t catcher;  // thread of signals_catch; valid if `catches` is set
  bool catches, interrupted, terminated;
} SigHold;

// Blocks both signals in this thread and in threads that it starts from now on.
void signals_hold(SigHold *h);
// Blocks signals like signals_hold, and starts a thread that receives them as
// soon as they arrive. Use it for libraries that ignore a signal for a moment,
// because the system then discards a pending signal. NVRTC's first compilation
// ignores SIGINT before it installs its handler.
void signals_catch(SigHold *h);
// Restores the thread's previous signal mask. A signal that arrived in the
// meantime is delivered before this function returns.
void signals_release(SigHold *h);

#endif
// SPDX-License-Identifier: MIT
