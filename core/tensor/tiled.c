// Looks up atoms and their layouts. Implements TiledMma, which distributes the
// elements of a tile to threads.
#include "layout/notation.h"
#include "tensor/place.h"
#include "tensor/tiled.h"

#include <inttypes.h>
#include <string.h>

static Layout parse(Ctx *cx, const char *s) {
  return layout_parse(cx, s, strlen(s));
}

// ---- atoms ----

_Noreturn static void unknown(Ctx *cx, const char *name, bool mma) {
  ctx_fail(cx, ERR_NAME, "no %s atom '%s'\n  nearest: %s",
           mma ? "MMA" : "copy", name, atom_nearest(cx, name, mma));
}

MmaAtom mma_atom(Ctx *cx, const char *name) {
  int id = atom_mma_find(name);
  if (id < 0) unknown(cx, name, true);
  const AtomMma *r = atom_mma(id);
  MmaAtom a = {.id = id, .row = r, .thr = parse(cx, r->thr),
               .a = parse(cx, r->a), .b = parse(cx, r->b),
               .c = parse(cx, r->c)};
  a.stored = r->stored ? parse(cx, r->stored) : a.a;
  a.meta = r->meta ? parse(cx, r->meta) : a.a;
  return a;
}

static int sized(Ctx *cx, const char *name, const char *type, int bits) {
  return atom_copy_find(arena_printf(cx, &cx->scratch, "%s<%s%d%s>", name,
                                     type, bits, *type ? "_t" : ""));
}

// Returns the id of the copy atom `name`, or -1 if there is none. If `name` is
// a family of atoms such as "UniversalCopy", returns the id of its atom that
// copies `bits` bits.
static int find_sized(Ctx *cx, const char *name, DType type, int bits) {
  int id = atom_copy_find(name);
  if (id >= 0 || strchr(name, '<')) return id;
  int wide = sized(cx, name, "uint", 128);
  bool async = wide >= 0 && atom_copy(wide)->op == CO_CPASYNC;
  if (!bits) bits = async ? 128 : dtype_bits(type);
  id = sized(cx, name, "uint", bits);
  return id >= 0 ? id : sized(cx, name, "", bits);
}

// Converts layout l, which maps (thread,value) to a bit, to a layout whose
// values have type `type`. The bits of a value must be adjacent and belong to
// one thread.
static Layout in_values(Ctx *cx, const AtomCopy *r, DType type, Layout l) {
  int64_t each = dtype_bits(type);
  Layout v = layout_flatten(cx, layout_mode(cx, l, 1));
  Tup s = tup_first(v.shape);
  for (size_t i = 0, n = tup_leaves(v.shape); i < n; i++, s = tup_next(s)) {
    int64_t d = dim_value(v.stride[i]), size = dim_value(*s);
    if (d == 0 || d >= each || (each % d == 0 && size % (each / d) == 0))
      continue;
    ctx_fail(cx, ERR_TYPE, "%s gives a thread runs of %" PRId64 " bits, not a "
             "whole number of %s values (%" PRId64 " bits each)", r->name,
             size * d, dtype_name(type), each);
  }
  return layout_recast(cx, l, 1, each);
}

CopyAtom copy_atom(Ctx *cx, const char *name, DType type, int bits) {
  int id = find_sized(cx, name, type, bits);
  if (id < 0) unknown(cx, name, false);
  const AtomCopy *r = atom_copy(id);
  CopyAtom a = {.id = id, .row = r, .type = type, .bits = r->bits};
  if (r->op == CO_AUTOVEC) {
    if (bits) a.bits = bits < r->bits ? bits : r->bits;
  }
  if (r->op == CO_CPASYNC && (r->bits < 32 || r->bits > 128 ||
                              (r->flags & CPF_GLOBAL && r->bits != 128)))
    ctx_fail(cx, ERR_ARG, "%s: cp.async moves %s, not %d", r->name,
             r->flags & CPF_GLOBAL ? "128 bits when it bypasses L1"
                                   : "32, 64 or 128 bits", r->bits);
  a.thr = parse(cx, r->thr);
  a.src = in_values(cx, r, type, parse(cx, r->src));
  a.dst = in_values(cx, r, type, parse(cx, r->dst));
  a.ref = in_values(cx, r, type, parse(cx, r->ref));
  return a;
}

DType tiled_mma_type(const MmaAtom *a, char which) {
  if (which == 'E') return DT_U16;
  return atom_mma_type(a->row, which == 'A' ? 1 : which == 'B' ? 2
                               : which == 'C' ? 3 : 0);
}

