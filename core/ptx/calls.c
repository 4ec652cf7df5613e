// calls.c: copies a function into a form without calls. Each call is replaced
// by the text of the called function, and a brx.idx by a tree of comparisons.
// Parameters of calls become registers, or local memory if their bytes are
// accessed one by one.
#include <string.h>

#include "ptx/calls.h"

static const char *name_of(PtxCopy *x, const char *s) {
  return ptx_name(x->b.cx, x->m, s, strlen(s));
}

// ---- parts of the copy ----

// Records that the next instruction writes register r.
static void define(PtxCopy *x, int64_t r) {
  if (r >= x->defs) {
    uint32_t more = (uint32_t)r * 2 + 64;
    uint32_t *bigger = NEW(x->b.cx, uint32_t, more);
    memset(bigger, 0, more * sizeof *bigger);
    if (x->defs) memcpy(bigger, x->def, x->defs * sizeof *bigger);
    x->def = bigger;
    x->defs = more;
  }
  x->def[r] = x->def[r] ? SEVERAL : (uint32_t)x->m->ins.n + 1;
}

void copy_push(PtxCopy *x, const char *op, const PtxArg *a, uint32_t n) {
  PtxModule *m = x->m;
  if (m->ins.n - x->out.ins >= MOST_COPIED) {
    ptx_fail(&x->b, "inlining the called functions makes more than %d "
             "instructions", MOST_COPIED);
  }
  PtxIns i = {.op = name_of(x, op), .line = x->b.at->line,
              .loc = x->b.at->loc, .guard = -1,
              .arg = (uint32_t)m->args.n, .args = n};
  for (uint32_t k = 0; k < n; k++) vec_push(x->b.cx, m->args, a[k]);
  if (n && a[0].kind == PTX_A_REG) define(x, a[0].value);
  for (uint32_t k = 0; n && k < a[0].parts; k++) {
    const PtxArg *part = &m->args.p[a[0].part + k];
    if (a[0].kind != PTX_A_ADDRESS && part->kind == PTX_A_REG) {
      define(x, part->value);
    }
  }
  vec_push(x->b.cx, m->ins, i);
}

PtxArg copy_register(PtxCopy *x, PtxType t) {
  PtxReg r = {t, "call", (int32_t)(x->m->regs.n - x->out.reg)};
  vec_push(x->b.cx, x->m->regs, r);
  return (PtxArg){.kind = PTX_A_REG, .value = r.number, .name = "call"};
}

PtxArg copy_address(PtxCopy *x, PtxArg base, int64_t value) {
  PtxArg a = {.kind = PTX_A_ADDRESS, .value = value, .parts = 1,
              .part = (uint32_t)x->m->args.n};
  vec_push(x->b.cx, x->m->args, base);
  return a;
}

static uint32_t new_label(PtxCopy *x, const char *name) {
  PtxLabel l = {.name = name};
  vec_push(x->b.cx, x->m->labels, l);
  return (uint32_t)x->m->labels.n - 1;
}

static PtxArg label_arg(const PtxCopy *x, uint32_t label) {
  return (PtxArg){.kind = PTX_A_LABEL, .value = label,
                  .name = x->m->labels.p[label].name};
}

// Returns source position `loc` of an inlined function, extended by `call`, the
// position of the call.
static uint32_t position(PtxCopy *x, uint32_t loc, uint32_t call) {
  if (!loc || !call) return loc ? loc : call;
  PtxLoc l = x->m->locs.p[loc - 1];
  l.parent = position(x, l.parent, call);
  vec_push(x->b.cx, x->m->locs, l);
  return (uint32_t)x->m->locs.n;
}

// ---- bodies ----

// Returns the index of a function's variable in the copy.
static int64_t var_in(const PtxBody *y, int64_t var) {
  uint32_t end = y->f->var + y->f->vars;
  if (var < y->first || var >= end) return var;
  return y->var[var - y->first];
}

// Returns operand a of the inlined function as an operand of the copy.
static PtxArg arg_in(PtxCopy *x, const PtxBody *y, PtxArg a) {
  PtxModule *m = x->m;
  int64_t address = a.kind == PTX_A_FUNC ? ptx_function(m, a.name) : 0;
  if (address) return (PtxArg){.kind = PTX_A_INT, .value = address};
  if (a.kind == PTX_A_REG) a.value += y->reg;
  else if (a.kind == PTX_A_VAR) a.value = var_in(y, a.value);
  else if (a.kind == PTX_A_LABEL) a.value = y->label[a.value - y->f->label];
  if (!a.parts) return a;
  uint32_t from = a.part;
  a.part = (uint32_t)m->args.n;
  for (uint32_t k = 0; k < a.parts; k++) {
    PtxArg none = {0};
    vec_push(x->b.cx, m->args, none);
  }
  for (uint32_t k = 0; k < a.parts; k++) {
    PtxArg part = arg_in(x, y, m->args.p[from + k]);
    m->args.p[a.part + k] = part;
  }
  return a;
}

