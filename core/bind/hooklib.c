// The debug hook of a trace. At each line and return, it names traced values
// after the local variables that hold them. It keeps its findings about a
// function for the function's next line. At each bytecode instruction, it
// detects `==`, `~=` and `t[k]` with traced values, for which Lua calls no
// metamethod. These checks examine only operands, not names or source text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/fold.h"
#include "bind/interrupt.h"
#include "bind/trace.h"

// An entry of the cache of TRACE_STATE.truth: whether Lua may test a traced
// value. It is identified by two bytecode instructions: the test, and the
// instruction that created the value. `tested` and `made` are the addresses
// after them.
typedef struct Sound {
  const void *tested, *made;
  bool ok;
} Sound;
#define SOUND 256  // number of results that are kept

// State of the hook for the user function that ran last, as a userdata in the
// registry. Uservalue 1 has, for each line of the function's file, the list of
// names that the line assigns. Uservalue 2 has the recorded writes to tables
// (table_writes.c).
typedef struct Hook {
  Ctx *cx;
  const void *func;
  const void *skip;  // function of cutelua that ran last; its lines are ignored
  int named;         // number of locals that are already named
  int line;          // the current line of the running function
  bool counts;       // whether the hook examines Lua instructions
  bool notes;        // whether to record writes to tables
  bool records;  // whether to call TRACE_STATE.record before each source line
  bool undefined;    // whether TRACE_STATE.undefined has entries
  int born;          // register that will receive the table being created
  Sound sound[SOUND];  // indexed by a hash of both addresses
  Writers writers;
  Readers readers;
} Hook;

// maximum number of fields of a table whose fields get names
#define MAX_FIELDS 64

// The address of this variable is the key of the Hook in the registry.
static const char hook_key = 0;

// Names the IR variable of the cute.var on top (a table with its value at index
// 1).
static void name_var(lua_State *L, Ctx *cx, const char *name) {
  lua_rawgeti(L, -1, 1);
  Value *v = trace_value(L, -1);
  lua_pop(L, 1);
  Fn *fn = ir_fn(cx);
  if (!v || v->serial != fn->serial || v->r >= fn->ins.n) return;
  const Ins *i = ir_get(fn, v->r);
  if (i->birth == v->birth && i->op == OP_VAR) ir_name(cx, fn, v->r, name);
}

// Gives the value on top of the stack the name of the local variable that holds
// it. The value is a traced value, or a tensor, whose registers or shared
// memory get the name.
static void name_local(lua_State *L, Ctx *cx, const char *name) {
  Fn *fn = ir_fn(cx);
  Value *v = trace_value(L, -1);
  if (v) {
    if (v->serial == fn->serial && v->r < fn->ins.n &&
        ir_get(fn, v->r)->birth == v->birth)
      ir_name(cx, fn, v->r, name);
    return;
  }
  const Tensor *t = face_live_tensor(L, -1);
  if (t && t->mem) ir_name(cx, fn, t->mem, name);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Names the tensors in the fields of the plain table on top: A.smem becomes
// A_smem. If several fields have the same memory object, the alphabetically
// first field names it. Fields are sorted, because Lua's order differs between
// processes.
static void name_fields(lua_State *L, Ctx *cx, const char *name) {
  const char *keys[MAX_FIELDS];
  char full[80];
  int fields = 0, n = 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (++fields > MAX_FIELDS) {
      lua_pop(L, 2);
      return;
    }
    if (lua_isuserdata(L, -1) && lua_type(L, -2) == LUA_TSTRING)
      keys[n++] = lua_tostring(L, -2);  // the table keeps the string alive
  }
  if (n) qsort(keys, (size_t)n, sizeof *keys, by_text);
  for (int k = 0; k < n; k++) {
    lua_pushstring(L, keys[k]);
    lua_rawget(L, -2);
    const Tensor *t = face_live_tensor(L, -1);
    snprintf(full, sizeof full, "%s_%s", name, keys[k]);
    if (t && t->mem) ir_name(cx, ir_fn(cx), t->mem, full);
    lua_pop(L, 1);
  }
}

