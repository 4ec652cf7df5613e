// Traced scalars: their userdata, plain numbers as traced values, conversions.
// Lua's numbers and booleans get the same methods. (oplib.c has the operators.)
#include "bind/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/fold.h"

// ---- creation and access ----

Value *trace_value(lua_State *L, int idx) {
  return lua_isuserdata(L, idx) ? luaL_testudata(L, idx, MT_VALUE) : NULL;
}

void trace_watch(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE) == LUA_TTABLE) {
    lua_getfield(L, -1, "watched");
    lua_pushvalue(L, -3);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
}

// Pushes a traced value r with room for n uservalues.
static Value *push(lua_State *L, Ctx *cx, Ref r, int n) {
  Value *v = lua_newuserdatauv(L, sizeof *v, n);
  *v = (Value){.serial = ir_fn(cx)->serial,
               .birth = ir_get(ir_fn(cx), r)->birth,
               .r = r,
               .made = ((const FnBox *)ir_fn(cx))->at};
  luaL_setmetatable(L, MT_VALUE);
  if (ir_type(ir_fn(cx), r) == DT_BOOL) {
    lua_pushvalue(L, -1);
    trace_watch(L);
  }
  return v;
}

Value *trace_push(lua_State *L, Ctx *cx, Ref r) { return push(L, cx, r, 0); }

void trace_push_choice(lua_State *L, Ctx *cx, Ref r, int a, int b) {
  push(L, cx, r, 2)->choice = true;
  lua_pushvalue(L, a);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, b);
  lua_setiuservalue(L, -2, 2);
}

bool trace_is_choice(lua_State *L, int idx) {
  const Value *v = trace_value(L, idx);
  return v && v->choice;
}

void face_push_value(lua_State *L, Ref r) {
  trace_push(L, face_state(L), r);
}

// Raises the error for a use of the undefined value v. If v replaces a traced
// value, and that value cannot be used here for another reason, raises the
// error about it instead.
static void use_undefined(Ctx *cx, const Value *v) {
  const Fn *fn = ir_fn(cx);
  if (v->r && v->r < fn->ins.n && ir_get(fn, v->r)->birth == v->birth)
    ir_use(cx, fn, v->r);
  ctx_fail(cx, ERR_REGION, "%s", ir_str(fn, v->undefined));
}

void trace_own(Ctx *cx, const Value *v) {
  const Fn *fn = ir_fn(cx);
  if (!fn)
    ctx_fail(cx, ERR_FOREIGN, "a traced value was used outside its kernel\n  "
             "it stands for a number that exists only while the kernel runs\n  "
             "write it to a tensor that is an argument, and read that after "
             "the launch");
  if (v->serial != fn->serial)
    ctx_fail(cx, ERR_FOREIGN, "a value traced in another kernel was used in "
             "'%s'", ir_str(fn, fn->name));
  if (v->undefined) use_undefined(cx, v);
  if (v->r >= fn->ins.n || ir_get(fn, v->r)->birth != v->birth)
    ctx_fail(cx, ERR_REGION, "a traced value from an earlier pass over a "
             "loop's body was used\n  keep it in a local, not in a table or a "
             "global");
}

bool face_test_value(Ctx *cx, lua_State *L, int idx, Ref *r) {
  Value *v = trace_value(L, idx);
  if (!v) return false;
  trace_own(cx, v);
  v->consumed = true;
  *r = v->r;
  return true;
}

// Reports whether type t can hold integer v. For u32, negative numbers of 32
// bits are also accepted.
static bool int_fits(DType t, lua_Integer v) {
  int64_t least = t == DT_U32 ? INT32_MIN : dtype_least(t);
  return v >= least && v <= dtype_most(t);
}

// Raises the error that number d does not fit in type t. If the other operand
// is an argument of the kernel, the message names it.
static _Noreturn void number_misfit(lua_State *L, double d, DType t) {
  const Fn *fn = ir_fn(face_ctx(L));
  char text[40];
  snprintf(text, sizeof text, "%g", d);
  if (d != d) strcpy(text, "nan");
  for (int k = 1; fn && k <= 2; k++) {
    const Value *v = trace_value(L, k);
    const Ins *i = v && v->r < fn->ins.n ? ir_get(fn, v->r) : NULL;
    if (i && i->op == OP_ARG)
      face_error(L, ERR_TYPE, "the number %s does not fit in %s, the type of "
                 "the kernel's argument '%s'\n  pass a number with a point for "
                 "this argument, such as 2.0, or convert it with :to(cute.f32)",
                 text, dtype_name(t), ir_str(fn, fn->arg.p[i->imm].name));
  }
  face_error(L, ERR_TYPE, "the number %s does not fit in %s%s", text,
             dtype_name(t), fn ? ": write an integer, or convert the traced "
             "value with :to(cute.f32)" : "");
}

