// Lua bindings of tensor maps, and of the copy atoms of TMA and of bulk copies.
#include "bind/tma.h"

#include <string.h>

#include "bind/row.h"
#include "bind/tensorlib.h"
#include "ir/operands.h"

// ---- parameters, with the driver's numbers ----

// Reads at most n integers from the list in field k of the table at 1 to out.
// If an entry is absent, out[i] is unchanged.
static void read_list(lua_State *L, const char *k, int64_t *out, int n) {
  lua_getfield(L, 1, k);
  for (int i = 0; i < n && lua_istable(L, -1); i++) {
    if (lua_geti(L, -1, i + 1) != LUA_TNIL) out[i] = face_checkint(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void tmalib_parameters(lua_State *L, TensorMap *m) {
  memset(m, 0, sizeof *m);
  m->im2col = face_get_bool(L, 1, "im2col");
  m->sm100 = face_get_bool(L, 1, "sm100");
  m->type = face_get_int(L, 1, "type", 0);
  m->rank = face_get_int(L, 1, "rank", 0);
  m->address = (uint64_t)face_get_int(L, 1, "address", 0);
  m->interleave = face_get_int(L, 1, "interleave", 0);
  m->swizzle = face_get_int(L, 1, "swizzle", 0);
  m->l2 = face_get_int(L, 1, "l2", 0);
  m->fill = face_get_int(L, 1, "fill", 0);
  m->channels = face_get_int(L, 1, "channels", 0);
  m->pixels = face_get_int(L, 1, "pixels", 0);
  for (int i = 0; i < TENSORMAP_RANK; i++) m->step[i] = 1;
  read_list(L, "extent", m->extent, TENSORMAP_RANK);
  read_list(L, "stride", m->stride, TENSORMAP_RANK - 1);
  read_list(L, "box", m->box, TENSORMAP_RANK);
  read_list(L, "step", m->step, TENSORMAP_RANK);
  read_list(L, "lower", m->lower, TENSORMAP_RANK - 2);
  read_list(L, "upper", m->upper, TENSORMAP_RANK - 2);
}

void tmalib_push_words(lua_State *L, const uint64_t *words) {
  lua_createtable(L, TENSORMAP_WORDS, 0);
  for (int i = 0; i < TENSORMAP_WORDS; i++) {
    lua_pushinteger(L, (lua_Integer)words[i]);
    lua_seti(L, -2, i + 1);
  }
}

// encode_tensor_map(parameters) -> a list of the 16 words of the encoded map.
// The fields of `parameters` are named as in TensorMap (base/tensormap.h). If
// they violate a rule, raises an error that names it.
static int l_encode_tensor_map(lua_State *L) {
  face_enter(L);
  face_checktype(L, 1, LUA_TTABLE);
  TensorMap m;
  tmalib_parameters(L, &m);
  uint64_t words[TENSORMAP_WORDS];
  Why why;
  if (!tensormap_check(&m, &why)) face_error(L, why.kind, "%s", why.msg);
  tensormap_encode(&m, words);
  tmalib_push_words(L, words);
  return 1;
}

static void push_list(lua_State *L, const char *k, const int64_t *v, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, v[i]);
    lua_seti(L, -2, i + 1);
  }
  lua_setfield(L, -2, k);
}

// decode_tensor_map(bytes) -> parameters, dtype | nil, message.
// encode_tensor_map encodes these parameters as the given 128 bytes.
static int l_decode_tensor_map(lua_State *L) {
  face_enter(L);
  size_t size;
  const char *bytes = face_checklstr(L, 1, &size);
  uint64_t words[TENSORMAP_WORDS];
  TensorMap m;
  Why w;
  bool ok = size == sizeof words ||
            why(&w, ERR_ARG, "a tensor map has %d bytes, got %zu",
                (int)sizeof words, size);
  if (ok) memcpy(words, bytes, sizeof words);
  if (!ok || !tensormap_decode(words, &m, &w))
    return face_fail2(L, w.kind, "%s", w.msg);
  int n = (int)m.rank;
  lua_createtable(L, 0, 19);
  face_set_bool(L, "im2col", m.im2col);
  if (m.sm100) face_set_bool(L, "sm100", true);
  face_set_int(L, "type", m.type);
  face_set_int(L, "rank", m.rank);
  face_set_int(L, "address", (lua_Integer)m.address);
  face_set_int(L, "interleave", m.interleave);
  face_set_int(L, "swizzle", m.swizzle);
  face_set_int(L, "l2", m.l2);
  face_set_int(L, "fill", m.fill);
  push_list(L, "extent", m.extent, n);
  push_list(L, "stride", m.stride, n - 1);
  push_list(L, "step", m.step, n);
  face_push_dtype(L, tensormap_dtype((TensorMapType)m.type));
  lua_setfield(L, -2, "dtype");
  if (!m.im2col) {
    push_list(L, "box", m.box, n);
    return 1;
  }
  push_list(L, "lower", m.lower, n - 2);
  push_list(L, "upper", m.upper, n - 2);
  face_set_int(L, "channels", m.channels);
  face_set_int(L, "pixels", m.pixels);
  return 1;
}

// ---- atoms ----

TmaBox *tmalib_box(lua_State *L, int idx) {
  return luaL_testudata(L, idx, MT_TMA);
}

static TmaBox *check_atom(lua_State *L, int idx) {
  return face_check(L, idx, MT_TMA, "TMA atom");
}

static void push_atom(lua_State *L, const TmaAtom *a) {
  TmaBox *b = lua_newuserdatauv(L, sizeof *b, 1);
  memcpy(&b->a, a, sizeof *a);
  luaL_setmetatable(L, MT_TMA);
}

void tmalib_push_traced(lua_State *L, const TmaBox *b, const Mem *m) {
  Ctx *cx = face_state(L);
  Tensor t = {.space = SP_TMAP, .type = m->type, .mem = m->ref,
              .off = dim_int(cx, 0), .l = layout_unit(cx), .align = m->align};
  push_atom(L, &b->a);
  tmalib_box(L, -1)->a.ref = m->ref;
  face_push_tensor(L, &t, 0);
  lua_setiuservalue(L, -2, 1);
}

// Returns the TMA atom at idx. Raises an error unless the atom is an argument
// of the kernel being traced.
static const TmaAtom *check_traced(lua_State *L, int idx, const char *what) {
  const TmaBox *b = check_atom(L, idx);
  if (b->a.runs) return &b->a;
  if (!b->a.ref)
    face_error(L, ERR_ARG, "%s: a TMA atom must be an argument of the kernel: "
               "pass it and the coordinate tensor at the launch", what);
  lua_getiuservalue(L, idx, 1);
  // The call raises an error if the tensor belongs to another kernel.
  face_check_tensor(L, -1);
  lua_pop(L, 1);
  return &b->a;
}

void tmalib_encode(Ctx *cx, const TmaAtom *a, const Tensor *t,
                   uint64_t address, uint64_t words[TENSORMAP_WORDS]) {
  TensorMap m = tma_map(cx, a, t, address);
  Why why;
  if (!tensormap_check(&m, &why))
    ctx_fail(cx, why.kind, "%s\n  %s", why.msg, tensor_show(cx, t));
  tensormap_encode(&m, words);
}

// ---- construction ----

static void read_leaves(lua_State *L, TmaAtom *a) {
  int64_t leaf[TENSORMAP_RANK] = {0};
  read_list(L, "leaf", leaf, TENSORMAP_RANK);
  for (int i = 0; i < TENSORMAP_RANK; i++)
    a->leaf[i] = i < a->map.rank ? (int8_t)leaf[i] : -1;
}

static void read_spatial(lua_State *L, const char *k, int32_t *out) {
  int64_t v[TENSORMAP_RANK - 2] = {0};
  read_list(L, k, v, TENSORMAP_RANK - 2);
  for (int i = 0; i < TENSORMAP_RANK - 2; i++) out[i] = (int32_t)v[i];
}

static uint16_t read_flags(lua_State *L) {
  unsigned flags = face_get_bool(L, 1, "im2col") ? BKF_IM2COL : 0;
  if (face_get_bool(L, 1, "pair")) flags |= BKF_PAIR;
  if (face_get_bool(L, 1, "rows")) flags |= BKF_ROWS;
  lua_getfield(L, 1, "reduction");
  if (!lua_isnil(L, -1))
    flags |= BKF_REDUCES | (unsigned)atomic_find(face_checkstr(L, -1));
  lua_pop(L, 1);
  return (uint16_t)flags;
}

// Returns the element type of the tensor map: field `internal` or, by default,
// the tensor's type `own`. Both types have the same width, or the map's type is
// an integer that contains several elements of the tensor.
static DType read_internal(lua_State *L, unsigned flags, DType own) {
  DType t = own;
  lua_getfield(L, 1, "internal");
  if (!lua_isnil(L, -1)) t = face_check_dtype(L, -1);
  lua_pop(L, 1);
  int in = dtype_bits(t), bits = dtype_bits(own);
  unsigned narrow = BKF_IM2COL | BKF_ROWS | BKF_REDUCES;
  if (in != bits && (in % bits || !dtype_is_int(t) || flags & narrow))
    face_error(L, ERR_TYPE, "internal_type %s has %d bits, but the tensor's "
               "type %s has %d", dtype_name(t), in, dtype_name(own), bits);
  return t;
}

// Checks the tensor map of atom a, then pushes the atom. Its tensor t is at
// stack index 2.
static int push_of(lua_State *L, Ctx *cx, const TmaAtom *a, const Tensor *t) {
  uint64_t words[TENSORMAP_WORDS];
  int64_t at = dim_value(t->off) * dtype_bits(t->type) / 8;
  tmalib_encode(cx, a, t, (uint64_t)at, words);
  push_atom(L, a);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 1);
  return 1;
}

