// The Lua face's common part: context, errors with the user's line, types.
#include "bind/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- context ----

Ctx *face_ctx(lua_State *L) {
  Ctx *cx = lua_touserdata(L, lua_upvalueindex(1));
  cx->ud = L;
  return cx;
}

Ctx *face_state(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  Ctx *cx = lua_touserdata(L, -1);
  lua_pop(L, 1);
  cx->ud = L;
  return cx;
}

// Operations of one source line that a trace may hold: far above any unrolled
// loop that compiles, so what reaches it is a `while` that cannot end.
#define LINE_BUDGET 131072

// Tells the function being traced which line of the script is at work.
static void at_line(lua_State *L, Ctx *cx) {
  char src[512];
  int line;
  lua_Debug ar;
  if (!face_where(L, src, &line, &ar)) return;
  Fn *fn = ir_fn(cx);
  FnBox *box = (FnBox *)fn;
  if (box->known) box->at = vmlib_place(&ar);
  ir_at(cx, fn, src, (uint32_t)line);
  vec_reserve(cx, fn->hits, fn->at + 1);
  while (fn->hits.n <= fn->at) fn->hits.p[fn->hits.n++] = 0;
  if (++fn->hits.p[fn->at] > LINE_BUDGET)
    face_error(L, ERR_RUNAWAY, "this line traced over %d operations: Lua loops "
               "are unrolled, and a `while` on a traced boolean never ends\n"
               "  write cute.range(n) or cute.loop(cond, body) for a loop of "
               "the kernel", LINE_BUDGET);
}

Ctx *face_enter(lua_State *L) {
  Ctx *cx = face_ctx(L);
  arena_reset(&cx->scratch);
  if (ir_fn(cx)) at_line(L, cx);
  return cx;
}

static void fail_hook(Ctx *cx, ErrKind kind, const char *msg) {
  ir_back(cx);
  face_error(cx->ud, kind, "%s", msg);
}

static int ctx_gc(lua_State *L) {
  Ctx *cx = lua_touserdata(L, 1);
  arena_free(&cx->scratch);
  return 0;
}

static Ctx *ctx_new(lua_State *L) {
  typedef struct Own { Ctx cx; struct Work work; } Own;
  Own *own = lua_newuserdatauv(L, sizeof *own, 0);
  memset(own, 0, sizeof *own);
  Ctx *cx = &own->cx;
  cx->work = &own->work;
  cx->fail = fail_hook;
  cx->ud = L;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, ctx_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  return cx;
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

// ---- errors ----

// Is src a file of the workshop, lua/cutelua/ROOM/...? A clone named cutelua in
// a folder named lua has scripts of users below that path, too.
static bool workshop_source(const char *src) {
  const char *at = strstr(src, "lua/cutelua/");
  if (!at && !(at = strstr(src, "lua/5.4/cutelua/"))) return false;
  at = strstr(at, "cutelua/") + 8;
  if (strcmp(at, "init.lua") == 0) return true;
  return strchr(at, '/') && strncmp(at, "scripts/", 8) != 0 &&
         strncmp(at, "kernels/", 8) != 0 && strncmp(at, "spec/", 5) != 0;
}

// Sources of our own Lua files: embedded ones are named "=[cute.xxx]" and
// "=[cutelua.xxx]", files live in lua/cute/ and lua/cutelua/, or where a rock
// puts them, lua/5.4/cute/.
bool face_own_source(const char *src) {
  if (strncmp(src, "=[cute", 6) == 0) return true;
  return src[0] == '@' &&
         (strstr(src, "lua/cute/") || strstr(src, "lua/5.4/cute/") ||
          workshop_source(src));
}

// Of the name of a chunk, what those beside it begin with, too: "@kernels/" of
// a file, "=[kernels." of an embedded one; 0: it has no such place.
static size_t folder_length(const char *src) {
  if (src[0] != '@' && strncmp(src, "=[", 2) != 0) return 0;
  const char *end = strrchr(src, src[0] == '@' ? '/' : '.');
  return end ? (size_t)(end - src) + 1 : 0;
}

// Is a chunk one of the kernels that come with the program or a rock, or does
// it lie beside `caller` (NULL: nothing does), or is its folder's name?
static bool is_library(const char *src, const char *caller) {
  if (strncmp(src, "=[kernels.", 10) == 0) return true;
  if (src[0] == '@' && strstr(src, "lua/5.4/kernels/")) return true;
  size_t n = caller ? folder_length(caller) : 0;
  if (n == 0 || strncmp(src, caller, n - 1) != 0) return false;
  return src[n - 1] == caller[n - 1] || strcmp(src + n - 1, ".lua") == 0;
}

// The innermost Lua function that is not ours; false: none.
static bool user_frame(lua_State *L, lua_Debug *ar) {
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "S", ar);
    if (face_own_source(ar->source)) continue;
    lua_getinfo(L, "l", ar);
    if (ar->currentline > 0) return true;
  }
  return false;
}

