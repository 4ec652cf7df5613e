// The arguments of public functions: how many there are, what is wrong with
// one, and what the function is called.
//
// A public function has a signature, "size(layout, modes...)": parameters
// that may be left out end in `?`, one in `...` takes the rest. Of a C
// function it is the name in its luaL_Reg row, of a function of lua/cute
// (lua/cute/lang/signature.lua) there are types too: "wait(state: table, n?:
// integer|value)"; of a table of options "{limit unroll}", the keys that it may
// have; "dtype|string" is an element type or the name of one.
// Registry["cute.names"] has it by function, with the name as users write it:
// "gpu.open(...)". A C function keeps its own, with "cute." or "tensor:" in
// front; a row without parentheses is a primitive for lua/cute, and nameless.
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/row.h"
#include "bind/tensorlib.h"

#define NAMES "cute.names"

// ---- signatures ----

typedef struct Param {
  const char *name, *type;  // type: NULL for any
  size_t name_len, type_len;
  bool optional, rest;
} Param;

// The parameter that begins at *s, which moves to the next; false: none.
static bool next_param(const char **s, Param *p) {
  const char *at = *s + strspn(*s, " ,(");
  if (*at == ')' || !*at) return false;
  size_t n = strcspn(at, ",)"), name = strcspn(at, "?:.,) ");
  const char *colon = memchr(at, ':', n);
  memset(p, 0, sizeof *p);
  p->name = at;
  p->name_len = name;
  p->optional = at[name] == '?';
  p->rest = n - name >= 3 && memcmp(at + name, "...", 3) == 0;
  if (colon) {
    p->type = colon + 1 + strspn(colon + 1, " ");
    p->type_len = (size_t)(at + n - p->type);
  }
  *s = at + n;
  return true;
}

static int count_params(const char *sig) {
  const char *s = strchr(sig, '(');
  Param p;
  int n = 0;
  while (next_param(&s, &p)) {
    if (p.rest) return INT_MAX - 1;
    n++;
  }
  return n;
}

static bool has_colon(const char *sig) {
  return memchr(sig, ':', strcspn(sig, "(")) != NULL;
}

// ---- what users called ----

// A public function of C: upvalue 2 of its closure.
typedef struct Entry {
  const char *prefix, *sig;  // "cute.", "size(x, modes...)"
  lua_CFunction f;           // or NULL, and
  const FnRow *rows;         // n alternatives
  int n;
  int most;                  // arguments, a receiver counted
  int method;                // 1: there is one
} Entry;

static int call_entry(lua_State *L);

// A public function at work.
typedef struct Public {
  lua_Debug ar;
  int level;
  const char *prefix, *sig;
  char name[96];
  bool own;         // a method by its signature: x is not in it
  bool method;      // called as x:f(...)
  bool colon;       // called as cute:f(...)
} Public;

// The signature of the function on top, which is popped; false: none.
static bool pop_signature(lua_State *L, const char **prefix,
                          const char **sig) {
  if (lua_tocfunction(L, -1) == call_entry) {
    lua_getupvalue(L, -1, 2);
    const Entry *e = lua_touserdata(L, -1);
    lua_pop(L, 2);
    *prefix = e->prefix;
    *sig = e->sig;
    return strchr(e->sig, '(') != NULL;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, NAMES);
  lua_insert(L, -2);
  lua_rawget(L, -2);
  *prefix = "";
  *sig = lua_tostring(L, -1);  // kept alive by the table
  lua_pop(L, 2);
  return *sig != NULL;
}