// Raises an error if the hardware lacks the atom's reduction. The hardware has
// sums and bit operations for u64, but not for i64. For those reductions,
// changes the map's type from i64 to u64.
static void check_reduction(lua_State *L, TmaAtom *a, DType in) {
  if (!(a->flags & BKF_REDUCES)) return;
  const char *kind = atomic_row((AtomicKind)(a->flags & BKF_ATOMIC))->name;
  TensorMapType t = (TensorMapType)a->map.type;
  if (t == TMT_I64 && !strstr(tensormap_reductions(t), kind)) t = TMT_U64;
  const char *can = tensormap_reductions(t);
  if (!strstr(can, kind))
    face_error(L, ERR_TYPE, "a TMA reduction of %s by '%s' is an illegal "
               "instruction on sm_90 (valid for %s: %s)", dtype_name(in), kind,
               dtype_name(in), *can ? can : "none");
  a->map.type = t;
}

// tma_atom{tensor =, internal =, store =, reduction =, multicast =, ctas =,
// values =, tile =, rank =, type = (default: the type of the elements), box =,
// leaf =, inner =, swizzle =, l2 =, fill =, im2col =, lower =, upper =, step =,
// channels =, pixels =} -> a TMA atom. The fields are those of TmaAtom and
// TensorMap.
static int l_tma_atom(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_settop(L, 1);
  lua_getfield(L, 1, "tensor");
  Tensor t = face_check_tensor(L, 2);
  TmaAtom a;
  // Clear the padding, too, because atoms are compared as bytes.
  memset(&a, 0, sizeof a);
  a.type = t.type;
  a.store = face_get_bool(L, 1, "store");
  a.multicast = face_get_bool(L, 1, "multicast");
  a.flags = read_flags(L);
  a.ctas = (int)face_get_int(L, 1, "ctas", 1);
  a.values = face_get_int(L, 1, "values", 1);
  a.tile = face_get_int(L, 1, "tile", 1);
  tmalib_parameters(L, &a.map);
  DType in = read_internal(L, a.flags, t.type);
  a.unit = dtype_bits(in) == dtype_bits(t.type) ? t.type : in;
  a.inner = (uint64_t)face_get_int(L, 1, "inner", 0);
  if (lua_getfield(L, 1, "type") == LUA_TNIL) a.map.type = tensormap_type(in);
  lua_pop(L, 1);
  if (a.map.type == TMT_COUNT)
    face_error(L, ERR_TYPE, "a tensor map has no element type %s\n  recast "
               "the tensor: cute.recast_tensor(t, cute.u8)", dtype_name(in));
  check_reduction(L, &a, in);
  read_leaves(L, &a);
  read_spatial(L, "out", a.out);
  read_spatial(L, "dilation", a.dilation);
  read_spatial(L, "first", a.first);
  return push_of(L, cx, &a, &t);
}

