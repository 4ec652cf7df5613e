// require "cute.sys" inside the program: line editing, Ctrl-C, folders, and
// the embedded files. The core library and the rock have none of this.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>

#include "bind/program.h"
#include "base/signals.h"
#include "bind/stop.h"

// libtinfo's; its header would define names such as `lines` as macros.
int tgetent(char *bp, const char *name);

// ---- line editing ----

#define MT_EDITOR "cute.editor"

typedef struct Editor {
  EditLine *el;
  History *hist;
  char *prompt;
  sigset_t mask;  // while waiting for a key; Ctrl-C is blocked otherwise
} Editor;

static char *editor_prompt(EditLine *el) {
  Editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  return e->prompt;
}

static void hold_interrupt(sigset_t *old) {
  sigset_t block;
  sigemptyset(&block);
  sigaddset(&block, SIGINT);
  sigprocmask(SIG_BLOCK, &block, old);
}

// Waits for a key, with the signals of `mask` blocked; false after Ctrl-C.
// SIGINT is blocked outside, so that none comes between looking and waiting.
static bool wait_key(const sigset_t *mask) {
  for (;;) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(STDIN_FILENO, &in);
    int n = pselect(STDIN_FILENO + 1, &in, NULL, NULL, NULL, mask);
    if (signals_asked) return false;
    if (n > 0 || errno != EINTR) return true;
  }
}

