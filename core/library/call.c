// Calls of libcutelua: kernels, functions and operations with arguments from C.
// Host tensors are copied to buffers before a call, and back afterwards,
// because the simulator needs aligned memory with some accessible bytes after
// its end.
#define _POSIX_C_SOURCE 200809L
#include "library/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/buflib.h"
#include "bind/limit.h"
#include "library/foreign.h"

// A range of the application's memory that one tensor or several overlapping
// tensors occupy, and the buffer object that holds its copy.
typedef struct Span {
  uintptr_t from, to;
  DType t;
  HostBuf *buffer;
  int at;  // stack index of the buffer
} Span;

// A tensor that is an argument or receives a result.
typedef struct Given {
  const cutelua_tensor *tensor;
  DType t;
  int64_t shape[MOST_RANK], stride[MOST_RANK];
  // number of elements in memory from the tensor's first element to its last
  // one, including gaps
  size_t reach;
  Span *span;    // NULL: the tensor has no elements, or is on a GPU
  size_t offset;  // index of the first element in the buffer
} Given;

typedef struct Call {
  Task *task;
  Given *given;  // the tensors: arguments, then results
  Span *span;    // ranges of host memory
  int nspan;
} Call;

// Raises an error that says that an argument of the C function is invalid.
#define BAD(L, call, ...) \
  ((call)->task->misuse = true, face_error((L), ERR_ARG, __VA_ARGS__))

static const char *place_of(const Call *c, size_t i) {
  return i < c->task->nargs ? "argument" : "result";
}

static size_t number_of(const Call *c, size_t i) {
  return (i < c->task->nargs ? i : i - c->task->nargs) + 1;
}

// ---- descriptions of tensors ----

static void read_shape(lua_State *L, Call *c, size_t i) {
  Given *g = &c->given[i];
  const cutelua_tensor *t = g->tensor;
  const char *what = place_of(c, i);
  size_t n = number_of(c, i);
  if (t->rank < 1 || t->rank > MOST_RANK || !t->shape)
    BAD(L, c, "%s %zu: a tensor needs a shape and a rank from 1 to %d, not %d",
        what, n, MOST_RANK, (int)t->rank);
  int64_t all = 1;
  bool empty = false, large = false;
  for (int k = t->rank - 1; k >= 0; k--) {
    int64_t e = t->shape[k], s = t->stride ? t->stride[k] : all;
    if (e < 0 || s < 0)
      BAD(L, c, "%s %zu: extent %lld and stride %lld of mode %d; both must be "
          "0 or more", what, n, (long long)e, (long long)s, k);
    g->shape[k] = e;
    g->stride[k] = s;
    empty |= e == 0;
    large |= __builtin_mul_overflow(all, e ? e : 1, &all);
  }
  int64_t reach = 1;
  for (int k = 0; k < t->rank && !empty; k++) {
    int64_t step;
    large |= __builtin_mul_overflow(g->shape[k] - 1, g->stride[k], &step) ||
             __builtin_add_overflow(reach, step, &reach);
  }
  if (large || reach > (int64_t)1 << 56)
    BAD(L, c, "%s %zu: the tensor has more than 2^56 elements", what, n);
  g->reach = empty ? 0 : (size_t)reach;
  if (g->reach && !t->data)
    BAD(L, c, "%s %zu: the tensor's memory is NULL", what, n);
  if (g->reach && dtype_bits(g->t) % 8 && all != reach)
    BAD(L, c, "%s %zu: elements of %s must be contiguous", what, n,
        dtype_name(g->t));
}

