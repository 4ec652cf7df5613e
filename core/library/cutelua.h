// cutelua.h: runs kernels and operations of cutelua from C and C++.
//
// An application opens a state, loads Lua scripts, and launches their kernels
// on the CPU simulator or on a GPU. docs/embedding.md states the errors, units
// and thread rules of each function.
#ifndef CUTELUA_H
#define CUTELUA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(CUTELUA_BUILD) && defined(__GNUC__)
#define CUTELUA_API __attribute__((visibility("default")))
#else
#define CUTELUA_API
#endif

// The version of this binary interface. A library with a larger number also
// works with programs that were compiled for a smaller one.
#define CUTELUA_ABI 1

// The version of this header; cutelua_version returns the library's version.
#define CUTELUA_VERSION "0.2.0"

// A Lua state with its scripts, kernels and memory.
typedef struct cutelua_state cutelua_state;

// A reference to a script, a kernel, a function or a compilation of one state;
// 0: none. A state never reuses a number, so the use of a released reference is
// detected as an error.
typedef uint64_t cutelua_ref;

typedef enum cutelua_status {
  CUTELUA_OK = 0,
  CUTELUA_ERROR = 1,   // the script, a kernel, a file or the GPU failed
  CUTELUA_MEMORY = 2,  // memory ran out, or the state's limit was reached
  CUTELUA_LIMIT = 3,   // a budget was exhausted, or the call was interrupted
  CUTELUA_MISUSE = 4,  // an argument of the C function is invalid
  // a callback (print or alloc) called a function of the state that called it
  CUTELUA_BUSY = 5,
  CUTELUA_FORKED = 6,  // the state belongs to the parent process
  CUTELUA_PENDING = 7  // a compilation is not finished
} cutelua_status;

// Flags of cutelua_options.
enum {
  // Scripts are not trusted: they have no access to files, processes,
  // environment variables, the debug library, bytecode, PTX or the GPU.
  CUTELUA_UNTRUSTED = 1
};

// Works like lua_Alloc: allocates memory, resizes it, or frees it (new_size 0).
// Returns memory aligned for any type, or NULL. Several threads may call the
// function at the same time.
typedef void *(*cutelua_alloc)(void *ud, void *p, size_t old_size,
                               size_t new_size);
// Receives text that scripts, kernels and warnings print. stream is 1 for
// output and 2 for messages. The text may contain NUL bytes.
typedef void (*cutelua_print)(void *ud, int stream, const char *text,
                              size_t size);

// Options of cutelua_open. Zeros mean defaults.
typedef struct cutelua_options {
  size_t size;            // sizeof(cutelua_options)
  uint64_t flags;
  cutelua_alloc alloc;    // NULL: malloc
  void *alloc_ud;
  cutelua_print print;    // NULL: standard output and standard error
  void *print_ud;
  uint64_t memory;        // bytes of host memory; 0: no limit, or the default
                          // of untrusted states, 256 MiB
  // number of Lua instructions that each call may execute; 0: no limit, or the
  // default of untrusted states, 100 million
  uint64_t instructions;
  uint64_t milliseconds;  // time limit of each call; 0: none, or the default
                          // of untrusted states, 10 seconds
} cutelua_options;

// A tensor in the application's memory. Element (i, j, ...) is at
// data + i * stride[0] + j * stride[1] + ..., counted in elements.
typedef struct cutelua_tensor {
  void *data;
  const char *dtype;      // "f32", "bf16", "f16", "i32", "e4m3" ...
  const int64_t *shape;
  const int64_t *stride;  // NULL: the last mode is contiguous, as in C
  int32_t rank;           // 1 to 8
  int32_t device;         // CUTELUA_HOST, or the number of a GPU
} cutelua_tensor;

enum { CUTELUA_HOST = -1 };

typedef enum cutelua_type {
  CUTELUA_TENSOR = 1,
  CUTELUA_INTEGER = 2,
  CUTELUA_NUMBER = 3,
  CUTELUA_BOOLEAN = 4,
  CUTELUA_STRING = 5,
  CUTELUA_REF = 6
} cutelua_type;

// An argument, or the variable that receives a result.
typedef struct cutelua_arg {
  cutelua_type type;
  // If not NULL, the argument becomes the field `name` of a table of options,
  // which is passed after all other arguments.
  const char *name;
  union {
    cutelua_tensor tensor;
    int64_t integer;      // integers and booleans
    double number;
    const char *string;
    cutelua_ref ref;
    uint64_t reserved[12];
  } as;
} cutelua_arg;

