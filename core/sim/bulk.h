// Bulk copies (bulk.c).
#ifndef CUTE_SIMBULK_H
#define CUTE_SIMBULK_H

#include "decode/copies.h"
#include "sim/machine.h"

// Executes bulk copies, the operations TMALOAD to BULKSEND, lane by lane.
void simbulk_run(SimWarp *w, const SimIns *i);

// ---- mem.c: functions for bulk.c and tensormap_ops.c ----
// Record that an asynchronous operation, which lane `lane` started, reads or
// writes n bytes of global memory from byte `at` of m on. `data` has the
// written bytes; NULL: a reduction combines its bytes with memory.
void simmem_bulk_read(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                      int64_t at, int n);
void simmem_bulk(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                 int64_t at, int n, const uint8_t *data);
// Returns the byte offset of lane `lane`'s mbarrier in the mbarrier's memory
// object, or -1 after a fault.
int64_t simmem_byte(SimWarp *w, const SimIns *i, const SimSide *s, int lane);

#endif
// SPDX-License-Identifier: MIT