static void read_tensor(lua_State *L, Call *c, size_t i,
                        const cutelua_tensor *t) {
  Given *g = &c->given[i];
  g->tensor = t;
  g->t = t->dtype ? dtype_find(t->dtype) : DT_NONE;
  if (g->t == DT_NONE || dtype_bits(g->t) > 64)
    BAD(L, c, "%s %zu: a tensor cannot have elements of type %.40s",
        place_of(c, i), number_of(c, i), t->dtype ? t->dtype : "NULL");
  if (t->device < CUTELUA_HOST)
    BAD(L, c, "%s %zu: device %d; CUTELUA_HOST or the number of a GPU is "
        "needed", place_of(c, i), number_of(c, i), (int)t->device);
  if (t->device >= 0 && c->task->state->untrusted)
    BAD(L, c, "%s %zu is on GPU %d, but an untrusted state runs on the "
        "simulator", place_of(c, i), number_of(c, i), (int)t->device);
  read_shape(L, c, i);
}

// ---- memory ----

static size_t bytes_of(const Given *g) {
  return (g->reach * (size_t)dtype_bits(g->t) + 7) / 8;
}

// Adds the host memory of tensor i to the list of spans. Merges all spans that
// overlap this memory.
static void add_span(lua_State *L, Call *c, size_t i) {
  Given *g = &c->given[i];
  if (!g->tensor || !g->reach || g->tensor->device >= 0) return;
  Span s = {.from = (uintptr_t)g->tensor->data, .t = g->t};
  s.to = s.from + bytes_of(g);
  for (int k = 0; k < c->nspan;) {
    Span *o = &c->span[k];
    if (s.to <= o->from || o->to <= s.from) {
      k++;
      continue;
    }
    size_t bits = (size_t)dtype_bits(s.t);
    size_t apart = s.from > o->from ? s.from - o->from : o->from - s.from;
    if (s.t != o->t || apart * 8 % bits)
      BAD(L, c, "%s %zu overlaps the memory of another tensor, whose elements "
          "have another type or other boundaries", place_of(c, i),
          number_of(c, i));
    if (o->from < s.from) s.from = o->from;
    if (o->to > s.to) s.to = o->to;
    *o = c->span[--c->nspan];
    k = 0;
  }
  c->span[c->nspan++] = s;
}

static void find_span(Call *c, size_t i) {
  Given *g = &c->given[i];
  if (!g->tensor || !g->reach || g->tensor->device >= 0) return;
  uintptr_t at = (uintptr_t)g->tensor->data;
  for (int k = 0; k < c->nspan; k++) {
    if (at < c->span[k].from || at >= c->span[k].to) continue;
    g->span = &c->span[k];
    g->offset = (at - g->span->from) * 8 / (size_t)dtype_bits(g->t);
  }
}

// Reports whether a tensor occupies all elements from its first to its last.
// Modes of stride 0 do not count, because they repeat elements.
static bool is_dense(const Given *g) {
  uint64_t n = 1;
  for (int k = 0; k < g->tensor->rank && n < g->reach; k++)
    if (g->stride[k]) n *= (uint64_t)g->shape[k];
  return n >= g->reach;
}

static size_t element(const Given *g, const int64_t *at) {
  size_t x = 0;
  for (int k = 0; k < g->tensor->rank; k++)
    x += (size_t)at[k] * (size_t)g->stride[k];
  return x;
}

static bool next_element(const Given *g, int64_t *at) {
  for (int k = g->tensor->rank - 1; k >= 0; k--) {
    if (!g->stride[k]) continue;
    if (++at[k] < g->shape[k]) return true;
    at[k] = 0;
  }
  return false;
}

// Copies a tensor from the application's memory to its buffer or, with `back`,
// from the buffer to that memory. With `back`, writes only elements that
// differ, because other threads may read tensors that the kernel does not
// change.
static void move_tensor(const Given *g, bool back) {
  if (!g->span) return;
  size_t size = (size_t)dtype_bits(g->t) / 8, bytes = bytes_of(g);
  char *mine = (char *)g->span->buffer->p +
               g->offset * (size_t)dtype_bits(g->t) / 8;
  char *theirs = g->tensor->data;
  if (is_dense(g)) {
    if (!back) memcpy(mine, theirs, bytes);
    else if (memcmp(theirs, mine, bytes) != 0) memcpy(theirs, mine, bytes);
    return;
  }
  int64_t at[MOST_RANK] = {0};
  do {
    size_t x = element(g, at) * size;
    if (!back) memcpy(mine + x, theirs + x, size);
    else if (memcmp(theirs + x, mine + x, size) != 0)
      memcpy(theirs + x, mine + x, size);
  } while (next_element(g, at));
}

