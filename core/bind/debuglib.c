// Lua bindings of the debugger: the option `debug` of sim_run, and the methods
// of a stop of the run.
//
// A goal states where the run stops next: {until = step, recall =, faults =,
// points = {{cta =, warp =, file =, line =, every =}...}, changes = {{mem =,
// element =, cta =, warp =, lane =}...}} (watch/debugger.h). If a field of a
// point is absent, every value matches. If a field of the goal is absent, it
// causes no stop.
#include "bind/debug.h"

#include <string.h>

#include "bind/trace.h"
#include "bind/veclib.h"

#define MT_DEBUG "cute.debug"

enum { MAX_GOALS = 64 };

// The debugger's state, which scripts receive as a stop. Uservalue 1 is the
// function `debug`. Uservalue 2 is the goal: `point` has pointers to strings of
// the goal.
typedef struct DebugBox {
  SimDebug d;
  SimPoint point[MAX_GOALS];
  SimElement change[MAX_GOALS];
  lua_State *L;
  const Fn *fn;
  int at;                  // stack index of this userdata
  // failed: whether the function `debug` raised an error. looking: whether it
  // is running; only then can a script use the stop.
  bool failed, looking;
} DebugBox;

static DebugBox *check_box(lua_State *L) {
  DebugBox *b = face_check(L, 1, MT_DEBUG, "stop");
  if (!b->looking)
    face_error(L, ERR_CLOSED, "this stop has ended: a stop can be used only "
               "until the function that receives it returns");
  return b;
}

// ---- goals ----

static SimPoint point_at(lua_State *L, int t) {
  SimPoint p = {.cta = face_get_int(L, t, "cta", -1),
                .warp = (int)face_get_int(L, t, "warp", -1),
                .line = (uint32_t)face_get_int(L, t, "line", 0),
                .every = face_get_bool(L, t, "every")};
  lua_getfield(L, t, "file");
  p.file = luaL_optstring(L, -1, "");  // the goal keeps the string alive
  lua_pop(L, 1);
  return p;
}

static SimElement element_at(lua_State *L, int t) {
  return (SimElement){.mem = (Ref)face_get_int(L, t, "mem", 0),
                      .element = face_get_int(L, t, "element", 0),
                      .cta = face_get_int(L, t, "cta", 0),
                      .warp = (int)face_get_int(L, t, "warp", 0),
                      .lane = (int)face_get_int(L, t, "lane", 0)};
}

// Pushes the list in field k of the goal at t. Returns the length of the list,
// or 0 if the field is absent.
static int push_list(lua_State *L, int t, const char *k) {
  if (lua_getfield(L, t, k) != LUA_TTABLE) return 0;
  lua_Unsigned n = lua_rawlen(L, -1);
  if (n > MAX_GOALS)
    face_error(L, ERR_LIMIT, "%d breakpoints are too many: at most %d", (int)n,
               MAX_GOALS);
  return (int)n;
}

// Reads the goal on top, and pops it.
static void set_goal(lua_State *L, DebugBox *b) {
  SimDebug *d = &b->d;
  int t = lua_gettop(L);
  face_checktype(L, t, LUA_TTABLE);
  d->until = (uint64_t)face_get_int(L, t, "until", INT64_MAX);
  d->recall = face_get_bool(L, t, "recall");
  d->faults = face_get_bool(L, t, "faults");
  d->met = (SimAt){0};
  d->npoint = push_list(L, t, "points");
  for (int k = 0; k < d->npoint; k++) {
    lua_rawgeti(L, t + 1, k + 1);
    b->point[k] = point_at(L, t + 2);
    lua_pop(L, 1);
  }
  d->nchange = push_list(L, t, "changes");
  for (int k = 0; k < d->nchange; k++) {
    lua_rawgeti(L, t + 2, k + 1);
    b->change[k] = element_at(L, t + 3);
    lua_pop(L, 1);
  }
  d->point = b->point;
  d->change = b->change;
  // Free the old values that the debugger kept for the changes of the previous
  // goal.
  debugger_free(d);
  lua_settop(L, t);
  lua_setiuservalue(L, b->at, 2);
}

