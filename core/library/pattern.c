// string.find, match, gmatch and gsub with the semantics of Lua 5.4. Matching
// counts against the call's budget of instructions.
#include "library/pattern.h"

#include <ctype.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/limit.h"

enum { CAPTURES = 32,   // maximum number of captures of a pattern
       DEPTH = 180,     // maximum nesting of match() on the C stack
       // the budget is charged for steps of a match in portions of this number
       STEPS = 1024 };

// special lengths of captures: OPEN: unfinished; POSITION: a position capture
enum { OPEN = -1, POSITION = -2 };

typedef struct Capture {
  const char *at;
  ptrdiff_t n;
} Capture;

typedef struct Match {
  lua_State *L;
  const char *text, *text_end, *pattern_end;
  int depth;       // remaining depth of recursion
  int count;       // number of captures that were begun
  uint64_t steps;  // steps that were not yet subtracted from the budget
  Capture capture[CAPTURES];
} Match;

static const char *match(Match *m, const char *s, const char *p);

// Adds n steps to *steps. Once *steps reaches STEPS, subtracts it from the
// budget and resets it. A short search therefore costs nothing, and message
// handlers can search after the budget is exhausted.
static void pay(lua_State *L, uint64_t *steps, uint64_t n) {
  if ((*steps += n) < STEPS) return;
  n = *steps;
  *steps = 0;
  limit_spend(L, n);
}

static void step(Match *m) { pay(m->L, &m->steps, 1); }

// ---- single characters ----

// Returns the position after the class or set that begins at p.
static const char *class_end(Match *m, const char *p) {
  if (*p == '%') {
    if (p + 1 == m->pattern_end)
      luaL_error(m->L, "malformed pattern (ends with '%%')");
    return p + 2;
  }
  if (*p != '[') return p + 1;
  p++;
  if (p < m->pattern_end && *p == '^') p++;
  do {  // A ']' at the start of a set is an ordinary character.
    if (p == m->pattern_end)
      luaL_error(m->L, "malformed pattern (missing ']')");
    if (*p++ == '%' && p < m->pattern_end) p++;
  } while (p == m->pattern_end || *p != ']');
  return p + 1;
}

static bool in_class(int c, int letter) {
  bool yes;
  switch (tolower(letter)) {
    case 'a': yes = isalpha(c); break;
    case 'c': yes = iscntrl(c); break;
    case 'd': yes = isdigit(c); break;
    case 'g': yes = isgraph(c); break;
    case 'l': yes = islower(c); break;
    case 'p': yes = ispunct(c); break;
    case 's': yes = isspace(c); break;
    case 'u': yes = isupper(c); break;
    case 'w': yes = isalnum(c); break;
    case 'x': yes = isxdigit(c); break;
    default: return letter == c;
  }
  return isupper(letter) ? !yes : yes;
}

// Reports whether c is in the set that begins with '[' at p and ends with ']'
// at `last`.
static bool in_set(int c, const char *p, const char *last) {
  bool yes = true;
  if (*++p == '^') {
    yes = false;
    p++;
  }
  for (; p < last; p++) {
    if (*p == '%') {
      p++;
      if (in_class(c, (unsigned char)*p)) return yes;
    } else if (p[1] == '-' && p + 2 < last) {
      if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) return yes;
      p += 2;
    } else if ((unsigned char)*p == c) {
      return yes;
    }
  }
  return !yes;
}

// Reports whether the character at s matches the item from p to `end`.
static bool one(Match *m, const char *s, const char *p, const char *end) {
  step(m);
  if (s >= m->text_end) return false;
  int c = (unsigned char)*s;
  switch (*p) {
    case '.': return true;
    case '%': return in_class(c, (unsigned char)p[1]);
    case '[': return in_set(c, p, end - 1);
    default: return (unsigned char)*p == c;
  }
}

// ---- items ----

static const char *balanced(Match *m, const char *s, const char *p) {
  if (p + 1 >= m->pattern_end)
    luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
  if (s >= m->text_end || *s != *p) return NULL;
  int nested = 1;
  while (++s < m->text_end) {
    step(m);
    if (*s == p[1]) {
      if (--nested == 0) return s + 1;
    } else if (*s == p[0]) {
      nested++;
    }
  }
  return NULL;
}

