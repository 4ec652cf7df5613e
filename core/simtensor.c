// Tensor cores and matrix copies: registers of the warp gathered into tiles
// by the tables of simatom.c, and back.
#include "simregs.h"

// 32-bit registers to and from units of registers, in every lane.
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
      simtaint_registers(w, i, m, x->reg[r] + (uint32_t)k, FULL);
    get_words(m, rmem_at(w, m, x->reg[r]), word);
    for (int l = 0; l < LANES; l++) {
      piece[h[l]] = (uint16_t)word[l];
      piece[h[LANES + l]] = (uint16_t)(word[l] >> 16);
    }
  }
}

void simtensor_matrix(SimWarp *w, const SimIns *i) {
  const SimMatrix *x = i->x;
  if (!simexec_together(w, i, FULL)) return;
  simmem_converge(w);
  int64_t off[LANES];
  SimLaneBuf buf;           // the rows, in order
  uint16_t piece[32 * 8];   // the same in pieces of 16 bits
  memset(buf, 0, sizeof buf);
  simmem_offsets(w, &x->smem, off);
  if (x->store) {
    matrix_store(w, i, x, piece);
    memcpy(buf, piece, (size_t)x->num * 128);
    simmem_rows(w, i, x, off, buf);
  } else {
    simmem_rows(w, i, x, off, buf);
    memcpy(piece, buf, sizeof piece);
    matrix_load(w, x, piece);
  }
  simmem_converge(w);
}

enum { TILE = 4096 };  // elements of the largest operand

// One value of the lanes of a group to its places in a tile, and back, for
// elements of SIZE bytes.
#define MOVE(SIZE, to, from) \
  for (int t = 0; t < n; t++) \
    memcpy((to), (from), SIZE); \
  break
#define TILE_AT(SIZE) (tile + (size_t)at[lane[t]] * SIZE)
#define REG_AT(SIZE) (p + (size_t)lane[t] * SIZE)

// Registers of group g to a row-major tile of raw elements.
static void tile_raw(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                     int g, char *tile) {
  const uint8_t *lane = x->lane + g * x->threads;
  int n = x->threads;
  for (int v = 0; v < o->nval; v++) {
    const uint16_t *at = o->at + v * LANES;
    const char *p = rmem_at(w, o->mem, o->reg[v]);
    switch (o->mem->size) {
      case 1: MOVE(1, TILE_AT(1), REG_AT(1));
      case 2: MOVE(2, TILE_AT(2), REG_AT(2));
      case 4: MOVE(4, TILE_AT(4), REG_AT(4));
      default: MOVE(8, TILE_AT(8), REG_AT(8));
    }
  }
}

static void untile(SimWarp *w, const SimMmaIns *x, int g, const char *tile) {
  const SimOperand *o = &x->d;
  const uint8_t *lane = x->lane + g * x->threads;
  int n = x->threads;
  for (int v = 0; v < o->nval; v++) {
    const uint16_t *at = o->at + v * LANES;
    char *p = rmem_at(w, o->mem, o->reg[v]);
    switch (o->mem->size) {
      case 2: MOVE(2, REG_AT(2), TILE_AT(2));
      case 4: MOVE(4, REG_AT(4), TILE_AT(4));
      default: MOVE(8, REG_AT(8), TILE_AT(8));
    }
  }
}

static int16_t small_int(DType t, uint8_t u) {
  switch ((int)t) {
    case DT_I8: return (int8_t)u;
    case DT_I4: return (int16_t)((u & 15) - ((u & 8) << 1));
    case DT_U4: return u & 15;
    default: return u;
  }
}

// Accumulators: raw tile to the type simmma works in, and back, in place.
static void widen_f16(char *tile, int n) {
  float *f = (float *)(void *)tile;
  for (int k = n; k-- > 0;) {
    uint16_t u;
    memcpy(&u, tile + k * 2, 2);
    f[k] = dtype_to_float(DT_F16, u);
  }
}

static void narrow_f16(char *tile, int n) {
  for (int k = 0; k < n; k++) {
    float f;
    memcpy(&f, tile + k * 4, 4);
    uint16_t u = (uint16_t)dtype_from_float(DT_F16, f);
    memcpy(tile + k * 2, &u, 2);
  }
}