// Allocates a buffer for each span, and pushes the buffers.
static void make_buffers(lua_State *L, Call *c) {
  luaL_checkstack(L, c->nspan + 20, "buffers of arguments");
  for (int k = 0; k < c->nspan; k++) {
    Span *s = &c->span[k];
    size_t count = (s->to - s->from) * 8 / (size_t)dtype_bits(s->t);
    s->buffer = buflib_new(L, s->t, count);
    s->buffer->defined = true;
    s->at = lua_gettop(L);
  }
}

// ---- arguments as Lua values ----

static void push_ref(lua_State *L, Call *c, cutelua_ref ref) {
  c->task->misuse = true;
  state_push(c->task->state, L, ref);
  c->task->misuse = false;
}

static void push_list(lua_State *L, const int64_t *p, int n) {
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_pushinteger(L, p[k]);
    lua_rawseti(L, -2, k + 1);
  }
}

static void push_tensor(lua_State *L, Call *c, size_t i) {
  Given *g = &c->given[i];
  if (g->tensor->device >= 0) {
    foreign_tensor(L, g->tensor, g->t, g->shape, g->stride);
    return;
  }
  state_function(L, "tensor");
  if (g->span) lua_pushvalue(L, g->span->at);
  else buflib_new(L, g->t, 0);
  lua_pushinteger(L, (lua_Integer)g->offset);
  push_list(L, g->shape, g->tensor->rank);
  push_list(L, g->stride, g->tensor->rank);
  lua_call(L, 4, 1);
}

static void push_arg(lua_State *L, Call *c, size_t i) {
  const cutelua_arg *a = &c->task->args[i];
  switch (a->type) {
    case CUTELUA_TENSOR: push_tensor(L, c, i); return;
    case CUTELUA_INTEGER: lua_pushinteger(L, a->as.integer); return;
    case CUTELUA_NUMBER: lua_pushnumber(L, a->as.number); return;
    case CUTELUA_BOOLEAN: lua_pushboolean(L, a->as.integer != 0); return;
    case CUTELUA_STRING:
      if (!a->as.string) BAD(L, c, "argument %zu: the string is NULL", i + 1);
      lua_pushstring(L, a->as.string);
      return;
    case CUTELUA_REF:
      push_ref(L, c, a->as.ref);
      return;
  }
  BAD(L, c, "argument %zu has the unknown type %d", i + 1, (int)a->type);
}

// Pushes the arguments, and returns their number. Arguments with names become
// fields of a table, which is the last argument.
static int push_args(lua_State *L, Call *c) {
  const Task *t = c->task;
  int n = 0, named = 0;
  luaL_checkstack(L, (int)t->nargs + 20, "arguments");
  for (size_t i = 0; i < t->nargs; i++) {
    if (t->args[i].name) {
      named++;
      continue;
    }
    push_arg(L, c, i);
    n++;
  }
  if (!named) return n;
  lua_createtable(L, 0, named);
  for (size_t i = 0; i < t->nargs; i++) {
    if (!t->args[i].name) continue;
    push_arg(L, c, i);
    lua_setfield(L, -2, t->args[i].name);
  }
  return n + 1;
}

// Pushes the name of the tensors' GPU, such as "gpu:1", or nil if all tensors
// are on the host.
static void push_place(lua_State *L, const Call *c) {
  for (size_t i = 0; i < c->task->nargs; i++) {
    const cutelua_tensor *t = c->given[i].tensor;
    if (!t || t->device < 0) continue;
    if (t->device) lua_pushfstring(L, "gpu:%d", (int)t->device);
    else lua_pushliteral(L, "gpu");
    return;
  }
  lua_pushnil(L);
}

// ---- launches ----

