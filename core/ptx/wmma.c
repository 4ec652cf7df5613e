// wmma.c: translates wmma instructions to loads, stores and mma instructions.
// The PTX ISA does not specify the layout of wmma's fragments. Here the
// fragments have the layout of the fragments of one or two mma instructions
// with the same K.
#include <string.h>

#include "ptx/calls.h"

// The mma instruction for A and B of element type `type`. `rows` and `k` are
// the extents of A. `bits` is the width of an element.
typedef struct Kind {
  const char *type;
  int rows, k, bits;
} Kind;

static const Kind kinds[] = {
  {"f16", 16, 16, 16}, {"bf16", 16, 16, 16}, {"tf32", 16, 8, 32},
  {"s8", 16, 16, 8}, {"u8", 16, 16, 8}, {"f64", 8, 4, 64}, {"s4", 8, 32, 4},
  {"u4", 8, 32, 4}, {"b1", 8, 128, 1}};

// The extents of a wmma. An mma instruction has at least as many rows as
// columns. Therefore m8n32k16 is `turned`: computed as the product of the
// transposed matrices. rows, columns: number of mma instructions that cover the
// result along each mode. The result of an mma instruction has 8 columns.
typedef struct Extents {
  int m, n, k;
  bool turned;
  int height;  // rows of the mma instruction's result: 8 or 16
  int rows, columns;
} Extents;

// A fragment in memory. Element h of register r in lane 4 g + t is in row g +
// row(r) of the matrix. Its column is t * w + column(r) + h, where w is 2 for C
// and D, otherwise `each`. place_of returns row(r) and column(r). For B, rows
// and columns are exchanged.
typedef struct Fragment {
  PtxCopy *x;
  char part;            // operand of the mma instruction: 'a', 'b', 'c' or 'd'
  Extents shape;
  int bits, regs;
  int each;             // elements in a register
  int copies;           // number of times that the fragment contains each
                        // register
  bool along;           // whether the elements of a row are contiguous
  PtxArg base, place;   // base: register with the address of the lane's first
                        // element; place: the address operand
  PtxArg stride;        // register with the bytes between rows
} Fragment;

static bool word(const char *op, const char *w) {
  size_t n = strlen(w);
  for (const char *p = op; (p = strstr(p, w)) != NULL; p += n) {
    if (p > op && p[-1] == '.' && (p[n] == 0 || p[n] == '.')) return true;
  }
  return false;
}

_Noreturn static void reject(PtxCopy *x, const char *why) {
  ptx_fail(&x->b, "'%s' is not modelled: %s", x->b.at->op, why);
}

// Returns the shape that an opcode names.
static Extents shape_of_op(PtxCopy *x, const char *op) {
  static const Extents all[] = {
    {.m = 16, .n = 16, .k = 16}, {.m = 32, .n = 8, .k = 16},
    {.m = 8, .n = 32, .k = 16}, {.m = 16, .n = 16, .k = 8},
    {.m = 8, .n = 8, .k = 4}, {.m = 8, .n = 8, .k = 32},
    {.m = 8, .n = 8, .k = 128}};
  for (size_t q = 0; q < sizeof all / sizeof *all; q++) {
    Extents s = all[q];
    const char *name = arena_printf(x->b.cx, &x->b.cx->scratch, "m%dn%dk%d",
                                    s.m, s.n, s.k);
    if (!word(op, name)) continue;
    s.turned = s.m < s.n;
    int m = s.turned ? s.n : s.m, n = s.turned ? s.m : s.n;
    s.height = m > 8 ? 16 : 8;
    s.rows = m / s.height, s.columns = n / 8;
    return s;
  }
  reject(x, "this shape");
}

// Returns the mma instruction (Kind) for elements of A and B of a type and a
// shape.
static const Kind *kind_of(PtxCopy *x, const char *type, const Extents *s) {
  for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
    const Kind *k = &kinds[q];
    if (strcmp(k->type, type) == 0 && k->k == s->k && k->rows == s->height)
      return k;
  }
  reject(x, "this type with this shape");
}

static PtxArg integer(int64_t v) {
  return (PtxArg){.kind = PTX_A_INT, .value = v};
}

