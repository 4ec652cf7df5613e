// Writes the helper functions of atoms. Each helper executes one instruction.
// Registers are passed by reference, or as pointers to consecutive registers.
#include <string.h>

#include "atoms/atom.h"
#include "emit/wgmma.h"

#define FN "static __device__ __forceinline__ "

const char *atomtext_name(Emit *e, bool mma, int id) {
  const char *name = mma ? atom_mma(id)->name : atom_copy(id)->name;
  char *s = arena_printf(e->cx, &e->cx->scratch, "%s", name);
  for (char *p = s; *p; p++) {
    bool ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              (*p >= '0' && *p <= '9');
    if (!ok) *p = '_';
  }
  size_t n = strlen(s);
  if (n && s[n - 1] == '_') s[n - 1] = '\0';  // the atom's name ended in `>`
  return s;
}

const char *atomtext_reg_type(char c, DType t) {
  return c == 'f'                   ? "float"
         : c == 'd'                 ? "double"
         : c == 'z'                 ? "double2"
         : c == 'l'                 ? "unsigned long long"
         : c == 'r' && t == DT_I32  ? "int"
                                    : "unsigned";
}

// ---- registers ----

static const char *const names[ATOM_OPERANDS] = {"d", "a", "b", "c", "s",
                                                 "t", "e"};

// Returns the parameter name of operand number o: d, a, b or c, s or t for
// scale factors, and e for metadata.
static const char *name_of(const AtomMma *row, int o) {
  return o >= 4 && !(row->flags & AMF_SCALE) ? "e" : names[o];
}

// Returns the text of register k of a parameter: `a[2]`, or `a2` if registers
// are passed one by one (refs).
static const char *reg(Emit *e, bool refs, const char *name, int k) {
  return arena_printf(e->cx, &e->cx->scratch, refs ? "%s%d" : "%s[%d]", name,
                      k);
}

// Writes the parameters for n registers called `name`: one pointer, or one
// parameter for each register (refs).
static void reg_params(Emit *e, bool refs, bool out, const char *type,
                       const char *name, int n) {
  if (!refs) {
    text_printf(e, "%s%s *%s", out ? "" : "const ", type, name);
    return;
  }
  for (int k = 0; k < n; k++)
    text_printf(e, "%s%s %s%s%d", k ? ", " : "", type, out ? "&" : "", name,
                k);
}

// Writes the asm operands of n registers, such as {%4, %5}, numbered from *at
// on. bare: without braces, as dp4a needs.
static void reg_braces(Emit *e, int n, int *at, bool bare) {
  text_puts(e, bare ? "" : "{");
  for (int k = 0; k < n; k++)
    text_printf(e, "%s%%%d", k ? ", " : "", (*at)++);
  text_puts(e, bare ? "" : "}");
}

static void reg_operands(Emit *e, bool refs, const char *mode, char c,
                         const char *name, int n, bool first) {
  for (int k = 0; k < n; k++)
    text_printf(e, "%s\"%s%c\"(%s)", k || !first ? ", " : "", mode, c,
                reg(e, refs, name, k));
}

// ---- MMA ----

static void mma_head(Emit *e, const AtomUse *u, bool separate) {
  const AtomMma *row = atom_mma(u->id);
  text_printf(e, FN "void %s%s(\n    ", atomtext_name(e, true, u->id),
              separate ? "_dabc" : "");
  for (int o = 0; o < row->nop; o++) {
    if (o == 3 && !separate) continue;
    text_puts(e, o ? ", " : "");
    reg_params(e, u->refs, o == 0,
               atomtext_reg_type(row->regs[o], atom_mma_type(row, o)),
               name_of(row, o), row->nreg[o]);
  }
  text_puts(e, ") {\n");
}