// Returns the operands of instruction i of an inlined function as operands of
// the copy.
static PtxArg *args_in(PtxCopy *x, const PtxBody *y, const PtxIns *i) {
  PtxArg *a = NEW(x->b.cx, PtxArg, i->args + 1);
  for (uint32_t k = 0; k < i->args; k++) {
    a[k] = arg_in(x, y, x->m->args.p[i->arg + k]);
  }
  return a;
}

// Copies the guard predicate of instruction i to the newest instruction of the
// copy.
static void copy_guard(PtxCopy *x, const PtxBody *y, const PtxIns *i) {
  PtxIns *newest = &x->m->ins.p[x->m->ins.n - 1];
  newest->guard = i->guard < 0 ? -1 : i->guard + (int32_t)y->reg;
  newest->guard_not = i->guard_not;
}

// Reports whether a parameter may be a tensor map, or contain tensor maps.
static bool may_be_map(const PtxVar *v) {
  return v->array && v->align >= 64 && ptx_size(v) >= 128;
}

// Reports whether function f uses the address of its parameter v as a number.
static bool takes_address(const PtxModule *m, const PtxFunc *f, uint32_t v) {
  for (uint32_t k = f->ins; k < f->ins + f->n_ins; k++) {
    const PtxIns *i = &m->ins.p[k];
    const PtxArg *a = &m->args.p[i->arg];
    if (i->args == 2 && a[1].kind == PTX_A_VAR && a[1].value == v) return true;
  }
  return false;
}

// Reports whether an entry reads a parameter (a structure) at addresses that it
// computes. The copy then reads the structure from local memory. A tensor map
// stays a parameter.
static bool computes_addresses(const PtxModule *m, const PtxFunc *f) {
  bool any = false;
  for (uint32_t k = f->param; k < f->param + f->params; k++) {
    if (!takes_address(m, f, k)) continue;
    if (may_be_map(&m->vars.p[k])) return false;
    any = any || m->vars.p[k].space == PTX_PARAM;
  }
  return any;
}

// Declares the registers, variables and labels of function f in the copy.
static PtxBody open_body(PtxCopy *x, const PtxFunc *f, const PtxBody *outer) {
  PtxModule *m = x->m;
  PtxBody y = {.f = f, .outer = outer, .loc = x->b.at ? x->b.at->loc : 0,
               .first = f->rets ? f->ret : f->params ? f->param : f->var};
  y.reg = (uint32_t)m->regs.n - x->out.reg;
  for (uint32_t k = 0; k < f->regs; k++) {
    PtxReg r = m->regs.p[f->reg + k];
    vec_push(x->b.cx, m->regs, r);
  }
  y.label = NEW(x->b.cx, uint32_t, f->labels + 1);
  for (uint32_t k = 0; k < f->labels; k++) {
    y.label[k] = new_label(x, m->labels.p[f->label + k].name);
  }
  y.end = outer ? new_label(x, f->name) : 0;
  uint32_t n = f->var + f->vars - y.first;
  y.var = NEW(x->b.cx, int32_t, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    y.var[k] = (int32_t)(y.first + k);
    PtxVar v = m->vars.p[y.first + k];
    bool local = !outer && x->computes && v.space == PTX_PARAM &&
                 takes_address(m, f, y.first + k);
    if (local) v.space = PTX_LOCAL;
    // Parameters are set when the call's operands are copied.
    if (v.space == PTX_REG || (y.first + k < f->var && !local)) continue;
    int32_t *shared = &x->shared[y.first + k];
    y.var[k] = *shared ? *shared : (int32_t)m->vars.n;
    if (*shared) continue;
    if (v.space == PTX_SHARED) *shared = y.var[k];
    vec_push(x->b.cx, m->vars, v);
  }
  return y;
}

static void copy_body(PtxCopy *x, const PtxBody *y);

// ---- parameters of a call ----

// Returns the type of a register that can hold a parameter, such as b32.
static PtxType register_type(const PtxVar *v) {
  return (PtxType){v->type.kind == PTX_F ? PTX_F : PTX_B, 1, v->type.bits};
}

static void move(PtxCopy *x, const char *how, PtxType t, PtxArg to,
                 PtxArg from) {
  const PtxArg a[2] = {to, from};
  copy_push(x, arena_printf(x->b.cx, &x->b.cx->scratch, "%s.b%d", how, t.bits),
            a, 2);
}

