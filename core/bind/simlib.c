// Lua face of the simulator's arithmetic and counting, for the golden data
// and the specs: cute.core.sim, and the conversions to_bits, from_bits.
#include <string.h>

#include "bind/face.h"
#include "sim/access.h"
#include "sim/mma.h"

#define MAX_WORDS 8192

// ---- arguments ----

static lua_Integer field_int(lua_State *L, int idx, const char *name,
                             lua_Integer def) {
  lua_getfield(L, idx, name);
  lua_Integer v = face_optint(L, -1, def);
  lua_pop(L, 1);
  return v;
}

static bool field_bool(lua_State *L, int idx, const char *name) {
  lua_getfield(L, idx, name);
  bool v = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return v;
}

static DType field_dtype(lua_State *L, int idx, const char *name) {
  lua_getfield(L, idx, name);
  DType t = face_check_dtype(L, -1);
  lua_pop(L, 1);
  return t;
}

// {a=, b=, c= element types, k=, arch=, wgmma=, sat=, op="xor"|"and"}
static SimMma check_kind(lua_State *L, int idx) {
  face_checktype(L, idx, LUA_TTABLE);
  SimMma m = {.a = field_dtype(L, idx, "a"),
              .b = field_dtype(L, idx, "b"),
              .c = field_dtype(L, idx, "c"),
              .k = (int)field_int(L, idx, "k", 0),
              .arch = (int)field_int(L, idx, "arch", 90),
              .wgmma = field_bool(L, idx, "wgmma"),
              .sat = field_bool(L, idx, "sat")};
  lua_getfield(L, idx, "op");
  const char *op = face_optstr(L, -1, "mul");
  m.op = strcmp(op, "xor") == 0   ? SIMMMA_XOR
         : strcmp(op, "and") == 0 ? SIMMMA_AND
                                  : SIMMMA_MUL;
  lua_pop(L, 1);
  if (!simmma_known(&m))
    face_error(L, ERR_ARG, "no such matrix instruction: %s * %s + %s, k %d",
               dtype_name(m.a), dtype_name(m.b), dtype_name(m.c), m.k);
  return m;
}

static lua_Integer element(lua_State *L, int idx, lua_Integer i) {
  if (lua_rawgeti(L, idx, i) != LUA_TNUMBER)
    face_error(L, ERR_ARG, "argument #%d lacks integer %d", idx, (int)i);
  lua_Integer v = face_checkint(L, -1);
  lua_pop(L, 1);
  return v;
}

// The list at idx, n integers, in scratch.
static uint64_t *check_words(lua_State *L, Ctx *cx, int idx, size_t n) {
  face_checktype(L, idx, LUA_TTABLE);
  if (n > MAX_WORDS) face_error(L, ERR_LIMIT, "at most %d words", MAX_WORDS);
  uint64_t *w = NEW(cx, uint64_t, n + 1);
  for (size_t i = 0; i < n; i++)
    w[i] = (uint64_t)element(L, idx, (lua_Integer)i + 1);
  return w;
}

static uint32_t check_mask(lua_State *L, int idx) {
  return (uint32_t)face_optint(L, idx, 0xffffffff);
}

static void check_lanes32(lua_State *L, int idx, uint32_t addr[32]) {
  face_checktype(L, idx, LUA_TTABLE);
  for (int l = 0; l < 32; l++) addr[l] = (uint32_t)element(L, idx, l + 1);
}

static void check_lanes64(lua_State *L, int idx, uint64_t addr[32]) {
  face_checktype(L, idx, LUA_TTABLE);
  for (int l = 0; l < 32; l++) addr[l] = (uint64_t)element(L, idx, l + 1);
}

// ---- matrix instructions ----

// mma_dot(kind, {a bits}, {b bits}, c bits) -> bits
static int l_mma_dot(lua_State *L) {
  Ctx *cx = face_enter(L);
  SimMma m = check_kind(L, 1);
  uint64_t *a = check_words(L, cx, 2, (size_t)m.k);
  uint64_t *b = check_words(L, cx, 3, (size_t)m.k);
  uint64_t c = (uint64_t)face_checkint(L, 4);
  lua_pushinteger(L, (lua_Integer)simmma_dot(&m, a, b, c));
  return 1;
}

static float *widened(Ctx *cx, DType t, const uint64_t *bits, size_t n) {
  float *x = NEW(cx, float, n + 1);
  for (size_t i = 0; i < n; i++) x[i] = dtype_to_float(t, bits[i]);
  return x;
}

static int16_t *int_values(Ctx *cx, DType t, const uint64_t *bits,
                           size_t n) {
  int16_t *x = NEW(cx, int16_t, n + 1);
  for (size_t i = 0; i < n; i++) x[i] = (int16_t)dtype_to_double(t, bits[i]);
  return x;
}

