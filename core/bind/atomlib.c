// Lua bindings of atoms and tiled operations: make_*, get_slice, partition,
// retile, copy, gemm.
#include <string.h>

#include "bind/box.h"
#include "bind/laylib.h"
#include "bind/row.h"
#include "bind/tensorlib.h"
#include "bind/tma.h"
#include "bind/trace.h"
#include "ir/target.h"
#include "layout/notation.h"
#include "tensor/preflight.h"

// ---- userdata ----

static int box_layouts(AtomBox *b, Layout *out[16]) {
  int n = 0;
  if (b->kind == BOX_MMA) {
    MmaAtom *a = &b->mma.atom;
    out[n++] = &a->thr, out[n++] = &a->a, out[n++] = &a->b, out[n++] = &a->c;
    out[n++] = &a->stored, out[n++] = &a->meta;
    if (!b->tiled) return n;
    out[n++] = &b->mma.atoms, out[n++] = &b->mma.thr_vmnk;
    for (int i = 0; i < 3; i++)
      if (b->mma.perm[i].kind != PERM_ANY) out[n++] = &b->mma.perm[i].l;
  } else {
    CopyAtom *a = &b->copy.atom;
    out[n++] = &a->thr, out[n++] = &a->src;
    out[n++] = &a->dst, out[n++] = &a->ref;
    if (!b->tiled) return n;
    out[n++] = &b->copy.tv;
    for (int i = 0; i < b->copy.ntiler; i++) out[n++] = &b->copy.tiler[i];
  }
  return n;
}

static void push_box(lua_State *L, AtomBox b) {
  Layout *l[16];
  int n = box_layouts(&b, l);
  size_t size = sizeof b, at = sizeof b;
  for (int i = 0; i < n; i++) size += (layout_bytes(*l[i]) + 7) & ~(size_t)7;
  char *mem = lua_newuserdatauv(L, size, 0);
  for (int i = 0; i < n; i++) {
    size_t bytes = (layout_bytes(*l[i]) + 7) & ~(size_t)7;
    *l[i] = layout_copy(mem + at, *l[i]);
    at += bytes;
  }
  memcpy(mem, &b, sizeof b);
  luaL_setmetatable(L, b.tiled ? MT_TILED : MT_ATOM);
}

static void push_copy(lua_State *L, TiledCopy c) {
  push_box(L, (AtomBox){.kind = BOX_COPY, .tiled = true, .copy = c});
}

// Returns the tiled operation of kind `kind` at idx, or of the slice at idx.
// Sets *thr to the slice's thread, or to 0 if there is no slice.
static const AtomBox *check_tiled(Ctx *cx, lua_State *L, int idx, BoxKind kind,
                                  Dim *thr) {
  *thr = dim_int(cx, 0);
  const AtomBox *b = fields_slice(cx, L, idx, thr);
  if (!b) b = luaL_testudata(L, idx, MT_TILED);
  if (!b || b->kind != kind)
    face_argerror(L, idx, kind == BOX_MMA ? "tiled MMA or its slice"
                                          : "tiled copy or its slice");
  return b;
}

// Returns the AtomBox at idx if it is an atom, a tiled operation or a slice,
// and is of kind `kind`. Otherwise returns NULL.
static const AtomBox *test_any(Ctx *cx, lua_State *L, int idx, BoxKind kind) {
  Dim thr;
  const AtomBox *b = luaL_testudata(L, idx, MT_ATOM);
  if (!b) b = luaL_testudata(L, idx, MT_TILED);
  if (!b) b = fields_slice(cx, L, idx, &thr);
  return b && b->kind == kind ? b : NULL;
}

static MmaAtom check_mma_atom(Ctx *cx, lua_State *L, int idx) {
  if (lua_type(L, idx) == LUA_TSTRING)
    return mma_atom(cx, lua_tostring(L, idx));
  const AtomBox *b = test_any(cx, L, idx, BOX_MMA);
  if (!b) face_argerror(L, idx, "MMA atom or its name");
  return b->mma.atom;
}

static CopyAtom check_copy_atom(Ctx *cx, lua_State *L, int idx) {
  const AtomBox *b = test_any(cx, L, idx, BOX_COPY);
  if (!b) face_argerror(L, idx, "copy atom");
  return b->copy.atom;
}

// ---- arguments ----

// The argument of partition: a tensor or a layout. The results for a layout are
// also layouts.
typedef struct Subject {
  Tensor t;
  bool layout;
} Subject;

static Subject check_subject(Ctx *cx, lua_State *L, int idx) {
  Subject s = {.t = {.space = SP_HOST, .type = DT_NONE, .align = 1}};
  s.layout = face_test_layout(L, idx, &s.t.l);
  if (!s.layout && lua_type(L, idx) == LUA_TTABLE) {
    s.t.l = layout_compact(cx, face_check_tup(cx, L, idx));
    s.layout = true;
  }
  if (!s.layout) s.t = face_check_tensor(L, idx);
  return s;
}

// Pushes t, a partition of the subject at stack index src. If the subject is a
// tensor, t is pushed as a tensor, else as a layout and an offset.
static int push_view(lua_State *L, const Subject *s, const Tensor *t, int src) {
  if (s->layout) {
    face_push_layout(L, t->l);
    face_push_dim(L, t->off);
    return 2;
  }
  lua_getiuservalue(L, src, 1);
  int owner = lua_isnil(L, -1) ? 0 : lua_gettop(L);
  face_push_tensor(L, t, owner);
  return 1;
}

