// Expands name patterns of atoms (inside.h) to rows of the atom table, one for
// each name. Finds a row by name, id or PTX text.
#include "atoms/inside.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum { CHOICES = 8, NAME = 160, IDS = 1 << 18, FAMILIES = 1024 };

// ---- name patterns ----

// One name that a pattern with n choices describes. For choice i, text[i] is
// the chosen alternative, which[i] is its index, and of[i] is the number of
// alternatives.
typedef struct Pick {
  int n;
  int which[CHOICES], of[CHOICES];
  char text[CHOICES][64];
  // letter: 'N' for a choice {N=...}, 'T' for {T}, 0 for {a|b}. value: the
  // chosen number, or the number of bits of the chosen type.
  char letter[CHOICES];
  long value[CHOICES];
} Pick;

// The element types that {T} stands for.
static const char TYPE_NAMES[] =
  "uint8_t|int8_t|uint16_t|int16_t|half_t|bfloat16_t|uint32_t|int32_t|int|"
  "float|tfloat32_t|uint64_t|int64_t|double|uint128_t|float_e4m3_t|"
  "float_e5m2_t|uint4_t|int4_t|uint256_t";

// A choice "{...}" in a pattern.
typedef struct Choice {
  char letter;
  const char *body, *end;  // `end` points to the '}'
  long lo, hi, step;  // range {N=lo..hi+step}; step is 0 for other choices
} Choice;

static Choice choice_at(const char *p) {
  Choice c = {0};
  c.end = strchr(p, '}');
  c.body = p + 1;
  if (p[1] == 'T' && p[2] == '}') {
    c.letter = 'T';
    c.body = TYPE_NAMES;
  } else if (p[2] == '=') {
    c.letter = p[1];
    c.body = p + 3;
    char *q;
    long lo = strtol(c.body, &q, 10);
    if (strncmp(q, "..", 2) == 0) {
      c.lo = lo;
      c.hi = strtol(q + 2, &q, 10);
      c.step = strtol(q + 1, &q, 10);
    }
  }
  return c;
}

// Sets *s to the first character of alternative i and returns its length, or
// returns -1 if the choice has no alternative i.
static int choice_alt(const Choice *c, int i, const char **s) {
  const char *end = c->body == TYPE_NAMES ? c->body + strlen(c->body) : c->end;
  const char *p = c->body;
  for (;; i--) {
    size_t n = strcspn(p, "|}");
    if (p + n > end) n = (size_t)(end - p);
    if (i == 0) {
      *s = p;
      return (int)n;
    }
    if (p + n >= end) return -1;
    p += n + 1;
  }
}

static int choice_count(const Choice *c) {
  if (c->step) return (int)((c->hi - c->lo) / c->step + 1);
  const char *s;
  int n = 1;
  while (choice_alt(c, n, &s) >= 0) n++;
  return n;
}

static long type_bits(const char *s);

static void pick_set(Pick *k, int at, const Choice *c, int i, const char *s,
                     int n) {
  k->which[at] = i;
  snprintf(k->text[at], sizeof k->text[at], "%.*s", n, s);
  k->letter[at] = c->letter;
  if (c->letter == 'T') k->value[at] = type_bits(k->text[at]);
  else if (c->letter) k->value[at] = strtol(k->text[at], NULL, 10);
}

// Reports whether the name s matches the pattern p. Stores the alternatives
// that s contains in k. The first choice of p is choice `at` of k.
static bool match(const char *p, const char *s, Pick *k, int at) {
  for (; *p && *p != '{'; p++, s++)
    if (*p != *s) return false;
  if (!*p) {
    k->n = at;
    return *s == '\0';
  }
  Choice c = choice_at(p);
  k->of[at] = choice_count(&c);
  if (c.step) {
    char *q;
    if (*s < '1' || *s > '9') return false;
    long v = strtol(s, &q, 10);
    if (v < c.lo || v > c.hi || (v - c.lo) % c.step) return false;
    pick_set(k, at, &c, (int)((v - c.lo) / c.step), s, (int)(q - s));
    return match(c.end + 1, q, k, at + 1);
  }
  const char *a;
  for (int i = 0, n; (n = choice_alt(&c, i, &a)) >= 0; i++) {
    if (strncmp(s, a, (size_t)n) != 0) continue;
    pick_set(k, at, &c, i, a, n);
    if (match(c.end + 1, s + n, k, at + 1)) return true;
  }
  return false;
}

