// Tensors of the application on a GPU, which cute.from_dlpack imports. The
// structs are those of DLPack 1.
#include "library/foreign.h"

#include <string.h>

#include "library/call.h"

enum { DLPACK_MAJOR = 1, ON_CUDA = 2 };

typedef struct Managed {
  uint32_t version[2];
  void *owner;
  void (*deleter)(struct Managed *);
  uint64_t flags;
  void *data;
  int32_t device[2];  // kind, number
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *stride;
  uint64_t byte_offset;
  int64_t extents[2 * MOST_RANK];
} Managed;

// Codes of element types in DLPack.
static const struct { DType t; uint8_t code; } codes[] = {
  {DT_BOOL, 6}, {DT_I8, 0}, {DT_I16, 0}, {DT_I32, 0}, {DT_I64, 0}, {DT_U8, 1},
  {DT_U16, 1}, {DT_U32, 1}, {DT_U64, 1}, {DT_F16, 2}, {DT_F32, 2}, {DT_F64, 2},
  {DT_BF16, 4}, {DT_E4M3, 10}, {DT_E5M2, 12}, {DT_UE8M0, 14}, {DT_E2M3, 15},
  {DT_E3M2, 16}, {DT_E2M1, 17}, {DT_I4, 0}, {DT_U4, 1}};

static void release(Managed *m) { base_free(m); }

static uint8_t code_of(lua_State *L, DType t) {
  for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
    if (codes[k].t == t) return codes[k].code;
  face_error(L, ERR_TYPE, "a tensor on a GPU cannot have elements of %s",
             dtype_name(t));
}

void foreign_tensor(lua_State *L, const cutelua_tensor *t, DType type,
                    const int64_t *shape, const int64_t *stride) {
  uint8_t code = code_of(L, type);
  size_t n = (size_t)t->rank;
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.core");
  if (lua_getfield(L, -1, "from_dlpack") != LUA_TFUNCTION)
    face_error(L, ERR_NOGPU, "this version of libcutelua takes no tensors in "
               "memory of a GPU");
  lua_remove(L, -2);
  Managed *m = base_zeros(sizeof *m);
  if (!m) face_error(L, ERR_MEMORY, "out of memory");
  *m = (Managed){.version = {DLPACK_MAJOR, 0}, .deleter = release,
                 .data = t->data, .device = {ON_CUDA, t->device},
                 .ndim = t->rank, .code = code,
                 .bits = type == DT_BOOL ? 8 : (uint8_t)dtype_bits(type),
                 .lanes = 1};
  m->shape = m->extents;
  m->stride = m->extents + n;
  memcpy(m->shape, shape, n * sizeof *shape);
  memcpy(m->stride, stride, n * sizeof *stride);
  lua_pushlightuserdata(L, m);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK) return;
  release(m);  // the tensor does not exist, so it has not taken m
  lua_error(L);
}
// SPDX-License-Identifier: MIT