// The function that an error is told of: the innermost that is of no library;
// of `caller`'s own where there is no other.
static bool blamed_frame(lua_State *L, lua_Debug *ar, const char *caller) {
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline > 0 && !face_own_source(ar->source) &&
        !is_library(ar->source, caller))
      return true;
  }
  return user_frame(L, ar);
}

bool face_where(lua_State *L, char src[512], int *line, lua_Debug *ar) {
  if (!user_frame(L, ar)) return false;
  size_t n = ar->srclen < 511 ? ar->srclen : 511;
  memcpy(src, ar->source, n);
  src[n] = '\0';
  *line = ar->currentline;
  return true;
}

bool face_line(lua_State *L, char out[64]) {
  lua_Debug ar;
  if (!user_frame(L, &ar) || *ar.source != '@') return false;
  const char *file = strrchr(ar.short_src, '/');
  snprintf(out, 64, "%.50s:%d", file ? file + 1 : ar.short_src,
           ar.currentline);
  return true;
}

static void push_where(lua_State *L, const char *caller) {
  lua_Debug ar;
  if (blamed_frame(L, &ar, caller))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    lua_pushliteral(L, "");
}

// Messages quote what users and files say.
static void make_visible(lua_State *L) {
  size_t n;
  const char *s = lua_tolstring(L, -1, &n);
  face_push_message(L, s, n);
  lua_remove(L, -2);
}

// Pushes msg with " [kind]" behind its first line.
static void push_kinded(lua_State *L, ErrKind kind, const char *msg) {
  const char *nl = strchr(msg, '\n');
  size_t first = nl ? (size_t)(nl - msg) : strlen(msg);
  lua_pushlstring(L, msg, first);
  lua_pushfstring(L, " [%s]%s", err_name(kind), msg + first);
  lua_concat(L, 2);
}

// Raises msg behind the position on top.
static _Noreturn void raise_kinded(lua_State *L, ErrKind kind,
                                   const char *msg) {
  push_kinded(L, kind, msg);
  lua_concat(L, 2);
  make_visible(L);
  lua_error(L);
  abort();
}

// Is an error of this kind about the call of one function?
static bool of_a_call(ErrKind kind) {
  switch ((int)kind) {
  case ERR_ARG: case ERR_PARSE: case ERR_INADMISSIBLE: case ERR_OVERFLOW:
  case ERR_LIMIT: case ERR_NAME: case ERR_TYPE: case ERR_SHAPE:
  case ERR_ALIGN: case ERR_REGS: case ERR_ARCH: case ERR_STATIC:
  case ERR_LAUNCH: case ERR_CLOSED: case ERR_NOTRACE: case ERR_INTRACE:
    return true;
  default: return false;
  }
}

// Behind "composition: " at the front of msg: the operation that failed may
// be a step of the one that was called.
static const char *after_operation(lua_State *L, const char *msg) {
  size_t n = strspn(msg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "_0123456789");
  if (msg[n] != ':' || msg[n + 1] != ' ') return msg;
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.core");
  lua_pushlstring(L, msg, n);
  bool known = lua_rawget(L, -2) == LUA_TFUNCTION;
  lua_pop(L, 2);
  return known ? msg + n + 2 : msg;
}

