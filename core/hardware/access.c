// Counts the shared-memory passes and global sectors of one memory access by a
// warp.
#include "hardware/access.h"

#include <string.h>

#define FULL 0xffffffffu

// ---- bank conflicts of a group of lanes ----

// The words that a group of lanes accesses, by bank. Lanes that access the same
// word share a pass. Each further word in a bank needs another pass.
typedef struct Banks {
  uint32_t seen;        // mask of the banks that some lane accesses
  uint32_t word[32];    // for each bank: the first word that a lane accesses
  // for each lane: the lane that added the next word of the same bank
  uint8_t next[32];
  uint8_t tail[32], count[32];
  uint32_t extra[32];   // for each lane: the word that the lane added
  int most;
} Banks;

// Adds a lane that accesses word `w` in bank `bank`. Lanes that access further
// words of a bank form a linked list (`next`). Returns the index of w among the
// bank's words.
static inline int banks_add(Banks *k, int lane, uint32_t bank, uint32_t w) {
  uint32_t bit = 1u << bank;
  if (!(k->seen & bit)) {
    k->seen |= bit;
    k->word[bank] = w;
    k->count[bank] = 1;
    k->tail[bank] = 0xff;
    if (k->most == 0) k->most = 1;
    return 0;
  }
  if (k->word[bank] == w) return 0;
  int n = k->count[bank] - 1;
  for (uint8_t l = k->tail[bank]; l != 0xff; l = k->next[l], n--)
    if (k->extra[l] == w) return n;
  k->extra[lane] = w;
  k->next[lane] = k->tail[bank];
  k->tail[bank] = (uint8_t)lane;
  if (++k->count[bank] > k->most) k->most = k->count[bank];
  return k->count[bank] - 1;
}

// Returns the passes of the lanes in `mask`, which form one group. `so` has the
// passes of earlier groups; `turns` numbers this group's passes after them. An
// access of 1 << shift bytes is aligned, and is treated as one word in a bank
// of that width.
static inline int group_passes(int shift, const uint32_t *addr, uint32_t mask,
                               SimPasses so, SimTurns *turns) {
  Banks k;
  k.seen = 0;
  k.most = 0;
  uint32_t banks = (128u >> shift) - 1;
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    uint32_t w = addr[l] >> shift;
    int n = banks_add(&k, l, w & banks, w);
    if (!turns) continue;
    turns->group[l] = (uint8_t)so.least;
    turns->pass[l] = (uint8_t)(so.wavefronts + n);
  }
  return k.most;
}

// Reports whether each lane l > 0 accesses the bytes that follow those of lane
// l - 1.
static bool contiguous(int width, const uint32_t addr[32]) {
  uint32_t off = 0;
  for (uint32_t l = 0; l < 32; l++)
    off |= addr[l] ^ (addr[0] + l * (uint32_t)width);
  return off == 0;
}

// Reports whether lanes l and l^d read the same address, for all pairs of
// active lanes.
static bool pairs_agree(const uint32_t *addr, uint32_t mask, int d) {
  uint32_t low = d == 1 ? 0x55555555u : 0x33333333u;
  uint32_t both = mask & (mask >> d) & low;
  for (; both; both &= both - 1) {
    int l = __builtin_ctz(both);
    if (addr[l] != addr[l + d]) return false;
  }
  return true;
}

// Returns p plus the passes of the lanes in `mask`. The hardware serves one
// group of `lanes` adjacent lanes after the other.
static SimPasses by_groups(int shift, const uint32_t *addr, uint32_t mask,
                           int lanes, SimPasses p, SimTurns *turns) {
  uint32_t one = lanes == 32 ? FULL : (1u << lanes) - 1;
  for (int at = 0; at < 32; at += lanes) {
    uint32_t m = mask & one << at;
    if (!m) continue;
    p.wavefronts += group_passes(shift, addr, m, p, turns);
    p.least++;
  }
  return p;
}

