// Writes the helper functions of copy and MMA atoms. Each helper executes one
// instruction. It receives registers by reference, or as pointers to
// consecutive registers.
#include <string.h>

#include "atoms/atom.h"
#include "emit/asm.h"
#include "emit/tcgen05.h"
#include "emit/wgmma.h"

const char *atomtext_name(Emit *e, bool mma, int id) {
  const char *name = mma ? atom_mma(id)->name : atom_copy(id)->name;
  char *s = arena_printf(e->cx, &e->cx->scratch, "%s", name);
  for (char *p = s; *p; p++) {
    bool ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              (*p >= '0' && *p <= '9');
    if (!ok) *p = '_';
  }
  size_t n = strlen(s);
  // remove the underscore of the name's final `>`
  if (n && s[n - 1] == '_') s[n - 1] = '\0';
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

// Returns the parameter name of operand number o: d, a, b or c; s or t for the
// scale factors of A or B; e for metadata.
static const char *name_of(const AtomMma *row, int o) {
  return o >= 4 && !(row->flags & AMF_SCALE) ? "e" : names[o];
}

// Returns the text of register k of parameter `name`: `a2` if registers are
// passed one by one (refs), else `a[2]`.
static const char *reg(Emit *e, bool refs, const char *name, int k) {
  return arena_printf(e->cx, &e->cx->scratch, refs ? "%s%d" : "%s[%d]", name,
                      k);
}

// Returns the asm operands of n registers, such as {%4, %5}. The first number
// is *at. bare: omits the braces, as dp4a requires.
static const char *reg_braces(Emit *e, int n, int *at, bool bare) {
  const char *s = bare ? "" : "{";
  for (int k = 0; k < n; k++)
    s = PTX(e, "%s%s%%%d", s, k ? ", " : "", (*at)++);
  return bare ? s : PTX(e, "%s}", s);
}

// Adds n registers as outputs (`mode` is "=" or "+") or as inputs (`mode` is
// NULL).
static void reg_operands(AsmFn *f, bool refs, const char *mode, char c,
                         const char *name, int n) {
  for (int k = 0; k < n; k++) {
    const char *r = reg(f->e, refs, name, k);
    if (mode) asm_out(f, PTX(f->e, "%s%c", mode, c), r);
    else asm_in(f, c, r);
  }
}

// ---- MMA ----

static void mma_head(AsmFn *f, const AtomUse *u, bool separate) {
  const AtomMma *row = atom_mma(u->id);
  f->result = "void";
  f->name = PTX(f->e, "%s%s", atomtext_name(f->e, true, u->id),
                separate ? "_dabc" : "");
  f->lines = ASM_SPLIT;
  for (int o = 0; o < row->nop; o++)
    if (o != 3 || separate)
      asm_registers(f, u->refs, o == 0,
                    atomtext_reg_type(row->regs[o], atom_mma_type(row, o)),
                    name_of(row, o), row->nreg[o]);
  asm_head(f);
}

// Writes D = A * B + C if `separate`, else D = A * B + D. The operands of the
// product come first. They are followed by the metadata and the sparsity
// selector, then by each scale factor with selectors of the byte and the lanes
// that hold it.
static void print_plain(AsmFn *f, const AtomUse *u, bool separate) {
  Emit *e = f->e;
  const AtomMma *row = atom_mma(u->id);
  const uint8_t *n = row->nreg;
  bool bare = row->kind == MK_DP4A;
  const char *s = "";
  int at = 0, d = 0;
  for (int o = 0; o < 3; o++)
    s = PTX(e, "%s%s, ", s, reg_braces(e, n[o], &at, bare));
  s = PTX(e, "%s%s", s, reg_braces(e, n[3], separate ? &at : &d, bare));
  int scale = row->flags & AMF_SCALE ? at : 0;
  if (row->flags & AMF_SPARSE)
    s = PTX(e, "%s, %%%d, 0x0", s, at + (scale ? 2 : 0));
  if (scale)
    s = PTX(e, "%s, {%%%d}, {0, 0}, {%%%d}, {0, 0}", s, scale, scale + 1);
  reg_operands(f, u->refs, separate ? "=" : "+", row->regs[0], "d", n[0]);
  for (int o = 1; o < row->nop; o++)
    if (o != 3 || separate)
      reg_operands(f, u->refs, NULL, row->regs[o], name_of(row, o), n[o]);
  asm_statement(f, PTX(e, "\"%s \"\n      \"%s;\"", row->ptx, s),
                "\n      : $o\n      : $i");
}

// Writes one of the four real products of a complex product: p += a.q * b.r. p
// is the array x or y. q and r select the real part (x) or the imaginary part
// (y). `c` is the initial value of p (NULL: p itself).
static void print_part(AsmFn *f, const AtomUse *u, const char *c, char p,
                       char q, char r, bool minus) {
  Emit *e = f->e;
  const AtomMma *row = atom_mma(u->id);
  const uint8_t *n = row->nreg;
  const char *s = "";
  int at = 0;
  for (int o = 0; o < 4; o++)
    s = PTX(e, "%s%s%s", s, o ? ", " : "", reg_braces(e, n[o], &at, false));
  for (int k = 0; k < n[0]; k++) asm_out(f, "=d", PTX(e, "%c[%d]", p, k));
  for (int k = 0; k < n[1]; k++)
    asm_in(f, 'd', PTX(e, "%s%s.%c", minus ? "-" : "",
                       reg(e, u->refs, "a", k), q));
  for (int k = 0; k < n[2]; k++)
    asm_in(f, 'd', PTX(e, "%s.%c", reg(e, u->refs, "b", k), r));
  for (int k = 0; k < n[3]; k++)
    asm_in(f, 'd', c ? PTX(e, "%s.%c", reg(e, u->refs, c, k), p)
                     : PTX(e, "%c[%d]", p, k));
  asm_statement(f, PTX(e, "\"%s \"\n      \"%s;\"", row->ptx, s),
                "\n      : $o\n      : $i");
}

// Writes a complex MMA. D is assigned after all products, because D may share
// registers with A and B.
static void print_complex(AsmFn *f, const AtomUse *u, bool separate) {
  Emit *e = f->e;
  const char *c = separate ? "c" : "d";
  int n = atom_mma(u->id)->nreg[0];
  text_printf(e, "  double x[%d], y[%d];\n", n, n);
  print_part(f, u, c, 'x', 'x', 'x', false);
  print_part(f, u, c, 'y', 'x', 'y', false);
  print_part(f, u, NULL, 'x', 'y', 'y', true);
  print_part(f, u, NULL, 'y', 'y', 'x', false);
  for (int k = 0; k < n; k++)
    text_printf(e, "  %s = make_double2(x[%d], y[%d]);\n",
                reg(e, u->refs, "d", k), k, k);
}

// Writes two FMAs as one instruction on packed pairs of floats. If A or B has
// only one register, both FMAs use it.
static void print_fma2(AsmFn *f, const AtomUse *u, bool separate) {
  Emit *e = f->e;
  const AtomMma *row = atom_mma(u->id);
  const char *c = separate ? "c" : "d";
  text_puts(e, "  unsigned long long x, y, z;\n");
  f->movable = true;
  for (int o = 1; o < 4; o++) {
    const char *name = o == 3 ? c : names[o];
    asm_out(f, "=l", (char[]){"xyz"[o - 1], 0});
    asm_in(f, 'f', reg(e, u->refs, name, 0));
    asm_in(f, 'f', reg(e, u->refs, name, row->nreg[o] - 1));
    asm_statement(f, "\"mov.b64 %0, {%1, %2};\"", " : $o : $i");
  }
  asm_out(f, "+l", "z");
  asm_in(f, 'l', "x");
  asm_in(f, 'l', "y");
  asm_statement(f, PTX(e, "\"%s %%0, %%1, %%2, %%0;\"", row->ptx),
                " : $o : $i");
  asm_out(f, "=f", reg(e, u->refs, "d", 0));
  asm_out(f, "=f", reg(e, u->refs, "d", 1));
  asm_in(f, 'l', "z");
  asm_statement(f, "\"mov.b64 {%0, %1}, %2;\"", " : $o : $i");
}

// Writes a dot product of two pairs of 16-bit integers as C expressions.
static void print_dp2a(Emit *e, const AtomUse *u, bool separate) {
  const char *a = reg(e, u->refs, "a", 0), *b = reg(e, u->refs, "b", 0);
  text_printf(e, "  %s = (short)%s * (short)%s + ((int)%s >> 16) * ((int)%s "
              ">> 16) +\n      %s;\n", reg(e, u->refs, "d", 0), a, b, a, b,
              reg(e, u->refs, separate ? "c" : "d", 0));
}

static void print_mma(Emit *e, const AtomUse *u, bool separate) {
  const AtomMma *row = atom_mma(u->id);
  AsmFn f = {.e = e};
  mma_head(&f, u, separate);
  switch (row->kind) {
    case MK_FMA2: print_fma2(&f, u, separate); break;
    case MK_DP2A: print_dp2a(e, u, separate); break;
    case MK_DP4A: print_plain(&f, u, separate); break;
    case MK_MMA:
      if (row->a_type == DT_C64) print_complex(&f, u, separate);
      else print_plain(&f, u, separate);
      break;
    // The helpers of these atoms are written elsewhere.
    case MK_FMA: case MK_WGMMA: case MK_TCGEN05: break;
  }
  text_puts(e, "}\n");
  buf_free(&f.params);
}

// ---- copies ----

static void print_matrix(Emit *e, const AtomUse *u) {
  const AtomCopy *row = atom_copy(u->id);
  bool load = row->op == CO_LDSM;
  const char *place = load ? "src" : "dst", *registers;
  int at = load ? 0 : 2, n = row->num;
  AsmFn f = {.e = e, .result = "void",
             .name = atomtext_name(e, false, u->id), .lines = ASM_SPLIT,
             .over = PTX(e, "template <int at = 0>  // bytes beyond %s\n",
                         place)};
  if (load) asm_registers(&f, u->refs, true, "unsigned", "r", n);
  asm_arg(&f, "unsigned", place, 'r');
  asm_in(&f, 'n', "at");
  registers = reg_braces(e, n, &at, false);
  reg_operands(&f, u->refs, load ? "=" : NULL, 'r', "r", n);
  if (load) {
    asm_print(&f, PTX(e, "\"%s \"\n      \"%s, [%%%d + %%%d];\"", row->ptx,
                      registers, n, n + 1),
              "\n      : $o\n      : $i\n      : \"memory\"");
  } else {
    asm_registers(&f, u->refs, false, "unsigned", "r", n);
    asm_print(&f, PTX(e, "\"%s \"\n      \"[%%0 + %%1], %s;\"", row->ptx,
                      registers),
              "\n      : : $i\n      : \"memory\"");
  }
}

// Writes the helper of movmatrix, which transposes an 8x8 matrix in the
// registers of a warp.
static void print_movm(Emit *e, const AtomUse *u) {
  AsmFn f = {.e = e, .result = "void", .name = atomtext_name(e, false, u->id)};
  asm_param(&f, "unsigned", "&d");
  asm_out(&f, "=r", "d");
  asm_arg(&f, "unsigned", "s", 'r');
  asm_print(&f, PTX(e, "\"%s %%0, %%1;\"", atom_copy(u->id)->ptx),
            " : $o : $i");
}

static void print_atom(Emit *e, const AtomUse *u) {
  if (u->mma && atom_mma(u->id)->kind == MK_WGMMA) {
    wgmma_helper(e, u);
  } else if (u->mma && atom_mma(u->id)->kind == MK_TCGEN05) {
    tcgen05_mma_helper(e, u);
  } else if (u->mma) {
    if (u->same) print_mma(e, u, false);
    if (u->separate) print_mma(e, u, true);
  } else if (atom_copy(u->id)->op == CO_MOVM) {
    print_movm(e, u);
  } else if (atom_copy(u->id)->op == CO_TMEM_LOAD ||
             atom_copy(u->id)->op == CO_TMEM_STORE) {
    tcgen05_copy_helper(e, u);
  } else if (atom_copy(u->id)->op == CO_TMEM_CP) {
    tcgen05_rows_helper(e, u);
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
