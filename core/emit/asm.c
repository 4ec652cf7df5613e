// Builds device functions that consist of one asm statement: parameters,
// outputs, inputs and PTX.
#include "emit/asm.h"

#include <string.h>

#define HEAD "static __device__ __forceinline__ "

static void add(AsmFn *f, Buf *list, const char *item) {
  if (list->n) buf_puts(f->e->cx, list, f->line ? ",\n    " : ", ");
  buf_puts(f->e->cx, list, item);
  f->line = false;
}

void asm_param(AsmFn *f, const char *type, const char *name) {
  add(f, &f->params, arena_printf(f->e->cx, &f->e->cx->scratch, "%s%s%s", type,
                                  type[strlen(type) - 1] == '*' ? "" : " ",
                                  name));
}

void asm_registers(AsmFn *f, bool refs, bool out, const char *type,
                   const char *name, int n) {
  const char *konst = out ? "" : "const ";
  if (!refs) asm_param(f, PTX(f->e, "%s%s *", konst, type), name);
  for (int k = 0; refs && k < n; k++)
    asm_param(f, type, PTX(f->e, "%s%s%d", out ? "&" : "", name, k));
}

int asm_out(AsmFn *f, const char *constraint, const char *variable) {
  add(f, &f->out, arena_printf(f->e->cx, &f->e->cx->scratch, "\"%s\"(%s)",
                               constraint, variable));
  return f->n++;
}

int asm_in(AsmFn *f, char constraint, const char *value) {
  add(f, &f->in, arena_printf(f->e->cx, &f->e->cx->scratch, "\"%c\"(%s)",
                              constraint, value));
  return f->n++;
}

int asm_arg(AsmFn *f, const char *type, const char *name, char constraint) {
  asm_param(f, type, name);
  return asm_in(f, constraint, name);
}

// Writes a comma-separated list, with line breaks before column 80. The list
// starts at column `at`, and `line` starts each further line.
static void put_list(Emit *e, const char *s, size_t at, const char *line) {
  for (size_t n; *s; s += n) {
    n = strcspn(s, ",") + 1;  // length of the next item, with its comma
    if (!s[n - 1]) n--;
    if (at + n > 76) {
      text_puts(e, line);
      at = strlen(line);
      while (*s == ' ') s++, n--;
    }
    text_puts(e, arena_printf(e->cx, &e->cx->scratch, "%.*s", (int)n, s));
    at += n;
  }
}

static const char *chars(const Buf *b) { return b->n ? b->p : ""; }

void asm_head(AsmFn *f) {
  Emit *e = f->e;
  size_t n = strlen(HEAD) + strlen(f->result) + 1 + strlen(f->name) +
             f->params.n + 4;
  bool split = f->lines == ASM_SPLIT || (f->lines == ASM_FITS && n > 80);
  text_printf(e, "%s" HEAD "%s%s%s(%s", f->over ? f->over : "", f->result,
              f->apart ? "\n" : " ", f->name, split ? "\n    " : "");
  if (split && f->lines == ASM_FITS)
    put_list(e, chars(&f->params), 4, "\n    ");
  else text_puts(e, chars(&f->params));
  text_puts(e, ") {\n");
}

void asm_statement(AsmFn *f, const char *ptx, const char *operands) {
  Emit *e = f->e;
  text_printf(e, "  %sasm%s(%s", f->before ? f->before : "",
              f->movable ? "" : " volatile", ptx);
  for (const char *s = operands; *s; s++) {
    if (*s != '$') {
      text_printf(e, "%c", *s);
    } else if (*++s == 'o') {
      text_puts(e, chars(&f->out));
    } else if (*s == 'i') {
      text_puts(e, chars(&f->in));
    } else {
      put_list(e, chars(&f->in), 9, "\n         ");
    }
  }
  text_puts(e, ");\n");
  buf_free(&f->out);
  buf_free(&f->in);
}

void asm_print(AsmFn *f, const char *ptx, const char *operands) {
  asm_head(f);
  if (f->r) text_printf(f->e, "  %s r;\n", f->r);
  asm_statement(f, ptx, operands);
  if (f->after) text_puts(f->e, f->after);
  text_puts(f->e, "}\n");
  buf_free(&f->params);
}

// ---- lists of registers ----

// Appends an item to a list. *from is the position at which the list's current
// line begins. After column 66, the list continues on a new line, which starts
// with `line`.
static const char *join(Emit *e, size_t *from, const char *list,
                        const char *item, const char *line) {
  if (!*list) return item;
  bool full = strlen(list) + 1 - *from > 66;
  list = PTX(e, "%s,%s", list, full ? line : " ");
  if (full) *from = strlen(list);
  return PTX(e, "%s%s", list, item);
}

const char *asm_braces(Emit *e, int n, int *at) {
  size_t from = 0;
  const char *s = "";
  for (int k = 0; k < n; k++)
    s = join(e, &from, s, PTX(e, "%s%%%d", k ? "" : "{", (*at)++),
             " \"\n      \"");
  return PTX(e, "%s}", s);
}

const char *asm_constraints(Emit *e, bool refs, const char *mode, char c,
                            const char *name, int n) {
  const char *each = refs ? "\"%s%c\"(%s%d)" : "\"%s%c\"(%s[%d])";
  size_t from = 0;
  const char *s = "";
  for (int k = 0; k < n; k++)
    s = join(e, &from, s, PTX(e, each, mode, c, name, k), "\n        ");
  return s;
}
// SPDX-License-Identifier: MIT
