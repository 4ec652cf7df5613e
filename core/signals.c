#define _POSIX_C_SOURCE 200809L
#include "signals.h"

#include <stddef.h>

volatile sig_atomic_t signals_asked;

void signals_hold(SigHold *h) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &h->mask);
  sigaction(SIGINT, NULL, &h->action);
}

void signals_release(const SigHold *h) {
  sigaction(SIGINT, &h->action, NULL);
  pthread_sigmask(SIG_SETMASK, &h->mask, NULL);
}
