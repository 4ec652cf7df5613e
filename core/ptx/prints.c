// prints.c: calls of vprintf and __assertfail. While the function is copied,
// the texts that these calls print are found. To find a text, follows the
// instructions that compute its address.
#include <stdio.h>
#include <string.h>

#include "ptx/calls.h"

enum { MOST_TEXT = 4096, MOST_VALUES = 32, DEEPEST = 64 };

// ---- constant addresses ----

// A constant: the address of byte `off` of variable `var` or, with var = -1,
// the number `off`.
typedef struct Known {
  int64_t var, off;
} Known;

static bool known(const PtxCopy *x, const PtxArg *a, int depth, Known *k);

static bool begins(const char *op, const char *name) {
  return strncmp(op, name, strlen(name)) == 0;
}

// Returns the only instruction that defines register r. Returns NULL if several
// instructions define r, or if the definition is guarded or also writes other
// registers.
static const PtxIns *definition(const PtxCopy *x, int64_t r) {
  uint32_t at = r < x->defs ? x->def[r] : 0;
  if (at == 0 || at == SEVERAL) return NULL;
  const PtxIns *i = &x->m->ins.p[at - 1];
  bool plain = x->m->args.p[i->arg].kind == PTX_A_REG && i->guard < 0;
  return plain ? i : NULL;
}

// Returns the value that is stored to the whole .param variable v. Returns NULL
// if there are several stores, or if the value is unknown.
static const PtxArg *passed(const PtxCopy *x, int64_t v) {
  const PtxModule *m = x->m;
  const PtxArg *found = NULL;
  for (size_t k = x->out.ins; k < m->ins.n; k++) {
    const PtxIns *i = &m->ins.p[k];
    const PtxArg *a = &m->args.p[i->arg];
    if (!begins(i->op, "st.param") || i->args != 2) continue;
    const PtxArg *base = &m->args.p[a->part];
    if (a->kind != PTX_A_ADDRESS || base->kind != PTX_A_VAR ||
        base->value != v) {
      continue;
    }
    if (found || a->value || i->guard >= 0) return NULL;
    found = &a[1];
  }
  return found;
}

static bool known_result(const PtxCopy *x, const PtxIns *i, int depth,
                         Known *k) {
  const PtxArg *a = &x->m->args.p[i->arg];
  if ((begins(i->op, "mov.") || begins(i->op, "cvta.")) && i->args == 2) {
    return known(x, &a[1], depth, k);
  }
  if (begins(i->op, "ld.param") && i->args == 2) {
    const PtxArg *base = &x->m->args.p[a[1].part];
    bool whole = a[1].kind == PTX_A_ADDRESS && a[1].value == 0;
    return whole && base->kind == PTX_A_VAR && known(x, base, depth, k);
  }
  if (!begins(i->op, "add.") || i->args != 3) return false;
  Known by;
  if (!known(x, &a[1], depth, k) || !known(x, &a[2], depth, &by)) return false;
  if (by.var >= 0 && k->var >= 0) return false;
  if (by.var >= 0) k->var = by.var;
  k->off += by.off;
  return true;
}

static bool known(const PtxCopy *x, const PtxArg *a, int depth, Known *k) {
  if (++depth > DEEPEST) return false;
  if (a->kind == PTX_A_INT) {
    *k = (Known){-1, a->value};
    return true;
  }
  if (a->kind == PTX_A_REG) {
    const PtxIns *i = definition(x, a->value);
    return i && known_result(x, i, depth, k);
  }
  if (a->kind != PTX_A_VAR) return false;
  if (x->m->vars.p[a->value].space == PTX_PARAM) {
    const PtxArg *v = passed(x, a->value);
    return v && known(x, v, depth, k);
  }
  *k = (Known){a->value, 0};
  return true;
}

