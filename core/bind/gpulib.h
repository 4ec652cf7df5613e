// Shared by the bindings of the GPU (gpuhandle.c), and what they export:
// gpulib.c (streams, events, kernels), devlib.c (memory, devices of tensors),
// blaslib.c, graphlib.c and recordlib.c.
#ifndef CUTE_GPULIB_H
#define CUTE_GPULIB_H

#include "bind/buflib.h"
#include "gpu/graph.h"

#define MT_GPU "cute.gpu"
#define MT_GPUFN "cute.gpufn"
#define MT_EVENT "cute.event"
#define MT_BLAS "cute.blas"
#define MT_GRAPH "cute.graph"

// Returns nil, message; raises an error for misuse.
int gpulib_failed(lua_State *L, const Why *w);
// Returns true, or raises an error, for calls whose result is usually ignored.
int gpulib_done(lua_State *L, bool ok, const Why *w);

Gpu *gpulib_check(lua_State *L, int idx);
// Pushes the object of a GPU; false: there is none.
bool gpulib_open_gpu(lua_State *L, lua_Integer ordinal, Why *w);
// Creates a closed handle of the GPU at a stack index, which it keeps alive: a
// struct that starts with a GpuOwned, with metatable tname.
void *gpulib_handle(lua_State *L, int gpu, size_t size, const char *tname);
int gpulib_times(lua_State *L, int idx);  // checks a number of launches
GpuStream *gpulib_stream(lua_State *L, int idx);  // the stream argument; NULL:
                                                  // none is given
// Records that `who` starts to run, at the script's line.
void gpulib_ran(lua_State *L, Gpu *g, const char *who);
// Registry: a list of objects kept alive by the capture, with a list of its
// streams.
#define GPULIB_KEPT "cute.kept"
#define GPULIB_BRANCHES "streams"
// Keeps the object at a stack index alive for a graph of g that is being
// captured.
void gpulib_keep(lua_State *L, const Gpu *g, int idx);
// Keeps a stream that joins the capture alive until the capture ends.
void gpulib_joins(lua_State *L, const Gpu *g, int idx);
const char *gpulib_name(const Gpu *g, char name[16]);  // returns "gpu" or
                                                       // "gpu:1"

// devlib.c
// Pushes a new buffer of the GPU at a stack index; NULL: the reason is in w.
DevBuf *devlib_new(lua_State *L, int gpu, DType t, size_t count, Why *w);
DevBuf *devlib_check(lua_State *L, int idx);  // checks that it is open
// Reads the device that the value at idx names ("gpu:1", a device, nil: none):
// pushes its GPU, or nil for the host.
Gpu *devlib_place(lua_State *L, int idx);
// Replaces the host tensor at idx by a copy on the GPU at `gpu`.
void devlib_move(Ctx *cx, lua_State *L, int idx, int gpu);
void devlib_push_device(lua_State *L, int idx);  // name of the tensor's device
void devlib_refuse_copy(lua_State *L);  // a graph needs pinned memory
void devlib_set(lua_State *L, DevBuf *b, uint64_t bits);  // sets all elements
// Sets the elements of a GPU tensor; views with gaps are copied through the
// host.
void devlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t,
                 uint64_t bits);
// Pins the memory of the host buffer at idx, created by buflib_new_pages.
void devlib_pin(lua_State *L, int idx, Gpu *g);
int devlib_buffer(lua_State *L);  // gpu:buffer(...)
extern const luaL_Reg devlib_methods[];  // methods of tensors

// blaslib.c: methods of a GPU, and of its products
int blaslib_cublas(lua_State *L);
int blaslib_cublaslt(lua_State *L);
int blaslib_first(lua_State *L);
int blaslib_version(lua_State *L);
int blaslib_run(lua_State *L);
int blaslib_run_n(lua_State *L);
int blaslib_close(lua_State *L);

// recordlib.c
// Reports whether this call, with its arguments, was recorded for a graph of
// the simulator. Then it must not be executed now.
bool recordlib_recorded(lua_State *L);
bool recordlib_recording(lua_State *L);
// Records a method of the object below the n - 1 arguments on top; pops all of
// them.
void recordlib_call(lua_State *L, const char *method, int n);

#endif
// SPDX-License-Identifier: MIT
