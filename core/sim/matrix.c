// Executes tensor-core instructions and matrix copies. Gathers the registers of
// a warp into tiles, and scatters tiles to registers (decode/fragments.c).
#include "sim/matrix.h"
#include "sim/regs.h"

// put_words stores one 32-bit word of each lane to registers. get_words reads
// these words from registers. A word may occupy several register units.
static void put_words(const SimMem *m, char *p, const uint32_t *word) {
  int per = 32 / m->unit;
  uint32_t all = (uint32_t)unit_mask(m);
  if (m->unit == 16) {
    uint16_t *q = (uint16_t *)(void *)p;
    for (int l = 0; l < LANES; l++) q[l] = (uint16_t)word[l];
    for (int l = 0; l < LANES; l++) q[LANES + l] = (uint16_t)(word[l] >> 16);
    return;
  }
  for (int k = 0; k < per; k++, p += LANES * m->size)
    for (int l = 0; l < LANES; l++)
      rmem_put(p, m->size, l, word[l] >> (k * m->unit) & all);
}

static void get_words(const SimMem *m, const char *p, uint32_t *word) {
  int per = 32 / m->unit;
  memset(word, 0, LANES * sizeof *word);
  for (int k = 0; k < per; k++, p += LANES * m->size)
    for (int l = 0; l < LANES; l++)
      word[l] |= (uint32_t)rmem_get(p, m->size, l) << (k * m->unit);
}

static void matrix_load(SimWarp *w, const SimMatrix *x,
                        const uint16_t *piece) {
  const SimMem *m = x->rmem;
  uint32_t word[LANES];
  for (int r = 0; r < x->num; r++) {
    const uint8_t *h = x->half + r * 2 * LANES;
    for (int l = 0; l < LANES; l++)
      word[l] = piece[h[l]] | (uint32_t)piece[h[LANES + l]] << 16;
    put_words(m, rmem_at(w, m, x->reg[r]), word);
    for (int k = 0; k < 32 / m->unit; k++)
      rmem_def(w, m)[x->reg[r] + (uint32_t)k] = FULL;
  }
}

static void matrix_store(SimWarp *w, const SimIns *i, const SimMatrix *x,
                         uint16_t *piece) {
  const SimMem *m = x->rmem;
  uint32_t word[LANES];
  for (int r = 0; r < x->num; r++) {
    const uint8_t *h = x->half + r * 2 * LANES;
    for (int k = 0; k < 32 / m->unit; k++)
      w->cluster->hooks->value.registers(w, i, m, x->reg[r] + (uint32_t)k,
                                         FULL);
    get_words(m, rmem_at(w, m, x->reg[r]), word);
    for (int l = 0; l < LANES; l++) {
      piece[h[l]] = (uint16_t)word[l];
      piece[h[LANES + l]] = (uint16_t)(word[l] >> 16);
    }
  }
}

// Reads a 32-bit register of all lanes. Reports undefined values in the lanes
// of mask, in the low `bits` bits.
static void get_word(SimWarp *w, const SimIns *i, const SimWord *x,
                     uint32_t mask, int bits, uint32_t *word) {
  for (int k = 0; k * x->mem->unit < bits; k++)
    w->cluster->hooks->value.registers(w, i, x->mem, x->unit + (uint32_t)k,
                                       mask);
  get_words(x->mem, rmem_at(w, x->mem, x->unit), word);
}

// Executes movmatrix, which transposes an 8x8 matrix. Lane 4i+j holds columns
// 2j and 2j+1 of row i.
static void matrix_move(SimWarp *w, const SimIns *i, const SimMatrix *x) {
  const SimMem *m = x->rmem;
  uint32_t from[LANES], to[LANES];
  get_word(w, i, &x->from, FULL, 32, from);
  for (int l = 0; l < LANES; l++) {
    to[l] = 0;
    for (int h = 0; h < 2; h++) {
      int row = l % 4 * 2 + h, col = l / 4;
      to[l] |= (from[row * 4 + col / 2] >> (col % 2 * 16) & 0xffff)
               << (16 * h);
    }
  }
  put_words(m, rmem_at(w, m, x->reg[0]), to);
  for (int k = 0; k < 32 / m->unit; k++)
    rmem_def(w, m)[x->reg[0] + (uint32_t)k] = FULL;
}

