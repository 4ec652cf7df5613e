// Lua bindings for lua/cute/arch/*.lua: intrinsics, atomics, memory accesses
// with hints, assertions and inline PTX.
#include "ir/intrin.h"
#include "ir/operands.h"

#include <stdio.h>
#include <string.h>

#include "bind/face.h"
#include "ir/derivative.h"
#include "ir/target.h"

enum { MAX_VALUES = 32 };

// ---- intrinsics ----

static DType operand_type(Ctx *cx, lua_State *L, int idx) {
  Ref r;
  return face_test_value(cx, L, idx, &r) ? ir_type(ir_fn(cx), r) : DT_NONE;
}

static IntrinId find_row(lua_State *L, const char *name, const DType *t,
                         int n) {
  bool known = false;
  for (int exact = 1; exact >= 0; exact--)
    for (int k = 0; k < IN_COUNT; k++) {
      if (strcmp(intrin_row((IntrinId)k)->name, name) != 0) continue;
      known = true;
      if (intrin_fits((IntrinId)k, t, n, exact)) return (IntrinId)k;
    }
  if (!known) luaL_error(L, "no intrinsic '%s'", name);
  char list[128] = "";
  for (int k = 0; k < n; k++)
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
             k ? ", " : "", t[k] ? dtype_name(t[k]) : "number");
  face_error(L, ERR_TYPE, "%s cannot take operands of types (%s)\n  convert "
             "them with :to(dtype)", name, list);
}

// intrin(name, immediate, operands...) -> value of an intrinsic (ir/intrin.h)
static int l_intrin(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char *name = face_checkstr(L, 1);
  int64_t imm = face_checkint(L, 2);
  int n = lua_gettop(L) - 2;
  Fn *fn = face_tracing(cx, L, "it");
  DType t[3] = {DT_NONE, DT_NONE, DT_NONE};
  luaL_argcheck(L, n <= 3, 3, "too many operands");
  for (int k = 0; k < n; k++) t[k] = operand_type(cx, L, 3 + k);
  IntrinId id = find_row(L, name, t, n);
  Ref a[3] = {0, 0, 0};
  for (int k = 0; k < n; k++) {
    DType want = intrin_operand(id, k);
    a[k] = face_check_value(cx, L, 3 + k, t[k] ? DT_NONE : want);
    a[k] = ir_cvt(cx, fn, want, a[k]);
  }
  Ref r = intrin_emit(cx, fn, id, imm, a);
  if (intrin_row(id)->sig[0] == '=' && t[0] != DT_NONE)
    r = dtype_is_float(t[0]) ? ir_bitcast(cx, fn, t[0], r)
                             : ir_cvt(cx, fn, t[0], r);
  face_push_value(L, r);
  return 1;
}

// ---- memory ----

typedef struct Place {
  Ref mem, off;
  DType type;
} Place;

// Returns the memory object and the offset (Place) of the first element of the
// tensor or iterator at idx. The element's type is t, unless t is DT_NONE.
static Place check_place(Ctx *cx, lua_State *L, int idx, DType t) {
  Tensor x = face_check_tensor(L, idx);
  if (x.space != SP_GMEM && x.space != SP_SMEM && x.space != SP_DSMEM)
    face_error(L, ERR_ARG, "a pointer to global or shared memory is needed, "
               "got\n  %s", tensor_show(cx, &x));
  Dim off = tensor_at(cx, x, dim_int(cx, 0));
  Place p = {x.mem, dim_asref(cx, off), x.type};
  if (t == DT_NONE || t == x.type) return p;
  int old = dtype_bits(x.type), bits = dtype_bits(t);
  Layout one = layout_leaf(cx, dim_int(cx, bits > old ? bits / old : 1),
                           dim_int(cx, 1));
  x.off = off;
  x.l = one;
  x = tensor_recast(cx, x, t);
  off = tensor_at(cx, x, dim_int(cx, 0));
  return (Place){x.mem, dim_asref(cx, off), t};
}