static TiledPerm check_perm(Ctx *cx, lua_State *L, int idx) {
  TiledPerm p = {.kind = PERM_ANY};
  Dim d;
  if (lua_isnil(L, idx)) return p;
  if (face_test_layout(L, idx, &p.l)) {
    p.kind = PERM_LAYOUT;
  } else if (face_test_dim(cx, L, idx, &d) && dim_kind(d) != DIM_ANY) {
    if (!dim_static(d) || dim_value(d) < 1)
      face_error(L, ERR_ARG, "make_tiled_mma: a permutation extent must be a "
                 "number above 0, got %s", tup_text(cx, tup_leaf(cx, d)));
    p.kind = PERM_INT;
    p.l = layout_leaf(cx, d, dim_int(cx, 1));
  } else if (!face_test_dim(cx, L, idx, &d)) {
    face_error(L, ERR_ARG, "make_tiled_mma: a permutation must be a number, _ "
               "or a layout for each of M, N, K (got %s)",
               face_typename(L, idx));
  }
  return p;
}

// ---- construction ----

static int l_make_mma_atom(lua_State *L) {
  Ctx *cx = face_enter(L);
  AtomBox b = {.kind = BOX_MMA};
  b.mma.atom = check_mma_atom(cx, L, 1);
  push_box(L, b);
  return 1;
}

// make_copy_atom(name, type [, bits | {num_bits_per_copy = n, ...}]) -> a copy
// atom for elements of type `type`
static int l_make_copy_atom(lua_State *L) {
  Ctx *cx = face_enter(L);
  // A table as the operation either has a field `atom`, the name of an atom, or
  // describes a bulk copy.
  if (lua_istable(L, 1)) {
    if (lua_getfield(L, 1, "atom") == LUA_TNIL) {
      lua_pop(L, 1);
      return tmalib_bulk_atom(L);
    }
    lua_replace(L, 1);
  }
  const char *name = face_checkstr(L, 1);
  DType t = face_check_dtype(L, 2);
  unsigned hints = 0;
  if (lua_istable(L, 3)) {
    face_check_options(L, 3, "num_bits_per_copy level_prefetch_size "
                       "level2_eviction_priority");
    hints = intrinlib_hints(L, 3);
  }
  if (lua_istable(L, 3)) lua_getfield(L, 3, "num_bits_per_copy");
  else lua_settop(L, 3);
  lua_Integer bits = face_optint(L, -1, 0);
  if (bits < 0 || bits > 1 << 20)
    face_error(L, ERR_ARG, "make_copy_atom: num_bits_per_copy = %lld: 0 to "
               "2^20 is needed", (long long)bits);
  AtomBox b = {.kind = BOX_COPY};
  b.copy.atom = copy_atom(cx, name, t, (int)bits);
  b.copy.atom.hints = hints;
  if (hint_get(hints, HINT_LEVEL2) && b.copy.atom.row->op == CO_CPASYNC)
    face_error(L, ERR_ARG, "%s: a cp.async cannot have a "
               "level2_eviction_priority, because ptxas before 13.4 makes an "
               "illegal instruction of it\n  give it a level_prefetch_size, or "
               "use UniversalCopy", name);
  push_box(L, b);
  return 1;
}

// make_tiled_mma(atom [, atom_layout [, permutation]]) -> a tiled MMA
static int l_make_tiled_mma(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_settop(L, 3);
  MmaAtom a = check_mma_atom(cx, L, 1);
  Layout atoms = lua_isnil(L, 2)
    ? layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0))
    : laylib_layout(cx, L, 2);
  TiledPerm perm[3] = {{.kind = PERM_ANY}, {.kind = PERM_ANY},
                       {.kind = PERM_ANY}};
  if (lua_istable(L, 3)) {
    for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
      lua_Integer i = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
      if (i < 1 || i > 3)
        face_error(L, ERR_ARG, "make_tiled_mma: a permutation must be a list "
                   "{M, N, K}, got %s", face_show(L, 3));
    }
    for (int i = 0; i < 3; i++) {
      lua_geti(L, 3, i + 1);
      perm[i] = check_perm(cx, L, lua_gettop(L));
      lua_pop(L, 1);
    }
  } else if (!lua_isnil(L, 3)) {
    face_argerror(L, 3, "table {M, N, K} of numbers, _ or layouts");
  }
  AtomBox b = {.kind = BOX_MMA, .tiled = true};
  b.mma = tiled_mma_make(cx, a, atoms, perm);
  push_box(L, b);
  return 1;
}

// make_tiled_copy_tv(atom, thr_layout, val_layout) -> a tiled copy
static int l_make_tiled_copy_tv(lua_State *L) {
  Ctx *cx = face_enter(L);
  CopyAtom a = check_copy_atom(cx, L, 1);
  Layout thr = laylib_layout(cx, L, 2), val = laylib_layout(cx, L, 3);
  push_copy(L, tiled_copy_make(cx, a, thr, val));
  return 1;
}

// make_tiled_copy(atom, thr_layout, val_layout). If the third argument is a
// tiler (a table), the arguments are (atom, layout_tv, tiler).
static int l_make_tiled_copy(lua_State *L) {
  if (!lua_istable(L, 3)) return l_make_tiled_copy_tv(L);
  Ctx *cx = face_enter(L);
  CopyAtom a = check_copy_atom(cx, L, 1);
  Layout tv = face_check_layout(L, 2);
  push_copy(L, tiled_copy_tv(cx, a, tv, face_check_tup(cx, L, 3)));
  return 1;
}

static int l_make_cotiled_copy(lua_State *L) {
  Ctx *cx = face_enter(L);
  CopyAtom a = check_copy_atom(cx, L, 1);
  Layout tv = face_check_layout(L, 2), data = face_check_layout(L, 3);
  push_copy(L, tiled_copy_cotiled(cx, a, tv, data));
  return 1;
}

// umma_descriptors(maker, reader, tensor, mn_major) -> a tensor of descriptors,
// with which a tcgen05 operation reads `tensor`. Error messages name the
// function `maker` and the operation `reader`.
static int l_umma_descriptors(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char *maker = face_checkstr(L, 1), *reader = face_checkstr(L, 2);
  face_tracing(cx, L, "a tensor of descriptors");
  Tensor t = gmma_of_umma(cx, maker, reader, face_check_tensor(L, 3),
                          lua_toboolean(L, 4));
  face_push_tensor(L, &t, 0);
  return 1;
}

