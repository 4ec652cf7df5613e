// parse.c: reads PTX text into a PtxModule and resolves names by their scopes.
#include <string.h>

#include "ptx/lex.h"
#include "ptx/module.h"
#include "ptx/names.h"

enum {
  OLDEST = 70,      // PTX ISA versions that are accepted, as 10 * major + minor
  NEWEST = 95,
  DEEPEST = 200,    // limit on nested blocks, or parentheses of an expression
  MOST_REGS = 1 << 20,
  MOST_PARTS = 1 << 16
};

typedef struct Parse {
  Ctx *cx;
  PtxModule *m;
  PtxLex x;
  uint32_t block;         // innermost block
  uint32_t loc;           // index of the current .loc in PtxModule.locs, plus 1
  uint32_t depth;
  PtxFunc *f;             // current function; NULL at module scope
} Parse;

// ---- tokens ----

static bool is(const Parse *p, const char *text) { return lex_is(&p->x, text); }

static bool take(Parse *p, const char *text) {
  if (!is(p, text)) return false;
  lex_next(&p->x);
  return true;
}

// Rejects the current token, where `what` is expected.
_Noreturn static void unexpected(Parse *p, const char *what) {
  if (p->x.kind == TOK_END) {
    lex_fail(&p->x, "the text ends where %s is expected", what);
  }
  lex_fail(&p->x, "%s is expected, not '%.*s'", what,
           (int)(p->x.n > 60 ? 60 : p->x.n), p->x.at);
}

static void expect(Parse *p, const char *text, const char *where) {
  if (take(p, text)) return;
  unexpected(p, arena_printf(p->cx, &p->cx->scratch, "'%s' %s", text, where));
}

static const char *name(Parse *p, const char *what) {
  if (p->x.kind != TOK_NAME) unexpected(p, what);
  const char *s = ptx_name(p->cx, p->m, p->x.at, p->x.n);
  lex_next(&p->x);
  return s;
}

// ---- constant expressions ----

static int64_t expression(Parse *p, int least);

static int64_t primary(Parse *p) {
  if (++p->depth > DEEPEST) lex_fail(&p->x, "an expression nested too deeply");
  int64_t v = 0;
  if (take(p, "-")) {
    v = (int64_t)(0 - (uint64_t)primary(p));
  } else if (take(p, "+")) {
    v = primary(p);
  } else if (take(p, "~")) {
    v = ~primary(p);
  } else if (take(p, "!")) {
    v = !primary(p);
  } else if (take(p, "(")) {
    if (p->x.kind == TOK_DIRECTIVE) {  // a cast, such as (.s64)
      lex_next(&p->x);
      expect(p, ")", "after a cast");
      v = primary(p);
    } else {
      v = expression(p, 0);
      expect(p, ")", "after an expression");
    }
  } else if (p->x.kind == TOK_INT) {
    v = p->x.value;
    lex_next(&p->x);
  } else {
    unexpected(p, "an integer");
  }
  p->depth--;
  return v;
}

// Returns the precedence of the binary operator at the current token, or 0 if
// the token does not begin one. Reads the second character of the operator from
// the text, because tokens are single characters.
static int operator(const Parse *p, char *op) {
  if (p->x.kind != TOK_MARK) return 0;
  char a = *p->x.at;
  char b = p->x.p < p->x.end ? *p->x.p : 0;
  *op = a;
  switch (a) {
  case '*': case '/': case '%': return 10;
  case '+': case '-': return 9;
  case '<':
    if (b == '<') return *op = 'l', 8;
    return b == '=' ? (*op = 'L', 7) : 7;
  case '>':
    if (b == '>') return *op = 'r', 8;
    return b == '=' ? (*op = 'G', 7) : 7;
  case '=': return b == '=' ? 6 : 0;
  case '!': return b == '=' ? 6 : 0;
  case '&': return b == '&' ? (*op = 'a', 2) : 5;
  case '^': return 4;
  case '|': return b == '|' ? (*op = 'o', 1) : 3;
  default: return 0;
  }
}

static int64_t apply(Parse *p, char op, int64_t a, int64_t b) {
  uint64_t u = (uint64_t)a, v = (uint64_t)b;
  switch (op) {
  case '*': return (int64_t)(u * v);
  case '+': return (int64_t)(u + v);
  case '-': return (int64_t)(u - v);
  case '/': case '%':
    if (b == 0) lex_fail(&p->x, "a constant divided by zero");
    if (b == -1) return op == '/' ? (int64_t)(0 - u) : 0;
    return op == '/' ? a / b : a % b;
  case 'l': return v < 64 ? (int64_t)(u << v) : 0;
  case 'r': return v < 64 ? a >> v : a >> 63;
  case '<': return a < b;
  case 'L': return a <= b;
  case '>': return a > b;
  case 'G': return a >= b;
  case '=': return a == b;
  case '!': return a != b;
  case '&': return a & b;
  case '^': return a ^ b;
  case '|': return a | b;
  case 'a': return a && b;
  default: return a || b;
  }
}