// Returns the text at address a, or NULL if a is not the constant address of an
// array of bytes that holds a text.
static const char *text_at(PtxCopy *x, const PtxArg *a) {
  Known k;
  if (!known(x, a, 0, &k) || k.var < 0) return NULL;
  const PtxVar *v = &x->m->vars.p[k.var];
  bool bytes = (v->space == PTX_GLOBAL || v->space == PTX_CONST) &&
               v->type.bits == 8 && k.off >= 0 && k.off <= v->count;
  if (!bytes) return NULL;
  char out[MOST_TEXT];
  size_t n = 0;
  for (int64_t at = k.off; at < v->inits && n < sizeof out - 1; at++) {
    const PtxInit *e = &x->m->inits.p[v->init + at];
    if (e->symbol) return NULL;
    if (!(char)e->value) break;
    out[n++] = (char)e->value;
  }
  return ptx_name(x->b.cx, x->m, out, n);
}

// Returns the text at a constant address, or NULL. Instructions that are copied
// later may change the address; prints_check tests this.
static const char *constant_text(PtxCopy *x, const PtxArg *a) {
  PtxText t = {*a, text_at(x, a), x->b.at};
  if (!t.text) return NULL;
  if (x->texts == x->text_cap) {
    uint32_t more = x->text_cap * 2 + 16;
    PtxText *bigger = NEW(x->b.cx, PtxText, more);
    if (x->texts) memcpy(bigger, x->text, x->texts * sizeof *bigger);
    x->text = bigger;
    x->text_cap = more;
  }
  x->text[x->texts++] = t;
  return t.text;
}

void prints_check(PtxCopy *x) {
  for (uint32_t k = 0; k < x->texts; k++) {
    const PtxText *t = &x->text[k];
    if (text_at(x, &t->a) == t->text) continue;
    x->b.at = t->at;
    ptx_fail(&x->b, "printf: a string must be a constant");
  }
}

// Returns the selp that selects one of two addresses for operand a, or NULL if
// there is none.
static const PtxIns *selection(const PtxCopy *x, const PtxArg *a, int depth) {
  if (++depth > DEEPEST) return NULL;
  const PtxModule *m = x->m;
  if (a->kind == PTX_A_VAR && m->vars.p[a->value].space == PTX_PARAM) {
    const PtxArg *v = passed(x, a->value);
    return v ? selection(x, v, depth) : NULL;
  }
  const PtxIns *i = a->kind == PTX_A_REG ? definition(x, a->value) : NULL;
  if (!i) return NULL;
  const PtxArg *b = &m->args.p[i->arg];
  if (begins(i->op, "selp.") && i->args == 4) {
    return b[3].kind == PTX_A_REG ? i : NULL;
  }
  if ((begins(i->op, "mov.") || begins(i->op, "cvta.")) && i->args == 2) {
    return selection(x, &b[1], depth);
  }
  if (!begins(i->op, "ld.param") || b[1].kind != PTX_A_ADDRESS || b[1].value) {
    return NULL;
  }
  return selection(x, &m->args.p[b[1].part], depth);
}

static PtxArg text_arg(PtxCopy *x, const char *text) {
  return (PtxArg){.kind = PTX_A_SINK,
                  .name = ptx_name(x->b.cx, x->m, text, strlen(text))};
}

// ---- printf ----

// A printf that is being translated. It becomes an instruction .print with a
// text and values.
typedef struct Print {
  PtxCopy *x;
  PtxArg buffer;      // address of the values
  int64_t at;         // bytes of the buffer that were read
  char text[MOST_TEXT];
  size_t n;
  PtxArg value[MOST_VALUES + 1];  // the text, then the values
  uint32_t values;
  // chosen: whether a text depends on a predicate, whose register is `by`.
  // otherwise: whether the current text is the one for a false predicate.
  bool chosen, otherwise;
  int64_t by;
} Print;