// umma_descriptor(maker, layout, bits, mn_major) -> a descriptor with address
// 0, for a layout whose elements have `bits` bits. Error messages name the
// function `maker`.
static int l_umma_descriptor(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char *maker = face_checkstr(L, 1);
  Layout l = face_check_layout(L, 2);
  int bits = (int)face_checkint(L, 3);
  uint64_t d = gmma_descriptor(cx, maker, l, bits, lua_toboolean(L, 4));
  lua_pushinteger(L, (lua_Integer)d);
  return 1;
}

// descriptor_bits(tensor of descriptors) -> its first descriptor, a u64
static int l_descriptor_bits(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  face_tracing(cx, L, "a descriptor");
  if (t.space != SP_DESC)
    face_error(L, ERR_ARG, "smem_descriptor_to_int: a tensor of descriptors "
               "is needed, not %s", tensor_show(cx, &t));
  face_push_value(L, gmma_beyond(cx, t.mem, t.off));
  return 1;
}

// descriptor_of(bits, dtype) -> a tensor of shape (1,1) with the descriptor
// `bits`
static int l_descriptor_of(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "a descriptor");
  DType type = face_check_dtype(L, 2);
  Layout one = layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0));
  Tensor t = {.space = SP_DESC, .type = type, .align = 16,
              .l = layout_concat(cx, (Layout[]){one, one}, 2),
              .mem = face_check_value(cx, L, 1, DT_U64),
              .off = dim_int(cx, 0)};
  face_push_tensor(L, &t, 0);
  return 1;
}

// Makes a tiled copy for operand `which` ('A', 'B' or 'C') of a tiled MMA. If
// `which` is 0, makes a tiled copy for C with the order of values of a single
// atom.
static int copy_of_mma(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  Dim thr;
  CopyAtom a = check_copy_atom(cx, L, 1);
  const TiledMma *m = &check_tiled(cx, L, 2, BOX_MMA, &thr)->mma;
  push_copy(L, which ? tiled_copy_of_mma(cx, a, m, (char)which)
                     : tiled_copy_c_atom(cx, a, m));
  return 1;
}

static int copy_of_copy(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  Dim thr;
  CopyAtom a = check_copy_atom(cx, L, 1);
  const AtomBox *c = check_tiled(cx, L, 2, BOX_COPY, &thr);
  push_copy(L, tiled_copy_of_copy(cx, a, &c->copy, (char)which));
  return 1;
}

// ---- slices and partitions ----

static int64_t threads_of(Ctx *cx, const AtomBox *b) {
  return b->kind == BOX_MMA ? tiled_mma_size(cx, &b->mma)
                            : tiled_copy_size(cx, &b->copy);
}

// Reports whether all threads of the block execute the current line of the
// script: the block is one-dimensional, thr is threadIdx.x, and no branch
// surrounds the line.
static bool whole_block(const Fn *fn, Dim thr) {
  const Ins *i = ir_get(fn, dim_getref(thr));
  for (size_t k = 0; k < fn->region.n; k++)
    if (ir_get(fn, fn->region.p[k])->op == OP_IF) return false;
  return i->op == OP_SREG && i->imm == SR_TID_X &&
         fn->block[1] == 1 && fn->block[2] == 1;
}

// Raises an error if the block has fewer threads than the tiled operation,
// because a part of each tile would not be processed. Also raises an error if
// the block has more threads and all of them slice the operation. The
// additional threads would access elements beyond the tile.
static void check_threads(Ctx *cx, lua_State *L, const AtomBox *b, Dim thr) {
  const int32_t *block = ir_fn(cx)->block;
  int64_t have = (int64_t)block[0] * block[1] * block[2];
  int64_t want = threads_of(cx, b);
  const char *what = b->kind == BOX_MMA ? "MMA" : "copy";
  const char *name = b->kind == BOX_MMA ? b->mma.atom.row->name
                                        : b->copy.atom.row->name;
  if (have == 0 || want == have) return;
  if (want < have && !whole_block(ir_fn(cx), thr)) return;
  if (want < have)
    face_error(L, ERR_SHAPE, "get_slice: the tiled %s has %d threads, but the "
               "block has %d: thread %d and the threads after it would access "
               "elements beyond the tile (%s)\n  tile it with %d threads, like "
               "the kernel's other tiled operations, or let only these threads "
               "slice it: cute.when(tid:lt(%d), ...)",
               what, (int)want, (int)have,
               (int)want, name,
               (int)have, (int)want);
  face_error(L, ERR_SHAPE, "get_slice: the tiled %s has %d threads, but the "
             "block has %d\n  launch with block = %d, or tile with fewer "
             "threads (%s)", what, (int)want, (int)have, (int)want, name);
}

// Makes the simulator check that a thread index is not negative. There is no
// check if the index is known not to be negative, or has no known lower bound.
static void claim_thread(Ctx *cx, Dim thr) {
  Fn *fn = ir_fn(cx);
  Fact f = ir_fact(fn, dim_getref(thr));
  if (f.lo >= 0 || f.lo <= -(1 << 20) || fn->aside) return;
  ir_claim(cx, fn, (Claim){.v = dim_getref(thr), .hi = INT64_MAX,
                           .slice = true});
}