static int64_t expression(Parse *p, int least) {
  int64_t a = primary(p);
  for (;;) {
    char op = 0;
    int rank = operator(p, &op);
    if (rank == 0 || rank <= least) return a;
    bool two = strchr("lLrGaoE", op) || *p->x.at == '=' || *p->x.at == '!';
    lex_next(&p->x);
    if (two) lex_next(&p->x);
    a = apply(p, op, a, expression(p, rank));
  }
}

static uint32_t number(Parse *p, const char *what, int64_t most) {
  int64_t v = expression(p, 0);
  if (v < 0 || v > most) {
    lex_fail(&p->x, "%s is %lld; it may be 0 to %lld", what, (long long)v,
             (long long)most);
  }
  return (uint32_t)v;
}

// ---- types and scopes ----

static bool type_of(const Parse *p, PtxType *t) {
  if (p->x.kind != TOK_DIRECTIVE) return false;
  static const struct { const char *name; uint8_t kind; uint16_t bits; } T[] = {
    {".b8", PTX_B, 8}, {".b16", PTX_B, 16}, {".b32", PTX_B, 32},
    {".b64", PTX_B, 64}, {".b128", PTX_B, 128}, {".u8", PTX_U, 8},
    {".u16", PTX_U, 16}, {".u32", PTX_U, 32}, {".u64", PTX_U, 64},
    {".s8", PTX_S, 8}, {".s16", PTX_S, 16}, {".s32", PTX_S, 32},
    {".s64", PTX_S, 64}, {".f16", PTX_F, 16}, {".f16x2", PTX_B, 32},
    {".bf16", PTX_B, 16}, {".bf16x2", PTX_B, 32}, {".tf32", PTX_B, 32},
    {".f32", PTX_F, 32}, {".f64", PTX_F, 64}, {".pred", PTX_P, 1},
    {".texref", PTX_OTHER, 0}, {".surfref", PTX_OTHER, 0},
    {".samplerref", PTX_OTHER, 0},
  };
  for (size_t i = 0; i < sizeof T / sizeof *T; i++) {
    if (!is(p, T[i].name)) continue;
    *t = (PtxType){T[i].kind, 1, T[i].bits};
    return true;
  }
  return false;
}

static void declare(Parse *p, PtxVar *v) {
  PtxNameEntry *e = names_entry(p->cx, p->m, v->name, strlen(v->name));
  bool again = p->f == NULL && e->var >= 0 && p->m->vars.p[e->var].external;
  if (e->var >= 0 && !again) {
    PtxHidden h = {e->text, e->var};
    vec_push(p->cx, p->m->hidden, h);
  } else if (p->f) {
    PtxHidden h = {e->text, -1};
    vec_push(p->cx, p->m->hidden, h);
  }
  e = names_find(p->m, v->name, strlen(v->name));
  e->var = (int32_t)p->m->vars.n;
  vec_push(p->cx, p->m->vars, *v);
}

static void undeclare(Parse *p, size_t back_to) {
  while (p->m->hidden.n > back_to) {
    PtxHidden h = p->m->hidden.p[--p->m->hidden.n];
    names_find(p->m, h.name, strlen(h.name))->var = h.outer;
  }
}

// Returns the declaration to which a name of n bytes refers, or -1. For a range
// of registers, sets *k to the register's number within the range.
static int32_t lookup(const Parse *p, const char *s, size_t n, uint32_t *k) {
  const PtxNameEntry *e = names_find(p->m, s, n);
  if (e && e->var >= 0 && !p->m->vars.p[e->var].range) {
    *k = 0;
    return e->var;
  }
  size_t digits = 0;
  while (digits < n && s[n - 1 - digits] >= '0' && s[n - 1 - digits] <= '9') {
    digits++;
  }
  if (digits > 8) digits = 8;
  for (size_t d = digits; d > 0; d--) {
    if (s[n - d] == '0' && d > 1) continue;
    e = names_find(p->m, s, n - d);
    if (!e || e->var < 0 || !p->m->vars.p[e->var].range) continue;
    uint32_t at = 0;
    for (size_t i = n - d; i < n; i++) at = at * 10 + (uint32_t)(s[i] - '0');
    if (at >= p->m->vars.p[e->var].count) continue;
    *k = at;
    return e->var;
  }
  return -1;
}

// ---- operands ----

static PtxArg operand(Parse *p);

static bool is_special(const PtxLex *x) {
  static const char *const NAMES[] = {
    "%tid", "%ntid", "%laneid", "%warpid", "%nwarpid", "%ctaid", "%nctaid",
    "%smid", "%nsmid", "%gridid", "%is_explicit_cluster", "%clusterid",
    "%nclusterid", "%cluster_ctaid", "%cluster_nctaid", "%cluster_ctarank",
    "%cluster_nctarank", "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
    "%lanemask_ge", "%lanemask_gt", "%clock", "%clock_hi", "%clock64",
    "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap", "%reserved_smem_offset_0",
    "%reserved_smem_offset_1", "%total_smem_size", "%aggr_smem_size",
    "%dynamic_smem_size", "%current_graph_exec", "WARP_SZ", NULL};
  for (const char *const *n = NAMES; *n; n++) if (lex_is(x, *n)) return true;
  return (x->n > 7 && memcmp(x->at, "%envreg", 7) == 0) ||
         (x->n > 3 && memcmp(x->at, "%pm", 3) == 0);
}

