// Interface between simlib.c and requestlib.c: the userdata with recorded
// requests, which are accesses of warps to shared memory.
#ifndef CUTE_REQUESTS_H
#define CUTE_REQUESTS_H

#include "bind/face.h"
#include "sim/record.h"

SimRequests *requestlib_push(lua_State *L);  // pushes an empty list of requests

#endif
// SPDX-License-Identifier: MIT
