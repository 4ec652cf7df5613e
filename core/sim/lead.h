// Which faults follow from which (lead.c).
#ifndef CUTE_SIMLEAD_H
#define CUTE_SIMLEAD_H

#include "sim/report.h"

// Puts n faults in the order in which they are told, each cause before what may
// follow from it (r.leads), and gives how many there are: some are told by
// others.
uint32_t simlead_arrange(const SimProg *p, SimFault *f, uint32_t n);

#endif