// Finds the .param variable for parameter v, or for the result, of the inlined
// function y. If the call names a .param variable, uses that variable. If the
// call names a register or a number, declares a new variable and returns true.
static bool place_param(PtxCopy *x, PtxBody *y, uint32_t v, PtxArg a) {
  PtxVar own = x->m->vars.p[v];
  if (own.space == PTX_REG) return false;
  int32_t *at = &y->var[v - y->first];
  if (a.kind == PTX_A_VAR && x->m->vars.p[a.value].space == PTX_PARAM) {
    const PtxVar *given = &x->m->vars.p[a.value];
    long long has = ptx_size(given);
    long long needs = ptx_size(&own);
    if (has < needs) {
      ptx_fail(&x->b, "%s has %lld bytes, but parameter %s of %s needs %lld",
               given->name, has, own.name, y->f->name, needs);
    }
    *at = (int32_t)a.value;
    return false;
  }
  bool plain = a.kind == PTX_A_REG || a.kind == PTX_A_INT ||
               a.kind == PTX_A_FLOAT || a.kind == PTX_A_SINK;
  if (!plain || own.array) {
    ptx_fail(&x->b, "parameter %s of %s takes a .param variable", own.name,
             y->f->name);
  }
  *at = (int32_t)x->m->vars.n;
  vec_push(x->b.cx, x->m->vars, own);
  return true;
}

static PtxArg register_in(const PtxBody *y, const PtxVar *v) {
  return (PtxArg){.kind = PTX_A_REG, .value = (int64_t)y->reg + v->reg,
                  .name = v->name};
}

// Passes operand a of the call to parameter v of the inlined function y.
static void pass(PtxCopy *x, PtxBody *y, uint32_t v, PtxArg a) {
  PtxVar own = x->m->vars.p[v];
  PtxType t = register_type(&own);
  if (own.space == PTX_REG) {
    move(x, "mov", t, register_in(y, &own), a);
  } else if (place_param(x, y, v, a)) {
    PtxArg var = {.kind = PTX_A_VAR, .value = y->var[v - y->first],
                  .name = own.name};
    move(x, "st.param", t, copy_address(x, var, 0), a);
  }
}

// Moves result v of the inlined function y to operand a of the call, if a is a
// register.
static void take_result(PtxCopy *x, PtxBody *y, uint32_t v, PtxArg a) {
  PtxVar own = x->m->vars.p[v];
  PtxType t = register_type(&own);
  if (a.kind != PTX_A_REG) return;
  if (own.space == PTX_REG) {
    move(x, "mov", t, a, register_in(y, &own));
    return;
  }
  PtxArg var = {.kind = PTX_A_VAR, .value = y->var[v - y->first],
                .name = own.name};
  move(x, "ld.param", t, a, copy_address(x, var, 0));
}

// Checks the number of operands that the call passes or receives.
static void check_number(PtxCopy *x, const PtxBody *y, uint32_t n,
                         const PtxArg *list, const char *what) {
  uint32_t given = list ? list->parts : 0;
  if (given == n) return;
  ptx_fail(&x->b, "function %s has %u %s, but the call has %u", y->f->name,
           (unsigned)n, what, (unsigned)given);
}

// Connects the results of the inlined function y to the operands of the call.
// Before the function's text, assigns variables to results. After the text
// (`behind`), moves results to registers.
static void results(PtxCopy *x, PtxBody *y, const PtxArg *list, bool behind) {
  const PtxFunc *f = y->f;
  for (uint32_t k = 0; k < f->rets; k++) {
    PtxArg a = x->m->args.p[list->part + k];
    if (behind) take_result(x, y, f->ret + k, a);
    else place_param(x, y, f->ret + k, a);
  }
}

// ---- branches ----

static void jump(PtxCopy *x, PtxArg p, PtxArg to) {
  copy_push(x, "bra", &to, 1);
  x->m->ins.p[x->m->ins.n - 1].guard = (int32_t)p.value;
}

static PtxArg compare(PtxCopy *x, const char *how, PtxArg index, int64_t v) {
  PtxArg p = copy_register(x, (PtxType){PTX_P, 1, 1});
  const PtxArg a[3] = {p, index, {.kind = PTX_A_INT, .value = v}};
  copy_push(x, how, a, 3);
  return p;
}

static void set_label(PtxCopy *x, uint32_t label) {
  x->m->labels.p[label].at = (uint32_t)x->m->ins.n;
}

// ---- calls ----

static const PtxFunc *callee(PtxCopy *x, const char *name) {
  int64_t address = ptx_function(x->m, name);
  return address ? &x->m->funcs.p[ptx_function_at(address)] : NULL;
}