// Calls the function `debug` with the stop at 1, and reads the goal that it
// returns. Returns whether the run continues. Runs in protected mode.
static int call_stop(lua_State *L) {
  DebugBox *b = lua_touserdata(L, 1);
  lua_getiuservalue(L, 1, 1);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  bool go = lua_toboolean(L, -1);
  int at = b->at;
  b->at = 1;
  if (go) set_goal(L, b);
  b->at = at;
  lua_pushboolean(L, go);
  return 1;
}

static bool stop(SimDebug *d) {
  DebugBox *b = d->ud;
  lua_State *L = b->L;
  if (!lua_checkstack(L, LUA_MINSTACK)) return false;
  b->looking = true;
  lua_pushcfunction(L, call_stop);
  lua_pushvalue(L, b->at);
  b->failed = lua_pcall(L, 1, 1, 0) != LUA_OK;
  b->looking = false;
  // The error stays on the stack for debuglib_end, which raises it.
  if (b->failed) return false;
  bool go = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return go;
}

SimDebug *debuglib_start(lua_State *L, int t, const Fn *fn) {
  if (lua_getfield(L, t, "debug") == LUA_TNIL) return NULL;
  face_checktype(L, -1, LUA_TFUNCTION);
  DebugBox *b = lua_newuserdatauv(L, sizeof *b, 2);
  memset(b, 0, sizeof *b);
  luaL_setmetatable(L, MT_DEBUG);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
  b->L = L;
  b->fn = fn;
  b->at = lua_gettop(L);
  b->d.stop = stop;
  b->d.ud = b;
  lua_getfield(L, t, "goal");
  set_goal(L, b);
  return &b->d;
}

void debuglib_end(lua_State *L, SimDebug *d) {
  DebugBox *b = d->ud;
  debugger_free(d);
  if (b->failed) lua_error(L);
}

static int l_gc(lua_State *L) {
  DebugBox *b = lua_touserdata(L, 1);
  debugger_free(&b->d);
  return 0;
}

// ---- position ----