// Returns the number of names that a pattern describes.
static int pattern_count(const char *p) {
  int n = 1;
  for (; (p = strchr(p, '{')) != NULL; p++) {
    Choice c = choice_at(p);
    n *= choice_count(&c);
  }
  return n;
}

static int pick_index(const Pick *k) {
  int i = 0;
  for (int j = 0; j < k->n; j++) i = i * k->of[j] + k->which[j];
  return i;
}

// Writes name number `index` of a pattern to `out`. Sets *k to the alternatives
// that this name contains.
static void expand(const char *p, int index, char out[NAME], Pick *k) {
  int rest = pattern_count(p);
  size_t n = 0;
  k->n = 0;
  for (; *p; p++) {
    if (*p != '{') {
      if (n < NAME - 1) out[n++] = *p;
      continue;
    }
    Choice c = choice_at(p);
    rest /= k->of[k->n] = choice_count(&c);
    int i = index / rest;
    index %= rest;
    char num[24];
    const char *s = num;
    int len = c.step ? snprintf(num, sizeof num, "%ld", c.lo + i * c.step)
                     : choice_alt(&c, i, &s);
    pick_set(k, k->n++, &c, i, s, len);
    for (int j = 0; j < len && n < NAME - 1; j++) out[n++] = s[j];
    p = c.end;
  }
  out[n] = '\0';
}

// ---- element types in names ----

static const struct TypeName {
  const char *cute, *cpp, *ptx;
  DType t;
  int bits;
} types[] = {
  {"C64", "-", "f64", DT_C64, 128}, {"GC64", "-", "f64", DT_C64, 192},
  {"F64", "double", "f64", DT_F64, 64}, {"F32", "float", "f32", DT_F32, 32},
  {"TF32", "tfloat32_t", "tf32", DT_TF32, 32},
  {"BF16", "bfloat16_t", "bf16", DT_BF16, 16},
  {"F16", "half_t", "f16", DT_F16, 16}, {"S32", "int32_t", "s32", DT_I32, 32},
  {"S32", "int", "s32", DT_I32, 32}, {"U32", "uint32_t", "u32", DT_U32, 32},
  {"S16", "int16_t", "s16", DT_I16, 16},
  {"U16", "uint16_t", "u16", DT_U16, 16}, {"S8", "int8_t", "s8", DT_I8, 8},
  {"U8", "uint8_t", "u8", DT_U8, 8}, {"S4", "int4_t", "s4", DT_I4, 4},
  {"U4", "uint4_t", "u4", DT_U4, 4}, {"U1", "uint1_t", "b1", DT_B1, 1},
  {"E4M3", "float_e4m3_t", "e4m3", DT_E4M3, 8},
  {"E5M2", "float_e5m2_t", "e5m2", DT_E5M2, 8},
  {"E2M1", "float_e2m1_t", "e2m1", DT_E2M1, 4},
  {"E2M3", "float_e2m3_t", "e2m3", DT_E2M3, 6},
  {"E3M2", "float_e3m2_t", "e3m2", DT_E3M2, 6},
  {"U64", "uint64_t", "u64", DT_U64, 64},
  {"S64", "int64_t", "s64", DT_I64, 64},
  {"U128", "uint128_t", "b128", DT_U128, 128},
  {"U256", "uint256_t", "b256", DT_NONE, 256}};
enum { NTYPES = sizeof types / sizeof types[0] };

// Reads a type name of CuTe or C++ at the start of *s and moves *s past it.
// Returns NULL if there is none.
static const struct TypeName *type_read(const char **s) {
  const struct TypeName *best = NULL;
  size_t len = 0;
  *s += strspn(*s, ", ~");
  for (int i = 0; i < NTYPES; i++) {
    const char *names[2] = {types[i].cute, types[i].cpp};
    for (int j = 0; j < 2; j++) {
      size_t n = strlen(names[j]);
      if (n > len && strncmp(*s, names[j], n) == 0) best = &types[i], len = n;
    }
  }
  *s += len;
  return best;
}

static long type_bits(const char *s) {
  const struct TypeName *t = type_read(&s);
  return t ? t->bits : 0;
}

// ---- rows ----