static void set_extents(lua_State *L, Call *c, const char *name,
                        const uint32_t *e) {
  if (!e[0]) {
    if (e[1] || e[2]) BAD(L, c, "the %s has no extent along x", name);
    return;
  }
  lua_createtable(L, 3, 0);
  for (int k = 0; k < 3; k++) {
    lua_pushinteger(L, e[k] || !k ? e[k] : 1);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, name);
}

// Copies the application's options to *o. An application that was compiled with
// a later version of cutelua.h passes more fields, which must be 0.
static void read_launch(lua_State *L, Call *c, cutelua_launch_options *o) {
  const cutelua_launch_options *from = c->task->launch;
  memset(o, 0, sizeof *o);
  if (!from) return;
  if (from->size < sizeof *o)
    BAD(L, c, "the launch options have size %zu; sizeof(cutelua_launch_options)"
        " is %zu", from->size, sizeof *o);
  for (size_t k = sizeof *o; k < from->size; k++)
    if (((const char *)from)[k])
      BAD(L, c, "the launch options have fields that this version of "
          "libcutelua does not know");
  memcpy(o, from, sizeof *o);
  if (o->flags)
    BAD(L, c, "unknown flags %#x of the launch", (unsigned)o->flags);
}

static void push_launch(lua_State *L, Call *c) {
  cutelua_launch_options o;
  read_launch(L, c, &o);
  lua_newtable(L);
  set_extents(L, c, "grid", o.grid);
  set_extents(L, c, "block", o.block);
  set_extents(L, c, "cluster", o.cluster);
  if (o.seed) {
    lua_pushinteger(L, o.seed);
    lua_setfield(L, -2, "seed");
  }
  if (o.device) {
    lua_pushstring(L, o.device);
    lua_setfield(L, -2, "device");
  }
  if (!o.stream) return;
  if (c->task->state->untrusted)
    BAD(L, c, "an untrusted state has no streams");
  state_function(L, "stream");
  lua_pushlightuserdata(L, o.stream);
  if (o.device) lua_pushstring(L, o.device);
  else push_place(L, c);
  lua_call(L, 2, 1);
  lua_setfield(L, -2, "stream");
}

// ---- results ----

// Stores the value at stack index idx as result k. A string remains valid until
// the next call.
static void read_result(lua_State *L, Call *c, size_t k, int idx) {
  cutelua_arg *r = &c->task->results[k];
  int ok = 1;
  switch (r->type) {
    case CUTELUA_TENSOR: return;
    case CUTELUA_INTEGER: r->as.integer = lua_tointegerx(L, idx, &ok); break;
    case CUTELUA_NUMBER: r->as.number = lua_tonumberx(L, idx, &ok); break;
    case CUTELUA_BOOLEAN:
      ok = lua_isboolean(L, idx);
      r->as.integer = lua_toboolean(L, idx);
      break;
    case CUTELUA_STRING:
      ok = lua_type(L, idx) == LUA_TSTRING;
      r->as.string = ok ? lua_tostring(L, idx) : NULL;
      lua_getfield(L, LUA_REGISTRYINDEX, "cutelua.strings");
      lua_pushvalue(L, idx);
      lua_rawseti(L, -2, (lua_Integer)k + 1);
      lua_pop(L, 1);
      break;
    case CUTELUA_REF:
      lua_pushvalue(L, idx);
      r->as.ref = state_ref(c->task->state, L);
      break;
  }
  if (!ok)
    face_error(L, ERR_TYPE, "result %zu is %s, which the type of the caller's "
               "cutelua_arg cannot hold", k + 1, face_show(L, idx));
}