// Gives the mbarriers of the array (cute.pipe.sync) on top a name.
static void name_array(lua_State *L, Ctx *cx, const char *name) {
  lua_pushliteral(L, "storage");
  lua_rawget(L, -2);
  const Tensor *t = lua_isuserdata(L, -1) ? face_live_tensor(L, -1) : NULL;
  if (t && t->mem) ir_name(cx, ir_fn(cx), t->mem, name);
  lua_pop(L, 1);
}

// Names the mbarriers in the arrays of the pipeline on top: pipe.full becomes
// pipe_full.
static void name_arrays(lua_State *L, Ctx *cx, const char *name) {
  static const struct { const char *field, *suffix; } parts[] = {
    {"full", "_full"}, {"empty", "_empty"}, {"array", ""}};
  char full[80];
  name_array(L, cx, name);
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    snprintf(full, sizeof full, "%s%s", name, parts[k].suffix);
    lua_pushstring(L, parts[k].field);
    lua_rawget(L, -2);
    if (lua_istable(L, -1)) name_array(L, cx, full);
    lua_pop(L, 1);
  }
}

static void name_table(lua_State *L, Ctx *cx, const char *name) {
  if (luaL_getmetafield(L, -1, "__index") == LUA_TNIL) {
    name_fields(L, cx, name);
    return;
  }
  lua_pop(L, 1);
  name_var(L, cx, name);
  name_arrays(L, cx, name);
}

// Pushes the value of a local, upvalue or global of the running function,
// without metamethods. Returns false if there is no such variable.
static bool push_variable(lua_State *L, lua_Debug *ar, const char *name) {
  const char *s;
  int found = 0;
  for (int n = 1; (s = lua_getlocal(L, ar, n)); n++) {
    // of several locals with this name, the last one is the innermost
    if (strcmp(s, name) == 0) found = n;
    lua_pop(L, 1);
  }
  if (found) return lua_getlocal(L, ar, found) != NULL;
  lua_getinfo(L, "f", ar);
  for (int n = 1; (s = lua_getupvalue(L, -1, n)); n++) {
    if (strcmp(s, name) == 0) {
      lua_remove(L, -2);
      return true;
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  lua_pushglobaltable(L);
  lua_pushstring(L, name);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}

// ---- operations without metamethods ----

// Reports whether the value at idx is a traced scalar, a traced vector, or a
// cute.var (a table with a traced scalar at 1).
static bool is_traced(lua_State *L, int idx) {
  if (trace_value(L, idx) || luaL_testudata(L, idx, MT_VECTOR)) return true;
  if (!lua_istable(L, idx) || !luaL_getmetafield(L, idx, "__index"))
    return false;
  lua_rawgeti(L, idx, 1);
  bool var = trace_value(L, -1) != NULL;
  lua_pop(L, 2);
  return var;
}

// Returns a text such as "the traced value 'k'" for the value at idx. It
// contains `name`, the name of a local. If `name` is NULL, it contains the
// value's name in the IR.
static const char *say_traced(lua_State *L, Ctx *cx, const char *name,
                              int idx) {
  const Value *v = trace_value(L, idx);
  const Fn *fn = ir_fn(cx);
  if (!name && v && v->serial == fn->serial && v->r < fn->ins.n &&
      ir_get(fn, v->r)->name)
    name = ir_str(fn, ir_get(fn, v->r)->name);
  return name ? lua_pushfstring(L, "the traced value '%s'", name)
              : lua_pushliteral(L, "a traced value");
}

// Reports whether the running function belongs to a user's script. Sets the
// source and the line in ar.
static bool of_user(lua_State *L, lua_Debug *ar) {
  lua_getinfo(L, "Sl", ar);
  return !face_own_source(ar->source);
}

// Raises the message on top as an error, at the line of the running function if
// it is known.
static _Noreturn void raise_here(lua_State *L, const lua_Debug *ar,
                                 ErrKind kind) {
  const char *text = lua_tostring(L, -1);
  if (ar->currentline > 0)
    face_error_at(L, ar->source, ar->currentline, kind, "%s", text);
  face_error(L, kind, "%s", text);
}

static _Noreturn void compare_error(lua_State *L, Ctx *cx, lua_Debug *ar,
                                    const char *name, int idx) {
  const char *what = say_traced(L, cx, name, idx);
  if (!name) name = "a";
  lua_pushfstring(L, "'==' or '~=' beside %s is always false or true in Lua\n"
                  "  write %s:eq(x) or %s:ne(x), and cute.when(...) to branch "
                  "on it", what, name, name);
  raise_here(L, ar, ERR_DYNAMIC);
}

// Pushes constant i of the running function.
static void push_constant(lua_State *L, lua_Debug *ar, int i) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "constant");
  lua_getinfo(L, "f", ar);
  lua_pushinteger(L, i);
  lua_call(L, 2, 1);
  lua_remove(L, -2);
}