// Is the value on top the table that has function p under that name?
static bool holds_it(lua_State *L, Public *p, const char *name) {
  if (!lua_istable(L, -1)) return false;
  lua_pushstring(L, name);
  lua_rawget(L, -2);
  lua_getinfo(L, "f", &p->ar);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

// The public function that the innermost code of a user called: the outermost
// one above that code.
static bool find_public(lua_State *L, Public *p) {
  lua_Debug ar;
  const char *prefix, *sig;
  p->sig = NULL;
  p->colon = false;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Slnf", &ar);
    if (pop_signature(L, &prefix, &sig)) {
      p->prefix = prefix;
      p->sig = sig;
      p->ar = ar;
      p->level = level;
    }
    if (ar.currentline > 0 && !face_own_source(ar.source)) break;
  }
  if (!p->sig) return false;
  const char *what = p->ar.namewhat;
  p->own = p->method = strchr(p->prefix, ':') || has_colon(p->sig);
  snprintf(p->name, sizeof p->name, "%s%.*s", p->prefix,
           (int)strcspn(p->sig, "("), p->sig);
  if (p->method || !what || strcmp(what, "method") != 0) return true;
  p->method = true;  // cute.size as layout:size
  if (lua_getlocal(L, &p->ar, *p->ar.what == 'C' ? 1 : -1)) {
    char base[sizeof p->name];
    const char *dot = strrchr(p->name, '.');
    snprintf(base, sizeof base, "%s", dot ? dot + 1 : p->name);
    p->colon = holds_it(L, p, base);
    p->method = !p->colon;
    if (p->method)
      snprintf(p->name, sizeof p->name, "%.40s:%.50s", face_typename(L, -1),
               base);
    lua_pop(L, 1);
  }
  return true;
}

// How it is to be called.
static void usage(const Public *p, char *out, size_t size) {
  const char *s = strchr(p->sig, '(');
  Param q;
  if (p->method && !p->own) next_param(&s, &q);  // self
  size_t at = (size_t)snprintf(out, size, "%s(", p->name);
  for (int n = 0; next_param(&s, &q) && at + q.name_len + 8 < size; n++)
    at += (size_t)snprintf(out + at, size - at, "%s%.*s%s%s", n ? ", " : "",
                           (int)q.name_len, q.name, q.optional ? "?" : "",
                           q.rest ? "..." : "");
  snprintf(out + at, size - at, ")");
}

// The place of the value at idx among the arguments of p; 0: it is none.
static int argument_of(lua_State *L, const Public *p, int idx) {
  int step = *p->ar.what == 'C' ? 1 : -1, most = count_params(p->sig);
  bool none = lua_isnoneornil(L, idx);
  if (none) lua_pushnil(L);
  else lua_pushvalue(L, idx);
  for (int n = 1; n <= most + 1; n++) {
    bool has = lua_getlocal(L, &p->ar, step * n) != NULL;
    bool same = has ? lua_rawequal(L, -1, -2) : none && n <= most;
    if (has) lua_pop(L, 1);
    if (same) return lua_pop(L, 1), n;
    if (!has) break;
  }
  lua_pop(L, 1);
  return 0;
}

// ---- values in messages ----

enum { SHOWN = 60, GIVEN = 6 };  // characters of a value, values of a call

typedef struct Shown {
  char p[SHOWN + 16];
  size_t n;
} Shown;

static void put(Shown *out, const char *s, size_t n) {
  for (size_t i = 0; i < n && out->n < SHOWN; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c >= 32 && c != 127)
      out->p[out->n++] = (char)c;
    else
      out->n += (size_t)snprintf(out->p + out->n, 8, "\\%d", c);
    if (out->n >= SHOWN && i + 1 < n)
      out->n += (size_t)snprintf(out->p + out->n, 4, "...");
  }
  out->p[out->n] = '\0';
}

static void puts_(Shown *out, const char *s) { put(out, s, strlen(s)); }

static void put_value(lua_State *L, int idx, Shown *out, int depth);

// {8, {4, 2}}, {block = 32}: as users write it.
static void put_table(lua_State *L, int idx, Shown *out, int depth) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  const char *key = NULL;  // the first name
  luaL_checkstack(L, 4, "table");
  puts_(out, "{");
  for (lua_Integer i = 1; i <= n && out->n < SHOWN; i++) {
    if (i > 1) puts_(out, ", ");
    lua_rawgeti(L, idx, i);
    put_value(L, lua_gettop(L), out, depth + 1);
    lua_pop(L, 1);
  }
  lua_pushnil(L);
  while (lua_next(L, idx)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) continue;
    const char *k = lua_tostring(L, -1);
    if (!key || strcmp(k, key) < 0) key = k;
  }
  if (key) {
    lua_pushstring(L, key);
    lua_rawget(L, idx);
    puts_(out, n ? ", " : "");
    puts_(out, key);
    puts_(out, " = ");
    put_value(L, lua_gettop(L), out, depth + 1);
    lua_pop(L, 1);
  }
  puts_(out, "}");
}