// A list of operands that is being read. The operands are copied to
// PtxModule.args only when the list ends. Thus they are adjacent in
// PtxModule.args, although a list nested in this list is copied earlier.
typedef struct List {
  PtxArg few[16], *p;
  uint32_t n, cap;
} List;

static void list_add(Parse *p, List *l, PtxArg a) {
  if (!l->p) {
    l->p = l->few;
    l->cap = 16;
  }
  if (l->n >= MOST_PARTS) lex_fail(&p->x, "more than %d operands", MOST_PARTS);
  if (l->n == l->cap) {
    PtxArg *bigger = NEW(p->cx, PtxArg, l->cap * 2);
    memcpy(bigger, l->p, l->n * sizeof *l->p);
    l->p = bigger;
    l->cap *= 2;
  }
  l->p[l->n++] = a;
}

// Reads operands up to the mark `close`. The opening mark has been read.
static void list_read(Parse *p, List *l, const char *close) {
  if (++p->depth > DEEPEST) lex_fail(&p->x, "operands nested too deeply");
  while (!is(p, close)) {
    list_add(p, l, operand(p));
    if (!is(p, close)) expect(p, ",", "between operands");
  }
  expect(p, close, "after operands");
  p->depth--;
}

static void list_store(Parse *p, const List *l, uint32_t *at, uint32_t *n) {
  *at = (uint32_t)p->m->args.n;
  *n = l->n;
  for (uint32_t i = 0; i < l->n; i++) vec_push(p->cx, p->m->args, l->p[i]);
}

static PtxArg list_arg(Parse *p, PtxArgKind kind, const char *close) {
  List l = {.n = 0};
  list_read(p, &l, close);
  PtxArg a = {.kind = (uint8_t)kind};
  list_store(p, &l, &a.part, &a.parts);
  return a;
}

static PtxArg named(Parse *p) {
  PtxArg a = {0};
  uint32_t k = 0;
  a.name = ptx_name(p->cx, p->m, p->x.at, p->x.n);
  int32_t var = lookup(p, p->x.at, p->x.n, &k);
  if (p->x.n == 1 && *p->x.at == '_') {
    a.kind = PTX_A_SINK;
  } else if (var >= 0 && p->m->vars.p[var].space == PTX_REG) {
    a.kind = PTX_A_REG;
    a.value = p->m->vars.p[var].reg + k;
  } else if (var >= 0) {
    a.kind = PTX_A_VAR;
    a.value = var;
  } else if (is_special(&p->x)) {
    a.kind = PTX_A_SPECIAL;
  } else if (*p->x.at == '%') {
    lex_fail(&p->x, "register %s is not declared here", a.name);
  } else {
    // the name may be a label, which is resolved after the function is read
    a.kind = PTX_A_FUNC;
    PtxPending later = {p->block, p->x.at_line};
    a.value = (int64_t)p->m->pending.n;
    vec_push(p->cx, p->m->pending, later);
  }
  bool dotted = p->x.p < p->x.end && *p->x.p == '.';
  lex_next(&p->x);
  if (!dotted || p->x.kind != TOK_DIRECTIVE) return a;
  if (a.kind == PTX_A_SPECIAL) {
    char text[64];
    size_t n = strlen(a.name);
    if (n + p->x.n < sizeof text) {
      memcpy(text, a.name, n);
      memcpy(text + n, p->x.at, p->x.n);
      a.name = ptx_name(p->cx, p->m, text, n + p->x.n);
    }
  } else {
    const char *letter = p->x.n == 2 ? strchr("xyzw", p->x.at[1]) : NULL;
    if (!letter) letter = p->x.n == 2 ? strchr("rgba", p->x.at[1]) : NULL;
    if (!letter) {
      lex_fail(&p->x, "'%.*s' is not an element of a vector, such as .x",
               (int)p->x.n, p->x.at);
    }
    a.lane = (uint8_t)(strchr("xrygzbwa", *letter) - "xrygzbwa") / 2 + 1;
  }
  lex_next(&p->x);
  return a;
}

// Reads [base+offset] or [map, {c0, c1}].
static PtxArg address(Parse *p) {
  PtxArg a = {.kind = PTX_A_ADDRESS};
  List l = {.n = 0};
  if (p->x.kind == TOK_NAME) {
    PtxArg base = named(p);
    if (base.kind == PTX_A_FUNC) {
      lex_fail(&p->x, "no variable or register '%s' is declared here",
               base.name);
    }
    if (take(p, "+") || is(p, "-")) a.value = expression(p, 0);
    list_add(p, &l, base);
  } else {
    PtxArg base = {.kind = PTX_A_INT, .value = expression(p, 0)};
    list_add(p, &l, base);
  }
  if (take(p, ",")) list_read(p, &l, "]");
  else expect(p, "]", "after an address");
  list_store(p, &l, &a.part, &a.parts);
  return a;
}