void simmatrix_matrix(SimWarp *w, const SimIns *i) {
  const SimMatrix *x = i->x;
  if (x->from.mem) {
    matrix_move(w, i, x);
    return;
  }
  int64_t off[LANES];
  SimLaneBuf buf;           // rows of the matrices, in order
  uint16_t piece[32 * 8];   // the rows, in elements of 16 bits
  memset(buf, 0, sizeof buf);
  simmem_offsets(w, &x->smem, off);
  if (x->store) {
    matrix_store(w, i, x, piece);
    for (int r = 0; r < x->num * 8; r++) memcpy(buf[r], piece + r * 8, 16);
    simmem_rows(w, i, x, off, buf);
  } else {
    simmem_rows(w, i, x, off, buf);
    for (int r = 0; r < 32; r++) memcpy(piece + r * 8, buf[r], 16);
    matrix_load(w, x, piece);
  }
}

// Returns scratch buffer k. Buffers 0 to 2 hold A, B and C. Buffer 3 holds raw
// elements of an operand. Buffers 4 and 5 hold A and B for mma_multiply.
void *simmatrix_room(SimWarp *w, int k) {
  return w->cluster->mma.tile + k * SIM_ROOM;
}

static void *room(SimWarp *w, int k) { return simmatrix_room(w, k); }

// Copies one value of each lane of a group between registers and a tile. SIZE
// is the number of bytes of an element.
#define MOVE(SIZE, to, from) \
  for (int t = 0; t < n; t++) \
    memcpy((to), (from), SIZE); \
  break
#define TILE_AT(SIZE) (tile + (size_t)at[lane[t]] * SIZE)
#define REG_AT(SIZE) (p + (size_t)lane[t] * SIZE)

// Returns value v of lane l. If a view of the registers has narrower elements,
// the value consists of several register units, which are joined.
static uint64_t joined_get(SimWarp *w, const SimOperand *o, int v, int l) {
  const SimMem *m = o->mem;
  uint64_t u = 0;
  for (int k = 0; k < m->per && k * m->unit < 64; k++)
    u |= rmem_get(rmem_at(w, m, o->reg[v] + (uint32_t)k), m->size, l)
         << (k * m->unit);
  return u;
}

static void joined_put(SimWarp *w, const SimOperand *o, int v, int l,
                       uint64_t u) {
  const SimMem *m = o->mem;
  for (int k = 0; k < m->per && k * m->unit < 64; k++)
    rmem_put(rmem_at(w, m, o->reg[v] + (uint32_t)k), m->size, l,
             u >> (k * m->unit) & unit_mask(m));
}

// Returns the number of bytes that a value of operand o occupies in a tile.
static int value_size(const SimOperand *o) {
  return o->mem->per == 1 ? o->mem->size : o->mem->bits / 8;
}

// Copies operand o of the lanes in group g to a row-major tile of raw elements.
void simmatrix_gather(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                      int g, void *to) {
  char *tile = to;
  const uint8_t *lane = x->lane + g * x->threads;
  int n = x->threads, size = value_size(o);
  for (int v = 0; v < o->nval; v++) {
    const uint16_t *at = o->at + v * LANES;
    if (o->mem->per != 1) {
      for (int t = 0; t < n; t++) {
        uint64_t u = joined_get(w, o, v, lane[t]);
        memcpy(tile + (size_t)at[lane[t]] * (size_t)size, &u, (size_t)size);
      }
      continue;
    }
    const char *p = rmem_at(w, o->mem, o->reg[v]);
    switch (o->mem->size) {
      case 1: MOVE(1, TILE_AT(1), REG_AT(1));
      case 2: MOVE(2, TILE_AT(2), REG_AT(2));
      case 4: MOVE(4, TILE_AT(4), REG_AT(4));
      case 8: MOVE(8, TILE_AT(8), REG_AT(8));
      default: MOVE(16, TILE_AT(16), REG_AT(16));
    }
  }
}

