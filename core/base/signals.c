// Blocks Ctrl-C and termination signals during calls into libraries.
#define _POSIX_C_SOURCE 200809L
#include "base/signals.h"
#include "base/platform.h"

#include <stddef.h>

volatile sig_atomic_t signals_asked;

// Signal that ends the catcher thread. SIGURG is suitable, because its default
// action has no effect.
enum { OVER = SIGURG };

static void block(sigset_t *set, sigset_t *old) {
  sigemptyset(set);
  sigaddset(set, SIGINT);
  sigaddset(set, SIGTERM);
  sigaddset(set, OVER);
  pthread_sigmask(SIG_BLOCK, set, old);
}

void signals_hold(SigHold *h) {
  sigset_t set;
  block(&set, &h->mask);
  sigaction(SIGINT, NULL, &h->interrupt);
  sigaction(SIGTERM, NULL, &h->terminate);
  h->catches = h->interrupted = h->terminated = false;
}

// The thread of signals_catch: receives signals of the process until
// signals_release sends OVER.
static void *catcher(void *p) {
  SigHold *h = p;
  sigset_t set;
  int sig = 0;
  block(&set, NULL);
  while (sig != OVER) {
    sig = sigwaitinfo(&set, NULL);
    h->interrupted |= sig == SIGINT;
    h->terminated |= sig == SIGTERM;
  }
  return NULL;
}

void signals_catch(SigHold *h) {
  signals_hold(h);
  h->catches = pthread_create(&h->catcher, NULL, catcher, h) == 0;
}

void signals_release(SigHold *h) {
  if (h->catches) {
    platform_signal(h->catcher, OVER);
    pthread_join(h->catcher, NULL);
  }
  sigaction(SIGINT, &h->interrupt, NULL);
  sigaction(SIGTERM, &h->terminate, NULL);
  // Raise again the signals that the catcher thread received.
  if (h->interrupted) raise(SIGINT);
  if (h->terminated) raise(SIGTERM);
  pthread_sigmask(SIG_SETMASK, &h->mask, NULL);
}
// SPDX-License-Identifier: MIT
