// Makes external text safe to show: escapes control characters, characters that
// change the direction of text, and bytes that are not UTF-8.
#include "bind/face.h"

#include <stdio.h>
#include <string.h>

// Returns the length of the UTF-8 sequence at the beginning of the n bytes at
// s, and sets *code to its code point. Returns 0 if it is not valid.
static size_t sequence(const unsigned char *s, size_t n, uint32_t *code) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  size_t k = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3
           : s[0] >> 3 == 30 ? 4 : 0;
  if (k == 0 || k > n) return 0;
  uint32_t c = k == 1 ? s[0] : s[0] & (0x7fu >> k);
  for (size_t i = 1; i < k; i++) {
    if (s[i] >> 6 != 2) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  *code = c;
  bool surrogate = c >= 0xd800 && c <= 0xdfff;
  return c < least[k] || c > 0x10ffff || surrogate ? 0 : k;
}

// Reports whether a terminal treats the character as a command, or shows the
// characters after it in another direction.
static bool commands(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
         c == 0x061c || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

static void add_visible(luaL_Buffer *b, const char *s, size_t k, uint32_t c) {
  char text[16];
  if (c == '\n') luaL_addstring(b, "\\n");
  else if (c == '\t') luaL_addstring(b, "\\t");
  else if (c == '\r') luaL_addstring(b, "\\r");
  else {
    if (k == 0 || c < 0x80)
      snprintf(text, sizeof text, "\\x%02x", (unsigned char)*s);
    else
      snprintf(text, sizeof text, "\\u{%x}", (unsigned)c);
    luaL_addstring(b, text);
  }
}

void face_push_visible(lua_State *L, const char *s, size_t n, bool lines) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (const char *end = s + n; s < end;) {
    uint32_t c = 0;
    size_t k = sequence((const unsigned char *)s, (size_t)(end - s), &c);
    bool plain = k && (!commands(c) || (lines && (c == '\n' || c == '\t')));
    if (plain) luaL_addlstring(&b, s, k);
    else add_visible(&b, s, k, c);
    s += k ? k : 1;
  }
  luaL_pushresult(&b);
}

// Maximum bytes of a line in a message. Only the first LINE_HEAD and the last
// LINE_TAIL bytes of a longer line are shown.
enum { LINE_MOST = 2000, LINE_HEAD = 1500, LINE_TAIL = 400 };

// Returns the index of the first byte of the UTF-8 sequence that contains s[i].
static size_t letter_at(const char *s, size_t i) {
  while (i > 0 && (s[i] & 0xc0) == 0x80) i--;
  return i;
}

void face_push_message(lua_State *L, const char *s, size_t n) {
  luaL_Buffer b;
  face_push_visible(L, s, n, true);
  const char *text = lua_tolstring(L, -1, &n), *end = text + n;
  if (n <= LINE_MOST) return;
  luaL_buffinit(L, &b);
  while (text < end) {
    const char *nl = memchr(text, '\n', (size_t)(end - text));
    size_t len = (size_t)((nl ? nl : end) - text);
    if (len <= LINE_MOST) luaL_addlstring(&b, text, len);
    else {
      size_t tail = letter_at(text, len - LINE_TAIL);
      luaL_addlstring(&b, text, letter_at(text, LINE_HEAD));
      luaL_addstring(&b, " ... ");
      luaL_addlstring(&b, text + tail, len - tail);
    }
    if (nl) luaL_addchar(&b, '\n');
    text += len + (nl != NULL);
  }
  luaL_pushresult(&b);
  lua_remove(L, -2);
}
// SPDX-License-Identifier: MIT