lua_Integer face_check_fits(lua_State *L, int idx, DType t) {
  if (lua_isinteger(L, idx)) {
    lua_Integer v = lua_tointeger(L, idx);
    if (!int_fits(t, v))
      face_error(L, ERR_TYPE, "%lld does not fit in %s", (long long)v,
                 dtype_name(t));
    return v;
  }
  double d = lua_tonumber(L, idx);
  if (d == floor(d) && fabs(d) <= 9e15 && int_fits(t, (lua_Integer)d))
    return (lua_Integer)d;
  number_misfit(L, d, t);
}

uint64_t face_number_bits(lua_State *L, int idx, DType t) {
  if (lua_isboolean(L, idx))
    return dtype_from_double(t, lua_toboolean(L, idx));
  if (dtype_is_float(t)) return dtype_from_double(t, lua_tonumber(L, idx));
  uint64_t v = (uint64_t)face_check_fits(L, idx, t);
  return dtype_bits(t) < 64 ? v & (((uint64_t)1 << dtype_bits(t)) - 1) : v;
}

void face_push_bits(lua_State *L, DType t, uint64_t bits) {
  int unused = 64 - dtype_bits(t);
  switch (dtype_class(t)) {
    case 'P': lua_pushboolean(L, bits != 0); break;
    case 'F': lua_pushnumber(L, dtype_to_double(t, bits)); break;
    case 'I':
      lua_pushinteger(L, (int64_t)(bits << unused) >> unused);
      break;
    default: lua_pushinteger(L, (lua_Integer)(bits << unused >> unused));
  }
}

static Ref number_value(Ctx *cx, lua_State *L, int idx, DType t) {
  if (t == DT_NONE && !lua_isinteger(L, idx)) t = DT_F32;
  if (t == DT_NONE)
    t = int_fits(DT_I32, lua_tointeger(L, idx)) ? DT_I32 : DT_I64;
  if (dtype_is_float(t))
    return ir_float(cx, ir_fn(cx), t, (double)lua_tonumber(L, idx));
  return ir_int(cx, ir_fn(cx), t, face_check_fits(L, idx, t));
}

// Converts r, a value that selects between two plain numbers, to type t:
// returns a value that selects between the converted numbers. idx is the stack
// index of its userdata.
static Ref choice_of(Ctx *cx, lua_State *L, int idx, Ref r, DType t) {
  lua_getiuservalue(L, idx, 1);
  lua_getiuservalue(L, idx, 2);
  Ref a = number_value(cx, L, -2, t), b = number_value(cx, L, -1, t);
  lua_pop(L, 2);
  const Ins *i = ir_get(ir_fn(cx), r);
  return i->op == OP_SEL ? ir_op3(cx, ir_fn(cx), OP_SEL, i->a[0], a, b) : r;
}

Ref face_check_value(Ctx *cx, lua_State *L, int idx, DType t) {
  Ref r;
  if (face_test_value(cx, L, idx, &r)) {
    DType s = ir_type(ir_fn(cx), r);
    if (t != DT_NONE && s != t && t != DT_BOOL && trace_is_choice(L, idx))
      return choice_of(cx, L, lua_absindex(L, idx), r, t);
    if (t != DT_NONE && s != t)
      face_error(L, ERR_TYPE, "a value of type %s is needed, got %s: convert "
                 "it with :to(cute.%s)", dtype_name(t), dtype_name(s),
                 dtype_name(t));
    return r;
  }
  face_tracing(cx, L, "a traced operation");
  if (lua_type(L, idx) == LUA_TNUMBER) return number_value(cx, L, idx, t);
  if (lua_type(L, idx) == LUA_TBOOLEAN && (t == DT_NONE || t == DT_BOOL))
    return ir_int(cx, ir_fn(cx), DT_BOOL, lua_toboolean(L, idx));
  face_argerror(L, idx, "number or traced value");
}

// ---- unsupported operations ----

