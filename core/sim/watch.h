// The listeners to the machine's hooks (watch.c).
#ifndef CUTE_WATCH_H
#define CUTE_WATCH_H

#include "sim/hooks.h"

extern const SimHooks watch_hooks;

#endif
// SPDX-License-Identifier: MIT