// tma_rebind(atom, tensor) -> the atom for another tensor with the same layout
// and type.
static int l_tma_rebind(lua_State *L) {
  Ctx *cx = face_enter(L);
  const TmaBox *b = tmalib_box(L, 1);
  if (!b || b->a.runs)
    face_error(L, ERR_ARG, "an atom of make_tiled_tma_atom is needed, not %s",
               face_show(L, 1));
  Tensor t = face_check_tensor(L, 2);
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  Tensor was = face_check_tensor(L, 3);
  if (t.type != was.type || !layout_eq(t.l, was.l))
    face_error(L, ERR_ARG, "a tensor of %s with layout %s is needed, not "
               "of %s with layout %s",
               dtype_name(was.type), layout_text(cx, was.l),
               dtype_name(t.type), layout_text(cx, t.l));
  TmaAtom a = b->a;
  return push_of(L, cx, &a, &t);
}

int tmalib_bulk_atom(lua_State *L) {
  static const char *const names[] = {"", "G2S", "S2G", "S2S", "R2S"};
  TmaAtom a;
  memset(&a, 0, sizeof a);
  a.type = a.unit = face_check_dtype(L, 2);
  a.ctas = 1;
  lua_getfield(L, 1, "runs");
  const char *runs = face_optstr(L, -1, "");
  for (uint8_t k = TMA_G2S; k <= TMA_R2S; k++)
    if (strcmp(runs, names[k]) == 0) a.runs = k;
  if (!a.runs)
    face_error(L, ERR_ARG, "make_copy_atom: %s does not copy contiguous runs; "
               "make the copy of a tile by TMA with make_tiled_tma_atom",
               face_show(L, 1));
  a.multicast = face_get_bool(L, 1, "multicast");
  push_atom(L, &a);
  return 1;
}