static int tiled_get_slice(lua_State *L) {
  Ctx *cx = face_enter(L);
  const AtomBox *b = face_check(L, 1, MT_TILED, "tiled operation");
  Dim thr;
  if (!face_test_dim(cx, L, 2, &thr) ||
      (dim_kind(thr) != DIM_INT && dim_kind(thr) != DIM_DYN))
    face_argerror(L, 2, "thread index");
  int64_t least = dim_static(thr) ? dim_value(thr)
                                  : ir_fact(ir_fn(cx), dim_getref(thr)).lo;
  if (least >= threads_of(cx, b) || (dim_static(thr) && least < 0))
    face_error(L, ERR_ARG, "get_slice: thread %lld%s is outside a tiled "
               "operation of %lld threads", (long long)least,
               dim_static(thr) ? "" : " or more",
               (long long)threads_of(cx, b));
  if (!dim_static(thr)) {
    check_threads(cx, L, b, thr);
    claim_thread(cx, thr);
  }
  lua_newuserdatauv(L, 1, 2);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 2);
  luaL_setmetatable(L, MT_SLICE);
  return 1;
}

// Returns the kind of operation to which operand `which` belongs. 'A', 'B', 'C'
// and 'E' (metadata of a sparse A) are operands of an MMA. 'S' and 'D' are
// source and destination of a copy.
static BoxKind kind_of(int which) {
  return which <= 'C' || which == 'E' ? BOX_MMA : BOX_COPY;
}

static void check_metadata(lua_State *L, const AtomMma *row, int which) {
  if (which == 'E' && !(row->flags & AMF_SPARSE))
    face_error(L, ERR_ARG, "%s has no metadata: its A is not sparse",
               row->name);
}

// Returns the slice or tiled operation at stack index 1. Sets *s to the tensor
// or layout at index 2, which is to be partitioned.
static const AtomBox *check_part(Ctx *cx, lua_State *L, int which, Dim *thr,
                                 Subject *s) {
  const AtomBox *b = check_tiled(cx, L, 1, kind_of(which), thr);
  *s = check_subject(cx, L, 2);
  if (b->kind == BOX_MMA) check_metadata(L, b->mma.atom.row, which);
  return b;
}

// Raises an error if the tensor to be partitioned among threads is a fragment
// of a tiled MMA, because a fragment has the values of only one thread.
static void check_unpartitioned(Ctx *cx, lua_State *L, Dim thr, int which,
                                const Subject *s) {
  if (s->layout || s->t.space != SP_RMEM || dim_static(thr)) return;
  const Mem *m = ir_memof(ir_fn(cx), s->t.mem);
  if (!m->operand) return;
  const char *name = ir_str(ir_fn(cx), m->name);
  face_error(L, ERR_SHAPE, "partition_%c: the fragment%s%s%s of operand %c has "
             "the values of one thread already\n  to use it with a tiled copy, "
             "write slice:retile(fragment); partition the tensor in shared or "
             "global memory instead", which, *name ? " '" : "", name,
             *name ? "'" : "", m->operand);
}

static int partition(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  Dim thr;
  Subject s;
  const AtomBox *b = check_part(cx, L, which, &thr, &s);
  check_unpartitioned(cx, L, thr, which, &s);
  Tensor t = b->kind == BOX_MMA
    ? tiled_mma_partition(cx, &b->mma, (char)which, s.t, thr)
    : tiled_copy_partition(cx, &b->copy, (char)which, s.t, thr);
  return push_view(L, &s, &t, 2);
}

// Raises an error if a fragment of operand A is retiled for a copy of operand
// B, or a fragment of B for a copy of A.
static void check_retile(Ctx *cx, lua_State *L, const AtomBox *b,
                         const Subject *s) {
  if (s->layout || s->t.space != SP_RMEM || !b->copy.operand) return;
  const Mem *m = ir_memof(ir_fn(cx), s->t.mem);
  char have = b->copy.operand, want = m->operand;
  if (want == have || (want != 'A' && want != 'B')) return;
  const char *name = ir_str(ir_fn(cx), m->name);
  face_error(L, ERR_SHAPE, "retile: the fragment%s%s%s is operand %c of a "
             "tiled MMA, but this copy was made for operand %c: it would put "
             "values into other threads' places\n  make the copy with "
             "make_tiled_copy_%c(atom, mma)", *name ? " '" : "", name,
             *name ? "'" : "", want, have, want);
}

static int slice_retile(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim thr;
  Subject s;
  const AtomBox *b = check_part(cx, L, 'S', &thr, &s);
  check_retile(cx, L, b, &s);
  Tensor t = s.t;
  t.l = tiled_copy_retile(cx, &b->copy, t.l);
  return push_view(L, &s, &t, 2);
}

// Pushes a register fragment with layout l or, if the subject is a layout, l
// itself.
static int push_fragment(Ctx *cx, lua_State *L, const Subject *s, DType type,
                         Layout l, int which) {
  if (s->layout && !ir_fn(cx)) {
    face_push_layout(L, l);
    return 1;
  }
  face_tracing(cx, L, "a register fragment");
  Tensor t = tensor_make_rmem(cx, type, l);
  Fn *fn = ir_fn(cx);
  fn->mem.p[ir_get(fn, t.mem)->imm].operand = (char)which;
  face_push_tensor(L, &t, 0);
  return 1;
}

static int partition_fragment(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  Dim thr;
  Subject s;
  const AtomBox *b = check_part(cx, L, which, &thr, &s);
  return push_fragment(cx, L, &s, tiled_mma_type(&b->mma.atom, (char)which),
                       tiled_mma_fragment(cx, &b->mma, (char)which, s.t.l),
                       which);
}

// Pushes the descriptors by which a warpgroup MMA reads a partition in shared
// memory, as a tensor. If the subject is a layout, pushes two values: the
// layout of the descriptors, and the bits of a descriptor with address 0.
static int push_descriptors(Ctx *cx, lua_State *L, const MmaAtom *a, int which,
                            const Subject *s) {
  uint64_t bits = 0;
  if (s->layout) {
    face_push_layout(L, gmma_layout(cx, a, (char)which, s->t.l, &bits));
    lua_pushinteger(L, (lua_Integer)bits);
    return 2;
  }
  face_tracing(cx, L, "a fragment of descriptors");
  Tensor t = gmma_fragment(cx, a, (char)which, s->t);
  face_push_tensor(L, &t, 0);
  return 1;
}

