// Lua bindings of CUDA graphs. A graph records the launches and copies of a Lua
// function, and launches all of them at once.
#include "bind/gpulib.h"

#include <string.h>

// Metatable of the userdata of a capture. Its __close ends the capture.
#define MT_CAPTURE "cute.capture"

static GpuGraph *check_graph(lua_State *L, int idx) {
  return face_check(L, idx, MT_GRAPH, "graph");
}

// Abandons the capture of the userdata's graph if it has not ended, as after an
// error.
static int capture_close(lua_State *L) {
  GpuGraph *x = *(GpuGraph **)lua_touserdata(L, 1);
  if (x->own.gpu->capture == x) graph_abandon(x);
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, GPULIB_KEPT);
  return 0;
}

// Captures the launches of the Lua function at stack index f in a new graph of
// the GPU at stack index `gpu`, and pushes the graph. The stream at stack index
// `stream` becomes the graph's default stream. `old` is the graph to update
// (graph_end), or NULL.
static GpuGraph *capture(lua_State *L, int gpu, int f, int stream,
                         GpuGraph *old) {
  GpuGraph *x = gpulib_handle(L, gpu, sizeof *x, MT_GRAPH);
  int at = lua_gettop(L);
  Gpu *g = x->own.gpu;
  Why w;
  if (lua_getfield(L, LUA_REGISTRYINDEX, GPULIB_KEPT) != LUA_TNIL)
    face_error(L, ERR_CAPTURE, "a graph cannot be captured inside the capture "
               "of another");
  lua_pop(L, 1);
  gpulib_done(L, graph_begin(x, g, gpulib_stream(L, stream), &w), &w);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, at, 2);
  lua_setfield(L, LUA_REGISTRYINDEX, GPULIB_KEPT);
  *(GpuGraph **)lua_newuserdatauv(L, sizeof x, 0) = x;
  luaL_setmetatable(L, MT_CAPTURE);
  lua_toclose(L, -1);
  lua_pushvalue(L, f);
  lua_call(L, 0, 0);
  if (!gpu_owns(&(GpuOwned){g, x->own.epoch, false}))
    face_error(L, ERR_DRIVER, "the context was lost while the graph was "
               "captured: %s", g->lost);
  gpulib_done(L, graph_end(x, old, &w), &w);
  lua_getiuservalue(L, at, 2);
  lua_pushnil(L);
  lua_setfield(L, -2, GPULIB_BRANCHES);
  lua_settop(L, at);
  return x;
}

// gpu:capture(f [, stream]) -> a graph of the launches of f()
static int gpu_capture(lua_State *L) {
  gpulib_check(L, 1);
  face_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 3);
  capture(L, 1, 2, 3, NULL);
  return 1;
}

// graph:update(f): captures f() again, and replaces the graph's work. This is
// fast if only the arguments of launches differ.
static int l_update(lua_State *L) {
  GpuGraph *x = check_graph(L, 1);
  face_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_pushnil(L);            // stack index 3: nil, because no stream is given
  lua_getiuservalue(L, 1, 1);  // stack index 4: the GPU
  GpuGraph *y = capture(L, 4, 2, 3, x), was = *x;  // stack index 5
  *x = *y, *y = was;
  lua_getiuservalue(L, 5, 2);
  lua_setiuservalue(L, 1, 2);  // the objects that the new graph keeps alive
  graph_close(y);
  lua_settop(L, 1);
  return 1;
}

static int launch(lua_State *L, int n, int stream) {
  GpuGraph *x = check_graph(L, 1);
  Gpu *g = x->own.gpu;
  const GpuStream *s = gpulib_stream(L, stream);
  Why w;
  face_outside(L);
  if (!g->capture) gpulib_ran(L, g, x->name);
  return gpulib_done(L, graph_launch(x, s, n, &w), &w);
}

static int l_launch(lua_State *L) { return launch(L, 1, 2); }

static int l_launch_n(lua_State *L) {
  return launch(L, gpulib_times(L, 2), 3);
}

static int l_close(lua_State *L) {
  graph_close(check_graph(L, 1));
  return 0;
}

// Implements the fields of a graph.
// - nodes: number of launches, copies and fills.
// - bytes: amount of memory that the graph keeps.
// - device: name of the graph's GPU.
static int l_index(lua_State *L) {
  const GpuGraph *x = check_graph(L, 1);
  const char *k = face_checkstr(L, 2);
  char name[16];
  if (strcmp(k, "nodes") == 0)
    lua_pushinteger(L, (lua_Integer)x->nodes);
  else if (strcmp(k, "bytes") == 0)
    lua_pushinteger(L, (lua_Integer)graph_bytes(x));
  else if (strcmp(k, "device") == 0)
    lua_pushstring(L, gpulib_name(x->own.gpu, name));
  else if (luaL_getmetafield(L, 1, k) == LUA_TNIL)
    face_nofield(L, 0, "nodes bytes device");
  return 1;
}

static int l_tostring(lua_State *L) {
  const GpuGraph *x = check_graph(L, 1);
  lua_pushfstring(L, "%s%s", *x->name ? x->name : "graph",
                  gpu_owns(&x->own) ? "" : " (closed)");
  return 1;
}

// capturing() -> whether a graph of a GPU is being captured
static int l_capturing(lua_State *L) {
  lua_pushboolean(L, lua_getfield(L, LUA_REGISTRYINDEX, GPULIB_KEPT)
                       != LUA_TNIL);
  return 1;
}

void graphlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"capturing", l_capturing}, {NULL, NULL}};
  static const luaL_Reg graph[] = {
    {"launch(stream?)", l_launch}, {"launch_n(n, stream?)", l_launch_n},
    {"update(f)", l_update}, {"close()", l_close}, {"__gc", l_close},
    {"__close", l_close}, {"__index", l_index}, {"__tostring", l_tostring},
    {NULL, NULL}};
  static const luaL_Reg under_way[] = {{"__close", capture_close},
                                       {NULL, NULL}};
  static const luaL_Reg of_gpu[] = {{"capture(f, stream?)", gpu_capture},
                                    {NULL, NULL}};
  face_newtype(L, MT_GRAPH, graph);
  face_newtype(L, MT_CAPTURE, under_way);
  luaL_getmetatable(L, MT_GPU);
  face_setfuncs(L, of_gpu);
  lua_pop(L, 3);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
