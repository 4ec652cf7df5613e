// wmma.c: wmma instructions as loads, stores and mma instructions. The PTX ISA
// leaves the layout of wmma's fragments open: they have that of mma.m16n8k16
// and its kin, whose results are the halves of the 16 columns.
#include <string.h>

#include "ptx/calls.h"

// The layout of the fragments for a type of A and B.
typedef struct Kind {
  const char *type;  // the type in the opcode of a load
  const char *mma;   // the mma instruction without the types of D and C
  int bits;          // of an element
  int copies;        // how often A and B hold each element
  int k;             // columns of A
} Kind;

static const Kind kinds[] = {
  {"f16", "mma.sync.aligned.m16n8k16.row.col%s.%s.f16.f16.%s", 16, 2, 16},
  {"bf16", "mma.sync.aligned.m16n8k16.row.col%s.%s.bf16.bf16.%s", 16, 1, 16},
  {"tf32", "mma.sync.aligned.m16n8k8.row.col%s.%s.tf32.tf32.%s", 32, 1, 8},
  {"s8", "mma.sync.aligned.m16n8k16.row.col%s.%s.s8.s8.%s", 8, 1, 16},
  {"u8", "mma.sync.aligned.m16n8k16.row.col%s.%s.u8.u8.%s", 8, 1, 16}};

// A fragment in memory. Lane 4 g + t has in register r, element h, the element
// at g + row(r) and t * each + column(r) + h.
typedef struct Fragment {
  PtxCopy *x;
  char part;            // 'a', 'b', 'c' or 'd'
  int bits, regs, step;  // step: distance of a lane's elements along columns
  int copies;
  bool along;           // whether columns are adjacent in memory
  PtxType unit;         // type of an element in memory
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

static const Kind *kind_of(PtxCopy *x, const char *op) {
  static const char *const shapes[] = {"m16n16k16", "m16n16k8"};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    bool fits = word(op, shapes[kinds[k].k == 8]);
    if (fits && word(op, kinds[k].type)) return &kinds[k];
  }
  reject(x, "shapes other than m16n16k16 and m16n16k8, or this type");
}

static PtxArg integer(int64_t v) {
  return (PtxArg){.kind = PTX_A_INT, .value = v};
}

// Appends op r, a, b with a new register r of type t.
static PtxArg compute(PtxCopy *x, const char *op, PtxType t, PtxArg a,
                      PtxArg b) {
  PtxArg r = copy_register(x, t);
  const PtxArg list[3] = {r, a, b};
  copy_push(x, op, list, 3);
  return r;
}

static const PtxType b16 = {PTX_B, 1, 16}, b32 = {PTX_B, 1, 32},
                     b64 = {PTX_B, 1, 64};

// Returns the row of register r, and in *column its column.
static int place_of(const Fragment *f, int r, int *column) {
  if (f->part == 'a') {
    *column = f->step * (r >> 1);
    return 8 * (r & 1);
  }
  int half = f->regs / 2;
  if (f->part == 'b') {
    *column = f->step * (r % half);
    return 8 * (r / half);
  }
  *column = 8 * (r / half) + (f->bits == 32 ? r & 1 : 0);
  return 8 * (f->bits == 32 ? r % half >> 1 : r % half);
}

// Returns the address that is `by` bytes, a number of 32 bits, behind another.
static PtxArg behind(PtxCopy *x, PtxArg at, PtxArg by) {
  PtxType own = x->m->regs.p[x->out.reg + (uint32_t)at.value].type;
  if (own.bits < 64) return compute(x, "add.s32", b32, at, by);
  PtxArg longer = copy_register(x, b64);
  const PtxArg cvt[2] = {longer, by};
  copy_push(x, "cvt.u64.u32", cvt, 2);
  return compute(x, "add.s64", b64, at, longer);
}

// Finds the address of the lane's first element.
static void open_fragment(Fragment *f, int each, PtxArg stride) {
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
  t = compute(x, "mul.lo.u32", b32, t, integer(each));
  f->stride = compute(x, "mul.lo.u32", b32, stride, integer(f->unit.bits / 8));
  PtxArg row = f->along ? g : t, column = f->along ? t : g;
  row = compute(x, "mul.lo.u32", b32, row, f->stride);
  column = compute(x, "mul.lo.u32", b32, column, integer(f->unit.bits / 8));
  f->base = behind(x, at, compute(x, "add.u32", b32, row, column));
}

// Returns the address of an element at a distance from the lane's first one.
static PtxArg element_at(Fragment *f, int row, int column) {
  PtxCopy *x = f->x;
  int rows = f->along ? row : column, columns = f->along ? column : row;
  PtxArg base = f->base;
  if (rows) {
    base = behind(x, base, compute(x, "mul.lo.u32", b32, f->stride,
                                   integer(rows)));
  }
  return copy_address(x, base, f->place.value + columns * f->unit.bits / 8);
}

static const char *access(const Fragment *f, const char *how, int bits) {
  const char *op = f->x->b.at->op;
  const char *space = word(op, "global") ? ".global"
                    : word(op, "shared") || word(op, "shared::cta")
                      ? ".shared" : "";
  return arena_printf(f->x->b.cx, &f->x->b.cx->scratch, "%s%s.b%d", how, space,
                      bits);
}

// Loads the four bytes of a register that are not adjacent in memory.
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