// Pushes a tensor at address 0 of tensor memory with the layout of a fragment
// of A or C. If the subject is a layout, pushes only the fragment's layout.
static int push_tensor(Ctx *cx, lua_State *L, const MmaAtom *a, int which,
                       const Subject *s) {
  Layout l = umma_fragment(cx, a, (char)which, s->t.l);
  if (s->layout && !ir_fn(cx)) {
    face_push_layout(L, l);
    return 1;
  }
  face_tracing(cx, L, "a fragment in tensor memory");
  Fn *fn = ir_fn(cx);
  DType type = tiled_mma_type(a, (char)which);
  Mem m = {.space = SP_TMEM, .type = type, .count = -1, .align = 16,
           .arg = NO_ARG};
  Tensor t = {.space = SP_TMEM, .type = type, .align = 16, .l = l,
              .mem = ir_mem_of(cx, fn, m, ir_int(cx, fn, DT_U32, 0), 0),
              .off = dim_int(cx, 0)};
  face_push_tensor(L, &t, 0);
  return 1;
}

static int make_fragment(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  const AtomBox *b = test_any(cx, L, 1, BOX_MMA);
  if (!b) face_argerror(L, 1, "tiled MMA");
  Subject s = check_subject(cx, L, 2);
  const MmaAtom *a = &b->mma.atom;
  check_metadata(L, a->row, which);
  if (gmma_from_shared(a, (char)which))
    return push_descriptors(cx, L, a, which, &s);
  if (a->row->kind == MK_TCGEN05) return push_tensor(cx, L, a, which, &s);
  return push_fragment(cx, L, &s, tiled_mma_type(a, (char)which),
                       tiled_mma_make_fragment(cx, a, (char)which, s.t.l),
                       which);
}

static int partition_shape(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  Dim thr;
  const AtomBox *b = check_tiled(cx, L, 1, BOX_MMA, &thr);
  Tup shape = face_check_tup(cx, L, 2);
  check_metadata(L, b->mma.atom.row, which);
  face_push_tup(L, tiled_mma_shape(cx, &b->mma, (char)which, shape));
  return 1;
}

static int thrfrg(lua_State *L, int which) {
  Ctx *cx = face_enter(L);
  Dim thr;
  const AtomBox *b = check_tiled(cx, L, 1, kind_of(which), &thr);
  Layout l = laylib_layout(cx, L, 2);
  if (b->kind == BOX_MMA) check_metadata(L, b->mma.atom.row, which);
  face_push_layout(L, b->kind == BOX_MMA
    ? tiled_mma_thrfrg(cx, &b->mma, (char)which, l)
    : tiled_copy_tidfrg(cx, &b->copy, (char)which, l));
  return 1;
}

// ---- fields of a warpgroup MMA ----

// The field ACCUMULATE of a tiled MMA selects whether the MMA adds to its
// accumulators. During a trace, TRACE_STATE.tiled[tiled MMA] is the number n of
// the MMA, and TRACE_STATE.accumulate[n] is the table {[n] = value of the
// field}. Loops and branches compare such tables before and after their bodies,
// and can restore an earlier value.

// Pushes the table TRACE_STATE.accumulate[n] for the tiled MMA (or slice) at
// idx, and returns n. Assigns n on first use.
static lua_Integer push_accumulate(lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "accumulate");
  lua_getfield(L, -2, "tiled");
  lua_remove(L, -3);
  if (luaL_testudata(L, idx, MT_SLICE)) lua_getiuservalue(L, idx, 1);
  else lua_pushvalue(L, idx);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, -3) == LUA_TNIL) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, -4) + 1;
    lua_newtable(L);
    lua_pushboolean(L, 1);
    lua_rawseti(L, -2, n);
    lua_rawseti(L, -5, n);
    lua_pop(L, 1);
    lua_pushinteger(L, n);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -5);
  }
  lua_Integer n = lua_tointeger(L, -1);
  lua_pop(L, 3);
  lua_rawgeti(L, -1, n);
  lua_remove(L, -2);
  return n;
}

// Reports whether the field ACCUMULATE determines if the MMA accumulates.
static bool accumulates_by(const AtomMma *r) {
  return r->kind == MK_WGMMA || r->kind == MK_TCGEN05;
}

// Reports whether scale factors of the MMA are in tensor memory.
static bool has_scales(const AtomMma *r) {
  return r->kind == MK_TCGEN05 && r->flags & AMF_SCALE;
}

// Checks the name of a field of a tiled MMA. Returns 'A' for SFA, 'B' for SFB,
// and 0 for ACCUMULATE.
static char check_field(Ctx *cx, lua_State *L) {
  Dim thr;
  const AtomBox *b = check_tiled(cx, L, 1, BOX_MMA, &thr);
  const AtomMma *r = b->mma.atom.row;
  const char *k = face_checkstr(L, 2);
  char which = strcmp(k, "SFA") == 0 ? 'A' : strcmp(k, "SFB") == 0 ? 'B' : 0;
  bool there = which ? has_scales(r)
                     : accumulates_by(r) && strcmp(k, "ACCUMULATE") == 0;
  if (!there)
    face_error(L, ERR_NAME, "%s has no field '%s'\n  MMAs of "
               "cute.nvgpu.warpgroup and cute.nvgpu.tcgen05 have ACCUMULATE, "
               "those with scale factors also SFA and SFB", r->name, k);
  face_tracing(cx, L, "a field of a tiled MMA");
  return which;
}