// Reports whether a comparison by `==` of a traced value with the value at idx
// seems intended for the GPU. Returns false for nil, a string or a layout: such
// a comparison is false, as in Lua. For two userdata or two tables, Lua calls
// __eq.
static bool is_for_device(lua_State *L, int traced, int idx) {
  int t = lua_type(L, idx);
  return t == LUA_TNUMBER || t == LUA_TBOOLEAN ||
         (t != lua_type(L, traced) && is_traced(L, idx));
}

// Raises an error if the next instruction is `==` or `~=` of a traced value.
static void check_compared(lua_State *L, Ctx *cx, lua_Debug *ar, VmIns in) {
  const char *name = bytecode_register(L, ar, in.a);
  int traced = lua_gettop(L), other = traced + 1;
  if (in.op == VM_EQ) {
    const char *name_b = bytecode_register(L, ar, in.b);
    if (!is_traced(L, traced)) {
      name = name_b;
      traced = other;
      other--;
    }
  }
  if (!is_traced(L, traced) || !of_user(L, ar)) return;
  if (in.op == VM_EQK) push_constant(L, ar, in.b);
  if (in.op == VM_EQI || is_for_device(L, traced, other))
    compare_error(L, cx, ar, name, traced);
}

// Raises an error if the next instruction indexes a plain table with a traced
// value. `table` and `key` are the numbers of their registers.
static void check_key(lua_State *L, Ctx *cx, lua_Debug *ar, int table,
                      int key) {
  const char *name = bytecode_register(L, ar, key);
  int at = lua_gettop(L);
  if (!is_traced(L, at)) return;
  const Value *v = trace_value(L, at);
  if (v && v->undefined) trace_own(cx, v);
  const char *base = bytecode_register(L, ar, table);
  if (!lua_istable(L, -1) || lua_getmetatable(L, -1) || !of_user(L, ar))
    return;
  const char *what = say_traced(L, cx, name, at);
  lua_pushfstring(L, "%s is a key of the plain table%s%s%s, which has no entry "
                  "for it\n  use a tensor, or cute.where(%s:eq(i), x, y)",
                  what, base ? " '" : "", base ? base : "",
                  base ? "'" : "", name ? name : "k");
  raise_here(L, ar, ERR_DYNAMIC);
}

// Checks an outer call that receives all results of an inner call as its last
// arguments, from register `first` on. Raises an error if the called function
// would ignore some of these results (TRACE_STATE.surplus). The function of the
// inner call is on top of the stack.
static void check_spread(lua_State *L, lua_Debug *ar, int first) {
  VmIns next = bytecode_behind(ar);
  if ((next.op != VM_CALL && next.op != VM_TAILCALL) || next.b) return;
  int inner = lua_gettop(L);
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "surplus");
  bytecode_register(L, ar, next.a);
  lua_pushinteger(L, first - next.a - 1);
  lua_pushvalue(L, inner);
  lua_call(L, 3, 1);
  if (!lua_isnil(L, -1) && of_user(L, ar)) raise_here(L, ar, ERR_ARG);
}