// Pushes msg, which begins with the public function that users called where
// it does not name it already.
static void push_named(lua_State *L, ErrKind kind, const char *msg) {
  char name[96];
  if (of_a_call(kind) && face_public(L, name) && face_colon(L)) {
    lua_pushfstring(L, "%s was called with ':', which hands over the table "
                    "that it is in\n  write %s(...)", name, name);
    return;
  }
  if (!of_a_call(kind) || !face_public(L, name) || strstr(msg, name) ||
      strncmp(msg, "kernel ", 7) == 0) {
    lua_pushstring(L, msg);
    return;
  }
  const char *base = name;
  for (const char *at = name; *at; at++)
    if (*at == '.' || *at == ':') base = at + 1;
  size_t n = strlen(base);
  const char *rest = strncmp(msg, base, n) == 0 ? msg + n : "";
  if (strchr(":,(", *rest) ? *rest != '\0' : strncmp(rest, " of ", 4) == 0 ||
      strncmp(rest, " takes ", 7) == 0)
    lua_pushfstring(L, "%s%s", name, msg + n);
  else
    lua_pushfstring(L, "%s: %s", name, after_operation(L, msg));
}

void face_error(lua_State *L, ErrKind kind, const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  luaL_checkstack(L, 16, "error message");
  push_named(L, kind, msg);
  push_where(L, NULL);
  raise_kinded(L, kind, lua_tostring(L, -2));
}

void face_error_at(lua_State *L, const char *chunk, int line, ErrKind kind,
                   const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  bool named = chunk[0] == '@' || chunk[0] == '=';
  luaL_checkstack(L, 8, "error message");
  lua_pushfstring(L, "%s:%d: ", named ? chunk + 1 : "(chunk)", line);
  raise_kinded(L, kind, msg);
}

int face_fail2(lua_State *L, ErrKind kind, const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  lua_pushnil(L);
  push_kinded(L, kind, msg);
  make_visible(L);
  return 2;
}

const char *face_typename(lua_State *L, int idx) {
  if (lua_type(L, idx) == LUA_TUSERDATA &&
      luaL_getmetafield(L, idx, "__name") == LUA_TSTRING) {
    const char *s = lua_tostring(L, -1);  // kept alive by the metatable
    lua_pop(L, 1);
    return strncmp(s, "cute.", 5) == 0 ? s + 5 : s;
  }
  return luaL_typename(L, idx);
}

void face_push_buf(lua_State *L, Buf *b) {
  lua_pushlstring(L, b->p ? b->p : "", b->n);
  buf_free(b);
}

// ---- fields of tables ----

void face_set_int(lua_State *L, const char *k, lua_Integer v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, k);
}

void face_set_num(lua_State *L, const char *k, lua_Number v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, k);
}

void face_set_bool(lua_State *L, const char *k, bool v) {
  lua_pushboolean(L, v);
  lua_setfield(L, -2, k);
}

void face_set_str(lua_State *L, const char *k, const char *v) {
  lua_pushstring(L, v);
  lua_setfield(L, -2, k);
}

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

// ---- userdata ----

void *face_test(lua_State *L, int idx, const char *tname) {
  return luaL_testudata(L, idx, tname);
}

void *face_check(lua_State *L, int idx, const char *tname, const char *want) {
  void *p = luaL_testudata(L, idx, tname);
  if (!p) face_argerror(L, idx, want);
  return p;
}

// ---- element types ----

static int dtype_tostring(lua_State *L) {
  lua_pushstring(L, dtype_name(*(DType *)luaL_checkudata(L, 1, MT_DTYPE)));
  return 1;
}

