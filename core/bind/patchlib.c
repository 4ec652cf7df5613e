// Lua bindings for `cutelua check`, which proposes patches of a kernel.
// sim_sites(fn) and others query a traced function. patchlib_get reads the
// patches for sim_run.
#include "bind/patch.h"

#include <string.h>

#include "ir/operands.h"
#include "ir/rows.h"

// Operations that a patch may insert. They have no operands, except the object
// in the patch's field `mem` (decode/patch.h).
static const Op put[] = {OP_BAR, OP_BARARRIVE, OP_SYNCWARP, OP_CPCOMMIT,
                         OP_CPWAIT, OP_WGFENCE, OP_WGCOMMIT, OP_WGWAIT,
                         OP_BULKCOMMIT, OP_BULKWAIT, OP_FENCE,
                         OP_CLUSTERARRIVE, OP_CLUSTERWAIT, OP_GRIDWAIT,
                         OP_MBARWAIT, OP_MBARARRIVE, OP_MBARTX,
                         OP_MBARCPASYNC, OP_MAPACQUIRE};

static bool is_site(const Ins *i) {
  unsigned e = op_effect((Op)i->op);
  if (i->op == OP_DSMEM) return true;
  return i->op != OP_NOP && !(e & (EF_PURE | EF_FIXED | EF_OBJECT));
}

static const char *class_of(const Ins *i) {
  unsigned e = op_effect((Op)i->op);
  if (e & EF_OPENS) return "open";
  if (e & EF_CLOSES) return "close";
  if (e & EF_ORDERED) return "order";
  return e & (EF_MEMORY | EF_LATER) ? "memory" : "value";
}

static void set_hint(lua_State *L, const Ins *i, HintId h) {
  unsigned v = hint_get(i->flags, h);
  if (v) face_set_str(L, hint_field(h)->name, hint_field(h)->value[v].name);
}

// Returns the operand of a barrier or mbarrier operation that is a number of
// threads, arrivals or bytes. Returns 0 if there is none.
static Ref amount_of(const Fn *fn, const Ins *i) {
  static const Role roles[] = {ROLE_THREADS, ROLE_ARRIVALS, ROLE_EACH,
                               ROLE_BYTES};
  Ref r = 0;
  if (i->op == OP_MBARTOKEN) return 0;
  for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
    if (!r) r = operand_ref(fn, i, roles[k]);
  return r;
}

// mbar_of returns the memory object of the mbarrier that is an operand of i,
// and sets *first to whether this is the first operand. map_of returns the
// operand of a copy that is the address of a tensor map. Both return 0 if there
// is no such operand.
static Ref mbar_of(const Fn *fn, const Ins *i, bool *first) {
  Operand o;
  *first = true;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o); *first = false)
    if (o.kind == OPERAND_MEM && o.barrier) return o.ref;
  return 0;
}

static Ref map_of(const Fn *fn, const Ins *i) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.ref && ir_get(fn, o.ref)->op == OP_TMAPAT) return o.ref;
  return 0;
}

// Returns the role of an operand of a synchronization instruction, such as
// "parity". Patches choose a replacement by the role. Returns NULL if patches
// do not change the operand.
static const char *role_of(const Operand *o) {
  Role r = (Role)o->role;
  if (o->kind != OPERAND_MEM)
    return role_synchronizes(r) ? role_name(r) : NULL;
  if (o->barrier) return "slot";
  return o->space == SP_RMEM ? NULL : "place";
}

// An operand with a role (role_of). next_role iterates over such operands, with
// the state `next`.
typedef struct RoleOperand {
  Operand o;
  const char *name;
  Ref v;  // the operand's value or, for a memory object, its offset
  uint32_t at;   // index of v among the instruction's operands
  uint32_t next;
} RoleOperand;

static bool next_role(Operands *w, RoleOperand *r) {
  for (r->name = NULL; !r->name;) {
    if (!operands_next(w, &r->o)) return false;
    bool mem = r->o.kind == OPERAND_MEM;
    r->at = r->next + mem;
    r->next = r->at + 1;
    r->v = mem ? r->o.off : r->o.ref;
    if (r->v) r->name = role_of(&r->o);
  }
  return true;
}