// Raises an error if the value at idx is undefined.
static void check_defined(lua_State *L, int idx) {
  const Value *v = trace_value(L, idx);
  if (v && v->undefined) trace_own(face_enter(L), v);
}

static int v_concat(lua_State *L) {
  check_defined(L, 1);
  check_defined(L, 2);
  face_error(L, ERR_DYNAMIC, "'..' on a traced value: its number is known only "
             "while the kernel runs\n  print it from the kernel with "
             "cute.printf(...)");
}
static int v_call(lua_State *L) {
  check_defined(L, 1);
  face_error(L, ERR_DYNAMIC, "a traced value cannot be called: it is not a "
             "function");
}

// ---- methods ----

static int v_to(lua_State *L) {
  Ctx *cx = face_enter(L);
  DType t = face_check_dtype(L, 2);
  // Outside kernels, round a plain number to the type.
  if (!ir_fn(cx) && lua_type(L, 1) == LUA_TNUMBER) {
    double d = lua_tonumber(L, 1);
    if (dtype_is_float(t))
      lua_pushnumber(L, dtype_to_double(t, dtype_from_double(t, d)));
    else if (lua_isinteger(L, 1))
      lua_pushinteger(L, face_check_fits(L, 1, t));
    // Round toward zero and clamp, as the GPU does.
    else
      face_push_bits(L, t, dtype_from_double(t, trunc(d)));
    return 1;
  }
  Ref a;
  if (lua_type(L, 1) == LUA_TNUMBER)
    a = number_value(cx, L, 1, dtype_is_float(t) || lua_isinteger(L, 1)
                                 ? t : DT_NONE);
  else
    a = face_check_value(cx, L, 1, DT_NONE);
  trace_push(L, cx, ir_cvt(cx, ir_fn(cx), t, a));
  return 1;
}

static int v_bitcast(lua_State *L) {
  Ctx *cx = face_enter(L);
  DType t = face_check_dtype(L, 2);
  Ref a = face_check_value(cx, L, 1, DT_NONE);
  trace_push(L, cx, ir_bitcast(cx, ir_fn(cx), t, a));
  return 1;
}

// Reports whether tostring was called by Lua's print.
static bool is_printed(lua_State *L) {
  lua_Debug ar;
  return lua_getstack(L, 1, &ar) && lua_getinfo(L, "nS", &ar) &&
         *ar.what == 'C' && ar.name && strcmp(ar.name, "print") == 0;
}

static int v_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Value *v = face_checkudata(L, 1, MT_VALUE);
  const Fn *fn = ir_fn(cx);
  if (fn && v->serial == fn->serial && v->undefined) {
    lua_pushliteral(L, "undefined");
    return 1;
  }
  if (!fn || v->serial != fn->serial || v->r >= fn->ins.n ||
      ir_get(fn, v->r)->birth != v->birth) {
    lua_pushliteral(L, "traced value (of a kernel that is done)");
    return 1;
  }
  const Ins *i = ir_get(fn, v->r);
  int64_t k;
  if (ir_const(fn, v->r, &k)) {
    lua_pushfstring(L, "traced %s %I", dtype_name(i->type), (LUAI_UACINT)k);
    return 1;
  }
  if (i->op == OP_ARG) {
    const char *name = ir_str(fn, fn->arg.p[i->imm].name);
    lua_pushfstring(L, "traced %s (argument ", dtype_name(i->type));
    if (*name) lua_pushfstring(L, "%s)", name);
    else lua_pushfstring(L, "%d)", (int)i->imm + 1);
    lua_concat(L, 2);
    return 1;
  }
  lua_pushfstring(L, "traced %s%s%s%s (line %d)%s", dtype_name(i->type),
                  i->name ? " '" : "", i->name ? ir_str(fn, i->name) : "",
                  i->name ? "'" : "", (int)fn->src.p[i->src].line,
                  is_printed(L) ? ": cute.printf prints it" : "");
  return 1;
}

// Raises the error that an element was indexed like a table, as in m[1][2] = x,
// where m[1] is a number.
static _Noreturn void element_indexed(lua_State *L, const char *what) {
  face_error(L, ERR_ARG, "%s was indexed like a table, by %s\n  write "
             "t[{i, j}] for an element of a tensor, t(i, _) for a part", what,
             face_show(L, 2));
}