// Returns the integer type of t's width, for operations that move or compare
// bits.
static DType bits_type(DType t) {
  return dtype_bits(t) == 64 ? DT_U64 : dtype_bits(t) == 32 ? DT_U32 : DT_U16;
}

// Reports whether an atomic on type t is traced as an atomic on integers with
// the same number of bits. This applies to exchanges of floats (except f32
// without hints), and to compare-and-swap of floats and i16.
static bool as_bits(AtomicKind kind, DType t, int64_t flags) {
  if (kind == AT_CAS) return dtype_is_float(t) || t == DT_I16;
  return kind == AT_EXCH && dtype_is_float(t) && (t != DT_F32 || flags);
}

static void check_atomic(lua_State *L, AtomicKind kind, DType t, DType as) {
  if (dtype_is_float(t) && kind >= AT_AND && kind <= AT_XOR)
    face_error(L, ERR_TYPE, "a bitwise atomic operation needs an integer "
               "type, not %s: recast the pointer", dtype_name(t));
  if (dtype_bits(as) != dtype_bits(t) || !target_atomic(kind, as))
    face_error(L, ERR_TYPE, "no target has an atomic %s of %s\n  atomics take "
               "integers of 32 and 64 bits; add also takes f16, bf16, f32 and "
               "f64, min and max take f32, exch and cas take floats, cas takes "
               "16 bits", atomic_row(kind)->name, dtype_name(t));
}

// atomic(kind, tensor, value[, compare], flags) -> the element's value before
// the operation
static int l_atomic(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "an atomic");
  const char *name = face_checkstr(L, 1);
  AtomicKind kind = atomic_find(name);
  if (kind == AT_COUNT) return luaL_error(L, "no atomic '%s'", name);
  Place p = check_place(cx, L, 2, DT_NONE);
  DType t = p.type;
  int64_t flags = face_optint(L, 5, 0);
  bool swap = as_bits(kind, t, flags);
  check_atomic(L, kind, t, swap ? bits_type(t) : t);
  Ref v = face_check_value(cx, L, 3, t);
  Ref cmp = kind == AT_CAS ? face_check_value(cx, L, 4, t) : 0;
  if (swap) {
    p = check_place(cx, L, 2, bits_type(t));
    v = ir_bitcast(cx, fn, p.type, v);
    if (cmp) cmp = ir_bitcast(cx, fn, p.type, cmp);
  }
  Ins i = {.op = OP_ATOMIC, .type = (uint8_t)p.type, .imm = kind,
           .flags = (uint16_t)flags};
  Ref x[4] = {p.mem, p.off, v, cmp};
  Ref r = operands_emit(cx, fn, i, x, cmp ? 4 : 3, NULL, 0);
  face_push_value(L, swap ? ir_bitcast(cx, fn, t, r) : r);
  return 1;
}

// Returns the flags at idx, which encode hints. Raises an error if elements of
// type t are narrower than a byte, because instructions with hints move whole
// bytes.
static uint16_t check_flags(lua_State *L, int idx, DType t) {
  int64_t flags = face_optint(L, idx, 0);
  if (flags && dtype_bits(t) < 8)
    face_error(L, ERR_TYPE, "an access with sem, scope or cop moves whole "
               "bytes, not %d bits of %s", dtype_bits(t), dtype_name(t));
  return (uint16_t)flags;
}

// access_load(tensor, dtype or nil, flags) -> value of the tensor's first
// element
static int l_access_load(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "load");
  DType t = lua_isnoneornil(L, 2) ? DT_NONE : face_check_dtype(L, 2);
  Place p = check_place(cx, L, 1, t);
  Ins i = {.op = OP_LD, .type = (uint8_t)p.type, .a = {p.mem, p.off, 0},
           .flags = check_flags(L, 3, p.type)};
  face_push_value(L, ir_emit(cx, fn, i));
  return 1;
}

