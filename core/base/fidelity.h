// Fidelity classes: how the simulated result of an operation compares with a
// GPU's.
//
// Each row of ops.h, intrin.h, kinds.h, soft.h and MATHS (rows.h), and each
// opcode of PTX (rows.c), names a class. A row without a class causes a compile
// error.
#ifndef CUTE_FIDELITY_H
#define CUTE_FIDELITY_H

// FI(ID, "name", what, "description"). The meaning of `what`:
//   EXACT: the same bits on every GPU.
//   SM90: the same bits as on an H100 and an H200, which were measured. On
//   another architecture, the last bits may differ.
//   BOUND: a result within an error bound.
//   TIMING: exact values, but the simulator orders accesses less strictly than
//   PTX specifies.
#define FIDELITIES(FI) \
  FI(EXACT, "exact", EXACT, "as PTX and IEEE 754 specify") \
  FI(ROW, "row", EXACT, "as the operation's row in another table says") \
  FI(UNIT, "approximate function", SM90, \
     "computed by the rule of an H200's special function unit") \
  FI(TENSOR, "tensor-core sum", SM90, \
     "products are added in the order of an H100 and H200") \
  FI(CUDA, "CUDA function", SM90, \
     "computed by the instructions that NVRTC 13.0 makes of a call") \
  FI(LIBRARY, "f64 function", BOUND, \
     "C's function; CUDA's may differ in the last bits") \
  FI(CONTRACTED, "contraction", BOUND, \
     "ptxas may contract a product and this sum, which lack .rn, to an FMA") \
  FI(ORDER, "order of atomic sums", BOUND, \
     "the order of floating-point atomic sums differs between runs") \
  FI(WEAKER, "weaker order", TIMING, \
     "fence.sc orders as acq_rel, .volatile as .relaxed.sys") \
  FI(TEXT, "inline PTX", BOUND, "the effect of inline PTX is not known")
typedef enum Fidelity {
#define FI(id, name, what, description) FI_##id,
  FIDELITIES(FI)
#undef FI
  FI_COUNT
} Fidelity;

#endif
// SPDX-License-Identifier: MIT
