// gemm(): splits a product of tensors into MMA instructions of an atom, or into
// multiply-adds.
#include "tensor/inside.h"

#include <inttypes.h>
#include <string.h>

#include "ir/operands.h"

// An operand of the product: its modes, which are (V,M,K), (V,N,K) or (V,M,N),
// and its registers.
typedef struct Part {
  const Tensor *t;
  char name;
  Layout v, mode[2];
  int64_t n[2];
  // for each register of V: its first element, relative to the operand's offset
  uint32_t reg[256];
  int nreg;
} Part;

typedef struct Gemm {
  Ctx *cx;
  const MmaAtom *a;
  // wgmma, tcgen05.mma: a predicate. If it is true, adds the product to C,
  // otherwise overwrites C. 0: always adds the product.
  Ref accumulate;
  Part d, x, y, c;   // the operands D, A, B, C
  Part more[3];      // scale factors of A and B, metadata of A
} Gemm;

static const char *gemm_text(const Gemm *g) {
  Ctx *cx = g->cx;
  return arena_printf(cx, &cx->scratch, "\n  D %s\n  A %s\n  B %s\n  C %s",
                      tensor_show(cx, g->d.t), tensor_show(cx, g->x.t),
                      tensor_show(cx, g->y.t), tensor_show(cx, g->c.t));
}

static int rank_of(const Tensor *t) {
  return tup_is_leaf(t->l.shape) ? 1 : layout_rank(t->l);
}

// Sets the modes of operand o. The forms of gemm() in CuTe have different
// modes. mode[0] is the position of V in the operand's layout, and mode[1] and
// mode[2] are the positions of the other two modes. -1 means that the form
// lacks the mode.
static void set_modes(const Gemm *g, Part *o, const int mode[3]) {
  Ctx *cx = g->cx;
  Layout l = o->t->l, m[3];
  if (l.outer)
    ctx_fail(cx, ERR_ARG, "gemm: operand %c has a composed layout; copy it to "
             "a fragment first%s", o->name, gemm_text(g));
  for (int i = 0; i < 3; i++)
    m[i] = mode[i] < 0 ? layout_unit(cx)
           : tup_is_leaf(l.shape) ? l : layout_mode(cx, l, mode[i]);
  o->v = m[0];
  for (int i = 0; i < 2; i++) {
    o->mode[i] = m[i + 1];
    o->n[i] = count(cx, m[i + 1], "gemm");
  }
}

static void dispatch(Gemm *g) {
  // ab: rank of A and B. c: rank of C and D. mab, mc: positions of the modes of
  // A and B, and of C and D (see set_modes).
  static const struct { int ab, c; int mab[3], mc[3]; } form[] = {
    {1, 1, {0, -1, -1}, {0, -1, -1}},   // (V) x (V) => (V)
    {1, 2, {-1, 0, -1}, {-1, 0, 1}},    // (M) x (N) => (M,N)
    {2, 2, {-1, 0, 1}, {-1, 0, 1}},     // (M,K) x (N,K) => (M,N)
    {2, 3, {0, 1, -1}, {0, 1, 2}},      // (V,M) x (V,N) => (V,M,N)
    {3, 3, {0, 1, 2}, {0, 1, 2}}};      // (V,M,K) x (V,N,K) => (V,M,N)
  int ra = rank_of(g->x.t), rb = rank_of(g->y.t), rc = rank_of(g->c.t);
  int rd = rank_of(g->d.t);
  for (size_t i = 0; ra == rb && rc == rd && i < 5; i++) {
    if (form[i].ab != ra || form[i].c != rc) continue;
    set_modes(g, &g->x, form[i].mab);
    set_modes(g, &g->y, form[i].mab);
    set_modes(g, &g->c, form[i].mc);
    set_modes(g, &g->d, form[i].mc);
    return;
  }
  ctx_fail(g->cx, ERR_SHAPE, "gemm: tensors of ranks D %d, A %d, B %d, C %d "
           "cannot be multiplied; possible are (V,M,K) x (V,N,K) => (V,M,N), "
           "(V,M) x (V,N) => (V,M,N), (M,K) x (N,K) => (M,N), "
           "(M) x (N) => (M,N), (V) x (V) => (V)%s",
           rd, ra, rb, rc, gemm_text(g));
}