// Loads or stores register r of a fragment whose registers hold n elements.
static void transfer(Fragment *f, int r, PtxArg reg, bool store) {
  PtxCopy *x = f->x;
  int column, row = place_of(f, r, &column), n = 32 / f->unit.bits;
  if (n == 1 || f->along) {
    PtxArg at = element_at(f, row, column);
    const PtxArg ld[2] = {reg, at}, st[2] = {at, reg};
    copy_push(x, access(f, store ? "st" : "ld", 32), store ? st : ld, 2);
    return;
  }
  PtxArg part[4], all = {.kind = PTX_A_VECTOR, .parts = (uint32_t)n};
  if (n == 4) {
    load_bytes(f, row, column, reg);
    return;
  }
  for (int h = 0; h < n; h++) part[h] = copy_register(x, b16);
  all.part = (uint32_t)x->m->args.n;
  for (int h = 0; h < n; h++) vec_push(x->b.cx, x->m->args, part[h]);
  const PtxArg split[2] = {all, reg}, join[2] = {reg, all};
  if (store) copy_push(x, "mov.b32", split, 2);
  for (int h = 0; h < n; h++) {
    PtxArg at = element_at(f, row, column + h);
    const PtxArg ld[2] = {part[h], at}, st[2] = {at, part[h]};
    copy_push(x, access(f, store ? "st" : "ld", 16), store ? st : ld, 2);
  }
  if (!store) copy_push(x, "mov.b32", join, 2);
}

// Translates wmma.load and wmma.store. a: the operands.
static void move_fragment(PtxCopy *x, const PtxArg *a, uint32_t n, char part,
                          bool store) {
  const char *op = x->b.at->op;
  bool result = part == 'c' || part == 'd';
  Fragment f = {.x = x, .part = part, .copies = 1, .bits = 32,
                .along = word(op, part == 'b' ? "col" : "row")};
  const Kind *k = NULL;
  if (!result) {
    k = kind_of(x, op);
    f.bits = k->bits;
    f.copies = k->copies;
  } else if (word(op, "f16")) {
    f.bits = 16;
  }
  f.unit = (PtxType){PTX_B, 1, (uint16_t)f.bits};
  f.regs = result ? f.bits / 4 : f.bits == 8 ? 2 : 4;
  f.step = f.bits == 32 ? 4 : 8;
  const PtxArg list = a[store ? 1 : 0];
  f.place = a[store ? 0 : 1];
  if (n < 2 || f.place.kind != PTX_A_ADDRESS || list.kind != PTX_A_VECTOR ||
      list.parts != (uint32_t)(f.regs * f.copies)) {
    reject(x, "these operands");
  }
  int least = k && ((part == 'a') == word(op, "row")) ? k->k : 16;
  int each = result ? 2 : 32 / f.bits;
  open_fragment(&f, each, n > 2 ? a[2] : integer(least));
  for (int r = 0; r < f.regs; r++) {
    PtxArg reg = x->m->args.p[list.part + (uint32_t)r];
    transfer(&f, r, reg, store);
    if (f.copies < 2) continue;
    const PtxArg again[2] = {x->m->args.p[list.part + (uint32_t)(r + f.regs)],
                             reg};
    copy_push(x, "mov.b32", again, 2);
  }
}

static PtxArg some_of(PtxCopy *x, const PtxArg *a, int first, int n) {
  if (n == 1) return x->m->args.p[a->part + (uint32_t)first];
  return (PtxArg){.kind = PTX_A_VECTOR, .part = a->part + (uint32_t)first,
                  .parts = (uint32_t)n};
}

// Translates wmma.mma to two mma instructions.
static void multiply(PtxCopy *x, const PtxArg *a, uint32_t n) {
  const char *op = x->b.at->op;
  const Kind *k = NULL;
  const char *d = strrchr(op, '.') + 1;  // type of C
  for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
    bool own = strcmp(kinds[q].type, "f16") != 0 && word(op, kinds[q].type);
    if (own) k = &kinds[q];
  }
  bool single = k && strcmp(d, k->type) == 0;  // without a type of C
  if (single || !(word(op, "m16n16k16") || (word(op, "m16n16k8") && k))) {
    reject(x, "shapes other than m16n16k16 and m16n16k8");
  }
  if (!k) k = &kinds[0];
  const char *result = strcmp(d, "f16") == 0 ? "f16.f16"
                     : strcmp(d, "f32") == 0 ? "f32.f32" : "";
  if (k == &kinds[0] && !strstr(op, result)) {
    reject(x, "different types of C and D");
  }
  int c = strcmp(d, "f16") == 0 ? 4 : 8, most = k->bits == 8 ? 2 : 4;
  const int parts[4] = {c, most * k->copies, most * k->copies, c};
  for (int q = 0; q < 4; q++) {
    if (n != 4 || a[q].kind != PTX_A_VECTOR ||
        a[q].parts != (uint32_t)parts[q]) {
      reject(x, "these operands");
    }
  }
  const char *name = arena_printf(x->b.cx, &x->b.cx->scratch, k->mma,
    word(op, "satfinite") ? ".satfinite" : "", d, d);
  for (int half = 0; half < 2; half++) {
    const PtxArg list[4] = {
      some_of(x, &a[0], half * c / 2, c / 2), some_of(x, &a[1], 0, most),
      some_of(x, &a[2], half * most / 2, most / 2),
      some_of(x, &a[3], half * c / 2, c / 2)};
    copy_push(x, name, list, 4);
  }
}

void wmma_replace(PtxCopy *x, const PtxArg *a, uint32_t n) {
  const char *op = x->b.at->op;
  bool store = strncmp(op, "wmma.store.d.", 13) == 0;
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