static PtxArg single(Parse *p) {
  if (take(p, "[")) return address(p);
  if (take(p, "{")) {
    if (is(p, "}")) lex_fail(&p->x, "a vector without registers");
    PtxArg a = list_arg(p, PTX_A_VECTOR, "}");
    // {r}, a vector of one register, is the register itself.
    return a.parts == 1 ? p->m->args.p[a.part] : a;
  }
  if (p->x.kind == TOK_NAME) return named(p);
  PtxLex before = p->x;
  bool minus = take(p, "-");
  if (p->x.kind == TOK_FLOAT) {
    PtxArg a = {.kind = PTX_A_FLOAT, .bits = p->x.bits, .value = p->x.value};
    if (minus) a.value = (int64_t)((uint64_t)a.value ^ 1ull << (a.bits - 1));
    lex_next(&p->x);
    return a;
  }
  p->x = before;
  return (PtxArg){.kind = PTX_A_INT, .value = expression(p, 0)};
}

static PtxArg operand(Parse *p) {
  if (is(p, "!") && p->x.p < p->x.end && *p->x.p != '=') {
    lex_next(&p->x);
    if (p->x.kind != TOK_NAME) {
      return (PtxArg){.kind = PTX_A_INT, .value = !primary(p)};
    }
    PtxArg a = named(p);
    a.negated = true;
    return a;
  }
  PtxArg a = single(p);
  if (!is(p, "|")) return a;
  lex_next(&p->x);
  List l = {.n = 0};
  list_add(p, &l, a);
  list_add(p, &l, single(p));
  PtxArg pair = {.kind = PTX_A_PAIR};
  list_store(p, &l, &pair.part, &pair.parts);
  return pair;
}

// ---- variables ----

static uint8_t space_of(const Parse *p) {
  if (is(p, ".reg")) return PTX_REG;
  if (is(p, ".param")) return PTX_PARAM;
  if (is(p, ".shared")) return PTX_SHARED;
  if (is(p, ".global")) return PTX_GLOBAL;
  if (is(p, ".const")) return PTX_CONST;
  if (is(p, ".local")) return PTX_LOCAL;
  return UINT8_MAX;
}

// Reads an initialiser such as `{a, {b, c}}` or `a`. The elements are stored in
// order, and missing elements are zero.
static void initialiser(Parse *p, PtxVar *v) {
  if (take(p, "{")) {
    if (++p->depth > DEEPEST) lex_fail(&p->x, "braces nested too deeply");
    while (!is(p, "}")) {
      initialiser(p, v);
      if (!is(p, "}")) expect(p, ",", "between the elements of an initialiser");
    }
    lex_next(&p->x);
    p->depth--;
    return;
  }
  PtxInit e = {0};
  if (p->x.kind == TOK_NAME) {
    bool generic = is(p, "generic");
    e.symbol = name(p, "a symbol");
    if (generic && take(p, "(")) {
      e.symbol = name(p, "a symbol");
      expect(p, ")", "after generic(");
    }
    if (take(p, "+")) e.value = expression(p, 0);
  } else {
    PtxLex before = p->x;
    bool minus = take(p, "-");
    if (p->x.kind == TOK_FLOAT) {
      uint64_t bits = (uint64_t)p->x.value;
      if (minus) bits ^= 1ull << (p->x.bits - 1);
      if (p->x.bits == 64 && v->type.bits == 32) {
        double d;
        memcpy(&d, &bits, sizeof d);
        float f = (float)d;
        uint32_t w;
        memcpy(&w, &f, sizeof w);
        bits = w;
      }
      e.value = (int64_t)bits;
      lex_next(&p->x);
    } else {
      p->x = before;
      e.value = expression(p, 0);
    }
  }
  vec_push(p->cx, p->m->inits, e);
  v->inits++;
}

// Reads array dimensions such as [4][8] or [].
static void extents(Parse *p, PtxVar *v) {
  while (take(p, "[")) {
    v->array = true;
    int64_t n = is(p, "]") ? 0 : expression(p, 0);
    expect(p, "]", "after an extent");
    if (n < 0 || (n && v->count > ((int64_t)1 << 32) / n)) {
      lex_fail(&p->x, "'%s' has %lld elements", v->name, (long long)n);
    }
    v->count *= n;
  }
}

static void registers(Parse *p, PtxVar *v) {
  if (take(p, "<")) {
    v->range = true;
    v->count = primary(p);  // An expression would treat '>' as an operator.
    if (v->count < 0 || v->count > MOST_REGS) {
      lex_fail(&p->x, "%lld registers are declared; 0 to %d are possible",
               (long long)v->count, MOST_REGS);
    }
    expect(p, ">", "after a number of registers");
  }
  uint32_t first = p->f ? p->f->reg : 0;
  if (p->m->regs.n - first + (uint64_t)v->count > MOST_REGS) {
    lex_fail(&p->x, "more than %d registers", MOST_REGS);
  }
  v->reg = (uint32_t)p->m->regs.n - first;
  for (int64_t i = 0; i < v->count; i++) {
    PtxReg r = {v->type, v->name, v->range ? (int32_t)i : -1};
    vec_push(p->cx, p->m->regs, r);
  }
}