static Layout atom_tv(const MmaAtom *a, char which) {
  return which == 'A' ? a->stored : which == 'B' ? a->b
         : which == 'C' ? a->c : a->meta;
}

// ---- TiledMma ----

// Writes to mode[] the indices, in (M,N,K), of the two modes of operand
// `which`.
static void operand_modes(char which, int mode[2]) {
  mode[0] = which == 'B' ? 1 : 0;
  mode[1] = which == 'C' ? 1 : 2;
}

static int64_t shape_of(const MmaAtom *a, int i) {
  return i == 0 ? a->row->m : i == 1 ? a->row->n : a->row->k;
}

// Returns how many elements of the product correspond to one element of the
// operand's tensor, along mode i (M, N, K). This is 1, except along K of a
// sparse A or of its metadata.
static int64_t part_of(const MmaAtom *a, char which, int i) {
  const AtomMma *r = a->row;
  if (i != 2) return 1;
  if (which == 'A') return r->k / atom_mma_depth(r);
  return which == 'E' ? r->k / atom_mma_words(r) : 1;
}

static Dim atoms_of(Ctx *cx, const TiledMma *m, int i) {
  return layout_size(cx, layout_mode(cx, m->thr_vmnk, i + 1));
}

// Returns the extent along mode i (M, N, K) that all atoms together cover with
// one instruction each.
static Dim core_of(Ctx *cx, const TiledMma *m, int i) {
  return dim_mul(cx, dim_int(cx, shape_of(&m->atom, i)), atoms_of(cx, m, i));
}

TiledMma tiled_mma_make(Ctx *cx, MmaAtom a, Layout atoms,
                        const TiledPerm perm[3]) {
  if (!layout_static(atoms) || atoms.outer)
    ctx_fail(cx, ERR_STATIC, "make_tiled_mma: the atom layout %s must be "
             "static and without swizzle", layout_text(cx, atoms));
  if (tup_is_leaf(atoms.shape)) atoms = layout_concat(cx, &atoms, 1);
  if (layout_rank(atoms) > 3)
    ctx_fail(cx, ERR_SHAPE, "make_tiled_mma: the atom layout %s has %d modes "
             "(at most 3: M, N, K)", layout_text(cx, atoms),
             layout_rank(atoms));
  Dim one = dim_int(cx, 1), zero = dim_int(cx, 0);
  TiledMma m = {.atom = a};
  m.atoms = layout_append_to(cx, atoms, 3, layout_leaf(cx, one, zero));
  tup_need_elements(cx, "make_tiled_mma", m.atoms.shape);
  m.thr_vmnk = layout_tiled_product(cx, a.thr, tiler_layout(m.atoms));
  for (int i = 0; i < 3; i++) {
    m.perm[i] = perm ? perm[i] : (TiledPerm){.kind = PERM_ANY};
    if (m.perm[i].kind == PERM_ANY) continue;
    Layout l = m.perm[i].l;
    if (!layout_static(l) || l.outer)
      ctx_fail(cx, ERR_STATIC, "make_tiled_mma: the permutation %s of mode %c "
               "must be static", layout_text(cx, l), "MNK"[i]);
    tup_need_elements(cx, "make_tiled_mma", l.shape);
    int64_t n = dim_value(layout_size(cx, l)), atom = shape_of(&a, i);
    if (n % atom)
      ctx_fail(cx, ERR_SHAPE, "make_tiled_mma: the permutation %s of mode %c "
               "has extent %" PRId64 "; a multiple of %" PRId64 ", the extent "
               "of %s, is needed",
               layout_text(cx, l), "MNK"[i], n, atom, a.row->name);
    int64_t all = dim_value(core_of(cx, &m, i));
    // CuTe accepts a tile that leaves some atoms without elements. Reject it.
    if (n % all && all % n)
      ctx_fail(cx, ERR_SHAPE, "make_tiled_mma: the permutation %s of mode %c "
               "has extent %" PRId64 "; a multiple of %" PRId64 " is needed "
               "for %" PRId64 " atoms of extent %" PRId64 ": %s\n  use fewer "
               "atoms along %c, or a tile of %" PRId64, layout_text(cx, l),
               "MNK"[i], n, all, all / atom, atom, a.row->name, "MNK"[i],
               (n + all - 1) / all * all);
  }
  return m;
}

int64_t tiled_mma_size(Ctx *cx, const TiledMma *m) {
  return dim_value(layout_size(cx, m->thr_vmnk));
}

Dim tiled_mma_tile(Ctx *cx, const TiledMma *m, int i) {
  return m->perm[i].kind == PERM_ANY ? core_of(cx, m, i)
                                     : layout_size(cx, m->perm[i].l);
}