// Returns the text at address a, or NULL. If a selp chooses the address,
// returns one of the two texts (p->otherwise selects it). All texts of one
// printf must depend on the same predicate.
static const char *text_of(Print *p, const PtxArg *a) {
  const char *text = constant_text(p->x, a);
  const PtxIns *i = text ? NULL : selection(p->x, a, 0);
  if (!i) return text;
  const PtxArg *b = &p->x->m->args.p[i->arg];
  if (p->chosen && p->by != b[3].value) return NULL;
  p->chosen = true;
  p->by = b[3].value;
  return constant_text(p->x, &b[p->otherwise ? 2 : 1]);
}

static void put(Print *p, const char *s, size_t n) {
  if (p->n + n >= sizeof p->text) {
    ptx_fail(&p->x->b, "the format of printf has more than %d bytes",
             MOST_TEXT - 1);
  }
  memcpy(p->text + p->n, s, n);
  p->n += n;
}

// Appends a text to the format p->text, with each % doubled.
static void put_literal(Print *p, const char *s) {
  for (; *s; s++) put(p, *s == '%' ? "%%" : s, *s == '%' ? 2 : 1);
}

// Loads the next value from the printf's buffer to a register.
static void load(Print *p, PtxType t) {
  int64_t bytes = t.bits / 8;
  p->at = (p->at + bytes - 1) / bytes * bytes;
  if (p->values == MOST_VALUES) {
    ptx_fail(&p->x->b, "printf of more than %d values", MOST_VALUES);
  }
  if (p->buffer.kind == PTX_A_INT) {
    ptx_fail(&p->x->b, "a value of printf is missing");
  }
  PtxArg r = copy_register(p->x, t);
  const PtxArg a[2] = {r, copy_address(p->x, p->buffer, p->at)};
  const char *op = t.kind == PTX_F ? "ld.f64" : t.bits == 64 ? "ld.b64"
                                                             : "ld.b32";
  copy_push(p->x, op, a, 2);
  p->value[++p->values] = r;
  p->at += bytes;
}

// Returns the register or number that the last store wrote to byte p->at of the
// printf's buffer, or NULL if it is not known.
static const PtxArg *stored(const Print *p) {
  const PtxModule *m = p->x->m;
  Known buffer, at;
  if (!known(p->x, &p->buffer, 0, &buffer) || buffer.var < 0) return NULL;
  for (size_t k = m->ins.n; k-- > p->x->out.ins; ) {
    const PtxIns *i = &m->ins.p[k];
    const PtxArg *a = &m->args.p[i->arg];
    if (!begins(i->op, "st.") || begins(i->op, "st.param") || i->args != 2 ||
        a->kind != PTX_A_ADDRESS) {
      continue;
    }
    if (!known(p->x, &m->args.p[a->part], 0, &at)) continue;
    int64_t off = buffer.off + p->at - at.off - a->value;
    if (at.var != buffer.var || off < 0) continue;
    if (a[1].kind != PTX_A_VECTOR && off == 0) return &a[1];
    bool part = a[1].kind == PTX_A_VECTOR && off % 8 == 0 &&
                off / 8 < a[1].parts && strstr(i->op, "64");
    if (part) return &m->args.p[a[1].part + off / 8];
  }
  return NULL;
}

static void put_text(Print *p, const char *spec, size_t n) {
  char how[32], out[MOST_TEXT];
  p->at = (p->at + 7) / 8 * 8;
  const PtxArg *a = stored(p);
  const char *text = a ? text_of(p, a) : NULL;
  if (!text) {
    ptx_fail(&p->x->b, "printf: the string for %%s must be a constant");
  }
  memcpy(how, spec, n);
  how[n] = 0;
  snprintf(out, sizeof out, how, text);
  put_literal(p, out);
  p->at += 8;
}

