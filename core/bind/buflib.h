// Host buffers (MT_BUFFER), for the other bindings.
#ifndef CUTE_BUFLIB_H
#define CUTE_BUFLIB_H

#include "bind/face.h"

// buflib_new pushes a new host buffer of `count` elements of type t.
// buflib_check returns the open buffer at stack index idx. buflib_count returns
// the Lua argument at idx, which must be a number of elements, 0 or more.
HostBuf *buflib_new(lua_State *L, DType t, size_t count);
HostBuf *buflib_new_pages(lua_State *L, DType t, size_t count);
HostBuf *buflib_check(lua_State *L, int idx);
size_t buflib_count(lua_State *L, int idx);
// If `readonly`, raises the error that the memory cannot be written.
void buflib_check_writable(lua_State *L, bool readonly);
// Returns n, a number of elements. Raises an error if no memory can hold that
// many.
size_t buflib_size(lua_State *L, int64_t n);

// buflib_field implements b[k] for fields and methods that host and GPU buffers
// share. The buffer is at stack index 1, and the key at 2. It pushes the field
// or method, or raises an error. buflib_text pushes the text of a buffer.
int buflib_field(lua_State *L, DType t, size_t count, size_t bytes,
                 bool closed);
int buflib_text(lua_State *L, DType t, size_t count, bool closed);

// Returns the number (HostBuf.serial) of the newest buffer.
uint64_t buflib_newest(void);

// Returns the address of the open buffer at idx. Also records that kernels may
// access the buffer by its address from now on.
lua_Integer buflib_address(lua_State *L, int idx);
// Pushes a list of the open buffers whose addresses were requested. Returns the
// length of the list.
size_t buflib_addressed(lua_State *L);

// Records that the trace has read element i of the host buffer on top, as a
// constant of type t. Pops the buffer.
void buflib_note(lua_State *L, DType t, size_t i);

// Pushes the owner of the memory of the buffer at idx. This is the buffer
// itself, unless buflib_reuse made it on the memory of another buffer.
void buflib_push_owner(lua_State *L, int idx);
// Pushes a new buffer that uses the memory of the buffer at idx, and returns
// it.
HostBuf *buflib_reuse(lua_State *L, int idx, DType t, size_t count);

// Pushes a buffer on memory at p that another library owns. The caller must set
// the buffer's field `shared`, which releases the memory when its last owner
// drops it.
HostBuf *buflib_foreign(lua_State *L, DType t, size_t count, void *p);
// Adds an owner to the memory of a buffer that owns its memory. The new owner
// must call shared_drop on the result when it no longer needs the memory.
// Returns NULL if memory is exhausted.
struct Shared *buflib_share(HostBuf *b);

// Tells the garbage collector that `bytes` bytes were allocated outside of Lua.
void buflib_grew(lua_State *L, size_t bytes);

#endif
// SPDX-License-Identifier: MIT