// An object of ours by its own text, behind the word for what it is.
static void put_object(lua_State *L, int idx, Shown *out) {
  const char *what = face_typename(L, idx);
  int top = lua_gettop(L);
  bool text = luaL_getmetafield(L, idx, "__tostring") != LUA_TNIL;
  if (text && lua_type(L, idx) == LUA_TUSERDATA)  // others print addresses
    text = luaL_getmetafield(L, idx, "__name") == LUA_TSTRING &&
           strncmp(lua_tostring(L, -1), "cute.", 5) == 0;
  lua_settop(L, top);
  if (!text) {
    puts_(out, "a ");
    puts_(out, what);
    return;
  }
  size_t n;
  const char *s = luaL_tolstring(L, idx, &n);
  if (strncmp(s, what, strlen(what)) != 0 && strcmp(what, "table") != 0 &&
      strcmp(what, "value") != 0 && strcmp(what, "dtype") != 0) {
    puts_(out, what);
    puts_(out, " ");
  }
  put(out, s, n);
  lua_pop(L, 1);
}

static void put_value(lua_State *L, int idx, Shown *out, int depth) {
  size_t n;
  const char *s;
  switch (lua_type(L, idx)) {
  case LUA_TNONE: puts_(out, "no value"); return;
  case LUA_TSTRING:
    s = lua_tolstring(L, idx, &n);
    puts_(out, "\"");
    put(out, s, n);
    if (out->n < SHOWN) puts_(out, "\"");
    return;
  case LUA_TFUNCTION: puts_(out, "a function"); return;
  case LUA_TTHREAD: puts_(out, "a coroutine"); return;
  case LUA_TLIGHTUSERDATA: puts_(out, "a light userdata"); return;
  case LUA_TUSERDATA: put_object(L, idx, out); return;
  case LUA_TTABLE:
    if (luaL_getmetafield(L, idx, "__tostring") != LUA_TNIL) {
      lua_pop(L, 1);
      put_object(L, idx, out);
    } else if (depth > 3) {
      puts_(out, "{...}");
    } else {
      put_table(L, idx, out, depth);
    }
    return;
  default:
    luaL_tolstring(L, idx, NULL);
    puts_(out, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
}

const char *face_show(lua_State *L, int idx) {
  Shown out = {.n = 0};
  luaL_checkstack(L, LUA_MINSTACK, "value");
  put_value(L, lua_absindex(L, idx), &out, 0);
  return lua_pushlstring(L, out.p, out.n);
}

// ---- messages ----

bool face_colon(lua_State *L) {
  Public p;
  return find_public(L, &p) && p.colon;
}

const char *face_public(lua_State *L, char name[96]) {
  Public p;
  if (!find_public(L, &p)) return NULL;
  snprintf(name, 96, "%s", p.name);
  return name;
}

// arg counts from the receiver of a method on; 0, or one that counts from the
// top of the stack, as fields of options do: which one is not known.
static _Noreturn void complain(lua_State *L, const Public *p, int arg,
                               const char *want, const char *got) {
  char use[512], at[16] = "";
  usage(p, use, sizeof use);
  if (p->method && arg == 1)
    face_error(L, ERR_ARG, "'%s' was called on %s (%s expected)\n  use %s",
               p->name, got, want, use);
  if (arg > 0) snprintf(at, sizeof at, " #%d", arg - p->method);
  face_error(L, ERR_ARG, "bad argument%s to '%s' (%s expected, got %s)\n"
             "  use %s", at, p->name, want, got, use);
}

// Operators call by names of their own: t[c] = x is 'newindex'.
static _Noreturn void operand_error(lua_State *L, int arg, const char *name,
                                    const char *want) {
  bool set = strcmp(name, "newindex") == 0;
  const char *got = face_show(L, arg);
  if (set && arg == 3)
    face_error(L, ERR_ARG, "an element was set to a bad value (%s expected, "
               "got %s)", want, got);
  if (set || strcmp(name, "index") == 0)
    face_error(L, ERR_ARG, "bad index (%s expected, got %s)", want, got);
  face_error(L, ERR_ARG, "bad operand #%d of '%s' (%s expected, got %s)", arg,
             name, want, got);
}

// The function at `level` has a bad argument: told as that of the public
// function it works for.
static _Noreturn void bad_argument(lua_State *L, int level, int arg,
                                   const char *want) {
  Public p;
  luaL_checkstack(L, 16, "error message");
  if (!find_public(L, &p))
    face_error(L, ERR_ARG, "bad argument #%d (%s expected, got %s)", arg, want,
               face_show(L, arg));
  complain(L, &p, p.level == level ? arg : argument_of(L, &p, arg), want,
           face_show(L, arg));
}

void face_argerror(lua_State *L, int arg, const char *want) {
  lua_Debug ar = {0};
  Public p;
  if (lua_getstack(L, 0, &ar)) lua_getinfo(L, "n", &ar);
  if (ar.namewhat && strcmp(ar.namewhat, "metamethod") == 0 &&
      !find_public(L, &p))
    operand_error(L, arg, ar.name, want);
  bad_argument(L, 0, arg, want);
}

// More arguments than `most`: an error, but for nil.
static void too_many(lua_State *L, int level, int most, int method) {
  char want[48];
  int n = lua_gettop(L);
  while (n > most && lua_isnil(L, n)) n--;
  lua_settop(L, n);
  if (n <= most) return;
  snprintf(want, sizeof want, most > method ? "at most %d" : "none",
           most - method);
  bad_argument(L, level, most + 1, want);
}

// ---- names that are not there ----

const char *face_meant(lua_State *L, const Nearest *n) {
  if (!n->best) return "";
  lua_pushlstring(L, n->best, n->best_len);
  return lua_pushfstring(L, " (did you mean %s?)", lua_tostring(L, -1));
}

static bool is_word(const char *list, const char *word) {
  size_t n, len = strlen(word);
  for (; *(list += strspn(list, " ")); list += n) {
    n = strcspn(list, " ");
    if (n == len && memcmp(list, word, n) == 0) return true;
  }
  return false;
}

void face_check_options(lua_State *L, int idx, const char *names) {
  if (lua_isnoneornil(L, idx)) return;
  idx = lua_absindex(L, idx);
  face_checktype(L, idx, LUA_TTABLE);
  luaL_checkstack(L, 8, "options");
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    bool named = lua_type(L, -2) == LUA_TSTRING;
    const char *k = named ? lua_tostring(L, -2) : "";
    if (named && is_word(names, k)) continue;
    Nearest n = nearest_of(k);
    if (named) nearest_offer_words(&n, names);
    if (named) lua_pushfstring(L, "'%s'", k);
    else face_show(L, -2);
    k = lua_tostring(L, -1);
    if (!named) k = lua_pushfstring(L, "%s = %s", k, face_show(L, -2));
    face_error(L, ERR_NAME, "no option %s%s: there %s %s", k,
               face_meant(L, &n), strchr(names, ' ') ? "are" : "is", names);
  }
}

// check_options(table, names): for a table that a type cannot find
static int l_check_options(lua_State *L) {
  face_check_options(L, 1, face_checkstr(L, 2));
  return 0;
}

// nearest(name, list) -> the one of a list of names that is nearest to name,
// or nil when none is near
static int l_nearest(lua_State *L) {
  Nearest n = nearest_of(face_checkstr(L, 1));
  face_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
    size_t len;
    const char *s = lua_tolstring(L, -1, &len);  // kept alive by the list
    nearest_offer(&n, s, len);
    lua_pop(L, 1);
  }
  if (n.best) lua_pushlstring(L, n.best, n.best_len);
  else lua_pushnil(L);
  return 1;
}

