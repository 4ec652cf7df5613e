// Cost model: estimates the time of an event log (event_log.h) on
// multiprocessors.
#ifndef CUTE_TIMING_COST_MODEL_H
#define CUTE_TIMING_COST_MODEL_H

#include "timing/event_log.h"

extern const SimLog clock_log;  // creates an event log, and estimates its time

#endif
// SPDX-License-Identifier: MIT