// tma_leaves(tensor) -> list with an entry for each mode of the tensor's
// flattened layout: {extent, stride, whether the extent is 1 in every launch}.
static int l_tma_leaves(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  const TensorMarks *m = tensor_marks(L, 1);
  size_t n = tup_leaves(t.l.shape);
  Dim *shape = NEW(cx, Dim, n);
  tup_collect(t.l.shape, shape);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_createtable(L, 0, 3);
    face_set_int(L, "extent", dim_value(shape[i]));
    face_set_int(L, "stride", dim_value(t.l.stride[i]));
    face_set_bool(L, "unit", dim_is(shape[i], 1) && !(m && m->shape[i]));
    lua_seti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

// tma_coordinates(tensor, layout, zeros) -> a coordinate tensor with this
// layout and the dynamic extents of `tensor`. Its first element is the
// coordinate `zeros`.
static int l_tma_coordinates(lua_State *L) {
  Ctx *cx = face_enter(L);
  const TensorMarks *m = tensor_marks(L, 1);
  Tensor t = {.space = SP_COORD, .type = DT_I32, .align = 1,
              .l = face_check_layout(L, 2), .base = face_check_tup(cx, L, 3)};
  face_push_tensor(L, &t, 0);
  if (!m) return 1;
  TensorMarks *own = lua_newuserdatauv(L, sizeof *own, 0);
  *own = *m;
  memset(own->stride, 0, sizeof own->stride);
  memset(own->stride_symbol, 0, sizeof own->stride_symbol);
  lua_setiuservalue(L, -2, 2);
  return 1;
}

// ---- queries ----

// tma_words(atom, address) -> the words that the atom's tensor map would have
// if its tensor were at this address.
static int l_tma_words(lua_State *L) {
  Ctx *cx = face_enter(L);
  const TmaBox *b = check_atom(L, 1);
  uint64_t words[TENSORMAP_WORDS];
  lua_getiuservalue(L, 1, 1);
  Tensor t = face_check_tensor(L, -1);
  tmalib_encode(cx, &b->a, &t, (uint64_t)face_checkint(L, 2), words);
  tmalib_push_words(L, words);
  return 1;
}

// Writes the extents of a map's box to `box`, and returns their number. The
// extents of an im2col box are channels and pixels.
static int box_of(const TensorMap *m, int64_t *box) {
  int n = m->im2col ? 2 : (int)m->rank;
  for (int i = 0; i < n; i++) box[i] = m->box[i];
  if (m->im2col) box[0] = m->channels, box[1] = m->pixels;
  return n;
}

static void push_box(lua_State *L, const TensorMap *m) {
  int64_t box[TENSORMAP_RANK];
  int n = box_of(m, box);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, box[i]);
    lua_seti(L, -2, i + 1);
  }
}