// Stores the integer v as the result of a call, in a .param variable or a
// register.
static void give_number(PtxCopy *x, const PtxArg *list, int64_t v) {
  if (!list || !list->parts) return;
  PtxArg to = x->m->args.p[list->part];
  PtxArg value = {.kind = PTX_A_INT, .value = v};
  PtxType t = {PTX_B, 1, 32};
  if (to.kind == PTX_A_VAR) {
    move(x, "st.param", t, copy_address(x, to, 0), value);
  } else if (to.kind == PTX_A_REG) {
    move(x, "mov", t, to, value);
  }
}

// Replaces a call of a function that the driver provides.
static void system_call(PtxCopy *x, const char *name, const PtxArg *result,
                        const PtxArg *list) {
  uint32_t n = list ? list->parts : 0;
  const PtxArg *p = n ? &x->m->args.p[list->part] : NULL;
  PtxArg copy[8];
  for (uint32_t k = 0; k < n && k < 8; k++) copy[k] = p[k];
  if (strcmp(name, "vprintf") == 0 && n == 2) {
    prints_call(x, copy);
    give_number(x, result, 1);
  } else if (strcmp(name, "__assertfail") == 0 && n == 5) {
    prints_assert(x, copy);
  } else if (strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0) {
    ptx_fail(&x->b, "a call of %s: the heap of the device is not modelled",
             name);
  } else {
    ptx_fail(&x->b, "a call of %s: the module has no such function with a "
             "body", name);
  }
}

// Rejects recursion: a function that is called inside its own text.
static void check_recursion(PtxCopy *x, const PtxBody *y, const PtxFunc *f) {
  int depth = 0;
  for (const PtxBody *at = y; at; at = at->outer, depth++) {
    if (at->f == f) {
      ptx_fail(&x->b, "a call of %s inside %s: recursion is not modelled",
               f->name, f->name);
    }
  }
  if (depth > DEEPEST_CALL) {
    ptx_fail(&x->b, "calls nest more than %d deep", DEEPEST_CALL);
  }
  if (++x->calls > MOST_CALLS) {
    ptx_fail(&x->b, "inlining the called functions makes more than %d calls",
             MOST_CALLS);
  }
}

// Replaces a call of function f by its text.
static void call_function(PtxCopy *x, const PtxBody *y, const PtxFunc *f,
                          const PtxArg *result, const PtxArg *list) {
  check_recursion(x, y, f);
  PtxBody body = open_body(x, f, y);
  const PtxIns *at = x->b.at;
  check_number(x, &body, f->params, list, "parameters");
  check_number(x, &body, f->rets, result, "results");
  for (uint32_t k = 0; k < f->params; k++) {
    pass(x, &body, f->param + k, x->m->args.p[list->part + k]);
  }
  if (f->rets) results(x, &body, result, false);
  copy_body(x, &body);
  x->b.at = at;
  if (f->rets) results(x, &body, result, true);
}

// Records that operand a takes the address of a function.
static void take_address(PtxCopy *x, const PtxArg *a) {
  int64_t address = a->kind == PTX_A_FUNC ? ptx_function(x->m, a->name) : 0;
  if (address) x->taken[ptx_function_at(address)] = true;
}

// Finds the functions whose addresses are taken by instructions or variables.
static void find_taken(PtxCopy *x) {
  const PtxModule *m = x->m;
  x->taken = NEW(x->b.cx, bool, m->funcs.n + 1);
  memset(x->taken, 0, m->funcs.n + 1);
  for (size_t k = 0; k < m->ins.n; k++) {
    const PtxIns *i = &m->ins.p[k];
    for (uint32_t q = 0; q < i->args; q++) {
      const PtxArg *a = &m->args.p[i->arg + q];
      if (!ptx_is(i->op, "call")) take_address(x, a);
      for (uint32_t j = 0; j < a->parts; j++) {
        take_address(x, &m->args.p[a->part + j]);
      }
    }
  }
  for (size_t k = 0; k < m->inits.n; k++) {
    const char *name = m->inits.p[k].symbol;
    const PtxArg a = {.kind = PTX_A_FUNC, .name = name};
    if (name) take_address(x, &a);
  }
}

// Reports whether operand a of a call has the size of parameter v.
static bool suits_param(const PtxCopy *x, const PtxVar *v, const PtxArg *a) {
  long long needs = ptx_size(v);
  if (a->kind == PTX_A_VAR) {
    const PtxVar *given = &x->m->vars.p[a->value];
    return ptx_size(given) == needs;
  }
  if (a->kind != PTX_A_REG) return !v->array;
  return x->m->regs.p[x->out.reg + (uint32_t)a->value].type.bits / 8 == needs;
}

