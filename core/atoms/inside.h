// Families of atoms: the constant tables behind atom.h, one file an
// architecture. A row describes every atom whose name its pattern matches.
//
// A name pattern is literal text with choices {a|b|c}. {N=8..256+8} is a number
// of that range, {R=1|2|4} one of the list; layouts refer to them as N and R.
// {T} is any element type, and T is its number of bits. Choices are numbered
// $0, $1 ... from the left.
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
  const char *types;   // types of D A B C, or of A B D after a "~", as spelt in
                       // names ("F32BF16BF16F32", "$0"); if only three are
                       // given, C has D's type
  const char *thr, *a, *b, *c;
  // AMF_SPARSE: layouts of the stored half of A, an MxK/2 tile, and of its
  // metadata, one 16-bit value for four groups of a row
  const char *stored, *meta;
  short group;         // elements of a group, half of which are stored
  const char *ptx;     // $S: shape "m16n8k16"; $D $A $B $C: PTX types; $s:
                       // ".satfinite" with AMF_SAT
  MmaKind kind;
  short sm_min, sm_max;
  bool specific;       // needs sm_XXa
  short vs;            // AMF_SCALE: elements of K per scale
  DType sf_type;
  unsigned flags;      // AMF_*
} AtomMmaFam;

typedef struct AtomCopyFam {
  const char *name;
  CopyOp op;
  const char *thr, *src, *dst, *ref;
  const char *bits;    // bits moved per thread: "[T]", "128"
  int num;
  bool trans;
  unsigned flags;      // CPF_*
  const char *ptx;
  int sm_min;
} AtomCopyFam;

// The tables; each ends with a row whose name is NULL.
extern const AtomMmaFam atom_sm61[], atom_sm70[], atom_sm75[], atom_sm80[];
extern const AtomMmaFam atom_sm89[], atom_sm90[], atom_sm100[], atom_sm120[];
extern const AtomCopyFam atom_copies[], atom_copies_sm100[];

#endif
// SPDX-License-Identifier: MIT
