// Opens Lua's libraries, the bindings and the embedded Lua files in a state:
// all of them, or for untrusted scripts only those that have no effect outside
// of the state.
#include <string.h>

#include <lualib.h>

#include "bind/limit.h"
#include "library/pattern.h"
#include "library/state.h"
#include "program/program.h"

// ---- C functions for lua/cute/lang/untrusted.lua ----

static cutelua_state *state_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

// emit(stream, text): passes text to the application, or to the standard
// stream.
static int l_emit(lua_State *L) {
  const cutelua_state *s = state_of(L);
  size_t n;
  int stream = (int)luaL_checkinteger(L, 1);
  const char *text = luaL_checklstring(L, 2, &n);
  limit_spend(L, 16 + n / 16);
  if (s->print) s->print(s->print_ud, stream, text, n);
  else fwrite(text, 1, n, stream == 2 ? stderr : stdout);
  return 0;
}

// spend(n): counts n instructions against the budget.
static int l_spend(lua_State *L) {
  lua_Number n = luaL_checknumber(L, 1);
  limit_spend(L, n > 1e18 ? (uint64_t)1e18 : n > 0 ? (uint64_t)n : 0);
  return 0;
}

// Names from the table in lua/cutelua/init.lua that untrusted states also have,
// because kernels and error messages need them. A name stands for the module
// `whole` or, if `whole` is NULL, for a field of `module`.
static const struct { const char *prefix, *name, *module, *whole; } names[] = {
  {"cute.", "testing", "cutelua.bench.testing", "cute.testing"},
  {"workshop.", "explained", "cutelua.text.choice", NULL},
  {"workshop.", "faults", "cutelua.text.faults", NULL},
  {"workshop.", "notes", "cutelua.text.faults", NULL}};
enum { NAMES = sizeof names / sizeof *names };

// Modules that the modules in `names` require.
static const char *const required[] = {
  "cutelua.bench.pattern", "cutelua.text.notes", "cutelua.text.outside"};
enum { REQUIRED = sizeof required / sizeof *required };

// Reports whether an untrusted state may load this module of lua/cutelua by
// require.
static bool of_workshop(const char *module) {
  for (int k = 0; k < NAMES; k++)
    if (strcmp(names[k].module, module) == 0) return true;
  for (int k = 0; k < REQUIRED; k++)
    if (strcmp(required[k], module) == 0) return true;
  return false;
}

// Sets package.loaded.cutelua to a table of the names in `names`.
static void add_workshop(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_newtable(L);
  for (int k = 0; k < NAMES; k++) {
    luaL_getsubtable(L, -1, names[k].prefix);
    lua_newtable(L);
    face_set_str(L, "module", names[k].module);
    if (names[k].whole) face_set_str(L, "whole", names[k].whole);
    lua_setfield(L, -2, names[k].name);
    lua_pop(L, 1);
  }
  lua_setfield(L, -2, "cutelua");
  lua_pop(L, 1);
}

// require(module) for the modules of cutelua. It finds only embedded modules.
// From lua/cutelua, it finds only the modules in `names` and `required`. This
// is a C function, because the tracer would record the table accesses of a Lua
// function.
static int l_require(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_settop(L, 1);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, 2, name) != LUA_TNIL) return 1;
  const Embedded *e = embedded_module(name);
  bool workshop = strncmp(name, "cutelua", 7) == 0;
  if ((workshop && !of_workshop(name)) || !e) {
    lua_pushfstring(L, "module '%s' not found", name);
    return lua_error(L);
  }
  embedded_load(L, e);
  lua_pushvalue(L, 1);
  lua_pushstring(L, e->chunk);
  lua_call(L, 2, 1);
  if (!lua_isnil(L, -1)) lua_setfield(L, 2, name);
  if (lua_getfield(L, 2, name) != LUA_TNIL) return 1;
  lua_pushboolean(L, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, 2, name);
  return 1;
}

// ---- functions of cute.core that an untrusted state lacks ----

static int refused_with_reason(lua_State *L) {
  lua_pushnil(L);
  lua_pushliteral(L, "files are not available to an untrusted script");
  return 2;
}

static int refused_gpu(lua_State *L) {
  lua_pushnil(L);
  lua_pushliteral(L, "an untrusted script runs on the simulator only [no-gpu]");
  return 2;
}

static int refused_ptx(lua_State *L) {
  return luaL_error(L, "PTX is not available to an untrusted script");
}

static int refused_ptr(lua_State *L) {
  return luaL_error(L, "pointers are not available to an untrusted script");
}

static int refused_false(lua_State *L) {
  lua_pushboolean(L, 0);
  return 1;
}

static int refused_nothing(lua_State *L) {
  (void)L;
  return 0;
}