// Options of a launch. Zeros mean defaults.
typedef struct cutelua_launch_options {
  size_t size;            // sizeof(cutelua_launch_options)
  // numbers of blocks in the grid; 0 in grid[1] or grid[2] means 1
  uint32_t grid[3];
  uint32_t block[3];      // threads
  uint32_t cluster[3];    // numbers of blocks in a cluster
  uint32_t flags;         // 0
  const char *device;     // "sim", "sim:sm_80", "gpu", "gpu:1"; NULL: the
                          // device of the tensors
  void *stream;           // a CUstream of the driver, or NULL
  int64_t seed;           // seed of the simulator's schedule
} cutelua_launch_options;

// ---- the library ----

// Return the number of the library's interface, the library's version, and the
// meaning of a status in words.
CUTELUA_API int cutelua_abi(void);
CUTELUA_API const char *cutelua_version(void);
CUTELUA_API const char *cutelua_status_text(cutelua_status status);

// ---- states ----

// cutelua_open opens a state; `options` may be NULL. cutelua_close closes a
// state; NULL is ignored.
CUTELUA_API cutelua_status cutelua_open(const cutelua_options *options,
                                        cutelua_state **state);
CUTELUA_API void cutelua_close(cutelua_state *state);
// Stops the call that another thread is executing in this state.
CUTELUA_API void cutelua_interrupt(cutelua_state *state);
// Stores the number of bytes of host memory that the state uses in *used, and
// their maximum so far in *peak.
CUTELUA_API cutelua_status cutelua_memory(cutelua_state *state, uint64_t *used,
                                          uint64_t *peak);

// ---- the last error of a state ----

// Return the message with its details, the kind of the error, and its file and
// line in a script ("" and 0: unknown). The texts are valid until the next call
// of the state.
CUTELUA_API const char *cutelua_error(cutelua_state *state);
CUTELUA_API const char *cutelua_error_kind(cutelua_state *state);
CUTELUA_API const char *cutelua_error_file(cutelua_state *state);
CUTELUA_API int cutelua_error_line(cutelua_state *state);

// ---- scripts ----

// Run a script from a file, or from a text. Error messages name the text
// `name`.
CUTELUA_API cutelua_status cutelua_load_file(cutelua_state *state,
                                             const char *path,
                                             cutelua_ref *script);
CUTELUA_API cutelua_status cutelua_load_text(cutelua_state *state,
                                             const char *text, size_t size,
                                             const char *name,
                                             cutelua_ref *script);
// Finds a kernel or function: a field of the table that the script returned, or
// a global variable. "" stands for the value that the script returned.
CUTELUA_API cutelua_status cutelua_find(cutelua_state *state,
                                        cutelua_ref script, const char *name,
                                        cutelua_ref *found);
// Releases a reference.
CUTELUA_API cutelua_status cutelua_release(cutelua_state *state,
                                           cutelua_ref ref);

// ---- kernels, functions, operations ----

// cutelua_launch launches a kernel, cutelua_call calls a function of a script,
// and cutelua_op calls an operation of cute.ops by its name.
CUTELUA_API cutelua_status cutelua_launch(cutelua_state *state,
                                          cutelua_ref kernel,
                                          const cutelua_arg *args, size_t nargs,
                                          const cutelua_launch_options *opts);
CUTELUA_API cutelua_status cutelua_call(cutelua_state *state,
                                        cutelua_ref function,
                                        const cutelua_arg *args, size_t nargs,
                                        cutelua_arg *results, size_t nresults);
CUTELUA_API cutelua_status cutelua_op(cutelua_state *state, const char *name,
                                      const cutelua_arg *args, size_t nargs,
                                      cutelua_arg *results, size_t nresults);

// ---- compilation before the first launch ----

// Trace and compile a kernel for arguments of these types and shapes.
// cutelua_compile returns after the compilation. cutelua_compile_start compiles
// on a separate thread and returns at once. cutelua_poll and cutelua_wait
// return the result of a compilation that cutelua_compile_start began, or
// CUTELUA_PENDING.
CUTELUA_API cutelua_status cutelua_compile(cutelua_state *state,
                                           cutelua_ref kernel,
                                           const cutelua_arg *args,
                                           size_t nargs,
                                           const cutelua_launch_options *opts);
CUTELUA_API cutelua_status
cutelua_compile_start(cutelua_state *state, cutelua_ref kernel,
                      const cutelua_arg *args, size_t nargs,
                      const cutelua_launch_options *opts, cutelua_ref *job);
CUTELUA_API cutelua_status cutelua_poll(cutelua_state *state, cutelua_ref job);
CUTELUA_API cutelua_status cutelua_wait(cutelua_state *state, cutelua_ref job,
                                        uint64_t milliseconds);

#ifdef __cplusplus
}
#endif

#endif
// SPDX-License-Identifier: MIT
