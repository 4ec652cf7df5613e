// The Lua face of tensor maps.
#include "bind/face.h"

#include "base/tensormap.h"

// ---- parameters by the driver's numbers ----

// Up to n integers of list k of the table at 1; what is missing stays.
static void read_list(lua_State *L, const char *k, int64_t *out, int n) {
  lua_getfield(L, 1, k);
  for (int i = 0; i < n && lua_istable(L, -1); i++) {
    if (lua_geti(L, -1, i + 1) != LUA_TNIL) out[i] = face_checkint(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static TensorMap read_parameters(lua_State *L) {
  TensorMap m = {.type = face_get_int(L, 1, "type", 0),
                 .rank = face_get_int(L, 1, "rank", 0),
                 .address = (uint64_t)face_get_int(L, 1, "address", 0),
                 .interleave = face_get_int(L, 1, "interleave", 0),
                 .swizzle = face_get_int(L, 1, "swizzle", 0),
                 .l2 = face_get_int(L, 1, "l2", 0),
                 .fill = face_get_int(L, 1, "fill", 0),
                 .channels = face_get_int(L, 1, "channels", 0),
                 .pixels = face_get_int(L, 1, "pixels", 0),
                 .im2col = face_get_bool(L, 1, "im2col")};
  read_list(L, "extent", m.extent, TENSORMAP_RANK);
  read_list(L, "stride", m.stride, TENSORMAP_RANK - 1);
  read_list(L, "box", m.box, TENSORMAP_RANK);
  read_list(L, "step", m.step, TENSORMAP_RANK);
  read_list(L, "lower", m.lower, TENSORMAP_RANK - 2);
  read_list(L, "upper", m.upper, TENSORMAP_RANK - 2);
  return m;
}

// encode_tensor_map(parameters) -> its 16 words; the fields are those of
// TensorMap (base/tensormap.h). Raises the rule that they break.
static int l_encode_tensor_map(lua_State *L) {
  face_enter(L);
  face_checktype(L, 1, LUA_TTABLE);
  TensorMap m = read_parameters(L);
  uint64_t words[TENSORMAP_WORDS];
  Why why;
  if (!tensormap_check(&m, &why)) face_error(L, why.kind, "%s", why.msg);
  tensormap_encode(&m, words);
  lua_createtable(L, TENSORMAP_WORDS, 0);
  for (int i = 0; i < TENSORMAP_WORDS; i++) {
    lua_pushinteger(L, (lua_Integer)words[i]);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

void tmalib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"encode_tensor_map", l_encode_tensor_map}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