// Handles an inner call whose results are all passed to an outer call as its
// last arguments. The outer call is in the same function or, if the inner call
// is a tail call, in this function's caller.
static void see_spread(lua_State *L, lua_Debug *ar, VmIns in) {
  lua_Debug up;
  if (in.op == VM_CALL && in.c) return;
  bytecode_register(L, ar, in.a);
  if (in.op == VM_CALL) {
    check_spread(L, ar, in.a);
    return;
  }
  if (!lua_getstack(L, 1, &up)) return;
  lua_getinfo(L, "S", &up);
  if (*up.what == 'C') return;
  in = bytecode_at(&up);
  if (in.op == VM_CALL && !in.c) check_spread(L, &up, in.a);
}

static void hooklib_event(lua_State *L, lua_Debug *ar);

static int hook_mask(const Hook *h) {
  return LUA_MASKLINE | LUA_MASKRET | (h->counts ? LUA_MASKCOUNT : 0);
}

// The hook after an instruction that creates a table. Before the next
// instruction, records the new table and restores the usual hook.
static void hook_born(lua_State *L, lua_Debug *ar) {
  // If a line event comes first, the register does not contain the table yet.
  if (ar->event != LUA_HOOKCOUNT) {
    hooklib_event(L, ar);
    return;
  }
  int top = lua_gettop(L);
  luaL_checkstack(L, LUA_MINSTACK, "hook");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  const Hook *h = lua_touserdata(L, -1);
  interrupt_sethook(L, hooklib_event, hook_mask(h), 1);
  if (h->notes) {
    lua_getiuservalue(L, -1, 2);
    table_writes_born(L, ar, h->born, top + 2);
  }
  lua_settop(L, top);
  hooklib_event(L, ar);
}

// Reports whether Lua may test the traced value on top, as TRACE_STATE.truth
// decides. If not, leaves an error message on top. The result is cached for the
// pair of the test and the instruction that created the value, because loops
// repeat such pairs.
static bool is_sound(lua_State *L, Hook *h, lua_Debug *ar, int reg,
                     const Value *v) {
  const void *tested = bytecode_place(ar);
  Sound *s = &h->sound[((uintptr_t)tested / 4 + (uintptr_t)v->made / 4 * 31) %
                       SOUND];
  if (s->tested == tested && s->made == v->made) return s->ok;
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "truth");
  lua_pushinteger(L, reg);
  lua_pushvalue(L, -3);
  lua_call(L, 2, 1);
  *s = (Sound){tested, v->made, lua_isnil(L, -1)};
  return s->ok;
}

// Handles a test of a register, as by `if`. Raises an error for a traced
// number, which is always true in Lua. Records the line of a test of a traced
// boolean. If nothing else uses the boolean, an error is raised at the end of
// the trace.
static void see_test(lua_State *L, Hook *h, lua_Debug *ar, VmIns in) {
  int reg = in.op == VM_TEST ? in.a : in.b;
  bytecode_register(L, ar, reg);
  Value *v = trace_value(L, -1);
  if (!v || v->undefined) return;
  v->lazy = false;
  Fn *fn = ir_fn(h->cx);
  if (v->serial != fn->serial || v->r >= fn->ins.n || !of_user(L, ar)) return;
  bool boolean = ir_type(fn, v->r) == DT_BOOL;
  if (boolean && v->tested) return;
  if (is_sound(L, h, ar, reg, v)) return;
  if (!boolean) raise_here(L, ar, ERR_DYNAMIC);
  if (ar->currentline <= 0) return;
  ir_at(h->cx, fn, ar->source, (uint32_t)ar->currentline);
  v->tested = fn->at;
}