enum { MOST_LOADS = 64 };

// loads(y, tensor) -> a list of single-element loads from the tensor's memory
// on which the value y depends. Each load has three entries in the list: the
// element, its offset from the tensor's iterator, and a number that is equal
// for equal offsets.
static int l_loads(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "loads");
  Ref y = face_check_value(cx, L, 1, DT_NONE);
  Place p = check_place(cx, L, 2, DT_NONE);
  Ref out[MOST_LOADS];
  uint32_t n = ir_loads(cx, fn, y, p.mem, out, MOST_LOADS);
  lua_createtable(L, 3 * (int)n, 0);
  for (uint32_t k = 0; k < n; k++) {
    Ref at = ir_get(fn, out[k])->a[1];
    at = ir_op2(cx, fn, OP_SUB, at, ir_cvt(cx, fn, ir_type(fn, at), p.off));
    face_push_value(L, out[k]);
    lua_rawseti(L, -2, 3 * (int)k + 1);
    face_push_value(L, at);
    lua_rawseti(L, -2, 3 * (int)k + 2);
    lua_pushinteger(L, at);
    lua_rawseti(L, -2, 3 * (int)k + 3);
  }
  return 1;
}

// access_store(tensor, value, flags): stores the value in the tensor's first
// element, converted to the tensor's type.
static int l_access_store(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "store");
  Place p = check_place(cx, L, 1, DT_NONE);
  Ref v = face_check_value(cx, L, 2, p.type);
  Ins i = {.op = OP_ST, .a = {p.mem, p.off, v},
           .flags = check_flags(L, 3, p.type)};
  ir_emit(cx, fn, i);
  return 0;
}

// ---- mbarriers ----

// Returns the argument at idx as the rank of a block in its cluster.
static Ref check_rank(Ctx *cx, lua_State *L, int idx) {
  Fn *fn = ir_fn(cx);
  const int32_t *c = fn->cluster;
  Ref r = ir_cvt(cx, fn, DT_I32, face_check_value(cx, L, idx, DT_I32));
  Fact f = ir_fact(fn, r);
  int n = c[0] * c[1] * c[2];
  if (n && (f.lo >= n || f.hi < 0))
    face_error(L, ERR_ARG, "block %lld is outside a cluster of %d\n  set the "
               "size of the cluster at the launch: cluster = {2, 1, 1}",
               (long long)(f.lo >= n ? f.lo : f.hi), n);
  return r;
}

// Returns the memory object and the offset (Place) of the mbarrier at idx. An
// mbarrier has 64 bits. It is in this block's shared memory or, if `far`, may
// be in the shared memory of any block of the cluster.
static Place check_mbarrier(Ctx *cx, lua_State *L, int idx, bool far) {
  Place p = check_place(cx, L, idx, DT_NONE);
  Space space = ir_memof(ir_fn(cx), p.mem)->space;
  if (dtype_is_int(p.type) && dtype_bits(p.type) == 64 &&
      (space == SP_SMEM || (far && space == SP_DSMEM)))
    return p;
  Tensor x = face_check_tensor(L, idx);
  face_error(L, ERR_ARG, "an mbarrier must be an i64 in %sshared memory, got "
             "%s in %s memory\n  %s\n  cute.arch.alloc_smem(cute.i64, n) has "
             "room for n of them", far ? "" : "this block's ",
             dtype_name(p.type), ir_space_word(space), tensor_show(cx, &x));
}

// If p is an mbarrier in another block's shared memory, replaces it by the
// mbarrier at the same offset in this block. Returns the rank of the other
// block, else 0.
static Ref take_peer(Ctx *cx, Place *p) {
  Fn *fn = ir_fn(cx);
  const Ins *i = ir_get(fn, p->mem);
  if (i->op != OP_DSMEM) return 0;
  Ref rank = i->a[1];
  Ins own = *ir_get(fn, i->a[0]);
  p->mem = i->a[0];
  // If the script uses the object with another type than its own, keep that
  // type.
  if (own.type != p->type) {
    own.type = (uint8_t)p->type;
    own.src = 0;
    p->mem = ir_emit(cx, fn, own);
  }
  return rank;
}

