// The tables of the enumerations in kinds.h.
#include "ir/kinds.h"

#include <string.h>

#include "ir/ir.h"

static const SRegRow sregs[] = {
#define SR(id, name, cuda, temp, least, most) {name, cuda, temp, least, most},
  SREGS(SR)
#undef SR
};

static const AtomicRow atomics[] = {
#define AT(id, name, cuda, op, how) {name, cuda, OP_##op, FI_##how},
  ATOMICS(AT)
#undef AT
};

static const FenceRow fences[] = {
#define FE(id, name, sm, text) {name, sm, text},
  FENCES(FE)
#undef FE
};

static const HintField hints[] = {
#define HV(id, name, ptx) {name, ptx},
#define HF(id, shift, bits, name, values) \
  {name, shift, bits, {{"", ""}, values(HV)}},
  HINTS(HF)
#undef HF
#undef HV
};

const SRegRow *sreg_row(SReg r) { return &sregs[r]; }
bool sreg_is_block(SReg r) {
  bool all = (r >= SR_NTID_X && r <= SR_NTID_Z) ||
             (r >= SR_NCTAID_X && r <= SR_NCTAID_Z);
  bool thread = r == SR_LANE || r == SR_WARP || r <= SR_TID_Z;
  return !all && !thread;
}
const AtomicRow *atomic_row(AtomicKind k) { return &atomics[k]; }
const FenceRow *fence_row(FenceKind k) { return &fences[k]; }
const HintField *hint_field(HintId f) { return &hints[f]; }

SReg sreg_find(const char *name) {
  int k = 0;
  while (k < SR_COUNT && strcmp(sregs[k].name, name) != 0) k++;
  return (SReg)k;
}

AtomicKind atomic_find(const char *name) {
  int k = 0;
  while (k < AT_COUNT && strcmp(atomics[k].name, name) != 0) k++;
  return (AtomicKind)k;
}

FenceKind fence_find(const char *name) {
  int k = 0;
  while (k < FE_COUNT && strcmp(fences[k].name, name) != 0) k++;
  return (FenceKind)k;
}
// SPDX-License-Identifier: MIT
