// Lua bindings of requests. A request is an access of a warp to shared memory
// that a run of the simulator recorded. Computes the cost of requests for other
// layouts.
#include <string.h>

#include "bind/laylib.h"
#include "layout/composed.h"
#include "bind/requests.h"

#define MT_REQUESTS "cute.requests"

static const char *const kinds[] = {
  [ACCESS_LOAD] = "load", [ACCESS_STORE] = "store",
  [ACCESS_CPASYNC] = "cp.async", [ACCESS_CPASYNC_CG] = "cp.async.cg",
  [ACCESS_MATRIX] = "matrix", NULL};

SimRequests *requestlib_push(lua_State *L) {
  SimRequests *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (SimRequests){0};
  luaL_setmetatable(L, MT_REQUESTS);
  return r;
}

static SimRequests *check_requests(lua_State *L) {
  return face_check(L, 1, MT_REQUESTS, "requests");
}

static int requests_gc(lua_State *L) {
  record_free(check_requests(L));
  return 0;
}

static int requests_len(lua_State *L) {
  lua_pushinteger(L, check_requests(L)->n);
  return 1;
}

// requests:lost() -> number of requests that were not recorded, because there
// were too many
static int requests_lost(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)check_requests(L)->lost);
  return 1;
}

// ---- one request ----

// requests:add {kind=, width=, line=, lanes = {byte address in the object, or
// false for an inactive lane; ...}}: adds an access of a warp to the first
// memory object. The source bytes of a cp.async.cg are assumed to be
// contiguous.
static int requests_add(lua_State *L) {
  SimRequests *all = check_requests(L);
  SimRequest r = {.width = (int)face_get_int(L, 2, "width", 4),
                  .line = (int32_t)face_get_int(L, 2, "line", 1) - 1};
  lua_getfield(L, 2, "kind");
  r.kind = (SimAccess)luaL_checkoption(L, -1, NULL, kinds);
  lua_getfield(L, 2, "lanes");
  for (int l = 0; l < 32; l++) {
    lua_rawgeti(L, -1, l + 1);
    if (lua_isinteger(L, -1)) {
      r.addr[l] = (uint32_t)lua_tointeger(L, -1);
      r.mask |= 1u << l;
    }
    if (r.kind == ACCESS_CPASYNC_CG) r.src[l] = (uint64_t)l * 16;
    lua_pop(L, 1);
  }
  if (r.mask && !record_add(all, &r))
    face_error(L, ERR_MEMORY, "out of memory");
  return 0;
}