// ---- C functions ----

static int call_entry(lua_State *L) {
  const Entry *e = lua_touserdata(L, lua_upvalueindex(2));
  if (lua_gettop(L) > e->most) too_many(L, 0, e->most, e->method);
  return e->f ? e->f(L) : rowlib_call(L, e->rows, e->n);
}

// Pushes "cute." or "tensor:", for the functions of the table on top.
static const char *push_prefix(lua_State *L) {
  lua_pushliteral(L, "__name");
  if (lua_rawget(L, -2) != LUA_TSTRING) {
    lua_pop(L, 1);
    return lua_pushliteral(L, "cute.");
  }
  const char *t = lua_tostring(L, -1);
  lua_pushfstring(L, "%s:", strncmp(t, "cute.", 5) == 0 ? t + 5 : t);
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}

// Functions that are being set into the table on top.
typedef struct Setting {
  void *cx;
  const char *prefix;
  Entry *next;   // as many as there are functions, kept by the registry
} Setting;

static Setting begin_setting(lua_State *L, size_t n) {
  Setting s;
  s.prefix = push_prefix(L);
  s.next = lua_newuserdatauv(L, n * sizeof *s.next, 1);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
  luaL_ref(L, LUA_REGISTRYINDEX);
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  s.cx = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return s;
}