static void push_at(lua_State *L, const DebugBox *b, const SimAt *a) {
  lua_createtable(L, 0, 9);
  face_set_int(L, "step", (lua_Integer)a->step);
  face_set_int(L, "cta", a->cta);
  face_set_int(L, "warp", a->warp);
  face_set_int(L, "lanes", a->lanes);
  face_set_int(L, "ref", a->ref);
  if (a->op) face_set_str(L, "op", a->op);
  face_set_place(L, b->fn, "file", "line", a->src);
  lua_createtable(L, 3, 0);
  for (int k = 0; k < 3; k++) {
    lua_pushinteger(L, a->block[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "block");
}

void debuglib_told(lua_State *L, const SimDebug *d) {
  face_set_int(L, "steps", (lua_Integer)d->step);
  if (!d->met.step) return;
  push_at(L, d->ud, &d->met);
  lua_setfield(L, -2, "met");
}

// stop:where() -> {step=, why=, which=, cta=, block=, warp=, lanes=, ref=, op=,
// file=, line=, fault=, met=}: the warp and the instruction at which the run
// stopped, and why
static int l_where(lua_State *L) {
  static const char *const why[] = {
    [WHY_STEP] = "step", [WHY_POINT] = "point", [WHY_CHANGE] = "change",
    [WHY_FAULT] = "fault", [WHY_END] = "end"};
  Ctx *cx = face_enter(L);
  const DebugBox *b = check_box(L);
  SimAt a = debugger_at(&b->d);
  push_at(L, b, &a);
  face_set_str(L, "why", why[b->d.why]);
  face_set_int(L, "which", b->d.which + 1);
  if (b->d.met.step) {
    push_at(L, b, &b->d.met);
    lua_setfield(L, -2, "met");
  }
  if (b->d.why != WHY_FAULT && b->d.why != WHY_END) return 1;
  SimReport r;
  if (!debugger_fault(&b->d, &r)) return 1;
  simlib_push_report(L, cx, b->fn, &r);
  lua_setfield(L, -2, "fault");
  base_free(r.fact);
  return 1;
}

// stop:warps() -> {{cta=, warp=, state=, file=, line=, active=, bar=, mbar=,
// count=, copies=, agents=}...}: all warps of the cluster
static int l_warps(lua_State *L) {
  const DebugBox *b = check_box(L);
  int n = debugger_warps(&b->d);
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    SimWarpAt a = debugger_warp_at(&b->d, k);
    lua_createtable(L, 0, 11);
    face_set_int(L, "cta", a.cta);
    face_set_int(L, "warp", a.warp);
    face_set_str(L, "state", a.state);
    face_set_int(L, "active", a.active);
    face_set_int(L, "ref", a.ref);
    if (a.bar >= 0) face_set_int(L, "bar", a.bar);
    if (a.mbar >= 0) face_set_int(L, "mbar", a.mbar + 1);
    face_set_int(L, "count", (lua_Integer)a.count);
    face_set_int(L, "copies", a.copies);
    face_set_int(L, "agents", a.agents);
    face_set_place(L, b->fn, "file", "line", a.src);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

// stop:bars() -> {{cta=, name=, element=, phase=, arrived=, expected=,
// bytes=}...}: all mbarriers, and the barriers of all blocks. The entry of a
// block's barrier has no `name`.
static int l_bars(lua_State *L) {
  enum { MOST = 512 };
  const DebugBox *b = check_box(L);
  SimBarAt *all = lua_newuserdatauv(L, MOST * sizeof *all, 0);
  int n = debugger_bars(&b->d, all, MOST);
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_createtable(L, 0, 7);
    face_set_int(L, "cta", all[k].cta);
    face_set_int(L, "element", all[k].element);
    face_set_int(L, "arrived", all[k].arrived);
    face_set_int(L, "expected", all[k].expected);
    if (all[k].mem >= 0) {
      face_set_str(L, "name", ir_str(b->fn, b->fn->mem.p[all[k].mem].name));
      face_set_int(L, "phase", all[k].phase);
      face_set_int(L, "bytes", all[k].bytes);
    }
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

// ---- values ----

// The lane whose values a script requests. check_eye reads the CTA, the warp
// and the lane from three arguments.
typedef struct Eye { const DebugBox *b; int warp, lane; } Eye;

static Eye check_eye(lua_State *L, int idx) {
  Eye e = {.b = check_box(L)};
  int64_t cta = face_checkint(L, idx);
  int warp = (int)face_checkint(L, idx + 1);
  e.warp = debugger_warp(&e.b->d, cta, warp);
  e.lane = (int)face_checkint(L, idx + 2);
  if (e.warp < 0)
    face_error(L, ERR_ARG, "warp %d of block %d is not running now", warp,
               (int)cta);
  if (e.lane < 0 || e.lane > 31)
    face_error(L, ERR_ARG, "lane %d does not exist: a warp has lanes 0 to 31",
               e.lane);
  return e;
}

static int64_t value_of(lua_State *L, const Eye *e, Ref r) {
  uint64_t u;
  DType t = ir_type(e->b->fn, r);
  if (!debugger_value(&e->b->d, r, e->warp, e->lane, &u))
    face_error(L, ERR_ARG, "the value of a traced number is not available at "
               "this stop");
  return dtype_int(t, u);
}

// stop:value(value, cta, warp, lane) -> the number or boolean in this lane of a
// traced value, or nil if the lane has not computed it
static int l_value(lua_State *L) {
  Eye e = check_eye(L, 3);
  const Value *v = trace_value(L, 2);
  uint64_t u;
  if (!v || v->undefined || v->serial != e.b->fn->serial ||
      !debugger_value(&e.b->d, v->r, e.warp, e.lane, &u))
    return 0;
  face_push_bits(L, ir_type(e.b->fn, v->r), u);
  return 1;
}

// stop:vector(vector, cta, warp, lane) -> list of the vector's elements in this
// lane, as numbers or booleans; false for each element that the lane has not
// computed
static int l_vector(lua_State *L) {
  Eye e = check_eye(L, 3);
  const Vector *v = veclib_check(L, 2);
  lua_createtable(L, (int)v->n, 0);
  for (int64_t k = 0; k < v->n; k++) {
    uint64_t u;
    if (debugger_value(&e.b->d, v->r[k], e.warp, e.lane, &u))
      face_push_bits(L, v->type, u);
    else
      lua_pushboolean(L, false);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

// Returns the tensor at 2. Traced numbers in its layout and offset are replaced
// by their values in the lane.
static Tensor seen(lua_State *L, Ctx *cx, const Eye *e) {
  const Tensor *p = face_peek_tensor(L, 2);
  if (!p || !p->mem) face_argerror(L, 2, "tensor of a kernel");
  Tensor t = *p;
  TraceLeaves v = trace_leaves(cx, t.l);
  for (size_t k = 0; k < v.n; k++)
    if (dim_kind(*v.dyn[k]) == DIM_DYN)
      *v.dyn[k] = dim_int(cx, value_of(L, e, dim_getref(*v.dyn[k])));
  t.l = *v.l;
  if (dim_kind(t.off) == DIM_DYN)
    t.off = dim_int(cx, value_of(L, e, dim_getref(t.off)));
  return t;
}

// stop:element(tensor, coordinate, cta, warp, lane) -> memory object, index of
// the element in the object
static int l_element(lua_State *L) {
  Ctx *cx = face_enter(L);
  Eye e = check_eye(L, 4);
  Tensor t = seen(L, cx, &e);
  Tup c = face_check_tup(cx, L, 3);
  tensor_check_coord(cx, &t, c);
  Dim at = dim_add(cx, t.off, layout_eval(cx, t.l, c));
  lua_pushinteger(L, t.mem);
  lua_pushinteger(L, dim_value(at));
  return 2;
}

// stop:read(mem, element, cta, warp, lane) -> number or nil, state: "defined",
// "undefined", "flying" (an asynchronous write is pending) or "outside"
static int l_read(lua_State *L) {
  static const char *const words[] = {
    [THERE] = "defined", [THERE_UNDEFINED] = "undefined",
    [THERE_FLYING] = "flying", [THERE_NOT] = "outside"};
  Eye e = check_eye(L, 4);
  Ref mem = (Ref)face_checkint(L, 2);
  uint64_t u;
  SimThere there = debugger_element(&e.b->d, mem, face_checkint(L, 3), e.warp,
                                    e.lane, &u);
  if (there == THERE_NOT) lua_pushnil(L);
  else face_push_bits(L, ir_type(e.b->fn, mem), u);
  lua_pushstring(L, words[there]);
  return 2;
}

// stop:view(tensor, cta, warp, lane) -> shape, element type, text of the layout
static int l_view(lua_State *L) {
  Ctx *cx = face_enter(L);
  Eye e = check_eye(L, 3);
  Tensor t = seen(L, cx, &e);
  face_push_tup(L, t.l.shape);
  face_push_dtype(L, t.type);
  Buf out = {0};
  layout_print(cx, t.l, &out);
  face_push_buf(L, &out);
  return 3;
}

// stop:writer(mem, element, cta, warp, lane) -> the last instruction of this
// cluster that wrote the element, as a table like that of where(). `warp` is -1
// for an asynchronous unit. Returns nil if the instruction is unknown.
static int l_writer(lua_State *L) {
  Eye e = check_eye(L, 4);
  SimAt a = debugger_writer(&e.b->d, (Ref)face_checkint(L, 2),
                            face_checkint(L, 3), e.warp, e.lane);
  if (!a.step) return 0;
  push_at(L, e.b, &a);
  return 1;
}

void debuglib_open(lua_State *L) {
  static const luaL_Reg methods[] = {
    {"where", l_where}, {"warps", l_warps}, {"bars", l_bars},
    {"value", l_value}, {"vector", l_vector}, {"element", l_element},
    {"read", l_read}, {"view", l_view}, {"writer", l_writer},
    {"__gc", l_gc}, {NULL, NULL}};
  face_newtype(L, MT_DEBUG, methods);
  lua_pop(L, 1);
}
// SPDX-License-Identifier: MIT
