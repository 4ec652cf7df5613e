// Hides the differences between POSIX systems and WebAssembly (in a browser or
// under node). WebAssembly has no shared libraries, threads only if the page
// allows them, and files only in memory.
#ifndef CUTE_PLATFORM_H
#define CUTE_PLATFORM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

// Declares a pointer to a mutex that unlocks the mutex at the end of its scope.
#define UNLOCKED_AT_END __attribute__((cleanup(platform_unlock)))
void platform_unlock(pthread_mutex_t *const *lock);

// Opens a shared library without making its symbols visible to other libraries.
// Returns NULL if it is not found.
void *platform_open(const char *file);
// Returns a symbol of an open library, or NULL.
void *platform_symbol(void *lib, const char *name);
// Writes the path of an open library, or "" if it is unknown.
void platform_path(void *lib, char *out, size_t size);

// Returns the reason why this system cannot open libraries, or NULL if it can
// open them.
const char *platform_no_libraries(void);

// Returns the flags that make glob() match only folders, if the system supports
// it.
int platform_glob_folders(void);

// Maps n bytes of an open file from offset `from` on, a multiple of
// platform_page(). The mapping is private: changes do not reach the file. At
// least one page after the n bytes is also accessible. Sets *all to the number
// of mapped bytes, for platform_unmap. Returns NULL if the system cannot map
// files.
void *platform_map(int fd, uint64_t from, size_t n, size_t *all);
void platform_unmap(void *p, size_t all);
size_t platform_page(void);

// Returns the number of threads that can run at a time, at least 1.
int platform_cores(void);

// Sends a signal to a thread of this program. Does nothing on a single-threaded
// system.
void platform_signal(pthread_t thread, int sig);

// Makes this child process end when its parent ends.
void platform_end_with_parent(void);

// If the parent of a descendant process ends, this process becomes the new
// parent.
void platform_adopt(void);

#endif
// SPDX-License-Identifier: MIT
