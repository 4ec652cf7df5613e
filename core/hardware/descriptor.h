// Finds operands in shared memory by the matrix descriptor of an MMA. An
// operand consists of pieces of 16 bytes, whose addresses are swizzled. wgmma
// and tcgen05.mma encode the swizzle differently.
#ifndef CUTE_SIMDESCRIPTOR_H
#define CUTE_SIMDESCRIPTOR_H

#include "base/base.h"

#include <string.h>

enum { PIECE = 16 };  // bytes of a piece

typedef struct Place {
  uint32_t start, lead, stride;  // fields of the descriptor, in bytes
  // width of the swizzle in pieces of 16 bytes; 0: the swizzle is not supported
  uint32_t w;
  // whether the swizzle moves 32 bytes at a time, in groups of 4 rows
  bool by32;
} Place;

// Reads the descriptor of a wgmma or, if `umma` is set, of a tcgen05.mma.
static inline Place place_of(uint64_t desc, bool umma) {
  static const uint8_t wgmma[8] = {1, 1, 8, 8, 4, 4, 2, 2};
  static const uint8_t tcgen05[8] = {1, 8, 8, 0, 4, 0, 2, 0};
  return (Place){.start = (uint32_t)(desc & 0x3fff) * PIECE,
                 .lead = (uint32_t)(desc >> 16 & 0x3fff) * PIECE,
                 .stride = (uint32_t)(desc >> 32 & 0x3fff) * PIECE,
                 .w = (umma ? tcgen05 : wgmma)[desc >> 61],
                 .by32 = umma && desc >> 61 == 1};
}

static inline uint32_t swizzled(const Place *p, uint32_t at) {
  if (p->by32) return at ^ (at >> 7 & 3) << 5;
  return at ^ (at >> 7 & (p->w - 1)) << 4;
}

// Returns the address of 16-byte piece c of row r in a K-major operand.
static inline uint32_t piece_of_row(const Place *p, uint32_t r, uint32_t c) {
  uint32_t lead = p->w > 1 ? PIECE : p->lead, group = p->by32 ? 4 : 8;
  return swizzled(p, p->start + r % group * p->w * PIECE +
                       r / group * p->stride + c * lead);
}

// Returns the address of piece (u, k) of an MN-major operand. It contains the
// elements of column k in the u-th group of rows; a group has as many rows as a
// piece has elements.
static inline uint32_t piece_of_column(const Place *p, uint32_t u, uint32_t k) {
  uint32_t group = p->by32 ? 4 : 8, at = k % group * p->w * PIECE;
  if (p->w > 1)
    at += u % p->w * PIECE + u / p->w * p->lead + k / group * p->stride;
  else
    at += u * p->stride + k / 8 * p->lead;
  return swizzled(p, p->start + at);
}

// Expands 16 packed elements of `bits` bits to bytes.
static inline void unpack_piece(uint8_t piece[PIECE], int bits) {
  uint8_t from[PIECE + 1] = {0};
  memcpy(from, piece, PIECE);
  for (int k = 0; k < PIECE; k++) {
    int at = k * bits;
    unsigned u = from[at / 8] | (unsigned)from[at / 8 + 1] << 8;
    piece[k] = (uint8_t)(u >> at % 8 & ((1u << bits) - 1));
  }
}

// Callback of each_piece. `at` is the address of a piece.
typedef void See(void *ud, uint32_t at);

// Calls `see` for each piece of rows first to first + rows - 1 of an operand. A
// row has k_of elements of `bytes` bytes along K.
static inline void each_piece(const Place *p, bool mn_major, int k_of,
                              int bytes, int first, int rows, See *see,
                              void *ud) {
  int unit = PIECE / bytes;
  if (!mn_major) {
    for (int r = first; r < first + rows; r++)
      for (int c = 0; c < k_of / unit; c++)
        see(ud, piece_of_row(p, (uint32_t)r, (uint32_t)c));
    return;
  }
  for (int u = first / unit; u < (first + rows) / unit; u++)
    for (int k = 0; k < k_of; k++)
      see(ud, piece_of_column(p, (uint32_t)u, (uint32_t)k));
}

#endif
// SPDX-License-Identifier: MIT