// Pushes a list of the active lanes of a request: {lane=, at=, group=, pass=},
// where `pass` is the cycle in which shared memory serves the lane.
static void push_lanes(lua_State *L, const SimRequest *r) {
  SimTurns turns;
  record_passes(r, r->addr, &turns);
  lua_createtable(L, 32, 0);
  for (int l = 0; l < 32; l++) {
    if (!(r->mask >> l & 1)) continue;
    lua_createtable(L, 0, 4);
    face_set_int(L, "lane", l);
    face_set_int(L, "at", r->addr[l]);
    face_set_int(L, "group", turns.group[l] + 1);
    face_set_int(L, "pass", turns.pass[l] + 1);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  lua_setfield(L, -2, "lanes");
}

// requests:get(i) -> {kind=, width=, line=, mem=, base=, count=, wavefronts=,
// least=, block=, warp=, lanes = {{lane=, at = byte of the object, group=,
// pass=}}}: request i. `wavefronts` is the number of cycles (passes) in which
// shared memory serves the request, and `least` is the minimum for these lanes.
// line, mem, group and pass are numbers from 1 on.
static int requests_get(lua_State *L) {
  const SimRequests *all = check_requests(L);
  lua_Integer i = face_checkint(L, 2);
  if (i < 1 || i > all->n) return 0;
  const SimRequest *r = &all->p[i - 1];
  SimPasses n = record_passes(r, r->addr, NULL);
  lua_createtable(L, 0, 12);
  face_set_str(L, "kind", kinds[r->kind]);
  face_set_int(L, "width", r->width);
  face_set_int(L, "line", r->line + 1);
  face_set_int(L, "mem", r->mem + 1);
  face_set_int(L, "base", r->base);
  face_set_int(L, "count", (lua_Integer)r->count);
  face_set_int(L, "wavefronts", n.wavefronts);
  face_set_int(L, "least", n.least);
  face_set_int(L, "warp", r->warp);
  lua_createtable(L, 3, 0);
  for (int k = 0; k < 3; k++) {
    lua_pushinteger(L, r->block[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "block");
  push_lanes(L, r);
  return 1;
}

// requests:worst(lines) -> list with an entry for each line: the number of the
// request with the most passes beyond its minimum, or false if no request of
// the line exceeds its minimum
static int requests_worst(lua_State *L) {
  const SimRequests *all = check_requests(L);
  lua_Integer lines = face_checkint(L, 2);
  lua_createtable(L, (int)lines, 0);
  for (lua_Integer line = 0; line < lines; line++) {
    int most = 0;
    lua_pushboolean(L, false);
    for (uint32_t k = 0; k < all->n; k++) {
      if (all->p[k].line != line) continue;
      SimPasses n = record_passes(&all->p[k], all->p[k].addr, NULL);
      if (n.wavefronts - n.least <= most) continue;
      most = n.wavefronts - n.least;
      lua_pop(L, 1);
      lua_pushinteger(L, (lua_Integer)k + 1);
    }
    lua_rawseti(L, -2, line + 1);
  }
  return 1;
}

// ---- cost with other layouts ----

// A change of an object's layout to a plain layout. to[e] is the position, in
// the new layout, of the coordinate that has position e in the old layout.
// to[e] is -1 if no coordinate has position e.
typedef struct Move {
  int64_t count;
  int bits;            // bits per element
  int32_t *to;
} Move;

// Sets *out to the offsets of a plain static layout, in the order of its
// coordinates. Returns their number.
static int64_t offsets(Ctx *cx, lua_State *L, Layout l, int32_t **out) {
  if (!layout_static(l))
    face_error(L, ERR_STATIC, "the layout must be static, not %s",
               layout_text(cx, l));
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n);
  int64_t *at = arena_zero(cx, &cx->scratch, n * sizeof *at);
  int64_t size = dim_value(layout_size(cx, l)), x = 0;
  if (size > 1 << 22)
    face_error(L, ERR_LIMIT, "%s has more than 2^22 elements",
               layout_text(cx, l));
  tup_collect(l.shape, shape);
  *out = NEW(cx, int32_t, (size_t)size);
  for (int64_t i = 0; i < size; i++) {
    (*out)[i] = (int32_t)x;
    for (size_t k = 0; k < n; k++) {
      int64_t s = dim_value(l.stride[k]), e = dim_value(shape[k]);
      x += s;
      if (++at[k] < e) break;
      x -= s * e;
      at[k] = 0;
    }
  }
  return size;
}

static Move move_of(Ctx *cx, lua_State *L, Layout was, Layout plain, int bits) {
  const Swizzle *sw = layout_swizzle(was);
  if ((was.outer && !sw) || plain.outer)
    face_error(L, ERR_ARG, "a plain layout, or one under a swizzle, is needed, "
               "not %s", layout_text(cx, plain.outer ? plain : was));
  int32_t *from, *to;
  int64_t size = offsets(cx, L, layout_inner(was), &from);
  if (offsets(cx, L, plain, &to) != size)
    face_error(L, ERR_SHAPE, "%s and %s are of different sizes",
               layout_text(cx, was), layout_text(cx, plain));
  Move m = {.bits = bits};
  for (int64_t i = 0; i < size; i++) {
    int64_t x = from[i] + dim_value(was.offset);
    if (sw) x = swizzle_bits(*sw, x);
    if (x < 0 || x >= 1 << 22)
      face_error(L, ERR_LIMIT, "%s has offset %lld, outside of 0 to 2^22",
                 layout_text(cx, was), (long long)x);
    from[i] = (int32_t)x;
    if (from[i] >= m.count) m.count = from[i] + 1;
  }
  m.to = NEW(cx, int32_t, (size_t)m.count);
  memset(m.to, 0xff, (size_t)m.count * sizeof *m.to);
  for (int64_t i = 0; i < size; i++)
    if (m.to[from[i]] < 0) m.to[from[i]] = to[i];
  return m;
}

// Computes the new address of lane l's bytes in request r, after a move and a
// swizzle, in *addr. Returns false if the bytes would not be contiguous and
// aligned, or if they are not elements of the old layout.
static bool moved(const Move *m, Swizzle sw, const SimRequest *r, int l,
                  uint32_t *addr) {
  int64_t first = (int64_t)r->addr[l] * 8 / m->bits;
  int64_t last = ((int64_t)r->addr[l] * 8 + r->width * 8 - 1) / m->bits;
  if (last >= m->count || m->to[first] < 0 || m->to[last] < 0) return false;
  int64_t a = swizzle_bits(sw, m->to[first]);
  int64_t b = swizzle_bits(sw, m->to[last]);
  int64_t at = a * m->bits / 8 +
               ((int64_t)r->addr[l] - first * m->bits / 8);
  *addr = (uint32_t)at;
  return b - a == last - first && at % r->width == 0;
}

static bool cost(const Move *m, Swizzle sw, const SimRequest *r,
                 SimPasses *n) {
  uint32_t addr[32] = {0};
  for (uint32_t k = r->mask; k; k &= k - 1) {
    int l = __builtin_ctz(k);
    if (!moved(m, sw, r, l, &addr[l])) return false;
  }
  *n = record_passes(r, addr, NULL);
  return true;
}

// Reads arguments 2 to 5, which describe a move: the object's number, its
// layout, a plain layout, and the bits per element.
static Move check_move(Ctx *cx, lua_State *L, int32_t *mem) {
  *mem = (int32_t)face_checkint(L, 2) - 1;
  Layout was = face_check_layout(L, 3), plain = face_check_layout(L, 4);
  return move_of(cx, L, was, plain, (int)face_checkint(L, 5));
}

// requests:search(mem, was, plain, bits, {b, m, s, b, m, s ...}) -> list with
// an entry for each swizzle (b, m, s): the number of passes of all requests to
// object mem, if its layout were `plain` under the swizzle instead of `was`.
// The entry is false if this layout would require other requests.
static int requests_search(lua_State *L) {
  Ctx *cx = face_enter(L);
  const SimRequests *all = check_requests(L);
  int32_t mem;
  Move m = check_move(cx, L, &mem);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 6) / 3;
  lua_createtable(L, (int)n, 0);
  for (lua_Integer i = 0; i < n; i++) {
    int64_t word[3];
    for (int k = 0; k < 3; k++) {
      lua_rawgeti(L, 6, i * 3 + k + 1);
      word[k] = face_checkint(L, -1);
      lua_pop(L, 1);
    }
    Swizzle sw = swizzle_make(cx, word[0], word[1], word[2]);
    uint64_t sum = 0;
    bool ok = true;
    for (uint32_t k = 0; ok && k < all->n; k++) {
      SimPasses p;
      if (all->p[k].mem != mem) continue;
      ok = cost(&m, sw, &all->p[k], &p);
      if (ok) sum += (uint64_t)p.wavefronts * all->p[k].count;
    }
    if (ok) lua_pushinteger(L, (lua_Integer)sum);
    else lua_pushboolean(L, false);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static void add_to(lua_State *L, int t, int32_t line, lua_Integer n) {
  lua_rawgeti(L, t, line + 1);
  n += lua_tointeger(L, -1);
  lua_pop(L, 1);
  lua_pushinteger(L, n);
  lua_rawseti(L, t, line + 1);
}

// requests:cost(mem, was, plain, bits, swizzle or nil) -> {passes by line},
// {passes beyond the minimum by line}: the cost of all requests to object mem,
// if its layout were `plain` under the swizzle instead of `was`
static int requests_cost(lua_State *L) {
  Ctx *cx = face_enter(L);
  const SimRequests *all = check_requests(L);
  int32_t mem;
  Move m = check_move(cx, L, &mem);
  Swizzle sw = SWIZZLE_NONE;
  laylib_test_swizzle(L, 6, &sw);
  lua_settop(L, 6);
  lua_newtable(L);
  lua_newtable(L);
  for (uint32_t k = 0; k < all->n; k++) {
    const SimRequest *r = &all->p[k];
    SimPasses p;
    if (r->mem != mem || !cost(&m, sw, r, &p)) continue;
    lua_Integer n = (lua_Integer)r->count;
    add_to(L, 7, r->line, p.wavefronts * n);
    add_to(L, 8, r->line, (p.wavefronts - p.least) * n);
  }
  return 2;
}

// requests:width(mem) -> bytes of the widest access to object mem
static int requests_width(lua_State *L) {
  const SimRequests *all = check_requests(L);
  int32_t mem = (int32_t)face_checkint(L, 2) - 1, most = 0;
  for (uint32_t k = 0; k < all->n; k++)
    if (all->p[k].mem == mem && all->p[k].width > most)
      most = all->p[k].width;
  lua_pushinteger(L, most);
  return 1;
}

static int l_requests(lua_State *L) {
  requestlib_push(L);
  return 1;
}

void requestlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"requests", l_requests}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
    {"add", requests_add}, {"get", requests_get}, {"worst", requests_worst},
    {"lost", requests_lost}, {"width", requests_width},
    {"search", requests_search}, {"cost", requests_cost},
    {"__len", requests_len}, {"__gc", requests_gc}, {NULL, NULL}};
  face_newtype(L, MT_REQUESTS, methods);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
