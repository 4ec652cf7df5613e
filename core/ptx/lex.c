// lex.c: splits PTX text into tokens, by the PTX ISA's chapter "Syntax".
#include "ptx/lex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lex_fail(const PtxLex *x, const char *fmt, ...) {
  char text[400];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  ctx_fail(x->cx, ERR_PTX, "line %u: %s", (unsigned)x->at_line, text);
}

bool lex_is(const PtxLex *x, const char *text) {
  size_t n = strlen(text);
  return x->kind != TOK_STRING && x->n == n && memcmp(x->at, text, n) == 0;
}

void lex_start(PtxLex *x, Ctx *cx, const char *text, size_t n) {
  *x = (PtxLex){.cx = cx, .p = text, .end = text + n, .line = 1, .at_line = 1};
  lex_next(x);
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_alpha(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool in_name(int c) {
  return is_alpha(c) || is_digit(c) || c == '_' || c == '$';
}
static int hex_digit(int c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static int peek(const PtxLex *x, size_t ahead) {
  return (size_t)(x->end - x->p) > ahead ? (unsigned char)x->p[ahead] : -1;
}

static void skip_comment(PtxLex *x) {
  x->at_line = x->line;
  for (x->p += 2; x->p < x->end; x->p++) {
    if (*x->p == '\n') x->line++;
    if (*x->p == '*' && peek(x, 1) == '/') {
      x->p += 2;
      return;
    }
  }
  x->at = x->p;
  lex_fail(x, "a comment `/*` that never ends");
}

// Marks the text of asm statements: NVVM writes one comment before this text
// and one after it.
static void note_asm(PtxLex *x, const char *s, size_t n) {
  static const char begin[] = "// begin inline asm";
  static const char end[] = "// end inline asm";
  if (n >= sizeof begin - 1 && memcmp(s, begin, sizeof begin - 1) == 0) {
    x->in_asm = true;
  } else if (n >= sizeof end - 1 && memcmp(s, end, sizeof end - 1) == 0) {
    x->in_asm = false;
  }
}

static void skip_blanks(PtxLex *x) {
  while (x->p < x->end) {
    char c = *x->p;
    if (c == '\n') {
      x->line++;
      x->p++;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      x->p++;
    } else if (c == '/' && peek(x, 1) == '/') {
      const char *from = x->p;
      while (x->p < x->end && *x->p != '\n') x->p++;
      note_asm(x, from, (size_t)(x->p - from));
    } else if (c == '/' && peek(x, 1) == '*') {
      skip_comment(x);
    } else {
      return;
    }
  }
}

// Reads a float that is given by its bits, such as 0f3F800000 or
// 0d3FF0000000000000.
static bool hex_float(PtxLex *x) {
  int c = peek(x, 1);
  bool single = c == 'f' || c == 'F';
  if (peek(x, 0) != '0' || !(single || c == 'd' || c == 'D')) return false;
  int digits = single ? 8 : 16;
  uint64_t bits = 0;
  for (int i = 0; i < digits; i++) {
    int d = hex_digit(peek(x, (size_t)i + 2));
    if (d < 0) lex_fail(x, "a float constant 0%c has %d hexadecimal digits",
                        c, digits);
    bits = bits << 4 | (uint64_t)d;
  }
  x->p += digits + 2;
  x->kind = TOK_FLOAT;
  x->value = (int64_t)bits;
  x->bits = single ? 32 : 64;
  return true;
}

static void integer(PtxLex *x) {
  int base = 10;
  if (peek(x, 0) == '0' && (peek(x, 1) | 32) == 'x') base = 16;
  else if (peek(x, 0) == '0' && (peek(x, 1) | 32) == 'b') base = 2;
  else if (peek(x, 0) == '0') base = 8;
  if (base == 16 || base == 2) x->p += 2;
  uint64_t v = 0;
  int n = 0;
  for (;; n++) {
    int d = hex_digit(peek(x, 0));
    if (d < 0 || d >= base) break;
    if (v > (UINT64_MAX - (uint64_t)d) / (uint64_t)base) {
      lex_fail(x, "an integer constant of more than 64 bits");
    }
    v = v * (uint64_t)base + (uint64_t)d;
    x->p++;
  }
  if (n == 0) lex_fail(x, "an integer constant without digits");
  if (peek(x, 0) == 'U') x->p++;
  if (in_name(peek(x, 0))) {
    lex_fail(x, "'%c' does not belong to a number", peek(x, 0));
  }
  x->kind = TOK_INT;
  x->value = (int64_t)v;
}

// Reads a double such as 1.5 or 2e10. The caller has seen a digit.
static bool decimal_float(PtxLex *x) {
  size_t i = 0;
  while (is_digit(peek(x, i))) i++;
  bool point = peek(x, i) == '.' && is_digit(peek(x, i + 1));
  bool power = (peek(x, i) | 32) == 'e' &&
               (is_digit(peek(x, i + 1)) ||
                ((peek(x, i + 1) == '-' || peek(x, i + 1) == '+') &&
                 is_digit(peek(x, i + 2))));
  if (!point && !power) return false;
  if (point) for (i++; is_digit(peek(x, i)); i++) continue;
  if ((peek(x, i) | 32) == 'e') {
    i++;
    if (peek(x, i) == '-' || peek(x, i) == '+') i++;
    while (is_digit(peek(x, i))) i++;
  }
  char text[64];
  if (i >= sizeof text) {
    lex_fail(x, "a float constant of %zu characters is too long", i);
  }
  memcpy(text, x->p, i);
  text[i] = 0;
  double v = strtod(text, NULL);
  x->p += i;
  x->kind = TOK_FLOAT;
  x->bits = 64;
  memcpy(&x->value, &v, sizeof v);
  return true;
}

static void string(PtxLex *x) {
  x->kind = TOK_STRING;
  x->at = ++x->p;
  while (x->p < x->end && *x->p != '"' && *x->p != '\n') x->p++;
  if (peek(x, 0) != '"') lex_fail(x, "a string that never ends");
  x->n = (size_t)(x->p - x->at);
  x->p++;
}

void lex_next(PtxLex *x) {
  skip_blanks(x);
  x->at = x->p;
  x->at_line = x->line;
  int c = peek(x, 0);
  if (c < 0) {
    x->kind = TOK_END;
  } else if (c == '"') {
    string(x);
    return;
  } else if (is_digit(c)) {
    if (!hex_float(x) && !decimal_float(x)) integer(x);
  } else if (is_alpha(c) || c == '_' || c == '$' || c == '%') {
    x->kind = TOK_NAME;
    for (x->p++; in_name(peek(x, 0)); ) x->p++;
  } else if (c == '.' && (is_alpha(peek(x, 1)) || peek(x, 1) == '_')) {
    x->kind = TOK_DIRECTIVE;
    for (x->p++; in_name(peek(x, 0)); ) x->p++;
  } else {
    x->kind = TOK_MARK;
    x->p++;
  }
  x->n = (size_t)(x->p - x->at);
}

void lex_opcode(PtxLex *x) {
  for (;;) {
    int c = peek(x, 0);
    bool scope = c == ':' && peek(x, 1) == ':' && in_name(peek(x, 2));
    if (!scope && !(c == '.' && in_name(peek(x, 1)))) break;
    for (x->p += scope ? 2 : 1; in_name(peek(x, 0)); ) x->p++;
  }
  x->n = (size_t)(x->p - x->at);
}
// SPDX-License-Identifier: MIT