static void check_sizes(const Gemm *g) {
  const struct { const Part *p, *q; int i, j; char m; } pair[] = {
    {&g->x, &g->c, 0, 0, 'M'}, {&g->y, &g->c, 0, 1, 'N'},
    {&g->x, &g->y, 1, 1, 'K'}, {&g->d, &g->c, 0, 0, 'M'},
    {&g->d, &g->c, 1, 1, 'N'}};
  for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
    int64_t p = pair[i].p->n[pair[i].i], q = pair[i].q->n[pair[i].j];
    if (p != q)
      ctx_fail(g->cx, ERR_SHAPE, "gemm: mode %c must have one size, not %"
               PRId64 " in %c and %" PRId64 " in %c%s", pair[i].m, p,
               pair[i].p->name, q, pair[i].q->name, gemm_text(g));
  }
  const Part *o[4] = {&g->d, &g->x, &g->y, &g->c};
  Layout tv[4] = {g->a->c, g->a->stored, g->a->b, g->a->c};
  for (int i = 0; i < 4; i++) {
    if (o[i]->t->space == SP_DESC) continue;
    int64_t want = count(g->cx, layout_mode(g->cx, tv[i], 1), "gemm");
    if (i == 1 && o[i]->t->space == SP_TMEM)
      want = (int64_t)umma_rows(g->a->row, 'A') *
             atom_mma_depth(g->a->row);
    int64_t have = count(g->cx, o[i]->v, "gemm");
    if (want != have)
      ctx_fail(g->cx, ERR_SHAPE, "gemm: %s takes %" PRId64 " values of %c "
               "per thread; the first mode of the fragment has %" PRId64 "%s\n"
               "  make it with partition_fragment_%c or make_fragment_%c of "
               "this tiled MMA", g->a->row->name, want, o[i]->name, have,
               gemm_text(g), o[i]->name == 'D' ? 'C' : o[i]->name,
               o[i]->name == 'D' ? 'C' : o[i]->name);
  }
}

// Reports whether operand i (0 D, 1 A, 2 B, 3 C) may have type `have`. If the
// atom reads bytes, A and B may have type u8 instead of a narrow float.
static bool type_fits(const AtomMma *r, int i, DType have) {
  DType want = atom_mma_type(r, i);
  return want == have || (want == DT_TF32 && have == DT_F32) ||
         (have == DT_U8 && r->flags & AMF_BYTE && (i == 1 || i == 2));
}

static void check_types(const Gemm *g) {
  const AtomMma *r = g->a->row;
  DType have[4] = {g->d.t->type, g->x.t->type, g->y.t->type, g->c.t->type};
  DType want[4];
  bool ok = true;
  for (int i = 0; i < 4; i++) {
    want[i] = atom_mma_type(r, i);
    ok = ok && type_fits(r, i, have[i]);
  }
  if (ok) return;
  const char *fit = atom_mma_fitting(g->cx, have[0], have[1], have[2],
                                     have[3]);
  ctx_fail(g->cx, ERR_TYPE, "gemm: %s computes D:%s = A:%s * B:%s + C:%s, got "
           "D:%s A:%s B:%s C:%s%s%s%s", r->name, dtype_name(want[0]),
           dtype_name(want[1]), dtype_name(want[2]), dtype_name(want[3]),
           dtype_name(have[0]), dtype_name(have[1]), dtype_name(have[2]),
           dtype_name(have[3]), gemm_text(g),
           fit ? "\n  this atom would fit: " : "", fit ? fit : "");
}