// Appends the instruction `op r, a, b`, where r is a new register of type t.
// Returns r.
static PtxArg compute(PtxCopy *x, const char *op, PtxType t, PtxArg a,
                      PtxArg b) {
  PtxArg r = copy_register(x, t);
  const PtxArg list[3] = {r, a, b};
  copy_push(x, op, list, 3);
  return r;
}

static const PtxType b16 = {PTX_B, 1, 16}, b32 = {PTX_B, 1, 32},
                     b64 = {PTX_B, 1, 64};

// Returns a register that holds the number of bytes of `elements` elements.
static PtxArg bytes_of(const Fragment *f, PtxArg elements) {
  PtxArg bits = compute(f->x, "mul.lo.u32", b32, elements, integer(f->bits));
  return compute(f->x, "shr.u32", b32, bits, integer(3));
}

// Returns how many elements of `bits` bits a register holds.
static int elements_in(int bits) { return bits > 32 ? 1 : 32 / bits; }

// Returns how many registers hold 8 rows of A, or 8 columns of B, with extent k
// along K.
static int registers_of_8(int k, int bits) {
  return k / (4 * elements_in(bits));
}

// Returns n registers as a list.
static PtxArg vector_of(PtxCopy *x, const PtxArg *part, int n) {
  PtxArg all = {.kind = PTX_A_VECTOR, .part = (uint32_t)x->m->args.n,
                .parts = (uint32_t)n};
  for (int q = 0; q < n; q++) vec_push(x->b.cx, x->m->args, part[q]);
  return all;
}

// Returns the row of register r of a fragment, and stores its column in
// *column.
static int place_of(const Fragment *f, int r, int *column) {
  int own = f->part == 'a' || f->part == 'b'
            ? registers_of_8(f->shape.k, f->bits) : 0;
  int groups = f->part == 'b' ? 1 : f->shape.height / 8;
  if (own) {  // A or B: registers of different groups of 8 rows alternate
    int tile = r / (own * groups), at = r % (own * groups);
    *column = 4 * f->each * (at / groups);
    return 8 * groups * tile + 8 * (at % groups);
  }
  own = 2 / f->each;  // C or D: consecutive registers in the same 8 rows
  int tile = r / (own * groups), at = r % (own * groups);
  *column = (f->shape.columns > 1 ? 8 * tile : 0) + at % own;
  return (f->shape.columns > 1 ? 0 : 16 * tile) + 8 * (at / own);
}

// Returns the address at + by. `by` is a 32-bit register with a number of
// bytes.
static PtxArg behind(PtxCopy *x, PtxArg at, PtxArg by) {
  PtxType own = x->m->regs.p[x->out.reg + (uint32_t)at.value].type;
  if (own.bits < 64) return compute(x, "add.s32", b32, at, by);
  PtxArg longer = copy_register(x, b64);
  const PtxArg cvt[2] = {longer, by};
  copy_push(x, "cvt.u64.u32", cvt, 2);
  return compute(x, "add.s64", b64, at, longer);
}

// Emits the computation of the address of the lane's first element.
static void open_fragment(Fragment *f, PtxArg stride) {
  PtxCopy *x = f->x;
  const PtxArg *base = &x->m->args.p[f->place.part];
  bool wide = base->kind == PTX_A_REG &&
    x->m->regs.p[x->out.reg + (uint32_t)base->value].type.bits == 64;
  PtxArg lane = copy_register(x, b32), at = copy_register(x, wide ? b64 : b32);
  const PtxArg id[2] = {lane, {.kind = PTX_A_SPECIAL, .name = "%laneid"}};
  const PtxArg start[2] = {at, *base};
  copy_push(x, "mov.u32", id, 2);
  copy_push(x, wide ? "mov.b64" : "mov.b32", start, 2);
  PtxArg g = compute(x, "shr.u32", b32, lane, integer(2));
  PtxArg t = compute(x, "and.b32", b32, lane, integer(3));
  bool result = f->part == 'c' || f->part == 'd';
  t = compute(x, "mul.lo.u32", b32, t, integer(result ? 2 : f->each));
  f->stride = bytes_of(f, stride);
  PtxArg row = f->along ? g : t, column = f->along ? t : g;
  row = compute(x, "mul.lo.u32", b32, row, f->stride);
  column = bytes_of(f, column);
  f->base = behind(x, at, compute(x, "add.u32", b32, row, column));
}