// Reports whether an indirect call in function text y may call function k.
static bool suits(const PtxCopy *x, const PtxBody *y, size_t k,
                  const PtxArg *result, const PtxArg *list) {
  const PtxModule *m = x->m;
  const PtxFunc *f = &m->funcs.p[k];
  uint32_t params = list ? list->parts : 0, rets = result ? result->parts : 0;
  bool good = !f->entry && f->body && x->taken[k] && f->params == params &&
              f->rets == rets;
  for (const PtxBody *at = y; at; at = at->outer) good = good && at->f != f;
  for (uint32_t q = 0; good && q < params; q++) {
    good = suits_param(x, &m->vars.p[f->param + q],
                       &m->args.p[list->part + q]);
  }
  for (uint32_t q = 0; good && q < rets; q++) {
    good = suits_param(x, &m->vars.p[f->ret + q],
                       &m->args.p[result->part + q]);
  }
  return good;
}

// Replaces an indirect call: compares the register with the address of each
// function that the call may refer to.
static void call_register(PtxCopy *x, const PtxBody *y, PtxArg reg,
                          const PtxArg *result, const PtxArg *list) {
  uint32_t end = new_label(x, "call");
  size_t n = x->m->funcs.n, found = 0;
  if (!x->taken) find_taken(x);
  for (size_t k = 0; k < n; k++) {
    if (!suits(x, y, k, result, list)) continue;
    const PtxFunc *f = &x->m->funcs.p[k];
    uint32_t next = new_label(x, f->name);
    jump(x, compare(x, "setp.ne.u64", reg, ptx_function(x->m, f->name)),
         label_arg(x, next));
    call_function(x, y, f, result, list);
    PtxArg to = label_arg(x, end);
    copy_push(x, "bra", &to, 1);
    set_label(x, next);
    found++;
  }
  if (!found) {
    ptx_fail(&x->b, "a call through a register: no function whose address the "
             "module takes has these parameters");
  }
  PtxArg never = compare(x, "setp.eq.u64", reg, 0);
  const PtxArg clear[4] = {never, never, never, never};
  copy_push(x, "xor.pred", clear, 3);
  PtxArg text = {.kind = PTX_A_SINK, .name = name_of(x,
    "the register of a call does not hold the address of a function that it "
    "may call")};
  const PtxArg check[2] = {never, text};
  copy_push(x, ".check", check, 2);
  set_label(x, end);
}

static void call(PtxCopy *x, const PtxBody *y, const PtxIns *i) {
  const PtxArg *name = NULL, *result = NULL, *list = NULL;
  PtxArg *copy = NEW(x->b.cx, PtxArg, i->args + 1);
  for (uint32_t k = 0; k < i->args; k++) {
    PtxArg a = x->m->args.p[i->arg + k];
    bool is_list = a.kind == PTX_A_LIST;
    copy[k] = is_list || a.kind == PTX_A_REG ? arg_in(x, y, a) : a;
    if (is_list && !name) result = &copy[k];
    else if (is_list) list = list ? list : &copy[k];
    else if (!name) name = &copy[k];
  }
  if (!name) ptx_fail(&x->b, "'%s': a function's name is missing", i->op);
  if (name->kind == PTX_A_REG) {
    call_register(x, y, *name, result, list);
    return;
  }
  if (name->kind != PTX_A_FUNC) {
    ptx_fail(&x->b, "'%s': a function's name or a register is expected", i->op);
  }
  const PtxFunc *f = callee(x, name->name);
  if (!f) {
    system_call(x, name->name, result, list);
    return;
  }
  call_function(x, y, f, result, list);
}

// ---- indirect branches ----

// Returns the .branchtargets directive with the label `name`: a list of labels.
static const PtxIns *targets(PtxCopy *x, const PtxFunc *f, const char *name) {
  for (uint32_t k = f->ins; name && k < f->ins + f->n_ins; k++) {
    const PtxIns *i = &x->m->ins.p[k];
    if (i->label && strcmp(i->label, name) == 0 &&
        strcmp(i->op, ".branchtargets") == 0) {
      return i;
    }
  }
  ptx_fail(&x->b, "'%s': no .branchtargets '%s' is declared", x->b.at->op,
           name ? name : "");
}

// Emits a branch to the target to[index], where the index is in least..last.
static void select(PtxCopy *x, PtxArg index, const PtxArg *to, int64_t least,
                   int64_t last) {
  if (least == last) {
    copy_push(x, "bra", &to[least], 1);
    return;
  }
  int64_t middle = (least + last + 1) / 2;
  uint32_t upper = new_label(x, "brx");
  jump(x, compare(x, "setp.ge.u32", index, middle), label_arg(x, upper));
  select(x, index, to, least, middle - 1);
  set_label(x, upper);
  select(x, index, to, middle, last);
}

