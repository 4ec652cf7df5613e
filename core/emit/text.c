// Appends to the text that is being written, breaks lines, and reports
// operations that cannot be written.
#include "emit/inside.h"

#include <stdio.h>
#include <string.h>

enum {
  WRAP = 66,             // column after which a list continues on a new line
  FILE_MAX_LENGTH = 100  // maximum length of a file name in a comment
};

void text_puts(Emit *e, const char *s) { buf_puts(e->cx, &e->out->text, s); }

void text_printf(Emit *e, const char *fmt, ...) {
  char few[512], *text = few;
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(few, sizeof few, fmt, ap);
  va_end(ap);
  if (n < 0) return;
  if ((size_t)n >= sizeof few) {
    text = arena_alloc(e->cx, &e->cx->scratch, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
  }
  buf_add(e->cx, &e->out->text, text, (size_t)n);
}

void text_parens(Emit *e, size_t at) {
  Buf *b = &e->out->text;
  buf_puts(e->cx, b, "()");
  memmove(b->p + at + 1, b->p + at, b->n - 2 - at);
  b->p[at] = '(';
}

void text_quoted(Emit *e, char c) {
  if (c == '"' || c == '\\' || c == '?') text_printf(e, "\\%c", c);
  else if (c == '\n') text_puts(e, "\\n");
  else if (c < 32 || c > 126) text_printf(e, "\\%03o", (unsigned char)c);
  else text_printf(e, "%c", c);
}

_Noreturn void text_no_way(Emit *e, const Ins *i, const char *what) {
  ctx_fail(e->cx, ERR_ARCH, "line %u: %s cannot be written in CUDA C for %s on "
           "sm_%d",
           e->fn->src.p[i->src].line, what, dtype_name((DType)i->type),
           e->sm);
}

// ---- lines ----

void text_newline(Emit *e) {
  text_puts(e, "\n");
  vec_push(e->cx, e->out->lines, e->src);
}

void text_indent(Emit *e) { text_printf(e, "%*s", 2 * e->depth, ""); }

void text_end(Emit *e) {
  text_puts(e, ";");
  text_newline(e);
}

void text_wrap(Emit *e, const char *s) {
  const Buf *b = &e->out->text;
  size_t at = b->n;
  while (at && b->p[at - 1] != '\n') at--;
  text_puts(e, s);
  if (b->n - at < WRAP) {
    text_puts(e, " ");
    return;
  }
  text_newline(e);
  text_indent(e);
  text_puts(e, "  ");
}

// Returns a short name of a Lua chunk: "gemm.lua" for "@scripts/gemm.lua",
// "name" for "=name", and "chunk" for others.
static const char *short_file(const char *chunk) {
  if (*chunk == '=') return chunk + 1;
  if (*chunk != '@') return "chunk";
  const char *s = strrchr(chunk, '/');
  return s ? s + 1 : chunk + 1;
}

// Writes a chunk's name in a comment. Replaces characters that could end the
// comment.
static void put_file(Emit *e, const char *s) {
  char name[FILE_MAX_LENGTH];
  size_t n = 0;
  for (; s[n] && n < sizeof name; n++)
    name[n] = s[n] < 32 || s[n] > 126 ? '_' : s[n];
  buf_add(e->cx, &e->out->text, name, n);
}

// Starts the statement of instruction i. If the script line changed, first
// writes a comment with the new line.
void text_begin(Emit *e, const Ins *i) {
  e->src = i->src;
  if (i->src && i->src != e->told) {
    const Src *s = &e->fn->src.p[i->src];
    text_indent(e);
    text_puts(e, "// ");
    put_file(e, short_file(ir_str(e->fn, s->file)));
    text_printf(e, ":%u", s->line);
    text_newline(e);
    e->told = i->src;
  }
  text_indent(e);
}
// SPDX-License-Identifier: MIT
