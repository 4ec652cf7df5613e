// Declarations that the bindings of the GPU share. They belong to gpuhandle.c,
// gpulib.c (streams, events, kernels), devlib.c (memory, devices of tensors),
// blaslib.c, graphlib.c, recordlib.c and dlpacklib.c.
#ifndef CUTE_GPULIB_H
#define CUTE_GPULIB_H

#include "bind/buflib.h"
#include "gpu/graph.h"

#define MT_GPU "cute.gpu"
#define MT_GPUFN "cute.gpufn"
#define MT_EVENT "cute.event"
#define MT_BLAS "cute.blas"
#define MT_GRAPH "cute.graph"

// Pushes nil and the message of failure w, and returns 2. If w is a mistake of
// the script, raises an error instead.
int gpulib_failed(lua_State *L, const Why *w);
// Returns true if `ok`, else raises the error w. Used for calls whose results
// scripts usually ignore.
int gpulib_done(lua_State *L, bool ok, const Why *w);

Gpu *gpulib_check(lua_State *L, int idx);
// Pushes the object of the GPU with this number. Returns false if there is no
// such GPU.
bool gpulib_open_gpu(lua_State *L, lua_Integer ordinal, Why *w);
// Returns the GPU with this number if gpulib_open_gpu has opened it, or NULL.
Gpu *gpulib_known(lua_State *L, lua_Integer ordinal);
// Pushes a userdata with metatable tname for a struct that begins with a
// GpuOwned. The struct is marked as closed. The userdata keeps the GPU at stack
// index `gpu` alive.
void *gpulib_handle(lua_State *L, int gpu, size_t size, const char *tname);
// Returns the argument at idx as a number of launches, or raises an error.
int gpulib_times(lua_State *L, int idx);
// Returns the stream at idx, or NULL if the argument is nil.
GpuStream *gpulib_stream(lua_State *L, int idx);
// Returns the driver's current context of this thread, or NULL.
CUcontext gpulib_context(void);
// Records that the current line of the script launches the kernel `who`.
void gpulib_ran(lua_State *L, Gpu *g, const char *who);
// Key in the registry of a list of objects, which the graph being captured
// keeps alive. Field GPULIB_BRANCHES of the list has the streams that joined
// the capture.
#define GPULIB_KEPT "cute.kept"
#define GPULIB_BRANCHES "streams"
// If a graph of g is being captured, keeps the object at idx alive as long as
// the graph. This is not necessary for buffers of g: the graph owns their
// memory, and can reuse it after a buffer is collected.
void gpulib_keep(lua_State *L, const Gpu *g, int idx);
// If a graph of g is being captured, adds the stream at idx to the capture. The
// stream is kept alive until the capture ends.
void gpulib_joins(lua_State *L, const Gpu *g, int idx);
// Writes the GPU's name, "gpu" or such as "gpu:1", to `name`, and returns it.
const char *gpulib_name(const Gpu *g, char name[16]);

// devlib.c: pushes a new buffer of the GPU at stack index `gpu`. Returns NULL,
// with the reason in w, if this fails.
DevBuf *devlib_new(lua_State *L, int gpu, DType t, size_t count, Why *w);
DevBuf *devlib_check(lua_State *L, int idx);  // returns the open buffer at idx
// Reads the device at stack index idx: a name such as "gpu:1", a device object,
// or nil for the host. Pushes the device's GPU and returns it. For the host,
// pushes nil and returns NULL.
Gpu *devlib_place(lua_State *L, int idx);
// Replaces the host tensor at idx by a copy on the GPU at stack index `gpu`.
void devlib_move(Ctx *cx, lua_State *L, int idx, int gpu);
// Pushes the name of the device of the tensor at idx.
void devlib_push_device(lua_State *L, int idx);
// Raises the error that a graph can copy only pinned host memory.
void devlib_refuse_copy(lua_State *L);
// Sets all elements of b to the value with these bits.
void devlib_set(lua_State *L, DevBuf *b, uint64_t bits);
// Sets all elements of the GPU tensor t, at idx. If t has gaps, copies it to
// the host and back.
void devlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t,
                 uint64_t bits);
// Pins the memory of the host buffer at idx, which buflib_new_pages created.
void devlib_pin(lua_State *L, int idx, Gpu *g);
int devlib_buffer(lua_State *L);  // gpu:buffer(...)
extern const luaL_Reg devlib_methods[];  // methods of tensors (devlib.c)

// dlpacklib.c: methods of tensors, and gpu:foreign_stream(handle)
extern const luaL_Reg dlpacklib_methods[];
int dlpacklib_stream(lua_State *L);

// blaslib.c: methods of GPUs and of products
int blaslib_cublas(lua_State *L);
int blaslib_cublaslt(lua_State *L);
int blaslib_first(lua_State *L);
int blaslib_version(lua_State *L);
int blaslib_run(lua_State *L);
int blaslib_run_n(lua_State *L);
int blaslib_close(lua_State *L);

// recordlib.c: if a graph of the simulator is being recorded, records this call
// with its arguments and returns true. The caller must then not execute the
// call.
bool recordlib_recorded(lua_State *L);
bool recordlib_recording(lua_State *L);
// Keeps the closed buffer at idx alive for the calls recorded so far. If
// `spare`, tensors recorded later may reuse its memory.
void recordlib_closed(lua_State *L, int idx, bool spare);
// Pushes a new buffer on memory of a buffer that was closed during the
// recording. If no closed buffer fits, pushes nothing and returns false.
bool recordlib_reuse(lua_State *L, DType t, size_t count);
// Records a call of a method, and pops the n values on top of the stack: the
// object and n - 1 arguments.
void recordlib_call(lua_State *L, const char *method, int n);

#endif
// SPDX-License-Identifier: MIT
