// Finds the root causes among faults (root_cause.c).
#ifndef CUTE_WATCH_ROOT_CAUSE_H
#define CUTE_WATCH_ROOT_CAUSE_H

#include "sim/report.h"

// Sorts n faults so that each cause precedes its likely consequences. For each
// consequence, sets SimReport.leads to the index of the likely cause. Removes
// faults that other faults explain. Returns the number of remaining faults.
uint32_t root_cause_arrange(const SimProg *p, SimFault *f, uint32_t n);

#endif
// SPDX-License-Identifier: MIT