static void float_tile(SimWarp *w, const SimMmaIns *x, int g,
                       const SimOperand *o, float *out) {
  char *raw = (char *)(w->cta->tile) + 3 * TILE * 8;
  tile_raw(w, x, o, g, raw);
  if (o->mem->unit >= 8) {
    simmma_widen(o->type, raw, (size_t)o->size, out);
    return;
  }
  for (int k = 0; k < o->size; k++)
    out[k] = dtype_to_float(o->type, (uint8_t)raw[k]);
}

static void mma_float(SimWarp *w, const SimMmaIns *x, int g) {
  float *a = w->cta->tile, *b = a + TILE, *c = b + TILE;
  int m = x->row->m, n = x->row->n;
  float_tile(w, x, g, &x->a, a);
  float_tile(w, x, g, &x->b, b);
  tile_raw(w, x, &x->c, g, (char *)c);
  bool half = x->row->d_type == DT_F16;
  if (half) widen_f16((char *)c, m * n);
  simmma_tile(&x->m, m, n, a, b, c, c);
  if (half) narrow_f16((char *)c, m * n);
  untile(w, x, g, (char *)c);
}

static void int_tile(SimWarp *w, const SimMmaIns *x, int g,
                     const SimOperand *o, int16_t *out) {
  char *raw = (char *)(w->cta->tile) + 3 * TILE * 8;
  tile_raw(w, x, o, g, raw);
  for (int k = 0; k < o->size; k++)
    out[k] = small_int(o->type, (uint8_t)raw[k]);
}

static void mma_int(SimWarp *w, const SimMmaIns *x, int g) {
  char *t = (char *)w->cta->tile;
  int16_t *a = (int16_t *)(void *)t;
  int16_t *b = (int16_t *)(void *)(t + TILE * 8);
  int32_t *c = (int32_t *)(void *)(t + 2 * TILE * 8);
  int_tile(w, x, g, &x->a, a);
  int_tile(w, x, g, &x->b, b);
  tile_raw(w, x, &x->c, g, (char *)c);
  simmma_tile_int(&x->m, x->row->m, x->row->n, a, b, c, c);
  untile(w, x, g, (char *)c);
}

static void bit_tile(SimWarp *w, const SimMmaIns *x, int g,
                     const SimOperand *o, uint32_t *out) {
  char *raw = (char *)(w->cta->tile) + 3 * TILE * 8;
  tile_raw(w, x, o, g, raw);
  memset(out, 0, (size_t)o->size / 8);
  for (int k = 0; k < o->size; k++)
    out[k / 32] |= (uint32_t)(raw[k] & 1) << (k % 32);
}

static void mma_bit(SimWarp *w, const SimMmaIns *x, int g) {
  char *t = (char *)w->cta->tile;
  uint32_t *a = (uint32_t *)(void *)t;
  uint32_t *b = (uint32_t *)(void *)(t + TILE * 8);
  int32_t *c = (int32_t *)(void *)(t + 2 * TILE * 8);
  bit_tile(w, x, g, &x->a, a);
  bit_tile(w, x, g, &x->b, b);
  tile_raw(w, x, &x->c, g, (char *)c);
  simmma_tile_bit(&x->m, x->row->m, x->row->n, a, b, c, c);
  untile(w, x, g, (char *)c);
}

static void mma_double(SimWarp *w, const SimMmaIns *x, int g) {
  double *a = (double *)(void *)w->cta->tile, *b = a + TILE, *c = b + TILE;
  tile_raw(w, x, &x->a, g, (char *)a);
  tile_raw(w, x, &x->b, g, (char *)b);
  tile_raw(w, x, &x->c, g, (char *)c);
  simmma_tile_f64(&x->m, x->row->m, x->row->n, a, b, c, c);
  untile(w, x, g, (char *)c);
}

