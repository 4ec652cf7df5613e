// Writes the helper functions that precede the kernel: those blocks of
// prelude*.cu that the kernel needs.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "emit/expr.h"

typedef struct Block {
  const char *name, *text;  // name of the helper function, and its CUDA C
} Block;

static const Block blocks[H_COUNT] = {
#define HELPER(id, name, text) {name, text},
#include "emit/prelude.inc"
#undef HELPER
};

const char *helper_use(Emit *e, Helper h) {
  e->helper[h] = true;
  return blocks[h].name;
}

// ---- the text of a helper for one target ----

static bool starts(const char *s, const char *with) {
  return strncmp(s, with, strlen(with)) == 0;
}

// Evaluates the condition of an #if in a helper for target sm: 0 or 1. Returns
// -1 if it depends on chip- or family-specific features, which only the CUDA
// compiler knows. Below sm_100, the only such condition tests for sm_90a and
// begins with ==.
static int holds(const char *line, int sm) {
  int arch;
  if (sscanf(line, "#if __CUDA_ARCH__ >= %d", &arch) == 1)
    return sm * 10 >= arch;
  if (sscanf(line, "#if __CUDA_ARCH__ == %d", &arch) == 1 && sm * 10 == arch)
    return 1;
  return sm < 100 ? 0 : -1;
}

// Returns s without the branches of #if that target sm does not take. #if must
// not nest.
static const char *text_for(Emit *e, const char *s) {
  char *text = NEW(e->cx, char, strlen(s) + 1), *to = text;
  bool decided = false, keep = true;
  for (const char *end; *s; s = end) {
    end = strchr(s, '\n') + 1;
    if (starts(s, "#if")) {
      int h = holds(s, e->sm);
      decided = h >= 0;
      keep = h != 0;
    }
    if (keep && !(decided && *s == '#'))
      while (s < end) *to++ = *s++;
    else if (starts(s, "#else"))
      keep = !keep;
    else if (starts(s, "#endif"))
      keep = true;
  }
  *to = 0;
  return text;
}

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

void helper_note(Emit *e, const char *text, const char *own) {
  for (const char *p = text; (p = strchr(p, '(')); p++) {
    const char *from = p;
    while (from > text && in_name(from[-1])) from--;
    size_t n = (size_t)(p - from);
    for (int h = 0; h < H_COUNT; h++) {
      const char *name = blocks[h].name;
      if (*name == *from && strncmp(name, from, n) == 0 && !name[n] &&
          strcmp(name, own) != 0)
        e->helper[h] = true;
    }
  }
}

void helper_reserve(Emit *e) {
  for (int h = 0; h < H_COUNT; h++) names_reserve(e, blocks[h].name);
}

void helper_print(Emit *e) {
  const char *text[H_COUNT] = {0};
  // Visit a helper before the helpers that it calls, because the text lists
  // called helpers first.
  for (int h = H_COUNT; h-- > 0;) {
    if (!e->helper[h]) continue;
    text[h] = text_for(e, blocks[h].text);
    helper_note(e, text[h], blocks[h].name);
  }
  for (int h = 0; h < H_COUNT; h++)
    if (text[h]) text_puts(e, text[h]);
}
// SPDX-License-Identifier: MIT