void simmatrix_scatter(SimWarp *w, const SimMmaIns *x, int g,
                       const void *from) {
  const char *tile = from;
  const SimOperand *o = &x->d;
  const uint8_t *lane = x->lane + g * x->threads;
  int n = x->threads, size = value_size(o);
  for (int v = 0; v < o->nval; v++) {
    const uint16_t *at = o->at + v * LANES;
    if (o->mem->per != 1) {
      for (int t = 0; t < n; t++) {
        uint64_t u = 0;
        memcpy(&u, tile + (size_t)at[lane[t]] * (size_t)size, (size_t)size);
        joined_put(w, o, v, lane[t], u);
      }
      continue;
    }
    char *p = rmem_at(w, o->mem, o->reg[v]);
    switch (o->mem->size) {
      case 2: MOVE(2, REG_AT(2), TILE_AT(2));
      case 4: MOVE(4, REG_AT(4), TILE_AT(4));
      case 8: MOVE(8, REG_AT(8), TILE_AT(8));
      default: MOVE(16, REG_AT(16), TILE_AT(16));
    }
  }
}

static int16_t small_int(DType t, uint8_t u) {
  switch ((int)t) {
    case DT_I8: return (int8_t)u;
    // bit 3 is the sign
    case DT_I4: return (int16_t)((u & 15) - ((u & 8) << 1));
    case DT_U4: return u & 15;
    default: return u;
  }
}

// Convert n accumulators in place between raw f16 and f32, as mma.h needs.
void simmatrix_widen_f16(float *tile, int n) {
  for (int k = n; k-- > 0;) {
    uint16_t u;
    memcpy(&u, (char *)tile + k * 2, 2);
    tile[k] = dtype_to_float(DT_F16, u);
  }
}

void simmatrix_narrow_f16(float *tile, int n) {
  for (int k = 0; k < n; k++) {
    uint16_t u = (uint16_t)dtype_from_float(DT_F16, tile[k]);
    memcpy((char *)tile + k * 2, &u, 2);
  }
}

static void float_tile(SimWarp *w, const SimMmaIns *x, int g,
                       const SimOperand *o, float *out) {
  char *raw = room(w, 3);
  simmatrix_gather(w, x, o, g, raw);
  int bits = dtype_bits(o->type);
  if (bits >= 8) {
    mma_widen(o->type, raw, (size_t)o->size, out);
    return;
  }
  // A 4-bit float that is stored in its own byte is in bits 2 to 5.
  int shift = bits == 4 && o->mem->bits == 8 ? 2 : 0;
  for (int k = 0; k < o->size; k++)
    out[k] = dtype_to_float(o->type, (uint64_t)((uint8_t)raw[k] >> shift) &
                                       (((uint64_t)1 << bits) - 1));
}

// Reports whether o's registers already have the order of mma_multiply.
static bool is_arranged(const SimMmaIns *x, const SimOperand *o) {
  return x->arranged && o->mem->per == 1 && o->mem->size * 8 == o->mem->unit;
}

void simmatrix_accumulators(SimWarp *w, const SimMmaIns *x, int g, float *to) {
  const SimOperand *o = &x->c;
  int rows = x->rows, n = x->row->n;
  bool half = x->row->d_type == DT_F16;
  if (is_arranged(x, o)) {
    for (int v = 0; v < o->nval; v++, to += LANES) {
      const char *p = rmem_at(w, o->mem, o->reg[v]);
      if (half) mma_widen(DT_F16, p, LANES, to);
      else memcpy(to, p, LANES * sizeof *to);
    }
    return;
  }
  float *tile = room(w, 3);
  simmatrix_gather(w, x, o, g, tile);
  if (half) simmatrix_widen_f16(tile, rows * n);
  memset(to, 0, sizeof *to * (size_t)(MMA_ROWS * n));
  for (int k = 0; k < rows * n; k++) to[mma_place(k / n, k % n)] = tile[k];
}