// Pushes TRACE_STATE.scales[m], where m is the tiled MMA at idx, or the one of
// the slice at idx. Its fields A and B are the first scale factors of A and of
// B.
static void push_scales(lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "scales");
  lua_remove(L, -2);
  if (luaL_testudata(L, idx, MT_SLICE)) lua_getiuservalue(L, idx, 1);
  else lua_pushvalue(L, idx);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, -3) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -5);
  }
  lua_replace(L, -3);
  lua_pop(L, 1);
}

// Returns the scale factors (V,1,1) of one instruction: the value of field SFA
// or SFB of the tiled MMA at idx.
static Tensor scales_of(Ctx *cx, lua_State *L, int idx, const AtomMma *r,
                        char which) {
  const char field[2] = {which, 0};
  push_scales(L, idx);
  lua_getfield(L, -1, field);
  if (lua_isnil(L, -1))
    face_error(L, ERR_ARG, "gemm: %s takes {A, scales} and {B, scales}, or "
               "the fields SFA and SFB", r->name);
  Tensor t = face_check_tensor(L, -1);
  lua_pop(L, 2);
  int rows = which == 'A' ? r->m / (r->thr[0] - '0') : r->n;
  const char *l = arena_printf(cx, &cx->scratch, "((((32,%d),4),(%d,%d)),1,1):"
                               "((((262144,4),8388608),(0,1)),0,0)",
                               (rows + 31) / 32, r->vs, r->k / r->vs);
  t.l = layout_parse(cx, l, strlen(l));
  return t;
}

static int mma_set(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char which[2] = {check_field(cx, L), 0};
  lua_settop(L, 3);
  if (*which) {
    face_check_tensor(L, 3);
    push_scales(L, 1);
    lua_pushvalue(L, 3);
    lua_setfield(L, -2, which);
    return 0;
  }
  face_check_value(cx, L, 3, DT_BOOL);
  lua_Integer n = push_accumulate(L, 1);
  hooklib_wrote(L, -1);
  lua_pushvalue(L, 3);
  lua_rawseti(L, -2, n);
  return 0;
}

static int mma_get(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char which[2] = {check_field(cx, L), 0};
  if (*which) {
    push_scales(L, 1);
    lua_getfield(L, -1, which);
    return 1;
  }
  lua_rawgeti(L, -1, push_accumulate(L, 1));
  return 1;
}

// Returns the value of the field ACCUMULATE of the tiled MMA at idx. Returns 0
// if the field is true.
static Ref accumulates(Ctx *cx, lua_State *L, int idx) {
  bool set = luaL_testudata(L, idx, MT_TILED) ||
             luaL_testudata(L, idx, MT_SLICE);
  if (!set) return 0;
  lua_rawgeti(L, -1, push_accumulate(L, idx));
  Ref r = lua_isboolean(L, -1) && lua_toboolean(L, -1)
    ? 0 : face_check_value(cx, L, -1, DT_BOOL);
  lua_pop(L, 2);
  return r;
}

// ---- queries ----

int atomlib_size(lua_State *L) {
  Ctx *cx = face_enter(L);
  const AtomBox *b = face_check(L, 1, MT_TILED, "tiled operation");
  lua_pushinteger(L, (lua_Integer)threads_of(cx, b));
  return 1;
}

static int mma_get_tile_size(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim thr;
  const AtomBox *b = check_tiled(cx, L, 1, BOX_MMA, &thr);
  lua_Integer i = face_checkint(L, 2);
  if (i < 0 || i > 2) face_argerror(L, 2, "mode 0, 1 or 2 (M, N, K)");
  face_push_dim(L, tiled_mma_tile(cx, &b->mma, (int)i));
  return 1;
}

// ---- copy and gemm ----

// Returns the tensor of predicates: argument idx, or its field `pred` if it is
// a table. Returns NULL if there is none.
static const Tensor *check_pred(lua_State *L, int idx, Tensor *p) {
  if (lua_isnoneornil(L, idx)) return NULL;
  if (lua_istable(L, idx)) {
    face_check_options(L, idx, "pred");
    lua_getfield(L, idx, "pred");
    lua_replace(L, idx);
    if (lua_isnil(L, idx)) return NULL;
  }
  *p = face_check_tensor(L, idx);
  return p;
}

// copy(atom, src, dst [, pred]): copies a tensor. With a tensor of predicates,
// copies only the elements whose predicate is true.
static int l_copy(lua_State *L) {
  if (tmalib_box(L, 1)) return tmalib_copy(L);
  Ctx *cx = face_enter(L);
  if (strcmp(face_typename(L, 1), "tensor") == 0)
    face_error(L, ERR_ARG, "cute.copy takes an atom first, got %s\n  write "
               "cute.copy(atom, src, dst), or cute.autovec_copy(src, dst), "
               "which needs no atom", face_show(L, 1));
  CopyAtom a = check_copy_atom(cx, L, 1);
  face_tracing(cx, L, "copy");
  Tensor src = face_check_tensor(L, 2), dst = face_check_tensor(L, 3), p;
  const Tensor *pred = check_pred(L, 4, &p);
  tiled_copy_call(cx, &a, src, dst, pred);
  return 0;
}

// Flags of plain_copy. PRED: the first argument is a tensor of predicates.
// WIDE: each access is as wide as possible; otherwise, it has one element.
enum { PRED = 1, WIDE = 2 };

// Copies by loads and stores. Arguments: [pred,] src, dst.
static int plain_copy(lua_State *L, int how) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "copy");
  Tensor p;
  int first = how & PRED ? 2 : 1;
  const Tensor *pred = how & PRED ? check_pred(L, 1, &p) : NULL;
  Tensor src = face_check_tensor(L, first);
  Tensor dst = face_check_tensor(L, first + 1);
  tensor_copy(cx, src, dst, pred, (CopyHow){
    .max_bits = how & WIDE ? 128 : dtype_bits(src.type)});
  return 0;
}

