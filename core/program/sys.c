// The module "cute.sys" of the program: terminal, Ctrl-C, folders, embedded
// files. The core library and the LuaRocks package do not contain it.
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "atoms/atom.h"
#include "base/signals.h"
#include "program/program.h"
#include "bind/interrupt.h"
#include "program/terminal.h"

// ---- the terminal ----

int sys_columns(void) {
  int n = face_terminal_columns(STDOUT_FILENO);
  return n > 0 ? n : 80;
}

int sys_rows(void) {
  struct winsize size;
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_row > 0 ? size.ws_row : 24;
}

void sys_hold(sigset_t *old) {
  sigset_t block;
  sigemptyset(&block);
  sigaddset(&block, SIGINT);
  sigprocmask(SIG_BLOCK, &block, old);
}

// Waits for a key. First checks for an earlier Ctrl-C, which pselect would miss
// if a key is already pending.
bool sys_wait(const sigset_t *mask) {
  sigset_t held;
  sigprocmask(SIG_SETMASK, mask, &held);
  sigprocmask(SIG_SETMASK, &held, NULL);
  if (signals_asked) return false;
  for (;;) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(STDIN_FILENO, &in);
    int n = pselect(STDIN_FILENO + 1, &in, NULL, NULL, NULL, mask);
    if (signals_asked) return false;
    if (n > 0 || errno != EINTR) return true;
  }
}

// ---- other functions ----

// ask(prompt) -> true | false after Ctrl-C: shows the prompt, and waits until a
// line can be read. Used without a line editor.
static int l_ask(lua_State *L) {
  const char *prompt = luaL_checkstring(L, 1);
  sigset_t mask;
  interrupt_watch();
  interrupt_answered();
  sys_hold(&mask);
  fputs(prompt, stdout);
  fflush(stdout);
  bool ready = sys_wait(&mask);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  interrupt_answered();
  lua_pushboolean(L, ready);
  return 1;
}

// mkdirs(path) -> true | nil, reason: creates a folder and its parents,
// accessible only by this user.
static int l_mkdirs(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  for (const char *p = path; *p;) {
    p = strchr(p + 1, '/');
    if (!p) p = path + strlen(path);
    lua_pushlstring(L, path, (size_t)(p - path));
    if (mkdir(lua_tostring(L, -1), 0700) != 0 && errno != EEXIST)
      return luaL_fileresult(L, 0, path);
    lua_pop(L, 1);
  }
  lua_pushboolean(L, 1);
  return 1;
}

// columns() -> characters per line of the terminal, 80 if unknown
static int l_columns(lua_State *L) {
  lua_pushinteger(L, sys_columns());
  return 1;
}

enum { MOST_FILES = 4096 };

// Stores the name of an entry of `folder` at index `at` of the table on top of
// the stack. Appends "/" if the entry is a folder itself.
static void add_file(lua_State *L, const char *folder, const char *name,
                     lua_Integer at) {
  struct stat st;
  lua_pushfstring(L, "%s/%s", folder, name);
  bool is_folder = stat(lua_tostring(L, -1), &st) == 0 && S_ISDIR(st.st_mode);
  lua_pop(L, 1);
  lua_pushfstring(L, is_folder ? "%s/" : "%s", name);
  lua_rawseti(L, -2, at);
}

static int folder_gc(lua_State *L) {
  DIR **d = lua_touserdata(L, 1);
  if (*d) closedir(*d);
  *d = NULL;
  return 0;
}

// files(folder) -> names of at most MOST_FILES entries of the folder, or an
// empty table if the folder cannot be read
static int l_files(lua_State *L) {
  const char *folder = luaL_checkstring(L, 1);
  lua_newtable(L);
  DIR **d = lua_newuserdatauv(L, sizeof *d, 0);
  *d = NULL;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, folder_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_insert(L, -2);
  *d = opendir(folder);
  struct dirent *found;
  for (lua_Integer n = 1; *d && n <= MOST_FILES && (found = readdir(*d));) {
    if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
      continue;
    add_file(L, folder, found->d_name, n++);
  }
  if (*d) closedir(*d);
  *d = NULL;
  return 1;
}

// stamp(path) -> a string that changes whenever the file is saved, or nil if
// there is no file
static int l_stamp(lua_State *L) {
  struct stat st;
  if (stat(luaL_checkstring(L, 1), &st) != 0) return 0;
  char text[96];
  snprintf(text, sizeof text, "%lld.%09ld %lld %llu",
           (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
           (long long)st.st_size, (unsigned long long)st.st_ino);
  lua_pushstring(L, text);
  return 1;
}

// embedded(chunkname) -> text of an embedded file, or nil
static int l_embedded(lua_State *L) {
  const char *chunk = luaL_checkstring(L, 1);
  for (size_t i = 0; i < embedded_count; i++) {
    if (strcmp(embedded_files[i].chunk, chunk) != 0) continue;
    embedded_push(L, &embedded_files[i]);
    return 1;
  }
  return 0;
}

// heard(): ends this program if the process that reads its standard output has
// exited, as a write to standard output would.
static int l_heard(lua_State *L) {
  (void)L;
  struct pollfd out = {STDOUT_FILENO, 0, 0};
  if (poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP)) raise(SIGPIPE);
  return 0;
}

typedef struct Names {
  lua_State *L;
  lua_Integer n;
} Names;

static void add_name(void *ud, const char *name, size_t n) {
  Names *to = ud;
  lua_pushlstring(to->L, name, n);
  lua_rawseti(to->L, -2, ++to->n);
}

// atoms("mma" | "copy", prefix) -> the names of the MMA or copy atoms that
// begin with `prefix`, each cut after the first "_" beyond the prefix
// (atom_each)
static int l_atoms(lua_State *L) {
  const char *kind = luaL_checkstring(L, 1), *prefix = luaL_checkstring(L, 2);
  Names to = {L, 0};
  lua_newtable(L);
  atom_each(strcmp(kind, "mma") == 0, prefix, add_name, &to);
  return 1;
}

static int push_embedded(lua_State *L, bool documents) {
  Names to = {L, 0};
  lua_newtable(L);
  for (size_t i = 0; i < embedded_count; i++) {
    const Embedded *e = &embedded_files[i];
    if (embedded_is_document(e) == documents)
      add_name(&to, e->name, strlen(e->name));
  }
  return 1;
}

// modules() -> names of the embedded modules, sorted
static int l_modules(lua_State *L) { return push_embedded(L, false); }

// documents() -> paths of the embedded documents, "docs/ops.md", sorted
static int l_documents(lua_State *L) { return push_embedded(L, true); }

int luaopen_cute_sys(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"call", interrupt_call}, {"ask", l_ask},
    {"mkdirs", l_mkdirs}, {"columns", l_columns}, {"files", l_files},
    {"stamp", l_stamp}, {"heard", l_heard},
    {"atoms", l_atoms}, {"embedded", l_embedded},
    {"modules", l_modules}, {"documents", l_documents}, {NULL, NULL}};
  interrupt_open(L);
  luaL_newlib(L, funcs);
  proclib_open(L);
  linelib_open(L);
  lua_pushliteral(L, CUTE_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}
// SPDX-License-Identifier: MIT
