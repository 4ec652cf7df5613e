// The terminal, for the prompt (sys.c) and line editing (linelib.c). Files that
// include this define _POSIX_C_SOURCE, or more.
#ifndef CUTE_TERMINAL_H
#define CUTE_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

// Returns face_terminal_columns of standard output; 80 if unknown.
int sys_columns(void);
// Returns the rows of the terminal of standard output; 24 if unknown.
int sys_rows(void);
// Blocks Ctrl-C; `old`: the signals that were blocked.
void sys_hold(sigset_t *old);
// Waits for a key, with the signals of `mask` blocked; false: Ctrl-C. SIGINT is
// blocked otherwise, so that none is lost between the check and the wait.
bool sys_wait(const sigset_t *mask);

#endif
// SPDX-License-Identifier: MIT
