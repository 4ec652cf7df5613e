--- The simulator's arithmetic and counting, without a kernel: spec/sim/units.c,
-- `make all` builds. Under CUTE_BUILD, by default build.
local path = (os.getenv "CUTE_BUILD" or "build") .. "/spec/units.so"
return assert(package.loadlib(path, "luaopen_units"))()
-- SPDX-License-Identifier: MIT