static void indexed(PtxCopy *x, const PtxBody *y, const PtxIns *i) {
  if (!ptx_is(i->op, "brx.idx") || i->args != 2) {
    ptx_fail(&x->b, "'%s' takes an index and a list of labels", i->op);
  }
  PtxArg index = arg_in(x, y, x->m->args.p[i->arg]);
  PtxIns list = *targets(x, y->f, x->m->args.p[i->arg + 1].name);
  PtxArg *to = NEW(x->b.cx, PtxArg, list.args + 1);
  for (uint32_t k = 0; k < list.args; k++) {
    to[k] = x->m->args.p[list.arg + k];
    if (to[k].kind != PTX_A_LABEL) {
      ptx_fail(&x->b, "'%s': no label '%s' is in scope here", i->op,
               to[k].name ? to[k].name : "");
    }
    to[k] = arg_in(x, y, to[k]);
  }
  PtxArg p = compare(x, "setp.lt.u32", index, list.args);
  PtxArg text = {.kind = PTX_A_SINK,
                 .name = name_of(x, "the index of brx.idx has no target")};
  const PtxArg check[2] = {p, text};
  copy_push(x, ".check", check, 2);
  select(x, index, to, 0, (int64_t)list.args - 1);
}

// ---- instructions ----

// Replaces `mov r, %envreg1` by the upper half of the address of a workspace,
// and %envreg2 by the lower half. The driver provides this workspace for
// cooperative launches. All its words are zero at first, except the word at
// GRID_FLAG. In other launches, the address is 0, and the word at GRID_FLAG is
// also 0.
static void environment(PtxCopy *x, PtxArg to, bool upper) {
  PtxModule *m = x->m;
  if (x->workspace < 0) {
    PtxVar v = {.name = name_of(x, "grid workspace"), .space = PTX_GLOBAL,
                .type = {PTX_B, 1, 8}, .count = GRID_BYTES, .array = true,
                .align = 16, .line = x->b.at->line, .ptr_space = PTX_REG};
    x->workspace = (int32_t)m->vars.n;
    vec_push(x->b.cx, m->vars, v);
  }
  PtxType wide = {PTX_B, 1, 64};
  PtxArg at = copy_register(x, wide), half = copy_register(x, wide);
  move(x, "mov", wide, at, (PtxArg){.kind = PTX_A_VAR, .value = x->workspace,
                                    .name = "grid workspace"});
  PtxArg zero = {.kind = PTX_A_INT};
  PtxArg by = {.kind = PTX_A_INT, .value = upper ? 32 : 0};
  PtxArg flag = copy_register(x, (PtxType){PTX_B, 1, 32});
  const PtxArg load[2] = {flag, copy_address(x, at, GRID_FLAG)};
  copy_push(x, "ld.global.b32", load, 2);
  PtxArg p = compare(x, "setp.ne.u32", flag, 0);
  PtxArg given = copy_register(x, wide);
  const PtxArg choose[4] = {given, at, zero, p};
  copy_push(x, "selp.b64", choose, 4);
  const PtxArg shift[3] = {half, given, by}, low[2] = {to, half};
  copy_push(x, "shr.u64", shift, 3);
  copy_push(x, "cvt.u32.u64", low, 2);
}

static bool is_param_access(const PtxIns *i) {
  return strncmp(i->op, "ld.param", 8) == 0 ||
         strncmp(i->op, "st.param", 8) == 0;
}

// Returns the index of the address operand of an access to .param memory.
static uint32_t address_at(const PtxIns *i) { return i->op[0] == 'l'; }

// Returns the load or store opcode `op` with the state space .local.
static const char *local_op(PtxCopy *x, const char *op) {
  const char *rest = strchr(op + 3, '.');
  return name_of(x, arena_printf(x->b.cx, &x->b.cx->scratch, "%.2s.local%s",
                                 op, rest ? rest : ""));
}

// Reports whether instruction i accesses a parameter at an address that the
// function computes. Such a parameter is in local memory.
static bool is_computed(const PtxCopy *x, const PtxBody *y, const PtxIns *i,
                        const PtxArg *a) {
  if (!y->outer && !x->computes) return false;
  if (!is_param_access(i) || i->args != 2) return false;
  const PtxArg *place = &a[address_at(i)];
  return place->kind == PTX_A_ADDRESS &&
         x->m->args.p[place->part].kind == PTX_A_REG;
}

static void copy_plain(PtxCopy *x, const PtxBody *y, PtxIns i) {
  PtxArg *a = args_in(x, y, &i);
  if (i.args == 2 && a[1].kind == PTX_A_SPECIAL && ptx_is(i.op, "mov") &&
      i.guard < 0 && (strcmp(a[1].name, "%envreg1") == 0 ||
                      strcmp(a[1].name, "%envreg2") == 0)) {
    environment(x, a[0], a[1].name[7] == '1');
    return;
  }
  const char *op = i.op;
  if (is_computed(x, y, &i, a)) op = local_op(x, op);
  if (x->computes && ptx_is(op, "cvta.param")) op = "cvta.local.u64";
  copy_push(x, op, a, i.args);
  x->m->ins.p[x->m->ins.n - 1].label = i.label;
  copy_guard(x, y, &i);
}