// mbarrier(op, pointer, hints, count, bytes, parity or token[, last]): an
// operation on an mbarrier. `last` is the rank of a block in the cluster, or
// for "try_wait" a time limit in nanoseconds. Operations "try_wait" and
// "test_wait" return whether the phase was complete. "arrive_token" returns the
// token.
static int l_mbarrier(lua_State *L) {
  static const struct { const char *name; Op op; uint16_t flags; } ops[] = {
    {"init", OP_MBARINIT, 0}, {"arrive", OP_MBARARRIVE, 0},
    {"arrive_token", OP_MBARTOKEN, 0},
    {"expect_tx", OP_MBARTX, 0},
    {"arrive_and_expect_tx", OP_MBARTX, MBF_ARRIVE}, {"wait", OP_MBARWAIT, 0},
    {"try_wait", OP_MBARTRY, 0}, {"test_wait", OP_MBARTRY, MBF_TEST},
    {"inval", OP_MBARINVAL, 0},
    {"cp_async", OP_MBARCPASYNC, 0},
    {"cp_async_noinc", OP_MBARCPASYNC, MBF_NOINC}};
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "an mbarrier");
  const char *name = face_checkstr(L, 1);
  size_t k = 0, n = sizeof ops / sizeof *ops;
  while (k < n && strcmp(ops[k].name, name) != 0) k++;
  if (k == n) return luaL_error(L, "no mbarrier operation '%s'", name);
  Ins i = {.op = (uint8_t)ops[k].op, .flags = ops[k].flags};
  bool far = i.op == OP_MBARARRIVE || i.op == OP_MBARTX;
  Place p = check_mbarrier(cx, L, 2, far);
  Ref rank = take_peer(cx, &p);
  i.flags |= (uint16_t)face_checkint(L, 3);
  bool result = i.op == OP_MBARTRY || i.op == OP_MBARTOKEN;
  if (result) i.type = i.op == OP_MBARTRY ? DT_BOOL : DT_U64;
  bool waits = i.op == OP_MBARTRY || i.op == OP_MBARWAIT;
  Ref x[4] = {p.mem, p.off, 0, 0};
  if (!lua_isnoneornil(L, 4)) {
    bool token = waits && face_test_value(cx, L, 4, &x[2]) &&
                 ir_type(fn, x[2]) == DT_U64;
    if (!token)
      x[2] = ir_cvt(cx, fn, DT_I32, face_check_value(cx, L, 4, DT_I32));
  }
  if (!lua_isnoneornil(L, 5))
    x[3] = far ? check_rank(cx, L, 5)
               : ir_cvt(cx, fn, DT_I32, face_check_value(cx, L, 5, DT_I32));
  if (rank && x[3])
    face_error(L, ERR_ARG, "the mbarrier is already mapped to another "
               "block's shared memory: pass no rank");
  if (rank) x[3] = rank;
  Ref r = operands_emit(cx, fn, i, x, x[3] ? 4 : x[2] ? 3 : 2, NULL, 0);
  if (!result) return 0;
  face_push_value(L, r);
  return 1;
}

// ---- shared memory of other CTAs ----

// peer(tensor in shared memory, rank) -> the corresponding tensor in the shared
// memory of block `rank` of the cluster
static int l_peer(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "map_dsmem_ptr");
  Tensor t = face_check_tensor(L, 1);
  if (t.space != SP_SMEM)
    face_error(L, ERR_ARG, "a pointer to shared memory is needed, got\n  %s",
               tensor_show(cx, &t));
  t.mem = tensor_make_peer(cx, t.mem, check_rank(cx, L, 2));
  t.space = SP_DSMEM;
  face_push_tensor(L, &t, 0);
  return 1;
}

