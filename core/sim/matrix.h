// Tensor-core instructions and matrix copies (matrix.c).
#ifndef CUTE_SIM_MATRIX_H
#define CUTE_SIM_MATRIX_H

#include "decode/fragments.h"
#include "sim/machine.h"

void simmatrix_matrix(SimWarp *w, const SimIns *i);
void simmatrix_mma(SimWarp *w, const SimIns *i);

// ---- tiles of registers, row-major, raw elements ----
// Returns scratch buffer k of SIM_ROOM bytes (k < SIM_ROOMS).
void *simmatrix_room(SimWarp *w, int k);
// simmatrix_gather copies the registers of operand o to a tile, for the lanes
// of group g. simmatrix_scatter copies a tile to the registers of D.
void simmatrix_gather(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                      int g, void *to);
void simmatrix_scatter(SimWarp *w, const SimMmaIns *x, int g,
                       const void *from);
// simmatrix_accumulators copies the float accumulators of lane group g to a
// tile, in the order that mma_multiply needs. simmatrix_results copies them
// back.
void simmatrix_accumulators(SimWarp *w, const SimMmaIns *x, int g, float *to);
void simmatrix_results(SimWarp *w, const SimMmaIns *x, int g,
                       const float *from);
// Tells the checks that MMA i of lane group g computed NaNs or infinities. A
// and B are row-major. C and D have the order that mma_multiply needs.
void simmatrix_nonfinite(SimWarp *w, const SimIns *i, int g, const float *a,
                         const float *b, const float *c, const float *d);
// simmatrix_metadata reads the metadata of a sparse A into e: 16 rows of
// atom_mma_words words each. simmatrix_check_metadata reports a fault if the
// metadata is undefined, or if the hardware does not accept it.
enum { SIM_METADATA_MOST = 16 * 4 };
void simmatrix_metadata(SimWarp *w, const SimMmaIns *x, uint16_t *e);
void simmatrix_check_metadata(SimWarp *w, const SimIns *i,
                              const SimMmaIns *x);
// Returns the index along K of the i-th stored value in row m of a sparse A.
int simmatrix_stored_at(const AtomMma *r, const uint16_t *e, int m, int i);
// Convert n values in place: widen from f16 to f32, narrow from f32 to f16.
void simmatrix_widen_f16(float *tile, int n);
void simmatrix_narrow_f16(float *tile, int n);

#endif
// SPDX-License-Identifier: MIT