static int atom_index(lua_State *L) {
  const TmaAtom *a = &check_atom(L, 1)->a;
  const char *k = face_checkstr(L, 2);
  if (strcmp(k, "tx_bytes") == 0) lua_pushinteger(L, tma_bytes(a));
  else if (strcmp(k, "values") == 0) lua_pushinteger(L, a->values);
  else if (strcmp(k, "stores") == 0) lua_pushboolean(L, a->store);
  else if (strcmp(k, "num_multicast") == 0) lua_pushinteger(L, a->ctas);
  else if (strcmp(k, "swizzle") == 0)
    lua_pushinteger(L, a->map.swizzle ? 16 << a->map.swizzle : 0);
  else if (strcmp(k, "box") == 0) push_box(L, &a->map);
  else if (strcmp(k, "value_type") == 0) face_push_dtype(L, a->type);
  else face_nofield(L, 0, "tx_bytes values stores num_multicast swizzle box "
                    "value_type");
  return 1;
}

static const char *atom_word(const TmaAtom *a) {
  if (a->runs == TMA_S2S) return "copy to another CTA";
  if (a->runs == TMA_R2S) return "store to another CTA";
  if (a->runs == TMA_S2G || (a->store && !(a->flags & BKF_REDUCES)))
    return "store";
  return a->store ? "reduction" : "load";
}

static int atom_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  const TmaAtom *a = &check_atom(L, 1)->a;
  Buf b = {0};
  buf_printf(cx, &b, "%s %s of %s", a->runs ? "bulk" : "TMA", atom_word(a),
             dtype_name(a->type));
  if (a->unit != a->type) buf_printf(cx, &b, " as %s", dtype_name(a->unit));
  int64_t box[TENSORMAP_RANK];
  int n = a->runs ? 0 : box_of(&a->map, box);
  for (int i = 0; i < n; i++)
    buf_printf(cx, &b, "%s%d", i ? "," : ", box (", (int)box[i]);
  if (n) buf_printf(cx, &b, ")%s", a->map.im2col ? " by im2col" : "");
  if (a->map.swizzle)
    buf_printf(cx, &b, ", swizzle %d B", 16 << a->map.swizzle);
  if (a->ctas > 1) buf_printf(cx, &b, ", %d CTAs", a->ctas);
  face_push_buf(L, &b);
  return 1;
}

// ---- copies ----

// Reads the mbarrier in field k of the options, a table at stack index 4.
static void read_barrier(Ctx *cx, lua_State *L, const char *k, TmaCall *o) {
  if (lua_getfield(L, 4, k) == LUA_TNIL) return;
  Tensor t = face_check_tensor(L, -1);
  if (t.space != SP_SMEM || dtype_bits(t.type) != 64 || !dtype_is_int(t.type))
    face_error(L, ERR_ARG, "copy: %s must be an mbarrier, an i64 in shared "
               "memory, got\n  %s", k, tensor_show(cx, &t));
  o->bar = t.mem;
  o->bar_off = dim_asref(cx, tensor_at(cx, t, dim_int(cx, 0)));
}