// Implements __index of traced values: methods, from upvalue 2, and the field
// dtype (or element_type).
static int v_index(lua_State *L) {
  check_defined(L, 1);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
  const char *k = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  Value *v = trace_value(L, 1);
  if (v && k && (strcmp(k, "dtype") == 0 || strcmp(k, "element_type") == 0)) {
    Ctx *cx = face_ctx(L);
    trace_own(cx, v);
    trace_typed(L);
    face_push_dtype(L, ir_type(ir_fn(cx), v->r));
    return 1;
  }
  if (v && !k) element_indexed(L, "a traced value");
  if (v && k && *k >= 'x' && *k <= 'z' && !k[1])
    face_error(L, ERR_NAME, "a traced value has no field '%s': functions such "
               "as thread_idx() return x, y and z as three results\n  write "
               "local x, y, z = cute.arch.thread_idx()", k);
  if (v && k) {
    Nearest n = nearest_of(k);
    nearest_offer_words(&n, "lt le gt ge eq ne to bitcast dtype");
    face_error(L, ERR_NAME, "a traced value has no field '%s'%s: its fields "
               "are lt le gt ge eq ne to bitcast dtype; functions are called "
               "as in cute.sqrt(x)", k, face_meant(L, &n));
  }
  lua_pushnil(L);
  return 1;
}

static int v_newindex(lua_State *L) {
  check_defined(L, 1);
  if (lua_type(L, 2) == LUA_TSTRING)
    face_error(L, ERR_NAME, "a traced value has no field '%s' to set",
               lua_tostring(L, 2));
  element_indexed(L, "a traced value");
}

// Reports whether code of lua/cute reads the field. This code may test for
// absent fields.
static bool ours(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar)) return true;
  lua_getinfo(L, "S", &ar);
  return *ar.what == 'C' || face_own_source(ar.source);
}

// Implements __index of numbers for fields other than methods. Raises an error,
// because a table of methods alone would return nil.
static int number_index(lua_State *L) {
  if (ours(L)) return 0;
  if (lua_type(L, 2) != LUA_TSTRING) element_indexed(L, "a number");
  // Replace argument 1, the table of methods, by a number, because the message
  // describes argument 1.
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  lua_replace(L, 1);
  face_nofield(L, lua_gettop(L), "");
}

// Implements __index of booleans. Upvalue 1 is the table of methods.
static int boolean_index(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  if (ours(L)) return 0;
  if (lua_type(L, 2) != LUA_TSTRING) element_indexed(L, "a boolean");
  lua_pushvalue(L, lua_upvalueindex(1));
  face_nofield(L, lua_gettop(L), "");
}

static int basic_newindex(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING)
    element_indexed(L, lua_isboolean(L, 1) ? "a boolean" : "a number");
  face_error(L, ERR_NAME, "a %s has no field '%s' to set", luaL_typename(L, 1),
             lua_tostring(L, 2));
}

// ---- facts: the table {lo=, hi=, div=} stands for a Fact ----

static int push_fact(lua_State *L, Fact f) {
  lua_createtable(L, 0, 3);
  face_set_int(L, "lo", f.lo);
  face_set_int(L, "hi", f.hi);
  face_set_int(L, "div", f.div);
  return 1;
}

static Fact check_fact(lua_State *L, int idx) {
  static const char *const names[] = {"lo", "hi", "div"};
  int64_t v[3];
  face_checktype(L, idx, LUA_TTABLE);
  for (int k = 0; k < 3; k++) {
    lua_getfield(L, idx, names[k]);
    v[k] = face_checkint(L, -1);
    lua_pop(L, 1);
  }
  return (Fact){v[0], v[1], v[2]};
}

// fact(x) -> the known bounds and divisor of an integer, traced or not
static int l_fact(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (lua_isinteger(L, 1))
    return push_fact(L, fact_const(lua_tointeger(L, 1)));
  Value *v = face_checkudata(L, 1, MT_VALUE);
  trace_own(cx, v);
  return push_fact(L, ir_fact(ir_fn(cx), v->r));
}

static int l_fact_join(lua_State *L) {
  return push_fact(L, fact_join(check_fact(L, 1), check_fact(L, 2)));
}

static int l_fact_widen(lua_State *L) {
  return push_fact(L, fact_widen(check_fact(L, 1), check_fact(L, 2)));
}

static int l_fact_within(lua_State *L) {
  lua_pushboolean(L, fact_within(check_fact(L, 1), check_fact(L, 2)));
  return 1;
}

