// Hides the differences between POSIX systems and WebAssembly (in a browser or
// under node). WebAssembly has no shared libraries, threads only if the page
// allows them, and files only in memory.
#ifndef CUTE_PLATFORM_H
#define CUTE_PLATFORM_H

#include <pthread.h>
#include <stddef.h>

// Opens a shared library without making its symbols visible to other libraries.
// Returns NULL if it is not found.
void *platform_open(const char *file);
// Returns a symbol of an open library, or NULL.
void *platform_symbol(void *lib, const char *name);
// Writes the path of an open library, or "" if it is unknown.
void platform_path(void *lib, char *out, size_t size);

// Returns the reason why this system cannot open libraries, or NULL if it can.
const char *platform_no_libraries(void);

// Returns the flags that make glob() match only folders, if the system supports
// it.
int platform_glob_folders(void);

// Returns the number of threads that can run at a time, at least 1.
int platform_cores(void);

// Sends a signal to a thread of this program; does nothing on a single-threaded
// system.
void platform_signal(pthread_t thread, int sig);

// Makes this child process end when its parent ends.
void platform_end_with_parent(void);

#endif
// SPDX-License-Identifier: MIT
