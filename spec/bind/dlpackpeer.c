// A library that exchanges tensors by DLPack, for dlpack_spec.lua: makes
// managed tensors that count the calls of their deleters, and reads those of
// others.
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/dlpack.h"

static int deleted;
static void *last;  // the managed tensor whose deleter was called last

// A managed tensor and its memory, which deleters free.
typedef struct Peer {
  DLManagedTensor old;
  DLManagedTensorVersioned versioned;
  int64_t shape[80], strides[80];
  char *memory;
} Peer;

static void gone(Peer *p, void *m) {
  deleted++;
  last = m;
  free(p->memory);
  free(p);
}

static void gone_old(DLManagedTensor *m) { gone(m->owner, m); }
static void gone_versioned(DLManagedTensorVersioned *m) { gone(m->owner, m); }

static lua_Integer field(lua_State *L, const char *k, lua_Integer otherwise) {
  lua_getfield(L, 1, k);
  lua_Integer n = luaL_optinteger(L, -1, otherwise);
  lua_pop(L, 1);
  return n;
}

// Reads field k of the table, a list of integers, into `to`. Returns its
// length, or -1 if the field is absent.
static int list(lua_State *L, const char *k, int64_t *to) {
  int n = -1;
  if (lua_getfield(L, 1, k) == LUA_TTABLE) {
    n = (int)luaL_len(L, -1);
    for (int i = 0; i < n && i < 80; i++) {
      lua_geti(L, -1, i + 1);
      to[i] = lua_tointeger(L, -1);
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
  return n;
}

// make{bytes =, shift =, at =, shape =, strides =, code =, bits =, lanes =,
// device =, id =, offset =, ndim =, major =, flags =, versioned =, null =,
// address =} -> pointer to a managed tensor. Its memory contains `bytes` and
// begins `shift` bytes after a multiple of 256. The data pointer is byte `at`
// of the memory, or `address` if given.
static int l_make(lua_State *L) {
  size_t n, shift = (size_t)field(L, "shift", 0);
  Peer *p = calloc(1, sizeof *p);
  lua_getfield(L, 1, "bytes");
  const char *bytes = luaL_optlstring(L, -1, "", &n);
  p->memory = aligned_alloc(256, (n + shift + 256) / 256 * 256);
  memcpy(p->memory + shift, bytes, n);
  int rank = list(L, "shape", p->shape);
  lua_getfield(L, 1, "null");
  lua_getfield(L, 1, "versioned");
  char *data = p->memory + shift + field(L, "at", 0);
  lua_Integer address = field(L, "address", 0);
  if (address) data = (char *)(uintptr_t)address;
  DLTensor t = {
    .data = lua_toboolean(L, -2) ? NULL : data,
    .device = {(int32_t)field(L, "device", DL_CPU),
               (int32_t)field(L, "id", 0)},
    .ndim = (int32_t)field(L, "ndim", rank), .shape = p->shape,
    .strides = list(L, "strides", p->strides) < 0 ? NULL : p->strides,
    .dtype = {(uint8_t)field(L, "code", DL_FLOAT),
              (uint8_t)field(L, "bits", 32),
              (uint16_t)field(L, "lanes", 1)},
    .byte_offset = (uint64_t)field(L, "offset", 0)};
  p->old = (DLManagedTensor){t, p, gone_old};
  p->versioned = (DLManagedTensorVersioned){
    .version = {(uint32_t)field(L, "major", 1), 3}, .owner = p,
    .deleter = gone_versioned, .flags = (uint64_t)field(L, "flags", 0),
    .t = t};
  bool versioned = lua_isnil(L, -1) || lua_toboolean(L, -1);
  lua_pushlightuserdata(L, versioned ? (void *)&p->versioned : &p->old);
  return 1;
}

static void push_list(lua_State *L, const char *k, const int64_t *x, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, x[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, k);
}

static void put(lua_State *L, const char *k, lua_Integer v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, k);
}

// read(pointer, versioned, bytes) -> the fields of a managed tensor as a table,
// with `bytes` bytes of its memory
static int l_read(lua_State *L) {
  void *m = lua_touserdata(L, 1);
  bool versioned = lua_toboolean(L, 2);
  lua_settop(L, 3);
  const DLManagedTensorVersioned *v = m;
  const DLTensor *t = versioned ? &v->t : &((DLManagedTensor *)m)->t;
  lua_newtable(L);
  put(L, "device", t->device.kind), put(L, "id", t->device.id);
  put(L, "code", t->dtype.code), put(L, "bits", t->dtype.bits);
  put(L, "lanes", t->dtype.lanes), put(L, "offset", (lua_Integer)t->byte_offset);
  put(L, "address", (lua_Integer)(uintptr_t)t->data);
  if (versioned) {
    put(L, "major", v->version.major), put(L, "minor", v->version.minor);
    put(L, "flags", (lua_Integer)v->flags);
  }
  push_list(L, "shape", t->shape, t->ndim);
  push_list(L, "strides", t->strides, t->ndim);
  size_t n = (size_t)luaL_optinteger(L, 3, 0);
  if (n) {
    lua_pushlstring(L, (char *)t->data + t->byte_offset, n);
    lua_setfield(L, -2, "memory");
  }
  return 1;
}

typedef struct Call { void *m; bool versioned; } Call;

static void *call(void *arg) {
  Call *c = arg;
  DLManagedTensorVersioned *v = c->m;
  DLManagedTensor *old = c->m;
  if (c->versioned) v->deleter(v);
  else old->deleter(old);
  return NULL;
}

// release(pointer, versioned, other): calls the deleter of a managed tensor, on
// a thread of its own if `other`.
static int l_release(lua_State *L) {
  Call c = {lua_touserdata(L, 1), lua_toboolean(L, 2)};
  pthread_t thread;
  if (lua_toboolean(L, 3)) {
    pthread_create(&thread, NULL, call, &c);
    pthread_join(thread, NULL);
  } else {
    call(&c);
  }
  return 0;
}

// deleted() -> number of calls of deleters, and the managed tensor of the last
// one
static int l_deleted(lua_State *L) {
  lua_pushinteger(L, deleted);
  lua_pushlightuserdata(L, last);
  return 2;
}

int luaopen_dlpackpeer(lua_State *L) {
  static const luaL_Reg funcs[] = {{"make", l_make}, {"read", l_read},
                                   {"release", l_release},
                                   {"deleted", l_deleted}, {NULL, NULL}};
  luaL_newlib(L, funcs);
  return 1;
}
// SPDX-License-Identifier: MIT
