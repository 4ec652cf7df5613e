// States of libcutelua: opens and closes them, begins and ends calls, records
// the last error, and manages references.
#define _POSIX_C_SOURCE 200809L
#include "library/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bind/limit.h"

// Default limits of untrusted states, numbers of Lua instructions between
// checks of a budget (STEP_*), and the largest size of a message in bytes.
enum { MEMORY = 256 << 20, INSTRUCTIONS = 100000000, MILLISECONDS = 10000,
       STEP_UNTRUSTED = 64, STEP_TRUSTED = 1000,
       MESSAGE = 1 << 16 };

int cutelua_abi(void) { return CUTELUA_ABI; }

const char *cutelua_version(void) { return CUTE_VERSION; }

const char *cutelua_status_text(cutelua_status status) {
  static const char *const texts[] = {
    "success", "the script, a kernel, a file or the GPU failed",
    "memory ran out", "a limit of the call was reached",
    "an argument of the function is invalid",
    "a hook called a function of its own state",
    "the state belongs to the parent process",
    "the compilation is not finished"};
  size_t n = sizeof texts / sizeof *texts, k = (size_t)status;
  return k < n ? texts[k] : "unknown status";
}

// ---- the last error ----

void error_free(LastError *e) {
  free(e->text);
  *e = (LastError){0};
}

static void copy_part(char *to, size_t room, const char *from, size_t n) {
  if (n >= room) n = room - 1;
  memcpy(to, from, n);
  to[n] = '\0';
}

// Reads the position "file:line: " at the start of a line of n bytes.
static void read_position(LastError *e, const char *s, size_t n) {
  while (n && (*s == ' ' || *s == '\t')) s++, n--;
  for (size_t i = 1; i + 1 < n; i++) {
    if (s[i] != ':' || s[i + 1] < '0' || s[i + 1] > '9') continue;
    size_t k = i + 1;
    long line = 0;
    while (k < n && s[k] >= '0' && s[k] <= '9' && line < 100000000)
      line = line * 10 + (s[k++] - '0');
    if (k >= n || s[k] != ':') continue;
    copy_part(e->file, sizeof e->file, s, i);
    e->line = (int)line;
    return;
  }
}

// Stores a message of the form "file:line: sentence [kind]" and its parts in
// *e. Further lines with details may follow. Cuts the message after MESSAGE
// bytes.
static void set_message(LastError *e, const char *s, size_t n,
                        const char *kind) {
  error_free(e);
  if (n > MESSAGE) n = MESSAGE;
  e->text = malloc(n + 1);
  e->fixed = "memory ran out [out-of-memory]";
  if (e->text) copy_part(e->text, n + 1, s, n);
  const char *end = memchr(s, '\n', n);
  size_t first = end ? (size_t)(end - s) : n, open = first;
  read_position(e, s, first);
  if (first && s[first - 1] == ']')
    while (open > 0 && s[open - 1] != '[') open--;
  if (open > 0 && open < first)
    copy_part(e->kind, sizeof e->kind, s + open, first - open - 1);
  if (!e->kind[0] || strspn(e->kind, "abcdefghijklmnopqrstuvwxyz-") !=
                     strlen(e->kind))
    copy_part(e->kind, sizeof e->kind, kind, strlen(kind));
  // In a report of kernel faults, the positions are in the following lines.
  if (!e->line && end) {
    const char *next = end + 1, *stop = memchr(next, '\n', n - first - 1);
    read_position(e, next, stop ? (size_t)(stop - next) : n - first - 1);
  }
}

cutelua_status state_misuse(cutelua_state *s, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (n < 0 || n >= (int)sizeof text) n = (int)sizeof text - 1;
  set_message(&s->error, text, (size_t)n, "bad-argument");
  return CUTELUA_MISUSE;
}

cutelua_status state_io(cutelua_state *s, const char *path, const char *why) {
  char text[1024];
  int n = snprintf(text, sizeof text, "%.800s cannot be read: %s [io]", path,
                   why);
  set_message(&s->error, text, (size_t)n, "io");
  return CUTELUA_ERROR;
}

// Records in *e the error value on top of L's stack. `status` is the status
// that lua_pcall returned with the error.
static cutelua_status record(lua_State *L, int status, LastError *e) {
  const Guard *g = guard_now;
  size_t n = 0;
  const char *s = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &n)
                  : NULL;
  if (g->end) {
    char text[128];
    set_message(e, s ? s : "", n, "limit");
    bool told = strcmp(e->kind, "limit") == 0 && s && strstr(s, "[limit]");
    snprintf(text, sizeof text, "the script %s [limit]",
             limit_reason(g->end));
    if (!told) set_message(e, text, strlen(text), "limit");
    return CUTELUA_LIMIT;
  }
  if (status == LUA_ERRMEM) {
    error_free(e);
    strcpy(e->kind, "out-of-memory");
    e->fixed = "memory ran out, or the memory limit of the state was reached "
               "[out-of-memory]";
    return CUTELUA_MEMORY;
  }
  if (!s) s = "the script raised a value that is no string", n = strlen(s);
  set_message(e, s, n, "lua");
  return strcmp(e->kind, "out-of-memory") == 0 ? CUTELUA_MEMORY : CUTELUA_ERROR;
}