static int64_t static_of(const Gemm *g, const Part *o, Dim d) {
  if (dim_static(d)) return dim_value(d);
  ctx_fail(g->cx, ERR_REGS, "gemm: fragment %c is indexed by a traced value; "
           "registers have no addresses: unroll with a plain Lua loop%s",
           o->name, gemm_text(g));
}

// Sets the registers of operand i (0 D, 1 A, 2 B, 3 C): writes the first
// element of each register to o->reg. Fails unless the values of each register
// are adjacent.
static void set_regs(const Gemm *g, Part *o, int i) {
  const AtomMma *r = g->a->row;
  Ctx *cx = g->cx;
  if (o->t->space != SP_RMEM)
    ctx_fail(cx, ERR_TYPE, "gemm: %s takes %c from registers\n  copy it to a "
             "fragment (partition_fragment_%c) first%s", r->name, o->name,
             o->name == 'D' ? 'C' : o->name, gemm_text(g));
  int64_t n = count(cx, o->v, "gemm");
  o->nreg = r->nreg[i];
  // number of values in one register, or 1 if a value fills several registers
  int64_t per = n / o->nreg;
  for (int64_t v = 0; v < n; v++) {
    int64_t e = static_of(g, o, at(cx, o->v, v));
    if (v % per == 0) o->reg[v / per] = (uint32_t)e;
    else if (e != (int64_t)o->reg[v / per] + v % per)
      ctx_fail(cx, ERR_SHAPE, "gemm: the values of %c are not packed in "
               "registers: a register holds %" PRId64 " adjacent values, but "
               "the first mode is %s%s", o->name, per, layout_text(cx, o->v),
               gemm_text(g));
  }
}

// The operands of one MMA: their memory objects, and the first element of each
// register.
typedef struct Parts {
  Ref mem[OPERANDS];
  uint32_t n, nreg, reg[4 * 256 + 3];
} Parts;

static void put_operand(const Gemm *g, const Part *o, int64_t i, int64_t j,
                        Parts *p) {
  Ctx *cx = g->cx;
  Dim base = dim_add(cx, o->t->off, dim_add(cx, at(cx, o->mode[0], i),
                                            at(cx, o->mode[1], j)));
  uint32_t from = (uint32_t)static_of(g, o, base);
  p->mem[p->n++] = o->t->mem;
  for (int r = 0; r < o->nreg; r++) p->reg[p->nreg++] = from + o->reg[r];
}

// Returns the descriptor of element (i,j) of an operand in shared memory. Adds
// a traced offset of the tensor first. This addition is equal for all elements,
// so the kernel computes it only once.
static Ref descriptor(const Gemm *g, const Part *o, int64_t i, int64_t j) {
  Ctx *cx = g->cx;
  Dim first = o->t->off;
  Dim then = dim_add(cx, at(cx, o->mode[0], i), at(cx, o->mode[1], j));
  if (dim_static(first)) first = dim_add(cx, first, then), then.w = 0;
  return gmma_beyond(cx, gmma_beyond(cx, o->t->mem, first), then);
}

// Appends an operand in tensor memory to p.
static void put_tensor(const Gemm *g, const Part *o, int64_t i, int64_t j,
                       Parts *p) {
  Ctx *cx = g->cx;
  p->mem[p->n++] = o->t->mem;
  p->mem[p->n++] = dim_asref(cx, dim_add(cx, o->t->off,
    dim_add(cx, at(cx, o->mode[0], i), at(cx, o->mode[1], j))));
}