// Reads the attributes and the type of a declaration, up to its first name.
static PtxVar attributes(Parse *p, uint8_t space) {
  PtxVar v = {.space = space, .count = 1, .line = p->x.at_line,
              .ptr_space = PTX_REG};
  uint8_t lanes = 1;
  for (bool typed = false;;) {
    if (take(p, ".align")) {
      v.align = number(p, "an alignment", 1 << 30);
    } else if (take(p, ".v2")) {
      lanes = 2;
    } else if (take(p, ".v4")) {
      lanes = 4;
    } else if (take(p, ".v8")) {
      lanes = 8;
    } else if (take(p, ".ptr")) {
      v.pointer = true;
    } else if (v.pointer && space_of(p) != UINT8_MAX) {
      v.ptr_space = space_of(p);
      lex_next(&p->x);
    } else if (take(p, ".unified") || take(p, ".managed")) {
      continue;
    } else if (take(p, ".attribute")) {
      expect(p, "(", "after .attribute");
      while (!is(p, ")") && p->x.kind != TOK_END) lex_next(&p->x);
      expect(p, ")", "after an attribute");
    } else if (!typed && type_of(p, &v.type)) {
      typed = true;
      lex_next(&p->x);
    } else if (typed) {
      if (v.type.kind == PTX_P && space != PTX_REG) {
        lex_fail(&p->x, "a predicate is a register; it has no place in memory");
      }
      v.type.lanes = lanes;
      return v;
    } else {
      unexpected(p, "a type");
    }
  }
}

static void variables(Parse *p, uint8_t space, bool external) {
  PtxVar shape = attributes(p, space);
  shape.external = external;
  do {
    PtxVar v = shape;
    v.line = p->x.at_line;
    v.name = name(p, "a variable's name");
    if (space == PTX_REG) {
      if (!p->f) lex_fail(&p->x, "a register is declared outside a function");
      registers(p, &v);
    } else {
      extents(p, &v);
      v.init = (uint32_t)p->m->inits.n;
      if (take(p, "=")) initialiser(p, &v);
      if (v.array && v.count == 0) v.count = v.external ? 0 : v.inits;
      if (v.inits > v.count * v.type.lanes) {
        lex_fail(&p->x, "'%s' has %lld elements, but %u initial values", v.name,
                 (long long)(v.count * v.type.lanes), (unsigned)v.inits);
      }
    }
    declare(p, &v);
  } while (take(p, ","));
  expect(p, ";", "after a declaration");
}

// ---- source positions ----

static void file_directive(Parse *p) {
  PtxFile f = {.index = number(p, "a file's number", INT32_MAX)};
  if (p->x.kind != TOK_STRING) lex_fail(&p->x, "a file's name is expected");
  f.name = ptx_name(p->cx, p->m, p->x.at, p->x.n);
  lex_next(&p->x);
  // Skip the time and the size of the file.
  while (take(p, ",")) expression(p, 0);
  vec_push(p->cx, p->m->files, f);
}

static PtxLoc position(Parse *p) {
  PtxLoc l = {0};
  l.file = number(p, "a file's number", INT32_MAX);
  l.line = number(p, "a line", INT32_MAX);
  l.column = number(p, "a column", INT32_MAX);
  return l;
}

// Reads .loc 1 20 3, function_name $L__info0, inlined_at 1 40 5 and the like.
static void loc_directive(Parse *p) {
  // Save this flag now, because the token after .loc may be in an asm block.
  bool in_asm = p->x.in_asm;
  PtxLoc l = position(p);
  while (take(p, ",")) {
    if (take(p, "function_name")) {
      name(p, "a label of .debug_str");
      if (take(p, "+")) expression(p, 0);
    } else if (take(p, "inlined_at")) {
      PtxLoc at = position(p);
      // Find the .loc of the function that contains the call. If that function
      // was also inlined, its .loc names the call of that function.
      for (size_t i = p->m->locs.n; i-- > 0; ) {
        const PtxLoc *o = &p->m->locs.p[i];
        if (o->file == at.file && o->line == at.line &&
            o->column == at.column) {
          at.parent = o->parent;
          break;
        }
      }
      vec_push(p->cx, p->m->locs, at);
      l.parent = (uint32_t)p->m->locs.n;
    } else {
      lex_fail(&p->x, "function_name or inlined_at is expected");
    }
  }
  // Ignore line 0, which means that the line is unchanged. Also ignore lines
  // inside an inline asm block, because compilers count the lines of the asm's
  // text there.
  if (l.line == 0 || in_asm) return;
  vec_push(p->cx, p->m->locs, l);
  p->loc = (uint32_t)p->m->locs.n;
}

// Skips `{ ... }` with data for debuggers.
static void skip_braces(Parse *p) {
  expect(p, "{", "in front of a section");
  for (int depth = 1; depth > 0; lex_next(&p->x)) {
    if (p->x.kind == TOK_END) lex_fail(&p->x, "a section that never ends");
    depth += is(p, "{");
    depth -= is(p, "}");
  }
}

// ---- statements ----