static void set(lua_State *L, Setting *s, Entry e) {
  size_t n = strcspn(e.sig, "(");
  lua_pushlstring(L, e.sig, n);
  lua_pushlightuserdata(L, s->cx);
  if (!e.sig[n] && e.f) {
    lua_pushcclosure(L, e.f, 1);
  } else {
    e.prefix = s->prefix;
    e.method = strchr(e.prefix, ':') != NULL;
    e.most = e.sig[n] ? count_params(e.sig) + e.method : INT_MAX;
    *s->next = e;
    lua_pushlightuserdata(L, s->next++);
    lua_pushcclosure(L, call_entry, 2);
  }
  lua_rawset(L, -3);
}

void face_setfuncs(lua_State *L, const luaL_Reg *regs) {
  size_t n = 0;
  while (regs[n].name) n++;
  Setting s = begin_setting(L, n);
  for (; regs->name; regs++)
    set(L, &s, (Entry){.sig = regs->name, .f = regs->func});
}

void face_setrows(lua_State *L, const FnRow *rows) {
  size_t count = 0;
  while (rows[count].sig) count++;
  Setting s = begin_setting(L, count);
  while (rows->sig) {
    int n = 0;
    do assert(rowlib_consistent(&rows[n]));
    while (rows[++n].sig && strcmp(rows[n].sig, OR) == 0);
    Entry e = {.sig = rows->sig, .rows = rows, .n = n};
    if (n == 1 && rows->shape == SHAPE_FACE) e.f = (lua_CFunction)rows->f;
    set(L, &s, e);
    rows += n;
  }
}

// ---- types: of Lua's functions ----

// Is the value at idx of the type that a word names?
static bool of_type(lua_State *L, int idx, const char *word, size_t n) {
  const char *t = tensorlib_box(L, idx) ? "tensor" : face_typename(L, idx);
  if (lua_type(L, idx) == LUA_TTABLE) {  // objects of lua/cute are no tables
    int what = luaL_getmetafield(L, idx, "__name");
    if (what == LUA_TSTRING && !strstr(lua_tostring(L, -1), "cute."))
      t = lua_tostring(L, -1);  // kept alive by the metatable
    if (what != LUA_TNIL) lua_pop(L, 1);
  }
  if (strlen(t) == n && memcmp(t, word, n) == 0) return true;
  if (n == 7 && memcmp(word, "integer", n) == 0) return lua_isinteger(L, idx);
  return n == 3 && memcmp(word, "any", n) == 0;
}

// The next word of "integer|value"; false: none.
static bool next_word(const char **at, const char *end, const char **word,
                      size_t *n) {
  if (*at >= end) return false;
  const char *bar = memchr(*at, '|', (size_t)(end - *at));
  *word = *at;
  *n = (size_t)((bar ? bar : end) - *at);
  *at += *n + 1;
  return true;
}

// Does a parameter take an element type or the name of one?
static bool names_dtype(const Param *p) {
  static const char both[] = "dtype|string";
  return p->type_len >= sizeof both - 1 &&
         memcmp(p->type, both, sizeof both - 1) == 0;
}

static bool fits(lua_State *L, int idx, const Param *p) {
  const char *at = p->type, *word;
  size_t n;
  if (lua_isnoneornil(L, idx)) return p->optional || p->rest;
  if (!p->type) return true;
  if (names_dtype(p) && lua_type(L, idx) == LUA_TSTRING)
    return dtype_find(lua_tostring(L, idx)) != DT_NONE;
  while (next_word(&at, p->type + p->type_len, &word, &n)) {
    if (*word == '{' && of_type(L, idx, "table", 5)) {
      lua_pushlstring(L, word + 1, n - 2);
      face_check_options(L, idx, lua_tostring(L, -1));
      lua_pop(L, 1);
      return true;
    }
    if (of_type(L, idx, word, n)) return true;
  }
  return false;
}