// Reports whether inlining replaces instruction i by other instructions.
static bool is_replaced(const PtxIns *i) {
  return ptx_is(i->op, "call") || ptx_is(i->op, "brx") || ptx_is(i->op, "wmma");
}

// Emits the replacement of instruction i. If i has a guard predicate, a branch
// lets only the threads with a true guard execute the replacement.
static void copy_guarded(PtxCopy *x, const PtxBody *y, const PtxIns *i) {
  uint32_t behind = 0;
  if (i->guard >= 0) {
    PtxArg p = {.kind = PTX_A_REG, .value = i->guard + (int64_t)y->reg};
    behind = new_label(x, "call");
    jump(x, p, label_arg(x, behind));
    x->m->ins.p[x->m->ins.n - 1].guard_not = !i->guard_not;
  }
  if (ptx_is(i->op, "call")) {
    call(x, y, i);
  } else if (ptx_is(i->op, "wmma")) {
    wmma_replace(x, args_in(x, y, i), i->args);
  } else {
    indexed(x, y, i);
  }
  if (i->guard >= 0) set_label(x, behind);
}

// Copies to local memory the parameters that the entry reads at computed
// addresses.
static void fetch_params(PtxCopy *x, const PtxBody *y) {
  for (uint32_t k = y->f->param; k < y->f->param + y->f->params; k++) {
    if (y->var[k - y->first] == (int32_t)k) continue;
    PtxArg from = {.kind = PTX_A_VAR, .value = k};
    PtxArg to = {.kind = PTX_A_VAR, .value = y->var[k - y->first]};
    from.name = to.name = x->m->vars.p[k].name;
    const PtxArg a[2] = {to, from};
    copy_push(x, ".fetch", a, 2);
  }
}

static void copy_body(PtxCopy *x, const PtxBody *y) {
  PtxModule *m = x->m;
  const PtxFunc f = *y->f;
  if (x->computes && !y->outer) {
    PtxIns *first = NEW(x->b.cx, PtxIns, 1);
    *first = (PtxIns){.line = f.line};
    x->b.at = first;
    fetch_params(x, y);
  }
  for (uint32_t k = 0, l = 0; k <= f.n_ins; k++) {
    for (; l < f.labels && m->labels.p[f.label + l].at == f.ins + k; l++) {
      set_label(x, y->label[l]);
    }
    if (k == f.n_ins) break;
    PtxIns i = m->ins.p[f.ins + k];
    i.loc = y->outer ? position(x, i.loc, y->loc) : i.loc;
    PtxIns *at = NEW(x->b.cx, PtxIns, 1);
    *at = i;
    x->b.at = at;
    if (is_replaced(&i)) {
      copy_guarded(x, y, at);
    } else if (ptx_is(i.op, "ret") && y->outer) {
      if (i.guard < 0 && k + 1 == f.n_ins) continue;
      PtxArg end = label_arg(x, y->end);
      copy_push(x, "bra", &end, 1);
      copy_guard(x, y, &i);
    } else {
      copy_plain(x, y, i);
    }
  }
  if (y->outer) set_label(x, y->end);
}

// ---- parameters of calls as registers or local memory ----

static int last_bits(const char *op) {
  const char *type = strrchr(op, '.') + 1;
  int bits = 0;
  for (type += *type != 0; *type >= '0' && *type <= '9'; type++) {
    bits = bits * 10 + *type - '0';
  }
  return bits;
}

// Reports whether an access covers all of a scalar variable, and its register
// has the width of the variable.
static bool is_whole(const PtxCopy *x, const PtxIns *i, const PtxVar *v) {
  const PtxArg *a = &x->m->args.p[i->arg];
  uint32_t at = address_at(i);
  const PtxArg *r = &a[1 - at];
  if (i->args != 2 || a[at].value != 0 || v->array || v->type.bits < 16 ||
      v->type.lanes > 1 || last_bits(i->op) != v->type.bits) {
    return false;
  }
  if (r->kind != PTX_A_REG) return r->kind != PTX_A_VECTOR;
  return x->m->regs.p[x->out.reg + (uint32_t)r->value].type.bits ==
         v->type.bits;
}

