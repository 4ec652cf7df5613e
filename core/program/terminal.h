// The terminal, for the prompt (sys.c) and its lines (linelib.c). Files that
// include this define _POSIX_C_SOURCE, or more.
#ifndef CUTE_TERMINAL_H
#define CUTE_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

// face_terminal_columns of standard output; 80 where nobody says.
int sys_columns(void);
// Rows of the terminal of standard output; 24 where nobody says.
int sys_rows(void);
// Blocks Ctrl-C; `old`: the signals that were blocked.
void sys_hold(sigset_t *old);
// Waits for a key, with the signals of `mask` blocked; false after Ctrl-C.
// SIGINT is blocked outside, so that none comes between looking and waiting.
bool sys_wait(const sigset_t *mask);

#endif