// ---- partition of a tensor ----

// Divides layout l by t into the layouts *tile and *rest.
static void divide(Ctx *cx, Layout l, Layout t, Layout *tile, Layout *rest) {
  Layout d = layout_logical_divide(cx, l, tiler_layout(t));
  *tile = layout_mode(cx, d, 0);
  *rest = layout_mode(cx, d, 1);
}

static Layout concat2(Ctx *cx, Layout a, Layout b) {
  Layout l[2] = {a, b};
  return layout_concat(cx, l, 2);
}

static Layout leaf1(Ctx *cx, Dim n) {
  return layout_leaf(cx, n, dim_int(cx, !dim_is(n, 1)));
}

int64_t tiled_mma_extent(Ctx *cx, const TiledMma *m, char which, int i) {
  return dim_value(tiled_mma_tile(cx, m, i)) / part_of(&m->atom, which, i);
}

// Returns the tile of operand `which` along mode i (M, N, K), in the order of
// the permutation m->perm[i].
static Layout tile_of(Ctx *cx, const TiledMma *m, char which, int i) {
  const TiledPerm *p = &m->perm[i];
  int64_t part = part_of(&m->atom, which, i);
  if (p->kind == PERM_LAYOUT && part == 1) return p->l;
  if (p->kind == PERM_LAYOUT)
    ctx_fail(cx, ERR_ARG, "%s: the tile of K must be an extent, not the layout "
             "%s, because A is sparse",
             m->atom.row->name, layout_text(cx, p->l));
  return leaf1(cx, dim_int(cx, tiled_mma_extent(cx, m, which, i)));
}

enum { MAX_RANK = 12 };

Layout tiled_mma_thrfrg(Ctx *cx, const TiledMma *m, char which, Layout l) {
  int mode[2], rank = layout_rank(l);
  operand_modes(which, mode);
  if (rank < 2 || rank > MAX_RANK || tup_is_leaf(l.shape))
    ctx_fail(cx, ERR_SHAPE, "partition_%c needs a tensor (%c,%c,...), got %s",
             which, "MNK"[mode[0]], "MNK"[mode[1]], layout_text(cx, l));
  Layout in = layout_inner(l), tile[2], rest[MAX_RANK], thr[2];
  for (int i = 0; i < 2; i++) {
    Layout x = layout_mode(cx, in, i);
    Layout t = tile_of(cx, m, which, mode[i]);
    x = layout_logical_divide(cx, x, tiler_layout(t));  // (PermM,Rest)
    int64_t own = shape_of(&m->atom, mode[i]) /
                  part_of(&m->atom, which, mode[i]);
    divide(cx, x, leaf1(cx, dim_int(cx, own)), &tile[i], &rest[i]);
  }
  for (int i = 2; i < rank; i++) rest[i] = layout_mode(cx, in, i);
  // (AtomM,AtomN) -> (ThrV,FrgV); RestM -> (ThrM,RestM)
  Layout tv = layout_compose(cx, concat2(cx, tile[0], tile[1]),
                             atom_tv(&m->atom, which));
  for (int i = 0; i < 2; i++)
    divide(cx, rest[i], leaf1(cx, atoms_of(cx, m, mode[i])), &thr[i],
           &rest[i]);
  Layout t = concat2(cx, layout_mode(cx, tv, 0), concat2(cx, thr[0], thr[1]));
  Layout f = concat2(cx, layout_mode(cx, tv, 1),
                     layout_concat(cx, rest, rank));
  Layout all = concat2(cx, t, f);
  return layout_outer(all, l);
}

// Checks that the MMA's tile divides the tensor with layout l.
static void check_divides(Ctx *cx, const TiledMma *m, char which, Layout l) {
  int mode[2];
  operand_modes(which, mode);
  if (tup_is_leaf(l.shape) || layout_rank(l) < 2) return;
  for (int i = 0; i < 2; i++) {
    Dim have = layout_size(cx, layout_mode(cx, layout_inner(l), i));
    int64_t want = tiled_mma_extent(cx, m, which, mode[i]);
    if (!dim_static(have) || dim_value(have) % want == 0) continue;
    ctx_fail(cx, ERR_SHAPE, "partition_%c: the tile of the MMA does not divide "
             "the tensor in mode %d (%c): %" PRId64 " is not a multiple of %"
             PRId64 "\n  tensor %s\n  tile   (%" PRId64 ",%" PRId64 ") of %s"
             "\n  use a tensor tile that is a multiple, or fewer atoms along "
             "%c",
             which, i, "MNK"[mode[i]], dim_value(have),
             want, layout_text(cx, l), tiled_mma_extent(cx, m, which, mode[0]),
             tiled_mma_extent(cx, m, which, mode[1]), m->atom.row->name,
             "MNK"[mode[i]]);
  }
}