// One character of the terminal; Ctrl-C ends the line.
static int editor_getc(EditLine *el, wchar_t *out) {
  Editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  mbstate_t st;
  memset(&st, 0, sizeof st);
  for (;;) {
    char c;
    if (!wait_key(&e->mask)) return -1;
    ssize_t n = read(STDIN_FILENO, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return (int)n;
    size_t used = mbrtowc(out, &c, 1, &st);
    if (used == (size_t)-2) continue;
    if (used == (size_t)-1) *out = L'?';
    return 1;
  }
}

static int editor_close(lua_State *L) {
  Editor *e = luaL_checkudata(L, 1, MT_EDITOR);
  if (e->el) el_end(e->el);
  if (e->hist) history_end(e->hist);
  free(e->prompt);
  e->el = NULL;
  e->hist = NULL;
  e->prompt = NULL;
  return 0;
}

static Editor *check_editor(lua_State *L) {
  Editor *e = luaL_checkudata(L, 1, MT_EDITOR);
  if (!e->el) luaL_error(L, "the editor is closed");
  return e;
}

// ed:read(prompt) -> line | nil at the end of input | false after Ctrl-C
static int editor_read(lua_State *L) {
  Editor *e = check_editor(L);
  const char *prompt = luaL_checkstring(L, 2);
  char *copy = malloc(strlen(prompt) + 1);
  if (!copy) return luaL_error(L, "not enough memory");
  strcpy(copy, prompt);
  free(e->prompt);
  e->prompt = copy;
  stop_answered();
  hold_interrupt(&e->mask);
  el_set(e->el, EL_PREP_TERM, 1);  // before the prompt shows, not after
  int n = 0;
  const char *s = el_gets(e->el, &n);
  sigprocmask(SIG_SETMASK, &e->mask, NULL);
  if (signals_asked) {
    stop_answered();
    el_reset(e->el);
    lua_pushboolean(L, 0);
  } else if (!s || n <= 0) {
    lua_pushnil(L);
  } else {
    size_t len = strlen(s);
    if (len > 0 && s[len - 1] == '\n') len--;
    lua_pushlstring(L, s, len);
  }
  return 1;
}

// ed:add(entry) puts an entry at the end of the history.
static int editor_add(lua_State *L) {
  Editor *e = check_editor(L);
  HistEvent ev;
  history(e->hist, &ev, H_ENTER, luaL_checkstring(L, 2));
  return 0;
}

// libedit's own settings, $EDITRC or ~/.editrc, if that is a plain file: it
// would wait for a pipe.
static void read_settings(EditLine *el) {
  const char *name = getenv("EDITRC"), *home = getenv("HOME");
  char path[1024];
  struct stat st;
  int n = name && *name ? snprintf(path, sizeof path, "%s", name)
                        : snprintf(path, sizeof path, "%s/.editrc",
                                   home ? home : "");
  if (n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 &&
      S_ISREG(st.st_mode))
    el_source(el, path);
}

// editor() -> an editor, or nil where the terminal is none or unknown.
static int sys_editor(lua_State *L) {
  const char *term = getenv("TERM");
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return 0;
  if (!term || !*term || tgetent(NULL, term) != 1) return 0;
  Editor *e = lua_newuserdatauv(L, sizeof *e, 0);
  memset(e, 0, sizeof *e);
  luaL_setmetatable(L, MT_EDITOR);
  setlocale(LC_CTYPE, "");
  e->hist = history_init();
  e->el = e->hist ? el_init("cutelua", stdin, stdout, stderr) : NULL;
  if (!e->el) return 0;
  stop_watch();
  HistEvent ev;
  history(e->hist, &ev, H_SETSIZE, 10000);
  el_set(e->el, EL_CLIENTDATA, e);
  el_set(e->el, EL_PROMPT, editor_prompt);
  el_set(e->el, EL_EDITOR, "emacs");
  el_set(e->el, EL_HIST, history, e->hist);
  el_set(e->el, EL_GETCFN, editor_getc);
  el_set(e->el, EL_SIGNAL, 0);
  el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(e->el, EL_BIND, "\033[1~", "ed-move-to-beg", NULL);
  el_set(e->el, EL_BIND, "\033[4~", "ed-move-to-end", NULL);
  el_set(e->el, EL_BIND, "\033[3~", "ed-delete-next-char", NULL);
  read_settings(e->el);
  return 1;
}

// ---- the rest ----

// ask(prompt): a terminal without an editor; true when there is a line to
// read, false after Ctrl-C.
static int sys_ask(lua_State *L) {
  const char *prompt = luaL_checkstring(L, 1);
  sigset_t mask;
  stop_watch();
  stop_answered();
  hold_interrupt(&mask);
  fputs(prompt, stdout);
  fflush(stdout);
  bool ready = wait_key(&mask);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  stop_answered();
  lua_pushboolean(L, ready);
  return 1;
}

// mkdirs(path) -> true | nil, reason: the folder and those above it, for
// this user alone.
static int sys_mkdirs(lua_State *L) {
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

// embedded(chunkname) -> text of an embedded file, or nil
static int sys_embedded(lua_State *L) {
  const char *chunk = luaL_checkstring(L, 1);
  for (size_t i = 0; i < embedded_count; i++) {
    if (strcmp(embedded_files[i].chunk, chunk) != 0) continue;
    embedded_push(L, &embedded_files[i]);
    return 1;
  }
  return 0;
}

// modules() -> names of the embedded modules, sorted
static int sys_modules(lua_State *L) {
  lua_createtable(L, (int)embedded_count, 0);
  for (size_t i = 0; i < embedded_count; i++) {
    lua_pushstring(L, embedded_files[i].name);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

int luaopen_cute_sys(lua_State *L) {
  static const luaL_Reg methods[] = {
    {"read", editor_read}, {"add", editor_add}, {"close", editor_close},
    {"__gc", editor_close}, {"__close", editor_close}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"call", stop_call}, {"editor", sys_editor}, {"ask", sys_ask},
    {"mkdirs", sys_mkdirs}, {"embedded", sys_embedded},
    {"modules", sys_modules}, {NULL, NULL}};
  stop_open(L);
  luaL_newmetatable(L, MT_EDITOR);
  luaL_setfuncs(L, methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_newlib(L, funcs);
  proclib_open(L);
  lua_pushliteral(L, CUTE_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}