static void label(Parse *p, const char *text) {
  PtxNameEntry *e = names_entry(p->cx, p->m, text, strlen(text));
  for (uint32_t l = e->label; l; l = p->m->labels.p[l - 1].next) {
    if (p->m->labels.p[l - 1].block != p->block) continue;
    lex_fail(&p->x, "label '%s' is already defined at line %u", text,
             (unsigned)p->m->labels.p[l - 1].line);
  }
  PtxLabel l = {.name = text, .at = (uint32_t)p->m->ins.n,
                .line = p->x.at_line, .block = p->block, .next = e->label};
  vec_push(p->cx, p->m->labels, l);
  e->label = (uint32_t)p->m->labels.n;
}

// Reads (result), function, (arguments), prototype.
static void call_operands(Parse *p, List *l) {
  bool first = true;
  while (!is(p, ";")) {
    if (!first) expect(p, ",", "between the operands of a call");
    first = false;
    if (take(p, "(")) list_add(p, l, list_arg(p, PTX_A_LIST, ")"));
    else list_add(p, l, operand(p));
  }
}

static void instruction(Parse *p) {
  PtxIns i = {.guard = -1, .line = p->x.at_line, .loc = p->loc};
  if (take(p, "@")) {
    i.guard_not = take(p, "!");
    bool missing = p->x.kind != TOK_NAME;
    PtxArg g = missing ? (PtxArg){.kind = PTX_A_SINK} : named(p);
    if (g.kind != PTX_A_REG) {
      lex_fail(&p->x, "a predicate is expected after '@'");
    }
    i.guard = (int32_t)g.value;
    if (p->m->regs.p[p->f->reg + (uint32_t)g.value].type.kind != PTX_P) {
      lex_fail(&p->x, "guard '%s' is no predicate", g.name);
    }
  }
  i.line = p->x.at_line;
  if (p->x.kind != TOK_NAME) unexpected(p, "an instruction");
  lex_opcode(&p->x);
  i.op = ptx_name(p->cx, p->m, p->x.at, p->x.n);
  lex_next(&p->x);
  List l = {.n = 0};
  if (strncmp(i.op, "call", 4) == 0) {
    call_operands(p, &l);
  } else {
    while (!is(p, ";")) {
      if (is(p, "}")) expect(p, ";", "after an instruction");
      if (l.n) expect(p, ",", "between operands");
      list_add(p, &l, operand(p));
    }
  }
  expect(p, ";", "after an instruction");
  list_store(p, &l, &i.arg, &i.args);
  vec_push(p->cx, p->m->ins, i);
}

// Reads `.branchtargets`, or skips `.callprototype` or `.calltargets`, up to
// the `;`. `text` is the label in front of the directive.
static void prototype(Parse *p, const char *text) {
  PtxIns i = {.guard = -1, .line = p->x.at_line, .loc = p->loc, .label = text};
  i.op = ptx_name(p->cx, p->m, p->x.at, p->x.n);
  lex_next(&p->x);
  List l = {.n = 0};
  if (strcmp(i.op, ".branchtargets") == 0) {
    do list_add(p, &l, operand(p));
    while (take(p, ","));
  } else {
    while (!is(p, ";") && p->x.kind != TOK_END) lex_next(&p->x);
  }
  expect(p, ";", "after a prototype");
  list_store(p, &l, &i.arg, &i.args);
  vec_push(p->cx, p->m->ins, i);
}

static void body(Parse *p);

static void block(Parse *p) {
  if (++p->depth > DEEPEST) lex_fail(&p->x, "blocks nested too deeply");
  uint32_t outer = p->block;
  p->block = (uint32_t)p->m->parents.n;
  vec_push(p->cx, p->m->parents, outer);
  size_t hidden = p->m->hidden.n;
  body(p);
  undeclare(p, hidden);
  p->block = outer;
  p->depth--;
}

static void directive(Parse *p) {
  uint8_t space = space_of(p);
  if (space != UINT8_MAX) {
    lex_next(&p->x);
    variables(p, space, false);
  } else if (take(p, ".extern")) {
    space = space_of(p);
    if (space == UINT8_MAX) lex_fail(&p->x, "a state space is expected");
    lex_next(&p->x);
    variables(p, space, true);
  } else if (take(p, ".loc")) {
    loc_directive(p);
  } else if (take(p, ".pragma")) {
    while (!is(p, ";") && p->x.kind != TOK_END) lex_next(&p->x);
    expect(p, ";", "after .pragma");
  } else if (take(p, ".file")) {
    file_directive(p);
  } else {
    lex_fail(&p->x, "directive '%.*s' is not known in a function",
             (int)(p->x.n > 60 ? 60 : p->x.n), p->x.at);
  }
}