// Returns the address of the element that is `row` rows and `column` columns
// after the lane's first element.
static PtxArg element_at(Fragment *f, int row, int column) {
  PtxCopy *x = f->x;
  int rows = f->along ? row : column, columns = f->along ? column : row;
  PtxArg base = f->base;
  if (rows) {
    base = behind(x, base, compute(x, "mul.lo.u32", b32, f->stride,
                                   integer(rows)));
  }
  return copy_address(x, base, f->place.value + columns * f->bits / 8);
}

static const char *access(const Fragment *f, const char *how, int bits) {
  const char *op = f->x->b.at->op;
  const char *space = word(op, "global") ? ".global"
                    : word(op, "shared") || word(op, "shared::cta")
                      ? ".shared" : "";
  return arena_printf(f->x->b.cx, &f->x->b.cx->scratch, "%s%s.b%d", how, space,
                      bits);
}

// Loads a register of a fragment byte by byte, because its four bytes are not
// adjacent in memory.
static void load_bytes(Fragment *f, int row, int column, PtxArg reg) {
  PtxCopy *x = f->x;
  PtxArg all = integer(0);
  for (int h = 0; h < 4; h++) {
    PtxArg v = copy_register(x, b32);
    const PtxArg ld[2] = {v, element_at(f, row, column + h)};
    copy_push(x, access(f, "ld", 8), ld, 2);
    v = compute(x, "shl.b32", b32, v, integer(8 * h));
    all = compute(x, "or.b32", b32, all, v);
  }
  const PtxArg set[2] = {reg, all};
  copy_push(x, "mov.b32", set, 2);
}

// Loads or stores register r of a fragment. The register holds f->each
// elements.
static void transfer(Fragment *f, int r, PtxArg reg, bool store) {
  PtxCopy *x = f->x;
  int column, row = place_of(f, r, &column), n = f->each;
  if (n == 1 || f->along) {
    PtxArg at = element_at(f, row, column);
    const PtxArg ld[2] = {reg, at}, st[2] = {at, reg};
    copy_push(x, access(f, store ? "st" : "ld", f->bits > 32 ? 64 : 32),
              store ? st : ld, 2);
    return;
  }
  if (n == 4) {
    load_bytes(f, row, column, reg);
    return;
  }
  PtxArg part[2];
  for (int h = 0; h < 2; h++) part[h] = copy_register(x, b16);
  PtxArg all = vector_of(x, part, 2);
  const PtxArg split[2] = {all, reg}, join[2] = {reg, all};
  if (store) copy_push(x, "mov.b32", split, 2);
  for (int h = 0; h < 2; h++) {
    PtxArg at = element_at(f, row, column + h);
    const PtxArg ld[2] = {part[h], at}, st[2] = {at, part[h]};
    copy_push(x, access(f, store ? "st" : "ld", 16), store ? st : ld, 2);
  }
  if (!store) copy_push(x, "mov.b32", join, 2);
}

// Returns the last word of an opcode, its type.
static const char *type_of(const char *op) { return strrchr(op, '.') + 1; }

// Returns the extent of a matrix along the axis whose elements are adjacent in
// memory.
static int adjacent(char part, bool row, const Extents *s) {
  if (part == 'a') return row ? s->k : s->m;
  if (part == 'b') return row ? s->n : s->k;
  return row ? s->n : s->m;
}

