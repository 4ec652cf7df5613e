// States of libcutelua, for the files of this folder.
#ifndef CUTE_LIBRARY_STATE_H
#define CUTE_LIBRARY_STATE_H

#include <pthread.h>
#include <sys/types.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/base.h"
#include "base/guard.h"
#include "bind/face.h"
#define CUTELUA_BUILD
#include "library/cutelua.h"

// The memory of a state. The guard is the first member, so that the pointer
// guard_now (base/guard.h) also points to the account.
typedef struct Account {
  Guard guard;
  cutelua_alloc alloc;
  void *alloc_ud;
} Account;

// Lua's allocator: allocates, resizes or frees memory of an account (heap.c).
void *account_alloc(void *account, void *p, size_t old, size_t new);

typedef struct LastError {
  char *text;        // message with its details; NULL: none
  char kind[32], file[256];
  int line;          // 0: unknown
  const char *fixed;  // text that needs no memory, used if `text` is NULL
} LastError;

// A compilation that runs on a thread of its own (compile.c).
typedef struct Job Job;

struct cutelua_state {
  Account account;
  lua_State *L;
  // result of state_forks() in the process that opened the state
  unsigned forks;
  pthread_mutex_t lock;    // locked by the thread that is in a call
  _Atomic(const void *) holder;  // identity of the thread in a call, or NULL
  bool untrusted;
  cutelua_print print;
  void *print_ud;
  uint64_t instructions, milliseconds;
  LastError error;
  cutelua_ref last;        // the newest reference
  // The list of compilations, protected by job_lock. job_done is signaled when
  // a compilation ends.
  Job *jobs;
  cutelua_ref last_job;
  pthread_mutex_t job_lock;
  pthread_cond_t job_done;
  _Atomic bool closing;
};

// ---- state.c ----

// Returns a number that identifies this process among itself and the processes
// from which it was forked. It is equal in all threads of a process.
unsigned state_forks(void);
// Returns CUTELUA_OK if this thread may call functions of the state.
cutelua_status state_check(cutelua_state *s);
// Begins a call: takes the state's lock, and starts its budget. On failure,
// returns a status other than CUTELUA_OK, and the caller must return it.
cutelua_status state_enter(cutelua_state *s);
// For a state without limits, `on` decides whether cutelua_interrupt can end
// Lua code of this call. Checking for interrupts makes Lua code three times
// slower.
void state_watch(cutelua_state *s, bool on);
// Ends a call and returns `status`.
cutelua_status state_leave(cutelua_state *s, cutelua_status status);
// Records an error that says which argument of a C function is invalid. Returns
// CUTELUA_MISUSE.
cutelua_status state_misuse(cutelua_state *s, const char *fmt, ...)
  PRINTF_LIKE(2, 3);
// Records that a file cannot be read. Returns CUTELUA_ERROR.
cutelua_status state_io(cutelua_state *s, const char *path, const char *why);
// Calls f in a protected call, with `task` as light userdata. Records an error
// in *e.
cutelua_status state_run(lua_State *L, lua_CFunction f, void *task,
                         LastError *e);
void error_free(LastError *e);

// Stores the value on top of L under a new reference, and pops it.
cutelua_ref state_ref(cutelua_state *s, lua_State *L);
// Pushes the value of a reference, or raises an error.
void state_push(cutelua_state *s, lua_State *L, cutelua_ref ref);
// Pushes the function `name` of lua/cute/embedding.lua.
void state_function(lua_State *L, const char *name);

// ---- compile.c ----

// Waits for the threads of all compilations, and frees them.
void jobs_end(cutelua_state *s);
// Waits for a compilation, and frees it. Returns false if `ref` does not refer
// to a compilation.
bool job_release(cutelua_state *s, cutelua_ref ref);

// ---- sandbox.c ----

// Opens Lua's libraries and the bindings. Call it as a lua_CFunction with the
// state as light userdata.
int sandbox_open(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
