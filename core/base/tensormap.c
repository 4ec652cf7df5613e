// Tensor maps: the driver's rules for their parameters, and its encoding.
#include "base/tensormap.h"

#include <inttypes.h>

static const struct {
  DType dtype;
  int bits, code;
  char cls;
  const char *reductions;
} types[] = {
#define TT(id, dtype, bits, code, cls, reductions) \
  {DT_##dtype, bits, code, cls, reductions},
  TENSORMAP_TYPES(TT)
#undef TT
};

TensorMapType tensormap_type(DType t) {
  switch ((int)t) {
  case DT_NONE: case DT_U4: return TMT_COUNT;
  case DT_I8: case DT_E4M3: case DT_E5M2: case DT_UE8M0: return TMT_U8;
  case DT_I16: return TMT_U16;
  default: break;
  }
  int k = 0;
  while (k < TMT_COUNT && types[k].dtype != t) k++;
  return (TensorMapType)k;
}

DType tensormap_dtype(TensorMapType t) {
  return types[t].dtype == DT_NONE ? DT_F32 : types[t].dtype;
}

const char *tensormap_reductions(TensorMapType t) {
  return types[t].reductions;
}

static int64_t row_bits(const TensorMap *m) {
  return (m->im2col ? m->channels : m->box[0]) * types[m->type].bits;
}

// corners returns the number of spatial modes of an im2col map. corner_bits
// returns the number of bits that encode each coordinate of a corner.
static int corners(const TensorMap *m) { return (int)m->rank - 2; }
static int corner_bits(const TensorMap *m) {
  static const int bits[] = {16, 8, 5};
  return bits[corners(m) - 1];
}

// Returns the number of bytes of a copy as the driver encodes it: in each mode,
// box / element stride, rounded down.
static int64_t encoded_bytes(const TensorMap *m) {
  if (m->im2col) return row_bits(m) * m->pixels / 8;
  int64_t n = types[m->type].bits;
  for (int i = 0; i < m->rank; i++) n *= m->box[i] / m->step[i];
  return n / 8;
}

int64_t tensormap_count(const TensorMap *m, int i) {
  return (m->box[i] + m->step[i] - 1) / m->step[i];
}

int64_t tensormap_bytes(const TensorMap *m) {
  if (m->im2col) return row_bits(m) * m->pixels / 8;
  int64_t n = types[m->type].bits;
  for (int i = 0; i < m->rank; i++) n *= tensormap_count(m, i);
  return n / 8;
}

// ---- the rules ----

static bool among(Why *w, const char *what, int64_t v, int64_t least,
                  int64_t most, const char *words) {
  if (v >= least && v <= most) return true;
  return why(w, ERR_ARG, "tensor map: %s %" PRId64 " does not exist: valid "
             "values are %" PRId64 " to %" PRId64 " (%s)",
             what, v, least, most, words);
}

static bool check_choices(const TensorMap *m, Why *w) {
#define OLD "u8 u16 u32 i32 u64 i64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz"
  return among(w, "element type", m->type, 0, TMT_U4 - !m->sm100,
               m->sm100 ? OLD " u4" : OLD) &&
         among(w, "interleave", m->interleave, 0, 2, "none, 16, 32 bytes") &&
         among(w, "swizzle", m->swizzle, 0, 3, "none, 32, 64, 128 bytes") &&
         among(w, "L2 promotion", m->l2, 0, 3, "none, 64, 128, 256 bytes") &&
         among(w, "fill", m->fill, 0, 1, "zeros, NaN") &&
         among(w, "rank", m->rank, 1, TENSORMAP_RANK, "modes of a tensor");
#undef OLD
}

static bool check_rank(const TensorMap *m, Why *w) {
  if (m->rank >= 3 || (!m->im2col && !m->interleave)) return true;
  return why(w, ERR_SHAPE, "tensor map: %s takes tensors of 3 modes or more, "
             "this one has %" PRId64, m->im2col ? "im2col" : "an interleave",
             m->rank);
}

// Returns the bytes to which the address and the strides must be aligned.
static int64_t grain(const TensorMap *m) {
  return m->interleave == TENSORMAP_32B ? 32 : 16;
}

static bool check_memory(const TensorMap *m, Why *w) {
  int64_t g = grain(m);
  if (m->address >> 57)
    return why(w, ERR_LIMIT, "tensor map: the address 0x%" PRIx64 " has more "
               "than 57 bits", m->address);
  if (m->address % (uint64_t)g)
    return why(w, ERR_ALIGN, "tensor map: the address 0x%" PRIx64 " is not a "
               "multiple of %" PRId64 " bytes", m->address, g);
  for (int i = 0; i < m->rank; i++)
    if (m->extent[i] < 1 || m->extent[i] > (int64_t)1 << 32)
      return why(w, ERR_LIMIT, "tensor map: mode %d has %" PRId64 " elements: "
                 "1 to 2^32 are possible", i, m->extent[i]);
  if (m->extent[0] * types[m->type].bits % 8)
    return why(w, ERR_ALIGN, "tensor map: mode 0 has %" PRId64 " elements of "
               "%d bits: they must fill bytes",
               m->extent[0], types[m->type].bits);
  for (int i = 1; i < m->rank; i++) {
    int64_t s = m->stride[i - 1];
    if (s % g)
      return why(w, ERR_ALIGN, "tensor map: the stride of mode %d, %" PRId64 " "
                 "bytes, is not a multiple of %" PRId64, i, s, g);
    if (s < 0 || s >= (int64_t)1 << 40)
      return why(w, ERR_LIMIT, "tensor map: the stride of mode %d, %" PRId64 " "
                 "bytes: 0 to 2^40 - 1 are possible", i, s);
  }
  for (int i = 0; i < m->rank; i++)
    if (m->step[i] < 1 || m->step[i] > 8)
      return why(w, ERR_LIMIT, "tensor map: the element stride of mode %d, %"
                 PRId64 ": 1 to 8 are possible", i, m->step[i]);
  if (m->fill == TENSORMAP_NAN && types[m->type].cls == 'I')
    return why(w, ERR_TYPE, "tensor map: NaN can fill only floats, but the "
               "elements are integers");
  return true;
}

static bool check_box(const TensorMap *m, Why *w) {
  for (int i = 0; i < m->rank; i++)
    if (m->box[i] < 1 || m->box[i] > 256)
      return why(w, ERR_LIMIT, "tensor map: the box has %" PRId64 " elements "
                 "of mode %d: a copy takes 1 to 256", m->box[i], i);
  return true;
}

static bool check_corner(const TensorMap *m, const char *which, int i,
                         int64_t v, Why *w) {
  int64_t half = (int64_t)1 << (corner_bits(m) - 1);
  if (v >= -half && v < half) return true;
  return why(w, ERR_LIMIT, "tensor map: the %s corner of spatial mode %d, %"
             PRId64 ": with %d of them -%" PRId64 " to %" PRId64 " are "
             "possible",
             which, i, v, corners(m), half, half - 1);
}

// Checks the corners of an im2col map by the driver's rules. The driver treats
// mode 0 of an interleaved map as the first spatial mode. It computes the
// extent between the corners with 32-bit numbers.
static bool check_im2col(const TensorMap *m, Why *w) {
  if (m->channels < 1 || m->channels > 256)
    return why(w, ERR_LIMIT, "tensor map: %" PRId64 " channels: a copy takes "
               "1 to 256", m->channels);
  if (m->pixels < 1 || m->pixels > 1024)
    return why(w, ERR_LIMIT, "tensor map: %" PRId64 " pixels: a copy takes 1 "
               "to 1024", m->pixels);
  for (int i = 0; i < corners(m); i++) {
    if (!check_corner(m, "lower", i, m->lower[i], w) ||
        !check_corner(m, "upper", i, m->upper[i], w))
      return false;
    int64_t n = m->extent[i + !m->interleave];
    if ((int32_t)(uint32_t)(n + m->upper[i] - m->lower[i]) < 1)
      return why(w, ERR_SHAPE, "tensor map: corners %" PRId64 " and %" PRId64
                 " leave no element of the %" PRId64 " elements of spatial "
                 "mode %d", m->lower[i], m->upper[i], n, i);
  }
  return true;
}

// Maximum bytes of shared memory of a multiprocessor.
enum { MOST_BYTES = 228 * 1024 };

static bool check_rows(const TensorMap *m, Why *w) {
  int64_t bits = row_bits(m), row = bits / 8, span = 16 << m->swizzle;
  if (bits % 128)
    return why(w, ERR_ALIGN, "tensor map: rows of the box are %g bytes: they "
               "must be a multiple of 16", (double)bits / 8);
  if (m->swizzle && !m->interleave && row > span)
    return why(w, ERR_SHAPE, "tensor map: rows of the box are %" PRId64 " "
               "bytes: a swizzle of %" PRId64 " bytes allows no longer rows",
               row, span);
  if (encoded_bytes(m) > MOST_BYTES)
    return why(w, ERR_SMEM, "tensor map: the box has %" PRId64 " bytes: "
               "shared memory has %d", encoded_bytes(m), MOST_BYTES);
  return true;
}

bool tensormap_check(const TensorMap *m, Why *w) {
  return check_choices(m, w) && check_rank(m, w) && check_memory(m, w) &&
         (m->im2col ? check_im2col(m, w) : check_box(m, w)) &&
         check_rows(m, w);
}

// ---- the encoding ----

// Stores v in the `bits` bits from bit `at` on, which must be 0 before. A field
// does not cross a 64-bit word.
static void set(uint64_t words[TENSORMAP_WORDS], int at, int bits, int64_t v) {
  uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
  words[at / 64] |= ((uint64_t)v & mask) << at % 64;
}

// Encodes bits 64 to 82: im2col, rank, element type, interleave, swizzle, fill
// and L2 promotion.
static void encode_kind(const TensorMap *m, uint64_t *words) {
  set(words, 64, 1, m->im2col);
  set(words, 68, 3, m->rank - 1);
  set(words, 71, 4, types[m->type].code);
  set(words, 75, 2, m->interleave);
  set(words, 77, 2, m->swizzle);
  set(words, 79, 1, m->fill);
  set(words, 80, 1, types[m->type].cls == 'T');
  set(words, 81, 2, m->l2);
}

// Encodes strides in units of 16 bytes: their low 32 bits from bit 96 on, and 4
// more bits each from bit 224 on. Extents start at bit 256, element strides at
// bit 416.
static void encode_tensor(const TensorMap *m, uint64_t *words) {
  for (int i = 0; i < m->rank - 1; i++) {
    set(words, 96 + 32 * i, 32, m->stride[i] >> 4);
    set(words, 224 + 4 * i, 4, m->stride[i] >> 36);
  }
  for (int i = 0; i < m->rank; i++) {
    set(words, 256 + 32 * i, 32, m->extent[i] - 1);
    set(words, 416 + 3 * i, 3, m->step[i] - 1);
  }
}

// Encodes the box from bit 440 on, one byte for each mode. An im2col map has
// its channels at bit 440, the corners from bit 448 on, and its pixels at bit
// 480.
static void encode_box(const TensorMap *m, uint64_t *words) {
  if (!m->im2col) {
    for (int i = 0; i < m->rank; i++)
      set(words, 440 + 8 * i, 8, m->box[i] - 1);
    return;
  }
  int bits = corner_bits(m);
  set(words, 440, 8, m->channels - 1);
  for (int i = 0; i < corners(m); i++) {
    set(words, 448 + bits * i, bits, m->lower[i]);
    set(words, 464 + bits * i, bits, m->upper[i]);
  }
  set(words, 480, 10, m->pixels - 1);
}

void tensormap_encode(const TensorMap *m, uint64_t words[TENSORMAP_WORDS]) {
  for (int i = 0; i < TENSORMAP_WORDS; i++) words[i] = 0;
  words[0] = m->address;
  encode_kind(m, words);
  encode_tensor(m, words);
  encode_box(m, words);
  set(words, 512, 32, encoded_bytes(m));
  set(words, 576, 32, m->swizzle ? 0x80 << m->swizzle : 0x10);
}

// ---- encoded maps ----

static int64_t get(const uint64_t words[TENSORMAP_WORDS], int at, int bits) {
  return (int64_t)(words[at / 64] >> at % 64 & (((uint64_t)1 << bits) - 1));
}

static void put(uint64_t words[TENSORMAP_WORDS], int at, int bits, int64_t v) {
  words[at / 64] &= ~((((uint64_t)1 << bits) - 1) << at % 64);
  set(words, at, bits, v);
}

void tensormap_read(const uint64_t words[TENSORMAP_WORDS], TensorMap *m) {
  m->address = words[0];
  for (int i = 0; i < TENSORMAP_RANK; i++)
    m->extent[i] = get(words, 256 + 32 * i, 32) + 1;
  for (int i = 0; i < TENSORMAP_RANK - 1; i++)
    m->stride[i] = get(words, 96 + 32 * i, 32) << 4 |
                   get(words, 224 + 4 * i, 4) << 36;
}

static int64_t get_signed(const uint64_t *words, int at, int bits) {
  int64_t half = (int64_t)1 << (bits - 1);
  return (get(words, at, bits) ^ half) - half;
}

// Decodes the box of a tiled map, or an im2col map's channels, corners and
// pixels.
static void decode_box(const uint64_t *words, TensorMap *m) {
  if (!m->im2col) {
    for (int i = 0; i < m->rank; i++)
      m->box[i] = get(words, 440 + 8 * i, 8) + 1;
    return;
  }
  int bits = corner_bits(m);
  m->channels = get(words, 440, 8) + 1;
  for (int i = 0; i < corners(m); i++) {
    m->lower[i] = get_signed(words, 448 + bits * i, bits);
    m->upper[i] = get_signed(words, 464 + bits * i, bits);
  }
  m->pixels = get(words, 480, 10) + 1;
}

bool tensormap_decode(const uint64_t words[TENSORMAP_WORDS], TensorMap *m,
                      Why *w) {
  *m = (TensorMap){.im2col = get(words, 64, 1), .rank = get(words, 68, 3) + 1,
                   .interleave = get(words, 75, 2),
                   .swizzle = get(words, 77, 2), .fill = get(words, 79, 1),
                   .l2 = get(words, 81, 2)};
  int64_t code = get(words, 71, 4);
  bool tf32 = get(words, 80, 1);
  while (m->type < TMT_COUNT && (types[m->type].code != code ||
                                 (types[m->type].cls == 'T') != tf32)) {
    m->type++;
  }
  m->sm100 = m->type == TMT_U4;
  if (!check_choices(m, w) || !check_rank(m, w)) return false;
  tensormap_read(words, m);
  for (int i = 0; i < m->rank; i++)
    m->step[i] = get(words, 416 + 3 * i, 3) + 1;
  decode_box(words, m);
  if (!tensormap_check(m, w)) return false;
  uint64_t again[TENSORMAP_WORDS];
  tensormap_encode(m, again);
  for (int i = 0; i < TENSORMAP_WORDS; i++) {
    if (again[i] == words[i]) continue;
    return why(w, ERR_ARG, "tensor map: word %d of the 16 is 0x%" PRIx64
               ", but the parameters decoded from the map encode 0x%" PRIx64,
               i, words[i], again[i]);
  }
  return true;
}

void tensormap_write(const TensorMap *m, uint64_t words[TENSORMAP_WORDS]) {
  words[0] = m->address;
  for (int i = 0; i < TENSORMAP_RANK; i++)
    put(words, 256 + 32 * i, 32, m->extent[i] - 1);
  for (int i = 0; i < TENSORMAP_RANK - 1; i++) {
    put(words, 96 + 32 * i, 32, m->stride[i] >> 4);
    put(words, 224 + 4 * i, 4, m->stride[i] >> 36);
  }
}

// ---- single fields ----

const char *tensormap_field(TensorMapField f) {
  static const char *const names[] = {
#define TF(id, name) name,
    TENSORMAP_FIELDS(TF)
#undef TF
  };
  return names[f];
}

// Sets the element type to the type that tensormap.replace numbers v. Its
// numbers follow the order of TENSORMAP_TYPES, except that f32.ftz precedes
// f64.
static void put_type(uint64_t words[TENSORMAP_WORDS], int64_t v) {
  static const uint8_t of[TMT_COUNT] = {
    TMT_U8, TMT_U16, TMT_U32, TMT_I32, TMT_U64, TMT_I64, TMT_F16, TMT_F32,
    TMT_F32_FTZ, TMT_F64, TMT_BF16, TMT_TF32, TMT_TF32_FTZ, TMT_U4};
  if (v < 0 || v >= TMT_COUNT) return;
  put(words, 71, 4, types[of[v]].code);
  put(words, 80, 1, types[of[v]].cls == 'T');
}

// Encodes the values that depend on several fields: the bytes of a copy, and
// the span of the swizzle.
static void put_derived(uint64_t words[TENSORMAP_WORDS]) {
  TensorMap m = {.rank = get(words, 68, 3) + 1, .swizzle = get(words, 77, 2)};
  int64_t code = get(words, 71, 4);
  while (m.type < TMT_COUNT && types[m.type].code != code) m.type++;
  if (get(words, 64, 1) || m.rank > TENSORMAP_RANK || m.type == TMT_COUNT)
    return;
  for (int i = 0; i < m.rank; i++) {
    m.box[i] = get(words, 440 + 8 * i, 8) + 1;
    m.step[i] = get(words, 416 + 3 * i, 3) + 1;
  }
  put(words, 512, 32, encoded_bytes(&m));
  put(words, 576, 32, m.swizzle ? 0x80 << m.swizzle : 0x10);
}

void tensormap_replace(uint64_t words[TENSORMAP_WORDS], TensorMapField f,
                       int mode, int64_t v) {
  switch (f) {
  case TMF_EXTENT: put(words, 256 + 32 * mode, 32, v - 1); return;
  case TMF_STRIDE:
    put(words, 96 + 32 * mode, 32, v >> 4);
    put(words, 224 + 4 * mode, 4, v >> 36);
    return;
  case TMF_ADDRESS: words[0] = (uint64_t)v; return;
  case TMF_RANK: put(words, 68, 3, v); break;
  case TMF_BOX: put(words, 440 + 8 * mode, 8, v - 1); break;
  case TMF_STEP: put(words, 416 + 3 * mode, 3, v - 1); break;
  case TMF_TYPE: put_type(words, v); break;
  case TMF_INTERLEAVE: put(words, 75, 2, v); break;
  case TMF_SWIZZLE: put(words, 77, 2, v); break;
  case TMF_FILL: put(words, 79, 1, v); break;
  case TMF_COUNT: break;
  }
  put_derived(words);
}
// SPDX-License-Identifier: MIT
