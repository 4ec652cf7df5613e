// Implements the fields and the text (tostring) of atoms, tiled operations and
// their slices.
#include <string.h>

#include "bind/box.h"
#include "bind/laylib.h"
#include "layout/notation.h"

const AtomBox *fields_slice(Ctx *cx, lua_State *L, int idx, Dim *thr) {
  if (!luaL_testudata(L, idx, MT_SLICE)) return NULL;
  lua_getiuservalue(L, idx, 2);
  // The call raises an error if the thread is a traced value of another kernel.
  face_test_dim(cx, L, -1, thr);
  lua_getiuservalue(L, idx, 1);
  // the slice keeps the tiled operation alive
  const AtomBox *b = lua_touserdata(L, -1);
  lua_pop(L, 2);
  return b;
}

static void push_tile(Ctx *cx, lua_State *L, const AtomBox *b) {
  Dim n[3];
  for (int i = 0; i < 3; i++) n[i] = tiled_mma_tile(cx, &b->mma, i);
  face_push_tup(L, tup_of(cx, n, 3));
}

static void push_perm(lua_State *L, const TiledMma *m) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    const TiledPerm *p = &m->perm[i];
    if (p->kind == PERM_ANY) face_push_dim(L, dim_any());
    else if (p->kind == PERM_INT) face_push_dim(L, *p->l.shape);
    else face_push_layout(L, p->l);
    lua_rawseti(L, -2, i + 1);
  }
}

// A field of an atom or tiled operation whose value is a layout.
typedef struct Field {
  const char *name;
  size_t at;
  bool tiled;  // whether only tiled operations have the field
} Field;

#define MMA_FIELDS \
  "name ptx thr_id tv_layout_A tv_layout_B tv_layout_C shape_mnk value_bits " \
  "sf_vec_size instr_desc " \
  "thr_layout_vmnk tv_layout_A_tiled tv_layout_B_tiled tv_layout_C_tiled " \
  "tile_size_mnk permutation_mnk"
#define COPY_FIELDS \
  "name ptx thr_id layout_src_tv layout_dst_tv layout_ref_tv value_type " \
  "layout_tmem " \
  "layout_tv_tiled layout_src_tv_tiled layout_dst_tv_tiled tiler_mn"

static const Field mma_layouts[] = {
  {"thr_id", offsetof(AtomBox, mma.atom.thr), false},
  {"tv_layout_A", offsetof(AtomBox, mma.atom.a), false},
  {"tv_layout_B", offsetof(AtomBox, mma.atom.b), false},
  {"tv_layout_C", offsetof(AtomBox, mma.atom.c), false},
  {"thr_layout_vmnk", offsetof(AtomBox, mma.thr_vmnk), true},
  {NULL, 0, false}};

static const Field copy_layouts[] = {
  {"thr_id", offsetof(AtomBox, copy.atom.thr), false},
  {"layout_src_tv", offsetof(AtomBox, copy.atom.src), false},
  {"layout_dst_tv", offsetof(AtomBox, copy.atom.dst), false},
  {"layout_ref_tv", offsetof(AtomBox, copy.atom.ref), false},
  {"layout_tv_tiled", offsetof(AtomBox, copy.tv), true},
  {NULL, 0, false}};

static bool push_stored(lua_State *L, const AtomBox *b, const Field *f,
                        const char *k) {
  while (f->name && strcmp(f->name, k) != 0) f++;
  if (!f->name || (f->tiled && !b->tiled)) return false;
  Layout l;
  memcpy(&l, (const char *)b + f->at, sizeof l);
  face_push_layout(L, l);
  return true;
}

static bool mma_field(Ctx *cx, lua_State *L, const AtomBox *b, const char *k) {
  const AtomMma *row = b->mma.atom.row;
  if (push_stored(L, b, mma_layouts, k)) return true;
  if (strcmp(k, "shape_mnk") == 0) {
    Dim n[3] = {dim_int(cx, row->m), dim_int(cx, row->n),
                dim_int(cx, row->k)};
    face_push_tup(L, tup_of(cx, n, 3));
  // bits of one value of D, A, B and C
  } else if (strcmp(k, "value_bits") == 0) {
    lua_createtable(L, 4, 0);
    for (int i = 0; i < 4; i++) {
      lua_pushinteger(L, row->bits[i]);
      lua_rawseti(L, -2, i + 1);
    }
  } else if (strcmp(k, "sf_vec_size") == 0) {
    if (row->vs) lua_pushinteger(L, row->vs);
    else lua_pushnil(L);
  } else if (strcmp(k, "instr_desc") == 0) {
    if (row->kind == MK_TCGEN05 && atom_mma_runs(row))
      lua_pushinteger(L, atom_umma_descriptor(row));
    else lua_pushnil(L);
  } else if (!b->tiled) {
    return false;
  } else if (strncmp(k, "tv_layout_", 10) == 0 && k[10] >= 'A' &&
             k[10] <= 'C' && strcmp(k + 11, "_tiled") == 0) {
    face_push_layout(L, tiled_mma_tv(cx, &b->mma, k[10]));
  } else if (strcmp(k, "tile_size_mnk") == 0) {
    push_tile(cx, L, b);
  } else if (strcmp(k, "permutation_mnk") == 0) {
    push_perm(L, &b->mma);
  } else {
    return false;
  }
  return true;
}

