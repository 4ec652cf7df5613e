// The `cutelua` program: a Lua state with the bindings and the Lua files of
// lua/ and kernels/. lua/cutelua/program/main.lua handles the command line.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lualib.h>

#include "program/program.h"

// Allocates memory for Lua by base_realloc, so that `make memerr` also makes
// allocations of Lua fail.
static void *main_alloc(void *ud, void *p, size_t osize, size_t nsize) {
  (void)ud;
  (void)osize;
  if (nsize == 0) {
    base_free(p);
    return NULL;
  }
  return base_realloc(p, nsize);
}

static int main_panic(lua_State *L) {
  const char *msg = lua_tostring(L, -1);
  fprintf(stderr, "cutelua: %s\n", msg ? msg : "error object not a string");
  return 0;
}

static void preload(lua_State *L, const char *name, lua_CFunction open) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, open);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

lua_State *program_state(void) {
  lua_State *L = lua_newstate(main_alloc, NULL);
  if (L) lua_atpanic(L, main_panic);
  return L;
}

int program_open(lua_State *L) {
  luaL_checkversion(L);
  luaL_openlibs(L);
  preload(L, "cute.core", luaopen_cute_core);
  preload(L, "cute.sys", luaopen_cute_sys);
  embedded_open(L);
  return 0;
}

// main_protected(argc, argv) -> exit code: runs the program. main() calls it in
// a protected call.
static int main_protected(lua_State *L) {
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  program_open(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "cutelua.program.main");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "main");
  lua_createtable(L, argc, 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 1, 1);
  return 1;
}

// At exit (also by os.exit), reports whether standard output could not be
// written, and exits with a failure.
static void check_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  fputs("cutelua: standard output could not be written [io]\n", stderr);
  _exit(EXIT_FAILURE);
}

// Opens /dev/null for each standard stream that the caller closed. Otherwise
// the next opened file would get the descriptor of that stream, and would
// receive the stream's output.
static void keep_numbers(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
        open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
      return;
}

// Handles SIGXFSZ: reports once that a write reached the limit on file sizes.
// After the handler returns, the write fails with EFBIG, and its caller raises
// an error.
static void on_size_limit(int sig) {
  static volatile sig_atomic_t told;
  static const char text[] = "cutelua: note: a file reached the limit of its "
    "size (ulimit -f)\n";
  (void)sig;
  int e = errno;
  if (!told && write(2, text, sizeof text - 1) > 0) told = 1;
  errno = e;
}

int main(int argc, char **argv) {
  struct sigaction limit = {.sa_handler = on_size_limit,
                            .sa_flags = SA_RESTART};
  keep_numbers();
  sigaction(SIGXFSZ, &limit, NULL);
  atexit(check_output);
  lua_State *L = program_state();
  if (!L) {
    fputs("cutelua: not enough memory\n", stderr);
    return EXIT_FAILURE;
  }
  lua_pushcfunction(L, main_protected);
  lua_pushinteger(L, argc);
  lua_pushlightuserdata(L, argv);
  int code = EXIT_FAILURE;
  if (lua_pcall(L, 2, 1, 0) == LUA_OK)
    code = (int)lua_tointeger(L, -1);
  else
    main_panic(L);
  lua_close(L);
  return code;
}
// SPDX-License-Identifier: MIT