const char *cutelua_error(cutelua_state *s) {
  if (!s) return "the state is NULL [bad-argument]";
  return s->error.text ? s->error.text : s->error.fixed ? s->error.fixed : "";
}

const char *cutelua_error_kind(cutelua_state *s) {
  return s ? s->error.kind : "bad-argument";
}

const char *cutelua_error_file(cutelua_state *s) {
  return s ? s->error.file : "";
}

int cutelua_error_line(cutelua_state *s) { return s ? s->error.line : 0; }

// ---- calls ----

// The address of this variable identifies a thread.
static _Thread_local char self;

static uint64_t deadline(const cutelua_state *s) {
  if (!s->milliseconds) return 0;
  uint64_t most = (UINT64_MAX - base_nanotime()) / 1000000;
  return base_nanotime() + (s->milliseconds < most ? s->milliseconds : most) *
                             1000000;
}

// The number of forks between the first process and this process. Reading it is
// cheaper than getpid().
static atomic_uint forks;

static void count_fork(void) { atomic_fetch_add(&forks, 1); }

static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

unsigned state_forks(void) {
  return atomic_load_explicit(&forks, memory_order_relaxed);
}

cutelua_status state_check(cutelua_state *s) {
  if (!s) return CUTELUA_MISUSE;
  if (s->forks != state_forks()) return CUTELUA_FORKED;
  return atomic_load(&s->holder) == &self ? CUTELUA_BUSY : CUTELUA_OK;
}

cutelua_status state_enter(cutelua_state *s) {
  cutelua_status status = state_check(s);
  if (status != CUTELUA_OK) return status;
  pthread_mutex_lock(&s->lock);
  if (atomic_load(&s->closing)) {
    pthread_mutex_unlock(&s->lock);
    return CUTELUA_MISUSE;
  }
  atomic_store(&s->holder, &self);
  Guard *g = &s->account.guard;
  bool counts = s->instructions && s->instructions < INT64_MAX;
  atomic_store(&g->left, counts ? (int64_t)s->instructions : INT64_MAX);
  atomic_store(&g->deadline, deadline(s));
  atomic_store(&g->end, GUARD_GOES_ON);
  error_free(&s->error);
  return CUTELUA_OK;
}

void state_watch(cutelua_state *s, bool on) {
  if (!s->instructions && !s->milliseconds)
    s->account.guard.step = on ? STEP_TRUSTED : 0;
}

cutelua_status state_leave(cutelua_state *s, cutelua_status status) {
  atomic_store(&s->holder, NULL);
  pthread_mutex_unlock(&s->lock);
  return status;
}

// Collects garbage if three quarters of the memory limit are in use. Lua's
// collector may run too late, because it sees only the small Lua objects of
// unused tensors, not their memory.
static void make_room(lua_State *L, const Guard *g) {
  if (g->most && atomic_load(&g->used) > g->most - g->most / 4)
    lua_gc(L, LUA_GCCOLLECT);
}

cutelua_status state_run(lua_State *L, lua_CFunction f, void *task,
                         LastError *e) {
  Account *a = *(Account **)lua_getextraspace(L);
  Guard *before = guard_now;
  guard_now = &a->guard;
  make_room(L, &a->guard);
  limit_start(L);
  lua_settop(L, 0);
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, task);
  int status = lua_pcall(L, 1, 0, 0);
  cutelua_status result = CUTELUA_OK;
  if (status != LUA_OK) result = record(L, status, e);
  lua_settop(L, 0);
  guard_now = before;
  return result;
}

void cutelua_interrupt(cutelua_state *s) {
  if (!s) return;
  int none = GUARD_GOES_ON;
  if (atomic_load(&s->holder))
    atomic_compare_exchange_strong(&s->account.guard.end, &none, GUARD_ASKED);
}

cutelua_status cutelua_memory(cutelua_state *s, uint64_t *used,
                              uint64_t *peak) {
  if (!s || !used || !peak) return CUTELUA_MISUSE;
  *used = atomic_load(&s->account.guard.used);
  *peak = atomic_load(&s->account.guard.peak);
  return CUTELUA_OK;
}

// ---- references ----