// Copies a template to `out`. Replaces $0, $1 ... by the texts of the choices,
// and expressions such as [16N], [N/2] and [C-1] by their values.
static void fill(const char *s, const Pick *k, char *out, size_t cap) {
  size_t n = 0;
  out[0] = '\0';
  for (; s && *s && n + 1 < cap; s++) {
    if (*s == '$' && s[1] >= '0' && s[1] <= '9') {
      n += (size_t)snprintf(out + n, cap - n, "%s", k->text[*++s - '0']);
    } else if (*s == '[') {
      char *q;
      long coef = strtol(s + 1, &q, 10), v = 0;
      if (q == s + 1) coef = 1;
      for (int i = 0; i < k->n; i++)
        if (k->letter[i] == *q) v = k->value[i];
      v *= coef;
      if (q[1] == '/') v /= strtol(q + 2, NULL, 10);
      if (q[1] == '-') v -= strtol(q + 2, NULL, 10);
      n += (size_t)snprintf(out + n, cap - n, "%ld", v);
      s = strchr(s, ']');
    } else {
      out[n++] = *s;
      out[n] = '\0';
    }
    if (n >= cap) n = cap - 1;
  }
}

// One allocation that contains a row and the row's strings.
typedef struct Block {
  union { AtomMma mma; AtomCopy copy; } row;
  size_t used;
  char text[1200];
} Block;

static const char *keep(Block *b, const char *s) {
  size_t n = strlen(s) + 1;
  if (b->used + n > sizeof b->text) return "";
  char *at = memcpy(b->text + b->used, s, n);
  b->used += n;
  return at;
}

static const char *keep_filled(Block *b, const char *s, const Pick *k) {
  char text[256];
  fill(s, k, text, sizeof text);
  return s ? keep(b, text) : NULL;
}

// Returns the PTX text of a row: template s with the row's shape, flags and
// types.
static const char *row_ptx(Block *b, const char *s,
                           const struct TypeName *const t[4]) {
  static const char order[] = "DABC";
  const AtomMma *r = &b->row.mma;
  char out[256];
  size_t n = 0;
  if (!s) return NULL;
  for (; *s && n + 24 < sizeof out; s++) {
    const char *abcd = s[1] ? strchr(order, s[1]) : NULL;
    if (*s != '$') {
      out[n++] = *s;
      continue;
    }
    if (*++s == 'S')
      n += (size_t)snprintf(out + n, 24, "m%dn%dk%d", r->m, r->n, r->k);
    else if (*s == 's')
      n += (size_t)snprintf(out + n, 24, "%s",
                            r->flags & AMF_SAT ? ".satfinite" : "");
    else if (abcd)
      n += (size_t)snprintf(out + n, 24, "%s", t[abcd - order]->ptx);
  }
  out[n] = '\0';
  return keep(b, out);
}

// Sets the kind and number of the registers of operand i (0 to 3: D A B C).
// `all` is the number of bits of the operand in each thread.
static void row_regs(AtomMma *r, int i, DType t, int all) {
  bool desc = r->kind == MK_WGMMA &&
              (i == 2 || (i == 1 && r->flags & AMF_SMEM_A));
  r->regs[i] = desc ? 'l' : t == DT_F32 ? 'f' : t == DT_C64 ? 'z'
               : r->bits[i] >= 64 ? 'd' : 'r';
  int bits = t == DT_C64 ? 128 : r->regs[i] == 'd' ? 64 : 32;
  r->nreg[i] = (uint8_t)(desc ? 1 : r->kind == MK_TCGEN05 ? 0
                         : all < bits ? 1 : all / bits);
}

// Sets mn_major of A and B from the name of a wgmma. For example,
// "..._SS<K,MN>" makes B MN-major. The default is K-major. The name of a sparse
// MMA also selects the lanes that supply the metadata, as in "..._SS<K,K,One>"
// or "..._SS_TN<One>".
static void row_majors(AtomMma *r) {
  const char *s = strchr(r->name, '<');
  if (r->kind == MK_TCGEN05) {
    // The last two parameters of the name are the majors of A and of B.
    const char *b = strrchr(r->name, ',');
    r->mn_major[0] = b[-1] == 'N';
    r->mn_major[1] = b[1] == 'M';
    if (strstr(r->name, "_SS")) r->flags |= AMF_SMEM_A;
  }
  if (r->kind != MK_WGMMA || !s) return;
  const char *b = strchr(s, ',');
  r->mn_major[0] = s[1] == 'M';
  r->mn_major[1] = b && b[1] == 'M';
  r->selector = strstr(s, "One>") != NULL;
}