// Writes D = A * B + C, or D = A * B + D unless `separate`. The metadata and
// the sparsity selector follow, then each scale factor with the byte and the
// lanes of a quad that hold it.
static void print_plain(Emit *e, const AtomUse *u, bool separate) {
  const AtomMma *row = atom_mma(u->id);
  const uint8_t *n = row->nreg;
  bool bare = row->kind == MK_DP4A;
  text_printf(e, "  asm volatile(\"%s \"\n      \"", row->ptx);
  int at = 0, d = 0;
  for (int o = 0; o < 3; o++) {
    reg_braces(e, n[o], &at, bare);
    text_puts(e, ", ");
  }
  reg_braces(e, n[3], separate ? &at : &d, bare);
  int scale = row->flags & AMF_SCALE ? at : 0;
  if (row->flags & AMF_SPARSE)
    text_printf(e, ", %%%d, 0x0", at + (scale ? 2 : 0));
  if (scale)
    text_printf(e, ", {%%%d}, {0, 0}, {%%%d}, {0, 0}", scale, scale + 1);
  text_puts(e, ";\"\n      : ");
  reg_operands(e, u->refs, separate ? "=" : "+", row->regs[0], "d", n[0],
               true);
  text_puts(e, "\n      : ");
  for (int o = 1; o < row->nop; o++)
    if (o != 3 || separate)
      reg_operands(e, u->refs, "", row->regs[o], name_of(row, o), n[o],
                   o == 1);
  text_puts(e, ");\n");
}

// Writes one of the four real products of a complex product: p += a.q * b.r,
// where p is the array x or y, and q, r are x (real) or y (imaginary). `c` is
// the initial value of p (NULL: p itself).
static void print_part(Emit *e, const AtomUse *u, const char *c, char p,
                       char q, char r, bool minus) {
  const AtomMma *row = atom_mma(u->id);
  const uint8_t *n = row->nreg;
  int at = 0;
  text_printf(e, "  asm volatile(\"%s \"\n      \"", row->ptx);
  for (int o = 0; o < 4; o++) {
    reg_braces(e, n[o], &at, false);
    text_puts(e, o < 3 ? ", " : ";\"\n      : ");
  }
  for (int k = 0; k < n[0]; k++)
    text_printf(e, "%s\"=d\"(%c[%d])", k ? ", " : "", p, k);
  text_puts(e, "\n      : ");
  for (int k = 0; k < n[1]; k++)
    text_printf(e, "%s\"d\"(%s%s.%c)", k ? ", " : "", minus ? "-" : "",
                reg(e, u->refs, "a", k), q);
  for (int k = 0; k < n[2]; k++)
    text_printf(e, ", \"d\"(%s.%c)", reg(e, u->refs, "b", k), r);
  for (int k = 0; k < n[3]; k++)
    if (c) text_printf(e, ", \"d\"(%s.%c)", reg(e, u->refs, c, k), p);
    else text_printf(e, ", \"d\"(%c[%d])", p, k);
  text_puts(e, ");\n");
}

// Writes a complex MMA. D may share registers with A and B, so it is assigned
// after all products.
static void print_complex(Emit *e, const AtomUse *u, bool separate) {
  const char *c = separate ? "c" : "d";
  int n = atom_mma(u->id)->nreg[0];
  text_printf(e, "  double x[%d], y[%d];\n", n, n);
  print_part(e, u, c, 'x', 'x', 'x', false);
  print_part(e, u, c, 'y', 'x', 'y', false);
  print_part(e, u, NULL, 'x', 'y', 'y', true);
  print_part(e, u, NULL, 'y', 'y', 'x', false);
  for (int k = 0; k < n; k++)
    text_printf(e, "  %s = make_double2(x[%d], y[%d]);\n",
                reg(e, u->refs, "d", k), k, k);
}

// Writes two multiply-adds on pairs of packed floats. An operand A or B with
// one register is used for both.
static void print_fma2(Emit *e, const AtomUse *u, bool separate) {
  const AtomMma *row = atom_mma(u->id);
  const char *c = separate ? "c" : "d";
  text_puts(e, "  unsigned long long x, y, z;\n");
  for (int o = 1; o < 4; o++) {
    const char *name = o == 3 ? c : names[o];
    text_printf(e, "  asm(\"mov.b64 %%0, {%%1, %%2};\" : \"=l\"(%c) : "
                "\"f\"(%s), \"f\"(%s));\n", "xyz"[o - 1],
                reg(e, u->refs, name, 0),
                reg(e, u->refs, name, row->nreg[o] - 1));
  }
  text_printf(e, "  asm(\"%s %%0, %%1, %%2, %%0;\" : \"+l\"(z) : \"l\"(x), "
              "\"l\"(y));\n", row->ptx);
  text_printf(e, "  asm(\"mov.b64 {%%0, %%1}, %%2;\" : \"=f\"(%s), \"=f\"(%s)"
              " : \"l\"(z));\n", reg(e, u->refs, "d", 0),
              reg(e, u->refs, "d", 1));
}