// Reads statements up to the closing brace.
static void body(Parse *p) {
  for (;;) {
    if (take(p, "}")) return;
    if (p->x.kind == TOK_END) {
      lex_fail(&p->x, "the text ends inside function '%s' of line %u",
               p->f->name, (unsigned)p->f->line);
    }
    if (take(p, ";")) continue;
    if (take(p, "{")) {
      block(p);
    } else if (p->x.kind == TOK_DIRECTIVE) {
      directive(p);
    } else if (p->x.kind == TOK_NAME) {
      const char *q = p->x.p;
      while (q < p->x.end && (*q == ' ' || *q == '\t')) q++;
      bool labelled = q < p->x.end && *q == ':' &&
                      !(q + 1 < p->x.end && q[1] == ':');
      if (!labelled) {
        instruction(p);
        continue;
      }
      const char *text = name(p, "a label");
      expect(p, ":", "after a label");
      if (is(p, ".callprototype") || is(p, ".branchtargets") ||
          is(p, ".calltargets")) {
        prototype(p, text);
      } else {
        label(p, text);
      }
    } else {
      instruction(p);
    }
  }
}

// ---- functions ----

// Resolves names that are not variables. A name is a label of its block, or of
// a block around it. Otherwise it is a function.
static void resolve(Parse *p, size_t args) {
  PtxModule *m = p->m;
  for (size_t i = args; i < m->args.n; i++) {
    PtxArg *a = &m->args.p[i];
    if (a->kind != PTX_A_FUNC) continue;
    PtxPending at = p->m->pending.p[a->value];
    PtxNameEntry *e = names_find(m, a->name, strlen(a->name));
    a->value = -1;
    for (uint32_t b = at.block;; b = p->m->parents.p[b]) {
      uint32_t l = e->label;
      while (l && m->labels.p[l - 1].block != b) l = m->labels.p[l - 1].next;
      if (l) {
        a->kind = PTX_A_LABEL;
        a->value = l - 1;
        break;
      }
      if (b == 0) break;
    }
  }
  for (size_t i = p->f->label; i < m->labels.n; i++) {
    names_find(m, m->labels.p[i].name, strlen(m->labels.p[i].name))->label = 0;
  }
}

static void parameters(Parse *p, uint32_t *first, uint32_t *n) {
  *first = (uint32_t)p->m->vars.n;
  int64_t offset = 0;
  while (!is(p, ")")) {
    uint8_t space = space_of(p);
    if (space != PTX_PARAM && space != PTX_REG) {
      lex_fail(&p->x, "a parameter must begin with .param");
    }
    lex_next(&p->x);
    PtxVar v = attributes(p, space);
    v.name = name(p, "a parameter's name");
    if (space == PTX_REG) {
      registers(p, &v);
    } else {
      extents(p, &v);
      offset = ptx_aligned(&v, offset);
      v.offset = (uint32_t)offset;
      offset += ptx_size(&v);
      if (offset > 1 << 16) {
        lex_fail(&p->x, "parameters of more than %d bytes", 1 << 16);
      }
    }
    declare(p, &v);
    if (!is(p, ")")) expect(p, ",", "between parameters");
  }
  lex_next(&p->x);
  *n = (uint32_t)p->m->vars.n - *first;
}

static void three(Parse *p, uint32_t to[3]) {
  to[0] = to[1] = to[2] = 1;
  for (int i = 0; i < 3; i++) {
    to[i] = number(p, "an extent", INT32_MAX);
    if (!take(p, ",")) return;
  }
}

static void performance(Parse *p, PtxFunc *f) {
  for (;;) {
    if (take(p, ".reqntid")) three(p, f->reqntid);
    else if (take(p, ".maxntid")) three(p, f->maxntid);
    else if (take(p, ".reqnctapercluster")) three(p, f->reqnctapercluster);
    else if (take(p, ".maxnreg")) f->maxnreg = number(p, "registers", 1 << 16);
    else if (take(p, ".minnctapersm"))
      f->minnctapersm = number(p, "blocks", 1 << 16);
    else if (take(p, ".maxnctapersm")) number(p, "blocks", 1 << 16);
    else if (take(p, ".maxclusterrank"))
      f->maxclusterrank = number(p, "blocks", 1 << 16);
    else if (take(p, ".explicitcluster")) f->explicitcluster = true;
    else if (take(p, ".noreturn") || take(p, ".blocksareclusters")) continue;
    else if (take(p, ".abi_preserve") || take(p, ".abi_preserve_control")) {
      number(p, "registers", 1 << 16);
    } else if (take(p, ".pragma")) {
      while (!is(p, ";") && p->x.kind != TOK_END) lex_next(&p->x);
      expect(p, ";", "after .pragma");
    } else {
      return;
    }
  }
}

static void function(Parse *p, bool entry) {
  PtxModule *m = p->m;
  PtxFunc f = {.entry = entry, .line = p->x.at_line,
               .reg = (uint32_t)m->regs.n, .label = (uint32_t)m->labels.n,
               .ins = (uint32_t)m->ins.n};
  size_t hidden = p->m->hidden.n, args = m->args.n;
  p->f = &f;
  f.name = "";
  p->m->parents.n = 0;
  vec_push(p->cx, p->m->parents, 0);
  p->block = 0;
  p->m->pending.n = 0;
  p->loc = 0;
  if (!entry && take(p, "(")) parameters(p, &f.ret, &f.rets);
  f.name = name(p, entry ? "an entry's name" : "a function's name");
  if (take(p, "(")) parameters(p, &f.param, &f.params);
  performance(p, &f);
  f.var = (uint32_t)m->vars.n;
  f.body = take(p, "{");
  if (f.body) {
    body(p);
    f.end = p->x.at_line;
  } else {
    expect(p, ";", "after a declaration");
  }
  f.vars = (uint32_t)m->vars.n - f.var;
  f.n_ins = (uint32_t)m->ins.n - f.ins;
  f.labels = (uint32_t)m->labels.n - f.label;
  f.regs = (uint32_t)m->regs.n - f.reg;
  resolve(p, args);
  undeclare(p, hidden);
  p->f = NULL;
  vec_push(p->cx, m->funcs, f);
}