static double *double_values(Ctx *cx, const uint64_t *bits, size_t n) {
  double *x = NEW(cx, double, n + 1);
  memcpy(x, bits, n * sizeof *x);
  return x;
}

// 32 bits a word, k of them a row.
static uint32_t *bit_words(Ctx *cx, const uint64_t *bits, size_t n) {
  uint32_t *x = arena_zero(cx, &cx->scratch, (n / 32 + 1) * sizeof *x);
  for (size_t i = 0; i < n; i++)
    x[i / 32] |= (uint32_t)(bits[i] & 1) << (i % 32);
  return x;
}

static void tile_any(Ctx *cx, const SimMma *m, int M, int N,
                     const uint64_t *a, const uint64_t *b, uint64_t *c) {
  size_t na = (size_t)(M * m->k), nb = (size_t)(N * m->k);
  size_t nc = (size_t)(M * N);
  if (m->c == DT_F64) {
    double *d = double_values(cx, c, nc);
    simmma_tile_f64(m, M, N, double_values(cx, a, na),
                    double_values(cx, b, nb), d, d);
    memcpy(c, d, nc * sizeof *d);
  } else if (m->c == DT_I32) {
    int32_t *d = NEW(cx, int32_t, nc + 1);
    for (size_t i = 0; i < nc; i++) d[i] = (int32_t)(uint32_t)c[i];
    if (m->a == DT_B1)
      simmma_tile_bit(m, M, N, bit_words(cx, a, na), bit_words(cx, b, nb), d,
                      d);
    else
      simmma_tile_int(m, M, N, int_values(cx, m->a, a, na),
                      int_values(cx, m->b, b, nb), d, d);
    for (size_t i = 0; i < nc; i++) c[i] = (uint32_t)d[i];
  } else {
    float *d = widened(cx, m->c, c, nc);
    simmma_tile(m, M, N, widened(cx, m->a, a, na), widened(cx, m->b, b, nb),
                d, d);
    for (size_t i = 0; i < nc; i++) c[i] = dtype_from_float(m->c, d[i]);
  }
}

