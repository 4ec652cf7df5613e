// Computes SHA-256 (FIPS 180-4).
#include "base/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
static const uint32_t cube_roots[64] = {
  0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u,
  0x923f82a4u, 0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u,
  0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u,
  0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
  0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u,
  0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u,
  0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
  0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
  0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au,
  0x5b9cca4fu, 0x682e6ff3u, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u,
  0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

// The first 32 bits of the fractional parts of the square roots of the first 8
// primes.
static const uint32_t square_roots[8] = {
  0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu,
  0x1f83d9abu, 0x5be0cd19u};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t big_endian(const unsigned char *s) {
  return (uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 | (uint32_t)s[2] << 8 |
         s[3];
}

// Adds a block of 64 bytes to the state h.
static void add_block(uint32_t h[8], const unsigned char *s) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++) w[i] = big_endian(s + 4 * i);
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t a = v[0], b = v[1], c = v[2], e = v[4];
    uint32_t t = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                 ((e & v[5]) ^ (~e & v[6])) + cube_roots[i] + w[i];
    uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                 ((a & b) ^ (a & c) ^ (b & c));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t;
    v[0] = t + u;
  }
  for (int i = 0; i < 8; i++) h[i] += v[i];
}

void sha256_hex(const void *p, size_t n, char out[65]) {
  const unsigned char *s = p;
  unsigned char last[128] = {0};
  uint32_t h[8];
  size_t whole = n / 64 * 64, rest = n - whole, size = rest < 56 ? 64 : 128;
  memcpy(h, square_roots, sizeof h);
  for (size_t i = 0; i < whole; i += 64) add_block(h, s + i);
  // The last block: remaining bytes, a bit of 1, zeros, and the length in bits.
  if (rest) memcpy(last, s + whole, rest);
  last[rest] = 0x80;
  for (int i = 0; i < 8; i++)
    last[size - 1 - (size_t)i] = (unsigned char)((uint64_t)n << 3 >> (8 * i));
  for (size_t i = 0; i < size; i += 64) add_block(h, last + i);
  for (int i = 0; i < 8; i++)
    snprintf(out + 8 * i, 9, "%08x", (unsigned)h[i]);
}
// SPDX-License-Identifier: MIT