// Translates the format's conversion, such as %d, that begins at s. Returns its
// end.
static const char *conversion(Print *p, const char *s) {
  const char *e = s + 1;
  e += strspn(e, "-+ #0");
  e += strspn(e, "0123456789");
  if (*e == '.') e += 1 + strspn(e + 1, "0123456789");
  size_t n = (size_t)(e - s);
  const char *length = e;
  e += strspn(e, "hlqjztL");
  bool wide = e > length && *length != 'h' && *length != 'L';
  if (!*e || !strchr("diuxXocspfFgGeEaA", *e) || n > 24) {
    ptx_fail(&p->x->b, "printf: '%.*s' is not modelled",
             (int)(e - s + (*e != 0)), s);
  }
  char letter[4] = {*e, 0};
  char how[32];
  memcpy(how, s, n);
  how[n] = 's';
  if (*e == 's') {
    put_text(p, how, n + 1);
  } else if (*e == 'p') {
    put(p, "0x%llx", 6);
    load(p, (PtxType){PTX_U, 1, 64});
  } else if (strchr("fFgGeEaA", *e)) {
    put(p, s, n);
    put(p, letter, 1);
    load(p, (PtxType){PTX_F, 1, 64});
  } else {
    put(p, s, n);
    if (wide) put(p, "ll", 2);
    put(p, letter, 1);
    bool sign = *e == 'd' || *e == 'i' || *e == 'c';
    load(p, (PtxType){sign ? PTX_S : PTX_U, 1, wide ? 64 : 32});
  }
  return e + 1;
}

// Emits the .print of format s. Its values are in the printf's buffer.
static void print(Print *p, const char *s) {
  while (*s) {
    size_t plain = strcspn(s, "%");
    put(p, s, plain);
    s += plain;
    if (s[0] == '%' && s[1] == '%') {
      put(p, s, 2);
      s += 2;
    } else if (*s) {
      s = conversion(p, s);
    }
  }
  p->text[p->n] = 0;
  p->value[0] = text_arg(p->x, p->text);
  copy_push(p->x, ".print", p->value, p->values + 1);
  if (!p->chosen) return;
  PtxIns *i = &p->x->m->ins.p[p->x->m->ins.n - 1];
  i->guard = (int32_t)p->by;
  i->guard_not = p->otherwise;
}

// Returns the address of the values as a register, or the number 0.
static PtxArg buffer_of(PtxCopy *x, PtxArg a) {
  Known k;
  if (known(x, &a, 0, &k) && k.var < 0) return (PtxArg){.kind = PTX_A_INT};
  if (a.kind != PTX_A_VAR) return a;
  PtxArg r = copy_register(x, (PtxType){PTX_B, 1, 64});
  const PtxArg load[2] = {r, copy_address(x, a, 0)};
  copy_push(x, "ld.param.b64", load, 2);
  return r;
}

void prints_call(PtxCopy *x, const PtxArg *p) {
  PtxArg buffer = buffer_of(x, p[1]);
  Print *out = NEW(x->b.cx, Print, 1);
  bool again = false;
  for (int side = 0; side < 1 + again; side++) {
    *out = (Print){.x = x, .buffer = buffer, .otherwise = side == 1};
    const char *s = text_of(out, &p[0]);
    if (!s) ptx_fail(&x->b, "printf: the format must be a constant");
    print(out, s);
    again = out->chosen;
  }
}

// ---- assert ----

void prints_assert(PtxCopy *x, const PtxArg *p) {
  const char *what = text_at(x, &p[0]), *file = text_at(x, &p[1]);
  const char *where = text_at(x, &p[3]);
  Known line;
  char out[MOST_TEXT];
  int at = snprintf(out, sizeof out, "%s", what ? what : "");
  if (file && known(x, &p[2], 0, &line) && line.var < 0) {
    size_t left = sizeof out - (size_t)(at < MOST_TEXT ? at : MOST_TEXT - 1);
    snprintf(out + (sizeof out - left), left, " (%s:%lld%s%s)", file,
             (long long)line.off, where ? ", in " : "", where ? where : "");
  }
  const PtxArg a[2] = {{.kind = PTX_A_INT}, text_arg(x, out)};
  copy_push(x, ".check", a, 2);
}
// SPDX-License-Identifier: MIT
