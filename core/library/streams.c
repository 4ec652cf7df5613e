// Defines the standard streams as library_stdin, library_stdout and
// library_stderr. Debian's static Lua library refers to libc's stdin, stdout
// and stderr in a way that a shared library cannot use. The Makefile renames
// these references to the names defined here.
#include <stdio.h>

extern FILE *library_stdin, *library_stdout, *library_stderr;
FILE *library_stdin, *library_stdout, *library_stderr;

__attribute__((constructor)) static void set_streams(void) {
  library_stdin = stdin;
  library_stdout = stdout;
  library_stderr = stderr;
}
// SPDX-License-Identifier: MIT