void simmatrix_results(SimWarp *w, const SimMmaIns *x, int g,
                       const float *from) {
  const SimOperand *o = &x->d;
  int rows = x->rows, n = x->row->n;
  bool half = x->row->d_type == DT_F16;
  if (is_arranged(x, o) && !half) {
    for (int v = 0; v < o->nval; v++)
      memcpy(rmem_at(w, o->mem, o->reg[v]), from + v * LANES,
             LANES * sizeof *from);
    return;
  }
  float *tile = room(w, 3);
  for (int k = 0; k < rows * n; k++) tile[k] = from[mma_place(k / n, k % n)];
  if (half) simmatrix_narrow_f16(tile, rows * n);
  simmatrix_scatter(w, x, g, tile);
}

void simmatrix_nonfinite(SimWarp *w, const SimIns *i, int g, const float *a,
                         const float *b, const float *c, const float *d) {
  const SimMmaIns *x = i->x;
  int rows = x->rows, n = x->row->n;
  float *tile = room(w, 3), *d_tile = tile + SIM_ROOM / 8;
  for (int k = 0; k < rows * n; k++) {
    tile[k] = c[mma_place(k / n, k % n)];
    d_tile[k] = d[mma_place(k / n, k % n)];
  }
  w->cluster->hooks->value.tile(
    w, i, g, &(SimTile){a, b, tile, d_tile, rows, n, x->row->k});
}

// Converts operand A (which = 0) or B (which = 1) for mma_multiply.
static void prepare(SimWarp *w, const SimMmaIns *x, int g, int which,
                    float *to) {
  float *tile = room(w, 0);
  float_tile(w, x, g, which ? &x->b : &x->a, tile);
  if (which) mma_columns(&x->m, x->row->n, tile, to);
  else mma_rows(&x->m, x->row->m, tile, to);
}

static bool same_bytes(const char *p, const char *q, size_t n) {
  uint64_t differ = 0;
  for (size_t k = 0; k < n; k += 8) {
    uint64_t u, v;
    memcpy(&u, p + k, 8);
    memcpy(&v, q + k, 8);
    differ |= u ^ v;
  }
  return !differ;
}

// Returns operand A or B of an MMA in the form that mma_multiply needs. A loop
// over the tiles of a warp multiplies each operand several times, so the last
// converted operands are kept in slots. A slot holds the bytes of the operand's
// registers, followed by the converted operand.
static const float *prepared(SimWarp *w, const SimMmaIns *x, int g, int which) {
  enum { MOST = 64, ALIGN = 64 };
  const SimOperand *o = which ? &x->b : &x->a;
  SimPrepared *kept = &w->cluster->mma.kept[which];
  float *to = room(w, 4 + which);
  if (x->groups > 1 || o->mem->per != 1) {
    kept->row = NULL;
    prepare(w, x, g, which, to);
    return to;
  }
  int floats = which ? MMA_B_FLOATS(x->row->n, x->row->k)
                     : MMA_A_FLOATS(x->row->k);
  size_t each = (size_t)o->mem->size * LANES, raw = each * (size_t)o->nval;
  raw = (raw + ALIGN - 1) / ALIGN * ALIGN;
  size_t size = raw + (size_t)floats * sizeof *to, slots = SIM_ROOM / size;
  if (slots > MOST) slots = MOST;
  size_t k = o->reg[0] / (uint32_t)o->nval % slots;
  char *slot = (char *)to + k * size;
  to = (float *)(void *)(slot + raw);
  if (kept->row != x->row) kept->filled = 0;
  kept->row = x->row;
  bool same = kept->filled >> k & 1;
  for (int v = 0; same && v < o->nval; v++)
    same = same_bytes(slot + (size_t)v * each, rmem_at(w, o->mem, o->reg[v]),
                      each);
  if (same) return to;
  for (int v = 0; v < o->nval; v++)
    memcpy(slot + (size_t)v * each, rmem_at(w, o->mem, o->reg[v]), each);
  prepare(w, x, g, which, to);
  kept->filled |= (uint64_t)1 << k;
  return to;
}

