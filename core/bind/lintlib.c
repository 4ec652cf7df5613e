// Lua bindings of the searches for likely mistakes in a traced function
// (core/lint). Each lint_... returns a list of findings.
#include "bind/face.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "lint/block_steps.h"
#include "lint/block_sums.h"
#include "lint/lost_iterations.h"
#include "lint/lost_lanes.h"
#include "lint/lost_sums.h"
#include "lint/lost_tails.h"
#include "lint/overlapping_steps.h"
#include "lint/partial_sums.h"
#include "lint/repeated_sums.h"
#include "lint/scalar_form.h"
#include "lint/shared_steps.h"
#include "lint/unread_parts.h"
#include "lint/unread_results.h"
#include "lint/unscaled_sums.h"
#include "lint/unused_loads.h"
#include "lint/zero_starts.h"

// ---- shared memory that is never read ----

enum { FILLED = 1, USED = 2 };

// Marks in how[] (indexed like Fn.mem) the shared objects that instruction i
// fills, and those that it uses in another way. Returns the index of the object
// that i fills, or -1.
static int64_t note_shared(const Fn *fn, const Ins *i, uint8_t *how) {
  int64_t filled = -1;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (!o.ref || !ir_is_mem(fn, o.ref)) continue;
    if (ir_memof(fn, o.ref)->space != SP_SMEM) continue;
    bool fills = o.kind == OPERAND_MEM && o.written && !o.read && !o.barrier;
    int64_t at = ir_get(fn, o.ref)->imm;
    how[at] |= fills ? FILLED : USED;
    if (fills) filled = at;
  }
  return filled;
}

// Reports whether MMAs read shared memory through descriptors that the kernel
// computes itself, as in PTX. Such a descriptor may point to any object.
static bool has_computed_descriptors(const Fn *fn) {
  bool reads = false;
  for (Ref r = 1; r < fn->ins.n; r++) {
    if (ir_get(fn, r)->op == OP_DESC) return false;
    reads |= ir_get(fn, r)->op == OP_WGMMA;
  }
  return reads;
}

