// Checks the arguments of public functions: their number, and their types as in
// the signatures (public.c).
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/public.h"

// ---- messages ----

// Returns advice for a common mistake of users of other languages: a value of
// type `got` where `want` is expected.
static const char *advice_on(const char *want, const char *got) {
  const char *end = strrchr(got, '.');
  bool result = strcmp(got, "nil") == 0 || strcmp(got, "no value") == 0 ||
                strncmp(got, "traced ", 7) == 0;
  if (strcmp(got, "a function") == 0 && strncmp(want, "at most", 7) != 0)
    return "\n  write f() for the result of function f";
  if (result && strstr(want, "function"))
    return "\n  write f for the function itself: f() is what a call of it "
           "returns";
  if (strncmp(want, "integer", 7) == 0 && end &&
      strspn(end + 1, "0123456789") == strlen(end + 1))
    return "\n  write a // b for an integer: a / b is a float";
  if (strncmp(want, "element type", 12) == 0 && *got >= '0' && *got <= '9')
    return "\n  write the shape as one table: {m, n}";
  if (strncmp(want, "tensor", 6) == 0 && strncmp(got, "traced ", 7) == 0)
    return "\n  write t(i, _) for a part of tensor t, t.iterator + i for an "
           "address: t[i] is the value of an element";
  if (strncmp(want, "number", 6) == 0 && strncmp(got, "tensor ", 7) == 0)
    return "\n  write x:load() for the vector of a tensor in a kernel, "
           "cute.ops.elementwise(f, x) on the host";
  if (strcmp(want, "kernel") == 0)
    return "\n  write (k, x, y, {grid = g, block = b}): the kernel, its "
           "arguments, then the options";
  if (strncmp(want, "vector", 6) == 0 && *got != '"')
    return "\n  write t:fill(x) to set all elements to one value";
  return "";
}

// Reports whether method p was called with a dot, as in x.lt(4), instead of a
// colon, so that the first argument became the receiver.
static bool called_with_dot(const Public *p, int arg, const char *got) {
  const char *what = p->ar.namewhat;
  if (!p->method || !p->own || !what || strcmp(what, "field") != 0)
    return false;
  return arg == 1 || strcmp(got, "no value") == 0;
}

// Raises the error that method p was called with a dot. `arg` is the number of
// the bad argument, and `got` is its text. `use` shows the correct call, such
// as "value:lt(other)".
static _Noreturn void dot_error(lua_State *L, const Public *p, int arg,
                                const char *got, const char *use) {
  bool any = arg > 1 && (lua_getlocal(L, &p->ar, *p->ar.what == 'C' ? 1 : -1) ||
                         lua_getlocal(L, &p->ar, 1));
  face_error(L, ERR_ARG, "'%s' is a method, but was called with a dot, on %s"
             "\n  write %s with a colon", p->name, any ? face_show(L, -1) : got,
             use);
}

// Raises the error that argument number `arg` of p is not of type `want`. In a
// method, the receiver is argument 1. If the number is unknown, as for a field
// of options, `arg` is 0 or less.
static _Noreturn void complain(lua_State *L, const Public *p, int arg,
                               const char *want, const char *got) {
  char use[512], at[16] = "";
  public_usage(p, use, sizeof use);
  if (called_with_dot(p, arg, got)) dot_error(L, p, arg, got, use);
  if (p->method && arg == 1)
    face_error(L, ERR_ARG, "'%s' was called on %s (%s expected)\n  use %s",
               p->name, got, want, use);
  if (arg > 0) snprintf(at, sizeof at, " #%d", arg - p->method);
  face_error(L, ERR_ARG, "bad argument%s to '%s' (%s expected, got %s)\n"
             "  use %s%s", at, p->name, want, got, use, advice_on(want, got));
}

// Raises the error for operand `arg` of the metamethod `name`. (The metamethod
// "newindex" implements t[c] = x.)
static _Noreturn void operand_error(lua_State *L, int arg, const char *name,
                                    const char *want) {
  bool set = strcmp(name, "newindex") == 0;
  const char *got = face_show(L, arg);
  if (set && arg == 3)
    face_error(L, ERR_ARG, "an element was set to a bad value (%s expected, "
               "got %s)", want, got);
  if (set || strcmp(name, "index") == 0)
    face_error(L, ERR_ARG, "bad index (%s expected, got %s)%s", want, got,
               advice_on(want, got));
  face_error(L, ERR_ARG, "bad operand #%d of '%s' (%s expected, got %s)", arg,
             name, want, got);
}

