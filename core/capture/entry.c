// Parses PTX text: finds an entry and reads its parameters, and the names of
// the module's variables.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "capture/inside.h"

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

// Returns the position after blanks and comments at s.
static const char *skip(const char *s) {
  for (;;) {
    while (isspace((unsigned char)*s)) s++;
    if (s[0] == '/' && s[1] == '/') {
      while (*s && *s != '\n') s++;
    } else if (s[0] == '/' && s[1] == '*') {
      s = strstr(s, "*/");
      if (!s) return "";
      s += 2;
    } else {
      return s;
    }
  }
}

// Reads a token: a word, or one other character. Returns the position after the
// token. At the end of the text, the token is empty.
static const char *token(const char *s, char out[NAME]) {
  size_t n = 0;
  s = skip(s);
  if (*s && !is_word(*s)) out[n++] = *s++;
  else
    for (; is_word(*s); s++)
      if (n < NAME - 1) out[n++] = *s;
  out[n] = 0;
  return s;
}

const char *entry_find(const char *ptx, const char *name) {
  size_t n = strlen(name);
  for (const char *s = ptx; (s = strstr(s, ".entry")); s++) {
    const char *at = skip(s + 6);
    if (strncmp(at, name, n) == 0 && !is_word(at[n])) return skip(at + n);
  }
  return NULL;
}

// Completes a parameter that is an array of `count` elements. p->size is the
// size of one element before the call, and of the array after it. Aligns the
// parameter's offset, and moves *offset past it. Returns false if the size is 0
// or the count is too large.
static bool finish(Param *p, size_t count, size_t *offset) {
  if (!p->size || count > (1 << 16)) return false;
  if (!p->align) p->align = p->size;
  p->size *= count;
  *offset = (*offset + p->align - 1) / p->align * p->align;
  p->offset = *offset;
  *offset += p->size;
  return true;
}

// Sets the kind and the size of p from a PTX type such as ".u32" or ".b8".
// Returns false if the word is not such a type.
static bool type_of(const char *word, Param *p) {
  const char *kind = word[0] == '.' ? strchr("usbf", word[1]) : NULL;
  char *end;
  if (!kind || !word[1] || !isdigit((unsigned char)word[2])) return false;
  long bits = strtol(word + 2, &end, 10);
  if (*end || bits < 8 || bits > 128 || bits & (bits - 1)) return false;
  p->kind = word[1], p->size = (size_t)bits / 8;
  return true;
}

// An .align after .ptr is the alignment of the memory to which the parameter
// points, not of the parameter itself.
int entry_params(const char *ptx, const char *name, Param out[PARAMS]) {
  const char *s = entry_find(ptx, name);
  char word[NAME];
  size_t offset = 0, count = 1;
  int n = 0;
  bool pointer = false;
  Param p = {0};
  if (!s || *s != '(') return s ? 0 : -1;
  s++;
  for (;;) {
    s = token(s, word);
    if (!*word || n == PARAMS) return -1;
    if (*word == ',' || *word == ')') {
      if (!p.size && *word == ')' && n == 0) return 0;
      if (!finish(&p, count, &offset)) return -1;
      out[n++] = p;
      if (*word == ')') return n;
      p = (Param){0}, count = 1, pointer = false;
    } else if (strcmp(word, ".align") == 0) {
      s = token(s, word);
      size_t align = strtoul(word, NULL, 10);
      if (!align || align > 4096 || align & (align - 1)) return -1;
      if (!pointer) p.align = align;
    } else if (strcmp(word, ".ptr") == 0) {
      pointer = true;
    } else if (*word == '[') {
      s = token(s, word);
      count = strtoul(word, NULL, 10);
      p.array = true;
    } else if (!p.size) {
      type_of(word, &p);
    }
  }
}

void entry_variables(const char *ptx, void (*use)(const char *name, void *data),
                     void *data) {
  char word[NAME], last[NAME] = "";
  int depth = 0;
  bool variable = false, named = false;
  for (const char *s = token(ptx, word); *word; s = token(s, word)) {
    if (strchr("{(", *word)) depth++;
    if (strchr("})", *word)) depth--;
    bool end = depth == 0 && strchr(";}", *word);
    if (variable && !named && (strchr("[=", *word) || end)) {
      if (*last) use(last, data);
      named = true;
    }
    if (depth > 0) continue;
    if (end) variable = named = false;
    if (!strcmp(word, ".global") || !strcmp(word, ".const")) variable = true;
    if (is_word(*word) && *word != '.') strcpy(last, word);
    if (!strcmp(word, ".func") || !strcmp(word, ".entry") || end) *last = 0;
  }
}
// SPDX-License-Identifier: MIT