// Returns the passes of loads of 8 or 16 bytes. A group has 16 lanes for 8
// bytes and 8 lanes for 16 bytes, or twice as many if pairs of lanes read the
// same address. For 16 bytes, each half of the warp is tested for such pairs
// separately.
static SimPasses wide_load(int width, const uint32_t *addr, uint32_t mask,
                           SimTurns *turns) {
  int span = width == 8 ? 32 : 16, shift = width == 8 ? 3 : 4;
  uint32_t one = span == 32 ? FULL : 0xffff;
  SimPasses p = {0, 0};
  for (int at = 0; at < 32; at += span) {
    uint32_t m = mask & one << at;
    bool merge = pairs_agree(addr, m, 1) || pairs_agree(addr, m, 2);
    p = by_groups(shift, addr, m, merge ? span : span / 2, p, turns);
  }
  return p;
}

SimPasses access_shared(SimAccess kind, int width,
                        const uint32_t addr[32], uint32_t mask,
                        SimTurns *turns) {
  int lanes = width <= 4 ? 32 : 128 / width;
  if (!turns && mask == FULL && width >= 4 && contiguous(width, addr))
    return (SimPasses){32 / lanes, 32 / lanes};
  if (kind == ACCESS_LOAD && width > 4)
    return wide_load(width, addr, mask, turns);
  int shift = width <= 4 ? 2 : width == 8 ? 3 : 4;
  return by_groups(shift, addr, mask, lanes, (SimPasses){0, 0}, turns);
}

SimPasses access_matrix(int num, const uint32_t *addr, SimTurns *turns) {
  uint32_t rows = num == 4 ? FULL : (1u << num * 8) - 1;
  return by_groups(4, addr, rows, 8, (SimPasses){0, 0}, turns);
}

// ---- counting distinct keys ----

// A hash set of at most 64 keys, two for each lane. `used` is the mask of
// occupied entries. The top six bits of the key's product with 2^64 / golden
// ratio select the entry. This spreads neighbouring keys over the table. If the
// entry is occupied, the key gets the next free entry.
typedef struct Keys {
  uint64_t used;
  uint64_t key[64];
  uint8_t number[64];  // index of each distinct key in order of insertion
  int count;
} Keys;

static inline uint8_t keys_add(Keys *s, uint64_t key) {
  uint32_t h = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 58);
  while (s->used >> h & 1) {
    if (s->key[h] == key) return s->number[h];
    h = (h + 1) & 63;
  }
  s->used |= 1ull << h;
  s->key[h] = key;
  s->number[h] = (uint8_t)s->count;
  return (uint8_t)s->count++;
}

// Counts one pass for each distinct triple of source line, destination line,
// and XOR of the chunk numbers of destination and source. A line has 128 bytes,
// a chunk 16. The minimum (`least`) is one pass for each source line. If most
// 32-byte source sectors are only half read, the minimum is one pass per eight
// lanes, because another request may read the other halves.
SimPasses access_cpasync_cg(const uint32_t dst[32], const uint64_t src[32],
                            uint32_t mask, SimTurns *turns) {
  Keys passes, lines, sectors;
  passes.used = lines.used = sectors.used = 0;
  passes.count = lines.count = sectors.count = 0;
  uint64_t last_pass = ~0ull, last_line = ~0ull, last = ~0ull;
  uint8_t group = 0, number = 0;
  int n = __builtin_popcount(mask);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    uint64_t line = src[l] >> 7;
    uint64_t chunk = (dst[l] >> 4 ^ src[l] >> 4) & 7;
    uint64_t to = dst[l] >> 7;  // destination line, a number of 25 bits
    uint64_t pass = line << 32 ^ to << 3 ^ chunk;
    if (line != last_line) group = keys_add(&lines, line);
    if (pass != last_pass) number = keys_add(&passes, pass);
    if (src[l] >> 5 != last) keys_add(&sectors, last = src[l] >> 5);
    if (turns) turns->group[l] = group, turns->pass[l] = number;
    last_line = line;
    last_pass = pass;
  }
  bool halves = 2 * (2 * sectors.count - n) > sectors.count;
  return (SimPasses){passes.count, halves ? (n + 7) / 8 : lines.count};
}

int access_global(int width, const uint64_t addr[32], uint32_t mask) {
  Keys s;
  s.used = 0;
  s.count = 0;
  uint64_t last = ~0ull;
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    uint64_t first = addr[l] >> 5, end = (addr[l] + (uint32_t)width - 1) >> 5;
    if (first != last) keys_add(&s, first);
    if (end != first) keys_add(&s, end);
    last = end;
  }
  return s.count;
}
// SPDX-License-Identifier: MIT