static Ref read_value(Ctx *cx, lua_State *L, const char *k, DType type) {
  Ref r = 0;
  if (lua_getfield(L, 4, k) != LUA_TNIL)
    r = ir_cvt(cx, ir_fn(cx), type, face_check_value(cx, L, -1, type));
  lua_pop(L, 1);
  return r;
}

// Reports whether a tensor consists of 16 contiguous elements, or is a pointer
// (has one element).
static bool is_run(Ctx *cx, const Tensor *t) {
  Layout l = layout_coalesce(cx, t->l);
  return dim_is(layout_size(cx, l), 1) ||
         (dim_is(layout_size(cx, l), 16) && tup_leaves(l.shape) == 1 &&
          dim_is(l.stride[0], 1));
}

// Returns the memory object and the offset of a tensor map in memory. The
// tensor at idx contains the map, and must have 16 elements of 64 bits.
static MapPlace check_map(Ctx *cx, lua_State *L, int idx) {
  Tensor t = face_check_tensor(L, idx);
  bool memory = t.space == SP_GMEM || t.space == SP_SMEM;
  if (!memory || dtype_bits(t.type) != 64 || !dtype_is_int(t.type) ||
      !is_run(cx, &t))
    face_error(L, ERR_ARG, "a tensor map must be 16 elements of i64 in global "
               "or shared memory, got\n  %s", tensor_show(cx, &t));
  Dim at = tensor_at(cx, t, dim_int(cx, 0));
  if (dim_div(cx, at) % 16 ||
      (t.space == SP_SMEM && ir_memof(ir_fn(cx), t.mem)->align % 128))
    face_error(L, ERR_ALIGN, "a tensor map must be aligned to 128 bytes, but "
               "this memory is not known to be\n  %s", tensor_show(cx, &t));
  return (MapPlace){t.mem, dim_asref(cx, at)};
}

#define BOX_OPTIONS "tma_bar_ptr mcast_mask cache_policy tma_desc_ptr"
#define RUN_OPTIONS "mbar_ptr mcast_mask cta_rank cache_policy"

// If the value at idx is a list {coordinates, rows}, replaces it by the
// coordinates, and returns the rows (in *rows). Otherwise returns NULL.
static const Tensor *take_rows(lua_State *L, int idx, Tensor *rows) {
  if (!lua_istable(L, idx)) return NULL;
  lua_geti(L, idx, 2);
  *rows = face_check_tensor(L, -1);
  lua_pop(L, 1);
  lua_geti(L, idx, 1);
  lua_replace(L, idx);
  return rows;
}

int tmalib_copy(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "copy");
  lua_settop(L, 4);
  const TmaAtom *a = check_traced(L, 1, "copy");
  Tensor rows;
  TmaCall o = {.rows = take_rows(L, a->store ? 3 : 2, &rows)};
  Tensor src = face_check_tensor(L, 2), dst = face_check_tensor(L, 3);
  if (!lua_isnil(L, 4)) {
    face_check_options(L, 4, a->runs ? RUN_OPTIONS : BOX_OPTIONS);
    read_barrier(cx, L, a->runs ? "mbar_ptr" : "tma_bar_ptr", &o);
    o.mask = read_value(cx, L, "mcast_mask", DT_I32);
    o.policy = read_value(cx, L, "cache_policy", DT_I64);
    o.rank = read_value(cx, L, "cta_rank", DT_I32);
  }
  TmaAtom at = *a;
  if (!lua_isnil(L, 4) && lua_getfield(L, 4, "tma_desc_ptr") != LUA_TNIL) {
    int top = lua_gettop(L);
    if (face_check_tensor(L, top).space != SP_GMEM)
      face_error(L, ERR_ARG, "copy: tma_desc_ptr must be a tensor map in "
                 "global memory: cp_fence_tma_desc_release() copies it there");
    MapPlace p = check_map(cx, L, top);
    at.ref = ir_map_at(cx, ir_fn(cx), p.mem, p.off, a->ref);
  }
  (a->runs == TMA_R2S ? tma_copy_send : a->runs ? tma_copy_runs : tma_copy)(
    cx, &at, src, dst, &o);
  return 0;
}

