// What differs between the systems that this runs on: a POSIX system, and
// WebAssembly in a browser or under node, where there are no libraries to
// open, threads only where the page may have them, and files in memory only.
#ifndef CUTE_PLATFORM_H
#define CUTE_PLATFORM_H

#include <pthread.h>
#include <stddef.h>

// Opens a shared library, for its own symbols only; NULL: it is not there.
void *platform_open(const char *file);
// A symbol of an open library, or NULL.
void *platform_symbol(void *lib, const char *name);
// The file an open library came from, or "" where that is not known.
void platform_path(void *lib, char *out, size_t size);

// Why no library can ever be opened here, or NULL where they can.
const char *platform_no_libraries(void);

// Flags of glob() by which it finds folders alone, if it can.
int platform_glob_folders(void);

// Threads that can run at a time, at least 1.
int platform_cores(void);

// Sends a signal to a thread of this program; where there is one thread alone,
// nobody else is.
void platform_signal(pthread_t thread, int sig);

// Has this process, a child, end when its parent does.
void platform_end_with_parent(void);

#endif