// ---- undefined values ----

// Pushes TRACE_STATE.undefined[name].
static void push_undefined(lua_State *L, const char *name) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "undefined");
  lua_getfield(L, -1, name);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

// Handles a test or comparison of a register. If it contains an undefined
// value, replaces it by the value that Lua must test instead
// (TRACE_STATE.undefined.tested).
static void test_undefined(lua_State *L, lua_Debug *ar, int reg) {
  bytecode_register(L, ar, reg);
  const Value *v = trace_value(L, -1);
  if (v && v->undefined) {
    push_undefined(L, "tested");
    lua_pushvalue(L, -2);
    lua_call(L, 1, 1);
    if (!lua_setlocal(L, ar, reg + 1)) lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

// Pops a value that Lua reads as a list, or passes to a library function that
// examines it. Raises an error if the value is undefined or contains an
// undefined value.
static void read_undefined(lua_State *L, Ctx *cx) {
  const Value *v = trace_value(L, -1);
  if (v && v->undefined) trace_own(cx, v);
  if (lua_istable(L, -1)) {
    push_undefined(L, "holders");
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) != LUA_TNIL) {
      push_undefined(L, "read");
      lua_pushvalue(L, -4);
      lua_call(L, 1, 0);
    }
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
}

static void call_undefined(lua_State *L, const Hook *h, lua_Debug *ar,
                           VmIns in) {
  bytecode_register(L, ar, in.a);
  lua_CFunction f = lua_tocfunction(L, -1);
  lua_pop(L, 1);
  if (!f || !table_writes_reads(&h->readers, f)) return;
  int n = in.op == VM_TFORCALL ? 2 : in.b ? in.b - 1 : 255;
  for (int i = 1; i <= n && lua_getlocal(L, ar, in.a + i + 1); i++)
    read_undefined(L, h->cx);
}

// Handles a store of register `reg` to a field of the table in register
// `table`. If the stored value is undefined, records that the table contains an
// undefined value.
static void store_undefined(lua_State *L, lua_Debug *ar, int table, int reg) {
  bytecode_register(L, ar, reg);
  const Value *v = trace_value(L, -1);
  if (v && v->undefined) {
    push_undefined(L, "holders");
    bytecode_register(L, ar, table);
    lua_pushboolean(L, 1);
    if (lua_istable(L, -2)) lua_rawset(L, -3);
    else lua_pop(L, 2);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void check_undefined(lua_State *L, const Hook *h, lua_Debug *ar,
                            VmIns in) {
  switch (in.op) {
    case VM_EQ:
      test_undefined(L, ar, in.b);  // fall through
    case VM_EQK: case VM_EQI: case VM_TEST:
      test_undefined(L, ar, in.a);
      break;
    case VM_NOT: case VM_TESTSET:
      test_undefined(L, ar, in.b);
      break;
    case VM_LEN:
      bytecode_register(L, ar, in.b);
      read_undefined(L, h->cx);
      break;
    case VM_FORPREP:
      for (int i = 0; i < 3; i++) {
        bytecode_register(L, ar, in.a + i);
        read_undefined(L, h->cx);
      }
      break;
    case VM_CALL: case VM_TAILCALL: case VM_TFORCALL:
      call_undefined(L, h, ar, in);
      break;
    case VM_SETTABLE: case VM_SETI: case VM_SETFIELD:
      if (!in.k) store_undefined(L, ar, in.a, in.c);
      break;
    case VM_SETLIST:
      for (int i = 1; i <= (in.b ? in.b : 255); i++)
        store_undefined(L, ar, in.a, in.a + i);
      break;
    default: break;
  }
}

// Handles an instruction that writes to or creates a table, or calls a
// function. The hook's userdata is at stack index `at`.
static void see_write(lua_State *L, Hook *h, int at, lua_Debug *ar, VmIns in) {
  lua_getiuservalue(L, at, 2);
  if (!table_writes_see(L, &h->writers, ar, in, at + 1)) return;
  h->born = in.a;
  interrupt_sethook(L, hook_born, hook_mask(h), 1);
}

// Reasons to examine an instruction, as bit masks, for each opcode.
enum { COMPARES = 1, INDEXES = 2, WRITES = 4, TESTS = 8, READS = 16,
       CALLS = 32 };
static const uint8_t looked_at[128] = {
  [VM_EQ] = COMPARES, [VM_EQK] = COMPARES, [VM_EQI] = COMPARES,
  [VM_GETTABLE] = INDEXES, [VM_SETTABLE] = INDEXES | WRITES,
  [VM_SETTABUP] = WRITES, [VM_SETI] = WRITES, [VM_SETFIELD] = WRITES,
  [VM_NEWTABLE] = WRITES, [VM_CALL] = WRITES | CALLS,
  [VM_TAILCALL] = WRITES | CALLS,
  [VM_TFORPREP] = WRITES, [VM_TFORCALL] = WRITES,
  [VM_NOT] = TESTS, [VM_TEST] = TESTS, [VM_TESTSET] = TESTS,
  [VM_LEN] = READS, [VM_SETLIST] = READS, [VM_FORPREP] = READS};

// Examines the instruction that Lua executes next.
static void check_instruction(lua_State *L, lua_Debug *ar) {
  VmIns in = bytecode_at(ar);
  int what = looked_at[in.op];
  if (!what) return;
  int top = lua_gettop(L);
  luaL_checkstack(L, LUA_MINSTACK, "hook");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  Hook *h = lua_touserdata(L, -1);
  if (ir_fn(h->cx)) {
    if (h->undefined) check_undefined(L, h, ar, in);
    if (what & COMPARES) check_compared(L, h->cx, ar, in);
    if (what & TESTS) see_test(L, h, ar, in);
    if (what & CALLS) see_spread(L, ar, in);
    if (what & INDEXES && in.op == VM_GETTABLE)
      check_key(L, h->cx, ar, in.b, in.c);
    if (what & INDEXES && in.op == VM_SETTABLE)
      check_key(L, h->cx, ar, in.a, in.b);
    lua_settop(L, top + 1);
    if (what & WRITES && h->notes) see_write(L, h, top + 1, ar, in);
  }
  lua_settop(L, top);
}

// ---- names ----

static const char *local_at(lua_State *L, lua_Debug *ar, int n) {
  const char *name = n > 0 ? lua_getlocal(L, ar, n) : NULL;
  if (!name) return NULL;
  if (strcmp(name, "(temporary)") != 0 && strcmp(name, "(C temporary)") != 0)
    return name;
  lua_pop(L, 1);
  return NULL;
}

// Names the values of all locals that came into scope since the previous line.
static void name_locals(lua_State *L, Hook *h, lua_Debug *ar) {
  const char *name;
  while (h->named > 0 && !local_at(L, ar, h->named)) h->named--;
  if (h->named > 0) lua_pop(L, 1);
  for (int n = h->named + 1; (name = local_at(L, ar, n)); n++) {
    if (name[0] != '(' && lua_isuserdata(L, -1)) name_local(L, h->cx, name);
    if (name[0] != '(' && lua_istable(L, -1)) name_table(L, h->cx, name);
    h->named = n;
    lua_pop(L, 1);
  }
}

// Pushes TRACE_STATE.lines[source], the names that each line assigns. On first
// use, finds them in the source text.
static void push_lines(lua_State *L, const char *source) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "lines");
  if (lua_getfield(L, -1, source) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_getfield(L, -2, "lex");
    lua_pushstring(L, source);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, source);
  }
}

