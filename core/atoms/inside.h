// Families of atoms: the constant tables from which the rows of atom.h are
// made. There is one file for each architecture. One entry describes all atoms
// whose names match its pattern.
//
// A name pattern is literal text with choices such as {a|b|c}. {N=8..256+8}
// stands for the numbers 8, 16 ... 256, and {R=1|2|4} for the listed numbers.
// Layouts refer to the chosen number as N or R. {T} stands for any element
// type. Layouts refer to its number of bits as T. $0, $1 ... are the texts of
// the choices, from left to right.
//
// Layouts are in CuTe notation, with computed numbers [16N], [N/2], [C-1].
//   MMA:    (thread,value) -> coordinate of the column-major MxK, NxK, MxN tile
//   Copies: (thread,value) -> bit
#ifndef CUTE_ATOMFAM_H
#define CUTE_ATOMFAM_H

#include "atoms/atom.h"

typedef struct AtomMmaFam {
  const char *name;
  const char *shape;   // "16,8,[K]"
  // Element types as the names of atoms spell them ("F32BF16BF16F32", "$0"), in
  // the order D A B C or, after a "~", A B D. If C's type is missing, it equals
  // D's.
  const char *types;
  const char *thr, *a, *b, *c;
  // AMF_SPARSE: layouts of the stored half of A (M x K/2) and of A's metadata,
  // in 16-bit values. Each value covers four groups of a row.
  const char *stored, *meta;
  short group;  // number of elements of a group of A, half of which are stored
  // PTX text with placeholders: $S for the shape "m16n8k16", $D $A $B $C for
  // the types, and $s for ".satfinite" if AMF_SAT is set.
  const char *ptx;
  MmaKind kind;
  short sm_min, sm_max;
  bool specific;       // needs sm_XXa
  short vs;            // AMF_SCALE: number of elements along K per scale
  DType sf_type;
  unsigned flags;      // AMF_*
} AtomMmaFam;

typedef struct AtomCopyFam {
  const char *name;
  CopyOp op;
  const char *thr, *src, *dst, *ref, *tmem;
  // number of bits moved per thread: "128", or "[T]" for the bits of type T
  const char *bits;
  int num;
  bool trans;
  unsigned flags;      // CPF_*
  const char *ptx;
  int sm_min;
} AtomCopyFam;

// Tables of families. A row without a name ends each table.
extern const AtomMmaFam atom_sm61[], atom_sm70[], atom_sm75[], atom_sm80[];
extern const AtomMmaFam atom_sm89[], atom_sm90[], atom_sm100[], atom_sm120[];
extern const AtomCopyFam atom_copies[], atom_copies_sm100[];

#endif
// SPDX-License-Identifier: MIT