// What a parameter takes: "integer or traced value", or its name.
static void wanted(const Param *p, char *out, size_t size) {
  static const char *const said[][2] = {
    {"value", "traced value"}, {"dtype", "element type"},
    {"any", "value"}, {"devbuf", "device buffer"}, {"string", "its name"}};
  size_t words = sizeof said / sizeof *said - !names_dtype(p);
  const char *at = p->type, *end = at + p->type_len, *word;
  size_t n, used = 0;
  if (!p->type) {
    snprintf(out, size, "%.*s", (int)p->name_len, p->name);
    return;
  }
  while (next_word(&at, end, &word, &n) && used + n + 24 < size) {
    const char *join = !used ? "" : at >= end ? " or " : ", ";
    if (*word == '{') word = "table", n = 5;
    for (size_t i = 0; i < words; i++)
      if (strlen(said[i][0]) == n && memcmp(said[i][0], word, n) == 0) {
        word = said[i][1];
        n = strlen(word);
        break;
      }
    used += (size_t)snprintf(out + used, size - used, "%s%.*s", join, (int)n,
                             word);
  }
}

// What a check looks at: the parameters of a signature behind a receiver.
typedef struct Checks {
  int most, method;  // arguments; 1: there is a receiver
  int n;
  Param param[];     // of which the last may take the rest
} Checks;

static void check_argument(lua_State *L, int arg, const Param *p) {
  char want[160];
  if (fits(L, arg, p)) return;
  wanted(p, want, sizeof want);
  bad_argument(L, 1, arg, want);
}

// check(...), made by checker(signature [, class]): raises unless the
// arguments fit the signature; the first of a method has metatable `class`.
// Its caller is the public function. Upvalues: signature, Checks, class.
static int check_call(lua_State *L) {
  const Checks *c = lua_touserdata(L, lua_upvalueindex(2));
  int n = lua_gettop(L), arg = 1;
  if (n > c->most) too_many(L, 1, c->most, c->method);
  if (c->method) {
    const char *sig = lua_tostring(L, lua_upvalueindex(1));
    char want[160];
    bool own = lua_getmetatable(L, 1) &&
               lua_rawequal(L, -1, lua_upvalueindex(3));
    lua_settop(L, n);
    snprintf(want, sizeof want, "%.*s", (int)strcspn(sig, ":"), sig);
    if (!own) bad_argument(L, 1, 1, want);
    arg = 2;
  }
  for (int i = 0; i < c->n; i++) {
    const Param *p = &c->param[i];
    if (!p->rest) check_argument(L, arg++, p);
    else while (arg <= n) check_argument(L, arg++, p);
  }
  return 0;
}

static int l_checker(lua_State *L) {
  const char *sig = luaL_checkstring(L, 1), *s = strchr(sig, '(');
  Param p;
  int n = 0;
  lua_settop(L, 2);
  while (next_param(&s, &p)) n++;
  lua_pushvalue(L, 1);
  Checks *c = lua_newuserdatauv(L, sizeof *c + (size_t)n * sizeof p, 0);
  c->method = has_colon(sig);
  c->most = count_params(sig) + c->method;
  c->n = n;
  s = strchr(sig, '(');
  for (int i = 0; i < n; i++) next_param(&s, &c->param[i]);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, check_call, 3);
  return 1;
}

// bad_argument(n, want, value): raises, for a check that types do not say, of
// argument n of the public function at work (a receiver is not counted).
static int l_bad_argument(lua_State *L) {
  Public p;
  int n = (int)face_checkint(L, 1);
  const char *want = face_checkstr(L, 2);
  if (!find_public(L, &p))
    face_error(L, ERR_ARG, "%s expected, got %s", want, face_show(L, 3));
  complain(L, &p, n + p.method, want, face_show(L, 3));
}

