// Ctrl-C around code that is not ours. A library that is being compiled with
// or loaded may have handlers of its own for SIGINT and SIGTERM, holds locks
// in the middle of malloc, and starts threads that a signal could come to:
// within its calls both wait, and are answered when they are over.
//
// Files that include this define _POSIX_C_SOURCE.
#ifndef CUTE_SIGNALS_H
#define CUTE_SIGNALS_H

#include <signal.h>

// Times of Ctrl-C that the program has not answered yet (bind/interrupt.h):
// what takes long looks at it and gives up. Always 0 outside of the program.
extern volatile sig_atomic_t signals_asked;

typedef struct SigHold {
  sigset_t mask;  // of the thread, as it was
  struct sigaction interrupt, terminate;
} SigHold;

// Blocks both in this thread, and in those it starts from now on.
void signals_hold(SigHold *h);
// Puts back what was: a signal that waited is delivered before this returns.
void signals_release(const SigHold *h);

#endif