// Translates wmma.load and wmma.store. `a` has the operands.
static void move_fragment(PtxCopy *x, const PtxArg *a, uint32_t n, char part,
                          bool store) {
  const char *op = x->b.at->op, *type = type_of(op);
  bool result = part == 'c' || part == 'd', row = word(op, "row");
  Fragment f = {.x = x, .part = part, .copies = 1, .bits = 32,
                .shape = shape_of_op(x, op)};
  if (f.shape.turned && !result) f.part = part == 'a' ? 'b' : 'a';
  f.along = part == 'b' ? !row : result && f.shape.turned ? !row : row;
  if (!result) f.bits = kind_of(x, type, &f.shape)->bits;
  else if (strcmp(type, "f16") == 0) f.bits = 16;
  else if (strcmp(type, "f64") == 0) f.bits = 64;
  f.each = elements_in(f.bits);
  int groups = f.shape.height / 8, own = registers_of_8(f.shape.k, f.bits);
  f.regs = f.part == 'a' ? f.shape.rows * groups * own
         : f.part == 'b' ? f.shape.columns * own
         : f.shape.rows * f.shape.columns * groups * 2 / f.each;
  if (!result && strcmp(type, "f16") == 0) f.copies = 8 / f.regs;
  if (f.bits < 8 && !f.along) {
    reject(x, "elements of less than 8 bits in this order");
  }
  PtxArg list = a[store ? 1 : 0];
  f.place = a[store ? 0 : 1];
  if (list.kind != PTX_A_VECTOR) list = vector_of(x, &list, 1);
  if (n < 2 || f.place.kind != PTX_A_ADDRESS ||
      list.parts != (uint32_t)(f.regs * f.copies)) {
    reject(x, "these operands");
  }
  open_fragment(&f, n > 2 ? a[2] : integer(adjacent(part, row, &f.shape)));
  for (int r = 0; r < f.regs; r++) {
    PtxArg reg = x->m->args.p[list.part + (uint32_t)r];
    transfer(&f, r, reg, store);
    for (int c = 1; c < f.copies; c++) {
      const PtxArg again[2] = {
        x->m->args.p[list.part + (uint32_t)(r + c * f.regs)], reg};
      copy_push(x, "mov.b32", again, 2);
    }
  }
}

static PtxArg some_of(PtxCopy *x, const PtxArg *a, int first, int n) {
  if (n == 1) return x->m->args.p[a->part + (uint32_t)first];
  return (PtxArg){.kind = PTX_A_VECTOR, .part = a->part + (uint32_t)first,
                  .parts = (uint32_t)n};
}

// The types of a wmma.mma: of D, of A and B, and of C.
typedef struct Types {
  const char *d, *ab, *c;
} Types;

// Reads the types that follow the shape in an opcode. For f16, these are the
// types of D and C, otherwise of D, A, B and C.
static Types types_of(PtxCopy *x, const char *op) {
  static const char *const names[] = {"f16", "bf16", "tf32", "f32", "f64",
    "s8", "u8", "s4", "u4", "b1", "s32"};
  const char *found[4] = {0};
  int n = 0;
  for (const char *p = op; (p = strchr(p, '.')) != NULL;) {
    size_t size = strcspn(++p, ".");
    for (size_t q = 0; q < sizeof names / sizeof *names && n < 4; q++) {
      bool same = strlen(names[q]) == size && !strncmp(p, names[q], size);
      if (same) found[n++] = names[q];
    }
  }
  if (n == 2) return (Types){found[0], "f16", found[1]};
  if (n != 4 || strcmp(found[1], found[2])) reject(x, "these types");
  return (Types){found[0], found[1], found[3]};
}

// Returns f32 registers that replace `a`, a list of n pairs of f16. With
// `fill`, copies the values of a to these registers.
static PtxArg widened(PtxCopy *x, const PtxArg *a, int n, bool fill) {
  const PtxType f32 = {PTX_F, 1, 32};
  PtxArg part[8];
  for (int q = 0; q < 2 * n; q++) part[q] = copy_register(x, f32);
  PtxArg all = vector_of(x, part, 2 * n);
  for (int q = 0; fill && q < n; q++) {
    PtxArg half[2] = {copy_register(x, b16), copy_register(x, b16)};
    PtxArg pair = vector_of(x, half, 2);
    const PtxArg split[2] = {pair, x->m->args.p[a->part + (uint32_t)q]};
    copy_push(x, "mov.b32", split, 2);
    for (int h = 0; h < 2; h++) {
      const PtxArg cvt[2] = {part[2 * q + h], half[h]};
      copy_push(x, "cvt.f32.f16", cvt, 2);
    }
  }
  return all;
}