// UniversalFMA: every lane for itself, in the type of the result.
static void fma_lanes(SimWarp *w, const SimMmaIns *x) {
  const AtomMma *r = x->row;
  DType t = r->d_type;
  SimIns f = {.op = OP_FMA, .type = (uint8_t)t}, cv = {.op = OP_CVT};
  const SimOperand *o[3] = {&x->a, &x->b, &x->c};
  for (int l = 0; l < LANES; l++) {
    if (!(w->active >> l & 1)) continue;
    uint64_t u[3];
    for (int k = 0; k < 3; k++) {
      u[k] = rmem_get(rmem_at(w, o[k]->mem, o[k]->reg[0]),
                      o[k]->mem->size, l);
      if (o[k]->type == t) continue;
      cv.type = (uint8_t)o[k]->type;
      cv.to = (uint8_t)t;
      u[k] = simalu_one(&cv, u[k], 0, 0);
    }
    rmem_put(rmem_at(w, x->d.mem, x->d.reg[0]), x->d.mem->size, l,
             simalu_one(&f, u[0], u[1], u[2]));
  }
}

// ---- undefined operands ----

// Is every value defined in every active lane? none: in no lane at all.
static bool all_defined(SimWarp *w, const SimOperand *o, bool *none) {
  uint32_t both = FULL, any = 0;
  for (int v = 0; v < o->nval; v++) {
    uint32_t d = rmem_def(w, o->mem)[o->reg[v]];
    both &= d;
    any |= d;
  }
  *none = !(any & w->active);
  return !(w->active & ~both);
}

// Marks the rows of a tile that hold an undefined element of group g.
static void bad_rows(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                     int g, int cols, bool *bad) {
  for (int v = 0; v < o->nval; v++) {
    uint32_t d = rmem_def(w, o->mem)[o->reg[v]];
    for (int t = 0; t < x->threads; t++) {
      int l = x->lane[g * x->threads + t];
      if (!(d >> l & 1)) bad[o->at[v * LANES + l] / cols] = true;
    }
  }
}

// An element of D is undefined where C's is, or one of A's row or B's row.
static void spread_undefined(SimWarp *w, const SimMmaIns *x) {
  enum { MOST = 256 };
  int n = x->row->n, k = x->row->k;
  uint32_t def[MOST];
  for (int v = 0; v < x->d.nval && v < MOST; v++)
    def[v] = rmem_def(w, x->c.mem)[x->c.reg[v]];
  for (int g = 0; g < x->groups; g++) {
    bool row[MOST] = {false}, col[MOST] = {false};
    bad_rows(w, x, &x->a, g, k, row);
    bad_rows(w, x, &x->b, g, k, col);
    for (int v = 0; v < x->d.nval && v < MOST; v++)
      for (int t = 0; t < x->threads; t++) {
        int l = x->lane[g * x->threads + t];
        int at = x->d.at[v * LANES + l];
        if (row[at / n] || col[at % n]) def[v] &= ~(1u << l);
      }
  }
  for (int v = 0; v < x->d.nval && v < MOST; v++) {
    uint32_t *d = rmem_def(w, x->d.mem) + x->d.reg[v];
    *d = (*d & ~w->active) | (def[v] & w->active);
  }
}

// What is known of D. An operand that nobody wrote at all is a fault here;
// parts of one may belong to rows that are never stored.
static void define(SimWarp *w, const SimIns *i, const SimMmaIns *x) {
  const SimOperand *o[3] = {&x->a, &x->b, &x->c};
  bool clean = true;
  for (int k = 0; k < 3; k++) {
    bool none;
    if (all_defined(w, o[k], &none)) continue;
    if (!none) clean = false;
    for (int v = 0; none && v < o[k]->nval; v++)
      simtaint_registers(w, i, o[k]->mem, o[k]->reg[v], w->active);
  }
  if (!clean) {
    spread_undefined(w, x);
    return;
  }
  for (int v = 0; v < x->d.nval; v++)
    rmem_def(w, x->d.mem)[x->d.reg[v]] |= w->active;
}

void simtensor_mma(SimWarp *w, const SimIns *i) {
  const SimMmaIns *x = i->x;
  bool plain = (x->row->flags & AMF_FMA) != 0;
  if (!plain && !simexec_together(w, i, FULL)) return;
  define(w, i, x);
  if (plain) {
    fma_lanes(w, x);
    return;
  }
  simmem_converge(w);
  w->cta->mmas++;
  DType a = x->row->a_type;
  for (int g = 0; g < x->groups; g++) {
    if (a == DT_F64) mma_double(w, x, g);
    else if (a == DT_B1) mma_bit(w, x, g);
    else if (dtype_is_int(a)) mma_int(w, x, g);
    else mma_float(w, x, g);
  }
}

