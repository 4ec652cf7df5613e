// The functions of cutelua.h that load scripts, find kernels, and call them.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bind/limit.h"
#include "library/call.h"

enum { MOST_SCRIPT = 64 << 20 };  // bytes

// ---- scripts ----

typedef struct Load {
  cutelua_state *state;
  const char *text, *chunk, *find;
  size_t size;
  cutelua_ref ref;
  cutelua_ref *out;
} Load;

static int load_text(lua_State *L) {
  Load *l = lua_touserdata(L, 1);
  state_function(L, "load");
  lua_pushlstring(L, l->text, l->size);
  lua_pushstring(L, l->chunk);
  lua_call(L, 2, 1);
  // If the budget is exhausted, raise the error again, because the script may
  // have caught the first one.
  limit_spend(L, 0);
  *l->out = state_ref(l->state, L);
  return 0;
}

static cutelua_status load(cutelua_state *s, const char *text, size_t size,
                           const char *mark, const char *name,
                           cutelua_ref *out) {
  size_t n = strlen(name) + 2;
  char *chunk = malloc(n);
  if (!chunk) return CUTELUA_MEMORY;
  snprintf(chunk, n, "%s%s", mark, name);
  Load l = {.state = s, .text = text, .size = size, .chunk = chunk, .out = out};
  cutelua_status status = state_run(s->L, load_text, &l, &s->error);
  free(chunk);
  return status;
}

cutelua_status cutelua_load_text(cutelua_state *s, const char *text,
                                 size_t size, const char *name,
                                 cutelua_ref *script) {
  cutelua_status status = state_enter(s);
  if (status != CUTELUA_OK) return status;
  if (script) *script = 0;
  if (!script || (size && !text))
    return state_leave(s, state_misuse(s, "the script's text or the place of "
                                       "its reference is NULL"));
  if (size > MOST_SCRIPT)
    return state_leave(s, state_misuse(s, "a script of %zu bytes; at most 64 "
                                       "MiB are possible", size));
  return state_leave(s, load(s, text, size, "=", name ? name : "script",
                             script));
}

// Reads a file. Returns NULL and sets errno if it cannot be read.
static char *read_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rbe");
  struct stat st;
  if (!f) return NULL;
  char *text = NULL;
  size_t n = 0;
  if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) errno = EISDIR;
  else for (size_t room = 1 << 16;; room *= 2) {
    char *p = n < MOST_SCRIPT ? realloc(text, room) : NULL;
    if (!p) {
      errno = n < MOST_SCRIPT ? ENOMEM : EFBIG;
      free(text);
      text = NULL;
      break;
    }
    text = p;
    size_t got = fread(text + n, 1, room - n, f);
    n += got;
    if (n < room) break;
  }
  int e = errno;
  bool failed = text && ferror(f);
  fclose(f);
  if (failed) free(text), text = NULL;
  errno = e;
  *size = n;
  return text;
}

cutelua_status cutelua_load_file(cutelua_state *s, const char *path,
                                 cutelua_ref *script) {
  cutelua_status status = state_enter(s);
  if (status != CUTELUA_OK) return status;
  if (script) *script = 0;
  if (!script || !path)
    return state_leave(s, state_misuse(s, "the script's path or the place of "
                                       "its reference is NULL"));
  size_t size;
  char *text = read_file(path, &size);
  if (!text) return state_leave(s, state_io(s, path, strerror(errno)));
  status = load(s, text, size, "@", path, script);
  free(text);
  return state_leave(s, status);
}

static int find(lua_State *L) {
  Load *l = lua_touserdata(L, 1);
  state_function(L, "find");
  state_push(l->state, L, l->ref);
  lua_pushstring(L, l->find);
  lua_call(L, 2, 1);
  *l->out = state_ref(l->state, L);
  return 0;
}

cutelua_status cutelua_find(cutelua_state *s, cutelua_ref script,
                            const char *name, cutelua_ref *found) {
  cutelua_status status = state_enter(s);
  if (status != CUTELUA_OK) return status;
  if (found) *found = 0;
  if (!found)
    return state_leave(s, state_misuse(s, "the place of the reference is "
                                       "NULL"));
  Load l = {.state = s, .ref = script, .find = name ? name : "", .out = found};
  return state_leave(s, state_run(s->L, find, &l, &s->error));
}

static int release(lua_State *L) {
  const Load *l = lua_touserdata(L, 1);
  state_push(l->state, L, l->ref);
  lua_getfield(L, LUA_REGISTRYINDEX, "cutelua.refs");
  lua_pushnil(L);
  lua_rawseti(L, -2, (lua_Integer)l->ref);
  return 0;
}

cutelua_status cutelua_release(cutelua_state *s, cutelua_ref ref) {
  cutelua_status status = state_check(s);
  if (status != CUTELUA_OK || job_release(s, ref)) return status;
  status = state_enter(s);
  if (status != CUTELUA_OK) return status;
  Load l = {.state = s, .ref = ref};
  status = state_run(s->L, release, &l, &s->error);
  return state_leave(s, status == CUTELUA_ERROR ? CUTELUA_MISUSE : status);
}

// ---- calls ----

cutelua_status cutelua_launch(cutelua_state *s, cutelua_ref kernel,
                              const cutelua_arg *args, size_t nargs,
                              const cutelua_launch_options *launch) {
  Task t = {.state = s, .ref = kernel, .args = args, .nargs = nargs,
            .launch = launch};
  return call_run(&t, NULL);
}

cutelua_status cutelua_call(cutelua_state *s, cutelua_ref function,
                            const cutelua_arg *args, size_t nargs,
                            cutelua_arg *results, size_t nresults) {
  Task t = {.state = s, .ref = function, .args = args, .nargs = nargs,
            .results = results, .nresults = nresults, .calls = true};
  return call_run(&t, NULL);
}

cutelua_status cutelua_op(cutelua_state *s, const char *name,
                          const cutelua_arg *args, size_t nargs,
                          cutelua_arg *results, size_t nresults) {
  Task t = {.state = s, .name = name ? name : "", .args = args, .nargs = nargs,
            .results = results, .nresults = nresults, .calls = true};
  return call_run(&t, NULL);
}
// SPDX-License-Identifier: MIT
