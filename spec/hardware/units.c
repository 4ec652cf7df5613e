// The simulator's matrix arithmetic, access counters, and conversions from and
// to f32, as Lua functions for specs and golden data. Loaded by
// spec/hardware/units.lua; element types are given by name.
#include <lua.h>
#include <lauxlib.h>
#include <string.h>

#include "hardware/access.h"
#include "hardware/mma.h"
#include "hardware/tile.h"
#include "hardware/ummamath.h"

int luaopen_units(lua_State *L);

// ---- arguments ----

static DType check_dtype(lua_State *L, int idx) {
  DType t = dtype_find(luaL_tolstring(L, idx, NULL));
  lua_pop(L, 1);
  if (t == DT_NONE) luaL_argerror(L, idx, "element type expected");
  return t;
}

static DType field_dtype(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  DType t = check_dtype(L, lua_gettop(L));
  lua_pop(L, 1);
  return t;
}

static int field_int(lua_State *L, const char *name, lua_Integer def) {
  lua_getfield(L, 1, name);
  lua_Integer v = luaL_optinteger(L, -1, def);
  lua_pop(L, 1);
  return (int)v;
}

static bool field_bool(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  bool v = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return v;
}

// Reads argument 1: {a=, b=, c= element types, k=, arch=, wgmma=, sat=,
// op="mul"|"xor"|"and"}
static SimMma check_kind(lua_State *L) {
  static const char *const ops[] = {"mul", "xor", "and", NULL};
  luaL_checktype(L, 1, LUA_TTABLE);
  SimMma m = {.a = field_dtype(L, "a"), .b = field_dtype(L, "b"),
              .c = field_dtype(L, "c"), .k = field_int(L, "k", 0),
              .arch = field_int(L, "arch", 90),
              .wgmma = field_bool(L, "wgmma"), .sat = field_bool(L, "sat")};
  lua_getfield(L, 1, "op");
  m.op = (SimMmaOp)luaL_checkoption(L, -1, "mul", ops);
  lua_pop(L, 1);
  if (!mma_known(&m))
    luaL_error(L, "no such matrix instruction: %s * %s + %s, k %d",
               dtype_name(m.a), dtype_name(m.b), dtype_name(m.c), m.k);
  return m;
}

static void *new_array(lua_State *L, size_t n, size_t size) {
  return memset(lua_newuserdatauv(L, (n + 1) * size, 0), 0, (n + 1) * size);
}

