// The terminal, for the prompt (sys.c) and line editing (linelib.c). Files that
// include this header define _POSIX_C_SOURCE or _XOPEN_SOURCE.
#ifndef CUTE_TERMINAL_H
#define CUTE_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

// Returns the number of columns of the terminal, or 80 if it is unknown.
int sys_columns(void);
// Returns the number of rows of the terminal, or 24 if it is unknown.
int sys_rows(void);
// Blocks Ctrl-C. Stores the previously blocked signals in *old.
void sys_hold(sigset_t *old);
// Waits for a key, while only the signals of `mask` are blocked. Returns false
// after Ctrl-C. The caller blocks SIGINT at all other times (sys_hold), so that
// no Ctrl-C is lost between a check for it and this wait.
bool sys_wait(const sigset_t *mask);

#endif
// SPDX-License-Identifier: MIT