static void mma_float(SimWarp *w, const SimIns *i, int g) {
  const SimMmaIns *x = i->x;
  const float *a = prepared(w, x, g, 0), *b = prepared(w, x, g, 1);
  float *c = room(w, 2), *d = c + SIM_ROOM / 8;
  simmatrix_accumulators(w, x, g, c);
  if (mma_multiply(&x->m, x->row->n, a, b, c, d) &&
      w->cluster->prog->watched) {
    float_tile(w, x, g, &x->a, room(w, 0));
    float_tile(w, x, g, &x->b, room(w, 1));
    simmatrix_nonfinite(w, i, g, room(w, 0), room(w, 1), c, d);
  }
  simmatrix_results(w, x, g, d);
}

static void int_tile(SimWarp *w, const SimMmaIns *x, int g,
                     const SimOperand *o, int16_t *out) {
  char *raw = room(w, 3);
  simmatrix_gather(w, x, o, g, raw);
  for (int k = 0; k < o->size; k++)
    out[k] = small_int(o->type, (uint8_t)raw[k]);
}

static void mma_int(SimWarp *w, const SimMmaIns *x, int g) {
  int16_t *a = room(w, 0), *b = room(w, 1);
  int32_t *c = room(w, 2);
  int_tile(w, x, g, &x->a, a);
  int_tile(w, x, g, &x->b, b);
  simmatrix_gather(w, x, &x->c, g, c);
  mma_tile_int(&x->m, x->row->m, x->row->n, a, b, c, c);
  simmatrix_scatter(w, x, g, c);
}

static void bit_tile(SimWarp *w, const SimMmaIns *x, int g,
                     const SimOperand *o, uint32_t *out) {
  char *raw = room(w, 3);
  simmatrix_gather(w, x, o, g, raw);
  memset(out, 0, (size_t)o->size / 8);
  for (int k = 0; k < o->size; k++)
    out[k / 32] |= (uint32_t)(raw[k] & 1) << (k % 32);
}

static void mma_bit(SimWarp *w, const SimMmaIns *x, int g) {
  uint32_t *a = room(w, 0), *b = room(w, 1);
  int32_t *c = room(w, 2);
  bit_tile(w, x, g, &x->a, a);
  bit_tile(w, x, g, &x->b, b);
  simmatrix_gather(w, x, &x->c, g, c);
  mma_tile_bit(&x->m, x->row->m, x->row->n, a, b, c, c);
  simmatrix_scatter(w, x, g, c);
}

static void mma_double(SimWarp *w, const SimMmaIns *x, int g) {
  double *a = room(w, 0), *b = room(w, 1), *c = room(w, 2);
  simmatrix_gather(w, x, &x->a, g, a);
  simmatrix_gather(w, x, &x->b, g, b);
  simmatrix_gather(w, x, &x->c, g, c);
  mma_tile_f64(&x->m, x->row->m, x->row->n, a, b, c, c);
  simmatrix_scatter(w, x, g, c);
}