// Pushes a table from result numbers to tensors: for each result that is a
// tensor, the tensor of the application that receives it.
static void push_places(lua_State *L, Call *c) {
  const Task *t = c->task;
  lua_newtable(L);
  for (size_t k = 0; k < t->nresults; k++) {
    if (t->results[k].type != CUTELUA_TENSOR) continue;
    push_tensor(L, c, t->nargs + k);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
}

// ---- calls ----

static void check_counts(lua_State *L, Call *c) {
  const Task *t = c->task;
  if (t->nargs > MOST_ARGS || (t->nargs && !t->args))
    BAD(L, c, "%zu arguments; at most %d are possible, and their array must "
        "not be NULL", t->nargs, MOST_ARGS);
  if (t->nresults > MOST_ARGS || (t->nresults && !t->results))
    BAD(L, c, "%zu results; at most %d are possible, and their array must not "
        "be NULL", t->nresults, MOST_ARGS);
  for (size_t k = 0; k < t->nresults; k++)
    if (t->results[k].type < CUTELUA_TENSOR ||
        t->results[k].type > CUTELUA_REF)
      BAD(L, c, "result %zu has the unknown type %d", k + 1,
          (int)t->results[k].type);
}

// Reads the descriptions of all tensors, and copies host tensors to buffers.
// For a compilation, does not copy their elements.
static void prepare(lua_State *L, Call *c) {
  const Task *t = c->task;
  for (size_t i = 0; i < t->nargs; i++)
    if (t->args[i].type == CUTELUA_TENSOR)
      read_tensor(L, c, i, &t->args[i].as.tensor);
  for (size_t k = 0; k < t->nresults; k++)
    if (t->results[k].type == CUTELUA_TENSOR)
      read_tensor(L, c, t->nargs + k, &t->results[k].as.tensor);
  size_t n = t->nargs + t->nresults;
  for (size_t i = 0; i < n; i++) add_span(L, c, i);
  for (size_t i = 0; i < n; i++) find_span(c, i);
  make_buffers(L, c);
  for (size_t i = 0; i < n && !t->compile; i++)
    move_tensor(&c->given[i], false);
}

static void finish(Call *c) {
  size_t n = c->task->nargs + c->task->nresults;
  for (size_t i = 0; i < n; i++) move_tensor(&c->given[i], true);
}

static void run_launch(lua_State *L, Call *c) {
  Task *t = c->task;
  state_function(L, t->compile ? "compile" : "launch");
  push_ref(L, c, t->ref);
  push_launch(L, c);
  push_place(L, c);
  int n = push_args(L, c);
  lua_call(L, n + 3, 0);
  // If the budget is exhausted, raise the error again, because the script may
  // have caught the first one.
  limit_spend(L, 0);
  if (!t->compile) finish(c);
}

static void run_function(lua_State *L, Call *c) {
  const Task *t = c->task;
  state_function(L, t->name ? "op" : "call");
  if (t->name) lua_pushstring(L, t->name);
  else push_ref(L, c, t->ref);
  push_places(L, c);
  lua_pushinteger(L, (lua_Integer)t->nresults);
  int n = push_args(L, c);
  lua_call(L, n + 3, (int)t->nresults);
  limit_spend(L, 0);
  lua_newtable(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "cutelua.strings");
  int first = lua_gettop(L) - (int)t->nresults + 1;
  for (size_t k = 0; k < t->nresults; k++)
    read_result(L, c, k, first + (int)k);
  finish(c);
}

static int protected(lua_State *L) {
  Task *t = lua_touserdata(L, 1);
  Call c = {.task = t};
  check_counts(L, &c);
  size_t n = t->nargs + t->nresults;
  size_t bytes = n * (sizeof *c.given + sizeof *c.span);
  c.given = lua_newuserdatauv(L, bytes, 0);
  memset(c.given, 0, bytes);
  c.span = (Span *)(void *)(c.given + n);
  prepare(L, &c);
  if (t->calls) run_function(L, &c);
  else run_launch(L, &c);
  return 0;
}

cutelua_status call_run(Task *t, LastError *e) {
  cutelua_state *s = t->state;
  cutelua_status status = state_enter(s);
  if (status != CUTELUA_OK) return status;
  t->misuse = false;
  status = state_run(s->L, protected, t, e ? e : &s->error);
  if (status == CUTELUA_ERROR && t->misuse) status = CUTELUA_MISUSE;
  return state_leave(s, status);
}
// SPDX-License-Identifier: MIT