cutelua_ref state_ref(cutelua_state *s, lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cutelua.refs");
  lua_insert(L, -2);
  lua_rawseti(L, -2, (lua_Integer)++s->last);
  lua_pop(L, 1);
  return s->last;
}

void state_push(cutelua_state *s, lua_State *L, cutelua_ref ref) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cutelua.refs");
  lua_rawgeti(L, -1, ref <= s->last ? (lua_Integer)ref : 0);
  if (lua_isnil(L, -1))
    face_error(L, ERR_ARG, "reference %llu does not exist in this state",
               (unsigned long long)ref);
  lua_remove(L, -2);
}

void state_function(lua_State *L, const char *name) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cutelua.embedding");
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

// ---- opening and closing ----

// Copies the application's options. An application that was compiled with a
// later version of cutelua.h passes more fields. Returns false if it uses a
// field or a flag that this library does not know.
static bool read_options(const cutelua_options *from, cutelua_options *o) {
  memset(o, 0, sizeof *o);
  if (!from) return true;
  size_t n = from->size;
  if (n < sizeof *o) return false;
  for (size_t i = sizeof *o; i < n; i++)
    if (((const char *)from)[i]) return false;
  memcpy(o, from, sizeof *o);
  return !(o->flags & ~(uint64_t)CUTELUA_UNTRUSTED);
}

static void set_options(cutelua_state *s, const cutelua_options *o) {
  s->untrusted = o->flags & CUTELUA_UNTRUSTED;
  s->account.alloc = o->alloc;
  s->account.alloc_ud = o->alloc_ud;
  s->print = o->print;
  s->print_ud = o->print_ud;
  s->instructions = o->instructions ? o->instructions
                    : s->untrusted ? INSTRUCTIONS : 0;
  s->milliseconds = o->milliseconds ? o->milliseconds
                    : s->untrusted ? MILLISECONDS : 0;
  Guard *g = &s->account.guard;
  g->most = o->memory ? (size_t)o->memory : s->untrusted ? MEMORY : 0;
  g->untrusted = s->untrusted;
  g->step = s->untrusted ? STEP_UNTRUSTED
            : s->instructions || s->milliseconds ? STEP_TRUSTED : 0;
}

static int panic(lua_State *L) {
  (void)L;
  fputs("libcutelua: an error outside of a protected call\n", stderr);
  return 0;
}

// Initializes the locks of a state. job_done uses the monotonic clock, so that
// changes of the time of day do not affect waits.
static void init_locks(cutelua_state *s) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&s->job_done, &clock);
  pthread_condattr_destroy(&clock);
  pthread_mutex_init(&s->lock, NULL);
  pthread_mutex_init(&s->job_lock, NULL);
}

static void state_free(cutelua_state *s) {
  error_free(&s->error);
  pthread_cond_destroy(&s->job_done);
  pthread_mutex_destroy(&s->job_lock);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

cutelua_status cutelua_open(const cutelua_options *options,
                            cutelua_state **out) {
  cutelua_options o;
  if (!out) return CUTELUA_MISUSE;
  *out = NULL;
  if (!read_options(options, &o)) return CUTELUA_MISUSE;
  cutelua_state *s = calloc(1, sizeof *s);
  if (!s) return CUTELUA_MEMORY;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  s->forks = state_forks();
  init_locks(s);
  set_options(s, &o);
  // Opening a state does not count against the budget.
  Guard *g = &s->account.guard;
  int step = g->step;
  g->step = 0;
  g->left = INT64_MAX;
  s->L = lua_newstate(account_alloc, &s->account);
  cutelua_status status = CUTELUA_MEMORY;
  if (s->L) {
    lua_atpanic(s->L, panic);
    *(Account **)lua_getextraspace(s->L) = &s->account;
    status = state_run(s->L, sandbox_open, s, &s->error);
  }
  g->step = step;
  if (status == CUTELUA_OK) {
    *out = s;
    return CUTELUA_OK;
  }
  Guard *before = guard_now;
  guard_now = g;
  if (s->L) lua_close(s->L);
  guard_now = before;
  state_free(s);
  return status;
}

void cutelua_close(cutelua_state *s) {
  if (!s || s->forks != state_forks() || atomic_load(&s->holder) == &self)
    return;
  atomic_store(&s->closing, true);
  atomic_store(&s->account.guard.end, GUARD_ASKED);
  jobs_end(s);
  pthread_mutex_lock(&s->lock);  // Wait for the end of another thread's call.
  Guard *before = guard_now;
  guard_now = &s->account.guard;
  s->account.guard.step = 0;
  lua_sethook(s->L, NULL, 0, 0);
  lua_close(s->L);
  guard_now = before;
  pthread_mutex_unlock(&s->lock);
  state_free(s);
}
// SPDX-License-Identifier: MIT