static int dtype_index(lua_State *L) {
  DType t = *(DType *)luaL_checkudata(L, 1, MT_DTYPE);
  const char *k = face_checkstr(L, 2);
  if (strcmp(k, "bits") == 0 || strcmp(k, "width") == 0)
    lua_pushinteger(L, dtype_bits(t));
  else if (strcmp(k, "name") == 0)
    lua_pushstring(L, dtype_name(t));
  else if (strcmp(k, "is_float") == 0)
    lua_pushboolean(L, dtype_is_float(t));
  else if (strcmp(k, "is_integer") == 0)
    lua_pushboolean(L, dtype_is_int(t));
  else if (dtype_is_float(t) && strcmp(k, "inf") == 0 &&
           isinf(dtype_to_double(t, dtype_from_double(t, INFINITY))))
    lua_pushnumber(L, (lua_Number)INFINITY);
  else if (dtype_is_float(t) && strcmp(k, "nan") == 0 &&
           isnan(dtype_to_double(t, dtype_from_double(t, NAN))))
    lua_pushnumber(L, (lua_Number)NAN);
  else if (strcmp(k, "signed") == 0)
    lua_pushboolean(L, dtype_class(t) == 'I' || dtype_class(t) == 'F');
  else
    face_nofield(L, 0, "bits width name is_float is_integer signed");
  return 1;
}

void face_push_dtype(lua_State *L, DType t) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.dtypes");
  lua_rawgeti(L, -1, (lua_Integer)t);
  lua_remove(L, -2);
}

DType face_test_dtype(lua_State *L, int idx) {
  DType *t = luaL_testudata(L, idx, MT_DTYPE);
  return t ? *t : DT_NONE;
}

DType face_check_dtype(lua_State *L, int idx) {
  DType t = face_test_dtype(L, idx);
  if (t == DT_NONE && lua_type(L, idx) == LUA_TSTRING)
    t = dtype_find(lua_tostring(L, idx));
  if (t == DT_NONE) face_argerror(L, idx, "element type such as cute.bf16");
  return t;
}

// to_bits(dtype, number) -> raw bits of the number rounded to the type
static int l_to_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  bool whole = lua_isinteger(L, 2) && dtype_is_int(t) && dtype_bits(t) == 64;
  lua_pushinteger(L, whole ? lua_tointeger(L, 2) : (lua_Integer)
                  dtype_from_double(t, face_checknum(L, 2)));
  return 1;
}

// from_bits(dtype, integer) -> the value of raw bits
static int l_from_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  int64_t u = face_checkint(L, 2);
  double x = dtype_to_double(t, (uint64_t)u);
  if (!dtype_is_int(t) || dtype_bits(t) > 64) lua_pushnumber(L, x);
  else lua_pushinteger(L, dtype_bits(t) == 64 ? u : (lua_Integer)x);
  return 1;
}

// find_dtype(name or alias) -> the element type, or nil
static int l_find_dtype(lua_State *L) {
  DType t = dtype_find(face_checkstr(L, 1));
  if (t == DT_NONE) lua_pushnil(L);
  else face_push_dtype(L, t);
  return 1;
}

static void dtypes_open(lua_State *L) {
  static const luaL_Reg meta[] = {
    {"__tostring", dtype_tostring}, {"__index", dtype_index}, {NULL, NULL}};
  face_newtype(L, MT_DTYPE, meta);
  lua_pop(L, 1);
  lua_createtable(L, DT_COUNT, 0);
  for (int t = 1; t < DT_COUNT; t++) {
    DType *p = lua_newuserdatauv(L, sizeof *p, 0);
    *p = (DType)t;
    luaL_setmetatable(L, MT_DTYPE);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, dtype_name(*p));
    lua_rawseti(L, -2, t);
  }
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.dtypes");
}

// ---- opening ----

// error_kinds: {name = summary}, the table docs/errors.md is checked against.
static void kinds_open(lua_State *L) {
  lua_createtable(L, 0, ERR_COUNT);
  for (int k = 0; k < ERR_COUNT; k++)
    face_set_str(L, err_name((ErrKind)k), err_summary((ErrKind)k));
  lua_setfield(L, -2, "error_kinds");
}