static void push_tiler(lua_State *L, const TiledCopy *c) {
  lua_createtable(L, c->ntiler, 0);
  for (int i = 0; i < c->ntiler; i++) {
    if (c->tiler_int[i]) face_push_tup(L, c->tiler[i].shape);
    else face_push_layout(L, c->tiler[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static bool copy_field(Ctx *cx, lua_State *L, const AtomBox *b,
                       const char *k) {
  const TiledCopy *c = &b->copy;
  if (push_stored(L, b, copy_layouts, k)) return true;
  if (strcmp(k, "value_type") == 0)
    face_push_dtype(L, c->atom.type);
  else if (strcmp(k, "layout_tmem") == 0 && !c->atom.row->tmem)
    lua_pushnil(L);
  else if (strcmp(k, "layout_tmem") == 0)
    face_push_layout(L, layout_parse(cx, c->atom.row->tmem,
                                     strlen(c->atom.row->tmem)));
  else if (b->tiled && strcmp(k, "layout_src_tv_tiled") == 0)
    face_push_layout(L, tiled_copy_layout(cx, c, 'S'));
  else if (b->tiled && strcmp(k, "layout_dst_tv_tiled") == 0)
    face_push_layout(L, tiled_copy_layout(cx, c, 'D'));
  else if (b->tiled && strcmp(k, "tiler_mn") == 0)
    push_tiler(L, c);
  else
    return false;
  return true;
}

// Returns the atom or tiled operation at idx, or raises an error.
static const AtomBox *check_box(lua_State *L, int idx) {
  const AtomBox *b = luaL_testudata(L, idx, MT_ATOM);
  return b ? b : face_check(L, idx, MT_TILED, "atom or tiled operation");
}

// Raises the error that there is no field k. If slices have a method with this
// name, the message suggests to slice first.
static _Noreturn void no_field(lua_State *L, const char *k, bool mma) {
  const char *of = mma ? "partition_A partition_B partition_C partition_E"
                       : "partition_S partition_D retile retile_S retile_D";
  Nearest n = nearest_of(k);
  nearest_offer_words(&n, of);
  if (n.best && luaL_testudata(L, 1, MT_TILED))
    face_error(L, ERR_NAME, "a tiled %s has no '%s': its threads have "
               "%s\n  write t:get_slice(thread):%s(...)",
               mma ? "MMA" : "copy", k, of,
               (lua_pushlstring(L, n.best, n.best_len), lua_tostring(L, -1)));
  face_nofield(L, 0, mma ? MMA_FIELDS : COPY_FIELDS);
}

// Implements __index: looks up methods in the metatable, then fields. A slice
// has the fields of its tiled operation.
int fields_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  const char *k = lua_tostring(L, 2);
  if (luaL_getmetafield(L, 1, k) != LUA_TNIL) return 1;
  Ctx *cx = face_ctx(L);
  Dim thr;
  const AtomBox *b = fields_slice(cx, L, 1, &thr);
  if (!b) b = check_box(L, 1);
  bool mma = b->kind == BOX_MMA;
  if (strcmp(k, "name") == 0)
    lua_pushstring(L, mma ? b->mma.atom.row->name : b->copy.atom.row->name);
  // The field is the atom's PTX instruction, or nil.
  else if (strcmp(k, "ptx") == 0)
    lua_pushstring(L, mma ? b->mma.atom.row->ptx : b->copy.atom.row->ptx);
  else if (!(mma ? mma_field : copy_field)(cx, L, b, k))
    no_field(L, k, mma);
  return 1;
}

int fields_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Buf out = {0};
  Dim thr;
  const AtomBox *b = fields_slice(cx, L, 1, &thr);
  if (b) buf_puts(cx, &out, b->kind == BOX_MMA ? "ThrMMA\n" : "ThrCopy\n");
  else b = check_box(L, 1);
  if (b->kind == BOX_MMA) {
    if (b->tiled) tiled_mma_print(cx, &b->mma, &out);
    else tiled_mma_print_atom(cx, &b->mma.atom, &out);
  } else {
    if (b->tiled) tiled_copy_print(cx, &b->copy, &out);
    else tiled_copy_print_atom(cx, &b->copy.atom, &out);
  }
  face_push_buf(L, &out);
  return 1;
}
// SPDX-License-Identifier: MIT
