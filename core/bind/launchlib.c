// Launches of compiled programs. A call of a kernel finds its program by the
// argument key and the values that the trace read. A prepared launch refers to
// its program. On a GPU, both are one driver call and allocate no memory.
#include "bind/trace.h"
#include "bind/gpulib.h"
#include "bind/argkey.h"
#include "bind/tma.h"

#include <limits.h>
#include <string.h>

// ---- arguments ----

// Replaces the table on top by its field `name`.
static int pop_field(lua_State *L, const char *name) {
  lua_pushstring(L, name);
  int type = lua_rawget(L, -2);
  lua_remove(L, -2);
  return type;
}

// Adds the arguments in the table at idx to the walk. The table is {arguments,
// n =}, or a call, which also has the field kernel.
static void walk_list(Walk *w, int idx) {
  lua_State *L = w->L;
  w->call = idx;
  lua_pushliteral(L, "n");
  lua_rawget(L, idx);
  lua_Integer n = face_checkint(L, -1);
  lua_pop(L, 1);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, idx, i);
    argkey_add(w, lua_gettop(L));
    lua_pop(L, 1);
  }
}

// Pushes a list with an entry for each value that a launch passes. The entry of
// memory is {buffer, byte offset, bytes}, and has tma = atom if the memory is
// passed as a tensor map. The entry of a number is {dtype, number}. The field
// `argument` of an entry is the number of the argument in the script. The table
// of buffers is at stack index `buffers`.
static void push_values(lua_State *L, Ctx *cx, const Leaf *l, size_t n,
                        int buffers) {
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_createtable(L, 3, 1);
    face_set_int(L, "argument", l[i].argument);
    if (l[i].pointer) {
      LeafMemory m = argkey_memory(cx, &l[i]);
      lua_rawgeti(L, buffers, (lua_Integer)l[i].place);
      lua_rawseti(L, -2, 1);
      lua_pushinteger(L, m.offset);
      lua_rawseti(L, -2, 2);
      lua_pushinteger(L, m.bytes);
      lua_rawseti(L, -2, 3);
      lua_rawgeti(L, buffers, -(lua_Integer)l[i].place);
      lua_setfield(L, -2, "tma");
    } else {
      face_push_dtype(L, l[i].type);
      lua_rawseti(L, -2, 1);
      face_push_bits(L, l[i].type, l[i].bits);
      lua_rawseti(L, -2, 2);
    }
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

// launch_values{arguments, n =} -> list of the values that a launch with these
// arguments passes (as in push_values)
static int l_launch_values(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_newtable(L);
  Walk w = argkey_begin(cx, L, 0);
  w.buffers = 2;
  walk_list(&w, 1);
  push_values(L, cx, w.leaf, w.nleaf, 2);
  return 1;
}

// launch_fit(key, arguments...) -> list of the values that a launch with these
// arguments passes to a program with this argument key. Raises an error if the
// arguments do not fit the key.
static int l_launch_fit(lua_State *L) {
  Ctx *cx = face_enter(L);
  const ArgKey *k = argkey_box(L, 1);
  int n = lua_gettop(L);
  luaL_checkstack(L, LUA_MINSTACK, "arguments of a kernel");
  lua_newtable(L);
  Walk w = argkey_begin(cx, L, k->w[0]);
  w.buffers = n + 1;
  for (int i = 2; i <= n; i++) argkey_add(&w, i);
  argkey_end(&w);
  const Leaf *leaf = argmatch_fit(&w, k);
  push_values(L, cx, leaf, k->nleaf, n + 1);
  return 1;
}

// ---- argument keys ----

// kind({arguments, n =}, launch) -> argument key, its hash, list of the objects
// whose addresses are in the key[, groups]. The key keeps these objects alive.
// `launch` is an integer that encodes other properties for which the program is
// compiled. If memory of some arguments overlaps, groups[i] is a number shared
// by all leaves that overlap leaf i, directly or through others, or 0 if none
// does.
static int l_kind(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checktype(L, 1, LUA_TTABLE);
  lua_Integer launch = face_optint(L, 2, 0);
  lua_settop(L, 2);
  lua_newtable(L);  // stack index 3: list of the objects to keep alive
  Walk w = argkey_begin(cx, L, (uint64_t)launch);
  w.hold = 3;
  walk_list(&w, 1);
  argkey_end(&w);
  uint64_t hash = argkey_hash(&w);
  size_t words = w.n * sizeof *w.w;
  size_t each = sizeof(uint32_t) + sizeof(int);
  ArgKey *k = lua_newuserdatauv(L, sizeof *k + words + w.nleaf * each, 1);
  *k = (ArgKey){.arguments = w.argument, .n = w.n,
                .symbolic = w.symbolic, .numbers = w.numbers,
                .in_table = w.in_table, .nleaf = w.nleaf};
  k->w = memcpy(k + 1, w.w, words);
  k->symbol = (uint32_t *)(void *)((char *)k->w + words);
  k->group = (int *)(void *)(k->symbol + w.nleaf);
  for (size_t i = 0; i < w.nleaf; i++) k->symbol[i] = w.leaf[i].symbol;
  bool overlap = argkey_overlaps(cx, w.leaf, w.nleaf, k->group);
  luaL_setmetatable(L, MT_KIND);
  lua_pushvalue(L, 3);
  lua_setiuservalue(L, -2, 1);
  if (argkey_name(L, 1)) {  // the list also keeps the name alive
    k->name = lua_pushstring(L, argkey_name(L, 1));
    lua_rawseti(L, 3, (lua_Integer)lua_rawlen(L, 3) + 1);
  }
  lua_pushinteger(L, (lua_Integer)hash);
  lua_pushvalue(L, 3);
  if (!overlap) return 3;
  lua_createtable(L, (int)w.nleaf, 0);
  for (size_t i = 0; i < w.nleaf; i++) {
    lua_pushinteger(L, k->group[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 4;
}

// kind_text(arguments...) -> the words of the argument key as a string
static int l_kind_text(lua_State *L) {
  Ctx *cx = face_enter(L);
  int n = lua_gettop(L);
  luaL_checkstack(L, LUA_MINSTACK, "arguments of a kernel");
  Walk w = argkey_begin(cx, L, 0);
  for (int i = 1; i <= n; i++) argkey_add(&w, i);
  argkey_end(&w);
  lua_pushlstring(L, (const char *)w.w, w.n * sizeof *w.w);
  return 1;
}

// Implements the fields of an argument key.
// - symbolic: whether some argument is symbolic.
// - numbers: whether some argument is or contains a number.
// - in_table: whether a table among the arguments contains a number.
// - arguments: number of arguments.
static int kind_index(lua_State *L) {
  const ArgKey *k = argkey_box(L, 1);
  const char *name = face_checkstr(L, 2);
  if (strcmp(name, "symbolic") == 0) lua_pushboolean(L, k->symbolic);
  else if (strcmp(name, "numbers") == 0) lua_pushboolean(L, k->numbers);
  else if (strcmp(name, "in_table") == 0) lua_pushboolean(L, k->in_table);
  else if (strcmp(name, "arguments") == 0) lua_pushinteger(L, k->arguments);
  else return 0;
  return 1;
}

// ---- search for programs ----

// Pushes the program for the arguments of a walk, and moves it to the front of
// its list. The table at stack index `programs` has such a list for each hash
// of an argument key. A program fits if its key is equal, and the values that
// its trace read are unchanged. If none fits, pushes nothing and returns false.
static bool find_program(Walk *w, int programs) {
  lua_State *L = w->L;
  argkey_end(w);
  uint64_t hash = argkey_hash(w);
  int list = lua_gettop(L) + 1;
  bool found = lua_rawgeti(L, programs, (lua_Integer)hash) == LUA_TTABLE;
  lua_Integer n = found ? (lua_Integer)lua_rawlen(L, list) : 0;
  found = false;
  for (lua_Integer i = 1; i <= n && !found; i++, lua_settop(L, list + found)) {
    lua_rawgeti(L, list, i);
    lua_pushliteral(L, "kind");
    lua_rawget(L, -2);
    const ArgKey *k = face_test(L, -1, MT_KIND);
    if (!k || k->n != w->n || memcmp(k->w, w->w, w->n * sizeof *w->w) != 0)
      continue;
    lua_pushliteral(L, "read");
    lua_rawget(L, list + 1);
    if (!kernlib_unchanged(L, lua_gettop(L))) continue;
    found = true;
    for (lua_Integer j = i; j > 1; j--) {
      lua_rawgeti(L, list, j - 1);
      lua_rawseti(L, list, j);
    }
    lua_pushvalue(L, list + 1);
    lua_rawseti(L, list, 1);
  }
  lua_remove(L, list);
  return found;
}

// find_program(programs, {arguments, n =}, launch) -> program, or nothing
static int l_find_program(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checktype(L, 1, LUA_TTABLE);
  face_checktype(L, 2, LUA_TTABLE);
  Walk w = argkey_begin(cx, L, (uint64_t)face_checkint(L, 3));
  walk_list(&w, 2);
  return find_program(&w, 1);
}

// ---- launch options ----

// Options of a plain launch, one that C code can handle. Lua code handles
// launches with other options, or with invalid ones.
typedef struct Plain {
  unsigned grid[3], block[3];  // grid[0], block[0] are 0 if absent
  unsigned cluster[3];         // cluster[0] is 0 if absent
  int device;                  // stack index of a device object; 0: absent
  int gpu;                     // 1 + number of a GPU; 0: absent
  int fmad, fastmath, pdl;     // -1 if absent
  const GpuStream *stream;
} Plain;

#define PLAIN {.fmad = -1, .fastmath = -1, .pdl = -1}

// Reads the value on top as three extents. Returns false if they are not valid
// for a grid (if `grid`) or for a block.
static bool plain_extents(lua_State *L, unsigned v[3], bool grid) {
  static const lua_Integer most[2][3] = {{1024, 1024, 64},
                                         {INT_MAX, 65535, 65535}};
  lua_Integer n[3] = {lua_tointeger(L, -1), 1, 1}, given = 0, last = 0;
  if (lua_istable(L, -1)) {
    n[0] = 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
      lua_Integer k = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
      if (k < 1 || k > 3 || !lua_isinteger(L, -1)) {
        lua_pop(L, 2);
        return false;
      }
      n[k - 1] = lua_tointeger(L, -1);
      given++;
      if (k > last) last = k;
    }
    if (given < last) return false;
  } else if (!lua_isinteger(L, -1)) {
    return false;
  }
  for (int i = 0; i < 3; i++) {
    if (n[i] < 1 || n[i] > most[grid][i]) return false;
    v[i] = (unsigned)n[i];
  }
  return grid || n[0] * n[1] * n[2] <= 1024;
}

// Reads the value on top as a device. Inserts a device object into the stack
// after the options, at idx + 1.
static bool plain_device(lua_State *L, int idx, Plain *p) {
  if (lua_type(L, -1) == LUA_TSTRING) {
    const char *s = lua_tostring(L, -1);
    p->gpu = strcmp(s, "gpu") == 0;
    return p->gpu || strcmp(s, "auto") == 0;
  }
  lua_pushvalue(L, -1);
  lua_insert(L, idx + 1);
  p->device = idx + 1;
  return lua_istable(L, -1);
}

// Reads option k, whose value is on top. Returns false if a plain launch cannot
// have this option.
static bool plain_option(lua_State *L, int idx, const char *k, Plain *p) {
  if (strcmp(k, "grid") == 0) return plain_extents(L, p->grid, true);
  if (strcmp(k, "block") == 0) return plain_extents(L, p->block, false);
  if (strcmp(k, "device") == 0) return plain_device(L, idx, p);
  if (strcmp(k, "stream") == 0) {
    p->stream = face_test(L, -1, MT_STREAM);
    return p->stream != NULL;
  }
  if (strcmp(k, "cluster") == 0)
    return plain_extents(L, p->cluster, true) &&
           p->cluster[0] * (uint64_t)p->cluster[1] * p->cluster[2] <= 16;
  int *flag = strcmp(k, "fmad") == 0 ? &p->fmad
              : strcmp(k, "fastmath") == 0 ? &p->fastmath
              : strcmp(k, "pdl") == 0 ? &p->pdl : NULL;
  if (flag) *flag = lua_toboolean(L, -1);
  return flag && lua_isboolean(L, -1);
}

// Reads the table of options, or nil, at idx. Returns false unless a plain
// launch can have these options. Leaves a device object, if any, on the stack.
static bool plain_options(lua_State *L, int idx, Plain *p) {
  if (lua_isnoneornil(L, idx)) return true;
  if (!lua_istable(L, idx)) return false;
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    const char *k = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
    if (!plain_option(L, idx, k, p)) {
      lua_pop(L, 2);
      return false;
    }
  }
  return true;
}

// ---- launching ----

// Returns the kernel parameter for an argument in GPU memory: the address, or a
// tensor map.
static void *pack_memory(Ctx *cx, const Leaf *leaf) {
  uint64_t at = leaf->dev->ptr + (uint64_t)argkey_memory(cx, leaf).offset;
  uint64_t *w = NEW(cx, uint64_t, leaf->tma ? TENSORMAP_WORDS : 1);
  if (leaf->tma) tmalib_encode(cx, &leaf->tma->a, leaf->t, at, w);
  else *w = at;
  return w;
}

// Launches `l` with parameters for n leaves, the values of its arguments.
// Returns false if some memory is not on the GPU of the launch, or is
// read-only.
static bool run_leaves(lua_State *L, Ctx *cx, GpuLaunch l, const Leaf *leaf,
                       size_t n) {
  uint64_t *value = NEW(cx, uint64_t, n + 1);
  l.params = NEW(cx, void *, n + 1);
  l.params[n] = NULL;
  l.bufs = NEW(cx, DevBuf *, n + 1);
  l.nbufs = 0;
  for (size_t i = 0; i < n; i++) {
    l.params[i] = &value[i];
    value[i] = leaf[i].bits;
    if (!leaf[i].pointer) continue;
    if (leaf[i].host || leaf[i].dev->own.gpu != l.fn->own.gpu ||
        leaf[i].dev->readonly)
      return false;
    l.params[i] = pack_memory(cx, &leaf[i]);
    l.bufs[l.nbufs++] = leaf[i].dev;
  }
  Why why;
  gpulib_ran(L, l.fn->own.gpu, l.fn->name);
  if (!gpulaunch_run(&l, 1, &why)) face_error(L, why.kind, "%s", why.msg);
  return true;
}

// Reports whether the launch exists and its kernel is still loaded.
static bool can_launch(const GpuLaunch *l) {
  return l && gpu_owns(&l->fn->own);
}

// Returns 1 + the number of the GPU whose memory an argument uses, or 0 if no
// argument is in GPU memory.
static int on_gpu(const Walk *w) {
  for (size_t i = 0; i < w->nleaf; i++)
    if (w->leaf[i].dev) return w->leaf[i].dev->own.gpu->ordinal + 1;
  return 0;
}

// Returns the boolean field `name` of the kernel. If it is absent, returns
// `none`.
static bool own_flag(lua_State *L, int kernel, const char *name, bool none) {
  lua_pushvalue(L, kernel);
  bool flag = pop_field(L, name) == LUA_TNIL ? none : lua_toboolean(L, -1);
  lua_pop(L, 1);
  return flag;
}

// Returns fmad (bit 0) and fastmath (bit 1). An option of the launch takes
// precedence over the kernel's. By default, fmad is on if fastmath is on.
static lua_Integer numerics(lua_State *L, int kernel, const Plain *p) {
  bool fast = p->fastmath >= 0 ? p->fastmath
                               : own_flag(L, kernel, "fastmath", false);
  bool fmad = p->fmad >= 0 ? p->fmad : own_flag(L, kernel, "fmad", fast);
  return fmad | fast << 1;
}

// Reports whether the grid consists of whole clusters.
static bool whole_clusters(const GpuLaunch *l) {
  for (int i = 0; i < 3; i++)
    if (l->grid[i] % l->cluster[i]) return false;
  return true;
}

// Encodes the block, cluster, fmad and fastmath of a launch in a number, the
// first word of the argument key. Returns -1 if the block is missing, invalid,
// or not the block that the kernel declares.
static lua_Integer launch_number(lua_State *L, int kernel, const Plain *p) {
  unsigned own[3] = {0};
  lua_pushvalue(L, kernel);
  if (pop_field(L, "block") != LUA_TNIL && !plain_extents(L, own, false))
    return -1;
  lua_pop(L, 1);
  const unsigned *b = p->block[0] ? p->block : own;
  if (!b[0] || (own[0] && memcmp(own, b, sizeof own) != 0)) return -1;
  static const unsigned alone[3] = {1, 1, 1};
  const unsigned *c = p->cluster[0] ? p->cluster : alone;
  return b[0] | (lua_Integer)b[1] << 11 | (lua_Integer)b[2] << 22 |
         numerics(L, kernel, p) << 32 | (lua_Integer)c[0] << 34 |
         (lua_Integer)c[1] << 39 | (lua_Integer)c[2] << 44;
}

// launch_known(call, options, Device, gpus) -> true if it launched the call.
// Otherwise nothing: this is not a plain launch, or its program is not loaded
// on a GPU yet. The call is {arguments, n =, kernel =}. Device is the metatable
// of device objects. gpus[k] is the object of GPU k, from 0 on.
static int l_launch_known(lua_State *L) {
  Ctx *cx = face_enter(L);
  Plain p = PLAIN;
  lua_settop(L, 4);
  lua_rotate(L, 2, -1);  // stack: call, Device, gpus, options
  if (ir_fn(cx) || !lua_istable(L, 1) || !plain_options(L, 4, &p) ||
      !p.grid[0])
    return 0;
  if (p.device && (!lua_getmetatable(L, p.device) ||
                   !lua_rawequal(L, -1, 2)))
    return 0;
  lua_settop(L, 4 + (p.device != 0));
  lua_pushvalue(L, 1);
  if (pop_field(L, "kernel") != LUA_TTABLE) return 0;
  int kernel = lua_gettop(L);
  lua_Integer launch = launch_number(L, kernel, &p);
  if (launch < 0) return 0;
  lua_settop(L, kernel);
  if (pop_field(L, "programs") != LUA_TTABLE) return 0;
  Walk w = argkey_begin(cx, L, (uint64_t)launch);
  walk_list(&w, 1);
  if (!find_program(&w, kernel)) return 0;
  if (pop_field(L, "launches") != LUA_TTABLE) return 0;
  if (!p.gpu) p.gpu = on_gpu(&w);
  if (!p.device && !p.gpu) return 0;
  if (p.device) lua_pushvalue(L, p.device);
  else lua_rawgeti(L, 3, p.gpu - 1);
  if (lua_isnil(L, -1)) return 0;
  lua_rawget(L, -2);
  const GpuLaunch *known = face_test(L, -1, MT_LAUNCH);
  if (!can_launch(known)) return 0;
  GpuLaunch l = *known;
  memcpy(l.grid, p.grid, sizeof l.grid);
  l.stream = p.stream;
  l.pdl = p.pdl > 0;
  // cooperative launches do not reach this function
  l.cooperative = false;
  if (!whole_clusters(&l) || (l.pdl && l.fn->own.gpu->major < 9)) return 0;
  gpulib_keep(L, l.fn->own.gpu, -1);
  if (!run_leaves(L, cx, l, w.leaf, w.nleaf)) return 0;
  lua_pushboolean(L, 1);
  return 1;
}

// The function that launcher returns. Upvalue 2 is the launch, and upvalue 3 is
// the argument key. Argument 1, the prepared launch in Lua, is not used.
static int launch_again(lua_State *L) {
  Ctx *cx = face_enter(L);
  GpuLaunch l = *(const GpuLaunch *)lua_touserdata(L, lua_upvalueindex(2));
  const ArgKey *k = lua_touserdata(L, lua_upvalueindex(3));
  int n = lua_gettop(L);
  luaL_checkstack(L, LUA_MINSTACK, "arguments of a kernel");
  if (ir_fn(cx) || !can_launch(&l)) return 0;
  if (n == k->arguments + 2) {
    Plain p = PLAIN;
    if (!plain_options(L, n, &p) || p.device || p.gpu || p.block[0] ||
        p.fmad >= 0 || p.fastmath >= 0 || p.pdl >= 0 || p.cluster[0])
      return 0;
    if (p.grid[0]) memcpy(l.grid, p.grid, sizeof l.grid);
    if (p.stream) l.stream = p.stream;
    n--;
  }
  Walk w = argkey_begin(cx, L, k->w[0]);
  for (int i = 2; i <= n; i++) argkey_add(&w, i);
  argkey_end(&w);
  if (!l.grid[0] || n != k->arguments + 1 || !whole_clusters(&l)) return 0;
  gpulib_keep(L, l.fn->own.gpu, lua_upvalueindex(2));
  if (!run_leaves(L, cx, l, argmatch_fit(&w, k), k->nleaf)) return 0;
  lua_pushboolean(L, 1);
  return 1;
}

// launcher(launch, key, grid) -> f(prepared, arguments...). f launches on the
// launch's GPU and returns true. If Lua code must handle the launch, it returns
// nothing. If the arguments do not fit the key, it raises an error. A table of
// options (grid, stream) may follow the arguments. If `grid` is false, each
// call must have the option `grid`.
static int l_launcher(lua_State *L) {
  Ctx *cx = face_enter(L);
  GpuLaunch *l = face_check(L, 1, MT_LAUNCH, "launch");
  argkey_box(L, 2);
  if (!lua_toboolean(L, 3)) l->grid[0] = 0;
  lua_pushlightuserdata(L, cx);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, launch_again, 3);
  return 1;
}

void launchlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"kind", l_kind}, {"kind_text", l_kind_text},
    {"find_program", l_find_program}, {"launch_values", l_launch_values},
    {"launch_fit", l_launch_fit}, {"launch_known", l_launch_known},
    {"launcher", l_launcher}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__index", kind_index}, {NULL, NULL}};
  face_newtype(L, MT_KIND, meta);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