// Appends a WGMMA or TCMMA instruction. The function `put` appends an operand
// that is in registers or in tensor memory.
static void emit_async(const Gemm *g, Op op, int64_t m, int64_t n, int64_t k,
                       void (*put)(const Gemm *g, const Part *o, int64_t i,
                                   int64_t j, Parts *p)) {
  Ctx *cx = g->cx;
  Parts p;
  p.n = p.nreg = 0;
  put(g, &g->d, m, n, &p);
  if (g->x.t->space == SP_DESC) p.mem[p.n++] = descriptor(g, &g->x, m, k);
  else put(g, &g->x, m, k, &p);
  p.mem[p.n++] = descriptor(g, &g->y, n, k);
  p.mem[p.n++] = g->accumulate ? g->accumulate
                               : ir_int(cx, ir_fn(cx), DT_BOOL, 1);
  const AtomMma *r = g->a->row;
  if (r->flags & AMF_SCALE) {
    put(g, &g->more[0], m, k, &p);
    put(g, &g->more[1], n, k, &p);
  }
  if (r->flags & AMF_SPARSE) put(g, &g->more[r->nop - 5], m, k, &p);
  Ins ins = {.op = (uint8_t)op, .imm = g->a->id,
             .flags = atom_mma_ctas(r) == 2 ? TCF_PAIR : 0};
  operands_emit(cx, ir_fn(cx), ins, p.mem, p.n, p.reg, p.nreg);
}

static void emit_mma(const Gemm *g, int64_t m, int64_t n, int64_t k) {
  Parts p;
  p.n = p.nreg = 0;
  put_operand(g, &g->d, m, n, &p);
  put_operand(g, &g->x, m, k, &p);
  put_operand(g, &g->y, n, k, &p);
  put_operand(g, &g->c, m, n, &p);
  const AtomMma *r = g->a->row;
  for (int i = 4; i < r->nop; i++) {
    bool of_b = i == 5 && r->flags & AMF_SCALE;
    put_operand(g, &g->more[i - 4], of_b ? n : m, k, &p);
  }
  Ins ins = {.op = OP_MMA, .imm = g->a->id};
  operands_emit(g->cx, ir_fn(g->cx), ins, p.mem, p.n, p.reg, p.nreg);
}

// Emits the outer product (V,M) x (V,N) for index k. The order is serpentine,
// so that consecutive instructions share the registers of an operand.
static void outer(const Gemm *g, int64_t k) {
  int64_t M = g->c.n[0], N = g->c.n[1];
  const AtomMma *r = g->a->row;
  int64_t bytes[2] = {count(g->cx, g->x.v, "gemm") * r->bits[1] / 8,
                      count(g->cx, g->y.v, "gemm") * r->bits[2] / 8};
  // row by row, in alternating directions
  if (bytes[0] == 8 && bytes[1] == 8) {
    for (int64_t m = 0; m < M; m++)
      for (int64_t n = 0; n < N; n++)
        emit_mma(g, m, m & 1 ? N - 1 - n : n, k);
  // two rows at a time, in alternating directions
  } else if (bytes[0] == 4 && bytes[1] == 4) {
    for (int64_t m = 0; m < M; m += 2)
      for (int64_t n = 0; n < N; n++) {
        int64_t s = m & 2 ? N - 1 - n : n;
        emit_mma(g, m, s, k);
        if (m + 1 < M) emit_mma(g, m + 1, s, k);
      }
  } else {  // column by column, in alternating directions
    for (int64_t n = 0; n < N; n++)
      for (int64_t m = 0; m < M; m++)
        emit_mma(g, n & 1 ? M - 1 - m : m, n, k);
  }
}

// ---- gemm of a warpgroup, and with tensor memory ----