// Sets field `operands` of the table on top to a list of the operands of i with
// a role: {{role =, at =, ref =, type =, value =, mem =}}. `at` and `ref` are
// the fields `at` and v of RoleOperand. Optional fields: value, if the operand
// is constant; its bounds lo and hi; own = true, if it is the block's rank in
// the cluster; mem, its memory object.
static void set_operands(lua_State *L, const Fn *fn, const Ins *i) {
  RoleOperand role = {0};
  lua_Integer n = 0;
  lua_createtable(L, 0, 0);
  for (Operands w = operands_of(fn, i); next_role(&w, &role);) {
    bool mem = role.o.kind == OPERAND_MEM;
    if (mem && ir_memof(fn, role.o.ref)->space != SP_SMEM) continue;
    Ref v = role.v;
    int64_t k;
    lua_createtable(L, 0, 6);
    face_set_str(L, "role", role.name);
    face_set_int(L, "at", role.at);
    face_set_int(L, "ref", v);
    face_set_str(L, "type", dtype_name(ir_type(fn, v)));
    if (ir_const(fn, v, &k)) face_set_int(L, "value", k);
    const Ins *from = ir_get(fn, v);
    if (from->op == OP_SREG && from->imm == SR_CLUSTER_CTARANK)
      face_set_bool(L, "own", true);
    Fact f = ir_fact(fn, v);
    if (f.lo >= INT32_MIN && f.hi <= INT32_MAX) {
      face_set_int(L, "lo", f.lo);
      face_set_int(L, "hi", f.hi);
    }
    if (mem) face_set_int(L, "mem", role.o.ref);
    lua_rawseti(L, -2, ++n);
  }
  lua_setfield(L, -2, "operands");
}

// Sets those fields of an instruction's entry (see sim_sites) that depend on
// the operation.
static void set_words(lua_State *L, const Fn *fn, const Ins *i) {
  bool first;
  Ref mbar = mbar_of(fn, i, &first);
  if (mbar) face_set_int(L, "mem", mbar);
  bool plain = op_flag_kind((Op)i->op) == FLAGS_HINTS;
  if (plain || (mbar && first)) {
    set_hint(L, i, HINT_SEM);
    set_hint(L, i, HINT_SCOPE);
  }
  int64_t n;
  Ref amount = amount_of(fn, i), map = map_of(fn, i);
  if (amount && ir_const(fn, amount, &n)) face_set_int(L, "count", n);
  if (map) face_set_int(L, "map", map);
  if (i->op == OP_FENCE)
    face_set_str(L, "fence", fence_row((FenceKind)i->imm)->name);
  if (i->op == OP_BULKWAIT) face_set_bool(L, "read", i->flags & BKF_READ);
  if (i->op == OP_CLUSTERARRIVE)
    face_set_bool(L, "relaxed", i->flags & CLF_RELAXED);
}

// sim_sites(fn) -> {{ref =, op =, class =, file =, line =, imm =, flags =}}: a
// list of fn's instructions with effects, in order, then an entry whose ref is
// the end of the function. Optional fields of an entry: sem, scope, fence
// (names), read, relaxed (booleans), count (of threads, arrivals or bytes, if
// it is constant), mem (object of an mbarrier), map (tensor map of a copy),
// operands (set_operands).
static int l_sim_sites(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  lua_Integer n = 0;
  lua_createtable(L, 0, 0);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!is_site(i)) continue;
    lua_createtable(L, 0, 10);
    face_set_int(L, "ref", r);
    face_set_str(L, "op", op_name((Op)i->op));
    face_set_str(L, "class", class_of(i));
    face_set_str(L, "file", i->src ? ir_str(fn, fn->src.p[i->src].file) : "?");
    face_set_int(L, "line", i->src ? fn->src.p[i->src].line : 0);
    face_set_int(L, "imm", i->imm);
    face_set_int(L, "flags", i->flags);
    set_words(L, fn, i);
    set_operands(L, fn, i);
    lua_rawseti(L, -2, ++n);
  }
  face_set_int(L, "last", (lua_Integer)fn->ins.n);
  return 1;
}