// Raises the error for argument `arg` of the C function at stack level `level`.
// The message names the public function that the user called, and counts the
// argument as in that call. `got` describes the given value.
static _Noreturn void wrong_argument(lua_State *L, int level, int arg,
                                     const char *want, const char *got) {
  Public p;
  luaL_checkstack(L, 16, "error message");
  if (!public_find(L, &p))
    face_error(L, ERR_ARG, "bad argument #%d (%s expected, got %s)", arg, want,
               got);
  complain(L, &p, p.level == level ? arg : public_argument(L, &p, arg), want,
           got);
}

static _Noreturn void bad_argument(lua_State *L, int level, int arg,
                                   const char *want) {
  luaL_checkstack(L, 16, "error message");
  wrong_argument(L, level, arg, want, face_show(L, arg));
}

void face_argerror(lua_State *L, int arg, const char *want) {
  lua_Debug ar = {0};
  Public p;
  if (lua_getstack(L, 0, &ar)) lua_getinfo(L, "n", &ar);
  if (ar.namewhat && strcmp(ar.namewhat, "metamethod") == 0 &&
      !public_find(L, &p))
    operand_error(L, arg, ar.name, want);
  bad_argument(L, 0, arg, want);
}

// Raises an error if the function at stack level `level` received more than
// `most` arguments, not counting trailing nils.
static void too_many(lua_State *L, int level, int most, int method) {
  char want[48];
  int n = lua_gettop(L);
  while (n > most && lua_isnil(L, n)) n--;
  lua_settop(L, n);
  if (n <= most) return;
  if (most > method)
    snprintf(want, sizeof want, "at most %d argument%s", most - method,
             most - method == 1 ? "" : "s");
  else
    snprintf(want, sizeof want, "no arguments");
  luaL_checkstack(L, 16, "error message");
  const char *first = face_show(L, most + 1);
  wrong_argument(L, level, most + 1, want,
                 lua_pushfstring(L, "%d; #%d is %s", n - method,
                                 most + 1 - method, first));
}

void arglib_check_count(lua_State *L, const Entry *e) {
  if (lua_gettop(L) > e->most) too_many(L, 0, e->most, e->method);
}

// ---- unknown names ----

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

// check_options(table, names): raises an error if the table has a key that is
// not among `names`. Lua code uses it for tables that no signature describes.
static int l_check_options(lua_State *L) {
  face_check_options(L, 1, face_checkstr(L, 2));
  return 0;
}

// nearest(name, list) -> the name in the list that is most similar to `name`,
// or nil
static int l_nearest(lua_State *L) {
  Nearest n = nearest_of(face_checkstr(L, 1));
  face_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
    size_t len;
    const char *s = lua_tolstring(L, -1, &len);  // the list keeps s alive
    nearest_offer(&n, s, len);
    lua_pop(L, 1);
  }
  if (n.best) lua_pushlstring(L, n.best, n.best_len);
  else lua_pushnil(L);
  return 1;
}

// ---- C functions ----

// Pushes the prefix for the names of functions in the table on top, such as
// "cute.", or "tensor:" for the metatable of tensors.
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