// ptr_at(dtype, address, align) -> iterator of global memory at `address`, an
// i64
static int l_ptr_at(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "make_ptr of an address");
  DType t = face_check_dtype(L, 1);
  Ref a = face_check_value(cx, L, 2, DT_NONE);
  lua_Integer align = face_checkint(L, 3);
  int bits = dtype_bits(t);
  if (bits < 8 || bits == 6)
    face_error(L, ERR_TYPE, "make_ptr: elements of %s have no address of "
               "their own", dtype_name(t));
  DType have = ir_type(fn, a);
  if (have != DT_I64 && have != DT_U64)
    face_error(L, ERR_TYPE, "make_ptr: an address must be of type i64 or "
               "u64, not %s", dtype_name(have));
  if (align < bits / 8 || (align & (align - 1)) || align > 1 << 20)
    face_error(L, ERR_ARG, "make_ptr: assumed_align = %lld: a power of two of "
               "%d bytes or more is needed", (long long)align, bits / 8);
  Mem m = {.type = t, .count = -1, .align = align};
  Tensor k = {.space = SP_GMEM, .type = t, .align = align,
              .mem = ir_at_address(cx, fn, m, ir_cvt(cx, fn, DT_I64, a)),
              .off = dim_int(cx, 0),
              .l = layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0))};
  face_push_tensor(L, &k, 0);
  return 1;
}

// ---- tensor memory ----

// Returns the number at idx as a u32.
static Ref check_u32(Ctx *cx, lua_State *L, int idx) {
  bool plain = lua_type(L, idx) == LUA_TNUMBER;
  Ref r = face_check_value(cx, L, idx, plain ? DT_U32 : DT_NONE);
  return ir_cvt(cx, ir_fn(cx), DT_U32, r);
}

// tmem_at(dtype, address) -> iterator of tensor memory at `address`, an i32
static int l_tmem_at(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "a pointer to tensor memory");
  DType t = face_check_dtype(L, 1);
  Ref a = check_u32(cx, L, 2);
  int bits = dtype_bits(t);
  if (bits > 32)
    face_error(L, ERR_TYPE, "tensor memory has columns of 32 bits: elements of "
               "%s do not fit", dtype_name(t));
  Mem m = {.space = SP_TMEM, .type = t, .count = -1, .align = 16,
           .arg = NO_ARG};
  Tensor k = {.space = SP_TMEM, .type = t, .align = 16,
              .mem = ir_mem_of(cx, fn, m, a, 0), .off = dim_int(cx, 0),
              .l = layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0))};
  face_push_tensor(L, &k, 0);
  return 1;
}

// tmem_address(tensor) -> the address of its first element, as an i32
static int l_tmem_address(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "an address of tensor memory");
  Tensor x = face_check_tensor(L, 1);
  if (x.space != SP_TMEM)
    face_error(L, ERR_ARG, "a tensor in tensor memory is needed, got\n  %s",
               tensor_show(cx, &x));
  Dim off = tensor_at(cx, x, dim_int(cx, 0));
  off = dim_quo(cx, off, dim_int(cx, 32 / dtype_bits(x.type)));
  Ref base = ir_cvt(cx, fn, DT_I32, ir_get(fn, x.mem)->a[0]);
  Ref more = ir_cvt(cx, fn, DT_I32, dim_asref(cx, off));
  face_push_value(L, ir_op2(cx, fn, OP_ADD, base, more));
  return 1;
}