// ---- numbers in synchronisation ----

// Sets on[r] for each value r from which an operand with a role (role_of) is
// computed, directly or through variables. Considers only operands of copies,
// mbarriers, barriers and distributed shared memory.
static void note_sources(const Fn *fn, uint8_t *on) {
  bool more = true;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    bool first;
    RoleOperand role = {0};
    if (!(op_effect((Op)i->op) & EF_LATER) && !mbar_of(fn, i, &first) &&
        i->op != OP_DSMEM)
      continue;
    for (Operands w = operands_of(fn, i); next_role(&w, &role);)
      on[role.v] = 1;
  }
  while (more) {
    more = false;
    for (Ref r = (Ref)fn->ins.n; r-- > 1;) {
      const Ins *i = ir_get(fn, r);
      bool sets = i->op == OP_VSET && on[i->a[0]];
      bool reads = i->op == OP_VGET || i->op == OP_VAR || op_pure((Op)i->op);
      for (int k = 0; k < 3 && (sets || (on[r] && reads)); k++)
        if (i->a[k] && !on[i->a[k]]) on[i->a[k]] = 1, more = true;
    }
  }
}

// Returns the index of the operand of i that is a constant integer which
// patches may vary, or -1.
static int number_of(const Fn *fn, const Ins *i) {
  int64_t k;
  switch (i->op) {
    case OP_ADD: case OP_SUB: case OP_DIV: case OP_MOD: case OP_XOR:
    case OP_EQ:
      if (!dtype_is_int(ir_type(fn, i->a[0]))) return -1;
      return ir_const(fn, i->a[1], &k) ? 1 : ir_const(fn, i->a[0], &k) ? 0 : -1;
    case OP_VAR: return i->a[0] && ir_const(fn, i->a[0], &k) ? 0 : -1;
    default: return -1;
  }
}

// sim_numbers(fn) -> {{ref =, at =, op =, value =, name =, file =, line =}}:
// constant integers from which parities, stages, ranks and masks are computed.
static int l_sim_numbers(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  uint8_t *on = arena_zero(cx, &cx->scratch, fn->ins.n);
  lua_Integer n = 0;
  note_sources(fn, on);
  lua_createtable(L, 0, 0);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    int at = on[r] ? number_of(fn, i) : -1;
    int64_t value;
    if (at < 0 || !i->src || !ir_const(fn, i->a[at], &value)) continue;
    lua_createtable(L, 0, 7);
    face_set_int(L, "ref", r);
    face_set_int(L, "at", at);
    face_set_str(L, "op", op_name((Op)i->op));
    face_set_int(L, "value", value);
    face_set_str(L, "name", ir_str(fn, i->name));
    face_set_place(L, fn, "file", "line", i->src);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// Follows the first operands from value r back to a load from a register array.
// Returns this load, or NULL if there is none.
static const Ins *read_of(const Fn *fn, Ref r) {
  for (;;) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_LD && ir_memof(fn, i->a[0])->space == SP_RMEM) return i;
    if (!op_pure((Op)i->op) || !i->a[0]) return NULL;
    r = i->a[0];
  }
}

// sim_value(fn, ref) -> name, first element, count: the registers with the
// values that instruction ref stores. Returns nil if they are unknown.
static int l_sim_value(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  lua_Integer r = face_checkint(L, 2);
  if (r < 1 || r >= (lua_Integer)fn->ins.n) return 0;
  const Ins *i = ir_get(fn, (Ref)r), *ld = NULL;
  Ref mem = 0, off = 0;
  if (i->op == OP_COPY) {
    Operand src = operand_of(fn, i, ROLE_SRC);
    mem = src.ref, off = src.off;
  }
  if (i->op == OP_ST && (ld = read_of(fn, i->a[2])))
    mem = ld->a[0], off = ld->a[1];
  const Mem *m = mem ? ir_memof(fn, mem) : NULL;
  if (!m || m->space != SP_RMEM || ir_get(fn, off)->op != OP_CONST) return 0;
  int bits = dtype_bits((DType)ir_get(fn, mem)->type);
  lua_pushstring(L, ir_str(fn, m->name));
  lua_pushinteger(L, ir_get(fn, off)->imm);
  lua_pushinteger(L, i->op == OP_COPY ? i->imm / bits : 1);
  return 3;
}

