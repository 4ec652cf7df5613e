// Tensors of the application in GPU memory, imported by cute.from_dlpack.
#include "library/foreign.h"

#include <string.h>

#include "bind/dlpacklib.h"
#include "library/call.h"

typedef struct Managed {
  DLManagedTensorVersioned m;
  int64_t extents[2 * MOST_RANK];  // the extents, then the strides
} Managed;

static void release(DLManagedTensorVersioned *m) { base_free(m); }

void foreign_tensor(lua_State *L, const cutelua_tensor *t, DType type,
                    const int64_t *shape, const int64_t *stride) {
  // DLPack has no tf32, so the elements would be f32.
  DLDataType element;
  if (type == DT_TF32 || !dlpacklib_type(type, &element))
    face_error(L, ERR_TYPE, "a tensor on a GPU cannot have elements of %s",
               dtype_name(type));
  size_t n = (size_t)t->rank;
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.core");
  lua_getfield(L, -1, "from_dlpack");
  lua_remove(L, -2);
  Managed *m = base_zeros(sizeof *m);
  if (!m) face_error(L, ERR_MEMORY, "out of memory");
  m->m = (DLManagedTensorVersioned){
    .version = {DLPACK_MAJOR, DLPACK_MINOR}, .deleter = release,
    .t = {.data = t->data, .device = {DL_CUDA, t->device}, .ndim = t->rank,
          .dtype = element, .shape = m->extents, .strides = m->extents + n}};
  memcpy(m->extents, shape, n * sizeof *shape);
  memcpy(m->extents + n, stride, n * sizeof *stride);
  lua_pushlightuserdata(L, m);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK) return;
  // No tensor was created, so m still belongs to this function.
  release(&m->m);
  lua_error(L);
}
// SPDX-License-Identifier: MIT
