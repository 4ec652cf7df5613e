// Blocks Ctrl-C and termination signals during calls into libraries.
#define _POSIX_C_SOURCE 200809L
#include "base/signals.h"

#include <stddef.h>

volatile sig_atomic_t signals_asked;

void signals_hold(SigHold *h) {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &both, &h->mask);
  sigaction(SIGINT, NULL, &h->interrupt);
  sigaction(SIGTERM, NULL, &h->terminate);
}

void signals_release(const SigHold *h) {
  sigaction(SIGINT, &h->interrupt, NULL);
  sigaction(SIGTERM, &h->terminate, NULL);
  pthread_sigmask(SIG_SETMASK, &h->mask, NULL);
}
// SPDX-License-Identifier: MIT