// Matches as many repetitions of the item as possible, at least `least`, and
// then the rest of the pattern.
static const char *longest(Match *m, const char *s, const char *p,
                           const char *end, ptrdiff_t least) {
  ptrdiff_t n = 0;
  while (one(m, s + n, p, end)) n++;
  for (; n >= least; n--) {
    const char *to = match(m, s + n, end + 1);
    if (to) return to;
  }
  return NULL;
}

static const char *shortest(Match *m, const char *s, const char *p,
                            const char *end) {
  for (;; s++) {
    const char *to = match(m, s, end + 1);
    if (to) return to;
    if (!one(m, s, p, end)) return NULL;
  }
}

static const char *open_capture(Match *m, const char *s, const char *p,
                                ptrdiff_t n) {
  if (m->count >= CAPTURES) luaL_error(m->L, "too many captures");
  m->capture[m->count++] = (Capture){s, n};
  const char *to = match(m, s, p);
  if (!to) m->count--;
  return to;
}

static const char *close_capture(Match *m, const char *s, const char *p) {
  int k = m->count - 1;
  while (k >= 0 && m->capture[k].n != OPEN) k--;
  if (k < 0) luaL_error(m->L, "invalid pattern capture");
  m->capture[k].n = s - m->capture[k].at;
  const char *to = match(m, s, p);
  if (!to) m->capture[k].n = OPEN;
  return to;
}

// Matches the text of an earlier capture, whose number is the digit d.
static const char *again(Match *m, const char *s, int d) {
  int k = d - '1';
  if (k < 0 || k >= m->count || m->capture[k].n == OPEN)
    luaL_error(m->L, "invalid capture index %%%d", k + 1);
  ptrdiff_t n = m->capture[k].n;
  if (n == POSITION || m->text_end - s < n) return NULL;
  m->steps += (uint32_t)(n > STEPS ? STEPS : n);
  step(m);
  return memcmp(m->capture[k].at, s, (size_t)n) == 0 ? s + n : NULL;
}

static bool at_frontier(Match *m, const char *s, const char *p,
                        const char *end) {
  int before = s == m->text ? 0 : (unsigned char)s[-1];
  int here = s == m->text_end ? 0 : (unsigned char)*s;
  return !in_set(before, p, end - 1) && in_set(here, p, end - 1);
}

// Matches an item that takes no quantifier: a capture, %b, %f, %1, or a final
// '$'. Returns false if no such item begins at *p. If the function sets *done,
// *to is the end of the whole match, or NULL. Otherwise it moves *p and *s past
// the item.
static bool special(Match *m, const char **s, const char **p,
                    const char **to, bool *done) {
  const char *q = *p;
  *done = true;
  if (*q == '(') {
    bool position = q + 1 < m->pattern_end && q[1] == ')';
    *to = position ? open_capture(m, *s, q + 2, POSITION)
                   : open_capture(m, *s, q + 1, OPEN);
    return true;
  }
  if (*q == ')') {
    *to = close_capture(m, *s, q + 1);
    return true;
  }
  if (*q == '$' && q + 1 == m->pattern_end) {
    *to = *s == m->text_end ? *s : NULL;
    return true;
  }
  if (*q != '%' || q + 1 >= m->pattern_end) return false;
  *to = NULL;
  if (q[1] == 'b') {
    *s = balanced(m, *s, q + 2);
    *p = q + 4;
    *done = !*s;
    return true;
  }
  if (q[1] == 'f') {
    q += 2;
    if (q >= m->pattern_end || *q != '[')
      luaL_error(m->L, "missing '[' after '%%f' in pattern");
    const char *end = class_end(m, q);
    *done = !at_frontier(m, *s, q, end);
    *p = end;
    return true;
  }
  if (!isdigit((unsigned char)q[1])) return false;
  *s = again(m, *s, (unsigned char)q[1]);
  *p = q + 2;
  *done = !*s;
  return true;
}

static const char *match(Match *m, const char *s, const char *p) {
  const char *to = NULL;
  if (m->depth-- == 0) luaL_error(m->L, "pattern too complex");
  while (p < m->pattern_end) {
    bool done;
    step(m);
    if (special(m, &s, &p, &to, &done)) {
      if (!done) continue;
      m->depth++;
      return to;
    }
    const char *end = class_end(m, p);
    char quantifier = end < m->pattern_end ? *end : 0;
    if (quantifier == '*' || quantifier == '+' || quantifier == '-') {
      to = quantifier == '-' ? shortest(m, s, p, end)
           : longest(m, s, p, end, quantifier == '+');
      m->depth++;
      return to;
    }
    bool fits = one(m, s, p, end);
    if (quantifier == '?') {
      to = fits ? match(m, s + 1, end + 1) : NULL;
      if (to) {
        m->depth++;
        return to;
      }
      p = end + 1;
    } else if (fits) {
      s++;
      p = end;
    } else {
      m->depth++;
      return NULL;
    }
  }
  m->depth++;
  return s;
}