// Checks that D and C are the same fragment. Also checks that A and B are
// tensors of descriptors exactly if the instruction reads them from shared
// memory.
static void check_asynchronous(const Gemm *g) {
  const Part *o[2] = {&g->x, &g->y};
  Ctx *cx = g->cx;
  bool tensor = g->a->row->kind == MK_TCGEN05;
  if (tensor && g->d.t->space != SP_TMEM)
    ctx_fail(cx, ERR_TYPE, "gemm: %s accumulates in tensor memory%s\n  create "
             "D by make_tensor from a pointer of cute.arch.retrieve_tmem_ptr "
             "and the layout of make_fragment_C", g->a->row->name,
             gemm_text(g));
  for (int i = 0; i < 2; i++) {
    bool shared = gmma_from_shared(g->a, o[i]->name);
    if (shared == (o[i]->t->space == SP_DESC)) continue;
    ctx_fail(cx, ERR_TYPE, "gemm: %s takes %c from %s%s\n  pass its partition "
             "to make_fragment_%c first", g->a->row->name, o[i]->name,
             shared ? "shared memory, through descriptors"
             : tensor ? "tensor memory" : "registers",
             gemm_text(g), o[i]->name);
  }
  bool same = g->d.t->mem == g->c.t->mem && dim_eq(g->d.t->off, g->c.t->off) &&
              layout_eq(g->d.t->l, g->c.t->l);
  if (!same)
    ctx_fail(cx, ERR_ARG, "gemm: %s accumulates in place: D and C must be one "
             "%s%s", tensor ? g->a->row->name : "a warpgroup's MMA",
             tensor ? "tensor" : "fragment", gemm_text(g));
}

static void asynchronous_gemm(Gemm *g) {
  bool tensor = g->a->row->kind == MK_TCGEN05;
  if (!tensor) set_regs(g, &g->d, 0);
  if (g->x.t->space == SP_RMEM) set_regs(g, &g->x, 1);
  for (int64_t k = 0; k < g->x.n[1]; k++) {
    for (int64_t n = 0; n < g->c.n[1]; n++)
      for (int64_t m = 0; m < g->c.n[0]; m++)
        if (tensor) emit_async(g, OP_TCMMA, m, n, k, put_tensor);
        else emit_async(g, OP_WGMMA, m, n, k, put_operand);
    // the products of later blocks of K are always added
    g->accumulate = 0;
  }
}

// ---- gemm with plain multiply-adds ----

static Tensor element(const Gemm *g, const Part *o, int64_t i, int64_t j) {
  Ctx *cx = g->cx;
  Tensor e = tensor_with_layout(*o->t, layout_unit(cx));
  e.off = dim_add(cx, e.off, dim_add(cx, at(cx, o->mode[0], i),
                                     at(cx, o->mode[1], j)));
  return e;
}

static Ref load(const Gemm *g, const Part *o, int64_t i, int64_t j,
                DType t) {
  Dim zero = {0};
  Ref r = tensor_load(g->cx, element(g, o, i, j), &zero);
  return ir_type(ir_fn(g->cx), r) == t ? r : ir_cvt(g->cx, ir_fn(g->cx), t, r);
}

static void fma_gemm(const Gemm *g) {
  Ctx *cx = g->cx;
  Fn *fn = ir_fn(cx);
  DType t = g->d.t->type;
  int64_t M = g->c.n[0], N = g->c.n[1], K = g->x.n[1];
  Ref *a = NEW(cx, Ref, (size_t)M), *b = NEW(cx, Ref, (size_t)N);
  Dim zero = {0};
  for (int64_t k = 0; k < K; k++) {
    for (int64_t m = 0; m < M; m++) a[m] = load(g, &g->x, m, k, t);
    for (int64_t n = 0; n < N; n++) b[n] = load(g, &g->y, n, k, t);
    for (int64_t n = 0; n < N; n++)
      for (int64_t i = 0; i < M; i++) {
        int64_t m = n & 1 ? M - 1 - i : i;
        Ref c = load(g, k ? &g->d : &g->c, m, n, t);
        Ref d = dtype_is_float(t)
          ? ir_op3(cx, fn, OP_FMA, a[m], b[n], c)
          : ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_MUL, a[m], b[n]), c);
        tensor_store(cx, element(g, &g->d, m, n), &zero, d);
      }
  }
}