// ---- tensor maps in memory ----

// tma_map(operation, address[, atom or address[, tensor]]): an operation on the
// tensor map at an address in memory. "copy" writes the atom's map to the
// address. "update" changes the map for the tensor. "acquire" acquires the map.
// "publish" copies a map to the address from a second address, in shared
// memory.
static int l_tma_map(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "a tensor map");
  const char *what = face_checkstr(L, 1);
  MapPlace p = check_map(cx, L, 2);
  if (strcmp(what, "copy") == 0) {
    tma_map_copy(cx, check_traced(L, 3, "copy_tensormap"), p);
  } else if (strcmp(what, "update") == 0) {
    const TmaAtom *a = check_traced(L, 3, "update_tma_descriptor");
    Tensor t = face_check_tensor(L, 4);
    if (a->flags & BKF_IM2COL)
      face_error(L, ERR_ARG, "update_tma_descriptor: im2col tensor maps cannot "
                 "be updated");
    if (t.space != SP_GMEM || t.type != a->type)
      face_error(L, ERR_ARG, "update_tma_descriptor: a tensor of %s in global "
                 "memory is needed, got\n  %s", dtype_name(a->type),
                 tensor_show(cx, &t));
    tma_map_update(cx, a, &t, p);
  } else {
    bool publish = strcmp(what, "publish") == 0;
    MapPlace from = publish ? check_map(cx, L, 3) : p;
    if (publish && (face_check_tensor(L, 2).space != SP_GMEM ||
                    face_check_tensor(L, 3).space != SP_SMEM))
      face_error(L, ERR_ARG, "cp_fence_tma_desc_release: the source must be in "
                 "shared, the destination in global memory");
    Ref x[4] = {p.mem, p.off, from.mem, from.off};
    Ins ins = {.op = publish ? OP_MAPPUBLISH : OP_MAPACQUIRE};
    operands_emit(cx, fn, ins, x, publish ? 4 : 2, NULL, 0);
  }
  return 0;
}

// tma_prefetch(atom[, coordinates]): prefetches the box at the coordinates into
// L2. Without coordinates, prefetches the tensor map. For an atom that gathers
// rows, `coordinates` is a list {coordinates, rows}.
static int l_tma_prefetch(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "prefetch");
  const TmaAtom *a = check_traced(L, 1, "prefetch");
  Tensor t, rows;
  bool boxes = !lua_isnoneornil(L, 2);
  const Tensor *own = take_rows(L, 2, &rows);
  if (boxes) t = face_check_tensor(L, 2);
  tma_prefetch(cx, a, boxes ? &t : NULL, own);
  return 0;
}

// tma_tensor(atom) -> the tensor that the atom copies.
static int l_tma_tensor(lua_State *L) {
  face_check(L, 1, MT_TMA, "TMA atom");
  lua_getiuservalue(L, 1, 1);
  return 1;
}

void tmalib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"encode_tensor_map", l_encode_tensor_map},
    {"decode_tensor_map", l_decode_tensor_map}, {"tma_atom", l_tma_atom},
    {"tma_rebind", l_tma_rebind},
    {"tma_leaves", l_tma_leaves}, {"tma_coordinates", l_tma_coordinates},
    {"tma_words", l_tma_words}, {"tma_prefetch", l_tma_prefetch},
    {"tma_map", l_tma_map}, {"tma_tensor", l_tma_tensor},
    {NULL, NULL}};
  static const luaL_Reg meta[] = {
    {"__index", atom_index}, {"__tostring", atom_tostring}, {NULL, NULL}};
  face_newtype(L, MT_TMA, meta);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