// Multiplies matrices of complex doubles as the GPU does: by four
// multiplications of real and imaginary parts.
static void mma_complex(SimWarp *w, const SimMmaIns *x, int g) {
  enum { MOST_K = 16 };
  double *a = room(w, 0), *b = room(w, 1), *c = room(w, 2);
  int M = x->row->m, N = x->row->n, K = x->row->k;
  SimMma one = x->m;
  one.a = one.b = one.c = DT_F64;
  simmatrix_gather(w, x, &x->a, g, a);
  simmatrix_gather(w, x, &x->b, g, b);
  simmatrix_gather(w, x, &x->c, g, c);
  static const int parts[4][3] = {{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {1, 1, 0}};
  for (int i = 0; i < M * N; i++)
    for (int p = 0; p < 4; p++) {
      double ra[MOST_K], rb[MOST_K], *d = &c[i * 2 + parts[p][0]];
      for (int k = 0; k < K; k++) {
        double re = a[(i / N * K + k) * 2 + parts[p][1]];
        ra[k] = p == 2 ? -re : re;
        rb[k] = b[(i % N * K + k) * 2 + parts[p][2]];
      }
      mma_tile_f64(&one, 1, 1, ra, rb, d, d);
    }
  simmatrix_scatter(w, x, g, c);
}

// ---- block-scaled and sparse ----

// Returns the lanes from which the instruction reads metadata.
static uint32_t metadata_lanes(const AtomMma *r) {
  // If a row has two words of metadata, these words are in two of the four
  // lanes of a quad.
  bool alike = atom_mma_words(r) == 2;
  return alike ? 0x33333333u << 2 * r->selector : FULL;
}

static bool group_known(const AtomMma *r, int four) {
  int i = four & 3, j = four >> 2;
  return r->group == 2 ? four == 0x4 || four == 0xe : i != j;
}

void simmatrix_metadata(SimWarp *w, const SimMmaIns *x, uint16_t *e) {
  const SimWord *from = &x->more[x->row->flags & AMF_SCALE ? 2 : 0];
  uint32_t word[LANES], mask = metadata_lanes(x->row);
  get_words(from->mem, rmem_at(w, from->mem, from->unit), word);
  for (int l = 0; l < LANES; l++)
    for (int h = 0; h < 2 && mask >> l & 1; h++)
      e[x->meta.at[h * LANES + l]] = (uint16_t)(word[l] >> (16 * h));
}

void simmatrix_check_metadata(SimWarp *w, const SimIns *i,
                              const SimMmaIns *x) {
  const AtomMma *r = x->row;
  const SimWord *from = &x->more[r->flags & AMF_SCALE ? 2 : 0];
  uint32_t word[LANES], mask = metadata_lanes(r);
  get_word(w, i, from, mask, 32, word);
  for (int l = 0; l < LANES; l++)
    for (int k = 0; k < 8 && mask >> l & 1; k++) {
      int four = (int)(word[l] >> (4 * k) & 15);
      if (group_known(r, four)) continue;
      SimFault *f = simreport_fault(w, SIM_METADATA, l, i->src, 0, -1, 0);
      if (f) f->metadata.four = four, f->metadata.group = r->group;
      w->cluster->stop = true;
      return;
    }
}

int simmatrix_stored_at(const AtomMma *r, const uint16_t *e, int m, int i) {
  int half = r->group / 2, g = i / half, in = i % half;
  int four = e[m * atom_mma_words(r) + g / 4] >> (g % 4 * 4) & 15;
  // which of the two 2-bit indices in `four` selects the element
  int index = in * 2 / half;
  int pick = four >> (2 * index) & 3, each = half / 2;
  return g * r->group + pick * r->group / 4 + (each ? in % each : 0);
}

// Unpacks the scale factors of a row. Lane 4 * (row % 8) + row / 8 holds them.
static void row_scales(const SimMmaIns *x, const uint32_t *word, int row,
                       uint8_t *to) {
  uint32_t u = word[row % 8 * 4 + row / 8];
  for (int k = 0; k < x->row->k / x->row->vs; k++)
    to[k] = (uint8_t)(u >> (8 * k));
}

static void scaled_tile(SimWarp *w, const SimIns *ins, const SimMmaIns *x) {
  const AtomMma *r = x->row;
  bool sparse = r->flags & AMF_SPARSE, scale = r->flags & AMF_SCALE;
  float *a = room(w, 0), *b = room(w, 1), *c = room(w, 2);
  uint32_t sa[LANES], sb[LANES];
  uint16_t e[SIM_METADATA_MOST];
  int stored = atom_mma_depth(r), n = r->n;
  float_tile(w, x, 0, &x->a, a);
  float_tile(w, x, 0, &x->b, b);
  simmatrix_gather(w, x, &x->c, 0, c);
  bool half = r->d_type == DT_F16;
  if (half) simmatrix_widen_f16(c, r->m * n);
  int factors = scale ? 8 * (r->k / r->vs) : 0;
  if (scale) get_word(w, ins, &x->more[0], 0x33333333, factors, sa);
  if (scale) get_word(w, ins, &x->more[1], 0x11111111, factors, sb);
  if (sparse) simmatrix_check_metadata(w, ins, x);
  if (sparse) simmatrix_metadata(w, x, e);
  SimScaled q = {.m = &x->m, .n = stored, .type = r->sf_type};
  if (scale) q.per = r->vs / (r->k / stored);
  for (int i = 0; i < r->m * n; i++) {
    float row[128];
    const float *bi = b + i % n * r->k;
    for (int k = 0; k < stored; k++)
      row[k] = bi[sparse ? simmatrix_stored_at(r, e, i / n, k) : k];
    if (scale) row_scales(x, sa, i / n, q.sa);
    if (scale) row_scales(x, sb, i % n, q.sb);
    c[i] = mma_scaled(&q, a + i / n * stored, row, c[i]);
  }
  if (half) simmatrix_narrow_f16(c, r->m * n);
  simmatrix_scatter(w, x, 0, c);
}

// Executes dp4a, dp2a and packed multiply-adds: every lane has its own tile.
static void mma_lanes(SimWarp *w, const SimIns *i) {
  const SimMmaIns *x = i->x;
  const AtomMma *r = x->row;
  enum { MOST = 8 };
  bool watched = w->cluster->prog->watched;
  for (int l = 0; l < LANES; l++) {
    if (!(w->active >> l & 1)) continue;
    const SimOperand *o[3] = {&x->a, &x->b, &x->c};
    uint64_t u[3][MOST];
    for (int k = 0; k < 3; k++)
      for (int v = 0; v < o[k]->nval && v < MOST; v++)
        u[k][o[k]->at[v * LANES + l]] = joined_get(w, o[k], v, l);
    for (int v = 0; v < x->d.nval; v++) {
      int at = x->d.at[v * LANES + l], m = at / r->n, n = at % r->n;
      uint64_t d = u[2][at];
      for (int k = 0; k < r->k; k++) {
        uint64_t p = u[0][m * r->k + k], q = u[1][n * r->k + k];
        if (r->d_type == DT_F32) {
          SimIns f = {.op = OP_FMA, .type = DT_F32};
          uint64_t sum = simalu_one(&f, p, q, d);
          if (watched)
            w->cluster->hooks->value.fma(w, i, l, DT_F32, p, q, d, sum);
          d = sum;
        } else {
          d += (uint64_t)((int64_t)dtype_to_double(r->a_type, p) *
                          (int64_t)dtype_to_double(r->b_type, q));
        }
      }
      joined_put(w, &x->d, v, l, d & FULL);
    }
  }
}

// Executes UniversalFMA: every lane computes one result, in the result's type.
static void fma_lanes(SimWarp *w, const SimIns *i) {
  const SimMmaIns *x = i->x;
  bool watched = w->cluster->prog->watched;
  const AtomMma *r = x->row;
  DType t = r->d_type;
  SimIns f = {.op = OP_FMA, .type = (uint8_t)t}, cv = {.op = OP_CVT};
  const SimOperand *o[3] = {&x->a, &x->b, &x->c};
  for (int l = 0; l < LANES; l++) {
    if (!(w->active >> l & 1)) continue;
    uint64_t u[3];
    for (int k = 0; k < 3; k++) {
      u[k] = joined_get(w, o[k], 0, l);
      if (o[k]->type == t) continue;
      cv.type = (uint8_t)o[k]->type;
      cv.to = (uint8_t)t;
      u[k] = simalu_one(&cv, u[k], 0, 0);
    }
    uint64_t d = simalu_one(&f, u[0], u[1], u[2]);
    if (watched) w->cluster->hooks->value.fma(w, i, l, t, u[0], u[1], u[2], d);
    joined_put(w, &x->d, 0, l, d);
  }
}

// ---- undefined operands ----

// value_def returns the lanes in which value v of operand o is defined. set_def
// marks value v as defined or undefined in the active lanes.
static uint32_t value_def(SimWarp *w, const SimOperand *o, int v) {
  uint32_t d = FULL;
  for (int k = 0; k < o->mem->per; k++)
    d &= rmem_def(w, o->mem)[o->reg[v] + (uint32_t)k];
  return d;
}

static void set_def(SimWarp *w, const SimOperand *o, int v, uint32_t def) {
  for (int k = 0; k < o->mem->per; k++) {
    uint32_t *d = rmem_def(w, o->mem) + o->reg[v] + (uint32_t)k;
    *d = (*d & ~w->active) | (def & w->active);
  }
}

// Reports whether every value of operand o is defined in all active lanes. Sets
// *none to whether every value is undefined in all of them.
static bool all_defined(SimWarp *w, const SimOperand *o, bool *none) {
  uint32_t both = FULL, any = 0;
  for (int v = 0; v < o->nval; v++) {
    uint32_t d = value_def(w, o, v);
    both &= d;
    any |= d;
  }
  *none = !(any & w->active);
  return !(w->active & ~both);
}

// Marks in `bad` the rows of o's tile with an undefined element from group g.
static void bad_rows(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                     int g, int cols, bool *bad) {
  for (int v = 0; v < o->nval; v++) {
    uint32_t d = value_def(w, o, v);
    for (int t = 0; t < x->threads; t++) {
      int l = x->lane[g * x->threads + t];
      if (!(d >> l & 1)) bad[o->at[v * LANES + l] / cols] = true;
    }
  }
}

// Marks an element of D as undefined if it depends on an undefined element: the
// same element of C, an element in its row of A, or one in its column of B.
static void spread_undefined(SimWarp *w, const SimMmaIns *x) {
  enum { MOST = 256 };
  int n = x->row->n, k = x->row->k;
  int ka = atom_mma_depth(x->row);
  uint32_t def[MOST];
  for (int v = 0; v < x->d.nval && v < MOST; v++)
    def[v] = value_def(w, &x->c, v);
  for (int g = 0; g < x->groups; g++) {
    bool row[MOST] = {false}, col[MOST] = {false};
    bad_rows(w, x, &x->a, g, ka, row);
    bad_rows(w, x, &x->b, g, k, col);
    for (int v = 0; v < x->d.nval && v < MOST; v++)
      for (int t = 0; t < x->threads; t++) {
        int l = x->lane[g * x->threads + t];
        int at = x->d.at[v * LANES + l];
        if (row[at / n] || col[at % n]) def[v] &= ~(1u << l);
      }
  }
  for (int v = 0; v < x->d.nval && v < MOST; v++)
    set_def(w, &x->d, v, def[v]);
}

// Sets which elements of D are defined. An operand without any defined element
// is a fault. A partly undefined operand is no fault, because it may only
// affect rows that are never stored.
static void define(SimWarp *w, const SimIns *i, const SimMmaIns *x) {
  const SimOperand *o[3] = {&x->a, &x->b, &x->c};
  bool clean = true;
  for (int k = 0; k < 3; k++) {
    bool none;
    if (all_defined(w, o[k], &none)) continue;
    if (!none) clean = false;
    for (int v = 0; none && v < o[k]->nval; v++)
      for (int j = 0; j < o[k]->mem->per; j++)
        w->cluster->hooks->value.registers(w, i, o[k]->mem,
                                           o[k]->reg[v] + (uint32_t)j,
                                           w->active);
  }
  if (!clean) {
    spread_undefined(w, x);
    return;
  }
  for (int v = 0; v < x->d.nval; v++) set_def(w, &x->d, v, FULL);
}

void simmatrix_mma(SimWarp *w, const SimIns *i) {
  const SimMmaIns *x = i->x;
  bool alone = atom_mma_alone(x->row);
  define(w, i, x);
  if (alone) {
    if (x->row->kind == MK_FMA) fma_lanes(w, i);
    else mma_lanes(w, i);
    return;
  }
  w->cluster->mmas++;
  DType a = x->row->a_type;
  if (x->row->flags & (AMF_SPARSE | AMF_SCALE)) {
    scaled_tile(w, i, x);
    return;
  }
  for (int g = 0; g < x->groups; g++) {
    if (a == DT_F64) mma_double(w, x, g);
    else if (a == DT_C64) mma_complex(w, x, g);
    else if (a == DT_B1) mma_bit(w, x, g);
    else if (dtype_is_int(a)) mma_int(w, x, g);
    else mma_float(w, i, g);
  }
}

// SPDX-License-Identifier: MIT
