// libcutecapture.so, a library for LD_PRELOAD: records the kernel launches of a
// program as folders for `cutelua check`. docs/ptx.md describes its use.
//
// The library never makes a call of the program fail. If the library itself
// fails, it prints a warning once, and the call continues.
#ifndef CUTE_CAPTURE_INSIDE_H
#define CUTE_CAPTURE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cudaapi.h"

// ---- modules (module.c) ----

// The image of a module, as the program passed it to the driver.
typedef struct Image {
  const unsigned char *data;
  size_t size;
} Image;

// Copies an image. Returns NULL if memory is exhausted.
Image *image_new(const void *data);
// Reads an image from a file. Returns NULL if that fails.
Image *image_file(const char *path);
// Finds entry `name` in an image and returns its PTX text, in newly allocated
// memory. Returns NULL, with the reason in `why`, if that fails.
char *image_ptx(const Image *image, const char *name, char *why, size_t size);

// ---- entries of PTX (entry.c) ----

enum { PARAMS = 512, NAME = 256 };

typedef struct Param {
  char kind;      // letter of the PTX type: 'u', 's', 'b' or 'f'
  bool array;     // whether the parameter is a structure or an array of bytes
  size_t size, align, offset;
} Param;

// Returns the position of the parameter list of entry `name` in the text, or
// NULL if the text has no such entry.
const char *entry_find(const char *ptx, const char *name);
// Writes the parameters of an entry to `out`. Returns their number, or -1 if
// this parser does not support the text.
int entry_params(const char *ptx, const char *name, Param out[PARAMS]);
// Calls `use` for the name of each .global and .const variable of a module.
void entry_variables(const char *ptx, void (*use)(const char *name, void *data),
                     void *data);

// ---- launches (launch.c) ----

typedef struct Kernel {
  const Image *image;
  CUmodule module;   // NULL if the kernel belongs to a CUlibrary
  void *library;
  char *name;
} Kernel;

// Reports whether further launches must be recorded.
bool launch_wanted(void);
// Reports whether a kernel of this name is selected.
bool launch_selects(const char *name);
// Reports whether a stream is being captured for a graph.
bool launch_capturing(CUstream s);
// Records a launch if it is selected. Returns the number of the record, to be
// passed to launch_after, or 0.
int launch_before(const Kernel *k, CUfunction f, const CUlaunchConfig *c,
                  void **params, void **extra);
// Completes the record of a launch.
void launch_after(int record);

// ---- graphs (graph.c) ----

// Keeps a copy of graph g, with which e was instantiated or updated.
void graph_keep(CUgraphExec e, CUgraph g);
void graph_forget(CUgraphExec e);
// Changes the parameters of a kernel node of an instantiated graph.
void graph_change(CUgraphExec e, CUgraphNode node, const void *params);
// Runs a graph node by node if one of its kernels is selected. Returns false if
// the driver must launch the graph.
bool graph_run(CUgraphExec e, CUstream s, CUresult *result);

// ---- kernels (hooks.c) ----

// Reports whether the image and the name of a kernel are known.
bool kernel_known(CUfunction f);
// Reports whether a kernel is selected by its name. Warns if the name is
// unknown.
bool kernel_selected(CUfunction f);
// Launches a kernel, and records the launch if it is selected.
CUresult capture_launch(const CUlaunchConfig *c, CUfunction f, void **params,
                        void **extra);

// ---- the driver's own functions (driver.c) ----

typedef void *Dlsym(void *library, const char *name);
// Returns the C library's dlsym, which hooks.c replaces.
Dlsym *real_dlsym(void);
// Returns a function of the driver, or NULL.
void *driver_function(const char *name);
// Prints warning number `which`, at most once in a process.
void warn_once(int which, const char *format, ...)
  __attribute__((format(printf, 2, 3)));

enum { WARN_PTX, WARN_LARGE, WARN_GRAPH, WARN_FOLDER, WARN_MEMORY, WARN_KERNEL,
       WARN_PARAMS, WARN_DRIVER, WARNINGS };

// Sets the function pointer `f` to the driver's function `name`, or to NULL.
// The caller declares `f` with the function's type.
#define DRIVER(f, name) (*(void **)(void *)&(f) = driver_function(name))

#endif
// SPDX-License-Identifier: MIT