static void check_executable(Ctx *cx, const AtomMma *r) {
  bool tensor = r->kind == MK_TCGEN05;
  const char *why = tensor && r->flags & AMF_SPARSE && r->flags & AMF_TABLE
                      ? "the positions of metadata are known only for 128 rows "
                        "of A in each CTA"
                    : tensor && r->flags & AMF_TABLE
                      ? "6- and 4-bit elements of A in tensor memory, and K of "
                        "96, are not supported"
                    : r->flags & AMF_TABLE
                      ? "its accumulator of three doubles has no element type"
                      : NULL;
  if (why)
    ctx_fail(cx, ERR_ARG, "gemm: %s can be partitioned, but cutelua cannot "
             "execute it: %s",
             r->name, why);
}

// ---- scales and metadata ----

// Reports whether v is a layout in tensor memory for the scale factors of one
// instruction, with at least n rows. The layout has the form ((32,rows / 32),4
// windows,elements of K).
static bool scales_fit(const Gemm *g, Layout v, int64_t n) {
  enum { LANE = 1 << 18, WINDOW = 32 };  // columns; lanes
  Ctx *cx = g->cx;
  const AtomMma *r = g->a->row;
  int64_t rows = count(cx, v, "gemm") / (4 * r->k);
  if (count(cx, v, "gemm") != rows * 4 * r->k || rows < n || rows % WINDOW ||
      !layout_static(v))
    return false;
  for (int64_t m = 0; m < rows; m++)
    if (dim_value(at(cx, v, m)) != m % WINDOW * LANE + m / WINDOW * 4)
      return false;
  for (int64_t k = 0; k < 4 * r->k; k++)
    if (dim_value(at(cx, v, k * rows)) !=
        k % 4 * WINDOW * LANE + k / 4 / r->vs)
      return false;
  return true;
}

// Checks `o`, the scale factors (V,M,K) or (V,N,K) of operand `main` in tensor
// memory.
static void check_scales(const Gemm *g, const Part *o, const Part *main,
                         const char *name) {
  const AtomMma *r = g->a->row;
  Ctx *cx = g->cx;
  bool a = main == &g->x;
  if (o->t->space != SP_TMEM || o->t->type != r->sf_type)
    ctx_fail(cx, ERR_TYPE, "gemm: %s needs %s in tensor memory with elements "
             "of %s, got %s", r->name, name, dtype_name(r->sf_type),
             tensor_show(cx, o->t));
  if (!scales_fit(g, o->v, a ? r->m / count(cx, g->a->thr, "gemm") : r->n))
    ctx_fail(cx, ERR_SHAPE, "gemm: %s cannot read %s in the layout %s\n  use "
             "the layout of cute.utils.make_tmem_layout_sf%c, with one factor "
             "for %d elements of K", r->name, name,
             layout_text(cx, o->v), a ? 'a' : 'b', r->vs);
  if (o->n[0] != main->n[0] || o->n[1] != main->n[1])
    ctx_fail(cx, ERR_SHAPE, "gemm: %s of %s must be (V,%" PRId64 ",%" PRId64
             "), as %c is, got %s", name, r->name, main->n[0], main->n[1],
             main->name, tensor_show(cx, o->t));
}

// Reports whether v is the layout, in tensor memory, of the metadata of one
// instruction: (rows,bytes of a row).
static bool metadata_fits(const Gemm *g, Layout v) {
  enum { LANE = 1 << 18 };  // bytes
  Ctx *cx = g->cx;
  const AtomMma *r = g->a->row;
  int rows = umma_rows(r, 'A'), n = 2 * atom_mma_words(r);
  if (!layout_static(v) || count(cx, v, "gemm") != rows * n) return false;
  for (int b = 0; b < n; b++)
    for (int m = 0; m < rows; m++) {
      int at_word = atom_umma_metadata_at(r, m, b / 2);
      int64_t want = (int64_t)(at_word / 4) * LANE + at_word % 4 * 2 + b % 2;
      if (dim_value(at(cx, v, m + rows * b)) != want) return false;
    }
  return true;
}