// Appends the operands for scale factors and metadata. Each is one 32-bit
// register, except in tensor memory.
static void row_extras(AtomMma *r) {
  r->nop = 4;
  if (r->flags & AMF_SCALE) r->nop += 2;
  if (r->flags & AMF_SPARSE) r->nop++;
  if (r->kind == MK_TCGEN05) return;
  for (int i = 4; i < r->nop; i++) r->regs[i] = 'r', r->nreg[i] = 1;
}

DType atom_mma_type(const AtomMma *a, int i) {
  const DType t[4] = {a->d_type, a->a_type, a->b_type, a->c_type};
  if (i >= 4) return i < 6 && a->flags & AMF_SCALE ? a->sf_type : DT_U32;
  bool byte = a->flags & AMF_BYTE && (i == 1 || i == 2);
  return byte && dtype_bits(t[i]) < 8 ? DT_U8 : t[i];
}

// Returns the size of a layout: the product of the numbers in its shape.
static int layout_size(const char *s) {
  int n = 1;
  for (char *end; *s && *s != ':'; s = end) {
    int v = (int)strtol(s, &end, 10);
    if (end == s) end++;
    else n *= v;
  }
  return n;
}

// Reads the element types of D, A, B and C from a text in the form of
// AtomMmaFam.types.
static void read_types(const char *text, const struct TypeName *t[4]) {
  static const int plain[4] = {0, 1, 2, 3}, abd[4] = {1, 2, 0, 3};
  const char *s = text;
  for (int i = 0; i < 4; i++)
    t[(text[0] == '~' ? abd : plain)[i]] = type_read(&s);
  if (!t[3]) t[3] = t[0];
}

static void mma_row(Block *b, const AtomMmaFam *f, const Pick *k,
                    const char *name) {
  AtomMma *r = &b->row.mma;
  const struct TypeName *t[4] = {0};
  char text[256];
  r->name = keep(b, name);
  fill(f->shape, k, text, sizeof text);
  sscanf(text, "%d,%d,%d", &r->m, &r->n, &r->k);
  fill(f->types, k, text, sizeof text);
  read_types(text, t);
  r->d_type = t[0]->t, r->a_type = t[1]->t;
  r->b_type = t[2]->t, r->c_type = t[3]->t;
  r->flags = f->flags;
  r->kind = f->kind;
  r->vs = f->vs, r->sf_type = f->sf_type;
  r->thr = keep_filled(b, f->thr, k);
  r->a = keep_filled(b, f->a, k);
  r->b = keep_filled(b, f->b, k);
  r->c = keep_filled(b, f->c, k);
  r->stored = keep_filled(b, f->stored, k);
  r->meta = keep_filled(b, f->meta, k);
  r->group = f->group;
  int threads = layout_size(r->thr);
  int size[4] = {r->m * r->n, r->m * r->k, r->n * r->k, r->m * r->n};
  for (int i = 0; i < 4; i++) {
    bool byte = r->flags & AMF_BYTE && (i == 1 || i == 2);
    int bits = byte && t[i]->bits < 8 ? 8 : t[i]->bits, halves = 1;
    // Only half of a sparse A is stored, so its registers have half the bits.
    // As in CuTe, r->bits is half of the type's bits, even if an element takes
    // a byte in registers.
    if (i == 1 && r->flags & AMF_SPARSE && r->kind != MK_TCGEN05) halves = 2;
    r->bits[i] = (uint8_t)(halves == 2 ? t[i]->bits / 2 : bits);
    row_regs(r, i, t[i]->t, size[i] / threads * bits / halves);
  }
  r->ptx = row_ptx(b, f->ptx, t);
  r->sm_min = f->sm_min, r->sm_max = f->sm_max;
  r->arch_specific = f->specific;
  row_extras(r);
  row_majors(r);
}