// Returns the n integers of the list at stack index idx, in a new userdata,
// which stays on the stack.
static uint64_t *check_words(lua_State *L, int idx, size_t n) {
  luaL_checktype(L, idx, LUA_TTABLE);
  uint64_t *w = new_array(L, n, sizeof *w);
  for (size_t i = 0; i < n; i++) {
    if (lua_rawgeti(L, idx, (lua_Integer)i + 1) != LUA_TNUMBER)
      luaL_error(L, "argument #%d lacks integer %d", idx, (int)i + 1);
    w[i] = (uint64_t)luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  return w;
}

static uint32_t *check_words32(lua_State *L, int idx, size_t n) {
  uint64_t *w = check_words(L, idx, n);
  uint32_t *x = new_array(L, n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (uint32_t)w[i];
  return x;
}

static int push_words(lua_State *L, const uint64_t *w, size_t n) {
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_pushinteger(L, (lua_Integer)w[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static uint32_t opt_mask(lua_State *L, int idx) {
  return (uint32_t)luaL_optinteger(L, idx, 0xffffffff);
}

// ---- matrix instructions ----

// mma_dot(kind, {a bits}, {b bits}, c bits) -> bits
static int l_mma_dot(lua_State *L) {
  SimMma m = check_kind(L);
  uint64_t *a = check_words(L, 2, (size_t)m.k);
  uint64_t *b = check_words(L, 3, (size_t)m.k);
  uint64_t c = (uint64_t)luaL_checkinteger(L, 4);
  lua_pushinteger(L, (lua_Integer)mma_dot(&m, a, b, c));
  return 1;
}

// Returns n elements of type t as floats, the form in which the tile functions
// take operands.
static float *floats(lua_State *L, DType t, const uint64_t *bits, size_t n) {
  float *x = new_array(L, n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = dtype_to_float(t, bits[i]);
  return x;
}

static int16_t *shorts(lua_State *L, DType t, const uint64_t *bits, size_t n) {
  int16_t *x = new_array(L, n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (int16_t)dtype_to_double(t, bits[i]);
  return x;
}

static double *doubles(lua_State *L, const uint64_t *bits, size_t n) {
  double *x = new_array(L, n, sizeof *x);
  memcpy(x, bits, n * sizeof *x);
  return x;
}

static uint32_t *packed(lua_State *L, const uint64_t *bits, size_t n) {
  uint32_t *x = new_array(L, n / 32, sizeof *x);
  for (size_t i = 0; i < n; i++)
    x[i / 32] |= (uint32_t)(bits[i] & 1) << (i % 32);
  return x;
}

static void tile_int(lua_State *L, const SimMma *m, int M, int N,
                     const uint64_t *a, const uint64_t *b, uint64_t *c) {
  size_t na = (size_t)(M * m->k), nb = (size_t)(N * m->k);
  size_t nc = (size_t)(M * N);
  int32_t *d = new_array(L, nc, sizeof *d);
  for (size_t i = 0; i < nc; i++) d[i] = (int32_t)(uint32_t)c[i];
  if (m->a == DT_B1)
    mma_tile_bit(m, M, N, packed(L, a, na), packed(L, b, nb), d, d);
  else
    mma_tile_int(m, M, N, shorts(L, m->a, a, na), shorts(L, m->b, b, nb),
                 d, d);
  for (size_t i = 0; i < nc; i++) c[i] = (uint32_t)d[i];
}

static void tile_any(lua_State *L, const SimMma *m, int M, int N,
                     const uint64_t *a, const uint64_t *b, uint64_t *c) {
  size_t na = (size_t)(M * m->k), nb = (size_t)(N * m->k);
  size_t nc = (size_t)(M * N);
  if (m->c == DT_F64) {
    double *d = doubles(L, c, nc);
    mma_tile_f64(m, M, N, doubles(L, a, na), doubles(L, b, nb), d, d);
    memcpy(c, d, nc * sizeof *d);
  } else if (m->c == DT_I32) {
    tile_int(L, m, M, N, a, b, c);
  } else {
    float *d = floats(L, m->c, c, nc);
    mma_tile(m, M, N, floats(L, m->a, a, na), floats(L, m->b, b, nb), d,
             d);
    for (size_t i = 0; i < nc; i++) c[i] = dtype_from_float(m->c, d[i]);
  }
}

// mma_tile(kind, M, N, {A bits, M*k}, {B bits, N*k}, {C bits, M*N}) -> {D}
static int l_mma_tile(lua_State *L) {
  SimMma m = check_kind(L);
  lua_Integer M = luaL_checkinteger(L, 2), N = luaL_checkinteger(L, 3);
  luaL_argcheck(L, M >= 1 && M <= 256, 2, "1 to 256 rows");
  luaL_argcheck(L, N >= 1 && N <= 256, 3, "1 to 256 columns");
  uint64_t *a = check_words(L, 4, (size_t)(M * m.k));
  uint64_t *b = check_words(L, 5, (size_t)(N * m.k));
  uint64_t *c = check_words(L, 6, (size_t)(M * N));
  tile_any(L, &m, (int)M, (int)N, a, b, c);
  return push_words(L, c, (size_t)(M * N));
}

// mma_processors(kind, N, {A bits, 16*k}, {B bits, N*k}, {C bits, 16*N}) ->
// {{D}, ...}: one result for each implementation of the tile functions
static int l_mma_processors(lua_State *L) {
  SimMma m = check_kind(L);
  SimRule r = mma_rule(&m);
  lua_Integer n = luaL_checkinteger(L, 2);
  luaL_argcheck(L, n >= 8 && n <= 256 && n % 8 == 0, 2, "8, 16 ... 256");
  int N = (int)n, K = m.k;
  size_t size = (size_t)(MMA_ROWS * N);
  float *a = floats(L, m.a, check_words(L, 3, (size_t)(MMA_ROWS * K)),
                    (size_t)(MMA_ROWS * K));
  float *b = floats(L, m.b, check_words(L, 4, (size_t)(N * K)),
                    (size_t)(N * K));
  float *c = floats(L, m.c, check_words(L, 5, size), size);
  float *d = new_array(L, size, sizeof *d);
  float *rows = new_array(L, (size_t)MMA_A_FLOATS(K), sizeof *rows);
  float *columns = new_array(L, (size_t)MMA_B_FLOATS(N, K), sizeof *columns);
  uint64_t *bits = new_array(L, size, sizeof *bits);
  lua_newtable(L);
  const SimTileFns *f;
  for (int k = 0; (f = tile_known(k)); k++) {
    f->rows(&r, MMA_ROWS, K, a, rows);
    f->columns(&r, N, K, b, columns);
    f->multiply(&r, N, K, rows, columns, c, d);
    for (size_t i = 0; i < size; i++) bits[i] = dtype_from_float(m.c, d[i]);
    push_words(L, bits, size);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

// ---- tcgen05.mma ----

static UmmaKind field_umma_kind(lua_State *L) {
  lua_getfield(L, 1, "kind");
  const char *name = luaL_checkstring(L, -1);
  lua_pop(L, 1);
  for (int k = 0; k < UMMA_KIND_COUNT; k++)
    if (!strcmp(umma_kind((UmmaKind)k)->name, name)) return (UmmaKind)k;
  return (UmmaKind)luaL_argerror(L, 1, "no such kind of tcgen05.mma");
}

// Reads argument 1: {kind=, a=, b=, d= element types, scale= type, scales=,
// sparse=, sat=}
static SimUmma check_umma(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  SimUmma u = {.kind = field_umma_kind(L), .a = field_dtype(L, "a"),
               .b = field_dtype(L, "b"), .d = field_dtype(L, "d"),
               .scales = field_int(L, "scales", 0),
               .sparse = field_bool(L, "sparse"), .sat = field_bool(L, "sat")};
  if (u.scales) u.scale = field_dtype(L, "scale");
  if (!ummamath_known(&u)) luaL_argerror(L, 1, "no such tcgen05.mma");
  return u;
}

static uint8_t *check_bytes(lua_State *L, int idx, size_t n) {
  if (!n) return NULL;
  uint64_t *w = check_words(L, idx, n);
  uint8_t *x = new_array(L, n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (uint8_t)w[i];
  return x;
}

// umma_tile(kind, M, N, {A bits}, {B bits}, {C bits}, {scales of A}, {scales of
// B}, {metadata}) -> {D}
static int l_umma_tile(lua_State *L) {
  SimUmma u = check_umma(L);
  lua_Integer m = luaL_checkinteger(L, 2), n = luaL_checkinteger(L, 3);
  luaL_argcheck(L, m >= 1 && m <= SIM_UMMA_MOST, 2, "1 to 256 rows");
  luaL_argcheck(L, n >= 1 && n <= SIM_UMMA_MOST, 3, "1 to 256 columns");
  size_t M = (size_t)m, N = (size_t)n, k = umma_kind(u.kind)->k;
  size_t na = M * k, nb = N * (size_t)ummamath_k(&u), nd = M * N;
  uint64_t *a = check_words(L, 4, na), *b = check_words(L, 5, nb);
  uint64_t *d = check_words(L, 6, nd);
  size_t words = u.sparse ? M * (size_t)umma_metadata_words(u.kind) : 0;
  SimUmmaTile t = {.m = (int)m, .n = (int)n,
                   .sfa = check_bytes(L, 7, M * (size_t)u.scales),
                   .sfb = check_bytes(L, 8, N * (size_t)u.scales),
                   .meta = words ? check_words32(L, 9, words) : NULL};
  if (u.kind == UMMA_I8) {
    t.a = shorts(L, u.a, a, na);
    t.b = shorts(L, u.b, b, nb);
    int32_t *to = new_array(L, nd, sizeof *to);
    for (size_t i = 0; i < nd; i++) to[i] = (int32_t)(uint32_t)d[i];
    t.d = to;
    ummamath_tile(&u, &t);
    for (size_t i = 0; i < nd; i++) d[i] = (uint32_t)to[i];
  } else {
    t.a = floats(L, u.a, a, na);
    t.b = floats(L, u.b, b, nb);
    float *to = t.d = floats(L, u.d, d, nd);
    ummamath_tile(&u, &t);
    for (size_t i = 0; i < nd; i++) d[i] = dtype_from_float(u.d, to[i]);
  }
  return push_words(L, d, nd);
}

// ---- hardware counters ----

static int push_passes(lua_State *L, SimPasses p) {
  lua_pushinteger(L, p.wavefronts);
  lua_pushinteger(L, p.least);
  return 2;
}

// shared_wavefronts("load"|"store"|"cp.async", width, {32 addresses}, mask)
// -> wavefronts, fewest
static int l_shared(lua_State *L) {
  static const char *const kinds[] = {"load", "store", "cp.async", NULL};
  SimAccess kind = (SimAccess)luaL_checkoption(L, 1, NULL, kinds);
  return push_passes(L, access_shared(kind, (int)luaL_checkinteger(L, 2),
                                      check_words32(L, 3, 32),
                                      opt_mask(L, 4), NULL));
}

// matrix_wavefronts(num, {8 * num row addresses}) -> wavefronts, fewest
static int l_matrix(lua_State *L) {
  lua_Integer num = luaL_checkinteger(L, 1);
  luaL_argcheck(L, num >= 1 && num <= 4, 1, "1 to 4 matrices");
  const uint32_t *rows = check_words32(L, 2, 8 * (size_t)num);
  return push_passes(L, access_matrix((int)num, rows, NULL));
}

// cpasync_cg_wavefronts({32 destinations}, {32 sources}, mask)
static int l_cpasync_cg(lua_State *L) {
  return push_passes(L, access_cpasync_cg(check_words32(L, 1, 32),
                                          check_words(L, 2, 32),
                                          opt_mask(L, 3), NULL));
}

// global_sectors(width, {32 addresses}, mask) -> sectors
static int l_global(lua_State *L) {
  lua_pushinteger(L, access_global((int)luaL_checkinteger(L, 1),
                                   check_words(L, 2, 32), opt_mask(L, 3)));
  return 1;
}

// ---- conversions ----

// float_to_bits(dtype, f32 bits) -> bits: the conversion from f32
static int l_float_to_bits(lua_State *L) {
  float x = bits_float((uint32_t)luaL_checkinteger(L, 2));
  lua_pushinteger(L, (lua_Integer)dtype_from_float(check_dtype(L, 1), x));
  return 1;
}

// bits_to_float(dtype, bits) -> f32 bits
static int l_bits_to_float(lua_State *L) {
  uint64_t u = (uint64_t)luaL_checkinteger(L, 2);
  lua_pushinteger(L, float_bits(dtype_to_float(check_dtype(L, 1), u)));
  return 1;
}

// pack(dtype, {bits ...}) -> string, unpack(dtype, string, n) -> {bits ...}
static int l_pack(lua_State *L) {
  DType t = check_dtype(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  size_t n = lua_rawlen(L, 2), bytes = (n * (size_t)dtype_bits(t) + 7) / 8;
  uint64_t *w = check_words(L, 2, n);
  void *p = new_array(L, bytes, 1);
  for (size_t i = 0; i < n; i++) dtype_store(t, p, i, w[i]);
  lua_pushlstring(L, p, bytes);
  return 1;
}

static int l_unpack(lua_State *L) {
  DType t = check_dtype(L, 1);
  size_t len;
  const char *s = luaL_checklstring(L, 2, &len);
  size_t n = (size_t)luaL_checkinteger(L, 3);
  luaL_argcheck(L, (n * (size_t)dtype_bits(t) + 7) / 8 <= len, 3, "too many");
  uint64_t *w = new_array(L, n, sizeof *w);
  for (size_t i = 0; i < n; i++) w[i] = dtype_load(t, s, i);
  return push_words(L, w, n);
}

__attribute__((visibility("default"))) int luaopen_units(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"mma_dot", l_mma_dot}, {"mma_tile", l_mma_tile},
    {"mma_processors", l_mma_processors},
    {"umma_tile", l_umma_tile},
    {"shared_wavefronts", l_shared}, {"matrix_wavefronts", l_matrix},
    {"cpasync_cg_wavefronts", l_cpasync_cg}, {"global_sectors", l_global},
    {"float_to_bits", l_float_to_bits}, {"bits_to_float", l_bits_to_float},
    {"pack", l_pack}, {"unpack", l_unpack}, {NULL, NULL}};
  luaL_newlib(L, funcs);
  return 1;
}
// SPDX-License-Identifier: MIT