// Finds the .param variables of calls that must be in memory. Sets reg[k] to -1
// if variable k of the copy is one of them.
static void find_memory(const PtxCopy *x, int64_t *reg) {
  const PtxModule *m = x->m;
  for (size_t k = x->out.ins; k < m->ins.n; k++) {
    const PtxIns *i = &m->ins.p[k];
    bool access = is_param_access(i);
    for (uint32_t q = 0; q < i->args; q++) {
      const PtxArg *a = &m->args.p[i->arg + q];
      const PtxArg *v = a->kind == PTX_A_ADDRESS ? &m->args.p[a->part] : a;
      if (v->kind != PTX_A_VAR || v->value < x->out.var) continue;
      bool whole = access && q == address_at(i) &&
                   is_whole(x, i, &m->vars.p[v->value]);
      if (!whole) reg[v->value - x->out.var] = -1;
    }
  }
}

static void place_access(PtxCopy *x, PtxIns *i, const int64_t *reg) {
  PtxModule *m = x->m;
  PtxArg *a = &m->args.p[i->arg];
  uint32_t at = address_at(i);
  if (i->args != 2 || a[at].kind != PTX_A_ADDRESS) return;
  const PtxArg *v = &m->args.p[a[at].part];
  if (v->kind != PTX_A_VAR || v->value < x->out.var) return;
  int64_t r = reg[v->value - x->out.var];
  if (r < 0) {
    i->op = local_op(x, i->op);
    return;
  }
  i->op = name_of(x, arena_printf(x->b.cx, &x->b.cx->scratch, "mov.b%d",
                                  m->vars.p[v->value].type.bits));
  a[at] = (PtxArg){.kind = PTX_A_REG, .value = r, .name = "call"};
}

// Turns the .param variables of calls into registers or local memory.
static void place_params(PtxCopy *x) {
  PtxModule *m = x->m;
  size_t n = m->vars.n - x->out.var;
  int64_t *reg = NEW(x->b.cx, int64_t, n + 1);
  memset(reg, 0, (n + 1) * sizeof *reg);
  find_memory(x, reg);
  for (size_t k = 0; k < n; k++) {
    PtxVar *v = &m->vars.p[x->out.var + k];
    if (v->space != PTX_PARAM) {
      reg[k] = -1;
    } else if (reg[k] < 0) {
      v->space = PTX_LOCAL;
    } else {
      reg[k] = copy_register(x, register_type(v)).value;
    }
  }
  for (size_t k = x->out.ins; k < m->ins.n; k++) {
    PtxIns *i = &m->ins.p[k];
    if (is_param_access(i)) place_access(x, i, reg);
  }
}

// ---- the copy ----

// Reports whether a function has an instruction that must be replaced in a
// copy.
static bool needs_copy(const PtxModule *m, const PtxFunc *f) {
  for (uint32_t k = f->ins; k < f->ins + f->n_ins; k++) {
    const PtxIns *i = &m->ins.p[k];
    if (is_replaced(i)) return true;
    for (uint32_t q = 0; q < i->args; q++) {
      const PtxArg *own = &m->args.p[i->arg + q];
      if (own->kind == PTX_A_FUNC && ptx_function(m, own->name)) return true;
    }
    const PtxArg *a = &m->args.p[i->arg];
    if (i->args == 2 && a[1].kind == PTX_A_SPECIAL &&
        strncmp(a[1].name, "%envreg", 7) == 0) {
      return true;
    }
  }
  return false;
}

const PtxFunc *ptx_whole(Ctx *cx, PtxModule *m, const PtxFunc *f) {
  if (f->whole) return &m->funcs.p[f->whole - 1];
  bool computes = computes_addresses(m, f);
  if (!computes && !needs_copy(m, f)) return f;
  size_t at = (size_t)(f - m->funcs.p);
  PtxFunc own = *f;
  PtxCopy x = {.b = {.cx = cx, .m = m, .f = &own}, .m = m, .out = own,
               .workspace = -1, .computes = computes};
  x.out.entry = false;
  x.out.reg = (uint32_t)m->regs.n;
  x.out.var = (uint32_t)m->vars.n;
  x.out.label = (uint32_t)m->labels.n;
  x.out.ins = (uint32_t)m->ins.n;
  x.shared = NEW(cx, int32_t, m->vars.n + 1);
  memset(x.shared, 0, (m->vars.n + 1) * sizeof *x.shared);
  PtxBody y = open_body(&x, &own, NULL);
  copy_body(&x, &y);
  prints_check(&x);
  place_params(&x);
  x.out.n_ins = (uint32_t)m->ins.n - x.out.ins;
  x.out.labels = (uint32_t)m->labels.n - x.out.label;
  x.out.regs = (uint32_t)m->regs.n - x.out.reg;
  x.out.vars = (uint32_t)m->vars.n - x.out.var;
  x.out.whole = m->funcs.p[at].whole = (uint32_t)m->funcs.n + 1;
  vec_push(cx, m->funcs, x.out);
  return &m->funcs.p[m->funcs.n - 1];
}
// SPDX-License-Identifier: MIT