// ---- captures as Lua values ----

// Pushes capture k; without captures, capture 0 is the whole match.
static void push_capture(const Match *m, int k, const char *s, const char *e) {
  if (k >= m->count) {
    if (k) luaL_error(m->L, "invalid capture index %%%d", k + 1);
    lua_pushlstring(m->L, s, (size_t)(e - s));
    return;
  }
  ptrdiff_t n = m->capture[k].n;
  if (n == OPEN) luaL_error(m->L, "unfinished capture");
  if (n == POSITION) lua_pushinteger(m->L, m->capture[k].at - m->text + 1);
  else lua_pushlstring(m->L, m->capture[k].at, (size_t)n);
}

static int push_captures(const Match *m, const char *s, const char *e) {
  int n = m->count == 0 && s ? 1 : m->count;
  luaL_checkstack(m->L, n, "too many captures");
  for (int k = 0; k < n; k++) push_capture(m, k, s, e);
  return n;
}

static void begin(Match *m, lua_State *L, const char *text, size_t n,
                  const char *pattern, size_t np) {
  m->L = L;
  m->text = text;
  m->text_end = text + n;
  m->pattern_end = pattern + np;
  m->steps = 0;
}

static const char *try_at(Match *m, const char *s, const char *p) {
  m->count = 0;
  m->depth = DEPTH;
  return match(m, s, p);
}

// ---- the functions ----

// Returns the index, counted from 0, at which a search in n bytes begins.
// Argument idx of the Lua function gives this index, counted from 1. Returns n
// + 1 if the index is beyond the end.
static size_t start(lua_State *L, int idx, size_t n) {
  lua_Integer at = luaL_optinteger(L, idx, 1);
  if (at > 0) return (size_t)at - 1 > n ? n + 1 : (size_t)at - 1;
  if (at == 0 || at < -(lua_Integer)n) return 0;
  return n - (size_t)-at;
}

static const char *find_plain(lua_State *L, const char *s, size_t n,
                              const char *p, size_t np) {
  if (np == 0) return s;
  const char *last = s + n;
  uint64_t steps = 0;
  while ((size_t)(last - s) >= np) {
    const char *at = memchr(s, *p, (size_t)(last - s) - np + 1);
    pay(L, &steps, 1 + (uint64_t)((at ? at : last) - s) / 16);
    if (!at) return NULL;
    if (memcmp(at, p, np) == 0) return at;
    s = at + 1;
  }
  return NULL;
}

static bool is_plain(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] && strchr("^$*+?.([%-", p[i])) return false;
  return true;
}

static int search(lua_State *L, bool find) {
  size_t n, np;
  const char *s = luaL_checklstring(L, 1, &n);
  const char *p = luaL_checklstring(L, 2, &np);
  size_t from = start(L, 3, n);
  if (from > n) {
    luaL_pushfail(L);
    return 1;
  }
  if (find && (lua_toboolean(L, 4) || is_plain(p, np))) {
    const char *at = find_plain(L, s + from, n - from, p, np);
    if (!at) {
      luaL_pushfail(L);
      return 1;
    }
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, at - s + (lua_Integer)np);
    return 2;
  }
  Match m;
  bool anchored = np && *p == '^';
  begin(&m, L, s, n, p, np);
  for (const char *at = s + from; at <= m.text_end; at++) {
    const char *e = try_at(&m, at, p + anchored);
    if (e && find) {
      lua_pushinteger(L, at - s + 1);
      lua_pushinteger(L, e - s);
      return push_captures(&m, NULL, NULL) + 2;
    }
    if (e) return push_captures(&m, at, e);
    if (anchored) break;
  }
  luaL_pushfail(L);
  return 1;
}

static int pattern_find(lua_State *L) { return search(L, true); }
static int pattern_match(lua_State *L) { return search(L, false); }

