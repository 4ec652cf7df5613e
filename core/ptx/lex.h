// Tokens of PTX.
#ifndef PTX_LEX_H
#define PTX_LEX_H

#include "base/base.h"

typedef enum PtxToken {
  TOK_END,
  TOK_NAME,       // identifiers, with a leading % or $: %r1, $L__BB0_2
  TOK_DIRECTIVE,  // .reg, with its point
  TOK_INT,
  TOK_FLOAT,      // `value` holds its bits; `bits` is their number, 32 or 64
  TOK_STRING,
  TOK_MARK        // one character of punctuation
} PtxToken;

typedef struct PtxLex {
  Ctx *cx;
  const char *p, *end;
  uint32_t line;       // number of the line at p
  bool in_asm;         // between `// begin inline asm` and `// end inline asm`
  // the current token
  PtxToken kind;
  // text of the current token, n bytes long; without quotes if it is a string
  const char *at;
  size_t n;
  uint32_t at_line;
  int64_t value;
  uint8_t bits;
} PtxLex;

void lex_start(PtxLex *x, Ctx *cx, const char *text, size_t n);
// Reads the next token. An opcode such as `ld.global.u32` is a name followed by
// directives. lex_opcode reads both.
void lex_next(PtxLex *x);
// Extends the current name by the modifiers that follow it without a blank.
void lex_opcode(PtxLex *x);
bool lex_is(const PtxLex *x, const char *text);
_Noreturn void lex_fail(const PtxLex *x, const char *fmt, ...)
  PRINTF_LIKE(2, 3);

#endif
// SPDX-License-Identifier: MIT