// Checks metadata (V,M,K) in tensor memory.
static void check_metadata(const Gemm *g, const Part *o) {
  const AtomMma *r = g->a->row;
  const Part *a = &g->x;
  Ctx *cx = g->cx;
  if (o->t->space != SP_TMEM || o->t->type != DT_U8)
    ctx_fail(cx, ERR_TYPE, "gemm: %s takes the metadata of A from tensor "
             "memory, as bytes of u8, got %s", r->name,
             tensor_show(cx, o->t));
  if (!metadata_fits(g, o->v))
    ctx_fail(cx, ERR_SHAPE, "gemm: %s cannot read the metadata of A in the "
             "layout %s\n  use the layout of "
             "make_sparse_e_dtype(dtype):stored(make_sparse_tmem_layout_e("
             "shape, dtype)) of cute.utils.blackwell_helpers", r->name,
             layout_text(cx, o->v));
  if (o->n[0] != a->n[0] || o->n[1] != a->n[1])
    ctx_fail(cx, ERR_SHAPE, "gemm: the metadata of A must be (V,%" PRId64 ",%"
             PRId64 ") for %s, as A is, got %s", a->n[0], a->n[1], r->name,
             tensor_show(cx, o->t));
}

// Returns scale factors with n < 4 factors of 8 bits in V as a fragment with
// one register in V. Byte b of a register is factor b. Bytes above the last
// factor are 0.
static const Tensor *scale_registers(const Gemm *g, const Part *o, int64_t n) {
  Ctx *cx = g->cx;
  Fn *fn = ir_fn(cx);
  Tup shape[3] = {tup_int(cx, 1), tup_int(cx, o->n[0]), tup_int(cx, o->n[1])};
  Tensor *to = NEW(cx, Tensor, 1), one = *o->t;
  *to = tensor_make_rmem(cx, DT_U32,
                         layout_compact(cx, tup_pack(cx, shape, 3)));
  one.l = layout_unit(cx);
  for (int64_t i = 0; i < o->n[0] * o->n[1]; i++) {
    Dim first = dim_add(cx, at(cx, o->mode[0], i % o->n[0]),
                        at(cx, o->mode[1], i / o->n[0]));
    Ref word = 0;
    for (int64_t b = 0; b < n; b++) {
      one.off = dim_add(cx, o->t->off, dim_add(cx, first, at(cx, o->v, b)));
      Ref x = ir_bitcast(cx, fn, DT_U8, tensor_load(cx, one, tup_int(cx, 0)));
      x = ir_op2(cx, fn, OP_SHL, ir_cvt(cx, fn, DT_U32, x),
                 ir_int(cx, fn, DT_U32, 8 * b));
      word = b ? ir_op2(cx, fn, OP_OR, word, x) : x;
    }
    tensor_store(cx, *to, tup_int(cx, i), word);
  }
  return to;
}