// tmem_alloc(destination, columns, pair): allocates columns of tensor memory,
// and stores their address in shared memory, at `destination`. `pair` says that
// a pair of CTAs executes the instruction (cta_group::2).
static int l_tmem_alloc(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "alloc_tmem");
  Place d = check_place(cx, L, 1, DT_NONE);
  Tensor x = face_check_tensor(L, 1);
  if (ir_memof(fn, d.mem)->space != SP_SMEM || dtype_bits(d.type) != 32)
    face_error(L, ERR_ARG, "alloc_tmem: the address is stored to a 32-bit "
               "integer in shared memory, got\n  %s\n  make it with "
               "cute.arch.alloc_smem(cute.i32, 1)", tensor_show(cx, &x));
  Ref n = check_u32(cx, L, 2);
  Ins i = {.op = OP_TCALLOC, .a = {d.mem, d.off, n},
           .flags = lua_toboolean(L, 3) ? TCF_PAIR : 0};
  ir_emit(cx, fn, i);
  return 0;
}

// tmem_dealloc(address, columns, pair): frees columns that tmem_alloc allocated
static int l_tmem_dealloc(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "dealloc_tmem");
  Ins i = {.op = OP_TCDEALLOC, .flags = lua_toboolean(L, 3) ? TCF_PAIR : 0};
  for (int k = 0; k < 2; k++)
    i.a[k] = check_u32(cx, L, k + 1);
  ir_emit(cx, fn, i);
  return 0;
}

// umma_commit(mbarrier, mask or nil, pair): makes the mbarrier track the
// tcgen05 operations that the thread issued before. With a mask, the
// instruction signals the mbarrier in each CTA of the mask. `pair` is as in
// tmem_alloc.
static int l_umma_commit(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "commit");
  Place p = check_mbarrier(cx, L, 1, false);
  Ref x[3] = {p.mem, p.off, 0};
  if (!lua_isnoneornil(L, 2))
    x[2] = ir_cvt(cx, fn, DT_I32, face_check_value(cx, L, 2, DT_I32));
  Ins i = {.op = OP_TCCOMMIT, .flags = lua_toboolean(L, 3) ? TCF_PAIR : 0};
  operands_emit(cx, fn, i, x, x[2] ? 3 : 2, NULL, 0);
  return 0;
}

// cancel_cluster(response, mbarrier): requests that a cluster that has not
// started yet be canceled. The 16 bytes of the response are written to shared
// memory, and complete on the mbarrier.
static int l_cancel_cluster(lua_State *L) {
  enum { BITS = 128 };
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "issue_clc_query");
  Place d = check_place(cx, L, 1, DT_NONE);
  Place bar = check_mbarrier(cx, L, 2, false);
  if (ir_memof(fn, d.mem)->space != SP_SMEM)
    face_error(L, ERR_ARG, "issue_clc_query: the response needs 16 bytes of "
               "shared memory\n  make them with "
               "cute.arch.alloc_smem(cute.i32, 4, 16)");
  operands_emit(cx, fn, (Ins){.op = OP_CLCTRY, .imm = BITS},
                (Ref[]){d.mem, d.off, bar.mem, bar.off}, 4, NULL, 0);
  return 0;
}

