// Interface between simlib.c and requestlib.c: recorded accesses as a userdata.
#ifndef CUTE_REQUESTS_H
#define CUTE_REQUESTS_H

#include "bind/face.h"
#include "sim/requests.h"

SimRequests *requestlib_push(lua_State *L);  // an empty list

#endif
// SPDX-License-Identifier: MIT
