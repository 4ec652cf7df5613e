// Line editing at the prompt, with libedit.
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>

#include "base/signals.h"
#include "program/program.h"
#include "bind/interrupt.h"
#include "program/terminal.h"

// Declared here, because libtinfo's header defines names such as `lines` as
// macros.
int tgetent(char *bp, const char *name);

#define MT_EDITOR "cute.editor"

// A line editor. Its uservalue 1 is the completion function.
typedef struct Editor {
  EditLine *el;
  History *hist;
  char *prompt;
  // Signals that are blocked while the editor waits for a key. At other times,
  // the editor also blocks Ctrl-C.
  sigset_t mask;
  // The Lua state whose call reads a line. The editor is at index 1 of its
  // stack.
  lua_State *L;
  // Keys that were read ahead after a TAB, to find out whether the TAB is part
  // of pasted text. Keys ahead[from] to ahead[n - 1] are not handled yet.
  char ahead[64];
  size_t from, n;
} Editor;

static char *editor_prompt(EditLine *el) {
  Editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  return e->prompt;
}

// Reads one byte from the terminal. Returns 1, 0 at the end of input, or -1
// after Ctrl-C or an error.
static int read_byte(Editor *e, char *c) {
  if (e->from < e->n) {
    *c = e->ahead[e->from++];
    return 1;
  }
  for (;;) {
    if (!sys_wait(&e->mask)) return -1;
    ssize_t n = read(STDIN_FILENO, c, 1);
    if (n >= 0 || errno != EINTR) return (int)n;
  }
}

// Reads a character from the terminal for libedit. Ctrl-C ends the line. If the
// terminal's size has changed, passes the new size to libedit first.
static int editor_getc(EditLine *el, wchar_t *out) {
  Editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  mbstate_t st;
  memset(&st, 0, sizeof st);
  for (;;) {
    char c;
    int n = read_byte(e, &c);
    if (n <= 0) return n;
    size_t used = mbrtowc(out, &c, 1, &st);
    if (used == (size_t)-2) continue;
    if (used == (size_t)-1) *out = L'?';
    el_resize(el);
    return 1;
  }
}

// ---- completion ----

// Returns the number of terminal rows that the prompt and the n bytes of s
// fill, without the row in which s ends.
static int rows_above(Editor *e, const char *s, size_t n) {
  int columns = 80, row = 0, at = (int)strlen(e->prompt);
  // The column at which libedit wraps lines.
  el_get(e->el, EL_GETTC, "co", &columns);
  mbstate_t st;
  memset(&st, 0, sizeof st);
  for (size_t i = 0; i < n;) {
    wchar_t c = L'?';
    size_t used = mbrtowc(&c, s + i, n - i, &st);
    if (used == 0 || used > n - i) used = 1;
    i += used;
    int width = wcwidth(c);
    if (c == L'\t') width = 8 - at % 8;
    if (c == L'\n') at = columns;
    else at += width < 0 ? 2 : width;  // The terminal shows a control character
                                       // as two characters, such as ^A.
    if (at < columns) continue;
    at = c == L'\n' ? 0 : at - columns;
    row++;
  }
  return row;
}

// Returns the number of terminal rows of the edited line. Sets *above to the
// number of those above the row of the cursor.
static int rows_of(Editor *e, int *above) {
  const LineInfo *line = el_line(e->el);
  size_t before = (size_t)(line->cursor - line->buffer);
  *above = rows_above(e, line->buffer, before);
  size_t all = (size_t)(line->lastchar - line->buffer);
  return 1 + rows_above(e, line->buffer, all);
}

static void put_lines(int n) {
  for (int i = 0; i < n; i++) putchar('\n');
}

// Reports whether other keys follow a TAB immediately, which means that the
// text was pasted. Further TABs do not count, because a user may hold the key
// down.
static bool is_pasted(Editor *e) {
  struct pollfd in = {STDIN_FILENO, POLLIN, 0};
  if (e->from == e->n) {
    e->from = e->n = 0;
    while (e->n < sizeof e->ahead && poll(&in, 1, 0) > 0 &&
           read(STDIN_FILENO, &e->ahead[e->n], 1) == 1)
      if (e->ahead[e->n++] != '\t') break;
  }
  if (e->from == e->n) return false;
  char last = e->ahead[e->n - 1];
  return last != '\t' && last != '\033';
}

static unsigned char insert(EditLine *el, const char *text) {
  return el_insertstr(el, text) == 0 ? CC_REFRESH : CC_ERROR;
}

// Shows a text below the edited line. The line occupies `rows` rows of the
// terminal, `above` of which are above the row of the cursor. Then libedit
// redraws the line.
static unsigned char show_below(const char *text, int above, int rows) {
  put_lines(rows - above);
  fputs(text, stdout);
  put_lines(above);
  return CC_REDISPLAY;
}