static void copy_row(Block *b, const AtomCopyFam *f, const Pick *k,
                     const char *name) {
  AtomCopy *r = &b->row.copy;
  char text[64], *q;
  r->name = keep(b, name);
  r->op = f->op;
  r->thr = keep_filled(b, f->thr, k);
  r->src = keep_filled(b, f->src, k);
  r->dst = keep_filled(b, f->dst, k);
  r->ref = keep_filled(b, f->ref, k);
  r->tmem = f->tmem;
  fill(f->bits, k, text, sizeof text);
  r->bits = (int)strtol(text, &q, 10);
  if (*q == '*') r->bits *= (int)strtol(q + 1, NULL, 10);
  bool tmem = r->op == CO_TMEM_LOAD || r->op == CO_TMEM_STORE;
  r->num = tmem ? r->bits / 32 : f->num, r->trans = f->trans;
  r->ptx = keep_filled(b, f->ptx, k);
  r->flags = f->flags, r->sm_min = f->sm_min;
}

// ---- ids ----

// An id is the index of a name in the list of all names, family by family.
// Within a family, names are ordered by their choices. The last choice varies
// fastest (pick_index, expand).

// Caches expanded rows: made[1][id] for MMAs, made[0][id] for copies. Any
// thread may fill an entry, because the row of an id does not depend on the
// thread.
static _Atomic(Block *) made[2][IDS];

static const AtomMmaFam *const mma_tables[] = {
  atom_sm61, atom_sm70, atom_sm75, atom_sm80, atom_sm89, atom_sm90,
  atom_sm100, atom_sm120};
static const AtomCopyFam *const copy_tables[] = {
  atom_copies, atom_copies_sm100};
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

// counts[mma][i] is the number of names of family i, or 0 if they have not been
// counted yet. The numbers are kept because counting the names of a pattern
// takes longer than matching one name.
static _Atomic int counts[2][FAMILIES];

// Iterates over the families in order of their ids.
typedef struct Walk {
  bool mma;
  // table, row: position of the next family in the tables. family: number of
  // families before that family. base: number of ids before it.
  int table, row, family, base;
  const AtomMmaFam *m;   // current family
  const AtomCopyFam *c;
  const char *name;
  int first, count;
} Walk;

// Returns the number of names of the current family, and advances w->family.
static int family_count(Walk *w) {
  int i = w->family++;
  if (i >= FAMILIES) return pattern_count(w->name);
  int n = atomic_load(&counts[w->mma][i]);
  if (n) return n;
  n = pattern_count(w->name);
  atomic_store(&counts[w->mma][i], n);
  return n;
}

static bool walk(Walk *w) {
  int tables = w->mma ? COUNT(mma_tables) : COUNT(copy_tables);
  for (; w->table < tables; w->table++, w->row = 0) {
    if (w->mma) {
      w->m = &mma_tables[w->table][w->row];
      w->name = w->m->name;
    } else {
      w->c = &copy_tables[w->table][w->row];
      w->name = w->c->name;
    }
    if (!w->name) continue;
    w->row++;
    w->first = w->base;
    w->count = family_count(w);
    w->base += w->count;
    return true;
  }
  return false;
}

static int count_all(bool mma) {
  Walk w = {.mma = mma};
  while (walk(&w)) continue;
  return w.base;
}

static Block *row_of(bool mma, int id) {
  if (id < 0 || id >= IDS) return NULL;
  Block *b = atomic_load(&made[mma][id]);
  if (b) return b;
  Walk w = {.mma = mma};
  do {
    if (!walk(&w)) return NULL;
  } while (id >= w.first + w.count);
  b = base_lasting(sizeof *b);
  if (!b) return NULL;
  memset(b, 0, sizeof *b);
  Pick k;
  char name[NAME];
  expand(w.name, id - w.first, name, &k);
  if (mma) mma_row(b, w.m, &k, name);
  else copy_row(b, w.c, &k, name);
  Block *old = NULL;
  if (atomic_compare_exchange_strong(&made[mma][id], &old, b)) return b;
  // Another thread has stored this row in the meantime, so b is not needed.
  base_free(b);
  return old;
}

const AtomMma *atom_mma(int id) {
  Block *b = row_of(true, id);
  return b ? &b->row.mma : NULL;
}

const AtomCopy *atom_copy(int id) {
  Block *b = row_of(false, id);
  return b ? &b->row.copy : NULL;
}

// Reports whether an atom of the family may have the PTX text `text`. Compares
// only the first words and, if all atoms of the family have the same types, the
// types.
static bool may_have(const AtomMmaFam *f, const char *text) {
  static const char *const in[4] = {"$D", "$A", "$B", "$C"};
  const char *p = f->ptx;
  if (!p || strncmp(p, text, strcspn(p, "$")) != 0) return false;
  const struct TypeName *t[4] = {0};
  if (strpbrk(f->types, "$[")) return true;
  read_types(f->types, t);
  for (int i = 0; i < 4; i++) {
    char word[16];
    snprintf(word, sizeof word, ".%s", t[i]->ptx);
    if (strstr(p, in[i]) && !strstr(text, word)) return false;
  }
  return true;
}

