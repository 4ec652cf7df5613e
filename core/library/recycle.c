// Keeps the Lua tensors of GPU memory that Python passed to a call, to reuse
// them in later calls (recycle.h).
#include "library/recycle.h"

#include <string.h>

#include "bind/dlpacklib.h"
#include "bind/gpulib.h"
#include "bind/tensorlib.h"

enum { TENSORS = 64, RANK = 6, ALIGN = 64 };

// A kept tensor can be reused for a new one if these properties are equal.
// Unused entries of `extents` are 0.
typedef struct Form {
  DLDataType type;
  int32_t gpu, rank;
  int64_t align;              // address modulo ALIGN
  int64_t extents[2 * RANK];  // shape, then strides
} Form;

typedef struct Entry {
  Form form;
  DevBuf *buffer;
  Gpu *gpu;
  int64_t before;  // bytes from the start of the memory to the first element
  bool busy;       // whether the running call uses the entry
} Entry;

// The kept tensors of a state, in a Lua object. Uservalue 1 is the list of the
// tensors.
typedef struct Kept {
  int n, next;   // number of entries; index of the entry to replace next
  int busy;      // number of entries that the running call uses
  Entry entry[TENSORS];
} Kept;

// Pushes the state's Kept object and its list of tensors. Returns the object.
static Kept *push_kept(lua_State *L) {
  static const char key;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TNIL) {
    lua_pop(L, 1);
    memset(lua_newuserdatauv(L, sizeof(Kept), 1), 0, sizeof(Kept));
    lua_createtable(L, TENSORS, 0);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
  }
  lua_getiuservalue(L, -1, 1);
  return lua_touserdata(L, -2);
}

static bool form_of(const DLManagedTensorVersioned *m, Form *f) {
  const DLTensor *t = &m->t;
  if (m->version.major != DLPACK_MAJOR || t->device.kind != DL_CUDA ||
      t->ndim < 1 || t->ndim > RANK || t->dtype.lanes != 1)
    return false;
  memset(f, 0, sizeof *f);
  f->type = t->dtype;
  f->gpu = t->device.id;
  f->rank = t->ndim;
  f->align = (int64_t)(((uintptr_t)t->data + t->byte_offset) % ALIGN);
  int64_t step = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    int64_t n = t->shape[i];
    if (n < 1 || __builtin_mul_overflow(step, n, &step)) return false;
    f->extents[i] = n;
    f->extents[RANK + i] = t->strides ? t->strides[i] : step / n;
  }
  return true;
}

static char *address(const DLManagedTensorVersioned *m) {
  return (char *)m->t.data + m->t.byte_offset;
}

// Opens the closed buffer of an entry again, in the memory of m.
static void open_again(lua_State *L, Entry *e, DLManagedTensorVersioned *m) {
  Why w = {ERR_MEMORY, "out of memory"};
  DevBuf *b = e->buffer;
  Shared *s = shared_new(dlpacklib_release, m, 0);
  if (!s || !devbuf_foreign(b, e->gpu, b->t, b->count,
                            (uint64_t)(uintptr_t)(address(m) - e->before), s,
                            &w)) {
    base_free(s);
    face_error(L, w.kind, "%s", w.msg);
  }
  b->readonly = (m->flags & DL_READ_ONLY) != 0;
}

// Returns an entry for a new tensor, or NULL if the running call uses all
// entries.
static Entry *choose(Kept *k) {
  if (k->n < TENSORS) return &k->entry[k->n++];
  for (int i = 0; i < TENSORS; i++) {
    Entry *e = &k->entry[k->next++ % TENSORS];
    if (!e->busy) return e;
  }
  return NULL;
}

bool recycle_push(lua_State *L, DLManagedTensorVersioned *m) {
  Form f;
  if (!form_of(m, &f)) return false;
  luaL_checkstack(L, 8, "tensors");
  Kept *k = push_kept(L);
  int list = lua_gettop(L);
  for (int i = 0; i < k->n; i++) {
    Entry *e = &k->entry[i];
    if (e->busy || !e->buffer || memcmp(&e->form, &f, sizeof f) != 0) continue;
    open_again(L, e, m);
    e->busy = true;
    k->busy++;
    lua_rawgeti(L, list, i + 1);
    lua_replace(L, list - 1);
    lua_settop(L, list - 1);
    return true;
  }
  Entry *e = choose(k);
  if (!e) {
    lua_settop(L, list - 2);
    return false;
  }
  e->buffer = NULL;
  dlpacklib_import(L, m, true);
  *e = (Entry){.form = f, .buffer = tensorlib_box(L, -1)->dev, .busy = true};
  e->gpu = e->buffer->own.gpu;
  e->before = address(m) - (char *)(uintptr_t)e->buffer->ptr;
  k->busy++;
  lua_pushvalue(L, -1);
  lua_rawseti(L, list, e - k->entry + 1);
  lua_replace(L, list - 1);
  lua_settop(L, list - 1);
  return true;
}

void recycle_end(lua_State *L, bool keep) {
  Kept *k = push_kept(L);
  for (int i = 0; i < k->n && k->busy; i++) {
    Entry *e = &k->entry[i];
    if (!e->busy) continue;
    devbuf_close(e->buffer);
    e->busy = false;
    k->busy--;
    if (keep) continue;
    e->buffer = NULL;
    lua_pushboolean(L, false);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pop(L, 2);
}
// SPDX-License-Identifier: MIT
