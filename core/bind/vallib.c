// Traced scalars: operators, comparisons, conversions. Lua numbers and
// booleans answer to the same methods, since a local may hold a number in one
// pass and a traced value in the next.
#include "bind/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bind/veclib.h"
#include "ir/fold.h"

// ---- making and taking ----

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

Value *trace_push(lua_State *L, Ctx *cx, Ref r) {
  Value *v = lua_newuserdatauv(L, sizeof *v, 0);
  *v = (Value){.serial = ir_fn(cx)->serial,
               .birth = ir_get(ir_fn(cx), r)->birth,
               .r = r};
  luaL_setmetatable(L, MT_VALUE);
  if (ir_type(ir_fn(cx), r) == DT_BOOL) {
    lua_pushvalue(L, -1);
    trace_watch(L);
  }
  return v;
}

void face_push_value(lua_State *L, Ref r) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  Ctx *cx = lua_touserdata(L, -1);
  lua_pop(L, 1);
  trace_push(L, cx, r);
}

void trace_own(Ctx *cx, const Value *v) {
  const Fn *fn = ir_fn(cx);
  if (!fn)
    ctx_fail(cx, ERR_FOREIGN, "a traced value was used outside its kernel\n"
             "  it stands for a number that exists only while the kernel "
             "runs");
  if (v->serial != fn->serial)
    ctx_fail(cx, ERR_FOREIGN, "a value traced in another kernel was used in "
             "'%s'", ir_str(fn, fn->name));
  if (v->r >= fn->ins.n || ir_get(fn, v->r)->birth != v->birth)
    ctx_fail(cx, ERR_REGION, "a value is left over from an earlier pass over "
             "a loop's body\n  keep it in a local, not in a table or a "
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

Fn *face_tracing(Ctx *cx, lua_State *L, const char *what) {
  if (!ir_fn(cx))
    face_error(L, ERR_NOTRACE, "%s is only meaningful inside a kernel", what);
  return ir_fn(cx);
}

static bool int_fits(DType t, lua_Integer v) {
  switch ((int)t) {
    case DT_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case DT_U8: return v >= 0 && v <= UINT8_MAX;
    case DT_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case DT_U16: return v >= 0 && v <= UINT16_MAX;
    case DT_I32: return v >= INT32_MIN && v <= INT32_MAX;
    case DT_U32: return v >= INT32_MIN && v <= UINT32_MAX;
    case DT_I4: return v >= -8 && v <= 7;
    case DT_U4: return v >= 0 && v <= 15;
    case DT_BOOL: case DT_B1: return v == 0 || v == 1;
    default: return true;
  }
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
  char text[40];
  snprintf(text, sizeof text, "%g", d);
  face_error(L, ERR_TYPE, "the number %s does not fit in %s%s",
             d != d ? "nan" : text, dtype_name(t), ir_fn(face_ctx(L))
             ? ": convert the traced value with :to(cute.f32)" : "");
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

Ref face_check_value(Ctx *cx, lua_State *L, int idx, DType t) {
  Ref r;
  if (face_test_value(cx, L, idx, &r)) {
    DType s = ir_type(ir_fn(cx), r);
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

// ---- operators ----

// Brings operands 1 and 2 to one type.
static DType unify(Ctx *cx, lua_State *L, Ref *a, Ref *b) {
  Value *va = trace_value(L, 1), *vb = trace_value(L, 2);
  if (va && vb) {
    *a = face_check_value(cx, L, 1, DT_NONE);
    *b = face_check_value(cx, L, 2, DT_NONE);
    DType t = dtype_common(ir_type(ir_fn(cx), *a), ir_type(ir_fn(cx), *b));
    *a = ir_cvt(cx, ir_fn(cx), t, *a);
    *b = ir_cvt(cx, ir_fn(cx), t, *b);
    return t;
  }
  Ref *v = va ? a : b, *n = va ? b : a;
  *v = face_check_value(cx, L, va ? 1 : 2, DT_NONE);
  DType t = ir_type(ir_fn(cx), *v);
  *n = face_check_value(cx, L, va ? 2 : 1, t);
  return t;
}

// A vector operand or a basis takes the operation over, or a table that knows
// it.
static bool vector_takes(lua_State *L, const char *event) {
  for (int i = 1; i <= 2; i++) {
    bool vector = lua_isuserdata(L, i) && (luaL_testudata(L, i, MT_VECTOR) ||
                                           luaL_testudata(L, i, MT_CONST));
    if (!vector && !lua_istable(L, i)) continue;
    if (luaL_getmetafield(L, i, event) == LUA_TNIL) return false;
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return true;
  }
  return false;
}

static int arith(lua_State *L, Op op, const char *event) {
  if (vector_takes(L, event)) return 1;
  Ctx *cx = face_enter(L);
  Ref a, b;
  DType t = unify(cx, L, &a, &b);
  bool bits = op == OP_AND || op == OP_OR || op == OP_XOR;
  if (bits && dtype_is_float(t))
    face_error(L, ERR_TYPE, "%s of %s: integers or booleans are needed",
               op_name(op), dtype_name(t));
  if (!bits && t == DT_BOOL)
    face_error(L, ERR_TYPE, "%s of booleans: convert with :to(cute.i32)",
               op_name(op));
  if ((op == OP_SHL || op == OP_SHR) && !dtype_is_int(t))
    face_error(L, ERR_TYPE, "shift of %s", dtype_name(t));
  int64_t n;
  if ((op == OP_DIV || op == OP_MOD) && ir_const(ir_fn(cx), b, &n) && n == 0)
    face_error(L, ERR_ARG, "an integer %s 0", op == OP_DIV ? "//" : "%");
  trace_push(L, cx, ir_op2(cx, ir_fn(cx), op, a, b));
  return 1;
}

#define ARITH(name, op, event) \
  static int name(lua_State *L) { return arith(L, op, event); }
ARITH(v_add, OP_ADD, "__add")
ARITH(v_sub, OP_SUB, "__sub")
ARITH(v_mul, OP_MUL, "__mul")
ARITH(v_idiv, OP_DIV, "__idiv")
ARITH(v_mod, OP_MOD, "__mod")
ARITH(v_band, OP_AND, "__band")
ARITH(v_bor, OP_OR, "__bor")
ARITH(v_bxor, OP_XOR, "__bxor")
ARITH(v_shl, OP_SHL, "__shl")
ARITH(v_shr, OP_SHR, "__shr")

// Operands of `/` and `^`, which give floats, as in Lua.
static void unify_floats(Ctx *cx, lua_State *L, Ref *a, Ref *b) {
  if (dtype_is_float(unify(cx, L, a, b))) return;
  *a = ir_cvt(cx, ir_fn(cx), DT_F32, *a);
  *b = ir_cvt(cx, ir_fn(cx), DT_F32, *b);
}

static int v_div(lua_State *L) {
  if (vector_takes(L, "__div")) return 1;
  Ctx *cx = face_enter(L);
  Ref a, b;
  unify_floats(cx, L, &a, &b);
  trace_push(L, cx, ir_op2(cx, ir_fn(cx), OP_DIV, a, b));
  return 1;
}

static int v_pow(lua_State *L) {
  if (vector_takes(L, "__pow")) return 1;
  Ctx *cx = face_enter(L);
  Ref a, b;
  unify_floats(cx, L, &a, &b);
  trace_push(L, cx, ir_math(cx, ir_fn(cx), MF_POW, a, b));
  return 1;
}

static int v_unm(lua_State *L) {
  Ctx *cx = face_enter(L);
  Ref a = face_check_value(cx, L, 1, DT_NONE);
  trace_push(L, cx, ir_op1(cx, ir_fn(cx), OP_NEG, a));
  return 1;
}

static int v_bnot(lua_State *L) {
  Ctx *cx = face_enter(L);
  Ref a = face_check_value(cx, L, 1, DT_NONE);
  if (dtype_is_float(ir_type(ir_fn(cx), a)))
    face_error(L, ERR_TYPE, "'~' of %s", dtype_name(ir_type(ir_fn(cx), a)));
  trace_push(L, cx, ir_op1(cx, ir_fn(cx), OP_NOT, a));
  return 1;
}

// ---- comparisons ----

static int host_compare(lua_State *L, int op, bool swap, bool negate) {
  int a = swap ? 2 : 1, b = swap ? 1 : 2;
  lua_pushboolean(L, lua_compare(L, a, b, op) != negate);
  return 1;
}

static int compare(lua_State *L, Op op, bool swap, const char *name) {
  if (vector_takes(L, name)) return 1;
  if (!trace_value(L, 1) && !trace_value(L, 2)) {
    face_checkany(L, 2);
    if (op != OP_EQ && op != OP_NE) {
      face_checknum(L, 1);
      face_checknum(L, 2);
    }
    int lop = op == OP_LT ? LUA_OPLT : op == OP_LE ? LUA_OPLE : LUA_OPEQ;
    return host_compare(L, lop, swap, op == OP_NE);
  }
  Ctx *cx = face_enter(L);
  Ref a, b;
  unify(cx, L, &a, &b);
  trace_push(L, cx, ir_op2(cx, ir_fn(cx), op, swap ? b : a, swap ? a : b));
  return 1;
}

#define COMPARE(name, op, swap) \
  static int v_##name(lua_State *L) { return compare(L, op, swap, #name); }
COMPARISONS(COMPARE)

static _Noreturn void lua_compare_error(lua_State *L, const char *sign,
                                        const char *method) {
  lua_Debug ar;
  if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sn", &ar) && ar.name &&
      strcmp(ar.what, "C") == 0) {
    bool ours = strcmp(ar.name, "min") == 0 || strcmp(ar.name, "max") == 0;
    face_error(L, ERR_DYNAMIC, "'%s' on a traced value: Lua would need it now"
               "\n  %s%s%s", ar.name, ours ? "use cute." : "compare with "
               "methods such as a:lt(b)", ours ? ar.name : "",
               ours ? "(...), or methods such as a:lt(b)" : "");
  }
  face_error(L, ERR_DYNAMIC, "'%s' on a traced value: Lua would need its "
             "answer now\n  write a:%s(b), and cute.when(...) to branch on it",
             sign, method);
}
static int v_lualt(lua_State *L) { lua_compare_error(L, "<", "lt"); }
static int v_luale(lua_State *L) { lua_compare_error(L, "<=", "le"); }
static int v_luaeq(lua_State *L) {
  Value *a = trace_value(L, 1), *b = trace_value(L, 2);
  if (a && b && a->serial == b->serial && a->r == b->r &&
      a->birth == b->birth) {
    lua_pushboolean(L, 1);
    return 1;
  }
  bool vector = luaL_testudata(L, 1, MT_VECTOR) ||
                luaL_testudata(L, 2, MT_VECTOR);
  if ((a && b) || vector) lua_compare_error(L, "==", "eq");
  lua_pushboolean(L, 0);  // a layout, say: it is none
  return 1;
}
static int v_concat(lua_State *L) {
  face_error(L, ERR_DYNAMIC, "'..' on a traced value: it has no digits yet\n"
             "  print it from the kernel with cute.printf(...)");
}
static int v_call(lua_State *L) {
  face_error(L, ERR_DYNAMIC, "a traced value was called like a function");
}

// ---- methods ----

static int v_to(lua_State *L) {
  Ctx *cx = face_enter(L);
  DType t = face_check_dtype(L, 2);
  if (!ir_fn(cx) && lua_type(L, 1) == LUA_TNUMBER) {  // on the host: round
    double d = lua_tonumber(L, 1);
    if (dtype_is_float(t))
      lua_pushnumber(L, dtype_to_double(t, dtype_from_double(t, d)));
    else if (lua_isinteger(L, 1))
      lua_pushinteger(L, face_check_fits(L, 1, t));
    else  // toward zero, and to the nearest end, as on the device
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

int vallib_where(lua_State *L) {
  face_checkany(L, 3);
  if (lua_type(L, 1) == LUA_TBOOLEAN) {
    lua_pushvalue(L, lua_toboolean(L, 1) ? 2 : 3);
    return 1;
  }
  Ctx *cx = face_enter(L);
  Ref c = face_check_value(cx, L, 1, DT_BOOL), a, b;
  lua_remove(L, 1);
  if (trace_value(L, 1) || trace_value(L, 2)) {
    unify(cx, L, &a, &b);
  } else {
    bool f = lua_isnumber(L, 1) && lua_isnumber(L, 2) &&
             !(lua_isinteger(L, 1) && lua_isinteger(L, 2));
    a = face_check_value(cx, L, 1, f ? DT_F32 : DT_NONE);
    b = face_check_value(cx, L, 2, ir_type(ir_fn(cx), a));
  }
  trace_push(L, cx, ir_op3(cx, ir_fn(cx), OP_SEL, c, a, b));
  return 1;
}

static int v_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Value *v = face_checkudata(L, 1, MT_VALUE);
  const Fn *fn = ir_fn(cx);
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
  lua_pushfstring(L, "traced %s%s%s%s (line %d)", dtype_name(i->type),
                  i->name ? " '" : "", i->name ? ir_str(fn, i->name) : "",
                  i->name ? "'" : "", (int)fn->src.p[i->src].line);
  return 1;
}

// dtype (also element_type) is a field; methods come from upvalue 2.
static int v_index(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
  const char *k = lua_tostring(L, 2);
  Value *v = trace_value(L, 1);
  if (v && k && (strcmp(k, "dtype") == 0 || strcmp(k, "element_type") == 0)) {
    Ctx *cx = face_ctx(L);
    trace_own(cx, v);
    face_push_dtype(L, ir_type(ir_fn(cx), v->r));
    return 1;
  }
  if (v && lua_isinteger(L, 2))
    face_error(L, ERR_DYNAMIC, "a traced value was indexed like a table");
  if (v && k)
    face_error(L, ERR_NAME, "a traced value has no '%s': it has lt le gt ge "
               "eq ne to bitcast dtype, and functions such as cute.sqrt(x)",
               k);
  lua_pushnil(L);
  return 1;
}

// ---- facts: tables {lo=, hi=, div=}, as Fact ----

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

// fact(x) -> what is known of an integer, traced or not.
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

// assume(v, lo, hi, div): narrows what is known of v.
static int l_assume(lua_State *L) {
  Ctx *cx = face_enter(L);
  Value *v = face_checkudata(L, 1, MT_VALUE);
  trace_own(cx, v);
  Fact f = {face_checkint(L, 2), face_checkint(L, 3),
            face_checkint(L, 4)};
  if (f.lo > f.hi || f.div < 0)
    face_error(L, ERR_ARG, "assume: %lld <= x <= %lld, divisible by %lld",
               (long long)f.lo, (long long)f.hi, (long long)f.div);
  ir_assume(ir_fn(cx), v->r, f);
  lua_pushvalue(L, 1);
  return 1;
}

// ---- opening ----

static const luaL_Reg methods[] = {
  {"lt(other)", v_lt}, {"le(other)", v_le}, {"gt(other)", v_gt},
  {"ge(other)", v_ge}, {"eq(other)", v_eq}, {"ne(other)", v_ne},
  {"to(dtype)", v_to}, {"bitcast(dtype)", v_bitcast}, {NULL, NULL}};

static const luaL_Reg events[] = {
  {"__add", v_add}, {"__sub", v_sub}, {"__mul", v_mul}, {"__div", v_div},
  {"__idiv", v_idiv}, {"__mod", v_mod}, {"__pow", v_pow}, {"__unm", v_unm},
  {"__band", v_band}, {"__bor", v_bor}, {"__bxor", v_bxor},
  {"__shl", v_shl}, {"__shr", v_shr}, {"__bnot", v_bnot},
  {"__lt", v_lualt}, {"__le", v_luale}, {"__eq", v_luaeq},
  {"__concat", v_concat}, {"__call", v_call}, {"__tostring", v_tostring},
  {NULL, NULL}};

// Booleans of the host know & | ~ too.
static int b_and(lua_State *L) {
  if (trace_value(L, 1) || trace_value(L, 2)) return v_band(L);
  lua_pushboolean(L, lua_toboolean(L, 1) && lua_toboolean(L, 2));
  return 1;
}
static int b_or(lua_State *L) {
  if (trace_value(L, 1) || trace_value(L, 2)) return v_bor(L);
  lua_pushboolean(L, lua_toboolean(L, 1) || lua_toboolean(L, 2));
  return 1;
}
static int b_xor(lua_State *L) {
  if (trace_value(L, 1) || trace_value(L, 2)) return v_bxor(L);
  lua_pushboolean(L, lua_toboolean(L, 1) != lua_toboolean(L, 2));
  return 1;
}
static int b_not(lua_State *L) {
  lua_pushboolean(L, !lua_toboolean(L, 1));
  return 1;
}

// Adds __index = methods (table at idx) to the metatable of the type of the
// value on top, making one if it has none; keeps what is there.
static void basic_type(lua_State *L, int methods_at, const luaL_Reg *regs) {
  if (!lua_getmetatable(L, -1)) lua_newtable(L);
  if (regs) face_setfuncs(L, regs);
  if (lua_getfield(L, -1, "__index") == LUA_TNIL) {
    lua_pushvalue(L, methods_at);
    lua_setfield(L, -3, "__index");
  }
  lua_pop(L, 1);
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

void vallib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"lt(a, b)", v_lt}, {"le(a, b)", v_le}, {"gt(a, b)", v_gt},
    {"ge(a, b)", v_ge}, {"eq(a, b)", v_eq}, {"ne(a, b)", v_ne},
    {"fact", l_fact}, {"assume", l_assume}, {"fact_join", l_fact_join},
    {"fact_widen", l_fact_widen}, {"fact_within", l_fact_within},
    {NULL, NULL}};
  static const luaL_Reg booleans[] = {
    {"__band", b_and}, {"__bor", b_or}, {"__bxor", b_xor}, {"__bnot", b_not},
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
  lua_pushinteger(L, 0);
  basic_type(L, top + 1, NULL);
  lua_pushboolean(L, 0);
  basic_type(L, top + 1, booleans);
  lua_settop(L, top + 1);
  lua_setfield(L, top, "value_methods");
}
