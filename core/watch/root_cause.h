// Finds the root causes among faults (root_cause.c).
#ifndef CUTE_WATCH_ROOT_CAUSE_H
#define CUTE_WATCH_ROOT_CAUSE_H

#include "sim/report.h"

// Sorts n faults so that each cause precedes its likely consequences. Sets
// SimReport.leads of the consequences to the index of their likely cause.
// Removes faults that other faults explain. Returns the number of faults left.
uint32_t root_cause_arrange(const SimProg *p, SimFault *f, uint32_t n);

#endif
// SPDX-License-Identifier: MIT
