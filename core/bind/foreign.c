// Memory and streams of a GPU that belong to the application which embeds
// cutelua.
#include "bind/foreign.h"

void foreign_buffer(lua_State *L, int ordinal, DType t, void *p, size_t count) {
  (void)t, (void)p, (void)count;
  face_error(L, ERR_NOGPU, "gpu:%d", ordinal);
}
void foreign_stream(lua_State *L, int ordinal, void *stream) {
  (void)stream;
  face_error(L, ERR_NOGPU, "gpu:%d", ordinal);
}
// SPDX-License-Identifier: MIT