// The iterator of gmatch. Upvalues: text, pattern, position at which to search,
// end of the last match.
static int next_match(lua_State *L) {
  size_t n, np;
  const char *s = lua_tolstring(L, lua_upvalueindex(1), &n);
  const char *p = lua_tolstring(L, lua_upvalueindex(2), &np);
  const char *at = s + lua_tointeger(L, lua_upvalueindex(3));
  lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
  Match m;
  begin(&m, L, s, n, p, np);
  for (; at <= m.text_end; at++) {
    const char *e = try_at(&m, at, p);
    if (!e || e - s == last) continue;
    lua_pushinteger(L, e - s);
    lua_copy(L, -1, lua_upvalueindex(3));
    lua_replace(L, lua_upvalueindex(4));
    return push_captures(&m, at, e);
  }
  lua_pushinteger(L, (lua_Integer)n + 1);
  lua_replace(L, lua_upvalueindex(3));
  return 0;
}

static int pattern_gmatch(lua_State *L) {
  size_t n;
  luaL_checklstring(L, 1, &n);
  luaL_checkstring(L, 2);
  size_t from = start(L, 3, n);
  lua_settop(L, 2);
  lua_pushinteger(L, (lua_Integer)from);
  lua_pushinteger(L, -1);
  lua_pushcclosure(L, next_match, 4);
  return 1;
}

// Appends to b the replacement text of gsub, in which %1 to %9 stand for
// captures.
static void add_text(Match *m, luaL_Buffer *b, const char *s, const char *e) {
  size_t n;
  const char *r = lua_tolstring(m->L, 3, &n), *end = r + n;
  while (r < end) {
    const char *mark = memchr(r, '%', (size_t)(end - r));
    if (!mark) break;
    luaL_addlstring(b, r, (size_t)(mark - r));
    r = mark + 1;
    if (r < end && *r == '%') {
      luaL_addchar(b, '%');
    } else if (r < end && *r == '0') {
      luaL_addlstring(b, s, (size_t)(e - s));
    } else if (r < end && isdigit((unsigned char)*r)) {
      push_capture(m, *r - '1', s, e);
      luaL_tolstring(m->L, -1, NULL);
      lua_remove(m->L, -2);
      luaL_addvalue(b);
    } else {
      luaL_error(m->L, "invalid use of '%%' in replacement string");
    }
    r++;
  }
  luaL_addlstring(b, r, (size_t)(end - r));
}

// Appends to b the replacement of the match from s to e. Returns false if the
// match is not replaced.
static bool add_value(Match *m, luaL_Buffer *b, const char *s, const char *e,
                      int type) {
  lua_State *L = m->L;
  pay(L, &m->steps, 4 + (uint64_t)(e - s) / 16);
  if (type == LUA_TFUNCTION) {
    lua_pushvalue(L, 3);
    lua_call(L, push_captures(m, s, e), 1);
  } else if (type == LUA_TTABLE) {
    push_capture(m, 0, s, e);
    lua_gettable(L, 3);
  } else {
    add_text(m, b, s, e);
    return true;
  }
  if (!lua_toboolean(L, -1)) {
    lua_pop(L, 1);
    luaL_addlstring(b, s, (size_t)(e - s));
    return false;
  }
  if (!lua_isstring(L, -1))
    luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  luaL_addvalue(b);
  return true;
}

static int pattern_gsub(lua_State *L) {
  size_t n, np;
  const char *s = luaL_checklstring(L, 1, &n), *last = NULL;
  const char *p = luaL_checklstring(L, 2, &np);
  int type = lua_type(L, 3);
  lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)n + 1), count = 0;
  luaL_argexpected(L, type == LUA_TNUMBER || type == LUA_TSTRING ||
                   type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                   "string/function/table");
  bool anchored = np && *p == '^', changed = false;
  Match m;
  luaL_Buffer b;
  begin(&m, L, s, n, p, np);
  luaL_buffinit(L, &b);
  while (count < most) {
    const char *e = try_at(&m, s, p + anchored);
    if (e && e != last) {
      count++;
      if (add_value(&m, &b, s, e, type)) changed = true;
      s = last = e;
    } else if (s < m.text_end) {
      luaL_addchar(&b, *s);
      s++;
    } else {
      break;
    }
    if (anchored) break;
  }
  if (!changed) {
    lua_pushvalue(L, 1);
  } else {
    luaL_addlstring(&b, s, (size_t)(m.text_end - s));
    luaL_pushresult(&b);
  }
  lua_pushinteger(L, count);
  return 2;
}

void pattern_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"find", pattern_find}, {"match", pattern_match},
    {"gmatch", pattern_gmatch}, {"gsub", pattern_gsub}, {NULL, NULL}};
  luaL_setfuncs(L, funcs, 0);
}
// SPDX-License-Identifier: MIT