// Prepares the hook for another running function. The hook's userdata is at
// stack index `at`.
static void enter_function(lua_State *L, Hook *h, int at, lua_Debug *ar,
                           const void *func) {
  lua_getinfo(L, "S", ar);
  if (face_own_source(ar->source)) {
    h->skip = func;
    return;
  }
  h->func = func;
  h->named = 0;
  h->line = 0;
  push_lines(L, ar->source);
  lua_setiuservalue(L, at, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "ran");
  lua_getinfo(L, "f", ar);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
}

// Names the values of the variables that the previous line assigned, which the
// list at stack index `list` contains.
static void name_assigned(lua_State *L, Hook *h, lua_Debug *ar, int list) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, list, i);
    const char *name = lua_tostring(L, -1);
    if (push_variable(L, ar, name)) {
      if (lua_isuserdata(L, -1)) name_local(L, h->cx, name);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
}

// Calls TRACE_STATE.record(n), which records the locals of the running
// function. n is the number of IR instructions so far.
static void tell_line(lua_State *L, const Hook *h) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "record");
  lua_pushinteger(L, (lua_Integer)ir_fn(h->cx)->ins.n);
  lua_call(L, 1, 0);
  lua_pop(L, 1);
}

// Names values at a new line of the user function, or at its return. The hook's
// userdata is at stack index `at`.
static void look(lua_State *L, Hook *h, int at, lua_Debug *ar) {
  // At the return, name all locals again, because their tables may have new
  // fields.
  if (ar->event == LUA_HOOKRET) h->named = 0;
  name_locals(L, h, ar);
  lua_getiuservalue(L, at, 1);
  int lines = lua_gettop(L);
  if (lua_rawgeti(L, lines, h->line) == LUA_TTABLE)
    name_assigned(L, h, ar, lua_gettop(L));
  if (h->records) tell_line(L, h);
  if (ar->event != LUA_HOOKLINE) return;
  lua_getinfo(L, "l", ar);
  h->line = ar->currentline;
}