// Reports whether an atom has the PTX text `text`. The atom has name number i
// of the family that w has reached.
static bool has_ptx(const Walk *w, int i, const char *text) {
  char name[NAME], shape[64], size[64];
  Pick k;
  int m, n, d;
  expand(w->name, i, name, &k);
  fill(w->m->shape, &k, shape, sizeof shape);
  if (sscanf(shape, "%d,%d,%d", &m, &n, &d) != 3) return false;
  snprintf(size, sizeof size, ".m%dn%dk%d", m, n, d);
  if (strstr(w->m->ptx, ".$S") && !strstr(text, size)) return false;
  Block b = {.used = 0};
  mma_row(&b, w->m, &k, name);
  return strcmp(b.row.mma.ptx, text) == 0;
}

int atom_mma_ptx(const char *text, int *id, int max) {
  Walk w = {.mma = true};
  int n = 0;
  while (walk(&w)) {
    if (!may_have(w.m, text)) continue;
    for (int i = 0; i < w.count && n < max; i++)
      if (has_ptx(&w, i, text)) id[n++] = w.first + i;
  }
  return n;
}

int atom_umma_find(const char *text, bool smem_a, uint32_t descriptor) {
  Walk w = {.mma = true};
  while (walk(&w)) {
    if (w.m->kind != MK_TCGEN05 || !w.m->ptx || strcmp(w.m->ptx, text) != 0)
      continue;
    for (int i = 0; i < w.count; i++) {
      char name[NAME], shape[64];
      unsigned m, n;
      Pick k;
      expand(w.name, i, name, &k);
      fill(w.m->shape, &k, shape, sizeof shape);
      bool fits = sscanf(shape, "%u,%u,", &m, &n) == 2 &&
                  m / 16 == (descriptor >> 24 & 31) &&
                  n / 8 == (descriptor >> 17 & 63);
      if (!fits) continue;
      Block b = {.used = 0};
      mma_row(&b, w.m, &k, name);
      const AtomMma *r = &b.row.mma;
      if (!(r->flags & AMF_SMEM_A) == !smem_a &&
          atom_umma_descriptor(r) == descriptor)
        return w.first + i;
    }
  }
  return -1;
}

int atom_copy_ptx(const char *text) {
  Walk w = {.mma = false};
  while (walk(&w)) {
    if (w.c->ptx && strcmp(w.c->ptx, text) == 0) return w.first;
  }
  return -1;
}

int atom_tmem_find(const char *opcode) {
  Walk w = {.mma = false};
  while (walk(&w)) {
    const char *p = w.c->ptx;
    if (!p || strncmp(p, "tcgen05.", 8) != 0 ||
        strncmp(p, opcode, strcspn(p, "[")) != 0)
      continue;
    for (int i = 0; i < w.count; i++) {
      char name[NAME], text[TMEM_TEXT];
      Pick k;
      expand(w.name, i, name, &k);
      Block b = {.used = 0};
      copy_row(&b, w.c, &k, name);
      atom_tmem_text(&b.row.copy, text);
      if (strcmp(text, opcode) == 0) return w.first + i;
    }
  }
  return -1;
}

int atom_mma_count(void) { return count_all(true); }
int atom_copy_count(void) { return count_all(false); }

// State of atom_each. `name` is the beginning of a name, which spell_text
// extends.
typedef struct Speller {
  const char *prefix;
  size_t known;  // number of characters of `prefix`
  void (*each)(void *ud, const char *name, size_t n);
  void *ud;
  char name[NAME];
} Speller;

// Appends n characters of text to the name, from name[at] on. Returns the new
// length. Returns 0 if the new name does not begin with the prefix, or has a
// "_" after the prefix, because it is then not extended further. In the second
// case, cuts the name after the "_" and passes it to `each`.
static size_t spell_text(Speller *s, size_t at, const char *text, int n) {
  for (int i = 0; i < n && at < NAME - 1; i++) {
    if (at < s->known && text[i] != s->prefix[at]) return 0;
    s->name[at++] = text[i];
    if (at <= s->known || text[i] != '_') continue;
    s->each(s->ud, s->name, at);
    return 0;
  }
  return at;
}