// Writes a product-sum of two 16-bit integers as C expressions.
static void print_dp2a(Emit *e, const AtomUse *u, bool separate) {
  const char *a = reg(e, u->refs, "a", 0), *b = reg(e, u->refs, "b", 0);
  text_printf(e, "  %s = (short)%s * (short)%s + ((int)%s >> 16) * ((int)%s "
              ">> 16) +\n      %s;\n", reg(e, u->refs, "d", 0), a, b, a, b,
              reg(e, u->refs, separate ? "c" : "d", 0));
}

static void print_mma(Emit *e, const AtomUse *u, bool separate) {
  const AtomMma *row = atom_mma(u->id);
  mma_head(e, u, separate);
  switch (row->kind) {
    case MK_FMA2: print_fma2(e, u, separate); break;
    case MK_DP2A: print_dp2a(e, u, separate); break;
    case MK_DP4A: print_plain(e, u, separate); break;
    case MK_MMA:
      if (row->a_type == DT_C64) print_complex(e, u, separate);
      else print_plain(e, u, separate);
      break;
    // this function writes no helper for atoms of these kinds
    case MK_FMA: case MK_WGMMA: case MK_TCGEN05: break;
  }
  text_puts(e, "}\n");
}

// ---- copies ----

static void print_matrix(Emit *e, const AtomUse *u) {
  const AtomCopy *row = atom_copy(u->id);
  bool load = row->op == CO_LDSM;
  int at = load ? 0 : 2, n = row->num;
  text_printf(e, "template <int at = 0>  // bytes beyond %s\n" FN "void %s(\n"
              "    ", load ? "src" : "dst", atomtext_name(e, false, u->id));
  if (load) {
    reg_params(e, u->refs, true, "unsigned", "r", n);
    text_puts(e, ", unsigned src");
  } else {
    text_puts(e, "unsigned dst, ");
    reg_params(e, u->refs, false, "unsigned", "r", n);
  }
  text_printf(e, ") {\n  asm volatile(\"%s \"\n      \"", row->ptx);
  if (!load) text_puts(e, "[%0 + %1], ");
  reg_braces(e, n, &at, false);
  if (load) text_printf(e, ", [%%%d + %%%d]", n, n + 1);
  text_puts(e, ";\"\n      : ");
  if (load) {
    reg_operands(e, u->refs, "=", 'r', "r", n, true);
    text_puts(e, "\n      : \"r\"(src), \"n\"(at)");
  } else {
    text_puts(e, ": \"r\"(dst), \"n\"(at)");
    reg_operands(e, u->refs, "", 'r', "r", n, false);
  }
  text_puts(e, "\n      : \"memory\");\n}\n");
}

// Writes the helper of movmatrix, which transposes a matrix that the lanes of a
// warp hold.
static void print_movm(Emit *e, const AtomUse *u) {
  const AtomCopy *row = atom_copy(u->id);
  text_printf(e, FN "void %s(unsigned &d, unsigned s) {\n"
              "  asm volatile(\"%s %%0, %%1;\" : \"=r\"(d) : \"r\"(s));\n}\n",
              atomtext_name(e, false, u->id), row->ptx);
}

static void print_atom(Emit *e, const AtomUse *u) {
  if (u->mma && atom_mma(u->id)->kind == MK_WGMMA) {
    wgmma_helper(e, u);
  } else if (u->mma) {
    if (u->same) print_mma(e, u, false);
    if (u->separate) print_mma(e, u, true);
  } else if (atom_copy(u->id)->op == CO_MOVM) {
    print_movm(e, u);
  } else {
    print_matrix(e, u);
  }
}

// ---- all atoms ----

void atomtext_reserve(Emit *e) {
  for (size_t k = 0; k < e->natom; k++) {
    const char *name = atomtext_name(e, e->atom[k].mma, e->atom[k].id);
    names_reserve(e, name);
    names_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%s_dabc", name));
  }
}

void atomtext_print(Emit *e) {
  for (size_t k = 0; k < e->natom; k++) print_atom(e, &e->atom[k]);
}
// SPDX-License-Identifier: MIT