// st_async(destination, mbarrier, rank, values...): stores 1, 2 or 4 values of
// one type at `destination` in block `rank` of the cluster. The bytes complete
// on that block's mbarrier.
static int l_st_async(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "store_async_dsmem");
  Place d = check_place(cx, L, 1, DT_NONE);
  Place b = check_mbarrier(cx, L, 2, false);
  int n = lua_gettop(L) - 3;
  int64_t bits = (int64_t)n * dtype_bits(d.type);
  Tensor x = face_check_tensor(L, 1);
  if (ir_memof(fn, d.mem)->space != SP_SMEM)
    face_error(L, ERR_ARG, "the destination must be a pointer to shared "
               "memory, got\n  %s", tensor_show(cx, &x));
  if ((dtype_bits(d.type) != 32 && dtype_bits(d.type) != 64) ||
      (n != 1 && n != 2 && n != 4) || bits > 128)
    face_error(L, ERR_TYPE, "%d values of %s cannot be stored at once: only 1, "
               "2 or 4 of 32 bits, or 1 or 2 of 64 bits", n,
               dtype_name(d.type));
  int64_t all = x.align;
  while (all > 1 && dim_div(cx, x.off) * dtype_bits(d.type) % (all * 8))
    all /= 2;
  if (all * 8 < bits)
    face_error(L, ERR_ALIGN, "a store of %d bytes at once needs a destination "
               "aligned to as many bytes, got one aligned to %d\n  %s",
               (int)bits / 8, (int)all, tensor_show(cx, &x));
  Ref r[9] = {d.mem, d.off, b.mem, b.off, check_rank(cx, L, 3)};
  for (int k = 0; k < n; k++) {
    r[5 + k] = face_check_value(cx, L, 4 + k, d.type);
    if (ir_type(fn, r[5 + k]) != d.type)
      face_error(L, ERR_TYPE, "a value of type %s cannot be stored as %s: "
                 "convert it with :to", dtype_name(ir_type(fn, r[5 + k])),
                 dtype_name(d.type));
  }
  Ins i = {.op = OP_STASYNC, .imm = bits};
  operands_emit(cx, fn, i, r, 5 + (uint32_t)n, NULL, 0);
  return 0;
}

// ---- assertions ----

// trap(condition, text): if the condition is false, stops the kernel with this
// text.
static int l_trap(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "assert_");
  size_t n;
  Ref c = face_check_value(cx, L, 1, DT_BOOL);
  const char *s = lua_isnoneornil(L, 2) ? (n = 0, "")
                                        : face_checklstr(L, 2, &n);
  ir_emit(cx, fn, (Ins){.op = OP_TRAP, .a = {c, 0, 0},
                        .imm = n ? ir_text(cx, fn, s, n) : 0});
  return 0;
}

// ---- inline PTX ----

// inline_ptx(text with %0 ..., outs, written variables..., values...): inline
// PTX. The first `outs` operands of the text, from %0 on, are the written
// variables.
static int l_inline_ptx(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "inline_ptx");
  size_t len;
  const char *s = face_checklstr(L, 1, &len);
  lua_Integer outs = face_checkint(L, 2);
  int n = lua_gettop(L) - 2;
  if (n > MAX_VALUES)
    face_error(L, ERR_LIMIT, "inline_ptx with %d operands (at most %d)", n,
               MAX_VALUES);
  Ref v[MAX_VALUES];
  for (int k = 0; k < n; k++) v[k] = face_check_value(cx, L, 3 + k, DT_NONE);
  Ins i = {.op = OP_ASM, .imm = ir_text(cx, fn, s, len),
           .flags = (uint16_t)outs};
  operands_emit(cx, fn, i, v, (uint32_t)n, NULL, 0);
  return 0;
}

// hints() -> {sem = {relaxed = bits, ...}, ...}: for each hint of an access,
// the flags that encode its values
static int l_hints(lua_State *L) {
  lua_createtable(L, 0, HINT_COUNT);
  for (int f = 0; f < HINT_COUNT; f++) {
    const HintField *h = hint_field((HintId)f);
    lua_newtable(L);
    for (int v = 1; v < 8 && h->value[v].name; v++)
      face_set_int(L, h->value[v].name, v << h->shift);
    lua_setfield(L, -2, h->name);
  }
  return 1;
}

// Returns the flags of hint f, which a field of the table at idx names.
static unsigned hint_at(lua_State *L, int idx, HintId f) {
  const HintField *h = hint_field(f);
  if (lua_getfield(L, idx, h->name) == LUA_TNIL) return 0;
  const char *s = luaL_tolstring(L, -1, NULL);
  for (unsigned v = 1; h->value[v].name; v++)
    if (strcmp(s, h->value[v].name) == 0) return v << h->shift;
  face_error(L, ERR_NAME, "%s = '%s'; %s, %s or %s is needed", h->name, s,
             h->value[1].name, h->value[2].name, h->value[3].name);
}

