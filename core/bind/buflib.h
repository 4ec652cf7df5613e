// Host buffers (MT_BUFFER), for the other bindings.
#ifndef CUTE_BUFLIB_H
#define CUTE_BUFLIB_H

#include "bind/face.h"

// buflib_new pushes a new host buffer of `count` elements of type t.
// buflib_check returns the open buffer at stack index idx. buflib_count returns
// the Lua argument at idx as a number of elements, 0 or more.
HostBuf *buflib_new(lua_State *L, DType t, size_t count);
HostBuf *buflib_new_pages(lua_State *L, DType t, size_t count);
HostBuf *buflib_check(lua_State *L, int idx);
size_t buflib_count(lua_State *L, int idx);
// Raises the error that the memory cannot be written, if `readonly`.
void buflib_check_writable(lua_State *L, bool readonly);
// Returns n as a count of elements. Raises an error if no memory can hold that
// many.
size_t buflib_size(lua_State *L, int64_t n);

// buflib_field implements b[k] for a host or GPU buffer b at stack index 1 and
// a key k at 2. It pushes a field or method that both kinds of buffers have, or
// raises an error. buflib_text pushes the text of a buffer.
int buflib_field(lua_State *L, DType t, size_t count, size_t bytes,
                 bool closed);
int buflib_text(lua_State *L, DType t, size_t count, bool closed);

// Returns the number (HostBuf.serial) of the buffer created last.
uint64_t buflib_newest(void);

// Returns the address of the open buffer at idx, and records that kernels may
// from now on access the buffer through its address.
lua_Integer buflib_address(lua_State *L, int idx);
// Pushes a list of the open buffers whose addresses were requested. Returns the
// length of the list.
size_t buflib_addressed(lua_State *L);

// Records that the trace has read element i of the host buffer on top as a
// constant of type t. Pops the buffer.
void buflib_note(lua_State *L, DType t, size_t i);

// Pushes the buffer that owns the memory of the buffer at idx. This is the
// buffer itself, unless buflib_reuse gave it the memory of another buffer.
void buflib_push_owner(lua_State *L, int idx);
// Pushes a new buffer on the memory of the buffer at idx, and returns it.
HostBuf *buflib_reuse(lua_State *L, int idx, DType t, size_t count);

// Pushes a buffer on memory at p that another library owns. The caller sets the
// buffer's field `shared`. When its last owner drops it, the memory is
// released.
HostBuf *buflib_foreign(lua_State *L, DType t, size_t count, void *p);
// Adds an owner to the memory of a buffer, which must own its memory. The new
// owner calls shared_drop on the result when it no longer needs the memory.
// Returns NULL if memory is exhausted.
struct Shared *buflib_share(HostBuf *b);

// Informs the garbage collector about memory that it does not manage.
void buflib_grew(lua_State *L, size_t bytes);

#endif
// SPDX-License-Identifier: MIT