// mma_tile(kind, M, N, {A bits, M*k}, {B bits, N*k}, {C bits, M*N}) -> {D}
static int l_mma_tile(lua_State *L) {
  Ctx *cx = face_enter(L);
  SimMma m = check_kind(L, 1);
  lua_Integer M = face_checkint(L, 2), N = face_checkint(L, 3);
  if (M < 1 || N < 1 || M > 256 || N > 256)
    face_error(L, ERR_LIMIT, "tiles of 1 to 256 rows and columns");
  size_t nc = (size_t)(M * N);
  uint64_t *a = check_words(L, cx, 4, (size_t)(M * m.k));
  uint64_t *b = check_words(L, cx, 5, (size_t)(N * m.k));
  uint64_t *c = check_words(L, cx, 6, nc);
  tile_any(cx, &m, (int)M, (int)N, a, b, c);
  lua_createtable(L, (int)nc, 0);
  for (size_t i = 0; i < nc; i++) {
    lua_pushinteger(L, (lua_Integer)c[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

// ---- what the hardware counts ----

static int push_passes(lua_State *L, SimPasses p) {
  lua_pushinteger(L, p.wavefronts);
  lua_pushinteger(L, p.least);
  return 2;
}

// A width of the given set, a bit mask: 4 | 8 | 16 for instance.
static int check_width(lua_State *L, int idx, int allowed) {
  lua_Integer w = face_checkint(L, idx);
  if (w < 1 || w > 32 || (w & (w - 1)) || !(w & allowed))
    face_error(L, ERR_ARG, "no access of %d bytes", (int)w);
  return (int)w;
}

// shared_wavefronts("load"|"store"|"cp.async", width, {32 addresses}, mask)
// -> wavefronts, fewest
static int l_shared(lua_State *L) {
  static const char *const kinds[] = {"load", "store", "cp.async", NULL};
  uint32_t addr[32];
  SimAccess kind = (SimAccess)luaL_checkoption(L, 1, NULL, kinds);
  int width = check_width(L, 2, 31);
  check_lanes32(L, 3, addr);
  return push_passes(L, simaccess_shared(kind, width, addr,
                                         check_mask(L, 4)));
}

// matrix_wavefronts(num, {8 * num row addresses}) -> wavefronts, fewest
static int l_matrix(lua_State *L) {
  uint32_t addr[32];
  lua_Integer num = face_checkint(L, 1);
  if (num < 1 || num > 4) face_error(L, ERR_ARG, "1 to 4 matrices");
  face_checktype(L, 2, LUA_TTABLE);
  for (int i = 0; i < 8 * num; i++) addr[i] = (uint32_t)element(L, 2, i + 1);
  return push_passes(L, simaccess_matrix((int)num, addr));
}

// cpasync_cg_wavefronts({32 destinations}, {32 sources}, mask)
static int l_cpasync_cg(lua_State *L) {
  uint32_t dst[32];
  uint64_t src[32];
  check_lanes32(L, 1, dst);
  check_lanes64(L, 2, src);
  return push_passes(L, simaccess_cpasync_cg(dst, src, check_mask(L, 3)));
}

// global_sectors(width, {32 addresses}, mask) -> sectors
static int l_global(lua_State *L) {
  uint64_t addr[32];
  int width = check_width(L, 1, 63);
  check_lanes64(L, 2, addr);
  lua_pushinteger(L, simaccess_global(width, addr, check_mask(L, 3)));
  return 1;
}

// ---- conversions ----

// to_bits(dtype, number) -> raw bits of the number rounded to the type
static int l_to_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  uint64_t u;
  if (lua_isinteger(L, 2) && dtype_is_int(t) && dtype_bits(t) == 64)
    u = (uint64_t)lua_tointeger(L, 2);
  else
    u = dtype_from_double(t, face_checknum(L, 2));
  lua_pushinteger(L, (lua_Integer)u);
  return 1;
}

// from_bits(dtype, integer) -> the value of raw bits
static int l_from_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  uint64_t u = (uint64_t)face_checkint(L, 2);
  if (dtype_is_int(t) && dtype_bits(t) == 64)
    lua_pushinteger(L, (lua_Integer)u);
  else if (dtype_is_int(t) && dtype_bits(t) < 64)
    lua_pushinteger(L, (lua_Integer)dtype_to_double(t, u));
  else
    lua_pushnumber(L, dtype_to_double(t, u));
  return 1;
}

// float_to_bits(dtype, f32 bits) -> bits: the path that starts from f32
static int l_float_to_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  float x = dtype_to_float(DT_F32, (uint64_t)face_checkint(L, 2));
  lua_pushinteger(L, (lua_Integer)dtype_from_float(t, x));
  return 1;
}

// bits_to_float(dtype, bits) -> f32 bits
static int l_bits_to_float(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  float x = dtype_to_float(t, (uint64_t)face_checkint(L, 2));
  lua_pushinteger(L, (lua_Integer)dtype_from_float(DT_F32, x));
  return 1;
}

// pack(dtype, {bits ...}) -> string, unpack(dtype, string, n) -> {bits ...}
static int l_pack(lua_State *L) {
  Ctx *cx = face_enter(L);
  DType t = face_check_dtype(L, 1);
  face_checktype(L, 2, LUA_TTABLE);
  size_t n = lua_rawlen(L, 2), bytes = (n * (size_t)dtype_bits(t) + 7) / 8;
  uint64_t *w = check_words(L, cx, 2, n);
  void *p = arena_zero(cx, &cx->scratch, bytes + 1);
  for (size_t i = 0; i < n; i++) dtype_store(t, p, i, w[i]);
  lua_pushlstring(L, p, bytes);
  return 1;
}

static int l_unpack(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  size_t len;
  const char *s = face_checklstr(L, 2, &len);
  lua_Integer n = face_checkint(L, 3);
  if (n < 0 || n > MAX_WORDS ||
      ((size_t)n * (size_t)dtype_bits(t) + 7) / 8 > len)
    face_error(L, ERR_ARG, "the string holds fewer elements");
  lua_createtable(L, (int)n, 0);
  for (lua_Integer i = 0; i < n; i++) {
    lua_pushinteger(L, (lua_Integer)dtype_load(t, s, (size_t)i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

// dtype(name or alias) -> the element type, or nil
static int l_find_dtype(lua_State *L) {
  DType t = dtype_find(face_checkstr(L, 1));
  if (t == DT_NONE) lua_pushnil(L);
  else face_push_dtype(L, t);
  return 1;
}

void simlib_open(lua_State *L) {
  static const luaL_Reg conversions[] = {
    {"to_bits(dtype, x)", l_to_bits}, {"from_bits(dtype, bits)", l_from_bits},
    {"find_dtype", l_find_dtype}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"mma_dot", l_mma_dot}, {"mma_tile", l_mma_tile},
    {"shared_wavefronts", l_shared}, {"matrix_wavefronts", l_matrix},
    {"cpasync_cg_wavefronts", l_cpasync_cg}, {"global_sectors", l_global},
    {"float_to_bits", l_float_to_bits}, {"bits_to_float", l_bits_to_float},
    {"pack", l_pack}, {"unpack", l_unpack}, {NULL, NULL}};
  face_setfuncs(L, conversions);
  lua_newtable(L);
  face_setfuncs(L, funcs);
  lua_setfield(L, -2, "sim");
}