// Rounds f32 registers to f16, and writes them to d, a list of n pairs of f16.
static void narrow(PtxCopy *x, const PtxArg *d, int n, const PtxArg *from) {
  for (int q = 0; q < n; q++) {
    const PtxArg *low = &x->m->args.p[from->part + 2 * (uint32_t)q];
    const PtxArg cvt[3] = {x->m->args.p[d->part + (uint32_t)q], low[1],
                           low[0]};
    copy_push(x, "cvt.rn.f16x2.f32", cvt, 3);
  }
}

// Emits the mma instructions of a product. r has D, A, B and C in the order of
// the mma instruction, with n[q] registers in each operand.
static void multiply_tiles(PtxCopy *x, const Extents *s, const char *name,
                           const PtxArg *r, const int *n) {
  int tiles = s->rows * s->columns;
  for (int t = 0; t < tiles; t++) {
    int a = s->rows > 1 ? t : 0, b = s->columns > 1 ? t : 0;
    const PtxArg list[4] = {
      some_of(x, &r[0], t * n[0], n[0]), some_of(x, &r[1], a * n[1], n[1]),
      some_of(x, &r[2], b * n[2], n[2]), some_of(x, &r[3], t * n[3], n[3])};
    copy_push(x, name, list, 4);
  }
}

// Translates wmma.mma.
static void multiply(PtxCopy *x, const PtxArg *a, uint32_t n) {
  const char *op = x->b.at->op;
  Types t = types_of(x, op);
  Extents s = shape_of_op(x, op);
  const Kind *k = kind_of(x, t.ab, &s);
  int groups = s.height / 8, own = registers_of_8(k->k, k->bits);
  // number of registers of a result with 32-bit elements
  int wide = s.rows * s.columns * groups * 2;
  bool half_d = strcmp(t.d, "f16") == 0, half_c = strcmp(t.c, "f16") == 0;
  bool f16 = strcmp(t.ab, "f16") == 0;
  bool good = f16 || strcmp(t.d, t.c) == 0;
  const int all[4] = {half_d ? wide / 2 : wide,
                      f16 ? 8 : s.turned ? own : s.rows * groups * own,
                      f16 ? 8 : s.turned ? s.rows * groups * own
                                         : s.columns * own,
                      half_c ? wide / 2 : wide};
  PtxArg r[4];
  for (uint32_t q = 0; q < 4 && good; q++) {
    good = n == 4;
    if (!good) break;
    r[q] = a[q].kind == PTX_A_VECTOR ? a[q] : vector_of(x, &a[q], 1);
    good = r[q].parts == (uint32_t)all[q];
  }
  if (!good || (f16 && word(op, "satfinite"))) reject(x, "these operands");
  if (s.turned) {
    PtxArg b = r[1];
    r[1] = r[2], r[2] = b;
  }
  bool mixed = half_d != half_c;
  const PtxArg d = r[0];
  if (mixed && half_c) r[3] = widened(x, &r[3], wide / 2, true);
  if (mixed && half_d) r[0] = widened(x, &r[0], wide / 2, false);
  const char *sum = mixed ? "f32" : t.d;
  int each = wide / (s.rows * s.columns) / (half_d && !mixed ? 2 : 1);
  const int parts[4] = {each, groups * own, own, each};
  const char *name = arena_printf(x->b.cx, &x->b.cx->scratch,
    "mma.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s%s", s.height, s.k,
    word(op, "satfinite") ? ".satfinite" : "", sum, t.ab, t.ab, sum,
    word(op, "xor") ? ".xor.popc" : word(op, "and") ? ".and.popc" : "");
  multiply_tiles(x, &s, name, r, parts);
  if (mixed && half_d) narrow(x, &d, wide / 2, &r[0]);
}

void wmma_replace(PtxCopy *x, const PtxArg *a, uint32_t n) {
  const char *op = x->b.at->op;
  bool store = strncmp(op, "wmma.store.d.", 13) == 0;
  if (n < 2) reject(x, "these operands");
  if (strncmp(op, "wmma.mma.", 9) == 0) multiply(x, a, n);
  else if (store) move_fragment(x, a, n, 'd', true);
  else if (strncmp(op, "wmma.load.", 10) == 0 && op[10] && op[10] <= 'c' &&
           op[10] >= 'a') {
    move_fragment(x, a, n, op[10], false);
  } else {
    reject(x, "this instruction");
  }
}
// SPDX-License-Identifier: MIT