// Sets g->more[i], an operand that follows D, A, B and C: scale factors (V,M,K)
// or (V,N,K), or metadata (V,M,K). V is one 32-bit register or is in tensor
// memory. V of scale factors may also have as many factors as an instruction
// uses, with strides of 0 for the elements that share a factor.
static void set_more(Gemm *g, int i, const Tensor *t) {
  static const char *const what[] = {"the scales of A", "the scales of B",
                                     "the metadata of A"};
  const AtomMma *r = g->a->row;
  Ctx *cx = g->cx;
  bool scales = i < 2 && r->flags & AMF_SCALE;
  const char *name = what[scales ? i : 2];
  const Part *main = scales && i == 1 ? &g->y : &g->x;
  Part *o = &g->more[i];
  *o = (Part){.t = t, .name = main->name};
  if (r->kind == MK_TCGEN05) {
    int mode[3] = {0, rank_of(t) > 1 ? 1 : -1, rank_of(t) > 2 ? 2 : -1};
    set_modes(g, o, mode);
    if (scales) check_scales(g, o, main, name);
    else check_metadata(g, o);
    return;
  }
  DType want = atom_mma_type(r, 4 + i);
  int bits = dtype_bits(t->type);
  if (t->space != SP_RMEM ||
      (t->type != want && t->type != DT_U8 && t->type != DT_U32 &&
       (scales || t->type != DT_U16)))
    ctx_fail(cx, ERR_TYPE, "gemm: %s takes %s from registers of %s or u8, got "
             "%s", r->name, name, dtype_name(want), tensor_show(cx, t));
  int mode[3] = {0, 1, 2};
  if (rank_of(t) < 3) mode[2] = -1;
  if (rank_of(t) < 2) mode[1] = -1;
  set_modes(g, o, mode);
  if (scales) o->v = layout_filter(cx, o->v);
  int64_t n = count(cx, o->v, "gemm");
  bool few = scales && bits == 8 && n < 4 && n == r->k / r->vs;
  if ((n * bits != 32 && !few) || o->n[0] != main->n[0] ||
      o->n[1] != main->n[1])
    ctx_fail(cx, ERR_SHAPE, "gemm: %s of %s must be a fragment (V,%c,K) with "
             "one 32-bit register in V, here of shape (%d,%" PRId64 ",%" PRId64
             "), got %s%s", name, r->name, main == &g->x ? 'M' : 'N', 32 / bits,
             main->n[0], main->n[1], tensor_show(cx, t), !scales ? ""
             : i ? "\n  partition_fragment_SFB makes such a fragment"
                 : "\n  partition_fragment_SFA makes such a fragment");
  if (few) {
    o->t = scale_registers(g, o, n);
    set_modes(g, o, (const int[3]){0, 1, 2});
  }
  set_regs(g, o, 4 + i);
}

void tiled_gemm(Ctx *cx, const MmaAtom *a, Tensor d, Tensor ta, Tensor tb,
                Tensor tc, const Tensor *more, int nmore, Ref accumulate) {
  Gemm g = {.cx = cx, .a = a, .accumulate = accumulate,
            .d = {.t = &d, .name = 'D'},
            .x = {.t = &ta, .name = 'A'}, .y = {.t = &tb, .name = 'B'},
            .c = {.t = &tc, .name = 'C'}};
  const Tensor *t[4] = {&d, &ta, &tb, &tc};
  check_executable(cx, a->row);
  for (int i = 0; i < 4; i++) {
    if (!t[i]->mem)
      ctx_fail(cx, ERR_ARG, "gemm: operand %c is not in the kernel's memory%s",
               "DABC"[i], gemm_text(&g));
  }
  bool async = a->row->kind == MK_WGMMA || a->row->kind == MK_TCGEN05;
  if (async) check_asynchronous(&g);
  dispatch(&g);
  check_sizes(&g);
  check_types(&g);
  if (a->row->kind == MK_FMA) {
    fma_gemm(&g);
    return;
  }
  if (nmore != a->row->nop - 4)
    ctx_fail(cx, ERR_ARG, "gemm: %s takes %s", a->row->name,
             a->row->nop == 4 ? "A and B alone"
             : a->row->nop == 5 ? "{A, metadata} and B"
             : a->row->nop == 6 ? "{A, scales} and {B, scales}"
                                : "{A, scales, metadata} and {B, scales}");
  for (int i = 0; i < nmore; i++) set_more(&g, i, &more[i]);
  if (async) {
    asynchronous_gemm(&g);
    return;
  }
  Part *o[4] = {&g.d, &g.x, &g.y, &g.c};
  for (int i = 0; i < 4; i++) set_regs(&g, o[i], i);
  for (int64_t k = 0; k < g.x.n[1]; k++) {
    outer(&g, k);
    g.c = g.d;  // Add the products of later k to D instead of C.
  }
}
// SPDX-License-Identifier: MIT