// lint_unread(fn) -> {{name =, file =, line =}, ...}: shared tensors that the
// kernel fills and never reads, each with the first line that fills it.
static int l_lint_unread(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  lua_createtable(L, 0, 0);
  if (has_computed_descriptors(fn)) return 1;
  uint8_t *how = arena_zero(cx, &cx->scratch, fn->mem.n + 1);
  for (Ref r = 1; r < fn->ins.n; r++) note_shared(fn, ir_get(fn, r), how);
  uint8_t *again = arena_zero(cx, &cx->scratch, fn->mem.n + 1);
  lua_Integer n = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    int64_t at = note_shared(fn, i, again);
    if (at < 0 || how[at] != FILLED || !i->src) continue;
    how[at] = 0;  // reported
    lua_createtable(L, 0, 3);
    face_set_str(L, "name", ir_str(fn, fn->mem.p[at].name));
    face_set_place(L, fn, "file", "line", i->src);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// lint_lost_sums(fn) -> {{file =, line =, reset =}, ...}: lines that overwrite
// a sum before any instruction has read it. `reset` states whether a loop
// resets the sum.
static int l_lint_lost_sums(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  lua_createtable(L, 0, 0);
  lua_Integer n = 0;
  uint32_t last = 0;
  for (Ref r = 0; (r = lost_sums(cx, fn, r)) != 0;) {
    uint32_t src = ir_get(fn, r)->src;
    if (!src || src == last) continue;
    last = src;
    lua_createtable(L, 0, 3);
    face_set_place(L, fn, "file", "line", src);
    face_set_bool(L, "reset",
                  op_class((Op)ir_get(fn, r)->op) != CLASS_MMA);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// lint_lost_iterations(fn) -> {{file =, line =}, ...}: lines of loops that
// overwrite a result which the preceding iteration computed from loaded
// elements
static int l_lint_lost_iterations(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  lua_createtable(L, 0, 0);
  lua_Integer n = 0;
  for (Ref r = 0; (r = lost_iterations(cx, fn, r)) != 0;) {
    lua_createtable(L, 0, 2);
    face_set_place(L, fn, "file", "line", ir_get(fn, r)->src);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// A list of findings in a function.
typedef struct FoundList {
  lua_State *L;
  const Fn *fn;
  lua_Integer n;
} FoundList;

// Pushes the table of a finding at an instruction, with its `file` and `line`,
// and room for n fields. If the instruction has no line, pushes nothing and
// returns false.
static bool open_row(const FoundList *list, Ref at, int n) {
  uint32_t src = ir_get(list->fn, at)->src;
  if (!src) return false;
  lua_createtable(list->L, 0, n);
  face_set_place(list->L, list->fn, "file", "line", src);
  return true;
}

// Pushes an empty list of findings in the function at index 1.
static FoundList new_list(lua_State *L) {
  FoundList list = {.L = L, .fn = face_check_fn(L, 1)};
  lua_createtable(L, 0, 0);
  return list;
}

// Like new_list, for searches in the scalar form (lint/scalar_form.h).
static FoundList new_scalar_list(lua_State *L, Ctx *cx) {
  FoundList list = new_list(L);
  list.fn = scalar_form(cx, list.fn);
  return list;
}

static void add_number(void *ud, int32_t arg) {
  FoundList *list = ud;
  lua_pushinteger(list->L, arg + 1);
  lua_rawseti(list->L, -2, ++list->n);
}

// lint_added(fn) -> {number, ...}: numbers of the arguments to which atomics
// add elements that the kernel has loaded
static int l_lint_added(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  block_sums_added(cx, list.fn, add_number, &list);
  return 1;
}

static void add_part(void *ud, const UnreadPart *u) {
  FoundList *list = ud;
  lua_State *L = list->L;
  const Fn *fn = list->fn;
  if (!open_row(list, u->at, 7)) return;
  face_set_str(L, "name", ir_str(fn, u->mem->name));
  face_set_str(L, "layout", ir_str(fn, u->mem->layout));
  face_set_int(L, "count", u->mem->count);
  face_set_int(L, "n", u->n);
  face_set_int(L, "first", u->first);
  lua_rawseti(L, -2, ++list->n);
}

// lint_unread_parts(fn) -> {{name =, layout =, count =, n =, first =, file =,
// line =}, ...}: fragments in which the kernel loads n elements and never reads
// them
static int l_lint_unread_parts(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  unread_parts(cx, list.fn, add_part, &list);
  return 1;
}

static void add_loads(void *ud, const UnusedLoads *u) {
  FoundList *list = ud;
  lua_State *L = list->L;
  const Fn *fn = list->fn;
  const Ins *i = ir_get(fn, u->at);
  if (!open_row(list, u->at, 5)) return;
  face_set_str(L, "name", ir_str(fn, ir_memof(fn, i->a[0])->name));
  face_set_int(L, "n", u->n);
  face_set_int(L, "count", u->count);
  lua_rawseti(L, -2, ++list->n);
}

// lint_unused_loads(fn) -> {{name =, n =, count =, file =, line =}, ...}: lines
// that load `count` elements, of which n are never used
static int l_lint_unused_loads(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  unused_loads(cx, list.fn, add_loads, &list);
  return 1;
}

static void add_lanes(void *ud, const LostLanes *l) {
  FoundList *list = ud;
  lua_State *L = list->L;
  const Fn *fn = list->fn;
  int64_t d = 0;
  if (!open_row(list, l->at, 6)) return;
  face_set_bool(L, "twice", l->twice);
  face_set_int(L, "lanes", l->lanes);
  face_set_bool(L, "scan", l->scan);
  face_set_bool(L, "warps", l->warps);
  face_set_bool(L, "extreme", l->extreme);
  face_set_bool(L, "selects", l->selects);
  if (l->gap) face_set_int(L, "gap", l->gap);
  const Ins *i = ir_get(fn, l->shuffle);
  if (l->shuffle) {
    face_set_str(L, "op", intrin_row(intrin_id(i->imm))->name);
    if (ir_const(fn, i->a[1], &d)) face_set_int(L, "distance", d);
  }
  lua_rawseti(L, -2, ++list->n);
}

// lint_lost_lanes(fn) -> {{file =, line =, twice =, lanes =, scan =, warps =,
// selects =, gap =, op =, distance =}, ...}: sums over a warp that lack the
// values of some lanes, or contain them twice. `lanes` is the mask of these
// lanes or, if `warps` is true, of warps of the block. `op` is absent if no
// shuffle adds up the lanes. lint/lost_lanes.h describes the other fields.
static int l_lint_lost_lanes(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_scalar_list(L, cx);
  lost_lanes(cx, list.fn, add_lanes, &list);
  return 1;
}

static void add_repeated(void *ud, const RepeatedSum *s) {
  FoundList *list = ud;
  lua_State *L = list->L;
  const Fn *fn = list->fn;
  const Ins *i = ir_get(fn, s->at);
  if (!open_row(list, s->at, 6)) return;
  face_set_str(L, "op", op_name((Op)i->op));
  face_set_int(L, "lanes", s->same & SAME_LANES);
  face_set_bool(L, "warps", s->same & SAME_WARPS);
  face_set_bool(L, "blocks", s->same & SAME_BLOCKS);
  face_set_bool(L, "apart", s->apart);
  if (s->mem) face_set_str(L, "name", ir_str(fn, s->mem->name));
  lua_rawseti(L, -2, ++list->n);
}

// lint_repeated_sums(fn) -> {{file =, line =, op =, lanes =, warps =, blocks =,
// apart =, name =}, ...}: additions and stores of one sum by several lanes,
// warps or blocks. `lanes` is a mask of the bits of the lane index in which
// these lanes differ. `apart` states whether they store different values to one
// element. `name` is the shared tensor with the equal elements that are added.
static int l_lint_repeated_sums(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  repeated_sums(cx, list.fn, add_repeated, &list);
  return 1;
}

static void add_result(void *ud, const UnreadResult *u) {
  FoundList *list = ud;
  lua_State *L = list->L;
  const Fn *fn = list->fn;
  lua_createtable(L, 0, 6);
  face_set_place(L, fn, "file", "line", ir_get(fn, u->at)->src);
  face_set_str(L, "name", ir_str(fn, u->var ? ir_get(fn, u->var)->name
                                            : u->mem->name));
  face_set_bool(L, "variable", u->var != 0);
  face_set_bool(L, "load", u->load);
  face_set_bool(L, "some", u->some);
  lua_rawseti(L, -2, ++list->n);
}

// lint_unread_results(fn) -> {{name =, file =, line =, load =, some =, variable
// =}, ...}: lines with a result in registers that no instruction reads. If
// `load` is true, the result consists of loaded elements. If `variable` is
// true, it is a variable that a loop updates. Otherwise, it is the sums of an
// MMA, and `some` states whether earlier sums in the same registers are read.
static int l_lint_unread_results(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  unread_results(cx, list.fn, add_result, &list);
  return 1;
}

static void add_start(void *ud, const ZeroStart *z) {
  FoundList *list = ud;
  lua_State *L = list->L;
  if (!open_row(list, z->at, 7)) return;
  face_set_str(L, "op", op_name(z->op));
  face_set_bool(L, "masked", z->masked);
  face_set_int(L, "args", (int64_t)z->args);
  face_set_num(L, "start", z->start);
  if (z->kept) face_set_str(L, "name", ir_str(list->fn, z->kept->name));
  lua_rawseti(L, -2, ++list->n);
}

// lint_zero_starts(fn) -> {{op =, masked =, args =, name =, start =, file =,
// line =}, ...}: reductions with a wrong initial value. A maximum, minimum or
// product has one of three mistakes: it starts at 0; it takes 0 for elements
// that a condition excludes (masked); or it includes registers `name` that
// still contain their initial infinity. A sum has one mistake: it starts at the
// constant `start`. Bit n of args states whether the operation combines
// elements of argument n.
static int l_lint_zero_starts(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_scalar_list(L, cx);
  zero_starts(cx, list.fn, add_start, &list);
  return 1;
}

static void add_unscaled(void *ud, const UnscaledSum *u) {
  static const char *const KINDS[] = {
    [SUM_UNSCALED] = "unscaled_sum", [SUM_MERGED] = "merged_sum",
    [SUM_GROWING] = "growing_sum"};
  FoundList *list = ud;
  if (!open_row(list, u->at, 3)) return;
  face_set_str(list->L, "kind", KINDS[u->kind]);
  lua_rawseti(list->L, -2, ++list->n);
}

// lint_unscaled_sums(fn) -> {{kind =, file =, line =}, ...}: lines that add to
// the sums of an online softmax, but omit a step such as the rescaling. `kind`
// is the key of the message (cutelua.text.notes).
static int l_lint_unscaled_sums(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_scalar_list(L, cx);
  unscaled_sums(cx, list.fn, add_unscaled, &list);
  return 1;
}

static void add_partial(void *ud, const PartialSum *s) {
  FoundList *list = ud;
  if (!open_row(list, s->at, 5)) return;
  face_set_int(list->L, "lanes", s->lanes);
  face_set_bool(list->L, "warps", s->warps);
  face_set_bool(list->L, "extreme", s->extreme);
  lua_rawseti(list->L, -2, ++list->n);
}

// lint_partial_sums(fn) -> {{lanes =, warps =, extreme =, file =, line =},
// ...}: sums without a necessary reduction. They combine only elements of
// `lanes` lanes or, if `warps` is true, of one warp. `extreme` states whether
// the sum is a maximum or minimum.
static int l_lint_partial_sums(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_scalar_list(L, cx);
  partial_sums(cx, list.fn, add_partial, &list);
  return 1;
}

static void add_overlap(void *ud, const OverlappingStep *s) {
  FoundList *list = ud;
  lua_State *L = list->L;
  const Ins *i = ir_get(list->fn, s->at);
  Ref from = operand_ref(list->fn, i, ROLE_SRC);
  if (!open_row(list, s->at, 6)) return;
  face_set_str(L, "name", ir_str(list->fn, ir_memof(list->fn, from)->name));
  face_set_int(L, "n", s->n);
  face_set_int(L, "again", s->again);
  face_set_int(L, "step", s->step);
  lua_rawseti(L, -2, ++list->n);
}

// lint_overlapping_steps(fn) -> {{name =, n =, again =, step =, file =, line
// =}, ...}: lines of loops that load n elements of tensor `name` and add them,
// although the preceding iteration has already added `again` of them.
static int l_lint_overlapping_steps(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  overlapping_steps(cx, list.fn, add_overlap, &list);
  return 1;
}

static void add_block_step(void *ud, const BlockStep *s) {
  FoundList *list = ud;
  lua_State *L = list->L;
  if (!open_row(list, s->loop, 4)) return;
  face_set_int(L, "step", s->step);
  face_set_int(L, "first", s->first);
  lua_rawseti(L, -2, ++list->n);
}

// lint_block_steps(fn) -> {{step =, first =, file =, line =}, ...}: loops in
// which several blocks execute the same iterations. The start index grows by
// `first` from block to block, and `first` is a multiple of the step.
static int l_lint_block_steps(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  block_steps(cx, list.fn, add_block_step, &list);
  return 1;
}

static void add_shared_step(void *ud, const SharedStep *s) {
  FoundList *list = ud;
  lua_State *L = list->L;
  if (!open_row(list, s->at, 4)) return;
  face_set_str(L, "name", ir_str(list->fn, s->mem->name));
  face_set_bool(L, "lost", s->lost);
  lua_rawseti(L, -2, ++list->n);
}

// lint_shared_steps(fn) -> {{name =, lost =, file =, line =}, ...}: wrong steps
// of scans and reductions in shared tensor `name`. If `lost` is true, the step
// replaces the thread's own element by another one. Otherwise it omits element
// 0.
static int l_lint_shared_steps(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  shared_steps(cx, list.fn, add_shared_step, &list);
  return 1;
}

static void add_tail(void *ud, const LostTail *t) {
  FoundList *list = ud;
  lua_State *L = list->L;
  if (!open_row(list, t->at, 5)) return;
  face_set_str(L, "name", ir_str(list->fn, t->mem->name));
  face_set_int(L, "n", t->n);
  face_set_int(L, "extent", t->extent);
  lua_rawseti(L, -2, ++list->n);
}

// lint_lost_tails(fn) -> {{name =, n =, extent =, file =, line =}, ...}: lines
// of loops that read only the first n elements of each row of argument `name`.
// A row has `extent` elements, and another line reads all of them.
static int l_lint_lost_tails(lua_State *L) {
  Ctx *cx = face_enter(L);
  FoundList list = new_list(L);
  lost_tails(cx, list.fn, add_tail, &list);
  return 1;
}

void lintlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"lint_unread", l_lint_unread},
    {"lint_unread_parts", l_lint_unread_parts},
    {"lint_lost_lanes", l_lint_lost_lanes},
    {"lint_repeated_sums", l_lint_repeated_sums},
    {"lint_lost_sums", l_lint_lost_sums},
    {"lint_added", l_lint_added},
    {"lint_unused_loads", l_lint_unused_loads},
    {"lint_unread_results", l_lint_unread_results},
    {"lint_zero_starts", l_lint_zero_starts},
    {"lint_partial_sums", l_lint_partial_sums},
    {"lint_unscaled_sums", l_lint_unscaled_sums},
    {"lint_overlapping_steps", l_lint_overlapping_steps},
    {"lint_block_steps", l_lint_block_steps},
    {"lint_shared_steps", l_lint_shared_steps},
    {"lint_lost_tails", l_lint_lost_tails},
    {"lint_lost_iterations", l_lint_lost_iterations},
    {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