// ---- the module ----

// Reads a target: sm_90, sm_90a, sm_100f.
static const char *target(Parse *p) {
  static const char what[] = "a target such as sm_90a";
  const char *at = p->x.at;
  size_t n = p->x.n, digits = 0;
  if (p->x.kind != TOK_NAME || n < 5 || memcmp(at, "sm_", 3) != 0) {
    unexpected(p, what);
  }
  while (3 + digits < n && at[3 + digits] >= '0' && at[3 + digits] <= '9') {
    digits++;
  }
  size_t rest = n - 3 - digits;
  bool known = rest == 0 || (rest == 1 && (at[n - 1] == 'a' ||
                                           at[n - 1] == 'f'));
  if (digits < 2 || digits > 3 || !known) unexpected(p, what);
  return name(p, what);
}

static void header(Parse *p) {
  expect(p, ".version", "at the beginning of PTX");
  uint32_t line = p->x.at_line;
  char text[32] = {0};
  if (p->x.n < sizeof text) memcpy(text, p->x.at, p->x.n);
  char *point = strchr(text, '.');
  uint32_t minor = point && point[1] ? (uint32_t)(point[1] - '0') : 0;
  if (p->x.kind != TOK_FLOAT || !point || point[2] || minor > 9) {
    unexpected(p, "a version such as 8.0");
  }
  uint32_t major = 0;
  for (char *c = text; c < point; c++) {
    major = major * 10 + (uint32_t)(*c - '0');
  }
  p->m->version = major * 10 + minor;
  if (p->m->version < OLDEST || p->m->version > NEWEST) {
    p->x.at_line = line;
    lex_fail(&p->x, "PTX version %s is not supported; %d.%d to %d.%d are", text,
             OLDEST / 10, OLDEST % 10, NEWEST / 10, NEWEST % 10);
  }
  lex_next(&p->x);
  expect(p, ".target", "after .version");
  p->m->target = target(p);
  while (take(p, ",")) name(p, "a target's option");
  p->m->address_size = 32;
  if (take(p, ".address_size")) {
    p->m->address_size = number(p, "an address size", 64);
  }
  if (p->m->address_size != 64) {
    lex_fail(&p->x, ".address_size %u is not supported; 64 is needed",
             (unsigned)p->m->address_size);
  }
}

static void top(Parse *p) {
  bool external = false;
  while (is(p, ".visible") || is(p, ".extern") || is(p, ".weak") ||
         is(p, ".common") || is(p, ".internal")) {
    external = external || is(p, ".extern");
    lex_next(&p->x);
  }
  uint8_t space = space_of(p);
  if (take(p, ".entry")) {
    function(p, true);
  } else if (take(p, ".func")) {
    while (take(p, ".attribute")) {
      while (!is(p, ")") && p->x.kind != TOK_END) lex_next(&p->x);
      expect(p, ")", "after an attribute");
    }
    function(p, false);
  } else if (space != UINT8_MAX) {
    lex_next(&p->x);
    variables(p, space, external);
  } else if (take(p, ".file")) {
    file_directive(p);
  } else if (take(p, ".section")) {
    lex_next(&p->x);
    skip_braces(p);
  } else if (take(p, ".pragma") || take(p, ".alias")) {
    while (!is(p, ";") && p->x.kind != TOK_END) lex_next(&p->x);
    expect(p, ";", "after a directive");
  } else {
    lex_fail(&p->x, "'%.*s' is not known at module scope",
             (int)(p->x.n > 60 ? 60 : p->x.n), p->x.at);
  }
}

void ptx_parse(Ctx *cx, PtxModule *m, const char *text, size_t n) {
  Parse p = {.cx = cx, .m = m};
  lex_start(&p.x, cx, text, n);
  // Allocate args.p even if there are no operands.
  vec_reserve(cx, m->args, 1);
  vec_reserve(cx, m->ins, 1);
  header(&p);
  while (p.x.kind != TOK_END) top(&p);
}

void ptx_free(PtxModule *m) {
  vec_free(m->funcs);
  vec_free(m->vars);
  vec_free(m->ins);
  vec_free(m->args);
  vec_free(m->labels);
  vec_free(m->locs);
  vec_free(m->files);
  vec_free(m->regs);
  vec_free(m->inits);
  vec_free(m->hidden);
  vec_free(m->pending);
  vec_free(m->parents);
  names_free(m);
}
// SPDX-License-Identifier: MIT
