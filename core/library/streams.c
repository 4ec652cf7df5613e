// Defines the standard streams as library_stdin, library_stdout and
// library_stderr. The Makefile renames the references in Debian's static Lua
// library to these names, because a shared library cannot refer to libc's
// stdin, stdout and stderr as the static library does.
#include <stdio.h>

extern FILE *library_stdin, *library_stdout, *library_stderr;
FILE *library_stdin, *library_stdout, *library_stderr;

__attribute__((constructor)) static void set_streams(void) {
  library_stdin = stdin;
  library_stdout = stdout;
  library_stderr = stderr;
}
// SPDX-License-Identifier: MIT
