// The facts of a fault: named values for the sentence of its report (facts.c).
#ifndef CUTE_FAULTS_FACTS_H
#define CUTE_FAULTS_FACTS_H

#include "decode/prog.h"
#include "faults/fault.h"

// Return the name of a kind of report, and of a kind of missing
// synchronization.
const char *facts_kind_name(SimKind k);
const char *facts_lack_name(SimLack k);
// Returns the n facts of a fault, allocated by base_realloc. Returns NULL if
// memory is exhausted.
SimFact *facts_of(const SimProg *p, const SimFault *f, int *n);
// Sets f->r.mbar, f->r.arrivals and f->r.bytes: the changes that would correct
// the expected counts of the mbarrier's phase.
void facts_amounts(SimFault *f);

#endif
// SPDX-License-Identifier: MIT