// copy_if([atom,] pred, src, dst): copies the elements of a tensor whose
// predicate is true.
static int l_copy_if(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (!test_any(cx, L, 1, BOX_COPY)) return plain_copy(L, PRED | WIDE);
  lua_settop(L, 4);
  lua_pushvalue(L, 2);
  lua_remove(L, 2);
  return l_copy(L);
}

// Returns operand idx of an MMA: a tensor, or the first tensor of a table
// {tensor, more...}. Appends the other tensors of the table, at most `most`, to
// `more`, and adds their number to *n.
static Tensor check_operand(lua_State *L, int idx, Tensor *more, int *n,
                            int most) {
  if (lua_type(L, idx) != LUA_TTABLE) return face_check_tensor(L, idx);
  lua_geti(L, idx, 1);
  Tensor t = face_check_tensor(L, -1);
  for (int i = 2; i <= most + 1; i++) {
    if (lua_geti(L, idx, i) == LUA_TNIL) break;
    more[(*n)++] = face_check_tensor(L, -1);
  }
  return t;
}

// Raises an error if tensor t, passed as operand `want` of an MMA, is a
// fragment that was made for the other operand (A or B).
static void check_fragment(Ctx *cx, lua_State *L, const Tensor *t, char want) {
  if (t->space != SP_RMEM || !t->mem) return;
  const Mem *m = ir_memof(ir_fn(cx), t->mem);
  if (m->operand != 'A' + 'B' - want) return;
  const char *name = ir_str(ir_fn(cx), m->name);
  face_error(L, ERR_SHAPE, "cute.gemm: operand %c is the fragment%s%s%s, which "
             "was made for operand %c: its values are in other threads\n  make "
             "it with make_fragment_%c and partition_%c", want,
             *name ? " '" : "", name, *name ? "'" : "", m->operand, want, want);
}

// gemm(mma, d, a, b, c). For a block-scaled MMA, a is {A, scales} and b is {B,
// scales}. For a sparse MMA, a is {A, metadata} or {A, scales, metadata}.
static int l_gemm(lua_State *L) {
  Ctx *cx = face_enter(L);
  MmaAtom a = check_mma_atom(cx, L, 1);
  face_tracing(cx, L, "gemm");
  lua_settop(L, 5);
  Tensor d = face_check_tensor(L, 2), ma[2], mb[1], more[3];
  int na = 0, nb = 0, n = 0;
  Tensor ta = check_operand(L, 3, ma, &na, 2);
  Tensor tb = check_operand(L, 4, mb, &nb, 1);
  Tensor tc = face_check_tensor(L, 5);
  check_fragment(cx, L, &ta, 'A');
  check_fragment(cx, L, &tb, 'B');
  if (na > 0) more[n++] = ma[0];
  if (nb > 0) more[n++] = mb[0];
  if (na > 1) more[n++] = ma[1];
  bool set = luaL_testudata(L, 1, MT_TILED) || luaL_testudata(L, 1, MT_SLICE);
  set = set && !na && !nb && has_scales(a.row);
  for (; set && n < 2; n++)
    more[n] = scales_of(cx, L, 1, a.row, n ? 'B' : 'A');
  Ref add = accumulates_by(a.row) ? accumulates(cx, L, 1) : 0;
  tiled_gemm(cx, &a, d, ta, tb, tc, more, n, add);
  return 0;
}

// ---- tables ----

// atom_name("mma" | "copy", i) -> the name of atom i, counted from 0, or nil
// after the last atom
static int l_atom_name(lua_State *L) {
  bool mma = strcmp(face_checkstr(L, 1), "mma") == 0;
  lua_Integer i = face_checkint(L, 2);
  lua_Integer n = mma ? atom_mma_count() : atom_copy_count();
  if (i < 0 || i >= n) lua_pushnil(L);
  else if (mma) lua_pushstring(L, atom_mma((int)i)->name);
  else lua_pushstring(L, atom_copy((int)i)->name);
  return 1;
}

// fn:check_arch(sm [, "sm_90a"]): raises an error if the traced function uses a
// feature that architecture sm lacks, or consists of PTX for another target.
static int fn_check_arch(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  const FnBox *box = (const FnBox *)fn;
  int sm = (int)face_checkint(L, 2);
  bool wrong = box->ptx_only ? sm != box->ptx_sm : sm < box->ptx_sm;
  if (box->ptx_sm && wrong)
    face_error(L, ERR_ARCH, "kernel %s is PTX for sm_%d%s%s, not for sm_%d",
               ir_str(fn, fn->name), box->ptx_sm, box->ptx_only ? "a" : "",
               box->ptx_only ? " only" : " and later", sm);
  target_check(cx, fn, sm, face_optstr(L, 3, NULL));
  return 0;
}

// fn:warnings() -> a list of sentences about likely mistakes in a traced
// function.
static int fn_warnings(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  int returned = ((const FnBox *)fn)->returned;
  lua_newtable(L);
  if (returned) {
    lua_pushfstring(L, "line %d: the kernel returns a traced value, which a "
                    "launch cannot return: write it to a tensor argument",
                    returned);
    lua_rawseti(L, -2, 1);
  }
  for (size_t k = 0; k < 2 * fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k / 2];
    const char *text = k % 2 ? preflight_indexed(cx, fn, m)
                             : preflight_fragment(cx, fn, m);
    if (!text) continue;
    lua_pushstring(L, text);
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
  }
  return 1;
}