// Replaces those functions of cute.core that access the system. cute.core is on
// top of the stack.
static void restrict_core(lua_State *L) {
  static const luaL_Reg files[] = {
    {"open_input", refused_with_reason}, {"open_aside", refused_with_reason},
    {"put_in_place", refused_with_reason}, {"file_kind", refused_with_reason},
    {"folder_names", refused_with_reason}, {"write_pipe", refused_with_reason},
    {"map_file", refused_nothing}, {"terminal_columns", refused_nothing},
    {"isatty", refused_false}, {"debugs", refused_false},
    {"jit_compile", refused_gpu}, {"nvrtc_version", refused_gpu},
    {"nvrtc_list", refused_gpu}, {"dry_gpu", refused_gpu},
    {"gpu_open", refused_gpu}, {"driver_tensor_map", refused_gpu},
    {"cache_list", refused_with_reason}, {"cache_clear", refused_with_reason},
    {"from_dlpack", refused_ptr}, {"to_dlpack", refused_ptr},
    {"delete_dlpack", refused_ptr},
    {"inline_ptx", refused_ptx}, {"ptx_parse", refused_ptx},
    {"ptx_translate", refused_ptx}, {"ptx_entry", refused_ptx},
    {"ptx_entries", refused_ptx}, {"ptx_head", refused_ptx},
    {"ptx_opcodes", refused_ptx}, {"ptx_variables", refused_ptx},
    {NULL, NULL}};
  luaL_setfuncs(L, files, 0);
}

// Pushes field `name` of the table at stack index idx. Calls no metamethods.
static int raw_field(lua_State *L, int idx, const char *name) {
  lua_pushstring(L, name);
  return lua_rawget(L, idx);
}

// Disables to_dlpack in the metatable at stack index 3. If the metatable is its
// own __index, replaces __index by a separate table of the methods.
static void hide_metatable(lua_State *L) {
  if (raw_field(L, 3, "to_dlpack") != LUA_TNIL) {
    lua_pushliteral(L, "to_dlpack");
    lua_pushcfunction(L, refused_ptr);
    lua_rawset(L, 3);
  }
  raw_field(L, 3, "__index");
  if (!lua_rawequal(L, -1, 3)) return;
  lua_pushliteral(L, "__index");
  lua_newtable(L);
  int methods = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2)
                       : "__";
    if (strncmp(name, "__", 2) == 0) continue;
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, methods);
  }
  lua_rawset(L, 3);
}

// Hides the metatables of the bindings. A script could reach a metatable that
// is its own __index, and add a finalizer to it.
static void hide_metatables(lua_State *L) {
  lua_settop(L, 1);
  for (lua_pushnil(L); lua_next(L, LUA_REGISTRYINDEX); lua_settop(L, 2))
    if (lua_type(L, 2) == LUA_TSTRING && lua_istable(L, 3)) hide_metatable(L);
}

static void open_untrusted(lua_State *L) {
  static const luaL_Reg libraries[] = {
    {LUA_GNAME, luaopen_base}, {LUA_COLIBNAME, luaopen_coroutine},
    {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
    {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8},
    {LUA_DBLIBNAME, luaopen_debug}, {"cute.core", luaopen_cute_core},
    {NULL, NULL}};
  for (const luaL_Reg *l = libraries; l->name; l++) {
    luaL_requiref(L, l->name, l->func, l->func != luaopen_cute_core);
    if (l->func == luaopen_cute_core) restrict_core(L);
    if (l->func == luaopen_string) pattern_open(L);
    lua_settop(L, 1);
  }
  hide_metatables(L);
  add_workshop(L);
}

// Locked while a state uses the compiler or searches for CUDA libraries,
// because only one state at a time may do so.
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

// Calls the function in upvalue 1 while holding the lock `one`.
static int alone(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  pthread_mutex_lock(&one);
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  pthread_mutex_unlock(&one);
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

static void open_trusted(lua_State *L) {
  static const char *const shared[] = {"jit_compile", "nvrtc_list",
                                       "gpu_open", NULL};
  luaL_openlibs(L);
  embedded_open(L);
  luaL_requiref(L, "cute.core", luaopen_cute_core, 0);
  for (int k = 0; shared[k]; k++) {
    if (lua_getfield(L, -1, shared[k]) == LUA_TNIL) {
      lua_pop(L, 1);
      continue;
    }
    lua_pushcclosure(L, alone, 1);
    lua_setfield(L, -2, shared[k]);
  }
  lua_settop(L, 1);
}

// Calls the chunk of an embedded module with the table `host` at index 2.
static void run_module(lua_State *L, const char *module, int results) {
  const Embedded *e = embedded_module(module);
  if (!e) luaL_error(L, "the library lacks module %s", module);
  embedded_load(L, e);
  lua_pushvalue(L, 2);
  lua_call(L, 1, results);
}

int sandbox_open(lua_State *L) {
  cutelua_state *s = lua_touserdata(L, 1);
  static const luaL_Reg funcs[] = {
    {"emit", l_emit}, {"spend", l_spend}, {"require", l_require},
    {NULL, NULL}};
  luaL_checkversion(L);
  if (s->untrusted) open_untrusted(L);
  else open_trusted(L);
  lua_newtable(L);
  lua_pushlightuserdata(L, s);
  luaL_setfuncs(L, funcs, 1);
  if (!s->print && !s->untrusted) {
    lua_pushnil(L);
    lua_setfield(L, 2, "emit");
  }
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_setfield(L, 2, "loaded");
  run_module(L, "cute.lang.streams", 0);
  if (s->untrusted) run_module(L, "cute.lang.untrusted", 0);
  run_module(L, "cute.embedding", 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "cutelua.embedding");
  lua_newtable(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "cutelua.refs");
  return 0;
}
// SPDX-License-Identifier: MIT