Setting arglib_setting(lua_State *L, size_t n) {
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

void arglib_set(lua_State *L, Setting *s, Entry e) {
  size_t n = strcspn(e.sig, "(");
  lua_pushlstring(L, e.sig, n);
  if (!e.sig[n] && e.f) {
    lua_pushlightuserdata(L, s->cx);
    lua_pushcclosure(L, e.f, 1);
  } else {
    e.prefix = s->prefix;
    e.method = strchr(e.prefix, ':') != NULL;
    e.most = e.sig[n] ? public_count(e.sig) + e.method : INT_MAX;
    *s->next = e;
    public_push(L, s->cx, s->next++);
  }
  lua_rawset(L, -3);
}

static int enter_function(lua_State *L, const Entry *e) {
  arglib_check_count(L, e);
  return e->f(L);
}

void face_setfuncs(lua_State *L, const luaL_Reg *regs) {
  size_t n = 0;
  while (regs[n].name) n++;
  Setting s = arglib_setting(L, n);
  for (; regs->name; regs++)
    arglib_set(L, &s, (Entry){.sig = regs->name, .enter = enter_function,
                              .f = regs->func});
}

// ---- types of Lua functions ----

// Reports whether the value at idx has the type that `word` names in a
// signature.
static bool of_type(lua_State *L, int idx, const char *word, size_t n) {
  const char *t = face_typename(L, idx);
  // A table with a __name in its metatable is an object of lua/cute.
  if (lua_type(L, idx) == LUA_TTABLE) {
    int what = luaL_getmetafield(L, idx, "__name");
    if (what == LUA_TSTRING && !strstr(lua_tostring(L, -1), "cute."))
      t = lua_tostring(L, -1);  // the metatable keeps the string t alive
    if (what != LUA_TNIL) lua_pop(L, 1);
  }
  if (strlen(t) == n && memcmp(t, word, n) == 0) return true;
  if (n == 7 && memcmp(word, "integer", n) == 0) return lua_isinteger(L, idx);
  return n == 3 && memcmp(word, "any", n) == 0;
}

// Finds the next word of a type such as "integer|value", and sets *at to the
// position after it. Returns false after the last word.
static bool next_word(const char **at, const char *end, const char **word,
                      size_t *n) {
  if (*at >= end) return false;
  const char *bar = memchr(*at, '|', (size_t)(end - *at));
  *word = *at;
  *n = (size_t)((bar ? bar : end) - *at);
  *at += *n + 1;
  return true;
}

// Reports whether the type of a parameter is "dtype|string": an element type or
// its name.
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

// Writes for error messages what a parameter accepts: its type in words, such
// as "integer or traced value", or its name if it has no type.
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

// The part of a signature that check_call uses: the parameters, without the
// receiver.
typedef struct Checks {
  // `most` is the maximum number of arguments, including a method's receiver.
  // `method` is 1 for a method and 0 for a function.
  int most, method;
  int n;
  // The n parameters. If the last one is variadic, as in "modes...", it stands
  // for all further arguments.
  Param param[];
} Checks;

static void check_argument(lua_State *L, int arg, const Param *p) {
  char want[160];
  if (fits(L, arg, p)) return;
  wanted(p, want, sizeof want);
  bad_argument(L, 1, arg, want);
}

// check(...), the function that checker(signature [, class]) returns. A public
// Lua function calls it with its own arguments. check raises an error if they
// do not match the signature, or if the metatable of a method's receiver is not
// `class`. Upvalues: signature, Checks, class.
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
  while (public_param(&s, &p)) n++;
  lua_pushvalue(L, 1);
  Checks *c = lua_newuserdatauv(L, sizeof *c + (size_t)n * sizeof p, 0);
  c->method = public_has_colon(sig);
  c->most = public_count(sig) + c->method;
  c->n = n;
  s = strchr(sig, '(');
  for (int i = 0; i < n; i++) public_param(&s, &c->param[i]);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, check_call, 3);
  return 1;
}

// bad_argument(n, want, value): raises the error that argument n of the public
// function being called is not of type `want`. n does not count the receiver.
// Lua code uses it for checks that go beyond types.
static int l_bad_argument(lua_State *L) {
  Public p;
  int n = (int)face_checkint(L, 1);
  const char *want = face_checkstr(L, 2);
  if (!public_find(L, &p))
    face_error(L, ERR_ARG, "%s expected, got %s", want, face_show(L, 3));
  complain(L, &p, n + p.method, want, face_show(L, 3));
}

enum { GIVEN = 6 };  // maximum number of arguments that a message quotes