static const FnRow rows[] = {
  {"make_mma_atom(name)", "", FN(l_make_mma_atom)},
  {"make_copy_atom(name, dtype?, bits?)", "", FN(l_make_copy_atom)},
  {"make_tiled_mma(atom, atom_layout?, permutation?)", "",
   FN(l_make_tiled_mma)},
  {"make_tiled_copy(atom, thr_layout, val_layout)", "", FN(l_make_tiled_copy)},
  {"make_tiled_copy_tv(atom, thr_layout, val_layout)", "",
   FN(l_make_tiled_copy_tv)},
  {"make_cotiled_copy(atom, tv, data)", "", FN(l_make_cotiled_copy)},
  {"make_tiled_copy_A(atom, mma)", "", NUMBERED(copy_of_mma, 'A')},
  {"make_tiled_copy_B(atom, mma)", "", NUMBERED(copy_of_mma, 'B')},
  {"make_tiled_copy_C(atom, mma)", "", NUMBERED(copy_of_mma, 'C')},
  {"make_tiled_copy_C_atom(atom, mma)", "", NUMBERED(copy_of_mma, 0)},
  {"make_tiled_copy_S(atom, copy)", "", NUMBERED(copy_of_copy, 'S')},
  {"make_tiled_copy_D(atom, copy)", "", NUMBERED(copy_of_copy, 'D')},
  {"copy(atom, src, dst, pred?)", "", FN(l_copy)},
  {"copy_atom_call(atom, src, dst, pred?)", "", FN(l_copy)},
  {"copy_if(atom?, pred, src, dst)", "", FN(l_copy_if)},
  {"autovec_copy(src, dst)", "", NUMBERED(plain_copy, WIDE)},
  {"basic_copy(src, dst)", "", NUMBERED(plain_copy, 0)},
  {"basic_copy_if(pred, src, dst)", "", NUMBERED(plain_copy, PRED)},
  {"gemm(mma, d, a, b, c)", "", FN(l_gemm)},
  {"mma_atom_call(mma, d, a, b, c)", "", FN(l_gemm)},
  {"atom_name(table, i)", "", FN(l_atom_name)},
  LAST_ROW};

static const luaL_Reg box_meta[] = {
  {"__index", fields_index}, {"__tostring", fields_tostring}, {NULL, NULL}};

static const FnRow atom_rows[] = {
  {"make_fragment_A(part)", "", NUMBERED(make_fragment, 'A')},
  {"make_fragment_B(part)", "", NUMBERED(make_fragment, 'B')},
  {"make_fragment_C(part)", "", NUMBERED(make_fragment, 'C')},
  {"make_fragment_E(part)", "", NUMBERED(make_fragment, 'E')},
  LAST_ROW};

// Methods that tiled operations and their slices share. Each method checks
// whether its object is an MMA or a copy.
static const FnRow tiled_rows[] = {
  {"size()", "", FN(atomlib_size)},
  {"get_slice(thread, yz...)", "", FN(tiled_get_slice)},
  {"get_tile_size(mode)", "", FN(mma_get_tile_size)},
  {"set(field, value)", "", FN(mma_set)},
  {"get(field)", "", FN(mma_get)},
  {"partition_shape_A(shape)", "", NUMBERED(partition_shape, 'A')},
  {"partition_shape_B(shape)", "", NUMBERED(partition_shape, 'B')},
  {"partition_shape_C(shape)", "", NUMBERED(partition_shape, 'C')},
  {"partition_shape_E(shape)", "", NUMBERED(partition_shape, 'E')},
  {"partition_fragment_A(t)", "", NUMBERED(partition_fragment, 'A')},
  {"partition_fragment_B(t)", "", NUMBERED(partition_fragment, 'B')},
  {"partition_fragment_C(t)", "", NUMBERED(partition_fragment, 'C')},
  {"partition_fragment_E(t)", "", NUMBERED(partition_fragment, 'E')},
  {"thrfrg_A(layout)", "", NUMBERED(thrfrg, 'A')},
  {"thrfrg_B(layout)", "", NUMBERED(thrfrg, 'B')},
  {"thrfrg_C(layout)", "", NUMBERED(thrfrg, 'C')},
  {"thrfrg_E(layout)", "", NUMBERED(thrfrg, 'E')},
  {"tidfrg_S(layout)", "", NUMBERED(thrfrg, 'S')},
  {"tidfrg_D(layout)", "", NUMBERED(thrfrg, 'D')},
  {"retile(t)", "", FN(slice_retile)},
  {"retile_S(t)", "", FN(slice_retile)},
  {"retile_D(t)", "", FN(slice_retile)},
  LAST_ROW};

static const FnRow slice_rows[] = {
  {"partition_A(t)", "", NUMBERED(partition, 'A')},
  {"partition_B(t)", "", NUMBERED(partition, 'B')},
  {"partition_C(t)", "", NUMBERED(partition, 'C')},
  {"partition_E(t)", "", NUMBERED(partition, 'E')},
  {"partition_S(t)", "", NUMBERED(partition, 'S')},
  {"partition_D(t)", "", NUMBERED(partition, 'D')},
  LAST_ROW};

void atomlib_open(lua_State *L) {
  static const luaL_Reg fn_meta[] = {{"check_arch", fn_check_arch},
                                     {"warnings", fn_warnings},
                                     {NULL, NULL}};
  static const luaL_Reg funcs[] = {{"umma_descriptors", l_umma_descriptors},
                                   {"umma_descriptor", l_umma_descriptor},
                                   {"descriptor_bits", l_descriptor_bits},
                                   {"descriptor_of", l_descriptor_of},
                                   {NULL, NULL}};
  static const char *const types[] = {MT_ATOM, MT_TILED, MT_SLICE};
  face_setrows(L, rows);
  face_setfuncs(L, funcs);
  luaL_newmetatable(L, MT_FN);  // pushes the metatable that tracelib.c created
  face_setfuncs(L, fn_meta);
  lua_pop(L, 1);
  // A tiled operation has the methods of an atom. A slice has the methods of an
  // atom and of a tiled operation.
  for (int i = 0; i < 3; i++) {
    face_newtype(L, types[i], box_meta);
    face_setrows(L, atom_rows);
    if (i >= 1) face_setrows(L, tiled_rows);
    if (i >= 2) face_setrows(L, slice_rows);
    lua_pop(L, 1);
  }
}
// SPDX-License-Identifier: MIT