// Float functions whose results are bit-exact on every GPU, in each type.
// is_exact adds functions that are bit-exact only in f32.
static const MathFn exact[] = {MF_SQRT, MF_RCP, MF_FLOOR, MF_CEIL, MF_TRUNC,
                               MF_ROUND, MF_RINT, MF_COPYSIGN, MF_FMOD};

static bool is_exact(const Fn *fn, const Ins *i) {
  MathFn f = (MathFn)i->imm;
  if (i->op != OP_MATH || math_is_approx(f)) return true;
  for (size_t k = 0; k < sizeof exact / sizeof *exact; k++)
    if (exact[k] == f) return true;
  bool f32 = ir_type(fn, i->a[0]) == DT_F32;
  return f32 && (f == MF_EXP2 || f == MF_RSQRT);
}

// sim_inexact(fn) -> name, file, line of the first float function that a GPU
// may round differently from the simulator, or nil.
static int l_sim_inexact(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (is_exact(fn, i)) continue;
    lua_pushstring(L, math_name((MathFn)i->imm));
    lua_pushstring(L, i->src ? ir_str(fn, fn->src.p[i->src].file) : "?");
    lua_pushinteger(L, i->src ? fn->src.p[i->src].line : 0);
    return 3;
  }
  return 0;
}

// Returns the string in field `name` of the table at t, or "".
static const char *word(lua_State *L, int t, const char *name) {
  lua_getfield(L, t, name);
  const char *s = luaL_optstring(L, -1, "");
  lua_pop(L, 1);  // the table keeps the string alive
  return s;
}

// ---- patches ----

static Op find_op(const char *name) {
  for (size_t k = 0; k < sizeof put / sizeof *put; k++)
    if (strcmp(op_name(put[k]), name) == 0) return put[k];
  return OP_NOP;
}

static uint8_t find_hint(HintId h, const char *name) {
  for (unsigned v = 1; v < 8; v++) {
    const char *its = hint_field(h)->value[v].name;
    if (its && strcmp(its, name) == 0) return (uint8_t)v;
  }
  return 0;
}

// Reports whether the patch's operation uses an array of mbarriers.
static bool at_ring(const SimPatch *e) {
  return op_flag_kind((Op)e->op) == FLAGS_MBAR;
}

// Reports whether the patch's `mem` is an object that its operation can use. If
// the operation uses no object, `mem` must be absent.
static bool has_object(const Fn *fn, const SimPatch *e) {
  bool ring = at_ring(e);
  if (!ring && e->op != OP_MAPACQUIRE) return !e->mem;
  bool may = e->how == PATCH_BEFORE ||
             (e->how == PATCH_AS && e->op == OP_MBARWAIT);
  if (e->mem < 1 || e->mem >= fn->ins.n || !may) return false;
  if (!ring) return ir_get(fn, e->mem)->op == OP_TMAPAT && e->mem < e->ref;
  if (!ir_is_mem(fn, e->mem)) return false;
  const Mem *m = ir_memof(fn, e->mem);
  return m->space == SP_SMEM && dtype_bits(m->type) == 64 &&
         dtype_bits((DType)ir_get(fn, e->mem)->type) == 64 &&
         e->count >= 1 && e->base >= 0 && e->base + e->count <= m->count;
}

// Reports whether r is a value that is computed before instruction `at`.
static bool is_before(const Fn *fn, Ref r, Ref at) {
  return r > 0 && r < at && ir_type(fn, r) != DT_NONE && !ir_is_mem(fn, r);
}

