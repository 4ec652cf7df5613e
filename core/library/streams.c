// The standard streams under the names that the Makefile gives them in Lua's
// archive: a shared library cannot refer to libc's own variables as Debian's
// archive does.
#include <stdio.h>

extern FILE *library_stdin, *library_stdout, *library_stderr;
FILE *library_stdin, *library_stdout, *library_stderr;

__attribute__((constructor)) static void set_streams(void) {
  library_stdin = stdin;
  library_stdout = stdout;
  library_stderr = stderr;
}
// SPDX-License-Identifier: MIT