// usage() -> three texts about the public function being called, or nothing if
// there is none: its name; the arguments, as in "given (1, \"x\")"; its use, as
// in "use cute.size(x, modes...)".
static int l_usage(lua_State *L) {
  Public p;
  char use[512];
  luaL_checkstack(L, LUA_MINSTACK, "error message");
  if (!public_find(L, &p)) return 0;
  int step = *p.ar.what == 'C' ? 1 : -1, first = 1 + p.method;
  public_usage(&p, use, sizeof use);
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

// name(function, signature) -> function: registers the signature of a public
// function.
static int l_name(lua_State *L) {
  const char *sig = luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_getfield(L, LUA_REGISTRYINDEX, PUBLIC_NAMES);
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
  if (public_pop(L, &prefix, &sig)) lua_pushfstring(L, "%s%s", prefix, sig);
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

// Returns the userdata at idx. If it has another metatable than tname, raises
// an error. The error names the expected type: tname without "cute.".
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

// ---- fields of tables, userdata ----

int64_t face_get_int(lua_State *L, int t, const char *k, int64_t otherwise) {
  lua_getfield(L, t, k);
  int64_t v = face_optint(L, -1, otherwise);
  lua_pop(L, 1);
  return v;
}

double face_get_num(lua_State *L, int t, const char *k, double otherwise) {
  lua_getfield(L, t, k);
  double v = face_optnum(L, -1, otherwise);
  lua_pop(L, 1);
  return v;
}

bool face_get_bool(lua_State *L, int t, const char *k) {
  int type = lua_getfield(L, t, k);
  bool v = lua_toboolean(L, -1);
  if (type != LUA_TNIL && type != LUA_TBOOLEAN)
    face_error(L, ERR_ARG, "%s = %s: true or false expected", k,
               face_show(L, -1));
  lua_pop(L, 1);
  return v;
}

void *face_check(lua_State *L, int idx, const char *tname, const char *want) {
  void *p = luaL_testudata(L, idx, tname);
  if (!p) face_argerror(L, idx, want);
  return p;
}

DType face_check_dtype(lua_State *L, int idx) {
  DType t = face_test_dtype(L, idx);
  if (t == DT_NONE && lua_type(L, idx) == LUA_TSTRING)
    t = dtype_find(lua_tostring(L, idx));
  if (t == DT_NONE) face_argerror(L, idx, "element type such as cute.bf16");
  return t;
}

// ---- missing operators and fields ----

// The names of metamethods, and the operators that they implement.
static const char *const signs[][2] = {
  {"__add", "+"}, {"__sub", "-"}, {"__mul", "*"}, {"__div", "/"},
  {"__idiv", "//"}, {"__mod", "%"}, {"__pow", "^"}, {"__band", "&"},
  {"__bor", "|"}, {"__bxor", "~"}, {"__shl", "<<"}, {"__shr", ">>"},
  {"__concat", ".."}, {"__lt", "<"}, {"__le", "<="},
  {"__unm", "-"}, {"__bnot", "~"}, {"__len", "#"}, {"__call", NULL}};
enum { BINARY = 15 };  // binary operators

// Handles an operator that the type of the first operand lacks. If the second
// operand has a metamethod for it, calls this metamethod. Otherwise raises an
// error. Upvalue 1: index in signs.
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
    face_error(L, ERR_ARG, "%s cannot be called: it is not a function",
               face_show(L, 1));
  if (k >= BINARY)
    face_error(L, ERR_ARG, "operator '%s' does not apply to %s%s", signs[k][1],
               face_show(L, 1), *signs[k][1] != '#' ? ""
               : "\n  write cute.size(x) for the number of its elements");
  const char *a = face_show(L, 1), *b = face_show(L, 2);
  face_error(L, ERR_ARG, "operator '%s' does not apply to %s and %s",
             signs[k][1], a, b);
}

// Offers the methods in the table at idx as corrections of a misspelt name.
// Methods are functions whose names do not begin with "__".
static void offer_methods(lua_State *L, int idx, Nearest *to) {
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1)) continue;
    const char *k = lua_tostring(L, -2);
    if (strncmp(k, "__", 2) != 0) nearest_offer(to, k, strlen(k));
  }
}

// Raises the error that `what` has no field with the key at index 2. Suggests a
// similar name among the methods and `fields`.
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

// Runs if the metatable of a type lacks a method: raises an error that names
// the method.
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
  // for tuples and traced values, # remains Lua's own length operator
  const char *name = lua_tostring(L, -1);
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

void face_newtype(lua_State *L, const char *tname, const luaL_Reg *regs) {
  luaL_newmetatable(L, tname);
  face_setfuncs(L, regs);
  lua_getfield(L, -1, "__index");
  bool own = !lua_isnil(L, -1);
  lua_pop(L, 1);
  if (!own) {
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
  }
  face_complete(L);
}

// ---- module ----

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
  lua_setfield(L, LUA_REGISTRYINDEX, PUBLIC_NAMES);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