// usage() -> the name of the public function at work, what it was given and how
// it is called: "given (1, \"x\")", "use cute.size(x, modes...)"; nil: none is.
static int l_usage(lua_State *L) {
  Public p;
  char use[512];
  luaL_checkstack(L, LUA_MINSTACK, "error message");
  if (!find_public(L, &p)) return 0;
  int step = *p.ar.what == 'C' ? 1 : -1, first = 1 + p.method;
  usage(&p, use, sizeof use);
  lua_settop(L, 0);
  lua_pushliteral(L, "");
  for (int n = first; n < first + GIVEN && lua_getlocal(L, &p.ar, step * n);
       n++) {
    face_show(L, -1);
    lua_remove(L, -2);
    if (n > first) {
      lua_pushliteral(L, ", ");
      lua_insert(L, -2);
      lua_concat(L, 3);
    } else {
      lua_concat(L, 2);
    }
  }
  lua_pushstring(L, p.name);
  lua_pushfstring(L, "given (%s)", lua_tostring(L, 1));
  lua_pushfstring(L, "use %s", use);
  return 3;
}

// name(function, signature): what its users know it as; gives the function.
static int l_name(lua_State *L) {
  const char *sig = luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_getfield(L, LUA_REGISTRYINDEX, NAMES);
  lua_pushvalue(L, 1);
  lua_pushstring(L, sig);
  lua_rawset(L, -3);
  lua_settop(L, 1);
  return 1;
}

// signature(function) -> "cute.size(layout, modes...)", or nil
static int l_signature(lua_State *L) {
  lua_settop(L, 1);
  const char *prefix, *sig;
  if (pop_signature(L, &prefix, &sig)) lua_pushfstring(L, "%s%s", prefix, sig);
  else lua_pushnil(L);
  return 1;
}

static int l_show(lua_State *L) {
  lua_settop(L, 1);
  face_show(L, 1);
  return 1;
}

// ---- arguments of basic types ----

int64_t face_checkint(lua_State *L, int idx) {
  int exact = 0;
  lua_Integer v = 0;
  if (lua_type(L, idx) == LUA_TNUMBER) v = lua_tointegerx(L, idx, &exact);
  if (!exact) face_argerror(L, idx, "integer");
  return v;
}

double face_checknum(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TNUMBER) face_argerror(L, idx, "number");
  return lua_tonumber(L, idx);
}

const char *face_checkstr(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TSTRING) face_argerror(L, idx, "string");
  return lua_tostring(L, idx);
}

const char *face_checklstr(lua_State *L, int idx, size_t *n) {
  face_checkstr(L, idx);
  return lua_tolstring(L, idx, n);
}

// The type is told as the metatable's name tells it, without "cute.".
void *face_checkudata(lua_State *L, int idx, const char *tname) {
  void *p = luaL_testudata(L, idx, tname);
  if (!p) face_argerror(L, idx, tname + 5);
  return p;
}

void face_checkany(lua_State *L, int idx) {
  if (lua_isnone(L, idx)) face_argerror(L, idx, "value");
}

void face_checktype(lua_State *L, int idx, int type) {
  if (lua_type(L, idx) != type) face_argerror(L, idx, lua_typename(L, type));
}

int64_t face_optint(lua_State *L, int idx, int64_t otherwise) {
  return lua_isnoneornil(L, idx) ? otherwise : face_checkint(L, idx);
}

double face_optnum(lua_State *L, int idx, double otherwise) {
  return lua_isnoneornil(L, idx) ? otherwise : face_checknum(L, idx);
}

const char *face_optstr(lua_State *L, int idx, const char *otherwise) {
  return lua_isnoneornil(L, idx) ? otherwise : face_checkstr(L, idx);
}

// ---- what types have not ----

// Events, and what is written for them.
static const char *const signs[][2] = {
  {"__add", "+"}, {"__sub", "-"}, {"__mul", "*"}, {"__div", "/"},
  {"__idiv", "//"}, {"__mod", "%"}, {"__pow", "^"}, {"__band", "&"},
  {"__bor", "|"}, {"__bxor", "~"}, {"__shl", "<<"}, {"__shr", ">>"},
  {"__concat", ".."}, {"__lt", "<"}, {"__le", "<="},
  {"__unm", "-"}, {"__bnot", "~"}, {"__len", "#"}, {"__call", NULL}};