// Reports whether a PATCH_VALUE is valid: it replaces an integer operand by an
// integer of the same type, or a memory object by one of the same type.
static bool has_value(const Fn *fn, const SimPatch *e) {
  const Ins *i = ir_get(fn, e->ref);
  Operand o;
  Ref was = 0, object = 0;
  uint32_t at = 0;
  if (strchr(op_rows[i->op].operands, '*')) return false;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o); at++) {
    if (o.kind == OPERAND_MEM && at++ == e->operand) object = o.ref;
    if (at == e->operand) was = o.kind == OPERAND_MEM ? o.off : o.ref;
  }
  if (object) {  // the operand is a memory object
    const Mem *m = ir_memof(fn, object);
    return e->from == FROM_REF && !e->nstep && e->mem && e->mem < fn->ins.n &&
           ir_is_mem(fn, e->mem) && ir_memof(fn, e->mem)->space == m->space &&
           ir_type(fn, e->mem) == ir_type(fn, object);
  }
  if (!was || ir_is_mem(fn, was) || !dtype_is_int(ir_type(fn, was)))
    return false;
  if (e->from == FROM_REF && !(is_before(fn, e->mem, e->ref) &&
                               ir_type(fn, e->mem) == ir_type(fn, was)))
    return false;
  for (int k = 0; k < e->nstep; k++) {
    const SimCalc *s = &e->step[k];
    if (s->op == OP_NOP) return false;
    if (s->with && !(is_before(fn, s->with, e->ref) &&
                     ir_type(fn, s->with) == ir_type(fn, was)))
      return false;
  }
  return true;
}

static bool is_patch(const Fn *fn, const SimPatch *e) {
  bool needs = e->how == PATCH_AS || e->how == PATCH_BEFORE;
  // An instruction may also be inserted at the end of the function.
  if (e->ref == fn->ins.n && e->how == PATCH_BEFORE)
    return e->op != OP_NOP && has_object(fn, e);
  if (e->ref < 1 || e->ref >= fn->ins.n) return false;
  const Ins *i = ir_get(fn, e->ref);
  if (e->how == PATCH_VALUE) return has_value(fn, e);
  if (!is_site(i) || (needs && e->op == OP_NOP)) return false;
  return has_object(fn, e);
}

// Returns the operation with this name, or OP_NOP if steps of a patch may not
// use it.
static Op find_step(const char *name) {
  static const Op ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD, OP_AND,
                           OP_OR, OP_XOR, OP_SHL, OP_SHR};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
    if (strcmp(op_name(ops[k]), name) == 0) return ops[k];
  return OP_NOP;
}

// Reads the steps with which a patch computes a replacement: steps = {{op,
// number}, {op, number, flip = true}, {op, with = ref}, ...}.
static void get_steps(lua_State *L, int t, SimPatch *e) {
  if (lua_getfield(L, t, "steps") != LUA_TTABLE) {
    lua_pop(L, 1);
    return;
  }
  int list = lua_gettop(L);
  lua_Integer n = luaL_len(L, list);
  for (lua_Integer k = 1; k <= n && k <= PATCH_STEPS; k++) {
    lua_rawgeti(L, list, k);
    face_checktype(L, -1, LUA_TTABLE);
    int at = lua_gettop(L);
    lua_rawgeti(L, at, 1);
    lua_rawgeti(L, at, 2);
    e->step[e->nstep++] = (SimCalc){
      .op = (uint8_t)find_step(luaL_optstring(L, at + 1, "")),
      .flip = face_get_bool(L, at, "flip"),
      .with = (Ref)face_get_int(L, at, "with", 0),
      .imm = luaL_optinteger(L, at + 2, 0)};
    lua_settop(L, list);
  }
  lua_pop(L, 1);
}

