// Executes calls of kernels, functions and operations (call.c), for the
// functions of cutelua.h and for compilations on separate threads (compile.c).
#ifndef CUTE_LIBRARY_CALL_H
#define CUTE_LIBRARY_CALL_H

#include "library/state.h"

// Maximum number of arguments of a call, and of modes of a tensor.
enum { MOST_ARGS = 64, MOST_RANK = 8 };

// A call to execute. If `name` is not NULL, the task calls the operation `name`
// of cute.ops. Otherwise it calls the function `ref` (if `calls` is set),
// compiles the kernel `ref` (if `compile` is set), or launches it.
typedef struct Task {
  cutelua_state *state;
  cutelua_ref ref;
  const char *name;
  const cutelua_arg *args;
  size_t nargs;
  cutelua_arg *results;
  size_t nresults;
  const cutelua_launch_options *launch;
  bool calls, compile;
  // whether an error that the call raises now means that an argument of the C
  // function is invalid
  bool misuse;
} Task;

// Executes the task between state_enter and state_leave of its state. Records
// an error in *e, or as the state's last error if e is NULL.
cutelua_status call_run(Task *t, LastError *e);

#endif
// SPDX-License-Identifier: MIT