static void hooklib_event(lua_State *L, lua_Debug *ar) {
  if (ar->event == LUA_HOOKCOUNT) {
    check_instruction(L, ar);
    return;
  }
  int top = lua_gettop(L);
  luaL_checkstack(L, 24, "line hook");
  lua_getinfo(L, "f", ar);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  Hook *h = lua_touserdata(L, -1);
  if (ir_fn(h->cx) && !lua_iscfunction(L, -2)) {
    const void *func = lua_topointer(L, -2);
    if (func != h->skip) {
      if (func != h->func) enter_function(L, h, top + 2, ar, func);
      if (func == h->func) look(L, h, top + 2, ar);
    }
  }
  lua_settop(L, top);
}

void hooklib_on(lua_State *L, bool on) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  const Hook *h = lua_touserdata(L, -1);
  lua_pop(L, 1);
  interrupt_sethook(L, on ? hooklib_event : NULL, on ? hook_mask(h) : 0, 1);
}

void hooklib_note(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  Hook *h = lua_touserdata(L, -1);
  h->notes = lua_istable(L, -2);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 2);
  lua_pop(L, 1);
}

void hooklib_wrote(lua_State *L, int idx) {
  lua_pushvalue(L, idx);
  int t = lua_gettop(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  const Hook *h = lua_touserdata(L, -1);
  lua_getiuservalue(L, -1, 2);
  lua_pushvalue(L, t);
  if (h->notes) table_writes_note(L, t + 2);
  lua_settop(L, t - 1);
}

void hooklib_undefined(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  Hook *h = lua_touserdata(L, -1);
  h->undefined = true;
  lua_pop(L, 1);
}

void hooklib_start(lua_State *L) {
  Hook *h = lua_newuserdatauv(L, sizeof *h, 2);
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  *h = (Hook){.cx = lua_touserdata(L, -1)};
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "known");
  h->counts = lua_toboolean(L, -1);
  lua_getfield(L, -2, "record");
  h->records = lua_toboolean(L, -1);
  table_writes_find(L, &h->writers, &h->readers);
  lua_pop(L, 4);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &hook_key);
  hooklib_on(L, true);
}
// SPDX-License-Identifier: MIT