// Returns the coordinate of thread thr in layout l, as a linear index. Computes
// the coordinate from l's strides. In modes with stride 0, it is 0.
static Dim mode_coord(Ctx *cx, Layout l, Dim thr) {
  Layout flat = layout_flatten(cx, l);
  Dim c = dim_int(cx, 0), scale = dim_int(cx, 1);
  Tup s = tup_first(flat.shape);
  for (size_t i = 0, n = tup_leaves(flat.shape); i < n; i++) {
    if (!dim_is(*s, 1) && !dim_is(flat.stride[i], 0)) {
      Dim x = dim_rem(cx, dim_quo(cx, thr, flat.stride[i]), *s);
      c = dim_add(cx, c, dim_mul(cx, x, scale));
    }
    scale = dim_mul(cx, scale, *s);
    s = tup_next(s);
  }
  return c;
}

// Computes the coordinates of thread thr in (V,M,N,K). The coordinate in V is a
// linear index.
static void thread_coord(Ctx *cx, const TiledMma *m, Dim thr, Dim vmnk[4]) {
  for (int i = 0; i < 4; i++)
    vmnk[i] = mode_coord(cx, layout_mode(cx, m->thr_vmnk, i), thr);
}

// Returns the coordinate ((v,(m,n)),(_,(_,_,...))), which selects a thread's
// part of a partitioned tensor of `rank` modes. Here m and n are the thread's
// coordinates in the operand's two modes.
static Tup slice_coord(Ctx *cx, char which, const Dim vmnk[4], int rank) {
  int mode[2];
  operand_modes(which, mode);
  TupB b = {0};
  tupb_open(cx, &b);
  tupb_open(cx, &b);
  tupb_leaf(cx, &b, vmnk[0]);
  tupb_open(cx, &b);
  for (int i = 0; i < 2; i++) tupb_leaf(cx, &b, vmnk[mode[i] + 1]);
  tupb_close(cx, &b);
  tupb_close(cx, &b);
  tupb_open(cx, &b);
  tupb_leaf(cx, &b, dim_any());
  tupb_open(cx, &b);
  for (int i = 0; i < rank; i++) tupb_leaf(cx, &b, dim_any());
  tupb_close(cx, &b);
  tupb_close(cx, &b);
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

typedef struct Part {
  const TiledMma *m;
  char which;
  Dim vmnk[4];
} Part;

static Tensor part(Ctx *cx, Tensor t, const void *x) {
  const Part *p = x;
  Tensor all = tensor_with_layout(t, tiled_mma_thrfrg(cx, p->m, p->which, t.l));
  return tensor_slice(cx, all, slice_coord(cx, p->which, p->vmnk,
                                           layout_rank(t.l)));
}

Tensor tiled_mma_partition(Ctx *cx, const TiledMma *m, char which, Tensor t,
                           Dim thr) {
  Part p = {.m = m, .which = which};
  check_divides(cx, m, which, t.l);
  thread_coord(cx, m, thr, p.vmnk);
  return place_view(cx, t, part, &p);
}

// Returns the layout of thread 0's partition of l, without l's offset.
static Layout partition0(Ctx *cx, const TiledMma *m, char which, Layout l) {
  check_divides(cx, m, which, l);
  Layout f = layout_mode(cx, tiled_mma_thrfrg(cx, m, which, layout_inner(l)),
                         1);
  Layout rest = layout_mode(cx, f, 1), part[MAX_RANK + 1];
  int n = layout_rank(rest);
  part[0] = layout_mode(cx, f, 0);
  for (int i = 0; i < n; i++) part[i + 1] = layout_mode(cx, rest, i);
  return layout_concat(cx, part, n + 1);
}

Tup tiled_mma_shape(Ctx *cx, const TiledMma *m, char which, Tup shape) {
  return partition0(cx, m, which, layout_compact(cx, shape)).shape;
}

Layout tiled_mma_make_fragment(Ctx *cx, const MmaAtom *a, char which,
                               Layout part) {
  Layout tv = atom_tv(a, which);
  Dim want = layout_size(cx, layout_mode(cx, tv, 1));
  Dim have = layout_size(cx, layout_mode(cx, layout_inner(part), 0));
  if (layout_rank(part) < 3 || !dim_eq(want, have))
    ctx_fail(cx, ERR_SHAPE, "make_fragment_%c: %s is not a partition "
             "(V,%s) with V = %" PRId64 " values of %s\n  use partition_%c of "
             "a slice of the same TiledMMA", which, layout_text(cx, part),
             which == 'C' ? "M,N" : which == 'B' ? "N,K" : "M,K",
             dim_value(want), a->row->name, which);
  return which == 'C' || which == 'E' ? layout_compact(cx, part.shape)
                      : layout_fragment_like(cx, part);
}

Layout tiled_mma_fragment(Ctx *cx, const TiledMma *m, char which, Layout l) {
  Layout part = partition0(cx, m, which, l);
  return tiled_mma_make_fragment(cx, &m->atom, which, part);
}

// ---- (thread,value) layouts of a tile ----

// Returns a layout from a thread index to the thread's position in (V,M,N,K).
// Some thread indices belong to no thread of an atom; for example, a quad pair
// consists only of lanes 0-3 and 16-19. Such an index maps to the position of
// another thread index, which an atom uses.
static Layout thread_to_id(Ctx *cx, const TiledMma *m) {
  Layout gaps = layout_complement(cx, m->thr_vmnk, NULL);
  Layout inv = layout_right_inverse(cx, concat2(cx, m->thr_vmnk, gaps));
  Dim shape[2] = {layout_size(cx, m->thr_vmnk), dim_int(cx, 1)};
  Dim stride[2] = {dim_int(cx, 1), dim_int(cx, 0)};
  Layout ids = layout_make(cx, tup_of(cx, shape, 2), tup_of(cx, stride, 2));
  return layout_compose(cx, ids, inv);
}

Layout tiled_mma_tv(Ctx *cx, const TiledMma *m, char which) {
  int mode[2];
  operand_modes(which, mode);
  Dim tile[2] = {dim_int(cx, tiled_mma_extent(cx, m, which, mode[0])),
                 dim_int(cx, tiled_mma_extent(cx, m, which, mode[1]))};
  Layout ref = layout_compact(cx, tup_of(cx, tile, 2));
  Layout tv = tiled_mma_thrfrg(cx, m, which, ref);
  Layout thr = layout_mode(cx, tv, 0), val = layout_mode(cx, tv, 1);
  if (which != 'C') {
    // for A: (ThrV,(ThrM,ThrK)) -> (ThrV,(ThrM,ThrN,ThrK)). The mode that the
    // operand lacks gets stride 0.
    Dim size[2] = {atoms_of(cx, m, 0), atoms_of(cx, m, 1)};
    Dim stride[2] = {dim_int(cx, which == 'A'), dim_int(cx, which == 'B')};
    Layout mn = layout_make(cx, tup_of(cx, size, 2), tup_of(cx, stride, 2));
    Layout two = layout_mode(cx, thr, 1);
    two = concat2(cx, layout_compose(cx, layout_mode(cx, two, 0), mn),
                  layout_mode(cx, two, 1));
    thr = concat2(cx, layout_mode(cx, thr, 0), two);
  }
  return concat2(cx, layout_compose(cx, thr, thread_to_id(cx, m)), val);
}

// ---- text ----

static void field(Ctx *cx, Buf *out, const char *name, Layout l) {
  buf_printf(cx, out, "%s %s", name, layout_text(cx, l));
}

void tiled_mma_print_atom(Ctx *cx, const MmaAtom *a, Buf *out) {
  buf_puts(cx, out, "MMA_Atom\n");
  field(cx, out, "  ThrID:     ", a->thr);
  buf_printf(cx, out, "\n  Shape_MNK:  (%d,%d,%d)\n", a->row->m, a->row->n,
             a->row->k);
  field(cx, out, "  LayoutA_TV:", a->a);
  field(cx, out, "\n  LayoutB_TV:", a->b);
  field(cx, out, "\n  LayoutC_TV:", a->c);
}

void tiled_mma_print(Ctx *cx, const TiledMma *m, Buf *out) {
  buf_puts(cx, out, "TiledMMA\n");
  field(cx, out, "  ThrLayoutVMNK: ", m->thr_vmnk);
  buf_puts(cx, out, "\n  PermutationMNK: (");
  for (int i = 0; i < 3; i++) {
    const TiledPerm *p = &m->perm[i];
    if (i) buf_puts(cx, out, ",");
    if (p->kind == PERM_ANY) buf_puts(cx, out, "_");
    else if (p->kind == PERM_INT) buf_puts(cx, out, tup_text(cx, p->l.shape));
    else buf_puts(cx, out, layout_text(cx, p->l));
  }
  buf_puts(cx, out, ")\n");
  tiled_mma_print_atom(cx, &m->atom, out);
}
// SPDX-License-Identifier: MIT