// fail(kind, message): raises from Lua modules as the C faces do. Who calls it
// is a library: the error is at the line that called into its folder.
static int l_fail(lua_State *L) {
  const char *kind = face_checkstr(L, 1);
  const char *msg = face_checkstr(L, 2);
  lua_Debug ar;
  bool known = lua_getstack(L, 1, &ar) && lua_getinfo(L, "S", &ar);
  for (int k = 0; k < ERR_COUNT; k++)
    if (strcmp(err_name((ErrKind)k), kind) == 0) {
      push_named(L, (ErrKind)k, msg);
      push_where(L, known ? ar.source : NULL);
      raise_kinded(L, (ErrKind)k, lua_tostring(L, -2));
    }
  return luaL_error(L, "no error kind '%s'", kind);
}

// outside(): raises while a kernel is traced.
static int l_outside(lua_State *L) {
  face_outside(L);
  return 0;
}

static int l_typename(lua_State *L) {
  face_checkany(L, 1);
  lua_pushstring(L, face_typename(L, 1));
  return 1;
}

// debugs(word): is it one of CUTELUA_DEBUG?
static int l_debugs(lua_State *L) {
  lua_pushboolean(L, base_debug(face_checkstr(L, 1)));
  return 1;
}

// own_source(source of a chunk): is it of lua/cute?
static int l_own_source(lua_State *L) {
  lua_pushboolean(L, face_own_source(face_checkstr(L, 1)));
  return 1;
}

// script_line() -> source of the chunk, line: of the innermost Lua function
// that is not ours; nothing where there is none.
static int l_script_line(lua_State *L) {
  lua_Debug ar;
  if (!user_frame(L, &ar)) return 0;
  lua_pushstring(L, ar.source);
  lua_pushinteger(L, ar.currentline);
  return 2;
}

// own_chunk(f) -> the source of a function of lua/cute; nil: it is another Lua
// function, false: one of C.
static int l_own_chunk(lua_State *L) {
  lua_Debug ar;
  face_checktype(L, 1, LUA_TFUNCTION);
  bool c = lua_iscfunction(L, 1);
  lua_settop(L, 1);
  lua_getinfo(L, ">S", &ar);
  if (c) lua_pushboolean(L, false);
  else if (face_own_source(ar.source)) lua_pushstring(L, ar.source);
  else lua_pushnil(L);
  return 1;
}

static int l_clock(lua_State *L) {
  lua_pushnumber(L, (double)base_nanotime() * 1e-9);
  return 1;
}

void cutelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"fail", l_fail}, {"outside", l_outside}, {"typename", l_typename},
    {"own_source", l_own_source}, {"own_chunk", l_own_chunk},
    {"script_line", l_script_line}, {"debugs", l_debugs}, {"clock", l_clock},
    {"to_bits(dtype, x)", l_to_bits}, {"from_bits(dtype, bits)", l_from_bits},
    {"find_dtype", l_find_dtype}, {NULL, NULL}};
  face_setfuncs(L, funcs);
  lua_pushliteral(L, CUTE_VERSION);
  lua_setfield(L, -2, "version");
  dtypes_open(L);
  kinds_open(L);
}

// One core a Lua state, also where a module loader forgets it and asks again
// (busted does, for every file of specs): metatables are the state's, and
// their functions keep the context that they were opened with.
int luaopen_cute_core(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, "cute.core") == LUA_TTABLE) return 1;
  ctx_new(L);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.core");
  arglib_open(L);
  cutelib_open(L);
  filelib_open(L);
  layoutlib_open(L);
  static const char *const types[] = {MT_LAYOUT, MT_CONST};
  for (int i = 0; i < 2; i++) {
    luaL_getmetatable(L, types[i]);
    face_complete(L);
    lua_pop(L, 1);
  }
  tensorlib_open(L);
  vallib_open(L);
  oplib_open(L);
  mathlib_open(L);
  tracelib_open(L);
  intrinlib_open(L);
  printlib_open(L);
  kernlib_open(L);
  atomlib_open(L);
  buflib_open(L);
  gpulib_open(L);
  jitlib_open(L);
  launchlib_open(L);
  callslib_open(L);
  symlib_open(L);
  tmalib_open(L);
  requestlib_open(L);
  editlib_open(L);
  simlib_open(L);
  debuglib_open(L);
  anylib_open(L);
  return 1;
}