// Handles the TAB key (back: Shift-TAB). Calls the completion function with the
// text before the cursor, the columns and the free rows of the terminal, and
// `back`. The function returns text to insert, text to show below the line, and
// the number of characters to delete before the cursor. Each result may be nil.
// A TAB in pasted text is inserted.
static unsigned char complete(EditLine *el, bool back) {
  Editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  lua_State *L = e->L;
  const LineInfo *line = el_line(el);
  size_t n = (size_t)(line->cursor - line->buffer);
  int top = lua_gettop(L), above, rows = rows_of(e, &above);
  unsigned char code = CC_ERROR;
  if (!lua_checkstack(L, 10)) return code;
  lua_getiuservalue(L, 1, 1);
  lua_pushlstring(L, line->buffer, n);
  lua_pushinteger(L, sys_columns());
  lua_pushinteger(L, sys_rows() - rows);
  lua_pushboolean(L, back);
  if (lua_pcall(L, 4, 3, 0) == LUA_OK) {
    const char *text = lua_tostring(L, -3), *shown = lua_tostring(L, -2);
    if (text) {
      el_deletestr(el, (int)lua_tointeger(L, -1));
      code = insert(el, text);
    }
    if (shown) code = show_below(shown, above, rows);
  }
  lua_settop(L, top);
  return code;
}

static unsigned char editor_complete(EditLine *el, int key) {
  Editor *e = NULL;
  (void)key;
  el_get(el, EL_CLIENTDATA, &e);
  return is_pasted(e) ? insert(el, "\t") : complete(el, false);
}

static unsigned char editor_back(EditLine *el, int key) {
  (void)key;
  return complete(el, true);
}

// ---- methods ----

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

// ed:read(prompt) -> line | nil at the end of input | false after Ctrl-C: lets
// the user edit a line.
static int editor_read(lua_State *L) {
  Editor *e = check_editor(L);
  const char *prompt = luaL_checkstring(L, 2);
  char *copy = malloc(strlen(prompt) + 1);
  if (!copy) return luaL_error(L, "not enough memory");
  strcpy(copy, prompt);
  free(e->prompt);
  e->prompt = copy;
  interrupt_answered();
  sys_hold(&e->mask);
  // selects raw mode before the prompt is shown
  el_set(e->el, EL_PREP_TERM, 1);
  el_resize(e->el);
  int n = 0;
  e->L = L;
  e->from = e->n = 0;
  const char *s = el_gets(e->el, &n);
  sigprocmask(SIG_SETMASK, &e->mask, NULL);
  if (signals_asked) {
    int above, rows = rows_of(e, &above);
    interrupt_answered();
    fputs("^C", stdout);
    put_lines(rows - above);
    fflush(stdout);
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

// ed:add(entry): appends a line to the history.
static int editor_add(lua_State *L) {
  Editor *e = check_editor(L);
  HistEvent ev;
  history(e->hist, &ev, H_ENTER, luaL_checkstring(L, 2));
  return 0;
}

// Reads libedit's settings from $EDITRC or ~/.editrc, if that file is a regular
// file. libedit would block at a pipe.
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

// Selects UTF-8 for input, even in the locale C.
static void set_locale(void) {
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968") == 0)
    setlocale(LC_CTYPE, "C.UTF-8");
}

// editor(complete) -> a line editor, or nil if there is no terminal or its type
// is unknown. `complete` is the function that the TAB key calls.
static int sys_editor(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  const char *term = getenv("TERM");
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return 0;
  if (!term || !*term || tgetent(NULL, term) != 1) return 0;
  Editor *e = lua_newuserdatauv(L, sizeof *e, 1);
  memset(e, 0, sizeof *e);
  luaL_setmetatable(L, MT_EDITOR);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  set_locale();
  e->hist = history_init();
  e->el = e->hist ? el_init("cutelua", stdin, stdout, stderr) : NULL;
  if (!e->el) return 0;
  interrupt_watch();
  HistEvent ev;
  history(e->hist, &ev, H_SETSIZE, 10000);
  history(e->hist, &ev, H_SETUNIQUE, 1);
  el_set(e->el, EL_CLIENTDATA, e);
  el_set(e->el, EL_PROMPT, editor_prompt);
  el_set(e->el, EL_EDITOR, "emacs");
  el_set(e->el, EL_HIST, history, e->hist);
  el_set(e->el, EL_GETCFN, editor_getc);
  el_set(e->el, EL_SIGNAL, 0);
  // Pass wide strings, because libedit converts narrow strings and leaks the
  // result.
  el_wset(e->el, EL_ADDFN, L"complete", L"completes a name", editor_complete);
  el_wset(e->el, EL_ADDFN, L"complete-back", L"goes back", editor_back);
  el_set(e->el, EL_BIND, "^I", "complete", NULL);
  el_set(e->el, EL_BIND, "\033[Z", "complete-back", NULL);  // Shift+TAB
  el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(e->el, EL_BIND, "\033[1~", "ed-move-to-beg", NULL);
  el_set(e->el, EL_BIND, "\033[4~", "ed-move-to-end", NULL);
  el_set(e->el, EL_BIND, "\033[3~", "ed-delete-next-char", NULL);
  read_settings(e->el);
  return 1;
}

void linelib_open(lua_State *L) {
  static const luaL_Reg methods[] = {
    {"read", editor_read}, {"add", editor_add}, {"close", editor_close},
    {"__gc", editor_close}, {"__close", editor_close}, {NULL, NULL}};
  luaL_newmetatable(L, MT_EDITOR);
  luaL_setfuncs(L, methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, sys_editor);
  lua_setfield(L, -2, "editor");
}
// SPDX-License-Identifier: MIT