static void spell(Speller *s, const char *p, size_t at) {
  size_t plain = strcspn(p, "{"), from = at;
  at = spell_text(s, at, p, (int)plain);
  if (!at && plain + from > 0) return;
  p += plain;
  if (!*p) {
    if (at >= s->known) s->each(s->ud, s->name, at);
    return;
  }
  Choice c = choice_at(p);
  for (int i = 0, count = choice_count(&c); i < count; i++) {
    char num[24];
    const char *text = num;
    int len = c.step ? snprintf(num, sizeof num, "%ld", c.lo + i * c.step)
                     : choice_alt(&c, i, &text);
    size_t end = spell_text(s, at, text, len);
    if (end || at + (size_t)len == 0) spell(s, c.end + 1, end);
  }
}

void atom_each(bool mma, const char *prefix,
               void (*each)(void *ud, const char *name, size_t n), void *ud) {
  Speller s = {.prefix = prefix, .known = strlen(prefix), .each = each,
               .ud = ud};
  Walk w = {.mma = mma};
  while (walk(&w)) spell(&s, w.name, 0);
}

// Copies name without spaces and without namespaces (cute::, cutlass::).
// Replaces C++ types that pad elements to a byte in shared memory, such as
// float_e2m1_unpacksmem_t, by the plain types.
static void clean_name(const char *name, char out[NAME]) {
  size_t n = 0;
  while (*name && n < NAME - 1) {
    size_t skip = strncmp(name, "cute::", 6) == 0 ? 6
                : strncmp(name, "cutlass::", 9) == 0 ? 9
                : strncmp(name, "_unpacksmem", 11) == 0 ? 11 : *name == ' ';
    if (skip) name += skip;
    else out[n++] = *name++;
  }
  out[n] = '\0';
}

static int find(bool mma, const char *name) {
  char s[NAME];
  clean_name(name, s);
  Walk w = {.mma = mma};
  Pick k;
  while (walk(&w)) {
    if (!match(w.name, s, &k, 0)) continue;
    int id = w.first + pick_index(&k);
    return row_of(mma, id) ? id : -1;
  }
  return -1;
}

int atom_mma_find(const char *name) { return find(true, name); }
int atom_copy_find(const char *name) { return find(false, name); }

// ---- nearest names ----

const char *atom_nearest(Ctx *cx, const char *name, bool mma) {
  char s[NAME], cand[NAME], best[3][NAME] = {"", "", ""};
  int dist[3] = {NAME, NAME, NAME};
  clean_name(name, s);
  Walk w = {.mma = mma};
  Pick k;
  while (walk(&w)) {
    // Skip Blackwell's MMAs with accumulators in tensor memory, which have tens
    // of thousands of names, unless the name contains "100".
    if (mma && w.m->kind == MK_TCGEN05 && !strstr(s, "100")) continue;
    for (int i = 0; i < w.count; i++) {
      expand(w.name, i, cand, &k);
      int d = nearest_edits(s, strlen(s), cand, strlen(cand)), at = 3;
      while (at > 0 && d < dist[at - 1]) at--;
      for (int j = 2; j > at; j--) {
        dist[j] = dist[j - 1];
        memcpy(best[j], best[j - 1], NAME);
      }
      if (at < 3) {
        dist[at] = d;
        memcpy(best[at], cand, NAME);
      }
    }
  }
  return arena_printf(cx, &cx->scratch, "%s, %s, %s", best[0], best[1],
                      best[2]);
}

// ---- atoms by type ----

static const char *type_token(DType t) {
  for (int i = 0; i < NTYPES; i++)
    if (types[i].t == t) return types[i].cute;
  return "?";
}

const char *atom_mma_fitting(Ctx *cx, DType d, DType a, DType b, DType c) {
  static const char *const shape[] = {
    "SM80_16x8x16", "SM80_16x8x8", "SM80_16x8x32", "SM80_8x8x4",
    "SM89_16x8x32", "SM80_16x8x64"};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
    const char *s = arena_printf(cx, &cx->scratch, "%s_%s%s%s%s_TN", shape[i],
                                 type_token(d), type_token(a), type_token(b),
                                 type_token(c));
    if (atom_mma_find(s) >= 0) return s;
  }
  return NULL;
}
// SPDX-License-Identifier: MIT