// assume(v, lo, hi, div[, narrow]): records that lo <= v <= hi and that div
// divides v. claim(v, lo, hi, div) also makes the simulator check this.
static int l_claim(lua_State *L) {
  Ctx *cx = face_enter(L);
  Value *v = face_checkudata(L, 1, MT_VALUE);
  trace_own(cx, v);
  ir_claim(cx, ir_fn(cx), (Claim){.v = v->r, .lo = face_checkint(L, 2),
                                  .hi = face_checkint(L, 3),
                                  .div = face_checkint(L, 4)});
  return 0;
}

// name_place(name, begins): marks the begin (if `begins`) or the end of a named
// range of the kernel.
static int l_name_place(lua_State *L) {
  Ctx *cx = face_enter(L);
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  uint32_t note = ir_text(cx, ir_fn(cx), s, n);
  ir_claim(cx, ir_fn(cx), (Claim){.note = note, .lo = lua_toboolean(L, 2)});
  return 0;
}

static int l_assume(lua_State *L) {
  Ctx *cx = face_enter(L);
  Value *v = face_checkudata(L, 1, MT_VALUE);
  trace_own(cx, v);
  Fact f = {face_checkint(L, 2), face_checkint(L, 3),
            face_checkint(L, 4)};
  if (f.lo > f.hi || f.div < 0)
    face_error(L, ERR_ARG, "assume: lo = %lld, hi = %lld, div = %lld; lo <= hi "
               "and div >= 0 are needed", (long long)f.lo, (long long)f.hi,
               (long long)f.div);
  if (lua_toboolean(L, 5)) ir_narrow(ir_fn(cx), v->r, f);
  else ir_assume(cx, ir_fn(cx), v->r, f);
  lua_pushvalue(L, 1);
  return 1;
}

// ---- undefined values ----

// is_undefined(x) -> bool
static int l_is_undefined(lua_State *L) {
  const Value *v = trace_value(L, 1);
  lua_pushboolean(L, v && v->undefined);
  return 1;
}

// use(value): raises an error if the value is undefined.
static int l_use(lua_State *L) {
  check_defined(L, 1);
  return 0;
}

// ---- module ----

static const luaL_Reg methods[] = {
  {"to(dtype)", v_to}, {"bitcast(dtype)", v_bitcast}, {NULL, NULL}};

static const luaL_Reg events[] = {
  {"__concat", v_concat}, {"__call", v_call}, {"__tostring", v_tostring},
  {"__newindex", v_newindex},
  {NULL, NULL}};

// Pops a value of a basic type, such as a number, and above it the value for
// __index in the metatable of the type, which is created if necessary. Existing
// entries are not changed.
static void basic_type(lua_State *L) {
  if (!lua_getmetatable(L, -2)) lua_newtable(L);
  if (lua_getfield(L, -1, "__index") == LUA_TNIL) {
    lua_pushvalue(L, -3);
    lua_setfield(L, -3, "__index");
    lua_pushcfunction(L, basic_newindex);
    lua_setfield(L, -3, "__newindex");
  }
  lua_pop(L, 1);
  lua_setmetatable(L, -3);
  lua_pop(L, 2);
}

void vallib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"fact", l_fact}, {"assume", l_assume},
    {"claim", l_claim}, {"name_place", l_name_place},
    {"fact_join", l_fact_join},
    {"fact_widen", l_fact_widen}, {"fact_within", l_fact_within},
    {"is_undefined", l_is_undefined},
    {"use", l_use},
    {NULL, NULL}};
  face_setfuncs(L, funcs);
  int top = lua_gettop(L);
  lua_newtable(L);
  face_set_str(L, "__name", MT_VALUE);
  face_setfuncs(L, methods);
  face_newtype(L, MT_VALUE, events);
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  lua_pushlightuserdata(L, lua_touserdata(L, -1));
  lua_pushvalue(L, top + 1);
  lua_pushcclosure(L, v_index, 2);
  lua_setfield(L, top + 2, "__index");
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, number_index);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, top + 1);
  lua_pushinteger(L, 0);
  lua_pushvalue(L, top + 1);
  basic_type(L);
  lua_pushboolean(L, 0);
  lua_pushvalue(L, top + 1);
  lua_pushcclosure(L, boolean_index, 1);
  basic_type(L);
  lua_settop(L, top + 1);
  lua_setfield(L, top, "value_methods");
}
// SPDX-License-Identifier: MIT