unsigned intrinlib_hints(lua_State *L, int idx) {
  unsigned size = hint_at(L, idx, HINT_PREFETCH);
  unsigned priority = hint_at(L, idx, HINT_LEVEL2);
  if (size && priority)
    face_error(L, ERR_ARG, "pass either %s or %s, not both",
               hint_field(HINT_PREFETCH)->name, hint_field(HINT_LEVEL2)->name);
  return size | priority;
}

// smem_budget(sm) -> maximum bytes of shared memory per block on architecture
// sm
static int l_smem_budget(lua_State *L) {
  lua_pushinteger(L, target_smem((int)face_checkint(L, 1)));
  return 1;
}

// has(sm, feature) -> whether architecture sm has a feature of ir/target.h
static int l_has(lua_State *L) {
  int sm = (int)face_checkint(L, 1);
  const char *name = face_checkstr(L, 2);
  Feature f = target_find(name);
  if (f == FT_COUNT) return luaL_error(L, "no feature '%s'", name);
  lua_pushboolean(L, target_has(sm, f));
  return 1;
}

// archs() -> {"sm_70", ..., sm_70 = 70, ...}: all targets, the oldest first
static int l_archs(lua_State *L) {
  lua_newtable(L);
  lua_Integer n = 0;
  const Target *t;
  for (int i = 0; (t = target_row(i)) != NULL; i++)
    for (int k = -1; k < (int)strlen(t->specific); k++) {
      char one[2] = {k < 0 ? '\0' : t->specific[k], '\0'};
      lua_pushfstring(L, "sm_%d%s", t->sm, one);
      lua_pushvalue(L, -1);
      lua_rawseti(L, -3, ++n);
      lua_pushinteger(L, t->sm);
      lua_rawset(L, -3);
    }
  return 1;
}

// ---- tables ----

// ops() -> {{name=, effect=, who=}, ...}: the rows of the table of operations
// in ir/ops.h, where `who` is explained
static int l_ops(lua_State *L) {
  lua_createtable(L, OP_COUNT, 0);
  for (int k = 0; k < OP_COUNT; k++) {
    lua_createtable(L, 0, 3);
    face_set_str(L, "name", op_name((Op)k));
    face_set_bool(L, "effect", k != OP_NOP && !op_pure((Op)k));
    face_set_str(L, "who", who_name(op_who((Op)k)));
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

// intrinsics() -> {{name=, signature=, class=, sm=}, ...}: the rows of the
// table in ir/intrin.h
static int l_intrinsics(lua_State *L) {
  static const char *const classes[] = {"", "P", "K", "L", "A", "M"};
  lua_createtable(L, IN_COUNT, 0);
  for (int k = 0; k < IN_COUNT; k++) {
    const Intrin *r = intrin_row((IntrinId)k);
    lua_createtable(L, 0, 4);
    face_set_str(L, "name", r->name);
    face_set_str(L, "signature", r->sig);
    face_set_str(L, "class", classes[r->class]);
    face_set_int(L, "sm", r->sm);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

void intrinlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"intrin", l_intrin}, {"atomic", l_atomic}, {"access_load", l_access_load},
    {"loads", l_loads},
    {"access_store", l_access_store}, {"trap", l_trap},
    {"mbarrier", l_mbarrier}, {"peer", l_peer},
    {"ptr_at", l_ptr_at}, {"st_async", l_st_async},
    {"cancel_cluster", l_cancel_cluster},
    {"tmem_at", l_tmem_at}, {"tmem_address", l_tmem_address},
    {"tmem_alloc", l_tmem_alloc}, {"tmem_dealloc", l_tmem_dealloc},
    {"umma_commit", l_umma_commit},
    {"inline_ptx", l_inline_ptx},
    {"hints", l_hints}, {"smem_budget", l_smem_budget}, {"has", l_has},
    {"archs", l_archs}, {"ops", l_ops},
    {"intrinsics", l_intrinsics}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
