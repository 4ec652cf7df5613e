// What the faces of the GPU share (gpuhandle.c), and what they have of one
// another: gpulib.c (streams, events, kernels), devlib.c (memory, where tensors
// live), blaslib.c, graphlib.c and recordlib.c.
#ifndef CUTE_GPULIB_H
#define CUTE_GPULIB_H

#include "bind/buflib.h"
#include "gpu/graph.h"

#define MT_GPU "cute.gpu"
#define MT_GPUFN "cute.gpufn"
#define MT_EVENT "cute.event"
#define MT_BLAS "cute.blas"
#define MT_GRAPH "cute.graph"

// nil, message of what was asked for; misuse raises.
int gpulib_failed(lua_State *L, const Why *w);
// true, or an error: what is written as a statement nobody looks at twice.
int gpulib_done(lua_State *L, bool ok, const Why *w);

Gpu *gpulib_check(lua_State *L, int idx);
// Pushes the one object of a GPU; false: there is none.
bool gpulib_open_gpu(lua_State *L, lua_Integer ordinal, Why *w);
// A handle of the GPU at a stack index, closed as yet, which it keeps alive:
// the struct of this type's metatable, which begins with a GpuOwned.
void *gpulib_handle(lua_State *L, int gpu, size_t size, const char *tname);
int gpulib_times(lua_State *L, int idx);  // a count of launches
GpuStream *gpulib_stream(lua_State *L, int idx);  // NULL: none is said
// `who` begins to run, from the script's line.
void gpulib_ran(lua_State *L, Gpu *g, const char *who);
// Registry: a list of those objects; in it a list of streams, of the capture.
#define GPULIB_KEPT "cute.kept"
#define GPULIB_BRANCHES "streams"
// While a graph of g is captured it keeps the object at a stack index alive.
void gpulib_keep(lua_State *L, const Gpu *g, int idx);
// The same of a stream that joins it, until the capture ends.
void gpulib_joins(lua_State *L, const Gpu *g, int idx);
const char *gpulib_name(const Gpu *g, char name[16]);  // "gpu", "gpu:1"

// devlib.c
// A new buffer of the GPU at a stack index, pushed; NULL: the reason.
DevBuf *devlib_new(lua_State *L, int gpu, DType t, size_t count, Why *w);
DevBuf *devlib_check(lua_State *L, int idx);  // open
// The place that the value at idx names ("gpu:1", a device, nil: none said):
// pushes its GPU, or nil for the host.
Gpu *devlib_place(lua_State *L, int idx);
// Replaces the host tensor at idx by the same on the GPU at `gpu`.
void devlib_move(Ctx *cx, lua_State *L, int idx, int gpu);
void devlib_push_device(lua_State *L, int idx);  // of the tensor: its name
void devlib_refuse_copy(lua_State *L);  // in a graph, of memory that may move
void devlib_set(lua_State *L, DevBuf *b, uint64_t bits);  // all elements
// Sets the elements of a tensor of a GPU; those of a view with gaps through
// the host.
void devlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t,
                 uint64_t bits);
// Pins the memory of the host buffer at idx, which buflib_new_pages made.
void devlib_pin(lua_State *L, int idx, Gpu *g);
int devlib_buffer(lua_State *L);  // gpu:buffer(...)
extern const luaL_Reg devlib_methods[];  // of tensors

// blaslib.c: methods of a GPU, and of its products
int blaslib_cublas(lua_State *L);
int blaslib_cublaslt(lua_State *L);
int blaslib_first(lua_State *L);
int blaslib_version(lua_State *L);
int blaslib_run(lua_State *L);
int blaslib_run_n(lua_State *L);
int blaslib_close(lua_State *L);

// recordlib.c
// Is this call, with its arguments, recorded for a graph of the simulator?
// Then it is not done now.
bool recordlib_recorded(lua_State *L);
bool recordlib_recording(lua_State *L);
// Records a method of the object below the n - 1 arguments on top; pops all.
void recordlib_call(lua_State *L, const char *method, int n);

#endif
