--- Loads spec/sim/units.c, which runs the simulator's arithmetic and counting
-- without a kernel. `make all` builds it in the folder $CUTE_BUILD, by default
-- build.
local path = (os.getenv "CUTE_BUILD" or "build") .. "/spec/units.so"
return assert(package.loadlib(path, "luaopen_units"))()
-- SPDX-License-Identifier: MIT