// Reads one patch from the table at t.
static SimPatch get_patch(lua_State *L, int t) {
  static const char *const how[] = {"drop", "as", "before", "sem", "value",
                                    NULL};
  static const char *const from[] = {"self", "number", "rank", "lane", "warp",
                                     "ref"};
  lua_getfield(L, t, "how");
  SimPatch e = {.ref = (Ref)face_get_int(L, t, "ref", 0),
               .how = (uint8_t)luaL_checkoption(L, -1, NULL, how),
               .op = (uint8_t)find_op(word(L, t, "op")),
               .sem = find_hint(HINT_SEM, word(L, t, "sem")),
               .scope = find_hint(HINT_SCOPE, word(L, t, "scope")),
               .flags = (uint16_t)face_get_int(L, t, "flags", 0),
               .count = (uint32_t)face_get_int(L, t, "count", 0),
               .mem = (Ref)face_get_int(L, t, "mem", 0),
               .imm = face_get_int(L, t, "imm", 0),
               .base = face_get_int(L, t, "base", 0),
               .operand = (uint8_t)face_get_int(L, t, "operand", 0)};
  for (uint8_t k = 0; k < sizeof from / sizeof *from; k++)
    if (strcmp(from[k], word(L, t, "from")) == 0) e.from = k;
  get_steps(L, t, &e);
  if (e.op == OP_FENCE) {
    FenceKind k = fence_find(word(L, t, "fence"));
    if (k == FE_COUNT) e.op = OP_NOP;
    e.imm = k;
  }
  if (e.op == OP_BULKWAIT && face_get_bool(L, t, "read")) e.flags |= BKF_READ;
  if (e.op == OP_MBARTX) e.flags |= MBF_ARRIVE;
  if (e.op == OP_MBARCPASYNC) e.flags |= MBF_NOINC;
  lua_pop(L, 1);
  return e;
}

size_t patchlib_get(lua_State *L, Ctx *cx, int t, const Fn *fn,
                    const SimPatch **out) {
  if (lua_getfield(L, t, "edits") != LUA_TTABLE) {
    lua_pop(L, 1);
    return 0;
  }
  int list = lua_gettop(L);
  size_t n = (size_t)luaL_len(L, list);
  SimPatch *e = NEW(cx, SimPatch, n + 1);
  for (size_t k = 0; k < n; k++) {
    lua_rawgeti(L, list, (lua_Integer)k + 1);
    face_checktype(L, -1, LUA_TTABLE);
    e[k] = get_patch(L, lua_gettop(L));
    lua_settop(L, list);
    if (!is_patch(fn, &e[k]))
      face_error(L, ERR_ARG, "sim_run: edit %d is invalid", (int)k + 1);
  }
  lua_pop(L, 1);
  *out = e;
  return n;
}

// Returns the instruction into which the patch changes `was`: NOP if the patch
// drops it. Raises an error if the patch inserts an instruction.
static Ins edited(lua_State *L, const Ins *was, const SimPatch *e) {
  Ins i = *was;
  if (e->how == PATCH_SEM)
    i.flags = (uint16_t)((i.flags & ~hint_mask(HINT_SEM)) |
                         (unsigned)e->sem << hint_field(HINT_SEM)->shift);
  else if (e->how == PATCH_DROP)
    i = (Ins){.op = OP_NOP, .src = i.src, .birth = i.birth};
  else
    face_error(L, ERR_ARG, "with_edits: edits must not insert "
               "instructions");
  return i;
}

// with_edits(fn, {edits =}, f) -> the results of f(). fn is patched during the
// call.
static int l_with_edits(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_check_fn(L, 1);
  const SimPatch *e = NULL;
  lua_settop(L, 3);
  size_t n = patchlib_get(L, cx, 2, fn, &e);
  Ins *was = lua_newuserdatauv(L, 2 * n * sizeof *was + 1, 0), *now = was + n;
  for (size_t k = 0; k < n; k++)
    now[k] = edited(L, ir_get(fn, e[k].ref), &e[k]);
  Ref *ref = lua_newuserdatauv(L, n * sizeof *ref + 1, 0);
  for (size_t k = 0; k < n; k++) {
    ref[k] = e[k].ref;
    was[k] = fn->ins.p[ref[k]];
    fn->ins.p[ref[k]] = now[k];
  }
  lua_pushvalue(L, 3);
  int rc = lua_pcall(L, 0, LUA_MULTRET, 0);
  for (size_t k = n; k-- > 0;) fn->ins.p[ref[k]] = was[k];
  return rc != LUA_OK ? lua_error(L) : lua_gettop(L) - 5;
}

void patchlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"sim_sites", l_sim_sites},
                                  {"sim_numbers", l_sim_numbers},
                                  {"sim_value", l_sim_value},
                                  {"sim_inexact", l_sim_inexact},
                                  {"with_edits", l_with_edits},
                                  {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