enum { BINARY = 15 };  // of them

// Upvalue 1: the sign's place. What the other operand knows to do is done.
static int no_operator(lua_State *L) {
  int k = (int)lua_tointeger(L, lua_upvalueindex(1));
  luaL_checkstack(L, 8, "operands");
  if (k < BINARY && lua_type(L, 2) != LUA_TSTRING &&
      luaL_getmetafield(L, 2, signs[k][0]) != LUA_TNIL) {
    if (lua_tocfunction(L, -1) != no_operator) {
      lua_insert(L, 1);
      lua_call(L, 2, 1);
      return 1;
    }
    lua_pop(L, 1);
  }
  if (!signs[k][1])
    face_error(L, ERR_ARG, "%s was called like a function", face_show(L, 1));
  if (k >= BINARY)
    face_error(L, ERR_ARG, "'%s' of %s has no meaning%s", signs[k][1],
               face_show(L, 1), *signs[k][1] != '#' ? ""
               : "\n  write cute.size(x) for its elements");
  const char *a = face_show(L, 1), *b = face_show(L, 2);
  face_error(L, ERR_ARG, "%s %s %s has no meaning", a, signs[k][1], b);
}

// Offers the methods of the table at idx: functions whose names users write.
static void offer_methods(lua_State *L, int idx, Nearest *to) {
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1)) continue;
    const char *k = lua_tostring(L, -2);
    if (strncmp(k, "__", 2) != 0) nearest_offer(to, k, strlen(k));
  }
}

// What is called `what` has no field k (2 on the stack).
static _Noreturn void no_field(lua_State *L, const char *what, int methods,
                               const char *fields) {
  luaL_checkstack(L, 8, "error message");
  if (lua_type(L, 2) != LUA_TSTRING)
    face_error(L, ERR_NAME, "%s has no field %s", what, face_show(L, 2));
  const char *k = lua_tostring(L, 2);
  Nearest n = nearest_of(k);
  nearest_offer_words(&n, fields);
  offer_methods(L, methods, &n);
  face_error(L, ERR_NAME, "%s has no field '%s'%s", what, k,
             face_meant(L, &n));
}

void face_nofield(lua_State *L, int methods, const char *fields) {
  const char *what = face_typename(L, 1);
  what = lua_pushfstring(L, "%s %s", strchr("aeio", *what) ? "an" : "a", what);
  if (!methods && lua_getmetatable(L, 1)) methods = lua_gettop(L);
  no_field(L, what, methods, fields);
}

// __index of a metatable that is the index of its objects.
static int no_method(lua_State *L) {
  lua_pushliteral(L, "__name");
  lua_rawget(L, 1);
  const char *name = lua_tostring(L, -1), *dot = name ? strchr(name, '.') : "";
  if (lua_type(L, 2) == LUA_TSTRING &&
      strncmp(lua_tostring(L, 2), "__", 2) == 0)
    return 0;
  if (!name) return 0;
  no_field(L, lua_pushfstring(L, "a %s", dot ? dot + 1 : name), 1, "");
}

void face_complete(lua_State *L) {
  lua_pushliteral(L, "__name");
  lua_rawget(L, -2);
  const char *name = lua_tostring(L, -1);  // Lua knows a tuple's length
  bool no_len = strcmp(name, "cute.tuple") == 0 || strcmp(name, MT_VALUE) == 0;
  lua_pop(L, 1);
  for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
    if (no_len && strcmp(signs[k][0], "__len") == 0) continue;
    lua_pushstring(L, signs[k][0]);
    if (lua_rawget(L, -2) == LUA_TNIL) {
      lua_pushstring(L, signs[k][0]);
      lua_pushinteger(L, (lua_Integer)k);
      lua_pushcclosure(L, no_operator, 1);
      lua_rawset(L, -4);
    }
    lua_pop(L, 1);
  }
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, no_method);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

// ---- opening ----

void arglib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"checker", l_checker}, {"name", l_name}, {"signature", l_signature},
    {"show", l_show}, {"bad_argument", l_bad_argument},
    {"nearest", l_nearest}, {"check_options", l_check_options},
    {"usage", l_usage}, {NULL, NULL}};
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, NAMES);
  face_setfuncs(L, funcs);
}
